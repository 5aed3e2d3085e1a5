// Random programs of all ten descriptors over four groups.
#ifndef MR_TESTS_RTL_PNM_TOP_PROGRAM_HPP
#define MR_TESTS_RTL_PNM_TOP_PROGRAM_HPP

#include "chip.hpp"

namespace pnm {

// A program uses rows [low, low + TOP): WORK rows to compute with, then a mailbox a sender.
enum { WORK = 1024, BOX = 64, TOP = WORK + MR_PNM_GROUPS * BOX, COLUMNS_USED = 640 };

class Maker {
public:
    Maker(Rng &rng, uint64_t base) : rng_(rng), base_(base) {}

    Bytes image() {
        Bytes b(BYTES);
        for (uint64_t i = 0; i < INPUT_BYTES / 4; i++) {
            uint32_t w = operand(rng_, 1);
            if (i >= INPUT_BYTES / 8) // two bf16 codes
                w = (operand(rng_, 1) & 0xFFFF0000) | operand(rng_, 1) >> 16;
            memcpy(&b[INPUT_AT + 4 * i], &w, 4);
        }
        return b;
    }

    // Every row and column it reads has been loaded by itself, so what was there before, be it
    // noise, is not seen; exponent registers alone go from job to job.
    Program program(unsigned phases) {
        Program p;
        low_ = below(MR_PNM_SCRATCH_ROWS - TOP + 1);
        tiers_[0] = below(MR_PNM_TIERS);
        tiers_[1] = below(MR_PNM_TIERS);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            p.add(g, transfer(MR_PNM_DESC_LOAD, TOP, low_, input(g)));
            for (unsigned t : tiers_)
                p.add(g, transfer(MR_PNM_DESC_WLOAD, COLUMNS_USED, column(t, 0), input(t * 7 + g)));
        }
        for (unsigned k = 0; k < phases; k++)
            phase(p);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            p.add(g, transfer(MR_PNM_DESC_STORE, TOP, low_, output(g) + OUT_BYTES / 2));
        return p;
    }

    // The same without what the golden model refuses; overlap only where it is true.
    Program sound(const Chip &chip, unsigned phases, const Bytes &image) {
        Program p = program(phases);
        for (;;) {
            const mr_pnm_result r = chip.probe(p, image);
            if (r.outcome == MR_PNM_DEADLOCK)
                FAIL("the program waits for ever");
            if (r.outcome == MR_PNM_FAILED) { // the list keeps its length: a loop's target stays
                Desc little(MR_PNM_DESC_VEC);
                PUT(little, VEC_COUNT, 1);
                PUT(little, VEC_A, low_);
                PUT(little, VEC_D, low_);
                p.list[r.group][r.index] = PUT(little, VEC_WIDTH, 1);
            } else if (r.hazard) {
                PUT(p.list[r.hazard_group][r.hazard_index], VEC_OVERLAP, 0);
            } else {
                return p;
            }
        }
    }

