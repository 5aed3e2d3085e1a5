// Apply mode against the float64 definition: ||y - Wx|| <= 2^-9 ||W||_F ||x||, and what must be
// exact.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "kernels/mr_portable.h"
#include "models/golden/rgu_apply.h"

extern "C" {
void mr_cpu_rgu_tables(void *const *args, const mr_work *w);
void mr_cpu_rgu_spin(void *const *args, const mr_work *w);
void mr_cpu_rgu_apply(void *const *args, const mr_work *w);
}

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/TestHarness.h"

static unsigned long seed_value;

namespace {
struct Projection {
    mr_seed s{};
    std::vector<int16_t> angles;
    std::vector<float> gain, row_scale;
    std::vector<uint8_t> odd;
    std::vector<uint8_t> image;
    std::vector<double> w; // d_out x d_in, float64, row scale included
    double norm = 0;

    size_t terms_chunks() const { return gain.size(); }
};

struct Maker {
    std::mt19937_64 rng;
    double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(rng); }
    double normal() { return std::normal_distribution<double>()(rng); }

    Projection make(int n, int terms, size_t d_out, size_t d_in, bool scaled) {
        Projection p;
        size_t d = (size_t)1 << n, planes = (size_t)mr_rgu_planes(n);
        size_t records = (size_t)terms * ((d_out + d - 1) / d) * ((d_in + d - 1) / d);
        p.s.n = n, p.s.terms = terms, p.s.d_out = d_out, p.s.d_in = d_in;
        p.angles.resize(records * 2 * planes);
        for (auto &a : p.angles)
            a = (int16_t)(rng() & 0xFFFF);
        p.gain.resize(records);
        p.odd.resize(records);
        for (auto &g : p.gain)
            g = (float)normal();
        for (auto &o : p.odd)
            o = rng() & 1;
        if (scaled) {
            p.row_scale.resize(d_out);
            for (auto &r : p.row_scale)
                r = (float)(normal() * std::exp2(uniform(-6, 6)));
        }
        return p;
    }
};

// Image of a projection whose arrays are final.
void pack(Projection &p) {
    p.s.angles = p.angles.data(), p.s.gain = p.gain.data(), p.s.odd = p.odd.data();
    p.s.row_scale = p.row_scale.empty() ? nullptr : p.row_scale.data();
    CHECK(mr_seed_check(&p.s) == nullptr);
    p.image.resize(mr_rgu_image_bytes(&p.s));
    mr_rgu_pack(&p.s, p.image.data());
}

// Image and float64 matrix.
void finish(Projection &p) {
    pack(p);
    size_t d = (size_t)1 << p.s.n;
    std::vector<double> chunk(d * d);
    p.w.assign(p.s.d_out * p.s.d_in, 0);
    p.norm = 0;
    for (size_t o = 0; o < mr_seed_chunks_out(&p.s); o++)
        for (size_t i = 0; i < mr_seed_chunks_in(&p.s); i++) {
            CHECK_EQUAL(0, mr_def_chunk(&p.s, o, i, chunk.data()));
            for (size_t r = 0; r < d && o * d + r < p.s.d_out; r++)
                for (size_t c = 0; c < d && i * d + c < p.s.d_in; c++) {
                    double v = chunk[r * d + c];
                    if (p.s.row_scale)
                        v *= p.s.row_scale[o * d + r];
                    p.w[(o * d + r) * p.s.d_in + i * d + c] = v;
                    p.norm += v * v;
                }
        }
    p.norm = std::sqrt(p.norm);
}

std::vector<float> apply(const Projection &p, size_t batch, const std::vector<float> &x,
                         float scale = 1.0f, int sat = 0) {
    mr_golden_job job{};
    job.n = p.s.n, job.terms = p.s.terms, job.d_out = p.s.d_out, job.d_in = p.s.d_in;
    job.image = p.image.data(), job.row_scale = p.s.row_scale, job.scale = scale, job.sat = sat;
    std::vector<float> y(batch * p.s.d_out, -1.0f);
    CHECK_EQUAL(0, mr_golden_apply(&job, batch, x.data(), p.s.d_in * 4, y.data(), p.s.d_out * 4));
    return y;
}

