"""A device of the library as Python sees it, with nothing but ctypes: jobs of descriptor lists."""
import ctypes as C

from harness import BUILD


class List(C.Structure):
    _fields_ = [("offset", C.c_uint64), ("count", C.c_uint32)]


class Job(C.Structure):
    _fields_ = [("list", List * 4), ("gen", C.c_uint8), ("cut", C.c_uint8), ("wide", C.c_bool)]


class View(C.Structure):
    _fields_ = [("buffer", C.c_void_p), ("offset", C.c_size_t)]


class Counters(C.Structure):
    _fields_ = [("hardware", C.c_bool), ("status", C.c_uint32), ("words", C.c_uint64 * 64)]


class Device:
    def __init__(self, uri, size):
        self.lib = C.CDLL(str(BUILD / "lib/libmillrace.so"))
        self.lib.mr_last_error.restype = C.c_char_p
        self.size, self.handle, self.queue, self.buffer = size, C.c_void_p(), C.c_void_p(), C.c_void_p()
        self.call("mr_device_open", uri.encode(), C.byref(self.handle))
        self.call("mr_queue_create", self.handle, C.byref(self.queue))
        self.call("mr_buffer_create", self.handle, C.c_size_t(size), C.byref(self.buffer))
        address = C.c_uint64()
        self.call("mr_buffer_address", self.buffer, C.byref(address))
        self.address = address.value

    def call(self, name, *args):
        code = getattr(self.lib, name)(*args)
        assert code == 0, "%s: %d, %s" % (name, code, self.lib.mr_last_error().decode())

    def run(self, memory, lists):
        """lists: (offset, count) by group. (memory afterwards, status)"""
        job = Job(gen=3)
        for g, (offset, count) in enumerate(lists):
            job.list[g].offset, job.list[g].count = offset, count
        data = (C.c_char * self.size).from_buffer_copy(bytes(memory))
        event, counters = C.c_void_p(), Counters()
        self.call("mr_buffer_write", self.buffer, C.c_size_t(0), data, C.c_size_t(self.size))
        self.call("mr_pnm_run", self.queue, C.byref(job), View(self.buffer, 0), C.byref(event))
        self.call("mr_event_wait", event, C.c_uint64(120 * 10 ** 9))
        self.call("mr_pnm_event_counters", event, C.byref(counters))
        self.call("mr_event_destroy", event)
        self.call("mr_buffer_read", self.buffer, C.c_size_t(0), data, C.c_size_t(self.size))
        return bytearray(data.raw), counters.status

    def close(self):
        self.call("mr_queue_destroy", self.queue)
        self.call("mr_buffer_destroy", self.buffer)
        self.call("mr_device_close", self.handle)
