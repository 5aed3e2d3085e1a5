/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to ask for generated weights, whoever makes them: a rotor generation unit behind a device
 * URI, or the golden model in a thread of this process ("golden").
 *
 * A slot is a place for one result. Starting work in a slot returns at once; waiting for the slot
 * gives the result in host memory, valid until the slot is started again. Work runs in the order in
 * which it was started, whatever the slot.
 */
#ifndef HOST_UNITS_GENERATOR_H
#define HOST_UNITS_GENERATOR_H

#include <signal.h>

#include <millrace/millrace.h>

#include "host/units/rgu_seed.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_generator mr_generator;
typedef struct mr_generator_seed mr_generator_seed;
typedef struct mr_generator_slot mr_generator_slot;

/*
 * Opens URI ("golden", or a device with MR_CAP_RGU). While *stop is non-zero, waits end with
 * MR_CANCELLED; stop may be NULL. timeout_ns bounds one wait.
 */
mr_status mr_generator_open(const char *uri, const volatile sig_atomic_t *stop, uint64_t timeout_ns,
                            mr_generator **out);
/* Seeds and slots of the generator must be gone. */
void mr_generator_close(mr_generator *g);

/* Whether work carries hardware counters. */
bool mr_generator_counts(const mr_generator *g);

/* Puts a projection's seed image where the generator reads it. P must outlive the seed. */
mr_status mr_generator_seed_create(mr_generator *g, const mr_projection *p,
                                   mr_generator_seed **out);
void mr_generator_seed_destroy(mr_generator_seed *s);

/* BYTES is the largest result, SOURCE_BYTES the largest input of an apply (0: tiles only). */
mr_status mr_generator_slot_create(mr_generator *g, size_t bytes, size_t source_bytes,
                                   mr_generator_slot **out);
/* Waits for work that is still running. */
void mr_generator_slot_destroy(mr_generator_slot *s);

/* The window of the job, rows one after the other without gaps (the job's dst_stride is not used).
 */
mr_status mr_generator_tile(mr_generator_seed *seed, const mr_rgu_job *job,
                            mr_generator_slot *slot);
/* y = W x for job->batch vectors: x float32[batch][d_in], result float32[batch][d_out]. */
mr_status mr_generator_apply(mr_generator_seed *seed, const mr_rgu_job *job, const float *x,
                             mr_generator_slot *slot);

/* The result of what was started last in the slot. counters may be NULL. */
mr_status mr_generator_wait(mr_generator_slot *slot, const void **data, mr_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
