/* SPDX-License-Identifier: Apache-2.0 */
/* The vector side's arithmetic: multiply, add, function, reduce. */
#include <math.h>

#include "models/golden/fn.h"
#include "models/golden/pnm_internal.h"

enum { ID, EXP2, LOG2, RELU };
enum { NONE, IMMEDIATE, ELEMENT, SCALAR };
enum { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX };

uint32_t mr_pnm_exp2(uint32_t bits) {
    float s = pnm_float(bits);
    if (isnan(s))
        return 0x7FC00000u;
    if (s >= 128)
        return 0x7F800000u;
    if (s < -150)
        return 0;
    int64_t v = -(int64_t)floor(ldexp((double)s, 24) + 0.5);
    int64_t i = v >> 24;
    return pnm_bits((float)ldexp((double)mr_fn_exp2((uint32_t)(v & 0xFFFFFF)), (int)(-26 - i)));
}

uint32_t mr_pnm_log2(uint32_t bits) {
    float s = pnm_float(bits);
    if (isnan(s) || s < 0)
        return 0x7FC00000u;
    if (s == 0)
        return 0xFF800000u;
    if (isinf(s))
        return bits;
    int exp;
    float half = frexpf(s, &exp); /* 0.5 .. 1: exact, subnormals too */
    int64_t k = exp - 1;
    uint32_t m = (uint32_t)ldexpf(half, 24) & 0x7FFFFFu;
    return pnm_bits((float)ldexp((double)(k * (1 << 26) + (int64_t)mr_fn_log2(m)), -26));
}

static uint32_t larger(uint32_t a, uint32_t b) {
    float fa = pnm_float(a), fb = pnm_float(b);
    if (isnan(fa) || isnan(fb))
        return 0x7FC00000u;
    if (fa == fb) /* -0 below +0 */
        return a >> 31 ? b : a;
    return fa > fb ? a : b;
}

static uint32_t apply(unsigned fn, uint32_t v) {
    switch (fn) {
    case EXP2:
        return mr_pnm_exp2(v);
    case LOG2:
        return mr_pnm_log2(v);
    case RELU:
        return pnm_float(v) <= 0 ? 0 : v;
    default:
        return v;
    }
}

typedef struct source {
    unsigned kind;
    uint32_t immediate;
    size_t row;
    int stride;
} source;

static uint32_t fetch(const pnm_group *g, const source *s, size_t r, size_t row, size_t word) {
    switch (s->kind) {
    case ELEMENT:
        return g->scratch[pnm_place(s->row, r, s->stride) + row][word];
    case SCALAR:
        return g->scratch[s->row + r / WORDS][r % WORDS];
    default:
        return s->immediate;
    }
}

static uint32_t tree(const uint32_t part[WORDS]) {
    float s[WORDS];
    for (size_t j = 0; j < WORDS; j++)
        s[j] = pnm_float(part[j]);
    for (size_t half = WORDS / 2; half; half /= 2)
        for (size_t j = 0; j < half; j++)
            s[j] = pnm_float(pnm_bits(s[j] + s[j + half]));
    return pnm_bits(s[0]);
}

void pnm_vec(mr_pnm_chip *chip, pnm_group *g, const uint8_t *d) {
    size_t count = FIELD(d, VEC_COUNT), width = FIELD(d, VEC_WIDTH);
    unsigned fn = (unsigned)FIELD(d, VEC_FN), reduce = (unsigned)FIELD(d, VEC_REDUCE);
    uint32_t neg_mul = (uint32_t)FIELD(d, VEC_NEG_MUL) << 31;
    uint32_t neg_add = (uint32_t)FIELD(d, VEC_NEG_ADD) << 31;
    source b = {(unsigned)FIELD(d, VEC_MUL), (uint32_t)FIELD(d, VEC_IMM_M), FIELD(d, VEC_B),
                SIGNED_FIELD(d, VEC_B_STRIDE)};
    source c = {(unsigned)FIELD(d, VEC_ADD), (uint32_t)FIELD(d, VEC_IMM_C), FIELD(d, VEC_C),
                SIGNED_FIELD(d, VEC_C_STRIDE)};
    bool watched = fn != EXP2 && fn != LOG2 && reduce != REDUCE_MAX, odd = false;
    chip->result->vec_elements += (uint64_t)count * width * WORDS;
    for (size_t r = 0; r < count; r++) {
        size_t from = pnm_place(FIELD(d, VEC_A), r, SIGNED_FIELD(d, VEC_A_STRIDE));
        size_t to = pnm_place(FIELD(d, VEC_D), r, SIGNED_FIELD(d, VEC_D_STRIDE));
        uint32_t part[WORDS];
        for (size_t i = 0; i < width; i++)
            for (size_t j = 0; j < WORDS; j++) {
                uint32_t v = pnm_bits(pnm_float(g->scratch[from + i][j]));
                if (b.kind != NONE)
                    v = pnm_bits(pnm_float(v) * pnm_float(fetch(g, &b, r, i, j)));
                if (neg_mul)
                    v = pnm_bits(-pnm_float(v));
                if (c.kind != NONE)
                    v = pnm_bits(pnm_float(v) + pnm_float(fetch(g, &c, r, i, j) ^ neg_add));
                v = apply(fn, v);
                if (reduce == REDUCE_NONE) {
                    g->scratch[to + i][j] = v;
                    odd |= !pnm_finite(v);
                } else if (i == 0) {
                    part[j] = v;
                } else if (reduce == REDUCE_SUM) {
                    part[j] = pnm_bits(pnm_float(part[j]) + pnm_float(v));
                } else {
                    part[j] = larger(part[j], v);
                }
            }
        if (reduce == REDUCE_NONE)
            continue;
        uint32_t v = part[0];
        if (reduce == REDUCE_SUM)
            v = tree(part);
        for (size_t j = 1; j < WORDS && reduce == REDUCE_MAX; j++)
            v = larger(v, part[j]);
        g->scratch[FIELD(d, VEC_D) + r / WORDS][r % WORDS] = v;
        odd |= !pnm_finite(v);
    }
    if (watched && odd)
        chip->result->status |= MR_PNM_STATUS_NONFINITE;
}
