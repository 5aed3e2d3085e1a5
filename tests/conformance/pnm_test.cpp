/*
 * Jobs of the near-memory unit: every back end that has one stores the bits of the golden model,
 * stops where it stops, and keeps from job to job what it keeps.
 */
#include "tests/conformance/conformance.h"

#include <cstdio>
#include <cstring>
#include <memory>

#include <CppUTest/TestHarness.h>
#include <millrace/pnm.h>

#include "tests/conformance/pnm_program.h"

using pnm::Bytes;
using pnm::Maker;
using pnm::Program;

TEST_GROUP(Pnm){};

/* A device's unit and the golden model of it, given the same jobs in the same memory. */
struct Units {
    Device d;
    mr_pnm_chip *golden, *probe; /* probe: what it finds wrong with a program depends on no data */
    mr_pnm_job kind = mr_pnm_job_init();
    size_t offset; /* of the view in the buffer */
    mr_buffer *buffer = nullptr;
    uint64_t base = 0;
    mr_pnm_result result = {};

    explicit Units(bool wide = false, unsigned gen = 3, unsigned cut = 0, size_t at = 0)
        : d(test_uri), golden(mr_pnm_chip_create(mr_pnm_gen(gen), cut, wide)),
          probe(mr_pnm_chip_create(MR_PNM_CENTRED, 0, true)), offset(at) {
        kind.gen = uint8_t(gen), kind.cut = uint8_t(cut), kind.wide = wide;
        CHECK(golden && probe);
        buffer = d.buffer(offset + pnm::BYTES);
        find();
    }
    ~Units() {
        mr_pnm_chip_destroy(golden);
        mr_pnm_chip_destroy(probe);
    }
    void find() {
        CHECK_OK(mr_buffer_address(buffer, &base));
        base += offset;
    }
    bool simulated() const { return d.info.caps & MR_CAP_CYCLES; }

    mr_pnm_result model(mr_pnm_chip *chip, const Program &p, Bytes &image) const {
        mr_pnm_prog progs[MR_PNM_GROUPS];
        mr_pnm_memory memory = {image.data(), base, image.size()};
        mr_pnm_result r;
        p.write(image);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            progs[g] = {base + g * pnm::LIST_BYTES, uint32_t(p.list[g].size())};
        mr_pnm_chip_run(chip, &memory, progs, &r);
        return r;
    }

    /* Without the descriptors that the golden model refuses; overlap only where it is true. */
    Program sound(Program p, const Bytes &image) const {
        for (;;) {
            Bytes copy = image;
            mr_pnm_result r = model(probe, p, copy);
            if (r.outcome == MR_PNM_DEADLOCK)
                FAIL("the program waits for ever");
            if (r.outcome == MR_PNM_FAILED) /* the list keeps its length: a loop's target stays */
                p.list[r.group][r.index] = pnm::row_onto_itself();
            else if (r.hazard)
                PNM_PUT(p.list[r.hazard_group][r.hazard_index], VEC_OVERLAP, 0);
            else
                return p;
        }
    }

    mr_status start(const Program &p, Bytes image, mr_event **event) const {
        mr_pnm_job job = kind;
        p.write(image);
        CHECK_OK(mr_buffer_write(buffer, offset, image.data(), image.size()));
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            job.list[g].offset = g * pnm::LIST_BYTES;
            job.list[g].count = uint32_t(p.list[g].size());
        }
        return mr_pnm_run(d.queue, &job, {buffer, offset}, event);
    }

    /* A job that both run: what the device's status is, and whether memory is the same. */
    mr_status run(const Program &p, const Bytes &image, mr_pnm_counters *counters) {
        mr_event *event;
        mr_pnm_counters c = {};
        CHECK_OK(start(p, image, &event));
        mr_status status = mr_event_wait(event, 120000000000u);
        std::string text = mr_last_error();
        if (status == MR_OK)
            CHECK_OK(mr_pnm_event_counters(event, &c));
        CHECK_OK(mr_event_destroy(event));
        if (status != MR_OK && status != MR_DEVICE_ERROR)
            FAIL(text.c_str());
        Bytes want = image, got(image.size());
        result = model(golden, p, want);
        CHECK_OK(mr_buffer_read(buffer, offset, got.data(), got.size()));
        /* what other groups had stored when one failed is the units' own business */
        for (size_t i = 0; i < want.size() && (status == MR_OK || !simulated()); i++)
            if (want[i] != got[i])
                differs(i, want[i], got[i]);
        message = text;
        if (counters)
            *counters = c;
        return status;
    }

    void agree(const Program &p, const Bytes &image) {
        mr_pnm_counters c;
        mr_status status = run(p, image, &c);
        if (status != MR_OK)
            FAIL(message.c_str());
        LONGS_EQUAL(MR_PNM_RAN, result.outcome);
        UNSIGNED_LONGS_EQUAL(result.status, c.status & (MR_PNM_RANGE | MR_PNM_NONFINITE));
        UNSIGNED_LONGS_EQUAL(result.products, c.products);
        UNSIGNED_LONGS_EQUAL(simulated(), c.hardware);
    }

    std::string message;

