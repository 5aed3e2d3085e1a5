/*
 * Flows on the golden near-memory unit against the float64 definition.
 *
 * Tolerances. Wide programs round every sum of products and every vector operation to float32, a
 * few hundred of them one after the other through networks whose gain is about one: 1e-4 of the
 * result's size is some hundred times what a random walk of such roundings gives. The round trip is
 * tighter for couplings: both ways compute the same s and t bit for bit, so that only the affine
 * step's roundings stay. With bf16 operands (8 bits) the results are compared at 0.15, which an
 * error in a mask, a sign or an order exceeds at once.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "host/flow/data.h"
#include "host/flow/nodes.h"
#include "host/flow/plan.h"
#include "host/flow/png.h"
#include "host/flow/reference.h"
#include "host/io/safetensors.h"
#include "host/pnm/exec.h"

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>
#include <CppUTest/TestHarness.h>

namespace {

uint64_t seed;

struct Tensor {
    std::vector<size_t> shape;
    std::vector<float> v;
};

/* A flow file in the making. */
struct Maker {
    std::map<std::string, Tensor> tensors;
    std::map<std::string, std::string> meta;
    std::mt19937_64 rng;
    explicit Maker(uint64_t test) : rng(seed * 1000003 + test) {}

    void add(const std::string &name, std::vector<size_t> shape, double size) {
        size_t n = 1;
        for (size_t s : shape)
            n *= s;
        Tensor t{shape, std::vector<float>(n)};
        std::normal_distribution<double> normal(0, size);
        for (float &f : t.v)
            f = (float)normal(rng);
        tensors[name] = t;
    }
    void scalar(const std::string &name, float v) { tensors[name] = Tensor{{1}, {v}}; }

    mr_status open(const std::string &path, mr_flow **f) const {
        std::vector<mr_st_output> out;
        for (const auto &t : tensors) {
            mr_st_output o = {};
            o.name = t.first.c_str();
            o.dtype = MR_ST_F32;
            o.rank = t.second.shape.size();
            for (size_t i = 0; i < o.rank; i++)
                o.shape[i] = t.second.shape[i];
            o.data = t.second.v.data();
            out.push_back(o);
        }
        std::vector<const char *> pairs;
        for (const auto &m : meta) {
            pairs.push_back(m.first.c_str());
            pairs.push_back(m.second.c_str());
        }
        LONGS_EQUAL(MR_OK, mr_safetensors_write(path.c_str(), out.data(), out.size(), pairs.data(),
                                                meta.size()));
        mr_status e = mr_flow_open(path.c_str(), f);
        remove(path.c_str());
        return e;
    }
};

std::string name(const char *letter, size_t b, const char *tensor) {
    return letter + std::to_string(b) + "." + tensor;
}

/* grid 1, 2 or 4 of digits, 7 of fashion; masks of random channels, not all alike. */
Maker coupling(uint64_t test, size_t grid, size_t kernel, size_t hidden, size_t blocks,
               float alpha) {
    Maker m(test);
    size_t side = grid == 7 ? 28 : 8, c = side / grid * (side / grid);
    m.meta = {{"format", "millrace-flow-1"},
              {"name", "made"},
              {"kind", "coupling"},
              {"data", grid == 7 ? "fashion" : "digits"},
              {"tokens", std::to_string(grid * grid)},
              {"channels", std::to_string(c)},
              {"grid", std::to_string(grid)},
              {"blocks", std::to_string(blocks)},
              {"hidden", std::to_string(hidden)},
              {"kernel", std::to_string(kernel)}};
    for (size_t b = 0; b < blocks; b++) {
        Tensor mask{{c}, std::vector<float>(c)};
        for (size_t i = 0; i < c; i++)
            mask.v[i] = i < 2 ? (float)i : (float)(m.rng() % 2);
        m.tensors[name("c", b, "mask")] = mask;
        double taps = (double)(kernel * kernel);
        m.add(name("c", b, "w0"), {hidden, kernel, kernel, c}, 1 / std::sqrt(taps * (double)c));
        m.add(name("c", b, "w1"), {hidden, kernel, kernel, hidden},
              1 / std::sqrt(taps * (double)hidden));
        m.add(name("c", b, "w2"), {hidden, hidden}, 0.3 / std::sqrt((double)hidden));
        m.add(name("c", b, "wout"), {2 * c, hidden}, 0.5 / std::sqrt((double)hidden));
        m.add(name("c", b, "b0"), {hidden}, 0.2);
        m.add(name("c", b, "b1"), {hidden}, 0.2);
        m.add(name("c", b, "b2"), {hidden}, 0.2);
        m.add(name("c", b, "bout"), {2 * c}, 0.2);
        m.scalar(name("c", b, "alpha"), alpha);
        auto &w0 = m.tensors[name("c", b, "w0")].v, &wo = m.tensors[name("c", b, "wout")].v,
             &bo = m.tensors[name("c", b, "bout")].v;
        for (size_t i = 0; i < w0.size(); i++)
            w0[i] *= mask.v[i % c];
        for (size_t o = 0; o < 2 * c; o++) {
            bo[o] *= 1 - mask.v[o % c];
            for (size_t i = 0; i < hidden; i++)
                wo[o * hidden + i] *= 1 - mask.v[o % c];
        }
    }
    return m;
}

