/* SPDX-License-Identifier: Apache-2.0 */
/* millrace pnm mult */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/io/file.h"
#include "host/io/npy.h"
#include "host/pnm/products.h"
#include "models/golden/pnm_mult.h"

typedef struct {
    const char *a, *b, *device, *out;
    int kind, gen;
    size_t stream, cut, seed_a, seed_b;
    double timeout;
    bool have_stream, have_gen, have_cut, have_seed, round, json;
} request;

/* What the options mean together; prints what they cannot mean. */
static int mode_of(const request *r, mr_pnm_mult_mode *m) {
    *m = mr_pnm_mult_default();
    m->kind = (mr_pnm_kind)r->kind;
    m->gen = r->have_gen               ? (mr_pnm_gen)r->gen
             : r->kind == MR_PNM_SPLIT ? MR_PNM_CENTRED
                                       : MR_PNM_UNARY;
    m->cut = (unsigned)r->cut;
    if (r->kind != MR_PNM_EXACT && !r->have_stream)
        return cli_error(CLI_USAGE, "pnm mult: --mode %s needs --stream",
                         mr_pnm_kind_name(r->kind));
    if (r->have_stream) {
        m->stream = (unsigned)r->stream;
        if ((r->stream & (r->stream - 1)) != 0)
            return cli_error(CLI_USAGE, "pnm mult: --stream %zu: must be a power of two",
                             r->stream);
    }
    if (r->kind == MR_PNM_EXACT && (r->have_gen || r->have_cut || r->have_seed))
        return cli_error(CLI_USAGE,
                         "pnm mult: --mode exact has no streams: no --gen, --cut, --seed");
    if (r->have_seed && m->gen != MR_PNM_LFSR)
        return cli_error(CLI_USAGE, "pnm mult: --gen %s has no seeds", mr_pnm_gen_name(m->gen));
    const char *wrong = mr_pnm_mult_check(m);
    if (wrong)
        return cli_error(CLI_USAGE, "pnm mult: --mode %s --gen %s --cut %zu: %s",
                         mr_pnm_kind_name(r->kind), mr_pnm_gen_name(m->gen), r->cut, wrong);
    m->seed_a = (uint32_t)r->seed_a;
    m->seed_b = (uint32_t)r->seed_b;
    unsigned flags = 0;
    mr_pnm_lfsr_seed(0, m->seed_a, 0, &flags);
    if (flags)
        return cli_error(CLI_USAGE, "pnm mult: --seed-a %zu: all zeros and all ones are no seeds",
                         r->seed_a);
    mr_pnm_lfsr_seed(1, m->seed_b, 0, &flags);
    if (flags)
        return cli_error(CLI_USAGE, "pnm mult: --seed-b %zu: all zeros and all ones are no seeds",
                         r->seed_b);
    return CLI_OK;
}

