"""Worlds, and the frames that are sent through them."""
import math
import struct

from . import arith, frame as f, model

OWN = 1
FLOATS = (f.BF16, f.FP16, f.FP32)


class World:
    """The tables that every node has, and the senders that speak to the own node."""

    def __init__(self, rng, addresses=None, own=OWN):
        self.rng, self.own = rng, own
        self.nodes = {rank: f.node(rank) for rank in (*range(32), 200)}
        if addresses == "random":
            for rank in self.nodes:
                mac = bytes((rng.randrange(256) & 0xFE | 2, *rng.randbytes(4), rank))
                self.nodes[rank] = f.Node(rank, mac, bytes((rng.randrange(1, 224), *rng.randbytes(2), rank)),
                                          rng.choice((f.PORT, rng.randrange(1, 65536))))
        self.jobs = {
            1: model.Job([0, 1, 2, 3], 0),
            2: model.Job([0, 1, 2], 1),
            3: model.Job([1], 1),
            4: model.Job([0, 2], 2),
            5: model.Job(list(range(32)), 31),
            6: model.Job([1, 2, 5, 9, 200], 200),
            8: model.Job([7, 200, 2, 9, 1], 9),
            0xFFFF: model.Job([0, 1, 2, 3, 4, 5, 6, 7], 1),
        }
        self.kv = {
            (1, 0, 7): (1, [2], 3, 4096),
            (1, 0, 8): (1, [], 3, 3 * 4096),
            (1, 1, 7): (2, [1, 3], 0, 10000),
            (1, 2, 0xFFFFFFFF): (3, [0, 2], 0xFFFFFFFE, 8192),
            (1, 3, 7): (2, [], 5, 100),
            (2, 0, 7): (0, [1, 2], 7, 65536),
            (5, 0, 1): (1, list(range(2, 32)), 1, 12288),
            (6, 9, 9): (200, [1], 1, 8191),
            (8, 1, 2): (9, [7, 1], 6, 4097),
        }
        self.requests = dict.fromkeys(self.jobs, 0)

    def nic(self):
        return model.Nic(self.own, self.nodes, self.jobs, self.kv)

    def frame(self, h, payload=b"", source=None, **unusual):
        """From node `source` (the header's shard where it is one) to the own node."""
        sender = self.nodes.get(h.shard if source is None else source, self.nodes[0])
        return f.ethernet(sender, self.nodes[self.own], f.pack(h) + payload, **unusual)

    def query(self, shard=0, heads=2, dim=8, dtype=f.BF16, job=1, **fields):
        h = f.header(f.QUERY, shard=shard, shards=4, job=job, heads=heads, dim=dim, dtype=dtype, **fields)
        return self.frame(h, self.rng.randbytes(heads * dim * f.SIZE[dtype]))


def number(rng, dtype):
    """A number of a type, often a special one."""
    kind = rng.random()
    if dtype == f.INT32:
        return rng.choice((0, 1, -1, 2 ** 31 - 1, -2 ** 31)) if kind < 0.1 else rng.randrange(-2 ** 31, 2 ** 31)
    if kind < 0.8:
        return rng.gauss(0, 1) * 10 ** rng.randrange(-2, 3)
    if kind < 0.88:
        return rng.choice((0.0, -0.0))
    bits = rng.randbytes(f.SIZE[dtype])
    return arith.unpack(dtype, bits)[0]


def reduction(rng, dtype, dim):
    return b"".join(arith.encode(dtype, x if x != x else arith.round_to(dtype, x)) if dtype != f.INT32
                    else struct.pack(">i", x) for x in (number(rng, dtype) for _ in range(dim)))


def partial(rng, dtype, heads, dim, natural, empty=0.1, spread=20.0, centre=0.0):
    """The payload of a PARTIAL: random logits' statistics with a vector that belongs to them."""
    sums, values = [], []
    for _ in range(heads):
        if rng.random() < empty:
            sums += [-math.inf, 0.0]
            values += [0.0] * dim
            continue
        m = centre + rng.uniform(-spread, spread)
        d = 1.0 if dtype == f.FP16 or rng.random() < 0.1 else 2 ** rng.uniform(0, 12)
        sums += [m, d]
        values += [rng.gauss(0, 1) * d for _ in range(dim)]
    lead = struct.pack(">%df" % (2 * heads), *sums)
    return lead + bytes(f.statistics(f.PARTIAL, heads) - len(lead)) + arith.vector(dtype, values)


def contribution(rng, h):
    """A payload for the header of a PARTIAL, REDUCE or BARRIER."""
    if h.opcode == f.PARTIAL:
        return partial(rng, h.dtype, h.heads, h.dim, bool(h.flags & f.NATURAL))
    if h.opcode == f.REDUCE:
        return reduction(rng, h.dtype, h.dim * h.heads)
    return b""


