/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The units that have a model and an RTL to compare it with. */
static const verify_unit *const units[] = {&verify_rgu, &verify_pnm};
enum { UNITS = sizeof units / sizeof units[0] };

const verify_unit *verify_find(const char *name) {
    for (int i = 0; i < UNITS; i++)
        if (!strcmp(units[i]->name, name))
            return units[i];
    return NULL;
}

const char *verify_names(void) { return "rgu, pnm"; }

bool verify_bad(const verify_where *at, const char *key, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *dot = *at->place && *key ? "." : "", *end = *at->place || *key ? ": " : "";
    cli_error(CLI_BAD_INPUT, "%s: %s%s%s%s%s", at->file, at->place, dot, key, end, text);
    return false;
}

bool verify_keys(const verify_where *at, const json_t *object, const char *keys) {
    const char *key;
    json_t *v;
    if (!json_is_object(object))
        return verify_bad(at, "", "must be an object");
    json_object_foreach((json_t *)object, key, v) {
        size_t n = strlen(key);
        bool known = false;
        for (const char *k = keys; !known && (k = strstr(k, key)); k += n)
            known = n && (k == keys || k[-1] == ' ') && (k[n] == ' ' || !k[n]);
        if (!known)
            return verify_bad(at, key, "unknown key");
    }
    return true;
}

bool verify_count(const verify_where *at, const json_t *object, const char *key, json_int_t least,
                  json_int_t most, json_int_t otherwise, uint32_t *out) {
    const json_t *v = json_object_get(object, key);
    json_int_t n = v ? json_integer_value(v) : otherwise;
    if (!v && otherwise < 0)
        return verify_bad(at, key, "is missing");
    if ((v && !json_is_integer(v)) || n < least || n > most)
        return verify_bad(at, key, "must be a whole number, %lld to %lld", (long long)least,
                          (long long)most);
    *out = (uint32_t)n;
    return true;
}

bool verify_flag(const verify_where *at, const json_t *object, const char *key, bool *out) {
    const json_t *v = json_object_get(object, key);
    if (v && !json_is_boolean(v))
        return verify_bad(at, key, "must be true or false");
    *out = json_is_true(v); /* false where there is none */
    return true;
}

bool verify_choice(const verify_where *at, const json_t *object, const char *key, const char *words,
                   int *out) {
    const json_t *v = json_object_get(object, key);
    const char *text = json_string_value(v), *w = words;
    *out = 0;
    if (!v)
        return true;
    for (int i = 0; text && w; i++) {
        size_t n = strcspn(w, "|");
        if (strlen(text) == n && !strncmp(text, w, n)) {
            *out = i;
            return true;
        }
        w = w[n] ? w + n + 1 : NULL;
    }
    return verify_bad(at, key, "must be one of %s", words);
}
