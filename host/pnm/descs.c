/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: every field against its range, every row and column against who has it. */
#include <stdlib.h>
#include <string.h>

#include "host/pnm/internal.h"

enum { WORDS = MR_PNM_ROW_WORDS, PES = MR_PNM_PES, ROWS = MR_PNM_SCRATCH_ROWS };

const char *pnm_desc_name(unsigned type) {
    static const char *const names[] = {"?",   "LOAD", "STORE", "WLOAD",   "MATVEC", "WSTORE",
                                        "VEC", "SEND", "WAIT",  "BARRIER", "LOOP"};
    return names[type < sizeof names / sizeof names[0] ? type : 0];
}

void pnm_set(uint8_t *desc, unsigned lsb, unsigned bits, uint64_t value) {
    for (unsigned i = 0; i < bits; i++) {
        uint8_t bit = (uint8_t)(1u << ((lsb + i) % 8));
        uint8_t *byte = &desc[(lsb + i) / 8];
        *byte = (uint8_t)(value >> i & 1 ? *byte | bit : *byte & ~bit);
    }
}

uint64_t pnm_get(const uint8_t *desc, unsigned lsb, unsigned bits) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; i++)
        value |= (uint64_t)(desc[(lsb + i) / 8] >> ((lsb + i) % 8) & 1) << i;
    return value;
}

/* ---- A descriptor on its way into a list ------------------------------------------------------
 */

typedef struct draft {
    mr_pnm_builder *b;
    pnm_list *list;
    unsigned group, type;
    pnm_touched rows;
    uint8_t desc[MR_PNM_DESC_BYTES];
} draft;

static bool begin(draft *d, mr_pnm_builder *b, unsigned group, unsigned type) {
    memset(d, 0, sizeof *d);
    d->b = b;
    d->type = type;
    d->group = group;
    if (!pnm_ready(b, group))
        return false;
    d->list = &b->list[group];
    d->desc[0] = (uint8_t)type;
    return true;
}

#define REFUSE(d, status, format, ...)                                                             \
    mr_pnm_b_fail((d)->b, status, "pnm: group %u, descriptor %u (%s): " format, (d)->group,        \
                  (d)->list->count, pnm_desc_name((d)->type), __VA_ARGS__)

/* False with a message when the value is outside low..high. */
static bool within(draft *d, const char *field, unsigned long value, unsigned long low,
                   unsigned long high) {
    if (value >= low && value <= high)
        return true;
    REFUSE(d, MR_INVALID_ARGUMENT, "%s is %lu, not %lu to %lu", field, value, low, high);
    return false;
}

/* `count` places of `size` rows, `stride` apart, all in the scratchpad and given out; into the set.
 */
static bool touch(draft *d, pnm_row_set *set, const char *field, int first, int count, int stride,
                  int size) {
    int last = first + (count - 1) * stride;
    int low = last < first ? last : first, high = last < first ? first : last;
    if (low < 0 || high + size > ROWS) {
        REFUSE(d, MR_INVALID_ARGUMENT, "%s: rows %d to %d; a scratchpad has 0 to %d", field, low,
               high + size - 1, ROWS - 1);
        return false;
    }
    for (int i = 0; i < count; i++) {
        int row = first + i * stride;
        if (!pnm_owns_rows(d->list, (size_t)row, (size_t)size)) {
            REFUSE(d, MR_INVALID_ARGUMENT, "%s: rows %d to %d are not all given out", field, row,
                   row + size - 1);
            return false;
        }
        for (int j = row; j < row + size; j++)
            set->bits[j / 64] |= 1ull << (j % 64);
    }
    return true;
}

static bool columns_ok(draft *d, const char *field, size_t first, size_t columns) {
    if (first + columns > MR_PNM_COLUMNS)
        REFUSE(d, MR_INVALID_ARGUMENT, "%s: columns %zu to %zu; a bank has 0 to %d", field, first,
               first + columns - 1, MR_PNM_COLUMNS - 1);
    else if (!pnm_owns_columns(d->list, first, columns))
        REFUSE(d, MR_INVALID_ARGUMENT, "%s: columns %zu to %zu are not all given out", field, first,
               first + columns - 1);
    return d->b->status == MR_OK;
}

