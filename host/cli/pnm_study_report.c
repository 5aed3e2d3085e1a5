/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `millrace pnm study`, as docs/pnm-study.md has them, and the same as JSON. */
#include "host/cli/pnm_study.h"

#include <string.h>

static const char *const placements[] = {"aware", "blind"};
static const char *const schedules[] = {"pipelined", "sequential", "replicated"};

static const char *way(const pnm_case *c) { return c->inverse ? "sample" : "score"; }

/* Three digits, no exponent. */
static const char *brief(double v, char text[32]) {
    if (v >= 100)
        snprintf(text, 32, "%.0f", v);
    else
        snprintf(text, 32, "%.*f", v >= 10 ? 1 : 2, v);
    return text;
}

/* ---- Markdown ---------------------------------------------------------------------------------
 */

static void schedule_table(FILE *f, const pnm_study *s) {
    fprintf(f, "### Schedules\n\n"
               "Cycles an image on the built unit, many images, L = 16.\n\n"
               "| flow | | sequential | pipelined | replicated | sequential / pipelined | "
               "sequential / replicated |\n|:--|:--|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        const double *t = c->schedule;
        fprintf(f, "| %s | %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n", c->flow, way(c),
                t[MR_FLOW_SEQUENTIAL], t[MR_FLOW_PIPELINED], t[MR_FLOW_REPLICATED],
                t[MR_FLOW_SEQUENTIAL] / t[MR_FLOW_PIPELINED],
                t[MR_FLOW_SEQUENTIAL] / t[MR_FLOW_REPLICATED]);
    }
}

static void placement_table(FILE *f, const pnm_study *s) {
    fprintf(f, "\n### Placement\n\n"
               "Cycles an image on the built unit, without the loading of weights, L = 16: one "
               "image alone (pipelined), and many (replicated).\n\n"
               "| flow | | alone, aware | blind | blind / aware | many, aware | blind | "
               "blind / aware |\n|:--|:--|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        fprintf(f, "| %s | %s | %.0f | %.0f | %.2f | %.0f | %.0f | %.2f |\n", c->flow, way(c),
                c->alone[0], c->alone[1], c->alone[1] / c->alone[0], c->many[0], c->many[1],
                c->many[1] / c->many[0]);
    }
    fprintf(f, "\nA matrix of 256 x 256 alone, cycles of the matrix side:\n\n"
               "| vectors | in tier 0 | mean over the tiers | ratio |\n|--:|--:|--:|--:|\n");
    for (int v = 0; v < PNM_VECTORS; v++)
        fprintf(f, "| %d | %.0f | %.0f | %.2f |\n", 1 << v, s->matrix[0][v], s->matrix[1][v],
                s->matrix[1][v] / s->matrix[0][v]);
}

/* own / rival in one way of counting. */
typedef double ratio(const pnm_study *s, const pnm_case *c, int own, int rival);

static double by_package(const pnm_study *s, const pnm_case *c, int o, int r) {
    return pnm_own_rate(s, c, o) / pnm_rival_rate(s, c, r);
}
static double by_bandwidth(const pnm_study *s, const pnm_case *c, int o, int r) {
    return by_package(s, c, o, r) * pnm_rival_bandwidth(s, r) / pnm_own_bandwidth(s, o);
}
static double by_bank(const pnm_study *s, const pnm_case *c, int o, int r) {
    double own = s->own[o].units * s->own[o].groups * s->own[o].elements;
    return by_package(s, c, o, r) * s->rival[r].package_channels * s->rival[r].dram.banks / own;
}
static double alone(const pnm_study *s, const pnm_case *c, int o, int r) {
    (void)s;
    return c->rival[r].alone_ns / c->own[o].alone_ns;
}
static double by_energy(const pnm_study *s, const pnm_case *c, int o, int r) {
    (void)s;
    return c->rival[r].energy.total / c->own[o].energy.total;
}

static double by_energy_alone(const pnm_study *s, const pnm_case *c, int o, int r) {
    (void)s;
    return c->rival[r].alone_joules / c->own[o].alone_joules;
}

static const struct {
    const char *key, *title;
    ratio *of;
} ratios[] = {
    {"package", "Performance, a chip against a die (aim) or a stack (hbm_pim, attacc)", by_package},
    {"bank", "Performance, a bank against a bank", by_bank},
    {"bandwidth", "Performance, a byte a second of the banks against the same", by_bandwidth},
    {"alone", "One image alone, a channel against a channel", alone},
    {"energy", "Energy an image of many, the rival's over ours", by_energy},
    {"energy_alone", "Energy of one image alone, the rival's over ours", by_energy_alone}};
