/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the descriptors' fields, and the scratchpad rows a descriptor touches. */
#include "models/golden/pnm_internal.h"

enum { ROWS = MR_PNM_SCRATCH_ROWS, COLUMNS = MR_PNM_COLUMNS };

/* `count` places of `size` rows, `stride` apart from the first: all within the scratchpad? */
static bool within(uint64_t first, uint64_t count, int64_t stride, uint64_t size) {
    int64_t last = (int64_t)first + ((int64_t)count - 1) * stride;
    int64_t low = last < (int64_t)first ? last : (int64_t)first;
    int64_t high = last < (int64_t)first ? (int64_t)first : last;
    return low >= 0 && high + (int64_t)size <= ROWS;
}

static bool transfer_ok(const uint8_t *d) {
    uint64_t size = FIELD(d, LOAD_ROWS), first = FIELD(d, LOAD_ROW);
    uint64_t end = d[0] == MR_PNM_DESC_WLOAD ? COLUMNS : ROWS;
    return size && first + size <= end && FIELD(d, LOAD_ADDR) % 64 == 0 &&
           FIELD(d, LOAD_STEP) % 64 == 0;
}

/* Rows of the activations: `runs` pieces of a vector, the last one shorter. */
static bool inputs_ok(const uint8_t *d) {
    uint64_t kc = FIELD(d, MATVEC_KC), run = FIELD(d, MATVEC_X_RUN), n = FIELD(d, MATVEC_VECTORS);
    if (!run)
        return false;
    int64_t jump = SIGNED_FIELD(d, MATVEC_X_JUMP), stride = SIGNED_FIELD(d, MATVEC_X_STRIDE);
    for (uint64_t c = 0; c < kc; c += run) {
        int64_t at = (int64_t)FIELD(d, MATVEC_X) + (int64_t)(c / run) * jump;
        uint64_t size = kc - c < run ? kc - c : run;
        if (at < 0 || !within((uint64_t)at, n, stride, size))
            return false;
    }
    return true;
}

static bool matvec_ok(const uint8_t *d) {
    uint64_t kc = FIELD(d, MATVEC_KC), m = FIELD(d, MATVEC_OUTPUTS), n = FIELD(d, MATVEC_VECTORS);
    uint64_t rows = m / WORDS, wexp = FIELD(d, MATVEC_WEXP);
    if (kc < 1 || kc > MR_PNM_MAX_KC || !m || m % WORDS || !n || n > MR_PNM_MAX_VECTORS ||
        n * kc > MR_PNM_ACT_COLUMNS || FIELD(d, MATVEC_MODE) > MR_PNM_EXACT ||
        FIELD(d, MATVEC_LOG_LENGTH) < 2 || FIELD(d, MATVEC_LOG_LENGTH) > 8)
        return false;
    if (FIELD(d, MATVEC_USE_WREG) ? wexp >= MR_PNM_WREGS : wexp > 254)
        return false;
    return FIELD(d, MATVEC_COL) + m / PES * kc <= COLUMNS && inputs_ok(d) &&
           within(FIELD(d, MATVEC_Y), n, SIGNED_FIELD(d, MATVEC_Y_STRIDE), rows) &&
           (!FIELD(d, MATVEC_BIAS) || within(FIELD(d, MATVEC_BIAS_ROW), 1, 0, rows)) &&
           (!FIELD(d, MATVEC_ACCUM) ||
            within(FIELD(d, MATVEC_OLD), n, SIGNED_FIELD(d, MATVEC_OLD_STRIDE), rows));
}

static bool wstore_ok(const uint8_t *d) {
    uint64_t kc = FIELD(d, WSTORE_KC), length = FIELD(d, WSTORE_LENGTH);
    uint64_t n = FIELD(d, WSTORE_VECTORS), end = FIELD(d, WSTORE_FIRST) + n;
    if (kc < 1 || kc > MR_PNM_MAX_KC || !length || length % WORDS || !n ||
        FIELD(d, WSTORE_WREG) >= MR_PNM_WREGS ||
        !within(FIELD(d, WSTORE_X), n, SIGNED_FIELD(d, WSTORE_X_STRIDE), length / WORDS))
        return false;
    if (FIELD(d, WSTORE_TRANSPOSED))
        return end <= kc * WORDS && FIELD(d, WSTORE_COL) + length / PES * kc <= COLUMNS;
    return length == kc * WORDS && FIELD(d, WSTORE_COL) + (end + PES - 1) / PES * kc <= COLUMNS;
}

static bool operand_ok(uint64_t kind, uint64_t row, int64_t stride, uint64_t n, uint64_t width) {
    if (kind == 2)
        return within(row, n, stride, width);
    return kind != 3 || within(row, 1, 0, (n + WORDS - 1) / WORDS);
}

static bool vec_ok(const uint8_t *d) {
    uint64_t n = FIELD(d, VEC_COUNT), width = FIELD(d, VEC_WIDTH), reduce = FIELD(d, VEC_REDUCE);
    if (!n || !width || FIELD(d, VEC_FN) > 3 || reduce > 2)
        return false;
    return within(FIELD(d, VEC_A), n, SIGNED_FIELD(d, VEC_A_STRIDE), width) &&
           operand_ok(FIELD(d, VEC_MUL), FIELD(d, VEC_B), SIGNED_FIELD(d, VEC_B_STRIDE), n,
                      width) &&
           operand_ok(FIELD(d, VEC_ADD), FIELD(d, VEC_C), SIGNED_FIELD(d, VEC_C_STRIDE), n,
                      width) &&
           operand_ok(reduce ? 3 : 2, FIELD(d, VEC_D), SIGNED_FIELD(d, VEC_D_STRIDE), n, width);
}

