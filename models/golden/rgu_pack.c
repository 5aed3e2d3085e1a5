/* Seeds as stored in a file, and the seed image every generator reads. */
#include <math.h>
#include <string.h>

#include "models/golden/rgu.h"

static size_t chunks(size_t rows, int n) {
    size_t d = (size_t)1 << n;
    return rows / d + (rows % d != 0);
}

size_t mr_seed_chunks_out(const mr_seed *s) { return chunks(s->d_out, s->n); }
size_t mr_seed_chunks_in(const mr_seed *s) { return chunks(s->d_in, s->n); }

const char *mr_seed_check(const mr_seed *s) {
    if (!mr_rgu_n_supported(s->n))
        return "n: supported values are 8 and 10";
    if (s->terms < 1 || s->terms > MR_RGU_MAX_TERMS)
        return "terms: must be 1 to 32";
    if (!s->d_out || !s->d_in)
        return "shape: rows and columns must be at least 1";
    size_t co = mr_seed_chunks_out(s), ci = mr_seed_chunks_in(s);
    if (co > 65535 || ci > 65535)
        return "shape: more than 65535 chunks a side";
    for (size_t i = 0; i < (size_t)s->terms * co * ci; i++) {
        if (!isfinite(s->gain[i]))
            return "gain: not finite";
        if (s->odd[i] > 1)
            return "odd: must be 0 or 1";
    }
    for (size_t r = 0; s->row_scale && r < s->d_out; r++)
        if (!isfinite(s->row_scale[r]))
            return "row_scale: not finite";
    return NULL;
}

size_t mr_rgu_record_bytes(int n) {
    return (size_t)64 * ((8 + 4 * (size_t)mr_rgu_planes(n) + 63) / 64);
}

size_t mr_rgu_image_bytes(const mr_seed *s) {
    return mr_seed_chunks_out(s) * mr_seed_chunks_in(s) * (size_t)s->terms *
           mr_rgu_record_bytes(s->n);
}

static void put_u32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint32_t get_u32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void mr_rgu_pack(const mr_seed *s, void *image) {
    size_t co = mr_seed_chunks_out(s), ci = mr_seed_chunks_in(s);
    size_t planes = (size_t)mr_rgu_planes(s->n), bytes = mr_rgu_record_bytes(s->n);
    unsigned char *p = image;
    memset(image, 0, mr_rgu_image_bytes(s));
    for (size_t chunk = 0; chunk < co * ci; chunk++) {
        float largest = 0;
        int e = 0;
        for (size_t t = 0; t < (size_t)s->terms; t++)
            largest = fmaxf(largest, fabsf(s->gain[t * co * ci + chunk]));
        if (largest > 0) { /* smallest e with 2^e >= largest */
            if (frexpf(largest, &e) == 0.5f)
                e--;
        }
        for (size_t t = 0; t < (size_t)s->terms; t++, p += bytes) {
            size_t at = t * co * ci + chunk;
            double g = nearbyint(ldexp(fabs((double)s->gain[at]), MR_RGU_X_FRAC - e));
            put_u32(p, (uint32_t)g | (uint32_t)(s->odd[at] != 0) << 30 |
                           (uint32_t)(s->gain[at] < 0) << 31);
            put_u32(p + 4, (uint32_t)e);
            for (size_t a = 0; a < 2 * planes; a++) {
                uint16_t v = (uint16_t)s->angles[at * 2 * planes + a];
                p[8 + 2 * a] = (unsigned char)v;
                p[9 + 2 * a] = (unsigned char)(v >> 8);
            }
        }
    }
}

void mr_rgu_unpack(const void *record, int n, mr_rgu_record *out) {
    const unsigned char *p = record;
    uint32_t w0 = get_u32(p);
    out->g = (int32_t)(w0 & 0x7FFFFFu);
    out->odd = (w0 >> 30) & 1;
    out->negative = (int)(w0 >> 31);
    out->e = (int32_t)get_u32(p + 4);
    /* records are little endian and 64-byte aligned, as is every machine we run on */
    out->r = (const int16_t *)(const void *)(p + 8);
    out->s = out->r + mr_rgu_planes(n);
}
