/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds for a given linear map, by gradient descent on the angles and gains.
 *
 * The target is either a matrix (minimise |W - T|_F) or recorded inputs and outputs (minimise
 * |Y - W X|_F over the recorded vectors). A sum of chunk maps spans only part of all matrices: the
 * even terms a quarter of the dimensions, the odd terms another quarter, and within a quarter each
 * term is a rank-one piece r_K s_B of a 2^(n-1) x 2^(n-1) matrix. So a finished dense matrix cannot
 * be fitted closely by few terms, whatever the optimiser; mr_fit_result says how far the span
 * itself reaches.
 */
#ifndef HOST_UNITS_RGU_FIT_H
#define HOST_UNITS_RGU_FIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    MR_FIT_EVEN = 0,     /* every term even */
    MR_FIT_ODD = 1,      /* every term odd */
    MR_FIT_ALTERNATE = 2 /* even, odd, even, ...: reaches both quarters */
} mr_fit_parity;

typedef struct {
    int n;     /* 8 or 10 */
    int terms; /* 1..32 */
    size_t d_out, d_in;
    const float *target; /* [d_out][d_in], or NULL */
    /* with target == NULL: `pairs` recorded vectors, all finite */
    size_t pairs;
    const float *x; /* [pairs][d_in] */
    const float *y; /* [pairs][d_out] */
    mr_fit_parity parity;
    int steps;          /* >= 1 */
    double rate;        /* Adam step of the angles in radians, > 0; decays to zero as a cosine */
    double start_angle; /* standard deviation of the first angles, radians, >= 0 */
    uint64_t seed;
    /* Called after each step; nonzero stops the descent (the seeds so far are returned). May be
     * NULL. */
    int (*progress)(void *context, int step, double relative_error);
    void *context;
} mr_fit_options;

typedef struct {
    int16_t *angles;   /* [terms][chunks_out][chunks_in][2][P] */
    float *gain;       /* [terms][chunks_out][chunks_in] */
    uint8_t *odd;      /* [terms][chunks_out][chunks_in] */
    double error;      /* relative error of what is stored (int16 angles, float32 gains) */
    double span_error; /* matrix target: relative error of the nearest matrix in the span of any
                          number of terms of these parities; 0 for recorded pairs */
    int steps;         /* done */
} mr_fit_result;

/* The defaults: 600 steps, rate 0.03, first angles 0.3, seed 1, one even term. */
mr_fit_options mr_fit_defaults(void);

/*
 * NULL on success; otherwise what is wrong with which option (a static string), or "out of memory".
 * A result is released by mr_fit_free().
 */
const char *mr_fit(const mr_fit_options *options, mr_fit_result *result);
void mr_fit_free(mr_fit_result *result);

#ifdef __cplusplus
}
#endif
#endif
