#!/usr/bin/env python3
"""tools/area: its page is what its record gives, and its library reader, timing and energy agree with hand-made circuits."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import ROOT, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tools/silicon"))
import circuit  # noqa: E402
import energy  # noqa: E402
import lanes  # noqa: E402
import liberty  # noqa: E402
import page  # noqa: E402
import timing  # noqa: E402

TESTS = []

# Delays of .1 ns at any load and slew; an edge of Y costs 1 pJ inside, CLK 2, and Q 3; 1 V.
LIBRARY = """library(two) { time_unit : "1ns"; nom_voltage : 1.0; /* a comment { */
 lu_table_template(d) { variable_1 : total_output_net_capacitance; variable_2 : input_net_transition; }
 cell (XOR2X1) { area : 5;
  pin(A) { direction : input; capacitance : 0.5; } pin(B) { direction : input; capacitance : 0.5; }
  pin(Y) { direction : output; function : "(A^B)";
   timing() { related_pin : "A"; TABLES } timing() { related_pin : "B"; TABLES }
   internal_power() { related_pin : "A"; rise_power(d) { index_1 ("0, 1"); index_2 ("0, 1"); values ("1, 1", "1, 1"); }
                      fall_power(d) { index_1 ("0, 1"); index_2 ("0, 1"); values ("1, 1", \\
 "1, 1"); } } } }
 cell (BUFX2) { area : 3; pin(A) { direction : input; capacitance : 0.5; }
  pin(Y) { direction : output; function : "A"; timing() { related_pin : "A"; timing_sense : positive_unate; TABLES } } }
 cell (MUX) { area : 3; pin(A) { direction : input; } pin(B) { direction : input; } pin(S) { direction : input; }
  pin(Y) { direction : output; function : "(!((S A) + (!S B)))"; } }
 cell (DFFPOSX1) { area : 7; ff(I, N) { next_state : "D"; clocked_on : "CLK"; }
  pin(CLK) { direction : input; capacitance : 0.5; clock : true; internal_power() { RISE2 FALL2 } }
  pin(D) { direction : input; capacitance : 0.5;
   timing() { related_pin : "CLK"; timing_type : setup_rising; rise_constraint(d) { values ("0.3"); } fall_constraint(d) { values ("0.3"); } } }
  pin(Q) { direction : output; timing() { related_pin : "CLK"; timing_type : rising_edge; TABLES } internal_power() { RISE3 FALL3 } } }
}"""


def library():
    one = lambda name, value: '%s(d) { values ("%s"); }' % (name, value)
    tables = " ".join(one(n, "0.1") for n in ("cell_rise", "cell_fall", "rise_transition", "fall_transition"))
    text = LIBRARY.replace("TABLES", tables)
    for number in "23":
        text = text.replace("RISE" + number, one("rise_power", number)).replace("FALL" + number, one("fall_power", number))
    with tempfile.NamedTemporaryFile("w", suffix=".lib") as file:
        file.write(text)
        file.flush()
        return liberty.Library(file.name)


def hazard():
    """y = a ^ buffer(buffer(a)): settled it is always 0, and every edge of a makes a pulse of two buffers' delay."""
    cell = lambda kind, **pins: {"type": kind, "connections": {p: [n] for p, n in pins.items()}}
    return {"ports": {"a": {"direction": "input", "bits": [2]}, "y": {"direction": "output", "bits": [6]}}, "cells": {
        "b1": cell("BUFX2", A=2, Y=3), "b2": cell("BUFX2", A=3, Y=4), "x": cell("XOR2X1", A=2, B=4, Y=5),
        "f": cell("$_DFF_P_", D=5, Q=6)}}


def test(f):
    TESTS.append(f)
    return f


@test
def page_and_pictures_are_what_the_record_gives():
    os.chdir(ROOT)
    assert page.check("models/cycle/pnm_area.json") == []


@test
def functions_of_cells():
    lib = library()
    f = circuit.function(lib.cells["MUX"].pins["Y"].function)
    for a in (0, 1):
        for b in (0, 1):
            for s in (0, 1):
                assert f({"A": a, "B": b, "S": s}, 1) & 1 == 1 - (a if s else b)
    g = circuit.function("(((A B)+(B C))+(C A))")
    assert [g({"A": i & 1, "B": i >> 1 & 1, "C": i >> 2}, 1) & 1 for i in range(8)] == [0, 0, 0, 1, 0, 1, 1, 1]


@test
def tables_between_their_points():
    group = liberty.parse('x() { t(d) { index_1 ("0, 2"); index_2 ("0, 1"); values ("0, 1", "4, 5"); } }').groups[0]
    table = liberty.Table(group, ["total_output_net_capacitance", "input_net_transition"])
    assert table.at(1, 0.5) == 2.5 and table.at(9, 9) == 5 and table.at(-1, 0) == 0


@test
def area_and_period():
    net = circuit.Circuit(hazard(), library(), 0.0)
    assert net.area() == (11.0, 7.0)
    # from a register .1, two buffers and the XOR .1 each, .3 before the next edge
    assert abs(timing.Timing(net).period - 0.7) < 1e-9


@test
def glitches_are_counted_where_they_live():
    net = circuit.Circuit(hazard(), library(), 0.0)
    clock = timing.Timing(net)
    run = energy.Activity(net, clock, 4)
    run.cycle({2: 0b0101}, True)  # two of four trials have an edge of a
    # each: buffers 1 edge each of 0.5 C V^2 = .25, XOR two edges of 1 pJ and .25
    assert abs(run.joules["logic"] - 2 * (2 * 0.25 + 2 * 1.25)) < 1e-9, run.joules
    assert run.toggles == 8 and run.functional == 4
    assert abs(run.joules["inputs"] - 2 * 0.5) < 1e-9  # a drives two pins
    assert abs(run.joules["clock"] - 4 * (2 + 2 + 0.5)) < 1e-9
    clock.delay["x", "Y"] = 0.3  # an XOR slower than the pulse swallows it
    run.cycle({2: 0b0000}, True)
    assert run.toggles == 12 and run.functional == 8


@test
def modes_are_those_of_the_unit():
    # pnm_mult_set: bias (10), 255 - 32 * offset (9), log2 L (4), kind (2)
    word = lanes.settings("unary", 0, 16)
    assert word == (14 << 15 | (255 - 32 * 6) << 6 | 4 << 2), hex(word)
    assert lanes.settings("unary", 0, 4) >> 15 == (-44 & 1023)


@test
def without_a_library_one_line_says_so():
    done = subprocess.run([str(ROOT / "tools/area"), "measure"], env=dict(os.environ, MR_LIBERTY="/nowhere.lib"),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "MR_LIBERTY" in done.stderr, done.stderr
    done = subprocess.run([str(ROOT / "tools/area"), "weigh"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "Usage" in done.stderr


if __name__ == "__main__":
    main(TESTS)
