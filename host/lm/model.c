/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "host/lm/model.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/io/file.h"
#include "host/io/sha256.h"

static const char version[] = "1";
static const size_t largest_extent = 1 << 20; /* of any dimension in a configuration */

/* A file while its tensors are being claimed: what nobody claims does not belong there. */
typedef struct {
    mr_lm_model *m;
    const mr_safetensors *st;
    bool *used;
} source;

/* ---- metadata ---------------------------------------------------------------------------------
 */

static mr_status check_version(const mr_safetensors *st) {
    const char *path = mr_safetensors_path(st);
    const char *v = mr_safetensors_metadata(st, "millrace.version");
    if (!v)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.version is missing", path);
    if (strcmp(v, version) != 0)
        return mr_fail(MR_BAD_FORMAT, "%s: model version %s; this program knows version %s", path,
                       v, version);
    return MR_OK;
}

static mr_status read_config(mr_lm_model *m) {
    const char *path = mr_safetensors_path(m->base);
    mr_lm_config *c = &m->config;
    struct {
        const char *key;
        size_t *whole;
        double *real;
        bool seen;
    } fields[] = {{"d_model", &c->d_model, NULL, 0},       {"n_layers", &c->n_layers, NULL, 0},
                  {"n_heads", &c->n_heads, NULL, 0},       {"n_kv_heads", &c->n_kv_heads, NULL, 0},
                  {"head_dim", &c->head_dim, NULL, 0},     {"d_ff", &c->d_ff, NULL, 0},
                  {"n_experts", &c->n_experts, NULL, 0},   {"top_k", &c->top_k, NULL, 0},
                  {"vocab", &c->vocab, NULL, 0},           {"context", &c->context, NULL, 0},
                  {"rope_theta", NULL, &c->rope_theta, 0}, {"norm_eps", NULL, &c->norm_eps, 0}};
    enum { FIELDS = sizeof fields / sizeof fields[0] };

    const char *text = mr_safetensors_metadata(m->base, "millrace.config");
    if (!text)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.config is missing", path);
    json_error_t err;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &err);
    mr_status e = MR_OK;
    if (!json_is_object(j))
        e = mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.config is not a JSON object", path);
    const char *key;
    json_t *value;
    json_object_foreach(j, key, value) {
        int i = 0;
        while (i < FIELDS && strcmp(fields[i].key, key) != 0)
            i++;
        if (e != MR_OK)
            break;
        if (i == FIELDS) {
            e = mr_fail(MR_BAD_FORMAT, "%s: millrace.config: unknown key %s", path, key);
        } else if (fields[i].whole) {
            json_int_t v = json_is_integer(value) ? json_integer_value(value) : 0;
            if (v < 1 || (size_t)v > largest_extent)
                e = mr_fail(MR_BAD_FORMAT,
                            "%s: millrace.config: %s must be a whole number, 1 to %zu", path, key,
                            largest_extent);
            *fields[i].whole = (size_t)v;
            fields[i].seen = true;
        } else {
            double v = json_number_value(value);
            if (!json_is_number(value) || !isfinite(v) || v <= 0)
                e = mr_fail(MR_BAD_FORMAT, "%s: millrace.config: %s must be a positive number",
                            path, key);
            *fields[i].real = v;
            fields[i].seen = true;
        }
    }
    json_decref(j);
    for (int i = 0; e == MR_OK && i < FIELDS; i++)
        if (!fields[i].seen)
            e = mr_fail(MR_BAD_FORMAT, "%s: millrace.config: %s is missing", path, fields[i].key);
    if (e != MR_OK)
        return e;
    if (c->vocab != 256)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: millrace.config: vocab is %zu; a token is a byte, so 256", path,
                       c->vocab);
    if (c->n_heads % c->n_kv_heads)
        return mr_fail(MR_BAD_FORMAT, "%s: millrace.config: n_kv_heads does not divide n_heads",
                       path);
    if (c->head_dim % 2)
        return mr_fail(MR_BAD_FORMAT, "%s: millrace.config: head_dim is odd", path);
    if (c->top_k > c->n_experts)
        return mr_fail(MR_BAD_FORMAT, "%s: millrace.config: top_k is above n_experts", path);
    if (c->n_layers > 4096 || c->n_experts > 65536)
        return mr_fail(MR_BAD_FORMAT, "%s: millrace.config: too many layers or experts", path);
    /* what is allocated for a run stays countable in 31 bits */
    const size_t most = INT32_MAX;
    if (c->n_heads * c->head_dim > largest_extent || c->context * c->n_heads * c->head_dim > most ||
        c->context * c->top_k * c->d_model > most || c->context * c->top_k * c->d_ff > most ||
        c->context * c->n_experts * c->top_k > most)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: millrace.config: the network is larger than this program "
                       "can run",
                       path);
    return MR_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

