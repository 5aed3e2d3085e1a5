/*
 * The process that runs one Verilated unit: mr_sim_host LIBRARY OPTIONS, sockets at descriptors 3
 * and 4. A process of its own, so that a unit that crashes or hangs takes nobody with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "drivers/sim/protocol.h"
#include "millrace/rgu_regs.h" /* every unit starts and ends a job by the same registers */
#include "sim/sim.h"

enum { MIN_SLICE = 256, MAX_SLICE = 262144, SLICE_NS = 1000000, GRACE_S = 20 };

typedef struct {
    const mr_sim_ops *ops;
    mr_sim *sim;
    uint64_t job;   /* seq of what runs, 0 when idle */
    bool cancelled; /* that job is to stop */
    bool dead;      /* the unit broke a rule; nothing but the end is left */
} sim_host;

/* The unit's answer as ours, with its line of text. */
static void judge(sim_host *h, int code, sim_reply *reply) {
    if (code == MR_SIM_OK)
        return;
    reply->result = code == MR_SIM_ENOMEM ? SIM_NO_MEMORY : SIM_FAILED;
    if (code == MR_SIM_EPROTO) {
        reply->result = SIM_DEAD;
        h->dead = true;
    }
    snprintf(reply->text, sizeof reply->text, "%s", h->ops->error(h->sim));
}

/* ---- The memory socket ------------------------------------------------------------------------
 */

static bool receive_into(sim_host *h, uint64_t addr, uint64_t bytes, sim_reply *reply) {
    void *target = NULL;
    judge(h, h->ops->mem_map(h->sim, addr, bytes, &target), reply);
    if (target)
        return receive_all(SIM_MEMORY_FD, target, bytes);
    char waste[4096]; /* the bytes come all the same */
    while (bytes) {
        size_t part = bytes < sizeof waste ? bytes : sizeof waste;
        if (!receive_all(SIM_MEMORY_FD, waste, part))
            return false;
        bytes -= part;
    }
    return true;
}

/* One request. False when the other side is gone. */
static bool serve_memory(sim_host *h) {
    sim_request r;
    sim_reply reply = {.result = SIM_OK};
    void *source = NULL;
    if (!receive_all(SIM_MEMORY_FD, &r, sizeof r))
        return false;
    switch ((sim_op)r.op) {
    case SIM_CANCEL:
        if (r.seq == h->job)
            h->cancelled = true;
        return true;
    case SIM_ALLOC:
        judge(h, h->ops->mem_alloc(h->sim, r.bytes, 0, &reply.addr), &reply);
        break;
    case SIM_FREE:
        judge(h, h->ops->mem_free(h->sim, r.addr), &reply);
        break;
    case SIM_WRITE:
        if (!receive_into(h, r.addr, r.bytes, &reply))
            return false;
        break;
    case SIM_READ:
        judge(h, h->ops->mem_map(h->sim, r.addr, r.bytes, &source), &reply);
        break;
    case SIM_RESET:
        judge(h, h->ops->reset(h->sim), &reply);
        break;
    default:
        reply.result = SIM_FAILED;
        snprintf(reply.text, sizeof reply.text, "unknown request %u", r.op);
        break;
    }
    return send_all(SIM_MEMORY_FD, &reply, sizeof reply) &&
           (!source || reply.result != SIM_OK || send_all(SIM_MEMORY_FD, source, r.bytes));
}

/* ---- Jobs -------------------------------------------------------------------------------------
 */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Runs until the interrupt, in slices of about a millisecond; between them the memory socket is
 * served. False when the other side is gone.
 */
static bool run_until_interrupt(sim_host *h, sim_reply *reply) {
    uint64_t slice = MIN_SLICE;
    for (;;) {
        uint64_t begin = now_ns();
        int code = h->ops->run(h->sim, slice, NULL);
        if (code != MR_SIM_TIMEOUT) {
            judge(h, code, reply);
            return true;
        }
        uint64_t took = now_ns() - begin;
        if (took < SLICE_NS / 2 && slice < MAX_SLICE)
            slice *= 2;
        else if (took > 2 * SLICE_NS && slice > MIN_SLICE)
            slice /= 2;
        struct pollfd fds[2] = {{.fd = SIM_MEMORY_FD, .events = POLLIN},
                                {.fd = SIM_JOB_FD, .events = POLLRDHUP}};
        while (poll(fds, 2, 0) > 0) {
            if (fds[1].revents || !serve_memory(h))
                return false;
        }
        if (h->cancelled) {
            judge(h, h->ops->reset(h->sim), reply);
            if (reply->result == SIM_OK)
                reply->result = SIM_CANCELLED;
            return true;
        }
    }
}

