/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net/golden.h"

#include <stdlib.h>

enum {
    DIR_SLOTS = 4 << MR_NIC_DIR_HASH_BITS, /* two tables, two places a bucket */
    MEMBERS = 32
};

typedef mr_status (*fail_fn)(mr_status status, const char *format, ...);

/* Bits lsb.. of a little-endian descriptor; width at most 64. */
static uint64_t bits(const uint8_t *desc, unsigned lsb, unsigned width) {
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v |= (uint64_t)(desc[(lsb + i) / 8] >> (lsb + i) % 8 & 1) << i;
    return v;
}
#define FIELD(desc, name) bits(desc, MR_NIC_D_##name##_LSB, MR_NIC_D_##name##_BITS)

bool mr_golden_tables_init(mr_golden_tables *t, const mr_gnic_outputs *outputs, size_t kv_pages) {
    t->nic = mr_gnic_create(outputs, kv_pages);
    t->keys = calloc(DIR_SLOTS, sizeof *t->keys);
    t->used = calloc(DIR_SLOTS, sizeof *t->used);
    for (int i = 0; i < MR_GNIC_JOBS; i++)
        t->job_of_row[i] = -1;
    return t->nic && t->keys && t->used;
}

void mr_golden_tables_free(mr_golden_tables *t) {
    if (t->nic)
        mr_gnic_destroy(t->nic);
    free(t->keys);
    free(t->used);
}

static mr_status node(mr_golden_tables *t, const uint8_t *d, fail_fn fail) {
    unsigned rank = (unsigned)FIELD(d, NODE_RANK);
    uint8_t mac[6];
    for (int i = 0; i < 6; i++) /* the descriptor is little-endian, its first byte on top */
        mac[i] = d[MR_NIC_D_NODE_MAC_LSB / 8 + 5 - i];
    int e = FIELD(d, NODE_VALID)
                ? mr_gnic_node(t->nic, rank, mac, (uint32_t)FIELD(d, NODE_IP),
                               (uint16_t)FIELD(d, NODE_PORT), (int)FIELD(d, NODE_NETPORT))
                : mr_gnic_node_remove(t->nic, rank);
    return e ? fail(MR_INVALID_ARGUMENT, "node descriptor: rank %u", rank) : MR_OK;
}

static mr_status job(mr_golden_tables *t, const uint8_t *d, fail_fn fail) {
    unsigned row = (unsigned)FIELD(d, JOB_ROW), count = (unsigned)FIELD(d, JOB_COUNT);
    unsigned root = (unsigned)FIELD(d, JOB_ROOT);
    uint16_t number = (uint16_t)FIELD(d, JOB_JOB);
    const uint8_t *ranks = d + MR_NIC_D_JOB_RANKS_LSB / 8;
    if (row >= MR_GNIC_JOBS)
        return fail(MR_INVALID_ARGUMENT, "job descriptor: row %u", row);
    bool valid = FIELD(d, JOB_VALID);
    if (valid && (!count || count > MEMBERS || root >= count))
        return fail(MR_INVALID_ARGUMENT, "job descriptor: %u members, root %u", count, root);
    if (t->job_of_row[row] >= 0 && (!valid || t->job_of_row[row] != number))
        mr_gnic_job_remove(t->nic, (uint16_t)t->job_of_row[row]);
    t->job_of_row[row] = valid ? number : -1;
    if (valid && mr_gnic_job(t->nic, number, ranks, count, ranks[root]))
        return fail(MR_INVALID_ARGUMENT, "job descriptor: job %u", number);
    return MR_OK;
}

static uint32_t bucket(uint64_t key, int table) {
    uint32_t b = 0;
    for (int i = 0; i < MR_NIC_DIR_HASH_BITS; i++)
        b |= (uint32_t)__builtin_parityll(key & mr_nic_dir_masks[table][i]) << i;
    return b;
}

/* Is the key in some slot? An entry that moves is in two of them for a moment. */
static bool held(const mr_golden_tables *t, uint64_t key) {
    for (int table = 0; table < 2; table++)
        for (uint32_t place = 0; place < 2; place++) {
            uint32_t slot =
                (uint32_t)table << (MR_NIC_DIR_HASH_BITS + 1) | bucket(key, table) << 1 | place;
            if (t->used[slot] && t->keys[slot] == key)
                return true;
        }
    return false;
}