Maker tar(uint64_t test, size_t grid, size_t heads, size_t ff, size_t layers, size_t blocks,
          float alpha) {
    Maker m(test);
    size_t side = grid == 7 ? 28 : 8, c = side / grid * (side / grid), d = 16 * heads,
           tokens = grid * grid;
    m.meta = {{"format", "millrace-flow-1"},
              {"name", "made"},
              {"kind", "tar"},
              {"data", grid == 7 ? "fashion" : "digits"},
              {"tokens", std::to_string(tokens)},
              {"channels", std::to_string(c)},
              {"grid", std::to_string(grid)},
              {"blocks", std::to_string(blocks)},
              {"width", std::to_string(d)},
              {"heads", std::to_string(heads)},
              {"layers", std::to_string(layers)},
              {"ff", std::to_string(ff)}};
    double s = 1 / std::sqrt((double)d);
    for (size_t b = 0; b < blocks; b++) {
        m.add(name("b", b, "win"), {d, c}, 1 / std::sqrt((double)c));
        m.add(name("b", b, "bin"), {d}, 0.2);
        m.add(name("b", b, "pos"), {tokens, d}, 0.5);
        for (size_t l = 0; l < layers; l++) {
            std::string p = "b" + std::to_string(b) + ".l" + std::to_string(l) + ".";
            for (const char *w : {"wq", "wk", "wv"})
                m.add(p + w, {d, d}, s);
            m.add(p + "wo", {d, d}, 0.3 * s);
            m.add(p + "bq", {d}, 0.2);
            m.add(p + "bo", {d}, 0.2);
            m.add(p + "w1", {ff, d}, s);
            m.add(p + "b1", {ff}, 0.2);
            m.add(p + "w2", {d, ff}, 0.3 / std::sqrt((double)ff));
            m.add(p + "b2", {d}, 0.2);
        }
        m.add(name("b", b, "wout"), {2 * c, d}, 0.5 * s);
        m.add(name("b", b, "bout"), {2 * c}, 0.2);
        m.scalar(name("b", b, "alpha"), alpha);
    }
    return m;
}

struct Run {
    std::vector<float> out, logdet;
};

Run play(const mr_flow *f, mr_flow_plan_options o, const std::vector<float> &in) {
    o.images = in.size() / mr_flow_pixels(f);
    if (!o.groups)
        o.groups = MR_PNM_GROUPS;
    if (!o.mode.log_length)
        o.mode = {2, 2};
    mr_pnm_exec_options eo = mr_pnm_exec_defaults();
    eo.chips = 1;
    eo.wide = o.wide;
    mr_pnm_exec *exec;
    mr_flow_plan *plan;
    LONGS_EQUAL(MR_OK, mr_pnm_exec_open("golden", &eo, &exec));
    mr_status e = mr_flow_plan_create(f, &o, &plan);
    if (e != MR_OK)
        FAIL(mr_last_error());
    mr_flow_plan_put(plan, in.data());
    mr_pnm_program *program = mr_flow_plan_program(plan);
    mr_pnm_counters counters;
    e = mr_pnm_exec_run(exec, &program, 1, &counters);
    if (e != MR_OK)
        FAIL(mr_last_error());
    Run r{std::vector<float>(in.size()), std::vector<float>(o.images)};
    mr_flow_plan_get(plan, r.out.data(), o.inverse ? nullptr : r.logdet.data());
    mr_flow_plan_destroy(plan);
    mr_pnm_exec_close(exec);
    return r;
}

