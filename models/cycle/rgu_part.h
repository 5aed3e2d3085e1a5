/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the RGU's timing model share. Times are cycles from the cycle of rgu_top's
 * state Start, which is 0. */
#ifndef MODELS_CYCLE_RGU_PART_H
#define MODELS_CYCLE_RGU_PART_H

#include "models/cycle/rgu.h"

typedef int64_t rgu_cycle;

enum { RGU_WORD = 64 /* bytes of the port */, RGU_CHUNKS = 8 /* pops remembered */ };

static inline rgu_cycle rgu_max(rgu_cycle a, rgu_cycle b) { return a > b ? a : b; }

/* ---- the memory's read side: beats in the order of their addresses -------------------------- */

typedef struct {
    uint32_t latency, bytes;
    rgu_cycle offered; /* cycle before the last beat, when the memory decided on it */
    uint32_t credit;   /* bytes it may still move, after that beat */
    uint64_t beats;
} rgu_reads;

void rgu_reads_init(rgu_reads *r, const mr_rgu_unit *u);

/* A burst whose address was taken in `address`: the cycles of its beats. */
void rgu_reads_burst(rgu_reads *r, rgu_cycle address, uint32_t words, rgu_cycle *beats);

/* ---- a read master (rtl/common/mr_axi_rd.sv) ------------------------------------------------- */

enum { RGU_BEATS = 256, RGU_BURSTS = 256 };

typedef struct {
    const mr_rgu_unit *unit;
    uint64_t addr;               /* of the command in work */
    uint32_t left;               /* its words without an address */
    rgu_cycle next;              /* first cycle in which the next burst may ask */
    rgu_cycle free;              /* first cycle in which the next command may be taken */
    uint64_t words, bursts;      /* with an address, ever */
    rgu_cycle align;             /* last step of the aligner */
    bool skip;                   /* its next step gives nothing: it needs two words for one */
    bool more;                   /* its last step needs no word */
    rgu_cycle popped[RGU_BEATS]; /* a ring by word: cycle in which it leaves the buffer */
    rgu_cycle ended[RGU_BURSTS]; /* a ring by burst: cycle of its last beat */
} rgu_reader;

void rgu_reader_init(rgu_reader *r, const mr_rgu_unit *u);
/* A command taken in cycle `at`; r->left must be 0. */
void rgu_reader_command(rgu_reader *r, rgu_cycle at, uint64_t addr, uint32_t bytes);
/* The next burst of the command: its words, and the cycle from which on it asks. */
rgu_cycle rgu_reader_ask(const rgu_reader *r, uint32_t *words);
/* The burst got its turn in `at`: the lines that come out of the master, and the cycles of that. */
uint32_t rgu_reader_grant(rgu_reader *r, rgu_reads *m, rgu_cycle at, uint32_t words,
                          rgu_cycle *out);

/* ---- seeds to tables (rtl/rgu/rgu_fetch, rgu_sincos, rgu_expand, rgu_tables) ------------------
 */

enum { RGU_RECORDS = 16, RGU_COEFFICIENTS = 128 };

typedef struct {
    const mr_rgu_unit *unit;
    uint32_t terms, planes, stages, beats, group, scale_beats, slots;
    bool row_scale;
    uint64_t visits, visit;     /* walks over a chunk row, one after the other: all, and this */
    uint32_t repeat, repeats;   /* of the same row */
    uint64_t row_records, left; /* records of a walk, and those not asked for */
    uint64_t row_addr, addr, scale_addr, row_bytes, scale_bytes;
    /* commands */
    rgu_reader reader;
    rgu_cycle last_give;
    bool scales_next, asking;
    uint32_t kind_left; /* words of the command in work still without a grant */
    bool kind_scales;
    uint64_t groups, asked; /* groups and records asked for */
    uint32_t size[4];       /* ring: records of a group */
    rgu_cycle freed[4];     /* ring: cycle in which the group was read to its end */
    uint64_t groups_freed;
    uint64_t scales_given;
    rgu_cycle scale_pop[4]; /* ring by walk; the consumer's */
    uint64_t scale_pops;
    /* records */
    uint64_t arrived;             /* records whole */
    uint32_t record_words;        /* words of the next one that are here */
    rgu_cycle whole[RGU_RECORDS]; /* ring */
    /* terms */
    uint64_t term, total_terms; /* finished, and of the job */
    uint32_t group_at;          /* record in its group */
    uint64_t group_now;
    uint32_t coef;                                           /* of the term in work; 0: not begun */
    uint64_t coefs;                                          /* ever */
    rgu_cycle take[RGU_COEFFICIENTS], pop[RGU_COEFFICIENTS]; /* rings */
    rgu_cycle header; /* the header's way out, of the term in work */
    rgu_cycle begun;  /* the expander took the header before */
    rgu_cycle last_take;
    uint32_t words[16]; /* of a pass, by stage */
    /* chunks */
    uint64_t chunks;              /* whole ones */
    rgu_cycle tables[RGU_CHUNKS]; /* ring: whole in this cycle */
    rgu_cycle popped[RGU_CHUNKS]; /* ring; the consumer's */
    uint64_t pops;
} rgu_feed;

