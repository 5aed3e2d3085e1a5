/*
 * The committed flows against the numbers beside them (models/zoo/flows/vectors: x, and z, the
 * logarithm of the determinant and bits per dimension of another program's float64).
 *
 * Tolerances, in units of u = 2^-24 (float32) or 2^-53 (float64). How much z moves when every x
 * (of size one) moves by u is measured with the definition itself: `gain` u. A rounding anywhere on
 * the way is carried to z as a change of x is, and there are some hundred dependent roundings
 * between (8 couplings of 4 layers, or 4 blocks of 2 layers of 6, a few vector operations each),
 * most of them in the networks, behind fewer of the factors exp(s): a random walk of them with a
 * margin of three, 30 gain u. The determinant's logarithm is compared per element at 100 u. Bits
 * per dimension follow from both, sum |z dz| / N and the determinant, over ln 2; mr_flow_bpd reads
 * z as float32.
 */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "host/flow/data.h"
#include "host/flow/plan.h"
#include "host/flow/reference.h"
#include "host/io/safetensors.h"
#include "host/pnm/exec.h"

#include <CppUTest/TestHarness.h>

namespace {

const char *const FLOWS[] = {"digits-coupling",  "digits-tar",  "digits-full",
                             "fashion-coupling", "fashion-tar", "fashion-coupling-sharp",
                             "fashion-tar-sharp"};

struct Vectors {
    mr_flow *f = nullptr;
    size_t count = 0, pixels = 0;
    std::vector<float> x;
    std::vector<double> z, logdet, bpd;
};

template <typename T>
std::vector<T> numbers(const mr_safetensors *st, const char *name, mr_st_dtype dtype,
                       size_t count) {
    const mr_st_tensor *t = mr_safetensors_find(st, name);
    CHECK(t && t->dtype == dtype && t->count == count);
    std::vector<T> v(count);
    memcpy(v.data(), t->data, t->bytes);
    return v;
}

Vectors load(const std::string &name) {
    const char *zoo = getenv("MILLRACE_ZOO");
    std::string at = std::string(zoo ? zoo : "models/zoo") + "/flows/";
    Vectors v;
    mr_safetensors *st;
    if (mr_flow_open((at + name + ".safetensors").c_str(), &v.f) != MR_OK ||
        mr_safetensors_open((at + "vectors/" + name + ".safetensors").c_str(), &st) != MR_OK)
        FAIL(mr_last_error());
    v.pixels = mr_flow_pixels(v.f);
    v.count = mr_safetensors_find(st, "bpd")->count;
    CHECK(v.count > 0);
    v.x = numbers<float>(st, "x", MR_ST_F32, v.count * v.pixels);
    v.z = numbers<double>(st, "z", MR_ST_F64, v.count * v.pixels);
    v.logdet = numbers<double>(st, "logdet", MR_ST_F64, v.count);
    v.bpd = numbers<double>(st, "bpd", MR_ST_F64, v.count);
    mr_safetensors_close(st);
    return v;
}

struct Run {
    std::vector<float> z, logdet;
};

struct Golden {
    mr_pnm_exec *exec = nullptr;
    bool wide;
    explicit Golden(bool wide) : wide(wide) {
        mr_pnm_exec_options o = mr_pnm_exec_defaults();
        o.chips = 1;
        o.wide = wide;
        LONGS_EQUAL(MR_OK, mr_pnm_exec_open("golden", &o, &exec));
    }
    Golden(const Golden &) = delete;
    ~Golden() { mr_pnm_exec_close(exec); }
};

/* Forward, with all groups; L = 16 where products are hybrid. */
Run play(const Golden &unit, const mr_flow *f, const std::vector<float> &x) {
    mr_flow_plan_options o = {};
    o.wide = unit.wide;
    o.mode = {0, 4};
    o.images = x.size() / mr_flow_pixels(f);
    o.groups = MR_PNM_GROUPS;
    mr_flow_plan *plan;
    LONGS_EQUAL(MR_OK, mr_flow_plan_create(f, &o, &plan));
    mr_flow_plan_put(plan, x.data());
    mr_pnm_program *program = mr_flow_plan_program(plan);
    mr_pnm_counters counters;
    LONGS_EQUAL(MR_OK, mr_pnm_exec_run(unit.exec, &program, 1, &counters));
    Run r{std::vector<float>(x.size()), std::vector<float>(o.images)};
    mr_flow_plan_get(plan, r.z.data(), r.logdet.data());
    mr_flow_plan_destroy(plan);
    return r;
}

/* Elimination with pivots; a[n][n] by value. */
double log_determinant(std::vector<double> a, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        size_t best = k;
        for (size_t i = k; i < n; i++)
            if (std::fabs(a[i * n + k]) > std::fabs(a[best * n + k]))
                best = i;
        if (best != k)
            std::swap_ranges(a.begin() + (long)(k * n), a.begin() + (long)(k * n + n),
                             a.begin() + (long)(best * n));
        sum += std::log(std::fabs(a[k * n + k]));
        for (size_t i = k + 1; i < n; i++) {
            double q = a[i * n + k] / a[k * n + k];
            for (size_t j = k; j < n; j++)
                a[i * n + j] -= q * a[k * n + j];
        }
    }
    return sum;
}

