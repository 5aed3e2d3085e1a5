"""Reference logits for other readers of the files: python3 vectors.py [VARIANT...]

vectors/logits.safetensors holds `tokens` (U8, the prompt) and, for the base and each variant named, `logits.NAME`
(F32, [8, 256]): the fp32 logits at the prompt's last eight positions.
"""
import argparse
import pathlib

import torch
from safetensors.torch import save_file

import corpus
import forms
import model
from train import save_atomically

PROMPT = b"And it came to pass in those days, that the king said unto all the people, "
LAST = 8


def main():
    a = argparse.ArgumentParser()
    a.add_argument("variants", nargs="*", default=["rotor1", "shared_code2_fast", "shared_in8_fast"])
    a.add_argument("--zoo", type=pathlib.Path, default=corpus.HERE, help="folder of base.safetensors and variants/")
    args = a.parse_args()
    tensors, cfg = forms.base(args.zoo / "base.safetensors")
    p, tokens = model.from_file(tensors, cfg), torch.tensor(list(PROMPT))
    out = {"tokens": tokens.to(torch.uint8)}
    for name in ["base", *args.variants]:
        path = args.zoo / "variants" / f"{name}.safetensors"
        q = p if name == "base" else forms.apply_variant(p, path, args.zoo / "base.safetensors")
        with torch.no_grad():
            out["logits." + name] = model.forward(q, cfg, tokens[None])[0, -LAST:].contiguous()
    (args.zoo / "vectors").mkdir(exist_ok=True)
    save_atomically(lambda f: save_file(out, f, {"prompt": PROMPT.decode()}), args.zoo / "vectors" / "logits.safetensors")


if __name__ == "__main__":
    main()
