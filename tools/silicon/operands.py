"""Operands as the unit meets them: weights and activations of the committed digits-coupling flow, in its order."""
import json
import math
import random
import struct

FLOW, IMAGES = "models/zoo/flows/digits-coupling.safetensors", "models/zoo/flows/digits.npy"


def mix32(h):
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    return h ^ (h >> 16)


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def tensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head, data = json.loads(file.read(size)), file.read()
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = (t["shape"], struct.unpack("<%df" % ((b - a) // 4), data[a:b]))
    return head["__metadata__"], out


def images(count):
    """x of the first held-out digits (docs of the format: models/zoo/flows/FORMAT.md)."""
    with open(IMAGES, "rb") as file:
        raw = file.read()[-1797 * 64:]
    return [[2 * (raw[i * 64 + j] + ((mix32(i * 64 + j + 1) >> 16) + 0.5) / 65536) / 17 - 1 for j in range(64)]
            for i in range(4, 4 + 5 * count, 5)]


class Layer:
    """A matrix and the vectors that it meets: rows of bf16 codes, padded to sixteens."""

    def __init__(self, weight, rows, vectors):
        columns = len(weight) // rows
        pad = -columns % 16
        self.w = [[bf16(v) for v in weight[r * columns:(r + 1) * columns]] + [0] * pad for r in range(rows)]
        self.x = [[bf16(v) for v in x] + [0] * pad for x in vectors]


def linear(weight, bias, vectors):
    k = len(vectors[0])
    return [[sum(w * v for w, v in zip(weight[m * k:(m + 1) * k], x)) + b for m, b in enumerate(bias)]
            for x in vectors]


def patches(vectors, grid, kernel):
    """The inputs of a kernel x kernel convolution, a vector a token."""
    if kernel == 1:
        return vectors
    none = [0.0] * len(vectors[0])
    out = []
    for t in range(grid * grid):
        v = []
        for dy in range(kernel):
            for dx in range(kernel):
                r, q = t // grid + dy - kernel // 2, t % grid + dx - kernel // 2
                v += vectors[r * grid + q] if 0 <= r < grid and 0 <= q < grid else none
        out.append(v)
    return out


def layers(count):
    """The four matrices of every coupling, met by the activations of `count` images."""
    meta, t = tensors(FLOW)
    grid, kernel, channels = int(meta["grid"]), int(meta["kernel"]), int(meta["channels"])
    out = {}
    for image in images(count):
        side = math.isqrt(channels)
        tokens = [[image[(p // grid * side + c // side) * grid * side + p % grid * side + c % side]
                   for c in range(channels)] for p in range(grid * grid)]
        for b in range(int(meta["blocks"])):
            get = lambda name: t["c%d.%s" % (b, name)][1] # pylint: disable=cell-var-from-loop
            passed = [[v * m for v, m in zip(x, get("mask"))] for x in tokens]
            first = patches(passed, grid, kernel)
            y = [[max(v, 0.0) for v in x] for x in linear(get("w0"), get("b0"), first)]
            second = patches(y, grid, kernel)
            z = [[max(v, 0.0) for v in x] for x in linear(get("w1"), get("b1"), second)]
            y = [[u + v for u, v in zip(x, d)] for x, d in zip(y, linear(get("w2"), get("b2"), z))]
            both = linear(get("wout"), get("bout"), y)
            for name, vectors in (("w0", first), ("w1", second), ("w2", z), ("wout", y)):
                layer = Layer(get(name), t["c%d.%s" % (b, name)][0][0], vectors)
                if (b, name) in out:
                    out[b, name].x += layer.x
                else:
                    out[b, name] = layer
            alpha = get("alpha")[0]
            tokens = [[x * math.exp(alpha * math.tanh(d[c])) + d[channels + c] for c, x in enumerate(v)]
                      for v, d in zip(tokens, both)]
    return list(out.values())


def sequences(count, length, seed):
    """`count` runs of `length` operand pairs (weight, activation) as one lane meets them one after the other."""
    everything = layers(8)
    sizes = [len(l.w) * len(l.x) * len(l.w[0]) for l in everything]
    rng, out = random.Random(seed), []
    for layer in rng.choices(everything, sizes, k=count):
        m, n = rng.randrange(len(layer.w)), rng.randrange(len(layer.x))
        lane, columns = rng.randrange(16), len(layer.w[0]) // 16
        at, run = rng.randrange(columns), []
        for _ in range(length):
            run.append((layer.w[m][16 * at + lane], layer.x[n][16 * at + lane]))
            at += 1
            if at == columns:
                at, n = 0, (n + 1) % len(layer.x)
        out.append(run)
    return out


def dense(count, length, seed):
    """The same of normally distributed numbers: no zeros, no repeated rows."""
    rng = random.Random(seed)
    return [[(bf16(rng.gauss(0, 1)), bf16(rng.gauss(0, 1))) for _ in range(length)] for _ in range(count)]
