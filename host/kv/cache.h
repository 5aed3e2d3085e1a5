/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A KV cache in the memories of a cluster's NICs: prompts as sequences of named blocks, found again
 * by their names, kept by a policy.
 *
 * A block is the KV of some tokens behind one certain prefix; its name is a hash of all tokens up
 * to its end, so equal names mean equal KV. It is stored as one KV block a layer. Nodes are the
 * members of the job in ascending order of rank. A request pins the blocks it reads and those it
 * makes; what is not pinned may be evicted, the least recently used first.
 *
 * The policy decides on metadata alone: who computes the prompt and how much of the prefix is
 * reused, which node keeps how many of the new blocks, who gets a replica and when replicas go.
 */
#ifndef HOST_KV_CACHE_H
#define HOST_KV_CACHE_H

#include <millrace/nic.h>

#include "host/kv/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_kv_cache mr_kv_cache;
typedef struct mr_kv_run mr_kv_run; /* a request in progress */

typedef struct mr_kv_cache_options {
    mr_nic *nic; /* must outlive the cache, as must the rest */
    uint16_t job;
    const uint8_t *ranks; /* the job's members, ascending */
    size_t nodes;         /* 1..32 */
    const mr_kv_policy *policy;
    const mr_kv_costs *costs;
    size_t layers;        /* 1..65535 */
    uint32_t layer_bytes; /* of one block in one layer */
    uint64_t capacity;    /* blocks a node may hold; 0: what its memory has room for */
} mr_kv_cache_options;

typedef struct mr_kv_cache_stats {
    uint64_t blocks;            /* named blocks now */
    uint64_t copies;            /* of them, on all nodes */
    uint64_t reused, made;      /* blocks of requests so far */
    uint64_t evicted;           /* last copies given up */
    uint64_t replicas, dropped; /* further copies made, and given up */
} mr_kv_cache_stats;

mr_status mr_kv_cache_create(const mr_kv_cache_options *options, mr_kv_cache **out);
/* Requests in progress go with it; the job's KV blocks stay until the job is destroyed. */
void mr_kv_cache_destroy(mr_kv_cache *c);

/*
 * Begins a request for `blocks` blocks of different names (the last one may be part of a block) of
 * `tokens` tokens, which will make `output` more. Blocks that are whole here already and that the
 * plan reuses need not be written. MR_OUT_OF_MEMORY: too much is pinned now, or the request can
 * never fit; the message says which.
 */
mr_status mr_kv_cache_begin(mr_kv_cache *c, const uint64_t *names, size_t blocks, uint64_t tokens,
                            size_t output, mr_kv_run **run);

/* Appends a block that the request made, in the root's room for `output`. */
mr_status mr_kv_cache_append(mr_kv_run *run, uint64_t name);

/* Ends the request. Blocks that were not written in all layers are forgotten. */
mr_status mr_kv_cache_end(mr_kv_run *run);

const mr_kv_plan *mr_kv_run_plan(const mr_kv_run *run); /* members and root are nodes */
size_t mr_kv_run_blocks(const mr_kv_run *run);
/* Is block b written in all layers, so that nothing of it need be computed? */
bool mr_kv_run_whole(const mr_kv_run *run, size_t b);
/* The node from which block b is read. */
size_t mr_kv_run_node(const mr_kv_run *run, size_t b);

/* layer_bytes of block b: written by the root, once; read at any node, from its own memory or over
 * the network. */
mr_status mr_kv_run_write(mr_kv_run *run, size_t b, size_t layer, const void *data);
mr_status mr_kv_run_read(mr_kv_run *run, size_t node, size_t b, size_t layer, void *data);

/* Makes the replicas that the policy wants of the blocks that were reused: to be called while the
 * prompt's attention hides the transfer. */
mr_status mr_kv_run_spread(mr_kv_run *run);

void mr_kv_cache_get_stats(const mr_kv_cache *c, mr_kv_cache_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
