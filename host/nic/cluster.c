/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a cluster, its tables, its jobs. */
#include <stdlib.h>

#include "host/nic/internal.h"
#include "host/nic/tables.h"
#include "host/nic/inside.h"

enum { RTO = 8192, SLOT_TIMEOUT = 1 << 22 };

int nic_member(const nic_job *job, unsigned rank) {
    for (unsigned i = 0; i < job->count; i++)
        if (job->rank[i] == rank)
            return (int)i;
    return -1;
}

nic_job *nic_job_find(nic_cluster *nic, uint16_t id) {
    for (size_t j = 0; j < nic->jobs; j++)
        if (nic->job[j]->id == id)
            return nic->job[j];
    return NULL;
}

nic_comm *nic_comm_find(nic_cluster *nic, uint16_t id) {
    nic_comm *c = nic->comms;
    while (c && c->id != id)
        c = c->next;
    return c;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static mr_status send_options(nic_cluster *nic, unsigned rank) {
    mr_nic_desc desc;
    mr_nic_desc_options(desc, &(mr_nic_options_desc){.rank = (uint8_t)rank,
                                                     .rto = nic->rto,
                                                     .slot_timeout = nic->slot_timeout});
    return nic->link->ops->command(nic->link, rank, desc, 1);
}

/* Every NIC learns its rank, its timers and where everybody is. */
static mr_status send_nodes(nic_cluster *nic) {
    mr_nic_desc *desc = calloc(nic->nodes, sizeof *desc);
    if (!desc)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    for (unsigned r = 0; r < nic->nodes; r++) {
        mr_nic_node_desc d = {.rank = (uint8_t)r, .ip = nic->row[r].ip, .port = nic->row[r].port};
        memcpy(d.mac, nic->row[r].mac, sizeof d.mac);
        mr_nic_desc_node(desc[r], &d);
    }
    mr_status e = MR_OK;
    for (unsigned r = 0; e == MR_OK && r < nic->nodes; r++) {
        e = nic->link->ops->command(nic->link, r, desc[0], nic->nodes);
        if (e == MR_OK)
            e = send_options(nic, r);
    }
    free(desc);
    return e;
}

static void free_job(nic_job *job) {
    for (unsigned i = 0; job && i < job->count; i++) {
        nic_seat *seat = &job->seat[i];
        while (seat->queue) { /* what belongs to a call has gone with it */
            nic_xfer *x = seat->queue;
            seat->queue = x->next;
            nic_xfer_free(x);
        }
        while (seat->early) {
            nic_early *e = seat->early;
            seat->early = e->next;
            free(e);
        }
    }
    free(job);
}

static void destroy_cluster(mr_obj *obj) {
    nic_cluster *nic = (nic_cluster *)obj;
    nic_dir_destroy(nic);
    for (size_t j = 0; j < nic->jobs; j++)
        free_job(nic->job[j]);
    while (nic->comms) {
        nic_comm *c = nic->comms;
        nic->comms = c->next;
        free(c);
    }
    for (unsigned r = 0; nic->rank && r < nic->nodes; r++)
        mr_nic_repeats_destroy(nic->rank[r].repeats);
    free(nic->rank);
    free(nic->base_of);
    if (nic->link)
        nic->link->ops->close(nic->link);
    pthread_mutex_destroy(&nic->lock);
    free(nic);
}

static mr_status set_up(nic_cluster *nic) {
    nic->nodes = nic->link->ops->nodes(nic->link);
    nic->rank = calloc(nic->nodes, sizeof *nic->rank);
    nic->base_of = calloc(65536, sizeof *nic->base_of);
    if (!nic->rank || !nic->base_of)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for %u ranks", nic->nodes);
    for (unsigned r = 0; r < nic->nodes; r++) {
        mr_nic_node_row *row = &nic->row[r];
        row->rank = (uint8_t)r;
        mr_nic_default_address(r, row->mac, &row->ip, &row->port);
        nic->rank[r].repeats = mr_nic_repeats_create();
        if (!nic->rank[r].repeats)
            return mr_fail(MR_OUT_OF_MEMORY, "out of memory for rank %u", r);
    }
    mr_status e = nic_dir_create(nic);
    return e != MR_OK ? e : send_nodes(nic);
}

mr_status mr_nic_open(const char *uri, mr_nic **out) {
    if (!uri || !out)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", uri ? "nic" : "uri");
    nic_cluster *nic = calloc(1, sizeof *nic);
    if (!nic)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    mr_obj_init(&nic->obj, destroy_cluster);
    pthread_mutex_init(&nic->lock, NULL);
    nic->rto = RTO;
    nic->slot_timeout = SLOT_TIMEOUT;
    mr_status e = mr_nic_link_open(uri, &nic->link);
    if (e == MR_OK)
        e = set_up(nic);
    void *handle = e == MR_OK ? mr_handle_new(MR_KIND_NIC, &nic->obj) : NULL;
    if (!handle) {
        mr_obj_unref(&nic->obj);
        return e == MR_OK ? MR_LIMIT : e;
    }
    *out = handle;
    return MR_OK;
}

nic_cluster *nic_enter(mr_nic *handle) {
    nic_cluster *nic = mr_handle_get(handle, MR_KIND_NIC, "nic");
    if (nic)
        pthread_mutex_lock(&nic->lock);
    return nic;
}

void nic_leave(nic_cluster *nic) {
    pthread_mutex_unlock(&nic->lock);
    mr_obj_unref(&nic->obj);
}

mr_nic_link *mr_nic_link_of(mr_nic *handle) {
    nic_cluster *nic = nic_enter(handle);
    mr_nic_link *link = nic ? nic->link : NULL;
    if (nic)
        nic_leave(nic);
    return link;
}

mr_status mr_nic_close(mr_nic *handle) {
    nic_cluster *nic = mr_handle_take(handle, MR_KIND_NIC, "nic");
    if (!nic)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&nic->lock);
    nic->closed = true;
    while (nic->ops)
        nic_op_end(nic->ops, MR_CANCELLED, NULL, "the cluster was closed");
    nic_leave(nic);
    return MR_OK;
}

