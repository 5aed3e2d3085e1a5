"""Make variants of the base: python3 variants.py NAME... | --all   (`--list` names them)

Every variant gets the same treatment: the same steps of distillation (each replaced layer alone, from the base's
inputs and outputs of that layer), then the same steps of fine-tuning on the text with everything but the replaced
layers frozen, on the same batches. Then it is stored, read back from the file, scored on the held-out text in fp32,
and entered in results.json. A variant already entered for this base is skipped, so a second call goes on where the
first stopped. Activations below the first replaced layer are computed once and kept in the cache folder.
"""
import argparse
import fcntl
import json
import math
import os
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import corpus
import forms
import model
from catalogue import VARIANTS
from train import save_atomically

HERE = corpus.HERE
BATCH, DISTIL_BATCHES = 8, 24


class Teacher:
    """The base, its text and its cached activations."""

    def __init__(self, path, cache, steps):
        self.path, self.sha = path, forms.sha256(path)
        self.cache = cache / self.sha[:12]
        self.cache.mkdir(parents=True, exist_ok=True)
        tensors, self.cfg = forms.base(path)
        self.p = model.from_file(tensors, self.cfg)
        self.low = {k: v if v.dim() == 1 else v.bfloat16() for k, v in self.p.items()}
        train, _, self.held_out = corpus.split()
        data = torch.frombuffer(bytearray(train), dtype=torch.uint8)
        g = torch.Generator().manual_seed(77)
        at = torch.randint(len(data) - self.cfg["context"] - 1, (steps, BATCH), generator=g)
        self.batches = [torch.stack([data[a:a + self.cfg["context"] + 1] for a in row.tolist()]) for row in at]
        for i in range(self.cfg["n_layers"]):
            self.p[f"layers.{i}.load"] = self.activations()["load"][i]

    def cached(self, name, make):
        path = self.cache / name
        if not path.exists():
            save_atomically(lambda f: torch.save(make(), f), path)
        return torch.load(path, mmap=True)

    def before_ffn(self, i, tokens, p, dtype):
        """The residual stream right after layer i's attention."""
        x = F.embedding(tokens, p["tok_embed"].float())
        x = model.layers(p, self.cfg, x, 0, i, dtype)
        return model.attention(p, self.cfg, f"layers.{i}.", x, model.rope_tables(self.cfg, x.shape[1]), dtype)

    @torch.no_grad()
    def prefix(self, i):
        def make():
            out = torch.empty(len(self.batches), BATCH, self.cfg["context"], self.cfg["d_model"], dtype=torch.bfloat16)
            for b, w in enumerate(self.batches):
                out[b] = self.before_ffn(i, w[:, :-1].long(), self.low, torch.bfloat16)
            return out
        return self.cached(f"prefix{i}-{len(self.batches)}", make)

    @torch.no_grad()
    def held_prefix(self, i):
        """[(activations, targets)] of the held-out text in fp32."""
        def make():
            t = torch.frombuffer(bytearray(self.held_out), dtype=torch.uint8).long()
            w = list(model.windows(t, self.cfg["context"]))
            groups = [torch.stack(w[a:min(a + 16, len(w) - 1)]) for a in range(0, len(w) - 1, 16)] + [w[-1][None]]
            return [(self.before_ffn(i, g[:, :-1], self.p, torch.float32), g[:, 1:].clone()) for g in groups]
        return self.cached(f"held{i}", make)

    def activations(self):
        """Inputs and outputs of every layer's experts on the first batches, and how often each expert is chosen."""
        @torch.no_grad()
        def make():
            n, d = self.cfg["n_layers"], self.cfg["d_model"]
            h_all, y_all = (torch.empty(n, DISTIL_BATCHES, BATCH * self.cfg["context"], d, dtype=torch.bfloat16)
                            for _ in range(2))
            load = torch.zeros(n, self.cfg["n_experts"], dtype=torch.long)
            for b in range(DISTIL_BATCHES):
                x = F.embedding(self.batches[b][:, :-1].long(), self.p["tok_embed"])
                for i in range(n):
                    x = model.attention(self.low, self.cfg, f"layers.{i}.", x,
                                        model.rope_tables(self.cfg, x.shape[1]), torch.bfloat16)
                    h = F.rms_norm(x, x.shape[-1:], self.p[f"layers.{i}.ffn_norm"], self.cfg["norm_eps"]).flatten(0, 1)
                    y = model.moe(h, model.ffn_of(self.low, i), self.cfg["top_k"], torch.bfloat16)
                    load[i] += torch.bincount(model.route(h, self.p[f"layers.{i}.router"], 2)[1].flatten(), minlength=8)
                    h_all[i, b], y_all[i, b], x = h, y, x + y.view_as(x)
            return {"h": h_all, "y": y_all, "load": load}
        return self.cached("activations", make)

    def finish(self, p, x, first, dtype):
        """From right after the attention of layer `first` to the logits."""
        h = F.rms_norm(x, x.shape[-1:], p[f"layers.{first}.ffn_norm"], self.cfg["norm_eps"])
        x = x + model.moe(h.flatten(0, 1), model.ffn_of(p, first), self.cfg["top_k"], dtype).view_as(x)
        return model.head(p, self.cfg, model.layers(p, self.cfg, x, first + 1, self.cfg["n_layers"], dtype), dtype)

    @torch.no_grad()
    def score(self, path):
        """Bits per byte of the held-out text, and the bits of each window: from the stored file, in fp32."""
        p, first = self.p, 0
        if path is not None:
            p = forms.apply_variant(self.p, path, self.path)
            first = min(int(k.split(".")[1]) for k in p if k.endswith(".ffn"))
        bits = []
        for x, target in self.held_prefix(first):
            logits = self.finish(p, x, first, torch.float32)
            each = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(target)
            bits += (each.double().sum(1) / math.log(2)).tolist()
        return sum(bits) / (len(self.held_out) - 1), bits


