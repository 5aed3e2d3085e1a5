/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/dram.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint64_t now;              /* first cycle not yet gone through */
    uint64_t act, column, pre; /* first cycle in which the command may go out */
    uint64_t refreshed;
    uint32_t row;
    bool open, closing;
    mr_dram_count count;
} group_state;

struct mr_dram {
    mr_dram_config config;
    mr_dram_cycles t;
    mr_dram_watch *watch;
    void *user;
    size_t groups;
    group_state group[];
};

typedef struct {
    bool write, last;
    uint32_t banks, row, column;
} request;

/* A whole number of cycles stays one: 30 x 0.57 ns are 30 cycles of 0.57 ns. */
static double ratio(double ns, double clock) { return round(ns / clock * 1e9) / 1e9; }

static uint64_t up(double ns, double clock) {
    double cycles = ceil(ratio(ns, clock));
    return cycles < 1 ? 1 : (uint64_t)cycles;
}

mr_dram_cycles mr_dram_in_cycles(const mr_dram_config *c) {
    mr_dram_cycles t = {.rc = c->rc_ns > 0 ? up(c->rc_ns, c->clock_ns) : 0,
                        .rp = up(c->rp_ns, c->clock_ns),
                        .rtp = up(c->rtp_ns, c->clock_ns),
                        .wr = up(c->wr_ns, c->clock_ns),
                        .ccd = up(c->ccd_ns, c->clock_ns),
                        .cl = up(c->cl_ns, c->clock_ns),
                        .rfc = up(c->rfc_ns, c->clock_ns),
                        .refi = (uint64_t)floor(ratio(c->refi_ns, c->clock_ns))};
    for (uint32_t i = 0; i < c->tiers; i++) {
        t.rcd[i] = up(c->rcd_ns[i], c->clock_ns);
        t.ras[i] = up(c->ras_ns[i], c->clock_ns);
    }
    return t;
}

size_t mr_dram_groups(const mr_dram_config *c) {
    return (size_t)c->channels * (c->banks / c->group_banks);
}

uint64_t mr_dram_capacity(const mr_dram_config *c) {
    return (uint64_t)c->channels * c->banks * c->rows * c->columns * c->column_bytes;
}

double mr_dram_peak(const mr_dram_config *c) {
    double units = (double)c->channels * c->banks / c->unit_banks;
    return units * c->column_bytes / ((double)mr_dram_in_cycles(c).ccd * c->clock_ns);
}

double mr_dram_ns(const mr_dram_config *c, uint64_t cycles) { return (double)cycles * c->clock_ns; }

/* ---- addresses: a number of mixed radix, its digits in the order of the map -------------------
 */

static uint32_t radix(const mr_dram_config *c, char digit) {
    return digit == 'c'   ? c->channels
           : digit == 'b' ? c->banks
           : digit == 'r' ? c->rows
                          : c->columns;
}

static uint32_t *digit_of(mr_dram_place *p, char digit) {
    return digit == 'c'   ? &p->channel
           : digit == 'b' ? &p->bank
           : digit == 'r' ? &p->row
                          : &p->column;
}

mr_dram_place mr_dram_at(const mr_dram_config *c, uint64_t address) {
    mr_dram_place p = {.byte = (uint32_t)(address % c->column_bytes)};
    address /= c->column_bytes;
    for (int i = 3; i >= 0; i--) {
        uint32_t n = radix(c, c->map[i]);
        *digit_of(&p, c->map[i]) = (uint32_t)(address % n);
        address /= n;
    }
    return p;
}

uint64_t mr_dram_address(const mr_dram_config *c, mr_dram_place p) {
    uint64_t address = 0;
    for (int i = 0; i < 4; i++)
        address = address * radix(c, c->map[i]) + *digit_of(&p, c->map[i]);
    return address * c->column_bytes + p.byte;
}

/* ---- a controller ------------------------------------------------------------------------------
 */

mr_dram *mr_dram_create(const mr_dram_config *config, size_t groups, mr_dram_watch *watch,
                        void *user) {
    if (!groups || groups > (SIZE_MAX - sizeof(mr_dram)) / sizeof(group_state))
        return NULL;
    mr_dram *d = calloc(1, sizeof *d + groups * sizeof d->group[0]);
    if (!d)
        return NULL;
    d->config = *config;
    d->t = mr_dram_in_cycles(config);
    d->watch = watch;
    d->user = user;
    d->groups = groups;
    return d;
}

void mr_dram_destroy(mr_dram *d) { free(d); }

static void raise_to(uint64_t *at, uint64_t cycle) {
    if (*at < cycle)
        *at = cycle;
}

