/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/apply.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { BATCH = 256, MAX_PAGES = 1 << 20 }; /* descriptors a command; pages with a valid bit */

typedef struct {
    mr_nic_link *l;
    unsigned index;
    size_t n;
    uint8_t desc[BATCH][MR_NIC_DESC_BYTES];
} batch;

static mr_status flush(batch *b) {
    size_t n = b->n;
    b->n = 0;
    return n ? b->l->ops->command(b->l, b->index, b->desc[0], n) : MR_OK;
}

static mr_status next(batch *b, unsigned type, uint8_t **out) {
    mr_status e = b->n == BATCH ? flush(b) : MR_OK;
    *out = memset(b->desc[b->n++], 0, MR_NIC_DESC_BYTES);
    **out = (uint8_t)type;
    return e;
}

/* Bits lsb.. of a little-endian descriptor. */
static void put(uint8_t *desc, unsigned lsb, unsigned width, uint64_t v) {
    for (unsigned i = 0; i < width; i++)
        desc[(lsb + i) / 8] |= (uint8_t)((v >> i & 1) << (lsb + i) % 8);
}
#define PUT(desc, name, v) put(desc, MR_NIC_D_##name##_LSB, MR_NIC_D_##name##_BITS, v)

static mr_status put_options(batch *b, const mr_nic_settings *s) {
    uint8_t *d;
    mr_status e = next(b, MR_NIC_DESC_OPTIONS, &d);
    PUT(d, OPTIONS_RANK, s->rank);
    PUT(d, OPTIONS_CHAIN, s->chain);
    PUT(d, OPTIONS_RTO, s->rto);
    PUT(d, OPTIONS_SLOT_TIMEOUT, s->slot_timeout);
    return e;
}

static mr_status put_node(batch *b, const mr_nic_node_row *n) {
    uint8_t *d;
    uint64_t mac = 0;
    mr_status e = next(b, MR_NIC_DESC_NODE, &d);
    for (int i = 0; i < 6; i++)
        mac = mac << 8 | n->mac[i];
    PUT(d, NODE_RANK, n->rank);
    PUT(d, NODE_VALID, 1);
    PUT(d, NODE_PORT, n->port);
    PUT(d, NODE_IP, n->ip);
    PUT(d, NODE_MAC, mac);
    return e;
}

static unsigned member(const mr_nic_job_row *j, unsigned rank) {
    const uint8_t *at = memchr(j->members, (int)rank, j->count);
    return (unsigned)(at - j->members); /* the configuration was checked */
}

static mr_status put_job(batch *b, const mr_nic_job_row *j, unsigned row) {
    uint8_t *d;
    mr_status e = next(b, MR_NIC_DESC_JOB, &d);
    PUT(d, JOB_ROW, row);
    PUT(d, JOB_VALID, 1);
    PUT(d, JOB_COUNT, j->count);
    PUT(d, JOB_JOB, j->job);
    PUT(d, JOB_ROOT, member(j, j->root));
    memcpy(d + MR_NIC_D_JOB_RANKS_LSB / 8, j->members, j->count);
    return e;
}

static uint32_t bucket(uint64_t key, int table) {
    uint32_t b = 0;
    for (int i = 0; i < MR_NIC_DIR_HASH_BITS; i++)
        b |= (uint32_t)__builtin_parityll(key & mr_nic_dir_masks[table][i]) << i;
    return b;
}

static mr_status place(const mr_nic_kv_row *k, uint8_t *used, uint32_t *slot) {
    uint64_t key = (uint64_t)k->job << 48 | (uint64_t)k->layer << 32 | k->block;
    for (unsigned i = 0; i < 4; i++) {
        unsigned table = i & 1, where = i >> 1;
        *slot = table << (MR_NIC_DIR_HASH_BITS + 1) | bucket(key, (int)table) << 1 | where;
        if (!used[*slot]) {
            used[*slot] = 1;
            return MR_OK;
        }
    }
    return mr_fail(MR_LIMIT, "the directory has no room for job %u, layer %u, block %u", k->job,
                   k->layer, k->block);
}

static mr_status put_kv(batch *b, const mr_nic_config *c, const mr_nic_kv_row *k, unsigned rank,
                        uint8_t *used, uint32_t *page) {
    const mr_nic_job_row *j = mr_nic_config_job(c, k->job);
    bool here = k->owner == rank || memchr(k->replicas, (int)rank, k->count);
    uint32_t named = 1u << member(j, k->owner), slot;
    uint8_t *d;
    mr_status e = place(k, used, &slot);
    if (e == MR_OK)
        e = next(b, MR_NIC_DESC_DIR, &d);
    if (e != MR_OK)
        return e;
    for (unsigned i = 0; i < k->count; i++)
        named |= 1u << member(j, k->replicas[i]);
    PUT(d, DIR_VALID, 1);
    PUT(d, DIR_CLEAR, here);
    PUT(d, DIR_SLOT, slot);
    PUT(d, DIR_JOB, k->job);
    PUT(d, DIR_LAYER, k->layer);
    PUT(d, DIR_BLOCK, k->block);
    PUT(d, DIR_EPOCH, k->epoch);
    PUT(d, DIR_BYTES, k->bytes);
    PUT(d, DIR_NAMED, named);
    PUT(d, DIR_PAGE, here ? *page : 0);
    PUT(d, DIR_OWNER, member(j, k->owner));
    if (here)
        *page += (uint32_t)(((uint64_t)k->bytes + MR_NIC_KV_PAGE - 1) / MR_NIC_KV_PAGE);
    return MR_OK;
}

static mr_status put_all(batch *b, const mr_nic_config *c, const mr_nic_settings *s,
                         uint8_t *used) {
    uint32_t page = 0;
    mr_status e = put_options(b, s);
    for (size_t i = 0; i < c->num_nodes && e == MR_OK; i++)
        e = put_node(b, &c->nodes[i]);
    for (size_t i = 0; i < c->num_jobs && e == MR_OK; i++)
        e = put_job(b, &c->jobs[i], (unsigned)i);
    for (size_t i = 0; i < c->num_kv && e == MR_OK; i++)
        e = put_kv(b, c, &c->kv[i], s->rank, used, &page);
    return e == MR_OK ? flush(b) : e;
}

mr_status mr_nic_apply(mr_nic_link *l, unsigned index, const mr_nic_config *c,
                       const mr_nic_settings *s) {
    uint64_t pages = mr_nic_config_pages(c, s->rank), room = l->ops->kv_bytes(l) / MR_NIC_KV_PAGE;
    if (room > MAX_PAGES)
        room = MAX_PAGES;
    if (pages > room)
        return mr_fail(MR_LIMIT, "kv: rank %u holds %llu pages of 4096 bytes, its NIC has %llu",
                       s->rank, (unsigned long long)pages, (unsigned long long)room);
    batch *b = malloc(sizeof *b);
    uint8_t *used = calloc(4u << MR_NIC_DIR_HASH_BITS, 1);
    mr_status e = b && used ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if (e == MR_OK) {
        b->l = l;
        b->index = index;
        b->n = 0;
        e = put_all(b, c, s, used);
    }
    free(b);
    free(used);
    return e;
}