static int read_registers(sim_host *h, const sim_job *r, sim_reply *reply) {
    int code = MR_SIM_OK;
    for (uint32_t i = 0; i < r->num_reads && code == MR_SIM_OK; i++)
        code = h->ops->reg_read(h->sim, r->reads[i], &reply->values[i]);
    return code;
}

static bool serve_job(sim_host *h) {
    sim_job r;
    sim_reply reply = {.result = SIM_OK};
    const mr_sim_ops *ops = h->ops;
    uint32_t status;
    int code = MR_SIM_OK;
    if (!receive_all(SIM_JOB_FD, &r, sizeof r) || r.num_writes > SIM_MAX_WRITES ||
        r.num_reads > SIM_MAX_READS)
        return false;
    h->job = r.seq;
    h->cancelled = false;
    for (uint32_t i = 0; i < r.num_writes && code == MR_SIM_OK; i++)
        code = ops->reg_write(h->sim, r.writes[i].offset, r.writes[i].value);
    if (code == MR_SIM_OK)
        code = ops->reg_write(h->sim, MR_RGU_IER, MR_RGU_IER_DONE_MASK);
    if (code == MR_SIM_OK)
        code = ops->reg_write(h->sim, MR_RGU_GIE, MR_RGU_GIE_ENABLE_MASK);
    if (code == MR_SIM_OK)
        code = ops->reg_write(h->sim, MR_RGU_CTRL, MR_RGU_CTRL_AP_START_MASK);
    judge(h, code, &reply);
    if (code == MR_SIM_OK && !run_until_interrupt(h, &reply))
        return false;
    if (reply.result == SIM_OK) {
        code = ops->reg_write(h->sim, MR_RGU_ISR, MR_RGU_ISR_DONE_MASK);
        if (code == MR_SIM_OK)
            code = ops->reg_read(h->sim, MR_RGU_CTRL, &status); /* clears ap_done */
        if (code == MR_SIM_OK)
            code = read_registers(h, &r, &reply);
        judge(h, code, &reply);
    }
    h->job = 0;
    return send_all(SIM_JOB_FD, &reply, sizeof reply);
}

/* ---- Start ------------------------------------------------------------------------------------
 */

/* SIM_DEAD: the library is no use; SIM_FAILED: it refuses the options. */
static sim_result start(sim_host *h, const char *library, const char *options, char *text,
                        size_t size) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(text, size, "%s", dlerror());
        return SIM_DEAD;
    }
    const mr_sim_ops *(*entry)(uint32_t) =
        (const mr_sim_ops *(*)(uint32_t))dlsym(handle, MR_SIM_ENTRY);
    h->ops = entry ? entry(MR_SIM_ABI) : NULL;
    if (!h->ops || h->ops->abi != MR_SIM_ABI) {
        snprintf(text, size, "%s: not a simulated unit of interface version %u", library,
                 MR_SIM_ABI);
        return SIM_DEAD;
    }
    return h->ops->open(options, &h->sim, text, size) == MR_SIM_OK ? SIM_OK : SIM_FAILED;
}

/* A unit that never returns does not outlive its user: some time after the sockets closed, the
 * process ends. */
static void *watch(void *unused) {
    struct pollfd fd = {.fd = SIM_JOB_FD, .events = POLLRDHUP};
    (void)unused;
    while (poll(&fd, 1, -1) < 0 && errno == EINTR)
        continue;
    sleep(GRACE_S);
    _exit(1);
}

int main(int argc, char **argv) {
    sim_host h = {0};
    sim_reply hello = {.result = SIM_OK};
    if (argc != 3) {
        fprintf(stderr, "mr_sim_host: run by the sim back end, not by hand\n");
        return 2;
    }
    hello.result = start(&h, argv[1], argv[2], hello.text, sizeof hello.text);
    if (!send_all(SIM_MEMORY_FD, &hello, sizeof hello) || hello.result != SIM_OK)
        return 1;
    pthread_t watcher;
    pthread_create(&watcher, NULL, watch, NULL);
    struct pollfd fds[2] = {{.fd = SIM_JOB_FD, .events = POLLIN},
                            {.fd = SIM_MEMORY_FD, .events = POLLIN}};
    while (!h.dead) {
        if (poll(fds, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (fds[1].revents && !serve_memory(&h))
            break;
        if (fds[0].revents && !serve_job(&h))
            break;
    }
    h.ops->close(h.sim);
    return h.dead ? 1 : 0;
}
