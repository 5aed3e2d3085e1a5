/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads of `millrace verify` and `millrace model`: read from JSON, timed in a model, run on the
 * RTL. A unit is an entry of the table of units in verify_work.c.
 */
#ifndef HOST_CLI_VERIFY_H
#define HOST_CLI_VERIFY_H

#include "host/cli/cli.h"

/* Where in which file something stands, for messages: FILE: PLACE.KEY: what. */
typedef struct {
    const char *file;
    char place[96];
} verify_where;

/* Prints "FILE: PLACE.KEY: what" and returns false; KEY may be empty. */
bool verify_bad(const verify_where *at, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Only these keys, separated by blanks; the first others that is found is named. */
bool verify_keys(const verify_where *at, const json_t *object, const char *keys);

/* object[key] as a whole number; `otherwise` where there is none, or, with otherwise < 0, an error.
 */
bool verify_count(const verify_where *at, const json_t *object, const char *key, json_int_t least,
                  json_int_t most, json_int_t otherwise, uint32_t *out);
bool verify_flag(const verify_where *at, const json_t *object, const char *key, bool *out);
/* The place of object[key] in words, "a|b|c"; the first where there is none. */
bool verify_choice(const verify_where *at, const json_t *object, const char *key, const char *words,
                   int *out);

typedef struct {
    const char *name;
    const char *keys; /* of a workload, besides name, unit, doc and short */
    /* *composed: more than one descriptor. `models` is the folder models/cycle. */
    bool (*open)(const verify_where *at, const json_t *workload, const char *models, void **work,
                 bool *composed);
    /* One run of the model; details, if not NULL, gets cycles, bottleneck and counters. */
    int (*model)(void *work, uint64_t *cycles, json_t **details);
    int (*rtl)(void *work, uint64_t *cycles, double *seconds);
    void (*close)(void *work);
} verify_unit;

const verify_unit *verify_find(const char *name); /* NULL: there is none */
const char *verify_names(void);                   /* "rgu, pnm" */

extern const verify_unit verify_rgu, verify_pnm;

#endif
