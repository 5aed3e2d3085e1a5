// Rates and latencies of the merge engine, as the documentation states them, and what it costs to
// simulate.
#include "Vmerge_tb.h"
#include "merge_model.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <verilated.h>

using namespace merge;

namespace {

struct random_source { // splitmix64
    uint64_t state = 1;
    uint64_t next() {
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t n) { return next() % n; }
    bool percent(unsigned p) { return below(100) < p; }
};

struct model {
    VerilatedContext context;
    std::unique_ptr<Vmerge_tb> top;
    uint64_t cycles = 0;
    model() {
        context.fatalOnError(false);
        top = std::make_unique<Vmerge_tb>(&context, "tb");
        top->rst_ni = 0;
        for (int k = 0; k < 3; k++)
            tick();
        top->rst_ni = 1;
    }
    void settle() { top->eval(); }
    void tick() {
        top->clk_i = 0;
        top->eval();
        top->clk_i = 1;
        top->eval();
        cycles++;
    }
    bool fired() {
        const bool error = context.gotError();
        context.gotError(false);
        return error;
    }
};

struct shape {
    const char *name;
    bool reduce;
    unsigned dtype, heads, dim, parts, slots;
};

} // namespace

int main() {
    const shape shapes[] = {
        {"PARTIAL bf16 32 x 128, 8 slots", false, BF16, 32, 128, 4, 8},
        {"PARTIAL bf16 32 x 128, 1 slot", false, BF16, 32, 128, 4, 1},
        {"PARTIAL fp32 8 x 128, 8 slots", false, FP32, 8, 128, 4, 8},
        {"PARTIAL bf16 893 x 1, 8 slots", false, BF16, 893, 1, 4, 8},
        {"PARTIAL bf16 1 x 64, 64 slots", false, BF16, 1, 64, 8, 64},
        {"PARTIAL bf16 1 x 64, 1 slot", false, BF16, 1, 64, 8, 1},
        {"REDUCE bf16 4484, 8 slots", true, BF16, 1, 4484, 4, 8},
        {"REDUCE int32 2242, 8 slots", true, INT32, 1, 2242, 4, 8},
        {"REDUCE bf16 32, 64 slots", true, BF16, 1, 32, 8, 64},
    };
    printf("\nmerge engine, payload at byte 74 of its frame, first fetched beat 2 cycles after its "
           "command\n");
    printf("| contributions | payload beats | cycles | source beats a cycle | values a cycle | "
           "result after the last "
           "one is taken |\n|---|---:|---:|---:|---:|---|\n");
    random_source random;
    for (const shape &s : shapes) {
        std::vector<operation> ops;
        uint64_t values = 0, payload_beats = 0;
        while (payload_beats < 20000 || ops.size() < 3 * s.slots) {
            operation o;
            o.reduce = s.reduce;
            o.dtype = s.dtype;
            o.heads = s.heads;
            o.dim = s.dim;
            for (unsigned k = 0; k < s.parts; k++) {
                contribution c;
                c.payload.resize(o.bytes());
                for (uint8_t &byte : c.payload)
                    byte = (uint8_t)(random.next() & 0x3F); // finite in every format
                o.parts.push_back(c);
                payload_beats += o.beats();
                values += (uint64_t)s.heads * s.dim;
            }
            ops.push_back(o);
        }
        model m;
        engine<model, random_source> e(m, random);
        options opt;
        opt.slots = s.slots;
        opt.offset = 74;
        e.run(ops, opt);
        const figures f = e.seen;
        // one operation at a time, to see how long its result takes
        ops.resize(3);
        opt.slots = 1;
        opt.one_by_one = true;
        engine<model, random_source> quiet(m, random);
        quiet.run(ops, opt);
        if (!e.problem.empty() || !quiet.problem.empty()) {
            printf("%s: %s%s\n", s.name, e.problem.c_str(), quiet.problem.c_str());
            return 1;
        }
        printf("| %s | %llu | %llu | %.3f | %.2f | payload beats + %lld |\n", s.name,
               (unsigned long long)f.payload_beats, (unsigned long long)f.cycles,
               (double)f.source_beats / (double)f.cycles, (double)values / (double)f.cycles,
               (long long)quiet.seen.slack);
    }
    model m; // simulation speed: at rest
    m.top->fold_valid_i = m.top->fetch_valid_i = m.top->cmd_ready_i = m.top->res_rd_en_i = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 200000; k++)
        m.tick();
    const double rest =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 200000;
    printf("\nsimulation: %.2f us a cycle at rest\n", rest * 1e6);
    return 0;
}
