/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apply mode: rtl/rgu/rgu_apply.sv (passes), rgu_apply_tab.sv (matrices of a term), rgu_apply_x.sv
 * (matrices of a vector), rgu_apply_y.sv (results). Each part goes on as far as what it waits for
 * is known; where all wait, the earliest read address of the two readers gets its turn, which makes
 * more known. Nothing that is still unknown can come before that.
 */
#include "models/cycle/rgu_part.h"

enum { PLACES = 4, VECTORS = 32, SLOTS = 16 };

/* Position in a walk: chunk rows, groups of vectors, chunk columns, terms, vectors. */
typedef struct {
    uint32_t o, i, t, v, now; /* now: vectors of the group */
    uint64_t group;           /* its first vector */
    uint32_t slot;            /* its first slot */
    bool more;
} place;

typedef struct {
    const mr_rgu_unit *u;
    const mr_rgu_descriptor *d;
    uint32_t edge, side, chunks_in, chunks_out, size; /* size: vectors of a full group */
    uint32_t term_run, half_run, pass;                /* cycles, see init */
    rgu_feed feed;
    rgu_reads memory;
    rgu_writer writer;
    uint32_t phase; /* of cycle 0 */
    rgu_cycle last_address;
    uint32_t turn;
    /* terms */
    uint64_t terms, terms_in; /* matrices made, and of the job */
    rgu_cycle term_end, term_full[PLACES], term_free[PLACES];
    uint64_t terms_freed;
    /* vectors in */
    place ask;
    rgu_reader reader;
    bool asking;
    rgu_cycle last_give;
    uint64_t asked, arrived, made; /* commands, chunks of vectors here, matrices */
    rgu_cycle lines_free[PLACES], here[PLACES], made_end, full[PLACES];
    /* passes */
    place at;
    uint64_t passes, term_now;
    rgu_cycle pass_end[PLACES];
    uint32_t last_slot;
    uint64_t owner[SLOTS]; /* vector that used a slot last, plus 1 */
    uint64_t vectors;      /* whole, in the order of the walk */
    rgu_cycle whole[VECTORS];
    /* results */
    place out;
    uint64_t results;
    rgu_cycle taken[VECTORS], run_end, written[2], last_written;
} apply;

static void walk_start(place *w, const apply *a) {
    *w = (place){.more = true};
    w->now = a->d->batch < a->size ? a->d->batch : a->size;
}

/* True: a group has ended. */
static bool walk_step(place *w, const apply *a, uint32_t columns, uint32_t terms) {
    if (++w->v < w->now)
        return false;
    w->v = 0;
    if (++w->t < terms)
        return false;
    w->t = 0;
    if (++w->i < columns)
        return false;
    w->i = 0;
    w->slot = (w->slot + w->now) % a->size;
    w->group += w->now;
    if (w->group == a->d->batch) {
        w->group = 0;
        w->more = ++w->o < a->chunks_out;
    }
    uint64_t left = a->d->batch - w->group;
    w->now = left < a->size ? (uint32_t)left : a->size;
    return true;
}

/* The first cycle from `t` on that belongs to the second product. */
static rgu_cycle odd(const apply *a, rgu_cycle t) { return t + !((a->phase + t) & 1); }

/* ---- the parts; each makes one step and says whether it could
 * ------------------------------------ */

static bool term(apply *a) {
    rgu_cycle go, tables;
    uint64_t k = a->terms;
    if (k == a->terms_in || !rgu_feed_tables(&a->feed, k / a->d->terms, &tables) ||
        (k >= 2 && a->terms_freed < k - 1))
        return false;
    go = rgu_max(a->term_end + 1, tables);
    if (k >= 2)
        go = rgu_max(go, a->term_free[(k - 2) % PLACES] + 1);
    if ((k + 1) % a->d->terms == 0) /* its last word has been read */
        rgu_feed_pop(&a->feed, go + 1 + a->edge);
    a->term_end = go + a->term_run;
    a->term_full[k % PLACES] = a->term_end + 1;
    a->terms++;
    return true;
}

