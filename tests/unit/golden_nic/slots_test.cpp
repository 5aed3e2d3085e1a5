// Timers, acknowledgements and limits of the slots: what no recorded frames can show.
#include <cstring>
#include <vector>

#include "CppUTest/TestHarness.h"
#include "millrace/nic_frame.h"
#include "models/golden/nic.h"

namespace {
using Bytes = std::vector<uint8_t>;

const uint8_t members[] = {0, 1, 2};

// NIC 0, the root of job 1 = {0, 1, 2}; what it sends is kept.
struct Nic {
    mr_gnic *g;
    std::vector<Bytes> sent, delivered, events;

    Nic() {
        mr_gnic_outputs out = {
            this,
            [](void *c, int, const uint8_t *f, size_t n) {
                ((Nic *)c)->sent.emplace_back(f, f + n);
            },
            [](void *c, const uint8_t *f, size_t n) {
                ((Nic *)c)->delivered.emplace_back(f, f + n);
            },
            [](void *c, const uint8_t e[64]) { ((Nic *)c)->events.emplace_back(e, e + 64); }};
        g = mr_gnic_create(&out, 16);
        mr_gnic_set_rank(g, 0);
        for (uint8_t r = 0; r < 3; r++) {
            uint8_t mac[6] = {2, 0, 0, 0, 0, r};
            LONGS_EQUAL(0, mr_gnic_node(g, r, mac, 0x0A000001u + r, 19794, 0));
        }
        LONGS_EQUAL(0, mr_gnic_job(g, 1, members, 3, 0));
    }
    ~Nic() { mr_gnic_destroy(g); }

    // The UDP checksum is zero, which is not tested.
    void put(const mr_nic_header &h, const Bytes &payload = {}) {
        Bytes f(74 + payload.size(), 0);
        const uint8_t start[] = {2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, h.shard, 8, 0, 0x45, 0};
        std::memcpy(f.data(), start, sizeof start);
        size_t ip = f.size() - 14, udp = f.size() - 34;
        f[16] = (uint8_t)(ip >> 8), f[17] = (uint8_t)ip, f[22] = 64, f[23] = 17;
        f[26] = 10, f[29] = (uint8_t)(1 + h.shard), f[30] = 10, f[33] = 1;
        uint32_t sum = 0;
        for (int i = 14; i < 34; i += 2)
            sum += (uint32_t)f[i] << 8 | f[i + 1];
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = ~(sum + (sum >> 16)) & 0xFFFF;
        f[24] = (uint8_t)(sum >> 8), f[25] = (uint8_t)sum;
        f[34] = f[36] = 0x4D, f[35] = f[37] = 0x52;
        f[38] = (uint8_t)(udp >> 8), f[39] = (uint8_t)udp;
        mr_nic_header_put(&h, &f[42]);
        if (!payload.empty())
            std::memcpy(&f[74], payload.data(), payload.size());
        mr_gnic_rx(g, 0, f.data(), f.size());
    }
    uint64_t count(unsigned index) const { return mr_gnic_counters(g)[index]; }
};

mr_nic_header reduce(uint8_t shard, uint32_t request, uint8_t flags, uint8_t shards = 3) {
    mr_nic_header h{};
    h.version = 1, h.opcode = MR_NIC_OP_REDUCE, h.dtype = MR_NIC_DT_INT32, h.flags = flags;
    h.job = 1, h.shard = shard, h.shards = shards, h.request = request, h.heads = 1, h.dim = 1;
    return h;
}

mr_nic_header ack(uint8_t shard, uint32_t request) {
    mr_nic_header h = reduce(shard, request, 0);
    h.opcode = MR_NIC_OP_ACK, h.dtype = MR_NIC_OP_RESULT, h.heads = h.dim = 0;
    return h;
}

const uint8_t RELIABLE_ALL = MR_NIC_FL_RELIABLE | MR_NIC_FL_EVERYONE;
const Bytes one = {0, 0, 0, 1};
} // namespace

TEST_GROUP(NicSlots){};

