/* SPDX-License-Identifier: Apache-2.0 */
/* Reads models/cycle/dram/NAME.json. Every parameter is {"value": ..., "source": "..."}. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "models/cycle/dram.h"

typedef struct {
    const char *file;
    json_t *root;
    char *error;
    size_t size;
} reader;

static const char *const keys[] = {"name",
                                   "doc",
                                   "clock_ns",
                                   "channels",
                                   "banks",
                                   "group_banks",
                                   "tiers",
                                   "rows",
                                   "columns",
                                   "column_bytes",
                                   "unit_banks",
                                   "unit_lanes",
                                   "tRCD_ns",
                                   "tRAS_ns",
                                   "tRAS_after_RCD_ns",
                                   "tRC_ns",
                                   "tRP_ns",
                                   "tRTP_ns",
                                   "tWR_ns",
                                   "tCCD_ns",
                                   "tCL_ns",
                                   "tRFC_ns",
                                   "tREFI_ns",
                                   "refresh",
                                   "postponed",
                                   "map",
                                   "energy_bit_pj",
                                   "energy_row_bit_pj",
                                   NULL};

__attribute__((format(printf, 3, 4))) static bool bad(const reader *r, const char *key,
                                                      const char *format, ...) {
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(r->error, r->size, "%s: %s%s%s", r->file, key, *key ? ": " : "", text);
    return false;
}

/* The parameter's value, its source being there. */
static bool value(const reader *r, const char *key, json_t **out) {
    json_t *p = json_object_get(r->root, key);
    const char *inner;
    json_t *v;
    if (!p)
        return bad(r, key, "is missing");
    if (!json_is_object(p))
        return bad(r, key, "must be an object of value and source");
    json_object_foreach(p, inner, v) {
        if (strcmp(inner, "value") != 0 && strcmp(inner, "source") != 0)
            return bad(r, key, "unknown key %.40s", inner);
    }
    const char *source = json_string_value(json_object_get(p, "source"));
    if (!source || !*source)
        return bad(r, key, "source is missing");
    *out = json_object_get(p, "value");
    return *out ? true : bad(r, key, "value is missing");
}

static bool in_range(const reader *r, const char *key, const json_t *j, double least, double most,
                     double *out) {
    double v = json_is_number(j) ? json_number_value(j) : NAN;
    if (!(v >= least && v <= most))
        return bad(r, key, "must be a number, %g to %g", least, most);
    *out = v;
    return true;
}

static bool real(const reader *r, const char *key, double least, double most, double *out) {
    json_t *j;
    return value(r, key, &j) && in_range(r, key, j, least, most, out);
}

static bool whole(const reader *r, const char *key, uint32_t most, uint32_t *out) {
    json_t *j;
    if (!value(r, key, &j))
        return false;
    if (!json_is_integer(j) || json_integer_value(j) < 1 || json_integer_value(j) > most)
        return bad(r, key, "must be a whole number, 1 to %u", most);
    *out = (uint32_t)json_integer_value(j);
    return true;
}

static bool by_tier(const reader *r, const char *key, uint32_t tiers, double *out) {
    json_t *j;
    if (!value(r, key, &j))
        return false;
    if (!json_is_array(j) || json_array_size(j) != tiers)
        return bad(r, key, "must be a list of %u numbers, one a tier", tiers);
    for (uint32_t i = 0; i < tiers; i++)
        if (!in_range(r, key, json_array_get(j, i), 0.01, 1000, &out[i]))
            return false;
    return true;
}

static bool row_times(const reader *r, mr_dram_config *c) {
    bool given = json_object_get(r->root, "tRAS_ns") != NULL;
    double after = 0;
    if (given && json_object_get(r->root, "tRAS_after_RCD_ns"))
        return bad(r, "tRAS_ns", "contradicts tRAS_after_RCD_ns: give one of them");
    if (!by_tier(r, "tRCD_ns", c->tiers, c->rcd_ns) || !real(r, "tRP_ns", 0.01, 1000, &c->rp_ns))
        return false;
    if (given ? !by_tier(r, "tRAS_ns", c->tiers, c->ras_ns)
              : !real(r, "tRAS_after_RCD_ns", 0, 1000, &after))
        return false;
    if (json_object_get(r->root, "tRC_ns") && !real(r, "tRC_ns", 0.01, 2000, &c->rc_ns))
        return false;
    for (uint32_t i = 0; i < c->tiers; i++) {
        if (!given)
            c->ras_ns[i] = c->rcd_ns[i] + after;
        if (c->ras_ns[i] < c->rcd_ns[i])
            return bad(r, "tRAS_ns", "contradicts tRCD_ns: shorter in tier %u", i);
        /* published tables round each of the three to a clock of its own */
        if (c->rc_ns > 0 && c->rc_ns + 1.001 * c->clock_ns < c->ras_ns[i] + c->rp_ns)
            return bad(r, "tRC_ns", "contradicts tRAS and tRP: shorter than their sum in tier %u",
                       i);
    }
    return true;
}

