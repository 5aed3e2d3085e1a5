/* Every kernel of the language model against float64, on every device that runs kernels. */
#include "tests/unit/lm/support.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>
#include <numeric>

#include <CppUTest/TestHarness.h>

namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
using Halves = std::vector<uint16_t>;

const float INF = INFINITY;

std::vector<std::string> devices() {
    std::vector<std::string> out;
    mr_device_info *list;
    size_t count;
    CHECK_STATUS(MR_OK, mr_devices(&list, &count));
    for (size_t i = 0; i < count; i++)
        if (list[i].available && (list[i].caps & MR_CAP_KERNELS))
            out.push_back(list[i].uri);
    mr_devices_free(list);
    return out;
}

struct Gpu {
    mr_device *device = nullptr;
    mr_queue *queue = nullptr;
    explicit Gpu(const std::string &uri) {
        CHECK_STATUS(MR_OK, mr_device_open(uri.c_str(), &device));
        CHECK_STATUS(MR_OK, mr_queue_create(device, &queue));
    }
    ~Gpu() { mr_device_close(device); }
    void run(const char *name, std::vector<mr_arg> args, size_t items) {
        const size_t global[3] = {(items + 63) / 64 * 64, 1, 1};
        mr_event *event = nullptr;
        args.push_back(mr_arg_i32((int32_t)items));
        CHECK_STATUS(MR_OK, mr_kernel_launch(queue, name, args.data(), args.size(), global, nullptr,
                                             &event));
        mr_status s = mr_event_wait(event, 60000000000u);
        mr_event_destroy(event);
        CHECK_STATUS(MR_OK, s);
    }
};

void on_all(const std::function<void(Gpu &)> &test) {
    for (const std::string &uri : devices()) {
        Gpu gpu(uri);
        test(gpu);
    }
}

/* Data `skip` elements into a buffer, with guards on both sides that nobody may touch. */
template <class T>
struct Array {
    static constexpr size_t guard = 16;
    mr_buffer *buffer = nullptr;
    size_t skip, size;
    std::vector<T> around;
    Array(Gpu &gpu, const std::vector<T> &data, size_t skip_ = 0)
        : skip(skip_ + guard), size(data.size()), around(data.size() + skip_ + 2 * guard) {
        memset(around.data(), 0x5A, around.size() * sizeof(T));
        if (size)
            memcpy(around.data() + skip, data.data(), size * sizeof(T));
        CHECK_STATUS(MR_OK, mr_buffer_create(gpu.device, around.size() * sizeof(T), &buffer));
        CHECK_STATUS(MR_OK, mr_buffer_write(buffer, 0, around.data(), around.size() * sizeof(T)));
    }
    ~Array() { mr_buffer_destroy(buffer); }
    operator mr_arg() const { return mr_arg_buffer(buffer, skip * sizeof(T)); }
    mr_arg at(size_t element) const { return mr_arg_buffer(buffer, (skip + element) * sizeof(T)); }
    std::vector<T> get() const {
        std::vector<T> all(around.size());
        CHECK_STATUS(MR_OK, mr_buffer_read(buffer, 0, all.data(), all.size() * sizeof(T)));
        CHECK(memcmp(all.data(), around.data(), skip * sizeof(T)) == 0);
        CHECK(memcmp(all.data() + skip + size, around.data() + skip + size, guard * sizeof(T)) ==
              0);
        return std::vector<T>(all.begin() + (long)skip, all.begin() + (long)(skip + size));
    }
};

mr_arg i32(size_t v) { return mr_arg_i32((int32_t)v); }
mr_arg f32(float v) { return mr_arg_f32(v); }
const mr_arg none = mr_arg_buffer(nullptr, 0);

Floats normal(std::mt19937_64 &rng, size_t n, float scale = 1) {
    std::normal_distribution<float> d(0, scale);
    Floats out(n);
    for (float &v : out)
        v = d(rng);
    return out;
}

uint16_t bf16(float v) { /* of values whose rounding does not matter here: the upper half */
    uint32_t u;
    memcpy(&u, &v, 4);
    return (uint16_t)(u >> 16);
}

