/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of `millrace pnm study`: flows compiled as `run flow` does, timed by the models. */
#include "host/cli/pnm_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/zoo.h"
#include "host/pnm/gemv.h"
#include "models/cycle/pnm_sides.h"
#include "models/golden/pnm_mult.h"

const unsigned pnm_study_widths[PNM_WIDTHS] = {4, 16, 64};
typedef struct {
    double ns, products;
    mr_pnm_energy energy;
    size_t batch, together; /* images of a half; of an iteration of all groups */
    bool failed;
} timed;

/* ---- one program ------------------------------------------------------------------------------
 */

static int of_model(const char *what) { return cli_error(CLI_FAILED, "pnm study: %s", what); }

/* The unit's energy for a program, the DRAM's as the model gave it. */
static mr_pnm_energy energy_of(const mr_pnm_program *p, const mr_pnm_timing *t, double *products) {
    mr_pnm_tally tally;
    mr_pnm_energy e;
    double pj = 0;
    mr_pnm_program_tally(p, &tally);
    mr_pnm_energy_of(&tally, NULL, &e);
    for (unsigned g = 0; g < p->groups; g++)
        pj += t->group[g].dram.pj;
    e.total += pj * 1e-12 - e.dram;
    e.dram = pj * 1e-12;
    *products = (double)(tally.exact_products + tally.hybrid_products);
    return e;
}

static void take_off(mr_pnm_energy *from, const mr_pnm_energy *what, double share) {
    double *a = (double *)from;
    const double *b = (const double *)what;
    for (size_t i = 0; i < sizeof *from / sizeof *a; i++)
        a[i] = (a[i] - b[i]) * share;
}

static int play(const mr_pnm_machine *m, const mr_pnm_program *p, timed *out) {
    mr_pnm_list list[MR_PNM_GROUPS];
    mr_pnm_timing *t = malloc(sizeof *t);
    char error[256] = "out of memory";
    for (unsigned g = 0; g < p->groups; g++)
        list[g] = (mr_pnm_list){p->image + p->list[g].addr, p->list[g].count};
    bool good = t && mr_pnm_time(m, list, p->groups, NULL, NULL, t, error, sizeof error);
    if (good) {
        out->energy = energy_of(p, t, &out->products);
        out->ns = mr_dram_ns(&m->dram, t->cycles);
    }
    free(t);
    return good ? CLI_OK : of_model(error);
}

/* The loops alone, if `loops`: without what comes before them, the loading of weights. */
static int time_program(const mr_pnm_machine *m, const mr_pnm_program *p, bool loops, timed *out) {
    int code = play(m, p, out);
    if (code != CLI_OK || !loops)
        return code;
    timed load = {0};
    mr_pnm_program before = *p;
    for (unsigned g = 0; g < p->groups; g++) {
        const uint8_t *last =
            p->image + p->list[g].addr + (size_t)(p->list[g].count - 1) * MR_PNM_DESC_BYTES;
        before.list[g].count =
            last[0] == MR_PNM_DESC_LOOP ? (uint32_t)PNM_FIELD(last, LOOP_TARGET) : 0;
    }
    code = play(m, &before, &load);
    out->ns -= load.ns;
    out->products -= load.products;
    take_off(&out->energy, &load.energy, 1);
    return code;
}

