#!/usr/bin/env python3
"""millrace pnm study: what it refuses, figures that agree with each other, and docs/pnm-study.md that has them."""
import os
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import ROOT, Place, main, refuse, succeed, succeed_json  # noqa: E402

TESTS = []
FLOW = "digits-coupling"
PAGE = ROOT / "docs/pnm-study.md"


def test(f):
    TESTS.append(f)
    return f


def page():
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index("<!-- millrace pnm study -->"):text.index("<!-- end of the study -->")]


def rows(text, first):
    """Rows of the table that follows the line `first`, cells as text."""
    found, on = [], False
    for line in text.splitlines():
        on = on or line.startswith(first)
        if on and line.startswith("|"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
        elif on and found:
            return found[2:]
    return found[2:]


@test
def what_it_refuses():
    with Place() as p:
        refuse(["--flow", "digits-none"], "pnm", "study", "--flow", "digits-none", code=2, place=p)
        refuse("no/such", "pnm", "study", "--out", p.name("no/such"), code=3, place=p)
        refuse("--what", "pnm", "study", "--what", code=2, place=p)


@test
def the_page_has_the_rows_of_today():
    out = succeed("pnm", "study", "--flow", FLOW)[0].decode()
    shown = set(page().splitlines())
    lines = [line for line in out[out.index("### Schedules"):].splitlines() if line]
    assert sum(FLOW in line for line in lines) >= 15, lines
    for line in lines:
        assert line in shown, "docs/pnm-study.md does not have %r; run make docs" % line


@test
def the_targets_are_those_of_the_rows():
    text = page()
    targets = {r[0]: r[1:] for r in rows(text, "### Targets")}

    def check(name, values):
        least, low, high, reached = targets[name]
        met = sum(v >= float(least) for v in values)
        assert len(values) == 8 and reached.split() in ([str(met), "of", "8"],), (name, reached, values)
        assert abs(float(low) - min(values)) <= 0.006 * max(1, min(values)), (name, low, values)
        assert abs(float(high) - max(values)) <= 0.006 * max(1, max(values)), (name, high, values)

    check("sequential / pipelined", [float(r[5]) for r in rows(text, "### Schedules")])
    placed = rows(text, "### Placement")
    check("tier-blind / tier-aware, one image alone", [float(r[4]) for r in placed])
    check("tier-blind / tier-aware, many images", [float(r[7]) for r in placed])
    fast, thrifty = rows(text, "Performance, a chip"), rows(text, "Energy an image of many, the rival's")
    for i, name in enumerate(("aim die", "hbm_pim stack", "attacc stack")):
        check("performance, chip / " + name, [float(r[2 + i]) for r in fast])
        check("energy, %s / chip" % name.split()[0], [float(r[2 + i]) for r in thrifty])


@test
def figures_agree_with_each_other():
    study = succeed_json("pnm", "study", "--flow", FLOW)
    assert [(c["flow"], c["direction"]) for c in study["flows"]] == [(FLOW, "score"), (FLOW, "sample")]
    for case in study["flows"]:
        machines = {m["machine"]: m for m in case["machines"]}
        assert sorted(machines) == ["aim", "attacc", "chip", "hbm_pim", "wide"]
        for m in machines.values():
            parts = sum(m["parts"].values())
            assert abs(parts - m["joules"]) <= 1e-9 * parts and m["alone_ns"] > m["channel_ns"] > 0, m
        for own in ("chip", "wide"):
            for rival in ("aim", "hbm_pim", "attacc"):
                a, b = machines[own], machines[rival]
                r = case["ratios"]
                assert abs(r["package"][own][rival] / (a["images_per_s"] / b["images_per_s"]) - 1) < 1e-9
                assert abs(r["energy"][own][rival] / (b["joules"] / a["joules"]) - 1) < 1e-9
                assert abs(r["energy_alone"][own][rival] / (b["alone_joules"] / a["alone_joules"]) - 1) < 1e-9
                assert abs(r["alone"][own][rival] / (b["alone_ns"] / a["alone_ns"]) - 1) < 1e-9
        # 16 multiplications of 16 banks in a nanosecond are the most that a channel's banks can give
        assert machines["chip"]["channel_ns"] * 256 >= case["products"]
        times = case["schedule_cycles"]
        assert times["sequential"] > times["pipelined"] > 0 and times["sequential"] > times["replicated"] > 0
    score = study["flows"][0]
    for row in score["lengths"]:
        cycles = row["cycles"]
        slices = [max(1, (4 << i) // row["bits_a_cycle"]) for i in range(7)]
        for i in range(6):
            if slices[i] == slices[i + 1]:
                assert cycles[i] == cycles[i + 1], (row, i)
            else:
                assert cycles[i] < cycles[i + 1] < 2.3 * cycles[i], (row, i)
    errors = {e["streams"]: e for e in study["errors"]}
    for name, bounds in (("centred", (.040, .0235, .0133, .0071, .0037, .0020)), ("unary", (.040, .0235, .0133, .0071))):
        for value, bound in zip(errors[name]["rms"], bounds):
            assert 0 < value <= bound, (name, value, bound)
    one, mean = study["matrix"]["tier_0"], study["matrix"]["mean"]
    assert all(a <= b for a, b in zip(one, mean)) and one == sorted(one)


@test
def pictures_are_svg():
    with Place() as p:
        succeed("pnm", "study", "--flow", FLOW, "--out", str(p.path))
        assert p.listing() == ["pnm-energy.svg", "pnm-latency.svg"]
        for name in p.listing():
            root = xml.etree.ElementTree.parse(p.name(name)).getroot()
            assert root.tag.endswith("svg") and len(list(root.iter())) > 40


if __name__ == "__main__":
    main(TESTS)
