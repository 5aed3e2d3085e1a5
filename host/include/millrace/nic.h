/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic.h - the host interface of the compute-NIC: collectives, queries that travel to stationary KV
 * shards, and KV blocks that live in the memory of NICs.
 *
 * An mr_nic is a cluster: one or more NICs behind one link, and the host runtime of each. Ranks are
 * numbered from 0. A job is a set of ranks that work together; every member makes the same calls
 * on it in the same order, as in MPI, and the runtime numbers them.
 *
 *     mr_nic *nic;  mr_nic_op *op[2];
 *     mr_nic_open("sim:nic?nodes=2&loss=0.01", &nic);
 *     mr_nic_job_create(nic, 1, (uint8_t[]){0, 1}, 2, 0, 0);
 *     for (uint8_t r = 0; r < 2; r++) {
 *         mr_nic_call c = mr_nic_call_init(MR_NIC_ALLREDUCE, 1);
 *         c.dtype = MR_NIC_DT_FP32, c.count = 1000, c.send = x[r], c.recv = y[r];
 *         mr_nic_start(nic, r, &c, &op[r]);
 *     }
 *     for (int r = 0; r < 2; r++)
 *         if (mr_nic_wait(op[r]) != MR_OK)
 *             fprintf(stderr, "%s\n", mr_last_error());  // "... no answer from rank 1"
 *
 * Conventions are those of millrace.h: statuses, handles, mr_last_error(), threads. Calls on one
 * cluster take turns. Time is counted in cycles of the NIC's clock (4 ns at 250 MHz), which for a
 * simulated cluster pass only inside mr_nic_wait(), mr_nic_advance() and the calls that say so;
 * with the same options and the same calls every run is the same, cycle by cycle.
 *
 * What is lost is sent again: frames made by a host by this runtime (a first wait of RTO cycles,
 * doubled a try up to sixteenfold, 16 tries), results by the NIC that made them. What does not
 * come in spite of that ends the call with MR_TIMEOUT and the ranks that were silent.
 */
#ifndef MILLRACE_NIC_H
#define MILLRACE_NIC_H

#include <millrace/millrace.h>
#include <millrace/nic_frame.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_nic mr_nic;
typedef struct mr_nic_op mr_nic_op;

/* ---- Clusters ------------------------------------------------------------------------------- */

/*
 * Opens a cluster; the text is that of host/nic/port.h:
 *
 *   sim:nic?nodes=N&...   N Verilated NICs (1..16) on a switch, in this process
 *   golden?nodes=N&...    the bit-true C model of the same (1..64): fast
 *
 * with loss=P dup=P reorder=P corrupt=P stall=P seed=N latency=CYCLES bandwidth=BYTES memory=MIB.
 * MR_INVALID_ARGUMENT names the option at fault; MR_UNAVAILABLE says why there is no simulator.
 * Every NIC gets its row of the node table, the rows of all others, and the default timers.
 */
mr_status mr_nic_open(const char *uri, mr_nic **nic);

/* Calls still in progress end with MR_CANCELLED; their handles stay until they are destroyed. */
mr_status mr_nic_close(mr_nic *nic);

typedef struct mr_nic_info {
    uint32_t nodes;
    uint64_t cycles;    /* now, since the cluster was opened */
    uint64_t kv_bytes;  /* KV memory of one NIC */
    uint64_t resent;    /* frames that host runtimes sent again */
    uint64_t discarded; /* repeats of what a host had already */
    uint64_t refused;   /* NACKs that came back */
} mr_nic_info;

mr_status mr_nic_get_info(mr_nic *nic, mr_nic_info *info);

/* A NIC's counter by its name in docs/nic-frame.md ("tx_frames"). MR_NOT_FOUND: no such counter. */
mr_status mr_nic_counter(mr_nic *nic, uint8_t rank, const char *name, uint64_t *value);
/* The same, summed over the cluster. */
mr_status mr_nic_total(mr_nic *nic, const char *name, uint64_t *value);

/*
 * rto: the first wait before a frame is sent again, 64..2^24 cycles (8,192 at first). slot_timeout:
 * how long a NIC waits for the contributions to one operation after the first of them, cycles,
 * 0: for ever (4,194,304 at first: longer than all tries of one frame). Applies to what is sent
 * from now on.
 */
mr_status mr_nic_set_timers(mr_nic *nic, uint32_t rto, uint32_t slot_timeout);

/* Lets `cycles` pass (on a board: handles what has come), with every host runtime at work. */
mr_status mr_nic_advance(mr_nic *nic, uint64_t cycles);

