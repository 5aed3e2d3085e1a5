/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of the rotor generation unit: a queue of jobs. */
#include "host/cli/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cycle/rgu.h"

typedef struct {
    mr_rgu_descriptor d;
    int format;
    uint32_t repeat;
} job;

typedef struct {
    mr_rgu_unit unit;
    job *jobs;
    size_t count;
    char uri[160];
} work;

/* What the host holds for one job while the device works. */
typedef struct {
    mr_buffer *seeds, *scales, *src, *dst;
    mr_event *event;
} held;

static const char job_keys[] = "mode n terms rows cols parity row_scale format window batch "
                               "dst_stride src_stride offsets repeat";

static bool window(const verify_where *at, const json_t *o, mr_rgu_descriptor *d) {
    const json_t *v = json_object_get(o, "window");
    uint32_t w[4] = {0, d->d_out, 0, d->d_in};
    if (v && (!json_is_array(v) || json_array_size(v) != 4))
        return verify_bad(at, "window", "must be [row, end, column, end]");
    for (size_t i = 0; v && i < 4; i++) {
        const json_t *n = json_array_get(v, i);
        if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > INT32_MAX)
            return verify_bad(at, "window", "must be [row, end, column, end]");
        w[i] = (uint32_t)json_integer_value(n);
    }
    d->row0 = w[0];
    d->row1 = w[1];
    d->col0 = w[2];
    d->col1 = w[3];
    return true;
}

static bool offsets(const verify_where *at, const json_t *o, mr_rgu_descriptor *d) {
    const json_t *v = json_object_get(o, "offsets");
    verify_where inner = *at;
    uint32_t seeds, scales, src, dst;
    snprintf(inner.place, sizeof inner.place, "%.80s.offsets", at->place);
    if (v && !verify_keys(&inner, v, "seeds scales src dst"))
        return false;
    if (!verify_count(&inner, v, "seeds", 0, 4095, 0, &seeds) ||
        !verify_count(&inner, v, "scales", 0, 4095, 0, &scales) ||
        !verify_count(&inner, v, "src", 0, 4095, 0, &src) ||
        !verify_count(&inner, v, "dst", 0, 4095, 0, &dst))
        return false;
    d->seeds = seeds;
    d->scales = scales;
    d->src = src;
    d->dst = dst;
    return true;
}

static bool read_job(const verify_where *at, const json_t *o, job *j) {
    static const uint32_t items[] = {2, 2, 1, 1, 1, 4};
    mr_rgu_descriptor *d = &j->d;
    int mode, parity;
    *j = (job){0};
    if (!verify_keys(at, o, job_keys) || !verify_choice(at, o, "mode", "tile|apply", &mode) ||
        !verify_choice(at, o, "parity", "even|odd|both", &parity) ||
        !verify_choice(at, o, "format", "bf16|fp16|fp8e4m3|fp8e5m2|int8|fp32", &j->format) ||
        !verify_count(at, o, "n", 8, 10, -1, &d->n) ||
        !verify_count(at, o, "terms", 1, 32, 1, &d->terms) ||
        !verify_count(at, o, "rows", 1, 1 << 24, -1, &d->d_out) ||
        !verify_count(at, o, "cols", 1, 1 << 24, -1, &d->d_in) ||
        !verify_count(at, o, "batch", 1, 1 << 20, 1, &d->batch) ||
        !verify_count(at, o, "repeat", 1, 10000, 1, &j->repeat) ||
        !verify_flag(at, o, "row_scale", &d->row_scale) || !window(at, o, d) || !offsets(at, o, d))
        return false;
    d->apply = mode == 1;
    d->has_odd = parity != 0;
    d->has_even = parity != 1;
    d->item = items[j->format];
    uint32_t row = d->apply ? 4 * d->d_out : (d->col1 - d->col0) * d->item;
    if (!verify_count(at, o, "dst_stride", 0, INT32_MAX, row, &d->dst_stride) ||
        !verify_count(at, o, "src_stride", 0, INT32_MAX, 4 * (json_int_t)d->d_in, &d->src_stride))
        return false;
    return true; /* the model says what no job can be */
}

static void close_work(void *p) {
    work *w = p;
    if (w)
        free(w->jobs);
    free(w);
}

static bool read_memory(const verify_where *at, const json_t *workload, work *w) {
    const json_t *m = json_object_get(workload, "memory");
    verify_where inner = *at;
    snprintf(inner.place, sizeof inner.place, "%.80s%smemory", at->place, *at->place ? "." : "");
    if (m && !verify_keys(&inner, m, "latency wlatency bandwidth"))
        return false;
    uint32_t latency, wlatency, bandwidth;
    if (!verify_count(&inner, m, "latency", 1, 100000, w->unit.read_latency, &latency) ||
        !verify_count(&inner, m, "wlatency", 1, 100000, w->unit.write_latency, &wlatency) ||
        !verify_count(&inner, m, "bandwidth", 1, 64, w->unit.port_bytes, &bandwidth))
        return false;
    /* what the workload does not say the simulator has by itself, whatever the model's file says */
    snprintf(w->uri, sizeof w->uri, "sim:rgu?memory=2048");
    const char *const names[] = {"latency", "wlatency", "bandwidth"};
    for (int i = 0; i < 3; i++) {
        const json_t *v = json_object_get(m, names[i]);
        size_t used = strlen(w->uri);
        if (v)
            snprintf(w->uri + used, sizeof w->uri - used, "&%s=%d", names[i],
                     (int)json_integer_value(v));
    }
    w->unit.read_latency = latency;
    w->unit.write_latency = wlatency;
    w->unit.port_bytes = bandwidth;
    return true;
}

