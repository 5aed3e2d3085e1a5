/* safetensors and .npy: what must be read, what must be refused and why, and a mutation fuzz. */
#include "tests/unit/lm/support.h"

#include "host/io/file.h"
#include "host/io/npy.h"
#include "host/io/safetensors.h"
#include "host/io/sha256.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CppUTest/TestHarness.h>

namespace {

Bytes safetensors(const std::string &header, size_t data_bytes) {
    Bytes out;
    uint64_t n = header.size();
    append(out, &n, 8);
    append(out, header.data(), header.size());
    for (size_t i = 0; i < data_bytes; i++)
        out.push_back((uint8_t)i);
    return out;
}

mr_status open_bytes(const Bytes &b) {
    mr_safetensors *st = nullptr;
    mr_status s = mr_safetensors_open_memory(b.data(), b.size(), "f", &st);
    mr_safetensors_close(st);
    return s;
}

void refused(const char *word, const std::string &header, size_t data_bytes) {
    CHECK_REFUSED(MR_BAD_FORMAT, word, open_bytes(safetensors(header, data_bytes)));
    CHECK(strncmp(mr_last_error(), "f: ", 3) == 0); /* names the file */
}

const char two[] =
    R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]}}  )";

} // namespace

TEST_GROUP(Safetensors){};

TEST(Safetensors, ReadsWhatIsThere) {
    Bytes b = safetensors(two, 20);
    mr_safetensors *st;
    CHECK_STATUS(MR_OK, mr_safetensors_open_memory(b.data(), b.size(), "f", &st));
    LONGS_EQUAL(2, mr_safetensors_count(st));
    STRCMP_EQUAL("v", mr_safetensors_metadata(st, "k"));
    POINTERS_EQUAL(nullptr, mr_safetensors_metadata(st, "other"));
    const mr_st_tensor *t = mr_safetensors_find(st, "b");
    CHECK(t != nullptr);
    LONGS_EQUAL(12, t->bytes);
    LONGS_EQUAL(8, *(const uint8_t *)t->data);
    POINTERS_EQUAL(nullptr, mr_safetensors_find(st, "c"));
    size_t shape[2] = {2, MR_ST_ANY};
    CHECK_STATUS(MR_OK, mr_safetensors_require(st, "b", MR_ST_BF16, 2, shape, &t));
    CHECK_REFUSED(MR_BAD_FORMAT, "tensor b: dtype is BF16, must be F32",
                  mr_safetensors_require(st, "b", MR_ST_F32, 2, shape, &t));
    CHECK_REFUSED(MR_BAD_FORMAT, "tensor b: shape is [2, 3], must be [2]",
                  mr_safetensors_require(st, "b", MR_ST_BF16, 1, shape, &t));
    CHECK_REFUSED(MR_BAD_FORMAT, "tensor c is missing",
                  mr_safetensors_require(st, "c", MR_ST_BF16, 1, shape, &t));
    mr_safetensors_close(st);
}

TEST(Safetensors, EmptyTensorsAndNoTensors) {
    CHECK_STATUS(MR_OK, open_bytes(safetensors("{}", 0)));
    CHECK_STATUS(
        MR_OK, open_bytes(safetensors(R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                                      R"("s":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                      1)));
}

TEST(Safetensors, RefusesEveryTruncation) {
    Bytes whole = safetensors(two, 20);
    CHECK_STATUS(MR_OK, open_bytes(whole));
    for (size_t n = 0; n < whole.size(); n++)
        CHECK_STATUS(MR_BAD_FORMAT, open_bytes(Bytes(whole.begin(), whole.begin() + (long)n)));
}

TEST(Safetensors, RefusesOversized) { refused("oversized: 1 bytes", two, 21); }

TEST(Safetensors, RefusesBadHeaders) {
    refused("does not start with {", "[]", 0);
    refused("not valid JSON", "{\"a\":", 0);
    refused("not valid JSON", R"({"a":1}{"b":2})", 0);
    Bytes b = safetensors("{}", 0);
    uint64_t huge = MR_ST_MAX_HEADER + 1ull;
    memcpy(b.data(), &huge, 8);
    CHECK_REFUSED(MR_BAD_FORMAT, "limit", open_bytes(b));
    huge = UINT64_MAX;
    memcpy(b.data(), &huge, 8);
    CHECK_STATUS(MR_BAD_FORMAT, open_bytes(b));
}

TEST(Safetensors, RefusesDuplicateKeys) {
    refused("duplicate",
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
            2);
    refused("duplicate", R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
            1);
}

TEST(Safetensors, RefusesBadEntries) {
    refused("tensor a: its entry is not", R"({"a":3})", 0);
    refused("tensor a: unknown dtype \"F31\"",
            R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4);
    refused("dtype is missing", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4);
    refused("shape is missing", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4);
    refused("shape[0]", R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4);
    refused("shape[0]", R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4);
    refused("shape[1]", R"({"a":{"dtype":"F32","shape":[1,"2"],"data_offsets":[0,4]}})", 4);
    refused("data_offsets is not", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4);
    refused("backwards", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4);
    refused("span 3 bytes", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,3]}})", 3);
    refused("unknown field", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1);
    refused("rank 9", R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
            1);
    refused("metadata", R"({"__metadata__":{"k":1}})", 0);
    refused("metadata", R"({"__metadata__":[]})", 0);
}

