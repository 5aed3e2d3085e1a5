// rgu_apply alone, bit for bit against the golden model: tables, memory and row scales are played
// by the bench, every stream stalls at random, and the utilisation of the multipliers is measured.
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "Vrgu_apply.h"

#include "models/golden/rgu_apply.h"
#include "tests/rtl/common/bench.hpp"

namespace {
struct Projection {
    mr_seed s{};
    std::vector<int16_t> angles;
    std::vector<float> gain, row_scale;
    std::vector<uint8_t> odd, image;
    size_t d() const { return (size_t)1 << s.n; }
    size_t chunks_in() const { return (s.d_in + d() - 1) / d(); }
    size_t chunks_out() const { return (s.d_out + d() - 1) / d(); }
    void pack() {
        s.angles = angles.data(), s.gain = gain.data(), s.odd = odd.data();
        s.row_scale = row_scale.empty() ? nullptr : row_scale.data();
        CHECK(mr_seed_check(&s) == nullptr);
        image.resize(mr_rgu_image_bytes(&s));
        mr_rgu_pack(&s, image.data());
    }
};

double unit(Rng &rng) { return (double)(rng.next() >> 11) / 9007199254740992.0; }
double bell(Rng &rng) { return unit(rng) + unit(rng) + unit(rng) - 1.5; }

Projection make(Rng &rng, int n, int terms, size_t d_out, size_t d_in, bool scaled) {
    Projection p;
    p.s.n = n, p.s.terms = terms, p.s.d_out = d_out, p.s.d_in = d_in;
    size_t records = p.chunks_in() * p.chunks_out() * (size_t)terms;
    p.angles.resize(records * 2 * (size_t)mr_rgu_planes(n));
    for (auto &a : p.angles)
        a = (int16_t)rng.next();
    for (size_t k = 0; k < records; k++) {
        p.gain.push_back((float)bell(rng));
        p.odd.push_back(rng.next() & 1);
    }
    if (scaled)
        for (size_t k = 0; k < d_out; k++)
            p.row_scale.push_back((float)(bell(rng) * std::exp2(12 * unit(rng) - 6)));
    p.pack();
    return p;
}

// Vectors of every awkward kind.
std::vector<float> vectors(Rng &rng, size_t batch, size_t d_in) {
    std::vector<float> x(batch * d_in);
    for (size_t b = 0; b < batch; b++) {
        uint64_t kind = rng.below(10), at = rng.below(d_in);
        for (size_t c = 0; c < d_in; c++) {
            double v = bell(rng);
            switch (kind) {
            case 0:
                v = 0;
                break;
            case 1:
                v = c == at ? 3.0 : 0.0;
                break;
            case 2:
                v *= std::exp2(80 * unit(rng) - 40);
                break;
            case 3:
                v *= 1e30;
                break;
            case 4:
                v = 1.0;
                break;
            case 5:
                v *= 1e-38;
                break;
            case 6:
                v *= 1e-42;
                break;
            default:
                break;
            }
            x[b * d_in + c] = (float)v;
        }
        if (kind == 7)
            x[b * d_in + at] = at & 1 ? NAN : -INFINITY;
    }
    return x;
}

struct Options {
    unsigned stall = 0;       // percent, of every stream and of the tables
    unsigned latency = 30;    // of reads, cycles
    uint64_t table_first = 0; // cycles until the first chunk's tables are there, and between
    uint64_t table_next = 0;  // two chunks
    size_t src_off = 0, src_pad = 0, dst_off = 0, dst_pad = 0;
    float scale = 1.0f;
    bool saturate = false;
    uint64_t abandon = 0; // reset after this many cycles, then run again
};

struct Result {
    uint64_t cycles = 0, mults = 0, stall_in = 0, stall_out = 0, in = 0, out = 0;
    std::vector<uint8_t> dst;
};

class Unit : public Bench<Vrgu_apply> {
public:
    explicit Unit(uint64_t noise) : Bench(noise), rng_(noise ^ 0x5EED) { idle(); }

    Result run(const Projection &p, size_t batch, const std::vector<float> &x, const Options &opt) {
        for (bool abandoned = opt.abandon != 0;; abandoned = false) {
            Result r;
            if (once(p, batch, x, opt, abandoned ? opt.abandon : 0, r))
                return r;
            idle();
            reset();
        }
    }

private:
    struct Tables {
        std::vector<int32_t> r, s; // [term][half]
        int e;
        uint32_t odd;
    };
    Rng rng_;

    void idle() {
        top->start_i = 0;
        top->tab_valid_i = 0;
        top->rd_cmd_ready_i = 0;
        top->rd_valid_i = 0;
        top->wr_cmd_ready_i = 0;
        top->wr_ready_i = 0;
    }

