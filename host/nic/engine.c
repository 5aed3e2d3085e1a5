/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves the transfers on: frames and events in, windows and timers out.
 *
 * Slots of a NIC cannot run out for ever: a rank sends at most W parts beyond the first that is not
 * acknowledged, in the order of its transfers. Let p be the first part that is not complete. If p
 * has no slot then nobody's p was accepted, so nobody sent beyond p + W, and with W * jobs <= 64
 * a slot is free for p. If p has one, everybody who is missing there has p in the window.
 *
 * A rank cannot run so far ahead that the NICs take a slow member's contribution for late (64
 * numbers behind): every 32nd number is a barrier, and no transfer begins before the barrier of
 * the numbers before its own has ended.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/nic/internal.h"

enum { REPORT = 0xFFFF, KV_WINDOW = 8, KV_ACTIVE = 4, NO_ENTRY_TRIES = 8 };

/* ---- the order of transfers -------------------------------------------------------------------
 */

static void append(nic_seat *seat, nic_xfer *x) {
    nic_xfer **at = &seat->queue;
    while (*at)
        at = &(*at)->next;
    *at = x;
}

static mr_status add_barrier(nic_job *job, unsigned member) {
    nic_xfer *x = calloc(1, sizeof *x);
    mr_status e = x ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if (e == MR_OK) {
        x->job = job;
        x->self = member;
        x->kind = X_BARRIER;
        e = nic_xfer_prepare(x);
    }
    if (e != MR_OK) {
        nic_xfer_free(x);
        return e;
    }
    x->request = job->seat[member].next++;
    append(&job->seat[member], x);
    return MR_OK;
}

mr_status nic_enqueue(nic_cluster *nic, nic_xfer *x) {
    if (x->kind == X_KV_WRITE || x->kind == X_KV_READ) {
        nic_rank *rank = &nic->rank[x->job->rank[x->self]];
        nic_xfer **at = &rank->kv;
        while (*at)
            at = &(*at)->next;
        *at = x;
        x->request = rank->kv_next++;
        x->active = true;
        return MR_OK;
    }
    nic_seat *seat = &x->job->seat[x->self];
    if (x->kind == X_MERGE && seat->query_open) {
        x->request = seat->next - 1;
    } else {
        if ((seat->next - x->job->base) % NIC_EPOCH == NIC_EPOCH - 1) {
            mr_status e = add_barrier(x->job, x->self);
            if (e != MR_OK)
                return e;
        }
        x->request = seat->next++;
    }
    seat->query_open = x->kind == X_QUERY;
    append(seat, x);
    return MR_OK;
}

static void unlink_xfer(nic_xfer **list, const nic_xfer *x) {
    while (*list && *list != x)
        list = &(*list)->next;
    if (*list)
        *list = x->next;
}

static void drop_early(nic_seat *seat) {
    while (seat->early) {
        nic_early *e = seat->early;
        seat->early = e->next;
        free(e);
    }
}

/* ---- ends -------------------------------------------------------------------------------------
 */

