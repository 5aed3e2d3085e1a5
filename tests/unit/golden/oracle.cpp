#include "tests/unit/golden/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oracle {

int sign(unsigned a, unsigned b) {
    unsigned odd = 0; // the sum's last bit is that of the XOR
    for (a >>= 1; a; a >>= 1)
        odd ^= a & b;
    return __builtin_parity(odd) ? -1 : 1;
}

int sign_by_swapping(unsigned a, unsigned b) {
    std::vector<int> word;
    for (int i = 0; i < 32; i++)
        if (a >> i & 1)
            word.push_back(i);
    for (int i = 0; i < 32; i++)
        if (b >> i & 1)
            word.push_back(i);
    int s = 1;
    for (size_t end = word.size(); end > 1; end--) // bubble sort; equal neighbours are 1
        for (size_t k = 0; k + 1 < end; k++)
            if (word[k] > word[k + 1]) {
                std::swap(word[k], word[k + 1]);
                s = -s;
            }
    return s;
}

Vector multiply(int n, const Vector &a, const Vector &b, int (*sgn)(unsigned, unsigned)) {
    unsigned d = 1u << n;
    Vector out(d, 0.0L);
    for (unsigned i = 0; i < d; i++)
        for (unsigned j = 0; a[i] != 0 && j < d; j++)
            if (b[j] != 0)
                out[i ^ j] += a[i] * b[j] * sgn(i, j);
    return out;
}

Vector reverse(const Vector &a) {
    Vector out = a;
    for (unsigned k = 0; k < a.size(); k++) {
        int grade = __builtin_popcount(k);
        if (grade * (grade - 1) / 2 % 2)
            out[k] = -out[k];
    }
    return out;
}

Vector rotor(int n, const long double *theta, Wrong wrong) {
    unsigned d = 1u << n;
    Vector r(d, 0.0L);
    r[0] = 1;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++, theta++) {
            Vector plane(d, 0.0L);
            bool half = wrong == Wrong::half_angle;
            plane[0] = cosl(half ? *theta / 2 : *theta);
            plane[1u << i | 1u << j] = half ? -sinl(*theta / 2) : sinl(*theta);
            r = wrong == Wrong::plane_order ? multiply(n, plane, r) : multiply(n, r, plane);
        }
    return r;
}

// The matrices of x -> v x and x -> x v, split by parity: the blade given by a row or column number
// among those of one parity.
static std::vector<unsigned> of_parity(int n, int parity) {
    std::vector<unsigned> out;
    for (unsigned k = 0; k < 1u << n; k++)
        if (__builtin_popcount(k) % 2 == parity)
            out.push_back(k);
    return out;
}

enum { BLOCK = 128 }; // divides 2^(n-1) for the n in use

// out += a b for square matrices of h rows, in blocks that stay in the cache.
static void product(size_t h, const Matrix &a, const Matrix &b, Matrix &out) {
    for (size_t j0 = 0; j0 < h; j0 += BLOCK)
        for (size_t i = 0; i < h; i += 2) {
            double *__restrict p = &out[i * h + j0], *__restrict q = p + h;
            for (size_t k = 0; k < h; k++) {
                const double *__restrict line = &b[k * h + j0];
                double x = a[i * h + k], y = a[(i + 1) * h + k];
                for (int j = 0; j < BLOCK; j++) {
                    p[j] += x * line[j];
                    q[j] += y * line[j];
                }
            }
        }
}

// Where a blade stands among the rows and columns.
static std::vector<unsigned> places(int n, Wrong wrong) {
    std::vector<unsigned> blades(1u << n), out(1u << n);
    std::iota(blades.begin(), blades.end(), 0u);
    if (wrong == Wrong::grade_major)
        std::stable_sort(blades.begin(), blades.end(), [](unsigned a, unsigned b) {
            return __builtin_popcount(a) < __builtin_popcount(b);
        });
    for (unsigned k = 0; k < blades.size(); k++)
        out[blades[k]] = k;
    return out;
}

void add_term(int n, const long double *theta_r, const long double *theta_s, double gain, bool odd,
              Matrix &w, Wrong wrong) {
    size_t d = (size_t)1 << n, h = d / 2;
    Vector left = rotor(n, theta_r, wrong), right = rotor(n, theta_s, wrong), e0(d, 0.0L);
    auto sgn = [wrong](unsigned a, unsigned b) {
        return wrong == Wrong::sign_of_b_in_a ? sign(b, a) : sign(a, b);
    };
    if (wrong == Wrong::sides_swapped)
        std::swap(left, right);
    auto place = places(n, wrong);
    e0[1] = 1;
    if (odd && wrong != Wrong::odd_ignored)
        left = wrong == Wrong::e0_on_the_left ? multiply(n, e0, left) : multiply(n, left, e0);
    else
        odd = false;
    if (wrong != Wrong::no_reverse)
        right = reverse(right);
    for (int parity = 0; parity < 2; parity++) { // columns J of one parity, then the others
        auto columns = of_parity(n, parity), middle = of_parity(n, parity ^ (int)odd);
        Matrix l(h * h), r(h * h), out(h * h, 0.0);
        for (size_t k = 0; k < h; k++)
            for (size_t j = 0; j < h; j++) // e_K of left times e_J
                l[k * h + j] = (double)left[middle[k] ^ columns[j]] *
                               sgn(middle[k] ^ columns[j], columns[j]) * gain;
        for (size_t i = 0; i < h; i++)
            for (size_t k = 0; k < h; k++) // e_K times e_B of right
                r[i * h + k] =
                    (double)right[middle[i] ^ middle[k]] * sgn(middle[k], middle[i] ^ middle[k]);
        product(h, r, l, out);
        for (size_t i = 0; i < h; i++)
            for (size_t j = 0; j < h; j++) {
                size_t row = place[middle[i]], col = place[columns[j]];
                if (wrong == Wrong::transposed)
                    std::swap(row, col);
                w[row * d + col] += out[i * h + j];
            }
    }
}

double nearest_bf16(double x) {
    if (x == 0)
        return 0;
    int unit = std::max(std::ilogb(x), -126) - 7;
    double y = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
    return std::fabs(y) >= std::ldexp(1.0, 128) ? std::copysign(INFINITY, x) : y;
}

} // namespace oracle
