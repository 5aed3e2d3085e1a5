/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* strdup */
#include "host/flow/flow.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { MAX_BLOCKS = 64, MAX_LAYERS = 32, MAX_WIDTH = 1024 };

/* The file while its tensors are being copied: what nobody asked for does not belong there. */
typedef struct source {
    mr_flow *f;
    const mr_safetensors *st;
    bool *used;
    float *next; /* NULL: only counting */
    size_t total;
    mr_status status;
} source;

const char *mr_flow_set_name(mr_flow_set set) {
    return set == MR_FLOW_DIGITS ? "digits" : "fashion";
}
const char *mr_flow_kind_name(mr_flow_kind kind) {
    return kind == MR_FLOW_COUPLING ? "coupling" : "tar";
}

/* ---- Metadata ---------------------------------------------------------------------------------
 */

static mr_status text(const mr_safetensors *st, const char *key, const char **out) {
    *out = mr_safetensors_metadata(st, key);
    return *out
               ? MR_OK
               : mr_fail(MR_BAD_FORMAT, "%s: metadata %s is missing", mr_safetensors_path(st), key);
}

static mr_status whole(const mr_safetensors *st, const char *key, size_t most, size_t *out) {
    const char *t;
    mr_status e = text(st, key, &t);
    if (e != MR_OK)
        return e;
    char *end = NULL;
    errno = 0;
    unsigned long v = *t >= '0' && *t <= '9' ? strtoul(t, &end, 10) : 0;
    if (!end || *end || errno || v < 1 || v > most)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%.40s\", must be 1 to %zu",
                       mr_safetensors_path(st), key, t, most);
    *out = v;
    return MR_OK;
}

static mr_status one_of(const mr_safetensors *st, const char *key, const char *a, const char *b,
                        int *out) {
    const char *t;
    mr_status e = text(st, key, &t);
    if (e != MR_OK)
        return e;
    if (strcmp(t, a) != 0 && strcmp(t, b) != 0)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%.40s\", must be %s or %s",
                       mr_safetensors_path(st), key, t, a, b);
    *out = strcmp(t, b) == 0;
    return MR_OK;
}

static mr_status read_sizes(mr_flow *f, const mr_safetensors *st) {
    const char *format, *name;
    mr_status e = text(st, "format", &format);
    if (e != MR_OK)
        return e;
    if (strcmp(format, "millrace-flow-1") != 0)
        return mr_fail(MR_BAD_FORMAT, "%s: format %.40s; this program knows millrace-flow-1",
                       f->path, format);
    int kind, set;
    if ((e = text(st, "name", &name)) != MR_OK ||
        (e = one_of(st, "kind", "coupling", "tar", &kind)) != MR_OK ||
        (e = one_of(st, "data", "digits", "fashion", &set)) != MR_OK ||
        (e = whole(st, "tokens", 784, &f->tokens)) != MR_OK ||
        (e = whole(st, "channels", 784, &f->channels)) != MR_OK ||
        (e = whole(st, "grid", 28, &f->grid)) != MR_OK ||
        (e = whole(st, "blocks", MAX_BLOCKS, &f->blocks)) != MR_OK)
        return e;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->kind = (mr_flow_kind)kind;
    f->set = (mr_flow_set)set;
    size_t side = f->set == MR_FLOW_DIGITS ? 8 : 28;
    if (f->tokens != f->grid * f->grid || side % f->grid ||
        f->channels != (side / f->grid) * (side / f->grid))
        return mr_fail(MR_BAD_FORMAT,
                       "%s: metadata: %zu tokens of %zu channels on a grid of %zu do not make an "
                       "image of %zux%zu",
                       f->path, f->tokens, f->channels, f->grid, side, side);
    if (f->kind == MR_FLOW_COUPLING) {
        if ((e = whole(st, "hidden", MAX_WIDTH, &f->hidden)) != MR_OK ||
            (e = whole(st, "kernel", 3, &f->kernel)) != MR_OK)
            return e;
        return f->kernel == 2
                   ? mr_fail(MR_BAD_FORMAT, "%s: metadata kernel is 2, must be 1 or 3", f->path)
                   : MR_OK;
    }
    if ((e = whole(st, "width", MAX_WIDTH, &f->width)) != MR_OK ||
        (e = whole(st, "heads", MAX_WIDTH, &f->heads)) != MR_OK ||
        (e = whole(st, "layers", MAX_LAYERS, &f->layers)) != MR_OK ||
        (e = whole(st, "ff", 4 * MAX_WIDTH, &f->ff)) != MR_OK)
        return e;
    if (f->width != MR_FLOW_HEAD * f->heads)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata: width %zu is not %d times %zu heads", f->path,
                       f->width, MR_FLOW_HEAD, f->heads);
    return MR_OK;
}

