// How fast the NIC is: a beat a cycle for every frame length, and the cycles from a frame's last
// beat in to its answer's first beat out. A hundredth of the full run unless MR_FULL is set; `make
// bench` sets it.
#include "tests/rtl/nic/top/traffic.hpp"

static uint64_t fresh() {
    static Rng rng(run_seed());
    return rng.next();
}
static bool full() { return getenv("MR_FULL") != nullptr; }

TEST_GROUP(NicRate){};

static size_t beats_of(const Bytes &f) { return (f.size() + 63) / 64; }

// Frames into one port as fast as it takes them, out of another: cycles, and beats.
struct Streamed {
    uint64_t cycles = 0, beats = 0, frames = 0;
    uint64_t behind = 0; // cycles from the last beat in to the last one out
};
static void stream(Rtl &rtl, int in, int out, const std::vector<Bytes> &frames, Streamed &sum) {
    uint64_t beats = 0;
    for (const Bytes &f : frames) {
        rtl.send(in, f);
        beats += beats_of(f);
    }
    rtl.refused_beats[in] = 0;
    rtl.first_in[in].clear();
    rtl.last_in[in].clear();
    rtl.first_out[out].clear();
    rtl.last_out[out].clear();
    const uint64_t start = rtl.now;
    for (uint64_t end = rtl.now + 2 * beats + 2000; rtl.out.port[out].size() < frames.size();) {
        CHECK_TEXT(rtl.now < end, "frames are missing");
        rtl.cycle();
    }
    LONGS_EQUAL(0, rtl.refused_beats[in]);
    for (size_t k = 0; k < frames.size(); k++)
        if (rtl.out.port[out][k] != frames[k])
            FAIL("a frame is not what was sent");
    rtl.out = Output();
    CHECK_TEXT(rtl.now - start < beats + 200, "less than a beat a cycle");
    sum.cycles += rtl.last_in[in].back() - rtl.first_in[in].front() + 1;
    sum.behind = std::max(sum.behind, rtl.last_out[out].back() - rtl.last_in[in].back());
    sum.beats += beats;
    sum.frames += frames.size();
}
static void report(const char *what, const Streamed &s) {
    printf("NIC, %s: %.4f beats a cycle without a pause (asked: 1), %llu frames, 0 lost; the last "
           "beat out at "
           "most %llu cycles after the last one in\n",
           what, (double)s.beats / (double)s.cycles, (unsigned long long)s.frames,
           (unsigned long long)s.behind);
}

template <class T>
static void shuffle(Rng &rng, std::vector<T> &v) {
    for (size_t k = v.size(); k > 1; k--)
        std::swap(v[k - 1], v[rng.below(k)]);
}

// Frames of every length that a datagram of 32 to 9,000 bytes gives, through the chain.
TEST(NicRate, a_beat_a_cycle_for_every_length) {
    Rng rng(fresh());
    World w = usual_world(2);
    w.chain = true;
    Pair p(rng.next(), w);
    const unsigned times = full() ? 100 : 1;
    const size_t step =
        full() ? 1 : 12; // CI takes every twelfth length, another set with every seed
    std::vector<size_t> lengths;
    for (size_t n = 32 + rng.below(step); n <= 9000; n += step)
        lengths.insert(lengths.end(), times, n);
    shuffle(rng, lengths);
    Streamed sum;
    for (size_t k = 0; k < lengths.size(); k += 500) {
        std::vector<Bytes> frames;
        for (size_t i = k; i < lengths.size() && i < k + 500; i++) {
            Recipe r;
            r.from = address_of(1);
            r.to = address_of(7);
            r.datagram = random_bytes(rng, lengths[i]);
            frames.push_back(r.build());
        }
        stream(p.rtl, NET0, NET1, frames, sum);
    }
    p.rtl.settle();
    LONGS_EQUAL(lengths.size(), p.rtl.counter(MR_NIC_CNT_PASSED));
    LONGS_EQUAL(0, p.rtl.counter(MR_NIC_CNT_OVERRUN));
    report("UDP lengths 32 to 9,000 shuffled, port to port", sum);
}

static Bytes query(Rng &rng, const World &w, unsigned from, unsigned job, size_t payload,
                   uint32_t request) {
    Millrace m;
    m.opcode = MR_NIC_OP_QUERY;
    m.dtype = MR_NIC_DT_BF16;
    m.job = job;
    m.shard = from;
    m.shards = 4;
    m.request = request;
    m.heads = 1;
    m.dim = (unsigned)payload / 2;
    return frame(address_of(from), w.nodes[w.rank].at, m, random_bytes(rng, payload));
}

// Frames that are checked to the last byte and given to the host.
TEST(NicRate, a_beat_a_cycle_to_the_host) {
    Rng rng(fresh());
    const World w = usual_world(2);
    Pair p(rng.next(), w);
    std::vector<size_t> lengths;
    for (size_t n = 2 + 2 * rng.below(full() ? 1 : 60); n <= 8968; n += full() ? 2 : 120)
        lengths.insert(lengths.end(), full() ? 10 : 1, n);
    shuffle(rng, lengths);
    Streamed sum;
    for (size_t k = 0; k < lengths.size(); k += 500) {
        std::vector<Bytes> frames;
        for (size_t i = k; i < lengths.size() && i < k + 500; i++)
            frames.push_back(query(rng, w, 1, 1, lengths[i], (uint32_t)i));
        stream(p.rtl, NET0, HOST, frames, sum);
    }
    p.rtl.settle();
    LONGS_EQUAL(0, p.rtl.counter(MR_NIC_CNT_OVERRUN));
    report("QUERY to the host, even lengths shuffled", sum);
}

