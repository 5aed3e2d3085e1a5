/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of the near-memory unit: one descriptor, a matrix times vectors, or a flow. */
#include "host/cli/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/zoo.h"
#include "host/flow/plan.h"
#include "host/pnm/exec.h"
#include "host/pnm/gemv.h"
#include "models/cycle/pnm.h"

typedef struct {
    mr_pnm_machine machine;
    mr_pnm_program *program;
    mr_pnm_program *own; /* to be destroyed, NULL where a plan has it */
    mr_pnm_gemv_plan *gemv;
    mr_flow_plan *flow;
} work;

static void close_work(void *p) {
    work *w = p;
    if (!w)
        return;
    if (w->own)
        mr_pnm_program_destroy(w->own);
    if (w->gemv)
        mr_pnm_gemv_plan_destroy(w->gemv);
    if (w->flow)
        mr_flow_plan_destroy(w->flow);
    free(w);
}

/* The library's refusal, with the place in the file. */
static bool refused(const verify_where *at) {
    return verify_bad(at, "", "%.200s", mr_last_error());
}

/* Values between -1 and 1 from a generator of its own. */
static float *values(size_t count) {
    float *v = malloc(count * sizeof *v);
    uint64_t s = 7;
    for (size_t i = 0; v && i < count; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)((s >> 33) % 2001) / 1000 - 1;
    }
    return v;
}

/* ---- one descriptor in a group that owns everything -------------------------------------------
 */

static mr_status add_matvec(mr_pnm_builder *b, const uint32_t *n, const bool *f) {
    mr_pnm_matvec v = {.kc = (uint16_t)n[0],
                       .outputs = (uint16_t)n[1],
                       .vectors = (uint16_t)n[2],
                       .mode = {0, (uint8_t)n[3]},
                       .wexp = 127,
                       .x_stride = (int16_t)n[0],
                       .x_run = (uint16_t)n[0],
                       .x_jump = 1,
                       .y = 1024,
                       .y_stride = (int16_t)(n[1] / 16),
                       .bias = f[0],
                       .accum = f[1],
                       .bias_row = 4000,
                       .old = 1024,
                       .old_stride = (int16_t)(n[1] / 16),
                       .col = (uint16_t)n[4]};
    return mr_pnm_b_matvec(b, 0, &v);
}

static bool read_matvec(const verify_where *at, const json_t *o, mr_pnm_builder *b) {
    uint32_t n[5];
    bool f[2];
    if (!verify_keys(at, o, "kc outputs vectors log_length col bias accum") ||
        !verify_count(at, o, "kc", 1, 64, -1, &n[0]) ||
        !verify_count(at, o, "outputs", 16, 256, -1, &n[1]) ||
        !verify_count(at, o, "vectors", 1, 16, -1, &n[2]) ||
        !verify_count(at, o, "log_length", 2, 8, 4, &n[3]) ||
        !verify_count(at, o, "col", 0, MR_PNM_COLUMNS - 1, 0, &n[4]) ||
        !verify_flag(at, o, "bias", &f[0]) || !verify_flag(at, o, "accum", &f[1]))
        return false;
    return add_matvec(b, n, f) == MR_OK || refused(at);
}

static bool read_vec(const verify_where *at, const json_t *o, mr_pnm_builder *b) {
    uint32_t count, width;
    int fn, mul, reduce;
    if (!verify_keys(at, o, "count width fn mul reduce") ||
        !verify_count(at, o, "count", 1, 512, -1, &count) ||
        !verify_count(at, o, "width", 1, 16, -1, &width) ||
        !verify_choice(at, o, "fn", "id|exp2|log2|relu", &fn) ||
        !verify_choice(at, o, "mul", "none|immediate|elements|scalar", &mul) ||
        !verify_choice(at, o, "reduce", "keep|sum|max", &reduce))
        return false;
    mr_pnm_vec v = {.fn = (uint8_t)fn,
                    .mul = (uint8_t)mul,
                    .reduce = (uint8_t)reduce,
                    .count = (uint16_t)count,
                    .width = (uint16_t)width,
                    .a_stride = (int16_t)width,
                    .b_stride = (int16_t)width,
                    .c_stride = (int16_t)width,
                    .d_stride = (int16_t)width,
                    .b = 1000,
                    .c = 2000,
                    .d = 3000};
    return mr_pnm_b_vec(b, 0, &v) == MR_OK || refused(at);
}

