/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over a KV cache that is sharded over the nodes of a NIC cluster.
 *
 * Positions are cut into blocks of LM_BLOCK_KEYS. A full block is written, one KV block a layer, to
 * the NIC of node (block mod nodes) and lives in that NIC's memory; the positions after the last
 * full block stay with the root, node 0, which runs the rest of the network. In each layer the
 * root's queries go to every node as QUERY frames; each node runs the decode kernel over the keys
 * it holds and answers with a PARTIAL in fp32; the root's NIC merges them as they pass and delivers
 * the MERGED attention.
 */
#ifndef HOST_LM_NODES_H
#define HOST_LM_NODES_H

#include "host/lm/lm.h"

typedef struct lm_nodes lm_nodes;

enum {
    LM_BLOCK_KEYS = 8,  /* positions of a block */
    LM_NODES_STEP = 16, /* most positions of a step: the blocks before it are with the nodes */
    LM_NODES_MOST = 16
};

mr_status lm_nodes_open(mr_lm *lm, const char *uri);
void lm_nodes_close(lm_nodes *s); /* NULL is allowed */

/* Forgets all positions. */
mr_status lm_nodes_restart(mr_lm *lm);

/* o_buf[count][heads * dim] = attention of the queries in q, whose keys and values are the first
 * `count` rows of the layer's cache buffers. */
mr_status lm_nodes_attend(mr_lm *lm, size_t layer, size_t count, float scale);

/* After a step: the blocks that became full go to their nodes. lm->position is that of the step's
 * first key. */
mr_status lm_nodes_flush(mr_lm *lm, size_t count);

mr_status lm_nodes_stats(const lm_nodes *s, mr_lm_nic_stats *stats);

#endif