private:
    static void differs(size_t i, unsigned want, unsigned got) {
        size_t o = i < pnm::OUT_AT ? 0 : i - pnm::OUT_AT;
        char text[120];
        snprintf(text, sizeof text, "byte 0x%zX (group %zu, row %zu, word %zu) is %02X, not %02X",
                 i, size_t(o / pnm::OUT_BYTES), size_t(o % pnm::OUT_BYTES / 64), size_t(o % 64 / 4),
                 got, want);
        FAIL(text);
    }
};

static bool has_unit() {
    Device d(test_uri);
    return d.info.caps & MR_CAP_PNM;
}
static bool has_kernels() {
    Device d(test_uri);
    return d.info.caps & MR_CAP_PNM && d.info.caps & MR_CAP_KERNELS;
}

static void random_jobs(Units &u, std::mt19937_64 &rng, bool strict, unsigned phases) {
    for (int job = 0; job < 2; job++) { /* the second finds what the first left */
        Maker maker(rng, u.base, strict, u.kind.wide);
        Bytes image = maker.image(job ? 1 : 0);
        u.agree(u.sound(maker.program(1 + maker.below(phases)), image), image);
    }
}

TEST(Pnm, RandomProgramsStoreTheGoldenModelsBits) {
    if (!has_unit())
        return;
    auto rng = test_rng("pnm programs");
    bool simulated = Units().simulated();
    for (int i = 0; i < (simulated ? 1 : 3); i++) {
        Units u(false, 3, 0, i * 192u);
        random_jobs(u, rng, true, simulated ? 3 : 8);
    }
}

/* Rows written over rows read: where kernels do the work the order is the golden model's. */
TEST(Pnm, RowsThatMeetAreDoneInOrder) {
    if (!has_kernels())
        return;
    auto rng = test_rng("pnm meet");
    for (int i = 0; i < 3; i++) {
        Units u;
        random_jobs(u, rng, false, 8);
    }
}

TEST(Pnm, EveryMultiplierIsTheGoldenModels) {
    if (!has_kernels())
        return;
    auto rng = test_rng("pnm multipliers");
    const struct {
        bool wide;
        unsigned gen, cut;
    } kinds[] = {{false, 0, 0}, {false, 0, 3}, {false, 3, 1}, {false, 3, 6}, {true, 3, 0}};
    for (auto &k : kinds) {
        Units u(k.wide, k.gen, k.cut);
        random_jobs(u, rng, true, 3);
    }
    /* one device, one multiplier after the other */
    Units u;
    for (unsigned cut = 0; cut < 3; cut++) {
        mr_pnm_chip_destroy(u.golden);
        u.golden = mr_pnm_chip_create(MR_PNM_CENTRED, cut, false);
        u.kind.cut = uint8_t(cut);
        Maker maker(rng, u.base, true, false);
        Bytes image = maker.image(0);
        Program p = u.sound(maker.program(2), image);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) /* registers of the golden one are fresh */
            for (unsigned r = 0; r < 4; r++) {
                pnm::Desc d = pnm::desc(MR_PNM_DESC_WSTORE);
                PNM_PUT(d, WSTORE_RESET, 1);
                PNM_PUT(d, WSTORE_WREG, r);
                PNM_PUT(d, WSTORE_COL, 16000);
                PNM_PUT(d, WSTORE_KC, 1);
                PNM_PUT(d, WSTORE_LENGTH, 16);
                PNM_PUT(d, WSTORE_VECTORS, 1);
                PNM_PUT(d, WSTORE_X, 4000);
                Program clear;
                clear.add(g, d);
                CHECK_OK(u.run(clear, image, nullptr));
            }
        u.agree(p, image);
    }
}

