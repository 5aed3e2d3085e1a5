#!/usr/bin/env python3
"""Every input that must be refused: one clear line, a non-zero exit, nothing left behind."""
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import files  # noqa: E402
from harness import MILLRACE, Place, have, main, refuse, succeed  # noqa: E402

rng = files.seeded()
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def seeds(**more):
    t = files.Tensors()
    files.seed(t, random.Random(1), "w", 300, 500, terms=2, **more)
    return t


def tile_refused(words, data, *extra, code=3, name="w"):
    with Place() as p:
        f = p.file("seeds.safetensors", data)
        refuse(words, "rgu", "tile", "--seeds", f, "--name", name, "--device", "golden",
               "--out", p.name("o.npy"), *extra, code=code, place=p)


def spoilt(change, words):
    t = seeds()
    header = t.header()
    change(header)
    tile_refused(words, t.bytes(header))


# ---- safetensors --------------------------------------------------------------------------------

@test
def good_seeds_are_taken():
    with Place() as p:
        f = p.file("s", seeds().bytes())
        succeed("rgu", "tile", "--seeds", f, "--name", "w", "--device", "golden", "--out", p.name("o.npy"))
        assert p.listing() == ["o.npy", "s"]


@test
def truncated_safetensors():
    whole = seeds().bytes()
    for n in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        tile_refused("seeds.safetensors", whole[:n])


@test
def oversized_safetensors():
    tile_refused(["seeds.safetensors", "oversized"], seeds().bytes() + b"\0")


@test
def header_length_beyond_everything():
    for n in (2**63, 2**64 - 1, 10**9, 100_000_001):
        tile_refused("header", struct.pack("<Q", n) + seeds().bytes()[8:])


@test
def overlapping_tensors():
    def change(h):
        size = h["w.angles"]["data_offsets"][1]
        h["w.gain"]["data_offsets"] = [size - 32, size]
    spoilt(change, ["w.gain", "overlaps"])


@test
def gap_between_tensors():
    t = seeds()
    header = t.header()
    for k in ("w.gain", "w.odd"):
        header[k]["data_offsets"] = [v + 4 for v in header[k]["data_offsets"]]
    tile_refused("belong to no tensor", t.bytes(header) + b"\0" * 4)


@test
def duplicate_keys():
    t = seeds()
    text = json.dumps(t.header())
    again = ',"w.odd":' + json.dumps(t.header()["w.odd"]) + "}"
    tile_refused("duplicate", t.bytes((text[:-1] + again).encode()))


@test
def wrong_dtype():
    spoilt(lambda h: h["w.odd"].update(dtype="I8"), ["w.odd", "dtype is I8, must be U8"])
    spoilt(lambda h: h["w.gain"].update(dtype="I32"), ["w.gain", "dtype"])
    spoilt(lambda h: h["w.gain"].update(dtype="F31"), ["w.gain", "unknown dtype"])


@test
def wrong_rank():
    spoilt(lambda h: h["w.gain"].update(shape=[2, 4]), ["w.gain", "shape is [2, 4]"])
    spoilt(lambda h: h["w.angles"].update(shape=[2, 2, 2, 56]), ["w.angles", "shape"])
    spoilt(lambda h: h["w.gain"].update(shape=[1] * 9), ["w.gain", "rank 9"])


@test
def overflowing_shapes():
    for shape in ([2**42 + 1, 2**22], [2**62, 4], [2**63 - 1, 2, 0], [2**61 + 1]):
        spoilt(lambda h: h["w.gain"].update(shape=shape), ["w.gain", "overflows"])
    spoilt(lambda h: h["w.gain"].update(shape=[2**64]), "too big")
    spoilt(lambda h: h["w.gain"].update(shape=[-1]), ["w.gain", "shape"])


@test
def not_a_file():
    with Place() as p:
        for path, word in ((p.name("absent"), "cannot open"), (str(p.path), "not a regular"), ("/dev/null", "not a regular")):
            refuse([path, word], "rgu", "tile", "--seeds", path, "--name", "w", "--device", "golden",
                   "--out", p.name("o.npy"), place=p)


# ---- seeds --------------------------------------------------------------------------------------

@test
def angles_do_not_match_n():
    t = seeds()
    t.metadata["w.n"] = "10"
    tile_refused(["w.angles", "45"], t.bytes())
    t.metadata["w.n"] = "9"
    tile_refused(["w.n is 9", "supported"], t.bytes())


@test
def chunks_do_not_match_the_shape():
    t = seeds()
    t.metadata["w.shape"] = "300,513"
    tile_refused(["w.angles", "shape"], t.bytes())