/* ---- asking -----------------------------------------------------------------------------------
 */

mr_status mr_nic_get_info(mr_nic *handle, mr_nic_info *info) {
    if (!info)
        return mr_fail(MR_INVALID_ARGUMENT, "info: is NULL");
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    *info = (mr_nic_info){.nodes = nic->nodes,
                          .cycles = nic_now(nic),
                          .kv_bytes = nic->link->ops->kv_bytes(nic->link),
                          .resent = nic->resent,
                          .discarded = nic->discarded,
                          .refused = nic->refused};
    nic_leave(nic);
    return MR_OK;
}

static mr_status counter_index(const char *name, unsigned *index) {
    if (!name)
        return mr_fail(MR_INVALID_ARGUMENT, "name: is NULL");
    for (*index = 0; *index < MR_NIC_COUNTERS; ++*index)
        if (!strcmp(mr_nic_counter_name(*index), name))
            return MR_OK;
    return mr_fail(MR_NOT_FOUND, "name: a NIC has no counter '%s'", name);
}

static mr_status sum_counter(mr_nic *handle, int rank, const char *name, uint64_t *value) {
    unsigned index;
    if (!value)
        return mr_fail(MR_INVALID_ARGUMENT, "value: is NULL");
    mr_status e = counter_index(name, &index);
    nic_cluster *nic = e == MR_OK ? nic_enter(handle) : NULL;
    if (!nic)
        return e == MR_OK ? MR_INVALID_HANDLE : e;
    uint64_t sum = 0, one = 0;
    unsigned first = rank < 0 ? 0 : (unsigned)rank, last = rank < 0 ? nic->nodes : first + 1;
    if (last > nic->nodes)
        e = mr_fail(MR_INVALID_ARGUMENT, "rank: %d, but the cluster has %u nodes", rank,
                    nic->nodes);
    for (unsigned r = first; e == MR_OK && r < last; r++) {
        e = nic->link->ops->counter(nic->link, r, index, &one);
        sum += one;
    }
    nic_leave(nic);
    if (e == MR_OK)
        *value = sum;
    return e;
}

mr_status mr_nic_counter(mr_nic *nic, uint8_t rank, const char *name, uint64_t *value) {
    return sum_counter(nic, rank, name, value);
}

mr_status mr_nic_total(mr_nic *nic, const char *name, uint64_t *value) {
    return sum_counter(nic, -1, name, value);
}

mr_status mr_nic_set_timers(mr_nic *handle, uint32_t rto, uint32_t slot_timeout) {
    if (rto < 64 || rto > 1u << 24)
        return mr_fail(MR_INVALID_ARGUMENT, "rto: %u, not in 64..%u", rto, 1u << 24);
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    nic->rto = rto;
    nic->slot_timeout = slot_timeout;
    mr_status e = MR_OK;
    for (unsigned r = 0; e == MR_OK && r < nic->nodes; r++)
        e = send_options(nic, r);
    nic_leave(nic);
    return e;
}

