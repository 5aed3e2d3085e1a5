/* KV blocks: written where the directory says, read from wherever, moved while being read. */
#include "tests/unit/nic_host/support.h"

namespace {

std::vector<uint8_t> noise(std::mt19937_64 &rng, size_t n) {
    std::vector<uint8_t> v(n);
    for (uint8_t &b : v)
        b = (uint8_t)rng();
    return v;
}

mr_nic_place placed(uint16_t layer, uint32_t block, uint32_t bytes, uint8_t owner,
                    std::vector<uint8_t> replicas = {}) {
    mr_nic_place p = {};
    p.job = 1;
    p.layer = layer;
    p.block = block;
    p.bytes = bytes;
    p.owner = owner;
    p.count = (uint8_t)replicas.size();
    for (size_t i = 0; i < replicas.size(); i++)
        p.replicas[i] = replicas[i];
    return p;
}

mr_nic_call access(mr_nic_kind kind, uint16_t layer, uint32_t block, std::vector<uint8_t> &data,
                   size_t offset = 0) {
    mr_nic_call c = mr_nic_call_init(kind, 1);
    c.layer = layer;
    c.block = block;
    c.offset = offset;
    c.bytes = data.size();
    c.send = c.recv = data.data();
    return c;
}

mr_status go(Cluster &c, unsigned rank, const mr_nic_call &call) {
    uint8_t r = (uint8_t)rank;
    return mr_nic_run(c.nic, &r, &call, 1);
}

} // namespace

TEST_GROUP(KV){};

TEST(KV, EverySizeFromEveryRank) {
    auto rng = test_rng(70);
    for (const std::string &faults : {std::string(), kFaults}) {
        Cluster c(uri(4, faults, test_seed));
        c.job(1);
        const uint32_t sizes[] = {1, 63, 4095, 4096, 4097, 8192, 70000, 300001};
        uint32_t block = 0;
        for (uint32_t bytes : sizes) {
            for (unsigned writer = 0; writer < 4; writer++, block++) {
                auto data = noise(rng, bytes);
                mr_nic_place p = placed((uint16_t)(rng() % 5), block, bytes, (uint8_t)(rng() % 4));
                if (rng() & 1)
                    p.replicas[p.count++] = (uint8_t)((p.owner + 1) % 4);
                CHECK_OK(mr_nic_kv_place(c.nic, &p));
                CHECK_OK(go(c, writer, access(MR_NIC_KV_WRITE, p.layer, block, data)));
                for (unsigned reader = 0; reader < 4; reader++) {
                    std::vector<uint8_t> got(bytes);
                    CHECK_OK(go(c, reader, access(MR_NIC_KV_READ, p.layer, block, got)));
                    CHECK(got == data);
                }
                std::vector<uint8_t> held(bytes);
                CHECK_OK(mr_nic_kv_peek(c.nic, p.owner, 1, p.layer, block, 0, held.data(), bytes));
                CHECK(held == data);
                if (p.count) {
                    CHECK_OK(mr_nic_kv_peek(c.nic, p.replicas[0], 1, p.layer, block, 0, held.data(),
                                            bytes));
                    CHECK(held == data);
                }
            }
        }
        UNSIGNED_LONGS_EQUAL(0, c.total("stale_epoch"));
    }
}

TEST(KV, PartsOfABlock) {
    auto rng = test_rng(71);
    Cluster c(uri(3));
    c.job(1);
    mr_nic_place p = placed(2, 9, 5 * 4096 + 100, 1);
    CHECK_OK(mr_nic_kv_place(c.nic, &p));
    auto tail = noise(rng, 4096 + 100), head = noise(rng, 8192);
    CHECK_OK(go(c, 0, access(MR_NIC_KV_WRITE, 2, 9, tail, 4 * 4096)));
    CHECK_OK(go(c, 2, access(MR_NIC_KV_WRITE, 2, 9, head)));
    std::vector<uint8_t> got(4096 + 100), part(100), hole(4096);
    CHECK_OK(go(c, 0, access(MR_NIC_KV_READ, 2, 9, got, 4 * 4096)));
    CHECK(got == tail);
    CHECK_OK(go(c, 0, access(MR_NIC_KV_READ, 2, 9, part, 4096)));
    CHECK(!memcmp(part.data(), &head[4096], 100));
    CHECK_STATUS(MR_NOT_FOUND, go(c, 0, access(MR_NIC_KV_READ, 2, 9, hole, 2 * 4096)));
    CHECK_MESSAGE("nobody holds");
}

