/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call becomes transfers. On a job of one group that is one transfer on the caller's buffers. On
 * a job of groups it is up to three: inside the group, among the leaders, inside the group again;
 * floating-point elements are widened to fp32 first and rounded once at the end.
 */
#include <stdlib.h>

#include "host/nic/internal.h"
#include "host/nic/narrow.h"

enum { TIMEOUT = 1 << 24 };

/* ---- checks -----------------------------------------------------------------------------------
 */

static bool known_dtype(unsigned dtype) { return dtype >= 1 && dtype <= 4; }

static mr_status check_vector(const mr_nic_call *c, const nic_comm *comm, bool sends, bool gets) {
    if (!known_dtype(c->dtype))
        return mr_fail(MR_INVALID_ARGUMENT, "dtype: %u is none", c->dtype);
    if (!c->count || c->count > SIZE_MAX / 8 / comm->count)
        return mr_fail(MR_INVALID_ARGUMENT, "count: %zu elements", c->count);
    if (sends && !c->send)
        return mr_fail(MR_INVALID_ARGUMENT, "send: is NULL");
    if (gets && !c->recv)
        return mr_fail(MR_INVALID_ARGUMENT, "recv: is NULL");
    return MR_OK;
}

static mr_status check_rows(const mr_nic_call *c) {
    if (!known_dtype(c->dtype) || c->dtype == MR_NIC_DT_INT32)
        return mr_fail(MR_INVALID_ARGUMENT, "dtype: %u is no floating-point type", c->dtype);
    if (!c->heads || c->heads > UINT16_MAX)
        return mr_fail(MR_INVALID_ARGUMENT, "heads: %zu, not 1..65535", c->heads);
    if (!c->dim || c->dim > UINT16_MAX)
        return mr_fail(MR_INVALID_ARGUMENT, "dim: %zu, not 1..65535", c->dim);
    return MR_OK;
}

static mr_status check_block(nic_cluster *nic, const mr_nic_call *c, const nic_comm *comm) {
    const nic_entry *e = nic_dir_find(nic, c->job, c->layer, c->block);
    bool write = c->kind == MR_NIC_KV_WRITE;
    if (comm->leaders)
        return mr_fail(MR_UNSUPPORTED, "job: KV blocks need a job of at most %zu members",
                       comm->fan);
    if (!e)
        return mr_fail(MR_NOT_FOUND, "block: job %u, layer %u, block %u is not placed", c->job,
                       c->layer, c->block);
    if (c->offset % NIC_PIECE || c->offset >= e->place.bytes)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "offset: %zu is no multiple of 4096 inside a block of %u bytes", c->offset,
                       e->place.bytes);
    if (!c->bytes || c->bytes > e->place.bytes - c->offset)
        return mr_fail(MR_INVALID_ARGUMENT, "bytes: %zu at offset %zu of a block of %u bytes",
                       c->bytes, c->offset, e->place.bytes);
    if (write && c->bytes % NIC_PIECE && c->offset + c->bytes != e->place.bytes)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "bytes: a write of %zu bytes neither ends the block nor a piece of 4096",
                       c->bytes);
    if (write ? !c->send : !c->recv)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", write ? "send" : "recv");
    return MR_OK;
}

static bool in_comm(const nic_comm *comm, unsigned rank) {
    for (size_t i = 0; i < comm->count; i++)
        if (comm->rank[i] == rank)
            return true;
    return false;
}

