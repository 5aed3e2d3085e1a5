/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a network's operations to the groups' programs: batches, stages, places, loops and signals.
 * docs/flow.md has the algorithm.
 */
#include "host/flow/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { SEM_DATA, SEM_CREDIT, SEM_TURN };
enum { ROW_BYTES = 4 * FLOW_WORDS };

struct mr_flow_plan {
    flow_compiler c;
    size_t tokens, channels;
    mr_flow_plan_info info;
    size_t replica_iterations[MR_PNM_GROUPS];
    flow_group group[MR_PNM_GROUPS];
    uint64_t in, out, zeros;
    mr_pnm_program *program;
};

/* ---- What networks ask for --------------------------------------------------------------------
 */

static float *add_rows(flow_compiler *c, flow_fixed *to, size_t rows) {
    to->rows = rows;
    if (mr_pnm_b_memory(c->b, rows * ROW_BYTES, "constants", &to->addr) != MR_OK)
        return NULL;
    return mr_pnm_b_at(c->b, to->addr);
}

float *flow_pack_rows(flow_compiler *c, flow_block_data *d, size_t rows) {
    return add_rows(c, &d->fixed[d->fixeds++], rows);
}
float *flow_shared_rows(flow_compiler *c, size_t rows) { return add_rows(c, &c->shared, rows); }

void flow_pack(flow_compiler *c, flow_block_data *d, const char *name, const float *w,
               size_t outputs, size_t inputs, size_t calls) {
    char full[160];
    flow_weight *to = &d->weight[d->weights++];
    snprintf(full, sizeof full, "%s: %c%zu.%s", c->f->path,
             c->f->kind == MR_FLOW_COUPLING ? 'c' : 'b', (size_t)(d - c->data), name);
    to->calls = calls;
    if (!w)
        mr_pnm_b_fail(c->b, MR_OUT_OF_MEMORY, "%s: out of memory", full);
    else
        mr_pnm_b_matrix(c->b, full, w, outputs, inputs, inputs, &to->matrix);
}

/* ---- Stages -----------------------------------------------------------------------------------
 */

static mr_status cost_of_blocks(mr_flow_plan *p, double *cost) {
    flow_compiler *c = &p->c;
    uint16_t col[1][FLOW_MAX_BLOCK_MATRICES] = {{0}}, row[1][FLOW_MAX_BLOCK_ROWS] = {{0}};
    for (size_t e = c->o.first; e < c->o.last; e++) {
        flow_ops ops = {0};
        flow_group g = {.first = e, .last = e + 1, .col = col, .row = row};
        c->net->block(c, &g, &g.half[0], e, &ops);
        cost[e] = flow_ops_cycles(&ops);
        bool failed = ops.failed;
        flow_ops_clear(&ops);
        if (failed)
            return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", c->f->path);
    }
    return MR_OK;
}

/*
 * Blocks first..last - 1 to `stages` stages in order, so that the slowest stage is as fast as can
 * be: best[s][e] = min over m of max(best[s - 1][m], cost of m..e - 1).
 */
static void partition(const mr_flow_plan *p, const double *cost, unsigned stages, size_t *first) {
    enum { MOST = 65 };
    double best[MR_PNM_GROUPS + 1][MOST];
    size_t cut[MR_PNM_GROUPS + 1][MOST] = {{0}}, from = p->c.o.first, n = p->c.o.last - from;
    for (size_t e = 0; e <= n; e++)
        best[0][e] = e ? 1e300 : 0;
    for (unsigned s = 1; s <= stages; s++)
        for (size_t e = 0; e <= n; e++) {
            double sum = 0;
            best[s][e] = 1e300;
            for (size_t m = e; m-- > 0;) {
                sum += cost[from + m];
                double slowest = sum > best[s - 1][m] ? sum : best[s - 1][m];
                if (slowest < best[s][e]) {
                    best[s][e] = slowest;
                    cut[s][e] = m;
                }
            }
        }
    size_t e = n;
    for (unsigned s = stages; s > 0; s--) {
        first[s] = from + e;
        e = cut[s][e];
    }
    first[0] = from;
}

