/* SPDX-License-Identifier: Apache-2.0 */
#include "host/units/rgu_fit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "models/golden/rgu.h"

/*
 * With p the products r_K s_B of one parity, a chunk is w = B p for a linear B with B^T B = d I
 * (signs and a Walsh-Hadamard transform a line I^J = M; docs/rgu-arithmetic.md). So the gradient in
 * p is B^T applied to the gradient in w, and the rest is a bilinear form and the butterflies' own
 * reverse.
 */

typedef struct {
    int n, planes;
    unsigned d, entries;
    int8_t *r_sign[2]; /* sign of r' for the blade at table index k, one table a parity */
    int8_t *s_sign;
    uint16_t *r_blade[2]; /* full blade */
} algebra;

typedef struct {
    const mr_fit_options *opt;
    algebra a;
    size_t co, ci, count;                        /* count = terms * co * ci */
    double *angle, *angle_m, *angle_v, *angle_g; /* [count][2][planes] */
    double *gain, *gain_m, *gain_v, *gain_g;     /* [count] */
    uint8_t *odd;
    float *w, *g;     /* [d_out][d_in] */
    float *cxx, *cyx; /* pairs: X^T X [d_in][d_in], Y^T X [d_out][d_in] */
    double norm;      /* |T|^2 or |Y|^2 */
    double *tables;   /* [terms][2][entries] of the chunk at hand */
    double *p;        /* [2][entries * entries] index parity, M * entries + k */
} fit;

static unsigned parity(unsigned x) { return (unsigned)__builtin_parity(x); }

static unsigned prefix_parity(unsigned m) {
    unsigned g = 0;
    for (unsigned bit = 0, acc = 0; bit < 16; bit++) {
        g |= acc << bit;
        acc ^= (m >> bit) & 1u;
    }
    return g;
}

/* ---- butterflies ------------------------------------------------------------------------------
 */

/* x := R_ij(theta) x over all blades of even parity, indexed without the top bit. */
static void rotate(const algebra *a, int i, int j, double c, double s, double *x) {
    unsigned m = 1u << i | 1u << j, low = a->entries - 1;
    for (unsigned k = 0; k < a->entries; k++) {
        unsigned b = k | parity(k) << (a->n - 1), other = (b ^ m) & low;
        if (other < k)
            continue;
        /* y[b] = c x[b] + s sgn(m, b^m) x[b^m], and the partner's sign is the opposite */
        double sg = parity(m & prefix_parity(b ^ m)) ? -s : s,
               so = parity(m & prefix_parity(b)) ? -s : s;
        double xb = x[k], xo = x[other];
        x[k] = c * xb + sg * xo;
        x[other] = c * xo + so * xb;
    }
}

static void expand(const algebra *a, const double *angle, double *x) {
    int at = a->planes;
    memset(x, 0, a->entries * sizeof *x);
    x[0] = 1;
    for (int i = a->n - 2; i >= 0; i--)
        for (int j = a->n - 1; j > i; j--) {
            at--;
            rotate(a, i, j, cos(angle[at]), sin(angle[at]), x);
        }
}

/* Gradient of the angles from the gradient `g` of the expanded side x; both are consumed. */
static void expand_back(const algebra *a, const double *angle, double *x, double *g, double *out) {
    int at = 0;
    unsigned low = a->entries - 1;
    for (int i = 0; i <= a->n - 2; i++)
        for (int j = i + 1; j <= a->n - 1; j++, at++) {
            unsigned m = 1u << i | 1u << j;
            double sum = 0;
            /* d/dtheta R x_in = e_ij R x_in = e_ij x_out */
            for (unsigned k = 0; k < a->entries; k++) {
                unsigned b = k | parity(k) << (a->n - 1);
                double t = g[k] * x[(b ^ m) & low];
                sum += parity(m & prefix_parity(b ^ m)) ? -t : t;
            }
            out[at] = sum;
            rotate(a, i, j, cos(angle[at]), -sin(angle[at]), x);
            rotate(a, i, j, cos(angle[at]), -sin(angle[at]), g);
        }
}