static mr_status check(nic_cluster *nic, const nic_comm *comm, unsigned rank,
                       const mr_nic_call *c) {
    bool root = rank == comm->root;
    mr_status e;
    switch (c->kind) {
    case MR_NIC_BARRIER:
        return MR_OK;
    case MR_NIC_BROADCAST:
        if (!in_comm(comm, c->from))
            return mr_fail(MR_INVALID_ARGUMENT, "from: rank %u is not a member of job %u", c->from,
                           c->job);
        return check_vector(c, comm, rank == c->from, true);
    case MR_NIC_REDUCE:
    case MR_NIC_ALLREDUCE:
        if (c->rop > MR_NIC_ROP_MIN)
            return mr_fail(MR_INVALID_ARGUMENT, "rop: %u is no operator", c->rop);
        return check_vector(c, comm, true, root || c->kind == MR_NIC_ALLREDUCE);
    case MR_NIC_ALLGATHER:
        return check_vector(c, comm, true, true);
    case MR_NIC_QUERY:
        e = check_rows(c);
        if (e == MR_OK && (root ? !c->send : !c->recv))
            e = mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", root ? "send" : "recv");
        return e;
    case MR_NIC_MERGE:
        e = check_rows(c);
        if (e == MR_OK && (!c->m || !c->d || !c->send))
            e = mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", !c->m ? "m" : !c->d ? "d" : "send");
        if (e == MR_OK && (root || c->everyone) && (!c->lse || !c->recv))
            e = mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", c->lse ? "recv" : "lse");
        return e;
    case MR_NIC_KV_WRITE:
    case MR_NIC_KV_READ:
        return check_block(nic, c, comm);
    }
    return mr_fail(MR_INVALID_ARGUMENT, "kind: %d is none", (int)c->kind);
}

/* ---- transfers --------------------------------------------------------------------------------
 */

static nic_xfer *add(nic_op *op, nic_job *job, nic_xkind kind) {
    nic_xfer *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    const mr_nic_call *c = &op->call;
    x->op = op;
    x->job = job;
    x->self = (unsigned)nic_member(job, op->rank);
    x->kind = kind;
    x->dtype = c->dtype;
    x->rop = c->rop;
    x->layer = c->layer;
    x->count = c->count;
    x->heads = c->heads;
    x->dim = c->dim;
    x->send = c->send;
    x->recv = c->recv;
    x->m = c->m;
    x->d = c->d;
    x->lse = c->lse;
    x->natural = c->natural;
    x->after = op->xfers ? op->xfer[op->xfers - 1] : NULL;
    op->xfer[op->xfers++] = x;
    return x;
}

static mr_status no_memory(void) { return mr_fail(MR_OUT_OF_MEMORY, "out of memory for the call"); }

static mr_status build_plain(nic_cluster *nic, nic_op *op) {
    static const nic_xkind kinds[] = {
        [MR_NIC_BARRIER] = X_BARRIER,  [MR_NIC_BROADCAST] = X_BROADCAST,
        [MR_NIC_REDUCE] = X_REDUCE,    [MR_NIC_ALLREDUCE] = X_REDUCE,
        [MR_NIC_ALLGATHER] = X_GATHER, [MR_NIC_QUERY] = X_QUERY,
        [MR_NIC_MERGE] = X_MERGE,      [MR_NIC_KV_WRITE] = X_KV_WRITE,
        [MR_NIC_KV_READ] = X_KV_READ,
    };
    const mr_nic_call *c = &op->call;
    nic_job *job = op->comm->group[0];
    nic_xfer *x = add(op, job, kinds[c->kind]);
    if (!x)
        return no_memory();
    x->everyone = c->kind == MR_NIC_ALLREDUCE || (c->kind == MR_NIC_MERGE && c->everyone);
    if (c->kind == MR_NIC_BROADCAST)
        x->from = (unsigned)nic_member(job, c->from);
    if (c->kind == MR_NIC_KV_WRITE || c->kind == MR_NIC_KV_READ) {
        x->dtype = MR_NIC_DT_BF16; /* of no meaning for bytes, but one must stand there */
        x->block = c->block;
        x->offset = c->offset;
        x->count = c->bytes;
        x->epoch = nic_dir_find(nic, c->job, c->layer, c->block)->place.epoch;
    }
    return MR_OK;
}

/* ---- groups -----------------------------------------------------------------------------------
 */