/* ---- Batches ----------------------------------------------------------------------------------
 */

static mr_status prepare_batch(mr_flow_plan *p, size_t batch) {
    flow_compiler *c = &p->c;
    c->batch = batch;
    c->ld_rows = flow_rows(batch);
    c->zero_work = c->cache = c->wregs = c->shared.rows = 0;
    c->net->prepare(c);
    return mr_pnm_builder_status(c->b);
}

/* Whether two halves of this batch fit into a group beside a stage's fixed rows. */
static bool fits(const mr_flow_plan *p, size_t halves, size_t blocks) {
    const flow_compiler *c = &p->c;
    size_t half = c->state + c->ld_rows + c->work + c->scalars, fixed = 0;
    for (size_t i = 0; i < c->data[0].fixeds; i++)
        fixed += c->data[0].fixed[i].rows;
    return halves * half + fixed * blocks + c->shared.rows <= MR_PNM_SCRATCH_ROWS &&
           halves * c->wregs <= MR_PNM_WREGS && halves * c->cache <= MR_PNM_COLUMNS / 2;
}

/*
 * The batch: an iteration takes as long as its images and about `fixed` images more (rows are
 * opened, operations started); all iterations and the filling of the pipeline are to be shortest.
 */
static size_t choose_batch(const mr_flow_plan *p, size_t most) {
    const mr_flow_plan_info *i = &p->info;
    double fixed = p->c.o.inverse && p->c.f->kind == MR_FLOW_TAR ? 6 : 1, least = 1e300;
    size_t images = (p->c.o.images + i->replicas - 1) / i->replicas, best = 1;
    for (size_t batch = 1; batch <= most; batch++) {
        size_t whole = (images + i->halves * batch - 1) / (i->halves * batch);
        double iterations = (double)whole;
        double cost = (iterations + i->stages - 1) * ((double)batch + fixed);
        if (cost < least) {
            least = cost;
            best = batch;
        }
    }
    return best;
}

static size_t largest_batch(const flow_compiler *c) {
    if (c->f->kind == MR_FLOW_COUPLING)
        return c->f->tokens > 32 ? 1 : 32 / c->f->tokens;
    if (c->o.inverse)
        return 16;
    return c->f->tokens > MR_PNM_MAX_VECTORS ? 1 : MR_PNM_MAX_VECTORS / c->f->tokens;
}

static mr_status pack_blocks(mr_flow_plan *p) {
    flow_compiler *c = &p->c;
    for (size_t e = c->o.first; e < c->o.last; e++) {
        size_t b = flow_block_at(c, e);
        memset(&c->data[b], 0, sizeof c->data[b]);
        c->net->pack(c, b, &c->data[b]);
    }
    return mr_pnm_builder_status(c->b);
}

/* Batch, halves, stages and the packed weights. */
static mr_status decide(mr_flow_plan *p) {
    flow_compiler *c = &p->c;
    mr_flow_plan_info *i = &p->info;
    size_t blocks = c->o.last - c->o.first;
    i->stages = c->o.schedule == MR_FLOW_REPLICATED ? 1
                : blocks < c->o.groups              ? (unsigned)blocks
                                                    : c->o.groups;
    i->replicas = c->o.groups / i->stages;
    if (c->o.images < i->replicas)
        i->replicas = (unsigned)c->o.images;
    i->halves = c->o.images > i->replicas ? 2 : 1;
    size_t most = c->o.batch ? c->o.batch : choose_batch(p, largest_batch(c));
    mr_status e;
    for (size_t batch = most;; batch = batch > 1 ? batch - 1 : 1) {
        size_t last_halves = i->halves;
        mr_pnm_builder_destroy(c->b);
        c->b = NULL;
        e = mr_pnm_builder_create(c->o.groups, c->o.wide, &c->b);
        if (e == MR_OK)
            e = prepare_batch(p, batch);
        if (e == MR_OK)
            e = pack_blocks(p);
        if (e != MR_OK || fits(p, i->halves, (blocks + i->stages - 1) / i->stages))
            break;
        if (c->o.batch || (batch == 1 && last_halves == 1))
            return mr_fail(MR_UNSUPPORTED,
                           "%s: %zu images at once do not fit a group of the near-memory unit",
                           c->f->path, batch);
        if (batch == 1)
            i->halves = 1;
    }
    i->batch = c->batch;
    double cost[64];
    if (e == MR_OK)
        e = cost_of_blocks(p, cost);
    if (e != MR_OK)
        return e;
    partition(p, cost, i->stages, i->first);
    for (unsigned s = 0; s < i->stages; s++)
        for (size_t k = i->first[s]; k < i->first[s + 1]; k++)
            i->stage_cycles[s] += cost[k] * (double)i->halves;
    return MR_OK;
}

