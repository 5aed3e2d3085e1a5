/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of the hybrid multiplier over all 128 x 128 pairs of fractions.
 *   (nothing)   a Markdown table: every generator and cut, L = 4..256
 *   --search    offsets and biases by the criterion of docs/pnm-arithmetic.md, one JSON row a cut
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/golden/pnm_mult.h"
#include "tests/unit/pnm/mult_error.h"

static uint16_t table[MR_PNM_TABLE];

static void print_row(mr_pnm_mult_mode *m) {
    printf("| %s | %s", mr_pnm_gen_name((int)m->gen), mr_pnm_kind_name((int)m->kind));
    printf(m->kind == MR_PNM_FULL ? " | -" : " | %u", m->cut);
    for (m->stream = 4; m->stream <= 256; m->stream *= 2) {
        if (mr_pnm_mult_table(m, table) != 0)
            exit(1);
        mult_error e = mult_error_of(table);
        printf(" | %.5f (%+.5f)", e.rms, e.mean);
    }
    printf(" |\n");
}

/*
 * The least RMS among the offsets and biases whose mean stays below a tenth of it; where no
 * bias reaches that (results in steps too coarse), the least mean. Ties go to the bias nearest to
 * zero. RMS is a parabola in the bias, so a coarse walk finds where the fine one has to look.
 */
typedef struct {
    int offset, bias;
    mult_error e;
} choice;

static bool fits(const mult_error *e) { return fabs(e->mean) <= e->rms / 10; }

static bool better(const mult_error *a, const mult_error *b) {
    bool fits_a = fits(a), fits_b = fits(b);
    if (fits_a != fits_b)
        return fits_a;
    return fits_a ? a->rms < b->rms : fabs(a->mean) < fabs(b->mean);
}

static mult_error error_at(const mr_pnm_mult_mode *m, int offset, int bias) {
    if (mr_pnm_mult_table_at(m, offset, bias, table) != 0)
        exit(1);
    return mult_error_of(table);
}

/* 0, 1, -1, 2, -2, ... */
static int outwards(int i) { return i & 1 ? (i + 1) / 2 : -i / 2; }

static choice search(const mr_pnm_mult_mode *m) {
    choice best = {0, 0, {9, 9, 9}};
    int last = m->gen == MR_PNM_UNARY || m->gen == MR_PNM_CENTRED ? 8 : 0;
    for (int offset = 0; offset <= last; offset++) {
        int near = 0;
        double least = 9;
        for (int i = 0; i <= 80; i++) { /* from the middle outwards */
            int bias = 8 * outwards(i);
            double rms = error_at(m, offset, bias).rms;
            if (rms < least) {
                least = rms;
                near = bias;
            }
        }
        /* where products are clamped the mean is zero far from the least RMS */
        for (int i = 0; i <= 24 || (i <= 200 && !fits(&best.e)); i++) {
            int bias = near + outwards(i);
            choice c = {offset, bias, error_at(m, offset, bias)};
            if (better(&c.e, &best.e))
                best = c;
        }
    }
    return best;
}

static void search_row(mr_pnm_mult_mode *m) {
    choice c[7];
    for (int at = 0; at < 7; at++) {
        m->stream = 4u << at;
        c[at] = search(m);
    }
    printf("%s %s cut %u: {\"offset\": [", mr_pnm_gen_name((int)m->gen),
           mr_pnm_kind_name((int)m->kind), m->cut);
    for (int at = 0; at < 7; at++)
        printf("%s%d", at ? ", " : "", c[at].offset);
    printf("], \"bias\": [");
    for (int at = 0; at < 7; at++)
        printf("%s%d", at ? ", " : "", c[at].bias);
    printf("]}\n");
    fflush(stdout);
}

/* Calls `row` for every generator, mode and cut there is. */
static void every(void (*row)(mr_pnm_mult_mode *)) {
    for (int gen = 0; mr_pnm_gen_name(gen); gen++) {
        mr_pnm_mult_mode m = mr_pnm_mult_default();
        m.gen = (mr_pnm_gen)gen;
        for (m.cut = 0; m.cut <= MR_PNM_CUT_MAX; m.cut++)
            row(&m);
        m.cut = 0;
        m.stream = MR_PNM_STREAM_MAX;
        m.kind = MR_PNM_FULL;
        if (!mr_pnm_mult_check(&m))
            row(&m);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--search")) {
        every(search_row);
        return 0;
    }
    if (argc != 1) {
        fprintf(stderr, "usage: mult_table [--search]\n");
        return 2;
    }
    printf("Relative to the exact product, all 16,384 pairs of fractions: RMS (mean).\n\n");
    printf("| generator | mode | cut");
    for (int length = 4; length <= 256; length *= 2)
        printf(" | L = %d", length);
    printf(" |\n|---|---|---|---|---|---|---|---|---|---|\n");
    every(print_row);
    return 0;
}
