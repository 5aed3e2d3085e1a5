/* The directory and the KV memory behind it. */
#include <stdlib.h>
#include <string.h>

#include "models/golden/nic_internal.h"

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- directory ------------------------------------------------------------------------------- */

static size_t place_of(const mr_gnic *nic, uint16_t job, uint16_t layer, uint32_t block) {
    uint64_t key = (uint64_t)job << 48 | (uint64_t)layer << 32 | block;
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (nic->entries_capacity - 1);
}

/* The entry's place, or the free one where it would go. capacity > count always. */
static mr_gnic_entry *find(const mr_gnic *nic, uint16_t job, uint16_t layer, uint32_t block) {
    size_t i = place_of(nic, job, layer, block);
    for (;; i = (i + 1) & (nic->entries_capacity - 1)) {
        mr_gnic_entry *e = &nic->entries[i];
        if (e->bytes == 0 || (e->job == job && e->layer == layer && e->block == block))
            return e;
    }
}

static int grow(mr_gnic *nic) {
    mr_gnic_entry *old = nic->entries;
    size_t capacity = nic->entries_capacity;
    size_t wanted = capacity == 0 ? 1024 : capacity * 2;
    mr_gnic_entry *entries = calloc(wanted, sizeof *entries);
    if (entries == NULL)
        return -1;
    nic->entries = entries;
    nic->entries_capacity = wanted;
    for (size_t i = 0; i < capacity; i++)
        if (old[i].bytes != 0)
            *find(nic, old[i].job, old[i].layer, old[i].block) = old[i];
    free(old);
    return 0;
}

int mr_gnic_kv(mr_gnic *nic, const mr_gnic_entry *entry) {
    const job_row *job = gnic_job_row(nic, entry->job);
    if (job == NULL || entry->bytes == 0 || entry->owner >= job->count)
        return -1;
    if (!(entry->named >> entry->owner & 1) || (uint64_t)entry->named >> job->count != 0)
        return -1;
    bool here = job->self >= 0 && (entry->named >> job->self & 1);
    size_t pages = (entry->bytes + (size_t)MR_NIC_KV_PAGE - 1) / MR_NIC_KV_PAGE;
    if (here && (pages > nic->pages || entry->page > nic->pages - pages))
        return -1;
    if (nic->entries_count * 2 >= nic->entries_capacity && grow(nic) != 0)
        return -1;
    mr_gnic_entry *e = find(nic, entry->job, entry->layer, entry->block);
    if (e->bytes == 0)
        nic->entries_count++;
    *e = *entry;
    return 0;
}

int mr_gnic_kv_remove(mr_gnic *nic, uint16_t job, uint16_t layer, uint32_t block) {
    if (nic->entries_count == 0)
        return -1;
    mr_gnic_entry *e = find(nic, job, layer, block);
    if (e->bytes == 0)
        return -1;
    e->bytes = 0;
    nic->entries_count--;
    /* Entries behind the hole move up, so that no search ends before its entry. */
    size_t mask = nic->entries_capacity - 1, i = (size_t)(e - nic->entries);
    for (i = (i + 1) & mask; nic->entries[i].bytes != 0; i = (i + 1) & mask) {
        mr_gnic_entry moved = nic->entries[i];
        nic->entries[i].bytes = 0;
        *find(nic, moved.job, moved.layer, moved.block) = moved;
    }
    return 0;
}

int mr_gnic_kv_clear(mr_gnic *nic, size_t page, size_t pages) {
    if (pages > nic->pages || page > nic->pages - pages)
        return -1;
    memset(nic->page_valid + page, 0, pages);
    return 0;
}

