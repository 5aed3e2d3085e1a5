"""The files that belong to the project: what the checks below this folder look at."""
import os
import subprocess


def files():
    """Sorted paths, relative to the root: what git tracks or would track."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True
        ).stdout.decode()
        paths = listed.split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive, or no git here
        paths = [
            os.path.relpath(os.path.join(folder, name), ".")
            for folder, folders, names in os.walk(".")
            for name in names
            if not folder.startswith(("./.git", "./build"))
        ]
    return sorted(p for p in paths if os.path.isfile(p))


def first_line(path):
    with open(path, "rb") as file:
        return file.readline(4096).decode(errors="replace")


def text(path):
    """The text of a file, or None when it is not text."""
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data[:4096]:
        return None
    return data.decode(errors="replace")
