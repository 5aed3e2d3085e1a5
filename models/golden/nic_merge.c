#include "models/golden/nic_merge.h"

#include <math.h>
#include <string.h>

#include <millrace/nic_frame.h>

#include "models/golden/fn.h"

#define K_NATURAL UINT64_C(793129986396) /* log2(e) * 2^39, rounded */
#define K_TWO (UINT64_C(1) << 39)
#define DISTANCE_MAX ((UINT64_C(1) << 33) - 1)

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t get32(const uint8_t *p) { return get16(p) << 16 | get16(p + 2); }
static void put16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static void put32(uint8_t *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xFFFF);
}
static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

size_t mr_nic_element_bytes(unsigned dtype) {
    switch (dtype) {
    case MR_NIC_DT_BF16:
    case MR_NIC_DT_FP16:
        return 2;
    case MR_NIC_DT_FP32:
    case MR_NIC_DT_INT32:
        return 4;
    default:
        return 0;
    }
}

uint64_t mr_nic_vector_bytes(unsigned dtype, unsigned heads, unsigned dim, unsigned stat_bytes) {
    uint64_t stats = ((uint64_t)heads * stat_bytes + 63) / 64 * 64;
    return stats + (uint64_t)heads * dim * mr_nic_element_bytes(dtype);
}

/* ---- values ---------------------------------------------------------------------------------- */

