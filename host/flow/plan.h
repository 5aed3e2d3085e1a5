/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow compiled into a program of the near-memory unit (docs/flow.md tells how): scoring (x to z
 * and the log-determinant) or sampling (z to x) of a number of images. The program runs wherever
 * host/pnm/exec.h runs one; inputs are put into its image before, results taken from it after.
 */
#ifndef HOST_FLOW_PLAN_H
#define HOST_FLOW_PLAN_H

#include "host/flow/flow.h"
#include "host/pnm/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How groups share the work: blocks in a pipeline; the same, one batch in flight; every group a
 * whole flow and its share of the images; whichever of the first and the third should be faster. */
typedef enum {
    MR_FLOW_PIPELINED,
    MR_FLOW_SEQUENTIAL,
    MR_FLOW_REPLICATED,
    MR_FLOW_AUTO
} mr_flow_schedule;
/* Where matrices lie: the most used in the fastest tiers, or spread over the tiers in turn. */
typedef enum { MR_FLOW_TIER_AWARE, MR_FLOW_TIER_BLIND } mr_flow_placement;

typedef struct mr_flow_plan_options {
    bool inverse; /* sampling */
    size_t images;
    unsigned groups; /* 1 to MR_PNM_GROUPS */
    mr_flow_schedule schedule;
    mr_flow_placement placement;
    mr_pnm_mode mode;
    bool wide;    /* float32, for executors that are wide */
    size_t batch; /* images that a group works on at once in either half; 0: chosen */
    bool cut;     /* sampling a transformer flow, attention left to the caller: see below */
    /* with inverse unset, one block of a transformer flow: x to z exp(a(x)) + mu(x), all tokens at
     * once, z given beside x (host/flow/jacobi.h) */
    bool improve;
    size_t first, last; /* blocks in the order of execution, last excluded; both 0: all */
} mr_flow_plan_options;

typedef struct mr_flow_plan mr_flow_plan;

/* MR_UNSUPPORTED for a network that does not fit a group; more groups than a chip has are
 * MR_INVALID_ARGUMENT. The flow must outlive the call only. */
mr_status mr_flow_plan_create(const mr_flow *f, const mr_flow_plan_options *o, mr_flow_plan **out);
void mr_flow_plan_destroy(mr_flow_plan *p);

mr_pnm_program *mr_flow_plan_program(mr_flow_plan *p);

/* in, out: [images][tokens][channels]; logdet[images] or NULL (scoring only). */
void mr_flow_plan_put(mr_flow_plan *p, const float *in);
void mr_flow_plan_get(const mr_flow_plan *p, float *out, float *logdet);
void mr_flow_plan_put_latent(mr_flow_plan *p, const float *z); /* with `improve` */

/*
 * A plan that is cut (host/flow/nodes.h uses it): every group has the whole flow for its share of
 * the images, at most MR_FLOW_CUT_IMAGES in all, and its list ends a part wherever attention is
 * due. Parts run one after the other on one chip, which keeps its state between them; after part i
 * the queries, keys and values of token `token` of block `block` are taken, and what attention
 * makes of them is given, [images][width] each, before part i + 1 runs. The last part has no
 * attention.
 */
enum { MR_FLOW_CUT_IMAGES = 16 * MR_PNM_GROUPS };
size_t mr_flow_plan_parts(const mr_flow_plan *p);
/* The program of part i alone; it shares the whole program's image and must not be destroyed. */
mr_pnm_program mr_flow_plan_part(const mr_flow_plan *p, size_t i);
void mr_flow_plan_take(const mr_flow_plan *p, float *q, float *k, float *v);
void mr_flow_plan_give(mr_flow_plan *p, const float *o);

/* What was decided. */
typedef struct mr_flow_plan_info {
    mr_flow_schedule schedule; /* never MR_FLOW_AUTO */
    double cycles;             /* of the program, by the cost function */
    unsigned stages, replicas; /* groups in a pipeline, pipelines */
    size_t batch, halves, iterations;
    size_t first[MR_PNM_GROUPS + 1];    /* stage s has blocks first[s]..first[s + 1] - 1 in order */
    double stage_cycles[MR_PNM_GROUPS]; /* of an iteration, by the cost function */
} mr_flow_plan_info;
void mr_flow_plan_describe(const mr_flow_plan *p, mr_flow_plan_info *out);

#ifdef __cplusplus
}
#endif
#endif
