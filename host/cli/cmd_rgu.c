/* SPDX-License-Identifier: Apache-2.0 */
/* millrace rgu tile, millrace rgu apply */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/io/file.h"
#include "host/io/npy.h"
#include "host/units/generator.h"

static const char format_names[] = "bf16|fp16|fp8e4m3|fp8e5m2|int8|fp32";

typedef struct {
    const char *seeds, *name, *device, *in, *out, *format_text;
    cli_range rows, cols;
    int format;
    bool saturate, json, have_rows, have_cols;
    double scale, timeout;
} request;

/* What both commands hold while they run. */
typedef struct {
    mr_safetensors *file;
    mr_projection *p;
    mr_generator *g;
    mr_generator_seed *seed;
    mr_generator_slot *slot;
} session;

static void end(session *s) {
    mr_generator_slot_destroy(s->slot);
    mr_generator_seed_destroy(s->seed);
    mr_generator_close(s->g);
    mr_projection_free(s->p);
    mr_safetensors_close(s->file);
}

static mr_status load(session *s, const request *r) {
    mr_status e = mr_safetensors_open(r->seeds, &s->file);
    return e != MR_OK ? e : mr_projection_load(s->file, r->name, &s->p);
}

static mr_status start(session *s, const request *r, size_t bytes, size_t source_bytes) {
    /* a unit takes the row scales or one scale: both together are one product here */
    if (s->p->row_scale)
        for (size_t i = 0; i < s->p->scale_bytes / sizeof(float); i++)
            s->p->row_scale[i] *= (float)r->scale;
    s->p->job.scale = (float)r->scale;
    mr_status e = mr_generator_open(r->device, &cli_stop, (uint64_t)(r->timeout * 1e9), &s->g);
    if (e == MR_OK)
        e = mr_generator_seed_create(s->g, s->p, &s->seed);
    if (e == MR_OK)
        e = mr_generator_slot_create(s->g, bytes, source_bytes, &s->slot);
    return e;
}

static int report(const request *r, const session *s, json_t *head, const mr_counters *c,
                  const char *items) {
    double seconds = (double)c->host_ns * 1e-9;
    double rate = c->cycles ? (double)c->items_out / (double)c->cycles : 0.0;
    if (!r->json) {
        json_decref(head);
        printf("%s of %s: wrote %s\n", r->name, r->seeds, r->out);
        if (c->hardware)
            printf("%s: %" PRIu64 " cycles, %" PRIu64 " %s, %.2f a cycle, %.3f s of host time\n",
                   r->device, c->cycles, c->items_out, items, rate, seconds);
        return cli_flush();
    }
    json_t *counts =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o}", "device",
                  cli_json_text(r->device), "cycles", (json_int_t)c->cycles, "busy",
                  (json_int_t)c->busy, "stall_in", (json_int_t)c->stall_in, "stall_out",
                  (json_int_t)c->stall_out, "items_in", (json_int_t)c->items_in, "items_out",
                  (json_int_t)c->items_out, "mults_busy", (json_int_t)c->mults_busy,
                  "items_per_cycle", rate, "host_seconds", seconds, "out", cli_json_text(r->out));
    json_object_update(head, counts);
    json_decref(counts);
    json_object_set_new(head, "n", json_integer(s->p->job.n));
    json_object_set_new(head, "terms", json_integer(s->p->job.terms));
    return cli_print_json(head);
}

/* Options that tile and apply share. */
#define OPTION_SEEDS(r)                                                                            \
    {                                                                                              \
        .name = "seeds", .kind = CLI_TEXT, .value = &(r).seeds, .hint = "FILE",                    \
        .help = "seed file (safetensors)", .required = true                                        \
    }
#define OPTION_NAME(r)                                                                             \
    {                                                                                              \
        .name = "name", .kind = CLI_TEXT, .value = &(r).name, .hint = "NAME",                      \
        .help = "projection in that file", .required = true                                        \
    }
#define OPTION_DEVICE(r)                                                                           \
    {                                                                                              \
        .name = "device", .kind = CLI_TEXT, .value = &(r).device, .hint = "URI",                   \
        .help = "sim:rgu (default), golden, cpu:, opencl:0, cuda:0"                                \
    }
