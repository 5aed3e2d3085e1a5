/* SPDX-License-Identifier: Apache-2.0 */
#include "host/io/safetensors.h"

#include "host/core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mr_safetensors {
    char *path;
    void *map; /* NULL when the caller owns the bytes */
    size_t map_size;
    json_t *header;
    mr_st_tensor *tensors;  /* by offset */
    mr_st_tensor **by_name; /* the same, sorted by name */
    size_t count;
};

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [MR_ST_BOOL] = {"BOOL", 1},       [MR_ST_U8] = {"U8", 1},           [MR_ST_I8] = {"I8", 1},
    [MR_ST_F8_E4M3] = {"F8_E4M3", 1}, [MR_ST_F8_E5M2] = {"F8_E5M2", 1}, [MR_ST_U16] = {"U16", 2},
    [MR_ST_I16] = {"I16", 2},         [MR_ST_F16] = {"F16", 2},         [MR_ST_BF16] = {"BF16", 2},
    [MR_ST_U32] = {"U32", 4},         [MR_ST_I32] = {"I32", 4},         [MR_ST_F32] = {"F32", 4},
    [MR_ST_U64] = {"U64", 8},         [MR_ST_I64] = {"I64", 8},         [MR_ST_F64] = {"F64", 8},
};

const char *mr_st_dtype_name(mr_st_dtype dtype) { return dtypes[dtype].name; }
size_t mr_st_dtype_size(mr_st_dtype dtype) { return dtypes[dtype].size; }

const char *mr_shape_text(char *buf, size_t size, size_t rank, const size_t *shape) {
    size_t used = (size_t)snprintf(buf, size, "[");
    for (size_t i = 0; i < rank && used < size; i++) {
        const char *sep = i ? ", " : "";
        int n = shape[i] == MR_ST_ANY ? snprintf(buf + used, size - used, "%s*", sep)
                                      : snprintf(buf + used, size - used, "%s%zu", sep, shape[i]);
        used += (size_t)n;
    }
    if (used < size)
        snprintf(buf + used, size - used, "]");
    return buf;
}

static bool known_field(const char *key) {
    return !strcmp(key, "dtype") || !strcmp(key, "shape") || !strcmp(key, "data_offsets");
}

/* A JSON integer that fits size_t. */
static bool json_size(const json_t *j, size_t *out) {
    if (!json_is_integer(j) || json_integer_value(j) < 0)
        return false;
    *out = (size_t)json_integer_value(j);
    return true;
}

static mr_status read_tensor(const char *path, const char *name, json_t *info, const uint8_t *data,
                             size_t data_size, mr_st_tensor *t) {
    if (!json_is_object(info))
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: its entry is not a JSON object", path, name);
    const char *key;
    json_t *value;
    json_object_foreach(info, key, value) {
        if (!known_field(key))
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: unknown field \"%s\"", path, name, key);
    }

    const json_t *dtype = json_object_get(info, "dtype");
    if (!json_is_string(dtype))
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: dtype is missing or not a string", path,
                       name);
    size_t kinds = sizeof dtypes / sizeof dtypes[0], d = 0;
    while (d < kinds && strcmp(dtypes[d].name, json_string_value(dtype)))
        d++;
    if (d == kinds)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: unknown dtype \"%s\"", path, name,
                       json_string_value(dtype));

    const json_t *shape = json_object_get(info, "shape");
    if (!json_is_array(shape))
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: shape is missing or not an array", path,
                       name);
    if (json_array_size(shape) > MR_ST_MAX_RANK)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: rank %zu is above %d", path, name,
                       json_array_size(shape), MR_ST_MAX_RANK);
    t->name = name;
    t->dtype = (mr_st_dtype)d;
    t->rank = json_array_size(shape);
    t->count = 1;
    bool empty = false;
    for (size_t i = 0; i < t->rank; i++) {
        if (!json_size(json_array_get(shape, i), &t->shape[i]))
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: shape[%zu] is not a non-negative integer",
                           path, name, i);
        empty |= t->shape[i] == 0;
        /* a zero extent must not hide the overflow of the others */
        size_t extent = t->shape[i] ? t->shape[i] : 1;
        if (__builtin_mul_overflow(t->count, extent, &t->count))
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: the shape's product overflows", path,
                           name);
    }
    if (__builtin_mul_overflow(t->count, dtypes[d].size, &t->bytes) || t->bytes > SIZE_MAX / 2)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: the shape's size in bytes overflows", path,
                       name);
    if (empty)
        t->count = t->bytes = 0;

    const json_t *offsets = json_object_get(info, "data_offsets");
    size_t begin, end;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !json_size(json_array_get(offsets, 0), &begin) ||
        !json_size(json_array_get(offsets, 1), &end))
        return mr_fail(MR_BAD_FORMAT,
                       "%s: tensor %s: data_offsets is not two non-negative integers", path, name);
    if (begin > end)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: data_offsets [%zu, %zu] run backwards", path,
                       name, begin, end);
    if (end > data_size)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: tensor %s: its data ends at %zu but the file holds %zu bytes of data "
                       "(truncated?)",
                       path, name, end, data_size);
    if (end - begin != t->bytes)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: tensor %s: data_offsets span %zu bytes, dtype and shape need %zu", path,
                       name, end - begin, t->bytes);
    t->data = data + begin;
    return MR_OK;
}

