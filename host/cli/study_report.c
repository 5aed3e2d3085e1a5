/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/study_report.h"

#include <stdlib.h>
#include <string.h>

static const char *const part_names[] = {"replay", "scaling", "context"};

/* ---- figures ----------------------------------------------------------------------------------
 */

double study_ttft(const study_row *r) {
    return r->part == PART_CONTEXT ? r->last_ttft_s : r->run.result.ttft_mean_s;
}

double study_prompt_bytes(const study_row *r) {
    const mr_cluster_wire *w = &r->run.result.wire, *b = &r->run.result.wire_before_last;
    uint64_t all =
        w->exchange + w->shipped + w->pulled + w->placed + w->moved + w->spread + w->reduced;
    uint64_t before =
        b->exchange + b->shipped + b->pulled + b->placed + b->moved + b->spread + b->reduced;
    return (double)(r->part == PART_CONTEXT ? all - before : all);
}

double study_decode_bytes(const study_row *r) {
    const mr_cluster_result *o = &r->run.result;
    return o->decode_tokens ? (double)o->wire.decode / (double)o->decode_tokens : 0;
}

double study_throughput(const study_row *r) {
    const mr_cluster_result *o = &r->run.result;
    return o->seconds > 0 ? (double)o->output_tokens / o->seconds : 0;
}

const study_row *study_find(const study_report *o, study_part part, const char *trace,
                            const char *policy, size_t nodes, double load, double cached,
                            size_t context) {
    const study_row *best = NULL;
    for (size_t i = 0; i < o->count; i++) {
        const study_row *r = &o->rows[i];
        if (r->part == part && !strcmp(r->trace, trace) && !strcmp(r->run.policy, policy) &&
            r->run.nodes == nodes && r->run.load == load && r->cached_share == cached &&
            r->context == context && !r->impossible && (!best || study_ttft(r) < study_ttft(best)))
            best = r;
    }
    return best;
}

/* The loads of a trace's replays, in their order. */
static size_t loads_of(const study_report *o, const char *trace, double *loads) {
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++) {
        const study_row *r = &o->rows[i];
        if (r->part == PART_REPLAY && !strcmp(r->trace, trace) && n < STUDY_MOST &&
            (!n || loads[n - 1] != r->run.load))
            loads[n++] = r->run.load;
    }
    return n;
}

static bool has(const study_report *o, study_part part) {
    for (size_t i = 0; i < o->count; i++)
        if (o->rows[i].part == part)
            return true;
    return false;
}

/* ---- tables, as Markdown ----------------------------------------------------------------------
 */

static void label(const study_row *r, const char *policy, char *out, size_t size) {
    if (r && r->run.degree > 1)
        snprintf(out, size, "%s (%zu)", policy, r->run.degree);
    else
        snprintf(out, size, "%s", policy);
}

static void replay_table(FILE *f, const study_report *o, const char *trace,
                         const study_load *requests) {
    double loads[STUDY_MOST];
    size_t n = loads_of(o, trace, loads);
    if (!n)
        return;
    fprintf(f,
            "\n## %s on %zu nodes\n\n%zu requests; with room for everything %.1f %% of %llu block "
            "references would be hits (%llu distinct).\n\n",
            trace, o->s->replay_nodes, requests->requests,
            100.0 * (double)requests->reused / (double)requests->references,
            (unsigned long long)requests->references, (unsigned long long)requests->distinct);
    fprintf(f, "| load | policy | TTFT mean s | p50 s | p99 s | between tokens mean ms | p99 ms | "
               "output tokens/s | hits %% | nodes a prompt | GB for prompts | KB a decoded token "
               "|\n|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; p < o->s->policies; p++) {
            char name[64];
            const study_row *r = study_find(o, PART_REPLAY, trace, o->s->policy[p],
                                            o->s->replay_nodes, loads[i], 0, 0);
            if (!r)
                continue;
            const mr_cluster_result *x = &r->run.result;
            label(r, o->s->policy[p], name, sizeof name);
            fprintf(f,
                    "| %g | %s | %.3f | %.3f | %.3f | %.1f | %.1f | %.0f | %.1f | %.2f | %.0f | "
                    "%.0f |\n",
                    loads[i], name, x->ttft_mean_s, x->ttft_p50_s, x->ttft_p99_s,
                    1e3 * x->itl_mean_s, 1e3 * x->itl_p99_s, study_throughput(r),
                    100.0 * (double)x->blocks_reused / (double)x->block_references, x->members_mean,
                    study_prompt_bytes(r) / 1e9, study_decode_bytes(r) / 1e3);
        }
}

