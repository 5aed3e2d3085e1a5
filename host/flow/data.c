/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* M_PI */
#include "host/flow/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "host/core/error.h"
#include "host/io/npy.h"

static const char debian[] = "/usr/share/datasets/fashion-mnist";

unsigned mr_flow_levels(mr_flow_set set) { return set == MR_FLOW_DIGITS ? 17 : 256; }
static size_t side_of(mr_flow_set set) { return set == MR_FLOW_DIGITS ? 8 : 28; }

/* ---- Files ------------------------------------------------------------------------------------
 */

static mr_status allocate(mr_flow_images *i, size_t count, const char *path) {
    i->side = side_of(i->set);
    i->count = count;
    i->pixel = malloc(count * i->side * i->side);
    i->index = malloc(count * sizeof *i->index);
    return i->pixel && i->index ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
}

static mr_status read_digits(const char *path, mr_flow_part part, size_t limit,
                             mr_flow_images *out) {
    mr_npy a;
    mr_status e = mr_npy_read(path, &a);
    if (e != MR_OK)
        return e;
    if (a.kind != 'u' || a.item != 1 || a.rank != 2 || a.shape[1] != 64)
        e = mr_fail(MR_BAD_FORMAT, "%s: must be uint8 of shape [images, 64]", path);
    size_t held = part == MR_FLOW_TEST ? a.shape[0] / 5 : a.shape[0], count = held;
    if (limit && limit < count)
        count = limit;
    if (e == MR_OK)
        e = allocate(out, count, path);
    for (size_t i = 0; e == MR_OK && i < count; i++) {
        size_t from = part == MR_FLOW_TEST ? 5 * i + 4 : i;
        const uint8_t *p = (const uint8_t *)a.data + 64 * from;
        for (size_t j = 0; j < 64 && e == MR_OK; j++)
            if (p[j] > 16)
                e = mr_fail(MR_BAD_FORMAT, "%s: image %zu, pixel %zu is %u, above 16", path, from,
                            j, p[j]);
        memcpy(out->pixel + 64 * i, p, 64);
        out->index[i] = (uint32_t)from;
    }
    mr_npy_free(&a);
    return e;
}

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static mr_status read_idx(gzFile f, const char *path, size_t limit, mr_flow_images *out) {
    uint8_t head[16];
    if (gzread(f, head, 16) != 16 || big_endian(head) != 0x803)
        return mr_fail(MR_BAD_FORMAT, "%s: not an IDX file of images", path);
    size_t count = big_endian(head + 4), bytes = 28 * 28;
    if (big_endian(head + 8) != 28 || big_endian(head + 12) != 28 || count < 1 || count > 70000)
        return mr_fail(MR_BAD_FORMAT, "%s: %zu images of %ux%u, must be of 28x28", path, count,
                       big_endian(head + 8), big_endian(head + 12));
    if (limit && limit < count)
        count = limit;
    mr_status e = allocate(out, count, path);
    for (size_t i = 0; i < count && e == MR_OK; i++) {
        out->index[i] = (uint32_t)i;
        if (gzread(f, out->pixel + bytes * i, (unsigned)bytes) != (int)bytes)
            e = mr_fail(MR_BAD_FORMAT, "%s: ends within image %zu, or is damaged", path, i);
    }
    return e;
}

static mr_status read_fashion(mr_flow_part part, size_t limit, mr_flow_images *out) {
    const char *given = getenv("MILLRACE_FASHION");
    char path[4096];
    snprintf(path, sizeof path, "%s/t10k-images-idx3-ubyte.gz", given && *given ? given : debian);
    if (access(path, R_OK) != 0)
        return mr_fail(MR_NOT_FOUND,
                       "%s: no Fashion-MNIST there; apt-get install dataset-fashion-mnist, or set "
                       "MILLRACE_FASHION to the folder of its files",
                       path);
    gzFile f = gzopen(path, "rb");
    if (!f)
        return mr_fail(MR_IO_ERROR, "%s: cannot open", path);
    if (part == MR_FLOW_TEST && (!limit || limit > 1000))
        limit = 1000;
    mr_status e = read_idx(f, path, limit, out);
    gzclose(f);
    return e;
}

