/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "host/cli/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/io/file.h"

char *cli_join(const char *folder, const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_folder(const char *path) {
    struct stat sb;
    return path && stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

/* The command may run from build/, from anywhere through a link, or installed beside share/. */
char *cli_beside_command(const char *in_tree, const char *installed) {
    const char *const places[][2] = {
        {"..", in_tree}, {".", in_tree}, {"../share/millrace", installed}};
    char exe[4096], from[4160];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return NULL;
    exe[n] = 0;
    *strrchr(exe, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(from, sizeof from, "%s/%s", exe, places[i][0]);
        char *path = cli_join(from, places[i][1]);
        if (is_folder(path))
            return path;
        free(path);
    }
    return NULL;
}

char *cli_zoo_folder(void) {
    const char *given = getenv("MILLRACE_ZOO");
    if (given && *given) {
        if (is_folder(given))
            return strdup(given);
        cli_error(CLI_BAD_INPUT, "%s: no such folder (from MILLRACE_ZOO)", given);
        return NULL;
    }
    char *folder = cli_beside_command("models/zoo", "zoo");
    if (!folder)
        cli_error(CLI_BAD_INPUT, "no models found: there is no models/zoo near the command; set "
                                 "MILLRACE_ZOO, or give --model");
    return folder;
}

char *cli_zoo_default(void) {
    char *folder = cli_zoo_folder();
    if (!folder)
        return NULL;
    char *name = cli_join(folder, "default"), *path = NULL;
    void *data;
    size_t size;
    mr_status s = name ? mr_file_read(name, 4096, &data, &size) : MR_OUT_OF_MEMORY;
    if (s == MR_OK) {
        char *text = data;
        text[strcspn(text, "\r\n")] = 0;
        path = cli_join(folder, text);
        free(data);
    } else {
        cli_fail(s);
    }
    free(name);
    free(folder);
    return path;
}
