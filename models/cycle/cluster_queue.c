/* SPDX-License-Identifier: Apache-2.0 */
/* Which prompt a node computes next, and what happens when a step ends. */
#include "models/cycle/cluster_sim.h"

#include <math.h>

/* A request became the first of node n's queue. */
void mr_sim_new_head(sim *s, size_t n) {
    node *d = &s->nodes[n];
    if (!d->queued || d->queue[0] == d->head)
        return;
    d->head = d->queue[0];
    job *j = &s->jobs[d->head];
    if (++j->heads < j->base || j->state != QUEUED || !mr_sim_admit(s, d->head))
        return;
    for (size_t i = 0; i < j->plan.count; i++)
        if (j->plan.member[i] != n)
            mr_sim_kick(s, j->plan.member[i]);
}

/* The first request of a queue whose prompt has not begun and that waits for this node alone. */
static uint32_t first_waiting(const sim *s, size_t n) {
    const node *d = &s->nodes[n];
    for (size_t i = 0; i < d->queued; i++) {
        const job *j = &s->jobs[d->queue[i]];
        if ((j->state == QUEUED || j->state == NO_ROOM) && j->base == 1)
            return d->queue[i];
    }
    return NONE;
}

/* How long the first waiting request of node m will wait for the prompt that runs there, less what
   fetching its prefix elsewhere may take. */
static bool worth_taking(sim *s, size_t m, uint32_t r) {
    const node *d = &s->nodes[m];
    const job *first = &s->jobs[d->queue[0]];
    if (d->queue[0] == r) /* it has no room there */
        return true;
    double left = 1 - (first->fresh ? (double)first->done / (double)first->fresh : 0);
    size_t hit = mr_sim_request_of(s, r).hit;
    return (double)first->estimate * left > (double)(hit * s->block_wire * s->c->byte_ps);
}

/*
 * Before a node begins its next prompt: an older request that waits for another node goes first,
 * unless that one will begin it sooner than its prefix could be fetched.
 */
static void take_over(sim *s, size_t n) {
    uint32_t r = s->nodes[n].queued ? s->nodes[n].queue[0] : NONE, own = r;
    for (size_t m = 0; m < s->c->nodes; m++) {
        uint32_t first = m == n ? NONE : first_waiting(s, m);
        if (first < r && worth_taking(s, m, first))
            r = first;
    }
    if (r == own ||
        mr_store_pinned(s->store, n) + mr_sim_blocks_of(s, r) + mr_sim_output_blocks(s, r) >
            s->c->capacity)
        return;
    job *j = &s->jobs[r];
    size_t from = j->plan.member[0];
    node *a = &s->nodes[from], *b = &s->nodes[n];
    mr_sim_take_out(a->queue, &a->queued, r);
    a->backlog -= j->estimate;
    if (j->state == NO_ROOM)
        mr_sim_take_out(s->no_room, &s->no_rooms, r);
    j->state = QUEUED;
    j->heads = 0;
    j->plan.member[0] = j->plan.root = (uint8_t)n;
    mr_sim_append(s, &b->queue, &b->queue_room, &b->queued, r);
    if (s->failed)
        return;
    memmove(b->queue + 1, b->queue, (b->queued - 1) * sizeof *b->queue);
    b->queue[0] = r;
    b->backlog += j->estimate;
    if (a->head == r) {
        a->head = NONE;
        mr_sim_kick(s, from);
    }
}

/* How long until the last member of a request comes, by what is known of the steps that run. */
static uint64_t wait_for(const sim *s, const job *j) {
    uint64_t last = s->now;
    for (size_t i = 0; i < j->plan.count; i++) {
        const node *d = &s->nodes[j->plan.member[i]];
        uint64_t end = d->end == UINT64_MAX ? d->start + d->compute : d->end;
        if (d->running && end > last)
            last = end;
    }
    return last - s->now;
}

