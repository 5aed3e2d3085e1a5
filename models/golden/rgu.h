/*
 * Golden models of the rotor generation unit (RGU).
 *
 * Two independent things live behind this header:
 *   - the float64 definition (mr_def_*): the algebra as it is written on paper, slow, exact to
 * double;
 *   - the bit-true model (mr_golden_*): the arithmetic of the hardware, integer by integer.
 * docs/rgu-arithmetic.md is the text both follow; the first says that the second is right.
 *
 * Conventions: n is the dimension of the algebra Cl(n,0), d = 2^n, P = n(n-1)/2 planes (i,j), i<j,
 * in lexicographic order. A blade is a bitmask of n bits. Angles are int16, theta = v*pi/32768.
 */
#ifndef MODELS_GOLDEN_RGU_H
#define MODELS_GOLDEN_RGU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MR_RGU_MAX_N = 10,
    MR_RGU_MAX_TERMS = 32,
    MR_RGU_MAX_D = 1 << MR_RGU_MAX_N,
    MR_RGU_MAX_HALF = MR_RGU_MAX_D / 2,
    MR_RGU_MAX_PLANES = MR_RGU_MAX_N * (MR_RGU_MAX_N - 1) / 2,
    MR_RGU_X_FRAC = 22,   /* fraction bits of the expansion state and of g */
    MR_RGU_R_FRAC = 20,   /* fraction bits of the r table */
    MR_RGU_S_FRAC = 18,   /* fraction bits of the s table */
    MR_RGU_ACC_FRAC = 24, /* fraction bits of a generated chunk integer */
};

/* Output formats of a tile; the codes are the FORMAT field of the job registers. */
typedef enum {
    MR_FMT_BF16 = 0,
    MR_FMT_FP16 = 1,
    MR_FMT_FP8E4M3 = 2, /* the "fn" flavour: no infinity, NaN is 0x7F/0xFF, largest finite 448 */
    MR_FMT_FP8E5M2 = 3,
    MR_FMT_INT8 = 4,
    MR_FMT_FP32 = 5,
} mr_format;

/* 1 when tiles and products of this n are supported by every generator of the kit (8 and 10). */
int mr_rgu_n_supported(int n);
static inline int mr_rgu_planes(int n) { return n * (n - 1) / 2; }

/* Bytes of one element of a format, or 0 when the code is none. */
size_t mr_format_bytes(int format);

/* ---- rounding ---------------------------------------------------------------------------------
 */

/*
 * The one rounding of a weight: the exact value  m * 2^exp * scale  to `format`, to nearest even,
 * subnormals kept, zero always +0. `sat` != 0 clamps overflow to the largest finite magnitude;
 * otherwise it gives the format's infinity (bf16, fp16, e5m2, fp32) or NaN (e4m3). int8 always
 * clamps to
 * [-128,127]. |m| < 2^31. scale is finite. Returns the code in the low bits.
 */
uint32_t mr_round_fx(int32_t m, int exp, float scale, int format, int sat);
/* float32 to `format` with the same policy; NaN becomes the format's canonical NaN, sign kept
 * (int8: 0). */
uint32_t mr_round_f32(float x, int format, int sat);
/* The value of a code, exactly. int8 codes are taken as two's complement. */
float mr_format_value(uint32_t code, int format);

/* ---- seeds ------------------------------------------------------------------------------------
 */

/* One projection as the seed file stores it (arrays borrowed, C order; shapes in brackets). */
typedef struct {
    int n;
    int terms;
    size_t d_out, d_in;
    const int16_t *angles;  /* [terms][chunks_out][chunks_in][2][P]; I8 angles widened by v<<8 */
    const float *gain;      /* [terms][chunks_out][chunks_in] */
    const uint8_t *odd;     /* [terms][chunks_out][chunks_in] */
    const float *row_scale; /* [d_out] or NULL */
} mr_seed;

size_t mr_seed_chunks_out(const mr_seed *s);
size_t mr_seed_chunks_in(const mr_seed *s);

/* Why a seed cannot be used (a static string: the field and the rule), or NULL when it can. */
const char *mr_seed_check(const mr_seed *s);

/* Bytes of one record of the seed image: 64*ceil((8+4P)/64). */
size_t mr_rgu_record_bytes(int n);
/* Bytes of the whole image of a projection. */
size_t mr_rgu_image_bytes(const mr_seed *s);
/* Packs the projection into `image` (mr_rgu_image_bytes bytes): see docs/rgu-arithmetic.md. */
void mr_rgu_pack(const mr_seed *s, void *image);

/* One record, decoded. */
typedef struct {
    int32_t g; /* |gain| * 2^(22-e), 0..2^22 */
    int negative;
    int odd;
    int e;
    const int16_t *r, *s; /* P angles each, inside the record */
} mr_rgu_record;
void mr_rgu_unpack(const void *record, int n, mr_rgu_record *out);

/* ---- float64 definition -----------------------------------------------------------------------
 */

/* sgn(A,B) of rgu.md as +1 or -1. */
int mr_def_sign(unsigned a, unsigned b);
/* Rotor of P angles in radians: r = R_01 R_02 ... R_(n-2)(n-1). out[2^n]. */
void mr_def_rotor(int n, const double *angles, double *out);
/* Adds gain*M of one term to w[d*d] (row I, column J). 0, or -1 when memory ran out. */
int mr_def_term(int n, const double *r_angles, const double *s_angles, double gain, int odd,
                double *w);
/* The chunk (o,i) before the row scale, w[d*d]. 0, or -1 when memory ran out. */
int mr_def_chunk(const mr_seed *s, size_t o, size_t i, double *w);

/* ---- bit-true model ---------------------------------------------------------------------------
 */

/* cos and sin of v*pi/32768 with 20 fraction bits. */
void mr_golden_sincos(int v, int32_t *c, int32_t *s);
/* Expands one side. start = x[0] (22 fraction bits). x[2^(n-1)], index bit p = blade bit n-1-p. */
void mr_golden_expand(int n, const int16_t *angles, int32_t start, int32_t *x);
/* Tables r'[2^(n-1)] and s'[2^(n-1)] of one record, indexed by the blade without its top bit. */
void mr_golden_tables(int n, const mr_rgu_record *rec, int32_t *r, int32_t *s);
/*
 * The integers of one chunk: w[d*d], row I, column J; weight = w * 2^(e-24). `records` points to
 * the chunk's `terms` consecutive records. Returns e, or INT32_MIN when memory ran out.
 */
int mr_golden_chunk(int n, int terms, const void *records, int32_t *w);

/* A window of a projection in an output format. */
typedef struct {
    int n, terms;
    size_t d_out, d_in;
    const void *image;      /* seed image */
    const float *row_scale; /* [d_out] or NULL */
    float scale;            /* used where row_scale is NULL */
    size_t row0, row1, col0, col1;
    int format, sat;
} mr_golden_job;

/*
 * Writes the window row-major to dst, `stride` bytes between rows, elements of the format's size,
 * little endian. Returns 0, or -1 when memory ran out or the job is inconsistent.
 */
int mr_golden_tile(const mr_golden_job *job, void *dst, size_t stride);

#ifdef __cplusplus
}
#endif
#endif
