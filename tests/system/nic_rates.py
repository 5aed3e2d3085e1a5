#!/usr/bin/env python3
"""The rates and latencies that nic.md demands, measured on the simulated NIC in cycles: `millrace nic bench`.

MR_NIC_SWEEP frames of every UDP length (1: one in a hundred of what is demanded, for CI).
"""
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import have, main, refuse, succeed_json  # noqa: E402

SWEEP = int(os.environ.get("MR_NIC_SWEEP", 1))
SEED = int(os.environ.get("MR_SEED", 1))
ROUTES = ("pass", "deliver", "send", "copy", "ack")     # those without the memory's latency
LENGTHS = 9000 - 32 + 1


def beats(size):
    return math.ceil(size / 64)


def measured():
    have("sim:nic")
    print("MR_SEED=%d, %d of every length" % (SEED, SWEEP))
    r = succeed_json("nic", "bench", "--sweep", str(SWEEP), "--seed", str(SEED), timeout=36000)
    for row in r["pass"] + r["deliver"]:
        assert row["lost"] == 0 and row["in_beats_per_cycle"] == 1, row
        # what comes out has waited at its start for nothing but its own beats
        assert row["out_beats_per_cycle"] > 0.98, row
        assert math.isclose(row["in_frames_per_cycle"], 1 / beats(row["udp_bytes"] + 42), rel_tol=1e-6), row
    assert {32, 9000} <= {row["udp_bytes"] for row in r["pass"]}
    for row in r["store"]:
        assert row["lost"] == 0 and row["in_beats_per_cycle"] == 1, row
    assert len(r["merge"]) >= 9
    for row in r["merge"]:
        assert row["lost"] == 0 and row["in_beats_per_cycle"] == 1, row
        assert row["latency_cycles"] <= row["payload_beats"] + 64, row
        # every beat of a payload has its cycle in the engine; the rest is the headers' share, and the end
        frame = beats(row["payload_bytes"] + 74)
        assert row["merge_occupancy"] > 0.95 * row["payload_beats"] / frame, row
    for row in r["latency"]:
        if row["path"] in ROUTES:
            assert row["cycles"] <= 64, row
    assert {row["path"] for row in r["latency"]} == {*ROUTES, "stored", "read"}
    s = r["sweep"]
    assert s["lost"] == 0 and s["in_beats_per_cycle"] == 1 and s["out_beats_per_cycle"] > 0.999, s
    assert s["frames"] == SWEEP * LENGTHS, s
    for x in r["figures"]:
        print("figure: %(name)s: %(figure).6g %(unit)s (asked: %(asked)s)" % x)
    print("sweep: %d frames, %.4f beats a cycle in, %.4f out" % (s["frames"], s["in_beats_per_cycle"],
                                                                s["out_beats_per_cycle"]))


def refusals():
    refuse("golden NIC has no streams", "nic", "bench", "--device", "golden")
    refuse("cpu", "nic", "bench", "--device", "cpu:", code=2)
    refuse("--sweep", "nic", "bench", "--sweep", "1001", code=2)


if __name__ == "__main__":
    main([measured, refusals])
