"""The network of FORMAT.md in torch, functional: parameters are a dict of tensors, experts stacked [E, out, in].

`p["layers.L.ffn"]` is what makes a layer's feed-forward part: (router, w1, w3, w2), or None where it is removed.
The same code trains (bf16 matrix products, fp32 residual stream) and gives the fp32 reference (`dtype=float32`).
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

CONFIG = dict(d_model=256, n_layers=4, n_heads=4, n_kv_heads=2, head_dim=64, d_ff=256, n_experts=8, top_k=2,
              vocab=256, context=512, rope_theta=10000.0, norm_eps=1e-5)


def fast_allocator():
    """Restart this script with a heap that keeps its pages: returning them costs more than the arithmetic."""
    want = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000",
            "MALLOC_TOP_PAD_": "500000000"}
    if any(os.environ.get(k) != v for k, v in want.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **want})


def init(cfg, seed):
    g = torch.Generator().manual_seed(seed)
    d, hd, ff, e = cfg["d_model"], cfg["head_dim"], cfg["d_ff"], cfg["n_experts"]
    mat = lambda *shape, gain=1.0: torch.randn(*shape, generator=g) * gain / math.sqrt(shape[-1])
    p = {"tok_embed": torch.randn(cfg["vocab"], d, generator=g) * 0.5, "norm": torch.ones(d),
         "lm_head": mat(cfg["vocab"], d, gain=0.1)}
    for i in range(cfg["n_layers"]):
        n = f"layers.{i}."
        p |= {n + "attn_norm": torch.ones(d), n + "ffn_norm": torch.ones(d),
              n + "wq": mat(cfg["n_heads"] * hd, d), n + "wk": mat(cfg["n_kv_heads"] * hd, d),
              n + "wv": mat(cfg["n_kv_heads"] * hd, d), n + "wo": mat(d, cfg["n_heads"] * hd, gain=0.3),
              n + "router": mat(e, d), n + "w1": mat(e, ff, d), n + "w3": mat(e, ff, d),
              n + "w2": mat(e, d, ff, gain=0.3)}
    return p


def rope_tables(cfg, length):
    half = cfg["head_dim"] // 2
    freq = cfg["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * freq
    return angle.cos().float(), angle.sin().float()


def rope(u, cos, sin):
    a, b = u.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attention(p, cfg, n, x, tables, dtype):
    b, t, _ = x.shape
    h = F.rms_norm(x, x.shape[-1:], p[n + "attn_norm"], cfg["norm_eps"]).to(dtype)
    w = torch.cat([p[n + "wq"], p[n + "wk"], p[n + "wv"]]).to(dtype)
    nq, nk, hd = cfg["n_heads"], cfg["n_kv_heads"], cfg["head_dim"]
    qkv = (h @ w.T).view(b, t, nq + 2 * nk, hd).transpose(1, 2)
    qk = rope(qkv[:, :nq + nk], *tables).to(dtype)
    q, k, v = qk[:, :nq], qk[:, nq:], qkv[:, nq + nk:]
    rep = lambda u: u.repeat_interleave(nq // nk, dim=1)
    y = F.scaled_dot_product_attention(q, rep(k), rep(v), is_causal=True)
    return x + (y.transpose(1, 2).reshape(b, t, nq * hd) @ p[n + "wo"].to(dtype).T).float()


def route(h, router, top_k):
    """Weights [N, k], expert ids [N, k] (a tie to the lowest id), all logits."""
    logits = h.float() @ router.float().T
    value, index = logits.sort(dim=-1, descending=True, stable=True)
    return value[:, :top_k].softmax(dim=-1), index[:, :top_k], logits


class Dispatch(torch.autograd.Function):
    """x [N, d] -> x[token] [S, d]; slot [N, k] says where each token went, so the backward is a gather too."""

    @staticmethod
    def forward(ctx, x, token, slot):
        ctx.save_for_backward(slot)
        return x[token]

    @staticmethod
    def backward(ctx, g):
        slot, = ctx.saved_tensors
        return g[slot].sum(1), None, None


class Combine(torch.autograd.Function):
    """y [S, d], weight [N, k] -> sum over k of weight · y[slot], in fp32."""

    @staticmethod
    def forward(ctx, y, weight, token, slot):
        ctx.save_for_backward(y, weight, token, slot)
        return torch.einsum("nkd,nk->nd", y[slot].float(), weight)

    @staticmethod
    def backward(ctx, g):
        y, weight, token, slot = ctx.saved_tensors
        slot_weight = torch.zeros(y.shape[0])
        slot_weight[slot.flatten()] = weight.flatten()
        return ((g.to(y.dtype)[token] * slot_weight.to(y.dtype)[:, None]),
                torch.einsum("nkd,nd->nk", y[slot].float(), g), None, None)


def moe(h, ffn, top_k, dtype, aux=None):
    """h [N, d] float -> [N, d] float. Every expert gets the same number of slots, so it is one batched product."""
    if ffn is None:
        return torch.zeros_like(h)
    router, w1, w3, w2 = ffn
    if router is None:  # every expert always on, with weight 1
        h, w1, w3, w2 = h.to(dtype), w1.to(dtype), w3.to(dtype), w2.to(dtype)
        return sum(((F.silu(h @ a.T) * (h @ b.T)) @ c.T).float() for a, b, c in zip(w1, w3, w2))
    n, e = h.shape[0], router.shape[0]
    weight, index, logits = route(h, router, top_k)
    flat = index.flatten()
    count = torch.bincount(flat, minlength=e)
    if aux is not None:  # load balance: fraction routed times mean probability; and small logits
        aux.append(e * (count / flat.numel() * logits.softmax(-1).mean(0)).sum()
                   + 1e-2 * logits.logsumexp(-1).square().mean())
    room = -(-int(count.max()) // 256) * 256  # few distinct shapes: the matrix library compiles each one
    order = flat.argsort(stable=True)
    slot = torch.empty_like(flat)
    slot[order] = torch.arange(flat.numel()) + (torch.arange(e) * room - count.cumsum(0) + count)[flat[order]]
    token = torch.zeros(e * room, dtype=torch.long)
    token[slot] = torch.arange(flat.numel()) // top_k
    slot = slot.view(n, top_k)
    x = Dispatch.apply(h.to(dtype), token, slot).view(e, room, -1)
    up = x @ torch.cat([w1, w3], dim=1).to(dtype).mT
    gate, lin = up.split(w1.shape[1], dim=-1)
    y = (F.silu(gate) * lin) @ w2.to(dtype).mT
    return Combine.apply(y.view(e * room, -1), weight, token, slot)


def ffn_of(p, i):
    n = f"layers.{i}."
    return p[n + "ffn"] if n + "ffn" in p else (p[n + "router"], p[n + "w1"], p[n + "w3"], p[n + "w2"])


def layers(p, cfg, x, first, last, dtype, aux=None, tables=None):
    tables = tables or rope_tables(cfg, x.shape[1])
    for i in range(first, last):
        x = attention(p, cfg, f"layers.{i}.", x, tables, dtype)
        h = F.rms_norm(x, x.shape[-1:], p[f"layers.{i}.ffn_norm"], cfg["norm_eps"])
        x = x + moe(h.flatten(0, 1), ffn_of(p, i), cfg["top_k"], dtype, aux).view_as(x)
    return x


def head(p, cfg, x, dtype):
    return (F.rms_norm(x, x.shape[-1:], p["norm"], cfg["norm_eps"]).to(dtype) @ p["lm_head"].to(dtype).T).float()


def forward(p, cfg, tokens, dtype=torch.float32, aux=None):
    x = F.embedding(tokens, p["tok_embed"].float())
    return head(p, cfg, layers(p, cfg, x, 0, cfg["n_layers"], dtype, aux), dtype)


def windows(data, context):
    """Non-overlapping windows: every byte but the first is predicted once, from at most `context` before it."""
    for at in range(0, len(data) - 1, context):
        yield data[at:at + context + 1]


@torch.no_grad()
def bits_per_byte(p, cfg, data, dtype=torch.float32, batch=16):
    """Mean over all predicted bytes, and the per-byte bits (for paired errors)."""
    t = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
    all_windows = list(windows(t, cfg["context"]))
    bits = []
    while all_windows:
        group = [w for w in all_windows[:batch] if len(w) == len(all_windows[0])]
        all_windows = all_windows[len(group):]
        w = torch.stack(group)
        logits = forward(p, cfg, w[:, :-1], dtype)
        bits.append(F.cross_entropy(logits.flatten(0, 1), w[:, 1:].flatten(), reduction="none") / math.log(2))
    bits = torch.cat(bits)
    return bits.double().mean().item(), bits


def to_file(p, cfg):
    """Tensors and metadata of base.safetensors: matrices bf16, norms fp32, experts one by one."""
    out = {}
    for name, t in p.items():
        if name.split(".")[-1] in ("w1", "w3", "w2"):
            layer, kind = name.rsplit(".", 1)
            out |= {f"{layer}.experts.{e}.{kind}": w.bfloat16().contiguous() for e, w in enumerate(t)}
        else:
            out[name] = t.float().contiguous() if name.endswith("norm") else t.bfloat16().contiguous()
    return out, {"millrace.format": "millrace-lm", "millrace.version": "1", "millrace.config": json.dumps(cfg)}


def from_file(tensors, cfg):
    p = {k: v.float() for k, v in tensors.items() if ".experts." not in k}
    for i in range(cfg["n_layers"]):
        for kind in ("w1", "w3", "w2"):
            p[f"layers.{i}.{kind}"] = torch.stack(
                [tensors[f"layers.{i}.experts.{e}.{kind}"].float() for e in range(cfg["n_experts"])])
    return p
