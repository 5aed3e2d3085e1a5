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
 * Cycles of the engine: a start, activations column by column, then every column of weights once
 * for each vector (more cycles where a stream is longer than the lanes take at once) and a new
 * DRAM row every 16 columns; a store writes a column a cycle or so; the vector unit takes four
 * elements a cycle.
 */
static double matvec_cycles(const mr_pnm_matvec *a, double outputs, double kc) {
    double start = 24, open_row = 12, stream = 1;
    unsigned bits = 1u << a->mode.log_length;
    if (a->mode.kind != 2 && bits > MR_PNM_STREAM_BITS)
        stream = (double)bits / MR_PNM_STREAM_BITS;
    double columns = outputs / MR_PNM_PES * kc;
    double rows = columns / MR_PNM_ROW_COLUMNS < 1 ? 1 : columns / MR_PNM_ROW_COLUMNS;
    return start + a->vectors * kc + columns * a->vectors * stream + rows * open_row;
}

double flow_op_cycles(const flow_op *op) {
    switch (op->kind) {
    case FLOW_MULTIPLY:
        return matvec_cycles(&op->mv, op->matrix->outputs, op->matrix->kc);
    case FLOW_MATVEC:
        return matvec_cycles(&op->mv, op->mv.outputs, op->mv.kc);
    case FLOW_WSTORE:
        return 24 + op->ws.vectors * (op->ws.transposed ? op->ws.length / 2.0 : op->ws.kc * 2.0);
    case FLOW_VEC:
        return 16 + 4.0 * op->vec.count * op->vec.width;
    case FLOW_HANDOVER:
        return 48 + op->handover.from_rows + op->handover.to_rows;
    }
    return 0;
}

double flow_ops_cycles(const flow_ops *ops) {
    double sum = 0;
    for (size_t i = 0; i < ops->count; i++)
        sum += flow_op_cycles(&ops->op[i]);
    return sum;
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

void flow_ops_emit(mr_pnm_builder *b, unsigned group, const flow_ops *ops, size_t count) {
    weave w = {.owner = {-1, -1}};
    size_t at[FLOW_HALVES] = {0};
    for (;;) {
        int best = -1;
        double best_start = 0;
        bool best_overlap = false;
        for (size_t i = 0; i < count; i++) {
            bool overlap;
            if (at[i] == ops[i].count)
                continue;
            double start = start_of(&w, &ops[i].op[at[i]], (int)i, &overlap);
            if (best < 0 || start < best_start || (start == best_start && at[i] < at[best])) {
                best = (int)i;
                best_start = start;
                best_overlap = overlap;
            }
        }
        if (best < 0)
            return;
        const flow_op *op = &ops[best].op[at[best]++];
        int side = side_of(op);
        put(b, group, op, best_overlap);
        if (!best_overlap)
            w.owner[!side] = -1;
        w.owner[side] = best;
        w.now = best_start;
        w.free[side] = best_start + flow_op_cycles(op);
    }
}
