/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the program builder share. */
#ifndef HOST_PNM_INTERNAL_H
#define HOST_PNM_INTERNAL_H

#include "host/core/error.h"
#include "host/pnm/builder.h"

enum { PNM_MATRIX_SIDE, PNM_VECTOR_SIDE, PNM_TIER_COLUMNS = MR_PNM_ROW_COLUMNS * MR_PNM_TIER_ROWS };

/* A set of scratchpad rows. */
typedef struct pnm_row_set {
    uint64_t bits[MR_PNM_SCRATCH_ROWS / 64];
} pnm_row_set;

typedef struct pnm_touched {
    pnm_row_set read, write;
} pnm_touched;

typedef struct pnm_list {
    uint8_t (*desc)[MR_PNM_DESC_BYTES];
    uint32_t count, room;
    uint32_t loop_floor; /* a loop's body starts here at the earliest: loops do not nest */
    pnm_row_set owned;
    uint16_t *block; /* rows of the block that starts at a row, 0: none does */
    uint64_t columns[MR_PNM_COLUMNS / MR_PNM_ROW_COLUMNS / 64]; /* DRAM rows in use */
    pnm_touched in_flight[2]; /* of the last descriptor of each side */
    bool flies[2];
} pnm_list;

struct mr_pnm_builder {
    unsigned groups;
    bool wide, finished;
    mr_status status;
    char message[512];
    uint8_t *image;
    size_t bytes, room;
    pnm_list list[MR_PNM_GROUPS];
};

/* False after a failure, and for a group that has no program (which is one). */
bool pnm_ready(mr_pnm_builder *b, unsigned group);
bool pnm_owns_rows(const pnm_list *list, size_t first, size_t rows);
bool pnm_owns_columns(const pnm_list *list, size_t first, size_t columns);
/* Bytes of a WLOAD column in the image. */
static inline size_t pnm_column_bytes(const mr_pnm_builder *b) {
    return (size_t)MR_PNM_PES * MR_PNM_ROW_WORDS * (b->wide ? 4 : 2);
}

const char *pnm_desc_name(unsigned type);
uint64_t pnm_get(const uint8_t *desc, unsigned lsb, unsigned bits);
void pnm_set(uint8_t *desc, unsigned lsb, unsigned bits, uint64_t value);
#define PNM_GET(desc, name) pnm_get(desc, MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS)
#define PNM_SET(desc, name, value)                                                                 \
    pnm_set(desc, MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS, (uint64_t)(value))

/* Waits, barriers and signals of all lists, played through. */
mr_status pnm_check_signals(mr_pnm_builder *b);

#endif