/* A flow's program; the caller destroys the plan. */
static int compile(const mr_flow *f, const mr_flow_plan_options *o, mr_flow_plan **plan) {
    mr_status e = mr_flow_plan_create(f, o, plan);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

/* Streams of another length than the list was woven for. */
static void set_length(const mr_pnm_program *p, unsigned log_length) {
    for (unsigned g = 0; log_length && g < p->groups; g++)
        for (uint32_t i = 0; i < p->list[g].count; i++) {
            uint8_t *d = p->image + p->list[g].addr + (size_t)i * MR_PNM_DESC_BYTES;
            unsigned byte = MR_PNM_D_MATVEC_LOG_LENGTH_LSB / 8;
            if (d[0] == MR_PNM_DESC_MATVEC) /* the byte's upper half */
                d[byte] = (uint8_t)((d[byte] & 0xFu) | log_length << 4);
        }
}

static int run_flow(const mr_pnm_machine *m, const mr_flow *f, const mr_flow_plan_options *o,
                    unsigned log_length, bool loops, timed *out) {
    mr_flow_plan *plan;
    int code = compile(f, o, &plan);
    if (code != CLI_OK)
        return code;
    mr_flow_plan_info info;
    mr_flow_plan_describe(plan, &info);
    out->batch = info.batch;
    out->together = info.batch * info.halves * info.replicas;
    set_length(mr_flow_plan_program(plan), log_length);
    code = time_program(m, mr_flow_plan_program(plan), loops, out);
    mr_flow_plan_destroy(plan);
    return code;
}

/* An image of many: as many whole iterations again take so much longer. The batch is that of `run
 * flow` with o.images. */
static int steady(const mr_pnm_machine *m, const mr_flow *f, mr_flow_plan_options o,
                  unsigned log_length, timed *out) {
    timed one = {0}, two = {0};
    int code = run_flow(m, f, &o, log_length, false, &one);
    double n = (double)o.images;
    if (code == CLI_OK && o.images % one.together)
        return of_model("an iteration of some groups is not whole");
    o.batch = one.batch;
    o.images *= 2;
    if (code == CLI_OK)
        code = run_flow(m, f, &o, log_length, false, &two);
    *out = two;
    out->ns = (two.ns - one.ns) / n;
    out->products = (two.products - one.products) / n;
    take_off(&out->energy, &one.energy, 1 / n);
    return code;
}

/* ---- rivals -----------------------------------------------------------------------------------
 */

static double coefficient(const char *name) {
    const char *at;
    double pj = 0;
    for (size_t i = 0; (at = mr_pnm_energy_coefficient(i, &pj)) != NULL; i++)
        if (!strcmp(at, name))
            return pj;
    return 0;
}

/* What the host spends on VEC: as much as the unit's vector side does, scratchpad included. */
static double host_energy(const mr_pnm_list *list) {
    double pj = 0, element = coefficient("vector_element"), bit = coefficient("scratch_bit");
    for (uint32_t i = 0; i < list->count; i++) {
        const uint8_t *d = list->desc + (size_t)i * MR_PNM_DESC_BYTES;
        if (d[0] != MR_PNM_DESC_VEC)
            continue;
        double rows = (double)(PNM_FIELD(d, VEC_COUNT) * PNM_FIELD(d, VEC_WIDTH));
        int operands = 1 + (PNM_FIELD(d, VEC_MUL) == MR_PNM_ELEM) +
                       (PNM_FIELD(d, VEC_ADD) == MR_PNM_ELEM) +
                       (PNM_FIELD(d, VEC_REDUCE) == MR_PNM_KEEP);
        pj += rows * MR_PNM_ROW_WORDS * (element + operands * 32 * bit);
    }
    return pj * 1e-12;
}

static int run_rival(const mr_rival *r, const mr_flow *f, bool inverse, size_t batch, bool alone,
                     pnm_result *out) {
    mr_flow_plan_options o = {.inverse = inverse,
                              .images = alone ? 1 : 2 * batch,
                              .groups = 1,
                              .batch = alone ? 1 : batch,
                              .schedule = MR_FLOW_REPLICATED,
                              .mode = {.kind = MR_PNM_EXACT, .log_length = 2}};
    mr_flow_plan *plan;
    int code = compile(f, &o, &plan);
    if (code != CLI_OK)
        return code;
    const mr_pnm_program *p = mr_flow_plan_program(plan);
    mr_pnm_list body = {p->image + p->list[0].addr, p->list[0].count - 1};
    const uint8_t *loop = body.desc + (size_t)body.count * MR_PNM_DESC_BYTES;
    uint32_t target = (uint32_t)PNM_FIELD(loop, LOOP_TARGET);
    body.desc += (size_t)target * MR_PNM_DESC_BYTES;
    body.count -= target;
    mr_rival_timing t;
    if (!mr_rival_time(r, &body, alone, &t)) {
        code = of_model("out of memory");
    } else {
        double n = (double)o.images;
        mr_pnm_energy e = {.dram = t.dram_j / n,
                           .operands = t.operand_j / n,
                           .multiply = t.multiply_j / n,
                           .vector = host_energy(&body) / n,
                           .link = t.link_j / n};
        e.total = e.dram + e.operands + e.multiply + e.vector + e.link;
        *(alone ? &out->alone_ns : &out->stream_ns) = t.ns / n;
        if (alone)
            out->alone_joules = e.total;
        else
            out->energy = e;
    }
    mr_flow_plan_destroy(plan);
    return code;
}

/* ---- a flow in one direction ------------------------------------------------------------------
 */

static mr_flow_plan_options options_of(const pnm_case *c, mr_flow_schedule schedule) {
    return (mr_flow_plan_options){.inverse = c->inverse,
                                  .images = c->images,
                                  .groups = MR_PNM_GROUPS,
                                  .schedule = schedule,
                                  .mode = {.kind = MR_PNM_SPLIT, .log_length = 4}};
}

static int placements(const pnm_study *s, const mr_flow *f, pnm_case *c) {
    int code = CLI_OK;
    for (int p = 0; p < 2 && code == CLI_OK; p++) {
        timed t = {0};
        mr_flow_plan_options o = options_of(c, MR_FLOW_REPLICATED);
        o.placement = (mr_flow_placement)p;
        code = steady(&s->unit, f, o, 0, &t);
        c->many[p] = t.ns;
        o.schedule = MR_FLOW_PIPELINED;
        o.images = 1;
        if (code == CLI_OK)
            code = run_flow(&s->unit, f, &o, 0, true, &t);
        c->alone[p] = t.ns;
    }
    return code;
}

static int machines(const pnm_study *s, const mr_flow *f, pnm_case *c) {
    timed t = {0};
    int code = CLI_OK;
    for (int i = 0; i < PNM_OWN && code == CLI_OK; i++) {
        mr_flow_plan_options o = options_of(c, MR_FLOW_REPLICATED);
        code = steady(&s->own[i], f, o, 0, &t);
        c->own[i].stream_ns = t.ns;
        c->own[i].energy = t.energy;
        c->products = t.products;
        size_t batch = t.batch;
        o = options_of(c, MR_FLOW_PIPELINED);
        o.images = 1;
        if (code == CLI_OK)
            code = run_flow(&s->own[i], f, &o, 0, true, &t);
        c->own[i].alone_ns = t.ns;
        c->own[i].alone_joules = t.energy.total;
        t.batch = batch;
    }
    for (int i = 0; i < PNM_RIVALS && code == CLI_OK; i++) {
        code = run_rival(&s->rival[i], f, c->inverse, t.batch, false, &c->rival[i]);
        if (code == CLI_OK)
            code = run_rival(&s->rival[i], f, c->inverse, 1, true, &c->rival[i]);
    }
    return code;
}

static int lengths(const pnm_study *s, const mr_flow *f, pnm_case *c) {
    int code = CLI_OK;
    for (int w = 0; w < PNM_WIDTHS; w++)
        for (int l = 0; l < PNM_LENGTHS && code == CLI_OK; l++) {
            timed t = {0};
            mr_pnm_machine m = s->unit;
            m.stream_bits = pnm_study_widths[w];
            code = steady(&m, f, options_of(c, MR_FLOW_REPLICATED), (unsigned)l + 2, &t);
            c->length[w][l] = t.ns;
        }
    return code;
}

static int run_case(const pnm_study *s, const mr_flow *f, pnm_case *c) {
    int code = CLI_OK;
    for (int i = 0; i < 3 && code == CLI_OK; i++) {
        timed t = {0};
        mr_flow_plan_options o = options_of(c, (mr_flow_schedule)i);
        code = run_flow(&s->unit, f, &o, 0, false, &t);
        c->job[i] = t.ns;
        if (code == CLI_OK)
            code = steady(&s->unit, f, o, 0, &t);
        c->schedule[i] = t.ns;
    }
    if (code == CLI_OK)
        code = placements(s, f, c);
    if (code == CLI_OK)
        code = machines(s, f, c);
    if (code == CLI_OK && !c->inverse)
        code = lengths(s, f, c);
    if (code == CLI_OK && cli_stop)
        code = cli_error(CLI_INTERRUPTED, "pnm study: interrupted");
    return code;
}

/* ---- the multiplier, and a matrix alone -------------------------------------------------------
 */

static const struct {
    const char *name;
    mr_pnm_kind kind;
    mr_pnm_gen gen;
    unsigned cut;
} streams[PNM_STREAMS] = {{"centred", MR_PNM_SPLIT, MR_PNM_CENTRED, 0},
                          {"centred, cut 1", MR_PNM_SPLIT, MR_PNM_CENTRED, 1},
                          {"centred, cut 2", MR_PNM_SPLIT, MR_PNM_CENTRED, 2},
                          {"centred, cut 3", MR_PNM_SPLIT, MR_PNM_CENTRED, 3},
                          {"unary", MR_PNM_SPLIT, MR_PNM_UNARY, 0},
                          {"unary, cut 3", MR_PNM_SPLIT, MR_PNM_UNARY, 3},
                          {"sobol", MR_PNM_SPLIT, MR_PNM_SOBOL, 0},
                          {"lfsr", MR_PNM_SPLIT, MR_PNM_LFSR, 0},
                          {"full, unary", MR_PNM_FULL, MR_PNM_UNARY, 0}};

static int stream_errors(pnm_study *s) {
    uint16_t *table = malloc(MR_PNM_TABLE * sizeof *table);
    for (int i = 0; table && i < PNM_STREAMS; i++) {
        mr_pnm_mult_mode m = mr_pnm_mult_default();
        m.kind = streams[i].kind;
        m.gen = streams[i].gen;
        m.cut = streams[i].cut;
        s->stream[i].name = streams[i].name;
        for (int l = 0; l < PNM_LENGTHS; l++) {
            m.stream = 4u << l;
            double squares = 0, sum = 0;
            if (mr_pnm_mult_table(&m, table) != 0) {
                free(table);
                return of_model("no such multiplier");
            }
            for (int k = 0; k < MR_PNM_TABLE; k++) {
                int a = 128 + k / 128, b = 128 + k % 128;
                double d = (double)table[k] / (double)(a * b) - 1;
                squares += d * d;
                sum += d;
            }
            s->stream[i].rms[l] = sqrt(squares / MR_PNM_TABLE);
            s->stream[i].mean[l] = sum / MR_PNM_TABLE;
        }
    }
    free(table);
    return table ? CLI_OK : of_model("out of memory");
}

/* 256 x 256 in one tier, all groups; the cycles of the matrices alone are what a second pass adds.
 */
static int matrix_alone(pnm_study *s) {
    enum { SIDE = 256, MOST = 16 };
    float *w = calloc(SIDE * SIDE, sizeof *w), *x = calloc(SIDE * MOST, sizeof *x);
    int code = w && x ? CLI_OK : of_model("out of memory");
    for (int v = 0; v < PNM_VECTORS && code == CLI_OK; v++)
        for (unsigned tier = 0; tier < MR_PNM_TIERS && code == CLI_OK; tier++) {
            mr_pnm_gemv g = {.name = "w",
                             .w = w,
                             .x = x,
                             .outputs = SIDE,
                             .inputs = SIDE,
                             .vectors = (size_t)1 << v,
                             .mode = {.kind = MR_PNM_SPLIT, .log_length = 4},
                             .groups = MR_PNM_GROUPS,
                             .tier = tier};
            mr_pnm_gemv_plan *plan;
            mr_status e = mr_pnm_gemv_plan_create(&g, &plan);
            if (e != MR_OK) {
                code = cli_fail(e);
                break;
            }
            const mr_pnm_program *p = mr_pnm_gemv_program(plan);
            mr_pnm_list list[MR_PNM_GROUPS];
            mr_pnm_timing *t = malloc(sizeof *t);
            char error[256] = "out of memory";
            for (unsigned i = 0; i < p->groups; i++)
                list[i] = (mr_pnm_list){p->image + p->list[i].addr, p->list[i].count};
            if (!t || !mr_pnm_time(&s->unit, list, p->groups, NULL, NULL, t, error, sizeof error))
                code = of_model(error);
            else if (tier == 0)
                s->matrix[0][v] = (double)t->group[0].mv_cycles;
            if (code == CLI_OK)
                s->matrix[1][v] += (double)t->group[0].mv_cycles / MR_PNM_TIERS;
            free(t);
            mr_pnm_gemv_plan_destroy(plan);
        }
    free(w);
    free(x);
    return code;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static int load_machines(pnm_study *s) {
    static const char *const own[PNM_OWN] = {"chip", "wide"};
    static const char *const rivals[PNM_RIVALS] = {"aim", "hbm_pim", "attacc"};
    char *folder = cli_beside_command("models/cycle", "models"), error[512] = "", path[4096];
    char drams[4096];
    if (!folder)
        return cli_error(CLI_BAD_INPUT, "pnm study: there is no models/cycle near the command");
    snprintf(drams, sizeof drams, "%s/dram", folder);
    snprintf(path, sizeof path, "%s/pnm/unit.json", folder);
    bool good = mr_pnm_machine_load(path, drams, &s->unit, error, sizeof error);
    for (int i = 0; i < PNM_OWN && good; i++) {
        snprintf(path, sizeof path, "%s/pnm/%s.json", folder, own[i]);
        good = mr_pnm_machine_load(path, drams, &s->own[i], error, sizeof error);
    }
    for (int i = 0; i < PNM_RIVALS && good; i++) {
        snprintf(path, sizeof path, "%s/rivals/%s.json", folder, rivals[i]);
        good = mr_rival_load(path, drams, &s->rival[i], error, sizeof error);
    }
    free(folder);
    return good ? CLI_OK : cli_error(CLI_BAD_INPUT, "%s", error);
}

static int flow_cases(pnm_study *s, const char *folder, const char *name, size_t images) {
    char path[4096];
    mr_flow *f;
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    mr_status e = mr_flow_open(path, &f);
    if (e != MR_OK)
        return cli_fail(e);
    int code = CLI_OK;
    for (int inverse = 0; inverse < 2 && code == CLI_OK; inverse++) {
        pnm_case *c = &s->item[s->items++];
        *c = (pnm_case){.flow = name, .inverse = inverse, .images = images};
        code = run_case(s, f, c);
    }
    mr_flow_close(f);
    return code;
}

int pnm_study_run(pnm_study *s, const char *only) {
    static const struct {
        const char *name;
        size_t images;
    } flows[PNM_FLOWS] = {
        {"digits-coupling", 64}, {"digits-tar", 64}, {"fashion-coupling", 16}, {"fashion-tar", 32}};
    char *zoo = cli_zoo_folder(), *folder = zoo ? cli_join(zoo, "flows") : NULL;
    free(zoo);
    if (!folder)
        return CLI_BAD_INPUT;
    int code = load_machines(s);
    bool any = false;
    for (int i = 0; i < PNM_FLOWS && code == CLI_OK; i++)
        if (!only || !strcmp(only, flows[i].name)) {
            any = true;
            code = flow_cases(s, folder, flows[i].name, flows[i].images);
        }
    if (code == CLI_OK && !any)
        code = cli_error(CLI_USAGE, "pnm study: --flow %s: must be %s, %s, %s or %s", only,
                         flows[0].name, flows[1].name, flows[2].name, flows[3].name);
    if (code == CLI_OK)
        code = stream_errors(s);
    if (code == CLI_OK)
        code = matrix_alone(s);
    char *bpd = cli_join(folder, "bpd.json");
    s->bpd = code == CLI_OK && bpd ? json_load_file(bpd, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(bpd);
    free(folder);
    return code;
}

/* ---- figures of a chip ------------------------------------------------------------------------
 */

double pnm_own_rate(const pnm_study *s, const pnm_case *c, int i) {
    return s->own[i].units * 1e9 / c->own[i].stream_ns;
}
double pnm_rival_rate(const pnm_study *s, const pnm_case *c, int i) {
    return s->rival[i].package_channels * 1e9 / c->rival[i].stream_ns;
}
double pnm_own_bandwidth(const pnm_study *s, int i) { return mr_dram_peak(&s->own[i].dram) * 1e9; }
double pnm_rival_bandwidth(const pnm_study *s, int i) {
    const mr_rival *r = &s->rival[i];
    return mr_dram_peak(&r->dram) * 1e9 * r->package_channels / r->dram.channels;
}
double pnm_own_capacity(const pnm_study *s, int i) {
    return (double)mr_dram_capacity(&s->own[i].dram);
}
double pnm_rival_capacity(const pnm_study *s, int i) {
    const mr_rival *r = &s->rival[i];
    return (double)mr_dram_capacity(&r->dram) * r->package_channels / r->dram.channels;
}
