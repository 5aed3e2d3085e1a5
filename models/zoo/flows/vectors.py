"""Reference vectors for other readers: python3 vectors.py writes vectors/NAME.safetensors for every committed flow.

A few held-out images: the fp32 x that goes in, and z and the log determinant of check.py's float64 pass. `index` are the
images' indices in their file.
"""
import numpy as np
from safetensors.numpy import save_file

import check
import data

COUNT = {"digits": 8, "fashion": 2}

if __name__ == "__main__":
    (data.HERE / "vectors").mkdir(exist_ok=True)
    for path in sorted(data.HERE.glob("*.safetensors")):
        flow, _ = check.committed(path.stem)
        part = data.split(flow.data)[2]
        x = check.images(flow, part, COUNT[flow.data])
        z, logdet = flow.forward(x)
        tensors = dict(x=x.astype(np.float32), z=z, logdet=logdet, bpd=check.bpd(z, logdet, flow.levels),
                       index=part[1][:len(x)].astype(np.int32))
        out = data.HERE / "vectors" / path.name
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, out,
                  dict(format="millrace-flow-vectors-1", name=path.stem))
        out.chmod(0o644)
