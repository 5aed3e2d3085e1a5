/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_IO_SHA256_H
#define HOST_IO_SHA256_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SHA-256 of SIZE bytes as 64 lower-case hex digits and a zero. */
void mr_sha256_hex(const void *data, size_t size, char hex[65]);

#ifdef __cplusplus
}
#endif
#endif
