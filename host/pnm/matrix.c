/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices: into the layout of the banks, and the MATVECs that use one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/pnm/internal.h"
#include "models/golden/pnm.h"

enum { WORDS = MR_PNM_ROW_WORDS, PES = MR_PNM_PES, PART = MR_PNM_PART_COLUMNS };

static uint32_t part_columns(const mr_pnm_matrix *m, uint32_t part) {
    uint32_t left = m->kc - part * PART;
    return left < PART ? left : PART;
}

static mr_status check_values(mr_pnm_builder *b, const char *name, const float *w, size_t outputs,
                              size_t inputs, size_t stride) {
    for (size_t m = 0; m < outputs; m++)
        for (size_t k = 0; k < inputs; k++) {
            float v = w[m * stride + k];
            uint32_t bits;
            memcpy(&bits, &v, sizeof bits);
            if (!isfinite(v))
                return mr_pnm_b_fail(b, MR_BAD_FORMAT, "%s: weight [%zu, %zu] is %s", name, m, k,
                                     isnan(v) ? "NaN" : "infinite");
            if (!b->wide && (mr_pnm_bf16(bits) & 0x7F80) == 0x7F80)
                return mr_pnm_b_fail(b, MR_BAD_FORMAT,
                                     "%s: weight [%zu, %zu] is %g, infinite in bf16", name, m, k,
                                     (double)v);
        }
    return MR_OK;
}

mr_status mr_pnm_b_matrix(mr_pnm_builder *b, const char *name, const float *w, size_t outputs,
                          size_t inputs, size_t stride, mr_pnm_matrix *out) {
    memset(out, 0, sizeof *out);
    if (!pnm_ready(b, 0))
        return mr_pnm_builder_status(b);
    if (!outputs || !inputs || stride < inputs)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "%s: a matrix of %zu x %zu, rows %zu apart",
                             name, outputs, inputs, stride);
    size_t most = (size_t)MR_PNM_COLUMNS * PES * WORDS;
    size_t kc = inputs / WORDS + (inputs % WORDS != 0);
    size_t padded = outputs / WORDS + (outputs % WORDS != 0);
    if (kc > most || padded > most || padded * (WORDS / PES) > MR_PNM_COLUMNS / kc)
        return mr_pnm_b_fail(b, MR_LIMIT,
                             "%s: %zu x %zu is more than the banks of a group hold (%zu weights)",
                             name, outputs, inputs, most);
    mr_status status = check_values(b, name, w, outputs, inputs, stride);
    if (status != MR_OK)
        return status;
    out->kc = (uint32_t)kc;
    out->outputs = (uint32_t)(padded * WORDS);
    out->parts = (uint32_t)((kc + PART - 1) / PART);
    out->columns = (uint32_t)(padded * (WORDS / PES) * kc);
    status = mr_pnm_b_memory(b, out->columns * pnm_column_bytes(b), name, &out->addr);
    if (status != MR_OK)
        return status;
    uint8_t *image = b->image + out->addr;
    size_t column = 0, item = b->wide ? 4 : 2;
    for (uint32_t p = 0; p < out->parts; p++) {
        size_t pkc = part_columns(out, p), k0 = (size_t)p * PART * WORDS;
        for (size_t m = 0; m < outputs; m++)
            for (size_t k = k0; k < inputs && k < k0 + pkc * WORDS; k++) {
                size_t col = column + m / PES * pkc + (k - k0) / WORDS;
                uint8_t *at = image + ((col * PES + m % PES) * WORDS + k % WORDS) * item;
                uint32_t bits;
                memcpy(&bits, &w[m * stride + k], sizeof bits);
                uint16_t code = mr_pnm_bf16(bits);
                uint8_t e = code >> 7 & 0xFF;
                if (b->wide)
                    memcpy(at, &bits, sizeof bits);
                else
                    memcpy(at, &code, sizeof code);
                if (e != 255 && e > out->wexp[p])
                    out->wexp[p] = e;
            }
        column += out->outputs / PES * pkc;
    }
    return MR_OK;
}

mr_status mr_pnm_b_wload_matrix(mr_pnm_builder *b, unsigned group, const mr_pnm_matrix *m,
                                uint16_t col) {
    return mr_pnm_b_wload(b, group, col, (uint16_t)m->columns, m->addr, 0);
}

/* Whether any row of the results is one of the inputs: then one MATVEC has to do it all. */
static bool results_on_inputs(const mr_pnm_matvec *a, uint32_t run, uint32_t kc) {
    bool *written = calloc(MR_PNM_SCRATCH_ROWS, sizeof *written);
    bool meet = written == NULL;
    for (int n = 0; !meet && n < a->vectors; n++)
        for (int i = 0; i < a->outputs / WORDS; i++) {
            int row = a->y + n * a->y_stride + i;
            if (row >= 0 && row < MR_PNM_SCRATCH_ROWS)
                written[row] = true;
        }
    for (int n = 0; !meet && n < a->vectors; n++)
        for (uint32_t c = 0; !meet && c < kc; c++) {
            int row = a->x + n * a->x_stride + (int)(c / run) * a->x_jump + (int)(c % run);
            meet = row >= 0 && row < MR_PNM_SCRATCH_ROWS && written[row];
        }
    free(written);
    return meet;
}

mr_status mr_pnm_b_multiply(mr_pnm_builder *b, unsigned group, const mr_pnm_matrix *m,
                            const mr_pnm_matvec *args) {
    if (!pnm_ready(b, group))
        return mr_pnm_builder_status(b);
    mr_pnm_matvec all = *args;
    uint32_t run = args->x_run ? args->x_run : m->kc, col = args->col;
    uint32_t most = MR_PNM_ACT_COLUMNS / (m->kc < PART ? m->kc : PART);
    if (most > MR_PNM_MAX_VECTORS)
        most = MR_PNM_MAX_VECTORS;
    all.outputs = (uint16_t)m->outputs;
    all.use_wreg = false;
    if (!m->kc || !m->parts)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT, "pnm: a matrix that was never packed");
    if (m->parts > 1 && run < m->kc && PART % run)
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                             "pnm: inputs in runs of %u columns do not divide a part of %d", run,
                             PART);
    if ((m->parts > 1 || all.vectors > most) && results_on_inputs(&all, run, m->kc))
        return mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                             "pnm: results on rows of inputs that a later MATVEC reads");
    mr_status status = MR_OK;
    for (uint32_t p = 0; status == MR_OK && p < m->parts; p++) {
        mr_pnm_matvec one = all;
        uint32_t first = p * PART;
        one.col = (uint16_t)col;
        one.kc = (uint16_t)part_columns(m, p);
        one.wexp = m->wexp[p];
        one.x_run = (uint16_t)(run < one.kc ? run : one.kc);
        one.relu = all.relu && p + 1 == m->parts;
        if (p) { /* the sum so far */
            one.bias = false;
            one.accum = true;
            one.old_stride = all.y_stride;
        }
        for (uint32_t n = 0; status == MR_OK && n < all.vectors; n += most) {
            one.vectors = (uint16_t)(all.vectors - n < most ? all.vectors - n : most);
            one.x = (uint16_t)(all.x + (int)n * all.x_stride + (int)(first / run) * all.x_jump +
                               (int)(first % run));
            one.y = (uint16_t)(all.y + (int)n * all.y_stride);
            one.old = p ? one.y : (uint16_t)(all.old + (int)n * all.old_stride);
            status = mr_pnm_b_matvec(b, group, &one);
        }
        col += m->outputs / PES * one.kc;
    }
    return status;
}