static bool vector(apply *a) {
    uint64_t k = a->made;
    if (k == a->arrived || (k >= 2 && a->passes < k - 1))
        return false;
    rgu_cycle take = rgu_max(a->made_end + 1, a->here[k % PLACES] + 1);
    if (k >= 2)
        take = rgu_max(take, a->pass_end[(k - 2) % PLACES] + 1);
    a->lines_free[k % PLACES] = take + 1 + a->edge / 2;
    a->made_end = take + a->half_run;
    a->full[k % PLACES] = a->made_end + 1;
    a->made++;
    return true;
}

static bool pass(apply *a) {
    place *w = &a->at;
    uint64_t p = a->passes;
    if (!w->more || a->made == p || a->terms <= a->term_now)
        return false;
    bool first = w->i == 0 && w->t == 0, last = w->i + 1 == a->chunks_in && w->t + 1 == a->d->terms;
    uint32_t slot = (w->slot + w->v) % a->size;
    rgu_cycle go = rgu_max(a->full[p % PLACES], a->term_full[a->term_now % PLACES]);
    if (p) /* the exponent of a slot settles for two cycles more */
        go = rgu_max(go, a->pass_end[(p - 1) % PLACES] + (slot == a->last_slot ? 3 : 1));
    if (first && a->owner[slot]) {
        if (a->results < a->owner[slot])
            return false;
        go = rgu_max(go, a->taken[(a->owner[slot] - 1) % VECTORS] + 1);
    }
    rgu_cycle end = odd(a, go) + a->pass - 1;
    rgu_cycle second = end + 7 + 2 * (a->side - 1); /* the second product's last column */
    a->pass_end[p % PLACES] = end;
    a->last_slot = slot;
    a->passes++;
    if (last) {
        a->whole[a->vectors++ % VECTORS] = second + 9;
        a->owner[slot] = a->vectors;
    }
    bool v_last = w->v + 1 == w->now;
    walk_step(w, a, a->chunks_in, a->d->terms);
    if (v_last) {
        a->term_free[a->term_now++ % PLACES] = second;
        a->terms_freed++;
    }
    return true;
}

static bool result(apply *a) {
    const mr_rgu_descriptor *d = a->d;
    uint64_t k = a->results;
    place *w = &a->out;
    if (k == a->vectors)
        return false;
    rgu_cycle begin = rgu_max(a->run_end + 1, a->whole[k % VECTORS]);
    if (k >= 2)
        begin = rgu_max(begin, a->written[k % 2] + 1);
    begin = odd(a, begin);
    a->taken[k % VECTORS] = begin + 2 + a->edge;
    /* the transform's last pair, its second value, five stages of rounding */
    a->run_end = begin + a->edge + 13 + 2 * (a->side / 2 - 2);
    uint64_t left = (uint64_t)d->d_out - (uint64_t)w->o * a->edge;
    uint32_t count = left < a->edge ? (uint32_t)left : a->edge;
    uint64_t addr = d->dst + (w->group + w->v) * d->dst_stride + (uint64_t)w->o * a->edge * 4;
    rgu_cycle at = rgu_max(a->run_end, a->last_written) + 2;
    at = rgu_writer_command(&a->writer, at, addr, count * 4, 0);
    for (uint32_t n = a->writer.lines; n; n--) /* a cycle to fetch, one to give */
        at = rgu_writer_line(&a->writer, at + 2);
    a->written[k % 2] = a->last_written = at;
    a->results++;
    if (walk_step(w, a, 1, 1) && d->row_scale)
        rgu_feed_scale_pop(&a->feed, a->run_end);
    return true;
}

/* The next chunk of a vector, if it is known when it can be asked for. */
static bool ask_vector(apply *a) {
    const mr_rgu_descriptor *d = a->d;
    place *w = &a->ask;
    uint64_t k = a->asked;
    if (!w->more || (k >= 2 && a->made < k - 1))
        return false;
    rgu_cycle at = rgu_max(a->last_give + 1, a->reader.free);
    if (k >= 2)
        at = rgu_max(at, a->lines_free[(k - 2) % PLACES] + 1);
    uint64_t left = (uint64_t)d->d_in - (uint64_t)w->i * a->edge;
    uint32_t count = left < a->edge ? (uint32_t)left : a->edge;
    uint64_t addr = d->src + (w->group + w->v) * d->src_stride + (uint64_t)w->i * a->edge * 4;
    rgu_reader_command(&a->reader, at, addr, count * 4);
    a->last_give = at;
    a->asked++;
    a->asking = true;
    walk_step(w, a, a->chunks_in, d->terms);
    return true;
}

