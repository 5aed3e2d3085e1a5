/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a builder, and who has which rows, columns and bytes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/pnm/internal.h"

mr_status mr_pnm_builder_create(unsigned groups, bool wide, mr_pnm_builder **out) {
    if (groups < 1 || groups > MR_PNM_GROUPS)
        return mr_fail(MR_INVALID_ARGUMENT, "pnm: a partition into %u groups; a chip has 1 to %d",
                       groups, MR_PNM_GROUPS);
    mr_pnm_builder *b = calloc(1, sizeof *b);
    bool ok = b != NULL;
    for (unsigned g = 0; ok && g < groups; g++)
        ok = (b->list[g].block = calloc(MR_PNM_SCRATCH_ROWS, sizeof *b->list[g].block)) != NULL;
    if (!ok) {
        mr_pnm_builder_destroy(b);
        return mr_fail(MR_OUT_OF_MEMORY, "pnm: no memory for a program");
    }
    b->groups = groups;
    b->wide = wide;
    *out = b;
    return MR_OK;
}

void mr_pnm_builder_destroy(mr_pnm_builder *b) {
    if (!b)
        return;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        free(b->list[g].desc);
        free(b->list[g].block);
    }
    free(b->image);
    free(b);
}

mr_status mr_pnm_builder_status(mr_pnm_builder *b) {
    return b->status == MR_OK ? MR_OK : mr_fail(b->status, "%s", b->message);
}

mr_status mr_pnm_b_fail(mr_pnm_builder *b, mr_status status, const char *format, ...) {
    if (b->status == MR_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(b->message, sizeof b->message, format, args);
        va_end(args);
        b->status = status;
    }
    return mr_pnm_builder_status(b);
}

bool pnm_ready(mr_pnm_builder *b, unsigned group) {
    if (b->status == MR_OK && b->finished)
        mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: the program is finished");
    if (b->status == MR_OK && group >= b->groups)
        mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: group %u; the program has groups 0 to %u",
                      group, b->groups - 1);
    return b->status == MR_OK;
}

static bool has(const uint64_t *set, size_t i) { return set[i / 64] >> (i % 64) & 1; }
static void put(uint64_t *set, size_t i, bool in) {
    uint64_t bit = 1ull << (i % 64);
    set[i / 64] = in ? set[i / 64] | bit : set[i / 64] & ~bit;
}

/* ---- Scratchpad rows --------------------------------------------------------------------------
 */

bool pnm_owns_rows(const pnm_list *list, size_t first, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        if (!has(list->owned.bits, first + i))
            return false;
    return true;
}

size_t mr_pnm_b_rows_left(const mr_pnm_builder *b, unsigned group) {
    size_t left = 0;
    for (size_t i = 0; group < b->groups && i < MR_PNM_SCRATCH_ROWS; i++)
        left += !has(b->list[group].owned.bits, i);
    return left;
}

mr_status mr_pnm_b_rows(mr_pnm_builder *b, unsigned group, size_t rows, const char *what,
                        uint16_t *row) {
    *row = 0;
    if (!pnm_ready(b, group))
        return mr_pnm_builder_status(b);
    pnm_list *list = &b->list[group];
    size_t run = 0;
    for (size_t i = 0; rows && i < MR_PNM_SCRATCH_ROWS; i++) {
        run = has(list->owned.bits, i) ? 0 : run + 1;
        if (run < rows)
            continue;
        *row = (uint16_t)(i + 1 - rows);
        list->block[*row] = (uint16_t)rows;
        for (size_t j = *row; j <= i; j++)
            put(list->owned.bits, j, true);
        return MR_OK;
    }
    return mr_pnm_b_fail(b, MR_LIMIT,
                         "pnm: %s: %zu scratchpad rows of group %u; %zu are free, not all of them "
                         "in one piece",
                         what, rows, group, mr_pnm_b_rows_left(b, group));
}

mr_status mr_pnm_b_rows_free(mr_pnm_builder *b, unsigned group, uint16_t row) {
    if (!pnm_ready(b, group))
        return mr_pnm_builder_status(b);
    pnm_list *list = &b->list[group];
    size_t rows = row < MR_PNM_SCRATCH_ROWS ? list->block[row] : 0;
    if (!rows)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                             "pnm: no rows of group %u that start at row %u were given out", group,
                             row);
    list->block[row] = 0;
    for (size_t i = 0; i < rows; i++)
        put(list->owned.bits, row + i, false);
    return MR_OK;
}

/* ---- Bank columns -----------------------------------------------------------------------------
 */

enum { DRAM_ROWS = MR_PNM_TIERS * MR_PNM_TIER_ROWS };

bool pnm_owns_columns(const pnm_list *list, size_t first, size_t columns) {
    for (size_t row = first / MR_PNM_ROW_COLUMNS; row * MR_PNM_ROW_COLUMNS < first + columns; row++)
        if (!has(list->columns, row))
            return false;
    return true;
}

size_t mr_pnm_b_columns_left(const mr_pnm_builder *b, unsigned group, unsigned tier) {
    size_t left = 0;
    for (size_t i = 0; group < b->groups && tier < MR_PNM_TIERS && i < MR_PNM_TIER_ROWS; i++)
        left += !has(b->list[group].columns, tier * MR_PNM_TIER_ROWS + i);
    return left * MR_PNM_ROW_COLUMNS;
}

