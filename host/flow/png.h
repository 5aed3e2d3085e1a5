/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_FLOW_PNG_H
#define HOST_FLOW_PNG_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes `count` grey images of side x side pixels as one PNG: as near a square as can be, row by
 * row, every pixel `zoom` x `zoom` wide, one mid-grey line between images. The file appears
 * complete or not at all.
 */
mr_status mr_png_grid(const char *path, const uint8_t *images, size_t count, size_t side,
                      size_t zoom);

#ifdef __cplusplus
}
#endif
#endif
