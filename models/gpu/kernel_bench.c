/*
 * Times the compute kernels, RGU and PNM jobs of one device:  kernel_bench URI [SECONDS]
 * One JSON object on standard output. A figure is the median of the device's own times of many
 * launches, each finished before the next, after a warm-up. Used by tools/gpu-baseline; works on
 * any device that runs kernels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <millrace/pnm.h>

#include "models/golden/rgu.h"

enum { MAX_RUNS = 200, WARM_UP = 3 };

/* Arguments: b<bytes> a buffer, n a null buffer, i<integer>, f<float>. `bytes` is what one launch
 * moves at least. */
typedef struct {
    const char *kernel, *shape, *args;
    size_t items, bytes;
} launch_case;

static const launch_case cases[] = {
    {"lm_matmul", "4096 x 4096 bf16, 1 vector",
     "b16384 b33554432 b16384 n i1 n i4096 i4096 i1 i4096 i4096 i0 i4096", 4096, 33554432},
    {"lm_matmul", "4096 x 4096 bf16, 16 vectors",
     "b262144 b33554432 b262144 n i1 n i4096 i4096 i16 i4096 i4096 i0 i16384", 16384, 33554432},
    {"lm_matmul", "256 x 256 bf16, 1 vector",
     "b1024 b131072 b1024 n i1 n i256 i256 i1 i256 i256 i0 i256", 256, 131072},
    {"lm_matmul_code", "4096 x 4096 2-bit, groups of 64, 1 vector",
     "b16384 b4194304 b1048576 b16384 n i1 n i4096 i4096 i64 i2 i1 i4096 i4096 i0 i4096", 4096,
     5242880},
    {"lm_embed", "512 tokens of 256", "b524288 b131072 b2048 i256 i256 i131072", 131072, 786432},
    {"lm_rmsnorm", "512 vectors of 4096", "b8388608 b8388608 b16384 i4096 f1e-5 i512", 512,
     16777216},
    {"lm_rope", "512 positions, 32 heads of 128",
     "b8388608 b131072 b131072 i32 i64 i4096 i0 i1048576", 1048576, 16777216},
    {"lm_attention", "prefill of 256, 8 heads of 32, 4 for keys",
     "b262144 b262144 b131072 b131072 i8 i4 i32 i0 i256 i128 i256 f0.17 i2048", 2048, 786432},
    {"lm_attention_decode", "4096 keys, 32 heads of 128, 8 for keys",
     "b128 b128 b16384 b16384 b16777216 b16777216 i32 i8 i128 i0 i4096 i1024 f0.088 i32", 32,
     33554432},
    {"lm_attention_merge", "16 parts, 32 heads of 128",
     "b16384 b128 b128 b2048 b2048 b262144 i16 i128 i32", 32, 282624},
    {"lm_topk", "4096 rows of 64, top 2", "b32768 b32768 b1048576 i64 i2 i4096", 4096, 1114112},
    {"lm_swiglu", "1 M values", "b4194304 b4194304 b4194304 i1048576", 1048576, 12582912},
    {"lm_gather", "512 rows of 4096", "b8388608 b8388608 n i1 i4096 i2097152", 2097152, 16777216},
    {"lm_scatter", "512 rows of 4096", "b8388608 b8388608 n i4096 i2097152", 2097152, 16777216},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "kernel_bench: %s: %s\n", what, mr_last_error());
    exit(1);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static mr_buffer *filled(mr_device *device, size_t bytes) {
    mr_buffer *buffer;
    char *zeros = calloc(1, bytes);
    if (!zeros || mr_buffer_create(device, bytes, &buffer) ||
        mr_buffer_write(buffer, 0, zeros, bytes))
        die("buffer");
    free(zeros);
    return buffer;
}

/* A submission that can be repeated. */
typedef mr_status (*submit_fn)(mr_queue *queue, void *context, mr_event **event);

/* Median and minimum in microseconds of up to MAX_RUNS runs, or false. */
static bool measure(mr_queue *queue, submit_fn submit, void *context, double limit, double *median,
                    double *least, int *runs) {
    double times[MAX_RUNS] = {0}, end = now() + limit;
    int n = 0;
    for (int i = 0; i < MAX_RUNS + WARM_UP && (now() < end || n < 3); i++) {
        mr_event *event;
        mr_counters counters;
        if (submit(queue, context, &event))
            return false;
        mr_status status = mr_event_wait(event, 60000000000u);
        if (status == MR_OK)
            status = mr_event_counters(event, &counters);
        mr_event_destroy(event);
        if (status != MR_OK)
            return false;
        if (i >= WARM_UP)
            times[n++] = 1e-3 * (double)counters.host_ns;
    }
    qsort(times, (size_t)n, sizeof *times, by_value);
    *median = times[n / 2];
    *least = times[0];
    *runs = n;
    return true;
}