/* ---- Places -----------------------------------------------------------------------------------
 */

/* A matrix of a stage, for sorting. */
typedef struct placed {
    size_t e, index, calls, columns;
} placed;

/* More opened rows a column first; then the order of the blocks. */
static int hotter(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    if (x->e != y->e)
        return x->e < y->e ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void place_caches(mr_flow_plan *p, flow_group *g, size_t *turn) {
    flow_compiler *c = &p->c;
    for (size_t h = 0; c->cache && h < p->info.halves; h++) {
        unsigned tier = c->o.placement == MR_FLOW_TIER_BLIND ? (*turn)++ % MR_PNM_TIERS : 0;
        mr_pnm_b_columns(c->b, g->group, tier, c->cache, "keys and values", &g->half[h].cache);
        g->half[h].wreg = (uint8_t)(h * c->wregs);
    }
}

/* Keys and values are used at every token, so they come first; matrices by their heat after them.
 * Blind: one after the other into the tiers in turn. */
static mr_status place_weights(mr_flow_plan *p, flow_group *g) {
    flow_compiler *c = &p->c;
    size_t count = 0, turn = 0;
    placed *all = calloc((g->last - g->first) * FLOW_MAX_BLOCK_MATRICES, sizeof *all);
    if (!all)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", c->f->path);
    for (size_t e = g->first; e < g->last; e++) {
        const flow_block_data *d = &c->data[flow_block_at(c, e)];
        for (size_t i = 0; i < d->weights; i++)
            all[count++] = (placed){e, i, d->weight[i].calls, d->weight[i].matrix.columns};
    }
    if (c->o.placement == MR_FLOW_TIER_AWARE)
        qsort(all, count, sizeof *all, hotter);
    place_caches(p, g, &turn);
    for (size_t i = 0; i < count; i++) {
        unsigned tier = c->o.placement == MR_FLOW_TIER_BLIND ? turn++ % MR_PNM_TIERS : 0;
        const flow_weight *w = &c->data[flow_block_at(c, all[i].e)].weight[all[i].index];
        uint16_t *col = &g->col[all[i].e - g->first][all[i].index];
        mr_pnm_b_columns(c->b, g->group, tier, all[i].columns, "weights", col);
        mr_pnm_b_wload_matrix(c->b, g->group, &w->matrix, *col);
    }
    free(all);
    return mr_pnm_builder_status(c->b);
}

static void load_fixed(flow_compiler *c, unsigned group, const flow_fixed *f, uint16_t *row) {
    if (!f->rows)
        return;
    mr_pnm_b_rows(c->b, group, f->rows, "constants", row);
    mr_pnm_b_load(c->b, group, *row, (uint16_t)f->rows, f->addr, 0);
}

/* Rows and columns, and the loads that fill them once. */
static mr_status open_group(mr_flow_plan *p, flow_group *g) {
    flow_compiler *c = &p->c;
    size_t blocks = g->last - g->first;
    g->col = calloc(blocks, sizeof *g->col);
    g->row = calloc(blocks, sizeof *g->row);
    if (!g->col || !g->row)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", c->f->path);
    mr_status e = place_weights(p, g);
    if (e != MR_OK)
        return e;
    load_fixed(c, g->group, &c->shared, &g->shared);
    for (size_t k = g->first; k < g->last; k++) {
        const flow_block_data *d = &c->data[flow_block_at(c, k)];
        for (size_t i = 0; i < d->fixeds; i++)
            load_fixed(c, g->group, &d->fixed[i], &g->row[k - g->first][i]);
    }
    for (size_t i = 0; i < p->info.halves; i++) {
        flow_half *h = &g->half[i];
        mr_pnm_b_rows(c->b, g->group, c->state + c->ld_rows, "state", &h->x);
        h->ld = (uint16_t)(h->x + c->state);
        if (c->work)
            mr_pnm_b_rows(c->b, g->group, c->work, "work", &h->work);
        mr_pnm_b_rows(c->b, g->group, c->scalars, "scalars", &h->scalars);
        mr_pnm_b_load(c->b, g->group, h->scalars, (uint16_t)c->scalars, p->zeros, 0);
        if (c->zero_work)
            mr_pnm_b_load(c->b, g->group, h->work, (uint16_t)c->zero_work, p->zeros, 0);
        if (c->cache)
            mr_pnm_b_wload(c->b, g->group, h->cache, (uint16_t)c->cache, p->zeros, 0);
    }
    return mr_pnm_builder_status(c->b);
}

/* ---- Programs ---------------------------------------------------------------------------------
 */

static size_t state_bytes(const mr_flow_plan *p) { return (p->c.state + p->c.ld_rows) * ROW_BYTES; }
static size_t iteration_bytes(const mr_flow_plan *p) { return state_bytes(p) * p->info.halves; }

typedef struct stage {
    unsigned index;
    bool first, last;
    size_t at; /* first iteration of its replica, in the memory image */
    const flow_group *before, *after;
} stage;

/* A half's state from memory or from the stage before. */
static void receive(mr_flow_plan *p, const flow_group *g, const stage *s, size_t h) {
    mr_pnm_builder *b = p->c.b;
    if (!s->first)
        mr_pnm_b_wait(b, g->group, SEM_DATA, 1);
    else
        mr_pnm_b_load(b, g->group, g->half[h].x, (uint16_t)(p->c.state + p->c.ld_rows),
                      p->in + s->at * iteration_bytes(p) + h * state_bytes(p),
                      (uint32_t)iteration_bytes(p));
}

/* To memory or the stage after; the place it came to is free then. */
static void deliver(mr_flow_plan *p, const flow_group *g, const stage *s, size_t h) {
    mr_pnm_builder *b = p->c.b;
    uint16_t rows = (uint16_t)(p->c.state + p->c.ld_rows);
    if (s->last) {
        mr_pnm_b_store(b, g->group, g->half[h].x, rows,
                       p->out + s->at * iteration_bytes(p) + h * state_bytes(p),
                       (uint32_t)iteration_bytes(p));
    } else {
        mr_pnm_b_wait(b, g->group, SEM_CREDIT, 1);
        mr_pnm_b_send(b, g->group, s->after->group, SEM_DATA, g->half[h].x, rows,
                      s->after->half[h].x);
    }
    if (!s->first)
        mr_pnm_b_send(b, g->group, s->before->group, SEM_CREDIT, 0, 0, 0);
}

static mr_status list_stage(mr_flow_plan *p, const flow_group *g, const stage *s,
                            unsigned first_group, size_t iterations) {
    flow_compiler *c = &p->c;
    mr_pnm_builder *b = c->b;
    size_t halves = p->info.halves;
    bool in_turn = c->o.schedule == MR_FLOW_SEQUENTIAL && p->info.stages > 1;
    for (size_t h = 0; !s->first && h < halves; h++)
        mr_pnm_b_send(b, g->group, s->before->group, SEM_CREDIT, 0, 0, 0);
    if (in_turn && s->last)
        mr_pnm_b_send(b, g->group, first_group, SEM_TURN, 0, 0, 0);
    uint32_t target = mr_pnm_b_here(b, g->group);
    if (in_turn && s->first)
        mr_pnm_b_wait(b, g->group, SEM_TURN, 1);
    flow_ops ops[FLOW_HALVES] = {{0}};
    bool failed = false;
    for (size_t h = 0; h < halves; h++) {
        receive(p, g, s, h);
        for (size_t e = g->first; e < g->last; e++)
            c->net->block(c, g, &g->half[h], e, &ops[h]);
        failed |= ops[h].failed;
    }
    if (!failed)
        flow_ops_emit(b, g->group, ops, halves);
    for (size_t h = 0; h < halves; h++) {
        deliver(p, g, s, h);
        flow_ops_clear(&ops[h]);
    }
    if (in_turn && s->last)
        mr_pnm_b_send(b, g->group, first_group, SEM_TURN, 0, 0, 0);
    mr_pnm_b_loop(b, g->group, target, (uint32_t)iterations);
    return failed ? mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", c->f->path)
                  : mr_pnm_builder_status(b);
}

static mr_status list_replica(mr_flow_plan *p, unsigned r, size_t at) {
    const mr_flow_plan_info *i = &p->info;
    flow_group *g = &p->group[r * i->stages];
    mr_status e = MR_OK;
    for (unsigned s = 0; s < i->stages && e == MR_OK; s++) {
        g[s].group = r * i->stages + s;
        g[s].first = i->first[s];
        g[s].last = i->first[s + 1];
        e = open_group(p, &g[s]);
    }
    for (unsigned s = 0; s < i->stages && e == MR_OK; s++) {
        stage place = {.index = s, .first = s == 0, .last = s + 1 == i->stages, .at = at};
        place.before = s ? &g[s - 1] : NULL;
        place.after = place.last ? NULL : &g[s + 1];
        e = list_stage(p, &g[s], &place, g[0].group, p->replica_iterations[r]);
    }
    return e;
}

/* Memory for inputs, results and zeros; then every replica's share. */
static mr_status build(mr_flow_plan *p) {
    flow_compiler *c = &p->c;
    mr_flow_plan_info *i = &p->info;
    size_t per = i->batch * i->halves;
    i->iterations = (c->o.images + per - 1) / per;
    if (i->replicas > i->iterations)
        i->replicas = (unsigned)i->iterations;
    size_t column = (size_t)MR_PNM_PES * MR_PNM_ROW_WORDS * (c->o.wide ? 4 : 2);
    size_t zeros = c->cache * column;
    if (zeros < c->scalars * ROW_BYTES)
        zeros = c->scalars * ROW_BYTES;
    if (zeros < c->zero_work * ROW_BYTES)
        zeros = c->zero_work * ROW_BYTES;
    mr_pnm_b_memory(c->b, i->iterations * iteration_bytes(p), "inputs", &p->in);
    mr_pnm_b_memory(c->b, i->iterations * iteration_bytes(p), "results", &p->out);
    mr_pnm_b_memory(c->b, zeros, "zeros", &p->zeros);
    mr_status e = mr_pnm_builder_status(c->b);
    for (unsigned r = 0; r < i->replicas && e == MR_OK; r++) {
        size_t from = i->iterations * r / i->replicas, to = i->iterations * (r + 1) / i->replicas;
        p->replica_iterations[r] = to - from;
        e = list_replica(p, r, from);
    }
    return e == MR_OK ? mr_pnm_builder_finish(c->b, &p->program) : e;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static mr_status check(const mr_flow *f, const mr_flow_plan_options *o) {
    if (o->groups < 1 || o->groups > MR_PNM_GROUPS)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: %u groups; a chip has 1 to %d", f->path, o->groups,
                       MR_PNM_GROUPS);
    if (!o->images || o->last > f->blocks || (o->last && o->first >= o->last))
        return mr_fail(MR_INVALID_ARGUMENT, "%s: nothing to do", f->path);
    if (f->kind == MR_FLOW_TAR && f->tokens > MR_PNM_MAX_VECTORS)
        return mr_fail(MR_UNSUPPORTED, "%s: %zu tokens; the near-memory unit takes %d at once",
                       f->path, f->tokens, MR_PNM_MAX_VECTORS);
    if (f->kind == MR_FLOW_TAR && f->heads > FLOW_WORDS)
        return mr_fail(MR_UNSUPPORTED, "%s: %zu heads; there is room for %d", f->path, f->heads,
                       FLOW_WORDS);
    return MR_OK;
}

mr_status mr_flow_plan_create(const mr_flow *f, const mr_flow_plan_options *o, mr_flow_plan **out) {
    *out = NULL;
    mr_status e = check(f, o);
    if (e != MR_OK)
        return e;
    mr_flow_plan *p = calloc(1, sizeof *p);
    flow_compiler *c = p ? &p->c : NULL;
    if (p) {
        c->f = f;
        c->o = *o;
        c->o.last = o->last ? o->last : f->blocks;
        c->net = f->kind == MR_FLOW_COUPLING ? &flow_net_coupling
                 : o->inverse                ? &flow_net_tar_inverse
                                             : &flow_net_tar;
        c->x_rows = flow_rows(f->channels);
        c->order = calloc(f->channels, sizeof *c->order);
        c->data = calloc(f->blocks, sizeof *c->data);
        p->tokens = f->tokens;
        p->channels = f->channels;
    }
    if (!p || !c->order || !c->data)
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    for (size_t i = 0; e == MR_OK && i < f->channels; i++)
        c->order[i] = (uint16_t)i;
    if (e == MR_OK)
        e = decide(p);
    if (e == MR_OK)
        e = build(p);
    if (p) {
        mr_pnm_builder_destroy(c->b);
        c->b = NULL;
    }
    if (e != MR_OK) {
        mr_flow_plan_destroy(p);
        return e;
    }
    c->f = NULL; /* its owner may close it now */
    *out = p;
    return MR_OK;
}

void mr_flow_plan_destroy(mr_flow_plan *p) {
    if (!p)
        return;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        free(p->group[g].col);
        free(p->group[g].row);
    }
    mr_pnm_builder_destroy(p->c.b);
    mr_pnm_program_destroy(p->program);
    free(p->c.order);
    free(p->c.data);
    free(p);
}

