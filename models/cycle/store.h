/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which node holds which block: copies, pins, and least-recently-used eviction, by counts alone.
 *
 * A node has `capacity` blocks. Each is free, reserved (in use, with no block's name yet, or with a
 * request's own output), or a copy of a named block. A copy with pins stays; one without may be
 * evicted when room is wanted. Never more than capacity is held: every call keeps that, or fails.
 */
#ifndef MODELS_CYCLE_STORE_H
#define MODELS_CYCLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_store mr_store;

/* `blocks` names 0 .. blocks-1. replicas_first: evict copies of blocks that have another one before
   blocks that have none. NULL: no memory. */
mr_store *mr_store_create(size_t nodes, size_t blocks, uint64_t capacity, bool replicas_first);
void mr_store_destroy(mr_store *s);

/* The nodes with a copy. */
uint64_t mr_store_where(const mr_store *s, uint32_t block);

/* How many requests have named the block: counted by the caller's mr_store_use. */
uint32_t mr_store_uses(const mr_store *s, uint32_t block);
void mr_store_use(mr_store *s, uint32_t block);

uint64_t mr_store_held(const mr_store *s, size_t node);      /* copies and reserved */
uint64_t mr_store_pinned(const mr_store *s, size_t node);    /* reserved and copies with pins */
uint64_t mr_store_evictable(const mr_store *s, size_t node); /* copies without pins */
uint64_t mr_store_peak(const mr_store *s, size_t node);      /* most ever held */
uint64_t mr_store_evictions(const mr_store *s);

/* Reserves `count` blocks, evicting as needed. False, with nothing changed: too many are pinned. */
bool mr_store_reserve(mr_store *s, size_t node, uint64_t count);

/* One block in room that no last copy of anything needs: free, or another replica's. */
bool mr_store_reserve_spare(mr_store *s, size_t node);

void mr_store_release(mr_store *s, size_t node, uint64_t count);

/*
 * One reserved block of the node becomes a copy of `block`, with one pin (pin) or none. Where the
 * node has a copy already, that one is pinned instead and the reservation is released.
 */
void mr_store_fill(mr_store *s, size_t node, uint32_t block, bool pin);

/* A copy must be there. Unpinning makes it the most recently used. */
void mr_store_pin(mr_store *s, size_t node, uint32_t block);
void mr_store_unpin(mr_store *s, size_t node, uint32_t block);

/* Gives up a copy without pins; one with pins stays. */
void mr_store_drop(mr_store *s, size_t node, uint32_t block);

#ifdef __cplusplus
}
#endif
#endif
