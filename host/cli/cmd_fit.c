/* SPDX-License-Identifier: Apache-2.0 */
/* millrace rgu fit: seeds for a given weight, or for recorded inputs and outputs. */
#include "host/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/io/file.h"
#include "host/io/npy.h"
#include "host/io/safetensors.h"
#include "host/units/rgu_fit.h"

typedef struct {
    const char *weight, *tensor, *in, *out_pairs, *name, *out;
    int n, parity;
    size_t terms, steps, seed;
    double rate, start_angle;
    bool json;
} request;

typedef struct {
    float *target, *x, *y; /* owned */
    size_t d_out, d_in, pairs;
} subject;

/* ---- what is to be fitted ---------------------------------------------------------------------
 */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static int all_finite(const float *v, size_t count, const char *path) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(v[i]))
            return cli_error(CLI_BAD_INPUT, "%s: element %zu is not finite", path, i);
    return CLI_OK;
}

static int copy_tensor(const request *r, const mr_st_tensor *t, subject *s) {
    if (t->dtype != MR_ST_F32 && t->dtype != MR_ST_BF16 && t->dtype != MR_ST_F16)
        return cli_error(CLI_BAD_INPUT, "%s: tensor %s: dtype is %s, must be F32, BF16 or F16",
                         r->weight, r->tensor, mr_st_dtype_name(t->dtype));
    if (t->rank != 2 || t->count == 0)
        return cli_error(CLI_BAD_INPUT, "%s: tensor %s: must be a matrix, not empty", r->weight,
                         r->tensor);
    s->target = malloc(t->count * sizeof(float));
    if (!s->target)
        return cli_error(CLI_FAILED, "out of memory for %zu weights", t->count);
    for (size_t i = 0; i < t->count; i++)
        s->target[i] = (float)mr_st_tensor_f64(t, i);
    s->d_out = t->shape[0];
    s->d_in = t->shape[1];
    return all_finite(s->target, t->count, r->weight);
}

static int weight_from_tensor(const request *r, subject *s) {
    if (!r->tensor)
        return cli_error(CLI_USAGE, "rgu fit: --tensor is missing: which tensor of %s?", r->weight);
    mr_safetensors *st;
    mr_status e = mr_safetensors_open(r->weight, &st);
    if (e != MR_OK)
        return cli_fail(e);
    const mr_st_tensor *t = mr_safetensors_find(st, r->tensor);
    int code = t ? copy_tensor(r, t, s)
                 : cli_error(CLI_BAD_INPUT, "%s: tensor %s is missing", r->weight, r->tensor);
    mr_safetensors_close(st);
    return code;
}

static int matrix_from_npy(const char *path, float **data, size_t *rows, size_t *cols) {
    mr_npy a;
    mr_status e = mr_npy_read_f32(path, 2, &a);
    if (e != MR_OK)
        return cli_fail(e);
    *data = a.data; /* the array is now the caller's */
    *rows = a.shape[0];
    *cols = a.shape[1];
    if (a.count == 0)
        return cli_error(CLI_BAD_INPUT, "%s: the matrix is empty", path);
    return all_finite(a.data, a.count, path);
}

static int read_subject(const request *r, subject *s) {
    if (!r->weight == !(r->in && r->out_pairs) || !r->in != !r->out_pairs)
        return cli_error(CLI_USAGE,
                         "rgu fit: give either --weight, or both --inputs and --outputs");
    if (r->weight && ends_with(r->weight, ".npy"))
        return r->tensor ? cli_error(CLI_USAGE, "rgu fit: --tensor has no meaning with a .npy file")
                         : matrix_from_npy(r->weight, &s->target, &s->d_out, &s->d_in);
    if (r->weight)
        return weight_from_tensor(r, s);
    size_t pairs;
    int code = matrix_from_npy(r->in, &s->x, &s->pairs, &s->d_in);
    if (code == CLI_OK)
        code = matrix_from_npy(r->out_pairs, &s->y, &pairs, &s->d_out);
    if (code == CLI_OK && pairs != s->pairs)
        code = cli_error(CLI_BAD_INPUT, "%s has %zu vectors, %s has %zu", r->in, s->pairs,
                         r->out_pairs, pairs);
    return code;
}

