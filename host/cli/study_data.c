/* SPDX-License-Identifier: Apache-2.0 */
/* Reference data made by others: recorded requests and measured layer times. */
#include "host/cli/study.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/zoo.h"
#include "host/io/file.h"
#include "models/cycle/store.h"

char *study_data(const char *name) {
    const char *folder = getenv("MILLRACE_DATA");
    return cli_join(folder && *folder ? folder : "../shared/data", name);
}

static int read_text(const char *path, char **text) {
    void *data;
    size_t size;
    if (access(path, F_OK) != 0)
        return cli_error(CLI_UNAVAILABLE,
                         "%s: not there; MILLRACE_DATA names the folder of the reference data",
                         path);
    mr_status e = mr_file_read(path, (size_t)1 << 28, &data, &size);
    if (e != MR_OK)
        return cli_fail(e);
    *text = data; /* one zero byte is past the end */
    return CLI_OK;
}

/* The next line, without its end; NULL after the last. */
static char *next_line(char **at) {
    char *line = *at;
    if (!*line)
        return NULL;
    char *end = strchr(line, '\n');
    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = 0;
    size_t n = strlen(line);
    if (n && line[n - 1] == '\r')
        line[n - 1] = 0;
    return line;
}

/* ---- layer times ------------------------------------------------------------------------------
 */

enum { LAYER, EMBED, HEAD, ATTENTION };

static const struct {
    const char *name;
    int part;
} operators[] = {{"embedding", EMBED}, {"input_layernorm", LAYER}, {"q_proj", LAYER},
                 {"k_proj", LAYER},    {"v_proj", LAYER},          {"rope", LAYER},
                 {"attn", ATTENTION},  {"o_proj", LAYER},          {"post_layernorm", LAYER},
                 {"gate_proj", LAYER}, {"up_proj", LAYER},         {"act_fn", LAYER},
                 {"down_proj", LAYER}, {"final_layernorm", HEAD},  {"lm_head", HEAD}};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

/* layer_name,input,kv_cache,tp_size,latency(ns) */
static int layer_line(const char *path, size_t row, char *line, mr_machine *m, uint32_t *seen) {
    char *comma = strchr(line, ','), *end;
    size_t op = 0;
    if (!comma)
        return cli_error(CLI_BAD_INPUT, "%s:%zu: not layer_name,input,kv_cache,tp_size,latency",
                         path, row);
    *comma = 0;
    while (op < OPERATORS && strcmp(operators[op].name, line) != 0)
        op++;
    if (op == OPERATORS)
        return cli_error(CLI_BAD_INPUT, "%s:%zu: layer_name: %.32s is unknown", path, row, line);
    unsigned long v[4];
    char *at = comma;
    for (int i = 0; i < 4; i++) {
        errno = 0;
        v[i] = strtoul(at + 1, &end, 10);
        if (end == at + 1 || at[1] == '-' || errno || *end != (i < 3 ? ',' : 0) ||
            v[i] > 4000000000u)
            return cli_error(CLI_BAD_INPUT, "%s:%zu: column %d is not a number", path, row, i + 2);
        at = end;
    }
    if (v[2] != 1 || v[1] || v[0] < 1 || v[0] > MR_MACHINE_TOKENS ||
        operators[op].part == ATTENTION)
        return CLI_OK;
    if (seen[v[0]] >> op & 1)
        return cli_error(CLI_BAD_INPUT, "%s:%zu: %s of %lu tokens is there twice", path, row,
                         operators[op].name, v[0]);
    seen[v[0]] |= (uint32_t)1 << op;
    uint32_t *to = operators[op].part == LAYER   ? m->layer_ns
                   : operators[op].part == EMBED ? m->embed_ns
                                                 : m->head_ns;
    to[v[0]] += (uint32_t)v[3];
    return CLI_OK;
}

