/* The float64 definition: products in the algebra exactly as they are written on paper. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/golden/rgu.h"

int mr_def_sign(unsigned a, unsigned b) {
    int swaps = 0;
    for (a >>= 1; a; a >>= 1)
        swaps += __builtin_popcount(a & b);
    return swaps & 1 ? -1 : 1;
}

void mr_def_rotor(int n, const double *angles, double *out) {
    unsigned d = 1u << n;
    double next[MR_RGU_MAX_D];
    memset(out, 0, d * sizeof *out);
    out[0] = 1;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++, angles++) { /* out = out * (cos + sin e_i e_j) */
            unsigned m = 1u << i | 1u << j;
            double c = cos(*angles), s = sin(*angles);
            for (unsigned k = 0; k < d; k++)
                next[k] = c * out[k] + s * mr_def_sign(k ^ m, m) * out[k ^ m];
            memcpy(out, next, d * sizeof *out);
        }
}

/* left e_J rev(s) for every column J; left and right hold blades of one parity each. */
static void product(unsigned d, const double *left, const double *right, const signed char *sign,
                    double gain, double *w) {
    for (unsigned j = 0; j < d; j++)
        for (unsigned k = 0; k < d; k++) {
            if (left[k] == 0)
                continue;
            unsigned kj = k ^ j;
            double a = gain * left[k] * sign[k * d + j];
            for (unsigned b = 0; b < d; b++)
                if (right[b] != 0)
                    w[(size_t)(kj ^ b) * d + j] += a * right[b] * sign[kj * d + b];
        }
}

int mr_def_term(int n, const double *r_angles, const double *s_angles, double gain, int odd,
                double *w) {
    unsigned d = 1u << n;
    double r[MR_RGU_MAX_D], s[MR_RGU_MAX_D], left[MR_RGU_MAX_D];
    signed char *sign = malloc((size_t)d * d);
    if (!sign)
        return -1;
    for (unsigned a = 0; a < d; a++)
        for (unsigned b = 0; b < d; b++)
            sign[a * d + b] = (signed char)mr_def_sign(a, b);
    mr_def_rotor(n, r_angles, r);
    mr_def_rotor(n, s_angles, s);
    for (unsigned k = 0; k < d; k++) /* r, or the versor r e_0 */
        left[odd ? k ^ 1u : k] = odd ? r[k] * mr_def_sign(k, 1u) : r[k];
    for (unsigned k = 0; k < d; k++) { /* rev(s) */
        int grade = __builtin_popcount(k);
        if (grade * (grade - 1) / 2 & 1)
            s[k] = -s[k];
    }
    product(d, left, s, sign, gain, w);
    free(sign);
    return 0;
}

int mr_def_chunk(const mr_seed *seed, size_t o, size_t i, double *w) {
    size_t d = (size_t)1 << seed->n, planes = (size_t)mr_rgu_planes(seed->n);
    size_t co = mr_seed_chunks_out(seed), ci = mr_seed_chunks_in(seed);
    double angles[2 * MR_RGU_MAX_PLANES];
    memset(w, 0, d * d * sizeof *w);
    for (size_t t = 0; t < (size_t)seed->terms; t++) {
        size_t at = (t * co + o) * ci + i;
        for (size_t a = 0; a < 2 * planes; a++)
            angles[a] = seed->angles[at * 2 * planes + a] * (M_PI / 32768);
        if (mr_def_term(seed->n, angles, angles + planes, seed->gain[at], seed->odd[at], w) != 0)
            return -1;
    }
    return 0;
}