// One launch of a kernel compiled as C.
template <typename... Args>
void launch(void (*kernel)(void *const *, const mr_work *), mr_u32 gx, mr_u32 gy, Args... args) {
    void *list[] = {&args...};
    mr_work w{};
    w.groups[0] = gx, w.groups[1] = gy, w.groups[2] = 1, w.lanes = 32;
    for (w.group[1] = 0; w.group[1] < gy; w.group[1]++)
        for (w.group[0] = 0; w.group[0] < gx; w.group[0]++)
            kernel(list, &w);
}

// The same product by the compute kernels, chunk rows in blocks of two.
std::vector<float> apply_kernels(const Projection &p, size_t batch, const std::vector<float> &x,
                                 float scale) {
    mr_i32 n = p.s.n, terms = p.s.terms, ci = (mr_i32)mr_seed_chunks_in(&p.s);
    mr_i32 co = (mr_i32)mr_seed_chunks_out(&p.s), none = 0;
    mr_i32 d_in = (mr_i32)p.s.d_in, d_out = (mr_i32)p.s.d_out, mode = p.s.row_scale ? 32 : 0;
    std::vector<float> y(batch * p.s.d_out, -1.0f);
    for (mr_i32 o = 0; o < co; o += 2) {
        size_t no = co - o < 2 ? 1 : 2, records = no * (size_t)ci * (size_t)terms;
        std::vector<mr_i32> r(records << (n - 1)), s(records << (n - 1));
        std::vector<mr_i32> rm(records << n), sm(records << n), any(records);
        launch(mr_cpu_rgu_tables, (mr_u32)records, 2, p.image.data(), r.data(), s.data(), n, terms,
               ci, o, none, ci);
        launch(mr_cpu_rgu_spin, (mr_u32)records, 2, p.image.data(), r.data(), s.data(), rm.data(),
               sm.data(), any.data(), n, terms, ci, o, none, ci);
        launch(mr_cpu_rgu_apply, (mr_u32)batch, (mr_u32)no, p.image.data(), rm.data(), sm.data(),
               any.data(), p.s.row_scale, x.data(), y.data(), n, terms, ci, o, d_in, d_out,
               (mr_u32)d_in * 4, (mr_u32)d_out * 4, mode, scale);
    }
    return y;
}

// The worst error of the batch as a fraction of the bound.
double worst(const Projection &p, size_t batch, const std::vector<float> &x,
             const std::vector<float> &y) {
    double most = 0;
    for (size_t b = 0; b < batch; b++) {
        double err = 0, xx = 0;
        for (size_t c = 0; c < p.s.d_in; c++)
            xx += (double)x[b * p.s.d_in + c] * x[b * p.s.d_in + c];
        for (size_t r = 0; r < p.s.d_out; r++) {
            double want = 0;
            for (size_t c = 0; c < p.s.d_in; c++)
                want += p.w[r * p.s.d_in + c] * x[b * p.s.d_in + c];
            double e = y[b * p.s.d_out + r] - want;
            err += e * e;
        }
        double bound = std::exp2(-9) * p.norm * std::sqrt(xx);
        double ratio = err == 0 ? 0 : bound == 0 ? INFINITY : std::sqrt(err) / bound;
        most = std::fmax(most, std::isnan(ratio) ? INFINITY : ratio);
    }
    return most;
}

// Vectors of every awkward kind, in turn.
std::vector<float> vectors(Maker &m, size_t batch, size_t d_in, int kinds = 8) {
    std::vector<float> x(batch * d_in, 0.0f);
    for (size_t b = 0; b < batch; b++) {
        float *v = &x[b * d_in];
        for (size_t c = 0; c < d_in; c++)
            switch (b % (size_t)kinds) {
            case 0:
                v[c] = (float)m.normal();
                break;
            case 1:
                v[c] = 0;
                break;
            case 2:
                v[c] = c == d_in / 3 ? 3.0f : 0.0f;
                break;
            case 3:
                v[c] = (float)(m.normal() * std::exp2(m.uniform(-40, 40)));
                break;
            case 4:
                v[c] = (float)(1e25 * m.normal());
                break;
            case 5:
                v[c] = 1.0f;
                break;
            case 6:
                v[c] = c % 5 ? 1e-3f * (float)m.normal() : 1e4f;
                break;
            default:
                v[c] = (float)(1e-30 * m.normal());
                break;
            }
    }
    return x;
}

