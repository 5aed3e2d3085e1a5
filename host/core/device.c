#include <stdlib.h>

#include "host/core/internal.h"
#include "host/core/uri.h"

static void destroy_device(mr_obj *obj) {
    mr_dev *dev = (mr_dev *)obj;
    mr_pnm_unit_free(dev);
    dev->driver->close(dev->drv);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

mr_status mr_device_open(const char *text, mr_device **device) {
    mr_uri uri;
    const mr_driver *driver;
    if (!device)
        return mr_fail(MR_INVALID_ARGUMENT, "device: is NULL");
    mr_status status = mr_uri_parse(text, &uri);
    if (status == MR_OK)
        status = mr_driver_get(uri.scheme, &driver);
    if (status != MR_OK)
        return status;
    mr_dev *dev = calloc(1, sizeof *dev);
    mr_drv_error *error = calloc(1, sizeof *error);
    if (!dev || !error) {
        free(dev);
        free(error);
        return mr_fail(MR_OUT_OF_MEMORY, "mr_device_open: no memory");
    }
    status =
        driver->open(mr_driver_host(), uri.target, uri.options, uri.num_options, &dev->drv, error);
    if (status != MR_OK) {
        mr_fail(status, "%s: %s", text, error->text);
        free(dev);
        free(error);
        return status;
    }
    free(error);
    dev->driver = driver;
    mr_obj_init(&dev->obj, destroy_device);
    pthread_mutex_init(&dev->lock, NULL);
    driver->info(dev->drv, &dev->info);
    uint32_t more = mr_caps_by_kernels(driver, dev->info.caps);
    dev->info.caps |= more;
    if (more & MR_CAP_PNM && !(dev->pnm = mr_pnm_unit_new())) {
        mr_obj_unref(&dev->obj);
        return mr_fail(MR_OUT_OF_MEMORY, "mr_device_open: no memory");
    }
    void *handle = mr_handle_new(MR_KIND_DEVICE, &dev->obj);
    if (!handle) {
        mr_obj_unref(&dev->obj);
        return MR_LIMIT;
    }
    *device = handle;
    return MR_OK;
}

mr_status mr_device_close(mr_device *device) {
    mr_dev *dev = mr_handle_take(device, MR_KIND_DEVICE, "device");
    if (!dev)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&dev->lock);
    dev->closing = true;
    /* Others may give the same handle back at the same time: only who takes it out destroys it. */
    while (dev->queues) {
        mr_queue *queue = (mr_queue *)dev->queues->handle;
        pthread_mutex_unlock(&dev->lock);
        mr_queue_destroy(queue);
        pthread_mutex_lock(&dev->lock);
    }
    while (dev->buffers) {
        mr_buffer *buffer = (mr_buffer *)dev->buffers->handle;
        pthread_mutex_unlock(&dev->lock);
        mr_buffer_destroy(buffer);
        pthread_mutex_lock(&dev->lock);
    }
    pthread_mutex_unlock(&dev->lock);
    mr_obj_unref(&dev->obj);
    return MR_OK;
}

mr_status mr_device_get_info(mr_device *device, mr_device_info *info) {
    if (!info)
        return mr_fail(MR_INVALID_ARGUMENT, "info: is NULL");
    mr_dev *dev = mr_handle_get(device, MR_KIND_DEVICE, "device");
    if (!dev)
        return MR_INVALID_HANDLE;
    dev->driver->info(dev->drv, info);
    info->caps |= mr_caps_by_kernels(dev->driver, info->caps);
    mr_obj_unref(&dev->obj);
    return MR_OK;
}

mr_status mr_device_reset(mr_device *device) {
    mr_dev *dev = mr_handle_get(device, MR_KIND_DEVICE, "device");
    if (!dev)
        return MR_INVALID_HANDLE;
    mr_status status = MR_OK;
    mr_drv_error error;
    if (!dev->driver->reset) {
        status = mr_fail(MR_UNSUPPORTED, "device: '%s' cannot be reset, close and open it",
                         dev->driver->scheme);
    } else {
        /* The lock keeps queues from coming and going; what is submitted meanwhile waits. */
        pthread_mutex_lock(&dev->lock);
        for (mr_que *q = dev->queues; q; q = q->next)
            mr_queue_pause(q);
        status = dev->driver->reset(dev->drv, &error);
        if (status == MR_OK)
            atomic_store(&dev->lost, false);
        else
            mr_fail(status, "reset: %s", error.text);
        for (mr_que *q = dev->queues; q; q = q->next)
            mr_queue_resume(q);
        pthread_mutex_unlock(&dev->lock);
    }
    mr_obj_unref(&dev->obj);
    return status;
}
