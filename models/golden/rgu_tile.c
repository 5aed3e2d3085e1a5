/* Bit-true model, second half: tables to weights (products, Walsh-Hadamard transform, formats). */
#include "models/golden/rgu.h"

#include <stdlib.h>
#include <string.h>

#include "models/golden/rgu_bits.h"

typedef struct {
    int32_t r[MR_RGU_MAX_TERMS][MR_RGU_MAX_HALF];
    int32_t s[MR_RGU_MAX_TERMS][MR_RGU_MAX_HALF];
    int odd[MR_RGU_MAX_TERMS];
    int n, terms;
} chunk_tables;

static void wht(int32_t *v, unsigned len) {
    for (unsigned h = 1; h < len; h <<= 1)
        for (unsigned i = 0; i < len; i += 2 * h)
            for (unsigned k = i; k < i + h; k++) {
                int32_t a = v[k], b = v[k + h];
                v[k] = a + b;
                v[k + h] = a - b;
            }
}

/* All weights with I ^ J = m, both halves. */
static void generate_m(const chunk_tables *t, unsigned m, int32_t *w) {
    int n = t->n;
    unsigned d = 1u << n, half = d / 2, g = prefix_parity(m), odd = par(m);
    int32_t acc[MR_RGU_MAX_HALF] = {0};
    for (int term = 0; term < t->terms; term++) {
        if ((unsigned)t->odd[term] != odd)
            continue;
        for (unsigned k = 0; k < half; k++) {
            unsigned blade = k | (par(k) ^ odd) << (n - 1);
            int64_t p = (int64_t)t->r[term][k] * t->s[term][(k ^ m) & (half - 1)];
            int32_t v = (int32_t)rnh(p, MR_RGU_R_FRAC + MR_RGU_S_FRAC - MR_RGU_ACC_FRAC);
            acc[k] += par(blade & g) ? -v : v;
        }
    }
    wht(acc, half);
    unsigned mirror = par(g & (d - 1)) ^ (odd & (unsigned)(n + 1));
    for (unsigned j = 0; j < half; j++) {
        int32_t v = par(j & g) ^ (odd & par(j)) ? -acc[j] : acc[j];
        w[(size_t)(j ^ m) * d + j] = v;
        w[(size_t)((j ^ m) ^ (d - 1)) * d + (j ^ (d - 1))] = mirror & 1 ? -v : v;
    }
}

int mr_golden_chunk(int n, int terms, const void *records, int32_t *w) {
    chunk_tables *t = malloc(sizeof *t);
    size_t d = (size_t)1 << n;
    mr_rgu_record rec;
    int e = 0;
    if (!t)
        return INT32_MIN;
    t->n = n;
    t->terms = terms;
    for (int term = 0; term < terms; term++) {
        mr_rgu_unpack((const char *)records + (size_t)term * mr_rgu_record_bytes(n), n, &rec);
        mr_golden_tables(n, &rec, t->r[term], t->s[term]);
        t->odd[term] = rec.odd;
        e = rec.e;
    }
    for (unsigned m = 0; m < d; m++)
        generate_m(t, m, w);
    free(t);
    return e;
}

static void store(unsigned char *p, uint32_t code, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(code >> (8 * i));
}

/* The part of the window inside chunk (o,i). */
static void emit(const mr_golden_job *job, const int32_t *w, int e, size_t o, size_t i, char *dst,
                 size_t stride) {
    size_t d = (size_t)1 << job->n, bytes = mr_format_bytes(job->format);
    size_t r0 = job->row0 > o * d ? job->row0 : o * d;
    size_t r1 = job->row1 < (o + 1) * d ? job->row1 : (o + 1) * d;
    size_t c0 = job->col0 > i * d ? job->col0 : i * d;
    size_t c1 = job->col1 < (i + 1) * d ? job->col1 : (i + 1) * d;
    for (size_t r = r0; r < r1; r++) {
        float scale = job->row_scale ? job->row_scale[r] : job->scale;
        const int32_t *line = w + (r - o * d) * d;
        char *out = dst + (r - job->row0) * stride;
        for (size_t c = c0; c < c1; c++)
            store((unsigned char *)out + (c - job->col0) * bytes,
                  mr_round_fx(line[c - i * d], e - MR_RGU_ACC_FRAC, scale, job->format, job->sat),
                  bytes);
    }
}

int mr_golden_tile(const mr_golden_job *job, void *dst, size_t stride) {
    if (!mr_rgu_n_supported(job->n) || job->terms < 1 || job->terms > MR_RGU_MAX_TERMS ||
        !mr_format_bytes(job->format) || job->row0 >= job->row1 || job->row1 > job->d_out ||
        job->col0 >= job->col1 || job->col1 > job->d_in)
        return -1;
    size_t d = (size_t)1 << job->n, chunks_in = (job->d_in + d - 1) / d;
    int32_t *w = malloc(d * d * sizeof *w);
    if (!w)
        return -1;
    for (size_t o = job->row0 / d; o * d < job->row1; o++)
        for (size_t i = job->col0 / d; i * d < job->col1; i++) {
            size_t record = (o * chunks_in + i) * (size_t)job->terms;
            int e =
                mr_golden_chunk(job->n, job->terms,
                                (const char *)job->image + record * mr_rgu_record_bytes(job->n), w);
            if (e == INT32_MIN) {
                free(w);
                return -1;
            }
            emit(job, w, e, o, i, dst, stride);
        }
    free(w);
    return 0;
}
