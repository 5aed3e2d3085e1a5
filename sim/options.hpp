// Options of a simulator: "key=value" pairs joined by '&', see sim.h.
#ifndef SIM_OPTIONS_HPP
#define SIM_OPTIONS_HPP

#include <cstdint>
#include <string>

namespace mr_sim_impl {

struct options {
    uint64_t seed = 1;
    unsigned xinit = 0; // 0 zero, 1 ones, 2 random
    unsigned memory_mib = 4096;
    unsigned latency = 1, wlatency = 1, bandwidth = 64;
    unsigned stall_ar = 0, stall_r = 0, stall_aw = 0, stall_w = 0, stall_b = 0, stall_s = 0;
    unsigned stall_len = 8;
    std::string trace, dram_trace;
};

// false: err says which key or value is wrong
bool parse_options(const char *text, options &out, std::string &err);

} // namespace mr_sim_impl
#endif
