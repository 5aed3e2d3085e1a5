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

/* ---- MATVEC: rows are copied into two registers and go round ----------------------------------
 *
 * As rtl/pnm/pnm_walk.sv and pnm_rows.sv have it: vectors join one after the other as they have
 * been loaded, at an output that begins in the row at hand, and leave when they have seen every
 * column.
 */

enum {
    OUTS = 16,                         /* outputs begun that the epilogue has not taken */
    WAITING = 12 + MR_PNM_MAX_VECTORS, /* results on their way to the scratchpad */
    WRITTEN = 10,                      /* cycles of that way */
    TO_SUM = 7,                        /* from a column in the lanes to its sum, beside slices */
    MOST_COLUMNS = 64                  /* of a row */
};

typedef struct {
    uint64_t column, next; /* of the matrix, where vectors joined; the first vector after them */
} joined;

typedef struct {
    const mr_pnm_machine *m;
    mr_dram *dram;
    size_t group;
    uint64_t start, cl, slices, kc, count, vectors; /* count: columns of the matrix */
    uint64_t first, row_columns;                    /* first column in the banks */
    /* loading of activations: vectors that are complete, and reads of the epilogue in between */
    uint64_t rows, loaded, delay, reads[OUTS], read_count, read_at;
    /* registers */
    uint64_t asked, ask, ask_next, upto, registers, arrival[2][MOST_COLUMNS];
    bool fresh, ask_slot;
    /* the walk */
    uint64_t row, row_end, row_at, join_at, column, vector, low, high, pace;
    bool slot, in_hand, joins, all;
    joined list[MR_PNM_MAX_VECTORS];
    uint64_t list_first, list_count;
    /* results */
    bool bias, accum;
    uint64_t bias_tag[4], old_tag, go[WAITING], written[WAITING], results; /* tags plus 1 */
    uint64_t streamed;
} matvec;

static uint64_t end_of_row(const matvec *v, uint64_t at) {
    uint64_t end = at + v->row_columns - (v->first + at) % v->row_columns;
    return end < v->count ? end : v->count;
}

/* Copies columns as long as there is a register; what stopped it is over from cycle `since` on. */
static void copy(matvec *v, uint64_t since) {
    v->ask_next = most(v->ask_next, since);
    while (v->asked < v->upto && (!v->fresh || v->registers < 2)) {
        bool last = v->ask + 1 == end_of_row(v, v->ask);
        if (v->fresh)
            v->registers++;
        uint64_t t = ask(v->m, v->dram, v->group, v->ask_next, false, v->first + v->ask, last);
        v->arrival[v->ask_slot][(v->first + v->ask) % v->row_columns] = t + v->cl + 1;
        v->ask_next = t + 1;
        v->asked++;
        v->ask = v->ask + 1 == v->count ? 0 : v->ask + 1;
        v->fresh = last;
        v->ask_slot ^= last;
    }
}

/* Cycle from which vector `loaded` is complete. */
static uint64_t next_loaded(const matvec *v) {
    uint64_t delay = v->delay, at = v->start + over((v->loaded + 1) * v->rows, v->m->load_rows);
    for (uint64_t i = v->read_at; i < v->read_count && v->reads[i % OUTS] <= at + delay; i++)
        delay++;
    return at + delay + 3;
}

static uint64_t loaded_at(matvec *v, uint64_t cycle) {
    while (v->loaded < v->vectors) {
        uint64_t at = next_loaded(v);
        if (at > cycle)
            break;
        v->delay = at - 3 - (v->start + over((v->loaded + 1) * v->rows, v->m->load_rows));
        while (v->read_at < v->read_count && v->reads[v->read_at % OUTS] <= at - 3)
            v->read_at++;
        v->loaded++;
    }
    return v->loaded;
}

/* A read of the epilogue goes before those of the activations. */
static void reads(matvec *v, uint64_t cycle) {
    if (v->loaded < v->vectors && v->read_count - v->read_at < OUTS)
        v->reads[v->read_count++ % OUTS] = cycle;
}

/* A sum becomes a result; rows of biases and old values are read when they change. */
static void give(matvec *v, uint64_t arrival, uint64_t output, uint64_t vector) {
    uint64_t at = arrival + 1, i = v->results++, row = output * v->m->elements / MR_PNM_ROW_WORDS;
    if (i)
        at = most(at, v->go[(i - 1) % WAITING] + 1);
    if (i >= WAITING)
        at = most(at, v->written[i % WAITING] + 1);
    if (v->bias && v->bias_tag[row % 4] != row + 1) {
        v->bias_tag[row % 4] = row + 1;
        reads(v, at);
        at += 2;
    }
    uint64_t tag = row * MR_PNM_MAX_VECTORS + vector + 1;
    if (v->accum && v->old_tag != tag) {
        v->old_tag = tag;
        reads(v, at);
        at += 2;
    }
    v->go[i % WAITING] = at;
    uint64_t written = at + WRITTEN; /* not before all activations are there: y may lie on x */
    if (v->loaded < v->vectors)
        written = most(written, v->start + over(v->vectors * v->rows, v->m->load_rows) + 3 +
                                    v->delay + v->read_count - v->read_at);
    if (i)
        written = most(written, v->written[(i - 1) % WAITING] + 1);
    v->written[i % WAITING] = written;
}