/* ---- chunk transform --------------------------------------------------------------------------
 */

static void wht(double *v, unsigned len) {
    for (unsigned h = 1; h < len; h <<= 1)
        for (unsigned i = 0; i < len; i += 2 * h)
            for (unsigned k = i; k < i + h; k++) {
                double x = v[k], y = v[k + h];
                v[k] = x + y;
                v[k + h] = x - y;
            }
}

typedef struct { /* a chunk's place in a cropped matrix */
    float *base;
    size_t stride, rows, cols;
} place;

static double load(const place *at, unsigned i, unsigned j) {
    return i < at->rows && j < at->cols ? (double)at->base[i * at->stride + j] : 0.0;
}

/* Signs of w[J^M][J] and of its mirror. */
static void line_signs(const algebra *a, unsigned m, unsigned j, double *self, double *mirror) {
    unsigned g = prefix_parity(m) & (a->d - 1), odd = parity(m);
    unsigned neg = parity(j & g) ^ (odd & parity(j));
    unsigned flip = parity(g) ^ (odd & (unsigned)(a->n + 1) & 1u);
    *self = neg ? -1 : 1;
    *mirror = neg ^ flip ? -1 : 1;
}

/* p = B^T w of one line M; entry k belongs to the blade k of the line's parity. */
static void adjoint_line(const algebra *a, const place *w, unsigned m, double *p) {
    unsigned odd = parity(m), g = prefix_parity(m), all = a->d - 1;
    for (unsigned j = 0; j < a->entries; j++) {
        double self, mirror;
        line_signs(a, m, j, &self, &mirror);
        p[j] = self * load(w, j ^ m, j) + mirror * load(w, (j ^ m) ^ all, j ^ all);
    }
    wht(p, a->entries);
    for (unsigned k = 0; k < a->entries; k++)
        if (parity(a->r_blade[odd][k] & g))
            p[k] = -p[k];
}

/* w = B p of one line; p is consumed. */
static void line(const algebra *a, double *p, unsigned m, const place *w) {
    unsigned odd = parity(m), g = prefix_parity(m), all = a->d - 1;
    for (unsigned k = 0; k < a->entries; k++)
        if (parity(a->r_blade[odd][k] & g))
            p[k] = -p[k];
    wht(p, a->entries);
    for (unsigned j = 0; j < a->entries; j++) {
        double self, mirror;
        unsigned i = j ^ m, i2 = i ^ all, j2 = j ^ all;
        line_signs(a, m, j, &self, &mirror);
        if (i < w->rows && j < w->cols)
            w->base[i * w->stride + j] = (float)(self * p[j]);
        if (i2 < w->rows && j2 < w->cols)
            w->base[i2 * w->stride + j2] = (float)(mirror * p[j]);
    }
}

/* ---- one step ---------------------------------------------------------------------------------
 */

static place chunk_place(const fit *f, float *matrix, size_t o, size_t i) {
    size_t d = f->a.d, r = f->opt->d_out - o * d, c = f->opt->d_in - i * d;
    place at = {matrix + o * d * f->opt->d_in + i * d, f->opt->d_in, r < d ? r : d, c < d ? c : d};
    return at;
}

static size_t slot(const fit *f, int t, size_t o, size_t i) {
    return ((size_t)t * f->co + o) * f->ci + i;
}

/* Expanded, signed tables of every term of chunk (o,i). */
static void load_tables(fit *f, size_t o, size_t i) {
    const algebra *a = &f->a;
    for (int t = 0; t < f->opt->terms; t++) {
        size_t at = slot(f, t, o, i);
        for (int side = 0; side < 2; side++) {
            double *x = f->tables + ((size_t)t * 2 + (size_t)side) * a->entries;
            expand(a, f->angle + (at * 2 + (size_t)side) * (size_t)a->planes, x);
        }
    }
}

/* r' at table index k of a term of parity odd, from the even expansion: r e_0 and the signs. */
static unsigned even_index(const algebra *a, unsigned k, unsigned odd) {
    return odd ? (a->r_blade[1][k] ^ 1u) & (a->entries - 1) : k;
}

