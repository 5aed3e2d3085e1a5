/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the NIC's host runtime share.
 *
 * One process holds the runtimes of all ranks of a cluster, but a rank acts only on what reached
 * it: its calls, the frames and events of its own NIC, and the directory, which stands for the
 * agreement that hosts reach out of band.
 *
 *   calls.c   a call becomes one to three transfers, each on one job of at most 32 members
 *   xfer.c    a transfer: its parts, the frames that carry them, what comes back
 *   engine.c  windows, timers, acknowledgements, failures
 *   cluster.c opening, tables, jobs
 *   dir.c     the directory of KV blocks
 */
#ifndef HOST_NIC_INTERNAL_H
#define HOST_NIC_INTERNAL_H

#include <millrace/nic.h>

#include "host/core/internal.h"
#include "host/nic/frame.h"
#include "host/nic/port.h"
#include "host/nic/repeats.h"

enum {
    NIC_TRIES = 16,   /* resends of one frame before its receiver counts as silent */
    NIC_EPOCH = 32,   /* request numbers between two barriers of the runtime's own */
    NIC_SLOTS = 64,   /* of a NIC */
    NIC_PIECE = 4096, /* bytes of a KV frame */
    NIC_PART = 8960   /* bytes of a vector in one frame: whole beats of 64 bytes */
};

typedef struct nic_cluster nic_cluster;
typedef struct nic_job nic_job;
typedef struct nic_op nic_op;
typedef struct nic_xfer nic_xfer;
typedef struct nic_dir nic_dir;

/* A set of ranks, for the silent ones. */
typedef struct nic_ranks {
    uint32_t bits[8];
} nic_ranks;

/* ---- transfers --------------------------------------------------------------------------------
 */

typedef enum {
    X_BARRIER,
    X_REDUCE,
    X_BROADCAST,
    X_GATHER,
    X_QUERY,
    X_MERGE,
    X_KV_WRITE,
    X_KV_READ
} nic_xkind;

typedef struct nic_part {
    uint32_t wait; /* members whose ACK is awaited */
    uint64_t due;  /* when it is sent (again) */
    uint8_t tries, refusals;
    bool sent, settled;
} nic_part;

struct nic_xfer {
    nic_xfer *next; /* in its seat's queue, or in its rank's list of KV transfers */
    nic_op *op;     /* NULL: a barrier of the runtime's own */
    nic_job *job;
    unsigned self; /* member index */
    uint32_t request;
    nic_xkind kind;
    bool everyone, natural;
    uint8_t dtype, rop;
    unsigned from; /* BROADCAST: member index */
    uint16_t layer;
    uint32_t block, epoch;
    uint32_t targets; /* KV_WRITE: members to send to, one by one; 0: by the directory */
    size_t count, heads, dim, offset; /* count: elements, or bytes of a KV block */
    const void *send;
    void *recv;
    const float *m, *d;
    float *lse;
    const nic_xfer *after; /* not before that one has ended */
    bool active, done;

    size_t per;   /* elements, heads or bytes of a part */
    size_t parts; /* of the vector */
    size_t sends, low;
    nic_part *part; /* [sends] */
    size_t due_in, have;
    uint8_t *got; /* [due_in] */
    size_t first; /* GATHER: number of the first part that is not here */
    size_t asked; /* KV_READ: pieces up to here are asked for */
};

/* One member's place in a job. */
typedef struct nic_early nic_early;
typedef struct nic_seat {
    uint32_t next;                 /* request number of the next transfer */
    bool query_open;               /* the last one was a QUERY: a MERGE shares its number */
    nic_xfer *queue;               /* in order of number */
    nic_early *early, **early_end; /* frames of transfers that did not begin */
    uint32_t newest;               /* largest request delivered; valid when `heard` */
    bool heard;
    bool failed;
    char message[256];    /* why */
    uint64_t verdict_due; /* when `verdict` counts; 0: there is none */
    nic_ranks verdict;
} nic_seat;

struct nic_early {
    nic_early *next;
    size_t bytes;
    uint8_t frame[];
};

/* At most 32 members, one row in the NICs' job tables. */
struct nic_job {
    uint16_t id;
    struct nic_comm *comm;
    unsigned row;                     /* in the NICs' tables */
    unsigned count, root;             /* root: member index */
    uint8_t rank[MR_NIC_MAX_MEMBERS]; /* ascending */
    uint32_t base;                    /* first request number */
    nic_seat seat[MR_NIC_MAX_MEMBERS];
};

/* What a user calls a job: one nic_job, or groups of members and their leaders. */
typedef struct nic_comm {
    struct nic_comm *next;
    uint16_t id;
    size_t count, fan, groups;
    uint8_t rank[256]; /* ascending */
    uint8_t root;
    uint8_t group_of[256]; /* by rank */
    nic_job *group[MR_NIC_MAX_MEMBERS];
    nic_job *leaders; /* NULL with one group */
    uint8_t leader[MR_NIC_MAX_MEMBERS];
} nic_comm;

struct nic_op {
    mr_obj obj;
    nic_cluster *nic;
    nic_op *next; /* of those that have not ended */
    nic_comm *comm;
    mr_nic_call call;
    uint8_t rank;
    mr_status status;
    char *message;
    nic_ranks missing;
    uint64_t deadline;
    nic_xfer *xfer[3];
    size_t xfers;
    void *temp[3];
    void (*finish)(nic_op *op);
};

