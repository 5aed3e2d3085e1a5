/* SPDX-License-Identifier: Apache-2.0 */
/* millrace zoo eval: every model of the zoo on the held-out text, in one table. */
#include "host/cli/cli.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/gpu.h"
#include "host/cli/zoo.h"
#include "host/io/file.h"
#include "host/lm/lm.h"

enum { RGU_OFF, RGU_GOLDEN, RGU_SIM };

typedef struct {
    const char *zoo, *text, *only;
    size_t bytes;
    int rgu, gpu;
    bool json;
} request;

typedef struct {
    char *folder;
    void *text;
    size_t size;
    char **names; /* of the variants, sorted */
    size_t count;
} session;

static bool is_model(const char *name) {
    static const char end[] = ".safetensors";
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end) && name[0] != '.';
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_variants(session *s) {
    char *path = cli_join(s->folder, "variants");
    DIR *dir = path ? opendir(path) : NULL;
    if (!dir) {
        int code =
            cli_error(CLI_BAD_INPUT, "%s: cannot list the variants", path ? path : s->folder);
        free(path);
        return code;
    }
    bool ok = true;
    for (struct dirent *d; ok && (d = readdir(dir));) {
        if (!is_model(d->d_name))
            continue;
        char **more = realloc(s->names, (s->count + 1) * sizeof *more);
        if (more)
            s->names = more;
        ok = more && (s->names[s->count] = cli_join("variants", d->d_name));
        s->count += ok;
    }
    closedir(dir);
    free(path);
    if (!ok)
        return cli_error(CLI_FAILED, "out of memory");
    if (s->count)
        qsort(s->names, s->count, sizeof *s->names, by_text);
    return CLI_OK;
}

typedef struct {
    const char *name;
    size_t total;
    bool terminal;
} meter;

static int on_progress(void *context, size_t done) {
    const meter *m = context;
    if (m->terminal)
        fprintf(stderr, "\r%-48s %3zu %% ", m->name, done * 100 / m->total);
    return cli_stop;
}

static json_t *row(const char *name, const mr_lm_model *m, double bits) {
    json_t *layers = json_array();
    for (size_t i = 0; i < m->config.n_layers; i++)
        if (m->layers[i].replaced)
            json_array_append_new(layers, json_integer((json_int_t)i));
    return json_pack("{s:o, s:s, s:o, s:f, s:I, s:I, s:f}", "model", cli_json_text(name), "kind",
                     m->kind, "replaced_layers", layers, "replaced_share",
                     (double)m->replaced / (double)m->config.n_layers, "stored_bytes",
                     (json_int_t)m->stored_bytes, "parameters", (json_int_t)m->stored_numbers,
                     "bits_per_byte", bits);
}

static void print_row(const char *name, const mr_lm_model *m, double bits) {
    char layers[64] = "-";
    size_t used = 0;
    for (size_t i = 0; i < m->config.n_layers && used + 8 < sizeof layers; i++)
        if (m->layers[i].replaced)
            used += (size_t)snprintf(layers + used, sizeof layers - used, used ? ",%zu" : "%zu", i);
    printf("%-40s %-9s %8s %5.0f %% %12zu %12zu %10.4f\n", name, m->kind, layers,
           100.0 * (double)m->replaced / (double)m->config.n_layers, m->stored_bytes,
           m->stored_numbers, bits);
    fflush(stdout);
}

static mr_status score(const request *r, session *s, const char *name, const mr_lm_model *m,
                       double *bits) {
    static const char *const units[] = {NULL, "golden", "sim:rgu"};
    mr_lm_options o = {.gpu = cli_gpu_uri(r->gpu),
                       .rgu = units[r->rgu],
                       .stop = &cli_stop,
                       .timeout_ns = 600000000000u};
    meter progress = {name, s->size - 1, isatty(STDERR_FILENO)};
    mr_lm *lm;
    mr_status e = mr_lm_create(m, &o, &lm);
    if (e != MR_OK)
        return e;
    e = mr_lm_score(lm, s->text, s->size, on_progress, &progress, bits);
    mr_lm_destroy(lm);
    if (progress.terminal)
        fprintf(stderr, "\r%60s\r", "");
    return e;
}