/* The output that begins in the row at hand; count: none does. */
static uint64_t head(const matvec *v) {
    uint64_t at = over(v->row, v->kc) * v->kc;
    return at < v->row_end ? at : v->count;
}

static joined *oldest(matvec *v) {
    return v->list_count ? &v->list[v->list_first % MR_PNM_MAX_VECTORS] : NULL;
}

static void pop(matvec *v) {
    v->low = oldest(v)->next;
    v->list_first++;
    v->list_count--;
}

static bool join(matvec *v, uint64_t cycle) {
    uint64_t at = head(v);
    if (v->high >= loaded_at(v, cycle) || at == v->count)
        return false;
    v->column = at;
    v->vector = v->high++;
    v->in_hand = v->joins = true;
    if (v->high == v->vectors) {
        v->all = true;
        v->join_at = v->row_at + at - v->row;
        v->upto = v->join_at + v->count;
        copy(v, cycle + 1);
    }
    return true;
}

static void leave_row(matvec *v, uint64_t cycle) {
    bool only = v->row == 0 && v->row_end == v->count;
    if (v->joins)
        v->list[(v->list_first + v->list_count) % MR_PNM_MAX_VECTORS] = (joined){head(v), v->high};
    uint64_t next = v->row_end == v->count ? 0 : v->row_end;
    const joined *o = oldest(v);
    v->in_hand = !only && !(o && o->column == next);
    v->list_count += v->joins;
    v->joins = false;
    v->row_at += v->row_end - v->row;
    v->row = v->column = next;
    v->row_end = end_of_row(v, next);
    v->vector = v->low;
    v->slot = !v->slot;
    v->registers--;
    if (!v->all)
        v->upto = v->row_at + v->count;
    copy(v, cycle + 1);
}

/* A column meets a vector, at cycle t at the earliest; returns when. */
static uint64_t meet(matvec *v, uint64_t t) {
    bool tail = v->column % v->kc + 1 == v->kc;
    t = most(t, v->arrival[v->slot][(v->first + v->column) % v->row_columns]);
    t = most(t, v->pace);
    if (tail && v->results >= OUTS)
        t = most(t, v->go[(v->results - OUTS) % WAITING] + 1);
    loaded_at(v, t);
    v->pace = t + v->slices;
    v->streamed += v->slices;
    if (tail)
        give(v, t + v->slices + TO_SUM, v->column / v->kc, v->vector);
    return t;
}

/* One cycle of the walk; false: it is over. */
static bool walk(matvec *v, uint64_t *cycle) {
    const joined *o = oldest(v);
    uint64_t t = *cycle;
    *cycle = t + 1;
    if (!v->in_hand) {
        if (o && o->column == v->row) {
            pop(v);
        } else if (v->low != v->high) {
            v->in_hand = true;
            v->vector = v->low;
            v->column = v->row;
        } else if (!v->all && !join(v, t)) {
            *cycle = most(t + 1, next_loaded(v));
        }
        return !(v->all && v->low == v->high);
    }
    t = meet(v, t);
    *cycle = t + 1;
    bool here = o && o->column > v->row && o->column < v->row_end;
    uint64_t end = here && v->vector < o->next ? o->column : v->row_end;
    if (++v->column != end)
        return true;
    uint64_t next = v->vector + 1;
    if (here && next == o->next)
        pop(v);
    if (next != v->high) {
        v->vector = next;
        v->column = v->row;
    } else if (!join(v, t)) {
        if (v->low != v->high)
            leave_row(v, t);
        else
            v->in_hand = false;
    }
    return !(v->all && v->low == v->high);
}

pnm_matrix_run pnm_time_matvec(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t start,
                               const uint8_t *d) {
    uint64_t bits = 1u << PNM_FIELD(d, MATVEC_LOG_LENGTH);
    matvec v = {.m = m, .dram = dram, .group = group, .start = start, .fresh = true};
    v.rows = PNM_FIELD(d, MATVEC_KC);
    v.kc = over(v.rows * MR_PNM_ROW_WORDS, m->lanes);
    v.vectors = PNM_FIELD(d, MATVEC_VECTORS);
    v.slices = PNM_FIELD(d, MATVEC_MODE) == 2 ? 1 : over(bits, m->stream_bits);
    v.cl = mr_dram_in_cycles(&m->dram).cl;
    v.bias = PNM_FIELD(d, MATVEC_BIAS);
    v.accum = PNM_FIELD(d, MATVEC_ACCUM);
    v.first = pnm_columns(m, PNM_FIELD(d, MATVEC_COL));
    v.count = over(PNM_FIELD(d, MATVEC_OUTPUTS), m->elements) * v.kc;
    v.row_columns = m->dram.columns;
    v.row_end = end_of_row(&v, 0);
    v.upto = v.count;
    uint64_t cycle = start + 1;
    copy(&v, cycle);
    while (walk(&v, &cycle)) {
    }
    return (pnm_matrix_run){
        .end = v.written[(v.results - 1) % WAITING],
        .streamed = v.streamed,
        .reads = {start + 1, start + 1 + over(v.vectors * v.rows, m->load_rows) + v.delay}};
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