enum { RATIOS = sizeof ratios / sizeof ratios[0] };

static void rival_tables(FILE *f, const pnm_study *s) {
    char text[32];
    fprintf(f, "\n### Prior configurations\n\n| machine | banks | TB/s of the banks | GiB |\n"
               "|:--|--:|--:|--:|\n");
    for (int i = 0; i < PNM_OWN; i++)
        fprintf(f, "| %s | %u | %.2f | %.3f |\n", s->own[i].name,
                s->own[i].units * s->own[i].groups * s->own[i].elements,
                pnm_own_bandwidth(s, i) / 1e12, pnm_own_capacity(s, i) / 0x1p30);
    for (int i = 0; i < PNM_RIVALS; i++)
        fprintf(f, "| %s | %u | %.2f | %.3f |\n", s->rival[i].name,
                s->rival[i].package_channels * s->rival[i].dram.banks,
                pnm_rival_bandwidth(s, i) / 1e12, pnm_rival_capacity(s, i) / 0x1p30);
    fprintf(f, "\nThousands of images a second, a chip, die or stack; L = 16 in ours.\n\n"
               "| flow | | chip | wide | aim | hbm_pim | attacc |\n"
               "|:--|:--|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        fprintf(f, "| %s | %s", c->flow, way(c));
        for (int k = 0; k < PNM_OWN; k++)
            fprintf(f, " | %s", brief(pnm_own_rate(s, c, k) / 1e3, text));
        for (int k = 0; k < PNM_RIVALS; k++)
            fprintf(f, " | %s", brief(pnm_rival_rate(s, c, k) / 1e3, text));
        fprintf(f, " |\n");
    }
    for (int r = 0; r < RATIOS; r++) {
        fprintf(f, "\n%s:\n\n| flow | ", ratios[r].title);
        for (int o = 0; o < PNM_OWN; o++)
            for (int k = 0; k < PNM_RIVALS; k++)
                fprintf(f, "| %s / %s ", s->own[o].name, s->rival[k].name);
        fprintf(f, "|\n|:--|:--|--:|--:|--:|--:|--:|--:|\n");
        for (size_t i = 0; i < s->items; i++) {
            const pnm_case *c = &s->item[i];
            fprintf(f, "| %s | %s", c->flow, way(c));
            for (int o = 0; o < PNM_OWN; o++)
                for (int k = 0; k < PNM_RIVALS; k++)
                    fprintf(f, " | %s", brief(ratios[r].of(s, c, o, k), text));
            fprintf(f, " |\n");
        }
    }
}

static void energy_row(FILE *f, const pnm_case *c, const char *machine, const pnm_result *r) {
    const mr_pnm_energy *e = &r->energy;
    const double part[] = {e->dram,   e->operands, e->multiply, e->accumulate,
                           e->vector, e->scratch,  e->link};
    char text[32];
    fprintf(f, "| %s | %s | %s | %s", c->flow, way(c), machine, brief(r->energy.total * 1e6, text));
    for (size_t k = 0; k < sizeof part / sizeof part[0]; k++)
        fprintf(f, " | %.0f", 100 * part[k] / e->total);
    fprintf(f, " | %s |\n", brief(r->energy.total / c->products * 1e12, text));
}

static void energy_table(FILE *f, const pnm_study *s) {
    fprintf(
        f,
        "\n### Energy\n\nMicrojoules an image, where they go in per cent, and picojoules "
        "a product. Of a rival's `vector` part all is the host's; its `link` is what "
        "crosses a channel's bus.\n\n"
        "| flow | | machine | uJ | DRAM | operands | multiply | add | vector | scratchpad | link | "
        "pJ a product |\n|:--|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        for (int k = 0; k < PNM_OWN; k++)
            energy_row(f, &s->item[i], s->own[k].name, &s->item[i].own[k]);
        for (int k = 0; k < PNM_RIVALS; k++)
            energy_row(f, &s->item[i], s->rival[k].name, &s->item[i].rival[k]);
    }
}

/* 0: not measured. */
static double bpd_of(const pnm_study *s, const char *flow, int stream) {
    char key[128];
    if (stream)
        snprintf(key, sizeof key, "score %s hybrid %d centred cut 0", flow, stream);
    else
        snprintf(key, sizeof key, "score %s bf16", flow);
    return json_number_value(json_object_get(json_object_get(s->bpd, key), "bpd"));
}