double check(Projection &p, size_t batch, const std::vector<float> &x, const char *name) {
    double ratio = worst(p, batch, x, apply(p, batch, x));
    if (std::getenv("MR_VERBOSE"))
        std::printf("  %-28s n %2d terms %2d %4zux%-4zu error/bound %.5f\n", name, p.s.n, p.s.terms,
                    p.s.d_out, p.s.d_in, ratio);
    CHECK_TRUE_TEXT(ratio <= 1.0, name);
    return ratio;
}
} // namespace

TEST_GROUP(rgu_apply) {
    Maker m;
    void setup() override { m.rng.seed(seed_value); }
    void run(Projection p, const char *name, size_t batch = 16) {
        finish(p);
        check(p, batch, vectors(m, batch, p.s.d_in), name);
    }
};

TEST(rgu_apply, one_term) {
    run(m.make(8, 1, 256, 256, false), "one term");
    run(m.make(10, 1, 1024, 1024, false), "one term");
}

TEST(rgu_apply, many_terms_and_shapes_that_are_no_multiple) {
    for (int terms : {2, 3, 7, 32})
        run(m.make(8, terms, 100 + m.rng() % 500, 1 + m.rng() % 600, terms & 1), "shape");
    run(m.make(10, 2, 700, 900, true), "shape");
}

TEST(rgu_apply, corners_of_a_chunk) {
    for (int k = 0; k < 12; k++) {
        run(m.make(8, 1 + k % 3, 3 + m.rng() % 5, 3 + m.rng() % 5, k & 1), "corner");
    }
}

TEST(rgu_apply, a_structural_zero_is_exactly_zero) {
    for (int n : {8, 10}) { // an odd term keeps scalars away from scalars
        Projection p = m.make(n, n == 8 ? 3 : 1, 1, 1, false);
        for (auto &o : p.odd)
            o = 1;
        run(p, "structural zero");
    }
}

TEST(rgu_apply, row_scales_of_every_size) {
    Projection p = m.make(8, 2, 300, 300, true);
    for (size_t r = 0; r < p.row_scale.size(); r++)
        p.row_scale[r] = r % 7 == 0 ? 0.0f : (float)(m.normal() * std::exp2(m.uniform(-60, 20)));
    run(p, "row scales");
}

TEST(rgu_apply, gains_of_every_size) {
    for (int k = 0; k < 6; k++) {
        Projection p = m.make(8, 2, 700, 700, k & 1);
        size_t chunks = p.terms_chunks() / 2;
        for (size_t c = 0; c < chunks; c++) {
            double scale = std::exp2(m.uniform(-20, 20));
            p.gain[c] *= (float)scale;
            p.gain[chunks + c] *= (float)scale;
            if (m.rng() % 4 == 0)
                p.gain[c] = 0;
            if (m.rng() % 4 == 0)
                p.gain[c] = p.gain[chunks + c] = 0;
        }
        run(p, "gains by chunk", 8);
    }
    Projection none = m.make(8, 2, 300, 300, false);
    for (auto &g : none.gain)
        g = 0;
    run(none, "all gains zero");
}

TEST(rgu_apply, terms_that_cancel_leave_nothing) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, 2, 300, 280, false);
        size_t chunks = p.terms_chunks() / 2, side = p.angles.size() / 2;
        std::copy_n(p.angles.begin(), side, p.angles.begin() + (long)side);
        for (size_t c = 0; c < chunks; c++) {
            p.gain[chunks + c] = -p.gain[c];
            p.odd[chunks + c] = p.odd[c];
        }
        pack(p); // W is zero: nothing to compute
        auto x = vectors(m, 16, p.s.d_in);
        for (float y : apply(p, 16, x)) {
            uint32_t bits;
            std::memcpy(&bits, &y, 4);
            CHECK_EQUAL(0u, bits);
        }
    }
}