/* ---- Tensors ----------------------------------------------------------------------------------
 */

static void mark(source *s, const char *name) {
    const mr_st_tensor *t = mr_safetensors_find(s->st, name);
    if (t)
        s->used[t - mr_safetensors_at(s->st, 0)] = true;
}

/* Tensor NAME of this shape (0 ends it), copied and finite; NULL while only counting. */
static const float *take(source *s, const char *name, size_t a, size_t b, size_t c, size_t d) {
    size_t all[4] = {a, b, c, d}, rank = 0;
    while (rank < 4 && all[rank])
        rank++;
    size_t count = a * (b ? b : 1) * (c ? c : 1) * (d ? d : 1);
    s->total += count;
    if (!s->next || s->status != MR_OK)
        return NULL;
    const mr_st_tensor *t;
    s->status = mr_safetensors_require(s->st, name, MR_ST_F32, rank, all, &t);
    if (s->status != MR_OK)
        return NULL;
    mark(s, name);
    float *to = s->next;
    memcpy(to, t->data, count * sizeof *to);
    s->next += count;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(to[i])) {
            s->status = mr_fail(MR_BAD_FORMAT, "%s: tensor %s: element %zu is %s", s->f->path, name,
                                i, isnan(to[i]) ? "NaN" : "infinite");
            return NULL;
        }
    return to;
}

static float take_scalar(source *s, const char *name) {
    const float *v = take(s, name, 1, 0, 0, 0);
    return v ? *v : 0;
}

static void forbid(source *s, const char *name, const float *v, size_t i, const char *why) {
    if (s->status == MR_OK && v[i] != 0)
        s->status = mr_fail(MR_BAD_FORMAT, "%s: tensor %s: element %zu is %g, must be 0: %s",
                            s->f->path, name, i, (double)v[i], why);
}

/* What the mask demands of the weights around it. */
static void check_mask(source *s, const mr_flow_coupling *c, const char *const name[4]) {
    const mr_flow *f = s->f;
    size_t passes = 0;
    for (size_t i = 0; i < f->channels && s->status == MR_OK; i++) {
        if (c->mask[i] != 0 && c->mask[i] != 1)
            s->status = mr_fail(MR_BAD_FORMAT, "%s: tensor %s: element %zu is %g, must be 0 or 1",
                                f->path, name[0], i, (double)c->mask[i]);
        passes += c->mask[i] != 0;
    }
    if (s->status == MR_OK && (passes == 0 || passes == f->channels))
        s->status = mr_fail(MR_BAD_FORMAT, "%s: tensor %s: all elements are %d", f->path, name[0],
                            passes != 0);
    size_t inputs = f->hidden * f->kernel * f->kernel * f->channels;
    for (size_t i = 0; i < inputs && s->status == MR_OK; i++)
        if (c->mask[i % f->channels] == 0)
            forbid(s, name[1], c->w0, i, "its channel has mask 0");
    for (size_t o = 0; o < 2 * f->channels && s->status == MR_OK; o++) {
        if (c->mask[o % f->channels] == 0)
            continue;
        forbid(s, name[3], c->bo, o, "its channel has mask 1");
        for (size_t i = 0; i < f->hidden; i++)
            forbid(s, name[2], c->wo, o * f->hidden + i, "its channel has mask 1");
    }
}

