/* SPDX-License-Identifier: Apache-2.0 */
/* The hybrid multiplier, stream bit by stream bit: see pnm_mult.h. */
#include "models/golden/pnm_mult.h"

#include <stdbool.h>
#include <stddef.h>

#include "models/golden/pnm_streams.h"

static const char *const kind_names[] = {"split", "full", "exact"};

const char *mr_pnm_kind_name(int kind) { return kind >= 0 && kind <= 2 ? kind_names[kind] : NULL; }

const char *mr_pnm_gen_name(int gen) {
    return gen >= 0 && gen < MR_PNM_GENERATORS ? mr_pnm_generator_names[gen] : NULL;
}

mr_pnm_mult_mode mr_pnm_mult_default(void) {
    return (mr_pnm_mult_mode){.kind = MR_PNM_SPLIT,
                              .gen = MR_PNM_UNARY,
                              .stream = 16,
                              .seed_a = MR_PNM_LFSR_SEED_A,
                              .seed_b = MR_PNM_LFSR_SEED_B};
}

const char *mr_pnm_mult_check(const mr_pnm_mult_mode *m) {
    if (!mr_pnm_kind_name((int)m->kind))
        return "unknown kind of product";
    if (m->kind == MR_PNM_EXACT)
        return NULL;
    if (!mr_pnm_gen_name((int)m->gen))
        return "unknown stream generator";
    if (m->stream < MR_PNM_STREAM_MIN || m->stream > MR_PNM_STREAM_MAX ||
        (m->stream & (m->stream - 1)) != 0)
        return "the stream length must be a power of two from 4 to 256";
    if (m->cut > MR_PNM_CUT_MAX)
        return "the cut must be 0 to 6";
    if (m->kind == MR_PNM_FULL && m->cut != 0)
        return "full has no cut: the whole significand is a stream";
    if (m->kind == MR_PNM_FULL && m->gen == MR_PNM_CENTRED)
        return "the centred generator has no full mode";
    if (m->lane >= MR_PNM_POSITIONS)
        return "the lane must be 0 to 255";
    return NULL;
}

static unsigned log2_of(unsigned x) { return x > 1 ? 1 + log2_of(x / 2) : 0; }

static unsigned bit_reverse(unsigned x, unsigned bits) {
    unsigned r = 0;
    for (unsigned i = 0; i < bits; i++)
        r |= ((x >> i) & 1) << (bits - 1 - i);
    return r;
}

/* ---- shift registers --------------------------------------------------------------------------
 */

unsigned mr_pnm_lfsr_next(int which, uint32_t *state) {
    const mr_pnm_lfsr *l = &mr_pnm_lfsrs[which];
    uint32_t s = *state;
    for (int step = 0; step < MR_PNM_LFSR_LEAP; step++) {
        uint32_t bit = 0;
        for (int i = 0; i < 4 && l->taps[i]; i++)
            bit ^= s >> (l->taps[i] - 1);
        s = ((s << 1) | (bit & 1)) & (((uint32_t)1 << l->width) - 1);
    }
    *state = s;
    return s & 0xFF;
}

uint32_t mr_pnm_lfsr_seed(int which, uint32_t seed, unsigned lane, unsigned *flags) {
    const mr_pnm_lfsr *l = &mr_pnm_lfsrs[which];
    uint32_t all = ((uint32_t)1 << l->width) - 1, s = seed & all;
    if (s == 0 || s == all) {
        s = l->seed;
        if (flags)
            *flags |= MR_PNM_SEED;
    }
    /* position p starts p * MR_PNM_LANE_LEAPS numbers later: a jump for every bit of p */
    for (int bit = 0; bit < MR_PNM_LANE_BITS; bit++) {
        if (!((lane >> bit) & 1))
            continue;
        uint32_t to = 0;
        for (int i = 0; i < l->width; i++)
            if ((s >> i) & 1)
                to ^= l->jump[bit][i];
        s = to;
    }
    return s;
}

/* ---- streams ----------------------------------------------------------------------------------
 */

/* k-th number of Sobol dimension 2, 8 bits, binary order. */
static unsigned sobol2(unsigned k) {
    unsigned s = 0;
    for (int i = 0; i < 8; i++)
        if ((k >> i) & 1)
            s ^= mr_pnm_sobol_directions[i];
    return s;
}