static bool meet(const pnm_row_set *a, const pnm_row_set *b) {
    for (size_t i = 0; i < sizeof a->bits / sizeof a->bits[0]; i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

static bool disjoint(draft *d, const char *name, const pnm_row_set *a, const char *other,
                     const pnm_row_set *b) {
    if (!meet(a, b))
        return true;
    REFUSE(d, MR_INVALID_ARGUMENT, "rows of %s are rows of %s", name, other);
    return false;
}

/* Descriptors of one side run one after the other; of two sides only with `overlap` at once. */
static bool overlap_ok(draft *d, bool overlap) {
    int side = d->type == MR_PNM_DESC_MATVEC || d->type == MR_PNM_DESC_WSTORE ||
                       d->type == MR_PNM_DESC_WLOAD
                   ? PNM_MATRIX_SIDE
                   : PNM_VECTOR_SIDE;
    pnm_list *list = d->list;
    const pnm_touched *other = &list->in_flight[1 - side];
    if (overlap && list->flies[1 - side] &&
        (meet(&d->rows.write, &other->write) || meet(&d->rows.write, &other->read) ||
         meet(&d->rows.read, &other->write))) {
        REFUSE(d, MR_INVALID_ARGUMENT, "%s",
               "overlap: its rows meet those of the descriptor that may still run");
        return false;
    }
    if (!overlap)
        list->flies[1 - side] = false;
    list->flies[side] = true;
    list->in_flight[side] = d->rows;
    return true;
}

static mr_status append(draft *d) {
    pnm_list *list = d->list;
    if (d->b->status != MR_OK)
        return mr_pnm_builder_status(d->b);
    if (d->type >= MR_PNM_DESC_WAIT)
        list->flies[0] = list->flies[1] = false;
    if (list->count == list->room) {
        uint32_t room = list->room ? 2 * list->room : 64;
        void *larger = NULL;
        if (room > list->room)
            larger = realloc(list->desc, (size_t)room * MR_PNM_DESC_BYTES);
        if (!larger)
            return REFUSE(d, MR_OUT_OF_MEMORY, "no memory for %u descriptors", room);
        list->desc = larger;
        list->room = room;
    }
    memcpy(list->desc[list->count++], d->desc, MR_PNM_DESC_BYTES);
    return MR_OK;
}

/* ---- Transfers --------------------------------------------------------------------------------
 */

static bool memory_ok(draft *d, uint64_t addr, uint64_t bytes, uint32_t step) {
    if (addr % 64 || step % 64)
        REFUSE(d, MR_INVALID_ARGUMENT, "address %llu, step %u: not multiples of 64",
               (unsigned long long)addr, step);
    else if (addr > d->b->bytes || bytes > d->b->bytes - addr)
        REFUSE(d, MR_INVALID_ARGUMENT, "bytes %llu to %llu; the image has %zu",
               (unsigned long long)addr, (unsigned long long)(addr + bytes - 1), d->b->bytes);
    return d->b->status == MR_OK;
}

/* LOAD, STORE and WLOAD have the same fields. */
static void set_transfer(draft *d, unsigned count, unsigned first, uint64_t addr, uint32_t step) {
    PNM_SET(d->desc, LOAD_ROWS, count);
    PNM_SET(d->desc, LOAD_ROW, first);
    PNM_SET(d->desc, LOAD_ADDR, addr);
    PNM_SET(d->desc, LOAD_STEP, step);
}

static mr_status transfer(mr_pnm_builder *b, unsigned group, unsigned type, uint16_t row,
                          uint16_t rows, uint64_t addr, uint32_t step) {
    draft d;
    if (!begin(&d, b, group, type))
        return mr_pnm_builder_status(b);
    if (within(&d, "rows", rows, 1, ROWS) &&
        touch(&d, type == MR_PNM_DESC_LOAD ? &d.rows.write : &d.rows.read, "row", row, 1, 0,
              rows) &&
        memory_ok(&d, addr, (uint64_t)rows * WORDS * 4, step))
        overlap_ok(&d, false);
    set_transfer(&d, rows, row, addr, step);
    return append(&d);
}

mr_status mr_pnm_b_load(mr_pnm_builder *b, unsigned group, uint16_t row, uint16_t rows,
                        uint64_t addr, uint32_t step) {
    return transfer(b, group, MR_PNM_DESC_LOAD, row, rows, addr, step);
}

mr_status mr_pnm_b_store(mr_pnm_builder *b, unsigned group, uint16_t row, uint16_t rows,
                         uint64_t addr, uint32_t step) {
    return transfer(b, group, MR_PNM_DESC_STORE, row, rows, addr, step);
}

mr_status mr_pnm_b_wload(mr_pnm_builder *b, unsigned group, uint16_t col, uint16_t columns,
                         uint64_t addr, uint32_t step) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_WLOAD))
        return mr_pnm_builder_status(b);
    if (within(&d, "columns", columns, 1, MR_PNM_COLUMNS) && columns_ok(&d, "col", col, columns) &&
        memory_ok(&d, addr, columns * pnm_column_bytes(b), step))
        overlap_ok(&d, false);
    set_transfer(&d, columns, col, addr, step);
    return append(&d);
}