/* Largest change of an element of z over that of the x's, for changes of random signs. */
double gain(const Vectors &v, size_t i) {
    const double step = std::ldexp(1, -30);
    std::mt19937 rng(1);
    std::vector<double> x(v.x.begin() + (long)(i * v.pixels),
                          v.x.begin() + (long)((i + 1) * v.pixels)),
        z(v.pixels);
    for (double &e : x)
        e += rng() & 1 ? step : -step;
    double logdet, worst = 1;
    LONGS_EQUAL(MR_OK, mr_flow_reference_forward(v.f, x.data(), z.data(), &logdet));
    for (size_t j = 0; j < v.pixels; j++)
        worst = std::fmax(worst, std::fabs(z[j] - v.z[i * v.pixels + j]) / step);
    return worst;
}

template <typename T>
void compare(const char *name, const Vectors &v, size_t i, const T *z, double logdet, double u) {
    double n = (double)v.pixels, size = 0, worst = 0, k = 30 * gain(v, i) * u;
    for (size_t j = 0; j < v.pixels; j++) {
        double want = v.z[i * v.pixels + j];
        size += std::fabs(want) / n;
        worst = std::fmax(worst, std::fabs((double)z[j] - want));
    }
    std::vector<float> rounded(z, z + v.pixels);
    double bpd = mr_flow_bpd(v.f->set, rounded.data(), v.pixels, logdet);
    double off_logdet = std::fabs(logdet - v.logdet[i]) / n, off = std::fabs(bpd - v.bpd[i]);
    double bits = (size * k + 100 * u) / std::log(2.0) + 4 * std::ldexp(1, -24);
    bool good = worst <= k && off_logdet <= 100 * u && off <= bits;
    if (getenv("MR_VERBOSE") || !good)
        printf("%s, image %zu: of the bounds, z %.2g, logdet %.2g, bpd %.2g; gain %.3g\n", name, i,
               worst / k, off_logdet / (100 * u), off / bits, k / (30 * u));
    CHECK(good);
}

} // namespace

TEST_GROUP(FlowVectors){};

TEST(FlowVectors, DefinitionInFloat64) {
    for (const char *name : FLOWS) {
        Vectors v = load(name);
        std::vector<double> z(v.pixels);
        for (size_t i = 0; i < v.count; i++) {
            std::vector<double> x(v.x.begin() + (long)(i * v.pixels),
                                  v.x.begin() + (long)((i + 1) * v.pixels));
            double logdet;
            LONGS_EQUAL(MR_OK, mr_flow_reference_forward(v.f, x.data(), z.data(), &logdet));
            compare(name, v, i, z.data(), logdet, std::ldexp(1, -53));
        }
        mr_flow_close(v.f);
    }
}

TEST(FlowVectors, ProgramsInFloat32) {
    Golden unit(true);
    for (const char *name : FLOWS) {
        Vectors v = load(name);
        Run r = play(unit, v.f, v.x);
        for (size_t i = 0; i < v.count; i++)
            compare(name, v, i, &r.z[i * v.pixels], (double)r.logdet[i], std::ldexp(1, -24));
        mr_flow_close(v.f);
    }
}

/*
 * The logarithm of the determinant is that of the derivatives' matrix: central differences of the
 * definition, a step so short that no threshold of the network is crossed: errors of h^2 and of
 * 2^-53 / h, times the gain. Back it is the negative.
 */
