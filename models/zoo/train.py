"""Train the base: python3 train.py --out base.safetensors [--steps 700] [--resume]

Muon for the hidden matrices, Adam for embeddings, head, router and norms; bf16 products. The state is saved
atomically every 100 steps beside the output (`*.state`), and --resume goes on from it to the same result.
"""
import argparse
import math
import os
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import corpus
import model

HIDDEN = ("wq", "wk", "wv", "wo", "w1", "w3", "w2")


def orthogonalise(g, steps=5):
    """Newton-Schulz towards the nearest orthogonal matrix, over any leading batch."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Muon:
    def __init__(self, params, momentum=0.95, decay=0.05):
        self.params, self.momentum, self.decay = params, momentum, decay
        self.buffers = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self, lr):
        for p, b in zip(self.params, self.buffers):
            b.lerp_(p.grad, 1 - self.momentum)
            update = orthogonalise(p.grad.lerp(b, self.momentum)) * 0.2 * math.sqrt(max(p.shape[-2:]))
            p.mul_(1 - lr * self.decay).add_(update, alpha=-lr)


def save_atomically(write, path):
    part = path.with_name(path.name + ".part")
    write(part)
    os.replace(part, path)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", type=pathlib.Path, default=corpus.HERE / "base.safetensors")
    args.add_argument("--steps", type=int, default=700)
    args.add_argument("--batch", type=int, default=8)
    args.add_argument("--lr", type=float, default=5e-3)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--threads", type=int, default=2, help="1 is best where other work shares the cores")
    args.add_argument("--stop", type=int, help="save the state and stop at this step, to test --resume")
    args.add_argument("--resume", action="store_true")
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    cfg = model.CONFIG
    train, validation, held_out = corpus.split()
    data = torch.frombuffer(bytearray(train), dtype=torch.uint8)
    p = {k: v.requires_grad_() for k, v in model.init(cfg, args.seed).items()}
    muon = Muon([v for k, v in p.items() if k.split(".")[-1] in HIDDEN])
    adam = torch.optim.AdamW([v for k, v in p.items() if k.split(".")[-1] not in HIDDEN], betas=(0.9, 0.98),
                             weight_decay=0.0, fused=True)
    state, first = args.out.with_suffix(".state"), 0
    if args.resume and state.exists():
        s = torch.load(state)
        first = s["step"]
        adam.load_state_dict(s["adam"])
        with torch.no_grad():
            [p[k].copy_(v) for k, v in s["params"].items()]
            [b.copy_(v) for b, v in zip(muon.buffers, s["muon"])]
    save_state = lambda step: save_atomically(lambda f: torch.save(
        dict(step=step, params={k: v.detach() for k, v in p.items()}, adam=adam.state_dict(),
             muon=muon.buffers), f), state)
    start, tables = time.time(), model.rope_tables(cfg, cfg["context"])
    for step in range(first, args.steps):
        if step == args.stop:
            return save_state(step)
        g = torch.Generator().manual_seed(args.seed * 1_000_003 + step)  # the step alone decides its batch
        at = torch.randint(len(data) - cfg["context"] - 1, (args.batch,), generator=g)
        w = torch.stack([data[a:a + cfg["context"] + 1] for a in at.tolist()]).long()
        aux = []
        x = F.embedding(w[:, :-1], p["tok_embed"])
        x = model.layers(p, cfg, x, 0, cfg["n_layers"], torch.bfloat16, aux, tables)
        loss = F.cross_entropy(model.head(p, cfg, x, torch.bfloat16).flatten(0, 1), w[:, 1:].flatten())
        (loss + 0.01 * sum(aux)).backward()
        lr = args.lr * min(1, (step + 1) / 100) * min(1, (args.steps - step) / (0.6 * args.steps))
        muon.step(lr)
        for group in adam.param_groups:
            group["lr"] = lr
        adam.step()
        for v in p.values():
            v.grad = None
        if step % 50 == 0 or step == args.steps - 1:
            print(f"step {step} train {loss.item() / math.log(2):.4f} bits/byte, {time.time() - start:.0f} s, "
                  f"balance {(sum(aux) / len(aux)).item():.3f}", flush=True)
        if (step + 1) % 100 == 0 or step == args.steps - 1:
            save_state(step + 1)
            print(f"  validation {model.bits_per_byte(p, cfg, validation[:32769], torch.bfloat16)[0]:.4f}", flush=True)
    tensors, meta = model.to_file({k: v.detach() for k, v in p.items()}, cfg)
    save_atomically(lambda f: save_file(tensors, f, meta), args.out)
    stored = model.from_file(tensors, cfg)
    print(f"held out {model.bits_per_byte(stored, cfg, held_out)[0]:.4f} bits/byte (fp32, stored weights)")


if __name__ == "__main__":
    model.fast_allocator()
    main()
