#!/usr/bin/env python3
"""millrace nic study: what it refuses, and a small study from the files to the page."""
import copy
import csv
import json
import os
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import ROOT, Place, Skip, main, refuse, succeed, succeed_json  # noqa: E402

TESTS = []
STUDY = ROOT / "models/cycle/studies/nic.json"
DATA = pathlib.Path(os.environ.get("MILLRACE_DATA") or ROOT / "../shared/data")
POLICIES = ["mars", "ring", "tensor-parallel", "convert", "no-replication", "prefix-cache"]


def test(f):
    TESTS.append(f)
    return f


def study():
    with open(STUDY, encoding="utf-8") as f:
        return json.load(f)


def layers():
    """Layer times of a machine of no one's: 1 us and 10 ns a token for every operator."""
    names = ["embedding", "input_layernorm", "q_proj", "k_proj", "v_proj", "rope", "attn", "o_proj", "post_layernorm",
             "gate_proj", "up_proj", "act_fn", "down_proj", "final_layernorm", "lm_head"]
    lines = ["layer_name,input,kv_cache,tp_size,latency(ns)"]
    lines += ["%s,%d,0,1,%d" % (n, t, 1000 + 10 * t) for t in range(1, 2049) for n in names]
    return "\n".join(lines) + "\n"


LAYERS = layers()
MOONCAKE = "".join(json.dumps({"timestamp": 100 * i, "input_length": 1000 + i, "output_length": 3 + i % 5,
                               "hash_ids": [i % 7, 7 + i, ][:2 if 1000 + i <= 1024 else 3] +
                               ([100 + i] if 1000 + i > 1024 else [])}) + "\n" for i in range(40))
SPLITWISE = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.5,2000,10\n"


class Data(Place):
    """A folder of reference data with traces of our own, and a study of them."""

    def __enter__(self):
        super().__enter__()
        self.file("gpu/layers.csv", LAYERS.encode())
        self.file("m.jsonl", MOONCAKE.encode())
        self.file("s.csv", SPLITWISE.encode())
        self.study = study()
        self.study["node"]["layer_times"] = "gpu/layers.csv"
        self.study["traces"] = [{"name": "m", "file": "m.jsonl", "form": "mooncake"},
                                {"name": "s", "file": "s.csv", "form": "splitwise"}]
        self.study["scaling"].update(trace="m", nodes=[2, 4])
        self.study["context"].update(nodes=[2, 8], tokens=[8192, 32768])
        return self

    def write(self, changed=None):
        return self.file("study.json", json.dumps(changed or self.study).encode())

    def refuse(self, words, *more, changed=None, code=3):
        path = self.write(changed)
        refuse(words, "nic", "study", "--study", path, *more, code=code, place=self,
               env={"MILLRACE_DATA": str(self.path)})

    def run(self, *more):
        return succeed_json("nic", "study", "--study", self.write(), *more, env={"MILLRACE_DATA": str(self.path)})


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, path + (key,))
    else:
        yield path


# ---- the study file -------------------------------------------------------------------------------

@test
def every_unknown_missing_or_wrong_key_is_named():
    with Data() as d:
        for path in leaves(d.study):
            name = ".".join(path)
            for spoil in ("missing", "unknown", "wrong"):
                s = copy.deepcopy(d.study)
                at = s
                for key in path[:-1]:
                    at = at[key]
                if spoil == "missing" and path[-1] not in ("about", "sources", "name"):
                    del at[path[-1]]
                    d.refuse([name, "missing"], changed=s)
                elif spoil == "unknown":
                    at[path[-1] + "x"] = at[path[-1]]
                    d.refuse([name + "x", "unknown key"], changed=s)
                elif spoil == "wrong":
                    at[path[-1]] = {"no": "value"}
                    d.refuse(name, changed=s)


@test
def values_out_of_range_are_named():
    cases = [(("node", "step_tokens"), 4096), (("node", "hbm_share"), 1.5), (("network", "gbit_per_s"), 0),
             (("network", "gbit_per_s"), 300), (("network", "group"), 33), (("replay", "nodes"), 65),
             (("replay", "loads"), []), (("replay", "loads"), [0]), (("replay", "loads"), ["4"]),
             (("scaling", "nodes"), [2.5]), (("scaling", "trace"), "other"), (("policies",), ["mars", "tree"]),
             (("policies",), ["mars", "mars"]), (("tensor_parallel_degrees",), [3]), (("node", "kv_bytes"), 1000),
             (("context", "cached_shares"), [1]), (("model", "layers"), -1)]
    with Data() as d:
        for path, bad in cases:
            s = copy.deepcopy(d.study)
            at = s
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = bad
            d.refuse(path[-1], changed=s)


@test
def files_that_are_none():
    with Data() as d:
        for bad in (b"", b"{", b"[1]", b'{"about": "a", "about": "b"}', b"\xff"):
            path = d.file("bad.json", bad)
            refuse("bad.json", "nic", "study", "--study", path, code=3, place=d)
        refuse("nothing.json", "nic", "study", "--study", d.name("nothing.json"), code=3, place=d)


@test
def arguments():
    with Data() as d:
        for bad in ("", "x", "1,", "0", "1,,2", "-3", "nan", "1e9", ",".join("1" * 17)):
            d.refuse("--loads", "--loads", bad, code=2)
        d.refuse("--part", "--part", "half", code=2)
        d.refuse("--requests", "--requests", "0", code=2)
        d.refuse("no/such", "--csv", d.name("no/such/folder.csv"))
        d.refuse("no/such", "--page", d.name("no/such/folder.html"))


# ---- the reference data ---------------------------------------------------------------------------

