#!/usr/bin/env python3
"""`millrace nic replay` against an independent model of the NIC's specification, frame by frame.

The golden model runs everything, the simulated RTL a share of it: MR_NIC_SHARE (default 0.1) of the
frames of a long case, all of a short one.
"""
import itertools
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import Place, have, main, succeed_json  # noqa: E402
from nic import cases, frame as f, model, pcap, replay, traffic  # noqa: E402

rng = files.seeded()
SHARE = float(os.environ.get("MR_NIC_SHARE", 0.1))
SHORT = 60      # frames that the simulated NIC takes of every case at least
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def judge(device, t, world, flavour=("<", True)):
    """Runs the traffic; the command's outcome when it is what the model says, and the golden model's too."""
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    tables = replay.config(world.nodes, world.jobs, world.kv)
    with Place() as p:
        outcome = replay.command(p, succeed_json, device, world.own, tables, *t.files(*flavour))
    wrong = replay.differences(t, nic, fates, marks, outcome)
    assert not wrong, "\n".join(["%d frames" % len(t.frames)] + wrong)
    if device != "golden":
        with Place() as p:
            replay.same_bytes(outcome, replay.command(p, succeed_json, "golden", world.own, tables, *t.files(*flavour)))
    return nic, outcome


def noted(t, world):
    """What the model says of the frames whose fate was written down by hand."""
    _, fates, _ = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    for i, (want, got) in enumerate(zip(t.fates, fates)):
        assert want is None or want == got, "frame %d is %s, not %s: %s" % (i, got, want, t.frames[i][0].hex())


def directed(case):
    def golden():
        for addresses in (None, "random"):
            world = traffic.World(rng, addresses)
            t = case(rng, world)
            noted(t, world)
            judge("golden", t, world)

    def simulated():
        have("sim:nic")
        world = traffic.World(rng, "random")
        t = case(rng, world)
        t.frames = t.frames[:max(SHORT, int(SHARE * len(t.frames)))]
        judge("sim:nic", t, world)

    for device, function in (("golden", golden), ("sim", simulated)):
        function.__name__ = "%s_%s" % (case.__name__, device)
        TESTS.append(function)


for one in cases.ALL:
    directed(one)


def forgotten(device):
    world = traffic.World(rng)
    t = cases.forgotten(rng, world)
    noted(t, world)
    judge(device, t, world)


@test
def forgotten_golden():
    forgotten("golden")


def forgotten_sim():
    have("sim:nic")
    forgotten("sim:nic")


# Half a share of 4,103 frames would show nothing.
if SHARE >= 1:
    test(forgotten_sim)


@test
def everything_mixed_golden():
    for own in (1, 0, 9, 200):
        world = traffic.World(rng, "random", own)
        t = replay.Traffic()
        t.frames = traffic.mixed(rng, world, 2500, size=rng.choice((None, None, 1000)))
        judge("golden", t, world)


@test
def everything_mixed_sim():
    have("sim:nic")
    for own in (1, 9):
        world = traffic.World(rng, "random", own)
        t = replay.Traffic()
        t.frames = traffic.mixed(rng, world, max(100, int(SHARE * 2500)))
        judge("sim:nic", t, world)


