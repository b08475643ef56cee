# SPDX-License-Identifier: Apache-2.0
"""CPU time of a process in nanoseconds, which does not depend on the load of the machine."""

import contextlib
import pathlib

from . import paths


def allowed(limit_s):
    """The limit in seconds: as given for a release, ten times that with a sanitizer."""
    return 10 * limit_s if paths.sanitizer() else limit_s


def seconds(pid):
    """User and system time of all its running threads."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9
