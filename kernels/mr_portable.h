/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kernel source for OpenCL C, CUDA C and C.
 *
 * A kernel is written for a work GROUP, not for a work item: code outside the loops below runs in
 * every lane of the group with the same values (or, in C, once); the loops share their iterations
 * among the lanes (or, in C, run them all).
 *
 *     MR_KERNEL_3(scale, MR_GLOBAL float *, y, MR_GLOBAL const float *, x, mr_i32, n)
 *     {
 *         MR_EACH(i, n) { y[i] = 2.0f * x[i]; }
 *     }
 *
 *   MR_EACH(i, n) {..}      mr_i32 i = 0..n-1, shared among the lanes of this group
 *   MR_ITEMS(i) {..}        mr_i64 i = the group's own items of the global range (dimension 0):
 *                           group*lanes .. group*lanes+lanes-1, one a lane
 *   MR_ONE {..}             in one lane only
 *   MR_BARRIER              all lanes of the group meet here; memory of the group is consistent.
 *                           Only at the top level of a kernel or in uniform control flow.
 *   MR_LOCAL type v[N];     memory of the group; only at the top level of a kernel
 *   MR_LOCAL_PTR type *p    a parameter that points there
 *   mr_group(d), mr_groups(d), mr_lanes()   index and number of groups, lanes in a group
 *
 * A launch has global[0] x global[1] x global[2] items and local[0] lanes a group (local[1] =
 * local[2] = 1): mr_groups(0) = global[0] / local[0].
 *
 * In C the kernel `name` becomes  void mr_cpu_name(void *const *args, const mr_work *w),  which
 * runs one group; args[i] points at the i-th argument's value. The list of prototypes is taken from
 * the MR_KERNEL_ lines by tools/gen-kernels.
 */
#ifndef MR_PORTABLE_H
#define MR_PORTABLE_H

#if defined(__OPENCL_VERSION__) /* ---------------------------------------------- OpenCL C ---- */

#define MR_GLOBAL __global
#define MR_LOCAL __local
#define MR_LOCAL_PTR __local
#define MR_CONSTANT __constant
#define MR_FN static inline
#define MR_ENTRY __kernel
#define mr_group(d) ((mr_i32)get_group_id(d))
#define mr_groups(d) ((mr_i32)get_num_groups(d))
#define mr_lanes() ((mr_i32)get_local_size(0))
#define MR_LANE ((mr_i32)get_local_id(0))
#define MR_BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define mr_parity(x) ((mr_u32)popcount((mr_u32)(x)) & 1u)
#define mr_popcount(x) ((mr_i32)popcount((mr_u32)(x)))
#define mr_clz64(x) ((mr_i32)clz((mr_u64)(x)))
#define mr_as_f32(x) as_float(x)
#define mr_as_u32(x) as_uint(x)
typedef uchar mr_u8;
typedef short mr_i16;
typedef ushort mr_u16;
typedef int mr_i32;
typedef uint mr_u32;
typedef long mr_i64;
typedef ulong mr_u64;
#define mr_sqrt(x) sqrt(x)
#define mr_exp(x) exp(x)
#define MR_INFINITY INFINITY

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__) /* --------------------------- CUDA C ---- */

#define MR_GLOBAL
#define MR_LOCAL __shared__
#define MR_LOCAL_PTR
#define MR_CONSTANT static __device__ __constant__ const
#define MR_FN static __device__ inline
#define MR_ENTRY extern "C" __global__
#define MR_DIM_(v, d) ((d) == 0 ? (v).x : (d) == 1 ? (v).y : (v).z)
#define mr_group(d) ((mr_i32)MR_DIM_(blockIdx, d))
#define mr_groups(d) ((mr_i32)MR_DIM_(gridDim, d))
#define mr_lanes() ((mr_i32)blockDim.x)
#define MR_LANE ((mr_i32)threadIdx.x)
#define MR_BARRIER __syncthreads()
#define mr_parity(x) ((mr_u32)__popc((mr_u32)(x)) & 1u)
#define mr_popcount(x) ((mr_i32)__popc((mr_u32)(x)))
#define mr_clz64(x) ((mr_i32)__clzll((long long)(x)))
#define mr_as_f32(x) __uint_as_float(x)
#define mr_as_u32(x) __float_as_uint(x)
typedef unsigned char mr_u8;
typedef short mr_i16;
typedef unsigned short mr_u16;
typedef int mr_i32;
typedef unsigned int mr_u32;
typedef long long mr_i64;
typedef unsigned long long mr_u64;
#define mr_sqrt(x) sqrtf(x)
#define mr_exp(x) expf(x)
#define MR_INFINITY __int_as_float(0x7F800000)