static void read_coupling(source *s, size_t b) {
    mr_flow *f = s->f;
    mr_flow_coupling *c = &f->coupling[b];
    size_t h = f->hidden, k = f->kernel, n = f->channels;
    char m[40], w0[40], wo[40], bo[40], t[40];
#define NAME(buffer, tensor) (snprintf(buffer, sizeof buffer, "c%zu." tensor, b), buffer)
    c->mask = take(s, NAME(m, "mask"), n, 0, 0, 0);
    c->w0 = take(s, NAME(w0, "w0"), h, k, k, n);
    c->b0 = take(s, NAME(t, "b0"), h, 0, 0, 0);
    c->w1 = take(s, NAME(t, "w1"), h, k, k, h);
    c->b1 = take(s, NAME(t, "b1"), h, 0, 0, 0);
    c->w2 = take(s, NAME(t, "w2"), h, h, 0, 0);
    c->b2 = take(s, NAME(t, "b2"), h, 0, 0, 0);
    c->wo = take(s, NAME(wo, "wout"), 2 * n, h, 0, 0);
    c->bo = take(s, NAME(bo, "bout"), 2 * n, 0, 0, 0);
    c->alpha = take_scalar(s, NAME(t, "alpha"));
#undef NAME
    const char *const names[4] = {m, w0, wo, bo};
    if (s->next && s->status == MR_OK)
        check_mask(s, c, names);
}

