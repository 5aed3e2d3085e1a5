/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands that run the near-memory elements share: the multiplication's options and
 * the device. */
#ifndef HOST_CLI_PNM_H
#define HOST_CLI_PNM_H

#include "host/cli/cli.h"
#include "models/golden/pnm_mult.h"

typedef struct {
    mr_pnm_mult_mode mode;
    uint8_t log_length; /* of the stream */
    /* as the options were read */
    int kind, gen;
    size_t stream, cut;
} cli_pnm_mode;

/* Centred generator, no cut. */
cli_pnm_mode cli_pnm_mode_init(void);

/* The first options of a command, in this order. */
enum { CLI_PNM_MODE, CLI_PNM_STREAM, CLI_PNM_GEN, CLI_PNM_CUT, CLI_PNM_MODE_OPTIONS };
#define CLI_PNM_MODE_OPTION(m)                                                                     \
    {                                                                                              \
        .name = "mode", .kind = CLI_CHOICE, .value = &(m).kind, .hint = "split|full|exact",        \
        .help = "stochastic fraction products, stochastic significands, or binary",                \
        .required = true                                                                           \
    }
#define CLI_PNM_STREAM_OPTION(m)                                                                   \
    {                                                                                              \
        .name = "stream", .kind = CLI_COUNT, .value = &(m).stream, .hint = "L",                    \
        .help = "stream bits a product, a power of two", .least = MR_PNM_STREAM_MIN,               \
        .most = MR_PNM_STREAM_MAX                                                                  \
    }
#define CLI_PNM_GEN_OPTION(m)                                                                      \
    {                                                                                              \
        .name = "gen", .kind = CLI_CHOICE, .value = &(m).gen, .hint = "unary|centred",             \
        .help = "stream generator of split (default centred)"                                      \
    }
#define CLI_PNM_CUT_OPTION(m)                                                                      \
    {                                                                                              \
        .name = "cut", .kind = CLI_COUNT, .value = &(m).cut, .hint = "C",                          \
        .help = "upper fraction bits multiplied in binary (default 0)", .least = 0,                \
        .most = MR_PNM_CUT_MAX                                                                     \
    }

/* What the options mean together: fills mode and log_length; prints what they cannot mean. */
int cli_pnm_mode_check(const char *command, const cli_option *options, cli_pnm_mode *m);

/* ", split by centred streams of 16, cut 0" */
void cli_pnm_print_mode(const cli_pnm_mode *m);
/* "stream", "gen" and "cut", null where the mode has none. */
void cli_pnm_add_mode(const cli_pnm_mode *m, json_t *object);

/* The device's URI, with the option for a trace of DRAM commands unless trace is NULL; only the
 * simulated unit has one. */
int cli_pnm_uri(const char *device, const char *trace, char *uri, size_t size);

#endif
