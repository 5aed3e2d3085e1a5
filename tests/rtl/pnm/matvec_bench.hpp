// The matrix side with its banks on a bench, and random work for it. Every command to the banks
// goes to the checker of DRAM traces.
#ifndef MR_TESTS_RTL_PNM_MATVEC_BENCH_HPP
#define MR_TESTS_RTL_PNM_MATVEC_BENCH_HPP

#include "Vmatvec_tb.h"
#include "pnm_bench.hpp"

#include "models/cycle/dram_check.h"

namespace pnm {

struct Trace {
    mr_dram_config part;
    mr_dram_check *check;
    Trace() {
        char error[256];
        if (!mr_dram_load("models/cycle/dram/m3d.json", &part, error, sizeof error))
            FAIL(error);
        check = mr_dram_check_create(&part, 1);
    }
    ~Trace() { mr_dram_check_destroy(check); }
    Trace(const Trace &) = delete;
    void again() {
        mr_dram_check_destroy(check);
        check = mr_dram_check_create(&part, 1);
    }
    void command(const mr_dram_command &c) {
        if (const char *wrong = mr_dram_check_command(check, &c))
            FAIL(wrong);
    }
};

struct MatvecBench : Bench<Vmatvec_tb> {
    Trace trace;
    uint64_t reads = 0, begun = 0;
    Scratch<Vmatvec_tb> scratch;
    uint64_t took = 0, stream = 0, products = 0;
    bool nonfinite = false, range = false;
    explicit MatvecBench(uint64_t noise) : Bench(noise) {
        top->start_i = 0;
        top->back_we_i = 0;
        restart();
    }
    void restart() {
        reset();
        trace.again();
        begun = cycles;
    }
    void watch() { // after the inputs have settled, before the edge
        if (!top->cmd_valid_o)
            return;
        reads += top->cmd_o == MR_DRAM_RD;
        trace.command(
            {cycles - begun, 0, top->cmd_o, top->cmd_banks_o, top->cmd_row_o, top->cmd_col_o});
    }
    // A column of the four banks.
    void fill(unsigned col, const uint16_t codes[4][16]) {
        top->back_we_i = 1;
        top->back_col_i = col;
        memcpy(top->back_data_i.data(), codes, 128);
        top->rd_ready_i = top->wr_ready_i = 0;
        top->clk_i = 0;
        settle();
        watch();
        tick();
        top->back_we_i = 0;
    }
    void run(const Desc &d, Rng &rng, unsigned give_up = 0) {
        memcpy(top->desc_i.data(), d.bytes, sizeof d.bytes);
        const uint64_t from = cycles;
        stream = products = reads = 0;
        nonfinite = range = false;
        for (top->start_i = 1;; top->start_i = 0) {
            scratch.before(top.get(), rng);
            top->clk_i = 0;
            settle();
            watch();
            scratch.after(top.get());
            stream += top->stream_o;
            products += 64 * top->product_o;
            nonfinite |= top->nonfinite_o;
            range |= top->range_o;
            const bool done = top->done_o;
            tick();
            if (done || (give_up && cycles - from >= give_up))
                break;
            if (cycles - from > 2000000)
                FAIL("the matrix side does not come to an end");
        }
        took = cycles - from;
        CHECK_FALSE(fired());
    }
};

inline uint16_t code(Rng &rng, unsigned odd) { return mr_pnm_bf16(operand(rng, odd)); }

inline Desc random_matvec(Rng &rng, unsigned &columns) {
    Desc d(MR_PNM_DESC_MATVEC);
    static const unsigned usual[] = {1, 2, 4, 8, 3, 36};
    const unsigned kc = rng.percent(10)   ? 40 + (unsigned)rng.below(217)
                        : rng.percent(70) ? usual[rng.below(6)]
                                          : 1 + (unsigned)rng.below(40);
    const unsigned outputs = 16 * (1 + (unsigned)rng.below(kc > 40 ? 1 : 4));
    unsigned vectors = rng.percent(30) ? 1 : 1 + (unsigned)rng.below(rng.percent(20) ? 64 : 9);
    const unsigned most = kc > 40 ? 1024 : 300;
    if (vectors * kc > most)
        vectors = most / kc;
    columns = outputs / 4 * kc;
    PUT(d, MATVEC_BIAS, rng.below(2));
    PUT(d, MATVEC_ACCUM, rng.below(2));
    PUT(d, MATVEC_RELU, rng.below(2));
    PUT(d, MATVEC_MODE, rng.below(3));
    PUT(d, MATVEC_LOG_LENGTH, 2 + rng.below(7));
    PUT(d, MATVEC_WEXP, rng.percent(80) ? 131 : 100 + rng.below(154));
    PUT(d, MATVEC_COL, rng.below(MR_PNM_COLUMNS - columns));
    PUT(d, MATVEC_KC, kc);
    PUT(d, MATVEC_OUTPUTS, outputs);
    PUT(d, MATVEC_VECTORS, vectors);
    const unsigned run = rng.percent(50) ? kc : 1 + (unsigned)rng.below(kc);
    const int jump = run == kc ? 0 : (int)rng.below(12),
              stride = (int)rng.below(9) * (rng.percent(30) ? -1 : 1);
    PUT(d, MATVEC_X, 700 + (stride < 0 ? 600 : 0));
    PUT(d, MATVEC_X_RUN, run);
    PUT(d, MATVEC_X_JUMP, jump);
    PUT(d, MATVEC_X_STRIDE, stride);
    const int y_stride = (int)outputs / 16 + (int)rng.below(4);
    // at times among the activations
    const unsigned y = rng.percent(40) ? 690 + (unsigned)rng.below(30) : 3000;
    PUT(d, MATVEC_Y, y);
    PUT(d, MATVEC_Y_STRIDE, y_stride);
    PUT(d, MATVEC_BIAS_ROW, rng.below(100));
    const bool in_place = rng.percent(50);
    PUT(d, MATVEC_OLD, in_place ? y : 150);
    PUT(d, MATVEC_OLD_STRIDE, in_place ? y_stride : rng.percent(50) ? 0 : (int)rng.below(6));
    return d;
}

} // namespace pnm
#endif
