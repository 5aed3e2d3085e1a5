/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/machine.h"

static double width(const mr_machine *m) { return (double)(m->query_heads * m->head_dim); }

static uint64_t roofline(const mr_machine *m, double flops, double bytes) {
    double a = flops / m->flops_per_s, b = bytes / m->bytes_per_s;
    return (uint64_t)((a > b ? a : b) * 1e9 / (double)m->degree + 0.5);
}

uint64_t mr_machine_kv_bytes(const mr_machine *m) {
    return 2 * m->layers * m->kv_heads * m->head_dim * m->value_bytes;
}

uint64_t mr_machine_step_ns(const mr_machine *m, uint64_t tokens, uint64_t sampled,
                            uint64_t attention_ns) {
    if (!tokens)
        return attention_ns;
    uint64_t ns = m->layers * m->layer_ns[tokens] + m->embed_ns[tokens] + m->head_ns[sampled];
    if (m->degree == 1)
        return ns + attention_ns;
    /* halves of the batch take turns at computing and reducing; the latency stays */
    double compute = (double)ns / (double)m->degree + (double)attention_ns;
    double reduce = m->reduce_ns_a_token * (double)tokens;
    return (uint64_t)((compute > reduce ? compute : reduce) + m->reduce_latency_ns + 0.5);
}

uint64_t mr_machine_prompt_attention_ns(const mr_machine *m, uint64_t queries, uint64_t context,
                                        uint64_t members) {
    double q = (double)queries, c = (double)context, n = (double)members;
    return roofline(m, 4 * width(m) * (double)m->layers * q * (c + q / 2) / n,
                    (c + q) * (double)mr_machine_kv_bytes(m));
}

uint64_t mr_machine_cross_attention_ns(const mr_machine *m, uint64_t queries, uint64_t keys) {
    return roofline(m, 4 * width(m) * (double)m->layers * (double)queries * (double)keys,
                    (double)keys * (double)mr_machine_kv_bytes(m));
}

uint64_t mr_machine_decode_attention_ns(const mr_machine *m, uint64_t keys) {
    return roofline(m, 0, (double)keys * (double)mr_machine_kv_bytes(m));
}

uint64_t mr_machine_best_step(const mr_machine *m) {
    uint64_t best = 1;
    for (uint64_t t = 2; t <= m->step_tokens; t++)
        if ((uint64_t)m->layer_ns[t] * best < (uint64_t)m->layer_ns[best] * t)
            best = t;
    return best;
}

uint64_t mr_machine_prompt_ns(const mr_machine *m, uint64_t step, uint64_t tokens, uint64_t context,
                              uint64_t shipped, uint64_t members) {
    uint64_t whole = (tokens - 1) / (step * members), rest = tokens - whole * step * members;
    uint64_t attention = mr_machine_prompt_attention_ns(m, tokens, context - shipped, members);
    uint64_t part = (uint64_t)((double)attention * (double)(step * members) / (double)tokens);
    return whole * mr_machine_step_ns(m, step, 0, part) +
           mr_machine_step_ns(m, (rest + members - 1) / members, 1, attention - whole * part);
}
