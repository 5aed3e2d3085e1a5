/* Devices, handles, buffers: what every back end has to do and to refuse. */
#include "tests/conformance/conformance.h"

#include <cstring>
#include <thread>

#include <CppUTest/TestHarness.h>

TEST_GROUP(Devices){};

TEST(Devices, ListNamesEveryBackEndAndGivesReasons) {
    mr_device_info *list = nullptr;
    size_t count = 0;
    CHECK_OK(mr_devices(&list, &count));
    for (const char *scheme : {"cpu:", "opencl:", "cuda:", "sim:"}) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            found += !strncmp(list[i].uri, scheme, strlen(scheme));
            if (list[i].available) {
                STRCMP_EQUAL("", list[i].reason);
                CHECK(list[i].name[0] && list[i].view_align >= 1);
                CHECK(list[i].caps != 0); /* a unit, by itself or by its kernels */
            } else {
                CHECK(list[i].reason[0] != 0);
            }
        }
        CHECK(found > 0);
    }
    mr_devices_free(list);
    CHECK_FAILS(MR_INVALID_ARGUMENT, "list", mr_devices(nullptr, &count));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "count", mr_devices(&list, nullptr));
}

TEST(Devices, BadUris) {
    struct {
        std::string uri;
        mr_status status;
        const char *word;
    } bad[] = {
        {"", MR_INVALID_ARGUMENT, "uri"},
        {"cpu", MR_INVALID_ARGUMENT, "uri"},
        {":0", MR_INVALID_ARGUMENT, "uri"},
        {"tpu:0", MR_INVALID_ARGUMENT, "tpu"},
        {"cpu:1", MR_NOT_FOUND, "1"},
        {"cpu:?", MR_INVALID_ARGUMENT, "option"},
        {"cpu:?threads", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=0", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=65", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=-1", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=2x", MR_INVALID_ARGUMENT, "threads"},
        {"cpu:?threads=2&threads=2", MR_INVALID_ARGUMENT, "twice"},
        {"cpu:?threads=2&", MR_INVALID_ARGUMENT, "option"},
        {"cpu:?threads=%zz", MR_INVALID_ARGUMENT, "%XX"},
        {"cpu:?threads=%00", MR_INVALID_ARGUMENT, "%XX"},
        {"cpu:?Threads=2", MR_INVALID_ARGUMENT, "Threads"},
        {std::string(5000, 'x'), MR_INVALID_ARGUMENT, "longer"},
        {test_uri + (test_uri.find('?') == std::string::npos ? "?" : "&") + "no_such=1",
         MR_INVALID_ARGUMENT, "no_such"},
    };
    for (auto &b : bad) {
        mr_device *device = reinterpret_cast<mr_device *>(16);
        CHECK_FAILS(b.status, b.word, mr_device_open(b.uri.c_str(), &device));
        POINTERS_EQUAL(reinterpret_cast<mr_device *>(16), device);
    }
    mr_device *device;
    CHECK_FAILS(MR_INVALID_ARGUMENT, "uri", mr_device_open(nullptr, &device));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "device", mr_device_open(test_uri.c_str(), nullptr));
}

TEST(Devices, NumbersThatDoNotExist) {
    std::string scheme = test_uri.substr(0, test_uri.find(':') + 1);
    if (scheme == "cpu:")
        return; /* has no numbers, see BadUris */
    mr_device *device;
    for (const char *target : {"77", "x", "-1", "0x", ""}) {
        mr_status status = mr_device_open((scheme + target).c_str(), &device);
        CHECK(status == MR_NOT_FOUND || status == MR_INVALID_ARGUMENT);
        CHECK(strlen(mr_last_error()) > 0);
    }
}

TEST(Devices, InfoOfAnOpenDevice) {
    Device d(test_uri);
    STRNCMP_EQUAL(d.info.uri, test_uri.c_str(), strlen(d.info.uri));
    CHECK(d.info.available);
    CHECK(d.info.caps & (MR_CAP_RGU | MR_CAP_KERNELS));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "info", mr_device_get_info(d.device, nullptr));
}

