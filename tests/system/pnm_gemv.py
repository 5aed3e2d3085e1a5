#!/usr/bin/env python3
"""millrace pnm gemv and pnm mult as their callers see them: results, figures that agree with each other, refusals."""
import math
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import MILLRACE, Place, Skip, devices, main, refuse, run, succeed, succeed_json  # noqa: E402

rng = files.seeded()
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def bf16(v):
    """To nearest even, as a float."""
    u = struct.unpack("<I", struct.pack("<f", v))[0]
    u += 0x7FFF + (u >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", u & 0xFFFF0000))[0]


def units():
    """golden, and every device here that has near-memory elements."""
    return ["golden"] + [u for u, d in devices().items() if d["available"] and "pnm" in d["capabilities"]]


def gemv(p, w, x, *args, device="golden", out="y.npy"):
    r = succeed_json("pnm", "gemv", "--w", w, "--x", x, "--device", device, "--out", p.name(out), *args)
    with open(p.name(out), "rb") as f:
        data = f.read()
    return r, files.read_npy(data), data


def problem(p, m, k, n, name=""):
    w = [rng.gauss(0, 1) for _ in range(m * k)]
    x = [rng.gauss(0, 1) for _ in range(n * k)]
    return w, x, p.file(name + "w.npy", files.npy([m, k], w)), p.file(name + "x.npy", files.npy([n, k], x))


def check(w, x, m, k, n, y, error):
    """error: of one product, relative. A sum's is a random walk of them, six deviations are allowed."""
    w, x = [bf16(v) for v in w], [bf16(v) for v in x]
    for i in range(n):
        for j in range(m):
            terms = [w[j * k + c] * x[i * k + c] for c in range(k)]
            size = math.sqrt(sum(t * t for t in terms))
            bound = 6 * error * size + sum(map(abs, terms)) * 2.0 ** -22 + 1e-30
            assert abs(y[i * m + j] - math.fsum(terms)) <= bound, (i, j, y[i * m + j], math.fsum(terms))


@test
def exact_products_give_the_sum_of_float64_on_every_device():
    with Place() as p:
        for m, k, n in ((1, 1, 1), (17, 33, 3), (40, 100, 9), (5, 4100, 2)):
            w, x, wf, xf = problem(p, m, k, n)
            first = None
            for device in units():
                r, (shape, y), data = gemv(p, wf, xf, "--mode", "exact", device=device)
                first = first or data
                assert data == first, "%s differs from golden" % device
                assert shape == (n, m) and r["outputs"] == m and r["inputs"] == k and r["vectors"] == n
                assert r["stream"] is None and r["gen"] is None and r["status"] == []
                check(w, x, m, k, n, y, 0)


@test
def hybrid_sums_are_within_the_error_of_their_products():
    # RMS errors of the multiplier, docs/pnm-arithmetic.md; `full` has no bound of the design's but the literature's
    table = {("split", 4): .040, ("split", 16): .0133, ("split", 64): .0037, ("full", 16): .114, ("full", 64): .027}
    with Place() as p:
        m, k, n = 24, 96, 5
        w, x, wf, xf = problem(p, m, k, n)
        for (mode, stream), error in table.items():
            gens = ["unary", "centred"] if mode == "split" else [None]
            for gen in gens:
                more = ["--gen", gen] if gen else []
                r, (_, y), data = gemv(p, wf, xf, "--mode", mode, "--stream", str(stream), *more)
                assert r["stream"] == stream and r["gen"] == gen
                check(w, x, m, k, n, y, error)
        for mode in ("split", "full"):
            golden = gemv(p, wf, xf, "--mode", mode, "--stream", "16")[2]
            for device in units():
                assert gemv(p, wf, xf, "--mode", mode, "--stream", "16", device=device)[2] == golden, device


@test
def compute_kernels_have_every_multiplier():
    """A unit in hardware is built with one generator and cut; kernels have all that the golden model has."""
    kernels = [u for u in units() if u != "golden" and not u.startswith("sim:")]
    assert "cpu:" in kernels, kernels
    with Place() as p:
        _, _, wf, xf = problem(p, 20, 50, 3)
        seen = set()
        for gen, cut, stream in (("unary", 0, 4), ("unary", 3, 32), ("centred", 1, 8), ("centred", 6, 4)):
            args = ["--mode", "split", "--gen", gen, "--cut", str(cut), "--stream", str(stream)]
            golden = gemv(p, wf, xf, *args)[2]
            seen.add(golden)
            for device in kernels:
                r, _, data = gemv(p, wf, xf, *args, device=device)
                assert data == golden and (r["gen"], r["cut"]) == (gen, cut), (device, args)
        assert len(seen) == 4
        refuse("cpu:", "pnm", "gemv", "--w", wf, "--x", xf, "--mode", "exact", "--device", "cpu:?threads=0", "--out",
               p.name("z.npy"), code=2)
        refuse("--dram-trace", "pnm", "gemv", "--w", wf, "--x", xf, "--mode", "exact", "--device", "cpu:", "--out",
               p.name("z.npy"), "--dram-trace", p.name("t"), code=2)
        assert p.listing() == ["w.npy", "x.npy", "y.npy"], p.listing()


@test
def other_layouts_of_the_arrays():
    with Place() as p:
        w = [rng.randrange(-8, 9) / 4 for _ in range(6 * 5)]
        x = [rng.randrange(-8, 9) / 4 for _ in range(5)]
        want = [sum(w[j * 5 + c] * x[c] for c in range(5)) for j in range(6)]
        text = files.npy([6, 5], w)
        half = text.replace(b"'<f4'", b"'<f2'")[:-4 * 30] + struct.pack("<30e", *w)
        turned = files.npy([6, 5], [w[j * 5 + c] for c in range(5) for j in range(6)], order="True")
        for data in (text, half, turned):
            _, (shape, y), _ = gemv(p, p.file("w.npy", data), p.file("x.npy", files.npy([5], x)), "--mode", "exact")
            assert shape == (6,) and list(y) == want, (y, want)
        r, _, _ = gemv(p, p.name("w.npy"), p.name("x.npy"), "--mode", "exact")
        assert r["weights_rounded"] == 0
        r, _, _ = gemv(p, p.file("v.npy", files.npy([1, 3], [1.0, 1.00390625, 1.001])), p.file("z.npy", files.npy([3], [1, 0, 0])),
                       "--mode", "exact")
        assert r["weights_rounded"] == 2
        out, _ = succeed("pnm", "gemv", "--w", p.name("v.npy"), "--x", p.name("z.npy"), "--mode", "exact", "--device",
                         "golden", "--out", p.name("y.npy"))
        assert b"2 of 3 weights rounded to bf16" in out


@test
def figures_agree_with_each_other():
    with Place() as p:
        m, k, n = 64, 128, 8
        _, _, wf, xf = problem(p, m, k, n)
        for device in units():
            r, _, _ = gemv(p, wf, xf, "--mode", "split", "--stream", "16", device=device)
            assert r["useful_products"] == m * k * n and r["products"] == m * k * n
            e = r["energy"]
            parts = sum(e[name] for name in ("dram", "operands", "multiply", "accumulate", "vector", "scratch", "link"))
            assert abs(e["joules"] - parts) <= 1e-9 * parts and parts > 0
            c = e["picojoules"]
            assert math.isclose(e["multiply"], m * k * n * (c["multiply_split"] + 16 * c["stream_bit"]) * 1e-12,
                                rel_tol=1e-8)
            if r["cycles"] is None:
                assert device != "sim:pnm"
                assert r["ns"] is None and r["utilisation"] is None and r["dram"]["rd"] is None
                continue
            assert r["ns"] == r["cycles"] * 1e9 / r["clock_hz"]
            assert math.isclose(r["utilisation"], r["stream_cycles"] / r["matrix_cycles"], rel_tol=1e-8)
            assert 0 < r["utilisation"] <= 1 and r["matrix_cycles"] <= r["groups"] * r["cycles"]
            # 64 products a column and vector, one cycle each at 16 stream bits
            assert r["stream_cycles"] == r["products"] // 64
            d = r["dram"]
            assert d["rd"] == d["wr"] == m * k // 64  # a column is read once for all vectors
            assert d["act"] >= d["wr"] / 16 and d["pre"] <= d["act"] + d["ref"] + 4
            longer, _, _ = gemv(p, wf, xf, "--mode", "split", "--stream", "64", device=device)
            assert longer["stream_cycles"] == 4 * r["stream_cycles"] and longer["cycles"] > r["cycles"]


@test
def a_trace_has_the_commands_that_were_counted():
    if "sim:pnm" not in units():
        raise Skip("sim:pnm is not here")
    with Place() as p:
        _, _, wf, xf = problem(p, 40, 64, 8)
        trace = p.name("trace file.txt")
        r, _, _ = gemv(p, wf, xf, "--mode", "exact", "--dram-trace", trace, device="sim:pnm")
        with open(trace, encoding="ascii") as f:
            lines = [line.split() for line in f if line[:1].isdigit()]
        for name in ("act", "rd", "wr", "pre"):
            assert sum(name.upper() in words for words in lines) == r["dram"][name], name


@test
def mult_on_a_unit_is_mult():
    a = [bf16(rng.gauss(0, 1) * 2.0 ** rng.randrange(-60, 60)) for _ in range(300)]
    b = [bf16(rng.gauss(0, 1) * 2.0 ** rng.randrange(-60, 60)) for _ in range(300)]
    a[:6] = [0.0, -0.0, math.inf, math.nan, 2.0 ** -130, math.inf]
    b[:6] = [-2.0, 3.0, 0.0, 1.0, 5.0, -2.0]
    with Place() as p:
        fa, fb = p.file("a.npy", files.npy([10, 30], a)), p.file("b.npy", files.npy([10, 30], b))
        for mode in (["exact"], ["split", "--stream", "16"], ["full", "--stream", "32"]):
            want = None
            for device in units():
                r = succeed_json("pnm", "mult", "--a", fa, "--b", fb, "--mode", *mode, "--device", device, "--out",
                                 p.name("p.npy"))
                with open(p.name("p.npy"), "rb") as f:
                    data = f.read()
                figures = [r[key] for key in ("products", "overflow", "underflow", "invalid")]
                want = want or (data, figures)
                assert data == want[0] and figures == want[1], (device, mode, figures, want[1])


@test
def a_killed_simulator_and_a_timeout_leave_nothing():
    if "sim:pnm" not in units():
        raise Skip("sim:pnm is not here")
    with Place() as p:
        w = p.file("w.npy", files.npy([512, 512], [0.5] * 512 * 512))
        x = p.file("x.npy", files.npy([256, 512], [0.5] * 256 * 512))
        args = ["pnm", "gemv", "--w", w, "--x", x, "--mode", "split", "--stream", "256", "--device", "sim:pnm", "--out",
                p.name("y.npy"), "--dram-trace", p.name("t.txt")]
        refuse("did not end within 0.3 s", *args, "--timeout", "0.3", code=5, place=p)
        job = subprocess.Popen([MILLRACE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        killed = False
        while not killed and job.poll() is None:
            time.sleep(0.05)
            for thread in os.listdir("/proc/%d/task" % job.pid):
                with open("/proc/%d/task/%s/children" % (job.pid, thread), encoding="ascii") as f:
                    for child in f.read().split():
                        time.sleep(0.3)  # into the job
                        os.kill(int(child), signal.SIGKILL)
                        killed = True
        _, err = job.communicate()
        assert killed and job.returncode == 1 and b"was killed by signal 9" in err, (job.returncode, err)
        assert p.listing() == ["w.npy", "x.npy"], p.listing()


@test
def bad_input_is_refused_in_one_line():
    with Place() as p:
        _, _, w, x = problem(p, 4, 6, 2)
        out = ["--out", p.name("y.npy"), "--device", "golden"]
        good = ["--w", w, "--x", x, "--mode", "exact"]
        other = p.file("o.npy", files.npy([2, 5], [0.5] * 10))
        line = p.file("l.npy", files.npy([6], [0.5] * 6))
        cube = p.file("c.npy", files.npy([1, 1, 6], [0.5] * 6))
        empty = p.file("e.npy", files.npy([0, 6], []))

        def no(words, *args, code):
            refuse(words, "pnm", "gemv", *args, *out, code=code, place=p)

        no(["vectors of 5", "6 columns"], "--w", w, "--x", other, "--mode", "exact", code=3)
        no("1 dimensions", "--w", line, "--x", x, "--mode", "exact", code=3)
        no("3 dimensions", "--w", w, "--x", cube, "--mode", "exact", code=3)
        no("no elements", "--w", w, "--x", empty, "--mode", "exact", code=3)
        no("cannot open", "--w", p.name("nothing"), "--x", x, "--mode", "exact", code=3)
        for value, word in ((math.nan, "NaN"), (-math.inf, "infinite"), (3.4e38, "too large for bf16")):
            bad = [0.5] * 24
            bad[2 * 6 + 3] = value
            no(["b.npy", "[2, 3]", word], "--w", p.file("b.npy", files.npy([4, 6], bad)), "--x", x, "--mode", "exact", code=3)
        for stream in ("2", "3", "20", "512", "x", "-4"):
            no("--stream", "--w", w, "--x", x, "--mode", "split", "--stream", stream, code=2)
        no("--stream", "--w", w, "--x", x, "--mode", "split", code=2)
        no("--gen", *good, "--gen", "unary", code=2)
        no("--gen", "--w", w, "--x", x, "--mode", "split", "--stream", "16", "--gen", "lfsr", code=2)
        no("--cut", "--w", w, "--x", x, "--mode", "full", "--stream", "16", "--cut", "1", code=2)
        no("--cut", "--w", w, "--x", x, "--mode", "split", "--stream", "16", "--cut", "7", code=2)
        no("--groups", *good, "--groups", "5", code=2)
        no("--groups", *good, "--groups", "0", code=2)
        no("--tier", *good, "--tier", "8", code=2)
        no("--dram-trace", *good, "--dram-trace", p.name("t"), code=2)
        refuse("sim:rgu", "pnm", "gemv", *good, "--device", "sim:rgu", "--out", p.name("y.npy"), place=p)
        refuse("sim:nothing", "pnm", "gemv", *good, "--device", "sim:nothing", "--out", p.name("y.npy"), place=p)
        refuse("y.npy", "pnm", "gemv", *good, "--device", "golden", "--out", p.name("no/y.npy"), place=p)
        code, _, _ = run("pnm", "gemv", *good, "--device", "golden", "--out", "/dev/null")
        assert code == 0


if __name__ == "__main__":
    main(TESTS)
