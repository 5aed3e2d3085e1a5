/* SPDX-License-Identifier: Apache-2.0 */
/* From the seed image to tables: rtl/rgu/rgu_fetch.sv (commands, records), rgu_sincos.sv,
 * rgu_expand.sv (passes), rgu_tables.sv (slots). */
#include "models/cycle/rgu_part.h"

enum {
    FIRST_COMMAND = 6, /* cycles of address arithmetic after the start */
    WHOLE_CHUNKS = 4   /* tables that wait for their reader: rgu_tables.sv, slot_ready_o */
};

void rgu_feed_init(rgu_feed *f, const mr_rgu_unit *u, const rgu_walk *w) {
    uint32_t record = 8 + 2 * w->log_d * (w->log_d - 1);
    f->unit = u;
    f->terms = w->terms;
    f->planes = w->log_d * (w->log_d - 1) / 2;
    f->stages = w->log_d - 1;
    f->beats = (record + RGU_WORD - 1) / RGU_WORD;
    f->group =
        8 / (f->beats == 3 ? 4 : f->beats); /* records that half of the record memory holds */
    f->scale_beats = w->d * 4 / RGU_WORD;
    f->slots = (1u << u->table_address_bits) / (w->d / 2 / u->lanes);
    f->row_scale = w->row_scale;
    f->repeats = w->repeats;
    f->visits = (uint64_t)(w->o1 - w->o0 + 1) * w->repeats;
    f->visit = f->repeat = 0;
    f->row_records = (uint64_t)(w->i1 - w->i0 + 1) * w->terms;
    f->left = f->row_records;
    f->row_bytes = (uint64_t)w->chunks_in * w->terms * f->beats * RGU_WORD;
    f->row_addr =
        w->seeds + f->row_bytes * w->o0 + (uint64_t)w->i0 * w->terms * f->beats * RGU_WORD;
    f->addr = f->row_addr;
    f->scale_bytes = (uint64_t)w->d * 4;
    f->scale_addr = w->scales + f->scale_bytes * w->o0;
    rgu_reader_init(&f->reader, u);
    f->last_give = FIRST_COMMAND - 1;
    f->scales_next = w->row_scale;
    f->asking = false;
    f->groups = f->asked = f->groups_freed = f->scales_given = f->scale_pops = 0;
    f->arrived = 0;
    f->record_words = 0;
    f->term = 0;
    f->total_terms = f->visits * f->row_records;
    f->group_at = 0;
    f->group_now = 0;
    f->coef = 0;
    f->coefs = 0;
    f->begun = f->last_take = -1000;
    f->chunks = f->pops = 0;
    for (uint32_t s = 1; s <= f->stages; s++) {
        uint32_t entries = 1u << s;
        f->words[s] = entries <= u->expand_lanes ? 1 : entries / u->expand_lanes;
    }
    for (uint32_t i = 1; i <= 4; i++) { /* nothing before the first */
        f->take[RGU_COEFFICIENTS - i] = f->pop[RGU_COEFFICIENTS - i] = -1000;
    }
}

uint32_t rgu_feed_term_cycles(const rgu_feed *f) {
    uint32_t sum = 0;
    for (uint32_t s = 1; s <= f->stages; s++) {
        uint32_t pass = 2 * f->words[s], least = f->unit->expand_latency + f->words[s] - 1;
        sum += s * (pass > least ? pass : least);
    }
    return sum;
}

bool rgu_feed_tables(const rgu_feed *f, uint64_t c, rgu_cycle *at) {
    if (c >= f->chunks)
        return false;
    *at = f->tables[c % RGU_CHUNKS];
    if (c)
        *at = rgu_max(*at, f->popped[(c - 1) % RGU_CHUNKS] + 1);
    return true;
}

void rgu_feed_pop(rgu_feed *f, rgu_cycle at) { f->popped[f->pops++ % RGU_CHUNKS] = at; }
void rgu_feed_scale_pop(rgu_feed *f, rgu_cycle at) { f->scale_pop[f->scale_pops++ % 4] = at; }

/* The pass that writes the tables starts only where a slot is free. False: not known yet. */
static bool slot(const rgu_feed *f, rgu_cycle *at) {
    uint64_t chunk = f->term / f->terms, need = 0;
    if (chunk >= WHOLE_CHUNKS)
        need = chunk - WHOLE_CHUNKS + 1;
    if (f->term + 1 > f->slots) {
        uint64_t n = (f->term + 1 - f->slots + f->terms - 1) / f->terms;
        need = n > need ? n : need;
    }
    if (need > f->pops)
        return false;
    if (need)
        *at = rgu_max(*at, f->popped[(need - 1) % RGU_CHUNKS] + 1);
    return true;
}

