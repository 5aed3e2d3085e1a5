#include "tests/unit/nic_host/support.h"

double element(const std::vector<uint8_t> &v, size_t i, unsigned dtype) {
    uint16_t h;
    uint32_t w;
    float f;
    int32_t n;
    switch (dtype) {
    case MR_NIC_DT_BF16:
        memcpy(&h, &v[2 * i], 2);
        w = (uint32_t)h << 16;
        memcpy(&f, &w, 4);
        return f;
    case MR_NIC_DT_FP16: {
        _Float16 x;
        memcpy(&x, &v[2 * i], 2);
        return (double)x;
    }
    case MR_NIC_DT_FP32:
        memcpy(&f, &v[4 * i], 4);
        return f;
    default:
        memcpy(&n, &v[4 * i], 4);
        return n;
    }
}

void set_element(std::vector<uint8_t> &v, size_t i, unsigned dtype, double x) {
    uint32_t w;
    float f = (float)x;
    int32_t n = (int32_t)x;
    switch (dtype) {
    case MR_NIC_DT_BF16:
        memcpy(&w, &f, 4);
        w = (w + 0x7FFF + (w >> 16 & 1)) >> 16;
        memcpy(&v[2 * i], &w, 2);
        break;
    case MR_NIC_DT_FP16: {
        _Float16 h = (_Float16)x;
        memcpy(&v[2 * i], &h, 2);
        break;
    }
    case MR_NIC_DT_FP32:
        memcpy(&v[4 * i], &f, 4);
        break;
    default:
        memcpy(&v[4 * i], &n, 4);
    }
}

/* ---- collectives ----------------------------------------------------------------------------- */

Collective::Collective(std::mt19937_64 &rng, mr_nic_kind kind, unsigned n, size_t count,
                       unsigned dtype, unsigned rop, uint16_t job, uint8_t root)
    : kind_(kind), n_(n), dtype_(dtype), rop_(rop), count_(count), size_(size_of(dtype)), job_(job),
      root_(root), from_((uint8_t)(rng() % n)), send_(n), recv_(n), op_(n, nullptr) {
    size_t out = kind == MR_NIC_ALLGATHER ? n * count : count;
    want_.resize(out * size_);
    for (unsigned r = 0; r < n; r++) {
        send_[r].resize(count * size_);
        recv_[r].assign(out * size_, 0xA5);
    }
    /* integers whose sums every format holds exactly, so that one right answer exists */
    for (size_t i = 0; i < count; i++) {
        double sum = 0, most = -1e9, least = 1e9;
        for (unsigned r = 0; r < n; r++) {
            double x = (double)(rng() % 7) - 3;
            set_element(send_[r], i, dtype, x);
            sum += x;
            most = std::fmax(most, x);
            least = std::fmin(least, x);
        }
        if (kind == MR_NIC_REDUCE || kind == MR_NIC_ALLREDUCE)
            set_element(want_, i, dtype,
                        rop == MR_NIC_ROP_SUM   ? sum
                        : rop == MR_NIC_ROP_MAX ? most
                                                : least);
    }
    if (kind == MR_NIC_BROADCAST)
        want_ = send_[from_];
    if (kind == MR_NIC_ALLGATHER)
        for (unsigned r = 0; r < n; r++)
            memcpy(&want_[r * count * size_], send_[r].data(), count * size_);
}

mr_nic_call Collective::call(unsigned rank) const {
    mr_nic_call c = mr_nic_call_init(kind_, job_);
    c.dtype = (uint8_t)dtype_;
    c.rop = (uint8_t)rop_;
    c.from = from_;
    c.count = count_;
    c.send = send_[rank].data();
    c.recv = const_cast<uint8_t *>(recv_[rank].data());
    return c;
}

void Collective::start(mr_nic *nic, unsigned rank) {
    mr_nic_call c = call(rank);
    CHECK_OK(mr_nic_start(nic, (uint8_t)rank, &c, &op_[rank]));
}

void Collective::start_all(mr_nic *nic) {
    for (unsigned r = 0; r < n_; r++)
        start(nic, r);
}

void Collective::finish() {
    for (unsigned r = 0; r < n_; r++) {
        CHECK_OK(mr_nic_wait(op_[r]));
        CHECK_OK(mr_nic_op_destroy(op_[r]));
        op_[r] = nullptr;
        if (kind_ == MR_NIC_BARRIER || (kind_ == MR_NIC_REDUCE && r != root_))
            continue;
        if (want_ == recv_[r])
            continue;
        size_t i = 0;
        while (!memcmp(&want_[i * size_], &recv_[r][i * size_], size_))
            i++;
        char text[200];
        snprintf(text, sizeof text,
                 "kind %d dtype %u rop %u count %zu: rank %u of %u, element %zu: "
                 "%g instead of %g",
                 kind_, dtype_, rop_, count_, r, n_, i, element(recv_[r], i, dtype_),
                 element(want_, i, dtype_));
        FAIL(text);
    }
}

Collective::~Collective() {
    for (mr_nic_op *op : op_)
        if (op)
            mr_nic_op_destroy(op);
}

/* ---- attention ------------------------------------------------------------------------------- */

