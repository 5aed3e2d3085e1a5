/* What does not answer is named, in time, at every rank; what is wrong is refused by name. */
#include "tests/unit/nic_host/support.h"

#include "host/nic/frame.h"

namespace {

/* An allreduce of one element with a time-out at the given ranks. */
struct Sum {
    std::vector<int32_t> in, out;
    std::vector<mr_nic_op *> op;
    explicit Sum(unsigned n) : in(n, 1), out(n), op(n, nullptr) {}
    Sum(const Sum &) = delete;
    ~Sum() {
        for (mr_nic_op *o : op)
            if (o)
                mr_nic_op_destroy(o);
    }
    mr_nic_call call(uint16_t job, unsigned r) {
        mr_nic_call c = mr_nic_call_init(MR_NIC_ALLREDUCE, job);
        c.dtype = MR_NIC_DT_INT32;
        c.count = 1;
        c.send = &in[r];
        c.recv = &out[r];
        return c;
    }
    void start(mr_nic *nic, uint16_t job, unsigned r, uint64_t timeout = 0) {
        mr_nic_call c = call(job, r);
        c.timeout = timeout;
        CHECK_OK(mr_nic_start(nic, (uint8_t)r, &c, &op[r]));
    }
    std::vector<uint8_t> missing(unsigned r) {
        uint8_t ranks[256];
        size_t n = 0;
        CHECK_OK(mr_nic_missing(op[r], ranks, &n));
        return std::vector<uint8_t>(ranks, ranks + n);
    }
};

using Ranks = std::vector<uint8_t>;

/* Shorter timers, so that giving up does not take long. */
void quick(Cluster &c) { CHECK_OK(mr_nic_set_timers(c.nic, 512, 400000)); }

} // namespace

TEST_GROUP(Faults){};

TEST(Faults, NothingArrives) {
    Cluster c(uri(4, "&loss=1"));
    quick(c);
    c.job(1);
    Sum s(4);
    for (unsigned r = 0; r < 4; r++)
        s.start(c.nic, 1, r);
    for (unsigned r = 0; r < 4; r++) {
        CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[r]));
        CHECK_MESSAGE("allreduce at rank");
        CHECK_MESSAGE("no answer from rank");
    }
    CHECK((s.missing(0) == Ranks{1, 2, 3}));
    for (unsigned r = 1; r < 4; r++)
        CHECK(s.missing(r) == Ranks{0});
    CHECK(c.info().cycles < 2000000);
}

/* Whoever it is, the root included, every other rank names it. */
TEST(Faults, OneRankNeverStarts) {
    for (unsigned lazy = 0; lazy < 4; lazy++) {
        Cluster c(uri(4, kFaults, test_seed + lazy));
        quick(c);
        c.job(1, 2);
        Sum s(4);
        for (unsigned r = 0; r < 4; r++)
            if (r != lazy)
                s.start(c.nic, 1, r);
        for (unsigned r = 0; r < 4; r++)
            if (r != lazy) {
                CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[r]));
                CHECK(s.missing(r) == Ranks{(uint8_t)lazy});
                CHECK_MESSAGE(("no answer from rank " + std::to_string(lazy)).c_str());
            }
    }
}

TEST(Faults, TwoRanksDieInTheMiddle) {
    for (mr_nic_kind kind : {MR_NIC_ALLREDUCE, MR_NIC_ALLGATHER, MR_NIC_REDUCE}) {
        Cluster c(uri(6));
        quick(c);
        c.job(1);
        const size_t count = 400000;
        std::vector<std::vector<float>> in(6, std::vector<float>(count, 1)),
            out(6, std::vector<float>(kind == MR_NIC_ALLGATHER ? 6 * count : count));
        std::vector<mr_nic_op *> op(6);
        for (unsigned r = 0; r < 6; r++) {
            mr_nic_call call = mr_nic_call_init(kind, 1);
            call.count = count;
            call.send = in[r].data();
            call.recv = out[r].data();
            CHECK_OK(mr_nic_start(c.nic, (uint8_t)r, &call, &op[r]));
        }
        CHECK_OK(mr_nic_advance(c.nic, 20000));
        for (unsigned r : {2u, 5u})
            CHECK_OK(c.ops()->cut(c.link(), r, true));
        for (unsigned r : {0u, 1u, 3u, 4u}) {
            uint8_t ranks[256];
            size_t n;
            /* a REDUCE ends at a rank when its own part is in */
            mr_status e = mr_nic_wait(op[r]);
            if (kind == MR_NIC_REDUCE && r != 0 && e == MR_OK)
                continue;
            CHECK_STATUS(MR_TIMEOUT, e);
            CHECK_OK(mr_nic_missing(op[r], ranks, &n));
            CHECK_TEXT(n >= 1 && n <= 2, mr_last_error());
            for (size_t i = 0; i < n; i++)
                CHECK(ranks[i] == 2 || ranks[i] == 5);
        }
        for (mr_nic_op *o : op)
            CHECK_OK(mr_nic_op_destroy(o));
    }
}