static void report(bool *first, const char *kernel, const char *shape, bool good, double median,
                   double least, int runs, double bytes, double weights, double products) {
    printf("%s\n    {\"kernel\": \"%s\", \"shape\": \"%s\", ", *first ? "" : ",", kernel, shape);
    *first = false;
    if (!good) {
        printf("\"error\": \"");
        for (const char *p = mr_last_error(); *p && *p != '\n'; p++)
            printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
        printf("\"}");
        return;
    }
    printf("\"runs\": %d, \"median_us\": %.3f, \"least_us\": %.3f, \"gigabytes_per_second\": %.3f",
           runs, median, least, bytes / median * 1e-3);
    if (weights > 0)
        printf(", \"weights_per_second\": %.4g", weights / median * 1e6);
    if (products > 0)
        printf(", \"%s_per_second\": %.4g", strcmp(kernel, "pnm vec") ? "products" : "elements",
               products / median * 1e6);
    printf("}");
}

/* ---- Kernels ----------------------------------------------------------------------------------
 */

typedef struct {
    const char *name;
    mr_arg args[32];
    size_t num_args, global[3], local[3];
} launch;

static mr_status submit_launch(mr_queue *queue, void *context, mr_event **event) {
    launch *l = context;
    return mr_kernel_launch(queue, l->name, l->args, l->num_args, l->global, l->local, event);
}

static void run_case(mr_device *device, mr_queue *queue, const launch_case *c, double limit,
                     bool *first) {
    launch l = {
        .name = c->kernel, .global = {(c->items + 63) / 64 * 64, 1, 1}, .local = {64, 1, 1}};
    double median = 0, least = 0;
    int runs = 0;
    char text[512];
    snprintf(text, sizeof text, "%s", c->args);
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        mr_arg *a = &l.args[l.num_args++];
        if (*word == 'b')
            *a = mr_arg_buffer(filled(device, strtoull(word + 1, NULL, 10)), 0);
        else if (*word == 'n')
            *a = mr_arg_buffer(NULL, 0);
        else if (*word == 'i')
            *a = mr_arg_i32((int32_t)strtol(word + 1, NULL, 10));
        else
            *a = mr_arg_f32(strtof(word + 1, NULL));
    }
    bool good = measure(queue, submit_launch, &l, limit, &median, &least, &runs);
    report(first, c->kernel, c->shape, good, median, least, runs, (double)c->bytes, 0, 0);
    for (size_t i = 0; i < l.num_args; i++)
        if (l.args[i].kind == MR_ARG_BUFFER && l.args[i].u.view.buffer)
            mr_buffer_destroy(l.args[i].u.view.buffer);
}

/* ---- RGU jobs ---------------------------------------------------------------------------------
 */

typedef struct {
    mr_rgu_job job;
    bool apply;
    mr_buffer *seeds, *src, *dst;
} rgu;

static mr_status submit_rgu(mr_queue *queue, void *context, mr_event **event) {
    rgu *r = context;
    mr_view seeds = {r->seeds, 0}, none = {NULL, 0}, src = {r->src, 0}, dst = {r->dst, 0};
    return r->apply ? mr_rgu_apply(queue, &r->job, seeds, none, src, dst, event)
                    : mr_rgu_tile(queue, &r->job, seeds, none, dst, event);
}

