#include "sim/axi_memory.hpp"

#include <cstring>
#include <sys/mman.h>

namespace mr_sim_impl {

static const uint64_t first_addr = 0x10000000u; // so that a null or small pointer is no memory
static const uint8_t okay = 0, decerr = 3;

stall_source::stall_source(uint64_t seed, unsigned percent, unsigned longest)
    : rnd_(seed), longest_(longest) {
    // a cycle outside a stall begins one of mean length m with probability q, so that a share
    // p = q m / (q m + 1 - q) of all cycles is stalled
    double p = percent / 100.0, m = (longest + 1) / 2.0;
    double q = p / (m * (1.0 - p) + p);
    start_ = (uint32_t)(q * 4294967295.0);
}

bool stall_source::stalled() {
    if (!start_)
        return false;
    if (left_) {
        left_--;
        return true;
    }
    if (rnd_.next() >= start_)
        return false;
    left_ = rnd_.next() % longest_;
    return true;
}

memory::memory(size_t bytes) : size_(bytes) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base_ = p == MAP_FAILED ? nullptr : (uint8_t *)p;
}

memory::~memory() {
    if (base_)
        munmap(base_, size_);
}

int memory::alloc(size_t bytes, size_t align, uint64_t *addr) {
    if (!align)
        align = 4096;
    if (!bytes || (align & (align - 1)))
        return MR_SIM_EINVAL;
    if (align < 64)
        align = 64; // no two allocations share a bus word
    if (bytes > size_ || align > size_)
        return MR_SIM_ENOMEM;
    uint64_t at = first_addr, end = first_addr + size_;
    size_t padded = (bytes + 63) & ~(size_t)63;
    for (const auto &b : live_) {
        uint64_t start = (at + align - 1) & ~(uint64_t)(align - 1);
        if (start + padded <= b.first)
            break;
        at = b.first + b.second.padded;
    }
    at = (at + align - 1) & ~(uint64_t)(align - 1);
    if (at > end || padded > end - at)
        return MR_SIM_ENOMEM;
    live_[at] = block{bytes, padded};
    // what nobody has had yet is zero, and the host need not commit it
    uint64_t used = fresh_ < at + padded ? fresh_ : at + padded;
    if (at < used)
        memset(base_ + (at - first_addr), 0, used - at);
    if (fresh_ < at + padded)
        fresh_ = at + padded;
    *addr = at;
    return MR_SIM_OK;
}

int memory::free(uint64_t addr) {
    auto it = live_.find(addr);
    if (it == live_.end())
        return MR_SIM_ERANGE;
    // give whole pages back to the host; the next owner finds zeros either way
    uint8_t *p = base_ + (addr - first_addr);
    uint8_t *from = base_ + ((addr - first_addr + 4095) & ~(uint64_t)4095);
    uint8_t *to = base_ + ((addr - first_addr + it->second.padded) & ~(uint64_t)4095);
    if (to > from && from >= p)
        madvise(from, (size_t)(to - from), MADV_DONTNEED);
    live_.erase(it);
    hit_ = block{0, 0};
    return MR_SIM_OK;
}

uint8_t *memory::at(uint64_t addr, size_t bytes, bool padded) {
    if (!(hit_.bytes && addr >= hit_addr_ && addr - hit_addr_ < hit_.padded)) {
        auto it = live_.upper_bound(addr);
        if (it == live_.begin())
            return nullptr;
        --it;
        hit_addr_ = it->first;
        hit_ = it->second;
    }
    size_t limit = padded ? hit_.padded : hit_.bytes, off = (size_t)(addr - hit_addr_);
    if (off > limit || bytes > limit - off)
        return nullptr;
    return base_ + (addr - first_addr);
}

axi_slave::axi_slave(memory &mem, const options &opt)
    : mem_(mem), latency_(opt.latency), wlatency_(opt.wlatency), bandwidth_(opt.bandwidth),
      ar_(opt.seed * 8 + 1, opt.stall_ar, opt.stall_len),
      r_(opt.seed * 8 + 2, opt.stall_r, opt.stall_len),
      aw_(opt.seed * 8 + 3, opt.stall_aw, opt.stall_len),
      w_(opt.seed * 8 + 4, opt.stall_w, opt.stall_len),
      b_(opt.seed * 8 + 5, opt.stall_b, opt.stall_len) {}