@test
def unknown_tensor():
    tile_refused(["no projection v", "v.angles"], seeds().bytes(), name="v")
    t = seeds()
    t.add("w.phase", "U8", [1], [0])
    tile_refused("w.phase", t.bytes())


@test
def values_out_of_range():
    for v in (float("inf"), float("nan")):
        t = seeds()
        t.add("w.gain", "F32", [2, 2, 2], [1.0] * 7 + [v])
        tile_refused(["w.gain", "not finite"], t.bytes())
    t = seeds()
    t.add("w.odd", "U8", [2, 2, 2], [0] * 7 + [2])
    tile_refused(["w.odd", "not 0 or 1"], t.bytes())
    t = files.Tensors()
    files.seed(t, rng, "w", 8, 8, terms=33)
    tile_refused(["w.angles", "33 terms"], t.bytes())


# ---- windows and formats ------------------------------------------------------------------------

@test
def windows_outside_the_matrix():
    whole = seeds().bytes()
    for option, window in (("--rows", "0:301"), ("--rows", "300:301"), ("--cols", "499:501"),
                           ("--cols", "0:18446744073709551615")):
        tile_refused([window, "has only"], whole, option, window, code=2)


@test
def windows_without_size():
    for window in ("0:0", "3:3", "5:4"):
        tile_refused([window, "empty"], seeds().bytes(), "--rows", window, code=2)


@test
def windows_that_are_none():
    for window in ("", "3", ":", "1:", ":4", "a:b", "-1:3", "0x1:5", "1:2:3", "1.5:3", "0:99999999999999999999"):
        tile_refused("--rows", seeds().bytes(), "--rows", window, code=2)


@test
def unknown_format_and_device():
    tile_refused(["--format", "bf17"], seeds().bytes(), "--format", "bf17", code=2)
    with Place() as p:
        f = p.file("s", seeds().bytes())
        for device in ("sim:nope", "cpux:", "sim:rgu?latncy=4", "sim:rgu?latency=-1", "cpu:?threads=0", ""):
            refuse("millrace: ", "rgu", "tile", "--seeds", f, "--name", "w", "--device", device,
                   "--out", p.name("o.npy"), place=p)


# ---- .npy ---------------------------------------------------------------------------------------

def apply_refused(words, data, code=3):
    with Place() as p:
        f, x = p.file("s", seeds().bytes()), p.file("x.npy", data)
        refuse(["x.npy", *([words] if isinstance(words, str) else words)], "rgu", "apply", "--seeds", f, "--name", "w",
               "--in", x, "--device", "golden", "--out", p.name("y.npy"), code=code, place=p)


@test
def bad_npy():
    v = [0.5] * 1000
    good = files.npy([2, 500], v)
    apply_refused("truncated", good[:-1])
    for n in (0, 5, 9, 40):
        apply_refused("", good[:n])
    apply_refused("oversized", good + b"\0")
    apply_refused("f8", files.npy([1, 500], v, descr="<f8"))
    apply_refused("rank is 1", files.npy([1000], v))
    apply_refused("vectors of 250", files.npy([4, 250], v))
    apply_refused("0 vectors", files.npy([0, 500], []))
    apply_refused("overflows", files.npy([0], [], shape_text="(4611686018427387904, 500)"))
    apply_refused("overflows", files.npy([0], [], shape_text="(2305843009213693953, 8)"))
    apply_refused("one extent, no comma", files.npy([0], v, shape_text="(184)"))
    apply_refused("dtype", files.npy([2, 500], v, descr="|O8"))
    apply_refused("version 9", good[:6] + b"\x09" + good[7:])


# ---- models and prompts -------------------------------------------------------------------------

def model_files(p, change=None, variant=None):
    base = files.base_model(random.Random(2))
    if change:
        change(base)
    data = base.bytes()
    p.file("zoo/base.safetensors", data)
    v = files.rotor_variant(random.Random(3), data)
    if variant:
        variant(v)
    return p.file("zoo/variants/v.safetensors", v.bytes())


def lm(*args):
    return ["run", "lm", "--rgu", "golden", "--gpu", "cpu", *args]


@test
def good_models_are_taken():
    with Place() as p:
        v = model_files(p)
        succeed(*lm("--model", v, "--prompt", "a", "--tokens", "3"))
        succeed(*lm("--model", p.name("zoo/base.safetensors"), "--prompt", "a", "--tokens", "3"))


