/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices times vectors of any shape against the sum in float64, on the golden model. */
#include "tests/unit/pnm_host/pnm_host.h"

extern "C" {
#include "models/golden/pnm_mult.h"
}

/* A chip's tables take a while to make: one for all tests, and one with float32 weights. */
static mr_pnm_exec *chips[2];
TEST_GROUP(PnmGemv){};

struct Problem {
    size_t m, k, n;
    std::vector<float> w, x;
    Problem(std::mt19937_64 &rng, size_t m_, size_t k_, size_t n_, int spread)
        : m(m_), k(k_), n(n_), w(m_ * k_), x(n_ * k_) {
        std::normal_distribution<float> normal;
        std::uniform_int_distribution<int> power(-spread, spread);
        for (auto *v : {&w, &x})
            for (auto &e : *v)
                e = rng() % 17 ? std::ldexp(normal(rng), power(rng)) : 0.0f;
    }
};

static std::vector<float> times(const Problem &p, mr_pnm_mode mode, bool wide = false,
                                unsigned groups = 4, mr_pnm_counters *counted = nullptr) {
    mr_pnm_gemv g = {"W", p.w.data(), p.x.data(), p.m, p.k, p.n, mode, groups, 0, wide};
    mr_pnm_gemv_plan *plan = nullptr;
    mr_pnm_exec *&exec = chips[wide];
    mr_pnm_exec_options options = mr_pnm_exec_defaults();
    mr_pnm_counters counters;
    options.wide = wide;
    options.chips = 1;
    CHECK_GOOD(mr_pnm_gemv_plan_create(&g, &plan));
    if (!exec)
        CHECK_GOOD(mr_pnm_exec_open("golden", &options, &exec));
    mr_pnm_program *program = mr_pnm_gemv_program(plan);
    CHECK_GOOD(mr_pnm_exec_run(exec, &program, 1, &counters));
    std::vector<float> y(p.m * p.n);
    mr_pnm_gemv_results(plan, y.data());
    mr_pnm_gemv_plan_destroy(plan);
    if (counted)
        *counted = counters;
    return y;
}

/*
 * Exact products: what is lost is less than 2^-33 of the largest weight's power times the largest
 * activation's in each product (the guard bits), and half a unit of float32 in a sum of 4,096.
 */
static void check_exact(const Problem &p, const std::vector<float> &y) {
    for (size_t n = 0; n < p.n; n++) {
        double xmax = 0, wmax = 0;
        for (size_t k = 0; k < p.k; k++)
            xmax = std::fmax(xmax, std::fabs(bf16_of(p.x[n * p.k + k])));
        for (float v : p.w)
            wmax = std::fmax(wmax, std::fabs(bf16_of(v)));
        for (size_t m = 0; m < p.m; m++) {
            double sum = 0, size = 0;
            for (size_t k = 0; k < p.k; k++) {
                double a = double(bf16_of(p.w[m * p.k + k])) * double(bf16_of(p.x[n * p.k + k]));
                sum += a;
                size += std::fabs(a);
            }
            double parts = std::ceil(double(p.k) / 4096);
            double bound =
                double(p.k) * std::ldexp(xmax * wmax, -33) + parts * std::ldexp(size, -24) + 1e-44;
            double got = y[n * p.m + m];
            if (!(std::fabs(got - sum) <= bound))
                FAIL(("m " + std::to_string(m) + " n " + std::to_string(n) + " of " +
                      std::to_string(p.m) + "x" + std::to_string(p.k) + "x" + std::to_string(p.n) +
                      ": " + std::to_string(got) + " for " + std::to_string(sum))
                         .c_str());
        }
    }
}

static const mr_pnm_mode exact = {2, 2};

TEST(PnmGemv, AnyShapeEqualsTheSumInFloat64) {
    auto rng = pnm_rng("shapes");
    for (int i = 0; i < 30; i++) {
        size_t m = 1 + rng() % (i % 3 ? 90 : 9), k = 1 + rng() % (i % 5 ? 300 : 20);
        size_t n = 1 + rng() % (i % 4 ? 12 : 150);
        Problem p(rng, m, k, n, i % 2 ? 0 : 12);
        check_exact(p, times(p, exact, false, 1 + unsigned(rng() % 4)));
    }
}

