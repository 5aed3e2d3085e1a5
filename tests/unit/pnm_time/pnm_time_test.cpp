/* SPDX-License-Identifier: Apache-2.0 */
// The timing model of the near-memory unit: equal to the simulated RTL, cycle for cycle, on single
// descriptors, near it on flows; its DRAM commands are legal; machines that contradict themselves.
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
#include "host/flow/plan.h"
#include "host/pnm/exec.h"
#include "host/pnm/gemv.h"
}
#include "models/cycle/dram_check.h"
#include "models/cycle/rival.h"

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/TestHarness.h"

static uint64_t g_seed;
static const char *const drams = "models/cycle/dram";

#define GOOD(call)                                                                                 \
    do {                                                                                           \
        if ((call) != MR_OK)                                                                       \
            FAIL(mr_last_error());                                                                 \
    } while (0)

static mr_pnm_machine machine(const char *name) {
    mr_pnm_machine m;
    char error[512] = "";
    std::string file = std::string("models/cycle/pnm/") + name + ".json";
    if (!mr_pnm_machine_load(file.c_str(), drams, &m, error, sizeof error))
        FAIL(error);
    return m;
}

static bool lists_of(const mr_pnm_program *p, std::vector<mr_pnm_list> &lists) {
    for (unsigned g = 0; g < p->groups; g++)
        lists.push_back({p->image + p->list[g].addr, p->list[g].count});
    return !lists.empty();
}

struct Commands {
    mr_dram_check *check;
    std::string wrong;
    std::vector<mr_dram_command> trace;
};

static void watch(void *user, uint64_t cycle, size_t group, int command, uint32_t banks,
                  uint32_t row, uint32_t column) {
    static_cast<Commands *>(user)->trace.push_back(
        {cycle, (uint32_t)group, command, banks, row, column});
}

// The model's time, every DRAM command of it judged by the checker.
static mr_pnm_timing timed(const mr_pnm_machine &m, const mr_pnm_program *p) {
    mr_pnm_timing t;
    char error[256] = "";
    std::vector<mr_pnm_list> lists;
    Commands c;
    lists_of(p, lists);
    if (!mr_pnm_time(&m, lists.data(), lists.size(), watch, &c, &t, error, sizeof error))
        FAIL(error);
    for (uint32_t g = 0; g < lists.size(); g++) {
        mr_dram_check *k = mr_dram_check_create(&m.dram, lists.size());
        for (const auto &x : c.trace)
            if (x.group == g)
                if (const char *wrong = mr_dram_check_command(k, &x))
                    FAIL(wrong);
        mr_dram_check_destroy(k);
    }
    return t;
}

// The simulated unit, fresh: rows closed, refreshes counted from the start.
static mr_pnm_counters simulated(mr_pnm_program *p) {
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    mr_pnm_exec *e;
    mr_pnm_counters c;
    o.chips = 1;
    GOOD(mr_pnm_exec_open("sim:pnm", &o, &e));
    GOOD(mr_pnm_exec_run(e, &p, 1, &c));
    mr_pnm_exec_close(e);
    return c;
}

// ---- single descriptors: equal ------------------------------------------------------------------

using Fill = std::function<void(mr_pnm_builder *b, uint64_t memory)>;

// A program of one group that owns all rows and columns.
static mr_pnm_program *program(const Fill &fill) {
    mr_pnm_builder *b;
    mr_pnm_program *p;
    uint64_t memory;
    uint16_t first;
    GOOD(mr_pnm_builder_create(1, false, &b));
    GOOD(mr_pnm_b_memory(b, 1 << 18, "memory", &memory));
    GOOD(mr_pnm_b_rows(b, 0, MR_PNM_SCRATCH_ROWS, "rows", &first));
    GOOD(mr_pnm_b_columns(b, 0, 0, MR_PNM_COLUMNS, "columns", &first));
    fill(b, memory);
    GOOD(mr_pnm_builder_finish(b, &p));
    mr_pnm_builder_destroy(b);
    return p;
}

