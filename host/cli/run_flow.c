/* SPDX-License-Identifier: Apache-2.0 */
/* millrace run flow */
#define _GNU_SOURCE /* scandir */
#include "host/cli/cli.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/gpu.h"
#include "host/cli/zoo.h"
#include "host/flow/data.h"
#include "host/flow/generate.h"
#include "host/flow/jacobi.h"
#include "host/flow/nodes.h"
#include "host/flow/plan.h"
#include "host/flow/png.h"
#include "host/io/file.h"
#include "host/pnm/energy.h"
#include "host/pnm/exec.h"
#include "models/golden/pnm.h"
#include "models/golden/pnm_mult.h"

enum { MULT_FP32, MULT_BF16, MULT_HYBRID };
static const double clock_hz = 1e9; /* that the unit's cycles are given in */
static const char suffix[] = ".safetensors";

typedef struct {
    const char *model, *out, *device, *rgu;
    size_t sample, seed, stream, cut, limit, groups, round_trip;
    int part, mult, gen, schedule, placement, jacobi;
    double temperature, timeout, tolerance;
    size_t nodes;
    double loss; /* of the network between them */
    int nic, gpu;
    bool list, json, score, have_stream, have_cut;
    char nic_uri[128]; /* "" without --nodes */
} request;

typedef struct {
    char *folder, path[4096]; /* of the flows, of this one */
    mr_flow *flow;
    mr_flow_images images;
    mr_pnm_exec *exec;
    size_t count;        /* images */
    float *x, *z, *back; /* [count][pixels] */
    float *logdet;
    uint8_t *grey;
    mr_pnm_counters counters; /* summed over programs */
    mr_pnm_energy energy;
    double seconds;
    mr_flow_plan_info info;
    mr_flow_generated made; /* with --rgu */
    mr_flow_jacobi_report jacobi;
    mr_flow_nodes_stats nodes; /* with --nodes, from kernels on: */
    mr_device *kernels;
    mr_device_info kernels_info;
} session;

/* What a run of the unit is asked for. */
typedef struct {
    bool inverse;
    size_t count, first, last; /* images; blocks in order, 0 and 0: all */
    const float *in;
    float *out, *logdet;
} task;

static void end(session *s) {
    mr_pnm_exec_close(s->exec);
    if (s->kernels)
        mr_device_close(s->kernels);
    mr_flow_close(s->flow);
    mr_flow_images_free(&s->images);
    free(s->folder);
    free(s->x);
    free(s->z);
    free(s->back);
    free(s->logdet);
    free(s->grey);
}

/* ---- Models -----------------------------------------------------------------------------------
 */

static bool has_suffix(const char *name) {
    size_t n = strlen(name), m = sizeof suffix - 1;
    return n > m && !strcmp(name + n - m, suffix);
}

static int is_flow(const struct dirent *e) { return has_suffix(e->d_name); }

static int list(const session *s) {
    struct dirent **names = NULL;
    int count = scandir(s->folder, &names, is_flow, alphasort);
    if (count < 0)
        return cli_error(CLI_BAD_INPUT, "%s: cannot open", s->folder);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        printf("%.*s\n", (int)(strlen(name) - (sizeof suffix - 1)), name);
        free(names[i]);
    }
    free(names);
    return cli_flush();
}

/* A name of the zoo, or a file. */
static int open_model(session *s, const request *r) {
    bool file = strchr(r->model, '/') || has_suffix(r->model);
    if (file)
        snprintf(s->path, sizeof s->path, "%s", r->model);
    else
        snprintf(s->path, sizeof s->path, "%s/%s%s", s->folder, r->model, suffix);
    mr_status e = mr_flow_open(s->path, &s->flow);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

/* ---- The unit ---------------------------------------------------------------------------------
 */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_counters(mr_pnm_counters *to, const mr_pnm_counters *c) {
    to->hardware |= c->hardware;
    to->status |= c->status;
    to->cycles = c->cycles > to->cycles ? c->cycles : to->cycles;
    to->products += c->products;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        to->group[g].mv_cycles += c->group[g].mv_cycles;
        to->group[g].stream_cycles += c->group[g].stream_cycles;
        to->group[g].vec_cycles += c->group[g].vec_cycles;
        to->group[g].vec_elements += c->group[g].vec_elements;
        to->group[g].wait_cycles += c->group[g].wait_cycles;
    }
}

