/* SPDX-License-Identifier: Apache-2.0 */
/* A chip of the near-memory unit: groups that take turns with their lists. */
#include "models/golden/pnm.h"

#include <stdlib.h>

#include "models/golden/pnm_internal.h"

enum { MATRIX_SIDE, VECTOR_SIDE };
uint64_t mr_pnm_field(const uint8_t desc[MR_PNM_DESC_BYTES], unsigned lsb, unsigned bits) {
    uint64_t value = 0;
    for (unsigned i = 0, end = lsb % 8 + bits; i * 8 < end && i < 8; i++)
        value |= (uint64_t)desc[lsb / 8 + i] << (8 * i);
    value >>= lsb % 8;
    return bits == 64 ? value : value & ((1ull << bits) - 1);
}

/* ---- A chip -----------------------------------------------------------------------------------
 */

static bool get_tables(mr_pnm_chip *chip) {
    bool ok = true;
    for (unsigned kind = 0; kind < 3; kind++)
        for (unsigned log = 2; ok && log <= 8; log++)
            ok = (chip->table[kind][log] = malloc(MR_PNM_TABLE * sizeof(uint16_t))) != NULL;
    return ok;
}

const uint16_t *pnm_table(mr_pnm_chip *chip, unsigned kind, unsigned log) {
    uint16_t *to = chip->table[kind][log], t[MR_PNM_TABLE];
    if (chip->made[kind][log])
        return to;
    mr_pnm_mult_mode mode = mr_pnm_mult_default();
    mode.kind = (mr_pnm_kind)kind;
    mode.gen = kind == MR_PNM_SPLIT ? chip->gen : MR_PNM_UNARY;
    mode.cut = kind == MR_PNM_SPLIT ? chip->cut : 0;
    mode.stream = 1u << log;
    mr_pnm_mult_table(&mode, t); /* a mode there is: create() has looked */
    for (unsigned i = 0; i < MR_PNM_TABLE; i++)
        to[i % 128 * 128 + i / 128] = t[i];
    chip->made[kind][log] = true;
    return to;
}

mr_pnm_chip *mr_pnm_chip_create(mr_pnm_gen gen, unsigned cut, bool wide) {
    mr_pnm_mult_mode mode = mr_pnm_mult_default();
    mode.gen = gen;
    mode.cut = cut;
    if ((gen != MR_PNM_UNARY && gen != MR_PNM_CENTRED) || mr_pnm_mult_check(&mode))
        return NULL;
    mr_pnm_chip *chip = calloc(1, sizeof *chip);
    if (!chip)
        return NULL;
    size_t acts = (size_t)MR_PNM_ACT_COLUMNS * WORDS, weights = (size_t)MR_PNM_MAX_KC * WORDS;
    chip->wide = wide;
    chip->gen = gen;
    chip->cut = cut;
    chip->groups = calloc(MR_PNM_GROUPS, sizeof *chip->groups);
    chip->codes = malloc(acts * sizeof *chip->codes);
    chip->operands = malloc((acts + weights) * sizeof *chip->operands);
    chip->wide_x = malloc(acts * sizeof *chip->wide_x);
    bool ok = chip->groups && chip->codes && chip->operands && chip->wide_x && get_tables(chip);
    for (unsigned g = 0; ok && g < MR_PNM_GROUPS; g++) {
        pnm_group *group = &chip->groups[g];
        if (wide)
            group->wide = calloc(PES, sizeof *group->wide);
        else
            group->bank = calloc(PES, sizeof *group->bank);
        ok = group->wide || group->bank;
    }
    if (ok)
        return chip;
    mr_pnm_chip_destroy(chip);
    return NULL;
}

void mr_pnm_chip_destroy(mr_pnm_chip *chip) {
    if (!chip)
        return;
    for (unsigned g = 0; chip->groups && g < MR_PNM_GROUPS; g++) {
        free(chip->groups[g].bank);
        free(chip->groups[g].wide);
    }
    for (unsigned kind = 0; kind < 3; kind++)
        for (unsigned log = 0; log < 9; log++)
            free(chip->table[kind][log]);
    free(chip->groups);
    free(chip->codes);
    free(chip->operands);
    free(chip->wide_x);
    free(chip);
}

uint32_t *mr_pnm_chip_row(mr_pnm_chip *chip, unsigned group, unsigned row) {
    return chip->groups[group].scratch[row];
}

uint16_t *mr_pnm_chip_column(mr_pnm_chip *chip, unsigned group, unsigned pe, unsigned col) {
    return chip->groups[group].bank[pe][col];
}

uint8_t mr_pnm_chip_wreg(const mr_pnm_chip *chip, unsigned group, unsigned reg) {
    return chip->groups[group].wreg[reg];
}

/* ---- Descriptors that move data ---------------------------------------------------------------
 */

/* Host memory of `bytes` at `addr`, or NULL. */
static uint8_t *reach(const mr_pnm_memory *memory, uint64_t addr, uint64_t bytes) {
    if (addr < memory->base || addr - memory->base > memory->bytes ||
        memory->bytes - (addr - memory->base) < bytes)
        return NULL;
    return memory->data + (addr - memory->base);
}

