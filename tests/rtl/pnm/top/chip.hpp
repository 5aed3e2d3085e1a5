// A simulated near-memory unit and the golden model of it, given the same jobs. Both must agree on
// memory, error, status and counts; every command to the banks is judged by the trace checker.
#ifndef MR_TESTS_RTL_PNM_TOP_CHIP_HPP
#define MR_TESTS_RTL_PNM_TOP_CHIP_HPP

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include <CppUTest/TestHarness.h>
#include <millrace/pnm_regs.h>

#include "models/cycle/dram_check.h"
#include "sim/sim.h"
#include "tests/rtl/pnm/desc.hpp"

namespace pnm {

enum {
    LIST_BYTES = 0x8000, // a group
    INPUT_AT = MR_PNM_GROUPS * LIST_BYTES,
    INPUT_BYTES = 0x20000,
    OUT_AT = INPUT_AT + INPUT_BYTES,
    OUT_BYTES = 0x80000, // a group
    BYTES = OUT_AT + MR_PNM_GROUPS * OUT_BYTES,
    RESET = 4 // cycles of a simulator's reset
};

typedef std::vector<uint8_t> Bytes;

struct Program {
    std::vector<Desc> list[MR_PNM_GROUPS];
    uint64_t offset[MR_PNM_GROUPS]; // of the lists, from the start of memory
    Program() {
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            offset[g] = (uint64_t)g * LIST_BYTES;
    }
    void add(unsigned g, const Desc &d) { list[g].push_back(d); }
    // Where the lists lie in a job's memory.
    void write(Bytes &image) const {
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const uint64_t bytes = list[g].size() * MR_PNM_DESC_BYTES;
            if (bytes > LIST_BYTES)
                FAIL("a list is longer than its place");
            for (uint64_t i = 0; i < bytes && offset[g] + i < BYTES; i++)
                image[offset[g] + i] = list[g][i / MR_PNM_DESC_BYTES].bytes[i % MR_PNM_DESC_BYTES];
        }
    }
    void places(uint64_t base, mr_pnm_prog progs[MR_PNM_GROUPS]) const {
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            progs[g] = {base + offset[g], (uint32_t)list[g].size()};
    }
};

// LOAD, STORE or WLOAD.
inline Desc transfer(unsigned type, uint64_t rows, uint64_t row, uint64_t addr, uint64_t step = 0) {
    Desc d(type);
    PUT(d, LOAD_ROWS, (int64_t)rows);
    PUT(d, LOAD_ROW, (int64_t)row);
    PUT(d, LOAD_ADDR, (int64_t)addr);
    PUT(d, LOAD_STEP, (int64_t)step);
    return d;
}

struct Work { // done by the chips of a test
    uint64_t cycles, descriptors, products, commands;
};

