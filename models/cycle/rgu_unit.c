/* SPDX-License-Identifier: Apache-2.0 */
/* Reads models/cycle/rgu/NAME.json: every parameter is {"value": ..., "source": "..."}. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "models/cycle/rgu.h"

#define P(field, least, most)                                                                      \
    { #field, offsetof(mr_rgu_unit, field), least, most }
static const mr_rgu_parameter parameters[] = {P(lanes, 32, 32),
                                              P(expand_lanes, 4, 16),
                                              P(table_address_bits, 9, 9),
                                              P(angle_interval, 1, 64),
                                              P(angle_latency, 1, 64),
                                              P(angle_queue, 1, 32),
                                              P(expand_latency, 1, 64),
                                              P(table_latency, 1, 64),
                                              P(product_latency, 1, 16),
                                              P(transform_slots, 1, 32),
                                              P(line_queue, 1, 64),
                                              P(command_queue, 8, 64),
                                              P(write_burst, 4, 64),
                                              P(write_outstanding, 1, 128),
                                              P(read_burst, 1, 64),
                                              P(read_outstanding, 1, 128),
                                              P(read_buffer, 64, 128),
                                              P(port_bytes, 1, 64),
                                              P(read_latency, 1, 100000),
                                              P(write_latency, 1, 100000),
                                              {NULL, 0, 0, 0}};
#undef P

const mr_rgu_parameter *mr_rgu_parameters(void) { return parameters; }

static bool bad(const char *file, const char *key, const char *what, char *error, size_t size) {
    snprintf(error, size, "%s: %s%s%s", file, key, *key ? ": " : "", what);
    return false;
}

static bool set(const char *file, const mr_rgu_parameter *p, const json_t *root, mr_rgu_unit *out,
                char *error, size_t size) {
    const json_t *object = json_object_get(root, p->name), *v = json_object_get(object, "value");
    const char *source = json_string_value(json_object_get(object, "source"));
    if (!object)
        return bad(file, p->name, "is missing", error, size);
    if (!json_is_object(object) || !v || json_object_size(object) != 2 || !source || !*source)
        return bad(file, p->name, "must be an object of value and source", error, size);
    json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < p->least || n > p->most) {
        char text[80];
        snprintf(text, sizeof text, "must be a whole number, %u to %u", p->least, p->most);
        return bad(file, p->name, text, error, size);
    }
    *(uint32_t *)((char *)out + p->at) = (uint32_t)n;
    return true;
}

static bool known(const char *key) {
    for (const mr_rgu_parameter *p = parameters; p->name; p++)
        if (!strcmp(p->name, key))
            return true;
    return !strcmp(key, "name") || !strcmp(key, "doc");
}

static bool read_all(const char *file, json_t *root, mr_rgu_unit *out, char *error, size_t size) {
    const char *key, *name = json_string_value(json_object_get(root, "name"));
    json_t *v;
    if (!json_is_object(root))
        return bad(file, "", "must be an object", error, size);
    json_object_foreach(root, key, v) {
        if (!known(key))
            return bad(file, key, "unknown key", error, size);
    }
    if (!name || !*name || strlen(name) >= sizeof out->name)
        return bad(file, "name", "must be a name of at most 31 characters", error, size);
    snprintf(out->name, sizeof out->name, "%s", name);
    for (const mr_rgu_parameter *p = parameters; p->name; p++)
        if (!set(file, p, root, out, error, size))
            return false;
    if (out->expand_lanes & (out->expand_lanes - 1))
        return bad(file, "expand_lanes", "must be a power of two", error, size);
    if (out->write_burst & (out->write_burst - 1))
        return bad(file, "write_burst", "must be a power of two", error, size);
    if (out->read_burst & (out->read_burst - 1))
        return bad(file, "read_burst", "must be a power of two", error, size);
    return true;
}

bool mr_rgu_unit_load(const char *file, mr_rgu_unit *out, char *error, size_t size) {
    json_error_t e;
    json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &e);
    memset(out, 0, sizeof *out);
    if (!root)
        snprintf(error, size, "%s:%d: %.160s", file, e.line < 1 ? 1 : e.line, e.text);
    bool good = root && read_all(file, root, out, error, size);
    json_decref(root);
    return good;
}
