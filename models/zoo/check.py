"""Every form's stored file gives back the weights it trained with: python3 check.py [--seed N]

Also checks the generator against the float64 definition at n = 8, both parities. Prints one line a form.
"""
import argparse
import pathlib
import tempfile

import torch
from safetensors.torch import save_file

import forms
import model
import rotor
from catalogue import VARIANTS


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    failed = 0
    g = torch.Generator().manual_seed(args.seed)
    angles = torch.rand(2, 28, generator=g, dtype=torch.float64) * 6 - 3
    for odd in (0, 1):
        w = rotor.matrices(angles[None, None], torch.ones(1, 1, dtype=torch.float64), [odd])[0]
        bad = not (w - rotor.definition(*angles, odd)).abs().max() < 1e-12
        failed += bad
        print(f"definition, odd {odd}: {'differs' if bad else 'agrees'}")
    p = model.init(model.CONFIG, args.seed)
    for i in range(4):
        p[f"layers.{i}.load"] = torch.arange(8).roll(i)
    with tempfile.TemporaryDirectory() as folder:
        for name, spec in VARIANTS.items():
            layers = spec.get("layers", [2, 3])[:1]
            form = forms.Form({k: v for k, v in spec.items() if k not in ("layers", "lr")}, p, layers, args.seed)
            tensors, meta = form.tensors()
            path = pathlib.Path(folder) / "v.safetensors"
            save_file(tensors, path, meta | {"millrace.kind": spec["kind"]})
            with torch.no_grad():
                want, got = form.weights(torch.float32)[layers[0]], forms.read_ffn(*forms.load(path), layers[0])
            error = 0.0 if want is got is None else max(
                ((x - y).norm() / x.norm()).item() for x, y in zip(want, got) if x is not None)
            # int8 angles are coarse on purpose; the rest differ by bf16 rounding, codewords near a threshold may flip
            limit = 0.3 if spec.get("angle_bits") == 8 else 0.02
            failed += not error < limit
            print(f"{name}: stored and read back within {error:.1e}")
    print(f"{len(VARIANTS) + 2 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    raise SystemExit(main())
