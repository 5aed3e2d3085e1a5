/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise products through a unit's sums are those of the multiplier, operands of every class.
 */
#include "tests/unit/pnm_host/pnm_host.h"

extern "C" {
#include "host/pnm/energy.h"
#include "host/pnm/products.h"
#include "models/golden/pnm_mult.h"
}

TEST_GROUP(PnmProducts){};

TEST(PnmProducts, EveryClassOfOperandsInEveryMode) {
    auto rng = pnm_rng("products");
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    mr_pnm_exec *e;
    o.chips = 1;
    CHECK_GOOD(mr_pnm_exec_open("golden", &o, &e));
    for (uint8_t kind = 0; kind < 3; kind++)
        for (uint8_t log : {2, 4, 8}) {
            size_t count = 1 + rng() % 9000;
            std::vector<uint16_t> a(count), b(count);
            for (auto *v : {&a, &b})
                for (auto &code : *v) {
                    code = uint16_t(rng());
                    if (rng() % 40 == 0)
                        code = uint16_t((code & 0x8000) | (rng() % 2 ? 0x7F80 : 0) | rng() % 3);
                }
            for (size_t i = 0; i < count; i += 7) /* products about 2^-126 */
                if (unsigned ea = a[i] >> 7 & 0xFF; ea > 1 && ea < 127)
                    b[i] = uint16_t((b[i] & 0x807F) | (127 - ea + rng() % 2) << 7);
            std::vector<uint32_t> out(count);
            size_t by_host = 0;
            mr_pnm_counters counters;
            CHECK_GOOD(mr_pnm_products(e, {kind, log}, a.data(), b.data(), count, out.data(),
                                       &by_host, &counters));
            CHECK(counters.products > 0);
            CHECK_EQUAL(0u, counters.status & MR_PNM_RANGE);
            mr_pnm_mult_mode mode = mr_pnm_mult_default();
            mode.kind = mr_pnm_kind(kind);
            mode.gen = kind == 0 ? MR_PNM_CENTRED : MR_PNM_UNARY;
            mode.stream = 1u << log;
            for (size_t i = 0; i < count; i++)
                if (mr_pnm_mult(&mode, a[i], b[i], nullptr) != out[i]) {
                    char text[96];
                    snprintf(text, sizeof text, "kind %d L %u: %04x * %04x = %08x, not %08x", kind,
                             1u << log, a[i], b[i], out[i],
                             mr_pnm_mult(&mode, a[i], b[i], nullptr));
                    FAIL(text);
                }
        }
    mr_pnm_exec_close(e);
}

/* The tally of a program with a loop, counted by hand. */
TEST(PnmProducts, TallyCountsLoopsAsOftenAsTheyRun) {
    mr_pnm_builder *b;
    mr_pnm_program *p;
    uint16_t row, col;
    uint64_t addr;
    CHECK_GOOD(mr_pnm_builder_create(1, false, &b));
    mr_pnm_b_rows(b, 0, 40, "rows", &row);
    mr_pnm_b_columns(b, 0, 0, 64, "w", &col);
    mr_pnm_b_memory(b, 128 * 64, "m", &addr);
    mr_pnm_b_wload(b, 0, col, 64, addr, 0);
    uint32_t body = mr_pnm_b_here(b, 0);
    mr_pnm_b_load(b, 0, row, 6, addr, 64);
    mr_pnm_matvec m = {};
    m.mode = {0, 4}, m.wexp = 127, m.col = col, m.kc = 2, m.outputs = 32, m.vectors = 3;
    m.x = row, m.x_stride = 2, m.y = uint16_t(row + 10), m.y_stride = 2;
    mr_pnm_b_matvec(b, 0, &m);
    mr_pnm_b_loop(b, 0, body, 5);
    m.mode = {2, 2}, m.vectors = 1;
    mr_pnm_b_matvec(b, 0, &m);
    CHECK_GOOD(mr_pnm_builder_finish(b, &p));
    mr_pnm_builder_destroy(b);
    mr_pnm_tally t;
    mr_pnm_program_tally(p, &t);
    CHECK_EQUAL(5u * 32 * 32 * 3, t.hybrid_products);
    CHECK_EQUAL(16 * t.hybrid_products, t.stream_bits);
    CHECK_EQUAL(32u * 32, t.exact_products);
    CHECK_EQUAL(64u * 128 + 5 * 6 * 64 + (1 + 5 * 3 + 1) * 64, t.link_bytes);
    CHECK_EQUAL(5u * 16 + 16, t.dram_rd);
    CHECK_EQUAL(64u, t.dram_wr);
    CHECK_EQUAL(4u + 5 + 1, t.dram_act);
    CHECK_EQUAL(5u * (6 + 6 + 6) + 2 + 2, t.scratch_rows);
    mr_pnm_energy energy;
    mr_pnm_energy_of(&t, nullptr, &energy);
    DOUBLES_EQUAL(energy.total,
                  energy.dram + energy.operands + energy.multiply + energy.accumulate +
                      energy.vector + energy.scratch + energy.link,
                  1e-18);
    // 256 columns and vectors of 64 products; 96 columns copied
    DOUBLES_EQUAL((256 * 256 * 0.31 + (256 + 96) * 1024 * 0.05) * 1e-12, energy.operands, 1e-18);
    DOUBLES_EQUAL(t.exact_products * 0.2e-12 + t.hybrid_products * (0.06 + 16 * 0.018) * 1e-12,
                  energy.multiply, 1e-18);
    mr_pnm_program_destroy(p);
}
