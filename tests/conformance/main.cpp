/*
 * Conformance suite: one binary, run against every back end that is present.
 *     all [--only URI]... [CppUTest options]
 * Without --only the devices are those that mr_devices() calls available.
 */
#include "tests/conformance/conformance.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <climits>
#include <dlfcn.h>
#include <dirent.h>
#include <unistd.h>

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestHarness.h>

std::string test_uri;
uint64_t test_seed;

std::mt19937_64 test_rng(const char *test) {
    uint64_t hash = test_seed;
    for (; *test; test++)
        hash = hash * 1099511628211u + static_cast<unsigned char>(*test);
    return std::mt19937_64(hash);
}

Device::Device(const std::string &uri) {
    CHECK_OK(mr_device_open(uri.c_str(), &device));
    CHECK_OK(mr_queue_create(device, &queue));
    CHECK_OK(mr_device_get_info(device, &info));
}

Device::~Device() { mr_device_close(device); }

mr_buffer *Device::buffer(size_t bytes) const {
    mr_buffer *b = nullptr;
    CHECK_OK(mr_buffer_create(device, bytes, &b));
    return b;
}

mr_buffer *Device::buffer(const void *data, size_t bytes) const {
    mr_buffer *b = buffer(bytes);
    CHECK_OK(mr_buffer_write(b, 0, data, bytes));
    return b;
}

mr_status wait_for(mr_event *event, uint64_t timeout_ns) {
    mr_status status = mr_event_wait(event, timeout_ns);
    std::string text = mr_last_error();
    CHECK_OK(mr_event_destroy(event));
    return status;
}

Projection::Projection(std::mt19937_64 &rng, int n_, int terms_, size_t d_out_, size_t d_in_,
                       bool scaled)
    : n(n_), terms(terms_), d_out(d_out_), d_in(d_in_) {
    size_t d = size_t(1) << n;
    chunks_out = (d_out + d - 1) / d;
    chunks_in = (d_in + d - 1) / d;
    size_t records = terms * chunks_out * chunks_in;
    std::uniform_real_distribution<float> unit(-1.0f, 1.0f);
    angles.resize(records * 2 * mr_rgu_planes(n));
    for (auto &a : angles)
        a = static_cast<int16_t>(rng());
    /* gains of a size of the projection's own, row scales of every size down to the subnormal: what
     * comes out may be subnormal, overflow, or flush to zero where a device is careless */
    int size = rng() % 2 ? 0 : static_cast<int>(rng() % 200) - 100;
    auto spread = [&](int odds, int low, int high) {
        return rng() % static_cast<unsigned>(odds)
                   ? 0
                   : low + static_cast<int>(rng() % static_cast<unsigned>(high - low));
    };
    for (size_t i = 0; i < records; i++) {
        gain.push_back(rng() % 9 ? std::ldexp(unit(rng), size + spread(3, -20, 21)) : 0.0f);
        odd.push_back(rng() & 1);
    }
    if (scaled)
        for (size_t i = 0; i < d_out; i++)
            row_scale.push_back(std::ldexp(unit(rng), spread(3, -145, 126)));
    mr_seed seed = {n,
                    terms,
                    d_out,
                    d_in,
                    angles.data(),
                    gain.data(),
                    odd.data(),
                    scaled ? row_scale.data() : nullptr};
    image.resize(mr_rgu_image_bytes(&seed));
    mr_rgu_pack(&seed, image.data());
    padded = row_scale;
    padded.resize(chunks_out * d, 1.0f);
}

mr_rgu_job Projection::job() const {
    mr_rgu_job j = mr_rgu_job_init();
    j.n = n;
    j.terms = terms;
    j.chunks_in = chunks_in;
    j.chunks_out = chunks_out;
    j.d_in = d_in;
    j.d_out = d_out;
    j.has_odd = j.has_even = false;
    for (uint8_t o : odd)
        (o ? j.has_odd : j.has_even) = true;
    j.row1 = d_out;
    j.col1 = d_in;
    j.dst_stride = 2 * d_in;
    return j;
}

