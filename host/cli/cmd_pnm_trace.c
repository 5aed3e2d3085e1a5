/* SPDX-License-Identifier: Apache-2.0 */
/* millrace pnm check-trace: a trace of DRAM commands against the timing table of a part. */
#define _GNU_SOURCE /* getline, asprintf */
#include "host/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/zoo.h"
#include "models/cycle/dram_check.h"

typedef struct {
    const char *config, *trace;
    size_t groups;
    bool json;
} request;

static const char *const names[MR_DRAM_COMMANDS] = {"ACT", "RD", "WR", "PRE", "REF"};

typedef struct {
    mr_dram_command command;
    size_t line;
} entry;

typedef struct {
    entry *list;
    size_t commands, room;
    uint32_t groups; /* that occur: the highest and those below */
    uint64_t count[MR_DRAM_COMMANDS], cycles, violations;
    const entry *first; /* the first violation; NULL: none, or at the end of the trace */
    bool wrong;
    char rule[200];
} replay;

/* A part by its name, found beside the command or in the tree one stands in; or a file like those.
 */
static int load(const char *config, mr_dram_config *out) {
    char error[300], *path = NULL;
    if (!strchr(config, '/') && !strstr(config, ".json")) {
        char *folder = cli_beside_command("models/cycle/dram", "dram");
        int n = asprintf(&path, "%s/%s.json", folder ? folder : "models/cycle/dram", config);
        free(folder);
        if (n < 0)
            return cli_error(CLI_FAILED, "out of memory");
    }
    bool good = mr_dram_load(path ? path : config, out, error, sizeof error);
    free(path);
    return good ? CLI_OK : cli_error(CLI_BAD_INPUT, "%s", error);
}

/* A number and the blank or end behind it; *text moves on. */
static bool number(char **text, int base, uint64_t most, uint64_t *out) {
    char *end;
    if (!strchr("0123456789abcdef", **text) || !**text)
        return false;
    errno = 0;
    *out = strtoull(*text, &end, base);
    bool good = errno == 0 && end != *text && *out <= most && strchr(" \n", *end);
    *text = end + (*end == ' ');
    return good;
}

/* cycle group command banks row column; the name of the field that is wrong, or NULL. */
static const char *parse(char *text, mr_dram_command *m) {
    uint64_t cycle, group, banks, row, column;
    if (!number(&text, 10, INT64_MAX, &cycle))
        return "cycle";
    if (!number(&text, 10, UINT32_MAX, &group))
        return "group";
    size_t length = strcspn(text, " \n");
    m->command = 0;
    while (m->command < MR_DRAM_COMMANDS &&
           (strlen(names[m->command]) != length || strncmp(names[m->command], text, length) != 0))
        m->command++;
    if (m->command == MR_DRAM_COMMANDS)
        return "command";
    text += length + (text[length] == ' ');
    if (!number(&text, 16, UINT32_MAX, &banks))
        return "banks";
    if (!number(&text, 10, UINT32_MAX, &row))
        return "row";
    if (!number(&text, 10, UINT32_MAX, &column) || (*text && *text != '\n'))
        return "column";
    m->cycle = cycle;
    m->group = (uint32_t)group;
    m->banks = (uint32_t)banks;
    m->row = (uint32_t)row;
    m->column = (uint32_t)column;
    return NULL;
}

static int add(replay *r, const mr_dram_command *m, size_t line) {
    if (r->commands == r->room) {
        size_t room = r->room ? 2 * r->room : 4096;
        entry *list = realloc(r->list, room * sizeof *list);
        if (!list)
            return cli_error(CLI_FAILED, "pnm check-trace: out of memory");
        r->list = list;
        r->room = room;
    }
    r->list[r->commands++] = (entry){*m, line};
    r->count[m->command]++;
    if (m->group >= r->groups)
        r->groups = m->group < UINT32_MAX ? m->group + 1 : m->group;
    if (m->cycle >= r->cycles)
        r->cycles = m->cycle + 1;
    return CLI_OK;
}

static int read_trace(const char *name, replay *r) {
    FILE *f = fopen(name, "r");
    if (!f)
        return cli_error(CLI_BAD_INPUT, "%s: cannot open: %s", name, strerror(errno));
    char *text = NULL;
    size_t room = 0, line = 0;
    int code = CLI_OK;
    while (code == CLI_OK && getline(&text, &room, f) > 0) {
        mr_dram_command m;
        line++;
        if (*text == '#')
            continue;
        const char *field = parse(text, &m);
        code = field ? cli_error(CLI_BAD_INPUT,
                                 "%s:%zu: %s: a line is cycle, group, command, banks "
                                 "(hexadecimal), row, column",
                                 name, line, field)
                     : add(r, &m, line);
        if (line % 4096 == 0 && cli_stop)
            code = CLI_INTERRUPTED;
    }
    if (code == CLI_OK && ferror(f))
        code = cli_error(CLI_BAD_INPUT, "%s: cannot read: %s", name, strerror(errno));
    if (code == CLI_OK && !r->commands)
        code = cli_error(CLI_BAD_INPUT, "%s: no commands", name);
    free(text);
    fclose(f);
    return code;
}

