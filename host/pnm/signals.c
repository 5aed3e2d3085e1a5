/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays the lists through with nothing but their waits, barriers, signals and loops, so that a
 * program that would stand still for ever is refused with the place where it does.
 */
#include <stdlib.h>

#include "host/pnm/internal.h"

typedef struct player {
    uint32_t at, iteration; /* index into the stops */
    uint32_t semaphore[MR_PNM_SEMAPHORES];
    uint32_t barrier;     /* 0: at none */
    const uint32_t *stop; /* descriptors that matter, by index in the list */
    uint32_t stops;
} player;

static const uint8_t *current(mr_pnm_builder *b, const player *p, unsigned g) {
    return p->at < p->stops ? b->list[g].desc[p->stop[p->at]] : NULL;
}

/* The first stop at or after a descriptor. */
static uint32_t stop_at(const player *p, uint32_t index) {
    uint32_t low = 0, high = p->stops;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (p->stop[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One step of a group; false: it has to wait, or something is wrong. */
static bool step(mr_pnm_builder *b, player *players, unsigned g) {
    player *p = &players[g];
    const uint8_t *d = current(b, p, g);
    if (!d)
        return false;
    if (d[0] == MR_PNM_DESC_SEND) {
        unsigned to = (unsigned)PNM_GET(d, SEND_GROUP), sem = (unsigned)PNM_GET(d, SEND_SEM);
        if (++players[to].semaphore[sem] > 65535) {
            mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                          "pnm: group %u, descriptor %u (SEND): semaphore %u of group %u goes "
                          "above 65,535",
                          g, p->stop[p->at], sem, to);
            return false;
        }
    } else if (d[0] == MR_PNM_DESC_WAIT) {
        uint32_t *have = &p->semaphore[PNM_GET(d, WAIT_SEM)];
        uint32_t want = (uint32_t)PNM_GET(d, WAIT_COUNT);
        if (*have < want)
            return false;
        *have -= want;
    } else if (d[0] == MR_PNM_DESC_BARRIER) {
        uint32_t groups = (uint32_t)PNM_GET(d, BARRIER_GROUPS);
        p->barrier = groups;
        for (unsigned i = 0; i < b->groups; i++)
            if (groups >> i & 1 && players[i].barrier != groups)
                return false;
        for (unsigned i = 0; i < b->groups; i++)
            if (groups >> i & 1) {
                players[i].barrier = 0;
                players[i].at += i != g;
            }
    } else if (p->iteration + 1 < PNM_GET(d, LOOP_COUNT)) {
        p->iteration++;
        p->at = stop_at(p, (uint32_t)PNM_GET(d, LOOP_TARGET));
        return true;
    } else {
        p->iteration = 0;
    }
    p->at++;
    return true;
}

static mr_status play(mr_pnm_builder *b, player *players) {
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned g = 0; g < b->groups; g++)
            while (step(b, players, g))
                moved = true;
    }
    for (unsigned g = 0; b->status == MR_OK && g < b->groups; g++) {
        const uint8_t *d = current(b, &players[g], g);
        if (d && d[0] == MR_PNM_DESC_WAIT)
            mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                          "pnm: group %u, descriptor %u (WAIT): waits for ever, semaphore %u is at "
                          "%u of %u",
                          g, players[g].stop[players[g].at], (unsigned)PNM_GET(d, WAIT_SEM),
                          players[g].semaphore[PNM_GET(d, WAIT_SEM)],
                          (unsigned)PNM_GET(d, WAIT_COUNT));
        else if (d)
            mr_pnm_b_fail(b, MR_INVALID_ARGUMENT,
                          "pnm: group %u, descriptor %u (BARRIER): waits for ever, not every group "
                          "of 0x%x comes to it",
                          g, players[g].stop[players[g].at], (unsigned)PNM_GET(d, BARRIER_GROUPS));
    }
    return mr_pnm_builder_status(b);
}

mr_status pnm_check_signals(mr_pnm_builder *b) {
    player players[MR_PNM_GROUPS] = {0};
    size_t count = 1;
    for (unsigned g = 0; g < b->groups; g++)
        count += b->list[g].count;
    uint32_t *stops = malloc(count * sizeof *stops), *next = stops;
    if (!stops)
        return mr_pnm_b_fail(b, MR_OUT_OF_MEMORY, "pnm: no memory to check the program");
    for (unsigned g = 0; g < b->groups; g++) {
        const pnm_list *list = &b->list[g];
        players[g].stop = next;
        for (uint32_t i = 0; i < list->count; i++)
            if (list->desc[i][0] >= MR_PNM_DESC_SEND)
                *next++ = i;
        players[g].stops = (uint32_t)(next - players[g].stop);
    }
    mr_status status = play(b, players);
    free(stops);
    return status;
}
