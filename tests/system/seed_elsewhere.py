#!/usr/bin/env python3
"""A seed file made by someone who has read the page of the seed format and nothing else.

Writer, definition and .npy reader are written here from that text; of this kit only the command is used.
Windows are small, so that plain Python is quick. Every device must give the bits of every other.
"""
import array
import ast
import functools
import json
import math
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import Place, devices, main, succeed_json  # noqa: E402

SEED = int(os.environ.get("MR_SEED") or time.time())
print("MR_SEED=%d" % SEED)
rng = random.Random(SEED)
TESTS = []


def test(f):
    TESTS.append(f)
    return f


# ---- the page, in Python --------------------------------------------------------------------------

@functools.lru_cache(None)
def sgn(a, b):
    swaps, k = 0, 1
    while a >> k:
        swaps += bin((a >> k) & b).count("1")
        k += 1
    return -1.0 if swaps & 1 else 1.0


def rotor(n, thetas):
    """R_01 R_02 ... R_(n-2)(n-1), R_ij = cos + sin e_i e_j, as a list over bitmasks."""
    r, thetas = [1.0] + [0.0] * ((1 << n) - 1), iter(thetas)
    for i in range(n):
        for j in range(i + 1, n):
            theta = next(thetas)
            plane = 1 << i | 1 << j
            out = [0.0] * (1 << n)
            for a, x in enumerate(r):
                if x:
                    out[a] += x * math.cos(theta)
                    out[a ^ plane] += x * math.sin(theta) * sgn(a, plane)
            r = out
    return r


class Term:
    def __init__(self, n, r_thetas, s_thetas, gain, odd):
        self.n, self.gain = n, gain
        r, s = rotor(n, r_thetas), rotor(n, s_thetas)
        if odd:  # the versor r e_0
            r = [r[k ^ 1] * sgn(k ^ 1, 1) for k in range(1 << n)]
        for k in range(1 << n):
            grade = bin(k).count("1")
            if grade * (grade - 1) // 2 % 2:
                s[k] = -s[k]
        self.left = [(k, x) for k, x in enumerate(r) if x]
        self.reversed = s

    def weight(self, i, j):
        """gain M[I][J]: K runs over the blades of the left versor."""
        s = self.reversed
        return self.gain * sum(x * s[k ^ i ^ j] * sgn(k, j) * sgn(k ^ j, k ^ i ^ j) for k, x in self.left if s[k ^ i ^ j])


