/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jacobi's iteration, one program an iteration and chip: the block's plan is made once, its inputs
 * are the results of the run before. What stops it is found out here, on the host.
 */
#include "host/flow/jacobi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/pnm/energy.h"

enum { MOST_CHIPS = 64 };

/* The images in as many parts as chips run at once. */
typedef struct shares {
    size_t count, at[MOST_CHIPS + 1];
    mr_flow_plan *plan[MOST_CHIPS];
    mr_pnm_program *program[MOST_CHIPS];
} shares;

static void close_shares(shares *s) {
    for (size_t i = 0; i < s->count; i++)
        mr_flow_plan_destroy(s->plan[i]);
}

static mr_status open_shares(shares *s, const mr_flow *f, const mr_flow_jacobi_options *o,
                             size_t chips, size_t images, size_t block, const float *z) {
    chips = chips > MOST_CHIPS ? MOST_CHIPS : chips > images ? images : chips;
    *s = (shares){0};
    for (size_t i = 0; i < chips; i++) {
        s->at[i] = images * i / chips;
        s->at[i + 1] = images * (i + 1) / chips;
        mr_flow_plan_options p = {.images = s->at[i + 1] - s->at[i],
                                  .groups = o->groups,
                                  .schedule = MR_FLOW_REPLICATED,
                                  .placement = o->placement,
                                  .mode = o->mode,
                                  .wide = o->wide,
                                  .improve = true,
                                  .first = block,
                                  .last = block + 1};
        mr_status e = mr_flow_plan_create(f, &p, &s->plan[i]);
        if (e != MR_OK)
            return e;
        s->count = i + 1;
        s->program[i] = mr_flow_plan_program(s->plan[i]);
        mr_flow_plan_put_latent(s->plan[i], z + s->at[i] * mr_flow_pixels(f));
    }
    return MR_OK;
}

static void account(mr_flow_jacobi_report *r, const shares *s, const mr_pnm_counters *counters) {
    uint64_t slowest = 0;
    for (size_t i = 0; i < s->count; i++) {
        const mr_pnm_counters *c = &counters[i];
        mr_pnm_tally tally;
        mr_pnm_energy energy;
        mr_pnm_program_tally(s->program[i], &tally);
        mr_pnm_energy_of(&tally, c->hardware ? c : NULL, &energy);
        r->joules += energy.total;
        r->counters.hardware |= c->hardware;
        r->counters.status |= c->status;
        r->counters.products += c->products;
        slowest = c->cycles > slowest ? c->cycles : slowest;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            r->counters.group[g].mv_cycles += c->group[g].mv_cycles;
            r->counters.group[g].stream_cycles += c->group[g].stream_cycles;
        }
    }
    r->counters.cycles += slowest;
}

/* One block: x has the guess, `next` is room for another. */
static mr_status run_block(mr_pnm_exec *exec, const mr_flow_jacobi_options *o, const shares *s,
                           size_t pixels, size_t most, float *x, float *next, size_t *iterations,
                           double *change, mr_flow_jacobi_report *report) {
    mr_pnm_counters counters[MOST_CHIPS];
    size_t words = s->at[s->count] * pixels;
    for (*iterations = 0; *iterations < most;) {
        for (size_t i = 0; i < s->count; i++)
            mr_flow_plan_put(s->plan[i], x + s->at[i] * pixels);
        mr_status e = mr_pnm_exec_run(exec, s->program, s->count, counters);
        if (e != MR_OK)
            return e;
        for (size_t i = 0; i < s->count; i++)
            mr_flow_plan_get(s->plan[i], next + s->at[i] * pixels, NULL);
        account(report, s, counters);
        ++*iterations;
        *change = 0;
        for (size_t i = 0; i < words; i++) {
            double d = fabs((double)next[i] - (double)x[i]);
            *change = d > *change || isnan(d) ? d : *change;
        }
        memcpy(x, next, words * sizeof *x);
        if (*change <= o->tolerance)
            break;
    }
    return MR_OK;
}

mr_status mr_flow_jacobi(const mr_flow *f, mr_pnm_exec *exec, const mr_flow_jacobi_options *o,
                         size_t images, const float *z, float *x, mr_flow_jacobi_report *report) {
    size_t pixels = mr_flow_pixels(f), words = images * pixels;
    *report = (mr_flow_jacobi_report){.blocks = f->blocks};
    if (f->kind != MR_FLOW_TAR)
        return mr_fail(MR_UNSUPPORTED,
                       "%s: a coupling flow has no serial order; only a transformer flow is "
                       "iterated",
                       f->path);
    if (f->blocks > MR_FLOW_MOST_BLOCKS)
        return mr_fail(MR_UNSUPPORTED, "%s: %zu blocks; at most %d are iterated", f->path,
                       f->blocks, MR_FLOW_MOST_BLOCKS);
    float *room = malloc(2 * words * sizeof *room);
    if (!room)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory for %zu images", f->path, images);
    float *latent = room, *next = room + words;
    memcpy(x, z, words * sizeof *x);
    mr_status e = MR_OK;
    for (size_t i = 0; i < f->blocks && e == MR_OK; i++) {
        shares s;
        memcpy(latent, x, words * sizeof *x); /* the first guess is z itself */
        e = open_shares(&s, f, o, mr_pnm_exec_chips(exec), images, f->blocks - 1 - i, latent);
        if (e == MR_OK)
            e = run_block(exec, o, &s, pixels, o->most ? o->most : f->tokens, x, next,
                          &report->iterations[i], &report->change[i], report);
        close_shares(&s);
    }
    free(room);
    return e;
}
