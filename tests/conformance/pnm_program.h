/* Random programs of the near-memory unit's ten descriptors over its four groups. */
#ifndef TESTS_CONFORMANCE_PNM_PROGRAM_H
#define TESTS_CONFORMANCE_PNM_PROGRAM_H

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "models/golden/pnm.h"

namespace pnm {

typedef std::array<uint8_t, MR_PNM_DESC_BYTES> Desc;
typedef std::vector<uint8_t> Bytes;

inline void put(Desc &d, unsigned lsb, unsigned bits, int64_t value) {
    for (unsigned i = 0; i < bits; i++) {
        uint8_t bit = uint8_t(1u << (lsb + i) % 8);
        uint8_t &byte = d[(lsb + i) / 8];
        byte = value >> i & 1 ? byte | bit : byte & uint8_t(~bit);
    }
}
#define PNM_PUT(d, name, value)                                                                    \
    pnm::put(d, MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS, int64_t(value))

inline Desc desc(unsigned type) {
    Desc d = {};
    d[0] = uint8_t(type);
    return d;
}

/* LOAD, STORE or WLOAD. */
inline Desc transfer(unsigned type, uint64_t rows, uint64_t row, uint64_t addr, uint64_t step = 0) {
    Desc d = desc(type);
    PNM_PUT(d, LOAD_ROWS, rows);
    PNM_PUT(d, LOAD_ROW, row);
    PNM_PUT(d, LOAD_ADDR, addr);
    PNM_PUT(d, LOAD_STEP, step);
    return d;
}
inline Desc send(unsigned to, unsigned sem, unsigned rows, unsigned row, unsigned to_row) {
    Desc d = desc(MR_PNM_DESC_SEND);
    PNM_PUT(d, SEND_GROUP, to);
    PNM_PUT(d, SEND_SEM, sem);
    PNM_PUT(d, SEND_ROWS, rows);
    PNM_PUT(d, SEND_ROW, row);
    PNM_PUT(d, SEND_TO, to_row);
    return d;
}
inline Desc wait(unsigned sem, unsigned count) {
    Desc d = desc(MR_PNM_DESC_WAIT);
    PNM_PUT(d, WAIT_SEM, sem);
    PNM_PUT(d, WAIT_COUNT, count);
    return d;
}
inline Desc barrier(unsigned groups) {
    Desc d = desc(MR_PNM_DESC_BARRIER);
    PNM_PUT(d, BARRIER_GROUPS, groups);
    return d;
}
inline Desc loop(uint64_t target, uint64_t count) {
    Desc d = desc(MR_PNM_DESC_LOOP);
    PNM_PUT(d, LOOP_TARGET, target);
    PNM_PUT(d, LOOP_COUNT, count);
    return d;
}
/* What stands for a descriptor that was refused; a LOOP would begin the loop around it anew. */
inline Desc row_onto_itself() {
    Desc d = desc(MR_PNM_DESC_VEC);
    PNM_PUT(d, VEC_COUNT, 1);
    PNM_PUT(d, VEC_WIDTH, 1);
    return d;
}

/* Where things lie in a job's memory, from the first list on. */
enum : uint64_t {
    LIST_BYTES = 0x8000,
    INPUT_AT = MR_PNM_GROUPS * LIST_BYTES,
    INPUT_BYTES = 0x30000,
    OUT_AT = INPUT_AT + INPUT_BYTES,
    OUT_BYTES = 0x40000, /* a group: what it stores, then its rows at the end */
    BYTES = OUT_AT + MR_PNM_GROUPS * OUT_BYTES
};
/* Rows to compute with, then a mailbox a sender. */
enum : unsigned { WORK = 1024, BOX = 64, TOP = WORK + MR_PNM_GROUPS * BOX, COLUMNS_USED = 512 };

struct Program {
    std::vector<Desc> list[MR_PNM_GROUPS];
    void add(unsigned g, const Desc &d) { list[g].push_back(d); }
    void write(Bytes &image) const {
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            for (size_t i = 0; i < list[g].size(); i++)
                memcpy(&image[g * LIST_BYTES + i * MR_PNM_DESC_BYTES], list[g][i].data(),
                       MR_PNM_DESC_BYTES);
    }
};

/*
 * Programs for memory at address `base`. Strict ones keep to what every unit does alike: the rows
 * that a descriptor writes are not those that it reads, or the very same in the same order. Others
 * write all over what they read, where the order of the golden model alone decides.
 */
class Maker {
public:
    Maker(std::mt19937_64 &rng, uint64_t base, bool strict, bool wide)
        : rng_(rng), base_(base), strict_(strict), wide_(wide) {}

    unsigned below(unsigned n) { return unsigned(rng_() % n); }
    bool percent(unsigned p) { return below(100) < p; }