    Desc matvec() {
        Desc d(MR_PNM_DESC_MATVEC);
        const unsigned kc = 1 + below(percent(20) ? 24 : 6), n = 1 + below(percent(20) ? 12 : 4),
                       m = 16 * (1 + below(4)), stride = m / 16 + below(3);
        PUT(d, MATVEC_OVERLAP, percent(40));
        PUT(d, MATVEC_BIAS, percent(40));
        PUT(d, MATVEC_ACCUM, percent(40));
        PUT(d, MATVEC_RELU, percent(30));
        const bool wreg = percent(20);
        PUT(d, MATVEC_USE_WREG, wreg);
        PUT(d, MATVEC_WEXP, wreg ? below(4) : percent(20) ? below(64) : 140);
        PUT(d, MATVEC_MODE, below(3));
        PUT(d, MATVEC_LOG_LENGTH, 2 + below(7));
        PUT(d, MATVEC_COL, column(tiers_[below(2)], below(200)));
        PUT(d, MATVEC_KC, kc);
        PUT(d, MATVEC_OUTPUTS, m);
        PUT(d, MATVEC_VECTORS, n);
        PUT(d, MATVEC_X, low_ + below(TOP / 2));
        PUT(d, MATVEC_X_STRIDE, below(kc + 4));
        PUT(d, MATVEC_X_RUN, 1 + below(kc + 1));
        PUT(d, MATVEC_X_JUMP, below(20));
        // y may lie on x; old is y or apart from it, as is bias
        const unsigned y = low_ + 500 + below(400);
        const bool in_place = percent(50);
        PUT(d, MATVEC_Y, y);
        PUT(d, MATVEC_Y_STRIDE, stride);
        PUT(d, MATVEC_BIAS_ROW, low_ + below(400));
        PUT(d, MATVEC_OLD, in_place ? y : low_ + below(400));
        PUT(d, MATVEC_OLD_STRIDE, in_place ? stride : below(6));
        return d;
    }
    Desc wstore() {
        Desc d(MR_PNM_DESC_WSTORE);
        const bool transposed = percent(50);
        const unsigned kc = 1 + below(4);
        PUT(d, WSTORE_OVERLAP, percent(40));
        PUT(d, WSTORE_TRANSPOSED, transposed);
        PUT(d, WSTORE_RESET, percent(50));
        PUT(d, WSTORE_WREG, below(4));
        PUT(d, WSTORE_COL, column(tiers_[below(2)], below(200)));
        PUT(d, WSTORE_KC, kc);
        PUT(d, WSTORE_LENGTH, transposed ? 16 * (1 + below(4)) : 16 * kc);
        PUT(d, WSTORE_VECTORS, 1 + below(12));
        PUT(d, WSTORE_X, low_ + below(TOP - 200));
        PUT(d, WSTORE_X_STRIDE, below(6));
        PUT(d, WSTORE_FIRST, below(transposed ? 4 : 20));
        return d;
    }
    Desc vec() {
        Desc d(MR_PNM_DESC_VEC);
        const unsigned width = 1 + below(4), stride = width + below(3);
        const bool in_place = percent(30);
        const unsigned a = low_ + below(in_place ? WORK - 250 : 450);
        PUT(d, VEC_OVERLAP, percent(40));
        PUT(d, VEC_FN, below(4));
        PUT(d, VEC_MUL, below(in_place ? 2 : 4));
        PUT(d, VEC_ADD, below(in_place ? 2 : 4));
        PUT(d, VEC_NEG_MUL, below(2));
        PUT(d, VEC_NEG_ADD, below(2));
        PUT(d, VEC_REDUCE, in_place || percent(60) ? 0 : 1 + below(2));
        PUT(d, VEC_COUNT, 1 + below(percent(20) ? 30 : 6));
        PUT(d, VEC_WIDTH, width);
        PUT(d, VEC_A, a);
        PUT(d, VEC_A_STRIDE, stride);
        PUT(d, VEC_B, low_ + below(450));
        PUT(d, VEC_B_STRIDE, below(6));
        PUT(d, VEC_C, low_ + below(450));
        PUT(d, VEC_C_STRIDE, below(6));
        PUT(d, VEC_D, in_place ? a : low_ + 700 + below(100));
        PUT(d, VEC_D_STRIDE, stride);
        PUT(d, VEC_IMM_M, operand(rng_, 3));
        PUT(d, VEC_IMM_C, operand(rng_, 3));
        return d;
    }

private:
    unsigned below(unsigned n) { return (unsigned)rng_.below(n); }
    bool percent(unsigned p) { return rng_.percent(p); }
    unsigned column(unsigned tier, unsigned at) const {
        return tier * MR_PNM_TIER_ROWS * MR_PNM_ROW_COLUMNS + at;
    }
    uint64_t input(unsigned row) const { return base_ + INPUT_AT + 64 * row; }
    uint64_t output(unsigned g) const { return base_ + OUT_AT + (uint64_t)g * OUT_BYTES; }

    Desc work(unsigned g) {
        const unsigned step = 64 * below(8);
        switch (below(10)) {
        case 0:
            return transfer(MR_PNM_DESC_LOAD, 1 + below(60), low_ + below(WORK - 60),
                            input(below(500)), step);
        case 1:
            return transfer(MR_PNM_DESC_STORE, 1 + below(60), low_ + below(TOP - 60),
                            output(g) + 64 * below(1000), step);
        case 2:
            return transfer(MR_PNM_DESC_WLOAD, 1 + below(100), column(tiers_[below(2)], below(300)),
                            input(below(1000)), step);
        case 3:
            return wstore();
        case 4:
        case 5:
        case 6:
            return matvec();
        default:
            return vec();
        }
    }
    // Work, a barrier (nobody sends into a mailbox that is still read), a row of letters.
    void phase(Program &p) {
        unsigned shift = below(MR_PNM_GROUPS);
        const bool pairs = percent(50);
        if (pairs)
            shift &= 2;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const size_t first = p.list[g].size();
            for (unsigned n = 1 + below(6); n > 0; n--)
                p.add(g, work(g));
            if (percent(40)) {
                Desc d(MR_PNM_DESC_LOOP);
                PUT(d, LOOP_TARGET, (int64_t)first);
                p.add(g, PUT(d, LOOP_COUNT, 1 + below(3)));
            }
            Desc d(MR_PNM_DESC_BARRIER);
            p.add(g, PUT(d, BARRIER_GROUPS, !pairs ? 15 : g % 2 ? 10 : 5));
        }
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const unsigned to = (g + shift) % MR_PNM_GROUPS, rows = below(BOX + 1);
            Desc send(MR_PNM_DESC_SEND), wait(MR_PNM_DESC_WAIT);
            PUT(send, SEND_GROUP, to);
            PUT(send, SEND_SEM, g);
            PUT(send, SEND_ROWS, rows);
            PUT(send, SEND_ROW, low_ + below(WORK - BOX));
            p.add(g, PUT(send, SEND_TO, low_ + WORK + BOX * g + below(BOX + 1 - rows)));
            PUT(wait, WAIT_SEM, (g + MR_PNM_GROUPS - shift) % MR_PNM_GROUPS);
            p.add(g, PUT(wait, WAIT_COUNT, 1));
        }
    }

    Rng &rng_;
    uint64_t base_;
    unsigned low_ = 0, tiers_[2] = {0, 0};
};

} // namespace pnm
#endif
