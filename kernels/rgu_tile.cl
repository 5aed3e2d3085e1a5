/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotor generation on compute devices: seed image -> tables -> tile, the integers of
 * docs/rgu-arithmetic.md and nothing else, so that every device agrees with the RTL bit for bit.
 */
#include "kernels/mr_portable.h"
#include "kernels/mr_round.h"
#define MR_RGU_TRIG_TYPE MR_CONSTANT mr_i32
#include "models/golden/rgu_trig.h"

#define MR_RGU_HALF 512 /* largest table: 2^(n-1) at n = 10 */

MR_FN mr_i64 mr_rnh(mr_i64 x, mr_i32 s) { return (x + ((mr_i64)1 << (s - 1))) >> s; }

/* g(M)_i = XOR of M_j, j < i: the sign of e_A e_M is (-1)^parity(A & g(M)). */
MR_FN mr_u32 mr_prefix_parity(mr_u32 m) {
    mr_u32 g = m << 1;
    g ^= g << 1;
    g ^= g << 2;
    g ^= g << 4;
    g ^= g << 8;
    return g;
}

MR_FN mr_u32 mr_rev_parity(mr_u32 blade) { return ((mr_u32)mr_popcount(blade) >> 1) & 1u; }

/* Index bit p is blade bit n-1-p; blade bit `low` follows from even parity. */
MR_FN mr_u32 mr_blade_of(mr_i32 n, mr_i32 low, mr_u32 k) {
    mr_u32 b = 0;
    for (mr_i32 p = 0; p < n - 1 - low; p++)
        b |= ((k >> p) & 1u) << (n - 1 - p);
    return b | mr_parity(b) << low;
}

MR_FN mr_i32 mr_record_bytes(mr_i32 n) { return (8 + 2 * n * (n - 1) + 63) / 64 * 64; }

MR_FN void mr_sincos(mr_i32 v, mr_i32 *c, mr_i32 *s) {
    mr_i32 q = (v >> 14) & 3, a = (v >> 7) & 127, b = v & 127;
    mr_i64 c1 = mr_rgu_trig_c1[a], s1 = mr_rgu_trig_s1[a];
    mr_i64 c2 = mr_rgu_trig_c2[b], s2 = mr_rgu_trig_s2[b];
    mr_i32 c0 = (mr_i32)mr_rnh(c1 * c2 - s1 * s2, 28), s0 = (mr_i32)mr_rnh(s1 * c2 + c1 * s2, 28);
    *c = q == 0 ? c0 : q == 1 ? -s0 : q == 2 ? -c0 : s0;
    *s = q == 0 ? s0 : q == 1 ? c0 : q == 2 ? -s0 : -c0;
}

/*
 * Tables of every record of a block of chunks. Group (record, side): record = (chunk, term) of the
 * block [o0..][i0..i0+ni), side 0 fills r, side 1 fills s, both [chunk][term][2^(n-1)] int32.
 */
MR_KERNEL_9(rgu_tables, MR_GLOBAL const mr_u32 *, image, MR_GLOBAL mr_i32 *, r, MR_GLOBAL mr_i32 *,
            s, mr_i32, n, mr_i32, terms, mr_i32, chunks_in, mr_i32, o0, mr_i32, i0, mr_i32, ni) {
    MR_LOCAL mr_i32 x[MR_RGU_HALF];
    MR_LOCAL mr_i32 y[MR_RGU_HALF];
    mr_i32 chunk = mr_group(0) / terms, term = mr_group(0) % terms, side = mr_group(1);
    mr_i32 planes = n * (n - 1) / 2, entries = 1 << (n - 1);
    mr_i64 record = ((mr_i64)(o0 + chunk / ni) * chunks_in + i0 + chunk % ni) * terms + term;
    MR_GLOBAL const mr_u32 *rec = image + record * (mr_record_bytes(n) / 4);
    MR_GLOBAL const mr_i16 *angles = (MR_GLOBAL const mr_i16 *)(rec + 2) + side * planes;
    mr_u32 w0 = rec[0], odd = (w0 >> 30) & 1u, negative = w0 >> 31;

    MR_ONE { x[0] = side ? 1 << 22 : (mr_i32)(w0 & 0x7FFFFFu); }
    MR_BARRIER;
    for (mr_i32 i = n - 2; i >= 0; i--) {
        mr_i32 q = n - 1 - i, live = 1 << q;
        /* blade bit i+1 was implied by parity until now; it becomes index bit q-1 */
        MR_EACH(k, live) {
            mr_i32 from = k & (live / 2 - 1);
            y[k] = (mr_u32)k >> (q - 1) == mr_parity(from) ? x[from] : 0;
        }
        MR_BARRIER;
        MR_EACH(k, live) { x[k] = y[k]; }
        MR_BARRIER;
        for (mr_i32 j = n - 1; j > i; j--) {
            mr_u32 m = 1u << i | 1u << j;
            mr_i32 stride = 1 << (n - 1 - j), cs, sn;
            mr_sincos(angles[i * (2 * n - i - 1) / 2 + (j - i - 1)], &cs, &sn);
            MR_EACH(k, live) {
                mr_u32 b = mr_blade_of(n, i, (mr_u32)k);
                mr_i64 t = (mr_i64)sn * x[k ^ stride];
                if (mr_parity(m & mr_prefix_parity(b ^ m)))
                    t = -t;
                y[k] = (mr_i32)mr_rnh((mr_i64)cs * x[k] + t, 20);
            }
            MR_BARRIER;
            MR_EACH(k, live) { x[k] = y[k]; }
            MR_BARRIER;
        }
    }
    MR_EACH(k, entries) {
        mr_u32 b = mr_blade_of(n, 0, (mr_u32)k), neg = side ? 0u : negative;
        if (!side && odd) { /* r e_0 */
            neg ^= mr_parity(b >> 1);
            b ^= 1u;
        }
        neg ^= mr_rev_parity(b);
        mr_i32 v = (mr_i32)mr_rnh(x[k], side ? 4 : 2);
        mr_i64 at = (mr_i64)mr_group(0) * entries + (mr_i32)(b & (mr_u32)(entries - 1));
        if (side)
            s[at] = neg ? -v : v;
        else
            r[at] = neg ? -v : v;
    }
}

