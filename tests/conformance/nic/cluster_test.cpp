/* The host runtime over the RTL: the same calls, the same answers, the same bits as golden NICs. */
#include "tests/unit/nic_host/support.h"

namespace {

std::string sim(unsigned nodes, const std::string &more = "", uint64_t seed = 1) {
    return "sim:nic?memory=1&nodes=" + std::to_string(nodes) + "&seed=" + std::to_string(seed) +
           more;
}

/* Timers that fit messages of a few frames: what is lost is sent again soon. */
void brisk(Cluster &c) { CHECK_OK(mr_nic_set_timers(c.nic, 1024, 60000)); }

mr_nic_call access(mr_nic_kind kind, uint32_t block, std::vector<uint8_t> &data) {
    mr_nic_call c = mr_nic_call_init(kind, 3);
    c.block = block;
    c.bytes = data.size();
    c.send = c.recv = data.data();
    return c;
}

mr_status go(Cluster &c, unsigned rank, const mr_nic_call &call) {
    uint8_t r = (uint8_t)rank;
    return mr_nic_run(c.nic, &r, &call, 1);
}

} // namespace

TEST_GROUP(Rtl){};

TEST(Rtl, EveryOrderedPairWithFaults) {
    Cluster c(sim(3, kFaults, test_seed));
    brisk(c);
    c.job(3);
    ordered_pairs(c, 1, 700);
    UNSIGNED_LONGS_EQUAL(0, c.total("mismatch"));
    UNSIGNED_LONGS_EQUAL(0, c.total("unacknowledged"));
}

TEST(Rtl, TwoToEightRanks) {
    auto rng = test_rng(2);
    for (unsigned n = 2; n <= 8; n++) {
        Cluster c(sim(n, kFaults, test_seed + n));
        brisk(c);
        c.job(3, (uint8_t)(n - 1));
        mr_nic_kind kind = kKinds[1 + rng() % 4];
        Collective x(rng, kind, n, 1 + rng() % 3000, 1 + rng() % 4, rng() % 3, 3, (uint8_t)(n - 1));
        Attention a(rng, n, 1 + rng() % 12, 80, 1 + rng() % 3, 6, 3, (uint8_t)(n - 1));
        x.start_all(c.nic);
        for (unsigned r = 0; r < n; r++)
            a.start(c.nic, r);
        x.finish();
        a.finish();
    }
}

TEST(Rtl, SizesAroundWholeFrames) {
    auto rng = test_rng(3);
    Cluster c(sim(2));
    c.job(3);
    for (unsigned dtype = 1; dtype <= 4; dtype++)
        for (int k = 1; k <= 2; k++)
            for (int off = -1; off <= 1; off++) {
                size_t count = (size_t)((int)(8960 / size_of(dtype)) * k + off);
                Collective x(rng, kKinds[1 + rng() % 4], 2, count, dtype, rng() % 3, 3);
                x.start_all(c.nic);
                x.finish();
            }
}

TEST(Rtl, Repeats) {
    auto rng = test_rng(4);
    Cluster c(sim(2, kFaults, test_seed));
    brisk(c);
    c.job(3);
    for (int i = 0; i < 100; i++) {
        Collective x(rng, MR_NIC_ALLREDUCE, 2, 1 + rng() % 64, MR_NIC_DT_FP32, 0, 3);
        x.start_all(c.nic);
        x.finish();
    }
}

/* Bit for bit what golden NICs give, whatever the shards' types and bases. */
TEST(Rtl, MergesAreTheGoldenOnes) {
    const size_t heads[] = {1, 5, 7, 40}, dims[] = {192, 80, 128, 64};
    for (unsigned dtype : {MR_NIC_DT_BF16, MR_NIC_DT_FP16, MR_NIC_DT_FP32}) {
        Cluster rtl(sim(3)), model(uri(3));
        for (Cluster *c : {&rtl, &model})
            c->job(3, 1);
        for (int i = 0; i < 4; i++) {
            auto one = test_rng(50 + dtype), same = test_rng(50 + dtype);
            double spread = dtype == MR_NIC_DT_FP16 ? 5 : 1e4;
            Attention a(one, 3, heads[i], dims[i], dtype, spread, 3, 1),
                b(same, 3, heads[i], dims[i], dtype, spread, 3, 1);
            a.run(rtl.nic);
            b.run(model.nic);
            CHECK(!memcmp(a.lse().data(), b.lse().data(), 4 * heads[i]));
            CHECK(a.o() == b.o());
        }
    }
}

