// Descriptors made by host/nic/tables.c through the command block into the tables, and what the
// tables then say; counters and events under everything that can happen in one cycle.
#include "tests/rtl/common/bench.hpp"

#include "Vtables_tb.h"
#include "host/nic/tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace {

using Desc = std::array<uint8_t, 64>;

template <class Port>
uint64_t bits(const Port &port, int lsb, int width) {
    uint64_t v = 0;
    for (int i = 0; i < width; i++)
        v |= (uint64_t)(port[(lsb + i) / 32] >> (lsb + i) % 32 & 1) << i;
    return v;
}

struct Tables : Bench<Vtables_tb> {
    explicit Tables(uint64_t noise) : Bench(noise), rng(noise) {
        auto &t = *top;
        t.ap_start_i = t.mode_memory_i = t.grant_i = t.arready_i = t.rvalid_i = t.rresp_i =
            t.rlast_i = 0;
        t.mac_en_i = t.lk_en_i = t.chk_valid_i = t.set_valid_i = t.bad_valid_i = t.dir_valid_i = 0;
        t.inc_valid_i = t.take_i = t.ev_valid_i = t.m_ready_i = 0;
        t.grant_i = 1;
        reset();
        for (int k = 0; k < 600; k++) // memories clear themselves
            tick();
    }
    Rng rng;
    std::deque<Desc> list;   // in memory, at LIST
    std::vector<Desc> taken; // by the tables
    unsigned bad_at = ~0u;   // word of the list that memory cannot read
    unsigned grant = 100, memory = 100;
    bool broken = false;
    int dones = 0;
    static const uint64_t LIST = 0x7000123440u;

    void step() {
        auto &t = *top;
        t.grant_i = rng.percent(grant);
        t.arready_i = rng.percent(memory);
        t.rvalid_i = 0;
        if (!bursts.empty() && rng.percent(memory)) {
            auto &b = bursts.front();
            t.rvalid_i = 1;
            const size_t at = (b.first - LIST) / 64;
            memcpy(&t.rdata_i[0], list[at].data(), 64);
            t.rresp_i = at == bad_at ? 2 : 0;
            t.rlast_i = b.second == 1;
        }
        settle();
        if (t.upd_fire_o) {
            Desc d;
            memcpy(d.data(), &t.upd_desc_o[0], 64);
            taken.push_back(d);
        }
        if (t.rvalid_i) {
            bursts.front().first += 64;
            if (!--bursts.front().second)
                bursts.pop_front();
        }
        if (t.arvalid_o && t.arready_i)
            bursts.push_back({t.araddr_o, t.arlen_o + 1u});
        dones += t.ap_done_o;
        const bool ready = t.ap_ready_o;
        tick();
        if (ready)
            t.ap_start_i = 0;
        broken |= fired();
        settle();
    }
    // Runs a command to its end; the error code.
    unsigned command() {
        auto &t = *top;
        dones = 0;
        t.ap_start_i = 1;
        for (int k = 0; k < 20000 && !dones; k++)
            step();
        step();
        CHECK_EQUAL(1, dones);
        CHECK(t.ap_idle_o);
        return t.error_o;
    }
    unsigned execute(const uint8_t *desc) {
        top->mode_memory_i = 0;
        memcpy(&top->desc_i[0], desc, 64);
        return command();
    }
    unsigned execute_list(unsigned count) {
        top->mode_memory_i = 1;
        top->count_i = count;
        top->addr_i = LIST;
        return command();
    }
    void options(uint8_t rank) {
        mr_nic_desc d;
        const mr_nic_options_desc o = {rank, false, 8192, 0, 0};
        mr_nic_desc_options(d, &o);
        CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, execute(d));
    }

private:
    std::deque<std::pair<uint64_t, unsigned>> bursts;
};

TEST_GROUP(nic_tables) { Rng rng{run_seed()}; };

