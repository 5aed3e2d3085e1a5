/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the near-memory unit's golden model share. */
#ifndef MODELS_GOLDEN_PNM_INTERNAL_H
#define MODELS_GOLDEN_PNM_INTERNAL_H

#include <string.h>

#include "models/golden/pnm.h"
#include "models/golden/pnm_walk.h"

enum { WORDS = MR_PNM_ROW_WORDS, PES = MR_PNM_PES };

/* An operand as a sum sees it. */
typedef struct pnm_operand {
    uint32_t index; /* its fraction, as a part of the table's index */
    uint32_t shift; /* binary orders below the largest; far beyond all for zeros */
    int64_t sign;   /* 0 or -1 */
} pnm_operand;

typedef struct pnm_group {
    uint32_t scratch[MR_PNM_SCRATCH_ROWS][WORDS];
    /* one of the two, by the chip's width */
    uint16_t (*bank)[MR_PNM_COLUMNS][MR_PNM_ROW_WORDS];
    float (*wide)[MR_PNM_COLUMNS][MR_PNM_ROW_WORDS];
    uint8_t wreg[MR_PNM_WREGS];
    uint8_t in_flight[2][MR_PNM_DESC_BYTES]; /* last descriptor of the matrix and vector side */
    bool flies[2];
} pnm_group;

struct mr_pnm_chip {
    pnm_group *groups;
    bool wide;
    /* significand products by mode and log2 of the stream length, the activation's fraction first;
     * made when they are first used */
    uint16_t *table[3][9];
    bool made[3][9];
    mr_pnm_gen gen;
    unsigned cut;
    /* the job that runs */
    mr_pnm_walk walk;
    mr_pnm_result *result;
    const mr_pnm_memory *memory;
    const mr_pnm_prog *progs;
    /* activations of one MATVEC: as stored, as the sum sees them (one output's weights behind), as
     * a wide chip has them */
    uint16_t *codes;
    pnm_operand *operands;
    float *wide_x;
};

#define FIELD(desc, name) mr_pnm_field(desc, MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS)
#define SIGNED_FIELD(desc, name) ((int16_t)FIELD(desc, name))

const uint16_t *pnm_table(mr_pnm_chip *chip, unsigned kind, unsigned log);

/* Each runs one descriptor whose fields have been checked. */
void pnm_matvec(mr_pnm_chip *chip, pnm_group *group, const uint8_t *desc);
void pnm_wstore(mr_pnm_chip *chip, pnm_group *group, const uint8_t *desc);
void pnm_vec(mr_pnm_chip *chip, pnm_group *group, const uint8_t *desc);

/* Whether all fields are in their range and no row or column lies beyond the end. */
bool pnm_fields_ok(const uint8_t *desc);

/* Rows of the scratchpad a descriptor reads and writes, a bit each. */
typedef struct pnm_rows {
    uint64_t read[MR_PNM_SCRATCH_ROWS / 64], write[MR_PNM_SCRATCH_ROWS / 64];
} pnm_rows;
void pnm_rows_of(const uint8_t *desc, pnm_rows *rows);
bool pnm_rows_meet(const pnm_rows *a, const pnm_rows *b);

/* The row of place i, `stride` apart from `first`; checked before to lie in the scratchpad. */
static inline size_t pnm_place(uint64_t first, size_t i, int64_t stride) {
    return (size_t)((int64_t)first + (int64_t)i * stride);
}

static inline float pnm_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* One NaN comes out of every operation. */
static inline uint32_t pnm_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
}

static inline bool pnm_finite(uint32_t bits) { return (bits & 0x7F800000u) != 0x7F800000u; }

#endif
