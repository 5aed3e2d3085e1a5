/*
 * Many reliable requests over a bad network: 1 % loss, duplication, reordering and corruption each.
 * No result may be wrong, nothing may hang, and every frame counts exactly one fate.
 *
 *   MR_NIC_URI        the cluster, without the faults (golden?nodes=4)
 *   MR_NIC_REQUESTS   how many requests (2000)
 *   MR_SEED           of everything that is random
 */
#include "tests/unit/nic_host/support.h"

#include <chrono>

namespace {

/* Under way at once: at most 32 unfinished operations a job, and an allgather is one a rank. */
const size_t kWindow = 8;

size_t requests() {
    const char *text = getenv("MR_NIC_REQUESTS");
    return text ? strtoull(text, nullptr, 10) : 2000;
}

std::string uri() {
    const char *text = getenv("MR_NIC_URI");
    std::string base = text ? text : "golden?nodes=4";
    return base + (base.find('?') == std::string::npos ? "?" : "&") +
           "memory=1024&seed=" + std::to_string(test_seed & 0xFFFFFFFF) + kFaults;
}

/* A line a minute, so that a long run is seen to be alive. */
class Progress {
public:
    explicit Progress(const char *what) : what_(what), said_(clock::now()) {}
    void at(size_t done, size_t all) {
        if (clock::now() - said_ < std::chrono::minutes(1))
            return;
        said_ = clock::now();
        printf("%s: %zu of %zu\n", what_, done, all);
        fflush(stdout);
    }

private:
    typedef std::chrono::steady_clock clock;
    const char *what_;
    clock::time_point said_;
};

/* Every frame from the network has exactly one fate, and the network was as bad as asked. */
void account(Cluster &c, const char *what, size_t done) {
    uint64_t fates = 0;
    mr_nic_wire before, after;
    int quiet = 0;
    for (int i = 0; i < 2000 && quiet < 30; i++) { /* what is still under way arrives first */
        c.ops()->wire(c.link(), &before);
        c.ops()->run(c.link(), 1000);
        c.ops()->wire(c.link(), &after);
        quiet =
            before.frames == after.frames && before.delivered == after.delivered ? quiet + 1 : 0;
    }
    for (unsigned i = 0; i <= MR_NIC_CNT_CONTROL; i++)
        fates += c.total(mr_nic_counter_name(i));
    UNSIGNED_LONGS_EQUAL(c.total("rx_frames"), fates);
    mr_nic_wire w;
    c.ops()->wire(c.link(), &w);
    UNSIGNED_LONGS_EQUAL(w.delivered, c.total("rx_frames"));
    UNSIGNED_LONGS_EQUAL(0, w.flooded + w.full + w.refused);
    /* a bent EtherType, port or length is seen before the checksum is */
    UNSIGNED_LONGS_EQUAL(w.corrupted, c.total("not_ip") + c.total("bad_ip_checksum") +
                                          c.total("bad_udp_checksum") + c.total("not_mine") +
                                          c.total("truncated"));
    if (w.frames > 5000)
        CHECK(w.lost && w.duplicated && w.reordered && w.corrupted && w.fcs);
    CHECK(done < 1000 || c.info().resent);
    printf("%s: %zu requests, %llu frames (%llu lost, %llu twice, %llu late, %llu bent, %llu FCS), "
           "%llu sent again by hosts, %llu by NICs, %llu cycles\n",
           what, done, (unsigned long long)w.frames, (unsigned long long)w.lost,
           (unsigned long long)w.duplicated, (unsigned long long)w.reordered,
           (unsigned long long)w.corrupted, (unsigned long long)w.fcs,
           (unsigned long long)c.info().resent, (unsigned long long)c.total("retransmissions"),
           (unsigned long long)c.info().cycles);
    printf("figure: %s: 0 wrong, 0 hung of %zu requests, 1 %% of each fault (asked: 0 and 0)\n",
           what, done); /* a wrong or a hanging one would have failed before */
}

struct Operation {
    std::unique_ptr<Collective> c;
    std::unique_ptr<Attention> a;
    void finish() {
        if (c)
            c->finish();
        else
            a->finish();
    }
};

Operation start(Cluster &c, std::mt19937_64 &rng) {
    static const mr_nic_kind kinds[] = {MR_NIC_BARRIER,   MR_NIC_BROADCAST, MR_NIC_REDUCE,
                                        MR_NIC_ALLREDUCE, MR_NIC_ALLREDUCE, MR_NIC_ALLGATHER,
                                        MR_NIC_MERGE,     MR_NIC_MERGE};
    mr_nic_kind kind = kinds[rng() % 8];
    Operation o;
    if (kind == MR_NIC_MERGE) {
        static const unsigned types[] = {MR_NIC_DT_BF16, MR_NIC_DT_FP16, MR_NIC_DT_FP32};
        unsigned dtype = types[rng() % 3];
        o.a = std::make_unique<Attention>(rng, c.n, 1 + rng() % 8, 1 + rng() % 64, dtype,
                                          dtype == MR_NIC_DT_FP16 ? 4 : 50, 1, 0, rng() & 1);
        for (unsigned r = 0; r < c.n; r++)
            o.a->start(c.nic, r);
    } else {
        size_t count = rng() % 16 ? 1 + rng() % 200 : 1 + rng() % 6000;
        o.c = std::make_unique<Collective>(rng, kind, c.n, count, 1 + (unsigned)(rng() % 4),
                                           (unsigned)(rng() % 3), 1);
        o.c->start_all(c.nic);
    }
    return o;
}

/* A block of one to three pages, written by one rank and read by another. It stays: a place that is
 * given back rests for thousands of cycles. */
class Block {
public:
    Block(Cluster &c, std::mt19937_64 &rng, size_t number)
        : c_(c), data_(1 + rng() % 12288), got_(data_.size()) {
        for (uint8_t &b : data_)
            b = (uint8_t)rng();
        place_.job = 1;
        place_.layer = (uint16_t)(number % 32);
        place_.block = (uint32_t)number;
        place_.bytes = (uint32_t)data_.size();
        place_.owner = (uint8_t)(rng() % c.n);
        if (c.n > 1 && rng() & 1)
            place_.replicas[place_.count++] = (uint8_t)((place_.owner + 1) % c.n);
        CHECK_OK(mr_nic_kv_place(c.nic, &place_));
        reader_ = (uint8_t)(rng() % c.n);
        start(MR_NIC_KV_WRITE, (uint8_t)(rng() % c.n));
    }
    Block(const Block &) = delete;
    ~Block() {
        if (op_)
            mr_nic_op_destroy(op_);
    }
    void read() {
        wait();
        start(MR_NIC_KV_READ, reader_);
    }
    void finish() {
        wait();
        CHECK(got_ == data_);
    }

private:
    void start(mr_nic_kind kind, uint8_t rank) {
        mr_nic_call call = mr_nic_call_init(kind, 1);
        call.layer = place_.layer;
        call.block = place_.block;
        call.bytes = data_.size();
        call.send = data_.data();
        call.recv = got_.data();
        CHECK_OK(mr_nic_start(c_.nic, rank, &call, &op_));
    }
    void wait() {
        CHECK_OK(mr_nic_wait(op_));
        mr_nic_op_destroy(op_);
        op_ = nullptr;
    }
    Cluster &c_;
    std::vector<uint8_t> data_, got_;
    mr_nic_place place_ = {};
    uint8_t reader_;
    mr_nic_op *op_ = nullptr;
};

} // namespace