TEST(nic_tables, options) {
    Tables b(rng.next());
    auto &t = *b.top;
    CHECK_EQUAL(0, t.opt_rank_o);
    CHECK_EQUAL(8192u, t.opt_rto_o);
    CHECK_EQUAL(0u, t.opt_slot_timeout_o);
    mr_nic_desc d;
    mr_nic_options_desc o = {200, true, 123456, 654321, 0xABCDEF0123456000u};
    mr_nic_desc_options(d, &o);
    CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, b.execute(d));
    CHECK(t.opt_rank_o == 200 && t.opt_chain_o && t.opt_rto_o == 123456 &&
          t.opt_slot_timeout_o == 654321);
    CHECK(t.opt_kv_base_o == o.kv_base);
    o.kv_base += 2048;
    o.rank = 7;
    mr_nic_desc_options(d, &o);
    CHECK_EQUAL((unsigned)MR_NIC_CMD_FIELD, b.execute(d));
    CHECK(t.opt_rank_o == 200);
    CHECK(!b.broken);
}

TEST(nic_tables, nodes) {
    Tables b(rng.next());
    auto &t = *b.top;
    b.options(5);
    std::map<unsigned, mr_nic_node_desc> rows;
    auto same = [](const auto &port, int at, const mr_nic_node_desc *n) {
        if (!n)
            return bits(port, at + 97, 1) == 0;
        uint64_t mac = 0;
        for (int i = 0; i < 6; i++)
            mac = mac << 8 | n->mac[i];
        return bits(port, at + 97, 1) == 1 && bits(port, at + 49, 48) == mac &&
               bits(port, at + 17, 32) == n->ip && bits(port, at + 1, 16) == n->port &&
               bits(port, at, 1) == n->netport;
    };
    auto row = [&](unsigned r) { return rows.count(r) ? &rows[r] : nullptr; };
    for (int k = 0; k < 1200; k++) {
        mr_nic_desc d;
        const unsigned r = (unsigned)b.rng.below(k < 600 ? 256 : 12);
        if (b.rng.percent(20)) {
            mr_nic_desc_node_remove(d, (uint8_t)r);
            rows.erase(r);
        } else {
            mr_nic_node_desc n = {};
            n.rank = (uint8_t)r, n.ip = (uint32_t)b.rng.next(), n.port = (uint16_t)b.rng.next();
            n.netport = b.rng.next() & 1;
            for (auto &m : n.mac)
                m = (uint8_t)b.rng.next();
            if (b.rng.percent(30) && !rows.empty()) // an address twice
                memcpy(n.mac, rows.begin()->second.mac, 6);
            mr_nic_desc_node(d, &n);
            rows[r] = n;
        }
        CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, b.execute(d));
        uint8_t ranks[4];
        for (int p = 0; p < 4; p++)
            ranks[p] = b.rng.percent(50) ? (uint8_t)r : (uint8_t)b.rng.next();
        memcpy(&t.rd_rank_i, ranks, 4);
        // a MAC address: of a row, or one bit beside
        uint64_t mac = b.rng.next() & 0xFFFFFFFFFFFF;
        if (!rows.empty()) {
            auto at = rows.lower_bound((unsigned)b.rng.below(256));
            const auto &n = at == rows.end() ? rows.begin()->second : at->second;
            mac = 0;
            for (uint8_t m : n.mac)
                mac = mac << 8 | m;
            if (b.rng.percent(30))
                mac ^= 1ull << b.rng.below(48);
        }
        t.mac_i = mac;
        t.mac_en_i = 1;
        b.step();
        t.mac_en_i = 0;
        for (int p = 0; p < 4; p++)
            CHECK(same(t.rd_node_o, 98 * p, row(ranks[p])));
        CHECK(same(t.own_o, 0, row(5)));
        const mr_nic_node_desc *want = nullptr;
        for (auto &n : rows) {
            uint64_t m = 0;
            for (uint8_t v : n.second.mac)
                m = m << 8 | v;
            if (m == mac && !want)
                want = &n.second;
        }
        CHECK_EQUAL(want != nullptr, t.mac_hit_o != 0);
        if (want)
            CHECK(t.mac_rank_o == want->rank && t.mac_netport_o == want->netport);
    }
    b.reset();
    b.step();
    CHECK(same(t.own_o, 0, nullptr));
    CHECK(!b.broken);
}

