/* SPDX-License-Identifier: Apache-2.0 */
/* millrace nic study: recorded requests through the timing model, for every policy. */
#define _GNU_SOURCE /* asprintf */
#include "host/cli/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/study_report.h"
#include "host/cli/zoo.h"
#include "host/io/file.h"

typedef struct {
    const char *study, *loads, *csv, *page;
    size_t requests, jobs;
    int part;
    bool json;
} request;

enum { ALL, REPLAY, SCALING, CONTEXT };

/* ---- which runs -------------------------------------------------------------------------------
 */

static int add_run(study_report *o, study_part part, const char *label, const study_run *run,
                   double cached, size_t tokens) {
    if (o->count == o->room) {
        size_t room = o->room ? 2 * o->room : 256;
        study_row *rows = realloc(o->rows, room * sizeof *rows);
        if (!rows)
            return cli_error(CLI_FAILED, "out of memory");
        o->rows = rows;
        o->room = room;
    }
    o->rows[o->count++] = (study_row){
        .part = part, .trace = label, .run = *run, .cached_share = cached, .context = tokens};
    return CLI_OK;
}

/* Every policy on these nodes; tensor parallelism in every degree that divides them. */
static int add_policies(study_report *o, study_part part, const char *label, size_t nodes,
                        double load, const study_load *requests, double cached, size_t tokens) {
    const study *s = o->s;
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < s->policies; i++) {
        study_run run = {.policy = s->policy[i],
                         .degree = 1,
                         .nodes = nodes,
                         .load = load,
                         .requests = requests};
        if (strcmp(s->policy[i], "tensor-parallel") != 0) {
            code = add_run(o, part, label, &run, cached, tokens);
            continue;
        }
        for (size_t d = 0; code == CLI_OK && d < s->degrees; d++)
            if (nodes % s->degree[d] == 0) {
                run.degree = s->degree[d];
                code = add_run(o, part, label, &run, cached, tokens);
            }
    }
    return code;
}

/* One prompt, alone; of which a share was computed, much earlier, for another request. */
static int one_prompt(const study *s, size_t tokens, double cached, study_load *load) {
    size_t blocks = (tokens + s->block_tokens - 1) / s->block_tokens;
    size_t first = (size_t)(cached * (double)blocks);
    *load = (study_load){.request = calloc(2, sizeof *load->request),
                         .names = malloc(blocks * sizeof *load->names),
                         .blocks = blocks};
    if (!load->request || !load->names)
        return cli_error(CLI_FAILED, "out of memory");
    for (size_t b = 0; b < blocks; b++)
        load->names[b] = (uint32_t)b;
    if (first)
        load->request[load->requests++] = (mr_cluster_request){
            .tokens = (uint32_t)(first * s->block_tokens), .output = 1, .block = load->names};
    load->request[load->requests++] =
        (mr_cluster_request){.arrival_ns = 1000000000000000u, /* long after */
                             .tokens = (uint32_t)tokens,
                             .output = (uint32_t)s->decode_tokens,
                             .block = load->names};
    return CLI_OK;
}

typedef struct {
    study_load traces[STUDY_MOST], prompts[STUDY_MOST * STUDY_MOST];
    size_t prompt_count;
} inputs;

static int choose_context(study_report *o, inputs *in) {
    const study *s = o->s;
    int code = CLI_OK;
    for (size_t c = 0; code == CLI_OK && c < s->cached_shares; c++)
        for (size_t t = 0; code == CLI_OK && t < s->context_tokens; t++) {
            study_load *load = &in->prompts[in->prompt_count++];
            code = one_prompt(s, s->context_token[t], s->cached_share[c], load);
            for (size_t n = 0; code == CLI_OK && n < s->context_nodes; n++)
                code = add_policies(o, PART_CONTEXT, "one prompt", s->context_node[n], 1, load,
                                    s->cached_share[c], s->context_token[t]);
        }
    return code;
}