    /* Mostly numbers near 1, now and then something odd. */
    uint32_t word(unsigned odd) {
        static const uint32_t special[] = {0,          0x80000000, 1,          0x80000001,
                                           0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000,
                                           0xFF800000, 0x7F800001, 0xFFC12345, 0x3F800000};
        if (percent(odd))
            return percent(50) ? special[below(12)] : uint32_t(rng_());
        return below(2) << 31 | (120 + below(12)) << 23 | below(1 << 23);
    }

    /* odd: how many in a hundred words are odd; columns with one give few finite sums */
    Bytes image(unsigned odd) {
        Bytes b(BYTES);
        for (uint64_t i = 0; i < INPUT_BYTES / 4; i++) {
            uint32_t w = word(odd);
            if (!wide_ && i >= INPUT_BYTES / 8) /* two bf16 codes */
                w = (word(odd) & 0xFFFF0000) | word(odd) >> 16;
            memcpy(&b[INPUT_AT + 4 * i], &w, 4);
        }
        return b;
    }

    Program program(unsigned phases) {
        Program p;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            p.add(g, transfer(MR_PNM_DESC_LOAD, TOP, 0, input(g)));
            for (unsigned t = 0; t < 2; t++)
                p.add(g, transfer(MR_PNM_DESC_WLOAD, COLUMNS_USED, column(t, 0), input(t * 7 + g)));
        }
        for (unsigned k = 0; k < phases; k++)
            phase(p);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            p.add(g, transfer(MR_PNM_DESC_STORE, TOP, 0, output(g) + OUT_BYTES / 2));
        return p;
    }

    Desc work(unsigned g) {
        const unsigned step = 64 * below(8);
        switch (below(strict_ ? 10 : 11)) {
        case 0:
            return transfer(MR_PNM_DESC_LOAD, 1 + below(60), below(WORK - 60), input(below(500)),
                            step);
        case 1:
            return transfer(MR_PNM_DESC_STORE, 1 + below(60), below(TOP - 60),
                            output(g) + 64 * below(1000), step);
        case 2:
            return transfer(MR_PNM_DESC_WLOAD, 1 + below(100), column(below(2), below(300)),
                            input(below(1000)), step);
        case 3:
            return wstore();
        case 4:
        case 5:
        case 6:
            return matvec();
        case 10:
            return send(g, 7, below(40), below(WORK - 80), below(WORK - 80));
        default:
            return vec();
        }
    }

private:
    unsigned column(unsigned tier, unsigned at) const { return tier * 5 * 2048 + at; }
    uint64_t input(unsigned row) const { return base_ + INPUT_AT + 64 * row; }
    uint64_t output(unsigned g) const { return base_ + OUT_AT + g * OUT_BYTES; }
    int stride(unsigned most) {
        return strict_ || percent(70) ? int(below(most)) : int(below(2 * most)) - int(most);
    }

    Desc matvec() {
        Desc d = desc(MR_PNM_DESC_MATVEC);
        const unsigned kc = 1 + below(percent(20) ? 24 : 6), n = 1 + below(percent(20) ? 12 : 4),
                       m = 16 * (1 + below(4));
        const bool wreg = percent(20), in_place = percent(50);
        const unsigned y = strict_ ? 500 + below(400) : 200 + below(600);
        const int apart = strict_ ? int(m / 16 + below(3)) : stride(m / 16 + 3);
        PNM_PUT(d, MATVEC_OVERLAP, percent(40));
        PNM_PUT(d, MATVEC_BIAS, percent(40));
        PNM_PUT(d, MATVEC_ACCUM, percent(40));
        PNM_PUT(d, MATVEC_RELU, percent(30));
        PNM_PUT(d, MATVEC_USE_WREG, wreg);
        PNM_PUT(d, MATVEC_WEXP, wreg ? below(4) : percent(30) ? 110 + below(30) : 140);
        PNM_PUT(d, MATVEC_MODE, below(3));
        PNM_PUT(d, MATVEC_LOG_LENGTH, 2 + below(7));
        PNM_PUT(d, MATVEC_COL, column(below(2), below(200)));
        PNM_PUT(d, MATVEC_KC, kc);
        PNM_PUT(d, MATVEC_OUTPUTS, m);
        PNM_PUT(d, MATVEC_VECTORS, n);
        PNM_PUT(d, MATVEC_X, below(TOP / 2));
        PNM_PUT(d, MATVEC_X_STRIDE, stride(kc + 4));
        PNM_PUT(d, MATVEC_X_RUN, 1 + below(kc + 1));
        PNM_PUT(d, MATVEC_X_JUMP, stride(20));
        PNM_PUT(d, MATVEC_Y, y);
        PNM_PUT(d, MATVEC_Y_STRIDE, apart);
        PNM_PUT(d, MATVEC_BIAS_ROW, below(strict_ ? 400 : 900));
        PNM_PUT(d, MATVEC_OLD, in_place ? y : below(strict_ ? 400 : 900));
        PNM_PUT(d, MATVEC_OLD_STRIDE, in_place ? apart : stride(6));
        return d;
    }

