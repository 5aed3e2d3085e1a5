"""Directed traffic: each returns a Traffic; where the fates are noted, they were written by hand."""
import itertools
import math
import struct

from . import frame as f, replay, traffic
from .traffic import OWN


class Noted(replay.Traffic):
    """Traffic with the fate that each frame must have, None where it is not noted."""

    def __init__(self):
        super().__init__()
        self.fates = []

    def add(self, fate, data, host=False):
        self.frames.append((data, host))
        self.fates.append(fate)


# ---- checks ---------------------------------------------------------------------------------------

def _raw(w, fields, payload=b"", to=None, **options):
    """A frame from node 0, everything in it free to be wrong."""
    h = f.header(fields.pop("opcode", f.QUERY))
    h = h._replace(**{"job": 1, "shards": 4, "heads": 2, "dim": 8, "dtype": f.BF16, **fields})
    return f.ethernet(w.nodes[0], to or w.nodes[OWN], f.pack(h) + payload, **options)


# Fault, and what of a good QUERY is changed for it: header fields and frame options.
FAULTS = (
    ("runt", {}, {}),
    ("not_ip", {}, {"ethertype": 0x0801}),
    ("bad_ip_checksum", {}, {"ip_checksum": 0xDEAD}),
    ("fragment", {}, {"fragment": 0x2000}),
    ("not_mine", {}, {"port": 19795}),
    ("truncated", {}, {"total": 20000}),
    ("bad_udp_checksum", {}, {"udp_checksum": 0xDEAD}),
    ("truncated", {}, {"udp_length": 39}),
    ("bad_version", {"version": 2}, {}),
    ("bad_opcode", {"opcode": 0}, {}),
    ("bad_field", {"shards": 0}, {}),
    ("too_long", {}, {"long": 9001}),
    ("truncated", {}, {"long": 65}),
    ("no_entry", {"job": 999}, {}),
)


def pairs_of_faults(rng, w):
    """Every fault alone, and every two of them: the first one decides."""
    t = Noted()
    for i, j in itertools.combinations_with_replacement(range(len(FAULTS)), 2):
        fields = {**FAULTS[i][1], **FAULTS[j][1]}
        options = {**FAULTS[i][2], **FAULTS[j][2]}
        size = max([x[2]["long"] for x in (FAULTS[i], FAULTS[j]) if "long" in x[2]] or [64]) - 32
        if "long" not in options:
            size = 32
        options.pop("long", None)
        if "udp_length" in options:
            options.setdefault("udp_checksum", 0)
        data = _raw(w, fields, rng.randbytes(size), **options)
        t.add(FAULTS[i][0], data[:rng.randint(1, 59)] if i == 0 else data)
    return t


def runts(rng, w):
    t = Noted()
    good = w.query()
    for n in range(1, 60):
        t.add("runt", good[:n])
        t.add("runt", rng.randbytes(n))
    t.add("truncated", good[:60])
    t.add("host_delivered", good)
    return t


def not_ip(rng, w):
    t = Noted()
    good = w.query()
    for kind in (0x86DD, 0x0806, 0x88A8, 0x9100, 0x0040, 0x0801, 0, 0xFFFF, 0x88CC):
        t.add("not_ip", good[:12] + struct.pack(">H", kind) + good[14:])
        t.add("not_ip", good[:12] + struct.pack(">HHH", 0x8100, 5, kind) + good[14:])
    for tag in (0, 1, 4095, 0xE000, 0xFFFF):
        t.add("host_delivered", good[:12] + struct.pack(">HH", 0x8100, tag) + good[12:])
        t.add("not_ip", good[:12] + struct.pack(">HHHH", 0x8100, tag, 0x8100, tag) + good[12:])
        t.add("not_ip", good[:12] + struct.pack(">HHHH", 0x88A8, tag, 0x8100, tag) + good[12:])
    return t


