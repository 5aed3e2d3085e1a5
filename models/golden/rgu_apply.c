/* Bit-true model of the apply mode: docs/rgu-apply.md, step by step. */
#include "models/golden/rgu_apply.h"

#include <stdlib.h>
#include <string.h>

#include "models/golden/rgu_bits.h"
#include "models/golden/rgu_spin.h"

enum {
    X_FRAC = 17,   /* fraction bits of x against its chunk's exponent */
    T_SHIFT = 18,  /* dropped after R X */
    U_SHIFT = 6,   /* dropped, at least, after (R X) S */
    ACC_FRAC = 31, /* fraction bits of the accumulator */
    MAX_D = 32,    /* 2^(n/2) at n = 10 */
    MAX_DD = MAX_D * MAX_D,
    KEPT_BITS = 29, /* of a result, before the scale */
};

/* One vector's accumulator: a D x D matrix with one running exponent. */
typedef struct {
    int64_t acc[MAX_DD];
    int any;     /* acc is nonzero and exp is meant */
    int exp;     /* value = acc * 2^(exp - ACC_FRAC) */
    int invalid; /* the vector has a NaN or an infinity */
} state;

/* Round half away from zero after dropping s bits: symmetric, so that signs cancel exactly. */
static int64_t rna(int64_t x, int s) {
    if (s == 0)
        return x;
    if (s > 62)
        return 0;
    return (x + ((int64_t)1 << (s - 1)) - (x < 0)) >> s;
}

static void wht(int64_t *v, int len) {
    for (int h = 1; h < len; h <<= 1)
        for (int k = 0; k < len; k++)
            if (!(k & h)) {
                int64_t a = v[k], b = v[k + h];
                v[k] = a + b;
                v[k + h] = a - b;
            }
}

static unsigned blade(int p, int z) {
    unsigned pz = (unsigned)p << MR_SPIN_BITS | (unsigned)z;
    return MR_SPIN_BLADE(pz);
}

static unsigned eps(unsigned k) { return MR_SPIN_EPS(k, par); }

/* Coefficients of blades (v[K], sign already undone) to their matrix. */
static void to_matrix(int n, const int64_t *v, int64_t *m) {
    int dd = 1 << (n / 2);
    for (int p = 0; p < dd; p++) {
        int64_t g[MAX_D];
        for (int z = 0; z < dd; z++) {
            unsigned k = blade(p, z);
            g[z] = eps(k) ? -v[k] : v[k];
        }
        wht(g, dd);
        for (int a = 0; a < dd; a++)
            m[a * dd + (a ^ p)] = g[a];
    }
}

/* A table of one blade parity to its matrix. Returns whether anything in it is nonzero. */
static int table_to_matrix(int n, const int32_t *table, unsigned odd, int signs, int64_t *m) {
    int64_t v[MR_RGU_MAX_D];
    unsigned d = 1u << n, low = d / 2 - 1;
    int any = 0;
    for (unsigned k = 0; k < d; k++) {
        v[k] = par(k) == odd ? table[k & low] : 0;
        any |= v[k] != 0;
        if (signs && rev_parity(k))
            v[k] = -v[k];
    }
    to_matrix(n, v, m);
    return any;
}

/*
 * The floats of one chunk as integers: x = v * 2^(*exp - X_FRAC). Returns 0 when all are zero,
 * 1 otherwise, -1 when one is not finite.
 */
static int load_chunk(int n, const unsigned char *src, size_t count, int64_t *v, int *exp) {
    size_t d = (size_t)1 << n;
    uint32_t x[MR_RGU_MAX_D] = {0}, max = 0;
    memcpy(x, src, (count < d ? count : d) * 4);
    for (size_t k = 0; k < d; k++)
        if ((x[k] & 0x7FFFFFFFu) > max)
            max = x[k] & 0x7FFFFFFFu;
    if (max >= 0x7F800000u)
        return -1;
    if (max == 0)
        return 0;
    /* 2^(exp-1) <= max|x| < 2^exp, subnormals included */
    *exp = max >> 23 ? (int)(max >> 23) - 126 : -117 - __builtin_clz(max);
    for (size_t k = 0; k < d; k++) {
        int field = (int)(x[k] >> 23) & 255;
        int64_t m = (x[k] & 0x7FFFFFu) | (field ? 0x800000u : 0u);
        int up = (field ? field : 1) - 150 + X_FRAC - *exp; /* m * 2^up, up <= X_FRAC - 1 */
        m = up >= 0 ? m << up : rna(m, -up);
        v[k] = x[k] >> 31 ? -m : m;
    }
    return 1;
}