TEST(Pnm, MultipliersThatThereAreNotAreRefused) {
    if (!has_unit())
        return;
    Units u;
    Program p;
    p.add(0, pnm::loop(0, 1));
    for (unsigned gen : {1u, 2u, 4u, 255u}) {
        mr_event *event;
        u.kind.gen = uint8_t(gen);
        CHECK_OK(u.start(p, Bytes(pnm::BYTES), &event));
        CHECK_FAILS(MR_UNSUPPORTED, std::to_string(gen).c_str(), wait_for(event));
    }
    u.kind.gen = 3;
    u.kind.cut = 7;
    mr_event *event;
    CHECK_OK(u.start(p, Bytes(pnm::BYTES), &event));
    CHECK_FAILS(MR_UNSUPPORTED, "7", wait_for(event));
    u.kind.cut = 0;
    u.agree(p, Bytes(pnm::BYTES));
}

/* Every sum of a long loop is longer than one batch of launches. */
TEST(Pnm, LongListsAreManyLaunches) {
    if (!has_kernels())
        return;
    Units u;
    auto rng = test_rng("pnm long");
    Maker maker(rng, u.base, true, false);
    Bytes image = maker.image(0);
    Program p;
    p.add(0, pnm::transfer(MR_PNM_DESC_LOAD, 4, 0, u.base + pnm::INPUT_AT));
    pnm::Desc d = pnm::desc(MR_PNM_DESC_VEC);
    PNM_PUT(d, VEC_MUL, 2);
    PNM_PUT(d, VEC_ADD, 2);
    PNM_PUT(d, VEC_COUNT, 1);
    PNM_PUT(d, VEC_WIDTH, 1);
    PNM_PUT(d, VEC_D, 1);
    PNM_PUT(d, VEC_A, 1);
    PNM_PUT(d, VEC_B, 2);
    PNM_PUT(d, VEC_C, 3);
    p.add(0, d);
    p.add(0, pnm::send(1, 0, 1, 1, 9));
    p.add(0, pnm::wait(1, 1));
    p.add(0, pnm::transfer(MR_PNM_DESC_STORE, 1, 1, u.base + pnm::OUT_AT, 64));
    p.add(0, pnm::loop(1, 3000));
    p.add(1, pnm::wait(0, 1));
    p.add(1, pnm::transfer(MR_PNM_DESC_STORE, 1, 9, u.base + pnm::OUT_AT + pnm::OUT_BYTES, 64));
    p.add(1, pnm::send(0, 1, 0, 0, 0));
    p.add(1, pnm::loop(0, 3000));
    p.add(2, d);
    p.add(2, pnm::loop(0, 40000));
    u.agree(p, image);
}

static Program with(unsigned group, const pnm::Desc &d, const Units &u) {
    Program p;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) /* something before what goes wrong */
        for (unsigned i = 0; i <= g; i++)
            p.add(g, pnm::transfer(i ? MR_PNM_DESC_STORE : MR_PNM_DESC_LOAD, 20, 0,
                                   u.base + pnm::OUT_AT + g * pnm::OUT_BYTES));
    p.add(group, d);
    p.add(group, pnm::transfer(MR_PNM_DESC_STORE, 20, 0, u.base + pnm::OUT_AT + 0x2000));
    return p;
}