static bool read_rows(const verify_where *at, const json_t *o, mr_pnm_builder *b, uint64_t memory,
                      bool store) {
    uint32_t rows;
    if (!verify_keys(at, o, "rows") || !verify_count(at, o, "rows", 1, 1024, -1, &rows))
        return false;
    mr_status e = store ? mr_pnm_b_store(b, 0, 5, (uint16_t)rows, memory, 0)
                        : mr_pnm_b_load(b, 0, 5, (uint16_t)rows, memory, 0);
    return e == MR_OK || refused(at);
}

static bool single(const verify_where *at, const char *kind, const json_t *o, work *w) {
    mr_pnm_builder *b;
    uint64_t memory;
    uint16_t first;
    if (mr_pnm_builder_create(1, false, &b) != MR_OK)
        return refused(at);
    bool good = mr_pnm_b_memory(b, 1 << 18, "memory", &memory) == MR_OK &&
                mr_pnm_b_rows(b, 0, MR_PNM_SCRATCH_ROWS, "rows", &first) == MR_OK &&
                mr_pnm_b_columns(b, 0, 0, MR_PNM_COLUMNS, "columns", &first) == MR_OK;
    if (!good)
        refused(at);
    else if (!strcmp(kind, "matvec"))
        good = read_matvec(at, o, b);
    else if (!strcmp(kind, "vec"))
        good = read_vec(at, o, b);
    else
        good = read_rows(at, o, b, memory, !strcmp(kind, "store"));
    if (good && mr_pnm_builder_finish(b, &w->own) != MR_OK)
        good = refused(at);
    w->program = w->own;
    mr_pnm_builder_destroy(b);
    return good;
}

/* ---- programs
 * ------------------------------------------------------------------------------------ */

static bool gemv(const verify_where *at, const json_t *o, work *w) {
    uint32_t outputs, inputs, vectors, log;
    if (!verify_keys(at, o, "outputs inputs vectors log_length") ||
        !verify_count(at, o, "outputs", 1, 4096, -1, &outputs) ||
        !verify_count(at, o, "inputs", 1, 4096, -1, &inputs) ||
        !verify_count(at, o, "vectors", 1, 1024, 1, &vectors) ||
        !verify_count(at, o, "log_length", 2, 8, 4, &log))
        return false;
    float *m = values((size_t)outputs * inputs), *x = values((size_t)inputs * vectors);
    mr_pnm_gemv g = {.name = "w",
                     .w = m,
                     .x = x,
                     .outputs = outputs,
                     .inputs = inputs,
                     .vectors = vectors,
                     .mode = {0, (uint8_t)log},
                     .groups = MR_PNM_GROUPS};
    bool good = m && x && mr_pnm_gemv_plan_create(&g, &w->gemv) == MR_OK;
    free(m);
    free(x);
    if (!good)
        return refused(at);
    w->program = mr_pnm_gemv_program(w->gemv);
    return true;
}

static bool flow(const verify_where *at, const json_t *o, work *w) {
    const char *name = json_string_value(json_object_get(o, "model"));
    uint32_t images, blocks, log;
    int schedule;
    mr_flow_plan_options p = {.groups = MR_PNM_GROUPS};
    if (!verify_keys(at, o, "model images inverse blocks schedule log_length") ||
        !verify_count(at, o, "images", 1, 1024, 1, &images) ||
        !verify_count(at, o, "blocks", 0, 64, 0, &blocks) ||
        !verify_count(at, o, "log_length", 2, 8, 4, &log) ||
        !verify_flag(at, o, "inverse", &p.inverse) ||
        !verify_choice(at, o, "schedule", "pipelined|sequential|replicated", &schedule))
        return false;
    if (!name || strchr(name, '/'))
        return verify_bad(at, "model", "must be the name of a flow of the zoo");
    char *zoo = cli_zoo_folder(), path[4096];
    if (!zoo)
        return false;
    snprintf(path, sizeof path, "%s/flows/%s.safetensors", zoo, name);
    free(zoo);
    p.images = images;
    p.last = blocks;
    p.schedule = (mr_flow_schedule)schedule;
    p.mode.log_length = (uint8_t)log;
    mr_flow *f;
    if (mr_flow_open(path, &f) != MR_OK)
        return refused(at);
    bool good = mr_flow_plan_create(f, &p, &w->flow) == MR_OK;
    float *in = good ? values(images * mr_flow_pixels(f)) : NULL;
    mr_flow_close(f);
    if (!in)
        return refused(at);
    mr_flow_plan_put(w->flow, in);
    free(in);
    w->program = mr_flow_plan_program(w->flow);
    return true;
}

