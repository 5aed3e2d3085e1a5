/* What the conformance tests share. */
#ifndef TESTS_CONFORMANCE_CONFORMANCE_H
#define TESTS_CONFORMANCE_CONFORMANCE_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <millrace/millrace.h>

#include "models/golden/rgu.h"

/* The device under test; the tests run once for each. */
extern std::string test_uri;
/* Of MR_SEED or of the clock; printed at the start. */
extern uint64_t test_seed;

/* The generator of one test: the same numbers for the same seed, whatever runs before. */
std::mt19937_64 test_rng(const char *test);

/* Checks a status and shows the message when it is another one. */
#define CHECK_STATUS(want, call)                                                                   \
    do {                                                                                           \
        mr_status got_ = (call);                                                                   \
        if (got_ != (want))                                                                        \
            FAIL((std::string(#call) + ": " + mr_status_name(got_) + " instead of " +              \
                  mr_status_name(want) + "; " + mr_last_error())                                   \
                     .c_str());                                                                    \
    } while (0)
#define CHECK_OK(call) CHECK_STATUS(MR_OK, call)
/* The same, and the message has the word. */
#define CHECK_FAILS(want, word, call)                                                              \
    do {                                                                                           \
        CHECK_STATUS(want, call);                                                                  \
        if (!strstr(mr_last_error(), word))                                                        \
            FAIL((std::string("the message of " #call " lacks '") + (word) +                       \
                  "': " + mr_last_error())                                                         \
                     .c_str());                                                                    \
    } while (0)

/* A device with a queue, both gone at the end. */
struct Device {
    mr_device *device = nullptr;
    mr_queue *queue = nullptr;
    mr_device_info info = {};
    explicit Device(const std::string &uri);
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    mr_buffer *buffer(size_t bytes) const;
    mr_buffer *buffer(const void *data, size_t bytes) const;
};

/* Waits for the event and destroys it. */
mr_status wait_for(mr_event *event, uint64_t timeout_ns = 120000000000u);

/* A random projection with its image, and a job over all of it. */
struct Projection {
    int n, terms;
    size_t d_out, d_in, chunks_out, chunks_in;
    std::vector<int16_t> angles;
    std::vector<float> gain, row_scale; /* row_scale: d_out values, empty for none */
    std::vector<uint8_t> odd;
    std::vector<unsigned char> image;
    std::vector<float> padded; /* row scales as a device takes them */
    Projection(std::mt19937_64 &rng, int n, int terms, size_t d_out, size_t d_in, bool scaled);
    mr_rgu_job job() const;
    mr_golden_job golden(const mr_rgu_job &job) const;
};

size_t open_files();
size_t resident_bytes();
size_t live_threads();

#endif
