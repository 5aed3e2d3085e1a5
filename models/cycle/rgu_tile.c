/* SPDX-License-Identifier: Apache-2.0 */
/* Tile mode: rtl/rgu/rgu_gen.sv (words), rgu_block.sv (in place: a word of the next block where a
 * rep of this one was read), rgu_reader.sv (row steps), rgu_format.sv (lines), rgu_store.sv. */
#include "models/cycle/rgu_part.h"

enum { PIPE = 8, SLOTS = 64, REPS = 512, LINES = 64 };

/* What one rep of a block gives in the columns of its row and of its mirror row. */
typedef struct {
    bool in;
    uint8_t lines[2]; /* of its one or two steps */
    uint16_t bytes;
    uint8_t offset; /* of its first byte in its first line */
    uint32_t at;    /* bytes from the start of the window's row */
} segment;

typedef struct {
    const mr_rgu_unit *u;
    const mr_rgu_descriptor *d;
    rgu_feed feed;
    rgu_reads memory;
    rgu_writer writer;
    mr_rgu_timing *t;
    /* shape */
    uint32_t log_d, edge, parts, blocks, reps;
    bool both, wide, two;
    uint32_t o0, o1, i0, i1, size;
    /* generator: a slot is a word or an empty place; counts of enabled cycles against cycles */
    uint64_t slots;         /* issued */
    int64_t enabled[SLOTS]; /* ring by slot: in which it stands before the transform */
    rgu_cycle wall[SLOTS];  /* the same in cycles */
    int64_t word_of[SLOTS]; /* ring by slot: 1 a word, 0 an empty place */
    uint64_t words_written;
    uint32_t block_words, word_in_block, x_words;
    rgu_cycle room[REPS]; /* when the block's rep has been read, of the block being read */
    bool open;            /* no block before: all of it is free */
    rgu_cycle full;       /* the block being written is whole: cycle of its last word */
    uint64_t blocks_written;
    /* where the generator stands */
    uint64_t chunk;
    uint64_t chunks;
    uint32_t gen_block, gen_word, odd_cycles, even_cycles, odd_terms, even_terms;
    bool gen_done, in_chunk;
    /* reader, format, queues */
    rgu_cycle now;       /* of the last shift */
    rgu_cycle last_step; /* of a block */
    uint64_t shifts;
    uint8_t token[PIPE]; /* ring by shift: lines of the step that came in */
    bool command[PIPE];
    uint64_t command_addr[PIPE];
    uint16_t command_bytes[PIPE];
    uint8_t command_offset[PIPE];
    rgu_cycle out;           /* the output register is free for a line in this cycle */
    rgu_cycle popped[LINES]; /* ring by line */
    uint64_t lines;
    rgu_cycle command_popped[LINES];
    uint64_t commands;
    struct {
        rgu_cycle from;
        uint64_t addr;
        uint16_t bytes;
        uint8_t offset, lines;
    } queue[LINES]; /* commands whose lines have not begun */
    uint64_t queued;
    uint32_t lines_left; /* of the command that the writer has */
    rgu_cycle last_pop;
    segment seg[16][2];
} tile;

/* ---- generator ----------------------------------------------------------------------------------
 */

/* Cycle of an enabled cycle not later than the newest slot's. */
static rgu_cycle wall_of(const tile *g, int64_t enabled) {
    uint64_t s = g->slots - 1;
    while (s && g->slots - s < SLOTS - 1 && g->enabled[(s - 1) % SLOTS] >= enabled)
        s--;
    return g->wall[s % SLOTS] - (g->enabled[s % SLOTS] - enabled);
}

/* A slot is issued over `cycles` enabled cycles; the word that it pushes out is written. */
static void issue(tile *g, bool word, int64_t cycles) {
    uint64_t s = g->slots, depth = g->u->transform_slots;
    rgu_cycle at = g->wall[(s - 1) % SLOTS] + 1;
    bool head = s >= depth && g->word_of[(s - depth) % SLOTS];
    if (head && !g->open) {
        uint32_t rep = g->x_words ? g->word_in_block / (2 * g->x_words) * g->x_words +
                                        g->word_in_block % g->x_words
                                  : g->word_in_block;
        at = rgu_max(at, g->room[rep]);
    }
    g->enabled[s % SLOTS] = g->enabled[(s - 1) % SLOTS] + cycles;
    g->wall[s % SLOTS] = at + cycles - 1;
    g->word_of[s % SLOTS] = word;
    g->slots++;
    if (head && ++g->word_in_block == g->block_words) {
        g->word_in_block = 0;
        g->full = g->wall[s % SLOTS];
        g->blocks_written++;
    }
}

