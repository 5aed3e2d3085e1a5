/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of operations, what they cost, and two of them woven into one program. */
#include "host/flow/compile.h"

#include <stdlib.h>
#include <string.h>

void flow_ops_add(flow_ops *ops, const flow_op *op) {
    if (ops->count == ops->room) {
        size_t room = ops->room ? 2 * ops->room : 256;
        flow_op *more = realloc(ops->op, room * sizeof *more);
        if (!more) {
            ops->failed = true;
            return;
        }
        ops->op = more;
        ops->room = room;
    }
    ops->op[ops->count++] = *op;
}

void flow_ops_clear(flow_ops *ops) {
    free(ops->op);
    memset(ops, 0, sizeof *ops);
}

void flow_vec(flow_ops *ops, const mr_pnm_vec *v) {
    flow_ops_add(ops, &(flow_op){.kind = FLOW_VEC, .vec = *v});
}
void flow_multiply(flow_ops *ops, const mr_pnm_matrix *m, const mr_pnm_matvec *mv) {
    flow_ops_add(ops, &(flow_op){.kind = FLOW_MULTIPLY, .matrix = m, .mv = *mv});
}
void flow_matvec(flow_ops *ops, const mr_pnm_matvec *mv) {
    flow_ops_add(ops, &(flow_op){.kind = FLOW_MATVEC, .mv = *mv});
}
void flow_wstore(flow_ops *ops, const mr_pnm_wstore *ws) {
    flow_ops_add(ops, &(flow_op){.kind = FLOW_WSTORE, .ws = *ws});
}

/* alpha tanh(a) = alpha (2 v - 1), v = 1 / (1 + exp(-2 a)) = 2^-log2(1 + 2^(-2 a log2 e)). Large
 * |a| goes through an infinity to -alpha and through 0 to alpha; a = 0 gives 0 exactly. */
void flow_tanh(flow_ops *ops, flow_view a, flow_view to, size_t count, size_t width, float alpha) {
    mr_pnm_vec v = {.count = (uint16_t)count,
                    .width = (uint16_t)width,
                    .a = (uint16_t)a.row,
                    .d = (uint16_t)a.row,
                    .a_stride = (int16_t)a.stride,
                    .d_stride = (int16_t)a.stride,
                    .fn = MR_PNM_FN_EXP2,
                    .mul = MR_PNM_IMM,
                    .imm_m = -2 * FLOW_LOG2E};
    flow_vec(ops, &v);
    v.fn = MR_PNM_FN_LOG2;
    v.mul = MR_PNM_NONE;
    v.add = MR_PNM_IMM;
    v.imm_c = 1;
    flow_vec(ops, &v);
    v.fn = MR_PNM_FN_EXP2;
    v.add = MR_PNM_NONE;
    v.neg_mul = true;
    flow_vec(ops, &v);
    v.fn = MR_PNM_FN_ID;
    v.neg_mul = false;
    v.mul = MR_PNM_IMM;
    v.imm_m = 2 * alpha;
    v.add = MR_PNM_IMM;
    v.imm_c = -alpha;
    v.d = (uint16_t)to.row;
    v.d_stride = (int16_t)to.stride;
    flow_vec(ops, &v);
}

/* ---- Costs ------------------------------------------------------------------------------------
 */

/*
 * Cycles of one descriptor alone, as the timing model and the RTL count them for the built unit in
 * its fastest tier (models/cycle/pnm.h, tests/unit/pnm_time). A start, in which the first vector is
 * loaded; then every DRAM row of weights once: it is copied into registers while the row before is
 * multiplied with all vectors, so that it takes the longer of both.
 */
static double matvec_cycles(const mr_pnm_matvec *a, double outputs, double kc) {
    const double open_row = 10;
    double slices = 1, start = kc > 5 ? 23 + kc : 28;
    unsigned bits = 1u << a->mode.log_length;
    if (a->mode.kind != 2 && bits > MR_PNM_STREAM_BITS)
        slices = (double)bits / MR_PNM_STREAM_BITS;
    double columns = outputs / MR_PNM_PES * kc;
    double in_row = columns < MR_PNM_ROW_COLUMNS ? columns : MR_PNM_ROW_COLUMNS;
    double multiply = slices * in_row * a->vectors, copy = open_row + in_row;
    return start + (columns / in_row - 1) * (multiply > copy ? multiply : copy) + multiply;
}

/* A vector is a column, or one word of many outputs' columns, which lie kc apart. */
static double wstore_cycles(const mr_pnm_wstore *a) {
    const double write = 3, word = 1.5, change_row = 13;
    if (!a->transposed)
        return 1 + write * a->vectors * a->kc;
    double columns = (double)a->length / MR_PNM_PES;
    double rows = columns * a->kc / MR_PNM_ROW_COLUMNS;
    return 1 + a->vectors * (columns * word + (rows > 1 ? rows * change_row : 0));
}

/* Four elements a cycle; a reduction folds a vector before the next can end. */
static double vec_cycles(const mr_pnm_vec *a) {
    double start = a->fn == MR_PNM_FN_EXP2 || a->fn == MR_PNM_FN_LOG2 ? 16 : 10;
    double vector = FLOW_WORDS / 4.0 * a->width;
    if (a->reduce != MR_PNM_KEEP)
        vector = vector + 6.5 > 18 ? vector + 6.5 : 18;
    return start + vector * a->count;
}

