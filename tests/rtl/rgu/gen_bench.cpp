// How fast the tile generator simulates: rgu_tile alone, its tables and its write port played here.
// Weights a second of CPU time on one core; the lines that leave are added up so that nothing is
// skipped.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "Vrgu_tile.h"
#include "models/golden/rgu.h"
#include "verilated.h"

static double seconds() {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// bits [lsb, lsb + width) of a wide port
template <class Port>
static void put(Port &port, unsigned lsb, unsigned width, uint32_t value) {
    uint64_t mask = ((1ull << width) - 1) << (lsb % 32), v = (uint64_t)value << (lsb % 32) & mask;
    port[lsb / 32] = (uint32_t)((port[lsb / 32] & ~mask) | v);
    if (lsb % 32 + width > 32)
        port[lsb / 32 + 1] = (uint32_t)((port[lsb / 32 + 1] & ~(mask >> 32)) | v >> 32);
}

static void run(int n, int format, unsigned chunks) {
    VerilatedContext ctx;
    Vrgu_tile t(&ctx);
    unsigned half = 1u << (n - 1), d = 1u << n;
    std::vector<int32_t> r(half), s(half);
    std::vector<uint8_t> record(mr_rgu_record_bytes(n), 0);
    for (size_t i = 8; i < record.size(); i++)
        record[i] = (uint8_t)(i * 37 + i / 5);
    record[2] = 0x40; // g = 2^22, even
    mr_rgu_record rec;
    mr_rgu_unpack(record.data(), n, &rec);
    mr_golden_tables(n, &rec, r.data(), s.data());

    t.n10_i = n == 10;
    t.terms_i = 1;
    t.has_even_i = 1;
    t.format_i = (uint8_t)format;
    t.scale_i = 0x3F800000;
    t.row1_i = d;
    t.col1_i = chunks * d;
    t.stride_i = chunks * d * (unsigned)mr_format_bytes(format);
    t.wr_cmd_ready_i = 1;
    t.wr_ready_i = 1;
    unsigned chunk = 0;
    uint64_t cycles = 0, items = 0, sum = 0;
    double start = seconds();
    for (int phase = 0; phase < 4 || !t.done_o; cycles++) {
        // outputs have settled: what the table memory answers after this edge
        bool read = t.rd_en_o, pop = t.tab_pop_o;
        uint32_t ra = (uint32_t)(t.r_addr_o & 15) * 32, sa = (uint32_t)(t.s_addr_o & 15) * 32,
                 x = t.s_xor_o;
        items += t.items_o;
        if (t.wr_valid_o)
            sum += t.wr_data_o[0];
        t.clk_i = 1;
        t.eval();
        t.rst_ni = phase > 1;
        t.start_i = phase == 2;
        if (phase < 4)
            phase++;
        if (read)
            for (unsigned l = 0; l < 32; l++) {
                put(t.r_data_i, l * 22, 22, (uint32_t)r[ra + l]);
                put(t.s_data_i, l * 20, 20, (uint32_t)s[sa + (l ^ x)]);
            }
        chunk += pop;
        t.tab_valid_i = phase >= 4 && chunk < chunks;
        t.tab_col_i = (uint16_t)chunk;
        t.tab_last_i = chunk == chunks - 1;
        t.tab_row_last_i = t.tab_last_i;
        t.clk_i = 0;
        t.eval();
    }
    double took = seconds() - start;
    printf("rgu_tile alone, n %2d, %-4s %7llu cycles %6.2f weights/cycle %5.0f kcycle/s %5.1f "
           "Mweight/s (%llx)\n",
           n, format == MR_FMT_BF16 ? "bf16" : "fp8", (unsigned long long)cycles,
           (double)items / (double)cycles, (double)cycles / took / 1e3, (double)items / took / 1e6,
           (unsigned long long)sum);
}

int main() {
    run(8, MR_FMT_BF16, 64);
    run(10, MR_FMT_BF16, 4);
    run(8, MR_FMT_FP8E4M3, 64);
    run(10, MR_FMT_FP8E4M3, 4);
    return 0;
}
