/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pnm/gemv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "models/golden/pnm.h"

enum {
    WORDS = MR_PNM_ROW_WORDS,
    ROW_BYTES = 4 * WORDS,
    PART = MR_PNM_PART_COLUMNS,
    ROUND_OUTPUTS = 2048, /* of a group: results of 8 vectors stay within Y_ROWS */
    CHUNK_COLUMNS = MR_PNM_MAX_PARTS * PART, /* inputs of which a group holds 16 outputs at least */
    X_ROWS = MR_PNM_ACT_COLUMNS, /* one half of the scratchpad: two vectors' tiles, .. */
    Y_ROWS = 1024                /* .. the other: two results' tiles */
};

/* A range of inputs, all vectors of it in memory part by part. */
typedef struct chunk {
    size_t first, kc; /* columns */
    uint32_t parts;
    uint64_t x[MR_PNM_MAX_PARTS]; /* [vector][columns of the part] rows */
} chunk;

/* A range of outputs: a matrix for every chunk. */
typedef struct band {
    size_t first, outputs; /* outputs that exist; results are padded to 16 */
    mr_pnm_matrix *matrix;
    uint64_t y; /* [vector][outputs / 16] rows */
} band;

struct mr_pnm_gemv_plan {
    mr_pnm_gemv g;
    mr_pnm_builder *b;
    mr_pnm_program *program;
    size_t rounded, kc;
    chunk *chunk;
    size_t chunks;
    band *band; /* in the order of the outputs; band_of[i] is the first of output share i */
    size_t bands, band_of[MR_PNM_GROUPS + 1];
    unsigned output_shares, vector_shares;
};

static size_t blocks(size_t n) { return n / WORDS + (n % WORDS != 0); }
static size_t band_rows(const band *b) { return blocks(b->outputs); }

/* ---- Shares -----------------------------------------------------------------------------------
 */

static mr_status check(mr_pnm_gemv_plan *p) {
    const mr_pnm_gemv *g = &p->g;
    if (!g->outputs || !g->inputs || !g->vectors)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: %zu x %zu times %zu vectors: nothing to do",
                       g->name, g->outputs, g->inputs, g->vectors);
    if (g->groups < 1 || g->groups > MR_PNM_GROUPS)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: shared by %u groups; a chip has 1 to %d", g->name,
                       g->groups, MR_PNM_GROUPS);
    for (size_t i = 0; i < g->outputs * g->inputs; i++) {
        float v = g->w[i];
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        uint16_t code = mr_pnm_bf16(bits);
        if (!isfinite(v) || (!g->wide && (code & 0x7F80) == 0x7F80))
            return mr_fail(MR_BAD_FORMAT, "%s: weight [%zu, %zu] is %s", g->name, i / g->inputs,
                           i % g->inputs,
                           isnan(v)      ? "NaN"
                           : isfinite(v) ? "too large for bf16"
                                         : "infinite");
        p->rounded += !g->wide && (bits & 0xFFFF) != 0;
    }
    return MR_OK;
}

/* How many shares of the outputs and of the vectors: the least work of the busiest group. */
static void share(mr_pnm_gemv_plan *p) {
    size_t least = SIZE_MAX;
    for (unsigned v = 1; v <= p->g.groups; v++) {
        unsigned o = p->g.groups / v;
        size_t work = ((blocks(p->g.outputs) + o - 1) / o) * ((p->g.vectors + v - 1) / v);
        if (work < least) {
            least = work;
            p->output_shares = o;
            p->vector_shares = v;
        }
    }
}