/* ---- Jobs ----------------------------------------------------------------------------------- */

/*
 * Makes a job of `count` members (1..256, in any order, no rank twice) with the root among them.
 * Up to `fan` members (2..32, 0 means 32) share one slot of a NIC. More are cut, in the order
 * given, into groups of `fan` (at most 32 groups); a group is a job of its own whose first member
 * (in the root's group: the root) leads it, and the leaders are one more job: the job ids id + 1,
 * id + 2, ... are used for those and must be free, and a NIC has rows for 32 jobs that its rank
 * is in or hears of.
 * MR_INVALID_ARGUMENT: a rank twice or not in the cluster, a root that is no member, ids in use.
 * MR_LIMIT: no rows left.
 */
mr_status mr_nic_job_create(mr_nic *nic, uint16_t id, const uint8_t *members, size_t count,
                            uint8_t root, size_t fan);

/* Ends what is in progress with MR_CANCELLED and takes the job out of all tables. Its KV blocks
 * are removed. A job of the same id made later goes on numbering where this one stopped. */
mr_status mr_nic_job_destroy(mr_nic *nic, uint16_t id);

/* ---- Calls ---------------------------------------------------------------------------------- */

typedef enum mr_nic_kind {
    MR_NIC_BARRIER,   /* ends when every member has called it */
    MR_NIC_BROADCAST, /* rank `from` sends count elements; every member gets them in recv */
    MR_NIC_REDUCE,    /* element by element over all members; the root gets the result in recv */
    MR_NIC_ALLREDUCE, /* the same, and every member gets it */
    MR_NIC_ALLGATHER, /* recv[members][count], in ascending order of rank */
    MR_NIC_QUERY,     /* the root's send[heads][dim] goes to every member's recv */
    MR_NIC_MERGE,     /* partial attention results of all members become one, at the root */
    MR_NIC_KV_WRITE,  /* bytes of a KV block into the memories of the nodes that hold it */
    MR_NIC_KV_READ    /* bytes of a KV block from whoever holds it */
} mr_nic_kind;

/*
 * What one rank asks for. Start from mr_nic_call_init(). Buffers must stay until the call has
 * ended; send and recv may be the same buffer. Elements are in host byte order, 2 bytes (bf16,
 * fp16) or 4 (fp32, int32).
 *
 * Arithmetic (docs/nic-arithmetic.md): contributions are taken in ascending order of rank whatever
 * the order of arrival, floating point in fp32, results rounded once to the dtype, NaN canonical;
 * int32 wraps. With more than `fan` members floating-point elements travel as fp32, groups are
 * taken first, and the last result is rounded to the dtype.
 *
 * MERGE: member i brings m[heads] (largest logit), d[heads] (sum of b^(logit - m)) and
 * send[heads][dim] (sum of b^(logit - m) v), with b = 2, or e with `natural`. The root gets
 * lse[heads] (log2 of the sum over all keys of 2^logit) and recv[heads][dim], the attention
 * output. m = +-Inf or d = 0 is an empty part: no keys. All empty gives lse = -Inf and zeros.
 * fp16 parts should be (lse, 1, o / d), since d overflows. A head must fit a frame:
 * 64 + dim * size <= 8,968 bytes.
 *
 * A QUERY and the MERGE that follows it on the same job share one request number; members need not
 * have posted the QUERY when it arrives.
 *
 * KV_WRITE and KV_READ act on a block placed by mr_nic_kv_place(); `job`, `layer` and `block` name
 * it; offset is a multiple of 4,096, and so is a write's length unless it ends the block. Any
 * member may make them, at any time; they are not numbered with the others. A block's bytes are
 * written once an epoch.
 */
typedef struct mr_nic_call {
    mr_nic_kind kind;
    uint16_t job;
    uint8_t dtype; /* MR_NIC_DT_*; int32 not for QUERY and MERGE */
    uint8_t rop;   /* MR_NIC_ROP_*: REDUCE, ALLREDUCE */
    uint8_t from;  /* BROADCAST */
    bool natural;  /* MERGE: m and d are to base e */
    bool everyone; /* MERGE: every member gets the result */
    size_t count;  /* elements each member brings, >= 1 */
    const void *send;
    void *recv;
    uint16_t layer;
    size_t heads, dim; /* QUERY, MERGE: 1..65535 each */
    const float *m, *d;
    float *lse; /* where a result is due */
    uint32_t block;
    size_t offset, bytes; /* KV_* */
    uint64_t timeout;     /* cycles until the call gives up; 0: 16,777,216 */
} mr_nic_call;