static void synthesise(fit *f, size_t o, size_t i) {
    const algebra *a = &f->a;
    place at = chunk_place(f, f->w, o, i);
    bool any[2] = {false, false};
    load_tables(f, o, i);
    for (int t = 0; t < f->opt->terms; t++)
        any[f->odd[slot(f, t, o, i)]] = true;
    for (unsigned m = 0; m < a->d; m++) {
        unsigned odd = parity(m), low = m & (a->entries - 1);
        memset(f->p, 0, a->entries * sizeof *f->p);
        for (int t = 0; any[odd] && t < f->opt->terms; t++) {
            const double *r = f->tables + (size_t)t * 2 * a->entries, *s = r + a->entries;
            if (f->odd[slot(f, t, o, i)] != odd)
                continue;
            double gain = f->gain[slot(f, t, o, i)];
            for (unsigned k = 0; k < a->entries; k++)
                f->p[k] += gain * a->r_sign[odd][k] * r[even_index(a, k, odd)] *
                           a->s_sign[k ^ low] * s[k ^ low];
        }
        line(a, f->p, m, &at);
    }
}

static void back_chunk(fit *f, size_t o, size_t i) {
    const algebra *a = &f->a;
    place at = chunk_place(f, f->g, o, i);
    size_t e = a->entries;
    double *gr = f->p + 2 * e, *gs = gr + e, *q = gs + e; /* q: [terms][2][e] gradients */
    load_tables(f, o, i);
    memset(q, 0, (size_t)f->opt->terms * 2 * e * sizeof *q);
    for (int t = 0; t < f->opt->terms; t++)
        f->gain_g[slot(f, t, o, i)] = 0;
    for (unsigned m = 0; m < a->d; m++) {
        unsigned odd = parity(m), low = m & (a->entries - 1);
        bool used = false;
        for (int t = 0; t < f->opt->terms; t++)
            used |= f->odd[slot(f, t, o, i)] == odd;
        if (!used)
            continue;
        adjoint_line(a, &at, m, f->p);
        for (int t = 0; t < f->opt->terms; t++) {
            const double *r = f->tables + (size_t)t * 2 * e, *s = r + e;
            double *qr = q + (size_t)t * 2 * e, *qs = qr + e, dot = 0;
            if (f->odd[slot(f, t, o, i)] != odd)
                continue;
            for (unsigned k = 0; k < e; k++) {
                unsigned kr = even_index(a, k, odd), b = k ^ low;
                double g = f->p[k] * a->r_sign[odd][k] * a->s_sign[b];
                qr[kr] += g * s[b];
                qs[b] += g * r[kr];
                dot += g * s[b] * r[kr];
            }
            f->gain_g[slot(f, t, o, i)] += dot;
        }
    }
    for (int t = 0; t < f->opt->terms; t++) {
        size_t place_t = slot(f, t, o, i);
        for (size_t side = 0; side < 2; side++) {
            double *x = f->tables + ((size_t)t * 2 + side) * e, *g = q + ((size_t)t * 2 + side) * e;
            for (size_t k = 0; k < e; k++)
                g[k] *= f->gain[place_t];
            size_t off = (place_t * 2 + side) * (size_t)a->planes;
            expand_back(a, f->angle + off, x, g, f->angle_g + off);
        }
    }
}

