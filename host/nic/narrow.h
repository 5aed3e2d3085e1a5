/* SPDX-License-Identifier: Apache-2.0 */
/* Elements to fp32 and back: what a job of groups does at its ends. */
#ifndef HOST_NIC_NARROW_H
#define HOST_NIC_NARROW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exact. int32 and fp32 are copied. */
void mr_nic_widen(void *to, const void *from, size_t count, unsigned dtype);

/* Rounds once to the nearest, ties to even; subnormals kept, overflow to infinity, NaN canonical.
 * int32 is copied. */
void mr_nic_narrow(void *to, const void *from, size_t count, unsigned dtype);

#ifdef __cplusplus
}
#endif
#endif