static mr_flow_plan_options plan_options(const request *r, const task *t) {
    mr_flow_plan_options o = {.inverse = t->inverse,
                              .groups = (unsigned)r->groups,
                              .schedule = (mr_flow_schedule)r->schedule,
                              .placement = (mr_flow_placement)r->placement,
                              .wide = r->mult == MULT_FP32,
                              .first = t->first,
                              .last = t->last,
                              .mode = {.kind = MR_PNM_EXACT, .log_length = 2}};
    if (r->mult == MULT_HYBRID) {
        o.mode.kind = MR_PNM_SPLIT;
        while (1u << o.mode.log_length < r->stream)
            o.mode.log_length++;
    }
    return o;
}

/* The images in as many programs as chips run at once. */
static mr_status run_task(session *s, const request *r, const task *t, mr_pnm_counters *sum) {
    enum { MOST = 64 };
    mr_flow_plan *plan[MOST] = {0};
    mr_pnm_program *program[MOST];
    mr_pnm_counters counters[MOST];
    size_t chips = mr_pnm_exec_chips(s->exec), pixels = mr_flow_pixels(s->flow), at[MOST + 1];
    chips = chips > MOST ? MOST : chips > t->count ? t->count : chips;
    mr_status e = MR_OK;
    for (size_t i = 0; i < chips && e == MR_OK; i++) {
        mr_flow_plan_options o = plan_options(r, t);
        at[i] = t->count * i / chips;
        o.images = t->count * (i + 1) / chips - at[i];
        e = mr_flow_plan_create(s->flow, &o, &plan[i]);
        if (e != MR_OK)
            break;
        program[i] = mr_flow_plan_program(plan[i]);
        mr_flow_plan_put(plan[i], t->in + at[i] * pixels);
    }
    if (e == MR_OK)
        e = mr_pnm_exec_run(s->exec, program, chips, counters);
    for (size_t i = 0; i < chips && e == MR_OK; i++) {
        mr_pnm_tally tally;
        mr_pnm_energy energy;
        mr_flow_plan_get(plan[i], t->out + at[i] * pixels, t->logdet ? t->logdet + at[i] : NULL);
        mr_pnm_program_tally(program[i], &tally);
        mr_pnm_energy_of(&tally, counters[i].hardware ? &counters[i] : NULL, &energy);
        s->energy.total += sum == &s->counters ? energy.total : 0;
        add_counters(sum, &counters[i]);
    }
    if (e == MR_OK && sum == &s->counters)
        mr_flow_plan_describe(plan[0], &s->info);
    for (size_t i = 0; i < chips; i++)
        mr_flow_plan_destroy(plan[i]);
    return e;
}

/* ---- Overflow: which image, and in which block --------------------------------------------------
 */

static bool all_finite(const float *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}

/* The image once more, block by block, until one makes an infinity or NaN of it. */
static int report_overflow(session *s, const request *r, const task *t, size_t image) {
    size_t pixels = mr_flow_pixels(s->flow), e = 0;
    float *v = malloc(2 * pixels * sizeof *v), ld = 0;
    if (!v || !t->in) {
        free(v);
        return cli_error(CLI_FAILED, "run flow: out of memory");
    }
    memcpy(v, t->in + image * pixels, pixels * sizeof *v);
    mr_status status = MR_OK;
    for (; e < s->flow->blocks && status == MR_OK; e++) {
        task one = {.inverse = t->inverse,
                    .count = 1,
                    .first = e,
                    .last = e + 1,
                    .in = v,
                    .out = v + pixels,
                    .logdet = t->logdet ? &ld : NULL};
        mr_pnm_counters unused = {0};
        status = run_task(s, r, &one, &unused);
        if (status == MR_OK && !all_finite(one.out, pixels))
            break;
        memcpy(v, v + pixels, pixels * sizeof *v);
    }
    free(v);
    if (status != MR_OK)
        return cli_fail(status);
    e = e < s->flow->blocks ? e : s->flow->blocks - 1;
    return cli_error(CLI_FAILED, "%s: %s of image %zu overflows in block %zu: no finite result",
                     s->path, t->inverse ? "the inverse" : "the flow", image,
                     t->inverse ? s->flow->blocks - 1 - e : e);
}

