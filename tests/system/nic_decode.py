#!/usr/bin/env python3
"""One decode step over several nodes, each step a run of the command: the query travels, the KV stays.

The root's host sends one QUERY; its NIC copies it to every member. Each host computes the attention over
its own keys and sends a PARTIAL; the root's NIC answers with one MERGED, which must be the attention over
all keys. Frames go from one NIC to the next through capture files.
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import Place, have, main, succeed_json  # noqa: E402
from nic import arith, frame as f, model, pcap, replay  # noqa: E402

rng = files.seeded()
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def attend(query, keys, values, natural):
    """(m, d, o) of one head; logits to base 2 or e, unnormalised."""
    if not keys:
        return -math.inf, 0.0, [0.0] * len(query)
    logits = [sum(a * b for a, b in zip(query, key)) for key in keys]
    m = arith.round32(max(logits))
    base = math.e if natural else 2.0
    weights = [base ** (x - m) for x in logits]
    return m, math.fsum(weights), [math.fsum(w * v[i] for w, v in zip(weights, values)) for i in range(len(query))]


class Cluster:
    def __init__(self, device, members, root):
        self.device, self.members, self.root = device, members, root
        self.nodes = {r: f.node(r) for r in members}
        self.tables = replay.config(self.nodes, {1: model.Job(members, root)})

    def run(self, rank, network=(), host=()):
        with Place() as p:
            return replay.command(p, succeed_json, self.device, rank, self.tables,
                                  *[pcap.write([(10 ** 9 + 1000 * i, x) for i, x in enumerate(side)]) for side in (network, host)])


def addressed(frames, rank):
    return [x for x in frames if x[5] == rank]


def opcode(data):
    return data[43]


def step(device, nodes, heads, dim, natural, reliable, to_all):
    members = sorted(rng.sample(range(32), nodes))
    root = rng.choice(members)
    c = Cluster(device, members, root)
    # Each node's keys, in halves so that the base-e logits come out as the same weights.
    cache = {r: [[([rng.gauss(0, 1) for _ in range(dim)], [rng.gauss(0, 1) for _ in range(dim)])
                  for _ in range(rng.choice((0, 1, 3, 20)))] for _ in range(heads)] for r in members}
    cache[root][0] = cache[root][0] or [([1.0] * dim, [1.0] * dim)]
    flags = f.RELIABLE if reliable else 0
    h = f.header(f.QUERY, job=1, shard=root, shards=nodes, request=9, layer=3, heads=heads, dim=dim, dtype=f.FP32, flags=flags)
    query = arith.vector(f.FP32, [rng.gauss(0, 1) for _ in range(heads * dim)])
    own = c.nodes[root]
    ask = c.run(root, host=[f.ethernet(own, own, f.pack(h) + query)])
    assert [opcode(x) for x in ask.delivered] == [f.QUERY] + ([f.ACK] if reliable else [])
    assert len(ask.sent) == nodes - 1 and all(opcode(x) == f.QUERY for x in ask.sent)
    partials, acks = {}, []
    for rank in members:
        if rank == root:
            arrived = ask.delivered[0]
        else:
            seen = c.run(rank, network=addressed(ask.sent, rank))
            assert [opcode(x) for x in seen.delivered] == [f.QUERY]
            arrived, acks = seen.delivered[0], acks + seen.sent
        q = arith.unpack(f.FP32, arrived[74:74 + 4 * heads * dim])
        base = natural and rank % 2
        sums, o = [], []
        for i in range(heads):
            pairs = cache[rank][i]
            m, d, v = attend([x * (math.log(2) if base else 1) for x in q[i * dim:(i + 1) * dim]],
                             [k for k, _ in pairs], [v for _, v in pairs], base)
            sums += [m, d]
            o += v
        g = h._replace(opcode=f.PARTIAL, shard=rank, flags=flags | (f.NATURAL if base else 0) | (f.TO_ALL if to_all else 0))
        lead = struct.pack(">%df" % len(sums), *sums).ljust(f.statistics(f.PARTIAL, heads), b"\0")
        partials[rank] = f.ethernet(c.nodes[rank], own, f.pack(g) + lead + arith.vector(f.FP32, o))
    assert len(acks) == (nodes - 1 if reliable else 0) and all(x[5] == root for x in acks)
    # What a host sends to another node leaves its own NIC as it is.
    travelling = []
    for rank in members:
        if rank != root:
            sent = c.run(rank, host=[partials[rank]]).sent
            assert sent == [partials[rank]]
            travelling += sent
    rng.shuffle(travelling)
    done = c.run(root, network=travelling, host=[partials[root]])
    merged = [x for x in done.delivered if opcode(x) == f.MERGED]
    assert len(merged) == 1, [opcode(x) for x in done.delivered]
    away = [x for x in done.sent if opcode(x) == f.MERGED]
    assert [x[5] for x in away] == ([r for r in members if r != root] if to_all else [])
    for x in away:
        assert x[42:] == merged[0][42:]
        seen = c.run(x[5], network=[x])
        assert seen.delivered == [x] and [opcode(a) for a in seen.sent] == ([f.ACK] if reliable else [])
    # Against the attention over all keys at once.
    q = arith.unpack(f.FP32, query)
    size = f.statistics(f.MERGED, heads)
    got = arith.unpack(f.FP32, merged[0][74 + size:74 + size + 4 * heads * dim])
    for i in range(heads):
        pairs = [x for r in members for x in cache[r][i]]
        m, d, o = attend(q[i * dim:(i + 1) * dim], [k for k, _ in pairs], [v for _, v in pairs], False)
        lse = struct.unpack_from(">f", merged[0], 74 + 4 * i)[0]
        if not pairs:
            assert lse == -math.inf and not any(got[i * dim:(i + 1) * dim])
            continue
        assert abs(lse - (m + math.log2(d))) <= 2.0 ** -16 * max(1, abs(lse)), (lse, m + math.log2(d))
        logits = [sum(a * b for a, b in zip(q[i * dim:(i + 1) * dim], k)) for k, _ in pairs]
        for j in range(dim):
            magnitude = math.fsum(2.0 ** (x - m) * abs(v[j]) for x, (_, v) in zip(logits, pairs)) / d
            # The shards' own rounding of m, d and o to fp32 comes on top of the merge's bound.
            loose = (2.0 ** -16 + 2.0 ** -22 * max(1, abs(m))) * magnitude + arith.ulp(f.FP32, o[j] / d)
            assert abs(got[i * dim + j] - o[j] / d) <= loose, (i, j, got[i * dim + j], o[j] / d)


@test
def golden():
    for nodes in (1, 2, 3, 8):
        step("golden", nodes, rng.choice((1, 4, 7)), rng.choice((5, 64)), False, False, False)
        step("golden", nodes, rng.choice((1, 4, 7)), rng.choice((5, 64)), True, True, True)


@test
def simulated():
    have("sim:nic")
    step("sim:nic", 3, 7, 64, True, True, True)


main(TESTS)