TEST(PnmGemv, MoreInputsThanOneSumAndThanOneBand) {
    auto rng = pnm_rng("long");
    for (size_t k : {4097, 8200, 65537}) { /* two parts, three, a second chunk */
        Problem p(rng, 17, k, 9, 0);
        check_exact(p, times(p, exact));
    }
    Problem tall(rng, 4 * 2048 + 80, 40, 3, 0); /* a second round of outputs */
    check_exact(tall, times(tall, exact));
    Problem wide_bank(rng, 300, 4096, 2, 0); /* more weights than a round's banks hold, one group */
    check_exact(wide_bank, times(wide_bank, exact, false, 1));
}

/* The definition of the hybrid product, element by element. */
TEST(PnmGemv, HybridProductsAreThoseOfTheMultiplier) {
    auto rng = pnm_rng("hybrid");
    for (uint8_t log = 2; log <= 8; log++)
        for (uint8_t kind = 0; kind < 2; kind++) {
            Problem p(rng, 5, 1, 7, 3); /* one product a result: the sum adds nothing */
            auto y = times(p, {kind, log});
            mr_pnm_mult_mode mode = mr_pnm_mult_default();
            mode.kind = mr_pnm_kind(kind);
            mode.gen = kind ? MR_PNM_UNARY : MR_PNM_CENTRED;
            mode.stream = 1u << log;
            for (size_t i = 0; i < p.n; i++)
                for (size_t j = 0; j < p.m; j++) {
                    float w = bf16_of(p.w[j]), x = bf16_of(p.x[i]), want;
                    uint32_t a, b;
                    std::memcpy(&a, &w, 4);
                    std::memcpy(&b, &x, 4);
                    uint32_t bits =
                        mr_pnm_mult(&mode, uint16_t(a >> 16), uint16_t(b >> 16), nullptr);
                    std::memcpy(&want, &bits, 4);
                    CHECK(want == y[i * p.m + j]); /* -0 becomes +0 in a sum */
                }
        }
}

TEST(PnmGemv, WideIsFloat32WithOneRounding) {
    auto rng = pnm_rng("wide");
    Problem p(rng, 33, 70, 5, 5);
    auto y = times(p, exact, true);
    for (size_t n = 0; n < p.n; n++)
        for (size_t m = 0; m < p.m; m++) {
            double sum = 0;
            for (size_t k = 0; k < p.k; k++)
                sum += double(p.w[m * p.k + k]) * double(p.x[n * p.k + k]);
            CHECK_EQUAL(float(sum), y[n * p.m + m]);
        }
}

TEST(PnmGemv, ProductsAreCountedPaddingIncluded) {
    auto rng = pnm_rng("count");
    Problem p(rng, 17, 33, 3, 0);
    mr_pnm_counters counters;
    times(p, exact, false, 1, &counters);
    CHECK_EQUAL(32u * 48u * 3u, counters.products);
    CHECK_FALSE(counters.hardware);
}

TEST(PnmGemv, OddVectorsAndRefusedWeights) {
    auto rng = pnm_rng("odd");
    Problem p(rng, 4, 40, 2, 0);
    p.x[3] = INFINITY;
    p.w[3] = 1.0f, p.w[p.k + 3] = 0.0f;
    mr_pnm_counters counters;
    auto y = times(p, exact, false, 4, &counters);
    CHECK(std::isinf(y[0]));
    CHECK(std::isnan(y[1])); /* infinity times zero */
    CHECK(std::isfinite(y[4]));
    CHECK(counters.status & MR_PNM_NONFINITE);
    struct {
        float value;
        const char *words;
    } bad[] = {{NAN, "[2, 7] is NaN"},
               {-INFINITY, "[2, 7] is infinite"},
               {3.4e38f, "[2, 7] is too large for bf16"}};
    for (const auto &b : bad) {
        p.w[2 * p.k + 7] = b.value;
        mr_pnm_gemv g = {"w.npy", p.w.data(), p.x.data(), p.m, p.k, p.n, exact, 4, 0, false};
        mr_pnm_gemv_plan *plan;
        CHECK_BAD(MR_BAD_FORMAT, b.words, mr_pnm_gemv_plan_create(&g, &plan));
        STRCMP_CONTAINS("w.npy", mr_last_error());
    }
    mr_pnm_gemv g = {"w.npy", p.w.data(), p.x.data(), p.m, p.k, p.n, exact, 5, 0, false};
    mr_pnm_gemv_plan *plan;
    p.w[2 * p.k + 7] = 0;
    CHECK_BAD(MR_INVALID_ARGUMENT, "5 groups", mr_pnm_gemv_plan_create(&g, &plan));
}
