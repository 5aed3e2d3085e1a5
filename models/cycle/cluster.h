/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A serving cluster in time: requests arrive, a policy places them, nodes compute prompts in steps
 * and decode in batches beside them, blocks are stored and evicted, bytes queue on links. No data.
 *
 * How it works.
 *  - A node does one step after another. A step holds the decoding requests of the node, one token
 *    each, and tokens of one prompt up to the number at which the measured time a token is least.
 * Prompts are served first come, first served; a prompt on several nodes starts when it is first in
 * the queue of each of them, and until then each goes on with later prompts of its own alone. All
 * members start their part of a step together; one that is early fills the gap with a step that is
 * over in time.
 *  - A step ends when its computing C and its bulk transfers D are both over, hidden behind each
 *    other except for one layer: max(C, D) + min(C, D) / layers. Blocks pulled for a prompt are
 *    spread over all of its steps.
 *  - Decode over shards: each layer's queries go out, partials come back, and only the attention to
 *    what the root holds itself hides that. The holders' attention delays their own next step.
 *  - Blocks can be reused by others when the prompt that computes them has ended.
 *  - Room for the whole output is reserved when a prompt starts; one that finds no room waits.
 *    A member of a sharded prompt also reserves what it must hold for a while: what it pulls
 *    and what the other members compute, until the first token.
 *
 * Deterministic: integers and one order of events; floating point only in durations.
 */
#ifndef MODELS_CYCLE_CLUSTER_H
#define MODELS_CYCLE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/kv/policy.h"
#include "models/cycle/machine.h"
#include "models/cycle/network.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint64_t arrival_ns;
    uint32_t tokens, output; /* both at least 1 */
    const uint32_t *block;   /* [ceil(tokens / block_tokens)] names of the prompt's blocks */
} mr_cluster_request;

typedef struct {
    const mr_machine *machine;
    const mr_kv_policy *policy;
    size_t nodes, group; /* group: nodes a switch */
    uint64_t capacity;   /* blocks a node */
    uint64_t block_tokens, step_requests;
    uint64_t byte_ps; /* a byte on a node's link, picoseconds */
    uint64_t trunk_bytes, trunk_ps;
    uint64_t link_ns, switch_ns, host_ns, route_ns, merge_ns;
    uint64_t frame_overhead, frame_payload, kv_payload; /* bytes */
    size_t blocks;                                      /* names 0 .. blocks-1 */
    const mr_cluster_request *request;                  /* in the order of arrival */
    size_t requests;
    double load; /* arrivals come this many times as fast */
} mr_cluster_config;

/* Bytes on the wire, headers included. */
typedef struct {
    uint64_t exchange; /* new KV among the members of a prompt */
    uint64_t shipped;  /* queries of prompts to holders, and partials */
    uint64_t pulled;   /* blocks to the members that reuse them */
    uint64_t placed;   /* new blocks that another node than the members keeps */
    uint64_t moved;    /* conversion at the boundary */
    uint64_t spread;   /* replicas made ahead of use */
    uint64_t decode;   /* queries, partials and merged results of decode */
    uint64_t reduced;  /* all-reduces of tensor-parallel prompts; those of decode count there */
} mr_cluster_wire;

typedef struct {
    size_t finished, refused; /* refused: more KV than its nodes could ever hold */
    double ttft_mean_s, ttft_p50_s, ttft_p99_s;
    double itl_mean_s, itl_p99_s; /* all gaps between tokens */
    double seconds;               /* from the first arrival to the last token */
    uint64_t prompt_tokens, output_tokens, reused_tokens;
    uint64_t block_references, blocks_reused;
    uint64_t decode_tokens;                 /* tokens that decode steps made */
    double members_mean;                    /* nodes a prompt */
    mr_cluster_wire wire, wire_before_last; /* in all; before the last request arrived */
    uint64_t sent_bytes, received_bytes;    /* by the network's own counters */
    uint64_t peak_blocks, evictions, drained_blocks, replica_blocks;
    double busy_share; /* of the nodes' time */
} mr_cluster_result;

/* What the model refuses, naming the field; NULL: sound. */
const char *mr_cluster_config_error(const mr_cluster_config *config);

/*
 * Runs to the end. False: no memory, or *stop was set. `stop` may be NULL. ttft_ns, unless NULL,
 * has room for one value a request; a refused one gets UINT64_MAX.
 */
bool mr_cluster_run(const mr_cluster_config *config, const volatile int *stop,
                    mr_cluster_result *result, uint64_t *ttft_ns);

#ifdef __cplusplus
}
#endif
#endif