static mr_status make_bands(mr_pnm_gemv_plan *p) {
    size_t all = blocks(p->g.outputs), shares = p->output_shares;
    size_t room = MR_PNM_COLUMNS / (WORDS / MR_PNM_PES) / p->chunk[0].kc;
    size_t most = room < ROUND_OUTPUTS / WORDS ? room : ROUND_OUTPUTS / WORDS;
    p->band = calloc(all, sizeof *p->band);
    if (!p->band)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory", p->g.name);
    for (size_t s = 0; s < shares; s++) {
        size_t first = all * s / shares, last = all * (s + 1) / shares;
        size_t rounds = (last - first + most - 1) / most;
        p->band_of[s] = p->bands;
        for (size_t r = 0; r < rounds; r++) {
            size_t from = first + (last - first) * r / rounds;
            size_t to = first + (last - first) * (r + 1) / rounds;
            band *b = &p->band[p->bands++];
            b->first = from * WORDS;
            b->outputs = (to * WORDS < p->g.outputs ? to * WORDS : p->g.outputs) - b->first;
            b->matrix = calloc(p->chunks, sizeof *b->matrix);
            if (!b->matrix)
                return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory", p->g.name);
        }
    }
    p->band_of[shares] = p->bands;
    return MR_OK;
}

static size_t part_columns(const chunk *c, uint32_t part) {
    size_t left = c->kc - (size_t)part * PART;
    return left < PART ? left : PART;
}

/* ---- The memory image -------------------------------------------------------------------------
 */

