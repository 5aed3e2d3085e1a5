/* SPDX-License-Identifier: Apache-2.0 */
/* millrace run lm */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/gpu.h"
#include "host/cli/zoo.h"
#include "host/io/file.h"
#include "host/lm/lm.h"
#include "host/lm/sample.h"
#include "host/lm/text.h"

enum { RGU_SIM, RGU_GOLDEN, RGU_OFF };
enum { NIC_SIM, NIC_GOLDEN };

typedef struct {
    const char *prompt, *model, *score, *rgu_uri;
    size_t tokens, seed, nodes;
    int rgu, gpu, mode, nic;
    double temperature, top_p, timeout;
    double loss, dup, reorder, corrupt; /* of the network between the nodes */
    bool json, check;
    char nic_uri[256]; /* "" without --nodes */
} request;

typedef struct {
    char *path; /* of the model, when it is the default */
    mr_lm_model *model;
    mr_lm *lm;
    float *logits;
    uint8_t *text; /* the completion */
    size_t length;
    void *score_data;
    size_t score_size;
    double seconds, bits_per_byte;
    double smallest_gap; /* between the two likeliest bytes, over all that were chosen */
    mr_lm_stats stats;
    mr_shards_stats nic;
} session;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- checks before anything is opened ---------------------------------------------------------
 */

static int check_prompt(const request *r) {
    if (!r->prompt)
        return r->score ? CLI_OK : cli_error(CLI_USAGE, "run lm: --prompt is missing");
    size_t n = strlen(r->prompt);
    if (n == 0)
        return cli_error(CLI_USAGE, "run lm: --prompt is empty");
    size_t valid = mr_utf8_valid((const uint8_t *)r->prompt, n);
    if (valid < n)
        return cli_error(CLI_USAGE, "run lm: --prompt is not UTF-8: byte %zu (0x%02X)", valid,
                         (uint8_t)r->prompt[valid]);
    return CLI_OK;
}

/* Without --tokens as many as fit, at most 64. */
static int check_length(request *r, const mr_lm_config *c) {
    size_t n = r->prompt ? strlen(r->prompt) : 0;
    if (n > c->context)
        return cli_error(CLI_USAGE, "run lm: --prompt has %zu bytes, the model's context only %zu",
                         n, c->context);
    if (!r->tokens)
        r->tokens = c->context - n > 64 || c->context == n ? 64 : c->context - n;
    if (r->prompt && n + r->tokens > c->context)
        return cli_error(
            CLI_USAGE,
            "run lm: --tokens %zu: with a prompt of %zu bytes the context of %zu leaves "
            "room for %zu",
            r->tokens, n, c->context, c->context - n);
    return CLI_OK;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

/* Prints what is whole so far of the bytes from *shown on. */
static void print_more(const session *s, size_t *shown, bool last) {
    size_t left = s->length - *shown, partial = 0;
    char *out = malloc(3 * left + 1);
    if (!out)
        return;
    size_t n = mr_utf8_mend(s->text + *shown, left, out, last ? NULL : &partial);
    fwrite(out, 1, n, stdout);
    fflush(stdout);
    free(out);
    *shown = s->length - partial;
}

/* How far the likeliest byte was from the next: what rounding must not exceed. */
static double gap(const float *logits, size_t count) {
    float first = -INFINITY, second = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        float x = logits[i];
        second = x > first ? first : x > second ? x : second;
        first = x > first ? x : first;
    }
    return (double)first - (double)second;
}

static mr_status complete(session *s, const request *r) {
    size_t vocab = s->model->config.vocab, shown = 0;
    mr_sampler sampler = {r->temperature, r->top_p, r->seed};
    double start = now();
    s->smallest_gap = INFINITY;
    mr_status e =
        mr_lm_forward(s->lm, (const uint8_t *)r->prompt, strlen(r->prompt), false, s->logits);
    while (e == MR_OK) {
        s->smallest_gap = fmin(s->smallest_gap, gap(s->logits, vocab));
        s->text[s->length++] = (uint8_t)mr_sample(&sampler, s->logits, vocab);
        if (!r->json)
            print_more(s, &shown, s->length == r->tokens);
        if (s->length == r->tokens)
            break;
        e = mr_lm_forward(s->lm, &s->text[s->length - 1], 1, false, s->logits);
    }
    s->seconds = now() - start;
    if (!r->json && s->length)
        putchar('\n');
    return e;
}

