/* SPDX-License-Identifier: Apache-2.0 */
/* Reads models/cycle/pnm/NAME.json and models/cycle/rivals/NAME.json. Every parameter is
 * {"value": ..., "source": "..."}. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "models/cycle/pnm.h"
#include "models/cycle/rival.h"

enum { WHOLE, REAL, TEXT };
typedef struct {
    const char *key;
    int kind;
    size_t at; /* of a uint32_t or double in what is read */
    double least, most;
} parameter;

#define AT(field) offsetof(mr_pnm_machine, field)
static const parameter of_machine[] = {{"units", WHOLE, AT(units), 1, 1024},
                                       {"groups", WHOLE, AT(groups), 1, MR_PNM_MACHINE_GROUPS},
                                       {"elements", WHOLE, AT(elements), 1, 16},
                                       {"lanes", WHOLE, AT(lanes), 1, 128},
                                       {"stream_bits", WHOLE, AT(stream_bits), 1, 256},
                                       {"vector_lanes", WHOLE, AT(vector_lanes), 1, 16},
                                       {"load_rows", WHOLE, AT(load_rows), 1, 16},
                                       {"port_bytes", WHOLE, AT(port_bytes), 1, 64},
                                       {"read_latency", WHOLE, AT(read_latency), 1, 100000},
                                       {"write_latency", WHOLE, AT(write_latency), 1, 100000},
                                       {"dram", TEXT, 0, 0, 0},
                                       {NULL, 0, 0, 0, 0}};
#undef AT
#define AT(field) offsetof(mr_rival, field)
static const parameter of_rival[] = {{"package_channels", WHOLE, AT(package_channels), 1, 1024},
                                     {"buffer_bytes", WHOLE, AT(buffer_bytes), 32, 1 << 20},
                                     {"bus_ns", REAL, AT(bus_ns), 0.01, 100},
                                     {"round_trip_ns", REAL, AT(round_trip_ns), 0, 1e6},
                                     {"multiply_pj", REAL, AT(multiply_pj), 0, 1000},
                                     {"add_pj", REAL, AT(add_pj), 0, 1000},
                                     {"operand_pj", REAL, AT(operand_pj), 0, 1000},
                                     {"link_bit_pj", REAL, AT(link_bit_pj), 0, 1000},
                                     {"dram", TEXT, 0, 0, 0},
                                     {NULL, 0, 0, 0, 0}};
#undef AT

typedef struct {
    const char *file, *drams;
    char *error;
    size_t size;
} reader;

static bool bad(const reader *r, const char *key, const char *what) {
    snprintf(r->error, r->size, "%s: %s%s%s", r->file, key, *key ? ": " : "", what);
    return false;
}

static bool number(const reader *r, const parameter *p, const json_t *v, void *at) {
    double n = json_number_value(v);
    if ((p->kind == WHOLE ? !json_is_integer(v) : !json_is_number(v)) ||
        !(n >= p->least && n <= p->most)) {
        char text[80];
        snprintf(text, sizeof text, "must be a %snumber, %g to %g",
                 p->kind == WHOLE ? "whole " : "", p->least, p->most);
        return bad(r, p->key, text);
    }
    if (p->kind == WHOLE)
        *(uint32_t *)at = (uint32_t)n;
    else
        *(double *)at = n;
    return true;
}

static bool set(const reader *r, const parameter *p, const json_t *object, char *base,
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
    return number(r, p, v, base + p->at);
}

static bool known(const parameter *p, const char *key) {
    for (; p->key; p++)
        if (!strcmp(p->key, key))
            return true;
    return !strcmp(key, "name") || !strcmp(key, "doc");
}

/* All parameters of a table, a name, and a DRAM. */
static bool read_all(const reader *r, json_t *root, const parameter *p, void *base,
                     char (*name)[32], mr_dram_config *dram) {
    const char *key, *part = NULL, *given = json_string_value(json_object_get(root, "name"));
    json_t *v;
    if (!json_is_object(root))
        return bad(r, "", "must be an object");
    json_object_foreach(root, key, v) {
        if (!known(p, key))
            return bad(r, key, "unknown key");
    }
    if (!given || !*given || strlen(given) >= sizeof *name)
        return bad(r, "name", "must be a name of at most 31 characters");
    snprintf(*name, sizeof *name, "%s", given);
    for (; p->key; p++)
        if (!set(r, p, json_object_get(root, p->key), base, &part))
            return false;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", r->drams, part);
    return mr_dram_load(path, dram, r->error, r->size);
}

static json_t *load(const reader *r) {
    json_error_t e;
    json_t *root = json_load_file(r->file, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        snprintf(r->error, r->size, "%s:%d: %.160s", r->file, e.line < 1 ? 1 : e.line, e.text);
    return root;
}

static bool power(uint32_t v) { return (v & (v - 1)) == 0; }

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

bool mr_pnm_machine_load(const char *file, const char *drams, mr_pnm_machine *out, char *error,
                         size_t size) {
    const reader r = {file, drams, error, size};
    json_t *root = load(&r);
    memset(out, 0, sizeof *out);
    bool good =
        root && read_all(&r, root, of_machine, out, &out->name, &out->dram) && check(&r, out);
    json_decref(root);
    return good;
}

bool mr_rival_load(const char *file, const char *drams, mr_rival *out, char *error, size_t size) {
    const reader r = {file, drams, error, size};
    json_t *root = load(&r);
    memset(out, 0, sizeof *out);
    bool good = root && read_all(&r, root, of_rival, out, &out->name, &out->dram);
    json_decref(root);
    if (good && out->dram.channels % out->package_channels)
        return bad(&r, "package_channels", "contradicts dram: must divide its channels");
    if (good && out->dram.group_banks != out->dram.banks)
        return bad(&r, "dram", "a rival's banks of a channel get their commands together");
    return good;
}
