// The NIC against the golden model, frame by frame: everything it gives out, byte for byte, its
// memory, and every counter.
#include "tests/rtl/nic/top/traffic.hpp"

static uint64_t fresh() {
    static Rng rng(run_seed());
    return rng.next();
}

// The size of `make soak`.
static bool full() { return getenv("MR_FULL") != nullptr; }

TEST_GROUP(NicTop){};

// One frame at a time: the next is sent when nothing of the last is on its way any more.
static void one_by_one(Pair &p, Traffic &t, unsigned frames) {
    for (unsigned k = 0; k < frames; k++) {
        int source;
        const Bytes f = t.next(source);
        p.send(source, f);
        for (int port = 0; port < 2; port++)
            for (const Bytes &sent : p.golden.out.port[port])
                t.saw(sent);
        p.rtl.settle();
        p.compare(("after frame " + std::to_string(k) + " from " + std::to_string(source) + ", " +
                   Pair::text_of(f))
                      .c_str());
    }
    p.compare_counters("at the end");
    p.compare_memory();
}

TEST(NicTop, every_kind_of_frame_one_by_one) {
    const uint64_t seed = fresh();
    for (unsigned rank : {2u, 0u}) {
        const World w = usual_world(rank);
        Pair p(seed + rank, w);
        Traffic t(seed + 1 + rank, w);
        one_by_one(p, t, full() ? 50000 : 700);
    }
}

TEST(NicTop, a_chain_passes_on_what_is_not_its_own) {
    const uint64_t seed = fresh();
    World w = usual_world(2);
    w.chain = true;
    Pair p(seed, w);
    Traffic t(seed + 1, w);
    t.damage = 40;
    one_by_one(p, t, full() ? 20000 : 200);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
