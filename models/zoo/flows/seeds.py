"""The given matrices of digits-full: every layer's w1 is made by the RGU from random rotor angles.

They are made by the millrace command (its golden device), which the environment variable MILLRACE names; the default is
build/millrace of this tree.
"""
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

import data

N, TERMS, PLANES = 8, 4, 28  # two even and two odd terms of gain 1: elements of variance 4/2 / 128 = 1/64
SHAPE = (128, 64)


def names(cfg):
    return [f"b{b}.l{l}.w1" for b in range(cfg["blocks"]) for l in range(cfg["layers"])]


def stored(cfg, seed=20):
    """(tensors, metadata) of all seeds, each a projection as ../FORMAT.md's kind `rotor` has it."""
    rng = np.random.default_rng(seed)
    tensors, meta = {}, {}
    for name in names(cfg):
        angles = rng.integers(-32768, 32768, (TERMS, 1, 1, 2, PLANES)).astype(np.int16)
        tensors[f"{name}.angles"] = torch.from_numpy(angles)
        tensors[f"{name}.gain"] = torch.ones(TERMS, 1, 1)
        tensors[f"{name}.odd"] = (torch.arange(TERMS) % 2).to(torch.uint8).view(TERMS, 1, 1)
        meta[f"{name}.n"], meta[f"{name}.shape"] = str(N), "%d,%d" % SHAPE
    return tensors, meta


def generated(path, cfg):
    """The matrices whose seeds stand in the file, as the RGU makes them: bf16 values in fp32."""
    tool = os.environ.get("MILLRACE", str(data.HERE.parents[2] / "build" / "millrace"))
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names(cfg):
            tile = pathlib.Path(folder) / "tile.npy"
            subprocess.run([tool, "rgu", "tile", "--seeds", str(path), "--name", name, "--device", "golden", "--out",
                            str(tile)], check=True, stdout=subprocess.DEVNULL)
            out[name] = torch.from_numpy(np.load(tile).astype(np.float32))
    return out


def fresh(cfg):
    """The matrices before there is a file of the model."""
    tensors, meta = stored(cfg)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "seeds.safetensors"
        save_file(tensors, path, meta)
        return generated(path, cfg)
