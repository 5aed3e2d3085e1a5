/* SPDX-License-Identifier: Apache-2.0 */
#include "host/flow/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

/* y[out] = w[out][in] x + b (NULL: none), + y where add. */
static void apply(const float *w, const float *b, size_t out, size_t in, const double *x, double *y,
                  int add) {
    for (size_t o = 0; o < out; o++) {
        double sum = b ? (double)b[o] : 0;
        for (size_t i = 0; i < in; i++)
            sum += (double)w[o * in + i] * x[i];
        y[o] = add ? y[o] + sum : sum;
    }
}

static void relu(double *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] : 0;
}

/* ---- Coupling ---------------------------------------------------------------------------------
 */

/* y[T][out] = conv(w[out][k][k][in], x[T][in]) + b, zeros outside the grid, then relu. */
static void convolve(const mr_flow *f, const float *w, const float *b, size_t in, const double *x,
                     double *y) {
    long g = (long)f->grid, k = (long)f->kernel;
    for (long t = 0; t < g * g; t++)
        for (size_t o = 0; o < f->hidden; o++) {
            double sum = b[o];
            for (long dy = 0; dy < k; dy++)
                for (long dx = 0; dx < k; dx++) {
                    long r = t / g + dy - k / 2, c = t % g + dx - k / 2;
                    if (r < 0 || r >= g || c < 0 || c >= g)
                        continue;
                    const float *row =
                        w + ((o * f->kernel + (size_t)dy) * f->kernel + (size_t)dx) * in;
                    for (size_t i = 0; i < in; i++)
                        sum += (double)row[i] * x[(size_t)(r * g + c) * in + i];
                }
            y[(size_t)t * f->hidden + o] = sum > 0 ? sum : 0;
        }
}

/* st[T][2C]: s, then t. work: coupling_work() numbers; st is its beginning. */
static void coupling_net(const mr_flow *f, const mr_flow_coupling *c, const double *x,
                         double *work) {
    size_t n = f->channels, h = f->hidden, tokens = f->tokens;
    double *st = work, *masked = st + tokens * 2 * n, *a = masked + tokens * n, *b = a + tokens * h;
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < n; i++)
            masked[t * n + i] = x[t * n + i] * (double)c->mask[i];
    convolve(f, c->w0, c->b0, n, masked, a);
    convolve(f, c->w1, c->b1, h, a, b);
    for (size_t t = 0; t < tokens; t++) {
        apply(c->w2, c->b2, h, h, b + t * h, a + t * h, 1);
        apply(c->wo, c->bo, 2 * n, h, a + t * h, st + t * 2 * n, 0);
        for (size_t i = 0; i < n; i++)
            st[t * 2 * n + i] = (double)c->alpha * tanh(st[t * 2 * n + i]);
    }
}

static size_t coupling_work(const mr_flow *f) {
    return f->tokens * (3 * f->channels + 2 * f->hidden);
}

/* ---- Transformer ------------------------------------------------------------------------------
 */

static void rms(const double *h, size_t d, double *n) {
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += h[i] * h[i];
    double scale = 1 / sqrt(sum / (double)d + 1e-5);
    for (size_t i = 0; i < d; i++)
        n[i] = h[i] * scale;
}

/* o[d] of token t, from its q and the k and v [T][d] of tokens up to t. */
static void attend(const mr_flow *f, size_t t, const double *q, const double *k, const double *v,
                   double *o, double *p) {
    size_t d = f->width;
    for (size_t head = 0; head < f->heads; head++) {
        size_t at = head * MR_FLOW_HEAD;
        double most = -INFINITY, sum = 0;
        for (size_t j = 0; j <= t; j++) {
            p[j] = 0;
            for (size_t i = at; i < at + MR_FLOW_HEAD; i++)
                p[j] += q[i] * k[j * d + i];
            most = fmax(most, p[j]);
        }
        for (size_t j = 0; j <= t; j++)
            sum += p[j] = exp(p[j] - most);
        for (size_t i = at; i < at + MR_FLOW_HEAD; i++) {
            o[i] = 0;
            for (size_t j = 0; j <= t; j++)
                o[i] += p[j] / sum * v[j * d + i];
        }
    }
}

/*
 * a and mu (am[2C]) of token t, from x of the tokens before it; k and v [layers][T][D] keep those
 * of the tokens before t and get those of t. work: 4 D + ff + T numbers.
 */
