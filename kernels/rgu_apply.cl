/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apply mode on compute devices: y = W x without forming W, the integers of docs/rgu-apply.md and
 * nothing else, so that every device agrees with the RTL bit for bit.
 *
 * A job is three launches over the records of chunk rows o0..o0+no-1 (all columns, all terms):
 * rgu_tables (rgu_tile.cl, i0 = 0, ni = chunks_in), rgu_spin, rgu_apply. One call of rgu_apply does
 * whole chunk rows, any number of them; rows beyond need the next three launches.
 */
#include "kernels/mr_portable.h"
#include "kernels/mr_round.h"
#include "models/golden/rgu_spin.h"

#define MR_APPLY_D 32    /* 2^(n/2) at n = 10 */
#define MR_APPLY_DD 1024 /* entries of a matrix */
#define MR_APPLY_STRIP 8 /* columns of a product one lane makes at a time */

/* Round half away from zero after dropping s bits. */
MR_FN mr_i64 mr_rna(mr_i64 x, mr_i32 s) {
    if (s == 0)
        return x;
    if (s > 62)
        return 0;
    return (x + ((mr_i64)1 << (s - 1)) - (x < 0 ? 1 : 0)) >> s;
}

MR_FN mr_u32 mr_spin_blade(mr_i32 p, mr_i32 z) {
    mr_u32 pz = (mr_u32)(p << MR_SPIN_BITS | z);
    return MR_SPIN_BLADE(pz);
}

MR_FN mr_u32 mr_spin_eps(mr_u32 k) { return MR_SPIN_EPS(k, mr_parity); }

/*
 * Tables of a record to its matrices. Group (record, side); side 0: r[record][2^(n-1)] to
 * rm[record][2^n], row-major, and any[record] = whether it is nonzero; side 1: s to sm.
 */
MR_KERNEL_12(rgu_spin, MR_GLOBAL const mr_u32 *, image, MR_GLOBAL const mr_i32 *, r,
             MR_GLOBAL const mr_i32 *, s, MR_GLOBAL mr_i32 *, rm, MR_GLOBAL mr_i32 *, sm,
             MR_GLOBAL mr_i32 *, any, mr_i32, n, mr_i32, terms, mr_i32, chunks_in, mr_i32, o0,
             mr_i32, i0, mr_i32, ni) {
    MR_LOCAL mr_i32 v[MR_APPLY_DD];
    MR_LOCAL mr_i32 seen[1];
    mr_i32 chunk = mr_group(0) / terms, term = mr_group(0) % terms, side = mr_group(1);
    mr_i32 dd = 1 << (n / 2), d = 1 << n, rows = d / 2;
    mr_i64 record = ((mr_i64)(o0 + chunk / ni) * chunks_in + i0 + chunk % ni) * terms + term;
    mr_u32 odd = side ? 0 : (image[record * ((8 + 2 * n * (n - 1) + 63) / 64 * 16)] >> 30) & 1u;
    MR_GLOBAL const mr_i32 *table = (side ? s : r) + (mr_i64)mr_group(0) * rows;
    MR_GLOBAL mr_i32 *out = (side ? sm : rm) + (mr_i64)mr_group(0) * d;

    MR_ONE { seen[0] = 0; }
    MR_BARRIER;
    MR_EACH(x, d) {
        mr_u32 k = mr_spin_blade(x >> (n / 2), x & (dd - 1)), neg = mr_spin_eps(k);
        mr_i32 e = mr_parity(k) == odd ? table[k & (mr_u32)(rows - 1)] : 0;
        if (!side) /* the table of r carries (-1)^s(K,K) */
            neg ^= ((mr_u32)mr_popcount(k) >> 1) & 1u;
        if (e)
            seen[0] = 1;
        v[x] = neg ? -e : e;
    }
    MR_BARRIER;
    for (mr_i32 h = 1; h < dd; h <<= 1) {
        MR_EACH(b, rows) {
            mr_i32 at = (b & ~(h - 1)) * 2 + (b & (h - 1)), p = v[at], q = v[at + h];
            v[at] = p + q;
            v[at + h] = p - q;
        }
        MR_BARRIER;
    }
    MR_EACH(x, d) {
        mr_i32 p = x >> (n / 2), a = x & (dd - 1);
        out[a * dd + (a ^ p)] = v[x];
    }
    if (!side) {
        MR_ONE { any[mr_group(0)] = seen[0]; }
    }
}