bool pnm_fields_ok(const uint8_t *d) {
    switch (d[0]) {
    case MR_PNM_DESC_LOAD:
    case MR_PNM_DESC_STORE:
    case MR_PNM_DESC_WLOAD:
        return transfer_ok(d);
    case MR_PNM_DESC_MATVEC:
        return matvec_ok(d);
    case MR_PNM_DESC_WSTORE:
        return wstore_ok(d);
    case MR_PNM_DESC_VEC:
        return vec_ok(d);
    case MR_PNM_DESC_SEND:
        return FIELD(d, SEND_GROUP) < MR_PNM_GROUPS && FIELD(d, SEND_SEM) < MR_PNM_SEMAPHORES &&
               FIELD(d, SEND_ROW) + FIELD(d, SEND_ROWS) <= ROWS &&
               FIELD(d, SEND_TO) + FIELD(d, SEND_ROWS) <= ROWS;
    case MR_PNM_DESC_WAIT:
        return FIELD(d, WAIT_SEM) < MR_PNM_SEMAPHORES && FIELD(d, WAIT_COUNT) > 0;
    case MR_PNM_DESC_BARRIER:
        return FIELD(d, BARRIER_GROUPS) < 1u << MR_PNM_GROUPS;
    default:
        return FIELD(d, LOOP_COUNT) > 0;
    }
}

/* ---- Rows touched -----------------------------------------------------------------------------
 */

static void mark(uint64_t *set, uint64_t first, uint64_t count, int64_t stride, uint64_t size) {
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < size; j++) {
            uint64_t row = (uint64_t)((int64_t)first + (int64_t)i * stride) + j;
            set[row / 64] |= 1ull << (row % 64);
        }
}

static void mark_matvec(const uint8_t *d, pnm_rows *rows) {
    uint64_t n = FIELD(d, MATVEC_VECTORS), size = FIELD(d, MATVEC_OUTPUTS) / WORDS;
    uint64_t run = FIELD(d, MATVEC_X_RUN), kc = FIELD(d, MATVEC_KC);
    for (uint64_t c = 0; c < kc; c++)
        mark(rows->read,
             (uint64_t)((int64_t)FIELD(d, MATVEC_X) +
                        (int64_t)(c / run) * SIGNED_FIELD(d, MATVEC_X_JUMP)) +
                 c % run,
             n, SIGNED_FIELD(d, MATVEC_X_STRIDE), 1);
    mark(rows->write, FIELD(d, MATVEC_Y), n, SIGNED_FIELD(d, MATVEC_Y_STRIDE), size);
    if (FIELD(d, MATVEC_BIAS))
        mark(rows->read, FIELD(d, MATVEC_BIAS_ROW), 1, 0, size);
    if (FIELD(d, MATVEC_ACCUM))
        mark(rows->read, FIELD(d, MATVEC_OLD), n, SIGNED_FIELD(d, MATVEC_OLD_STRIDE), size);
}

static void mark_operand(uint64_t *set, uint64_t kind, uint64_t row, int64_t stride, uint64_t n,
                         uint64_t width) {
    if (kind == 2)
        mark(set, row, n, stride, width);
    else if (kind == 3)
        mark(set, row, 1, 0, (n + WORDS - 1) / WORDS);
}

static void mark_vec(const uint8_t *d, pnm_rows *rows) {
    uint64_t n = FIELD(d, VEC_COUNT), width = FIELD(d, VEC_WIDTH);
    mark(rows->read, FIELD(d, VEC_A), n, SIGNED_FIELD(d, VEC_A_STRIDE), width);
    mark_operand(rows->read, FIELD(d, VEC_MUL), FIELD(d, VEC_B), SIGNED_FIELD(d, VEC_B_STRIDE), n,
                 width);
    mark_operand(rows->read, FIELD(d, VEC_ADD), FIELD(d, VEC_C), SIGNED_FIELD(d, VEC_C_STRIDE), n,
                 width);
    mark_operand(rows->write, FIELD(d, VEC_REDUCE) ? 3 : 2, FIELD(d, VEC_D),
                 SIGNED_FIELD(d, VEC_D_STRIDE), n, width);
}

void pnm_rows_of(const uint8_t *d, pnm_rows *rows) {
    memset(rows, 0, sizeof *rows);
    switch (d[0]) {
    case MR_PNM_DESC_LOAD:
        mark(rows->write, FIELD(d, LOAD_ROW), 1, 0, FIELD(d, LOAD_ROWS));
        break;
    case MR_PNM_DESC_STORE:
        mark(rows->read, FIELD(d, STORE_ROW), 1, 0, FIELD(d, STORE_ROWS));
        break;
    case MR_PNM_DESC_SEND:
        mark(rows->read, FIELD(d, SEND_ROW), 1, 0, FIELD(d, SEND_ROWS));
        break;
    case MR_PNM_DESC_MATVEC:
        mark_matvec(d, rows);
        break;
    case MR_PNM_DESC_WSTORE:
        mark(rows->read, FIELD(d, WSTORE_X), FIELD(d, WSTORE_VECTORS),
             SIGNED_FIELD(d, WSTORE_X_STRIDE), FIELD(d, WSTORE_LENGTH) / WORDS);
        break;
    case MR_PNM_DESC_VEC:
        mark_vec(d, rows);
        break;
    default: /* WLOAD: none */
        break;
    }
}

bool pnm_rows_meet(const pnm_rows *a, const pnm_rows *b) {
    for (size_t i = 0; i < sizeof a->read / sizeof a->read[0]; i++)
        if ((a->write[i] & (b->read[i] | b->write[i])) | (a->read[i] & b->write[i]))
            return true;
    return false;
}
