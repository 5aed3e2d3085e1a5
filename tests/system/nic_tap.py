#!/usr/bin/env python3
"""`millrace nic tap`: ordinary UDP sockets in a network namespace talk to a NIC behind a TAP interface.

The test runs itself again inside a namespace of its own, where it may make the interface; where that is not
permitted it skips and says why.
"""
import fcntl
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402
from harness import Place, Skip, main, refuse  # noqa: E402
from nic import frame as f  # noqa: E402

NAME = "mrtap0"
MAC = "02:00:00:00:09:02"
NIC, HOST, MASK = "10.9.0.1", "10.9.0.2", "255.255.255.0"
PORTS = {1: 19801, 2: 19802}    # ranks 1 and 2 are two sockets of one machine
WAIT = 60                       # seconds; nothing takes that long unless it is broken
CONFIG = {
    "nodes": [{"rank": 0, "mac": "02:00:00:00:09:01", "ip": NIC}]
    + [{"rank": r, "mac": MAC, "ip": HOST, "port": p} for r, p in PORTS.items()],
    "jobs": [{"job": 7, "members": [0, 1, 2], "root": 1}],
    "kv": [{"job": 7, "layer": 2, "block": 5, "owner": 0, "epoch": 3, "bytes": 6000}],
}
FATES = ("runt not_ip bad_ip_checksum fragment not_mine passed truncated bad_udp_checksum bad_version bad_opcode "
         "bad_field too_long no_entry stale_epoch out_of_range late duplicate mismatch no_slot overrun contributed "
         "kv_written kv_served kv_forwarded host_delivered control").split()


# ---- the machine's side ----------------------------------------------------------------------------

def interface_up():
    """Gives the interface its addresses and MTU, as `ip link` and `ip addr` would."""
    def request(payload):
        return struct.pack("16s24s", NAME.encode(), payload)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8924, request(struct.pack("H6s", 1, f.mac(MAC))))                          # SIOCSIFHWADDR
        fcntl.ioctl(s, 0x8922, request(struct.pack("i", 9050)))                                     # SIOCSIFMTU
        for call, address in ((0x8916, HOST), (0x891C, MASK)):                                      # ADDR, NETMASK
            fcntl.ioctl(s, call, request(struct.pack("HH4s", socket.AF_INET, 0, f.ip(address))))
        fcntl.ioctl(s, 0x8914, request(struct.pack("H", 0x1 | 0x40)))                               # SIOCSIFFLAGS up


