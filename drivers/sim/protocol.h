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

enum { SIM_JOB_FD = 3, SIM_MEMORY_FD = 4, SIM_MAX_WRITES = 48, SIM_NUM_COUNTERS = 7 };

typedef enum sim_op {
    SIM_HELLO = 1, /* first reply of the process, unasked: it stands, or why not */
    SIM_ALLOC,     /* bytes -> addr */
    SIM_FREE,      /* addr */
    SIM_WRITE,     /* addr, bytes, then the bytes */
    SIM_READ,      /* addr, bytes -> the reply, then the bytes when it is good */
    SIM_RESET,     /* the unit; memory stays */
    SIM_CANCEL,    /* job seq; no reply */
    SIM_JOB,       /* on the job socket: register writes, start, wait for the interrupt */
} sim_op;

typedef enum sim_result {
    SIM_OK = 0,
    SIM_FAILED,
    SIM_NO_MEMORY,
    SIM_CANCELLED,
    SIM_DEAD
} sim_result;

typedef struct sim_request {
    uint32_t op;
    uint32_t num_writes;
    uint64_t seq;
    uint64_t addr, bytes;
    struct {
        uint32_t offset, value;
    } writes[SIM_MAX_WRITES];
} sim_request;

typedef struct sim_reply {
    uint32_t result;
    uint32_t error; /* the unit's ERROR register after a job */
    uint64_t addr;
    uint64_t counters[SIM_NUM_COUNTERS]; /* CYCLES .. MULTS_BUSY */
    char text[512];                      /* one line when result is not SIM_OK */
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
