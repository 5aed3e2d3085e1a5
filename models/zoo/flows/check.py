"""Checks of the flows without torch: python3 check.py [--images 40] [NAME...]

A float64 forward and inverse pass in numpy, written from FORMAT.md alone, over the committed files, and the traps: the
constants of the convention, dequantisation, the determinant against numeric Jacobians, the sign of the logarithms.
The millrace command makes the matrices of digits-full (see seeds.py).
"""
import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile

import numpy as np

import data

KINDS = {"F32": np.float32, "F64": np.float64, "I16": np.int16, "U8": np.uint8, "I32": np.int32}


def load(path):
    raw = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8:8 + size])
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, t in head.items():
        begin, end = (8 + size + o for o in t["data_offsets"])
        tensors[name] = np.frombuffer(raw[begin:end], KINDS[t["dtype"]]).reshape(t["shape"])
    return tensors, meta


class Flow:
    """One file, in float64."""

    def __init__(self, tensors, meta):
        self.p = {k: v.astype(np.float64) for k, v in tensors.items()}
        self.kind, self.data = meta["kind"], meta["data"]
        for key in ("tokens", "channels", "grid", "blocks", "hidden", "kernel", "width", "heads", "layers", "ff"):
            setattr(self, key, int(meta.get(key, 0)))
        self.levels = {"digits": 17, "fashion": 256}[self.data]

    def conv(self, w, x):
        n, g, k = len(x), self.grid, w.shape[1]
        big = np.zeros((n, g + k - 1, g + k - 1, x.shape[-1]))
        big[:, k // 2:k // 2 + g, k // 2:k // 2 + g] = x.reshape(n, g, g, -1)
        y = sum(big[:, dy:dy + g, dx:dx + g] @ w[:, dy, dx].T for dy in range(k) for dx in range(k))
        return y.reshape(n, g * g, -1)

    def coupling(self, b, x):
        w = lambda name: self.p[f"c{b}.{name}"]
        y = np.maximum(self.conv(w("w0"), x * w("mask")) + w("b0"), 0)
        y = y + np.maximum(self.conv(w("w1"), y) + w("b1"), 0) @ w("w2").T + w("b2")
        out = y @ w("wout").T + w("bout")
        return w("alpha") * np.tanh(out[..., :self.channels]), out[..., self.channels:]

    def block(self, b, x):
        """a and mu of every token of x, in the block's order."""
        w = lambda name: self.p[f"b{b}.{name}"]
        rms = lambda h: h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-5)
        n, tokens = x.shape[:2]
        h = np.zeros((n, tokens, self.width)) + w("pos")[:tokens]
        h[:, 1:] += x[:, :-1] @ w("win").T + w("bin")
        for l in range(self.layers):
            v_ = lambda name: w(f"l{l}.{name}")
            heads = lambda y: y.reshape(n, tokens, self.heads, -1).swapaxes(1, 2)
            u = rms(h)
            q, k, v = heads(u @ v_("wq").T + v_("bq")), heads(u @ v_("wk").T), heads(u @ v_("wv").T)
            e = q @ k.swapaxes(2, 3)
            e[..., np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
            e = np.exp(e - e.max(-1, keepdims=True))
            o = (e / e.sum(-1, keepdims=True)) @ v
            h = h + o.swapaxes(1, 2).reshape(n, tokens, -1) @ v_("wo").T + v_("bo")
            h = h + np.maximum(rms(h) @ v_("w1").T + v_("b1"), 0) @ v_("w2").T + v_("b2")
        out = rms(h) @ w("wout").T + w("bout")
        return w("alpha") * np.tanh(out[..., :self.channels]), out[..., self.channels:]

    def forward(self, x):
        logdet = np.zeros(len(x))
        for b in range(self.blocks):
            if self.kind == "coupling":
                s, t = self.coupling(b, x)
                x = x * np.exp(s) + t
                logdet += s.sum((1, 2))
                continue
            x = x[:, ::-1] if b % 2 else x
            a, mu = self.block(b, x)
            x = (x - mu) * np.exp(-a)
            logdet -= a.sum((1, 2))
            x = x[:, ::-1] if b % 2 else x
        return x, logdet

    def inverse(self, z):
        """(x, logarithm of the inverse's determinant)"""
        logdet = np.zeros(len(z))
        for b in reversed(range(self.blocks)):
            if self.kind == "coupling":
                s, t = self.coupling(b, z)
                z = (z - t) * np.exp(-s)
                logdet -= s.sum((1, 2))
                continue
            z = z[:, ::-1] if b % 2 else z
            x = np.zeros_like(z)
            for t in range(self.tokens):
                a, mu = self.block(b, x[:, :t + 1])
                x[:, t] = z[:, t] * np.exp(a[:, t]) + mu[:, t]
                logdet += a[:, t].sum(1)
            z = x[:, ::-1] if b % 2 else x
        return z, logdet


def bpd(z, logdet, levels):
    n = z[0].size
    logp = -0.5 * (z * z).reshape(len(z), -1).sum(1) - 0.5 * n * math.log(2 * math.pi)
    return ((-logp - logdet) / n + math.log(levels / 2)) / math.log(2)


def images(flow, part, count=None):
    pixels, index = part
    pixels, index = pixels[:count], index[:count]
    x = data.scaled(pixels, data.noise(index, pixels.shape[1]), flow.data)
    return data.to_tokens(x, dict(grid=flow.grid)).astype(np.float64)


def committed(name):
    """A flow of this folder, its generated matrices made."""
    path = data.HERE / f"{name}.safetensors"
    tensors, meta = load(path)
    assert meta["format"] == "millrace-flow-1" and meta["name"] == name
    seeds = [t[:-len(".angles")] for t in tensors if t.endswith(".angles")]
    tool = os.environ.get("MILLRACE", str(data.HERE.parents[2] / "build" / "millrace"))
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            out = f"{folder}/w.npy"
            subprocess.run([tool, "rgu", "tile", "--seeds", str(path), "--name", seed, "--device", "golden", "--out", out],
                           check=True, stdout=subprocess.DEVNULL)
            tensors[seed] = np.load(out)
    return Flow(tensors, meta), meta


def small(kind, seed):
    """A random flow of eight dimensions, or fewer."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape) * 0.5
    p = {}
    if kind == "coupling":
        meta = dict(kind=kind, data="digits", tokens=4, channels=2, grid=2, blocks=4, hidden=5, kernel=3)
        for b in range(4):
            m = np.array([b % 2, 1 - b % 2], float)
            free = 1 - np.concatenate((m, m))
            p |= {f"c{b}.mask": m, f"c{b}.w0": normal(5, 3, 3, 2) * m, f"c{b}.b0": normal(5), f"c{b}.w1": normal(5, 3, 3, 5),
                  f"c{b}.b1": normal(5), f"c{b}.w2": normal(5, 5), f"c{b}.b2": normal(5),
                  f"c{b}.wout": normal(4, 5) * free[:, None], f"c{b}.bout": normal(4) * free, f"c{b}.alpha": np.ones(1)}
    else:
        meta = dict(kind=kind, data="digits", tokens=4, channels=2, grid=2, blocks=2, width=8, heads=2, layers=1, ff=6)
        for b in range(2):
            p |= {f"b{b}.win": normal(8, 2), f"b{b}.bin": normal(8), f"b{b}.pos": normal(4, 8), f"b{b}.wout": normal(4, 8),
                  f"b{b}.bout": normal(4), f"b{b}.alpha": np.ones(1)}
            for name, shape in dict(wq=(8, 8), bq=(8,), wk=(8, 8), wv=(8, 8), wo=(8, 8), bo=(8,), w1=(6, 8), b1=(6,),
                                    w2=(8, 6), b2=(8,)).items():
                p[f"b{b}.l0.{name}"] = normal(*shape)
    return Flow(p, meta)


def jacobian(kind, seed):
    """The stated logarithm less that of a numeric Jacobian, and forward plus inverse logarithm."""
    flow = small(kind, seed)
    x = np.random.default_rng(seed + 100).standard_normal((1, 4, 2))
    z, logdet = flow.forward(x)
    step = 1e-6 * np.eye(8).reshape(8, 4, 2)
    columns = (flow.forward(x + step)[0] - flow.forward(x - step)[0]).reshape(8, 8) / 2e-6
    back, inverse = flow.inverse(z)
    assert np.abs(back - x).max() < 1e-9
    return abs(logdet[0] - np.linalg.slogdet(columns)[1]), abs(logdet[0] + inverse[0])


def check_convention():
    x = np.random.default_rng(1).standard_normal((4000, 28, 28))
    identity = bpd(x, np.zeros(len(x)), 256).mean()
    assert abs(identity - 9.047) < 0.002, identity
    # uniform: density 1/2 a dimension; bpd() adds log p(z), so the determinant carries the difference
    z = np.zeros((1, 28, 28))
    uniform = bpd(z, np.array([784 * (0.5 * math.log(2 * math.pi) - math.log(2))]), 256)[0]
    assert abs(uniform - 8) < 1e-12, uniform
    for kind, n in data.LEVELS.items():
        v = np.tile(np.arange(n), (64, 1)).astype(np.uint8)
        assert (data.quantised(data.scaled(v, data.noise(np.arange(64), n), kind), kind) == v).all()
        for u in (0.5 / 65536, 1 - 0.5 / 65536):  # the least and greatest noise there is
            assert (data.quantised(data.scaled(v[:1], u, kind), kind) == v[:1]).all(), (kind, u)
    print(f"identity flow on N(0,1) {identity:.4f} bpd, uniform model {uniform:.4f}; every level comes back")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--images", type=int, default=40, help="images of the round trip")
    args.add_argument("names", nargs="*")
    args = args.parse_args()
    check_convention()
    for kind in ("coupling", "tar"):
        worst = np.max([jacobian(kind, s) for s in range(10)], axis=0)
        assert worst[0] < 1e-5 and worst[1] < 1e-12, (kind, worst)
        print(f"{kind}: log determinant within {worst[0]:.1e} of a numeric Jacobian's, forward + inverse {worst[1]:.1e}")
    results = json.loads((data.HERE / "results.json").read_text())
    for name in args.names or sorted(p.stem for p in data.HERE.glob("*.safetensors")):
        flow, meta = committed(name)
        held_out = data.split(flow.data)[2]
        x = images(flow, held_out, 1000)
        scores = np.concatenate([bpd(*flow.forward(x[i:i + 50]), flow.levels) for i in range(0, len(x), 50)])
        want = results[name]["bpd_test"]
        assert abs(scores.mean() - want) < 1e-3, (name, scores.mean(), want)
        z, logdet = flow.forward(x[:args.images])
        back, inverse = flow.inverse(z)
        error = np.abs(back - x[:args.images]).max()
        assert error < 1e-9 and np.abs(logdet + inverse).max() < 1e-8, (name, error)
        vectors = load(data.HERE / "vectors" / f"{name}.safetensors")[0]
        vz, vl = flow.forward(vectors["x"].astype(np.float64))
        assert np.abs(vz - vectors["z"]).max() < 1e-9 * max(1, np.abs(vz).max()), name
        assert np.abs(vl - vectors["logdet"]).max() < 1e-9 * np.abs(vl).max(), name
        print(f"{name}: {scores.mean():.4f} bpd on {len(x)} held-out images, round trip {error:.1e}, vectors agree")


if __name__ == "__main__":
    main()
