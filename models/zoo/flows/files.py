"""The stored file of a flow (FORMAT.md): tensors as the network uses them, settings in the metadata."""
import json
import os
import pathlib

import torch
from safetensors import safe_open
from safetensors.torch import save_file

import data
import flows
import seeds

RESULTS = data.HERE / "results.json"


def frozen(model):
    """Weights that are given, not learned: only digits-full has any."""
    return seeds.fresh(flows.CONFIG[model]) if model == "digits-full" else {}


def write(path, p, model, cfg, scores):
    tensors = {k: v.detach().clone() for k, v in p.items()}
    if cfg["kind"] == "coupling":
        for b in range(cfg["blocks"]):
            m = flows.mask(cfg, b)
            free = 1 - torch.cat((m, m))
            tensors[f"c{b}.mask"] = m
            tensors[f"c{b}.w0"] *= m
            tensors[f"c{b}.wout"] *= free[:, None]
            tensors[f"c{b}.bout"] *= free
    meta = dict(format="millrace-flow-1", name=model, **{k: str(v) for k, v in cfg.items()},
                **{k: f"{v:.6f}" if isinstance(v, float) else str(v) for k, v in scores.items()})
    if model == "digits-full":
        extra, notes = seeds.stored(cfg)
        tensors.update(extra)
        meta.update(notes)
    tensors = {k: v.contiguous() for k, v in sorted(tensors.items())}
    part = path.with_name(path.name + ".part")
    save_file(tensors, part, meta)
    part.chmod(0o644)
    os.replace(part, path)


def read(path):
    """(tensors of the network, settings, metadata) of a stored flow."""
    with safe_open(path, "pt") as f:
        meta = f.metadata()
        p = {k: f.get_tensor(k) for k in f.keys()}
    cfg = {k: int(v) if v.isdigit() else v for k, v in meta.items() if k in flows.CONFIG[meta["name"]]}
    p = {k: v for k, v in p.items() if not k.endswith((".mask", ".angles", ".gain", ".odd"))}
    return {**p, **(seeds.generated(path, cfg) if meta["name"] == "digits-full" else {})}, cfg, meta


def record(model, scores, settings, path):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with safe_open(path, "pt") as f:
        count = sum(f.get_tensor(k).numel() for k in f.keys() if not k.endswith(".mask"))
    results[model] = dict(scores, settings=settings, parameters=count, bytes=path.stat().st_size)
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    os.replace(part, RESULTS)
