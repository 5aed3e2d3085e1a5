/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder gives out, what it refuses, and that what it lets pass runs. */
#include "tests/unit/pnm_host/pnm_host.h"

TEST_GROUP(PnmBuilder){};

struct Builder {
    mr_pnm_builder *b = nullptr;
    explicit Builder(unsigned groups = 4, bool wide = false) {
        CHECK_GOOD(mr_pnm_builder_create(groups, wide, &b));
    }
    ~Builder() { mr_pnm_builder_destroy(b); }
    uint16_t rows(unsigned g, size_t n) {
        uint16_t row;
        CHECK_GOOD(mr_pnm_b_rows(b, g, n, "rows", &row));
        return row;
    }
    uint16_t columns(unsigned g, unsigned tier, size_t n) {
        uint16_t col;
        CHECK_GOOD(mr_pnm_b_columns(b, g, tier, n, "columns", &col));
        return col;
    }
    uint64_t memory(size_t bytes) {
        uint64_t addr;
        CHECK_GOOD(mr_pnm_b_memory(b, bytes, "memory", &addr));
        return addr;
    }
};

TEST(PnmBuilder, PartitionsAreNotLargerThanTheChip) {
    mr_pnm_builder *b;
    CHECK_BAD(MR_INVALID_ARGUMENT, "5 groups; a chip has 1 to 4",
              mr_pnm_builder_create(5, false, &b));
    CHECK_BAD(MR_INVALID_ARGUMENT, "0 groups", mr_pnm_builder_create(0, false, &b));
    Builder two(2);
    CHECK_BAD(MR_INVALID_ARGUMENT, "group 2; the program has groups 0 to 1",
              mr_pnm_b_wait(two.b, 2, 0, 1));
}

TEST(PnmBuilder, TheFirstFailureStays) {
    Builder x;
    uint16_t row;
    CHECK_BAD(MR_LIMIT, "net: 5000 scratchpad rows of group 1; 4096 are free",
              mr_pnm_b_rows(x.b, 1, 5000, "net", &row));
    CHECK_BAD(MR_LIMIT, "net: 5000", mr_pnm_b_wait(x.b, 0, 0, 1));
    mr_pnm_program *p;
    CHECK_BAD(MR_LIMIT, "net: 5000", mr_pnm_builder_finish(x.b, &p));
    POINTERS_EQUAL(nullptr, mr_pnm_b_at(x.b, 0));
}

TEST(PnmBuilder, RowsAreGivenOutOnceAndComeBack) {
    auto rng = pnm_rng("rows");
    Builder x;
    std::vector<std::pair<unsigned, unsigned>> blocks;
    std::vector<bool> used(4096);
    for (int i = 0; i < 2000; i++) {
        if (!blocks.empty() && rng() % 3 == 0) {
            size_t at = rng() % blocks.size();
            CHECK_GOOD(mr_pnm_b_rows_free(x.b, 0, uint16_t(blocks[at].first)));
            for (unsigned r = 0; r < blocks[at].second; r++)
                used[blocks[at].first + r] = false;
            blocks.erase(blocks.begin() + long(at));
            continue;
        }
        unsigned n = 1 + unsigned(rng() % 60);
        unsigned run = 0, best = 0;
        for (bool u : used)
            best = std::max(best, run = u ? 0 : run + 1);
        if (n > best) /* would be refused, and refusals stay */
            continue;
        unsigned row = x.rows(0, n);
        for (unsigned r = 0; r < n; r++) {
            CHECK_FALSE(used.at(row + r));
            used[row + r] = true;
        }
        blocks.push_back({row, n});
    }
    size_t left = 0;
    for (bool u : used)
        left += !u;
    CHECK_EQUAL(left, mr_pnm_b_rows_left(x.b, 0));
    CHECK_EQUAL(4096u, mr_pnm_b_rows_left(x.b, 1));
    if (used[0])
        CHECK_BAD(MR_INVALID_ARGUMENT, "no rows of group 1", mr_pnm_b_rows_free(x.b, 1, 0));
}

