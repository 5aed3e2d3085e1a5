/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <stdio.h>
#include <string.h>

static json_t *describe(const mr_device_info *d) {
    json_t *caps = json_array();
    if (d->caps & MR_CAP_RGU)
        json_array_append_new(caps, json_string("rgu"));
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
    for (size_t i = 0; i < count; i++) {
        const mr_device_info *d = &list[i];
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