@test
def prompts():
    with Place() as p:
        v = model_files(p)
        refuse(["--prompt", "empty"], *lm("--model", v, "--prompt", ""), code=2)
        refuse(["--prompt", "missing"], *lm("--model", v), code=2)
        for bad in (b"a\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82"):
            refuse(["--prompt", "UTF-8"], *lm("--model", v, "--prompt", os.fsdecode(bad)), code=2)
        refuse(["--prompt", "65 bytes", "64"], *lm("--model", v, "--prompt", "x" * 65, "--tokens", "1"), code=2)
        refuse(["--tokens 5", "room for 4"], *lm("--model", v, "--prompt", "x" * 60, "--tokens", "5"), code=2)
        succeed(*lm("--model", v, "--prompt", "x" * 60, "--tokens", "4"))


@test
def options():
    with Place() as p:
        v = model_files(p)
        for words, args in ((["--tokens"], ["--tokens", "0"]), (["--tokens"], ["--tokens", "-3"]),
                            (["--tokens"], ["--tokens", "1e3"]), (["--rgu", "maybe"], ["--rgu-mode", "maybe"]),
                            (["unknown option --promt"], ["--promt", "x"]), (["twice"], ["--model", v]),
                            (["unexpected argument x"], ["x"]), (["--temperature"], ["--temperature", "nan"]),
                            (["--json takes no value"], ["--json=1"]), (["needs a value"], ["--tokens"])):
            refuse(words, *lm("--model", v, "--prompt", "a", *args), code=2)
        refuse("no command", code=2)
        refuse("unknown command", "rnu", code=2)
        refuse("unknown command rgu tiles", "rgu", "tiles", code=2)


@test
def missing_models():
    with Place() as p:
        v = model_files(p)
        refuse(["absent", "cannot open"], *lm("--model", p.name("absent"), "--prompt", "a"), code=3)
        os.remove(p.name("zoo/base.safetensors"))
        refuse(["base.safetensors", "cannot open"], *lm("--model", v, "--prompt", "a"), code=3)
        refuse("no such folder", "run", "lm", "--prompt", "a", env={"MILLRACE_ZOO": p.name("nowhere")}, code=3)


@test
def newer_models():
    def newer(t):
        t.metadata["millrace.version"] = "2"
    with Place() as p:
        v = model_files(p, variant=newer)
        refuse(["v.safetensors", "version 2"], *lm("--model", v, "--prompt", "a"), code=3)
    with Place() as p:
        v = model_files(p, change=newer)
        refuse(["base.safetensors", "version 2"], *lm("--model", v, "--prompt", "a"), code=3)


@test
def models_that_contradict_themselves():
    def base(words, change):
        with Place() as p:
            model_files(p, change)
            refuse(["base.safetensors", *words], *lm("--model", p.name("zoo/base.safetensors"), "--prompt", "a"), code=3)

    def config(**more):
        return lambda t: t.metadata.update({"millrace.config": json.dumps({**files.CONFIG, **more})})

    base(["millrace.format"], lambda t: t.metadata.pop("millrace.format"))
    base(["millrace.config"], lambda t: t.metadata.pop("millrace.config"))
    base(["not a JSON object"], lambda t: t.metadata.update({"millrace.config": "[1]"}))
    base(["unknown key extra"], config(extra=1))
    base(["d_model"], config(d_model=0))
    base(["d_model"], config(d_model="32"))
    base(["vocab"], config(vocab=257))
    base(["top_k"], config(top_k=5))
    base(["head_dim"], config(head_dim=15))
    base(["n_kv_heads"], config(n_heads=3, n_kv_heads=2))
    base(["larger than"], config(context=1 << 20, n_heads=1 << 10))
    base(["norm_eps"], config(norm_eps=-1))
    base(["tok_embed", "shape"], config(d_model=16))
    base(["layers.1.wq", "missing"], lambda t: t.tensors.pop("layers.1.wq"))
    base(["extra", "does not belong"], lambda t: t.add("extra", "F32", [1], [0.0]))


