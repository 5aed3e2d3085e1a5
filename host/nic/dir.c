/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of KV blocks: which ranks hold a block, where in their memory, since which epoch.
 *
 * A change is told to one NIC after the other while frames fly. Whoever is to hold the block learns
 * of it first and then gets the bytes; everybody else next; who ceases to hold it last. So a frame
 * that is routed by an old row finds a holder of the old epoch, one that is routed by a new row
 * finds the bytes, and what comes too late to an old holder is answered with a NACK that makes its
 * sender look again. Pages are given back when such frames have had time to leave.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host/nic/internal.h"
#include "host/nic/tables.h"

enum { BUCKETS = 1 << 16, MAX_PAGES = 1 << 20 };

/* A rank's KV memory, and what its NIC's directory holds. */
typedef struct {
    uint8_t *used; /* [pages] */
    size_t free, hint;
    mr_nic_dir *rows; /* NULL before the first */
} pool;

struct nic_dir {
    nic_entry *bucket[BUCKETS];
    size_t pages; /* of each rank */
    pool *pool;   /* by rank */
};

static uint64_t key_of(uint16_t job, uint16_t layer, uint32_t block) {
    return (uint64_t)job << 48 | (uint64_t)layer << 32 | block;
}
static uint64_t key(const nic_entry *e) {
    return key_of(e->place.job, e->place.layer, e->place.block);
}
static unsigned bucket_of(uint64_t key) { return (unsigned)(key * 0x9E3779B97F4A7C15u >> 48); }

mr_status nic_dir_create(nic_cluster *nic) {
    uint64_t pages = nic->link->ops->kv_bytes(nic->link) / NIC_PIECE;
    nic_dir *d = nic->dir = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for the directory");
    d->pages = pages < MAX_PAGES ? (size_t)pages : MAX_PAGES;
    d->pool = calloc(nic->nodes, sizeof *d->pool);
    bool ok = d->pool;
    for (unsigned r = 0; ok && r < nic->nodes; r++) {
        d->pool[r].used = calloc(d->pages ? d->pages : 1, 1);
        d->pool[r].free = d->pages;
        ok = d->pool[r].used;
    }
    return ok ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory for the directory");
}

static void free_entry(nic_entry *e) {
    if (e)
        free(e->written);
    free(e);
}

void nic_dir_destroy(nic_cluster *nic) {
    nic_dir *d = nic->dir;
    if (!d)
        return;
    for (size_t b = 0; b < BUCKETS; b++)
        while (d->bucket[b]) {
            nic_entry *e = d->bucket[b];
            d->bucket[b] = e->next;
            free_entry(e);
        }
    for (unsigned r = 0; d->pool && r < nic->nodes; r++) {
        free(d->pool[r].used);
        mr_nic_dir_destroy(d->pool[r].rows);
    }
    free(d->pool);
    free(d);
}

nic_entry *nic_dir_find(const nic_cluster *nic, uint16_t job, uint16_t layer, uint32_t block) {
    uint64_t k = key_of(job, layer, block);
    nic_entry *e = nic->dir->bucket[bucket_of(k)];
    while (e && key(e) != k)
        e = e->next;
    return e;
}

/* ---- pages ------------------------------------------------------------------------------------
 */

static size_t pages_of(const nic_entry *e) {
    return ((size_t)e->place.bytes + NIC_PIECE - 1) / NIC_PIECE;
}

/* First fit from where the last search ended. */
static bool take_pages(nic_cluster *nic, unsigned rank, size_t n, uint32_t *first) {
    pool *p = &nic->dir->pool[rank];
    size_t all = nic->dir->pages, run = 0;
    if (n > p->free)
        return false;
    for (size_t i = 0; i < all + n; i++) {
        size_t at = (p->hint + i) % all;
        run = at == 0 ? 0 : run; /* a block does not go round the end */
        run = p->used[at] ? 0 : run + 1;
        if (run == n) {
            *first = (uint32_t)(at + 1 - n);
            memset(p->used + *first, 1, n);
            p->free -= n;
            p->hint = (at + 1) % all;
            return true;
        }
    }
    return false;
}

static void give_pages(nic_cluster *nic, unsigned rank, uint32_t first, size_t n) {
    memset(nic->dir->pool[rank].used + first, 0, n);
    nic->dir->pool[rank].free += n;
}

