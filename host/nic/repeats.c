/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/repeats.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 8192 };

typedef struct {
    uint32_t request, block;
    uint16_t job, layer, head0;
    uint8_t opcode, shard;
} key;

struct mr_nic_repeats {
    key keys[MR_NIC_REMEMBERED];       /* a ring */
    uint16_t chain[MR_NIC_REMEMBERED]; /* next in the bucket, + 1 */
    uint16_t bucket[BUCKETS];          /* first, + 1 */
    size_t next, count;
};

mr_nic_repeats *mr_nic_repeats_create(void) { return calloc(1, sizeof(mr_nic_repeats)); }
void mr_nic_repeats_destroy(mr_nic_repeats *r) { free(r); }

static unsigned hash(const key *k) {
    uint64_t z = (uint64_t)k->request << 32 | k->block;
    z ^= (uint64_t)k->job << 48 | (uint64_t)k->layer << 32 | (uint64_t)k->head0 << 16 |
         (uint64_t)k->opcode << 8 | k->shard;
    z *= 0x9E3779B97F4A7C15u;
    return (unsigned)(z >> 51);
}

static bool same(const key *a, const key *b) {
    return a->request == b->request && a->block == b->block && a->job == b->job &&
           a->layer == b->layer && a->head0 == b->head0 && a->opcode == b->opcode &&
           a->shard == b->shard;
}

static void forget(mr_nic_repeats *r, size_t slot) {
    uint16_t *at = &r->bucket[hash(&r->keys[slot])];
    while (*at != slot + 1)
        at = &r->chain[*at - 1];
    *at = r->chain[slot];
}

bool mr_nic_repeated(mr_nic_repeats *r, const mr_nic_header *h) {
    key k = {h->request, h->block, h->job, h->layer, h->head0, h->opcode, h->shard};
    unsigned b = hash(&k);
    for (unsigned i = r->bucket[b]; i; i = r->chain[i - 1])
        if (same(&r->keys[i - 1], &k))
            return true;
    size_t slot = r->next;
    r->next = (slot + 1) % MR_NIC_REMEMBERED;
    if (r->count == MR_NIC_REMEMBERED)
        forget(r, slot);
    else
        r->count++;
    r->keys[slot] = k;
    r->chain[slot] = r->bucket[b];
    r->bucket[b] = (uint16_t)(slot + 1);
    return false;
}