double flow_op_cycles(const flow_op *op) {
    switch (op->kind) {
    case FLOW_MULTIPLY:
        return matvec_cycles(&op->mv, op->matrix->outputs, op->matrix->kc);
    case FLOW_MATVEC:
        return matvec_cycles(&op->mv, op->mv.outputs, op->mv.kc);
    case FLOW_WSTORE:
        return wstore_cycles(&op->ws);
    case FLOW_VEC:
        return vec_cycles(&op->vec);
    case FLOW_HANDOVER:
        return 48 + op->handover.from_rows + op->handover.to_rows;
    }
    return 0;
}

/* ---- Weaving ----------------------------------------------------------------------------------
 */

static int side_of(const flow_op *op) { return op->kind == FLOW_VEC; }

static void put(mr_pnm_builder *b, unsigned group, const flow_op *op, bool overlap) {
    flow_op o = *op;
    switch (o.kind) {
    case FLOW_MULTIPLY:
        o.mv.overlap = overlap;
        mr_pnm_b_multiply(b, group, o.matrix, &o.mv);
        break;
    case FLOW_MATVEC:
        o.mv.overlap = overlap;
        mr_pnm_b_matvec(b, group, &o.mv);
        break;
    case FLOW_WSTORE:
        o.ws.overlap = overlap;
        mr_pnm_b_wstore(b, group, &o.ws);
        break;
    case FLOW_VEC:
        o.vec.overlap = overlap;
        mr_pnm_b_vec(b, group, &o.vec);
        break;
    case FLOW_HANDOVER:
        mr_pnm_b_store(b, group, o.handover.from, o.handover.from_rows, o.handover.from_addr, 0);
        *o.handover.end = mr_pnm_b_here(b, group);
        mr_pnm_b_load(b, group, o.handover.to, o.handover.to_rows, o.handover.to_addr, 0);
        break;
    }
}

/* When the sides come free, and whose descriptor is the last on each (-1: finished for sure). */
typedef struct weave {
    double free[2], now;
    int owner[2];
} weave;

/* An operation may overlap what the other side does for the other list, never its own list's. */
static double start_of(const weave *w, const flow_op *op, int list, bool *overlap) {
    int side = side_of(op);
    *overlap = w->owner[!side] >= 0 && w->owner[!side] != list;
    double start = w->free[side];
    if (!*overlap && w->free[!side] > start)
        start = w->free[!side];
    return start > w->now ? start : w->now;
}

/* Starts the operation: overlapping or not, and when its side is free again. */
static void advance(weave *w, const flow_op *op, int list, double stretch) {
    bool overlap;
    int side = side_of(op);
    double start = start_of(w, op, list, &overlap);
    if (!overlap)
        w->owner[!side] = -1;
    w->owner[side] = list;
    w->now = start;
    w->free[side] = start + flow_op_cycles(op) * (side ? stretch : 1);
}

/* The list whose next operation can start first; -1: all have ended. */
static int next_list(const weave *w, const flow_ops *ops, const size_t *at, size_t count) {
    int best = -1;
    double best_start = 0;
    for (size_t i = 0; i < count; i++) {
        bool overlap;
        if (at[i] == ops[i].count)
            continue;
        double start = start_of(w, &ops[i].op[at[i]], (int)i, &overlap);
        if (best < 0 || start < best_start || (start == best_start && at[i] < at[best])) {
            best = (int)i;
            best_start = start;
        }
    }
    return best;
}

/*
 * Goes through the lists in the order in which operations can start if those of the vector side
 * took `stretch` times as long as they do, and returns when all have ended, as long as they do
 * take. Into a program, if there is a builder.
 */
static double interleave(mr_pnm_builder *b, unsigned group, const flow_ops *ops, size_t count,
                         double stretch) {
    weave plan = {.owner = {-1, -1}}, w = plan;
    size_t at[FLOW_HALVES] = {0};
    for (int i; (i = next_list(&plan, ops, at, count)) >= 0;) {
        const flow_op *op = &ops[i].op[at[i]++];
        bool overlap;
        start_of(&w, op, i, &overlap);
        if (b)
            put(b, group, op, overlap);
        advance(&plan, op, i, stretch);
        advance(&w, op, i, 1);
    }
    return w.free[0] > w.free[1] ? w.free[0] : w.free[1];
}

/* Taking what can start first is not always best: a few orders are tried. */
typedef struct order {
    double stretch, cycles;
} order;

static order best_order(const flow_ops *ops, size_t count) {
    static const double tried[] = {0.5, 0.7, 0.85, 1.2, 1.5, 2};
    order best = {1, interleave(NULL, 0, ops, count, 1)};
    for (size_t i = 0; i < sizeof tried / sizeof tried[0] && count > 1; i++) {
        order o = {tried[i], interleave(NULL, 0, ops, count, tried[i])};
        if (o.cycles < best.cycles)
            best = o;
    }
    return best;
}

void flow_ops_emit(mr_pnm_builder *b, unsigned group, const flow_ops *ops, size_t count) {
    interleave(b, group, ops, count, best_order(ops, count).stretch);
}

double flow_ops_cycles(const flow_ops *ops, size_t count) { return best_order(ops, count).cycles; }
