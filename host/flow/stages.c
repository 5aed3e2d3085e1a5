/* SPDX-License-Identifier: Apache-2.0 */
/* How many groups, images at once and stages: docs/flow.md has the algorithm. */
#include <string.h>

#include "host/core/error.h"
#include "host/flow/plan_inside.h"

/* ---- Stages -----------------------------------------------------------------------------------
 */

static mr_status cost_of_blocks(mr_flow_plan *p, double *cost) {
    flow_compiler *c = &p->c;
    uint16_t col[1][FLOW_MAX_BLOCK_MATRICES] = {{0}}, row[1][FLOW_MAX_BLOCK_ROWS] = {{0}};
    for (size_t e = c->o.first; e < c->o.last; e++) {
        flow_ops ops[FLOW_HALVES] = {{0}};
        flow_group g = {.first = e, .last = e + 1, .col = col, .row = row};
        bool failed = false;
        for (size_t h = 0; h < p->info.halves; h++) {
            c->net->block(c, &g, &g.half[h], e, &ops[h]);
            failed |= ops[h].failed;
        }
        cost[e] = flow_ops_cycles(ops, p->info.halves);
        for (size_t h = 0; h < p->info.halves; h++)
            flow_ops_clear(&ops[h]);
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
    const flow_block_data *d = &c->data[flow_block_at(c, c->o.first)];
    for (size_t i = 0; i < d->fixeds; i++)
        fixed += d->fixed[i].rows;
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
    if (p->c.o.cut)
        return images;
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

mr_status flow_decide(mr_flow_plan *p) {
    flow_compiler *c = &p->c;
    mr_flow_plan_info *i = &p->info;
    size_t blocks = c->o.last - c->o.first;
    i->stages = c->o.schedule == MR_FLOW_REPLICATED ? 1
                : blocks < c->o.groups              ? (unsigned)blocks
                                                    : c->o.groups;
    i->replicas = c->o.groups / i->stages;
    if (c->o.images < i->replicas)
        i->replicas = (unsigned)c->o.images;
    i->halves = c->o.images > i->replicas && !c->o.cut ? 2 : 1;
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
        if (c->o.batch || c->o.cut || (batch == 1 && last_halves == 1))
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
    size_t widest = 0;
    for (unsigned k = 0; k < i->stages; k++)
        if (i->first[k + 1] - i->first[k] > widest)
            widest = i->first[k + 1] - i->first[k];
    if (!fits(p, i->halves, widest)) /* many cheap blocks in one stage: as many in each, then */
        for (unsigned k = 1; k < i->stages; k++)
            i->first[k] = c->o.first + blocks * k / i->stages;
    for (unsigned s = 0; s < i->stages; s++)
        for (size_t k = i->first[s]; k < i->first[s + 1]; k++)
            i->stage_cycles[s] += cost[k];
    return MR_OK;
}