/* ---- Matrix side ------------------------------------------------------------------------------
 */

static bool matvec_fields(draft *d, const mr_pnm_matvec *a) {
    if (!within(d, "kc", a->kc, 1, MR_PNM_MAX_KC) ||
        !within(d, "vectors", a->vectors, 1, MR_PNM_MAX_VECTORS) ||
        !within(d, "vectors times kc", (unsigned long)a->vectors * a->kc, 1, MR_PNM_ACT_COLUMNS) ||
        !within(d, "outputs", a->outputs, WORDS, 65520) ||
        !within(d, "outputs % 16", a->outputs % WORDS, 0, 0) ||
        !within(d, "mode", a->mode.kind, 0, 2) ||
        !within(d, "log_length", a->mode.log_length, 2, 8) ||
        !within(d, "wexp", a->wexp, 0, a->use_wreg ? MR_PNM_WREGS - 1 : 254))
        return false;
    return columns_ok(d, "col", a->col, (size_t)(a->outputs / PES) * a->kc);
}

static bool matvec_rows(draft *d, const mr_pnm_matvec *a, unsigned run) {
    int size = a->outputs / WORDS, n = a->vectors;
    pnm_row_set y = {{0}}, bias = {{0}}, old = {{0}};
    for (int c = 0; c < a->kc; c += (int)run) {
        int rows = a->kc - c < (int)run ? a->kc - c : (int)run;
        if (!touch(d, &d->rows.read, "x", a->x + c / (int)run * a->x_jump, n, a->x_stride, rows))
            return false;
    }
    if (n > 1 && abs(a->y_stride) < size)
        REFUSE(d, MR_INVALID_ARGUMENT, "y_stride is %d: %d rows a vector meet", a->y_stride, size);
    if (d->b->status != MR_OK || !touch(d, &y, "y", a->y, n, a->y_stride, size) ||
        (a->bias && (!touch(d, &bias, "bias_row", a->bias_row, 1, 0, size) ||
                     !disjoint(d, "y", &y, "bias", &bias))) ||
        (a->accum && !touch(d, &old, "old", a->old, n, a->old_stride, size)))
        return false;
    bool in_place = a->old == a->y && (n == 1 || a->old_stride == a->y_stride);
    if (a->accum && !in_place && !disjoint(d, "y", &y, "old", &old))
        return false;
    for (size_t i = 0; i < sizeof y.bits / sizeof y.bits[0]; i++) {
        d->rows.write.bits[i] = y.bits[i];
        d->rows.read.bits[i] |= bias.bits[i] | old.bits[i];
    }
    return overlap_ok(d, a->overlap);
}

