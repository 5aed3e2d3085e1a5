/* SPDX-License-Identifier: Apache-2.0 */
/* The study file: every key is in a table, so that one that is not is an error that names it. */
#include "host/cli/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/io/file.h"

typedef enum { COUNT, REAL, TEXT, NOTE, COUNTS, REALS, TEXTS, TRACES, OBJECT } kind;

typedef struct {
    const char *key;
    kind kind;
    size_t at, count_at; /* offsets in study; count_at: of a list's length */
    double least, most;
    const void *table; /* of an OBJECT */
} field;

#define AT(m) offsetof(study, m)
#define END                                                                                        \
    { .key = NULL }

static const field model_fields[] = {{"name", NOTE, 0, 0, 0, 0, NULL},
                                     {"layers", COUNT, AT(layers), 0, 1, 1024, NULL},
                                     {"query_heads", COUNT, AT(query_heads), 0, 1, 1024, NULL},
                                     {"kv_heads", COUNT, AT(kv_heads), 0, 1, 1024, NULL},
                                     {"head_dim", COUNT, AT(head_dim), 0, 1, 1024, NULL},
                                     {"hidden", COUNT, AT(hidden), 0, 1, 65536, NULL},
                                     {"value_bytes", COUNT, AT(value_bytes), 0, 1, 4, NULL},
                                     END};

static const field node_fields[] = {
    {"kv_bytes", COUNT, AT(kv_bytes), 0, 1, 1e13, NULL},
    {"block_tokens", COUNT, AT(block_tokens), 0, 1, 65536, NULL},
    {"layer_times", TEXT, AT(layer_times), 0, 0, 0, NULL},
    {"step_tokens", COUNT, AT(step_tokens), 0, 2, MR_MACHINE_TOKENS, NULL},
    {"step_requests", COUNT, AT(step_requests), 0, 1, MR_MACHINE_TOKENS - 1, NULL},
    {"flops_per_s", REAL, AT(flops_per_s), 0, 1, 1e18, NULL},
    {"flops_share", REAL, AT(flops_share), 0, 0.001, 1, NULL},
    {"hbm_bytes_per_s", REAL, AT(hbm_bytes_per_s), 0, 1, 1e15, NULL},
    {"hbm_share", REAL, AT(hbm_share), 0, 0.001, 1, NULL},
    {"sources", NOTE, 0, 0, 0, 0, NULL},
    END};

static const field network_fields[] = {
    {"gbit_per_s", COUNT, AT(gbit_per_s), 0, 1, 1000, NULL},
    {"link_latency_ns", COUNT, AT(link_latency_ns), 0, 0, 1e9, NULL},
    {"switch_latency_ns", COUNT, AT(switch_latency_ns), 0, 0, 1e9, NULL},
    {"route_ns", COUNT, AT(route_ns), 0, 0, 1e9, NULL},
    {"merge_ns", COUNT, AT(merge_ns), 0, 0, 1e9, NULL},
    {"host_ns", COUNT, AT(host_ns), 0, 0, 1e9, NULL},
    {"group", COUNT, AT(group), 0, 1, 32, NULL},
    {"trunk_gbit_per_s", COUNT, AT(trunk_gbit_per_s), 0, 1, 1e6, NULL},
    {"frame_overhead_bytes", COUNT, AT(frame_overhead_bytes), 0, 0, 9000, NULL},
    {"frame_payload_bytes", COUNT, AT(frame_payload_bytes), 0, 1, 9000, NULL},
    {"kv_payload_bytes", COUNT, AT(kv_payload_bytes), 0, 1, 9000, NULL},
    {"sources", NOTE, 0, 0, 0, 0, NULL},
    END};

static const field replay_fields[] = {{"nodes", COUNT, AT(replay_nodes), 0, 1, MR_KV_NODES, NULL},
                                      {"loads", REALS, AT(load), AT(loads), 0.001, 1000, NULL},
                                      END};

static const field scaling_fields[] = {
    {"trace", TEXT, AT(scaling_trace), 0, 0, 0, NULL},
    {"nodes", COUNTS, AT(scaling_node), AT(scaling_nodes), 1, MR_KV_NODES, NULL},
    {"load_per_node", REAL, AT(load_per_node), 0, 0.001, 1000, NULL},
    END};

static const field context_fields[] = {
    {"nodes", COUNTS, AT(context_node), AT(context_nodes), 1, MR_KV_NODES, NULL},
    {"tokens", COUNTS, AT(context_token), AT(context_tokens), 1024, 1 << 24, NULL},
    {"cached_shares", REALS, AT(cached_share), AT(cached_shares), 0, 0.999, NULL},
    {"decode_tokens", COUNT, AT(decode_tokens), 0, 2, 4096, NULL},
    END};