static void run_rgu(mr_device *device, mr_queue *queue, uint32_t n, uint32_t terms, uint32_t batch,
                    double limit, bool *first) {
    enum { SIZE = 2048 };
    uint32_t chunks = SIZE >> n, records = chunks * chunks * terms;
    size_t planes = (size_t)mr_rgu_planes((int)n);
    int16_t *angles = malloc(records * 2 * planes * sizeof *angles);
    float *gain = malloc(records * sizeof *gain);
    uint8_t *odd = malloc(records);
    if (!angles || !gain || !odd)
        die("memory");
    for (size_t i = 0; i < records * 2 * planes; i++)
        angles[i] = (int16_t)(i * 40503u);
    for (uint32_t i = 0; i < records; i++) {
        gain[i] = 1.0f;
        odd[i] = i & 1;
    }
    mr_seed seed = {(int)n, (int)terms, SIZE, SIZE, angles, gain, odd, NULL};
    size_t bytes = mr_rgu_image_bytes(&seed);
    void *image = malloc(bytes);
    if (!image)
        die("memory");
    mr_rgu_pack(&seed, image);
    rgu r = {.job = mr_rgu_job_init(), .apply = batch > 0};
    r.job.n = n, r.job.terms = terms;
    r.job.chunks_in = r.job.chunks_out = chunks;
    r.job.d_in = r.job.d_out = r.job.row1 = r.job.col1 = SIZE;
    r.job.has_odd = true;
    r.job.batch = batch ? batch : 1;
    r.job.src_stride = 4 * SIZE;
    r.job.dst_stride = batch ? 4 * SIZE : 2 * SIZE;
    r.seeds = filled(device, bytes);
    r.src = filled(device, (size_t)4 * SIZE * r.job.batch);
    r.dst = filled(device, batch ? (size_t)4 * SIZE * batch : (size_t)2 * SIZE * SIZE);
    if (mr_buffer_write(r.seeds, 0, image, bytes))
        die("seeds");
    for (size_t i = 0; i < SIZE * (size_t)r.job.batch; i++) {
        float x = (float)(i * 40503u % 1999) - 999.0f; /* a vector of zeros would be less work */
        if (mr_buffer_write(r.src, 4 * i, &x, 4))
            die("src");
    }
    double median = 0, least = 0, weights = batch ? 0 : (double)SIZE * SIZE;
    int runs = 0;
    char shape[96];
    if (batch)
        snprintf(shape, sizeof shape, "2048 x 2048, n %u, %u term(s), %u vector(s)", n, terms,
                 batch);
    else
        snprintf(shape, sizeof shape, "2048 x 2048 bf16, n %u, %u term(s)", n, terms);
    bool good = measure(queue, submit_rgu, &r, limit, &median, &least, &runs);
    report(first, batch ? "rgu apply" : "rgu tile", shape, good, median, least, runs,
           batch ? 8.0 * SIZE * batch : 2.0 * SIZE * SIZE, weights, 0);
    mr_buffer_destroy(r.seeds);
    mr_buffer_destroy(r.src);
    mr_buffer_destroy(r.dst);
    free(angles);
    free(gain);
    free(odd);
    free(image);
}

/* ---- PNM jobs: the four groups do the same at once ----------------------------------------------
 */

typedef struct {
    mr_pnm_job job;
    mr_buffer *memory;
} pnm;

static mr_status submit_pnm(mr_queue *queue, void *context, mr_event **event) {
    pnm *p = context;
    return mr_pnm_run(queue, &p->job, (mr_view){p->memory, 0}, event);
}

static void set16(uint8_t *d, unsigned lsb, unsigned value) {
    d[lsb / 8] = (uint8_t)value;
    d[lsb / 8 + 1] = (uint8_t)(value >> 8);
}

