// What surrounds the merge engine in a bench: frame buffers behind a fetch port with latency and
// pauses, a scheduler that gives contributions of up to 64 operations, and a reader of results.
#ifndef MR_TESTS_RTL_NIC_MERGE_MODEL_HPP
#define MR_TESTS_RTL_NIC_MERGE_MODEL_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "models/golden/nic_merge.h"

namespace merge {

enum { BF16 = 1, FP16, FP32, INT32 };
enum { SUM, MAX, MIN };

struct contribution {
    std::vector<uint8_t> payload;
    bool natural = false;
};

// An operation: contributions in shard order.
struct operation {
    bool reduce = false;
    unsigned dtype = BF16, rop = SUM, heads = 1, dim = 1;
    std::vector<contribution> parts;

    size_t element() const { return dtype <= FP16 ? 2 : 4; }
    size_t stats(size_t each) const { return reduce ? 0 : (heads * each + 63) / 64 * 64; }
    size_t bytes() const { return stats(8) + (size_t)heads * dim * element(); }
    size_t result_bytes() const { return stats(4) + (size_t)heads * dim * element(); }
    size_t beats() const { return (bytes() + 63) / 64; }
    std::string name() const {
        char text[96];
        snprintf(text, sizeof text, "%s dtype %u rop %u heads %u dim %u parts %zu",
                 reduce ? "reduce" : "merge", dtype, rop, heads, dim, parts.size());
        return text;
    }
    std::vector<uint8_t> golden() const {
        std::vector<uint8_t> out(result_bytes());
        auto *acc = new mr_nic_acc;
        mr_nic_acc_begin(acc, reduce, dtype, rop, heads, dim);
        for (const contribution &p : parts)
            mr_nic_acc_fold(acc, p.payload.data(), p.natural);
        if (mr_nic_acc_finish(acc, out.data()) != out.size())
            out.clear();
        delete acc;
        return out;
    }
};

struct result {
    std::vector<uint8_t> payload;
    uint16_t sum = 0;
};

inline uint16_t checksum(const std::vector<uint8_t> &bytes) {
    uint32_t sum = 0;
    for (size_t k = 0; k + 1 < bytes.size(); k += 2)
        sum += (uint32_t)(bytes[k] << 8 | bytes[k + 1]);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)sum;
}

struct options {
    unsigned slots = 64;     // operations at a time
    unsigned give = 100;     // per cent of cycles in which a contribution is offered
    unsigned fetch = 100;    // per cent of cycles in which a beat comes
    unsigned command = 100;  // per cent of cycles in which a command is taken
    unsigned latency = 2;    // cycles from command to first beat
    bool obey_busy = true;   // no contribution to a busy slot
    bool one_by_one = false; // a contribution only when nothing is under way
    int offset = -1;         // of the payload in its buffer; below 0: random and even
};

struct figures {
    uint64_t cycles = 0, payload_beats = 0, source_beats = 0, contributions = 0;
    // largest number of cycles from the taking of an operation's last contribution to its result,
    // less its payload beats; only where contributions come one by one
    int64_t slack = INT64_MIN;
};

// Bench: the clocked model, see bench.hpp. Random: below(), percent(), next().
template <class Bench, class Random>
class engine {
public:
    engine(Bench &bench, Random &random) : b(bench), t(*bench.top), rng(random) {
        t.fold_valid_i = t.cmd_ready_i = t.fetch_valid_i = 0;
        t.res_clear_valid_i = t.res_rd_en_i = 0;
    }
    std::string problem;
    figures seen;

