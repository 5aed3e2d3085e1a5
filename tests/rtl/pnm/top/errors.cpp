// What stops a job: the error, its group and its descriptor are the golden model's; the next job
// runs as if nothing had been; a reset ends one that stands still.
#include "program.hpp"

using namespace pnm;

namespace {

const uint64_t NOWHERE = 64; // no memory there

Desc letter(unsigned to, unsigned sem, unsigned rows = 0, unsigned row = 0, unsigned to_row = 0) {
    Desc d(MR_PNM_DESC_SEND);
    PUT(d, SEND_GROUP, to);
    PUT(d, SEND_SEM, sem);
    PUT(d, SEND_ROWS, rows);
    PUT(d, SEND_ROW, row);
    PUT(d, SEND_TO, to_row);
    return d;
}
Desc loop(uint64_t target, uint64_t count) {
    Desc d(MR_PNM_DESC_LOOP);
    PUT(d, LOOP_TARGET, (int64_t)target);
    PUT(d, LOOP_COUNT, (int64_t)count);
    return d;
}
Desc wait(unsigned sem, unsigned count) {
    Desc d(MR_PNM_DESC_WAIT);
    PUT(d, WAIT_SEM, sem);
    PUT(d, WAIT_COUNT, count);
    return d;
}
Desc small_matvec() {
    Desc d(MR_PNM_DESC_MATVEC);
    PUT(d, MATVEC_LOG_LENGTH, 4);
    PUT(d, MATVEC_KC, 1);
    PUT(d, MATVEC_OUTPUTS, 16);
    PUT(d, MATVEC_VECTORS, 1);
    PUT(d, MATVEC_X, 300);
    PUT(d, MATVEC_X_RUN, 1);
    PUT(d, MATVEC_Y, 400);
    return d;
}

} // namespace

TEST_GROUP(PnmErrors) {
    Rng rng{run_seed() + 2};
    Chip *chip = nullptr;
    Bytes image;
    Program p;
    void setup() override {
        char options[100];
        snprintf(options, sizeof options, "seed=%llu&stall=%llu&latency=20",
                 (unsigned long long)rng.below(1 << 30), (unsigned long long)rng.below(50));
        chip = new Chip(MR_SIM_PNM_PATH, options, options);
        image = Maker(rng, chip->base).image();
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) // something before what goes wrong
            for (unsigned i = 0; i <= g; i++)
                p.add(g, transfer(i ? MR_PNM_DESC_STORE : MR_PNM_DESC_LOAD, 20, 0, out(g)));
    }
    // The next job, and every command to the banks.
    void teardown() override {
        Maker maker(rng, chip->base);
        chip->agree(maker.sound(*chip, 1, image), image);
        chip->finish();
        delete chip;
    }
    uint64_t in() const { return chip->base + INPUT_AT; }
    uint64_t out(unsigned g) const { return chip->base + OUT_AT + (uint64_t)g * OUT_BYTES; }
    void stops(unsigned error) {
        chip->stop_alike(p, image);
        CHECK_EQUAL(error, chip->error);
    }
};

TEST(PnmErrors, UnknownType) {
    p.add(2, Desc(11));
    stops(MR_PNM_ERR_TYPE);
}

TEST(PnmErrors, RowsBeyondTheEnd) {
    p.add(1, transfer(MR_PNM_DESC_LOAD, MR_PNM_SCRATCH_ROWS, 1, in()));
    stops(MR_PNM_ERR_FIELD);
}

TEST(PnmErrors, LoadFromNowhere) {
    p.add(2, transfer(MR_PNM_DESC_LOAD, 20, 0, NOWHERE));
    stops(MR_PNM_ERR_READ);
}

TEST(PnmErrors, LoadAcrossTheEndOfMemory) {
    p.add(2, transfer(MR_PNM_DESC_LOAD, 100, 0, chip->base + BYTES - 64 * 99));
    stops(MR_PNM_ERR_READ);
}

