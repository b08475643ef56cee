# SPDX-License-Identifier: Apache-2.0
"""What workers share through files: a queue of test files (one path a line, locked while it is changed),
and the use of one cluster."""

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
    """The workers of one cluster.  One of them brings it up and says so; the others hold the file while
    they use the cluster, and the first one waits for them before it ends the cluster."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.file = open(path, "a+", encoding="utf-8")

    def tell(self, state):
        """"up", or "down" for good."""
        self.file.write(f"{state}\n")
        self.file.flush()

    def wait_up(self, seconds):
        """Whether the cluster is there, as soon as that is known."""
        deadline = time.monotonic() + seconds
        while not left(self.path) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left(self.path) == ["up"]

    def hold(self):
        """Until this process ends."""
        fcntl.flock(self.file, fcntl.LOCK_SH)

    def wait_alone(self, seconds):
        """Until no other worker holds it; false when one still does after so long."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)
