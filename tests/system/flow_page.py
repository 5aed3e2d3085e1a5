#!/usr/bin/env python3
"""docs/pnm-flows.md and models/zoo/flows/bpd.json agree, and the committed figures meet the project's targets."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import ROOT, main  # noqa: E402

TESTS = []


def test(f):
    TESTS.append(f)
    return f


def bench():
    loader = importlib.machinery.SourceFileLoader("bench_flow", str(ROOT / "tools" / "bench-flow"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_flow", loader))
    loader.exec_module(module)
    return module


@test
def page_and_results_agree():
    assert bench().stale() == []


@test
def targets_are_met():
    b = bench()
    results = b.committed()
    assert b.check(results) == []
    for model in b.BEARING:
        for stream in b.TARGETS:
            assert b.loss(results, model, "bf16", "hybrid", stream) is not None, (model, stream)


@test
def another_figure_or_file_is_seen():
    b = bench()
    results = b.committed()
    name = b.score_name("fashion-tar", "hybrid", 4)
    with tempfile.TemporaryDirectory() as place:
        b.RESULTS = pathlib.Path(place) / "bpd.json"
        for key, value in (("bpd", results[name]["bpd"] * 1.01), ("sha256", "0" * 64)):
            b.RESULTS.write_text(json.dumps({**results, name: {**results[name], key: value}}))
            assert len(b.stale()) == 1, key
        worse = {**results, name: {**results[name], "bpd": results[name]["bpd"] * 1.01}}
        assert len(b.check(worse)) == 1


main(TESTS)