const char *nic_kind_name(mr_nic_kind kind) {
    static const char *const names[] = {"barrier",   "broadcast", "reduce",
                                        "allreduce", "allgather", "query",
                                        "merge",     "kv write",  "kv read"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "call";
}

static void list_ranks(char *out, size_t size, const nic_ranks *ranks) {
    size_t at = 0;
    out[0] = 0;
    for (unsigned r = 0; r < 256 && at + 8 < size; r++)
        if (nic_ranks_has(ranks, r))
            at += (size_t)snprintf(out + at, size - at, "%s%u", at ? ", " : "", r);
}

static void forget_xfers(nic_op *op) {
    for (size_t i = 0; i < op->xfers; i++) {
        nic_xfer *x = op->xfer[i];
        unlink_xfer(&x->job->seat[x->self].queue, x);
        unlink_xfer(&op->nic->rank[op->rank].kv, x);
        nic_xfer_free(x);
    }
    op->xfers = 0;
}

void nic_op_end(nic_op *op, mr_status status, const nic_ranks *missing, const char *message) {
    char text[512];
    if (op->status != MR_PENDING)
        return;
    if (status == MR_OK && op->finish)
        op->finish(op);
    forget_xfers(op);
    for (int i = 0; i < 3; i++) {
        free(op->temp[i]);
        op->temp[i] = NULL;
    }
    op->status = status;
    if (status != MR_OK) {
        snprintf(text, sizeof text, "%s at rank %u: %s", nic_kind_name(op->call.kind), op->rank,
                 message);
        op->message = strdup(text);
    }
    if (missing)
        op->missing = *missing;
    nic_op **at = &op->nic->ops;
    while (*at && *at != op)
        at = &(*at)->next;
    if (*at)
        *at = op->next;
    mr_obj_unref(&op->obj); /* the list's */
}

/* Tells the members of a job which ranks are silent: one small broadcast. */
static void report(nic_cluster *nic, const nic_job *job, unsigned member,
                   const nic_ranks *missing) {
    unsigned rank = job->rank[member];
    mr_nic_header h = {.version = MR_NIC_VERSION,
                       .opcode = MR_NIC_OP_REDUCE,
                       .dtype = MR_NIC_DT_INT32,
                       .flags = MR_NIC_FL_RELIABLE | MR_NIC_FL_EVERYONE,
                       .job = job->id,
                       .shard = (uint8_t)rank,
                       .shards = 1,
                       .request = job->seat[member].next - (job->seat[member].next != job->base),
                       .layer = REPORT,
                       .head0 = REPORT,
                       .heads = 1,
                       .dim = 8,
                       .block = rank};
    mr_nic_swap(nic->frame + MR_NIC_OVERHEAD + MR_NIC_HEADER_BYTES, missing->bits, 8, 4);
    size_t bytes = mr_nic_frame_build(nic->frame, &nic->row[rank], &nic->row[rank], &h, 32);
    nic->link->ops->send(nic->link, rank, nic->frame, bytes);
    nic->moved++;
}

static void fail_seat(nic_cluster *nic, nic_job *job, unsigned rank, const nic_ranks *missing,
                      const char *message, const nic_job *told_by) {
    int member = nic_member(job, rank);
    if (member < 0 || job->seat[member].failed)
        return;
    nic_seat *seat = &job->seat[member];
    seat->failed = true;
    snprintf(seat->message, sizeof seat->message, "%s", message);
    drop_early(seat);
    for (nic_xfer **at = &seat->queue, *x; (x = *at);) {
        if (x->op) {
            at = &x->next; /* goes with its call */
        } else {
            *at = x->next;
            nic_xfer_free(x);
        }
    }
    if (missing && job != told_by && job->count > 1)
        report(nic, job, (unsigned)member, missing);
}

static void fail_job(nic_cluster *nic, nic_comm *comm, unsigned rank, mr_status status,
                     const nic_ranks *missing, const char *message, const nic_job *told_by) {
    char text[384], ranks[200];
    if (missing && nic_ranks_empty(missing))
        missing = NULL;
    if (missing) {
        list_ranks(ranks, sizeof ranks, missing);
        snprintf(text, sizeof text, "%s: no answer from rank%s %s", message,
                 strchr(ranks, ',') ? "s" : "", ranks);
    } else {
        snprintf(text, sizeof text, "%s", message);
    }
    for (size_t g = 0; g < comm->groups; g++)
        fail_seat(nic, comm->group[g], rank, missing, text, told_by);
    if (comm->leaders)
        fail_seat(nic, comm->leaders, rank, missing, text, told_by);
    for (nic_op *op = nic->ops, *next; op; op = next) {
        next = op->next;
        if (op->comm == comm && op->rank == rank && op->call.kind != MR_NIC_KV_WRITE &&
            op->call.kind != MR_NIC_KV_READ)
            nic_op_end(op, status, missing, text);
    }
}

void nic_job_fail(nic_cluster *nic, nic_comm *comm, unsigned rank, mr_status status,
                  const nic_ranks *missing, const char *message) {
    fail_job(nic, comm, rank, status, missing, message, NULL);
}

static void fail_xfer(nic_cluster *nic, nic_xfer *x, mr_status status, const nic_ranks *missing,
                      const char *message) {
    unsigned rank = x->job->rank[x->self];
    char text[320], ranks[200];
    if (x->kind != X_KV_WRITE && x->kind != X_KV_READ) {
        snprintf(text, sizeof text, "job %u, request %u: %s", x->job->id, x->request, message);
        nic_job_fail(nic, x->job->comm, rank, status, missing, text);
        return;
    }
    int n = snprintf(text, sizeof text, "job %u, layer %u, block %u: %s", x->job->id, x->layer,
                     x->block, message);
    if (missing) {
        list_ranks(ranks, sizeof ranks, missing);
        snprintf(text + n, sizeof text - (size_t)n, ": no answer from rank%s %s",
                 strchr(ranks, ',') ? "s" : "", ranks);
    }
    nic_op_end(x->op, status, missing, text);
}

static void lose(nic_cluster *nic, mr_status why) {
    char text[256];
    snprintf(text, sizeof text, "%s", mr_last_error());
    nic->lost = why;
    while (nic->ops)
        nic_op_end(nic->ops, MR_DEVICE_LOST, NULL, text);
}

/* A transfer ended; its call may have, too. */
static void finish_xfer(nic_xfer *x) {
    nic_op *op = x->op;
    x->done = true;
    unlink_xfer(&x->job->seat[x->self].queue, x);
    if (!op) {
        nic_xfer_free(x);
        return;
    }
    unlink_xfer(&op->nic->rank[op->rank].kv, x);
    for (size_t i = 0; i < op->xfers; i++)
        if (!op->xfer[i]->done)
            return;
    nic_op_end(op, MR_OK, NULL, NULL);
}

/* ---- in ---------------------------------------------------------------------------------------
 */

static bool brings(const nic_xfer *x, unsigned opcode) {
    switch (opcode) {
    case MR_NIC_OP_RESULT:
        return x->kind == X_REDUCE || x->kind == X_BROADCAST || x->kind == X_GATHER;
    case MR_NIC_OP_MERGED:
        return x->kind == X_MERGE;
    case MR_NIC_OP_QUERY:
        return x->kind == X_QUERY;
    case MR_NIC_OP_BARRIER:
        return x->kind == X_BARRIER;
    default:
        return false;
    }
}

static void keep_early(nic_seat *seat, const uint8_t *frame, size_t bytes) {
    nic_early *e = malloc(sizeof *e + bytes);
    if (!e)
        return; /* as if the host's queue had been full: the call will time out */
    e->next = NULL;
    e->bytes = bytes;
    memcpy(e->frame, frame, bytes);
    nic_early **at = &seat->early;
    while (*at)
        at = &(*at)->next;
    *at = e;
}

static void take_early(nic_seat *seat, nic_xfer *x) {
    for (nic_early **at = &seat->early, *e; (e = *at);) {
        mr_nic_frame f;
        if (mr_nic_frame_read(&f, e->frame, e->bytes) && f.header.request == x->request &&
            brings(x, f.header.opcode)) {
            nic_xfer_take(x, &f);
            *at = e->next;
            free(e);
        } else {
            at = &e->next;
        }
    }
}

static void hear_report(nic_cluster *nic, nic_job *job, unsigned rank, const mr_nic_frame *f) {
    nic_ranks missing;
    char text[96];
    if (f->bytes < sizeof missing)
        return;
    mr_nic_swap(missing.bits, f->payload, 8, 4);
    snprintf(text, sizeof text, "job %u, request %u, says rank %u", job->id, f->header.request,
             f->header.shard);
    fail_job(nic, job->comm, rank, MR_TIMEOUT, &missing, text, job);
}

/* A frame of a numbered operation. */
static void hear(nic_cluster *nic, unsigned rank, nic_job *job, const mr_nic_frame *f,
                 const uint8_t *frame, size_t bytes) {
    const mr_nic_header *h = &f->header;
    nic_seat *seat = &job->seat[nic_member(job, rank)];
    if ((int32_t)(h->request - job->base) < 0 || /* of a job of the same id before this one */
        mr_nic_repeated(nic->rank[rank].repeats, h) ||
        (seat->heard && (int32_t)(h->request - (seat->newest - 63)) < 0)) {
        nic->discarded++;
        return;
    }
    if (!seat->heard || (int32_t)(h->request - seat->newest) > 0)
        seat->newest = h->request;
    seat->heard = true;
    if (h->opcode == MR_NIC_OP_RESULT && h->layer == REPORT && h->head0 == REPORT) {
        hear_report(nic, job, rank, f);
        return;
    }
    if (seat->failed)
        return;
    for (nic_xfer *x = seat->queue; x; x = x->next) {
        if (x->request != h->request || !brings(x, h->opcode))
            continue;
        if (!x->active)
            keep_early(seat, frame, bytes);
        else if (!nic_xfer_take(x, f))
            nic->discarded++;
        return;
    }
    /* the MERGE that shares a QUERY's number may not be queued yet, hence - 1 */
    if ((int32_t)(h->request - (seat->next - 1)) >= 0)
        keep_early(seat, frame, bytes);
    else
        nic->discarded++;
}

static void hear_data(nic_cluster *nic, unsigned rank, const mr_nic_frame *f) {
    for (nic_xfer *x = nic->rank[rank].kv; x; x = x->next) {
        if (x->kind != X_KV_READ || x->request != f->header.request ||
            x->job->id != f->header.job || !x->part[0].sent)
            continue;
        if (!nic_xfer_take(x, f)) {
            nic->discarded++;
            return;
        }
        x->part[0].tries = x->part[0].refusals = 0;
        x->part[0].due = nic_now(nic) + (nic_xfer_span_done(x) ? 0 : nic->rto);
        return;
    }
    nic->discarded++;
}

static void send_later(nic_cluster *nic, nic_part *part, uint64_t first) {
    unsigned shift = part->refusals < 6 ? part->refusals : 6;
    part->due = nic_now(nic) + (first << shift);
    part->tries = 0;
    if (part->refusals < 255)
        part->refusals++;
}

/* The entry changed under a KV transfer: whom to ask, and by which epoch. */
static bool refresh(nic_cluster *nic, nic_xfer *x) {
    const nic_entry *e = nic_dir_find(nic, x->job->id, x->layer, x->block);
    bool newer = e && e->place.epoch != x->epoch;
    if (!newer)
        return false;
    x->epoch = e->place.epoch;
    for (size_t p = 0; p < x->sends; p++)
        if (!x->part[p].settled)
            x->part[p].sent = false;
    return true;
}

static void refused(nic_cluster *nic, nic_xfer *x, size_t p, uint32_t reason) {
    nic_part *part = &x->part[p];
    nic->refused++;
    switch (reason) {
    case MR_NIC_NACK_NO_SLOT:
        send_later(nic, part, nic->rto / 8 + 1);
        break;
    case MR_NIC_NACK_STALE_EPOCH:
        if (refresh(nic, x))
            part->due = 0;
        else
            send_later(nic, part, nic->rto / 4 + 1);
        break;
    case MR_NIC_NACK_NO_ENTRY:
        /* while a block moves, nobody may answer for a moment */
        if (part->refusals >= NO_ENTRY_TRIES)
            fail_xfer(nic, x, MR_NOT_FOUND, NULL, "nobody holds these bytes");
        else if (!refresh(nic, x))
            send_later(nic, part, nic->rto / 8 + 1);
        break;
    case MR_NIC_NACK_OUT_OF_RANGE:
        fail_xfer(nic, x, MR_INVALID_ARGUMENT, NULL, "bytes beyond the block");
        break;
    default:
        fail_xfer(nic, x, MR_DEVICE_ERROR, NULL,
                  "the members disagree about the operation or its sizes");
    }
}

static void accepted(nic_cluster *nic, nic_xfer *x, size_t p, unsigned from) {
    int member = nic_member(x->job, from);
    nic_part *part = &x->part[p];
    if (member < 0 || !part->sent || part->settled)
        return;
    part->wait &= ~(1u << member);
    if (part->wait)
        return;
    if (x->kind == X_KV_WRITE) {
        nic_entry *e = nic_dir_find(nic, x->job->id, x->layer, x->block);
        size_t piece = x->offset / NIC_PIECE + p;
        if (e && e->place.epoch == x->epoch)
            e->written[piece / 8] |= (uint8_t)(1u << piece % 8);
    }
    nic_xfer_settle(x, p);
}

/* An ACK or NACK, from the network as an event or from the own NIC as a frame. */
static void hear_control(nic_cluster *nic, unsigned rank, const mr_nic_header *h,
                         const uint8_t *payload) {
    nic_job *job = nic_job_find(nic, h->job);
    int member = job ? nic_member(job, rank) : -1;
    if (member < 0)
        return;
    bool kv = h->dtype <= MR_NIC_OP_KV_DATA;
    nic_xfer *x = kv ? nic->rank[rank].kv : job->seat[member].queue;
    while (x && (x->job != job || x->request != h->request || nic_xfer_opcode(x) != h->dtype))
        x = x->next;
    size_t p = x ? nic_xfer_part(x, h) : SIZE_MAX;
    /* a GATHER's ACK names the block, which is the rank; a report's ACK is nobody's */
    if (p >= (x ? x->sends : 0) || (h->layer == REPORT && h->head0 == REPORT))
        return;
    if (h->opcode == MR_NIC_OP_ACK)
        accepted(nic, x, p, h->shard);
    else if (!x->part[p].settled && x->part[p].sent)
        refused(nic, x, p,
                (uint32_t)payload[0] << 24 | (uint32_t)payload[1] << 16 |
                    (uint32_t)payload[2] << 8 | payload[3]);
}

static void hear_frame(nic_cluster *nic, unsigned rank, const uint8_t *frame, size_t bytes) {
    static const uint8_t none[8];
    mr_nic_frame f;
    if (!mr_nic_frame_read(&f, frame, bytes))
        return;
    nic_job *job = nic_job_find(nic, f.header.job);
    if (!job || nic_member(job, rank) < 0)
        return;
    switch (f.header.opcode) {
    case MR_NIC_OP_ACK:
    case MR_NIC_OP_NACK:
        hear_control(nic, rank, &f.header, f.bytes >= 8 ? f.payload : none);
        break;
    case MR_NIC_OP_KV_DATA:
        hear_data(nic, rank, &f);
        break;
    default:
        hear(nic, rank, job, &f, frame, bytes);
    }
}

static uint32_t le(const uint8_t *at, int bytes) {
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)at[i] << 8 * i;
    return v;
}