TEST(nic_tables, jobs) {
    Tables b(rng.next());
    auto &t = *b.top;
    std::map<unsigned, mr_nic_job_desc> rows; // by row
    unsigned own = 0;
    // job_t, lowest first: port1 32, self_idx 5, self 1, root 5, ranks 256, count 6, job 16, valid
    // 1
    auto index = [](const mr_nic_job_desc &j, unsigned rank) {
        for (int m = 0; m < j.count; m++)
            if (j.ranks[m] == rank)
                return m;
        return -1;
    };
    auto same = [&](const auto &port, const mr_nic_job_desc *j) {
        if (bits(port, 321, 1) != (j != nullptr))
            return false;
        if (!j)
            return true;
        bool ok = bits(port, 305, 16) == j->job && bits(port, 299, 6) == j->count &&
                  bits(port, 38, 5) == j->root && bits(port, 0, 32) == j->port1;
        for (int m = 0; m < j->count; m++)
            ok &= bits(port, 43 + 8 * m, 8) == j->ranks[m];
        const int self = index(*j, own);
        return ok && bits(port, 37, 1) == (self >= 0) &&
               (self < 0 || bits(port, 32, 5) == (unsigned)self);
    };
    for (int k = 0; k < 1500; k++) {
        mr_nic_desc d;
        if (k % 100 == 0) {
            own = (unsigned)b.rng.below(64);
            b.options((uint8_t)own);
        }
        mr_nic_job_desc j = {};
        j.row = (uint8_t)b.rng.below(32);
        if (b.rng.percent(25)) {
            mr_nic_desc_job_remove(d, j.row);
            rows.erase(j.row);
        } else {
            j.job = (uint16_t)b.rng.below(40); // some twice: the lowest row answers
            j.count = (uint8_t)(1 + b.rng.below(32));
            j.root = (uint8_t)b.rng.below(j.count);
            j.port1 = (uint32_t)b.rng.next();
            uint8_t rank = (uint8_t)b.rng.below(3);
            for (int m = 0; m < j.count; m++, rank = (uint8_t)(rank + 1 + b.rng.below(4)))
                j.ranks[m] = rank;
            mr_nic_desc_job(d, &j);
            rows[j.row] = j;
        }
        CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, b.execute(d));
        const unsigned job = (unsigned)b.rng.below(42), shard = (unsigned)b.rng.below(140);
        t.lk_en_i = 1;
        t.lk_job_i = (uint16_t)job, t.lk_shard_i = (uint8_t)shard;
        unsigned tx_row[3], tx_index[3];
        t.tx_row_i = t.tx_index_i = 0;
        for (int p = 0; p < 3; p++) {
            tx_row[p] = (unsigned)b.rng.below(32), tx_index[p] = (unsigned)b.rng.below(32);
            t.tx_row_i = (uint16_t)(t.tx_row_i | tx_row[p] << 5 * p);
            t.tx_index_i = (uint16_t)(t.tx_index_i | tx_index[p] << 5 * p);
        }
        b.step();
        t.lk_en_i = 0;
        const mr_nic_job_desc *want = nullptr;
        for (auto &r : rows)
            if (r.second.job == job && !want)
                want = &r.second;
        CHECK_EQUAL(want != nullptr, t.lk_hit_o != 0);
        CHECK(same(t.lk_job_o, want));
        const int at = want ? index(*want, shard) : -1;
        CHECK_EQUAL(at >= 0, t.lk_member_o != 0);
        if (want)
            CHECK_EQUAL(want->row, t.lk_row_o);
        if (at >= 0)
            CHECK_EQUAL(at, t.lk_index_o);
        b.step(); // and stays
        CHECK(same(t.lk_job_o, want));
        CHECK_EQUAL(at >= 0, t.lk_member_o != 0);
        for (int p = 0; p < 3; p++)
            if (rows.count(tx_row[p]) && tx_index[p] < rows[tx_row[p]].count)
                CHECK_EQUAL(rows[tx_row[p]].ranks[tx_index[p]], t.tx_rank_o >> 8 * p & 0xFF);
    }
    CHECK(!b.broken);
}