TEST_GROUP(NicFaults){};

TEST(NicFaults, Collectives) {
    auto rng = test_rng(1);
    Cluster c(uri());
    CHECK_OK(mr_nic_set_timers(c.nic, 2048, 1 << 22));
    c.job(1);
    Progress progress("collectives");
    std::deque<Operation> under_way;
    size_t all = requests();
    for (size_t done = 0; done < all; done++) {
        under_way.push_back(start(c, rng));
        if (under_way.size() == kWindow) {
            under_way.front().finish();
            under_way.pop_front();
        }
        progress.at(done, all);
    }
    for (Operation &o : under_way)
        o.finish();
    account(c, "collectives", all);
    CHECK(all < 1000 || c.total("retransmissions"));
}

TEST(NicFaults, Blocks) {
    auto rng = test_rng(2);
    Cluster c(uri());
    CHECK_OK(mr_nic_set_timers(c.nic, 2048, 1 << 22));
    c.job(1);
    Progress progress("blocks");
    std::deque<std::unique_ptr<Block>> writing, reading;
    size_t all = requests() / 2; /* a write and a read each */
    for (size_t done = 0; done < all + 2 * kWindow; done++) {
        if (done < all)
            writing.push_back(std::make_unique<Block>(c, rng, done));
        if (!writing.empty() && (done >= all || writing.size() > kWindow)) {
            writing.front()->read();
            reading.push_back(std::move(writing.front()));
            writing.pop_front();
        }
        if (!reading.empty() && (done >= all || reading.size() > kWindow)) {
            reading.front()->finish();
            reading.pop_front();
        }
        progress.at(done, all);
    }
    CHECK(writing.empty() && reading.empty());
    account(c, "blocks", 2 * all);
}
