/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden model of the hybrid binary-stochastic multiplier of the near-memory elements (PNM):
 * bf16 x bf16 to an unrounded product in float32. Bit for bit what rtl/pnm/pnm_mult.sv makes;
 * docs/pnm-arithmetic.md is the text both follow. Depends on nothing but libc.
 *
 * a = (-1)^s 2^(e-127) (1 + fa/128). Signs and exponents are binary. The significand product is P
 * in units of 2^-14, 0x4000..0xFFFF: exact  P = (128+fa)(128+fb), the IEEE product split  P =
 * 0x4000 + 128(fa+fb) + an estimate of fa*fb from L stream bits full   P from L stream bits of the
 * whole significands, as the literature has it A generator starts anew at its seed for every
 * product, so a product is a function of its operands and the mode and of nothing that was
 * multiplied before.
 */
#ifndef MODELS_GOLDEN_PNM_MULT_H
#define MODELS_GOLDEN_PNM_MULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { MR_PNM_SPLIT = 0, MR_PNM_FULL = 1, MR_PNM_EXACT = 2 } mr_pnm_kind;

/* The codes of rtl/pnm/pnm_streams.json. */
typedef enum {
    MR_PNM_UNARY = 0,   /* a counts up, b bit-reversed */
    MR_PNM_LFSR = 1,    /* two shift registers of different lengths */
    MR_PNM_SOBOL = 2,   /* two Sobol dimensions, b's counter advances where a's bit is 1 */
    MR_PNM_CENTRED = 3, /* unary on the distances from the middle; split only */
} mr_pnm_gen;

enum {
    MR_PNM_STREAM_MIN = 4,
    MR_PNM_STREAM_MAX = 256,
    MR_PNM_CUT_MAX = 6,
    MR_PNM_POSITIONS = 256,  /* positions whose shift registers start apart from each other */
    MR_PNM_TABLE = 128 * 128 /* entries of a table of significand products */
};

typedef struct {
    mr_pnm_kind kind;
    mr_pnm_gen gen;
    unsigned stream;         /* L, a power of two 4..256; not looked at by exact */
    unsigned cut;            /* upper fraction bits whose products are binary, 0..6; split only */
    uint32_t seed_a, seed_b; /* lfsr; 24 and 23 bits, see mr_pnm_mult_default */
    unsigned lane;           /* lfsr: position of the lane, 0..255, moves both seeds */
} mr_pnm_mult_mode;

/* What a product met. */
enum {
    MR_PNM_SEED = 1,     /* a seed was a lock state (all zeros or all ones): the default was used */
    MR_PNM_OVERFLOW = 2, /* finite operands, infinite product */
    MR_PNM_UNDERFLOW = 4, /* a product below 2^-126, or a subnormal operand, became zero */
    MR_PNM_INVALID = 8    /* a NaN operand, or infinity times zero */
};

/* Split, unary, L = 16, no cut, the seeds of pnm_streams.json, lane 0. */
mr_pnm_mult_mode mr_pnm_mult_default(void);

/* NULL when the mode is one there is; else what is wrong with it, for a message. */
const char *mr_pnm_mult_check(const mr_pnm_mult_mode *mode);

/* Name of a generator and of a kind; NULL for a code that is none. */
const char *mr_pnm_gen_name(int gen);
const char *mr_pnm_kind_name(int kind);

/*
 * The product of two bf16 codes as a float32 code. Subnormal operands count as zeros of their sign,
 * products below 2^-126 become zeros of theirs; NaN is 7FC00000. *flags, unless NULL, gets MR_PNM_*
 * or'ed in. A mode that mr_pnm_mult_check refuses gives NaN.
 */
uint32_t mr_pnm_mult(const mr_pnm_mult_mode *mode, uint16_t a, uint16_t b, unsigned *flags);

/*
 * The significand products P of all pairs of normal operands, P at 128*fa + fb. 0, or -1 for a mode
 * that mr_pnm_mult_check refuses.
 */
int mr_pnm_mult_table(const mr_pnm_mult_mode *mode, uint16_t table[MR_PNM_TABLE]);

/* The same with an offset (eighths of a step) and a bias (2^-10) of the caller's: how those of
 * pnm_streams.json were chosen, and what an error curve over either is drawn with. */
int mr_pnm_mult_table_at(const mr_pnm_mult_mode *mode, int offset, int bias,
                         uint16_t table[MR_PNM_TABLE]);

/* The product from a table: what mr_pnm_mult gives, a look-up instead of L stream bits. */
uint32_t mr_pnm_mult_by_table(const uint16_t table[MR_PNM_TABLE], uint16_t a, uint16_t b,
                              unsigned *flags);

/*
 * The next random number (8 bits) of a shift register, after one leap of 8 steps; *state moves on.
 * which: 0 for a (24 bits), 1 for b (23 bits). mr_pnm_lfsr_seed gives the state a seed starts
 * lane LANE with; a lock state becomes the default seed's, and *flags gets MR_PNM_SEED.
 */
unsigned mr_pnm_lfsr_next(int which, uint32_t *state);
uint32_t mr_pnm_lfsr_seed(int which, uint32_t seed, unsigned lane, unsigned *flags);

#ifdef __cplusplus
}
#endif
#endif
