/* SPDX-License-Identifier: Apache-2.0 */
/* How far a table of significand products is from the exact ones, over all pairs of fractions. */
#ifndef TESTS_UNIT_PNM_MULT_ERROR_H
#define TESTS_UNIT_PNM_MULT_ERROR_H

#include <math.h>
#include <stdint.h>

/* Relative to the exact product, in double: RMS, mean, and the largest. */
typedef struct {
    double rms, mean, worst;
} mult_error;

static inline mult_error mult_error_of(const uint16_t *table) {
    mult_error e = {0, 0, 0};
    for (int fa = 0; fa < 128; fa++)
        for (int fb = 0; fb < 128; fb++) {
            double exact = (1 + fa / 128.0) * (1 + fb / 128.0);
            double d = table[128 * fa + fb] / 16384.0 / exact - 1;
            e.rms += d * d;
            e.mean += d;
            e.worst = fmax(e.worst, fabs(d));
        }
    e.rms = sqrt(e.rms / 16384);
    e.mean /= 16384;
    return e;
}

#endif
