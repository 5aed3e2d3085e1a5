// The matrix side against the golden model: random MATVEC and WSTORE over operands of every kind.
#include "Vmatvec_tb.h"
#include "pnm_bench.hpp"

using namespace pnm;

namespace {

struct MatvecBench : Bench<Vmatvec_tb> {
    Scratch<Vmatvec_tb> scratch;
    uint64_t took = 0, stream = 0, products = 0;
    bool nonfinite = false, range = false;
    explicit MatvecBench(uint64_t noise) : Bench(noise) {
        top->start_i = 0;
        top->back_we_i = 0;
        reset();
    }
    // A column of the four banks.
    void fill(unsigned col, const uint16_t codes[4][16]) {
        top->back_we_i = 1;
        top->back_col_i = col;
        memcpy(top->back_data_i.data(), codes, 128);
        top->rd_ready_i = top->wr_ready_i = 0;
        tick();
        top->back_we_i = 0;
    }
    void run(const Desc &d, Rng &rng, unsigned give_up = 0) {
        memcpy(top->desc_i.data(), d.bytes, sizeof d.bytes);
        const uint64_t from = cycles;
        stream = products = 0;
        nonfinite = range = false;
        for (top->start_i = 1;; top->start_i = 0) {
            scratch.before(top.get(), rng);
            top->clk_i = 0;
            settle();
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
    }
};

uint16_t code(Rng &rng, unsigned odd) { return mr_pnm_bf16(operand(rng, odd)); }

void fill(MatvecBench &b, Golden &golden, Rng &rng, unsigned col, unsigned columns, unsigned odd) {
    for (unsigned c = col; c < col + columns; c++) {
        uint16_t codes[4][16];
        for (unsigned pe = 0; pe < 4; pe++)
            for (unsigned l = 0; l < 16; l++)
                mr_pnm_chip_column(golden.chip, 0, pe, c)[l] = codes[pe][l] = code(rng, odd);
        b.fill(c, codes);
    }
}

Desc random_matvec(Rng &rng, unsigned &columns) {
    Desc d(MR_PNM_DESC_MATVEC);
    static const unsigned usual[] = {1, 2, 4, 8, 3, 36};
    const unsigned kc = rng.percent(70) ? usual[rng.below(6)] : 1 + (unsigned)rng.below(40);
    const unsigned outputs = 16 * (1 + (unsigned)rng.below(4));
    unsigned vectors = rng.percent(30) ? 1 : 1 + (unsigned)rng.below(rng.percent(20) ? 64 : 9);
    if (vectors * kc > 300)
        vectors = 300 / kc;
    columns = outputs / 4 * kc;
    PUT(d, MATVEC_BIAS, rng.below(2));
    PUT(d, MATVEC_ACCUM, rng.below(2));
    PUT(d, MATVEC_RELU, rng.below(2));
    PUT(d, MATVEC_MODE, rng.below(3));
    PUT(d, MATVEC_LOG_LENGTH, 2 + rng.below(7));
    PUT(d, MATVEC_WEXP, rng.percent(90) ? 131 : 100 + rng.below(154));
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
    PUT(d, MATVEC_Y, 3000);
    PUT(d, MATVEC_Y_STRIDE, y_stride);
    PUT(d, MATVEC_BIAS_ROW, rng.below(100));
    const bool in_place = rng.percent(50);
    PUT(d, MATVEC_OLD, in_place ? 3000 : 200);
    PUT(d, MATVEC_OLD_STRIDE, in_place ? y_stride : rng.percent(50) ? 0 : (int)rng.below(6));
    return d;
}

void compare(const MatvecBench &b, Golden &golden, int n, const Desc &d) {
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            if (b.scratch.words[r * 16 + w] != golden.row(r)[w]) {
                char text[200];
                snprintf(text, sizeof text,
                         "descriptor %d: row %u word %u: %08X, golden %08X (kc %d m %d n %d mode "
                         "%d log %d flags %d)",
                         n, r, w, b.scratch.words[r * 16 + w], golden.row(r)[w],
                         (int)d.get(MR_PNM_D_MATVEC_KC_LSB, 16),
                         (int)d.get(MR_PNM_D_MATVEC_OUTPUTS_LSB, 16),
                         (int)d.get(MR_PNM_D_MATVEC_VECTORS_LSB, 16), (int)d.get(16, 2),
                         (int)d.get(20, 4), (int)d.get(8, 8));
                FAIL(text);
            }
}

void noise(MatvecBench &b, Golden &golden, Rng &rng, unsigned odd) {
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            golden.row(r)[w] = b.scratch.words[r * 16 + w] = operand(rng, odd);
}

} // namespace

TEST_GROUP(Matvec){};

TEST(Matvec, RandomDescriptorsAreTheGoldenModels) {
    Rng rng(run_seed());
    MatvecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 120; n++) {
        const unsigned odd = n % 4 == 0 ? 2 : 0;
        unsigned columns;
        const Desc d = random_matvec(rng, columns);
        noise(b, golden, rng, odd);
        fill(b, golden, rng, (unsigned)d.get(MR_PNM_D_MATVEC_COL_LSB, 16), columns, odd);
        b.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        if (rng.percent(5)) { // stopped on the way: the next one runs as ever
            const Rows before = b.scratch.words;
            b.run(d, rng, 1 + (unsigned)rng.below(200));
            b.reset();
            b.scratch.answer = false;
            b.scratch.words = before;
        }
        golden.run(d);
        b.run(d, rng);
        compare(b, golden, n, d);
        CHECK_EQUAL(golden.result.products, b.products);
        CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_NONFINITE) != 0, b.nonfinite);
        CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_RANGE) != 0, b.range);
    }
}