/* Pages at the members of the bitmap; all or none. */
static mr_status take_all(nic_cluster *nic, const nic_job *job, nic_entry *e, uint32_t members) {
    for (unsigned i = 0; i < job->count; i++) {
        if (!(members >> i & 1) || take_pages(nic, job->rank[i], pages_of(e), &e->page[i]))
            continue;
        for (unsigned k = 0; k < i; k++)
            if (members >> k & 1)
                give_pages(nic, job->rank[k], e->page[k], pages_of(e));
        return mr_fail(MR_OUT_OF_MEMORY,
                       "rank %u has no %zu free pages in a row for a block of %u "
                       "bytes",
                       job->rank[i], pages_of(e), e->place.bytes);
    }
    return MR_OK;
}

static void give_all(nic_cluster *nic, const nic_job *job, const nic_entry *e, uint32_t members) {
    for (unsigned i = 0; i < job->count; i++)
        if (members >> i & 1)
            give_pages(nic, job->rank[i], e->page[i], pages_of(e));
}

/* ---- rows in the NICs -------------------------------------------------------------------------
 */

static uint32_t everybody(const nic_job *job) {
    return job->count == 32 ? UINT32_MAX : (1u << job->count) - 1;
}

/* Writes the row into the tables of these members' NICs. `clear`: with none of its pages written.
 */
static mr_status tell(nic_cluster *nic, const nic_job *job, const nic_entry *e,
                      const mr_nic_dir_entry *row, uint32_t members, bool clear) {
    mr_status status = MR_OK;
    for (unsigned i = 0; status == MR_OK && i < job->count; i++) {
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        mr_nic_dir_entry own = *row;
        pool *p = &nic->dir->pool[job->rank[i]];
        size_t n = 0;
        if (!(members >> i & 1))
            continue;
        if (!p->rows && !(p->rows = mr_nic_dir_create(MR_NIC_DIR_HASH_BITS)))
            return mr_fail(MR_OUT_OF_MEMORY, "out of memory for the directory of rank %u",
                           job->rank[i]);
        own.page = row->named >> i & 1 ? e->page[i] : 0;
        status = mr_nic_dir_put(p->rows, &own, clear, steps, &n);
        if (status == MR_OK)
            status = nic->link->ops->command(nic->link, job->rank[i], steps[0], n);
    }
    return status;
}

/* Takes the block's row out of these members' NICs, where there is one. */
static mr_status untell(nic_cluster *nic, const nic_job *job, const nic_entry *e,
                        uint32_t members) {
    mr_status status = MR_OK;
    for (unsigned i = 0; status == MR_OK && i < job->count; i++) {
        mr_nic_desc step;
        mr_nic_dir *rows = nic->dir->pool[job->rank[i]].rows;
        const mr_nic_place *p = &e->place;
        if (!(members >> i & 1) || !rows || !mr_nic_dir_find(rows, p->job, p->layer, p->block))
            continue;
        status = mr_nic_dir_remove(rows, p->job, p->layer, p->block, step);
        if (status == MR_OK)
            status = nic->link->ops->command(nic->link, job->rank[i], step, 1);
    }
    return status;
}