    template <class Wide>
    static void put(Wide &wide, unsigned at, unsigned width, uint32_t value) {
        for (unsigned b = 0; b < width; b++) {
            unsigned bit = at + b;
            wide[bit / 32] = (wide[bit / 32] & ~(1u << bit % 32)) | ((value >> b & 1u) << bit % 32);
        }
    }

    bool once(const Projection &p, size_t batch, const std::vector<float> &x, const Options &opt,
              uint64_t abandon, Result &res) {
        int n = p.s.n;
        size_t d = p.d(), half = d / 2, ci = p.chunks_in(), co = p.chunks_out();
        size_t terms = (size_t)p.s.terms, rb = mr_rgu_record_bytes(n), group = 4096 / d;
        size_t visits = (batch + group - 1) / group, total_chunks = co * visits * ci;
        size_t src_stride = p.s.d_in * 4 + opt.src_pad, dst_stride = p.s.d_out * 4 + opt.dst_pad;
        const uint64_t src_base = 0x7000 + opt.src_off, dst_base = 0x100000000 + opt.dst_off;
        std::vector<uint8_t> src(batch * src_stride);
        for (size_t b = 0; b < batch; b++)
            memcpy(&src[b * src_stride], &x[b * p.s.d_in], p.s.d_in * 4);
        res.dst.assign(batch * dst_stride, 0xA5);
        std::map<size_t, Tables> cache;
        auto tables = [&](size_t visit_chunk) -> const Tables & {
            size_t chunk = visit_chunk / (visits * ci) * ci + visit_chunk % ci;
            auto found = cache.find(chunk);
            if (found != cache.end())
                return found->second;
            Tables &t = cache[chunk];
            t.r.resize(terms * half), t.s.resize(terms * half), t.odd = 0;
            for (size_t k = 0; k < terms; k++) {
                mr_rgu_record rec;
                mr_rgu_unpack(&p.image[(chunk * terms + k) * rb], n, &rec);
                mr_golden_tables(n, &rec, &t.r[k * half], &t.s[k * half]);
                t.odd |= (uint32_t)rec.odd << k;
                t.e = rec.e;
            }
            return t;
        };

        struct Command {
            uint64_t addr;
            size_t len, done;
            uint64_t ready;
        };
        std::deque<Command> reads, writes;
        size_t chunk = 0, rs_pops = 0, offered_beat = 0;
        uint64_t start = 0, table_at = 0, limit = 0;
        bool started = false, rd_offered = false, finished = false;
        auto stall = [&] { return opt.stall && rng_.percent(opt.stall); };

        top->n10_i = n == 10;
        top->terms_i = (uint8_t)terms;
        top->row_scale_i = !p.row_scale.empty();
        top->saturate_i = opt.saturate;
        memcpy(&top->scale_i, &opt.scale, 4);
        top->batch_i = (uint32_t)batch;
        top->d_in_i = (uint32_t)p.s.d_in;
        top->d_out_i = (uint32_t)p.s.d_out;
        top->chunks_in_i = (uint16_t)ci;
        top->chunks_out_i = (uint16_t)co;
        top->src_i = src_base;
        top->src_stride_i = (uint32_t)src_stride;
        top->dst_i = dst_base;
        top->dst_stride_i = (uint32_t)dst_stride;
        limit = 20000 + 60 * total_chunks * terms * (group * d + opt.table_next);

        for (uint64_t now = 0;; now++) {
            if (abandon && now == abandon)
                return false;
            CHECK_TEXT(now < limit, "no end");
            top->start_i = now == 3;
            if (now == 3)
                start = now, started = true, table_at = now + opt.table_first;
            // tables
            bool tab_valid = started && now > 3 && chunk < total_chunks && now >= table_at;
            top->tab_valid_i = tab_valid;
            if (tab_valid) {
                const Tables &t = tables(chunk);
                top->tab_e_i = (uint32_t)t.e & 1023u;
                top->tab_odd_i = t.odd;
                top->tab_rs_half_i = chunk / ci & 1;
            }
            // reads
            if (!rd_offered && !reads.empty() && now >= reads.front().ready && !stall()) {
                Command &c = reads.front();
                for (unsigned w = 0; w < 16; w++)
                    top->rd_data_i[w] = (uint32_t)rng_.next(); // beyond the end: anything
                size_t n_bytes = std::min<size_t>(64, c.len - c.done);
                memcpy(&top->rd_data_i[0], &src.at(c.addr - src_base + c.done), n_bytes);
                rd_offered = true;
                offered_beat = n_bytes;
            }
            top->rd_valid_i = rd_offered;
            top->rd_cmd_ready_i = !stall() && reads.size() < 4;
            top->wr_cmd_ready_i = !stall() && writes.empty();
            top->wr_ready_i = !stall() && !writes.empty();
            settle();

            // what happens at the coming edge
            bool rd_en = top->tab_rd_en_o, rs_en = top->rs_en_o;
            unsigned tab_addr = top->tab_addr_o, rs_addr = top->rs_addr_o;
            size_t read_chunk = chunk;
            if (rd_en)
                CHECK(tab_valid);
            if (top->tab_pop_o) {
                CHECK(tab_valid);
                chunk++;
                table_at = std::max(table_at + opt.table_next, now + (stall() ? 50 : 0));
            }
            if (rd_offered && top->rd_ready_o) {
                Command &c = reads.front();
                c.done += offered_beat;
                if (c.done == c.len)
                    reads.pop_front();
                rd_offered = false;
            }
            if (top->rd_cmd_valid_o && top->rd_cmd_ready_i)
                reads.push_back({top->rd_cmd_addr_o, top->rd_cmd_len_o, 0, now + opt.latency});
            if (top->wr_valid_o && top->wr_ready_i) {
                Command &c = writes.front();
                size_t n_bytes = std::min<size_t>(64, c.len - c.done);
                CHECK(c.addr >= dst_base && c.addr - dst_base + c.done + n_bytes <= res.dst.size());
                memcpy(&res.dst[c.addr - dst_base + c.done], &top->wr_data_o[0], n_bytes);
                c.done += n_bytes;
                if (c.done == c.len)
                    writes.pop_front();
            }
            if (top->wr_cmd_valid_o && top->wr_cmd_ready_i)
                writes.push_back({top->wr_cmd_addr_o, top->wr_cmd_len_o, 0, 0});
            if (started) {
                res.mults += top->mults_o;
                res.stall_in += top->stall_in_o;
                res.stall_out += top->stall_out_o;
                res.in += top->items_in_o;
                res.out += top->items_out_o;
                finished = top->done_o;
                res.cycles = now - start;
            }
            size_t visit = rs_pops;
            if (top->rs_pop_o)
                rs_pops++;
            tick();
            if (rd_en) {
                const Tables &t = tables(read_chunk);
                size_t base = (tab_addr >> 4) * half + (tab_addr & 15) * 32;
                for (unsigned l = 0; l < 32; l++) {
                    put(top->tab_r_i, l * 22, 22, (uint32_t)t.r.at(base + l));
                    put(top->tab_s_i, l * 20, 20, (uint32_t)t.s.at(base + l));
                }
            }
            if (rs_en) {
                CHECK_EQUAL(visit & 1, rs_addr >> 10);
                size_t row = visit / visits * d + (rs_addr & (unsigned)(d - 1));
                float scale = row < p.s.d_out ? p.row_scale.at(row) : 1.0f;
                memcpy(&top->rs_data_i, &scale, 4);
            }
            CHECK_FALSE(fired());
            if (finished)
                break;
        }
        CHECK(writes.empty());
        CHECK(reads.empty());
        CHECK_EQUAL(total_chunks, chunk);
        CHECK_EQUAL(co * visits, rs_pops);
        top->start_i = 0;
        return true;
    }
};

void check(Unit &u, const Projection &p, size_t batch, const std::vector<float> &x,
           const Options &opt, Result *out = nullptr) {
    Result got = u.run(p, batch, x, opt);
    mr_golden_job job{};
    job.n = p.s.n, job.terms = p.s.terms, job.d_out = p.s.d_out, job.d_in = p.s.d_in;
    job.image = p.image.data(), job.row_scale = p.s.row_scale, job.scale = opt.scale;
    job.sat = opt.saturate;
    size_t stride = p.s.d_out * 4 + opt.dst_pad;
    std::vector<uint8_t> want(batch * stride, 0xA5);
    CHECK_EQUAL(0, mr_golden_apply(&job, batch, x.data(), p.s.d_in * 4, want.data(), stride));
    size_t wrong = 0, first = 0;
    for (size_t k = 0; k < want.size(); k++)
        if (want[k] != got.dst[k] && !wrong++)
            first = k;
    if (wrong)
        printf(
            "n %d terms %d %zux%zu batch %zu: %zu bytes differ, first in vector %zu at row %zu\n",
            p.s.n, p.s.terms, p.s.d_out, p.s.d_in, batch, wrong, first / stride,
            first % stride / 4);
    CHECK_EQUAL(0u, wrong);
    CHECK_EQUAL(p.chunks_out() * (size_t)p.s.terms * batch * p.s.d_in, got.in);
    CHECK_EQUAL(batch * p.s.d_out, got.out);
    size_t passes = p.chunks_out() * p.chunks_in() * (size_t)p.s.terms * batch;
    CHECK_EQUAL(passes * (p.s.n == 10 ? 2048u : 256u), got.mults);
    if (out)
        *out = got;
}
} // namespace