/*
 * A slot at the leaders of a job of groups may wait for a rank that itself waits for its group.
 * Then that group's own verdict is on its way, and it names the right rank: it has a head start of
 * 8 RTO. A rank's own bit counts only when it has not called the operation.
 */
static void judge_later(nic_cluster *nic, nic_job *job, unsigned member, uint32_t request,
                        nic_ranks *missing, const char *text) {
    nic_seat *seat = &job->seat[member];
    unsigned rank = job->rank[member];
    for (const nic_xfer *x = seat->queue; x; x = x->next)
        if (x->request == request)
            missing->bits[rank / 32] &= ~(1u << rank % 32);
    if (nic_ranks_empty(missing) || seat->verdict_due)
        return;
    seat->verdict_due = nic_now(nic) + 8 * (uint64_t)nic->rto;
    seat->verdict = *missing;
    snprintf(seat->message, sizeof seat->message, "%s", text);
}

static void hear_event(nic_cluster *nic, unsigned rank, const uint8_t event[64]) {
    if (event[0] == MR_NIC_EV_CONTROL) {
        mr_nic_header h;
        mr_nic_header_get(&h, event + 24);
        hear_control(nic, rank, &h, event + 56);
        return;
    }
    nic_job *job = nic_job_find(nic, (uint16_t)le(event + 2, 2));
    if (!job || nic_member(job, rank) < 0 ||
        (le(event + 8, 2) == REPORT && le(event + 10, 2) == REPORT))
        return;
    nic_ranks missing = {{0}};
    uint32_t members = le(event + 16, 4);
    char text[96];
    for (unsigned i = 0; i < job->count; i++)
        if (members >> i & 1)
            nic_ranks_add(&missing, job->rank[i]);
    snprintf(text, sizeof text, "job %u, request %u%s", job->id, le(event + 4, 4),
             event[0] == MR_NIC_EV_UNACKNOWLEDGED ? ", result" : "");
    if (job->comm->leaders && event[0] == MR_NIC_EV_SLOT_TIMEOUT)
        judge_later(nic, job, (unsigned)nic_member(job, rank), le(event + 4, 4), &missing, text);
    else
        nic_job_fail(nic, job->comm, rank, MR_TIMEOUT, &missing, text);
}

