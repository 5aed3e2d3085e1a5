// The commands a near-memory unit gives its banks, as text: a header with the meaning of the
// columns, then one command a line: cycle group command banks row column.
#ifndef SIM_DRAM_TRACE_HPP
#define SIM_DRAM_TRACE_HPP

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace mr_sim_impl {

// The flat wire of pnm_top: 22 bits a group, {valid, command 3, row 10, column 4, banks 4}.
template <class Top>
const uint32_t *dram_commands(Top *t) {
    return t->rootp->pnm_kernel__DOT__u_top__DOT__dram_cmds.data();
}

class dram_trace {
public:
    // An empty name: no trace.
    bool open(const std::string &name) {
        if (name.empty())
            return true;
        file_.reset(fopen(name.c_str(), "w"));
        return file_ && fputs("# cycle group command banks row column\n", file_.get()) >= 0;
    }
    bool cycle(const uint32_t *words, uint64_t now) {
        static const char *const names[] = {"ACT", "RD", "WR", "PRE", "REF", "?", "?", "?"};
        if (!file_)
            return true;
        bool ok = true;
        for (unsigned g = 0; g < 4; g++) {
            const uint64_t two = (uint64_t)words[22 * g / 32] |
                                 (22 * g / 32 + 1 < 3 ? (uint64_t)words[22 * g / 32 + 1] << 32 : 0);
            const uint32_t c = (uint32_t)(two >> (22 * g % 32)) & 0x3FFFFF;
            if (c >> 21)
                ok &= fprintf(file_.get(), "%llu %u %s %x %u %u\n", (unsigned long long)now, g,
                              names[c >> 18 & 7], c & 15, c >> 8 & 1023, c >> 4 & 15) > 0;
        }
        return ok;
    }

private:
    struct closer {
        void operator()(FILE *f) const { fclose(f); }
    };
    std::unique_ptr<FILE, closer> file_;
};

} // namespace mr_sim_impl
#endif