/* The chunk's first read waits for its tables; meanwhile empty groups push the last words out. */
static void begin_chunk(tile *g) {
    rgu_cycle ready = 0, at;
    uint32_t words, latency = g->u->product_latency;
    while (!rgu_feed_tables(&g->feed, g->chunk, &ready))
        if (rgu_feed_ask(&g->feed, &at, &words))
            rgu_feed_grant(&g->feed, &g->memory, at, words);
    if (!g->slots) { /* enabled cycles count from here */
        g->t->first_tables = (uint64_t)ready;
        g->enabled[SLOTS - 1] = g->wall[SLOTS - 1] = ready - 1 + latency;
        g->word_of[SLOTS - 1] = 0;
        for (int i = 0; i < SLOTS; i++)
            g->word_of[i] = 0;
        return;
    }
    uint64_t last = g->slots - 1; /* the last word */
    for (;;) {
        int64_t here = g->enabled[(g->slots - 1) % SLOTS] - latency + 1;
        rgu_cycle now = wall_of(g, here);
        if (now >= ready)
            return;
        uint64_t push = last + g->u->transform_slots;
        bool busy = g->slots <= push || g->enabled[push % SLOTS] >= here;
        if (!busy) { /* nothing moves until then */
            g->enabled[(g->slots - 1) % SLOTS] += ready - now;
            g->wall[(g->slots - 1) % SLOTS] += ready - now;
            return;
        }
        for (uint32_t h = 0; h < g->parts; h++)
            issue(g, false, 1);
    }
}

static void start_chunk(tile *g) {
    const mr_rgu_descriptor *d = g->d;
    uint32_t across = g->i1 - g->i0 + 1;
    uint32_t row = g->o0 + (uint32_t)(g->chunk / across),
             col = g->i0 + (uint32_t)(g->chunk % across);
    uint32_t chunks_in = (d->d_in + g->edge - 1) / g->edge;
    begin_chunk(g);
    if (!g->both) {
        g->odd_terms = d->has_odd ? d->terms : 0;
    } else {
        g->odd_terms = d->odd ? d->odd[(size_t)row * chunks_in + col] : d->terms / 2;
    }
    g->even_terms = d->terms - g->odd_terms;
    g->odd_cycles = g->odd_terms ? g->odd_terms : 1;
    g->even_cycles = g->even_terms ? g->even_terms : 1;
    g->gen_block = g->gen_word = 0;
    g->in_chunk = true;
}

/* Goes on until the block being written is whole. */
static void generate(tile *g, uint64_t blocks) {
    while (g->blocks_written < blocks) {
        if (g->gen_done) { /* no chunk waits: empty groups push the last words */
            issue(g, false, 1);
            continue;
        }
        if (!g->in_chunk)
            start_chunk(g);
        bool odd = g->both ? g->gen_word / g->parts % 2 : g->d->has_odd;
        issue(g, true, odd ? g->odd_cycles : g->even_cycles);
        if (++g->gen_word == g->block_words) {
            g->gen_word = 0;
            if (++g->gen_block == g->blocks) {
                g->in_chunk = false;
                rgu_feed_pop(&g->feed, wall_of(g, g->enabled[(g->slots - 1) % SLOTS] -
                                                      g->u->product_latency));
                g->gen_done = ++g->chunk == g->chunks;
            }
        }
    }
}

/* ---- lines to the port
 * ---------------------------------------------------------------------------- */

static void push_command(tile *g, rgu_cycle at, uint32_t slot) {
    uint32_t q = (uint32_t)(g->queued++ % LINES);
    g->queue[q].from = at + 1;
    g->queue[q].addr = g->command_addr[slot];
    g->queue[q].bytes = g->command_bytes[slot];
    g->queue[q].offset = g->command_offset[slot];
}

/* A line pushed into the queue in `at`. */
static void push_line(tile *g, rgu_cycle at) {
    if (!g->lines_left) {
        uint32_t q = (uint32_t)(g->commands % LINES);
        rgu_cycle taken = rgu_writer_command(&g->writer, g->queue[q].from, g->queue[q].addr,
                                             g->queue[q].bytes, g->queue[q].offset);
        g->lines_left = g->writer.lines;
        g->command_popped[g->commands++ % LINES] = taken;
    }
    g->last_pop = rgu_writer_line(&g->writer, at + 1);
    g->popped[g->lines++ % LINES] = g->last_pop;
    g->lines_left--;
}

/* The cycle in which everything from the reader on moves, `now` being the last such. What stands at
 * the pipeline's end leaves before. */
