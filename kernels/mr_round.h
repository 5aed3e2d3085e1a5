/* SPDX-License-Identifier: Apache-2.0 */
/* The one rounding of a generated weight (docs/rgu-arithmetic.md, "Formats"). */
#ifndef MR_ROUND_H
#define MR_ROUND_H
#include "kernels/mr_portable.h"

/* m * 2^exp in units of 2^lsb, to nearest even. m < 2^63, result fits. */
MR_FN mr_u64 mr_to_units(mr_u64 m, mr_i32 exp, mr_i32 lsb) {
    mr_i32 drop = lsb - exp;
    if (drop <= 0)
        return m << (-drop & 63);
    if (drop > 63)
        return 0;
    mr_u64 q = m >> drop, rest = m & (((mr_u64)1 << drop) - 1), tie = (mr_u64)1 << (drop - 1);
    return q + (rest > tie || (rest == tie && (q & 1)) ? 1 : 0);
}

MR_FN mr_u32 mr_round_int8(mr_u32 neg, mr_u64 m, mr_i32 exp) {
    mr_u64 limit = neg ? 128 : 127;
    mr_u64 q = 64 - mr_clz64(m) + exp > 9 ? 512 : mr_to_units(m, exp, 0);
    if (q > limit)
        q = limit;
    return (mr_u32)(neg ? 256 - q : q) & 0xFFu;
}

/*
 * Code of  w * 2^exp * scale  in `format` (bf16, fp16, e4m3, e5m2, int8, fp32 = 0..5), overflow to
 * the largest finite value when sat, else to Inf (NaN for e4m3). Zero is +0. scale is finite.
 */
MR_FN mr_u32 mr_round_weight(mr_i32 w, mr_i32 exp, float scale, mr_i32 format, mr_i32 sat) {
    mr_u32 bits = mr_as_u32(scale), field = (bits >> 23) & 0xFFu;
    mr_u32 neg = (bits >> 31) ^ (w < 0 ? 1u : 0u);
    mr_u64 m = (mr_u64)(w < 0 ? -(mr_i64)w : (mr_i64)w) *
               (mr_u64)((bits & 0x7FFFFFu) | (field ? 0x800000u : 0u));
    if (m == 0)
        return 0;
    exp += (mr_i32)(field ? field : 1u) - 150;
    if (format == 4)
        return mr_round_int8(neg, m, exp);
    mr_i32 exp_bits = format == 1 || format == 3 ? 5 : format == 2 ? 4 : 8;
    mr_i32 man_bits = format == 0 ? 7 : format == 1 ? 10 : format == 2 ? 3 : format == 3 ? 2 : 23;
    mr_i32 bias = (1 << (exp_bits - 1)) - 1, e_min = 1 - bias;
    mr_u32 top = (1u << exp_bits) - 1u, ones = (1u << man_bits) - 1u;
    /* e4m3 uses the top exponent for numbers; its one NaN follows the largest of them */
    mr_u32 max = format == 2 ? (top << man_bits | (ones - 1u)) : ((top - 1u) << man_bits | ones);
    mr_i32 e = 63 - mr_clz64(m) + exp;
    mr_u32 code = max + 1u;
    if (e <= bias + 1) {
        mr_u64 q = mr_to_units(m, exp, (e < e_min ? e_min : e) - man_bits);
        code = (mr_u32)q + (e < e_min ? 0u : (mr_u32)(e - e_min) << man_bits);
    }
    if (code > max)
        code = sat ? max : max + 1u;
    return neg << (exp_bits + man_bits) | code;
}
#endif