TEST(Devices, ResetBringsBackOrIsRefused) {
    Device d(test_uri);
    mr_status status = mr_device_reset(d.device);
    LONGS_EQUAL(d.info.caps & MR_CAP_RESET ? MR_OK : MR_UNSUPPORTED, status);
}

TEST(Devices, HandlesThatAreGoneOrWrong) {
    Device d(test_uri);
    mr_buffer *b = d.buffer(64);
    char data[64] = {};
    size_t bytes;
    void *host;
    CHECK_OK(mr_buffer_destroy(b));
    for (mr_buffer *bad :
         {b, static_cast<mr_buffer *>(nullptr), reinterpret_cast<mr_buffer *>(d.queue),
          reinterpret_cast<mr_buffer *>(data), reinterpret_cast<mr_buffer *>(-1L)}) {
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_destroy(bad));
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_size(bad, &bytes));
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_map(bad, &host));
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_sync(bad, MR_TO_DEVICE, 0, 1));
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_write(bad, 0, data, 1));
        CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_read(bad, 0, data, 1));
    }
    mr_queue *q;
    CHECK_OK(mr_queue_create(d.device, &q));
    CHECK_OK(mr_queue_destroy(q));
    CHECK_FAILS(MR_INVALID_HANDLE, "queue", mr_queue_destroy(q));
    CHECK_FAILS(MR_INVALID_HANDLE, "queue", mr_queue_finish(q, 0));
    CHECK_FAILS(MR_INVALID_HANDLE, "queue",
                mr_queue_finish(reinterpret_cast<mr_queue *>(d.device), 0));
    CHECK_FAILS(MR_INVALID_HANDLE, "event", mr_event_wait(nullptr, 0));
    CHECK_FAILS(MR_INVALID_HANDLE, "event", mr_event_status(reinterpret_cast<mr_event *>(d.queue)));
    CHECK_FAILS(MR_INVALID_HANDLE, "event", mr_event_destroy(nullptr));

    mr_device *second;
    CHECK_OK(mr_device_open(test_uri.c_str(), &second));
    mr_buffer *inside;
    CHECK_OK(mr_buffer_create(second, 64, &inside));
    CHECK_OK(mr_queue_create(second, &q));
    CHECK_OK(mr_device_close(second));
    CHECK_FAILS(MR_INVALID_HANDLE, "device", mr_device_close(second));
    CHECK_FAILS(MR_INVALID_HANDLE, "device", mr_device_reset(second));
    CHECK_FAILS(MR_INVALID_HANDLE, "device", mr_buffer_create(second, 64, &b));
    CHECK_FAILS(MR_INVALID_HANDLE, "device", mr_queue_create(second, &q));
    CHECK_FAILS(MR_INVALID_HANDLE, "buffer", mr_buffer_read(inside, 0, data, 1));
}

