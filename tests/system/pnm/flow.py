"""Normalizing flows, written from models/zoo/flows/FORMAT.md alone, in float64. What multiplies a matrix is the caller's choice."""
import gzip
import math
import struct
from operator import mul

import files

from .mult import f32_bits, to_bf16

LEVELS = {"digits": 17, "fashion": 256}
FASHION = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"


# Images

def digits(zoo):
    """Every image of digits.npy as (index, pixels), those held out first."""
    data = (zoo / "flows/digits.npy").read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    start = 10 + struct.unpack("<H", data[8:10])[0]
    assert b"'|u1'" in data[:start] and b"(1797, 64)" in data[:start]
    images = [(i, data[start + 64 * i:start + 64 * (i + 1)]) for i in range(1797)]
    return [im for im in images if im[0] % 5 == 4]


def fashion(count):
    """The first held-out images."""
    with gzip.open(FASHION) as f:
        magic, images, rows, cols = struct.unpack(">4I", f.read(16))
        assert (magic, images, rows, cols) == (0x803, 10000, 28, 28)
        return [(i, f.read(784)) for i in range(count)]


def mix32(h):
    h ^= h >> 16
    h = h * 0x7FEB352D & 0xFFFFFFFF
    h ^= h >> 15
    h = h * 0x846CA68B & 0xFFFFFFFF
    return h ^ h >> 16


def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def dequantise(index, pixels, levels):
    size = len(pixels)
    noise = [((mix32((index * size + j + 1) & 0xFFFFFFFF) >> 16) + 0.5) / 65536 for j in range(size)]
    return [f32(2 * (v + u) / levels - 1) for v, u in zip(pixels, noise)]


def quantise(x, levels):
    return min(max(math.floor((x + 1) * levels / 2), 0), levels - 1)


# Matrices

def product(rows, x):
    return [sum(map(mul, row, x)) for row in rows]


class Hybrid:
    """Products of bf16 operands by a Multiplier of mult.py, summed in float64."""

    def __init__(self, multiplier):
        self.multiplier, self.known = multiplier, {}

    def operand(self, v):
        """(fraction, signed power of two)"""
        code = to_bf16(f32_bits(v))
        e = code >> 7 & 255
        assert e != 255
        return code & 127, math.ldexp(-1.0 if code >> 15 else 1.0, e - 127) if e else 0.0

    def row(self, row):
        parts = [self.operand(v) for v in row]
        for f, _ in parts:
            self.multiplier.significand(f, 0)
        return [self.multiplier.rows[f] for f, _ in parts], [e / 16384 for _, e in parts]

    def __call__(self, rows, x):
        # A flow's own matrices keep their identity; a passing list is kept alive by the entry, so an id is never met twice.
        if id(rows) not in self.known:
            self.known[id(rows)] = rows, [self.row(r) for r in rows]
        x = [self.operand(v) for v in x]
        return [sum(table[f] * scale * e for table, scale, (f, e) in zip(tables, scales, x))
                for tables, scales in self.known[id(rows)][1]]


# Samples

