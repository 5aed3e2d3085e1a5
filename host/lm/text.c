/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lm/text.h"

#include <stdbool.h>
#include <string.h>

/*
 * Bytes of the sequence that starts here, and whether it is well-formed; when it is not, the bytes
 * that one U+FFFD stands for. *cut: the text ends inside a sequence that may yet become
 * well-formed.
 */
static size_t sequence(const uint8_t *p, size_t left, bool *good, bool *cut) {
    uint8_t first = p[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
    size_t length = first < 0x80                    ? 1
                    : first >= 0xC2 && first < 0xE0 ? 2
                    : first >= 0xE0 && first < 0xF0 ? 3
                    : first >= 0xF0 && first < 0xF5 ? 4
                                                    : 0;
    if (first == 0xE0)
        low = 0xA0; /* shorter forms exist below */
    if (first == 0xED)
        high = 0x9F; /* surrogates */
    if (first == 0xF0)
        low = 0x90;
    if (first == 0xF4)
        high = 0x8F; /* U+10FFFF is the last */
    *good = *cut = false;
    if (length == 0)
        return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == left) {
            *cut = true;
            return i;
        }
        if (p[i] < low || p[i] > high)
            return i;
        low = 0x80;
        high = 0xBF;
    }
    *good = true;
    return length;
}

size_t mr_utf8_valid(const uint8_t *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        bool good, cut;
        size_t n = sequence(text + at, size - at, &good, &cut);
        if (!good)
            break;
        at += n;
    }
    return at;
}

size_t mr_utf8_mend(const uint8_t *text, size_t size, char *out, size_t *partial) {
    size_t written = 0;
    if (partial)
        *partial = 0;
    for (size_t at = 0; at < size;) {
        bool good, cut;
        size_t n = sequence(text + at, size - at, &good, &cut);
        if (cut && partial) {
            *partial = n;
            break;
        }
        memcpy(out + written, good ? (const char *)text + at : "\xEF\xBF\xBD", good ? n : 3);
        written += good ? n : 3;
        at += n;
    }
    return written;
}