TEST_GROUP(rgu_apply_rtl) {
    Rng rng{run_seed()};
    void random(int n, size_t cases, size_t most) {
        Unit u(rng.next());
        u.reset();
        for (size_t k = 0; k < cases; k++) {
            size_t d = (size_t)1 << n;
            Projection p = make(rng, n, 1 + (int)rng.below(3), 1 + rng.below(most),
                                1 + rng.below(most), rng.percent(50));
            for (size_t r = 0; r < p.gain.size(); r++) {
                p.gain[r] *= (float)std::exp2(40 * unit(rng) - 20);
                if (rng.percent(20))
                    p.gain[r] = 0;
                if (r && rng.percent(10)) { // the term before it, negated, where shapes allow
                    size_t chunks = p.chunks_in() * p.chunks_out(),
                           planes2 = p.angles.size() / p.gain.size();
                    if (r >= chunks) {
                        memcpy(&p.angles[r * planes2], &p.angles[(r - chunks) * planes2],
                               planes2 * 2);
                        p.gain[r] = -p.gain[r - chunks];
                        p.odd[r] = p.odd[r - chunks];
                    }
                }
            }
            p.pack();
            size_t batch = 1 + rng.below(k % 2 ? 3 : 6000 / d);
            Options opt;
            opt.stall = rng.percent(50) ? (unsigned)rng.below(80) : 0;
            opt.latency = (unsigned)rng.below(200);
            opt.table_first = rng.below(500);
            opt.table_next = rng.percent(50) ? rng.below(3000) : 0;
            opt.src_pad = rng.below(100), opt.dst_pad = rng.below(100);
            opt.src_off = rng.below(64), opt.dst_off = rng.below(64);
            opt.scale = (float)bell(rng);
            opt.saturate = rng.percent(50);
            opt.abandon = rng.percent(20) ? 1 + rng.below(3000) : 0;
            check(u, p, batch, vectors(rng, batch, p.s.d_in), opt);
        }
    }
    double busy(int n, size_t dim, size_t batch, int terms, Options opt) {
        Unit u(rng.next());
        u.reset();
        Projection p = make(rng, n, terms, dim, dim, true);
        Result r;
        check(u, p, batch, vectors(rng, batch, dim), opt, &r);
        double share = (double)r.mults / (double)r.cycles;
        printf("n %2d %4zux%-4zu terms %d batch %2zu: %7llu cycles, multipliers busy %.1f %% "
               "(waiting for input %llu, for output %llu)\n",
               n, dim, dim, terms, batch, (unsigned long long)r.cycles, 100 * share,
               (unsigned long long)r.stall_in, (unsigned long long)r.stall_out);
        return share;
    }
};