double wide(uint16_t v) {
    uint32_t u = (uint32_t)v << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

Halves bf16(const Floats &v) {
    Halves out;
    for (float f : v)
        out.push_back(bf16(f));
    return out;
}

void close_to(double want, double have, double tolerance) {
    if (!(std::fabs(want - have) <= tolerance))
        DOUBLES_EQUAL(want, have, tolerance);
}

bool same_bits(const Floats &a, const Floats &b) {
    return a.size() == b.size() &&
           (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

} // namespace

TEST_GROUP(LmKernels){};

TEST(LmKernels, Embed) {
    std::mt19937_64 rng = test_rng(100);
    on_all([&](Gpu &gpu) {
        const size_t dim = 46, vocab = 7;
        Halves table = bf16(normal(rng, dim * vocab));
        Ints token = {0, 6, 3, -1, 7, INT_MIN, INT_MAX, 3};
        Array<uint16_t> t(gpu, table, 1);
        Array<int32_t> k(gpu, token);
        Array<float> y(gpu, Floats(token.size() * dim, NAN), 3);
        gpu.run("lm_embed", {y, t, k, i32(dim), i32(vocab)}, token.size() * dim);
        Floats out = y.get();
        for (size_t i = 0; i < out.size(); i++) {
            int32_t id = token[i / dim];
            double want = id >= 0 && id < (int)vocab ? wide(table[(size_t)id * dim + i % dim]) : 0;
            CHECK(out[i] == want);
        }
    });
}

TEST(LmKernels, RmsNorm) {
    std::mt19937_64 rng = test_rng(101);
    on_all([&](Gpu &gpu) {
        for (size_t dim : {1, 7, 16, 46, 256})
            for (bool in_place : {false, true}) {
                const size_t n = 5;
                Floats x = normal(rng, n * dim, 3), g = normal(rng, dim);
                std::fill(x.begin(), x.begin() + (long)dim, 0.0f); /* a vector of zeros */
                Array<float> ax(gpu, x, 1), ag(gpu, g, 2), ay(gpu, Floats(x.size(), NAN), 3);
                const Array<float> &y = in_place ? ax : ay;
                gpu.run("lm_rmsnorm", {y, ax, ag, i32(dim), f32(1e-5f)}, n);
                Floats out = y.get();
                for (size_t t = 0; t < n; t++) {
                    double sum = 0;
                    for (size_t c = 0; c < dim; c++)
                        sum += (double)x[t * dim + c] * x[t * dim + c];
                    double r = 1 / sqrt(sum / (double)dim + 1e-5);
                    for (size_t c = 0; c < dim; c++) {
                        double want = x[t * dim + c] * r * g[c];
                        close_to(want, out[t * dim + c], 1e-6 * (1 + std::fabs(want)));
                    }
                }
            }
    });
}

TEST(LmKernels, Rope) {
    std::mt19937_64 rng = test_rng(102);
    on_all([&](Gpu &gpu) {
        for (size_t half : {1, 20, 23, 40}) {
            const size_t heads = 3, count = 4, pos0 = 5, stride = heads * 2 * half + 2;
            Floats x = normal(rng, count * stride), c, s;
            for (size_t t = 0; t < pos0 + count; t++)
                for (size_t j = 0; j < half; j++) {
                    double a = (double)t * pow(10000.0, -(double)j / (double)half);
                    c.push_back((float)cos(a));
                    s.push_back((float)sin(a));
                }
            Array<float> ax(gpu, x, 1), ac(gpu, c), as(gpu, s, 5);
            gpu.run("lm_rope", {ax, ac, as, i32(heads), i32(half), i32(stride), i32(pos0)},
                    count * heads * half);
            Floats out = ax.get();
            for (size_t t = 0; t < count; t++) {
                for (size_t h = 0; h < heads; h++)
                    for (size_t j = 0; j < half; j++) {
                        size_t a = t * stride + h * 2 * half + j, b = a + half;
                        double co = c[(pos0 + t) * half + j], si = s[(pos0 + t) * half + j];
                        close_to(x[a] * co - x[b] * si, out[a], 1e-6 * 8);
                        close_to(x[b] * co + x[a] * si, out[b], 1e-6 * 8);
                    }
                CHECK(out[t * stride + stride - 1] ==
                      x[t * stride + stride - 1]); /* between rows */
            }
        }
    });
}

namespace {

struct Product {
    size_t rows, cols, count;
    bool indexed, add;
};

/* y as float64 and the scale of its rounding errors, for a matrix given as doubles. */
void check_product(const Product &p, const std::vector<double> &w, const Floats &x, const Ints &in,
                   size_t div, const Ints &to, const Floats &before, const Floats &out) {
    std::vector<bool> written(out.size(), false);
    for (size_t t = 0; t < p.count; t++)
        for (size_t r = 0; r < p.rows; r++) {
            size_t row = p.indexed ? (size_t)in[t] / div : t,
                   at = (p.indexed ? (size_t)to[t] : t) * p.rows + r;
            double sum = 0, size = 0;
            for (size_t c = 0; c < p.cols; c++) {
                double v = w[r * p.cols + c] * x[row * p.cols + c];
                sum += v;
                size += std::fabs(v);
            }
            sum += p.add ? before[at] : 0.0f;
            close_to(sum, out[at], 2e-6 * (size + std::fabs(sum)) + 1e-30);
            written[at] = true;
        }
    for (size_t i = 0; i < out.size(); i++)
        if (!written[i])
            CHECK(memcmp(&out[i], &before[i], sizeof(float)) == 0);
}

const Product products[] = {{1, 1, 1, false, false},    {3, 5, 2, false, false},
                            {46, 47, 4, false, true},   {17, 40, 5, true, false},
                            {64, 256, 7, true, false},  {80, 33, 9, true, true},
                            {256, 256, 1, false, true}, {5, 16, 3, true, false}};

} // namespace

TEST(LmKernels, Matmul) {
    std::mt19937_64 rng = test_rng(103);
    on_all([&](Gpu &gpu) {
        for (const Product &p : products)
            for (size_t skip : {0, 1, 3, 7}) {
                const size_t div = 2, rows_x = p.count + 3, rows_y = p.count + 4;
                Halves w = bf16(normal(rng, p.rows * p.cols));
                Floats x = normal(rng, rows_x * p.cols), before = normal(rng, rows_y * p.rows);
                Ints in, to(rows_y);
                std::iota(to.begin(), to.end(), 0);
                std::shuffle(to.begin(), to.end(), rng);
                for (size_t t = 0; t < p.count; t++)
                    in.push_back((int32_t)(rng() % (rows_x * div)));
                Array<uint16_t> aw(gpu, w, skip);
                Array<float> ax(gpu, x, skip), ay(gpu, before, 7 - skip);
                Array<int32_t> ai(gpu, in), ao(gpu, to);
                gpu.run("lm_matmul",
                        {ay, aw, ax, p.indexed ? (mr_arg)ai : none, i32(p.indexed ? div : 1),
                         p.indexed ? (mr_arg)ao : none, i32(p.rows), i32(p.cols), i32(p.count),
                         i32(p.rows), i32(p.cols), mr_arg_i32(p.add)},
                        p.rows * ((p.count + 3) / 4));
                std::vector<double> dense;
                for (uint16_t v : w)
                    dense.push_back(wide(v));
                check_product(p, dense, x, in, div, to, before, ay.get());
            }
    });
}

TEST(LmKernels, MatmulCodewords) {
    std::mt19937_64 rng = test_rng(104);
    on_all([&](Gpu &gpu) {
        for (size_t variety = 0; variety < 6; variety++)
            for (Product p : products) {
                const size_t groups = variety % 3 + 1, bits = variety / 3 + 1;
                size_t group = bits == 2 ? (p.cols + 3) / 4 * 4 : (p.cols + 7) / 8 * 8;
                p.cols = group * groups;
                std::vector<uint8_t> codes(p.rows * p.cols * bits / 8);
                for (uint8_t &c : codes)
                    c = (uint8_t)rng();
                Floats scales = normal(rng, p.rows * groups),
                       x = normal(rng, (p.count + 3) * p.cols),
                       before = normal(rng, (p.count + 4) * p.rows);
                Ints in, to(p.count + 4);
                std::iota(to.begin(), to.end(), 0);
                std::shuffle(to.begin(), to.end(), rng);
                for (size_t t = 0; t < p.count; t++)
                    in.push_back((int32_t)(rng() % (p.count + 3)));
                Array<uint8_t> ac(gpu, codes, 1);
                Array<float> as(gpu, scales, 1), ax(gpu, x, 2), ay(gpu, before, 3);
                Array<int32_t> ai(gpu, in), ao(gpu, to);
                gpu.run("lm_matmul_code",
                        {ay, ac, as, ax, p.indexed ? (mr_arg)ai : none, i32(1),
                         p.indexed ? (mr_arg)ao : none, i32(p.rows), i32(p.cols), i32(group),
                         i32(bits), i32(p.count), i32(p.rows), i32(p.cols), mr_arg_i32(p.add)},
                        p.rows * ((p.count + 3) / 4));
                const float two[4] = {-1.0f, -1.0f / 3.0f, 1.0f / 3.0f, 1.0f},
                            one[2] = {-1.0f, 1.0f};
                std::vector<double> dense;
                for (size_t r = 0; r < p.rows; r++)
                    for (size_t c = 0; c < p.cols; c++) {
                        size_t bit = (r * p.cols + c) * bits;
                        unsigned code = codes[bit / 8] >> bit % 8 & ((1u << bits) - 1);
                        volatile float product =
                            scales[r * groups + c / group] * (bits == 2 ? two : one)[code];
                        dense.push_back(product);
                    }
                check_product(p, dense, x, in, 1, to, before, ay.get());
            }
    });
}

/* A row beyond the count may hold anything: the others must not notice, bit for bit. */
TEST(LmKernels, PadRowsDoNotLeak) {
    std::mt19937_64 rng = test_rng(105);
    on_all([&](Gpu &gpu) {
        const size_t rows = 33, cols = 70, most = 5;
        Halves w = bf16(normal(rng, rows * cols));
        Floats x = normal(rng, (most + 4) * cols);
        Array<uint16_t> aw(gpu, w);
        for (size_t count = 1; count <= most; count++) {
            Floats out[2];
            for (int poisoned = 0; poisoned < 2; poisoned++) {
                Floats in = x;
                for (size_t i = count * cols; poisoned && i < in.size(); i++)
                    in[i] = i % 2 ? NAN : INF;
                Array<float> ax(gpu, in), ay(gpu, Floats((most + 4) * rows, 1.25f));
                gpu.run("lm_matmul",
                        {ay, aw, ax, none, i32(1), none, i32(rows), i32(cols), i32(count),
                         i32(rows), i32(cols), mr_arg_i32(0)},
                        rows * ((count + 3) / 4));
                out[poisoned] = ay.get();
            }
            CHECK(same_bits(out[0], out[1]));
            CHECK(out[0][count * rows] == 1.25f);
        }
    });
}

/* ---- attention --------------------------------------------------------------------------------
 */

namespace {

struct Shape {
    size_t heads, kv_heads, dim;
};
const Shape shapes[] = {{1, 1, 40}, {5, 1, 46}, {7, 7, 47}, {12, 4, 80}, {40, 8, 5}, {2, 1, 64}};

/* softmax(q k) v in float64 of one head over keys first..last-1. */
std::vector<double> attend(const float *q, const float *k, const float *v, size_t stride,
                           size_t first, size_t last, size_t dim, float scale) {
    std::vector<double> l, out(dim, 0);
    double top = -INF, sum = 0;
    for (size_t t = first; t < last; t++) {
        double s = 0;
        for (size_t j = 0; j < dim; j++)
            s += (double)q[j] * k[t * stride + j];
        l.push_back(s * scale);
        top = std::max(top, l.back());
    }
    for (size_t t = first; t < last; t++) {
        double p = exp(l[t - first] - top);
        sum += p;
        for (size_t j = 0; j < dim; j++)
            out[j] += p * v[t * stride + j];
    }
    for (double &o : out)
        o /= sum;
    return out;
}

struct Partial {
    Floats m, d, o;
};

Partial decode(Gpu &gpu, const Shape &s, const Floats &q, const Floats &k, const Floats &v,
               size_t first, size_t last, float scale, size_t skip = 0) {
    Array<float> m(gpu, Floats(s.heads, NAN)), d(gpu, Floats(s.heads, NAN)),
        o(gpu, Floats(s.heads * s.dim, NAN), skip), aq(gpu, q, skip), ak(gpu, k, 7 - skip),
        av(gpu, v, skip);
    gpu.run("lm_attention_decode",
            {m, d, o, aq, ak, av, i32(s.heads), i32(s.kv_heads), i32(s.dim), i32(first), i32(last),
             i32(s.kv_heads * s.dim), f32(scale)},
            s.heads);
    return {m.get(), d.get(), o.get()};
}

Partial merge(Gpu &gpu, const std::vector<Partial> &parts, size_t heads, size_t dim) {
    Floats m, d, o;
    for (const Partial &p : parts) {
        m.insert(m.end(), p.m.begin(), p.m.end());
        d.insert(d.end(), p.d.begin(), p.d.end());
        o.insert(o.end(), p.o.begin(), p.o.end());
    }
    Array<float> am(gpu, m), ad(gpu, d), ao(gpu, o, 3), out(gpu, Floats(heads * dim, NAN), 1),
        om(gpu, Floats(heads, NAN)), od(gpu, Floats(heads, NAN));
    gpu.run("lm_attention_merge", {out, om, od, am, ad, ao, i32(parts.size()), i32(dim)}, heads);
    return {om.get(), od.get(), out.get()};
}

} // namespace

TEST(LmKernels, AttentionPrefill) {
    std::mt19937_64 rng = test_rng(106);
    on_all([&](Gpu &gpu) {
        size_t skip = 0;
        for (const Shape &s : shapes)
            for (size_t pos0 : {0, 9}) {
                const size_t count = 6, keys = pos0 + count, stride = s.kv_heads * s.dim,
                             qs = s.heads * s.dim;
                Floats q = normal(rng, count * qs), k = normal(rng, keys * stride),
                       v = normal(rng, keys * stride);
                float scale = 1 / sqrtf((float)s.dim);
                skip = skip % 7 + 1; /* views off by 1..7 elements */
                Array<float> aq(gpu, q, skip), ak(gpu, k, 8 - skip), av(gpu, v, skip),
                    o(gpu, Floats(count * qs, NAN), 8 - skip);
                gpu.run("lm_attention",
                        {o, aq, ak, av, i32(s.heads), i32(s.kv_heads), i32(s.dim), i32(pos0),
                         i32(qs), i32(stride), i32(qs), f32(scale)},
                        count * s.heads);
                Floats out = o.get();
                for (size_t t = 0; t < count; t++)
                    for (size_t h = 0; h < s.heads; h++) {
                        size_t kv = h / (s.heads / s.kv_heads) * s.dim;
                        std::vector<double> want = attend(&q[t * qs + h * s.dim], &k[kv], &v[kv],
                                                          stride, 0, pos0 + t + 1, s.dim, scale);
                        for (size_t j = 0; j < s.dim; j++)
                            close_to(want[j], out[t * qs + h * s.dim + j], 5e-6);
                    }
            }
    });
}

/* One pass, or shards merged, empty ones among them, at every place. */
TEST(LmKernels, AttentionDecodeAndMerge) {
    std::mt19937_64 rng = test_rng(107);
    on_all([&](Gpu &gpu) {
        for (const Shape &s : shapes) {
            const size_t keys = 37, stride = s.kv_heads * s.dim;
            Floats q = normal(rng, s.heads * s.dim, 3), k = normal(rng, keys * stride),
                   v = normal(rng, keys * stride);
            float scale = 1 / sqrtf((float)s.dim);
            const std::vector<std::vector<size_t>> cuts = {{0, 37},           {0, 1, 37},
                                                           {0, 0, 37},        {0, 36, 37, 37},
                                                           {0, 5, 5, 18, 37}, {0, 0, 0, 37, 37}};
            for (const auto &cut : cuts) {
                std::vector<Partial> parts;
                for (size_t p = 0; p + 1 < cut.size(); p++)
                    parts.push_back(decode(gpu, s, q, k, v, cut[p], cut[p + 1], scale, 1 + p % 7));
                Partial out = merge(gpu, parts, s.heads, s.dim);
                for (size_t h = 0; h < s.heads; h++) {
                    size_t kv = h / (s.heads / s.kv_heads) * s.dim;
                    std::vector<double> want =
                        attend(&q[h * s.dim], &k[kv], &v[kv], stride, 0, keys, s.dim, scale);
                    for (size_t j = 0; j < s.dim; j++)
                        close_to(want[j], out.o[h * s.dim + j], 5e-6);
                }
            }
        }
    });
}

TEST(LmKernels, EmptyIsTheIdentityOfMerging) {
    std::mt19937_64 rng = test_rng(108);
    on_all([&](Gpu &gpu) {
        const Shape s = {3, 1, 46};
        Floats q = normal(rng, s.heads * s.dim), k = normal(rng, 5 * s.dim),
               v = normal(rng, 5 * s.dim);
        Partial full = decode(gpu, s, q, k, v, 0, 5, 0.2f),
                empty = decode(gpu, s, q, k, v, 3, 3, 0.2f);
        for (size_t h = 0; h < s.heads; h++)
            CHECK(empty.m[h] == -INF && empty.d[h] == 0);
        CHECK(same_bits(empty.o, Floats(s.heads * s.dim, 0.0f)));
        Partial alone = merge(gpu, {full}, s.heads, s.dim);
        CHECK(same_bits(alone.m, full.m) && same_bits(alone.d, full.d));
        for (float wrong : {-INF, INF, 0.0f, (float)NAN}) { /* what others put there for "no key" */
            Partial e = empty;
            std::fill(e.m.begin(), e.m.end(), wrong);
            std::fill(e.o.begin(), e.o.end(), wrong == 0 ? (float)NAN : 0.0f);
            for (const auto &parts :
                 std::vector<std::vector<Partial>>{{full, e}, {e, full}, {e, full, e}}) {
                Partial out = merge(gpu, parts, s.heads, s.dim);
                CHECK(same_bits(out.m, alone.m) && same_bits(out.d, alone.d) &&
                      same_bits(out.o, alone.o));
            }
            Partial nothing = merge(gpu, {e, e, e}, s.heads, s.dim);
            CHECK(same_bits(nothing.o, Floats(s.heads * s.dim, 0.0f)));
            for (size_t h = 0; h < s.heads; h++)
                CHECK(nothing.m[h] == -INF && nothing.d[h] == 0);
        }
    });
}

/* Logits far from zero, and keys whose logit is -Inf, wherever they stand. */
TEST(LmKernels, AttentionExtremes) {
    on_all([&](Gpu &gpu) {
        const Shape s = {1, 1, 1};
        const Floats v = {1, 2, 3, 4};
        auto run = [&](const Floats &logits) {
            return merge(gpu, {decode(gpu, s, {1}, logits, v, 0, logits.size(), 1)}, 1, 1);
        };
        CHECK(run({-6e4f, -6e4f, -6e4f, -6e4f}).o[0] == 2.5f);
        close_to((1 + 2 / M_E) / (1 + 1 / M_E), run({-6e4f, -6e4f - 1}).o[0], 1e-6);
        CHECK(run({3e38f, -3e38f}).o[0] == 1);
        CHECK(run({-3e38f, 3e38f}).o[0] == 2);
        CHECK(run({-3e38f, -3e38f}).o[0] == 1.5f);
        for (size_t live = 0; live < 4; live++) {
            Floats l(4, -INF);
            l[live] = -1e4f;
            CHECK(run(l).o[0] == v[live]);
        }
        Partial masked = decode(gpu, s, {1}, Floats(4, -INF), v, 0, 4, 1);
        CHECK(masked.m[0] == -INF && masked.d[0] == 0 && masked.o[0] == 0);
    });
}

/* ---- routing ----------------------------------------------------------------------------------
 */

namespace {

void check_topk(Gpu &gpu, const Floats &logits, size_t experts, size_t k) {
    const size_t rows = logits.size() / experts;
    Array<int32_t> id(gpu, Ints(rows * k, -7));
    Array<float> weight(gpu, Floats(rows * k, NAN)), l(gpu, logits, 1);
    gpu.run("lm_topk", {id, weight, l, i32(experts), i32(k)}, rows);
    Ints ids = id.get();
    Floats w = weight.get();
    for (size_t t = 0; t < rows; t++) {
        const float *row = &logits[t * experts];
        Ints order(experts);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
            if (std::isnan(row[a]) || std::isnan(row[b]))
                return !std::isnan(row[a]) && std::isnan(row[b]);
            return row[a] > row[b];
        });
        double sum = 0;
        std::vector<double> want;
        float top = row[order[0]];
        for (size_t c = 0; c < k; c++) {
            float v = row[order[c]];
            double p = std::isfinite(top) ? (std::isnan(v) ? 0 : exp((double)v - top))
                       : std::isnan(top)  ? 1
                                          : v == top;
            want.push_back(p);
            sum += p;
        }
        for (size_t c = 0; c < k; c++) {
            LONGS_EQUAL(order[c], ids[t * k + c]);
            close_to(want[c] / sum, w[t * k + c], 2e-6);
        }
    }
}

} // namespace