std::vector<float> images(const mr_flow *f, size_t n, uint64_t test) {
    std::vector<float> x(n * mr_flow_pixels(f));
    std::mt19937_64 rng(seed + test);
    std::uniform_real_distribution<float> u(-1, 1);
    for (float &v : x)
        v = u(rng);
    return x;
}

/* Forward against the definition, then back to where it came from. */
void check(const Maker &m, mr_flow_plan_options o, size_t n, double tolerance, double back) {
    mr_flow *f;
    std::string path = "/tmp/millrace-flow-" + std::to_string(seed) + ".safetensors";
    if (m.open(path, &f) != MR_OK)
        FAIL(mr_last_error());
    size_t pixels = mr_flow_pixels(f);
    std::vector<float> x = images(f, n, 1);
    Run z = play(f, o, x);
    double worst = 0, worst_logdet = 0, worst_back = 0;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> in(x.begin() + (long)(i * pixels),
                               x.begin() + (long)((i + 1) * pixels)),
            out(pixels), again(pixels);
        double logdet;
        LONGS_EQUAL(MR_OK, mr_flow_reference_forward(f, in.data(), out.data(), &logdet));
        LONGS_EQUAL(MR_OK, mr_flow_reference_inverse(f, out.data(), again.data()));
        double size = 1;
        for (double v : out)
            size = std::fmax(size, std::fabs(v));
        for (size_t j = 0; j < pixels; j++) {
            worst = std::fmax(worst, std::fabs(out[j] - (double)z.out[i * pixels + j]) / size);
            CHECK(std::fabs(again[j] - in[j]) < 1e-9 * size);
        }
        worst_logdet =
            std::fmax(worst_logdet, std::fabs(logdet - (double)z.logdet[i]) / (double)pixels);
    }
    o.inverse = true;
    Run y = play(f, o, z.out);
    for (size_t i = 0; i < x.size(); i++)
        worst_back = std::fmax(worst_back, std::fabs((double)x[i] - (double)y.out[i]));
    if (!(worst < tolerance) || !(worst_logdet < tolerance) || !(worst_back < back))
        printf("z %.3g, logdet %.3g, back %.3g\n", worst, worst_logdet, worst_back);
    CHECK(worst < tolerance);
    CHECK(worst_logdet < tolerance);
    CHECK(worst_back < back);
    mr_flow_close(f);
}

mr_flow_plan_options wide(mr_flow_schedule s = MR_FLOW_PIPELINED) {
    mr_flow_plan_options o = {};
    o.wide = true;
    o.schedule = s;
    return o;
}

void refused(const char *word, const Maker &m) {
    mr_flow *f = nullptr;
    LONGS_EQUAL(MR_BAD_FORMAT, m.open("/tmp/millrace-flow-bad.safetensors", &f));
    POINTERS_EQUAL(nullptr, f);
    if (!strstr(mr_last_error(), word))
        printf("%s\n", mr_last_error());
    CHECK(strstr(mr_last_error(), word) != nullptr);
    CHECK(strstr(mr_last_error(), "millrace-flow-bad.safetensors") != nullptr);
}

} // namespace

TEST_GROUP(Flow){};

TEST(Flow, CouplingsOfWholeImages) {
    check(coupling(1, 1, 1, 48, 5, 0.5f), wide(), 21, 1e-4, 1e-4);
    check(coupling(2, 1, 1, 20, 3, 0.5f), wide(MR_FLOW_SEQUENTIAL), 9, 1e-4, 1e-4);
    check(coupling(3, 1, 1, 16, 1, 1.0f), wide(MR_FLOW_REPLICATED), 1, 1e-4, 1e-4);
}

TEST(Flow, CouplingsOfTokens) {
    check(coupling(4, 2, 3, 32, 3, 0.5f), wide(), 5, 1e-4, 1e-4);
    check(coupling(5, 4, 1, 16, 2, 0.5f), wide(MR_FLOW_REPLICATED), 6, 1e-4, 1e-4);
    check(coupling(6, 7, 3, 16, 2, 0.5f), wide(), 3, 1e-4, 1e-4);
}