/* sum * 2^exp * scale as float32: 29 bits are kept before the one rounding. */
MR_FN mr_u32 mr_apply_float(mr_i64 sum, mr_i32 exp, float scale, mr_i32 sat) {
    mr_u64 mag = sum < 0 ? (mr_u64)0 - (mr_u64)sum : (mr_u64)sum;
    mr_i32 drop = mag ? 35 - mr_clz64(mag) : 0;
    if (drop > 0) {
        mag = (mr_u64)mr_rna((mr_i64)mag, drop);
        exp += drop;
    }
    return mr_round_weight(sum < 0 ? -(mr_i32)mag : (mr_i32)mag, exp, scale, 5, sat);
}

/* A float32 as an integer, x = result * 2^(exp - 17). */
MR_FN mr_i32 mr_apply_fixed(mr_u32 x, mr_i32 exp) {
    mr_i32 field = (mr_i32)(x >> 23) & 255, up = (field ? field : 1) - 133 - exp;
    mr_i64 m = (mr_i64)((x & 0x7FFFFFu) | (field ? 0x800000u : 0u));
    m = up >= 0 ? m << up : mr_rna(m, -up);
    return (mr_i32)(x >> 31 ? -m : m);
}

/* strip[c] = sum over b of row[b] m[b][c], MR_APPLY_STRIP columns. */
MR_FN void mr_apply_strip(MR_LOCAL_PTR const mr_i32 *row, MR_LOCAL_PTR const mr_i32 *m, mr_i32 dd,
                          mr_i64 *strip) {
    for (mr_i32 c = 0; c < MR_APPLY_STRIP; c++)
        strip[c] = 0;
    for (mr_i32 b = 0; b < dd; b++)
        for (mr_i32 c = 0; c < MR_APPLY_STRIP; c++)
            strip[c] += (mr_i64)row[b] * m[b * dd + c];
}

/*
 * y = W x. Group (vector, chunk row - o0). rm, sm, any: of the records of chunk rows o0.. on, as
 * rgu_spin wrote them. src[0] is element 0 of vector 0, dst[0] is y[0] of vector 0; the strides
 * between vectors are in bytes, multiples of 4. mode: bit 4 saturate, bit 5 row scale (else scale).
 */
