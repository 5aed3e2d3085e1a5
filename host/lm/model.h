/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language model as its files describe it (models/zoo/FORMAT.md): the network's shape, and for
 * every matrix where it comes from. Nothing is computed here; lm.h runs it.
 *
 * An expert's projection is a chain of factors, applied one after the other: one dense matrix, one
 * matrix of codewords, one generated matrix, or several of them (low rank: two; a shared base
 * between generated rotations: up to three).
 */
#ifndef HOST_LM_MODEL_H
#define HOST_LM_MODEL_H

#include <millrace/millrace.h>

#include "host/io/safetensors.h"
#include "host/units/rgu_seed.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_LM_MAX_FACTORS = 4 };

typedef struct mr_lm_config {
    size_t d_model, n_layers, n_heads, n_kv_heads, head_dim, d_ff, n_experts, top_k, vocab, context;
    double rope_theta, norm_eps;
} mr_lm_config;

typedef enum { MR_LM_BF16, MR_LM_CODES, MR_LM_SEED } mr_lm_factor_kind;

typedef struct mr_lm_factor {
    mr_lm_factor_kind kind;
    size_t rows, cols;
    const mr_st_tensor *matrix;         /* BF16 */
    const mr_st_tensor *codes, *scales; /* CODES */
    size_t group, bits;                 /* CODES: columns that share a scale; 1 or 2 */
    mr_projection *seed;                /* SEED */
    size_t id; /* number of the factor in the model: shared factors are one */
} mr_lm_factor;

typedef struct mr_lm_chain {
    size_t count;
    const mr_lm_factor *factor[MR_LM_MAX_FACTORS]; /* the first is applied first */
} mr_lm_chain;

enum { MR_LM_W1, MR_LM_W3, MR_LM_W2, MR_LM_PROJECTIONS };

typedef struct mr_lm_expert {
    mr_lm_chain w[MR_LM_PROJECTIONS];
} mr_lm_expert;

typedef struct mr_lm_layer {
    const mr_st_tensor *attn_norm, *ffn_norm; /* F32 */
    const mr_lm_factor *wq, *wk, *wv, *wo,
        *router; /* router NULL: all experts always on, weight 1 */
    bool replaced;
    size_t n_experts; /* 0: the layer has no feed-forward part */
    size_t d_ff;
    mr_lm_expert *experts;
} mr_lm_layer;

typedef struct mr_lm_model {
    mr_lm_config config;
    char *path;
    char kind[16]; /* "base", or the variant's kind */
    mr_safetensors *base, *variant;
    const mr_st_tensor *embed, *norm;
    const mr_lm_factor *head;
    mr_lm_layer *layers;
    mr_lm_factor **factors; /* all of them, by id */
    size_t num_factors;
    size_t num_seeds;      /* factors that are generated */
    size_t replaced;       /* layers */
    size_t stored_bytes;   /* of the replaced layers' tensors */
    size_t stored_numbers; /* trained numbers in them: a codeword, an angle, a scale each counts */
} mr_lm_model;

/*
 * Opens a base model or a variant (whose base is then opened and its SHA-256 compared). What is
 * missing, superfluous, inconsistent or of a newer version is refused with the file, the tensor and
 * the reason.
 */
mr_status mr_lm_model_open(const char *path, mr_lm_model **out);
void mr_lm_model_close(mr_lm_model *m);

#ifdef __cplusplus
}
#endif
#endif