    // Runs all operations; their results, in the order of ops. Empty when something went wrong: see
    // problem.
    std::vector<result> run(const std::vector<operation> &ops, const options &opt) {
        slots.assign(64, slot());
        results.assign(ops.size(), result());
        started = finished = 0;
        offer = reading = clear = -1;
        uint64_t quiet = 0;
        while (finished < ops.size() && problem.empty()) {
            const size_t before = seen.source_beats + seen.contributions + finished;
            give(ops, opt);
            fetch(opt);
            read();
            b.settle();
            const bool fold_go = t.fold_valid_i && t.fold_ready_o;
            const bool cmd_go = t.cmd_valid_o && t.cmd_ready_i;
            const bool fetch_go = t.fetch_valid_i && t.fetch_ready_o;
            if (cmd_go)
                command(opt);
            b.tick();
            seen.cycles++;
            if (b.fired())
                problem = "an assertion of the design fired";
            if (fetch_go)
                fetched();
            if (fold_go)
                given(ops);
            taken_word(ops);
            if (t.done_valid_o)
                done(ops, opt);
            quiet = before == seen.source_beats + seen.contributions + finished ? quiet + 1 : 0;
            if (quiet > 5000)
                problem = "the engine hangs";
        }
        t.fold_valid_i = t.fetch_valid_i = t.cmd_ready_i = t.res_rd_en_i = 0;
        t.res_clear_valid_i = clear >= 0;
        t.res_clear_slot_i = (uint8_t)clear;
        b.tick();
        t.res_clear_valid_i = 0;
        b.tick();
        if (problem.empty() && (!t.idle_o || t.busy_o || t.res_ready_o))
            problem = "not idle at the end";
        return problem.empty() ? results : std::vector<result>();
    }

private:
    struct slot {
        size_t op = SIZE_MAX, next = 0;
        bool complete = false; // all contributions are given
        uint64_t taken = 0;
    };
    struct source { // a contribution in its buffer
        std::vector<uint8_t> bytes;
        unsigned mem, buf, beat;
        uint64_t ready = 0;
        size_t at = 0;
    };
    Bench &b;
    decltype(*std::declval<Bench>().top) &t;
    Random &rng;
    std::vector<slot> slots;
    std::vector<result> results;
    std::deque<source> waiting, fetches; // before and after their fetch command
    source offered;
    std::deque<int> to_read;
    size_t started = 0, finished = 0;
    int offer = -1, reading = -1, clear = -1; // slots
    bool fetch_on = false;

