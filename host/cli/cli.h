/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of `millrace` share: options, exit codes, interrupts, output. */
#ifndef HOST_CLI_CLI_H
#define HOST_CLI_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

/* Exit codes; docs/millrace.1 lists them for users. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* the work failed: a device error, a mismatch, out of memory */
    CLI_USAGE = 2,       /* the command line: unknown, missing or impossible arguments */
    CLI_BAD_INPUT = 3,   /* a file that cannot be read or is not what it must be */
    CLI_UNAVAILABLE = 4, /* a device or library that is not here */
    CLI_TIMEOUT = 5,     /* a device did not finish in time */
    CLI_INTERRUPTED = 130
};

/* ---- options ----------------------------------------------------------------------------------
 */

typedef enum { CLI_FLAG, CLI_TEXT, CLI_COUNT, CLI_REAL, CLI_RANGE, CLI_CHOICE } cli_kind;

typedef struct {
    size_t first, last; /* A:B, last excluded */
} cli_range;

typedef struct {
    const char *name; /* without the dashes */
    cli_kind kind;
    void *value;      /* bool, const char *, size_t, double, cli_range, int (index of the choice) */
    const char *hint; /* name of the argument in the help; the choices, "a|b|c" */
    const char *help;
    double least, most; /* COUNT and REAL, both inclusive */
    bool required;
    bool given; /* set by cli_parse */
} cli_option;

/*
 * Reads argv[1..]; options end with an entry whose name is NULL. Prints the help and returns -1 for
 * --help; on a mistake prints one line and returns CLI_USAGE; else CLI_OK.
 */
int cli_parse(const char *command, const char *summary, cli_option *options, int argc, char **argv);

/* ---- reporting --------------------------------------------------------------------------------
 */

/* "millrace: ..." and a newline on stderr, in one line; returns `code`. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message of the call that just failed, and the exit code that its status means. */
int cli_fail(mr_status status);

/* Prints one JSON object and a newline, and gives up the reference. CLI_FAILED when stdout is gone.
 */
int cli_print_json(json_t *object);

/* A JSON string of any bytes, such as a file's name: ill-formed UTF-8 becomes U+FFFD. */
json_t *cli_json_text(const char *text);

/* Flushes stdout; an error there is a failure of the command. */
int cli_flush(void);

/* ---- interrupts -------------------------------------------------------------------------------
 */

/* Non-zero once SIGINT, SIGTERM or SIGHUP has come; work looks at it between steps. */
extern volatile sig_atomic_t cli_stop;
void cli_catch_signals(void);

/* ---- subcommands: argv[0] is the last word of the subcommand -----------------------------------
 */

int cli_devices(int argc, char **argv);
int cli_run_lm(int argc, char **argv);
int cli_run_flow(int argc, char **argv);
int cli_rgu_tile(int argc, char **argv);
int cli_rgu_apply(int argc, char **argv);
int cli_rgu_fit(int argc, char **argv);
int cli_nic_replay(int argc, char **argv);
int cli_nic_tap(int argc, char **argv);
int cli_nic_bench(int argc, char **argv);
int cli_nic_study(int argc, char **argv);
int cli_pnm_mult(int argc, char **argv);
int cli_pnm_gemv(int argc, char **argv);
int cli_pnm_check_trace(int argc, char **argv);
int cli_pnm_study(int argc, char **argv);
int cli_model_rgu(int argc, char **argv);
int cli_model_pnm(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_zoo_eval(int argc, char **argv);

#endif