def train_form(teacher, form, layers, steps, distil, lr, angle_lr, log):
    cfg, act = teacher.cfg, teacher.activations()
    schedule = lambda at, total: min(1, (at + 1) / 10) * (1 - at / total)

    def run(groups, total, loss_of, what):
        opt = torch.optim.Adam(groups, betas=(0.9, 0.98), fused=True)
        top = [g["lr"] for g in opt.param_groups]
        for at in range(total):
            loss = loss_of(at)
            opt.zero_grad()
            loss.backward()
            for g, lr_top in zip(opt.param_groups, top):
                g["lr"] = lr_top * schedule(at, total)
            opt.step()
            if at % 25 == 0 or at == total - 1:
                log(f"  {what} {at} {loss.item():.4f}")

    def distil_loss(at):
        b, ffn = at % DISTIL_BATCHES, form.weights()
        loss = 0
        for i in layers:
            y = act["y"][i, b].float()
            loss = loss + F.mse_loss(model.moe(act["h"][i, b].float(), ffn[i], cfg["top_k"], torch.bfloat16), y
                                     ) / y.square().mean()
        return loss / len(layers)

    def text_loss(at):
        x, w = teacher.prefix(layers[0])[at].float(), teacher.batches[at].long()
        p = teacher.low | {f"layers.{i}.ffn": f for i, f in form.weights().items()}
        logits = teacher.finish(p, x, layers[0], torch.bfloat16)
        return F.cross_entropy(logits.flatten(0, 1), w[:, 1:].flatten()) / math.log(2)

    if distil:
        run(form.groups(lr, angle_lr), distil, distil_loss, "distil")
    run(form.groups(lr / 2, angle_lr / 10), steps, text_loss, "text")


def enter(path, name, entry):
    """Put one entry in results.json, safe against a second process doing the same."""
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = json.loads(path.read_text()) if path.exists() else {}
        results[name] = entry
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items())
        save_atomically(lambda f: f.write_text("{\n" + lines + "\n}\n"), path)


def make(teacher, name, args):
    spec = dict(VARIANTS[name])
    layers, log, start = spec.pop("layers", [2, 3]), lambda s: print(s, flush=True), time.time()
    lr, angle_lr = spec.pop("lr", 2e-3), spec.pop("angle_lr", 3e-2)
    distil = 0 if spec["kind"] in ("dense", "removed") else args.distil
    steps = 0 if spec["kind"] == "removed" else args.steps
    log(f"{name}: {spec} on layers {layers}")
    torch.manual_seed(5)
    form = forms.Form(spec, teacher.p, layers, args.seed)
    if steps:
        train_form(teacher, form, layers, steps, distil, lr, angle_lr, log)
    tensors, meta = form.tensors()
    meta |= {"millrace.format": "millrace-lm-variant", "millrace.version": "1", "millrace.base": teacher.path.name,
             "millrace.base_sha256": teacher.sha, "millrace.replaced": ",".join(map(str, layers)),
             "millrace.kind": spec["kind"]}
    path = args.out / f"{name}.safetensors"
    save_atomically(lambda f: save_file(tensors, f, meta), path)
    bits, windows = teacher.score(path)
    stored = sum(t.numel() * t.element_size() for t in tensors.values())
    entry = dict(base=teacher.sha, spec=spec, layers=layers, lr=lr, angle_lr=angle_lr, seed=args.seed, distil=distil,
                 steps=steps, bits_per_byte=round(bits, 5), stored_bytes_per_layer=stored // len(layers),
                 parameters=sum(v.numel() for v in form.q.values()) if form.q else 0,
                 seconds=round(time.time() - start), window_bits=[round(b, 2) for b in windows])
    enter(args.results, name, entry)
    log(f"{name}: {bits:.4f} bits/byte, {stored // len(layers)} bytes a layer, {entry['seconds']} s")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("names", nargs="*")
    a.add_argument("--all", action="store_true")
    a.add_argument("--list", action="store_true")
    a.add_argument("--base", type=pathlib.Path, default=HERE / "base.safetensors")
    a.add_argument("--out", type=pathlib.Path, default=HERE / "variants")
    a.add_argument("--results", type=pathlib.Path, default=HERE / "results.json")
    a.add_argument("--cache", type=pathlib.Path, default=HERE.parent.parent / "build" / "zoo")
    a.add_argument("--steps", type=int, default=100)
    a.add_argument("--distil", type=int, default=150)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--threads", type=int, default=2, help="1 is best where other work shares the cores")
    args = a.parse_args()
    if args.list:
        return print("\n".join(f"{k}: {v}" for k, v in VARIANTS.items()))
    torch.set_num_threads(args.threads)
    args.out.mkdir(exist_ok=True)
    teacher = Teacher(args.base, args.cache, args.steps)
    for name in list(VARIANTS) if args.all else args.names:
        done = json.loads(args.results.read_text()) if args.results.exists() else {}
        if "base" not in done or done["base"]["base"] != teacher.sha:
            bits, windows = teacher.score(None)
            enter(args.results, "base", dict(base=teacher.sha, bits_per_byte=round(bits, 5), layers=[],
                                             window_bits=[round(b, 2) for b in windows]))
            print(f"base: {bits:.4f} bits/byte", flush=True)
        if done.get(name, {}).get("base") == teacher.sha:
            print(f"{name}: already in {args.results.name}")
            continue
        make(teacher, name, args)


if __name__ == "__main__":
    model.fast_allocator()
    main()