uint8_t *mr_gnic_kv_memory(mr_gnic *nic, size_t *bytes) {
    *bytes = nic->pages * MR_NIC_KV_PAGE;
    return nic->kv;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void store(mr_gnic *nic, const mr_gnic_entry *e, const parsed *p) {
    size_t page = e->page + p->header.offset / MR_NIC_KV_PAGE;
    memcpy(nic->kv + page * MR_NIC_KV_PAGE, p->payload, p->payload_bytes);
    nic->page_valid[page] = 1;
}

static bool held(const mr_gnic *nic, const mr_gnic_entry *e, uint32_t offset, uint32_t length) {
    size_t first = e->page + offset / MR_NIC_KV_PAGE;
    size_t last = e->page + (offset + (size_t)length - 1) / MR_NIC_KV_PAGE;
    for (size_t page = first; page <= last; page++)
        if (!nic->page_valid[page])
            return false;
    return true;
}

static void serve(mr_gnic *nic, const mr_gnic_entry *e, const parsed *p, uint32_t length) {
    mr_nic_header h = p->header;
    h.opcode = MR_NIC_OP_KV_DATA;
    h.shard = (uint8_t)nic->rank;
    h.epoch = e->epoch;
    for (uint32_t done = 0; done < length;) {
        uint32_t piece = length - done < MR_NIC_KV_PAGE ? length - done : MR_NIC_KV_PAGE;
        h.offset = p->header.offset + done;
        done += piece;
        h.flags = done == length ? MR_NIC_FL_LAST : 0;
        gnic_send(nic, p->header.shard, &h, nic->kv + (size_t)e->page * MR_NIC_KV_PAGE + h.offset,
                  piece);
    }
}

static unsigned refuse(mr_gnic *nic, const parsed *p, unsigned fate, uint32_t reason,
                       uint32_t epoch) {
    gnic_nack(nic, &p->header, reason, epoch);
    return fate;
}

static unsigned write_frame(mr_gnic *nic, const job_row *job, const mr_gnic_entry *e,
                            const parsed *p) {
    uint32_t self = job->self < 0 ? 0 : 1u << job->self;
    bool here = (e->named & self) != 0;
    mr_nic_header copy = p->header;
    if (!here && (copy.flags & MR_NIC_FL_FORWARDED))
        return refuse(nic, p, MR_NIC_CNT_NO_ENTRY, MR_NIC_NACK_NO_ENTRY, e->epoch);
    if (p->too_big)
        return MR_NIC_CNT_OVERRUN;
    if (p->source == MR_GNIC_HOST) {
        gnic_send_members(nic, job, e->named & ~self, &copy, p->payload, p->payload_bytes);
    } else if (!here) {
        copy.flags |= MR_NIC_FL_FORWARDED;
        gnic_send_members(nic, job, e->named, &copy, p->payload, p->payload_bytes);
    }
    if (!here)
        return MR_NIC_CNT_KV_FORWARDED;
    store(nic, e, p);
    if (p->header.flags & MR_NIC_FL_RELIABLE)
        gnic_ack(nic, &p->header);
    return MR_NIC_CNT_KV_WRITTEN;
}

static unsigned read_frame(mr_gnic *nic, const job_row *job, const mr_gnic_entry *e,
                           const parsed *p) {
    uint32_t length = get32(p->payload);
    bool here = job->self >= 0 && (e->named >> job->self & 1);
    if (here && held(nic, e, p->header.offset, length)) {
        serve(nic, e, p, length);
        return MR_NIC_CNT_KV_SERVED;
    }
    if ((int)e->owner == job->self || (p->header.flags & MR_NIC_FL_FORWARDED))
        return refuse(nic, p, MR_NIC_CNT_NO_ENTRY, MR_NIC_NACK_NO_ENTRY, e->epoch);
    if (p->too_big)
        return MR_NIC_CNT_OVERRUN;
    mr_nic_header copy = p->header;
    copy.flags |= MR_NIC_FL_FORWARDED;
    gnic_send_members(nic, job, 1u << e->owner, &copy, p->payload, p->payload_bytes);
    return MR_NIC_CNT_KV_FORWARDED;
}

unsigned gnic_kv_frame(mr_gnic *nic, const job_row *job, const parsed *p) {
    const mr_nic_header *h = &p->header;
    const mr_gnic_entry *e = nic->entries_count == 0 ? NULL : find(nic, h->job, h->layer, h->block);
    if (e == NULL || e->bytes == 0 || gnic_member_of(job, h->shard) < 0)
        return refuse(nic, p, MR_NIC_CNT_NO_ENTRY, MR_NIC_NACK_NO_ENTRY, 0);
    if (h->epoch < e->epoch)
        return refuse(nic, p, MR_NIC_CNT_STALE_EPOCH, MR_NIC_NACK_STALE_EPOCH, e->epoch);
    uint64_t length = h->opcode == MR_NIC_OP_KV_READ ? get32(p->payload) : p->payload_bytes;
    if (h->offset % MR_NIC_KV_PAGE != 0 || length == 0 || h->offset + length > e->bytes)
        return refuse(nic, p, MR_NIC_CNT_OUT_OF_RANGE, MR_NIC_NACK_OUT_OF_RANGE, e->epoch);
    if (h->opcode == MR_NIC_OP_KV_WRITE)
        return write_frame(nic, job, e, p);
    if (h->opcode == MR_NIC_OP_KV_READ)
        return read_frame(nic, job, e, p);
    if (p->too_big)
        return MR_NIC_CNT_OVERRUN;
    nic->out.deliver(nic->out.context, p->frame, p->bytes); /* KV_DATA */
    return MR_NIC_CNT_HOST_DELIVERED;
}