static inline mr_nic_call mr_nic_call_init(mr_nic_kind kind, uint16_t job) {
    mr_nic_call c;
    memset(&c, 0, sizeof c);
    c.kind = kind;
    c.job = job;
    c.dtype = MR_NIC_DT_FP32;
    return c;
}

/*
 * Starts a call at a rank of the job. Checked at once (MR_INVALID_ARGUMENT names the field); the
 * rest is told by mr_nic_wait(). No time passes. Calls of one rank on one job are worked on in the
 * order in which they were started, any number may be under way.
 */
mr_status mr_nic_start(mr_nic *nic, uint8_t rank, const mr_nic_call *call, mr_nic_op **op);

/*
 * Lets time pass until the call has ended and returns how: MR_OK; MR_TIMEOUT (members or nodes did
 * not answer: mr_nic_missing()); MR_DEVICE_ERROR (members disagree about the operation);
 * MR_NOT_FOUND (nobody holds those bytes of the KV block); MR_CANCELLED; MR_DEVICE_LOST. After a
 * failure recv is undefined, and a job whose numbered calls failed is of no more use: every later
 * one at that rank ends with MR_CANCELLED until the job is made again.
 */
mr_status mr_nic_wait(mr_nic_op *op);

/* Like mr_nic_wait() without letting time pass: MR_PENDING while the call has not ended. */
mr_status mr_nic_op_status(mr_nic_op *op);

/* The ranks whose silence ended the call, ascending; *count of them, 0 when it was not silence. */
mr_status mr_nic_missing(mr_nic_op *op, uint8_t ranks[256], size_t *count);

/* Gives the handle back. A call that has not ended is given up: the job is of no more use at this
 * rank, as after a failure. */
mr_status mr_nic_op_destroy(mr_nic_op *op);

/* Starts one call at each of n ranks, waits for all of them and destroys them. The first failure
 * in order of the list is returned. */
mr_status mr_nic_run(mr_nic *nic, const uint8_t *ranks, const mr_nic_call *calls, size_t n);

/* ---- KV blocks ------------------------------------------------------------------------------ */

typedef struct mr_nic_place {
    uint16_t job, layer;
    uint32_t block;
    uint32_t bytes; /* 1 .. 2^32 - 4096 */
    uint32_t epoch; /* set by the directory: 1 at first, one more at each move */
    uint8_t owner;  /* a member, as are the replicas */
    uint8_t count;  /* replicas */
    uint8_t replicas[31];
} mr_nic_place;

/*
 * The directory of KV blocks: one copy in this runtime, one in each NIC. These calls let time pass
 * where frames have to be on their way; between two of them all NICs agree.
 *
 * mr_nic_kv_place() takes pages of the nodes named and tells every NIC; nothing is written yet.
 * MR_OUT_OF_MEMORY names the node without room; MR_LIMIT: the NICs' directory is full.
 *
 * mr_nic_kv_move() makes other nodes the holders: the new ones learn of it first, then get the
 * bytes (those written so far, read from the old holder), then everybody else learns, the old
 * holders last. Readers meanwhile get the bytes from old or new holders, never others. The epoch
 * grows by one.
 *
 * mr_nic_kv_replicate() and mr_nic_kv_drop() add and take one replica within the epoch.
 * mr_nic_kv_remove() forgets the block.
 */
mr_status mr_nic_kv_place(mr_nic *nic, const mr_nic_place *place);
mr_status mr_nic_kv_find(mr_nic *nic, uint16_t job, uint16_t layer, uint32_t block,
                         mr_nic_place *place);
mr_status mr_nic_kv_move(mr_nic *nic, uint16_t job, uint16_t layer, uint32_t block, uint8_t owner,
                         const uint8_t *replicas, size_t count);
mr_status mr_nic_kv_replicate(mr_nic *nic, uint16_t job, uint16_t layer, uint32_t block,
                              uint8_t rank);
mr_status mr_nic_kv_drop(mr_nic *nic, uint16_t job, uint16_t layer, uint32_t block, uint8_t rank);
mr_status mr_nic_kv_remove(mr_nic *nic, uint16_t job, uint16_t layer, uint32_t block);

/* What the compute beside NIC `rank` sees of a block that this NIC holds: bytes of its memory,
 * without a frame. MR_NOT_FOUND: not held there. */
mr_status mr_nic_kv_peek(mr_nic *nic, uint8_t rank, uint16_t job, uint16_t layer, uint32_t block,
                         size_t offset, void *data, size_t bytes);

/* Free bytes of KV memory at a rank. */
mr_status mr_nic_kv_free(mr_nic *nic, uint8_t rank, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
