/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/apply.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/nic/tables.h"

enum { BATCH = 256, MAX_PAGES = 1 << 20 }; /* descriptors a command; pages with a valid bit */

typedef struct {
    mr_nic_link *l;
    unsigned index;
    size_t n;
    mr_nic_desc desc[BATCH];
} batch;

static mr_status flush(batch *b) {
    size_t n = b->n;
    b->n = 0;
    return n ? b->l->ops->command(b->l, b->index, b->desc[0], n) : MR_OK;
}

/* Room for `n` descriptors, the first of which is b->desc[b->n]. */
static mr_status room(batch *b, size_t n) { return b->n + n > BATCH ? flush(b) : MR_OK; }

static unsigned member(const mr_nic_job_row *j, unsigned rank) {
    const uint8_t *at = memchr(j->members, (int)rank, j->count);
    return (unsigned)(at - j->members); /* the configuration was checked */
}

static mr_status put_options(batch *b, const mr_nic_settings *s) {
    const mr_nic_options_desc o = {
        .rank = s->rank, .chain = s->chain, .rto = s->rto, .slot_timeout = s->slot_timeout};
    mr_status e = room(b, 1);
    mr_nic_desc_options(b->desc[b->n++], &o);
    return e;
}

static mr_status put_node(batch *b, const mr_nic_node_row *n) {
    mr_nic_node_desc d = {.rank = n->rank, .ip = n->ip, .port = n->port};
    mr_status e = room(b, 1);
    memcpy(d.mac, n->mac, 6);
    mr_nic_desc_node(b->desc[b->n++], &d);
    return e;
}

static mr_status put_job(batch *b, const mr_nic_job_row *j, unsigned row) {
    mr_nic_job_desc d = {
        .row = (uint8_t)row, .job = j->job, .count = j->count, .root = (uint8_t)member(j, j->root)};
    mr_status e = room(b, 1);
    memcpy(d.ranks, j->members, j->count);
    mr_nic_desc_job(b->desc[b->n++], &d);
    return e;
}

static mr_status put_kv(batch *b, const mr_nic_config *c, const mr_nic_kv_row *k, unsigned rank,
                        mr_nic_dir *dir, uint32_t *page) {
    const mr_nic_job_row *j = mr_nic_config_job(c, k->job);
    bool here = k->owner == rank || memchr(k->replicas, (int)rank, k->count);
    mr_nic_dir_entry d = {.job = k->job,
                          .layer = k->layer,
                          .block = k->block,
                          .owner = (uint8_t)member(j, k->owner),
                          .named = 1u << member(j, k->owner),
                          .epoch = k->epoch,
                          .bytes = k->bytes,
                          .page = here ? *page : 0};
    size_t steps = 0;
    for (unsigned i = 0; i < k->count; i++)
        d.named |= 1u << member(j, k->replicas[i]);
    if (here)
        *page += (uint32_t)(((uint64_t)k->bytes + MR_NIC_KV_PAGE - 1) / MR_NIC_KV_PAGE);
    mr_status e = room(b, MR_NIC_DIR_STEPS);
    if (e == MR_OK)
        e = mr_nic_dir_put(dir, &d, here, &b->desc[b->n], &steps);
    b->n += steps;
    return e;
}

static mr_status put_all(batch *b, const mr_nic_config *c, const mr_nic_settings *s,
                         mr_nic_dir *dir) {
    uint32_t page = 0;
    mr_status e = put_options(b, s);
    for (size_t i = 0; i < c->num_nodes && e == MR_OK; i++)
        e = put_node(b, &c->nodes[i]);
    for (size_t i = 0; i < c->num_jobs && e == MR_OK; i++)
        e = put_job(b, &c->jobs[i], (unsigned)i);
    for (size_t i = 0; i < c->num_kv && e == MR_OK; i++)
        e = put_kv(b, c, &c->kv[i], s->rank, dir, &page);
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
    mr_nic_dir *dir = mr_nic_dir_create(MR_NIC_DIR_HASH_BITS);
    mr_status e = b && dir ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if (e == MR_OK) {
        b->l = l;
        b->index = index;
        b->n = 0;
        e = put_all(b, c, s, dir);
    }
    free(b);
    mr_nic_dir_destroy(dir);
    return e;
}