/* A square matrix times vectors, or (stream 0) 2^x of vectors, `repeats` times in each group. */
static void run_pnm(mr_device *device, mr_queue *queue, unsigned size, unsigned vectors,
                    unsigned stream, unsigned repeats, double limit, bool *first) {
    enum { D = MR_PNM_DESC_BYTES, ROW = 4 * MR_PNM_ROW_WORDS, OPS = 4, Y = 2048 };
    unsigned kc = size / MR_PNM_ROW_WORDS, rows = kc * vectors, columns = kc * size / MR_PNM_PES;
    size_t data = (size_t)MR_PNM_GROUPS * OPS * D, bytes = (size_t)columns * MR_PNM_PES * 32;
    if (bytes < (size_t)rows * ROW)
        bytes = (size_t)rows * ROW;
    uint8_t *image = calloc(1, data + bytes);
    uint64_t base;
    pnm p = {.job = mr_pnm_job_init(), .memory = filled(device, data + bytes)};
    if (!image || mr_buffer_address(p.memory, &base))
        die("memory");
    for (size_t i = 0; i < bytes / 2; i++) { /* numbers near 1, as float32 and as bf16 */
        unsigned code = 0x3F00u + (unsigned)(i * 40503u >> 7 & 0xFFu) + (i & 1) * 0x8000u;
        image[data + 2 * i] = (uint8_t)code;
        image[data + 2 * i + 1] = (uint8_t)(code >> 8);
    }
    base += data;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        uint8_t *d = image + (size_t)g * OPS * D;
        d[0] = MR_PNM_DESC_LOAD;
        set16(d, MR_PNM_D_LOAD_ROWS_LSB, rows);
        memcpy(d + MR_PNM_D_LOAD_ADDR_LSB / 8, &base, 8);
        d += D;
        d[0] = MR_PNM_DESC_WLOAD;
        set16(d, MR_PNM_D_WLOAD_COLUMNS_LSB, columns);
        memcpy(d + MR_PNM_D_WLOAD_ADDR_LSB / 8, &base, 8);
        d += D;
        if (stream) {
            unsigned log = 0;
            while (1u << log < stream)
                log++;
            d[0] = MR_PNM_DESC_MATVEC;
            d[2] = (uint8_t)(log << (MR_PNM_D_MATVEC_LOG_LENGTH_LSB % 8));
            d[MR_PNM_D_MATVEC_WEXP_LSB / 8] = 127;
            set16(d, MR_PNM_D_MATVEC_KC_LSB, kc);
            set16(d, MR_PNM_D_MATVEC_OUTPUTS_LSB, size);
            set16(d, MR_PNM_D_MATVEC_VECTORS_LSB, vectors);
            set16(d, MR_PNM_D_MATVEC_X_STRIDE_LSB, kc);
            set16(d, MR_PNM_D_MATVEC_X_RUN_LSB, kc);
            set16(d, MR_PNM_D_MATVEC_Y_LSB, Y);
            set16(d, MR_PNM_D_MATVEC_Y_STRIDE_LSB, kc);
        } else {
            d[0] = MR_PNM_DESC_VEC;
            d[1] = 1 << (MR_PNM_D_VEC_FN_LSB % 8);
            set16(d, MR_PNM_D_VEC_COUNT_LSB, vectors);
            set16(d, MR_PNM_D_VEC_WIDTH_LSB, kc);
            set16(d, MR_PNM_D_VEC_A_STRIDE_LSB, kc);
            set16(d, MR_PNM_D_VEC_D_LSB, Y);
            set16(d, MR_PNM_D_VEC_D_STRIDE_LSB, kc);
        }
        d += D;
        d[0] = MR_PNM_DESC_LOOP;
        set16(d, MR_PNM_D_LOOP_TARGET_LSB, 2);
        set16(d, MR_PNM_D_LOOP_COUNT_LSB, repeats);
        p.job.list[g].offset = (uint64_t)g * OPS * D;
        p.job.list[g].count = OPS;
    }
    if (mr_buffer_write(p.memory, 0, image, data + bytes))
        die("lists");
    double median = 0, least = 0, per_job = (double)MR_PNM_GROUPS * repeats * size * vectors;
    int runs = 0;
    char shape[96];
    if (stream)
        snprintf(shape, sizeof shape, "%u x %u, %u vector(s), L = %u, %u times", size, size,
                 vectors, stream, repeats);
    else
        snprintf(shape, sizeof shape, "2^x of %u vectors of %u, %u times", vectors, size, repeats);
    bool good = measure(queue, submit_pnm, &p, limit, &median, &least, &runs);
    report(first, stream ? "pnm matvec" : "pnm vec", shape, good, median, least, runs,
           (double)(data + bytes), 0, per_job * (stream ? size : 1));
    mr_buffer_destroy(p.memory);
    free(image);
}

int main(int argc, char **argv) {
    mr_device *device;
    mr_queue *queue;
    mr_device_info info;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 60;
    bool first = true;
    if (argc < 2) {
        fprintf(stderr, "usage: kernel_bench URI [SECONDS]\n");
        return 2;
    }
    if (mr_device_open(argv[1], &device) || mr_queue_create(device, &queue) ||
        mr_device_get_info(device, &info))
        die(argv[1]);
    size_t count = sizeof cases / sizeof cases[0];
    double limit = seconds / (double)(count + 13);
    printf("{\n  \"uri\": \"%s\",\n  \"device\": \"%s\",\n  \"timings\": [", info.uri, info.name);
    for (uint32_t n = 8; n <= 10; n += 2) {
        run_rgu(device, queue, n, 1, 0, limit, &first);
        run_rgu(device, queue, n, 8, 0, limit, &first);
        run_rgu(device, queue, n, 1, 1, limit, &first);
        run_rgu(device, queue, n, 1, 16, limit, &first);
    }
    if (info.caps & MR_CAP_PNM) {
        run_pnm(device, queue, 256, 64, 16, 1, limit, &first);
        run_pnm(device, queue, 256, 1, 16, 50, limit, &first);
        run_pnm(device, queue, 64, 64, 16, 10, limit, &first);
        run_pnm(device, queue, 64, 1, 16, 1000, limit, &first);
        run_pnm(device, queue, 64, 64, 0, 10, limit, &first);
    }
    for (size_t i = 0; i < count; i++)
        run_case(device, queue, &cases[i], limit, &first);
    printf("\n  ]\n}\n");
    mr_device_close(device);
    return 0;
}
