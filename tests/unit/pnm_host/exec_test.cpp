/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs on the golden model and on the stand-in unit behind sim:pnm: the same memory; and what
 * goes wrong is a result of its own, after which the next program runs (the stand-in dies,
 * programs stand still, addresses lead nowhere).
 */
#include "tests/unit/pnm_host/pnm_host.h"

#include <unistd.h>

TEST_GROUP(PnmExec){};

/* y = x * 2 + group for 3 rows, in every group, on rows that come from memory. */
struct Program {
    mr_pnm_program *p = nullptr;
    std::vector<uint64_t> out;
    explicit Program(float start, unsigned groups = 4) {
        mr_pnm_builder *b;
        CHECK_GOOD(mr_pnm_builder_create(groups, false, &b));
        for (unsigned g = 0; g < groups; g++) {
            uint16_t row;
            uint64_t in, to;
            mr_pnm_b_rows(b, g, 3, "rows", &row);
            mr_pnm_b_memory(b, 3 * 64, "in", &in);
            mr_pnm_b_memory(b, 3 * 64, "out", &to);
            for (int i = 0; i < 48; i++)
                static_cast<float *>(mr_pnm_b_at(b, in))[i] = start + float(i);
            mr_pnm_b_load(b, g, row, 3, in, 0);
            mr_pnm_vec v = {};
            v.mul = MR_PNM_IMM, v.imm_m = 2, v.add = MR_PNM_IMM, v.imm_c = float(g);
            v.count = 1, v.width = 3, v.a = v.d = row;
            mr_pnm_b_vec(b, g, &v);
            mr_pnm_b_store(b, g, row, 3, to, 0);
            out.push_back(to);
        }
        CHECK_GOOD(mr_pnm_builder_finish(b, &p));
        mr_pnm_builder_destroy(b);
    }
    ~Program() { mr_pnm_program_destroy(p); }
    Program(const Program &) = delete;
    void check(float start) const {
        for (size_t g = 0; g < out.size(); g++)
            for (int i = 0; i < 48; i++)
                CHECK_EQUAL(2 * (start + float(i)) + float(g),
                            reinterpret_cast<const float *>(p->image + out[g])[i]);
    }
    uint8_t *descriptor(unsigned g, uint32_t i) { return p->image + p->list[g].addr + 64 * i; }
};

struct Exec {
    mr_pnm_exec *e = nullptr;
    explicit Exec(const std::string &uri, unsigned chips = 1, double seconds = 60) {
        mr_pnm_exec_options o = mr_pnm_exec_defaults();
        o.chips = chips;
        o.timeout_ns = uint64_t(seconds * 1e9);
        CHECK_GOOD(mr_pnm_exec_open(uri.c_str(), &o, &e));
    }
    ~Exec() { mr_pnm_exec_close(e); }
    mr_status run(Program &p) {
        mr_pnm_counters c;
        return mr_pnm_exec_run(e, &p.p, 1, &c);
    }
    void works() {
        Program p(7);
        CHECK_GOOD(run(p));
        p.check(7);
    }
};

TEST(PnmExec, GoldenAndDeviceGiveTheSameMemoryOnSeveralChips) {
    for (const char *uri : {"golden", "sim:pnm", "cpu:"}) {
        Exec e(uri, 3);
        CHECK_EQUAL(3u, mr_pnm_exec_chips(e.e));
        CHECK_EQUAL(!strcmp(uri, "sim:pnm"), mr_pnm_exec_counts(e.e));
        std::vector<Program *> programs;
        std::vector<mr_pnm_program *> raw;
        std::vector<mr_pnm_counters> counters(20);
        for (int i = 0; i < 20; i++) {
            programs.push_back(new Program(float(100 * i), 1 + unsigned(i) % 4));
            raw.push_back(programs.back()->p);
        }
        CHECK_GOOD(mr_pnm_exec_run(e.e, raw.data(), raw.size(), counters.data()));
        for (int i = 0; i < 20; i++) {
            programs[size_t(i)]->check(float(100 * i));
            CHECK_EQUAL(mr_pnm_exec_counts(e.e), counters[size_t(i)].hardware);
            if (counters[size_t(i)].hardware) {
                CHECK_EQUAL(5000u, counters[size_t(i)].cycles);
                CHECK_EQUAL(1003u, counters[size_t(i)].group[3].dram_ref);
            }
            delete programs[size_t(i)];
        }
    }
}

