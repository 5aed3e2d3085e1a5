/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a NIC cluster as a JSON file:
 *
 *   {"nodes":[{"rank":0,"mac":"02:00:00:00:00:00","ip":"10.0.0.1","port":19794}, ...],
 *    "jobs":[{"job":1,"members":[0,1,2],"root":0}, ...],
 *    "kv":[{"job":1,"layer":0,"block":7,"owner":1,"replicas":[2],"epoch":3,"bytes":4096}, ...]}
 *
 * `jobs`, `kv`, `port` (19794), `replicas` (none) and `epoch` (0) may be left out; nothing else
 * may, and no key is known besides these.
 */
#ifndef HOST_NIC_CONFIG_H
#define HOST_NIC_CONFIG_H

#include <millrace/millrace.h>
#include <millrace/nic_frame.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MR_NIC_MAX_NODES = 256,
    MR_NIC_MAX_JOBS = 32,
    MR_NIC_MAX_MEMBERS = 32,
    MR_NIC_MAX_KV = 262144
};

typedef struct mr_nic_node_row {
    uint8_t rank;
    uint8_t mac[6];
    uint32_t ip; /* 10.0.0.1 is 0x0A000001 */
    uint16_t port;
} mr_nic_node_row;

typedef struct mr_nic_job_row {
    uint16_t job;
    uint8_t root;
    uint8_t count;                       /* 1..32 */
    uint8_t members[MR_NIC_MAX_MEMBERS]; /* ascending, each a row of `nodes` */
} mr_nic_job_row;

typedef struct mr_nic_kv_row {
    uint16_t job, layer;
    uint32_t block;
    uint8_t owner;
    uint8_t count;                        /* replicas */
    uint8_t replicas[MR_NIC_MAX_MEMBERS]; /* ascending; like the owner, members of the job */
    uint32_t epoch;
    uint32_t bytes; /* > 0 */
} mr_nic_kv_row;

typedef struct mr_nic_config {
    mr_nic_node_row *nodes; /* ascending ranks */
    mr_nic_job_row *jobs;   /* in the file's order */
    mr_nic_kv_row *kv;      /* in the file's order */
    size_t num_nodes, num_jobs, num_kv;
} mr_nic_config;

/*
 * Reads and checks a file. MR_IO_ERROR or MR_BAD_FORMAT, the message names the file and the field
 * (`FILE: jobs[1].members[2]: rank 9 is not in nodes`). Refused are text that is no JSON, keys that
 * are unknown, missing or given twice, wrong types and ranges, a rank or address given twice, a job
 * given twice, members that are no nodes or given twice, more than 32 of them, a root that is no
 * member, owners and replicas that are no members of the job, an owner among its replicas, and two
 * entries for one (job, layer, block).
 */
mr_status mr_nic_config_load(const char *path, mr_nic_config *out);

/* The same from `size` bytes of text; `name` stands for the file in messages. */
mr_status mr_nic_config_parse(const char *name, const char *text, size_t size, mr_nic_config *out);
void mr_nic_config_free(mr_nic_config *c);

/* NULL when there is no such row. */
const mr_nic_node_row *mr_nic_config_node(const mr_nic_config *c, unsigned rank);
const mr_nic_job_row *mr_nic_config_job(const mr_nic_config *c, unsigned job);

/* 4096-byte pages that `rank` needs to hold what the entries naming it say. */
uint64_t mr_nic_config_pages(const mr_nic_config *c, unsigned rank);

#ifdef __cplusplus
}
#endif
#endif
