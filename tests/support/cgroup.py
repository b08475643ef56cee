# SPDX-License-Identifier: Apache-2.0
"""A memory control group for a test, v1 or v2."""

import contextlib
import os
import pathlib

import pytest

_ROOT = pathlib.Path("/sys/fs/cgroup")


class Memory:
    """A group with a limit; processes enter it by `join` before they start the program."""

    def __init__(self, name, limit):
        first = (_ROOT / "memory").is_dir()
        parent = _ROOT / "memory" if first else _ROOT
        self.path = parent / name
        self.path.mkdir()
        limits = ["memory.limit_in_bytes"] if first else ["memory.max", "memory.swap.max"]
        for file, value in zip(limits, (limit, 0)):
            with contextlib.suppress(FileNotFoundError) if "swap" in file else contextlib.nullcontext():
                (self.path / file).write_text(str(value))
        self._peak = self.path / ("memory.max_usage_in_bytes" if first else "memory.peak")

    def join(self):
        """For subprocess' preexec_fn."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def program(self, binary, path):
        """A script at `path` that runs the program inside."""
        path.write_text(f'#!/bin/sh\necho $$ >{self.path}/cgroup.procs\nexec {binary} "$@"\n')
        path.chmod(0o755)
        return path

    def peak(self):
        """The peak of the memory in use, 0 where the kernel does not report it."""
        return int(self._peak.read_text()) if self._peak.exists() else 0

    def close(self):
        """Removes it; its processes must have ended."""
        self.path.rmdir()


@contextlib.contextmanager
def limited(limit):
    """A Memory; skips the test where none can be made, and prints the peak at the end."""
    try:
        group = Memory(f"steward-test-{os.getpid()}", limit)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield group
        print(f"peak {group.peak() / (1 << 20):.1f} MiB")
    finally:
        group.close()