/* Rank 2's host was set up as rank 1: its contribution is a duplicate, and rank 2 is missing. */
TEST(Faults, ADuplicatedRank) {
    Cluster c(uri(3));
    quick(c);
    c.job(1);
    Sum s(3);
    s.start(c.nic, 1, 0);
    s.start(c.nic, 1, 1);
    mr_nic_node_row row[3];
    for (unsigned r = 0; r < 3; r++)
        mr_nic_default_address(r, row[r].mac, &row[r].ip, &row[r].port);
    mr_nic_header h = {};
    h.version = 1;
    h.opcode = MR_NIC_OP_REDUCE;
    h.dtype = MR_NIC_DT_INT32;
    h.flags = MR_NIC_FL_RELIABLE | MR_NIC_FL_EVERYONE;
    h.job = 1;
    h.shard = 1;
    h.shards = 3;
    h.heads = h.dim = 1;
    uint8_t frame[128] = {0};
    size_t n = mr_nic_frame_build(frame, &row[0], &row[2], &h, 4);
    CHECK_OK(mr_nic_advance(c.nic, 1000));
    CHECK_OK(c.ops()->send(c.link(), 2, frame, n));
    for (unsigned r = 0; r < 2; r++) {
        CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[r]));
        CHECK(s.missing(r) == Ranks{2});
    }
    uint64_t twice;
    CHECK_OK(mr_nic_counter(c.nic, 0, "duplicate", &twice));
    UNSIGNED_LONGS_EQUAL(1, twice);
}

TEST(Faults, MembersThatDisagree) {
    Cluster c(uri(3));
    quick(c);
    c.job(1);
    Sum s(3);
    s.start(c.nic, 1, 0);
    CHECK_OK(mr_nic_advance(c.nic, 5000));
    std::vector<int32_t> two(2);
    mr_nic_call call = s.call(1, 1);
    call.count = 2;
    call.send = call.recv = two.data();
    CHECK_OK(mr_nic_start(c.nic, 1, &call, &s.op[1]));
    s.start(c.nic, 1, 2);
    CHECK_STATUS(MR_DEVICE_ERROR, mr_nic_wait(s.op[1]));
    CHECK_MESSAGE("disagree");
    CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[0]));
    CHECK(s.missing(0) == Ranks{1});
    CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[2]));
    CHECK(s.missing(2) == Ranks{1});
}

TEST(Faults, AfterAFailureTheJobIsMadeAgain) {
    Cluster c(uri(3));
    quick(c);
    c.job(1);
    for (int round = 0; round < 3; round++) {
        Sum s(3), after(3);
        s.start(c.nic, 1, 0);
        s.start(c.nic, 1, 1);
        CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[0]));
        after.start(c.nic, 1, 0);
        CHECK_STATUS(MR_CANCELLED, mr_nic_wait(after.op[0]));
        CHECK_MESSAGE("no answer from rank 2");
        CHECK_OK(mr_nic_job_destroy(c.nic, 1));
        c.job(1);
        Sum good(3);
        for (unsigned r = 0; r < 3; r++)
            good.start(c.nic, 1, r);
        for (unsigned r = 0; r < 3; r++) {
            CHECK_OK(mr_nic_wait(good.op[r]));
            LONGS_EQUAL(3, good.out[r]);
        }
    }
}

/* A dead node in one group is named in all of them. */
TEST(Faults, GroupsTellEachOther) {
    for (unsigned dead : {1u, 4u, 8u}) {
        Cluster c(uri(9));
        quick(c);
        c.job(1, 0, 3);
        CHECK_OK(c.ops()->cut(c.link(), dead, true));
        Sum s(9);
        for (unsigned r = 0; r < 9; r++)
            s.start(c.nic, 1, r);
        for (unsigned r = 0; r < 9; r++) {
            if (r == dead)
                continue;
            CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[r]));
            CHECK(s.missing(r) == Ranks{(uint8_t)dead});
        }
    }
}

TEST(Faults, TimeOutOfACall) {
    Cluster c(uri(2));
    c.job(1);
    Sum s(2);
    s.start(c.nic, 1, 0, 1000);
    CHECK_STATUS(MR_TIMEOUT, mr_nic_wait(s.op[0]));
    CHECK_MESSAGE("not done in time");
    CHECK(c.info().cycles <= 1100);
}

TEST(Faults, AHostThatNeverDrains) {
    Cluster c(uri(3));
    quick(c);
    c.job(1);
    CHECK_OK(c.ops()->pause_host(c.link(), 2, true));
    Sum s(3);
    for (unsigned r = 0; r < 3; r++)
        s.start(c.nic, 1, r);
    CHECK_OK(mr_nic_wait(s.op[0]));
    CHECK_OK(mr_nic_wait(s.op[1]));
    CHECK_STATUS(MR_PENDING, mr_nic_op_status(s.op[2]));
    CHECK_OK(c.ops()->pause_host(c.link(), 2, false));
    CHECK_OK(mr_nic_wait(s.op[2]));
}