/* g := gradient in W; returns the squared error. */
static double matrix_gradient(fit *f) {
    const mr_fit_options *o = f->opt;
    double sum = 0;
    if (o->target) {
        for (size_t i = 0; i < o->d_out * o->d_in; i++) {
            f->g[i] = f->w[i] - o->target[i];
            sum += (double)f->g[i] * f->g[i];
        }
        return sum;
    }
    /* |Y - WX|^2 = |Y|^2 - 2<W,Cyx> + <W, W Cxx> */
    sum = f->norm;
    for (size_t r = 0; r < o->d_out; r++) {
        const float *w = f->w + r * o->d_in, *c = f->cyx + r * o->d_in;
        float *g = f->g + r * o->d_in;
        for (size_t k = 0; k < o->d_in; k++)
            g[k] = 0;
        for (size_t j = 0; j < o->d_in; j++) {
            const float *x = f->cxx + j * o->d_in;
            float wj = w[j];
            for (size_t k = 0; k < o->d_in; k++)
                g[k] += wj * x[k];
        }
        for (size_t k = 0; k < o->d_in; k++) {
            sum += (double)w[k] * ((double)g[k] - 2.0 * (double)c[k]);
            g[k] -= c[k];
        }
    }
    return sum > 0 ? sum : 0;
}

static double relative(const fit *f, double squared) {
    return f->norm > 0 ? sqrt(squared / f->norm) : (squared > 0 ? INFINITY : 0);
}

static double evaluate(fit *f) {
    for (size_t o = 0; o < f->co; o++)
        for (size_t i = 0; i < f->ci; i++)
            synthesise(f, o, i);
    return relative(f, matrix_gradient(f));
}

static void adam(double *x, double *m, double *v, const double *g, size_t len, double rate,
                 int step) {
    double c1 = 1 - pow(0.9, step), c2 = 1 - pow(0.99, step);
    for (size_t i = 0; i < len; i++) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
        x[i] -= rate * (m[i] / c1) / (sqrt(v[i] / c2) + 1e-30);
    }
}

/* ---- set-up -----------------------------------------------------------------------------------
 */