class Tap:
    """The command at work, and one socket a rank."""

    def __init__(self, place, device, *more):
        config = place.file("config.json", json.dumps(CONFIG).encode())
        self.process = subprocess.Popen(
            [harness.MILLRACE, "nic", "tap", "--rank", "0", "--config", config, "--interface", NAME, "--device",
             device, "--json", *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.open()
        except Exception:
            self.process.kill()
            raise

    def open(self):
        end = time.monotonic() + WAIT
        while not os.path.exists("/sys/class/net/" + NAME) and NAME not in open("/proc/net/dev").read():
            if self.process.poll() is not None:
                raise AssertionError("the command ended: %s" % self.process.communicate()[1].decode())
            assert time.monotonic() < end, "no interface"
            time.sleep(0.01)
        interface_up()
        self.sockets = {}
        for rank, port in PORTS.items():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((HOST, port))
            s.settimeout(WAIT)
            self.sockets[rank] = s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in getattr(self, "sockets", {}).values():
            s.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def send(self, rank, header, payload=b""):
        self.sockets[rank].sendto(f.pack(header) + payload, (NIC, f.PORT))

    def receive(self, rank):
        data, source = self.sockets[rank].recvfrom(65536)
        assert source == (NIC, f.PORT), source
        return f.Header(*f.HEADER.unpack(data[:32])), data[32:]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=WAIT)
        assert self.process.returncode == 0, err.decode()
        report = json.loads(out)
        counters = report["counters"]
        assert sum(counters[name] for name in FATES) == counters["rx_frames"] == report["frames_in"], report
        return report


# ---- what is said ----------------------------------------------------------------------------------

def floats(values):
    return struct.pack(">%df" % len(values), *values)


def reduce_for_everyone(tap):
    a, b = [0.5 * i for i in range(300)], [1.0 - i for i in range(300)]
    for rank, values in ((2, b), (1, a)):
        tap.send(rank, f.header(f.REDUCE, dtype=f.FP32, flags=f.TO_ALL, job=7, shard=rank, shards=2, request=1,
                                heads=1, dim=300), floats(values))
    for rank in (1, 2):
        h, payload = tap.receive(rank)
        assert (h.opcode, h.shard, h.request, h.flags) == (f.RESULT, 0, 1, f.LAST), h
        assert payload == floats([x + y for x, y in zip(a, b)])


def merge_at_the_root(tap):
    heads, dim = 3, 5
    parts = {1: ([1.0, -3.0, 40.0], [2.0, 1.5, 1.0], [0.25 * i for i in range(15)]),
             2: ([2.5, -3.0, -40.0], [1.0, 3.0, 1.0], [8.0 - i for i in range(15)])}
    for rank, (m, d, o) in parts.items():
        pairs = [x for pair in zip(m, d) for x in pair]
        tap.send(rank, f.header(f.PARTIAL, dtype=f.FP32, job=7, shard=rank, shards=2, request=2, layer=9, heads=heads,
                                dim=dim), floats(pairs).ljust(64, b"\0") + floats(o))
    h, payload = tap.receive(1)
    assert (h.opcode, h.heads, h.dim, h.layer) == (f.MERGED, heads, dim, 9), h
    lse = struct.unpack(">3f", payload[:12])
    o = struct.unpack(">15f", payload[64:])
    for head in range(heads):
        top = max(part[0][head] for part in parts.values())
        weights = {r: 2.0 ** (part[0][head] - top) for r, part in parts.items()}
        total = sum(weights[r] * part[1][head] for r, part in parts.items())
        assert math.isclose(lse[head], top + math.log2(total), rel_tol=1e-4, abs_tol=1e-4), (head, lse)
        for i in range(head * dim, head * dim + dim):
            want = sum(weights[r] * part[2][i] for r, part in parts.items()) / total
            assert math.isclose(o[i], want, rel_tol=1e-4, abs_tol=1e-4), (i, o[i], want)


def blocks(tap):
    data = bytes(i * 7 & 255 for i in range(6000))
    fields = {"job": 7, "shard": 2, "shards": 1, "dtype": f.BF16, "layer": 2, "block": 5, "epoch": 3}
    for request, offset in ((1, 0), (2, 4096)):
        tap.send(2, f.header(f.KV_WRITE, flags=f.RELIABLE, request=request, offset=offset, **fields),
                 data[offset:offset + 4096])
        h, _ = tap.receive(2)
        assert (h.opcode, h.dtype, h.request, h.offset) == (f.ACK, f.KV_WRITE, request, offset), h
    tap.send(2, f.header(f.KV_READ, request=3, **fields), struct.pack(">I", 6000))
    got = [tap.receive(2) for _ in range(2)]
    assert [(h.opcode, h.offset, h.flags) for h, _ in got] == [(f.KV_DATA, 0, 0), (f.KV_DATA, 4096, f.LAST)], got
    assert b"".join(part for _, part in got) == data
    tap.send(2, f.header(f.KV_READ, request=4, **{**fields, "epoch": 2}), struct.pack(">I", 6000))
    h, reason = tap.receive(2)
    assert h.opcode == f.NACK and struct.unpack(">II", reason) == (f.STALE_EPOCH, 3), (h, reason)


def sent_again_until_acknowledged(tap):
    tap.send(1, f.header(f.REDUCE, dtype=f.INT32, flags=f.RELIABLE, job=7, shard=1, shards=1, request=3, heads=1,
                         dim=1), struct.pack(">i", -5))
    kinds, result = [], None
    while len(kinds) < 3:
        h, payload = tap.receive(1)
        kinds.append(h.opcode)
        if h.opcode == f.RESULT:
            assert payload == struct.pack(">i", -5)
            result = h
    assert kinds == [f.ACK, f.RESULT, f.RESULT], kinds
    assert result.flags == f.LAST | f.RELIABLE | f.RETRANSMISSION, result
    tap.send(1, f.header(f.ACK, dtype=f.RESULT, job=7, shard=1, shards=1, request=3))


def conversation(device):
    with Place() as place, Tap(place, device, "--rto", "512") as tap:
        reduce_for_everyone(tap)
        merge_at_the_root(tap)
        blocks(tap)
        sent_again_until_acknowledged(tap)
        tap.send(1, f.header(f.QUERY, dtype=f.BF16, job=7, shard=1, request=4, heads=1, dim=4), bytes(8))
        tap.send(1, f.header(f.QUERY, dtype=f.BF16, job=7, shard=1, request=4, heads=1, dim=4), bytes(7))
        tap.send(1, f.header(f.QUERY, dtype=f.BF16, job=7, shard=1, request=4, heads=1, dim=4)._replace(version=2))
        tap.send(1, f.header(f.REDUCE, dtype=f.FP32, flags=f.RELIABLE, job=7, shard=1, shards=1, request=5, heads=1,
                             dim=2000), floats(range(2000)))     # a jumbo frame; its result waits for no one
        while tap.receive(1)[0].opcode != f.RESULT:
            pass
        report = tap.end()
        counters = report["counters"]
        assert report["arp_replies"] >= 1, report
        # the reduction's result, the query
        assert (counters["host_delivered"], counters["truncated"], counters["bad_version"]) == (1, 1, 1), counters
        assert report["delivered"] == 2, report
        assert counters["contributed"] == 6 and counters["merged"] == 1 and counters["reduced"] == 3, counters
        assert counters["kv_written"] == 2 and counters["kv_served"] == 1 and counters["stale_epoch"] == 1, counters
        assert counters["retransmissions"] >= 1 and report["cycles"] > 0, report


def golden():
    conversation("golden")


def simulated():
    harness.have("sim:nic")
    conversation("sim:nic")


def refusals():
    with Place() as place:
        config = place.file("config.json", json.dumps(CONFIG).encode())
        args = ["nic", "tap", "--config", config, "--device", "golden"]
        refuse(["--rank 9", "no such node"], *args, "--rank", "9", code=2, place=place)
        refuse("interface", *args, "--rank", "0", "--interface", "a" * 16, code=2, place=place)
        refuse("cannot attach to the interface lo", *args, "--rank", "0", "--interface", "lo", code=4, place=place)


def without_the_right():
    """A user who may not make the interface is told what is missing."""
    with Place() as place:
        config = place.file("config.json", json.dumps(CONFIG).encode())
        os.chmod(place.path, 0o755)
        drop = "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        if subprocess.run([sys.executable, "-c", drop, harness.MILLRACE, "--version"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("other users cannot run the command from here")
        p = subprocess.run([sys.executable, "-c", drop, harness.MILLRACE, "nic", "tap", "--rank", "0", "--config",
                            config, "--device", "golden", "--seconds", "1"], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=WAIT, check=False)
        assert p.returncode == 4 and p.stdout == "" and p.stderr.count("\n") == 1, p
        assert "CAP_NET_ADMIN" in p.stderr or "right to use it" in p.stderr, p.stderr


def inside():
    main([golden, simulated, refusals, without_the_right])


def outside():
    """Into a namespace, or the reason why not."""
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun: the kernel's TAP driver is needed"
    if os.geteuid() != 0:
        return "not root: CAP_NET_ADMIN and CAP_SYS_ADMIN are needed"
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        return "no network namespace: " + probe.stderr.strip()
    os.execvp("unshare", ["unshare", "--net", sys.executable, os.path.realpath(__file__), "--inside"] + sys.argv[1:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        del sys.argv[1]
        inside()
    else:
        print("skipped: %s" % outside())
        print("0 passed, 0 failed, 1 skipped")
