/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the simulated near-memory unit behind sim/sim.h: registers, memory and interrupt
 * as the board wrapper has them, the job done by the golden model. It tests the way from a program
 * to the unit where no Verilator model is needed. A job whose lists wait for each other never
 * raises the interrupt; option fault=crash dies in a job, until a reset or a new process
 * (fault_file=F: the file is there).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "millrace/pnm_regs.h"
#include "models/golden/pnm.h"
#include "sim/sim.h"

enum { REG_BYTES = 0x400, JOB_CYCLES = 5000, BASE = 0x10000, BYTES = 64 << 20 };

struct mr_sim {
    uint32_t regs[REG_BYTES / 4];
    mr_pnm_chip *chip;
    uint8_t *data; /* one memory, given out from the front */
    uint64_t used;
    uint64_t left; /* cycles until the job in progress is done; 0: idle */
    bool stands_still;
    char fault_file[256];
    char text[128];
};

static int fail(mr_sim *s, int code, const char *text) {
    snprintf(s->text, sizeof s->text, "%s", text);
    return code;
}

static void reset_registers(mr_sim *s) {
    memset(s->regs, 0, sizeof s->regs);
    s->regs[MR_PNM_PARAMS / 4] = MR_PNM_GROUPS | (uint32_t)MR_PNM_CENTRED << MR_PNM_PARAMS_GEN_LSB;
    s->left = 0;
    s->stands_still = false;
}

static int fake_open(const char *options, mr_sim **out, char *err, size_t err_size) {
    bool faults = options && !strncmp(options, "fault_file=", 11);
    if (options && *options && !faults) {
        snprintf(err, err_size, "unknown option '%.40s'", options);
        return MR_SIM_EINVAL;
    }
    mr_sim *s = calloc(1, sizeof *s);
    if (!s)
        return MR_SIM_ENOMEM;
    s->chip = mr_pnm_chip_create(MR_PNM_CENTRED, 0, false);
    s->data = calloc(1, BYTES);
    if (faults)
        snprintf(s->fault_file, sizeof s->fault_file, "%s", options + 11);
    reset_registers(s);
    *out = s;
    return s->chip && s->data ? MR_SIM_OK : MR_SIM_ENOMEM;
}

static void fake_close(mr_sim *s) {
    if (!s)
        return;
    mr_pnm_chip_destroy(s->chip);
    free(s->data);
    free(s);
}

static const char *fake_error(const mr_sim *s) { return s->text; }

static int fake_alloc(mr_sim *s, size_t bytes, size_t align, uint64_t *addr) {
    (void)align;
    size_t rounded = (bytes + 4095) / 4096 * 4096;
    if (rounded > BYTES - s->used)
        return fail(s, MR_SIM_ENOMEM, "the device memory is exhausted");
    *addr = BASE + s->used;
    s->used += rounded;
    return MR_SIM_OK;
}

static int fake_free(mr_sim *s, uint64_t addr) {
    (void)s, (void)addr;
    return MR_SIM_OK;
}

static int fake_map(mr_sim *s, uint64_t addr, size_t bytes, void **ptr) {
    if (addr < BASE || addr - BASE > s->used || bytes > s->used - (addr - BASE))
        return fail(s, MR_SIM_ERANGE, "a memory range outside every allocation");
    *ptr = s->data + (addr - BASE);
    return MR_SIM_OK;
}

static int fake_reg_write(mr_sim *s, uint32_t offset, uint32_t value) {
    if (offset >= REG_BYTES || offset % 4)
        return fail(s, MR_SIM_EINVAL, "no such register");
    if (offset == MR_PNM_ISR)
        s->regs[offset / 4] ^= value;
    else if (offset == MR_PNM_CTRL && (value & MR_PNM_CTRL_AP_START_MASK))
        s->left = JOB_CYCLES;
    else if (offset != MR_PNM_CTRL)
        s->regs[offset / 4] = value;
    return MR_SIM_OK;
}

static int fake_reg_read(mr_sim *s, uint32_t offset, uint32_t *value) {
    if (offset >= REG_BYTES || offset % 4)
        return fail(s, MR_SIM_EINVAL, "no such register");
    *value = s->regs[offset / 4];
    return MR_SIM_OK;
}

static void set64(mr_sim *s, uint32_t offset, uint64_t value) {
    s->regs[offset / 4] = (uint32_t)value;
    s->regs[offset / 4 + 1] = (uint32_t)(value >> 32);
}

static void do_job(mr_sim *s) {
    mr_pnm_memory memory = {s->data, BASE, s->used};
    mr_pnm_prog progs[MR_PNM_GROUPS];
    mr_pnm_result result;
    for (uint32_t g = 0; g < MR_PNM_GROUPS; g++) {
        const uint32_t *r = &s->regs[(MR_PNM_PROG0_ADDR + 16 * g) / 4];
        progs[g] = (mr_pnm_prog){r[0] | (uint64_t)r[1] << 32, r[2]};
    }
    mr_pnm_outcome outcome = mr_pnm_chip_run(s->chip, &memory, progs, &result);
    s->stands_still = outcome == MR_PNM_DEADLOCK;
    s->regs[MR_PNM_ERROR / 4] = result.error;
    s->regs[MR_PNM_ERROR_GROUP / 4] = result.group;
    s->regs[MR_PNM_ERROR_INDEX / 4] = result.index;
    s->regs[MR_PNM_STATUS / 4] = result.status;
    set64(s, MR_PNM_CYCLES, JOB_CYCLES);
    set64(s, MR_PNM_PRODUCTS, result.products);
    for (uint32_t g = 0; g < MR_PNM_GROUPS; g++)
        set64(s, MR_PNM_G0_DRAM_REF + g * (MR_PNM_G1_DRAM_REF - MR_PNM_G0_DRAM_REF), 1000 + g);
}

static int fake_run(mr_sim *s, uint64_t max_cycles, uint64_t *ran) {
    uint64_t step = s->left < max_cycles ? s->left : max_cycles;
    if (ran)
        *ran = step;
    if (s->stands_still)
        return usleep(200), MR_SIM_TIMEOUT;
    if (s->fault_file[0] && access(s->fault_file, F_OK) == 0)
        abort();
    s->left -= step;
    if (s->left)
        return MR_SIM_TIMEOUT;
    do_job(s);
    if (s->stands_still)
        return MR_SIM_TIMEOUT;
    s->regs[MR_PNM_ISR / 4] |= MR_PNM_ISR_DONE_MASK;
    return MR_SIM_OK;
}

static int fake_reset(mr_sim *s) {
    reset_registers(s);
    return MR_SIM_OK;
}

const mr_sim_ops *mr_sim_entry(uint32_t abi) {
    static const mr_sim_ops ops = {
        .abi = MR_SIM_ABI,
        .unit = "pnm",
        .open = fake_open,
        .close = fake_close,
        .error = fake_error,
        .mem_alloc = fake_alloc,
        .mem_free = fake_free,
        .mem_map = fake_map,
        .reg_write = fake_reg_write,
        .reg_read = fake_reg_read,
        .run = fake_run,
        .reset = fake_reset,
    };
    return abi == MR_SIM_ABI ? &ops : NULL;
}
