#!/usr/bin/env python3
"""millrace run flow as its callers see it: lists, scores, samples, and what it refuses."""
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from harness import ROOT, Place, Skip, devices, have, main, refuse, run, succeed, succeed_json  # noqa: E402

os.environ.setdefault("MILLRACE_ZOO", str(ROOT / "models" / "zoo"))

TESTS = []
FLOWS = ROOT / "models" / "zoo" / "flows"


def test(f):
    TESTS.append(f)
    return f


def score(model, *more):
    return succeed_json("run", "flow", "--model", model, "--score", "test", *more)


def picture(path):
    """(width, height, rows) of a grey PNG whose rows are not filtered or filtered by type 0 to 4."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind] = parts.get(kind, b"") + body
        at += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, colour) == (8, 0) and b"IEND" in parts
    return width, height, zlib.decompress(parts[b"IDAT"])


@test
def lists_the_committed_models():
    out, _ = succeed("run", "flow", "--list")
    names = out.decode().split("\n")[:-1]
    assert sorted(names) == sorted(p.stem for p in FLOWS.glob("*.safetensors")), names
    assert "digits-coupling" in names and "fashion-tar" in names


@test
def scores_like_the_training():
    import json
    published = json.loads((FLOWS / "results.json").read_text())
    for model in ("digits-coupling", "digits-full"):
        want = published[model]["bpd_test"]
        j = score(model, "--mult", "fp32", "--round-trip", "4")
        assert j["images"] == 359 and abs(j["bpd"] - want) < 1e-5, (model, j["bpd"], want)
        assert 0 <= j["round_trip"]["rms"] <= j["round_trip"]["max"] < 1e-4, j["round_trip"]


@test
def hybrid_nears_bf16():
    """The limits of the project: 1 % at L = 4, 0.5 % at 8, 0.3 % at 16."""
    base = score("digits-coupling")["bpd"]
    for length, most in ((4, 0.01), (8, 0.005), (16, 0.003)):
        j = score("digits-coupling", "--mult", "hybrid", "--stream", str(length))
        loss = j["bpd"] / base - 1
        print("L = %d: %.5f bpd, %+.3f %%" % (length, j["bpd"], 100 * loss))
        assert j["stream"] == length and j["gen"] == "centred"
        assert abs(loss) < most and j["bpd"] != base


@test
def mapping_changes_no_bit():
    """Stages, groups, placement and schedule are where and when, not what."""
    seen = set()
    for more in ((), ("--schedule", "pipelined"), ("--schedule", "sequential"), ("--schedule", "replicated"),
                 ("--placement", "tier-blind"), ("--groups", "3"), ("--groups", "1")):
        j = score("digits-coupling", "--mult", "hybrid", "--stream", "4", "--limit", "70", *more)
        seen.add((j["bpd"], j["round_trip"]["max"]))
    assert len(seen) == 1, seen


@test
def samples_repeat_by_seed():
    with Place() as p:
        made = {}
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            path = p.name(name + ".png")
            j = succeed_json("run", "flow", "--model", "digits-tar", "--sample", "5", "--out", path,
                             "--seed", str(seed))
            assert j["images"] == 5 and j["seed"] == seed and j["products"] > 0
            made[name] = open(path, "rb").read()
        assert made["a"] == made["b"] != made["c"]
        width, height, rows = picture(p.name("a.png"))
        assert (width, height) == (3 * 49 - 1, 2 * 49 - 1)
        assert len(set(rows)) > 6
        assert p.listing() == ["a.png", "b.png", "c.png"]


@test
def no_weight_exceeds_its_matrix():
    """Keys that the block before left in the banks must not count as weights: one group has all blocks, one after the other."""
    with Place() as p:
        j = succeed_json("run", "flow", "--model", "digits-full", "--sample", "3", "--schedule", "replicated", "--out",
                         p.name("g.png"))
        assert j["range"] is False and j["nonfinite"] is False, j
    assert score("digits-full", "--limit", "6", "--schedule", "replicated", "--round-trip", "0")["range"] is False


@test
def jacobi_samples_what_the_serial_order_does():
    with Place() as p:
        make = ("run", "flow", "--model", "digits-tar", "--mult", "hybrid", "--stream", "16", "--sample", "2", "--out")
        one = succeed_json(*make, p.name("a.png"))
        two = succeed_json(*make, p.name("b.png"), "--decode", "jacobi", "--tolerance", "0")
        each = two["jacobi"]["iterations"]
        assert len(each) == 4 and all(1 < n <= 16 for n in each) and two["products"] > one["products"], two
        a, b = (picture(p.name(n))[2] for n in ("a.png", "b.png"))
        assert sum(abs(x - y) > 16 for x, y in zip(a, b)) < len(a) // 50  # a pixel may fall on the other side of a level
        refuse("serial order", "run", "flow", "--model", "digits-coupling", "--sample", "2", "--out", p.name("c.png"),
               "--decode", "jacobi", place=p)
        refuse("--tolerance", *make, p.name("c.png"), "--tolerance", "0.1", place=p)
        refuse("--decode", "run", "flow", "--model", "digits-tar", "--score", "test", "--decode", "jacobi", place=p)


@test
def fashion_scores():
    if not os.path.exists("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"):
        raise Skip("dataset-fashion-mnist is not installed")
    j = score("fashion-coupling", "--limit", "4", "--round-trip", "2")
    assert j["images"] == 4 and 3 < j["bpd"] < 6, j
    k = score("fashion-tar", "--limit", "2", "--round-trip", "1")
    assert k["images"] == 2 and 3 < k["bpd"] < 6, k


@test
def simulated_unit_scores_the_same():
    have("sim:pnm")
    a = score("digits-coupling", "--mult", "hybrid", "--stream", "16", "--limit", "8")
    b = score("digits-coupling", "--mult", "hybrid", "--stream", "16", "--limit", "8", "--device", "sim:pnm",
              "--round-trip", "0")
    assert a["bpd"] == b["bpd"] and b["cycles"] > 0 and 0 < b["utilisation"] <= 1, (a, b)


@test
def compute_kernels_give_the_same_bits():
    """cpu: always, a GPU or another OpenCL device where there is one: scores, pictures, float32."""
    units = ["cpu:"] + [u for u, d in devices().items()
                        if d["available"] and u != "cpu:" and {"pnm", "kernels"} <= set(d["capabilities"])]
    runs = [("digits-coupling", "--score", "test", "--limit", "20", "--mult", "hybrid", "--stream", "16"),
            ("digits-tar", "--score", "test", "--limit", "4", "--mult", "fp32", "--round-trip", "2"),
            ("digits-tar", "--sample", "2", "--seed", "5", "--mult", "hybrid", "--stream", "8", "--cut", "2")]
    same = ("images", "bpd", "digest", "products", "stream", "cut")
    with Place() as p:
        for model, *what in runs:
            want = None
            for device in ["golden"] + units:
                more = ["--out", p.name("g.png")] if "--sample" in what else []
                j = succeed_json("run", "flow", "--model", model, *what, *more, "--schedule", "replicated",
                                 "--device", device)
                got = [j.get(k) for k in same], j.get("round_trip"), open(more[1], "rb").read() if more else b""
                want = want or got
                assert got == want, (model, device, got[:2], want[:2])
                assert j["device"] == device and got[0][2], j


FULL = ("run", "flow", "--model", "digits-full", "--sample", "6", "--temperature", "0.8", "--seed", "3")


@test
def all_three_units_take_part():
    """Seeds by the RGU, attention by NICs, the rest by the near-memory unit: the models first."""
    with Place() as p:
        alone, shared, lossy = (p.name(n + ".png") for n in ("alone", "shared", "lossy"))
        succeed_json(*FULL, "--out", alone, "--mult", "fp32")
        more = ("--rgu", "golden", "--nic", "golden", "--mult", "fp32")
        j = succeed_json(*FULL, "--out", shared, *more, "--nodes", "3")
        assert j["rgu"]["tiles"] == 8 and j["rgu"]["tiles_wrong"] == 0 and j["rgu"]["weights"] == 65536, j
        assert j["nic"]["merges"] == 128 and j["nic"]["cycles"] > 0 and j["nic"]["nodes"] == 3, j
        assert j["mapping"]["schedule"] == "replicated" and j["products"] > 0
        # in float32 the shards' order moves no pixel by a level
        assert picture(alone) == picture(shared)
        k = succeed_json(*FULL, "--out", lossy, *more, "--nodes", "3", "--loss", "0.02")
        assert k["nic"]["retransmissions"] > 0 and k["digest"] == j["digest"], k


@test
def all_three_units_in_rtl():
    for uri in ("sim:pnm", "sim:nic", "sim:rgu"):
        have(uri)
    with Place() as p:
        one, two = p.name("model.png"), p.name("rtl.png")
        hybrid = ("--mult", "hybrid", "--stream", "8", "--nodes", "2")
        a = succeed_json(*FULL, "--out", one, *hybrid, "--rgu", "golden", "--nic", "golden")
        b = succeed_json(*FULL, "--out", two, *hybrid, "--rgu", "sim:rgu", "--nic", "sim", "--device", "sim:pnm")
        assert a["digest"] == b["digest"] and open(one, "rb").read() == open(two, "rb").read()
        assert b["cycles"] > 0 and b["rgu"]["cycles"] > 0 and b["nic"]["cycles"] > 0, b
        assert a["products"] == b["products"] and a["nic"]["bytes"] == b["nic"]["bytes"]


@test
def bad_input():
    with Place() as p:
        grid = p.name("g.png")
        make = ("run", "flow", "--model", "digits-coupling", "--sample", "2", "--out")
        refuse("no-such", "run", "flow", "--model", "no-such", "--score", "test", place=p)
        refuse("cannot write", *make, p.name("none/g.png"), place=p)
        refuse("5 groups", *make, grid, "--groups", "5", place=p)
        refuse("--stream", *make, grid, "--mult", "hybrid", place=p)
        refuse("power of two", *make, grid, "--mult", "hybrid", "--stream", "12", place=p)
        refuse("--stream", *make, grid, "--mult", "hybrid", "--stream", "512", place=p)
        refuse("--sample or --score", "run", "flow", "--model", "digits-coupling", place=p)
        refuse("--out", "run", "flow", "--model", "digits-coupling", "--sample", "2", place=p)
        refuse("--model", "run", "flow", "--score", "test", place=p)
        refuse("--sample", "run", "flow", "--model", "digits-tar", "--score", "test", "--nodes", "2", place=p)
        refuse("transformer", *make, grid, "--nodes", "2", place=p)
        refuse("replicated", *make, grid, "--nodes", "2", "--schedule", "sequential", place=p)
        refuse("--nodes", *make, grid, "--loss", "0.1", place=p)
        refuse("digits-coupling.safetensors: no matrix of this flow is a seed", *make, grid, "--rgu", "golden",
               place=p)
        refuse("no-such", *FULL, "--out", grid, "--rgu", "sim:no-such", place=p)
        broken = p.file("broken.safetensors", (FLOWS / "digits-coupling.safetensors").read_bytes()[:-4])
        refuse("broken.safetensors", "run", "flow", "--model", broken, "--score", "test", place=p)
        refuse(["dataset-fashion-mnist", "MILLRACE_FASHION"], "run", "flow", "--model", "fashion-coupling",
               "--score", "test", env={"MILLRACE_FASHION": str(p.path)}, place=p)


@test
def overflow_names_image_and_block():
    """With an alpha of 1e6 in one coupling exp overflows float32 wherever that coupling shrinks."""
    import json
    data = bytearray((FLOWS / "digits-coupling.safetensors").read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    at = 8 + size + header["c2.alpha"]["data_offsets"][0]
    data[at:at + 4] = struct.pack("<f", 1e6)
    with Place() as p:
        bad = p.file("far.safetensors", bytes(data))
        refuse(["far.safetensors", "image ", "block 2"], "run", "flow", "--model", bad, "--sample", "2", "--out",
               p.name("g.png"), place=p)
        code, _, err = run("run", "flow", "--model", bad, "--score", "test", "--limit", "2")
        assert code == 1 and b"block 2" in err, err


main(TESTS)
