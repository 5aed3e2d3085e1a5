/* SPDX-License-Identifier: Apache-2.0 */
/* The images that flows are trained on: pixels, dequantisation, bits per dimension, pictures. */
#ifndef HOST_FLOW_DATA_H
#define HOST_FLOW_DATA_H

#include "host/flow/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { MR_FLOW_TEST, MR_FLOW_ALL } mr_flow_part;

/* Pixels as stored, and each image's number in its file, which fixes its noise. */
typedef struct mr_flow_images {
    mr_flow_set set;
    size_t count, side;
    uint8_t *pixel;  /* [count][side * side], row-major */
    uint32_t *index; /* [count] */
} mr_flow_images;

/*
 * Reads a part: test = the 359 held-out digits or the first 1,000 held-out fashion images, all =
 * 1,797 digits or 10,000 held-out fashion images; at most `limit` of them (0: all). Digits are
 * FOLDER/digits.npy. Fashion images are t10k-images-idx3-ubyte.gz in the folder $MILLRACE_FASHION,
 * or where Debian's package dataset-fashion-mnist puts it; MR_NOT_FOUND says how to get it.
 */
mr_status mr_flow_images_read(mr_flow_set set, mr_flow_part part, size_t limit, const char *folder,
                              mr_flow_images *out);
void mr_flow_images_free(mr_flow_images *i);

/* Values of a pixel: 17 or 256. */
unsigned mr_flow_levels(mr_flow_set set);

/* The noise in (0, 1) of pixel `pixel` of image `index`. */
double mr_flow_noise(mr_flow_set set, uint32_t index, uint32_t pixel);

/* Pixel of token t, channel c, in an image's row-major order. */
size_t mr_flow_pixel_of(const mr_flow *f, size_t token, size_t channel);

/* x[token][channel] of image i, dequantised: 2 (v + u) / levels - 1. */
void mr_flow_image_tokens(const mr_flow *f, const mr_flow_images *i, size_t image, float *x);

/* Back: x[token][channel] to grey values 0..255 in row-major order; clamped. x must be finite. */
void mr_flow_tokens_grey(const mr_flow *f, const float *x, uint8_t *grey);

/* Bits per dimension of one image from its z[pixels] and log-determinant (nats). */
double mr_flow_bpd(mr_flow_set set, const float *z, size_t pixels, double logdet);

/*
 * Standard normal numbers times a temperature, for the samples of a seed. Number i is a function of
 * seed and i alone: SplitMix64(SplitMix64(seed) + i), whose halves give a Box-Muller cosine. Every
 * seed is a sequence of its own, 0 too.
 */
void mr_flow_normals(uint32_t seed, size_t count, double temperature, float *z);

#ifdef __cplusplus
}
#endif
#endif
