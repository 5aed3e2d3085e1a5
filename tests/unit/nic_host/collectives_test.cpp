/* Every collective gives the one right answer, whatever the sizes, the order and the network. */
#include "tests/unit/nic_host/support.h"

/* Elements of one frame. */
static size_t part(unsigned dtype) { return 8960 / size_of(dtype); }

TEST_GROUP(Collectives){};

TEST(Collectives, SizesAroundWholeFrames) {
    auto rng = test_rng(1);
    for (unsigned n = 2; n <= 8; n++) {
        Cluster c(uri(n));
        c.job(1, (uint8_t)(n - 1));
        for (int k = 1; k <= 8; k++)
            for (int off = -1; off <= 1; off++) {
                unsigned dtype = 1 + (unsigned)(rng() % 4), rop = (unsigned)(rng() % 3);
                size_t count = (size_t)((int)part(dtype) * k + off);
                mr_nic_kind kind = kKinds[1 + rng() % 4];
                Collective x(rng, kind, n, count, dtype, rop, 1, (uint8_t)(n - 1));
                x.start_all(c.nic);
                x.finish();
            }
        UNSIGNED_LONGS_EQUAL(0, c.total("mismatch"));
        UNSIGNED_LONGS_EQUAL(0, c.total("unacknowledged"));
    }
}

TEST(Collectives, EveryTypeAndOperator) {
    auto rng = test_rng(2);
    Cluster c(uri(5));
    c.job(1, 2);
    for (mr_nic_kind kind : kKinds)
        for (unsigned dtype = 1; dtype <= 4 && kind != MR_NIC_MERGE; dtype++)
            for (unsigned rop = 0; rop < 3; rop++) {
                Collective x(rng, kind, 5, 1 + rng() % 3000, dtype, rop, 1, 2);
                x.start_all(c.nic);
                x.finish();
            }
}

TEST(Collectives, OneElementAndOneRank) {
    auto rng = test_rng(3);
    Cluster c(uri(1));
    c.job(7);
    for (mr_nic_kind kind : kKinds) {
        if (kind == MR_NIC_MERGE) {
            Attention a(rng, 1, 1, 1, MR_NIC_DT_FP32, 5, 7);
            a.run(c.nic);
            continue;
        }
        Collective x(rng, kind, 1, 1, MR_NIC_DT_BF16, 0, 7);
        x.start_all(c.nic);
        x.finish();
    }
}

TEST(Collectives, EveryOrderedPair) {
    Cluster c(uri(4));
    c.job(3);
    ordered_pairs(c, 10, 9000);
}

TEST(Collectives, EveryOrderedPairWithFaults) {
    for (unsigned n = 2; n <= 8; n++) {
        Cluster c(uri(n, kFaults, test_seed + n));
        c.job(3);
        ordered_pairs(c, 20 + n, 6000);
        UNSIGNED_LONGS_EQUAL(0, c.total("unacknowledged"));
    }
}

TEST(Collectives, ThousandRepeats) {
    auto rng = test_rng(4);
    Cluster c(uri(4, kFaults + "&stall=0.01", test_seed));
    c.job(1);
    for (int i = 0; i < 1000; i++) {
        Collective x(rng, MR_NIC_ALLREDUCE, 4, 1 + rng() % 64, MR_NIC_DT_FP32, 0, 1);
        x.start_all(c.nic);
        x.finish();
    }
    CHECK(c.info().resent > 0);
}

/* Late duplicates of one operation arrive while the next, of another size, uses the slot. */
TEST(Collectives, ChangingSizesUnderHeavyDuplication) {
    auto rng = test_rng(5);
    Cluster c(uri(3, "&dup=0.5&reorder=0.3", test_seed));
    c.job(1);
    for (int i = 0; i < 60; i++) {
        std::vector<std::unique_ptr<Collective>> x;
        for (int k = 0; k < 4; k++) {
            x.push_back(std::make_unique<Collective>(rng, kKinds[1 + rng() % 4], 3,
                                                     1 + rng() % 5000, 1 + rng() % 4, 0, 1));
            x.back()->start_all(c.nic);
        }
        for (auto &one : x)
            one->finish();
    }
    CHECK(c.total("late") + c.total("duplicate") > 0);
    CHECK(c.info().discarded > 0);
}