/* ---- progress ---------------------------------------------------------------------------------
 */

typedef struct {
    size_t steps;
    bool terminal;
    time_t last;
} meter;

static int on_progress(void *context, int step, double error) {
    meter *m = context;
    time_t now = time(NULL);
    if (now != m->last || (size_t)step == m->steps) {
        /* one line that is written over; on a file, a line a second would only fill it */
        if (m->terminal)
            fprintf(stderr, "\rfit: step %d of %zu, relative error %.5f ", step, m->steps, error);
        m->last = now;
    }
    return cli_stop;
}

/* ---- the seed file ----------------------------------------------------------------------------
 */

static mr_status write_seeds(const request *r, const subject *s, const mr_fit_result *fit) {
    size_t d = (size_t)1 << r->n, co = (s->d_out + d - 1) / d, ci = (s->d_in + d - 1) / d;
    size_t planes = (size_t)(r->n * (r->n - 1) / 2);
    char names[3][512], keys[2][512], n[8], shape[48];
    snprintf(names[0], sizeof names[0], "%s.angles", r->name);
    snprintf(names[1], sizeof names[1], "%s.gain", r->name);
    snprintf(names[2], sizeof names[2], "%s.odd", r->name);
    snprintf(keys[0], sizeof keys[0], "%s.n", r->name);
    snprintf(keys[1], sizeof keys[1], "%s.shape", r->name);
    snprintf(n, sizeof n, "%d", r->n);
    snprintf(shape, sizeof shape, "%zu,%zu", s->d_out, s->d_in);
    const mr_st_output tensors[3] = {
        {names[0], MR_ST_I16, 5, {r->terms, co, ci, 2, planes}, fit->angles},
        {names[1], MR_ST_F32, 3, {r->terms, co, ci}, fit->gain},
        {names[2], MR_ST_U8, 3, {r->terms, co, ci}, fit->odd},
    };
    const char *metadata[] = {keys[0], n, keys[1], shape};
    return mr_safetensors_write(r->out, tensors, 3, metadata, 2);
}

static int fit(const request *r, subject *s) {
    int code = read_subject(r, s);
    if (code != CLI_OK)
        return code;
    mr_status e = mr_file_check_writable(r->out);
    if (e != MR_OK)
        return cli_fail(e);
    meter m = {.steps = r->steps, .terminal = isatty(STDERR_FILENO)};
    mr_fit_options o = mr_fit_defaults();
    o.n = r->n;
    o.terms = (int)r->terms;
    o.d_out = s->d_out;
    o.d_in = s->d_in;
    o.target = s->target;
    o.pairs = s->pairs;
    o.x = s->x;
    o.y = s->y;
    o.parity = (mr_fit_parity)r->parity;
    o.steps = (int)r->steps;
    o.rate = r->rate;
    o.start_angle = r->start_angle;
    o.seed = r->seed;
    o.progress = on_progress;
    o.context = &m;
    mr_fit_result result;
    const char *why = mr_fit(&o, &result);
    if (m.terminal)
        fputc('\n', stderr);
    if (why)
        return cli_error(CLI_FAILED, "rgu fit: %s", why);
    if (cli_stop) {
        mr_fit_free(&result);
        return cli_error(CLI_INTERRUPTED, "rgu fit: interrupted after %d steps, nothing written",
                         result.steps);
    }
    e = write_seeds(r, s, &result);
    double error = result.error, span = result.span_error;
    int steps = result.steps;
    mr_fit_free(&result);
    if (e != MR_OK)
        return cli_fail(e);
    if (r->json)
        return cli_print_json(
            json_pack("{s:s, s:[I,I], s:i, s:I, s:i, s:f, s:o, s:s}", "name", r->name, "shape",
                      (json_int_t)s->d_out, (json_int_t)s->d_in, "n", r->n, "terms",
                      (json_int_t)r->terms, "steps", steps, "relative_error", error, "span_error",
                      s->target ? json_real(span) : json_null(), "out", cli_json_text(r->out)));
    printf("%s: %zu x %zu from %zu term%s of n = %d: relative error %.5f after %d steps\n", r->name,
           s->d_out, s->d_in, r->terms, r->terms == 1 ? "" : "s", r->n, error, steps);
    if (s->target)
        printf("the nearest matrix that any number of such terms can make: %.5f\n", span);
    printf("wrote %s\n", r->out);
    return cli_flush();
}