static mr_status make_chunks(mr_pnm_gemv_plan *p) {
    p->kc = blocks(p->g.inputs);
    p->chunks = (p->kc + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
    p->chunk = calloc(p->chunks, sizeof *p->chunk);
    if (!p->chunk)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory", p->g.name);
    for (size_t i = 0; i < p->chunks; i++) {
        chunk *c = &p->chunk[i];
        c->first = i * CHUNK_COLUMNS;
        c->kc = p->kc - c->first < CHUNK_COLUMNS ? p->kc - c->first : CHUNK_COLUMNS;
        c->parts = (uint32_t)((c->kc + PART - 1) / PART);
    }
    return MR_OK;
}

static mr_status put_vectors(mr_pnm_gemv_plan *p) {
    const mr_pnm_gemv *g = &p->g;
    mr_status status = MR_OK;
    for (size_t i = 0; i < p->chunks; i++) {
        chunk *c = &p->chunk[i];
        for (uint32_t j = 0; j < c->parts && status == MR_OK; j++) {
            size_t columns = part_columns(c, j), k = (c->first + (size_t)j * PART) * WORDS;
            size_t inputs = g->inputs - k < columns * WORDS ? g->inputs - k : columns * WORDS;
            if (g->vectors > SIZE_MAX / ROW_BYTES / columns)
                return mr_pnm_b_fail(p->b, MR_LIMIT, "%s: too many vectors", g->name);
            status = mr_pnm_b_memory(p->b, g->vectors * columns * ROW_BYTES, "vectors", &c->x[j]);
            float *to = mr_pnm_b_at(p->b, c->x[j]);
            for (size_t n = 0; status == MR_OK && n < g->vectors; n++)
                memcpy(to + n * columns * WORDS, g->x + n * g->inputs + k, inputs * sizeof *to);
        }
    }
    return status;
}

static mr_status put_weights(mr_pnm_gemv_plan *p) {
    const mr_pnm_gemv *g = &p->g;
    mr_status status = MR_OK;
    for (size_t i = 0; i < p->bands && status == MR_OK; i++) {
        band *b = &p->band[i];
        for (size_t j = 0; j < p->chunks && status == MR_OK; j++) {
            size_t k = p->chunk[j].first * WORDS, inputs = p->chunk[j].kc * WORDS;
            if (inputs > g->inputs - k)
                inputs = g->inputs - k;
            status = mr_pnm_b_matrix(p->b, g->name, g->w + b->first * g->inputs + k, b->outputs,
                                     inputs, g->inputs, &b->matrix[j]);
        }
        if (status == MR_OK)
            status = mr_pnm_b_memory(p->b, g->vectors * band_rows(b) * ROW_BYTES, "results", &b->y);
    }
    return status;
}

/* ---- A group's list ---------------------------------------------------------------------------
 */

typedef struct worker {
    mr_pnm_gemv_plan *p;
    unsigned group;
    size_t first, last; /* its vectors */
    uint16_t x[2], y[2], col;
} worker;

/* One MATVEC: a tile of vectors, a part of their inputs. */
typedef struct piece {
    size_t tile, vectors;
    uint32_t part;
} piece;

static mr_status load_x(const worker *w, const chunk *c, const piece *s, size_t index,
                        size_t tile) {
    size_t columns = part_columns(c, s->part);
    uint64_t n = w->first + s->tile * tile;
    return mr_pnm_b_load(w->p->b, w->group, w->x[index % 2], (uint16_t)(s->vectors * columns),
                         c->x[s->part] + n * columns * ROW_BYTES, 0);
}

static mr_status move_y(const worker *w, const band *b, const piece *s, size_t tile, bool store) {
    uint64_t n = w->first + s->tile * tile, rows = band_rows(b);
    mr_status (*move)(mr_pnm_builder *, unsigned, uint16_t, uint16_t, uint64_t, uint32_t) =
        store ? mr_pnm_b_store : mr_pnm_b_load;
    return move(w->p->b, w->group, w->y[s->tile % 2], (uint16_t)(s->vectors * rows),
                b->y + n * rows * ROW_BYTES, 0);
}

static mr_status multiply(const worker *w, const band *b, size_t j, const piece *s, size_t index,
                          bool overlap) {
    const chunk *c = &w->p->chunk[j];
    const mr_pnm_matrix *m = &b->matrix[j];
    size_t columns = part_columns(c, s->part), rows = band_rows(b);
    bool accum = j > 0 || s->part > 0;
    mr_pnm_matvec a = {.overlap = overlap,
                       .accum = accum,
                       .mode = w->p->g.mode,
                       .wexp = m->wexp[s->part],
                       .col = (uint16_t)(w->col + m->outputs / MR_PNM_PES * PART * s->part),
                       .kc = (uint16_t)columns,
                       .outputs = (uint16_t)m->outputs,
                       .vectors = (uint16_t)s->vectors,
                       .x = w->x[index % 2],
                       .x_stride = (int16_t)columns,
                       .y = w->y[s->tile % 2],
                       .y_stride = (int16_t)rows,
                       .old = w->y[s->tile % 2],
                       .old_stride = (int16_t)rows};
    return mr_pnm_b_matvec(w->p->b, w->group, &a);
}

static piece piece_at(const worker *w, const chunk *c, size_t index, size_t tile) {
    piece s = {.tile = index / c->parts, .part = (uint32_t)(index % c->parts)};
    size_t left = w->last - w->first - s.tile * tile;
    s.vectors = left < tile ? left : tile;
    return s;
}

/*
 * All vectors of the group through one matrix. A LOAD waits for everything before it, a MATVEC only
 * for the matrix side: so the next inputs are asked for just before the MATVEC of the last ones,
 * and arrive while it runs. (The last MATVEC waits for its own.)
 */
static mr_status list_matrix(const worker *w, const band *b, size_t j) {
    mr_pnm_builder *p = w->p->b;
    const chunk *c = &w->p->chunk[j];
    size_t widest = c->kc < PART ? c->kc : PART, tile = X_ROWS / widest;
    if (tile > MR_PNM_MAX_VECTORS)
        tile = MR_PNM_MAX_VECTORS;
    if (tile > Y_ROWS / band_rows(b))
        tile = Y_ROWS / band_rows(b);
    size_t pieces = (w->last - w->first + tile - 1) / tile * c->parts;
    mr_status status = mr_pnm_b_wload_matrix(p, w->group, &b->matrix[j], w->col);
    piece s = piece_at(w, c, 0, tile);
    if (status == MR_OK)
        status = load_x(w, c, &s, 0, tile);
    for (size_t i = 0; i < pieces && status == MR_OK; i++) {
        s = piece_at(w, c, i, tile);
        if (j > 0 && s.part == 0)
            status = move_y(w, b, &s, tile, false);
        if (i + 1 < pieces && status == MR_OK) {
            piece next = piece_at(w, c, i + 1, tile);
            status = load_x(w, c, &next, i + 1, tile);
        }
        if (status == MR_OK)
            status = multiply(w, b, j, &s, i, i + 1 < pieces);
        if (status == MR_OK && s.part + 1 == c->parts)
            status = move_y(w, b, &s, tile, true);
    }
    return status;
}

static mr_status list_group(mr_pnm_gemv_plan *p, unsigned group) {
    size_t share = group / p->vector_shares, part = group % p->vector_shares, columns = 0;
    worker w = {.p = p, .group = group};
    w.first = p->g.vectors * part / p->vector_shares;
    w.last = p->g.vectors * (part + 1) / p->vector_shares;
    if (w.first == w.last || p->band_of[share] == p->band_of[share + 1])
        return MR_OK;
    for (size_t i = p->band_of[share]; i < p->band_of[share + 1]; i++)
        if (p->band[i].matrix[0].columns > columns)
            columns = p->band[i].matrix[0].columns;
    mr_status status = mr_pnm_b_columns(p->b, group, p->g.tier, columns, p->g.name, &w.col);
    for (int i = 0; i < 2 && status == MR_OK; i++) {
        status = mr_pnm_b_rows(p->b, group, X_ROWS, "vectors", &w.x[i]);
        if (status == MR_OK)
            status = mr_pnm_b_rows(p->b, group, Y_ROWS, "results", &w.y[i]);
    }
    for (size_t i = p->band_of[share]; i < p->band_of[share + 1]; i++)
        for (size_t j = 0; j < p->chunks && status == MR_OK; j++)
            status = list_matrix(&w, &p->band[i], j);
    return status;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static mr_status build(mr_pnm_gemv_plan *p) {
    mr_status status = check(p);
    if (status == MR_OK)
        status = mr_pnm_builder_create(p->g.groups, p->g.wide, &p->b);
    if (status == MR_OK)
        status = make_chunks(p);
    if (status != MR_OK)
        return status;
    share(p);
    status = make_bands(p);
    if (status == MR_OK)
        status = put_vectors(p);
    if (status == MR_OK)
        status = put_weights(p);
    for (unsigned i = 0; i < p->output_shares * p->vector_shares && status == MR_OK; i++)
        status = list_group(p, i);
    return status == MR_OK ? mr_pnm_builder_finish(p->b, &p->program) : status;
}

mr_status mr_pnm_gemv_plan_create(const mr_pnm_gemv *g, mr_pnm_gemv_plan **out) {
    *out = NULL;
    mr_pnm_gemv_plan *p = calloc(1, sizeof *p);
    if (!p)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory", g->name);
    p->g = *g;
    mr_status status = build(p);
    mr_pnm_builder_destroy(p->b);
    p->b = NULL;
    if (status != MR_OK) {
        mr_pnm_gemv_plan_destroy(p);
        return status;
    }
    *out = p;
    return MR_OK;
}

void mr_pnm_gemv_plan_destroy(mr_pnm_gemv_plan *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->bands; i++)
        free(p->band[i].matrix);
    free(p->band);
    free(p->chunk);
    mr_pnm_program_destroy(p->program);
    free(p);
}

mr_pnm_program *mr_pnm_gemv_program(mr_pnm_gemv_plan *p) { return p->program; }
size_t mr_pnm_gemv_rounded(const mr_pnm_gemv_plan *p) { return p->rounded; }

void mr_pnm_gemv_results(const mr_pnm_gemv_plan *p, float *y) {
    for (size_t i = 0; i < p->bands; i++) {
        const band *b = &p->band[i];
        const float *from = (const float *)(p->program->image + b->y);
        for (size_t n = 0; n < p->g.vectors; n++)
            memcpy(y + n * p->g.outputs + b->first, from + n * band_rows(b) * WORDS,
                   b->outputs * sizeof *y);
    }
}
