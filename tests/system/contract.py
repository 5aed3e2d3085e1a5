#!/usr/bin/env python3
"""What others may rely on when they call the command: options, outputs, their meaning, and that the figures are true."""
import json
import math
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import MILLRACE, Place, Skip, devices, have, main, run, succeed, succeed_json  # noqa: E402

rng = files.seeded()
TESTS = []


def test(f):
    TESTS.append(f)
    return f


# ---- the definition of rgu.md, in plain Python ----------------------------------------------------

def swaps(a, b):
    """sgn(A, B) = (-1)^swaps."""
    n, a = 0, a >> 1
    while a:
        n += bin(a & b).count("1")
        a >>= 1
    return n & 1


def rotor(angles, n):
    r = {0: 1.0}
    planes = [(i, j) for i in range(n) for j in range(i + 1, n)]
    for (i, j), v in zip(planes, angles):
        m, c, s, out = 1 << i | 1 << j, math.cos(v * math.pi / 32768), math.sin(v * math.pi / 32768), {}
        for a, x in r.items():
            out[a] = out.get(a, 0.0) + c * x
            out[a ^ m] = out.get(a ^ m, 0.0) + s * x * (-1) ** swaps(a, m)
        r = out
    return r


def definition_columns(tensors, metadata, name, columns):
    """{J: column J of W} in double."""
    n = int(metadata[name + ".n"])
    rows, cols = map(int, metadata[name + ".shape"].split(","))
    d, planes = 1 << n, n * (n - 1) // 2
    shape = tensors[name + ".angles"][1]
    terms, co, ci = shape[:3]
    angles = struct.unpack("<%dh" % (terms * co * ci * 2 * planes), tensors[name + ".angles"][2])
    gain = struct.unpack("<%df" % (terms * co * ci), tensors[name + ".gain"][2])
    odd = tensors[name + ".odd"][2]
    scale = tensors.get(name + ".row_scale")
    scale = struct.unpack("<%df" % rows, scale[2]) if scale else [1.0] * rows
    out = {}
    for column in columns:
        w = [0.0] * (co * d)
        i, j = divmod(column, d)
        for t in range(terms):
            for o in range(co):
                at = (t * co + o) * ci + i
                r = rotor(angles[at * 2 * planes:(at * 2 + 1) * planes], n)
                s = rotor(angles[(at * 2 + 1) * planes:(at + 1) * 2 * planes], n)
                if odd[at]:
                    r = {k ^ 1: x * (-1) ** swaps(k, 1) for k, x in r.items()}
                s = {k: x * (-1) ** (bin(k).count("1") * (bin(k).count("1") - 1) // 2) for k, x in s.items()}
                for k, x in r.items():
                    kj, a = k ^ j, gain[at] * x * (-1) ** swaps(k, j)
                    for b, y in s.items():
                        w[o * d + (kj ^ b)] += a * y * (-1) ** swaps(kj, b)
        out[column] = [w[row] * scale[row] for row in range(rows)]
    return out


def tile(place, seeds, name, device="golden", *more, out="o.npy"):
    path = place.name(out)
    result = succeed_json("rgu", "tile", "--seeds", seeds, "--name", name, "--device", device, "--out", path, *more)
    with open(path, "rb") as f:
        return result, files.read_npy(f.read())


def generators():
    return ["golden"] + [u for u, d in devices().items() if d["available"] and "rgu" in d["capabilities"]]


# ---- the command itself ---------------------------------------------------------------------------

@test
def version_and_help_from_any_folder():
    with Place() as p:
        link = p.name("elsewhere")
        os.symlink(MILLRACE, link)
        for command in (MILLRACE, link):
            r = subprocess.run([command, "--version"], cwd=str(p.path), stdout=subprocess.PIPE, check=True)
            assert r.stdout.startswith(b"millrace ") and r.stdout.count(b"\n") == 1
    for words in ([], ["run", "lm"], ["rgu", "tile"], ["rgu", "apply"], ["rgu", "fit"], ["zoo", "eval"], ["devices"],
                  ["nic", "study"]):
        out, err = succeed(*words, "--help")
        assert b"Usage: millrace" in out and not err


@test
def devices_say_what_is_there_and_why_not():
    all_of = devices()
    assert all_of["cpu:"]["available"]
    for d in all_of.values():
        assert d["available"] or d["reason"]
    assert b"cpu:" in succeed("devices")[0]


# ---- rgu ------------------------------------------------------------------------------------------

@test
def tiles_follow_the_definition():
    t = files.Tensors()
    files.seed(t, rng, "a", 256, 256)
    files.seed(t, rng, "b", 300, 260, terms=2, scaled=True)
    tensors, meta = files.read_safetensors(t.bytes())
    with Place() as p:
        f = p.file("s", t.bytes())
        for name in "ab":
            result, (shape, w) = tile(p, f, name)
            rows, cols = shape
            assert result["rows"] == [0, rows] and result["cols"] == [0, cols] and result["format"] == "bf16"
            gains = struct.unpack("<%df" % (len(tensors[name + ".gain"][2]) // 4), tensors[name + ".gain"][2])
            sigma = math.sqrt(sum(g * g for g in gains) / 256)  # of all chunks: not below any chunk's own
            scale = tensors.get(name + ".row_scale")
            rho = struct.unpack("<%df" % rows, scale[2]) if scale else [1.0] * rows
            for j, column in definition_columns(tensors, meta, name, [rng.randrange(cols), cols - 1]).items():
                for i, want in enumerate(column):
                    have_ = w[i * cols + j]
                    assert abs(have_ - want) <= abs(want) / 256 + sigma * abs(rho[i]) / 2048, (name, i, j, have_, want)


@test
def windows_are_cut_from_the_whole_and_all_generators_agree():
    t = files.Tensors()
    files.seed(t, rng, "w", 300, 500, terms=2, scaled=True)
    with Place() as p:
        f = p.file("s", t.bytes())
        for fmt in ("bf16", "fp16", "fp8e4m3", "fp8e5m2"):
            _, (_, whole) = tile(p, f, "w", "golden", "--format", fmt)
            r0, c0 = rng.randrange(299), rng.randrange(499)
            r1, c1 = rng.randrange(r0 + 1, 301), rng.randrange(c0 + 1, 501)
            want = [whole[r * 500 + c] for r in range(r0, r1) for c in range(c0, c1)]
            for device in generators():
                window = ("--format", fmt, "--rows", "%d:%d" % (r0, r1), "--cols", "%d:%d" % (c0, c1))
                result, (shape, w) = tile(p, f, "w", device, *window)
                assert shape == (r1 - r0, c1 - c0)
                assert struct.pack("<%df" % len(w), *w) == struct.pack("<%df" % len(want), *want), (device, fmt)
                for key in ("cycles", "busy", "stall_in", "stall_out", "items_in", "items_out"):
                    assert result[key] >= 0
                if device.startswith("sim:"):
                    assert result["cycles"] > 0 and result["items_out"] == len(w)


@test
def apply_multiplies():
    t = files.Tensors()
    files.seed(t, rng, "w", 300, 260, terms=2, scaled=True)
    x = [rng.gauss(0, 1) for _ in range(3 * 260)]
    with Place() as p:
        f, xin = p.file("s", t.bytes()), p.file("x.npy", files.npy([3, 260], x))
        _, (_, w) = tile(p, f, "w", "golden", "--format", "fp32")
        x = struct.unpack("<780f", files.pack("F32", x))
        first = None
        for device in generators():
            code, _, err = run("rgu", "apply", "--seeds", f, "--name", "w", "--in", xin, "--device", device,
                               "--out", p.name("y.npy"), "--json")
            assert code == 0, (device, err)
            with open(p.name("y.npy"), "rb") as h:
                data = h.read()
            shape, y = files.read_npy(data)
            assert shape == (3, 300)
            first = first or data
            assert data == first, "%s differs from golden" % device
            for b in range(3):
                v = x[b * 260:(b + 1) * 260]
                bound = 2 ** -9 * math.sqrt(sum(e * e for e in w)) * math.sqrt(sum(e * e for e in v))
                error = sum((y[b * 300 + r] - sum(a * c for a, c in zip(w[r * 260:(r + 1) * 260], v))) ** 2
                            for r in range(300))
                assert math.sqrt(error) <= bound, (device, error, bound)


@test
def fit_reports_the_error_of_what_it_wrote():
    with Place() as p:
        t = files.Tensors()
        files.seed(t, rng, "w", 256, 256, gain=1.0)
        t.add("w.odd", "U8", [1, 1, 1], [0])
        s = p.file("s", t.bytes())
        # pairs of a linear map that one term can make exactly
        x = [rng.gauss(0, 1) for _ in range(64 * 256)]
        xin = p.file("x.npy", files.npy([64, 256], x))
        succeed("rgu", "apply", "--seeds", s, "--name", "w", "--in", xin, "--device", "golden", "--out", p.name("y.npy"))
        r = succeed_json("rgu", "fit", "--inputs", xin, "--outputs", p.name("y.npy"), "--steps", "30", "--name", "q",
                         "--out", p.name("q.safetensors"))
        succeed("rgu", "apply", "--seeds", p.name("q.safetensors"), "--name", "q", "--in", xin, "--device", "golden",
                "--out", p.name("z.npy"))
        with open(p.name("y.npy"), "rb") as a, open(p.name("z.npy"), "rb") as b:
            y, z = files.read_npy(a.read())[1], files.read_npy(b.read())[1]
        error = math.sqrt(sum((u - v) ** 2 for u, v in zip(y, z)) / sum(u * u for u in y))
        assert abs(error - r["relative_error"]) < 0.005, (error, r)
        # a matrix
        w = p.file("w.npy", files.npy([40, 30], [rng.gauss(0, 1) for _ in range(1200)]))
        r = succeed_json("rgu", "fit", "--weight", w, "--terms", "3", "--parity", "alternate", "--steps", "40",
                         "--name", "m", "--out", p.name("m.safetensors"))
        _, (_, m) = tile(p, p.name("m.safetensors"), "m", "golden", "--format", "fp32")
        with open(w, "rb") as h:
            target = files.read_npy(h.read())[1]
        error = math.sqrt(sum((u - v) ** 2 for u, v in zip(target, m)) / sum(u * u for u in target))
        assert abs(error - r["relative_error"]) < 0.005 and error < 1, (error, r)
        assert r["span_error"] <= r["relative_error"] + 0.005


@test
def numpy_reads_what_is_written():
    try:
        import numpy
    except ImportError:
        raise Skip("NumPy is not installed")
    t = files.Tensors()
    files.seed(t, rng, "w", 9, 5)
    with Place() as p:
        _, (shape, w) = tile(p, p.file("s", t.bytes()), "w")
        a = numpy.load(p.name("o.npy"), allow_pickle=False)
        assert a.shape == shape == (9, 5) and a.dtype == numpy.float32 and a.ravel().tolist() == list(w)
        for order in "CF":
            for kind in ("<f4", ">f4"):
                x = numpy.asarray(numpy.arange(10).reshape(2, 5) / 8, dtype=kind, order=order)
                numpy.save(p.name("x.npy"), x)
                succeed("rgu", "apply", "--seeds", p.name("s"), "--name", "w", "--in", p.name("x.npy"),
                        "--device", "golden", "--out", p.name("y.npy"))
                y = numpy.load(p.name("y.npy"))
                assert numpy.allclose(y, x.astype("f8") @ a.T.astype("f8"), atol=0.05 * (1 + abs(y).max()))


# ---- run lm ---------------------------------------------------------------------------------------

def small_zoo(p, layers=(1,)):
    base = files.base_model(random.Random(7))
    data = base.bytes()
    p.file("zoo/base.safetensors", data)
    v = files.rotor_variant(random.Random(8), data, layers)
    return base, v, p.file("zoo/variants/v.safetensors", v.bytes())


def lm(variant, *args, rgu="golden", gpu="cpu"):
    return succeed_json("run", "lm", "--model", variant, "--rgu", rgu, "--gpu", gpu, *args)


@test
def the_json_of_a_run():
    with Place() as p:
        _, _, v = small_zoo(p)
        r = lm(v, "--prompt", "caf\u00e9", "--tokens", "20")
        for key in ("text", "text_hex", "tokens", "tokens_per_second", "bits_per_byte", "rgu"):
            assert key in r, key
        for key in ("cycles", "weights", "weights_per_cycle", "weight_bytes_avoided"):
            assert key in r["rgu"], key
        raw = bytes.fromhex(r["text_hex"])
        assert r["tokens"] == len(raw) == 20 and r["tokens_per_second"] > 0 and r["bits_per_byte"] is None
        assert r["text"] == raw.decode("utf-8", "replace")
        assert lm(v, "--prompt", "x" * 60)["tokens"] == 4 and lm(v, "--prompt", "x")["tokens"] == 63
        # the plain form has the same text, and the same bytes come again
        out, _ = succeed("run", "lm", "--model", v, "--rgu", "golden", "--gpu", "cpu", "--prompt", "caf\u00e9", "--tokens", "20")
        assert out.decode() == r["text"] + "\n"
        hot = ("--prompt", "x", "--tokens", "30", "--temperature", "1", "--top-p", "0.9", "--seed")
        assert lm(v, *hot, "5")["text_hex"] == lm(v, *hot, "5")["text_hex"] != lm(v, *hot, "6")["text_hex"]


@test
def every_use_generates_again():
    """Per step and replaced layer, the chosen experts' three matrices and no others; text does not change that."""
    with Place() as p:
        _, _, v = small_zoo(p, (0, 1))
        one = lm(v, "--prompt", "a", "--tokens", "1", "--check")["rgu"]
        expert = 3 * 48 * 32
        assert one["weights"] == 2 * 2 * expert and one["tiles"] == 12, one
        for n in (2, 5, 11):
            r = lm(v, "--prompt", "a", "--tokens", str(n), "--check")["rgu"]
            assert r["weights"] == n * one["weights"], (n, r)
            assert r["tiles_checked"] == r["tiles"] == 12 * n and r["tiles_wrong"] == 0
            assert 0 < r["weight_bytes_avoided"] == max(0, 2 * r["weights"] - r["seed_bytes"])
        assert lm(v, "--prompt", "a", "--tokens", "4", rgu="off")["rgu"]["weights"] == 0


@test
def off_golden_and_apply_tell_the_same_story():
    with Place() as p:
        _, _, v = small_zoo(p, (0, 1))
        text = p.file("t", bytes(rng.randrange(32, 127) for _ in range(200)))
        off = lm(v, "--score", text, rgu="off")["bits_per_byte"]
        golden = lm(v, "--score", text)["bits_per_byte"]
        applied = lm(v, "--score", text, "--rgu-mode", "apply")["bits_per_byte"]
        assert abs(off - golden) < 0.01 and abs(off - applied) < 0.01, (off, golden, applied)
        for uri in generators()[1:]:
            r = succeed_json("run", "lm", "--model", v, "--gpu", "cpu", "--rgu-device", uri, "--prompt", "ab", "--tokens", "3",
                             "--check")
            assert r["rgu"]["tiles_wrong"] == 0 and r["rgu"]["tiles_checked"] > 0
        for gpu in ("cpu", "opencl", "cuda"):
            if devices().get({"cpu": "cpu:"}.get(gpu, gpu + ":0"), {}).get("available"):
                assert abs(lm(v, "--score", text, gpu=gpu)["bits_per_byte"] - golden) < 1e-4, gpu


@test
def scores_are_those_of_the_network():
    """The network of FORMAT.md in plain Python over two windows, against --score."""
    with Place() as p:
        base, variant, v = small_zoo(p)
        text = bytes(random.Random(9).randrange(32, 127) for _ in range(80))
        path = p.file("t", text)
        c = files.CONFIG

        def matrix(source, name):
            _, (rows, cols), data = source.tensors[name]
            h = struct.unpack("<%dH" % (rows * cols), data)
            w = [struct.unpack("<f", struct.pack("<I", x << 16))[0] for x in h]
            return [w[r * cols:(r + 1) * cols] for r in range(rows)]

        def expert(layer, e, name):
            full = "layers.%d.experts.%d.%s" % (layer, e, name)
            if layer == 0:
                return matrix(base, full)
            _, ((rows, cols), w) = tile(p, v, full)
            return [w[r * cols:(r + 1) * cols] for r in range(rows)]

        times = lambda w, x: [sum(a * b for a, b in zip(row, x)) for row in w]
        rms = lambda x: [a / math.sqrt(sum(b * b for b in x) / len(x) + c["norm_eps"]) for a in x]
        half, heads = c["head_dim"] // 2, c["n_heads"] // c["n_kv_heads"]

        def turn(u, pos):
            out = list(u)
            for at in range(0, len(u), 2 * half):
                for j in range(half):
                    f = pos * c["rope_theta"] ** (-2 * j / c["head_dim"])
                    a, b = u[at + j], u[at + j + half]
                    out[at + j], out[at + j + half] = a * math.cos(f) - b * math.sin(f), b * math.cos(f) + a * math.sin(f)
            return out

        layers = [{**{k: matrix(base, "layers.%d.%s" % (i, k)) for k in ("wq", "wk", "wv", "wo")},
                   "router": matrix(variant if i == 1 else base, "layers.%d.router" % i),
                   "experts": [[expert(i, e, n) for n in ("w1", "w3", "w2")] for e in range(c["n_experts"])]}
                  for i in range(c["n_layers"])]
        embed, head = matrix(base, "tok_embed"), matrix(base, "lm_head")
        bits = 0.0
        for at in range(0, len(text) - 1, c["context"]):
            window, cache = text[at:at + c["context"] + 1], [([], []) for _ in layers]
            for pos in range(len(window) - 1):
                x = list(embed[window[pos]])
                for layer, (keys, values) in zip(layers, cache):
                    h = rms(x)
                    q = turn(times(layer["wq"], h), pos)
                    keys.append(turn(times(layer["wk"], h), pos))
                    values.append(times(layer["wv"], h))
                    o = []
                    for a in range(c["n_heads"]):
                        kv = a // heads * c["head_dim"]
                        s = [sum(q[a * c["head_dim"] + j] * k[kv + j] for j in range(c["head_dim"])) / math.sqrt(c["head_dim"])
                             for k in keys]
                        e = [math.exp(u - max(s)) for u in s]
                        o += [sum(w * u[kv + j] for w, u in zip(e, values)) / sum(e) for j in range(c["head_dim"])]
                    x = [a + b for a, b in zip(x, times(layer["wo"], o))]
                    h = rms(x)
                    logit = times(layer["router"], h)
                    chosen = sorted(range(len(logit)), key=lambda e: (-logit[e], e))[:c["top_k"]]
                    weight = [math.exp(logit[e] - logit[chosen[0]]) for e in chosen]
                    for e, g in zip(chosen, weight):
                        w1, w3, w2 = layer["experts"][e]
                        m = [a / (1 + math.exp(-a)) * b for a, b in zip(times(w1, h), times(w3, h))]
                        x = [a + g / sum(weight) * b for a, b in zip(x, times(w2, m))]
                logits = times(head, rms(x))
                top = max(logits)
                bits += (math.log(sum(math.exp(u - top) for u in logits)) + top - logits[window[pos + 1]]) / math.log(2)
        want = bits / (len(text) - 1)
        got = lm(v, "--score", path)["bits_per_byte"]
        assert abs(want - got) < 2e-4, (want, got)


@test
def zoo_eval_agrees_with_run_lm():
    with Place() as p:
        _, variant, v = small_zoo(p)
        text = p.file("zoo/heldout.txt", bytes(rng.randrange(32, 127) for _ in range(300)))
        r = succeed_json("zoo", "eval", "--zoo", p.name("zoo"), "--gpu", "cpu")
        rows = {m["model"]: m for m in r["models"]}
        assert set(rows) == {"base.safetensors", "variants/v.safetensors"} and r["text_bytes"] == 300
        row = rows["variants/v.safetensors"]
        assert row["stored_bytes"] == len(variant.data()) and row["replaced_layers"] == [1] and row["kind"] == "rotor"
        assert abs(row["bits_per_byte"] - lm(v, "--score", text, rgu="off")["bits_per_byte"]) < 1e-9
        out, _ = succeed("zoo", "eval", "--zoo", p.name("zoo"), "--gpu", "cpu", "--only", "v.safe", "--bytes", "100")
        assert out.count(b"\n") == 2 and b"rotor" in out


@test
def the_simulated_unit_makes_the_weights():
    have("sim:rgu")
    with Place() as p:
        _, _, v = small_zoo(p)
        runs = [lm(v, "--prompt", "a", "--tokens", str(n), "--check", rgu="sim") for n in (1, 2, 4)]
        cycles = [r["rgu"]["cycles"] for r in runs]
        assert 0 < cycles[0] < cycles[1] < cycles[2], cycles
        assert all(r["rgu"]["tiles_wrong"] == 0 and r["rgu"]["weights_per_cycle"] > 0 for r in runs)
        assert runs[2]["text_hex"] == lm(v, "--prompt", "a", "--tokens", "4")["text_hex"]
        stalled = succeed_json("run", "lm", "--model", v, "--gpu", "cpu", "--rgu-device", "sim:rgu?stall=30&seed=3",
                               "--prompt", "a", "--tokens", "2", "--check")
        assert stalled["rgu"]["tiles_wrong"] == 0 and stalled["rgu"]["cycles"] > cycles[1]


if __name__ == "__main__":
    main(TESTS)