static void mark(source *s, const mr_st_tensor *t) {
    s->used[t - mr_safetensors_at(s->st, 0)] = true;
}

static const mr_st_tensor *find(const source *s, const char *format, va_list args) {
    char name[512];
    vsnprintf(name, sizeof name, format, args);
    return mr_safetensors_find(s->st, name);
}

__attribute__((format(printf, 2, 3))) static bool has(const source *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const mr_st_tensor *t = find(s, format, args);
    va_end(args);
    return t != NULL;
}

static mr_status claim(source *s, const char *name, mr_st_dtype dtype, size_t rank, size_t rows,
                       size_t cols, const mr_st_tensor **out) {
    size_t shape[2] = {rows, cols};
    mr_status e = mr_safetensors_require(s->st, name, dtype, rank, shape, out);
    if (e == MR_OK)
        mark(s, *out);
    return e;
}

static mr_status new_factor(mr_lm_model *m, mr_lm_factor_kind kind, size_t rows, size_t cols,
                            mr_lm_factor **out) {
    mr_lm_factor **more = realloc(m->factors, (m->num_factors + 1) * sizeof *more);
    mr_lm_factor *f = calloc(1, sizeof *f);
    if (more)
        m->factors = more;
    if (!more || !f) {
        free(f);
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", m->path);
    }
    f->kind = kind;
    f->rows = rows;
    f->cols = cols;
    f->id = m->num_factors;
    m->factors[m->num_factors++] = f;
    *out = f;
    return MR_OK;
}

static mr_status dense(source *s, const char *name, size_t rows, size_t cols,
                       const mr_lm_factor **out) {
    const mr_st_tensor *t;
    mr_lm_factor *f;
    mr_status e = claim(s, name, MR_ST_BF16, 2, rows, cols, &t);
    if (e == MR_OK)
        e = new_factor(s->m, MR_LM_BF16, t->shape[0], t->shape[1], &f);
    if (e != MR_OK)
        return e;
    f->matrix = t;
    *out = f;
    return MR_OK;
}

/* Codes of 1 or 2 bits; which follows from the columns. rows may be MR_ST_ANY. */
static mr_status codewords(source *s, const char *name, size_t rows, size_t cols,
                           const mr_lm_factor **out) {
    const char *path = mr_safetensors_path(s->st);
    char key[512];
    const mr_st_tensor *codes, *scales;
    mr_lm_factor *f;
    snprintf(key, sizeof key, "%s.codes", name);
    const mr_st_tensor *found = mr_safetensors_find(s->st, key);
    size_t bits = found && found->rank == 2 && found->shape[1] * 8 == cols ? 1 : 2;
    if (cols * bits % 8)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: codes of %zu columns do not fill bytes", path,
                       key, cols);
    mr_status e = claim(s, key, MR_ST_U8, 2, rows, cols * bits / 8, &codes);
    if (e != MR_OK)
        return e;
    snprintf(key, sizeof key, "%s.scales", name);
    e = claim(s, key, MR_ST_F16, 2, codes->shape[0], MR_ST_ANY, &scales);
    if (e != MR_OK)
        return e;
    size_t groups = scales->shape[1];
    if (!codes->count || !groups || cols % groups || cols / groups % 4)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: tensor %s: %zu scales a row do not cut %zu columns into groups of a "
                       "multiple of 4",
                       path, key, groups, cols);
    for (size_t i = 0; i < scales->count; i++)
        if (!isfinite(mr_st_tensor_f64(scales, i)))
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: element %zu is not finite", path, key, i);
    if ((e = new_factor(s->m, MR_LM_CODES, codes->shape[0], cols, &f)) != MR_OK)
        return e;
    f->codes = codes;
    f->scales = scales;
    f->group = cols / groups;
    f->bits = bits;
    *out = f;
    return MR_OK;
}

