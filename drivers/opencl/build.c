/*
 * Programs: compiled from the embedded sources, or loaded from binaries of an earlier run. A source
 * is built when its first kernel is launched, so nobody waits for kernels that are not used.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "drivers/opencl/opencl.h"

enum { SLOW_NS = 1000000000 };

/* A product and a sum that follow each other stay two roundings, as in the golden models. */
static const char prelude[] = "#pragma OPENCL FP_CONTRACT OFF\n";

static uint64_t mix(uint64_t hash, const char *text) { /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return (hash ^ 0xFF) * 0x100000001B3u;
}

/* Everything that a binary depends on is in its name. */
static void cache_path(const ocl_device *dev, const char *dir, const mr_kernel_source *source,
                       const char *options, char *path, size_t size) {
    static const cl_device_info parts[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION,
                                           CL_DRIVER_VERSION};
    uint64_t hash = 0xCBF29CE484222325u ^ source->hash;
    char text[512];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ocl_device_text(dev->id, parts[i], text, sizeof text);
        hash = mix(hash, text);
    }
    hash = mix(mix(hash, options), prelude);
    snprintf(path, size, "%s/opencl-%016llx.bin", dir, (unsigned long long)hash);
}

static bool build(const ocl_device *dev, cl_program program, const char *options, cl_int *code) {
    *code = clBuildProgram(program, 1, &dev->id, options, NULL, NULL);
    return *code == CL_SUCCESS;
}

static cl_program load(const ocl_device *dev, const char *path, const char *options) {
    FILE *f = fopen(path, "rb");
    cl_program program = NULL;
    unsigned char *data = NULL;
    struct stat info;
    cl_int code, binary;
    if (!f)
        return NULL;
    if (!fstat(fileno(f), &info) && info.st_size > 0 && info.st_size < (64 << 20) &&
        (data = malloc((size_t)info.st_size)) &&
        fread(data, 1, (size_t)info.st_size, f) == (size_t)info.st_size) {
        size_t bytes = (size_t)info.st_size;
        const unsigned char *start = data;
        program =
            clCreateProgramWithBinary(dev->context, 1, &dev->id, &bytes, &start, &binary, &code);
        if (program && (code || binary || !build(dev, program, options, &code))) {
            clReleaseProgram(program); /* damaged or of another driver: compile again */
            program = NULL;
        }
    }
    free(data);
    fclose(f);
    return program;
}

/* The cache is a convenience: what cannot be written is silently not kept. */
static void store(cl_program program, const char *path) {
    size_t bytes = 0;
    char temp[4200];
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) || !bytes)
        return;
    unsigned char *data = malloc(bytes);
    snprintf(temp, sizeof temp, "%s.%ld.part", path, (long)getpid());
    if (data && !clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL)) {
        FILE *f = fopen(temp, "wb");
        if (f) {
            bool good = fwrite(data, 1, bytes, f) == bytes;
            good = fclose(f) == 0 && good;
            if (!good || rename(temp, path))
                unlink(temp);
        }
    }
    free(data);
}

static mr_status compile(ocl_device *dev, const mr_kernel_source *source, const char *options,
                         cl_program *out, mr_drv_error *error) {
    const char *texts[] = {prelude, source->text};
    cl_int code;
    cl_program program = clCreateProgramWithSource(dev->context, 2, texts, NULL, &code);
    if (!program)
        return ocl_fail(error, "clCreateProgramWithSource", code);
    if (build(dev, program, options, &code)) {
        *out = program;
        return MR_OK;
    }
    static const char no_log[] = "(no log)";
    char log[5000] = "";
    if (clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL) ||
        !log[0])
        memcpy(log, no_log, sizeof no_log);
    clReleaseProgram(program);
    log[sizeof log - 1] = 0;
    return mr_drv_fail(error, MR_UNAVAILABLE, "%s does not build on this device: %s (%d)\n%s",
                       source->file, ocl_error_name(code), code, log);
}

static const char *build_options(const ocl_device *dev) {
    cl_device_fp_config config = 0;
    clGetDeviceInfo(dev->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
               ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
               : "-cl-std=CL1.2";
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

mr_status ocl_program(ocl_device *dev, size_t index, cl_program *out, mr_drv_error *error) {
    const mr_kernel_source *source = &dev->table->sources[index];
    const char *options = build_options(dev);
    char path[4096] = "";
    if (!dev->programs[index] && *dev->cache_dir) {
        cache_path(dev, dev->cache_dir, source, options, path, sizeof path);
        dev->programs[index] = load(dev, path, options);
    }
    if (!dev->programs[index]) {
        uint64_t begin = now_ns();
        mr_status status = compile(dev, source, options, &dev->programs[index], error);
        if (status != MR_OK)
            return status;
        /* Some platforms make binaries only when asked for them, slowly, and remember for
         * themselves. */
        if (*path && (dev->cache_always || now_ns() - begin > SLOW_NS))
            store(dev->programs[index], path);
    }
    *out = dev->programs[index];
    return MR_OK;
}

mr_status ocl_probe(ocl_device *dev, mr_drv_error *error) {
    static const mr_kernel_source probe = {
        "a kernel of one line", "__kernel void mr_probe(__global int *x) { x[0] = 1; }\n", 0};
    cl_program program;
    mr_status status = compile(dev, &probe, build_options(dev), &program, error);
    if (status == MR_OK)
        clReleaseProgram(program);
    return status;
}
