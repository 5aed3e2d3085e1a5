/* Bit-true model, first half: angles to tables (sine/cosine, butterflies, signs). */
#include "models/golden/rgu.h"

#include "models/golden/rgu_bits.h"
#include "models/golden/rgu_trig.h"

int mr_rgu_n_supported(int n) { return n == 8 || n == 10; }

void mr_golden_sincos(int v, int32_t *c, int32_t *s) {
    unsigned q = ((unsigned)v >> 14) & 3u, u = (unsigned)v & 0x3FFFu;
    int64_t c1 = mr_rgu_trig_c1[u >> 7], s1 = mr_rgu_trig_s1[u >> 7];
    int64_t c2 = mr_rgu_trig_c2[u & 127u], s2 = mr_rgu_trig_s2[u & 127u];
    int32_t c0 = (int32_t)rnh(c1 * c2 - s1 * s2, 28);
    int32_t s0 = (int32_t)rnh(s1 * c2 + c1 * s2, 28);
    switch (q) {
    case 0:
        *c = c0, *s = s0;
        break;
    case 1:
        *c = -s0, *s = c0;
        break;
    case 2:
        *c = -c0, *s = -s0;
        break;
    default:
        *c = s0, *s = -c0;
        break;
    }
}

/* Blade of an entry: index bit p is blade bit n-1-p, blade bit `low` follows from even parity. */
static unsigned blade_of(int n, int low, unsigned k) {
    unsigned b = 0;
    for (int p = 0; p < n - 1 - low; p++)
        b |= ((k >> p) & 1u) << (n - 1 - p);
    return b | par(b) << low;
}

static int plane_index(int n, int i, int j) { return i * (2 * n - i - 1) / 2 + (j - i - 1); }

/*
 * r = R_01 R_02 ... is built from its right end, left butterflies y = R_ij x, so that the support
 * grows slowly: stage i knows only the even blades of {e_i, ..., e_(n-1)}, 2^(n-1-i) of them.
 */
void mr_golden_expand(int n, const int16_t *angles, int32_t start, int32_t *x) {
    int32_t y[MR_RGU_MAX_HALF];
    x[0] = start;
    for (int i = n - 2; i >= 0; i--) {
        int q = n - 1 - i;
        unsigned live = 1u << q;
        /* blade bit i+1 becomes explicit: it was implied by parity until now */
        for (unsigned k = 0; k < live; k++)
            y[k] = 0;
        for (unsigned k = 0; k < live / 2; k++)
            y[k | par(k) << (q - 1)] = x[k];
        for (unsigned k = 0; k < live; k++)
            x[k] = y[k];
        for (int j = n - 1; j > i; j--) {
            unsigned m = 1u << i | 1u << j, stride = 1u << (n - 1 - j);
            int32_t c, s;
            mr_golden_sincos(angles[plane_index(n, i, j)], &c, &s);
            for (unsigned k = 0; k < live; k++) {
                unsigned b = blade_of(n, i, k);
                int64_t t = (int64_t)s * x[k ^ stride];
                if (par(m & prefix_parity(b ^ m)))
                    t = -t;
                y[k] = (int32_t)rnh((int64_t)c * x[k] + t, MR_RGU_R_FRAC);
            }
            for (unsigned k = 0; k < live; k++)
                x[k] = y[k];
        }
    }
}

void mr_golden_tables(int n, const mr_rgu_record *rec, int32_t *r, int32_t *s) {
    int32_t x[MR_RGU_MAX_HALF];
    unsigned half = 1u << (n - 1), low = half - 1;
    mr_golden_expand(n, rec->r, rec->g, x);
    for (unsigned k = 0; k < half; k++) {
        unsigned b = blade_of(n, 0, k), neg = (unsigned)rec->negative;
        if (rec->odd) { /* r e_0: e_K e_0 = (-1)^popcount(K>>1) e_(K^1) */
            neg ^= par(b >> 1);
            b ^= 1u;
        }
        neg ^= rev_parity(b);
        int32_t v = (int32_t)rnh(x[k], MR_RGU_X_FRAC - MR_RGU_R_FRAC);
        r[b & low] = neg ? -v : v;
    }
    mr_golden_expand(n, rec->s, (int32_t)1 << MR_RGU_X_FRAC, x);
    for (unsigned k = 0; k < half; k++) {
        unsigned b = blade_of(n, 0, k);
        int32_t v = (int32_t)rnh(x[k], MR_RGU_X_FRAC - MR_RGU_S_FRAC);
        s[b & low] = rev_parity(b) ? -v : v;
    }
}
