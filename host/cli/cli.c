/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/lm/text.h"

volatile sig_atomic_t cli_stop;

static void on_signal(int number) {
    (void)number;
    cli_stop = 1;
}

void cli_catch_signals(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    /* a closed pipe is reported by the write that meets it */
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
}

/* ---- reporting --------------------------------------------------------------------------------
 */

int cli_error(int code, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* names come from files and arguments: keep the message one line */
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    fflush(stdout);
    fprintf(stderr, "millrace: %s\n", text);
    return code;
}

int cli_fail(mr_status status) {
    char text[2048];
    /* a compiler's log may follow after a newline; the first line says what happened */
    snprintf(text, sizeof text, "%s", mr_last_error());
    text[strcspn(text, "\n")] = 0;
    switch (status) {
    case MR_CANCELLED:
        if (cli_stop)
            return cli_error(CLI_INTERRUPTED, "interrupted");
        return cli_error(CLI_FAILED, "%s", text);
    case MR_INVALID_ARGUMENT:
        return cli_error(CLI_USAGE, "%s", text);
    case MR_BAD_FORMAT:
    case MR_IO_ERROR:
    case MR_NOT_FOUND:
        return cli_error(CLI_BAD_INPUT, "%s", text);
    case MR_UNAVAILABLE:
    case MR_UNSUPPORTED:
        return cli_error(CLI_UNAVAILABLE, "%s", text);
    case MR_TIMEOUT:
        return cli_error(CLI_TIMEOUT, "%s", *text ? text : "the device did not finish in time");
    default:
        return cli_error(CLI_FAILED, "%s: %s", mr_status_name(status), text);
    }
}

int cli_flush(void) {
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_error(CLI_FAILED, "cannot write to the standard output: %s", strerror(errno));
    return CLI_OK;
}

json_t *cli_json_text(const char *text) {
    size_t size = strlen(text);
    char *out = malloc(3 * size + 1);
    if (!out)
        return NULL;
    json_t *j = json_stringn(out, mr_utf8_mend((const uint8_t *)text, size, out, NULL));
    free(out);
    return j;
}

int cli_print_json(json_t *object) {
    bool ok =
        object && json_dumpf(object, stdout,
                             JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(10)) == 0;
    json_decref(object);
    if (!ok)
        return cli_error(CLI_FAILED, "cannot print the result as JSON");
    putchar('\n');
    return cli_flush();
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void print_help(const char *command, const char *summary, const cli_option *options) {
    printf("Usage: millrace %s [OPTION...]\n%s\n\n", command, summary);
    for (const cli_option *o = options; o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->kind == CLI_FLAG ? "" : " ",
                 o->kind == CLI_FLAG     ? ""
                 : o->kind == CLI_CHOICE ? "WORD"
                                         : o->hint);
        printf("  %-22s %s", left, o->help);
        if (o->kind == CLI_CHOICE)
            printf(": %s", o->hint);
        if (o->required)
            printf(" (required)");
        putchar('\n');
    }
    printf("  %-22s %s\n", "--help", "this text");
}

static bool parse_count(const char *text, size_t *out) {
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    *out = (size_t)v;
    return !*end && errno == 0;
}

static bool parse_range(const char *text, cli_range *r) {
    char left[32];
    const char *colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof left)
        return false;
    memcpy(left, text, (size_t)(colon - text));
    left[colon - text] = 0;
    return parse_count(left, &r->first) && parse_count(colon + 1, &r->last);
}

static int choice_index(const char *choices, const char *word) {
    size_t n = strlen(word);
    for (int i = 0; *choices; i++) {
        size_t len = strcspn(choices, "|");
        if (len == n && !memcmp(choices, word, n))
            return i;
        choices += len + (choices[len] == '|');
    }
    return -1;
}

static int set_option(const char *command, cli_option *o, const char *text) {
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)o->value = true;
        return CLI_OK;
    case CLI_TEXT:
        *(const char **)o->value = text;
        return CLI_OK;
    case CLI_COUNT: {
        size_t v;
        if (!parse_count(text, &v) || (double)v < o->least || (double)v > o->most)
            return cli_error(CLI_USAGE, "%s: --%s %s: must be a whole number, %.0f to %.0f",
                             command, o->name, text, o->least, o->most);
        *(size_t *)o->value = v;
        return CLI_OK;
    }
    case CLI_REAL: {
        char *end;
        double v = strtod(text, &end);
        if (end == text || *end || !isfinite(v) || v < o->least || v > o->most)
            return cli_error(CLI_USAGE, "%s: --%s %s: must be a number, %g to %g", command, o->name,
                             text, o->least, o->most);
        *(double *)o->value = v;
        return CLI_OK;
    }
    case CLI_RANGE:
        if (!parse_range(text, o->value))
            return cli_error(CLI_USAGE, "%s: --%s %s: must be A:B, two whole numbers", command,
                             o->name, text);
        return CLI_OK;
    case CLI_CHOICE: {
        int i = choice_index(o->hint, text);
        if (i < 0)
            return cli_error(CLI_USAGE, "%s: --%s %s: must be one of %s", command, o->name, text,
                             o->hint);
        *(int *)o->value = i;
        return CLI_OK;
    }
    }
    return CLI_USAGE;
}

int cli_parse(const char *command, const char *summary, cli_option *options, int argc,
              char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            print_help(command, summary, options);
            return -1;
        }
        if (strncmp(arg, "--", 2) != 0)
            return cli_error(CLI_USAGE, "%s: unexpected argument %s", command, arg);
        const char *equal = strchr(arg, '=');
        size_t n = equal ? (size_t)(equal - arg - 2) : strlen(arg + 2);
        cli_option *o = options;
        while (o->name && (strlen(o->name) != n || memcmp(o->name, arg + 2, n) != 0))
            o++;
        if (!o->name)
            return cli_error(CLI_USAGE, "%s: unknown option --%.*s", command, (int)n, arg + 2);
        if (o->given)
            return cli_error(CLI_USAGE, "%s: --%s is given twice", command, o->name);
        const char *text = equal ? equal + 1 : NULL;
        if (o->kind == CLI_FLAG && equal)
            return cli_error(CLI_USAGE, "%s: --%s takes no value", command, o->name);
        if (o->kind != CLI_FLAG && !equal) {
            if (i + 1 >= argc)
                return cli_error(CLI_USAGE, "%s: --%s needs a value", command, o->name);
            text = argv[++i];
        }
        int code = set_option(command, o, text);
        if (code != CLI_OK)
            return code;
        o->given = true;
    }
    for (cli_option *o = options; o->name; o++)
        if (o->required && !o->given)
            return cli_error(CLI_USAGE, "%s: --%s is missing", command, o->name);
    return CLI_OK;
}
