"""Reads what the comparison of circuits needs from a Liberty file: areas, pins, delay and energy tables."""
import bisect
import re

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}();:,]|[^\s{}();:,"]+')


class Group:
    """name(args) { attributes; groups }"""

    def __init__(self, name, args):
        self.name, self.args, self.attributes, self.groups = name, args, {}, []

    def all(self, name):
        return [g for g in self.groups if g.name == name]

    def get(self, name, default=None):
        return self.attributes.get(name, default)


def parse(text):
    """The library's Group."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
    tokens = [t.group() for t in TOKEN.finditer(text)]
    root, stack, at = Group("", []), [], 0
    here = root
    while at < len(tokens):
        token = tokens[at]
        if token == "}":
            here = stack.pop()
            at += 1
        elif token == ";":
            at += 1
        elif tokens[at + 1] == "(":
            end = tokens.index(")", at)
            args = [t.strip('"') for t in tokens[at + 2:end] if t != ","]
            if end + 1 < len(tokens) and tokens[end + 1] == "{":
                group = Group(token, args)
                here.groups.append(group)
                stack.append(here)
                here = group
                at = end + 2
            else:
                here.attributes.setdefault(token, args)
                at = end + 1
        elif tokens[at + 1] == ":":
            end = at + 2
            while tokens[end] not in (";", "}"):
                end += 1
            here.attributes[token] = " ".join(t.strip('"') for t in tokens[at + 2:end])
            at = end
        else:
            raise ValueError("liberty: unexpected '%s'" % token)
    return root.groups[0]


def numbers(args):
    return [float(x) for a in args for x in a.replace(",", " ").split()]


class Table:
    """A look-up table over (load, slew), or (slew); between its points linear, beyond its ends constant."""

    def __init__(self, group, axes):
        self.rows = [numbers([row]) for row in group.get("values")]
        self.first = numbers(group.get("index_1", ["0"]))
        self.second = numbers(group.get("index_2", ["0"]))
        self.swap = bool(axes) and len(axes) > 1 and "load" not in axes[0] and "output" not in axes[0]
        if len(self.rows) == 1 and len(self.first) > 1 and len(self.second) <= 1: # one axis, slews
            self.rows, self.second, self.first = [self.rows[0]], self.first, [0.0]

    @staticmethod
    def place(axis, x):
        if len(axis) == 1:
            return 0, 0, 0.0
        at = min(max(bisect.bisect_right(axis, x) - 1, 0), len(axis) - 2)
        share = (x - axis[at]) / (axis[at + 1] - axis[at])
        return at, at + 1, min(max(share, 0.0), 1.0)

    def at(self, load, slew):
        x, y = (slew, load) if self.swap else (load, slew)
        i, j, u = self.place(self.first, x)
        k, l, v = self.place(self.second, y)
        low = self.rows[i][k] * (1 - v) + self.rows[i][l] * v
        high = self.rows[j][k] * (1 - v) + self.rows[j][l] * v
        return low * (1 - u) + high * u


class Arc:
    def __init__(self, group, table):
        self.pin = group.get("related_pin")
        self.kind = group.get("timing_type", "combinational")
        self.sense = group.get("timing_sense", "non_unate")
        self.tables = {g.name: table(g) for g in group.groups if g.get("values")}


class Pin:
    def __init__(self, group, table):
        self.name = group.args[0]
        self.output = group.get("direction") == "output"
        self.capacitance = float(group.get("capacitance", 0))
        self.function = group.get("function")
        self.arcs = [Arc(t, table) for t in group.all("timing")]
        self.power = [{g.name: table(g) for g in p.groups if g.get("values")} for p in group.all("internal_power")]

    def energy(self, edge, load, slew):
        """Picojoules inside of the cell for one edge of this pin; the mean over the inputs that cause it."""
        tables = [p[edge + "_power"] for p in self.power if edge + "_power" in p]
        return sum(t.at(load, slew) for t in tables) / len(tables) if tables else 0.0


class Cell:
    def __init__(self, group, table):
        self.name = group.args[0]
        self.area = float(group.get("area", 0))
        self.pins = {p.name: p for p in (Pin(g, table) for g in group.all("pin"))}
        self.inputs = [p for p in self.pins.values() if not p.output]
        self.outputs = [p for p in self.pins.values() if p.output]
        self.register = bool(group.all("ff"))


class Library:
    def __init__(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            root = parse(file.read())
        axes = {g.args[0]: [g.get("variable_1", ""), g.get("variable_2", "")]
                for g in root.groups if g.name in ("lu_table_template", "power_lut_template")}
        table = lambda g: Table(g, axes.get(g.args[0] if g.args else "", []))
        self.name = root.args[0]
        self.voltage = float(root.get("nom_voltage"))
        self.cells = {c.name: c for c in (Cell(g, table) for g in root.all("cell"))}