TEST(Pnm, WhatStopsAJobIsNamedAndTheNextOneRuns) {
    if (!has_unit())
        return;
    Units u;
    auto rng = test_rng("pnm errors");
    Maker maker(rng, u.base, true, false);
    Bytes image = maker.image(0);
    mr_buffer *other = u.d.buffer(1 << 16);
    uint64_t in = u.base + pnm::INPUT_AT, end = u.base + pnm::BYTES, elsewhere;
    CHECK_OK(mr_buffer_address(other, &elsewhere));
    CHECK(elsewhere + (1 << 16) <= u.base - u.offset || elsewhere >= end);
    const pnm::Desc bad[] = {
        pnm::desc(11),
        pnm::desc(0),
        pnm::transfer(MR_PNM_DESC_LOAD, MR_PNM_SCRATCH_ROWS, 1, in),
        pnm::transfer(MR_PNM_DESC_LOAD, 1, 0, in + 32),
        pnm::transfer(MR_PNM_DESC_WLOAD, 1, MR_PNM_COLUMNS, in),
        pnm::transfer(MR_PNM_DESC_LOAD, 2, 0, 0x7FFFFFFFFFC0),
        pnm::transfer(MR_PNM_DESC_STORE, 2, 0, 0x7FFFFFFFFFC0),
        pnm::transfer(MR_PNM_DESC_WLOAD, 3, 0, 0x7FFFFFFFFFC0),
        pnm::send(4, 0, 0, 0, 0),
        pnm::send(0, 0, 100, 0, MR_PNM_SCRATCH_ROWS - 99),
        pnm::barrier(16),
        pnm::barrier(0),
        pnm::wait(8, 1),
        pnm::loop(0, 0),
    };
    for (auto &d : bad) {
        unsigned group = maker.below(4);
        Program p = with(group, d, u);
        mr_status status = u.run(p, image, nullptr);
        LONGS_EQUAL(MR_PNM_FAILED, u.result.outcome);
        char where[80];
        snprintf(where, sizeof where, "group %u, descriptor %u", u.result.group, u.result.index);
        STRCMP_EQUAL("MR_DEVICE_ERROR", mr_status_name(status));
        STRCMP_CONTAINS(where, u.message.c_str());
        snprintf(where, sizeof where, "error %u", u.result.error);
        STRCMP_CONTAINS(where, u.message.c_str());
    }
    if (!u.simulated()) { /* the memory of a job is its buffer, there the unit's bus reaches all */
        for (uint64_t addr : {elsewhere, u.base - 64, end - 64, end}) {
            u.run(with(2, pnm::transfer(MR_PNM_DESC_LOAD, 2, 0, addr), u), image, nullptr);
            LONGS_EQUAL(MR_PNM_ERR_READ, u.result.error);
            STRCMP_CONTAINS("error 3", u.message.c_str());
        }
        Program p; /* 65,536 signals that nobody takes */
        p.add(1, pnm::send(2, 5, 0, 0, 0));
        p.add(1, pnm::loop(0, 70000));
        LONGS_EQUAL(MR_DEVICE_ERROR, u.run(p, image, nullptr));
        LONGS_EQUAL(MR_PNM_ERR_SEMAPHORE, u.result.error);
        STRCMP_CONTAINS("error 5 (a semaphore went too high), group 1, descriptor 0",
                        u.message.c_str());
    }
    u.agree(u.sound(maker.program(1), image), image);
}

/* Nothing can ever wake it: kernels say so, a unit in hardware does not end. */
TEST(Pnm, AStandstillEndsAndTheNextJobRuns) {
    if (!has_unit())
        return;
    Units u;
    auto rng = test_rng("pnm standstill");
    Maker maker(rng, u.base, true, false);
    Bytes image = maker.image(0);
    Program p;
    p.add(1, pnm::loop(0, 1));
    p.add(1, pnm::wait(3, 1));
    p.add(2, pnm::barrier(6));
    mr_event *event;
    if (u.simulated()) {
        CHECK_OK(u.start(p, image, &event));
        CHECK_FAILS(MR_TIMEOUT, "event", mr_event_wait(event, 300000000u));
        CHECK_OK(mr_device_reset(u.d.device));
        CHECK_STATUS(MR_CANCELLED, wait_for(event));
        u.find();
    } else {
        LONGS_EQUAL(MR_DEVICE_ERROR, u.run(p, image, nullptr));
        LONGS_EQUAL(MR_PNM_DEADLOCK, u.result.outcome);
        STRCMP_CONTAINS("stand still: group 1 waits at descriptor 1", u.message.c_str());
    }
    Maker next(rng, u.base, true, false);
    u.agree(u.sound(next.program(1), image), image);
}

