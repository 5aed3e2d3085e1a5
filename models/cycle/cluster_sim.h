/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the cluster share. Times are picoseconds, the network's tick. */
#ifndef MODELS_CYCLE_CLUSTER_SIM_H
#define MODELS_CYCLE_CLUSTER_SIM_H

#include <string.h>

#include "models/cycle/cluster.h"
#include "models/cycle/store.h"

enum { NONE = UINT32_MAX, NOWHERE = UINT8_MAX };
enum { CHUNK = 2 << 20 }; /* bulk transfers take turns after so many bytes */
enum { OCTAVE = 64, BINS = 64 * OCTAVE };

typedef enum { QUEUED, NO_ROOM, READY, RUNNING, MOVING, DECODING, DONE, REFUSED } state;

typedef struct {
    state state;
    mr_kv_plan plan;
    uint64_t context, fresh, done; /* tokens reused, to compute, computed */
    uint64_t estimate, arrival, first, last;
    uint64_t pulled_at;
    uint32_t pulls, moves;  /* flows not yet over */
    uint32_t base, settled; /* members that it waited for; members when its prompt began */
    uint32_t heads, ready, left, now_tokens;
    uint32_t generated, local_tokens;
    uint64_t shipped_tokens;
    bool last_step;
    uint8_t *read_at, *shard_at; /* [blocks] in decode: read from; where a copy stays in any case */
    uint32_t reserved[MR_KV_NODES], working[MR_KV_NODES]; /* working: until the prompt has ended */
} job;

typedef struct {
    uint32_t *queue;
    size_t queued, queue_room;
    uint32_t head; /* the request that was counted as first here */
    uint32_t *active, *late;
    size_t actives, active_room, lates, late_room;
    uint64_t local_tokens, far_tokens[MR_KV_NODES];
    uint32_t far_requests[MR_KV_NODES];
    uint64_t backlog, debt, busy, in_bytes, out_bytes;
    bool running, held;
    /* the step */
    uint64_t start, end, compute, hidden, far, bulk_at, query_at, partial_at;
    uint32_t part, stepping, bulk, urgent;
} node;

typedef enum { EXCHANGE, PULL, MOVE, SPREAD, QUERY, PARTIAL } purpose;

typedef struct {
    purpose purpose;
    uint32_t index; /* a node for EXCHANGE, QUERY, PARTIAL; a request; a block for SPREAD */
    uint32_t next;
    uint8_t src, dst;
    uint64_t left, sending;
} flow;

typedef struct {
    const mr_cluster_config *c;
    mr_cluster_result *result;
    mr_net *net;
    mr_store *store;
    job *jobs;
    node *nodes;
    flow *flows;
    size_t flow_room;
    uint32_t unused_flow;
    uint32_t *no_room;
    size_t no_rooms, waiting, admitted; /* admitted: and not yet finished */
    uint64_t now, first_arrival;
    uint64_t step_tokens;
    uint64_t block_wire, token_wire, query_wire, partial_wire, wide_wire;
    uint64_t hop_ps, merge_ps;
    mr_kv_costs costs;
    mr_kv_node *seen;
    mr_kv_set *where;
    uint32_t *uses;
    uint64_t *ttft;
    uint64_t *gaps;
    uint32_t *ended; /* [step_requests] */
    double gap_sum;
    uint64_t member_sum;
    bool failed;
} sim;

/* cluster_view.c */
const mr_cluster_request *mr_sim_asked(const sim *s, uint32_t r);
size_t mr_sim_blocks_of(const sim *s, uint32_t r);
uint64_t mr_sim_output_blocks(const sim *s, uint32_t r);
uint32_t mr_sim_block_tokens(const sim *s, uint32_t r, size_t b);
uint64_t mr_sim_framed(uint64_t bytes, uint64_t payload, uint64_t overhead);
void mr_sim_append(sim *s, uint32_t **list, size_t *room, size_t *count, uint32_t value);
void mr_sim_take_out(uint32_t *list, size_t *count, uint32_t value);
uint64_t mr_sim_prompt_cost(const void *context, uint64_t tokens, uint64_t reused, uint64_t shipped,
                            size_t members);
uint64_t mr_sim_ship_cost(const void *context, uint64_t tokens, uint64_t keys);
mr_kv_view mr_sim_view_of(sim *s);
mr_kv_request mr_sim_request_of(sim *s, uint32_t r);
void mr_sim_send_next(sim *s, uint32_t i);
void mr_sim_transfer(sim *s, purpose purpose, size_t src, size_t dst, uint64_t bytes,
                     uint32_t index);

/* cluster_room.c */
void mr_sim_count_reads(sim *s, uint32_t r, bool add);
void mr_sim_finished(sim *s, uint32_t r);
void mr_sim_join(sim *s, uint32_t r, size_t from);
bool mr_sim_admit(sim *s, uint32_t r);
void mr_sim_replica(sim *s, mr_kv_view *v, size_t n, uint32_t name);
void mr_sim_moved(sim *s, uint32_t r);
void mr_sim_prompt_done(sim *s, uint32_t r);

/* cluster_step.c */
void mr_sim_try_end(sim *s, size_t n);
void mr_sim_begin_step(sim *s, size_t n, uint32_t part, uint64_t tokens, uint64_t attention_ns);
void mr_sim_begin_part(sim *s, uint32_t r);

/* cluster_queue.c */
void mr_sim_new_head(sim *s, size_t n);
void mr_sim_kick(sim *s, size_t n);
void mr_sim_end_step(sim *s, size_t n);

#endif