/* One rank starts its calls long after the others: nobody runs too far ahead. */
TEST(Collectives, AFastRankWaitsForASlowOne) {
    auto rng = test_rng(6);
    Cluster c(uri(3));
    c.job(1);
    std::vector<std::unique_ptr<Collective>> x;
    for (int i = 0; i < 200; i++)
        x.push_back(std::make_unique<Collective>(rng, i % 2 ? MR_NIC_REDUCE : MR_NIC_BROADCAST, 3,
                                                 10, MR_NIC_DT_INT32, 0, 1));
    for (auto &one : x)
        for (unsigned r : {0u, 2u})
            one->start(c.nic, r);
    CHECK_OK(mr_nic_advance(c.nic, 300000));
    for (auto &one : x) {
        one->start(c.nic, 1);
        CHECK_OK(mr_nic_advance(c.nic, 100));
    }
    for (auto &one : x)
        one->finish();
}

TEST(Collectives, MoreThanOneSlotsWorthOfJobs) {
    auto rng = test_rng(7);
    Cluster c(uri(4, kFaults, test_seed));
    std::vector<std::unique_ptr<Collective>> x;
    for (uint16_t job = 0; job < 12; job++)
        c.job((uint16_t)(100 + job), (uint8_t)(job % 4));
    for (uint16_t job = 0; job < 12; job++) {
        x.push_back(std::make_unique<Collective>(rng, MR_NIC_ALLREDUCE, 4, 60000, MR_NIC_DT_BF16, 1,
                                                 (uint16_t)(100 + job), (uint8_t)(job % 4)));
        x.back()->start_all(c.nic);
    }
    for (auto &one : x)
        one->finish();
}

/* Copies are copies: every 16-bit pattern, NaNs included, and an odd count. */
TEST(Collectives, BroadcastKeepsEveryBit) {
    Cluster c(uri(3));
    c.job(1, 1);
    std::vector<uint16_t> all(65535), got[3];
    for (size_t i = 0; i < all.size(); i++)
        all[i] = (uint16_t)(65535 - i);
    mr_nic_call call[3];
    for (unsigned r = 0; r < 3; r++) {
        got[r].resize(all.size());
        call[r] = mr_nic_call_init(MR_NIC_BROADCAST, 1);
        call[r].dtype = MR_NIC_DT_BF16;
        call[r].from = 2;
        call[r].count = all.size();
        call[r].send = all.data();
        call[r].recv = got[r].data();
    }
    CHECK_OK(mr_nic_run(c.nic, c.ranks().data(), call, 3));
    for (auto &g : got)
        CHECK(g == all);
}

TEST(Collectives, SendAndReceiveInOnePlace) {
    Cluster c(uri(4, kFaults, test_seed));
    c.job(1);
    std::vector<int32_t> v[4];
    mr_nic_call call[4];
    for (unsigned r = 0; r < 4; r++) {
        for (int i = 0; i < 10000; i++)
            v[r].push_back(i * (int)(r + 1));
        call[r] = mr_nic_call_init(MR_NIC_ALLREDUCE, 1);
        call[r].dtype = MR_NIC_DT_INT32;
        call[r].count = 10000;
        call[r].send = call[r].recv = v[r].data();
    }
    CHECK_OK(mr_nic_run(c.nic, c.ranks().data(), call, 4));
    for (unsigned r = 0; r < 4; r++)
        for (int i = 0; i < 10000; i++)
            LONGS_EQUAL(10 * i, v[r][(size_t)i]);
}

TEST_GROUP(Merge){};

TEST(Merge, ShapesTypesAndBases) {
    auto rng = test_rng(30);
    const size_t heads[] = {1, 5, 7, 12, 40}, dims[] = {40, 64, 80, 128, 192};
    Cluster c(uri(6));
    c.job(1, 3);
    for (size_t h : heads)
        for (size_t d : dims)
            for (unsigned dtype : {MR_NIC_DT_BF16, MR_NIC_DT_FP16, MR_NIC_DT_FP32}) {
                Attention a(rng, 6, h, d, dtype, dtype == MR_NIC_DT_FP16 ? 4 : 1e4, 1, 3,
                            rng() & 1);
                a.run(c.nic);
            }
}

