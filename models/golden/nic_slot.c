/* Slots: contributions in, one result out; and what keeps a result until everyone has it. */
#include <stdlib.h>
#include <string.h>

#include "models/golden/nic_internal.h"

static bool same_key(const slot_key *a, const slot_key *b) {
    return a->job == b->job && a->layer == b->layer && a->head0 == b->head0 &&
           a->request == b->request && a->block == b->block;
}

static slot_key key_of(const mr_nic_header *h) {
    slot_key key = {h->job, h->layer, h->head0, h->request, h->block};
    return key;
}

static slot *find(mr_gnic *nic, const slot_key *key) {
    for (slot *s = nic->slots; s < nic->slots + MR_GNIC_SLOTS; s++)
        if (s->state != SLOT_FREE && same_key(&s->key, key))
            return s;
    return NULL;
}

static bool is_completed(const mr_gnic *nic, const slot_key *key) {
    for (size_t i = 0; i < nic->completed_count; i++)
        if (same_key(&nic->completed[i], key))
            return true;
    return false;
}

static void complete(mr_gnic *nic, const slot_key *key) {
    nic->completed[nic->completed_next] = *key;
    nic->completed_next = (nic->completed_next + 1) % MR_GNIC_COMPLETED;
    if (nic->completed_count < MR_GNIC_COMPLETED)
        nic->completed_count++;
}

void gnic_slot_free(mr_gnic *nic, slot *s) {
    for (unsigned i = 0; i < MR_NIC_MAX_SHARDS; i++) {
        if (s->parked[i].payload != NULL)
            nic->parked--;
        free(s->parked[i].payload);
        s->parked[i].payload = NULL;
    }
    free(s->payload);
    s->payload = NULL;
    s->state = SLOT_FREE;
}

static bool agrees(const mr_nic_header *a, const mr_nic_header *b) {
    unsigned operator= a->opcode == MR_NIC_OP_REDUCE ? MR_NIC_FL_OPERATOR : 0;
    return a->opcode == b->opcode && a->heads == b->heads && a->dim == b->dim &&
           a->dtype == b->dtype && a->shards == b->shards &&
           ((a->flags ^ b->flags) & operator) == 0;
}

/* ---- results -----------------------------------------------------------------------------------
 */

static mr_nic_header result_header(const mr_gnic *nic, const slot *s) {
    mr_nic_header h = s->first;
    h.opcode = s->first.opcode == MR_NIC_OP_PARTIAL  ? MR_NIC_OP_MERGED
               : s->first.opcode == MR_NIC_OP_REDUCE ? MR_NIC_OP_RESULT
                                                     : MR_NIC_OP_BARRIER;
    h.flags = MR_NIC_FL_LAST;
    if (h.opcode == MR_NIC_OP_RESULT)
        h.flags |= s->first.flags & MR_NIC_FL_OPERATOR;
    if (s->reliable)
        h.flags |= MR_NIC_FL_RELIABLE;
    h.shard = (uint8_t)nic->rank;
    h.offset = 0;
    return h;
}

static void finish(mr_gnic *nic, const job_row *job, slot *s) {
    static const unsigned work[] = {MR_NIC_CNT_MERGED, MR_NIC_CNT_REDUCED, MR_NIC_CNT_RELEASED};
    uint32_t everyone = (uint32_t)((UINT64_C(1) << job->count) - 1);
    uint8_t payload[MR_NIC_MAX_UDP_PAYLOAD];

    s->result = result_header(nic, s);
    s->payload_bytes = 0;
    if (s->result.opcode != MR_NIC_OP_BARRIER)
        s->payload_bytes = mr_nic_acc_finish(&s->acc, payload);
    nic->counters[work[s->result.opcode == MR_NIC_OP_MERGED   ? 0
                       : s->result.opcode == MR_NIC_OP_RESULT ? 1
                                                              : 2]]++;
    bool to_all = s->everyone || s->result.opcode == MR_NIC_OP_BARRIER;
    uint32_t targets = to_all ? everyone : 1u << job->root;
    gnic_send_members(nic, job, targets, &s->result, payload, s->payload_bytes);

    s->silent = job->self < 0 ? targets : targets & ~(1u << job->self);
    if (!s->reliable || s->silent == 0) {
        gnic_slot_free(nic, s);
        return;
    }
    s->state = SLOT_DONE;
    s->tries = 0;
    s->since = nic->now;
    s->payload = malloc(s->payload_bytes + 1);
    if (s->payload == NULL)
        abort(); /* a model without memory has nothing to say */
    memcpy(s->payload, payload, s->payload_bytes);
}

