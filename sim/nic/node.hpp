// One Verilated NIC (rtl/kernels/nic_kernel.sv) with its device memory, its register port and what
// is on its streams.
#ifndef SIM_NIC_NODE_HPP
#define SIM_NIC_NODE_HPP

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "host/nic/link.h"
#include "sim/axi_memory.hpp"
#include "sim/net/switch.h"

class Vmr_nic;
class VerilatedContext;
class VerilatedFstC;

namespace mr_sim_impl {

typedef std::vector<uint8_t> nic_frame;

// The simulator cannot go on; what() is one line.
struct nic_dead {
    std::string what;
};

class nic_node {
public:
    // `trace`: an FST file, or empty. `cable`: the switch whose port `index` network port 0 hangs
    // on, or NULL; it tells when a frame may start. Throws nic_dead.
    nic_node(const mr_nic_link_options &o, unsigned index, mr_switch *cable,
             const std::string &trace);
    ~nic_node();

    // One clock cycle, number `now`. Frames that it sends and delivers are appended below.
    void cycle(uint64_t now);

    // Register accesses and table commands take cycles of this NIC alone, all of them with the
    // number `now`. command(): 0, or the unit's error code and which descriptor it was.
    void reg_write(uint64_t now, uint32_t offset, uint32_t value);
    uint32_t reg_read(uint64_t now, uint32_t offset);
    unsigned command(uint64_t now, const uint8_t *descs, size_t n, size_t &at);
    uint64_t counter(uint64_t now, unsigned index);
    bool idle() const;

    uint8_t *kv(uint64_t addr, size_t bytes); // NULL: outside
    const mr_nic_stream &stream(unsigned id) const { return streams_[id]; }
    void forget_streams();

    struct waiting {
        uint64_t cycle; // not before
        nic_frame data;
    };
    struct done {
        unsigned port;
        uint64_t cycle; // of the last beat
        nic_frame data;
    };
    std::deque<waiting> in[3]; // network 0 and 1, host
    std::deque<done> sent;     // to the network
    std::deque<nic_frame> host, events;
    bool paused = false; // the host takes nothing

private:
    struct port; // one stream's signals
    [[noreturn]] void die(const std::string &what) const;
    void eval();
    void take_beats(uint64_t now);
    void drive(uint64_t now);
    void drive_in(unsigned i, uint64_t now);

    unsigned index_;
    mr_switch *cable_;
    std::unique_ptr<VerilatedContext> ctx_;
    std::unique_ptr<Vmr_nic> top_;
    std::unique_ptr<VerilatedFstC> fst_;
    std::vector<port> ports_; // three in, three out, events
    memory mem_;
    axi_slave axi_;
    uint64_t kv_ = 0, kv_bytes_, list_ = 0;
    size_t at_[3] = {0, 0, 0}; // bytes of the first waiting frame that have been taken
    nic_frame open_[3];        // frames that are coming out
    mr_nic_stream streams_[MR_NIC_STREAMS];
    unsigned quiet_ = 0; // cycles without a beat anywhere
    std::string said_;
};

} // namespace mr_sim_impl
#endif
