"""What a merge and a reduction must give, and the judgement of what they gave.

A merge is computed in double precision from its definition and judged by the specified bound; a
reduction is defined exactly: fp32 additions in ascending order, each rounded to nearest even.
"""
import array
import decimal
import math
import struct

from . import frame as f

INF = math.inf
LOG2E = 1 / math.log(2)
# Exponents of two bases are compared with more digits than any number here has.
EXACT = decimal.Context(prec=90)
LOG2E_EXACT = EXACT.divide(1, EXACT.ln(2))
LOOSE = 2.0 ** -16
CANONICAL = {f.BF16: b"\x7f\xc0", f.FP16: b"\x7e\x00", f.FP32: b"\x7f\xc0\0\0"}
# digits of the significand, exponent of the smallest normal number, largest finite number
SHAPE = {f.BF16: (8, -126, (2 - 2.0 ** -7) * 2.0 ** 127), f.FP16: (11, -14, 65504.0),
         f.FP32: (24, -126, (2 - 2.0 ** -23) * 2.0 ** 127)}


def unpack(dtype, data):
    """Numbers of a big-endian vector."""
    if dtype == f.BF16:
        words = struct.unpack(">%dH" % (len(data) // 2), data)
        return array.array("f", array.array("I", [w << 16 for w in words]).tobytes()).tolist()
    return list(struct.unpack(">%d%s" % (len(data) // f.SIZE[dtype], {f.FP16: "e", f.FP32: "f", f.INT32: "i"}[dtype]),
                              data))


def round32(x):
    """A double to the nearest fp32, ties to even, overflow to infinity."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(INF, x)


def round_to(dtype, x):
    """A double to the nearest number of the type, ties to even, overflow to infinity."""
    if x == 0 or x != x or math.isinf(x):
        return x
    digits, least, largest = SHAPE[dtype]
    exponent = max(math.frexp(x)[1] - 1, least)
    unit = 2.0 ** (exponent - digits + 1)
    y = round(x / unit) * unit      # round() on floats rounds ties to even, and x / unit is exact
    return math.copysign(INF, x) if abs(y) > largest else math.copysign(y, x)


def ulp(dtype, x):
    digits, least, _ = SHAPE[dtype]
    if math.isinf(x):
        x = SHAPE[dtype][2]
    exponent = max(math.frexp(x)[1] - 1, least) if x else least
    return 2.0 ** (exponent - digits + 1)


def encode(dtype, x):
    """The big-endian bytes of a number of the type, NaN canonical."""
    if dtype == f.INT32:
        return struct.pack(">i", x)
    if x != x:
        return CANONICAL[dtype]
    if dtype == f.BF16:
        return struct.pack(">f", x)[:2]
    return struct.pack(">e" if dtype == f.FP16 else ">f", x)


def vector(dtype, values):
    """Doubles rounded and packed."""
    if dtype == f.INT32:
        return struct.pack(">%di" % len(values), *values)
    return b"".join(encode(dtype, round_to(dtype, x)) for x in values)


def order(x):
    """A key that puts -0 before +0."""
    return x, math.copysign(1, x)


def wrap(x):
    return (x + 2 ** 31) % 2 ** 32 - 2 ** 31


def reduce_(operator, dtype, payloads):
    """The exact bytes of a RESULT; the payloads come in ascending shard order."""
    total = unpack(dtype, payloads[0])
    for payload in payloads[1:]:
        other = unpack(dtype, payload)
        if dtype == f.INT32:
            pick = {f.SUM: lambda a, b: wrap(a + b), f.MAX: max, f.MIN: min}[operator]
        elif operator == f.SUM:
            # Two fp32 numbers added in double and rounded to fp32 give the fp32 sum: 53 >= 2 * 24 + 2.
            pick = lambda a, b: round32(a + b)
        else:
            choose = max if operator == f.MAX else min
            pick = lambda a, b: math.nan if a != a or b != b else choose(a, b, key=order)
        total = list(map(pick, total, other))
    return vector(dtype, total)


class Head:
    """One contribution's head: exponent, weight of the denominator, vector."""
    __slots__ = ("m", "d", "o", "natural")

    def __init__(self, m, d, o, natural):
        self.m, self.d, self.o, self.natural = m, d, o, natural

    def empty(self):
        return math.isinf(self.m) or self.d == 0

    def defined(self):
        return self.empty() or (self.m == self.m and 0 < self.d < INF)


def split(h, payload):
    """The heads of a PARTIAL."""
    size = f.statistics(f.PARTIAL, h.heads)
    numbers = struct.unpack(">%df" % (2 * h.heads), payload[:8 * h.heads])
    values = unpack(h.dtype, payload[size:])
    natural = bool(h.flags & f.NATURAL)
    return [Head(numbers[2 * i], numbers[2 * i + 1], values[i * h.dim:(i + 1) * h.dim], natural)
            for i in range(h.heads)]


def merge_head(heads, dim):
    """(lse in base 2, [value], [sum of the magnitudes over the denominator]) of one head, or None.

    None is for statistics that have no meaning (NaN, or a negative or infinite denominator). Where
    all contributions have the same base, their exponents are subtracted before they are scaled.
    """
    if not all(h.defined() for h in heads):
        return None
    full = [h for h in heads if not h.empty()]
    if not full:
        return -INF, [0.0] * dim, [0.0] * dim
    mixed = len({h.natural for h in full}) == 2
    if mixed:
        scale = 1.0
        wide = [EXACT.multiply(decimal.Decimal(h.m), LOG2E_EXACT if h.natural else 1) for h in full]
        greatest = max(wide)
        below = [float(EXACT.subtract(e, greatest)) for e in wide]
        top = float(greatest)
    else:
        scale = LOG2E if full[0].natural else 1.0
        top = max(h.m for h in full)
        below = [(h.m - top) * scale for h in full]
    weights = [2.0 ** max(e, -3000.0) for e in below]
    denominator = math.fsum(w * h.d for w, h in zip(weights, full))
    values, sizes = [], []
    for column in zip(*(h.o for h in full)):
        terms = [w * x for w, x in zip(weights, column)]
        if all(map(math.isfinite, terms)):
            values.append(math.fsum(terms) / denominator)
            sizes.append(math.fsum(map(abs, terms)) / denominator)
        else:
            values.append(sum(terms))
            sizes.append(INF)
    return top * scale + math.log2(denominator), values, sizes


class Merge:
    """What the payload of a MERGED must be."""

    def __init__(self, first, contributions):
        self.first = first
        parts = [split(h, payload) for h, payload in contributions]
        self.heads = [merge_head([part[i] for part in parts], first.dim) for i in range(first.heads)]
        # The largest errors seen beyond the output's rounding, as shares of the bound.
        self.worst = self.worst_lse = 0.0

    def judge(self, payload):
        """What is wrong with the payload of a MERGED, None when nothing is."""
        h = self.first
        size = f.statistics(f.MERGED, h.heads)
        if len(payload) != size + h.heads * h.dim * f.SIZE[h.dtype]:
            return "a payload of %d bytes" % len(payload)
        if any(payload[4 * h.heads:size]):
            return "statistics not padded with zero"
        sums = struct.unpack(">%df" % h.heads, payload[:4 * h.heads])
        values = unpack(h.dtype, payload[size:])
        for i, head in enumerate(self.heads):
            if head is None:
                continue
            wrong = self._sum(sums[i], head[0])
            if wrong:
                return "head %d: %s" % (i, wrong)
            for j, (want, magnitude) in enumerate(zip(head[1], head[2])):
                k = i * h.dim + j
                at = size + k * f.SIZE[h.dtype]
                wrong = self._value(values[k], want, magnitude, payload[at:at + f.SIZE[h.dtype]])
                if wrong:
                    return "head %d, element %d: %s" % (i, j, wrong)
        return None

    def _sum(self, got, want):
        if math.isinf(want):
            return None if got == want else "lse %r for %r" % (got, want)
        largest = SHAPE[f.FP32][2]
        if math.isinf(got) and got * want > 0 and abs(want) * (1 + LOOSE) >= largest:
            return None
        error = abs(got - want) / (LOOSE * max(1.0, abs(want)))
        self.worst_lse = max(self.worst_lse, error)
        return None if error <= 1 else "lse %r for %r: %.3f of the bound" % (got, want, error)

    def _value(self, got, want, magnitude, coded):
        dtype = self.first.dtype
        if want != want:
            return None if coded == CANONICAL[dtype] else "%s for a NaN" % coded.hex()
        if math.isinf(want):
            return None if got == want else "%r for %r" % (got, want)
        if got == want:
            return None
        allowed = LOOSE * magnitude
        half = ulp(dtype, max(abs(want), 0 if got != got or math.isinf(got) else abs(got))) / 2
        if math.isinf(got):
            beyond = SHAPE[dtype][2] + ulp(dtype, INF) / 2
            return None if abs(want) + allowed >= beyond and got * want > 0 else "%r for %r" % (got, want)
        error = abs(got - want)
        if not error <= allowed + half:
            return "%r for %r: %.3f of the bound" % (got, want, error / (allowed + half))
        if allowed:
            self.worst = max(self.worst, (error - half) / allowed)
        return None
