/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: checked where text comes in, mended where bytes of a model go out. */
#ifndef HOST_LM_TEXT_H
#define HOST_LM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the first `size` that are whole, well-formed UTF-8 (no surrogates, nothing overlong,
 * nothing above U+10FFFF); `size` when all are. */
size_t mr_utf8_valid(const uint8_t *text, size_t size);

/*
 * Copies text to out, each ill-formed sequence as one U+FFFD (EF BF BD): the longest start of a
 * well-formed sequence counts as one, as the Unicode standard recommends. out holds 3 * size bytes.
 * With partial != NULL a sequence that the end of the text cuts off is left out, and *partial says
 * how many bytes it has. Returns the bytes written.
 */
size_t mr_utf8_mend(const uint8_t *text, size_t size, char *out, size_t *partial);

#ifdef __cplusplus
}
#endif
#endif
