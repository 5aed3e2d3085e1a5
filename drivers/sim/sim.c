/* The sim back end: a Verilated unit in a process of its own (mr_sim_host), reached through two
 * sockets. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/driver.h"
#include "drivers/sim/pnm.h"
#include "drivers/sim/protocol.h"
#include "millrace/rgu_regs.h"

enum { MAX_SIMULATORS = 32, DEFAULT_MEMORY_MIB = 4096, MAX_TEXT = 1200 };
static const uint64_t patience_ns = 3000000000u; /* from the first interrupt to the kill */
enum { ANSWER_SECONDS = 10 }; /* memory and control are served at once, also while a job runs */
static const uint64_t leave_ns = 15000000000u; /* from closing to the kill */

/* The units that are run by jobs. */
typedef struct sim_unit {
    const char *target, *uri, *name;
    uint32_t caps;
} sim_unit;
static const sim_unit units[] = {
    {"rgu", "sim:rgu", "rotor generation unit, board wrapper in Verilator", MR_CAP_RGU},
    {"pnm", "sim:pnm", "near-memory unit, board wrapper in Verilator", MR_CAP_PNM},
};
enum { UNITS = sizeof units / sizeof units[0] };

static atomic_int live_simulators;
extern char **environ;

typedef struct sim_mem {
    uint64_t addr, bytes;
    struct sim_mem *prev, *next;
} sim_mem;

typedef struct sim_device {
    const sim_unit *unit;
    char library[PATH_MAX], host_path[PATH_MAX], options[MAX_TEXT];
    uint64_t memory;
    pid_t pid;
    int job_fd, memory_fd;
    pthread_mutex_t memory_lock; /* one exchange on memory_fd at a time; the list of memories */
    pthread_mutex_t job_lock;    /* one job at a time */
    pthread_mutex_t state_lock;  /* what follows */
    bool dead;
    char death[160];
    uint64_t job;      /* seq of the job in progress, 0: none */
    void *job_queue;   /* whose it is */
    uint64_t asked_ns; /* when its end was first asked for, 0: not */
    uint64_t last_seq;
    sim_mem *memories;
} sim_device;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Life and death of the process ------------------------------------------------------------
 */

/* Collects the process and remembers how it ended. `said` is its own last line, if it had one. */
static mr_status bury(sim_device *dev, const char *said, mr_drv_error *error) {
    pthread_mutex_lock(&dev->state_lock);
    if (!dev->dead) {
        int state = 0;
        kill(dev->pid, SIGKILL); /* no harm when it is gone: it was not waited for yet */
        pid_t got;
        do
            got = waitpid(dev->pid, &state, 0);
        while (got < 0 && errno == EINTR);
        dev->dead = true;
        if (said && *said)
            snprintf(dev->death, sizeof dev->death, "%.150s", said);
        else if (got == dev->pid && WIFSIGNALED(state))
            snprintf(dev->death, sizeof dev->death, "process %ld was killed by signal %d (%s)",
                     (long)dev->pid, WTERMSIG(state), strsignal(WTERMSIG(state)));
        else
            snprintf(dev->death, sizeof dev->death, "process %ld ended by itself", (long)dev->pid);
        dev->pid = 0;
    }
    mr_status status = mr_drv_fail(error, MR_DEVICE_LOST, "the simulator died: %s", dev->death);
    pthread_mutex_unlock(&dev->state_lock);
    return status;
}

/* Why the memory socket gave up: NULL when the other side is gone, whose end tells more. */
static const char *silence(char text[64]) {
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return NULL;
    snprintf(text, 64, "it did not answer for %d s", ANSWER_SECONDS);
    return text;
}

static mr_status judge(sim_device *dev, const sim_reply *reply, mr_drv_error *error) {
    switch ((sim_result)reply->result) {
    case SIM_OK:
        return MR_OK;
    case SIM_NO_MEMORY:
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "%s", reply->text);
    case SIM_CANCELLED:
        return mr_drv_fail(error, MR_CANCELLED, "stopped while it ran");
    case SIM_DEAD:
        return bury(dev, reply->text, error);
    case SIM_FAILED:
        break;
    }
    return mr_drv_fail(error, MR_DEVICE_ERROR, "%s", reply->text);
}

