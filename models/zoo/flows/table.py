"""The README's table from results.json: python3 table.py --update README.md"""
import argparse
import json
import pathlib

import data

MARK = "<!-- table -->"

if __name__ == "__main__":
    args = argparse.ArgumentParser()
    args.add_argument("--update", type=pathlib.Path, help="replace the part between the marks of this file")
    args = args.parse_args()
    lines = ["| model | training images | validation | held out, all | test | test, bf16 networks | parameters | bytes "
             "| steps | seconds |", "|" + "---|" * 10]
    for name, r in sorted(json.loads((data.HERE / "results.json").read_text()).items()):
        lines.append(f"| {name} | " + " | ".join(f"{r[k]:.4f}" for k in (
            "bpd_train", "bpd_validation", "bpd_heldout", "bpd_test", "bpd_test_bf16")) +
            f" | {r['parameters']:,} | {r['bytes']:,} | {r['steps']} | {r['seconds']} |")
    table = "\n".join(lines)
    if args.update:
        before, _, after = args.update.read_text().split(MARK)
        args.update.write_text(f"{before}{MARK}\n{table}\n{MARK}{after}")
    else:
        print(table)