int cli_rgu_fit(int argc, char **argv) {
    mr_fit_options d = mr_fit_defaults();
    request r = {.name = "fitted",
                 .terms = (size_t)d.terms,
                 .steps = (size_t)d.steps,
                 .seed = 1,
                 .rate = d.rate,
                 .start_angle = d.start_angle,
                 .n = 0,
                 .parity = (int)d.parity};
    cli_option options[] = {
        {.name = "weight",
         .kind = CLI_TEXT,
         .value = &r.weight,
         .hint = "FILE",
         .help = "matrix to fit: float32 .npy, or safetensors with --tensor"},
        {.name = "tensor",
         .kind = CLI_TEXT,
         .value = &r.tensor,
         .hint = "NAME",
         .help = "tensor in that file"},
        {.name = "inputs",
         .kind = CLI_TEXT,
         .value = &r.in,
         .hint = "X.npy",
         .help = "recorded inputs, float32 [pairs, d_in]"},
        {.name = "outputs",
         .kind = CLI_TEXT,
         .value = &r.out_pairs,
         .hint = "Y.npy",
         .help = "recorded outputs, float32 [pairs, d_out]"},
        {.name = "name",
         .kind = CLI_TEXT,
         .value = &r.name,
         .hint = "NAME",
         .help = "name of the projection in the seed file (default fitted)"},
        {.name = "n",
         .kind = CLI_CHOICE,
         .value = &r.n,
         .hint = "8|10",
         .help = "dimension of the algebra (default 8)"},
        {.name = "terms",
         .kind = CLI_COUNT,
         .value = &r.terms,
         .hint = "N",
         .help = "terms a chunk, 1 to 32 (default 1)",
         .least = 1,
         .most = 32},
        {.name = "parity",
         .kind = CLI_CHOICE,
         .value = &r.parity,
         .hint = "even|odd|alternate",
         .help = "parity of the terms (default even)"},
        {.name = "steps",
         .kind = CLI_COUNT,
         .value = &r.steps,
         .hint = "N",
         .help = "steps of the descent",
         .least = 1,
         .most = 1e6},
        {.name = "rate",
         .kind = CLI_REAL,
         .value = &r.rate,
         .hint = "X",
         .help = "first step of the angles, radians",
         .least = 1e-9,
         .most = 10},
        {.name = "start-angle",
         .kind = CLI_REAL,
         .value = &r.start_angle,
         .hint = "X",
         .help = "spread of the first angles, radians",
         .least = 0,
         .most = 10},
        {.name = "seed",
         .kind = CLI_COUNT,
         .value = &r.seed,
         .hint = "N",
         .help = "of the first angles (default 1)",
         .least = 0,
         .most = 9007199254740992.0},
        {.name = "out",
         .kind = CLI_TEXT,
         .value = &r.out,
         .hint = "FILE",
         .help = "seed file to write (safetensors)",
         .required = true},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code =
        cli_parse("rgu fit",
                  "Finds seeds for a weight, or for recorded inputs and outputs, by gradient "
                  "descent.",
                  options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    if (!*r.name || strlen(r.name) > 400)
        return cli_error(CLI_USAGE, "rgu fit: --name must have 1 to 400 bytes");
    r.n = r.n ? 10 : 8;
    subject s = {0};
    code = fit(&r, &s);
    free(s.target);
    free(s.x);
    free(s.y);
    return code;
}
