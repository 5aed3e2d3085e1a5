"""The two kinds of flow of FORMAT.md in torch: tensors by their stored names, the network, bits per dimension, the file.

The networks run in bf16 when asked (training uses AMX); the transform itself, and every published figure, is fp32.
"""
import json
import math

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import data

COUPLING = dict(kind="coupling", blocks=8, hidden=64)
TAR = dict(kind="tar", width=64, heads=4, ff=128, layers=2)
CONFIG = {
    "digits-coupling": dict(COUPLING, data="digits", tokens=1, channels=64, grid=1, kernel=1),
    "digits-tar": dict(TAR, data="digits", tokens=16, channels=4, grid=4, blocks=4),
    "digits-full": dict(TAR, data="digits", tokens=16, channels=4, grid=4, blocks=4),
    "fashion-coupling": dict(COUPLING, data="fashion", tokens=49, channels=16, grid=7, kernel=3),
    "fashion-tar": dict(TAR, data="fashion", tokens=49, channels=16, grid=7, blocks=4),
}
CONFIG |= {f"{name}-sharp": CONFIG[name] for name in ("fashion-coupling", "fashion-tar")}
EPS = 1e-5


def mask(cfg, b):
    """What passes coupling b, by channel: checkerboard, rows, columns, halves of a patch; every second is the opposite."""
    side = math.isqrt(cfg["channels"])
    i, j = np.divmod(np.arange(cfg["channels"]), side)
    kind = [(i + j) % 2, i % 2, j % 2, (i + j) % 2, i * 2 // side, j * 2 // side][b // 2 % 6]
    return torch.tensor(kind == b % 2, dtype=torch.float32)


def init(cfg, seed):
    """A flow that is nearly the identity: the last matrix of each part starts at zero."""
    g = torch.Generator().manual_seed(seed)
    normal = lambda *shape, std: torch.randn(*shape, generator=g) * std
    p, c = {}, cfg["channels"]
    for b in range(cfg["blocks"]):
        if cfg["kind"] == "coupling":
            h, k = cfg["hidden"], cfg["kernel"]
            p[f"c{b}.w0"] = normal(h, k, k, c, std=(c * k * k / 2) ** -0.5)
            p[f"c{b}.w1"] = normal(h, k, k, h, std=(h * k * k) ** -0.5)
            p[f"c{b}.w2"] = normal(h, h, std=0.3 * h ** -0.5)
            p[f"c{b}.wout"] = torch.zeros(2 * c, h)
            for n, size in (("b0", h), ("b1", h), ("b2", h), ("bout", 2 * c)):
                p[f"c{b}.{n}"] = torch.zeros(size)
            p[f"c{b}.alpha"] = torch.full((1,), 2.0)
            continue
        d, f = cfg["width"], cfg["ff"]
        p[f"b{b}.win"], p[f"b{b}.bin"] = normal(d, c, std=c ** -0.5), torch.zeros(d)
        p[f"b{b}.pos"] = normal(cfg["tokens"], d, std=0.5)
        for l in range(cfg["layers"]):
            for n in ("wq", "wk", "wv"):
                p[f"b{b}.l{l}.{n}"] = normal(d, d, std=d ** -0.5)
            p[f"b{b}.l{l}.wo"] = normal(d, d, std=0.3 * d ** -0.5)
            p[f"b{b}.l{l}.bq"], p[f"b{b}.l{l}.bo"] = torch.zeros(d), torch.zeros(d)
            p[f"b{b}.l{l}.w1"], p[f"b{b}.l{l}.b1"] = normal(f, d, std=d ** -0.5), torch.zeros(f)
            p[f"b{b}.l{l}.w2"], p[f"b{b}.l{l}.b2"] = normal(d, f, std=0.3 * f ** -0.5), torch.zeros(d)
        p[f"b{b}.wout"], p[f"b{b}.bout"] = torch.zeros(2 * c, d), torch.zeros(2 * c)
        p[f"b{b}.alpha"] = torch.full((1,), 2.0)
    return p


def lin(x, w, bias, bf16):
    if bf16:
        return F.linear(x.bfloat16(), w.bfloat16(), None if bias is None else bias.bfloat16())
    return F.linear(x, w, bias)


def lin_last(x, w, bias, bf16):
    """The last matrix: operands in bf16, the result is not rounded."""
    return F.linear(x.bfloat16().float(), w.bfloat16().float(), bias) if bf16 else F.linear(x, w, bias)


def conv(x, w, bias, bf16):
    """Zero padded over the grid of tokens; x [images, grid, grid, in], w [out, ky, kx, in]."""
    if w.shape[1] == 1:
        return lin(x, w[:, 0, 0], bias, bf16)
    kind = torch.bfloat16 if bf16 else torch.float32
    y = F.conv2d(x.permute(0, 3, 1, 2).to(kind), w.permute(0, 3, 1, 2).to(kind), bias.to(kind), padding=w.shape[1] // 2)
    return y.permute(0, 2, 3, 1)


def coupling_net(p, cfg, b, x, bf16, drop=0.0):
    """s and t of coupling b from x [images, tokens, channels], both zero where the mask passes."""
    q = {n: p[f"c{b}.{n}"] for n in ("w0", "b0", "w1", "b1", "w2", "b2", "wout", "bout", "alpha")}
    m, g = mask(cfg, b), cfg["grid"]
    h = (x * m).view(len(x), g, g, -1)
    h = F.dropout(F.relu(conv(h, q["w0"], q["b0"], bf16)), drop)
    r = F.relu(conv(h, q["w1"], q["b1"], bf16))
    h = h + F.dropout(lin(r, q["w2"], q["b2"], bf16), drop)
    free = 1 - torch.cat((m, m))
    s, t = lin_last(h, q["wout"] * free[:, None], q["bout"] * free, bf16).view(*x.shape[:2], -1).chunk(2, -1)
    return q["alpha"] * torch.tanh(s), t


def rms(h):
    return F.rms_norm(h, h.shape[-1:], eps=EPS)


def split_heads(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def tar_net(p, cfg, b, x, bf16, drop=0.0):
    """a and mu of block b for all tokens of x in the block's order; those of token t depend on tokens before t."""
    q = lambda n: p[f"b{b}.{n}"]
    h = lin(x[:, :-1], q("win"), q("bin"), bf16) + q("pos")[1:x.shape[1]].to(torch.bfloat16 if bf16 else torch.float32)
    h = torch.cat((q("pos")[:1].to(h.dtype).expand(len(x), 1, -1), h), 1)
    for l in range(cfg["layers"]):
        w = lambda n: q(f"l{l}.{n}")
        none = torch.zeros_like(w("bq"))
        qkv = lin(rms(h), torch.cat((w("wq"), w("wk"), w("wv"))), torch.cat((w("bq"), none, none)), bf16)
        qq, k, v = (split_heads(y, cfg["heads"]) for y in qkv.float().chunk(3, -1))  # bf16 is slow here
        o = F.scaled_dot_product_attention(qq, k, v, is_causal=True, scale=1.0)
        h = h + F.dropout(lin(o.transpose(1, 2).flatten(2), w("wo"), w("bo"), bf16), drop)
        o = lin(F.relu(lin(rms(h), w("w1"), w("b1"), bf16)), w("w2"), w("b2"), bf16)
        h = h + F.dropout(o, drop)
    a, mu = lin_last(rms(h), q("wout"), q("bout"), bf16).chunk(2, -1)
    return q("alpha") * torch.tanh(a), mu


def forward(p, cfg, x, bf16=False, drop=0.0):
    """x [images, tokens, channels] to (z, log determinant of each image)."""
    logdet = 0
    for b in range(cfg["blocks"]):
        if cfg["kind"] == "coupling":
            s, t = coupling_net(p, cfg, b, x, bf16, drop)
            x, logdet = x * torch.exp(s) + t, logdet + s.flatten(1).sum(1)
        else:
            x = x.flip(1) if b % 2 else x
            a, mu = tar_net(p, cfg, b, x, bf16, drop)
            x, logdet = (x - mu) * torch.exp(-a), logdet - a.flatten(1).sum(1)
            x = x.flip(1) if b % 2 else x
    return x, logdet


def inverse(p, cfg, z):
    """Back to x; the transformer flow token by token, without a cache (small and slow: the host has the cache)."""
    for b in reversed(range(cfg["blocks"])):
        if cfg["kind"] == "coupling":
            s, t = coupling_net(p, cfg, b, z, False)
            z = (z - t) * torch.exp(-s)
            continue
        z = z.flip(1) if b % 2 else z
        x = torch.zeros_like(z)
        for t in range(cfg["tokens"]):
            a, mu = tar_net(p, cfg, b, x[:, :t + 1], False)
            x[:, t] = z[:, t] * torch.exp(a[:, -1]) + mu[:, -1]
        z = x.flip(1) if b % 2 else x
    return z


def bpd(z, logdet, cfg):
    """Bits per dimension of each image, by the convention of FORMAT.md, in float64."""
    n = z[0].numel()
    z, logdet = z.double(), logdet.double()
    logp = -0.5 * (z.square().flatten(1).sum(1) + n * math.log(2 * math.pi))
    return (math.log(data.LEVELS[cfg["data"]] / 2) - (logp + logdet) / n) / math.log(2)


@torch.no_grad()
def score(p, cfg, part, bf16=False, noise=0.0, batch=500):
    """Mean bits per dimension over (pixels, index) with the fixed dequantisation noise, and Gaussian noise if asked."""
    total, (pixels, index) = 0.0, part
    rng = np.random.default_rng(0)
    for at in range(0, len(pixels), batch):
        v, i = pixels[at:at + batch], index[at:at + batch]
        x = data.to_tokens(data.scaled(v, data.noise(i, v.shape[1]), cfg["data"]), cfg)
        x += np.float32(noise) * rng.standard_normal(x.shape, np.float32)
        total += bpd(*forward(p, cfg, torch.from_numpy(x), bf16), cfg).sum().item()
    return total / len(pixels)


def bpd_mean(z, logdet, cfg):
    """The training loss: mean bits per dimension, fp32."""
    n = z[0].numel()
    logp = -0.5 * (z.square().flatten(1).sum(1) + n * math.log(2 * math.pi))
    return (math.log(data.LEVELS[cfg["data"]] / 2) - ((logp + logdet) / n).mean()) / math.log(2)
