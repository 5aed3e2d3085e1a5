/* Small bit helpers shared by the golden files. */
#ifndef MODELS_GOLDEN_RGU_BITS_H
#define MODELS_GOLDEN_RGU_BITS_H
#include <stdint.h>

static inline unsigned par(unsigned x) { return (unsigned)__builtin_parity(x); }

/* Round half up after dropping s bits: the hardware's add-and-shift. */
static inline int64_t rnh(int64_t x, int s) { return (x + ((int64_t)1 << (s - 1))) >> s; }

/* g(M)_i = XOR of M_j over j < i; s(A,M) = par(A & g(M)) is the sign exponent of e_A e_M. */
static inline unsigned prefix_parity(unsigned m) {
    unsigned g = m << 1;
    g ^= g << 1;
    g ^= g << 2;
    g ^= g << 4;
    g ^= g << 8;
    return g;
}

/* Exponent of (-1)^(k(k-1)/2), k = popcount: both s(K,K) and the sign of the reverse. */
static inline unsigned rev_parity(unsigned blade) {
    return ((unsigned)__builtin_popcount(blade) >> 1) & 1u;
}
#endif
