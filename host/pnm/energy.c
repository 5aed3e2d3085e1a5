/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pnm/energy.h"

#include <string.h>

#include "host/pnm/energy_table.h"
#include "host/pnm/internal.h"

enum {
    WORDS = MR_PNM_ROW_WORDS,
    ROW_BYTES = 4 * WORDS,
    COLUMN_BITS = 8 * MR_PNM_COLUMN_BYTES * MR_PNM_PES, /* of an all-bank command */
    DRAM_ROW_BITS = COLUMN_BITS * MR_PNM_ROW_COLUMNS
};

/* DRAM rows that consecutive columns lie in. */
static uint64_t dram_rows(uint64_t first, uint64_t columns) {
    return (first + columns - 1) / MR_PNM_ROW_COLUMNS - first / MR_PNM_ROW_COLUMNS + 1;
}

/* ---- A descriptor, `times` times --------------------------------------------------------------
 */

static void count_matvec(const uint8_t *d, uint64_t times, mr_pnm_tally *t) {
    uint64_t kc = PNM_GET(d, MATVEC_KC), outputs = PNM_GET(d, MATVEC_OUTPUTS);
    uint64_t n = PNM_GET(d, MATVEC_VECTORS), columns = outputs / MR_PNM_PES * kc;
    uint64_t products = outputs * kc * WORDS * n * times;
    if (PNM_GET(d, MATVEC_MODE) == 2) {
        t->exact_products += products;
    } else {
        t->hybrid_products += products;
        t->stream_bits += products << PNM_GET(d, MATVEC_LOG_LENGTH);
    }
    uint64_t results = n * outputs / WORDS;
    uint64_t rows = n * kc + results + (PNM_GET(d, MATVEC_ACCUM) ? results : 0) +
                    (PNM_GET(d, MATVEC_BIAS) ? outputs / WORDS : 0);
    t->scratch_rows += rows * times;
    t->dram_rd += columns * times; /* a row is copied once for all vectors */
    t->dram_act += dram_rows(PNM_GET(d, MATVEC_COL), columns) * times;
}

static void count_wstore(const uint8_t *d, uint64_t times, mr_pnm_tally *t) {
    uint64_t n = PNM_GET(d, WSTORE_VECTORS), rows = PNM_GET(d, WSTORE_LENGTH) / WORDS;
    bool transposed = PNM_GET(d, WSTORE_TRANSPOSED);
    t->scratch_rows += n * rows * times;
    /* a row of 16 elements is a column of one bank, or an element in each of 4 columns of the 4 */
    t->dram_wr += n * rows * (transposed ? WORDS / MR_PNM_PES : 1) * times;
    t->dram_act += dram_rows(PNM_GET(d, WSTORE_COL), n * rows) * times;
}

static void count_vec(const uint8_t *d, uint64_t times, mr_pnm_tally *t) {
    uint64_t rows = PNM_GET(d, VEC_COUNT) * PNM_GET(d, VEC_WIDTH);
    uint64_t operands = 1 + (PNM_GET(d, VEC_MUL) == MR_PNM_ELEM) +
                        (PNM_GET(d, VEC_ADD) == MR_PNM_ELEM) +
                        (PNM_GET(d, VEC_REDUCE) == MR_PNM_KEEP);
    t->vector_elements += rows * WORDS * times;
    t->scratch_rows += rows * operands * times;
}

static void count(const mr_pnm_program *p, const uint8_t *d, uint64_t times, mr_pnm_tally *t) {
    uint64_t rows = PNM_GET(d, LOAD_ROWS); /* and columns of WLOAD */
    t->link_bytes += MR_PNM_DESC_BYTES * times;
    switch (d[0]) {
    case MR_PNM_DESC_LOAD:
    case MR_PNM_DESC_STORE:
        t->link_bytes += rows * ROW_BYTES * times;
        t->scratch_rows += rows * times;
        break;
    case MR_PNM_DESC_WLOAD:
        t->link_bytes += rows * (COLUMN_BITS / 8) * (p->wide ? 2 : 1) * times;
        t->dram_wr += rows * times;
        t->dram_act += dram_rows(PNM_GET(d, WLOAD_COL), rows) * times;
        break;
    case MR_PNM_DESC_MATVEC:
        count_matvec(d, times, t);
        break;
    case MR_PNM_DESC_WSTORE:
        count_wstore(d, times, t);
        break;
    case MR_PNM_DESC_VEC:
        count_vec(d, times, t);
        break;
    case MR_PNM_DESC_SEND:
        t->scratch_rows += 2 * PNM_GET(d, SEND_ROWS) * times;
        break;
    default:
        break;
    }
}

