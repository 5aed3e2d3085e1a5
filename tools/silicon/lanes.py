"""The lanes that are compared, and how each is driven."""
import json
import math

STREAMS = "rtl/pnm/pnm_streams.json"
GENERATORS = {"unary": 0, "lfsr": 1, "sobol": 2, "centred": 3}


def settings(gen, cut, length):
    """The word that a lane's mode is (rtl/pnm/pnm_mult_set.sv), for kind `split`."""
    with open(STREAMS, encoding="utf-8") as file:
        rows = next(g for g in json.load(file)["generators"] if g["name"] == gen)["split"]
    log = length.bit_length() - 1
    offset, bias = rows[cut]["offset"][log - 2], rows[cut]["bias"][log - 2]
    return (bias & 1023) << 15 | ((255 - 32 * offset) & 511) << 6 | log << 2


class Lane:
    """One circuit; `lengths` are the stream lengths it is run at (0: none, a binary lane)."""

    def __init__(self, name, top, parameters, lengths, gen=None, cut=0, stream_bits=0):
        self.name, self.top, self.parameters, self.lengths = name, top, parameters, lengths
        self.gen, self.cut, self.stream_bits = gen, cut, stream_bits
        self.drawn = False # for the picture alone: only its area is taken
        self.least = False # only its smallest mapping is simulated

    def slices(self, length):
        return max(1, length // self.stream_bits) if self.stream_bits and length else 1

    def latency(self):
        return self.parameters.get("Stages", 3)


def binary(keep, stages):
    name = "binary" if keep == 7 else "binary, %d bits kept" % keep
    return Lane("%s, %d stage%s" % (name, stages, "s" * (stages > 1)), "pnm_mult_bin",
                {"Stages": stages, "Keep": keep}, [0], cut=keep)


def short(gen, length, cut, stages):
    return Lane("%s L = %d%s, %d stage%s" % (gen, length, ", cut %d" % cut if cut else "", stages, "s" * (stages > 1)),
                "pnm_mult_short", {"Gen": GENERATORS[gen], "Log": int(math.log2(length)), "Cut": cut, "Stages": stages},
                [length], gen, cut, length)


def settable(gen, bits, lengths, whole=0):
    return Lane("%s, %d stream bits a cycle%s" % (gen, bits, ", as built" if whole else ""), "silicon_lane",
                {"Gen": GENERATORS[gen], "StreamBits": bits, "Exact": whole, "Full": whole}, lengths, gen, 0, bits)


def compared():
    """Both sides at their best: what the page's main table has."""
    return [binary(k, s) for k in (7, 5, 4, 3) for s in (1, 2)] + [binary(7, 3)] \
        + [short("centred", n, 0, s) for n in (4, 8, 16, 32) for s in (1, 2)] \
        + [short("unary", n, 0, s) for n in (4, 8, 16, 32) for s in (1, 2)] \
        + [short(g, n, c, s) for g in ("centred", "unary") for n, c in ((4, 1), (8, 1), (4, 2)) for s in (1, 2)]


def built():
    """Lanes whose length is a setting: only split, other generators, and as it stands in the engine."""
    every = [4, 8, 16, 32, 64]
    lanes = [settable("centred", b, every) for b in (4, 8, 16)] + [settable("unary", 16, every)] \
        + [settable(g, 16, [16]) for g in ("lfsr", "sobol")] + [settable("centred", 16, every, 1)]
    for lane in lanes:
        lane.least = True
    return lanes


def drawn():
    """More points for the picture of area against error: only their area is taken."""
    points = [short("centred", n, c, 1) for n, c in ((16, 1), (32, 1), (8, 2), (16, 2))] + [binary(k, 1) for k in (2, 6)]
    for lane in points:
        lane.drawn = True
    return points


def counted():
    """What `make synth` counts without a cell library."""
    return [binary(7, 1), binary(4, 1)] + [short("centred", n, 0, 1) for n in (4, 8, 16)] \
        + [short("centred", 4, 1, 1), settable("centred", 16, []), settable("centred", 16, [], 1)]