static bool leads(const nic_op *op) {
    return op->comm->leader[op->comm->group_of[op->rank]] == op->rank;
}
static bool is_root(const nic_op *op) { return op->comm->root == op->rank; }
static nic_job *own_group(const nic_op *op) {
    return op->comm->group[op->comm->group_of[op->rank]];
}
static unsigned leader_in(const nic_job *job, const nic_comm *comm, unsigned group) {
    return (unsigned)nic_member(job, comm->leader[group]);
}

static void finish_reduce(nic_op *op) {
    if (op->call.recv && op->temp[1])
        mr_nic_narrow(op->call.recv, op->temp[1], op->call.count, op->call.dtype);
}

static mr_status group_reduce(nic_op *op) {
    const mr_nic_call *c = &op->call;
    bool all = c->kind == MR_NIC_ALLREDUCE, wide = c->dtype != MR_NIC_DT_INT32;
    uint8_t dtype = wide ? MR_NIC_DT_FP32 : MR_NIC_DT_INT32;
    op->temp[0] = malloc(c->count * 4);
    op->temp[1] = malloc(c->count * 4);
    nic_xfer *up = add(op, own_group(op), X_REDUCE);
    nic_xfer *top = leads(op) ? add(op, op->comm->leaders, X_REDUCE) : NULL;
    nic_xfer *down = all ? add(op, own_group(op), X_BROADCAST) : NULL;
    if (!op->temp[0] || !op->temp[1] || !up || (leads(op) && !top) || (all && !down))
        return no_memory();
    mr_nic_widen(op->temp[0], c->send, c->count, c->dtype);
    up->dtype = dtype;
    up->send = op->temp[0];
    up->recv = op->temp[1];
    if (top) {
        top->dtype = dtype;
        top->send = top->recv = op->temp[1];
        top->everyone = all;
    }
    if (down) {
        down->dtype = dtype;
        down->from = leader_in(down->job, op->comm, op->comm->group_of[op->rank]);
        down->send = down->recv = op->temp[1];
    }
    if (all || is_root(op))
        op->finish = finish_reduce;
    return MR_OK;
}

static mr_status group_barrier(nic_op *op) {
    bool ok = add(op, own_group(op), X_BARRIER) &&
              (!leads(op) || add(op, op->comm->leaders, X_BARRIER)) &&
              add(op, own_group(op), X_BARRIER);
    return ok ? MR_OK : no_memory();
}

/* Inside the sender's group, among the leaders, inside the other groups. */
static mr_status group_broadcast(nic_op *op) {
    const mr_nic_call *c = &op->call;
    unsigned first = op->comm->group_of[c->from], mine = op->comm->group_of[op->rank];
    nic_xfer *near = NULL, *top = NULL, *far = NULL;
    if (mine == first && !(near = add(op, own_group(op), X_BROADCAST)))
        return no_memory();
    if (leads(op) && !(top = add(op, op->comm->leaders, X_BROADCAST)))
        return no_memory();
    if (mine != first && !(far = add(op, own_group(op), X_BROADCAST)))
        return no_memory();
    if (near)
        near->from = (unsigned)nic_member(near->job, c->from);
    if (top) {
        top->from = leader_in(top->job, op->comm, first);
        top->send = c->recv;
    }
    if (far) {
        far->from = leader_in(far->job, op->comm, mine);
        far->send = c->recv;
    }
    return MR_OK;
}

/* temp[1] holds fan * count elements for each leader, in the leaders' order. */
static void finish_gather(nic_op *op) {
    const nic_comm *comm = op->comm;
    size_t bytes = op->call.count * mr_nic_dtype_bytes(op->call.dtype);
    for (size_t i = 0; i < comm->count; i++) {
        unsigned group = comm->group_of[comm->rank[i]];
        size_t at = leader_in(comm->leaders, comm, group) * comm->fan +
                    (size_t)nic_member(comm->group[group], comm->rank[i]);
        memcpy((uint8_t *)op->call.recv + i * bytes, (uint8_t *)op->temp[1] + at * bytes, bytes);
    }
}

