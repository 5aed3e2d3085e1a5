"""Sums of the near-memory unit, written from docs/pnm-arithmetic.md and docs/pnm-gemv.md alone."""
from .mult import INF, NAN, add_f32, to_bf16

GUARD = 19
SUM_INPUTS = 4096        # of one MATVEC
CHUNK_INPUTS = 65536     # whose parts add up in the scratchpad
ROUND_OUTPUTS = 2048
BANK_COLUMNS, PES = 16384, 4


def round_f32(value, exponent=0):
    """The integer value times 2^exponent to float32 bits: nearest even, subnormals kept, zero is +0."""
    if not value:
        return 0
    sign, m = (1 << 31, -value) if value < 0 else (0, value)
    top = m.bit_length() - 1 + exponent
    drop = max(top - 23, -149) - exponent
    if drop <= 0:
        m <<= -drop
    else:
        m, rest = m >> drop, m & (1 << drop) - 1
        m += rest > 1 << drop - 1 or rest == 1 << drop - 1 and m & 1
    if m >> 24:
        m, drop = m >> 1, drop + 1
    e = drop + exponent + 150
    if m >> 23 == 0:
        return sign | m
    return sign | INF if e > 254 else sign | e << 23 | m & 0x7FFFFF


def largest_exponent(codes):
    return max((c >> 7 & 255 for c in codes if c >> 7 & 255 != 255), default=0)


def dot(mult, weights, inputs, wexp, xexp):
    """One sum of products of bf16 codes as float32 bits."""
    acc, nan, inf = 0, False, set()
    for w, x in zip(weights, inputs):
        ew, ex = w >> 7 & 255, x >> 7 & 255
        sign = (w ^ x) >> 15
        if ew == 255 or ex == 255:
            if ew == 255 and w & 127 or ex == 255 and x & 127 or not ew or not ex:
                nan = True
            else:
                inf.add(sign)
            continue
        if not ew or not ex:
            continue
        d = max(wexp - ew + xexp - ex, 0)
        if d >= 35:
            continue
        p = (mult.significand(w & 127, x & 127) << GUARD) >> d
        acc += -p if sign else p
    if nan or len(inf) == 2:
        return NAN
    if inf:
        return INF | inf.pop() << 31
    return round_f32(acc, wexp + xexp - 287)


def shares(outputs, inputs, vectors, groups):
    """Ranges of outputs that lie in one group's banks at once: each has a largest exponent of its own."""
    blocks = -(-outputs // 16)
    ways = [(o, v) for o in range(1, groups + 1) for v in range(1, groups // o + 1)]
    over, _ = min(ways, key=lambda w: (-(-blocks // w[0]) * -(-vectors // w[1]), -w[0]))
    columns = -(-min(inputs, CHUNK_INPUTS) // 16)
    most = max(1, min(ROUND_OUTPUTS, BANK_COLUMNS * PES // columns) // 16)
    for g in range(over):
        first, end = g * blocks // over, (g + 1) * blocks // over
        rounds = -(-(end - first) // most)
        for r in range(rounds):
            yield (16 * (first + r * (end - first) // rounds),
                   min(outputs, 16 * (first + (r + 1) * (end - first) // rounds)))


def gemv(mult, w, x, outputs, inputs, vectors, groups=4):
    """Float32 bits of y[vector][output]; w and x are lists of float32 bits."""
    w, x = [to_bf16(v) for v in w], [to_bf16(v) for v in x]
    y = [0] * (vectors * outputs)
    for first, end in shares(outputs, inputs, vectors, groups):
        for k in range(0, inputs, SUM_INPUTS):
            length = min(SUM_INPUTS, inputs - k)
            rows = [w[m * inputs + k:m * inputs + k + length] for m in range(first, end)]
            wexp = max(map(largest_exponent, rows))
            for n in range(vectors):
                part = x[n * inputs + k:n * inputs + k + length]
                xexp = largest_exponent(part)
                for m, row in enumerate(rows, first):
                    r = dot(mult, row, part, wexp, xexp)
                    at = n * outputs + m
                    y[at] = add_f32(r, y[at]) if k else r
    return y
