"""How bits per dimension suffer from errors of products: python3 sensitivity.py FILE...

Every product of a linear layer or convolution (operands in bf16; attention's own products are left alone) gets an
independent relative error of the given deviation, as its equal in the sum: a normal error of that deviation times the root
of the sum of the products' squares. The first 300 held-out images. A model of error, not of the multiplier.
"""
import argparse
import pathlib

import torch
import torch.nn.functional as F

import data
import files
import flows

ERRORS = (0.0, 0.0033, 0.0060, 0.0103)


def with_error(deviation):
    """The stand-ins for flows.lin and flows.conv."""
    rounded = lambda x: x.bfloat16().float()

    def disturbed(product, x, w, bias):
        x, w = rounded(x), rounded(w)
        y = product(x, w)
        y = y + deviation * product(x * x, w * w).clamp(min=0).sqrt() * torch.randn_like(y)
        return y if bias is None else y + bias

    def lin(x, w, bias, bf16):
        return disturbed(F.linear, x, w, bias)

    def conv(x, w, bias, bf16):
        if w.shape[1] == 1:
            return lin(x, w[:, 0, 0], bias, bf16)
        product = lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2),
                                        padding=w.shape[1] // 2).permute(0, 2, 3, 1)
        return disturbed(product, x, w, bias)

    return lin, conv


if __name__ == "__main__":
    args = argparse.ArgumentParser()
    args.add_argument("files", nargs="+", type=pathlib.Path)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for path in args.parse_args().files:
        p, cfg, _ = files.read(path)
        pixels, index = data.split(cfg["data"])[2]
        line = []
        for deviation in ERRORS:
            flows.lin, flows.conv = with_error(deviation)
            flows.lin_last = flows.lin
            line.append(flows.score(p, cfg, (pixels[:300], index[:300])))
        print(f"{path.stem}: {line[0]:.4f}", *(f"{100 * (v / line[0] - 1):+.2f} %" for v in line[1:]))
