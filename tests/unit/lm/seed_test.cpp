/* Seed files: what a projection becomes, and everything that must be refused by name. */
#include "tests/unit/lm/support.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "host/units/generator.h"
#include "host/units/rgu_seed.h"

#include <CppUTest/TestHarness.h>

namespace {

struct Tensor {
    std::string dtype;
    std::vector<size_t> shape;
    Bytes data;
};

/* A seed file being made, so that a test can spoil one thing of a good one. */
struct SeedFile {
    std::map<std::string, Tensor> tensors;
    std::map<std::string, std::string> metadata;

    Bytes bytes() const {
        std::string header = "{\"__metadata__\":{", body;
        const char *comma = "";
        for (const auto &m : metadata) {
            header += comma + ("\"" + m.first + "\":\"" + m.second + "\"");
            comma = ",";
        }
        header += "}";
        Bytes data;
        for (const auto &t : tensors) {
            header += ",\"" + t.first + "\":{\"dtype\":\"" + t.second.dtype + "\",\"shape\":[";
            comma = "";
            for (size_t n : t.second.shape) {
                header += comma + std::to_string(n);
                comma = ",";
            }
            header += "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
            append(data, t.second.data.data(), t.second.data.size());
            header += std::to_string(data.size()) + "]}";
        }
        header += "}";
        Bytes out;
        uint64_t n = header.size();
        append(out, &n, 8);
        append(out, header.data(), header.size());
        append(out, data.data(), data.size());
        return out;
    }
};

template <class T>
Tensor tensor(const char *dtype, std::vector<size_t> shape, const std::vector<T> &v) {
    Tensor t = {dtype, shape, {}};
    append(t.data, v.data(), v.size() * sizeof(T));
    return t;
}

SeedFile good(std::mt19937_64 &rng, size_t rows, size_t cols, int n, size_t terms, bool scaled) {
    const size_t d = (size_t)1 << n, co = (rows + d - 1) / d, ci = (cols + d - 1) / d,
                 p = (size_t)(n * (n - 1) / 2);
    std::vector<int16_t> angles(terms * co * ci * 2 * p);
    std::vector<float> gain(terms * co * ci), scale(rows);
    std::vector<uint8_t> odd(terms * co * ci);
    std::normal_distribution<float> normal;
    for (auto &v : angles)
        v = (int16_t)rng();
    for (auto &v : gain)
        v = normal(rng);
    for (auto &v : scale)
        v = normal(rng);
    for (auto &v : odd)
        v = (uint8_t)(rng() % 2);
    SeedFile f;
    f.tensors["w.angles"] = tensor("I16", {terms, co, ci, 2, p}, angles);
    f.tensors["w.gain"] = tensor("F32", {terms, co, ci}, gain);
    f.tensors["w.odd"] = tensor("U8", {terms, co, ci}, odd);
    if (scaled)
        f.tensors["w.row_scale"] = tensor("F32", {rows}, scale);
    f.metadata = {{"w.n", std::to_string(n)},
                  {"w.shape", std::to_string(rows) + "," + std::to_string(cols)}};
    return f;
}

struct Loaded {
    Bytes bytes;
    mr_safetensors *st = nullptr;
    mr_projection *p = nullptr;
    mr_status status;
    explicit Loaded(const SeedFile &f, const char *name = "w") : bytes(f.bytes()) {
        status = mr_safetensors_open_memory(bytes.data(), bytes.size(), "f", &st);
        if (status == MR_OK)
            status = mr_projection_load(st, name, &p);
    }
    ~Loaded() {
        mr_projection_free(p);
        mr_safetensors_close(st);
    }
};

void refused(const char *word, const std::function<void(SeedFile &)> &spoil) {
    std::mt19937_64 rng = test_rng(200);
    SeedFile f = good(rng, 300, 500, 8, 2, true);
    { CHECK_STATUS(MR_OK, Loaded(f).status); }
    spoil(f);
    CHECK_REFUSED(MR_BAD_FORMAT, word, Loaded(f).status);
    CHECK(strncmp(mr_last_error(), "f: ", 3) == 0);
}

} // namespace

TEST_GROUP(Seeds){};

TEST(Seeds, BecomeJobs) {
    std::mt19937_64 rng = test_rng(201);
    SeedFile f = good(rng, 300, 500, 8, 3, true);
    Loaded l(f);
    CHECK_STATUS(MR_OK, l.status);
    LONGS_EQUAL(8, l.p->job.n);
    LONGS_EQUAL(3, l.p->job.terms);
    LONGS_EQUAL(2, l.p->job.chunks_out);
    LONGS_EQUAL(2, l.p->job.chunks_in);
    LONGS_EQUAL(500, l.p->job.col1);
    LONGS_EQUAL(0, (uintptr_t)l.p->image % 64);
    LONGS_EQUAL(3 * 4 * (2 * 28 * 2 + 4 + 1) + 300 * 4, l.p->stored_bytes);
    LONGS_EQUAL(512 * 4, l.p->scale_bytes);
    CHECK(l.p->row_scale[300] == 1.0f);
    STRCMP_EQUAL("w", l.p->name);
    size_t length;
    const char *name = mr_projection_name(l.st, 0, &length);
    CHECK(name && length == 1 && name[0] == 'w');
    POINTERS_EQUAL(nullptr, mr_projection_name(l.st, 1, &length));
}