/* ---- contributions -----------------------------------------------------------------------------
 */

static slot *free_slot(mr_gnic *nic) {
    slot *s = nic->slots;
    while (s < nic->slots + MR_GNIC_SLOTS && s->state != SLOT_FREE)
        s++;
    return s == nic->slots + MR_GNIC_SLOTS ? NULL : s;
}

static void open_slot(mr_gnic *nic, slot *s, const slot_key *key, const mr_nic_header *h,
                      unsigned member) {
    s->state = SLOT_FILLING;
    s->key = *key;
    s->first = *h;
    s->lowest = member;
    s->in = s->folded = 0;
    s->reliable = s->everyone = false;
    s->since = nic->now;
    if (h->opcode != MR_NIC_OP_BARRIER)
        mr_nic_acc_begin(&s->acc, h->opcode == MR_NIC_OP_REDUCE, h->dtype,
                         (h->flags & MR_NIC_FL_OPERATOR) >> MR_NIC_FL_OPERATOR_SHIFT, h->heads,
                         h->dim);
}

/* Folds what can be folded now, in ascending order: all of a complete slot, else those below whom
 * nobody is missing. */
static void fold_parked(mr_gnic *nic, const job_row *job, slot *s, bool complete_slot) {
    for (unsigned i = 0; i < job->count; i++) {
        if (s->folded >> i & 1)
            continue;
        if (!(s->in >> i & 1)) {
            if (complete_slot)
                continue;
            return;
        }
        mr_nic_acc_fold(&s->acc, s->parked[i].payload, s->parked[i].natural);
        s->folded |= 1u << i;
        free(s->parked[i].payload);
        s->parked[i].payload = NULL;
        nic->parked--;
    }
}

unsigned gnic_contribute(mr_gnic *nic, job_row *job, unsigned member, const parsed *p) {
    const mr_nic_header *h = &p->header;
    slot_key key = key_of(h);
    slot *s = find(nic, &key);
    bool reliable = (h->flags & MR_NIC_FL_RELIABLE) != 0;

    bool old = job->started && (int32_t)(h->request - (job->newest - 63)) < 0;
    if (old || (s != NULL ? s->state == SLOT_DONE : is_completed(nic, &key))) {
        if (reliable)
            gnic_ack(nic, h);
        return MR_NIC_CNT_LATE;
    }
    if (s != NULL && (s->in >> member & 1)) {
        if (reliable)
            gnic_ack(nic, h);
        return MR_NIC_CNT_DUPLICATE;
    }
    if (s != NULL && !agrees(&s->first, h)) {
        gnic_nack(nic, h, MR_NIC_NACK_MISMATCH, 0);
        return MR_NIC_CNT_MISMATCH;
    }

    uint32_t in = (s == NULL ? 0 : s->in) | 1u << member;
    uint32_t below = (1u << member) - 1, folded = s == NULL ? 0 : s->folded;
    bool complete_slot = (unsigned)__builtin_popcount(in) == h->shards;
    bool at_once = complete_slot || (folded & below) == below || h->opcode == MR_NIC_OP_BARRIER;
    bool room = at_once || nic->parked < MR_GNIC_PARKED;
    if (s == NULL)
        s = free_slot(nic);
    if (s == NULL || !room) {
        gnic_nack(nic, h, MR_NIC_NACK_NO_SLOT, 0);
        return MR_NIC_CNT_NO_SLOT;
    }
    if (p->too_big && h->opcode != MR_NIC_OP_BARRIER)
        return MR_NIC_CNT_OVERRUN;
    if (s->state == SLOT_FREE)
        open_slot(nic, s, &key, h, member);

    s->in = in;
    s->reliable |= reliable;
    s->everyone |= (h->flags & MR_NIC_FL_EVERYONE) != 0;
    if (member < s->lowest) {
        s->lowest = member;
        s->first.epoch = h->epoch;
    }
    if (!job->started || (int32_t)(h->request - job->newest) > 0)
        job->newest = h->request;
    job->started = true;

    if (h->opcode != MR_NIC_OP_BARRIER) { /* a barrier has nothing to park */
        s->parked[member].payload = malloc(p->payload_bytes + 1);
        if (s->parked[member].payload == NULL)
            abort();
        memcpy(s->parked[member].payload, p->payload, p->payload_bytes);
        s->parked[member].natural = (h->flags & MR_NIC_FL_NATURAL) != 0;
        nic->parked++;
        fold_parked(nic, job, s, complete_slot);
    }

    if (reliable)
        gnic_ack(nic, h);
    if (complete_slot) {
        complete(nic, &key);
        finish(nic, job, s);
    }
    return MR_NIC_CNT_CONTRIBUTED;
}

