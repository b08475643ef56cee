# SPDX-License-Identifier: Apache-2.0
"""Stopped processes, as a server that keeps its connections and answers nothing."""

import contextlib
import pathlib
import signal

from . import wait


def pause(process):
    """SIGSTOP, and waits until all threads have stopped: each may finish its work first."""
    process.send_signal(signal.SIGSTOP)
    wait.until(f"process {process.pid} to be stopped", lambda: stopped(process.pid))


def resume(process):
    """Undoes pause()."""
    process.send_signal(signal.SIGCONT)


def stopped(pid):
    """True when every thread of the process is stopped."""
    states = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rsplit(")", 1)[1].split()[0])
    return set(states) == {"T"}