TEST(PnmErrors, WeightsFromNowhere) {
    p.add(3, transfer(MR_PNM_DESC_WLOAD, 20, 0, NOWHERE));
    stops(MR_PNM_ERR_READ);
}

TEST(PnmErrors, StoreToNowhere) {
    p.add(0, transfer(MR_PNM_DESC_STORE, 20, 0, NOWHERE));
    stops(MR_PNM_ERR_WRITE);
}

TEST(PnmErrors, AListThatIsNotThere) {
    p.offset[1] = (uint64_t)1 << 50;
    stops(MR_PNM_ERR_READ);
}

// The bus answers for a burst, so a descriptor before the end may be named.
TEST(PnmErrors, AListAcrossTheEndOfMemory) {
    p.offset[3] = BYTES - 3 * MR_PNM_DESC_BYTES; // of four
    CHECK(chip->run(p, image));
    CHECK_EQUAL((unsigned)MR_PNM_ERR_READ, chip->error);
    CHECK_EQUAL(3u, chip->group);
    CHECK(chip->index <= 3);
}

// The body's second iteration reads beyond the end.
TEST(PnmErrors, AStepOutOfMemory) {
    const uint64_t at = p.list[1].size();
    p.add(1, transfer(MR_PNM_DESC_LOAD, 10, 0, chip->base + BYTES - 64 * 30, 64 * 25));
    p.add(1, loop(at, 5));
    stops(MR_PNM_ERR_READ);
    CHECK_EQUAL(at, chip->index);
}

TEST(PnmErrors, ABarrierWithoutItself) {
    Desc d(MR_PNM_DESC_BARRIER);
    p.add(1, PUT(d, BARRIER_GROUPS, 13));
    stops(MR_PNM_ERR_FIELD);
}

// 65,535 signals that nobody takes fill a semaphore: all four groups send their share, and group 2
// one more. Its sender is named.
TEST(PnmErrors, ASemaphoreTooFullNamesTheSender) {
    uint64_t last = 0;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        Desc d(MR_PNM_DESC_BARRIER);
        const uint64_t at = p.list[g].size();
        p.add(g, letter(3, 5));
        p.add(g, loop(at, g == 0 ? 16383 : 16384));
        p.add(g, PUT(d, BARRIER_GROUPS, 15));
        if (g == 2) {
            p.add(g, letter(3, 5));
            last = at + 3;
        }
    }
    stops(MR_PNM_ERR_SEMAPHORE);
    CHECK_EQUAL(2u, chip->group);
    CHECK_EQUAL(last, chip->index);
}

// A transfer that fails while a descriptor after it has begun is still the one that is named.
TEST(PnmErrors, ALoadThatFailsUnderAMatvecIsTheOneNamed) {
    Desc d = small_matvec();
    const uint64_t at = p.list[2].size();
    p.add(2, transfer(MR_PNM_DESC_LOAD, 200, 0, NOWHERE));
    p.add(2, PUT(d, MATVEC_OVERLAP, 1));
    stops(MR_PNM_ERR_READ);
    CHECK_EQUAL(at, chip->index);
}

// Rows sent to the own group arrive as they were, though they lie on those they came from.
TEST(PnmErrors, RowsSentToOneselfMayMeet) {
    for (int n = 0; n < 12; n++) {
        Maker maker(rng, chip->base);
        image = maker.image();
        Program one;
        for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
            const unsigned rows = (unsigned)rng.below(60), row = (unsigned)rng.below(64),
                           to = (unsigned)rng.below(64);
            one.add(g, transfer(MR_PNM_DESC_LOAD, 128, 0, in()));
            one.add(g, letter(g, 1, rows, row, to));
            one.add(g, wait(1, 1));
            one.add(g, transfer(MR_PNM_DESC_STORE, 128, 0, out(g)));
        }
        chip->agree(one, image);
    }
}

TEST(PnmErrors, WaitingForEverIsEndedByReset) {
    p.add(2, wait(1, 1));
    CHECK_FALSE(chip->run(p, image, 20000));
    chip->reset();
}