struct Pages {
    explicit Pages(Tables &bench) : b(bench), want(PAGES + 4096) {}
    static const uint32_t PAGES = 1 << 16;
    Tables &b;
    std::vector<bool> want;

    void set(uint32_t page) {
        auto &t = *b.top;
        t.set_valid_i = 1;
        t.set_page_i = page;
        while (!t.set_ready_o)
            b.step();
        b.step();
        t.set_valid_i = 0;
        if (page < PAGES)
            want[page] = true;
    }
    void check(uint32_t page, uint32_t count) {
        auto &t = *b.top;
        t.chk_valid_i = 1;
        t.chk_page_i = page, t.chk_count_i = count;
        b.settle();
        while (!t.chk_ready_o)
            b.step();
        b.step();
        t.chk_valid_i = 0;
        int took = 1;
        b.settle();
        for (; !t.chk_done_o && took < 3000; took++)
            b.step();
        bool ok = true;
        for (uint32_t p = page; p < page + count; p++)
            ok &= p < PAGES && want[p];
        CHECK_EQUAL(ok, t.chk_ok_o != 0);
        const uint32_t words = count ? (page + count - 1) / 64 - page / 64 + 1 : 1;
        CHECK(took <= 1 + (int)words);
        if (ok)
            CHECK_EQUAL(1 + (int)words, took);
    }
    void clear(uint32_t page, uint32_t count) {
        mr_nic_desc d;
        mr_nic_desc_valid_clear(d, page, count);
        CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, b.execute(d));
        std::fill(want.begin() + page, want.begin() + page + count, false);
    }
};

TEST(nic_tables, pages) {
    Tables b(rng.next());
    auto &t = *b.top;
    Pages p(b);
    p.check(0, 1);
    p.check(5, 0);
    for (int round = 0; round < 300; round++) {
        // a region around a border, at the start and at the end
        static const uint32_t places[] = {0, 64, 4000, 32768, Pages::PAGES - 200};
        const uint32_t base = places[b.rng.below(5)] + (uint32_t)b.rng.below(64);
        const uint32_t n = 1 + (uint32_t)b.rng.below(150);
        for (uint32_t k = 0; k < n; k++)
            p.set(base + k); // those beyond the end have no effect
        p.check(base, n);
        p.check(base, n + 1);
        if (base)
            p.check(base - 1, n);
        for (int k = 0; k < 6; k++)
            p.check(base + (uint32_t)b.rng.below(n), (uint32_t)b.rng.below(n));
        const uint32_t at = base + (uint32_t)b.rng.below(n);
        if (at >= Pages::PAGES)
            continue;
        const uint32_t room = Pages::PAGES - at,
                       count = std::min<uint32_t>(room, (uint32_t)b.rng.below(140));
        switch (b.rng.below(3)) {
        case 0:
            p.clear(at, count);
            break;
        case 1: // several failed writes at once
            t.bad_valid_i = 1;
            for (uint32_t k = 0; k < 3; k++) {
                t.bad_page_i = at + k;
                b.step();
                p.want[at + k] = false;
            }
            t.bad_valid_i = 0;
            break;
        default: { // a block's new epoch
            mr_nic_dir *dir = mr_nic_dir_create(8);
            mr_nic_desc steps[MR_NIC_DIR_STEPS];
            size_t made = 0;
            mr_nic_dir_entry e = {};
            e.named = 1, e.page = at, e.block = (uint32_t)round;
            e.bytes = count ? (count - 1) * 4096 + 1 + (uint32_t)b.rng.below(4096) : 0;
            const bool clear = b.rng.percent(70);
            LONGS_EQUAL(MR_OK, mr_nic_dir_put(dir, &e, clear, steps, &made));
            CHECK_EQUAL((unsigned)MR_NIC_CMD_OK, b.execute(steps[0]));
            if (clear)
                std::fill(p.want.begin() + at, p.want.begin() + at + count, false);
            mr_nic_dir_destroy(dir);
        }
        }
        p.check(at, count);
        for (uint32_t k = 0; k < n; k++)
            p.check(base + k, 1);
    }
    p.clear(0, Pages::PAGES);
    for (int k = 0; k < 1000; k++)
        p.check((uint32_t)b.rng.below(Pages::PAGES), 1);
    CHECK(!b.broken);
}

