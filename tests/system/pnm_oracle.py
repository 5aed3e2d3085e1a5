#!/usr/bin/env python3
"""millrace pnm mult and gemv against an independent reading of docs/pnm-arithmetic.md and docs/pnm-gemv.md, bit for bit."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import ROOT, Place, devices, main, succeed_json  # noqa: E402
from pnm import matvec, mult  # noqa: E402

rng = files.seeded()
TABLE = mult.constants((ROOT / "docs/pnm-arithmetic.md").read_text(encoding="utf-8"))
LENGTHS = (4, 8, 16, 32, 64, 128, 256)
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def units():
    """golden, and every device here that has near-memory elements."""
    return ["golden"] + [u for u, d in devices().items() if d["available"] and "pnm" in d["capabilities"]]


def generator(device):
    """golden has any, the unit as it is built has one."""
    return rng.choice(["unary", "centred"]) if device == "golden" else "centred"


def npy(shape, bits):
    header = files.npy(shape, [])
    return header + struct.pack("<%dI" % len(bits), *bits)


def read(name):
    with open(name, "rb") as f:
        data = f.read()
    _, values = files.read_npy(data)
    return list(struct.unpack("<%dI" % len(values), data[len(data) - 4 * len(values):]))


def setting(mode, gen, length, cut):
    out = ["--mode", mode]
    if mode != "exact":
        out += ["--stream", str(length)]
    if mode == "split" or mode == "full" and gen != "unary":
        out += ["--gen", gen]
    return out + (["--cut", str(cut)] if mode == "split" and cut else [])


def differ(got, want, what):
    bad = [i for i, (g, w) in enumerate(zip(got, want)) if g != w]
    assert len(got) == len(want) and not bad, "%s: %d differ, first at %d: %08X, by the page %08X" % (
        what, len(bad), bad[0] if bad else -1, got[bad[0]] if bad else 0, want[bad[0]] if bad else 0)


# Bits

def any_code():
    """A bf16 code of any class."""
    return rng.choice([0, 0x8000, 1, 0x807F, 0x7F, 0x80, 0x8080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFFF,
                       rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(16)])


def gauss():
    return mult.f32_bits(rng.gauss(0, 1))


def wide():
    """Any finite float32 that bf16 holds: every exponent, so most products are lost or overflow."""
    return rng.getrandbits(1) << 31 | min(rng.randrange(255) << 23 | rng.getrandbits(23), 0x7F7F7FFF)


def edge():
    """Exponents about 35 orders apart: products at the last bit of the sum."""
    return rng.getrandbits(1) << 31 | rng.choice([90, 91, 92, 107, 108, 109, 125, 126]) << 23 | rng.getrandbits(23)


def cancelling():
    return rng.choice([0x3F800000, 0xBF800000, 0x3FC00000, 0xBFC00000, 0x2F800000, 0x34010000])


def special():
    """Among ordinary ones: infinities, NaN, zeros, subnormals, ties of the rounding to bf16, bf16's overflow."""
    return gauss() if rng.random() < 0.9 else rng.choice(
        [0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345, 0x7F7FFFFF, 0xFF7F8000, 0, 0x80000000, 1, 0x007FFFFF,
         0x807F8000, 0x3F808000, 0x3F818000, 0x3F808001, 0x00800000])


def tame():
    """special() that a matrix may hold."""
    while True:
        v = special()
        if v & 0x7FFFFFFF < 0x7F7F8000:
            return v


# Tests

@test
def every_pair_of_fractions_of_every_generator_length_and_cut():
    pairs = [(a, b) for a in range(128) for b in range(128)]
    with Place() as p:
        a = p.file("a.npy", npy([128, 128], [(0x3F80 | f) << 16 for f, _ in pairs]))
        b = p.file("b.npy", npy([128, 128], [(0x3F80 | f) << 16 for _, f in pairs]))
        ways = [("split", g, cut) for g in ("unary", "centred", "lfsr", "sobol") for cut in range(7)]
        ways += [("full", g, 0) for g in ("unary", "lfsr", "sobol")]
        # All 217 in a soak; here the unit's own and a handful of the others.
        all_ways = [(*w, n) for w in ways for n in LENGTHS]
        some = [("split", "centred", 0, n) for n in LENGTHS] + [("split", "unary", 0, n) for n in LENGTHS]
        some += rng.sample(all_ways, 10)
        for mode, gen, cut, length in all_ways if os.environ.get("MR_PNM_ALL") else some:
            succeed_json("pnm", "mult", "--a", a, "--b", b, "--out", p.name("p.npy"), *setting(mode, gen, length, cut))
            m = mult.Multiplier(TABLE, mode, gen, length, cut)
            want = [mult.f32_bits(m.significand(*f) / 16384) for f in pairs]
            differ(read(p.name("p.npy")), want, (mode, gen, length, cut))


@test
def errors_are_within_the_design():
    """Relative to the exact product, over all pairs: root mean square, and mean: one tenth of that, a quarter at 128."""
    most = {4: .040, 8: .0235, 16: .0133, 32: .0071, 64: .0037, 128: .0020}
    for gen in ("unary", "centred"):
        for length, rms in most.items():
            m = mult.Multiplier(TABLE, "split", gen, length)
            e = [m.significand(a, b) / ((128 + a) * (128 + b)) - 1 for a in range(128) for b in range(128)]
            size, mean = (sum(v * v for v in e) / len(e)) ** 0.5, abs(sum(e)) / len(e)
            assert size <= rms and mean <= size * (0.25 if length == 128 else 0.1), (gen, length, size, mean)


