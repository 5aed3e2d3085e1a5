/* SPDX-License-Identifier: Apache-2.0 */
/* Chips in threads, which take programs from a list. */
#include "host/pnm/exec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/pnm/internal.h"
#include "models/golden/pnm_walk.h"

enum { MAX_CHIPS = 64 };

typedef struct chip {
    mr_pnm_chip *golden;
    mr_device *device; /* NULL: golden */
    mr_queue *queue;
    mr_buffer *buffer; /* as large as the largest image so far */
    size_t bytes;
    uint8_t *lists; /* with the image's place added, as large as the largest so far */
    size_t list_bytes;
} chip;

struct mr_pnm_exec {
    char uri[512];
    mr_pnm_exec_options options;
    bool counts;
    unsigned chips;
    chip *chip;
};

mr_pnm_exec_options mr_pnm_exec_defaults(void) {
    return (mr_pnm_exec_options){.gen = MR_PNM_CENTRED, .timeout_ns = 600000000000u};
}

bool mr_pnm_exec_counts(const mr_pnm_exec *e) { return e->counts; }
unsigned mr_pnm_exec_chips(const mr_pnm_exec *e) { return e->chips; }

/* ---- Life -------------------------------------------------------------------------------------
 */

static mr_status open_golden(mr_pnm_exec *e, chip *c) {
    const mr_pnm_exec_options *o = &e->options;
    mr_pnm_mult_mode mode = mr_pnm_mult_default();
    mode.gen = (mr_pnm_gen)o->gen;
    mode.cut = o->cut;
    const char *wrong = mr_pnm_mult_check(&mode);
    if (wrong || (o->gen != MR_PNM_UNARY && o->gen != MR_PNM_CENTRED))
        return mr_fail(MR_UNSUPPORTED, "golden: no near-memory unit with such a multiplier: %s",
                       wrong ? wrong : "its generator is unary or centred");
    c->golden = mr_pnm_chip_create((mr_pnm_gen)o->gen, o->cut, o->wide);
    return c->golden ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "golden: no memory for a chip");
}

static mr_status open_device(mr_pnm_exec *e, chip *c) {
    mr_device_info info;
    mr_status status = mr_device_open(e->uri, &c->device);
    if (status == MR_OK)
        status = mr_device_get_info(c->device, &info);
    if (status != MR_OK)
        return status;
    if (!(info.caps & MR_CAP_PNM))
        return mr_fail(MR_UNSUPPORTED, "%s: this device has no near-memory unit", e->uri);
    e->counts = info.caps & MR_CAP_CYCLES;
    return mr_queue_create(c->device, &c->queue);
}

mr_status mr_pnm_exec_open(const char *uri, const mr_pnm_exec_options *options, mr_pnm_exec **out) {
    *out = NULL;
    bool golden = !strcmp(uri, "golden");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned chips = options->chips;
    if (!chips)
        chips = golden && cores > 1 ? (unsigned)cores : 1;
    if (chips > MAX_CHIPS)
        chips = MAX_CHIPS;
    mr_pnm_exec *e = calloc(1, sizeof *e);
    if (e)
        e->chip = calloc(chips, sizeof *e->chip);
    if (!e || !e->chip) {
        free(e);
        return mr_fail(MR_OUT_OF_MEMORY, "%s: no memory", uri);
    }
    snprintf(e->uri, sizeof e->uri, "%s", uri);
    e->options = *options;
    mr_status status = MR_OK;
    while (status == MR_OK && e->chips < chips) {
        chip *c = &e->chip[e->chips++];
        status = golden ? open_golden(e, c) : open_device(e, c);
    }
    if (status != MR_OK) {
        mr_pnm_exec_close(e);
        return status;
    }
    *out = e;
    return MR_OK;
}

void mr_pnm_exec_close(mr_pnm_exec *e) {
    if (!e)
        return;
    char said[512]; /* closing must not hide what went wrong before */
    snprintf(said, sizeof said, "%s", mr_last_error());
    for (unsigned i = 0; i < e->chips; i++) {
        chip *c = &e->chip[i];
        mr_pnm_chip_destroy(c->golden);
        if (c->buffer)
            mr_buffer_destroy(c->buffer);
        if (c->queue)
            mr_queue_destroy(c->queue);
        if (c->device)
            mr_device_close(c->device);
        free(c->lists);
    }
    free(e->chip);
    free(e);
    mr_fail(MR_OK, "%s", said);
}

