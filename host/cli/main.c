/* SPDX-License-Identifier: Apache-2.0 */
/* The `millrace` command: finds the subcommand. */
#include "host/cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *first, *second; /* second NULL: one word */
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"devices", NULL, cli_devices, "list the devices, and why others are not there"},
    {"rgu", "tile", cli_rgu_tile, "generate weights of a projection into a .npy file"},
    {"rgu", "apply", cli_rgu_apply, "multiply vectors by a projection without forming it"},
    {"rgu", "fit", cli_rgu_fit, "find seeds for a weight, or for recorded inputs and outputs"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int help(void) {
    puts("Usage: millrace COMMAND [OPTION...]\n\nCommands:");
    for (int i = 0; i < COMMANDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s%s", commands[i].first, commands[i].second ? " " : "",
                 commands[i].second ? commands[i].second : "");
        printf("  %-12s %s\n", name, commands[i].help);
    }
    puts("\nmillrace COMMAND --help tells its options; millrace --version prints the version.\n"
         "Every command takes --json. `man docs/millrace.1` has the exit codes.");
    return cli_flush();
}

int main(int argc, char **argv) {
    cli_catch_signals();
    if (argc < 2)
        return cli_error(CLI_USAGE, "no command; millrace --help lists them");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return help();
    if (!strcmp(argv[1], "--version")) {
        printf("millrace %s\n", mr_version());
        return cli_flush();
    }
    bool family = false;
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].first) != 0)
            continue;
        if (!commands[i].second)
            return commands[i].run(argc - 1, argv + 1);
        family = true;
        if (argc > 2 && !strcmp(argv[2], commands[i].second))
            return commands[i].run(argc - 2, argv + 2);
    }
    if (family && argc > 2)
        return cli_error(CLI_USAGE, "unknown command %s %s; millrace --help lists them", argv[1],
                         argv[2]);
    if (family)
        return cli_error(CLI_USAGE, "%s needs a second word; millrace --help lists them", argv[1]);
    return cli_error(CLI_USAGE, "unknown command %s; millrace --help lists them", argv[1]);
}