TEST(rgu_apply_rtl, n8_against_the_golden_model) { random(8, 40, 600); }
TEST(rgu_apply_rtl, n10_against_the_golden_model) { random(10, 8, 1500); }

// Table delays are those of rgu_seed: 16 butterfly outputs a cycle.
TEST(rgu_apply_rtl, multipliers_are_busy) {
    Options opt;
    opt.latency = 40;
    opt.table_first = 1200, opt.table_next = 1100;
    CHECK_TRUE(busy(10, 2048, 16, 1, opt) >= 0.90);
    opt.table_first = 350, opt.table_next = 250;
    CHECK_TRUE(busy(8, 512, 16, 1, opt) >= 0.85);
    CHECK_TRUE(busy(8, 256, 64, 1, opt) >= 0.85);
    busy(8, 512, 1, 1, opt);
    busy(8, 256, 16, 8, opt);
}

TEST(rgu_apply_rtl, an_empty_batch_is_done_at_once) {
    Unit u(rng.next());
    u.reset();
    u.top->batch_i = 0;
    u.top->start_i = 1;
    u.tick();
    u.top->start_i = 0;
    u.settle();
    CHECK_EQUAL(1, u.top->done_o);
    u.tick();
    for (int k = 0; k < 50; k++) {
        u.settle();
        CHECK_EQUAL(0,
                    u.top->done_o | u.top->rd_cmd_valid_o | u.top->wr_cmd_valid_o | u.top->mults_o);
        u.tick();
    }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