static void scaling_table(FILE *f, const study_report *o) {
    const study *s = o->s;
    fprintf(f,
            "\n## Throughput and its scaling: %s, load %g a node\n\nOutput tokens/s a node; in "
            "brackets mean TTFT in seconds.\n\n| policy |",
            s->scaling_trace, s->load_per_node);
    for (size_t n = 0; n < s->scaling_nodes; n++)
        fprintf(f, " %zu nodes |", s->scaling_node[n]);
    fprintf(f, "\n|:--|");
    for (size_t n = 0; n < s->scaling_nodes; n++)
        fprintf(f, "--:|");
    fputc('\n', f);
    for (size_t p = 0; p < s->policies; p++) {
        fprintf(f, "| %s |", s->policy[p]);
        for (size_t n = 0; n < s->scaling_nodes; n++) {
            const study_row *r =
                study_find(o, PART_SCALING, s->scaling_trace, s->policy[p], s->scaling_node[n],
                           s->load_per_node * (double)s->scaling_node[n], 0, 0);
            if (r)
                fprintf(f, " %.0f (%.1f) |", study_throughput(r) / (double)r->run.nodes,
                        study_ttft(r));
            else
                fprintf(f, " - |");
        }
        fputc('\n', f);
    }
}

typedef struct {
    const char *what;
    double (*figure)(const study_row *r);
    double unit;
    int digits;
} column;

static double gap_mean(const study_row *r) { return r->run.result.itl_mean_s; }