mr_status mr_pnm_b_matvec(mr_pnm_builder *b, unsigned group, const mr_pnm_matvec *a) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_MATVEC))
        return mr_pnm_builder_status(b);
    unsigned run = a->x_run ? a->x_run : a->kc;
    if (!matvec_fields(&d, a) || !matvec_rows(&d, a, run))
        return mr_pnm_builder_status(b);
    uint8_t *t = d.desc;
    PNM_SET(t, MATVEC_OVERLAP, a->overlap);
    PNM_SET(t, MATVEC_BIAS, a->bias);
    PNM_SET(t, MATVEC_ACCUM, a->accum);
    PNM_SET(t, MATVEC_RELU, a->relu);
    PNM_SET(t, MATVEC_USE_WREG, a->use_wreg);
    PNM_SET(t, MATVEC_MODE, a->mode.kind);
    PNM_SET(t, MATVEC_LOG_LENGTH, a->mode.log_length);
    PNM_SET(t, MATVEC_WEXP, a->wexp);
    PNM_SET(t, MATVEC_COL, a->col);
    PNM_SET(t, MATVEC_KC, a->kc);
    PNM_SET(t, MATVEC_OUTPUTS, a->outputs);
    PNM_SET(t, MATVEC_VECTORS, a->vectors);
    PNM_SET(t, MATVEC_X, a->x);
    PNM_SET(t, MATVEC_X_STRIDE, a->x_stride);
    PNM_SET(t, MATVEC_X_RUN, run);
    PNM_SET(t, MATVEC_X_JUMP, a->x_jump);
    PNM_SET(t, MATVEC_Y, a->y);
    PNM_SET(t, MATVEC_Y_STRIDE, a->y_stride);
    PNM_SET(t, MATVEC_BIAS_ROW, a->bias ? a->bias_row : 0);
    PNM_SET(t, MATVEC_OLD, a->accum ? a->old : 0);
    PNM_SET(t, MATVEC_OLD_STRIDE, a->accum ? a->old_stride : 0);
    return append(&d);
}

static bool wstore_fields(draft *d, const mr_pnm_wstore *a) {
    if (!within(d, "wreg", a->wreg, 0, MR_PNM_WREGS - 1) ||
        !within(d, "kc", a->kc, 1, MR_PNM_MAX_KC) || !within(d, "vectors", a->vectors, 1, 65535) ||
        !within(d, "length", a->length, WORDS, 65520) ||
        !within(d, "length % 16", a->length % WORDS, 0, 0))
        return false;
    size_t end = (size_t)a->first + a->vectors;
    if (a->transposed)
        return within(d, "first + vectors", end, 1, (size_t)a->kc * WORDS) &&
               columns_ok(d, "col", a->col, (size_t)(a->length / PES) * a->kc);
    return within(d, "length", a->length, (size_t)a->kc * WORDS, (size_t)a->kc * WORDS) &&
           columns_ok(d, "col", a->col, (end + PES - 1) / PES * a->kc);
}

mr_status mr_pnm_b_wstore(mr_pnm_builder *b, unsigned group, const mr_pnm_wstore *a) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_WSTORE))
        return mr_pnm_builder_status(b);
    if (!wstore_fields(&d, a) ||
        !touch(&d, &d.rows.read, "x", a->x, a->vectors, a->x_stride, a->length / WORDS) ||
        !overlap_ok(&d, a->overlap))
        return mr_pnm_builder_status(b);
    uint8_t *t = d.desc;
    PNM_SET(t, WSTORE_OVERLAP, a->overlap);
    PNM_SET(t, WSTORE_TRANSPOSED, a->transposed);
    PNM_SET(t, WSTORE_RESET, a->reset);
    PNM_SET(t, WSTORE_WREG, a->wreg);
    PNM_SET(t, WSTORE_COL, a->col);
    PNM_SET(t, WSTORE_KC, a->kc);
    PNM_SET(t, WSTORE_LENGTH, a->length);
    PNM_SET(t, WSTORE_VECTORS, a->vectors);
    PNM_SET(t, WSTORE_X, a->x);
    PNM_SET(t, WSTORE_X_STRIDE, a->x_stride);
    PNM_SET(t, WSTORE_FIRST, a->first);
    return append(&d);
}

/* ---- Vector side ------------------------------------------------------------------------------
 */