/* Reads of every rank are under way while the block goes round the nodes. */
TEST(KV, MovesWhileBeingRead) {
    auto rng = test_rng(72);
    for (const std::string &faults : {std::string(), kFaults}) {
        Cluster c(uri(4, faults, test_seed));
        CHECK_OK(mr_nic_set_timers(c.nic, 2048, 0));
        c.job(1);
        const uint32_t bytes = 9 * 4096 + 5;
        auto data = noise(rng, bytes);
        mr_nic_place p = placed(0, 3, bytes, 0);
        CHECK_OK(mr_nic_kv_place(c.nic, &p));
        CHECK_OK(go(c, 3, access(MR_NIC_KV_WRITE, 0, 3, data)));
        for (unsigned step = 1; step <= 12; step++) {
            std::vector<std::vector<uint8_t>> got(4, std::vector<uint8_t>(bytes));
            std::vector<mr_nic_op *> op(4);
            for (unsigned r = 0; r < 4; r++) {
                mr_nic_call call = access(MR_NIC_KV_READ, 0, 3, got[r]);
                CHECK_OK(mr_nic_start(c.nic, (uint8_t)r, &call, &op[r]));
            }
            CHECK_OK(mr_nic_advance(c.nic, rng() % 1500));
            uint8_t owner = (uint8_t)(step % 4), replica = (uint8_t)((step + 1) % 4);
            CHECK_OK(mr_nic_kv_move(c.nic, 1, 0, 3, owner, &replica, step & 1));
            for (unsigned r = 0; r < 4; r++) {
                CHECK_OK(mr_nic_wait(op[r]));
                CHECK_OK(mr_nic_op_destroy(op[r]));
                CHECK(got[r] == data);
            }
            mr_nic_place now;
            CHECK_OK(mr_nic_kv_find(c.nic, 1, 0, 3, &now));
            LONGS_EQUAL(1 + step, now.epoch);
            LONGS_EQUAL(owner, now.owner);
            LONGS_EQUAL(step & 1, now.count);
        }
    }
}

/* Two nodes with differing tables and one read: rank 1 still believes in rank 2. */
TEST(KV, DifferingTablesEndInAnAnswer) {
    auto rng = test_rng(73);
    Cluster c(uri(3));
    CHECK_OK(mr_nic_set_timers(c.nic, 1024, 0));
    c.job(1);
    auto data = noise(rng, 4096);
    mr_nic_place p = placed(0, 0, 4096, 2);
    CHECK_OK(mr_nic_kv_place(c.nic, &p));
    CHECK_OK(go(c, 0, access(MR_NIC_KV_WRITE, 0, 0, data)));
    CHECK_OK(c.ops()->cut(c.link(), 1, true));
    std::vector<uint8_t> got(4096);
    mr_nic_op *op;
    mr_nic_call call = access(MR_NIC_KV_READ, 0, 0, got);
    CHECK_OK(mr_nic_start(c.nic, 1, &call, &op)); /* its request is lost */
    CHECK_OK(mr_nic_advance(c.nic, 100));
    CHECK_OK(mr_nic_kv_move(c.nic, 1, 0, 0, 0, nullptr, 0));
    CHECK_OK(c.ops()->cut(c.link(), 1, false));
    CHECK_OK(mr_nic_wait(op));
    CHECK_OK(mr_nic_op_destroy(op));
    CHECK(got == data);
}