static bool geometry(const reader *r, mr_dram_config *c) {
    if (!whole(r, "channels", 1024, &c->channels) || !whole(r, "banks", 256, &c->banks) ||
        !whole(r, "group_banks", 32, &c->group_banks) ||
        !whole(r, "tiers", MR_DRAM_TIERS, &c->tiers) || !whole(r, "rows", 1 << 20, &c->rows) ||
        !whole(r, "columns", 4096, &c->columns) ||
        !whole(r, "column_bytes", 256, &c->column_bytes) ||
        !whole(r, "unit_banks", 32, &c->unit_banks) ||
        !whole(r, "unit_lanes", 1024, &c->unit_lanes))
        return false;
    if (c->rows % c->tiers)
        return bad(r, "rows", "contradicts tiers: must be a multiple of %u", c->tiers);
    if (c->banks % c->group_banks)
        return bad(r, "banks", "contradicts group_banks: must be a multiple of %u", c->group_banks);
    if (c->banks % c->unit_banks)
        return bad(r, "banks", "contradicts unit_banks: must be a multiple of %u", c->unit_banks);
    return true;
}

static bool address_map(const reader *r, mr_dram_config *c) {
    static const char *const names[] = {"channel", "bank", "row", "column"};
    static const char digits[] = "cbrk";
    json_t *j;
    unsigned seen = 0;
    if (!value(r, "map", &j))
        return false;
    if (!json_is_array(j) || json_array_size(j) != 4)
        return bad(r, "map", "must list channel, bank, row and column, the high digit first");
    for (size_t i = 0; i < 4; i++) {
        const char *name = json_string_value(json_array_get(j, i));
        for (unsigned k = 0; k < 4; k++)
            if (name && strcmp(name, names[k]) == 0) {
                seen |= 1u << k;
                c->map[i] = digits[k];
            }
    }
    return seen == 15 ? true : bad(r, "map", "must have channel, bank, row and column once each");
}

static bool fill(const reader *r, mr_dram_config *c) {
    const char *key;
    json_t *j;
    json_object_foreach(r->root, key, j) {
        const char *const *k = keys;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k)
            return bad(r, key, "unknown key");
    }
    const char *name = json_string_value(json_object_get(r->root, "name"));
    if (!name || !*name || strlen(name) >= sizeof c->name)
        return bad(r, "name", "must be a text of 1 to %zu letters", sizeof c->name - 1);
    snprintf(c->name, sizeof c->name, "%s", name);
    if (!json_is_string(json_object_get(r->root, "doc")))
        return bad(r, "doc", "must be a text");
    if (!real(r, "clock_ns", 0.05, 100, &c->clock_ns) || !geometry(r, c) || !row_times(r, c) ||
        !real(r, "tRTP_ns", 0.01, 1000, &c->rtp_ns) || !real(r, "tWR_ns", 0.01, 1000, &c->wr_ns) ||
        !real(r, "tCCD_ns", 0.01, 1000, &c->ccd_ns) || !real(r, "tCL_ns", 0.01, 1000, &c->cl_ns) ||
        !real(r, "tRFC_ns", 0.01, 10000, &c->rfc_ns) || !real(r, "tREFI_ns", 1, 1e6, &c->refi_ns) ||
        !whole(r, "postponed", 8, &c->postponed) ||
        !real(r, "energy_bit_pj", 0, 1000, &c->bit_pj) ||
        !real(r, "energy_row_bit_pj", 0, 1000, &c->row_bit_pj) || !value(r, "refresh", &j))
        return false;
    if (!json_is_boolean(j))
        return bad(r, "refresh", "must be true or false");
    c->refresh = json_is_true(j);
    if (c->refi_ns <= c->rfc_ns + c->rp_ns + c->ras_ns[c->tiers - 1])
        return bad(r, "tREFI_ns", "contradicts tRFC_ns: no time between refreshes");
    return address_map(r, c);
}

bool mr_dram_load(const char *file, mr_dram_config *out, char *error, size_t size) {
    json_error_t wrong;
    reader r = {file, json_load_file(file, JSON_REJECT_DUPLICATES, &wrong), error, size};
    memset(out, 0, sizeof *out);
    if (!r.root)
        return wrong.line > 0 ? bad(&r, "", "line %d: %s", wrong.line, wrong.text)
                              : bad(&r, "", "%s", wrong.text);
    bool sound = json_is_object(r.root) ? fill(&r, out) : bad(&r, "", "must be an object");
    json_decref(r.root);
    return sound;
}