typedef struct {
    uint64_t seeds, scales;
    uint32_t terms, d, log_d, chunks_in;
    uint32_t o0, o1, i0, i1;
    uint32_t repeats; /* walks over each chunk row */
    bool row_scale;
} rgu_walk;

void rgu_feed_init(rgu_feed *f, const mr_rgu_unit *u, const rgu_walk *w);
/* Makes terms of the records that are here, until it waits for a pop. True: some chunk may be
 * whole. */
bool rgu_feed_expand(rgu_feed *f);
/*
 * Goes on as far as it can without another read. True: a burst of `words` asks from *at on.
 * False: nothing more to read, or the next command waits for the consumer.
 */
bool rgu_feed_ask(rgu_feed *f, rgu_cycle *at, uint32_t *words);
void rgu_feed_grant(rgu_feed *f, rgu_reads *m, rgu_cycle at, uint32_t words);
/* The consumer has read the last word of the oldest chunk, or is done with a walk's row scales. */
void rgu_feed_pop(rgu_feed *f, rgu_cycle at);
void rgu_feed_scale_pop(rgu_feed *f, rgu_cycle at);
/* Cycle in which chunk number `c` stands at the head, its predecessor popped. False: not known. */
bool rgu_feed_tables(const rgu_feed *f, uint64_t c, rgu_cycle *at);
uint32_t rgu_feed_term_cycles(const rgu_feed *f); /* of the expander, nothing else in the way */

/* ---- a write master (rtl/common/mr_axi_wr.sv without a buffer) and the memory's write side ----
 */

typedef struct {
    const mr_rgu_unit *unit;
    rgu_cycle taken; /* cycle of the last command taken: what the next must come after */
    rgu_cycle split; /* its last burst's turn */
    rgu_cycle align; /* last step of the aligner */
    rgu_cycle step;
    rgu_cycle sent[2]; /* the last two beats */
    rgu_cycle decided; /* the memory's side: cycle before it takes the last beat */
    uint32_t credit;
    rgu_cycle answer; /* of the last burst */
    rgu_cycle answers[RGU_BURSTS];
    uint64_t bursts, beats;
    /* the command in work */
    uint32_t steps, lines, at, words[3], burst, bursts_here;
    bool skip;
    uint32_t beat;
    rgu_cycle turn[3];
} rgu_writer;

void rgu_writer_init(rgu_writer *w, const mr_rgu_unit *u);
/* A command offered from `from` on; returns the cycle in which it is taken. */
rgu_cycle rgu_writer_command(rgu_writer *w, rgu_cycle from, uint64_t addr, uint32_t bytes,
                             uint32_t offset);
/* The next line of the command, offered from `from` on; returns the cycle in which it is taken. */
rgu_cycle rgu_writer_line(rgu_writer *w, rgu_cycle from);

/* ---- the two modes: the cycle of rgu_top's Done --------------------------------------------- */

rgu_cycle rgu_tile(const mr_rgu_unit *u, const mr_rgu_descriptor *d, mr_rgu_timing *t);
rgu_cycle rgu_apply(const mr_rgu_unit *u, const mr_rgu_descriptor *d, mr_rgu_memory *memory,
                    mr_rgu_timing *t);

#endif
