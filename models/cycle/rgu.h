/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the rotor generation unit does what: the cycles of a job from start to done, as its CYCLES
 * register counts them (docs/rgu.md). Time only, no data. A job is what the host submits: a tile
 * written to memory or an apply, any format, window, stride and alignment. No random stalls; a
 * job's stream output is not modelled.
 *
 * The model follows the stages' own recurrences (when the next angle, word, row step, line or burst
 * can move) instead of stepping through cycles. Every constant is a build parameter of the RTL or
 * read from it and stands in models/cycle/rgu/unit.json with its source; nothing is fitted.
 * tests/unit/rgu_time holds it to the RTL.
 */
#ifndef MODELS_CYCLE_RGU_H
#define MODELS_CYCLE_RGU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lengths are cycles, depths are entries. */
typedef struct {
    char name[32];
    uint32_t lanes;              /* products of the generator a cycle: 32, the shape of its lines */
    uint32_t expand_lanes;       /* butterflies of the expander a cycle; a power of two, 4..16 */
    uint32_t table_address_bits; /* of the table words of a side, a word being one of all lanes */
    uint32_t angle_interval;     /* between two angles */
    uint32_t angle_latency;      /* from an angle to its sine and cosine */
    uint32_t angle_queue;        /* sines and cosines that wait for the expander */
    uint32_t expand_latency;     /* from a word of a pass to the next pass of that side */
    uint32_t table_latency;      /* from a term's last word to whole tables */
    uint32_t product_latency;    /* from a table read to the sum's slot */
    uint32_t transform_slots;    /* words that must follow a word to push it out */
    uint32_t line_queue;         /* output lines that wait for the port */
    uint32_t command_queue;      /* row segments that wait for the port */
    uint32_t write_burst;        /* words */
    uint32_t write_outstanding;  /* bursts without their answer */
    uint32_t read_burst;         /* words */
    uint32_t read_outstanding;   /* bursts of each of the two readers */
    uint32_t read_buffer;        /* words of each reader */
    uint32_t port_bytes;         /* the memory moves in a cycle, each way, 1..64 */
    uint32_t read_latency;       /* from an address to its first data, at least 1 */
    uint32_t write_latency;      /* from the last data to the answer, at least 1 */
} mr_rgu_unit;

/* Reads models/cycle/rgu/NAME.json. False: `error` names the file and the key. */
bool mr_rgu_unit_load(const char *file, mr_rgu_unit *out, char *error, size_t size);

/* Enough of a parameter to print or to set it: its name, where it lies, its limits. */
typedef struct {
    const char *name;
    size_t at; /* of a uint32_t in mr_rgu_unit */
    uint32_t least, most;
} mr_rgu_parameter;
const mr_rgu_parameter *mr_rgu_parameters(void); /* ends with a name of NULL */

/* A job, as its registers say it (docs/rgu-registers.md). Addresses count modulo 4096. */
typedef struct {
    bool apply, row_scale;
    bool has_odd, has_even;
    uint32_t n, terms; /* 8 or 10; 1..32 */
    uint32_t d_in, d_out;
    uint64_t seeds, scales, src, dst;
    uint32_t dst_stride;
    /* tile */
    uint32_t row0, row1, col0, col1;
    uint32_t item; /* bytes of an element: 1, 2, 4 */
    /* apply */
    uint32_t batch, src_stride;
    /*
     * Tile with both parities: how many terms of chunk [row][column] of the whole matrix are odd,
     * or NULL: terms / 2 of each.
     */
    const uint8_t *odd;
} mr_rgu_descriptor;

/* What a unit keeps from one job to the next; all 0 after a reset. */
typedef struct {
    uint32_t phase;       /* of the apply mode's two products */
    uint32_t next_reader; /* the arbiter's turn */
} mr_rgu_memory;

typedef enum {
    MR_RGU_BY_START,    /* the first tables, the last line: too short for anything else */
    MR_RGU_BY_EXPANDER, /* angles to tables */
    MR_RGU_BY_PRODUCTS, /* multipliers of the generator or of the apply mode */
    MR_RGU_BY_ROWS,     /* the walk over the rows of a block, wanted or not */
    MR_RGU_BY_PORT      /* beats written */
} mr_rgu_bottleneck;
const char *mr_rgu_bottleneck_name(mr_rgu_bottleneck b);

typedef struct {
    uint64_t cycles;     /* the CYCLES register */
    uint64_t items_in;   /* ITEMS_IN */
    uint64_t items_out;  /* ITEMS_OUT */
    uint64_t mults_busy; /* MULTS_BUSY */
    /* cycles in which each resource works; the longest names the bottleneck */
    uint64_t expander, products, rows, beats_out, beats_in;
    uint64_t first_tables; /* cycle in which the first chunk's tables are whole, from the start */
    mr_rgu_bottleneck bottleneck;
} mr_rgu_timing;

/*
 * Times one job. memory: NULL for a unit fresh from reset, else read and updated. False: `error`
 * says which field is impossible (the rules of host/core/rgu.c).
 */
bool mr_rgu_time(const mr_rgu_unit *unit, const mr_rgu_descriptor *d, mr_rgu_memory *memory,
                 mr_rgu_timing *out, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
