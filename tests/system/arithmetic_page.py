#!/usr/bin/env python3
"""The integers of docs/rgu-arithmetic.md, written from that page alone, against the bits of the command.

All generators are compared with one another elsewhere; this says that what they agree on is what the page says.
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import Place, main, succeed_json  # noqa: E402
from seed_elsewhere import Matrix, load, rng, safetensors  # noqa: E402

TESTS = []


def test(f):
    TESTS.append(f)
    return f


def par(x):
    return bin(x).count("1") & 1


def g(m):
    return sum(par(m & ((1 << i) - 1)) << i for i in range(m.bit_length() + 12))


def s(a, m):
    return par(a & g(m))


def rnh(x, bits):
    return (x + (1 << (bits - 1))) >> bits


def nearest(x):
    return math.floor(x * 2 ** 24 + 0.5)


UNIT = math.pi / 32768
C1, S1 = ([nearest(f(128 * a * UNIT)) for a in range(128)] for f in (math.cos, math.sin))
C2, S2 = ([nearest(f(b * UNIT)) for b in range(128)] for f in (math.cos, math.sin))


def sincos(v):
    q, a, b = (v >> 14) & 3, (v >> 7) & 127, v & 127
    c = rnh(C1[a] * C2[b] - S1[a] * S2[b], 28)
    t = rnh(S1[a] * C2[b] + C1[a] * S2[b], 28)
    return [(c, t), (-t, c), (-c, -t), (t, -c)][q]


def expand(n, angles, start):
    """{even blade: component}, from 22 fraction bits to the same."""
    planes = [(i, j) for i in range(n) for j in range(i + 1, n)]
    angle = dict(zip(planes, angles))
    x = [start]
    for i in range(n - 2, -1, -1):
        blades = []
        for k in range(1 << (n - 1 - i)):
            b = sum((k >> p & 1) << (n - 1 - p) for p in range(n - 1 - i))
            blades.append(b | par(b) << i)
        grown = [0] * len(blades)
        for k, v in enumerate(x):
            grown[k + par(k) * (1 << (n - 2 - i))] = v
        x = grown
        for j in range(n - 1, i, -1):
            m, st = 1 << i | 1 << j, 1 << (n - 1 - j)
            c, t = sincos(angle[i, j])
            x = [rnh(c * x[k] + (-1) ** s(m, b ^ m) * t * x[k ^ st], 20) for k, b in enumerate(blades)]
    return dict(zip(blades, x))


class Chunk:
    def __init__(self, m, o, i):
        n, gains = m.n, [m.gain[m.index(t, o, i)] for t in range(m.terms)]
        self.n, self.low = n, (1 << (n - 1)) - 1
        largest, self.e = max(map(abs, gains)), 0
        if largest:
            self.e = -200
            while 2.0 ** self.e < largest:
                self.e += 1
        self.terms, self.acc = [], {}
        for t, gain in enumerate(gains):
            at, odd = m.index(t, o, i), m.odd[m.index(t, o, i)]
            v = [a * (256 if m.eight_bits else 1) for a in m.angles[at * 2 * m.planes:(at + 1) * 2 * m.planes]]
            r, rev = {}, {}
            for k, x in expand(n, v[:m.planes], round(abs(gain) * 2.0 ** (22 - self.e))).items():
                x = rnh(x, 2) * (-1 if gain < 0 else 1)
                if odd:
                    x, k = x * (-1) ** bin(k >> 1).count("1"), k ^ 1
                r[k & self.low] = x * (-1) ** s(k, k)
            for k, x in expand(n, v[m.planes:], 1 << 22).items():
                ones = bin(k).count("1")
                rev[k & self.low] = rnh(x, 4) * (-1) ** (ones * (ones - 1) // 2)
            self.terms.append((odd, r, rev))

    def accumulated(self, m):
        if m not in self.acc:
            odd, out = par(m), []
            for k in range(self.low + 1):
                blade = k | (par(k) ^ odd) << (self.n - 1)
                total = sum(rnh(r[k] * rev[(k ^ m) & self.low], 14) for o, r, rev in self.terms if o == odd)
                out.append((-1) ** par(blade & g(m)) * total)
            self.acc[m] = out
        return self.acc[m]

    def integer(self, i, j):
        m, odd = i ^ j, par(i ^ j)
        sign = 0
        if j > self.low:  # the mirrored half
            i, j, sign = ~i & (2 * self.low + 1), ~j & (2 * self.low + 1), par(g(m) & (2 * self.low + 1)) + odd * (self.n + 1)
        v = sum(-a if par(k & j) else a for k, a in enumerate(self.accumulated(m)))
        return (-1) ** (par(j & g(m)) + odd * par(j) + sign) * v


def same_bits(m, r0, r1, c0, c1):
    with Place() as place:
        path, out = place.file("s", safetensors([m])), place.name("o.npy")
        succeed_json("rgu", "tile", "--seeds", path, "--name", m.name, "--rows", "%d:%d" % (r0, r1), "--cols",
                     "%d:%d" % (c0, c1), "--format", "fp32", "--device", "golden", "--out", out)
        _, _, raw = load(out)
    d, chunks, want = 1 << m.n, {}, b""
    for row in range(r0, r1):
        for col in range(c0, c1):
            at = row // d, col // d
            if at not in chunks:
                chunks[at] = Chunk(m, *at)
            # at most 31 bits: exact in a double, rounded once by the packing
            want += struct.pack("<f", chunks[at].integer(row % d, col % d) * 2.0 ** (chunks[at].e - 24))
    assert raw == want, [(k, raw[4 * k:4 * k + 4].hex(), want[4 * k:4 * k + 4].hex())
                         for k in range(len(raw) // 4) if raw[4 * k:4 * k + 4] != want[4 * k:4 * k + 4]][:5]
    assert any(raw)


@test
def one_term_of_either_parity():
    for odd in (0, 1):
        same_bits(Matrix("w", 256, 256, odd=[odd]), 120, 136, 122, 134)


@test
def terms_gains_and_chunks():
    same_bits(Matrix("w", 300, 600, terms=3), 250, 262, 506, 518)
    same_bits(Matrix("w", 9, 8, terms=5, gains=[1.0, -0.3, 0.0, 1e-5, 0.99]), 0, 9, 0, 8)
    same_bits(Matrix("w", 9, 8, terms=2, gains=[1e6, -1e6 - 1], odd=[1, 1]), 0, 9, 0, 8)


@test
def n_10_and_angles_of_eight_bits():
    same_bits(Matrix("w", 1024, 1024, n=10, terms=2, odd=[0, 1]), 509, 515, 509, 515)
    same_bits(Matrix("w", 256, 256, terms=2, eight_bits=True), 60, 70, 200, 206)


if __name__ == "__main__":
    main(TESTS)