/* acc += (R X) S at exponent `exp`. */
static void accumulate(int dd, const int64_t *r, const int64_t *x, const int64_t *s, int exp,
                       state *st) {
    int down_acc = 0, down_u = U_SHIFT;
    int64_t any = 0;
    if (!st->any)
        st->exp = exp;
    else if (exp > st->exp)
        down_acc = exp - st->exp, st->exp = exp;
    else
        down_u += st->exp - exp;
    for (int a = 0; a < dd; a++) {
        int64_t t[MAX_D] = {0}, u[MAX_D] = {0};
        for (int b = 0; b < dd; b++)
            for (int c = 0; c < dd; c++)
                t[c] += r[a * dd + b] * x[b * dd + c];
        for (int c = 0; c < dd; c++)
            t[c] = rna(t[c], T_SHIFT);
        for (int b = 0; b < dd; b++)
            for (int c = 0; c < dd; c++)
                u[c] += t[b] * s[b * dd + c];
        for (int c = 0; c < dd; c++) {
            int64_t *acc = &st->acc[a * dd + c];
            *acc = rna(*acc, down_acc) + rna(u[c], down_u);
            any |= *acc;
        }
    }
    st->any = any != 0;
}

static uint32_t to_float(int64_t sum, int exp, float scale, int sat) {
    uint64_t mag = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    int drop = mag ? 64 - __builtin_clzll(mag) - KEPT_BITS : 0;
    if (drop > 0) {
        mag = (uint64_t)rna((int64_t)mag, drop);
        exp += drop;
    }
    return mr_round_fx(sum < 0 ? -(int32_t)mag : (int32_t)mag, exp, scale, MR_FMT_FP32, sat);
}

/* The rows of chunk row o from the accumulator. */
static void write_rows(const mr_golden_job *job, size_t o, const state *st, unsigned char *dst) {
    int dd = 1 << (job->n / 2);
    for (int p = 0; p < dd; p++) {
        int64_t g[MAX_D];
        for (int a = 0; a < dd; a++)
            g[a] = st->acc[a * dd + (a ^ p)];
        wht(g, dd);
        for (int z = 0; z < dd; z++) {
            unsigned k = blade(p, z);
            size_t row = (o << job->n) + k;
            if (row >= job->d_out)
                continue;
            uint32_t code = to_float(eps(k) ? -g[z] : g[z], st->exp - ACC_FRAC - job->n / 2,
                                     job->row_scale ? job->row_scale[row] : job->scale, job->sat);
            if (st->invalid)
                code = 0x7FC00000u;
            memcpy(dst + row * 4, &code, 4);
        }
    }
}

typedef struct {
    int32_t r_table[MR_RGU_MAX_HALF], s_table[MR_RGU_MAX_HALF];
    int64_t r[MAX_DD], s[MAX_DD], x[MAX_DD], v[MR_RGU_MAX_D];
} scratch;

/* One term of chunk (o,i) for every vector. */
static void apply_term(const mr_golden_job *job, const void *record, size_t i, size_t batch,
                       const unsigned char *src, size_t src_stride, state *st, scratch *w) {
    int n = job->n;
    size_t first = i << n, count = job->d_in - first;
    mr_rgu_record rec;
    mr_rgu_unpack(record, n, &rec);
    mr_golden_tables(n, &rec, w->r_table, w->s_table);
    int any = table_to_matrix(n, w->r_table, (unsigned)rec.odd, 1, w->r);
    table_to_matrix(n, w->s_table, 0, 0, w->s);
    for (size_t b = 0; b < batch; b++) {
        int exp, kind = load_chunk(n, src + b * src_stride + first * 4, count, w->v, &exp);
        if (kind < 0)
            st[b].invalid = 1;
        if (kind <= 0 || !any)
            continue;
        to_matrix(n, w->v, w->x);
        accumulate(1 << (n / 2), w->r, w->x, w->s, rec.e + exp, &st[b]);
    }
}

int mr_golden_apply(const mr_golden_job *job, size_t batch, const void *src, size_t src_stride,
                    void *dst, size_t dst_stride) {
    if (!mr_rgu_n_supported(job->n) || job->terms < 1 || job->terms > MR_RGU_MAX_TERMS ||
        !job->d_in || !job->d_out || !job->image)
        return -1;
    size_t d = (size_t)1 << job->n, terms = (size_t)job->terms;
    size_t ci = (job->d_in + d - 1) / d, co = (job->d_out + d - 1) / d;
    if (ci > MR_APPLY_MAX_PASSES / terms || batch > SIZE_MAX / sizeof(state))
        return -1;
    state *st = malloc(batch ? batch * sizeof *st : 1);
    scratch *w = malloc(sizeof *w);
    if (!st || !w) {
        free(st);
        free(w);
        return -1;
    }
    const unsigned char *image = job->image;
    size_t rb = mr_rgu_record_bytes(job->n);
    for (size_t o = 0; o < co; o++) {
        memset(st, 0, batch * sizeof *st);
        for (size_t pass = 0; pass < ci * terms; pass++)
            apply_term(job, image + (o * ci * terms + pass) * rb, pass / terms, batch, src,
                       src_stride, st, w);
        for (size_t b = 0; b < batch; b++)
            write_rows(job, o, &st[b], (unsigned char *)dst + b * dst_stride);
    }
    free(st);
    free(w);
    return 0;
}
