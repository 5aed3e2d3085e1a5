/* SPDX-License-Identifier: Apache-2.0 */
#include "host/units/rgu_seed.h"

#include "host/core/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char angles_suffix[] = ".angles";

bool mr_projection_exists(const mr_safetensors *st, const char *name) {
    char full[512];
    return (size_t)snprintf(full, sizeof full, "%s%s", name, angles_suffix) < sizeof full &&
           mr_safetensors_find(st, full);
}

const char *mr_projection_name(const mr_safetensors *st, size_t i, size_t *length) {
    for (size_t k = 0; k < mr_safetensors_count(st); k++) {
        const char *name = mr_safetensors_at(st, k)->name;
        size_t n = strlen(name), s = strlen(angles_suffix);
        if (n > s && !strcmp(name + n - s, angles_suffix) && i-- == 0) {
            *length = n - s;
            return name;
        }
    }
    return NULL;
}

/* A decimal number and nothing else. */
static bool whole_number(const char **text, size_t *out) {
    const char *p = *text;
    if (*p < '0' || *p > '9')
        return false;
    size_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, (size_t)10, &v) ||
            __builtin_add_overflow(v, (size_t)(*p - '0'), &v))
            return false;
    *text = p;
    *out = v;
    return true;
}

static mr_status read_metadata(const mr_safetensors *st, const char *name, mr_seed *seed) {
    const char *path = mr_safetensors_path(st);
    char key[512];
    snprintf(key, sizeof key, "%s.n", name);
    const char *text = mr_safetensors_metadata(st, key), *p = text;
    size_t n;
    if (!text)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is missing", path, key);
    if (!whole_number(&p, &n) || *p)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%s\", not a number", path, key, text);
    if (n > MR_RGU_MAX_N || !mr_rgu_n_supported((int)n))
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is %zu; supported are 8 and 10", path, key,
                       n);
    seed->n = (int)n;
    snprintf(key, sizeof key, "%s.shape", name);
    text = p = mr_safetensors_metadata(st, key);
    if (!text)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is missing", path, key);
    bool ok = whole_number(&p, &seed->d_out) && *p++ == ',' && whole_number(&p, &seed->d_in) && !*p;
    if (!ok)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%s\", not \"d_out,d_in\"", path, key,
                       text);
    if (seed->d_out == 0 || seed->d_in == 0)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: metadata %s is \"%s\": rows and columns must be at least 1", path, key,
                       text);
    size_t most = (size_t)65535 << n;
    if (seed->d_out > most || seed->d_in > most || seed->d_out > INT32_MAX ||
        seed->d_in > INT32_MAX)
        return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is \"%s\": too large for n = %zu", path, key,
                       text, n);
    return MR_OK;
}

/* A tensor directly under NAME that is no part of a seed is a misspelling or a newer format. */
static mr_status refuse_unknown(const mr_safetensors *st, const char *name) {
    static const char *const known[] = {"angles", "gain", "odd", "row_scale"};
    size_t length = strlen(name);
    for (size_t i = 0; i < mr_safetensors_count(st); i++) {
        const char *t = mr_safetensors_at(st, i)->name;
        if (strncmp(t, name, length) || t[length] != '.' || strchr(t + length + 1, '.'))
            continue;
        bool ok = false;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            ok |= !strcmp(t + length + 1, known[k]);
        if (!strcmp(t + length + 1, "sign_seed"))
            return mr_fail(MR_UNSUPPORTED, "%s: tensor %s: no generator here has +-1 diagonals",
                           mr_safetensors_path(st), t);
        if (!ok)
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: no part of a seed has this name",
                           mr_safetensors_path(st), t);
    }
    return MR_OK;
}

static void *aligned_zero(size_t bytes) {
    size_t rounded = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded);
    if (p)
        memset(p, 0, rounded);
    return p;
}

/* Offset of a tensor's data inside its projection's storage: each starts at a multiple of 8. */
static size_t place(size_t *at, size_t bytes) {
    size_t here = *at;
    *at += (bytes + 7) / 8 * 8;
    return here;
}

static mr_status check_values(const mr_safetensors *st, const mr_seed *s, const char *name) {
    const char *path = mr_safetensors_path(st);
    size_t ci = mr_seed_chunks_in(s), per_term = mr_seed_chunks_out(s) * ci;
    for (size_t i = 0; i < per_term * (size_t)s->terms; i++) {
        size_t t = i / per_term, o = i / ci % mr_seed_chunks_out(s), c = i % ci;
        if (!isfinite(s->gain[i]))
            return mr_fail(MR_BAD_FORMAT,
                           "%s: tensor %s.gain: element [%zu, %zu, %zu] is not finite", path, name,
                           t, o, c);
        if (s->odd[i] > 1)
            return mr_fail(MR_BAD_FORMAT,
                           "%s: tensor %s.odd: element [%zu, %zu, %zu] is %u, not 0 or 1", path,
                           name, t, o, c, s->odd[i]);
    }
    for (size_t r = 0; s->row_scale && r < s->d_out; r++)
        if (!isfinite(s->row_scale[r]))
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s.row_scale: element [%zu] is not finite",
                           path, name, r);
    return MR_OK;
}

