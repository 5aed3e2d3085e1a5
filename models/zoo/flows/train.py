"""Train a flow: python3 train.py --model digits-coupling [--resume]

Muon for the hidden matrices, Adam for the rest, bf16 products with fp32 weights, an exponential mean of the weights for
the file. The state is saved atomically every --save steps beside the output (`*.state`); --resume goes on from it to the
same result. The step alone decides its batch and noise. The file keeps the mean weights that scored best on the
validation part of the training images; held-out images are scored once, at the end.
"""
import argparse
import math
import os
import pathlib
import time

import numpy as np
import torch

import data
import flows
import files

# batch, steps, rate, share of the steps over which the rate falls, decay of weights, dropout, images shifted;
# noise: deviation of Gaussian noise added to x in training; start: the model whose weights are the first
SETTINGS = {
    "digits-coupling": dict(batch=256, steps=3000, lr=2e-3, fall=0.6, decay=0.1, drop=0.1, shift=0.5, noise=0.0),
    "digits-tar": dict(batch=128, steps=2000, lr=2e-3, fall=0.6, decay=0.1, drop=0.1, shift=0.5, noise=0.0),
    "digits-full": dict(batch=128, steps=2000, lr=2e-3, fall=0.6, decay=0.1, drop=0.1, shift=0.5, noise=0.0),
    "fashion-coupling-sharp": dict(batch=128, steps=8000, lr=6e-3, fall=0.5, decay=0.05, drop=0.0, shift=0.0, noise=0.0),
    "fashion-tar-sharp": dict(batch=128, steps=6000, lr=5e-3, fall=0.5, decay=0.05, drop=0.0, shift=0.0, noise=0.0),
    "fashion-coupling": dict(batch=128, steps=3000, lr=4e-3, fall=0.8, decay=0.05, drop=0.02, shift=0.0, noise=1 / 48,
                             start="fashion-coupling-sharp"),
    "fashion-tar": dict(batch=128, steps=2500, lr=3e-3, fall=0.8, decay=0.05, drop=0.01, shift=0.0, noise=0.0104,
                        start="fashion-tar-sharp"),
}


