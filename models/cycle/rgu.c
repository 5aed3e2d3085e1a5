/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/rgu.h"

#include <stdio.h>

#include "models/cycle/rgu_part.h"

/* rgu_top: the cycle before Start, and the count of cycles 0..Done. */
enum { CHECK_CYCLES = 1 };

static bool bad(char *error, size_t size, const char *field, const char *what) {
    snprintf(error, size, "%s: %s", field, what);
    return false;
}

static bool check(const mr_rgu_descriptor *d, char *error, size_t size) {
    if (d->n != 8 && d->n != 10)
        return bad(error, size, "n", "must be 8 or 10");
    if (d->terms < 1 || d->terms > 32)
        return bad(error, size, "terms", "must be 1 to 32");
    if (!d->has_odd && !d->has_even)
        return bad(error, size, "odd", "a chunk has terms of one kind at least");
    uint64_t limit = (uint64_t)65535 << d->n;
    if (!d->d_in || d->d_in > limit)
        return bad(error, size, "d_in", "must be 1 to 65535 chunks of columns");
    if (!d->d_out || d->d_out > limit)
        return bad(error, size, "d_out", "must be 1 to 65535 chunks of rows");
    if (d->seeds % RGU_WORD)
        return bad(error, size, "seeds", "must be a multiple of 64");
    if (d->row_scale && d->scales % RGU_WORD)
        return bad(error, size, "scales", "must be a multiple of 64");
    if (d->apply) {
        uint64_t chunks = (d->d_in + (1u << d->n) - 1) >> d->n;
        if (!d->batch)
            return bad(error, size, "batch", "must be at least 1");
        if (chunks * d->terms > 65536)
            return bad(error, size, "terms", "chunk columns times terms must be at most 65536");
        if (d->src % 4 || d->src_stride % 4 || d->src_stride < 4 * (uint64_t)d->d_in)
            return bad(error, size, "src_stride", "must be a multiple of 4 of at least a vector");
        if (d->dst % 4 || d->dst_stride % 4 || d->dst_stride < 4 * (uint64_t)d->d_out)
            return bad(error, size, "dst_stride", "must be a multiple of 4 of at least a result");
        return true;
    }
    if (d->item != 1 && d->item != 2 && d->item != 4)
        return bad(error, size, "item", "must be 1, 2 or 4");
    if (d->row0 >= d->row1 || d->row1 > d->d_out)
        return bad(error, size, "rows", "the window is empty or outside the matrix");
    if (d->col0 >= d->col1 || d->col1 > d->d_in)
        return bad(error, size, "cols", "the window is empty or outside the matrix");
    if (d->dst % d->item)
        return bad(error, size, "dst", "must be a multiple of the element");
    if (d->dst_stride % d->item || d->dst_stride < (uint64_t)(d->col1 - d->col0) * d->item)
        return bad(error, size, "dst_stride",
                   "must be a multiple of the element of at least a row of the window");
    return true;
}

const char *mr_rgu_bottleneck_name(mr_rgu_bottleneck b) {
    static const char *const names[] = {"start", "expander", "products", "rows", "port"};
    return names[b];
}

static void judge(mr_rgu_timing *t) {
    uint64_t most = 0, work[] = {0, t->expander, t->products, t->rows, t->beats_out};
    t->bottleneck = MR_RGU_BY_START;
    for (int i = 1; i < 5; i++) {
        if (work[i] > most) {
            most = work[i];
            t->bottleneck = (mr_rgu_bottleneck)i;
        }
    }
    if (most * 2 < t->cycles) /* it works for less than half of the time */
        t->bottleneck = MR_RGU_BY_START;
}

bool mr_rgu_time(const mr_rgu_unit *unit, const mr_rgu_descriptor *d, mr_rgu_memory *memory,
                 mr_rgu_timing *out, char *error, size_t size) {
    mr_rgu_memory fresh = {0};
    if (!check(d, error, size))
        return false;
    *out = (mr_rgu_timing){0};
    rgu_cycle done =
        d->apply ? rgu_apply(unit, d, memory ? memory : &fresh, out) : rgu_tile(unit, d, out);
    out->cycles = (uint64_t)done + 1 + CHECK_CYCLES;
    if (memory && d->apply) /* its clock runs from Check to Done */
        memory->phase = (uint32_t)(memory->phase + out->cycles) & 1;
    else if (memory) /* the seeds' reader had the last turn */
        memory->next_reader = 1;
    judge(out);
    return true;
}
