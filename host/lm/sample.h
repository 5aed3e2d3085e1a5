/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the next byte from logits. */
#ifndef HOST_LM_SAMPLE_H
#define HOST_LM_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_sampler {
    double temperature; /* 0: the largest logit, a tie to the lowest id */
    double top_p;       /* in (0, 1]: the fewest most probable ids whose probability reaches it */
    uint64_t state;     /* the seed; then the generator's state */
} mr_sampler;

/*
 * The generator is SplitMix64 (Steele, Lea, Flood 2014): state += 0x9E3779B97F4A7C15, then the
 * finaliser; the top 53 bits make a number in [0, 1).
 */
double mr_sampler_uniform(mr_sampler *s);

/*
 * An id below `count` (1..65536). Ids are ordered by logit, largest first, ties by id;
 * probabilities are exp( logit / temperature), computed in double. NaN is never chosen unless all
 * are. Greedy choice takes no random number.
 */
size_t mr_sample(mr_sampler *s, const float *logits, size_t count);

#ifdef __cplusplus
}
#endif
#endif
