/* SPDX-License-Identifier: Apache-2.0 */
#include "host/core/pnm_streams.h"

#include <stdlib.h>
#include <string.h>

#include "models/golden/pnm_internal.h"

enum {
    FOLD = 64,         /* MR_PNM_FOLD of kernels/pnm_ops.h */
    STEP_COST = 200,   /* of a descriptor, whatever it does */
    WORTH = 30000,     /* a launch with several groups saves as much or is not made */
    TABLE_AT = 14 * 4, /* bytes of a descriptor that tell the kernel what its fields do not */
    GROUP_AT = 15 * 4,
    ONE_AT = 15 * 4 + 1
};

/* ---- Rows that meet ---------------------------------------------------------------------------
 */

/* `count` places of `size` rows. */
typedef struct span {
    int64_t first, count, stride, size;
} span;

static void bounds(const span *s, int64_t *low, int64_t *high) {
    int64_t last = s->first + (s->count - 1) * s->stride;
    *low = last < s->first ? last : s->first;
    *high = (last < s->first ? s->first : last) + s->size;
}

static bool meet(const span *a, const span *b) {
    int64_t a0, a1, b0, b1;
    bounds(a, &a0, &a1);
    bounds(b, &b0, &b1);
    if (a1 <= b0 || b1 <= a0)
        return false;
    uint8_t seen[MR_PNM_SCRATCH_ROWS] = {0};
    for (int64_t i = 0; i < a->count; i++)
        memset(seen + a->first + i * a->stride, 1, (size_t)a->size);
    for (int64_t i = 0; i < b->count; i++)
        if (memchr(seen + b->first + i * b->stride, 1, (size_t)b->size))
            return true;
    return false;
}

static bool same(const span *a, const span *b) {
    return a->first == b->first && a->count == b->count && a->size == b->size &&
           (a->stride == b->stride || a->count == 1);
}

static bool meets_itself(const span *s) {
    return s->count > 1 && s->stride < s->size && -s->stride < s->size;
}

static span scalars(uint64_t row, uint64_t count) {
    return (span){(int64_t)row, 1, 0, (int64_t)(count + WORDS - 1) / WORDS};
}

static bool operand_meets(uint64_t kind, span rows, const span *to, bool reduces) {
    if (kind == 3)
        rows = scalars((uint64_t)rows.first, (uint64_t)rows.count);
    else if (kind != 2 || (!reduces && same(&rows, to)))
        return false;
    return meet(&rows, to);
}

static bool vec_in_order(const uint8_t *d) {
    int64_t n = (int64_t)FIELD(d, VEC_COUNT), width = (int64_t)FIELD(d, VEC_WIDTH);
    bool reduces = FIELD(d, VEC_REDUCE) != 0;
    span to = {(int64_t)FIELD(d, VEC_D), n, SIGNED_FIELD(d, VEC_D_STRIDE), width};
    span a = {(int64_t)FIELD(d, VEC_A), n, SIGNED_FIELD(d, VEC_A_STRIDE), width};
    span b = {(int64_t)FIELD(d, VEC_B), n, SIGNED_FIELD(d, VEC_B_STRIDE), width};
    span c = {(int64_t)FIELD(d, VEC_C), n, SIGNED_FIELD(d, VEC_C_STRIDE), width};
    if (reduces)
        to = scalars((uint64_t)to.first, (uint64_t)n);
    return meets_itself(&to) || operand_meets(2, a, &to, reduces) ||
           operand_meets(FIELD(d, VEC_MUL), b, &to, reduces) ||
           operand_meets(FIELD(d, VEC_ADD), c, &to, reduces);
}

static bool matvec_in_order(const uint8_t *d) {
    int64_t n = (int64_t)FIELD(d, MATVEC_VECTORS), rows = (int64_t)FIELD(d, MATVEC_OUTPUTS) / WORDS;
    span y = {(int64_t)FIELD(d, MATVEC_Y), n, SIGNED_FIELD(d, MATVEC_Y_STRIDE), rows};
    span old = {(int64_t)FIELD(d, MATVEC_OLD), n, SIGNED_FIELD(d, MATVEC_OLD_STRIDE), rows};
    span bias = {(int64_t)FIELD(d, MATVEC_BIAS_ROW), 1, 0, rows};
    return meets_itself(&y) || (FIELD(d, MATVEC_BIAS) && meet(&bias, &y)) ||
           (FIELD(d, MATVEC_ACCUM) && !same(&old, &y) && meet(&old, &y));
}