/* I8 angles are v * pi / 128: the same matrix as I16 angles of 256 v, -128 included. */
TEST(Seeds, ByteAngles) {
    std::mt19937_64 rng = test_rng(202);
    SeedFile f = good(rng, 256, 256, 8, 1, false), wide = f;
    std::vector<int8_t> a(56);
    std::vector<int16_t> b;
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = i == 0 ? -128 : (int8_t)rng();
        b.push_back((int16_t)(a[i] * 256));
    }
    f.tensors["w.angles"] = tensor("I8", {1, 1, 1, 2, 28}, a);
    wide.tensors["w.angles"] = tensor("I16", {1, 1, 1, 2, 28}, b);
    Loaded x(f), y(wide);
    CHECK_STATUS(MR_OK, x.status);
    CHECK_STATUS(MR_OK, y.status);
    LONGS_EQUAL(y.p->image_bytes, x.p->image_bytes);
    MEMCMP_EQUAL(y.p->image, x.p->image, x.p->image_bytes);
}

TEST(Seeds, NotThere) {
    std::mt19937_64 rng = test_rng(203);
    SeedFile f = good(rng, 256, 256, 8, 1, false);
    CHECK_REFUSED(MR_NOT_FOUND, "no projection v", Loaded(f, "v").status);
    CHECK_REFUSED(MR_NOT_FOUND, "no projection", Loaded(f, "").status);
    CHECK_STATUS(MR_NOT_FOUND, Loaded(f, std::string(1000, 'x').c_str()).status);
}

TEST(Seeds, RefuseWhatIsInconsistent) {
    refused("tensor w.gain is missing", [](SeedFile &f) { f.tensors.erase("w.gain"); });
    refused("tensor w.odd is missing", [](SeedFile &f) { f.tensors.erase("w.odd"); });
    refused("metadata w.n is missing", [](SeedFile &f) { f.metadata.erase("w.n"); });
    refused("metadata w.shape is missing", [](SeedFile &f) { f.metadata.erase("w.shape"); });
    refused("w.n is 9; supported are 8 and 10", [](SeedFile &f) { f.metadata["w.n"] = "9"; });
    refused("w.n is 4294967304", [](SeedFile &f) { f.metadata["w.n"] = "4294967304"; });
    for (const char *n : {"", "8.0", " 8", "-8", "99999999999999999999"})
        refused("not a number", [n](SeedFile &f) { f.metadata["w.n"] = n; });
    for (const char *s :
         {"", "300", "300,", "300,500,1", "300, 500", "-300,500", "99999999999999999999,1"})
        refused("not \"d_out,d_in\"", [s](SeedFile &f) { f.metadata["w.shape"] = s; });
    refused("at least 1", [](SeedFile &f) { f.metadata["w.shape"] = "0,500"; });
    refused("too large", [](SeedFile &f) { f.metadata["w.shape"] = "300,16777217"; });
    /* more or fewer chunks than the shape needs */
    refused("tensor w.angles: shape is [2, 2, 2, 2, 28], must be [*, 3, 2, 2, 28]",
            [](SeedFile &f) { f.metadata["w.shape"] = "513,500"; });
    refused("must be [*, 1, 2, 2, 28]", [](SeedFile &f) { f.metadata["w.shape"] = "256,500"; });
    /* angles of another n */
    refused("must be [*, 1, 1, 2, 45]", [](SeedFile &f) { f.metadata["w.n"] = "10"; });
    refused("tensor w.angles: dtype is U8", [](SeedFile &f) {
        f.tensors["w.angles"] = tensor("U8", {2, 2, 2, 2, 28}, std::vector<uint8_t>(448));
    });
    refused("tensor w.angles: shape is [448]",
            [](SeedFile &f) { f.tensors["w.angles"].shape = {448}; });
    refused("tensor w.gain: shape is [2, 4]", [](SeedFile &f) {
        f.tensors["w.gain"].shape = {2, 4};
    });
    refused("tensor w.gain: dtype is I32", [](SeedFile &f) { f.tensors["w.gain"].dtype = "I32"; });
    refused("tensor w.odd: dtype is I8", [](SeedFile &f) { f.tensors["w.odd"].dtype = "I8"; });
    refused("tensor w.row_scale: shape is [299]", [](SeedFile &f) {
        f.tensors["w.row_scale"] = tensor("F32", {299}, std::vector<float>(299));
    });
    refused("tensor w.signs: no part of a seed",
            [](SeedFile &f) { f.tensors["w.signs"] = tensor("U8", {1}, std::vector<uint8_t>(1)); });
}

/* An experiment of the zoo (FORMAT.md) that no generator here has: said, not ignored. */
TEST(Seeds, SignDiagonalsAreUnsupported) {
    std::mt19937_64 rng = test_rng(206);
    SeedFile f = good(rng, 10, 20, 8, 1, false);
    f.tensors["w.sign_seed"] = tensor("U32", {1, 1, 1, 2}, std::vector<uint32_t>(2));
    CHECK_REFUSED(MR_UNSUPPORTED, "w.sign_seed", Loaded(f).status);
}