#else /* ------------------------------------------------------------------------------ C ---- */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MR_GLOBAL
#define MR_LOCAL
#define MR_LOCAL_PTR
#define MR_CONSTANT static const
#define MR_FN static inline
#define MR_BARRIER ((void)0)
#define mr_parity(x) ((mr_u32)__builtin_parity((mr_u32)(x)))
#define mr_popcount(x) ((mr_i32)__builtin_popcount((mr_u32)(x)))
#define mr_clz64(x) ((mr_i32)__builtin_clzll((mr_u64)(x)))
typedef uint8_t mr_u8;
typedef int16_t mr_i16;
typedef uint16_t mr_u16;
typedef int32_t mr_i32;
typedef uint32_t mr_u32;
typedef int64_t mr_i64;
typedef uint64_t mr_u64;
typedef struct mr_work {
    mr_u32 group[3];
    mr_u32 groups[3];
    mr_u32 lanes;
} mr_work;
#define mr_group(d) ((mr_i32)mr_w->group[d])
#define mr_groups(d) ((mr_i32)mr_w->groups[d])
#define mr_lanes() ((mr_i32)mr_w->lanes)
MR_FN float mr_as_f32(mr_u32 x) {
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
MR_FN mr_u32 mr_as_u32(float f) {
    mr_u32 x;
    memcpy(&x, &f, sizeof x);
    return x;
}
#define mr_sqrt(x) sqrtf(x)
#define mr_exp(x) expf(x)
#define MR_INFINITY INFINITY

#endif

#ifdef MR_ENTRY /* lanes share the iterations */
#define MR_EACH(i, n) for (mr_i32 i = MR_LANE; i < (n); i += mr_lanes())
#define MR_ITEMS(i)                                                                                \
    for (mr_i64 i = (mr_i64)mr_group(0) * mr_lanes() + MR_LANE, mr_end_##i = i + 1;                \
         i < mr_end_##i; i++)
#define MR_ONE if (MR_LANE == 0)
#else /* one caller runs them all */
#define MR_EACH(i, n) for (mr_i32 i = 0; i < (n); i++)
#define MR_ITEMS(i)                                                                                \
    for (mr_i64 i = (mr_i64)mr_group(0) * mr_lanes(), mr_end_##i = i + mr_lanes(); i < mr_end_##i; \
         i++)
#define MR_ONE
#endif

/* One line an arity. */
/* clang-format off */
#ifdef MR_ENTRY
#define MR_KERNEL_1(name, t0, a0) MR_ENTRY void name(t0 a0)
#define MR_KERNEL_2(name, t0, a0, t1, a1) MR_ENTRY void name(t0 a0, t1 a1)
#define MR_KERNEL_3(name, t0, a0, t1, a1, t2, a2) MR_ENTRY void name(t0 a0, t1 a1, t2 a2)
#define MR_KERNEL_4(name, t0, a0, t1, a1, t2, a2, t3, a3) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3)
#define MR_KERNEL_5(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4)
#define MR_KERNEL_6(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5)
#define MR_KERNEL_7(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6)
#define MR_KERNEL_8(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7)
#define MR_KERNEL_9(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8)
#define MR_KERNEL_10(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9)
#define MR_KERNEL_11(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10)
#define MR_KERNEL_12(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11)
#define MR_KERNEL_13(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12)
#define MR_KERNEL_14(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13)
#define MR_KERNEL_15(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14)
#define MR_KERNEL_16(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15)
#define MR_KERNEL_17(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15, t16, a16) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16)
#define MR_KERNEL_18(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15, t16, a16, t17, a17) MR_ENTRY void name(t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16, t17 a17)
#else
#define MR_UNUSED __attribute__((unused))
#define MR_CPU_ENTRY_(name) void mr_cpu_##name(void *const *args, const mr_work *mr_w); void mr_cpu_##name(void *const *args, const mr_work *mr_w)
#define MR_KERNEL_1(name, t0, a0) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0)
#define MR_KERNEL_2(name, t0, a0, t1, a1) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1)
#define MR_KERNEL_3(name, t0, a0, t1, a1, t2, a2) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2)
#define MR_KERNEL_4(name, t0, a0, t1, a1, t2, a2, t3, a3) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3)
#define MR_KERNEL_5(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4)
#define MR_KERNEL_6(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5)
#define MR_KERNEL_7(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6)
#define MR_KERNEL_8(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7)
#define MR_KERNEL_9(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8)
#define MR_KERNEL_10(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9)
#define MR_KERNEL_11(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10)
#define MR_KERNEL_12(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11)
#define MR_KERNEL_13(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12)
#define MR_KERNEL_14(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12], *(t13 *)args[13]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13)
#define MR_KERNEL_15(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12], *(t13 *)args[13], *(t14 *)args[14]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14)
#define MR_KERNEL_16(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12], *(t13 *)args[13], *(t14 *)args[14], *(t15 *)args[15]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15)
#define MR_KERNEL_17(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15, t16, a16) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12], *(t13 *)args[13], *(t14 *)args[14], *(t15 *)args[15], *(t16 *)args[16]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16)
#define MR_KERNEL_18(name, t0, a0, t1, a1, t2, a2, t3, a3, t4, a4, t5, a5, t6, a6, t7, a7, t8, a8, t9, a9, t10, a10, t11, a11, t12, a12, t13, a13, t14, a14, t15, a15, t16, a16, t17, a17) static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16, t17 a17); MR_CPU_ENTRY_(name) { name(mr_w, *(t0 *)args[0], *(t1 *)args[1], *(t2 *)args[2], *(t3 *)args[3], *(t4 *)args[4], *(t5 *)args[5], *(t6 *)args[6], *(t7 *)args[7], *(t8 *)args[8], *(t9 *)args[9], *(t10 *)args[10], *(t11 *)args[11], *(t12 *)args[12], *(t13 *)args[13], *(t14 *)args[14], *(t15 *)args[15], *(t16 *)args[16], *(t17 *)args[17]); } static inline void name(const mr_work *mr_w MR_UNUSED, t0 a0, t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12, t13 a13, t14 a14, t15 a15, t16 a16, t17 a17)
#endif
/* clang-format on */

#endif
