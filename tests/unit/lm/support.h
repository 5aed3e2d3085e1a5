/* What these tests share: random numbers that a printed seed reproduces, files, devices. */
#ifndef TESTS_UNIT_LM_SUPPORT_H
#define TESTS_UNIT_LM_SUPPORT_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <millrace/millrace.h>

/* Of MR_SEED or of the clock; printed at the start. */
extern uint64_t test_seed;
inline std::mt19937_64 test_rng(uint64_t test) {
    return std::mt19937_64(test_seed * 1000003 + test);
}

using Bytes = std::vector<uint8_t>;

inline void append(Bytes &to, const void *data, size_t size) {
    const uint8_t *p = static_cast<const uint8_t *>(data);
    to.insert(to.end(), p, p + size);
}

/* A file of its own in the folder for temporary files, removed at the end. */
struct TempFile {
    std::string path;
    explicit TempFile(const char *name) {
        const char *tmp = getenv("TMPDIR");
        path = std::string(tmp ? tmp : "/tmp") + "/millrace-test-" + std::to_string(test_seed) +
               "-" + std::to_string(rand()) + "-" + name;
    }
    ~TempFile() { remove(path.c_str()); }
};

inline Bytes read_file(const std::string &path) {
    Bytes out;
    if (FILE *f = fopen(path.c_str(), "rb")) {
        uint8_t block[4096];
        for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
            append(out, block, n);
        fclose(f);
    }
    return out;
}

#define CHECK_STATUS(want, call)                                                                   \
    do {                                                                                           \
        mr_status got_ = (call);                                                                   \
        if (got_ != (want))                                                                        \
            FAIL((std::string(#call) + ": " + mr_status_name(got_) + " instead of " +              \
                  mr_status_name(want) + "; " + mr_last_error())                                   \
                     .c_str());                                                                    \
    } while (0)

/* The call fails with this status, and the message has the word. */
#define CHECK_REFUSED(want, word, call)                                                            \
    do {                                                                                           \
        CHECK_STATUS(want, call);                                                                  \
        if (!strstr(mr_last_error(), word))                                                        \
            FAIL((std::string("the message lacks '") + (word) + "': " + mr_last_error()).c_str()); \
    } while (0)

#endif
