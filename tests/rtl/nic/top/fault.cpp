// What goes wrong around a NIC: ports that stall, a host that does not look, frames that repeat,
// results that get lost, more contributions than there is room for. MR_FULL: the sizes of `make
// soak`.
#include "tests/rtl/nic/top/traffic.hpp"

static uint64_t fresh() {
    static Rng rng(run_seed());
    return rng.next();
}
static bool full() { return getenv("MR_FULL") != nullptr; }

TEST_GROUP(NicFault){};

static Bytes contribution(Rng &rng, const World &w, unsigned shard, unsigned shards,
                          uint32_t request, unsigned dim, unsigned flags = 0, unsigned job = 2,
                          uint32_t block = 0) {
    Millrace m;
    m.opcode = MR_NIC_OP_REDUCE;
    m.dtype = MR_NIC_DT_FP32;
    m.flags = flags;
    m.job = job;
    m.shard = shard;
    m.shards = shards;
    m.request = request;
    m.heads = 1;
    m.dim = dim;
    m.block = block;
    Bytes payload = random_bytes(rng, vector_bytes(m, 0));
    for (size_t k = 0; k < payload.size(); k += 4)
        payload[k] = (uint8_t)((payload[k] & 0x80) | 0x3F);
    return frame(address_of(shard), w.nodes[w.rank].at, m, payload);
}

static Bytes answer_to(const Bytes &result, const World &w) {
    Millrace m;
    m.opcode = MR_NIC_OP_ACK;
    m.dtype = result[43];
    m.job = (unsigned)big(result, 46, 2);
    m.shards = result[49];
    m.request = (uint32_t)big(result, 50, 4);
    m.layer = (unsigned)big(result, 54, 2);
    m.head0 = (unsigned)big(result, 56, 2);
    m.heads = m.dim = 0;
    m.block = (uint32_t)big(result, 66, 4);
    for (unsigned r = 0; r < w.nodes.size(); r++)
        if (!memcmp(result.data(), w.nodes[r].at.mac.data(), 6))
            m.shard = r;
    return frame(address_of(m.shard), w.nodes[w.rank].at, m, {});
}

// Operations back to back, in any order of shards, with gaps, stalls, repeats, and duplicates of an
// earlier operation while a later one of another size is under way: the same frames in the same
// order.
TEST(NicFault, operations_overlap_and_late_duplicates_meet_the_next_one) {
    for (unsigned round = 0; round < (full() ? 40u : 3u); round++) {
        Rng rng(fresh());
        const World w = usual_world(2);
        Pair p(rng.next(), w);
        p.rtl.gap_percent = round % 3 ? (unsigned)rng.below(60) : 0;
        for (unsigned &s : p.rtl.stall_percent)
            s = (unsigned)rng.below(60);
        std::vector<std::vector<Bytes>> pending; // of operations under way
        std::vector<Bytes> old;
        uint32_t request = 0xFFFFFFF0u; // wraps
        for (unsigned k = 0; k < 600; k++) {
            if (pending.size() < 12 && rng.percent(40)) {
                std::vector<Bytes> op;
                const unsigned dim = 1 + (unsigned)rng.below(rng.percent(10) ? 2000 : 100);
                for (unsigned s = 0; s < 8; s++)
                    op.push_back(contribution(rng, w, s, 8, request, dim,
                                              rng.percent(5) ? MR_NIC_FL_EVERYONE : 0));
                for (size_t i = op.size(); i > 1; i--)
                    std::swap(op[i - 1], op[rng.below(i)]);
                pending.push_back(op);
                request++;
            }
            if (pending.empty())
                continue;
            const size_t at = rng.below(std::min<size_t>(pending.size(), 6));
            const Bytes f = pending[at].back();
            pending[at].pop_back();
            if (pending[at].empty())
                pending.erase(pending.begin() + (long)at);
            p.send(NET0, f);
            old.push_back(f);
            if (rng.percent(20)) // again: soon after, or long after
                p.send(NET0, old[old.size() - 1 - rng.below(std::min<size_t>(old.size(), 100))]);
            if (rng.percent(
                    50)) // the golden model has no time; the NIC shall not run out of buffers
                while (p.rtl.waiting[NET0].size() > 8)
                    p.rtl.cycle();
        }
        p.rtl.settle();
        p.compare("overlapping operations");
        p.compare_counters("overlapping operations");
    }
}