/* ---- One program ------------------------------------------------------------------------------
 */

static mr_status run_golden(chip *c, mr_pnm_program *p, mr_pnm_counters *counters) {
    mr_pnm_memory memory = {p->image, 0, p->bytes};
    mr_pnm_prog progs[MR_PNM_GROUPS];
    mr_pnm_result result;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        progs[g] = (mr_pnm_prog){p->list[g].addr, p->list[g].count};
    mr_pnm_outcome outcome = mr_pnm_chip_run(c->golden, &memory, progs, &result);
    const uint8_t *d = NULL;
    if (result.index < p->list[result.group].count)
        d = p->image + p->list[result.group].addr + (uint64_t)result.index * MR_PNM_DESC_BYTES;
    const char *name = pnm_desc_name(d ? d[0] : 0);
    if (outcome == MR_PNM_DEADLOCK)
        return mr_fail(MR_TIMEOUT,
                       "golden: the program stands still: group %u waits at descriptor %u (%s)",
                       result.group, result.index, name);
    if (outcome != MR_PNM_RAN)
        return mr_fail(MR_DEVICE_ERROR,
                       "golden: the unit gave up the job: error %u (%s), group %u, descriptor %u "
                       "(%s)",
                       result.error, mr_pnm_error_name(result.error), result.group, result.index,
                       name);
    if (result.hazard)
        return mr_fail(MR_DEVICE_ERROR,
                       "golden: group %u, descriptor %u: overlaps one whose rows it uses",
                       result.hazard_group, result.hazard_index);
    counters->status = result.status;
    counters->products = result.products;
    counters->group[0].vec_elements = result.vec_elements;
    return MR_OK;
}

/* The lists with the image's place in their addresses. */
static mr_status place_lists(chip *c, const mr_pnm_program *p, uint64_t base) {
    size_t bytes = p->bytes - p->data_bytes;
    if (bytes > c->list_bytes) {
        uint8_t *larger = realloc(c->lists, bytes);
        if (!larger)
            return mr_fail(MR_OUT_OF_MEMORY, "no memory for descriptors");
        c->lists = larger;
        c->list_bytes = bytes;
    }
    memcpy(c->lists, p->image + p->data_bytes, bytes);
    for (size_t i = 0; i < bytes; i += MR_PNM_DESC_BYTES) {
        uint8_t *d = c->lists + i;
        if (d[0] == MR_PNM_DESC_LOAD || d[0] == MR_PNM_DESC_STORE || d[0] == MR_PNM_DESC_WLOAD)
            PNM_SET(d, LOAD_ADDR, PNM_GET(d, LOAD_ADDR) + base);
    }
    return MR_OK;
}

static mr_status put_image(chip *c, const mr_pnm_program *p) {
    mr_status status = MR_OK;
    uint64_t base = 0;
    if (p->bytes > c->bytes) {
        if (c->buffer)
            mr_buffer_destroy(c->buffer);
        c->buffer = NULL;
        c->bytes = 0;
        status = mr_buffer_create(c->device, p->bytes, &c->buffer);
        if (status == MR_OK)
            c->bytes = p->bytes;
    }
    if (status == MR_OK)
        status = mr_buffer_address(c->buffer, &base);
    if (status == MR_OK)
        status = place_lists(c, p, base);
    if (status == MR_OK && p->data_bytes)
        status = mr_buffer_write(c->buffer, 0, p->image, p->data_bytes);
    if (status == MR_OK)
        status = mr_buffer_write(c->buffer, p->data_bytes, c->lists, p->bytes - p->data_bytes);
    return status;
}

