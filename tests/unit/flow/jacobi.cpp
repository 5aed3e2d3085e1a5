/*
 * Jacobi's iteration beside the serial order and the float64 definition, on the committed
 * digits-tar.
 *
 * Tolerance: float32 on the wide unit, some hundred dependent roundings of 2^-24 through four
 * blocks whose scales stay near one; 1e-4 is what tests/unit/flow/flow_test.cpp has for such flows.
 */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "host/flow/data.h"
#include "host/flow/jacobi.h"
#include "host/flow/reference.h"

#include <CppUTest/TestHarness.h>

namespace {

const size_t IMAGES = 3;

struct Bench {
    mr_flow *f = nullptr;
    mr_pnm_exec *exec = nullptr;
    std::vector<float> z;
    Bench(const char *name, bool wide) {
        const char *zoo = getenv("MILLRACE_ZOO");
        std::string at = std::string(zoo ? zoo : "models/zoo") + "/flows/" + name + ".safetensors";
        mr_pnm_exec_options o = mr_pnm_exec_defaults();
        o.chips = 2; /* three images on two chips: unequal shares */
        o.wide = wide;
        if (mr_flow_open(at.c_str(), &f) != MR_OK || mr_pnm_exec_open("golden", &o, &exec) != MR_OK)
            FAIL(mr_last_error());
        z.resize(IMAGES * mr_flow_pixels(f));
        mr_flow_normals(7, z.size(), 0.8, z.data());
    }
    Bench(const Bench &) = delete;
    ~Bench() {
        mr_pnm_exec_close(exec);
        mr_flow_close(f);
    }

    std::vector<float> jacobi(mr_flow_jacobi_options o, mr_flow_jacobi_report *r) const {
        std::vector<float> x(z.size());
        o.groups = MR_PNM_GROUPS;
        if (o.wide)
            o.mode = {2, 2};
        if (mr_flow_jacobi(f, exec, &o, IMAGES, z.data(), x.data(), r) != MR_OK)
            FAIL(mr_last_error());
        return x;
    }
};

double apart(const std::vector<float> &a, const std::vector<float> &b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); i++)
        worst = std::fmax(worst, std::fabs((double)a[i] - (double)b[i]));
    return worst;
}

} // namespace

TEST_GROUP(Jacobi){};

TEST(Jacobi, EndsWhereTheDefinitionDoes) {
    Bench b("digits-tar", true);
    size_t pixels = mr_flow_pixels(b.f);
    std::vector<float> want(b.z.size());
    for (size_t i = 0; i < IMAGES; i++) {
        std::vector<double> z(b.z.begin() + (long)(i * pixels),
                              b.z.begin() + (long)((i + 1) * pixels)),
            x(pixels);
        LONGS_EQUAL(MR_OK, mr_flow_reference_inverse(b.f, z.data(), x.data()));
        std::copy(x.begin(), x.end(), want.begin() + (long)(i * pixels));
    }
    mr_flow_jacobi_options o = {};
    o.wide = true;
    mr_flow_jacobi_report r;
    std::vector<float> exact = b.jacobi(o, &r);
    CHECK(apart(exact, want) < 1e-4);
    uint64_t all = r.counters.products;
    for (size_t i = 0; i < r.blocks; i++)
        CHECK(r.iterations[i] > 1 && r.iterations[i] <= b.f->tokens);
    /* with one iteration more than there are tokens every block ends by itself: no bit changes */
    o.most = b.f->tokens + 1;
    CHECK(b.jacobi(o, &r) == exact);
    for (size_t i = 0; i < r.blocks; i++)
        CHECK(r.change[i] == 0);
    /* to a tolerance: less work, and as near as it says, by some steps more */
    o.tolerance = 1e-3;
    std::vector<float> near = b.jacobi(o, &r);
    CHECK(apart(near, want) < 0.02);
    CHECK(r.counters.products < all);
    /* and the iteration is needed */
    o.most = 1;
    CHECK(apart(b.jacobi(o, &r), want) > 0.1);
    for (size_t i = 0; i < r.blocks; i++)
        LONGS_EQUAL(1, r.iterations[i]);
}

/* Token t of a block's order is right after t + 1 iterations: token 0 after one, whatever follows.
 */
TEST(Jacobi, TokensComeRightInTheirOrder) {
    Bench b("digits-tar", true);
    size_t c = b.f->channels, tokens = b.f->tokens, blocks = b.f->blocks;
    b.f->blocks = 1; /* block 0 alone, which is not reversed */
    mr_flow_jacobi_options o = {};
    o.wide = true;
    mr_flow_jacobi_report r;
    const std::vector<float> want = b.jacobi(o, &r);
    for (size_t k = 1; k <= 5; k += 2) {
        o.most = k;
        std::vector<float> x = b.jacobi(o, &r);
        bool rest = true;
        for (size_t i = 0; i < IMAGES; i++) {
            const float *got = &x[i * tokens * c], *right = &want[i * tokens * c];
            CHECK(std::equal(got, got + k * c, right));
            rest &= std::equal(got + k * c, got + tokens * c, right + (long)(k * c));
        }
        CHECK(k > 1 || !rest);
    }
    b.f->blocks = blocks;
}

TEST(Jacobi, HybridProductsToo) {
    Bench b("digits-tar", false);
    mr_flow_jacobi_options o = {};
    o.mode = {0, 4};
    mr_flow_jacobi_report r;
    std::vector<float> x = b.jacobi(o, &r);
    mr_flow_plan_options p = {};
    p.inverse = true;
    p.images = IMAGES;
    p.groups = MR_PNM_GROUPS;
    p.mode = o.mode;
    mr_flow_plan *plan;
    LONGS_EQUAL(MR_OK, mr_flow_plan_create(b.f, &p, &plan));
    mr_flow_plan_put(plan, b.z.data());
    mr_pnm_program *program = mr_flow_plan_program(plan);
    mr_pnm_counters counters;
    LONGS_EQUAL(MR_OK, mr_pnm_exec_run(b.exec, &program, 1, &counters));
    std::vector<float> serial(x.size());
    mr_flow_plan_get(plan, serial.data(), nullptr);
    mr_flow_plan_destroy(plan);
    /* the two orders add up in other trees, and what differs in the last bit of float32 may be
     * rounded to another bf16 */
    CHECK(apart(x, serial) < 0.05);
}

TEST(Jacobi, CouplingsHaveNoOrder) {
    Bench b("digits-coupling", true);
    mr_flow_jacobi_options o = {};
    o.wide = true;
    o.groups = 1;
    mr_flow_jacobi_report r;
    std::vector<float> x(b.z.size());
    LONGS_EQUAL(MR_UNSUPPORTED, mr_flow_jacobi(b.f, b.exec, &o, IMAGES, b.z.data(), x.data(), &r));
}
