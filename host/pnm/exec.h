/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of host/pnm/builder.h, run by whoever there is: the golden model in threads of this
 * process ("golden"), or a device with MR_CAP_PNM behind a URI ("sim:pnm", "cpu:", "opencl:0",
 * "cuda:0"). All give the same memory for the same program and multiplier.
 */
#ifndef HOST_PNM_EXEC_H
#define HOST_PNM_EXEC_H

#include <signal.h>

#include <millrace/pnm.h>

#include "host/pnm/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_exec mr_pnm_exec;

typedef struct mr_pnm_exec_options {
    unsigned chips;      /* that run at once; 0: as many as there are cores (golden), else 1 */
    unsigned gen;        /* mr_pnm_gen of split products: MR_PNM_CENTRED or MR_PNM_UNARY */
    unsigned cut;        /* binary fraction bits of split products */
    bool wide;           /* float32 weights and products: programs of a wide builder */
    uint64_t timeout_ns; /* bounds one program */
    const volatile sig_atomic_t *stop; /* NULL, or: non-zero ends the run with MR_CANCELLED */
} mr_pnm_exec_options;

/* Centred generator, no cut, 10 minutes. */
mr_pnm_exec_options mr_pnm_exec_defaults(void);

/* MR_UNSUPPORTED when the device has no such multiplier: a simulated chip is built with one, the
 * others have all of them, and `wide`. */
mr_status mr_pnm_exec_open(const char *uri, const mr_pnm_exec_options *options, mr_pnm_exec **out);
void mr_pnm_exec_close(mr_pnm_exec *e);

/* Whether counters have cycles, and how many chips run at once. */
bool mr_pnm_exec_counts(const mr_pnm_exec *e);
unsigned mr_pnm_exec_chips(const mr_pnm_exec *e);

/*
 * Runs the programs, each on one chip; counters[i] is what program i counted. A program's image
 * holds afterwards what it stored. Programs may run in any order and on any chip: what a program
 * needs in scratchpads and banks it loads (with one chip they run in order and find what the one
 * before left).
 *
 * The first failure ends the run: MR_DEVICE_ERROR names group and descriptor; MR_TIMEOUT means the
 * program did not end in time (a standstill, if golden; where compute kernels do the unit's work a
 * standstill is MR_DEVICE_ERROR); MR_DEVICE_LOST that a simulator died. The devices are brought
 * back then, so that programs can be run again; images of this run are undefined.
 */
mr_status mr_pnm_exec_run(mr_pnm_exec *e, mr_pnm_program *const programs[], size_t count,
                          mr_pnm_counters counters[]);

#ifdef __cplusplus
}
#endif
#endif
