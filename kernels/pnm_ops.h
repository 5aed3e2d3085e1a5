/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of the near-memory unit on compute devices, bit for bit docs/pnm-arithmetic.md. The
 * host has gone through the lists (host/core/pnm_kernels.c): what is left are streams of
 * descriptors that move and compute, 16 words each, with words 2, 3   LOAD, STORE, WLOAD: the place
 * in `memory`, bytes word 14      MATVEC: where its table of significand products begins word 15
 * bits 7:0 the group, bit 8: one lane does all, in the order of the golden model, because rows that
 * are written meet rows that are read and a VEC that reduces has at most MR_PNM_FOLD vectors unless
 * that bit is set. A work group does one stream, descriptor after descriptor, each in three steps
 * that end in a barrier.
 *
 * A bf16 operand is kept as one word so that the sum of two words is all that a product needs:
 *     13:0 fractions (weights 6:0, activations 13:7), 18:17 sign, 31:19 exponent, signed;
 * zeros have an exponent so low that their product is shifted out, infinities and NaN one so high
 * that the shift is negative, as for a weight above wexp: the sum is then made once more, slowly.
 * With MR_PNM_WIDE banks and activations are float32.
 */
#ifndef MR_PNM_OPS_H
#define MR_PNM_OPS_H
#include "host/include/millrace/pnm_desc.h"
#include "kernels/mr_portable.h"
#include "kernels/mr_round.h"

#define MR_PNM_FOLD 64           /* vectors of a VEC that reduces */
#define MR_PNM_TABLE_WORDS 16384 /* of a table: activation's fraction * 128 + weight's */
#define MR_PNM_NAN 0x7FC00000u
#define MR_PNM_INF 0x7F800000u
#define MR_PNM_SCRATCH_WORDS (MR_PNM_SCRATCH_ROWS * MR_PNM_ROW_WORDS)
#define MR_PNM_BANK_WORDS (MR_PNM_COLUMNS * MR_PNM_ROW_WORDS)
#define MR_PNM_ACT_WORDS (MR_PNM_ACT_COLUMNS * MR_PNM_ROW_WORDS)

/* Words of a row that one lane does: compute devices have lanes enough for one each. */
#ifdef MR_ENTRY
#define MR_PNM_STEP 1
#else
#define MR_PNM_STEP MR_PNM_ROW_WORDS
#endif
#define MR_PNM_STEPS (MR_PNM_ROW_WORDS / MR_PNM_STEP)

