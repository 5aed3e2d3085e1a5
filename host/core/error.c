/* The thread's last message, and names of results. */
#include "host/core/error.h"

#include <stdarg.h>
#include <stdio.h>

/* Long enough for a compiler's log; a longer one is cut. */
static _Thread_local char last_error[8192];

mr_status mr_fail(mr_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

const char *mr_last_error(void) { return last_error; }

const char *mr_status_name(mr_status status) {
    switch (status) {
    case MR_OK:
        return "MR_OK";
    case MR_PENDING:
        return "MR_PENDING";
    case MR_TIMEOUT:
        return "MR_TIMEOUT";
    case MR_DEVICE_ERROR:
        return "MR_DEVICE_ERROR";
    case MR_DEVICE_LOST:
        return "MR_DEVICE_LOST";
    case MR_CANCELLED:
        return "MR_CANCELLED";
    case MR_INVALID_ARGUMENT:
        return "MR_INVALID_ARGUMENT";
    case MR_INVALID_HANDLE:
        return "MR_INVALID_HANDLE";
    case MR_NOT_FOUND:
        return "MR_NOT_FOUND";
    case MR_UNAVAILABLE:
        return "MR_UNAVAILABLE";
    case MR_UNSUPPORTED:
        return "MR_UNSUPPORTED";
    case MR_OUT_OF_MEMORY:
        return "MR_OUT_OF_MEMORY";
    case MR_LIMIT:
        return "MR_LIMIT";
    case MR_IO_ERROR:
        return "MR_IO_ERROR";
    case MR_BAD_FORMAT:
        return "MR_BAD_FORMAT";
    }
    return "MR_UNKNOWN";
}

const char *mr_version(void) { return "0.1.0"; }

size_t mr_rgu_format_bytes(mr_rgu_format format) {
    switch (format) {
    case MR_RGU_BF16:
    case MR_RGU_FP16:
        return 2;
    case MR_RGU_FP8E4M3:
    case MR_RGU_FP8E5M2:
    case MR_RGU_INT8:
        return 1;
    case MR_RGU_FP32:
        return 4;
    }
    return 0;
}
