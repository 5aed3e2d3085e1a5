/* How the library reports: set the calling thread's message and return the status in one go. */
#ifndef HOST_CORE_ERROR_H
#define HOST_CORE_ERROR_H

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets mr_last_error() of this thread and returns `status`:  return mr_fail(MR_NOT_FOUND, ...); */
mr_status mr_fail(mr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