mr_status mr_flow_images_read(mr_flow_set set, mr_flow_part part, size_t limit, const char *folder,
                              mr_flow_images *out) {
    memset(out, 0, sizeof *out);
    out->set = set;
    char path[4096];
    snprintf(path, sizeof path, "%s/digits.npy", folder);
    mr_status e = set == MR_FLOW_DIGITS ? read_digits(path, part, limit, out)
                                        : read_fashion(part, limit, out);
    if (e != MR_OK)
        mr_flow_images_free(out);
    return e;
}

void mr_flow_images_free(mr_flow_images *i) {
    free(i->pixel);
    free(i->index);
    memset(i, 0, sizeof *i);
}

/* ---- Pixels and numbers -----------------------------------------------------------------------
 */

static uint32_t mix32(uint32_t h) {
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h *= 0x846ca68bu;
    return h ^ h >> 16;
}

double mr_flow_noise(mr_flow_set set, uint32_t index, uint32_t pixel) {
    uint32_t pixels = (uint32_t)(side_of(set) * side_of(set));
    return ((double)(mix32(index * pixels + pixel + 1) >> 16) + 0.5) / 65536.0;
}

size_t mr_flow_pixel_of(const mr_flow *f, size_t token, size_t channel) {
    size_t side = side_of(f->set), p = side / f->grid;
    size_t row = token / f->grid * p + channel / p, column = token % f->grid * p + channel % p;
    return row * side + column;
}

void mr_flow_image_tokens(const mr_flow *f, const mr_flow_images *i, size_t image, float *x) {
    double n = mr_flow_levels(f->set);
    const uint8_t *v = i->pixel + image * i->side * i->side;
    for (size_t t = 0; t < f->tokens; t++)
        for (size_t c = 0; c < f->channels; c++) {
            size_t j = mr_flow_pixel_of(f, t, c);
            double u = mr_flow_noise(f->set, i->index[image], (uint32_t)j);
            x[t * f->channels + c] = (float)(2 * (v[j] + u) / n - 1);
        }
}

void mr_flow_tokens_grey(const mr_flow *f, const float *x, uint8_t *grey) {
    double n = mr_flow_levels(f->set);
    for (size_t t = 0; t < f->tokens; t++)
        for (size_t c = 0; c < f->channels; c++) {
            double v = floor(((double)x[t * f->channels + c] + 1) * n / 2);
            v = v < 0 ? 0 : v > n - 1 ? n - 1 : v;
            grey[mr_flow_pixel_of(f, t, c)] = (uint8_t)(v * 255 / (n - 1) + 0.5);
        }
}

double mr_flow_bpd(mr_flow_set set, const float *z, size_t pixels, double logdet) {
    double squares = 0, n = (double)pixels;
    for (size_t i = 0; i < pixels; i++)
        squares += (double)z[i] * (double)z[i];
    double logp = -0.5 * squares - 0.5 * n * log(2 * M_PI);
    return ((-logp - logdet) / n + log(mr_flow_levels(set) / 2.0)) / M_LN2;
}

static uint64_t split_mix(uint64_t v) {
    v += 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

void mr_flow_normals(uint32_t seed, size_t count, double temperature, float *z) {
    for (size_t i = 0; i < count; i++) {
        uint64_t r = split_mix(split_mix(seed) + i);
        double a = ((double)(r >> 32) + 0.5) / 4294967296.0;
        double b = ((double)(uint32_t)r + 0.5) / 4294967296.0;
        z[i] = (float)(temperature * sqrt(-2 * log(a)) * cos(2 * M_PI * b));
    }
}
