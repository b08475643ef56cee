# SPDX-License-Identifier: Apache-2.0
"""State that workers share through files: a queue of test files (one path a line, locked while it
is changed), and the users of one cluster."""

import contextlib
import fcntl
import pathlib
import time


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


class Users:
    """The workers of one cluster.  One brings it up and writes that to the file.  The others lock
    the file while they use the cluster; the first one waits for them before it ends the cluster."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.file = open(path, "a+", encoding="utf-8")

    def tell(self, state):
        """Writes "up", or "down", which is final."""
        self.file.write(f"{state}\n")
        self.file.flush()

    def wait_up(self, seconds):
        """Waits until the state is known; returns whether the cluster is up."""
        deadline = time.monotonic() + seconds
        while not left(self.path) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left(self.path) == ["up"]

    def hold(self):
        """Locks the file, shared, until this process ends."""
        fcntl.flock(self.file, fcntl.LOCK_SH)

    def wait_alone(self, seconds):
        """Waits until no other worker locks the file; false when one still does after that time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)
