/* SPDX-License-Identifier: Apache-2.0 */
/* millrace nic bench */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <millrace/nic_frame.h>

#include "host/cli/nic_bench.h"

enum { FRAMES = 200, OPERATIONS = 24 };

/* The worst of all that was measured, beside what docs/nic.md's numbers ask. */
typedef struct {
    double in_rate, out_rate, occupancy;
    uint64_t lost, route, merge; /* frames; cycles; cycles beyond a beat for each of the payload */
} worst;

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 0; }

static void take_rate(worst *w, const nic_rate *r, bool routed) {
    double in = ratio(r->in_beats, r->in_cycles), out = ratio(r->out_beats, r->out_cycles);
    w->in_rate = in < w->in_rate ? in : w->in_rate;
    if (routed)
        w->out_rate = out < w->out_rate ? out : w->out_rate;
    w->lost += r->lost;
}

static json_t *rate_json(const nic_rate *r) {
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "frames", (json_int_t)r->frames, "lost",
                     (json_int_t)r->lost, "in_beats_per_cycle", ratio(r->in_beats, r->in_cycles),
                     "in_frames_per_cycle", ratio(r->frames, r->in_cycles), "out_beats_per_cycle",
                     ratio(r->out_beats, r->out_cycles), "out_frames_per_cycle",
                     ratio(r->out_frames, r->out_cycles));
}

static void rate_print(const char *what, const char *size, const nic_rate *r) {
    printf("%-8s %-22s %8.3f %8.3f %8.3f %8.3f %6" PRIu64 "\n", what, size,
           ratio(r->in_beats, r->in_cycles), ratio(r->frames, r->in_cycles),
           ratio(r->out_beats, r->out_cycles), ratio(r->out_frames, r->out_cycles), r->lost);
}

static mr_status rates(nic_bench *b, json_t *out, bool json, worst *w) {
    static const size_t sizes[] = {32, 64, 128, 256, 512, 1024, 1472, 2048, 4096, 8192, 9000};
    json_t *pass = json_array(), *deliver = json_array(), *store = json_array();
    mr_status e = MR_OK;
    char size[32];
    json_object_set_new(out, "pass", pass);
    json_object_set_new(out, "deliver", deliver);
    json_object_set_new(out, "store", store);
    if (!json)
        printf("%-8s %-22s %8s %8s %8s %8s %6s\n", "path", "UDP bytes", "beats in", "frames in",
               "beats out", "fr. out", "lost");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && e == MR_OK; i++) {
        nic_rate r;
        snprintf(size, sizeof size, "%zu", sizes[i]);
        e = nic_bench_pass(b, sizes[i], sizes[i], FRAMES, 1, &r);
        json_t *j = rate_json(&r);
        json_object_set_new(j, "udp_bytes", json_integer((json_int_t)sizes[i]));
        json_array_append_new(pass, j);
        if (e == MR_OK)
            take_rate(w, &r, true);
        if (e == MR_OK && !json)
            rate_print("pass", size, &r);
        if (e != MR_OK || sizes[i] < 34)
            continue;
        e = nic_bench_deliver(b, sizes[i], FRAMES / 2, &r);
        j = rate_json(&r);
        json_object_set_new(j, "udp_bytes", json_integer((json_int_t)sizes[i]));
        json_array_append_new(deliver, j);
        if (e == MR_OK)
            take_rate(w, &r, true);
        if (e == MR_OK && !json)
            rate_print("deliver", size, &r);
        if (e != MR_OK || sizes[i] > 4096)
            continue;
        e = nic_bench_store(b, sizes[i], FRAMES / 2, &r);
        j = rate_json(&r);
        json_object_set_new(j, "kv_bytes", json_integer((json_int_t)sizes[i]));
        json_array_append_new(store, j);
        if (e == MR_OK)
            take_rate(w, &r, false);
        if (e == MR_OK && !json)
            rate_print("store", size, &r);
    }
    return e;
}