static bool open_work(const verify_where *at, const json_t *workload, const char *models,
                      void **out, bool *composed) {
    static const char *const kinds[] = {"matvec", "vec", "load", "store", "gemv", "flow"};
    const char *kind = NULL;
    char path[4096], drams[4096], error[512];
    for (int i = 0; i < 6; i++) {
        if (!json_object_get(workload, kinds[i]))
            continue;
        if (kind)
            return verify_bad(at, kinds[i], "there is %s already: a workload is one thing", kind);
        kind = kinds[i];
    }
    if (!kind)
        return verify_bad(at, "", "must have one of matvec, vec, load, store, gemv, flow");
    work *w = calloc(1, sizeof *w);
    *out = w;
    if (!w)
        return verify_bad(at, "", "out of memory");
    snprintf(path, sizeof path, "%s/pnm/unit.json", models);
    snprintf(drams, sizeof drams, "%s/dram", models);
    if (!mr_pnm_machine_load(path, drams, &w->machine, error, sizeof error)) {
        cli_error(CLI_BAD_INPUT, "%s", error);
        return false;
    }
    verify_where inner = *at;
    snprintf(inner.place, sizeof inner.place, "%.80s%s%s", at->place, *at->place ? "." : "", kind);
    const json_t *o = json_object_get(workload, kind);
    *composed = !strcmp(kind, "gemv") || !strcmp(kind, "flow");
    if (!*composed)
        return single(&inner, kind, o, w);
    return !strcmp(kind, "gemv") ? gemv(&inner, o, w) : flow(&inner, o, w);
}

/* ---- both sides
 * ------------------------------------------------------------------------------------ */

static int model(void *p, uint64_t *cycles, json_t **details) {
    work *w = p;
    mr_pnm_list lists[MR_PNM_MACHINE_GROUPS];
    char error[256];
    mr_pnm_timing *t = malloc(sizeof *t);
    uint64_t mv = 0, vec = 0, wait = 0, stream = 0, descriptors = 0;
    if (!t)
        return cli_error(CLI_FAILED, "out of memory");
    for (unsigned g = 0; g < w->program->groups; g++) {
        lists[g].desc = w->program->image + w->program->list[g].addr;
        lists[g].count = w->program->list[g].count;
        descriptors += lists[g].count;
    }
    if (!mr_pnm_time(&w->machine, lists, w->program->groups, NULL, NULL, t, error, sizeof error)) {
        free(t);
        return cli_error(CLI_FAILED, "%s", error);
    }
    for (unsigned g = 0; g < w->program->groups; g++) {
        mv += t->group[g].mv_cycles;
        stream += t->group[g].stream_cycles;
        vec += t->group[g].vec_cycles;
        wait += t->group[g].wait_cycles;
    }
    *cycles = t->cycles;
    uint64_t port = (t->bytes_in > t->bytes_out ? t->bytes_in : t->bytes_out) /
                    w->machine.port_bytes * w->program->groups;
    const char *by = port > mv && port > vec ? "port" : mv > vec ? "matrix" : "vector";
    if (wait > mv && wait > vec && wait > port)
        by = "wait";
    if (details)
        *details = json_pack("{s:I, s:s, s:I, s:{s:I,s:I,s:I,s:I,s:I,s:I}}", "cycles",
                             (json_int_t)t->cycles, "bottleneck", by, "descriptors",
                             (json_int_t)descriptors, "counters", "mv_cycles", (json_int_t)mv,
                             "stream_cycles", (json_int_t)stream, "vec_cycles", (json_int_t)vec,
                             "wait_cycles", (json_int_t)wait, "bytes_in", (json_int_t)t->bytes_in,
                             "bytes_out", (json_int_t)t->bytes_out);
    free(t);
    return CLI_OK;
}

static int rtl(void *p, uint64_t *cycles, double *seconds) {
    work *w = p;
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    mr_pnm_exec *e = NULL;
    mr_pnm_counters c;
    struct timespec a, b;
    o.chips = 1;
    o.stop = &cli_stop;
    mr_status s = mr_pnm_exec_open("sim:pnm", &o, &e);
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (s == MR_OK)
        s = mr_pnm_exec_run(e, &w->program, 1, &c);
    clock_gettime(CLOCK_MONOTONIC, &b);
    int code = s == MR_OK ? CLI_OK : cli_fail(s);
    if (s == MR_OK) {
        *cycles = c.cycles;
        *seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    }
    if (e)
        mr_pnm_exec_close(e);
    return code;
}

const verify_unit verify_pnm = {"pnm",     "matvec vec load store gemv flow", open_work, model, rtl,
                                close_work};