TEST(LmKernels, TopK) {
    std::mt19937_64 rng = test_rng(109);
    on_all([&](Gpu &gpu) {
        for (size_t experts : {1, 8, 60, 160, 384})
            for (size_t k : {1, 2, 8}) {
                if (k > experts)
                    continue;
                Floats all;
                auto row = [&](const std::function<float(size_t)> &f) {
                    for (size_t e = 0; e < experts; e++)
                        all.push_back(f(e));
                };
                size_t one = rng() % experts;
                row([](size_t) { return 1.5f; });
                row([&](size_t e) { return e == one || e == experts - 1 ? 2.0f : -1.0f; });
                row([](size_t e) { return e % 2 ? 0.0f : -0.0f; });
                row([&](size_t e) { return e == one ? 3.0f : -INF; });
                row([&](size_t e) { return e == one ? 3.0f : INF; });
                row([&](size_t e) { return e == one ? -INF : INF; });
                row([](size_t) { return -INF; });
                row([&](size_t e) { return e == one ? -5.0f : (float)NAN; });
                row([](size_t) { return (float)NAN; });
                row([](size_t e) {
                    return nextafterf(1.0f, 2.0f) + (float)(e % 3) * 1.1920929e-7f;
                });
                for (int i = 0; i < 8; i++) {
                    Floats r = normal(rng, experts);
                    row([&](size_t e) { return r[e]; });
                    row([&](size_t) { return (float)(rng() % 3); }); /* many ties */
                }
                check_topk(gpu, all, experts, k);
            }
    });
}

