/* SPDX-License-Identifier: Apache-2.0 */
/* Reads models/cycle/pnm/NAME.json. Every parameter is {"value": ..., "source": "..."}. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "models/cycle/pnm.h"

enum { WHOLE, SWITCH, TEXT };
typedef struct {
    const char *key;
    int kind;
    size_t at; /* of a uint32_t or bool in mr_pnm_machine */
    json_int_t least, most;
} parameter;

#define AT(field) offsetof(mr_pnm_machine, field)
static const parameter parameters[] = {
    {"units", WHOLE, AT(units), 1, 1024},
    {"groups", WHOLE, AT(groups), 1, MR_PNM_MACHINE_GROUPS},
    {"elements", WHOLE, AT(elements), 1, 16},
    {"lanes", WHOLE, AT(lanes), 1, 128},
    {"stream_bits", WHOLE, AT(stream_bits), 1, 256},
    {"vector_lanes", WHOLE, AT(vector_lanes), 1, 16},
    {"load_rows", WHOLE, AT(load_rows), 1, 16},
    {"reuse_columns", SWITCH, AT(reuse_columns), 0, 0},
    {"port_bytes", WHOLE, AT(port_bytes), 1, 64},
    {"read_latency", WHOLE, AT(read_latency), 1, 100000},
    {"write_latency", WHOLE, AT(write_latency), 1, 100000},
    {"dram", TEXT, 0, 0, 0},
};
enum { PARAMETERS = sizeof parameters / sizeof parameters[0] };

typedef struct {
    const char *file, *drams;
    char *error;
    size_t size;
} reader;

static bool bad(const reader *r, const char *key, const char *what) {
    snprintf(r->error, r->size, "%s: %s%s%s", r->file, key, *key ? ": " : "", what);
    return false;
}

static bool power(json_int_t v) { return (v & (v - 1)) == 0; }

static bool set(const reader *r, const parameter *p, const json_t *object, mr_pnm_machine *m,
                const char **dram) {
    const char *source = json_string_value(json_object_get(object, "source"));
    const json_t *v = json_object_get(object, "value");
    if (!object)
        return bad(r, p->key, "is missing");
    if (!json_is_object(object) || !v || json_object_size(object) != 2 || !source || !*source)
        return bad(r, p->key, "must be an object of value and source");
    if (p->kind == TEXT) {
        *dram = json_string_value(v);
        return *dram && !strchr(*dram, '/') ? true : bad(r, p->key, "must be the name of a DRAM");
    }
    if (p->kind == SWITCH) {
        *(bool *)((char *)m + p->at) = json_is_true(v);
        return json_is_boolean(v) ? true : bad(r, p->key, "must be true or false");
    }
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < p->least || n > p->most) {
        char text[80];
        snprintf(text, sizeof text,
                 "must be a whole number, %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
                 p->least, p->most);
        return bad(r, p->key, text);
    }
    *(uint32_t *)((char *)m + p->at) = (uint32_t)n;
    return true;
}

static bool known(const char *key) {
    for (size_t i = 0; i < PARAMETERS; i++)
        if (!strcmp(parameters[i].key, key))
            return true;
    return !strcmp(key, "name") || !strcmp(key, "doc");
}

/* What the descriptors of the built unit can be carried over to. */
static bool check(const reader *r, const mr_pnm_machine *m) {
    const mr_dram_config *d = &m->dram;
    if (!power(m->elements) || !power(m->lanes))
        return bad(r, "lanes", "elements and lanes must be powers of two");
    if (m->lanes * m->elements < 64)
        return bad(r, "lanes", "elements times lanes must be at least the built unit's 64");
    if (!power(m->vector_lanes))
        return bad(r, "vector_lanes", "must be a power of two");
    if (m->elements != d->group_banks)
        return bad(r, "elements", "contradicts dram: its banks that get commands together");
    if (m->lanes != d->unit_lanes || m->lanes * 2 != d->column_bytes || d->unit_banks != 1)
        return bad(r, "lanes", "contradicts dram: a lane for every 16 bits of a column of a bank");
    if (m->units * m->groups != mr_dram_groups(d))
        return bad(r, "units", "contradicts dram: units times groups are the groups of its banks");
    return true;
}

static bool read_root(const reader *r, const json_t *root, mr_pnm_machine *m) {
    const char *key, *dram = NULL, *name = json_string_value(json_object_get(root, "name"));
    json_t *v;
    memset(m, 0, sizeof *m);
    json_object_foreach((json_t *)(uintptr_t)root, key, v) {
        if (!known(key))
            return bad(r, key, "unknown key");
    }
    if (!name || !*name || strlen(name) >= sizeof m->name)
        return bad(r, "name", "must be a name of at most 31 characters");
    snprintf(m->name, sizeof m->name, "%s", name);
    for (size_t i = 0; i < PARAMETERS; i++)
        if (!set(r, &parameters[i], json_object_get(root, parameters[i].key), m, &dram))
            return false;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", r->drams, dram);
    return mr_dram_load(path, &m->dram, r->error, r->size) && check(r, m);
}

bool mr_pnm_machine_load(const char *file, const char *drams, mr_pnm_machine *out, char *error,
                         size_t size) {
    const reader r = {file, drams, error, size};
    json_error_t e;
    json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &e);
    if (!root) {
        snprintf(error, size, "%s:%d: %.160s", file, e.line < 1 ? 1 : e.line, e.text);
        return false;
    }
    bool good = json_is_object(root) ? read_root(&r, root, out) : bad(&r, "", "must be an object");
    json_decref(root);
    return good;
}
