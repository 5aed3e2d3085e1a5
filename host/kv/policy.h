/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request's key-value blocks are computed, kept and read: policies that decide on metadata
 * alone. They see block counts, which nodes hold a copy, how often a block was used, and how loaded
 * the nodes are; never data. The KV cache manager and the timing model call the same functions.
 *
 * Terms. A block holds the KV of `block_tokens` tokens of every layer. A copy is one block on one
 * node; the blocks of a request are pinned while it runs and may be evicted afterwards. The members
 * of a request are the nodes that compute its prompt; its root is the member that decodes it. A
 * holder is a node with a copy. Shipping reads a block where it lies: queries go to the holder and
 * partial results come back, merged by the NIC; pulling moves the block to the member.
 *
 * Policies are constant tables without state: the same view gives the same plan.
 */
#ifndef HOST_KV_POLICY_H
#define HOST_KV_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_KV_NODES = 64 };
typedef uint64_t mr_kv_set; /* of nodes, bit = node */

/* ---- what a policy sees -----------------------------------------------------------------------
 */

typedef struct {
    uint64_t capacity, pinned; /* blocks in all; blocks of requests that run */
    uint64_t backlog_ns;       /* prompt work that waits for this node */
    uint64_t in_ns, out_ns;    /* bulk traffic that waits for its link, each way */
    uint64_t decode_tokens;    /* context of the requests that it decodes */
} mr_kv_node;

/* What things cost on this machine. */
typedef struct {
    uint64_t block_tokens;
    uint64_t block_bytes;                /* one block on the wire, headers included */
    uint64_t query_bytes, partial_bytes; /* one token's, all layers, on the wire */
    uint64_t byte_ps;                    /* picoseconds a byte on a node's link */
    uint64_t layers, hop_ns;             /* hop: one exchange of one layer, latency only */
    /* Time to compute `tokens` of a prompt behind `context` tokens, split over `members` nodes;
       `shipped` of the context's tokens are attended to elsewhere. Communication not included. */
    uint64_t (*prompt_ns)(const void *machine, uint64_t tokens, uint64_t context, uint64_t shipped,
                          size_t members);
    /* Time that a holder spends on the shipped part. */
    uint64_t (*ship_ns)(const void *machine, uint64_t tokens, uint64_t keys);
    const void *machine;
} mr_kv_costs;

typedef struct {
    size_t nodes;   /* 1 .. MR_KV_NODES */
    size_t waiting; /* requests whose prompt has not begun */
    mr_kv_set free; /* nodes that have no prompt to compute */
    const mr_kv_node *node;
    const mr_kv_costs *costs;
} mr_kv_view;

typedef struct {
    uint64_t tokens;        /* of the prompt, at least 1 */
    size_t blocks;          /* ceil(tokens / block_tokens) */
    size_t output_blocks;   /* room for what it will generate */
    size_t hit;             /* leading blocks with at least one holder */
    const mr_kv_set *where; /* [blocks] holders */
    const uint32_t *uses;   /* [blocks] requests that had this block, this one included */
} mr_kv_request;

/* ---- what it decides --------------------------------------------------------------------------
 */

typedef struct {
    size_t count;                /* members */
    uint8_t member[MR_KV_NODES]; /* in the order in which they hold the new blocks */
    uint8_t root;
    size_t reuse;         /* leading blocks that are not computed again */
    mr_kv_set ship;       /* holders whose blocks are read where they lie */
    uint64_t prompt_ns;   /* estimates: computing, */
    uint64_t wire_ns;     /* the busiest link, */
    uint64_t duration_ns; /* both, overlapped; */
    uint64_t finish_ns;   /* from now to the first token */
} mr_kv_plan;

/* How the members exchange what the others need. */
typedef enum {
    MR_KV_ALONE,  /* one member */
    MR_KV_GATHER, /* each sends its KV straight to every other member */
    MR_KV_CIRCLE, /* KV goes from neighbour to neighbour */
} mr_kv_exchange;