// Every member contributes to more slots than there are, in the worst order.
TEST(NicFault, slots_and_pool_run_out_one_by_one) {
    Rng rng(fresh());
    World w = usual_world(2, 34);
    std::vector<uint8_t> all;
    for (unsigned r = 0; r < 32; r++)
        all.push_back((uint8_t)r);
    w.jobs.push_back({32, all, 2});
    Pair p(rng.next(), w);
    for (unsigned shard = 31; shard >= 20; shard--)
        for (uint32_t block = 0; block < 66; block++) {
            p.send(NET0, contribution(rng, w, shard, 32, 1, 1, 0, 32, block));
            while (p.rtl.waiting[NET0].size() > 1)
                p.rtl.cycle();
            p.rtl.run(20);
        }
    p.rtl.settle();
    p.compare("worst order");
    p.compare_counters("worst order");
    CHECK(mr_gnic_parked(p.golden.nic) == MR_GNIC_PARKED);
    for (uint32_t block = 0; block < 3; block++)
        for (unsigned shard = 0; shard < 32; shard++) {
            p.send(NET0, contribution(rng, w, shard, 32, 1, 1, 0, 32, block));
            p.rtl.settle();
        }
    p.compare("completed all the same");
    p.compare_counters("completed all the same");
}

// A slot whose contributions do not all come: an event names who is missing, and nothing is lost
// with it.
TEST(NicFault, slots_time_out_and_their_buffers_come_back) {
    Rng rng(fresh());
    World w = usual_world(2);
    w.slot_timeout = 3000;
    Pair p(rng.next(), w);
    const unsigned rounds = full() ? 200 : 14;
    uint32_t request = 0;
    unsigned parked = 0;
    for (unsigned k = 0; k < rounds; k++) {
        for (uint32_t slot = 0; slot < 10; slot++, request++)
            for (unsigned shard = 7; shard >= 2; shard--, parked++)
                p.rtl.send(NET0, contribution(rng, w, shard, 8, request, 300));
        p.rtl.settle();
        p.rtl.run(3500);
        LONGS_EQUAL((k + 1) * 10, p.rtl.counter(MR_NIC_CNT_SLOT_TIMEOUTS));
    }
    CHECK(parked > 768); // more than there are buffers
    LONGS_EQUAL(rounds * 10, p.rtl.out.events.size());
    for (const Bytes &e : p.rtl.out.events) {
        LONGS_EQUAL(MR_NIC_EV_SLOT_TIMEOUT, e[0]);
        LONGS_EQUAL(MR_NIC_OP_REDUCE, e[1]);
        LONGS_EQUAL(3, e[16]); // members 0 and 1 are missing
    }
    LONGS_EQUAL(parked, p.rtl.counter(MR_NIC_CNT_CONTRIBUTED));
    // it counts as completed
    p.rtl.send(NET0, contribution(rng, w, 0, 8, request - 1, 300));
    p.rtl.settle();
    LONGS_EQUAL(1, p.rtl.counter(MR_NIC_CNT_LATE));
}

