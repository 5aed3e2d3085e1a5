/* SPDX-License-Identifier: Apache-2.0 */
#include "drivers/sim/pnm.h"

#include <stddef.h>

#include "millrace/pnm_regs.h"

enum { PROG_STRIDE = MR_PNM_PROG1_ADDR - MR_PNM_PROG0_ADDR, GROUPS = MR_PNM_GROUPS };
enum { GROUP_STRIDE = MR_PNM_G1_MV_CYCLES - MR_PNM_G0_MV_CYCLES, GROUP_COUNTERS = 10 };
enum { UNIT_COUNTERS = (MR_PNM_PRODUCTS - MR_PNM_CYCLES) / 8 + 1 };
/* Where the answers stand in the reply. */
enum { ERROR_CODE, ERROR_GROUP, ERROR_INDEX, STATUS, PARAMS, COUNTERS };

_Static_assert(GROUP_COUNTERS * 8 == MR_PNM_G0_DRAM_REF + 8 - MR_PNM_G0_MV_CYCLES,
               "the counters of a group follow each other");
_Static_assert(COUNTERS + 2 * (UNIT_COUNTERS + GROUPS * GROUP_COUNTERS) <= SIM_MAX_READS,
               "all answers fit a reply");

static void set32(sim_job *r, uint32_t offset, uint32_t value) {
    r->writes[r->num_writes].offset = offset;
    r->writes[r->num_writes++].value = value;
}

static void read64(sim_job *r, uint32_t offset) {
    r->reads[r->num_reads++] = offset;
    r->reads[r->num_reads++] = offset + 4;
}

void sim_pnm_request(const mr_drv_pnm *job, uint64_t base, sim_job *r) {
    static const uint32_t words[] = {MR_PNM_ERROR, MR_PNM_ERROR_GROUP, MR_PNM_ERROR_INDEX,
                                     MR_PNM_STATUS, MR_PNM_PARAMS};
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint64_t addr = job->job.list[g].count ? base + job->job.list[g].offset : 0;
        set32(r, MR_PNM_PROG0_ADDR + g * PROG_STRIDE, (uint32_t)addr);
        set32(r, MR_PNM_PROG0_ADDR + g * PROG_STRIDE + 4, (uint32_t)(addr >> 32));
        set32(r, MR_PNM_PROG0_COUNT + g * PROG_STRIDE, job->job.list[g].count);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        r->reads[r->num_reads++] = words[i];
    for (uint32_t i = 0; i < UNIT_COUNTERS; i++)
        read64(r, MR_PNM_CYCLES + 8 * i);
    for (uint32_t g = 0; g < GROUPS; g++)
        for (uint32_t i = 0; i < GROUP_COUNTERS; i++)
            read64(r, MR_PNM_G0_MV_CYCLES + g * GROUP_STRIDE + 8 * i);
}

static const char *error_name(uint32_t code) {
    static const char *const texts[] = {"none",
                                        "unknown descriptor type",
                                        "a field out of its range",
                                        "a memory read failed",
                                        "a memory write failed",
                                        "a semaphore went too high"};
    return code < sizeof texts / sizeof texts[0] ? texts[code] : "unknown";
}

/* The unit's counters in the order of its registers. */
static uint64_t counter(const sim_reply *reply, size_t i) {
    size_t at = COUNTERS + 2 * i;
    return (uint64_t)reply->values[at + 1] << 32 | reply->values[at];
}

mr_status sim_pnm_result(const mr_drv_pnm *job, const sim_reply *reply, mr_counters *counters,
                         mr_pnm_counters *pnm, mr_drv_error *error) {
    uint32_t params = reply->values[PARAMS];
    uint32_t gen = (params & MR_PNM_PARAMS_GEN_MASK) >> MR_PNM_PARAMS_GEN_LSB;
    uint32_t cut = (params & MR_PNM_PARAMS_CUT_MASK) >> MR_PNM_PARAMS_CUT_LSB;
    if (job->job.gen != gen || job->job.cut != cut)
        return mr_drv_fail(error, MR_UNSUPPORTED,
                           "the unit's multipliers are of generator %u with cut %u, the job's %u "
                           "with %u",
                           gen, cut, job->job.gen, job->job.cut);
    uint32_t code = reply->values[ERROR_CODE];
    if (code)
        return mr_drv_fail(error, MR_DEVICE_ERROR,
                           "the unit gave up the job: error %u (%s), group %u, descriptor %u", code,
                           error_name(code), reply->values[ERROR_GROUP],
                           reply->values[ERROR_INDEX]);
    pnm->hardware = counters->hardware = true;
    pnm->status = reply->values[STATUS];
    counters->cycles = pnm->cycles = counter(reply, 0);
    counters->busy = pnm->busy = counter(reply, 1);
    counters->stall_in = pnm->stall_in = counter(reply, 2);
    counters->stall_out = pnm->stall_out = counter(reply, 3);
    counters->items_in = pnm->items_in = counter(reply, 4);
    counters->items_out = pnm->items_out = counter(reply, 5);
    counters->mults_busy = pnm->products = counter(reply, 6);
    for (size_t g = 0; g < GROUPS; g++) {
        size_t first = UNIT_COUNTERS + g * GROUP_COUNTERS;
        uint64_t *out[GROUP_COUNTERS] = {&pnm->group[g].mv_cycles,   &pnm->group[g].stream_cycles,
                                         &pnm->group[g].vec_cycles,  &pnm->group[g].vec_elements,
                                         &pnm->group[g].wait_cycles, &pnm->group[g].dram_act,
                                         &pnm->group[g].dram_rd,     &pnm->group[g].dram_wr,
                                         &pnm->group[g].dram_pre,    &pnm->group[g].dram_ref};
        for (size_t i = 0; i < GROUP_COUNTERS; i++)
            *out[i] = counter(reply, first + i);
    }
    return MR_OK;
}
