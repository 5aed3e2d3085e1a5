#!/usr/bin/env python3
"""The merge's mathematics: adversarial statistics through the command, judged from the definition.

Prints the worst error of every kind as a share of the specified bound. MR_NIC_MERGES is the number
of merges of each kind (default 12), a share of them by the simulated RTL.
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import Place, have, main, succeed_json  # noqa: E402
from nic import arith, frame as f, replay, traffic  # noqa: E402

rng = files.seeded()
COUNT = int(os.environ.get("MR_NIC_MERGES", 12))
BATCH = 50
HEADS = (1, 5, 7, 12, 40)
DIMS = (1, 5, 46, 80, 96, 128, 192, 576)
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def near(x):
    return lambda: x + rng.gauss(0, 2)


def uniform(x):
    return lambda: rng.uniform(-x, x)


def pick(*values):
    return lambda: rng.choice(values)


# The exponents of a head come from one of these.
EXPONENTS = {
    "small": uniform(1),
    "usual": uniform(30),
    "to 1e4": uniform(1e4),
    "near 1e4": near(1e4),
    "near -1e4": near(-1e4),
    "at 6e4 and -6e4": pick(-6e4, 6e4, -60000.5, -59999.0, 6e4 - 2),
    "all -6e4": near(-6e4),
    "at 3e38": pick(3e38, -3e38),
    "all 3e38": pick(3e38),
    "all -3e38": pick(-3e38),
    "a step of an fp32": lambda: math.ldexp(rng.randrange(2 ** 23, 2 ** 24), -10),
    "close to zero": pick(0.0, -0.0, 1e-38, -1e-38, 1e-45, 2.0 ** -126, 2.0 ** -24, -2.0 ** -12),
    "whole numbers": lambda: float(rng.randint(-40, 40)),
    "far apart": pick(0.0, -100.0, -126.0, -127.0, -149.0, -150.0, -1000.0, -24.0, -25.0, -33.0),
}
SHARES = (0.0, 0.25, 0.5, 0.9, 1.0)         # of empty heads
EMPTY = ((-math.inf, 0.0), (math.inf, 1.0), (-math.inf, 1.0), (1.0, 0.0))


def vector(dim, kind, before):
    """o of one head; `before` is the last one, for vectors that cancel it."""
    if kind == "cancelling" and before and rng.random() < 0.8:
        return [-x * (1 + rng.choice((0, 2.0 ** -7, 2.0 ** -12, 2.0 ** -20))) for x in before]
    if kind == "wide":
        return [rng.choice((-1, 1)) * 2 ** rng.uniform(-60, 60) for _ in range(dim)]
    if kind == "tiny":
        # Not smaller: with fp32 inside, what falls below its smallest normal number is lost to the bound.
        return [rng.choice((-1, 1)) * 2.0 ** rng.uniform(-105, -90) for _ in range(dim)]
    if kind == "huge":
        return [rng.gauss(0, 1) * 1e36 for _ in range(dim)]
    return [rng.gauss(0, 1) for _ in range(dim)]


def contribution(h, exponent, share, kind, before, matched):
    sums, values, vectors = [], [], []
    for i in range(h.heads):
        if rng.random() < share:
            sums += rng.choice(EMPTY) if rng.random() < 0.3 else EMPTY[0]
            values += [0.0] * h.dim
            vectors.append(None)
            continue
        d = 1.0 if h.dtype == f.FP16 else rng.choice((1.0, 2 ** rng.uniform(0, 20)))
        o = vector(h.dim, kind, before[i] if before else None)
        if kind != "cancelling" and kind != "huge" and h.dtype != f.FP16:
            o = [x * d for x in o]
        m = exponent()
        if matched and h.flags & f.NATURAL:
            m *= math.log(2)        # the same weight as without the flag
        sums += [arith.round32(m), arith.round32(d)]
        values += o
        vectors.append(o)
    lead = struct.pack(">%df" % len(sums), *sums)
    values = [max(-60000.0, min(60000.0, x)) for x in values] if h.dtype == f.FP16 else values
    return lead + bytes(f.statistics(f.PARTIAL, h.heads) - len(lead)) + arith.vector(h.dtype, values), vectors


def one_merge(name, request, everything):
    """Frames of one merge in an order of their own."""
    exponent = EXPONENTS[name]
    while True:
        heads, dim, dtype = rng.choice(HEADS), rng.choice(DIMS), rng.choice(traffic.FLOATS)
        size = f.statistics(f.PARTIAL, heads) + heads * dim * f.SIZE[dtype]
        if size + 32 <= f.LARGEST and (everything or size < 1500):
            break
    ranks = sorted(rng.sample(range(32), rng.choice((1, 2, 3, 4, 8, 31, 32) if everything else (1, 2, 3, 4))))
    bases = rng.choice(("two", "natural", "mixed", "mixed"))
    kind = rng.choice(("usual", "usual", "cancelling", "wide", "tiny", "huge"))
    matched = bases == "mixed" and rng.random() < 0.8
    share = rng.choice(SHARES)
    parts, before = [], None
    for rank in ranks:
        natural = bases == "natural" or bases == "mixed" and rng.random() < 0.5
        h = f.header(f.PARTIAL, job=5, shard=rank, shards=len(ranks), request=request, dtype=dtype, heads=heads, dim=dim,
                     flags=f.TO_ALL | (f.NATURAL if natural else 0))
        payload, before = contribution(h, exponent, share, kind, before, matched)
        parts.append((h, payload))
    rng.shuffle(parts)
    return parts


def run(device, parts, world):
    t = replay.Traffic()
    for h, payload in parts:
        t.network(world.frame(h, payload))
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    assert set(fates) == {"contributed"}, set(fates)
    with Place() as p:
        outcome = replay.command(p, succeed_json, device, world.own,
                                 replay.config(world.nodes, world.jobs, world.kv), *t.files())
        if device != "golden":
            replay.same_bytes(outcome, replay.command(p, succeed_json, "golden", world.own,
                                                      replay.config(world.nodes, world.jobs, world.kv), *t.files()))
    wrong = replay.differences(t, nic, fates, marks, outcome)
    assert not wrong, "\n".join(wrong)
    return nic


def all_kinds(device, count, everything):
    world = traffic.World(rng)
    for name in EXPONENTS:
        values = sums = 0.0
        for done in range(0, count, BATCH):
            parts = [x for request in range(min(BATCH, count - done)) for x in one_merge(name, request, everything)]
            merges = [r.merge for r in run(device, parts, world).delivered]
            values = max([values] + [m.worst for m in merges])
            sums = max([sums] + [m.worst_lse for m in merges])
        print("%-20s worst error %.3f of the bound for the values, %.3f for the lse, in %d merges" % (name, values, sums, count))


@test
def golden():
    all_kinds("golden", COUNT, True)


@test
def simulated():
    have("sim:nic")
    all_kinds("sim:nic", max(2, COUNT // 6), True)


def attention(logits, values):
    """(m, d, o) of logits in base 2, unnormalised, in double."""
    if not logits:
        return -math.inf, 0.0, [0.0] * len(values)
    m = max(logits)
    weights = [2.0 ** (x - m) for x in logits]
    return m, math.fsum(weights), [math.fsum(w * x for w, x in zip(weights, v)) for v in values]


@test
def any_split():
    """However a row of keys is split over the shards, the merge is the attention over the whole row."""
    world = traffic.World(rng)
    wanted, parts = [], []
    for request in range(min(COUNT, 200)):
        shards, dim, keys = rng.randint(1, 32), rng.choice((1, 5, 46, 80)), rng.choice((1, 2, 7, 60))
        reach = rng.choice((1.0, 100.0, 1e4))
        logits = [arith.round32(rng.uniform(-reach, reach)) for _ in range(keys)]
        if rng.random() < 0.3:
            logits = [arith.round32(reach - rng.random()) for _ in range(keys)]
        values = [[rng.gauss(0, 1) for _ in range(keys)] for _ in range(dim)]
        owner = [rng.randrange(shards) if rng.random() < 0.9 else 0 for _ in range(keys)]
        for rank in range(shards):
            mine = [i for i in range(keys) if owner[i] == rank]
            m, d, o = attention([logits[i] for i in mine], [[v[i] for i in mine] for v in values])
            h = f.header(f.PARTIAL, job=5, shard=rank, shards=shards, request=request, dtype=f.FP32, heads=1, dim=dim,
                         flags=f.TO_ALL)
            parts.append((h, struct.pack(">2f56x", m, d) + arith.vector(f.FP32, o)))
        m, d, o = attention(logits, values)
        size = [math.fsum(2.0 ** (x - m) * abs(y) for x, y in zip(logits, v)) / d for v in values]
        wanted.append((m + math.log2(d), [x / d for x in o], size))
    t = replay.Traffic()
    for h, payload in parts:
        t.network(world.frame(h, payload))
    nic, fates, marks = replay.expected(t, world.own, world.nodes, world.jobs, world.kv)
    with Place() as p:
        outcome = replay.command(p, succeed_json, "golden", world.own,
                                 replay.config(world.nodes, world.jobs, world.kv), *t.files())
    assert not replay.differences(t, nic, fates, marks, outcome)
    assert len(outcome.delivered) == len(wanted)
    # The shards' own rounding to fp32 comes on top of the bound: half an ulp each of d and o.
    loose = 2.0 ** -16 + 3 * 2.0 ** -24
    for data, (lse, o, size) in zip(outcome.delivered, wanted):
        got = struct.unpack_from(">f", data, 74)[0]
        assert abs(got - lse) <= 2.0 ** -16 * max(1, abs(lse)), (got, lse)
        for got, want, magnitude in zip(arith.unpack(f.FP32, data[138:138 + 4 * len(o)]), o, size):
            assert abs(got - want) <= loose * magnitude + arith.ulp(f.FP32, want) / 2, (got, want, magnitude)


main(TESTS)
