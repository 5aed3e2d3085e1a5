"""A module mapped to a cell library: yosys makes it, this holds it as a graph in the order of its logic."""
import json
import os
import re
import subprocess

YOSYS = os.environ.get("YOSYS", "yosys")
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ["rtl/pnm/pnm_stream_pkg.sv", "rtl/pnm/pnm_desc_pkg.sv"] + [
    "rtl/pnm/pnm_%s.sv" % m for m in ("mult_bin", "mult_short", "mult_lane", "mult_set", "lfsr", "stream_lfsr",
                                      "stream_sobol", "pe")] + ["tools/silicon/silicon_lane.sv", "tools/silicon/silicon_product.sv"]
# Ways to map a module: what ABC does, and whether the rows of multi-operand sums are added by the library's full
# adders, set aside beforehand (extract_fa of yosys 0.23 finds wrong ones).
AREA = "strash;ifraig;scorr;dc2;dc2;strash;dch,-f;map,-a,-B,0.9;topo;buffer,-c;topo"
DELAY = "strash;ifraig;scorr;dc2;strash;dch,-f;map,-B,0.9,-D,1;topo;buffer,-c;upsize,-D,1;dnsize,-D,1"
MAPS = {"area": (AREA, False), "delay": (DELAY, False), "full adders": (AREA, True),
        "full adders, delay": (DELAY, True)}
CLEAN = "opt -full -nosdff -nodffe"


def read(top, parameters):
    files = " ".join(SOURCES)
    return ["read_verilog -sv -defer -DSYNTHESIS " + files,
            "hierarchy -check -top %s %s" % (top, " ".join("-chparam %s %s" % p for p in parameters.items()))]


def yosys(script, work):
    done = subprocess.run([YOSYS, "-q", "-p", "; ".join(script)], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise SystemExit("area: yosys: %s" % done.stdout.strip()[-600:])
    return work


def mapped(top, parameters, library, how, work, without=()):
    """The netlist's module, as yosys writes it. Modules named in `without` stay empty."""
    out = os.path.join(work, "netlist.json")
    recipe, adders = MAPS[how]
    script = read(top, parameters) + ["blackbox *" + m for m in without]
    script += ["synth -flatten -run begin:fine -top " + top, "memory -nomap"]
    if adders:
        script += ["maccmap", "techmap -max_iter 1 -map tools/silicon/adder_bits.v t:$fa"]
        script += 5 * [CLEAN, "techmap -max_iter 1 -map tools/silicon/adder_constants.v"]
        script += ["techmap -map tools/silicon/adders.v"]
    script += ["techmap", CLEAN, "simplemap", "dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x", CLEAN, "clean",
               "abc -liberty %s -script +%s" % (library, recipe), "opt_clean -purge", "write_json " + out]
    yosys(script, work)
    with open(out, encoding="utf-8") as file:
        modules = json.load(file)["modules"]
    return next(m for m in modules.values() if int(m["attributes"].get("top", "0"), 2))


def function(text):
    """A pin's function as Python over whole words: inputs in v, every bit of which is a trial of its own."""
    text = text.replace(" ", "*") if "*" not in text and "&" not in text else text
    text = re.sub(r"\s+", "", re.sub(r"\*+", "*", text))
    text = re.sub(r"\*?([+^])\*?", r"\1", text).replace("(*", "(").replace("*)", ")").replace("!*", "!")
    text = text.replace("*", "&").replace("+", "|")
    text = re.sub(r"([A-Za-z_]\w*)", r"v['\1']", text)
    return eval("lambda v, m: (" + text.replace("!", "~") + ")") # pylint: disable=eval-used


FUNCTIONS = {}


class Gate:
    def __init__(self, name, cell, inputs, outputs):
        self.name, self.cell, self.inputs, self.outputs = name, cell, inputs, outputs

    def values(self, value, mask):
        """Output pin -> value."""
        v = {pin: value[net] for pin, net in self.inputs.items()}
        out = {}
        for pin in self.outputs:
            text = self.cell.pins[pin].function
            if text not in FUNCTIONS:
                FUNCTIONS[text] = function(text)
            out[pin] = FUNCTIONS[text](v, mask) & mask
        return out


class Register:
    def __init__(self, d, q, enable):
        self.d, self.q, self.enable = d, q, enable


class Circuit:
    def __init__(self, module, library, wire):
        self.library = library
        self.flop = library.cells["DFFPOSX1"]
        self.wire = wire # picofarads a fan-out
        self.ports = {name: p["bits"] for name, p in module["ports"].items()}
        self.inputs = [b for p in module["ports"].values() if p["direction"] == "input" for b in p["bits"]]
        self.outputs = [b for p in module["ports"].values() if p["direction"] == "output" for b in p["bits"]]
        self.gates, self.registers, self.memory_bits = [], [], 0
        for name, cell in sorted(module["cells"].items()):
            kind, c = cell["type"], {k: v for k, v in cell["connections"].items()}
            if kind in ("$_DFF_P_", "$_DFFE_PP_"):
                self.registers.append(Register(c["D"][0], c["Q"][0], c["E"][0] if "E" in c else None))
            elif kind.startswith("$mem"):
                size = int(cell["parameters"]["SIZE"], 2) * int(cell["parameters"]["WIDTH"], 2)
                self.memory_bits += size
            elif "pnm_mult_lane" in kind:
                continue
            elif kind in library.cells:
                pins = library.cells[kind].pins
                self.gates.append(Gate(name, library.cells[kind], {p: b[0] for p, b in c.items() if not pins[p].output},
                                       {p: b[0] for p, b in c.items() if pins[p].output}))
            else:
                raise SystemExit("area: a cell '%s' that the library does not have" % kind)
        self.order()
        self.load = {}
        for gate in self.gates:
            for pin, net in gate.inputs.items():
                self.load[net] = self.load.get(net, 0) + gate.cell.pins[pin].capacitance + wire
        for r in self.registers:
            self.load[r.d] = self.load.get(r.d, 0) + self.flop.pins["D"].capacitance + wire
        for net in self.outputs: # what comes next takes it into a register
            self.load[net] = self.load.get(net, 0) + self.flop.pins["D"].capacitance + wire

    def order(self):
        """Gates so that each follows those it listens to."""
        source = {net: g for g in self.gates for net in g.outputs.values()}
        done, result = set(), []
        for start in self.gates:
            stack = [(start, False)]
            while stack:
                gate, ready = stack.pop()
                if gate.name in done:
                    continue
                if ready:
                    done.add(gate.name)
                    result.append(gate)
                    continue
                stack.append((gate, True))
                for net in gate.inputs.values():
                    if net in source and source[net].name not in done:
                        stack.append((source[net], False))
        self.gates = result

    def area(self):
        """Square micrometres: logic, registers."""
        return sum(g.cell.area for g in self.gates), len(self.registers) * self.flop.area
