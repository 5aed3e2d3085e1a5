/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When DRAM banks that compute do what: the timing of one controller a group of banks, as
 * rtl/pnm/pnm_bank_ctrl.sv has it. Time only, no data. Cycles are the configuration's clock.
 *
 * A group's banks get every command together (ACT RD WR PRE REF). Policy: requests in order, open
 * page, one command a cycle; the hint `last` precharges a row early; a refresh that is due waits
 * for a cycle without a request but, once `postponed` - 1 are due, goes before requests. Reordering
 * (FR-FCFS) would gain nothing: the streams here ask for a row's columns one after the other.
 *
 * Command A at cycle c lets B go at c + t, t = ceil(ns / clock_ns) and at least 1:
 *    ACT -> RD WR tRCD[tier]   ACT -> PRE tRAS[tier]   ACT -> ACT tRC   PRE -> ACT REF tRP
 *    RD -> PRE tRTP            WR -> PRE tWR           RD WR -> RD WR tCCD   REF -> ACT REF tRFC
 * tRTP and tWR count from the command. A refresh falls due every floor(tREFI / clock_ns) cycles.
 */
#ifndef MODELS_CYCLE_DRAM_H
#define MODELS_CYCLE_DRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_DRAM_TIERS = 16 };
enum { MR_DRAM_ACT, MR_DRAM_RD, MR_DRAM_WR, MR_DRAM_PRE, MR_DRAM_REF, MR_DRAM_COMMANDS };

/* A part, as its file has it: models/cycle/dram/NAME.json, where every key has its source. */
typedef struct {
    char name[32];
    double clock_ns;
    uint32_t channels, banks;     /* of the chip; of a channel */
    uint32_t group_banks;         /* banks that get commands together */
    uint32_t tiers, rows;         /* rows of a bank, in all tiers */
    uint32_t columns;             /* of a row */
    uint32_t column_bytes;        /* of a bank */
    uint32_t unit_banks;          /* banks that share one unit of multipliers */
    uint32_t unit_lanes;          /* 16-bit multipliers of a unit */
    double rcd_ns[MR_DRAM_TIERS]; /* tier = row / (rows / tiers) */
    double ras_ns[MR_DRAM_TIERS];
    double rc_ns; /* 0: tRAS + tRP */
    double rp_ns, rtp_ns, wr_ns, ccd_ns, cl_ns, rfc_ns, refi_ns;
    uint32_t postponed; /* refreshes that may be due at once */
    bool refresh;       /* false: never refreshed, which reports must say */
    char map[4];        /* address digits from high to low: c channel, b bank, r row, k column */
    double bit_pj;      /* a bit of a column, read or written */
    double row_bit_pj;  /* a bit of a row opened and closed, or refreshed */
} mr_dram_config;

/* Reads a configuration. False: `error` names the file and the key, *out is not to be used. */
bool mr_dram_load(const char *file, mr_dram_config *out, char *error, size_t size);

/* The times in cycles. */
typedef struct {
    uint64_t rcd[MR_DRAM_TIERS], ras[MR_DRAM_TIERS], rc, rp, rtp, wr, ccd, cl, rfc, refi;
} mr_dram_cycles;
mr_dram_cycles mr_dram_in_cycles(const mr_dram_config *config);

/* Groups of a chip; bytes of a chip; bytes a nanosecond when every unit streams. */
size_t mr_dram_groups(const mr_dram_config *config);
uint64_t mr_dram_capacity(const mr_dram_config *config);
double mr_dram_peak(const mr_dram_config *config);

/* Where a byte lies, and back. The address must be below the capacity. */
typedef struct {
    uint32_t channel, bank, row, column, byte;
} mr_dram_place;
mr_dram_place mr_dram_at(const mr_dram_config *config, uint64_t address);
uint64_t mr_dram_address(const mr_dram_config *config, mr_dram_place place);

/* What one group, or all, have done. A request finds its row open (hit), the banks closed or
 * closing (miss), or another row open (conflict): counted when it comes. */
typedef struct {
    uint64_t commands[MR_DRAM_COMMANDS];
    uint64_t hits, misses, conflicts;
    uint64_t bytes; /* of columns */
    uint64_t late;  /* refreshes that came with more than `postponed` due */
    double pj;
} mr_dram_count;

typedef void mr_dram_watch(void *user, uint64_t cycle, size_t group, int command, uint32_t banks,
                           uint32_t row, uint32_t column);

typedef struct mr_dram mr_dram;

/* `groups` controllers, 1 or more; `watch`, if not NULL, sees every command, in the order of time
 * within a group. NULL: no memory, or groups is 0. */
mr_dram *mr_dram_create(const mr_dram_config *config, size_t groups, mr_dram_watch *watch,
                        void *user);
void mr_dram_destroy(mr_dram *dram);

/*
 * A request that is there from cycle `t` on, or from the cycle after the group's last request was
 * taken if that is later: a column of the banks in `banks` (RD: all of them). Returns the cycle in
 * which its RD or WR goes out; read data follow tCL later. Row and column must exist.
 */
uint64_t mr_dram_request(mr_dram *dram, size_t group, uint64_t t, bool write, uint32_t banks,
                         uint32_t row, uint32_t column, bool last);

/* Nothing is asked of the group before cycle `until`. */
void mr_dram_idle(mr_dram *dram, size_t group, uint64_t until);

mr_dram_count mr_dram_counters(const mr_dram *dram, size_t group);
mr_dram_count mr_dram_total(const mr_dram *dram);
double mr_dram_ns(const mr_dram_config *config, uint64_t cycles);

/* One line on what was done in `cycles`, the clock named, and "refresh off" where it is off. Bytes
 * as of snprintf. */
int mr_dram_report(const mr_dram_config *config, const mr_dram_count *count, uint64_t cycles,
                   char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
