# SPDX-License-Identifier: Apache-2.0
"""A wall clock that a test can set, for stewards only: the machine's clock is not changed.

libfaketime is preloaded into the program, and reads the offset from a file, again every second.
The monotonic clock, file times and sleeping stay true.  Without FORCE_MONOTONIC_FIX=0 a thread that
waits for a condition until a monotonic time spins: that fix is for an old fault of glibc.
"""

import datetime
import os
import pathlib
import re

from . import cluster, wait


def library():
    """libfaketime for programs with threads, or None."""
    return next(pathlib.Path("/").glob("usr/lib/**/faketime/libfaketimeMT.so.1"), None)


def _preloaded(binary):
    """What has to be preloaded first: the runtime of a sanitizer requires that."""
    linked = cluster.run(["ldd", binary], check=False).stdout
    return re.findall(r"=> (\S+/lib[at]san\S*)", linked) + [str(library())]


class Clock:
    """UTC by this clock, whose offset is 0 at first."""

    def __init__(self, folder):
        self.file = folder / "clock"
        self.ahead = 0
        self.set(0)

    def env(self, binary):
        """The environment of a program that uses it."""
        return {**os.environ, "LD_PRELOAD": ":".join(_preloaded(binary)),
                "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0",
                "NO_FAKE_STAT": "1"}

    def set(self, ahead):
        """Sets the clock `ahead` seconds ahead of the true time; negative: later than it shows."""
        self.ahead = ahead
        new = self.file.with_suffix(".new")
        new.write_text(f"{ahead:+}", "ascii")
        new.rename(self.file)

    def now(self):
        """The time that it shows."""
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead)

    def leap(self, instant, before):
        """Sets the clock to `before` seconds before an instant, unless it is later already."""
        missing = int((instant - self.now()).total_seconds()) - before
        if missing > 0:
            self.set(self.ahead + missing)

    def wait_until(self, instant):
        """Waits until it shows this instant."""
        limit = (instant - self.now()).total_seconds() + 2
        wait.until(f"{instant} by steward's clock", lambda: self.now() >= instant, max(limit, 1))