TEST(Safetensors, RefusesOverflowingShapes) {
    /* products that wrap 2^63 and 2^64, in elements and in bytes, and a zero that would hide them
     */
    refused("overflows",
            R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0);
    refused("overflows",
            R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", 4);
    refused("overflows",
            R"({"a":{"dtype":"F64","shape":[4398046511105,4194304],"data_offsets":[0,0]}})", 0);
    refused("overflows",
            R"({"a":{"dtype":"U8","shape":[9223372036854775807,2,0],"data_offsets":[0,0]}})", 0);
    refused("too big",
            R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0);
}

TEST(Safetensors, RefusesOverlapsAndGaps) {
    refused("tensor b: its data overlaps that of a",
            R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
            6);
    refused("belong to no tensor",
            R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})",
            7);
    refused("truncated", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3);
}

TEST(Safetensors, NoFileNoFolderNoPipe) {
    mr_safetensors *st;
    CHECK_REFUSED(MR_IO_ERROR, "/nonexistent/x: cannot open",
                  mr_safetensors_open("/nonexistent/x", &st));
    CHECK_REFUSED(MR_IO_ERROR, "not a regular file", mr_safetensors_open("/dev/null", &st));
    CHECK_STATUS(MR_IO_ERROR, mr_safetensors_open("/", &st));
    TempFile fifo("fifo");
    LONGS_EQUAL(0, mkfifo(fifo.path.c_str(), 0600));
    CHECK_REFUSED(MR_IO_ERROR, "not a regular file", mr_safetensors_open(fifo.path.c_str(), &st));
}

TEST(Safetensors, WritesWhatItReads) {
    TempFile f("w");
    float x[3] = {1, -2, 3.5f};
    int16_t v[4] = {-32768, 1, 2, 3};
    const mr_st_output t[2] = {{"x", MR_ST_F32, 1, {3}, x}, {"v", MR_ST_I16, 2, {2, 2}, v}};
    const char *meta[] = {"a", "\xC3\xA9\"", "b", ""};
    CHECK_STATUS(MR_OK, mr_safetensors_write(f.path.c_str(), t, 2, meta, 2));
    mr_safetensors *st;
    CHECK_STATUS(MR_OK, mr_safetensors_open(f.path.c_str(), &st));
    STRCMP_EQUAL("\xC3\xA9\"", mr_safetensors_metadata(st, "a"));
    MEMCMP_EQUAL(x, mr_safetensors_find(st, "x")->data, sizeof x);
    MEMCMP_EQUAL(v, mr_safetensors_find(st, "v")->data, sizeof v);
    mr_safetensors_close(st);
    const char *bad[] = {"a", "\xff"};
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_safetensors_write(f.path.c_str(), t, 2, bad, 1));
}

/* Random damage must end in a result, never outside the bytes (the sanitizer build watches). What
 * is accepted must be consistent. */