/* The first free run of DRAM rows that begins in the tier and, unless it has to be longer, ends
 * there; DRAM_ROWS when there is none. */
static size_t find_in_tier(const pnm_list *list, size_t tier, size_t rows) {
    size_t begin = tier * MR_PNM_TIER_ROWS, run = 0;
    size_t end = rows > MR_PNM_TIER_ROWS ? DRAM_ROWS : begin + MR_PNM_TIER_ROWS;
    for (size_t i = begin; i < end; i++) {
        run = has(list->columns, i) ? 0 : run + 1;
        if (run == rows)
            return i + 1 - rows < begin + MR_PNM_TIER_ROWS ? i + 1 - rows : DRAM_ROWS;
    }
    return DRAM_ROWS;
}

mr_status mr_pnm_b_columns(mr_pnm_builder *b, unsigned group, unsigned tier, size_t columns,
                           const char *what, uint16_t *col) {
    *col = 0;
    if (!pnm_ready(b, group))
        return mr_pnm_builder_status(b);
    if (tier >= MR_PNM_TIERS)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: %s: tier %u; a bank has tiers 0 to %d",
                             what, tier, MR_PNM_TIERS - 1);
    pnm_list *list = &b->list[group];
    size_t rows = (columns + MR_PNM_ROW_COLUMNS - 1) / MR_PNM_ROW_COLUMNS;
    for (unsigned i = 0; rows && rows <= DRAM_ROWS && i < 2 * MR_PNM_TIERS; i++) {
        unsigned away = (i + 1) / 2; /* 0, 1 down, 1 up, 2 down, ... */
        if (i % 2 ? away > tier : tier + away >= MR_PNM_TIERS)
            continue;
        size_t at = find_in_tier(list, i % 2 ? tier - away : tier + away, rows);
        if (at == DRAM_ROWS)
            continue;
        for (size_t j = 0; j < rows; j++)
            put(list->columns, at + j, true);
        *col = (uint16_t)(at * MR_PNM_ROW_COLUMNS);
        return MR_OK;
    }
    return mr_pnm_b_fail(b, MR_LIMIT,
                         "pnm: %s: %zu columns do not fit into the banks of group %u (%d in all)",
                         what, columns, group, MR_PNM_COLUMNS);
}

/* ---- The memory image -------------------------------------------------------------------------
 */

mr_status mr_pnm_b_memory(mr_pnm_builder *b, size_t bytes, const char *what, uint64_t *addr) {
    *addr = 0;
    if (!pnm_ready(b, 0))
        return mr_pnm_builder_status(b);
    if (!bytes || bytes > SIZE_MAX / 4 - b->bytes)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: %s: %zu bytes of memory", what, bytes);
    size_t end = b->bytes + (bytes + 63) / 64 * 64;
    if (end > b->room) {
        size_t room = end > 2 * b->room ? end : 2 * b->room;
        uint8_t *larger = realloc(b->image, room);
        if (!larger)
            return mr_pnm_b_fail(b, MR_OUT_OF_MEMORY, "pnm: %s: no memory for %zu bytes", what,
                                 bytes);
        b->image = larger;
        b->room = room;
    }
    memset(b->image + b->bytes, 0, end - b->bytes);
    *addr = b->bytes;
    b->bytes = end;
    return MR_OK;
}

void *mr_pnm_b_at(mr_pnm_builder *b, uint64_t addr) {
    return b->status == MR_OK && addr < b->bytes ? b->image + addr : NULL;
}

/* ---- The program ------------------------------------------------------------------------------
 */

mr_status mr_pnm_builder_finish(mr_pnm_builder *b, mr_pnm_program **out) {
    *out = NULL;
    mr_status status = pnm_ready(b, 0) ? pnm_check_signals(b) : mr_pnm_builder_status(b);
    uint64_t addr[MR_PNM_GROUPS] = {0};
    size_t data_bytes = b->bytes;
    for (unsigned g = 0; status == MR_OK && g < b->groups; g++) {
        size_t bytes = (size_t)b->list[g].count * MR_PNM_DESC_BYTES;
        if (!bytes)
            continue;
        status = mr_pnm_b_memory(b, bytes, "descriptors", &addr[g]);
        if (status == MR_OK)
            memcpy(b->image + addr[g], b->list[g].desc, bytes);
    }
    if (status != MR_OK)
        return status;
    if (b->bytes == data_bytes)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: the program is empty");
    mr_pnm_program *p = calloc(1, sizeof *p);
    if (!p)
        return mr_pnm_b_fail(b, MR_OUT_OF_MEMORY, "pnm: no memory for a program");
    p->image = b->image;
    p->bytes = b->bytes;
    p->data_bytes = data_bytes;
    p->wide = b->wide;
    p->groups = b->groups;
    for (unsigned g = 0; g < b->groups; g++) {
        p->list[g].addr = addr[g];
        p->list[g].count = b->list[g].count;
    }
    b->image = NULL;
    b->finished = true;
    *out = p;
    return MR_OK;
}

void mr_pnm_program_destroy(mr_pnm_program *p) {
    if (!p)
        return;
    free(p->image);
    free(p);
}
