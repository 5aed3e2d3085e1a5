/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/pnm_sides.h"

#include <millrace/pnm_desc.h>

uint64_t pnm_field(const uint8_t *desc, unsigned lsb, unsigned bits) {
    uint64_t v = 0;
    for (unsigned i = 0; i < bits; i++)
        v |= (uint64_t)(desc[(lsb + i) / 8] >> (lsb + i) % 8 & 1) << i;
    return v;
}

uint64_t pnm_columns(const mr_pnm_machine *m, uint64_t col) {
    uint64_t weights = (uint64_t)MR_PNM_PES * MR_PNM_ROW_WORDS, own = m->elements * m->lanes;
    return (col * weights + own - 1) / own;
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t over(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static uint64_t ask(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t t, bool write,
                    uint64_t column, bool last) {
    uint32_t banks = m->elements >= 32 ? UINT32_MAX : (1u << m->elements) - 1;
    return mr_dram_request(dram, group, t, write, banks, (uint32_t)(column / m->dram.columns),
                           (uint32_t)(column % m->dram.columns), last);
}

/* ---- MATVEC -----------------------------------------------------------------------------------
 */

enum {
    OUTS = 16,    /* outputs asked for that the epilogue has not taken */
    WRITTEN = 10, /* from there to the scratchpad */
};

/* Sums to results: rows of biases and old values are read when they change. */
typedef struct {
    bool bias, accum;
    uint64_t bias_tag[4], old_tag, go[OUTS], count; /* tags plus 1 */
} epilogue;

static void give(epilogue *e, uint64_t arrival, uint64_t row, uint64_t vector) {
    uint64_t at = arrival + 1;
    if (e->count)
        at = most(at, e->go[(e->count - 1) % OUTS] + 1);
    if (e->bias && e->bias_tag[row % 4] != row + 1) {
        e->bias_tag[row % 4] = row + 1;
        at += 2;
    }
    uint64_t tag = row * MR_PNM_MAX_VECTORS + vector + 1;
    if (e->accum && e->old_tag != tag) {
        e->old_tag = tag;
        at += 2;
    }
    e->go[e->count++ % OUTS] = at;
}

typedef struct {
    const mr_pnm_machine *m;
    mr_dram *dram;
    size_t group;
    uint64_t next, slices, to_sum; /* cycle of the next column; from a column to its sum */
    uint64_t kc, elements;
    epilogue e;
    pnm_matrix_run run;
} matvec;

/* A column meets a vector. */
static void meet(matvec *v, uint64_t column, uint64_t place, uint64_t vector, bool read,
                 bool last) {
    uint64_t t = v->next, output = place / v->kc;
    bool tail = place % v->kc + 1 == v->kc;
    if (tail && v->e.count >= OUTS)
        t = most(t, v->e.go[v->e.count % OUTS] + 1);
    if (read)
        t = ask(v->m, v->dram, v->group, t, false, column, last);
    v->next = t + v->slices;
    v->run.streamed += v->slices;
    if (tail)
        give(&v->e, t + v->to_sum, output * v->elements / MR_PNM_ROW_WORDS, vector);
}

pnm_matrix_run pnm_time_matvec(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t start,
                               const uint8_t *d) {
    uint64_t kc16 = PNM_FIELD(d, MATVEC_KC), n = PNM_FIELD(d, MATVEC_VECTORS);
    uint64_t bits = 1u << PNM_FIELD(d, MATVEC_LOG_LENGTH);
    matvec v = {.m = m, .dram = dram, .group = group, .elements = m->elements};
    v.kc = over(kc16 * MR_PNM_ROW_WORDS, m->lanes);
    v.slices = PNM_FIELD(d, MATVEC_MODE) == 2 ? 1 : over(bits, m->stream_bits);
    v.to_sum = mr_dram_in_cycles(&m->dram).cl + v.slices + 7;
    v.e.bias = PNM_FIELD(d, MATVEC_BIAS);
    v.e.accum = PNM_FIELD(d, MATVEC_ACCUM);
    uint64_t load = over(n * kc16, m->load_rows);
    v.run.reads = (pnm_window){start + 1, start + 1 + load};
    v.next = start + load + 3;
    uint64_t first = pnm_columns(m, PNM_FIELD(d, MATVEC_COL));
    uint64_t count = over(PNM_FIELD(d, MATVEC_OUTPUTS), m->elements) * v.kc, row = m->dram.columns;
    for (uint64_t at = 0, end; at < count; at = end) {
        end = at + row - (first + at) % row;
        end = end < count ? end : count;
        if (m->reuse_columns) {
            for (uint64_t c = at; c < end; c++)
                for (uint64_t i = 0; i < n; i++)
                    meet(&v, first + c, c, i, i == 0, c + 1 == end);
        } else {
            for (uint64_t i = 0; i < n; i++)
                for (uint64_t c = at; c < end; c++)
                    meet(&v, first + c, c, i, true, c + 1 == end && i + 1 == n);
        }
    }
    v.run.end = v.e.go[(v.e.count - 1) % OUTS] + WRITTEN;
    return v.run;
}

/* ---- WSTORE -----------------------------------------------------------------------------------
 */

uint64_t pnm_time_wstore(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t start,
                         const uint8_t *d) {
    uint64_t kc = over(PNM_FIELD(d, WSTORE_KC) * MR_PNM_ROW_WORDS, m->lanes);
    uint64_t col = pnm_columns(m, PNM_FIELD(d, WSTORE_COL)), first = PNM_FIELD(d, WSTORE_FIRST);
    uint64_t rows = PNM_FIELD(d, WSTORE_LENGTH) / MR_PNM_ROW_WORDS;
    bool transposed = PNM_FIELD(d, WSTORE_TRANSPOSED);
    uint64_t quarters = transposed ? over(MR_PNM_ROW_WORDS, m->elements) : 1, end = start;
    for (uint64_t i = 0; i < PNM_FIELD(d, WSTORE_VECTORS); i++)
        for (uint64_t j = 0; j < rows; j++) {
            uint64_t t = end + 3; /* the row is read, and there */
            for (uint64_t q = 0; q < quarters; q++) {
                uint64_t at =
                    transposed ? (first + i) / m->lanes + (j * quarters + q) * kc
                               : (first + i) / m->elements * kc + j * MR_PNM_ROW_WORDS / m->lanes;
                end = ask(m, dram, group, t, true, col + at, false);
                t = end + 1;
            }
        }
    return end;
}

/* ---- VEC --------------------------------------------------------------------------------------
 */

enum {
    LOADED = 7,    /* from the cycle in which a row is in hand to its first value */
    BY_TABLE = 6,  /* more, through a table */
    FOLD = 18,     /* from a vector's last value to its reduction; and between two */
    FOLD_ROWS = 3, /* more, where rows were added before */
};

uint64_t pnm_time_vec(const mr_pnm_machine *m, uint64_t start, const uint8_t *d,
                      const pnm_window *window, size_t windows) {
    uint64_t count = PNM_FIELD(d, VEC_COUNT), width = PNM_FIELD(d, VEC_WIDTH);
    uint64_t mul = PNM_FIELD(d, VEC_MUL), add = PNM_FIELD(d, VEC_ADD), fn = PNM_FIELD(d, VEC_FN);
    bool reduce = PNM_FIELD(d, VEC_REDUCE) != 0;
    uint64_t reads = 1 + (mul == 2) + (add == 2), scalars = (mul == 3) + (add == 3);
    uint64_t beats = over(MR_PNM_ROW_WORDS, m->vector_lanes);
    uint64_t to_value = LOADED + (fn == 1 || fn == 2 ? BY_TABLE : 0) + beats - 1; /* the last */
    uint64_t fetch = start + 1, load = 0, out[2] = {0}, end = start;
    bool any = false;
    for (uint64_t r = 0; r < count; r++) {
        for (uint64_t i = 0; i < width; i++) {
            uint64_t left = reads + (i == 0 && r % MR_PNM_ROW_WORDS == 0 ? scalars : 0);
            for (; left; left--) {
                while (windows && window->end <= fetch) {
                    window++;
                    windows--;
                }
                if (windows && fetch >= window->first)
                    fetch = window->end;
                fetch++;
            }
            load = any ? most(fetch, load + beats) : fetch;
            if (reduce && i == 0 && r >= 2)
                load = most(load, out[r % 2] + 1);
            any = true;
            fetch = load + 1;
        }
        end = load + to_value + 1;
        if (reduce) {
            uint64_t at = load + to_value + FOLD + (width > 1 ? FOLD_ROWS : 0);
            if (r)
                at = most(at, out[(r + 1) % 2] + FOLD);
            out[r % 2] = at;
            end = at + 1;
        }
    }
    return end;
}