TEST(Faults, GivingUpAndClosing) {
    Cluster c(uri(2));
    c.job(1);
    Sum s(2), t(2);
    s.start(c.nic, 1, 0);
    CHECK_OK(mr_nic_op_destroy(s.op[0]));
    s.op[0] = nullptr;
    t.start(c.nic, 1, 0);
    CHECK_STATUS(MR_CANCELLED, mr_nic_wait(t.op[0]));
    t.start(c.nic, 1, 1);
    CHECK_STATUS(MR_PENDING, mr_nic_op_status(t.op[1]));
    CHECK_OK(mr_nic_close(c.nic));
    CHECK_STATUS(MR_CANCELLED, mr_nic_wait(t.op[1]));
    CHECK_STATUS(MR_INVALID_HANDLE, mr_nic_close(c.nic));
    c.nic = nullptr;
}

TEST(Faults, TooManyJobs) {
    Cluster c(uri(2));
    for (uint16_t i = 0; i < 32; i++)
        c.job(i);
    uint8_t both[] = {0, 1};
    CHECK_STATUS(MR_LIMIT, mr_nic_job_create(c.nic, 99, both, 2, 0, 0));
    CHECK_MESSAGE("no row left");
    CHECK_OK(mr_nic_job_destroy(c.nic, 3));
    CHECK_OK(mr_nic_job_create(c.nic, 99, both, 2, 0, 0));
}

TEST_GROUP(Refused){};

TEST(Refused, Clusters) {
    mr_nic *nic = nullptr;
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_open(nullptr, &nic));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_open("golden?nodes=0", &nic));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_open("golden?loss=2", &nic));
    CHECK_MESSAGE("loss");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_open("golden?lose=0.1", &nic));
    CHECK(!nic);
    mr_nic_info info;
    CHECK_STATUS(MR_INVALID_HANDLE, mr_nic_get_info(nullptr, &info));
    Cluster c(uri(2));
    uint64_t v;
    CHECK_STATUS(MR_NOT_FOUND, mr_nic_counter(c.nic, 0, "no_such", &v));
    CHECK_MESSAGE("no_such");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_counter(c.nic, 2, "late", &v));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_set_timers(c.nic, 1, 0));
}

TEST(Refused, Jobs) {
    Cluster c(uri(4));
    uint8_t twice[] = {0, 1, 1}, beyond[] = {0, 4}, good[] = {3, 0};
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, twice, 3, 0, 0));
    CHECK_MESSAGE("members[2]");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, beyond, 2, 0, 0));
    CHECK_MESSAGE("rank 4");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, good, 2, 1, 0));
    CHECK_MESSAGE("root");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, good, 2, 0, 33));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, good, 0, 0, 0));
    CHECK_OK(mr_nic_job_create(c.nic, 1, good, 2, 3, 0));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_job_create(c.nic, 1, good, 2, 3, 0));
    CHECK_MESSAGE("in use");
    CHECK_STATUS(MR_NOT_FOUND, mr_nic_job_destroy(c.nic, 2));
}

TEST(Refused, Calls) {
    Cluster c(uri(3));
    uint8_t two[] = {0, 1};
    CHECK_OK(mr_nic_job_create(c.nic, 1, two, 2, 0, 0));
    mr_nic_op *op = nullptr;
    float x[8] = {0};
    mr_nic_call good = mr_nic_call_init(MR_NIC_ALLREDUCE, 1), bad;
    good.count = 8;
    good.send = good.recv = x;
    auto refuse = [&](uint8_t rank, const char *word) {
        CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_start(c.nic, rank, &bad, &op));
        CHECK_MESSAGE(word);
    };
    bad = good, bad.job = 9, refuse(0, "job");
    bad = good, refuse(2, "not a member");
    bad = good, bad.count = 0, refuse(0, "count");
    bad = good, bad.dtype = 5, refuse(0, "dtype");
    bad = good, bad.rop = 3, refuse(0, "rop");
    bad = good, bad.send = nullptr, refuse(0, "send");
    bad = good, bad.recv = nullptr, refuse(0, "recv");
    bad = good, bad.kind = MR_NIC_BROADCAST, bad.from = 2, refuse(0, "from");
    bad = good, bad.kind = (mr_nic_kind)77, refuse(0, "kind");
    bad = good, bad.kind = MR_NIC_MERGE, bad.heads = 1, bad.dim = 8, refuse(0, "m: is NULL");
    bad.m = bad.d = x, refuse(0, "lse");
    bad.lse = x, bad.dtype = MR_NIC_DT_INT32, refuse(0, "dtype");
    bad.dtype = MR_NIC_DT_FP32, bad.dim = 3000, refuse(0, "does not fit a frame");
    bad.dim = 8, bad.heads = 70000, refuse(0, "heads");
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_nic_start(c.nic, 0, nullptr, &op));
    CHECK(!op);
    /* nothing of this took a number: the job still works */
    mr_nic_call both[2] = {good, good};
    float y[8] = {0};
    both[1].send = both[1].recv = y;
    CHECK_OK(mr_nic_run(c.nic, two, both, 2));
}