static int run_finite(session *s, const request *r, const task *t) {
    size_t pixels = mr_flow_pixels(s->flow);
    mr_status e = run_task(s, r, t, &s->counters);
    if (e != MR_OK)
        return cli_fail(e);
    for (size_t i = 0; i < t->count; i++)
        if (!all_finite(t->out + i * pixels, pixels) || (t->logdet && !isfinite(t->logdet[i])))
            return report_overflow(s, r, t, i);
    return CLI_OK;
}

/* ---- Sampling and scoring -----------------------------------------------------------------------
 */

static int allocate(session *s, size_t count) {
    size_t pixels = mr_flow_pixels(s->flow);
    s->count = count;
    s->x = malloc(count * pixels * sizeof *s->x);
    s->z = malloc(count * pixels * sizeof *s->z);
    s->back = malloc(count * pixels * sizeof *s->back);
    s->logdet = malloc(count * sizeof *s->logdet);
    s->grey = malloc(count * pixels);
    if (s->x && s->z && s->back && s->logdet && s->grey)
        return CLI_OK;
    return cli_error(CLI_FAILED, "run flow: out of memory for %zu images", count);
}

/* The same with keys and values at the nodes of a NIC cluster. */
static int sample_nodes(session *s, const request *r, const task *t) {
    mr_flow_nodes_options o = {.nic = r->nic_uri,
                               .exec = s->exec,
                               .timeout_ns = (uint64_t)(r->timeout * 1e9),
                               .stop = &cli_stop};
    mr_flow_plan_options plan = plan_options(r, t);
    plan.images = t->count;
    mr_status e = mr_device_open(cli_gpu_uri(r->gpu), &s->kernels);
    if (e == MR_OK)
        e = mr_device_get_info(s->kernels, &s->kernels_info);
    o.device = s->kernels;
    if (e == MR_OK)
        e = mr_flow_nodes_sample(s->flow, &plan, &o, t->in, t->out, &s->nodes);
    if (e != MR_OK)
        return cli_fail(e);
    s->counters = s->nodes.pnm;
    s->energy = s->nodes.energy;
    s->info = s->nodes.plan;
    size_t pixels = mr_flow_pixels(s->flow);
    for (size_t i = 0; i < t->count; i++)
        if (!all_finite(t->out + i * pixels, pixels))
            return report_overflow(s, r, t, i);
    return CLI_OK;
}

static int sample_jacobi(session *s, const request *r, const task *t) {
    mr_flow_jacobi_options o = {.groups = (unsigned)r->groups,
                                .placement = (mr_flow_placement)r->placement,
                                .mode = plan_options(r, t).mode,
                                .wide = r->mult == MULT_FP32,
                                .tolerance = r->tolerance};
    mr_status e = mr_flow_jacobi(s->flow, s->exec, &o, t->count, t->in, t->out, &s->jacobi);
    if (e != MR_OK)
        return cli_fail(e);
    s->counters = s->jacobi.counters;
    s->energy.total = s->jacobi.joules;
    size_t pixels = mr_flow_pixels(s->flow);
    for (size_t i = 0; i < t->count; i++)
        if (!all_finite(t->out + i * pixels, pixels))
            return report_overflow(s, r, t, i);
    return CLI_OK;
}