static mr_status receive(nic_cluster *nic) {
    const mr_nic_link_ops *ops = nic->link->ops;
    static const unsigned most = 4096; /* frames a rank and round: no rank starves another */
    for (unsigned r = 0; r < nic->nodes; r++) {
        mr_status e = MR_OK;
        size_t bytes = 1;
        bool got = true;
        uint8_t event[MR_NIC_EVENT_BYTES];
        for (unsigned i = 0; i < most && e == MR_OK && got; i++) {
            e = ops->event(nic->link, r, event, &got);
            if (e == MR_OK && got)
                nic->moved++, hear_event(nic, r, event);
        }
        for (unsigned i = 0; i < most && e == MR_OK && bytes; i++) {
            e = ops->recv(nic->link, r, nic->heard, sizeof nic->heard, &bytes);
            if (e == MR_OK && bytes)
                nic->moved++, hear_frame(nic, r, nic->heard, bytes);
        }
        if (e != MR_OK)
            return e;
    }
    return MR_OK;
}

/* ---- out --------------------------------------------------------------------------------------
 */

static uint32_t first_wait(const nic_cluster *nic, const nic_xfer *x) {
    uint32_t all = x->job->count == 32 ? UINT32_MAX : (1u << x->job->count) - 1;
    const nic_entry *e;
    switch (x->kind) {
    case X_BROADCAST:
    case X_GATHER:
        return 1u << x->self;
    case X_QUERY:
        return all & ~(1u << x->self);
    case X_KV_WRITE:
    case X_KV_READ:
        if (x->targets)
            return x->targets;
        e = nic_dir_find(nic, x->job->id, x->layer, x->block);
        if (!e)
            return 0;
        return x->kind == X_KV_WRITE ? e->named : 1u << nic_member(x->job, e->place.owner);
    default:
        return 1u << x->job->root;
    }
}

