/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "host/nic/port.h"

/* A cluster of NICs is no mr_device: mr_nic_open() and the nic commands take it. */
static const char nic_uri[] = "sim:nic";

static mr_device_info nic_device(void) {
    mr_device_info d = {.max_devices = 16};
    snprintf(d.uri, sizeof d.uri, "%s", nic_uri);
    d.available = mr_nic_sim_there() == MR_OK;
    if (d.available)
        snprintf(d.name, sizeof d.name, "compute-NICs, simulated from their RTL");
    else
        snprintf(d.reason, sizeof d.reason, "%s", mr_last_error());
    return d;
}

static json_t *describe(const mr_device_info *d) {
    json_t *caps = json_array();
    if (!strcmp(d->uri, nic_uri) && d->available)
        json_array_append_new(caps, json_string("nic"));
    if (d->caps & MR_CAP_RGU)
        json_array_append_new(caps, json_string("rgu"));
    if (d->caps & MR_CAP_PNM)
        json_array_append_new(caps, json_string("pnm"));
    if (d->caps & MR_CAP_KERNELS)
        json_array_append_new(caps, json_string("kernels"));
    if (d->caps & MR_CAP_CYCLES)
        json_array_append_new(caps, json_string("cycles"));
    if (d->caps & MR_CAP_RESET)
        json_array_append_new(caps, json_string("reset"));
    return json_pack("{s:s, s:b, s:s, s:s, s:o, s:I}", "uri", d->uri, "available",
                     (int)d->available, "name", d->name, "reason", d->reason, "capabilities", caps,
                     "memory", (json_int_t)d->memory);
}

int cli_devices(int argc, char **argv) {
    bool json = false;
    cli_option options[] = {
        {.name = "json", .kind = CLI_FLAG, .value = &json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("devices", "Lists the devices, and why others are not there.", options,
                         argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    mr_device_info *list;
    size_t count;
    mr_status s = mr_devices(&list, &count);
    if (s != MR_OK)
        return cli_fail(s);
    json_t *all = json_array();
    const mr_device_info nic = nic_device();
    for (size_t i = 0; i <= count; i++) {
        const mr_device_info *d = i < count ? &list[i] : &nic;
        if (json)
            json_array_append_new(all, describe(d));
        else if (d->available)
            printf("%-10s %s\n", d->uri, d->name);
        else
            printf("%-10s not available: %.*s\n", d->uri, (int)strcspn(d->reason, "\n"), d->reason);
    }
    mr_devices_free(list);
    if (json)
        return cli_print_json(json_pack("{s:o}", "devices", all));
    json_decref(all);
    return cli_flush();
}