TEST(PnmBuilder, ColumnsLieInTheirTierOrTheNearest) {
    Builder x;
    CHECK_EQUAL(0u, mr_pnm_tier_of(x.columns(0, 0, 17)));
    CHECK_EQUAL(2048u - 32, mr_pnm_b_columns_left(x.b, 0, 0));
    CHECK_EQUAL(2u, mr_pnm_tier_of(x.columns(0, 2, 2048)));
    CHECK_EQUAL(1u, mr_pnm_tier_of(x.columns(0, 2, 16))); /* the faster of two neighbours */
    x.columns(0, 1, 2032);
    CHECK_EQUAL(3u, mr_pnm_tier_of(x.columns(0, 2, 2048)));
    CHECK_EQUAL(0u, mr_pnm_tier_of(x.columns(0, 2, 16)));
    CHECK_EQUAL(4u * 2048, x.columns(0, 7, 4 * 2048)); /* larger than a tier */
    uint16_t col;
    CHECK_BAD(MR_LIMIT, "big: 2016 columns do not fit into the banks of group 0",
              mr_pnm_b_columns(x.b, 0, 3, 2016, "big", &col));
    Builder y;
    CHECK_BAD(MR_INVALID_ARGUMENT, "tier 8", mr_pnm_b_columns(y.b, 0, 8, 1, "w", &col));
}

TEST(PnmBuilder, MemoryIsZeroAndSixtyFourByteAligned) {
    Builder x;
    uint64_t a = x.memory(1), c = x.memory(100000);
    CHECK_EQUAL(0u, a % 64 + c % 64);
    for (size_t i = 0; i < 100000; i++)
        CHECK_EQUAL(0, static_cast<char *>(mr_pnm_b_at(x.b, c))[i]);
}

/* ---- Refusals: a good descriptor with one thing wrong ------------------------------------------
 */

struct Parts {
    Builder x;
    uint16_t rows, col;
    uint64_t addr;
    mr_pnm_matvec mv = {};
    mr_pnm_vec v = {};
    mr_pnm_wstore ws = {};
    Parts() : rows(x.rows(0, 100)), col(x.columns(0, 0, 64)), addr(x.memory(64 * 100)) {
        mv.mode = {0, 4};
        mv.wexp = 127, mv.col = col, mv.kc = 2, mv.outputs = 32, mv.vectors = 3;
        mv.x = rows, mv.x_stride = 2, mv.y = uint16_t(rows + 10), mv.y_stride = 2;
        v.count = 2, v.width = 3, v.d = rows, v.d_stride = 3;
        v.a = uint16_t(rows + 10), v.a_stride = 3;
        ws.kc = 2, ws.length = 32, ws.vectors = 4, ws.x = rows, ws.x_stride = 2, ws.col = col;
    }
};

static void refuses(const char *words, const std::function<mr_status(Parts &)> &call) {
    Parts p;
    CHECK_BAD(MR_INVALID_ARGUMENT, words, call(p));
}

static std::function<mr_status(Parts &)> matvec(const std::function<void(Parts &)> &change) {
    return [change](Parts &p) {
        change(p);
        return mr_pnm_b_matvec(p.x.b, 0, &p.mv);
    };
}

TEST(PnmBuilder, MatvecFields) {
    Parts good;
    CHECK_GOOD(mr_pnm_b_matvec(good.x.b, 0, &good.mv));
    refuses("(MATVEC): kc is 0", matvec([](Parts &p) { p.mv.kc = 0; }));
    refuses("kc is 257", matvec([](Parts &p) { p.mv.kc = 257; }));
    refuses("vectors is 65", matvec([](Parts &p) { p.mv.vectors = 65; }));
    refuses("vectors times kc is 1280", matvec([](Parts &p) { p.mv.kc = 256, p.mv.vectors = 5; }));
    refuses("outputs", matvec([](Parts &p) { p.mv.outputs = 24; }));
    refuses("mode is 3", matvec([](Parts &p) { p.mv.mode.kind = 3; }));
    refuses("log_length is 1", matvec([](Parts &p) { p.mv.mode.log_length = 1; }));
    refuses("log_length is 9", matvec([](Parts &p) { p.mv.mode.log_length = 9; }));
    refuses("wexp is 255", matvec([](Parts &p) { p.mv.wexp = 255; }));
    refuses("wexp is 64", matvec([](Parts &p) { p.mv.wexp = 64, p.mv.use_wreg = true; }));
    refuses("columns 16380 to 16395", matvec([](Parts &p) { p.mv.col = 16380; }));
    refuses("columns 64 to 79 are not all given out", matvec([](Parts &p) { p.mv.col = 64; }));
    refuses("x: rows 99 to 100", matvec([](Parts &p) { p.mv.x = 99, p.mv.vectors = 1; }));
    refuses("x: rows -4 to", matvec([](Parts &p) { p.mv.x = 2, p.mv.x_stride = -3; }));
    refuses("rows 5000", matvec([](Parts &p) { p.mv.y = 5000, p.mv.vectors = 1; }));
    refuses("y_stride is 1", matvec([](Parts &p) { p.mv.y_stride = 1; }));
    refuses("rows of y are rows of bias",
            matvec([](Parts &p) { p.mv.bias = true, p.mv.bias_row = uint16_t(p.mv.y + 1); }));
    refuses("rows of y are rows of old", matvec([](Parts &p) {
                p.mv.accum = true, p.mv.old = uint16_t(p.mv.y + 1), p.mv.old_stride = 2;
            }));
    Parts place; /* the result may lie on the input, and be added to itself */
    place.mv.y = place.mv.x;
    place.mv.accum = true, place.mv.old = place.mv.y, place.mv.old_stride = 2;
    CHECK_GOOD(mr_pnm_b_matvec(place.x.b, 0, &place.mv));
}

