"""The stored forms of a replaced layer: how each makes its weights while training, and what it stores.

One parametric form covers the table. A projection of expert e is  scale · R_out · W_b · R_in  where W_b is one of
`bases` weights (dense bf16, 2- or 1-bit codewords, low rank), b = e mod bases, and R_out, R_in are seeds; `pure`
rotor projections have no W_b, just a seed. What is stored is read back by `load`, which knows nothing of training.
"""
import hashlib
import json
import math

import torch
from safetensors import safe_open

import rotor

KINDS = ("w1", "w3", "w2")
PLANES = 28
GROUP = 64
LEVELS = {2: torch.tensor([-1.0, -1 / 3, 1 / 3, 1.0]), 1: torch.tensor([-1.0, 1.0])}
SPREAD = {2: 1.494, 1: 0.798}  # the scale of a Gaussian's best uniform 4- or 2-level quantiser, in deviations


# --- codewords -----------------------------------------------------------------------------------------------

def nearest(u, bits):
    """Codes of u = w / scale."""
    return (u >= 0).long() if bits == 1 else ((u + 4 / 3) * 1.5).floor().clamp(0, 3).long()


def group_view(w):
    return w.unflatten(-1, (-1, GROUP))


def coded(w, scale, bits):
    """Straight-through: the forward pass is what gets stored, the backward the learned-step-size rule."""
    u = group_view(w) / scale[..., None]
    c = u.clamp(-1.33, 1.33) if bits == 2 else u.clamp(-1.5, 1.5)
    level = LEVELS[bits][nearest(u.detach(), bits)]
    return (scale[..., None] * (c + (level - c).detach())).flatten(-2)


def pack(name, w, scale, bits):
    scale = scale.half()
    codes = nearest(group_view(w) / scale.float()[..., None], bits).flatten(-2)
    per = 8 // bits
    codes = codes.unflatten(-1, (-1, per)) << (torch.arange(per) * bits)
    return {name + ".codes": codes.sum(-1).to(torch.uint8), name + ".scales": scale}


def unpack(codes, scales, bits):
    per = 8 // bits
    codes = (codes.long()[..., None] >> (torch.arange(per) * bits)) & ((1 << bits) - 1)
    level = LEVELS[bits][codes.flatten(-2)]
    return (scales.float()[..., None] * level.unflatten(-1, (scales.shape[-1], -1))).flatten(-2)


# --- seeds ---------------------------------------------------------------------------------------------------

def seed_tensors(name, angles, gain, odd, bits, signs=None):
    """angles [T, 2, P] of one chunk -> tensors and metadata of rgu.md's seed file."""
    unit = math.pi / (1 << (bits - 1))
    wrap = lambda v: ((v + (1 << (bits - 1))) % (1 << bits)) - (1 << (bits - 1))
    v = wrap((angles / unit).round().long()).to(torch.int16 if bits == 16 else torch.int8)
    out = {name + ".angles": v[:, None, None], name + ".gain": gain[:, None, None].clone(),
           name + ".odd": torch.tensor(odd, dtype=torch.uint8)[:, None, None]}
    if signs is not None:
        out[name + ".sign_seed"] = signs[:, None, None]
    return out, {name + ".shape": "256,256", name + ".n": "8"}


def sign_diagonal(seed, length=256):
    """±1 from a 32-bit seed: xorshift32 (13, 17, 5), a step an element, minus where the top bit is set; 0 is all +1."""
    out, x = [], seed
    for _ in range(length):
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out.append(-1.0 if x >> 31 else 1.0)
    return torch.tensor(out)


def grow(angles, gain, odd, signs=None):
    """[B, T, 2, P] -> [B, 256, 256]; with signs [B, T, 2, 256] every term is D_out M D_in."""
    if signs is None:
        return rotor.matrices(angles, gain, odd)
    b, t = gain.shape
    w = 0
    for o in (0, 1):
        pick = [i for i, v in enumerate(odd) if v == o]
        if pick:
            each = rotor.matrices(angles[:, pick].flatten(0, 1)[:, None], gain[:, pick].flatten()[:, None], [o])
            w = w + torch.einsum("btij,bti,btj->bij", each.view(b, len(pick), 256, 256), signs[:, pick, 0],
                                 signs[:, pick, 1])
    return w


