/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/pnm.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

cli_pnm_mode cli_pnm_mode_init(void) {
    cli_pnm_mode m = {.mode = mr_pnm_mult_default()};
    return m;
}

int cli_pnm_mode_check(const char *command, const cli_option *options, cli_pnm_mode *m) {
    static const mr_pnm_gen gens[] = {MR_PNM_UNARY, MR_PNM_CENTRED};
    bool streams = m->kind != MR_PNM_EXACT;
    const char *name = mr_pnm_kind_name(m->kind);
    m->mode.kind = (mr_pnm_kind)m->kind;
    m->mode.gen = options[CLI_PNM_GEN].given ? gens[m->gen] : MR_PNM_CENTRED;
    m->mode.cut = (unsigned)m->cut;
    if (streams && !options[CLI_PNM_STREAM].given)
        return cli_error(CLI_USAGE, "%s: --mode %s needs --stream", command, name);
    for (int i = CLI_PNM_GEN; i <= CLI_PNM_CUT; i++)
        if (options[i].given && m->kind != MR_PNM_SPLIT)
            return cli_error(CLI_USAGE, "%s: --mode %s has no --%s", command, name,
                             options[i].name);
    if (!options[CLI_PNM_STREAM].given)
        m->stream = MR_PNM_STREAM_MIN;
    if (m->stream & (m->stream - 1))
        return cli_error(CLI_USAGE, "%s: --stream %zu: must be a power of two", command, m->stream);
    m->mode.stream = (unsigned)m->stream;
    for (m->log_length = 0; m->stream >> (m->log_length + 1);)
        m->log_length++;
    if (m->kind == MR_PNM_SPLIT) {
        const char *wrong = mr_pnm_mult_check(&m->mode);
        if (wrong)
            return cli_error(CLI_USAGE, "%s: --gen %s --cut %zu: %s", command,
                             mr_pnm_gen_name((int)m->mode.gen), m->cut, wrong);
    }
    return CLI_OK;
}

void cli_pnm_print_mode(const cli_pnm_mode *m) {
    printf(", %s", mr_pnm_kind_name(m->kind));
    if (m->kind == MR_PNM_SPLIT)
        printf(" by %s streams of %zu, cut %zu", mr_pnm_gen_name((int)m->mode.gen), m->stream,
               m->cut);
    else if (m->kind == MR_PNM_FULL)
        printf(" by streams of %zu", m->stream);
}

void cli_pnm_add_mode(const cli_pnm_mode *m, json_t *o) {
    bool split = m->kind == MR_PNM_SPLIT;
    json_object_set_new(
        o, "stream", m->kind == MR_PNM_EXACT ? json_null() : json_integer((json_int_t)m->stream));
    json_object_set_new(o, "gen",
                        split ? json_string(mr_pnm_gen_name((int)m->mode.gen)) : json_null());
    json_object_set_new(o, "cut", split ? json_integer((json_int_t)m->cut) : json_null());
}

int cli_pnm_uri(const char *device, const char *trace, char *uri, size_t size) {
    int n = snprintf(uri, size, "%s", device);
    if (n < 0 || (size_t)n >= size)
        return cli_error(CLI_USAGE, "--device: longer than %zu bytes", size - 1);
    if (!trace)
        return CLI_OK;
    if (strncmp(device, "sim:pnm", 7) != 0)
        return cli_error(CLI_USAGE, "--dram-trace: %s has no DRAM commands; sim:pnm has", device);
    size_t used = (size_t)n;
    used +=
        (size_t)snprintf(uri + used, size - used, "%cdram_trace=", strchr(device, '?') ? '&' : '?');
    for (; *trace && used + 4 < size; trace++) {
        unsigned char c = (unsigned char)*trace;
        bool plain = isalnum(c) || strchr("/._-", c);
        used += (size_t)snprintf(uri + used, size - used, plain ? "%c" : "%%%02X", c);
    }
    return *trace ? cli_error(CLI_USAGE, "--dram-trace: longer than %zu bytes", size / 3) : CLI_OK;
}