def orthogonalise(g, steps=5):
    """Newton-Schulz towards the nearest orthogonal matrix, over a leading batch."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Muon:
    """Over groups of matrices of one shape, a 4-dimensional kernel taken as [out, the rest]."""

    def __init__(self, params, decay, momentum=0.95):
        self.params, self.decay, self.momentum = params, decay, momentum
        self.buffers = [torch.zeros_like(p) for p in params]
        self.groups = {}
        for i, p in enumerate(params):
            self.groups.setdefault((p.shape[0], p[0].numel()), []).append(i)

    @torch.no_grad()
    def step(self, lr):
        for shape, members in self.groups.items():
            grads = []
            for i in members:
                self.buffers[i].lerp_(self.params[i].grad, 1 - self.momentum)
                grads.append(self.params[i].grad.lerp(self.buffers[i], self.momentum).reshape(shape))
            updates = orthogonalise(torch.stack(grads)) * 0.2 * math.sqrt(max(shape))
            for i, u in zip(members, updates):
                self.params[i].mul_(1 - lr * self.decay).add_(u.view_as(self.params[i]), alpha=-lr)


def hidden(name):
    return name.split(".")[-1] in ("w0", "w1", "w2", "wq", "wk", "wv", "wo")


def shifted(v, share, rng):
    """Some of the images moved by one pixel in one of four ways, zeros let in."""
    side = math.isqrt(v.shape[1])
    v = v.reshape(-1, side, side).copy()
    moved = rng.random(len(v)) < share
    way = rng.integers(4, size=len(v))
    for w, (dy, dx) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
        at = moved & (way == w)
        big = np.pad(v[at], ((0, 0), (1, 1), (1, 1)))
        v[at] = big[:, 1 - dy:1 - dy + side, 1 - dx:1 - dx + side]
    return v.reshape(len(v), -1)


def batch(pixels, cfg, st, seed, step):
    rng = np.random.default_rng((seed, step))
    v = pixels[rng.integers(len(pixels), size=st["batch"])]
    if st["shift"]:
        v = shifted(v, st["shift"], rng)
    x = data.scaled(v, rng.random(v.shape), cfg["data"])
    if st["noise"]:
        x += np.float32(st["noise"]) * rng.standard_normal(x.shape, np.float32)
    return torch.from_numpy(data.to_tokens(x, cfg))


def save_atomically(write, path):
    part = path.with_name(path.name + ".part")
    write(part)
    os.replace(part, path)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--model", choices=SETTINGS, required=True)
    args.add_argument("--out", type=pathlib.Path, help="default: MODEL.safetensors beside this script")
    args.add_argument("--steps", type=int, help="the plan; may be changed on --resume before the rate falls")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--save", type=int, default=200, help="steps between saved states")
    args.add_argument("--threads", type=int, default=1)
    args.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings than the table's")
    args.add_argument("--stop", type=int, help="save the state and stop at this step")
    args.add_argument("--resume", action="store_true")
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    cfg, st = dict(flows.CONFIG[args.model]), dict(SETTINGS[args.model])
    for word in args.set:
        name, value = word.split("=")
        (cfg if name in cfg else st)[name] = type((cfg if name in cfg else st).get(name, 0.0))(float(value))
    steps = args.steps or st["steps"]
    out = args.out or data.HERE / f"{args.model}.safetensors"
    train, validation, held_out = data.split(cfg["data"])
    torch.manual_seed(args.seed)
    frozen = files.frozen(args.model)
    p = {k: v.requires_grad_() for k, v in flows.init(cfg, args.seed).items() if k not in frozen}
    if "start" in st:
        with torch.no_grad():
            [p[k].copy_(v) for k, v in files.read(data.HERE / f"{st['start']}.safetensors")[0].items()]
    p.update(frozen)
    learned = {k: v for k, v in p.items() if k not in frozen}
    muon = Muon([v for k, v in learned.items() if hidden(k)], st["decay"])
    adam = torch.optim.AdamW([v for k, v in learned.items() if not hidden(k)], betas=(0.9, 0.98), weight_decay=0.0,
                             fused=True)
    mean = {k: v.detach().clone() for k, v in learned.items()}
    best, best_p, first, spent = math.inf, mean, 0, 0.0
    state = out.with_suffix(".state")
    if args.resume and state.exists():
        s = torch.load(state)
        first, best, best_p, mean, spent = s["step"], s["best"], s["best_p"], s["mean"], s["spent"]
        adam.load_state_dict(s["adam"])
        with torch.no_grad():
            [learned[k].copy_(v) for k, v in s["params"].items()]
            [b.copy_(v) for b, v in zip(muon.buffers, s["muon"])]
    start = time.process_time() - spent

    def save_state(step):
        save_atomically(lambda f: torch.save(
            dict(step=step, best=best, best_p=best_p, mean=mean, spent=time.process_time() - start,
                 params={k: v.detach() for k, v in learned.items()}, adam=adam.state_dict(), muon=muon.buffers),
            f), state)

    for step in range(first, steps):
        if step == args.stop:
            return save_state(step)
        torch.manual_seed(args.seed * 1_000_003 + step)
        x = batch(train[0], cfg, st, args.seed, step)
        loss = flows.bpd_mean(*flows.forward(p, cfg, x, True, st["drop"]), cfg)
        loss.backward()
        lr = st["lr"] * min(1, (step + 1) / 200) * min(1, (steps - step) / (st["fall"] * steps))
        if all(torch.isfinite(v.grad).all() for v in learned.values()):
            norm = torch.nn.utils.clip_grad_norm_(adam.param_groups[0]["params"], 1.0)
            muon.step(lr)
            adam.param_groups[0]["lr"] = lr
            adam.step()
        for v in learned.values():
            v.grad = None
        with torch.no_grad():
            keep = min(1 - 1 / 250, (step + 1) / (step + 20))
            torch._foreach_lerp_(list(mean.values()), list(learned.values()), 1 - keep)
        if step % 100 == 0:
            print(f"step {step} train {loss.item():.4f} bpd, {time.process_time() - start:.0f} s", flush=True)
        if (step + 1) % args.save == 0 or step == steps - 1:
            v = flows.score({**mean, **frozen}, cfg, validation, noise=st["noise"])
            if v < best:
                best, best_p = v, {k: w.clone() for k, w in mean.items()}
                files.write(out, best_p, args.model, cfg, dict(steps=step + 1))
            save_state(step + 1)
            print(f"  {step + 1} validation {v:.4f} (best {best:.4f})", flush=True)
    full = {**best_p, **frozen}
    test = (held_out[0][:1000], held_out[1][:1000])  # what `--score test` scores: of the digits that is all
    scores = dict(bpd_train=flows.score(full, cfg, (train[0][:10000], train[1][:10000])),
                  bpd_validation=flows.score(full, cfg, validation), bpd_heldout=flows.score(full, cfg, held_out),
                  bpd_test=flows.score(full, cfg, test), bpd_test_bf16=flows.score(full, cfg, test, True),
                  seconds=round(time.process_time() - start), steps=steps, seed=args.seed)
    files.write(out, best_p, args.model, cfg, scores)
    files.record(args.model, scores, st, out)
    print(scores)


if __name__ == "__main__":
    main()