def operation(rng, world, job=None, size=None):
    """Frames of one collective: [(header, payload)], one a rank, in rank order."""
    if job is None:
        job = rng.choice([job for job in world.jobs if job != 5 or rng.random() < 0.3])
    members = world.jobs[job].members
    ranks = members if rng.random() < 0.8 else sorted(rng.sample(members, rng.randint(1, len(members))))
    opcode = rng.choice((f.PARTIAL, f.PARTIAL, f.REDUCE, f.REDUCE, f.BARRIER))
    fields = {"job": job, "shards": len(ranks), "request": world.requests[job]}
    flags = 0
    if opcode != f.BARRIER:
        dtype = rng.choice(FLOATS + ((f.INT32,) if opcode == f.REDUCE else ()))
        heads = rng.choice((1, 2, 5, 7, 12)) if opcode == f.PARTIAL else 1
        dim = size or rng.choice((1, 2, 3, 5, 16, 46, 64, 80, 96))
        fields.update(dtype=dtype, heads=heads, dim=dim, layer=rng.randrange(4), head0=rng.choice((0, 8)),
                      block=rng.choice((0, 0, 1, 2 ** 32 - 1)))
        flags = rng.choice((0, 0, f.TO_ALL))
        if opcode == f.REDUCE:
            flags |= rng.randrange(3) << 4
    flags |= rng.choice((0, 0, 0, f.RELIABLE))
    world.requests[job] = (world.requests[job] + 1) % 2 ** 32
    frames = []
    for rank in ranks:
        natural = f.NATURAL if opcode == f.PARTIAL and rng.random() < 0.3 else 0
        h = f.header(opcode, shard=rank, flags=flags | natural, epoch=rng.randrange(4), **fields)
        frames.append((h, contribution(rng, h)))
    return frames


def kv_frame(rng, world):
    """A KV_* header and payload, mostly in order."""
    (job, layer, block), (_, _, epoch, size) = rng.choice(list(world.kv.items()))
    opcode = rng.choice((f.KV_WRITE, f.KV_WRITE, f.KV_WRITE, f.KV_READ, f.KV_READ, f.KV_DATA))
    chunks = (size + f.CHUNK - 1) // f.CHUNK
    at = rng.randrange(min(chunks, 4)) * f.CHUNK
    length = min(f.CHUNK, size - at)
    if rng.random() < 0.15:
        length = rng.randint(1, length)
    if rng.random() < 0.1:
        epoch = (epoch + rng.choice((-1, 1, 2))) % 2 ** 32
    if rng.random() < 0.1:
        at = rng.choice((at + 1, at + 2048, chunks * f.CHUNK, 2 ** 32 - f.CHUNK, at))
    if rng.random() < 0.05:
        block ^= 1
    flags = rng.choice((0, f.LAST, f.RELIABLE, f.RELIABLE | f.RETRANSMISSION, f.FORWARDED, 0, 0))
    shard = rng.choice(world.jobs[job].members) if rng.random() < 0.95 else rng.randrange(256)
    h = f.header(opcode, job=job, layer=layer, block=block, shard=shard, shards=rng.randint(1, 32), flags=flags,
                 epoch=epoch, offset=at, dtype=rng.randint(1, 4), heads=rng.randrange(9), dim=rng.randrange(200),
                 request=rng.randrange(1000), head0=rng.randrange(64))
    if opcode == f.KV_READ:
        if rng.random() < 0.3:
            length = max(0, size - at)
        if rng.random() < 0.03:
            length = rng.choice((0, size + 1, 2 ** 32 - 1))
        return h, struct.pack(">I", min(length, 2 ** 32 - 1))
    return h, rng.randbytes(length)


def other(rng, world):
    """QUERY, results and releases that arrive here, acknowledgements."""
    job = rng.choice(list(world.jobs))
    opcode = rng.choice((f.QUERY, f.QUERY, f.MERGED, f.RESULT, f.BARRIER, f.ACK, f.NACK))
    shard = rng.choice(world.jobs[job].members)
    h = f.header(opcode, job=job, shard=shard, shards=rng.randint(1, 32), request=rng.randrange(100),
                 flags=rng.randrange(256), epoch=rng.randrange(9), layer=rng.randrange(3), block=rng.randrange(3))
    if opcode == f.BARRIER:
        return h._replace(flags=h.flags | f.LAST), b""
    if opcode in (f.ACK, f.NACK):
        h = h._replace(dtype=rng.randrange(256))
        return h, rng.randbytes(8 if opcode == f.NACK else 0)
    h = h._replace(dtype=rng.choice(FLOATS), heads=rng.randint(1, 9), dim=rng.randint(1, 40))
    return h, rng.randbytes(f.statistics(opcode, h.heads) + h.heads * h.dim * f.SIZE[h.dtype])


