#!/usr/bin/env python3
"""millrace run flow against an independent reading of models/zoo/flows/FORMAT.md and docs/flow.md in float64."""
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import ROOT, Place, Skip, main, succeed, succeed_json  # noqa: E402
from pnm import flow, mult, picture  # noqa: E402

rng = files.seeded()
ZOO = ROOT / "models/zoo"
TABLE = mult.constants((ROOT / "docs/pnm-arithmetic.md").read_text(encoding="utf-8"))
TESTS = []

# Bits per dimension: float32 (2^-24 an operation, a few thousand operations a path) against float64. The largest seen is
# 1.7e-6 on fashion-tar-sharp, whose scales reach several hundred.
FP32 = 2e-5
# The same hybrid products, made into tanh, exp and roots by other arithmetic: what is left is the operands that land on the
# other side of a rounding to bf16, and the noise of all the products that this changes.
PRODUCTS = 1e-3


def test(f):
    TESTS.append(f)
    return f


def load(name, matvec=flow.product):
    path = ZOO / "flows" / (name + ".safetensors")
    return flow.Flow(path, generated(path) if name == "digits-full" else None, matvec)


def generated(path):
    """The matrices that the rotor unit makes from the seeds of the file."""
    tensors, _ = files.read_safetensors(path.read_bytes())
    out = {}
    with Place() as p:
        for name in (n[:-len(".angles")] for n in tensors if n.endswith(".angles")):
            succeed("rgu", "tile", "--seeds", str(path), "--name", name, "--device", "golden", "--out", p.name("w.npy"))
            (rows, cols), v = files.read_npy(pathlib.Path(p.name("w.npy")).read_bytes())
            assert (rows, cols) == (128, 64)
            out[name] = [list(v[i:i + cols]) for i in range(0, rows * cols, cols)]
    return out


def hybrid(mode, length):
    return flow.Hybrid(mult.Multiplier(TABLE, mode, "centred", length))


def images(name, count):
    if name.startswith("digits"):
        return flow.digits(ZOO)[:count]
    if not os.path.exists(flow.FASHION):
        raise Skip("dataset-fashion-mnist is not here")
    return flow.fashion(count)


def run(*args):
    return succeed_json("run", "flow", "--device", "golden", *args, env={"MILLRACE_ZOO": str(ZOO)})


def score(name, count, mine, tolerance, *args):
    theirs = run("--model", name, "--score", "test", "--limit", str(count), "--round-trip", "1", *args)
    there, bits = None, 0.0
    for index, pixels in images(name, count):
        x = mine.tokens_of(flow.dequantise(index, pixels, mine.levels))
        z, logdet = mine.forward(x)
        bits += mine.bpd(z, logdet) / count
        there = there or (x, z)
    assert abs(theirs["bpd"] - bits) <= tolerance * bits, "%s: %.7f, by the page %.7f" % (name, theirs["bpd"], bits)
    assert theirs["images"] == count
    return there, theirs


def both_ways(name, count):
    mine = load(name)
    (x, z), theirs = score(name, count, mine, FP32, "--mult", "fp32")
    back = mine.inverse(z)
    worst = max(abs(a - b) for u, v in zip(back, x) for a, b in zip(u, v))
    assert worst < 1e-12, "%s: round trip %g" % (name, worst)
    assert theirs["round_trip"]["max"] < 1e-4, theirs["round_trip"]


@test
def quantising_undoes_dequantising():
    for levels in flow.LEVELS.values():
        for v in range(levels):
            for noise in (0.5 / 65536, 0.5, 65535.5 / 65536):
                assert flow.quantise(flow.f32(2 * (v + noise) / levels - 1), levels) == v, (levels, v, noise)
    for index, pixels in flow.digits(ZOO)[::20]:
        assert [flow.quantise(v, 17) for v in flow.dequantise(index, pixels, 17)] == list(pixels), index


@test
def bits_of_the_digits():
    for name, count in (("digits-coupling", 5), ("digits-tar", 2), ("digits-full", 2)):
        both_ways(name, count)


@test
def bits_of_the_clothes():
    names = ("fashion-coupling", "fashion-coupling-sharp"), ("fashion-tar", "fashion-tar-sharp")
    for name in sum(names, ()) if os.environ.get("MR_PNM_ALL") else map(rng.choice, names):
        both_ways(name, 1)


@test
def bits_by_every_multiplier():
    score("digits-tar", 1, load("digits-tar", hybrid("split", 16)), PRODUCTS, "--mult", "hybrid", "--stream", "16")
    score("digits-coupling", 5, load("digits-coupling", hybrid("exact", None)), FP32, "--mult", "bf16")


@test
def bits_of_hybrid_products_image_by_image():
    """Nearly every image agrees as float32 does; one activation rounded to the other side changes every product after it."""
    for length in (16, 4):
        mine = load("digits-coupling", hybrid("split", length))
        off, before = [], 0.0
        for n, (index, pixels) in enumerate(images("digits-coupling", 4), 1):
            z, logdet = mine.forward(mine.tokens_of(flow.dequantise(index, pixels, mine.levels)))
            r = run("--model", "digits-coupling", "--score", "test", "--limit", str(n), "--round-trip", "1",
                    "--mult", "hybrid", "--stream", str(length))
            off.append(abs(n * r["bpd"] - before - mine.bpd(z, logdet)))
            before = n * r["bpd"]
        assert sorted(off)[1] <= 4 * FP32 and max(off) <= 2 * n * PRODUCTS, (length, off)


@test
def samples():
    """Pixel by pixel. A value at the edge of a level may fall to either side: one level at most, and hardly ever."""
    clothes = rng.choice(["fashion-coupling", "fashion-tar"])
    for name, count in (("digits-coupling", 4), ("digits-tar", 2), (clothes, 1)):
        mine, seed, temperature = load(name), rng.randrange(1 << 32), rng.choice([1.0, 0.8])
        with Place() as p:
            run("--model", name, "--sample", str(count), "--seed", str(seed), "--temperature", str(temperature),
                "--mult", "fp32", "--out", p.name("grid.png"))
            width, _, rows = picture.read_png(pathlib.Path(p.name("grid.png")).read_bytes())
        z = flow.normals(seed, count * mine.size, temperature)
        side = 8 if mine.levels == 17 else 28
        scale = picture.scale(width, side, count)
        off = 0
        for i in range(count):
            part = [z[(i * mine.tokens + t) * mine.channels:(i * mine.tokens + t + 1) * mine.channels]
                    for t in range(mine.tokens)]
            pixels = mine.image_of(mine.inverse(part))
            seen = picture.cell(rows, i, count, side, scale)
            for j, v in enumerate(pixels):
                level = flow.quantise(v, mine.levels)
                got = round(seen[j] * (mine.levels - 1) / 255)
                assert abs(got - level) <= 1, "%s, seed %d: image %d, pixel %d is %d, not %d" % (name, seed, i, j, got, level)
                off += got != level
        assert off <= 1 + count * mine.size // 500, "%s, seed %d: %d pixels are a level off" % (name, seed, off)


if __name__ == "__main__":
    main(TESTS)