static float from_fp16(uint32_t h) {
    uint32_t exponent = h >> 10 & 31, fraction = h & 0x3FF;
    float magnitude;
    if (exponent == 31)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)fraction, -24);
    else
        magnitude = ldexpf((float)(fraction | 0x400), (int)exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static float value_of(const uint8_t *p, unsigned dtype) {
    if (dtype == MR_NIC_DT_BF16)
        return float_of(get16(p) << 16);
    if (dtype == MR_NIC_DT_FP16)
        return from_fp16(get16(p));
    return float_of(get32(p));
}

/* To nearest, ties to even; the sign of a zero stays, NaN becomes one positive code. */
static uint32_t to_bf16(float f) {
    uint32_t b = bits_of(f);
    if (isnan(f))
        return 0x7FC0;
    return (b + 0x7FFF + (b >> 16 & 1)) >> 16;
}

static uint32_t to_fp16(float f) {
    uint32_t sign = bits_of(f) >> 16 & 0x8000;
    double magnitude = fabs((double)f);
    if (isnan(f))
        return 0x7E00;
    if (magnitude >= 65520.0)
        return sign | 0x7C00;
    int exponent = 0;
    frexp(magnitude, &exponent); /* magnitude = m * 2^exponent, m in [0.5, 1) */
    int unit =
        magnitude == 0.0 || exponent < -13 ? -24 : exponent - 11; /* weight of the last bit */
    uint32_t count = (uint32_t)nearbyint(ldexp(magnitude, -unit));
    return sign | (count + ((uint32_t)(unit + 24) << 10));
}

static void put_value(uint8_t *p, float f, unsigned dtype) {
    if (dtype == MR_NIC_DT_BF16)
        put16(p, to_bf16(f));
    else if (dtype == MR_NIC_DT_FP16)
        put16(p, to_fp16(f));
    else
        put32(p, isnan(f) ? 0x7FC00000 : bits_of(f));
}

/* ---- exponents ------------------------------------------------------------------------------- */

/* x * K as (-1)^sign * product * 2^exponent, exactly. A zero has no exponent of its own. */
typedef struct {
    bool sign;
    uint64_t product;
    int exponent;
} wide;

static wide widen(float x, bool natural) {
    wide w = {signbit(x) != 0, 0, -10000};
    if (x != 0.0f) {
        int exponent;
        uint32_t sig = (uint32_t)ldexpf(frexpf(fabsf(x), &exponent), 24);
        w.product = sig * (natural ? K_NATURAL : K_TWO);
        w.exponent = exponent - 24 - 39;
    }
    return w;
}

uint64_t mr_nic_distance(float a, bool a_natural, float b, bool b_natural, bool *newer) {
    wide x = widen(a, a_natural), y = widen(b, b_natural);
    int top = x.exponent > y.exponent ? x.exponent : y.exponent;
    uint64_t p = top - x.exponent >= 64 ? 0 : x.product >> (top - x.exponent);
    uint64_t q = top - y.exponent >= 64 ? 0 : y.product >> (top - y.exponent);
    __int128 difference =
        (x.sign ? -(__int128)p : (__int128)p) - (y.sign ? -(__int128)q : (__int128)q);
    unsigned __int128 size =
        difference < 0 ? -(unsigned __int128)difference : (unsigned __int128)difference;
    int shift = top + 24; /* to units of 2^-24 */

    *newer = difference > 0;
    if (size == 0)
        return 0;
    if (shift >= 0) {
        if (shift > 33)
            return DISTANCE_MAX;
        size <<= shift;
    } else if (shift < -67) {
        return 0;
    } else {
        size = (size + ((unsigned __int128)1 << (-shift - 1))) >> -shift;
    }
    return size > DISTANCE_MAX ? DISTANCE_MAX : (uint64_t)size;
}

float mr_nic_scale(float x, uint64_t distance) {
    double w =
        ldexp((double)mr_fn_exp2((uint32_t)(distance & 0xFFFFFF)), -26 - (int)(distance >> 24));
    return (float)((double)x * w);
}

/* ---- folding --------------------------------------------------------------------------------- */

void mr_nic_acc_begin(mr_nic_acc *acc, bool reduce, unsigned dtype, unsigned rop, unsigned heads,
                      unsigned dim) {
    acc->reduce = reduce;
    acc->dtype = dtype;
    acc->rop = rop;
    acc->heads = heads;
    acc->dim = dim;
    acc->started = false;
    for (unsigned h = 0; !reduce && h < heads; h++)
        acc->stat[h] = (mr_nic_stat){0.0f, 0.0f, false, true, false};
    memset(acc->value, 0, (size_t)heads * dim * sizeof acc->value[0]);
}

/* IEEE 754-2019 maximum and minimum: a NaN wins, -0 is below +0. */
static float extreme(float a, float b, bool largest) {
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return (signbit(a) != 0) == largest ? b : a;
    return (a > b) == largest ? a : b;
}

static void reduce_fold(mr_nic_acc *acc, const uint8_t *payload) {
    size_t bytes = mr_nic_element_bytes(acc->dtype);
    for (unsigned i = 0; i < acc->dim; i++) {
        const uint8_t *p = payload + i * bytes;
        if (acc->dtype == MR_NIC_DT_INT32) {
            uint32_t x = get32(p), y = acc->value[i].bits;
            bool less = (int32_t)x < (int32_t)y;
            if (!acc->started)
                y = x;
            else if (acc->rop == MR_NIC_ROP_SUM)
                y += x;
            else
                y = less == (acc->rop == MR_NIC_ROP_MIN) ? x : y;
            acc->value[i].bits = y;
        } else {
            float x = value_of(p, acc->dtype), y = acc->value[i].f;
            if (!acc->started)
                y = x;
            else if (acc->rop == MR_NIC_ROP_SUM)
                y += x;
            else
                y = extreme(y, x, acc->rop == MR_NIC_ROP_MAX);
            acc->value[i].f = y;
        }
    }
}

static void head_fold(mr_nic_acc *acc, unsigned head, float m, float d, bool natural,
                      const uint8_t *values) {
    mr_nic_stat *s = &acc->stat[head];
    size_t bytes = mr_nic_element_bytes(acc->dtype);
    size_t first = (size_t)head * acc->dim;
    if (isinf(m) || d == 0.0f)
        return;
    if (isnan(m)) {
        s->nan = true;
        return;
    }
    bool take = s->empty, newer = true;
    uint64_t distance = take ? 0 : mr_nic_distance(m, natural, s->m, s->natural, &newer);
    for (unsigned i = 0; i < acc->dim; i++) {
        float x = value_of(values + i * bytes, acc->dtype), *y = &acc->value[first + i].f;
        if (take)
            *y = x;
        else if (newer)
            *y = mr_nic_scale(*y, distance) + x;
        else
            *y = mr_nic_scale(x, distance) + *y;
    }
    if (take)
        s->d = d;
    else if (newer)
        s->d = mr_nic_scale(s->d, distance) + d;
    else
        s->d = mr_nic_scale(d, distance) + s->d;
    if (newer) {
        s->m = m;
        s->natural = natural;
    }
    s->empty = false;
}

void mr_nic_acc_fold(mr_nic_acc *acc, const uint8_t *payload, bool natural) {
    if (acc->reduce) {
        reduce_fold(acc, payload);
    } else {
        size_t stats = ((size_t)acc->heads * 8 + 63) / 64 * 64;
        size_t stride = acc->dim * mr_nic_element_bytes(acc->dtype);
        for (unsigned h = 0; h < acc->heads; h++)
            head_fold(acc, h, float_of(get32(payload + 8 * h)),
                      float_of(get32(payload + 8 * h + 4)), natural, payload + stats + h * stride);
    }
    acc->started = true;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* lse in powers of two, and the factor 1/d; false: the head is a NaN. */
static bool head_finish(const mr_nic_stat *s, float *lse, double *factor) {
    if (s->nan || isnan(s->d) || s->d <= 0.0f)
        return false;
    if (isinf(s->d)) {
        *lse = INFINITY;
        *factor = 0.0;
        return true;
    }
    int exponent;
    uint32_t sig = (uint32_t)ldexpf(frexpf(s->d, &exponent), 24) & 0x7FFFFF;
    int k = exponent - 1; /* d = (1 + sig / 2^23) * 2^k */
    *factor = ldexp((double)mr_fn_recip(sig), -26 - k);
    float log = (float)ldexp((double)((int64_t)k * (1 << 26) + (int64_t)mr_fn_log2(sig)), -26);
    float m = s->natural ? s->m * float_of(0x3FB8AA3B) : s->m;
    *lse = m + log;
    return true;
}

size_t mr_nic_acc_finish(const mr_nic_acc *acc, uint8_t *payload) {
    size_t bytes = mr_nic_element_bytes(acc->dtype);
    uint8_t *out = payload;
    if (acc->reduce) {
        for (unsigned i = 0; i < acc->dim; i++, out += bytes) {
            if (acc->dtype == MR_NIC_DT_INT32)
                put32(out, acc->value[i].bits);
            else
                put_value(out, acc->value[i].f, acc->dtype);
        }
        return (size_t)(out - payload);
    }
    size_t stats = ((size_t)acc->heads * 4 + 63) / 64 * 64;
    memset(payload, 0, stats);
    out += stats;
    for (unsigned h = 0; h < acc->heads; h++) {
        const mr_nic_stat *s = &acc->stat[h];
        float lse = -INFINITY;
        double factor = 0.0;
        bool empty = s->empty && !s->nan, good = empty || head_finish(s, &lse, &factor);
        put32(payload + 4 * h, good ? bits_of(lse) : 0x7FC00000);
        for (unsigned i = 0; i < acc->dim; i++, out += bytes) {
            float o = acc->value[(size_t)h * acc->dim + i].f;
            if (!good)
                o = NAN;
            else if (empty)
                o = 0.0f;
            else
                o = (float)((double)o * factor);
            put_value(out, o, acc->dtype);
        }
    }
    return (size_t)(out - payload);
}
