// The one rounding against MPFR, and that every format rounds the same value once.
#include <mpfr.h>

#include <cmath>
#include <cstring>
#include <string>

#include "CppUTest/TestHarness.h"
#include "tests/unit/golden/support.hpp"

namespace {
// Precision, smallest normal exponent, largest finite value, and the codes that overflow gives.
struct Format {
    int code, precision, e_min;
    double largest;
    uint32_t over;
    int sign_bit;
};
const Format formats[] = {
    {MR_FMT_BF16, 8, -126, 0x1.FEp127, 0x7F80, 15},
    {MR_FMT_FP16, 11, -14, 65504, 0x7C00, 15},
    {MR_FMT_FP8E4M3, 4, -6, 448, 0x7F, 7},
    {MR_FMT_FP8E5M2, 3, -14, 57344, 0x7C, 7},
    {MR_FMT_FP32, 24, -126, 0x1.FFFFFEp127, 0x7F800000, 31},
};

float float_of(uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

// Code of a finite value that the format has.
uint32_t encode(const Format &f, double v) {
    uint32_t sign = (uint32_t)std::signbit(v) << f.sign_bit;
    double a = std::fabs(v);
    int e = a == 0 ? f.e_min : std::max(std::ilogb(a), f.e_min);
    // units of the last place; the hidden bit carries into the exponent field
    auto units = (uint32_t)std::ldexp(a, f.precision - 1 - e);
    return sign | (units + ((uint32_t)(e - f.e_min) << (f.precision - 1)));
}

// x to a format; x is used up.
uint32_t by_mpfr(mpfr_t x, int format, int sat) {
    if (mpfr_zero_p(x))
        return 0;
    if (format == MR_FMT_INT8) {
        mpfr_rint(x, x, MPFR_RNDN); // to even
        double v = std::fmin(127, std::fmax(-128, mpfr_get_d(x, MPFR_RNDZ)));
        return (uint32_t)(int)v & 255;
    }
    const Format *f = formats;
    while (f->code != format)
        f++;
    mpfr_exp_t wide = mpfr_get_emin();
    int inexact = mpfr_prec_round(x, f->precision, MPFR_RNDN);
    mpfr_set_emin(f->e_min - f->precision + 2); // of 0.1b * 2^emin, the smallest subnormal
    inexact = mpfr_check_range(x, inexact, MPFR_RNDN);
    mpfr_subnormalize(x, inexact, MPFR_RNDN);
    mpfr_set_emin(wide);
    if (mpfr_cmpabs_ui(x, 0) != 0 && mpfr_get_exp(x) > 300)
        mpfr_set_d(x, mpfr_sgn(x) * 0x1p300, MPFR_RNDN); // for the double
    double v = mpfr_get_d(x, MPFR_RNDN);
    if (std::fabs(v) > f->largest)
        return sat ? encode(*f, std::copysign(f->largest, v))
                   : f->over | (uint32_t)std::signbit(v) << f->sign_bit;
    return encode(*f, v);
}

uint32_t reference(int32_t m, int exp, float scale, int format, int sat) {
    mpfr_t x;
    mpfr_init2(x, 64);
    mpfr_set_flt(x, scale, MPFR_RNDN);
    mpfr_mul_si(x, x, m, MPFR_RNDN); // 24 + 31 bits: exact
    mpfr_mul_2si(x, x, exp, MPFR_RNDN);
    uint32_t code = by_mpfr(x, format, sat);
    mpfr_clear(x);
    return code;
}
const int all_formats[] = {MR_FMT_BF16,    MR_FMT_FP16, MR_FMT_FP8E4M3,
                           MR_FMT_FP8E5M2, MR_FMT_INT8, MR_FMT_FP32};
} // namespace

TEST_GROUP(rgu_round) {
    Maker m;

    void same(int32_t v, int exp, float scale, int format) {
        for (int sat = 0; sat < 2; sat++) {
            uint32_t want = reference(v, exp, scale, format, sat);
            uint32_t got = mr_round_fx(v, exp, scale, format, sat);
            if (want != got)
                FAIL(StringFromFormat("%d * 2^%d * %a to format %d, saturate %d: %x, MPFR %x", v,
                                      exp, (double)scale, format, sat, got, want)
                         .asCharString());
        }
    }
    int32_t mantissa() { // every length, of either sign
        auto v = (int32_t)((m.rng() & 0x7FFFFFFF) >> (m.rng() % 31));
        return m.rng() & 1 ? -v : v;
    }
};

TEST(rgu_round, every_code_is_the_rounding_of_its_value) {
    for (const Format &f : formats)
        for (uint32_t k = 0; k < 65536; k++) {
            uint32_t code = f.sign_bit == 31 ? (uint32_t)m.rng() : k & ((2u << f.sign_bit) - 1);
            float v = mr_format_value(code, f.code);
            bool finite = (code & ~(1u << f.sign_bit)) <= encode(f, f.largest);
            CHECK_EQUAL(finite, (bool)std::isfinite(v));
            if (!finite) {
                bool infinite = f.code != MR_FMT_FP8E4M3 && (code & ~(1u << f.sign_bit)) == f.over;
                CHECK_EQUAL(infinite, (bool)std::isinf(v));
                continue;
            }
            UNSIGNED_LONGS_EQUAL(code, encode(f, v));
            UNSIGNED_LONGS_EQUAL(code, mr_round_f32(v, f.code, 0));
            UNSIGNED_LONGS_EQUAL(v == 0 ? 0 : code, mr_round_fx(1, 0, v, f.code, 0));
        }
    DOUBLES_EQUAL(-128, mr_format_value(0x80, MR_FMT_INT8), 0);
    DOUBLES_EQUAL(127, mr_format_value(0x7F, MR_FMT_INT8), 0);
}

TEST(rgu_round, random_products) {
    for (int format : all_formats)
        for (int k = 0; k < 20000; k++) {
            int32_t v = mantissa();
            float scale = (float)(m.normal() * std::exp2(m.uniform(-12, 12)));
            same(v, -24 + (int)(m.rng() % 48) - 24, scale, format);
        }
}

TEST(rgu_round, the_whole_range_of_exponents) {
    for (int format : all_formats)
        for (int k = 0; k < 20000; k++) {
            uint32_t bits = (uint32_t)m.rng();
            if ((bits >> 23 & 255) == 255)
                continue;
            same(mantissa(), (int)(m.rng() % 320) - 190, float_of(bits), format);
        }
}

// On, just under and just over the middle between two neighbours, from the smallest subnormal to
// beyond the largest value.
TEST(rgu_round, ties_and_what_is_next_to_them) {
    for (const Format &f : formats)
        for (int k = 0; k < 20000; k++) {
            uint32_t code = (uint32_t)m.rng() % (f.over + 4);
            if (k % 4 == 0)
                code = (uint32_t)m.rng() % (4u << (f.precision - 1)); // subnormal and first normal
            if (k % 4 == 1)
                code = f.over - (uint32_t)m.rng() % 4; // about overflow
            int step = (int)(code >> (f.precision - 1));
            auto units = (int32_t)(code & ((1u << (f.precision - 1)) - 1));
            if (step)
                units += 1 << (f.precision - 1), step--;
            // value = units * 2^(e_min + step - precision + 1); m = 2 units + 1 is the middle
            int room = 30 - f.precision - 1, lift = (int)(m.rng() % (unsigned)room);
            int32_t v = ((2 * units + 1) << lift) + (int)(m.rng() % 3) - 1;
            int exp = f.e_min + step - f.precision + 1 - 1 - lift;
            int shift = (int)(m.rng() % 40) - 20; // some of the power of two in the scale
            float scale = (float)std::ldexp(m.rng() & 1 ? 1.0 : -1.0, shift);
            same(v, exp - shift, scale, f.code);
        }
    for (int k = 0; k < 20000; k++) { // int8: halves around every integer and far outside
        int32_t v = ((2 * ((int32_t)(m.rng() % 300) - 150) + 1) << 10) + (int)(m.rng() % 3) - 1;
        same(v, -11, m.rng() & 1 ? 1.0f : -1.0f, MR_FMT_INT8);
    }
}

TEST(rgu_round, named_values) {
    struct {
        int32_t m;
        int exp, format, sat;
        uint32_t code;
    } const named[] = {
        {464, 0, MR_FMT_FP8E4M3, 0, 0x7E}, // a tie between 448 and what would be 480
        {465, 0, MR_FMT_FP8E4M3, 0, 0x7F}, // beyond it: NaN
        {-465, 0, MR_FMT_FP8E4M3, 0, 0xFF},  {-465, 0, MR_FMT_FP8E4M3, 1, 0xFE},
        {65519, 0, MR_FMT_FP16, 0, 0x7BFF},  {65520, 0, MR_FMT_FP16, 0, 0x7C00},
        {65520, 0, MR_FMT_FP16, 1, 0x7BFF},  {61439, 0, MR_FMT_FP8E5M2, 0, 0x7B},
        {61440, 0, MR_FMT_FP8E5M2, 0, 0x7C}, {-61440, 0, MR_FMT_FP8E5M2, 1, 0xFB},
        {1, 200, MR_FMT_BF16, 0, 0x7F80},    {-1, 200, MR_FMT_BF16, 1, 0xFF7F},
        {511, 119, MR_FMT_BF16, 0, 0x7F80},  {1, -134, MR_FMT_BF16, 0, 0},
        {-1, -134, MR_FMT_BF16, 0, 0x8000},  {3, -135, MR_FMT_BF16, 0, 1},
        {0, 0, MR_FMT_BF16, 0, 0},           {255, -1, MR_FMT_INT8, 0, 127},
        {-257, -1, MR_FMT_INT8, 0, 0x80},    {5, -1, MR_FMT_INT8, 0, 2},
        {-7, -1, MR_FMT_INT8, 0, 0xFC},      {-1, -1, MR_FMT_INT8, 0, 0},
        {1 << 30, 100, MR_FMT_INT8, 0, 127},
    };
    for (const auto &n : named)
        UNSIGNED_LONGS_EQUAL(n.code, mr_round_fx(n.m, n.exp, 1.0f, n.format, n.sat));
    UNSIGNED_LONGS_EQUAL(0, mr_round_fx(5, 0, -0.0f, MR_FMT_BF16, 0));
    UNSIGNED_LONGS_EQUAL(0, mr_round_fx(0, 0, -3.0f, MR_FMT_FP32, 1));
}

TEST(rgu_round, floats) {
    for (int format : all_formats)
        for (int k = 0; k < 10000; k++) {
            uint32_t bits = (uint32_t)m.rng();
            float v = float_of(bits);
            if (k % 2)
                v = (float)(m.normal() * std::exp2(m.uniform(-20, 20)));
            if (!std::isfinite(v) || v == 0)
                continue;
            for (int sat = 0; sat < 2; sat++)
                UNSIGNED_LONGS_EQUAL(reference(1, 0, v, format, sat), mr_round_f32(v, format, sat));
        }
    UNSIGNED_LONGS_EQUAL(0x8000, mr_round_f32(-0.0f, MR_FMT_BF16, 0));
    UNSIGNED_LONGS_EQUAL(0xFF80, mr_round_f32(-INFINITY, MR_FMT_BF16, 0));
    UNSIGNED_LONGS_EQUAL(0xFF7F, mr_round_f32(-INFINITY, MR_FMT_BF16, 1));
    UNSIGNED_LONGS_EQUAL(0x7F, mr_round_f32(INFINITY, MR_FMT_FP8E4M3, 0));
    UNSIGNED_LONGS_EQUAL(0x7E00, mr_round_f32(NAN, MR_FMT_FP16, 1));
    UNSIGNED_LONGS_EQUAL(0x80, mr_round_f32(-INFINITY, MR_FMT_INT8, 0));
    UNSIGNED_LONGS_EQUAL(0, mr_round_f32(NAN, MR_FMT_INT8, 0));
}

// The chunk's integer, times the scale exactly, rounded once: in every format and for row scales of
// every size.
TEST(rgu_round, every_format_is_the_same_value_rounded_once) {
    Projection p = m.make(8, 2, Parity::mixed);
    for (size_t r = 0; r < p.d_out; r++)
        p.row_scale.push_back(r % 3 ? (float)m.normal()
                                    : float_of((uint32_t)m.rng() & 0xFEFFFFFFu));
    auto image = p.image();
    std::vector<int32_t> w(p.d() * p.d());
    int e = mr_golden_chunk(8, 2, image.data(), w.data());
    for (int format : all_formats)
        for (int by_job = 0; by_job < 2; by_job++) {
            Projection q = p;
            float scale = 1.0f;
            if (by_job)
                q.row_scale.clear(), scale = (float)(-90 * (1 + std::fabs(m.normal())));
            auto codes = tile(q, format, scale, by_job);
            for (size_t k = m.rng() % 7; k < w.size(); k += 7) {
                float rho = by_job ? scale : p.row_scale[k / p.d()];
                uint32_t want = reference(w[k], e - 24, rho, format, by_job);
                UNSIGNED_LONGS_EQUAL(want, codes[k]);
            }
        }
}

TEST(rgu_round, twice_is_not_once) {
    // over the middle of two bf16 neighbours by less than float32 can say
    int32_t v = (0x101 << 22) + 1;
    float once = float_of(mr_round_fx(v, 0, 1.0f, MR_FMT_FP32, 0));
    UNSIGNED_LONGS_EQUAL(reference(v, 0, 1.0f, MR_FMT_BF16, 0),
                         mr_round_fx(v, 0, 1.0f, MR_FMT_BF16, 0));
    CHECK_TRUE(mr_round_fx(v, 0, 1.0f, MR_FMT_BF16, 0) != mr_round_f32(once, MR_FMT_BF16, 0));
}