/* Whether a descriptor writes rows that it reads elsewhere: its result depends on the order. */
static bool in_order(unsigned group, const uint8_t *d) {
    if (d[0] == MR_PNM_DESC_VEC)
        return vec_in_order(d);
    if (d[0] == MR_PNM_DESC_MATVEC)
        return matvec_in_order(d);
    if (d[0] != MR_PNM_DESC_SEND || FIELD(d, SEND_GROUP) != group || !FIELD(d, SEND_ROWS))
        return false;
    span from = {(int64_t)FIELD(d, SEND_ROW), 1, 0, (int64_t)FIELD(d, SEND_ROWS)};
    span to = {(int64_t)FIELD(d, SEND_TO), 1, 0, from.size};
    return meet(&from, &to);
}

/* ---- Adding -----------------------------------------------------------------------------------
 */

static uint64_t cost_of(const uint8_t *d) {
    switch (d[0]) {
    case MR_PNM_DESC_MATVEC:
        return FIELD(d, MATVEC_KC) * WORDS * FIELD(d, MATVEC_OUTPUTS) * FIELD(d, MATVEC_VECTORS);
    case MR_PNM_DESC_VEC:
        return FIELD(d, VEC_COUNT) * FIELD(d, VEC_WIDTH) * WORDS * 4;
    case MR_PNM_DESC_WSTORE:
        return FIELD(d, WSTORE_VECTORS) * FIELD(d, WSTORE_LENGTH) * 2;
    case MR_PNM_DESC_WLOAD:
        return FIELD(d, WLOAD_COLUMNS) * PES * WORDS;
    case MR_PNM_DESC_SEND:
        return FIELD(d, SEND_ROWS) * WORDS / 4;
    default: /* LOAD and STORE */
        return FIELD(d, LOAD_ROWS) * WORDS / 4;
    }
}

static void set16(uint8_t *d, unsigned lsb, uint64_t value) {
    d[lsb / 8] = (uint8_t)value;
    d[lsb / 8 + 1] = (uint8_t)(value >> 8);
}

static bool push(pnm_streams *s, unsigned group, const uint8_t *d) {
    if (s->group[group].count == s->group[group].room) {
        size_t room = s->group[group].room ? 2 * s->group[group].room : 256;
        pnm_op *larger = realloc(s->group[group].op, room * sizeof *larger);
        if (!larger)
            return false;
        s->group[group].op = larger;
        s->group[group].room = room;
    }
    uint64_t cost = STEP_COST + cost_of(d);
    pnm_op *op = &s->group[group].op[s->group[group].count++];
    memcpy(op->desc, d, sizeof op->desc);
    op->level = s->group[group].level;
    op->cost = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    s->count++;
    s->cost += cost;
    return true;
}

/* A reduction of many vectors in pieces that a work group has memory for. */
static bool push_pieces(pnm_streams *s, unsigned group, const uint8_t *d) {
    uint64_t count = FIELD(d, VEC_COUNT);
    for (uint64_t r = 0; r < count; r += FOLD) {
        uint8_t piece[MR_PNM_DESC_BYTES];
        memcpy(piece, d, sizeof piece);
        set16(piece, MR_PNM_D_VEC_COUNT_LSB, count - r < FOLD ? count - r : FOLD);
        set16(piece, MR_PNM_D_VEC_D_LSB, FIELD(d, VEC_D) + r / WORDS);
        set16(piece, MR_PNM_D_VEC_A_LSB,
              pnm_place(FIELD(d, VEC_A), r, SIGNED_FIELD(d, VEC_A_STRIDE)));
        if (FIELD(d, VEC_MUL) == 2)
            set16(piece, MR_PNM_D_VEC_B_LSB,
                  pnm_place(FIELD(d, VEC_B), r, SIGNED_FIELD(d, VEC_B_STRIDE)));
        else
            set16(piece, MR_PNM_D_VEC_B_LSB, FIELD(d, VEC_B) + r / WORDS);
        if (FIELD(d, VEC_ADD) == 2)
            set16(piece, MR_PNM_D_VEC_C_LSB,
                  pnm_place(FIELD(d, VEC_C), r, SIGNED_FIELD(d, VEC_C_STRIDE)));
        else
            set16(piece, MR_PNM_D_VEC_C_LSB, FIELD(d, VEC_C) + r / WORDS);
        if (!push(s, group, piece))
            return false;
    }
    return true;
}

bool pnm_streams_add(pnm_streams *s, unsigned group, const uint8_t *desc, uint32_t table) {
    uint8_t d[MR_PNM_DESC_BYTES];
    bool one = in_order(group, desc);
    memcpy(d, desc, sizeof d);
    memcpy(d + TABLE_AT, &table, 4);
    memset(d + GROUP_AT, 0, 4);
    d[GROUP_AT] = (uint8_t)group;
    d[ONE_AT] = one;
    if (d[0] == MR_PNM_DESC_SEND) {
        unsigned to = (unsigned)FIELD(d, SEND_GROUP), sem = (unsigned)FIELD(d, SEND_SEM);
        uint32_t next = s->group[group].level + (to != group);
        if (s->group[to].signal[sem] < next)
            s->group[to].signal[sem] = next;
        if (!FIELD(d, SEND_ROWS))
            return true;
    }
    if (d[0] == MR_PNM_DESC_VEC && FIELD(d, VEC_REDUCE) && !one)
        return push_pieces(s, group, d);
    return push(s, group, d);
}

