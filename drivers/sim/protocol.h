/*
 * What the back end and the simulator's process say to each other, over two stream sockets: one for
 * jobs, one for memory and control. The second is served while a job runs. Both ends are of one
 * build, so structs travel as they are.
 */
#ifndef DRIVERS_SIM_PROTOCOL_H
#define DRIVERS_SIM_PROTOCOL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { SIM_JOB_FD = 3, SIM_MEMORY_FD = 4, SIM_MAX_WRITES = 48, SIM_MAX_READS = 128 };

typedef enum sim_op {
    SIM_HELLO = 1, /* first reply of the process, unasked: it stands, or why not */
    SIM_ALLOC,     /* bytes -> addr */
    SIM_FREE,      /* addr */
    SIM_WRITE,     /* addr, bytes, then the bytes */
    SIM_READ,      /* addr, bytes -> the reply, then the bytes when it is good */
    SIM_RESET,     /* the unit; memory stays */
    SIM_CANCEL,    /* job seq; no reply */
} sim_op;

typedef enum sim_result {
    SIM_OK = 0,
    SIM_FAILED,
    SIM_NO_MEMORY,
    SIM_CANCELLED,
    SIM_DEAD
} sim_result;

/* On the memory socket. Small: some hundred wait there unread when a unit hangs. */
typedef struct sim_request {
    uint32_t op;
    uint64_t seq;
    uint64_t addr, bytes;
} sim_request;

/* On the job socket: register writes, start, wait for the interrupt, register reads. */
typedef struct sim_job {
    uint64_t seq;
    uint32_t num_writes, num_reads;
    struct {
        uint32_t offset, value;
    } writes[SIM_MAX_WRITES];
    uint32_t reads[SIM_MAX_READS];
} sim_job;

typedef struct sim_reply {
    uint32_t result;
    uint64_t addr;
    uint32_t values[SIM_MAX_READS];
    char text[512]; /* one line when result is not SIM_OK */
} sim_reply;

/* Whole messages or nothing: false when the other side is gone. */
static inline bool receive_all(int fd, void *data, size_t bytes) {
    char *p = data;
    while (bytes) {
        ssize_t n = recv(fd, p, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static inline bool send_all(int fd, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

#endif
