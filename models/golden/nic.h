/*
 * nic.h - the compute-NIC, frame in -> frames out, byte for byte what the RTL sends.
 *
 * One frame is dealt with completely before the next. Where the RTL has time (timers), the model
 * has mr_gnic_tick(). Limits are those of the RTL: 64 slots, 512 parked contributions, 32 jobs.
 */
#ifndef MODELS_GOLDEN_NIC_H
#define MODELS_GOLDEN_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_GNIC_SLOTS 64
#define MR_GNIC_PARKED 512
#define MR_GNIC_JOBS 32
#define MR_GNIC_NODES 256
#define MR_GNIC_COMPLETED 4096
#define MR_GNIC_TRIES 16
#define MR_GNIC_BUFFER 9216 /* bytes of a frame buffer */

enum { MR_GNIC_NET0 = 0, MR_GNIC_NET1 = 1, MR_GNIC_HOST = 2 };

typedef struct mr_gnic mr_gnic;

/* What the NIC gives out. Pointers are valid during the call. */
typedef struct mr_gnic_outputs {
    void *context;
    void (*send)(void *context, int port, const uint8_t *frame, size_t bytes);
    void (*deliver)(void *context, const uint8_t *frame, size_t bytes); /* to the own host */
    void (*event)(void *context, const uint8_t event[64]);
} mr_gnic_outputs;

/* kv_pages: pages of 4,096 bytes of KV memory. NULL when out of memory. */
mr_gnic *mr_gnic_create(const mr_gnic_outputs *outputs, size_t kv_pages);
void mr_gnic_destroy(mr_gnic *nic);

/* ---- tables; every call returns 0, or -1 where an argument is out of range or a table is full --
 */
int mr_gnic_set_rank(mr_gnic *nic, unsigned rank);
void mr_gnic_set_chain(mr_gnic *nic, bool chain);
/* In cycles; 0 switches a timer off, which is how both begin. */
void mr_gnic_set_timers(mr_gnic *nic, uint64_t rto, uint64_t slot_timeout);
/* ip in host order; netport: the network port that leads to it, 0 or 1. */
int mr_gnic_node(mr_gnic *nic, unsigned rank, const uint8_t mac[6], uint32_t ip, uint16_t udp_port,
                 int netport);
int mr_gnic_node_remove(mr_gnic *nic, unsigned rank);
/* Writes or replaces the row of a job; members in any order, count 1..32, root among them. */
int mr_gnic_job(mr_gnic *nic, uint16_t job, const uint8_t *members, unsigned count, unsigned root);
int mr_gnic_job_remove(mr_gnic *nic, uint16_t job);

typedef struct mr_gnic_entry {
    uint16_t job, layer;
    uint32_t block;
    uint32_t epoch, bytes;
    uint8_t owner;  /* member index in the job */
    uint32_t named; /* member indexes of owner and replicas */
    uint32_t page;  /* first page here; only where this node is named */
} mr_gnic_entry;

/* Writes or replaces a directory entry. Does not touch the pages' valid bits. */
int mr_gnic_kv(mr_gnic *nic, const mr_gnic_entry *entry);
int mr_gnic_kv_remove(mr_gnic *nic, uint16_t job, uint16_t layer, uint32_t block);
/* Marks pages as not written. */
int mr_gnic_kv_clear(mr_gnic *nic, size_t page, size_t pages);
uint8_t *mr_gnic_kv_memory(mr_gnic *nic, size_t *bytes);
/* Member index of a rank, -1 when it is none or the job is unknown. */
int mr_gnic_member(const mr_gnic *nic, uint16_t job, unsigned rank);

/* ---- work --------------------------------------------------------------------------------------
 */
void mr_gnic_rx(mr_gnic *nic, int source, const uint8_t *frame, size_t bytes);
/* Lets the timers see the time, in cycles; time never goes back. */
void mr_gnic_tick(mr_gnic *nic, uint64_t now);
/* MR_NIC_COUNTERS of them, by MR_NIC_CNT_*. */
const uint64_t *mr_gnic_counters(const mr_gnic *nic);
/* Slots that are not free, and contributions that wait for their turn. */
unsigned mr_gnic_slots_used(const mr_gnic *nic);
unsigned mr_gnic_parked(const mr_gnic *nic);

#ifdef __cplusplus
}
#endif
#endif