static int by_offset(const void *a, const void *b) {
    const mr_st_tensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q)
        return p < q ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty tensors first */
}

static int by_name(const void *a, const void *b) {
    const mr_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static mr_status read_header(mr_safetensors *st, const uint8_t *bytes, size_t size) {
    const char *path = st->path;
    if (size < 8)
        return mr_fail(MR_BAD_FORMAT,
                       "%s: not a safetensors file: %zu bytes, shorter than the header "
                       "length",
                       path, size);
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | bytes[i];
    if (n > MR_ST_MAX_HEADER)
        return mr_fail(MR_BAD_FORMAT, "%s: header length %llu is above the format's limit of %u",
                       path, (unsigned long long)n, MR_ST_MAX_HEADER);
    if (n > size - 8)
        return mr_fail(MR_BAD_FORMAT, "%s: truncated: the header is %llu bytes, the file only %zu",
                       path, (unsigned long long)n, size);
    if (n == 0 || bytes[8] != '{')
        return mr_fail(MR_BAD_FORMAT,
                       "%s: not a safetensors file: the header does not start with {", path);

    json_error_t err;
    st->header = json_loadb((const char *)bytes + 8, (size_t)n, JSON_REJECT_DUPLICATES, &err);
    if (!st->header)
        return mr_fail(MR_BAD_FORMAT, "%s: header is not valid JSON: %s (byte %d)", path, err.text,
                       err.position);

    const uint8_t *data = bytes + 8 + n;
    size_t data_size = size - 8 - (size_t)n;
    size_t entries = json_object_size(st->header);
    st->tensors = calloc(entries ? entries : 1, sizeof *st->tensors);
    st->by_name = calloc(entries ? entries : 1, sizeof *st->by_name);
    if (!st->tensors || !st->by_name)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for %zu tensors", path, entries);

    const char *key;
    json_t *value;
    json_object_foreach(st->header, key, value) {
        if (strcmp(key, "__metadata__")) {
            mr_status s = read_tensor(path, key, value, data, data_size, &st->tensors[st->count]);
            if (s != MR_OK)
                return s;
            st->count++;
            continue;
        }
        if (!json_is_object(value))
            return mr_fail(MR_BAD_FORMAT, "%s: __metadata__ is not a JSON object", path);
        const char *mkey;
        json_t *mvalue;
        json_object_foreach(value, mkey, mvalue) {
            if (!json_is_string(mvalue))
                return mr_fail(MR_BAD_FORMAT, "%s: metadata %s is not a string", path, mkey);
        }
    }

    qsort(st->tensors, st->count, sizeof *st->tensors, by_offset);
    const uint8_t *at = data;
    for (size_t i = 0; i < st->count; i++) {
        const mr_st_tensor *t = &st->tensors[i];
        const uint8_t *begin = t->data;
        if (begin < at)
            return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: its data overlaps that of %s", path,
                           t->name, st->tensors[i - 1].name);
        if (begin > at)
            return mr_fail(MR_BAD_FORMAT,
                           "%s: tensor %s: %zu bytes before its data belong to no tensor", path,
                           t->name, (size_t)(begin - at));
        at = begin + t->bytes;
        st->by_name[i] = &st->tensors[i];
    }
    if (at != data + data_size)
        return mr_fail(MR_BAD_FORMAT, "%s: oversized: %zu bytes after the last tensor", path,
                       (size_t)(data + data_size - at));
    qsort(st->by_name, st->count, sizeof(mr_st_tensor *), by_name);
    return MR_OK;
}

