/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a network's operations to the groups' programs: loops, signals, parts, and images in and
 * out. docs/flow.md has the algorithm.
 */
#include "host/flow/plan_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { SEM_DATA, SEM_CREDIT, SEM_TURN };

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
    if (!c->o.cut)
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
        e = flow_open_group(p, &g[s]);
    }
    for (unsigned s = 0; s < i->stages && e == MR_OK; s++) {
        stage place = {.index = s, .first = s == 0, .last = s + 1 == i->stages, .at = at};
        place.before = s ? &g[s - 1] : NULL;
        place.after = place.last ? NULL : &g[s + 1];
        e = list_stage(p, &g[s], &place, g[0].group, p->replica_iterations[r]);
    }
    return e;
}

/* Cycles of the whole program: weights through the one port to memory, then iterations through the
 * stages, the slowest replica's. */
static double estimate(const mr_flow_plan *p) {
    const flow_compiler *c = &p->c;
    const mr_flow_plan_info *i = &p->info;
    size_t columns = 0, most = 0;
    double slowest = 0, all = 0;
    for (size_t b = 0; b < c->f->blocks; b++)
        for (size_t k = 0; k < c->data[b].weights; k++)
            columns += c->data[b].weight[k].matrix.columns;
    for (unsigned r = 0; r < i->replicas; r++)
        most = p->replica_iterations[r] > most ? p->replica_iterations[r] : most;
    for (unsigned s = 0; s < i->stages; s++) {
        all += i->stage_cycles[s];
        slowest = i->stage_cycles[s] > slowest ? i->stage_cycles[s] : slowest;
    }
    double work = c->o.schedule == MR_FLOW_SEQUENTIAL ? (double)most * all
                                                      : (double)(most - 1) * slowest + all;
    return (double)columns * FLOW_LOAD_COLUMN * i->replicas + work;
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
    i->schedule = c->o.schedule;
    i->cycles = estimate(p);
    return e == MR_OK ? mr_pnm_builder_finish(c->b, &p->program) : e;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static mr_status check(const mr_flow *f, const mr_flow_plan_options *o) {
    if (o->groups < 1 || o->groups > MR_PNM_GROUPS)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: %u groups; a chip has 1 to %d", f->path, o->groups,
                       MR_PNM_GROUPS);
    if (!o->images || o->last > f->blocks || o->first >= (o->last ? o->last : f->blocks))
        return mr_fail(MR_INVALID_ARGUMENT, "%s: nothing to do", f->path);
    if (f->kind == MR_FLOW_TAR && f->tokens > MR_PNM_MAX_VECTORS)
        return mr_fail(MR_UNSUPPORTED, "%s: %zu tokens; the near-memory unit takes %d at once",
                       f->path, f->tokens, MR_PNM_MAX_VECTORS);
    if (f->kind == MR_FLOW_TAR && f->heads > FLOW_WORDS)
        return mr_fail(MR_UNSUPPORTED, "%s: %zu heads; there is room for %d", f->path, f->heads,
                       FLOW_WORDS);
    if (o->improve && (f->kind != MR_FLOW_TAR || o->inverse || o->cut || o->last != o->first + 1))
        return mr_fail(MR_INVALID_ARGUMENT, "%s: only one block of a transformer flow is improved",
                       f->path);
    if (o->cut && (f->kind != MR_FLOW_TAR || !o->inverse))
        return mr_fail(MR_UNSUPPORTED,
                       "%s: only the sampling of a transformer flow has attention "
                       "to hand over",
                       f->path);
    if (o->cut && o->images > MR_FLOW_CUT_IMAGES)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "%s: %zu images; %d at once where attention is elsewhere", f->path,
                       o->images, MR_FLOW_CUT_IMAGES);
    return MR_OK;
}

static mr_status create(const mr_flow *f, const mr_flow_plan_options *o, mr_flow_plan **out) {
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
        if (o->cut)
            c->o.schedule = MR_FLOW_REPLICATED;
        c->net = f->kind == MR_FLOW_COUPLING ? &flow_net_coupling
                 : o->improve                ? &flow_net_tar_improve
                 : o->inverse                ? &flow_net_tar_inverse
                                             : &flow_net_tar;
        c->x_rows = flow_rows(f->channels);
        c->order = calloc(f->channels, sizeof *c->order);
        c->data = calloc(f->blocks, sizeof *c->data);
        p->tokens = f->tokens;
        p->channels = f->channels;
        p->width = f->width;
    }
    if (!p || !c->order || !c->data)
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    for (size_t i = 0; e == MR_OK && i < f->channels; i++)
        c->order[i] = (uint16_t)i;
    if (e == MR_OK)
        e = flow_decide(p);
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