TEST(Safetensors, SurvivesMutation) {
    std::mt19937_64 rng = test_rng(1);
    const Bytes whole = safetensors(two, 20);
    for (int round = 0; round < 20000; round++) {
        Bytes b = whole;
        for (uint64_t k = rng() % 4 + 1; k--;) {
            uint64_t what = rng() % 4;
            size_t at = rng() % b.size();
            if (what == 0)
                b[at] = (uint8_t)rng();
            else if (what == 1)
                b[at] ^= (uint8_t)(1u << rng() % 8);
            else if (what == 2)
                b.insert(b.begin() + (long)at, "0123456789[]{},:\"-"[rng() % 18]);
            else if (b.size() > 1)
                b.erase(b.begin() + (long)at);
        }
        mr_safetensors *st;
        if (mr_safetensors_open_memory(b.data(), b.size(), "f", &st) != MR_OK)
            continue;
        for (size_t i = 0; i < mr_safetensors_count(st); i++) {
            const mr_st_tensor *t = mr_safetensors_at(st, i);
            const uint8_t *p = (const uint8_t *)t->data;
            CHECK(p >= b.data() && p + t->bytes <= b.data() + b.size());
            POINTERS_EQUAL(t, mr_safetensors_find(st, t->name));
        }
        mr_safetensors_close(st);
    }
}

/* ---- .npy -------------------------------------------------------------------------------------
 */

namespace {

Bytes npy(int major, const std::string &dict, const Bytes &data, size_t pad_to = 0) {
    Bytes out;
    append(out, "\x93NUMPY", 6);
    out.push_back((uint8_t)major);
    out.push_back(0);
    std::string header = dict;
    while (header.size() + 1 < pad_to)
        header += ' ';
    header += '\n';
    size_t n = header.size();
    for (int i = 0; i < (major == 1 ? 2 : 4); i++)
        out.push_back((uint8_t)(n >> (8 * i)));
    append(out, header.data(), n);
    append(out, data.data(), data.size());
    return out;
}

std::string dict(const char *descr, const char *order, const char *shape) {
    return std::string("{'descr': '") + descr + "', 'fortran_order': " + order +
           ", 'shape': " + shape + ", }";
}

mr_status read_npy(const Bytes &b, mr_npy *a) {
    return mr_npy_read_memory(b.data(), b.size(), "f", a);
}

void npy_refused(const char *word, const Bytes &b) {
    mr_npy a;
    CHECK_REFUSED(MR_BAD_FORMAT, word, read_npy(b, &a));
}

Bytes floats(std::initializer_list<float> v, bool big = false) {
    Bytes out;
    for (float f : v) {
        uint8_t b[4];
        memcpy(b, &f, 4);
        if (big)
            std::swap(b[0], b[3]), std::swap(b[1], b[2]);
        append(out, b, 4);
    }
    return out;
}

void check_floats(const mr_npy &a, std::initializer_list<float> want) {
    LONGS_EQUAL((long)want.size(), (long)a.count);
    MEMCMP_EQUAL(want.begin(), a.data, want.size() * sizeof(float));
}

} // namespace

TEST_GROUP(Npy){};

TEST(Npy, VersionsOrdersAndShapes) {
    mr_npy a;
    for (int major = 1; major <= 3; major++) {
        CHECK_STATUS(
            MR_OK,
            read_npy(npy(major, dict("<f4", "False", "(2, 3)"), floats({0, 1, 2, 3, 4, 5})), &a));
        LONGS_EQUAL(2, a.rank);
        check_floats(a, {0, 1, 2, 3, 4, 5});
        mr_npy_free(&a);
        /* Fortran order: the first index runs fastest in the file */
        CHECK_STATUS(
            MR_OK,
            read_npy(npy(major, dict("<f4", "True", "(2, 3)"), floats({0, 3, 1, 4, 2, 5})), &a));
        check_floats(a, {0, 1, 2, 3, 4, 5});
        mr_npy_free(&a);
        CHECK_STATUS(MR_OK, read_npy(npy(major, dict(">f4", "True", "(2, 2, 2)"),
                                         floats({0, 4, 2, 6, 1, 5, 3, 7}, true)),
                                     &a));
        check_floats(a, {0, 1, 2, 3, 4, 5, 6, 7});
        mr_npy_free(&a);
    }
    CHECK_STATUS(MR_OK, read_npy(npy(1, dict("<f4", "False", "()"), floats({7})), &a));
    LONGS_EQUAL(0, a.rank);
    check_floats(a, {7});
    mr_npy_free(&a);
    CHECK_STATUS(MR_OK, read_npy(npy(1, dict("<f4", "False", "(0, 3)"), {}), &a));
    LONGS_EQUAL(0, a.count);
    mr_npy_free(&a);
    CHECK_STATUS(MR_OK, read_npy(npy(1, dict("<f4", "False", "(1,)"), floats({3})), &a));
    mr_npy_free(&a);
}