static void equal(const std::string &what, const Fill &fill) {
    mr_pnm_program *p = program(fill);
    mr_pnm_timing t = timed(machine("unit"), p);
    mr_pnm_counters c = simulated(p);
    // a refresh takes its time here or a few cycles later there
    uint64_t slack = 80 * (c.group[0].dram_ref + t.group[0].dram.commands[MR_DRAM_REF]);
    auto same = [&](const char *of, uint64_t want, uint64_t got) {
        uint64_t apart = want > got ? want - got : got - want;
        if (apart > slack) {
            std::string text = what + ": " + of + ": RTL " + std::to_string(want) + ", model " +
                               std::to_string(got) + " (MR_SEED=" + std::to_string(g_seed) + ")";
            FAIL(text.c_str());
        }
    };
    same("cycles", c.cycles, t.cycles);
    same("mv_cycles", c.group[0].mv_cycles, t.group[0].mv_cycles);
    same("stream_cycles", c.group[0].stream_cycles, t.group[0].stream_cycles);
    same("vec_cycles", c.group[0].vec_cycles, t.group[0].vec_cycles);
    same("RD", c.group[0].dram_rd, t.group[0].dram.commands[MR_DRAM_RD]);
    same("WR", c.group[0].dram_wr, t.group[0].dram.commands[MR_DRAM_WR]);
    same("ACT", c.group[0].dram_act, t.group[0].dram.commands[MR_DRAM_ACT]);
    if (!t.group[0].wait_cycles) // a LOOP reads descriptors ahead in vain
        same("bytes in", c.items_in, t.bytes_in);
    same("bytes out", c.items_out, t.bytes_out);
    mr_pnm_program_destroy(p);
}

static uint64_t pick(std::mt19937_64 &rng, uint64_t least, uint64_t most) {
    return least + rng() % (most - least + 1);
}

TEST_GROUP(pnm_time){};

TEST(pnm_time, OneMatvecIsEqual) {
    std::mt19937_64 rng(g_seed);
    for (int i = 0; i < 24; i++) {
        mr_pnm_matvec v = {};
        v.kc = (uint16_t)pick(rng, 1, 12);
        v.outputs = (uint16_t)(16 * pick(rng, 1, 6));
        v.vectors = (uint16_t)pick(rng, 1, 8);
        v.mode = {(uint8_t)(rng() % 8 ? 0 : 2), (uint8_t)pick(rng, 2, 4)};
        v.wexp = 127;
        v.x_stride = (int16_t)v.kc;
        v.x_run = (uint16_t)(rng() % 4 ? v.kc : 1);
        v.x_jump = 1;
        v.y = 1024;
        v.y_stride = (int16_t)(v.outputs / 16);
        v.bias = rng() % 2;
        v.accum = rng() % 2;
        v.bias_row = 4000;
        v.old = v.y;
        v.old_stride = v.y_stride;
        v.col = (uint16_t)(rng() % 14000);
        std::ostringstream what;
        what << "MATVEC kc " << v.kc << " outputs " << v.outputs << " vectors " << v.vectors
             << " bias " << v.bias << " accum " << v.accum << " col " << v.col << " run "
             << v.x_run;
        equal(what.str(), [&](mr_pnm_builder *b, uint64_t) { GOOD(mr_pnm_b_matvec(b, 0, &v)); });
    }
}

