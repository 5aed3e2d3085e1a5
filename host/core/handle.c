/*
 * The table of live handles: the library's one piece of shared state besides the list of back ends.
 *
 * A handle is a number, slot and generation, dressed as a pointer. The generation of a slot changes
 * with each use, so a handle that was given back is recognised (a slot must be reused 2^28 times
 * before an old one could match).
 */
#include "host/core/internal.h"

#include <stdint.h>
#include <stdlib.h>

enum { SLOT_BITS = 20, KIND_BITS = 3, MAX_SLOTS = 1 << SLOT_BITS };

typedef struct {
    mr_obj *obj; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
    mr_kind kind;
} slot;

static struct {
    pthread_mutex_t lock;
    slot *slots;
    size_t capacity, used;
    uint32_t free_head; /* slot + 1; 0: none */
    size_t live[8];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *kind_name(mr_kind kind) {
    switch (kind) {
    case MR_KIND_DEVICE:
        return "device";
    case MR_KIND_BUFFER:
        return "buffer";
    case MR_KIND_QUEUE:
        return "queue";
    case MR_KIND_EVENT:
        return "event";
    case MR_KIND_NIC:
        return "NIC cluster";
    case MR_KIND_NIC_OP:
        return "NIC call";
    }
    return "object";
}

void mr_obj_init(mr_obj *obj, void (*destroy)(mr_obj *obj)) {
    atomic_init(&obj->refs, 1);
    obj->destroy = destroy;
}

void mr_obj_ref(mr_obj *obj) { atomic_fetch_add_explicit(&obj->refs, 1, memory_order_relaxed); }

void mr_obj_unref(mr_obj *obj) {
    if (atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_acq_rel) == 1)
        obj->destroy(obj);
}

/* With the lock held: a free slot's index + 1, or 0. */
static uint32_t take_slot(void) {
    if (table.free_head) {
        uint32_t index = table.free_head - 1;
        table.free_head = table.slots[index].next_free;
        return index + 1;
    }
    if (table.used == table.capacity) {
        size_t capacity = table.capacity ? table.capacity * 2 : 64;
        slot *slots = capacity <= MAX_SLOTS ? realloc(table.slots, capacity * sizeof *slots) : NULL;
        if (!slots)
            return 0;
        table.slots = slots;
        table.capacity = capacity;
    }
    table.slots[table.used].generation = 0;
    return (uint32_t)++table.used;
}

void *mr_handle_new(mr_kind kind, mr_obj *obj) {
    pthread_mutex_lock(&table.lock);
    uint32_t index = take_slot();
    uintptr_t value = 0;
    if (index--) {
        slot *s = &table.slots[index];
        s->generation = (s->generation + 1) & 0xFFFFFFFu;
        s->obj = obj;
        s->kind = kind;
        table.live[kind]++;
        value = ((uintptr_t)s->generation << (SLOT_BITS + KIND_BITS) |
                 (uintptr_t)index << KIND_BITS | (uintptr_t)kind)
                << 1;
    }
    pthread_mutex_unlock(&table.lock);
    if (!value)
        mr_fail(MR_LIMIT, "%s: %d live handles are the limit of one process", kind_name(kind),
                MAX_SLOTS);
    return (void *)(value | (value ? 1 : 0)); /* odd: never a pointer to anything */
}

/* With the lock held: the slot of a valid handle, or NULL with the message set. */
static slot *find(const void *handle, mr_kind kind, const char *what) {
    uintptr_t value = (uintptr_t)handle;
    if (!value) {
        mr_fail(MR_INVALID_HANDLE, "%s: the %s handle is NULL", what, kind_name(kind));
        return NULL;
    }
    uintptr_t index = (value >> 1 >> KIND_BITS) & (MAX_SLOTS - 1);
    uintptr_t generation = value >> 1 >> (SLOT_BITS + KIND_BITS);
    mr_kind is = (mr_kind)(value >> 1 & ((1u << KIND_BITS) - 1));
    if ((value & 1) && index < table.used && is >= MR_KIND_DEVICE && is <= MR_KIND_NIC_OP) {
        slot *s = &table.slots[index];
        if (s->obj && s->generation == generation && s->kind == is) {
            if (is == kind)
                return s;
            mr_fail(MR_INVALID_HANDLE, "%s: this is a handle of a %s, not of a %s", what,
                    kind_name(is), kind_name(kind));
            return NULL;
        }
        mr_fail(MR_INVALID_HANDLE, "%s: the %s was destroyed", what, kind_name(is));
        return NULL;
    }
    mr_fail(MR_INVALID_HANDLE, "%s: no handle of a %s", what, kind_name(kind));
    return NULL;
}

void *mr_handle_get(const void *handle, mr_kind kind, const char *what) {
    pthread_mutex_lock(&table.lock);
    slot *s = find(handle, kind, what);
    mr_obj *obj = s ? s->obj : NULL;
    if (obj)
        mr_obj_ref(obj);
    pthread_mutex_unlock(&table.lock);
    return obj;
}

void *mr_handle_take(const void *handle, mr_kind kind, const char *what) {
    pthread_mutex_lock(&table.lock);
    slot *s = find(handle, kind, what);
    mr_obj *obj = NULL;
    if (s) {
        obj = s->obj;
        s->obj = NULL;
        s->next_free = table.free_head;
        table.free_head = (uint32_t)(s - table.slots) + 1;
        table.live[kind]--;
    }
    pthread_mutex_unlock(&table.lock);
    return obj;
}

size_t mr_handle_count(mr_kind kind) {
    pthread_mutex_lock(&table.lock);
    size_t n = table.live[kind];
    pthread_mutex_unlock(&table.lock);
    return n;
}