TEST(Rtl, GroupsOfTwo) {
    auto rng = test_rng(6);
    Cluster c(sim(5, kFaults, test_seed));
    brisk(c);
    c.job(3, 4, 2);
    for (mr_nic_kind kind : {MR_NIC_BARRIER, MR_NIC_ALLREDUCE, MR_NIC_ALLGATHER}) {
        Collective x(rng, kind, 5, 100, MR_NIC_DT_BF16, 0, 3, 4);
        x.start_all(c.nic);
        x.finish();
    }
    Attention a(rng, 5, 7, 64, MR_NIC_DT_BF16, 100, 3, 4, true);
    a.run(c.nic);
}

TEST(Rtl, BlocksAreWrittenReadAndMoved) {
    auto rng = test_rng(7);
    Cluster c(sim(3, kFaults, test_seed));
    brisk(c);
    c.job(3);
    const uint32_t sizes[] = {1, 4095, 4097, 20000};
    for (uint32_t b = 0; b < 4; b++) {
        mr_nic_place p = {};
        p.job = 3;
        p.block = b;
        p.bytes = sizes[b];
        p.owner = (uint8_t)(b % 3);
        p.count = b & 1;
        p.replicas[0] = (uint8_t)((b + 1) % 3);
        std::vector<uint8_t> data(sizes[b]), got(sizes[b]);
        for (uint8_t &x : data)
            x = (uint8_t)rng();
        CHECK_OK(mr_nic_kv_place(c.nic, &p));
        CHECK_OK(go(c, rng() % 3, access(MR_NIC_KV_WRITE, b, data)));
        mr_nic_call read = access(MR_NIC_KV_READ, b, got);
        mr_nic_op *op;
        CHECK_OK(mr_nic_start(c.nic, 0, &read, &op));
        CHECK_OK(mr_nic_advance(c.nic, rng() % 400));
        CHECK_OK(mr_nic_kv_move(c.nic, 3, 0, b, (uint8_t)((b + 2) % 3), nullptr, 0));
        CHECK_OK(mr_nic_wait(op));
        CHECK_OK(mr_nic_op_destroy(op));
        CHECK(got == data);
        got.assign(sizes[b], 0);
        CHECK_OK(mr_nic_kv_peek(c.nic, (uint8_t)((b + 2) % 3), 3, 0, b, 0, got.data(), sizes[b]));
        CHECK(got == data);
    }
}

TEST(Rtl, ADeadRankIsNamed) {
    Cluster c(sim(3));
    CHECK_OK(mr_nic_set_timers(c.nic, 64, 16000));
    c.job(3);
    for (uint8_t dead : {2, 0}) {
        int32_t one = 1, sum[3];
        mr_nic_op *op[3];
        CHECK_OK(c.ops()->cut(c.link(), dead, true));
        for (uint8_t r = 0; r < 3; r++) {
            mr_nic_call call = mr_nic_call_init(MR_NIC_ALLREDUCE, 3);
            call.dtype = MR_NIC_DT_INT32;
            call.count = 1;
            call.send = &one;
            call.recv = &sum[r];
            CHECK_OK(mr_nic_start(c.nic, r, &call, &op[r]));
        }
        for (uint8_t r = 0; r < 3; r++) {
            uint8_t ranks[256];
            size_t n;
            if (r != dead) {
                CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(op[r]));
                CHECK_OK(mr_nic_missing(op[r], ranks, &n));
                UNSIGNED_LONGS_EQUAL(1, n);
                UNSIGNED_LONGS_EQUAL(dead, ranks[0]);
            }
            CHECK_OK(mr_nic_op_destroy(op[r]));
        }
        CHECK_OK(c.ops()->cut(c.link(), dead, false));
        CHECK_OK(mr_nic_job_destroy(c.nic, 3));
        c.job(3);
    }
}