static int sample(session *s, const request *r) {
    size_t pixels = mr_flow_pixels(s->flow), side = s->flow->set == MR_FLOW_DIGITS ? 8 : 28;
    mr_status e = mr_file_check_writable(r->out);
    if (e != MR_OK)
        return cli_fail(e);
    int code = allocate(s, r->sample);
    if (code != CLI_OK)
        return code;
    mr_flow_normals((uint32_t)r->seed, s->count * pixels, r->temperature, s->z);
    task t = {.inverse = true, .count = s->count, .in = s->z, .out = s->x};
    double start = now();
    code = r->nodes    ? sample_nodes(s, r, &t)
           : r->jacobi ? sample_jacobi(s, r, &t)
                       : run_finite(s, r, &t);
    if (code != CLI_OK)
        return code;
    s->seconds = now() - start;
    for (size_t i = 0; i < s->count; i++)
        mr_flow_tokens_grey(s->flow, s->x + i * pixels, s->grey + i * pixels);
    e = mr_png_grid(r->out, s->grey, s->count, side, side == 8 ? 6 : 2);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

typedef struct {
    double bpd, most, squares;
    size_t images; /* that went there and back */
} score;

static int run_score(session *s, const request *r, score *out) {
    mr_status e = mr_flow_images_read(s->flow->set, r->part ? MR_FLOW_ALL : MR_FLOW_TEST, r->limit,
                                      s->folder, &s->images);
    if (e != MR_OK)
        return cli_fail(e);
    int code = allocate(s, s->images.count);
    if (code != CLI_OK)
        return code;
    size_t pixels = mr_flow_pixels(s->flow);
    for (size_t i = 0; i < s->count; i++)
        mr_flow_image_tokens(s->flow, &s->images, i, s->x + i * pixels);
    task t = {.count = s->count, .in = s->x, .out = s->z, .logdet = s->logdet};
    double start = now();
    if ((code = run_finite(s, r, &t)) != CLI_OK)
        return code;
    s->seconds = now() - start;
    for (size_t i = 0; i < s->count; i++)
        out->bpd += mr_flow_bpd(s->flow->set, s->z + i * pixels, pixels, (double)s->logdet[i]) /
                    (double)s->count;
    out->images = r->round_trip < s->count ? r->round_trip : s->count;
    if (!out->images)
        return CLI_OK;
    mr_pnm_counters unused = {0};
    task back = {.inverse = true, .count = out->images, .in = s->z, .out = s->back};
    if ((e = run_task(s, r, &back, &unused)) != MR_OK)
        return cli_fail(e);
    for (size_t i = 0; i < out->images; i++)
        for (size_t k = i * pixels; k < (i + 1) * pixels; k++) {
            double d = fabs((double)s->back[k] - (double)s->x[k]);
            if (!isfinite(d))
                return report_overflow(s, r, &back, i);
            out->most = fmax(out->most, d);
            out->squares += d * d;
        }
    return CLI_OK;
}

/* ---- Reports ----------------------------------------------------------------------------------
 */

static const char *const mult_names[] = {"fp32", "bf16", "hybrid"};
static const char *const schedule_names[] = {"pipelined", "sequential", "replicated"};
static const char *const placement_names[] = {"tier-aware", "tier-blind"};

static double utilisation(const mr_pnm_counters *c) {
    double stream = 0, busy = 0;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        stream += (double)c->group[g].stream_cycles;
        busy += (double)c->group[g].mv_cycles;
    }
    return busy > 0 ? stream / busy : 0;
}

/* FNV-1a over the bits of all results: equal on devices that agree to the bit. */
static uint64_t digest(const session *s, bool scored) {
    size_t n = s->count * mr_flow_pixels(s->flow);
    const struct {
        const float *v;
        size_t count;
    } part[] = {{scored ? s->z : s->x, n}, {s->logdet, scored ? s->count : 0}};
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; i < part[p].count; i++) {
            uint32_t bits;
            memcpy(&bits, &part[p].v[i], sizeof bits);
            for (unsigned k = 0; k < 32; k += 8)
                hash = (hash ^ (bits >> k & 0xFFu)) * 0x100000001B3u;
        }
    return hash;
}

static json_t *describe_rgu(const session *s, const request *r) {
    const mr_flow_generated *m = &s->made;
    json_int_t dense = 2 * (json_int_t)m->weights, read = (json_int_t)m->seed_bytes;
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "unit", cli_json_text(r->rgu),
                     "cycles", m->hardware ? json_integer((json_int_t)m->cycles) : json_null(),
                     "weights", (json_int_t)m->weights, "tiles", (json_int_t)m->jobs,
                     "tiles_checked", (json_int_t)m->jobs, "tiles_wrong", (json_int_t)m->wrong,
                     "seed_bytes", read, "weight_bytes_avoided",
                     dense > read ? dense - read : (json_int_t)0);
}

static json_t *describe_nic(const session *s, const request *r) {
    const mr_shards_stats *n = &s->nodes.nic;
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "device",
                     cli_json_text(r->nic_uri), "nodes", (json_int_t)n->nodes, "frames",
                     (json_int_t)n->frames, "bytes", (json_int_t)n->bytes, "retransmissions",
                     (json_int_t)n->retransmissions, "merges", (json_int_t)n->merges, "cycles",
                     (json_int_t)n->cycles, "kernels", s->kernels_info.uri);
}