TEST(NicSlots, ALostResultIsSentAgainUntilEveryoneHasIt) {
    Nic nic;
    mr_gnic_set_timers(nic.g, 100, 0);
    for (uint8_t r = 0; r < 3; r++)
        nic.put(reduce(r, 7, RELIABLE_ALL), one);
    LONGS_EQUAL(4, (long)nic.sent.size());      // two ACKs, two results; the own host has its own
    LONGS_EQUAL(2, (long)nic.delivered.size()); // the ACK of its own contribution, the result
    nic.put(ack(1, 7));
    nic.sent.clear();
    mr_gnic_tick(nic.g, 99);
    LONGS_EQUAL(0, (long)nic.sent.size());
    mr_gnic_tick(nic.g, 100);
    LONGS_EQUAL(1, (long)nic.sent.size());
    LONGS_EQUAL(2, nic.sent[0][5]); // only rank 2 was silent
    LONGS_EQUAL(MR_NIC_OP_RESULT, nic.sent[0][43]);
    LONGS_EQUAL(MR_NIC_FL_LAST | MR_NIC_FL_RETRANSMISSION | MR_NIC_FL_RELIABLE, nic.sent[0][45]);
    LONGS_EQUAL(3, nic.sent[0][77]);
    nic.put(ack(2, 7));
    LONGS_EQUAL(0, (long)mr_gnic_slots_used(nic.g));
    LONGS_EQUAL(0, (long)nic.events.size());
    nic.put(reduce(1, 7, RELIABLE_ALL), one); // a late duplicate is acknowledged and does nothing
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_LATE));
    LONGS_EQUAL(0, (long)mr_gnic_slots_used(nic.g));
}

TEST(NicSlots, TriesDoubleUpToSixteenTimesAndEndWithTheSilentRanks) {
    Nic nic;
    mr_gnic_set_timers(nic.g, 10, 0);
    for (uint8_t r = 0; r < 3; r++)
        nic.put(reduce(r, 7, RELIABLE_ALL), one);
    nic.sent.clear();
    std::vector<uint64_t> at;
    uint64_t now = 0;
    for (; nic.events.empty() && now < 100000; now++) {
        mr_gnic_tick(nic.g, now);
        if (!nic.sent.empty())
            at.push_back(now);
        nic.sent.clear();
    }
    std::vector<uint64_t> want;
    for (uint64_t i = 0, t = 0; i < 16; i++)
        want.push_back(t += 10 * (i < 4 ? 1u << i : 16u));
    CHECK_TRUE(at == want);
    LONGS_EQUAL(MR_NIC_EV_UNACKNOWLEDGED, nic.events[0][0]);
    LONGS_EQUAL(0b110, nic.events[0][16]);
    LONGS_EQUAL(32, (long)nic.count(MR_NIC_CNT_RETRANSMISSIONS));
    LONGS_EQUAL(0, (long)mr_gnic_slots_used(nic.g));
}

TEST(NicSlots, AFillingSlotThatTimesOutNamesTheMissingRanks) {
    Nic nic;
    mr_gnic_set_timers(nic.g, 0, 1000);
    nic.put(reduce(2, 7, 0), one);
    LONGS_EQUAL(1, (long)mr_gnic_parked(nic.g));
    mr_gnic_tick(nic.g, 999);
    LONGS_EQUAL(0, (long)nic.events.size());
    mr_gnic_tick(nic.g, 1000);
    LONGS_EQUAL(1, (long)nic.events.size());
    LONGS_EQUAL(MR_NIC_EV_SLOT_TIMEOUT, nic.events[0][0]);
    LONGS_EQUAL(0b011, nic.events[0][16]);
    LONGS_EQUAL(0, (long)mr_gnic_parked(nic.g));
    nic.put(reduce(0, 7, 0), one);
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_LATE));
}

TEST(NicSlots, SlotsRunOutAndComeBack) {
    Nic nic;
    for (uint32_t i = 0; i < MR_GNIC_SLOTS; i++) {
        mr_nic_header h = reduce(0, 7, 0);
        h.block = i;
        nic.put(h, one);
    }
    mr_nic_header h = reduce(0, 7, 0);
    h.block = MR_GNIC_SLOTS;
    nic.put(h, one);
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_NO_SLOT));
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_NACKS));
    for (uint8_t r = 1; r < 3; r++) {
        mr_nic_header more = reduce(r, 7, 0);
        nic.put(more, one);
    }
    nic.put(h, one);
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_NO_SLOT));
    LONGS_EQUAL(MR_GNIC_SLOTS, (long)mr_gnic_slots_used(nic.g));
}

TEST(NicSlots, TheWindowOfRequestsWrapsAround) {
    Nic nic;
    nic.put(reduce(0, 0xFFFFFFF0u, 0), one);
    nic.put(reduce(0, 0x10u, 0), one); // newer by 32
    nic.put(reduce(1, 0xFFFFFFF0u, 0), one);
    LONGS_EQUAL(3, (long)nic.count(MR_NIC_CNT_CONTRIBUTED));
    nic.put(reduce(0, 0x30u, 0), one); // newest - 63 = 0xFFFFFFF1
    nic.put(reduce(2, 0xFFFFFFF0u, 0), one);
    LONGS_EQUAL(1, (long)nic.count(MR_NIC_CNT_LATE));
}