static const field fields[] = {
    {"about", NOTE, 0, 0, 0, 0, NULL},
    {"model", OBJECT, 0, 0, 0, 0, model_fields},
    {"node", OBJECT, 0, 0, 0, 0, node_fields},
    {"network", OBJECT, 0, 0, 0, 0, network_fields},
    {"traces", TRACES, 0, 0, 0, 0, NULL},
    {"policies", TEXTS, AT(policy), AT(policies), 0, 0, NULL},
    {"tensor_parallel_degrees", COUNTS, AT(degree), AT(degrees), 2, MR_KV_NODES, NULL},
    {"replay", OBJECT, 0, 0, 0, 0, replay_fields},
    {"scaling", OBJECT, 0, 0, 0, 0, scaling_fields},
    {"context", OBJECT, 0, 0, 0, 0, context_fields},
    END};

/* ---- values -----------------------------------------------------------------------------------
 */

static int number(const char *path, const char *key, const json_t *v, const field *f, bool whole,
                  double *out) {
    if (whole ? !json_is_integer(v) : !json_is_number(v))
        return cli_error(CLI_BAD_INPUT, "%s: %s: must be a %snumber", path, key,
                         whole ? "whole " : "");
    *out = json_number_value(v);
    if (!(*out >= f->least && *out <= f->most))
        return cli_error(CLI_BAD_INPUT, "%s: %s: %.10g is outside of %.10g to %.10g", path, key,
                         *out, f->least, f->most);
    return CLI_OK;
}

static int text(const char *path, const char *key, const json_t *v, char **out) {
    if (!json_is_string(v) || !json_string_value(v)[0])
        return cli_error(CLI_BAD_INPUT, "%s: %s: must be a text", path, key);
    *out = strdup(json_string_value(v));
    return *out ? CLI_OK : cli_error(CLI_FAILED, "out of memory");
}

static int list(const char *path, const char *key, const json_t *v) {
    if (!json_is_array(v) || json_array_size(v) < 1 || json_array_size(v) > STUDY_MOST)
        return cli_error(CLI_BAD_INPUT, "%s: %s: must be a list of 1 to %d", path, key, STUDY_MOST);
    return CLI_OK;
}

static int one(const char *path, const char *key, const json_t *v, const field *f, void *to,
               size_t i) {
    double x;
    int code;
    switch (f->kind) {
    case COUNT:
    case COUNTS:
        code = number(path, key, v, f, true, &x);
        if (code == CLI_OK)
            ((size_t *)to)[i] = (size_t)x;
        return code;
    case REAL:
    case REALS:
        code = number(path, key, v, f, false, &x);
        if (code == CLI_OK)
            ((double *)to)[i] = x;
        return code;
    default:
        return text(path, key, v, (char **)to + i);
    }
}

static int object(const char *path, const char *prefix, const json_t *v, const field *table,
                  study *s);

static int read_traces(const char *path, const json_t *v, study *s) {
    int code = list(path, "traces", v);
    for (size_t i = 0; code == CLI_OK && i < json_array_size(v); i++) {
        const json_t *t = json_array_get(v, i);
        const char *key;
        json_t *value;
        study_trace *to = &s->trace[i];
        if (!json_is_object(t))
            return cli_error(CLI_BAD_INPUT, "%s: traces: entry %zu is no object", path, i);
        s->traces = i + 1;
        json_object_foreach((json_t *)t, key, value) {
            char name[64];
            snprintf(name, sizeof name, "traces[%zu].%.32s", i, key);
            char **where = !strcmp(key, "name")   ? &to->name
                           : !strcmp(key, "file") ? &to->file
                           : !strcmp(key, "form") ? &to->form
                                                  : NULL;
            if (!where)
                return cli_error(CLI_BAD_INPUT, "%s: %s: unknown key", path, name);
            if ((code = text(path, name, value, where)) != CLI_OK)
                return code;
        }
        if (!to->name || !to->file || !to->form)
            code = cli_error(CLI_BAD_INPUT, "%s: traces[%zu].%s: missing", path, i,
                             !to->name   ? "name"
                             : !to->file ? "file"
                                         : "form");
        else if (strcmp(to->form, "mooncake") != 0 && strcmp(to->form, "splitwise") != 0)
            code = cli_error(CLI_BAD_INPUT,
                             "%s: traces[%zu].form: %.32s is neither mooncake nor splitwise", path,
                             i, to->form);
        else
            to->mooncake = !strcmp(to->form, "mooncake");
    }
    return code;
}

