// The bank controller against the timing model: the same requests, the same commands in the same
// cycles; and against the trace checker, which knows neither.
#include <cstring>
#include <vector>

#include "../common/bench.hpp"
#include "Vbanks_tb.h"
#include "models/cycle/dram_check.h"

namespace {

struct Request {
    uint64_t gap; // cycles without a request before it
    bool write, last;
    unsigned banks, row, column;
};
typedef std::vector<mr_dram_command> Trace;

mr_dram_config part() {
    mr_dram_config c;
    char error[300] = "";
    if (!mr_dram_load("models/cycle/dram/m3d.json", &c, error, sizeof error))
        FAIL(error);
    return c;
}

struct Banks : Bench<Vbanks_tb> {
    uint64_t from = 0;
    Trace trace;
    std::vector<uint64_t> taken; // cycle of each request's command
    bool late = false;
    explicit Banks(uint64_t noise) : Bench(noise) {
        top->req_valid_i = 0;
        reset();
        from = cycles;
    }
    void cycle() {
        settle();
        if (top->cmd_valid_o)
            trace.push_back({cycles - from, 0, (int)top->cmd_o, top->cmd_banks_o, top->cmd_row_o,
                             top->cmd_col_o});
        late |= top->late_o;
        tick();
    }
    void run(const std::vector<Request> &requests, uint64_t rest) {
        for (const Request &r : requests) {
            top->req_valid_i = 0;
            for (uint64_t k = 0; k < r.gap; k++)
                cycle();
            top->req_valid_i = 1;
            top->req_we_i = r.write;
            top->req_last_i = r.last;
            top->req_col_i = r.row * 16 + r.column;
            top->req_wmask_i = 0;
            for (unsigned b = 0; b < 4; b++) // any of a bank's lanes makes the write its own
                if (r.banks >> b & 1)
                    top->req_wmask_i |= 1ull << (16 * b + r.column);
            const uint64_t since = cycles;
            for (bool ready = false; !ready;) {
                if (cycles - since > 5000)
                    FAIL("a request is not served");
                settle();
                ready = top->req_ready_o;
                if (ready)
                    taken.push_back(cycles - from);
                cycle();
            }
        }
        top->req_valid_i = 0;
        for (uint64_t k = 0; k < rest; k++)
            cycle();
    }
};

void record(void *user, uint64_t cycle, size_t group, int command, uint32_t banks, uint32_t row,
            uint32_t column) {
    static_cast<Trace *>(user)->push_back({cycle, (uint32_t)group, command, banks, row, column});
}

// What says nothing in a command: the row of a refresh or precharge, the column where there is
// none.
mr_dram_command bare(mr_dram_command m) {
    if (m.command == MR_DRAM_PRE || m.command == MR_DRAM_REF)
        m.row = 0;
    if (m.command != MR_DRAM_RD && m.command != MR_DRAM_WR)
        m.column = 0;
    return m;
}

std::string text_of(const mr_dram_command &m) {
    static const char *const names[] = {"ACT", "RD", "WR", "PRE", "REF", "?", "?", "?"};
    char text[100];
    snprintf(text, sizeof text, "%llu %s banks %x row %u column %u", (unsigned long long)m.cycle,
             names[m.command], m.banks, m.row, m.column);
    return text;
}

Trace model(const mr_dram_config &c, const std::vector<Request> &requests,
            const std::vector<uint64_t> &taken, uint64_t end) {
    Trace trace;
    mr_dram *d = mr_dram_create(&c, 1, record, &trace);
    uint64_t next = 0; // cycle in which the next request can be there
    for (size_t i = 0; i < requests.size(); i++) {
        const Request &r = requests[i];
        const uint64_t at = mr_dram_request(d, 0, next + r.gap, r.write, r.write ? r.banks : 15,
                                            r.row, r.column, r.last);
        if (at != taken[i]) {
            char text[120];
            snprintf(text, sizeof text, "request %zu is served in cycle %llu, must be %llu", i,
                     (unsigned long long)taken[i], (unsigned long long)at);
            FAIL(text);
        }
        next = at + 1;
    }
    mr_dram_idle(d, 0, end);
    mr_dram_destroy(d);
    return trace;
}

uint64_t violations(const mr_dram_config &c, const Trace &trace, uint64_t end, std::string *first) {
    mr_dram_check *k = mr_dram_check_create(&c, 1);
    for (const mr_dram_command &m : trace) {
        const char *wrong = mr_dram_check_command(k, &m);
        if (wrong && first->empty())
            *first = text_of(m) + ": " + wrong;
    }
    const char *wrong = mr_dram_check_end(k, end);
    if (wrong && first->empty())
        *first = wrong;
    const uint64_t n = mr_dram_check_violations(k);
    mr_dram_check_destroy(k);
    return n;
}

// Requests through both; the commands, which broke no rule.
Trace agree(const std::vector<Request> &requests, Rng &rng, unsigned tier = 8) {
    const mr_dram_config c = part();
    Banks b(rng.next());
    b.run(requests, rng.below(20000));
    const uint64_t end = b.cycles - b.from;
    const Trace want = model(c, requests, b.taken, end);
    for (size_t i = 0; i < want.size() || i < b.trace.size(); i++) {
        const std::string is = i < b.trace.size() ? text_of(bare(b.trace[i])) : "nothing",
                          must = i < want.size() ? text_of(bare(want[i])) : "nothing";
        if (is != must)
            FAIL(("command " + std::to_string(i) + " is " + is + ", must be " + must + " (tier " +
                  std::to_string(tier) + ")")
                     .c_str());
    }
    std::string first;
    LONGS_EQUAL_TEXT(0, violations(c, b.trace, end, &first), first.c_str());
    CHECK_FALSE(b.late);
    CHECK_FALSE(b.fired());
    return b.trace;
}

// A matrix side's walk and anything else: runs of columns in a row, few or many rows of one tier
// (8: of all), gaps that are seldom, frequent, or long enough for refreshes.
std::vector<Request> random_requests(Rng &rng, unsigned tier, unsigned count) {
    std::vector<Request> list;
    unsigned row = 0;
    const unsigned change = 1 + (unsigned)rng.below(30), gaps = (unsigned)rng.below(60),
                   writes = (unsigned)rng.below(100), lasts = (unsigned)rng.below(40);
    const unsigned rows = 1 + (unsigned)rng.below(128);
    for (unsigned i = 0; i < count; i++) {
        if (i == 0 || rng.below(change) == 0)
            row = 128 * (tier < 8 ? tier : (unsigned)rng.below(8)) + (unsigned)rng.below(rows);
        Request r = {0,   rng.percent(writes),    rng.percent(lasts), 1 + (unsigned)rng.below(15),
                     row, (unsigned)rng.below(16)};
        if (rng.percent(gaps))
            r.gap = rng.below(rng.below(50) == 0 ? 10000 : rng.percent(20) ? 200 : 4);
        list.push_back(r);
    }
    return list;
}

uint64_t count(const Trace &trace, int command) {
    uint64_t n = 0;
    for (const mr_dram_command &m : trace)
        n += m.command == command;
    return n;
}

} // namespace

