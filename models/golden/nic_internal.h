/* Between the files of the golden NIC. */
#ifndef MODELS_GOLDEN_NIC_INTERNAL_H
#define MODELS_GOLDEN_NIC_INTERNAL_H

#include <millrace/nic_frame.h>

#include "models/golden/nic.h"
#include "models/golden/nic_merge.h"

typedef struct node_row {
    bool valid;
    uint8_t mac[6];
    uint32_t ip;
    uint16_t udp_port;
    int netport;
} node_row;

typedef struct job_row {
    bool valid;
    uint16_t job;
    unsigned count, root;            /* root: member index */
    uint8_t rank[MR_NIC_MAX_SHARDS]; /* ascending */
    int self;                        /* own member index, -1 when none */
    bool started;                    /* some contribution was taken: newest means something */
    uint32_t newest;
} job_row;

typedef struct slot_key {
    uint16_t job, layer, head0;
    uint32_t request, block;
} slot_key;

typedef enum { SLOT_FREE, SLOT_FILLING, SLOT_DONE } slot_state;

typedef struct slot {
    slot_state state;
    slot_key key;
    mr_nic_header first; /* what the others are compared with; epoch of the lowest shard */
    unsigned lowest;     /* member index the epoch is from */
    uint32_t in, folded; /* member bitmaps */
    bool reliable, everyone;
    struct {
        uint8_t *payload;
        bool natural;
    } parked[MR_NIC_MAX_SHARDS];
    mr_nic_acc acc;
    /* DONE */
    mr_nic_header result;
    uint8_t *payload;
    size_t payload_bytes;
    uint32_t silent; /* members still to acknowledge */
    unsigned tries;
    uint64_t since; /* FILLING: first contribution; DONE: last try */
} slot;

struct mr_gnic {
    mr_gnic_outputs out;
    int rank; /* -1: not set */
    bool chain;
    uint64_t rto, slot_timeout, now;
    node_row nodes[MR_GNIC_NODES];
    job_row jobs[MR_GNIC_JOBS];
    slot slots[MR_GNIC_SLOTS];
    unsigned parked;
    slot_key completed[MR_GNIC_COMPLETED];
    size_t completed_next, completed_count;
    mr_gnic_entry *entries; /* open addressing, capacity a power of two; bytes == 0: free */
    size_t entries_capacity, entries_count;
    uint8_t *kv, *page_valid;
    size_t pages;
    uint64_t counters[MR_NIC_COUNTERS];
};

/* A frame that passed the parser. */
typedef struct parsed {
    int source;
    const uint8_t *frame;
    size_t bytes;
    mr_nic_header header;
    const uint8_t *header_bytes;
    const uint8_t *payload; /* behind the Millrace header */
    size_t payload_bytes;
    bool too_big; /* for a frame buffer: whatever needs its bytes is an overrun */
} parsed;

/* nic_parse.c: the fates up to and including the second `truncated`; FATE_NONE when none applies.
 */
unsigned gnic_parse(const mr_gnic *nic, const uint8_t *frame, size_t bytes, parsed *out);

/* nic_build.c */
void gnic_send_raw(mr_gnic *nic, int port, const uint8_t *frame, size_t bytes);
/* Builds and sends one frame to a rank, the own host when it is the own one; false: no such node.
 */
bool gnic_send(mr_gnic *nic, unsigned rank, const mr_nic_header *header, const uint8_t *payload,
               size_t payload_bytes);
/* To each member of the bitmap, ascending. */
void gnic_send_members(mr_gnic *nic, const job_row *job, uint32_t members,
                       const mr_nic_header *header, const uint8_t *payload, size_t payload_bytes);
void gnic_ack(mr_gnic *nic, const mr_nic_header *header);
void gnic_nack(mr_gnic *nic, const mr_nic_header *header, uint32_t reason, uint32_t epoch);
void gnic_event(mr_gnic *nic, unsigned type, unsigned opcode, const slot_key *key, uint32_t ranks,
                const mr_nic_header *header, const uint8_t payload[8]);

/* nic_kv.c */
unsigned gnic_kv_frame(mr_gnic *nic, const job_row *job, const parsed *p);

/* nic_slot.c */
unsigned gnic_contribute(mr_gnic *nic, job_row *job, unsigned member, const parsed *p);
bool gnic_acknowledged(mr_gnic *nic, const job_row *job, unsigned member,
                       const mr_nic_header *header);
void gnic_slot_free(mr_gnic *nic, slot *s);

/* nic.c */
job_row *gnic_job_row(mr_gnic *nic, uint16_t job);
int gnic_member_of(const job_row *job, unsigned rank);

#endif
