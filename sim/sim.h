/* Millrace: the one C interface of every Verilated unit.
 *
 * A unit's shared library (libmr_sim_<unit>.so) holds the Verilated board wrapper of that unit, a
 * device memory behind its AXI4 masters and a sink behind its AXI4-Stream output. It exports one
 * function, mr_sim_entry(), that returns the table below; load it with dlopen(RTLD_LOCAL), so that
 * several units live in one process. Every simulator is independent of every other one; one
 * simulator may be used by one thread at a time. Nothing here prints.
 *
 * Time is counted in clock cycles of the kernel. Register accesses take simulated time too, as on
 * a board.
 */
#ifndef MR_SIM_H
#define MR_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_SIM_ABI 1u
#define MR_SIM_ENTRY "mr_sim_entry"

/* Results. Anything but MR_SIM_OK leaves one line in error(sim) (or in open's err buffer). */
enum mr_sim_result {
    MR_SIM_OK = 0,
    MR_SIM_EINVAL = 1,  /* a bad argument: unknown option, unaligned register, ... */
    MR_SIM_ENOMEM = 2,  /* the device memory (or the host's) is exhausted */
    MR_SIM_ERANGE = 3,  /* a memory range outside every live allocation */
    MR_SIM_TIMEOUT = 4, /* the cycle limit passed first; the run can be continued */
    MR_SIM_EPROTO = 5,  /* the unit broke a bus rule or an assertion; the simulator is dead */
    MR_SIM_ESYS = 6     /* the host refused something, a trace file for instance */
};

typedef struct mr_sim mr_sim;

/* Bus activity since open (or the last stats call with clear != 0). */
typedef struct mr_sim_stats {
    uint64_t cycles;             /* clock cycles */
    uint64_t ar_bursts, r_beats; /* reads */
    uint64_t aw_bursts, w_beats; /* writes */
    uint64_t w_bytes;            /* bytes with their strobe set */
    uint64_t stream_beats, stream_frames;
    uint64_t read_errors, write_errors; /* bursts answered with DECERR */
} mr_sim_stats;

typedef struct mr_sim_ops {
    uint32_t abi;     /* MR_SIM_ABI */
    const char *unit; /* "rgu", "pnm" */

    /* Builds a simulator, reset applied. options: NULL, "" or "key=value" pairs joined by '&':
     *   seed=N       seeds random stalls and initial register values         (default 1)
     *   xinit=zero|ones|random   initial value of every register and memory  (default zero; only
     *                the regression build of a library knows another one than zero)
     *   memory=MIB   device memory in MiB, committed by the host on first use (default 4096)
     *   latency=N    cycles from a read address to its first beat             (default 1)
     *   wlatency=N   cycles from the last write beat to its response          (default 1)
     *   bandwidth=N  bytes a cycle the memory can move, each direction        (default 64, 1..64)
     *   stall=P      random stall on every channel, per cent                  (default 0, 0..95)
     *   stall_ar= stall_r= stall_aw= stall_w= stall_b= stall_s=   one channel (s: stream sink)
     *   stall_len=N  longest single stall in cycles                           (default 8)
     *   trace=FILE   FST waveform of the whole unit; only a build with tracing can
     *   dram_trace=FILE   every command to the banks of a unit that has some, one a line
     * An unknown key, a bad value, or a feature this build lacks is refused with one line in err.
     */
    int (*open)(const char *options, mr_sim **sim, char *err, size_t err_size);
    void (*close)(mr_sim *sim);              /* NULL is allowed */
    const char *(*error)(const mr_sim *sim); /* text of the last failure, never NULL */

    /* Device memory. Addresses are those the unit sees; none is 0. Alignment is a power of two
     * (0: 4096). Fresh memory reads as zero. A bus access outside live allocations gets DECERR. */
    int (*mem_alloc)(mr_sim *sim, size_t bytes, size_t align, uint64_t *addr);
    int (*mem_free)(mr_sim *sim, uint64_t addr);
    int (*mem_write)(mr_sim *sim, uint64_t addr, const void *src, size_t bytes);
    int (*mem_read)(mr_sim *sim, uint64_t addr, void *dst, size_t bytes);
    /* Host pointer to the range, valid until it is freed; no simulated time passes. */
    int (*mem_map)(mr_sim *sim, uint64_t addr, size_t bytes, void **ptr);

    /* AXI4-Lite accesses to s_axi_control, 32 bits, offset a multiple of 4. */
    int (*reg_write)(mr_sim *sim, uint32_t offset, uint32_t value);
    int (*reg_read)(mr_sim *sim, uint32_t offset, uint32_t *value);

    /* Runs up to max_cycles or until the interrupt line is high. MR_SIM_OK: the interrupt is high;
     * MR_SIM_TIMEOUT: it is not. ran (may be NULL): cycles that passed. Enable the interrupt (GIE,
     * IER) first, and clear ISR afterwards. */
    int (*run)(mr_sim *sim, uint64_t max_cycles, uint64_t *ran);

    /* Takes the oldest whole frame of the stream output: its bytes go to dst (at most cap), its
     * length to bytes. No frame: bytes = 0. A frame longer than cap is MR_SIM_ERANGE and stays. */
    int (*stream_read)(mr_sim *sim, void *dst, size_t cap, size_t *bytes);

    void (*stats)(mr_sim *sim, mr_sim_stats *out, int clear);
    /* Asserts reset for a few cycles; memory contents and allocations stay. Also revives nothing
     * that MR_SIM_EPROTO killed. */
    int (*reset)(mr_sim *sim);
} mr_sim_ops;

/* NULL when the library does not speak this ABI. */
const mr_sim_ops *mr_sim_entry(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