static mr_status group_gather(nic_op *op) {
    const mr_nic_call *c = &op->call;
    size_t share = c->count * op->comm->fan, all = share * op->comm->groups;
    size_t size = mr_nic_dtype_bytes(c->dtype);
    op->temp[0] = calloc(share, size); /* a smaller group leaves the rest zero */
    op->temp[1] = malloc(all * size);
    nic_xfer *near = add(op, own_group(op), X_GATHER);
    nic_xfer *top = leads(op) ? add(op, op->comm->leaders, X_GATHER) : NULL;
    nic_xfer *down = add(op, own_group(op), X_BROADCAST);
    if (!op->temp[0] || !op->temp[1] || !near || (leads(op) && !top) || !down)
        return no_memory();
    near->recv = op->temp[0];
    if (top) {
        top->count = share;
        top->send = op->temp[0];
        top->recv = op->temp[1];
    }
    down->from = leader_in(down->job, op->comm, op->comm->group_of[op->rank]);
    down->count = all;
    down->send = down->recv = op->temp[1];
    op->finish = finish_gather;
    return MR_OK;
}

static mr_status group_query(nic_op *op) {
    nic_xfer *top = leads(op) ? add(op, op->comm->leaders, X_QUERY) : NULL;
    nic_xfer *down = add(op, own_group(op), X_QUERY);
    if ((leads(op) && !top) || !down)
        return no_memory();
    if (leads(op) && !is_root(op))
        down->send = op->call.recv;
    if (is_root(op))
        down->recv = NULL; /* it has its own query */
    return MR_OK;
}

/* temp[1] = lse[heads], then o[heads][dim]: one vector for the way down. */
static void finish_merge(nic_op *op) {
    const mr_nic_call *c = &op->call;
    const float *lse = op->temp[1];
    memcpy(c->lse, lse, c->heads * sizeof *lse);
    mr_nic_narrow(c->recv, lse + c->heads, c->heads * c->dim, c->dtype);
}

static mr_status group_merge(nic_op *op) {
    const mr_nic_call *c = &op->call;
    size_t o = c->heads * c->dim;
    op->temp[0] = malloc(o * 4);
    op->temp[1] = malloc((c->heads + o) * 4);
    op->temp[2] = malloc(c->heads * 4);
    nic_xfer *up = add(op, own_group(op), X_MERGE);
    nic_xfer *top = leads(op) ? add(op, op->comm->leaders, X_MERGE) : NULL;
    nic_xfer *down = c->everyone ? add(op, own_group(op), X_BROADCAST) : NULL;
    float *whole = op->temp[1], *ones = op->temp[2];
    if (!op->temp[0] || !whole || !ones || !up || (leads(op) && !top) || (c->everyone && !down))
        return no_memory();
    mr_nic_widen(op->temp[0], c->send, o, c->dtype);
    for (size_t i = 0; i < c->heads; i++)
        ones[i] = 1.0f;
    up->dtype = MR_NIC_DT_FP32;
    up->send = op->temp[0];
    up->lse = whole;
    up->recv = whole + c->heads;
    if (top) {
        top->dtype = MR_NIC_DT_FP32;
        top->natural = false;
        top->everyone = c->everyone;
        top->m = top->lse = whole;
        top->d = ones;
        top->send = top->recv = whole + c->heads;
    }
    if (down) {
        down->dtype = MR_NIC_DT_FP32;
        down->count = c->heads + o;
        down->from = leader_in(down->job, op->comm, op->comm->group_of[op->rank]);
        down->send = down->recv = whole;
    }
    if (c->everyone || is_root(op))
        op->finish = finish_merge;
    return MR_OK;
}

