/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/narrow.h"

#include <stdint.h>
#include <string.h>

#include <millrace/nic_frame.h>

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static float from_fp16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3FF;
    if (e == 31)
        return float_of(sign | 0x7F800000u | m << 13);
    if (e == 0) { /* m * 2^-24, exact */
        float f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    return float_of(sign | (e + 112) << 23 | m << 13);
}

static uint16_t to_fp16(float f) {
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFFu;
    if (a > 0x7F800000u)
        return 0x7E00;
    if (a >= 0x477FF000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7C00);
    if (a < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, rounded by the addition */
        float r = float_of(a) + 0.5f;
        return (uint16_t)(sign | (bits_of(r) - 0x3F000000u));
    }
    uint32_t odd = a >> 13 & 1;
    return (uint16_t)(sign | ((a + 0xFFF + odd - 0x38000000u) >> 13));
}

static uint16_t to_bf16(float f) {
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FC0;
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

void mr_nic_widen(void *to, const void *from, size_t count, unsigned dtype) {
    const uint16_t *h = from;
    float *f = to;
    if (dtype == MR_NIC_DT_BF16)
        for (size_t i = 0; i < count; i++)
            f[i] = float_of((uint32_t)h[i] << 16);
    else if (dtype == MR_NIC_DT_FP16)
        for (size_t i = 0; i < count; i++)
            f[i] = from_fp16(h[i]);
    else
        memcpy(to, from, count * 4);
}

void mr_nic_narrow(void *to, const void *from, size_t count, unsigned dtype) {
    const float *f = from;
    uint16_t *h = to;
    if (dtype == MR_NIC_DT_BF16)
        for (size_t i = 0; i < count; i++)
            h[i] = to_bf16(f[i]);
    else if (dtype == MR_NIC_DT_FP16)
        for (size_t i = 0; i < count; i++)
            h[i] = to_fp16(f[i]);
    else
        memcpy(to, from, count * 4);
}