mr_golden_job Projection::golden(const mr_rgu_job &j) const {
    mr_golden_job g = {};
    g.n = n;
    g.terms = terms;
    g.d_out = d_out;
    g.d_in = d_in;
    g.image = image.data();
    g.row_scale = row_scale.empty() ? nullptr : row_scale.data();
    g.scale = j.scale;
    g.row0 = j.row0, g.row1 = j.row1, g.col0 = j.col0, g.col1 = j.col1;
    g.format = j.format;
    g.sat = j.saturate;
    return g;
}

size_t open_files() {
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static size_t status_field(const char *name) {
    char line[256];
    size_t value = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            value = strtoull(line + strlen(name) + 1, nullptr, 10);
    if (f)
        fclose(f);
    return value;
}

size_t resident_bytes() { return status_field("VmRSS") * 1024; }
size_t live_threads() { return status_field("Threads"); }

/*
 * A test called <name>_faults takes its back ends from the folder fake_<name> beside it; for cuda
 * that folder's driver library is loaded first, so that the back end gets it under its usual name.
 * Returns <name>, or "" for other programs.
 */
static std::string choose_fakes() {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    std::string path(self, n > 0 ? n : 0), name = path.substr(path.rfind('/') + 1);
    size_t end = name.rfind("_faults");
    if (end == std::string::npos)
        return "";
    std::string folder = path.substr(0, path.rfind('/')) + "/fake_" + name.substr(0, end);
    setenv("MILLRACE_DRIVERS", folder.c_str(), 1);
    dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_GLOBAL);
    return name.substr(0, end);
}

/* Whether a near-memory unit is all that the device has. */
static bool only_pnm(const std::string &uri) {
    mr_device *device;
    mr_device_info info = {};
    if (mr_device_open(uri.c_str(), &device) != MR_OK)
        return false;
    mr_device_get_info(device, &info);
    mr_device_close(device);
    return !(info.caps & (MR_CAP_RGU | MR_CAP_KERNELS));
}

int main(int argc, char **argv) {
    std::vector<std::string> uris;
    std::vector<const char *> rest = {argv[0]};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            uris.push_back(argv[++i]);
        else
            rest.push_back(argv[i]);
    const char *seed = getenv("MR_SEED");
    test_seed = seed ? strtoull(seed, nullptr, 0) : static_cast<uint64_t>(time(nullptr));
    printf("MR_SEED=%llu\n", static_cast<unsigned long long>(test_seed));
    std::string fakes = choose_fakes();
    if (!fakes.empty()) {
        uris = {fakes + (fakes == "cuda" ? ":0" : ":rgu")};
    } else if (uris.empty()) {
        mr_device_info *list;
        size_t count;
        if (mr_devices(&list, &count) != MR_OK) {
            printf("mr_devices: %s\n0 passed, 1 failed\n", mr_last_error());
            return 1;
        }
        for (size_t i = 0; i < count; i++)
            if (list[i].available)
                uris.push_back(list[i].uri);
            else
                printf("not tested: %s %s\n", list[i].uri, list[i].reason);
        mr_devices_free(list);
    }
    int failed = 0;
    for (const auto &uri : uris) {
        test_uri = uri;
        printf("== %s\n", uri.c_str());
        fflush(stdout);
        /* the vendor runtimes keep memory of their own: leaks are looked for by the cycle tests */
        MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
        std::vector<const char *> args = rest;
        if (only_pnm(uri)) /* the other groups are about kernels and the rotor unit */
            args.insert(args.end(), {"-sg", "Pnm"});
        failed |= CommandLineTestRunner::RunAllTests(static_cast<int>(args.size()), args.data());
    }
    return failed || uris.empty() ? 1 : 0;
}
