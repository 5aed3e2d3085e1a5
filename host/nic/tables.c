/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/tables.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

/* ---- Descriptors --------------------------------------------------------------------------------
 */

/* Writes `width` bits from bit `lsb` of a little-endian descriptor that holds zeroes there. */
static void put(uint8_t *desc, unsigned lsb, unsigned width, uint64_t value) {
    for (unsigned i = 0; i < width; i++)
        desc[(lsb + i) / 8] |= (uint8_t)((value >> i & 1) << (lsb + i) % 8);
}
#define PUT(desc, field, value)                                                                    \
    put(desc, MR_NIC_D_##field##_LSB, MR_NIC_D_##field##_BITS, (uint64_t)(value))

static void begin(uint8_t *desc, unsigned type) {
    memset(desc, 0, MR_NIC_DESC_BYTES);
    desc[0] = (uint8_t)type;
}

void mr_nic_desc_node(mr_nic_desc out, const mr_nic_node_desc *node) {
    uint64_t mac = 0;
    for (int i = 0; i < 6; i++)
        mac = mac << 8 | node->mac[i];
    begin(out, MR_NIC_DESC_NODE);
    PUT(out, NODE_RANK, node->rank);
    PUT(out, NODE_VALID, 1);
    PUT(out, NODE_NETPORT, node->netport);
    PUT(out, NODE_PORT, node->port);
    PUT(out, NODE_IP, node->ip);
    PUT(out, NODE_MAC, mac);
}

void mr_nic_desc_node_remove(mr_nic_desc out, uint8_t rank) {
    begin(out, MR_NIC_DESC_NODE);
    PUT(out, NODE_RANK, rank);
}

void mr_nic_desc_job(mr_nic_desc out, const mr_nic_job_desc *job) {
    begin(out, MR_NIC_DESC_JOB);
    PUT(out, JOB_ROW, job->row);
    PUT(out, JOB_VALID, 1);
    PUT(out, JOB_COUNT, job->count);
    PUT(out, JOB_JOB, job->job);
    PUT(out, JOB_ROOT, job->root);
    PUT(out, JOB_PORT1, job->port1);
    for (unsigned k = 0; k < job->count && k < sizeof job->ranks; k++)
        put(out, MR_NIC_D_JOB_RANKS_LSB + 8 * k, 8, job->ranks[k]);
}

void mr_nic_desc_job_remove(mr_nic_desc out, uint8_t row) {
    begin(out, MR_NIC_DESC_JOB);
    PUT(out, JOB_ROW, row);
}

void mr_nic_desc_options(mr_nic_desc out, const mr_nic_options_desc *options) {
    begin(out, MR_NIC_DESC_OPTIONS);
    PUT(out, OPTIONS_RANK, options->rank);
    PUT(out, OPTIONS_CHAIN, options->chain);
    PUT(out, OPTIONS_RTO, options->rto);
    PUT(out, OPTIONS_SLOT_TIMEOUT, options->slot_timeout);
    PUT(out, OPTIONS_KV_BASE, options->kv_base);
}

void mr_nic_desc_valid_clear(mr_nic_desc out, uint32_t page, uint32_t count) {
    begin(out, MR_NIC_DESC_VALID);
    PUT(out, VALID_PAGE, page);
    PUT(out, VALID_COUNT, count);
}

static void desc_dir(uint8_t *out, uint32_t slot, const mr_nic_dir_entry *e, bool clear) {
    begin(out, MR_NIC_DESC_DIR);
    PUT(out, DIR_VALID, 1);
    PUT(out, DIR_CLEAR, clear);
    PUT(out, DIR_SLOT, slot);
    PUT(out, DIR_JOB, e->job);
    PUT(out, DIR_LAYER, e->layer);
    PUT(out, DIR_BLOCK, e->block);
    PUT(out, DIR_EPOCH, e->epoch);
    PUT(out, DIR_BYTES, e->bytes);
    PUT(out, DIR_NAMED, e->named);
    PUT(out, DIR_PAGE, e->page);
    PUT(out, DIR_OWNER, e->owner);
}

/* ---- Directory
 * ------------------------------------------------------------------------------------ */

enum { SEARCH = 1024, NOWHERE = -1 }; /* places looked at for one entry */

struct mr_nic_dir {
    unsigned bits;
    size_t count;
    mr_nic_dir_entry *entries; /* by slot */
    uint8_t *used; /* by slot; one with its mark in `seen` is on the way of the search */
    uint8_t *seen;
};

/* A place of the search for room: the entry there may move to `slot` of a later step. */
typedef struct {
    uint32_t slot;
    int from; /* the step whose entry moves here; NOWHERE: the new entry */
} step;

mr_nic_dir *mr_nic_dir_create(unsigned bucket_bits) {
    if (!bucket_bits || bucket_bits > MR_NIC_DIR_HASH_BITS)
        return NULL;
    mr_nic_dir *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->bits = bucket_bits;
    d->entries = calloc(mr_nic_dir_places(d), sizeof *d->entries);
    d->used = calloc(mr_nic_dir_places(d), 1);
    d->seen = calloc(mr_nic_dir_places(d), 1);
    if (!d->entries || !d->used || !d->seen) {
        mr_nic_dir_destroy(d);
        return NULL;
    }
    return d;
}

void mr_nic_dir_destroy(mr_nic_dir *dir) {
    if (!dir)
        return;
    free(dir->entries);
    free(dir->used);
    free(dir->seen);
    free(dir);
}

size_t mr_nic_dir_count(const mr_nic_dir *dir) { return dir->count; }

size_t mr_nic_dir_places(const mr_nic_dir *dir) { return (size_t)4 << dir->bits; }

static uint64_t key_of(uint16_t job, uint16_t layer, uint32_t block) {
    return (uint64_t)job << 48 | (uint64_t)layer << 32 | block;
}

/* The first of a key's two slots in a table. */
static uint32_t slot_in(const mr_nic_dir *d, uint64_t key, unsigned table) {
    uint32_t bucket = 0;
    for (unsigned i = 0; i < d->bits; i++)
        bucket |= (uint32_t)__builtin_parityll(key & mr_nic_dir_masks[table][i]) << i;
    return table << (d->bits + 1) | bucket << 1;
}

static uint64_t key_at(const mr_nic_dir *d, uint32_t slot) {
    const mr_nic_dir_entry *e = &d->entries[slot];
    return key_of(e->job, e->layer, e->block);
}

static int64_t slot_of(const mr_nic_dir *d, uint64_t key) {
    for (unsigned k = 0; k < 4; k++) {
        uint32_t slot = slot_in(d, key, k >> 1) | (k & 1);
        if (d->used[slot] && key_at(d, slot) == key)
            return slot;
    }
    return NOWHERE;
}

const mr_nic_dir_entry *mr_nic_dir_find(const mr_nic_dir *dir, uint16_t job, uint16_t layer,
                                        uint32_t block) {
    int64_t slot = slot_of(dir, key_of(job, layer, block));
    return slot == NOWHERE ? NULL : &dir->entries[slot];
}

/* Breadth first from the new key's places along the other places of what stands there; the nearest
 * empty one is the last step. Returns its index, or NOWHERE. */
static int search(mr_nic_dir *d, uint64_t key, step *steps, int *looked) {
    int found = NOWHERE, n = 0;
    for (int at = NOWHERE; at < n && found == NOWHERE; at++) {
        uint64_t k = at == NOWHERE ? key : key_at(d, steps[at].slot);
        for (unsigned p = 0; p < 4 && found == NOWHERE && n < SEARCH; p++) {
            uint32_t slot = slot_in(d, k, p >> 1) | (p & 1);
            if (d->seen[slot])
                continue;
            d->seen[slot] = 1;
            steps[n] = (step){slot, at};
            if (!d->used[slot])
                found = n;
            n++;
        }
    }
    for (int i = 0; i < n; i++)
        d->seen[steps[i].slot] = 0;
    *looked = n;
    return found;
}

static mr_status check(const mr_nic_dir_entry *e) {
    if (e->owner >= 32)
        return mr_fail(MR_INVALID_ARGUMENT, "entry.owner %u: a job has 32 members at most",
                       e->owner);
    if (!(e->named >> e->owner & 1))
        return mr_fail(MR_INVALID_ARGUMENT, "entry.named 0x%X does not name the owner, member %u",
                       (unsigned)e->named, e->owner);
    if (e->page >> 24)
        return mr_fail(MR_INVALID_ARGUMENT, "entry.page %u: pages have 24 bits", (unsigned)e->page);
    return MR_OK;
}

mr_status mr_nic_dir_put(mr_nic_dir *dir, const mr_nic_dir_entry *entry, bool clear,
                         mr_nic_desc steps[MR_NIC_DIR_STEPS], size_t *count) {
    mr_status status = check(entry);
    if (status != MR_OK)
        return status;
    uint64_t key = key_of(entry->job, entry->layer, entry->block);
    int64_t known = slot_of(dir, key);
    if (known != NOWHERE) {
        dir->entries[known] = *entry;
        desc_dir(steps[0], (uint32_t)known, entry, clear);
        *count = 1;
        return MR_OK;
    }
    step way[SEARCH];
    int looked, length = 0, last = search(dir, key, way, &looked);
    for (int at = last; at != NOWHERE; at = way[at].from)
        length++;
    if (!length || length > MR_NIC_DIR_STEPS)
        return mr_fail(MR_LIMIT,
                       "the directory has no place for job %u, layer %u, block %u: %zu of %zu are "
                       "taken, %d were tried",
                       entry->job, entry->layer, (unsigned)entry->block, dir->count,
                       mr_nic_dir_places(dir), looked);
    *count = 0;
    for (int at = last; at != NOWHERE; at = way[at].from) {
        int from = way[at].from;
        const mr_nic_dir_entry *moved = from == NOWHERE ? entry : &dir->entries[way[from].slot];
        dir->entries[way[at].slot] = *moved;
        desc_dir(steps[(*count)++], way[at].slot, moved, from == NOWHERE && clear);
    }
    dir->used[way[last].slot] = 1;
    dir->count++;
    return MR_OK;
}

mr_status mr_nic_dir_remove(mr_nic_dir *dir, uint16_t job, uint16_t layer, uint32_t block,
                            mr_nic_desc step) {
    int64_t slot = slot_of(dir, key_of(job, layer, block));
    if (slot == NOWHERE)
        return mr_fail(MR_NOT_FOUND, "the directory has no job %u, layer %u, block %u", job, layer,
                       (unsigned)block);
    dir->used[slot] = 0;
    dir->count--;
    begin(step, MR_NIC_DESC_DIR);
    PUT(step, DIR_SLOT, slot);
    return MR_OK;
}