static mr_status send_to(nic_cluster *nic, nic_xfer *x, size_t p, bool again, unsigned to) {
    size_t bytes = nic_xfer_frame(nic, x, p, again, to, nic->frame);
    nic->resent += again;
    nic->moved++;
    return nic->link->ops->send(nic->link, x->job->rank[x->self], nic->frame, bytes);
}

/* First to the own NIC, which makes the copies; later to those who did not answer. */
static mr_status send_part(nic_cluster *nic, nic_xfer *x, size_t p, bool again) {
    nic_part *part = &x->part[p];
    unsigned own = x->job->rank[x->self];
    bool copied = x->kind == X_QUERY || x->kind == X_KV_WRITE;
    if (!copied || (!again && !x->targets))
        return send_to(nic, x, p, again,
                       copied || x->kind == X_BROADCAST || x->kind == X_GATHER ||
                               x->kind == X_KV_READ
                           ? own
                           : x->job->rank[x->job->root]);
    mr_status e = MR_OK;
    for (unsigned i = 0; e == MR_OK && i < x->job->count; i++)
        if (part->wait >> i & 1)
            e = send_to(nic, x, p, again, x->job->rank[i]);
    return e;
}

/*
 * A broadcast's part is acknowledged by the own NIC at once, though its copies to all the others
 * still have to leave the port: nobody but the sender can keep it from filling the network. So it
 * counts what its port has yet to carry, at 7/8 of 100 Gbit/s and 250 MHz, and keeps that below a
 * sixteenth of the RTO: data and ACK each cross two queues of that kind. False, with *next set: not
 * yet.
 */