void mr_pnm_program_tally(const mr_pnm_program *p, mr_pnm_tally *out) {
    memset(out, 0, sizeof *out);
    for (unsigned g = 0; g < p->groups; g++) {
        const uint8_t *list = p->image + p->list[g].addr;
        uint32_t counted = 0; /* loops do not nest: what lies before one runs once */
        for (uint32_t i = 0; i < p->list[g].count; i++) {
            const uint8_t *d = list + (size_t)i * MR_PNM_DESC_BYTES;
            if (d[0] != MR_PNM_DESC_LOOP)
                continue;
            uint64_t target = PNM_GET(d, LOOP_TARGET), times = PNM_GET(d, LOOP_COUNT);
            for (; counted <= i; counted++)
                count(p, list + (size_t)counted * MR_PNM_DESC_BYTES, counted < target ? 1 : times,
                      out);
        }
        for (; counted < p->list[g].count; counted++)
            count(p, list + (size_t)counted * MR_PNM_DESC_BYTES, 1, out);
    }
}

/* ---- Energy -----------------------------------------------------------------------------------
 */

#define ENUM_OF(name, pj) E_##name,
#define ROW_OF(name, pj) {#name, pj},
enum { MR_PNM_ENERGY(ENUM_OF) COEFFICIENTS };
static const struct {
    const char *name;
    double pj;
} table[COEFFICIENTS] = {MR_PNM_ENERGY(ROW_OF)};

const char *mr_pnm_energy_coefficient(size_t i, double *pj) {
    if (i >= COEFFICIENTS)
        return NULL;
    *pj = table[i].pj;
    return table[i].name;
}

static double joules(int which, double count) { return table[which].pj * count * 1e-12; }

void mr_pnm_energy_of(const mr_pnm_tally *t, const mr_pnm_counters *c, mr_pnm_energy *out) {
    uint64_t act = t->dram_act, moved = t->dram_rd + t->dram_wr;
    if (c && c->hardware) {
        act = moved = 0;
        for (int g = 0; g < MR_PNM_GROUPS; g++) {
            act += c->group[g].dram_act + c->group[g].dram_ref;
            moved += c->group[g].dram_rd + c->group[g].dram_wr;
        }
    }
    memset(out, 0, sizeof *out);
    out->dram = joules(E_dram_bit, (double)moved * COLUMN_BITS) +
                joules(E_dram_row_bit, (double)act * DRAM_ROW_BITS);
    /* a column and a vector: an activation for all elements, a weight for each lane */
    double meetings = (double)(t->exact_products + t->hybrid_products) / (MR_PNM_PES * WORDS);
    out->operands = joules(E_activation_bit, meetings * WORDS * 16) +
                    joules(E_register_bit, (meetings + (double)t->dram_rd) * COLUMN_BITS);
    out->multiply = joules(E_multiply_exact, (double)t->exact_products) +
                    joules(E_multiply_split, (double)t->hybrid_products) +
                    joules(E_stream_bit, (double)t->stream_bits);
    out->accumulate = joules(E_accumulate, (double)(t->exact_products + t->hybrid_products));
    out->vector = joules(E_vector_element, (double)t->vector_elements);
    out->scratch = joules(E_scratch_bit, (double)t->scratch_rows * ROW_BYTES * 8);
    out->link = joules(E_link_bit, (double)t->link_bytes * 8);
    out->total = out->dram + out->operands + out->multiply + out->accumulate + out->vector +
                 out->scratch + out->link;
}
