/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the near-memory unit (PNM): lists of checked descriptors for up to MR_PNM_GROUPS
 * groups, and who has which scratchpad rows, bank columns and bytes of memory.
 *
 * What a descriptor means is docs/pnm-descriptors.md, the arithmetic docs/pnm-arithmetic.md.
 * Addresses are bytes from the start of the program's memory image; who runs a program adds the
 * place where the image lies (host/pnm/exec.h).
 *
 * The first call that fails leaves its message with the builder: every later call does nothing and
 * returns the same status, so a compiler may look at the last one only. One builder is used by one
 * thread at a time.
 */
#ifndef HOST_PNM_BUILDER_H
#define HOST_PNM_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>
#include <millrace/pnm_desc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_builder mr_pnm_builder;

/* Groups 0 to groups - 1 have programs; more groups than a chip has are refused. wide: weights stay
 * float32 in the image, for the golden model and the kernels in float32 (docs/pnm-arithmetic.md).
 */
mr_status mr_pnm_builder_create(unsigned groups, bool wide, mr_pnm_builder **out);
void mr_pnm_builder_destroy(mr_pnm_builder *b);

/* MR_OK, or the first failure with its message. */
mr_status mr_pnm_builder_status(mr_pnm_builder *b);

/* A failure of the caller's own, such as a shape that does not match, kept like one of these. */
mr_status mr_pnm_b_fail(mr_pnm_builder *b, mr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Who has what: `what` names the thing in a message ------------------------------------------
 */

/* Consecutive rows of a group's scratchpad. */
mr_status mr_pnm_b_rows(mr_pnm_builder *b, unsigned group, size_t rows, const char *what,
                        uint16_t *row);
/* Gives back what mr_pnm_b_rows() gave, all of it. */
mr_status mr_pnm_b_rows_free(mr_pnm_builder *b, unsigned group, uint16_t row);
size_t mr_pnm_b_rows_left(const mr_pnm_builder *b, unsigned group);

/* Consecutive columns of a group's banks from the start of a DRAM row on: in `tier` if they fit
 * there, else in the nearest tier with room, the faster of two that are as near; what is larger
 * than a tier goes on into the next. */
mr_status mr_pnm_b_columns(mr_pnm_builder *b, unsigned group, unsigned tier, size_t columns,
                           const char *what, uint16_t *col);
size_t mr_pnm_b_columns_left(const mr_pnm_builder *b, unsigned group, unsigned tier);
static inline unsigned mr_pnm_tier_of(unsigned col) {
    return col / (MR_PNM_ROW_COLUMNS * MR_PNM_TIER_ROWS);
}

/* Bytes of the memory image, a multiple of 64, zero at first. */
mr_status mr_pnm_b_memory(mr_pnm_builder *b, size_t bytes, const char *what, uint64_t *addr);
/* Where the host sees them, until the next call that makes the image larger; NULL after a failure.
 */
void *mr_pnm_b_at(mr_pnm_builder *b, uint64_t addr);

/* ---- Matrices -----------------------------------------------------------------------------------
 */

enum {
    MR_PNM_PART_COLUMNS = MR_PNM_MAX_KC, /* of one output in one MATVEC: 4,096 inputs */
    MR_PNM_MAX_PARTS = MR_PNM_COLUMNS / (MR_PNM_ROW_WORDS / MR_PNM_PES) / MR_PNM_MAX_KC
};

/* A matrix in the memory image as WLOAD takes it: the parts of at most 4,096 inputs one after the
 * other, outputs and inputs filled up with zeros to multiples of 16. */
typedef struct mr_pnm_matrix {
    uint64_t addr;
    uint32_t columns; /* of every bank */
    uint32_t outputs; /* a multiple of 16 */
    uint32_t kc;      /* columns of an output, all parts together */
    uint32_t parts;
    uint8_t wexp[MR_PNM_MAX_PARTS]; /* largest biased exponent of a part */
} mr_pnm_matrix;

/*
 * Packs w[outputs][inputs] (rows `stride` floats apart) into the image, rounded to bf16 by nearest
 * even (not where the builder is wide). A NaN, an infinity, and a value that rounds to one are
 * MR_BAD_FORMAT naming `name` and the place.
 */
mr_status mr_pnm_b_matrix(mr_pnm_builder *b, const char *name, const float *w, size_t outputs,
                          size_t inputs, size_t stride, mr_pnm_matrix *out);

/* WLOAD of the matrix to column col on. */
mr_status mr_pnm_b_wload_matrix(mr_pnm_builder *b, unsigned group, const mr_pnm_matrix *m,
                                uint16_t col);

/* ---- Descriptors --------------------------------------------------------------------------------
 *
 * Every range is checked: rows against the scratchpad, columns against the banks, addresses against
 * the image (of the last iteration too, when LOOP closes it), and rows of an operation that starts
 * with `overlap` against those of what may still run.
 */

mr_status mr_pnm_b_load(mr_pnm_builder *b, unsigned group, uint16_t row, uint16_t rows,
                        uint64_t addr, uint32_t step);
mr_status mr_pnm_b_store(mr_pnm_builder *b, unsigned group, uint16_t row, uint16_t rows,
                         uint64_t addr, uint32_t step);
mr_status mr_pnm_b_wload(mr_pnm_builder *b, unsigned group, uint16_t col, uint16_t columns,
                         uint64_t addr, uint32_t step);

/* How products are made: kind 0 split, 1 full, 2 exact (mr_pnm_kind); log_length 2 to 8, the binary
 * logarithm of the stream length (2 where the kind is exact). */
typedef struct mr_pnm_mode {
    uint8_t kind, log_length;
} mr_pnm_mode;

/* Fields as in docs/pnm-descriptors.md; x_run 0 means kc: an input vector in consecutive rows. */
typedef struct mr_pnm_matvec {
    bool overlap, bias, accum, relu, use_wreg;
    mr_pnm_mode mode;
    uint8_t wexp; /* or the register's number */
    uint16_t col, kc, outputs, vectors;
    uint16_t x, x_run;
    int16_t x_stride, x_jump;
    uint16_t y, bias_row, old;
    int16_t y_stride, old_stride;
} mr_pnm_matvec;
mr_status mr_pnm_b_matvec(mr_pnm_builder *b, unsigned group, const mr_pnm_matvec *args);

/*
 * The same for a matrix at column args->col, in as many MATVECs as its parts and the activation
 * buffer need: outputs, kc, wexp and use_wreg come from the matrix, and vectors may be any number.
 * Part p of the inputs begins MR_PNM_PART_COLUMNS * p columns after x (x_run must divide that when
 * there is more than one part). relu acts on the whole sum.
 */
mr_status mr_pnm_b_multiply(mr_pnm_builder *b, unsigned group, const mr_pnm_matrix *m,
                            const mr_pnm_matvec *args);

typedef struct mr_pnm_wstore {
    bool overlap, transposed, reset;
    uint8_t wreg;
    uint16_t col, kc, length, vectors, x, first;
    int16_t x_stride;
} mr_pnm_wstore;
mr_status mr_pnm_b_wstore(mr_pnm_builder *b, unsigned group, const mr_pnm_wstore *args);

enum { MR_PNM_FN_ID = 0, MR_PNM_FN_EXP2, MR_PNM_FN_LOG2, MR_PNM_FN_RELU };
enum { MR_PNM_NONE = 0, MR_PNM_IMM, MR_PNM_ELEM, MR_PNM_SCALAR };
enum { MR_PNM_KEEP = 0, MR_PNM_SUM, MR_PNM_MAX };
typedef struct mr_pnm_vec {
    bool overlap, neg_mul, neg_add;
    uint8_t fn, mul, add, reduce;
    uint16_t count, width;
    uint16_t d, a, b, c;
    int16_t d_stride, a_stride, b_stride, c_stride;
    float imm_m, imm_c;
} mr_pnm_vec;
mr_status mr_pnm_b_vec(mr_pnm_builder *b, unsigned group, const mr_pnm_vec *args);

/* rows may be 0: the signal alone. */
mr_status mr_pnm_b_send(mr_pnm_builder *b, unsigned group, unsigned receiver, unsigned sem,
                        uint16_t row, uint16_t rows, uint16_t to);
mr_status mr_pnm_b_wait(mr_pnm_builder *b, unsigned group, unsigned sem, uint16_t count);
mr_status mr_pnm_b_barrier(mr_pnm_builder *b, unsigned group, uint32_t groups);

/* Index of the group's next descriptor: a loop's target. */
uint32_t mr_pnm_b_here(const mr_pnm_builder *b, unsigned group);
/* The descriptors from target on run `count` times. Loops do not nest. */
mr_status mr_pnm_b_loop(mr_pnm_builder *b, unsigned group, uint32_t target, uint32_t count);

/* ---- The program
 * ---------------------------------------------------------------------------------
 */

typedef struct mr_pnm_program {
    uint8_t *image; /* inputs may be written and outputs read at their addresses */
    size_t bytes;
    size_t data_bytes; /* before the lists, which end the image */
    bool wide;
    unsigned groups;
    struct {
        uint64_t addr; /* of the group's descriptors in the image */
        uint32_t count;
    } list[MR_PNM_GROUPS];
} mr_pnm_program;

/*
 * Puts the lists into the image and gives everything to *out; the builder can only be destroyed
 * then. Waits that no signal will ever meet, barriers that not all groups come to and semaphores
 * that go too high are found here.
 */
mr_status mr_pnm_builder_finish(mr_pnm_builder *b, mr_pnm_program **out);
void mr_pnm_program_destroy(mr_pnm_program *p);

#ifdef __cplusplus
}
#endif
#endif
