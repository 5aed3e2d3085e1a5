/* SPDX-License-Identifier: Apache-2.0 */
#include "models/golden/pnm_walk.h"

#include "models/golden/pnm_internal.h"

/* What became of a group's turn. */
enum { STEPPED, WAITS, FINISHED, FAILED };

const char *mr_pnm_error_name(unsigned error) {
    static const char *const texts[] = {"none",
                                        "unknown descriptor type",
                                        "a field out of its range",
                                        "a memory read failed",
                                        "a memory write failed",
                                        "a semaphore went too high"};
    return error < sizeof texts / sizeof texts[0] ? texts[error] : "unknown";
}

uint64_t mr_pnm_walk_address(const mr_pnm_walk *w, unsigned group, const uint8_t *d) {
    /* LOAD, STORE and WLOAD have the same layout */
    return FIELD(d, LOAD_ADDR) + (uint64_t)w->group[group].iteration * FIELD(d, LOAD_STEP);
}

/* Whether every group of the barrier stands at the same one; then all go on. */
static bool barrier(mr_pnm_walk *w, unsigned index, const uint8_t *d) {
    uint32_t groups = (uint32_t)FIELD(d, BARRIER_GROUPS);
    w->group[index].barrier = groups;
    for (unsigned i = 0; i < MR_PNM_GROUPS; i++)
        if (groups >> i & 1 && w->group[i].barrier != groups)
            return false;
    for (unsigned i = 0; i < MR_PNM_GROUPS; i++)
        if (groups >> i & 1) {
            w->group[i].barrier = 0;
            w->group[i].pc++;
            w->passed(w->context, i, d);
        }
    return true;
}

static int control(mr_pnm_walk *w, unsigned index, const uint8_t *d) {
    if (d[0] == MR_PNM_DESC_BARRIER)
        return barrier(w, index, d) ? STEPPED : WAITS;
    if (d[0] == MR_PNM_DESC_WAIT) {
        uint32_t *semaphore = &w->group[index].semaphore[FIELD(d, WAIT_SEM)];
        uint32_t count = (uint32_t)FIELD(d, WAIT_COUNT);
        if (*semaphore < count)
            return WAITS;
        *semaphore -= count;
        w->group[index].pc++;
    } else if (w->group[index].iteration + 1 < FIELD(d, LOOP_COUNT)) {
        w->group[index].iteration++;
        w->group[index].pc = (uint32_t)FIELD(d, LOOP_TARGET);
    } else {
        w->group[index].iteration = 0;
        w->group[index].pc++;
    }
    w->passed(w->context, index, d);
    return STEPPED;
}

static unsigned signal_receiver(mr_pnm_walk *w, const uint8_t *d) {
    uint32_t *semaphore = &w->group[FIELD(d, SEND_GROUP)].semaphore[FIELD(d, SEND_SEM)];
    if (*semaphore == 65535)
        return MR_PNM_ERR_SEMAPHORE;
    ++*semaphore;
    return MR_PNM_ERR_OK;
}

static int step(mr_pnm_walk *w, unsigned index) {
    if (w->group[index].pc >= w->group[index].count)
        return FINISHED;
    const uint8_t *d = w->fetch(w->context, index, w->group[index].pc);
    unsigned error = MR_PNM_ERR_OK;
    if (!d)
        error = MR_PNM_ERR_READ;
    else if (d[0] < MR_PNM_DESC_LOAD || d[0] > MR_PNM_DESC_LOOP)
        error = MR_PNM_ERR_TYPE;
    else if (!pnm_fields_ok(d) ||
             (d[0] == MR_PNM_DESC_BARRIER && !(FIELD(d, BARRIER_GROUPS) >> index & 1)))
        error = MR_PNM_ERR_FIELD;
    if (!error && d[0] >= MR_PNM_DESC_WAIT) {
        int what = control(w, index, d);
        w->result->descriptors += what == STEPPED;
        return what;
    }
    if (!error)
        error = w->execute(w->context, index, d);
    if (!error && d[0] == MR_PNM_DESC_SEND)
        error = signal_receiver(w, d);
    if (error) {
        w->result->outcome = MR_PNM_FAILED;
        w->result->error = error;
        w->result->group = index;
        w->result->index = w->group[index].pc;
        return FAILED;
    }
    w->result->descriptors++;
    w->group[index].pc++;
    return STEPPED;
}

mr_pnm_outcome mr_pnm_walk_run(mr_pnm_walk *w, const uint32_t counts[MR_PNM_GROUPS],
                               mr_pnm_result *result) {
    *result = (mr_pnm_result){0};
    w->result = result;
    memset(w->group, 0, sizeof w->group);
    for (unsigned i = 0; i < MR_PNM_GROUPS; i++)
        w->group[i].count = counts[i];
    for (;;) {
        bool moved = false, waits = false;
        for (unsigned i = 0; i < MR_PNM_GROUPS; i++) {
            int what;
            while ((what = step(w, i)) == STEPPED)
                moved = true;
            if (what == FAILED)
                return result->outcome;
            if (what == WAITS && !waits) {
                waits = true;
                result->group = i;
                result->index = w->group[i].pc;
            }
        }
        if (!waits) {
            result->group = result->index = 0;
            return result->outcome;
        }
        if (!moved)
            return result->outcome = MR_PNM_DEADLOCK;
    }
}
