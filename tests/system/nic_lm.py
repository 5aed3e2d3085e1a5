#!/usr/bin/env python3
"""The language model with its KV cache sharded over NICs writes what it writes alone.

No tolerance: the bytes must be the same for 1 to 8 nodes. The smallest gap between the two likeliest
bytes over all that were chosen is printed; it says how far rounding was from changing one.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import Skip, devices, main, refuse, run, succeed, succeed_json  # noqa: E402

TESTS = []
PROMPT = "And the king said unto the people, "
FAULTS = ["--loss", "0.01", "--dup", "0.01", "--reorder", "0.01", "--corrupt", "0.01"]


def test(f):
    TESTS.append(f)
    return f


def write(tokens, *more):
    return succeed_json("run", "lm", "--prompt", PROMPT, "--tokens", str(tokens), "--rgu", "off",
                        "--gpu", "cpu", *more)


def same_text(device, tokens, counts, *more):
    alone = write(tokens)
    assert "nic" not in alone
    for nodes in counts:
        j = write(tokens, "--nodes", str(nodes), "--nic", device, *more)
        nic = j["nic"]
        print("%s, %d nodes%s: smallest gap %.9g, %d frames, %d bytes, %d sent again, %d merges, %d cycles"
              % (device, nodes, " with faults" if more else "", nic["smallest_gap"], nic["frames"],
                 nic["bytes"], nic["retransmissions"], nic["merges"], nic["cycles"]))
        assert j["text_hex"] == alone["text_hex"], "%d nodes: %s instead of %s" % (
            nodes, j["text_hex"], alone["text_hex"])
        assert nic["nodes"] == nodes and nic["merges"] > 0 and nic["smallest_gap"] > 0
        assert (nic["frames"] == 0) == (nodes == 1), nic
        assert bool(more) or nic["retransmissions"] == 0, nic


@test
def model_of_the_nic():
    same_text("golden", 64, range(1, 9))


@test
def model_of_the_nic_with_faults():
    same_text("golden", 48, range(2, 9), *FAULTS, "--seed", "2")


def rtl():
    d = devices().get("sim:nic")
    if not d or not d["available"]:
        raise Skip("sim:nic: %s" % (d["reason"] if d else "not listed"))


@test
def rtl_of_the_nic():
    rtl()
    same_text("sim", 4, range(1, 9))


@test
def rtl_of_the_nic_with_faults():
    rtl()
    same_text("sim", 4, [3], *FAULTS)


@test
def scores_do_not_change():
    text = os.path.join(os.path.dirname(os.path.realpath(__file__)), "harness.py")
    with open(text, "rb") as f:
        part = f.read(700)
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "millrace-nic-score-%d" % os.getpid())
    with open(path, "wb") as f:
        f.write(part)
    try:
        args = ["run", "lm", "--score", path, "--rgu", "off", "--gpu", "cpu"]
        alone = succeed_json(*args)["bits_per_byte"]
        nodes = succeed_json(*args, "--nodes", "3", "--nic", "golden")["bits_per_byte"]
        assert abs(alone - nodes) < 1e-4, (alone, nodes)
    finally:
        os.remove(path)


@test
def figures_as_text():
    _, err = succeed("run", "lm", "--prompt", "x", "--tokens", "4", "--rgu", "off", "--gpu", "cpu", "--nodes",
                     "2", "--nic", "golden")
    assert b"2 nodes: " in err and b" merges in " in err, err


@test
def bad_options():
    lm = ["run", "lm", "--prompt", "x", "--tokens", "2", "--rgu", "off", "--gpu", "cpu"]
    refuse("--nodes", *lm, "--nodes", "0")
    refuse("--nodes", *lm, "--nodes", "17")
    refuse("--loss needs --nodes", *lm, "--loss", "0.1")
    refuse("--nic needs --nodes", *lm, "--nic", "golden")
    refuse("--corrupt", *lm, "--nodes", "2", "--corrupt", "1.5")
    refuse("--nic", *lm, "--nodes", "2", "--nic", "none")


@test
def a_dead_network_is_named():
    code, out, err = run("run", "lm", "--prompt", "x", "--tokens", "2", "--rgu", "off", "--gpu", "cpu",
                         "--nodes", "3", "--nic", "golden", "--loss", "1")
    text = err.decode()
    assert code not in (0, 2) and out == b"" and text.count("\n") == 1, (code, out, text)
    assert "no answer from ranks 1, 2" in text, text


main(TESTS)
