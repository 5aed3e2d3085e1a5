"""The zoo's table from results.json: python3 table.py [--update README.md]

The paired error is the standard error of the mean over 512-byte windows of the difference to `dense`.
"""
import argparse
import json
import math
import pathlib

from catalogue import ROWS

HERE = pathlib.Path(__file__).resolve().parent
MARK = "<!-- table -->"


def paired(a, b, size=512):
    """Mean difference in bits a byte between two runs' windows (the last may be short), and its standard error."""
    full = [(x - y) / size for x, y in zip(a[:-1], b[:-1])]
    mean = sum(full) / len(full)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in full) / (len(full) - 1) / len(full))


def table(results):
    out = ["| variant | what replaces the experts | layers | bits/byte | over dense | bytes a layer | parameters a layer "
           "| steps | file |", "|---|---|---|---|---|---|---|---|---|"]
    for name, what in ROWS.items():
        r = results.get(name)
        if not r:
            continue
        layers = ",".join(map(str, r["layers"])) or "none"
        difference = ""
        if name != "dense" and "dense" in results:
            difference = "{:+.4f} ± {:.4f}".format(*paired(r["window_bits"], results["dense"]["window_bits"]))
        cells = [f"{r[k] // len(r['layers']) if k == 'parameters' else r[k]:,}" if k in r else ""
                 for k in ("stored_bytes_per_layer", "parameters")]
        steps = f"{r['distil']} + {r['steps']}" if "steps" in r else ""
        kept = "yes" if name == "base" or (HERE / "variants" / f"{name}.safetensors").exists() else "no"
        out.append(f"| {name} | {what} | {layers} | {r['bits_per_byte']:.4f} | {difference} | {cells[0]} | {cells[1]} | "
                   f"{steps} | {kept} |")
    return "\n".join(out)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--results", type=pathlib.Path, default=HERE / "results.json")
    a.add_argument("--update", type=pathlib.Path, help="replace the table between the marks of this file")
    args = a.parse_args()
    text = table(json.loads(args.results.read_text()))
    if args.update:
        before, _, after = args.update.read_text().split(MARK)
        args.update.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}")
    print(text)


if __name__ == "__main__":
    main()
