/* SPDX-License-Identifier: Apache-2.0 */
/* --gpu: which device runs the compute kernels. */
#ifndef HOST_CLI_GPU_H
#define HOST_CLI_GPU_H

static const char cli_gpu_choices[] = "auto|cpu|opencl|cuda";

/* URI of the choice. auto: a CUDA device if there is one, else the CPU. (An OpenCL device is
 * as often the CPU again, and slower than the kernels compiled for it: it is used when asked for.)
 */
const char *cli_gpu_uri(int choice);

#endif