static bool open_work(const verify_where *at, const json_t *workload, const char *models,
                      void **out, bool *composed) {
    char path[4096], error[512];
    const json_t *jobs = json_object_get(workload, "jobs");
    size_t n = json_array_size(jobs), all = 0;
    if (!json_is_array(jobs) || !n || n > 1000)
        return verify_bad(at, "jobs", "must be a list of 1 to 1000 jobs");
    work *w = calloc(1, sizeof *w);
    *out = w;
    if (!w || !(w->jobs = calloc(n, sizeof *w->jobs)))
        return verify_bad(at, "", "out of memory");
    w->count = n;
    snprintf(path, sizeof path, "%s/rgu/unit.json", models);
    if (!mr_rgu_unit_load(path, &w->unit, error, sizeof error)) {
        cli_error(CLI_BAD_INPUT, "%s", error);
        return false;
    }
    if (!read_memory(at, workload, w))
        return false;
    for (size_t i = 0; i < n; i++) {
        verify_where inner = *at;
        mr_rgu_timing t;
        snprintf(inner.place, sizeof inner.place, "%.60s%sjobs[%zu]", at->place,
                 *at->place ? "." : "", i);
        if (!read_job(&inner, json_array_get(jobs, i), &w->jobs[i]))
            return false;
        if (!mr_rgu_time(&w->unit, &w->jobs[i].d, NULL, &t, error, sizeof error))
            return verify_bad(&inner, "", "%s", error);
        all += w->jobs[i].repeat;
    }
    *composed = all > 1;
    return true;
}

static int model(void *p, uint64_t *cycles, json_t **details) {
    work *w = p;
    mr_rgu_memory memory = {0};
    mr_rgu_timing t, sum = {0};
    char error[256];
    uint64_t descriptors = 0;
    for (size_t i = 0; i < w->count; i++) {
        for (uint32_t r = 0; r < w->jobs[i].repeat; r++, descriptors++) {
            if (!mr_rgu_time(&w->unit, &w->jobs[i].d, &memory, &t, error, sizeof error))
                return cli_error(CLI_BAD_INPUT, "%s", error);
            if (t.cycles >= sum.first_tables) { /* the longest job names the bottleneck */
                sum.first_tables = t.cycles;
                sum.bottleneck = t.bottleneck;
            }
            sum.cycles += t.cycles;
            sum.items_in += t.items_in;
            sum.items_out += t.items_out;
            sum.mults_busy += t.mults_busy;
            sum.expander += t.expander;
            sum.products += t.products;
            sum.rows += t.rows;
            sum.beats_in += t.beats_in;
            sum.beats_out += t.beats_out;
        }
    }
    *cycles = sum.cycles;
    if (details)
        *details = json_pack(
            "{s:I, s:s, s:I, s:{s:I,s:I,s:I}, s:{s:I,s:I,s:I,s:I,s:I}}", "cycles",
            (json_int_t)sum.cycles, "bottleneck", mr_rgu_bottleneck_name(sum.bottleneck),
            "descriptors", (json_int_t)descriptors, "counters", "items_in",
            (json_int_t)sum.items_in, "items_out", (json_int_t)sum.items_out, "mults_busy",
            (json_int_t)sum.mults_busy, "cycles_of", "expander", (json_int_t)sum.expander,
            "products", (json_int_t)sum.products, "rows", (json_int_t)sum.rows, "port_in",
            (json_int_t)sum.beats_in, "port_out", (json_int_t)sum.beats_out);
    return CLI_OK;
}

/* ---- the RTL --------------------------------------------------------------------------------- */

static uint32_t chunks(uint32_t of, uint32_t n) { return (of + (1u << n) - 1) >> n; }

/* Random angles; half of the terms odd where both parities are asked for, as the model has it. */
static void fill_image(uint8_t *image, const mr_rgu_descriptor *d, size_t record) {
    uint64_t s = 1;
    size_t count = (size_t)chunks(d->d_in, d->n) * chunks(d->d_out, d->n);
    for (size_t i = 0; i < count * d->terms * record; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        image[i] = (uint8_t)(s >> 56);
    }
    uint32_t odd = !d->has_odd ? 0 : d->has_even ? d->terms / 2 : d->terms;
    for (size_t c = 0; c < count; c++) {
        for (uint32_t t = 0; t < d->terms; t++) {
            uint32_t head[2] = {0x100000u | (uint32_t)(t < odd) << 30, 0};
            memcpy(image + (c * d->terms + t) * record, head, sizeof head);
        }
    }
}