    void give(const std::vector<operation> &ops, const options &opt) {
        if (offer < 0 && rng.percent(opt.give) && (!opt.one_by_one || t.idle_o)) {
            for (unsigned s = 0; s < opt.slots && started < ops.size(); s++)
                if (slots[s].op == SIZE_MAX && (int)s != clear)
                    slots[s].op = started++;
            const unsigned from = (unsigned)rng.below(opt.slots);
            for (unsigned k = 0; k < opt.slots && offer < 0; k++) {
                const unsigned s = (from + k) % opt.slots;
                const bool open = slots[s].op != SIZE_MAX && !slots[s].complete;
                if (open && !(opt.obey_busy && (t.busy_o >> s & 1)))
                    offer = (int)s;
            }
            if (offer >= 0)
                prepare(ops[slots[(size_t)offer].op], slots[(size_t)offer], opt);
        }
        t.fold_valid_i = offer >= 0;
    }
    void prepare(const operation &op, const slot &s, const options &opt) {
        const std::vector<uint8_t> &payload = op.parts[s.next].payload;
        const unsigned off = opt.offset >= 0 ? (unsigned)opt.offset : 2 * (unsigned)rng.below(108);
        offered.mem = (unsigned)rng.below(3);
        offered.buf = (unsigned)rng.below(1024);
        offered.beat = off / 64;
        offered.bytes.resize((off % 64 + payload.size() + 63) / 64 * 64);
        for (uint8_t &byte : offered.bytes) // headers before, anything behind
            byte = (uint8_t)rng.next();
        memcpy(offered.bytes.data() + off % 64, payload.data(), payload.size());
        t.slot_i = (uint8_t)offer;
        t.mem_i = (uint8_t)offered.mem;
        t.buf_i = (uint16_t)offered.buf;
        t.off_i = (uint16_t)off;
        t.reduce_i = op.reduce;
        t.dtype_i = (uint8_t)op.dtype;
        t.rop_i = (uint8_t)op.rop;
        t.nat_i = op.parts[s.next].natural;
        t.heads_i = (uint16_t)op.heads;
        t.dim_i = (uint16_t)op.dim;
        t.first_i = s.next == 0;
        t.last_i = s.next + 1 == op.parts.size();
    }
    void given(const std::vector<operation> &ops) {
        slot &s = slots[(size_t)offer];
        waiting.push_back(offered);
        seen.contributions++;
        seen.payload_beats += ops[s.op].beats();
        s.complete = ++s.next == ops[s.op].parts.size();
        s.taken = b.cycles - 1;
        offer = -1;
    }
    void command(const options &opt) {
        if (waiting.empty()) {
            problem = "a fetch command without a contribution";
            return;
        }
        source &w = waiting.front();
        if (t.cmd_mem_o != w.mem || t.cmd_buf_o != w.buf || t.cmd_beat_o != w.beat ||
            t.cmd_beats_o != w.bytes.size() / 64 || !t.cmd_rel_o)
            problem = "a wrong fetch command";
        w.ready = b.cycles + opt.latency;
        fetches.push_back(std::move(w));
        waiting.pop_front();
    }
    void fetch(const options &opt) {
        t.cmd_ready_i = rng.percent(opt.command);
        if (!fetch_on && !fetches.empty() && fetches.front().ready <= b.cycles &&
            rng.percent(opt.fetch)) {
            const source &f = fetches.front();
            fetch_on = true;
            memcpy(&t.fetch_data_i[0], f.bytes.data() + f.at, 64);
            t.fetch_last_i = f.at + 64 == f.bytes.size();
        }
        t.fetch_valid_i = fetch_on;
    }
    void fetched() {
        fetch_on = false;
        seen.source_beats++;
        fetches.front().at += 64;
        if (fetches.front().at == fetches.front().bytes.size())
            fetches.pop_front();
    }
    void done(const std::vector<operation> &ops, const options &opt) {
        const int s = t.done_slot_o;
        const slot &from = slots[(size_t)s];
        if (from.op == SIZE_MAX || !from.complete || !(t.res_ready_o >> s & 1)) {
            problem = "a result that nobody waits for";
            return;
        }
        results[from.op].sum = (uint16_t)(t.res_sum_o[s / 2] >> (16 * (s % 2)));
        if (opt.one_by_one)
            seen.slack =
                std::max(seen.slack, (int64_t)(b.cycles - from.taken - ops[from.op].beats()));
        to_read.push_back(s);
    }
    // A result is read like a transmit port does: a beat a cycle, then the slot is free again.
    void read() {
        t.res_clear_valid_i = clear >= 0;
        t.res_clear_slot_i = (uint8_t)clear;
        if (clear >= 0)
            slots[(size_t)clear] = slot();
        clear = -1;
        if (reading < 0 && !to_read.empty()) {
            reading = to_read.front();
            to_read.pop_front();
        }
        t.res_rd_en_i = reading >= 0;
        if (reading >= 0) {
            t.res_rd_slot_i = (uint8_t)reading;
            t.res_rd_beat_i = (uint8_t)(results[slots[(size_t)reading].op].payload.size() / 64);
        }
    }
    void taken_word(const std::vector<operation> &ops) {
        if (reading < 0)
            return;
        const size_t op = slots[(size_t)reading].op, bytes = ops[op].result_bytes();
        std::vector<uint8_t> &to = results[op].payload;
        const uint8_t *from = (const uint8_t *)&t.res_rd_data_o[0];
        to.insert(to.end(), from, from + std::min<size_t>(64, bytes - to.size()));
        if (to.size() == bytes) {
            clear = reading;
            reading = -1;
            finished++;
        }
    }
};

} // namespace merge

#endif