/* Both ways, and the faster of them; one that does not fit is none. */
static mr_status create_faster(const mr_flow *f, const mr_flow_plan_options *o,
                               mr_flow_plan **out) {
    mr_flow_plan_options one = *o;
    mr_flow_plan *other;
    one.schedule = MR_FLOW_PIPELINED;
    mr_status e = create(f, &one, out);
    if (e != MR_OK && e != MR_UNSUPPORTED && e != MR_LIMIT)
        return e;
    one.schedule = MR_FLOW_REPLICATED;
    mr_status second = create(f, &one, &other);
    if (second != MR_OK)
        return e == MR_OK && (second == MR_UNSUPPORTED || second == MR_LIMIT) ? e : second;
    if (e == MR_OK && (*out)->info.cycles <= other->info.cycles) {
        mr_flow_plan_destroy(other);
        return MR_OK;
    }
    mr_flow_plan_destroy(*out);
    *out = other;
    return MR_OK;
}

mr_status mr_flow_plan_create(const mr_flow *f, const mr_flow_plan_options *o, mr_flow_plan **out) {
    return o->schedule == MR_FLOW_AUTO && !o->cut ? create_faster(f, o, out) : create(f, o, out);
}

void mr_flow_plan_destroy(mr_flow_plan *p) {
    if (!p)
        return;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        free(p->group[g].col);
        free(p->group[g].row);
        free(p->group[g].ends);
    }
    mr_pnm_builder_destroy(p->c.b);
    mr_pnm_program_destroy(p->program);
    free(p->c.order);
    free(p->c.data);
    free(p);
}

mr_pnm_program *mr_flow_plan_program(mr_flow_plan *p) { return p->program; }
void mr_flow_plan_describe(const mr_flow_plan *p, mr_flow_plan_info *out) { *out = p->info; }

/* ---- Parts ------------------------------------------------------------------------------------
 */

size_t mr_flow_plan_parts(const mr_flow_plan *p) { return p->parts; }

mr_pnm_program mr_flow_plan_part(const mr_flow_plan *p, size_t i) {
    mr_pnm_program part = *p->program;
    for (unsigned g = 0; g < p->info.replicas; g++) {
        uint32_t from = i ? p->group[g].ends[i - 1] : 0;
        uint32_t to = i + 1 < p->parts ? p->group[g].ends[i] : part.list[g].count;
        part.list[g].addr += (uint64_t)from * MR_PNM_DESC_BYTES;
        part.list[g].count = to - from;
    }
    return part;
}

/* The group that has image i, and the image's number there. */
static const flow_group *group_of(const mr_flow_plan *p, size_t i, size_t *within) {
    *within = i % p->info.batch;
    return &p->group[i / p->info.batch];
}

void mr_flow_plan_take(const mr_flow_plan *p, float *q, float *k, float *v) {
    float *const to[] = {q, k, v};
    size_t within;
    for (size_t i = 0; i < p->c.o.images; i++) {
        const flow_group *g = group_of(p, i, &within);
        const float *from = (const float *)(p->program->image + g->qkv) + within * 3 * p->width;
        for (size_t part = 0; part < 3; part++)
            memcpy(to[part] + i * p->width, from + part * p->width, p->width * sizeof *q);
    }
}

void mr_flow_plan_give(mr_flow_plan *p, const float *o) {
    size_t within;
    for (size_t i = 0; i < p->c.o.images; i++) {
        const flow_group *g = group_of(p, i, &within);
        memcpy((float *)(p->program->image + g->attention) + within * p->width, o + i * p->width,
               p->width * sizeof *o);
    }
}

/* ---- Images in and out ------------------------------------------------------------------------
 */

/* The state of the half that has image i, and the image's number within it. */
static float *half_of(const mr_flow_plan *p, uint64_t region, size_t i, size_t *within) {
    *within = i % p->info.batch;
    return (float *)(p->program->image + region + i / p->info.batch * state_bytes(p));
}

/* `row` rows into the state */
static void put_at(mr_flow_plan *p, const float *in, size_t row) {
    size_t within;
    for (size_t i = 0; i < p->c.o.images; i++) {
        float *to = half_of(p, p->in, i, &within) + row * FLOW_WORDS;
        for (size_t t = 0; t < p->tokens; t++)
            for (size_t k = 0; k < p->channels; k++)
                to[flow_token_row(&p->c, within, t) * FLOW_WORDS + p->c.order[k]] =
                    in[(i * p->tokens + t) * p->channels + k];
    }
}

void mr_flow_plan_put(mr_flow_plan *p, const float *in) { put_at(p, in, 0); }
void mr_flow_plan_put_latent(mr_flow_plan *p, const float *z) { put_at(p, z, p->c.state / 2); }

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