static mr_status generated(source *s, const char *name, size_t rows, size_t cols,
                           const mr_lm_factor **out) {
    static const char *const parts[] = {"angles", "gain", "odd", "row_scale"};
    mr_projection *p;
    mr_status e = mr_projection_load(s->st, name, &p);
    if (e != MR_OK)
        return e;
    mr_lm_factor *f;
    if (p->seed.d_out != rows || p->seed.d_in != cols)
        e = mr_fail(MR_BAD_FORMAT, "%s: metadata %s.shape is %zu,%zu, must be %zu,%zu",
                    mr_safetensors_path(s->st), name, p->seed.d_out, p->seed.d_in, rows, cols);
    else
        e = new_factor(s->m, MR_LM_SEED, rows, cols, &f);
    if (e != MR_OK) {
        mr_projection_free(p);
        return e;
    }
    f->seed = p;
    s->m->num_seeds++;
    for (int i = 0; i < 4; i++) {
        char key[512];
        snprintf(key, sizeof key, "%s.%s", name, parts[i]);
        const mr_st_tensor *t = mr_safetensors_find(s->st, key);
        if (t)
            mark(s, t);
    }
    *out = f;
    return MR_OK;
}

static void append(mr_lm_chain *c, const mr_lm_factor *f) {
    if (f)
        c->factor[c->count++] = f;
}

/* ---- layers -----------------------------------------------------------------------------------
 */

static const char *const projection_names[] = {"w1", "w3", "w2"};

static mr_status low_rank(source *s, const char *name, size_t rows, size_t cols, mr_lm_chain *c) {
    char key[512];
    const mr_lm_factor *u, *v;
    snprintf(key, sizeof key, "%s.v", name);
    mr_status e = dense(s, key, MR_ST_ANY, cols, &v);
    if (e != MR_OK)
        return e;
    if (v->rows == 0 || v->rows > largest_extent)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: rank %zu", mr_safetensors_path(s->st), key,
                       v->rows);
    snprintf(key, sizeof key, "%s.u", name);
    if ((e = dense(s, key, rows, v->rows, &u)) != MR_OK)
        return e;
    append(c, v);
    append(c, u);
    return MR_OK;
}

/* A stored matrix in whichever of the three ways it is stored. rows may be MR_ST_ANY. */
static mr_status stored(source *s, const char *name, size_t rows, size_t cols, mr_lm_chain *c) {
    const mr_lm_factor *f = NULL;
    if (has(s, "%s.u", name))
        return low_rank(s, name, rows, cols, c);
    mr_status e = has(s, "%s.codes", name) ? codewords(s, name, rows, cols, &f)
                                           : dense(s, name, rows, cols, &f);
    append(c, f);
    return e;
}

/* R_out W_base R_in; a seed that is absent is the identity. */
static mr_status around_base(source *s, const char *name, size_t rows, size_t cols,
                             const mr_lm_chain *base, mr_lm_chain *c) {
    char key[512];
    const mr_lm_factor *in = NULL, *out = NULL;
    mr_status e = MR_OK;
    snprintf(key, sizeof key, "%s.in", name);
    if (mr_projection_exists(s->st, key))
        e = generated(s, key, cols, cols, &in);
    snprintf(key, sizeof key, "%s.out", name);
    if (e == MR_OK && mr_projection_exists(s->st, key))
        e = generated(s, key, rows, rows, &out);
    if (e != MR_OK)
        return e;
    append(c, in);
    for (size_t i = 0; i < base->count; i++)
        append(c, base->factor[i]);
    append(c, out);
    return MR_OK;
}

/* The way of storing that a kind's name promises. */
static mr_status check_kind(const source *s, const char *kind, const char *name,
                            const mr_lm_chain *c) {
    const mr_lm_factor *f = c->factor[0];
    bool codes = c->count == 1 && f->kind == MR_LM_CODES;
    bool ok = !strcmp(kind, "code1")     ? codes && f->bits == 1
              : !strcmp(kind, "code2")   ? codes && f->bits == 2
              : !strcmp(kind, "lowrank") ? c->count == 2
                                         : c->count == 1 && f->kind == MR_LM_BF16;
    return ok ? MR_OK
              : mr_fail(MR_BAD_FORMAT, "%s: %s is not stored as the kind %s says",
                        mr_safetensors_path(s->st), name, kind);
}

