/*
 * The cuda back end against a driver that fails (tests/conformance/fake_cuda.c): every step of
 * opening, dead contexts, binaries for another GPU (cases 66, 67). The conformance suite runs on
 * the same stand-in.
 */
#include "tests/conformance/conformance.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <unistd.h>

#include <CppUTest/TestHarness.h>
#include <millrace/pnm.h>

TEST_GROUP(CudaFaults){};

static void *symbol(const char *name) {
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *s = handle ? dlsym(handle, name) : nullptr;
    if (!s)
        FAIL((std::string("the stand-in has no ") + name).c_str());
    return s;
}
static void order_failure(const char *function, int nth, int code) {
    reinterpret_cast<void (*)(const char *, int, int)>(symbol("fake_cuda_fail"))(function, nth,
                                                                                 code);
}
static void order_fault(int code) {
    reinterpret_cast<void (*)(int)>(symbol("fake_cuda_fault"))(code);
}
static long live() { return reinterpret_cast<long (*)()>(symbol("fake_cuda_live"))(); }

enum {
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    ILLEGAL_ADDRESS = 700
};

static mr_status gather(const Device &d, mr_buffer *b, mr_event **event) {
    mr_arg args[] = {mr_arg_buffer(b, 0), mr_arg_buffer(b, 512), mr_arg_buffer(nullptr, 0),
                     mr_arg_i32(1),       mr_arg_i32(64),        mr_arg_i32(64)};
    const size_t global[3] = {64, 1, 1};
    return mr_kernel_launch(d.queue, "lm_gather", args, 6, global, nullptr, event);
}

TEST(CudaFaults, EveryStepOfOpeningMayFailAndNothingStays) {
    static const char *const steps[] = {"cuInit", "cuDeviceGetCount", "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent"};
    mr_device *device;
    for (int round = 0; round < 200; round++)
        for (const char *step : steps) {
            order_failure(step, 1, NO_DEVICE);
            CHECK_FAILS(MR_UNAVAILABLE, "CUDA_ERROR_NO_DEVICE", mr_device_open("cuda:0", &device));
            CHECK(strstr(mr_last_error(), step) != nullptr);
            LONGS_EQUAL(0, live());
        }
    CHECK_OK(mr_device_open("cuda:0", &device));
    LONGS_EQUAL(1, live());
    CHECK_OK(mr_device_close(device));
    LONGS_EQUAL(0, live());
}

TEST(CudaFaults, RetainsAndReleasesMatchOverAThousandCycles) {
    for (int i = 0; i < 1000; i++) {
        static const char *const steps[] = {"cuStreamCreate",      "cuMemAlloc",
                                            "cuMemcpyHtoD",        "cuLaunchKernel",
                                            "cuEventCreate",       "cuModuleLoadData",
                                            "cuModuleGetFunction", "cuStreamSynchronize",
                                            "cuMemcpyDtoH",        ""};
        order_failure(steps[i % 10], 1 + i % 2, OUT_OF_MEMORY);
        mr_device *device;
        mr_queue *queue;
        mr_buffer *buffer;
        mr_event *event;
        CHECK_OK(mr_device_open("cuda:0", &device));
        if (mr_queue_create(device, &queue) == MR_OK &&
            mr_buffer_create(device, 1024, &buffer) == MR_OK) {
            char data[1024] = {};
            mr_buffer_write(buffer, 0, data, sizeof data);
            mr_arg args[] = {mr_arg_buffer(buffer, 0),
                             mr_arg_buffer(buffer, 512),
                             mr_arg_buffer(nullptr, 0),
                             mr_arg_i32(1),
                             mr_arg_i32(64),
                             mr_arg_i32(64)};
            const size_t global[3] = {64, 1, 1};
            if (mr_kernel_launch(queue, "lm_gather", args, 6, global, nullptr, &event) == MR_OK) {
                mr_event_wait(event, MR_FOREVER);
                CHECK_OK(mr_event_destroy(event));
            }
            mr_buffer_read(buffer, 0, data, sizeof data);
        }
        CHECK_OK(mr_device_close(device));
        LONGS_EQUAL(0, live());
    }
    order_failure("", 0, 0);
}