@test
def operands_of_every_class_on_every_device():
    count = 3000
    for device in units():
        ways = [("split", generator(device)), ("full", "unary"), ("exact", None)]
        for mode, gen in ways + [("split", "centred")] if device == "golden" else [rng.choice(ways)]:
            length, x, y = rng.choice(LENGTHS), *([any_code() for _ in range(count)] for _ in "ab")
            with Place() as p:
                a = p.file("a.npy", npy([count], [v << 16 for v in x]))
                b = p.file("b.npy", npy([count], [v << 16 for v in y]))
                succeed_json("pnm", "mult", "--a", a, "--b", b, "--out", p.name("p.npy"), "--device", device,
                             *setting(mode, gen, length, 0))
                m = mult.Multiplier(TABLE, mode, gen, length)
                differ(read(p.name("p.npy")), list(map(m.product, x, y)), (device, mode, gen, length))


@test
def the_report_names_the_generator_that_was_used():
    with Place() as p:
        a = p.file("a.npy", npy([1], [0x3FFF0000]))
        for mode, gen in (("split", "centred"), ("full", "unary")):
            r = succeed_json("pnm", "mult", "--a", a, "--b", a, "--out", p.name("p.npy"), "--mode", mode, "--stream", "8")
            assert r["gen"] == gen, r
            m = mult.Multiplier(TABLE, mode, gen, 8)
            differ(read(p.name("p.npy")), [m.product(0x3FFF, 0x3FFF)], mode)


@test
def seeds_of_the_shift_registers():
    count = 500
    x, y = ([0x3F80 | rng.randrange(128) for _ in range(count)] for _ in "ab")
    with Place() as p:
        a = p.file("a.npy", npy([count], [v << 16 for v in x]))
        b = p.file("b.npy", npy([count], [v << 16 for v in y]))
        for seeds in ((rng.randrange(1, (1 << 24) - 1), rng.randrange(1, (1 << 23) - 1)), (1, 1)):
            for mode in ("split", "full"):
                length = rng.choice(LENGTHS)
                succeed_json("pnm", "mult", "--a", a, "--b", b, "--out", p.name("p.npy"), "--seed-a", str(seeds[0]),
                             "--seed-b", str(seeds[1]), *setting(mode, "lfsr", length, 0))
                m = mult.Multiplier(TABLE, mode, "lfsr", length, 0, seeds)
                differ(read(p.name("p.npy")), list(map(m.product, x, y)), (mode, length, seeds))


def gemv(device, outputs, inputs, vectors, weight, value, mode, gen, length, groups, cut=0):
    w = [weight() for _ in range(outputs * inputs)]
    x = [value() for _ in range(vectors * inputs)]
    with Place() as p:
        r = succeed_json("pnm", "gemv", "--w", p.file("w.npy", npy([outputs, inputs], w)), "--x",
                         p.file("x.npy", npy([vectors, inputs], x)), "--out", p.name("y.npy"), "--device", device,
                         "--groups", str(groups), *setting(mode, gen, length, cut))
        y = read(p.name("y.npy"))
    want = matvec.gemv(mult.Multiplier(TABLE, mode, gen, length, cut), w, x, outputs, inputs, vectors, groups)
    differ(y, want, (device, outputs, inputs, vectors, weight.__name__, value.__name__, mode, gen, length, groups, cut))
    odd = any(v & 0x7F800000 == 0x7F800000 for v in want)
    assert ("nonfinite" in r["status"]) == odd, (r["status"], odd)


@test
def sums_on_every_device():
    for device in units():
        for weight, value in ((gauss, gauss), (wide, wide), (edge, edge), (cancelling, cancelling), (tame, special)):
            modes = ("split", "full", "exact")
            for mode in modes if device == "golden" else (rng.choice(modes),):
                gemv(device, rng.randrange(1, 70), rng.randrange(1, 80), rng.randrange(1, 7), weight, value, mode,
                     "unary" if mode == "full" else generator(device), rng.choice(LENGTHS),
                     rng.randrange(1, 5))


@test
def cuts_of_sums():
    for cut in range(1, 7):
        gemv("golden", 20, 40, 3, edge, gauss, "split", rng.choice(["unary", "centred"]), rng.choice(LENGTHS), 2, cut)


@test
def sums_of_several_rounds_parts_and_chunks():
    for device in units():
        if device.startswith("opencl"):
            continue  # lists as cpu: has them
        gemv(device, 2100, 8, 1, edge, edge, "split", "centred", 16, 1)
        gemv(device, 18, 4096 + 40, 2, edge, edge, "split", "centred", 16, 4)
    gemv("golden", 20, 17000, 1, edge, edge, "split", "centred", 16, 1)
    gemv("golden", 16, 65536 + 100, 1, gauss, edge, "exact", None, 4, 4)


if __name__ == "__main__":
    main(TESTS)