/* An operand of VEC, and that d does not write rows of it before it is read. */
static bool vec_operand(draft *d, const mr_pnm_vec *a, const char *field, uint8_t kind,
                        uint16_t row, int16_t stride) {
    pnm_row_set set = {{0}};
    bool element = kind == MR_PNM_ELEM;
    if (kind != MR_PNM_ELEM && kind != MR_PNM_SCALAR)
        return true;
    if (element ? !touch(d, &set, field, row, a->count, stride, a->width)
                : !touch(d, &set, field, row, 1, 0, (a->count + WORDS - 1) / WORDS))
        return false;
    bool in_place = element && a->reduce == MR_PNM_KEEP && row == a->d &&
                    (a->count == 1 || stride == a->d_stride);
    for (size_t i = 0; i < sizeof set.bits / sizeof set.bits[0]; i++)
        d->rows.read.bits[i] |= set.bits[i];
    return in_place || disjoint(d, "d", &d->rows.write, field, &set);
}

static bool vec_rows(draft *d, const mr_pnm_vec *a) {
    bool keep = a->reduce == MR_PNM_KEEP;
    if (keep && a->count > 1 && abs(a->d_stride) < a->width) {
        REFUSE(d, MR_INVALID_ARGUMENT, "d_stride is %d: %d rows a vector meet", a->d_stride,
               a->width);
        return false;
    }
    if (keep ? !touch(d, &d->rows.write, "d", a->d, a->count, a->d_stride, a->width)
             : !touch(d, &d->rows.write, "d", a->d, 1, 0, (a->count + WORDS - 1) / WORDS))
        return false;
    return vec_operand(d, a, "a", MR_PNM_ELEM, a->a, a->a_stride) &&
           vec_operand(d, a, "b", a->mul, a->b, a->b_stride) &&
           vec_operand(d, a, "c", a->add, a->c, a->c_stride) && overlap_ok(d, a->overlap);
}

mr_status mr_pnm_b_vec(mr_pnm_builder *b, unsigned group, const mr_pnm_vec *a) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_VEC))
        return mr_pnm_builder_status(b);
    if (!within(&d, "count", a->count, 1, 65535) || !within(&d, "width", a->width, 1, ROWS) ||
        !within(&d, "fn", a->fn, 0, 3) || !within(&d, "mul", a->mul, 0, 3) ||
        !within(&d, "add", a->add, 0, 3) || !within(&d, "reduce", a->reduce, 0, 2) ||
        !vec_rows(&d, a))
        return mr_pnm_builder_status(b);
    uint32_t imm[2];
    memcpy(&imm[0], &a->imm_m, 4);
    memcpy(&imm[1], &a->imm_c, 4);
    uint8_t *t = d.desc;
    PNM_SET(t, VEC_OVERLAP, a->overlap);
    PNM_SET(t, VEC_FN, a->fn);
    PNM_SET(t, VEC_MUL, a->mul);
    PNM_SET(t, VEC_ADD, a->add);
    PNM_SET(t, VEC_NEG_MUL, a->neg_mul);
    PNM_SET(t, VEC_NEG_ADD, a->neg_add);
    PNM_SET(t, VEC_REDUCE, a->reduce);
    PNM_SET(t, VEC_COUNT, a->count);
    PNM_SET(t, VEC_WIDTH, a->width);
    PNM_SET(t, VEC_D, a->d);
    PNM_SET(t, VEC_D_STRIDE, a->d_stride);
    PNM_SET(t, VEC_A, a->a);
    PNM_SET(t, VEC_A_STRIDE, a->a_stride);
    PNM_SET(t, VEC_B, a->b);
    PNM_SET(t, VEC_B_STRIDE, a->b_stride);
    PNM_SET(t, VEC_C, a->c);
    PNM_SET(t, VEC_C_STRIDE, a->c_stride);
    PNM_SET(t, VEC_IMM_M, imm[0]);
    PNM_SET(t, VEC_IMM_C, imm[1]);
    return append(&d);
}

/* ---- Between groups ---------------------------------------------------------------------------
 */

