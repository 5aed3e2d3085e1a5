#!/usr/bin/env python3
"""millrace pnm check-trace: the commands of a real run keep the rules; every single wrong one is found."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import ROOT, Place, have, main, refuse, run, succeed, succeed_json  # noqa: E402

rng = files.seeded()
TESTS = []
HEADER = "# cycle group command banks row column\n"
M3D = str(ROOT / "models/cycle/dram/m3d.json")


def test(f):
    TESTS.append(f)
    return f


def record(p, m, k, n, *args):
    """The trace of a gemv as lists: cycle, group, command, banks, row, column."""
    have("sim:pnm")
    w = p.file("w.npy", files.npy([m, k], [rng.gauss(0, 1) for _ in range(m * k)]))
    x = p.file("x.npy", files.npy([n, k], [rng.gauss(0, 1) for _ in range(n * k)]))
    succeed("pnm", "gemv", "--w", w, "--x", x, "--mode", "split", "--stream", "16", "--device", "sim:pnm", "--out",
            p.name("y.npy"), "--dram-trace", p.name("t.txt"), *args)
    with open(p.name("t.txt"), encoding="ascii") as f:
        text = f.read()
    assert text.startswith(HEADER)
    return [[int(a), int(b), c, int(d, 16), int(e), int(g)] for a, b, c, d, e, g in
            (line.split() for line in text.splitlines()[1:])]


def write(p, commands):
    return p.file("mutant.txt", (HEADER + "".join("%d %d %s %x %d %d\n" % tuple(c) for c in commands)).encode())


def check(p, commands, *args):
    """Exit code and report."""
    code, out, err = run("pnm", "check-trace", "--config", "m3d", "--trace", write(p, commands), "--json", *args)
    assert code in (0, 1) and err == b"", (code, err)
    r = json.loads(out)
    assert (code == 0) == (r["violations"] == 0) == (r["first"] is None), r
    return code, r


def found(p, commands, rule, at):
    """The first violation is that of the command at index `at`, by that rule, in either form of the report."""
    code, r = check(p, commands)
    assert code == 1 and r["first"]["rule"].startswith(rule), (rule, r)
    assert r["first"]["line"] == at + 2 and r["first"]["cycle"] == commands[at][0], (at, commands[at], r)
    assert r["first"]["command"] == commands[at][2], r
    refuse(["mutant.txt:%d" % (at + 2), "cycle %d" % commands[at][0], commands[at][2], rule], "pnm", "check-trace",
           "--trace", p.name("mutant.txt"), code=1)


@test
def a_real_run_keeps_the_rules():
    with Place() as p:
        for args in (["--groups", "4", "--tier", "0"], ["--groups", "2", "--tier", "7"]):
            commands = record(p, 96, 128, 24, *args)
            code, r = check(p, commands)
            assert r["groups"] == max(c[1] for c in commands) + 1
            assert code == 0 and r["commands"] == len(commands) and r["config"] == "m3d" and r["refresh"] is True
            for name, n in r["count"].items():
                assert n == sum(c[2] == name for c in commands), name
            assert r["cycles"] == commands[-1][0] + 1 and r["ns"] == r["cycles"]
            out, _ = succeed("pnm", "check-trace", "--config", M3D, "--trace", p.name("t.txt"))
            assert b"keep the rules of m3d" in out and b"refresh off" not in out


@test
def each_wrong_line_is_found():
    with Place() as p:
        # one group, so a command a cycle; longer than nine intervals
        good = [c for c in record(p, 64, 256, 160, "--groups", "1") if c[1] == 0]
        assert good[-1][0] > 9 * 3900 and check(p, good)[0] == 0
        # the latter of two commands that follow each other, a cycle before it may come
        for before, after, least, rule in (("ACT", "RD", 3, "tRCD"), ("ACT", "WR", 3, "tRCD"), ("PRE", "ACT", 5, "tRP"),
                                           ("RD", "PRE", 2, "tRTP"), ("WR", "PRE", 8, "tWR"), ("PRE", "REF", 5, "tRP"),
                                           ("REF", "ACT", 60, "tRFC"), ("REF", "REF", 60, "tRFC"),
                                           ("RD", "RD", 1, "two commands")):
            places, act = [], -100
            for i in range(1, len(good)):
                # tRAS 12.29 and tRC 17.06 are kept: no other rule is broken
                far = after in ("RD", "WR") or good[i - 1][0] + least - 1 - act >= 18
                if (good[i - 1][2], good[i][2]) == (before, after) and far:
                    places.append(i)
                act = good[i][0] if good[i][2] == "ACT" else act
            if not places:
                assert (before, after) in (("REF", "REF"), ("REF", "ACT"), ("PRE", "REF"), ("WR", "PRE")), (before, after)
                continue
            at = rng.choice(places)
            bad = [list(c) for c in good]
            bad[at][0] = bad[at - 1][0] + least - 1
            found(p, bad, rule, at)
        kind = {name: [i for i, c in enumerate(good) if c[2] == name] for name in ("ACT", "RD", "WR", "PRE", "REF")}

        def change(index, field, value, rule, where=None):
            bad = [list(c) for c in good]
            bad[index][field] = value
            found(p, bad, rule, index if where is None else where)

        def drop(index, rule, where):
            found(p, good[:index] + good[index + 1:], rule, where)

        a = rng.choice([i for i in kind["ACT"] if good[i + 1][2] in ("RD", "WR")])
        change(a, 4, good[a][4] ^ 1, "column of a row that is not open", a + 1)
        drop(a, "column of a row that is not open", a)
        r = rng.choice(kind["RD"])
        change(r, 4, good[r][4] ^ 64, "column of a row that is not open")
        change(r, 5, 16, "no such column")
        change(r, 3, 31, "no such bank")
        change(r, 3, 0, "no bank")
        change(r, 1, 64, "no such group")
        change(rng.choice(kind["ACT"]), 4, 1024, "no such row")
        b = rng.choice([i for i in kind["PRE"][:-1] if good[i + 1][2] == "ACT"])
        drop(b, "ACT: a row is open", b)
        for f in [i for i in kind["PRE"] if good[i + 1][2] == "REF"][:1]:
            drop(f, "REF: a row is open", f)
        change(b, 0, good[b - 1][0] - 1, "time goes back")
        change(r, 2, "REF", "REF: a row is open")
        # a group that is not there gets no refreshes either
        code, report = check(p, good, "--groups", "2")
        assert code == 1 and report["first"]["line"] is None and "tREFI" in report["first"]["rule"], report
        refuse(["at the end", "tREFI"], "pnm", "check-trace", "--trace", p.name("mutant.txt"), "--groups", "2", code=1)
        # refreshes: none at all, and for as long as one may not be late
        bad = [c for c in good if c[2] != "REF"]
        late = next(i for i, c in enumerate(bad) if c[0] >= 9 * 3900)
        found(p, bad, "tREFI", late)
        start = kind["REF"][0]
        more = [[good[start][0] + 60 * i, 0, "REF", 15, 0, 0] for i in range(30)]
        code, report = check(p, good[:start] + more)
        assert code == 1 and report["first"]["rule"].startswith("tREFI: refreshed too often"), report


@test
def other_parts_have_other_rules():
    with Place() as p:
        good = record(p, 32, 64, 8)
        for name in ("aim", "hbm_pim", "attacc"):  # slower: the first column command comes too early
            code, out, _ = run("pnm", "check-trace", "--config", name, "--trace", write(p, good), "--json")
            r = json.loads(out)
            assert code == 1 and r["config"] == name and r["first"]["rule"], r
        with open(M3D, encoding="utf-8") as f:
            part = json.load(f)
        part["refresh"]["value"] = False
        off = p.file("off.json", json.dumps(part).encode())
        out, _ = succeed("pnm", "check-trace", "--config", off, "--trace", write(p, [c for c in good if c[2] != "REF"]))
        assert b"refresh off" in out
        assert succeed_json("pnm", "check-trace", "--config", off, "--trace", p.name("mutant.txt"))["refresh"] is False


@test
def bad_input_is_refused_in_one_line():
    with Place() as p:
        line = HEADER + "5 0 ACT f 1 0\n"
        good = p.file("good.txt", line.encode())

        def no(words, *args, code=3):
            refuse(words, "pnm", "check-trace", *args, code=code, place=p)

        for bad, field in (("x 0 RD f 1 0", "cycle"), ("-1 0 RD f 1 0", "cycle"), ("6  0 RD f 1 0", "group"),
                           ("6 0 NOP f 1 0", "command"), ("6 0 rd f 1 0", "command"), ("6 0 RD g 1 0", "banks"),
                           ("6 0 RD f 1.5 0", "row"), ("6 0 RD f 1", "column"), ("6 0 RD f 1 0 7", "column"),
                           ("6 0 RD f 99999999999 0", "row"), ("", "cycle"), ("6", "group"),
                           ("6 0 RD f 1 0\x01", "column")):
            no(["bad.txt:3", field], "--trace", p.file("bad.txt", (line + bad + "\n").encode()))
        no("no commands", "--trace", p.file("empty.txt", b""))
        no("nothing.txt", "--trace", p.name("nothing.txt"))
        no("--trace", code=2)
        no("--groups", "--trace", good, "--groups", "0", code=2)
        no("nobody.json", "--trace", good, "--config", "nobody")
        with open(M3D, encoding="utf-8") as f:
            text = f.read()
        for old, new, words in (('"tREFI_ns"', '"REFI_ns"', "REFI_ns: unknown key"),
                                ('"tRP_ns"', '"tRC_ns": {"value": 1, "source": "x"}, "tRP_ns"', "tRC_ns: contradicts"),
                                ("4.77", "-1", "tRP_ns"), ('"postponed": {"value": 8', '"postponed": {"value": 9', "postponed"),
                                ('"tCL_ns"', '"tCCD_ns"', "duplicate")):
            assert old in text
            no(["c.json", words], "--trace", good, "--config", p.file("c.json", text.replace(old, new, 1).encode()))


if __name__ == "__main__":
    main(TESTS)
