/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/link.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/core/error.h"
#include "host/core/internal.h"
#include "host/core/uri.h"

/* ---- options --------------------------------------------------------------------------------- */

static bool whole(const char *text, uint64_t least, uint64_t most, uint64_t *out) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    *out = v;
    return !*end && !errno && v >= least && v <= most;
}

static bool probability(const char *text, double *out) {
    char *end;
    double v = strtod(text, &end);
    *out = v;
    return end != text && !*end && isfinite(v) && v >= 0 && v <= 1;
}

static mr_status set(mr_nic_link_options *o, const mr_drv_option *given, bool sim) {
    const struct {
        const char *key;
        double *to;
    } chances[] = {{"loss", &o->loss},
                   {"dup", &o->dup},
                   {"reorder", &o->reorder},
                   {"corrupt", &o->corrupt},
                   {"stall", &o->stall}};
    const struct {
        const char *key;
        uint32_t *to;
        uint32_t least, most;
    } numbers[] = {{"nodes", &o->nodes, 1, sim ? 16 : 64},
                   {"latency", &o->latency, 1, 1000000},
                   {"bandwidth", &o->bandwidth, 1, 64},
                   {"memory", &o->memory_mib, 1, 1u << 20}};
    static const char *const fills[] = {"zero", "ones", "random"};
    const char *key = given->key, *value = given->value;
    uint64_t v;
    for (size_t i = 0; i < sizeof chances / sizeof *chances; i++)
        if (!strcmp(key, chances[i].key))
            return probability(value, chances[i].to)
                       ? MR_OK
                       : mr_fail(MR_INVALID_ARGUMENT, "option %s=%s: must be a number, 0 to 1", key,
                                 value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (!whole(value, numbers[i].least, numbers[i].most, &v))
            return mr_fail(MR_INVALID_ARGUMENT, "option %s=%s: must be a whole number, %u to %u",
                           key, value, numbers[i].least, numbers[i].most);
        *numbers[i].to = (uint32_t)v;
        return MR_OK;
    }
    if (!strcmp(key, "seed"))
        return whole(value, 0, UINT64_MAX, &o->seed)
                   ? MR_OK
                   : mr_fail(MR_INVALID_ARGUMENT, "option seed=%s: must be a whole number", value);
    if (!strcmp(key, "open")) {
        if (!whole(value, 0, 1, &v))
            return mr_fail(MR_INVALID_ARGUMENT, "option open=%s: must be 0 or 1", value);
        o->open = v;
        return MR_OK;
    }
    if (sim && !strcmp(key, "trace") && *value) {
        o->trace = value;
        return MR_OK;
    }
    if (sim && !strcmp(key, "xinit")) {
        for (unsigned i = 0; i < 3; i++)
            if (!strcmp(value, fills[i])) {
                o->xinit = i;
                return MR_OK;
            }
        return mr_fail(MR_INVALID_ARGUMENT, "option xinit=%s: must be zero, ones or random", value);
    }
    return mr_fail(MR_INVALID_ARGUMENT, "unknown option %s=%s", key, value);
}

/* ---- opening --------------------------------------------------------------------------------- */

static mr_status library_path(const char *kind, char path[PATH_MAX + 64]) {
    snprintf(path, PATH_MAX + 64, "%s/libmr_sim_nic%s.so", mr_driver_host()->library_dir, kind);
    return access(path, F_OK) == 0
               ? MR_OK
               : mr_fail(MR_UNAVAILABLE, "the simulated unit is not there: no %s", path);
}

mr_status mr_nic_sim_there(void) {
    char path[PATH_MAX + 64];
    return library_path("", path);
}

/* The library stays loaded: Verilator's run-time does not take unloading well. */
static mr_status open_sim(const mr_nic_link_options *o, mr_nic_link **link) {
    char path[PATH_MAX + 64];
    mr_status e = library_path(o->trace || o->xinit ? "_debug" : "", path);
    if (e != MR_OK)
        return e;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mr_fail(MR_UNAVAILABLE, "sim:nic: cannot load the simulator: %s", dlerror());
    mr_sim_nic_open_fn fn = (mr_sim_nic_open_fn)dlsym(library, MR_SIM_NIC_ENTRY);
    if (!fn)
        return mr_fail(MR_UNAVAILABLE, "sim:nic: %s is no simulator of the NIC", path);
    return fn(MR_SIM_NIC_ABI, o, link);
}

mr_status mr_nic_link_open(const char *uri, mr_nic_link **link) {
    mr_nic_link_options o = {
        .nodes = 1, .seed = 1, .latency = 100, .bandwidth = 50, .memory_mib = 64, .fail = mr_fail};
    bool golden = !strncmp(uri, "golden", 6) && (!uri[6] || uri[6] == '?');
    char text[MR_URI_MAX];
    mr_uri u;
    if (golden) /* the only device that is no URI scheme */
        snprintf(text, sizeof text, "golden:%s", uri + 6);
    else
        snprintf(text, sizeof text, "%s", uri);
    if (strlen(uri) + 2 > sizeof text)
        return mr_fail(MR_INVALID_ARGUMENT, "the device's name is too long");
    mr_status e = mr_uri_parse(text, &u);
    if (e != MR_OK)
        return e;
    if (!golden && (strcmp(u.scheme, "sim") != 0 || strcmp(u.target, "nic") != 0))
        return mr_fail(MR_INVALID_ARGUMENT, "%s: no NIC; golden and sim:nic are", uri);
    for (size_t i = 0; i < u.num_options && e == MR_OK; i++)
        e = set(&o, &u.options[i], !golden);
    if (e != MR_OK)
        return e;
    return golden ? mr_golden_link_open(&o, link) : open_sim(&o, link);
}