TEST(PnmExec, AStandstillEndsAndTheNextProgramRuns) {
    for (const char *uri : {"golden", "sim:pnm", "cpu:"}) {
        Exec e(uri, 1, 0.3);
        Program p(1, 2);
        uint8_t *d = p.descriptor(1, 0); /* becomes a WAIT for what nobody sends */
        memset(d, 0, 64);
        d[0] = MR_PNM_DESC_WAIT;
        d[4] = 1;
        CHECK_BAD(strcmp(uri, "cpu:") ? MR_TIMEOUT : MR_DEVICE_ERROR, uri, e.run(p));
        e.works();
    }
}

/* Where there is no reset, what runs ends with its queue. */
TEST(PnmExec, AProgramWithoutEndIsATimeoutAndTheNextOneRuns) {
    Exec e("cpu:", 1, 0.3);
    Program p(1, 2);
    uint8_t *d = p.descriptor(1, 1);
    memset(d, 0, 64);
    d[0] = MR_PNM_DESC_LOOP; /* to the first descriptor, 2^32 - 1 times */
    memset(d + 8, 0xFF, 4);
    CHECK_BAD(MR_TIMEOUT, "cpu:", e.run(p));
    e.works();
}

TEST(PnmExec, AnAddressThatLeadsNowhereNamesItsDescriptor) {
    for (const char *uri : {"golden", "sim:pnm", "cpu:"}) {
        Exec e(uri);
        for (uint32_t which : {0u, 2u}) {
            Program p(1);
            p.descriptor(3, which)[8 + 4] = 0x7F; /* far above the image */
            CHECK_BAD(MR_DEVICE_ERROR, ("group 3, descriptor " + std::to_string(which)).c_str(),
                      e.run(p));
            STRCMP_CONTAINS(which ? "error 4" : "error 3", mr_last_error());
        }
        Program q(1);
        q.descriptor(0, 1)[0] = 77;
        CHECK_BAD(MR_DEVICE_ERROR, "error 1", e.run(q));
        e.works();
    }
}

/* The process of the simulated unit dies in a job, by itself and by a signal. */
TEST(PnmExec, ADeadSimulatorIsALostDeviceAndTheNextProgramRuns) {
    std::string file = "/tmp/millrace-test-pnm-" + std::to_string(getpid());
    Exec e("sim:pnm?fault_file=" + file);
    e.works();
    std::ofstream(file) << "die";
    Program p(1);
    CHECK_BAD(MR_DEVICE_LOST, "killed by signal", e.run(p));
    std::remove(file.c_str());
    e.works();
}

TEST(PnmExec, AnInterruptEndsTheRun) {
    for (const char *uri : {"golden", "sim:pnm", "cpu:"}) {
        static volatile sig_atomic_t stop;
        stop = 0;
        mr_pnm_exec_options o = mr_pnm_exec_defaults();
        o.stop = &stop;
        mr_pnm_exec *e;
        CHECK_GOOD(mr_pnm_exec_open(uri, &o, &e));
        Program p(1, 1), good(1);
        uint8_t *d = p.descriptor(0, 0);
        mr_pnm_counters c;
        if (!strcmp(uri, "sim:pnm")) {
            memset(d, 0, 64);
            d[0] = MR_PNM_DESC_WAIT, d[4] = 1;
        } else if (!strcmp(uri, "cpu:")) {
            memset(d, 0, 64);
            d[0] = MR_PNM_DESC_LOOP;
            memset(d + 8, 0xFF, 4);
        } else {
            stop = 1;
        }
        std::thread after([] {
            usleep(200000);
            stop = 1;
        });
        CHECK_BAD(MR_CANCELLED, "interrupted", mr_pnm_exec_run(e, &p.p, 1, &c));
        after.join();
        stop = 0;
        CHECK_GOOD(mr_pnm_exec_run(e, &good.p, 1, &c));
        mr_pnm_exec_close(e);
    }
}