def directory(device, entries, count):
    """A directory of many entries, most of them never asked for."""
    world = traffic.World(rng)
    owners = {}
    while len(owners) < entries:
        job = rng.choice((1, 2, 5, 6))
        members = world.jobs[job].members
        key = (job, rng.choice((rng.randrange(64), rng.randrange(65536))), rng.choice((rng.randrange(256), rng.randrange(2 ** 32))))
        owner, *replicas = rng.sample(members, rng.randint(1, len(members)))
        owners[key] = (owner, replicas, rng.randrange(4), rng.choice((1, 4096, 5000)))
    world.kv = owners
    some = rng.sample(sorted(owners), min(entries, count // 4))
    t = replay.Traffic()
    for _ in range(count):
        job, layer, block = rng.choice(some)
        if rng.random() < 0.1:
            job, layer, block = rng.choice(((job, layer ^ 1, block), (job, layer, block ^ 1 << rng.randrange(32)), (3, layer, block)))
        h = f.header(rng.choice((f.KV_WRITE, f.KV_WRITE, f.KV_READ)), job=job, layer=layer, block=block, shards=1, dtype=1,
                     shard=rng.choice(world.jobs[job].members), epoch=rng.randrange(2, 5))
        payload = struct.pack(">I", 1) if h.opcode == f.KV_READ else rng.randbytes(1)
        t.network(world.frame(h, payload))
    judge(device, t, world)


@test
def directory_golden():
    directory("golden", 20000, 3000)


@test
def directory_sim():
    have("sim:nic")
    directory("sim:nic", 2000, max(100, int(SHARE * 3000)))


@test
def capture_flavours():
    """Micro- and nanoseconds, both byte orders: the same frames in, the same frames out."""
    world = traffic.World(rng)
    t = replay.Traffic()
    t.frames = traffic.mixed(rng, world, 150)
    for order, nano in itertools.product("<>", (False, True)):
        judge("golden", t, world, (order, nano))


@test
def nanoseconds_order():
    """Network and host frames a nanosecond apart are taken in that order."""
    world = traffic.World(rng)
    t = replay.Traffic()
    for i in range(40):
        h = f.header(f.KV_WRITE, job=1, shard=0, shards=4, block=7, epoch=3, dtype=1)
        pair = [(world.frame(h, bytes([i] * 4096)), False),
                (world.frame(h._replace(shard=1), bytes([i ^ 255] * 4096), source=1), True)]
        t.frames += pair if rng.random() < 0.5 else pair[::-1]
        t.frames.append((world.frame(h._replace(opcode=f.KV_READ), struct.pack(">I", 5)), False))
    records = ([], [])
    for i, (data, host) in enumerate(t.frames):
        records[host].append((10 ** 9 - 50 + i, data))
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    with Place() as p:
        outcome = replay.command(p, succeed_json, "golden", world.own,
                                 replay.config(world.nodes, world.jobs, world.kv),
                                 *[pcap.write(r, nano=True) for r in records])
    wrong = replay.differences(t, nic, fates, marks, outcome)
    assert not wrong, "\n".join(wrong)


@test
def without_the_host():
    """The host's two files may be left out."""
    world = traffic.World(rng)
    t = replay.Traffic()
    t.frames = [(data, host) for data, host in traffic.mixed(rng, world, 100, from_host=0) if not host]
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    with Place() as p:
        a, b = p.file("a.pcap", t.files()[0]), p.name("b.pcap")
        c = p.file("c.json", replay.config(world.nodes, world.jobs, world.kv))
        report = succeed_json("nic", "replay", "--rank", "1", "--config", c, "--in", a, "--out", b, "--device", "golden")
        assert p.listing() == ["a.pcap", "b.pcap", "c.json"]
        with open(b, "rb") as sent:
            outcome = replay.Outcome([r[1] for r in pcap.read(sent.read())], [], report)
    nic.delivered = []
    wrong = replay.differences(t, nic, fates, marks, outcome)
    assert not wrong, "\n".join(wrong)


@test
def orders_of_arrival():
    """Whatever the order of arrival, the result has the same bits; repeats on the way change nothing."""
    world = traffic.World(rng)
    for opcode, dtype, shards, flags in ((f.PARTIAL, f.FP32, 6, 0), (f.PARTIAL, f.FP16, 4, f.NATURAL),
                                         (f.REDUCE, f.FP32, 6, 0), (f.REDUCE, f.BF16, 5, 0)):
        ranks = sorted(rng.sample(range(8), shards))
        parts = cases.collective(rng, world, opcode, 0xFFFF, ranks, 0, dtype, 2 if opcode == f.PARTIAL else 1, 33, f.TO_ALL)
        parts = [(h._replace(flags=h.flags | (flags if i % 2 else 0)), p) for i, (h, p) in enumerate(parts)]
        t = replay.Traffic()
        for request, order in enumerate(itertools.permutations(parts)):
            for h, payload in order:
                data = world.frame(h._replace(request=request), payload)
                t.network(*[data] * (1 + (rng.random() < 0.2)))
        _, outcome = judge("golden", t, world)
        results = {data[74:] for data in outcome.delivered if data[43] in (f.MERGED, f.RESULT)}
        assert len(results) == 1, "%d different results" % len(results)


@test
def hosts_of_every_length():
    """Emitted headers: every length of a KV_WRITE to 31 addresses, checksums as computed here."""
    for part in range(3):
        world = traffic.World(rng, "random")
        t = replay.Traffic()
        lengths = list(range(1 + part, 4097, 3)) if SHARE >= 1 else rng.sample(range(1, 4097), 40)
        for n in lengths:
            h = f.header(f.KV_WRITE, job=5, shard=1, shards=32, block=1, epoch=1, dtype=1, request=n)
            t.host(world.frame(h, rng.randbytes(n), source=1))
        judge("golden", t, world)


@test
def two_tables():
    """Two nodes that each take the other for the owner: a read is forwarded once, then refused, and goes round no more."""
    world = traffic.World(rng)
    h = f.header(f.KV_READ, job=1, shard=3, shards=4, block=7, epoch=3, dtype=1, request=5)
    data = f.ethernet(world.nodes[3], world.nodes[1], f.pack(h) + struct.pack(">I", 4096))
    for there in (1, 2):
        frames, seen = [data], []
        for rank, owner in ((1, 2), (2, there)):
            t = replay.Traffic()
            t.network(*frames)
            kv = {(1, 0, 7): (owner, [], 3, 4096)}
            nic, fates, marks = replay.expected(t, rank, world.nodes, world.jobs, kv)
            with Place() as p:
                outcome = replay.command(p, succeed_json, "golden", rank, replay.config(world.nodes, world.jobs, kv), *t.files())
            wrong = replay.differences(t, nic, fates, marks, outcome)
            assert not wrong, "\n".join(wrong)
            seen += fates
            frames = outcome.sent
        assert seen == ["kv_forwarded", "no_entry"], seen
        assert len(frames) == 1 and frames[0][:6] == world.nodes[3].mac and frames[0][43] == f.NACK


@test
def empty_is_the_identity():
    """A shard with nothing in it, on either side, of either base: the bits are those of the others alone."""
    world = traffic.World(rng)
    for dtype in traffic.FLOATS:
        t = replay.Traffic()
        for request in range(0, 200, 5):
            heads, dim, natural = rng.choice((1, 5, 7)), rng.choice((1, 5, 46)), rng.choice((0, f.NATURAL))
            h = f.header(f.PARTIAL, job=0xFFFF, dtype=dtype, heads=heads, dim=dim, flags=natural)
            full = traffic.partial(rng, dtype, heads, dim, natural, empty=0.2, spread=rng.choice((1, 1e4)))
            nothing = traffic.partial(rng, dtype, heads, dim, natural, empty=1)
            other = h._replace(flags=rng.choice((0, f.NATURAL)))
            for n, ranks in enumerate(((3,), (3, 5), (1, 3), (1, 3, 4), (0, 2, 3))):
                for rank in rng.sample(ranks, len(ranks)):
                    x = (h if rank == 3 else other)._replace(shard=rank, shards=len(ranks), request=request + n)
                    t.network(world.frame(x, full if rank == 3 else nothing))
        _, outcome = judge("golden", t, world)
        for at in range(0, len(outcome.delivered), 5):
            assert len({data[74:] for data in outcome.delivered[at:at + 5]}) == 1, at


@test
def differences_are_seen():
    """The judge objects to each kind of wrong outcome."""
    world = traffic.World(rng)
    t = replay.Traffic()
    h = f.header(f.PARTIAL, job=2, shards=2, heads=2, dim=3, dtype=f.FP32)
    for rank in (0, 2):
        t.network(world.frame(h._replace(shard=rank), struct.pack(">4f48x6f", *(rng.uniform(5, 9) for _ in range(10)))))
    t.network(world.query(flags=f.RELIABLE))
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    merge = nic.delivered[0]
    size = f.statistics(f.MERGED, 2)
    payload = bytearray(struct.pack(">2f", *[x[0] for x in merge.merge.heads])).ljust(size, b"\0")
    payload += struct.pack(">6f", *[v for x in merge.merge.heads for v in x[1]])
    good = f.emitted(merge.source, merge.destination, f.pack(merge.header) + bytes(payload))

    def outcome(delivered=None, sent=None, **counters):
        return replay.Outcome(nic.sent if sent is None else sent, delivered or [good, *nic.delivered[1:]],
                              {"cycles": 0, "counters": {**nic.counters, **counters}})

    def seen(o):
        return replay.differences(t, nic, fates, marks, o)

    assert not seen(outcome())
    for bit in range(8 * len(good)):
        data = bytearray(good)
        data[bit // 8] ^= 0x80 >> bit % 8
        assert seen(outcome([bytes(data), *nic.delivered[1:]])), "bit %d" % bit
        at = bit // 8 - 74
        if at >= 0 and (8 <= at < size or at % 4 < 2):
            # With the checksum made right: what is left of it is more than the bound.
            fixed = f.emitted(merge.source, merge.destination, bytes(data[42:]))
            assert seen(outcome([fixed, *nic.delivered[1:]])), "bit %d" % bit
    assert seen(outcome([good])) and seen(outcome([good, *nic.delivered[1:], good]))
    assert seen(outcome(sent=[])) and seen(outcome(sent=[nic.sent[0][:-1] + b"\1"]))
    for name in model.FATES + model.WORK:
        assert seen(outcome(**{name: nic.counters[name] + 1})), name


main(TESTS)
