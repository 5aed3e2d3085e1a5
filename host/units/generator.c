/* SPDX-License-Identifier: Apache-2.0 */
#include "host/units/generator.h"

#include "host/core/error.h"
#include "models/golden/rgu_apply.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mr_generator {
    const volatile sig_atomic_t *stop;
    uint64_t timeout_ns;
    mr_device *device; /* NULL: the golden model */
    mr_queue *queue;
    bool counts;
    /* golden: one thread takes slots from a list in order */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    mr_generator_slot *first, *last;
    bool quit;
};

struct mr_generator_seed {
    mr_generator *g;
    const mr_projection *p;
    mr_buffer *image, *row_scale;
};

struct mr_generator_slot {
    mr_generator *g;
    size_t bytes, source_bytes;
    mr_buffer *result, *source;
    mr_event *event;
    void *data; /* host copy of the result; the result itself for the golden model */
    float *x;   /* golden: copy of the input */
    size_t used;
    /* golden */
    const mr_projection *p;
    mr_rgu_job job;
    bool apply, busy;
    int failed;
    uint64_t host_ns;
    mr_generator_slot *next;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the golden model's thread ----------------------------------------------------------------
 */

static int run_golden(mr_generator_slot *s) {
    const mr_rgu_job *j = &s->job;
    mr_golden_job g = {.n = (int)j->n,
                       .terms = (int)j->terms,
                       .d_out = j->d_out,
                       .d_in = j->d_in,
                       .image = s->p->image,
                       .row_scale = s->p->row_scale,
                       .scale = j->scale,
                       .row0 = j->row0,
                       .row1 = j->row1,
                       .col0 = j->col0,
                       .col1 = j->col1,
                       .format = (int)j->format,
                       .sat = j->saturate};
    if (s->apply)
        return mr_golden_apply(&g, j->batch, s->x, j->src_stride, s->data, j->dst_stride);
    return mr_golden_tile(&g, s->data, j->dst_stride);
}

static void *golden_thread(void *context) {
    mr_generator *g = context;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        while (!g->first && !g->quit)
            pthread_cond_wait(&g->wake, &g->lock);
        if (!g->first)
            break;
        mr_generator_slot *s = g->first;
        pthread_mutex_unlock(&g->lock);
        uint64_t start = now_ns();
        int failed = run_golden(s);
        uint64_t end = now_ns();
        pthread_mutex_lock(&g->lock);
        g->first = s->next;
        if (!g->first)
            g->last = NULL;
        s->failed = failed;
        s->host_ns = end - start;
        s->busy = false;
        pthread_cond_broadcast(&g->done);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void start_golden(mr_generator_slot *s) {
    mr_generator *g = s->g;
    pthread_mutex_lock(&g->lock);
    s->busy = true;
    s->next = NULL;
    if (g->last)
        g->last->next = s;
    else
        g->first = s;
    g->last = s;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
}

static void wait_golden(mr_generator_slot *s) {
    pthread_mutex_lock(&s->g->lock);
    while (s->busy)
        pthread_cond_wait(&s->g->done, &s->g->lock);
    pthread_mutex_unlock(&s->g->lock);
}

static mr_status open_golden(mr_generator *g) {
    if (pthread_mutex_init(&g->lock, NULL) || pthread_cond_init(&g->wake, NULL) ||
        pthread_cond_init(&g->done, NULL) || pthread_create(&g->thread, NULL, golden_thread, g))
        return mr_fail(MR_OUT_OF_MEMORY, "golden: cannot start a thread");
    g->running = true;
    return MR_OK;
}

/* ---- devices ----------------------------------------------------------------------------------
 */

static mr_status open_device(mr_generator *g, const char *uri) {
    mr_status e = mr_device_open(uri, &g->device);
    if (e != MR_OK)
        return e;
    mr_device_info info;
    if ((e = mr_device_get_info(g->device, &info)) != MR_OK)
        return e;
    if (!(info.caps & MR_CAP_RGU))
        return mr_fail(MR_UNSUPPORTED, "%s: this device does not generate weights", uri);
    g->counts = info.caps & MR_CAP_CYCLES;
    return mr_queue_create(g->device, &g->queue);
}

mr_status mr_generator_open(const char *uri, const volatile sig_atomic_t *stop, uint64_t timeout_ns,
                            mr_generator **out) {
    *out = NULL;
    mr_generator *g = calloc(1, sizeof *g);
    if (!g)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", uri);
    g->stop = stop;
    g->timeout_ns = timeout_ns;
    mr_status e = strcmp(uri, "golden") ? open_device(g, uri) : open_golden(g);
    if (e != MR_OK) {
        mr_generator_close(g);
        return e;
    }
    *out = g;
    return MR_OK;
}

void mr_generator_close(mr_generator *g) {
    if (!g)
        return;
    if (g->running) {
        pthread_mutex_lock(&g->lock);
        g->quit = true;
        pthread_cond_signal(&g->wake);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
        pthread_mutex_destroy(&g->lock);
        pthread_cond_destroy(&g->wake);
        pthread_cond_destroy(&g->done);
    }
    if (g->queue)
        mr_queue_destroy(g->queue);
    if (g->device)
        mr_device_close(g->device);
    free(g);
}

bool mr_generator_counts(const mr_generator *g) { return g->counts; }

static mr_status upload(mr_generator *g, const void *data, size_t bytes, mr_buffer **out) {
    mr_status e = mr_buffer_create(g->device, bytes, out);
    return e != MR_OK ? e : mr_buffer_write(*out, 0, data, bytes);
}

mr_status mr_generator_seed_create(mr_generator *g, const mr_projection *p,
                                   mr_generator_seed **out) {
    mr_generator_seed *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", p->name);
    s->g = g;
    s->p = p;
    mr_status e = MR_OK;
    if (g->device) {
        e = upload(g, p->image, p->image_bytes, &s->image);
        if (e == MR_OK && p->row_scale)
            e = upload(g, p->row_scale, p->scale_bytes, &s->row_scale);
    }
    if (e != MR_OK) {
        mr_generator_seed_destroy(s);
        return e;
    }
    *out = s;
    return MR_OK;
}

void mr_generator_seed_destroy(mr_generator_seed *s) {
    if (!s)
        return;
    if (s->image)
        mr_buffer_destroy(s->image);
    if (s->row_scale)
        mr_buffer_destroy(s->row_scale);
    free(s);
}

/* ---- slots ------------------------------------------------------------------------------------
 */

mr_status mr_generator_slot_create(mr_generator *g, size_t bytes, size_t source_bytes,
                                   mr_generator_slot **out) {
    mr_generator_slot *s = calloc(1, sizeof *s);
    mr_status e = MR_OK;
    if (!s)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    s->g = g;
    s->bytes = bytes;
    s->source_bytes = source_bytes;
    s->data = malloc(bytes);
    if (!g->device && source_bytes)
        s->x = malloc(source_bytes);
    if (!s->data || (!g->device && source_bytes && !s->x))
        e = mr_fail(MR_OUT_OF_MEMORY, "out of memory for %zu bytes of results", bytes);
    if (e == MR_OK && g->device)
        e = mr_buffer_create(g->device, bytes, &s->result);
    if (e == MR_OK && g->device && source_bytes)
        e = mr_buffer_create(g->device, source_bytes, &s->source);
    if (e != MR_OK) {
        mr_generator_slot_destroy(s);
        return e;
    }
    *out = s;
    return MR_OK;
}

void mr_generator_slot_destroy(mr_generator_slot *s) {
    if (!s)
        return;
    if (!s->g->device)
        wait_golden(s);
    if (s->event)
        mr_event_destroy(s->event);
    if (s->result)
        mr_buffer_destroy(s->result);
    if (s->source)
        mr_buffer_destroy(s->source);
    free(s->x);
    free(s->data);
    free(s);
}

static mr_status begin(mr_generator_seed *seed, const mr_rgu_job *job, mr_generator_slot *slot,
                       size_t bytes) {
    if (bytes == 0 || bytes > slot->bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: the result is %zu bytes, the slot holds %zu",
                       seed->p->name, bytes, slot->bytes);
    if (slot->event) {
        mr_event_destroy(slot->event);
        slot->event = NULL;
    }
    slot->used = bytes;
    slot->p = seed->p;
    slot->job = *job;
    return MR_OK;
}

mr_status mr_generator_tile(mr_generator_seed *seed, const mr_rgu_job *job,
                            mr_generator_slot *slot) {
    mr_rgu_job j = *job;
    size_t item = mr_rgu_format_bytes(j.format);
    if (j.row0 >= j.row1 || j.row1 > j.d_out || j.col0 >= j.col1 || j.col1 > j.d_in || !item)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "%s: window %u:%u x %u:%u is empty or outside the %u x %u matrix",
                       seed->p->name, j.row0, j.row1, j.col0, j.col1, j.d_out, j.d_in);
    j.dst_stride = (uint32_t)((j.col1 - j.col0) * item);
    mr_status e = begin(seed, &j, slot, (size_t)(j.row1 - j.row0) * j.dst_stride);
    if (e != MR_OK)
        return e;
    slot->apply = false;
    if (seed->g->device)
        return mr_rgu_tile(seed->g->queue, &j, (mr_view){seed->image, 0},
                           (mr_view){seed->row_scale, 0}, (mr_view){slot->result, 0}, &slot->event);
    start_golden(slot);
    return MR_OK;
}

mr_status mr_generator_apply(mr_generator_seed *seed, const mr_rgu_job *job, const float *x,
                             mr_generator_slot *slot) {
    mr_rgu_job j = *job;
    size_t in = (size_t)j.batch * j.d_in * sizeof *x;
    if (in == 0 || in > slot->source_bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: the input is %zu bytes, the slot holds %zu",
                       seed->p->name, in, slot->source_bytes);
    j.src_stride = j.d_in * (uint32_t)sizeof *x;
    j.dst_stride = j.d_out * (uint32_t)sizeof *x;
    mr_status e = begin(seed, &j, slot, (size_t)j.batch * j.dst_stride);
    if (e != MR_OK)
        return e;
    slot->apply = true;
    if (!seed->g->device) {
        memcpy(slot->x, x, in);
        start_golden(slot);
        return MR_OK;
    }
    if ((e = mr_buffer_write(slot->source, 0, x, in)) != MR_OK)
        return e;
    return mr_rgu_apply(seed->g->queue, &j, (mr_view){seed->image, 0},
                        (mr_view){seed->row_scale, 0}, (mr_view){slot->source, 0},
                        (mr_view){slot->result, 0}, &slot->event);
}

/* Waits in short steps so that an interrupt is noticed. */
static mr_status wait_event(mr_generator *g, mr_event *event) {
    const uint64_t step = 100000000u;
    for (uint64_t waited = 0;; waited += step) {
        if (g->stop && *g->stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        mr_status e = mr_event_wait(event, step);
        if (e != MR_TIMEOUT || waited >= g->timeout_ns)
            return e;
    }
}

mr_status mr_generator_wait(mr_generator_slot *s, const void **data, mr_counters *counters) {
    mr_counters none = {0};
    if (s->g->device) {
        if (!s->event)
            return mr_fail(MR_INVALID_ARGUMENT, "nothing was started in this slot");
        mr_status e = wait_event(s->g, s->event);
        if (e == MR_OK && counters)
            e = mr_event_counters(s->event, counters);
        if (e == MR_OK)
            e = mr_buffer_read(s->result, 0, s->data, s->used);
        if (e != MR_OK)
            return e;
    } else {
        wait_golden(s);
        if (s->g->stop && *s->g->stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        if (s->failed)
            return mr_fail(MR_OUT_OF_MEMORY,
                           "%s: the golden model refused the job or ran out of memory", s->p->name);
        none.host_ns = s->host_ns;
        if (counters)
            *counters = none;
    }
    *data = s->data;
    return MR_OK;
}