TEST(CudaFaults, AFaultInDebugModeNamesItsLaunchAndTheContextIsDead) {
    {
        Device d("cuda:0?debug=1");
        mr_buffer *b = d.buffer(1024);
        mr_event *event, *more;
        CHECK_OK(gather(d, b, &event));
        CHECK_OK(wait_for(event));
        order_fault(ILLEGAL_ADDRESS);
        CHECK_OK(gather(d, b, &event));
        CHECK_FAILS(MR_DEVICE_LOST, "kernel lm_gather", mr_event_wait(event, MR_FOREVER));
        CHECK(strstr(mr_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS") != nullptr);
        CHECK_OK(mr_event_destroy(event));
        CHECK_FAILS(MR_DEVICE_LOST, "lost", gather(d, b, &more));
        char byte;
        CHECK_FAILS(MR_DEVICE_LOST, "lost", mr_buffer_read(b, 0, &byte, 1));
        CHECK_STATUS(MR_UNSUPPORTED, mr_device_reset(d.device));
    }
    LONGS_EQUAL(0, live());
    Device again("cuda:0"); /* closing and opening is what helps */
    mr_event *event;
    CHECK_OK(gather(again, again.buffer(1024), &event));
    CHECK_OK(wait_for(event));
}

TEST(CudaFaults, AFaultWithoutDebugModeIsStillALoss) {
    Device d("cuda:0");
    mr_buffer *b = d.buffer(1024);
    mr_event *event;
    order_fault(ILLEGAL_ADDRESS);
    CHECK_OK(gather(d, b, &event));
    CHECK_FAILS(MR_DEVICE_LOST, "lm_gather", mr_event_wait(event, MR_FOREVER));
    CHECK_OK(mr_event_destroy(event));
    CHECK_FAILS(MR_DEVICE_LOST, "lost", gather(d, b, &event));
}

TEST(CudaFaults, ABinaryForAnotherGpuIsNamedWithWantedAndFound) {
    Device d("cuda:0");
    mr_buffer *b = d.buffer(1024);
    mr_event *event;
    order_failure("cuModuleLoadData", 1, NO_BINARY);
    CHECK_OK(gather(d, b, &event));
    CHECK_FAILS(MR_UNAVAILABLE, "lm.fatbin", mr_event_wait(event, MR_FOREVER));
    for (const char *word :
         {"wanted sm_90", "found sm_75", "compute_90", "CUDA_ERROR_NO_BINARY_FOR_GPU"})
        if (!strstr(mr_last_error(), word))
            FAIL((std::string("no '") + word + "' in: " + mr_last_error()).c_str());
    CHECK_OK(mr_event_destroy(event));
    CHECK_OK(gather(d, b, &event)); /* not a loss: the device is well */
    CHECK_OK(wait_for(event));
}

TEST(CudaFaults, BinariesThatAreMissingOrNoBinaries) {
    char dir[] = "/tmp/mr_modules_XXXXXX";
    CHECK(mkdtemp(dir) != nullptr);
    std::string uri = std::string("cuda:0?modules=") + dir, file = std::string(dir) + "/lm.fatbin";
    mr_event *event;
    {
        Device d(uri);
        CHECK_OK(gather(d, d.buffer(1024), &event));
        CHECK_FAILS(MR_UNAVAILABLE, file.c_str(), mr_event_wait(event, MR_FOREVER));
        CHECK_OK(mr_event_destroy(event));
    }
    for (const std::string &content :
         {std::string("not a binary, but long enough to look at"), std::string("x"),
          std::string("\x50\xed\x55\xba\x01\x00\xff\xff", 8)}) {
        std::ofstream(file) << content;
        Device d(uri);
        order_failure("cuModuleLoadData", 1, NO_BINARY);
        CHECK_OK(gather(d, d.buffer(1024), &event));
        CHECK_FAILS(MR_UNAVAILABLE, "unknown format", mr_event_wait(event, MR_FOREVER));
        CHECK_OK(mr_event_destroy(event));
    }
    std::ofstream(file, std::ios::trunc).flush();
    {
        Device d(uri);
        order_failure("", 0, 0);
        CHECK_OK(gather(d, d.buffer(1024), &event));
        CHECK_FAILS(MR_UNAVAILABLE, file.c_str(), mr_event_wait(event, MR_FOREVER));
        CHECK_OK(mr_event_destroy(event));
    }
    unlink(file.c_str());
    rmdir(dir);
}

TEST(CudaFaults, BadOptions) {
    mr_device *device;
    CHECK_FAILS(MR_INVALID_ARGUMENT, "debug", mr_device_open("cuda:0?debug=2", &device));
    CHECK_FAILS(MR_NOT_FOUND, "device 1", mr_device_open("cuda:1", &device));
    LONGS_EQUAL(0, live());
}

/* A near-memory job of one descriptor: row 0 to the start of the buffer. */
static void put_list(mr_buffer *memory) {
    unsigned char list[64] = {MR_PNM_DESC_STORE};
    uint64_t address;
    CHECK_OK(mr_buffer_address(memory, &address));
    list[MR_PNM_D_STORE_ROWS_LSB / 8] = 1;
    memcpy(list + MR_PNM_D_STORE_ADDR_LSB / 8, &address, 8);
    CHECK_OK(mr_buffer_write(memory, 64, list, sizeof list));
}
static mr_status run_list(const Device &d, mr_buffer *memory, mr_event **event) {
    mr_pnm_job job = mr_pnm_job_init();
    job.list[0].offset = 64;
    job.list[0].count = 1;
    return mr_pnm_run(d.queue, &job, {memory, 0}, event);
}

/* Whatever a job could not get, the next one tries again, and finds a unit that is zero. */
TEST(CudaFaults, NearMemoryJobsSurviveEveryFailedStep) {
    static const char *const steps[] = {"cuMemAlloc", "cuMemcpyHtoD", "cuMemcpyDtoH",
                                        "cuLaunchKernel", "cuStreamSynchronize"};
    const unsigned char zeros[64] = {};
    unsigned failed = 0;
    for (const char *step : steps)
        for (int nth = 1; nth <= 12; nth++) {
            unsigned char row[64];
            Device d("cuda:0");
            mr_buffer *memory = d.buffer(128);
            mr_event *event;
            put_list(memory);
            order_failure(step, nth, OUT_OF_MEMORY);
            CHECK_OK(run_list(d, memory, &event));
            mr_status status = wait_for(event);
            CHECK(status == MR_OK || status == MR_OUT_OF_MEMORY);
            failed += status != MR_OK;
            order_failure("", 0, 0);
            memset(row, 0xEE, sizeof row);
            CHECK_OK(mr_buffer_write(memory, 0, row, sizeof row));
            CHECK_OK(run_list(d, memory, &event));
            CHECK_OK(wait_for(event));
            CHECK_OK(mr_buffer_read(memory, 0, row, sizeof row));
            MEMCMP_EQUAL(zeros, row, sizeof row);
        }
    CHECK(failed > 20);
    LONGS_EQUAL(0, live());
}

TEST(CudaFaults, AFaultInANearMemoryJobLosesTheDevice) {
    Device d("cuda:0");
    mr_buffer *memory = d.buffer(128);
    mr_event *event;
    put_list(memory);
    /* the unit's memories are there, so that the fault is the kernel's */
    CHECK_OK(run_list(d, memory, &event));
    CHECK_OK(wait_for(event));
    order_fault(ILLEGAL_ADDRESS);
    CHECK_OK(run_list(d, memory, &event));
    CHECK_FAILS(MR_DEVICE_LOST, "pnm job", wait_for(event));
    CHECK_FAILS(MR_DEVICE_LOST, "lost", run_list(d, memory, &event));
}
