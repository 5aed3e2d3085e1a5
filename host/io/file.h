/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: read into memory, or put in place in one step. */
#ifndef MR_HOST_IO_FILE_H
#define MR_HOST_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the regular file PATH, at most LIMIT bytes. *data (one zero byte past the end) is owned. */
mr_status mr_file_read(const char *path, size_t limit, void **data, size_t *size);

/*
 * A file being written. Bytes go to a temporary file in the same folder; mr_file_commit renames it
 * over PATH, mr_file_abandon removes it. A PATH that exists and is no regular file (a pipe, a
 * terminal, /dev/null) is written directly.
 */
typedef struct {
    FILE *f;
    char *path; /* the final name, links resolved */
    char *temp; /* NULL when writing directly */
} mr_file;

mr_status mr_file_create(const char *path, mr_file *out);
mr_status mr_file_write(mr_file *f, const void *data, size_t size);
/* Brings all that was written to the device; who commits two files flushes both before. */
mr_status mr_file_flush(mr_file *f);
mr_status mr_file_commit(mr_file *f);
void mr_file_abandon(mr_file *f);

/* Can PATH be created or replaced? Asked before long work; leaves nothing behind. */
mr_status mr_file_check_writable(const char *path);

#ifdef __cplusplus
}
#endif
#endif