TEST(Npy, LongHeaders) {
    mr_npy a;
    CHECK_STATUS(MR_OK, read_npy(npy(2, dict("<f4", "False", "(1,)"), floats({3}), 65536), &a));
    mr_npy_free(&a);
    CHECK_STATUS(MR_OK, read_npy(npy(1, dict("<f4", "False", "(1,)"), floats({3}), 65535), &a));
    mr_npy_free(&a);
    npy_refused("limit", npy(2, dict("<f4", "False", "(1,)"), floats({3}), MR_NPY_MAX_HEADER + 8));
}

TEST(Npy, RefusesWithAReason) {
    Bytes one = floats({1});
    npy_refused("one extent, no comma", npy(1, dict("<f4", "False", "(184)"), one));
    npy_refused("not a tuple", npy(1, dict("<f4", "False", "[1]"), one));
    npy_refused("integer", npy(1, dict("<f4", "False", "(1, 2"), one));
    npy_refused("integer", npy(1, dict("<f4", "False", "(-1,)"), one));
    npy_refused("overflows", npy(1, dict("<f4", "False", "(99999999999999999999,)"), one));
    npy_refused("overflows", npy(1, dict("<f4", "False", "(4611686018427387904, 4)"), {}));
    npy_refused("overflows", npy(1, dict("<f4", "False", "(4611686018427387905,)"), one));
    npy_refused("overflows", npy(1, dict("<f4", "False", "(9223372036854775807, 4, 0)"), {}));
    npy_refused("rank", npy(1, dict("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), one));
    npy_refused("dtype", npy(1, dict("|O8", "False", "(1,)"), one));
    npy_refused("dtype", npy(1, dict("<c8", "False", "(1,)"), one));
    npy_refused("dtype", npy(1, dict("|S4", "False", "(1,)"), one));
    npy_refused("structured",
                npy(1, "{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (1,), }", one));
    npy_refused("neither", npy(1, dict("<f4", "Maybe", "(1,)"), one));
    npy_refused(
        "twice",
        npy(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", one));
    npy_refused("lacks", npy(1, "{'descr': '<f4', 'shape': (1,), }", one));
    npy_refused("unknown key",
                npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", one));
    npy_refused("follows", npy(1, dict("<f4", "False", "(1,)") + " 1", one));
    npy_refused("truncated", npy(1, dict("<f4", "False", "(2,)"), one));
    npy_refused("oversized", npy(1, dict("<f4", "False", "()"), floats({1, 2})));
    npy_refused("version 4.0", npy(4, dict("<f4", "False", "(1,)"), one));
    npy_refused("not a .npy", Bytes(20, 'x'));
    Bytes whole = npy(1, dict("<f4", "False", "(1,)"), one);
    mr_npy a;
    for (size_t n = 0; n < whole.size(); n++)
        CHECK_STATUS(MR_BAD_FORMAT, read_npy(Bytes(whole.begin(), whole.begin() + (long)n), &a));
}

TEST(Npy, WriterRoundTrip) {
    TempFile f("n.npy");
    const float x[6] = {1, 2, 3, 4, 5, -0.0f};
    const size_t shape[2] = {2, 3};
    for (size_t rank = 0; rank <= 2; rank++) {
        const size_t one[1] = {6};
        CHECK_STATUS(MR_OK, mr_npy_write_f32(f.path.c_str(), rank, rank == 1 ? one : shape, x));
        mr_npy a;
        CHECK_STATUS(MR_OK, mr_npy_read_f32(f.path.c_str(), rank, &a));
        MEMCMP_EQUAL(x, a.data, a.count * sizeof(float));
        LONGS_EQUAL(rank == 0 ? 1 : 6, a.count);
        mr_npy_free(&a);
        CHECK_REFUSED(MR_BAD_FORMAT, "rank is", mr_npy_read_f32(f.path.c_str(), rank + 1, &a));
        Bytes raw = read_file(f.path);
        LONGS_EQUAL(0, (raw.size() - (rank ? 24 : 4)) % 64); /* data are aligned, as NumPy's are */
    }
}

TEST(Npy, SurvivesMutation) {
    std::mt19937_64 rng = test_rng(2);
    const Bytes whole = npy(1, dict("<f4", "True", "(2, 2)"), floats({1, 2, 3, 4}));
    for (int round = 0; round < 20000; round++) {
        Bytes b = whole;
        for (uint64_t k = rng() % 3 + 1; k--;) {
            size_t at = rng() % b.size();
            if (rng() % 2)
                b[at] = (uint8_t)rng();
            else if (rng() % 2)
                b.insert(b.begin() + (long)at, "0123456789(),'<>:"[rng() % 17]);
            else if (b.size() > 1)
                b.erase(b.begin() + (long)at);
        }
        mr_npy a;
        if (read_npy(b, &a) == MR_OK) {
            CHECK(a.count * a.item <= b.size());
            mr_npy_free(&a);
        }
    }
}

/* ---- files put in place -----------------------------------------------------------------------
 */

TEST_GROUP(Files){};

TEST(Files, AppearWholeOrNotAtAll) {
    TempFile f("atomic");
    mr_file w;
    CHECK_STATUS(MR_OK, mr_file_create(f.path.c_str(), &w));
    CHECK_STATUS(MR_OK, mr_file_write(&w, "abc", 3));
    std::string temp = w.temp;
    CHECK(access(f.path.c_str(), F_OK) != 0);
    mr_file_abandon(&w);
    CHECK(access(f.path.c_str(), F_OK) != 0);
    CHECK(access(temp.c_str(), F_OK) != 0);
    CHECK_STATUS(MR_OK, mr_file_create(f.path.c_str(), &w));
    CHECK_STATUS(MR_OK, mr_file_write(&w, "abc", 3));
    CHECK_STATUS(MR_OK, mr_file_commit(&w));
    LONGS_EQUAL(3, read_file(f.path).size());
    CHECK_REFUSED(MR_IO_ERROR, "/nonexistent/x", mr_file_create("/nonexistent/x", &w));
    CHECK_REFUSED(MR_IO_ERROR, "folder", mr_file_create("/", &w));
}

TEST(Files, LinksAndDevicesStay) {
    TempFile target("target"), link("link");
    mr_file w;
    CHECK_STATUS(MR_OK, mr_file_create(target.path.c_str(), &w));
    CHECK_STATUS(MR_OK, mr_file_commit(&w));
    LONGS_EQUAL(0, symlink(target.path.c_str(), link.path.c_str()));
    CHECK_STATUS(MR_OK, mr_file_create(link.path.c_str(), &w));
    CHECK_STATUS(MR_OK, mr_file_write(&w, "xy", 2));
    CHECK_STATUS(MR_OK, mr_file_commit(&w));
    LONGS_EQUAL(2, read_file(target.path).size());
    CHECK_STATUS(MR_OK, mr_file_create("/dev/null", &w));
    CHECK_STATUS(MR_OK, mr_file_write(&w, "xy", 2));
    CHECK_STATUS(MR_OK, mr_file_commit(&w));
    struct stat sb;
    CHECK(stat("/dev/null", &sb) == 0 && S_ISCHR(sb.st_mode));
}

TEST(Files, FullDiskIsReported) {
    if (access("/dev/full", W_OK) != 0)
        return;
    const size_t shape[1] = {3};
    const float x[3] = {1, 2, 3};
    CHECK_REFUSED(MR_IO_ERROR, "/dev/full: cannot write",
                  mr_npy_write_f32("/dev/full", 1, shape, x));
}

/* The examples of FIPS 180-4's companion document, and one that needs a second padding block. */
TEST(Files, Sha256) {
    char hex[65];
    mr_sha256_hex("", 0, hex);
    STRCMP_EQUAL("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hex);
    mr_sha256_hex("abc", 3, hex);
    STRCMP_EQUAL("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex);
    const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    mr_sha256_hex(two_blocks, strlen(two_blocks), hex);
    STRCMP_EQUAL("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", hex);
}