/*
 * How many of L places have a 1 in both streams, of the fractions a / 2^bits and b / 2^bits.
 * Unary: a > (k + o)/L and b > (bitreverse(k) + o)/L, o in eighths.
 */
static unsigned meet(const mr_pnm_mult_mode *m, unsigned a, unsigned b, unsigned bits, int offset) {
    unsigned count = 0, length = m->stream, log = log2_of(length);
    uint32_t sa = 0, sb = 0;
    if (m->gen == MR_PNM_LFSR) {
        sa = mr_pnm_lfsr_seed(0, m->seed_a, m->lane, NULL);
        sb = mr_pnm_lfsr_seed(1, m->seed_b, m->lane, NULL);
    }
    unsigned at = 0; /* b's place in its sequence, where it is not k */
    for (unsigned k = 0; k < length; k++) {
        bool bit_a, bit_b;
        if (m->gen == MR_PNM_LFSR) {
            bit_a = a > mr_pnm_lfsr_next(0, &sa) >> (8 - bits);
            bit_b = b > mr_pnm_lfsr_next(1, &sb) >> (8 - bits);
        } else if (m->gen == MR_PNM_SOBOL) {
            bit_a = a << (8 - bits) > sobol2(k);
            bit_b = b << (8 - bits) > bit_reverse(at, 8);
            at += bit_a;
        } else {
            int ka = 8 * (int)k + offset, kb = 8 * (int)bit_reverse(k, log) + offset;
            bit_a = (int)(a * length * 8) > ka * (1 << bits);
            bit_b = (int)(b * length * 8) > kb * (1 << bits);
        }
        count += bit_a && bit_b;
    }
    return count;
}

/* Division by 2^by, towards minus infinity. */
static int down(int x, unsigned by) { return x >= 0 ? x >> by : -((-x + (1 << by) - 1) >> by); }

/* The estimate of a*b, a and b of `bits` bits, in units of 2^-14 after the division by 4^cut. */
static int low_product(const mr_pnm_mult_mode *m, unsigned a, unsigned b, int offset, int bias) {
    unsigned bits = 7 - m->cut;
    if (a == 0 || b == 0)
        return 0;
    int ones;
    if (m->gen != MR_PNM_CENTRED) {
        ones = (int)meet(m, a, b, bits, offset);
        return down(ones * (int)(16384 / m->stream) - 16 * bias, 2 * m->cut);
    }
    int half = 1 << (bits - 1), da = (int)a - half, db = (int)b - half;
    int rest = half * (int)(a + b) - half * half; /* a*b - da*db */
    if (da == 0 || db == 0)
        return rest;
    unsigned ma = (unsigned)(da < 0 ? -da : da), mb = (unsigned)(db < 0 ? -db : db);
    ones = (int)meet(m, ma, mb, bits - 1, offset);
    int size = down(ones * (int)(4096 / m->stream) - 4 * bias, 2 * m->cut);
    return (da < 0) == (db < 0) ? rest + size : rest - size;
}

/* P of fractions fa and fb. */
static uint16_t sig_product(const mr_pnm_mult_mode *m, unsigned fa, unsigned fb, int offset,
                            int bias) {
    int p = (int)((128 + fa) * (128 + fb));
    if (m->kind == MR_PNM_FULL) {
        int ones = (int)meet(m, 128 + fa, 128 + fb, 8, offset);
        p = ones * (int)(65536 / m->stream) - 64 * bias;
    } else if (m->kind == MR_PNM_SPLIT) {
        unsigned mask = (1u << (7 - m->cut)) - 1;
        p += low_product(m, fa & mask, fb & mask, offset, bias) - (int)((fa & mask) * (fb & mask));
    }
    return (uint16_t)(p < 0x4000 ? 0x4000 : p > 0xFFFF ? 0xFFFF : p);
}

static void constants(const mr_pnm_mult_mode *m, int *offset, int *bias) {
    const mr_pnm_constant *c = NULL;
    unsigned at = log2_of(m->stream) - 2;
    *offset = *bias = 0;
    if (m->kind == MR_PNM_SPLIT)
        c = &mr_pnm_split_constants[m->gen][m->cut][at];
    else if (m->kind == MR_PNM_FULL)
        c = &mr_pnm_full_constants[m->gen][at];
    if (c) {
        *offset = c->offset;
        *bias = c->bias;
    }
}