/* Copies the tensors into storage of their own: the file's data may be unaligned. */
static mr_status copy_tensors(mr_projection *p, const mr_st_tensor *angles,
                              const mr_st_tensor *gain, const mr_st_tensor *odd,
                              const mr_st_tensor *row_scale) {
    size_t at = 0;
    size_t a = place(&at, angles->count * sizeof(int16_t)), g = place(&at, gain->bytes);
    size_t o = place(&at, odd->bytes), r = place(&at, row_scale ? row_scale->bytes : 0);
    uint8_t *base = p->storage = aligned_zero(at);
    if (!base)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for the seed (%zu bytes)", p->name, at);
    int16_t *wide = (int16_t *)(base + a);
    if (angles->dtype == MR_ST_I16)
        memcpy(wide, angles->data, angles->bytes);
    else
        for (size_t i = 0; i < angles->count; i++)
            wide[i] = (int16_t)(((const int8_t *)angles->data)[i] * 256);
    memcpy(base + g, gain->data, gain->bytes);
    memcpy(base + o, odd->data, odd->bytes);
    p->seed.angles = wide;
    p->seed.gain = (const float *)(base + g);
    p->seed.odd = base + o;
    if (row_scale) {
        memcpy(base + r, row_scale->data, row_scale->bytes);
        p->seed.row_scale = (const float *)(base + r);
    }
    p->stored_bytes = angles->bytes + gain->bytes + odd->bytes + (row_scale ? row_scale->bytes : 0);
    return MR_OK;
}

static mr_status read_tensors(const mr_safetensors *st, mr_projection *p) {
    char key[512];
    mr_seed *s = &p->seed;
    const mr_st_tensor *angles, *gain, *odd, *row_scale = NULL;
    size_t co = mr_seed_chunks_out(s), ci = mr_seed_chunks_in(s);

    snprintf(key, sizeof key, "%s.angles", p->name);
    angles = mr_safetensors_find(st, key);
    mr_st_dtype kind = angles->dtype == MR_ST_I8 ? MR_ST_I8 : MR_ST_I16;
    size_t shape[5] = {MR_ST_ANY, co, ci, 2, (size_t)mr_rgu_planes(s->n)};
    mr_status e = mr_safetensors_require(st, key, kind, 5, shape, &angles);
    if (e != MR_OK)
        return e;
    size_t terms = angles->shape[0];
    if (terms < 1 || terms > MR_RGU_MAX_TERMS)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: %zu terms; must be 1 to %d",
                       mr_safetensors_path(st), key, terms, MR_RGU_MAX_TERMS);
    s->terms = (int)terms;

    size_t per_term[3] = {terms, co, ci};
    snprintf(key, sizeof key, "%s.gain", p->name);
    if ((e = mr_safetensors_require(st, key, MR_ST_F32, 3, per_term, &gain)) != MR_OK)
        return e;
    snprintf(key, sizeof key, "%s.odd", p->name);
    if ((e = mr_safetensors_require(st, key, MR_ST_U8, 3, per_term, &odd)) != MR_OK)
        return e;
    snprintf(key, sizeof key, "%s.row_scale", p->name);
    if (mr_safetensors_find(st, key) &&
        (e = mr_safetensors_require(st, key, MR_ST_F32, 1, &s->d_out, &row_scale)) != MR_OK)
        return e;
    if ((e = copy_tensors(p, angles, gain, odd, row_scale)) != MR_OK)
        return e;
    return check_values(st, s, p->name);
}

static mr_status make_image(mr_projection *p) {
    const mr_seed *s = &p->seed;
    p->image_bytes = mr_rgu_image_bytes(s);
    p->image = aligned_zero(p->image_bytes);
    if (!p->image)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for the seed image (%zu bytes)",
                       p->name, p->image_bytes);
    mr_rgu_pack(s, p->image);
    if (!s->row_scale)
        return MR_OK;
    size_t rows = mr_seed_chunks_out(s) << s->n;
    p->scale_bytes = rows * sizeof(float);
    p->row_scale = aligned_zero(p->scale_bytes);
    if (!p->row_scale)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for the row scales", p->name);
    for (size_t r = 0; r < rows; r++)
        p->row_scale[r] = r < s->d_out ? s->row_scale[r] : 1.0f;
    return MR_OK;
}

static void make_job(mr_projection *p) {
    const mr_seed *s = &p->seed;
    mr_rgu_job *j = &p->job;
    *j = mr_rgu_job_init();
    j->n = (uint32_t)s->n;
    j->terms = (uint32_t)s->terms;
    j->chunks_in = (uint32_t)mr_seed_chunks_in(s);
    j->chunks_out = (uint32_t)mr_seed_chunks_out(s);
    j->d_in = j->col1 = (uint32_t)s->d_in;
    j->d_out = j->row1 = (uint32_t)s->d_out;
    j->has_even = j->has_odd = false;
    for (size_t i = 0; i < (size_t)s->terms * j->chunks_in * j->chunks_out; i++) {
        j->has_odd |= s->odd[i] == 1;
        j->has_even |= s->odd[i] == 0;
    }
}

mr_status mr_projection_load(const mr_safetensors *st, const char *name, mr_projection **out) {
    *out = NULL;
    if (strlen(name) > 400 || !mr_projection_exists(st, name))
        return mr_fail(MR_NOT_FOUND, "%s: no projection %s (there is no tensor %s.angles)",
                       mr_safetensors_path(st), name, name);
    mr_status e = refuse_unknown(st, name);
    if (e != MR_OK)
        return e;
    mr_projection *p = calloc(1, sizeof *p);
    if (!p || !(p->name = strdup(name)))
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", name);
    if (e == MR_OK)
        e = read_metadata(st, name, &p->seed);
    if (e == MR_OK)
        e = read_tensors(st, p);
    if (e == MR_OK)
        e = make_image(p);
    if (e != MR_OK) {
        mr_projection_free(p);
        return e;
    }
    make_job(p);
    *out = p;
    return MR_OK;
}

void mr_projection_free(mr_projection *p) {
    if (!p)
        return;
    free(p->name);
    free(p->image);
    free(p->row_scale);
    free(p->storage);
    free(p);
}
