/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/pnm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/pnm_desc.h>

#include "models/cycle/pnm_sides.h"

/* Cycles of the sequencer and its neighbours (pnm_seq, pnm_fetch, pnm_move, pnm_top). */
enum {
    FETCHED = 5,   /* from a list's start to its first descriptor, with a latency of 1 */
    REFETCHED = 5, /* from a LOOP to the descriptor it goes back to */
    CHECKED = 4,   /* from a descriptor in hand to its start at the earliest */
    LEAVES = 2,    /* from the end of a list's last descriptor to the job's */
    ASKED = 2,     /* from the start of a transfer to its first address */
    ARRIVED = 2,   /* from data on the port to its row */
    SENT = 2,      /* a SEND of rows, beside a cycle a row */
    STORED = 5,    /* a STORE, beside a cycle a row */
    BURST = 16,
    BUFFER = 64 /* words of 64 bytes */
};
static const uint64_t never = UINT64_MAX;

/* A LOAD or WLOAD under way: bursts that are not asked for, and when the buffer has room again. */
typedef struct {
    bool active, banks;
    uint64_t next;                /* cycle in which the next address may go out */
    uint64_t words, column, word; /* left to ask for; next column, next word of it */
    uint64_t taken[BUFFER / BURST], bursts;
    uint64_t last; /* cycle in which the last word was taken */
} transfer;

typedef struct {
    mr_pnm_list list;
    uint32_t pc;
    uint64_t iteration, ready; /* cycle from which the next descriptor may start */
    bool ended, at_barrier;
    uint64_t matrix_end, vector_end; /* never: a transfer that is not finished */
    const uint8_t *vec;              /* the vector side's VEC, NULL if it does something else */
    uint64_t vec_start, barrier_since, blocked_since;
    pnm_window *window;
    size_t windows, window_room;
    transfer move;
    uint64_t *signal[MR_PNM_SEMAPHORES]; /* cycles, ascending, of signals not taken */
    size_t signals[MR_PNM_SEMAPHORES], signal_room[MR_PNM_SEMAPHORES];
} group;