TEST(KV, ReplicasComeAndGo) {
    auto rng = test_rng(74);
    Cluster c(uri(4, kFaults, test_seed));
    c.job(1);
    auto data = noise(rng, 20000);
    mr_nic_place p = placed(7, 1, 20000, 0);
    uint64_t before, after;
    CHECK_OK(mr_nic_kv_free(c.nic, 2, &before));
    CHECK_OK(mr_nic_kv_place(c.nic, &p));
    CHECK_OK(go(c, 1, access(MR_NIC_KV_WRITE, 7, 1, data)));
    CHECK_OK(mr_nic_kv_replicate(c.nic, 1, 7, 1, 2));
    CHECK_OK(mr_nic_kv_free(c.nic, 2, &after));
    UNSIGNED_LONGS_EQUAL(before - 5 * 4096, after);
    std::vector<uint8_t> held(20000);
    CHECK_OK(mr_nic_kv_peek(c.nic, 2, 1, 7, 1, 0, held.data(), held.size()));
    CHECK(held == data);
    /* rank 2 is served by its own NIC: no frame leaves */
    CHECK_OK(mr_nic_advance(c.nic, 50000)); /* whatever is still repeated has gone */
    uint64_t frames = c.total("tx_frames");
    CHECK_OK(go(c, 2, access(MR_NIC_KV_READ, 7, 1, held)));
    CHECK(held == data);
    UNSIGNED_LONGS_EQUAL(frames, c.total("tx_frames"));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_replicate(c.nic, 1, 7, 1, 2));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_drop(c.nic, 1, 7, 1, 0));
    CHECK_OK(mr_nic_kv_drop(c.nic, 1, 7, 1, 2));
    CHECK_OK(mr_nic_kv_free(c.nic, 2, &after));
    UNSIGNED_LONGS_EQUAL(before, after);
    CHECK_OK(go(c, 2, access(MR_NIC_KV_READ, 7, 1, held)));
    CHECK(held == data);
    CHECK_OK(mr_nic_kv_remove(c.nic, 1, 7, 1));
    CHECK_STATUS(MR_NOT_FOUND, go(c, 2, access(MR_NIC_KV_READ, 7, 1, held)));
    CHECK_STATUS(MR_NOT_FOUND, mr_nic_kv_find(c.nic, 1, 7, 1, &p));
}

TEST(KV, NoRoomNamesTheNode) {
    Cluster c(uri(2, "&memory=1")); /* 256 pages */
    c.job(1);
    mr_nic_place big = placed(0, 0, 200 * 4096, 1, {0}), more = placed(0, 1, 57 * 4096, 1, {0});
    CHECK_OK(mr_nic_kv_place(c.nic, &big));
    CHECK_STATUS(MR_OUT_OF_MEMORY, mr_nic_kv_place(c.nic, &more));
    CHECK_MESSAGE("rank 0");
    uint64_t free0, free1;
    CHECK_OK(mr_nic_kv_free(c.nic, 0, &free0));
    CHECK_OK(mr_nic_kv_free(c.nic, 1, &free1));
    UNSIGNED_LONGS_EQUAL(56 * 4096, free0);
    UNSIGNED_LONGS_EQUAL(56 * 4096, free1);
    CHECK_OK(mr_nic_kv_remove(c.nic, 1, 0, 0));
    CHECK_OK(mr_nic_kv_place(c.nic, &more));
    CHECK_OK(mr_nic_job_destroy(c.nic, 1));
    CHECK_OK(mr_nic_kv_free(c.nic, 1, &free1));
    UNSIGNED_LONGS_EQUAL(256 * 4096, free1);
}

/* Old contents of reused pages are never served under the new block's name. */
TEST(KV, ReusedPagesStartUnwritten) {
    auto rng = test_rng(75);
    Cluster c(uri(2, "&memory=1"));
    CHECK_OK(mr_nic_set_timers(c.nic, 256, 0));
    c.job(1);
    auto data = noise(rng, 200 * 4096);
    for (uint32_t i = 0; i < 3; i++) {
        mr_nic_place p = placed(0, i, 200 * 4096, 1);
        CHECK_OK(mr_nic_kv_place(c.nic, &p));
        std::vector<uint8_t> got(4096);
        CHECK_STATUS(MR_NOT_FOUND, go(c, 0, access(MR_NIC_KV_READ, 0, i, got)));
        CHECK_OK(go(c, 0, access(MR_NIC_KV_WRITE, 0, i, data)));
        CHECK_OK(go(c, 0, access(MR_NIC_KV_READ, 0, i, got)));
        CHECK(!memcmp(got.data(), data.data(), 4096));
        CHECK_OK(mr_nic_kv_remove(c.nic, 1, 0, i));
    }
}