/* Two sockets whose far ends are out of the way of descriptors 3 and 4. */
static bool make_sockets(int ours[2], int theirs[2]) {
    for (int i = 0; i < 2; i++)
        ours[i] = theirs[i] = -1;
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
            return false;
        ours[i] = pair[0];
        theirs[i] = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
        close(pair[1]);
        if (theirs[i] < 0)
            return false;
    }
    return true;
}

static void close_all(const int *fds) {
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static mr_status spawn(sim_device *dev, mr_drv_error *error) {
    int ours[2], theirs[2];
    char *argv[] = {dev->host_path, dev->library, dev->options, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    if (!make_sockets(ours, theirs)) {
        int why = errno;
        close_all(ours);
        close_all(theirs);
        return mr_drv_fail(error, MR_LIMIT, "no sockets for the simulator: %s", strerror(why));
    }
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs[0], SIM_JOB_FD);
    posix_spawn_file_actions_adddup2(&actions, theirs[1], SIM_MEMORY_FD);
    posix_spawnattr_init(&attr);
    /* Its own group: an interrupt from the terminal is for the program, which then lets the
     * simulator go. */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    int code = posix_spawn(&dev->pid, dev->host_path, &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    close_all(theirs);
    if (code) {
        close_all(ours);
        dev->dead = true;
        return mr_drv_fail(error, MR_UNAVAILABLE, "%s: %s", dev->host_path, strerror(code));
    }
    dev->job_fd = ours[0];
    dev->memory_fd = ours[1];
    struct timeval patience = {ANSWER_SECONDS, 0};
    setsockopt(dev->memory_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(dev->memory_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    dev->dead = false;
    sim_reply hello;
    char why[64];
    errno = 0;
    if (!receive_all(dev->memory_fd, &hello, sizeof hello))
        return bury(dev, silence(why), error);
    if (hello.result != SIM_OK) {
        bury(dev, hello.text, error);
        return mr_drv_fail(error, hello.result == SIM_DEAD ? MR_UNAVAILABLE : MR_INVALID_ARGUMENT,
                           "%.500s", hello.text);
    }
    return MR_OK;
}

static void end_process(sim_device *dev) {
    if (dev->job_fd >= 0)
        close(dev->job_fd);
    if (dev->memory_fd >= 0)
        close(dev->memory_fd);
    dev->job_fd = dev->memory_fd = -1;
    if (dev->dead || !dev->pid)
        return;
    /* It ends when its sockets do, and then closes its trace; one that hangs is not waited for
     * without end. */
    for (uint64_t end = now_ns() + leave_ns; now_ns() < end;) {
        pid_t got = waitpid(dev->pid, NULL, WNOHANG);
        if (got == dev->pid || (got < 0 && errno == ECHILD))
            return;
        struct timespec t = {0, end - now_ns() > leave_ns - 20000000 ? 200000 : 2000000};
        nanosleep(&t, NULL);
    }
    kill(dev->pid, SIGKILL);
    waitpid(dev->pid, NULL, 0);
}

/* ---- Exchanges on the memory socket -----------------------------------------------------------
 */

/* With memory_lock held. in/out: the bytes of a write or read. */
static mr_status exchange(sim_device *dev, const sim_request *request, const void *out, void *in,
                          sim_reply *reply, mr_drv_error *error) {
    pthread_mutex_lock(&dev->state_lock);
    bool dead = dev->dead;
    pthread_mutex_unlock(&dev->state_lock);
    if (dead)
        return bury(dev, NULL, error);
    char why[64];
    errno = 0;
    if (!send_all(dev->memory_fd, request, sizeof *request) ||
        (out && !send_all(dev->memory_fd, out, request->bytes)) ||
        !receive_all(dev->memory_fd, reply, sizeof *reply) ||
        (in && reply->result == SIM_OK && !receive_all(dev->memory_fd, in, request->bytes)))
        return bury(dev, silence(why), error);
    return judge(dev, reply, error);
}

static mr_status sim_alloc(void *device, size_t bytes, void **mem, mr_drv_error *error) {
    sim_device *dev = device;
    sim_request request = {.op = SIM_ALLOC, .bytes = bytes};
    sim_reply reply;
    sim_mem *m = calloc(1, sizeof *m);
    if (!m)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    pthread_mutex_lock(&dev->memory_lock);
    mr_status status = exchange(dev, &request, NULL, NULL, &reply, error);
    if (status == MR_OK) {
        m->addr = reply.addr;
        m->bytes = bytes;
        m->next = dev->memories;
        if (m->next)
            m->next->prev = m;
        dev->memories = m;
        *mem = m;
    } else {
        free(m);
    }
    pthread_mutex_unlock(&dev->memory_lock);
    return status;
}

static void sim_free(void *device, void *mem) {
    sim_device *dev = device;
    sim_mem *m = mem;
    sim_request request = {.op = SIM_FREE, .addr = m->addr};
    sim_reply reply;
    mr_drv_error error;
    pthread_mutex_lock(&dev->memory_lock);
    exchange(dev, &request, NULL, NULL, &reply, &error);
    if (m->prev)
        m->prev->next = m->next;
    else
        dev->memories = m->next;
    if (m->next)
        m->next->prev = m->prev;
    pthread_mutex_unlock(&dev->memory_lock);
    free(m);
}

static mr_status sim_copy(void *device, void *mem, size_t offset, void *host, size_t bytes,
                          mr_sync_dir dir, mr_drv_error *error) {
    sim_device *dev = device;
    sim_mem *m = mem;
    bool write = dir == MR_TO_DEVICE;
    sim_reply reply;
    pthread_mutex_lock(&dev->memory_lock);
    sim_request request = {
        .op = write ? SIM_WRITE : SIM_READ, .addr = m->addr + offset, .bytes = bytes};
    mr_status status =
        exchange(dev, &request, write ? host : NULL, write ? NULL : host, &reply, error);
    pthread_mutex_unlock(&dev->memory_lock);
    return status;
}

/* ---- Opening ----------------------------------------------------------------------------------
 */

static bool readable(const char *path) { return access(path, R_OK) == 0; }

/* The library of a unit; waveforms and start values other than zero take its debug build. */
static void library_of(const mr_drv_host *host, const char *unit, bool debug, char *path) {
    snprintf(path, PATH_MAX, "%s/libmr_sim_%s%s.so", host->library_dir, unit,
             debug ? "_debug" : "");
}

static mr_status add_option(sim_device *dev, const mr_drv_option *option, mr_drv_error *error) {
    size_t used = strlen(dev->options);
    if (strpbrk(option->value, "&=") || strpbrk(option->key, "&="))
        return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                           "option %s: '&' and '=' cannot be in a value", option->key);
    char value[PATH_MAX];
    snprintf(value, sizeof value, "%s", option->value);
    int n = snprintf(dev->options + used, sizeof dev->options - used, "%s%s=%s", used ? "&" : "",
                     option->key, value);
    if (n < 0 || used + (size_t)n >= sizeof dev->options)
        return mr_drv_fail(error, MR_INVALID_ARGUMENT, "options: longer than %d bytes",
                           MAX_TEXT - 1);
    if (!strcmp(option->key, "memory"))
        dev->memory = strtoull(option->value, NULL, 10) << 20;
    return MR_OK;
}

static void destroy(sim_device *dev) {
    end_process(dev);
    while (dev->memories) {
        sim_mem *m = dev->memories;
        dev->memories = m->next;
        free(m);
    }
    pthread_mutex_destroy(&dev->memory_lock);
    pthread_mutex_destroy(&dev->job_lock);
    pthread_mutex_destroy(&dev->state_lock);
    free(dev);
    atomic_fetch_sub(&live_simulators, 1);
}

static mr_status sim_open(const mr_drv_host *host, const char *target, const mr_drv_option *options,
                          size_t num_options, void **device, mr_drv_error *error) {
    bool debug = false;
    const sim_unit *unit = NULL;
    for (size_t i = 0; i < UNITS; i++)
        if (!strcmp(target, units[i].target))
            unit = &units[i];
    if (!unit)
        return mr_drv_fail(error, MR_NOT_FOUND, "no simulated unit '%s' (there are: rgu, pnm)",
                           target);
    sim_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    dev->unit = unit;
    dev->job_fd = dev->memory_fd = -1;
    dev->memory = (uint64_t)DEFAULT_MEMORY_MIB << 20;
    pthread_mutex_init(&dev->memory_lock, NULL);
    pthread_mutex_init(&dev->job_lock, NULL);
    pthread_mutex_init(&dev->state_lock, NULL);
    mr_status status = MR_OK;
    if (atomic_fetch_add(&live_simulators, 1) >= MAX_SIMULATORS)
        status =
            mr_drv_fail(error, MR_LIMIT, "%d simulators are open, that is the limit of a process",
                        MAX_SIMULATORS);
    for (size_t i = 0; status == MR_OK && i < num_options; i++) {
        debug = debug || !strcmp(options[i].key, "trace") || !strcmp(options[i].key, "xinit");
        status = add_option(dev, &options[i], error);
    }
    library_of(host, target, debug, dev->library);
    snprintf(dev->host_path, sizeof dev->host_path, "%s/mr_sim_host", host->library_dir);
    if (status == MR_OK && !readable(dev->library))
        status = mr_drv_fail(error, MR_UNAVAILABLE, "the simulated unit is not there: no %s",
                             dev->library);
    if (status == MR_OK)
        status = spawn(dev, error);
    if (status != MR_OK) {
        destroy(dev);
        return status;
    }
    *device = dev;
    return MR_OK;
}

static void sim_close(void *device) { destroy(device); }

static void describe(const sim_unit *unit, mr_device_info *info) {
    *info = (mr_device_info){.available = true,
                             .caps = unit->caps | MR_CAP_CYCLES | MR_CAP_RESET,
                             .view_align = 1,
                             .max_devices = MAX_SIMULATORS};
    snprintf(info->uri, sizeof info->uri, "%s", unit->uri);
    snprintf(info->name, sizeof info->name, "%s", unit->name);
}

static void sim_info(void *device, mr_device_info *info) {
    sim_device *dev = device;
    describe(dev->unit, info);
    pthread_mutex_lock(&dev->state_lock);
    info->memory = info->max_buffer = dev->memory;
    info->process = dev->pid;
    pthread_mutex_unlock(&dev->state_lock);
}

static void sim_list(const mr_drv_host *host, mr_drv_emit emit, void *context) {
    mr_device_info info;
    char path[PATH_MAX];
    for (size_t i = 0; i < UNITS; i++) {
        describe(&units[i], &info);
        library_of(host, units[i].target, false, path);
        if (!readable(path)) {
            info.available = false;
            info.caps = 0;
            snprintf(info.reason, sizeof info.reason, "the simulated unit is not there: no %.400s",
                     path);
        }
        emit(context, &info);
    }
}

/* A unit that answers is put into reset and keeps its memory; one that died starts anew with memory
 * of zeros. */
static mr_status sim_reset(void *device, mr_drv_error *error) {
    sim_device *dev = device;
    sim_reply reply;
    mr_status status;
    pthread_mutex_lock(&dev->memory_lock);
    if (!dev->dead) {
        sim_request request = {.op = SIM_RESET};
        status = exchange(dev, &request, NULL, NULL, &reply, error);
        if (status != MR_DEVICE_LOST) {
            pthread_mutex_unlock(&dev->memory_lock);
            return status;
        }
    }
    end_process(dev);
    status = spawn(dev, error);
    for (sim_mem *m = dev->memories; m && status == MR_OK; m = m->next) {
        sim_request request = {.op = SIM_ALLOC, .bytes = m->bytes};
        status = exchange(dev, &request, NULL, NULL, &reply, error);
        if (status == MR_OK)
            m->addr = reply.addr;
    }
    pthread_mutex_unlock(&dev->memory_lock);
    return status;
}

/* ---- Jobs -------------------------------------------------------------------------------------
 */

static mr_status sim_queue_open(void *device, void **queue, mr_drv_error *error) {
    (void)device;
    *queue = malloc(1); /* an identity, nothing more */
    return *queue ? MR_OK : mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
}

static void sim_queue_close(void *device, void *queue) {
    (void)device;
    free(queue);
}

static void set32(sim_job *r, uint32_t offset, uint32_t value) {
    r->writes[r->num_writes].offset = offset;
    r->writes[r->num_writes++].value = value;
}

static void set_address(sim_job *r, uint32_t offset, const mr_drv_view *view) {
    const sim_mem *m = view->mem;
    uint64_t addr = m ? m->addr + view->offset : 0;
    set32(r, offset, (uint32_t)addr);
    set32(r, offset + 4, (uint32_t)(addr >> 32));
}

static void set_registers(sim_job *r, const mr_drv_rgu *job) {
    const mr_rgu_job *j = &job->job;
    uint32_t scale;
    memcpy(&scale, &j->scale, sizeof scale);
    set_address(r, MR_RGU_SEEDS, &job->seeds);
    set_address(r, MR_RGU_ROW_SCALE, &job->row_scale);
    set_address(r, MR_RGU_DST, &job->dst);
    set_address(r, MR_RGU_SRC, &job->src);
    set32(r, MR_RGU_DST_STRIDE, j->dst_stride);
    set32(r, MR_RGU_SRC_STRIDE, j->src_stride);
    set32(r, MR_RGU_MODE,
          (job->apply ? MR_RGU_MODE_APPLY_MASK : 0) |
              (job->row_scale.mem ? MR_RGU_MODE_ROW_SCALE_MASK : 0) |
              (j->saturate ? MR_RGU_MODE_SATURATE_MASK : 0) |
              (job->apply ? 0 : (uint32_t)j->format << MR_RGU_MODE_FORMAT_LSB) |
              j->n << MR_RGU_MODE_N_LSB | j->terms << MR_RGU_MODE_TERMS_LSB |
              (j->has_odd ? MR_RGU_MODE_HAS_ODD_MASK : 0) |
              (j->has_even ? MR_RGU_MODE_HAS_EVEN_MASK : 0));
    set32(r, MR_RGU_CHUNKS,
          j->chunks_in << MR_RGU_CHUNKS_IN_LSB | j->chunks_out << MR_RGU_CHUNKS_OUT_LSB);
    set32(r, MR_RGU_ROW0, job->apply ? 0 : j->row0);
    set32(r, MR_RGU_ROW1, job->apply ? j->d_out : j->row1);
    set32(r, MR_RGU_COL0, job->apply ? 0 : j->col0);
    set32(r, MR_RGU_COL1, job->apply ? j->d_in : j->col1);
    set32(r, MR_RGU_SCALE, scale);
    set32(r, MR_RGU_BATCH, job->apply ? j->batch : 1);
    set32(r, MR_RGU_D_IN, j->d_in);
    set32(r, MR_RGU_D_OUT, j->d_out);
}

/* What the ERROR register says. */
static const char *unit_error(uint32_t code) {
    static const char *const texts[] = {"none",           "bad n",          "bad terms",
                                        "bad window",     "bad format",     "misaligned",
                                        "AXI read error", "AXI write error"};
    return code < sizeof texts / sizeof texts[0] ? texts[code] : "unknown";
}

/* Runs what the request says on the unit. */
static mr_status run_job(sim_device *dev, void *queue, sim_job *request, sim_reply *reply,
                         mr_counters *counters, mr_drv_error *error) {
    mr_status status = MR_OK;
    pthread_mutex_lock(&dev->job_lock);
    pthread_mutex_lock(&dev->state_lock);
    request->seq = dev->job = ++dev->last_seq;
    dev->job_queue = queue;
    dev->asked_ns = 0;
    bool dead = dev->dead;
    pthread_mutex_unlock(&dev->state_lock);
    uint64_t begin = now_ns();
    if (dead || !send_all(dev->job_fd, request, sizeof *request) ||
        !receive_all(dev->job_fd, reply, sizeof *reply))
        status = bury(dev, NULL, error);
    else
        status = judge(dev, reply, error);
    pthread_mutex_lock(&dev->state_lock);
    bool asked = dev->asked_ns != 0;
    dev->job = 0;
    pthread_mutex_unlock(&dev->state_lock);
    pthread_mutex_unlock(&dev->job_lock);
    counters->host_ns += now_ns() - begin;
    if (status == MR_DEVICE_LOST && asked)
        return mr_drv_fail(error, MR_CANCELLED,
                           "stopped while it ran; its simulator did not answer");
    return status;
}

static void read64(sim_job *r, uint32_t offset) {
    r->reads[r->num_reads++] = offset;
    r->reads[r->num_reads++] = offset + 4;
}

static uint64_t value64(const sim_reply *reply, size_t i) {
    return (uint64_t)reply->values[i + 1] << 32 | reply->values[i];
}

static mr_status sim_rgu(void *device, void *queue, const mr_drv_rgu *job, mr_counters *counters,
                         mr_drv_error *error) {
    sim_job request = {.num_reads = 1, .reads = {MR_RGU_ERROR}};
    sim_reply reply;
    set_registers(&request, job);
    for (uint32_t offset = MR_RGU_CYCLES; offset <= MR_RGU_MULTS_BUSY; offset += 8)
        read64(&request, offset);
    mr_status status = run_job(device, queue, &request, &reply, counters, error);
    if (status != MR_OK)
        return status;
    if (reply.values[0])
        return mr_drv_fail(error, MR_DEVICE_ERROR,
                           "the unit refused or gave up the job: error %u (%s)", reply.values[0],
                           unit_error(reply.values[0]));
    counters->hardware = true;
    counters->cycles = value64(&reply, 1);
    counters->busy = value64(&reply, 3);
    counters->stall_in = value64(&reply, 5);
    counters->stall_out = value64(&reply, 7);
    counters->items_in = value64(&reply, 9);
    counters->items_out = value64(&reply, 11);
    counters->mults_busy = value64(&reply, 13);
    return MR_OK;
}

static uint64_t sim_address(void *device, void *mem) {
    sim_device *dev = device;
    pthread_mutex_lock(&dev->memory_lock);
    uint64_t addr = ((sim_mem *)mem)->addr;
    pthread_mutex_unlock(&dev->memory_lock);
    return addr;
}

static mr_status sim_pnm(void *device, void *queue, const mr_drv_pnm *job, mr_counters *counters,
                         mr_pnm_counters *pnm, mr_drv_error *error) {
    sim_job request = {0};
    sim_reply reply;
    if (job->job.wide)
        return mr_drv_fail(error, MR_UNSUPPORTED, "the unit does not multiply float32");
    sim_pnm_request(job, sim_address(device, job->memory.mem) + job->memory.offset, &request);
    mr_status status = run_job(device, queue, &request, &reply, counters, error);
    return status == MR_OK ? sim_pnm_result(job, &reply, counters, pnm, error) : status;
}

static mr_status sim_launch(void *device, void *queue, const mr_kernel *kernel,
                            const mr_drv_arg *args, const size_t global[3], const size_t local[3],
                            mr_counters *counters, mr_drv_error *error) {
    (void)device, (void)queue, (void)args, (void)global, (void)local, (void)counters;
    return mr_drv_fail(error, MR_UNSUPPORTED, "a simulated unit runs no kernel %s", kernel->name);
}

static mr_status sim_finish(void *device, void *queue, mr_drv_error *error) {
    (void)device, (void)queue, (void)error;
    return MR_OK;
}

/* Asks the process to stop the queue's job; kills it when it has not done so for a while. */
static void sim_interrupt(void *device, void *queue) {
    sim_device *dev = device;
    sim_request request = {.op = SIM_CANCEL};
    pthread_mutex_lock(&dev->state_lock);
    if (dev->job && dev->job_queue == queue && !dev->dead) {
        request.seq = dev->job;
        if (!dev->asked_ns)
            dev->asked_ns = now_ns();
        else if (now_ns() - dev->asked_ns > patience_ns)
            kill(dev->pid, SIGKILL); /* who waits for its answer buries it */
    }
    pthread_mutex_unlock(&dev->state_lock);
    /* While an exchange is in progress the socket is not ours; the core asks again soon. */
    if (request.seq && !pthread_mutex_trylock(&dev->memory_lock)) {
        send_all(dev->memory_fd, &request, sizeof request);
        pthread_mutex_unlock(&dev->memory_lock);
    }
}

const mr_driver *mr_driver_entry(void);
const mr_driver *mr_driver_entry(void) {
    static const mr_driver driver = {
        .abi = MR_DRIVER_ABI,
        .scheme = "sim",
        .list = sim_list,
        .open = sim_open,
        .close = sim_close,
        .info = sim_info,
        .reset = sim_reset,
        .alloc = sim_alloc,
        .free = sim_free,
        .copy = sim_copy,
        .queue_open = sim_queue_open,
        .queue_close = sim_queue_close,
        .launch = sim_launch,
        .rgu = sim_rgu,
        .pnm = sim_pnm,
        .address = sim_address,
        .finish = sim_finish,
        .interrupt = sim_interrupt,
    };
    return &driver;
}
