"""A group of the near-memory unit, from docs/pnm-descriptors.md and docs/pnm-arithmetic.md: a list of descriptors over a
scratchpad and banks. The fields' places are read from the page's tables."""
import re
import struct

from . import matvec
from .mult import NAN, add_f32, bits_f32, canonical, mul_f32, to_bf16

WORDS = 16
PES = 4


def fields(page):
    """{descriptor: (type, {field: (lowest bit, bits)})}"""
    out = {}
    for name, code, table in re.findall(r"^## (\w+), type (\d+)\n(.*?)(?=^## )", page, re.M | re.S):
        rows = re.findall(r"^\| (\d+)(?::(\d+))? \| (\w+) \|", table, re.M)
        # "47:32" is high and low, "8" one bit
        out[name] = int(code), {f: (int(low or high), int(high) - int(low or high) + 1) for high, low, f in rows}
    assert len(out) == 10, sorted(out)
    return out


def encode(table, name, values):
    code, places = table[name]
    word = code
    for field, v in values.items():
        low, bits = places[field]
        assert -(1 << bits - 1) <= v < 1 << bits, (name, field, v)
        word |= (v & (1 << bits) - 1) << low
    return word.to_bytes(64, "little")


def exponent(code):
    return code >> 7 & 255


class Group:
    """Scratchpad rows and banks are made when they are first used; both start as zeros."""

    def __init__(self, multiplier):
        self.multiplier = multiplier  # (mode, log2 of the length) to a Multiplier
        self.scratch, self.banks, self.wreg = {}, {}, [0] * 64
        self.range = self.nonfinite = False

    def row(self, r):
        assert 0 <= r < 4096
        return self.scratch.setdefault(r, [0] * WORDS)

    def bank(self, element, column):
        assert 0 <= column < 16384
        return self.banks.setdefault((element, column), [0] * WORDS)

    def load(self, memory, d):
        for i in range(d["rows"]):
            self.scratch[d["row"] + i] = list(struct.unpack_from("<16I", memory, d["addr"] + 64 * i))

    def store(self, memory, d):
        for i in range(d["rows"]):
            struct.pack_into("<16I", memory, d["addr"] + 64 * i, *self.row(d["row"] + i))

    def wload(self, memory, d):
        for i in range(d["columns"]):
            for e in range(PES):
                self.banks[e, d["col"] + i] = list(struct.unpack_from("<16H", memory, d["addr"] + 128 * i + 32 * e))

    def write(self, row, word, v):
        self.nonfinite |= v & 0x7F800000 == 0x7F800000
        self.row(row)[word] = v

    def matvec(self, d):
        get = d.get
        kc, mult = d["kc"], self.multiplier(d["mode"], d["log_length"])
        wexp = self.wreg[d["wexp"]] if get("use_wreg") else d["wexp"]
        vectors = []
        for n in range(d["vectors"]):
            rows = [d["x"] + n * get("x_stride", 0) + c // d["x_run"] * get("x_jump", 0) + c % d["x_run"] for c in range(kc)]
            vectors.append([to_bf16(v) for r in rows for v in self.row(r)])
        for m in range(d["outputs"]):
            weights = [w for c in range(kc) for w in self.bank(m % PES, d["col"] + m // PES * kc + c)]
            for n, x in enumerate(vectors):
                xexp = matvec.largest_exponent(x)
                y = matvec.dot(mult, weights, x, wexp, xexp)
                self.range |= any(exponent(w) + exponent(v) > wexp + xexp for w, v in zip(weights, x)
                                  if 0 < exponent(w) < 255 and 0 < exponent(v) < 255)
                if get("bias"):
                    y = add_f32(y, self.row(d["bias_row"] + m // WORDS)[m % WORDS])
                if get("accum"):
                    y = add_f32(y, self.row(d["old"] + n * get("old_stride", 0) + m // WORDS)[m % WORDS])
                if get("relu"):
                    y = larger_than_zero(y)
                self.write(d["y"] + n * get("y_stride", 0) + m // WORDS, m % WORDS, y)

    def wstore(self, d):
        kc, reg = d["kc"], d.get("wreg", 0)
        if d.get("reset"):
            self.wreg[reg] = 0
        for i in range(d["vectors"]):
            first = d["x"] + i * d.get("x_stride", 0)
            at = d.get("first", 0) + i
            for j in range(d["length"]):
                code = to_bf16(self.row(first + j // WORDS)[j % WORDS])
                m, k = (j, at) if d.get("transposed") else (at, j)
                self.bank(m % PES, d["col"] + m // PES * kc + k // WORDS)[k % WORDS] = code
                self.wreg[reg] = max(self.wreg[reg], matvec.largest_exponent([code]))

    def operand(self, d, kind, immediate, name, r, i, j):
        if kind == 1:
            return d[immediate]
        if kind == 2:
            return self.row(d[name] + r * d.get(name + "_stride", 0) + i)[j]
        return self.row(d[name] + r // WORDS)[r % WORDS]

    def vec(self, d):
        """Functions 0 and 3 only: the tables of the others are not on the page."""
        get = d.get
        for r in range(d["count"]):
            sums = []
            for i in range(d["width"]):
                line = []
                for j in range(WORDS):
                    v = canonical(self.row(d["a"] + r * get("a_stride", 0) + i)[j])
                    if get("mul"):
                        v = mul_f32(v, self.operand(d, d["mul"], "imm_m", "b", r, i, j))
                    if get("neg_mul"):
                        v = canonical(v ^ 1 << 31)
                    if get("add"):
                        v = add_f32(v, self.operand(d, d["add"], "imm_c", "c", r, i, j) ^ get("neg_add", 0) << 31)
                    if get("fn"):
                        assert d["fn"] == 3
                        v = larger_than_zero(v)
                    line.append(v)
                if not get("reduce"):
                    for j, v in enumerate(line):
                        self.write(d["d"] + r * get("d_stride", 0) + i, j, v)
                sums.append(line)
            if get("reduce"):
                v = fold(sums, add_f32 if d["reduce"] == 1 else larger)
                before = self.nonfinite
                self.write(d["d"] + r // WORDS, r % WORDS, v)
                if d["reduce"] == 2:
                    self.nonfinite = before

    def send(self, groups, d):
        rows = [list(self.row(d["row"] + i)) for i in range(d["rows"])]
        for i, row in enumerate(rows):
            groups[d["group"]].scratch[d["to"] + i] = row


def larger_than_zero(v):
    """Negative values and -0 become +0, NaN stays."""
    return v if v == NAN or not v >> 31 else 0


def larger(a, b):
    if NAN in (a, b):
        return NAN
    x, y = bits_f32(a), bits_f32(b)
    if x == y:
        return b if a >> 31 else a
    return a if x > y else b


def fold(rows, op):
    """The rows first, position by position, then halves: 8, 4, 2, 1 apart."""
    s = list(rows[0])
    for row in rows[1:]:
        s = [op(a, b) for a, b in zip(s, row)]
    half = 8
    while half:
        s = [op(s[j], s[j + half]) for j in range(half)]
        half //= 2
    return s[0]


class Chip:
    """Four groups and their lists: semaphores and iteration counters start at 0, all else is kept from job to job."""

    def __init__(self, multiplier):
        self.groups = [Group(multiplier) for _ in range(4)]

    def run(self, memory, programs):
        """programs: a list of (descriptor, {field: value}) for every group. Returns the status."""
        for g in self.groups:
            g.range = g.nonfinite = False
        at, turns, sems, waiting = [0] * 4, [0] * 4, [[0] * 8 for _ in range(4)], [0] * 4
        moved = True
        while moved:
            moved = False
            for i, program in enumerate(programs):
                while at[i] < len(program):
                    name, d = program[at[i]]
                    if name == "WAIT":
                        if sems[i][d["sem"]] < d["count"]:
                            break
                        sems[i][d["sem"]] -= d["count"]
                    elif name == "BARRIER":
                        waiting[i] = d["groups"]
                        members = [g for g in range(4) if d["groups"] >> g & 1]
                        if any(waiting[g] != d["groups"] for g in members):
                            break
                        for g in members:
                            waiting[g] = 0
                            at[g] += g != i
                    elif name == "LOOP":
                        turns[i] += 1
                        if turns[i] < d["count"]:
                            at[i], moved = d["target"], True
                            continue
                        turns[i] = 0
                    else:
                        self.step(memory, i, name, d, turns[i])
                        if name == "SEND":
                            sems[d["group"]][d["sem"]] += 1
                    at[i] += 1
                    moved = True
        assert all(a == len(p) for a, p in zip(at, programs)), "the lists wait for each other"
        return any(g.range for g in self.groups) | any(g.nonfinite for g in self.groups) << 1

    def step(self, memory, i, name, d, turn):
        group = self.groups[i]
        if "addr" in d:
            d = dict(d, addr=d["addr"] + turn * d.get("step", 0))
        if name in ("LOAD", "STORE", "WLOAD"):
            getattr(group, name.lower())(memory, d)
        elif name == "SEND":
            group.send(self.groups, d)
        else:
            getattr(group, name.lower())(d)