@test
def absent_data_is_said():
    with Data() as d:
        os.remove(d.name("m.jsonl"))
        d.refuse(["m.jsonl", "MILLRACE_DATA"], code=4)
        os.remove(d.name("gpu/layers.csv"))
        d.refuse(["layers.csv", "MILLRACE_DATA"], code=4)


@test
def traces_that_are_wrong_are_named_with_their_line():
    good = MOONCAKE.splitlines()
    cases = [("{", 3), ('{"timestamp": 0}', 3), (good[2].replace("1002", "-2"), 3), (good[2].replace("[2, 9]", "[2]"), 3),
             (good[2].replace("[2, 9]", "[2, -9]"), 3), (good[2].replace("[2, 9]", '[2, "a"]'), 3),
             (good[2].replace("200", "50"), 3), (good[2].replace('"output_length": 5', '"output_length": 0'), 3),
             ("", 3)]
    with Data() as d:
        for bad, line in cases:
            d.file("m.jsonl", "\n".join(good[:2] + [bad] + good[3:]).encode())
            d.refuse("m.jsonl:%d" % line)
        d.file("m.jsonl", b"")
        d.refuse("no request")
        d.file("m.jsonl", MOONCAKE.encode())
        for bad in ("x\n", SPLITWISE + "5.0,1\n", SPLITWISE + "5.0,1,nan\n", SPLITWISE + "1.0,5,5\n",
                    SPLITWISE + "5.0,0,5\n", SPLITWISE + "5.0,5,5,5\n"):
            d.file("s.csv", bad.encode())
            d.refuse("s.csv:")


@test
def layer_times_that_are_wrong_are_named():
    lines = LAYERS.splitlines()
    cases = [("layers.csv:1", ["x"] + lines[1:]), ("layers.csv:5", lines[:4] + ["x_proj,1,0,1,5"] + lines[5:]),
             ("layers.csv:5", lines[:4] + ["k_proj,1,0,1,x"] + lines[5:]), ("k_proj of 1 tokens is missing", lines[:4] + lines[5:]),
             ("twice", lines + [lines[4]])]
    with Data() as d:
        for words, bad in cases:
            d.file("gpu/layers.csv", "\n".join(bad).encode())
            d.refuse(words)


# ---- what it prints -------------------------------------------------------------------------------

@test
def a_small_study_from_end_to_end():
    with Data() as d:
        out = d.run("--csv", d.name("o.csv"), "--page", d.name("o.html"))
        rows = out["runs"]
        assert {r["part"] for r in rows} == {"replay", "scaling", "context"}
        for part, count in (("replay", 2 * 3 * 8), ("scaling", 5 * 2 + 1 + 2), ("context", 2 * 2 * (5 * 2 + 1 + 3))):
            assert sum(r["part"] == part for r in rows) == count, (part, sum(r["part"] == part for r in rows))
        for r in rows:
            assert r["refused"] == 0 and r["ttft_mean_s"] > 0, r
            if r["part"] == "replay":
                assert r["finished"] == (40 if r["trace"] == "m" else 2), r
        assert out["traces"]["m"]["distinct_blocks"] == len(
            {b for line in MOONCAKE.splitlines() for b in json.loads(line)["hash_ids"]})
        with open(d.name("o.csv"), encoding="utf-8", newline="") as f:
            table = list(csv.DictReader(f))
        assert len(table) == len(rows)
        for a, b in zip(table, rows):
            for key, value in b.items():
                assert a[key] == value if isinstance(value, str) else abs(float(a[key]) - value) <= 1e-9 * abs(value), key
        page = pathlib.Path(d.name("o.html")).read_text(encoding="utf-8")
        body = page[page.index("<body>"):page.index("</body>") + 7]
        pictures = xml.etree.ElementTree.fromstring(body).findall("figure")
        assert len(pictures) >= 2 * 3 + 2 + 2 * 2 * 3
        assert "http" not in page and "<script" not in page
        again = d.run("--jobs", "1")
        assert again == out, "two runs differ"
        text = succeed("nic", "study", "--study", d.write(), env={"MILLRACE_DATA": str(d.path)})[0].decode()
        for p in POLICIES:
            assert text.count("| %s" % p) >= 7, p


@test
def loads_and_requests_can_be_chosen():
    with Data() as d:
        out = d.run("--part", "replay", "--loads", "2,3.5", "--requests", "5")
        assert {r["load"] for r in out["runs"]} == {2, 3.5}
        assert all(r["finished"] == (5 if r["trace"] == "m" else 2) for r in out["runs"])


@test
def the_recorded_traces_have_their_known_hit_rates():
    s = study()
    if not all((DATA / t["file"]).exists() for t in s["traces"]) or not (DATA / s["node"]["layer_times"]).exists():
        raise Skip("MILLRACE_DATA has no traces")
    s["traces"] = [t for t in s["traces"] if t["form"] == "mooncake"]
    s["policies"] = ["prefix-cache"]
    s["replay"]["loads"] = [8]
    with Place() as p:
        path = p.file("s.json", json.dumps(s).encode())
        out = succeed_json("nic", "study", "--study", path, "--part", "replay", env={"MILLRACE_DATA": str(DATA)})
    known = {"mooncake-conversation": (12031, 288500, 182790, 0.366), "mooncake-synthetic": (3993, 121877, 43924, 0.640)}
    for name, (requests, references, distinct, rate) in known.items():
        t = out["traces"][name]
        assert (t["requests"], t["block_references"], t["distinct_blocks"]) == (requests, references, distinct), t
        assert abs(t["infinite_cache_hit_rate"] - rate) < 0.0005, t
    for r in out["runs"]:
        assert r["finished"] == known[r["trace"]][0] and r["block_references"] == known[r["trace"]][1]
        assert 0 < r["blocks_reused"] < known[r["trace"]][3] * r["block_references"]


main(TESTS)
