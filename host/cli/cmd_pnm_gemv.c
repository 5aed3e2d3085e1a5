/* SPDX-License-Identifier: Apache-2.0 */
/* millrace pnm gemv */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/pnm.h"
#include "host/io/file.h"
#include "host/io/npy.h"
#include "host/pnm/energy.h"
#include "host/pnm/exec.h"
#include "host/pnm/gemv.h"
#include "models/golden/pnm_mult.h"
#include "models/golden/rgu.h"

/* The clock the unit's cycles are given in; its own frequency on a board is the board's. */
static const double clock_hz = 1e9;

typedef struct {
    const char *w, *x, *device, *out, *trace;
    cli_pnm_mode mode;
    size_t groups, tier;
    double timeout;
    bool json;
} request;

typedef struct {
    mr_npy w, x;
    mr_pnm_gemv gemv;
    mr_pnm_gemv_plan *plan;
    mr_pnm_exec *exec;
    mr_pnm_counters counters;
    bool trace_made; /* the trace is ours to remove when the work fails */
} session;

static void end(session *s, const request *r, bool failed) {
    mr_pnm_exec_close(s->exec);
    mr_pnm_gemv_plan_destroy(s->plan);
    if (failed && s->trace_made)
        unlink(r->trace);
    mr_npy_free(&s->w);
    mr_npy_free(&s->x);
}

/* ---- Arrays -----------------------------------------------------------------------------------
 */

static int load(const char *path, size_t least, const char *shape, mr_npy *a) {
    mr_status e = mr_npy_read(path, a);
    if (e != MR_OK)
        return cli_fail(e);
    if (a->kind != 'f' || (a->item != 4 && a->item != 2))
        return cli_error(CLI_BAD_INPUT,
                         "%s: %c%zu values; pnm gemv takes float32 (f4) or float16 (f2)", path,
                         a->kind, a->item);
    if (a->rank < least || a->rank > 2)
        return cli_error(CLI_BAD_INPUT, "%s: %zu dimensions; must be %s", path, a->rank, shape);
    if (!a->count)
        return cli_error(CLI_BAD_INPUT, "%s: has no elements", path);
    if (a->item == 4)
        return CLI_OK;
    float *values = malloc(a->count * sizeof *values);
    if (!values)
        return cli_error(CLI_FAILED, "pnm gemv: out of memory for %zu values", a->count);
    for (size_t i = 0; i < a->count; i++)
        values[i] = mr_format_value(((const uint16_t *)a->data)[i], MR_RGU_FP16);
    free(a->data);
    a->data = values;
    a->item = 4;
    return CLI_OK;
}

static int load_both(session *s, const request *r) {
    int code = load(r->w, 2, "a matrix, [M, K]", &s->w);
    if (code == CLI_OK)
        code = load(r->x, 1, "[K] or [N, K]", &s->x);
    if (code != CLI_OK)
        return code;
    size_t inputs = s->x.shape[s->x.rank - 1];
    if (inputs != s->w.shape[1])
        return cli_error(CLI_BAD_INPUT, "%s: vectors of %zu, but %s has %zu columns", r->x, inputs,
                         r->w, s->w.shape[1]);
    s->gemv = (mr_pnm_gemv){.name = r->w,
                            .w = s->w.data,
                            .x = s->x.data,
                            .outputs = s->w.shape[0],
                            .inputs = inputs,
                            .vectors = s->x.rank == 2 ? s->x.shape[0] : 1,
                            .mode = {r->mode.mode.kind, r->mode.log_length},
                            .groups = (unsigned)r->groups,
                            .tier = (unsigned)r->tier};
    return CLI_OK;
}

/* ---- The run ----------------------------------------------------------------------------------
 */