TEST(LmKernels, GroupSkipsAndCountsWhatDoesNotExist) {
    std::mt19937_64 rng = test_rng(110);
    on_all([&](Gpu &gpu) {
        for (size_t experts : {1, 5, 8, 160}) {
            Ints ids = {-1, (int32_t)experts - 1, (int32_t)experts, INT_MIN, INT_MAX, 0};
            for (int i = 0; i < 40; i++)
                ids.push_back((int32_t)(rng() % (experts + 2)) - 1);
            const size_t n = ids.size();
            Array<int32_t> id(gpu, ids), counts(gpu, Ints(experts + 1, -9)),
                list(gpu, Ints(experts * n, -9));
            gpu.run("lm_group", {counts, list, id, i32(n), i32(experts)}, experts + 1);
            Ints c = counts.get(), l = list.get();
            int32_t wrong = 0;
            for (size_t e = 0; e < experts; e++) {
                Ints want;
                for (size_t t = 0; t < n; t++)
                    if (ids[t] == (int32_t)e)
                        want.push_back((int32_t)t);
                LONGS_EQUAL(want.size(), c[e]);
                CHECK(std::equal(want.begin(), want.end(), l.begin() + (long)(e * n)));
                CHECK(std::all_of(l.begin() + (long)(e * n + want.size()),
                                  l.begin() + (long)((e + 1) * n),
                                  [](int32_t v) { return v == -9; }));
            }
            for (int32_t i : ids)
                wrong += i < 0 || i >= (int32_t)experts;
            LONGS_EQUAL(wrong, c[experts]);
        }
    });
}