static void accuracy_tables(FILE *f, const pnm_study *s) {
    fprintf(f, "\n### Latency against accuracy\n\nRMS error of a product relative to the exact "
               "one, all 128 x 128 pairs of fractions:\n\n| streams ");
    for (int l = 0; l < PNM_LENGTHS; l++)
        fprintf(f, "| L = %d ", 4 << l);
    fprintf(f, "|\n|:--|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int i = 0; i < PNM_STREAMS; i++) {
        fprintf(f, "| %s", s->stream[i].name);
        for (int l = 0; l < PNM_LENGTHS; l++)
            fprintf(f, " | %.5f", s->stream[i].rms[l]);
        fprintf(f, " |\n");
    }
    fprintf(f, "\nCycles an image when scoring, replicated, on the unit with 4, 16 (as built) "
               "or 64 stream bits a cycle; how many times as long as L = 4 the longest takes:\n\n"
               "| flow | bits a cycle ");
    for (int l = 0; l < PNM_LENGTHS; l++)
        fprintf(f, "| L = %d ", 4 << l);
    fprintf(f, "| 256 / 4 |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        for (int w = 0; w < PNM_WIDTHS && !c->inverse; w++) {
            fprintf(f, "| %s | %u", c->flow, pnm_study_widths[w]);
            for (int l = 0; l < PNM_LENGTHS; l++)
                fprintf(f, " | %.0f", c->length[w][l]);
            fprintf(f, " | %.2f |\n", c->length[w][PNM_LENGTHS - 1] / c->length[w][0]);
        }
    }
    if (!s->bpd)
        return;
    fprintf(f, "\nLoss of bits per dimension over bf16, per cent (models/zoo/flows/bpd.json):\n\n"
               "| flow ");
    for (int l = 0; l < PNM_LENGTHS; l++)
        fprintf(f, "| L = %d ", 4 << l);
    fprintf(f, "|\n|:--|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        double base = c->inverse ? 0 : bpd_of(s, c->flow, 0);
        if (!(base > 0))
            continue;
        fprintf(f, "| %s", c->flow);
        for (int l = 0; l < PNM_LENGTHS; l++) {
            double v = bpd_of(s, c->flow, 4 << l);
            if (v > 0)
                fprintf(f, " | %+.3f", 100 * (v / base - 1));
            else
                fprintf(f, " | -");
        }
        fprintf(f, " |\n");
    }
}

/* ---- targets ----------------------------------------------------------------------------------
 */

static void target(FILE *f, const pnm_study *s, const char *what, double least,
                   double (*of)(const pnm_study *s, const pnm_case *c, int rival), int rival) {
    double low = 0, high = 0;
    size_t met = 0;
    char a[32], b[32];
    for (size_t i = 0; i < s->items; i++) {
        double v = of(s, &s->item[i], rival);
        low = i && low < v ? low : v;
        high = high > v ? high : v;
        met += v >= least;
    }
    fprintf(f, "| %s | %g | %s | %s | %zu of %zu |\n", what, least, brief(low, a), brief(high, b),
            met, s->items);
}

static double pipelined(const pnm_study *s, const pnm_case *c, int r) {
    (void)s, (void)r;
    return c->schedule[MR_FLOW_SEQUENTIAL] / c->schedule[MR_FLOW_PIPELINED];
}
static double aware_alone(const pnm_study *s, const pnm_case *c, int r) {
    (void)s, (void)r;
    return c->alone[1] / c->alone[0];
}
static double aware_many(const pnm_study *s, const pnm_case *c, int r) {
    (void)s, (void)r;
    return c->many[1] / c->many[0];
}
static double faster(const pnm_study *s, const pnm_case *c, int r) {
    return by_package(s, c, 0, r);
}
static double thriftier(const pnm_study *s, const pnm_case *c, int r) {
    return by_energy(s, c, 0, r);
}

static void targets(FILE *f, const pnm_study *s) {
    static const char *const packages[PNM_RIVALS] = {"die", "stack", "stack"};
    char text[80];
    fprintf(f, "### Targets\n\nOver all flows and both directions, the chip as built:\n\n"
               "| ratio | at least | lowest | highest | reached |\n|:--|--:|--:|--:|--:|\n");
    target(f, s, "sequential / pipelined", 2, pipelined, 0);
    target(f, s, "tier-blind / tier-aware, one image alone", 1.3, aware_alone, 0);
    target(f, s, "tier-blind / tier-aware, many images", 1.3, aware_many, 0);
    for (int r = 0; r < PNM_RIVALS; r++) {
        snprintf(text, sizeof text, "performance, chip / %s %s", s->rival[r].name, packages[r]);
        target(f, s, text, 6.6, faster, r);
    }
    for (int r = 0; r < PNM_RIVALS; r++) {
        snprintf(text, sizeof text, "energy, %s / chip", s->rival[r].name);
        target(f, s, text, 3, thriftier, r);
    }
    fprintf(f, "\n");
}