static json_t *describe_jacobi(const session *s, const request *r) {
    json_t *each = json_array();
    for (size_t i = 0; i < s->jacobi.blocks; i++)
        json_array_append_new(each, json_integer((json_int_t)s->jacobi.iterations[i]));
    return json_pack("{s:f, s:o}", "tolerance", r->tolerance, "iterations", each);
}

static int report(const session *s, const request *r, const score *c) {
    double rms = c->images ? sqrt(c->squares / (double)(c->images * mr_flow_pixels(s->flow))) : 0;
    if (!r->json) {
        if (r->score)
            printf("%s: %.5f bits per dimension over %zu images, %s\n", s->flow->name, c->bpd,
                   s->count, mult_names[r->mult]);
        else
            printf("%s: wrote %zu samples to %s\n", s->flow->name, s->count, r->out);
        if (r->rgu)
            printf("%s made %llu weights, %llu of %llu tiles differ from the golden model\n",
                   r->rgu, (unsigned long long)s->made.weights, (unsigned long long)s->made.wrong,
                   (unsigned long long)s->made.jobs);
        if (r->nodes)
            printf("%zu nodes: %llu frames, %llu merges in %llu cycles\n", s->nodes.nic.nodes,
                   (unsigned long long)s->nodes.nic.frames, (unsigned long long)s->nodes.nic.merges,
                   (unsigned long long)s->nodes.nic.cycles);
        if (c->images)
            printf("there and back, %zu images: largest error %.3g, rms %.3g\n", c->images, c->most,
                   rms);
        return cli_flush();
    }
    const mr_pnm_counters *n = &s->counters;
    json_t *j = json_pack("{s:o, s:s, s:s, s:o, s:s, s:I}", "model", cli_json_text(s->flow->name),
                          "kind", mr_flow_kind_name(s->flow->kind), "data",
                          mr_flow_set_name(s->flow->set), "device", cli_json_text(r->device),
                          "mult", mult_names[r->mult], "images", (json_int_t)s->count);
    bool hybrid = r->mult == MULT_HYBRID;
    json_object_set_new(j, "stream", hybrid ? json_integer((json_int_t)r->stream) : json_null());
    json_object_set_new(j, "gen", hybrid ? json_string(r->gen ? "centred" : "unary") : json_null());
    json_object_set_new(j, "cut", hybrid ? json_integer((json_int_t)r->cut) : json_null());
    if (r->score) {
        json_object_set_new(j, "bpd", json_real(c->bpd));
        json_object_set_new(j, "round_trip",
                            json_pack("{s:I, s:f, s:f}", "images", (json_int_t)c->images, "max",
                                      c->most, "rms", rms));
    } else {
        json_object_set_new(j, "out", cli_json_text(r->out));
        json_object_set_new(j, "seed", json_integer((json_int_t)r->seed));
        json_object_set_new(j, "temperature", json_real(r->temperature));
    }
    if (r->jacobi)
        json_object_set_new(j, "jacobi", describe_jacobi(s, r));
    else
        json_object_set_new(j, "mapping",
                            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "schedule",
                                      schedule_names[s->info.schedule], "placement",
                                      placement_names[r->placement], "stages",
                                      (json_int_t)s->info.stages, "replicas",
                                      (json_int_t)s->info.replicas, "batch",
                                      (json_int_t)s->info.batch * (json_int_t)s->info.halves,
                                      "iterations", (json_int_t)s->info.iterations));
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)digest(s, r->score));
    json_object_set_new(j, "digest", json_string(hex));
    json_object_set_new(j, "range", json_boolean(n->status & MR_PNM_STATUS_RANGE));
    json_object_set_new(j, "nonfinite", json_boolean(n->status & MR_PNM_STATUS_NONFINITE));
    bool counted = n->hardware;
    json_object_set_new(j, "cycles", counted ? json_integer((json_int_t)n->cycles) : json_null());
    json_object_set_new(j, "clock_hz", json_real(clock_hz));
    json_object_set_new(j, "utilisation", counted ? json_real(utilisation(n)) : json_null());
    json_object_set_new(j, "products", json_integer((json_int_t)n->products));
    json_object_set_new(j, "energy_j",
                        r->mult == MULT_FP32 ? json_null() : json_real(s->energy.total));
    json_object_set_new(j, "seconds", json_real(s->seconds));
    if (r->rgu)
        json_object_set_new(j, "rgu", describe_rgu(s, r));
    if (r->nodes)
        json_object_set_new(j, "nic", describe_nic(s, r));
    return cli_print_json(j);
}