bool rgu_feed_expand(rgu_feed *f) {
    const mr_rgu_unit *u = f->unit;
    uint32_t all = 2 * f->planes;
    uint64_t before = f->term;
    while (f->term < f->arrived) {
        uint32_t stage = 1, pass = 0;
        if (f->coef == 0) {
            rgu_cycle step = rgu_max(f->last_take, f->whole[f->term % RGU_RECORDS] + 1);
            f->header = rgu_max(step + 1, f->begun);
        } else { /* only the last pass is waited in */
            stage = f->stages;
            pass = f->stages - 1;
        }
        uint64_t c = f->coefs;
        rgu_cycle end = 0;
        for (uint32_t i = f->coef; i < all; i++, c++) {
            bool side = i & 1;
            rgu_cycle take = rgu_max(f->take[(c - 1) % RGU_COEFFICIENTS] + u->angle_interval,
                                     f->pop[(c - u->angle_queue) % RGU_COEFFICIENTS] + 1);
            if (i == 0)
                take = rgu_max(take, f->header + 1);
            rgu_cycle start = rgu_max(f->pop[(c - 1) % RGU_COEFFICIENTS] + 1,
                                      f->pop[(c - 2) % RGU_COEFFICIENTS] + u->expand_latency);
            start = rgu_max(start, take + u->angle_latency);
            if (!side && stage == f->stages && pass == f->stages - 1 && !slot(f, &start)) {
                f->coef = i;
                f->coefs = c;
                return f->term != before;
            }
            f->take[c % RGU_COEFFICIENTS] = take;
            end = start + f->words[stage] - 1;
            f->pop[c % RGU_COEFFICIENTS] = end;
            if (i == 0)
                f->begun = start;
            if (side && ++pass == stage) {
                pass = 0;
                stage++;
            }
        }
        f->coef = 0;
        f->coefs = c;
        f->last_take = f->take[(c - 1) % RGU_COEFFICIENTS];
        if (++f->group_at == f->size[f->group_now % 4]) { /* with the step of its last angle */
            f->freed[f->group_now % 4] = f->take[(c - 2) % RGU_COEFFICIENTS];
            f->group_now++;
            f->groups_freed++;
            f->group_at = 0;
        }
        if (++f->term % f->terms == 0)
            f->tables[f->chunks++ % RGU_CHUNKS] = end + u->table_latency;
    }
    return f->term != before;
}

/* The next command, if it is known when it can be given. */
static bool command(rgu_feed *f) {
    rgu_cycle at = rgu_max(f->last_give + 1, f->reader.free);
    uint64_t addr;
    uint32_t words;
    if (f->visit == f->visits)
        return false;
    if (f->scales_next) {
        if (f->scales_given >= 2 + f->scale_pops)
            return false;
        if (f->scales_given >= 2)
            at = rgu_max(at, f->scale_pop[(f->scales_given - 2) % 4] + 1);
        f->scales_given++;
        addr = f->scale_addr;
        words = f->scale_beats;
        f->kind_scales = true;
        f->scales_next = false;
    } else {
        if (f->groups >= 2 + f->groups_freed)
            return false;
        if (f->groups >= 2)
            at = rgu_max(at, f->freed[(f->groups - 2) % 4] + 1);
        uint32_t n = f->left < f->group ? (uint32_t)f->left : f->group;
        f->size[f->groups++ % 4] = n;
        f->asked += n;
        addr = f->addr;
        words = n * f->beats;
        f->kind_scales = false;
        f->addr += (uint64_t)words * RGU_WORD;
        f->left -= n;
        if (!f->left) {
            f->left = f->row_records;
            f->visit++;
            f->scales_next = f->row_scale;
            if (++f->repeat == f->repeats) {
                f->repeat = 0;
                f->row_addr += f->row_bytes;
                f->scale_addr += f->scale_bytes;
            }
            f->addr = f->row_addr;
        }
    }
    f->last_give = at;
    f->kind_left = words;
    rgu_reader_command(&f->reader, at, addr, words * RGU_WORD);
    f->asking = true;
    return true;
}

bool rgu_feed_ask(rgu_feed *f, rgu_cycle *at, uint32_t *words) {
    rgu_feed_expand(f);
    if (!f->asking && !command(f))
        return false;
    *at = rgu_reader_ask(&f->reader, words);
    return true;
}

void rgu_feed_grant(rgu_feed *f, rgu_reads *m, rgu_cycle at, uint32_t words) {
    rgu_cycle out[RGU_BEATS];
    rgu_reader_grant(&f->reader, m, at, words, out);
    if (!f->kind_scales) {
        for (uint32_t i = 0; i < words; i++) {
            if (++f->record_words == f->beats) {
                f->record_words = 0;
                f->whole[f->arrived++ % RGU_RECORDS] = out[i];
            }
        }
    }
    f->kind_left -= words;
    f->asking = f->kind_left != 0;
}