static bool paced(nic_cluster *nic, const nic_xfer *x, uint64_t *next) {
    enum { BYTES_A_CYCLE = 44 };
    uint64_t now = nic_now(nic), slack = nic->rto / 16;
    uint64_t *clear = &nic->rank[x->job->rank[x->self]].clear_at;
    if (x->kind != X_BROADCAST && x->kind != X_GATHER)
        return true;
    if (*clear > now + slack) {
        if (*clear - slack < *next)
            *next = *clear - slack;
        return false;
    }
    size_t most = x->per < x->count ? x->per : x->count;
    size_t bytes = MR_NIC_OVERHEAD + MR_NIC_HEADER_BYTES + most * mr_nic_dtype_bytes(x->dtype);
    *clear = (*clear > now ? *clear : now) + bytes * (x->job->count - 1) / BYTES_A_CYCLE;
    return true;
}

/* Sends what may be sent of x. False when that ended x or others. */
static bool pump(nic_cluster *nic, nic_xfer *x, size_t *budget, uint64_t *next, mr_status *e) {
    uint64_t now = nic_now(nic);
    for (size_t p = x->low; p < x->sends && *budget && *e == MR_OK; p++, --*budget) {
        nic_part *part = &x->part[p];
        if (part->settled)
            continue;
        if (now >= part->due) {
            bool again = part->sent;
            if (!nic_xfer_turn(x, p) || !paced(nic, x, next))
                break;
            if (again && part->tries == NIC_TRIES) {
                nic_ranks silent = {{0}};
                nic_xfer_silent(x, &silent);
                fail_xfer(nic, x, MR_TIMEOUT, &silent, "sent 17 times");
                return false;
            }
            if (!again)
                part->wait = first_wait(nic, x);
            part->tries = again ? part->tries + 1 : 0;
            part->sent = true;
            *e = send_part(nic, x, p, again);
            part->due = now + ((uint64_t)nic->rto << (part->tries < 4 ? part->tries : 4));
            if (!part->wait)
                nic_xfer_settle(x, p); /* a QUERY of a job of one */
        }
        if (!part->settled && part->due < *next)
            *next = part->due;
    }
    return true;
}

