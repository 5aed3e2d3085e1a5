// Descriptors of the near-memory unit, and operands of every kind.
#ifndef MR_TESTS_RTL_PNM_DESC_HPP
#define MR_TESTS_RTL_PNM_DESC_HPP

#include "../common/rng.hpp"
#include "models/golden/pnm.h"

namespace pnm {

struct Desc {
    uint8_t bytes[MR_PNM_DESC_BYTES] = {};
    explicit Desc(unsigned type) { bytes[0] = (uint8_t)type; }
    Desc &put(unsigned lsb, unsigned bits, int64_t value) {
        for (unsigned i = 0; i < bits; i++) {
            const unsigned at = lsb + i;
            bytes[at / 8] =
                (uint8_t)((bytes[at / 8] & ~(1u << at % 8)) | ((value >> i & 1) << at % 8));
        }
        return *this;
    }
    uint64_t get(unsigned lsb, unsigned bits) const { return mr_pnm_field(bytes, lsb, bits); }
};
#define PUT(desc, name, value) (desc).put(MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS, (value))

// A float32 code: mostly numbers near one, at times anything, at times what is special.
inline uint32_t operand(Rng &rng, unsigned odd) {
    static const uint32_t special[] = {0,          0x80000000, 1,          0x80000001,
                                       0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000,
                                       0xFF800000, 0x7F800001, 0xFFC12345, 0x3F800000};
    if (rng.percent(odd))
        return rng.percent(50) ? special[rng.below(12)] : (uint32_t)rng.next();
    return (uint32_t)(rng.below(2) << 31 | (120 + rng.below(12)) << 23 | rng.below(1 << 23));
}

} // namespace pnm
#endif
