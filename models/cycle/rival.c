/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/rival.h"

#include <math.h>
#include <string.h>

#include <millrace/pnm_desc.h>

#include "models/cycle/pnm_sides.h"

enum { PASSES = 4, BUS_BYTES = 32 };

typedef struct {
    const mr_rival *r;
    mr_dram *dram;
    bool alone;
    double now, bus; /* cycles of the DRAM: alone, what has been done; a bus's 32 bytes */
    uint64_t next;   /* cycle after the last column's command: a request waits from then on */
    uint64_t end;    /* of the last column */
    uint64_t words;  /* on the bus */
    uint64_t units, ccd, opening;
    mr_rival_timing *out;
} channel;

static uint64_t over(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* A column of every bank, as soon as the banks can. */
static void column(channel *c, uint64_t at, bool write) {
    const mr_dram_config *d = &c->r->dram;
    uint32_t banks = d->banks >= 32 ? UINT32_MAX : (1u << d->banks) - 1;
    uint64_t cycle =
        mr_dram_request(c->dram, 0, c->next, write, banks, (uint32_t)(at / d->columns % d->rows),
                        (uint32_t)(at % d->columns), false);
    c->next = cycle + 1;
    c->end = cycle + c->ccd;
}

/* Column of the channel where column `col` of a group of the built unit would lie. */
static uint64_t place(const channel *c, uint64_t col) {
    uint64_t weights = (uint64_t)MR_PNM_PES * MR_PNM_ROW_WORDS;
    return col * weights / (c->units * c->r->dram.unit_lanes);
}

/* Nothing overlaps what is alone but its own: `before` words on the bus, then columns and the words
 * between, then `after` words. */
static void begin_alone(channel *c, uint64_t before) {
    c->now += (double)before * c->bus;
    if (c->next < (uint64_t)c->now)
        c->next = (uint64_t)c->now;
}
static void end_alone(channel *c, uint64_t between, uint64_t after) {
    double bus = c->now + (double)between * c->bus;
    c->now = fmax(bus, (double)c->end) + (double)after * c->bus;
}

/* A matrix on a channel. */
typedef struct {
    uint64_t kc, columns, rows, n; /* columns of a sum; of the matrix; rows; vectors */
    uint64_t load, read, fit;      /* words of a vector, of sums; vectors in the buffer */
} shape;

static shape shape_of(const channel *c, const uint8_t *d) {
    const mr_dram_config *m = &c->r->dram;
    uint64_t k = PNM_FIELD(d, MATVEC_KC) * MR_PNM_ROW_WORDS, outputs = PNM_FIELD(d, MATVEC_OUTPUTS);
    uint64_t split = c->units > outputs ? c->units / outputs : 1; /* inputs shared by units */
    shape s = {.n = PNM_FIELD(d, MATVEC_VECTORS)};
    s.kc = over(over(k, m->unit_lanes), split);
    s.columns = over(outputs * split, c->units) * s.kc;
    s.rows = over(s.columns, m->columns);
    s.load = over(2 * k, BUS_BYTES);
    s.read = over(2 * c->units, BUS_BYTES);
    s.fit = c->r->buffer_bytes / (2 * k);
    s.fit = s.fit ? s.fit : 1;
    return s;
}

/* Which takes longer, banks or bus, if vectors or rows come first: every row is opened for each
 * load of the buffer, or every vector is loaded for each row. */
static bool vectors_first(const channel *c, const shape *s) {
    double multiply = (double)(s->columns * s->n * c->ccd);
    uint64_t readings = s->columns / s->kc * s->n;
    double sums = (double)(readings * s->read) * c->bus;
    double vectors = fmax(multiply + (double)(over(s->n, s->fit) * s->rows * c->opening),
                          sums + (double)(s->n * s->load) * c->bus);
    double rows = fmax(multiply + (double)(s->rows * c->opening),
                       sums + (double)(s->rows * s->n * s->load) * c->bus);
    return vectors <= rows;
}

static void matvec(channel *c, const uint8_t *d) {
    const mr_dram_config *m = &c->r->dram;
    const shape s = shape_of(c, d);
    bool by_vectors = vectors_first(c, &s);
    uint64_t block = by_vectors ? s.fit : s.n, words = 0;
    uint64_t first = place(c, PNM_FIELD(d, MATVEC_COL)) / m->columns * m->columns;
    c->out->products +=
        (double)(PNM_FIELD(d, MATVEC_OUTPUTS) * PNM_FIELD(d, MATVEC_KC) * MR_PNM_ROW_WORDS * s.n);
    if (c->alone)
        begin_alone(c, s.load);
    for (uint64_t v = 0; v < s.n; v += block) {
        uint64_t here = s.n - v < block ? s.n - v : block;
        for (uint64_t row = 0; row < s.rows; row++) {
            uint64_t from = row * m->columns, to = from + m->columns;
            to = to < s.columns ? to : s.columns;
            for (uint64_t i = 0; i < here; i++) {
                words += !by_vectors || row == 0 ? s.load : 0;
                for (uint64_t at = from; at < to; at++) {
                    column(c, first + at, false);
                    words += at % s.kc + 1 == s.kc ? s.read : 0;
                }
            }
        }
    }
    c->words += words;
    if (c->alone)
        end_alone(c, words - s.load - s.read, s.read);
}

/* Whole columns, whichever way the matrix lies: the host has turned it. */
static void wstore(channel *c, const uint8_t *d) {
    uint64_t words =
        over(2 * PNM_FIELD(d, WSTORE_LENGTH) * PNM_FIELD(d, WSTORE_VECTORS), BUS_BYTES);
    uint64_t first = place(c, PNM_FIELD(d, WSTORE_COL));
    if (c->alone)
        begin_alone(c, 1);
    for (uint64_t i = 0; i < words; i += c->units)
        column(c, first + i / c->units, true);
    c->words += words;
    if (c->alone)
        end_alone(c, words - 1, 0);
}

static bool only_a_threshold(const uint8_t *d) {
    return PNM_FIELD(d, VEC_FN) == 3 && !PNM_FIELD(d, VEC_MUL) && !PNM_FIELD(d, VEC_ADD) &&
           !PNM_FIELD(d, VEC_REDUCE);
}

static void pass(channel *c, const mr_pnm_list *list) {
    bool sums = false, host = false;
    for (uint32_t i = 0; i < list->count; i++) {
        const uint8_t *d = list->desc + (size_t)i * MR_PNM_DESC_BYTES;
        bool matrix = d[0] == MR_PNM_DESC_MATVEC || d[0] == MR_PNM_DESC_WSTORE;
        if (d[0] == MR_PNM_DESC_VEC)
            host |= sums && !only_a_threshold(d);
        if (matrix && host)
            c->out->trips++;
        if (matrix)
            host = false;
        sums |= d[0] == MR_PNM_DESC_MATVEC;
        if (d[0] == MR_PNM_DESC_MATVEC)
            matvec(c, d);
        else if (d[0] == MR_PNM_DESC_WSTORE)
            wstore(c, d);
    }
    c->out->trips += host;
}

bool mr_rival_time(const mr_rival *r, const mr_pnm_list *list, bool alone, mr_rival_timing *out) {
    mr_dram_cycles t = mr_dram_in_cycles(&r->dram);
    memset(out, 0, sizeof *out);
    channel c = {.r = r, .alone = alone, .out = out};
    c.dram = mr_dram_create(&r->dram, 1, NULL, NULL);
    if (!c.dram)
        return false;
    c.bus = r->bus_ns / r->dram.clock_ns;
    c.units = r->dram.banks / r->dram.unit_banks;
    c.ccd = t.ccd;
    c.opening = t.rp + t.rcd[0];
    for (int i = 0; i < PASSES; i++)
        pass(&c, list);
    mr_dram_count count = mr_dram_total(c.dram);
    mr_dram_destroy(c.dram);
    /* many: banks and bus are at work all the time, for one batch or another */
    double cycles = alone ? c.now : fmax((double)c.end, (double)c.words * c.bus);
    double trips = alone ? out->trips * r->round_trip_ns : 0;
    out->ns = (cycles * r->dram.clock_ns + trips) / PASSES;
    /* a unit for two banks reads one of them at a time */
    out->dram_j = count.pj * 1e-12 / PASSES / r->dram.unit_banks;
    out->products /= PASSES;
    out->bus_bytes = (double)(c.words * BUS_BYTES) / PASSES;
    out->trips /= PASSES;
    out->operand_j = out->products * r->operand_pj * 1e-12;
    out->multiply_j = out->products * (r->multiply_pj + r->add_pj) * 1e-12;
    out->link_j = out->bus_bytes * 8 * r->link_bit_pj * 1e-12;
    return true;
}
