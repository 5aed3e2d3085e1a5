/* SPDX-License-Identifier: Apache-2.0 */
#include "host/io/safetensors.h"

#include "host/core/error.h"
#include "host/io/file.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const mr_st_output *t) {
    size_t n = mr_st_dtype_size(t->dtype);
    for (size_t i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* NULL when a text is not UTF-8 or memory ran out. */
static json_t *make_header(const mr_st_output *tensors, size_t count, const char *const *metadata,
                           size_t pairs) {
    json_t *header = json_object();
    bool ok = header != NULL;
    if (pairs) {
        json_t *meta = json_object();
        for (size_t i = 0; i < pairs; i++)
            ok &= !json_object_set_new(meta, metadata[2 * i], json_string(metadata[2 * i + 1]));
        ok &= !json_object_set_new(header, "__metadata__", meta);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        for (size_t k = 0; k < tensors[i].rank; k++)
            json_array_append_new(shape, json_integer((json_int_t)tensors[i].shape[k]));
        size_t end = at + bytes_of(&tensors[i]);
        ok &= !json_object_set_new(header, tensors[i].name,
                                   json_pack("{s:s, s:o, s:[I,I]}", "dtype",
                                             mr_st_dtype_name(tensors[i].dtype), "shape", shape,
                                             "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    if (!ok) {
        json_decref(header);
        return NULL;
    }
    return header;
}

mr_status mr_safetensors_write(const char *path, const mr_st_output *tensors, size_t count,
                               const char *const *metadata, size_t pairs) {
    json_t *header = make_header(tensors, count, metadata, pairs);
    char *text = header ? json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(header);
    if (!text)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: a tensor's name or its metadata is not UTF-8",
                       path);
    size_t length = strlen(text), padded = (length + 7) / 8 * 8; /* the data start aligned */
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(padded >> (8 * i));

    mr_file f;
    mr_status e = mr_file_create(path, &f);
    if (e != MR_OK) {
        free(text);
        return e;
    }
    e = mr_file_write(&f, prefix, sizeof prefix);
    if (e == MR_OK)
        e = mr_file_write(&f, text, length);
    if (e == MR_OK)
        e = mr_file_write(&f, "        ", padded - length);
    for (size_t i = 0; e == MR_OK && i < count; i++)
        e = mr_file_write(&f, tensors[i].data, bytes_of(&tensors[i]));
    free(text);
    if (e == MR_OK)
        return mr_file_commit(&f);
    mr_file_abandon(&f);
    return e;
}
