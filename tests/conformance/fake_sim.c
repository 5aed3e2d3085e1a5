/*
 * A stand-in for a Verilated unit behind sim/sim.h: registers, memory and interrupt as the board
 * wrapper has them, the job itself done by the golden model. It exists for the faults that a
 * healthy unit never shows: option fault=hang (a job never ends), fault=stuck (run() never
 * returns), fault=crash (the process dies in a job), fault=proto (the unit breaks a bus rule),
 * fault=error (ERROR register 7, nothing written).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "millrace/rgu_regs.h"
#include "models/golden/rgu.h"
#include "models/golden/rgu_apply.h"
#include "sim/sim.h"

enum { REG_BYTES = 256, MAX_RANGES = 65536, JOB_CYCLES = 5000 };

typedef struct {
    uint64_t addr, bytes;
    unsigned char *data;
} range;

struct mr_sim {
    uint32_t regs[REG_BYTES / 4];
    range *ranges;
    size_t num_ranges;
    uint64_t next_addr, used, capacity;
    uint64_t left; /* cycles until the job in progress is done; 0: idle */
    char fault[16];
    char text[128];
};

static int fail(mr_sim *s, int code, const char *text) {
    snprintf(s->text, sizeof s->text, "%s", text);
    return code;
}

static bool option(const char *options, const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    for (const char *p = options; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
        if (!strncmp(p, key, length) && p[length] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(p + length + 1, "&"), p + length + 1);
            return true;
        }
    return false;
}

static int fake_open(const char *options, mr_sim **out, char *err, size_t err_size) {
    static const char *const known[] = {"fault", "seed", "latency", "memory", "stall"};
    for (const char *p = options; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL) {
        bool good = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            good = good || (!strncmp(p, known[i], strlen(known[i])) && p[strlen(known[i])] == '=');
        if (!good) {
            snprintf(err, err_size, "unknown option '%.*s'", (int)strcspn(p, "=&"), p);
            return MR_SIM_EINVAL;
        }
    }
    mr_sim *s = calloc(1, sizeof *s);
    char memory[16] = "64";
    if (!s)
        return MR_SIM_ENOMEM;
    s->ranges = calloc(MAX_RANGES, sizeof *s->ranges);
    s->next_addr = 4096;
    option(options, "fault", s->fault, sizeof s->fault);
    option(options, "memory", memory, sizeof memory);
    s->capacity = strtoull(memory, NULL, 10) << 20;
    *out = s;
    return MR_SIM_OK;
}

static void fake_close(mr_sim *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->num_ranges; i++)
        free(s->ranges[i].data);
    free(s->ranges);
    free(s);
}

static const char *fake_error(const mr_sim *s) { return s->text; }

static int fake_alloc(mr_sim *s, size_t bytes, size_t align, uint64_t *addr) {
    (void)align;
    size_t i = 0;
    while (i < s->num_ranges && s->ranges[i].data)
        i++;
    if (bytes > s->capacity - s->used || i == MAX_RANGES)
        return fail(s, MR_SIM_ENOMEM, "the device memory is exhausted");
    s->ranges[i] = (range){s->next_addr, bytes, calloc(1, bytes)};
    if (!s->ranges[i].data)
        return fail(s, MR_SIM_ENOMEM, "no host memory");
    s->next_addr += (bytes + 4095) / 4096 * 4096 + 4096;
    s->used += bytes;
    if (i == s->num_ranges)
        s->num_ranges++;
    *addr = s->ranges[i].addr;
    return MR_SIM_OK;
}

static int fake_free(mr_sim *s, uint64_t addr) {
    for (size_t i = 0; i < s->num_ranges; i++)
        if (s->ranges[i].data && s->ranges[i].addr == addr) {
            free(s->ranges[i].data);
            s->used -= s->ranges[i].bytes;
            s->ranges[i].data = NULL;
            return MR_SIM_OK;
        }
    return fail(s, MR_SIM_ERANGE, "no allocation there");
}

static int fake_map(mr_sim *s, uint64_t addr, size_t bytes, void **ptr) {
    for (size_t i = 0; i < s->num_ranges; i++) {
        range *r = &s->ranges[i];
        if (r->data && addr >= r->addr && addr - r->addr <= r->bytes &&
            bytes <= r->bytes - (addr - r->addr)) {
            *ptr = r->data + (addr - r->addr);
            return MR_SIM_OK;
        }
    }
    return fail(s, MR_SIM_ERANGE, "a memory range outside every allocation");
}

static int fake_reg_write(mr_sim *s, uint32_t offset, uint32_t value) {
    if (offset >= REG_BYTES || offset % 4)
        return fail(s, MR_SIM_EINVAL, "no such register");
    if (offset == MR_RGU_ISR)
        s->regs[offset / 4] ^= value;
    else if (offset == MR_RGU_CTRL && (value & MR_RGU_CTRL_AP_START_MASK))
        s->left = JOB_CYCLES;
    else if (offset != MR_RGU_CTRL)
        s->regs[offset / 4] = value;
    return MR_SIM_OK;
}