class Chip {
public:
    // library: the simulator's file. options: of sim.h, without dram_trace.
    Chip(const char *library, const std::string &options, const std::string &label)
        : label_(label), golden_(mr_pnm_chip_create(MR_PNM_CENTRED, 0, false)),
          judge_(mr_pnm_chip_create(MR_PNM_CENTRED, 0, false)) {
        handle_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle_)
            FAIL(dlerror());
        typedef const mr_sim_ops *entry(uint32_t);
        ops = ((entry *)dlsym(handle_, MR_SIM_ENTRY))(MR_SIM_ABI);
        char name[] = "/tmp/mr_pnm_XXXXXX", error[300] = "";
        close(mkstemp(name));
        const int rc =
            ops->open((options + "&dram_trace=" + name).c_str(), &sim, error, sizeof error);
        trace_ = fopen(name, "r"); // both hold it: nothing is left behind, however the test ends
        unlink(name);
        if (rc || !trace_)
            say(rc ? error : "no trace");
        ops->mem_alloc(sim, BYTES, 0, &base);
    }
    ~Chip() {
        close_sim();
        if (trace_)
            fclose(trace_);
        mr_pnm_chip_destroy(golden_);
        mr_pnm_chip_destroy(judge_);
        if (handle_)
            dlclose(handle_);
    }
    Chip(const Chip &) = delete;

    // What the golden model makes of it, on a chip of its own whose rows and banks are anyhow.
    mr_pnm_result probe(const Program &p, Bytes image) const { return model(judge_, p, image); }

    // Starts a job and waits for its end: false when there is none within `limit` cycles.
    bool run(const Program &p, Bytes image, uint64_t limit = 4000000) {
        p.write(image);
        ops->mem_write(sim, base, image.data(), BYTES);
        mr_pnm_prog progs[MR_PNM_GROUPS];
        p.places(base, progs);
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            set(MR_PNM_PROG0_ADDR + 16 * g, (uint32_t)progs[g].addr);
            set(MR_PNM_PROG0_ADDR + 16 * g + 4, (uint32_t)(progs[g].addr >> 32));
            set(MR_PNM_PROG0_COUNT + 16 * g, progs[g].count);
        }
        set(MR_PNM_IER, 1);
        set(MR_PNM_GIE, 1);
        mr_sim_stats before;
        ops->stats(sim, &before, 0);
        set(MR_PNM_CTRL, 1);
        uint64_t ran = 0;
        const int rc = ops->run(sim, limit, &ran);
        work.cycles += ran;
        if (rc == MR_SIM_TIMEOUT)
            return false;
        if (rc)
            say(ops->error(sim));
        set(MR_PNM_ISR, 1);
        get(MR_PNM_CTRL);
        error = get(MR_PNM_ERROR);
        group = get(MR_PNM_ERROR_GROUP);
        index = get(MR_PNM_ERROR_INDEX);
        status = get(MR_PNM_STATUS);
        mr_sim_stats after;
        ops->stats(sim, &after, 0);
        same("bytes written", after.w_bytes - before.w_bytes, get64(MR_PNM_ITEMS_OUT));
        same("bytes read", 64 * (after.r_beats - before.r_beats), get64(MR_PNM_ITEMS_IN));
        for (unsigned k = 0; k < 3; k++)
            for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
                counted_[k] += get64(MR_PNM_G0_DRAM_ACT + 8 * k + 128 * g);
        return true;
    }

    // A job that must run to its end, on both: memory, status and counts are the golden model's.
    void agree(const Program &p, const Bytes &image) {
        Bytes gold = image;
        const mr_pnm_result r = model(golden_, p, gold);
        if (r.outcome != MR_PNM_RAN || r.hazard)
            say("the golden model refuses the program");
        if (!run(p, image))
            say("the job has no end");
        same("ERROR", MR_PNM_ERR_OK, error);
        same("STATUS", r.status, status);
        same("PRODUCTS", r.products, get64(MR_PNM_PRODUCTS));
        uint64_t elements = 0;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
            elements += get64(MR_PNM_G0_VEC_ELEMS + 128 * g);
        same("VEC_ELEMS", r.vec_elements, elements);
        const uint8_t *out = memory();
        for (size_t i = 0; i < BYTES; i++)
            if (out[i] != gold[i])
                differs(i, out[i], gold[i]);
        work.descriptors += r.descriptors;
        work.products += r.products;
    }

    // A job that ends or stops as on the golden model, for the same reason and at the same place.
    // False: it would wait for ever there, and has not been started.
    bool end_alike(const Program &p, const Bytes &image, uint64_t limit = 4000000) {
        Bytes gold = image;
        const mr_pnm_result r = model(golden_, p, gold);
        if (r.outcome == MR_PNM_DEADLOCK)
            return false;
        if (!run(p, image, limit))
            say("the job has no end");
        same("ERROR", r.error, error);
        same("ERROR_GROUP", r.group, r.error ? group : 0);
        same("ERROR_INDEX", r.index, r.error ? index : 0);
        work.descriptors += r.descriptors;
        return true;
    }
    void stop_alike(const Program &p, const Bytes &image) {
        if (!end_alike(p, image) || error == MR_PNM_ERR_OK)
            say("the job does not stop");
    }

    // Banks are closed and their refresh begins anew: the trace is judged in pieces.
    void reset() {
        resets_.push_back(now());
        was_reset_ = true;
        if (ops->reset(sim))
            say(ops->error(sim));
    }

    // The end of a chip's life: its commands break no rule, and they are those it counted.
    void finish() {
        const uint64_t end = now();
        close_sim();
        mr_dram_config config;
        char text[300] = "";
        if (!mr_dram_load("models/cycle/dram/m3d.json", &config, text, sizeof text))
            say(text);
        resets_.push_back(end + 1);
        uint64_t from = 0, seen[3] = {0, 0, 0};
        mr_dram_check *check = nullptr;
        for (char line[100]; fgets(line, sizeof line, trace_);) {
            mr_dram_command d = {0, 0, 0, 0, 0, 0};
            unsigned long long cycle;
            char name[8];
            if (line[0] == '#')
                continue;
            if (sscanf(line, "%llu %u %7s %x %u %u", &cycle, &d.group, name, &d.banks, &d.row,
                       &d.column) != 6)
                say(line);
            while (cycle >= resets_.front()) {
                judge_end(check, resets_.front() - from);
                from = resets_.front();
                resets_.erase(resets_.begin());
                check = nullptr;
            }
            if (cycle - from < RESET) // the controllers are not there yet
                continue;
            if (!check)
                check = mr_dram_check_create(&config, MR_PNM_GROUPS);
            static const char *const names[] = {"ACT", "RD", "WR", "PRE", "REF", nullptr};
            while (names[d.command] && strcmp(names[d.command], name))
                d.command++;
            d.cycle = cycle - from;
            const char *wrong = mr_dram_check_command(check, &d);
            if (wrong)
                say(std::string(line) + ": " + wrong);
            if (d.command < 3)
                seen[d.command]++;
            work.commands++;
        }
        judge_end(check, end - from);
        for (unsigned k = 0; k < 3 && !was_reset_; k++) // a reset clears the counters
            same("commands in the trace", counted_[k], seen[k]);
    }

    uint8_t *memory() const {
        void *p = nullptr;
        ops->mem_map(sim, base, BYTES, &p);
        return (uint8_t *)p;
    }
    uint32_t get(uint32_t reg) const {
        uint32_t v = 0;
        if (ops->reg_read(sim, reg, &v))
            say(ops->error(sim));
        return v;
    }
    uint64_t get64(uint32_t reg) const { return get(reg) | (uint64_t)get(reg + 4) << 32; }

    const mr_sim_ops *ops = nullptr;
    mr_sim *sim = nullptr;
    uint64_t base = 0;
    uint32_t error = 0, group = 0, index = 0, status = 0; // of the last job
    Work work = {0, 0, 0, 0};