/* Parts on their way at once: what the root's port takes in half an RTO, and no more than lets
 * every job find a slot. */
static size_t window(const nic_cluster *nic, const nic_job *job) {
    size_t w = nic->rto / (2 * 141 * job->count), most = NIC_SLOTS / (nic->jobs ? nic->jobs : 1);
    most = most > 16 ? 16 : most;
    w = w < 2 ? 2 : w;
    return w > most ? most : w;
}

static mr_status pump_seat(nic_cluster *nic, nic_job *job, unsigned member, uint64_t *next) {
    nic_seat *seat = &job->seat[member];
    size_t budget = window(nic, job);
    mr_status e = MR_OK;
    if (seat->verdict_due && !seat->failed) {
        if (nic_now(nic) >= seat->verdict_due) {
            char text[sizeof seat->message];
            memcpy(text, seat->message, sizeof text);
            nic_job_fail(nic, job->comm, job->rank[member], MR_TIMEOUT, &seat->verdict, text);
            return e;
        }
        if (seat->verdict_due < *next)
            *next = seat->verdict_due;
    }
    for (nic_xfer *x = seat->queue, *after; x && e == MR_OK; x = after) {
        after = x->next;
        if (!x->active) {
            if (x->after && !x->after->done)
                break;
            x->active = true;
            take_early(seat, x);
        }
        if (!pump(nic, x, &budget, next, &e))
            break;
        bool own = !x->op;
        if (nic_xfer_complete(x)) {
            finish_xfer(x);
            *next = 0; /* what waited for it may begin */
        } else if (own) {
            break; /* the barrier between two ranges of numbers */
        }
    }
    return e;
}