/* Waits in short steps so that an interrupt is noticed. */
static mr_status wait_event(const mr_pnm_exec *e, mr_event *event) {
    const uint64_t step = 50000000u;
    for (uint64_t waited = 0;; waited += step) {
        uint64_t left = e->options.timeout_ns - waited;
        if (e->options.stop && *e->options.stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        mr_status status = mr_event_wait(event, left < step ? left : step);
        if (status != MR_TIMEOUT)
            return status;
        if (left <= step)
            return mr_fail(MR_TIMEOUT, "%s: the program did not end within %.3g s", e->uri,
                           (double)e->options.timeout_ns * 1e-9);
    }
}

static mr_status run_device(const mr_pnm_exec *e, chip *c, mr_pnm_program *p,
                            mr_pnm_counters *counters) {
    mr_pnm_job job = {
        .gen = (uint8_t)e->options.gen, .cut = (uint8_t)e->options.cut, .wide = e->options.wide};
    mr_event *event = NULL;
    mr_status status = put_image(c, p);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        job.list[g].offset = p->list[g].addr;
        job.list[g].count = p->list[g].count;
    }
    if (status == MR_OK)
        status = mr_pnm_run(c->queue, &job, (mr_view){c->buffer, 0}, &event);
    if (status == MR_OK)
        status = wait_event(e, event);
    if (status == MR_OK)
        status = mr_pnm_event_counters(event, counters);
    if (status == MR_OK && p->data_bytes)
        status = mr_buffer_read(c->buffer, 0, p->image, p->data_bytes);
    if (status == MR_TIMEOUT || status == MR_DEVICE_LOST || status == MR_CANCELLED) {
        char said[1024];
        snprintf(said, sizeof said, "%s", mr_last_error());
        if (mr_device_reset(c->device) == MR_UNSUPPORTED) { /* a job ends with its queue as well */
            mr_queue_destroy(c->queue);
            c->queue = NULL;
            mr_queue_create(c->device, &c->queue);
        }
        mr_fail(status, "%s", said);
    }
    if (event)
        mr_event_destroy(event);
    return status;
}

/* ---- All of them ------------------------------------------------------------------------------
 */

typedef struct run_state {
    mr_pnm_exec *e;
    mr_pnm_program *const *programs;
    mr_pnm_counters *counters;
    size_t count, next;
    mr_status status;
    char message[1024];
    pthread_mutex_t lock;
} run_state;

typedef struct runner {
    run_state *state;
    chip *chip;
    pthread_t thread;
    bool started;
} runner;

static mr_status run_one(const mr_pnm_exec *e, chip *c, mr_pnm_program *p,
                         mr_pnm_counters *counters) {
    memset(counters, 0, sizeof *counters);
    if (e->options.stop && *e->options.stop)
        return mr_fail(MR_CANCELLED, "interrupted");
    if (p->wide != e->options.wide)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: the program's weights are %s, the chip's %s",
                       e->uri, p->wide ? "float32" : "bf16", p->wide ? "bf16" : "float32");
    return c->golden ? run_golden(c, p, counters) : run_device(e, c, p, counters);
}

static void *work(void *context) {
    runner *r = context;
    run_state *s = r->state;
    pthread_mutex_lock(&s->lock);
    while (s->status == MR_OK && s->next < s->count) {
        size_t i = s->next++;
        pthread_mutex_unlock(&s->lock);
        mr_status status = run_one(s->e, r->chip, s->programs[i], &s->counters[i]);
        pthread_mutex_lock(&s->lock);
        if (status != MR_OK && s->status == MR_OK) {
            s->status = status;
            snprintf(s->message, sizeof s->message, "%s", mr_last_error());
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

mr_status mr_pnm_exec_run(mr_pnm_exec *e, mr_pnm_program *const programs[], size_t count,
                          mr_pnm_counters counters[]) {
    run_state s = {.e = e, .programs = programs, .counters = counters, .count = count};
    runner runners[MAX_CHIPS] = {0};
    pthread_mutex_init(&s.lock, NULL);
    for (unsigned i = 0; i < e->chips && i < count; i++) {
        runners[i] = (runner){.state = &s, .chip = &e->chip[i]};
        /* the last chip is this thread's; so are those for which there is no thread */
        if (i + 1 < e->chips && i + 1 < count)
            runners[i].started = !pthread_create(&runners[i].thread, NULL, work, &runners[i]);
    }
    for (unsigned i = 0; i < e->chips && i < count; i++)
        if (!runners[i].started)
            work(&runners[i]);
    for (unsigned i = 0; i < e->chips && i < count; i++)
        if (runners[i].started)
            pthread_join(runners[i].thread, NULL);
    pthread_mutex_destroy(&s.lock);
    return s.status == MR_OK ? MR_OK : mr_fail(s.status, "%s", s.message);
}
