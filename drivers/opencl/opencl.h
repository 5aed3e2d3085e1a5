/* What the files of the OpenCL back end share. */
#ifndef DRIVERS_OPENCL_OPENCL_H
#define DRIVERS_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>

#include "drivers/driver.h"

typedef struct ocl_device {
    const mr_kernel_table *table;
    cl_device_id id;
    cl_context context;
    cl_command_queue transfer; /* of mr_buffer_write() and _read() */
    cl_program *programs;      /* one a source */
    cl_kernel *kernels;        /* one a table entry, made when first launched */
    pthread_mutex_t lock;      /* arguments of a kernel object and its launch go together */
    size_t align;              /* bytes; where a sub-buffer may start */
    unsigned index;
} ocl_device;

const char *ocl_error_name(cl_int code);
/* "clFinish failed: CL_OUT_OF_RESOURCES (-5)"; the status fits the code. */
mr_status ocl_fail(mr_drv_error *error, const char *what, cl_int code);
void ocl_device_text(cl_device_id id, cl_device_info what, char *text, size_t size);

/* Builds all sources, from `cache_dir` where a binary is there ("" for no cache). */
mr_status ocl_build(ocl_device *dev, const char *cache_dir, mr_drv_error *error);

#endif