#define OPTION_TIMEOUT(r)                                                                          \
    {                                                                                              \
        .name = "timeout", .kind = CLI_REAL, .value = &(r).timeout, .hint = "SECONDS",             \
        .help = "longest wait for the device (default 600)", .least = 0.001, .most = 1e6           \
    }
#define OPTION_JSON(r)                                                                             \
    { .name = "json", .kind = CLI_FLAG, .value = &(r).json, .help = "print one JSON object" }

/* ---- tile -------------------------------------------------------------------------------------
 */

static int check_window(const char *what, const cli_range *r, size_t limit) {
    if (r->first >= r->last)
        return cli_error(CLI_USAGE, "rgu tile: --%s %zu:%zu: the window is empty", what, r->first,
                         r->last);
    if (r->last > limit)
        return cli_error(CLI_USAGE, "rgu tile: --%s %zu:%zu: the matrix has only %zu", what,
                         r->first, r->last, limit);
    return CLI_OK;
}

static uint32_t code_at(const uint8_t *data, size_t item, size_t i) {
    uint32_t v = 0;
    memcpy(&v, data + i * item, item);
    return v;
}

static int tile(session *s, request *r) {
    mr_status e = load(s, r);
    if (e != MR_OK)
        return cli_fail(e);
    mr_rgu_job job = s->p->job;
    if (!r->have_rows)
        r->rows = (cli_range){0, job.d_out};
    if (!r->have_cols)
        r->cols = (cli_range){0, job.d_in};
    int code = check_window("rows", &r->rows, job.d_out);
    if (code == CLI_OK)
        code = check_window("cols", &r->cols, job.d_in);
    if (code != CLI_OK)
        return code;
    if ((e = mr_file_check_writable(r->out)) != MR_OK)
        return cli_fail(e);

    size_t shape[2] = {r->rows.last - r->rows.first, r->cols.last - r->cols.first};
    size_t count = shape[0] * shape[1]; /* below 2^62: both fit 31 bits */
    size_t item = mr_rgu_format_bytes((mr_rgu_format)r->format);
    if ((e = start(s, r, count * item, 0)) != MR_OK)
        return cli_fail(e);
    job.scale = s->p->job.scale;
    job.row0 = (uint32_t)r->rows.first;
    job.row1 = (uint32_t)r->rows.last;
    job.col0 = (uint32_t)r->cols.first;
    job.col1 = (uint32_t)r->cols.last;
    job.format = (mr_rgu_format)r->format;
    job.saturate = r->saturate;
    const void *data;
    mr_counters c;
    if ((e = mr_generator_tile(s->seed, &job, s->slot)) != MR_OK ||
        (e = mr_generator_wait(s->slot, &data, &c)) != MR_OK)
        return cli_fail(e);

    float *values = malloc(count * sizeof *values);
    if (!values)
        return cli_error(CLI_FAILED, "rgu tile: out of memory for %zu values", count);
    for (size_t i = 0; i < count; i++)
        values[i] = mr_format_value(code_at(data, item, i), r->format);
    e = mr_npy_write_f32(r->out, 2, shape, values);
    free(values);
    if (e != MR_OK)
        return cli_fail(e);
    json_t *head =
        json_pack("{s:o, s:[I,I], s:[I,I], s:s}", "name", cli_json_text(r->name), "rows",
                  (json_int_t)r->rows.first, (json_int_t)r->rows.last, "cols",
                  (json_int_t)r->cols.first, (json_int_t)r->cols.last, "format", r->format_text);
    return report(r, s, head, &c, "weights");
}