static unsigned ones(uint32_t x) {
    unsigned n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static void send(mr_dram *d, size_t index, int command, uint32_t banks, uint32_t row,
                 uint32_t column) {
    group_state *g = &d->group[index];
    const mr_dram_config *c = &d->config;
    const mr_dram_cycles *t = &d->t;
    uint64_t now = g->now;
    uint32_t tier = row / (c->rows / c->tiers);
    double row_bits = 8.0 * c->columns * c->column_bytes * ones(banks);
    double column_bits = 8.0 * c->column_bytes * ones(banks);
    g->count.commands[command]++;
    if (d->watch)
        d->watch(d->user, now, index, command, banks, row, column);
    switch (command) {
    case MR_DRAM_ACT:
        g->open = true;
        g->row = row;
        raise_to(&g->column, now + t->rcd[tier]);
        raise_to(&g->pre, now + t->ras[tier]);
        raise_to(&g->act, now + t->rc);
        g->count.pj += row_bits * c->row_bit_pj;
        break;
    case MR_DRAM_RD:
    case MR_DRAM_WR:
        raise_to(&g->column, now + t->ccd);
        raise_to(&g->pre, now + (command == MR_DRAM_RD ? t->rtp : t->wr));
        g->count.bytes += (uint64_t)c->column_bytes * ones(banks);
        g->count.pj += column_bits * c->bit_pj;
        break;
    case MR_DRAM_PRE:
        g->open = g->closing = false;
        raise_to(&g->act, now + t->rp);
        break;
    default: /* MR_DRAM_REF */
        if (now / t->refi - g->refreshed > c->postponed)
            g->count.late++;
        g->refreshed++;
        raise_to(&g->act, now + t->rfc);
        g->count.pj += row_bits * c->row_bit_pj;
    }
    g->now++;
}

/* Goes on by one command or to the next cycle in which one may be possible, but not to `until` or
 * beyond. True: the request has been taken. */
static bool step(mr_dram *d, size_t index, const request *r, uint64_t until) {
    group_state *g = &d->group[index];
    const mr_dram_config *c = &d->config;
    uint32_t all = c->group_banks == 32 ? UINT32_MAX : (1u << c->group_banks) - 1;
    uint64_t due = c->refresh ? g->now / d->t.refi - g->refreshed : 0;
    uint64_t ready = UINT64_MAX; /* when the command in hand may go out */
    int command = MR_DRAM_COMMANDS;
    uint32_t row = g->row;
    if (due && (!r || due + 1 >= c->postponed)) {
        command = g->open ? MR_DRAM_PRE : MR_DRAM_REF;
    } else if (r) {
        if (g->open && !g->closing && g->row == r->row) {
            command = r->write ? MR_DRAM_WR : MR_DRAM_RD;
        } else if (g->open) {
            command = MR_DRAM_PRE;
        } else {
            command = MR_DRAM_ACT;
            row = r->row;
        }
    } else if (g->closing) {
        command = MR_DRAM_PRE;
    }
    bool column = command == MR_DRAM_RD || command == MR_DRAM_WR;
    if (column)
        ready = g->column;
    else if (command == MR_DRAM_PRE)
        ready = g->pre;
    else if (command != MR_DRAM_COMMANDS)
        ready = g->act;
    if (ready <= g->now) {
        if (column && r->last)
            g->closing = true;
        send(d, index, command, command == MR_DRAM_WR ? r->banks : all, row,
             column ? r->column : 0);
        return column;
    }
    uint64_t next = ready < until ? ready : until;
    if (c->refresh) { /* one more refresh falls due: the choice may be another */
        uint64_t tick = (g->now / d->t.refi + 1) * d->t.refi;
        next = tick < next ? tick : next;
    }
    g->now = next;
    return false;
}

void mr_dram_idle(mr_dram *d, size_t index, uint64_t until) {
    while (d->group[index].now < until)
        step(d, index, NULL, until);
}

uint64_t mr_dram_request(mr_dram *d, size_t index, uint64_t t, bool write, uint32_t banks,
                         uint32_t row, uint32_t column, bool last) {
    group_state *g = &d->group[index];
    const request r = {write, last, banks, row, column};
    mr_dram_idle(d, index, t);
    if (!g->open || g->closing)
        g->count.misses++;
    else if (g->row == row)
        g->count.hits++;
    else
        g->count.conflicts++;
    while (!step(d, index, &r, UINT64_MAX)) {
    }
    return g->now - 1;
}

mr_dram_count mr_dram_counters(const mr_dram *d, size_t index) { return d->group[index].count; }

mr_dram_count mr_dram_total(const mr_dram *d) {
    mr_dram_count sum = {0};
    for (size_t i = 0; i < d->groups; i++) {
        const mr_dram_count *c = &d->group[i].count;
        for (int k = 0; k < MR_DRAM_COMMANDS; k++)
            sum.commands[k] += c->commands[k];
        sum.hits += c->hits;
        sum.misses += c->misses;
        sum.conflicts += c->conflicts;
        sum.bytes += c->bytes;
        sum.late += c->late;
        sum.pj += c->pj;
    }
    return sum;
}

int mr_dram_report(const mr_dram_config *c, const mr_dram_count *n, uint64_t cycles, char *text,
                   size_t size) {
    return snprintf(text, size,
                    "%s: %" PRIu64 " cycles of the %.4g GHz DRAM clock (%.2f ns), ACT %" PRIu64
                    " RD %" PRIu64 " WR %" PRIu64 " PRE %" PRIu64 " REF %" PRIu64 ", %" PRIu64
                    " hits, %" PRIu64 " misses, %" PRIu64 " conflicts, %.1f nJ, %s",
                    c->name, cycles, 1 / c->clock_ns, mr_dram_ns(c, cycles),
                    n->commands[MR_DRAM_ACT], n->commands[MR_DRAM_RD], n->commands[MR_DRAM_WR],
                    n->commands[MR_DRAM_PRE], n->commands[MR_DRAM_REF], n->hits, n->misses,
                    n->conflicts, n->pj / 1e3, c->refresh ? "refresh on" : "refresh off");
}