TEST(PnmErrors, ABarrierNobodyElseComesToIsEndedByReset) {
    Desc d(MR_PNM_DESC_BARRIER);
    p.add(1, PUT(d, BARRIER_GROUPS, 3));
    CHECK_FALSE(chip->run(p, image, 20000));
    chip->reset();
}

// A matrix in flight when the reset comes: its products and requests are forgotten.
TEST(PnmErrors, AJobInFullSwingIsEndedByReset) {
    Desc d = small_matvec();
    PUT(d, MATVEC_OUTPUTS, 256);
    PUT(d, MATVEC_KC, 64);
    PUT(d, MATVEC_X, 0);
    PUT(d, MATVEC_X_RUN, 64);
    PUT(d, MATVEC_VECTORS, 8);
    PUT(d, MATVEC_Y, 2000);
    PUT(d, MATVEC_Y_STRIDE, 16);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        p.add(g, d);
    CHECK_FALSE(chip->run(p, image, 3000 + rng.below(3000)));
    chip->reset();
}

// Field by field, to the edge of its range and over it: what the unit takes and what it refuses.
TEST(PnmErrors, EveryFieldAtItsLimits) {
    struct Field {
        unsigned type, lsb, bits;
    };
#define F(desc, name)                                                                              \
    { MR_PNM_DESC_##desc, MR_PNM_D_##desc##_##name##_LSB, MR_PNM_D_##desc##_##name##_BITS }
    static const Field fields[] = {F(LOAD, ROWS),
                                   F(LOAD, ROW),
                                   F(LOAD, ADDR),
                                   F(LOAD, STEP),
                                   F(STORE, ROWS),
                                   F(STORE, ROW),
                                   F(STORE, ADDR),
                                   F(STORE, STEP),
                                   F(WLOAD, COLUMNS),
                                   F(WLOAD, COL),
                                   F(WLOAD, ADDR),
                                   F(WLOAD, STEP),
                                   F(MATVEC, BIAS),
                                   F(MATVEC, ACCUM),
                                   F(MATVEC, USE_WREG),
                                   F(MATVEC, MODE),
                                   F(MATVEC, LOG_LENGTH),
                                   F(MATVEC, WEXP),
                                   F(MATVEC, COL),
                                   F(MATVEC, KC),
                                   F(MATVEC, OUTPUTS),
                                   F(MATVEC, VECTORS),
                                   F(MATVEC, X),
                                   F(MATVEC, X_STRIDE),
                                   F(MATVEC, X_RUN),
                                   F(MATVEC, X_JUMP),
                                   F(MATVEC, Y),
                                   F(MATVEC, Y_STRIDE),
                                   F(MATVEC, BIAS_ROW),
                                   F(MATVEC, OLD),
                                   F(MATVEC, OLD_STRIDE),
                                   F(WSTORE, TRANSPOSED),
                                   F(WSTORE, WREG),
                                   F(WSTORE, COL),
                                   F(WSTORE, KC),
                                   F(WSTORE, LENGTH),
                                   F(WSTORE, VECTORS),
                                   F(WSTORE, X),
                                   F(WSTORE, X_STRIDE),
                                   F(WSTORE, FIRST),
                                   F(VEC, FN),
                                   F(VEC, MUL),
                                   F(VEC, ADD),
                                   F(VEC, REDUCE),
                                   F(VEC, COUNT),
                                   F(VEC, WIDTH),
                                   F(VEC, D),
                                   F(VEC, D_STRIDE),
                                   F(VEC, A),
                                   F(VEC, A_STRIDE),
                                   F(VEC, B),
                                   F(VEC, B_STRIDE),
                                   F(VEC, C),
                                   F(VEC, C_STRIDE),
                                   F(SEND, GROUP),
                                   F(SEND, SEM),
                                   F(SEND, ROWS),
                                   F(SEND, ROW),
                                   F(SEND, TO),
                                   F(WAIT, SEM),
                                   F(WAIT, COUNT),
                                   F(BARRIER, GROUPS),
                                   F(LOOP, TARGET),
                                   F(LOOP, COUNT)};
#undef F
    static const int64_t edges[] = {0,    1,    2,    3,     4,     8,     15,    16,    17,
                                    63,   64,   65,   255,   256,   257,   1023,  1024,  1025,
                                    4079, 4080, 4095, 4096,  4097,  16368, 16383, 16384, -1,
                                    -2,   -16,  -64,  -4096, 32767, 32768};
    unsigned ran = 0, refused = 0;
    const int each = getenv("MR_FULL") ? 200 : 8;
    for (const Field &f : fields)
        for (int n = 0; n < each; n++) {
            Desc d(f.type);
            switch (f.type) {
            case MR_PNM_DESC_MATVEC:
                d = small_matvec();
                PUT(d, MATVEC_BIAS, rng.below(2));
                PUT(d, MATVEC_ACCUM, rng.below(2));
                PUT(d, MATVEC_KC, 1 + rng.below(20));
                PUT(d, MATVEC_VECTORS, 1 + rng.below(3));
                PUT(d, MATVEC_X_RUN, 1 + rng.below(20));
                PUT(d, MATVEC_Y_STRIDE, 1);
                break;
            case MR_PNM_DESC_WSTORE:
                PUT(d, WSTORE_KC, 2);
                PUT(d, WSTORE_LENGTH, 32);
                PUT(d, WSTORE_VECTORS, 1 + rng.below(5));
                PUT(d, WSTORE_TRANSPOSED, rng.below(2));
                break;
            case MR_PNM_DESC_VEC:
                PUT(d, VEC_COUNT, 1 + rng.below(20));
                PUT(d, VEC_WIDTH, 1 + rng.below(3));
                PUT(d, VEC_MUL, rng.below(4));
                PUT(d, VEC_ADD, rng.below(4));
                PUT(d, VEC_REDUCE, rng.below(3));
                PUT(d, VEC_D, 1000);
                PUT(d, VEC_D_STRIDE, 3);
                break;
            case MR_PNM_DESC_WAIT:
                PUT(d, WAIT_COUNT, 1);
                break;
            case MR_PNM_DESC_BARRIER:
                PUT(d, BARRIER_GROUPS, 1);
                break;
            case MR_PNM_DESC_LOOP:
                PUT(d, LOOP_COUNT, 1 + rng.below(3));
                break;
            case MR_PNM_DESC_SEND:
                break;
            default:
                d = transfer(f.type, 1 + rng.below(5), rng.below(100), in());
            }
            const int64_t is = (int64_t)d.get(f.lsb, f.bits);
            d.put(f.lsb, f.bits,
                  rng.percent(30) ? is + edges[rng.below(sizeof edges / sizeof *edges)]
                                  : edges[rng.below(sizeof edges / sizeof *edges)]);
            // what would take long to do is not what is asked here
            const uint64_t a = d.get(32, 16), b = d.get(48, 16), c = d.get(64, 16),
                           e = d.get(80, 16);
            if ((f.type == MR_PNM_DESC_VEC && a * b > 4096) ||
                (f.type == MR_PNM_DESC_MATVEC && b * c * e > 40000) ||
                (f.type == MR_PNM_DESC_WSTORE && c * e > 40000) ||
                (f.type == MR_PNM_DESC_LOOP && d.get(64, 32) > 5))
                continue;
            Program one;
            const unsigned g = (unsigned)rng.below(MR_PNM_GROUPS);
            for (unsigned i = (unsigned)rng.below(3); i > 0; i--)
                one.add(g, letter(g, 0)); // which a WAIT may take
            one.add(g, d);
            if (!chip->end_alike(one, image, 300000))
                continue;
            ran += chip->error == 0;
            refused += chip->error != 0;
        }
    printf("%u taken, %u refused ", ran, refused);
    CHECK(ran > 50 && refused > 50);
}