// Lists from memory: every descriptor once and in order, whatever memory and the dispatcher do; the
// first that cannot be executed stops the list and is named.
TEST(nic_tables, lists) {
    for (int round = 0; round < 40; round++) {
        Tables b(rng.next());
        b.grant = 20 + (unsigned)b.rng.below(81), b.memory = 20 + (unsigned)b.rng.below(81);
        const unsigned n = round == 0 ? 0 : 1 + (unsigned)b.rng.below(90);
        for (unsigned k = 0; k < n; k++) {
            Desc d = {};
            mr_nic_node_desc node = {};
            node.rank = (uint8_t)k, node.ip = (uint32_t)b.rng.next();
            mr_nic_desc_node(d.data(), &node);
            if (b.rng.percent(30))
                mr_nic_desc_valid_clear(d.data(), k, 200);
            b.list.push_back(d);
        }
        unsigned want = MR_NIC_CMD_OK, at = n;
        if (n && round % 3 == 1) { // a descriptor that fits nowhere
            struct {
                uint8_t head[12];
                unsigned code;
            } bad[] = {{{0}, MR_NIC_CMD_TYPE},
                       {{6}, MR_NIC_CMD_TYPE},
                       {{255, 1, 2, 3}, MR_NIC_CMD_TYPE},
                       {{MR_NIC_DESC_JOB, 32, 1, 1}, MR_NIC_CMD_FIELD},
                       {{MR_NIC_DESC_JOB, 0, 1, 0}, MR_NIC_CMD_FIELD},
                       {{MR_NIC_DESC_JOB, 0, 1, 33}, MR_NIC_CMD_FIELD},
                       {{MR_NIC_DESC_JOB, 0, 1, 3, 0, 0, 3}, MR_NIC_CMD_FIELD},
                       {{MR_NIC_DESC_DIR, 0, 0, 0, 0, 4}, MR_NIC_CMD_FIELD},
                       {{MR_NIC_DESC_VALID, 0, 0, 0, 0, 0, 1, 0, 1}, MR_NIC_CMD_FIELD}};
            const auto &x = bad[b.rng.below(sizeof bad / sizeof *bad)];
            at = (unsigned)b.rng.below(n);
            b.list[at] = {};
            memcpy(b.list[at].data(), x.head, sizeof x.head);
            want = x.code;
        } else if (n && round % 3 == 2) {
            b.bad_at = (unsigned)b.rng.below(n);
            want = MR_NIC_CMD_MEMORY;
        }
        CHECK_EQUAL(want, b.execute_list(n));
        if (want == MR_NIC_CMD_MEMORY)
            at = b.top->error_index_o; // known before its turn comes
        CHECK(at <= (b.bad_at < n ? b.bad_at : n));
        CHECK_EQUAL(want == MR_NIC_CMD_OK ? 0 : at, b.top->error_index_o);
        CHECK_EQUAL(at, b.taken.size());
        for (unsigned k = 0; k < at; k++)
            MEMCMP_EQUAL(b.list[k].data(), b.taken[k].data(), 64);
        // and the next command works
        b.bad_at = ~0u;
        b.options(9);
        CHECK_EQUAL(9, b.top->opt_rank_o);
        CHECK(!b.broken);
    }
}

