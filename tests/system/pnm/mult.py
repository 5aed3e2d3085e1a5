"""A product of the near-memory multiplier, written from docs/pnm-arithmetic.md alone."""
import functools
import re
import struct

NAN = 0x7FC00000
INF = 0x7F800000


def f32_bits(v):
    return struct.unpack("<I", struct.pack("<f", v))[0]


def bits_f32(u):
    return struct.unpack("<f", struct.pack("<I", u))[0]


def canonical(u):
    """One NaN comes out of every operation."""
    return NAN if u & 0x7FFFFFFF > INF else u


def round_double(v):
    """A double to float32 bits. Sums and products of two float32 are rounded once that way: a double has more than twice
    their digits."""
    if v != v:
        return NAN
    try:
        return struct.unpack("<I", struct.pack("<f", v))[0]
    except OverflowError:
        return INF | (v < 0) << 31


def add_f32(a, b):
    return round_double(bits_f32(a) + bits_f32(b))


def mul_f32(a, b):
    return round_double(bits_f32(a) * bits_f32(b))


def to_bf16(u):
    """float32 bits to a bf16 code: nearest even, a NaN becomes 7FC0."""
    if u & 0x7FFFFFFF > INF:
        return 0x7FC0
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16


def constants(page):
    """{(generator, cut or "full"): {L: (o in eighths, c in 1/1024)}} of the page's table."""
    out = {}
    for name, cut, row in re.findall(r"^\| (\w+) \| (\d|full) \| (.*) \|$", page, re.M):
        pairs = [tuple(int(v) for v in cell.split(",")) for cell in row.split("|")]
        assert len(pairs) == 7, row
        out[name, cut if cut == "full" else int(cut)] = {4 << i: p for i, p in enumerate(pairs)}
    assert out, "no table of constants"
    return out


def reverse(k, length):
    bits = length.bit_length() - 1
    return int(format(k, "0%db" % bits)[::-1], 2)


def stream(value, scale, length, o, order):
    """The places k of a stream of value/scale as the bits of an integer: 1 where value/scale > (order(k) + o/8)/length."""
    out = 0
    for k in range(length):
        if value * 8 * length > (8 * order(k) + o) * scale:
            out |= 1 << k
    return out


@functools.lru_cache(maxsize=None)
def streams(scale, gen, length, o, seeds=(None, None)):
    """The streams A and B of 0/scale .. scale/scale."""
    if gen == "lfsr":
        return [[sum((v * 256 > r * scale) << k for k, r in enumerate(lfsr(i, seeds[i], length)))
                 for v in range(scale + 1)] for i in (0, 1)]
    a = [stream(v, scale, length, o, lambda k: k) for v in range(scale + 1)]
    b = [stream(v, scale, length, o, lambda k: reverse(k, length)) for v in range(scale + 1)]
    return a, b


LFSR = ((24, (24, 23, 22, 17), 0x5EED2B), (23, (23, 18), 0x2C9F71))


def lfsr(which, seed, length):
    """length numbers of 8 bits: the register's low bits, eight shifts to each."""
    width, taps, default = LFSR[which]
    state = seed if seed not in (None, 0, (1 << width) - 1) else default
    out = []
    for k in range(length):
        for _ in range(8):
            state = (state << 1 | sum(state >> t - 1 for t in taps) & 1) & (1 << width) - 1
        out.append(state & 255)
    return out


def sobol(k, length):
    """Number k of the first Sobol dimension, in units of 1/length: the bits of k in reverse order."""
    return reverse(k, length)


def ones(gen, a, b):
    """Ones of A & B. With sobol, B moves on only where A has a 1: it shows its first popcount(A) places."""
    if gen == "sobol":
        return (b & (1 << a.bit_count()) - 1).bit_count()
    return (a & b).bit_count()


class Multiplier:
    """One setting: mode, generator, cut, stream length. table is what constants() gives."""

    def __init__(self, table, mode, gen="centred", length=16, cut=0, seeds=(None, None)):
        self.mode, self.gen, self.length, self.cut, self.seeds = mode, gen, length, cut, seeds
        if mode != "exact":
            self.o, self.c = table[gen, "full" if mode == "full" else cut][length]
        self.rows = {}

    def significand(self, fa, fb):
        """P, in units of 2^-14."""
        row = self.rows.get(fa)
        if row is None:
            row = self.rows[fa] = [self._significand(fa, f) for f in range(128)]
        return row[fb]

    def _significand(self, fa, fb):
        if self.mode == "exact":
            return (128 + fa) * (128 + fb)
        if self.mode == "full":
            p = self._full(fa, fb)
        else:
            p = (1 << 14) + 128 * (fa + fb) + (self._fractions(fa, fb) if fa and fb else 0)
        return min(max(p, 0x4000), 0xFFFF)

    def _full(self, fa, fb):
        a, b = streams(256, self.gen, self.length, self.o, self.seeds)
        return ones(self.gen, a[128 + fa], b[128 + fb]) * (1 << 16) // self.length - self.c * 64

    def _fractions(self, fa, fb):
        """The estimate of fa fb, in units of 2^-14."""
        low = 7 - self.cut
        la, lb = fa & (1 << low) - 1, fb & (1 << low) - 1
        exact = fa * fb - la * lb
        if not la or not lb:
            return exact
        if self.gen != "centred":
            a, b = streams(1 << low, self.gen, self.length, self.o, self.seeds)
            return exact + ((ones(self.gen, a[la], b[lb]) * 1024 // self.length - self.c) * 16 >> 2 * self.cut)
        half = 1 << low - 1
        da, db = la - half, lb - half
        part = 0
        if da and db:
            a, b = streams(half, "centred", self.length, self.o)
            part = (ones(self.gen, a[abs(da)], b[abs(db)]) * 1024 // self.length - self.c) * 4 >> 2 * self.cut
        if (da < 0) != (db < 0):
            part = -part
        mid = (la + lb) * half - half * half
        return exact + mid + part

    def product(self, a, b):
        """Two bf16 codes to the bits of a float32."""
        sign = (a ^ b) >> 15 << 31
        ea, eb, fa, fb = a >> 7 & 255, b >> 7 & 255, a & 127, b & 127
        if ea == 255 and fa or eb == 255 and fb:
            return NAN
        if ea == 255 or eb == 255:
            return NAN if not ea or not eb else sign | INF
        if not ea or not eb:
            return sign
        p, e = self.significand(fa, fb), ea + eb - 127
        if p >= 0x8000:
            e += 1
        else:
            p <<= 1
        if e < 1:
            return sign
        if e > 254:
            return sign | INF
        return sign | e << 23 | (p & 0x7FFF) << 8