TEST(Flow, Transformers) {
    check(tar(7, 4, 4, 40, 2, 3, 0.5f), wide(), 11, 1e-4, 1e-4);
    check(tar(8, 4, 3, 32, 1, 2, 0.5f), wide(MR_FLOW_SEQUENTIAL), 3, 1e-4, 1e-4);
    check(tar(9, 7, 2, 32, 1, 2, 0.5f), wide(MR_FLOW_REPLICATED), 3, 1e-4, 1e-4);
    check(tar(10, 2, 1, 16, 1, 1, 0.5f), wide(), 1, 1e-4, 1e-4);
}

/* 70 images are two plans of 35; three nodes and one; the keys of token t lie with node t mod 3. */
TEST(Flow, TransformersWithAttentionAtNodes) {
    mr_flow *f;
    std::string path = "/tmp/millrace-flow-" + std::to_string(seed) + ".safetensors";
    if (tar(14, 4, 3, 32, 2, 2, 0.5f).open(path, &f) != MR_OK)
        FAIL(mr_last_error());
    size_t pixels = mr_flow_pixels(f), n = 69;
    std::vector<float> z = images(f, n, 2), x(n * pixels), y(n * pixels);
    mr_pnm_exec_options eo = mr_pnm_exec_defaults();
    eo.chips = 1;
    eo.wide = true;
    mr_flow_nodes_options o = {};
    mr_flow_plan_options p = wide();
    p.images = n;
    p.groups = MR_PNM_GROUPS;
    p.mode = {2, 2};
    mr_flow_nodes_stats stats;
    LONGS_EQUAL(MR_OK, mr_device_open("cpu:", &o.device));
    LONGS_EQUAL(MR_OK, mr_pnm_exec_open("golden", &eo, &o.exec));
    o.timeout_ns = 60000000000u;
    o.nic = "golden?nodes=3";
    if (mr_flow_nodes_sample(f, &p, &o, z.data(), x.data(), &stats) != MR_OK)
        FAIL(mr_last_error());
    UNSIGNED_LONGS_EQUAL(2 * 2 * 16 * 2, stats.nic.merges); /* plans, blocks, tokens, layers */
    UNSIGNED_LONGS_EQUAL(3, stats.nic.nodes);
    UNSIGNED_LONGS_EQUAL(2 * (2 * 16 * 2 + 1), stats.jobs);
    CHECK(stats.nic.frames > 0 && stats.pnm.products > 0);
    o.nic = "golden?nodes=1";
    if (mr_flow_nodes_sample(f, &p, &o, z.data(), y.data(), &stats) != MR_OK)
        FAIL(mr_last_error());
    double worst = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        std::vector<double> in(z.begin() + (long)(i * pixels),
                               z.begin() + (long)((i + 1) * pixels)),
            out(pixels);
        LONGS_EQUAL(MR_OK, mr_flow_reference_inverse(f, in.data(), out.data()));
        for (size_t j = 0; j < pixels; j++) {
            worst = std::fmax(worst, std::fabs(out[j] - (double)x[i * pixels + j]));
            apart =
                std::fmax(apart, std::fabs((double)y[i * pixels + j] - (double)x[i * pixels + j]));
        }
    }
    if (!(worst < 1e-4) || !(apart < 1e-4))
        printf("worst %.3g, between node counts %.3g\n", worst, apart);
    CHECK(worst < 1e-4);
    CHECK(apart < 1e-4);
    /* what a cut plan refuses */
    mr_flow_plan *plan;
    p.cut = p.inverse = true;
    p.images = MR_FLOW_CUT_IMAGES + 1;
    LONGS_EQUAL(MR_INVALID_ARGUMENT, mr_flow_plan_create(f, &p, &plan));
    p.images = 4;
    p.inverse = false;
    LONGS_EQUAL(MR_UNSUPPORTED, mr_flow_plan_create(f, &p, &plan));
    mr_pnm_exec_close(o.exec);
    mr_device_close(o.device);
    mr_flow_close(f);
}

TEST(Flow, Bf16AndHybrid) {
    mr_flow_plan_options o = {};
    check(coupling(11, 1, 1, 32, 4, 0.5f), o, 9, 0.15, 1e-4);
    check(tar(12, 4, 2, 32, 1, 2, 0.5f), o, 5, 0.15, 0.15);
    o.mode = {0, 6};
    o.placement = MR_FLOW_TIER_BLIND;
    check(coupling(13, 2, 3, 16, 2, 0.5f), o, 3, 0.15, 1e-4);
}