typedef struct nic_rank {
    mr_nic_repeats *repeats;
    nic_xfer *kv;      /* KV transfers under way, oldest first */
    uint32_t kv_next;  /* their numbers */
    uint64_t clear_at; /* when its port will have carried what was broadcast */
} nic_rank;

struct nic_cluster {
    mr_obj obj;
    pthread_mutex_t lock;
    mr_nic_link *link;
    bool closed;
    mr_status lost; /* MR_OK, or why the link is of no more use */
    unsigned nodes;
    uint32_t rto, slot_timeout;
    mr_nic_node_row row[MR_NIC_MAX_NODES];
    nic_rank *rank;
    nic_comm *comms;
    nic_job *job[MR_NIC_MAX_JOBS * 8];
    size_t jobs;
    uint32_t *base_of; /* [65536] first request number of a job made next */
    nic_op *ops;
    nic_dir *dir;
    uint64_t resent, discarded, refused;
    uint64_t moved; /* frames and events in and out so far */
    uint8_t frame[MR_NIC_FRAME_MAX], heard[MR_NIC_FRAME_MAX]; /* out, in */
};

/* cluster.c */
nic_job *nic_job_find(nic_cluster *nic, uint16_t id);
nic_comm *nic_comm_find(nic_cluster *nic, uint16_t id);
int nic_member(const nic_job *job, unsigned rank);
static inline uint64_t nic_now(const nic_cluster *nic) { return nic->link->ops->cycles(nic->link); }
/* The cluster behind a handle, locked; NULL with the message set. */
nic_cluster *nic_enter(mr_nic *handle);
void nic_leave(nic_cluster *nic);

/* xfer.c */
/* Works out parts and what is due; allocates. MR_INVALID_ARGUMENT or MR_OUT_OF_MEMORY. */
mr_status nic_xfer_prepare(nic_xfer *x);
void nic_xfer_free(nic_xfer *x);
/* The opcode of the frames that carry its parts. */
unsigned nic_xfer_opcode(const nic_xfer *x);
/* Builds part p into `frame` for rank `to`; returns the frame's length. */
size_t nic_xfer_frame(const nic_cluster *nic, nic_xfer *x, size_t p, bool again, unsigned to,
                      uint8_t *frame);
/* The part that an answer is about; SIZE_MAX when it is about none of them. */
size_t nic_xfer_part(const nic_xfer *x, const mr_nic_header *h);
/* Takes a frame in. False when it does not belong or repeats something. */
bool nic_xfer_take(nic_xfer *x, const mr_nic_frame *f);
/* May the member send part p of a GATHER now? */
bool nic_xfer_turn(nic_xfer *x, size_t p);
void nic_xfer_settle(nic_xfer *x, size_t p);
bool nic_xfer_complete(const nic_xfer *x);
/* KV_READ: everything asked for so far is here. */
bool nic_xfer_span_done(const nic_xfer *x);
/* Members that x still waits for, as far as its rank knows. */
void nic_xfer_silent(const nic_xfer *x, nic_ranks *out);

/* engine.c */
/* Handles all that has arrived, sends what may be sent; *next is when a timer wants attention. */
mr_status nic_progress(nic_cluster *nic, uint64_t *next);
/* One round: nic_progress(), then, unless that ended `until`, at most `most` cycles. */
mr_status nic_round(nic_cluster *nic, const nic_op *until, uint64_t most);
/* Gives the transfer its number and its place in the queue; on failure nothing has changed. */
mr_status nic_enqueue(nic_cluster *nic, nic_xfer *x);
/* The job is of no more use at `rank`: what is under way there ends with `status`, and the other
 * members are told who is silent. `missing` may be NULL. */
void nic_job_fail(nic_cluster *nic, nic_comm *comm, unsigned rank, mr_status status,
                  const nic_ranks *missing, const char *message);
/* Ends one call; numbered calls take nic_job_fail() instead when they fail. */
void nic_op_end(nic_op *op, mr_status status, const nic_ranks *missing, const char *message);
const char *nic_kind_name(mr_nic_kind kind);

static inline void nic_ranks_add(nic_ranks *s, unsigned rank) {
    s->bits[rank / 32] |= 1u << rank % 32;
}
static inline bool nic_ranks_has(const nic_ranks *s, unsigned rank) {
    return s->bits[rank / 32] >> rank % 32 & 1;
}
static inline bool nic_ranks_empty(const nic_ranks *s) {
    uint32_t any = 0;
    for (int i = 0; i < 8; i++)
        any |= s->bits[i];
    return !any;
}

/* calls.c; with the cluster entered. */
mr_status nic_call_start(nic_cluster *nic, uint8_t rank, const mr_nic_call *call, nic_op **out);
/* Lets time pass until the call has ended, and gives it back. */
mr_status nic_call_finish(nic_cluster *nic, nic_op *op);

/* dir.c */
typedef struct nic_entry {
    struct nic_entry *next;
    mr_nic_place place;
    uint32_t named;    /* member indexes */
    uint32_t page[32]; /* first page, by member index of those named */
    uint8_t *written;  /* a bit a piece */
} nic_entry;

mr_status nic_dir_create(nic_cluster *nic);
void nic_dir_destroy(nic_cluster *nic);
nic_entry *nic_dir_find(const nic_cluster *nic, uint16_t job, uint16_t layer, uint32_t block);
/* Forgets the job's blocks. */
mr_status nic_dir_forget(nic_cluster *nic, uint16_t job);

#endif