/* ---- afterwards --------------------------------------------------------------------------------
 */

bool gnic_acknowledged(mr_gnic *nic, const job_row *job, unsigned member, const mr_nic_header *h) {
    slot_key key = key_of(h);
    slot *s = find(nic, &key);
    (void)job;
    if (s == NULL || s->state != SLOT_DONE || s->result.opcode != h->dtype)
        return false;
    s->silent &= ~(1u << member);
    if (s->silent == 0)
        gnic_slot_free(nic, s);
    return true;
}

static void filling_timed_out(mr_gnic *nic, const job_row *job, slot *s) {
    uint32_t everyone = (uint32_t)((UINT64_C(1) << job->count) - 1);
    nic->counters[MR_NIC_CNT_SLOT_TIMEOUTS]++;
    gnic_event(nic, MR_NIC_EV_SLOT_TIMEOUT, s->first.opcode, &s->key, everyone & ~s->in, NULL,
               NULL);
    complete(nic, &s->key);
    gnic_slot_free(nic, s);
}

static void result_timed_out(mr_gnic *nic, const job_row *job, slot *s) {
    if (s->tries == MR_GNIC_TRIES) {
        nic->counters[MR_NIC_CNT_UNACKNOWLEDGED]++;
        gnic_event(nic, MR_NIC_EV_UNACKNOWLEDGED, s->result.opcode, &s->key, s->silent, NULL, NULL);
        gnic_slot_free(nic, s);
        return;
    }
    mr_nic_header h = s->result;
    h.flags |= MR_NIC_FL_RETRANSMISSION;
    s->tries++;
    s->since = nic->now;
    nic->counters[MR_NIC_CNT_RETRANSMISSIONS] += (unsigned)__builtin_popcount(s->silent);
    gnic_send_members(nic, job, s->silent, &h, s->payload, s->payload_bytes);
}

void mr_gnic_tick(mr_gnic *nic, uint64_t now) {
    nic->now = now;
    for (slot *s = nic->slots; s < nic->slots + MR_GNIC_SLOTS; s++) {
        if (s->state == SLOT_FREE)
            continue;
        const job_row *job = gnic_job_row(nic, s->key.job);
        uint64_t waited = now - s->since;
        if (s->state == SLOT_FILLING) {
            if (nic->slot_timeout != 0 && waited >= nic->slot_timeout)
                filling_timed_out(nic, job, s);
        } else if (nic->rto != 0) {
            unsigned times = s->tries < 4 ? 1u << s->tries : 16;
            if (waited >= nic->rto * times)
                result_timed_out(nic, job, s);
        }
    }
}
