#!/usr/bin/env python3
"""Tables of the function units: one computation, two readers.

2^-x, 1/(1+x) and log2(1+x) for x in [0, 1), as quadratics over 128 segments. A segment's quadratic
meets the function in the three Chebyshev nodes, the first segment's in 0 and two more, so that the
result is exact for x = 0. Coefficients have 6 bits more than the result's 26 fraction bits and are
rounded to nearest from 60-digit values.
Writes models/golden/fn.h and rtl/common/mr_fn_rom_*.sv; `--check` only compares.
"""
import argparse
import hashlib
import pathlib
import sys
from decimal import Decimal, ROUND_HALF_EVEN, getcontext

ROOT = pathlib.Path(__file__).resolve().parent.parent
SELF = "tools/gen_fn.py"
SEGMENTS = 128
ONE = Decimal(1 << 32)  # 26 fraction bits of the result and 6 guard bits
WIDTHS = (33, 27, 20)   # of c0 (unsigned), c1 and c2 (two's complement)

getcontext().prec = 60
LN2 = Decimal(2).ln()
FUNCTIONS = (
    ("exp2", "2^-x", lambda x: (-x * LN2).exp()),
    ("recip", "1/(1+x)", lambda x: 1 / (1 + x)),
    ("log2", "log2(1+x)", lambda x: (1 + x).ln() / LN2),
)


def quadratic(f, segment):
    """c0, c1, c2 for u in [0, 1) across the segment, through three points."""
    r3 = Decimal(3).sqrt() / 2  # the nodes of T3 are -r3, 0, r3
    if segment == 0:  # stretched until the lowest node is the end
        nodes = [Decimal(0), r3 / (1 + r3), 2 * r3 / (1 + r3)]
    else:
        nodes = [(1 - r3) / 2, Decimal("0.5"), (1 + r3) / 2]
    y = [f((segment + u) / SEGMENTS) * ONE for u in nodes]
    d01 = (y[1] - y[0]) / (nodes[1] - nodes[0])
    d12 = (y[2] - y[1]) / (nodes[2] - nodes[1])
    c2 = (d12 - d01) / (nodes[2] - nodes[0])
    c1 = d01 - c2 * (nodes[0] + nodes[1])
    c0 = y[0] - nodes[0] * (c1 + c2 * nodes[0])
    return [int(c.to_integral_value(rounding=ROUND_HALF_EVEN)) for c in (c0, c1, c2)]


def tables():
    out = {}
    for name, _, f in FUNCTIONS:
        out[name] = [quadratic(f, s) for s in range(SEGMENTS)]
        for row in out[name]:
            if row[0] >> WIDTHS[0] or any(not -(1 << (w - 1)) <= c < 1 << (w - 1)
                                          for c, w in zip(row[1:], WIDTHS[1:])):
                sys.exit(f"gen_fn: a coefficient of {name} does not fit its field")
    return out


C_HEAD = """#ifndef MR_FN_H
#define MR_FN_H
/* The function units, bit-true: quadratics over 128 segments, results with 26 fraction bits.
 * x = s/128 + u/2^24, u < 2^17: (c0 + floor((c1 + floor(c2 u / 2^17)) u / 2^17) + 32) >> 6.
 * Errors over every argument (tests/unit/nic/fn_test.cpp): exp2 and recip at most 2^-25 relative, log2 at
 * most 2^-25 absolute; exact for argument 0. */
#include <stdint.h>

typedef struct {
    int64_t c0;
    int32_t c1, c2;
} mr_fn_row;
"""

C_TAIL = """
static inline int64_t mr_fn_floor17(int64_t x) {
    return x >= 0 ? x >> 17 : -((-x + 0x1FFFF) >> 17);
}
static inline uint32_t mr_fn_poly(const mr_fn_row *row, uint32_t x24) {
    int64_t u = (int64_t)(x24 & 0x1FFFFu), p1 = row->c1 + mr_fn_floor17(row->c2 * u);
    return (uint32_t)((row->c0 + mr_fn_floor17(p1 * u) + 32) >> 6);
}
/* 2^26 * 2^(-f/2^24), 2^25 < result <= 2^26; f < 2^24. */
static inline uint32_t mr_fn_exp2(uint32_t f24) {
    return mr_fn_poly(&mr_fn_exp2_rows[(f24 >> 17) & 127u], f24);
}
/* 2^26 / (1 + m/2^23), 2^25 <= result <= 2^26; m < 2^23. */
static inline uint32_t mr_fn_recip(uint32_t m23) {
    return mr_fn_poly(&mr_fn_recip_rows[(m23 >> 16) & 127u], m23 << 1);
}
/* 2^26 * log2(1 + m/2^23), 0 <= result < 2^26; m < 2^23. */
static inline uint32_t mr_fn_log2(uint32_t m23) {
    return mr_fn_poly(&mr_fn_log2_rows[(m23 >> 16) & 127u], m23 << 1);
}
#endif
"""


def c_header(t, stamp):
    lines = [f"/* {stamp} */", "/* clang-format off */", C_HEAD.rstrip()]
    for name, what, _ in FUNCTIONS:
        lines.append(f"/* {what} */")
        lines.append(f"static const mr_fn_row mr_fn_{name}_rows[{SEGMENTS}] = {{")
        for i in range(0, SEGMENTS, 4):
            lines.append("    " + " ".join("{%dLL, %d, %d}," % tuple(row) for row in t[name][i:i + 4]))
        lines.append("};")
    return "\n".join(lines) + "\n" + C_TAIL


def sv_module(name, what, rows, stamp):
    w0, w1, w2 = WIDTHS
    lines = [f"// {stamp}",
             f"// Coefficients of {what} for mr_fn_poly, a row a segment. One read a cycle under en_i, data the",
             "// cycle after; no reset (ROM output).",
             f"module mr_fn_rom_{name} (",
             "    input  logic               clk_i,",
             "    input  logic               en_i,",
             "    input  logic        [ 6:0] segment_i,",
             f"    output logic        [{w0 - 1}:0] c0_o,",
             f"    output logic signed [{w1 - 1}:0] c1_o,",
             f"    output logic signed [{w2 - 1}:0] c2_o",
             ");",
             "  always_ff @(posedge clk_i) begin", "    if (en_i) begin", "      case (segment_i)"]
    for i, (c0, c1, c2) in enumerate(rows):
        target = "default" if i == SEGMENTS - 1 else f"7'd{i}"
        lines.append(f"        {target}: {{c0_o, c1_o, c2_o}} <= {{{w0}'d{c0}, "
                     f"{w1}'h{c1 % (1 << w1):X}, {w2}'h{c2 % (1 << w2):X}}};")
    lines += ["      endcase", "    end", "  end", "endmodule"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report stale files, write nothing")
    check = parser.parse_args().check
    digest = hashlib.sha256((ROOT / SELF).read_bytes()).hexdigest()
    stamp = f"generated by {SELF} from {SELF} sha256:{digest}"
    t = tables()
    files = [("models/golden/fn.h", c_header(t, stamp))]
    files += [(f"rtl/common/mr_fn_rom_{name}.sv", sv_module(name, what, t[name], stamp))
              for name, what, _ in FUNCTIONS]
    stale = 0
    for path, text in files:
        target = ROOT / path
        if check:
            if not target.exists() or target.read_text() != text:
                print(f"gen_fn: {path} is stale; run {SELF}")
                stale = 1
        else:
            target.write_text(text)
    sys.exit(stale)


if __name__ == "__main__":
    main()