mr_status mr_nic_advance(mr_nic *handle, uint64_t cycles) {
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    uint64_t end = nic_now(nic) + cycles, before;
    mr_status e = MR_OK;
    do {
        before = nic_now(nic);
        e = nic_round(nic, NULL, end > before ? end - before : 0);
    } while (e == MR_OK && nic_now(nic) < end && nic_now(nic) > before);
    nic_leave(nic);
    return e;
}

/* ---- jobs -------------------------------------------------------------------------------------
 */

static mr_status send_job(nic_cluster *nic, const nic_job *job, bool valid) {
    mr_nic_desc desc;
    mr_nic_job_desc d = {.row = (uint8_t)job->row,
                         .job = job->id,
                         .count = (uint8_t)job->count,
                         .root = (uint8_t)job->root};
    memcpy(d.ranks, job->rank, sizeof d.ranks);
    if (valid)
        mr_nic_desc_job(desc, &d);
    else
        mr_nic_desc_job_remove(desc, d.row);
    mr_status e = MR_OK;
    for (unsigned i = 0; e == MR_OK && i < job->count; i++)
        e = nic->link->ops->command(nic->link, job->rank[i], desc, 1);
    return e;
}

/* A row that is free at every member. */
static int free_row(const nic_cluster *nic, const nic_job *job) {
    uint32_t used = 0;
    for (size_t j = 0; j < nic->jobs; j++)
        for (unsigned i = 0; i < job->count; i++)
            if (nic_member(nic->job[j], job->rank[i]) >= 0)
                used |= 1u << nic->job[j]->row;
    for (int row = 0; row < MR_NIC_MAX_JOBS; row++)
        if (!(used >> row & 1))
            return row;
    return -1;
}

static mr_status add_job(nic_cluster *nic, nic_comm *comm, uint16_t id, const uint8_t *members,
                         size_t count, uint8_t root, nic_job **out) {
    if (nic->jobs == sizeof nic->job / sizeof nic->job[0])
        return mr_fail(MR_LIMIT, "id: %zu jobs are the limit of a cluster", nic->jobs);
    nic_job *job = calloc(1, sizeof *job);
    if (!job)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    bool in[256] = {false};
    for (size_t i = 0; i < count; i++)
        in[members[i]] = true;
    for (unsigned r = 0; r < 256; r++)
        if (in[r]) {
            job->root = r == root ? job->count : job->root;
            job->rank[job->count++] = (uint8_t)r;
        }
    job->id = id;
    job->comm = comm;
    job->base = nic->base_of[id];
    for (size_t i = 0; i < count; i++)
        job->seat[i].next = job->base;
    int row = free_row(nic, job);
    if (row < 0) {
        free(job);
        return mr_fail(MR_LIMIT, "id: a member's NIC has no row left for job %u", id);
    }
    job->row = (unsigned)row;
    nic->job[nic->jobs++] = *out = job;
    return send_job(nic, job, true);
}

static mr_status remove_job(nic_cluster *nic, nic_job *job) {
    mr_status e = nic_dir_forget(nic, job->id);
    mr_status sent = send_job(nic, job, false);
    for (size_t j = 0; j < nic->jobs; j++)
        if (nic->job[j] == job) {
            nic->job[j] = nic->job[--nic->jobs];
            break;
        }
    uint32_t most = job->base;
    for (unsigned i = 0; i < job->count; i++)
        if ((int32_t)(job->seat[i].next - most) > 0)
            most = job->seat[i].next;
    nic->base_of[job->id] = most + 64; /* what still flies is late there */
    free_job(job);
    return e != MR_OK ? e : sent;
}

static mr_status remove_comm(nic_cluster *nic, nic_comm *comm) {
    mr_status e = MR_OK;
    for (size_t g = 0; g < comm->groups; g++)
        if (comm->group[g]) {
            mr_status one = remove_job(nic, comm->group[g]);
            e = e == MR_OK ? one : e;
        }
    if (comm->leaders) {
        mr_status one = remove_job(nic, comm->leaders);
        e = e == MR_OK ? one : e;
    }
    nic_comm **at = &nic->comms;
    while (*at && *at != comm)
        at = &(*at)->next;
    if (*at)
        *at = comm->next;
    free(comm);
    return e;
}

