/* SPDX-License-Identifier: Apache-2.0 */
/* The RGU's side of the memory port: mr_axi_split, mr_axi_rd, mr_axi_wr, mr_align, and the memory
 * of sim/axi_memory.cpp. */
#include <string.h>

#include "models/cycle/rgu_part.h"

enum { CREDIT = 2 * RGU_WORD - 1 };

/* The memory decides in one cycle what it offers in the next: the first such cycle from `want` on
 * in which the bytes for a word are there. */
static rgu_cycle move(uint32_t bytes, rgu_cycle *last, uint32_t *credit, rgu_cycle want) {
    rgu_cycle at = rgu_max(want, *last + 1);
    if (bytes == RGU_WORD) { /* never short */
        *last = at;
        return at;
    }
    rgu_cycle passed = at - *last;
    if ((uint64_t)passed * bytes + *credit < RGU_WORD) {
        passed = (RGU_WORD - *credit + bytes - 1) / bytes;
        at = *last + passed;
    }
    uint64_t c = (uint64_t)passed * bytes + *credit;
    *credit = (uint32_t)(c > CREDIT ? CREDIT : c) - RGU_WORD;
    *last = at;
    return at;
}

void rgu_reads_init(rgu_reads *r, const mr_rgu_unit *u) {
    *r = (rgu_reads){.latency = u->read_latency, .bytes = u->port_bytes, .offered = -2};
    r->credit = CREDIT; /* the unit rested */
}

void rgu_reads_burst(rgu_reads *r, rgu_cycle address, uint32_t words, rgu_cycle *beats) {
    rgu_cycle want = address + r->latency - 1;
    for (uint32_t i = 0; i < words; i++)
        beats[i] = move(r->bytes, &r->offered, &r->credit, want) + 1;
    r->beats += words;
}

void rgu_reader_init(rgu_reader *r, const mr_rgu_unit *u) {
    r->unit = u;
    r->left = 0;
    r->next = r->free = 0;
    r->words = r->bursts = 0;
    r->align = -8;
}

void rgu_reader_command(rgu_reader *r, rgu_cycle at, uint64_t addr, uint32_t bytes) {
    uint32_t offset = (uint32_t)(addr % RGU_WORD);
    uint32_t lines = (bytes + RGU_WORD - 1) / RGU_WORD;
    r->addr = addr;
    r->left = (offset + bytes + RGU_WORD - 1) / RGU_WORD;
    r->skip = offset && r->left > 1;
    r->more = lines + r->skip > r->left;
    r->align = rgu_max(at + 1, r->align);
    r->next = at + 1;
}

rgu_cycle rgu_reader_ask(const rgu_reader *r, uint32_t *words) {
    const mr_rgu_unit *u = r->unit;
    uint32_t room = u->read_burst - (uint32_t)(r->addr / RGU_WORD) % u->read_burst;
    uint32_t n = r->left < room ? r->left : room;
    rgu_cycle at = r->next;
    /* room in the buffer, and an end of some burst */
    if (r->words + n > u->read_buffer)
        at = rgu_max(at, r->popped[(r->words + n - u->read_buffer - 1) % RGU_BEATS] + 1);
    if (r->bursts >= u->read_outstanding)
        at = rgu_max(at, r->ended[(r->bursts - u->read_outstanding) % RGU_BURSTS] + 1);
    *words = n;
    return at;
}

uint32_t rgu_reader_grant(rgu_reader *r, rgu_reads *m, rgu_cycle at, uint32_t words,
                          rgu_cycle *out) {
    rgu_cycle beats[RGU_BEATS];
    uint32_t lines = 0;
    rgu_reads_burst(m, at, words, beats);
    r->ended[r->bursts++ % RGU_BURSTS] = beats[words - 1];
    for (uint32_t i = 0; i < words; i++) {
        r->align = rgu_max(r->align, beats[i]) + 1; /* from the buffer to the aligner */
        r->popped[r->words++ % RGU_BEATS] = r->align;
        if (!r->skip)
            out[lines++] = r->align + 1;
        r->skip = false;
    }
    r->addr = (r->addr / RGU_WORD + words) * RGU_WORD;
    r->left -= words;
    if (!r->left && r->more)
        out[lines++] = ++r->align + 1;
    r->next = at + 1;
    r->free = at; /* the splitter takes a command with its last burst's turn */
    return lines;
}

void rgu_writer_init(rgu_writer *w, const mr_rgu_unit *u) {
    memset(w, 0, offsetof(rgu_writer, answers));
    w->unit = u;
    w->bursts = w->beats = 0;
    w->decided = -2;
    w->credit = CREDIT;
    w->taken = w->split = w->align = -8;
    w->sent[0] = w->sent[1] = w->answer = -8;
}

rgu_cycle rgu_writer_command(rgu_writer *w, rgu_cycle from, uint64_t addr, uint32_t bytes,
                             uint32_t offset) {
    const mr_rgu_unit *u = w->unit;
    uint32_t to = (uint32_t)(addr % RGU_WORD), all = (to + bytes + RGU_WORD - 1) / RGU_WORD;
    uint32_t first = u->write_burst - (uint32_t)(addr / RGU_WORD) % u->write_burst;
    rgu_cycle at = rgu_max(from, w->split);
    w->lines = (offset + bytes + RGU_WORD - 1) / RGU_WORD;
    w->skip = to < offset && w->lines > 1;
    w->steps = all + w->skip;
    w->bursts_here = 0;
    rgu_cycle turn = at;
    for (uint32_t left = all, n = first; left; left -= n, n = u->write_burst) {
        if (n > left)
            n = left;
        turn++;
        if (w->bursts >= u->write_outstanding)
            turn = rgu_max(turn, w->answers[(w->bursts - u->write_outstanding) % RGU_BURSTS] + 1);
        w->turn[w->bursts_here] = turn;
        w->words[w->bursts_here++] = n;
        w->bursts++;
    }
    w->split = turn;
    w->align = rgu_max(at + 1, w->align); /* with the step that ends the command before */
    w->at = w->burst = w->beat = 0;
    return w->taken = at;
}

/* One step of the aligner, not before `from`. */
static void step(rgu_writer *w, rgu_cycle from) {
    const mr_rgu_unit *u = w->unit;
    rgu_cycle at = rgu_max(from, w->align + 1);
    if (w->skip) { /* the first line of two that the first beat needs */
        w->skip = false;
    } else {
        at = rgu_max(at, w->sent[0] + 1); /* a register of two entries */
        rgu_cycle sent = rgu_max(rgu_max(at, w->sent[1]) + 1, w->turn[w->burst] + 1);
        sent = move(u->port_bytes, &w->decided, &w->credit, sent - 1) + 1;
        w->sent[0] = w->sent[1];
        w->sent[1] = sent;
        w->beats++;
        if (++w->beat == w->words[w->burst]) {
            w->answer = rgu_max(sent + u->write_latency + 1, w->answer + 1);
            w->answers[(w->bursts - w->bursts_here + w->burst) % RGU_BURSTS] = w->answer;
            w->burst++;
            w->beat = 0;
        }
    }
    w->align = at;
    w->at++;
}

rgu_cycle rgu_writer_line(rgu_writer *w, rgu_cycle from) {
    step(w, from);
    rgu_cycle taken = w->align;
    if (--w->lines == 0)
        while (w->at < w->steps)
            step(w, 0);
    return taken;
}
