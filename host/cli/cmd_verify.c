/* SPDX-License-Identifier: Apache-2.0 */
/* millrace verify: every workload of a matrix on the RTL and in the timing model. */
#include "host/cli/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/zoo.h"

enum { VERSION = 1 };
static const double each = 0.01, mean = 0.0025; /* how far composed runs may be off */

typedef struct {
    const char *matrix, *models, *unit;
    bool json, brief;
} request;

/* Runs of a unit so far. */
typedef struct {
    size_t runs, composed, wrong;
    double sum; /* of the composed runs' differences, absolute, as shares */
} tally;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The shortest of some runs: others may have the machine in between. */
static int time_model(const verify_unit *unit, void *work, uint64_t *cycles, double *seconds) {
    double begin = now();
    *seconds = INFINITY;
    for (int i = 0; i < 50 && (i < 3 || now() - begin < 0.02); i++) {
        double t = now();
        int code = unit->model(work, cycles, NULL);
        if (code != CLI_OK)
            return code;
        t = now() - t;
        *seconds = t < *seconds ? t : *seconds;
    }
    return CLI_OK;
}

static int run(const request *r, const verify_where *at, const json_t *w, json_t *list, tally *t) {
    const char *name = json_string_value(json_object_get(w, "name"));
    const verify_unit *unit = verify_find(json_string_value(json_object_get(w, "unit")));
    void *work = NULL;
    bool composed = false;
    uint64_t rtl = 0, model = 0;
    double rtl_s = 0, model_s = 0;
    int code = unit->open(at, w, r->models, &work, &composed) ? CLI_OK : CLI_BAD_INPUT;
    if (code == CLI_OK)
        code = time_model(unit, work, &model, &model_s);
    if (code == CLI_OK)
        code = unit->rtl(work, &rtl, &rtl_s);
    unit->close(work);
    if (code != CLI_OK)
        return code;
    double off = ((double)model - (double)rtl) / (double)rtl;
    bool wrong = composed ? fabs(off) > each : model != rtl;
    t->runs++;
    t->wrong += wrong;
    if (composed) {
        t->composed++;
        t->sum += fabs(off);
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:I, s:I, s:f, s:f}", "name", name,
                                          "unit", unit->name, "composed", composed, "rtl_cycles",
                                          (json_int_t)rtl, "model_cycles", (json_int_t)model,
                                          "rtl_s", rtl_s, "model_s", model_s));
    if (!r->json) {
        printf("%-5s %-34s %-8s %10" PRIu64 " %10" PRIu64 " %+8.3f %% %9.0f x%s\n", unit->name,
               name, composed ? "composed" : "single", rtl, model, 100 * off, rtl_s / model_s,
               wrong ? "  DIFFERS" : "");
        fflush(stdout);
    }
    return CLI_OK;
}

/* What is not read by the unit itself; *take: it belongs to this run. */
static bool check(const request *r, const verify_where *at, const json_t *w, bool *take) {
    const char *name = json_string_value(json_object_get(w, "name"));
    const char *of = json_string_value(json_object_get(w, "unit"));
    const verify_unit *unit = of ? verify_find(of) : NULL;
    char keys[256];
    bool brief;
    if (!json_is_object(w))
        return verify_bad(at, "", "must be an object");
    if (!unit)
        return verify_bad(at, "unit", "must be one of %s", verify_names());
    if (!name || !*name || strlen(name) > 60)
        return verify_bad(at, "name", "must be a name of at most 60 characters");
    snprintf(keys, sizeof keys, "name unit doc short %s", unit->keys);
    if (!verify_keys(at, w, keys) || !verify_flag(at, w, "short", &brief))
        return false;
    *take = (!r->unit || !strcmp(r->unit, of)) && (!r->brief || brief);
    return true;
}

/* Everything that will be run can be run, or nothing is. */
static int check_all(const request *r, verify_where *at, const json_t *root, size_t *taken) {
    const json_t *all = json_object_get(root, "workloads");
    uint32_t version;
    *taken = 0;
    if (!verify_keys(at, root, "doc version workloads") ||
        !verify_count(at, root, "version", VERSION, VERSION, -1, &version) ||
        (!json_is_array(all) && !verify_bad(at, "workloads", "must be a list")))
        return CLI_BAD_INPUT;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *w = json_array_get(all, i);
        void *work = NULL;
        bool take = false, composed;
        snprintf(at->place, sizeof at->place, "workloads[%zu]", i);
        if (!check(r, at, w, &take))
            return CLI_BAD_INPUT;
        if (!take)
            continue;
        const verify_unit *unit = verify_find(json_string_value(json_object_get(w, "unit")));
        bool good = unit->open(at, w, r->models, &work, &composed);
        unit->close(work);
        if (!good)
            return CLI_BAD_INPUT;
        ++*taken;
    }
    return *taken ? CLI_OK : cli_error(CLI_BAD_INPUT, "%s: no workload of that kind", r->matrix);
}

