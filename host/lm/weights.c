/* SPDX-License-Identifier: Apache-2.0 */
/* Generated matrices: ordered ahead of their use, two in flight; or expanded once by the
 * definition. */
#include "host/lm/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/core/error.h"

/* ---- expanded once ----------------------------------------------------------------------------
 */

/* Nearest bf16 of a double, ties to even, in one rounding. Finite arguments; zero is +0. */
static uint16_t round_bf16(double v) {
    if (v == 0)
        return 0;
    int exponent;
    double m = frexp(fabs(v), &exponent);             /* m in [1/2, 1) */
    int drop = exponent < -125 ? -125 - exponent : 0; /* below the smallest normal 2^-126 */
    double scaled = ldexp(m, 8 - (drop > 20 ? 20 : drop));
    double whole = nearbyint(scaled);
    float f = (float)ldexp(whole, exponent - 8 + (drop > 20 ? 20 : drop));
    uint32_t bits;
    f = v < 0 ? -f : f;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static mr_status expand(const mr_projection *p, uint16_t *to) {
    const mr_seed *s = &p->seed;
    size_t d = (size_t)1 << s->n;
    double *w = malloc(d * d * sizeof *w);
    if (!w)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", p->name);
    int failed = 0;
    for (size_t o = 0; !failed && o < mr_seed_chunks_out(s); o++)
        for (size_t i = 0; !failed && i < mr_seed_chunks_in(s); i++) {
            memset(w, 0, d * d * sizeof *w);
            failed = mr_def_chunk(s, o, i, w);
            for (size_t r = 0; r < d && o * d + r < s->d_out; r++)
                for (size_t c = 0; c < d && i * d + c < s->d_in; c++) {
                    double scale = s->row_scale ? (double)s->row_scale[o * d + r] : 1.0;
                    to[(o * d + r) * s->d_in + i * d + c] = round_bf16(w[r * d + c] * scale);
                }
        }
    free(w);
    return failed ? mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", p->name) : MR_OK;
}

/* The definition is slow: several threads take one matrix after the other. */
typedef struct {
    const mr_lm_model *m;
    const volatile sig_atomic_t *stop;
    uint16_t **made; /* by factor id */
    atomic_size_t next;
    atomic_bool failed;
} expansion;

static void *expander(void *context) {
    expansion *x = context;
    for (;;) {
        size_t i = atomic_fetch_add(&x->next, 1);
        if (i >= x->m->num_factors || atomic_load(&x->failed) || (x->stop && *x->stop))
            return NULL;
        const mr_lm_factor *f = x->m->factors[i];
        if (f->kind != MR_LM_SEED)
            continue;
        x->made[i] = malloc(f->rows * f->cols * sizeof(uint16_t));
        if (!x->made[i] || expand(f->seed, x->made[i]) != MR_OK)
            atomic_store(&x->failed, true);
    }
}

static mr_status run_expanders(expansion *x) {
    pthread_t thread[8];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = 0, want = cores < 1 ? 1 : cores > 8 ? 8 : (int)cores;
    while (threads + 1 < want && !pthread_create(&thread[threads], NULL, expander, x))
        threads++;
    expander(x);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    if (x->stop && *x->stop)
        return mr_fail(MR_CANCELLED, "interrupted");
    return x->failed ? mr_fail(MR_OUT_OF_MEMORY, "out of memory while matrices were expanded")
                     : MR_OK;
}

static mr_status expand_all(mr_lm *lm) {
    size_t count = lm->m->num_factors;
    expansion x = {.m = lm->m, .stop = lm->o.stop, .made = calloc(count, sizeof(uint16_t *))};
    if (!x.made)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    mr_status e = run_expanders(&x);
    for (size_t i = 0; i < count; i++) {
        const mr_lm_factor *f = lm->m->factors[i];
        size_t bytes = f->rows * f->cols * sizeof(uint16_t);
        if (e == MR_OK && x.made[i])
            e = mr_buffer_create(lm->gpu, bytes, &lm->matrix[i]);
        if (e == MR_OK && x.made[i])
            e = mr_buffer_write(lm->matrix[i], 0, x.made[i], bytes);
        free(x.made[i]);
    }
    free(x.made);
    return e;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

/* Weights 1 and ids 0, for sums that no router weighs. */
static mr_status open_constants(mr_lm *lm) {
    float *ones = malloc(lm->most * sizeof *ones);
    int32_t *zeros = calloc(lm->most, sizeof *zeros);
    mr_status e = ones && zeros ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    for (size_t i = 0; e == MR_OK && i < lm->most; i++)
        ones[i] = 1.0f;
    if (e == MR_OK)
        e = mr_buffer_create(lm->gpu, lm->most * sizeof *ones, &lm->ones);
    if (e == MR_OK)
        e = mr_buffer_write(lm->ones, 0, ones, lm->most * sizeof *ones);
    if (e == MR_OK)
        e = mr_buffer_create(lm->gpu, lm->most * sizeof *zeros, &lm->zeros);
    if (e == MR_OK)
        e = mr_buffer_write(lm->zeros, 0, zeros, lm->most * sizeof *zeros);
    free(ones);
    free(zeros);
    return e;
}

static mr_status open_slots(mr_lm *lm, size_t tile_bytes, size_t rows, size_t cols) {
    size_t vectors = lm->most * lm->m->config.top_k;
    size_t result = lm->o.apply ? vectors * rows * sizeof(float) : tile_bytes;
    size_t source = lm->o.apply ? vectors * cols * sizeof(float) : 0;
    mr_status e = MR_OK;
    for (int i = 0; e == MR_OK && i < (lm->o.apply ? 1 : LM_SLOTS); i++)
        e = mr_generator_slot_create(lm->generator, result, source, &lm->slot[i]);
    for (int i = 0; e == MR_OK && i < LM_SLOTS && !lm->o.apply; i++)
        e = mr_buffer_create(lm->gpu, tile_bytes, &lm->tile[i]);
    if (e == MR_OK && lm->o.apply && !(lm->host_x = malloc(source)))
        e = mr_fail(MR_OUT_OF_MEMORY, "out of memory for %zu vectors", vectors);
    if (e == MR_OK && lm->o.apply)
        e = open_constants(lm);
    if (e == MR_OK && lm->o.check && !(lm->check = malloc(tile_bytes)))
        e = mr_fail(MR_OUT_OF_MEMORY, "out of memory for a tile");
    return e;
}

mr_status lm_weights_open(mr_lm *lm) {
    const mr_lm_model *m = lm->m;
    size_t most = 1, rows = 1, cols = 1;
    if (m->num_seeds == 0)
        return MR_OK;
    if (!lm->o.rgu)
        return expand_all(lm);
    lm->seeds = calloc(m->num_factors, sizeof *lm->seeds);
    lm->plan = calloc(m->num_seeds, sizeof *lm->plan);
    if (!lm->seeds || !lm->plan)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    mr_status e = mr_generator_open(lm->o.rgu, lm->o.stop, lm->o.timeout_ns, &lm->generator);
    if (e != MR_OK)
        return e;
    lm->stats.hardware = mr_generator_counts(lm->generator);
    for (size_t i = 0; e == MR_OK && i < m->num_factors; i++) {
        const mr_lm_factor *f = m->factors[i];
        if (f->kind != MR_LM_SEED)
            continue;
        e = mr_generator_seed_create(lm->generator, f->seed, &lm->seeds[i]);
        most = f->rows * f->cols > most ? f->rows * f->cols : most;
        rows = f->rows > rows ? f->rows : rows;
        cols = f->cols > cols ? f->cols : cols;
    }
    return e != MR_OK ? e : open_slots(lm, most * sizeof(uint16_t), rows, cols);
}

void lm_weights_close(mr_lm *lm) {
    for (int i = 0; i < LM_SLOTS; i++) {
        mr_generator_slot_destroy(lm->slot[i]);
        if (lm->consumer[i])
            mr_event_destroy(lm->consumer[i]);
        if (lm->tile[i])
            mr_buffer_destroy(lm->tile[i]);
    }
    for (size_t i = 0; lm->seeds && i < lm->m->num_factors; i++)
        mr_generator_seed_destroy(lm->seeds[i]);
    mr_generator_close(lm->generator);
    free(lm->seeds);
    free(lm->plan);
    free(lm->host_x);
    free(lm->check);
}

/* ---- the plan of a layer ----------------------------------------------------------------------
 */

void lm_plan_clear(mr_lm *lm) { lm->planned = lm->started = lm->used = 0; }

void lm_plan_add(mr_lm *lm, const mr_lm_factor *f) {
    if (lm->plan)
        lm->plan[lm->planned++] = f;
}

static mr_status start_one(mr_lm *lm) {
    if (lm->started == lm->planned)
        return MR_OK;
    const mr_lm_factor *f = lm->plan[lm->started];
    mr_status e =
        mr_generator_tile(lm->seeds[f->id], &f->seed->job, lm->slot[lm->started % LM_SLOTS]);
    if (e == MR_OK)
        lm->started++;
    return e;
}

mr_status lm_plan_start(mr_lm *lm) {
    mr_status e = MR_OK;
    for (int i = 0; e == MR_OK && i < LM_SLOTS && lm->generator && !lm->o.apply; i++)
        e = start_one(lm);
    return e;
}

static mr_status compare(mr_lm *lm, const mr_projection *p, const void *tile) {
    const mr_rgu_job *j = &p->job;
    size_t stride = j->d_in * sizeof(uint16_t);
    mr_golden_job g = {.n = (int)j->n,
                       .terms = (int)j->terms,
                       .d_out = j->d_out,
                       .d_in = j->d_in,
                       .image = p->image,
                       .row_scale = p->row_scale,
                       .scale = j->scale,
                       .row1 = j->row1,
                       .col1 = j->col1,
                       .format = MR_FMT_BF16};
    if (mr_golden_tile(&g, lm->check, stride))
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory in the golden model", p->name);
    lm->stats.checked++;
    lm->stats.wrong += memcmp(tile, lm->check, j->d_out * stride) != 0;
    return MR_OK;
}

static void count(mr_lm *lm, const mr_projection *p, const mr_counters *c) {
    lm->stats.cycles += c->cycles;
    lm->stats.weights += p->seed.d_out * p->seed.d_in;
    lm->stats.seed_bytes += p->image_bytes + p->scale_bytes;
    lm->stats.jobs++;
}

mr_status lm_plan_next(mr_lm *lm, const mr_lm_factor *f, mr_buffer **weights,
                       mr_event ***consumer) {
    if (lm->used == lm->started || lm->plan[lm->used] != f)
        return mr_fail(MR_INVALID_ARGUMENT, "%s is used out of the planned order", f->seed->name);
    size_t i = lm->used++ % LM_SLOTS;
    const void *data;
    mr_counters c;
    mr_status e = mr_generator_wait(lm->slot[i], &data, &c);
    if (e != MR_OK)
        return e;
    count(lm, f->seed, &c);
    if (lm->check && (e = compare(lm, f->seed, data)) != MR_OK)
        return e;
    /* the buffer is free once the kernel that read the matrix before the last has ended */
    if (lm->consumer[i]) {
        e = lm_wait(lm, lm->consumer[i]);
        mr_event_destroy(lm->consumer[i]);
        lm->consumer[i] = NULL;
    }
    if (e == MR_OK)
        e = mr_buffer_write(lm->tile[i], 0, data, f->rows * f->cols * sizeof(uint16_t));
    if (e == MR_OK)
        e = start_one(lm);
    *weights = lm->tile[i];
    *consumer = &lm->consumer[i];
    return e;
}

/* ---- apply mode -------------------------------------------------------------------------------
 */

mr_status lm_apply(mr_lm *lm, const lm_io *io, const mr_lm_factor *f) {
    mr_buffer *from = io->x;
    mr_status e = MR_OK;
    if (io->in_index) {
        from = lm->gathered;
        e = lm_launch(lm, "lm_gather", io->count * f->cols, NULL,
                      (mr_arg[]){mr_arg_buffer(from, 0), mr_arg_buffer(io->x, 0),
                                 mr_arg_buffer(io->in_index, io->index_offset * sizeof(int32_t)),
                                 mr_arg_i32((int32_t)io->in_div), mr_arg_i32((int32_t)f->cols)},
                      5);
    }
    if (e == MR_OK)
        e = lm_read(lm, from, 0, lm->host_x, io->count * f->cols * sizeof(float));
    mr_rgu_job job = f->seed->job;
    job.batch = (uint32_t)io->count;
    if (e == MR_OK)
        e = mr_generator_apply(lm->seeds[f->id], &job, lm->host_x, lm->slot[0]);
    const void *data;
    mr_counters c;
    if (e == MR_OK)
        e = mr_generator_wait(lm->slot[0], &data, &c);
    if (e != MR_OK)
        return e;
    count(lm, f->seed, &c);
    size_t bytes = io->count * f->rows * sizeof(float);
    if (!io->out_index && !io->add)
        return mr_buffer_write(io->y, io->y_offset * sizeof(float), data, bytes);
    if ((e = mr_buffer_write(lm->gathered, 0, data, bytes)) != MR_OK)
        return e;
    if (io->add) /* one choice each, of weight 1 */
        return lm_launch(lm, "lm_combine", io->count * f->rows, NULL,
                         (mr_arg[]){mr_arg_buffer(io->y, io->y_offset * sizeof(float)),
                                    mr_arg_buffer(lm->gathered, 0), mr_arg_buffer(lm->ones, 0),
                                    mr_arg_buffer(lm->zeros, 0), mr_arg_i32(1), mr_arg_i32(1),
                                    mr_arg_i32((int32_t)f->rows)},
                         7);
    return lm_launch(lm, "lm_scatter", io->count * f->rows, NULL,
                     (mr_arg[]){mr_arg_buffer(io->y, io->y_offset * sizeof(float)),
                                mr_arg_buffer(lm->gathered, 0),
                                mr_arg_buffer(io->out_index, io->index_offset * sizeof(int32_t)),
                                mr_arg_i32((int32_t)f->rows)},
                     4);
}
