#!/bin/bash
# make gpu-baseline on a machine without a GPU: says so, exits with 2, and leaves a file with the reason. Where there is a
# GPU the script itself is the test, and takes minutes.
build=${BUILD:-build}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if "$build/millrace" devices --json | grep -q '"uri": *"cuda:[0-9]'; then
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
tools/gpu-baseline --out "$out/report.json" > "$out/text"
status=$?
if [ "$status" -eq 2 ] && grep -q 'no GPU is present' "$out/text" &&
    python3 - "$out/report.json" << 'PYTHON'; then
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
assert report["result"] == "no device" and report["reason"] and "timings" not in report
assert report["provenance"]["command"].startswith("tools/gpu-baseline") and report["provenance"]["date"]
PYTHON
    echo "1 passed, 0 failed"
else
    echo "status $status"
    cat "$out/text"
    echo "0 passed, 1 failed"
    exit 1
fi