static mr_status dir(mr_golden_tables *t, const uint8_t *d, fail_fn fail) {
    uint32_t slot = (uint32_t)FIELD(d, DIR_SLOT);
    bool valid = FIELD(d, DIR_VALID);
    const mr_gnic_entry e = {.job = (uint16_t)FIELD(d, DIR_JOB),
                             .layer = (uint16_t)FIELD(d, DIR_LAYER),
                             .block = (uint32_t)FIELD(d, DIR_BLOCK),
                             .epoch = (uint32_t)FIELD(d, DIR_EPOCH),
                             .bytes = (uint32_t)FIELD(d, DIR_BYTES),
                             .owner = (uint8_t)FIELD(d, DIR_OWNER),
                             .named = (uint32_t)FIELD(d, DIR_NAMED),
                             .page = (uint32_t)FIELD(d, DIR_PAGE)};
    if (slot >= DIR_SLOTS)
        return fail(MR_INVALID_ARGUMENT, "directory descriptor: slot %u", slot);
    uint64_t key = (uint64_t)e.job << 48 | (uint64_t)e.layer << 32 | e.block, old = t->keys[slot];
    bool had = t->used[slot];
    t->used[slot] = valid;
    t->keys[slot] = key;
    if (valid && bucket(key, slot >> (MR_NIC_DIR_HASH_BITS + 1)) !=
                     (slot >> 1 & ((1u << MR_NIC_DIR_HASH_BITS) - 1)))
        return fail(MR_INVALID_ARGUMENT, "directory descriptor: slot %u is not one of the key's",
                    slot);
    if (had && (!valid || old != key) && !held(t, old))
        mr_gnic_kv_remove(t->nic, (uint16_t)(old >> 48), (uint16_t)(old >> 32), (uint32_t)old);
    if (FIELD(d, DIR_CLEAR) && mr_gnic_kv_clear(t->nic, e.page, ((size_t)e.bytes + 4095) / 4096))
        return fail(MR_INVALID_ARGUMENT, "directory descriptor: page %u, %u bytes", e.page,
                    e.bytes);
    if (valid && mr_gnic_kv(t->nic, &e))
        return fail(MR_INVALID_ARGUMENT, "directory descriptor: job %u, layer %u, block %u", e.job,
                    e.layer, e.block);
    return MR_OK;
}

static mr_status valid(mr_golden_tables *t, const uint8_t *d, fail_fn fail) {
    size_t page = FIELD(d, VALID_PAGE), count = FIELD(d, VALID_COUNT);
    return mr_gnic_kv_clear(t->nic, page, count)
               ? fail(MR_INVALID_ARGUMENT, "valid descriptor: %zu pages from %zu", count, page)
               : MR_OK;
}

static mr_status options(mr_golden_tables *t, const uint8_t *d, fail_fn fail) {
    unsigned rank = (unsigned)FIELD(d, OPTIONS_RANK);
    if (mr_gnic_set_rank(t->nic, rank))
        return fail(MR_INVALID_ARGUMENT, "options descriptor: rank %u", rank);
    mr_gnic_set_chain(t->nic, FIELD(d, OPTIONS_CHAIN));
    mr_gnic_set_timers(t->nic, FIELD(d, OPTIONS_RTO), FIELD(d, OPTIONS_SLOT_TIMEOUT));
    return MR_OK;
}

mr_status mr_golden_command(mr_golden_tables *t, const uint8_t desc[MR_NIC_DESC_BYTES],
                            mr_status (*fail)(mr_status status, const char *format, ...)) {
    switch (desc[0]) {
    case MR_NIC_DESC_NODE:
        return node(t, desc, fail);
    case MR_NIC_DESC_JOB:
        return job(t, desc, fail);
    case MR_NIC_DESC_DIR:
        return dir(t, desc, fail);
    case MR_NIC_DESC_VALID:
        return valid(t, desc, fail);
    case MR_NIC_DESC_OPTIONS:
        return options(t, desc, fail);
    default:
        return fail(MR_INVALID_ARGUMENT, "descriptor of unknown type %u", desc[0]);
    }
}