TEST(rgu_apply, a_huge_chunk_that_cancels_does_not_drown_the_others) {
    for (size_t huge = 0; huge < 4; huge++) {
        Projection p = m.make(8, 2, 256, 1024, false); // four chunks side by side
        size_t chunks = p.terms_chunks() / 2, planes2 = 2 * (size_t)mr_rgu_planes(8);
        std::copy_n(p.angles.begin() + (long)(huge * planes2), planes2,
                    p.angles.begin() + (long)((chunks + huge) * planes2));
        p.odd[chunks + huge] = p.odd[huge];
        p.gain[huge] = 1e6f;
        p.gain[chunks + huge] = -1e6f;
        run(p, "huge cancelling chunk", 8);
    }
}

TEST(rgu_apply, nearly_cancelling_terms) {
    Projection p = m.make(8, 2, 256, 256, false);
    size_t side = p.angles.size() / 2;
    std::copy_n(p.angles.begin(), side, p.angles.begin() + (long)side);
    p.odd[1] = p.odd[0];
    p.gain[0] = 1.0f, p.gain[1] = -0.998f;
    run(p, "nearly cancelling");
}

TEST(rgu_apply, angles_at_their_limits) {
    for (int v : {0, -32768, 16384, -16384, 32767}) {
        Projection p = m.make(8, 1, 256, 256, false);
        for (auto &a : p.angles)
            a = (int16_t)v;
        run(p, "constant angles");
    }
}

TEST(rgu_apply, subnormal_vectors) {
    Projection p = m.make(8, 1, 256, 256, false);
    p.gain[0] = 1e30f;
    finish(p);
    std::vector<float> x(4 * 256, 0.0f);
    for (size_t c = 0; c < 256; c++) {
        x[c] = (float)(1e-42 * m.normal());
        x[512 + c] = (float)(3e-38 * m.normal());
    }
    x[256 + 77] = std::ldexp(1.0f, -149);
    x[768] = std::ldexp(1.0f, -126), x[769] = -std::ldexp(1.0f, -149);
    check(p, 4, x, "subnormal vectors");
}

TEST(rgu_apply, results_that_are_subnormal_or_too_large) {
    Projection p = m.make(8, 1, 256, 256, false);
    p.odd[0] = 0;
    p.gain[0] = 1.0f;
    std::fill(p.angles.begin(), p.angles.end(), (int16_t)0); // W = gain * identity
    finish(p);
    std::vector<float> x(256);
    for (size_t c = 0; c < 256; c++)
        x[c] = std::ldexp(1.0f + (float)(c & 15) / 16, -149 + (int)(c / 16));
    auto y = apply(p, 1, x, std::ldexp(1.0f, -3)); // lands on both sides of 2^-149
    for (size_t c = 0; c < 256; c++)
        CHECK_TRUE(std::fabs((double)y[c] - std::ldexp((double)x[c], -3)) <=
                   std::ldexp(0.51, -149));
    std::fill(x.begin(), x.end(), 1e38f);
    x[1] = -1e38f;
    y = apply(p, 1, x, 1e10f);
    CHECK_TRUE(std::isinf(y[0]) && y[0] > 0 && std::isinf(y[1]) && y[1] < 0);
    y = apply(p, 1, x, 1e10f, 1);
    CHECK_EQUAL(3.40282346638528859812e+38f, y[0]);
    CHECK_EQUAL(-3.40282346638528859812e+38f, y[1]);
}

TEST(rgu_apply, identity_is_exact_for_short_integers) {
    Projection p = m.make(10, 1, 1024, 1024, false);
    p.odd[0] = 0;
    p.gain[0] = -0.5f;
    std::fill(p.angles.begin(), p.angles.end(), (int16_t)0);
    pack(p);
    std::vector<float> x(1024);
    for (auto &v : x)
        v = (float)(int)(m.rng() % 131072 - 65536);
    auto y = apply(p, 1, x);
    for (size_t c = 0; c < 1024; c++)
        CHECK_EQUAL(-0.5f * x[c], y[c]);
}

