"""Random lists of descriptors whose results do not depend on the order in which a unit works inside one of them."""
import struct

ROWS, COLUMNS = 400, 120        # of a group that are used
LISTS, INPUT, BANKS, OUTPUT, SIZE = 0, 0x8000, 0x10000, 0x20000, 0x60000
ARRIVAL = 480                   # rows that others send to
KEPT = 512


class Maker:
    def __init__(self, rng, tame):
        """tame: ordinary numbers and largest exponents that are true, so that a job raises no flag on its own."""
        self.rng, self.tame = rng, tame

    def value(self):
        """float32 bits: ordinary, with a few of every other class."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.9 or self.tame:
            return struct.unpack("<I", struct.pack("<f", rng.gauss(0, 1)))[0]
        if kind < 0.97:
            return rng.getrandbits(1) << 31 | rng.randrange(90, 140) << 23 | rng.getrandbits(23)
        return rng.choice([0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0x3F808000, 0x7F7FFFFF, 0x7F800000,
                           0xFF800000, 0x7F800001]) if kind > 0.997 else 0

    def code(self):
        return self.value() >> 16

    def memory(self):
        out = bytearray(SIZE)
        for at in range(INPUT, BANKS, 4):
            struct.pack_into("<I", out, at, self.value())
        for at in range(BANKS, OUTPUT, 2):
            struct.pack_into("<H", out, at, self.code())
        return out

    def view(self, count, rows, used=(), spread=True):
        """(first row, stride, the rows) of count places, apart from each other unless told and from the rows used."""
        rng = self.rng
        for _ in range(10000):
            stride = rng.choice([-1, 1]) * rng.randrange(rows if spread else 0, rows + 3)
            first = rng.randrange(ROWS)
            taken = [first + i * stride + j for i in range(count) for j in range(rows)]
            if min(taken) >= 0 and max(taken) < ROWS and not set(taken) & set(used):
                return first, stride, taken
        raise AssertionError("no room")

    def matvec(self):
        rng = self.rng
        kc, m, n = rng.randrange(1, 5), rng.randrange(1, 4), rng.randrange(1, 6)
        d = dict(kc=kc, outputs=16 * m, vectors=n, mode=rng.randrange(3), log_length=rng.randrange(2, 9), x=rng.randrange(60, 340),
                 x_stride=rng.randrange(-6, 7), x_run=rng.randrange(1, kc + 2), x_jump=rng.randrange(-6, 7),
                 col=rng.randrange(COLUMNS - 4 * m * kc), wexp=rng.randrange(150, 160) if self.tame else rng.randrange(120, 140), relu=rng.randrange(2))
        if rng.random() < 0.3 and not self.tame:
            d.update(use_wreg=1, wexp=rng.randrange(4))
        d["y"], d["y_stride"], y = self.view(n, m)
        if rng.random() < 0.5:
            d["bias"] = 1
            d["bias_row"], _, _ = self.view(1, m, y)
        kind = rng.random()
        if kind < 0.3:
            d.update(accum=1, old=d["y"], old_stride=d["y_stride"])
        elif kind < 0.6:
            d["accum"] = 1
            d["old"], d["old_stride"], _ = self.view(n, m, y, False)
        return "MATVEC", d

    def wstore(self):
        rng = self.rng
        kc, n = rng.randrange(1, 4), rng.randrange(1, 10)
        d = dict(kc=kc, vectors=n, wreg=rng.randrange(4), reset=rng.randrange(2), x=rng.randrange(40, 300),
                 x_stride=rng.randrange(-4, 5), first=rng.randrange(7), col=rng.randrange(COLUMNS - 24), length=16 * kc)
        if rng.random() < 0.5:
            d.update(transposed=1, length=16 * rng.randrange(1, 4), first=rng.randrange(16 * kc - n + 1))
        return "WSTORE", d

    def vec(self):
        rng = self.rng
        n, width = rng.randrange(1, 20), rng.randrange(1, 4)
        d = dict(count=n, width=width, fn=rng.choice([0, 0, 3]), mul=rng.randrange(4), add=rng.randrange(4),
                 neg_mul=rng.randrange(2), neg_add=rng.randrange(2), reduce=rng.choice([0, 0, 1, 2]),
                 imm_m=self.value(), imm_c=self.value())
        scalars = -(-n // 16)
        d["d"], d["d_stride"], out = self.view(1, scalars) if d["reduce"] else self.view(n, width)
        if not d["reduce"] and rng.random() < 0.3:
            d["a"], d["a_stride"] = d["d"], d["d_stride"]
        else:
            d["a"], d["a_stride"], _ = self.view(n, width, out, False)
        for name, kind in (("b", d["mul"]), ("c", d["add"])):
            if kind == 2:
                d[name], d[name + "_stride"], _ = self.view(n, width, out, False)
            elif kind == 3:
                d[name], _, _ = self.view(1, scalars, out)
        return "VEC", d

    def load(self):
        rows = self.rng.randrange(1, 20)
        return "LOAD", dict(rows=rows, row=self.rng.randrange(ROWS - rows), step=64 * self.rng.randrange(8),
                            addr=INPUT + 64 * self.rng.randrange((BANKS - INPUT) // 64 - rows - 8))

    def wload(self):
        columns = self.rng.randrange(1, 30)
        return "WLOAD", dict(columns=columns, col=self.rng.randrange(COLUMNS - columns), step=0,
                             addr=BANKS + 64 * self.rng.randrange((OUTPUT - BANKS) // 64 - 2 * columns))

    def program(self, g, length):
        """For group g: fills its rows and columns, works, sends to its neighbour and keeps what it got."""
        rng = self.rng
        out = [("LOAD", dict(rows=ROWS, row=0, addr=INPUT + 64 * rng.randrange(100), step=0)),
               ("WLOAD", dict(columns=COLUMNS, col=0, addr=BANKS + 64 * rng.randrange(200), step=0))]
        for i in range(length):
            if rng.random() < 0.1:
                out.append(("BARRIER", dict(groups=1 << g)))
            out.append(rng.choices([self.matvec, self.vec, self.wstore, self.load, self.wload], [4, 4, 2, 1, 1])[0]())
            if i == length // 2:
                out.append(("BARRIER", dict(groups=15)))
        out.append(("LOOP", dict(target=2, count=2)))
        rows, to = rng.randrange(0, 10), (g + 1) % 4
        out += [("SEND", dict(group=to, sem=g, rows=rows, row=rng.randrange(ROWS - 10), to=ARRIVAL)),
                ("WAIT", dict(sem=(g - 1) % 4, count=1)),
                ("STORE", dict(rows=KEPT, row=0, addr=OUTPUT + g * 64 * KEPT, step=0))]
        return out