TEST(Merge, QueryThenMergeShareANumber) {
    Cluster c(uri(4, kFaults, test_seed));
    c.job(1, 1);
    auto rng = test_rng(31);
    for (int step = 0; step < 100; step++) {
        const size_t heads = 70, dim = 64; /* three frames */
        std::vector<float> q(heads * dim), got[4];
        for (float &x : q)
            x = (float)(rng() % 1000);
        std::vector<mr_nic_op *> op(4);
        Attention a(rng, 4, heads, dim, MR_NIC_DT_FP32, 20, 1, 1);
        for (unsigned r = 0; r < 4; r++) {
            got[r].assign(heads * dim, -1);
            mr_nic_call call = mr_nic_call_init(MR_NIC_QUERY, 1);
            call.heads = heads;
            call.dim = dim;
            call.layer = (uint16_t)step;
            call.send = r == 1 ? q.data() : nullptr;
            call.recv = got[r].data();
            CHECK_OK(mr_nic_start(c.nic, (uint8_t)r, &call, &op[r]));
            a.start(c.nic, r);
        }
        for (unsigned r = 0; r < 4; r++) {
            CHECK_OK(mr_nic_wait(op[r]));
            CHECK_OK(mr_nic_op_destroy(op[r]));
            CHECK(got[r] == q);
        }
        a.finish();
    }
}

/* The same bits with a perfect network and with a bad one. */
TEST(Merge, BitsDoNotDependOnTheNetwork) {
    std::vector<float> lse;
    std::vector<uint8_t> o;
    for (int trial = 0; trial < 6; trial++) {
        auto rng = test_rng(32);
        Cluster c(
            uri(8, trial ? "&loss=0.05&dup=0.1&reorder=0.3" : "", test_seed + (uint64_t)trial));
        c.job(1);
        Attention a(rng, 8, 20, 96, MR_NIC_DT_BF16, 30, 1);
        a.run(c.nic);
        if (!trial) {
            lse = a.lse();
            o = a.o();
        }
        CHECK(lse == a.lse());
        CHECK(o == a.o());
    }
}

TEST_GROUP(Groups){};

TEST(Groups, FortyContributors) {
    auto rng = test_rng(40);
    Cluster c("golden?nodes=40"); /* more than a simulated cluster has */
    c.job(1, 37);                 /* the root leads the second group */
    for (mr_nic_kind kind : kKinds)
        for (unsigned dtype : {MR_NIC_DT_BF16, MR_NIC_DT_INT32}) {
            if (kind == MR_NIC_MERGE) {
                Attention a(rng, 40, 9, 64, MR_NIC_DT_BF16, 100, 1, 37, dtype == MR_NIC_DT_BF16);
                a.run(c.nic);
                continue;
            }
            Collective x(rng, kind, 40, 300, dtype, rng() % 3, 1, 37);
            x.start_all(c.nic);
            x.finish();
        }
}

/* Small groups: every shape of the last one, pairs under way at once, faults. */
TEST(Groups, GroupsOfTwoAndThree) {
    for (unsigned n : {5u, 7u, 8u})
        for (size_t fan : {2u, 3u}) {
            Cluster c(uri(n, kFaults, test_seed + n));
            c.job(3, 0, fan);
            ordered_pairs(c, 50 + n, 3000);
        }
}

TEST(Groups, QueryReachesEveryGroup) {
    Cluster c(uri(7));
    c.job(9, 4, 3);
    auto rng = test_rng(41);
    std::vector<float> q(5 * 64), got[7];
    for (float &x : q)
        x = (float)rng();
    std::vector<mr_nic_op *> op(7);
    Attention a(rng, 7, 5, 64, MR_NIC_DT_FP32, 20, 9, 4);
    for (unsigned r = 0; r < 7; r++) {
        got[r].assign(q.size(), -1);
        mr_nic_call call = mr_nic_call_init(MR_NIC_QUERY, 9);
        call.heads = 5;
        call.dim = 64;
        call.send = r == 4 ? q.data() : nullptr;
        call.recv = r == 4 ? nullptr : got[r].data();
        CHECK_OK(mr_nic_start(c.nic, (uint8_t)r, &call, &op[r]));
        a.start(c.nic, r);
    }
    a.finish();
    for (unsigned r = 0; r < 7; r++) {
        CHECK_OK(mr_nic_wait(op[r]));
        CHECK_OK(mr_nic_op_destroy(op[r]));
        CHECK(r == 4 || got[r] == q);
    }
}