/* ---- The command ------------------------------------------------------------------------------
 */

static int run(session *s, request *r) {
    char *zoo = cli_zoo_folder();
    s->folder = zoo ? cli_join(zoo, "flows") : NULL;
    free(zoo);
    if (!s->folder)
        return CLI_BAD_INPUT;
    if (r->list)
        return list(s);
    int code = open_model(s, r);
    if (code != CLI_OK)
        return code;
    mr_pnm_exec_options o = mr_pnm_exec_defaults();
    o.gen = r->gen ? MR_PNM_CENTRED : MR_PNM_UNARY;
    o.cut = (unsigned)r->cut;
    o.wide = r->mult == MULT_FP32;
    if (r->nodes)
        o.chips = 1;
    o.stop = &cli_stop;
    o.timeout_ns = (uint64_t)(r->timeout * 1e9);
    mr_status e = mr_pnm_exec_open(r->device, &o, &s->exec);
    if (e == MR_OK && r->rgu)
        e = mr_flow_generate(s->flow, r->rgu, &cli_stop, o.timeout_ns, &s->made);
    if (e != MR_OK)
        return cli_fail(e);
    if (s->made.wrong)
        return cli_error(
            CLI_FAILED, "%s: %llu of %llu tiles made by %s differ from the golden model", s->path,
            (unsigned long long)s->made.wrong, (unsigned long long)s->made.jobs, r->rgu);
    score c = {0};
    code = r->score ? run_score(s, r, &c) : sample(s, r);
    return code == CLI_OK ? report(s, r, &c) : code;
}

static int check(request *r) {
    if (r->list)
        return CLI_OK;
    if (!r->model)
        return cli_error(CLI_USAGE, "run flow: --model is missing (--list names them)");
    if (!r->sample == !r->score)
        return cli_error(CLI_USAGE, "run flow: give --sample or --score");
    if (r->sample && !r->out)
        return cli_error(CLI_USAGE, "run flow: --sample needs --out GRID.png");
    if (r->jacobi && (!r->sample || r->nodes))
        return cli_error(CLI_USAGE, "run flow: --decode jacobi needs --sample, without --nodes");
    if (r->nodes && !r->sample)
        return cli_error(CLI_USAGE, "run flow: --nodes needs --sample");
    if (r->nodes && r->schedule != MR_FLOW_REPLICATED && r->schedule != MR_FLOW_AUTO)
        return cli_error(CLI_USAGE, "run flow: with --nodes every group has the whole flow: "
                                    "--schedule must be replicated");
    if (r->mult == MULT_HYBRID && !r->have_stream)
        return cli_error(CLI_USAGE, "run flow: --mult hybrid needs --stream");
    if (r->mult != MULT_HYBRID && r->have_stream)
        return cli_error(CLI_USAGE, "run flow: --stream needs --mult hybrid");
    if (r->mult != MULT_HYBRID && r->have_cut)
        return cli_error(CLI_USAGE, "run flow: --cut needs --mult hybrid");
    if (r->have_stream && (r->stream & (r->stream - 1)) != 0)
        return cli_error(CLI_USAGE, "run flow: --stream %zu: must be a power of two", r->stream);
    return CLI_OK;
}

#define CHOICE(n, v, h, t)                                                                         \
    { .name = n, .kind = CLI_CHOICE, .value = v, .hint = h, .help = t }
#define COUNT(n, v, l, m, t)                                                                       \
    { .name = n, .kind = CLI_COUNT, .value = v, .hint = "N", .help = t, .least = l, .most = m }
#define TEXT(n, v, h, t)                                                                           \
    { .name = n, .kind = CLI_TEXT, .value = v, .hint = h, .help = t }
#define REAL(n, v, h, l, m, t)                                                                     \
    { .name = n, .kind = CLI_REAL, .value = v, .hint = h, .help = t, .least = l, .most = m }