class Matrix:
    """A random projection: what goes into the file, and its weights by definition."""

    def __init__(self, name, rows, cols, n=8, terms=1, eight_bits=False, scaled=False, gains=None, odd=None, angle=None):
        self.name, self.rows, self.cols, self.n, self.terms = name, rows, cols, n, terms
        self.eight_bits, d = eight_bits, 1 << n
        self.grid = (-(-rows // d), -(-cols // d))
        self.planes = n * (n - 1) // 2
        chunks = self.grid[0] * self.grid[1]
        top = 128 if eight_bits else 32768
        self.angles = [rng.randrange(-top, top) if angle is None else angle
                       for _ in range(terms * chunks * 2 * self.planes)]
        self.gain = array.array("f", gains or [rng.gauss(0, 1) for _ in range(terms * chunks)])
        self.odd = odd if odd is not None else [rng.randrange(2) for _ in range(terms * chunks)]
        self.row_scale = array.array("f", [rng.choice([1, -1]) * 2 ** rng.uniform(-20, 20) * (rng.random() > 0.1)
                                           for _ in range(rows)]) if scaled else None
        self.made = {}

    def tensors(self):
        shape = [self.terms, *self.grid]
        code = "b" if self.eight_bits else "h"
        yield self.name + ".angles", "I8" if self.eight_bits else "I16", shape + [2, self.planes], \
            struct.pack("<%d%s" % (len(self.angles), code), *self.angles)
        yield self.name + ".gain", "F32", shape, struct.pack("<%df" % len(self.gain), *self.gain)
        yield self.name + ".odd", "U8", shape, bytes(self.odd)
        if self.row_scale:
            yield self.name + ".row_scale", "F32", [self.rows], struct.pack("<%df" % self.rows, *self.row_scale)

    def index(self, t, o, i):
        return (t * self.grid[0] + o) * self.grid[1] + i

    def chunk(self, o, i):
        """The terms of a chunk."""
        if (o, i) not in self.made:
            unit = math.pi / (128 if self.eight_bits else 32768)
            terms = []
            for t in range(self.terms):
                at = self.index(t, o, i)
                v = [a * unit for a in self.angles[at * 2 * self.planes:(at + 1) * 2 * self.planes]]
                terms.append(Term(self.n, v[:self.planes], v[self.planes:], self.gain[at], self.odd[at]))
            self.made[o, i] = terms
        return self.made[o, i]

    def scale(self, row):
        return self.row_scale[row] if self.row_scale else 1.0

    def weight(self, row, col):
        """Without the row scale."""
        d = 1 << self.n
        return sum(t.weight(row % d, col % d) for t in self.chunk(row // d, col // d))

    def sigma(self, row, col):
        """At most the page's sigma: the sum of squared gains is the smaller of its two arguments or equal to it."""
        d = 1 << self.n
        return math.sqrt(sum(self.gain[self.index(t, row // d, col // d)] ** 2 for t in range(self.terms)) / d)

    def parities(self, row, col):
        d = 1 << self.n
        return {self.odd[self.index(t, row // d, col // d)] for t in range(self.terms)}


def safetensors(matrices):
    header, data = {"__metadata__": {}}, b""
    for m in matrices:
        header["__metadata__"][m.name + ".shape"] = "%d,%d" % (m.rows, m.cols)
        header["__metadata__"][m.name + ".n"] = str(m.n)
        for name, dtype, shape, raw in m.tensors():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def npy(rows):
    """A [batch, d] float32 array."""
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + \
        b"".join(struct.pack("<%df" % len(r), *r) for r in rows)


def load(path):
    """(shape, values, raw bytes of the values) of a .npy of float32."""
    with open(path, "rb") as f:
        raw = f.read()
    assert raw[:6] == b"\x93NUMPY" and raw[6] in (1, 2), raw[:8]
    start = 10 if raw[6] == 1 else 12
    size = int.from_bytes(raw[8:start], "little")
    header = ast.literal_eval(raw[start:start + size].decode())
    assert header["descr"] == "<f4" and header["fortran_order"] is False, header
    assert (start + size) % 64 == 0
    body = raw[start + size:]
    shape = header["shape"]
    assert len(body) == 4 * math.prod(shape), (len(body), shape)
    return shape, struct.unpack("<%df" % math.prod(shape), body), body


@functools.lru_cache(None)
def generators():
    listed = devices()
    there = [u for u in ("cpu:", "sim:rgu", "opencl:0", "cuda:0") if u in listed and listed[u]["available"]]
    print("devices: golden " + " ".join(there))
    assert "cpu:" in there
    return ["golden"] + there


def same_everywhere(place, call):
    """The answer of golden, once the devices that are there have given the same bits."""
    first = None
    for uri in generators():
        out = place.name("out.npy")
        result = succeed_json(*call, "--device", uri, "--out", out)
        shape, values, raw = load(out)
        os.remove(out)
        if first is None:
            first = shape, values, raw
        assert shape == first[0] and raw == first[2], "%s differs from golden" % uri
        if uri == "sim:rgu":
            assert result["cycles"] > 0
    return first[:2]


# ---- tiles ----------------------------------------------------------------------------------------

def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def check_window(m, r0, r1, c0, c1, values):
    """bf16 values against the page's bound for a weight; +0 where no term reaches. The worst error over bound."""
    worst = 0.0
    for row in range(r0, r1):
        for col in range(c0, c1):
            got = values[(row - r0) * (c1 - c0) + col - c0]
            assert bits_of(got) & 0xFFFF == 0, "%r is no bf16" % got
            rho = m.scale(row)
            want = m.weight(row, col) * rho
            bound = abs(want) / 256 + m.sigma(row, col) * abs(rho) / 2048
            assert abs(got - want) <= bound, (m.name, row, col, got, want, bound)
            if bound:
                worst = max(worst, abs(got - want) / bound)
            if bin((row ^ col) % (1 << m.n)).count("1") % 2 not in m.parities(row, col) or rho == 0:
                assert bits_of(got) == 0, (m.name, row, col, got)
    return worst


def tile_case(m, r0, r1, c0, c1, others=()):
    with Place() as place:
        path = place.file("made.elsewhere.safetensors", safetensors([*others, m]))
        shape, values = same_everywhere(place, ["rgu", "tile", "--seeds", path, "--name", m.name,
                                                "--rows", "%d:%d" % (r0, r1), "--cols", "%d:%d" % (c0, c1)])
        assert shape == (r1 - r0, c1 - c0)
        return check_window(m, r0, r1, c0, c1, values)


@test
def one_even_term():
    tile_case(Matrix("w", 256, 256, odd=[0]), 3, 17, 100, 120)


@test
def one_odd_term():
    tile_case(Matrix("w", 256, 256, odd=[1]), 200, 214, 0, 16)


@test
def several_terms_chunks_and_scales_across_a_chunk_border():
    m = Matrix("model.layers.7.up", 300, 520, terms=3, scaled=True)
    other = Matrix("model.layers.7", 40, 30)  # a name that is the beginning of the other's
    tile_case(m, 250, 262, 506, 518, [other])
    tile_case(m, 290, 300, 510, 520, [other])


@test
def n_10():
    tile_case(Matrix("w", 1030, 1100, n=10, terms=2, odd=[0] * 4 + [1] * 4), 1018, 1030, 1020, 1028)


@test
def angles_of_eight_bits():
    tile_case(Matrix("w", 256, 200, terms=2, eight_bits=True), 60, 70, 180, 200)


@test
def thirty_two_terms():
    tile_case(Matrix("w", 9, 7, terms=32), 0, 9, 0, 7)


@test
def gains_zero_and_of_every_size():
    tile_case(Matrix("w", 256, 256, terms=4, gains=[0.0, -(2.0 ** -20), 2.0 ** 20, -3.0 * 2 ** 19]), 0, 12, 0, 12)
    tile_case(Matrix("w", 20, 20, terms=2, gains=[0.0, -0.0]), 0, 20, 0, 20)


@test
def half_turns_are_exact():
    m = Matrix("w", 256, 256, odd=[0], gains=[-0.5], angle=-32768)  # 2 * 28 signs: the identity
    with Place() as place:
        path = place.file("s", safetensors([m]))
        _, values = same_everywhere(place, ["rgu", "tile", "--seeds", path, "--name", "w"])
        assert list(values) == [-0.5 if r == c else 0.0 for r in range(256) for c in range(256)]


@test
def a_planted_mistake_shows():
    """The comparison itself: blades in order of grade, the transpose and minus half the angle are not within bounds."""
    m = Matrix("w", 256, 256, odd=[0])
    with Place() as place:
        path = place.file("s", safetensors([m]))
        succeed_json("rgu", "tile", "--seeds", path, "--name", "w", "--rows", "0:12", "--cols", "0:12", "--device", "cpu:",
                     "--out", place.name("o.npy"))
        _, values, _ = load(place.name("o.npy"))
    check_window(m, 0, 12, 0, 12, values)
    order = sorted(range(256), key=lambda b: (bin(b).count("1"), b))
    true = m.weight
    half = Matrix("w", 256, 256, odd=[0], gains=list(m.gain))
    half.angles = [-a / 2 for a in m.angles]
    for wrong in (lambda r, c: true(order[r], order[c]), lambda r, c: true(c, r), half.weight):
        m.weight = wrong
        try:
            check_window(m, 0, 12, 0, 12, values)
        except AssertionError:
            continue
        raise RuntimeError("a mistake went unnoticed")


# Values of a format between two of its neighbours, by trial: every finite code, decoded here.
def grid(exponent_bits, mantissa_bits, largest):
    bias = (1 << (exponent_bits - 1)) - 1
    out = set()
    for e in range(1 << exponent_bits):
        for f in range(1 << mantissa_bits):
            v = f * 2.0 ** (1 - bias - mantissa_bits) if e == 0 else (1 + f / 2 ** mantissa_bits) * 2.0 ** (e - bias)
            if v <= largest:
                out.add(v)
    return sorted(out)


@test
def other_formats_are_nearest_values():
    m = Matrix("w", 256, 256, terms=2, gains=[30.0, -2.0], odd=[0, 1])
    kinds = {"fp8e4m3": grid(4, 3, 448), "fp8e5m2": grid(5, 2, 57344), "fp16": grid(5, 10, 65504)}
    with Place() as place:
        path = place.file("s", safetensors([m]))
        for name, values_of in kinds.items():
            exact = set(values_of)
            _, values = same_everywhere(place, ["rgu", "tile", "--seeds", path, "--name", "w", "--rows", "8:20",
                                                "--cols", "8:20", "--format", name])
            for at, got in enumerate(values):
                row, col = 8 + at // 12, 8 + at % 12
                want = m.weight(row, col)
                assert abs(got) in exact, (name, got)
                nearest = min(values_of, key=lambda v: abs(v - abs(want)))
                # what is rounded is within the bound's second part of the definition
                assert abs(got - want) <= abs(nearest - abs(want)) + m.sigma(row, col) / 2048, (name, row, col, got, want)


# ---- apply ----------------------------------------------------------------------------------------

def apply_case(m, batch, special=None):
    x = [list(array.array("f", [rng.gauss(0, 1) for _ in range(m.cols)])) for _ in range(batch)]
    if special:
        x[0] = special
    with Place() as place:
        path, source = place.file("s", safetensors([m])), place.file("x.npy", npy(x))
        shape, y = same_everywhere(place, ["rgu", "apply", "--seeds", path, "--name", m.name, "--in", source])
    assert shape == (batch, m.rows)
    w = [[m.weight(r, c) * m.scale(r) for c in range(m.cols)] for r in range(m.rows)]
    norm = math.sqrt(sum(v * v for line in w for v in line))
    worst = 0.0
    for b in range(batch):
        length = math.sqrt(sum(v * v for v in x[b]))
        error = math.sqrt(sum((y[b * m.rows + r] - sum(p * q for p, q in zip(w[r], x[b]))) ** 2 for r in range(m.rows)))
        assert error <= norm * length / 512, (m.name, b, error, norm * length / 512)
        if length:
            worst = max(worst, error / (norm * length / 512))
        else:
            assert not any(y[b * m.rows:(b + 1) * m.rows])
    return worst


@test
def apply_over_a_chunk_border():
    apply_case(Matrix("w", 10, 262, terms=2, scaled=True), 3, [0.0] * 262)


@test
def apply_n_10_and_eight_bits():
    apply_case(Matrix("w", 12, 15, n=10, terms=2, eight_bits=True, odd=[1, 0]), 2)


if __name__ == "__main__":
    main(TESTS)
