/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy .npy files, versions 1.0, 2.0 and 3.0.
 *
 * The reader takes either byte order and either memory order and hands over native C order;
 * whatever it cannot represent it refuses with the file's name and the reason. The writer produces
 * version 1.0, little-endian, C order; the file appears under its name complete or not at all.
 */
#ifndef MR_HOST_IO_NPY_H
#define MR_HOST_IO_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_NPY_MAX_RANK 8
#define MR_NPY_MAX_HEADER (1u << 20)

/* 'f' IEEE float, 'i' signed, 'u' unsigned, 'b' bool; the element size is beside it. */
typedef struct {
    char kind;
    size_t item; /* bytes of an element */
    size_t rank;
    size_t shape[MR_NPY_MAX_RANK];
    size_t count;
    void *data; /* native byte order, C order; owned */
} mr_npy;

/* Reads PATH into *out; release it with mr_npy_free. */
mr_status mr_npy_read(const char *path, mr_npy *out);

/* The same from SIZE bytes at DATA; LABEL stands for the file name in messages. */
mr_status mr_npy_read_memory(const void *data, size_t size, const char *label, mr_npy *out);

/* As mr_npy_read, and refuses anything but float32 of this rank. */
mr_status mr_npy_read_f32(const char *path, size_t rank, mr_npy *out);

void mr_npy_free(mr_npy *a);

/* Writes a float32 array of this shape, C order. Rank 0 is a scalar. */
mr_status mr_npy_write_f32(const char *path, size_t rank, const size_t *shape, const float *data);

#ifdef __cplusplus
}
#endif
#endif
