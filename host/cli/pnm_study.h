/* SPDX-License-Identifier: Apache-2.0 */
/* What `millrace pnm study` finds out: host/cli/pnm_study_*.c. Energies in joules, times in ns. */
#ifndef HOST_CLI_PNM_STUDY_H
#define HOST_CLI_PNM_STUDY_H

#include <stdio.h>

#include "host/cli/cli.h"
#include "host/flow/plan.h"
#include "host/pnm/energy.h"
#include "models/cycle/rival.h"

enum {
    PNM_OWN = 2,    /* the chip, and wide */
    PNM_RIVALS = 3, /* aim, hbm_pim, attacc */
    PNM_FLOWS = 4,
    PNM_CASES = 2 * PNM_FLOWS,
    PNM_LENGTHS = 7, /* stream lengths 4 to 256 */
    PNM_WIDTHS = 3,  /* stream bits a cycle: 4, 16, 64 */
    PNM_STREAMS = 9, /* generators and cuts */
    PNM_VECTORS = 5  /* 1 to 16 vectors of a matrix alone */
};

/* A machine at a flow. */
typedef struct {
    double alone_ns, alone_joules; /* one image, nothing else on the machine's channel */
    double stream_ns;              /* an image of many, one channel */
    mr_pnm_energy energy;          /* an image of many; link: to the host, or host to banks */
} pnm_result;

typedef struct {
    const char *flow;
    bool inverse;
    size_t images;
    double products;          /* an image */
    double schedule[3];       /* cycles an image on the built unit, mr_flow_schedule */
    double job[3];            /* cycles of all images, weights and all: what `run flow` reports */
    double alone[2], many[2]; /* the same by mr_flow_placement: one image; many, replicated */
    pnm_result own[PNM_OWN], rival[PNM_RIVALS];
    double length[PNM_WIDTHS][PNM_LENGTHS]; /* cycles an image, replicated, on the built unit */
} pnm_case;

typedef struct {
    const char *name; /* of generator and cut */
    double rms[PNM_LENGTHS], mean[PNM_LENGTHS];
} pnm_stream_error;

typedef struct {
    mr_pnm_machine unit, own[PNM_OWN];
    mr_rival rival[PNM_RIVALS];
    pnm_case item[PNM_CASES];
    size_t items;
    pnm_stream_error stream[PNM_STREAMS];
    double matrix[2][PNM_VECTORS]; /* cycles of 256 x 256 at 1, 2, 4, 8, 16 vectors: tier 0, mean */
    json_t *bpd;                   /* models/zoo/flows/bpd.json, or NULL */
} pnm_study;

extern const unsigned pnm_study_widths[PNM_WIDTHS];

/* Fills a study; `only` is the one flow to look at, or NULL. */
int pnm_study_run(pnm_study *s, const char *only);

/* Units or packages: what one chip, die or stack makes of a channel's time. */
double pnm_own_rate(const pnm_study *s, const pnm_case *c, int i);   /* images a second, a chip */
double pnm_rival_rate(const pnm_study *s, const pnm_case *c, int i); /* a die or stack */
double pnm_own_bandwidth(const pnm_study *s, int i);   /* bytes a second of a chip's banks */
double pnm_rival_bandwidth(const pnm_study *s, int i); /* of a die's or stack's */
double pnm_own_capacity(const pnm_study *s, int i);    /* bytes, likewise */
double pnm_rival_capacity(const pnm_study *s, int i);

void pnm_study_tables(FILE *f, const pnm_study *s);
json_t *pnm_study_json(const pnm_study *s);
/* Pictures into a folder; CLI_OK or the exit status. */
int pnm_study_pictures(const pnm_study *s, const char *folder);

#endif