TEST(PnmExec, WhatThereIsNotIsRefused) {
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    mr_pnm_exec *e;
    CHECK_BAD(MR_UNAVAILABLE, "rgu", mr_pnm_exec_open("sim:rgu", &o, &e));
    CHECK_BAD(MR_NOT_FOUND, "there are: rgu, pnm", mr_pnm_exec_open("sim:xyz", &o, &e));
    o.gen = 1;
    CHECK_BAD(MR_UNSUPPORTED, "golden", mr_pnm_exec_open("golden", &o, &e));
    o.gen = 0; /* the stand-in is built with the centred generator */
    Program p(1);
    mr_pnm_counters c;
    CHECK_GOOD(mr_pnm_exec_open("sim:pnm", &o, &e));
    CHECK_BAD(MR_UNSUPPORTED, "generator 3 with cut 0", mr_pnm_exec_run(e, &p.p, 1, &c));
    mr_pnm_exec_close(e);
    o = mr_pnm_exec_defaults();
    o.wide = true;
    CHECK_GOOD(mr_pnm_exec_open("golden", &o, &e));
    CHECK_BAD(MR_INVALID_ARGUMENT, "the program's weights are bf16",
              mr_pnm_exec_run(e, &p.p, 1, &c));
    mr_pnm_exec_close(e);
}

/* The calls of pnm.h themselves. */
TEST(PnmExec, SubmissionChecksTheLists) {
    mr_device *device;
    mr_queue *queue;
    mr_buffer *buffer;
    mr_event *event = nullptr;
    CHECK_GOOD(mr_device_open("sim:pnm", &device));
    CHECK_GOOD(mr_queue_create(device, &queue));
    CHECK_GOOD(mr_buffer_create(device, 4096, &buffer));
    uint64_t address = 0;
    CHECK_GOOD(mr_buffer_address(buffer, &address));
    CHECK(address != 0);
    mr_pnm_job job = mr_pnm_job_init();
    CHECK_BAD(MR_INVALID_ARGUMENT, "no group has a descriptor",
              mr_pnm_run(queue, &job, {buffer, 0}, &event));
    job.list[2].count = 65;
    CHECK_BAD(MR_INVALID_ARGUMENT, "job.list[2]: 65 descriptors",
              mr_pnm_run(queue, &job, {buffer, 0}, &event));
    job.list[2] = {32, 1};
    CHECK_BAD(MR_INVALID_ARGUMENT, "job.list[2].offset: 32",
              mr_pnm_run(queue, &job, {buffer, 0}, &event));
    CHECK_BAD(MR_INVALID_ARGUMENT, "memory: offset 32",
              mr_pnm_run(queue, &job, {buffer, 32}, &event));
    mr_device *cpu;
    mr_buffer *other;
    CHECK_GOOD(mr_device_open("cpu:", &cpu));
    CHECK_GOOD(mr_buffer_create(cpu, 4096, &other));
    job.list[2].offset = 0;
    CHECK_BAD(MR_INVALID_HANDLE, "memory", mr_pnm_run(queue, &job, {other, 0}, &event));
    mr_device_close(cpu);
    /* an event of another kind has no such counters; a job's has */
    CHECK_GOOD(mr_pnm_run(queue, &job, {buffer, 0}, &event)); /* zeros: no descriptor type */
    CHECK_BAD(MR_DEVICE_ERROR, "group 2, descriptor 0", mr_event_wait(event, MR_FOREVER));
    mr_pnm_counters c;
    CHECK_BAD(MR_DEVICE_ERROR, "pnm job", mr_pnm_event_counters(event, &c));
    mr_event_destroy(event);
    mr_device_close(device);
}