// What WSTORE wrote is what a MATVEC with the register's exponent multiplies by.
TEST(Matvec, StoredWeights) {
    Rng rng(run_seed() + 1);
    MatvecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 60; n++) {
        const bool transposed = rng.percent(50);
        const unsigned kc = 1 + (unsigned)rng.below(5), outputs = 16 * (1 + (unsigned)rng.below(4));
        const unsigned col = (unsigned)rng.below(MR_PNM_COLUMNS - outputs / 4 * kc),
                       wreg = (unsigned)rng.below(64);
        noise(b, golden, rng, 1);
        fill(b, golden, rng, col, outputs / 4 * kc, 0);
        b.scratch.stall = (unsigned)rng.below(60);
        for (int pass = 0; pass < 2; pass++) {
            Desc d(MR_PNM_DESC_WSTORE);
            const unsigned length = transposed ? outputs : 16 * kc,
                           all = transposed ? 16 * kc : outputs;
            const unsigned first = (unsigned)rng.below(all);
            PUT(d, WSTORE_TRANSPOSED, transposed);
            PUT(d, WSTORE_RESET, pass == 0);
            PUT(d, WSTORE_WREG, wreg);
            PUT(d, WSTORE_COL, col);
            PUT(d, WSTORE_KC, kc);
            PUT(d, WSTORE_LENGTH, length);
            PUT(d, WSTORE_VECTORS, 1 + rng.below(all - first));
            PUT(d, WSTORE_X, 1000);
            PUT(d, WSTORE_X_STRIDE, (int)rng.below(7) - 3);
            PUT(d, WSTORE_FIRST, first);
            golden.run(d);
            b.run(d, rng);
        }
        Desc d(MR_PNM_DESC_MATVEC);
        PUT(d, MATVEC_USE_WREG, 1);
        PUT(d, MATVEC_WEXP, wreg);
        PUT(d, MATVEC_LOG_LENGTH, 2 + rng.below(7));
        PUT(d, MATVEC_COL, col);
        PUT(d, MATVEC_KC, kc);
        PUT(d, MATVEC_OUTPUTS, outputs);
        PUT(d, MATVEC_VECTORS, 3);
        PUT(d, MATVEC_X, 500);
        PUT(d, MATVEC_X_STRIDE, 5);
        PUT(d, MATVEC_X_RUN, kc);
        PUT(d, MATVEC_Y, 3000);
        PUT(d, MATVEC_Y_STRIDE, 5);
        golden.run(d);
        b.run(d, rng);
        compare(b, golden, n, d);
    }
}

// The multipliers' share of the time, with weights in the fastest tier.
TEST(Matvec, KeepsItsMultipliersBusy) {
    Rng rng(1);
    MatvecBench b(rng.next());
    Golden golden;
    printf("%6s %4s %4s %8s %8s\n", "K", "M", "N", "cycles", "in use");
    for (unsigned kc : {4u, 16u, 64u})
        for (unsigned vectors : {1u, 8u, 16u}) {
            Desc d(MR_PNM_DESC_MATVEC);
            PUT(d, MATVEC_LOG_LENGTH, 4);
            PUT(d, MATVEC_WEXP, 131);
            PUT(d, MATVEC_KC, kc);
            PUT(d, MATVEC_OUTPUTS, 64);
            PUT(d, MATVEC_VECTORS, vectors);
            PUT(d, MATVEC_X_STRIDE, kc);
            PUT(d, MATVEC_X_RUN, kc);
            PUT(d, MATVEC_Y, 3000);
            PUT(d, MATVEC_Y_STRIDE, 4);
            noise(b, golden, rng, 0);
            fill(b, golden, rng, 0, 16 * kc, 0);
            b.run(d, rng);
            printf("%6u %4u %4u %8llu %7.1f%%\n", kc * 16, 64, vectors, (unsigned long long)b.took,
                   100.0 * (double)b.stream / (double)b.took);
            CHECK_EQUAL(16u * kc * vectors, b.stream);
            if (kc >= 16 && vectors >= 16) // long rows, each used sixteen times
                CHECK(10 * b.stream >= 9 * b.took);
        }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
