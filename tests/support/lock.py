# SPDX-License-Identifier: Apache-2.0
"""What several workers want to do at the same time, and one after the other has to do."""

import contextlib
import fcntl


@contextlib.contextmanager
def held(path):
    """Waits until no other process holds the lock in this file, and holds it."""
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
