#!/usr/bin/env python3
"""Constants of the PNM's stream generators: one description, three readers.

rtl/pnm/pnm_streams.json has, for each generator, cut and stream length, the offset of the unary
comparators (eighths of a step) and the bias that is taken off the count (2^-10), the polynomials and
seeds of the shift registers and the Sobol directions. This writes models/golden/pnm_streams.h,
rtl/pnm/pnm_stream_pkg.sv and the table in docs/pnm-arithmetic.md; `--check` only compares.
`make pnm-constants` searches the offsets and biases anew.
"""
import argparse
import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SELF = "tools/gen_pnm.py"
SOURCE = "rtl/pnm/pnm_streams.json"
PAGE = ROOT / "docs/pnm-arithmetic.md"
BEGIN, END = "<!-- constants: tools/gen_pnm.py -->", "<!-- end of constants -->"
LENGTHS = [4, 8, 16, 32, 64, 128, 256]
CUTS, LANE_BITS = 7, 8


def fail(what):
    sys.exit("gen_pnm: %s: %s" % (SOURCE, what))


def load():
    data = json.loads((ROOT / SOURCE).read_text())
    if data["lengths"] != LENGTHS:
        fail("lengths must be %s" % LENGTHS)
    for code, gen in enumerate(data["generators"]):
        if gen["code"] != code:
            fail("%s: code %d is not its place" % (gen["name"], gen["code"]))
        rows = gen["split"] + ([gen["full"]] if gen["full"] else [])
        if len(gen["split"]) != CUTS:
            fail("%s: split must have %d cuts" % (gen["name"], CUTS))
        for row in rows:
            if len(row["offset"]) != len(LENGTHS) or len(row["bias"]) != len(LENGTHS):
                fail("%s: a row needs %d values" % (gen["name"], len(LENGTHS)))
            if any(not 0 <= o <= 8 for o in row["offset"]) or any(abs(b) > 511 for b in row["bias"]):
                fail("%s: offsets are 0..8, biases below 512" % gen["name"])
    for reg in data["lfsr"]:
        width = reg["width"]
        if reg["taps"][0] != width or not all(8 <= t <= width for t in reg["taps"]):
            fail("%s: taps must begin with the width and leave room for a leap of 8" % reg["name"])
        if int(reg["seed"], 16) in (0, (1 << width) - 1):
            fail("%s: the default seed is a lock state" % reg["name"])
    return data


def step(state, reg):
    bit = 0
    for tap in reg["taps"]:
        bit ^= state >> (tap - 1)
    return (state << 1 | bit & 1) & ((1 << reg["width"]) - 1)


def apply(matrix, state):
    out = 0
    for i, column in enumerate(matrix):
        if state >> i & 1:
            out ^= column
    return out


def power(matrix, times):
    """The matrix to the power 2^times, columns as integers."""
    for _ in range(times):
        matrix = [apply(matrix, column) for column in matrix]
    return matrix


def jumps(reg, leaps):
    """For each bit of a lane's position the map of 2^bit * leaps * 8 steps."""
    one = [step(1 << i, reg) for i in range(reg["width"])]
    steps = leaps * 8
    if steps & (steps - 1):
        fail("lane_leaps must be a power of two")
    return [power(one, steps.bit_length() - 1 + bit) for bit in range(LANE_BITS)]


def c_header(data, stamp):
    out = ["/* %s */" % stamp, "/* clang-format off */",
           "#ifndef MODELS_GOLDEN_PNM_STREAMS_H", "#define MODELS_GOLDEN_PNM_STREAMS_H",
           "/* Constants of the stream generators; included by the golden model alone. */",
           "#include <stdint.h>", "", "enum {",
           "    MR_PNM_GENERATORS = %d," % len(data["generators"]),
           "    MR_PNM_LFSR_LEAP = 8, /* steps to the next number */",
           "    MR_PNM_LANE_BITS = %d," % LANE_BITS,
           "    MR_PNM_LANE_LEAPS = %d, /* numbers between neighbouring lanes */" % data["lane_leaps"]]
    out += ["    MR_PNM_LFSR_SEED_%s = %s," % (r["name"].upper(), r["seed"]) for r in data["lfsr"]]
    out += ["};", "", "static const char *const mr_pnm_generator_names[] = {"]
    out += ['    "%s",' % g["name"] for g in data["generators"]]
    out += ["};", "", "/* offset of the comparators in eighths of a step, bias of the count in 2^-10 */",
            "typedef struct { int16_t offset, bias; } mr_pnm_constant;", ""]
    row = lambda r: "{" + ", ".join("{%d, %d}" % p for p in zip(r["offset"], r["bias"])) + "}"
    none = {"offset": [0] * len(LENGTHS), "bias": [0] * len(LENGTHS)}
    out += ["/* [generator][cut][log2 L - 2] */",
            "static const mr_pnm_constant mr_pnm_split_constants[%d][%d][%d] = {"
            % (len(data["generators"]), CUTS, len(LENGTHS))]
    for gen in data["generators"]:
        out += ["    {"] + ["        %s," % row(r) for r in gen["split"]] + ["    },"]
    out += ["};", "", "/* [generator][log2 L - 2] */",
            "static const mr_pnm_constant mr_pnm_full_constants[%d][%d] = {"
            % (len(data["generators"]), len(LENGTHS))]
    out += ["    %s," % row(g["full"] or none) for g in data["generators"]]
    out += ["};", "", "/* taps count from 1; jump[i][j]: where bit j goes in 2^i * MR_PNM_LANE_LEAPS leaps */",
            "typedef struct {", "    int width, taps[4];", "    uint32_t seed, jump[%d][24];" % LANE_BITS,
            "} mr_pnm_lfsr;", "", "static const mr_pnm_lfsr mr_pnm_lfsrs[2] = {"]
    for reg in data["lfsr"]:
        out.append("    {%d, {%s}, %s, {" % (reg["width"], ", ".join(map(str, reg["taps"])), reg["seed"]))
        for matrix in jumps(reg, data["lane_leaps"]):
            words = ["0x%06X" % c for c in matrix]
            out.append("        {" + ",\n         ".join(
                ", ".join(words[i:i + 8]) for i in range(0, len(words), 8)) + "},")
        out.append("    }},")
    out += ["};", "", "/* Sobol dimension 2, the direction of each bit of the counter */",
            "static const uint8_t mr_pnm_sobol_directions[8] = {%s};"
            % ", ".join(map(str, data["sobol"])), "#endif"]
    return "\n".join(out) + "\n"


