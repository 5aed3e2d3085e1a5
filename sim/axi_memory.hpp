// Device memory behind one 512-bit AXI4 port: allocation, and a slave with settable latency,
// bandwidth and random stalls on every channel.
//
// The slave is clocked by hand: after the unit's outputs have settled, cycle() takes them together
// with the inputs that were driven, and leaves the inputs for the next cycle in `to`. Reads and
// writes are served in order; write data may come before their address. A burst that touches a byte
// outside every live allocation (write strobes count, reads count whole words) is answered with
// DECERR.
#ifndef SIM_AXI_MEMORY_HPP
#define SIM_AXI_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "sim/options.hpp"
#include "sim/sim.h"

namespace mr_sim_impl {

// Small, seedable, good enough for stalls.
class random_bits {
public:
    explicit random_bits(uint64_t seed) : s_(seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u) {}
    uint32_t next() {
        s_ ^= s_ << 13;
        s_ ^= s_ >> 7;
        s_ ^= s_ << 17;
        return (uint32_t)(s_ >> 32);
    }

private:
    uint64_t s_;
};

// A channel that is stalled a given share of the time, in stalls of 1..longest cycles.
class stall_source {
public:
    stall_source(uint64_t seed, unsigned percent, unsigned longest);
    bool stalled(); // once a cycle

private:
    random_bits rnd_;
    uint32_t start_; // probability of a stall to begin, of 2^32
    unsigned longest_, left_ = 0;
};

class memory {
public:
    explicit memory(size_t bytes);
    ~memory();
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    bool ok() const { return base_ != nullptr; }
    int alloc(size_t bytes, size_t align, uint64_t *addr);
    int free(uint64_t addr);
    // Host pointer of a range inside one live allocation (of its size padded to 64 bytes when
    // `padded`), or NULL.
    uint8_t *at(uint64_t addr, size_t bytes, bool padded = false);

private:
    struct block {
        size_t bytes, padded;
    };
    uint8_t *base_ = nullptr;
    size_t size_;
    std::map<uint64_t, block> live_;
    uint64_t fresh_ = 0;    // no address from here on was ever handed out
    uint64_t hit_addr_ = 0; // the allocation of the last access
    block hit_{0, 0};
};

// The unit's outputs and, kept from the cycle before, nothing else: handshakes are judged with
// `to`.
struct axi_from_unit {
    bool awvalid, wvalid, wlast, bready, arvalid, rready;
    uint8_t awid, awlen, arid, arlen;
    uint64_t awaddr, araddr, wstrb;
    const void *wdata; // 64 bytes
};

struct axi_to_unit {
    bool awready = false, wready = false, bvalid = false, arready = false, rvalid = false,
         rlast = false;
    uint8_t bid = 0, bresp = 0, rid = 0, rresp = 0;
    const void *rdata = nullptr; // 64 bytes, valid with rvalid
};

class axi_slave {
public:
    axi_slave(memory &mem, const options &opt);
    void cycle(const axi_from_unit &from);
    void reset();
    axi_to_unit to;
    mr_sim_stats stats{};

private:
    struct burst {
        uint8_t id;
        unsigned beats;
        uint64_t addr;
        uint64_t ready; // cycle of the first beat, or of the response
        bool bad;
    };
    struct beat {
        uint8_t data[64];
        uint64_t strb;
        bool last;
    };
    void write_beat(const void *data, uint64_t strb, bool last);

    memory &mem_;
    uint64_t now_ = 0;
    unsigned latency_, wlatency_, bandwidth_, r_credit_ = 0, w_credit_ = 0;
    stall_source ar_, r_, aw_, w_, b_;
    std::deque<burst> reads_, writes_, responses_;
    std::deque<beat> early_; // data before their address
};

} // namespace mr_sim_impl
#endif
