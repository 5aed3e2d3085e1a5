/* SPDX-License-Identifier: Apache-2.0 */
/* millrace pnm study: what the near-memory unit is worth, in the timing models. */
#include "host/cli/pnm_study.h"

#include <stdlib.h>

#include "host/cli/zoo.h"
#include "host/io/file.h"

/* Both pictures can be written, or nothing is begun. */
static int check_folder(const char *folder) {
    static const char *const names[] = {"pnm-latency.svg", "pnm-energy.svg"};
    for (int i = 0; i < 2; i++) {
        char *path = cli_join(folder, names[i]);
        mr_status e = path ? mr_file_check_writable(path) : MR_OK;
        if (!path)
            return cli_error(CLI_FAILED, "out of memory");
        free(path);
        if (e != MR_OK)
            return cli_fail(e);
    }
    return CLI_OK;
}

int cli_pnm_study(int argc, char **argv) {
    const char *flow = NULL, *out = NULL;
    bool json = false;
    cli_option options[] = {
        {.name = "flow",
         .kind = CLI_TEXT,
         .value = &flow,
         .hint = "NAME",
         .help = "only this flow: digits-coupling, digits-tar, fashion-coupling or fashion-tar"},
        {.name = "out",
         .kind = CLI_TEXT,
         .value = &out,
         .hint = "FOLDER",
         .help = "write the pictures there: pnm-latency.svg and pnm-energy.svg"},
        {.name = "json", .kind = CLI_FLAG, .value = &json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("pnm study",
                         "Times the committed flows on the near-memory unit and on prior machines, "
                         "in the models:\nschedules, placements, energy, latency against accuracy.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    cli_catch_signals();
    pnm_study *s = calloc(1, sizeof *s);
    if (!s)
        return cli_error(CLI_FAILED, "out of memory");
    if (out)
        code = check_folder(out);
    if (code == CLI_OK)
        code = pnm_study_run(s, flow);
    if (code == CLI_OK && out)
        code = pnm_study_pictures(s, out);
    if (code == CLI_OK && json) {
        code = cli_print_json(pnm_study_json(s));
    } else if (code == CLI_OK) {
        pnm_study_tables(stdout, s);
        code = cli_flush();
    }
    json_decref(s->bpd);
    free(s);
    return code;
}
