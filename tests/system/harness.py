"""What the tests of the command share: running it, judging a refusal, counting results."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
MILLRACE = str(BUILD / "millrace")


class Skip(Exception):
    pass


class Place:
    """A folder of the test's own, removed at the end."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="millrace-test-"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, data):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def name(self, name):
        return str(self.path / name)

    def listing(self):
        return sorted(str(p.relative_to(self.path)) for p in self.path.rglob("*"))


def run(*args, env=None, cwd=None, timeout=300):
    """(exit code, stdout, stderr) as bytes."""
    p = subprocess.run([MILLRACE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env={**os.environ, **(env or {})}, cwd=cwd, timeout=timeout)
    return p.returncode, p.stdout, p.stderr


def succeed(*args, **more):
    code, out, err = run(*args, **more)
    assert code == 0, "exit %d: %s" % (code, err.decode(errors="replace"))
    return out, err


def succeed_json(*args, **more):
    out, _ = succeed(*args, "--json", **more)
    assert out.count(b"\n") == 1 and out.endswith(b"\n"), "not one line: %r" % out[:200]
    return json.loads(out)


def refuse(words, *args, code=None, place=None, **more):
    """One clear line on stderr with all the words, nothing on stdout, non-zero exit, nothing left behind."""
    before = place.listing() if place else None
    got, out, err = run(*args, **more)
    text = err.decode(errors="replace")
    assert got != 0 and got < 128 or got == 130, "exit %d: %s" % (got, text)
    assert code is None or got == code, "exit %d instead of %d: %s" % (got, code, text)
    assert text.startswith("millrace: ") and text.count("\n") == 1 and text.endswith("\n"), \
        "not one line: %r" % text
    assert len(text) < 600, "a line of %d bytes" % len(text)
    for word in [words] if isinstance(words, str) else words:
        assert word in text, "%r is not in %r" % (word, text)
    assert out == b"", "stdout: %r" % out[:200]
    if place:
        assert place.listing() == before, "left behind: %s" % (set(place.listing()) - set(before))


def devices():
    return {d["uri"]: d for d in succeed_json("devices")["devices"]}


def have(uri):
    d = devices().get(uri)
    if not d or not d["available"]:
        raise Skip("%s: %s" % (uri, d["reason"] if d else "not listed"))


def main(tests):
    """Runs the test functions and ends with the line that tools/run-tests reads."""
    passed = failed = skipped = 0
    only = sys.argv[1:]
    for test in tests:
        if only and not any(word in test.__name__ for word in only):
            continue
        try:
            test()
            passed += 1
        except Skip as why:
            print("skipped %s: %s" % (test.__name__, why))
            skipped += 1
        except Exception:
            print("FAILED %s" % test.__name__)
            traceback.print_exc(file=sys.stdout)
            failed += 1
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    sys.exit(failed != 0)