static void tar_token(const mr_flow *f, const mr_flow_block *b, size_t t, const double *before,
                      double *k, double *v, double *am, double *work) {
    size_t d = f->width, cache = f->tokens * d;
    double *h = work, *n = h + d, *q = n + d, *o = q + d, *u = o + d, *p = u + f->ff;
    for (size_t i = 0; i < d; i++)
        h[i] = (double)b->pos[t * d + i];
    if (t > 0)
        apply(b->win, b->bin, d, f->channels, before, h, 1);
    for (size_t l = 0; l < f->layers; l++) {
        const mr_flow_layer *y = &b->layers[l];
        rms(h, d, n);
        apply(y->wq, y->bq, d, d, n, q, 0);
        apply(y->wk, NULL, d, d, n, k + l * cache + t * d, 0);
        apply(y->wv, NULL, d, d, n, v + l * cache + t * d, 0);
        attend(f, t, q, k + l * cache, v + l * cache, o, p);
        apply(y->wo, y->bo, d, d, o, h, 1);
        rms(h, d, n);
        apply(y->w1, y->b1, f->ff, d, n, u, 0);
        relu(u, f->ff);
        apply(y->w2, y->b2, d, f->ff, u, h, 1);
    }
    rms(h, d, n);
    apply(b->wout, b->bout, 2 * f->channels, d, n, am, 0);
    for (size_t i = 0; i < f->channels; i++)
        am[i] = (double)b->alpha * tanh(am[i]);
}

static size_t tar_work(const mr_flow *f) {
    return 2 * f->layers * f->tokens * f->width + 2 * f->channels + 4 * f->width + f->ff +
           f->tokens;
}

/* A whole block in place, forward or back. */
static void tar_block(const mr_flow *f, size_t index, int back, double *x, double *logdet,
                      double *work) {
    const mr_flow_block *b = &f->block[index];
    size_t n = f->channels, cache = f->layers * f->tokens * f->width, last = f->tokens - 1;
    double *k = work, *v = k + cache, *am = v + cache, *rest = am + 2 * n;
    double held[784] = {0}, next[784]; /* x of the token before, as it was or has become */
    for (size_t t = 0; t < f->tokens; t++) {
        double *at = x + (index % 2 ? last - t : t) * n;
        tar_token(f, b, t, held, k, v, am, rest);
        for (size_t i = 0; i < n; i++) {
            next[i] = back ? at[i] * exp(am[i]) + am[n + i] : (at[i] - am[n + i]) * exp(-am[i]);
            held[i] = back ? next[i] : at[i];
            at[i] = next[i];
            *logdet -= am[i];
        }
    }
}

/* ---- Whole flows ------------------------------------------------------------------------------
 */

static mr_status run(const mr_flow *f, int back, const double *in, double *out, double *logdet) {
    size_t count = mr_flow_pixels(f);
    bool coupling = f->kind == MR_FLOW_COUPLING;
    double *work = malloc((coupling ? coupling_work(f) : tar_work(f)) * sizeof *work);
    if (!work)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    memmove(out, in, count * sizeof *out);
    *logdet = 0;
    for (size_t i = 0; i < f->blocks; i++) {
        size_t b = back ? f->blocks - 1 - i : i;
        if (!coupling) {
            tar_block(f, b, back, out, logdet, work);
            continue;
        }
        const mr_flow_coupling *c = &f->coupling[b];
        size_t n = f->channels;
        coupling_net(f, c, out, work);
        for (size_t k = 0; k < f->tokens; k++)
            for (size_t j = 0; j < n; j++) {
                double s = work[k * 2 * n + j], t = work[k * 2 * n + n + j], *x = out + k * n + j;
                if (c->mask[j] != 0)
                    continue;
                *x = back ? (*x - t) * exp(-s) : *x * exp(s) + t;
                *logdet += s;
            }
    }
    free(work);
    return MR_OK;
}

mr_status mr_flow_reference_forward(const mr_flow *f, const double *x, double *z, double *logdet) {
    return run(f, 0, x, z, logdet);
}

mr_status mr_flow_reference_inverse(const mr_flow *f, const double *z, double *x) {
    double logdet;
    return run(f, 1, z, x, &logdet);
}