static mr_status put(mr_device *dev, size_t bytes, size_t offset, const void *data, size_t count,
                     mr_buffer **out) {
    mr_status e = mr_buffer_create(dev, offset + bytes, out);
    return e == MR_OK && count ? mr_buffer_write(*out, offset, data, count) : e;
}

static mr_status submit(mr_device *dev, mr_queue *queue, const job *j, held *h) {
    const mr_rgu_descriptor *d = &j->d;
    mr_rgu_job r = mr_rgu_job_init();
    uint32_t in = chunks(d->d_in, d->n), out = chunks(d->d_out, d->n);
    size_t record = (8 + 2 * (size_t)d->n * (d->n - 1) + 63) / 64 * 64;
    size_t image = (size_t)in * out * d->terms * record, rows = (size_t)out << d->n;
    size_t vectors = d->apply ? (size_t)d->batch * d->src_stride : 0;
    size_t results =
        d->apply ? (size_t)d->batch * d->dst_stride : (size_t)(d->row1 - d->row0) * d->dst_stride;
    size_t most = image > 4 * rows ? image : 4 * rows;
    uint8_t *data = calloc(1, most > vectors ? most : vectors);
    if (!data)
        return MR_OUT_OF_MEMORY;
    fill_image(data, d, record);
    mr_status e = put(dev, image, d->seeds, data, image, &h->seeds);
    for (size_t i = 0; i < (rows > vectors / 4 ? rows : vectors / 4); i++)
        if (4 * i + 4 <= (most > vectors ? most : vectors))
            memcpy(data + 4 * i, &(float){1.5f}, 4);
    if (e == MR_OK && d->row_scale)
        e = put(dev, 4 * rows, d->scales, data, 4 * rows, &h->scales);
    if (e == MR_OK && d->apply)
        e = put(dev, vectors, d->src, data, vectors, &h->src);
    free(data);
    if (e == MR_OK)
        e = put(dev, results, d->dst, NULL, 0, &h->dst);
    if (e != MR_OK)
        return e;
    r.n = d->n;
    r.terms = d->terms;
    r.chunks_in = in;
    r.chunks_out = out;
    r.d_in = d->d_in;
    r.d_out = d->d_out;
    r.has_odd = d->has_odd;
    r.has_even = d->has_even;
    r.row0 = d->row0;
    r.row1 = d->row1;
    r.col0 = d->col0;
    r.col1 = d->col1;
    r.format = (mr_rgu_format)j->format;
    r.batch = d->batch;
    r.src_stride = d->src_stride;
    r.dst_stride = d->dst_stride;
    mr_view seeds = {h->seeds, d->seeds}, src = {h->src, d->src}, dst = {h->dst, d->dst};
    mr_view scales = {h->scales, d->row_scale ? d->scales : 0};
    return d->apply ? mr_rgu_apply(queue, &r, seeds, scales, src, dst, &h->event)
                    : mr_rgu_tile(queue, &r, seeds, scales, dst, &h->event);
}

static mr_status run(mr_device *dev, mr_queue *queue, const job *j, held *h, uint64_t *cycles,
                     double *seconds) {
    mr_counters c;
    mr_status e = submit(dev, queue, j, h);
    if (e == MR_OK)
        e = mr_event_wait(h->event, MR_FOREVER);
    if (e == MR_OK)
        e = mr_event_counters(h->event, &c);
    if (e == MR_OK) {
        *cycles += c.cycles;
        *seconds += (double)c.host_ns * 1e-9;
    }
    if (h->event)
        mr_event_destroy(h->event);
    mr_buffer *const buffers[] = {h->seeds, h->scales, h->src, h->dst};
    for (int i = 0; i < 4; i++)
        if (buffers[i])
            mr_buffer_destroy(buffers[i]);
    return e;
}

static int rtl(void *p, uint64_t *cycles, double *seconds) {
    work *w = p;
    mr_device *dev = NULL;
    mr_queue *queue = NULL;
    *cycles = 0;
    *seconds = 0;
    mr_status e = mr_device_open(w->uri, &dev);
    if (e == MR_OK)
        e = mr_queue_create(dev, &queue);
    for (size_t i = 0; e == MR_OK && i < w->count; i++) {
        for (uint32_t r = 0; e == MR_OK && !cli_stop && r < w->jobs[i].repeat; r++) {
            held h = {0};
            e = run(dev, queue, &w->jobs[i], &h, cycles, seconds);
        }
    }
    int code = e == MR_OK ? CLI_OK : cli_fail(e);
    if (queue)
        mr_queue_destroy(queue);
    if (dev)
        mr_device_close(dev);
    return cli_stop && code == CLI_OK ? CLI_INTERRUPTED : code;
}

const verify_unit verify_rgu = {"rgu", "memory jobs", open_work, model, rtl, close_work};
