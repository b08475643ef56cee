# SPDX-License-Identifier: Apache-2.0
"""Stops one thread of a running process, with ptrace: the others go on."""

import contextlib
import ctypes
import os
import pathlib

_PTRACE_DETACH, _PTRACE_SEIZE, _PTRACE_INTERRUPT = 17, 0x4206, 0x4207
_WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace of thread {thread}: {os.strerror(number)}")


def threads(pid):
    """The threads of a process with their names, the main thread first."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return [(int(task.name), (task / "comm").read_text().strip())
            for task in sorted(tasks.iterdir(), key=lambda task: int(task.name))]


@contextlib.contextmanager
def thread(number):
    """Within the block, the thread does not run."""
    _ptrace(_PTRACE_SEIZE, number)
    try:
        _ptrace(_PTRACE_INTERRUPT, number)
        os.waitpid(number, _WALL)
        yield
    finally:
        try:
            _ptrace(_PTRACE_DETACH, number)
        except OSError:  # it has ended, and its process ends when that was seen
            os.waitpid(number, _WALL)