TEST(pnm_time, OneVecIsEqual) {
    std::mt19937_64 rng(g_seed + 1);
    for (int i = 0; i < 24; i++) {
        mr_pnm_vec v = {};
        v.fn = (uint8_t)(rng() % 4);
        v.mul = (uint8_t)(rng() % 4);
        v.add = (uint8_t)(rng() % 4);
        v.reduce = (uint8_t)(rng() % 3);
        v.count = (uint16_t)pick(rng, 1, 40);
        v.width = (uint16_t)pick(rng, 1, 8);
        v.a_stride = v.b_stride = v.c_stride = v.d_stride = (int16_t)v.width;
        v.b = 1000;
        v.c = 2000;
        v.d = 3000;
        std::ostringstream what;
        what << "VEC " << v.count << " x " << v.width << " fn " << (int)v.fn << " mul "
             << (int)v.mul << " add " << (int)v.add << " reduce " << (int)v.reduce;
        equal(what.str(), [&](mr_pnm_builder *b, uint64_t) { GOOD(mr_pnm_b_vec(b, 0, &v)); });
    }
}

TEST(pnm_time, OneTransferIsEqual) {
    for (uint16_t n : {1, 15, 16, 17, 63, 130}) {
        std::string rows = std::to_string(n);
        equal("LOAD " + rows,
              [&](mr_pnm_builder *b, uint64_t m) { GOOD(mr_pnm_b_load(b, 0, 5, n, m, 0)); });
        equal("STORE " + rows,
              [&](mr_pnm_builder *b, uint64_t m) { GOOD(mr_pnm_b_store(b, 0, 5, n, m, 0)); });
        equal("SEND " + rows, [&](mr_pnm_builder *b, uint64_t) {
            GOOD(mr_pnm_b_send(b, 0, 0, 3, 5, n, 1000));
            GOOD(mr_pnm_b_wait(b, 0, 3, 1));
        });
        for (uint16_t col : {0, 9000, 16000})
            equal("WLOAD " + rows + " at " + std::to_string(col),
                  [&](mr_pnm_builder *b, uint64_t m) { GOOD(mr_pnm_b_wload(b, 0, col, n, m, 0)); });
    }
}

TEST(pnm_time, OneStoreOfWeightsIsEqual) {
    for (int transposed = 0; transposed < 2; transposed++)
        for (uint16_t first : {0, 5, 14}) {
            mr_pnm_wstore s = {};
            s.transposed = transposed;
            s.col = 40;
            s.kc = 4;
            s.length = transposed ? 96 : 64;
            s.vectors = 9;
            s.x_stride = 6;
            s.first = first;
            equal("WSTORE", [&](mr_pnm_builder *b, uint64_t) { GOOD(mr_pnm_b_wstore(b, 0, &s)); });
        }
}

TEST(pnm_time, ALoopOfShortDescriptorsIsEqual) {
    equal("LOOP", [&](mr_pnm_builder *b, uint64_t m) {
        GOOD(mr_pnm_b_load(b, 0, 0, 8, m, 0));
        uint32_t target = mr_pnm_b_here(b, 0);
        mr_pnm_vec v = {};
        v.count = v.width = 2;
        v.a_stride = v.d_stride = 2;
        v.d = 100;
        GOOD(mr_pnm_b_vec(b, 0, &v));
        GOOD(mr_pnm_b_send(b, 0, 0, 0, 0, 0, 0));
        GOOD(mr_pnm_b_wait(b, 0, 0, 1));
        GOOD(mr_pnm_b_loop(b, 0, target, 12));
        GOOD(mr_pnm_b_store(b, 0, 100, 4, m, 0));
    });
}

// ---- whole programs: near -----------------------------------------------------------------------

static void near(const std::string &what, mr_pnm_program *p, double bound) {
    mr_pnm_timing t = timed(machine("unit"), p);
    mr_pnm_counters c = simulated(p);
    double error = (double)t.cycles / (double)c.cycles - 1;
    printf("  %-52s RTL %8llu  model %8llu  %+.2f %%\n", what.c_str(), (unsigned long long)c.cycles,
           (unsigned long long)t.cycles, 100 * error);
    if (std::fabs(error) > bound)
        FAIL(what.c_str());
}