static int choose_runs(const request *q, study_report *o, inputs *in, const double *loads,
                       size_t load_count) {
    const study *s = o->s;
    int code = CLI_OK;
    bool replay = q->part == ALL || q->part == REPLAY;
    bool scaling = q->part == ALL || q->part == SCALING;
    for (size_t t = 0; code == CLI_OK && t < s->traces; t++) {
        bool scaled = scaling && !strcmp(s->trace[t].name, s->scaling_trace);
        if (!replay && !scaled)
            continue;
        char *path = study_data(s->trace[t].file);
        code = path ? study_read_trace(path, s->trace[t].mooncake, s->block_tokens, q->requests,
                                       &in->traces[t])
                    : cli_error(CLI_FAILED, "out of memory");
        free(path);
        for (size_t i = 0; replay && code == CLI_OK && i < load_count; i++)
            code = add_policies(o, PART_REPLAY, s->trace[t].name, s->replay_nodes, loads[i],
                                &in->traces[t], 0, 0);
        for (size_t n = 0; scaled && code == CLI_OK && n < s->scaling_nodes; n++)
            code =
                add_policies(o, PART_SCALING, s->trace[t].name, s->scaling_node[n],
                             s->load_per_node * (double)s->scaling_node[n], &in->traces[t], 0, 0);
    }
    if (code == CLI_OK && (q->part == ALL || q->part == CONTEXT))
        code = choose_context(o, in);
    return code;
}

static int execute(const request *q, study_report *o, const mr_machine *machine) {
    size_t jobs = q->jobs;
    if (!jobs) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        jobs = n > 0 ? (size_t)n : 1;
    }
    study_run *runs = malloc((o->count + 1) * sizeof *runs);
    uint64_t *ttft = malloc((2 * o->count + 1) * sizeof *ttft);
    if (!runs || !ttft) {
        free(runs);
        free(ttft);
        return cli_error(CLI_FAILED, "out of memory");
    }
    for (size_t i = 0; i < o->count; i++) {
        runs[i] = o->rows[i].run;
        if (o->rows[i].part == PART_CONTEXT) /* one or two requests */
            runs[i].ttft_ns = ttft + 2 * i;
    }
    int code = study_execute(o->s, machine, runs, o->count, jobs);
    for (size_t i = 0; code == CLI_OK && i < o->count; i++) {
        o->rows[i].run = runs[i];
        if (o->rows[i].part == PART_CONTEXT) {
            uint64_t last = runs[i].ttft_ns[runs[i].requests->requests - 1];
            o->rows[i].impossible = last == UINT64_MAX;
            o->rows[i].last_ttft_s = (double)last * 1e-9;
        }
        o->rows[i].run.ttft_ns = NULL;
    }
    free(runs);
    free(ttft);
    return code;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int read_loads(const char *list, double *loads, size_t *count) {
    *count = 0;
    for (const char *at = list; *count < STUDY_MOST; at++) {
        char *end;
        double v = strtod(at, &end);
        if (end == at || !(v >= 0.001 && v <= 1000) || (*end && *end != ','))
            break;
        loads[(*count)++] = v;
        if (!*end)
            return CLI_OK;
        at = end;
    }
    return cli_error(CLI_USAGE,
                     "nic study: --loads %s: must be 1 to %d numbers of 0.001 to 1000, separated "
                     "by commas",
                     list, STUDY_MOST);
}