typedef struct {
    const mr_pnm_machine *m;
    mr_pnm_timing *out;
    mr_dram *dram;
    group *g;
    size_t groups;
    uint64_t read_free, write_free, bus_free; /* first cycle in which nobody has it */
    bool failed;                              /* no memory */
} chip;

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t over(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* Room for one more; false: none. */
static bool room(void **p, size_t count, size_t *have, size_t size) {
    if (count < *have)
        return true;
    size_t more = *have ? 2 * *have : 16;
    void *q = realloc(*p, more * size);
    if (!q)
        return false;
    *p = q;
    *have = more;
    return true;
}

/* ---- signals ----------------------------------------------------------------------------------
 */

static void signal(chip *c, unsigned to, unsigned sem, uint64_t cycle) {
    group *g = &c->g[to];
    if (to >= c->groups || !room((void **)&g->signal[sem], g->signals[sem], &g->signal_room[sem],
                                 sizeof g->signal[sem][0])) {
        c->failed = true;
        return;
    }
    size_t at = g->signals[sem]++;
    for (; at && g->signal[sem][at - 1] > cycle; at--)
        g->signal[sem][at] = g->signal[sem][at - 1];
    g->signal[sem][at] = cycle;
}

static void take(group *g, unsigned sem, size_t count) {
    g->signals[sem] -= count;
    memmove(g->signal[sem], g->signal[sem] + count, g->signals[sem] * sizeof g->signal[sem][0]);
}

/* ---- the memory port --------------------------------------------------------------------------
 */

/* The next burst of a transfer: its data, where they go, and when the buffer has room for more. */
static void burst(chip *c, size_t index) {
    const mr_pnm_machine *m = c->m;
    group *g = &c->g[index];
    transfer *t = &g->move;
    uint64_t words = t->words < BURST ? t->words : BURST;
    double pace = 64.0 / m->port_bytes; /* cycles a word */
    uint64_t data = most(t->next + m->read_latency, c->read_free);
    c->read_free = data + (uint64_t)((double)words * pace);
    uint64_t column_words = 2 * over(m->elements * m->lanes, 64); /* of 128 bytes, or more */
    for (uint64_t i = 0; i < words; i++) {
        uint64_t here = data + (uint64_t)((double)i * pace) + ARRIVED;
        t->last = most(here, t->last + 1);
        if (t->banks && ++t->word == column_words) {
            t->word = 0;
            t->last = mr_dram_request(c->dram, index, t->last, true,
                                      m->elements >= 32 ? UINT32_MAX : (1u << m->elements) - 1,
                                      (uint32_t)(t->column / m->dram.columns),
                                      (uint32_t)(t->column % m->dram.columns), false);
            t->column++;
        }
    }
    t->taken[t->bursts++ % (BUFFER / BURST)] = t->last;
    t->words -= words;
    t->next++;
    if (t->bursts >= BUFFER / BURST)
        t->next = most(t->next, t->taken[t->bursts % (BUFFER / BURST)] + 1);
    if (!t->words) {
        t->active = false;
        *(t->banks ? &g->matrix_end : &g->vector_end) = t->last;
    }
}

static void begin_transfer(chip *c, group *g, uint64_t start, const uint8_t *d) {
    bool banks = d[0] == MR_PNM_DESC_WLOAD;
    uint64_t rows = PNM_FIELD(d, LOAD_ROWS), words = banks ? 2 * rows : rows;
    g->move = (transfer){.active = true, .banks = banks, .next = start + ASKED, .words = words};
    if (banks)
        g->move.column = pnm_columns(c->m, PNM_FIELD(d, WLOAD_COL));
    *(banks ? &g->matrix_end : &g->vector_end) = never;
    c->out->bytes_in += 64 * words;
}

/* ---- a group's next descriptor ----------------------------------------------------------------
 */

static void vec_end(chip *c, group *g) {
    if (g->vec)
        g->vector_end = pnm_time_vec(c->m, g->vec_start, g->vec, g->window, g->windows);
}

static bool is_matrix(unsigned kind) {
    return kind == MR_PNM_DESC_MATVEC || kind == MR_PNM_DESC_WSTORE || kind == MR_PNM_DESC_WLOAD;
}

/* Cycle in which the group's next descriptor starts; never: not before others have done something.
 */
static uint64_t next_start(const group *g) {
    if (g->ended || g->at_barrier)
        return never;
    if (g->pc == g->list.count)
        return most(g->ready, most(g->matrix_end, g->vector_end));
    const uint8_t *d = g->list.desc + (size_t)g->pc * MR_PNM_DESC_BYTES;
    bool overlap = (d[1] & 1) && (d[0] == MR_PNM_DESC_MATVEC || d[0] == MR_PNM_DESC_WSTORE ||
                                  d[0] == MR_PNM_DESC_VEC);
    uint64_t t = g->ready;
    if (!overlap || is_matrix(d[0]))
        t = most(t, g->matrix_end);
    if (!overlap || !is_matrix(d[0]))
        t = most(t, g->vector_end);
    if (d[0] == MR_PNM_DESC_WAIT && t != never) {
        uint64_t sem = PNM_FIELD(d, WAIT_SEM), need = PNM_FIELD(d, WAIT_COUNT);
        t = g->signals[sem] < need ? never : most(t, g->signal[sem][need - 1] + 1);
    }
    return t;
}

static void start_vector(chip *c, size_t index, uint64_t at, const uint8_t *d) {
    group *g = &c->g[index];
    uint64_t start = at + 1, rows;
    g->vec = NULL;
    switch (d[0]) {
    case MR_PNM_DESC_VEC: {
        size_t keep = 0; /* only windows that the new one can meet */
        for (size_t i = 0; i < g->windows; i++)
            if (g->window[i].end > start)
                g->window[keep++] = g->window[i];
        g->windows = keep;
        g->vec = d;
        g->vec_start = start;
        vec_end(c, g);
        break;
    }
    case MR_PNM_DESC_SEND:
        rows = PNM_FIELD(d, SEND_ROWS);
        start = rows ? start + SENT : start;
        c->bus_free = most(c->bus_free, start + 1) + (rows ? rows : 1) - 1;
        g->vector_end = c->bus_free;
        c->bus_free++;
        signal(c, (unsigned)PNM_FIELD(d, SEND_GROUP), (unsigned)PNM_FIELD(d, SEND_SEM),
               g->vector_end);
        break;
    case MR_PNM_DESC_STORE:
        rows = PNM_FIELD(d, STORE_ROWS);
        c->write_free = most(c->write_free, start) + over(rows * 64, c->m->port_bytes);
        g->vector_end = c->write_free + STORED + c->m->write_latency;
        c->out->bytes_out += 64 * rows;
        break;
    default:
        begin_transfer(c, g, start, d);
    }
}

static void start_matrix(chip *c, size_t index, uint64_t at, const uint8_t *d) {
    group *g = &c->g[index];
    if (d[0] == MR_PNM_DESC_WLOAD) {
        begin_transfer(c, g, at + 1, d);
        return;
    }
    if (d[0] == MR_PNM_DESC_WSTORE) {
        g->matrix_end = pnm_time_wstore(c->m, c->dram, index, at + 1, d);
    } else {
        pnm_matrix_run run = pnm_time_matvec(c->m, c->dram, index, at + 1, d);
        g->matrix_end = run.end;
        c->out->group[index].stream_cycles += run.streamed;
        if (!room((void **)&g->window, g->windows, &g->window_room, sizeof *g->window)) {
            c->failed = true;
            return;
        }
        g->window[g->windows++] = run.reads;
        if (g->vec && g->vector_end > at)
            vec_end(c, g);
    }
    c->out->group[index].mv_cycles += g->matrix_end - at - 1;
}

/* From the end of a descriptor's stay to the start of the next: it is taken and checked, the runs
 * of a MATVEC's activations one by one. 0 after the last. */
static uint64_t checked(const group *g) {
    if (g->pc == g->list.count)
        return 0;
    const uint8_t *d = g->list.desc + (size_t)g->pc * MR_PNM_DESC_BYTES;
    uint64_t runs = 1;
    if (d[0] == MR_PNM_DESC_MATVEC)
        runs = over(PNM_FIELD(d, MATVEC_KC), PNM_FIELD(d, MATVEC_X_RUN));
    return CHECKED + runs;
}

/* All groups named have come: they go on. */
static void barrier(chip *c, const uint8_t *d) {
    uint64_t named = PNM_FIELD(d, BARRIER_GROUPS), since = 0;
    for (size_t i = 0; i < c->groups && i < 32; i++)
        if (named >> i & 1) {
            const group *g = &c->g[i];
            if (!g->at_barrier || PNM_FIELD(g->list.desc + (size_t)g->pc * MR_PNM_DESC_BYTES,
                                            BARRIER_GROUPS) != named)
                return;
            since = most(since, g->barrier_since);
        }
    for (size_t i = 0; i < c->groups && i < 32; i++)
        if (named >> i & 1) {
            group *g = &c->g[i];
            g->at_barrier = false;
            g->pc++;
            c->out->group[i].wait_cycles += since + 1 - g->barrier_since;
            g->ready = since + 1 + checked(g);
        }
}

static void control(chip *c, size_t index, uint64_t at, const uint8_t *d) {
    group *g = &c->g[index];
    if (d[0] == MR_PNM_DESC_BARRIER) {
        g->at_barrier = true;
        g->barrier_since = at;
        barrier(c, d);
        return;
    }
    if (d[0] == MR_PNM_DESC_WAIT) {
        uint64_t waits = most(g->blocked_since, most(g->matrix_end, g->vector_end));
        c->out->group[index].wait_cycles += at + 1 - waits;
        take(g, (unsigned)PNM_FIELD(d, WAIT_SEM), PNM_FIELD(d, WAIT_COUNT));
    } else if (g->iteration + 1 < PNM_FIELD(d, LOOP_COUNT)) {
        g->iteration++;
        g->pc = (uint32_t)PNM_FIELD(d, LOOP_TARGET);
        g->ready = at + REFETCHED + c->m->read_latency - 2 + checked(g);
        return;
    } else {
        g->iteration = 0;
    }
    g->pc++;
    g->ready = at + checked(g);
}

static void dispatch(chip *c, size_t index, uint64_t at) {
    group *g = &c->g[index];
    if (g->vec && g->vector_end <= at) { /* it has ended, and nothing can change that */
        c->out->group[index].vec_cycles += g->vector_end - g->vec_start;
        g->vec = NULL;
    }
    if (g->pc == g->list.count) {
        g->ended = true;
        c->out->group[index].end = at + LEAVES;
        return;
    }
    const uint8_t *d = g->list.desc + (size_t)g->pc * MR_PNM_DESC_BYTES;
    c->out->bytes_in += MR_PNM_DESC_BYTES;
    if (is_matrix(d[0])) {
        start_matrix(c, index, at, d);
    } else if (d[0] == MR_PNM_DESC_VEC || d[0] == MR_PNM_DESC_LOAD || d[0] == MR_PNM_DESC_STORE ||
               d[0] == MR_PNM_DESC_SEND) {
        start_vector(c, index, at, d);
    } else {
        control(c, index, at, d);
        g->blocked_since = g->ready;
        return;
    }
    g->pc++;
    g->ready = at + checked(g);
    g->blocked_since = g->ready;
}

/* ---- all groups, in the order of time ---------------------------------------------------------
 */

static bool play(chip *c, char *error, size_t size) {
    for (;;) {
        uint64_t best = never;
        size_t who = 0;
        bool moves = false, left = false;
        for (size_t i = 0; i < c->groups; i++) {
            group *g = &c->g[i];
            uint64_t t = next_start(g);
            left |= !g->ended;
            if (t < best) {
                best = t;
                who = i;
                moves = false;
            }
            if (g->move.active && g->move.next <= best) {
                best = g->move.next;
                who = i;
                moves = true;
            }
        }
        if (c->failed) {
            snprintf(error, size, "out of memory");
            return false;
        }
        if (!left)
            return true;
        if (best == never) {
            snprintf(error, size, "the program stands still");
            return false;
        }
        if (moves)
            burst(c, who);
        else
            dispatch(c, who, best);
    }
}

bool mr_pnm_time(const mr_pnm_machine *m, const mr_pnm_list *list, size_t lists,
                 mr_dram_watch *watch, void *user, mr_pnm_timing *out, char *error, size_t size) {
    memset(out, 0, sizeof *out);
    if (lists > m->groups) {
        snprintf(error, size, "%s has %u groups, the program %zu", m->name, m->groups, lists);
        return false;
    }
    chip c = {.m = m, .out = out, .groups = lists};
    c.g = calloc(lists + 1, sizeof *c.g);
    c.dram = mr_dram_create(&m->dram, lists ? lists : 1, watch, user);
    bool good = c.g && c.dram;
    if (!good)
        snprintf(error, size, "out of memory");
    for (size_t i = 0; good && i < lists; i++) {
        c.g[i].list = list[i];
        c.g[i].ended = !list[i].count;
        c.g[i].ready = FETCHED + m->read_latency - 2 + checked(&c.g[i]);
        c.g[i].blocked_since = c.g[i].ready;
    }
    good = good && play(&c, error, size);
    for (size_t i = 0; good && i < lists; i++) {
        out->cycles = most(out->cycles, out->group[i].end);
        mr_dram_idle(c.dram, i, out->group[i].end);
        out->group[i].dram = mr_dram_counters(c.dram, i);
    }
    for (size_t i = 0; c.g && i < lists; i++) {
        free(c.g[i].window);
        for (unsigned s = 0; s < MR_PNM_SEMAPHORES; s++)
            free(c.g[i].signal[s]);
    }
    mr_dram_destroy(c.dram);
    free(c.g);
    return good;
}
