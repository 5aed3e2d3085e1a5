// The definition of the chunk map once more, from the text of the algebra alone. It shares no line
// with models/golden: signs, rotors and products are written out again so that a mistake in one of
// the two shows as a difference.
#ifndef TESTS_UNIT_GOLDEN_ORACLE_HPP
#define TESTS_UNIT_GOLDEN_ORACLE_HPP

#include <cstdint>
#include <vector>

namespace oracle {

using Matrix = std::vector<double>;      // d x d, row I, column J
using Vector = std::vector<long double>; // coefficients of 2^n blades, by bitmask

// Mistakes that keep the map orthogonal and plausible. The tests plant them on purpose.
enum class Wrong {
    none,
    transposed,     // M[J][I]
    grade_major,    // blades ordered by grade first
    half_angle,     // exp(-B/2) for exp(B)
    plane_order,    // planes multiplied right to left
    no_reverse,     // r x s for r x rev(s)
    sides_swapped,  // s x rev(r)
    e0_on_the_left, // e_0 r for r e_0
    odd_ignored,    // r for r e_0
    sign_of_b_in_a, // sgn(B,A) for sgn(A,B)
};

// sgn(A,B) by the formula of the page.
int sign(unsigned a, unsigned b);
// The same from e_i e_j = -e_j e_i and e_i e_i = 1, moving one factor after another.
int sign_by_swapping(unsigned a, unsigned b);
// Product of multivectors, blade by blade.
Vector multiply(int n, const Vector &a, const Vector &b, int (*sgn)(unsigned, unsigned) = sign);
Vector reverse(const Vector &a);
// theta has P angles in radians.
Vector rotor(int n, const long double *theta, Wrong wrong = Wrong::none);
// w += gain * M.
void add_term(int n, const long double *r, const long double *s, double gain, bool odd, Matrix &w,
              Wrong wrong = Wrong::none);
// bf16 nearest to x, ties to even, subnormals kept, overflow to infinity, without a table.
double nearest_bf16(double x);

} // namespace oracle
#endif