static mr_status one_projection(source *s, const char *kind, const char *name, size_t rows,
                                size_t cols, const mr_lm_chain *base, mr_lm_chain *c) {
    const mr_lm_factor *f = NULL;
    mr_status e;
    if (!strcmp(kind, "shared"))
        return around_base(s, name, rows, cols, base, c);
    if (!strcmp(kind, "rotor")) {
        e = generated(s, name, rows, cols, &f);
        append(c, f);
        return e;
    }
    e = stored(s, name, rows, cols, c);
    return e != MR_OK ? e : check_kind(s, kind, name, c);
}

/* A whole number from the metadata, `otherwise` where it is absent. */
static mr_status count_from_metadata(const source *s, const char *key, size_t otherwise,
                                     size_t *out) {
    const char *text = mr_safetensors_metadata(s->st, key);
    char *end;
    *out = otherwise;
    if (!text)
        return MR_OK;
    unsigned long v = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (v == 0 || *end || v > 65536)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%s\", not 1 to 65536",
                       mr_safetensors_path(s->st), key, text);
    *out = v;
    return MR_OK;
}

/* The bases of a layer: bases[b * 3 + projection]. */
static mr_status read_bases(source *s, size_t at, const size_t *rows, const size_t *cols,
                            size_t count, mr_lm_chain *bases) {
    char name[128];
    mr_status e = MR_OK;
    for (size_t b = 0; e == MR_OK && b < count; b++)
        for (int p = 0; e == MR_OK && p < MR_LM_PROJECTIONS; p++) {
            if (count == 1)
                snprintf(name, sizeof name, "layers.%zu.base.%s", at, projection_names[p]);
            else
                snprintf(name, sizeof name, "layers.%zu.base.%zu.%s", at, b, projection_names[p]);
            e = stored(s, name, rows[p], cols[p], &bases[b * MR_LM_PROJECTIONS + (size_t)p]);
        }
    return e;
}

static mr_status read_experts(source *s, const char *kind, size_t at, mr_lm_layer *l) {
    const mr_lm_config *c = &s->m->config;
    const size_t rows[] = {c->d_ff, c->d_ff, c->d_model},
                 cols[] = {c->d_model, c->d_model, c->d_ff};
    bool shared = !strcmp(kind, "shared");
    size_t count = 1;
    char name[128];
    mr_status e = shared ? count_from_metadata(s, "millrace.bases", 1, &count) : MR_OK;
    mr_lm_chain *bases = calloc(count * MR_LM_PROJECTIONS, sizeof *bases);
    if (!bases)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", s->m->path);
    if (e == MR_OK && shared)
        e = read_bases(s, at, rows, cols, count, bases);
    for (size_t x = 0; e == MR_OK && x < l->n_experts; x++)
        for (int p = 0; e == MR_OK && p < MR_LM_PROJECTIONS; p++) {
            snprintf(name, sizeof name, "layers.%zu.experts.%zu.%s", at, x, projection_names[p]);
            e = one_projection(s, kind, name, rows[p], cols[p],
                               &bases[x % count * MR_LM_PROJECTIONS + (size_t)p],
                               &l->experts[x].w[p]);
        }
    free(bases);
    return e;
}

/* Experts behind a router; without one (kinds rotor and shared may) all are always on. */
static mr_status routed(source *s, const char *kind, size_t at, mr_lm_layer *l) {
    const mr_lm_config *c = &s->m->config;
    bool rotors = !strcmp(kind, "rotor") || !strcmp(kind, "shared");
    char name[64];
    snprintf(name, sizeof name, "layers.%zu.router", at);
    mr_status e = MR_OK;
    l->d_ff = c->d_ff;
    l->n_experts = c->n_experts;
    if (!strcmp(kind, "shared"))
        e = count_from_metadata(s, "millrace.experts", c->n_experts, &l->n_experts);
    if (e == MR_OK && (!rotors || has(s, "%s", name)))
        e = dense(s, name, l->n_experts, c->d_model, &l->router);
    if (e == MR_OK && l->router && l->n_experts < c->top_k)
        e = mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.experts: %zu experts, but %zu are chosen",
                    mr_safetensors_path(s->st), l->n_experts, c->top_k);
    if (e != MR_OK)
        return e;
    l->experts = calloc(l->n_experts, sizeof *l->experts);
    if (!l->experts)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", s->m->path);
    return read_experts(s, kind, at, l);
}

