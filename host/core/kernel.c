/* Launching compute kernels: everything a prototype can tell is checked here, once for all back
 * ends. */
#include <string.h>

#include "host/core/internal.h"
#include "host/core/kernels.h"

enum { MAX_LANES = 1024, DEFAULT_LANES = 64 };

const mr_kernel *mr_kernel_find(const char *name) {
    size_t low = 0, high = mr_kernels_builtin.num_kernels;
    while (low < high) { /* sorted by tools/gen-kernels */
        size_t middle = (low + high) / 2;
        int order = strcmp(name, mr_kernels_builtin.kernels[middle].name);
        if (order == 0)
            return &mr_kernels_builtin.kernels[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool mr_kernel_exists(const char *name) { return name && mr_kernel_find(name); }

const char *mr_kernel_name(size_t index) {
    return index < mr_kernels_builtin.num_kernels ? mr_kernels_builtin.kernels[index].name : NULL;
}

static const char *kind_name(mr_arg_kind kind) {
    switch (kind) {
    case MR_ARG_BUFFER:
        return "buffer";
    case MR_ARG_I32:
        return "i32";
    case MR_ARG_U32:
        return "u32";
    case MR_ARG_I64:
        return "i64";
    case MR_ARG_U64:
        return "u64";
    case MR_ARG_F32:
        return "f32";
    }
    return "unknown";
}

static mr_status check_size(const char *name, const size_t *global, const size_t *local,
                            mr_task *task) {
    for (int d = 0; d < 3; d++) {
        if (global[d] == 0 || global[d] > INT32_MAX)
            return mr_fail(MR_INVALID_ARGUMENT, "kernel %s: global[%d] is %zu, not 1..%d", name, d,
                           global[d], INT32_MAX);
        task->global[d] = global[d];
        task->local[d] = local ? local[d] : 1;
    }
    if (!local)
        task->local[0] = global[0] % DEFAULT_LANES ? 1 : DEFAULT_LANES;
    if (task->local[0] < 1 || task->local[0] > MAX_LANES || task->local[1] != 1 ||
        task->local[2] != 1)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "kernel %s: local is %zu x %zu x %zu, not 1..%d x 1 x 1", name,
                       task->local[0], task->local[1], task->local[2], MAX_LANES);
    if (global[0] % task->local[0])
        return mr_fail(MR_INVALID_ARGUMENT,
                       "kernel %s: global[0] = %zu is not a multiple of local[0] = %zu", name,
                       global[0], task->local[0]);
    return MR_OK;
}

static mr_status check_arg(mr_task *task, mr_que *queue, size_t i, const mr_arg *arg) {
    const mr_kernel_arg *want = &task->kernel->args[i];
    mr_drv_arg *out = &task->args[i];
    char what[160];
    snprintf(what, sizeof what, "kernel %s: argument %zu (%s)", task->kernel->name, i, want->name);
    if (arg->kind != want->kind)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is %s, the kernel takes %s", what,
                       kind_name(arg->kind), kind_name(want->kind));
    out->kind = arg->kind;
    switch (arg->kind) {
    case MR_ARG_BUFFER:
        if (!arg->u.view.buffer && arg->u.view.offset == 0)
            return MR_OK;
        return mr_task_view(task, queue, arg->u.view, what, want->element, &out->view);
    case MR_ARG_I32:
        out->u.i32 = arg->u.i32;
        break;
    case MR_ARG_U32:
        out->u.u32 = arg->u.u32;
        break;
    case MR_ARG_I64:
        out->u.i64 = arg->u.i64;
        break;
    case MR_ARG_U64:
        out->u.u64 = arg->u.u64;
        break;
    case MR_ARG_F32:
        out->u.f32 = arg->u.f32;
        break;
    }
    return MR_OK;
}

static mr_status launch(mr_que *queue, const mr_kernel *kernel, const mr_arg *args, size_t num_args,
                        const size_t *global, const size_t *local, mr_event **event) {
    if (!(queue->dev->info.caps & MR_CAP_KERNELS))
        return mr_fail(MR_UNSUPPORTED, "%s: this device runs no compute kernels",
                       queue->dev->info.uri);
    if (num_args != kernel->num_args)
        return mr_fail(MR_INVALID_ARGUMENT, "kernel %s: %zu arguments given, it takes %zu",
                       kernel->name, num_args, kernel->num_args);
    mr_task *task = mr_task_new("kernel %s", kernel->name);
    if (!task)
        return mr_fail(MR_OUT_OF_MEMORY, "kernel %s: no memory", kernel->name);
    task->kernel = kernel;
    mr_status status = check_size(kernel->name, global, local, task);
    for (size_t i = 0; status == MR_OK && i < num_args; i++)
        status = check_arg(task, queue, i, &args[i]);
    if (status != MR_OK) {
        mr_task_free(task);
        return status;
    }
    return mr_queue_submit(queue, task, event);
}

mr_status mr_kernel_launch(mr_queue *handle, const char *name, const mr_arg *args, size_t num_args,
                           const size_t global[3], const size_t local[3], mr_event **event) {
    if (!event || !name || !global || (!args && num_args))
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL",
                       !event    ? "event"
                       : !name   ? "name"
                       : !global ? "global"
                                 : "args");
    const mr_kernel *kernel = mr_kernel_find(name);
    if (!kernel)
        return mr_fail(MR_NOT_FOUND, "name: there is no kernel '%s'", name);
    mr_que *queue = mr_handle_get(handle, MR_KIND_QUEUE, "queue");
    if (!queue)
        return MR_INVALID_HANDLE;
    mr_status status = launch(queue, kernel, args, num_args, global, local, event);
    mr_obj_unref(&queue->obj);
    return status;
}