static int write_text(const char *path, int (*print)(FILE *f, const study_report *o),
                      const study_report *o) {
    mr_file f;
    mr_status e = mr_file_create(path, &f);
    if (e != MR_OK)
        return cli_fail(e);
    if (print(f.f, o) != 0 || ferror(f.f)) {
        mr_file_abandon(&f);
        return cli_error(CLI_FAILED, "%s: cannot be written", path);
    }
    e = mr_file_commit(&f);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

static int report(const request *q, const study_report *o) {
    int code = q->csv ? write_text(q->csv, study_print_csv, o) : CLI_OK;
    if (code == CLI_OK && q->page)
        code = write_text(q->page, study_print_page, o);
    if (code != CLI_OK)
        return code;
    if (q->json)
        return cli_print_json(study_to_json(o));
    study_print_tables(stdout, o);
    return cli_flush();
}

static int run_study(const request *q, const study *s) {
    inputs *in = calloc(1, sizeof *in);
    double loads[STUDY_MOST];
    size_t load_count = s->loads;
    memcpy(loads, s->load, sizeof loads);
    mr_machine machine = {.layers = s->layers,
                          .query_heads = s->query_heads,
                          .kv_heads = s->kv_heads,
                          .head_dim = s->head_dim,
                          .hidden = s->hidden,
                          .value_bytes = s->value_bytes,
                          .step_tokens = s->step_tokens,
                          .flops_per_s = s->flops_per_s * s->flops_share,
                          .bytes_per_s = s->hbm_bytes_per_s * s->hbm_share,
                          .degree = 1};
    study_report o = {.s = s};
    int code = in ? CLI_OK : cli_error(CLI_FAILED, "out of memory");
    if (code == CLI_OK && q->loads)
        code = read_loads(q->loads, loads, &load_count);
    for (int i = 0; code == CLI_OK && i < 2; i++) {
        const char *path = i ? q->page : q->csv;
        mr_status e = path ? mr_file_check_writable(path) : MR_OK;
        code = e == MR_OK ? CLI_OK : cli_fail(e);
    }
    char *layers = study_data(s->layer_times);
    if (code == CLI_OK)
        code =
            layers ? study_read_layers(layers, &machine) : cli_error(CLI_FAILED, "out of memory");
    free(layers);
    if (code == CLI_OK)
        code = choose_runs(q, &o, in, loads, load_count);
    if (code == CLI_OK)
        code = execute(q, &o, &machine);
    if (code == CLI_OK)
        code = report(q, &o);
    for (size_t i = 0; in && i < STUDY_MOST; i++)
        study_load_free(&in->traces[i]);
    for (size_t i = 0; in && i < in->prompt_count; i++)
        study_load_free(&in->prompts[i]);
    free(in);
    free(o.rows);
    return code;
}

int cli_nic_study(int argc, char **argv) {
    request q = {0};
    cli_option options[] = {
        {.name = "study",
         .kind = CLI_TEXT,
         .value = &q.study,
         .hint = "FILE",
         .help = "what is studied (default: the committed models/cycle/studies/nic.json)"},
        {.name = "part",
         .kind = CLI_CHOICE,
         .value = &q.part,
         .hint = "all|replay|scaling|context",
         .help = "which part of it"},
        {.name = "loads",
         .kind = CLI_TEXT,
         .value = &q.loads,
         .hint = "A,B,...",
         .help = "replay at these loads instead of the study's"},
        {.name = "requests",
         .kind = CLI_COUNT,
         .value = &q.requests,
         .hint = "N",
         .help = "only the first N requests of every trace",
         .least = 1,
         .most = 1e9},
        {.name = "csv",
         .kind = CLI_TEXT,
         .value = &q.csv,
         .hint = "FILE",
         .help = "every run with every figure, as a table"},
        {.name = "page",
         .kind = CLI_TEXT,
         .value = &q.page,
         .hint = "FILE",
         .help = "the pictures, as one HTML file that needs no other"},
        {.name = "jobs",
         .kind = CLI_COUNT,
         .value = &q.jobs,
         .hint = "N",
         .help = "runs at a time (default: as many as processors)",
         .least = 1,
         .most = 64},
        {.name = "json", .kind = CLI_FLAG, .value = &q.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("nic study",
                         "Replays recorded requests through the timing model of a cluster, once "
                         "for every policy that\nsays where key-value blocks go.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    char *own = q.study ? NULL : cli_beside_command("models/cycle/studies", "studies");
    char *path = q.study ? strdup(q.study) : own ? cli_join(own, "nic.json") : NULL;
    free(own);
    if (!path)
        return cli_error(CLI_BAD_INPUT, "nic study: there is no models/cycle/studies near the "
                                        "command; give --study");
    study s;
    code = study_read(path, &s);
    free(path);
    if (code == CLI_OK)
        code = run_study(&q, &s);
    study_free(&s);
    return code;
}