def packed(values, width):
    """A packed constant, element 0 in the low bits, as one hexadecimal literal."""
    total = 0
    for i, v in enumerate(values):
        total |= (v & ((1 << width) - 1)) << (i * width)
    bits = len(values) * width
    return "%d'h%0*X" % (bits, (bits + 3) // 4, total)


def sv_package(data, stamp):
    out = ["// %s" % stamp, "// Constants of the stream generators, one packed vector a table, element 0 lowest:",
           "// offsets (4 bits, eighths of a step) and biases (10 bits, signed, 2^-10) at 7 * cut + log2(L) - 2.",
           "/* verilator lint_off UNUSEDPARAM */ // each top takes the tables of its generator",
           "package pnm_stream_pkg;"]
    for gen in data["generators"]:
        out.append("    localparam int unsigned GEN_%s = %d;" % (gen["name"].upper(), gen["code"]))
    count = len(LENGTHS) * CUTS
    for gen in data["generators"]:
        name = gen["name"].upper()
        out.append("    localparam logic [%d:0] %s_OFFSET = %s;" % (
            4 * count - 1, name, packed([o for r in gen["split"] for o in r["offset"]], 4)))
        out.append("    localparam logic [%d:0] %s_BIAS = %s;" % (
            10 * count - 1, name, packed([b for r in gen["split"] for b in r["bias"]], 10)))
        if not gen["full"]:
            continue
        out.append("    localparam logic [%d:0] %s_FULL_OFFSET = %s;" % (
            4 * len(LENGTHS) - 1, name, packed(gen["full"]["offset"], 4)))
        out.append("    localparam logic [%d:0] %s_FULL_BIAS = %s;" % (
            10 * len(LENGTHS) - 1, name, packed(gen["full"]["bias"], 10)))
    out.append("    // shift registers: default seeds, and the maps from the seed to the state of a lane, column j of")
    out.append("    // the map for bit i of the lane's position at 24 * i + j, 24 bits each")
    for reg in data["lfsr"]:
        name = reg["name"].upper()
        out.append("    localparam logic [23:0] LFSR_%s_SEED = 24'h%06X;" % (name, int(reg["seed"], 16)))
        columns = [c for m in jumps(reg, data["lane_leaps"]) for c in m + [0] * (24 - len(m))]
        out.append("    localparam logic [%d:0] LFSR_%s_JUMP = {" % (24 * len(columns) - 1, name))
        words = ["24'h%06X" % c for c in reversed(columns)]
        lines = ["        " + ", ".join(words[i:i + 8]) for i in range(0, len(words), 8)]
        out.append(",\n".join(lines) + "};")
    out.append("    // directions of Sobol dimension 2, 8 bits each")
    out.append("    localparam logic [63:0] SOBOL_DIRECTIONS = %s;" % packed(data["sobol"], 8))
    out += ["endpackage", "/* verilator lint_on UNUSEDPARAM */"]
    return "\n".join(out) + "\n"


def page_table(data):
    out = [BEGIN, "", "| generator | cut | " + " | ".join("L = %d" % n for n in LENGTHS) + " |",
           "|---|---|" + "---|" * len(LENGTHS)]
    for gen in data["generators"]:
        rows = [(str(i), r) for i, r in enumerate(gen["split"])]
        rows += [("full", gen["full"])] if gen["full"] else []
        for cut, r in rows:
            out.append("| %s | %s | " % (gen["name"], cut) + " | ".join(
                "%d, %d" % p for p in zip(r["offset"], r["bias"])) + " |")
    return "\n".join(out + ["", END])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the files are current")
    check = parser.parse_args().check
    data = load()
    digest = hashlib.sha256((ROOT / SOURCE).read_bytes()).hexdigest()
    stamp = "generated by %s from %s sha256:%s" % (SELF, SOURCE, digest)
    products = {ROOT / "models/golden/pnm_streams.h": c_header(data, stamp),
                ROOT / "rtl/pnm/pnm_stream_pkg.sv": sv_package(data, stamp)}
    if PAGE.exists():
        before, found, rest = PAGE.read_text().partition(BEGIN)
        if not found or END not in rest:
            sys.exit("gen_pnm: %s: no place for the table of constants" % PAGE.relative_to(ROOT))
        products[PAGE] = before + page_table(data) + rest.partition(END)[2]
    stale = [p for p, text in products.items() if not p.exists() or p.read_text() != text]
    if check:
        for path in stale:
            print("gen_pnm: %s is stale" % path.relative_to(ROOT))
        return 1 if stale else 0
    for path in stale:
        path.write_text(products[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