TEST_GROUP(Banks){};

TEST(Banks, CommandsComeWhenTheModelSaysInEveryTier) {
    Rng rng(run_seed());
    const unsigned runs = getenv("MR_FULL") ? 200 : 4;
    uint64_t total[MR_DRAM_COMMANDS] = {};
    for (unsigned n = 0; n < runs; n++)
        for (unsigned tier = 0; tier <= 8; tier++) {
            const Trace t = agree(random_requests(rng, tier, 1500), rng, tier);
            for (int k = 0; k < MR_DRAM_COMMANDS; k++)
                total[k] += count(t, k);
        }
    for (int k = 0; k < MR_DRAM_COMMANDS; k++)
        CHECK(total[k] > 100);
}

// Requests without an end: refreshes are put off, but never for too long.
TEST(Banks, AStreamWithoutAGapIsRefreshedInTime) {
    Rng rng(run_seed() + 1);
    const mr_dram_cycles t = [] {
        const mr_dram_config c = part();
        return mr_dram_in_cycles(&c);
    }();
    std::vector<Request> stream;
    for (unsigned i = 0; i < 80000; i++)
        stream.push_back({0, false, false, 15, i / 16 % 128, i % 16});
    const Trace trace = agree(stream, rng);
    uint64_t end = 0;
    for (const mr_dram_command &m : trace)
        end = m.command == MR_DRAM_RD ? m.cycle : end;
    uint64_t during = 0;
    for (const mr_dram_command &m : trace)
        during += m.command == MR_DRAM_REF && m.cycle < end;
    CHECK(end > 20 * t.refi);
    CHECK(during + 8 >= end / t.refi);

    // the same without its refreshes is found out
    Trace none;
    for (const mr_dram_command &m : trace)
        if (m.command != MR_DRAM_REF)
            none.push_back(m);
    std::string first;
    CHECK(violations(part(), none, end, &first) > 0);
    STRCMP_CONTAINS("tREFI", first.c_str());
}

// Every ACT but the first of a row that another had open is a conflict: the model's count is what
// the controller did.
TEST(Banks, TwoRowsInTurnConflictEveryTime) {
    Rng rng(run_seed() + 2);
    mr_dram_config c = part();
    std::vector<Request> turns;
    for (unsigned i = 0; i < 200; i++) // shorter than an interval: no refresh closes the row
        turns.push_back({0, false, false, 15, i % 2, 0});
    const Trace t = agree(turns, rng);
    mr_dram *d = mr_dram_create(&c, 1, nullptr, nullptr);
    for (unsigned i = 0; i < 200; i++)
        mr_dram_request(d, 0, 0, false, 15, i % 2, 0, false);
    const mr_dram_count n = mr_dram_counters(d, 0);
    mr_dram_destroy(d);
    uint64_t acts = 0, conflicts = 0;
    bool open = false;
    for (const mr_dram_command &m : t) {
        if (m.command == MR_DRAM_RD)
            open = true;
        acts += m.command == MR_DRAM_ACT;
        conflicts += m.command == MR_DRAM_ACT && open;
    }
    CHECK_EQUAL(199u, n.conflicts);
    CHECK_EQUAL(200u, acts);
    CHECK_EQUAL(199u, conflicts);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