/* A matrix made from its seed: the golden model's tile, which is what the unit makes. */
static const float *generate(source *s, const char *name, mr_flow_layer *l) {
    static const char *const parts[] = {"angles", "gain", "odd", "row_scale"};
    mr_flow *f = s->f;
    size_t count = f->ff * f->width;
    s->total += count;
    if (!s->next || s->status != MR_OK)
        return NULL;
    s->status = mr_projection_load(s->st, name, &l->seed);
    if (s->status != MR_OK)
        return NULL;
    f->seeds++;
    const mr_projection *p = l->seed;
    for (int i = 0; i < 4; i++) {
        char part[120];
        snprintf(part, sizeof part, "%s.%s", name, parts[i]);
        mark(s, part);
    }
    if (p->seed.d_out != f->ff || p->seed.d_in != f->width) {
        s->status = mr_fail(MR_BAD_FORMAT, "%s: metadata %s.shape is %zu,%zu, must be %zu,%zu",
                            f->path, name, p->seed.d_out, p->seed.d_in, f->ff, f->width);
        return NULL;
    }
    mr_golden_job job = {.n = p->seed.n,
                         .terms = p->seed.terms,
                         .d_out = f->ff,
                         .d_in = f->width,
                         .image = p->image,
                         .row_scale = p->row_scale,
                         .scale = 1,
                         .row1 = f->ff,
                         .col1 = f->width,
                         .format = MR_FMT_BF16};
    float *to = s->next;
    uint16_t *codes = (uint16_t *)to + count; /* the upper half: read before it is overwritten */
    if (mr_golden_tile(&job, codes, 2 * f->width) != 0) {
        s->status = mr_fail(MR_OUT_OF_MEMORY, "%s: %s: out of memory", f->path, name);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = mr_format_value(codes[i], MR_FMT_BF16);
    s->next += count;
    return to;
}

static void read_layer(source *s, size_t b, size_t l) {
    mr_flow *f = s->f;
    mr_flow_layer *y = &f->block[b].layers[l];
    size_t d = f->width;
    char t[80];
#define NAME(tensor) (snprintf(t, sizeof t, "b%zu.l%zu." tensor, b, l), t)
    y->wq = take(s, NAME("wq"), d, d, 0, 0);
    y->bq = take(s, NAME("bq"), d, 0, 0, 0);
    y->wk = take(s, NAME("wk"), d, d, 0, 0);
    y->wv = take(s, NAME("wv"), d, d, 0, 0);
    y->wo = take(s, NAME("wo"), d, d, 0, 0);
    y->bo = take(s, NAME("bo"), d, 0, 0, 0);
    y->w1 = mr_projection_exists(s->st, NAME("w1")) ? generate(s, t, y)
                                                    : take(s, NAME("w1"), f->ff, d, 0, 0);
    y->b1 = take(s, NAME("b1"), f->ff, 0, 0, 0);
    y->w2 = take(s, NAME("w2"), d, f->ff, 0, 0);
    y->b2 = take(s, NAME("b2"), d, 0, 0, 0);
#undef NAME
}

static void read_block(source *s, size_t b) {
    mr_flow *f = s->f;
    mr_flow_block *y = &f->block[b];
    size_t d = f->width, n = f->channels;
    char t[80];
#define NAME(tensor) (snprintf(t, sizeof t, "b%zu." tensor, b), t)
    y->win = take(s, NAME("win"), d, n, 0, 0);
    y->bin = take(s, NAME("bin"), d, 0, 0, 0);
    y->pos = take(s, NAME("pos"), f->tokens, d, 0, 0);
    for (size_t l = 0; l < f->layers; l++)
        read_layer(s, b, l);
    y->wout = take(s, NAME("wout"), 2 * n, d, 0, 0);
    y->bout = take(s, NAME("bout"), 2 * n, 0, 0, 0);
    y->alpha = take_scalar(s, NAME("alpha"));
#undef NAME
}

static void read_all(source *s) {
    s->total = 0;
    for (size_t b = 0; b < s->f->blocks && s->status == MR_OK; b++) {
        if (s->f->kind == MR_FLOW_COUPLING)
            read_coupling(s, b);
        else
            read_block(s, b);
    }
}

static mr_status read_tensors(mr_flow *f, const mr_safetensors *st) {
    size_t count = mr_safetensors_count(st);
    source s = {.f = f, .st = st, .used = calloc(count + 1, sizeof(bool))};
    f->coupling = f->kind == MR_FLOW_COUPLING ? calloc(f->blocks, sizeof *f->coupling) : NULL;
    f->block = f->kind == MR_FLOW_TAR ? calloc(f->blocks, sizeof *f->block) : NULL;
    bool enough = s.used && (f->coupling || f->block);
    for (size_t b = 0; enough && f->block && b < f->blocks; b++)
        enough = (f->block[b].layers = calloc(f->layers, sizeof *f->block[b].layers)) != NULL;
    if (enough) {
        read_all(&s);
        enough = (f->storage = malloc(s.total * sizeof *f->storage)) != NULL;
        s.next = f->storage;
    }
    if (!enough) {
        free(s.used);
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    }
    read_all(&s);
    for (size_t i = 0; i < count && s.status == MR_OK; i++)
        if (!s.used[i])
            s.status = mr_fail(MR_BAD_FORMAT, "%s: tensor %.80s does not belong to this flow",
                               f->path, mr_safetensors_at(st, i)->name);
    free(s.used);
    return s.status;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

mr_status mr_flow_open(const char *path, mr_flow **out) {
    *out = NULL;
    mr_safetensors *st;
    mr_status e = mr_safetensors_open(path, &st);
    if (e != MR_OK)
        return e;
    mr_flow *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path)))
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    if (e == MR_OK)
        e = read_sizes(f, st);
    if (e == MR_OK)
        e = read_tensors(f, st);
    mr_safetensors_close(st);
    if (e != MR_OK) {
        mr_flow_close(f);
        return e;
    }
    *out = f;
    return MR_OK;
}

void mr_flow_close(mr_flow *f) {
    if (!f)
        return;
    for (size_t b = 0; f->block && b < f->blocks; b++) {
        for (size_t l = 0; f->block[b].layers && l < f->layers; l++)
            mr_projection_free(f->block[b].layers[l].seed);
        free(f->block[b].layers);
    }
    free(f->block);
    free(f->coupling);
    free(f->storage);
    free(f->path);
    free(f);
}

void mr_flow_set_w1(mr_flow *f, size_t block, size_t layer, const uint16_t *codes) {
    float *to = f->storage + (f->block[block].layers[layer].w1 - f->storage);
    for (size_t i = 0; i < f->ff * f->width; i++)
        to[i] = mr_format_value(codes[i], MR_FMT_BF16);
}
