/* The small parts of the host's side, each against a definition of its own. */
#include "tests/unit/nic_host/support.h"

#include "host/nic/frame.h"
#include "host/nic/narrow.h"
#include "host/nic/repeats.h"

TEST_GROUP(Parts){};

/* Against a set and a queue of tuples. */
TEST(Parts, RepeatsAreTheLast4096) {
    auto rng = test_rng(80);
    using Key = std::vector<uint32_t>;
    std::set<Key> known;
    std::deque<Key> order;
    mr_nic_repeats *r = mr_nic_repeats_create();
    for (int i = 0; i < 60000; i++) {
        mr_nic_header h = {};
        h.opcode = (uint8_t)(4 + rng() % 3);
        h.job = (uint16_t)(rng() % 3);
        h.request = (uint32_t)(rng() % 200);
        h.layer = (uint16_t)(rng() % 2);
        h.head0 = (uint16_t)(rng() % 2);
        h.block = (uint32_t)(rng() % 3);
        h.shard = (uint8_t)(rng() % 3);
        h.flags = (uint8_t)rng(); /* no part of it */
        Key k = {h.opcode, h.job, h.request, h.layer, h.head0, h.block, h.shard};
        bool want = known.count(k) != 0;
        CHECK_EQUAL(want, mr_nic_repeated(r, &h));
        if (want)
            continue;
        if (order.size() == 4096) {
            known.erase(order.front());
            order.pop_front();
        }
        order.push_back(k);
        known.insert(k);
    }
    mr_nic_repeats_destroy(r);
}

TEST(Parts, NarrowingIsTheCompilersRounding) {
    auto rng = test_rng(81);
    std::vector<float> in;
    for (uint32_t h = 0; h < 0x10000; h++) { /* every fp16 and bf16, and what lies between two */
        for (uint32_t low : {0u, 1u, 0x0FFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u}) {
            uint32_t w = h << 16 | low;
            float f;
            memcpy(&f, &w, 4);
            in.push_back(f);
        }
    }
    for (int i = 0; i < 200000; i++) {
        uint32_t w = 0x33000000u + (uint32_t)(rng() % 0x15000000u); /* around fp16's range */
        float f;
        memcpy(&f, &w, 4);
        in.push_back(rng() & 1 ? f : -f);
    }
    std::vector<uint16_t> half(in.size()), brain(in.size());
    mr_nic_narrow(half.data(), in.data(), in.size(), MR_NIC_DT_FP16);
    mr_nic_narrow(brain.data(), in.data(), in.size(), MR_NIC_DT_BF16);
    for (size_t i = 0; i < in.size(); i++) {
        if (std::isnan(in[i])) {
            LONGS_EQUAL(0x7E00, half[i]);
            LONGS_EQUAL(0x7FC0, brain[i]);
            continue;
        }
        _Float16 want = (_Float16)in[i];
        CHECK(!memcmp(&want, &half[i], 2));
        /* bf16: the nearer of the two neighbours, in double; the even one of a tie */
        uint32_t w;
        memcpy(&w, &in[i], 4);
        uint32_t down = w >> 16, up = down + 1;
        auto value = [](uint32_t b) {
            uint32_t x = b << 16;
            float f;
            memcpy(&f, &x, 4);
            return std::isinf(f) ? std::copysign(0x1p128, f) : (double)f;
        };
        double a = std::fabs(value(down) - in[i]), b = std::fabs(value(up) - in[i]);
        uint32_t nearest = std::isinf(in[i]) || a < b ? down : b < a ? up : down & 1 ? up : down;
        LONGS_EQUAL(nearest, brain[i]);
    }
}

TEST(Parts, WideningIsExact) {
    std::vector<uint16_t> all(0x10000), back(0x10000);
    std::vector<float> wide(0x10000);
    for (size_t i = 0; i < all.size(); i++)
        all[i] = (uint16_t)i;
    for (unsigned dtype : {MR_NIC_DT_BF16, MR_NIC_DT_FP16}) {
        mr_nic_widen(wide.data(), all.data(), all.size(), dtype);
        mr_nic_narrow(back.data(), wide.data(), wide.size(), dtype);
        for (size_t i = 0; i < all.size(); i++) {
            if (dtype == MR_NIC_DT_FP16) {
                _Float16 h;
                memcpy(&h, &all[i], 2);
                CHECK(std::isnan((float)h) ? std::isnan(wide[i]) : (float)h == wide[i]);
            }
            CHECK(std::isnan(wide[i]) || back[i] == all[i]);
        }
    }
}

/* RFC 1071 the slow way, over a whole frame. */
static unsigned ones_complement(const uint8_t *p, size_t n, uint32_t sum) {
    for (size_t i = 0; i < n; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum;
}

TEST(Parts, FramesHaveBothChecksums) {
    auto rng = test_rng(82);
    mr_nic_node_row to = {}, from = {};
    for (int i = 0; i < 3000; i++) {
        to.ip = (uint32_t)rng();
        from.ip = (uint32_t)rng();
        to.port = (uint16_t)rng();
        from.port = (uint16_t)rng();
        size_t bytes = rng() % 9 ? rng() % 200 : rng() % (MR_NIC_MAX_PAYLOAD + 1);
        std::vector<uint8_t> frame(MR_NIC_FRAME_MAX);
        for (size_t b = 0; b < bytes; b++)
            frame[74 + b] = (uint8_t)rng();
        std::vector<uint8_t> payload(&frame[74], &frame[74] + bytes);
        mr_nic_header h = {};
        h.version = 1;
        h.opcode = MR_NIC_OP_QUERY;
        h.request = (uint32_t)rng();
        size_t n = mr_nic_frame_build(frame.data(), &to, &from, &h, bytes);
        UNSIGNED_LONGS_EQUAL(bytes + 74 < 60 ? 60 : bytes + 74, n);
        UNSIGNED_LONGS_EQUAL(0xFFFF, ones_complement(&frame[14], 20, 0));
        uint32_t pseudo = 17 + (uint32_t)(bytes + 40);
        UNSIGNED_LONGS_EQUAL(0xFFFF, ones_complement(&frame[34], bytes + 40,
                                                     ones_complement(&frame[26], 8, 0) + pseudo));
        CHECK(frame[40] || frame[41]);
        mr_nic_frame f;
        CHECK(mr_nic_frame_read(&f, frame.data(), n));
        UNSIGNED_LONGS_EQUAL(bytes, f.bytes);
        UNSIGNED_LONGS_EQUAL(h.request, f.header.request);
        CHECK(!bytes || !memcmp(f.payload, payload.data(), bytes));
    }
}
