/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix side: block fixed point sums of hybrid products, and writing weights. */
#include <math.h>

#include "models/golden/pnm_internal.h"

enum { FAR = 63 };

uint16_t mr_pnm_bf16(uint32_t x) {
    if ((x & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FC0;
    return (uint16_t)((x + 0x7FFFu + (x >> 16 & 1u)) >> 16);
}

static unsigned exponent(uint16_t code) { return code >> 7 & 0xFFu; }

static unsigned max_exponent(unsigned so_far, uint16_t code) {
    unsigned e = exponent(code);
    return e != 255 && e > so_far ? e : so_far;
}

static pnm_operand decode(uint16_t code, unsigned top, unsigned scale) {
    unsigned e = exponent(code);
    pnm_operand o = {(code & 0x7Fu) * scale, FAR, code >> 15 ? -1 : 0};
    if (e > 0 && e <= top)
        o.shift = top - e > FAR ? FAR : top - e;
    return o;
}

/* One sum the slow way: infinities, NaNs, weights above wexp. */
static uint32_t odd_sum(mr_pnm_chip *chip, const uint16_t *table, const uint16_t *w,
                        const uint16_t *x, size_t k, unsigned wexp, unsigned xexp, int64_t *sum) {
    bool nan = false, inf[2] = {false, false};
    int64_t acc = 0;
    for (size_t i = 0; i < k; i++) {
        unsigned ew = exponent(w[i]), ex = exponent(x[i]), s = (w[i] ^ x[i]) >> 15;
        bool w_nan = ew == 255 && (w[i] & 0x7F), x_nan = ex == 255 && (x[i] & 0x7F);
        if (w_nan || x_nan || (ew == 255 && ex == 0) || (ex == 255 && ew == 0)) {
            nan = true;
        } else if (ew == 255 || ex == 255) {
            inf[s] = true;
        } else if (ew && ex) {
            int d = (int)(wexp - ew) + (int)(xexp - ex);
            if (d < 0) {
                chip->result->status |= MR_PNM_STATUS_RANGE;
                d = 0;
            }
            int64_t p = table[(x[i] & 0x7F) * 128 + (w[i] & 0x7F)];
            int64_t mag = d < 35 ? (p << MR_PNM_GUARD_BITS) >> d : 0;
            acc += s ? -mag : mag;
        }
    }
    *sum = (int64_t)((uint64_t)acc << (64 - MR_PNM_ACC_BITS)) >> (64 - MR_PNM_ACC_BITS);
    if (nan || (inf[0] && inf[1]))
        return 0x7FC00000u;
    return inf[0] ? 0x7F800000u : inf[1] ? 0xFF800000u : 0;
}

__attribute__((hot)) static int64_t fast_sum(const uint16_t *table, const pnm_operand *w,
                                             const pnm_operand *x, size_t k) {
    int64_t acc = 0;
    for (size_t i = 0; i < k; i++) {
        uint64_t p = (uint64_t)table[x[i].index + w[i].index] << MR_PNM_GUARD_BITS;
        int64_t sign = w[i].sign ^ x[i].sign;
        acc += ((int64_t)(p >> w[i].shift >> x[i].shift) ^ sign) - sign;
    }
    return acc;
}

static size_t x_row(const uint8_t *d, size_t n, size_t kc) {
    size_t run = FIELD(d, MATVEC_X_RUN);
    size_t first = pnm_place(FIELD(d, MATVEC_X), kc / run, SIGNED_FIELD(d, MATVEC_X_JUMP));
    return pnm_place(first, n, SIGNED_FIELD(d, MATVEC_X_STRIDE)) + kc % run;
}

/* Bias, old value, threshold, and into the scratchpad. */
static void put(mr_pnm_chip *chip, pnm_group *g, const uint8_t *d, size_t n, size_t m, uint32_t r) {
    float y = pnm_float(r);
    size_t row = m / WORDS, word = m % WORDS;
    if (FIELD(d, MATVEC_BIAS))
        y += pnm_float(g->scratch[FIELD(d, MATVEC_BIAS_ROW) + row][word]);
    if (FIELD(d, MATVEC_ACCUM)) {
        size_t old = pnm_place(FIELD(d, MATVEC_OLD), n, SIGNED_FIELD(d, MATVEC_OLD_STRIDE));
        y += pnm_float(g->scratch[old + row][word]);
    }
    if (FIELD(d, MATVEC_RELU) && y <= 0)
        y = 0;
    size_t to = pnm_place(FIELD(d, MATVEC_Y), n, SIGNED_FIELD(d, MATVEC_Y_STRIDE));
    uint32_t bits = pnm_bits(y);
    if (!pnm_finite(bits))
        chip->result->status |= MR_PNM_STATUS_NONFINITE;
    g->scratch[to + row][word] = bits;
}

static void wide_matvec(mr_pnm_chip *chip, pnm_group *g, const uint8_t *d) {
    size_t kc = FIELD(d, MATVEC_KC), outputs = FIELD(d, MATVEC_OUTPUTS), col = FIELD(d, MATVEC_COL);
    size_t vectors = FIELD(d, MATVEC_VECTORS);
    float *x = chip->wide_x;
    for (size_t n = 0; n < vectors; n++)
        for (size_t c = 0; c < kc; c++)
            memcpy(x + (n * kc + c) * WORDS, g->scratch[x_row(d, n, c)], 4 * WORDS);
    for (size_t m = 0; m < outputs; m++) {
        const float *w = &g->wide[m % PES][col + m / PES * kc][0];
        for (size_t n = 0; n < vectors; n++) {
            const float *xn = x + n * kc * WORDS;
            double sum = 0;
            for (size_t k = 0; k < kc * WORDS; k++)
                sum += (double)w[k] * (double)xn[k];
            put(chip, g, d, n, m, pnm_bits((float)sum));
        }
    }
}

/* All activations are read before anything is written: y may lie on x. */
void pnm_matvec(mr_pnm_chip *chip, pnm_group *g, const uint8_t *d) {
    size_t kc = FIELD(d, MATVEC_KC), k = kc * WORDS, outputs = FIELD(d, MATVEC_OUTPUTS);
    size_t vectors = FIELD(d, MATVEC_VECTORS), col = FIELD(d, MATVEC_COL);
    chip->result->products += k * outputs * vectors;
    if (chip->wide) {
        wide_matvec(chip, g, d);
        return;
    }
    unsigned wexp = (unsigned)FIELD(d, MATVEC_WEXP);
    if (FIELD(d, MATVEC_USE_WREG))
        wexp = g->wreg[wexp];
    const uint16_t *table =
        pnm_table(chip, (unsigned)FIELD(d, MATVEC_MODE), (unsigned)FIELD(d, MATVEC_LOG_LENGTH));
    uint16_t *code = chip->codes;
    pnm_operand *x = chip->operands, *w = x + MR_PNM_ACT_COLUMNS * WORDS;
    uint8_t xexp[MR_PNM_MAX_VECTORS];
    bool x_odd[MR_PNM_MAX_VECTORS];
    for (size_t n = 0; n < vectors; n++) {
        unsigned top = 0;
        x_odd[n] = false;
        for (size_t c = 0; c < kc; c++)
            for (size_t l = 0; l < WORDS; l++) {
                uint16_t v = mr_pnm_bf16(g->scratch[x_row(d, n, c)][l]);
                code[n * k + c * WORDS + l] = v;
                x_odd[n] |= exponent(v) == 255;
                top = max_exponent(top, v);
            }
        xexp[n] = (uint8_t)top;
        for (size_t i = 0; i < k; i++)
            x[n * k + i] = decode(code[n * k + i], top, 128);
    }
    for (size_t m = 0; m < outputs; m++) {
        const uint16_t *weight = &g->bank[m % PES][col + m / PES * kc][0];
        bool w_odd = false;
        for (size_t i = 0; i < k; i++) {
            w[i] = decode(weight[i], wexp, 1);
            w_odd |= exponent(weight[i]) > wexp;
        }
        for (size_t n = 0; n < vectors; n++) {
            int64_t acc;
            uint32_t r = 0;
            if (w_odd || x_odd[n])
                r = odd_sum(chip, table, weight, code + n * k, k, wexp, xexp[n], &acc);
            else
                acc = fast_sum(table, w, x + n * k, k);
            if (!r)
                r = pnm_bits(
                    (float)ldexp((double)acc, (int)wexp + xexp[n] - 254 - 14 - MR_PNM_GUARD_BITS));
            put(chip, g, d, n, m, r);
        }
    }
}

static void store(pnm_group *g, bool wide, size_t m, size_t col, size_t lane, uint32_t value,
                  unsigned *top) {
    if (wide) {
        g->wide[m % PES][col][lane] = pnm_float(value);
        return;
    }
    uint16_t code = mr_pnm_bf16(value);
    g->bank[m % PES][col][lane] = code;
    *top = max_exponent(*top, code);
}

void pnm_wstore(mr_pnm_chip *chip, pnm_group *g, const uint8_t *d) {
    size_t kc = FIELD(d, WSTORE_KC), length = FIELD(d, WSTORE_LENGTH), col = FIELD(d, WSTORE_COL);
    unsigned top = FIELD(d, WSTORE_RESET) ? 0 : g->wreg[FIELD(d, WSTORE_WREG)];
    for (size_t i = 0; i < FIELD(d, WSTORE_VECTORS); i++) {
        size_t row = pnm_place(FIELD(d, WSTORE_X), i, SIGNED_FIELD(d, WSTORE_X_STRIDE));
        size_t at = FIELD(d, WSTORE_FIRST) + i;
        for (size_t j = 0; j < length; j++) {
            size_t m = FIELD(d, WSTORE_TRANSPOSED) ? j : at;
            size_t k = FIELD(d, WSTORE_TRANSPOSED) ? at : j;
            store(g, chip->wide, m, col + m / PES * kc + k / WORDS, k % WORDS,
                  g->scratch[row + j / WORDS][j % WORDS], &top);
        }
    }
    g->wreg[FIELD(d, WSTORE_WREG)] = (uint8_t)top;
}
