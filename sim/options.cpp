#include "sim/options.hpp"

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace mr_sim_impl {

static bool number(const std::string &text, uint64_t lo, uint64_t hi, uint64_t &out) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
        return false;
    errno = 0;
    unsigned long long v = strtoull(text.c_str(), nullptr, 10);
    if (errno || v < lo || v > hi)
        return false;
    out = v;
    return true;
}

struct number_key {
    const char *key;
    uint64_t lo, hi;
    std::vector<unsigned *> to;
};

static bool set(options &o, const std::string &key, const std::string &value, std::string &err) {
    const number_key keys[] = {
        {"memory", 1, 1u << 20, {&o.memory_mib}},
        {"latency", 1, 100000, {&o.latency}},
        {"wlatency", 1, 100000, {&o.wlatency}},
        {"bandwidth", 1, 64, {&o.bandwidth}},
        {"stall",
         0,
         95,
         {&o.stall_ar, &o.stall_r, &o.stall_aw, &o.stall_w, &o.stall_b, &o.stall_s}},
        {"stall_ar", 0, 95, {&o.stall_ar}},
        {"stall_r", 0, 95, {&o.stall_r}},
        {"stall_aw", 0, 95, {&o.stall_aw}},
        {"stall_w", 0, 95, {&o.stall_w}},
        {"stall_b", 0, 95, {&o.stall_b}},
        {"stall_s", 0, 95, {&o.stall_s}},
        {"stall_len", 1, 10000, {&o.stall_len}},
    };
    uint64_t v;
    for (const number_key &k : keys) {
        if (key != k.key)
            continue;
        if (!number(value, k.lo, k.hi, v)) {
            err = "simulator option " + key + ": '" + value + "' is not a number in " +
                  std::to_string(k.lo) + ".." + std::to_string(k.hi);
            return false;
        }
        for (unsigned *to : k.to)
            *to = (unsigned)v;
        return true;
    }
    if (key == "seed") {
        if (number(value, 0, UINT64_MAX, v)) {
            o.seed = v;
            return true;
        }
        err = "simulator option seed: '" + value + "' is not a number";
        return false;
    }
    if (key == "xinit") {
        static const char *const names[] = {"zero", "ones", "random"};
        for (unsigned i = 0; i < 3; i++)
            if (value == names[i]) {
                o.xinit = i;
                return true;
            }
        err = "simulator option xinit: '" + value + "' is none of zero, ones, random";
        return false;
    }
    if (key == "trace") {
        o.trace = value;
        if (!value.empty())
            return true;
        err = "simulator option trace: a file name is missing";
        return false;
    }
    if (key == "dram_trace") {
        o.dram_trace = value;
        if (!value.empty())
            return true;
        err = "simulator option dram_trace: a file name is missing";
        return false;
    }
    err = "unknown simulator option '" + key + "'";
    return false;
}

bool parse_options(const char *text, options &out, std::string &err) {
    std::string all = text ? text : "";
    size_t pos = 0;
    while (pos < all.size()) {
        size_t end = all.find('&', pos);
        if (end == std::string::npos)
            end = all.size();
        std::string item = all.substr(pos, end - pos);
        size_t eq = item.find('=');
        if (eq == std::string::npos || eq == 0) {
            err = "simulator option '" + item + "' is not key=value";
            return false;
        }
        if (!set(out, item.substr(0, eq), item.substr(eq + 1), err))
            return false;
        pos = end + 1;
    }
    return true;
}

} // namespace mr_sim_impl