static mr_status open_bytes(const void *data, size_t size, const char *path, void *map,
                            mr_safetensors **out) {
    mr_status s = MR_OK;
    mr_safetensors *st = calloc(1, sizeof *st);
    if (st) {
        st->map = map;
        st->map_size = size;
        st->path = strdup(path);
    }
    if (!st || !st->path)
        s = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    else
        s = read_header(st, data, size);
    if (s != MR_OK) {
        if (!st && map)
            munmap(map, size);
        mr_safetensors_close(st);
        return s;
    }
    *out = st;
    return MR_OK;
}

mr_status mr_safetensors_open_memory(const void *data, size_t size, const char *label,
                                     mr_safetensors **out) {
    *out = NULL;
    return open_bytes(data, size, label, NULL, out);
}

mr_status mr_safetensors_open(const char *path, mr_safetensors **out) {
    *out = NULL;
    /* O_NONBLOCK so that a FIFO is refused below instead of waiting for a writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mr_fail(MR_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
    struct stat sb;
    if (fstat(fd, &sb) != 0) {
        int e = errno;
        close(fd);
        return mr_fail(MR_IO_ERROR, "%s: cannot read: %s", path, strerror(e));
    }
    if (!S_ISREG(sb.st_mode)) {
        close(fd);
        return mr_fail(MR_IO_ERROR, "%s: not a regular file", path);
    }
    if (sb.st_size < 8) {
        close(fd);
        return mr_fail(MR_BAD_FORMAT, "%s: not a safetensors file: only %lld bytes", path,
                       (long long)sb.st_size);
    }
    size_t size = (size_t)sb.st_size;
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    int e = errno;
    close(fd);
    if (map == MAP_FAILED)
        return mr_fail(MR_IO_ERROR, "%s: cannot map: %s", path, strerror(e));
    return open_bytes(map, size, path, map, out);
}

void mr_safetensors_close(mr_safetensors *st) {
    if (!st)
        return;
    if (st->map)
        munmap(st->map, st->map_size);
    json_decref(st->header);
    free(st->tensors);
    free(st->by_name);
    free(st->path);
    free(st);
}

const char *mr_safetensors_path(const mr_safetensors *st) { return st->path; }
size_t mr_safetensors_count(const mr_safetensors *st) { return st->count; }
const mr_st_tensor *mr_safetensors_at(const mr_safetensors *st, size_t i) {
    return &st->tensors[i];
}

const mr_st_tensor *mr_safetensors_find(const mr_safetensors *st, const char *name) {
    size_t lo = 0, hi = st->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, st->by_name[mid]->name);
        if (c == 0)
            return st->by_name[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const char *mr_safetensors_metadata(const mr_safetensors *st, const char *key) {
    return json_string_value(json_object_get(json_object_get(st->header, "__metadata__"), key));
}

mr_status mr_safetensors_require(const mr_safetensors *st, const char *name, mr_st_dtype dtype,
                                 size_t rank, const size_t *shape, const mr_st_tensor **out) {
    char have[160], want[160];
    const mr_st_tensor *t = mr_safetensors_find(st, name);
    if (!t)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s is missing", st->path, name);
    if (t->dtype != dtype)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: dtype is %s, must be %s", st->path, name,
                       dtypes[t->dtype].name, dtypes[dtype].name);
    bool same = t->rank == rank;
    for (size_t i = 0; same && i < rank; i++)
        same = shape[i] == MR_ST_ANY || shape[i] == t->shape[i];
    if (!same)
        return mr_fail(MR_BAD_FORMAT, "%s: tensor %s: shape is %s, must be %s", st->path, name,
                       mr_shape_text(have, sizeof have, t->rank, t->shape),
                       mr_shape_text(want, sizeof want, rank, shape));
    *out = t;
    return MR_OK;
}

static double half_to_double(uint16_t h) {
    int exponent = h >> 10 & 31;
    double m = h & 1023, sign = h & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31)
        return m ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(m + 1024, exponent - 25) : ldexp(m, -24));
}

double mr_st_tensor_f64(const mr_st_tensor *t, size_t i) {
    const uint8_t *p = (const uint8_t *)t->data + i * dtypes[t->dtype].size;
    uint16_t h;
    uint32_t w;
    float f;
    double d;
    switch (t->dtype) {
    case MR_ST_F64:
        memcpy(&d, p, sizeof d);
        return d;
    case MR_ST_F32:
        memcpy(&f, p, sizeof f);
        return f;
    case MR_ST_BF16:
        memcpy(&h, p, sizeof h);
        w = (uint32_t)h << 16;
        memcpy(&f, &w, sizeof f);
        return f;
    case MR_ST_F16:
        memcpy(&h, p, sizeof h);
        return half_to_double(h);
    default:
        return (double)NAN; /* callers ask for a floating-point type first */
    }
}