private:
    void set(uint32_t reg, uint32_t value) const {
        if (ops->reg_write(sim, reg, value))
            say(ops->error(sim));
    }
    uint64_t now() const {
        mr_sim_stats s;
        ops->stats(sim, &s, 0);
        return s.cycles;
    }
    mr_pnm_result model(mr_pnm_chip *chip, const Program &p, Bytes &image) const {
        p.write(image);
        mr_pnm_prog progs[MR_PNM_GROUPS];
        p.places(base, progs);
        mr_pnm_memory memory = {image.data(), base, BYTES};
        mr_pnm_result r;
        mr_pnm_chip_run(chip, &memory, progs, &r);
        return r;
    }
    void judge_end(mr_dram_check *check, uint64_t cycle) const {
        const char *wrong = check ? mr_dram_check_end(check, cycle) : nullptr;
        const std::string text = wrong ? wrong : "";
        mr_dram_check_destroy(check);
        if (!text.empty())
            say(text);
    }
    void close_sim() {
        if (sim)
            ops->close(sim);
        sim = nullptr;
    }
    [[noreturn]] void say(const std::string &text) const {
        FAIL((label_ + ": " + text).c_str());
        abort();
    }
    void same(const char *what, uint64_t expected, uint64_t actual) const {
        if (expected != actual)
            say(std::string(what) + " " + std::to_string(actual) + ", must be " +
                std::to_string(expected));
    }
    void differs(size_t at, uint8_t is, uint8_t should) const {
        char text[160];
        const size_t o = at < OUT_AT ? 0 : at - OUT_AT;
        snprintf(text, sizeof text,
                 "memory byte 0x%zX (group %zu, row %zu of its output, byte %zu) is %02X, must be "
                 "%02X",
                 at, o / OUT_BYTES, o % OUT_BYTES / 64, o % 64, is, should);
        say(text);
    }

    std::string label_;
    FILE *trace_ = nullptr;
    void *handle_;
    mr_pnm_chip *golden_, *judge_;
    std::vector<uint64_t> resets_;
    bool was_reset_ = false;
    uint64_t counted_[3] = {0, 0, 0}; // ACT, RD, WR of all jobs
};

} // namespace pnm
#endif
