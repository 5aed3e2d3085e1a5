/* SPDX-License-Identifier: Apache-2.0 */
/* The study of the compute-NIC: what its file says, the recorded requests, the runs, the report. */
#ifndef HOST_CLI_STUDY_H
#define HOST_CLI_STUDY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cli/cli.h"
#include "models/cycle/cluster.h"

enum { STUDY_MOST = 16 }; /* entries of a list in the file */

typedef struct {
    char *name, *file, *form;
    bool mooncake; /* else splitwise */
} study_trace;

/* models/cycle/studies/nic.json, field by field. Every key is needed and no other is taken. */
typedef struct {
    size_t layers, query_heads, kv_heads, head_dim, hidden, value_bytes;
    size_t kv_bytes, block_tokens, step_tokens, step_requests;
    char *layer_times;
    double flops_per_s, flops_share, hbm_bytes_per_s, hbm_share;
    size_t gbit_per_s, link_latency_ns, switch_latency_ns, route_ns, merge_ns, host_ns, group;
    size_t trunk_gbit_per_s, frame_overhead_bytes, frame_payload_bytes, kv_payload_bytes;
    study_trace trace[STUDY_MOST];
    size_t traces;
    char *policy[STUDY_MOST]; /* each known, or "tensor-parallel" */
    size_t policies;
    size_t degree[STUDY_MOST], degrees; /* of tensor parallelism */
    size_t replay_nodes;
    double load[STUDY_MOST];
    size_t loads;
    char *scaling_trace;
    size_t scaling_node[STUDY_MOST], scaling_nodes;
    double load_per_node;
    size_t context_node[STUDY_MOST], context_nodes, context_token[STUDY_MOST], context_tokens;
    double cached_share[STUDY_MOST];
    size_t cached_shares;
    size_t decode_tokens;
} study;

/* CLI_OK, or prints what is wrong, with the file's name and the key. */
int study_read(const char *path, study *s);
void study_free(study *s);

/* MILLRACE_DATA, or ../shared/data; the caller's to free. */
char *study_data(const char *name);

/* Layer times of the file into m; what is missing is named. */
int study_read_layers(const char *path, mr_machine *m);

typedef struct {
    mr_cluster_request *request;
    uint32_t *names; /* of all requests, one after the other */
    size_t requests, blocks;
    /* With room for everything and one request after the other: */
    uint64_t references, distinct, reused;
} study_load;

/* At most `most` requests, 0: all. */
int study_read_trace(const char *path, bool mooncake, size_t block_tokens, size_t most,
                     study_load *load);
void study_load_free(study_load *load);

/* One run of the cluster. */
typedef struct {
    const char *policy; /* by the study's name */
    size_t degree;      /* tensor parallel; 1 otherwise */
    size_t nodes;       /* GPUs */
    double load;
    const study_load *requests;
    int code;        /* CLI_OK, or why there is no result */
    bool impossible; /* these nodes could never hold it */
    mr_cluster_result result;
    uint64_t *ttft_ns; /* optional, one a request */
} study_run;

/* All runs, `jobs` at a time; a progress line on a terminal. */
int study_execute(const study *s, const mr_machine *machine, study_run *runs, size_t count,
                  size_t jobs);

#endif