static int report(const request *r, json_t *list, const tally *t) {
    double average = t->composed ? t->sum / (double)t->composed : 0;
    bool good = !t->wrong && average <= mean;
    int code;
    if (r->json) {
        code = cli_print_json(json_pack("{s:i, s:O, s:I, s:f, s:b}", "version", VERSION,
                                        "workloads", list, "differ", (json_int_t)t->wrong,
                                        "composed_mean", average, "agree", good));
    } else {
        printf("%zu workloads, %zu composed: mean difference %.3f %%, %zu differ\n", t->runs,
               t->composed, 100 * average, t->wrong);
        code = cli_flush();
    }
    if (code == CLI_OK && !good)
        code = cli_error(CLI_FAILED,
                         "verify: %zu workloads differ, composed runs by %.3f %% in the mean",
                         t->wrong, 100 * average);
    return code;
}

static int run_all(const request *r, const json_t *root) {
    verify_where at = {.file = r->matrix};
    const json_t *all = json_object_get(root, "workloads");
    tally t = {0};
    size_t taken;
    int code = check_all(r, &at, root, &taken);
    if (code != CLI_OK)
        return code;
    json_t *list = json_array();
    if (!r->json)
        printf("%-5s %-34s %-8s %10s %10s %10s %11s\n", "unit", "workload", "kind", "RTL", "model",
               "off", "faster");
    for (size_t i = 0; code == CLI_OK && i < json_array_size(all); i++) {
        bool take = false;
        snprintf(at.place, sizeof at.place, "workloads[%zu]", i);
        if (check(r, &at, json_array_get(all, i), &take) && take)
            code = run(r, &at, json_array_get(all, i), list, &t);
        if (cli_stop)
            code = CLI_INTERRUPTED;
    }
    if (code == CLI_OK)
        code = report(r, list, &t);
    json_decref(list);
    return code;
}

static int load_and_run(request *r) {
    char *own = r->models ? NULL : cli_beside_command("models/cycle", "models"), *path = NULL;
    json_error_t e;
    if (!r->models && !own)
        return cli_error(CLI_BAD_INPUT, "verify: there is no models/cycle near the command");
    if (own)
        r->models = own;
    if (!r->matrix) {
        char *beside = own ? NULL : cli_beside_command("models/cycle", "models");
        path = cli_join(beside ? beside : r->models, "verify.json");
        free(beside);
        r->matrix = path ? path : "verify.json";
    }
    json_t *root = json_load_file(r->matrix, JSON_REJECT_DUPLICATES, &e);
    int code = root ? run_all(r, root)
                    : cli_error(CLI_BAD_INPUT, "%s:%d: %.160s", r->matrix, e.line < 1 ? 1 : e.line,
                                e.text);
    json_decref(root);
    free(path);
    free(own);
    return code;
}

int cli_verify(int argc, char **argv) {
    request r = {0};
    cli_option options[] = {
        {.name = "unit",
         .kind = CLI_TEXT,
         .value = &r.unit,
         .hint = "rgu|pnm",
         .help = "only this unit"},
        {.name = "short",
         .kind = CLI_FLAG,
         .value = &r.brief,
         .help = "only the workloads marked short"},
        {.name = "matrix",
         .kind = CLI_TEXT,
         .value = &r.matrix,
         .hint = "FILE.json",
         .help = "the workloads (default: the committed models/cycle/verify.json)"},
        {.name = "models",
         .kind = CLI_TEXT,
         .value = &r.models,
         .hint = "FOLDER",
         .help = "parameters of the models (default: the committed models/cycle)"},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse(
        "verify",
        "Runs workloads on the simulated RTL and in the timing models and fails when they "
        "part:\none descriptor must take equal cycles, composed runs 1 % each, 0.25 % in "
        "the mean.",
        options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    if (r.unit && !verify_find(r.unit))
        return cli_error(CLI_USAGE, "verify: --unit %s: must be one of %s", r.unit, verify_names());
    return load_and_run(&r);
}