/* A transposed sign of s would turn one into the other. */
TEST(Flow, LogDeterminantSign) {
    for (float a : {-1.5f, 1.5f}) {
        Maker m = coupling(14, 1, 1, 16, 1, a);
        for (auto &t : m.tensors)
            if (t.first == "c0.wout")
                std::fill(t.second.v.begin(), t.second.v.end(), 0.0f);
        const std::vector<float> mask = m.tensors["c0.mask"].v;
        size_t changes = 0;
        for (size_t i = 0; i < 64; i++) {
            changes += mask[i] == 0;
            m.tensors["c0.bout"].v[i] = mask[i] == 0 ? 20.0f : 0.0f; /* tanh = 1: s = alpha */
            m.tensors["c0.bout"].v[64 + i] = 0;
        }
        mr_flow *f;
        LONGS_EQUAL(MR_OK, m.open("/tmp/millrace-flow-sign.safetensors", &f));
        std::vector<float> x = images(f, 2, 3);
        Run z = play(f, wide(), x);
        DOUBLES_EQUAL((double)a * (double)changes, (double)z.logdet[1], 1e-3);
        for (size_t i = 0; i < 64; i++) {
            double want = (double)x[i] * (mask[i] == 0 ? std::exp((double)a) : 1);
            DOUBLES_EQUAL(want, (double)z.out[i], 1e-5);
        }
        mr_flow_close(f);
    }
}

/* exp(88) is near the largest float32: finite forward, and x comes back from both directions. */
TEST(Flow, ExtremeScales) {
    for (float a : {-87.0f, 88.0f})
        for (float sign : {-1.0f, 1.0f}) {
            Maker m = coupling(15, 1, 1, 16, 1, a);
            auto &wo = m.tensors["c0.wout"].v, &bo = m.tensors["c0.bout"].v;
            std::fill(wo.begin(), wo.end(), 0.0f);
            for (size_t i = 0; i < 64; i++) {
                bo[i] = m.tensors["c0.mask"].v[i] == 0 ? 30 * sign : 0;
                bo[64 + i] = 0;
            }
            mr_flow *f;
            LONGS_EQUAL(MR_OK, m.open("/tmp/millrace-flow-far.safetensors", &f));
            std::vector<float> x = images(f, 3, 4);
            for (float &v : x)
                v *= 0.9f;
            Run z = play(f, wide(), x);
            mr_flow_plan_options o = wide();
            o.inverse = true;
            Run y = play(f, o, z.out);
            for (size_t i = 0; i < x.size(); i++) {
                CHECK(std::isfinite(z.out[i]));
                /* s log2(e) is rounded to 24 bits: 2^-17 of a power there, and back again */
                DOUBLES_EQUAL((double)x[i], (double)y.out[i], 1e-4);
            }
            mr_flow_close(f);
        }
}

TEST(Flow, IdentityScoresAsTheConventionSays) {
    std::vector<float> z(784 * 200);
    mr_flow_normals(0, z.size(), 1, z.data());
    double bpd = mr_flow_bpd(MR_FLOW_FASHION, z.data(), z.size(), 0);
    DOUBLES_EQUAL(9.047, bpd, 4 * 0.5 * std::sqrt(2.0 / (double)z.size()) / std::log(2.0) + 5e-4);
    std::vector<float> other(z.size());
    mr_flow_normals(1, other.size(), 1, other.data());
    CHECK(memcmp(z.data(), other.data(), z.size() * sizeof(float)) != 0);
}

TEST(Flow, DequantisedPixelsComeBack) {
    for (mr_flow_set set : {MR_FLOW_DIGITS, MR_FLOW_FASHION}) {
        Maker m =
            set == MR_FLOW_DIGITS ? coupling(16, 2, 1, 16, 1, 1) : coupling(17, 7, 1, 16, 1, 1);
        mr_flow *f;
        LONGS_EQUAL(MR_OK, m.open("/tmp/millrace-flow-px.safetensors", &f));
        size_t side = set == MR_FLOW_DIGITS ? 8 : 28, pixels = side * side;
        unsigned levels = mr_flow_levels(set);
        std::vector<uint8_t> v(pixels), grey(pixels);
        std::vector<float> x(pixels);
        for (uint32_t index = 0; index < 50; index++) {
            for (size_t i = 0; i < pixels; i++)
                v[i] = (uint8_t)((i + index) % levels);
            mr_flow_images one = {set, 1, side, v.data(), &index};
            mr_flow_image_tokens(f, &one, 0, x.data());
            mr_flow_tokens_grey(f, x.data(), grey.data());
            for (size_t i = 0; i < pixels; i++)
                LONGS_EQUAL((int)(v[i] * 255.0 / (levels - 1) + 0.5), grey[i]);
        }
        mr_flow_close(f);
    }
}