mr_status mr_pnm_b_send(mr_pnm_builder *b, unsigned group, unsigned receiver, unsigned sem,
                        uint16_t row, uint16_t rows, uint16_t to) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_SEND))
        return mr_pnm_builder_status(b);
    if (within(&d, "group", receiver, 0, b->groups - 1) &&
        within(&d, "sem", sem, 0, MR_PNM_SEMAPHORES - 1) &&
        (!rows || touch(&d, &d.rows.read, "row", row, 1, 0, rows))) {
        if ((size_t)to + rows > ROWS || !pnm_owns_rows(&b->list[receiver], to, rows))
            REFUSE(&d, MR_INVALID_ARGUMENT, "to: rows %u to %u of group %u are not all given out",
                   to, to + rows - 1u, receiver);
        else
            overlap_ok(&d, false);
    }
    PNM_SET(d.desc, SEND_GROUP, receiver);
    PNM_SET(d.desc, SEND_SEM, sem);
    PNM_SET(d.desc, SEND_ROWS, rows);
    PNM_SET(d.desc, SEND_ROW, row);
    PNM_SET(d.desc, SEND_TO, to);
    return append(&d);
}

mr_status mr_pnm_b_wait(mr_pnm_builder *b, unsigned group, unsigned sem, uint16_t count) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_WAIT))
        return mr_pnm_builder_status(b);
    if (within(&d, "sem", sem, 0, MR_PNM_SEMAPHORES - 1))
        within(&d, "count", count, 1, 65535);
    PNM_SET(d.desc, WAIT_SEM, sem);
    PNM_SET(d.desc, WAIT_COUNT, count);
    return append(&d);
}

mr_status mr_pnm_b_barrier(mr_pnm_builder *b, unsigned group, uint32_t groups) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_BARRIER))
        return mr_pnm_builder_status(b);
    if (groups >= 1u << b->groups || !(groups >> group & 1))
        REFUSE(&d, MR_INVALID_ARGUMENT, "groups 0x%x: own bit missing, or a group without program",
               groups);
    PNM_SET(d.desc, BARRIER_GROUPS, groups);
    return append(&d);
}

uint32_t mr_pnm_b_here(const mr_pnm_builder *b, unsigned group) {
    return group < b->groups ? b->list[group].count : 0;
}

/* The last iteration's bytes. */
static bool last_iteration_ok(draft *d, uint32_t i, uint32_t count) {
    const uint8_t *t = d->list->desc[i];
    if (t[0] != MR_PNM_DESC_LOAD && t[0] != MR_PNM_DESC_STORE && t[0] != MR_PNM_DESC_WLOAD)
        return true;
    uint64_t item = t[0] == MR_PNM_DESC_WLOAD ? pnm_column_bytes(d->b) : WORDS * 4;
    uint64_t bytes = PNM_GET(t, LOAD_ROWS) * item, step = PNM_GET(t, LOAD_STEP);
    uint64_t end = PNM_GET(t, LOAD_ADDR) + bytes + (uint64_t)(count - 1) * step;
    if (end <= d->b->bytes)
        return true;
    REFUSE(d, MR_INVALID_ARGUMENT,
           "the %s at %u ends at byte %llu in iteration %u; the image has %zu", pnm_desc_name(t[0]),
           i, (unsigned long long)end, count, d->b->bytes);
    return false;
}

mr_status mr_pnm_b_loop(mr_pnm_builder *b, unsigned group, uint32_t target, uint32_t count) {
    draft d;
    if (!begin(&d, b, group, MR_PNM_DESC_LOOP))
        return mr_pnm_builder_status(b);
    uint32_t here = d.list->count;
    bool ok = within(&d, "count", count, 1, UINT32_MAX);
    if (ok && (target < d.list->loop_floor || target >= here))
        REFUSE(&d, MR_INVALID_ARGUMENT,
               "target %u: a body has a descriptor or more, %u to %u, and no loop in it", target,
               d.list->loop_floor, here - (here > 0));
    for (uint32_t i = target; b->status == MR_OK && i < here && last_iteration_ok(&d, i, count);)
        i++;
    d.list->loop_floor = here + 1;
    PNM_SET(d.desc, LOOP_TARGET, target);
    PNM_SET(d.desc, LOOP_COUNT, count);
    return append(&d);
}