static const column columns[] = {
    {"TTFT, s", study_ttft, 1, 3},
    {"mean time between tokens, ms", gap_mean, 1e-3, 1},
    {"bytes on the wire for the prompt, GB", study_prompt_bytes, 1e9, 2},
    {"bytes on the wire a decoded token, KB", study_decode_bytes, 1e3, 0}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* One figure for every policy, against context on the replay's nodes or against nodes. */
static void context_table(FILE *f, const study_report *o, double cached, const column *c,
                          bool by_nodes) {
    const study *s = o->s;
    size_t n = by_nodes ? s->context_nodes : s->context_tokens;
    size_t middle = s->context_token[s->context_tokens / 2];
    fprintf(f, "\n%s, %g %% of the prompt cached, ", c->what, 100 * cached);
    if (by_nodes)
        fprintf(f, "%zu tokens, against nodes:\n\n| policy |", middle);
    else
        fprintf(f, "%zu nodes, against context:\n\n| policy |", s->replay_nodes);
    for (size_t i = 0; i < n; i++)
        fprintf(f, by_nodes ? " %zu |" : " %zu Ki |",
                by_nodes ? s->context_node[i] : s->context_token[i] / 1024);
    fprintf(f, "\n|:--|");
    for (size_t i = 0; i < n; i++)
        fprintf(f, "--:|");
    fputc('\n', f);
    for (size_t p = 0; p < s->policies; p++) {
        fprintf(f, "| %s |", s->policy[p]);
        for (size_t i = 0; i < n; i++) {
            const study_row *r = study_find(o, PART_CONTEXT, "one prompt", s->policy[p],
                                            by_nodes ? s->context_node[i] : s->replay_nodes, 1,
                                            cached, by_nodes ? middle : s->context_token[i]);
            if (r)
                fprintf(f, " %.*f |", c->digits, c->figure(r) / c->unit);
            else
                fprintf(f, " - |");
        }
        fputc('\n', f);
    }
}

void study_print_tables(FILE *f, const study_report *o) {
    const study *s = o->s;
    for (size_t t = 0; t < s->traces; t++)
        for (size_t i = 0; i < o->count; i++)
            if (o->rows[i].part == PART_REPLAY && !strcmp(o->rows[i].trace, s->trace[t].name)) {
                replay_table(f, o, s->trace[t].name, o->rows[i].run.requests);
                break;
            }
    if (has(o, PART_SCALING))
        scaling_table(f, o);
    if (!has(o, PART_CONTEXT))
        return;
    fprintf(f, "\n## One prompt alone\n\n- : these nodes cannot hold it under this policy.\n");
    for (size_t c = 0; c < s->cached_shares; c++)
        for (size_t k = 0; k < COLUMNS; k++)
            for (int by_nodes = 0; by_nodes < 2; by_nodes++)
                context_table(f, o, s->cached_share[c], &columns[k], by_nodes);
}

/* ---- CSV and JSON -----------------------------------------------------------------------------
 */

typedef struct {
    const char *name;
    double value;
} cell;

enum { CELLS = 31 };

static void cells_of(const study_row *r, cell *c) {
    const mr_cluster_result *o = &r->run.result;
    const mr_cluster_wire *w = &o->wire;
    const cell all[CELLS] = {{"nodes", (double)r->run.nodes},
                             {"degree", (double)r->run.degree},
                             {"load", r->run.load},
                             {"context", (double)r->context},
                             {"cached_share", r->cached_share},
                             {"finished", (double)o->finished},
                             {"refused", (double)o->refused},
                             {"ttft_mean_s", study_ttft(r)},
                             {"ttft_p50_s", r->context ? r->last_ttft_s : o->ttft_p50_s},
                             {"ttft_p99_s", r->context ? r->last_ttft_s : o->ttft_p99_s},
                             {"itl_mean_s", o->itl_mean_s},
                             {"itl_p99_s", o->itl_p99_s},
                             {"output_tokens_per_s", r->context ? 0 : study_throughput(r)},
                             {"seconds", r->context ? 0 : o->seconds},
                             {"members_mean", o->members_mean},
                             {"block_references", (double)o->block_references},
                             {"blocks_reused", (double)o->blocks_reused},
                             {"prompt_bytes", study_prompt_bytes(r)},
                             {"decode_bytes_per_token", study_decode_bytes(r)},
                             {"bytes_exchange", (double)w->exchange},
                             {"bytes_shipped", (double)w->shipped},
                             {"bytes_pulled", (double)w->pulled},
                             {"bytes_placed", (double)w->placed},
                             {"bytes_moved", (double)w->moved},
                             {"bytes_spread", (double)w->spread},
                             {"bytes_decode", (double)w->decode},
                             {"bytes_reduced", (double)w->reduced},
                             {"peak_blocks", (double)o->peak_blocks},
                             {"evictions", (double)o->evictions},
                             {"drained_blocks", (double)o->drained_blocks},
                             {"replica_blocks", (double)o->replica_blocks}};
    memcpy(c, all, sizeof all);
}

int study_print_csv(FILE *f, const study_report *o) {
    cell c[CELLS];
    for (size_t i = 0; i < o->count; i++) {
        const study_row *r = &o->rows[i];
        cells_of(r, c);
        if (!i) {
            fprintf(f, "part,trace,policy");
            for (size_t k = 0; k < CELLS; k++)
                fprintf(f, ",%s", c[k].name);
            fputc('\n', f);
        }
        fprintf(f, "%s,%s,%s", part_names[r->part], r->trace, r->run.policy);
        for (size_t k = 0; k < CELLS; k++)
            if (r->impossible && k > 6)
                fputc(',', f);
            else
                fprintf(f, ",%.10g", c[k].value);
        fputc('\n', f);
    }
    return 0;
}

json_t *study_to_json(const study_report *o) {
    json_t *rows = json_array(), *traces = json_object();
    cell c[CELLS];
    for (size_t i = 0; i < o->count; i++) {
        const study_row *r = &o->rows[i];
        cells_of(r, c);
        json_t *row = json_pack("{s:s, s:s, s:s}", "part", part_names[r->part], "trace", r->trace,
                                "policy", r->run.policy);
        for (size_t k = 0; k < CELLS && !(r->impossible && k > 6); k++)
            json_object_set_new(row, c[k].name,
                                c[k].value == (double)(json_int_t)c[k].value
                                    ? json_integer((json_int_t)c[k].value)
                                    : json_real(c[k].value));
        json_array_append_new(rows, row);
        const study_load *l = r->run.requests;
        if (r->part != PART_CONTEXT && !json_object_get(traces, r->trace))
            json_object_set_new(
                traces, r->trace,
                json_pack("{s:I, s:I, s:I, s:I, s:f}", "requests", (json_int_t)l->requests,
                          "block_references", (json_int_t)l->references, "distinct_blocks",
                          (json_int_t)l->distinct, "infinite_cache_hits", (json_int_t)l->reused,
                          "infinite_cache_hit_rate", (double)l->reused / (double)l->references));
    }
    return json_pack("{s:o, s:o}", "traces", traces, "runs", rows);
}