static mr_status build(nic_cluster *nic, nic_op *op) {
    if (!op->comm->leaders)
        return build_plain(nic, op);
    switch (op->call.kind) {
    case MR_NIC_BARRIER:
        return group_barrier(op);
    case MR_NIC_BROADCAST:
        return group_broadcast(op);
    case MR_NIC_REDUCE:
    case MR_NIC_ALLREDUCE:
        return group_reduce(op);
    case MR_NIC_ALLGATHER:
        return group_gather(op);
    case MR_NIC_QUERY:
        return group_query(op);
    case MR_NIC_MERGE:
        return group_merge(op);
    default:
        return mr_fail(MR_UNSUPPORTED, "job: KV blocks need a job without groups");
    }
}

/* ---- the calls --------------------------------------------------------------------------------
 */

static void destroy_op(mr_obj *obj) {
    nic_op *op = (nic_op *)obj;
    mr_obj_unref(&op->nic->obj);
    free(op->message);
    free(op);
}

/* The seat of this rank that has failed, if one has. */
static const nic_seat *failed_seat(const nic_comm *comm, unsigned rank) {
    nic_job *job = comm->group[comm->group_of[rank]];
    const nic_seat *seat = &job->seat[nic_member(job, rank)];
    return seat->failed ? seat : NULL;
}

static mr_status enqueue(nic_cluster *nic, nic_op *op) {
    for (size_t i = 0; i < op->xfers; i++) {
        mr_status e = nic_xfer_prepare(op->xfer[i]);
        if (e != MR_OK)
            return e;
    }
    for (size_t i = 0; i < op->xfers; i++) {
        mr_status e = nic_enqueue(nic, op->xfer[i]);
        if (e != MR_OK)
            return e;
    }
    return MR_OK;
}

mr_status nic_call_start(nic_cluster *nic, uint8_t rank, const mr_nic_call *call, nic_op **out) {
    if (nic->lost != MR_OK)
        return mr_fail(MR_DEVICE_LOST, "the cluster is lost; close it and open it again");
    nic_comm *comm = nic_comm_find(nic, call->job);
    if (!comm)
        return mr_fail(MR_INVALID_ARGUMENT, "job: there is no job %u", call->job);
    if (!in_comm(comm, rank))
        return mr_fail(MR_INVALID_ARGUMENT, "rank: %u is not a member of job %u", rank, call->job);
    mr_status e = check(nic, comm, rank, call);
    if (e != MR_OK)
        return e;
    nic_op *op = calloc(1, sizeof *op);
    if (!op)
        return no_memory();
    mr_obj_init(&op->obj, destroy_op);
    mr_obj_ref(&nic->obj);
    op->nic = nic;
    op->comm = comm;
    op->call = *call;
    op->rank = rank;
    op->status = MR_PENDING;
    op->deadline = nic_now(nic) + (call->timeout ? call->timeout : TIMEOUT);
    op->next = nic->ops;
    nic->ops = op;
    mr_obj_ref(&op->obj); /* the list's */
    bool kv = call->kind == MR_NIC_KV_WRITE || call->kind == MR_NIC_KV_READ;
    const nic_seat *failed = kv ? NULL : failed_seat(comm, rank);
    if (failed) {
        nic_op_end(op, MR_CANCELLED, NULL, failed->message);
    } else {
        e = build(nic, op);
        if (e == MR_OK)
            e = enqueue(nic, op);
        if (e != MR_OK) {
            nic_op_end(op, e, NULL, "not started");
            mr_obj_unref(&op->obj);
            return e;
        }
    }
    *out = op;
    return MR_OK;
}

mr_status mr_nic_start(mr_nic *handle, uint8_t rank, const mr_nic_call *call, mr_nic_op **out) {
    if (!call || !out)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", call ? "op" : "call");
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    nic_op *op;
    mr_status e = nic_call_start(nic, rank, call, &op);
    if (e == MR_OK) {
        void *made = mr_handle_new(MR_KIND_NIC_OP, &op->obj);
        if (made) {
            *out = made;
        } else {
            nic_op_end(op, MR_CANCELLED, NULL, "no handle");
            mr_obj_unref(&op->obj);
            e = MR_LIMIT;
        }
    }
    nic_leave(nic);
    return e;
}