#define MR_RGU_MS 16 /* M values of one parity that share their high bits */

/*
 * Weights of a block of chunks inside the window [row0,row1) x [col0,col1). Group (M >> 5, parity
 * of I^J, chunk): the 16 M of that parity with those high bits, which are the 32-column lines (I,
 * (I ^ M) >> 5). dst[0] is element (row0, col0); dst_stride in bytes.
 */
MR_KERNEL_18(rgu_tile, MR_GLOBAL const mr_u32 *, image, MR_GLOBAL const mr_i32 *, r,
             MR_GLOBAL const mr_i32 *, s, MR_GLOBAL const float *, row_scale, MR_GLOBAL mr_u8 *,
             dst, mr_i32, n, mr_i32, terms, mr_i32, chunks_in, mr_i32, o0, mr_i32, i0, mr_i32, ni,
             mr_i32, row0, mr_i32, row1, mr_i32, col0, mr_i32, col1, mr_u32, dst_stride, mr_i32,
             mode, float, scale) {
    MR_LOCAL mr_i32 v[MR_RGU_MS * MR_RGU_HALF];
    mr_i32 entries = 1 << (n - 1), d = 2 * entries, m_hi = mr_group(0), odd = mr_group(1);
    mr_i32 chunk = mr_group(2), o = o0 + chunk / ni, i = i0 + chunk % ni;
    mr_i32 format = mode & 15, sat = (mode >> 4) & 1, scaled = (mode >> 5) & 1;
    MR_GLOBAL const mr_u32 *rec =
        image + ((mr_i64)o * chunks_in + i) * terms * (mr_record_bytes(n) / 4);
    mr_i32 e = (mr_i32)rec[1], mine = 0, others = 0;
    for (mr_i32 t = 0; t < terms; t++) {
        if ((mr_i32)((rec[t * (mr_record_bytes(n) / 4)] >> 30) & 1u) == odd)
            mine++;
        else
            others++;
    }
    if (mine == 0) /* the other parity's group writes the zeros */
        return;

    MR_EACH(x, MR_RGU_MS * entries) {
        mr_i32 k = x & (entries - 1), lo = 2 * (x >> (n - 1));
        mr_u32 m = (mr_u32)(m_hi << 5 | lo);
        m |= mr_parity(m) ^ (mr_u32)odd;
        mr_u32 blade = (mr_u32)k | (mr_parity(k) ^ (mr_u32)odd) << (n - 1);
        mr_i32 sum = 0;
        for (mr_i32 t = 0; t < terms; t++) {
            if ((mr_i32)((rec[t * (mr_record_bytes(n) / 4)] >> 30) & 1u) != odd)
                continue;
            mr_i64 base = ((mr_i64)chunk * terms + t) * entries;
            sum += (mr_i32)mr_rnh((mr_i64)r[base + k] * s[base + ((k ^ (mr_i32)m) & (entries - 1))],
                                  14);
        }
        v[x] = mr_parity(blade & mr_prefix_parity(m)) ? -sum : sum;
    }
    MR_BARRIER;
    for (mr_i32 h = 1; h < entries; h <<= 1) {
        MR_EACH(b, MR_RGU_MS * entries / 2) {
            mr_i32 at = (b & ~(h - 1)) * 2 + (b & (h - 1)), p = v[at], q = v[at + h];
            v[at] = p + q;
            v[at + h] = p - q;
        }
        MR_BARRIER;
    }
    MR_EACH(x, d * 32) {
        mr_i32 row = x >> 5, col = ((row >> 5 ^ m_hi) << 5) | (x & 31);
        mr_u32 m = (mr_u32)(row ^ col), g = mr_prefix_parity(m), neg;
        mr_i32 gr = o * d + row, gc = i * d + col, w = 0;
        if (gr < row0 || gr >= row1 || gc < col0 || gc >= col1)
            continue;
        if ((mr_i32)mr_parity(m) == odd) {
            mr_i32 mirrored = col >> (n - 1), u = mirrored ? col ^ (d - 1) : col;
            neg = mr_parity((mr_u32)u & g) ^ ((mr_u32)odd & mr_parity(u));
            if (mirrored)
                neg ^= mr_parity(g & (mr_u32)(d - 1)) ^ ((mr_u32)odd & (mr_u32)(n + 1));
            w = v[(((mr_i32)m & 31) >> 1) * entries + u];
            w = neg & 1u ? -w : w;
        } else if (others) {
            continue;
        }
        mr_u32 code = mr_round_weight(w, e - 24, scaled ? row_scale[gr] : scale, format, sat);
        mr_i64 at = (mr_i64)(gr - row0) * dst_stride;
        if (format == 5)
            ((MR_GLOBAL mr_u32 *)(dst + at))[gc - col0] = code;
        else if (format < 2)
            ((MR_GLOBAL mr_u16 *)(dst + at))[gc - col0] = (mr_u16)code;
        else
            (dst + at)[gc - col0] = (mr_u8)code;
    }
}
