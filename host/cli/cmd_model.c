/* SPDX-License-Identifier: Apache-2.0 */
/* millrace model rgu, millrace model pnm: a workload in a unit's timing model. */
#include "host/cli/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/zoo.h"

static int report(json_t *details, const verify_unit *unit, bool json) {
    const char *key;
    json_t *v;
    if (json) {
        json_object_set_new(details, "unit", json_string(unit->name));
        return cli_print_json(details);
    }
    printf("%lld cycles, bottleneck: %s\n", json_integer_value(json_object_get(details, "cycles")),
           json_string_value(json_object_get(details, "bottleneck")));
    json_object_foreach(json_object_get(details, "counters"), key, v) {
        printf("  %-16s %lld\n", key, json_integer_value(v));
    }
    json_decref(details);
    return cli_flush();
}

static int work_on(const verify_unit *unit, const char *file, const json_t *root,
                   const char *models, bool json) {
    verify_where at = {.file = file};
    char keys[256];
    const json_t *named = json_object_get(root, "unit");
    void *work = NULL;
    bool composed;
    uint64_t cycles;
    json_t *details = NULL;
    snprintf(keys, sizeof keys, "name unit doc short %s", unit->keys);
    if (!verify_keys(&at, root, keys))
        return CLI_BAD_INPUT;
    if (named && (!json_is_string(named) || strcmp(json_string_value(named), unit->name) != 0)) {
        verify_bad(&at, "unit", "is not %s", unit->name);
        return CLI_BAD_INPUT;
    }
    int code = unit->open(&at, root, models, &work, &composed) ? CLI_OK : CLI_BAD_INPUT;
    if (code == CLI_OK)
        code = unit->model(work, &cycles, &details);
    unit->close(work);
    return code == CLI_OK ? report(details, unit, json) : code;
}

static int model(const char *name, int argc, char **argv) {
    const verify_unit *unit = verify_find(name);
    const char *workload = NULL, *models = NULL;
    bool json = false;
    char command[32];
    cli_option options[] = {
        {.name = "workload",
         .kind = CLI_TEXT,
         .value = &workload,
         .hint = "FILE.json",
         .help = "what the unit does, as docs/models.md describes it",
         .required = true},
        {.name = "models",
         .kind = CLI_TEXT,
         .value = &models,
         .hint = "FOLDER",
         .help = "parameters of the units (default: the committed models/cycle)"},
        {.name = "json", .kind = CLI_FLAG, .value = &json, .help = "print one JSON object"},
        {.name = NULL}};
    snprintf(command, sizeof command, "model %s", name);
    int code = cli_parse(
        command, "Times a workload in the unit's timing model: cycles, bottleneck, counters.",
        options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    json_error_t e;
    json_t *root = json_load_file(workload, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        return cli_error(CLI_BAD_INPUT, "%s:%d: %.160s", workload, e.line < 1 ? 1 : e.line, e.text);
    char *own = models ? NULL : cli_beside_command("models/cycle", "models");
    if (!models && !own)
        code = cli_error(CLI_BAD_INPUT, "model: there is no models/cycle near the command");
    else
        code = work_on(unit, workload, root, models ? models : own, json);
    free(own);
    json_decref(root);
    return code;
}

int cli_model_rgu(int argc, char **argv) { return model("rgu", argc, argv); }
int cli_model_pnm(int argc, char **argv) { return model("pnm", argc, argv); }