static std::function<mr_status(Parts &)> vec(const std::function<void(Parts &)> &change) {
    return [change](Parts &p) {
        change(p);
        return mr_pnm_b_vec(p.x.b, 0, &p.v);
    };
}

TEST(PnmBuilder, VecFields) {
    Parts good;
    CHECK_GOOD(mr_pnm_b_vec(good.x.b, 0, &good.v));
    good.v.a = good.v.d;
    CHECK_GOOD(mr_pnm_b_vec(good.x.b, 0, &good.v)); /* in place */
    refuses("count is 0", vec([](Parts &p) { p.v.count = 0; }));
    refuses("fn is 4", vec([](Parts &p) { p.v.fn = 4; }));
    refuses("reduce is 3", vec([](Parts &p) { p.v.reduce = 3; }));
    refuses("rows of d are rows of a", vec([](Parts &p) { p.v.a = uint16_t(p.v.d + 1); }));
    refuses("rows of d are rows of b",
            vec([](Parts &p) { p.v.mul = MR_PNM_SCALAR, p.v.b = p.v.d; }));
    refuses("rows of d are rows of a",
            vec([](Parts &p) { p.v.reduce = MR_PNM_SUM, p.v.d = uint16_t(p.v.a + 1); }));
    refuses("d_stride is 2", vec([](Parts &p) { p.v.d_stride = 2; }));
    refuses("c: rows 98 to 100",
            vec([](Parts &p) { p.v.add = MR_PNM_ELEM, p.v.c = 95, p.v.c_stride = 3; }));
}

TEST(PnmBuilder, OtherFields) {
    refuses("(WSTORE): length is 48", [](Parts &p) {
        p.ws.length = 48;
        return mr_pnm_b_wstore(p.x.b, 0, &p.ws);
    });
    refuses("first + vectors is 34", [](Parts &p) {
        p.ws.transposed = true, p.ws.first = 30;
        return mr_pnm_b_wstore(p.x.b, 0, &p.ws);
    });
    refuses("wreg is 64", [](Parts &p) {
        p.ws.wreg = 64;
        return mr_pnm_b_wstore(p.x.b, 0, &p.ws);
    });
    refuses("not multiples of 64", [](Parts &p) { return mr_pnm_b_load(p.x.b, 0, 0, 1, 32, 0); });
    refuses("bytes 0 to 6463; the image has 6400", [](Parts &p) {
        p.x.rows(0, 1);
        return mr_pnm_b_load(p.x.b, 0, 0, 101, 0, 0);
    });
    refuses("rows is 0", [](Parts &p) { return mr_pnm_b_store(p.x.b, 0, 0, 0, 0, 0); });
    refuses("columns is 0", [](Parts &p) { return mr_pnm_b_wload(p.x.b, 0, 0, 0, 0, 0); });
    refuses("to: rows 0 to 1 of group 1 are not all given out",
            [](Parts &p) { return mr_pnm_b_send(p.x.b, 0, 1, 0, 0, 2, 0); });
    refuses("group is 4", [](Parts &p) { return mr_pnm_b_send(p.x.b, 0, 4, 0, 0, 0, 0); });
    refuses("sem is 8", [](Parts &p) { return mr_pnm_b_wait(p.x.b, 0, 8, 1); });
    refuses("own bit missing", [](Parts &p) { return mr_pnm_b_barrier(p.x.b, 0, 2); });
}

