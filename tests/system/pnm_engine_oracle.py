#!/usr/bin/env python3
"""Lists of descriptors against an independent reading of docs/pnm-descriptors.md and docs/pnm-arithmetic.md."""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import ROOT, Skip, devices, main  # noqa: E402
from pnm import device, engine, flow, mult, programs  # noqa: E402

rng = files.seeded()
FIELDS = engine.fields((ROOT / "docs/pnm-descriptors.md").read_text(encoding="utf-8"))
TABLE = mult.constants((ROOT / "docs/pnm-arithmetic.md").read_text(encoding="utf-8"))
MULTIPLIERS = {}
ROUNDS = int(os.environ.get("MR_PNM_ROUNDS", "2"))
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def multiplier(mode, log_length):
    key = mode, log_length
    if key not in MULTIPLIERS:
        name = ("split", "full", "exact")[mode]
        MULTIPLIERS[key] = mult.Multiplier(TABLE, name, "unary" if mode == 1 else "centred", 1 << log_length)
    return MULTIPLIERS[key]


def units():
    """Devices here that take lists."""
    uris = [u for u, d in devices().items() if d["available"] and "pnm" in d["capabilities"]]
    if not uris:
        raise Skip("no device here has near-memory elements")
    return uris


@test
def random_programs_on_every_device():
    for uri in units():
        chip, unit = engine.Chip(multiplier), device.Device(uri, programs.SIZE)
        for turn in range(ROUNDS):
            maker = programs.Maker(rng, bool(turn % 2))
            lists = [maker.program(g, rng.randrange(6, 12)) for g in range(4)]
            memory, places = maker.memory(), []
            for g, program in enumerate(lists):
                at = programs.LISTS + 0x2000 * g
                for i, (name, d) in enumerate(program):
                    here = dict(d, addr=d["addr"] + unit.address) if "addr" in d else d
                    memory[at + 64 * i:at + 64 * i + 64] = engine.encode(FIELDS, name, here)
                places.append((at, len(program)))
            got, status = unit.run(memory, places)
            want = bytearray(memory)
            flags = chip.run(want, lists)
            for g in range(4):
                at = programs.OUTPUT + g * 64 * programs.KEPT
                for i in range(16 * programs.KEPT):
                    here = slice(at + 4 * i, at + 4 * i + 4)
                    assert got[here] == want[here], "%s, job %d, group %d, row %d word %d: %s, by the page %s; list %s" % (
                        uri, turn, g, i // 16, i % 16, got[here][::-1].hex(), want[here][::-1].hex(), lists[g])
            assert got == want
            assert status & 3 == flags, (uri, turn, status, flags)
        unit.close()


def power(x):
    return 0.0 if x < -150 else math.inf if x >= 128 else 2.0 ** x


def logarithm(x):
    return math.nan if x < 0 else -math.inf if x == 0 else x if math.isinf(x) else math.log2(x)


@test
def functions_are_within_the_bounds_of_the_page():
    """2^x and log2 of a few hundred numbers; exact where the result is a power of two or an integer."""
    count = 512
    for uri in units():
        unit = device.Device(uri, programs.SIZE)
        for fn, exact in ((1, power), (2, logarithm)):
            x = [math.inf, -math.inf, 0.0, -0.0, 128.0, 127.99999, -126.0, -149.0, -150.0, -151.0, 1e-45, 1e-40, -1.0, 1e30]
            x += [float(i) for i in range(-20, 20)] + [2.0 ** i for i in range(-140, 120, 9)]
            while len(x) < count:
                x.append(rng.gauss(0, 40) if fn == 1 else 2.0 ** rng.uniform(-140, 120))
            x = [flow.f32(v) for v in x]
            memory = bytearray(programs.SIZE)
            struct.pack_into("<%df" % count, memory, programs.INPUT, *x)
            rows = count // 16
            steps = [("LOAD", dict(rows=rows, row=0, addr=unit.address + programs.INPUT)),
                     ("VEC", dict(count=1, width=rows, fn=fn, a=0, d=rows)),
                     ("STORE", dict(rows=rows, row=rows, addr=unit.address + programs.OUTPUT))]
            for i, (name, d) in enumerate(steps):
                memory[64 * i:64 * i + 64] = engine.encode(FIELDS, name, d)
            after, status = unit.run(memory, [(0, len(steps))])
            assert status == 0, status
            for a, y in zip(x, struct.unpack_from("<%df" % count, after, programs.OUTPUT)):
                want = exact(a)
                if math.isnan(want) or math.isinf(want) or want == round(want) and abs(want) < 1e6 or math.frexp(want)[0] == 0.5:
                    good = y == flow.f32(want) or math.isnan(want) and math.isnan(y)
                elif fn == 1:
                    good = abs(y - want) <= 1.0e-7 * want + 2.0 ** -149 * 0.5001
                else:
                    good = abs(y - want) <= 7e-8 * max(1, abs(want))
                assert good, (uri, fn, a, y, want)
        unit.close()


if __name__ == "__main__":
    main(TESTS)