int mr_pnm_mult_table_at(const mr_pnm_mult_mode *m, int offset, int bias,
                         uint16_t table[MR_PNM_TABLE]) {
    if (mr_pnm_mult_check(m))
        return -1;
    for (unsigned fa = 0; fa < 128; fa++)
        for (unsigned fb = 0; fb < 128; fb++)
            table[128 * fa + fb] = sig_product(m, fa, fb, offset, bias);
    return 0;
}

int mr_pnm_mult_table(const mr_pnm_mult_mode *m, uint16_t table[MR_PNM_TABLE]) {
    int offset, bias;
    if (mr_pnm_mult_check(m))
        return -1;
    constants(m, &offset, &bias);
    return mr_pnm_mult_table_at(m, offset, bias, table);
}

/* ---- whole products ---------------------------------------------------------------------------
 */

enum { QUIET_NAN = 0x7FC00000 };

/* Everything but P. True when *out is the product already; else *sign and *exponent are set. */
static bool special(uint16_t a, uint16_t b, uint32_t *out, unsigned *flags, uint32_t *sign,
                    int *exponent) {
    unsigned ea = (a >> 7) & 0xFF, eb = (b >> 7) & 0xFF, fa = a & 0x7F, fb = b & 0x7F;
    bool zero = ea == 0 || eb == 0, big = ea == 0xFF || eb == 0xFF;
    *sign = (uint32_t)((a ^ b) & 0x8000) << 16;
    *exponent = (int)ea + (int)eb - 127;
    if ((ea == 0 && fa) || (eb == 0 && fb))
        *flags |= MR_PNM_UNDERFLOW;
    if ((ea == 0xFF && fa) || (eb == 0xFF && fb) || (zero && big)) {
        *flags |= MR_PNM_INVALID;
        *out = QUIET_NAN;
    } else if (big) {
        *out = *sign | 0x7F800000;
    } else if (zero) {
        *out = *sign;
    } else {
        return false;
    }
    return true;
}

/* (-1)^s * p/2^14 * 2^(exponent-127) */
static uint32_t compose(uint32_t sign, int exponent, uint16_t p, unsigned *flags) {
    uint32_t fraction = ((uint32_t)p << 9) & 0x7FFFFF;
    if (p & 0x8000) {
        exponent++;
        fraction = ((uint32_t)p << 8) & 0x7FFFFF;
    }
    if (exponent >= 255) {
        *flags |= MR_PNM_OVERFLOW;
        return sign | 0x7F800000;
    }
    if (exponent <= 0) {
        *flags |= MR_PNM_UNDERFLOW;
        return sign;
    }
    return sign | (uint32_t)exponent << 23 | fraction;
}

uint32_t mr_pnm_mult_by_table(const uint16_t table[MR_PNM_TABLE], uint16_t a, uint16_t b,
                              unsigned *flags) {
    unsigned met = 0;
    uint32_t out, sign;
    int exponent;
    if (!special(a, b, &out, &met, &sign, &exponent))
        out = compose(sign, exponent, table[128 * (a & 0x7F) + (b & 0x7F)], &met);
    if (flags)
        *flags |= met;
    return out;
}

uint32_t mr_pnm_mult(const mr_pnm_mult_mode *m, uint16_t a, uint16_t b, unsigned *flags) {
    unsigned met = 0;
    uint32_t out = QUIET_NAN, sign;
    int exponent, offset, bias;
    if (mr_pnm_mult_check(m))
        return out;
    if (m->kind != MR_PNM_EXACT && m->gen == MR_PNM_LFSR) {
        mr_pnm_lfsr_seed(0, m->seed_a, m->lane, &met);
        mr_pnm_lfsr_seed(1, m->seed_b, m->lane, &met);
    }
    if (!special(a, b, &out, &met, &sign, &exponent)) {
        constants(m, &offset, &bias);
        out = compose(sign, exponent, sig_product(m, a & 0x7F, b & 0x7F, offset, bias), &met);
    }
    if (flags)
        *flags |= met;
    return out;
}