static int value(const char *path, const char *key, const json_t *v, const field *f, study *s) {
    char *to = (char *)s + f->at;
    switch (f->kind) {
    case NOTE:
        return json_is_string(v) ? CLI_OK
                                 : cli_error(CLI_BAD_INPUT, "%s: %s: must be a text", path, key);
    case OBJECT:
        return object(path, key, v, f->table, s);
    case TRACES:
        return read_traces(path, v, s);
    case COUNT:
    case REAL:
    case TEXT:
        return one(path, key, v, f, to, 0);
    default: {
        int code = list(path, key, v);
        for (size_t i = 0; code == CLI_OK && i < json_array_size(v); i++) {
            code = one(path, key, json_array_get(v, i), f, to, i);
            *(size_t *)((char *)s + f->count_at) = i + (code == CLI_OK);
        }
        return code;
    }
    }
}

static int object(const char *path, const char *prefix, const json_t *v, const field *table,
                  study *s) {
    const char *key, *dot = *prefix ? "." : "";
    json_t *item;
    char name[96];
    if (!json_is_object(v))
        return cli_error(CLI_BAD_INPUT, "%s: %s: must be an object", path,
                         *prefix ? prefix : "the file");
    json_object_foreach((json_t *)v, key, item) {
        const field *f = table;
        while (f->key && strcmp(f->key, key) != 0)
            f++;
        snprintf(name, sizeof name, "%s%s%.48s", prefix, dot, key);
        if (!f->key)
            return cli_error(CLI_BAD_INPUT, "%s: %s: unknown key", path, name);
        int code = value(path, name, item, f, s);
        if (code != CLI_OK)
            return code;
    }
    for (const field *f = table; f->key; f++)
        if (!json_object_get(v, f->key) && f->kind != NOTE)
            return cli_error(CLI_BAD_INPUT, "%s: %s%s%s: missing", path, prefix, dot, f->key);
    return CLI_OK;
}

/* ---- what only the whole can be asked ----------------------------------------------------------
 */

static int check(const char *path, const study *s) {
    for (size_t i = 0; i < s->policies; i++) {
        if (!mr_kv_policy_find(s->policy[i]) && strcmp(s->policy[i], "tensor-parallel") != 0)
            return cli_error(CLI_BAD_INPUT, "%s: policies: there is no policy %.48s", path,
                             s->policy[i]);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(s->policy[i], s->policy[k]))
                return cli_error(CLI_BAD_INPUT, "%s: policies: %.48s is there twice", path,
                                 s->policy[i]);
    }
    size_t named = 0;
    for (size_t i = 0; i < s->traces; i++)
        named += !strcmp(s->trace[i].name, s->scaling_trace);
    if (named != 1)
        return cli_error(CLI_BAD_INPUT, "%s: scaling.trace: %.48s is not one of the traces", path,
                         s->scaling_trace);
    if (s->step_requests >= s->step_tokens)
        return cli_error(CLI_BAD_INPUT,
                         "%s: node.step_requests: must be below node.step_tokens, %zu", path,
                         s->step_tokens);
    if (8000 % s->gbit_per_s)
        return cli_error(CLI_BAD_INPUT,
                         "%s: network.gbit_per_s: a byte must take a whole number of picoseconds, "
                         "and 8000 / %zu is none",
                         path, s->gbit_per_s);
    for (size_t i = 0; i < s->degrees; i++)
        if (8000 / s->gbit_per_s % s->degree[i])
            return cli_error(CLI_BAD_INPUT,
                             "%s: tensor_parallel_degrees: %zu links together must take a whole "
                             "number of picoseconds a byte",
                             path, s->degree[i]);
    if (s->kv_bytes < 2 * s->layers * s->kv_heads * s->head_dim * s->value_bytes * s->block_tokens)
        return cli_error(CLI_BAD_INPUT, "%s: node.kv_bytes: not one block has room", path);
    return CLI_OK;
}

int study_read(const char *path, study *s) {
    void *data;
    size_t size;
    json_error_t e;
    *s = (study){0};
    mr_status status = mr_file_read(path, 1 << 20, &data, &size);
    if (status != MR_OK)
        return cli_fail(status);
    json_t *v = json_loadb(data, size, JSON_REJECT_DUPLICATES, &e);
    free(data);
    if (!v)
        return cli_error(CLI_BAD_INPUT, "%s: line %d: %s", path, e.line, e.text);
    int code = object(path, "", v, fields, s);
    json_decref(v);
    return code == CLI_OK ? check(path, s) : code;
}

void study_free(study *s) {
    for (size_t i = 0; i < s->traces; i++) {
        free(s->trace[i].name);
        free(s->trace[i].file);
        free(s->trace[i].form);
    }
    for (size_t i = 0; i < s->policies; i++)
        free(s->policy[i]);
    free(s->layer_times);
    free(s->scaling_trace);
}