static mr_status check_members(const nic_cluster *nic, uint16_t id, const uint8_t *members,
                               size_t count, uint8_t root, size_t fan) {
    bool in[256] = {false};
    if (!members || count < 1 || count > 256)
        return mr_fail(MR_INVALID_ARGUMENT, "count: %zu members, not 1..256", count);
    for (size_t i = 0; i < count; i++) {
        if (members[i] >= nic->nodes)
            return mr_fail(MR_INVALID_ARGUMENT,
                           "members[%zu]: rank %u, but the cluster has %u "
                           "nodes",
                           i, members[i], nic->nodes);
        if (in[members[i]])
            return mr_fail(MR_INVALID_ARGUMENT, "members[%zu]: rank %u is given twice", i,
                           members[i]);
        in[members[i]] = true;
    }
    if (!in[root])
        return mr_fail(MR_INVALID_ARGUMENT, "root: rank %u is not a member", root);
    if (fan < 2 || fan > MR_NIC_MAX_MEMBERS || (count + fan - 1) / fan > MR_NIC_MAX_MEMBERS)
        return mr_fail(MR_INVALID_ARGUMENT, "fan: %zu for %zu members", fan, count);
    size_t groups = (count + fan - 1) / fan, ids = groups > 1 ? groups + 1 : 1;
    for (size_t i = 0; i < ids; i++)
        if (id + i > UINT16_MAX || nic_job_find((nic_cluster *)nic, (uint16_t)(id + i)))
            return mr_fail(MR_INVALID_ARGUMENT, "id: %zu is %s", id + i,
                           id + i > UINT16_MAX ? "beyond 65535" : "in use");
    return MR_OK;
}

static mr_status add_groups(nic_cluster *nic, nic_comm *comm, const uint8_t *members) {
    mr_status e = MR_OK;
    bool in[256] = {false};
    comm->groups = (comm->count + comm->fan - 1) / comm->fan;
    for (size_t g = 0; e == MR_OK && g < comm->groups; g++) {
        const uint8_t *first = members + g * comm->fan;
        size_t n =
            comm->count - g * comm->fan < comm->fan ? comm->count - g * comm->fan : comm->fan;
        comm->leader[g] = first[0];
        for (size_t i = 0; i < n; i++) {
            in[first[i]] = true;
            comm->group_of[first[i]] = (uint8_t)g;
            if (first[i] == comm->root)
                comm->leader[g] = comm->root;
        }
        e = add_job(nic, comm, (uint16_t)(comm->id + g), first, n, comm->leader[g],
                    &comm->group[g]);
    }
    for (unsigned r = 0, n = 0; r < 256; r++)
        if (in[r])
            comm->rank[n++] = (uint8_t)r;
    if (e == MR_OK && comm->groups > 1)
        e = add_job(nic, comm, (uint16_t)(comm->id + comm->groups), comm->leader, comm->groups,
                    comm->root, &comm->leaders);
    return e;
}

mr_status mr_nic_job_create(mr_nic *handle, uint16_t id, const uint8_t *members, size_t count,
                            uint8_t root, size_t fan) {
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    fan = fan ? fan : MR_NIC_MAX_MEMBERS;
    mr_status e = check_members(nic, id, members, count, root, fan);
    nic_comm *comm = e == MR_OK ? calloc(1, sizeof *comm) : NULL;
    if (e == MR_OK && !comm)
        e = mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if (e == MR_OK) {
        *comm = (nic_comm){.next = nic->comms, .id = id, .count = count, .fan = fan, .root = root};
        nic->comms = comm;
        e = add_groups(nic, comm, members);
        if (e != MR_OK) {
            char why[256];
            strncpy(why, mr_last_error(), sizeof why - 1);
            why[sizeof why - 1] = 0;
            remove_comm(nic, comm);
            mr_fail(e, "%s", why);
        }
    }
    nic_leave(nic);
    return e;
}

mr_status mr_nic_job_destroy(mr_nic *handle, uint16_t id) {
    nic_cluster *nic = nic_enter(handle);
    if (!nic)
        return MR_INVALID_HANDLE;
    nic_comm *comm = nic_comm_find(nic, id);
    mr_status e = comm ? MR_OK : mr_fail(MR_NOT_FOUND, "id: there is no job %u", id);
    for (nic_op *op = nic->ops, *next; comm && op; op = next) {
        next = op->next;
        if (op->comm == comm)
            nic_op_end(op, MR_CANCELLED, NULL, "the job was destroyed");
    }
    if (comm)
        e = remove_comm(nic, comm);
    nic_leave(nic);
    return e;
}