# --- the form ------------------------------------------------------------------------------------------------

class Form:
    """kind, and: base ("bf16", "code2", "code1", "low:K", None), bases, experts (1 = collapsed), width, sides ("",
    "in", "out", "both"), terms, signs, row_scale, angle_bits, routed (False: no router, every expert always on)."""

    def __init__(self, spec, p, layers, seed):
        g = torch.Generator().manual_seed(seed)
        s = self.s = dict(base=None, bases=8, experts=8, width=256, sides="", terms=1, signs=False, row_scale=False,
                          angle_bits=16, spread=0.05, routed=spec["kind"] != "collapsed") | spec
        self.layers, self.q = layers, {}
        if s["kind"] == "removed":
            return
        e = s["experts"]
        self.pure = s["kind"] == "rotor"
        self.sides = [] if not self.pure and not s["sides"] else ["out", "in"] if s["sides"] == "both" else [
            s["sides"] or "pure"]
        for i in layers:
            n = f"layers.{i}."
            if s["routed"]:
                self.q[n + "router"] = p[n + "router"].clone()
            if self.pure:
                continue
            # the experts the router prefers most, by its weights' size, start the bases
            load = p[n + "load"].argsort(descending=True)
            experts = torch.arange(8) if s["bases"] == 8 else load[:s["bases"]]
            w = {k: p[n + k][experts].clone() for k in KINDS}
            if s["kind"] == "collapsed":
                f = s["width"]
                w = {k: torch.cat(list(p[n + k][load[:-(-f // 256)]]), dim=1 if k == "w2" else 0) for k in KINDS}
                w = {k: (v[:, :f] if k == "w2" else v[:f])[None] for k, v in w.items()}
            for k in KINDS:
                self.init_base(n + k, w[k])
        if self.sides:
            self.odd = [t % 2 for t in range(s["terms"])]
            shape = (len(layers) * 3 * len(self.sides) * e, s["terms"])
            angles = torch.rand(*shape, 2, PLANES, generator=g) * 2 * math.pi - math.pi if self.pure else (
                torch.randn(*shape, 2, PLANES, generator=g) * s["spread"])
            gain = torch.ones(shape)
            if self.pure:
                norm = torch.stack([p[f"layers.{i}.{k}"][x].norm() for i in layers for k in KINDS for x in range(e)])
                gain = gain * (norm / 16 / math.sqrt(s["terms"]))[:, None]
            elif s["terms"] > 1:  # the first term starts as the identity, the others small
                gain[:, 1:] = 0.1
            self.q["angles"], self.q["gain"] = angles, gain
            self.sign_seeds = torch.randint(1, 2**31, (*shape, 2), generator=g) if s["signs"] else None
            self.signs = None if self.sign_seeds is None else torch.stack(
                [sign_diagonal(int(v)) for v in self.sign_seeds.flatten()]).view(*shape, 2, 256)
            if s["row_scale"]:
                self.q["row_scale"] = torch.ones(shape[0], 256)
        # contiguous: the fused optimiser takes a parameter and its gradient to be laid out alike
        self.q = {k: v.float().contiguous().requires_grad_() for k, v in self.q.items()}

    def init_base(self, name, w):
        base = self.s["base"]
        if base.startswith("low:"):
            k = int(base[4:])
            u, v, t = torch.linalg.svd(w, full_matrices=False)
            root = v[:, :k].sqrt()
            self.q[name + ".u"], self.q[name + ".v"] = u[:, :, :k] * root[:, None], t[:, :k] * root[..., None]
        else:
            self.q[name] = w
            if base.startswith("code"):
                bits = int(base[4:])
                size = group_view(w).square().mean(-1).sqrt()
                self.q[name + ".scale"] = size * SPREAD[bits]

    def base_weights(self, name):
        base = self.s["base"]
        if base.startswith("low:"):
            return self.q[name + ".u"] @ self.q[name + ".v"]
        if base.startswith("code"):
            return coded(self.q[name], self.q[name + ".scale"], int(base[4:]))
        return self.q[name]

    def weights(self, dtype=torch.bfloat16):
        """{layer: (router, w1, w3, w2)} from the current parameters, differentiable."""
        s = self.s
        if s["kind"] == "removed":
            return {i: None for i in self.layers}
        if self.sides:
            grown = grow(self.q["angles"], self.q["gain"], self.odd, self.signs)
            if s["row_scale"]:
                grown = grown * self.q["row_scale"][..., None]
            # unbind, not indexing: its backward is one stack instead of a zero-filled sum for every slice
            grown = iter(grown.view(-1, s["experts"], 256, 256).unbind(0))
        out = {}
        for i in self.layers:
            ffn = []
            for k in KINDS:
                if self.pure:
                    ffn.append(next(grown))
                    continue
                w = self.base_weights(f"layers.{i}.{k}").to(dtype)
                if self.sides:
                    w = w.repeat(s["experts"] // s["bases"], 1, 1)
                    for name in self.sides:
                        r = next(grown).to(dtype)
                        w = r @ w if name == "out" else w @ r
                ffn.append(w)
            out[i] = (self.q.get(f"layers.{i}.router"), *ffn)
        return out

    def groups(self, lr, angle_lr):
        fast = [v for k, v in self.q.items() if k == "angles"]
        scales = [v for k, v in self.q.items() if k.endswith(".scale")]
        rest = [v for k, v in self.q.items() if not k.endswith(".scale") and k != "angles"]
        return [g for g in (dict(params=rest, lr=lr), dict(params=scales, lr=lr / 5), dict(params=fast, lr=angle_lr))
                if g["params"]]

    def tensors(self):
        """What the variant file holds: tensors and metadata."""
        s, e, out, meta = self.s, self.s["experts"], {}, {}
        if s["kind"] == "removed":
            return out, meta
        q = {k: v.detach() for k, v in self.q.items()}
        row = 0
        for i in self.layers:
            n = f"layers.{i}."
            if n + "router" in q:
                out[n + "router"] = q[n + "router"].bfloat16()
            for k in KINDS:
                expert = [f"{n}experts.{x}.{k}" for x in range(e)]
                if not self.pure:
                    base = ([f"{n}shared.{k}"] if s["kind"] == "collapsed" else expert if s["bases"] == 8 else
                            [f"{n}base.{k}"] if s["bases"] == 1 else [f"{n}base.{b}.{k}" for b in range(s["bases"])])
                    if s["bases"] == 8 and self.sides:
                        base = [f"{n}base.{b}.{k}" for b in range(8)]
                    for b, name in enumerate(base):
                        if s["base"] == "bf16":
                            out[name] = q[n + k][b].bfloat16()
                        elif s["base"].startswith("low:"):
                            out[name + ".u"], out[name + ".v"] = (q[n + k + x][b].bfloat16() for x in (".u", ".v"))
                        else:
                            out |= pack(name, q[n + k][b], q[n + k + ".scale"][b], int(s["base"][4:]))
                for side in self.sides:
                    for name in expert:
                        name = name if side == "pure" else f"{name}.{side}"
                        t, m = seed_tensors(name, q["angles"][row], q["gain"][row], self.odd, s["angle_bits"],
                                            None if self.signs is None else self.sign_seeds[row].to(torch.uint32))
                        if s["row_scale"]:
                            t[name + ".row_scale"] = q["row_scale"][row].clone()
                        out, meta, row = out | t, meta | m, row + 1
        if s["kind"] == "shared":
            meta |= {"millrace.bases": str(s["bases"]), "millrace.experts": str(e)}
        return {k: v.contiguous() for k, v in out.items()}, meta


# --- reading back ---------------------------------------------------------------------------------------------

def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load(path):
    """(tensors, metadata) of a safetensors file."""
    with safe_open(path, "pt") as f:
        return {k: f.get_tensor(k) for k in f.keys()}, f.metadata()


def matrix(t, name):
    """The stored weight NAME: dense, codewords or low rank; None where there is none."""
    if name + ".codes" in t:
        codes, scales = t[name + ".codes"], t[name + ".scales"]
        return unpack(codes, scales, 8 * codes.shape[1] // (scales.shape[1] * GROUP))
    if name + ".u" in t:
        return t[name + ".u"].float() @ t[name + ".v"].float()
    return t[name].float() if name in t else None


def generated(t, names):
    """The seeds' matrices as the RGU gives them: computed in float64, times the row scale, rounded to bf16."""
    angles = torch.stack([t[n + ".angles"][:, 0, 0] for n in names])
    unit = math.pi / (32768 if angles.dtype == torch.int16 else 128)
    gain = torch.stack([t[n + ".gain"][:, 0, 0] for n in names]).double()
    odd = t[names[0] + ".odd"].flatten().tolist()
    signs = None
    if names[0] + ".sign_seed" in t:
        seeds = torch.stack([t[n + ".sign_seed"][:, 0, 0] for n in names]).long()
        signs = torch.stack([sign_diagonal(int(v)) for v in seeds.flatten()]).view(*seeds.shape, 256).double()
    w = grow(angles.double() * unit, gain, odd, signs)
    if names[0] + ".row_scale" in t:
        w = w * torch.stack([t[n + ".row_scale"] for n in names]).double()[..., None]
    return w.float().bfloat16().float()


@torch.no_grad()
def read_ffn(t, meta, i):
    """(router, w1, w3, w2) in fp32 of replaced layer i, or None where it is removed."""
    n, kind = f"layers.{i}.", meta["millrace.kind"]
    if kind == "removed":
        return None
    if kind == "collapsed":
        return (None, *(matrix(t, f"{n}shared.{k}")[None] for k in KINDS))
    n_experts = int(meta.get("millrace.experts", "8"))
    ffn = [t[n + "router"].float() if n + "router" in t else None]
    for k in KINDS:
        names = [f"{n}experts.{x}.{k}" for x in range(n_experts)]
        if kind == "rotor":
            ffn.append(generated(t, names))
            continue
        if kind == "shared":
            bases = int(meta.get("millrace.bases", "1"))
            one = [f"{n}base.{k}"] if bases == 1 else [f"{n}base.{b}.{k}" for b in range(bases)]
            w = torch.stack([matrix(t, b) for b in one])[torch.arange(n_experts) % bases]
            for side in ("out", "in"):
                if f"{names[0]}.{side}.angles" in t:
                    r = generated(t, [f"{x}.{side}" for x in names])
                    w = r @ w if side == "out" else w @ r
            ffn.append(w)
        else:
            ffn.append(torch.stack([matrix(t, x) for x in names]))
    return tuple(ffn)


def apply_variant(p, path, base_path=None):
    """The base's parameters with the variant's layers in place."""
    t, meta = load(path)
    if meta["millrace.format"] != "millrace-lm-variant" or meta["millrace.version"] != "1":
        raise SystemExit(f"{path}: not a version 1 millrace-lm-variant")
    if base_path is not None and meta["millrace.base_sha256"] != sha256(base_path):
        raise SystemExit(f"{path}: made for another base (millrace.base_sha256)")
    replaced = [int(v) for v in meta["millrace.replaced"].split(",")]
    return p | {f"layers.{i}.ffn": read_ffn(t, meta, i) for i in replaced}


def base(path):
    t, meta = load(path)
    cfg = json.loads(meta["millrace.config"])
    return t, cfg
