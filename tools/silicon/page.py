"""Tables and pictures of docs/pnm-area.md from models/cycle/pnm_area.json."""
import hashlib
import json
import math
import re

import picture

PAGE, ERROR_PICTURE, AREA_PICTURE = "docs/pnm-area.md", "docs/images/pnm-error.svg", "docs/images/pnm-area.svg"
CONSTANTS = {1: 276, 2: 111, 3: 70, 4: 60, 5: 57, 6: 57} # rtl/pnm/pnm_mult_bin.sv
FLOOR = {4: .040, 8: .0235, 16: .0133, 32: .0071, 64: .0037, 128: .0020} # of the design


def truncated(keep):
    """RMS and mean relative error of a binary multiplier that keeps `keep` bits of each fraction."""
    square = total = 0.0
    step = 128 >> keep
    for a in range(128):
        for b in range(128):
            exact = (128 + a) * (128 + b)
            p = exact
            if keep < 7:
                x, y = (a // step + 0.5) * step, (b // step + 0.5) * step
                p = max(16384 + 128 * (a + b) + x * y - CONSTANTS[keep], 16384)
            square += (p / exact - 1) ** 2
            total += p / exact - 1
    return {"rms": round(math.sqrt(square / 16384), 5), "mean": round(total / 16384, 5)}


class Record:
    def __init__(self, path):
        with open(path, "rb") as file:
            raw = file.read()
        self.data, self.digest, self.path = json.loads(raw), hashlib.sha256(raw).hexdigest(), path
        self.errors = {(e["generator"], e["cut"], e["stream"]): e for e in self.data["errors"]}

    def lanes(self, module, **parameters):
        return [r for r in self.data["lanes"] if r["module"] == module
                and all(r["parameters"].get(k) == v for k, v in parameters.items())]

    def rms(self, row, stream=0):
        if row["module"] == "pnm_mult_bin":
            return self.errors["binary", row["parameters"]["Keep"], 0]["rms"]
        stream = stream or 1 << row["parameters"]["Log"]
        return self.errors[row["generator"], row["cut"], stream]["rms"]


def area(m):
    return m["logic_um2"] + m["register_um2"]


def least(rows, what):
    return min(what(m) for r in rows for m in r["maps"])


def density(rows):
    """Products a second and square millimetre, in 10^9, of the best of these lanes and mappings."""
    return max(1e6 / (m["period_ns"] * area(m)) for r in rows for m in r["maps"])


def energy(rows, operands, stream=0):
    return min(q["pj"]["all"] for r in rows for m in r["maps"] for q in m["runs"]
               if q["operands"] == operands and (not stream or q["stream"] == stream))


def kinds(record):
    """(name, lanes of one stage, lanes of any, stream length, cut)."""
    for keep in (7, 5, 4, 3):
        name = "binary, exact" if keep == 7 else "binary, %d bits kept" % keep
        yield name, record.lanes("pnm_mult_bin", Keep=keep, Stages=1), record.lanes("pnm_mult_bin", Keep=keep), 0, 0
    for gen, code in (("centred", 3), ("unary", 0)):
        for cut, log in ((0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3), (2, 2)):
            yield ("hybrid, %s, L = %d%s" % (gen, 1 << log, ", cut %d" % cut if cut else ""),
                   record.lanes("pnm_mult_short", Gen=code, Log=log, Cut=cut, Stages=1),
                   record.lanes("pnm_mult_short", Gen=code, Log=log, Cut=cut), 1 << log, cut)


def figures(record):
    base = None
    for name, one, every, stream, cut in kinds(record):
        row = {"name": name, "stream": stream, "cut": cut, "rms": record.rms(one[0]), "area": least(one, area),
               "logic": least(one, lambda m: m["logic_um2"]), "period": least(one, lambda m: m["period_ns"]),
               "density": density(every), "dense": energy(one, "dense"), "flow": energy(one, "flow")}
        base = base or row
        yield row, base


def best_table(record):
    yield "| lane | RMS error | area, um2 | to binary | shortest period, ns | 10^9 products/s/mm2 | to binary | pJ a product | to binary | pJ, flow's operands | to binary |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for r, b in figures(record):
        yield "| %s | %s | %d | %.2f | %.2f | %.1f | %.2f | %.1f | %.2f | %.1f | %.2f |" % (
            r["name"], "%.4f" % r["rms"] if r["rms"] else "0", r["area"], r["area"] / b["area"], r["period"],
            r["density"], r["density"] / b["density"], r["dense"], r["dense"] / b["dense"], r["flow"],
            r["flow"] / b["flow"])


def crossing(points):
    """Where a line through (L, ratio), straight over log L, passes one."""
    for (x, a), (y, b) in zip(points, points[1:]):
        if (a - 1) * (b - 1) <= 0 and a != b:
            return "%.1f" % 2 ** (math.log2(x) + (1 - a) / (b - a) * (math.log2(y) - math.log2(x)))
    first = points[0][1]
    return ("below 4" if first > 1 else "above 32")


def parity_table(record):
    rows = list(figures(record))
    base = rows[0][1]
    yield "| | area | products/s/mm2 | pJ a product | pJ, flow's operands |"
    yield "|---|---:|---:|---:|---:|"
    for gen in ("centred", "unary"):
        mine = [r for r, _ in rows if gen in r["name"] and r["cut"] == 0]
        ratio = lambda k, turn=False: [(r["stream"], base[k] / r[k] if turn else r[k] / base[k]) for r in mine] # pylint: disable=cell-var-from-loop
        yield "| %s, to binary exact | %s | %s | %s | %s |" % (gen, crossing(ratio("area")), crossing(ratio("density", True)),
                                                     crossing(ratio("dense")), crossing(ratio("flow")))


def built_table(record):
    base = next(figures(record))[1]
    yield "| lane | L | cycles | area, um2 | to binary | period, ns | 10^9 products/s/mm2 | to binary | pJ a product | to binary |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for row in record.lanes("silicon_lane"):
        runs = [(q["stream"], q["cycles"]) for m in row["maps"] for q in m["runs"] if q["operands"] == "dense"]
        for stream, cycles in runs:
            pj = energy([row], "dense", stream)
            yield "| %s | %d | %d | %d | %.2f | %.2f | %.2f | %.2f | %.1f | %.2f |" % (
                row["name"], stream, cycles, least([row], area), least([row], area) / base["area"],
                least([row], lambda m: m["period_ns"]), density([row]) / cycles, density([row]) / cycles / base["density"],
                pj, pj / base["dense"])


def element_table(record):
    rest = record.data["element"]
    around = rest["logic_um2"] + rest["register_um2"]
    yield "| sixteen lanes of | lanes, um2 | element, um2 | share of the multipliers | to binary |"
    yield "|---|---:|---:|---:|---:|"
    base = None
    choices = [(r["name"], r["area"]) for r, _ in figures(record) if r["name"] == "binary, exact" or "centred" in r["name"]]
    choices += [(r["name"], least([r], area)) for r in record.lanes("silicon_lane", Gen=3, StreamBits=16)]
    for name, one in choices:
        lanes = rest["lanes"] * one
        base = base or lanes + around
        yield "| %s | %d | %d | %.0f %% | %.2f |" % (name, lanes, lanes + around, 100 * lanes / (lanes + around),
                                                   (lanes + around) / base)


def error_picture(record):
    series = []
    for gen in ("centred", "sobol", "unary", "lfsr"):
        points = [(s, record.errors[gen, 0, s]["rms"], "") for s in (4, 8, 16, 32, 64, 128, 256)]
        series.append((gen, [p for p in points if p[1] > 0], False))
    series.append(("asked for (unary)", [(s, v, "") for s, v in FLOOR.items()], True))
    return picture.draw("Error of a product over the length of its streams",
                        picture.Axis("stream length L", 3.5, 300, (4, 8, 16, 32, 64, 128, 256), True),
                        picture.Axis("RMS error, relative", 1e-4, .2, (.0001, .001, .01, .1), True), series,
                        "generated by tools/area from %s sha256:%s" % (record.path, record.digest))


def area_picture(record):
    series = [("binary, exact", [(x, least(record.lanes("pnm_mult_bin", Keep=7, Stages=1), area), "") for x in (1.2e-4, .09)],
               True)]
    series.append(("binary, k bits kept", [
        (record.errors["binary", k, 0]["rms"], least(record.lanes("pnm_mult_bin", Keep=k, Stages=1), area), str(k))
        for k in (2, 3, 4, 5, 6)], False))
    for gen, code in (("centred", 3), ("unary", 0)):
        for cut in (0, 1, 2):
            rows = record.lanes("pnm_mult_short", Gen=code, Cut=cut, Stages=1)
            points = [(record.rms(r), least([r], area), str(1 << r["parameters"]["Log"]))
                      for r in sorted(rows, key=lambda r: r["parameters"]["Log"]) if record.rms(r) > 1.2e-4]
            series.append(("%s, cut %d" % (gen, cut), points, False))
    return picture.draw("Area of a lane against the error of its products",
                        picture.Axis("RMS error, relative (at the points: L, or bits kept)", 1.2e-4, .09,
                                     (.0003, .001, .003, .01, .03), True),
                        picture.Axis("area of a lane, um2", 8000, 24000, (8000, 12000, 16000, 20000, 24000),
                                     False), series,
                        "generated by tools/area from %s sha256:%s" % (record.path, record.digest))


def scaled_table(record):
    """Energies at the scale at which a bare 8 x 8 product costs what the literature has for 45 nm."""
    scale = 0.2 / min(m["pj"] for m in record.data["product"])
    lane = lambda whole, s: scale * energy(record.lanes("silicon_lane", Gen=3, StreamBits=16, Exact=whole), "dense", s)
    yield "| a product | pJ |"
    yield "|---|---:|"
    for r, _ in figures(record):
        if r["name"] == "binary, exact" or ("centred" in r["name"] and r["stream"] < 32 and r["cut"] == 0):
            yield "| %s | %.2f |" % (r["name"], scale * r["dense"])
    for whole, name in ((0, "length a setting, split only"), (1, "length a setting, as built")):
        slope = (lane(whole, 64) - lane(whole, 4)) / 60
        yield "| %s | %.2f + %.4f L |" % (name, lane(whole, 4) - 4 * slope, slope)


TABLES = {"scaled": scaled_table, "best": best_table, "parity": parity_table, "settable": built_table, "element": element_table}


def texts(path):
    """What each file should hold: (file, text)."""
    record = Record(path)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for name, table in TABLES.items():
        start, end = "<!-- %s: tools/area page -->" % name, "<!-- end of %s -->" % name
        if start not in page or end not in page:
            raise SystemExit("area: %s has no table '%s'" % (PAGE, name))
        body = start + "\n\n" + "\n".join(table(record)) + "\n\n" + end
        page = re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _, b=body: b, page, flags=re.S)
    return [(PAGE, page), (ERROR_PICTURE, error_picture(record)), (AREA_PICTURE, area_picture(record))]


def write(path):
    for name, text in texts(path):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


def check(path):
    """The names of the files that are not what the record gives."""
    wrong = []
    for name, text in texts(path):
        with open(name, encoding="utf-8") as file:
            if file.read() != text:
                wrong.append(name)
    return wrong
