/* Modules: fat binaries made by nvcc, and what to say when there is none for this GPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/cuda/cuda.h"

enum { MAX_IMAGE = 256 << 20, FATBIN_MAGIC = (int)0xBA55ED50, KIND_PTX = 1, KIND_ELF = 2 };

static uint64_t get(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* "sm_75 sm_90 compute_90": what a fat binary holds; "an unknown format" for anything else. */
static void list_contents(const unsigned char *image, size_t size, char *text, size_t text_size) {
    size_t used = 0;
    snprintf(text, text_size, "an unknown format");
    if (size < 16 || get(image, 4) != (uint32_t)FATBIN_MAGIC)
        return;
    size_t at = get(image + 6, 2);
    snprintf(text, text_size, "nothing");
    while (at + 32 <=
           size) { /* entry: kind, version, header bytes, payload bytes, .., architecture at 28 */
        uint64_t kind = get(image + at, 2), header = get(image + at + 4, 4),
                 payload = get(image + at + 8, 8);
        if ((kind != KIND_PTX && kind != KIND_ELF) || header < 32 || payload > size - at)
            return;
        int n = snprintf(text + used, text_size - used, "%s%s_%u", used ? " " : "",
                         kind == KIND_PTX ? "compute" : "sm", (unsigned)get(image + at + 28, 4));
        if (n < 0 || (size_t)n >= text_size - used)
            return;
        used += (size_t)n;
        at += header + payload;
    }
}

static mr_status read_file(const char *path, unsigned char **data, size_t *size,
                           mr_drv_error *error) {
    FILE *f = fopen(path, "rb");
    long length = -1;
    *data = NULL;
    if (!f)
        return mr_drv_fail(error, MR_UNAVAILABLE, "%s: %s", path, strerror(errno));
    if (!fseek(f, 0, SEEK_END))
        length = ftell(f);
    if (length > 0 && length < MAX_IMAGE && !fseek(f, 0, SEEK_SET) &&
        (*data = malloc((size_t)length + 1)) &&
        fread(*data, 1, (size_t)length, f) == (size_t)length) {
        (*data)[length] = 0; /* the driver takes PTX as a string */
        *size = (size_t)length;
        fclose(f);
        return MR_OK;
    }
    free(*data);
    *data = NULL;
    fclose(f);
    return mr_drv_fail(error, MR_UNAVAILABLE, "%s: cannot be read as a GPU binary", path);
}

mr_status cuda_module(const cuda_api *api, const char *dir, const char *source, int sm,
                      CUmodule *module, mr_drv_error *error) {
    const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source,
               *dot = strrchr(base, '.');
    char path[4096], contents[200];
    unsigned char *image;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%.*s.fatbin", dir, dot ? (int)(dot - base) : (int)strlen(base),
             base);
    mr_status status = read_file(path, &image, &size, error);
    if (status != MR_OK)
        return status;
    CUresult code = api->cuModuleLoadData_(module, image);
    if (code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_IMAGE ||
        code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || code == CUDA_ERROR_INVALID_PTX ||
        code == CUDA_ERROR_INVALID_SOURCE) {
        list_contents(image, size, contents, sizeof contents);
        cuda_fail(api, error, "cuModuleLoadData", code);
        mr_drv_error first = *error;
        status = mr_drv_fail(error, MR_UNAVAILABLE,
                             "%s: no code for this GPU, wanted sm_%d, found %s (%.3000s)", path, sm,
                             contents, first.text);
    } else if (code != CUDA_SUCCESS) {
        status = cuda_fail(api, error, path, code);
    }
    free(image);
    return status;
}