// Contributions without a pause: the merge engine takes a beat every cycle.
TEST(NicRate, the_merge_engine_takes_a_beat_every_cycle) {
    Rng rng(fresh());
    const World w = usual_world(2);
    Pair p(rng.next(), w);
    uint64_t beats = 0;
    unsigned frames = 0;
    for (uint32_t request = 0; request < (full() ? 200u : 8u); request++)
        for (unsigned shard = 0; shard < 4; shard++) {
            Millrace m;
            m.opcode = MR_NIC_OP_PARTIAL;
            m.dtype = 1 + request % 2;
            m.job = 1;
            m.shard = shard;
            m.shards = 4;
            m.request = request;
            m.heads = 16;
            m.dim = 128;
            const Bytes f = frame(address_of(shard), w.nodes[2].at, m, partial_payload(rng, m));
            p.send(NET0, f);
            beats += beats_of(f);
            frames++;
        }
    const uint64_t start = p.rtl.now, busy = p.rtl.read(MR_NIC_BUSY);
    p.rtl.settle();
    p.compare("merges");
    LONGS_EQUAL(0, p.rtl.counter(MR_NIC_CNT_OVERRUN));
    const uint64_t took = p.rtl.last_out[HOST].back() - start;
    printf("NIC, merge: %u contributions of %llu beats in %llu cycles: %.4f beats a cycle (asked: "
           "1), payload in %.1f %% of "
           "the cycles\n",
           frames, (unsigned long long)beats / frames, (unsigned long long)took,
           (double)beats / (double)took,
           100.0 * (double)(p.rtl.read(MR_NIC_BUSY) - busy) / (double)took);
    CHECK_TEXT(took < beats + beats / 50 + 300, "the merge engine does not keep up");
}

// Cycles from the last beat of the last frame that goes in to the first beat that comes out of
// `out`.
static uint64_t latency(Pair &p, int in, int out, const Bytes &f) {
    p.send(in, f);
    const size_t before = p.rtl.first_out[out].size();
    p.rtl.settle();
    CHECK_TEXT(p.rtl.first_out[out].size() > before, "nothing came out");
    return p.rtl.first_out[out][before] - p.rtl.last_in[in].back();
}

TEST(NicRate, routes_in_64_cycles_merges_in_64_and_the_payload_beats) {
    Rng rng(fresh());
    World w = usual_world(2);
    w.jobs[0].root = 2;
    Pair p(rng.next(), w);
    uint64_t host = 0, copy = 0, relay = 0, pass = 0;
    for (size_t n : {2, 22, 64, 200, 1400, 4000, 8968}) {
        host = std::max(host, latency(p, NET1, HOST, query(rng, w, 1, 1, n, 1)));
        copy = std::max(copy, latency(p, HOST, NET0, query(rng, w, 2, 1, n, 1)));
        Millrace m;
        m.opcode = MR_NIC_OP_KV_WRITE;
        m.job = 2;
        m.layer = 5;
        m.block = 2;
        m.epoch = 9;
        m.shard = 3;
        m.shards = 1;
        relay = std::max(relay, latency(p, NET0, NET0,
                                        frame(address_of(3), w.nodes[2].at, m,
                                              random_bytes(rng, std::min<size_t>(n, 4095)))));
        Recipe r;
        r.from = address_of(2);
        r.to = address_of(1);
        r.datagram = random_bytes(rng, n);
        pass = std::max(pass, latency(p, HOST, NET1, r.build()));
    }
    printf("NIC, route latency in cycles (asked: 64 at most): to the host %llu, query to members "
           "%llu, write to its owner "
           "%llu, "
           "host frame %llu\n",
           (unsigned long long)host, (unsigned long long)copy, (unsigned long long)relay,
           (unsigned long long)pass);
    CHECK(std::max(std::max(host, copy), std::max(relay, pass)) <= 64);

    uint32_t request = 100;
    uint64_t worst = 0;
    for (unsigned dtype = 1; dtype <= 3; dtype++)
        for (unsigned heads : {1u, 5u, 16u, 32u})
            for (unsigned dim : {1u, 64u, 128u}) {
                Millrace m;
                m.opcode = MR_NIC_OP_PARTIAL;
                m.dtype = dtype;
                m.job = 1;
                m.shards = 4;
                m.request = request++;
                m.heads = heads;
                m.dim = dim;
                if (vector_bytes(m, 8) > 8968)
                    continue;
                for (m.shard = 0; m.shard < 3; m.shard++)
                    p.send(NET0,
                           frame(address_of(m.shard), w.nodes[2].at, m, partial_payload(rng, m)));
                p.rtl.settle();
                m.shard = 3;
                const Bytes f = frame(address_of(3), w.nodes[2].at, m, partial_payload(rng, m));
                const uint64_t took = latency(p, NET0, HOST, f),
                               payload = (vector_bytes(m, 8) + 63) / 64;
                if (took > payload + 64)
                    FAIL(("merge of " + std::to_string(payload) + " beats took " +
                          std::to_string(took))
                             .c_str());
                worst = std::max(worst, took - std::min(took, payload));
            }
    printf("NIC, merge latency in cycles: payload beats + %llu at most (asked: 64)\n",
           (unsigned long long)worst);
    p.compare("latencies");
}
