#include <stdlib.h>
#include <string.h>

#include "host/core/internal.h"

enum { ADDRESS_STEP = 4096 };

static void destroy_buffer(mr_obj *obj) {
    mr_buf *buf = (mr_buf *)obj;
    if (buf->shadowed)
        free(buf->host);
    buf->dev->driver->free(buf->dev->drv, buf->mem);
    mr_obj_unref(&buf->dev->obj);
    pthread_mutex_destroy(&buf->lock);
    free(buf);
}

static mr_status create(mr_dev *dev, size_t bytes, mr_buffer **out) {
    mr_drv_error error;
    uint64_t max = dev->info.max_buffer;
    if (bytes == 0)
        return mr_fail(MR_INVALID_ARGUMENT, "bytes: a buffer of 0 bytes");
    if (max && bytes > max)
        return mr_fail(MR_OUT_OF_MEMORY, "bytes: %zu asked for, %s has buffers of at most %llu",
                       bytes, dev->info.uri, (unsigned long long)max);
    mr_buf *buf = calloc(1, sizeof *buf);
    if (!buf)
        return mr_fail(MR_OUT_OF_MEMORY, "mr_buffer_create: no memory");
    mr_status status = dev->driver->alloc(dev->drv, bytes, &buf->mem, &error);
    if (status != MR_OK) {
        free(buf);
        return mr_fail(status, "bytes: %s", error.text);
    }
    mr_obj_init(&buf->obj, destroy_buffer);
    mr_obj_ref(&dev->obj);
    buf->dev = dev;
    buf->bytes = bytes;
    pthread_mutex_init(&buf->lock, NULL);
    if (dev->driver->host_pointer)
        buf->host = dev->driver->host_pointer(dev->drv, buf->mem);

    pthread_mutex_lock(&dev->lock);
    void *handle = NULL;
    if (dev->closing)
        status = mr_fail(MR_INVALID_HANDLE, "device: it is being closed");
    else if (!(handle = mr_handle_new(MR_KIND_BUFFER, &buf->obj)))
        status = MR_LIMIT;
    if (handle) {
        /* a gap behind each: what runs over its end finds nothing */
        buf->address = dev->next_address += ADDRESS_STEP;
        dev->next_address += bytes / ADDRESS_STEP * ADDRESS_STEP + ADDRESS_STEP;
        buf->handle = handle;
        buf->next = dev->buffers;
        if (buf->next)
            buf->next->prev = buf;
        dev->buffers = buf;
    }
    pthread_mutex_unlock(&dev->lock);
    if (!handle) {
        mr_obj_unref(&buf->obj);
        return status;
    }
    *out = handle;
    return MR_OK;
}

mr_status mr_buffer_create(mr_device *device, size_t bytes, mr_buffer **buffer) {
    if (!buffer)
        return mr_fail(MR_INVALID_ARGUMENT, "buffer: is NULL");
    mr_dev *dev = mr_handle_get(device, MR_KIND_DEVICE, "device");
    if (!dev)
        return MR_INVALID_HANDLE;
    mr_status status = create(dev, bytes, buffer);
    mr_obj_unref(&dev->obj);
    return status;
}