struct FlowRun {
    const char *model;
    bool inverse;
    size_t images;
    mr_flow_schedule schedule;
    mr_flow_placement placement;
    uint8_t log;
    size_t blocks; // 0: all
};

static void flow_near(const FlowRun &r) {
    static const char *const schedules[] = {"pipelined", "sequential", "replicated"};
    std::string path = std::string("models/zoo/flows/") + r.model + ".safetensors";
    mr_flow *f;
    mr_flow_plan *plan;
    mr_flow_plan_options o = {};
    GOOD(mr_flow_open(path.c_str(), &f));
    o.inverse = r.inverse;
    o.images = r.images;
    o.last = r.blocks;
    o.groups = MR_PNM_GROUPS;
    o.schedule = r.schedule;
    o.placement = r.placement;
    o.mode = {0, r.log};
    GOOD(mr_flow_plan_create(f, &o, &plan));
    std::vector<float> in(r.images * mr_flow_pixels(f));
    std::mt19937_64 rng(g_seed);
    for (float &v : in)
        v = (float)(rng() % 2001) / 1000 - 1;
    mr_flow_plan_put(plan, in.data());
    std::ostringstream what;
    what << r.model << (r.inverse ? " sample " : " score ") << r.images << ", "
         << schedules[r.schedule] << (r.placement ? ", blind" : "") << ", L " << (1 << r.log);
    near(what.str(), mr_flow_plan_program(plan), 0.02);
    mr_flow_plan_destroy(plan);
    mr_flow_close(f);
}

TEST(pnm_time, CouplingFlowsAreNear) {
    flow_near({"digits-coupling", false, 24, MR_FLOW_PIPELINED, MR_FLOW_TIER_AWARE, 4, 0});
    flow_near({"digits-coupling", false, 16, MR_FLOW_SEQUENTIAL, MR_FLOW_TIER_AWARE, 4, 0});
    flow_near({"digits-coupling", false, 16, MR_FLOW_REPLICATED, MR_FLOW_TIER_BLIND, 3, 0});
    flow_near({"digits-coupling", true, 8, MR_FLOW_PIPELINED, MR_FLOW_TIER_BLIND, 4, 0});
    flow_near({"digits-coupling", false, 8, MR_FLOW_PIPELINED, MR_FLOW_TIER_AWARE, 6, 0});
}

TEST(pnm_time, TransformerFlowsAreNear) {
    flow_near({"digits-tar", false, 1, MR_FLOW_PIPELINED, MR_FLOW_TIER_AWARE, 4, 2});
    flow_near({"digits-tar", true, 1, MR_FLOW_REPLICATED, MR_FLOW_TIER_BLIND, 4, 1});
}

TEST(pnm_time, MatricesAreNear) {
    std::mt19937_64 rng(g_seed + 2);
    const size_t shapes[][3] = {{256, 256, 16}, {64, 256, 64}, {256, 256, 1}, {100, 500, 5}};
    for (const auto &s : shapes) {
        std::vector<float> w(s[0] * s[1]), x(s[1] * s[2]);
        for (float &v : w)
            v = (float)(rng() % 2001) / 1000 - 1;
        for (float &v : x)
            v = (float)(rng() % 2001) / 1000 - 1;
        mr_pnm_gemv g = {};
        g.name = "w";
        g.w = w.data();
        g.x = x.data();
        g.outputs = s[0];
        g.inputs = s[1];
        g.vectors = s[2];
        g.mode = {0, 4};
        g.groups = MR_PNM_GROUPS;
        mr_pnm_gemv_plan *plan;
        GOOD(mr_pnm_gemv_plan_create(&g, &plan));
        near("gemv " + std::to_string(s[0]) + " x " + std::to_string(s[1]) + ", " +
                 std::to_string(s[2]),
             mr_pnm_gemv_program(plan), 0.02);
        mr_pnm_gemv_plan_destroy(plan);
    }
}

// ---- machines -----------------------------------------------------------------------------------

