/* SPDX-License-Identifier: Apache-2.0 */
/* What a study found, as text, CSV, JSON and pictures. */
#ifndef HOST_CLI_STUDY_REPORT_H
#define HOST_CLI_STUDY_REPORT_H

#include <stdio.h>

#include "host/cli/study.h"

typedef enum { PART_REPLAY, PART_SCALING, PART_CONTEXT } study_part;

typedef struct {
    study_part part;
    const char *trace;
    study_run run;
    size_t context; /* PART_CONTEXT: tokens of the prompt, */
    double cached_share, last_ttft_s;
    bool impossible; /* the nodes could never hold it */
} study_row;

typedef struct {
    const study *s;
    study_row *rows;
    size_t count, room;
} study_report;

/* Figures of a row. Bytes are of the last request in PART_CONTEXT, of all otherwise. */
double study_ttft(const study_row *r);         /* mean, seconds */
double study_prompt_bytes(const study_row *r); /* for prompts, conversion and replicas included */
double study_decode_bytes(const study_row *r); /* a decoded token */
double study_throughput(const study_row *r);   /* output tokens a second */

/*
 * The row of a policy among those that differ in nothing else; of tensor parallelism the degree
 * with the best mean TTFT. NULL: none, or impossible.
 */
const study_row *study_find(const study_report *o, study_part part, const char *trace,
                            const char *policy, size_t nodes, double load, double cached,
                            size_t context);

void study_print_tables(FILE *f, const study_report *o);
int study_print_csv(FILE *f, const study_report *o);
json_t *study_to_json(const study_report *o);
int study_print_page(FILE *f, const study_report *o);

#endif