/* Shapes of contributions; heads 0 is a reduction. */
static const struct {
    const char *dtype;
    unsigned code;
    size_t heads, dim;
} shapes[] = {
    {"bf16", MR_NIC_DT_BF16, 32, 128},   {"bf16", MR_NIC_DT_BF16, 8, 128},
    {"bf16", MR_NIC_DT_BF16, 40, 80},    {"bf16", MR_NIC_DT_BF16, 1, 32},
    {"fp16", MR_NIC_DT_FP16, 32, 128},   {"fp32", MR_NIC_DT_FP32, 16, 128},
    {"bf16", MR_NIC_DT_BF16, 0, 4480},   {"fp32", MR_NIC_DT_FP32, 0, 2240},
    {"int32", MR_NIC_DT_INT32, 0, 2240},
};

static json_t *shape_json(size_t i) {
    return json_pack("{s:s, s:s, s:I, s:I}", "opcode", shapes[i].heads ? "PARTIAL" : "REDUCE",
                     "dtype", shapes[i].dtype, "heads",
                     (json_int_t)(shapes[i].heads ? shapes[i].heads : 1), "dim",
                     (json_int_t)shapes[i].dim);
}

static mr_status merges(nic_bench *b, json_t *out, bool json, worst *w) {
    json_t *list = json_array();
    mr_status e = MR_OK;
    json_object_set_new(out, "merge", list);
    if (!json)
        printf("\n%-8s %-22s %8s %8s %8s %8s %8s %6s\n", "merge", "shape", "occupied", "beats in",
               "latency", "beats", "budget", "lost");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && e == MR_OK; i++) {
        nic_rate r;
        uint64_t cycles = 0, bytes = 0, beats;
        e = nic_bench_merge(b, shapes[i].code, shapes[i].heads, shapes[i].dim, OPERATIONS, &r);
        if (e == MR_OK)
            e = nic_bench_merge_latency(b, shapes[i].code, shapes[i].heads, shapes[i].dim, &cycles,
                                        &bytes);
        beats = (bytes + 63) / 64;
        if (e == MR_OK) {
            take_rate(w, &r, false);
            w->merge = cycles > beats + w->merge ? cycles - beats : w->merge;
            if (i == 0) /* the longest payload of the type that is asked for */
                w->occupancy = ratio(r.engine_beats, r.engine_cycles);
        }
        json_t *j = shape_json(i);
        json_object_set_new(j, "shards", json_integer(8));
        json_object_set_new(j, "merge_occupancy",
                            json_real(ratio(r.engine_beats, r.engine_cycles)));
        json_object_set_new(j, "in_beats_per_cycle", json_real(ratio(r.in_beats, r.in_cycles)));
        json_object_set_new(j, "lost", json_integer((json_int_t)r.lost));
        json_object_set_new(j, "latency_cycles", json_integer((json_int_t)cycles));
        json_object_set_new(j, "payload_bytes", json_integer((json_int_t)bytes));
        json_object_set_new(j, "payload_beats", json_integer((json_int_t)beats));
        json_array_append_new(list, j);
        if (e == MR_OK && !json) {
            char text[40];
            snprintf(text, sizeof text, "%s %zu x %zu", shapes[i].dtype, shapes[i].heads,
                     shapes[i].dim);
            printf("%-8s %-22s %8.3f %8.3f %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64 "\n",
                   shapes[i].heads ? "merge" : "reduce", text,
                   ratio(r.engine_beats, r.engine_cycles), ratio(r.in_beats, r.in_cycles), cycles,
                   beats, beats + 64, r.lost);
        }
    }
    return e;
}

static mr_status latencies(nic_bench *b, json_t *out, bool json, worst *w) {
    static const size_t sizes[] = {64, 1024, 4096};
    json_t *list = json_array();
    mr_status e = MR_OK;
    json_object_set_new(out, "latency", list);
    if (!json)
        puts("\nlatency, cycles from the last beat in to the first beat out");
    for (int p = 0; p < NIC_PATHS; p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && e == MR_OK; i++) {
            uint64_t cycles = 0;
            e = nic_bench_latency(b, (nic_path)p, sizes[i], &cycles);
            if (p != NIC_PATH_STORED && p != NIC_PATH_READ && cycles > w->route)
                w->route = cycles;
            json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "path", nic_path_names[p],
                                                  "payload_bytes", (json_int_t)sizes[i], "cycles",
                                                  (json_int_t)cycles));
            if (e == MR_OK && !json)
                printf("%-8s %6zu bytes %6" PRIu64 "\n", nic_path_names[p], sizes[i], cycles);
        }
    return e;
}