/* A decode step, if it is likely to be over within `gap`. */
static bool fill_gap(sim *s, size_t n, uint64_t gap) {
    node *d = &s->nodes[n];
    const mr_machine *m = s->c->machine;
    uint64_t attention = mr_machine_decode_attention_ns(m, d->local_tokens);
    uint64_t decode = mr_machine_step_ns(m, d->actives, d->actives, attention) * 1000 + d->debt;
    if (!d->actives || decode > gap)
        return false;
    mr_sim_begin_step(s, n, NONE, 0, 0);
    mr_sim_try_end(s, n);
    return true;
}

void mr_sim_kick(sim *s, size_t n) {
    node *d = &s->nodes[n];
    if (d->running || d->held)
        return;
    if (d->head == NONE && s->waiting)
        take_over(s, n);
    mr_sim_new_head(s, n);
    if (d->running || d->held)
        return;
    if (d->queued) {
        job *j = &s->jobs[d->queue[0]];
        if (j->state == READY || j->state == RUNNING) {
            uint64_t gap = wait_for(s, j);
            if (gap && fill_gap(s, n, gap))
                return;
            d->held = true;
            if (++j->ready == j->plan.count)
                mr_sim_begin_part(s, d->queue[0]);
            return;
        }
    }
    if (d->actives) {
        mr_sim_begin_step(s, n, NONE, 0, 0);
        mr_sim_try_end(s, n);
    }
}

static void count_gap(sim *s, uint64_t ps) {
    double x = (double)ps / 1e6; /* microseconds */
    int bin = x > 1 ? (int)(log2(x) * OCTAVE) : 0;
    s->gaps[bin < BINS ? bin : BINS - 1]++;
    s->gap_sum += (double)ps * 1e-12;
    s->result->decode_tokens++;
}

/* One token for each request of the step; those that have their last one are put in s->ended. */
static size_t decode_tokens(sim *s, size_t n) {
    node *d = &s->nodes[n];
    size_t kept = 0, ends = 0, all = d->actives;
    for (size_t i = 0; i < all; i++) {
        uint32_t r = d->active[i];
        job *j = &s->jobs[r];
        if (i >= d->stepping) {
            d->active[kept++] = r; /* came while the step ran */
            continue;
        }
        count_gap(s, s->now - j->last);
        j->last = s->now;
        j->local_tokens++;
        d->local_tokens++;
        if (++j->generated < mr_sim_asked(s, r)->output) {
            d->active[kept++] = r;
        } else {
            mr_sim_count_reads(s, r, false);
            s->ended[ends++] = r;
        }
    }
    d->actives = kept;
    while (d->lates && d->actives < s->c->step_requests) {
        uint32_t r = d->late[0];
        mr_sim_take_out(d->late, &d->lates, r);
        mr_sim_append(s, &d->active, &d->active_room, &d->actives, r);
        mr_sim_count_reads(s, r, true);
    }
    return ends;
}

static void end_part(sim *s, size_t n, uint32_t r) {
    node *d = &s->nodes[n];
    job *j = &s->jobs[r];
    if (j->last_step) {
        mr_sim_take_out(d->queue, &d->queued, r);
        d->backlog -= j->estimate;
        if (d->head == r)
            d->head = NONE;
    }
    if (--j->left)
        return;
    j->done += j->now_tokens;
    if (j->last_step)
        mr_sim_prompt_done(s, r);
}

void mr_sim_end_step(sim *s, size_t n) {
    node *d = &s->nodes[n];
    d->busy += s->now - d->start;
    size_t ends = decode_tokens(s, n);
    d->running = false;
    d->end = UINT64_MAX;
    d->held = true; /* nothing starts here before this is over */
    for (size_t i = 0; i < ends; i++)
        mr_sim_finished(s, s->ended[i]);
    if (d->part != NONE)
        end_part(s, n, d->part);
    d->held = false;
    mr_sim_kick(s, n);
}
