/* SPDX-License-Identifier: Apache-2.0 */
#include "host/flow/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

typedef struct run {
    const mr_flow *f;
    const mr_flow_nodes_options *o;
    mr_flow_nodes_stats *stats;
    mr_flow_plan *plan;
    mr_shards *shards;
    size_t images;        /* of a plan */
    float *q, *k, *v, *a; /* [images][width] */
    float *z, *x;         /* of a plan that is not full */
} run;

static void add_counters(mr_pnm_counters *to, const mr_pnm_counters *c) {
    to->hardware |= c->hardware;
    to->status |= c->status;
    to->cycles += c->cycles;
    to->busy += c->busy;
    to->stall_in += c->stall_in;
    to->stall_out += c->stall_out;
    to->items_in += c->items_in;
    to->items_out += c->items_out;
    to->products += c->products;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        /* every field of a group is a sum of its own */
        uint64_t *sum = (uint64_t *)&to->group[g];
        const uint64_t *one = (const uint64_t *)&c->group[g];
        for (size_t i = 0; i < sizeof to->group[g] / sizeof *sum; i++)
            sum[i] += one[i];
    }
}

static mr_status run_part(run *r, size_t i) {
    mr_pnm_program part = mr_flow_plan_part(r->plan, i), *program = &part;
    mr_pnm_counters counters;
    mr_status e = mr_pnm_exec_run(r->o->exec, &program, 1, &counters);
    if (e == MR_OK)
        add_counters(&r->stats->pnm, &counters);
    r->stats->jobs++;
    return e;
}

/* One plan's worth of images: parts and attention in turn. */
static mr_status sample(run *r, const float *z, float *x) {
    const mr_flow *f = r->f;
    size_t parts = mr_flow_plan_parts(r->plan), per_block = f->tokens * f->layers;
    mr_status e = MR_OK;
    mr_flow_plan_put(r->plan, z);
    for (size_t i = 0; i + 1 < parts && e == MR_OK; i++) {
        size_t layer = i % f->layers;
        e = run_part(r, i);
        if (e == MR_OK && i % per_block == 0)
            e = mr_shards_restart(r->shards);
        if (e != MR_OK)
            break;
        mr_flow_plan_take(r->plan, r->q, r->k, r->v);
        e = mr_shards_attend(r->shards, layer, 1, r->q, r->k, r->v, r->a);
        if (e == MR_OK)
            mr_flow_plan_give(r->plan, r->a);
        if (e == MR_OK && layer + 1 == f->layers)
            e = mr_shards_step(r->shards, 1);
    }
    if (e == MR_OK)
        e = run_part(r, parts - 1);
    if (e == MR_OK)
        mr_flow_plan_get(r->plan, x, NULL);
    return e;
}

static mr_status open_run(run *r, const mr_flow_plan_options *plan) {
    const mr_flow *f = r->f;
    size_t plans = (plan->images + MR_FLOW_CUT_IMAGES - 1) / MR_FLOW_CUT_IMAGES;
    size_t width = f->width, pixels = mr_flow_pixels(f);
    r->images = (plan->images + plans - 1) / plans;
    mr_flow_plan_options o = *plan;
    o.inverse = o.cut = true;
    o.images = r->images;
    mr_status e = mr_flow_plan_create(f, &o, &r->plan);
    if (e != MR_OK)
        return e;
    mr_shards_options s = {.nic = r->o->nic,
                           .device = r->o->device,
                           .layers = f->layers,
                           .heads = r->images * f->heads,
                           .kv_heads = r->images * f->heads,
                           .dim = MR_FLOW_HEAD,
                           .context = f->tokens,
                           .block = 1,
                           .step = 1,
                           .scale = 1, /* it is part of wq */
                           .timeout_ns = r->o->timeout_ns,
                           .stop = r->o->stop};
    e = mr_shards_open(&s, &r->shards);
    float **const rows[] = {&r->q, &r->k, &r->v, &r->a};
    for (size_t i = 0; i < 4 && e == MR_OK; i++)
        if (!(*rows[i] = malloc(r->images * width * sizeof **rows[i])))
            e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    r->z = calloc(r->images * pixels, sizeof *r->z);
    r->x = malloc(r->images * pixels * sizeof *r->x);
    if (e == MR_OK && (!r->z || !r->x))
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", f->path);
    return e;
}

/* The last plan may have fewer images than there is room for: the rest are zeros. */
static mr_status sample_all(run *r, size_t images, const float *z, float *x) {
    size_t pixels = mr_flow_pixels(r->f);
    mr_status e = MR_OK;
    for (size_t i = 0; i < images && e == MR_OK; i += r->images) {
        size_t n = images - i < r->images ? images - i : r->images;
        if (n == r->images) {
            e = sample(r, z + i * pixels, x + i * pixels);
            continue;
        }
        memcpy(r->z, z + i * pixels, n * pixels * sizeof *z);
        e = sample(r, r->z, r->x);
        memcpy(x + i * pixels, r->x, n * pixels * sizeof *x);
    }
    return e;
}

static void count_energy(run *r, size_t plans) {
    mr_pnm_tally tally;
    mr_pnm_program_tally(mr_flow_plan_program(r->plan), &tally);
    uint64_t *all = (uint64_t *)&tally; /* counts of one plan, nothing else */
    for (size_t i = 0; i < sizeof tally / sizeof *all; i++)
        all[i] *= plans;
    mr_pnm_energy_of(&tally, r->stats->pnm.hardware ? &r->stats->pnm : NULL, &r->stats->energy);
}

mr_status mr_flow_nodes_sample(const mr_flow *f, const mr_flow_plan_options *plan,
                               const mr_flow_nodes_options *options, const float *z, float *x,
                               mr_flow_nodes_stats *stats) {
    memset(stats, 0, sizeof *stats);
    run r = {.f = f, .o = options, .stats = stats};
    mr_status e = open_run(&r, plan);
    if (e == MR_OK)
        e = sample_all(&r, plan->images, z, x);
    if (e == MR_OK)
        e = mr_shards_get_stats(r.shards, &stats->nic);
    if (e == MR_OK) {
        mr_flow_plan_describe(r.plan, &stats->plan);
        count_energy(&r, (plan->images + r.images - 1) / r.images);
    }
    float *const rows[] = {r.q, r.k, r.v, r.a, r.z, r.x};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        free(rows[i]);
    mr_shards_close(r.shards);
    mr_flow_plan_destroy(r.plan);
    return e;
}
