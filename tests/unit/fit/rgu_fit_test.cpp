/* SPDX-License-Identifier: Apache-2.0 */
/* The descent is checked through the float64 definition: it must find maps that seeds can express.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <random>
#include <vector>

#include "host/units/rgu_fit.h"
#include "models/golden/rgu.h"

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestHarness.h>

static unsigned seed_of_run() {
    const char *text = getenv("MR_SEED");
    return text ? (unsigned)strtoul(text, nullptr, 0) : 1u;
}

struct Known { /* a projection made of known seeds, as float32 weights */
    int n, terms;
    size_t d_out, d_in;
    std::vector<int16_t> angles;
    std::vector<float> gain, w;
    std::vector<uint8_t> odd;
};

static std::vector<double> define(int n, int terms, size_t d_out, size_t d_in,
                                  const int16_t *angles, const float *gain, const uint8_t *odd) {
    mr_seed s = {n, terms, d_out, d_in, angles, gain, odd, nullptr};
    size_t d = (size_t)1 << n;
    std::vector<double> chunk(d * d), w(d_out * d_in);
    for (size_t o = 0; o < mr_seed_chunks_out(&s); o++)
        for (size_t i = 0; i < mr_seed_chunks_in(&s); i++) {
            mr_def_chunk(&s, o, i, chunk.data());
            for (size_t r = 0; r < d && o * d + r < d_out; r++)
                for (size_t c = 0; c < d && i * d + c < d_in; c++)
                    w[(o * d + r) * d_in + i * d + c] = chunk[r * d + c];
        }
    return w;
}

static Known known(int n, int terms, size_t d_out, size_t d_in, std::mt19937 &rng) {
    size_t d = (size_t)1 << n, chunks = ((d_out + d - 1) / d) * ((d_in + d - 1) / d);
    size_t planes = (size_t)mr_rgu_planes(n);
    Known k = {n, terms, d_out, d_in, {}, {}, {}, {}};
    for (size_t i = 0; i < chunks * (size_t)terms * 2 * planes; i++)
        k.angles.push_back((int16_t)((int)(rng() % 6000) - 3000));
    for (size_t i = 0; i < chunks * (size_t)terms; i++) {
        k.gain.push_back((rng() & 1 ? 1.0f : -1.0f) * (0.5f + (float)(rng() % 1000) / 1000));
        k.odd.push_back(i / chunks & 1);
    }
    for (double v : define(n, terms, d_out, d_in, k.angles.data(), k.gain.data(), k.odd.data()))
        k.w.push_back((float)v);
    return k;
}

static double distance(const std::vector<double> &a, const std::vector<float> &b) {
    double q = 0, z = 0;
    for (size_t i = 0; i < a.size(); i++) {
        q += (a[i] - b[i]) * (a[i] - b[i]);
        z += (double)b[i] * b[i];
    }
    return sqrt(q / z);
}

static mr_fit_options options_for(const Known &k) {
    mr_fit_options o = mr_fit_defaults();
    o.n = k.n;
    o.terms = k.terms;
    o.d_out = k.d_out;
    o.d_in = k.d_in;
    o.parity = k.terms > 1 ? MR_FIT_ALTERNATE : MR_FIT_EVEN;
    return o;
}

TEST_GROUP(RguFit) { std::mt19937 rng{seed_of_run()}; };

TEST(RguFit, FindsTheSeedsOfAMatrix) {
    Known k = known(8, 2, 256, 256, rng);
    mr_fit_options o = options_for(k);
    mr_fit_result r;
    o.target = k.w.data();
    o.steps = 300;
    POINTERS_EQUAL(nullptr, mr_fit(&o, &r));
    std::vector<double> w = define(8, 2, 256, 256, r.angles, r.gain, r.odd);
    CHECK(distance(w, k.w) < 2e-3);
    DOUBLES_EQUAL(distance(w, k.w), r.error,
                  1e-5); /* the error it reports is that of what it stores */
    CHECK(r.span_error < 1e-3);
    mr_fit_free(&r);
}

TEST(RguFit, FindsThemFromRecordedPairsAndACroppedShape) {
    Known k = known(8, 1, 200, 300, rng);
    const size_t pairs = 900;
    std::vector<float> x(pairs * k.d_in), y(pairs * k.d_out);
    std::normal_distribution<float> normal;
    for (float &v : x)
        v = normal(rng);
    for (size_t v = 0; v < pairs; v++)
        for (size_t i = 0; i < k.d_out; i++) {
            double sum = 0;
            for (size_t j = 0; j < k.d_in; j++)
                sum += (double)k.w[i * k.d_in + j] * x[v * k.d_in + j];
            y[v * k.d_out + i] = (float)sum;
        }
    mr_fit_options o = options_for(k);
    mr_fit_result r;
    o.pairs = pairs;
    o.x = x.data();
    o.y = y.data();
    o.steps = 250;
    POINTERS_EQUAL(nullptr, mr_fit(&o, &r));
    CHECK(distance(define(8, 1, 200, 300, r.angles, r.gain, r.odd), k.w) < 0.02);
    CHECK(r.error < 0.02);
    mr_fit_free(&r);
}

/* A Gaussian matrix has a quarter of its energy in reach of even terms, a half in reach of both. */
TEST(RguFit, SaysHowFarTheSpanReaches) {
    std::vector<float> w(256 * 256);
    std::normal_distribution<float> normal;
    for (float &v : w)
        v = normal(rng);
    mr_fit_options o = mr_fit_defaults();
    mr_fit_result r;
    o.d_out = o.d_in = 256;
    o.target = w.data();
    o.steps = 5;
    POINTERS_EQUAL(nullptr, mr_fit(&o, &r));
    DOUBLES_EQUAL(sqrt(0.75), r.span_error, 0.01);
    CHECK(r.error >= r.span_error);
    mr_fit_free(&r);
    o.terms = 2;
    o.parity = MR_FIT_ALTERNATE;
    POINTERS_EQUAL(nullptr, mr_fit(&o, &r));
    DOUBLES_EQUAL(sqrt(0.5), r.span_error, 0.01);
    mr_fit_free(&r);
}

static int stop_at_three(void *context, int step, double) {
    *(int *)context = step;
    return step == 3;
}

TEST(RguFit, StopsWhenAskedAndRefusesNonsense) {
    Known k = known(8, 1, 256, 256, rng);
    mr_fit_options o = options_for(k), bad;
    mr_fit_result r;
    int last = 0;
    o.target = k.w.data();
    o.progress = stop_at_three;
    o.context = &last;
    POINTERS_EQUAL(nullptr, mr_fit(&o, &r));
    LONGS_EQUAL(3, last);
    LONGS_EQUAL(3, r.steps);
    mr_fit_free(&r);
    bad = o, bad.n = 9;
    STRCMP_CONTAINS("n:", mr_fit(&bad, &r));
    bad = o, bad.terms = 33;
    STRCMP_CONTAINS("terms", mr_fit(&bad, &r));
    bad = o, bad.d_in = (size_t)1 << 63;
    STRCMP_CONTAINS("shape", mr_fit(&bad, &r));
    bad = o, bad.target = nullptr;
    STRCMP_CONTAINS("target", mr_fit(&bad, &r));
    bad = o, bad.rate = NAN;
    STRCMP_CONTAINS("rate", mr_fit(&bad, &r));
    k.w[7] = INFINITY;
    STRCMP_CONTAINS("not finite", mr_fit(&o, &r));
}

int main(int argc, char **argv) {
    printf("MR_SEED=%u\n", seed_of_run());
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
