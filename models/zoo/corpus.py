"""The zoo's text: the King James Bible as Debian's bible-kjv-text ships it, and its fixed split.

One verse a line, without references, an empty line between chapters. Of every 36 chapters in order, the
19th is held out (it is what every table scores) and the 1st is for choosing settings; neither is trained on.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
HELD_OUT, VALIDATION, CYCLE = 18, 0, 36


def chapters():
    try:
        raw = subprocess.run(["bible", "-f", "-l", "1000000", "Genesis1:1-Revelation22:21"],
                             check=True, capture_output=True).stdout
    except FileNotFoundError:
        sys.exit("corpus: the command `bible` is absent: apt-get install bible-kjv bible-kjv-text")
    out, last = [], None
    for line in raw.decode("ascii").splitlines():
        chapter, text = re.fullmatch(r"(\w+?\d+):\d+ (.*)", line).groups()
        if chapter != last:
            out.append([])
            last = chapter
        out[-1].append(text.strip())
    return ["\n".join(verses) + "\n" for verses in out]


def split():
    """(train, validation, held-out) as bytes."""
    all_chapters = chapters()
    pick = lambda want: "\n".join(c for i, c in enumerate(all_chapters) if want(i % CYCLE)).encode()
    return (pick(lambda r: r not in (HELD_OUT, VALIDATION)), pick(lambda r: r == VALIDATION),
            pick(lambda r: r == HELD_OUT))


if __name__ == "__main__":
    train, validation, held_out = split()
    (HERE / "heldout.txt").write_bytes(held_out)
    print(f"train {len(train)} bytes, validation {len(validation)}, held out {len(held_out)}")