static int judge(const mr_dram_config *c, size_t groups, replay *r) {
    mr_dram_check *check = mr_dram_check_create(c, groups);
    if (!check)
        return cli_error(CLI_FAILED, "pnm check-trace: out of memory");
    for (size_t i = 0; i <= r->commands; i++) {
        const entry *e = i < r->commands ? &r->list[i] : NULL;
        const char *rule =
            e ? mr_dram_check_command(check, &e->command) : mr_dram_check_end(check, r->cycles - 1);
        if (rule && !r->wrong) {
            r->wrong = true;
            r->first = e;
            snprintf(r->rule, sizeof r->rule, "%s", rule);
        }
    }
    r->violations = mr_dram_check_violations(check);
    mr_dram_check_destroy(check);
    return CLI_OK;
}

static json_t *first_wrong(const replay *r) {
    if (!r->wrong)
        return json_null();
    if (!r->first)
        return json_pack("{s:n, s:I, s:s}", "line", "cycle", (json_int_t)r->cycles - 1, "rule",
                         r->rule);
    const mr_dram_command *m = &r->first->command;
    return json_pack("{s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:s}", "line", (json_int_t)r->first->line,
                     "cycle", (json_int_t)m->cycle, "group", (json_int_t)m->group, "command",
                     names[m->command], "banks", (json_int_t)m->banks, "row", (json_int_t)m->row,
                     "column", (json_int_t)m->column, "rule", r->rule);
}

static int report_json(const request *q, const mr_dram_config *c, const replay *r) {
    json_t *count = json_object();
    for (int i = 0; i < MR_DRAM_COMMANDS; i++)
        json_object_set_new(count, names[i], json_integer((json_int_t)r->count[i]));
    int code = cli_print_json(json_pack(
        "{s:o, s:s, s:I, s:I, s:o, s:I, s:o, s:I, s:f, s:b}", "trace", cli_json_text(q->trace),
        "config", c->name, "groups", (json_int_t)q->groups, "commands", (json_int_t)r->commands,
        "count", count, "violations", (json_int_t)r->violations, "first", first_wrong(r), "cycles",
        (json_int_t)r->cycles, "ns", mr_dram_ns(c, r->cycles), "refresh", c->refresh));
    return code == CLI_OK && r->wrong ? CLI_FAILED : code;
}

static int report(const request *q, const mr_dram_config *c, const replay *r) {
    if (r->wrong && !r->first)
        return cli_error(CLI_FAILED, "%s: at the end, cycle %" PRIu64 ": %s", q->trace,
                         r->cycles - 1, r->rule);
    if (r->wrong) {
        const mr_dram_command *m = &r->first->command;
        return cli_error(CLI_FAILED,
                         "%s:%zu: cycle %" PRIu64 ", group %" PRIu32 ", %s of banks %" PRIx32
                         ", row %" PRIu32 ", column %" PRIu32 ": %s (%" PRIu64
                         " of %zu commands break a rule)",
                         q->trace, r->first->line, m->cycle, m->group, names[m->command], m->banks,
                         m->row, m->column, r->rule, r->violations, r->commands);
    }
    printf("%zu commands to %zu groups in %" PRIu64
           " cycles of the DRAM clock (%.0f ns) keep the rules of %s",
           r->commands, q->groups, r->cycles, mr_dram_ns(c, r->cycles), c->name);
    for (int i = 0; i < MR_DRAM_COMMANDS; i++)
        printf("%s%" PRIu64 " %s", i ? ", " : ": ", r->count[i], names[i]);
    puts(c->refresh ? "" : "; refresh off");
    return cli_flush();
}

int cli_pnm_check_trace(int argc, char **argv) {
    request q = {.config = "m3d"};
    enum { GROUPS = 2 };
    cli_option options[] = {
        {.name = "config",
         .kind = CLI_TEXT,
         .value = &q.config,
         .hint = "NAME|FILE",
         .help = "part of models/cycle/dram, or a file like those (default m3d)"},
        {.name = "trace",
         .kind = CLI_TEXT,
         .value = &q.trace,
         .hint = "FILE",
         .help = "commands, as --dram-trace writes them",
         .required = true},
        [GROUPS] = {.name = "groups",
                    .kind = CLI_COUNT,
                    .value = &q.groups,
                    .hint = "N",
                    .help = "groups of banks to judge (default: those that get commands)",
                    .least = 1,
                    .most = 65536},
        {.name = "json", .kind = CLI_FLAG, .value = &q.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("pnm check-trace",
                         "Judges DRAM commands by a part's timing; exit 1 names the first that is "
                         "wrong.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    mr_dram_config c;
    code = load(q.config, &c);
    if (code != CLI_OK)
        return code;
    replay r = {0};
    code = read_trace(q.trace, &r);
    if (!options[GROUPS].given) {
        q.groups = mr_dram_groups(&c);
        if (r.groups < q.groups)
            q.groups = r.groups;
    }
    if (code == CLI_OK)
        code = judge(&c, q.groups, &r);
    if (code == CLI_OK)
        code = q.json ? report_json(&q, &c, &r) : report(&q, &c, &r);
    free(r.list);
    return code;
}