def ip_headers(rng, w):
    """Versions, header lengths, options, every bit flipped."""
    t = Noted()
    for version in range(16):
        for ihl in range(16):
            good = (version, ihl) == (4, 5)
            if version == 4 and ihl > 5:
                continue
            t.add("host_delivered" if good else "bad_ip_checksum",
                  _raw(w, {}, rng.randbytes(32), version_ihl=version << 4 | ihl))
    for words in range(11):
        for fill in (b"\0", b"\x01", b"\xff"):
            options = fill * (4 * words)
            t.add("host_delivered", _raw(w, {}, rng.randbytes(32), options=options))
            t.add("host_delivered", _raw(w, {}, rng.randbytes(32), options=options, tag=7))
            t.add("bad_ip_checksum", _raw(w, {}, rng.randbytes(32), options=options, ip_checksum=0x1234))
    # A header that ends beyond the frame, and a UDP header that does.
    for ihl in range(12, 16):
        data = _raw(w, {}, b"")[:14] + bytes((0x40 | ihl,)) + bytes(45)
        t.add("bad_ip_checksum", data)
    data = _raw(w, {}, b"", options=b"\xff" * 24)[:60]
    t.add("not_mine", data)
    # The sums that are all ones only after a second carry.
    for _ in range(30):
        source = f.Node(0, w.nodes[0].mac, rng.randbytes(4), 1)
        t.add("host_delivered", f.ethernet(source, w.nodes[OWN], _raw(w, {}, rng.randbytes(32))[42:],
                                           options=b"\xff" * 40, ident=rng.randrange(65536)))
    good = _raw(w, {}, rng.randbytes(32), options=rng.randbytes(8))
    for bit in range(28 * 8):
        data = bytearray(good)
        data[14 + bit // 8] ^= 1 << bit % 8
        t.add("bad_ip_checksum", bytes(data))
    t.add("host_delivered", good)
    return t


def carries(rng, w):
    """Headers so chosen that their sum carries every number of times that it can, 0 to 25."""
    t = Noted()
    seen = dict.fromkeys(range(64), 0)
    for _ in range(6000):
        # Every word that a sender is free to choose, small or large.
        big = rng.random()
        words = 5 + 2 * rng.choice((0, 0, rng.randrange(11)))
        pick = [rng.randrange(0xFF00, 0x10000) if rng.random() < big else rng.randrange(0x100) for _ in range(words)]
        source = f.Node(0, w.nodes[0].mac, struct.pack(">HH", *pick[:2]), 1)
        data = f.ethernet(source, w.nodes[OWN], f.pack(f.header(f.QUERY, job=1, shards=4, heads=1, dim=1, dtype=1))
                          + b"\0\0", ident=pick[2], tos=pick[3] >> 8, ttl=pick[4] >> 8,
                          fragment=0xC000 if big > 0.5 else 0, options=struct.pack(">%dH" % (words - 5), *pick[5:]))
        carry = f.ones_sum(data[14:14 + 4 * (data[14] & 15)]) >> 16
        seen[carry] += 1
        if seen[carry] <= 6:
            t.add("host_delivered", data)
            wrong = bytearray(data)
            wrong[24 + rng.randrange(2)] ^= 1 << rng.randrange(8)
            t.add("bad_ip_checksum", bytes(wrong))
    assert all(seen[n] for n in range(1, 22)), seen
    return t


def fragments(rng, w):
    t = Noted()
    for bits in (0x2000, 0x2001, 0x0001, 0x1FFF, 0x3FFF, 0x6000, 0xA000, 0xFFFF, 0x4001, 0x00B9):
        t.add("fragment", _raw(w, {}, rng.randbytes(32), fragment=bits))
    for bits in (0, 0x4000, 0x8000, 0xC000):
        t.add("host_delivered", _raw(w, {}, rng.randbytes(32), fragment=bits))
    # A middle fragment whose data look like a header of ours.
    inner = _raw(w, {}, rng.randbytes(32))[34:]
    t.add("fragment", _raw(w, {}, inner, fragment=0x0002))
    return t


def not_mine(rng, w):
    t = Noted()
    own = w.nodes[OWN]
    for mac in (b"\xff" * 6, b"\x01\0\x5e\0\0\1", w.nodes[2].mac, own.mac[:5] + bytes((own.mac[5] ^ 1,)),
                bytes((own.mac[0] ^ 1,)) + own.mac[1:]):
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), to=own._replace(mac=mac)))
    for ip in (b"\xff" * 4, w.nodes[2].ip, b"\xe0\0\0\1", own.ip[:3] + bytes((own.ip[3] ^ 0x80,))):
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), to=own._replace(ip=ip)))
    for port in (0, own.port - 1 & 0xFFFF, own.port + 1 & 0xFFFF, own.port ^ 0x100, own.port ^ 0x8000):
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), port=port))
    for proto in (0, 1, 6, 16, 18, 255):
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), proto=proto))
    # Whoever sends it, and from where, does not matter.
    for mac, ip in ((b"\xff" * 6, b"\xff" * 4), (b"\1" * 6, b"\xe0\0\0\1"), (bytes(6), bytes(4)), (own.mac, own.ip)):
        data = f.ethernet(f.Node(0, mac, ip, 0xFFFF), own, _raw(w, {}, rng.randbytes(32))[42:])
        t.add("host_delivered", data)
    # Every bit of the address.
    for bit in range(48):
        mac = (int.from_bytes(own.mac, "big") ^ 1 << bit).to_bytes(6, "big")
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), to=own._replace(mac=mac)))
    for bit in range(32):
        ip = (int.from_bytes(own.ip, "big") ^ 1 << bit).to_bytes(4, "big")
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), to=own._replace(ip=ip)))
    for bit in range(16):
        t.add("not_mine", _raw(w, {}, rng.randbytes(32), port=own.port ^ 1 << bit))
    return t


def lengths(rng, w):
    """IP and UDP lengths that do not fit, padding that must not count."""
    t = Noted()
    body = rng.randbytes(32)
    good = len(_raw(w, {}, body)) - 14
    for total in (0, 1, 19, 20, 27, good - 1, good + 1, 0x7FFF, 0xFFFF):
        t.add("truncated", _raw(w, {}, body, total=total))
    for length in (0, 7, 8, 9, 39, 73, 74, 1000, 0xFFFF):
        t.add("truncated", _raw(w, {}, body, udp_length=length, udp_checksum=0))
    for slack in (1, 2, 3, 63, 64, 65, 500):
        t.add("host_delivered", _raw(w, {}, body, slack=rng.randbytes(slack)))
        t.add("host_delivered", _raw(w, {}, body, smallest=74 + 32 + slack, pad=b"\xff"))
        t.add("host_delivered", _raw(w, {}, body, smallest=74 + 32 + slack, pad=b"\xa5", tag=3, slack=b"\xff"))
    # ACK and BARRIER have 74 bytes; every payload length by a KV_WRITE of odd and even size.
    for n in range(1, 70):
        h = f.header(f.KV_WRITE, job=2, shard=2, shards=3, layer=0, block=7, epoch=7, dtype=1)
        t.add("kv_written", w.frame(h, rng.randbytes(n), smallest=rng.choice((60, 150)), pad=b"\xff"))
    for n in (0, 1, 30, 31):
        t.add("truncated", f.ethernet(w.nodes[0], w.nodes[OWN], f.pack(f.header(f.ACK, job=1))[:n], pad=b"\x01"))
        t.add("bad_udp_checksum", f.ethernet(w.nodes[0], w.nodes[OWN], f.pack(f.header(f.ACK, job=1))[:n],
                                             pad=b"\x01", udp_checksum=0xBAD))
    return t


