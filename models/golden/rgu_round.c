/* The one rounding: exact fixed-point value times float32 scale to a number format. */
#include <math.h>
#include <string.h>

#include "models/golden/rgu.h"

typedef struct {
    int exp_bits, man_bits;
    int ieee; /* top exponent holds Inf and NaN; e4m3 uses it for numbers and one NaN */
} layout;

static layout layout_of(int format) {
    switch (format) {
    case MR_FMT_BF16:
        return (layout){8, 7, 1};
    case MR_FMT_FP16:
        return (layout){5, 10, 1};
    case MR_FMT_FP8E4M3:
        return (layout){4, 3, 0};
    case MR_FMT_FP8E5M2:
        return (layout){5, 2, 1};
    default:
        return (layout){8, 23, 1};
    }
}

size_t mr_format_bytes(int format) {
    switch (format) {
    case MR_FMT_BF16:
    case MR_FMT_FP16:
        return 2;
    case MR_FMT_FP8E4M3:
    case MR_FMT_FP8E5M2:
    case MR_FMT_INT8:
        return 1;
    case MR_FMT_FP32:
        return 4;
    default:
        return 0;
    }
}

/* m * 2^exp to a multiple of 2^lsb, nearest even, in units of 2^lsb. m < 2^63. */
static uint64_t to_units(uint64_t m, int exp, int lsb) {
    int drop = lsb - exp;
    if (drop <= 0)
        return m << -drop; /* callers choose lsb so that this cannot overflow */
    if (drop > 63)
        return 0; /* m < 2^63 is below half a unit */
    uint64_t q = m >> drop, rest = m & (((uint64_t)1 << drop) - 1), tie = (uint64_t)1 << (drop - 1);
    return q + (rest > tie || (rest == tie && (q & 1)));
}

static uint32_t round_int8(int neg, uint64_t m, int exp) {
    int top = 64 - __builtin_clzll(m) + exp; /* value < 2^top */
    uint64_t q = top > 9 ? 512 : to_units(m, exp, 0);
    uint64_t limit = neg ? 128 : 127;
    if (q > limit)
        q = limit;
    return (uint32_t)(neg ? 256 - q : q) & 0xFFu;
}

/* (-1)^neg * m * 2^exp, m != 0 */
static uint32_t round_mag(int neg, uint64_t m, int exp, int format, int sat) {
    if (format == MR_FMT_INT8)
        return round_int8(neg, m, exp);
    layout l = layout_of(format);
    int bias = (1 << (l.exp_bits - 1)) - 1, e_min = 1 - bias;
    uint32_t sign = (uint32_t)neg << (l.exp_bits + l.man_bits);
    uint32_t top = (1u << l.exp_bits) - 1;
    uint32_t max = l.ieee ? ((top - 1) << l.man_bits | ((1u << l.man_bits) - 1))
                          : (top << l.man_bits | ((1u << l.man_bits) - 2));
    uint32_t over = l.ieee ? top << l.man_bits : max + 1;
    int e = 63 - __builtin_clzll(m) + exp; /* 2^e <= value < 2^(e+1) */
    uint32_t code;
    if (e > bias + 1) {
        code = over;
    } else {
        int lsb = (e < e_min ? e_min : e) - l.man_bits;
        uint64_t q = to_units(m, exp, lsb);
        /* the hidden bit, or a carry out of the mantissa, adds itself to the exponent field */
        code = e < e_min ? (uint32_t)q : (uint32_t)(q + ((uint64_t)(e - e_min) << l.man_bits));
    }
    if (code > max)
        code = sat ? max : over;
    return sign | code;
}

static void split(float x, int *neg, uint64_t *m, int *exp) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    uint32_t field = (u >> 23) & 0xFF;
    *neg = (int)(u >> 31);
    *m = (u & 0x7FFFFFu) | (field ? 0x800000u : 0);
    *exp = (field ? (int)field : 1) - 150;
}

uint32_t mr_round_fx(int32_t m, int exp, float scale, int format, int sat) {
    int neg, e2;
    uint64_t s;
    split(scale, &neg, &s, &e2);
    uint64_t mag = (uint64_t)(m < 0 ? -(int64_t)m : m) * s;
    if (!mag)
        return 0;
    return round_mag(neg ^ (m < 0), mag, exp + e2, format, sat);
}

uint32_t mr_round_f32(float x, int format, int sat) {
    int neg, e;
    uint64_t m;
    layout l = layout_of(format);
    uint32_t sign, top = (1u << l.exp_bits) - 1;
    split(x, &neg, &m, &e);
    sign = (uint32_t)neg << (l.exp_bits + l.man_bits);
    if (isnan(x)) {
        if (format == MR_FMT_INT8)
            return 0;
        return sign | (l.ieee ? top << l.man_bits | 1u << (l.man_bits - 1)
                              : (1u << (l.exp_bits + l.man_bits)) - 1);
    }
    if (isinf(x)) {
        m = (uint64_t)1 << 62; /* any value beyond every format's range */
        e = 100;
        if (format != MR_FMT_INT8 && l.ieee && !sat)
            return sign | top << l.man_bits;
    }
    if (!m)
        return format == MR_FMT_INT8 ? 0 : sign;
    return round_mag(neg, m, e, format, sat);
}

float mr_format_value(uint32_t code, int format) {
    if (format == MR_FMT_INT8)
        return (float)(int8_t)(uint8_t)code;
    layout l = layout_of(format);
    int bias = (1 << (l.exp_bits - 1)) - 1;
    uint32_t man = code & ((1u << l.man_bits) - 1);
    int field = (int)(code >> l.man_bits) & ((1 << l.exp_bits) - 1);
    int neg = (code >> (l.exp_bits + l.man_bits)) & 1, last = (1 << l.exp_bits) - 1;
    double v;
    if (field == last && l.ieee)
        v = man ? NAN : INFINITY;
    else if (field == last && man == (1u << l.man_bits) - 1)
        v = NAN;
    else if (field)
        v = ldexp((double)(man | 1u << l.man_bits), field - bias - l.man_bits);
    else
        v = ldexp((double)man, 1 - bias - l.man_bits);
    return (float)(neg ? -v : v);
}
