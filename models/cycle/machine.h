/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long one node of a serving cluster computes: measured layer times for everything but
 * attention, a roofline for attention. Nanoseconds.
 */
#ifndef MODELS_CYCLE_MACHINE_H
#define MODELS_CYCLE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_MACHINE_TOKENS = 2048 }; /* the measured tables end here */

typedef struct {
    uint64_t layers, query_heads, kv_heads, head_dim, hidden, value_bytes;
    uint64_t step_tokens; /* tokens a step computes at most, <= MR_MACHINE_TOKENS */
    double flops_per_s;   /* of attention: what the roofline allows, shares included */
    double bytes_per_s;
    uint64_t degree; /* tensor parallel: so many GPUs behave as one; 1 otherwise */
    /* Tensor parallel only: what one token costs the links of each GPU in the two all-reduces of
       all layers, and the latency of these for a step. */
    double reduce_ns_a_token, reduce_latency_ns;
    /* Index: tokens of a step. One layer without attention; once a step; once a step for the
       sequences that give a token (final norm and head). Entry 0 is 0. */
    uint32_t layer_ns[MR_MACHINE_TOKENS + 1];
    uint32_t embed_ns[MR_MACHINE_TOKENS + 1];
    uint32_t head_ns[MR_MACHINE_TOKENS + 1];
} mr_machine;

uint64_t mr_machine_kv_bytes(const mr_machine *m); /* a token */

/* A step of `tokens` tokens, of which `sampled` give a next token, and whose attention takes
   `attention_ns`: that hides all-reduces as well as any other computing does. */
uint64_t mr_machine_step_ns(const mr_machine *m, uint64_t tokens, uint64_t sampled,
                            uint64_t attention_ns);

/* The tokens of a step, up to step_tokens, at which the measured time a token is least. */
uint64_t mr_machine_best_step(const mr_machine *m);

/*
 * Prompt attention of `queries` tokens over `context` earlier ones and, causally, themselves, on
 * `members` nodes in equal shares: 4 heads dim FLOP a query-key pair; bytes of KV read once.
 */
uint64_t mr_machine_prompt_attention_ns(const mr_machine *m, uint64_t queries, uint64_t context,
                                        uint64_t members);

/* The same queries over `keys` tokens of KV, none of them masked. */
uint64_t mr_machine_cross_attention_ns(const mr_machine *m, uint64_t queries, uint64_t keys);

/* Decode attention reads the KV of `keys` tokens once. */
uint64_t mr_machine_decode_attention_ns(const mr_machine *m, uint64_t keys);

/* A whole prompt alone: steps of `step` tokens on each of `members` nodes, attention included;
   `shipped` tokens of the context are attended to elsewhere. */
uint64_t mr_machine_prompt_ns(const mr_machine *m, uint64_t step, uint64_t tokens, uint64_t context,
                              uint64_t shipped, uint64_t members);

#ifdef __cplusplus
}
#endif
#endif