int study_read_layers(const char *path, mr_machine *m) {
    char *text, *at, *line;
    uint32_t *seen = calloc(MR_MACHINE_TOKENS + 1, sizeof *seen);
    if (!seen)
        return cli_error(CLI_FAILED, "out of memory");
    int code = read_text(path, &text);
    if (code != CLI_OK) {
        free(seen);
        return code;
    }
    at = text;
    line = next_line(&at);
    if (!line || strcmp(line, "layer_name,input,kv_cache,tp_size,latency(ns)") != 0)
        code = cli_error(CLI_BAD_INPUT,
                         "%s:1: the columns must be layer_name,input,kv_cache,tp_size,latency(ns)",
                         path);
    for (size_t row = 2; code == CLI_OK && (line = next_line(&at)); row++)
        code = layer_line(path, row, line, m, seen);
    for (size_t t = 1; code == CLI_OK && t <= MR_MACHINE_TOKENS; t++)
        for (size_t op = 0; code == CLI_OK && op < OPERATORS; op++)
            if (operators[op].part != ATTENTION && !(seen[t] >> op & 1))
                code = cli_error(CLI_BAD_INPUT, "%s: %s of %zu tokens is missing", path,
                                 operators[op].name, t);
    free(text);
    free(seen);
    return code;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

enum { MOST_TOKENS = 1 << 24, MOST_NAMES = 1 << 24 };

typedef struct {
    const char *path;
    size_t row, room, name_room, names, block_tokens;
    study_load *load;
    size_t *first; /* of each request's names, since they move */
} reader;

static int room(reader *r, size_t blocks) {
    study_load *l = r->load;
    if (l->requests == r->room) {
        r->room = r->room ? 2 * r->room : 1024;
        void *p = realloc(l->request, r->room * sizeof *l->request);
        void *q = p ? realloc(r->first, r->room * sizeof *r->first) : NULL;
        if (p)
            l->request = p;
        if (!q)
            return cli_error(CLI_FAILED, "out of memory");
        r->first = q;
    }
    while (r->names + blocks > r->name_room) {
        r->name_room = r->name_room ? 2 * r->name_room : 65536;
        void *p = realloc(l->names, r->name_room * sizeof *l->names);
        if (!p)
            return cli_error(CLI_FAILED, "out of memory");
        l->names = p;
    }
    return CLI_OK;
}

static int add(reader *r, double seconds, double tokens, double output) {
    study_load *l = r->load;
    if (!(seconds >= 0 && seconds < 1e9))
        return cli_error(CLI_BAD_INPUT, "%s:%zu: the time is out of range", r->path, r->row);
    if (!(tokens >= 1 && tokens <= MOST_TOKENS) || !(output >= 1 && output <= MOST_TOKENS))
        return cli_error(CLI_BAD_INPUT, "%s:%zu: prompt and output must have 1 to %d tokens",
                         r->path, r->row, MOST_TOKENS);
    mr_cluster_request *q = &l->request[l->requests];
    *q = (mr_cluster_request){.arrival_ns = (uint64_t)(seconds * 1e9 + 0.5),
                              .tokens = (uint32_t)tokens,
                              .output = (uint32_t)output};
    if (l->requests && q->arrival_ns < q[-1].arrival_ns)
        return cli_error(CLI_BAD_INPUT, "%s:%zu: earlier than the line before", r->path, r->row);
    r->first[l->requests++] = r->names;
    return CLI_OK;
}

static int mooncake(reader *r, const char *line) {
    json_error_t e;
    json_t *v = json_loads(line, 0, &e), *ids = json_object_get(v, "hash_ids");
    json_t *t = json_object_get(v, "timestamp"), *in = json_object_get(v, "input_length");
    json_t *out = json_object_get(v, "output_length");
    int code = CLI_OK;
    size_t blocks = json_array_size(ids);
    if (!json_is_number(t) || !json_is_integer(in) || !json_is_integer(out) || !json_is_array(ids))
        code = cli_error(CLI_BAD_INPUT,
                         "%s:%zu: must be an object with timestamp, input_length, output_length "
                         "and hash_ids",
                         r->path, r->row);
    else if (blocks != ((size_t)json_integer_value(in) + r->block_tokens - 1) / r->block_tokens)
        code = cli_error(CLI_BAD_INPUT,
                         "%s:%zu: hash_ids: %zu blocks of %zu tokens are not those of "
                         "input_length",
                         r->path, r->row, blocks, r->block_tokens);
    else
        code = room(r, blocks);
    if (code == CLI_OK)
        code = add(r, json_number_value(t) / 1000, json_number_value(in), json_number_value(out));
    for (size_t b = 0; code == CLI_OK && b < blocks; b++) {
        const json_t *id = json_array_get(ids, b);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= MOST_NAMES)
            code = cli_error(CLI_BAD_INPUT, "%s:%zu: hash_ids: entry %zu is not 0 to %d", r->path,
                             r->row, b, MOST_NAMES - 1);
        else {
            size_t name = (size_t)json_integer_value(id);
            r->load->names[r->names++] = (uint32_t)name;
            if (name >= r->load->blocks)
                r->load->blocks = name + 1;
        }
    }
    json_decref(v);
    return code;
}