TEST(pnm_time, TheUnitIsAsBuilt) {
    mr_pnm_machine m = machine("unit");
    LONGS_EQUAL(MR_PNM_GROUPS, m.groups);
    LONGS_EQUAL(MR_PNM_PES, m.elements);
    LONGS_EQUAL(MR_PNM_LANES, m.lanes);
    LONGS_EQUAL(MR_PNM_STREAM_BITS, m.stream_bits);
    LONGS_EQUAL(MR_PNM_COLUMN_BYTES, m.dram.column_bytes);
    LONGS_EQUAL(MR_PNM_ROW_COLUMNS, m.dram.columns);
    LONGS_EQUAL(MR_PNM_TIERS, m.dram.tiers);
    LONGS_EQUAL(MR_PNM_TIERS * MR_PNM_TIER_ROWS, m.dram.rows);
}

static std::string text_of(const std::string &path) {
    std::ifstream in(path);
    std::ostringstream s;
    s << in.rdbuf();
    return s.str();
}

TEST(pnm_time, BadMachinesAreNamed) {
    const std::string good = text_of("models/cycle/pnm/chip.json");
    const struct {
        const char *from, *to, *words;
    } cases[] = {
        {"\"lanes\"", "\"lines\"", "lines: unknown key"},
        {"\"groups\": {\"value\": 4", "\"groups\": {\"value\": 0",
         "groups: must be a whole number"},
        {"\"groups\": {\"value\": 4", "\"groups\": {\"value\": \"4\"", "groups: must be a whole"},
        {"\"groups\": {\"value\": 4", "\"groups\": {\"value\": 8", "units: contradicts dram"},
        {"\"elements\": {\"value\": 4", "\"elements\": {\"value\": 8",
         "elements: contradicts dram"},
        {"\"lanes\": {\"value\": 16", "\"lanes\": {\"value\": 32", "lanes: contradicts dram"},
        {"\"lanes\": {\"value\": 16", "\"lanes\": {\"value\": 24", "powers of two"},
        {"\"value\": \"m3d\"", "\"value\": \"../m3d\"", "dram: must be the name"},
        {"\"value\": \"m3d\"", "\"value\": \"none\"", "none.json"},
        {"\"as built: LANES\"", "\"\"", "lanes: must be an object of value and source"},
        {"\"name\": \"chip\"", "\"name\": \"\"", "name: must be a name"},
        {"{", "[", ":2: "},
    };
    char path[] = "/tmp/machineXXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    for (const auto &c : cases) {
        std::string text = good;
        size_t at = text.find(c.from);
        CHECK(at != std::string::npos);
        text.replace(at, strlen(c.from), c.to);
        std::ofstream(path) << text;
        mr_pnm_machine m;
        char error[512] = "";
        CHECK_FALSE(mr_pnm_machine_load(path, drams, &m, error, sizeof error));
        STRCMP_CONTAINS(c.words, error);
    }
    unlink(path);
}