static rgu_cycle settle(tile *g) {
    const mr_rgu_unit *u = g->u;
    rgu_cycle next = g->now + 1;
    uint32_t waiting = (uint32_t)((g->shifts - 1) % PIPE),
             leaving = (uint32_t)((g->shifts - 4) % PIPE);
    if (g->command[waiting]) {
        rgu_cycle at = next;
        uint64_t c = g->queued;
        if (c >= u->command_queue && c - u->command_queue < g->commands)
            at = rgu_max(at, g->command_popped[(c - u->command_queue) % LINES] + 1);
        push_command(g, at, waiting);
        g->command[waiting] = false;
        next = at;
    }
    for (uint32_t n = g->token[leaving]; n; n--) {
        rgu_cycle made = rgu_max(g->now + 1, g->out), in = made + 1;
        if (g->lines >= u->line_queue)
            in = rgu_max(in, g->popped[(g->lines - u->line_queue) % LINES] + 1);
        g->out = in;
        push_line(g, in);
        next = rgu_max(next, made);
    }
    g->token[leaving] = 0;
    return next;
}

static void shift(tile *g, rgu_cycle at) {
    g->now = at;
    g->shifts++;
    g->token[g->shifts % PIPE] = 0;
    g->command[g->shifts % PIPE] = false;
}

/* ---- rows
 * ------------------------------------------------------------------------------------------- */

/* Columns of the segments of a block: rgu_reader's stage 0. */
static void segments(tile *g, uint32_t chunk_col, uint32_t block) {
    const mr_rgu_descriptor *d = g->d;
    bool ten = g->log_d == 10;
    uint32_t width = g->wide ? 128 : 64, size = g->size;
    for (uint32_t hi = 0; hi < g->parts; hi++) {
        uint32_t of = (hi >> 1) ^ (g->wide ? (block & 3) << 1 : block & 7);
        uint32_t col10 = ten ? of << 6 : (of & 1) << 6;
        for (uint32_t mirror = 0; mirror < 2; mirror++) {
            segment *s = &g->seg[hi][mirror];
            uint32_t local = (mirror ? ~col10 : col10) & (g->edge - 1) & ~(width - 1);
            uint64_t col = (uint64_t)chunk_col * g->edge + local, end = col + width;
            s->in = col < d->col1 && end > d->col0;
            s->lines[0] = s->lines[1] = 0;
            if (!s->in)
                continue;
            uint64_t lo = col < d->col0 ? d->col0 : col, hi_col = end > d->col1 ? d->col1 : end;
            uint32_t skip = (uint32_t)(lo - col) << size;
            uint32_t bytes = (uint32_t)(hi_col - lo) << size;
            uint32_t first = skip / RGU_WORD, last = (skip + bytes - 1) / RGU_WORD;
            s->bytes = (uint16_t)bytes;
            s->offset = (uint8_t)(skip % RGU_WORD);
            s->at = (uint32_t)(lo - d->col0) << size;
            for (uint32_t y = 0; y < (g->two ? 2u : 1u); y++) {
                uint32_t a, b;
                if (size == 0) {
                    a = b = g->wide ? y : 0;
                } else if (size == 1) {
                    a = g->both ? y : 0;
                    b = g->both ? y : 1;
                } else {
                    a = g->both ? 2 * y : 0;
                    b = g->both ? 2 * y + 1 : 3;
                }
                uint32_t from = first > a ? first : a, to = last < b ? last : b;
                s->lines[y] = from <= to ? (uint8_t)(to - from + 1) : 0;
                if (size == 0 && g->both && y == 0)
                    s->lines[y] = 0; /* kept for the second half of its line */
            }
        }
    }
}

/* All row steps of the full block; the last shift has come before `ready`. */
static void read_block(tile *g, uint32_t chunk_row, uint32_t block, rgu_cycle ready) {
    const mr_rgu_descriptor *d = g->d;
    uint32_t half = g->edge / 2, top = g->log_d == 10 ? (g->wide ? block >> 2 : block >> 3)
                                                      : (g->wide ? block : block >> 1);
    uint64_t first_row = (uint64_t)chunk_row * g->edge;
    uint32_t steps = g->two ? 2 : 1, rep = 0;
    bool first = true;
    for (uint32_t lo = 0; lo < 32; lo++) {
        for (uint32_t hi = 0; hi < g->parts; hi++, rep++) {
            for (uint32_t mirror = 0; mirror < 2; mirror++) {
                uint32_t local = top * half + hi * 32 + lo;
                uint64_t row = first_row + (mirror ? g->edge - 1 - local : local);
                const segment *s = &g->seg[hi][mirror];
                bool in = s->in && row >= d->row0 && row < d->row1;
                for (uint32_t y = 0; y < steps; y++) {
                    rgu_cycle at = settle(g);
                    if (first) {
                        for (int idle = 0; at < ready; idle++) {
                            shift(g, idle < PIPE ? at : ready - 1);
                            at = settle(g);
                        }
                        first = false;
                    }
                    shift(g, at);
                    uint32_t p = (uint32_t)(g->shifts % PIPE);
                    if (in) {
                        g->token[p] = s->lines[y];
                        if (y == 0) {
                            g->command[p] = true;
                            g->command_addr[p] = d->dst + (row - d->row0) * d->dst_stride + s->at;
                            g->command_bytes[p] = s->bytes;
                            g->command_offset[p] = s->offset;
                        }
                    }
                    /* the step before has left the stage that tells the generator */
                    if (mirror == 0 && y == 0 && rep) {
                        /* known with the next shift */
                        g->room[rep - 1] = -1;
                    }
                    if (rep && g->room[rep - 1] < 0 && !(mirror == 0 && y == 0))
                        g->room[rep - 1] = at + 1;
                }
            }
        }
    }
    g->last_step = g->now;
    rgu_cycle at = settle(g); /* the last step leaves that stage */
    shift(g, at);
    g->room[rep - 1] = at + 1;
    g->open = false;
}