int cli_rgu_tile(int argc, char **argv) {
    static const char *const names[] = {"bf16", "fp16", "fp8e4m3", "fp8e5m2", "int8", "fp32"};
    request r = {.device = "sim:rgu", .scale = 1.0, .timeout = 600};
    cli_option options[] = {OPTION_SEEDS(r),
                            OPTION_NAME(r),
                            {.name = "rows",
                             .kind = CLI_RANGE,
                             .value = &r.rows,
                             .hint = "A:B",
                             .help = "rows A..B-1 (default: all)"},
                            {.name = "cols",
                             .kind = CLI_RANGE,
                             .value = &r.cols,
                             .hint = "A:B",
                             .help = "columns A..B-1 (default: all)"},
                            {.name = "format",
                             .kind = CLI_CHOICE,
                             .value = &r.format,
                             .hint = format_names,
                             .help = "format the weights are rounded to (default bf16)"},
                            {.name = "scale",
                             .kind = CLI_REAL,
                             .value = &r.scale,
                             .hint = "X",
                             .help = "multiplies every weight before the rounding (default 1)",
                             .least = -1e30,
                             .most = 1e30},
                            {.name = "saturate",
                             .kind = CLI_FLAG,
                             .value = &r.saturate,
                             .help = "overflow gives the largest finite value"},
                            OPTION_DEVICE(r),
                            OPTION_TIMEOUT(r),
                            {.name = "out",
                             .kind = CLI_TEXT,
                             .value = &r.out,
                             .hint = "FILE.npy",
                             .help = "where the values go, as float32",
                             .required = true},
                            OPTION_JSON(r),
                            {.name = NULL}};
    int code = cli_parse("rgu tile", "Generates weights of a projection into a .npy file.", options,
                         argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    r.have_rows = options[2].given;
    r.have_cols = options[3].given;
    r.format_text = names[r.format];
    session s = {0};
    code = tile(&s, &r);
    end(&s);
    return code;
}

/* ---- apply ------------------------------------------------------------------------------------
 */

static int apply(session *s, const request *r, mr_npy *x) {
    mr_status e = load(s, r);
    if (e == MR_OK)
        e = mr_npy_read_f32(r->in, 2, x);
    if (e != MR_OK)
        return cli_fail(e);
    mr_rgu_job job = s->p->job;
    if (x->shape[1] != job.d_in)
        return cli_error(CLI_BAD_INPUT, "%s: vectors of %zu, but %s has %u columns", r->in,
                         x->shape[1], r->name, job.d_in);
    if (x->shape[0] == 0 || x->shape[0] > INT32_MAX)
        return cli_error(CLI_BAD_INPUT, "%s: %zu vectors; must be 1 to %d", r->in, x->shape[0],
                         INT32_MAX);
    if ((e = mr_file_check_writable(r->out)) != MR_OK)
        return cli_fail(e);
    size_t shape[2] = {x->shape[0], job.d_out};
    if ((e = start(s, r, shape[0] * shape[1] * sizeof(float), x->count * sizeof(float))) != MR_OK)
        return cli_fail(e);
    job.batch = (uint32_t)x->shape[0];
    const void *data;
    mr_counters c;
    if ((e = mr_generator_apply(s->seed, &job, x->data, s->slot)) != MR_OK ||
        (e = mr_generator_wait(s->slot, &data, &c)) != MR_OK ||
        (e = mr_npy_write_f32(r->out, 2, shape, data)) != MR_OK)
        return cli_fail(e);
    json_t *head = json_pack("{s:o, s:I, s:I, s:I}", "name", cli_json_text(r->name), "batch",
                             (json_int_t)shape[0], "d_in", (json_int_t)job.d_in, "d_out",
                             (json_int_t)job.d_out);
    return report(r, s, head, &c, "results");
}

int cli_rgu_apply(int argc, char **argv) {
    request r = {.device = "sim:rgu", .scale = 1.0, .timeout = 600};
    cli_option options[] = {OPTION_SEEDS(r),
                            OPTION_NAME(r),
                            {.name = "in",
                             .kind = CLI_TEXT,
                             .value = &r.in,
                             .hint = "X.npy",
                             .help = "vectors, float32 [batch, d_in]",
                             .required = true},
                            OPTION_DEVICE(r),
                            OPTION_TIMEOUT(r),
                            {.name = "out",
                             .kind = CLI_TEXT,
                             .value = &r.out,
                             .hint = "Y.npy",
                             .help = "where the results go, float32 [batch, d_out]",
                             .required = true},
                            OPTION_JSON(r),
                            {.name = NULL}};
    int code = cli_parse("rgu apply", "Multiplies vectors by a projection without forming it.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    session s = {0};
    mr_npy x = {0};
    code = apply(&s, &r, &x);
    mr_npy_free(&x);
    end(&s);
    return code;
}