static mr_status collapsed(source *s, size_t at, mr_lm_layer *l) {
    const mr_lm_config *c = &s->m->config;
    char name[64];
    l->n_experts = 1;
    l->experts = calloc(1, sizeof *l->experts);
    if (!l->experts)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", s->m->path);
    mr_lm_chain *w = l->experts->w;
    snprintf(name, sizeof name, "layers.%zu.shared.w1", at);
    mr_status e = stored(s, name, MR_ST_ANY, c->d_model, &w[MR_LM_W1]);
    if (e != MR_OK)
        return e;
    l->d_ff = w[MR_LM_W1].factor[w[MR_LM_W1].count - 1]->rows;
    if (l->d_ff == 0 || l->d_ff > largest_extent)
        return mr_fail(MR_BAD_FORMAT, "%s: %s: %zu rows", mr_safetensors_path(s->st), name,
                       l->d_ff);
    snprintf(name, sizeof name, "layers.%zu.shared.w3", at);
    e = stored(s, name, l->d_ff, c->d_model, &w[MR_LM_W3]);
    snprintf(name, sizeof name, "layers.%zu.shared.w2", at);
    return e != MR_OK ? e : stored(s, name, c->d_model, l->d_ff, &w[MR_LM_W2]);
}

static mr_status feed_forward(source *s, const char *kind, size_t at, mr_lm_layer *l) {
    if (!strcmp(kind, "removed"))
        return MR_OK;
    return !strcmp(kind, "collapsed") ? collapsed(s, at, l) : routed(s, kind, at, l);
}

static mr_status attention(source *s, size_t at, mr_lm_layer *l) {
    const mr_lm_config *c = &s->m->config;
    size_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim, d = c->d_model;
    char name[64];
    struct {
        const char *name;
        size_t rows, cols;
        const mr_lm_factor **to;
    } parts[] = {
        {"wq", q, d, &l->wq}, {"wk", kv, d, &l->wk}, {"wv", kv, d, &l->wv}, {"wo", d, q, &l->wo}};
    mr_status e = MR_OK;
    for (int i = 0; e == MR_OK && i < 4; i++) {
        snprintf(name, sizeof name, "layers.%zu.%s", at, parts[i].name);
        e = dense(s, name, parts[i].rows, parts[i].cols, parts[i].to);
    }
    snprintf(name, sizeof name, "layers.%zu.attn_norm", at);
    if (e == MR_OK)
        e = claim(s, name, MR_ST_F32, 1, d, 0, &l->attn_norm);
    snprintf(name, sizeof name, "layers.%zu.ffn_norm", at);
    if (e == MR_OK)
        e = claim(s, name, MR_ST_F32, 1, d, 0, &l->ffn_norm);
    return e;
}

/* The base's own feed-forward tensors of a replaced layer are there and are not used. */
static void skip_feed_forward(source *s, size_t at) {
    char router[64], experts[64];
    snprintf(router, sizeof router, "layers.%zu.router", at);
    snprintf(experts, sizeof experts, "layers.%zu.experts.", at);
    for (size_t i = 0; i < mr_safetensors_count(s->st); i++) {
        const char *n = mr_safetensors_at(s->st, i)->name;
        if (!strcmp(n, router) || !strncmp(n, experts, strlen(experts)))
            s->used[i] = true;
    }
}

static mr_status open_source(source *s, mr_lm_model *m, const mr_safetensors *st) {
    s->m = m;
    s->st = st;
    s->used = calloc(mr_safetensors_count(st) + 1, sizeof *s->used);
    return s->used ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", m->path);
}

static mr_status close_source(source *s, mr_status e, const char *kind) {
    for (size_t i = 0; e == MR_OK && i < mr_safetensors_count(s->st); i++)
        if (!s->used[i])
            e = mr_fail(MR_BAD_FORMAT, "%s: tensor %s: does not belong to a model of kind %s",
                        mr_safetensors_path(s->st), mr_safetensors_at(s->st, i)->name, kind);
    free(s->used);
    return e;
}