mr_status mr_buffer_destroy(mr_buffer *buffer) {
    mr_buf *buf = mr_handle_take(buffer, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    mr_dev *dev = buf->dev;
    pthread_mutex_lock(&dev->lock);
    if (buf->prev)
        buf->prev->next = buf->next;
    else
        dev->buffers = buf->next;
    if (buf->next)
        buf->next->prev = buf->prev;
    buf->prev = buf->next = NULL;
    mr_obj_ref(&dev->obj);
    pthread_mutex_unlock(&dev->lock);
    mr_obj_unref(&buf->obj);
    mr_obj_unref(&dev->obj);
    return MR_OK;
}

mr_status mr_buffer_size(mr_buffer *buffer, size_t *bytes) {
    if (!bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "bytes: is NULL");
    mr_buf *buf = mr_handle_get(buffer, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    *bytes = buf->bytes;
    mr_obj_unref(&buf->obj);
    return MR_OK;
}

mr_status mr_buffer_map(mr_buffer *buffer, void **host) {
    if (!host)
        return mr_fail(MR_INVALID_ARGUMENT, "host: is NULL");
    mr_buf *buf = mr_handle_get(buffer, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&buf->lock);
    if (!buf->host) {
        size_t rounded = (buf->bytes + 63) & ~(size_t)63; /* aligned_alloc wants a multiple */
        buf->host = rounded ? aligned_alloc(64, rounded) : NULL;
        buf->shadowed = buf->host != NULL;
        if (buf->host)
            memset(buf->host, 0, rounded);
    }
    void *view = buf->host;
    pthread_mutex_unlock(&buf->lock);
    size_t bytes = buf->bytes;
    mr_obj_unref(&buf->obj);
    if (!view)
        return mr_fail(MR_OUT_OF_MEMORY, "mr_buffer_map: no host memory for %zu bytes", bytes);
    *host = view;
    return MR_OK;
}

static mr_status check_range(const mr_buf *buf, size_t offset, size_t bytes) {
    if (bytes == 0)
        return mr_fail(MR_INVALID_ARGUMENT, "bytes: 0 bytes to copy");
    if (offset > buf->bytes || bytes > buf->bytes - offset)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "offset, bytes: %zu bytes from %zu do not fit a buffer of %zu", bytes,
                       offset, buf->bytes);
    return MR_OK;
}

static mr_status copy(mr_buf *buf, size_t offset, void *host, size_t bytes, mr_sync_dir dir) {
    mr_drv_error error;
    mr_dev *dev = buf->dev;
    if (atomic_load(&dev->lost))
        return mr_fail(MR_DEVICE_LOST, "%s: the device was lost; reset or close it", dev->info.uri);
    mr_status status = dev->driver->copy(dev->drv, buf->mem, offset, host, bytes, dir, &error);
    if (status == MR_DEVICE_LOST)
        atomic_store(&dev->lost, true);
    return status == MR_OK ? MR_OK : mr_fail(status, "%s: %s", dev->info.uri, error.text);
}

mr_status mr_buffer_sync(mr_buffer *buffer, mr_sync_dir dir, size_t offset, size_t bytes) {
    if (dir != MR_TO_DEVICE && dir != MR_FROM_DEVICE)
        return mr_fail(MR_INVALID_ARGUMENT, "dir: %d is no direction", (int)dir);
    mr_buf *buf = mr_handle_get(buffer, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    mr_status status = check_range(buf, offset, bytes);
    pthread_mutex_lock(&buf->lock);
    void *view = buf->host;
    bool shadowed = buf->shadowed;
    pthread_mutex_unlock(&buf->lock);
    if (status == MR_OK && !view)
        status =
            mr_fail(MR_INVALID_ARGUMENT, "buffer: it was not mapped, there is nothing to sync");
    if (status == MR_OK && shadowed)
        status = copy(buf, offset, (char *)view + offset, bytes, dir);
    mr_obj_unref(&buf->obj);
    return status;
}

static mr_status transfer(mr_buffer *buffer, size_t offset, void *data, size_t bytes,
                          mr_sync_dir dir) {
    if (!data)
        return mr_fail(MR_INVALID_ARGUMENT, "data: is NULL");
    mr_buf *buf = mr_handle_get(buffer, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    mr_status status = check_range(buf, offset, bytes);
    if (status == MR_OK)
        status = copy(buf, offset, data, bytes, dir);
    mr_obj_unref(&buf->obj);
    return status;
}

mr_status mr_buffer_write(mr_buffer *buffer, size_t offset, const void *data, size_t bytes) {
    return transfer(buffer, offset, (void *)data, bytes, MR_TO_DEVICE);
}

mr_status mr_buffer_read(mr_buffer *buffer, size_t offset, void *data, size_t bytes) {
    return transfer(buffer, offset, data, bytes, MR_FROM_DEVICE);
}
