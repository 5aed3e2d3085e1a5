/* SPDX-License-Identifier: Apache-2.0 */
/* The near-memory unit's descriptors on compute devices. */
#include "kernels/pnm_ops.h"

/*
 * Group s does the descriptors of `ops` from cuts[first + s] to cuts[first + s + 1]. For each of
 * the unit's groups: scratch, bank, wreg, acts (activations of the MATVEC at work), and the words
 * of flags: a weight above wexp was met, an infinity or NaN was written. fn: quadratics of 2^-x,
 * then of log2(1 + x), 128 each.
 */
MR_KERNEL_11(pnm_run, MR_GLOBAL const mr_u32 *, ops, MR_GLOBAL const mr_u32 *, cuts, mr_i32, first,
             MR_GLOBAL mr_u32 *, scratch, MR_GLOBAL mr_u32 *, bank, MR_GLOBAL mr_u32 *, wreg,
             MR_GLOBAL mr_u32 *, acts, MR_GLOBAL const mr_u32 *, tables, MR_GLOBAL const mr_i64 *,
             fn, MR_GLOBAL mr_u32 *, flags, MR_GLOBAL mr_u32 *, memory) {
    MR_LOCAL mr_u32 words[MR_PNM_LOCAL_WORDS];
    mr_pnm_stream(ops, cuts[first + mr_group(0)], cuts[first + mr_group(0) + 1], scratch, bank,
                  wreg, acts, tables, fn, flags, memory, words);
}
