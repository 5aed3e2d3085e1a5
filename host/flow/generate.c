/* SPDX-License-Identifier: Apache-2.0 */
#include "host/flow/generate.h"

#include <string.h>

#include "host/core/error.h"
#include "host/units/generator.h"

/* Whether the codes are the matrix that is there, bit for bit. */
static bool same(const float *w, const uint16_t *codes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits; /* of a float that has a bf16 value */
        memcpy(&bits, &w[i], sizeof bits);
        if (bits != (uint32_t)codes[i] << 16)
            return false;
    }
    return true;
}

static mr_status make(mr_flow *f, mr_generator *g, mr_generator_slot *slot, size_t b, size_t l,
                      mr_flow_generated *made) {
    mr_flow_layer *y = &f->block[b].layers[l];
    mr_generator_seed *seed;
    mr_status e = mr_generator_seed_create(g, y->seed, &seed);
    if (e != MR_OK)
        return e;
    size_t count = f->ff * f->width;
    const void *codes;
    mr_counters c;
    e = mr_generator_tile(seed, &y->seed->job, slot);
    if (e == MR_OK)
        e = mr_generator_wait(slot, &codes, &c);
    if (e == MR_OK) {
        made->wrong += !same(y->w1, codes, count);
        made->hardware |= c.hardware;
        made->cycles += c.cycles;
        made->weights += count;
        made->seed_bytes += y->seed->image_bytes;
        made->jobs++;
        mr_flow_set_w1(f, b, l, codes);
    }
    mr_generator_seed_destroy(seed);
    return e;
}

mr_status mr_flow_generate(mr_flow *f, const char *uri, const volatile sig_atomic_t *stop,
                           uint64_t timeout_ns, mr_flow_generated *made) {
    memset(made, 0, sizeof *made);
    if (!f->seeds)
        return mr_fail(MR_UNSUPPORTED, "%s: no matrix of this flow is a seed", f->path);
    mr_generator *g = NULL;
    mr_generator_slot *slot = NULL;
    mr_status e = mr_generator_open(uri, stop, timeout_ns, &g);
    if (e == MR_OK)
        e = mr_generator_slot_create(g, f->ff * f->width * sizeof(uint16_t), 0, &slot);
    for (size_t b = 0; b < f->blocks && e == MR_OK; b++)
        for (size_t l = 0; l < f->layers && e == MR_OK; l++)
            if (f->block[b].layers[l].seed)
                e = make(f, g, slot, b, l, made);
    if (slot)
        mr_generator_slot_destroy(slot);
    if (g)
        mr_generator_close(g);
    return e;
}