/* ---- an expert layer, put together -------------------------------------------------------------
 */

namespace {

/* h -> sum of weight * expert(h), with ids given, everything poisoned beforehand. */
void check_experts(Gpu &gpu, std::mt19937_64 &rng, const Ints &ids, size_t tokens, size_t k,
                   size_t experts) {
    const size_t d = 20, f = 36, entries = tokens * k;
    std::vector<Halves> w1, w3, w2;
    for (size_t e = 0; e < experts; e++) {
        w1.push_back(bf16(normal(rng, f * d, 0.3f)));
        w3.push_back(bf16(normal(rng, f * d, 0.3f)));
        w2.push_back(bf16(normal(rng, d * f, 0.3f)));
    }
    Floats h = normal(rng, tokens * d), weight = normal(rng, entries), x = normal(rng, tokens * d);
    const Floats poison(entries * f, NAN);
    Array<float> ah(gpu, h), aw(gpu, weight), ax(gpu, x), gate(gpu, poison), up(gpu, poison),
        slots(gpu, Floats(entries * d, NAN));
    Array<int32_t> id(gpu, ids), counts(gpu, Ints(experts + 1, -9)),
        list(gpu, Ints(experts * entries, -9));
    gpu.run("lm_group", {counts, list, id, i32(entries), i32(experts)}, experts + 1);
    Ints c = counts.get();
    for (size_t e = 0; e < experts; e++) {
        if (c[e] == 0)
            continue; /* nothing is launched for an expert without tokens */
        size_t n = (size_t)c[e], blocks = (n + 3) / 4;
        Array<uint16_t> a1(gpu, w1[e]), a3(gpu, w3[e]), a2(gpu, w2[e]);
        for (int p = 0; p < 2; p++)
            gpu.run("lm_matmul",
                    {p ? (mr_arg)up : (mr_arg)gate, p ? (mr_arg)a3 : (mr_arg)a1, ah,
                     list.at(e * entries), i32(k), none, i32(f), i32(d), i32(n), i32(f), i32(d),
                     mr_arg_i32(0)},
                    f * blocks);
        gpu.run("lm_swiglu", {gate, gate, up}, n * f);
        gpu.run("lm_matmul",
                {slots, a2, gate, none, i32(1), list.at(e * entries), i32(d), i32(f), i32(n),
                 i32(d), i32(f), mr_arg_i32(0)},
                d * blocks);
    }
    gpu.run("lm_combine", {ax, slots, aw, id, i32(experts), i32(k), i32(d)}, tokens * d);
    Floats out = ax.get();
    for (size_t t = 0; t < tokens; t++) {
        std::vector<double> want(x.begin() + (long)(t * d), x.begin() + (long)((t + 1) * d));
        for (size_t s = t * k; s < (t + 1) * k; s++) {
            if (ids[s] < 0 || ids[s] >= (int32_t)experts)
                continue;
            size_t e = (size_t)ids[s];
            std::vector<double> g(f);
            for (size_t i = 0; i < f; i++) {
                double a = 0, b = 0;
                for (size_t j = 0; j < d; j++) {
                    a += wide(w1[e][i * d + j]) * h[t * d + j];
                    b += wide(w3[e][i * d + j]) * h[t * d + j];
                }
                g[i] = a / (1 + exp(-a)) * b;
            }
            for (size_t j = 0; j < d; j++)
                for (size_t i = 0; i < f; i++)
                    want[j] += weight[s] * wide(w2[e][j * f + i]) * g[i];
        }
        for (size_t j = 0; j < d; j++)
            close_to(want[j], out[t * d + j], 2e-5);
    }
}

} // namespace