static uint64_t next_random(uint64_t *s) { /* splitmix64 */
    uint64_t z = (*s += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double normal(uint64_t *s) {
    double u = ((double)(next_random(s) >> 11) + 1) / 9007199254740993.0;
    double v = (double)(next_random(s) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static bool make_algebra(algebra *a, int n) {
    a->n = n;
    a->planes = mr_rgu_planes(n);
    a->d = 1u << n;
    a->entries = a->d / 2;
    for (unsigned odd = 0; odd < 2; odd++) {
        a->r_sign[odd] = malloc(a->entries);
        a->r_blade[odd] = malloc(a->entries * sizeof *a->r_blade[odd]);
        if (!a->r_sign[odd] || !a->r_blade[odd])
            return false;
        for (unsigned k = 0; k < a->entries; k++) {
            unsigned b = k | (parity(k) ^ odd) << (n - 1), grade = (unsigned)__builtin_popcount(b);
            unsigned neg = (grade >> 1) & 1u; /* s(K,K) */
            if (odd)
                neg ^= parity(b >> 1); /* e_(K^1) e_0, and (K^1)>>1 = K>>1 */
            a->r_blade[odd][k] = (uint16_t)b;
            a->r_sign[odd][k] = neg ? -1 : 1;
        }
    }
    a->s_sign = malloc(a->entries);
    if (!a->s_sign)
        return false;
    for (unsigned k = 0; k < a->entries; k++)
        a->s_sign[k] = a->r_sign[0][k]; /* rev has the same sign as s(K,K) */
    return true;
}

static void release(fit *f) {
    for (int odd = 0; odd < 2; odd++) {
        free(f->a.r_sign[odd]);
        free(f->a.r_blade[odd]);
    }
    free(f->a.s_sign);
    free(f->angle);
    free(f->gain);
    free(f->odd);
    free(f->w);
    free(f->cxx);
    free(f->tables);
    free(f->p);
}

static bool correlate(fit *f) {
    const mr_fit_options *o = f->opt;
    f->cxx = calloc((o->d_in + o->d_out) * o->d_in, sizeof *f->cxx);
    if (!f->cxx)
        return false;
    f->cyx = f->cxx + o->d_in * o->d_in;
    for (size_t v = 0; v < o->pairs; v++) {
        const float *x = o->x + v * o->d_in, *y = o->y + v * o->d_out;
        for (size_t j = 0; j < o->d_in; j++)
            for (size_t k = 0; k < o->d_in; k++)
                f->cxx[j * o->d_in + k] += x[j] * x[k];
        for (size_t r = 0; r < o->d_out; r++) {
            f->norm += (double)y[r] * y[r];
            for (size_t k = 0; k < o->d_in; k++)
                f->cyx[r * o->d_in + k] += y[r] * x[k];
        }
    }
    return true;
}

static bool make_state(fit *f) {
    const mr_fit_options *o = f->opt;
    size_t e = (size_t)1 << (o->n - 1), t = (size_t)o->terms;
    if (!make_algebra(&f->a, o->n))
        return false;
    f->co = (o->d_out + f->a.d - 1) / f->a.d;
    f->ci = (o->d_in + f->a.d - 1) / f->a.d;
    f->count = t * f->co * f->ci;
    size_t angles = f->count * 2 * (size_t)f->a.planes;
    f->angle = calloc(4 * angles, sizeof *f->angle);
    f->gain = calloc(4 * f->count, sizeof *f->gain);
    f->odd = calloc(f->count, 1);
    f->w = calloc(2 * o->d_out * o->d_in, sizeof *f->w);
    f->tables = malloc(2 * t * e * sizeof *f->tables);
    f->p = malloc((4 + 2 * t) * e * sizeof *f->p);
    if (!f->angle || !f->gain || !f->odd || !f->w || !f->tables || !f->p)
        return false;
    f->angle_m = f->angle + angles, f->angle_v = f->angle_m + angles,
    f->angle_g = f->angle_v + angles;
    f->gain_m = f->gain + f->count, f->gain_v = f->gain_m + f->count,
    f->gain_g = f->gain_v + f->count;
    f->g = f->w + o->d_out * o->d_in;
    if (!o->target)
        return correlate(f);
    for (size_t i = 0; i < o->d_out * o->d_in; i++)
        f->norm += (double)o->target[i] * o->target[i];
    return true;
}

/* Random small angles; each gain is the size a scaled orthogonal chunk of the target's norm would
 * have. */
static void start(fit *f) {
    const mr_fit_options *o = f->opt;
    uint64_t s = o->seed;
    double power = f->norm, in = (double)o->d_in;
    if (!o->target) { /* |Y|^2 is about gain^2 |X|^2 / chunks_in for independent inputs */
        double trace = 0;
        for (size_t j = 0; j < o->d_in; j++)
            trace += f->cxx[j * o->d_in + j];
        power = trace > 0 ? f->norm / trace * in : 0;
    }
    double gain = sqrt(power / (double)(f->co * f->ci * f->a.d * (size_t)o->terms)) * 0.5;
    for (size_t i = 0; i < f->count; i++) {
        size_t term = i / (f->co * f->ci);
        f->odd[i] = o->parity == MR_FIT_ALTERNATE ? term & 1 : o->parity == MR_FIT_ODD;
        f->gain[i] = next_random(&s) & 1 ? gain : -gain;
    }
    for (size_t i = 0; i < f->count * 2 * (size_t)f->a.planes; i++)
        f->angle[i] = o->start_angle * normal(&s);
}

/* Rounds the parameters to what a seed file stores. */
static void store(fit *f, mr_fit_result *out) {
    size_t angles = f->count * 2 * (size_t)f->a.planes;
    for (size_t i = 0; i < angles; i++) {
        double turns = f->angle[i] / (2 * M_PI);
        long v = lround((turns - floor(turns)) * 65536) & 0xFFFF;
        out->angles[i] = (int16_t)(v >= 32768 ? v - 65536 : v);
        f->angle[i] = out->angles[i] * (M_PI / 32768);
    }
    for (size_t i = 0; i < f->count; i++) {
        out->gain[i] = (float)f->gain[i];
        f->gain[i] = out->gain[i];
    }
    memcpy(out->odd, f->odd, f->count);
}

/* What no number of terms of the chosen parities can represent, relative. Full chunks: |w|^2 = d
 * |p|^2. */
static double span_error(fit *f) {
    double reached = 0;
    if (!f->opt->target || f->norm == 0)
        return 0;
    memcpy(f->g, f->opt->target, f->opt->d_out * f->opt->d_in * sizeof *f->g);
    for (size_t o = 0; o < f->co; o++)
        for (size_t i = 0; i < f->ci; i++) {
            place at = chunk_place(f, f->g, o, i);
            for (unsigned m = 0; m < f->a.d; m++) {
                bool used = false;
                for (int t = 0; t < f->opt->terms; t++)
                    used |= f->odd[slot(f, t, o, i)] == parity(m);
                if (!used)
                    continue;
                adjoint_line(&f->a, &at, m, f->p);
                for (unsigned k = 0; k < f->a.entries; k++)
                    reached += f->p[k] * f->p[k] / f->a.d;
            }
        }
    double left = 1 - reached / f->norm;
    return left > 0 ? sqrt(left) : 0;
}

static const char *check(const mr_fit_options *o) {
    size_t cells;
    if (!mr_rgu_n_supported(o->n))
        return "n: supported values are 8 and 10";
    if (o->terms < 1 || o->terms > MR_RGU_MAX_TERMS)
        return "terms: must be 1 to 32";
    if (!o->d_out || !o->d_in || __builtin_mul_overflow(o->d_out, o->d_in, &cells) ||
        cells > 1u << 28)
        return "shape: rows and columns must be at least 1, and at most 2^28 weights together";
    if (!o->target && (!o->pairs || !o->x || !o->y))
        return "target: neither a matrix nor recorded pairs";
    if (o->steps < 1)
        return "steps: must be at least 1";
    if (!(o->rate > 0) || !isfinite(o->rate))
        return "rate: must be positive";
    if (!(o->start_angle >= 0) || !isfinite(o->start_angle))
        return "start_angle: must not be negative";
    for (size_t i = 0; o->target && i < cells; i++)
        if (!isfinite(o->target[i]))
            return "target: not finite";
    return NULL;
}

mr_fit_options mr_fit_defaults(void) {
    mr_fit_options o = {0};
    o.n = 8;
    o.terms = 1;
    o.steps = 600;
    o.rate = 0.03;
    o.start_angle = 0.3;
    o.seed = 1;
    return o;
}

static int descend(fit *f) {
    const mr_fit_options *o = f->opt;
    size_t angles = f->count * 2 * (size_t)f->a.planes;
    double scale = fabs(f->gain[0]);
    for (int step = 1; step <= o->steps; step++) {
        double error = evaluate(f), rate = o->rate * 0.5 * (1 + cos(M_PI * (step - 1) / o->steps));
        for (size_t c = 0; c < f->co; c++)
            for (size_t i = 0; i < f->ci; i++)
                back_chunk(f, c, i);
        adam(f->angle, f->angle_m, f->angle_v, f->angle_g, angles, rate, step);
        adam(f->gain, f->gain_m, f->gain_v, f->gain_g, f->count, rate * scale, step);
        if (o->progress && o->progress(o->context, step, error))
            return step;
    }
    return o->steps;
}

const char *mr_fit(const mr_fit_options *options, mr_fit_result *result) {
    const char *wrong = check(options);
    fit f = {.opt = options};
    memset(result, 0, sizeof *result);
    if (wrong)
        return wrong;
    if (!make_state(&f)) {
        release(&f);
        return "out of memory";
    }
    size_t angles = f.count * 2 * (size_t)f.a.planes;
    result->angles = malloc(angles * sizeof *result->angles);
    result->gain = malloc(f.count * sizeof *result->gain);
    result->odd = malloc(f.count);
    if (!result->angles || !result->gain || !result->odd) {
        mr_fit_free(result);
        release(&f);
        return "out of memory";
    }
    start(&f);
    result->span_error = span_error(&f);
    result->steps = descend(&f);
    store(&f, result);
    result->error = evaluate(&f);
    release(&f);
    return NULL;
}

void mr_fit_free(mr_fit_result *r) {
    free(r->angles);
    free(r->gain);
    free(r->odd);
    memset(r, 0, sizeof *r);
}