/* arrived_at,num_prefill_tokens,num_decode_tokens: nothing is shared, so every block is new */
static int splitwise(reader *r, const char *line) {
    double v[3];
    const char *at = line;
    for (int i = 0; i < 3; i++) {
        char *end;
        v[i] = strtod(at, &end);
        if (end == at || *end != (i < 2 ? ',' : 0) || !isfinite(v[i]))
            return cli_error(CLI_BAD_INPUT, "%s:%zu: column %d is not a number", r->path, r->row,
                             i + 1);
        at = end + 1;
    }
    if (!(v[1] >= 1 && v[1] <= MOST_TOKENS))
        return add(r, v[0], v[1], v[2]); /* says what is wrong */
    size_t blocks = ((size_t)v[1] + r->block_tokens - 1) / r->block_tokens;
    int code = room(r, blocks);
    if (code == CLI_OK)
        code = add(r, v[0], v[1], v[2]);
    for (size_t b = 0; code == CLI_OK && b < blocks; b++)
        r->load->names[r->names++] = (uint32_t)r->load->blocks++;
    return code;
}

/* The store that the cluster uses, with room for all and a request at a time. */
static int count_reuse(study_load *l, size_t block_tokens) {
    mr_store *s = mr_store_create(1, l->blocks, l->blocks + 1, false);
    if (!s)
        return cli_error(CLI_FAILED, "out of memory");
    for (size_t i = 0; i < l->requests; i++) {
        size_t blocks = (l->request[i].tokens + block_tokens - 1) / block_tokens, hit = 0;
        while (hit < blocks && mr_store_where(s, l->request[i].block[hit]))
            hit++;
        for (size_t b = hit; b < blocks; b++)
            if (mr_store_reserve(s, 0, 1))
                mr_store_fill(s, 0, l->request[i].block[b], false);
        l->references += blocks;
        l->reused += hit;
    }
    l->distinct = mr_store_held(s, 0);
    mr_store_destroy(s);
    return CLI_OK;
}

int study_read_trace(const char *path, bool is_mooncake, size_t block_tokens, size_t most,
                     study_load *load) {
    char *text, *line;
    *load = (study_load){0};
    int code = read_text(path, &text);
    if (code != CLI_OK)
        return code;
    reader r = {.path = path, .row = 1, .block_tokens = block_tokens, .load = load};
    char *at = text;
    if (!is_mooncake) {
        line = next_line(&at);
        if (!line || strcmp(line, "arrived_at,num_prefill_tokens,num_decode_tokens") != 0)
            code = cli_error(
                CLI_BAD_INPUT,
                "%s:1: the columns must be arrived_at,num_prefill_tokens,num_decode_tokens", path);
        r.row = 2;
    }
    for (; code == CLI_OK && (!most || load->requests < most) && (line = next_line(&at)); r.row++)
        code = is_mooncake ? mooncake(&r, line) : splitwise(&r, line);
    if (code == CLI_OK && !load->requests)
        code = cli_error(CLI_BAD_INPUT, "%s: there is no request in it", path);
    for (size_t i = 0; code == CLI_OK && i < load->requests; i++)
        load->request[i].block = load->names + r.first[i];
    if (code == CLI_OK)
        code = count_reuse(load, block_tokens);
    free(r.first);
    free(text);
    return code;
}

void study_load_free(study_load *load) {
    free(load->request);
    free(load->names);
    *load = (study_load){0};
}
