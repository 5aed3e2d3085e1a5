/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a language model: the network on a device with compute kernels, the generated matrices made
 * by a rotor generation unit each time they are used.
 *
 * A generated matrix is asked for when the router has chosen its expert, goes into one of two
 * buffers while the kernel that consumes the matrix before it still runs, and is overwritten by the
 * next but one. Nothing generated is kept for a later step.
 */
#ifndef HOST_LM_LM_H
#define HOST_LM_LM_H

#include <signal.h>

#include <millrace/millrace.h>

#include "host/kv/shards.h"
#include "host/lm/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_lm mr_lm;

typedef struct mr_lm_options {
    const char *gpu; /* device with MR_CAP_KERNELS */
    /* a device with MR_CAP_RGU, or "golden"; NULL: every generated matrix is expanded once from the
     * float64 definition, rounded to bf16 and kept */
    const char *rgu;
    bool apply; /* let the unit multiply instead of generating tiles */
    bool check; /* compare every tile with the golden model before it is used */
    const volatile sig_atomic_t *stop; /* as for mr_generator_open(); may be NULL */
    uint64_t timeout_ns;               /* longest wait for a device */
    /* a cluster as mr_nic_open() takes it (at most 16 nodes), over which the KV cache is sharded;
     * NULL: it stays on the GPU */
    const char *nic;
} mr_lm_options;

/* Sums over all jobs since the last mr_lm_reset_stats(). */
typedef struct mr_lm_stats {
    bool hardware;    /* cycles and items come from a unit's counters */
    uint64_t cycles;  /* start to done */
    uint64_t weights; /* generated, or stood for by an applied matrix */
    uint64_t jobs;
    uint64_t seed_bytes;     /* read instead of the weights */
    uint64_t checked, wrong; /* tiles */
} mr_lm_stats;

/* M must outlive *out. */
mr_status mr_lm_create(const mr_lm_model *m, const mr_lm_options *options, mr_lm **out);
void mr_lm_destroy(mr_lm *lm);

/* What is in the network and where it runs, for reports. */
const mr_device_info *mr_lm_gpu(const mr_lm *lm);

/* Forgets the text so far. Fails only where nodes have to be told. */
mr_status mr_lm_restart(mr_lm *lm);

/* Positions used. */
size_t mr_lm_position(const mr_lm *lm);

/*
 * Continues the text by `count` bytes (1 .. context - position). The logits after the last of them,
 * or after each with `all`, go to logits[count or 1][vocab].
 */
mr_status mr_lm_forward(mr_lm *lm, const uint8_t *text, size_t count, bool all, float *logits);

void mr_lm_get_stats(const mr_lm *lm, mr_lm_stats *stats);
/* MR_UNSUPPORTED without options.nic. */
mr_status mr_lm_get_nic_stats(const mr_lm *lm, mr_shards_stats *stats);
void mr_lm_reset_stats(mr_lm *lm);

/*
 * Bits needed for text[1..count-1], each byte from those before it in its window. Windows do not
 * overlap: bytes at .. at+context predict at+1 .. at+context+1, at = 0, context, 2 context, ..
 * Every byte but the first is predicted once. progress (may be NULL) is called with the bytes done;
 * non-zero stops with MR_CANCELLED.
 */
mr_status mr_lm_score(mr_lm *lm, const uint8_t *text, size_t count,
                      int (*progress)(void *context, size_t done), void *context,
                      double *bits_per_byte);

#ifdef __cplusplus
}
#endif
#endif