TEST(PnmBuilder, LoopsDoNotNestAndStayInTheImage) {
    Parts p;
    uint32_t body = mr_pnm_b_here(p.x.b, 0);
    CHECK_GOOD(mr_pnm_b_load(p.x.b, 0, 0, 2, 0, 128));
    CHECK_GOOD(mr_pnm_b_loop(p.x.b, 0, body, 50)); /* 50 times 128 bytes: all of the image */
    body = mr_pnm_b_here(p.x.b, 0);
    CHECK_GOOD(mr_pnm_b_load(p.x.b, 0, 0, 2, 0, 128));
    CHECK_BAD(MR_INVALID_ARGUMENT, "the LOAD at 2 ends at byte 6528 in iteration 51",
              mr_pnm_b_loop(p.x.b, 0, body, 51));
    refuses("no loop in it", [](Parts &q) {
        mr_pnm_b_load(q.x.b, 0, 0, 1, 0, 0);
        mr_pnm_b_loop(q.x.b, 0, 0, 2);
        return mr_pnm_b_loop(q.x.b, 0, 0, 2);
    });
    refuses("a body has a descriptor or more",
            [](Parts &q) { return mr_pnm_b_loop(q.x.b, 0, 0, 2); });
}

TEST(PnmBuilder, OverlapNeedsOtherRows) {
    refuses("overlap: its rows meet", [](Parts &p) {
        mr_pnm_b_vec(p.x.b, 0, &p.v); /* writes rows 0 to 5 */
        p.mv.overlap = true;          /* reads them */
        return mr_pnm_b_matvec(p.x.b, 0, &p.mv);
    });
    Parts p;
    CHECK_GOOD(mr_pnm_b_vec(p.x.b, 0, &p.v));
    p.mv.overlap = true, p.mv.x = 40, p.mv.y = 50;
    CHECK_GOOD(mr_pnm_b_matvec(p.x.b, 0, &p.mv));
    p.v.overlap = true; /* the VEC before is done when this one starts */
    CHECK_GOOD(mr_pnm_b_vec(p.x.b, 0, &p.v));
    p.v.d = 50;
    CHECK_BAD(MR_INVALID_ARGUMENT, "overlap", mr_pnm_b_vec(p.x.b, 0, &p.v));
}

TEST(PnmBuilder, StandstillsAreFound) {
    mr_pnm_program *p = nullptr;
    Builder a(2);
    CHECK_GOOD(mr_pnm_b_wait(a.b, 0, 3, 2));
    CHECK_GOOD(mr_pnm_b_send(a.b, 1, 0, 3, 0, 0, 0));
    CHECK_BAD(MR_INVALID_ARGUMENT,
              "group 0, descriptor 0 (WAIT): waits for ever, semaphore 3 is at 1 of 2",
              mr_pnm_builder_finish(a.b, &p));
    Builder b(3);
    CHECK_GOOD(mr_pnm_b_barrier(b.b, 0, 7));
    CHECK_GOOD(mr_pnm_b_barrier(b.b, 1, 7));
    CHECK_GOOD(mr_pnm_b_wait(b.b, 2, 0, 1));
    CHECK_BAD(MR_INVALID_ARGUMENT, "group 0, descriptor 0 (BARRIER): waits for ever",
              mr_pnm_builder_finish(b.b, &p));
    Builder c(2); /* ping and pong, 1000 times */
    for (unsigned g = 0; g < 2; g++) {
        CHECK_GOOD(g ? mr_pnm_b_wait(c.b, 1, 0, 1) : mr_pnm_b_send(c.b, 0, 1, 0, 0, 0, 0));
        CHECK_GOOD(g ? mr_pnm_b_send(c.b, 1, 0, 0, 0, 0, 0) : mr_pnm_b_wait(c.b, 0, 0, 1));
        CHECK_GOOD(mr_pnm_b_loop(c.b, g, 0, 1000));
        CHECK_GOOD(mr_pnm_b_barrier(c.b, g, 3));
    }
    CHECK_GOOD(mr_pnm_builder_finish(c.b, &p));
    CHECK_BAD(MR_INVALID_ARGUMENT, "is finished", mr_pnm_b_wait(c.b, 0, 0, 1));
    mr_pnm_exec *e;
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    mr_pnm_counters counters;
    CHECK_GOOD(mr_pnm_exec_open("golden", &o, &e));
    CHECK_GOOD(mr_pnm_exec_run(e, &p, 1, &counters));
    mr_pnm_exec_close(e);
    mr_pnm_program_destroy(p);
    Builder d(1);
    CHECK_BAD(MR_INVALID_ARGUMENT, "empty", mr_pnm_builder_finish(d.b, &p));
}
