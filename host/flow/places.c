/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a group's banks and scratchpad everything lies. */
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/flow/plan_inside.h"

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

/* Where a group's queries, keys and values go and its attention comes from, and its parts' ends. */
static mr_status open_cuts(mr_flow_plan *p, flow_group *g) {
    flow_compiler *c = &p->c;
    size_t row = c->f->width * sizeof(float);
    p->parts = (g->last - g->first) * c->f->tokens * c->f->layers + 1;
    g->ends = calloc(p->parts, sizeof *g->ends);
    if (!g->ends)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", c->f->path);
    mr_pnm_b_memory(c->b, c->batch * 3 * row, "queries, keys and values", &g->qkv);
    return mr_pnm_b_memory(c->b, c->batch * row, "attention", &g->attention);
}

mr_status flow_open_group(mr_flow_plan *p, flow_group *g) {
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
    e = mr_pnm_builder_status(c->b);
    return e == MR_OK && c->o.cut ? open_cuts(p, g) : e;
}
