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
    cl_program *programs;      /* one a source, made when first needed */
    cl_kernel *kernels;        /* one a table entry, made when first launched */
    pthread_mutex_t lock;      /* arguments of a kernel object and its launch go together */
    size_t align;              /* bytes; where a sub-buffer may start */
    unsigned index;
    char cache_dir[3900]; /* "": no cache */
    bool cache_always;    /* also what was built quickly */
} ocl_device;

const char *ocl_error_name(cl_int code);
/* "clFinish failed: CL_OUT_OF_RESOURCES (-5)"; the status fits the code. */
mr_status ocl_fail(mr_drv_error *error, const char *what, cl_int code);
void ocl_device_text(cl_device_id id, cl_device_info what, char *text, size_t size);

/* The program of a source, built on first use. With the device's lock held. */
mr_status ocl_program(ocl_device *dev, size_t source, cl_program *program, mr_drv_error *error);
/* Whether the device's compiler works at all. */
mr_status ocl_probe(ocl_device *dev, mr_drv_error *error);

#endif
