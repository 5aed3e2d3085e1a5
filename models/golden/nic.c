#include "models/golden/nic.h"

#include <stdlib.h>
#include <string.h>

#include "models/golden/nic_internal.h"

mr_gnic *mr_gnic_create(const mr_gnic_outputs *outputs, size_t kv_pages) {
    mr_gnic *nic = calloc(1, sizeof *nic);
    if (nic == NULL)
        return NULL;
    nic->out = *outputs;
    nic->rank = -1;
    nic->pages = kv_pages;
    nic->kv = calloc(kv_pages + 1, MR_NIC_KV_PAGE);
    nic->page_valid = calloc(kv_pages + 1, 1);
    if (nic->kv == NULL || nic->page_valid == NULL) {
        mr_gnic_destroy(nic);
        return NULL;
    }
    return nic;
}

void mr_gnic_destroy(mr_gnic *nic) {
    if (nic == NULL)
        return;
    for (slot *s = nic->slots; s < nic->slots + MR_GNIC_SLOTS; s++)
        gnic_slot_free(nic, s);
    free(nic->entries);
    free(nic->kv);
    free(nic->page_valid);
    free(nic);
}

/* ---- tables ---------------------------------------------------------------------------------- */

int gnic_member_of(const job_row *job, unsigned rank) {
    for (unsigned i = 0; i < job->count; i++)
        if (job->rank[i] == rank)
            return (int)i;
    return -1;
}

int mr_gnic_member(const mr_gnic *nic, uint16_t job, unsigned rank) {
    for (const job_row *row = nic->jobs; row < nic->jobs + MR_GNIC_JOBS; row++)
        if (row->valid && row->job == job)
            return gnic_member_of(row, rank);
    return -1;
}

job_row *gnic_job_row(mr_gnic *nic, uint16_t job) {
    for (job_row *row = nic->jobs; row < nic->jobs + MR_GNIC_JOBS; row++)
        if (row->valid && row->job == job)
            return row;
    return NULL;
}

int mr_gnic_set_rank(mr_gnic *nic, unsigned rank) {
    if (rank >= MR_GNIC_NODES)
        return -1;
    nic->rank = (int)rank;
    for (job_row *row = nic->jobs; row < nic->jobs + MR_GNIC_JOBS; row++)
        if (row->valid)
            row->self = gnic_member_of(row, rank);
    return 0;
}

void mr_gnic_set_chain(mr_gnic *nic, bool chain) { nic->chain = chain; }

void mr_gnic_set_timers(mr_gnic *nic, uint64_t rto, uint64_t slot_timeout) {
    nic->rto = rto;
    nic->slot_timeout = slot_timeout;
}

int mr_gnic_node(mr_gnic *nic, unsigned rank, const uint8_t mac[6], uint32_t ip, uint16_t udp_port,
                 int netport) {
    if (rank >= MR_GNIC_NODES || netport < 0 || netport > 1)
        return -1;
    node_row *row = &nic->nodes[rank];
    memcpy(row->mac, mac, 6);
    row->ip = ip;
    row->udp_port = udp_port;
    row->netport = netport;
    row->valid = true;
    return 0;
}

int mr_gnic_node_remove(mr_gnic *nic, unsigned rank) {
    if (rank >= MR_GNIC_NODES)
        return -1;
    nic->nodes[rank].valid = false;
    return 0;
}

/* Slots of a job whose row changes have lost their meaning. */
static void drop_slots(mr_gnic *nic, uint16_t job) {
    for (slot *s = nic->slots; s < nic->slots + MR_GNIC_SLOTS; s++)
        if (s->state != SLOT_FREE && s->key.job == job)
            gnic_slot_free(nic, s);
}

int mr_gnic_job(mr_gnic *nic, uint16_t job, const uint8_t *members, unsigned count, unsigned root) {
    if (count < 1 || count > MR_NIC_MAX_SHARDS)
        return -1;
    job_row made = {.valid = true, .job = job, .count = count};
    for (unsigned i = 0; i < count; i++) { /* insertion keeps the ranks ascending */
        unsigned at = i;
        for (; at > 0 && made.rank[at - 1] > members[i]; at--)
            made.rank[at] = made.rank[at - 1];
        if (at > 0 && made.rank[at - 1] == members[i])
            return -1;
        made.rank[at] = members[i];
    }
    int root_index = gnic_member_of(&made, root);
    if (root_index < 0)
        return -1;
    made.root = (unsigned)root_index;
    made.self = nic->rank < 0 ? -1 : gnic_member_of(&made, (unsigned)nic->rank);

    job_row *row = gnic_job_row(nic, job);
    for (job_row *r = nic->jobs; row == NULL && r < nic->jobs + MR_GNIC_JOBS; r++)
        if (!r->valid)
            row = r;
    if (row == NULL)
        return -1;
    drop_slots(nic, job);
    *row = made;
    return 0;
}

int mr_gnic_job_remove(mr_gnic *nic, uint16_t job) {
    job_row *row = gnic_job_row(nic, job);
    if (row == NULL)
        return -1;
    drop_slots(nic, job);
    row->valid = false;
    return 0;
}

const uint64_t *mr_gnic_counters(const mr_gnic *nic) { return nic->counters; }

unsigned mr_gnic_slots_used(const mr_gnic *nic) {
    unsigned used = 0;
    for (const slot *s = nic->slots; s < nic->slots + MR_GNIC_SLOTS; s++)
        used += s->state != SLOT_FREE;
    return used;
}

unsigned mr_gnic_parked(const mr_gnic *nic) { return nic->parked; }