/* ---- reporting --------------------------------------------------------------------------------
 */

static json_t *describe_rgu(const session *s, const request *r) {
    const mr_lm_stats *t = &s->stats;
    json_int_t dense = 2 * (json_int_t)t->weights, read = (json_int_t)t->seed_bytes;
    json_t *j = json_pack(
        "{s:o, s:I, s:I, s:f, s:I, s:I, s:I}", "unit",
        cli_json_text(r->rgu == RGU_OFF ? "off" : r->rgu_uri), "cycles", (json_int_t)t->cycles,
        "weights", (json_int_t)t->weights, "weights_per_cycle",
        t->cycles ? (double)t->weights / (double)t->cycles : 0.0, "weight_bytes_avoided",
        dense > read ? dense - read : 0, "seed_bytes", read, "tiles", (json_int_t)t->jobs);
    if (r->check) {
        json_object_set_new(j, "tiles_checked", json_integer((json_int_t)t->checked));
        json_object_set_new(j, "tiles_wrong", json_integer((json_int_t)t->wrong));
    }
    return j;
}

static json_t *describe_nic(const session *s, const request *r) {
    const mr_shards_stats *t = &s->nic;
    json_t *j =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "device", cli_json_text(r->nic_uri),
                  "nodes", (json_int_t)t->nodes, "frames", (json_int_t)t->frames, "bytes",
                  (json_int_t)t->bytes, "retransmissions", (json_int_t)t->retransmissions, "merges",
                  (json_int_t)t->merges, "cycles", (json_int_t)t->cycles);
    if (s->length)
        json_object_set_new(j, "smallest_gap", json_real(s->smallest_gap));
    return j;
}

static int report_json(const session *s, const request *r) {
    char *text = malloc(3 * s->length + 1), *hex = malloc(2 * s->length + 1);
    if (!text || !hex) {
        free(text);
        free(hex);
        return cli_error(CLI_FAILED, "out of memory");
    }
    size_t n = mr_utf8_mend(s->text, s->length, text, NULL);
    for (size_t i = 0; i < s->length; i++)
        snprintf(hex + 2 * i, 3, "%02x", s->text[i]);
    hex[2 * s->length] = 0;
    json_t *layers = json_array();
    for (size_t i = 0; i < s->model->config.n_layers; i++)
        if (s->model->layers[i].replaced)
            json_array_append_new(layers, json_integer((json_int_t)i));
    json_t *j = json_pack("{s:o, s:s, s:I, s:f}", "text", json_stringn(text, n), "text_hex", hex,
                          "tokens", (json_int_t)s->length, "tokens_per_second",
                          s->seconds > 0 ? (double)s->length / s->seconds : 0.0);
    json_object_set_new(j, "bits_per_byte", r->score ? json_real(s->bits_per_byte) : json_null());
    json_object_set_new(j, "rgu", describe_rgu(s, r));
    if (r->nodes)
        json_object_set_new(j, "nic", describe_nic(s, r));
    json_object_set_new(j, "seconds", json_real(s->seconds));
    json_object_set_new(j, "model",
                        json_pack("{s:o, s:s, s:o, s:I, s:I}", "path",
                                  cli_json_text(s->model->path), "kind", s->model->kind,
                                  "replaced_layers", layers, "layers",
                                  (json_int_t)s->model->config.n_layers, "experts",
                                  (json_int_t)s->model->config.n_experts));
    json_object_set_new(
        j, "kernels",
        json_pack("{s:s, s:s}", "device", mr_lm_gpu(s->lm)->uri, "name", mr_lm_gpu(s->lm)->name));
    free(text);
    free(hex);
    return cli_print_json(j);
}