TEST(Seeds, RefuseBadValues) {
    for (float v : {INFINITY, -INFINITY, (float)NAN}) {
        refused("tensor w.gain: element [1, 0, 1] is not finite",
                [v](SeedFile &f) { memcpy(&f.tensors["w.gain"].data[5 * 4], &v, 4); });
        refused("tensor w.row_scale: element [299] is not finite",
                [v](SeedFile &f) { memcpy(&f.tensors["w.row_scale"].data[299 * 4], &v, 4); });
    }
    refused("tensor w.odd: element [0, 1, 0] is 2",
            [](SeedFile &f) { f.tensors["w.odd"].data[2] = 2; });
}

TEST(Seeds, TermsOneToThirtyTwo) {
    std::mt19937_64 rng = test_rng(204);
    for (size_t terms : {1, 32}) {
        SeedFile f = good(rng, 10, 20, 8, terms, false);
        CHECK_STATUS(MR_OK, Loaded(f).status);
    }
    for (size_t terms : {0, 33, 1000}) {
        SeedFile f = good(rng, 10, 20, 8, terms, false);
        CHECK_REFUSED(MR_BAD_FORMAT, "terms; must be 1 to 32", Loaded(f).status);
    }
}

/* The generator interface over the golden model gives the definition's weights, window by window.
 */
TEST(Seeds, GeneratedWindowsFollowTheDefinition) {
    std::mt19937_64 rng = test_rng(205);
    SeedFile f = good(rng, 300, 500, 8, 2, true);
    Loaded l(f);
    CHECK_STATUS(MR_OK, l.status);
    const size_t d = 256;
    std::vector<double> w(300 * 500), chunk(d * d);
    double sigma = 0;
    for (size_t o = 0; o < 2; o++)
        for (size_t i = 0; i < 2; i++) {
            LONGS_EQUAL(0, mr_def_chunk(&l.p->seed, o, i, chunk.data()));
            for (size_t r = 0; r < d && o * d + r < 300; r++)
                for (size_t c = 0; c < d && i * d + c < 500; c++)
                    w[(o * d + r) * 500 + i * d + c] =
                        chunk[r * d + c] * l.p->seed.row_scale[o * d + r];
            double gains = 0;
            for (size_t t = 0; t < 2; t++)
                gains += pow(l.p->seed.gain[(t * 2 + o) * 2 + i], 2);
            sigma = std::max(sigma, sqrt(gains / d));
        }
    mr_generator *g;
    mr_generator_seed *seed;
    mr_generator_slot *slot[2];
    CHECK_STATUS(MR_OK, mr_generator_open("golden", nullptr, 1000000000, &g));
    CHECK_STATUS(MR_OK, mr_generator_seed_create(g, l.p, &seed));
    for (auto &s : slot)
        CHECK_STATUS(MR_OK, mr_generator_slot_create(g, 300 * 500 * 4, 0, &s));
    for (int round = 0; round < 6; round++) {
        mr_rgu_job job[2];
        for (int k = 0; k < 2; k++) { /* two in flight */
            job[k] = l.p->job;
            job[k].format = MR_RGU_FP32;
            job[k].row0 = (uint32_t)(rng() % 300);
            job[k].row1 = job[k].row0 + 1 + (uint32_t)(rng() % (300 - job[k].row0));
            job[k].col0 = (uint32_t)(rng() % 500);
            job[k].col1 = job[k].col0 + 1 + (uint32_t)(rng() % (500 - job[k].col0));
            CHECK_STATUS(MR_OK, mr_generator_tile(seed, &job[k], slot[k]));
        }
        for (int k = 0; k < 2; k++) {
            const void *data;
            CHECK_STATUS(MR_OK, mr_generator_wait(slot[k], &data, nullptr));
            const float *have = (const float *)data;
            for (size_t r = job[k].row0; r < job[k].row1; r++)
                for (size_t c = job[k].col0; c < job[k].col1; c++) {
                    double want = w[r * 500 + c], rho = std::fabs(l.p->seed.row_scale[r]);
                    double bound = std::ldexp(std::fabs(want), -8) + std::ldexp(sigma * rho, -11);
                    if (!(std::fabs(want - *have) <= bound))
                        DOUBLES_EQUAL(want, *have, bound);
                    have++;
                }
        }
    }
    mr_rgu_job empty = l.p->job;
    empty.row1 = empty.row0;
    CHECK_REFUSED(MR_INVALID_ARGUMENT, "empty or outside",
                  mr_generator_tile(seed, &empty, slot[0]));
    empty.row1 = 301;
    CHECK_REFUSED(MR_INVALID_ARGUMENT, "empty or outside",
                  mr_generator_tile(seed, &empty, slot[0]));
    for (auto &s : slot)
        mr_generator_slot_destroy(s);
    mr_generator_seed_destroy(seed);
    mr_generator_close(g);
}