// A reliable result is sent again until it is acknowledged, 16 times at most.
TEST(NicFault, a_lost_result_is_sent_again_with_bit_1) {
    Rng rng(fresh());
    World w = usual_world(2);
    w.rto = 500;
    Pair p(rng.next(), w);
    for (unsigned shard = 0; shard < 8; shard++)
        p.rtl.send(NET0,
                   contribution(rng, w, shard, 8, 1, 40, MR_NIC_FL_RELIABLE | MR_NIC_FL_EVERYONE));
    p.rtl.settle();
    const auto results = [&](unsigned rank, bool again) {
        unsigned n = 0;
        for (int port = 0; port < 2; port++)
            for (const Bytes &f : p.rtl.out.port[port])
                n += f[43] == MR_NIC_OP_RESULT &&
                     !memcmp(f.data(), w.nodes[rank].at.mac.data(), 6) &&
                     ((f[45] & MR_NIC_FL_RETRANSMISSION) != 0) == again;
        return n;
    };
    Bytes first;
    for (const Bytes &f : p.rtl.out.port[0])
        if (f[43] == MR_NIC_OP_RESULT) {
            first = f;
            p.rtl.send(NET0, answer_to(f, w)); // those behind port 0 answer
        }
    p.rtl.settle();
    p.rtl.run(500 + 1000 + 2000 + 1500);
    LONGS_EQUAL(1, results(0, false));
    LONGS_EQUAL(0, results(0, true));
    LONGS_EQUAL(1, results(1, false));
    LONGS_EQUAL(3, results(1, true));
    // a resend is the same frame plus bit 1, checksum apart
    for (const Bytes &f : p.rtl.out.port[1])
        if (f[43] == MR_NIC_OP_RESULT && (f[45] & MR_NIC_FL_RETRANSMISSION)) {
            Bytes same = f;
            same[45] &= (uint8_t)~MR_NIC_FL_RETRANSMISSION;
            Recipe::seal_udp(same, 14, 34, big(same, 38, 2));
            bool found = false;
            for (const Bytes &g : p.rtl.out.port[1])
                found |= g == same;
            CHECK(found);
        }
    p.rtl.run(500 * 16 * 16);
    LONGS_EQUAL(16, results(1, true));
    LONGS_EQUAL(1, p.rtl.counter(MR_NIC_CNT_UNACKNOWLEDGED));
    LONGS_EQUAL(16 * 3, p.rtl.counter(MR_NIC_CNT_RETRANSMISSIONS)); // ranks 1, 4, 7
    LONGS_EQUAL(1, p.rtl.out.events.size());
    LONGS_EQUAL(MR_NIC_EV_UNACKNOWLEDGED, p.rtl.out.events[0][0]);
    LONGS_EQUAL(MR_NIC_OP_RESULT, p.rtl.out.events[0][1]);
    LONGS_EQUAL(0x92, p.rtl.out.events[0][16]);
}

// Port 1 never takes a beat again, the host neither: everybody else goes on, and nothing is lost
// for good.
TEST(NicFault, a_stalled_port_and_a_sleeping_host_wedge_nobody) {
    Rng rng(fresh());
    const World w = usual_world(2);
    Pair p(rng.next(), w);
    p.rtl.stall_percent[1] = p.rtl.stall_percent[2] = p.rtl.stall_percent[3] = 100;
    uint32_t request = 0;
    const auto query = [&](unsigned from, size_t payload) {
        Millrace m;
        m.opcode = MR_NIC_OP_QUERY;
        m.dtype = MR_NIC_DT_BF16;
        m.job = 2;
        m.shard = from;
        m.shards = 1;
        m.heads = 1;
        m.dim = (unsigned)payload / 2;
        return frame(address_of(from), w.nodes[2].at, m, random_bytes(rng, payload));
    };
    // fill what can be filled: deliveries, results for port 1 and the host, contributions that wait
    for (unsigned k = 0; k < 400; k++) {
        p.rtl.send(NET0, query(3, 1000));
        p.rtl.send(NET1, query(1, 1000));
        if (k < 56)
            for (unsigned shard = 7; shard >= 1; shard--)
                p.rtl.send(shard % 2 ? NET0 : NET1,
                           contribution(rng, w, shard, 8, request + k, 500));
    }
    for (unsigned k = 0; k < 100000 && !p.rtl.fed(); k++)
        p.rtl.cycle();
    CHECK_TEXT(p.rtl.fed(), "a network port has been held up");
    p.rtl.run(500);
    CHECK(p.rtl.counter(MR_NIC_CNT_OVERRUN) > 0);
    // operations whose result goes out of port 0 complete at 90 % of the wire's rate and better
    p.rtl.out = Output();
    request = 60;
    uint64_t beats = 0;
    const uint64_t start = p.rtl.now;
    const unsigned ops = full() ? 1000 : 40;
    for (unsigned k = 0; k < ops; k++, request++)
        for (unsigned shard : {0u, 3u, 6u}) {
            const Bytes f = contribution(rng, w, shard, 3, request, 1000);
            beats += (f.size() + 63) / 64;
            p.rtl.send(NET0, f);
        }
    while (p.rtl.out.port[0].size() < ops) {
        CHECK_TEXT(p.rtl.now < start + 3 * beats + 1000, "operations are stuck");
        p.rtl.cycle();
    }
    CHECK_TEXT((p.rtl.now - start) * 9 < beats * 10 + 3000, "slower than nine tenths of the wire");
    // everybody wakes up, and all is as before
    for (unsigned &s : p.rtl.stall_percent)
        s = 0;
    p.rtl.settle();
    p.rtl.out = Output();
    for (unsigned k = 0; k < 300; k++)
        p.rtl.send(NET0, query(3, 1000));
    const uint64_t overrun = p.rtl.counter(MR_NIC_CNT_OVERRUN);
    p.rtl.settle();
    LONGS_EQUAL(300, p.rtl.out.port[HOST].size());
    LONGS_EQUAL(overrun, p.rtl.counter(MR_NIC_CNT_OVERRUN));
}