@test
def variants_that_contradict_their_base():
    def variant(words, change):
        with Place() as p:
            v = model_files(p, variant=change)
            refuse(["v.safetensors", *words], *lm("--model", v, "--prompt", "a"), code=3)

    def meta(**more):
        return lambda t: t.metadata.update({"millrace." + k: v for k, v in more.items()})

    variant(["SHA-256"], meta(base_sha256="0" * 64))
    variant(["millrace.base"], meta(base="../base.safetensors"))
    variant(["unknown kind"], meta(kind="magic"))
    variant(["layer 2 of 2"], meta(replaced="2"))
    for replaced in ("", "1,1", "1,0", "x", "1,", "-1"):
        variant(["millrace.replaced"], meta(replaced=replaced))
    variant(["layers.1.experts.3.w2.gain", "missing"], lambda t: t.tensors.pop("layers.1.experts.3.w2.gain"))
    variant(["layers.1.experts.3.w2.angles"], lambda t: [t.tensors.pop("layers.1.experts.3.w2." + k)
                                                         for k in ("angles", "gain", "odd")])
    variant(["layers.1.router", "shape is [4, 31]"],
            lambda t: t.add("layers.1.router", "BF16", [4, 31], [0.0] * 124))
    variant(["layers.0.router", "does not belong"],
            lambda t: t.add("layers.0.router", "BF16", [4, 32], [0.0] * 128))
    variant(["layers.1.experts.0.w1", "must be 48,32"],
            lambda t: t.metadata.update({"layers.1.experts.0.w1.shape": "48,33"}))


@test
def score_files():
    with Place() as p:
        v = model_files(p)
        refuse("cannot open", *lm("--model", v, "--score", p.name("absent")), code=3)
        refuse("cannot be scored", *lm("--model", v, "--score", p.file("one", b"x")), code=3)


# ---- outputs, devices, interruptions -------------------------------------------------------------

@test
def unwritable_outputs():
    with Place() as p:
        f = p.file("s", seeds().bytes())
        tile = ["rgu", "tile", "--seeds", f, "--name", "w", "--device", "golden", "--out"]
        refuse(["nowhere/o.npy", "cannot write"], *tile, p.name("nowhere/o.npy"), code=3, place=p)
        refuse(["cannot write", "folder"], *tile, str(p.path), code=3, place=p)
        x = p.file("x.npy", files.npy([1, 500], [0.0] * 500))
        refuse("cannot write", "rgu", "apply", "--seeds", f, "--name", "w", "--in", x, "--device", "golden",
               "--out", p.name("nowhere/y.npy"), code=3, place=p)
        w = p.file("w.npy", files.npy([8, 8], [0.5] * 64))
        refuse("cannot write", "rgu", "fit", "--weight", w, "--out", p.name("nowhere/f"), code=3, place=p)
        if os.path.exists("/dev/full"):
            refuse("/dev/full: cannot write", *tile, "/dev/full", code=3, place=p)


@test
def full_standard_output():
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([MILLRACE, "devices", "--json"], stdout=full, stderr=subprocess.PIPE)
        assert p.returncode == 1 and b"standard output" in p.stderr, p.stderr


@test
def simulator_library_absent():
    with Place() as p:
        f = p.file("s", seeds().bytes())
        empty = p.name("empty")
        os.mkdir(empty)
        env = {"MILLRACE_DRIVERS": empty}
        refuse("sim", "rgu", "tile", "--seeds", f, "--name", "w", "--out", p.name("o.npy"), env=env, code=4, place=p)
        v = model_files(p)
        refuse("sim", "run", "lm", "--gpu", "cpu", "--model", v, "--prompt", "a", "--tokens", "3", env=env, code=4, place=p)
        refuse("cuda", "run", "lm", "--rgu", "golden", "--gpu", "cuda", "--model", v, "--prompt", "a", "--tokens", "3",
               env=env, code=4, place=p)