static int evaluate(const request *r, session *s, const char *name, json_t *rows) {
    char *path = cli_join(s->folder, name);
    mr_lm_model *m;
    double bits;
    mr_status e = path ? mr_lm_model_open(path, &m) : MR_OUT_OF_MEMORY;
    free(path);
    if (e == MR_UNSUPPORTED) { /* an experiment's format: named, and no reason to stop */
        if (r->json)
            json_array_append_new(rows, json_pack("{s:o, s:o}", "model", cli_json_text(name),
                                                  "unsupported", cli_json_text(mr_last_error())));
        else
            printf("%-40s %s\n", name, mr_last_error());
        return CLI_OK;
    }
    if (e != MR_OK)
        return cli_fail(e);
    e = score(r, s, name, m, &bits);
    int code = e == MR_OK ? CLI_OK : cli_fail(e);
    if (code == CLI_OK && r->json)
        json_array_append_new(rows, row(name, m, bits));
    else if (code == CLI_OK)
        print_row(name, m, bits);
    mr_lm_model_close(m);
    return code;
}

static int read_text(const request *r, session *s) {
    char *own = r->text ? NULL : cli_join(s->folder, "heldout.txt");
    const char *path = r->text ? r->text : own;
    mr_status e = mr_file_read(path, (size_t)1 << 32, &s->text, &s->size);
    int code = e == MR_OK ? CLI_OK : cli_fail(e);
    if (code == CLI_OK && s->size < 2)
        code =
            cli_error(CLI_BAD_INPUT, "%s: %zu bytes cannot be scored; 2 are needed", path, s->size);
    if (r->bytes && r->bytes < s->size)
        s->size = r->bytes;
    free(own);
    return code;
}

static bool wanted(const request *r, const char *name) { return !r->only || strstr(name, r->only); }

static int eval(const request *r, session *s) {
    s->folder = r->zoo ? strdup(r->zoo) : cli_zoo_folder();
    if (!s->folder)
        return CLI_BAD_INPUT;
    int code = read_text(r, s);
    if (code == CLI_OK)
        code = list_variants(s);
    if (code != CLI_OK)
        return code;
    size_t chosen = wanted(r, "base.safetensors");
    for (size_t i = 0; i < s->count; i++)
        chosen += wanted(r, s->names[i]);
    if (!chosen)
        return cli_error(CLI_USAGE, "zoo eval: --only %s: no model has this in its name", r->only);
    json_t *rows = json_array();
    if (!r->json)
        printf("%-40s %-9s %8s %7s %12s %12s %10s\n", "model", "kind", "layers", "replaced",
               "stored bytes", "parameters", "bits/byte");
    if (wanted(r, "base.safetensors"))
        code = evaluate(r, s, "base.safetensors", rows);
    for (size_t i = 0; code == CLI_OK && i < s->count; i++)
        if (wanted(r, s->names[i]))
            code = evaluate(r, s, s->names[i], rows);
    if (code == CLI_OK && r->json)
        return cli_print_json(
            json_pack("{s:I, s:o}", "text_bytes", (json_int_t)s->size, "models", rows));
    json_decref(rows);
    return code == CLI_OK ? cli_flush() : code;
}

int cli_zoo_eval(int argc, char **argv) {
    request r = {0};
    cli_option options[] = {
        {.name = "zoo",
         .kind = CLI_TEXT,
         .value = &r.zoo,
         .hint = "FOLDER",
         .help = "base.safetensors and variants/ (default: the committed zoo)"},
        {.name = "text",
         .kind = CLI_TEXT,
         .value = &r.text,
         .hint = "FILE",
         .help = "text to score (default: heldout.txt of the zoo)"},
        {.name = "bytes",
         .kind = CLI_COUNT,
         .value = &r.bytes,
         .hint = "N",
         .help = "score only the first N bytes",
         .least = 2,
         .most = 4294967296.0},
        {.name = "only",
         .kind = CLI_TEXT,
         .value = &r.only,
         .hint = "WORD",
         .help = "only models whose name has this word"},
        {.name = "rgu",
         .kind = CLI_CHOICE,
         .value = &r.rgu,
         .hint = "off|golden|sim",
         .help = "who makes the generated weights (default off)"},
        {.name = "gpu",
         .kind = CLI_CHOICE,
         .value = &r.gpu,
         .hint = cli_gpu_choices,
         .help = "where the kernels run (default auto)"},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("zoo eval",
                         "Scores the models of the zoo on held-out text: bits per byte, the bytes "
                         "that the\nreplaced layers store, and the trained numbers in them.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    session s = {0};
    code = eval(&r, &s);
    for (size_t i = 0; i < s.count; i++)
        free(s.names[i]);
    free(s.names);
    free(s.text);
    free(s.folder);
    return code;
}
