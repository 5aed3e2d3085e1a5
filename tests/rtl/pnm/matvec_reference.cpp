// The matrix side against a second reference, written from docs/pnm-arithmetic.md and the
// descriptors alone: 128-bit sums, every product counted stream bit by stream bit. It shares the
// generated constants with the golden model, and nothing else.
#include <cmath>
#include <memory>

#include "matvec_bench.hpp"
#include "models/golden/pnm_streams.h"

using namespace pnm;

namespace {

uint16_t rounded(uint32_t x) {
    const uint32_t low = x & 0xFFFF, high = x >> 16;
    if ((x & 0x7FFFFFFF) > 0x7F800000)
        return 0x7FC0;
    return (uint16_t)(high + (low > 0x8000 || (low == 0x8000 && high % 2)));
}
float value(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
uint32_t canonical(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f != f ? 0x7FC00000 : bits;
}
int reversed(int k, int bits) {
    int r = 0;
    for (int i = 0; i < bits; i++)
        r = 2 * r + (k >> i & 1);
    return r;
}
int exponent(uint16_t code) { return code >> 7 & 255; }

// Places of two streams that both have a one: a/of > (k + offset/8)/L, b with k reversed.
int meet(int log, int offset, int a, int b, int of) {
    const int length = 1 << log;
    int n = 0;
    for (int k = 0; k < length; k++)
        n += a * 8 * length > of * (8 * k + offset) &&
             b * 8 * length > of * (8 * reversed(k, log) + offset);
    return n;
}

int significand(int mode, int log, int fa, int fb) {
    const int length = 1 << log;
    int p;
    if (mode == MR_PNM_EXACT)
        return (128 + fa) * (128 + fb);
    if (mode == MR_PNM_FULL) {
        const auto &c = mr_pnm_full_constants[MR_PNM_UNARY][log - 2];
        p = meet(log, c.offset, 128 + fa, 128 + fb, 256) * (65536 / length) - 64 * c.bias;
    } else {
        const auto &c = mr_pnm_split_constants[MR_PNM_CENTRED][0][log - 2];
        const int da = fa - 64, db = fb - 64;
        p = 0x4000 + 128 * (fa + fb);
        if (fa && fb) { // fa fb = (fa + fb)/2 - 1/4 + da db
            p += 64 * (fa + fb) - 4096;
            const int q =
                meet(log, c.offset, std::abs(da), std::abs(db), 64) * (4096 / length) - 4 * c.bias;
            if (da && db)
                p += (da < 0) == (db < 0) ? q : -q;
        }
    }
    return p < 0x4000 ? 0x4000 : p > 0xFFFF ? 0xFFFF : p;
}

struct Reference {
    std::vector<uint32_t> rows = std::vector<uint32_t>(MR_PNM_SCRATCH_ROWS * 16);
    std::vector<uint16_t> banks = std::vector<uint16_t>(4 * MR_PNM_COLUMNS * 16);
    unsigned wreg[MR_PNM_WREGS] = {};
    bool range = false, nonfinite = false;
    uint64_t products = 0;

    uint16_t &weight(int kc, int col, int m, int k) {
        return banks[((size_t)(m % 4) * MR_PNM_COLUMNS + (size_t)(col + m / 4 * kc + k / 16)) * 16 +
                     (size_t)(k % 16)];
    }
    uint32_t &word(int row, int m) { return rows[(size_t)(row + m / 16) * 16 + (size_t)(m % 16)]; }

    // One sum as a float, before bias and old value.
    float sum(int mode, int log, int top, const std::vector<uint16_t> &x, const uint16_t *w) {
        __int128 acc = 0;
        bool nan = false, inf[2] = {false, false};
        for (size_t k = 0; k < x.size(); k++) {
            const int ew = exponent(w[k]), ex = exponent(x[k]), minus = (w[k] ^ x[k]) >> 15;
            const bool w_odd = ew == 255, x_odd = ex == 255;
            if ((w_odd && w[k] & 127) || (x_odd && x[k] & 127) || (w_odd && !ex) || (x_odd && !ew))
                nan = true;
            else if (w_odd || x_odd)
                inf[minus] = true;
            else if (ew && ex) {
                int down = top - ew - ex;
                range |= down < 0;
                down = down < 0 ? 0 : down;
                const __int128 size = (__int128)significand(mode, log, w[k] & 127, x[k] & 127)
                                      << 19;
                acc += (minus ? -1 : 1) * (down < 35 ? size >> down : 0);
            }
        }
        if (nan || (inf[0] && inf[1]))
            return NAN;
        if (inf[0] || inf[1])
            return inf[0] ? INFINITY : -INFINITY;
        return (float)ldexpl((long double)acc, top - 287); // 48 bits are exact, then one rounding
    }

    void matvec(const Desc &d) {
        auto field = [&](unsigned lsb) { return (int)d.get(lsb, 16); };
        auto stride = [&](unsigned lsb) { return (int)(int16_t)d.get(lsb, 16); };
        const int kc = field(48), outputs = field(64), vectors = field(80), col = field(32);
        const int mode = (int)d.get(16, 2), log = (int)d.get(20, 4), run = field(128);
        int wexp = (int)d.get(24, 8);
        if (d.get(12, 1))
            wexp = (int)wreg[wexp];
        range = nonfinite = false;
        products = (uint64_t)kc * 16 * (uint64_t)outputs * (uint64_t)vectors;
        const std::vector<uint32_t> before = rows;
        for (int n = 0; n < vectors; n++) {
            std::vector<uint16_t> x, w((size_t)kc * 16);
            int xexp = 0;
            for (int k = 0; k < kc * 16; k++) {
                const int row =
                    field(96) + n * stride(112) + k / 16 / run * stride(144) + k / 16 % run;
                x.push_back(rounded(before[(size_t)row * 16 + (size_t)(k % 16)]));
                if (exponent(x.back()) < 255 && exponent(x.back()) > xexp)
                    xexp = exponent(x.back());
            }
            for (int m = 0; m < outputs; m++) {
                for (int k = 0; k < kc * 16; k++)
                    w[(size_t)k] = weight(kc, col, m, k);
                float y = sum(mode, log, wexp + xexp, x, w.data());
                if (d.get(9, 1))
                    y = y + value(word(field(192), m));
                if (d.get(10, 1))
                    y = y + value(before[(size_t)(field(208) + n * stride(224) + m / 16) * 16 +
                                         (size_t)(m % 16)]);
                if (d.get(11, 1) && !(y != y))
                    y = y > 0 ? y : 0.0f;
                word(field(160) + n * stride(176), m) = canonical(y);
                nonfinite |= !std::isfinite(y);
            }
        }
    }

    void wstore(const Desc &d) {
        const int kc = (int)d.get(48, 16), length = (int)d.get(64, 16), col = (int)d.get(32, 16);
        const bool transposed = d.get(9, 1);
        unsigned &top = wreg[d.get(24, 8)];
        if (d.get(10, 1))
            top = 0;
        for (int i = 0; i < (int)d.get(80, 16); i++)
            for (int j = 0; j < length; j++) {
                const int at = (int)d.get(128, 16) + i;
                const uint16_t c =
                    rounded(word((int)d.get(96, 16) + i * (int16_t)d.get(112, 16), j));
                weight(kc, col, transposed ? j : at, transposed ? at : j) = c;
                if (exponent(c) < 255 && (unsigned)exponent(c) > top)
                    top = (unsigned)exponent(c);
            }
    }
};

// Both, side by side.
struct Pair {
    MatvecBench rtl;
    std::unique_ptr<Reference> ref{new Reference};
    Rng &rng;
    explicit Pair(Rng &r) : rtl(r.next()), rng(r) {}
    void noise(unsigned odd) {
        for (size_t i = 0; i < ref->rows.size(); i++)
            ref->rows[i] = rtl.scratch.words[i] = operand(rng, odd);
    }
    // Columns of the banks: f(element, lane) is a code.
    template <class F>
    void fill(unsigned col, unsigned columns, F f) {
        for (unsigned c = col; c < col + columns; c++) {
            uint16_t codes[4][16];
            for (unsigned pe = 0; pe < 4; pe++)
                for (unsigned l = 0; l < 16; l++)
                    ref->banks[((size_t)pe * MR_PNM_COLUMNS + c) * 16 + l] = codes[pe][l] = f();
            rtl.fill(c, codes);
        }
    }
    void run(const Desc &d) {
        if (d.bytes[0] == MR_PNM_DESC_MATVEC)
            ref->matvec(d);
        else
            ref->wstore(d);
        rtl.run(d, rng);
        for (size_t i = 0; i < ref->rows.size(); i++)
            if (rtl.scratch.words[i] != ref->rows[i]) {
                char text[120];
                snprintf(text, sizeof text, "row %zu word %zu is %08X, must be %08X", i / 16,
                         i % 16, rtl.scratch.words[i], ref->rows[i]);
                FAIL(text);
            }
        if (d.bytes[0] != MR_PNM_DESC_MATVEC)
            return;
        CHECK_EQUAL(ref->products, rtl.products);
        CHECK_EQUAL(ref->nonfinite, rtl.nonfinite);
        CHECK_EQUAL(ref->range, rtl.range);
    }
};

Desc plain(unsigned kc, unsigned outputs, unsigned vectors) {
    Desc d(MR_PNM_DESC_MATVEC);
    PUT(d, MATVEC_LOG_LENGTH, 4);
    PUT(d, MATVEC_WEXP, 131);
    PUT(d, MATVEC_KC, kc);
    PUT(d, MATVEC_OUTPUTS, outputs);
    PUT(d, MATVEC_VECTORS, vectors);
    PUT(d, MATVEC_X, 0);
    PUT(d, MATVEC_X_STRIDE, kc);
    PUT(d, MATVEC_X_RUN, kc);
    PUT(d, MATVEC_Y, 3000);
    PUT(d, MATVEC_Y_STRIDE, outputs / 16);
    return d;
}

} // namespace

TEST_GROUP(MatvecReference){};

TEST(MatvecReference, RandomDescriptors) {
    Rng rng(run_seed() + 10);
    Pair p(rng);
    for (int n = 0; n < (getenv("MR_FULL") ? 600 : 40); n++) {
        const unsigned odd = n % 4 == 0 ? 2 : 0;
        unsigned columns;
        const Desc d = random_matvec(rng, columns);
        p.noise(odd);
        p.fill((unsigned)d.get(MR_PNM_D_MATVEC_COL_LSB, 16), columns,
               [&] { return code(rng, odd); });
        p.rtl.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        p.run(d);
    }
}

TEST(MatvecReference, StoredWeights) {
    Rng rng(run_seed() + 11);
    Pair p(rng);
    for (int n = 0; n < 30; n++) {
        const bool transposed = rng.percent(50);
        const unsigned kc = 1 + (unsigned)rng.below(5), outputs = 16 * (1 + (unsigned)rng.below(4));
        const unsigned length = transposed ? outputs : 16 * kc,
                       all = transposed ? 16 * kc : outputs;
        const unsigned col = (unsigned)rng.below(MR_PNM_COLUMNS - outputs / 4 * kc),
                       wreg = (unsigned)rng.below(MR_PNM_WREGS);
        p.noise(1);
        p.fill(col, outputs / 4 * kc, [&] { return code(rng, 0); });
        for (int pass = 0; pass < 2; pass++) {
            Desc d(MR_PNM_DESC_WSTORE);
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
            p.run(d);
        }
        Desc d = plain(kc, outputs, 3);
        PUT(d, MATVEC_USE_WREG, 1);
        PUT(d, MATVEC_WEXP, wreg);
        PUT(d, MATVEC_COL, col);
        p.run(d);
    }
}

// A weight above wexp: told by the range flag where it meets a number, and only there. A vector of
// zeros has no exponent, so every weight stands above that grid, and is multiplied by nothing.
TEST(MatvecReference, TheRangeFlagIsOfProductsAlone) {
    Rng rng(run_seed() + 12);
    Pair p(rng);
    unsigned told = 0, quiet = 0;
    for (int n = 0; n < 60; n++) {
        const unsigned kc = 1 + (unsigned)rng.below(4);
        const int wexp = 100 + (int)rng.below(60), above = (int)rng.below(4);
        Desc d = plain(kc, 16, 2);
        PUT(d, MATVEC_MODE, rng.below(3));
        PUT(d, MATVEC_WEXP, wexp);
        // zeros of both signs and what counts as one; in some runs one number, whose size is the
        // vector's own or far below it, among them
        static const uint32_t zero[] = {0, 0x80000000, 0x00000001, 0x807F0000};
        p.noise(0);
        for (size_t i = 0; i < 32 * kc; i++)
            p.rtl.scratch.words[i] = p.ref->rows[i] = zero[rng.below(4)];
        const int numbers = (int)rng.below(3);
        for (int k = 0; k < numbers; k++) {
            const size_t at = rng.below(32 * kc);
            const uint32_t bits = (uint32_t)((120 + rng.below(10)) << 23 | rng.below(1 << 23));
            p.rtl.scratch.words[at] = p.ref->rows[at] = bits;
        }
        p.fill(0, 4 * kc, [&] {
            const int e = rng.percent(5) ? wexp + above : wexp - (int)rng.below(6);
            return (uint16_t)(rng.below(2) << 15 | (uint64_t)e << 7 | rng.below(128));
        });
        p.run(d);
        if (numbers == 0)
            CHECK_FALSE(p.rtl.range);
        told += p.rtl.range;
        quiet += !p.rtl.range && numbers > 0;
    }
    CHECK(told > 3 && quiet > 3);
}

// Sums at the ends: as many products of the largest and least size as one sum may have, exponents
// of the grid at the ends of the float's, cancellation to zero.
TEST(MatvecReference, EndsOfTheGrid) {
    Rng rng(run_seed() + 13);
    Pair p(rng);
    for (int n = 0; n < 24; n++) {
        const bool longest = n % 8 == 0, cancel = n % 3 == 0;
        const unsigned kc = longest ? MR_PNM_MAX_KC : 1 + (unsigned)rng.below(8);
        static const int ends[] = {1, 2, 40, 127, 200, 253, 254};
        const int wexp = ends[rng.below(7)], xexp = ends[rng.below(7)];
        Desc d = plain(kc, 16, 1);
        PUT(d, MATVEC_MODE, rng.below(3));
        PUT(d, MATVEC_LOG_LENGTH, 2 + rng.below(7));
        PUT(d, MATVEC_WEXP, wexp);
        p.noise(0);
        for (size_t i = 0; i < 16 * kc; i++) {
            const uint32_t fraction =
                cancel || rng.percent(30) ? 0x7F0000 : (uint32_t)rng.below(1 << 23);
            const int e = xexp > 40 && rng.percent(20) ? xexp - (int)rng.below(40) : xexp;
            p.rtl.scratch.words[i] = p.ref->rows[i] = (uint32_t)e << 23 | fraction;
        }
        unsigned k = 0;
        p.fill(0, 4 * kc, [&] {
            const bool minus = cancel ? k++ % 2 : rng.percent(n % 2 ? 50 : 0);
            return (uint16_t)((unsigned)minus << 15 | (unsigned)wexp << 7 | 0x7F);
        });
        p.run(d);
    }
}

// Codes near every tie of the rounding to bf16, by weights of one: the sixteen inputs of a vector
// have one exponent, so nothing but the rounding and the flush of subnormals changes them. What
// rounds to infinity is infinity, and no NaN of any payload is anything but a NaN.
TEST(MatvecReference, Case1And3And4RoundingOfActivations) {
    Rng rng(run_seed() + 14);
    Pair p(rng);
    const bool all = getenv("MR_FULL") != nullptr;
    Desc d = plain(1, 16, 64);
    PUT(d, MATVEC_MODE, MR_PNM_EXACT);
    PUT(d, MATVEC_WEXP, 127);
    p.noise(0);
    unsigned at = 0; // column pe-wise: output m is element m % 4, column m / 4
    p.fill(0, 4, [&] {
        const unsigned column = at / 64, pe = at / 16 % 4, k = at % 16;
        at++;
        return (uint16_t)(4 * column + pe == k ? 0x3F80 : 0);
    });
    static const uint32_t lows[] = {0x7FFF, 0x8000, 0x8001};
    uint64_t numbers = 0, infinite = 0, nans = 0;
    for (uint32_t low : lows)
        for (uint32_t high = 0; high < 1 << 16; high += 64 * 16) {
            if (!all && rng.percent(60))
                continue;
            for (unsigned i = 0; i < 64 * 16; i++)
                p.rtl.scratch.words[i] = p.ref->rows[i] = (high + i) << 16 | low;
            p.run(d);
            for (unsigned n = 0; n < 64; n++)
                for (unsigned m = 0; m < 16; m++) {
                    const uint32_t x = (high + 16 * n + m) << 16 | low,
                                   y = p.rtl.scratch.words[(3000 + n) * 16 + m];
                    if ((x & 0x7F800000) == 0x7F800000) { // all of the row are NaN: low is not 0
                        CHECK_EQUAL(0x7FC00000u, y);
                        nans++;
                    } else if ((y & 0x7FFFFFFF) < 0x7F800000) {
                        CHECK(std::fabs(value(y) - value(x)) <=
                              std::fabs(value(x)) / 256 + value(0x00800000));
                        numbers++;
                    }
                }
        }
    // the largest float, alone: an infinity by its own weight, a NaN by the others' zeros
    for (unsigned i = 0; i < 64 * 16; i++)
        p.rtl.scratch.words[i] = p.ref->rows[i] = i % 17 == 0 ? 0x7F7FFFFF | i << 31 : 0;
    p.run(d);
    for (unsigned n = 0; n < 16; n++) {
        CHECK_EQUAL(0x7F800000u | (n * 17) << 31, p.rtl.scratch.words[(3000 + n) * 16 + n]);
        infinite++;
    }
    CHECK(p.rtl.nonfinite && numbers > 10000 && infinite == 16);
    // signalling NaN whose payload is in the low half alone
    for (uint32_t low = 1; low < 0x10000; low = low * 3 + 1)
        for (uint32_t sign : {0u, 0x80000000u}) {
            for (unsigned i = 0; i < 64 * 16; i++)
                p.rtl.scratch.words[i] = p.ref->rows[i] = i % 16 == 3 ? sign | 0x7F800000 | low : 0;
            p.run(d);
            CHECK_EQUAL(0x7FC00000u, p.rtl.scratch.words[3000 * 16 + 3]);
            nans++;
        }
    CHECK(nans >= 20);
}