def interrupted(p, args, number=signal.SIGINT, after=0.5):
    """Starts the command, interrupts it, and says how it ended."""
    before = p.listing()
    c = subprocess.Popen([MILLRACE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(after)
    assert c.poll() is None, "it ended before it could be interrupted: %r" % (c.communicate(),)
    start = time.time()
    c.send_signal(number)
    _, err = c.communicate(timeout=60)
    assert c.returncode == 130, "exit %d: %r" % (c.returncode, err)
    assert err.startswith(b"millrace: ") and b"interrupted" in err and err.count(b"\n") == 1, err
    assert time.time() - start < 30
    assert p.listing() == before, p.listing()


@test
def interrupted_runs():
    with Place() as p:
        w = p.file("w.npy", files.npy([256, 256], [rng.gauss(0, 1) for _ in range(65536)]))
        fit = ["rgu", "fit", "--weight", w, "--terms", "8", "--steps", "1000000", "--out", p.name("f.safetensors")]
        interrupted(p, fit)
        interrupted(p, fit, signal.SIGTERM)
        big = {"context": 65536}
        base = files.base_model(random.Random(5), big)
        path = p.file("zoo/base.safetensors", base.bytes())
        v = p.file("zoo/variants/v.safetensors", files.rotor_variant(random.Random(6), base.bytes(), config=big).bytes())
        text = p.file("text", b"all work and no play " * 200000)
        interrupted(p, lm("--model", v, "--score", text, "--json"), after=1.0)
        interrupted(p, lm("--model", path, "--prompt", "a", "--tokens", "65000", "--json"), after=1.0)


def parent_of(pid):
    try:
        with open("/proc/%s/stat" % pid) as h:
            return int(h.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def with_simulator(p, number, *more, after=1.5):
    """Starts a long job, sends its simulator the signal, and returns (exit code, stderr)."""
    t = files.Tensors()
    files.seed(t, random.Random(1), "w", 4096, 4096, n=10, terms=32)  # seconds of work on any machine
    f = p.file("s", t.bytes())
    before = p.listing()
    c = subprocess.Popen([MILLRACE, "rgu", "tile", "--seeds", f, "--name", "w", "--out", p.name("o.npy"), *more],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(after)
    children = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == c.pid]
    assert children and c.poll() is None, "no simulator runs"
    for child in children:
        os.kill(int(child), number)
    if number == signal.SIGCONT:
        c.send_signal(signal.SIGINT)
    _, err = c.communicate(timeout=60)
    assert err.startswith(b"millrace: ") and err.count(b"\n") == 1, err
    assert p.listing() == before, p.listing()
    for child in children:
        assert not os.path.exists("/proc/%d" % int(child)), "the simulator outlives the command"
    return c.returncode, err


@test
def hung_dead_and_interrupted_simulators():
    have("sim:rgu")
    with Place() as p:
        code, err = with_simulator(p, signal.SIGSTOP, "--timeout", "3")
        assert code == 5, (code, err)
        code, err = with_simulator(p, signal.SIGKILL)
        assert code == 1 and b"MR_DEVICE_LOST" in err, (code, err)
        code, err = with_simulator(p, signal.SIGCONT)  # nothing but the interrupt of the command
        assert code == 130 and b"interrupted" in err, (code, err)


@test
def names_that_are_not_utf8():
    """A file may be called anything; the JSON about it stays JSON."""
    with Place() as p:
        f = p.file("s", seeds().bytes())
        out = os.fsdecode(os.fsencode(p.name("o")) + b"\xff.npy")
        text, _ = succeed("rgu", "tile", "--seeds", f, "--name", "w", "--device", "golden", "--rows", "0:2", "--out", out,
                          "--json")
        assert json.loads(text)["out"].endswith("o\ufffd.npy") and os.path.exists(out)


@test
def kept_file_on_failure():
    """A refused job leaves an output of an earlier one as it was."""
    with Place() as p:
        f, o = p.file("s", seeds().bytes()), p.file("o.npy", b"earlier")
        refuse("empty", "rgu", "tile", "--seeds", f, "--name", "w", "--device", "golden", "--rows", "1:1", "--out", o,
               place=p)
        with open(o, "rb") as h:
            assert h.read() == b"earlier"


@test
def fit_arguments():
    with Place() as p:
        w = p.file("w.npy", files.npy([8, 8], [0.5] * 64))
        x = p.file("x.npy", files.npy([3, 8], [0.5] * 24))
        y = p.file("y.npy", files.npy([2, 8], [0.5] * 16))
        nan = p.file("nan.npy", files.npy([1, 2], [1.0, float("nan")]))
        out = ["--out", p.name("f")]
        refuse("either --weight", "rgu", "fit", *out, code=2, place=p)
        refuse("either --weight", "rgu", "fit", "--weight", w, "--inputs", x, "--outputs", y, *out, code=2, place=p)
        refuse("either --weight", "rgu", "fit", "--inputs", x, *out, code=2, place=p)
        refuse("3 vectors", "rgu", "fit", "--inputs", x, "--outputs", y, *out, code=3, place=p)
        refuse("not finite", "rgu", "fit", "--weight", nan, *out, code=3, place=p)
        refuse("--terms", "rgu", "fit", "--weight", w, "--terms", "33", *out, code=2, place=p)
        refuse("--n", "rgu", "fit", "--weight", w, "--n", "9", *out, code=2, place=p)
        s = p.file("m.safetensors", files.base_model(random.Random(2)).bytes())
        refuse("--tensor", "rgu", "fit", "--weight", s, *out, code=2, place=p)
        refuse("nothing is missing", "rgu", "fit", "--weight", s, "--tensor", "nothing", *out, code=3, place=p)
        refuse("matrix", "rgu", "fit", "--weight", s, "--tensor", "norm", *out, code=3, place=p)


if __name__ == "__main__":
    main(TESTS)