    Desc wstore() {
        Desc d = desc(MR_PNM_DESC_WSTORE);
        const bool transposed = percent(50);
        const unsigned kc = 1 + below(4);
        PNM_PUT(d, WSTORE_OVERLAP, percent(40));
        PNM_PUT(d, WSTORE_TRANSPOSED, transposed);
        PNM_PUT(d, WSTORE_RESET, percent(50));
        PNM_PUT(d, WSTORE_WREG, below(4));
        PNM_PUT(d, WSTORE_COL, column(below(2), below(200)));
        PNM_PUT(d, WSTORE_KC, kc);
        PNM_PUT(d, WSTORE_LENGTH, transposed ? 16 * (1 + below(4)) : 16 * kc);
        PNM_PUT(d, WSTORE_VECTORS, 1 + below(12));
        PNM_PUT(d, WSTORE_X, below(TOP - 200));
        PNM_PUT(d, WSTORE_X_STRIDE, stride(6));
        PNM_PUT(d, WSTORE_FIRST, below(transposed ? 4 : 20));
        return d;
    }

    Desc vec() {
        Desc d = desc(MR_PNM_DESC_VEC);
        const unsigned width = 1 + below(4);
        const bool in_place = percent(30);
        const int apart = strict_ ? int(width + below(3)) : stride(width + 4);
        const unsigned a = below(in_place ? WORK - 250 : 450);
        PNM_PUT(d, VEC_OVERLAP, percent(40));
        PNM_PUT(d, VEC_FN, below(4));
        PNM_PUT(d, VEC_MUL, below(in_place && strict_ ? 2 : 4));
        PNM_PUT(d, VEC_ADD, below(in_place && strict_ ? 2 : 4));
        PNM_PUT(d, VEC_NEG_MUL, below(2));
        PNM_PUT(d, VEC_NEG_ADD, below(2));
        PNM_PUT(d, VEC_REDUCE, in_place || percent(60) ? 0 : 1 + below(2));
        PNM_PUT(d, VEC_COUNT, 1 + below(percent(20) ? 30 : 6));
        PNM_PUT(d, VEC_WIDTH, width);
        PNM_PUT(d, VEC_A, a);
        PNM_PUT(d, VEC_A_STRIDE, apart);
        PNM_PUT(d, VEC_B, below(450));
        PNM_PUT(d, VEC_B_STRIDE, stride(6));
        PNM_PUT(d, VEC_C, below(450));
        PNM_PUT(d, VEC_C_STRIDE, stride(6));
        PNM_PUT(d, VEC_D, in_place ? a : strict_ ? 700 + below(100) : below(800));
        PNM_PUT(d, VEC_D_STRIDE, in_place || percent(70) ? apart : stride(6));
        PNM_PUT(d, VEC_IMM_M, word(3));
        PNM_PUT(d, VEC_IMM_C, word(3));
        if (strict_) /* a constant apart keeps what is written from what was read */
            PNM_PUT(d, VEC_D_STRIDE, apart);
        if (percent(
                8)) { /* more scalars than a work group folds at once, apart from what is read */
            PNM_PUT(d, VEC_REDUCE, 1 + below(2));
            PNM_PUT(d, VEC_COUNT, 65 + below(86));
            PNM_PUT(d, VEC_A, below(100));
            PNM_PUT(d, VEC_A_STRIDE, width);
            PNM_PUT(d, VEC_B_STRIDE, below(2));
            PNM_PUT(d, VEC_C_STRIDE, below(2));
            PNM_PUT(d, VEC_D, 800 + below(100));
        }
        return d;
    }

    /* Work, a barrier (nobody sends into a mailbox that is still read), a row of letters. */
    void phase(Program &p) {
        const bool pairs = percent(50);
        const unsigned shift = pairs ? below(2) * 2 : below(4);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const size_t first = p.list[g].size();
            for (unsigned n = 1 + below(6); n > 0; n--)
                p.add(g, work(g));
            if (percent(40))
                p.add(g, loop(first, 1 + below(3)));
            p.add(g, barrier(!pairs ? 15 : g % 2 ? 10 : 5));
        }
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const unsigned rows = below(BOX + 1);
            p.add(g, send((g + shift) % 4, g, rows, below(WORK - BOX),
                          WORK + BOX * g + below(BOX + 1 - rows)));
            p.add(g, wait((g + 4 - shift) % 4, 1));
        }
    }

    std::mt19937_64 &rng_;
    uint64_t base_;
    bool strict_, wide_;
};

} // namespace pnm
#endif
