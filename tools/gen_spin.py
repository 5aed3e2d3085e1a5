#!/usr/bin/env python3
"""Spinor coordinates of blades for the apply mode: one computation, two readers.

Real gamma matrices of Cl(10,0) as Pauli strings over I, X, Z, E = [[0,1],[-1,0]], leftmost letter the
highest bit of the matrix index. The product of a blade's gammas, lowest index first, is the signed
permutation  B_K[a][a^p] = (-1)^(eps(K) + a.z);  (p, z) is linear in K over GF(2) and one to one, so
K is linear in (p, z), and eps is a quadratic form. The first eight strings are those of Cl(8,0) with an
I in front: n = 8 is the same map with the top bits of p and z zero.
Writes models/golden/rgu_spin.h and rtl/rgu/rgu_spin_pkg.sv; `--check` only compares.
"""
import argparse
import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SELF = "tools/gen_spin.py"
GAMMA = {
    8: "IIIX IIIZ IIEE IEXE XEZE ZEZE EIZE EXXE".split(),
    10: "IIIIX IIIIZ IIIEE IIEXE IXEZE IZEZE IEIZE IEXXE XEZXE ZEZXE".split(),
}
M = 5  # bits of p and of z


def parity(x):
    return bin(x).count("1") & 1


def string_pz(s):
    """(p, z) of one Pauli string: X and E move the index, Z and E sign it."""
    p = z = 0
    for letter in s:
        p = p << 1 | (letter in "XE")
        z = z << 1 | (letter in "ZE")
    return p, z


def matrix(s):
    """The string as {(row, column): value}, straight from the Kronecker product."""
    one = {"I": {(0, 0): 1, (1, 1): 1}, "X": {(0, 1): 1, (1, 0): 1},
           "Z": {(0, 0): 1, (1, 1): -1}, "E": {(0, 1): 1, (1, 0): -1}}
    out = {(0, 0): 1}
    for letter in s:
        out = {(2 * r + i, 2 * c + j): v * w
               for (r, c), v in out.items() for (i, j), w in one[letter].items()}
    return out


def product(a, b):
    rows = {}
    for (r, c), v in b.items():
        rows.setdefault(r, []).append((c, v))
    return {(r, c2): v * w for (r, c), v in a.items() for c2, w in rows[c]}


def derive():
    pz = [string_pz(s) for s in GAMMA[10]]
    if [string_pz(s) for s in GAMMA[8]] != pz[:8]:
        sys.exit("gen_spin: the two algebras do not nest")
    n = len(pz)
    for i in range(n):
        if parity(pz[i][0] & pz[i][1]):
            sys.exit("gen_spin: a gamma does not square to +1")
        for j in range(i):
            if not parity(pz[i][0] & pz[j][1]) ^ parity(pz[j][0] & pz[i][1]):
                sys.exit("gen_spin: two gammas do not anticommute")
    eps = [sum(1 << j for j in range(i + 1, n) if parity(pz[i][0] & pz[j][1])) for i in range(n)]
    blade = {}
    for k in range(1 << n):
        p = z = 0
        for i in range(n):
            if k >> i & 1:
                p, z = p ^ pz[i][0], z ^ pz[i][1]
        blade[p << M | z] = k
    if len(blade) != 1 << n:
        sys.exit("gen_spin: the blades do not span the matrices")
    # the closed form against the matrix product, for every blade
    for k in range(1 << n):
        prod = {(a, a): 1 for a in range(1 << M)}
        p = z = e = 0
        for i in range(n):
            if k >> i & 1:
                prod = product(prod, matrix(GAMMA[10][i]))
                p, z, e = p ^ pz[i][0], z ^ pz[i][1], e ^ parity(k & eps[i])
        if any(prod.get((a, a ^ p)) != (-1) ** (e ^ parity(a & z)) for a in range(1 << M)):
            sys.exit("gen_spin: closed form and matrix product disagree")
    return [blade[1 << b] for b in range(2 * M)], eps


def c_header(cols, eps, stamp):
    xor = " ^ \\\n     ".join(f"((((pz) >> {b}) & 1u) * 0x{c:03X}u)" for b, c in enumerate(cols))
    quad = " ^ \\\n     ".join(f"((((k) >> {i}) & 1u) & PAR((k) & 0x{m:03X}u))"
                               for i, m in enumerate(eps) if m)
    return "\n".join([
        f"/* {stamp} */", "/* clang-format off */", "#ifndef MR_RGU_SPIN_H", "#define MR_RGU_SPIN_H",
        "/* B_K[a][a^p] = (-1)^(eps(K) + parity(a & z)); p and z have n/2 bits. */",
        f"#define MR_SPIN_BITS {M}",
        f"/* The blade K with these coordinates; pz = p << {M} | z. */",
        f"#define MR_SPIN_BLADE(pz) \\\n    ({xor})",
        "/* eps(K); PAR(x) is the parity of x as 0u or 1u. */",
        f"#define MR_SPIN_EPS(k, PAR) \\\n    ({quad})", "#endif"]) + "\n"


def sv_package(cols, eps, stamp):
    w = 2 * M
    xor = "\n        ^ ".join(f"({{{w}{{pz[{b}]}}}} & {w}'h{c:03X})" for b, c in enumerate(cols))
    quad = "\n        ^ ".join(f"(k[{i}] & (^(k & {w}'h{m:03X})))" for i, m in enumerate(eps) if m)
    return "\n".join([
        f"// {stamp}",
        "// Spinor coordinates of blades: B_K[a][a^p] = (-1)^(eps(K) + parity(a & z)).",
        f"// p and z have {M} bits, the top one 0 at n = 8.",
        "package rgu_spin_pkg;",
        "  // The blade with coordinates {p, z}.",
        f"  function automatic logic [{w - 1}:0] blade(input logic [{w - 1}:0] pz);",
        f"    blade = {xor};", "  endfunction", "",
        "  // eps(K): a quadratic form.",
        f"  function automatic logic eps(input logic [{w - 1}:0] k);",
        f"    eps = {quad};", "  endfunction", "endpackage"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report stale files, write nothing")
    check = parser.parse_args().check
    digest = hashlib.sha256((ROOT / SELF).read_bytes()).hexdigest()
    stamp = f"generated by {SELF} from {SELF} sha256:{digest}"
    cols, eps = derive()
    stale = 0
    for path, text in (("models/golden/rgu_spin.h", c_header(cols, eps, stamp)),
                       ("rtl/rgu/rgu_spin_pkg.sv", sv_package(cols, eps, stamp))):
        target = ROOT / path
        if check:
            if not target.exists() or target.read_text() != text:
                print(f"gen_spin: {path} is stale; run {SELF}")
                stale = 1
        else:
            target.write_text(text)
    sys.exit(stale)


if __name__ == "__main__":
    main()