void pnm_study_tables(FILE *f, const pnm_study *s) {
    targets(f, s);
    schedule_table(f, s);
    placement_table(f, s);
    rival_tables(f, s);
    energy_table(f, s);
    accuracy_tables(f, s);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static json_t *machine_json(const char *name, const pnm_result *r, double rate) {
    const mr_pnm_energy *e = &r->energy;
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}}",
                     "machine", name, "alone_ns", r->alone_ns, "alone_joules", r->alone_joules,
                     "channel_ns", r->stream_ns, "images_per_s", rate, "joules", r->energy.total,
                     "parts", "dram", e->dram, "operands", e->operands, "multiply", e->multiply,
                     "add", e->accumulate, "vector", e->vector, "scratchpad", e->scratch, "link",
                     e->link);
}

static json_t *numbers(const double *v, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_real(v[i]));
    return a;
}

static json_t *case_json(const pnm_study *s, const pnm_case *c) {
    json_t *o = json_pack("{s:s, s:s, s:I, s:f}", "flow", c->flow, "direction", way(c), "images",
                          (json_int_t)c->images, "products", c->products);
    json_t *schedule = json_object(), *job = json_object(), *place = json_object(),
           *machine = json_array();
    for (int i = 0; i < 3; i++) {
        json_object_set_new(schedule, schedules[i], json_real(c->schedule[i]));
        json_object_set_new(job, schedules[i], json_real(c->job[i]));
    }
    for (int i = 0; i < 2; i++)
        json_object_set_new(place, placements[i],
                            json_pack("{s:f, s:f}", "alone", c->alone[i], "many", c->many[i]));
    for (int i = 0; i < PNM_OWN; i++)
        json_array_append_new(machine,
                              machine_json(s->own[i].name, &c->own[i], pnm_own_rate(s, c, i)));
    for (int i = 0; i < PNM_RIVALS; i++)
        json_array_append_new(
            machine, machine_json(s->rival[i].name, &c->rival[i], pnm_rival_rate(s, c, i)));
    json_object_set_new(o, "schedule_cycles", schedule);
    json_object_set_new(o, "job_cycles", job);
    json_object_set_new(o, "placement_cycles", place);
    json_object_set_new(o, "machines", machine);
    json_t *all = json_object();
    for (int r = 0; r < RATIOS; r++) {
        json_t *table = json_object();
        for (int k = 0; k < PNM_OWN; k++) {
            json_t *row = json_object();
            for (int v = 0; v < PNM_RIVALS; v++)
                json_object_set_new(row, s->rival[v].name, json_real(ratios[r].of(s, c, k, v)));
            json_object_set_new(table, s->own[k].name, row);
        }
        json_object_set_new(all, ratios[r].key, table);
    }
    json_object_set_new(o, "ratios", all);
    if (!c->inverse) {
        json_t *length = json_array();
        for (int w = 0; w < PNM_WIDTHS; w++)
            json_array_append_new(length,
                                  json_pack("{s:i, s:o}", "bits_a_cycle", (int)pnm_study_widths[w],
                                            "cycles", numbers(c->length[w], PNM_LENGTHS)));
        json_object_set_new(o, "lengths", length);
    }
    return o;
}

json_t *pnm_study_json(const pnm_study *s) {
    json_t *cases = json_array(), *streams = json_array();
    for (size_t i = 0; i < s->items; i++)
        json_array_append_new(cases, case_json(s, &s->item[i]));
    for (int i = 0; i < PNM_STREAMS; i++)
        json_array_append_new(streams, json_pack("{s:s, s:o, s:o}", "streams", s->stream[i].name,
                                                 "rms", numbers(s->stream[i].rms, PNM_LENGTHS),
                                                 "mean", numbers(s->stream[i].mean, PNM_LENGTHS)));
    return json_pack("{s:o, s:o, s:{s:o, s:o}}", "flows", cases, "errors", streams, "matrix",
                     "tier_0", numbers(s->matrix[0], PNM_VECTORS), "mean",
                     numbers(s->matrix[1], PNM_VECTORS));
}