/* One read address. */
static bool address(apply *a) {
    rgu_cycle seed = 0, vec = 0, out[RGU_BEATS];
    uint32_t seed_words = 0, vec_words = 0;
    bool s = rgu_feed_ask(&a->feed, &seed, &seed_words), v = a->asking || ask_vector(a);
    if (v)
        vec = rgu_reader_ask(&a->reader, &vec_words);
    if (!s && !v)
        return false;
    rgu_cycle at = rgu_max(a->last_address + 1, !v || (s && seed < vec) ? seed : vec);
    bool both = s && v && seed <= at && vec <= at;
    bool seeds = both ? a->turn == 0 : s && seed <= at;
    a->last_address = at;
    a->turn = seeds;
    if (seeds) {
        rgu_feed_grant(&a->feed, &a->memory, at, seed_words);
        return true;
    }
    uint32_t lines = rgu_reader_grant(&a->reader, &a->memory, at, vec_words, out);
    if (!a->reader.left) {
        a->here[a->arrived++ % PLACES] = out[lines - 1];
        a->asking = false;
    }
    return true;
}

static void start(apply *a, const mr_rgu_unit *u, const mr_rgu_descriptor *d,
                  const mr_rgu_memory *memory) {
    *a = (apply){.u = u, .d = d};
    a->edge = 1u << d->n;
    a->side = 1u << d->n / 2;
    a->size = 4096 / a->edge;
    a->chunks_in = (d->d_in + a->edge - 1) >> d->n;
    a->chunks_out = (d->d_out + a->edge - 1) >> d->n;
    /* from the first read of a term, and of a vector's lines, to the last value of its transform */
    a->term_run = a->edge + a->side + 6;
    a->half_run = a->edge / 2 + a->side / 2 + 6;
    a->pass = 2 * a->side * a->edge / u->lanes;
    a->phase = memory->phase;
    a->turn = memory->next_reader;
    a->last_address = -1;
    a->term_end = a->made_end = a->run_end = a->last_written = -8;
    uint32_t groups = (d->batch + a->size - 1) / a->size;
    a->terms_in = (uint64_t)a->chunks_in * a->chunks_out * d->terms * groups;
    walk_start(&a->ask, a);
    walk_start(&a->at, a);
    walk_start(&a->out, a);
    rgu_walk w = {.seeds = d->seeds,
                  .scales = d->scales,
                  .terms = d->terms,
                  .d = a->edge,
                  .log_d = d->n,
                  .chunks_in = a->chunks_in,
                  .o1 = a->chunks_out - 1,
                  .i1 = a->chunks_in - 1,
                  .repeats = groups,
                  .row_scale = d->row_scale};
    rgu_feed_init(&a->feed, u, &w);
    rgu_reads_init(&a->memory, u);
    rgu_reader_init(&a->reader, u);
    rgu_writer_init(&a->writer, u);
}

rgu_cycle rgu_apply(const mr_rgu_unit *u, const mr_rgu_descriptor *d, mr_rgu_memory *memory,
                    mr_rgu_timing *t) {
    apply a;
    start(&a, u, d, memory);
    uint64_t all = (uint64_t)d->batch * a.chunks_out;
    rgu_cycle tables;
    do {
        bool moved;
        do {
            moved = rgu_feed_expand(&a.feed);
            moved = term(&a) || moved;
            moved = vector(&a) || moved;
            moved = pass(&a) || moved;
            moved = result(&a) || moved;
        } while (moved);
        if (!t->first_tables && rgu_feed_tables(&a.feed, 0, &tables))
            t->first_tables = (uint64_t)tables;
    } while (a.results < all && address(&a));
    memory->next_reader = a.turn;
    t->items_in = (uint64_t)d->d_in * d->terms * a.chunks_out * d->batch;
    t->items_out = (uint64_t)d->d_out * d->batch;
    t->products = a.passes * a.pass;
    t->mults_busy = t->products * u->lanes;
    t->expander = a.terms_in * rgu_feed_term_cycles(&a.feed);
    t->beats_out = a.writer.beats;
    t->beats_in = a.memory.beats;
    return rgu_max(a.last_written + 2, a.writer.answer + 1) + 1;
}
