/* Included before everything else where Verilator's run-time is compiled for a simulator library:
 * what it would print or abort on becomes the failure text of the simulator that runs. */
#ifndef SIM_VERILATED_HOOKS_H
#define SIM_VERILATED_HOOKS_H
#ifdef __cplusplus
extern "C"
#endif
    int
    mr_sim_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define VL_PRINTF mr_sim_printf
#define VL_USER_FINISH 1
#define VL_USER_STOP 1
#define VL_USER_FATAL 1
#endif