static int report_text(const session *s, const request *r) {
    const mr_lm_stats *t = &s->stats;
    if (r->prompt)
        fprintf(stderr, "%zu bytes in %.2f s: %.2f a second on %s\n", s->length, s->seconds,
                s->seconds > 0 ? (double)s->length / s->seconds : 0.0, mr_lm_gpu(s->lm)->uri);
    if (t->jobs)
        fprintf(stderr, "%s made %" PRIu64 " weights in %" PRIu64 " jobs", r->rgu_uri, t->weights,
                t->jobs);
    if (t->jobs && t->hardware)
        fprintf(stderr, ", %" PRIu64 " cycles, %.2f weights a cycle", t->cycles,
                (double)t->weights / (double)t->cycles);
    if (t->jobs)
        fputc('\n', stderr);
    if (r->check)
        fprintf(stderr, "%" PRIu64 " tiles compared with the golden model, %" PRIu64 " wrong\n",
                t->checked, t->wrong);
    if (r->nodes)
        fprintf(stderr,
                "%zu nodes: %" PRIu64 " frames, %" PRIu64 " bytes, %" PRIu64 " sent again, %" PRIu64
                " merges in %" PRIu64 " cycles\n",
                s->nic.nodes, s->nic.frames, s->nic.bytes, s->nic.retransmissions, s->nic.merges,
                s->nic.cycles);
    if (r->score)
        printf("%.4f bits per byte on %s\n", s->bits_per_byte, r->score);
    return cli_flush();
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int stop_score(void *context, size_t done) {
    (void)context;
    (void)done;
    return cli_stop;
}

static mr_status open_model(session *s, request *r) {
    mr_lm_options o = {.gpu = cli_gpu_uri(r->gpu),
                       .rgu = r->rgu == RGU_OFF ? NULL : r->rgu_uri,
                       .apply = r->mode == 1,
                       .check = r->check,
                       .stop = &cli_stop,
                       .timeout_ns = (uint64_t)(r->timeout * 1e9),
                       .nic = r->nodes ? r->nic_uri : NULL};
    return mr_lm_create(s->model, &o, &s->lm);
}

static int run(session *s, request *r) {
    int code = check_prompt(r);
    if (code != CLI_OK)
        return code;
    if (!r->model && !(r->model = s->path = cli_zoo_default()))
        return CLI_BAD_INPUT;
    mr_status e = mr_lm_model_open(r->model, &s->model);
    if (e != MR_OK)
        return cli_fail(e);
    if ((code = check_length(r, &s->model->config)) != CLI_OK)
        return code;
    if (r->score &&
        (e = mr_file_read(r->score, (size_t)1 << 32, &s->score_data, &s->score_size)) != MR_OK)
        return cli_fail(e);
    if (r->score && s->score_size < 2)
        return cli_error(CLI_BAD_INPUT, "%s: %zu bytes cannot be scored; 2 are needed", r->score,
                         s->score_size);
    s->logits = malloc(s->model->config.vocab * sizeof *s->logits);
    s->text = malloc(r->tokens);
    if (!s->logits || !s->text)
        return cli_error(CLI_FAILED, "out of memory");
    if ((e = open_model(s, r)) != MR_OK)
        return cli_fail(e);
    if (r->prompt && (e = complete(s, r)) != MR_OK)
        return cli_fail(e);
    if (r->score && (e = mr_lm_score(s->lm, s->score_data, s->score_size, stop_score, NULL,
                                     &s->bits_per_byte)) != MR_OK)
        return cli_fail(e);
    mr_lm_get_stats(s->lm, &s->stats);
    if (r->nodes && (e = mr_lm_get_nic_stats(s->lm, &s->nic)) != MR_OK)
        return cli_fail(e);
    code = r->json ? report_json(s, r) : report_text(s, r);
    if (code == CLI_OK && s->stats.wrong)
        code = cli_error(CLI_FAILED, "run lm: %" PRIu64 " tiles differ from the golden model",
                         s->stats.wrong);
    return code;
}

int cli_run_lm(int argc, char **argv) {
    static const char *const network[] = {"nic", "loss", "dup", "reorder", "corrupt"};
    request r = {.seed = 1, .top_p = 1.0, .timeout = 600};
    cli_option options[] = {
        {.name = "prompt",
         .kind = CLI_TEXT,
         .value = &r.prompt,
         .hint = "TEXT",
         .help = "text to continue (UTF-8)"},
        {.name = "tokens",
         .kind = CLI_COUNT,
         .value = &r.tokens,
         .hint = "N",
         .help = "bytes to write (default 64, or what fits)",
         .least = 1,
         .most = 1e6},
        {.name = "rgu",
         .kind = CLI_CHOICE,
         .value = &r.rgu,
         .hint = "sim|golden|off",
         .help = "who makes the generated weights (default sim)"},
        {.name = "rgu-device",
         .kind = CLI_TEXT,
         .value = &r.rgu_uri,
         .hint = "URI",
         .help = "another unit, such as sim:rgu?stall=20 or cuda:0"},
        {.name = "rgu-mode",
         .kind = CLI_CHOICE,
         .value = &r.mode,
         .hint = "tile|apply",
         .help = "generate tiles, or let the unit multiply (default tile)"},
        {.name = "gpu",
         .kind = CLI_CHOICE,
         .value = &r.gpu,
         .hint = cli_gpu_choices,
         .help = "where the kernels run (default auto)"},
        {.name = "model",
         .kind = CLI_TEXT,
         .value = &r.model,
         .hint = "FILE",
         .help = "model or variant (default: the zoo's)"},
        {.name = "temperature",
         .kind = CLI_REAL,
         .value = &r.temperature,
         .hint = "X",
         .help = "0 always takes the likeliest byte (default 0)",
         .least = 0,
         .most = 100},
        {.name = "top-p",
         .kind = CLI_REAL,
         .value = &r.top_p,
         .hint = "X",
         .help = "sample from the likeliest that reach this probability (default 1)",
         .least = 1e-9,
         .most = 1},
        {.name = "seed",
         .kind = CLI_COUNT,
         .value = &r.seed,
         .hint = "N",
         .help = "of the sampling and of the network's faults (default 1)",
         .least = 0,
         .most = 9007199254740992.0},
        {.name = "score",
         .kind = CLI_TEXT,
         .value = &r.score,
         .hint = "FILE",
         .help = "also report bits per byte on this text"},
        {.name = "check",
         .kind = CLI_FLAG,
         .value = &r.check,
         .help = "compare every tile with the golden model"},
        {.name = "timeout",
         .kind = CLI_REAL,
         .value = &r.timeout,
         .hint = "SECONDS",
         .help = "longest wait for a device (default 600)",
         .least = 0.001,
         .most = 1e6},
        {.name = "nodes",
         .kind = CLI_COUNT,
         .value = &r.nodes,
         .hint = "N",
         .help = "shard the KV cache over N nodes with a compute-NIC each",
         .least = 1,
         .most = 16},
        {.name = "nic",
         .kind = CLI_CHOICE,
         .value = &r.nic,
         .hint = "sim|golden",
         .help = "the nodes' NICs: Verilated or the C model of them (default sim)"},
        {.name = "loss",
         .kind = CLI_REAL,
         .value = &r.loss,
         .hint = "P",
         .help = "probability that the network loses a frame (default 0)",
         .least = 0,
         .most = 1},
        {.name = "dup",
         .kind = CLI_REAL,
         .value = &r.dup,
         .hint = "P",
         .help = "... delivers it twice",
         .least = 0,
         .most = 1},
        {.name = "reorder",
         .kind = CLI_REAL,
         .value = &r.reorder,
         .hint = "P",
         .help = "... delivers it late",
         .least = 0,
         .most = 1},
        {.name = "corrupt",
         .kind = CLI_REAL,
         .value = &r.corrupt,
         .hint = "P",
         .help = "... damages it",
         .least = 0,
         .most = 1},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("run lm", "A language model continues a text.", options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    if (r.rgu_uri && options[2].given)
        return cli_error(CLI_USAGE, "run lm: give --rgu or --rgu-device, not both");
    if (r.check && (r.rgu == RGU_OFF || r.mode == 1))
        return cli_error(CLI_USAGE, "run lm: --check compares generated tiles; %s makes none",
                         r.mode == 1 ? "--rgu-mode apply" : "--rgu off");
    for (size_t i = 0; !r.nodes && options[i].name; i++)
        for (size_t k = 0; k < sizeof network / sizeof network[0]; k++)
            if (options[i].given && !strcmp(options[i].name, network[k]))
                return cli_error(CLI_USAGE, "run lm: --%s needs --nodes", network[k]);
    if (r.nodes)
        snprintf(r.nic_uri, sizeof r.nic_uri,
                 "%s?nodes=%zu&loss=%.17g&dup=%.17g&reorder=%.17g&corrupt=%.17g&seed=%zu",
                 r.nic == NIC_SIM ? "sim:nic" : "golden", r.nodes, r.loss, r.dup, r.reorder,
                 r.corrupt, r.seed);
    if (!r.rgu_uri)
        r.rgu_uri = r.rgu == RGU_SIM ? "sim:rgu" : "golden";
    session s = {0};
    code = run(&s, &r);
    mr_lm_destroy(s.lm);
    mr_lm_model_close(s.model);
    free(s.logits);
    free(s.text);
    free(s.score_data);
    free(s.path);
    return code;
}