static unsigned move(pnm_group *g, const mr_pnm_memory *memory, uint64_t addr, const uint8_t *d) {
    uint64_t rows = FIELD(d, LOAD_ROWS), bytes = rows * sizeof g->scratch[0];
    uint8_t *at = reach(memory, addr, bytes);
    uint32_t *row = g->scratch[FIELD(d, LOAD_ROW)];
    if (d[0] == MR_PNM_DESC_LOAD) {
        if (!at)
            return MR_PNM_ERR_READ;
        memcpy(row, at, bytes);
    } else {
        if (!at)
            return MR_PNM_ERR_WRITE;
        memcpy(at, row, bytes);
    }
    return MR_PNM_ERR_OK;
}

static unsigned load_weights(const mr_pnm_chip *chip, pnm_group *g, const mr_pnm_memory *memory,
                             uint64_t addr, const uint8_t *d) {
    size_t columns = FIELD(d, WLOAD_COLUMNS), col = FIELD(d, WLOAD_COL);
    size_t bytes = chip->wide ? sizeof g->wide[0][0] : sizeof g->bank[0][0];
    const uint8_t *at = reach(memory, addr, (uint64_t)columns * PES * bytes);
    if (!at)
        return MR_PNM_ERR_READ;
    for (size_t c = 0; c < columns; c++)
        for (size_t pe = 0; pe < PES; pe++, at += bytes)
            memcpy(chip->wide ? (void *)g->wide[pe][col + c] : (void *)g->bank[pe][col + c], at,
                   bytes);
    return MR_PNM_ERR_OK;
}

static void send(mr_pnm_chip *chip, const pnm_group *g, const uint8_t *d) {
    pnm_group *to = &chip->groups[FIELD(d, SEND_GROUP)];
    memmove(to->scratch[FIELD(d, SEND_TO)], g->scratch[FIELD(d, SEND_ROW)],
            FIELD(d, SEND_ROWS) * sizeof g->scratch[0]);
}

/* ---- Programs ---------------------------------------------------------------------------------
 */

static int side_of(const uint8_t *d) {
    return d[0] == MR_PNM_DESC_MATVEC || d[0] == MR_PNM_DESC_WSTORE || d[0] == MR_PNM_DESC_WLOAD
               ? MATRIX_SIDE
               : VECTOR_SIDE;
}

/* The overlap flag says that rows are disjoint from those of the other side's last descriptor. */
static void watch_overlap(mr_pnm_chip *chip, unsigned index, const uint8_t *d) {
    pnm_group *g = &chip->groups[index];
    int side = side_of(d), other = 1 - side;
    bool overlaps =
        (d[0] == MR_PNM_DESC_MATVEC || d[0] == MR_PNM_DESC_WSTORE || d[0] == MR_PNM_DESC_VEC) &&
        FIELD(d, VEC_OVERLAP);
    if (!overlaps) {
        g->flies[other] = false;
    } else if (g->flies[other] && !chip->result->hazard) {
        pnm_rows mine, its;
        pnm_rows_of(d, &mine);
        pnm_rows_of(g->in_flight[other], &its);
        if (pnm_rows_meet(&mine, &its)) {
            chip->result->hazard = true;
            chip->result->hazard_group = index;
            chip->result->hazard_index = chip->walk.group[index].pc;
        }
    }
    memcpy(g->in_flight[side], d, MR_PNM_DESC_BYTES);
    g->flies[side] = true;
}

static const uint8_t *fetch(void *context, unsigned group, uint32_t index) {
    const mr_pnm_chip *chip = context;
    return reach(chip->memory, chip->progs[group].addr + (uint64_t)index * MR_PNM_DESC_BYTES,
                 MR_PNM_DESC_BYTES);
}

static void passed(void *context, unsigned group, const uint8_t *d) {
    pnm_group *g = &((mr_pnm_chip *)context)->groups[group];
    (void)d;
    g->flies[MATRIX_SIDE] = g->flies[VECTOR_SIDE] = false;
}

static unsigned execute(void *context, unsigned group, const uint8_t *d) {
    mr_pnm_chip *chip = context;
    pnm_group *g = &chip->groups[group];
    watch_overlap(chip, group, d);
    switch (d[0]) {
    case MR_PNM_DESC_LOAD:
    case MR_PNM_DESC_STORE:
        return move(g, chip->memory, mr_pnm_walk_address(&chip->walk, group, d), d);
    case MR_PNM_DESC_WLOAD:
        return load_weights(chip, g, chip->memory, mr_pnm_walk_address(&chip->walk, group, d), d);
    case MR_PNM_DESC_MATVEC:
        pnm_matvec(chip, g, d);
        break;
    case MR_PNM_DESC_WSTORE:
        pnm_wstore(chip, g, d);
        break;
    case MR_PNM_DESC_VEC:
        pnm_vec(chip, g, d);
        break;
    default:
        send(chip, g, d);
    }
    return MR_PNM_ERR_OK;
}

mr_pnm_outcome mr_pnm_chip_run(mr_pnm_chip *chip, const mr_pnm_memory *memory,
                               const mr_pnm_prog progs[MR_PNM_GROUPS], mr_pnm_result *result) {
    uint32_t counts[MR_PNM_GROUPS];
    for (unsigned i = 0; i < MR_PNM_GROUPS; i++) {
        counts[i] = progs[i].count;
        chip->groups[i].flies[MATRIX_SIDE] = chip->groups[i].flies[VECTOR_SIDE] = false;
    }
    chip->result = result;
    chip->memory = memory;
    chip->progs = progs;
    chip->walk.context = chip;
    chip->walk.fetch = fetch;
    chip->walk.execute = execute;
    chip->walk.passed = passed;
    return mr_pnm_walk_run(&chip->walk, counts, result);
}
