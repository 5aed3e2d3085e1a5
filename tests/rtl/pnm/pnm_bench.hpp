// What the benches of the near-memory unit share: a scratchpad that grants when it likes, and the
// golden model beside it.
#ifndef MR_TESTS_RTL_PNM_BENCH_HPP
#define MR_TESTS_RTL_PNM_BENCH_HPP

#include <cstring>
#include <vector>

#include "../common/bench.hpp"
#include "desc.hpp"

namespace pnm {

typedef std::vector<uint32_t> Rows; // 16 words a row

struct Golden {
    mr_pnm_chip *chip;
    mr_pnm_result result;
    explicit Golden(mr_pnm_gen gen = MR_PNM_CENTRED)
        : chip(mr_pnm_chip_create(gen, 0, false)), result() {}
    ~Golden() { mr_pnm_chip_destroy(chip); }
    Golden(const Golden &) = delete;
    // One descriptor in group 0.
    void run(const Desc &d) {
        mr_pnm_memory memory = {const_cast<uint8_t *>(d.bytes), 0, sizeof d.bytes};
        mr_pnm_prog progs[MR_PNM_GROUPS] = {{0, 1}, {0, 0}, {0, 0}, {0, 0}};
        if (mr_pnm_chip_run(chip, &memory, progs, &result) != MR_PNM_RAN)
            FAIL("the golden model refuses the descriptor");
    }
    uint32_t *row(unsigned r) { return mr_pnm_chip_row(chip, 0, r); }
};

// The scratchpad's side of a client: grants at random, data the cycle after.
template <class Top>
struct Scratch {
    Rows words = Rows(MR_PNM_SCRATCH_ROWS * 16);
    unsigned stall = 0; // per cent
    bool answer = false;
    unsigned answer_row = 0;
    uint32_t answer_words[16] = {};
    void before(Top *t, Rng &rng) {
        t->rd_rvalid_i = answer;
        for (int w = 0; w < 16; w++)
            t->rd_data_i[w] = answer ? answer_words[w] : (uint32_t)rng.next();
        t->rd_ready_i = !rng.percent(stall);
        t->wr_ready_i = !rng.percent(stall);
    }
    // After the inputs have settled, before the edge.
    void after(Top *t) {
        answer = t->rd_valid_o && t->rd_ready_i;
        if (answer)
            memcpy(answer_words, &words[t->rd_row_o * 16u], sizeof answer_words);
        if (t->wr_valid_o && t->wr_ready_i)
            for (unsigned w = 0; w < 16; w++)
                if (t->wr_be_o >> w & 1)
                    words[t->wr_row_o * 16u + w] = t->wr_data_o[w];
    }
};

} // namespace pnm
#endif
