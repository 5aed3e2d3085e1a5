/* Lists the devices and opens those named: what a script can look at. */
#include <stdio.h>

#include <millrace/millrace.h>

static void try_open(const char *uri) {
    mr_device *device;
    mr_status status = mr_device_open(uri, &device);
    printf("open %s: %s%s%s\n", uri, mr_status_name(status), status ? " " : "",
           status ? mr_last_error() : "");
    if (status == MR_OK)
        mr_device_close(device);
}

int main(int argc, char **argv) {
    mr_device_info *list;
    size_t count;
    if (mr_devices(&list, &count) != MR_OK)
        return 1;
    for (size_t i = 0; i < count; i++)
        printf("%s: %s\n", list[i].uri, list[i].available ? list[i].name : list[i].reason);
    mr_devices_free(list);
    for (int i = 1; i < argc; i++)
        try_open(argv[i]);
    try_open("cpu:");
    return 0;
}