/* A job that would take for ever ends with its queue. */
TEST(Pnm, AQueueThatIsDestroyedEndsItsJob) {
    if (!has_kernels())
        return;
    for (bool works : {false, true}) {
        Units u;
        Program p;
        if (works)
            p.add(0, pnm::transfer(MR_PNM_DESC_LOAD, 100, 0, u.base + pnm::INPUT_AT));
        p.add(0, pnm::loop(0, 0xFFFFFFFF));
        mr_event *event;
        CHECK_OK(u.start(p, Bytes(pnm::BYTES), &event));
        CHECK_FAILS(MR_TIMEOUT, "event", mr_event_wait(event, 100000000u));
        CHECK_OK(mr_queue_destroy(u.d.queue));
        CHECK_STATUS(MR_CANCELLED, wait_for(event));
        CHECK_OK(mr_queue_create(u.d.device, &u.d.queue));
        Program q;
        q.add(3, pnm::transfer(MR_PNM_DESC_STORE, 10, 4000, u.base + pnm::OUT_AT));
        u.agree(q, Bytes(pnm::BYTES, 0x5A));
    }
}

/* Rows and registers stay from job to job; a unit that was opened or reset has none. */
TEST(Pnm, OnlyAFreshUnitIsZero) {
    if (!has_unit())
        return;
    Bytes image(pnm::BYTES, 0x3F);
    for (int round = 0; round < 2; round++) {
        Units u;
        Program fill, show;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            fill.add(g, pnm::transfer(MR_PNM_DESC_LOAD, 4096, 0, u.base + pnm::OUT_AT));
            show.add(g, pnm::transfer(MR_PNM_DESC_STORE, 4096, 0,
                                      u.base + pnm::OUT_AT + g * pnm::OUT_BYTES));
        }
        u.agree(show, image);
        u.agree(fill, image);
        u.agree(show, Bytes(pnm::BYTES));
        if (u.simulated())
            break;
    }
}

/* Two queues have one unit: their jobs do not come between each other. */
TEST(Pnm, QueuesTakeTurnsAtTheUnit) {
    if (!has_kernels())
        return;
    Units u;
    auto rng = test_rng("pnm queues");
    mr_queue *second;
    CHECK_OK(mr_queue_create(u.d.device, &second));
    Maker maker(rng, u.base, true, false);
    Bytes image = maker.image(0), want = image;
    Program p = maker.program(4);
    for (auto &list : p.list) /* registers go from job to job: a result may not depend on them */
        for (auto &d : list)
            if (d[0] == MR_PNM_DESC_MATVEC) {
                PNM_PUT(d, MATVEC_USE_WREG, 0);
                PNM_PUT(d, MATVEC_WEXP, 140);
            }
    p = u.sound(p, image);
    u.model(u.golden, p, want);
    mr_buffer *other = u.d.buffer(pnm::BYTES);
    uint64_t address;
    CHECK_OK(mr_buffer_address(other, &address));
    Program q = p; /* the same in the other buffer */
    for (auto &list : q.list)
        for (auto &d : list)
            if (d[0] >= MR_PNM_DESC_LOAD && d[0] <= MR_PNM_DESC_WLOAD)
                PNM_PUT(d, LOAD_ADDR,
                        mr_pnm_field(d.data(), MR_PNM_D_LOAD_ADDR_LSB, 64) - u.base + address);
    Bytes second_image = image;
    q.write(second_image);
    CHECK_OK(mr_buffer_write(other, 0, second_image.data(), second_image.size()));
    mr_event *event[8];
    CHECK_OK(u.start(p, image, &event[0]));
    mr_pnm_job job = u.kind;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        job.list[g].offset = g * pnm::LIST_BYTES;
        job.list[g].count = uint32_t(p.list[g].size());
    }
    for (int i = 1; i < 8; i++)
        CHECK_OK(
            mr_pnm_run(i % 2 ? second : u.d.queue, &job, {i % 2 ? other : u.buffer, 0}, &event[i]));
    for (auto e : event)
        CHECK_OK(wait_for(e));
    for (mr_buffer *b : {u.buffer, other}) {
        Bytes got(pnm::BYTES);
        CHECK_OK(mr_buffer_read(b, 0, got.data(), got.size()));
        MEMCMP_EQUAL(&want[pnm::INPUT_AT], &got[pnm::INPUT_AT], pnm::BYTES - pnm::INPUT_AT);
    }
}
