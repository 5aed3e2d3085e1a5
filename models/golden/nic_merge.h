/*
 * nic_merge.h - the compute-NIC's merge and reduce engine, bit for bit.
 *
 * Contributions are folded one after the other, in ascending shard order; docs/nic-arithmetic.md is
 * this file in prose, with the error budget. All payloads are as on the wire: big-endian.
 */
#ifndef MODELS_GOLDEN_NIC_MERGE_H
#define MODELS_GOLDEN_NIC_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_NIC_MAX_HEADS 900   /* more do not fit a frame */
#define MR_NIC_MAX_VALUES 4500 /* 16-bit values; more do not fit a frame */

/* What one head has gathered: the largest exponent m, in the base of its contributor, and d. */
typedef struct mr_nic_stat {
    float m, d;
    bool natural; /* m counts powers of e, not of 2 */
    bool empty;   /* nothing but empty contributions so far */
    bool nan;     /* some contribution's m was a NaN */
} mr_nic_stat;

typedef struct mr_nic_acc {
    bool reduce; /* REDUCE: no statistics */
    unsigned dtype, rop;
    unsigned heads, dim;
    bool started;
    mr_nic_stat stat[MR_NIC_MAX_HEADS];
    union {
        float f;
        uint32_t bits; /* int32 */
    } value[MR_NIC_MAX_VALUES];
} mr_nic_acc;

/* Bytes of one element; 0 for an unknown dtype. */
size_t mr_nic_element_bytes(unsigned dtype);

/* Payload bytes of PARTIAL and MERGED (stat_bytes 8 and 4) or, with 0, of plain vectors. */
uint64_t mr_nic_vector_bytes(unsigned dtype, unsigned heads, unsigned dim, unsigned stat_bytes);

/* Empties the accumulator. heads x dim must fit a frame; REDUCE has heads = 1. */
void mr_nic_acc_begin(mr_nic_acc *acc, bool reduce, unsigned dtype, unsigned rop, unsigned heads,
                      unsigned dim);
/* Folds one contribution; payload as in the frame. natural: its exponents are to base e. */
void mr_nic_acc_fold(mr_nic_acc *acc, const uint8_t *payload, bool natural);
/* Writes the payload of the MERGED or RESULT and returns its bytes. */
size_t mr_nic_acc_finish(const mr_nic_acc *acc, uint8_t *payload);

/* The distance |X(a) - X(b)| of two exponents in powers of two, 9.24 bits, saturated; *newer says
 * whether a is larger. Both are finite. */
uint64_t mr_nic_distance(float a, bool a_natural, float b, bool b_natural, bool *newer);
/* x * 2^-distance, rounded once. */
float mr_nic_scale(float x, uint64_t distance);

#ifdef __cplusplus
}
#endif
#endif
