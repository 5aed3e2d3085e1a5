"""Images, splits and dequantisation of the flows (FORMAT.md has the definitions).

`python3 data.py` writes digits.npy from scikit-learn's copy of the UCI digits.
"""
import gzip
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist
LEVELS = {"digits": 17, "fashion": 256}


def idx(path):
    """The images of an IDX file, one row each."""
    raw = gzip.decompress(path.read_bytes())
    count, rows, columns = np.frombuffer(raw, ">u4", 3, 4)
    return np.frombuffer(raw, np.uint8, offset=16).reshape(count, rows * columns)


def split(data):
    """(training, validation, held out) as (pixels, index of each image). Settings are chosen on validation alone."""
    if data == "digits":
        pixels = np.load(HERE / "digits.npy")
        index = np.arange(len(pixels))
        held, valid = index % 5 == 4, index % 15 == 3
        parts = [~held & ~valid, valid, held]
        return [(pixels[p], index[p]) for p in parts]
    pixels = idx(FASHION / "train-images-idx3-ubyte.gz")
    index, valid = np.arange(len(pixels)), np.arange(len(pixels)) % 60 == 3
    held = idx(FASHION / "t10k-images-idx3-ubyte.gz")
    return [(pixels[~valid], index[~valid]), (pixels[valid], index[valid]), (held, np.arange(len(held)))]


def mix32(h):
    h = np.asarray(h, np.uint32)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x7feb352d)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x846ca68b)
    return h ^ (h >> np.uint32(16))


def noise(index, pixels):
    """The fixed u in (0, 1) of each image (by its index) and pixel."""
    h = np.asarray(index)[:, None] * pixels + np.arange(pixels) + 1
    return ((mix32(h) >> np.uint32(16)) + 0.5) / 65536


def scaled(v, u, data):
    """Pixels v and noise u to x in (-1, 1), fp32."""
    return (2 * (v + u) / LEVELS[data] - 1).astype(np.float32)


def quantised(x, data):
    """The pixel values back from x."""
    n = LEVELS[data]
    return np.clip(np.floor((np.asarray(x, np.float64) + 1) * n / 2), 0, n - 1).astype(np.uint8)


def to_tokens(x, cfg):
    """[images, pixels] to [images, tokens, channels]: the grid's patches row by row, each patch's pixels row by row."""
    g, n = cfg["grid"], len(x)
    side = round(x.shape[1] ** 0.5)
    p = side // g
    return x.reshape(n, g, p, g, p).swapaxes(2, 3).reshape(n, g * g, p * p)


def to_pixels(x, cfg):
    g, n = cfg["grid"], len(x)
    p = round(x.shape[2] ** 0.5)
    return x.reshape(n, g, g, p, p).swapaxes(2, 3).reshape(n, g * p * g * p)


if __name__ == "__main__":
    from sklearn.datasets import load_digits
    np.save(HERE / "digits.npy", load_digits().data.astype(np.uint8))
