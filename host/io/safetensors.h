/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading safetensors files: 8-byte little-endian header length, a JSON header, the data.
 *
 * A file is checked whole when it is opened: every tensor has a known type, a shape whose byte size
 * cannot overflow, and offsets that tile the data section without gap or overlap up to the last
 * byte of the file. Whatever fails is refused with MR_BAD_FORMAT and a message that names the
 * file, the tensor and the reason; nothing is allocated from a size that has not been checked.
 */
#ifndef MR_HOST_IO_SAFETENSORS_H
#define MR_HOST_IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_ST_MAX_RANK 8
#define MR_ST_MAX_HEADER 100000000u /* the format's own limit */
#define MR_ST_ANY SIZE_MAX          /* in an expected shape: any extent */

typedef enum {
    MR_ST_BOOL,
    MR_ST_U8,
    MR_ST_I8,
    MR_ST_F8_E4M3,
    MR_ST_F8_E5M2,
    MR_ST_U16,
    MR_ST_I16,
    MR_ST_F16,
    MR_ST_BF16,
    MR_ST_U32,
    MR_ST_I32,
    MR_ST_F32,
    MR_ST_U64,
    MR_ST_I64,
    MR_ST_F64
} mr_st_dtype;

typedef struct {
    const char *name;
    mr_st_dtype dtype;
    size_t rank;
    size_t shape[MR_ST_MAX_RANK];
    size_t count; /* elements */
    size_t bytes;
    const void *data; /* inside the mapped file: little-endian, possibly unaligned */
} mr_st_tensor;

typedef struct mr_safetensors mr_safetensors;

/* Map PATH and check it. *out is owned by the caller until mr_safetensors_close. */
mr_status mr_safetensors_open(const char *path, mr_safetensors **out);

/* The same checks over SIZE bytes at DATA, which must outlive *out; LABEL stands for the file name.
 */
mr_status mr_safetensors_open_memory(const void *data, size_t size, const char *label,
                                     mr_safetensors **out);

void mr_safetensors_close(mr_safetensors *st);

const char *mr_safetensors_path(const mr_safetensors *st);
size_t mr_safetensors_count(const mr_safetensors *st);

/* Tensor I in file order, I < count. */
const mr_st_tensor *mr_safetensors_at(const mr_safetensors *st, size_t i);

/* NULL when there is no such tensor. */
const mr_st_tensor *mr_safetensors_find(const mr_safetensors *st, const char *name);

/* The metadata string of KEY, or NULL. */
const char *mr_safetensors_metadata(const mr_safetensors *st, const char *key);

/*
 * A tensor that must be there with this type, rank and shape (MR_ST_ANY matches any extent).
 * MR_BAD_FORMAT names what was found instead.
 */
mr_status mr_safetensors_require(const mr_safetensors *st, const char *name, mr_st_dtype dtype,
                                 size_t rank, const size_t *shape, const mr_st_tensor **out);

/* One tensor to be written; data is dense, C order, little-endian. */
typedef struct {
    const char *name;
    mr_st_dtype dtype;
    size_t rank;
    size_t shape[MR_ST_MAX_RANK];
    const void *data;
} mr_st_output;

/* Writes the tensors in this order, `metadata` being `pairs` keys and values in turn. The file
 * appears complete or not at all. */
mr_status mr_safetensors_write(const char *path, const mr_st_output *tensors, size_t count,
                               const char *const *metadata, size_t pairs);

const char *mr_st_dtype_name(mr_st_dtype dtype);
size_t mr_st_dtype_size(mr_st_dtype dtype);

/* Element I of a floating-point tensor (F64, F32, BF16, F16), exactly. */
double mr_st_tensor_f64(const mr_st_tensor *t, size_t i);

/* "[2, 3]" into BUF, for messages. Returns BUF. */
const char *mr_shape_text(char *buf, size_t size, size_t rank, const size_t *shape);

#ifdef __cplusplus
}
#endif
#endif