#define MR_PNM_GET(d, name)                                                                        \
    ((mr_i32)((d)[MR_PNM_D_##name##_LSB / 32] >> (MR_PNM_D_##name##_LSB % 32) &                    \
              (0xFFFFFFFFu >> (32 - MR_PNM_D_##name##_BITS))))
#define MR_PNM_GET_SIGNED(d, name) ((mr_i32)(mr_i16)MR_PNM_GET(d, name))

/* The inner loop of everything. */
#ifdef MR_ENTRY
#define MR_HOT MR_FN
#elif defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
/* With AVX2, where there is one, the compiler makes eight products at a time. */
#define MR_HOT __attribute__((target_clones("avx2", "default"))) static
#else
#define MR_HOT static
#endif

/* What a descriptor works on: its group's memories. */
typedef struct mr_pnm_place {
    MR_GLOBAL const mr_u32 *d;
    MR_GLOBAL mr_u32 *scratch, *bank, *wreg, *acts, *flags;
    MR_GLOBAL const mr_u32 *table;
    MR_GLOBAL const mr_i64 *fn;
    mr_i32 one; /* one lane does all */
} mr_pnm_place;

MR_FN mr_u32 mr_pnm_canonical(mr_u32 v) { return (v & 0x7FFFFFFFu) > MR_PNM_INF ? MR_PNM_NAN : v; }
MR_FN mr_u32 mr_pnm_add(mr_u32 a, mr_u32 b) {
    return mr_pnm_canonical(mr_as_u32(mr_as_f32(a) + mr_as_f32(b)));
}
MR_FN mr_u32 mr_pnm_mul(mr_u32 a, mr_u32 b) {
    return mr_pnm_canonical(mr_as_u32(mr_as_f32(a) * mr_as_f32(b)));
}
MR_FN mr_i32 mr_pnm_finite(mr_u32 v) { return (v & MR_PNM_INF) != MR_PNM_INF; }

/* v * 2^exp as float32, nearest even, subnormals kept. |v| < 2^62. */
MR_FN mr_u32 mr_pnm_float(mr_i64 v, mr_i32 exp) {
    mr_u32 sign = v < 0 ? 0x80000000u : 0;
    mr_u64 m = v < 0 ? (mr_u64)0 - (mr_u64)v : (mr_u64)v;
    if (m == 0)
        return 0;
    mr_i32 e = 63 - mr_clz64(m) + exp, low = e < -126 ? -126 : e;
    if (e > 127)
        return sign | MR_PNM_INF;
    return sign | ((mr_u32)mr_to_units(m, exp, low - 23) + ((mr_u32)(e - low ? 0 : e + 126) << 23));
}

/* ---- Functions ------------------------------------------------------------------------------ */

/* A quadratic of models/golden/fn.h; row has its three coefficients. */
MR_FN mr_i64 mr_pnm_poly(MR_GLOBAL const mr_i64 *row, mr_u32 x24) {
    mr_i64 u = (mr_i64)(x24 & 0x1FFFFu);
    return (row[0] + (((row[1] + ((row[2] * u) >> 17)) * u) >> 17) + 32) >> 6;
}

MR_FN mr_u32 mr_pnm_exp2(MR_GLOBAL const mr_i64 *fn, mr_u32 bits) {
    float s = mr_as_f32(bits);
    mr_i32 e = (mr_i32)(bits >> 23) & 255, up = (e ? e : 1) - 126;
    mr_i64 m = (mr_i64)((bits & 0x7FFFFFu) | (e ? 0x800000u : 0u)), v = 0;
    if ((bits & 0x7FFFFFFFu) > MR_PNM_INF)
        return MR_PNM_NAN;
    if (s >= 128.0f)
        return MR_PNM_INF;
    if (s < -150.0f)
        return 0;
    if (bits >> 31)
        m = -m;
    if (up >= 0) /* -floor(s 2^24 + 1/2) */
        v = -(m * ((mr_i64)1 << up));
    else if (up > -40)
        v = -((m + ((mr_i64)1 << (-up - 1))) >> -up);
    mr_u32 f = (mr_u32)v & 0xFFFFFFu;
    return mr_pnm_float(mr_pnm_poly(fn + (f >> 17) * 3, f), -26 - (mr_i32)(v >> 24));
}

MR_FN mr_u32 mr_pnm_log2(MR_GLOBAL const mr_i64 *fn, mr_u32 bits) {
    mr_u32 mag = bits & 0x7FFFFFFFu;
    if (mag == 0)
        return 0x80000000u | MR_PNM_INF;
    if (bits > MR_PNM_INF) /* NaN, or negative */
        return MR_PNM_NAN;
    if (bits == MR_PNM_INF)
        return bits;
    mr_i32 top = 63 - mr_clz64((mr_u64)mag), k = (mr_i32)(mag >> 23) - 127;
    if (k == -127) {
        k = top - 149;
        mag <<= 23 - top;
    }
    mag = (mag & 0x7FFFFFu) << 1;
    return mr_pnm_float((mr_i64)k * (1 << 26) + mr_pnm_poly(fn + 384 + (mag >> 17) * 3, mag), -26);
}

MR_FN mr_u32 mr_pnm_larger(mr_u32 a, mr_u32 b) {
    float fa = mr_as_f32(a), fb = mr_as_f32(b);
    if (mr_pnm_canonical(a) == MR_PNM_NAN || mr_pnm_canonical(b) == MR_PNM_NAN)
        return MR_PNM_NAN;
    if (fa == fb) /* -0 below +0 */
        return a >> 31 ? b : a;
    return fa > fb ? a : b;
}

/* ---- VEC ------------------------------------------------------------------------------------ */

typedef struct mr_pnm_source {
    mr_i32 kind, row, stride;
    mr_u32 immediate;
} mr_pnm_source;

typedef struct mr_pnm_vec {
    mr_pnm_source b, c;
    mr_i32 count, width, fn, reduce, a, a_stride, to, to_stride, watched;
    mr_u32 neg_mul, neg_add;
} mr_pnm_vec;

MR_FN mr_pnm_vec mr_pnm_vec_of(MR_GLOBAL const mr_u32 *d) {
    mr_pnm_vec v;
    v.count = MR_PNM_GET(d, VEC_COUNT);
    v.width = MR_PNM_GET(d, VEC_WIDTH);
    v.fn = MR_PNM_GET(d, VEC_FN);
    v.reduce = MR_PNM_GET(d, VEC_REDUCE);
    v.a = MR_PNM_GET(d, VEC_A);
    v.a_stride = MR_PNM_GET_SIGNED(d, VEC_A_STRIDE);
    v.to = MR_PNM_GET(d, VEC_D);
    v.to_stride = MR_PNM_GET_SIGNED(d, VEC_D_STRIDE);
    v.b.kind = MR_PNM_GET(d, VEC_MUL);
    v.b.row = MR_PNM_GET(d, VEC_B);
    v.b.stride = MR_PNM_GET_SIGNED(d, VEC_B_STRIDE);
    v.b.immediate = (mr_u32)MR_PNM_GET(d, VEC_IMM_M);
    v.c.kind = MR_PNM_GET(d, VEC_ADD);
    v.c.row = MR_PNM_GET(d, VEC_C);
    v.c.stride = MR_PNM_GET_SIGNED(d, VEC_C_STRIDE);
    v.c.immediate = (mr_u32)MR_PNM_GET(d, VEC_IMM_C);
    v.neg_mul = (mr_u32)MR_PNM_GET(d, VEC_NEG_MUL) << 31;
    v.neg_add = (mr_u32)MR_PNM_GET(d, VEC_NEG_ADD) << 31;
    v.watched = v.fn != 1 && v.fn != 2 && v.reduce != 2;
    return v;
}

MR_FN mr_u32 mr_pnm_operand(MR_GLOBAL const mr_u32 *scratch, const mr_pnm_source *s, mr_i32 r,
                            mr_i32 i, mr_i32 j) {
    if (s->kind == 2)
        return scratch[(s->row + r * s->stride + i) * MR_PNM_ROW_WORDS + j];
    return s->kind == 3 ? scratch[s->row * MR_PNM_ROW_WORDS + r] : s->immediate;
}

/* f(+-(a * m) +- c) of word j in row i of vector r. */
MR_FN mr_u32 mr_pnm_element(const mr_pnm_place *p, const mr_pnm_vec *v, mr_i32 r, mr_i32 i,
                            mr_i32 j) {
    MR_GLOBAL const mr_u32 *scratch = p->scratch;
    mr_u32 x = scratch[(v->a + r * v->a_stride + i) * MR_PNM_ROW_WORDS + j];
    x = mr_pnm_canonical(x);
    if (v->b.kind)
        x = mr_pnm_mul(x, mr_pnm_operand(scratch, &v->b, r, i, j));
    x = mr_pnm_canonical(x ^ v->neg_mul);
    if (v->c.kind)
        x = mr_pnm_add(x, mr_pnm_operand(scratch, &v->c, r, i, j) ^ v->neg_add);
    if (v->fn == 1)
        return mr_pnm_exp2(p->fn, x);
    if (v->fn == 2)
        return mr_pnm_log2(p->fn, x);
    return v->fn == 3 && mr_as_f32(x) <= 0.0f ? 0 : x;
}

MR_FN void mr_pnm_vec_put(const mr_pnm_place *p, const mr_pnm_vec *v, mr_i32 at, mr_u32 x) {
    p->scratch[at] = x;
    if (v->watched && !mr_pnm_finite(x))
        p->flags[1] = 1;
}

/* Rows folded onto one: position j of vector r. */
MR_FN mr_u32 mr_pnm_fold(const mr_pnm_place *p, const mr_pnm_vec *v, mr_i32 r, mr_i32 j) {
    mr_u32 s = mr_pnm_element(p, v, r, 0, j);
    for (mr_i32 i = 1; i < v->width; i++) {
        mr_u32 x = mr_pnm_element(p, v, r, i, j);
        s = v->reduce == 1 ? mr_pnm_add(s, x) : mr_pnm_larger(s, x);
    }
    return s;
}

/* The positions of a row to one scalar. */
MR_FN mr_u32 mr_pnm_scalar(mr_i32 reduce, const mr_u32 *part) {
    mr_u32 s[MR_PNM_ROW_WORDS];
    for (mr_i32 j = 0; j < MR_PNM_ROW_WORDS; j++)
        s[j] = part[j];
    if (reduce == 2) {
        for (mr_i32 j = 1; j < MR_PNM_ROW_WORDS; j++)
            s[0] = mr_pnm_larger(s[0], s[j]);
        return s[0];
    }
    for (mr_i32 apart = MR_PNM_ROW_WORDS / 2; apart; apart /= 2)
        for (mr_i32 j = 0; j < apart; j++)
            s[j] = mr_pnm_add(s[j], s[j + apart]);
    return s[0];
}

/* All of it, in order. */
MR_FN void mr_pnm_vec_one(const mr_pnm_place *p, const mr_pnm_vec *v) {
    mr_u32 part[MR_PNM_ROW_WORDS];
    for (mr_i32 r = 0; r < v->count; r++) {
        if (v->reduce) {
            for (mr_i32 j = 0; j < MR_PNM_ROW_WORDS; j++)
                part[j] = mr_pnm_fold(p, v, r, j);
            mr_pnm_vec_put(p, v, v->to * MR_PNM_ROW_WORDS + r, mr_pnm_scalar(v->reduce, part));
            continue;
        }
        for (mr_i32 i = 0; i < v->width; i++)
            for (mr_i32 j = 0; j < MR_PNM_ROW_WORDS; j++)
                mr_pnm_vec_put(p, v, (v->to + r * v->to_stride + i) * MR_PNM_ROW_WORDS + j,
                               mr_pnm_element(p, v, r, i, j));
    }
}

MR_FN void mr_pnm_vec_rows(const mr_pnm_place *p, MR_LOCAL_PTR mr_u32 *part) {
    const mr_pnm_vec v = mr_pnm_vec_of(p->d);
    if (p->one) {
        MR_ONE { mr_pnm_vec_one(p, &v); }
        return;
    }
    MR_EACH(e, v.count * (v.reduce ? 1 : v.width) * MR_PNM_STEPS) {
        mr_i32 row = e / MR_PNM_STEPS, j0 = e % MR_PNM_STEPS * MR_PNM_STEP;
        mr_i32 r = v.reduce ? row : row / v.width, i = row - r * v.width;
        for (mr_i32 j = j0; j < j0 + MR_PNM_STEP; j++) {
            if (v.reduce)
                part[r * MR_PNM_ROW_WORDS + j] = mr_pnm_fold(p, &v, r, j);
            else
                mr_pnm_vec_put(p, &v, (v.to + r * v.to_stride + i) * MR_PNM_ROW_WORDS + j,
                               mr_pnm_element(p, &v, r, i, j));
        }
    }
}

MR_FN void mr_pnm_vec_scalars(const mr_pnm_place *p, MR_LOCAL_PTR const mr_u32 *part) {
    const mr_pnm_vec v = mr_pnm_vec_of(p->d);
    if (!v.reduce || p->one)
        return;
    MR_EACH(r, v.count) {
        mr_u32 own[MR_PNM_ROW_WORDS];
        for (mr_i32 j = 0; j < MR_PNM_ROW_WORDS; j++)
            own[j] = part[r * MR_PNM_ROW_WORDS + j];
        mr_pnm_vec_put(p, &v, v.to * MR_PNM_ROW_WORDS + r, mr_pnm_scalar(v.reduce, own));
    }
}

/* ---- Operands ------------------------------------------------------------------------------- */

MR_FN mr_u32 mr_pnm_bf16(mr_u32 x) {
    if ((x & 0x7FFFFFFFu) > MR_PNM_INF)
        return 0x7FC0;
    return (x + 0x7FFFu + ((x >> 16) & 1u)) >> 16;
}

MR_FN mr_u32 mr_pnm_pack(mr_u32 code) {
    mr_i32 e = (mr_i32)(code >> 7) & 255;
    if (e == 0)
        e = -600;
    if (e == 255)
        e = 1500;
    return (code & 127u) | (code >> 15) << 17 | (mr_u32)e << 19;
}

/* bf16's exponent of a packed operand. */
MR_FN mr_i32 mr_pnm_exponent(mr_u32 packed) {
    mr_i32 e = (mr_i32)packed >> 19;
    return e < 0 ? 0 : e > 255 ? 255 : e;
}

/* ---- WSTORE, WLOAD -------------------------------------------------------------------------- */

/* Each word of a column is two codes, of a wide one a float32. */
MR_FN void mr_pnm_wload(const mr_pnm_place *p, MR_GLOBAL const mr_u32 *from) {
    mr_i32 columns = MR_PNM_GET(p->d, WLOAD_COLUMNS), col = MR_PNM_GET(p->d, WLOAD_COL);
    MR_EACH(e, columns * MR_PNM_PES * MR_PNM_STEPS) {
        mr_i32 c = e / MR_PNM_STEPS / MR_PNM_PES, pe = e / MR_PNM_STEPS % MR_PNM_PES;
        mr_i32 l0 = e % MR_PNM_STEPS * MR_PNM_STEP, at = (c * MR_PNM_PES + pe) * MR_PNM_ROW_WORDS;
        MR_GLOBAL mr_u32 *to = p->bank + pe * MR_PNM_BANK_WORDS + (col + c) * MR_PNM_ROW_WORDS;
        for (mr_i32 l = l0; l < l0 + MR_PNM_STEP; l++)
#ifdef MR_PNM_WIDE
            to[l] = from[at + l];
#else
            to[l] = mr_pnm_pack((from[(at + l) / 2] >> (l % 2 * 16)) & 0xFFFFu);
#endif
    }
}

MR_FN void mr_pnm_wstore(const mr_pnm_place *p, MR_LOCAL_PTR mr_u32 *seen) {
    MR_GLOBAL const mr_u32 *d = p->d;
    mr_i32 kc = MR_PNM_GET(d, WSTORE_KC), rows = MR_PNM_GET(d, WSTORE_LENGTH) / MR_PNM_ROW_WORDS;
    mr_i32 col = MR_PNM_GET(d, WSTORE_COL), first = MR_PNM_GET(d, WSTORE_FIRST);
    mr_i32 transposed = MR_PNM_GET(d, WSTORE_TRANSPOSED), x = MR_PNM_GET(d, WSTORE_X);
    mr_i32 stride = MR_PNM_GET_SIGNED(d, WSTORE_X_STRIDE);
    (void)seen;
    MR_EACH(e, MR_PNM_GET(d, WSTORE_VECTORS) * rows * MR_PNM_STEPS) {
        mr_i32 j0 = e % MR_PNM_STEPS * MR_PNM_STEP, i = e / MR_PNM_STEPS / rows;
        mr_i32 row = e / MR_PNM_STEPS % rows, at = first + i;
        for (mr_i32 j = j0; j < j0 + MR_PNM_STEP; j++) {
            mr_i32 m = transposed ? row * MR_PNM_ROW_WORDS + j : at;
            mr_i32 k = transposed ? at : row * MR_PNM_ROW_WORDS + j;
            mr_u32 v = p->scratch[(x + i * stride + row) * MR_PNM_ROW_WORDS + j];
#ifndef MR_PNM_WIDE
            v = mr_pnm_bf16(v);
            seen[(v >> 7) & 255u] = 1;
            v = mr_pnm_pack(v);
#endif
            p->bank[m % MR_PNM_PES * MR_PNM_BANK_WORDS +
                    (col + m / MR_PNM_PES * kc) * MR_PNM_ROW_WORDS + k] = v;
        }
    }
}

MR_FN void mr_pnm_wstore_end(const mr_pnm_place *p, MR_LOCAL_PTR const mr_u32 *seen) {
    MR_ONE {
        MR_GLOBAL mr_u32 *reg = p->wreg + MR_PNM_GET(p->d, WSTORE_WREG);
        mr_u32 low = MR_PNM_GET(p->d, WSTORE_RESET) ? 0 : *reg, e = 254;
#ifdef MR_PNM_WIDE
        e = low;
#endif
        while (e > low && !seen[e])
            e--;
        *reg = e;
    }
}

/* ---- MATVEC --------------------------------------------------------------------------------- */

typedef struct mr_pnm_matvec {
    mr_i32 kc, vectors, outputs, col, wexp, bias, accum, relu, bias_row;
    mr_i32 y, y_stride, old, old_stride;
} mr_pnm_matvec;

MR_FN mr_pnm_matvec mr_pnm_matvec_of(const mr_pnm_place *p) {
    MR_GLOBAL const mr_u32 *d = p->d;
    mr_pnm_matvec v;
    v.kc = MR_PNM_GET(d, MATVEC_KC);
    v.vectors = MR_PNM_GET(d, MATVEC_VECTORS);
    v.outputs = MR_PNM_GET(d, MATVEC_OUTPUTS);
    v.col = MR_PNM_GET(d, MATVEC_COL);
    v.wexp = MR_PNM_GET(d, MATVEC_WEXP);
    if (MR_PNM_GET(d, MATVEC_USE_WREG))
        v.wexp = (mr_i32)p->wreg[v.wexp];
    v.bias = MR_PNM_GET(d, MATVEC_BIAS);
    v.accum = MR_PNM_GET(d, MATVEC_ACCUM);
    v.relu = MR_PNM_GET(d, MATVEC_RELU);
    v.bias_row = MR_PNM_GET(d, MATVEC_BIAS_ROW);
    v.y = MR_PNM_GET(d, MATVEC_Y);
    v.y_stride = MR_PNM_GET_SIGNED(d, MATVEC_Y_STRIDE);
    v.old = MR_PNM_GET(d, MATVEC_OLD);
    v.old_stride = MR_PNM_GET_SIGNED(d, MATVEC_OLD_STRIDE);
    return v;
}

/* The vectors' columns, one after the other, as operands; top: the largest exponent in each. */
MR_FN void mr_pnm_activations(const mr_pnm_place *p, MR_LOCAL_PTR mr_u32 *top) {
    MR_GLOBAL const mr_u32 *d = p->d;
    mr_i32 kc = MR_PNM_GET(d, MATVEC_KC), run = MR_PNM_GET(d, MATVEC_X_RUN);
    mr_i32 x = MR_PNM_GET(d, MATVEC_X), stride = MR_PNM_GET_SIGNED(d, MATVEC_X_STRIDE);
    mr_i32 jump = MR_PNM_GET_SIGNED(d, MATVEC_X_JUMP);
    MR_EACH(e, MR_PNM_GET(d, MATVEC_VECTORS) * kc) {
        mr_i32 n = e / kc, c = e % kc;
        MR_GLOBAL const mr_u32 *from =
            p->scratch + (x + n * stride + c / run * jump + c % run) * MR_PNM_ROW_WORDS;
        MR_GLOBAL mr_u32 *to = p->acts + e * MR_PNM_ROW_WORDS;
        mr_i32 most = 0;
        for (mr_i32 l = 0; l < MR_PNM_ROW_WORDS; l++) {
#ifdef MR_PNM_WIDE
            to[l] = from[l];
#else
            mr_u32 code = mr_pnm_bf16(from[l]), packed = mr_pnm_pack(code);
            mr_i32 exponent = (mr_i32)(code >> 7) & 255;
            most = exponent < 255 && exponent > most ? exponent : most;
            to[l] = (packed & ~127u) | (packed & 127u) << 7;
#endif
        }
        top[e] = (mr_u32)most;
    }
}

MR_FN void mr_pnm_exponents(const mr_pnm_place *p, MR_LOCAL_PTR const mr_u32 *top,
                            MR_LOCAL_PTR mr_u32 *xexp) {
    mr_i32 kc = MR_PNM_GET(p->d, MATVEC_KC);
    MR_EACH(n, MR_PNM_GET(p->d, MATVEC_VECTORS)) {
        mr_u32 most = 0;
        for (mr_i32 c = 0; c < kc; c++)
            most = top[n * kc + c] > most ? top[n * kc + c] : most;
        xexp[n] = most;
    }
}

#ifdef MR_PNM_WIDE

MR_FN mr_u32 mr_pnm_dot(const mr_pnm_place *p, MR_GLOBAL const mr_u32 *w, MR_GLOBAL const mr_u32 *x,
                        mr_i32 k, mr_i32 wexp, mr_i32 xexp) {
    double sum = 0;
    (void)p, (void)wexp, (void)xexp;
    for (mr_i32 i = 0; i < k; i++)
        sum += (double)mr_as_f32(w[i]) * (double)mr_as_f32(x[i]);
    return mr_pnm_canonical(mr_as_u32((float)sum));
}

#else

/* Sum of k products; shifts are `base` minus the exponents. The sign of *low is set if one was
 * negative, and the sum worth nothing. */
MR_HOT mr_i64 mr_pnm_sum(MR_GLOBAL const mr_u32 *table, MR_GLOBAL const mr_u32 *w,
                         MR_GLOBAL const mr_u32 *x, mr_i32 k, mr_i32 base, mr_i32 *low) {
    mr_i64 acc = 0;
    mr_i32 any = 0;
    for (mr_i32 i = 0; i < k; i++) {
        mr_u32 t = w[i] + x[i];
        mr_i32 shift = base - ((mr_i32)t >> 19);
        mr_u64 product = (mr_u64)table[t & 0x3FFFu] << MR_PNM_GUARD_BITS;
        mr_i64 sign = (mr_i64)((mr_i32)(t << 14) >> 31);
        any |= shift;
        acc += ((mr_i64)(product >> (mr_u64)(shift > 63 ? 63 : shift & 63)) ^ sign) - sign;
    }
    *low = any;
    return acc;
}

/* With infinities, NaN, weights above wexp: the result where it is none of a sum, else 0. */
MR_FN mr_u32 mr_pnm_odd_sum(const mr_pnm_place *p, MR_GLOBAL const mr_u32 *w,
                            MR_GLOBAL const mr_u32 *x, mr_i32 k, mr_i32 base, mr_i64 *sum) {
    mr_i32 nan = 0, up = 0, down = 0;
    mr_i64 acc = 0;
    for (mr_i32 i = 0; i < k; i++) {
        mr_i32 ew = mr_pnm_exponent(w[i]), ex = mr_pnm_exponent(x[i]), shift = base - ew - ex;
        mr_u32 t = w[i] + x[i], sign = (t >> 17) & 1u;
        if ((ew == 255 && ((w[i] & 127u) || ex == 0)) ||
            (ex == 255 && ((x[i] & 0x3F80u) || ew == 0))) {
            nan = 1;
        } else if (ew == 255 || ex == 255) {
            up |= !sign;
            down |= (mr_i32)sign;
        } else if (ew && ex) {
            mr_i64 product = (mr_i64)p->table[t & 0x3FFFu] << MR_PNM_GUARD_BITS;
            if (shift < 0) {
                p->flags[0] = 1;
                shift = 0;
            }
            product = shift < 35 ? product >> shift : 0;
            acc += sign ? -product : product;
        }
    }
    *sum = (mr_i64)((mr_u64)acc << (64 - MR_PNM_ACC_BITS)) >> (64 - MR_PNM_ACC_BITS);
    if (nan || (up && down))
        return MR_PNM_NAN;
    return up ? MR_PNM_INF : down ? 0x80000000u | MR_PNM_INF : 0;
}

MR_FN mr_u32 mr_pnm_dot(const mr_pnm_place *p, MR_GLOBAL const mr_u32 *w, MR_GLOBAL const mr_u32 *x,
                        mr_i32 k, mr_i32 wexp, mr_i32 xexp) {
    mr_i32 low = 0;
    mr_u32 odd = 0;
    mr_i64 acc = mr_pnm_sum(p->table, w, x, k, wexp + xexp, &low);
    if (low < 0)
        odd = mr_pnm_odd_sum(p, w, x, k, wexp + xexp, &acc);
    return odd ? odd : mr_pnm_float(acc, wexp + xexp - 254 - 14 - MR_PNM_GUARD_BITS);
}

#endif

/* Output m of vector n. */
MR_FN void mr_pnm_output(const mr_pnm_place *p, const mr_pnm_matvec *v, mr_i32 m, mr_i32 n,
                         mr_i32 xexp) {
    MR_GLOBAL const mr_u32 *w = p->bank + m % MR_PNM_PES * MR_PNM_BANK_WORDS +
                                (v->col + m / MR_PNM_PES * v->kc) * MR_PNM_ROW_WORDS;
    mr_i32 k = v->kc * MR_PNM_ROW_WORDS;
    mr_u32 y = mr_pnm_dot(p, w, p->acts + n * k, k, v->wexp, xexp);
    if (v->bias)
        y = mr_pnm_add(y, p->scratch[v->bias_row * MR_PNM_ROW_WORDS + m]);
    if (v->accum)
        y = mr_pnm_add(y, p->scratch[(v->old + n * v->old_stride) * MR_PNM_ROW_WORDS + m]);
    if (v->relu && mr_as_f32(y) <= 0.0f)
        y = 0;
    if (!mr_pnm_finite(y))
        p->flags[1] = 1;
    p->scratch[(v->y + n * v->y_stride) * MR_PNM_ROW_WORDS + m] = y;
}

MR_FN void mr_pnm_outputs(const mr_pnm_place *p, MR_LOCAL_PTR const mr_u32 *xexp) {
    const mr_pnm_matvec v = mr_pnm_matvec_of(p);
    if (p->one) {
        MR_ONE {
            for (mr_i32 i = 0; i < v.outputs * v.vectors; i++)
                mr_pnm_output(p, &v, i / v.vectors, i % v.vectors, (mr_i32)xexp[i % v.vectors]);
        }
        return;
    }
    MR_EACH(i, v.outputs * v.vectors) {
        mr_i32 m = i / v.vectors, n = i % v.vectors;
        mr_pnm_output(p, &v, m, n, (mr_i32)xexp[n]);
    }
}

/* ---- LOAD, STORE, SEND ---------------------------------------------------------------------- */

MR_FN void mr_pnm_copy(MR_GLOBAL mr_u32 *to, MR_GLOBAL const mr_u32 *from, mr_i32 rows) {
    MR_EACH(i, rows * MR_PNM_ROW_WORDS) { to[i] = from[i]; }
}

MR_FN void mr_pnm_send(const mr_pnm_place *p, MR_GLOBAL mr_u32 *scratch) {
    mr_i32 words = MR_PNM_GET(p->d, SEND_ROWS) * MR_PNM_ROW_WORDS;
    MR_GLOBAL const mr_u32 *from = p->scratch + MR_PNM_GET(p->d, SEND_ROW) * MR_PNM_ROW_WORDS;
    MR_GLOBAL mr_u32 *to = scratch + MR_PNM_GET(p->d, SEND_GROUP) * MR_PNM_SCRATCH_WORDS +
                           MR_PNM_GET(p->d, SEND_TO) * MR_PNM_ROW_WORDS;
    if (!p->one) {
        mr_pnm_copy(to, from, words / MR_PNM_ROW_WORDS);
        return;
    }
    MR_ONE { /* within a group, over its own rows */
        for (mr_i32 i = 0; i < words; i++) {
            mr_i32 at = to > from ? words - 1 - i : i;
            to[at] = from[at];
        }
    }
}

/* ---- A stream of descriptors ---------------------------------------------------------------- */

/* Memory of a work group. */
#define MR_PNM_LOCAL_WORDS (MR_PNM_ACT_COLUMNS + 256)

/* Descriptors op..end-1. */
MR_FN void mr_pnm_stream(MR_GLOBAL const mr_u32 *ops, mr_u32 op, mr_u32 end,
                         MR_GLOBAL mr_u32 *scratch, MR_GLOBAL mr_u32 *bank, MR_GLOBAL mr_u32 *wreg,
                         MR_GLOBAL mr_u32 *acts, MR_GLOBAL const mr_u32 *tables,
                         MR_GLOBAL const mr_i64 *fn, MR_GLOBAL mr_u32 *flags,
                         MR_GLOBAL mr_u32 *memory, MR_LOCAL_PTR mr_u32 *words) {
    MR_LOCAL_PTR mr_u32 *wide = words, *narrow = words + MR_PNM_ACT_COLUMNS;
    for (; op < end; op++) {
        MR_GLOBAL const mr_u32 *d = ops + op * (MR_PNM_DESC_BYTES / 4);
        mr_i32 type = (mr_i32)(d[0] & 255u), group = (mr_i32)(d[15] & 255u);
        MR_GLOBAL mr_u32 *at = memory + (((mr_u64)d[3] << 32 | d[2]) >> 2);
        mr_pnm_place p;
        p.d = d;
        p.scratch = scratch + group * MR_PNM_SCRATCH_WORDS;
        p.bank = bank + group * MR_PNM_PES * MR_PNM_BANK_WORDS;
        p.wreg = wreg + group * MR_PNM_WREGS;
        p.acts = acts + group * MR_PNM_ACT_WORDS;
        p.flags = flags + group * 2;
        p.table = tables + d[14];
        p.fn = fn;
        p.one = (mr_i32)(d[15] >> 8) & 1;

        if (type == MR_PNM_DESC_LOAD)
            mr_pnm_copy(p.scratch + MR_PNM_GET(d, LOAD_ROW) * MR_PNM_ROW_WORDS, at,
                        MR_PNM_GET(d, LOAD_ROWS));
        else if (type == MR_PNM_DESC_STORE)
            mr_pnm_copy(at, p.scratch + MR_PNM_GET(d, STORE_ROW) * MR_PNM_ROW_WORDS,
                        MR_PNM_GET(d, STORE_ROWS));
        else if (type == MR_PNM_DESC_WLOAD)
            mr_pnm_wload(&p, at);
        else if (type == MR_PNM_DESC_SEND)
            mr_pnm_send(&p, scratch);
        else if (type == MR_PNM_DESC_VEC)
            mr_pnm_vec_rows(&p, wide);
        else if (type == MR_PNM_DESC_MATVEC)
            mr_pnm_activations(&p, wide);
        else if (type == MR_PNM_DESC_WSTORE)
            MR_EACH(e, 256) { narrow[e] = 0; }
        MR_BARRIER;
        if (type == MR_PNM_DESC_VEC)
            mr_pnm_vec_scalars(&p, wide);
        else if (type == MR_PNM_DESC_MATVEC)
            mr_pnm_exponents(&p, wide, narrow);
        else if (type == MR_PNM_DESC_WSTORE)
            mr_pnm_wstore(&p, narrow);
        MR_BARRIER;
        if (type == MR_PNM_DESC_MATVEC)
            mr_pnm_outputs(&p, narrow);
        else if (type == MR_PNM_DESC_WSTORE)
            mr_pnm_wstore_end(&p, narrow);
        MR_BARRIER;
    }
}

#endif
