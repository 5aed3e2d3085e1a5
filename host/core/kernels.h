/* The kernels that were built in. */
#ifndef HOST_CORE_KERNELS_H
#define HOST_CORE_KERNELS_H

#include "drivers/driver.h"

extern const mr_kernel_table mr_kernels_builtin;

/* NULL when there is no kernel of that name. */
const mr_kernel *mr_kernel_find(const char *name);

#endif
