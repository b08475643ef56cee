# SPDX-License-Identifier: Apache-2.0
"""Temporary folders for the data of servers, in memory if enough is free.

Servers sync their files with the disk at each write.  Tests kill processes and never the machine,
so syncing proves nothing here, and costs minutes on a disk that others use.
"""

import functools
import os
import pathlib
import re
import shutil
import tempfile

MEMORY = pathlib.Path("/dev/shm")
ROOM = 2 << 30  # bytes that have to be free there


def folder(purpose):
    """A new folder; the caller removes it.  Its name has the process ID of its owner, so that the
    next run finds what a killed one left."""
    base = _base()
    _sweep(base)
    return pathlib.Path(tempfile.mkdtemp(prefix=f"steward-{purpose}-{os.getpid()}-", dir=base))


def _base():
    if os.access(MEMORY, os.W_OK | os.X_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= ROOM:
            return MEMORY
    return pathlib.Path(tempfile.gettempdir())


@functools.cache
def _sweep(base):
    """Removes the folders of processes that are gone."""
    for left in base.glob("steward-*-*-*"):
        owner = re.fullmatch(r"steward-[a-z]+-(\d+)-[^-]*", left.name)
        if owner and not _alive(int(owner[1])):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid):
    return pathlib.Path("/proc", str(pid)).exists()