TEST(KV, TheOwnerIsDead) {
    auto rng = test_rng(76);
    Cluster c(uri(3));
    CHECK_OK(mr_nic_set_timers(c.nic, 256, 0));
    c.job(1);
    auto data = noise(rng, 4096);
    mr_nic_place p = placed(0, 0, 4096, 2);
    CHECK_OK(mr_nic_kv_place(c.nic, &p));
    CHECK_OK(c.ops()->cut(c.link(), 2, true));
    CHECK_STATUS(MR_TIMEOUT, go(c, 0, access(MR_NIC_KV_WRITE, 0, 0, data)));
    CHECK_MESSAGE("kv write at rank 0");
    CHECK_MESSAGE("no answer from rank 2");
    CHECK_STATUS(MR_TIMEOUT, go(c, 1, access(MR_NIC_KV_READ, 0, 0, data)));
    CHECK_MESSAGE("no answer from rank 2");
    /* the job's numbered calls go on where rank 2 has no part */
    CHECK_OK(c.ops()->cut(c.link(), 2, false));
    CHECK_OK(go(c, 0, access(MR_NIC_KV_WRITE, 0, 0, data)));
}

TEST(KV, RefusedByName) {
    Cluster c(uri(3));
    uint8_t two[] = {0, 1};
    CHECK_OK(mr_nic_job_create(c.nic, 1, two, 2, 0, 0));
    mr_nic_place p = placed(0, 0, 4096, 2);
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_place(c.nic, &p));
    CHECK_MESSAGE("owner");
    p = placed(0, 0, 4096, 1, {1});
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_place(c.nic, &p));
    CHECK_MESSAGE("replicas[0]");
    p = placed(0, 0, 0, 1);
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_place(c.nic, &p));
    p = placed(0, 0, 10000, 1);
    CHECK_OK(mr_nic_kv_place(c.nic, &p));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_kv_place(c.nic, &p));
    CHECK_MESSAGE("placed already");
    std::vector<uint8_t> small(100), page(4096), big(12288);
    CHECK_STATUS(MR_INVALID_ARGUMENT, go(c, 0, access(MR_NIC_KV_WRITE, 0, 0, small)));
    CHECK_STATUS(MR_INVALID_ARGUMENT, go(c, 0, access(MR_NIC_KV_WRITE, 0, 0, page, 100)));
    CHECK_STATUS(MR_INVALID_ARGUMENT, go(c, 0, access(MR_NIC_KV_READ, 0, 0, big)));
    CHECK_STATUS(MR_INVALID_ARGUMENT, go(c, 0, access(MR_NIC_KV_READ, 0, 0, page, 12288)));
    CHECK_STATUS(MR_NOT_FOUND, go(c, 0, access(MR_NIC_KV_READ, 0, 1, page)));
    CHECK_STATUS(MR_NOT_FOUND, mr_nic_kv_peek(c.nic, 0, 1, 0, 0, 0, page.data(), 10));
}

/* Reads and writes are not numbered with the collectives and do not wait for them. */
TEST(KV, BesideCollectives) {
    auto rng = test_rng(77);
    Cluster c(uri(4, kFaults, test_seed));
    c.job(1);
    for (int i = 0; i < 20; i++) {
        uint32_t bytes = 1 + (uint32_t)(rng() % 60000);
        mr_nic_place p = placed(0, (uint32_t)i, bytes, (uint8_t)(rng() % 4));
        CHECK_OK(mr_nic_kv_place(c.nic, &p));
        auto data = noise(rng, bytes);
        std::vector<uint8_t> got(bytes);
        Collective x(rng, MR_NIC_ALLREDUCE, 4, 3000, MR_NIC_DT_FP32, 0, 1);
        x.start_all(c.nic);
        CHECK_OK(go(c, rng() % 4, access(MR_NIC_KV_WRITE, 0, (uint32_t)i, data)));
        CHECK_OK(go(c, rng() % 4, access(MR_NIC_KV_READ, 0, (uint32_t)i, got)));
        CHECK(got == data);
        x.finish();
    }
}
