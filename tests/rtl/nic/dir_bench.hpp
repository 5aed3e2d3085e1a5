// The directory in RTL, and the descriptors that host/nic/tables.c makes for it.
#ifndef MR_TESTS_RTL_NIC_DIR_BENCH_HPP
#define MR_TESTS_RTL_NIC_DIR_BENCH_HPP

#include "tests/rtl/common/bench.hpp"

#include "Vnic_dir.h"
#include "host/nic/tables.h"

#include <cstring>
#include <deque>
#include <vector>

const unsigned BUCKET_BITS = 17; // as in nic_top

struct Found {
    bool hit;
    unsigned owner;
    uint32_t named, epoch, bytes, page;
    bool operator==(const Found &o) const {
        return hit == o.hit && (!hit || (owner == o.owner && named == o.named && epoch == o.epoch &&
                                         bytes == o.bytes && page == o.page));
    }
};

inline Found found(const mr_nic_dir_entry &e) {
    return {true, e.owner, e.named, e.epoch, e.bytes, e.page};
}

struct DirBench : Bench<Vnic_dir> {
    explicit DirBench(uint64_t noise) : Bench(noise) {
        top->upd_fire_i = top->lk_valid_i = 0;
        top->lk_key_i = 0;
        memset(&top->upd_desc_i[0], 0, 64);
        reset();
    }
    // One cycle; answers go to `answers`.
    void cycle() {
        settle();
        const bool taken = top->lk_valid_i && top->lk_ready_o;
        if (taken)
            asked.push_back(cycles);
        tick();
        settle();
        if (top->rsp_valid_o && !asked.empty()) {
            answers.push_back(answer());
            const uint64_t took = cycles - asked.front();
            late |= latency && took != latency;
            latency = took;
            asked.pop_front();
        } else if (top->rsp_valid_o)
            broken = true;
        broken |= fired();
        accepted = taken;
    }
    // A single look-up, nothing else under way.
    Found look_up(uint64_t key) {
        top->lk_key_i = key;
        top->lk_valid_i = 1;
        do
            cycle();
        while (!accepted);
        top->lk_valid_i = 0;
        while (answers.empty())
            cycle();
        const Found f = answers.front();
        answers.pop_front();
        return f;
    }
    void execute(const uint8_t *desc) {
        settle();
        while (!top->upd_ready_o) {
            cycle();
            settle();
        }
        memcpy(&top->upd_desc_i[0], desc, 64);
        top->upd_fire_i = 1;
        cycle();
        top->upd_fire_i = 0;
    }
    static uint64_t key(unsigned job, unsigned layer, uint32_t block) {
        return (uint64_t)job << 48 | (uint64_t)layer << 32 | block;
    }
    std::deque<Found> answers;
    std::deque<uint64_t> asked; // in these cycles
    uint64_t latency = 0;       // of the last answer; `late`: not of all
    bool late = false, broken = false, accepted = false;

private:
    // dir_t: {hit, owner5, named32, epoch32, bytes32, page24}
    Found answer() const {
        auto bits = [&](unsigned lsb, unsigned width) {
            uint64_t v = 0;
            for (unsigned i = 0; i < width; i++)
                v |= (uint64_t)(top->rsp_o[(lsb + i) / 32] >> (lsb + i) % 32 & 1) << i;
            return (uint32_t)v;
        };
        return {bits(125, 1) != 0, bits(120, 5), bits(88, 32),
                bits(56, 32),      bits(24, 32), bits(0, 24)};
    }
};

#endif
