#!/usr/bin/env python3
"""millrace verify and millrace model: the timing models equal the RTL, a wrong one is found, bad files are named."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import BUILD, ROOT, Place, main, refuse, run, succeed, succeed_json  # noqa: E402

TESTS = []
CYCLE = ROOT / "models/cycle"
UNIT = CYCLE / "rgu/unit.json"
# a build outside of the tree has no models beside it
HERE = [] if BUILD.parent == ROOT else ["--models", str(CYCLE)]
FIELDS = ["name", "unit", "composed", "rtl_cycles", "model_cycles", "rtl_s", "model_s"]


def test(f):
    TESTS.append(f)
    return f


def matrix():
    with open(CYCLE / "verify.json", encoding="utf-8") as f:
        return json.load(f)


def brief(where, names=("tile bf16 256x256", "apply batch 1")):
    """A matrix of a few workloads."""
    m = matrix()
    m["workloads"] = [w for w in m["workloads"] if w["name"] in names]
    return where.file("matrix.json", json.dumps(m).encode())


def models(where, change):
    """A folder of parameters of our own, the RGU's changed."""
    with open(UNIT, encoding="utf-8") as f:
        unit = json.load(f)
    change(unit)
    where.file("models/rgu/unit.json", json.dumps(unit).encode())
    shutil.copytree(CYCLE / "pnm", where.name("models/pnm"))
    shutil.copytree(CYCLE / "dram", where.name("models/dram"))
    return where.name("models")


@test
def the_short_matrix_agrees():
    out = succeed_json("verify", "--unit", "rgu", "--short", *HERE)
    assert out["agree"] and out["differ"] == 0 and out["version"] == 1
    short = [w for w in matrix()["workloads"] if w["unit"] == "rgu" and w.get("short")]
    assert [w["name"] for w in out["workloads"]] == [w["name"] for w in short]
    for w in out["workloads"]:
        assert sorted(w) == sorted(FIELDS), w
        assert w["rtl_cycles"] == w["model_cycles"] > 0, w
        assert w["rtl_s"] > w["model_s"] > 0, w
    assert any(w["composed"] for w in out["workloads"])


@test
def a_wrong_parameter_is_found():
    for key, value in ("expand_latency", 6), ("transform_slots", 21), ("table_latency", 8), ("read_latency", 2):
        with Place() as where:
            folder = models(where, lambda u: u[key].update(value=value))
            code, out, err = run("verify", "--unit", "rgu", "--matrix", brief(where), "--models", folder)
            assert code == 1, "%s: exit %d" % (key, code)
            assert b"DIFFERS" in out and err.startswith(b"millrace: verify: "), (key, out, err)


@test
def the_model_says_cycles_bottleneck_and_counters():
    with Place() as where:
        w = where.file("w.json", b'{"jobs": [{"n": 8, "rows": 1024, "cols": 1024, "repeat": 2}]}')
        out = succeed_json("model", "rgu", "--workload", w, *HERE)
        assert out["unit"] == "rgu" and out["bottleneck"] == "port" and out["descriptors"] == 2
        assert out["counters"]["items_out"] == 2 * 1024 * 1024
        assert 2 * 1024 * 1024 / 32 < out["cycles"] < 2.2 * 1024 * 1024 / 32
        text, _ = succeed("model", "rgu", "--workload", w, *HERE)
        assert b"%d cycles" % out["cycles"] in text


@test
def more_terms_move_the_bottleneck():
    with Place() as where:
        w = where.file("w.json", b'{"jobs": [{"n": 8, "rows": 512, "cols": 512, "terms": 9}]}')
        assert succeed_json("model", "rgu", "--workload", w, *HERE)["bottleneck"] == "products"


@test
def the_near_memory_units_model_runs_too():
    with Place() as where:
        w = where.file("w.json", b'{"matvec": {"kc": 4, "outputs": 32, "vectors": 2}}')
        out = succeed_json("model", "pnm", "--workload", w, *HERE)
        assert out["cycles"] > 0 and out["counters"]["mv_cycles"] > 0 and out["descriptors"] == 1


BAD_JOBS = [
    ({"n": 8, "rows": 8, "cols": 8, "colour": 1}, "jobs[0].colour: unknown key"),
    ({"n": 9, "rows": 8, "cols": 8}, "jobs[0]: n:"),
    ({"n": 8, "rows": 8}, "jobs[0].cols: is missing"),
    ({"n": 8, "rows": 8.5, "cols": 8}, "jobs[0].rows: must be a whole number"),
    ({"n": 8, "rows": 8, "cols": 8, "format": "bf8"}, "jobs[0].format: must be one of"),
    ({"n": 8, "rows": 8, "cols": 8, "window": [0, 9, 0, 8]}, "jobs[0]: rows:"),
    ({"n": 8, "rows": 8, "cols": 8, "window": [0, 8]}, "jobs[0].window"),
    ({"n": 8, "rows": 8, "cols": 8, "offsets": {"dest": 1}}, "jobs[0].offsets.dest: unknown key"),
    ({"n": 8, "rows": 8, "cols": 8, "dst_stride": 2}, "jobs[0]: dst_stride:"),
    ({"n": 8, "rows": 8, "cols": 8, "row_scale": 1}, "jobs[0].row_scale: must be true or false"),
]


@test
def bad_workloads_are_named():
    for job, words in BAD_JOBS:
        with Place() as where:
            w = where.file("w.json", json.dumps({"jobs": [job]}).encode())
            refuse(["w.json", words], "model", "rgu", "--workload", w, *HERE, code=3)
    for text, words in ((b"{", ":1: "), (b"[]", "must be an object"), (b'{"jobs": []}', "jobs: must be a list"),
                        (b'{"jobs": 1, "job": 2}', "job: unknown key"),
                        (b'{"unit": "pnm", "jobs": []}', "unit: is not")):
        with Place() as where:
            refuse(["w.json", words], "model", "rgu", "--workload", where.file("w.json", text), *HERE, code=3)
    refuse("none.json", "model", "rgu", "--workload", "none.json", *HERE, code=3)
    with Place() as where:
        both = where.file("w.json", b'{"load": {"rows": 1}, "store": {"rows": 1}}')
        refuse(["w.json", "store"], "model", "pnm", "--workload", both, *HERE, code=3)


@test
def bad_matrices_are_named():
    for change, words in ((lambda m: m.update(version=2), "version: must be"),
                          (lambda m: m.update(extra=1), "extra: unknown key"),
                          (lambda m: m.update(workloads=[]), "no workload"),
                          (lambda m: m["workloads"][0].update(unit="gpu"), "workloads[0].unit: must be one of"),
                          (lambda m: m["workloads"][0].pop("name"), "workloads[0].name"),
                          (lambda m: m["workloads"][0].update(speed=1), "workloads[0].speed: unknown key")):
        with Place() as where:
            m = matrix()
            change(m)
            path = where.file("m.json", json.dumps(m).encode())
            refuse(words, "verify", "--unit", "rgu", "--short", "--matrix", path, *HERE, code=3)
    refuse("gpu", "verify", "--unit", "gpu", code=2)


@test
def bad_parameters_are_named():
    with Place() as where:
        folder = models(where, lambda u: u.pop("lanes"))
        refuse("unit.json: lanes: is missing", "verify", "--unit", "rgu", "--matrix", brief(where), "--models", folder,
               code=3)


if __name__ == "__main__":
    main(TESTS)
