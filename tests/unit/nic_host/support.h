/* Clusters, calls on all ranks at once, and what their results must be. */
#ifndef TESTS_UNIT_NIC_HOST_SUPPORT_H
#define TESTS_UNIT_NIC_HOST_SUPPORT_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <millrace/nic.h>

#include "host/nic/inside.h"

#include <CppUTest/TestHarness.h>

/* Of MR_SEED or of the clock; printed at the start. */
extern uint64_t test_seed;
inline std::mt19937_64 test_rng(uint64_t test) {
    return std::mt19937_64(test_seed * 1000003 + test);
}

#define CHECK_STATUS(want, call)                                                                   \
    do {                                                                                           \
        mr_status got_ = (call);                                                                   \
        if (got_ != (want))                                                                        \
            FAIL_TEST_LOCATION((std::string(#call) + ": " + mr_status_name(got_) +                 \
                                " instead of " + mr_status_name(want) + ": " + mr_last_error())    \
                                   .c_str(),                                                       \
                               __FILE__, __LINE__);                                                \
    } while (0)
#define CHECK_OK(call) CHECK_STATUS(MR_OK, call)
#define CHECK_MESSAGE(word) CHECK_TEXT(strstr(mr_last_error(), word) != nullptr, mr_last_error())

inline const std::string kFaults = "&loss=0.01&dup=0.01&reorder=0.01&corrupt=0.01";

/* A cluster of golden NICs, or of those that MR_NIC_DEVICE names (sim:nic). */
inline std::string uri(unsigned nodes, const std::string &more = "", uint64_t seed = 1) {
    const char *device = getenv("MR_NIC_DEVICE");
    return std::string(device ? device : "golden") + "?nodes=" + std::to_string(nodes) +
           "&seed=" + std::to_string(seed) + more;
}

struct Cluster {
    mr_nic *nic = nullptr;
    unsigned n;
    explicit Cluster(const std::string &text) {
        CHECK_OK(mr_nic_open(text.c_str(), &nic));
        mr_nic_info info;
        CHECK_OK(mr_nic_get_info(nic, &info));
        n = info.nodes;
    }
    Cluster(const Cluster &) = delete;
    ~Cluster() {
        if (nic)
            mr_nic_close(nic);
    }
    mr_nic_info info() const {
        mr_nic_info i;
        CHECK_OK(mr_nic_get_info(nic, &i));
        return i;
    }
    uint64_t total(const char *name) const {
        uint64_t v = 0;
        CHECK_OK(mr_nic_total(nic, name, &v));
        return v;
    }
    /* All ranks are members. */
    void job(uint16_t id, uint8_t root = 0, size_t fan = 0) {
        CHECK_OK(mr_nic_job_create(nic, id, ranks().data(), n, root, fan));
    }
    std::vector<uint8_t> ranks() const {
        std::vector<uint8_t> r(n);
        for (unsigned i = 0; i < n; i++)
            r[i] = (uint8_t)i;
        return r;
    }
    const mr_nic_link_ops *ops() { return mr_nic_link_of(nic)->ops; }
    mr_nic_link *link() { return mr_nic_link_of(nic); }
};

inline const mr_nic_kind kKinds[] = {MR_NIC_BARRIER,   MR_NIC_BROADCAST, MR_NIC_REDUCE,
                                     MR_NIC_ALLREDUCE, MR_NIC_ALLGATHER, MR_NIC_MERGE};

/* One collective with data of its own at every rank, and the answer it must have. */
class Collective {
public:
    /* kinds up to MR_NIC_ALLGATHER; `count` elements a rank */
    Collective(std::mt19937_64 &rng, mr_nic_kind kind, unsigned n, size_t count, unsigned dtype,
               unsigned rop, uint16_t job, uint8_t root = 0);
    void start(mr_nic *nic, unsigned rank);
    void start_all(mr_nic *nic);
    /* Waits for all and compares every bit. */
    void finish();
    ~Collective();
    mr_nic_call call(unsigned rank) const;

private:
    mr_nic_kind kind_;
    unsigned n_, dtype_, rop_;
    size_t count_, size_;
    uint16_t job_;
    uint8_t root_, from_;
    std::vector<std::vector<uint8_t>> send_, recv_;
    std::vector<uint8_t> want_;
    std::vector<mr_nic_op *> op_;
};

/* Partial attention of `n` shards over random keys, and the attention in double. */
class Attention {
public:
    Attention(std::mt19937_64 &rng, unsigned n, size_t heads, size_t dim, unsigned dtype,
              double spread, uint16_t job, uint8_t root = 0, bool everyone = false);
    void run(mr_nic *nic);
    void start(mr_nic *nic, unsigned rank);
    void finish();
    /* The root's result. */
    const std::vector<float> &lse() const { return lse_[root_]; }
    const std::vector<uint8_t> &o() const { return recv_[root_]; }
    ~Attention();

private:
    void check(unsigned rank);
    unsigned n_;
    size_t heads_, dim_;
    unsigned dtype_;
    uint16_t job_;
    uint8_t root_;
    bool everyone_;
    std::vector<std::vector<float>> m_, d_, lse_;
    std::vector<std::vector<uint8_t>> send_, recv_;
    std::vector<bool> natural_;
    std::vector<double> want_lse_, want_o_, bound_;
    std::vector<mr_nic_op *> op_;
};

/* Every ordered pair of collectives on job 3: the second is started before the first has ended, the
 * ranks begin in different orders; up to `most` elements. */
void ordered_pairs(Cluster &c, uint64_t salt, size_t most);

/* Element i of an array of the dtype, and the array's element from a number, rounded to nearest
 * even by the compiler's own types. */
double element(const std::vector<uint8_t> &v, size_t i, unsigned dtype);
void set_element(std::vector<uint8_t> &v, size_t i, unsigned dtype, double x);
inline size_t size_of(unsigned dtype) { return dtype <= MR_NIC_DT_FP16 ? 2 : 4; }

#endif