static int fake_reg_read(mr_sim *s, uint32_t offset, uint32_t *value) {
    if (offset >= REG_BYTES || offset % 4)
        return fail(s, MR_SIM_EINVAL, "no such register");
    *value = s->regs[offset / 4];
    return MR_SIM_OK;
}

static uint64_t address(const mr_sim *s, uint32_t offset) {
    return s->regs[offset / 4] | (uint64_t)s->regs[offset / 4 + 1] << 32;
}

/* The job that the registers describe, by the golden model. False: an address outside the memory.
 */
static bool do_job(mr_sim *s) {
    uint32_t mode = s->regs[MR_RGU_MODE / 4], chunks = s->regs[MR_RGU_CHUNKS / 4];
    mr_golden_job job = {.n = (int)(mode >> 8 & 15), .terms = (int)(mode >> 16 & 63)};
    bool apply = mode & MR_RGU_MODE_APPLY_MASK;
    job.format = (int)(mode >> 4 & 15);
    job.sat = (int)(mode >> 3 & 1);
    job.d_in = s->regs[MR_RGU_D_IN / 4];
    job.d_out = s->regs[MR_RGU_D_OUT / 4];
    job.row0 = s->regs[MR_RGU_ROW0 / 4];
    job.row1 = s->regs[MR_RGU_ROW1 / 4];
    job.col0 = s->regs[MR_RGU_COL0 / 4];
    job.col1 = s->regs[MR_RGU_COL1 / 4];
    memcpy(&job.scale, &s->regs[MR_RGU_SCALE / 4], 4);
    size_t dst_stride = s->regs[MR_RGU_DST_STRIDE / 4], src_stride = s->regs[MR_RGU_SRC_STRIDE / 4];
    size_t batch = s->regs[MR_RGU_BATCH / 4], lines = apply ? batch : job.row1 - job.row0;
    size_t line = apply ? 4 * job.d_out : (job.col1 - job.col0) * mr_format_bytes(job.format);
    size_t records = (size_t)(chunks & 0xFFFF) * (chunks >> 16) * (size_t)job.terms;
    void *seeds, *scale, *dst, *src = NULL;
    if (fake_map(s, address(s, MR_RGU_SEEDS), records * mr_rgu_record_bytes(job.n), &seeds) ||
        fake_map(s, address(s, MR_RGU_DST), (lines - 1) * dst_stride + line, &dst))
        return false;
    if (mode & MR_RGU_MODE_ROW_SCALE_MASK) {
        if (fake_map(s, address(s, MR_RGU_ROW_SCALE), 4 * job.d_out, &scale))
            return false;
        job.row_scale = scale;
    }
    job.image = seeds;
    if (!apply)
        return mr_golden_tile(&job, dst, dst_stride) == 0;
    return !fake_map(s, address(s, MR_RGU_SRC), (batch - 1) * src_stride + 4 * job.d_in, &src) &&
           mr_golden_apply(&job, batch, src, src_stride, dst, dst_stride) == 0;
}

static int fake_run(mr_sim *s, uint64_t max_cycles, uint64_t *ran) {
    uint64_t step = s->left < max_cycles ? s->left : max_cycles;
    if (ran)
        *ran = step;
    if (!strcmp(s->fault, "hang"))
        return usleep(200), MR_SIM_TIMEOUT;
    while (!strcmp(s->fault, "stuck"))
        usleep(1000);
    if (!strcmp(s->fault, "crash"))
        abort();
    if (!strcmp(s->fault, "proto"))
        return fail(s, MR_SIM_EPROTO, "assertion failed: payload not stable");
    s->left -= step;
    if (s->left)
        return MR_SIM_TIMEOUT;
    s->regs[MR_RGU_ERROR / 4] = 0;
    if (!strcmp(s->fault, "error"))
        s->regs[MR_RGU_ERROR / 4] = 7;
    else if (!do_job(s))
        s->regs[MR_RGU_ERROR / 4] = 6;
    s->regs[MR_RGU_CYCLES / 4] = JOB_CYCLES;
    s->regs[MR_RGU_ISR / 4] |= MR_RGU_ISR_DONE_MASK;
    return MR_SIM_OK;
}

static int fake_reset(mr_sim *s) {
    memset(s->regs, 0, sizeof s->regs);
    s->left = 0;
    s->fault[0] = 0; /* a reset is what heals */
    return MR_SIM_OK;
}

const mr_sim_ops *mr_sim_entry(uint32_t abi) {
    static const mr_sim_ops ops = {
        .abi = MR_SIM_ABI,
        .unit = "rgu",
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
