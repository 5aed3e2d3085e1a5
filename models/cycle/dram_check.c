/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cycle/dram_check.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEVER = -1 };

typedef struct {
    bool open;
    uint32_t row;
    int64_t last[MR_DRAM_COMMANDS]; /* cycle of the last command of a kind, or NEVER */
    uint64_t refreshes;
} bank;

struct mr_dram_check {
    mr_dram_config c;
    size_t groups;
    uint64_t cycle, violations;
    int64_t *busy; /* cycle of a group's last command */
    char text[200];
    bank bank[];
};

mr_dram_check *mr_dram_check_create(const mr_dram_config *config, size_t groups) {
    size_t banks = groups * config->group_banks;
    if (!groups || groups > 65536)
        return NULL;
    mr_dram_check *k = calloc(1, sizeof *k + banks * sizeof k->bank[0]);
    int64_t *busy = calloc(groups, sizeof *busy);
    if (!k || !busy) {
        free(k);
        free(busy);
        return NULL;
    }
    k->c = *config;
    k->groups = groups;
    k->busy = busy;
    for (size_t g = 0; g < groups; g++)
        busy[g] = NEVER;
    for (size_t b = 0; b < banks; b++)
        for (int i = 0; i < MR_DRAM_COMMANDS; i++)
            k->bank[b].last[i] = NEVER;
    return k;
}

void mr_dram_check_destroy(mr_dram_check *k) {
    if (k)
        free(k->busy);
    free(k);
}

static const char *const names[] = {"ACT", "RD", "WR", "PRE", "REF"};

/* True when the last command `before` is at least `ns` back; else says so under the rule's name. */
static bool since(mr_dram_check *k, const bank *b, int before, uint64_t now, double ns,
                  const char *rule) {
    if (b->last[before] == NEVER)
        return true;
    double gone = (double)(now - (uint64_t)b->last[before]) * k->c.clock_ns;
    if (gone >= ns - 1e-6)
        return true;
    snprintf(k->text, sizeof k->text, "%s: %.2f ns after %s, must be %.2f", rule, gone,
             names[before], ns);
    return false;
}

static bool say(mr_dram_check *k, const char *text) {
    snprintf(k->text, sizeof k->text, "%s", text);
    return false;
}

/* Refreshes due by now and not done are at most `postponed`; as many may have been done early. */
static bool on_time(mr_dram_check *k, const bank *b, uint64_t now) {
    if (!k->c.refresh)
        return true;
    double due = (double)now * k->c.clock_ns / k->c.refi_ns - (double)b->refreshes;
    if (due >= (double)k->c.postponed + 1) {
        snprintf(k->text, sizeof k->text, "tREFI: %.2f refreshes due, at most %u", due,
                 k->c.postponed);
        return false;
    }
    return due >= -(double)k->c.postponed ? true : say(k, "tREFI: refreshed too often");
}

static bool legal(mr_dram_check *k, const bank *b, const mr_dram_command *m) {
    const mr_dram_config *c = &k->c;
    uint64_t t = m->cycle;
    uint32_t tier = b->row / (c->rows / c->tiers); /* of the open row */
    switch (m->command) {
    case MR_DRAM_ACT:
        if (b->open)
            return say(k, "ACT: a row is open");
        if (b->last[MR_DRAM_ACT] != NEVER &&
            !since(k, b, MR_DRAM_ACT, t, c->rc_ns > 0 ? c->rc_ns : c->ras_ns[tier] + c->rp_ns,
                   "tRC"))
            return false;
        return since(k, b, MR_DRAM_PRE, t, c->rp_ns, "tRP") &&
               since(k, b, MR_DRAM_REF, t, c->rfc_ns, "tRFC");
    case MR_DRAM_RD:
    case MR_DRAM_WR:
        if (!b->open || b->row != m->row)
            return say(k, "column of a row that is not open");
        return since(k, b, MR_DRAM_ACT, t, c->rcd_ns[tier], "tRCD") &&
               since(k, b, MR_DRAM_RD, t, c->ccd_ns, "tCCD") &&
               since(k, b, MR_DRAM_WR, t, c->ccd_ns, "tCCD");
    case MR_DRAM_PRE: /* of a closed bank: allowed, and nothing happens */
        return !b->open || (since(k, b, MR_DRAM_ACT, t, c->ras_ns[tier], "tRAS") &&
                            since(k, b, MR_DRAM_RD, t, c->rtp_ns, "tRTP") &&
                            since(k, b, MR_DRAM_WR, t, c->wr_ns, "tWR"));
    default:
        if (b->open)
            return say(k, "REF: a row is open");
        return since(k, b, MR_DRAM_PRE, t, c->rp_ns, "tRP") &&
               since(k, b, MR_DRAM_REF, t, c->rfc_ns, "tRFC");
    }
}

static bool exists(mr_dram_check *k, const mr_dram_command *m) {
    const mr_dram_config *c = &k->c;
    if (m->command < 0 || m->command >= MR_DRAM_COMMANDS)
        return say(k, "unknown command");
    if (m->group >= k->groups)
        return say(k, "no such group");
    if (!m->banks || (c->group_banks < 32 && m->banks >> c->group_banks))
        return say(k, m->banks ? "no such bank" : "no bank is named");
    if (m->command != MR_DRAM_REF && m->command != MR_DRAM_PRE && m->row >= c->rows)
        return say(k, "no such row");
    if ((m->command == MR_DRAM_RD || m->command == MR_DRAM_WR) && m->column >= c->columns)
        return say(k, "no such column");
    if (m->cycle < k->cycle || m->cycle > INT64_MAX)
        return say(k, "time goes back");
    return true;
}

const char *mr_dram_check_command(mr_dram_check *k, const mr_dram_command *m) {
    if (!exists(k, m)) {
        k->violations++;
        return k->text;
    }
    bool good =
        k->busy[m->group] != (int64_t)m->cycle || say(k, "two commands to a group in one cycle");
    k->busy[m->group] = (int64_t)m->cycle;
    k->cycle = m->cycle;
    for (uint32_t i = 0; i < k->c.group_banks; i++) {
        bank *b = &k->bank[m->group * k->c.group_banks + i];
        if (!(m->banks >> i & 1))
            continue;
        good = good && legal(k, b, m) && on_time(k, b, m->cycle);
        b->last[m->command] = (int64_t)m->cycle;
        if (m->command == MR_DRAM_ACT) {
            b->open = true;
            b->row = m->row;
        } else if (m->command == MR_DRAM_PRE) {
            b->open = false;
        } else if (m->command == MR_DRAM_REF) {
            b->refreshes++;
        }
    }
    k->violations += !good;
    return good ? NULL : k->text;
}

const char *mr_dram_check_end(mr_dram_check *k, uint64_t cycle) {
    for (size_t b = 0; b < k->groups * k->c.group_banks; b++)
        if (!on_time(k, &k->bank[b], cycle)) {
            k->violations++;
            return k->text;
        }
    return NULL;
}

uint64_t mr_dram_check_violations(const mr_dram_check *k) { return k->violations; }
