/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace nic bench` measures on one simulated NIC, rank 0 of nine with an open network. */
#ifndef HOST_CLI_NIC_BENCH_H
#define HOST_CLI_NIC_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/nic/config.h"
#include "host/nic/port.h"

enum { NIC_BENCH_NODES = 9, NIC_BENCH_MIN_UDP = 32, NIC_BENCH_MAX_UDP = 9000 };

typedef struct {
    mr_nic_link *l;
    mr_nic_config config;
    mr_nic_node_row nodes[NIC_BENCH_NODES];
    mr_nic_job_row jobs[2]; /* the root is rank 1: results leave by the network */
    mr_nic_kv_row kv;       /* one block of 64 KiB, owned by rank 0 */
    uint32_t request;
    uint8_t frame[MR_NIC_FRAME_MAX];
} nic_bench;

/* Opens the device and sets its tables. */
mr_status nic_bench_open(nic_bench *b, const char *device);
void nic_bench_close(nic_bench *b);

/* Frames back to back from network port 0. */
typedef struct {
    uint64_t frames, lost; /* sent in; of those not where they belong */
    uint64_t in_beats, in_cycles;
    uint64_t out_beats, out_cycles; /* of where they belong, first beat to last beat */
    uint64_t out_frames;
    uint64_t engine_beats, engine_cycles; /* merge engine: beats taken, first beat in to last out */
} nic_rate;

/* Frames for somebody else along a chain, port 0 to port 1: `n` of each UDP length first..last, in
 * an order drawn from `seed`. */
mr_status nic_bench_pass(nic_bench *b, size_t first, size_t last, size_t n, uint64_t seed,
                         nic_rate *out);
/* QUERY frames for the own host, n of this UDP length (even). */
mr_status nic_bench_deliver(nic_bench *b, size_t udp, size_t n, nic_rate *out);
/* KV_WRITE of `bytes` to the own memory. */
mr_status nic_bench_store(nic_bench *b, size_t bytes, size_t n, nic_rate *out);
/* Operations with contributions of eight shards in order; heads 0: REDUCE of dim elements. */
mr_status nic_bench_merge(nic_bench *b, unsigned dtype, size_t heads, size_t dim, size_t operations,
                          nic_rate *out);

/* Cycles from the last beat in to the first beat out of what it causes, alone in the NIC. */
typedef enum {
    NIC_PATH_PASS,    /* port 0 to port 1 */
    NIC_PATH_DELIVER, /* QUERY to the own host */
    NIC_PATH_SEND,    /* host to port 0 */
    NIC_PATH_COPY,    /* QUERY of the own host to the other members: its first copy */
    NIC_PATH_ACK,     /* a reliable contribution to its ACK */
    NIC_PATH_STORED,  /* KV_WRITE to its ACK, memory latency included */
    NIC_PATH_READ,    /* KV_READ to KV_DATA, memory latency included */
    NIC_PATHS
} nic_path;
extern const char *const nic_path_names[NIC_PATHS];
mr_status nic_bench_latency(nic_bench *b, nic_path path, size_t bytes, uint64_t *cycles);

/* The same for the last of eight shards in order, to the result. */
mr_status nic_bench_merge_latency(nic_bench *b, unsigned dtype, size_t heads, size_t dim,
                                  uint64_t *cycles, uint64_t *payload_bytes);

#endif
