/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over a KV cache that is sharded over the nodes of a NIC cluster.
 *
 * Positions are cut into blocks. A full block is written, one KV block a layer, to the NIC of node
 * (block mod nodes) and lives in that NIC's memory; the positions after the last full block stay
 * with the root, node 0, which runs the rest of the network. In each layer the root's queries go to
 * every node as QUERY frames; each node runs the decode kernel (kernels/lm.cl) over the keys it
 * holds and answers with a PARTIAL in fp32; the root's NIC merges them as they pass and delivers
 * the MERGED attention.
 */
#ifndef HOST_KV_SHARDS_H
#define HOST_KV_SHARDS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_shards mr_shards;

enum { MR_SHARDS_NODES = 16 }; /* at most */

typedef struct mr_shards_options {
    const char *nic;   /* a cluster as mr_nic_open() takes it */
    mr_device *device; /* with MR_CAP_KERNELS: stands for the compute of every node */
    size_t layers;
    size_t heads, kv_heads, dim; /* of queries; of keys and values (divides heads); floats of one */
    size_t context;              /* positions */
    size_t block;                /* positions of a KV block */
    size_t step;                 /* most positions of one call */
    float scale;                 /* of the logits, which are to base e */
    uint64_t timeout_ns;         /* longest wait for the device */
    const volatile sig_atomic_t *stop; /* NULL, or: non-zero ends a wait with MR_CANCELLED */
} mr_shards_options;

/* MR_INVALID_ARGUMENT: more nodes than MR_SHARDS_NODES. */
mr_status mr_shards_open(const mr_shards_options *options, mr_shards **out);
void mr_shards_close(mr_shards *s); /* NULL is allowed */

/* Forgets all positions. */
mr_status mr_shards_restart(mr_shards *s);

/*
 * out[count][heads * dim] = attention of q[count][heads * dim], the queries of the positions that
 * come next, over everything before them and their own keys and values k, v[count][kv_heads * dim].
 * Every layer once, then mr_shards_step() for all of them.
 */
mr_status mr_shards_attend(mr_shards *s, size_t layer, size_t count, const float *q, const float *k,
                           const float *v, float *out);

/* The `count` positions are taken: blocks that became full go to their nodes. */
mr_status mr_shards_step(mr_shards *s, size_t count);

/* What the NICs did since the cluster was opened. */
typedef struct mr_shards_stats {
    size_t nodes;
    uint64_t frames, bytes;   /* sent into the network */
    uint64_t retransmissions; /* by hosts and NICs */
    uint64_t merges;          /* MERGED results made */
    uint64_t cycles;
} mr_shards_stats;
mr_status mr_shards_get_stats(const mr_shards *s, mr_shards_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
