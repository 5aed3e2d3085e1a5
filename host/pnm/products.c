/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pnm/products.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

/*
 * Sixteen pairs are a batch: a matrix with the a's on its diagonal times a vector of the b's. The
 * sum of a row is its one product, and exact when no product lies more than the sum's guard bits
 * below the largest the batch could have: so the exponents in a batch are near each other. An
 * infinity or NaN has a batch of its own, for it would meet the zeros beside the diagonal.
 */
enum {
    LANES = MR_PNM_ROW_WORDS,
    COLUMNS = LANES / MR_PNM_PES, /* of a batch */
    BATCHES = 1024,               /* of a group in one job */
    NEAR = 10,                    /* exponents of a and of b: 2 * 9 guard bits */
    CLASSES = 256 / NEAR + 1,
};
_Static_assert(2 * (NEAR - 1) <= MR_PNM_GUARD_BITS, "no bit of a product is lost");

typedef struct batch {
    size_t at[LANES]; /* which pairs */
    unsigned used;
    uint8_t wexp;
} batch;

typedef struct work {
    mr_pnm_exec *exec;
    mr_pnm_mode mode;
    const uint16_t *a, *b;
    uint32_t *out;
    mr_pnm_counters *counters;
    batch open[CLASSES][CLASSES]; /* not full yet */
    batch *full;                  /* MR_PNM_GROUPS * BATCHES */
    size_t count;
} work;

static unsigned exponent(uint16_t code) { return code >> 7 & 0xFF; }

/* ---- One job ----------------------------------------------------------------------------------
 */

static void fill(const work *w, const batch *b, uint8_t *weights, uint8_t *vector) {
    for (unsigned i = 0; i < b->used; i++) {
        /* output i, input i: column i / 4 of element i % 4 */
        memcpy(weights + i * MR_PNM_COLUMN_BYTES + 2 * i, &w->a[b->at[i]], 2);
        uint32_t x = (uint32_t)w->b[b->at[i]] << 16;
        memcpy(vector + 4 * i, &x, 4);
    }
}

static mr_status list_group(const work *w, mr_pnm_builder *b, unsigned group, uint64_t *results) {
    size_t first = w->count * group / MR_PNM_GROUPS, last = w->count * (group + 1) / MR_PNM_GROUPS;
    size_t n = last - first;
    uint64_t weights, vectors;
    uint16_t x, y, col;
    if (!n)
        return MR_OK;
    mr_pnm_b_memory(b, n * COLUMNS * MR_PNM_PES * MR_PNM_COLUMN_BYTES, "weights", &weights);
    mr_pnm_b_memory(b, n * 4 * LANES, "vectors", &vectors);
    mr_pnm_b_memory(b, n * 4 * LANES, "results", results);
    mr_pnm_b_rows(b, group, n, "vectors", &x);
    mr_pnm_b_rows(b, group, n, "results", &y);
    mr_status status = mr_pnm_b_columns(b, group, 0, n * COLUMNS, "weights", &col);
    for (size_t i = 0; i < n && status == MR_OK; i++) {
        uint8_t *at = mr_pnm_b_at(b, weights);
        size_t bytes = (size_t)COLUMNS * MR_PNM_PES * MR_PNM_COLUMN_BYTES;
        fill(w, &w->full[first + i], at + i * bytes, at + (vectors - weights) + i * 4 * LANES);
    }
    mr_pnm_b_wload(b, group, col, (uint16_t)(n * COLUMNS), weights, 0);
    status = mr_pnm_b_load(b, group, x, (uint16_t)n, vectors, 0);
    for (size_t i = 0; i < n && status == MR_OK; i++) {
        mr_pnm_matvec m = {.mode = w->mode,
                           .wexp = w->full[first + i].wexp,
                           .col = (uint16_t)(col + i * COLUMNS),
                           .kc = 1,
                           .outputs = LANES,
                           .vectors = 1,
                           .x = (uint16_t)(x + i),
                           .y = (uint16_t)(y + i)};
        status = mr_pnm_b_matvec(b, group, &m);
    }
    return mr_pnm_b_store(b, group, y, (uint16_t)n, *results, 0);
}

static void take(const work *w, const mr_pnm_program *p, const uint64_t results[MR_PNM_GROUPS]) {
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        size_t first = w->count * g / MR_PNM_GROUPS, last = w->count * (g + 1) / MR_PNM_GROUPS;
        for (size_t i = first; i < last; i++)
            for (unsigned j = 0; j < w->full[i].used; j++) {
                uint32_t *out = &w->out[w->full[i].at[j]];
                memcpy(out, p->image + results[g] + ((i - first) * LANES + j) * 4, 4);
                if ((*out & 0x7F800000u) == 0) /* the fractions decided: below 2^-126 */
                    *out &= 0x80000000u;
            }
    }
}