/* ---- frames ---------------------------------------------------------------------------------- */

static unsigned deliver(mr_gnic *nic, const parsed *p) {
    if (p->too_big)
        return MR_NIC_CNT_OVERRUN;
    nic->out.deliver(nic->out.context, p->frame, p->bytes);
    if ((p->header.flags & MR_NIC_FL_RELIABLE) && p->header.opcode != MR_NIC_OP_KV_DATA)
        gnic_ack(nic, &p->header);
    return MR_NIC_CNT_HOST_DELIVERED;
}

/* A query of the own host travels; one from the network has arrived. */
static unsigned query(mr_gnic *nic, const job_row *job, const parsed *p) {
    if (p->source != MR_GNIC_HOST)
        return deliver(nic, p);
    uint32_t everyone = (uint32_t)((UINT64_C(1) << job->count) - 1);
    uint32_t self = job->self < 0 ? 0 : 1u << job->self;
    if (p->too_big)
        return MR_NIC_CNT_OVERRUN;
    gnic_send_members(nic, job, everyone & ~self, &p->header, p->payload, p->payload_bytes);
    return self != 0 ? deliver(nic, p) : MR_NIC_CNT_HOST_DELIVERED;
}

static unsigned control(mr_gnic *nic, const job_row *job, unsigned member, const parsed *p) {
    const mr_nic_header *h = &p->header;
    if (h->opcode == MR_NIC_OP_ACK && gnic_acknowledged(nic, job, member, h))
        return MR_NIC_CNT_CONTROL;
    slot_key key = {h->job, h->layer, h->head0, h->request, h->block};
    static const uint8_t none[8];
    gnic_event(nic, MR_NIC_EV_CONTROL, h->dtype, &key, 1u << member, h,
               h->opcode == MR_NIC_OP_NACK ? p->payload : none);
    return MR_NIC_CNT_CONTROL;
}

static unsigned act(mr_gnic *nic, const parsed *p) {
    const mr_nic_header *h = &p->header;
    job_row *job = gnic_job_row(nic, h->job);
    if (job == NULL)
        return MR_NIC_CNT_NO_ENTRY;
    if (h->opcode <= MR_NIC_OP_KV_DATA)
        return gnic_kv_frame(nic, job, p);
    int member = gnic_member_of(job, h->shard);
    if (member < 0)
        return MR_NIC_CNT_NO_ENTRY;
    switch (h->opcode) {
    case MR_NIC_OP_QUERY:
        return query(nic, job, p);
    case MR_NIC_OP_BARRIER:
        if (h->flags & MR_NIC_FL_LAST)
            return deliver(nic, p);
        return gnic_contribute(nic, job, (unsigned)member, p);
    case MR_NIC_OP_PARTIAL:
    case MR_NIC_OP_REDUCE:
        return gnic_contribute(nic, job, (unsigned)member, p);
    case MR_NIC_OP_ACK:
    case MR_NIC_OP_NACK:
        return control(nic, job, (unsigned)member, p);
    default: /* MERGED, RESULT */
        return deliver(nic, p);
    }
}

/* The network port that leads to a frame's destination; port 0 where no node has its MAC. */
static int port_to(const mr_gnic *nic, const uint8_t *mac) {
    for (unsigned rank = 0; rank < MR_GNIC_NODES; rank++)
        if (nic->nodes[rank].valid && memcmp(nic->nodes[rank].mac, mac, 6) == 0)
            return nic->nodes[rank].netport;
    return 0;
}

/* Whether a frame of the own host is for somebody else: other protocols leave too, runts do not. */
static bool elsewhere(const mr_gnic *nic, unsigned fate, const uint8_t *frame) {
    if (fate == MR_NIC_CNT_NOT_IP || fate == MR_NIC_CNT_NOT_MINE)
        return true;
    if (fate != MR_NIC_CNT_BAD_IP_CHECKSUM && fate != MR_NIC_CNT_FRAGMENT)
        return false;
    const node_row *own = nic->rank < 0 ? NULL : &nic->nodes[nic->rank];
    return own == NULL || !own->valid || memcmp(frame, own->mac, 6) != 0;
}

void mr_gnic_rx(mr_gnic *nic, int source, const uint8_t *frame, size_t bytes) {
    parsed p = {.source = source, .too_big = bytes > MR_GNIC_BUFFER};
    unsigned fate = gnic_parse(nic, frame, bytes, &p);
    bool from_host = source == MR_GNIC_HOST;
    bool leaves =
        from_host ? elsewhere(nic, fate, frame) : fate == MR_NIC_CNT_NOT_MINE && nic->chain;
    if (leaves && p.too_big) {
        fate = MR_NIC_CNT_OVERRUN;
    } else if (leaves) {
        gnic_send_raw(nic, from_host ? port_to(nic, frame) : 1 - source, frame, bytes);
        fate = from_host ? MR_NIC_CNT_NOT_MINE : MR_NIC_CNT_PASSED;
    } else if (fate == MR_NIC_FATE_NONE) {
        fate = act(nic, &p);
    }
    if (from_host) {
        nic->counters[MR_NIC_CNT_HOST_FRAMES]++;
        if (fate <= MR_NIC_CNT_OVERRUN && fate != MR_NIC_CNT_NOT_MINE)
            nic->counters[MR_NIC_CNT_HOST_REFUSED]++;
    } else {
        nic->counters[MR_NIC_CNT_RX_FRAMES]++;
        nic->counters[MR_NIC_CNT_RX_BYTES] += bytes;
        nic->counters[fate]++;
    }
}