static mr_status sweep(nic_bench *b, size_t times, size_t seed, json_t *out, bool json, worst *w) {
    nic_rate r;
    mr_status e =
        nic_bench_pass(b, NIC_BENCH_MIN_UDP, NIC_BENCH_MAX_UDP, times, (uint64_t)seed, &r);
    json_t *j = rate_json(&r);
    json_object_set_new(j, "times", json_integer((json_int_t)times));
    json_object_set_new(out, "sweep", j);
    if (e == MR_OK)
        take_rate(w, &r, true);
    if (e == MR_OK && !json) {
        putchar('\n');
        rate_print("pass", "32 to 9000, shuffled", &r);
    }
    return e;
}

static void figure(json_t *list, bool json, const char *name, double value, const char *unit,
                   const char *asked) {
    json_array_append_new(list, json_pack("{s:s, s:f, s:s, s:s}", "name", name, "figure", value,
                                          "unit", unit, "asked", asked));
    if (!json)
        printf("figure: %s: %.6g %s (asked: %s)\n", name, value, unit, asked);
}

static void figures(const worst *w, size_t times, json_t *out, bool json) {
    json_t *list = json_array();
    char name[96];
    json_object_set_new(out, "figures", list);
    if (!json)
        putchar('\n');
    if (times)
        snprintf(name, sizeof name, "in, lowest, UDP lengths 32..9000 %zu times each among it",
                 times);
    else
        snprintf(name, sizeof name, "in, lowest");
    figure(list, json, name, w->in_rate, "beats a cycle", "1");
    figure(list, json, "out, lowest", w->out_rate, "beats a cycle",
           "1 sustained; one idle beat at a start is 0.003 here");
    figure(list, json, "frames lost", (double)w->lost, "frames", "0");
    figure(list, json, "merge engine occupied, bf16 32 x 128", w->occupancy, "beats a cycle",
           "132 of every 134: a beat each cycle, less the headers");
    figure(list, json, "route latency, highest", (double)w->route, "cycles", "<= 64");
    figure(list, json, "merge latency beyond the payload's beats, highest", (double)w->merge,
           "cycles", "<= 64");
}

int cli_nic_bench(int argc, char **argv) {
    const char *device = "sim:nic";
    size_t times = 0, seed = 1;
    bool json = false;
    cli_option options[] = {
        {.name = "device",
         .kind = CLI_TEXT,
         .value = &device,
         .hint = "URI",
         .help = "the simulated NIC (sim:nic)"},
        {.name = "sweep",
         .kind = CLI_COUNT,
         .value = &times,
         .hint = "N",
         .help = "also N frames of every UDP length, shuffled (0)",
         .most = 1000},
        {.name = "seed",
         .kind = CLI_COUNT,
         .value = &seed,
         .hint = "N",
         .help = "of the sweep's order (1)",
         .most = 4294967295.0},
        {.name = "json", .kind = CLI_FLAG, .value = &json, .help = "print one JSON object"},
        {.name = NULL}};
    int code =
        cli_parse("nic bench", "Measures the simulated NIC, cycle by cycle.", options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    nic_bench *b = calloc(1, sizeof *b);
    json_t *out = json_object();
    if (!b || !out) {
        free(b);
        json_decref(out);
        return cli_error(CLI_FAILED, "out of memory");
    }
    json_object_set_new(out, "device", cli_json_text(device));
    worst w = {.in_rate = 1e9, .out_rate = 1e9};
    mr_status e = nic_bench_open(b, device);
    if (e == MR_OK)
        e = rates(b, out, json, &w);
    if (e == MR_OK)
        e = merges(b, out, json, &w);
    if (e == MR_OK)
        e = latencies(b, out, json, &w);
    if (e == MR_OK && times)
        e = sweep(b, times, seed, out, json, &w);
    if (e == MR_OK)
        figures(&w, times, out, json);
    if (e == MR_OK)
        json_object_set_new(out, "cycles", json_integer((json_int_t)b->l->ops->cycles(b->l)));
    nic_bench_close(b);
    free(b);
    if (e == MR_OK && json)
        return cli_print_json(out);
    json_decref(out);
    return e == MR_OK ? cli_flush() : cli_fail(e);
}