static mr_nic_dir_entry row_of(const nic_entry *e, const nic_job *job) {
    return (mr_nic_dir_entry){.job = e->place.job,
                              .layer = e->place.layer,
                              .block = e->place.block,
                              .epoch = e->place.epoch,
                              .bytes = e->place.bytes,
                              .named = e->named,
                              .owner = (uint8_t)nic_member(job, e->place.owner)};
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static mr_status check_holders(const nic_job *job, uint8_t owner, const uint8_t *replicas,
                               size_t count, uint32_t *named) {
    int m = nic_member(job, owner);
    if (m < 0)
        return mr_fail(MR_INVALID_ARGUMENT, "owner: rank %u is not a member of job %u", owner,
                       job->id);
    *named = 1u << m;
    for (size_t i = 0; i < count; i++) {
        m = nic_member(job, replicas[i]);
        if (m < 0 || *named >> m & 1)
            return mr_fail(MR_INVALID_ARGUMENT, "replicas[%zu]: rank %u %s", i, replicas[i],
                           m < 0 ? "is not a member" : "is named already");
        *named |= 1u << m;
    }
    return MR_OK;
}

static mr_status kv_job(nic_cluster *nic, uint16_t id, nic_job **job) {
    nic_comm *comm = nic_comm_find(nic, id);
    if (!comm)
        return mr_fail(MR_INVALID_ARGUMENT, "job: there is no job %u", id);
    if (comm->leaders)
        return mr_fail(MR_UNSUPPORTED, "job: KV blocks need a job of at most %zu members",
                       comm->fan);
    *job = comm->group[0];
    return MR_OK;
}

static mr_status place(nic_cluster *nic, const mr_nic_place *p) {
    nic_job *job = NULL;
    uint32_t named = 0;
    mr_status e = kv_job(nic, p->job, &job);
    if (e == MR_OK && p->count > sizeof p->replicas)
        e = mr_fail(MR_INVALID_ARGUMENT, "count: %u replicas", p->count);
    if (e == MR_OK)
        e = check_holders(job, p->owner, p->replicas, p->count, &named);
    if (e == MR_OK && (!p->bytes || p->bytes > UINT32_MAX - NIC_PIECE))
        e = mr_fail(MR_INVALID_ARGUMENT, "bytes: a block of %u", p->bytes);
    if (e == MR_OK && nic_dir_find(nic, p->job, p->layer, p->block))
        e = mr_fail(MR_INVALID_ARGUMENT, "block: job %u, layer %u, block %u is placed already",
                    p->job, p->layer, p->block);
    nic_entry *entry = e == MR_OK ? calloc(1, sizeof *entry) : NULL;
    if (!entry)
        return e == MR_OK ? mr_fail(MR_OUT_OF_MEMORY, "out of memory") : e;
    entry->place = *p;
    entry->place.epoch = 1;
    entry->named = named;
    entry->written = calloc(pages_of(entry) / 8 + 1, 1);
    e = entry->written ? take_all(nic, job, entry, named) : mr_fail(MR_OUT_OF_MEMORY, "no memory");
    if (e != MR_OK) {
        free_entry(entry);
        return e;
    }
    mr_nic_dir_entry row = row_of(entry, job);
    e = tell(nic, job, entry, &row, named, true);
    if (e == MR_OK)
        e = tell(nic, job, entry, &row, everybody(job) & ~named, false);
    if (e != MR_OK) {
        char why[256];
        snprintf(why, sizeof why, "%s", mr_last_error());
        untell(nic, job, entry, everybody(job));
        mr_fail(e, "%s", why);
        give_all(nic, job, entry, named);
        free_entry(entry);
        return e;
    }
    nic_entry **at = &nic->dir->bucket[bucket_of(key(entry))];
    entry->next = *at;
    *at = entry;
    return MR_OK;
}

/* Sends what is written of the block from one holder's memory to others, at `epoch`. */
static mr_status copy(nic_cluster *nic, const nic_job *job, const nic_entry *e, unsigned from,
                      uint32_t to, uint32_t epoch) {
    size_t n = pages_of(e);
    uint8_t *data = malloc(n * NIC_PIECE);
    mr_status status = data ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory for a block");
    if (status == MR_OK)
        status = nic->link->ops->kv_read(nic->link, job->rank[from],
                                         (uint64_t)e->page[from] * NIC_PIECE, data, e->place.bytes);
    for (size_t a = 0, b; status == MR_OK && a < n; a = b) {
        for (b = a; b < n && e->written[b / 8] >> b % 8 & 1;)
            b++;
        if (a == b) {
            b++;
            continue;
        }
        size_t end = b * NIC_PIECE < e->place.bytes ? b * NIC_PIECE : e->place.bytes;
        mr_nic_call c = mr_nic_call_init(MR_NIC_KV_WRITE, job->id);
        c.layer = e->place.layer;
        c.block = e->place.block;
        c.offset = a * NIC_PIECE;
        c.bytes = end - c.offset;
        c.send = data + c.offset;
        nic_op *op;
        status = nic_call_start(nic, job->rank[from], &c, &op);
        if (status != MR_OK)
            break;
        op->xfer[0]->targets = to;
        op->xfer[0]->epoch = epoch;
        status = nic_call_finish(nic, op);
    }
    free(data);
    return status;
}

/* Time for frames that were routed by an old row to leave. */
static mr_status grace(nic_cluster *nic) {
    uint64_t end = nic_now(nic) + 2 * (uint64_t)nic->rto, before;
    mr_status e = MR_OK;
    do {
        before = nic_now(nic);
        e = nic_round(nic, NULL, end - before);
    } while (e == MR_OK && nic_now(nic) < end && nic_now(nic) > before);
    return e;
}

/* Makes `named` the holders. Epochs: of the new row. */
static mr_status change(nic_cluster *nic, nic_job *job, nic_entry *e, uint8_t owner, uint32_t named,
                        uint32_t epoch) {
    uint32_t old = e->named, fresh = named & ~old, gone = old & ~named;
    unsigned from = (unsigned)nic_member(job, e->place.owner);
    mr_status status = take_all(nic, job, e, fresh);
    if (status != MR_OK)
        return status;
    mr_nic_dir_entry row = row_of(e, job);
    row.epoch = epoch;
    row.named = named;
    row.owner = (uint8_t)nic_member(job, owner);
    status = tell(nic, job, e, &row, fresh, true);
    if (status == MR_OK && fresh)
        status = copy(nic, job, e, from, fresh, epoch);
    if (status != MR_OK) { /* the old holders still are: take the new rows back */
        char why[256];
        snprintf(why, sizeof why, "%s", mr_last_error());
        row = row_of(e, job);
        if (nic->lost == MR_OK)
            tell(nic, job, e, &row, fresh, false);
        give_all(nic, job, e, fresh);
        return mr_fail(status, "%s", why);
    }
    e->place.epoch = epoch;
    e->place.owner = owner;
    e->place.count = 0;
    for (unsigned i = 0; i < job->count; i++)
        if (named >> i & 1 && job->rank[i] != owner)
            e->place.replicas[e->place.count++] = job->rank[i];
    e->named = named;
    status = tell(nic, job, e, &row, everybody(job) & ~old & ~fresh, false);
    if (status == MR_OK)
        status = tell(nic, job, e, &row, old & ~gone, false);
    if (status == MR_OK)
        status = tell(nic, job, e, &row, gone, false);
    if (status == MR_OK && gone)
        status = grace(nic);
    give_all(nic, job, e, gone);
    return status;
}

static void forget(nic_cluster *nic, nic_job *job, nic_entry *e) {
    nic_entry **at = &nic->dir->bucket[bucket_of(key(e))];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    give_all(nic, job, e, e->named);
    free_entry(e);
}

static mr_status drop_rows(nic_cluster *nic, nic_job *job, nic_entry *e) {
    uint32_t owner = 1u << nic_member(job, e->place.owner);
    mr_status status = untell(nic, job, e, everybody(job) & ~e->named);
    if (status == MR_OK)
        status = untell(nic, job, e, e->named & ~owner);
    return status == MR_OK ? untell(nic, job, e, owner) : status;
}

mr_status nic_dir_forget(nic_cluster *nic, uint16_t id) {
    nic_job *job = nic_job_find(nic, id);
    mr_status status = MR_OK;
    for (size_t b = 0; b < BUCKETS; b++)
        for (nic_entry *e = nic->dir->bucket[b], *next; e; e = next) {
            next = e->next;
            if (e->place.job != id)
                continue;
            mr_status one = drop_rows(nic, job, e);
            status = status == MR_OK ? one : status;
            forget(nic, job, e);
        }
    return status;
}

typedef struct {
    nic_cluster *nic;
    nic_job *job;
    nic_entry *entry;
} found;

/* Enters the cluster and finds the block; on failure everything is left again. */
static mr_status find(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block, found *f) {
    f->nic = nic_enter(handle);
    if (!f->nic)
        return MR_INVALID_HANDLE;
    f->entry = nic_dir_find(f->nic, job, layer, block);
    f->job = nic_job_find(f->nic, job);
    if (f->entry)
        return MR_OK;
    nic_leave(f->nic);
    return mr_fail(MR_NOT_FOUND, "block: job %u, layer %u, block %u is not placed", job, layer,
                   block);
}

mr_status mr_nic_kv_place(mr_nic *handle, const mr_nic_place *p) {
    if (!p)
        return mr_fail(MR_INVALID_ARGUMENT, "place: is NULL");
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    mr_status e = place(nic, p);
    nic_leave(nic);
    return e;
}

mr_status mr_nic_kv_find(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block,
                         mr_nic_place *p) {
    found f;
    if (!p)
        return mr_fail(MR_INVALID_ARGUMENT, "place: is NULL");
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    *p = f.entry->place;
    nic_leave(f.nic);
    return MR_OK;
}

mr_status mr_nic_kv_move(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block,
                         uint8_t owner, const uint8_t *replicas, size_t count) {
    found f;
    uint32_t named;
    if (count && !replicas)
        return mr_fail(MR_INVALID_ARGUMENT, "replicas: is NULL");
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    e = count > 31 ? mr_fail(MR_INVALID_ARGUMENT, "count: %zu replicas", count)
                   : check_holders(f.job, owner, replicas, count, &named);
    if (e == MR_OK)
        e = change(f.nic, f.job, f.entry, owner, named, f.entry->place.epoch + 1);
    nic_leave(f.nic);
    return e;
}

mr_status mr_nic_kv_replicate(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block,
                              uint8_t rank) {
    found f;
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    int m = nic_member(f.job, rank);
    if (m < 0 || f.entry->named >> m & 1)
        e = mr_fail(MR_INVALID_ARGUMENT, "rank: %u %s", rank,
                    m < 0 ? "is not a member" : "holds the block already");
    else
        e = change(f.nic, f.job, f.entry, f.entry->place.owner, f.entry->named | 1u << m,
                   f.entry->place.epoch);
    nic_leave(f.nic);
    return e;
}

mr_status mr_nic_kv_drop(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block,
                         uint8_t rank) {
    found f;
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    int m = nic_member(f.job, rank);
    if (m < 0 || !(f.entry->named >> m & 1) || rank == f.entry->place.owner)
        e = mr_fail(MR_INVALID_ARGUMENT, "rank: %u %s", rank,
                    rank == f.entry->place.owner ? "owns the block" : "is no replica");
    else
        e = change(f.nic, f.job, f.entry, f.entry->place.owner, f.entry->named & ~(1u << m),
                   f.entry->place.epoch);
    nic_leave(f.nic);
    return e;
}

mr_status mr_nic_kv_remove(mr_nic *handle, uint16_t job, uint16_t layer, uint32_t block) {
    found f;
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    e = drop_rows(f.nic, f.job, f.entry);
    if (e == MR_OK)
        e = grace(f.nic);
    forget(f.nic, f.job, f.entry);
    nic_leave(f.nic);
    return e;
}

mr_status mr_nic_kv_peek(mr_nic *handle, uint8_t rank, uint16_t job, uint16_t layer, uint32_t block,
                         size_t offset, void *data, size_t bytes) {
    found f;
    if (!data)
        return mr_fail(MR_INVALID_ARGUMENT, "data: is NULL");
    mr_status e = find(handle, job, layer, block, &f);
    if (e != MR_OK)
        return e;
    int m = nic_member(f.job, rank);
    if (m < 0 || !(f.entry->named >> m & 1))
        e = mr_fail(MR_NOT_FOUND, "rank: %u does not hold job %u, layer %u, block %u", rank, job,
                    layer, block);
    else if (offset > f.entry->place.bytes || bytes > f.entry->place.bytes - offset)
        e = mr_fail(MR_INVALID_ARGUMENT, "bytes: %zu at offset %zu of a block of %u", bytes, offset,
                    f.entry->place.bytes);
    else
        e = f.nic->link->ops->kv_read(f.nic->link, rank,
                                      (uint64_t)f.entry->page[m] * NIC_PIECE + offset, data, bytes);
    nic_leave(f.nic);
    return e;
}

mr_status mr_nic_kv_free(mr_nic *handle, uint8_t rank, uint64_t *bytes) {
    if (!bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "bytes: is NULL");
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    mr_status e = MR_OK;
    if (rank < nic->nodes)
        *bytes = (uint64_t)nic->dir->pool[rank].free * NIC_PIECE;
    else
        e = mr_fail(MR_INVALID_ARGUMENT, "rank: %u, but the cluster has %u nodes", rank,
                    nic->nodes);
    nic_leave(nic);
    return e;
}