TEST(FlowVectors, LogDeterminantIsThatOfTheJacobian) {
    for (const char *name : {"digits-coupling", "digits-tar"}) {
        Vectors v = load(name);
        size_t n = v.pixels;
        std::vector<double> x(v.x.begin(), v.x.begin() + (long)n), z(n), low(n), high(n);
        double logdet, none;
        LONGS_EQUAL(MR_OK, mr_flow_reference_forward(v.f, x.data(), z.data(), &logdet));
        for (bool back : {false, true}) {
            std::vector<double> at = back ? z : x, matrix(n * n);
            const double h = 1e-7;
            for (size_t k = 0; k < n; k++) {
                std::vector<double> a = at, b = at;
                a[k] -= h;
                b[k] += h;
                if (back) {
                    LONGS_EQUAL(MR_OK, mr_flow_reference_inverse(v.f, a.data(), low.data()));
                    LONGS_EQUAL(MR_OK, mr_flow_reference_inverse(v.f, b.data(), high.data()));
                } else {
                    LONGS_EQUAL(MR_OK, mr_flow_reference_forward(v.f, a.data(), low.data(), &none));
                    LONGS_EQUAL(MR_OK,
                                mr_flow_reference_forward(v.f, b.data(), high.data(), &none));
                }
                for (size_t i = 0; i < n; i++)
                    matrix[i * n + k] = (high[i] - low[i]) / (2 * h);
            }
            DOUBLES_EQUAL(back ? -logdet : logdet, log_determinant(matrix, n), 1e-4);
        }
        mr_flow_close(v.f);
    }
}

/* An image that is not finite leaves the bits of those beside it alone, z and determinant. */
TEST(FlowVectors, NothingLeaksFromAnImageThatIsNotFinite) {
    for (bool wide : {true, false}) {
        Golden unit(wide);
        for (const char *name : {"digits-coupling", "digits-tar", "fashion-coupling"}) {
            Vectors v = load(name);
            std::vector<float> x(v.x.begin(), v.x.begin() + (long)(2 * v.pixels));
            x.insert(x.end(), v.x.begin(), v.x.begin() + (long)v.pixels);
            size_t count = x.size() / v.pixels;
            Run good = play(unit, v.f, x);
            for (float bad : {NAN, INFINITY}) {
                for (size_t j = 0; j < v.pixels; j += 3)
                    x[v.pixels + j] = bad;
                Run r = play(unit, v.f, x);
                for (size_t i = 0; i < count; i++) {
                    if (i == 1)
                        continue;
                    MEMCMP_EQUAL(&good.z[i * v.pixels], &r.z[i * v.pixels],
                                 v.pixels * sizeof(float));
                    MEMCMP_EQUAL(&good.logdet[i], &r.logdet[i], sizeof(float));
                }
                bool finite = true;
                for (size_t j = 0; j < v.pixels; j++)
                    finite = finite && std::isfinite(r.z[v.pixels + j]);
                CHECK(!finite);
            }
            mr_flow_close(v.f);
        }
    }
}

/* A density of 1/2 over [-1, 1) is one of 1/n over n levels; z = 1 everywhere has the mean z^2 of
 * normal numbers. */
TEST(FlowVectors, BitsOfKnownDensities) {
    const double pi = std::acos(-1.0);
    std::vector<float> zero(784, 0.0f), one(784, -1.0f);
    for (mr_flow_set set : {MR_FLOW_DIGITS, MR_FLOW_FASHION}) {
        size_t n = set == MR_FLOW_DIGITS ? 64 : 784;
        double levels = set == MR_FLOW_DIGITS ? 17 : 256;
        double logdet = (double)n * (0.5 * std::log(2 * pi) - std::log(2.0));
        DOUBLES_EQUAL(std::log2(levels), mr_flow_bpd(set, zero.data(), n, logdet), 1e-12);
    }
    DOUBLES_EQUAL(9.047096, mr_flow_bpd(MR_FLOW_FASHION, one.data(), 784, 0), 5e-7);
    DOUBLES_EQUAL(5.134558, mr_flow_bpd(MR_FLOW_DIGITS, one.data(), 64, 0), 5e-7);
    /* a map that spreads x out makes it less probable: the determinant counts with a minus */
    CHECK(mr_flow_bpd(MR_FLOW_DIGITS, zero.data(), 64, 1) <
          mr_flow_bpd(MR_FLOW_DIGITS, zero.data(), 64, 0));
}