def unusual(rng):
    """Options of a frame that is in order, and yet not as everybody writes it."""
    options = {}
    if rng.random() < 0.3:
        options["tag"] = rng.randrange(65536)
    if rng.random() < 0.3:
        options["options"] = rng.choice((b"\0", b"\xff", rng.randbytes(1))) * (4 * rng.randint(1, 10))
    if rng.random() < 0.2:
        options["udp_checksum"] = 0
    if rng.random() < 0.2:
        options["slack"] = rng.randbytes(rng.randint(1, 40))
    if rng.random() < 0.3:
        options.update(tos=rng.randrange(256), ident=rng.randrange(65536), ttl=rng.randrange(256))
    if rng.random() < 0.2:
        options["fragment"] = rng.choice((0, 0x8000, 0xC000))
    if rng.random() < 0.2:
        options.update(smallest=rng.choice((60, 64, 100, 200)), pad=rng.choice((b"\xff", b"\xa5")))
    return options


def spoil(rng, data):
    """Something is done to a frame; it may still be in order afterwards."""
    data = bytearray(data)
    kind = rng.randrange(8)
    if kind == 0:
        del data[rng.randrange(len(data)) or 1:]
    elif kind == 1:
        data += rng.randbytes(rng.randint(1, 64))
    elif kind == 2 and len(data) > 42:
        # The header's own fields, the UDP checksum made right again.
        at = 42 + rng.randrange(min(32, len(data) - 42))
        data[at] = rng.choice((0, 1, 255, data[at] ^ 1 << rng.randrange(8)))
        data[40:42] = b"\0\0"
    elif kind == 3 and len(data) > 42:
        # Lengths, the IP checksum made right again.
        at = rng.choice((16, 38))
        struct.pack_into(">H", data, at, rng.choice((0, 7, 8, 19, 20, 27, 28, 39, 40, 60, len(data) - 14,
                                                     len(data) - 13, len(data) - 34, len(data) - 33, 65535,
                                                     rng.randrange(65536))))
        data[24:26] = b"\0\0"
        struct.pack_into(">H", data, 24, 0xFFFF - f.fold(f.ones_sum(bytes(data[14:34]))))
        if rng.random() < 0.5:
            data[40:42] = b"\0\0"
    elif kind == 4:
        at = rng.randrange(min(len(data), 34))
        data[at] = rng.randrange(256)
    elif kind == 5:
        at = rng.randrange(len(data))
        data[at:at] = rng.randbytes(rng.randint(1, 8))
    elif kind == 6:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    else:
        data = bytearray(rng.randbytes(rng.choice((1, 14, 59, 60, 64, 65, 127, 128, 129, 300, 1514))))
        if rng.random() < 0.5 and len(data) > 14:
            data[12:14] = b"\x08\0"
    return bytes(data)


def changed(rng, h):
    """A header that disagrees with the others of its slot, and is in order by itself."""
    if h.opcode == f.BARRIER:
        return h._replace(shards=h.shards % 32 + 1)
    if h.opcode == f.REDUCE and rng.random() < 0.3:
        return h._replace(flags=h.flags & 0xCF | (h.operator + 1) % 3 << 4)
    field = rng.choice(("dim", "dtype", "shards") + (("heads",) if h.opcode == f.PARTIAL else ()))
    return h._replace(**{field: getattr(h, field) % 3 + 1 if field != "shards" else h.shards % 32 + 1})


def mixed(rng, world, count, spoilt=0.1, from_host=0.15, size=None):
    """About `count` frames of everything, operations shuffled into each other, as (frame, from host)."""
    frames, open_, nic = [], [], world.nic()
    while len(frames) < count:
        kind = rng.random()
        if kind < 0.25 and len(open_) < 60:
            open_ += operation(rng, world, size=size)
            continue
        if kind < 0.65 and open_:
            h, payload = open_.pop(rng.randrange(len(open_)))
            if rng.random() < 0.1:
                # Once more, or something else under the same key first.
                open_.append((h, payload))
                if h.key in nic.slots and rng.random() < 0.4:
                    h = changed(rng, h)
                    payload = contribution(rng, h)
        elif kind < 0.75 and any(slot.waiting for slot in nic.slots.values()):
            slot = rng.choice([slot for slot in nic.slots.values() if slot.waiting])
            h = slot.first._replace(opcode=f.ACK, dtype=slot.result, flags=0, heads=0, dim=0,
                                    shard=rng.choice(sorted(slot.waiting)))
            payload = b""
        elif kind < 0.85:
            h, payload = kv_frame(rng, world)
        else:
            h, payload = other(rng, world)
        host = rng.random() < from_host
        taken = h.opcode in model.CONTRIBUTIONS and not (h.opcode == f.BARRIER and h.flags & f.LAST)
        if host and not taken and world.own in world.jobs.get(h.job, ((),))[0] and rng.random() < 0.8:
            h = h._replace(shard=world.own)
        data = world.frame(h, payload, source=world.own if host else None, **(unusual(rng) if rng.random() < 0.3 else {}))
        if host and not taken and rng.random() < 0.2:
            elsewhere = world.nodes[rng.choice(list(world.nodes))]
            data = f.ethernet(world.nodes[world.own], elsewhere, f.pack(h) + payload)
        if rng.random() < spoilt:
            data = spoil(rng, data)
            if taken and rng.random() < 0.98:
                open_.append((h, payload))
        frames.append((data, host))
        (nic.host if host else nic.network)(data)
    return frames