def udp_checksums(rng, w):
    t = Noted()
    good = _raw(w, {}, rng.randbytes(32))
    for bit in list(range(34 * 8, 36 * 8)) + list(range(42 * 8, len(good) * 8)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        t.add("bad_udp_checksum", bytes(data))
    data = bytearray(good)
    data[40:42] = b"\0\0"
    t.add("host_delivered", bytes(data))
    # A datagram whose checksum would be 0: it comes as 0xFFFF.
    for size in (32, 33):
        h = f.header(f.KV_WRITE, job=2, shard=2, shards=3, block=7, epoch=7, dtype=1)
        t.add("kv_written", zero_checksum(rng, w.nodes[2], w.nodes[OWN], h, size))
    return t


def zero_checksum(rng, source, destination, h, size):
    """A frame whose UDP checksum is computed as 0 and therefore sent as 0xFFFF."""
    payload = bytearray(rng.randbytes(size))
    payload[0:2] = b"\0\0"
    data = f.ethernet(source, destination, f.pack(h) + bytes(payload))
    payload[0:2] = data[40:42]
    data = f.ethernet(source, destination, f.pack(h) + bytes(payload))
    assert data[40:42] == b"\xff\xff"
    return data


def fields(rng, w):
    """Versions, opcodes, types, counts; which of them matter for which opcode."""
    t = Noted()
    body = rng.randbytes(32)
    for version in range(256):
        t.add("host_delivered" if version == 1 else "bad_version", _raw(w, {"version": version}, body))
    for opcode in itertools.chain((0,), range(12, 256)):
        t.add("bad_opcode", _raw(w, {"opcode": opcode}, body))
    for opcode in range(1, 12):
        kv = opcode in (f.KV_WRITE, f.KV_READ, f.KV_DATA)
        floats = opcode in (f.QUERY, f.PARTIAL, f.MERGED)
        vectors = floats or opcode in (f.REDUCE, f.RESULT)
        for dtype in (0, 1, 2, 3, 4, 5, 128, 255):
            legal = 1 <= dtype <= 3 if floats else 1 <= dtype <= 4 if vectors or kv else True
            t.add(None if legal else "bad_field", _raw(w, {"opcode": opcode, "dtype": dtype}, body))
        for shards in (0, 33, 34, 128, 255):
            t.add("bad_field", _raw(w, {"opcode": opcode, "shards": shards}, body))
        for name in ("heads", "dim"):
            t.add("bad_field" if vectors else None, _raw(w, {"opcode": opcode, name: 0}, body))
        # One byte too few, one too many, none at all.
        for heads, dim in ((1, 1), (1, 7), (65535, 65535), (32768, 2), (1, 65535)):
            h = {"opcode": opcode, "heads": 1 if opcode in (f.REDUCE, f.RESULT) else heads, "dim": dim}
            size = f.statistics(opcode, h["heads"]) + h["heads"] * dim * 2
            for n in {0, 1, 3, 5, 7, 9, 4097} | ({size - 1, size + 1} if size < 9000 else set()):
                right = n == {f.KV_READ: 4, f.NACK: 8, f.ACK: 0, f.BARRIER: 0}.get(opcode, size)
                if opcode in (f.KV_WRITE, f.KV_DATA):
                    right = 1 <= n <= 4096
                t.add(None if right else "truncated", _raw(w, dict(h), rng.randbytes(n)))
        if opcode in (f.REDUCE, f.RESULT):
            for heads in (2, 16, 65535):
                for n in (2, 32, 64):
                    t.add("truncated", _raw(w, {"opcode": opcode, "heads": heads, "dim": 1}, rng.randbytes(n)))
        if opcode in (f.REDUCE, f.RESULT):
            for dtype in (1, 2, 3, 4):
                size = 8 * f.SIZE[dtype]
                t.add("bad_field" if opcode == f.REDUCE else "host_delivered",
                      _raw(w, {"opcode": opcode, "heads": 1, "dtype": dtype, "flags": 0x30}, rng.randbytes(size)))
        for n in (9001, 9002, 9600, 20000, 65000):
            t.add("too_long", _raw(w, {"opcode": opcode}, rng.randbytes(n - 32)))
    return t


def sizes(rng, w):
    """Payloads of every length class up to the longest, plain, tagged and with options."""
    t = Noted()
    for dim in [*range(1, 70), 734, 735, 736, 2031, 2032, 4480, 4483, 4484]:
        t.add("host_delivered", w.query(heads=1, dim=dim, **{"shard": rng.randrange(4)}))
    for options in ({}, {"tag": 9}, {"options": b"\x01" * 40}, {"tag": 9, "options": b"\xff" * 40}):
        h = f.header(f.QUERY, job=1, shards=4, heads=1, dim=4484, dtype=2)
        t.add("host_delivered", w.frame(h, rng.randbytes(8968), **options))
        t.add("truncated", w.frame(h, rng.randbytes(8967), **options))
        t.add("too_long", w.frame(h, rng.randbytes(8969), **options))
    for n in (1, 2, 4095, 4096):
        h = f.header(f.KV_WRITE, job=2, shard=2, shards=3, block=7, epoch=7, dtype=1)
        t.add("kv_written", w.frame(h, rng.randbytes(n), tag=1))
        t.add("host_delivered", w.frame(h._replace(opcode=f.KV_DATA), rng.randbytes(n), options=b"\1" * 4))
    return t


def beyond_a_buffer(rng, w):
    """Frames longer than a buffer around payloads that are not: what needs their bytes is an overrun."""
    t = Noted()
    request = 0
    for size in (9217, 9216, 9215, 65000, 9600, 20000):
        over = size > 9216
        for slack in (False, True):
            def add(fate, h, payload=b"", host=False):
                room = size - 74 - len(payload)
                t.add(fate, w.frame(h, payload, source=OWN if host else None,
                                    **({"slack": bytes(room)} if slack else {"smallest": size, "pad": b"\xee"})), host)
            query = f.header(f.QUERY, job=1, shards=4, heads=1, dim=3, dtype=1, flags=f.RELIABLE)
            add("overrun" if over else "host_delivered", query, rng.randbytes(6))
            add("bad_version", query._replace(version=3), rng.randbytes(6))
            add("truncated", query, rng.randbytes(7))
            add("no_entry", query._replace(job=99), rng.randbytes(6))
            add(None, query._replace(shard=OWN), rng.randbytes(6), True)
            add("control", f.header(f.ACK, job=1))
            write = f.header(f.KV_WRITE, job=1, shard=0, shards=4, block=7, epoch=3, dtype=1, flags=f.RELIABLE)
            add("overrun" if over else "kv_written", write, rng.randbytes(4096))
            add("stale_epoch", write._replace(epoch=2), rng.randbytes(4096))
            add("out_of_range", write._replace(offset=4096), rng.randbytes(4096))
            add("overrun" if over else "kv_forwarded", write._replace(layer=3, epoch=5), rng.randbytes(99))
            add("no_entry", write._replace(layer=3, epoch=5, flags=f.FORWARDED), rng.randbytes(99))
            add(None, write._replace(shard=OWN), rng.randbytes(4096), True)
            t.add("kv_written", w.frame(write, rng.randbytes(4096)))
            add("kv_served", write._replace(opcode=f.KV_READ), struct.pack(">I", 100))
            add("overrun" if over else "kv_forwarded", write._replace(opcode=f.KV_READ, layer=1, epoch=0), struct.pack(">I", 100))
            add("overrun" if over else "host_delivered", write._replace(opcode=f.KV_DATA), rng.randbytes(100))
            for opcode in (f.PARTIAL, f.REDUCE, f.BARRIER):
                parts = collective(rng, w, opcode, 2, [0, 1, 2], request, f.FP32, 1, 4)
                request += 1
                short = opcode == f.BARRIER or not over
                add("contributed" if short else "overrun", *parts[0])
                t.add("duplicate" if short else "contributed", w.frame(*parts[0]))
                add("duplicate", *parts[0])
                add("contributed" if short else "overrun", *parts[2])
                if not short:
                    t.add("contributed", w.frame(*parts[2]))
                t.add("contributed", w.frame(*parts[1]))
                add("late", *parts[1])
    return t


# ---- tables, KV, host -----------------------------------------------------------------------------

def members(rng, w):
    """Unknown jobs and senders for every opcode."""
    t = Noted()
    for opcode in range(1, 12):
        kv = opcode <= f.KV_DATA
        size = {f.KV_READ: 4, f.NACK: 8, f.ACK: 0, f.BARRIER: 0}.get(opcode, f.statistics(opcode, 1) + 32)
        for job, shard in ((0, 0), (7, 0), (0x100, 0), (1, 4), (1, 31), (1, 77), (1, 200), (1, 255), (4, OWN), (6, 0)):
            h = f.header(opcode, job=job, shard=shard, shards=4, heads=1, dim=16, dtype=1, block=7, epoch=3,
                         request=9, layer=0, head0=4, flags=rng.choice((0, 8)))
            t.add("no_entry", w.frame(h, struct.pack(">I", 16) if opcode == f.KV_READ else rng.randbytes(size)))
        if kv:
            h = f.header(opcode, job=1, shard=2, shards=4, dtype=1, block=99, epoch=3, request=5, head0=3, offset=4096)
            t.add("no_entry", w.frame(h, struct.pack(">I", 16) if opcode == f.KV_READ else rng.randbytes(size)))
    return t


def kv(rng, w):
    t = Noted()

    def send(fate, opcode, payload, host=False, **fields):
        h = f.header(opcode, **{"job": 1, "shard": OWN if host else 0, "shards": 4, "dtype": 1, "block": 7, "epoch": 3,
                                "heads": 3, "dim": 17, "head0": 2, "request": 77, **fields})
        data = w.frame(h, payload, source=OWN if host else None)
        t.add(None if host else fate, data, host)

    def read(fate, offset, length, **more):
        send(fate, f.KV_READ, struct.pack(">I", length), offset=offset, **more)

    def write(fate, offset, length, **more):
        send(fate, f.KV_WRITE, rng.randbytes(length), offset=offset, **more)

    # Block 8: three chunks, owned here.
    read("no_entry", 0, 4096, block=8)
    write("kv_written", 4096, 4096, block=8, flags=f.RELIABLE)
    read("no_entry", 0, 8192, block=8)
    read("kv_served", 4096, 4096, block=8)
    read("kv_served", 4096, 1, block=8, flags=f.RELIABLE | f.RETRANSMISSION)
    write("kv_written", 0, 4096, block=8, epoch=4)
    read("kv_served", 0, 8192, block=8, epoch=9)
    read("kv_served", 0, 4097, block=8, flags=f.FORWARDED)
    read("no_entry", 0, 8193, block=8)
    write("kv_written", 8192, 4096, block=8, flags=f.LAST | f.FORWARDED)
    for shard in (0, 2, 3):
        read("kv_served", 0, 12288, block=8, shard=shard, dtype=3, layer=0)
    read("kv_served", 4096, 5000, block=8)
    read("kv_served", 0, 12287, block=8)
    read("kv_served", 8192, 4096, block=8, shard=OWN)
    # Beyond the entry, old, both, nothing, off the grid.
    read("out_of_range", 0, 12289, block=8)
    read("out_of_range", 12288, 1, block=8)
    read("out_of_range", 8192, 2 ** 32 - 1, block=8)
    read("out_of_range", 2 ** 32 - 4096, 4097, block=8)
    read("out_of_range", 0, 0, block=8)
    read("out_of_range", 1, 4, block=8)
    read("stale_epoch", 0, 12289, block=8, epoch=2)
    read("stale_epoch", 0, 4, block=8, epoch=0)
    write("out_of_range", 12288, 1, block=8)
    write("out_of_range", 4, 4, block=8)
    write("out_of_range", 2048, 2048, block=8, flags=f.RELIABLE)
    write("stale_epoch", 0, 4096, block=8, epoch=2, flags=f.RELIABLE)
    write("stale_epoch", 99999 * 4096 % 2 ** 32, 4096, block=8, epoch=2)
    read("kv_served", 0, 12288, block=8)
    # A block of one short chunk, of a length that ends in one, at the top of the epochs.
    for length in (99, 101):
        write("kv_forwarded" if length < 100 else "out_of_range", 0, length, layer=3, epoch=5)
    write("no_entry", 0, 100, layer=3, epoch=5, flags=f.FORWARDED | f.RELIABLE)
    read("kv_forwarded", 0, 100, layer=3, epoch=5)
    read("no_entry", 0, 100, layer=3, epoch=5, flags=f.FORWARDED)
    read("stale_epoch", 0, 100, layer=3, epoch=4, flags=f.FORWARDED)
    # A replica: what it does not hold goes to the owner, once.
    read("kv_forwarded", 0, 10000, layer=1, epoch=0, flags=f.RELIABLE)
    read("no_entry", 0, 10000, layer=1, epoch=0, flags=f.FORWARDED)
    for offset, length in ((8192, 1808), (0, 4096), (4096, 4096)):
        write("kv_written", offset, length, layer=1, epoch=0)
    read("kv_served", 0, 10000, layer=1, epoch=1)
    write("kv_forwarded", 4096, 4096, layer=2, block=2 ** 32 - 1, epoch=2 ** 32 - 1, shard=2, flags=9)
    read("stale_epoch", 4096, 4096, layer=2, block=2 ** 32 - 1, epoch=1)
    # Written again at the same epoch: the bytes change.
    write("kv_written", 0, 4096, block=8, flags=f.RELIABLE | f.RETRANSMISSION)
    read("kv_served", 0, 12288, block=8)
    for flags in (0, 1):
        send("host_delivered", f.KV_DATA, rng.randbytes(4096), block=8, flags=flags, offset=4096)
    send("stale_epoch", f.KV_DATA, rng.randbytes(4), block=8, epoch=2)
    send("out_of_range", f.KV_DATA, rng.randbytes(4), block=8, offset=12288)
    # From the host.
    write(None, 0, 4096, host=True, flags=f.RELIABLE)                       # owner here, replica 2
    write(None, 0, 4096, layer=2, block=2 ** 32 - 1, epoch=2 ** 32 - 1, host=True, flags=f.RELIABLE)
    write(None, 0, 4096, host=True, epoch=1)
    read(None, 0, 4096, host=True)
    read(None, 0, 4096, layer=2, block=2 ** 32 - 1, epoch=2 ** 32 - 1, host=True)
    read(None, 0, 9, host=True, block=1234)
    read(None, 4096, 9, host=True)
    for rank in range(2, 32):
        h = f.header(f.KV_WRITE, job=5, shard=OWN, shards=32, block=1, epoch=1, dtype=1, offset=4096)
        t.add(None, w.frame(h, rng.randbytes(rank), source=OWN), True)
    h = f.header(f.KV_WRITE, job=5, shard=OWN, shards=32, block=1, epoch=1, dtype=1)
    for rank in (2, 17, 31):
        payload = zero_checksum(rng, w.nodes[OWN], w.nodes[rank], h, 63 + rank % 2)[74:]
        t.add(None, w.frame(h, payload, source=OWN), True)
    return t


def host(rng, w):
    """What the own host sends: to itself, elsewhere, to everybody, in order or not."""
    t = Noted()
    own = w.nodes[OWN]
    good = w.query(shard=OWN)
    other = f.ethernet(own, w.nodes[2], good[42:])
    for data in (good, other):
        for change in ({}, {12: 0x86, 13: 0xDD}, {12: 0x08, 13: 0x06}, {20: 0x20}, {24: data[24] ^ 1}, {40: data[40] ^ 1},
                       {14: 0x65}, {42: 2}, {5: data[5] ^ 4}, {33: data[33] ^ 4}, {37: data[37] ^ 1}):
            x = bytearray(data)
            for at, value in change.items():
                x[at] = value
            if 20 in change or 33 in change:
                x[24:26] = b"\0\0"
                x[24:26] = struct.pack(">H", 0xFFFF - f.fold(f.ones_sum(bytes(x[14:34]))))
            if 42 in change or 33 in change or 37 in change:
                x[40:42] = b"\0\0"
            t.add(None, bytes(x), True)
        t.add(None, data[:59], True)
    t.add(None, b"\xff" * 6 + own.mac + b"\x08\x06" + rng.randbytes(46), True)
    for job in w.jobs:
        for flags in (0, f.RELIABLE, 0xF7):
            h = f.header(f.QUERY, job=job, shards=4, heads=3, dim=5, dtype=3, flags=flags,
                         shard=OWN if OWN in w.jobs[job].members else 0)
            t.add(None, f.ethernet(own, own, f.pack(h) + rng.randbytes(60), tag=5, options=b"\1" * 8), True)
    for rank in w.nodes:
        h = f.header(rng.randint(1, 11), job=1, shard=OWN, shards=4, heads=1, dim=3, dtype=1)
        data = f.ethernet(own, w.nodes[rank], f.pack(h) + rng.randbytes(70), ttl=9, ident=7, tag=None if rank % 2 else 3)
        if rank != OWN:
            t.add(None, data, True)
            t.add("not_mine", data)
    for opcode in (f.MERGED, f.RESULT):
        for flags in (1, 1 | f.RELIABLE):
            h = f.header(opcode, job=1, shard=0, shards=4, heads=1, dim=3, dtype=1, flags=flags)
            data = w.frame(h, rng.randbytes(f.statistics(opcode, 1) + 6))
            t.add("host_delivered", data)
            t.add(None, data, True)
    for opcode, n in ((f.ACK, 0), (f.NACK, 8)):
        h = f.header(opcode, job=1, shard=0, shards=4, dtype=7)
        t.add("control", w.frame(h, bytes(n)))
        t.add(None, w.frame(h, bytes(n)), True)
    return t


# ---- collectives ----------------------------------------------------------------------------------

def collective(rng, w, opcode, job, ranks, request, dtype=f.FP32, heads=1, dim=16, flags=0, payloads=None, **fields):
    """[(header, payload)] of one operation in rank order."""
    out = []
    for i, rank in enumerate(ranks):
        h = f.header(opcode, job=job, shard=rank, shards=len(ranks), request=request, flags=flags, **fields)
        if opcode != f.BARRIER:
            h = h._replace(dtype=dtype, heads=heads, dim=dim)
        out.append((h, payloads[i] if payloads else traffic.contribution(rng, h)))
    return out


def permutations(rng, w, shards=4):
    """One merge and one sum in every order of arrival; each order is its own request."""
    t = Noted()
    job, ranks = 0xFFFF, sorted(rng.sample(range(8), shards))
    request = 2 ** 32 - 50
    for opcode, dtype, heads, dim in ((f.PARTIAL, f.BF16, 5, 6), (f.REDUCE, f.FP32, 1, 19)):
        parts = collective(rng, w, opcode, job, ranks, 0, dtype, heads, dim)
        for order in itertools.permutations(parts):
            repeat = rng.randrange(shards)
            for i, (h, payload) in enumerate(order):
                data = w.frame(h._replace(request=request), payload)
                t.add("contributed", data)
                if i == repeat:
                    t.add("late" if i == shards - 1 else "duplicate", data)
            request = (request + 1) % 2 ** 32
    return t


def shapes(rng, w):
    """Heads, dims, types, shards 1 to 32, members that take no part."""
    t = Noted()
    request = 0
    for heads in (1, 5, 7, 12, 40):
        for dim in (1, 5, 46, 80, 96, 128, 192, 576):
            for dtype in traffic.FLOATS:
                if 32 + f.statistics(f.PARTIAL, heads) + heads * dim * f.SIZE[dtype] > f.LARGEST:
                    continue
                if (heads, dim) != (1, 1) and rng.random() < 0.5:
                    continue
                for h, payload in collective(rng, w, f.PARTIAL, 2, [0, 1, 2], request, dtype, heads, dim):
                    t.add("contributed", w.frame(h, payload))
                request += 1
    for shards in range(1, 33):
        ranks = sorted(rng.sample(range(32), shards))
        opcode = rng.choice((f.PARTIAL, f.REDUCE, f.BARRIER))
        parts = collective(rng, w, opcode, 5, ranks, shards, rng.choice(traffic.FLOATS), 1, rng.randint(1, 70))
        rng.shuffle(parts)
        for h, payload in parts:
            t.add("contributed", w.frame(h, payload))
    for dtype in (1, 2, 3, 4):
        for operator in range(3):
            for dim in (1, 2, 15, 16, 17, 31, 32, 33, 100, 8968 // f.SIZE[dtype]):
                for h, payload in collective(rng, w, f.REDUCE, 2, [0, 1, 2], request, dtype, 1, dim, operator << 4):
                    t.add("contributed", w.frame(h, payload))
                request += 1
    return t


def broadcasts(rng, w):
    """REDUCE of one shard with bit 6: every bf16 code; allgather, a block a rank; 1,000 repeats of a sum."""
    t = Noted()
    request = 0
    codes = list(range(65536))
    for at in range(0, 65536, 4096):
        payload = struct.pack(">4096H", *codes[at:at + 4096])
        for dtype in (f.BF16, f.FP16):
            h = f.header(f.REDUCE, job=2, shard=2, shards=1, request=request, dtype=dtype, heads=1, dim=4096, flags=f.TO_ALL)
            t.add("contributed", w.frame(h, payload))
            request += 1
    for rank in (0, 1, 2):
        h = f.header(f.REDUCE, job=2, shard=rank, shards=1, request=request, dtype=4, heads=1, dim=9, flags=f.TO_ALL, block=rank)
        t.add("contributed", w.frame(h, rng.randbytes(36)))
    return t


def repeats(rng, w, count=1000):
    t = Noted()
    for request in range(count):
        parts = collective(rng, w, f.REDUCE, 2, [0, 1, 2], request, f.FP32, 1, rng.randint(1, 9))
        rng.shuffle(parts)
        for h, payload in parts:
            t.add("contributed", w.frame(h, payload))
        late, payload = parts[0]
        t.add("late", w.frame(late, payload))
    return t


def disagreements(rng, w):
    """Second contributions that do not fit the first, in each field; a repeat is tested before that."""
    t = Noted()
    request = 0
    for opcode in (f.PARTIAL, f.REDUCE, f.BARRIER):
        base = {"job": 1, "shards": 3, "dtype": 1, "heads": 1, "dim": 4} if opcode != f.BARRIER else {"job": 1, "shards": 3}
        changes = [{"shards": 2}, {"shards": 4}]
        if opcode != f.BARRIER:
            changes += [{"dim": 5}, {"dtype": 2}, {"dtype": 3}, {"opcode": f.PARTIAL + f.REDUCE - opcode}, {"opcode": f.BARRIER}]
        if opcode == f.PARTIAL:
            changes += [{"heads": 2}]
        if opcode == f.REDUCE:
            changes += [{"flags": 0x10}, {"flags": 0x20}, {"dtype": 4}]
        for change in changes:
            for flags in (0, f.RELIABLE):
                first = f.header(opcode, **base, shard=0, request=request, epoch=5)
                t.add("contributed", w.frame(first, traffic.contribution(rng, first)))
                other = first._replace(**change)._replace(shard=1, epoch=9)
                other = other._replace(flags=other.flags | flags)
                if other.opcode == f.BARRIER and opcode != f.BARRIER:
                    other = other._replace(dtype=0, heads=0, dim=0)
                t.add("mismatch", w.frame(other, traffic.contribution(rng, other)))
                again = other._replace(shard=0)
                t.add("duplicate", w.frame(again, traffic.contribution(rng, again)))
                for rank in (1, 3):
                    h = first._replace(shard=rank)
                    t.add("contributed", w.frame(h, traffic.contribution(rng, h)))
                t.add("late", w.frame(other._replace(shard=2), traffic.contribution(rng, other)))
                request += 1
    return t


def flags(rng, w):
    """Natural base, bit 6 and bit 3 of one contribution alone, epochs, retransmissions, other bits."""
    t = Noted()
    request = 0
    for opcode in (f.PARTIAL, f.REDUCE, f.BARRIER):
        for who in range(3):
            for bit in (f.NATURAL, f.RELIABLE, f.TO_ALL, f.RETRANSMISSION, f.FORWARDED, f.LAST):
                if opcode == f.BARRIER and bit == f.LAST:
                    continue
                for job in (1, 2):
                    parts = collective(rng, w, opcode, job, [0, 1, 2], request, f.FP32, 1, 5)
                    order = rng.sample(range(3), 3)
                    for i in order:
                        h, payload = parts[i]
                        h = h._replace(epoch=100 + i, flags=bit if i == who else 0, offset=i)
                        t.add("contributed", w.frame(h, payload))
                    if bit == f.RELIABLE:
                        result = {f.PARTIAL: f.MERGED, f.REDUCE: f.RESULT, f.BARRIER: f.BARRIER}[opcode]
                        for rank in (2, 0, 3):
                            h = parts[0][0]._replace(opcode=f.ACK, dtype=result, flags=0, shard=rank, heads=0, dim=0)
                            t.add("control" if rank in w.jobs[job].members else "no_entry", w.frame(h))
                    h, payload = parts[who]
                    t.add("late", w.frame(h._replace(flags=f.RELIABLE), payload))
                    request += 1
    return t


def slots(rng, w):
    """64 slots and not one more; a DONE slot stays until every rank has acknowledged."""
    t = Noted()
    h = f.header(f.REDUCE, job=2, shards=3, dtype=4, heads=1, dim=2)
    for block in range(64):
        t.add("contributed", w.frame(h._replace(block=block), rng.randbytes(8)))
    for opcode in (f.REDUCE, f.PARTIAL, f.BARRIER):
        x = h._replace(opcode=opcode, block=64, flags=f.RELIABLE, epoch=3)
        if opcode == f.PARTIAL:
            x = x._replace(dtype=3)
        if opcode == f.BARRIER:
            x = x._replace(dtype=0, heads=0, dim=0)
        t.add("no_slot", w.frame(x, traffic.contribution(rng, x)))
    # One completes and makes room; a reliable one does only when all have it.
    for rank in (1, 2):
        t.add("contributed", w.frame(h._replace(block=7, shard=rank), rng.randbytes(8)))
    t.add("contributed", w.frame(h._replace(block=64), rng.randbytes(8)))
    t.add("no_slot", w.frame(h._replace(block=65), rng.randbytes(8)))
    for rank in (1, 2):
        t.add("contributed", w.frame(h._replace(block=9, shard=rank, flags=f.RELIABLE | f.TO_ALL), rng.randbytes(8)))
    t.add("no_slot", w.frame(h._replace(block=65), rng.randbytes(8)))
    t.add("late", w.frame(h._replace(block=9, shard=0), rng.randbytes(8)))
    ack = h._replace(opcode=f.ACK, dtype=f.RESULT, heads=0, dim=0, block=9)
    t.add("control", w.frame(ack._replace(shard=2)))
    t.add("control", w.frame(ack._replace(shard=2)))
    t.add("control", w.frame(ack._replace(shard=0, dtype=f.MERGED)))
    t.add("control", w.frame(ack._replace(shard=0, block=10)))
    t.add("control", w.frame(ack._replace(shard=1)))
    t.add("no_slot", w.frame(h._replace(block=65), rng.randbytes(8)))
    t.add("control", w.frame(ack._replace(shard=0)))
    t.add("contributed", w.frame(h._replace(block=65), rng.randbytes(8)))
    t.add("late", w.frame(h._replace(block=9, shard=0), rng.randbytes(8)))
    t.add("no_slot", w.frame(h._replace(block=66), rng.randbytes(8)))
    return t


def pool(rng, w):
    """512 frames wait for a lower rank; the next one in order and a barrier's need no place."""
    t = Noted()
    h = f.header(f.REDUCE, job=5, shards=32, dtype=4, heads=1, dim=1)
    count = 0
    for block in range(17):
        for rank in rng.sample(range(1, 32), 31):
            t.add("contributed" if count < 512 else "no_slot", w.frame(h._replace(block=block, shard=rank), rng.randbytes(4)))
            count += 1
    t.add("no_slot", w.frame(h._replace(block=30, shard=1), rng.randbytes(4)))
    t.add("contributed", w.frame(h._replace(block=30, shard=0), rng.randbytes(4)))
    t.add("contributed", w.frame(h._replace(block=30, shard=1), rng.randbytes(4)))
    t.add("no_slot", w.frame(h._replace(block=30, shard=3), rng.randbytes(4)))
    barrier = f.header(f.BARRIER, job=5, shards=32, block=40)
    t.add("contributed", w.frame(barrier._replace(shard=9)))
    # Block 0 completes with its lowest rank and frees 31 places.
    t.add("contributed", w.frame(h._replace(shard=0), rng.randbytes(4)))
    for rank in range(3, 32):
        t.add("contributed", w.frame(h._replace(block=30, shard=rank), rng.randbytes(4)))
    return t


def late(rng, w):
    """Completed keys, the window of requests, its wrap."""
    t = Noted()

    def one(fate, request, block=0, job=2):
        h = f.header(f.REDUCE, job=job, shard=2, shards=1, dtype=4, heads=1, dim=1, request=request % 2 ** 32, block=block)
        t.add(fate, w.frame(h, rng.randbytes(4)))

    one("contributed", 100)
    one("late", 100)
    one("contributed", 37)
    one("late", 36)
    one("late", 0)
    one("late", 2 ** 31 + 101)
    one("contributed", 100, 1)
    one("contributed", 99, 1)
    one("contributed", 2 ** 31)
    one("late", 100)
    one("contributed", 2 ** 32 - 100)
    one("contributed", 2 ** 32 - 5)
    one("contributed", 10)
    one("late", 2 ** 32 - 5)
    one("contributed", 2 ** 32 - 53)
    one("late", 2 ** 32 - 54)
    one("contributed", 5, job=1)
    one("late", 5, job=1)
    return t


def forgotten(rng, w):
    """After 4,096 keys more a completed key is known no longer."""
    t = Noted()

    def one(fate, block):
        h = f.header(f.BARRIER, job=3, shard=OWN, shards=1, block=block)
        t.add(fate, w.frame(h))

    for block in range(4096):
        one("contributed", block)
    for block in (0, 1, 4095):
        one("late", block)
    one("contributed", 5000)
    one("contributed", 0)
    one("late", 2)
    one("contributed", 1)
    return t


def tree(rng, w):
    """A group's result travels on: base 2, m = lse, d = 1, fp32; most shards empty; nothing at all."""
    t = Noted()
    request = 0
    for empties in range(4):
        for natural in range(4):
            parts = []
            for rank in range(3):
                h = f.header(f.PARTIAL, job=2, shard=rank, shards=3, request=request, dtype=3, heads=7, dim=5,
                             flags=f.NATURAL if natural >> rank & 1 else 0)
                payload = traffic.partial(rng, 3, 7, 5, False, empty=1.0 if rank < empties else 0.3)
                parts.append((h, payload))
            for h, payload in rng.sample(parts, 3):
                t.add("contributed", w.frame(h, payload))
            request += 1
    # LSE = +inf and d = 0 stand for nothing too; what o holds then must not be seen.
    for m, d in ((math.inf, 1.0), (-math.inf, 1.0), (-math.inf, 0.0), (5.0, 0.0), (math.inf, 0.0)):
        for fill in (0.0, math.nan, math.inf, 3e38):
            for alone in (False, True):
                for rank in range(3):
                    h = f.header(f.PARTIAL, job=2, shard=rank, shards=3, request=request, dtype=3, heads=1, dim=3)
                    nothing = struct.pack(">2f", m, d) + bytes(56) + struct.pack(">3f", *[fill] * 3)
                    full = struct.pack(">2f", 2.0, 1.0) + bytes(56) + struct.pack(">3f", 1.0, -2.0, 3.0)
                    t.add("contributed", w.frame(h, full if rank == 1 and not alone else nothing))
                request += 1
    return t


def ties(rng, w):
    """Both sources at the same instants; the network comes first."""
    t = Noted()
    for i in range(60):
        h = f.header(f.KV_WRITE, job=1, shard=0, shards=4, block=7, epoch=3, dtype=1)
        t.add("kv_written", w.frame(h, bytes([i] * 4096)))
        t.add(None, w.frame(h._replace(shard=OWN), bytes([i ^ 0xFF] * 4096), source=OWN), True)
        t.add("kv_served", w.frame(h._replace(opcode=f.KV_READ), struct.pack(">I", 9)))
    return t


ALL = (pairs_of_faults, runts, not_ip, ip_headers, carries, fragments, not_mine, lengths, udp_checksums, fields, sizes, beyond_a_buffer,
       members, kv, host, shapes, broadcasts, repeats, disagreements, flags, slots, pool, late, tree, ties, permutations)