TEST(LmKernels, ExpertsWithoutTokens) {
    std::mt19937_64 rng = test_rng(111);
    on_all([&](Gpu &gpu) {
        const size_t experts = 4, tokens = 6, k = 2;
        auto choose = [&](const Ints &from) {
            Ints ids(tokens * k);
            for (size_t i = 0; i < ids.size(); i++)
                ids[i] = from[(i + rng() % 2) % from.size()];
            return ids;
        };
        for (const Ints &from :
             std::vector<Ints>{{1, 2, 3}, {0, 3}, {0, 1, 2}, {2}, {-1}, {-1, 2, 4, INT_MIN}})
            check_experts(gpu, rng, choose(from), tokens, k, experts);
        for (size_t n = 1; n <= 5; n++) /* 1 .. a block of vectors and one more */
            check_experts(gpu, rng, Ints(n, 1), n, 1, 2);
    });
}

TEST(LmKernels, SwigluGatherScatter) {
    std::mt19937_64 rng = test_rng(112);
    on_all([&](Gpu &gpu) {
        Floats a = normal(rng, 77, 4), b = normal(rng, 77);
        a[0] = 200;
        a[1] = -200; /* exp overflows: the limit is 0, not NaN */
        a[2] = 0;
        Array<float> aa(gpu, a, 1), ab(gpu, b, 2), y(gpu, Floats(77, NAN), 3);
        gpu.run("lm_swiglu", {y, aa, ab}, 77);
        Floats out = y.get();
        for (size_t i = 0; i < 77; i++) {
            double want = a[i] / (1 + exp(-(double)a[i])) * b[i];
            close_to(want, out[i], 1e-6 * (1 + std::fabs(want)));
        }
        const size_t dim = 7;
        Ints index = {5, 0, 9, 4};
        Floats x = normal(rng, 5 * dim);
        Array<int32_t> ai(gpu, index);
        Array<float> ax(gpu, x, 1), g(gpu, Floats(4 * dim, NAN)), s(gpu, Floats(10 * dim, -1.0f));
        gpu.run("lm_gather", {g, ax, ai, i32(2), i32(dim)}, 4 * dim);
        gpu.run("lm_scatter", {s, g, ai, i32(dim)}, 4 * dim);
        Floats back = s.get();
        for (size_t t = 0; t < 10; t++)
            for (size_t j = 0; j < dim; j++) {
                bool there = std::find(index.begin(), index.end(), (int32_t)t) != index.end();
                CHECK(back[t * dim + j] == (there ? x[t / 2 * dim + j] : -1.0f));
            }
    });
}
