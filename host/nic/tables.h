/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a NIC: descriptors (docs/nic-descriptors.md), and the host's copy of its directory.
 *
 * A descriptor takes effect between two frames. The functions below only write the bytes; a NIC
 * executes them in the order in which they were made.
 */
#ifndef HOST_NIC_TABLES_H
#define HOST_NIC_TABLES_H

#include <millrace/millrace.h>
#include <millrace/nic_desc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t mr_nic_desc[MR_NIC_DESC_BYTES];

/* ---- Nodes, jobs, pages, options --------------------------------------------------------------
 */

typedef struct mr_nic_node_desc {
    uint8_t rank;
    uint8_t mac[6];  /* in the order of the wire */
    uint32_t ip;     /* 10.0.0.1 is 0x0A000001 */
    uint16_t port;   /* UDP */
    uint8_t netport; /* network port behind which the rank lies, 0 or 1 */
} mr_nic_node_desc;

typedef struct mr_nic_job_desc {
    uint8_t row; /* 0..31 */
    uint16_t job;
    uint8_t count;     /* members, 1..32 */
    uint8_t ranks[32]; /* ascending */
    uint8_t root;      /* member index */
    uint32_t port1;    /* bit k: member k lies behind network port 1 */
} mr_nic_job_desc;

typedef struct mr_nic_options_desc {
    uint8_t rank;
    bool chain;
    uint32_t rto, slot_timeout; /* cycles, 0: never */
    uint64_t kv_base;           /* a multiple of 4,096 */
} mr_nic_options_desc;

void mr_nic_desc_node(mr_nic_desc out, const mr_nic_node_desc *node);
void mr_nic_desc_node_remove(mr_nic_desc out, uint8_t rank);
void mr_nic_desc_job(mr_nic_desc out, const mr_nic_job_desc *job);
void mr_nic_desc_job_remove(mr_nic_desc out, uint8_t row);
void mr_nic_desc_options(mr_nic_desc out, const mr_nic_options_desc *options);
/* Marks `count` pages from `page` on as not written. */
void mr_nic_desc_valid_clear(mr_nic_desc out, uint32_t page, uint32_t count);

/* ---- Directory ----------------------------------------------------------------------------------
 */

typedef struct mr_nic_dir_entry {
    uint16_t job, layer; /* the key is {job, layer, block} */
    uint32_t block;
    uint8_t owner;  /* member index, 0..31 */
    uint32_t named; /* bit k: member k is owner or replica; has the owner's bit */
    uint32_t epoch;
    uint32_t bytes;
    uint32_t
        page; /* first page of the block in this NIC's KV memory, 24 bits; 0 where it has none */
} mr_nic_dir_entry;

/*
 * The host's copy of the directory of one NIC: it knows which place each entry has. Entries are
 * placed by cuckoo hashing, two tables of buckets of two places. An entry that has to make way is
 * written to its new place before the old one is given away, so that between any two descriptors
 * every look-up finds every entry that was there, with its own values.
 */
typedef struct mr_nic_dir mr_nic_dir;

/* Most descriptors that one call makes. */
enum { MR_NIC_DIR_STEPS = 16 };

/* An empty directory of 2^(bucket_bits + 2) places, as a NIC has it after reset; bucket_bits
 * (1..17) is in the NIC's register PARAMS. NULL: out of memory or no such size. */
mr_nic_dir *mr_nic_dir_create(unsigned bucket_bits);
void mr_nic_dir_destroy(mr_nic_dir *dir); /* NULL is allowed */

size_t mr_nic_dir_count(const mr_nic_dir *dir);
size_t mr_nic_dir_places(const mr_nic_dir *dir);

/* The entry of a key; NULL when there is none. Valid until the next change. */
const mr_nic_dir_entry *mr_nic_dir_find(const mr_nic_dir *dir, uint16_t job, uint16_t layer,
                                        uint32_t block);

/*
 * Adds an entry, or changes the one with its key, in the copy, and writes the descriptors that do
 * the same in the NIC, in order: steps[0] to steps[*count - 1]. `clear`: in the step that makes the
 * entry valid, all pages of its block are marked as not written (a block's new epoch).
 * MR_INVALID_ARGUMENT names the field; MR_LIMIT: no place can be made, nothing has changed. That
 * does not happen to usual keys below 80 % of the places.
 */
mr_status mr_nic_dir_put(mr_nic_dir *dir, const mr_nic_dir_entry *entry, bool clear,
                         mr_nic_desc steps[MR_NIC_DIR_STEPS], size_t *count);

/* Takes an entry out; one descriptor. MR_NOT_FOUND: there is none. */
mr_status mr_nic_dir_remove(mr_nic_dir *dir, uint16_t job, uint16_t layer, uint32_t block,
                            mr_nic_desc step);

#ifdef __cplusplus
}
#endif
#endif