TEST(nic_tables, counters) {
    Tables b(rng.next());
    auto &t = *b.top;
    for (int round = 0; round < 2; round++) {
        std::array<uint64_t, 64> want = {};
        bool asked = false;
        uint64_t expected = 0;
        for (int k = 0; k < 120000; k++) {
            t.inc_valid_i = (uint16_t)b.rng.next();
            for (int s = 0; s < 16; s++) {
                const unsigned index = (unsigned)b.rng.below(b.rng.percent(50) ? 3 : 64);
                const unsigned amount = b.rng.percent(50) ? 1 : 0xFFFF;
                for (int i = 0; i < 6; i++) {
                    const int at = 6 * s + i;
                    t.inc_index_i[at / 32] =
                        (t.inc_index_i[at / 32] & ~(1u << at % 32)) | (index >> i & 1) << at % 32;
                }
                ((uint16_t *)&t.inc_amount_i[0])[s] = (uint16_t)amount;
            }
            if (asked)
                CHECK_EQUAL(expected, t.value_o);
            asked = b.rng.percent(40);
            t.take_i = asked;
            t.sel_i = (uint8_t)b.rng.below(b.rng.percent(50) ? 3 : 64);
            expected = want[t.sel_i];
            for (int s = 0; s < 16; s++)
                if (t.inc_valid_i >> s & 1)
                    want[bits(t.inc_index_i, 6 * s, 6)] += ((uint16_t *)&t.inc_amount_i[0])[s];
            b.tick();
            b.settle();
        }
        CHECK(want[0] >> 32); // a carry into the upper word
        t.inc_valid_i = t.take_i = 0;
        b.reset();
        for (int c = 0; c < 64; c++) {
            t.sel_i = (uint8_t)c;
            t.take_i = 1;
            b.tick();
            b.settle();
            CHECK_EQUAL(0u, t.value_o);
        }
        t.take_i = 0;
    }
}

// A host that drains at any rate or not at all: what is queued comes out in order, what does not
// fit is counted, nobody waits for the host.
TEST(nic_tables, events) {
    Tables b(rng.next());
    auto &t = *b.top;
    std::deque<uint64_t> queue;
    uint64_t number = 0, lost = 0, got = 0, sent = 0;
    unsigned drain = 0;
    for (int k = 0; k < 60000; k++) {
        if (k % 3000 == 0) {
            static const unsigned rates[] = {0, 100, 30, 60, 5};
            drain = rates[b.rng.below(5)];
        }
        t.ev_valid_i = b.rng.percent(50);
        number++;
        memcpy(&t.ev_i[0], &number, 8);
        memcpy(&t.ev_i[14], &number, 8);
        t.m_ready_i = b.rng.percent(drain);
        b.settle();
        const bool full = queue.size() == 256;
        CHECK_EQUAL(!queue.empty(), t.m_valid_o != 0);
        if (t.m_valid_o) {
            uint64_t low, high;
            memcpy(&low, &t.m_data_o[0], 8);
            memcpy(&high, &t.m_data_o[14], 8);
            CHECK(low == queue.front() && high == low);
        }
        CHECK_EQUAL(t.ev_valid_i && !full, t.ev_count_o != 0);
        CHECK_EQUAL(t.ev_valid_i && full, t.ev_lost_o != 0);
        if (t.m_valid_o && t.m_ready_i) {
            queue.pop_front();
            got++;
        }
        if (t.ev_valid_i) {
            sent++;
            if (full)
                lost++;
            else
                queue.push_back(number);
        }
        b.tick();
        b.settle();
        CHECK(!b.fired());
    }
    CHECK(lost > 100 && got > 1000);
    CHECK_EQUAL(sent, got + lost + queue.size());
}

} // namespace

int main(int argc, char **argv) { return bench_main(argc, argv); }