// A rival's MATVEC counted by hand, in cycles of 0.57 ns. Many: the row opens (30), four passes of
// 4 columns every 2 cycles; the bus has less to do. Alone: a vector of 64 crosses the bus (4 words
// of 2 cycles), the row opens, 4 columns, 16 sums of 32 bytes back: 48 cycles; the three passes
// that follow find the row open: 8 + 8 + 2.
TEST(pnm_time, ARivalsMatvecIsAsCountedByHand) {
    mr_rival r;
    char error[512] = "";
    if (!mr_rival_load("models/cycle/rivals/aim.json", drams, &r, error, sizeof error))
        FAIL(error);
    mr_pnm_matvec v = {};
    v.kc = 4;
    v.outputs = 16;
    v.vectors = 1;
    v.mode = {2, 2};
    v.wexp = 127;
    v.x_stride = 4;
    v.y = 100;
    v.y_stride = 1;
    mr_pnm_program *p =
        program([&](mr_pnm_builder *b, uint64_t) { GOOD(mr_pnm_b_matvec(b, 0, &v)); });
    mr_pnm_list list = {p->image + p->list[0].addr, 1};
    mr_rival_timing t;
    CHECK(mr_rival_time(&r, &list, false, &t));
    DOUBLES_EQUAL(0.57 * (30 + 4 * 8) / 4, t.ns, 1e-9);
    DOUBLES_EQUAL(1024, t.products, 0);
    DOUBLES_EQUAL(128 + 32, t.bus_bytes, 0);
    DOUBLES_EQUAL(1024 * 1.5e-12, t.multiply_j, 1e-18);
    DOUBLES_EQUAL(160 * 8 * 3.92e-12, t.link_j, 1e-18);
    double row_bits = 16 * 64 * 256, column_bits = 4 * 16 * 256; // a row once in four passes
    DOUBLES_EQUAL((row_bits * 0.11 / 4 + column_bits * 0.44) * 1e-12, t.dram_j, 1e-18);
    CHECK(mr_rival_time(&r, &list, true, &t)); // nothing depends on what the host makes of the sums
    DOUBLES_EQUAL(0.57 * (48 + 3 * 18) / 4, t.ns, 1e-9);
    mr_pnm_program_destroy(p);
}

TEST(pnm_time, RivalsAndMachinesLoad) {
    mr_rival r;
    char error[512] = "";
    for (const char *name : {"aim", "hbm_pim", "attacc"}) {
        std::string file = std::string("models/cycle/rivals/") + name + ".json";
        if (!mr_rival_load(file.c_str(), drams, &r, error, sizeof error))
            FAIL(error);
        STRCMP_EQUAL(name, r.name);
    }
    // a column of 64 bytes holds two of the unit's: half the steps
    mr_pnm_matvec v = {};
    v.kc = 4;
    v.outputs = 64;
    v.vectors = 8;
    v.mode = {0, 4};
    v.wexp = 127;
    v.x_stride = 4;
    v.y = 1000;
    v.y_stride = 4;
    mr_pnm_program *p =
        program([&](mr_pnm_builder *b, uint64_t) { GOOD(mr_pnm_b_matvec(b, 0, &v)); });
    LONGS_EQUAL(512, timed(machine("chip"), p).group[0].stream_cycles);
    LONGS_EQUAL(256, timed(machine("wide"), p).group[0].stream_cycles);
    mr_pnm_program_destroy(p);
}

TEST(pnm_time, AProgramThatStandsStillIsSaid) {
    uint8_t wait[MR_PNM_DESC_BYTES] = {MR_PNM_DESC_WAIT};
    wait[4] = 1; // count
    mr_pnm_list list = {wait, 1};
    mr_pnm_machine m = machine("unit");
    mr_pnm_timing t;
    char error[256] = "";
    CHECK_FALSE(mr_pnm_time(&m, &list, 1, nullptr, nullptr, &t, error, sizeof error));
    STRCMP_EQUAL("the program stands still", error);
    std::vector<mr_pnm_list> many(m.groups + 1, list);
    CHECK_FALSE(
        mr_pnm_time(&m, many.data(), many.size(), nullptr, nullptr, &t, error, sizeof error));
    STRCMP_CONTAINS("4 groups, the program 5", error);
}

// The driver and the simulated unit lie in lib/millrace of the build, two folders up.
int main(int argc, char **argv) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    std::string path(self, n > 0 ? (size_t)n : 0);
    for (int i = 0; i < 3; i++)
        path = path.substr(0, path.rfind('/'));
    setenv("MILLRACE_DRIVERS", (path + "/lib/millrace").c_str(), 1);
    const char *given = getenv("MR_SEED");
    g_seed = given ? strtoull(given, nullptr, 0) : (uint64_t)time(nullptr);
    printf("MR_SEED=%llu\n", (unsigned long long)g_seed);
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
