#!/usr/bin/env python3
"""Random and mutated bytes into `millrace nic replay`: no hang, every frame one fate, every byte as the model says.

MR_NIC_FUZZ_BYTES is how much the golden model is fed (default 2e6; `make soak` 1e8), MR_NIC_FUZZ_SIM how
much the simulated NIC (default 1e5). Every frame is filled with its own number, so that a byte of one frame
in another's output would be named by the comparison.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import Place, have, main, succeed_json  # noqa: E402
from nic import frame as f, model, replay, traffic  # noqa: E402

rng = files.seeded()
BYTES = int(float(os.environ.get("MR_NIC_FUZZ_BYTES", 2e6)))
SIMULATED = int(float(os.environ.get("MR_NIC_FUZZ_SIM", 1e5)))
BATCH = 10 ** 6
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def poison(number, size):
    """Bytes that nobody else has."""
    return (b"%08x" % number * (size // 8 + 1))[:size]


def plausible(world, number):
    """A frame with header fields that are mostly in range, or nearly, around a payload of poison."""
    opcode = rng.randrange(1, 12) if rng.random() < 0.95 else rng.randrange(256)
    job, layer, block = rng.choice([*world.kv][:4])
    rare = rng.random()
    h = f.header(opcode, job=job if rare > 0.05 else rng.choice((2, 3, 4, 5, 7, 65535)), shard=rng.randrange(4),
                 shards=rng.randint(1, 3) if rng.random() < 0.95 else rng.choice((0, 4, 32, 33, 255)),
                 request=number // 50 + rng.randrange(3), heads=rng.randint(0 if rare < 0.2 else 1, 3),
                 dim=rng.randint(0 if 0.1 < rare < 0.3 else 1, 9), dtype=rng.choice((1, 2, 3, 3, 4, rng.randrange(6))),
                 flags=rng.choice((0, 1, 2, 4, 8, 0x10, 0x20, 0x30, 0x40, 0x80, rng.randrange(256))),
                 layer=layer if opcode <= f.KV_DATA else rng.randrange(2), head0=rng.randrange(2),
                 epoch=rng.choice((2 ** 32 - 1, 3, 3, 4, rng.randrange(5))),
                 block=block if opcode <= f.KV_DATA else rng.randrange(2), offset=rng.choice((0, 0, 0, 4096, 8192, 1, 2 ** 32 - 4096)))
    if opcode in (f.REDUCE, f.RESULT) and rng.random() < 0.9:
        h = h._replace(heads=1)
    if opcode == f.BARRIER and rng.random() < 0.8:
        h = h._replace(layer=0, head0=0, heads=0, dim=0, dtype=0, block=0, offset=0)
    size = {f.KV_READ: 4, f.NACK: 8, f.ACK: 0, f.BARRIER: 0}.get(opcode)
    if opcode in (f.KV_WRITE, f.KV_DATA):
        size = rng.choice((1, 17, 64, 100, 4096))
    if size is None:
        size = f.statistics(opcode, h.heads) + h.heads * h.dim * f.SIZE.get(h.dtype, 1)
    if rng.random() < 0.1:
        size = max(0, size + rng.choice((-1, 1, 4, 64)))
    if rng.random() < 0.02:
        h = h._replace(version=rng.randrange(256))
    if rng.random() < 0.01:
        size = rng.choice((8967, 8968, 8969, 9500, 30000))
    payload = b"\0\0\0" + poison(number, 1) if opcode == f.KV_READ and size == 4 else poison(number, size)
    options = traffic.unusual(rng) if rng.random() < 0.3 else {}
    if rng.random() < 0.03:
        options["fragment"] = rng.randrange(65536)
    return world.frame(h, payload, **options)


def fuzzed(world, size, longest):
    """(frame, from host) of about `size` bytes."""
    frames, total, number = [], 0, rng.randrange(2 ** 31)
    while total < size:
        number += 1
        kind = rng.random()
        host = rng.random() < 0.1
        if kind < 0.2:
            data = rng.randbytes(rng.choice((rng.randint(1, 70), rng.randint(60, 200), rng.randint(1, 1600))))
            if kind < 0.15 and len(data) >= 34:
                # Far enough in order to reach the later checks.
                good = world.query()
                data = good[:rng.choice((12, 14, 15, 24, 34, 42))] + data
        elif kind < 0.97:
            data = plausible(world, number)
            for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5))):
                data = traffic.spoil(rng, data)
        else:
            part = [x for x in traffic.mixed(rng, world, 100, spoilt=0.3) if len(x[0]) <= longest]
            frames += part
            total += sum(len(x[0]) for x in part)
            continue
        if len(data) > longest:
            continue
        frames.append((data, host))
        total += len(data)
    return frames


def batch(device, size, longest=70000):
    world = traffic.World(rng)
    t = replay.Traffic()
    t.frames = fuzzed(world, size, longest)
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    with Place() as p:
        outcome = replay.command(p, succeed_json, device, world.own,
                                 replay.config(world.nodes, world.jobs, world.kv), *t.files(nano=False))
    wrong = replay.differences(t, nic, fates, marks, outcome)
    assert not wrong, "\n".join(wrong)
    assert sum(nic.counters[name] for name in model.FATES) == outcome.report["counters"]["rx_frames"]
    return len(t.frames), sum(len(data) for data, _ in t.frames), nic.counters


@test
def golden():
    done = count = 0
    reached = dict.fromkeys(model.FATES, 0)
    while done < BYTES:
        frames, size, counters = batch("golden", min(BATCH, BYTES - done))
        done, count = done + size, count + frames
        for name in reached:
            reached[name] += counters[name]
    print("%d bytes in %d frames" % (done, count))
    missing = [name for name in reached if not reached[name]]
    # Only a chain passes frames. What is rare must be reached where there is much.
    rare = {"passed", "overrun", "no_slot"}
    if done < 2e7:
        rare |= {"fragment", "bad_version", "too_long", "duplicate", "mismatch"}
    assert set(missing) <= rare, missing


@test
def simulated():
    have("sim:nic")
    frames, size, _ = batch("sim:nic", SIMULATED, 65535)
    print("%d bytes in %d frames" % (size, frames))


main(TESTS)