static mr_status read_base(mr_lm_model *m) {
    source s;
    mr_status e = open_source(&s, m, m->base);
    if (e != MR_OK)
        return e;
    const mr_lm_config *c = &m->config;
    e = claim(&s, "tok_embed", MR_ST_BF16, 2, c->vocab, c->d_model, &m->embed);
    if (e == MR_OK)
        e = claim(&s, "norm", MR_ST_F32, 1, c->d_model, 0, &m->norm);
    if (e == MR_OK)
        e = dense(&s, "lm_head", c->vocab, c->d_model, &m->head);
    for (size_t i = 0; e == MR_OK && i < c->n_layers; i++) {
        e = attention(&s, i, &m->layers[i]);
        if (m->layers[i].replaced)
            skip_feed_forward(&s, i);
        else if (e == MR_OK)
            e = feed_forward(&s, "dense", i, &m->layers[i]);
    }
    return close_source(&s, e, "base");
}

/* ---- variants ---------------------------------------------------------------------------------
 */

static mr_status read_replaced(mr_lm_model *m) {
    const char *path = mr_safetensors_path(m->variant);
    const char *text = mr_safetensors_metadata(m->variant, "millrace.replaced");
    if (!text)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.replaced is missing", path);
    long last = -1;
    for (const char *p = text;;) {
        char *end;
        long v = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : -1;
        if (v < 0 || (*end && *end != ',') || v <= last)
            return mr_fail(MR_BAD_FORMAT,
                           "%s: metadata millrace.replaced is \"%s\", not ascending layer numbers",
                           path, text);
        if ((size_t)v >= m->config.n_layers)
            return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.replaced: layer %ld of %zu", path,
                           v, m->config.n_layers);
        m->layers[v].replaced = true;
        m->replaced++;
        last = v;
        if (!*end)
            return MR_OK;
        p = end + 1;
    }
}

static mr_status read_kind(mr_lm_model *m) {
    static const char *const kinds[] = {"dense", "rotor", "shared",    "lowrank",
                                        "code2", "code1", "collapsed", "removed"};
    const char *path = mr_safetensors_path(m->variant);
    const char *kind = mr_safetensors_metadata(m->variant, "millrace.kind");
    if (!kind)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.kind is missing", path);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kind, kinds[i])) {
            snprintf(m->kind, sizeof m->kind, "%s", kind);
            return MR_OK;
        }
    return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.kind: unknown kind \"%s\"", path, kind);
}

static mr_status read_variant(mr_lm_model *m) {
    source s;
    mr_status e = open_source(&s, m, m->variant);
    if (e != MR_OK)
        return e;
    for (size_t i = 0; e == MR_OK && i < m->config.n_layers; i++)
        if (m->layers[i].replaced)
            e = feed_forward(&s, m->kind, i, &m->layers[i]);
    return close_source(&s, e, m->kind);
}

static bool of_variant(const mr_lm_model *m, const mr_st_tensor *t) {
    const mr_st_tensor *first =
        mr_safetensors_count(m->variant) ? mr_safetensors_at(m->variant, 0) : NULL;
    return first && t >= first && t < first + mr_safetensors_count(m->variant);
}

static void count_stored(mr_lm_model *m) {
    for (size_t i = 0; i < mr_safetensors_count(m->variant); i++)
        m->stored_bytes += mr_safetensors_at(m->variant, i)->bytes;
    for (size_t i = 0; i < m->num_factors; i++) {
        const mr_lm_factor *f = m->factors[i];
        if (f->kind == MR_LM_SEED) {
            const mr_seed *s = &f->seed->seed;
            size_t records = mr_seed_chunks_out(s) * mr_seed_chunks_in(s) * (size_t)s->terms;
            m->stored_numbers += records * (2 * (size_t)mr_rgu_planes(s->n) + 1);
            m->stored_numbers += s->row_scale ? s->d_out : 0;
        } else if (of_variant(m, f->kind == MR_LM_CODES ? f->codes : f->matrix)) {
            m->stored_numbers += f->rows * f->cols;
            m->stored_numbers += f->kind == MR_LM_CODES ? f->scales->count : 0;
        }
    }
}