static int run(session *s, const request *r) {
    char uri[2048];
    int code = load_both(s, r);
    if (code == CLI_OK)
        code = cli_pnm_uri(r->device, r->trace, uri, sizeof uri);
    if (code != CLI_OK)
        return code;
    mr_status e = mr_file_check_writable(r->out);
    if (e == MR_OK && r->trace) {
        s->trace_made = access(r->trace, F_OK) != 0;
        e = mr_file_check_writable(r->trace);
    }
    if (e == MR_OK)
        e = mr_pnm_gemv_plan_create(&s->gemv, &s->plan);
    mr_pnm_exec_options options = mr_pnm_exec_defaults();
    options.chips = 1;
    options.gen = r->mode.mode.gen;
    options.cut = r->mode.mode.cut;
    options.stop = &cli_stop;
    options.timeout_ns = (uint64_t)(r->timeout * 1e9);
    if (e == MR_OK)
        e = mr_pnm_exec_open(uri, &options, &s->exec);
    if (e != MR_OK)
        return cli_fail(e);
    mr_pnm_program *program = mr_pnm_gemv_program(s->plan);
    if ((e = mr_pnm_exec_run(s->exec, &program, 1, &s->counters)) != MR_OK)
        return cli_fail(e);
    size_t shape[2] = {s->gemv.vectors, s->gemv.outputs};
    float *y = malloc(shape[0] * shape[1] * sizeof *y);
    if (!y)
        return cli_error(CLI_FAILED, "pnm gemv: out of memory for %zu results",
                         shape[0] * shape[1]);
    mr_pnm_gemv_results(s->plan, y);
    e = mr_npy_write_f32(r->out, s->x.rank, shape + (s->x.rank == 1), y);
    free(y);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

/* ---- The report -------------------------------------------------------------------------------
 */

static json_t *count(const mr_pnm_counters *c, uint64_t value) {
    return c->hardware ? json_integer((json_int_t)value) : json_null();
}

static json_t *dram_json(const mr_pnm_counters *c) {
    uint64_t act = 0, rd = 0, wr = 0, pre = 0, ref = 0;
    for (int g = 0; g < MR_PNM_GROUPS; g++) {
        act += c->group[g].dram_act;
        rd += c->group[g].dram_rd;
        wr += c->group[g].dram_wr;
        pre += c->group[g].dram_pre;
        ref += c->group[g].dram_ref;
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "act", count(c, act), "rd", count(c, rd), "wr",
                     count(c, wr), "pre", count(c, pre), "ref", count(c, ref));
}

static json_t *status_json(uint32_t status) {
    static const char *const names[] = {"range", "nonfinite", "late_refresh"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (status >> i & 1)
            json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *energy_json(const mr_pnm_energy *e) {
    json_t *coefficients = json_object();
    double pj;
    const char *name;
    for (size_t i = 0; (name = mr_pnm_energy_coefficient(i, &pj)) != NULL; i++)
        json_object_set_new(coefficients, name, json_real(pj));
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "joules", e->total, "dram",
                     e->dram, "operands", e->operands, "multiply", e->multiply, "accumulate",
                     e->accumulate, "vector", e->vector, "scratch", e->scratch, "link", e->link,
                     "picojoules", coefficients);
}

static int report(const session *s, const request *r) {
    const mr_pnm_gemv *g = &s->gemv;
    const mr_pnm_counters *c = &s->counters;
    uint64_t matrix = 0, stream = 0;
    for (int i = 0; i < MR_PNM_GROUPS; i++) {
        matrix += c->group[i].mv_cycles;
        stream += c->group[i].stream_cycles;
    }
    double utilisation = matrix ? (double)stream / (double)matrix : 0;
    mr_pnm_tally tally;
    mr_pnm_energy energy;
    mr_pnm_program_tally(mr_pnm_gemv_program(s->plan), &tally);
    mr_pnm_energy_of(&tally, c, &energy);
    size_t weights = g->outputs * g->inputs, useful = weights * g->vectors;
    size_t rounded = mr_pnm_gemv_rounded(s->plan);
    if (!r->json) {
        printf("%zu x %zu times %zu vectors", g->outputs, g->inputs, g->vectors);
        cli_pnm_print_mode(&r->mode);
        printf(": wrote %s\n", r->out);
        printf("%zu of %zu weights rounded to bf16, every input rounded to bf16\n", rounded,
               weights);
        if (c->hardware)
            printf("%s: %" PRIu64 " cycles, multipliers busy %.1f %% of the matrix cycles\n",
                   r->device, c->cycles, 100 * utilisation);
        return cli_flush();
    }
    json_t *o =
        json_pack("{s:o, s:I, s:I, s:I, s:s}", "device", cli_json_text(r->device), "outputs",
                  (json_int_t)g->outputs, "inputs", (json_int_t)g->inputs, "vectors",
                  (json_int_t)g->vectors, "mode", mr_pnm_kind_name((int)r->mode.mode.kind));
    cli_pnm_add_mode(&r->mode, o);
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "weights_rounded", (json_int_t)rounded, "groups", (json_int_t)r->groups, "tier",
        (json_int_t)r->tier, "useful_products", (json_int_t)useful, "products",
        (json_int_t)c->products, "cycles", count(c, c->cycles), "clock_hz", clock_hz, "ns",
        c->hardware ? json_real((double)c->cycles * 1e9 / clock_hz) : json_null(), "matrix_cycles",
        count(c, matrix), "stream_cycles", count(c, stream), "utilisation",
        c->hardware ? json_real(utilisation) : json_null(), "dram", dram_json(c), "status",
        status_json(c->status), "energy", energy_json(&energy), "out", cli_json_text(r->out));
    json_object_update(o, more);
    json_decref(more);
    return cli_print_json(o);
}

int cli_pnm_gemv(int argc, char **argv) {
    request r = {.device = "sim:pnm", .groups = MR_PNM_GROUPS, .timeout = 600};
    r.mode = cli_pnm_mode_init();
    enum { GROUPS = CLI_PNM_MODE_OPTIONS + 2 };
    cli_option options[] = {
        CLI_PNM_MODE_OPTION(r.mode),
        CLI_PNM_STREAM_OPTION(r.mode),
        CLI_PNM_GEN_OPTION(r.mode),
        CLI_PNM_CUT_OPTION(r.mode),
        {.name = "w",
         .kind = CLI_TEXT,
         .value = &r.w,
         .hint = "W.npy",
         .help = "matrix [M, K], float32 or float16; rounded to bf16",
         .required = true},
        {.name = "x",
         .kind = CLI_TEXT,
         .value = &r.x,
         .hint = "X.npy",
         .help = "vector [K] or vectors [N, K]; rounded to bf16",
         .required = true},
        {.name = "groups",
         .kind = CLI_COUNT,
         .value = &r.groups,
         .hint = "G",
         .help = "groups of elements that share the work (default 4)",
         .least = 1,
         .most = MR_PNM_GROUPS},
        {.name = "tier",
         .kind = CLI_COUNT,
         .value = &r.tier,
         .hint = "T",
         .help = "DRAM tier the weights lie in, 0 the fastest (default 0)",
         .least = 0,
         .most = MR_PNM_TIERS - 1},
        {.name = "device",
         .kind = CLI_TEXT,
         .value = &r.device,
         .hint = "URI",
         .help = "sim:pnm (default), golden, cpu:, opencl:N, cuda:N"},
        {.name = "timeout",
         .kind = CLI_REAL,
         .value = &r.timeout,
         .hint = "SECONDS",
         .help = "longest wait for the device (default 600)",
         .least = 0.001,
         .most = 1e6},
        {.name = "dram-trace",
         .kind = CLI_TEXT,
         .value = &r.trace,
         .hint = "FILE",
         .help = "sim:pnm: every DRAM command with its cycle"},
        {.name = "out",
         .kind = CLI_TEXT,
         .value = &r.out,
         .hint = "Y.npy",
         .help = "where the results go, float32 [M] or [N, M]",
         .required = true},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("pnm gemv", "A matrix times vectors on the near-memory elements.", options,
                         argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    if ((code = cli_pnm_mode_check("pnm gemv", options, &r.mode)) != CLI_OK)
        return code;
    session s = {0};
    code = run(&s, &r);
    if (code == CLI_OK)
        code = report(&s, &r);
    end(&s, &r, code != CLI_OK);
    return code;
}