static mr_status pump_kv(nic_cluster *nic, nic_rank *rank, uint64_t *next) {
    mr_status e = MR_OK;
    size_t active = 0;
    for (nic_xfer *x = rank->kv, *after; x && e == MR_OK && active < KV_ACTIVE;
         x = after, active++) {
        size_t budget = KV_WINDOW;
        after = x->next;
        if (!pump(nic, x, &budget, next, &e)) {
            *next = 0;
            continue;
        }
        if (nic_xfer_complete(x)) {
            finish_xfer(x);
            *next = 0;
        }
    }
    return e;
}

static void give_up(nic_cluster *nic, nic_op *op) {
    nic_ranks silent = {{0}};
    char text[96];
    for (size_t i = 0; i < op->xfers; i++)
        if (op->xfer[i]->active && !op->xfer[i]->done)
            nic_xfer_silent(op->xfer[i], &silent);
    snprintf(text, sizeof text, "job %u: not done in time", op->call.job);
    if (op->call.kind == MR_NIC_KV_WRITE || op->call.kind == MR_NIC_KV_READ)
        fail_xfer(nic, op->xfer[0], MR_TIMEOUT, &silent, "not done in time");
    else
        nic_job_fail(nic, op->comm, op->rank, MR_TIMEOUT, &silent, text);
}

static void deadlines(nic_cluster *nic, uint64_t *next) {
    uint64_t now = nic_now(nic);
again:
    for (nic_op *op = nic->ops; op; op = op->next) {
        if (now >= op->deadline) {
            give_up(nic, op);
            goto again; /* it may have taken others along */
        }
        if (op->deadline < *next)
            *next = op->deadline;
    }
}

/* A NIC may answer its own host within the moment in which it was sent to, so this goes on until
 * nothing moves. */
mr_status nic_progress(nic_cluster *nic, uint64_t *next) {
    if (nic->lost != MR_OK)
        return mr_fail(MR_DEVICE_LOST, "the cluster is lost; close it and open it again");
    mr_status e;
    uint64_t moved;
    do {
        moved = nic->moved;
        *next = UINT64_MAX;
        e = receive(nic);
        for (size_t j = 0; e == MR_OK && j < nic->jobs; j++)
            for (unsigned i = 0; e == MR_OK && i < nic->job[j]->count; i++)
                if (nic->job[j]->seat[i].queue || nic->job[j]->seat[i].verdict_due)
                    e = pump_seat(nic, nic->job[j], i, next);
        for (unsigned r = 0; e == MR_OK && r < nic->nodes; r++)
            if (nic->rank[r].kv)
                e = pump_kv(nic, &nic->rank[r], next);
        if (e == MR_OK)
            deadlines(nic, next);
    } while (e == MR_OK && (nic->moved != moved || *next <= nic_now(nic)));
    if (e != MR_OK)
        lose(nic, e);
    return e;
}

mr_status nic_round(nic_cluster *nic, const nic_op *until, uint64_t most) {
    uint64_t next;
    mr_status e = nic_progress(nic, &next);
    if (e != MR_OK || (until && until->status != MR_PENDING))
        return e;
    uint64_t now = nic_now(nic), wait = next > now ? next - now : 1;
    e = nic->link->ops->run(nic->link, wait < most ? wait : most);
    if (e != MR_OK)
        lose(nic, e);
    return e;
}
