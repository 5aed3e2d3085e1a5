/* SPDX-License-Identifier: Apache-2.0 */
#include "host/io/npy.h"

#include "host/core/error.h"
#include "host/io/file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header: a Python dictionary with three known keys -------------------------------------
 */

typedef struct {
    const char *p, *end;
    const char *reason; /* first thing that went wrong */
} cursor;

typedef struct {
    bool have_descr, have_order, have_shape;
    char order; /* '<' '>' '|' */
    char kind;
    size_t item;
    bool fortran;
    size_t rank;
    size_t shape[MR_NPY_MAX_RANK];
} header;

static bool bad(cursor *c, const char *reason) {
    if (!c->reason)
        c->reason = reason;
    return false;
}

static void blanks(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool eat(cursor *c, char ch) {
    blanks(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool quoted(cursor *c, char *buf, size_t size) {
    blanks(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return bad(c, "a quoted string is missing");
    char q = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != q) {
        if (*c->p == '\\' || n + 1 >= size)
            return bad(c, "a string in the header is not one of a plain array");
        buf[n++] = *c->p++;
    }
    if (c->p == c->end)
        return bad(c, "a string in the header does not end");
    c->p++;
    buf[n] = 0;
    return true;
}

static bool word(cursor *c, const char *w) {
    size_t n = strlen(w);
    blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, w, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool number(cursor *c, size_t *out) {
    blanks(c);
    if (c->p == c->end || *c->p < '0' || *c->p > '9')
        return bad(c, "an extent of the shape is not a non-negative integer");
    size_t v = 0;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        if (__builtin_mul_overflow(v, (size_t)10, &v) ||
            __builtin_add_overflow(v, (size_t)(*c->p++ - '0'), &v))
            return bad(c, "an extent of the shape overflows");
    *out = v;
    return true;
}

static bool shape(cursor *c, header *h) {
    if (!eat(c, '('))
        return bad(c, "the shape is not a tuple");
    if (eat(c, ')'))
        return true;
    for (;;) {
        if (h->rank == MR_NPY_MAX_RANK)
            return bad(c, "the rank is above 8");
        if (!number(c, &h->shape[h->rank]))
            return false;
        h->rank++;
        bool comma = eat(c, ',');
        if (eat(c, ')'))
            return h->rank > 1 || comma || bad(c, "the shape is not a tuple: one extent, no comma");
        if (!comma)
            return bad(c, "the shape is not a tuple of integers");
    }
}

static bool descr(cursor *c, header *h) {
    char text[16];
    blanks(c);
    if (c->p < c->end && *c->p == '[')
        return bad(c, "structured arrays are not supported");
    if (!quoted(c, text, sizeof text))
        return false;
    if (strlen(text) != 3 || !strchr("<>|=", text[0]) || text[2] < '1' || text[2] > '8')
        return bad(c, "the dtype is not supported");
    h->order = text[0];
    h->kind = text[1];
    h->item = (size_t)(text[2] - '0');
    static const char *const known[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                        "i8", "u1", "u2", "u4", "u8", "b1"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(text + 1, known[i])) {
            if (h->item > 1 && h->order == '|')
                return bad(c, "the dtype has no byte order");
            if (h->order == '=')
                return bad(c, "the dtype's byte order is the writer's, which is not recorded");
            return true;
        }
    return bad(c, "the dtype is not supported");
}

static bool parse_header(cursor *c, header *h) {
    memset(h, 0, sizeof *h);
    if (!eat(c, '{'))
        return bad(c, "the header is not a dictionary");
    while (!eat(c, '}')) {
        char key[32];
        if (!quoted(c, key, sizeof key))
            return false;
        if (!eat(c, ':'))
            return bad(c, "a colon is missing in the header");
        if (!strcmp(key, "descr")) {
            if (h->have_descr)
                return bad(c, "descr is there twice");
            h->have_descr = true;
            if (!descr(c, h))
                return false;
        } else if (!strcmp(key, "fortran_order")) {
            if (h->have_order)
                return bad(c, "fortran_order is there twice");
            h->have_order = true;
            h->fortran = word(c, "True");
            if (!h->fortran && !word(c, "False"))
                return bad(c, "fortran_order is neither True nor False");
        } else if (!strcmp(key, "shape")) {
            if (h->have_shape)
                return bad(c, "shape is there twice");
            h->have_shape = true;
            if (!shape(c, h))
                return false;
        } else {
            return bad(c, "the header has an unknown key");
        }
        if (!eat(c, ',')) {
            if (!eat(c, '}'))
                return bad(c, "the header's dictionary does not end");
            break;
        }
    }
    blanks(c);
    if (c->p != c->end)
        return bad(c, "something follows the header's dictionary");
    if (!h->have_descr || !h->have_order || !h->have_shape)
        return bad(c, "the header lacks descr, fortran_order or shape");
    return true;
}

/* ---- the data ----------------------------------------------------------------------------------
 */

static void copy_element(uint8_t *to, const uint8_t *from, size_t item, bool swap) {
    for (size_t b = 0; b < item; b++)
        to[b] = from[swap ? item - 1 - b : b];
}

static void copy_data(mr_npy *a, const uint8_t *from, bool fortran, bool swap) {
    uint8_t *to = a->data;
    if (!swap && (!fortran || a->rank < 2)) {
        memcpy(to, from, a->count * a->item);
        return;
    }
    size_t at[MR_NPY_MAX_RANK] = {0}; /* index of element i in C order */
    for (size_t i = 0; i < a->count; i++) {
        size_t source = i;
        if (fortran) {
            source = 0;
            for (size_t k = a->rank; k-- > 0;)
                source = source * a->shape[k] + at[k];
            for (size_t k = a->rank; k-- > 0 && ++at[k] == a->shape[k];)
                at[k] = 0;
        }
        copy_element(to + i * a->item, from + source * a->item, a->item, swap);
    }
}

mr_status mr_npy_read_memory(const void *data, size_t size, const char *label, mr_npy *out) {
    const uint8_t *p = data;
    memset(out, 0, sizeof *out);
    if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return mr_fail(MR_BAD_FORMAT, "%s: not a .npy file", label);
    unsigned major = p[6], minor = p[7];
    if (major < 1 || major > 3 || minor != 0)
        return mr_fail(MR_BAD_FORMAT, "%s: .npy version %u.%u is not supported (1.0 to 3.0 are)",
                       label, major, minor);
    size_t prefix = major == 1 ? 10 : 12;
    if (size < prefix)
        return mr_fail(MR_BAD_FORMAT, "%s: truncated in the header", label);
    size_t length = p[8] | (size_t)p[9] << 8;
    if (major > 1)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > MR_NPY_MAX_HEADER)
        return mr_fail(MR_BAD_FORMAT, "%s: header of %zu bytes is above the limit of %u", label,
                       length, MR_NPY_MAX_HEADER);
    if (length > size - prefix)
        return mr_fail(MR_BAD_FORMAT, "%s: truncated: the header is %zu bytes, the file only %zu",
                       label, length, size);

    header h;
    cursor c = {(const char *)p + prefix, (const char *)p + prefix + length, NULL};
    if (!parse_header(&c, &h))
        return mr_fail(MR_BAD_FORMAT, "%s: %s", label, c.reason);

    size_t count = 1, bytes;
    bool empty = false;
    for (size_t i = 0; i < h.rank; i++) {
        empty |= h.shape[i] == 0;
        if (__builtin_mul_overflow(count, h.shape[i] ? h.shape[i] : 1, &count))
            return mr_fail(MR_BAD_FORMAT, "%s: the shape's product overflows", label);
    }
    if (__builtin_mul_overflow(count, h.item, &bytes) || bytes > SIZE_MAX / 2)
        return mr_fail(MR_BAD_FORMAT, "%s: the shape's size in bytes overflows", label);
    if (empty)
        count = bytes = 0;
    size_t have = size - prefix - length;
    if (have != bytes)
        return mr_fail(MR_BAD_FORMAT, "%s: %s: the shape needs %zu bytes of data, the file has %zu",
                       label, have < bytes ? "truncated" : "oversized", bytes, have);

    out->kind = h.kind;
    out->item = h.item;
    out->rank = h.rank;
    memcpy(out->shape, h.shape, sizeof h.shape);
    out->count = count;
    out->data = malloc(bytes ? bytes : 1);
    if (!out->data)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for %zu bytes", label, bytes);
    copy_data(out, p + prefix + length, h.fortran, h.order == '>' && h.item > 1);
    return MR_OK;
}

mr_status mr_npy_read(const char *path, mr_npy *out) {
    void *data;
    size_t size;
    memset(out, 0, sizeof *out);
    mr_status s = mr_file_read(path, SIZE_MAX / 4, &data, &size);
    if (s != MR_OK)
        return s;
    s = mr_npy_read_memory(data, size, path, out);
    free(data);
    return s;
}

mr_status mr_npy_read_f32(const char *path, size_t rank, mr_npy *out) {
    mr_status s = mr_npy_read(path, out);
    if (s == MR_OK && (out->kind != 'f' || out->item != 4))
        s = mr_fail(MR_BAD_FORMAT, "%s: dtype is %c%zu, must be f4 (float32)", path, out->kind,
                    out->item);
    else if (s == MR_OK && out->rank != rank)
        s = mr_fail(MR_BAD_FORMAT, "%s: rank is %zu, must be %zu", path, out->rank, rank);
    if (s != MR_OK)
        mr_npy_free(out);
    return s;
}

void mr_npy_free(mr_npy *a) {
    free(a->data);
    memset(a, 0, sizeof *a);
}

mr_status mr_npy_write_f32(const char *path, size_t rank, const size_t *dims, const float *data) {
    char dict[320];
    size_t count = 1;
    int n = snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    if (rank > MR_NPY_MAX_RANK)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: rank %zu is above %d", path, rank,
                       MR_NPY_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        n +=
            snprintf(dict + n, sizeof dict - (size_t)n, "%zu,%s", dims[i], i + 1 < rank ? " " : "");
        count *= dims[i];
    }
    n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
    /* the data start at a multiple of 64; the last byte of the header is a newline */
    size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64;
    uint8_t head[384];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (uint8_t)(total - 10);
    head[9] = (uint8_t)((total - 10) >> 8);
    memcpy(head + 10, dict, (size_t)n);
    head[total - 1] = '\n';

    mr_file f;
    mr_status s = mr_file_create(path, &f);
    if (s != MR_OK)
        return s;
    s = mr_file_write(&f, head, total);
    if (s == MR_OK)
        s = mr_file_write(&f, data, count * sizeof *data);
    if (s == MR_OK)
        return mr_file_commit(&f);
    mr_file_abandon(&f);
    return s;
}
