/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lm/sample.h"

#include <math.h>
#include <stdlib.h>

double mr_sampler_uniform(mr_sampler *s) {
    uint64_t z = s->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

typedef struct {
    float logit;
    size_t id;
} candidate;

static int by_logit(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t largest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

size_t mr_sample(mr_sampler *s, const float *logits, size_t count) {
    size_t best = largest(logits, count);
    if (s->temperature <= 0 || !isfinite(logits[best]))
        return best;
    double u = mr_sampler_uniform(s);
    candidate *c = malloc(count * sizeof *c);
    double *p = malloc(count * sizeof *p);
    size_t n = 0, chosen = best;
    if (c && p) {
        for (size_t i = 0; i < count; i++)
            if (!isnan(logits[i]))
                c[n++] = (candidate){logits[i], i};
        qsort(c, n, sizeof *c, by_logit);
        double sum = 0, kept = 0;
        for (size_t i = 0; i < n; i++)
            sum += p[i] = exp(((double)c[i].logit - (double)c[0].logit) / s->temperature);
        size_t nucleus = 0;
        while (nucleus < n && (nucleus == 0 || kept < s->top_p * sum))
            kept += p[nucleus++];
        double target = u * kept, at = 0;
        size_t i = 0;
        while (i + 1 < nucleus && (at += p[i]) <= target)
            i++;
        chosen = c[i].id;
    }
    free(c);
    free(p);
    return chosen;
}