/* Where a request's blocks are when decode begins, and how it reads them. */
typedef enum {
    MR_KV_AT_ROOT,        /* all at the root */
    MR_KV_MOVED_TO_ROOT,  /* sharded by the prompt, moved to the root before decode */
    MR_KV_SHARDED,        /* stay where they are; queries fan out, partials merge in the NIC */
    MR_KV_SHARDED_CIRCLE, /* stay on the members; queries go round, partials return to the root */
} mr_kv_layout;

/* A copy that could be kept although the block is held elsewhere as well. */
typedef struct {
    size_t node;
    uint32_t uses; /* of the block */
} mr_kv_spare;

typedef enum {
    MR_KV_NO,
    MR_KV_SPARE, /* in room that is free or another replica's */
    MR_KV_KEEP,  /* in the place of the block that was not used for longest as well */
} mr_kv_keep;

typedef struct mr_kv_policy {
    const char *name, *about;
    mr_kv_exchange exchange;
    mr_kv_layout layout;

    /* When a request arrives: on which node, or on which few where one could never hold it, its
       prompt waits. False: no choice would ever have the room. */
    bool (*place)(const mr_kv_view *view, const mr_kv_request *request, mr_kv_plan *plan);

    /* When its turn has come: the rest of the plan, with further members from view->free. */
    void (*begin)(const mr_kv_view *view, const mr_kv_request *request, mr_kv_plan *plan);

    /* Between two parts of a prompt that runs: adds members from view->free for what is `left`,
       where that pays although they must first get the KV of the `context` before it. */
    void (*grow)(const mr_kv_view *view, uint64_t left, uint64_t context, mr_kv_plan *plan);

    /* How many of the new blocks each node keeps: share[0 .. nodes), blocks - reuse in all. What a
       member computes and another node keeps is sent there during the prompt. */
    void (*homes)(const mr_kv_view *view, const mr_kv_request *request, const mr_kv_plan *plan,
                  uint32_t *share);

    /* Is there head-room for this replica? */
    mr_kv_keep (*keep)(const mr_kv_view *view, const mr_kv_spare *spare);

    /* Has the pressure on a node risen so that replicas of running requests must go? */
    bool (*drain)(const mr_kv_view *view, size_t node);

    /* Evict replicas before blocks that have no other copy? */
    bool replicas_go_first;

    /* A further node that should get a copy of a block while the prompt's attention hides the
       transfer; MR_KV_NODES: none. */
    size_t (*spread)(const mr_kv_view *view, mr_kv_set where, uint32_t uses);
} mr_kv_policy;

extern const mr_kv_policy mr_kv_mars, mr_kv_no_replication, mr_kv_convert, mr_kv_ring,
    mr_kv_prefix_cache;

/* By name; NULL: there is none. */
const mr_kv_policy *mr_kv_policy_find(const char *name);

/* ---- what policies share ----------------------------------------------------------------------
 */

/*
 * Fills in the plan's times for its members, root, reuse and ship. Reused blocks that a member
 * lacks come from mr_kv_next_source(); new blocks go to all members; `circle` sends everything
 * reused round.
 */
void mr_kv_estimate(const mr_kv_view *view, const mr_kv_request *request, mr_kv_exchange exchange,
                    mr_kv_plan *plan);

/* The times of the rest of a prompt when the members from `joined` on are new. */
void mr_kv_estimate_rest(const mr_kv_view *view, uint64_t left, uint64_t context, size_t joined,
                         mr_kv_exchange exchange, mr_kv_plan *plan);

/*
 * The holders that reused blocks are read from, block after block from the first: a member if one
 * holds it, and of several the one that has sent least so far. Start with all zero.
 */
typedef struct {
    uint64_t sent[MR_KV_NODES]; /* blocks */
} mr_kv_sources;

size_t mr_kv_next_source(mr_kv_sources *s, mr_kv_set where, mr_kv_set members);

/* Prompt tokens that `reuse` blocks save: at least one token is always computed. */
uint64_t mr_kv_reused_tokens(const mr_kv_view *view, const mr_kv_request *request, size_t reuse);

mr_kv_set mr_kv_members(const mr_kv_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