Attention::Attention(std::mt19937_64 &rng, unsigned n, size_t heads, size_t dim, unsigned dtype,
                     double spread, uint16_t job, uint8_t root, bool everyone)
    : n_(n), heads_(heads), dim_(dim), dtype_(dtype), job_(job), root_(root), everyone_(everyone),
      m_(n), d_(n), lse_(n), send_(n), recv_(n), natural_(n), want_lse_(heads),
      want_o_(heads * dim), bound_(heads * dim), op_(n, nullptr) {
    std::uniform_real_distribution<double> logit(-spread, spread), value(-2, 2);
    for (unsigned r = 0; r < n; r++) {
        m_[r].resize(heads);
        d_[r].resize(heads);
        send_[r].resize(heads * dim * size_of(dtype));
        lse_[r].assign(heads, NAN);
        recv_[r].assign(heads * dim * size_of(dtype), 0xA5);
        natural_[r] = rng() & 1;
    }
    for (size_t h = 0; h < heads; h++) {
        double top = -INFINITY, sum = 0;
        std::vector<double> best(n, -INFINITY);
        for (unsigned r = 0; r < n; r++) {
            bool empty = rng() % 5 == 0;
            m_[r][h] = empty ? -INFINITY : (float)logit(rng);
            d_[r][h] = empty ? 0.0f : 1.0f + (float)(rng() % 100) / 7;
            for (size_t i = 0; i < dim; i++)
                set_element(send_[r], h * dim + i, dtype, empty ? 0 : value(rng) * d_[r][h]);
            if (!empty)
                best[r] = (double)m_[r][h] * (natural_[r] ? 1.4426950408889634074 : 1);
            top = std::fmax(top, best[r]);
        }
        for (unsigned r = 0; r < n; r++)
            sum += std::isinf(best[r]) ? 0 : std::exp2(best[r] - top) * d_[r][h];
        want_lse_[h] = std::isinf(top) ? -INFINITY : top + std::log2(sum);
        for (size_t i = 0; i < dim && sum > 0; i++)
            for (unsigned r = 0; r < n; r++) {
                if (std::isinf(best[r]))
                    continue;
                double w = std::exp2(best[r] - top) / sum;
                want_o_[h * dim + i] += w * element(send_[r], h * dim + i, dtype);
                bound_[h * dim + i] += w * std::fabs(element(send_[r], h * dim + i, dtype));
            }
    }
}

void Attention::start(mr_nic *nic, unsigned rank) {
    mr_nic_call c = mr_nic_call_init(MR_NIC_MERGE, job_);
    c.dtype = (uint8_t)dtype_;
    c.heads = heads_;
    c.dim = dim_;
    c.m = m_[rank].data();
    c.d = d_[rank].data();
    c.send = send_[rank].data();
    c.natural = natural_[rank];
    c.everyone = everyone_;
    c.lse = lse_[rank].data();
    c.recv = recv_[rank].data();
    CHECK_OK(mr_nic_start(nic, (uint8_t)rank, &c, &op_[rank]));
}

void Attention::check(unsigned rank) {
    static const double half_ulp[] = {0, 0x1p-8, 0x1p-11, 0x1p-24};
    for (size_t h = 0; h < heads_; h++) {
        double got = lse_[rank][h], want = want_lse_[h];
        if (std::isinf(want))
            CHECK_TRUE(got == want);
        else
            CHECK_TRUE(std::fabs(got - want) <= 0x1p-16 * std::fmax(1, std::fabs(want)));
    }
    for (size_t i = 0; i < want_o_.size(); i++) {
        double got = element(recv_[rank], i, dtype_);
        double slack = 0x1p-16 * bound_[i] + half_ulp[dtype_] * std::fabs(want_o_[i]) +
                       (dtype_ == MR_NIC_DT_FP16 ? 0x1p-25 : 0);
        if (!(std::fabs(got - want_o_[i]) <= slack)) {
            char text[160];
            snprintf(text, sizeof text, "rank %u, value %zu: %.9g, in double %.9g, allowed %.3g",
                     rank, i, got, want_o_[i], slack);
            FAIL(text);
        }
    }
}

void Attention::finish() {
    for (unsigned r = 0; r < n_; r++) {
        CHECK_OK(mr_nic_wait(op_[r]));
        CHECK_OK(mr_nic_op_destroy(op_[r]));
        op_[r] = nullptr;
    }
    for (unsigned r = 0; r < n_; r++)
        if (r == root_ || everyone_)
            check(r);
}

void Attention::run(mr_nic *nic) {
    for (unsigned r = 0; r < n_; r++)
        start(nic, r);
    finish();
}

Attention::~Attention() {
    for (mr_nic_op *op : op_)
        if (op)
            mr_nic_op_destroy(op);
}

void ordered_pairs(Cluster &c, uint64_t salt, size_t most) {
    auto rng = test_rng(salt);
    for (mr_nic_kind a : kKinds)
        for (mr_nic_kind b : kKinds) {
            std::vector<std::unique_ptr<Collective>> plain;
            std::vector<std::unique_ptr<Attention>> merges;
            std::vector<std::function<void(unsigned)>> start;
            for (mr_nic_kind kind : {a, b}) {
                if (kind == MR_NIC_MERGE) {
                    merges.push_back(std::make_unique<Attention>(rng, c.n, 1 + rng() % 9, 40,
                                                                 MR_NIC_DT_FP32, 50, 3));
                    Attention *x = merges.back().get();
                    start.push_back([x, &c](unsigned r) { x->start(c.nic, r); });
                } else {
                    plain.push_back(std::make_unique<Collective>(rng, kind, c.n, 1 + rng() % most,
                                                                 1 + rng() % 4, rng() % 3, 3));
                    Collective *x = plain.back().get();
                    start.push_back([x, &c](unsigned r) { x->start(c.nic, r); });
                }
            }
            for (unsigned i = 0; i < c.n; i++)
                for (auto &f : start)
                    f((i + (unsigned)salt) % c.n);
            for (auto &x : plain)
                x->finish();
            for (auto &x : merges)
                x->finish();
        }
}
