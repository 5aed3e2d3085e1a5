"""Area, delay and energy of a lane by a cell library."""
import hashlib
import os
import random
import re
import tempfile

import circuit
import energy
import lanes
import liberty
import operands
import timing

WIRE = 0.005 # pF a fan-out
TRIALS = 512
PRODUCTS = 3 # measured, after two that fill the pipeline
SEED = 1


def drive(net, clock, lane, length, sequences):
    """Simulates and gives the Activity; only the last PRODUCTS products are measured.

    What a call of cycle() is given holds until the next one's edge. In slot i the inputs are weight i and activation
    i + 1, which load and en_i[0] take with the slot's last slice.
    """
    ports = net.ports
    run = energy.Activity(net, clock, len(sequences))
    slices, cfg = lane.slices(length), lanes.settings(lane.gen, lane.cut, length) if "cfg_i" in net.ports else 0
    spread = lambda number, nets: {b: run.mask if number >> i & 1 else 0 for i, b in enumerate(nets)}

    def inputs(weight, act, enables, load, at):
        values = spread(enables, ports["en_i"]) | spread(load, ports["load_i"])
        for which, slot, name in ((0, weight, "weight_i"), (1, act, "act_i")):
            for b, wire in enumerate(ports[name]):
                values[wire] = sum((s[slot][which] >> b & 1) << i for i, s in enumerate(sequences))
        if "cfg_i" in ports:
            values |= spread(cfg, ports["cfg_i"]) | spread(at == 0, ports["first_i"]) | spread(at, ports["slice_i"])
            values |= spread(1, ports["rst_ni"])
        return values

    slots = len(sequences[0]) - 1
    start = inputs(0, 0, 7, 1, 0)
    run.cycle(start | (spread(0, ports["rst_ni"]) if "rst_ni" in ports else {}), False)
    run.cycle(start, False)
    for i in range(slots):
        for at in range(slices):
            last = at == slices - 1
            run.cycle(inputs(i, i + 1, last | 2 | (at == 0) << 2, last, at), i >= slots - PRODUCTS)
    check(run, net, sequences, slots - 1 - (2 if slices > 1 else lane.latency()))
    return run


def check(run, net, sequences, at):
    """The mapped circuit computes what it should, as far as operand pair `at` can tell: no product is far off."""
    bits = [run.value[b] for b in net.ports["p_o"]]
    for i, s in enumerate(sequences):
        p = sum((x >> i & 1) << k for k, x in enumerate(bits))
        exact = (128 + (s[at][0] & 127)) * (128 + (s[at][1] & 127))
        if abs(p / exact - 1) > 0.25:
            raise SystemExit("area: the mapped circuit gives a product that is off by %.2f" % (p / exact - 1))


def one(lane, library, path, loads, work):
    """A row for each way to map the lane."""
    rows = []
    for how in circuit.MAPS:
        net = circuit.Circuit(circuit.mapped(lane.top, lane.parameters, path, how, work), library, WIRE)
        logic, registers = net.area()
        clock = timing.Timing(net)
        rows.append(({"map": how, "logic_um2": round(logic), "register_um2": round(registers),
                      "flip_flops": len(net.registers), "period_ns": round(clock.period, 3), "runs": []}, net, clock))
    simulated = [] if lane.drawn else [min(rows, key=lambda r: r[0]["logic_um2"])] if lane.least else rows
    for row, net, clock in simulated:
        for length in lane.lengths:
            for kind, sequences in loads.items():
                run = drive(net, clock, lane, length, sequences)
                pj = {k: round(v / TRIALS / PRODUCTS, 3) for k, v in run.joules.items()}
                row["runs"].append({"stream": length, "operands": kind, "cycles": lane.slices(length),
                                    "pj": pj | {"all": round(sum(pj.values()), 3)},
                                    "edges_a_change": round(run.toggles / max(run.functional, 1), 3)})
    return [row for row, _, _ in rows]


def library_of(path):
    library = liberty.Library(path)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return library, {"name": library.name, "volts": library.voltage, "sha256": digest,
                     "nand2_um2": library.cells["NAND2X1"].area, "flip_flop_um2": library.cells["DFFPOSX1"].area}


def everything(path, say):
    library, about = library_of(path)
    length = 3 + 3 + PRODUCTS
    loads = {"flow": operands.sequences(TRIALS, length, SEED), "dense": operands.dense(TRIALS, length, SEED)}
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for lane in lanes.compared() + lanes.built() + lanes.drawn():
            maps = one(lane, library, path, loads, work)
            rows.append({"name": lane.name, "module": lane.top, "parameters": lane.parameters,
                         "generator": lane.gen, "cut": lane.cut, "maps": maps})
            best = min(maps, key=lambda m: m["logic_um2"])
            say("%-40s %6d + %5d um2  %.2f ns" % (lane.name, best["logic_um2"], best["register_um2"],
                                                   min(m["period_ns"] for m in maps)))
        element, product = element_of(library, path, work), product_of(library, path, work)
    return about, rows, element, product


def element_of(library, path, work):
    """A processing element without its lanes: alignment, adder tree, sum. Its partial sums are memory, not counted."""
    net = circuit.Circuit(circuit.mapped("pnm_pe", {}, path, "area", work, ("pnm_mult_lane",)), library, WIRE)
    logic, registers = net.area()
    return {"logic_um2": round(logic), "register_um2": round(registers), "flip_flops": len(net.registers),
           "memory_bits": net.memory_bits, "lanes": 16}


def product_of(library, path, work):
    """Logic of an 8-bit by 8-bit multiplier alone, random operands; for each mapping its area and energy."""
    rng, rows = random.Random(SEED), []
    for how in circuit.MAPS:
        net = circuit.Circuit(circuit.mapped("silicon_product", {}, path, how, work), library, WIRE)
        clock = timing.Timing(net)
        run = energy.Activity(net, clock, TRIALS)
        for i in range(3 + PRODUCTS):
            run.cycle({b: rng.getrandbits(TRIALS) for p in ("a_i", "b_i") for b in net.ports[p]}, i >= 3)
        rows.append({"map": how, "logic_um2": round(net.area()[0]), "period_ns": round(clock.period, 3),
                     "pj": round(run.joules["logic"] / TRIALS / PRODUCTS, 3)})
    return rows


def counts(lane, work):
    """LUTs with four and six inputs, flip-flops, and transistors by yosys's table of gates, divided by NAND2's four."""
    script = circuit.read(lane.top, lane.parameters) + ["synth -flatten -top " + lane.top, "design -save lane"]
    steps = {"lut4": ("abc -lut 4", "stat"), "lut6": ("abc -lut 6", "stat"),
             "gates": ("abc -g cmos2,XOR,XNOR,AOI3,OAI3,MUX", "stat -tech cmos")}
    logic = {}
    for name, (step, stat) in steps.items():
        script += ["design -load lane", step, "opt_clean -purge", "tee -q -o %s %s" % (os.path.join(work, name), stat)]
    circuit.yosys(script, work)
    for name in steps:
        with open(os.path.join(work, name), encoding="utf-8") as file:
            logic[name] = file.read()
    cells = lambda text, kind: sum(int(n) for n in re.findall(r"^ +%s +(\d+)" % kind, text, re.M))
    transistors = int(re.search(r"transistors: +(\d+)", logic["gates"]).group(1))
    return {"lut4": cells(logic["lut4"], r"\$lut"), "lut6": cells(logic["lut6"], r"\$lut"),
            "flip_flops": cells(logic["gates"], r"\$_S?DFF\w*"), "nand2": round(transistors / 4)}