/* The folder above the folder of `path`, with a slash, or "../" when path has fewer names. */
static char *folder_above(const char *path) {
    char *whole = realpath(path, NULL);
    if (!whole)
        return NULL;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(whole, '/');
        if (slash)
            *slash = 0;
    }
    char *folder = NULL;
    if (asprintf(&folder, "%s/", whole) < 0)
        folder = NULL;
    free(whole);
    return folder;
}

static mr_status open_base_of_variant(mr_lm_model *m) {
    const char *path = mr_safetensors_path(m->variant);
    const char *name = mr_safetensors_metadata(m->variant, "millrace.base");
    const char *want = mr_safetensors_metadata(m->variant, "millrace.base_sha256");
    if (!name || !want)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: metadata millrace.base or millrace.base_sha256 is missing", path);
    if (!*name || strchr(name, '/'))
        return mr_fail(MR_BAD_FORMAT, "%s: metadata millrace.base is \"%s\", not a file's name",
                       path, name);
    char *folder = folder_above(path), *full = NULL;
    if (!folder || asprintf(&full, "%s%s", folder, name) < 0) {
        free(folder);
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    free(folder);
    void *data;
    size_t size;
    char have[65];
    mr_status e = mr_file_read(full, (size_t)1 << 34, &data, &size);
    if (e == MR_OK) {
        mr_sha256_hex(data, size, have);
        free(data);
        if (strcmp(have, want) != 0)
            e = mr_fail(MR_BAD_FORMAT, "%s: was made for another base: %s has the SHA-256 %s", path,
                        full, have);
    }
    if (e == MR_OK)
        e = mr_safetensors_open(full, &m->base);
    free(full);
    return e;
}

/* ---- both -------------------------------------------------------------------------------------
 */

static mr_status open_files(mr_lm_model *m) {
    mr_safetensors *st;
    mr_status e = mr_safetensors_open(m->path, &st);
    if (e != MR_OK)
        return e;
    const char *format = mr_safetensors_metadata(st, "millrace.format");
    if (format && !strcmp(format, "millrace-lm-variant")) {
        m->variant = st;
        if ((e = check_version(st)) == MR_OK)
            e = open_base_of_variant(m);
        if (e != MR_OK)
            return e;
    } else {
        m->base = st;
    }
    format = mr_safetensors_metadata(m->base, "millrace.format");
    if (!format || strcmp(format, "millrace-lm") != 0)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: not a language model: metadata millrace.format is %s%s%s",
                       mr_safetensors_path(m->base), format ? "\"" : "",
                       format ? format : "missing", format ? "\"" : "");
    return check_version(m->base);
}

static mr_status build(mr_lm_model *m) {
    mr_status e = open_files(m);
    if (e == MR_OK)
        e = read_config(m);
    if (e != MR_OK)
        return e;
    m->layers = calloc(m->config.n_layers, sizeof *m->layers);
    if (!m->layers)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", m->path);
    snprintf(m->kind, sizeof m->kind, "base");
    if (m->variant && ((e = read_kind(m)) != MR_OK || (e = read_replaced(m)) != MR_OK))
        return e;
    e = read_base(m);
    if (e == MR_OK && m->variant)
        e = read_variant(m);
    if (e == MR_OK && m->variant)
        count_stored(m);
    return e;
}

mr_status mr_lm_model_open(const char *path, mr_lm_model **out) {
    *out = NULL;
    mr_lm_model *m = calloc(1, sizeof *m);
    mr_status e = MR_OK;
    if (!m || !(m->path = strdup(path)))
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    if (e == MR_OK)
        e = build(m);
    if (e != MR_OK) {
        mr_lm_model_close(m);
        return e;
    }
    *out = m;
    return MR_OK;
}

void mr_lm_model_close(mr_lm_model *m) {
    if (!m)
        return;
    for (size_t i = 0; m->layers && i < m->config.n_layers; i++)
        free(m->layers[i].experts);
    for (size_t i = 0; i < m->num_factors; i++) {
        mr_projection_free(m->factors[i]->seed);
        free(m->factors[i]);
    }
    free(m->factors);
    free(m->layers);
    mr_safetensors_close(m->variant);
    mr_safetensors_close(m->base);
    free(m->path);
    free(m);
}
