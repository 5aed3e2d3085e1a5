/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/gpu.h"

#include <string.h>

#include <millrace/millrace.h>

static const char *automatic(void) {
    const char *uri = "cpu:";
    mr_device_info *list;
    size_t count;
    if (mr_devices(&list, &count) != MR_OK)
        return uri;
    for (size_t i = 0; i < count; i++)
        if (list[i].available && !strcmp(list[i].uri, "cuda:0"))
            uri = "cuda:0";
    mr_devices_free(list);
    return uri;
}

const char *cli_gpu_uri(int choice) {
    static const char *const uris[] = {NULL, "cpu:", "opencl:0", "cuda:0"};
    return choice == 0 ? automatic() : uris[choice];
}
