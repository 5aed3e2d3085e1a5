"""Files for the tests of the command, made with nothing but Python itself: safetensors, .npy, small models."""
import hashlib
import json
import math
import random
import struct

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I16": 2, "I8": 1, "U8": 1}
CODES = {"F32": "f", "I16": "h", "I8": "b", "U8": "B", "F16": "e"}


def bf16(v):
    return (struct.unpack("<I", struct.pack("<f", v))[0] + 0x8000) >> 16 & 0xFFFF


def pack(dtype, values):
    if dtype == "BF16":
        return struct.pack("<%dH" % len(values), *(bf16(v) for v in values))
    return struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)


class Tensors:
    """A safetensors file being made: tensors {name: (dtype, shape, values)}, and its metadata."""

    def __init__(self):
        self.tensors, self.metadata = {}, {}

    def add(self, name, dtype, shape, values):
        self.tensors[name] = (dtype, list(shape), pack(dtype, values))

    def header(self):
        out, at = {}, 0
        if self.metadata:
            out["__metadata__"] = self.metadata
        for name, (dtype, shape, data) in self.tensors.items():
            out[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        return out

    def data(self):
        return b"".join(t[2] for t in self.tensors.values())

    def bytes(self, header=None):
        text = header if isinstance(header, bytes) else json.dumps(header or self.header()).encode()
        return struct.pack("<Q", len(text)) + text + self.data()


def seed(out, rng, name, rows, cols, n=8, terms=1, scaled=False, gain=1.0):
    """Adds a projection in the seed format."""
    d, planes = 1 << n, n * (n - 1) // 2
    chunks = [-(-rows // d), -(-cols // d)]
    count = terms * chunks[0] * chunks[1]
    out.add(name + ".angles", "I16", [terms, *chunks, 2, planes],
            [rng.randrange(-32768, 32768) for _ in range(count * 2 * planes)])
    out.add(name + ".gain", "F32", [terms, *chunks], [rng.gauss(0, gain) for _ in range(count)])
    out.add(name + ".odd", "U8", [terms, *chunks], [rng.randrange(2) for _ in range(count)])
    if scaled:
        out.add(name + ".row_scale", "F32", [rows], [rng.gauss(0, 1) for _ in range(rows)])
    out.metadata[name + ".n"] = str(n)
    out.metadata[name + ".shape"] = "%d,%d" % (rows, cols)


CONFIG = dict(d_model=32, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=16, d_ff=48, n_experts=4, top_k=2,
              vocab=256, context=64, rope_theta=10000.0, norm_eps=1e-5)


def base_model(rng, config=None):
    c = {**CONFIG, **(config or {})}
    out = Tensors()
    out.metadata = {"millrace.format": "millrace-lm", "millrace.version": "1",
                    "millrace.config": json.dumps(c)}

    def matrix(name, rows, cols):
        out.add(name, "BF16", [rows, cols], [rng.gauss(0, 1 / math.sqrt(cols)) for _ in range(rows * cols)])

    d, q, kv = c["d_model"], c["n_heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
    matrix("tok_embed", c["vocab"], d)
    matrix("lm_head", c["vocab"], d)
    out.add("norm", "F32", [d], [1.0] * d)
    for i in range(c["n_layers"]):
        p = "layers.%d." % i
        out.add(p + "attn_norm", "F32", [d], [1.0] * d)
        out.add(p + "ffn_norm", "F32", [d], [1.0] * d)
        matrix(p + "wq", q, d)
        matrix(p + "wk", kv, d)
        matrix(p + "wv", kv, d)
        matrix(p + "wo", d, q)
        matrix(p + "router", c["n_experts"], d)
        for e in range(c["n_experts"]):
            matrix(p + "experts.%d.w1" % e, c["d_ff"], d)
            matrix(p + "experts.%d.w3" % e, c["d_ff"], d)
            matrix(p + "experts.%d.w2" % e, d, c["d_ff"])
    return out


def rotor_variant(rng, base_bytes, layers=(1,), terms=2, base_name="base.safetensors", config=None):
    c = {**CONFIG, **(config or {})}
    out = Tensors()
    out.metadata = {"millrace.format": "millrace-lm-variant", "millrace.version": "1",
                    "millrace.base": base_name, "millrace.kind": "rotor",
                    "millrace.base_sha256": hashlib.sha256(base_bytes).hexdigest(),
                    "millrace.replaced": ",".join(map(str, layers))}
    d, f = c["d_model"], c["d_ff"]
    for i in layers:
        out.add("layers.%d.router" % i, "BF16", [c["n_experts"], d],
                [rng.gauss(0, 0.3) for _ in range(c["n_experts"] * d)])
        for e in range(c["n_experts"]):
            for name, rows, cols in (("w1", f, d), ("w3", f, d), ("w2", d, f)):
                seed(out, rng, "layers.%d.experts.%d.%s" % (i, e, name), rows, cols, terms=terms)
    return out


def npy(shape, values, descr="<f4", order="False", version=1, shape_text=None):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (
        descr, order, shape_text or "(%s)" % "".join("%d, " % n for n in shape))
    prefix = 10 if version == 1 else 12
    text += " " * (-(prefix + len(text) + 1) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + pack("F32", values)


def read_npy(data):
    """(shape, floats) of what the command writes."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    n = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + n].decode(), {"__builtins__": {}}, {"False": False, "True": True})
    assert header["descr"] == "<f4" and header["fortran_order"] is False
    body = data[10 + n:]
    return header["shape"], struct.unpack("<%df" % (len(body) // 4), body)


def read_safetensors(data):
    """({name: (dtype, shape, bytes)}, metadata)"""
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    metadata = header.pop("__metadata__", {})
    body = data[8 + n:]
    return {k: (v["dtype"], v["shape"], body[slice(*v["data_offsets"])]) for k, v in header.items()}, metadata


def seeded(default=None):
    import os
    import time
    seed = int(os.environ.get("MR_SEED") or default or time.time())
    print("MR_SEED=%d" % seed)
    return random.Random(seed)