/* "[1, 2, 3]": where element `flat` is. */
static void place(const mr_npy *x, size_t flat, char *text, size_t size) {
    size_t index[MR_NPY_MAX_RANK] = {0}, used = 0;
    for (size_t i = x->rank; i-- > 0; flat /= x->shape[i])
        index[i] = flat % x->shape[i];
    used += (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < x->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", i ? ", " : "", index[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

/* To nearest, ties to even; a NaN stays one, with its sign. */
static uint16_t to_bf16(uint32_t f) {
    if ((f & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(f >> 16 | 0x40);
    return (uint16_t)((f + 0x7FFF + ((f >> 16) & 1)) >> 16);
}

/* Reads float32 values that have to be bf16 ones; *codes is the caller's to free. */
static int load(const char *path, bool round, mr_npy *x, uint16_t **codes) {
    mr_status e = mr_npy_read(path, x);
    if (e != MR_OK)
        return cli_fail(e);
    if (x->kind != 'f' || x->item != 4)
        return cli_error(CLI_BAD_INPUT, "%s: %c%zu values; pnm mult takes float32 (f4)", path,
                         x->kind, x->item);
    *codes = malloc(x->count ? x->count * sizeof **codes : 1);
    if (!*codes)
        return cli_error(CLI_FAILED, "pnm mult: out of memory for %zu values", x->count);
    const uint32_t *bits = x->data;
    for (size_t i = 0; i < x->count; i++) {
        if ((bits[i] & 0xFFFF) != 0 && !round) {
            char where[24 * MR_NPY_MAX_RANK];
            place(x, i, where, sizeof where);
            return cli_error(CLI_BAD_INPUT,
                             "%s: element %s is %.9g, not a bf16 value; --round rounds", path,
                             where, (double)((const float *)x->data)[i]);
        }
        (*codes)[i] = to_bf16(bits[i]);
    }
    return CLI_OK;
}

static int same_shape(const request *r, const mr_npy *a, const mr_npy *b) {
    bool same = a->rank == b->rank;
    for (size_t i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i];
    if (same)
        return CLI_OK;
    char sa[24 * MR_NPY_MAX_RANK], sb[24 * MR_NPY_MAX_RANK];
    const mr_npy *x[2] = {a, b};
    char *text[2] = {sa, sb};
    for (int k = 0; k < 2; k++) {
        size_t used = (size_t)snprintf(text[k], sizeof sa, "(");
        for (size_t i = 0; i < x[k]->rank; i++)
            used += (size_t)snprintf(text[k] + used, sizeof sa - used, "%s%zu", i ? ", " : "",
                                     x[k]->shape[i]);
        snprintf(text[k] + used, sizeof sa - used, ")");
    }
    return cli_error(CLI_BAD_INPUT, "%s has shape %s, %s has %s: they must be equal", r->a, sa,
                     r->b, sb);
}

/* What became of the products besides the values. */
typedef struct {
    size_t overflow, underflow, invalid;
    bool device;    /* not the golden model in this process: */
    size_t by_host; /* pairs whose zero needed no multiplier */
    mr_pnm_counters counters;
} outcome;

static int multiply(const mr_pnm_mult_mode *m, const uint16_t *a, const uint16_t *b, size_t count,
                    float *out, outcome *met) {
    uint16_t *table = malloc(MR_PNM_TABLE * sizeof *table);
    if (!table || mr_pnm_mult_table(m, table) != 0) {
        free(table);
        return cli_error(CLI_FAILED, "pnm mult: no memory for the table of products");
    }
    for (size_t i = 0; i < count; i++) {
        unsigned flags = 0;
        uint32_t code = mr_pnm_mult_by_table(table, a[i], b[i], &flags);
        memcpy(out + i, &code, sizeof code);
        met->overflow += (flags & MR_PNM_OVERFLOW) != 0;
        met->underflow += (flags & MR_PNM_UNDERFLOW) != 0;
        met->invalid += (flags & MR_PNM_INVALID) != 0;
    }
    free(table);
    return CLI_OK;
}

/* On a near-memory unit: the same products, each a sum of one term. */
static int multiply_on(const request *r, const mr_pnm_mult_mode *m, const uint16_t *a,
                       const uint16_t *b, size_t count, float *out, outcome *met) {
    bool split = m->kind == MR_PNM_SPLIT;
    if (m->gen != MR_PNM_UNARY && m->gen != MR_PNM_CENTRED)
        return cli_error(CLI_UNAVAILABLE, "pnm mult: %s: no multipliers with --gen %s; golden has",
                         r->device, mr_pnm_gen_name(m->gen));
    mr_pnm_exec_options options = mr_pnm_exec_defaults();
    options.chips = 1;
    options.stop = &cli_stop;
    options.timeout_ns = (uint64_t)(r->timeout * 1e9);
    if (split) {
        options.gen = m->gen;
        options.cut = m->cut;
    }
    mr_pnm_mode mode = {.kind = (uint8_t)m->kind, .log_length = 2};
    while (1u << mode.log_length < m->stream)
        mode.log_length++;
    mr_pnm_exec *exec = NULL;
    mr_status e = mr_pnm_exec_open(r->device, &options, &exec);
    if (e == MR_OK)
        e = mr_pnm_products(exec, mode, a, b, count, (uint32_t *)out, &met->by_host,
                            &met->counters);
    mr_pnm_exec_close(exec);
    if (e != MR_OK)
        return cli_fail(e);
    met->device = true;
    for (size_t i = 0; i < count; i++) {
        unsigned flags = 0; /* what the operands met does not depend on how they are multiplied */
        uint32_t code;
        memcpy(&code, out + i, sizeof code);
        mr_pnm_mult_mode exact = mr_pnm_mult_default();
        exact.kind = MR_PNM_EXACT;
        mr_pnm_mult(&exact, a[i], b[i], &flags);
        met->invalid += (flags & MR_PNM_INVALID) != 0;
        bool odd = (a[i] & 0x7F80) == 0x7F80 || (b[i] & 0x7F80) == 0x7F80;
        met->overflow += !odd && (code & 0x7FFFFFFF) == 0x7F800000;
        bool zero = (a[i] & 0x7FFF) == 0 || (b[i] & 0x7FFF) == 0;
        bool flushed = (!(a[i] & 0x7F80) && (a[i] & 0x7F)) || (!(b[i] & 0x7F80) && (b[i] & 0x7F));
        met->underflow += flushed || (!odd && !zero && (code & 0x7FFFFFFF) == 0);
    }
    return CLI_OK;
}

static int report(const request *r, const mr_pnm_mult_mode *m, size_t count, const outcome *met) {
    if (!r->json) {
        printf("%zu products, %s", count, mr_pnm_kind_name(r->kind));
        if (m->kind != MR_PNM_EXACT)
            printf(" by %s streams of %u, cut %u", mr_pnm_gen_name(m->gen), m->stream, m->cut);
        printf(": wrote %s\n", r->out);
        return cli_flush();
    }
    json_t *o =
        json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:o}", "device", cli_json_text(r->device), "mode",
                  mr_pnm_kind_name(r->kind), "products", (json_int_t)count, "overflow",
                  (json_int_t)met->overflow, "underflow", (json_int_t)met->underflow, "invalid",
                  (json_int_t)met->invalid, "out", cli_json_text(r->out));
    if (m->kind != MR_PNM_EXACT) {
        json_object_set_new(o, "stream", json_integer(m->stream));
        json_object_set_new(o, "gen", json_string(mr_pnm_gen_name(m->gen)));
        json_object_set_new(o, "cut", json_integer(m->cut));
    }
    if (met->device) {
        bool cycles = met->counters.hardware;
        json_object_set_new(o, "by_host", json_integer((json_int_t)met->by_host));
        json_object_set_new(o, "cycles",
                            cycles ? json_integer((json_int_t)met->counters.cycles) : json_null());
    }
    return cli_print_json(o);
}

static int run(const request *r) {
    mr_pnm_mult_mode m;
    int code = mode_of(r, &m);
    if (code != CLI_OK)
        return code;
    mr_npy a = {0}, b = {0};
    uint16_t *ca = NULL, *cb = NULL;
    float *out = NULL;
    outcome met = {0};
    code = load(r->a, r->round, &a, &ca);
    if (code == CLI_OK)
        code = load(r->b, r->round, &b, &cb);
    if (code == CLI_OK)
        code = same_shape(r, &a, &b);
    if (code == CLI_OK) {
        mr_status e = mr_file_check_writable(r->out);
        code = e == MR_OK ? CLI_OK : cli_fail(e);
    }
    if (code == CLI_OK && !(out = malloc(a.count ? a.count * sizeof *out : 1)))
        code = cli_error(CLI_FAILED, "pnm mult: out of memory for %zu products", a.count);
    if (code == CLI_OK)
        code = !strcmp(r->device, "golden") ? multiply(&m, ca, cb, a.count, out, &met)
                                            : multiply_on(r, &m, ca, cb, a.count, out, &met);
    if (code == CLI_OK) {
        mr_status e = mr_npy_write_f32(r->out, a.rank, a.shape, out);
        code = e == MR_OK ? report(r, &m, a.count, &met) : cli_fail(e);
    }
    free(out);
    free(ca);
    free(cb);
    mr_npy_free(&a);
    mr_npy_free(&b);
    return code;
}

int cli_pnm_mult(int argc, char **argv) {
    mr_pnm_mult_mode d = mr_pnm_mult_default();
    request r = {.device = "golden", .timeout = 600, .seed_a = d.seed_a, .seed_b = d.seed_b};
    enum { STREAM = 3, GEN, CUT, SEED_A, SEED_B };
    cli_option options[] = {
        {.name = "a",
         .kind = CLI_TEXT,
         .value = &r.a,
         .hint = "A.npy",
         .help = "float32 array of bf16 values",
         .required = true},
        {.name = "b",
         .kind = CLI_TEXT,
         .value = &r.b,
         .hint = "B.npy",
         .help = "another one of the same shape",
         .required = true},
        {.name = "mode",
         .kind = CLI_CHOICE,
         .value = &r.kind,
         .hint = "split|full|exact",
         .help = "stochastic fa*fb, stochastic significand, or binary",
         .required = true},
        [STREAM] = {.name = "stream",
                    .kind = CLI_COUNT,
                    .value = &r.stream,
                    .hint = "L",
                    .help = "stream bits a product, a power of two",
                    .least = MR_PNM_STREAM_MIN,
                    .most = MR_PNM_STREAM_MAX},
        [GEN] = {.name = "gen",
                 .kind = CLI_CHOICE,
                 .value = &r.gen,
                 .hint = "unary|lfsr|sobol|centred",
                 .help = "stream generator (default centred for split, unary for full)"},
        [CUT] = {.name = "cut",
                 .kind = CLI_COUNT,
                 .value = &r.cut,
                 .hint = "C",
                 .help = "upper fraction bits multiplied in binary (default 0)",
                 .least = 0,
                 .most = MR_PNM_CUT_MAX},
        [SEED_A] = {.name = "seed-a",
                    .kind = CLI_COUNT,
                    .value = &r.seed_a,
                    .hint = "N",
                    .help = "lfsr: seed of a's register, 24 bits",
                    .least = 1,
                    .most = 0xFFFFFE},
        [SEED_B] = {.name = "seed-b",
                    .kind = CLI_COUNT,
                    .value = &r.seed_b,
                    .hint = "N",
                    .help = "lfsr: seed of b's register, 23 bits",
                    .least = 1,
                    .most = 0x7FFFFE},
        {.name = "round",
         .kind = CLI_FLAG,
         .value = &r.round,
         .help = "round values that are no bf16 ones, to nearest even"},
        {.name = "device",
         .kind = CLI_TEXT,
         .value = &r.device,
         .hint = "NAME",
         .help = "golden (default), sim:pnm, cpu:, opencl:N, cuda:N"},
        {.name = "timeout",
         .kind = CLI_REAL,
         .value = &r.timeout,
         .hint = "SECONDS",
         .help = "longest wait for a job of the device (default 600)",
         .least = 0.001,
         .most = 1e6},
        {.name = "out",
         .kind = CLI_TEXT,
         .value = &r.out,
         .hint = "P.npy",
         .help = "where the unrounded products go, float32",
         .required = true},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("pnm mult", "Multiplies bf16 arrays as the near-memory elements do.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    r.have_stream = options[STREAM].given;
    r.have_gen = options[GEN].given;
    r.have_cut = options[CUT].given;
    r.have_seed = options[SEED_A].given || options[SEED_B].given;
    return run(&r);
}