mr_pnm_program *mr_flow_plan_program(mr_flow_plan *p) { return p->program; }
void mr_flow_plan_describe(const mr_flow_plan *p, mr_flow_plan_info *out) { *out = p->info; }

/* ---- Images in and out ------------------------------------------------------------------------
 */

/* The state of the half that has image i, and the image's number within it. */
static float *half_of(const mr_flow_plan *p, uint64_t region, size_t i, size_t *within) {
    *within = i % p->info.batch;
    return (float *)(p->program->image + region + i / p->info.batch * state_bytes(p));
}

void mr_flow_plan_put(mr_flow_plan *p, const float *in) {
    size_t within;
    for (size_t i = 0; i < p->c.o.images; i++) {
        float *to = half_of(p, p->in, i, &within);
        for (size_t t = 0; t < p->tokens; t++)
            for (size_t k = 0; k < p->channels; k++)
                to[flow_token_row(&p->c, within, t) * FLOW_WORDS + p->c.order[k]] =
                    in[(i * p->tokens + t) * p->channels + k];
    }
}

void mr_flow_plan_get(const mr_flow_plan *p, float *out, float *logdet) {
    size_t within;
    for (size_t i = 0; i < p->c.o.images; i++) {
        const float *from = half_of(p, p->out, i, &within);
        for (size_t t = 0; t < p->tokens; t++)
            for (size_t k = 0; k < p->channels; k++)
                out[(i * p->tokens + t) * p->channels + k] =
                    from[flow_token_row(&p->c, within, t) * FLOW_WORDS + p->c.order[k]];
        if (logdet)
            logdet[i] = from[p->c.state * FLOW_WORDS + within];
    }
}