void axi_slave::reset() {
    reads_.clear();
    writes_.clear();
    responses_.clear();
    early_.clear();
    to = axi_to_unit();
}

void axi_slave::write_beat(const void *data, uint64_t strb, bool last) {
    burst &b = writes_.front();
    if (strb) {
        unsigned lo = (unsigned)__builtin_ctzll(strb), hi = 64 - (unsigned)__builtin_clzll(strb);
        uint8_t *p = mem_.at(b.addr + lo, hi - lo);
        if (!p)
            b.bad = true;
        else if (strb == UINT64_MAX)
            memcpy(p, data, 64);
        else
            for (unsigned i = lo; i < hi; i++)
                if (strb >> i & 1)
                    p[i - lo] = ((const uint8_t *)data)[i];
    }
    b.addr += 64;
    stats.w_beats++;
    stats.w_bytes += (uint64_t)__builtin_popcountll(strb);
    if (last) {
        if (b.bad)
            stats.write_errors++;
        b.ready = now_ + wlatency_;
        responses_.push_back(b);
        writes_.pop_front();
    }
}

void axi_slave::cycle(const axi_from_unit &from) {
    static const uint8_t nothing[64] = {0};
    now_++;
    stats.cycles++;

    // what was transferred at the edge
    if (from.awvalid && to.awready) {
        writes_.push_back(burst{from.awid, from.awlen + 1u, from.awaddr & ~(uint64_t)63, 0, false});
        stats.aw_bursts++;
        while (!early_.empty() && !writes_.empty()) {
            beat e = early_.front();
            early_.pop_front();
            write_beat(e.data, e.strb, e.last);
        }
    }
    if (from.wvalid && to.wready) {
        w_credit_ -= 64;
        if (writes_.empty()) {
            beat e;
            memcpy(e.data, from.wdata, 64);
            e.strb = from.wstrb;
            e.last = from.wlast;
            early_.push_back(e);
        } else {
            write_beat(from.wdata, from.wstrb, from.wlast);
        }
    }
    if (to.bvalid && from.bready) {
        responses_.pop_front();
        to.bvalid = false;
    }
    if (from.arvalid && to.arready) {
        reads_.push_back(burst{from.arid, from.arlen + 1u, from.araddr & ~(uint64_t)63,
                               now_ + latency_ - 1, false});
        stats.ar_bursts++;
    }
    if (to.rvalid && from.rready) {
        burst &b = reads_.front();
        b.addr += 64;
        stats.r_beats++;
        if (--b.beats == 0) {
            if (b.bad)
                stats.read_errors++;
            reads_.pop_front();
        }
        to.rvalid = false;
    }

    // what the slave offers in the next cycle
    r_credit_ += bandwidth_;
    w_credit_ += bandwidth_;
    if (r_credit_ > 127)
        r_credit_ = 127;
    if (w_credit_ > 127)
        w_credit_ = 127;
    to.awready = !aw_.stalled() && writes_.size() < 64;
    to.wready = !w_.stalled() && w_credit_ >= 64 && early_.size() < 64;
    to.arready = !ar_.stalled() && reads_.size() < 64;
    bool r_stall = r_.stalled(), b_stall = b_.stalled();
    if (!to.bvalid && !b_stall && !responses_.empty() && responses_.front().ready <= now_) {
        to.bvalid = true;
        to.bid = responses_.front().id;
        to.bresp = responses_.front().bad ? decerr : okay;
    }
    if (!to.rvalid && !r_stall && !reads_.empty() && reads_.front().ready <= now_ &&
        r_credit_ >= 64) {
        burst &b = reads_.front();
        const uint8_t *p = mem_.at(b.addr, 64, true);
        r_credit_ -= 64;
        if (!p)
            b.bad = true;
        to.rvalid = true;
        to.rdata = p ? p : nothing;
        to.rid = b.id;
        to.rresp = p ? okay : decerr;
        to.rlast = b.beats == 1;
    }
}

} // namespace mr_sim_impl