def splitmix(x):
    x = x + 0x9E3779B97F4A7C15 & (1 << 64) - 1
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    x = (x ^ x >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return x ^ x >> 31


def normals(seed, count, temperature=1.0):
    out = []
    for i in range(count):
        v = splitmix(splitmix(seed) + i & (1 << 64) - 1)
        u1, u2 = ((v >> 32) + 0.5) / 2 ** 32, ((v & 0xFFFFFFFF) + 0.5) / 2 ** 32
        out.append(f32(temperature * math.sqrt(-2 * math.log(u1)) * math.cos(2 * math.pi * u2)))
    return out


def add(*vectors):
    return list(map(sum, zip(*vectors)))


def relu(x):
    return [v if v > 0 else 0.0 for v in x]


class Flow:
    """matvec(rows, x) multiplies a matrix with a vector, those of attention too."""

    def __init__(self, path, generated=None, matvec=product):
        tensors, self.meta = files.read_safetensors(path.read_bytes())
        assert self.meta["format"] == "millrace-flow-1"
        for key in ("tokens", "channels", "grid", "blocks"):
            setattr(self, key, int(self.meta[key]))
        self.levels, self.kind, self.matvec = LEVELS[self.meta["data"]], self.meta["kind"], matvec
        self.size = self.tokens * self.channels
        self.t = dict(generated or {})
        for name, (dtype, shape, data) in tensors.items():
            if dtype != "F32" or name.endswith(".gain"):
                continue
            values = struct.unpack("<%df" % (len(data) // 4), data)
            width = len(values) // shape[0]
            self.t[name] = list(values) if len(shape) == 1 else [list(values[i:i + width])
                                                                 for i in range(0, len(values), width)]

    # The order of pixels

    def places(self):
        """Pixel of every token's channels."""
        p = math.isqrt(self.channels)
        side = self.grid * p
        return [[(t // self.grid * p + c // p) * side + t % self.grid * p + c % p for c in range(self.channels)]
                for t in range(self.tokens)]

    def tokens_of(self, image):
        return [[image[j] for j in token] for token in self.places()]

    def image_of(self, tokens):
        out = [0.0] * self.size
        for places, values in zip(self.places(), tokens):
            for j, v in zip(places, values):
                out[j] = v
        return out

    # The flow

    def forward(self, x):
        """(z, logdet)"""
        logdet = 0.0
        for b in range(self.blocks):
            x, more = self.couple(b, x, False) if self.kind == "coupling" else self.block(b, x, False)
            logdet += more
        return x, logdet

    def inverse(self, z):
        for b in reversed(range(self.blocks)):
            z, _ = self.couple(b, z, True) if self.kind == "coupling" else self.block(b, z, True)
        return z

    def bpd(self, z, logdet):
        squares = sum(v * v for token in z for v in token)
        logp = -0.5 * squares - 0.5 * self.size * math.log(2 * math.pi)
        return ((-logp - logdet) / self.size + math.log(self.levels / 2)) / math.log(2)

    # Couplings

    def conv(self, name, x):
        k, grid = int(self.meta["kernel"]), self.grid
        none = [0.0] * len(x[0])
        out = []
        for r in range(grid):
            for q in range(grid):
                window = []
                for y in range(r - k // 2, r - k // 2 + k):
                    for v in range(q - k // 2, q - k // 2 + k):
                        window += x[y * grid + v] if 0 <= y < grid and 0 <= v < grid else none
                out.append(self.matvec(self.t[name], window))
        return out

    def couple(self, b, x, back):
        p = "c%d." % b
        t, c = self.t, self.channels
        y = [relu(add(v, t[p + "b0"])) for v in self.conv(p + "w0", [list(map(mul, v, t[p + "mask"])) for v in x])]
        inner = [relu(add(v, t[p + "b1"])) for v in self.conv(p + "w1", y)]
        y = [add(v, self.matvec(t[p + "w2"], i), t[p + "b2"]) for v, i in zip(y, inner)]
        out, logdet = [], 0.0
        for v, values in zip(y, x):
            st = add(self.matvec(t[p + "wout"], v), t[p + "bout"])
            s = [t[p + "alpha"][0] * math.tanh(a) for a in st[:c]]
            out.append([(a - m) * math.exp(-e) if back else a * math.exp(e) + m for a, e, m in zip(values, s, st[c:])])
            logdet += sum(s)
        return out, logdet

    # Transformer blocks

    def block(self, b, x, back):
        """Token by token in either direction: a token's scale and shift need only the ones before it."""
        p = "b%d." % b
        t, c, width = self.t, self.channels, int(self.meta["width"])
        layers = range(int(self.meta["layers"]))
        caches = [([], []) for _ in layers]
        known, out, logdet, h = [], [], 0.0, list(t[p + "pos"][0])
        order = x[::-1] if b % 2 else x
        for i, value in enumerate(order):
            if i:
                h = add(self.matvec(t[p + "win"], known[-1]), t[p + "bin"], t[p + "pos"][i])
            for layer in layers:
                h = self.layer("%sl%d." % (p, layer), h, *caches[layer], width)
            st = add(self.matvec(t[p + "wout"], rms(h)), t[p + "bout"])
            a = [t[p + "alpha"][0] * math.tanh(v) for v in st[:c]]
            if back:
                out.append([v * math.exp(e) + m for v, e, m in zip(value, a, st[c:])])
                known = out
            else:
                out.append([(v - m) * math.exp(-e) for v, e, m in zip(value, a, st[c:])])
                known = order[:i + 1]
            logdet -= sum(a)
        return (out[::-1] if b % 2 else out), logdet

    def layer(self, p, h, keys, values, width):
        t, mv = self.t, self.matvec
        n = rms(h)
        q = add(mv(t[p + "wq"], n), t[p + "bq"])
        keys.append(mv(t[p + "wk"], n))
        values.append(mv(t[p + "wv"], n))
        o = []
        for head in range(0, width, 16):
            part = slice(head, head + 16)
            scores = mv([k[part] for k in keys], q[part])
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            o += [s / total for s in mv(list(zip(*(v[part] for v in values))), weights)]
        h = add(h, mv(t[p + "wo"], o), t[p + "bo"])
        return add(h, mv(t[p + "w2"], relu(add(mv(t[p + "w1"], rms(h)), t[p + "b1"]))), t[p + "b2"])


def rms(h):
    scale = 1 / math.sqrt(sum(v * v for v in h) / len(h) + 1e-5)
    return [v * scale for v in h]