/* Every field of the counters but the flags is a number to add. */
static void add(mr_pnm_counters *sum, const mr_pnm_counters *c) {
    uint64_t *to[] = {&sum->cycles,   &sum->busy,      &sum->stall_in, &sum->stall_out,
                      &sum->items_in, &sum->items_out, &sum->products};
    const uint64_t from[] = {c->cycles,   c->busy,      c->stall_in, c->stall_out,
                             c->items_in, c->items_out, c->products};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++)
        *to[i] += from[i];
    for (int g = 0; g < MR_PNM_GROUPS; g++) {
        uint64_t *group = (uint64_t *)&sum->group[g];
        const uint64_t *more = (const uint64_t *)&c->group[g];
        for (size_t i = 0; i < sizeof c->group[g] / sizeof *more; i++)
            group[i] += more[i];
    }
    sum->hardware = c->hardware;
    sum->status |= c->status;
}

static mr_status run(work *w) {
    mr_pnm_builder *b;
    mr_pnm_program *p = NULL;
    mr_pnm_counters counters;
    uint64_t results[MR_PNM_GROUPS] = {0};
    if (!w->count)
        return MR_OK;
    mr_status status = mr_pnm_builder_create(MR_PNM_GROUPS, false, &b);
    if (status != MR_OK)
        return status;
    for (unsigned g = 0; g < MR_PNM_GROUPS && status == MR_OK; g++)
        status = list_group(w, b, g, &results[g]);
    if (status == MR_OK)
        status = mr_pnm_builder_finish(b, &p);
    mr_pnm_builder_destroy(b);
    if (status == MR_OK)
        status = mr_pnm_exec_run(w->exec, &p, 1, &counters);
    if (status == MR_OK) {
        take(w, p, results);
        if (w->counters)
            add(w->counters, &counters);
    }
    mr_pnm_program_destroy(p);
    w->count = 0;
    return status;
}

/* ---- Pairs into batches -----------------------------------------------------------------------
 */

static mr_status close_batch(work *w, batch *b) {
    mr_status status = MR_OK;
    if (w->count == (size_t)MR_PNM_GROUPS * BATCHES)
        status = run(w);
    w->full[w->count++] = *b;
    b->used = 0;
    b->wexp = 0;
    return status;
}

/* The pairs whose product is a zero whatever the fractions. */
static bool is_zero(uint16_t a, uint16_t b) {
    unsigned ea = exponent(a), eb = exponent(b);
    if (ea == 255 || eb == 255)
        return false;
    return !ea || !eb || ea + eb < 127;
}

static mr_status put(work *w, size_t i) {
    unsigned ea = exponent(w->a[i]), eb = exponent(w->b[i]);
    bool odd = ea == 255 || eb == 255;
    batch alone = {.used = 0};
    batch *b = odd ? &alone : &w->open[ea / NEAR][eb / NEAR];
    b->at[b->used++] = i;
    if (ea != 255 && ea > b->wexp)
        b->wexp = (uint8_t)ea;
    return odd || b->used == LANES ? close_batch(w, b) : MR_OK;
}

mr_status mr_pnm_products(mr_pnm_exec *e, mr_pnm_mode mode, const uint16_t *a, const uint16_t *b,
                          size_t count, uint32_t *out, size_t *by_host, mr_pnm_counters *counters) {
    work *w = calloc(1, sizeof *w);
    if (w)
        w->full = calloc((size_t)MR_PNM_GROUPS * BATCHES, sizeof *w->full);
    if (!w || !w->full) {
        free(w);
        return mr_fail(MR_OUT_OF_MEMORY, "no memory for %zu products", count);
    }
    w->exec = e;
    w->mode = mode;
    w->a = a;
    w->b = b;
    w->out = out;
    w->counters = counters;
    if (counters)
        memset(counters, 0, sizeof *counters);
    mr_status status = MR_OK;
    size_t zeros = 0;
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        if (is_zero(a[i], b[i])) {
            out[i] = (uint32_t)((a[i] ^ b[i]) & 0x8000) << 16;
            zeros++;
        } else {
            status = put(w, i);
        }
    }
    for (int i = 0; i < CLASSES * CLASSES && status == MR_OK; i++)
        if (w->open[i / CLASSES][i % CLASSES].used)
            status = close_batch(w, &w->open[i / CLASSES][i % CLASSES]);
    if (status == MR_OK)
        status = run(w);
    if (by_host)
        *by_host = zeros;
    free(w->full);
    free(w);
    return status;
}