TEST(Flow, Refusals) {
    const Maker good = coupling(18, 1, 1, 16, 2, 1), good_tar = tar(19, 4, 2, 16, 1, 2, 1);
    Maker m = good;
    m.tensors.erase("c1.w2");
    refused("tensor c1.w2 is missing", m);
    m = good;
    m.add("c2.w0", {3}, 1);
    refused("tensor c2.w0 does not belong", m);
    m = good;
    m.add("c0.w1", {16, 1, 1, 15}, 1);
    refused("tensor c0.w1: shape", m);
    m = good;
    m.tensors["c1.b1"].v[3] = NAN;
    refused("tensor c1.b1: element 3 is NaN", m);
    m = good_tar;
    m.tensors["b1.l0.wq"].v[7] = INFINITY;
    refused("tensor b1.l0.wq: element 7 is infinite", m);
    m = good;
    m.tensors["c0.mask"].v[5] = 0.5f;
    refused("tensor c0.mask: element 5", m);
    m = good;
    for (size_t i = 0; i < 64; i++)
        m.tensors["c0.mask"].v[i] = 1;
    refused("tensor c0.mask: all elements", m);
    m = good;
    m.tensors["c0.w0"].v[0] = 1; /* channel 0 has mask 0 */
    refused("tensor c0.w0: element 0", m);
    m = good;
    m.tensors["c0.bout"].v[1] = 1; /* channel 1 has mask 1 */
    refused("tensor c0.bout: element 1", m);
    m = good_tar;
    m.meta["heads"] = "3";
    refused("width", m);
    m = good_tar;
    m.meta["format"] = "millrace-flow-2";
    refused("millrace-flow-2", m);
    m = good_tar;
    m.meta["tokens"] = "15";
    refused("15 tokens", m);
}

TEST(Flow, AutoTakesTheFasterSchedule) {
    mr_flow *f;
    std::string path = "/tmp/millrace-flow-" + std::to_string(seed) + ".safetensors";
    if (coupling(15, 1, 1, 48, 5, 0.5f).open(path, &f) != MR_OK)
        FAIL(mr_last_error());
    for (size_t n : {1, 3, 40, 1000}) {
        mr_flow_plan_info info[3];
        for (mr_flow_schedule s : {MR_FLOW_PIPELINED, MR_FLOW_REPLICATED, MR_FLOW_AUTO}) {
            mr_flow_plan_options o = wide(s);
            o.images = n;
            o.groups = MR_PNM_GROUPS;
            o.mode = {2, 2};
            mr_flow_plan *p;
            LONGS_EQUAL(MR_OK, mr_flow_plan_create(f, &o, &p));
            mr_flow_plan_describe(p, &info[s == MR_FLOW_PIPELINED    ? 0
                                           : s == MR_FLOW_REPLICATED ? 1
                                                                     : 2]);
            mr_flow_plan_destroy(p);
        }
        int faster = info[1].cycles < info[0].cycles;
        LONGS_EQUAL(info[faster].schedule, info[2].schedule);
        DOUBLES_EQUAL(info[faster].cycles, info[2].cycles, 0);
        CHECK(info[2].cycles > 0);
    }
    mr_flow_close(f);
}

TEST(Flow, PartitionsLargerThanTheChip) {
    mr_flow *f;
    LONGS_EQUAL(MR_OK, coupling(20, 1, 1, 16, 2, 1).open("/tmp/millrace-flow-p.safetensors", &f));
    mr_flow_plan *p;
    mr_flow_plan_options o = {};
    o.images = 1;
    o.groups = MR_PNM_GROUPS + 1;
    LONGS_EQUAL(MR_INVALID_ARGUMENT, mr_flow_plan_create(f, &o, &p));
    o.groups = 1;
    o.first = 2; /* no block left: there are two */
    LONGS_EQUAL(MR_INVALID_ARGUMENT, mr_flow_plan_create(f, &o, &p));
    mr_flow_close(f);
}

int main(int argc, char **argv) {
    const char *given = getenv("MR_SEED");
    seed = given ? strtoull(given, nullptr, 10) : std::random_device{}();
    printf("MR_SEED=%llu\n", (unsigned long long)seed);
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
