# SPDX-License-Identifier: Apache-2.0
"""A queue of test files that several workers share: a text file, one path a line, locked while it is
changed."""

import contextlib
import fcntl
import pathlib


def write(path, names):
    """A new queue."""
    pathlib.Path(path).write_text("".join(f"{name}\n" for name in names), "utf-8")


def left(path):
    """The names that no worker has taken yet."""
    return pathlib.Path(path).read_text("utf-8").split()


@contextlib.contextmanager
def _locked(path):
    with open(path, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def take(path):
    """The next name, which no other worker gets; "" when there is none."""
    with _locked(path) as file:
        names = file.read().split()
        file.seek(0)
        file.truncate()
        file.write("".join(f"{name}\n" for name in names[1:]))
    return names[0] if names else ""