// Case 34: tiny datagrams back to back against a transmitter that stalls, then a large one.
TEST(NicFault, many_tiny_datagrams_then_a_large_one) {
    Rng rng(fresh());
    World w = usual_world(2);
    w.chain = true;
    Pair p(rng.next(), w);
    p.rtl.stall_percent[1] = 30;
    const unsigned count = full() ? 100000 : 3000;
    std::vector<Bytes> sent;
    for (unsigned k = 0; k < count; k++) {
        Recipe r;
        r.from = address_of(1);
        r.to = address_of(7);
        r.datagram = random_bytes(rng, 1 + rng.below(64));
        sent.push_back(r.build());
        p.rtl.send(NET0, sent.back());
        if (k % 64 == 0)
            while (p.rtl.waiting[NET0].size() > 16)
                p.rtl.cycle();
    }
    while (!p.rtl.fed())
        p.rtl.cycle();
    p.rtl.settle();
    Recipe r;
    r.from = address_of(1);
    r.to = address_of(7);
    r.datagram = random_bytes(rng, 1400);
    p.rtl.send(NET0, r.build());
    p.rtl.settle();
    const std::vector<Bytes> &got = p.rtl.out.port[1];
    LONGS_EQUAL(count + 1, got.size() + p.rtl.counter(MR_NIC_CNT_OVERRUN));
    CHECK(got.back() == r.build());
    // what came through is what was sent, in order; what did not was counted
    size_t at = 0;
    for (size_t k = 0; k + 1 < got.size(); k++, at++) {
        while (at < sent.size() && sent[at] != got[k])
            at++;
        CHECK_TEXT(at < sent.size(), "a frame that nobody sent");
    }
}

// Events that nobody takes are dropped and counted, frames are not.
TEST(NicFault, a_host_that_never_takes_events) {
    Rng rng(fresh());
    const World w = usual_world(2);
    Pair p(rng.next(), w);
    p.rtl.stall_percent[3] = 100;
    Millrace m;
    m.opcode = MR_NIC_OP_ACK;
    m.dtype = MR_NIC_OP_QUERY;
    m.job = 1;
    m.shard = 1;
    m.heads = m.dim = 0;
    for (m.request = 0; m.request < 600; m.request++)
        p.rtl.send(NET0, frame(address_of(1), w.nodes[2].at, m, {}));
    while (!p.rtl.fed())
        p.rtl.cycle();
    p.rtl.run(2000);
    LONGS_EQUAL(600, p.rtl.counter(MR_NIC_CNT_CONTROL));
    LONGS_EQUAL(600, p.rtl.counter(MR_NIC_CNT_EVENTS) + p.rtl.counter(MR_NIC_CNT_EVENTS_LOST));
    CHECK(p.rtl.counter(MR_NIC_CNT_EVENTS_LOST) > 0);
    p.rtl.stall_percent[3] = 0;
    p.rtl.settle();
    p.rtl.run(1000);
    LONGS_EQUAL(p.rtl.counter(MR_NIC_CNT_EVENTS), p.rtl.out.events.size());
}

// A job's row is written again: its slots are gone, in both, and what was in them comes back.
TEST(NicFault, a_job_written_again_begins_anew) {
    Rng rng(fresh());
    const World w = usual_world(2);
    Pair p(rng.next(), w);
    for (unsigned round = 0; round < (full() ? 60u : 6u); round++) {
        for (uint32_t block = 0; block < 30; block++)
            for (unsigned shard = 7; shard >= 1 + block % 3; shard--) {
                p.send(NET0, contribution(rng, w, shard, 8, 7, 20, 0, 2, block));
                if (shard % 2)
                    p.rtl.settle();
            }
        p.rtl.settle();
        p.write_job(1);
        p.rtl.settle();
        p.compare("rewritten");
    }
    p.compare_counters("rewritten");
}