static uint32_t log2_of(uint32_t v) {
    uint32_t l = 0;
    while (v > 1)
        v >>= 1, l++;
    return l;
}

rgu_cycle rgu_tile(const mr_rgu_unit *u, const mr_rgu_descriptor *d, mr_rgu_timing *t) {
    tile g;
    g.u = u;
    g.d = d;
    g.t = t;
    g.log_d = d->n;
    g.edge = 1u << d->n;
    g.parts = g.edge / 2 / u->lanes;
    g.both = d->has_odd && d->has_even;
    g.wide = d->item == 1 && !g.both;
    g.two = g.both || g.wide;
    g.blocks = g.wide ? g.parts / 2 : g.parts;
    g.block_words = 32 * g.parts * (g.two ? 2 : 1);
    g.x_words = g.two ? g.parts : 0;
    g.size = log2_of(d->item);
    g.o0 = d->row0 >> d->n;
    g.o1 = (d->row1 - 1) >> d->n;
    g.i0 = d->col0 >> d->n;
    g.i1 = (d->col1 - 1) >> d->n;
    g.slots = g.words_written = g.blocks_written = g.chunk = 0;
    g.chunks = (uint64_t)(g.o1 - g.o0 + 1) * (g.i1 - g.i0 + 1);
    g.word_in_block = 0;
    g.open = true;
    g.gen_done = g.in_chunk = false;
    g.now = 0;
    g.shifts = PIPE;
    for (int i = 0; i < PIPE; i++)
        g.token[i] = g.command[i] = 0;
    g.out = 0;
    g.lines = g.commands = g.queued = 0;
    g.lines_left = 0;
    g.last_pop = -1;
    rgu_walk w = {.seeds = d->seeds,
                  .scales = d->scales,
                  .terms = d->terms,
                  .d = g.edge,
                  .log_d = d->n,
                  .chunks_in = (d->d_in + g.edge - 1) / g.edge,
                  .o0 = g.o0,
                  .o1 = g.o1,
                  .i0 = g.i0,
                  .i1 = g.i1,
                  .repeats = 1,
                  .row_scale = d->row_scale};
    rgu_feed_init(&g.feed, u, &w);
    rgu_reads_init(&g.memory, u);
    rgu_writer_init(&g.writer, u);

    uint64_t block = 0;
    rgu_cycle last = 0;
    for (uint32_t o = g.o0; o <= g.o1; o++) {
        for (uint32_t i = g.i0; i <= g.i1; i++) {
            for (uint32_t b = 0; b < g.blocks; b++, block++) {
                generate(&g, block + 1);
                /* full, and the walk has closed the block before */
                rgu_cycle ready = rgu_max(g.full + 1, g.now + 2);
                segments(&g, i, b);
                if (block == 0) /* the pipeline stood empty */
                    g.now = rgu_max(g.now, ready - 1);
                read_block(&g, o, b, ready);
                last = g.now;
            }
        }
        if (d->row_scale) /* with the last step of the row's last block */
            rgu_feed_scale_pop(&g.feed, g.last_step);
    }
    for (int i = 0; i < PIPE; i++)
        shift(&g, settle(&g));
    t->items_in = g.chunks * d->terms;
    t->items_out = (uint64_t)(d->row1 - d->row0) * (d->col1 - d->col0);
    t->beats_out = g.writer.beats;
    t->beats_in = g.memory.beats;
    t->expander = g.chunks * d->terms * rgu_feed_term_cycles(&g.feed);
    t->rows = g.chunks * g.blocks * (uint64_t)(32 * g.parts * 2 * (g.two ? 2 : 1));
    uint64_t words = (uint64_t)32 * g.parts * g.parts; /* of a class in a chunk */
    t->mults_busy = g.chunks * words * d->terms * u->lanes;
    t->products = t->mults_busy / u->lanes;
    rgu_cycle done = rgu_max(last + 1, g.last_pop + 1);
    return rgu_max(done + 1, g.writer.answer + 1) + 1;
}