TEST(Devices, BuffersAreExactlyAsLargeAsAsked) {
    Device d(test_uri);
    auto rng = test_rng("exact");
    for (size_t bytes :
         {size_t(1), size_t(63), size_t(64), size_t(65), size_t(4097), size_t(1000003)}) {
        mr_buffer *b = d.buffer(bytes);
        size_t got = 0;
        CHECK_OK(mr_buffer_size(b, &got));
        CHECK(bytes == got);
        std::vector<unsigned char> model(bytes), back(bytes);
        for (auto &v : model)
            v = static_cast<unsigned char>(rng());
        CHECK_OK(mr_buffer_write(b, 0, model.data(), bytes));
        for (int i = 0; i < 20; i++) { /* pieces at any address leave their neighbours alone */
            size_t offset = rng() % bytes, length = 1 + rng() % (bytes - offset);
            std::vector<unsigned char> piece(length + 1);
            for (auto &v : piece)
                v = static_cast<unsigned char>(rng());
            CHECK_OK(mr_buffer_write(b, offset, piece.data() + 1, length));
            memcpy(model.data() + offset, piece.data() + 1, length);
            CHECK_OK(mr_buffer_read(b, offset, piece.data(), length));
            MEMCMP_EQUAL(model.data() + offset, piece.data(), length);
        }
        CHECK_OK(mr_buffer_read(b, 0, back.data(), bytes));
        MEMCMP_EQUAL(model.data(), back.data(), bytes);
        CHECK_FAILS(MR_INVALID_ARGUMENT, "offset", mr_buffer_read(b, 0, back.data(), bytes + 1));
        CHECK_FAILS(MR_INVALID_ARGUMENT, "offset", mr_buffer_write(b, bytes, back.data(), 1));
        CHECK_FAILS(MR_INVALID_ARGUMENT, "offset", mr_buffer_write(b, SIZE_MAX, back.data(), 2));
        CHECK_FAILS(MR_INVALID_ARGUMENT, "offset", mr_buffer_write(b, 1, back.data(), SIZE_MAX));
        CHECK_FAILS(MR_INVALID_ARGUMENT, "bytes", mr_buffer_write(b, 0, back.data(), 0));
        CHECK_FAILS(MR_INVALID_ARGUMENT, "data", mr_buffer_read(b, 0, nullptr, 1));
        CHECK_OK(mr_buffer_destroy(b));
    }
    mr_buffer *b = nullptr;
    CHECK_FAILS(MR_INVALID_ARGUMENT, "bytes", mr_buffer_create(d.device, 0, &b));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "buffer", mr_buffer_create(d.device, 1, nullptr));
    for (size_t huge : {size_t(1) << 60, SIZE_MAX, SIZE_MAX - 62}) {
        CHECK_FAILS(MR_OUT_OF_MEMORY, "bytes", mr_buffer_create(d.device, huge, &b));
        POINTERS_EQUAL(nullptr, b);
    }
}

TEST(Devices, MappedViewsAreSyncedExplicitly) {
    Device d(test_uri);
    mr_buffer *b = d.buffer(1000);
    void *host = nullptr, *again = nullptr;
    std::vector<unsigned char> model(1000), back(1000);
    CHECK_FAILS(MR_INVALID_ARGUMENT, "host", mr_buffer_map(b, nullptr));
    CHECK_OK(mr_buffer_map(b, &host));
    CHECK_OK(mr_buffer_map(b, &again));
    POINTERS_EQUAL(host, again);
    CHECK(reinterpret_cast<uintptr_t>(host) % 64 == 0);
    for (size_t i = 0; i < 1000; i++)
        model[i] = static_cast<unsigned char>(i * 7);
    memcpy(host, model.data(), 1000);
    CHECK_OK(mr_buffer_sync(b, MR_TO_DEVICE, 0, 1000));
    CHECK_OK(mr_buffer_read(b, 0, back.data(), 1000));
    MEMCMP_EQUAL(model.data(), back.data(), 1000);
    memset(model.data() + 100, 0x5A, 50);
    CHECK_OK(mr_buffer_write(b, 100, model.data() + 100, 50));
    CHECK_OK(mr_buffer_sync(b, MR_FROM_DEVICE, 100, 50));
    MEMCMP_EQUAL(model.data(), host, 1000);
    CHECK_FAILS(MR_INVALID_ARGUMENT, "offset", mr_buffer_sync(b, MR_TO_DEVICE, 1000, 1));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "bytes", mr_buffer_sync(b, MR_TO_DEVICE, 0, 0));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "dir", mr_buffer_sync(b, static_cast<mr_sync_dir>(2), 0, 1));
}

TEST(Devices, MessagesBelongToTheirThread) {
    mr_device *device;
    CHECK_FAILS(MR_INVALID_ARGUMENT, "mine", mr_device_open("mine:", &device));
    std::string other;
    std::thread([&] {
        other = mr_last_error();
        mr_device_open("theirs:", &device);
    }).join();
    STRCMP_EQUAL("", other.c_str());
    CHECK(strstr(mr_last_error(), "mine") != nullptr);
    STRCMP_EQUAL("MR_TIMEOUT", mr_status_name(MR_TIMEOUT));
    STRCMP_EQUAL("MR_UNKNOWN", mr_status_name(static_cast<mr_status>(99)));
}