static mr_status result(const nic_op *op) {
    if (op->status != MR_OK && op->status != MR_PENDING)
        mr_fail(op->status, "%s", op->message ? op->message : "failed");
    return op->status;
}

static mr_status run_until_done(nic_cluster *nic, const nic_op *op) {
    mr_status e = MR_OK;
    while (e == MR_OK && op->status == MR_PENDING)
        e = nic_round(nic, op, UINT32_MAX);
    return result(op);
}

mr_status nic_call_finish(nic_cluster *nic, nic_op *op) {
    mr_status e = run_until_done(nic, op);
    mr_obj_unref(&op->obj);
    return e;
}

mr_status mr_nic_wait(mr_nic_op *handle) {
    nic_op *op = mr_handle_get(handle, MR_KIND_NIC_OP, "op");
    if (!op)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&op->nic->lock);
    mr_status e = run_until_done(op->nic, op);
    pthread_mutex_unlock(&op->nic->lock);
    mr_obj_unref(&op->obj);
    return e;
}

mr_status mr_nic_op_status(mr_nic_op *handle) {
    nic_op *op = mr_handle_get(handle, MR_KIND_NIC_OP, "op");
    if (!op)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&op->nic->lock);
    mr_status e = result(op);
    pthread_mutex_unlock(&op->nic->lock);
    mr_obj_unref(&op->obj);
    return e;
}

mr_status mr_nic_missing(mr_nic_op *handle, uint8_t ranks[256], size_t *count) {
    if (!ranks || !count)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", ranks ? "count" : "ranks");
    nic_op *op = mr_handle_get(handle, MR_KIND_NIC_OP, "op");
    if (!op)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&op->nic->lock);
    *count = 0;
    for (unsigned r = 0; r < 256; r++)
        if (nic_ranks_has(&op->missing, r))
            ranks[(*count)++] = (uint8_t)r;
    pthread_mutex_unlock(&op->nic->lock);
    mr_obj_unref(&op->obj);
    return MR_OK;
}

mr_status mr_nic_op_destroy(mr_nic_op *handle) {
    nic_op *op = mr_handle_take(handle, MR_KIND_NIC_OP, "op");
    if (!op)
        return MR_INVALID_HANDLE;
    nic_cluster *nic = op->nic;
    mr_obj_ref(&nic->obj);
    pthread_mutex_lock(&nic->lock);
    if (op->status == MR_PENDING) {
        if (op->call.kind == MR_NIC_KV_WRITE || op->call.kind == MR_NIC_KV_READ)
            nic_op_end(op, MR_CANCELLED, NULL, "given up");
        else
            nic_job_fail(nic, op->comm, op->rank, MR_CANCELLED, NULL, "a call was given up");
    }
    mr_obj_unref(&op->obj);
    nic_leave(nic);
    return MR_OK;
}

mr_status mr_nic_run(mr_nic *nic, const uint8_t *ranks, const mr_nic_call *calls, size_t n) {
    if (!ranks || !calls)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", ranks ? "calls" : "ranks");
    mr_nic_op **op = calloc(n ? n : 1, sizeof *op);
    if (!op)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for %zu calls", n);
    char why[512] = "";
    mr_status first = MR_OK;
    size_t started = 0;
    for (; started < n && first == MR_OK; started++) {
        first = mr_nic_start(nic, ranks[started], &calls[started], &op[started]);
        if (first != MR_OK)
            break;
    }
    if (first != MR_OK)
        strncpy(why, mr_last_error(), sizeof why - 1);
    for (size_t i = 0; i < started; i++) {
        mr_status e = first == MR_OK || started == n ? mr_nic_wait(op[i]) : MR_OK;
        if (e != MR_OK && first == MR_OK) {
            first = e;
            strncpy(why, mr_last_error(), sizeof why - 1);
        }
        mr_nic_op_destroy(op[i]);
    }
    free(op);
    return first == MR_OK ? MR_OK : mr_fail(first, "%s", why);
}