MR_KERNEL_17(rgu_apply, MR_GLOBAL const mr_u32 *, image, MR_GLOBAL const mr_i32 *, rm,
             MR_GLOBAL const mr_i32 *, sm, MR_GLOBAL const mr_i32 *, any, MR_GLOBAL const float *,
             row_scale, MR_GLOBAL const mr_u32 *, src, MR_GLOBAL mr_u32 *, dst, mr_i32, n, mr_i32,
             terms, mr_i32, chunks_in, mr_i32, o0, mr_i32, d_in, mr_i32, d_out, mr_u32, src_stride,
             mr_u32, dst_stride, mr_i32, mode, float, scale) {
    MR_LOCAL mr_i64 acc[MR_APPLY_DD];
    MR_LOCAL mr_i32 x[MR_APPLY_DD];
    MR_LOCAL mr_i32 r[MR_APPLY_DD];
    MR_LOCAL mr_i32 s[MR_APPLY_DD];
    MR_LOCAL mr_i32 t[MR_APPLY_DD];
    MR_LOCAL mr_i32 seen[1];
    mr_i32 dd = 1 << (n / 2), d = 1 << n, rows = d / 2, o = o0 + mr_group(1);
    mr_i32 sat = (mode >> 4) & 1, scaled = (mode >> 5) & 1;
    mr_i32 strips = dd / MR_APPLY_STRIP; /* a row */
    MR_GLOBAL const mr_u32 *in = src + (mr_i64)mr_group(0) * (src_stride / 4);
    MR_GLOBAL mr_u32 *out = dst + (mr_i64)mr_group(0) * (dst_stride / 4);
    mr_i32 acc_any = 0, acc_exp = 0, invalid = 0; /* value = acc * 2^(acc_exp - 31) */

    MR_EACH(k, d) { acc[k] = 0; }
    for (mr_i32 i = 0; i < chunks_in; i++) {
        /* the chunk's largest magnitude; integer order is float order */
        MR_EACH(k, d) {
            mr_i32 at = i * d + k;
            t[k] = at < d_in ? (mr_i32)(in[at] & 0x7FFFFFFFu) : 0;
        }
        MR_BARRIER;
        for (mr_i32 h = rows; h > 0; h >>= 1) {
            MR_EACH(k, h) { t[k] = t[k] > t[k + h] ? t[k] : t[k + h]; }
            MR_BARRIER;
        }
        mr_u32 max = (mr_u32)t[0];
        MR_BARRIER;
        if (max >= 0x7F800000u)
            invalid = 1;
        if (max == 0 || max >= 0x7F800000u)
            continue;
        mr_i32 exp = max >> 23 ? (mr_i32)(max >> 23) - 126 : -85 - mr_clz64((mr_u64)max);
        MR_EACH(e, d) { /* blade groups, then their transform, then the matrix */
            mr_u32 k = mr_spin_blade(e >> (n / 2), e & (dd - 1));
            mr_i32 at = i * d + (mr_i32)k;
            mr_i32 v = at < d_in ? mr_apply_fixed(in[at], exp) : 0;
            t[e] = mr_spin_eps(k) ? -v : v;
        }
        MR_BARRIER;
        for (mr_i32 h = 1; h < dd; h <<= 1) {
            MR_EACH(b, rows) {
                mr_i32 at = (b & ~(h - 1)) * 2 + (b & (h - 1)), p = t[at], q = t[at + h];
                t[at] = p + q;
                t[at + h] = p - q;
            }
            MR_BARRIER;
        }
        MR_EACH(e, d) {
            mr_i32 p = e >> (n / 2), a = e & (dd - 1);
            x[a * dd + (a ^ p)] = t[e];
        }
        for (mr_i32 term = 0; term < terms; term++) {
            mr_i64 local_record = ((mr_i64)mr_group(1) * chunks_in + i) * terms + term;
            mr_i64 record = ((mr_i64)o * chunks_in + i) * terms + term;
            mr_i32 e = (mr_i32)image[record * ((8 + 2 * n * (n - 1) + 63) / 64 * 16) + 1] + exp;
            mr_i32 down_acc = 0, down_u = 6;
            if (!any[local_record])
                continue;
            if (!acc_any) {
                acc_exp = e;
            } else if (e > acc_exp) {
                down_acc = e - acc_exp;
                acc_exp = e;
            } else {
                down_u += acc_exp - e;
            }
            MR_BARRIER; /* everybody is done with the matrices before */
            MR_EACH(k, d) {
                r[k] = rm[local_record * d + k];
                s[k] = sm[local_record * d + k];
            }
            MR_ONE { seen[0] = 0; }
            MR_BARRIER;
            MR_EACH(j, dd * strips) {
                mr_i32 a = j / strips, c0 = j % strips * MR_APPLY_STRIP;
                mr_i64 strip[MR_APPLY_STRIP];
                mr_apply_strip(r + a * dd, x + c0, dd, strip);
                for (mr_i32 c = 0; c < MR_APPLY_STRIP; c++)
                    t[a * dd + c0 + c] = (mr_i32)mr_rna(strip[c], 18);
            }
            MR_BARRIER;
            MR_EACH(j, dd * strips) {
                mr_i32 a = j / strips, c0 = j % strips * MR_APPLY_STRIP, some = 0;
                mr_i64 strip[MR_APPLY_STRIP];
                mr_apply_strip(t + a * dd, s + c0, dd, strip);
                for (mr_i32 c = 0; c < MR_APPLY_STRIP; c++) {
                    mr_i32 at = a * dd + c0 + c;
                    acc[at] = mr_rna(acc[at], down_acc) + mr_rna(strip[c], down_u);
                    some |= acc[at] != 0;
                }
                if (some)
                    seen[0] = 1;
            }
            MR_BARRIER;
            acc_any = seen[0];
        }
        MR_BARRIER;
    }
    /* back to blades: entry (p, a) of the transform lies at acc[a][a^p] */
    MR_BARRIER;
    for (mr_i32 h = 1; h < dd; h <<= 1) {
        MR_EACH(b, rows) {
            mr_i32 p = b / (dd / 2), q = b % (dd / 2), a = (q & ~(h - 1)) * 2 + (q & (h - 1));
            mr_i32 at = a * dd + (a ^ p), at_h = (a + h) * dd + ((a + h) ^ p);
            mr_i64 u = acc[at], v = acc[at_h];
            acc[at] = u + v;
            acc[at_h] = u - v;
        }
        MR_BARRIER;
    }
    MR_EACH(e, d) {
        mr_i32 p = e >> (n / 2), z = e & (dd - 1);
        mr_u32 k = mr_spin_blade(p, z);
        mr_i32 row = o * d + (mr_i32)k;
        mr_i64 v = acc[z * dd + (z ^ p)];
        if (row < d_out)
            out[row] = invalid ? 0x7FC00000u
                               : mr_apply_float(mr_spin_eps(k) ? -v : v, acc_exp - 31 - n / 2,
                                                scaled ? row_scale[row] : scale, sat);
    }
}