void pnm_streams_passed(pnm_streams *s, unsigned group, const uint8_t *d) {
    uint32_t *level = &s->group[group].level;
    if (d[0] == MR_PNM_DESC_WAIT) {
        uint32_t next = s->group[group].signal[FIELD(d, WAIT_SEM)];
        *level = *level < next ? next : *level;
    } else if (d[0] == MR_PNM_DESC_BARRIER) {
        uint32_t groups = (uint32_t)FIELD(d, BARRIER_GROUPS), highest = 0;
        if (groups & ((1u << group) - 1) || groups == 1u << group)
            return; /* the first of them did it for all; alone: nothing to wait for */
        for (unsigned i = 0; i < MR_PNM_GROUPS; i++)
            if (groups >> i & 1 && s->group[i].level > highest)
                highest = s->group[i].level;
        for (unsigned i = 0; i < MR_PNM_GROUPS; i++)
            if (groups >> i & 1)
                s->group[i].level = highest + 1;
    }
}

/* ---- Planning ---------------------------------------------------------------------------------
 */

static void append(pnm_plan *plan, const pnm_op *op, size_t count) {
    for (size_t i = 0; i < count; i++)
        memcpy(plan->ops + plan->num_ops++ * MR_PNM_DESC_BYTES, op[i].desc, MR_PNM_DESC_BYTES);
}

static void cut(pnm_plan *plan) { plan->cuts[plan->num_cuts++] = (uint32_t)plan->num_ops; }

static void open_launch(pnm_plan *plan, uint32_t streams) {
    plan->launches[plan->num_launches++] = (pnm_launch){(uint32_t)plan->num_cuts, streams};
    cut(plan);
}

/* The next level in which somebody has something to do. */
static uint32_t next_level(const pnm_streams *s, const size_t at[MR_PNM_GROUPS]) {
    uint32_t level = UINT32_MAX;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        if (at[g] < s->group[g].count && s->group[g].op[at[g]].level < level)
            level = s->group[g].op[at[g]].level;
    return level;
}

static void plan_level(const pnm_streams *s, pnm_plan *plan, size_t at[MR_PNM_GROUPS],
                       bool *strung) {
    uint32_t level = next_level(s, at), groups = 0;
    uint64_t all = 0, most = 0;
    size_t end[MR_PNM_GROUPS];
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        uint64_t cost = 0;
        for (end[g] = at[g]; end[g] < s->group[g].count && s->group[g].op[end[g]].level == level;
             end[g]++)
            cost += s->group[g].op[end[g]].cost;
        groups += end[g] > at[g];
        all += cost;
        most = cost > most ? cost : most;
    }
    bool side_by_side = all - most > WORTH;
    if (*strung && side_by_side)
        cut(plan);
    if (side_by_side || !*strung)
        open_launch(plan, side_by_side ? groups : 1);
    *strung = !side_by_side;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        if (end[g] == at[g])
            continue;
        append(plan, s->group[g].op + at[g], end[g] - at[g]);
        at[g] = end[g];
        if (side_by_side)
            cut(plan);
    }
}

bool pnm_streams_plan(pnm_streams *s, pnm_plan *plan) {
    size_t at[MR_PNM_GROUPS] = {0};
    uint32_t highest = 0;
    bool strung = false;
    *plan = (pnm_plan){0};
    plan->ops = malloc(s->count * MR_PNM_DESC_BYTES + 1);
    plan->cuts = malloc((2 * s->count + 2) * sizeof *plan->cuts);
    plan->launches = malloc((s->count + 1) * sizeof *plan->launches);
    if (!plan->ops || !plan->cuts || !plan->launches) {
        pnm_plan_free(plan);
        return false;
    }
    while (plan->num_ops < s->count)
        plan_level(s, plan, at, &strung);
    if (strung)
        cut(plan);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        if (s->group[g].level > highest)
            highest = s->group[g].level;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        s->group[g].count = 0;
        s->group[g].level = highest; /* all are done with what they had */
        memset(s->group[g].signal, 0, sizeof s->group[g].signal);
    }
    s->count = 0;
    s->cost = 0;
    return true;
}

void pnm_plan_free(pnm_plan *plan) {
    free(plan->ops);
    free(plan->cuts);
    free(plan->launches);
    *plan = (pnm_plan){0};
}

void pnm_streams_free(pnm_streams *s) {
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        free(s->group[g].op);
    *s = (pnm_streams){0};
}
