#!/usr/bin/env python3
"""The decode step that docs/nic.md shows is what its command prints today."""
import os
import subprocess
import sys

BUILD = os.environ.get("BUILD", "build")


def main():
    made = subprocess.run([sys.executable, "docs/examples/decode_step.py", "--millrace", BUILD + "/millrace"],
                          stdout=subprocess.PIPE, check=False)
    with open("docs/nic.md", encoding="utf-8") as file:
        shown = "```\n" + made.stdout.decode() + "```\n" in file.read()
    good = made.returncode == 0 and shown
    if not good:
        print("nic_page: docs/examples/decode_step.py gave %d%s" %
              (made.returncode, "" if shown else "; docs/nic.md shows something else"))
    print("%d passed, %d failed" % (good, not good))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