int cli_run_flow(int argc, char **argv) {
    request r = {.device = "golden",
                 .seed = 1,
                 .temperature = 1,
                 .timeout = 3600,
                 .tolerance = 1e-4,
                 .gen = 1,
                 .groups = MR_PNM_GROUPS,
                 .schedule = MR_FLOW_AUTO,
                 .round_trip = 32,
                 .mult = MULT_BF16};
    cli_option options[] = {
        CHOICE("score", &r.part, "test|all", "bits per dimension of held-out images"),
        COUNT("stream", &r.stream, MR_PNM_STREAM_MIN, MR_PNM_STREAM_MAX,
              "hybrid: stream bits a product, a power of two"),
        COUNT("cut", &r.cut, 0, MR_PNM_CUT_MAX,
              "hybrid: upper fraction bits multiplied in binary (default 0)"),
        TEXT("model", &r.model, "NAME", "a committed flow, or a file"),
        {.name = "list", .kind = CLI_FLAG, .value = &r.list, .help = "name the committed flows"},
        COUNT("sample", &r.sample, 1, 65536, "images to make"),
        TEXT("out", &r.out, "GRID.png", "where the samples go"),
        COUNT("seed", &r.seed, 0, 4294967295.0, "of the samples, 0 too (default 1)"),
        REAL("temperature", &r.temperature, "X", 0, 100, "factor of the noise (default 1)"),
        CHOICE("mult", &r.mult, "fp32|bf16|hybrid", "how products are made (default bf16)"),
        CHOICE("gen", &r.gen, "unary|centred", "hybrid: stream generator (default centred)"),
        TEXT("device", &r.device, "URI", "golden (default), sim:pnm, cpu:, opencl:N, cuda:N"),
        COUNT("limit", &r.limit, 1, 65536, "score the first N images only"),
        COUNT("round-trip", &r.round_trip, 0, 65536, "images sent there and back (default 32)"),
        CHOICE("schedule", &r.schedule, "pipelined|sequential|replicated|auto",
               "how groups share the work (default auto: the faster)"),
        CHOICE("placement", &r.placement, "tier-aware|tier-blind",
               "where weights lie (default tier-aware)"),
        CHOICE("decode", &r.jacobi, "serial|jacobi",
               "sample a transformer flow token by token, or all at once until nothing changes"),
        REAL("tolerance", &r.tolerance, "X", 0, 1,
             "jacobi: what counts as a change (default 0.0001)"),
        TEXT("rgu", &r.rgu, "URI", "who makes matrices that are seeds: sim:rgu, golden, cpu:, ..."),
        COUNT("nodes", &r.nodes, 1, MR_SHARDS_NODES,
              "sample with keys and values at N nodes, attention merged by their NICs"),
        CHOICE("nic", &r.nic, "sim|golden",
               "the nodes' NICs: Verilated or their C model (default sim)"),
        REAL("loss", &r.loss, "P", 0, 1, "probability that the network loses a frame (default 0)"),
        CHOICE("gpu", &r.gpu, cli_gpu_choices, "where the nodes' kernels run (default auto)"),
        COUNT("groups", &r.groups, 1, 65536, "groups to use (default all)"),
        REAL("timeout", &r.timeout, "SECONDS", 0.001, 1e6, "longest wait (default 3600)"),
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code = cli_parse("run flow", "Samples images from a normalizing flow, or scores them.",
                         options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    r.score = options[0].given;
    r.have_stream = options[1].given;
    for (size_t i = 0; options[i].name; i++) {
        bool of_nodes = !strcmp(options[i].name, "nic") || !strcmp(options[i].name, "loss") ||
                        !strcmp(options[i].name, "gpu");
        if (!strcmp(options[i].name, "tolerance") && options[i].given && !r.jacobi)
            return cli_error(CLI_USAGE, "run flow: --tolerance needs --decode jacobi");
        if (of_nodes && options[i].given && !r.nodes)
            return cli_error(CLI_USAGE, "run flow: --%s needs --nodes", options[i].name);
    }
    r.have_cut = options[2].given;
    if ((code = check(&r)) != CLI_OK)
        return code;
    if (r.nodes)
        snprintf(r.nic_uri, sizeof r.nic_uri, "%s?nodes=%zu&loss=%.17g&seed=%zu",
                 r.nic ? "golden" : "sim:nic", r.nodes, r.loss, r.seed);
    session s = {0};
    code = run(&s, &r);
    end(&s);
    return code;
}