TEST(rgu_apply, not_a_number_spoils_its_own_vector_only) {
    Projection p = m.make(8, 2, 300, 600, false);
    pack(p);
    auto x = vectors(m, 4, 600);
    auto clean = apply(p, 4, x);
    auto dirty = x;
    dirty[600 + 599] = NAN;
    dirty[3 * 600 + 3] = -INFINITY;
    auto y = apply(p, 4, dirty);
    for (size_t r = 0; r < 300; r++)
        for (size_t b = 0; b < 4; b++) {
            uint32_t bits, want;
            std::memcpy(&bits, &y[b * 300 + r], 4);
            std::memcpy(&want, &clean[b * 300 + r], 4);
            CHECK_EQUAL(b & 1 ? 0x7FC00000u : want, bits);
        }
}

TEST(rgu_apply, kernels_compute_the_same_bits) {
    for (int k = 0; k < 8; k++) {
        int n = k & 1 ? 10 : 8;
        size_t d = (size_t)1 << n;
        Projection p =
            m.make(n, 1 + (int)(m.rng() % 4), 1 + m.rng() % (3 * d), 1 + m.rng() % (3 * d), k & 2);
        for (auto &g : p.gain)
            g *= (float)std::exp2(m.uniform(-60, 20)) * (m.rng() % 4 != 0);
        pack(p);
        auto x = vectors(m, 10, p.s.d_in);
        x[8 * p.s.d_in + p.s.d_in / 2] = NAN;
        for (size_t c = 0; c < p.s.d_in; c++)
            x[9 * p.s.d_in + c] = (float)(1e-38 * m.normal());
        auto want = apply(p, 10, x, -0.75f), got = apply_kernels(p, 10, x, -0.75f);
        CHECK_EQUAL(0, std::memcmp(want.data(), got.data(), want.size() * 4));
    }
}

TEST(rgu_apply, strides_and_odd_addresses) {
    Projection p = m.make(8, 1, 70, 90, false);
    pack(p);
    auto x = vectors(m, 3, 90, 1);
    auto want = apply(p, 3, x);
    std::vector<unsigned char> src(3 * 401 + 3), dst(3 * 307 + 1, 0xA5), sent = dst;
    for (size_t b = 0; b < 3; b++)
        std::memcpy(&src[3 + b * 401], &x[b * 90], 360);
    mr_golden_job job{};
    job.n = 8, job.terms = 1, job.d_out = 70, job.d_in = 90, job.scale = 1.0f;
    job.image = p.image.data();
    CHECK_EQUAL(0, mr_golden_apply(&job, 3, &src[3], 401, &dst[1], 307));
    for (size_t b = 0; b < 3; b++) {
        CHECK_EQUAL(0, std::memcmp(&dst[1 + b * 307], &want[b * 70], 280));
        std::memcpy(&sent[1 + b * 307], &want[b * 70], 280);
    }
    CHECK_EQUAL(0, std::memcmp(dst.data(), sent.data(), dst.size()));
}

TEST(rgu_apply, refuses_an_inconsistent_job) {
    Projection p = m.make(8, 1, 70, 90, false);
    pack(p);
    std::vector<float> x(90), y(70);
    mr_golden_job job{};
    job.n = 8, job.terms = 1, job.d_out = 70, job.d_in = 90, job.scale = 1.0f;
    job.image = p.image.data();
    auto call = [&](mr_golden_job j) {
        return mr_golden_apply(&j, 1, x.data(), 360, y.data(), 280);
    };
    CHECK_EQUAL(0, call(job));
    for (int field = 0; field < 5; field++) {
        mr_golden_job bad = job;
        if (field == 0)
            bad.n = 9;
        if (field == 1)
            bad.terms = 0;
        if (field == 2)
            bad.terms = 33;
        if (field == 3)
            bad.d_in = 0;
        if (field == 4)
            bad.d_in = ((size_t)MR_APPLY_MAX_PASSES + 1) << 8;
        CHECK_EQUAL(-1, call(bad));
    }
}

int main(int argc, char **argv) {
    const char *given = std::getenv("MR_SEED");
    seed_value = given ? std::strtoul(given, nullptr, 0) : (unsigned long)std::time(nullptr);
    std::printf("MR_SEED=%lu\n", seed_value);
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
