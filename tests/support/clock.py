# SPDX-License-Identifier: Apache-2.0
"""A wall clock that a test may set, for stewards alone: that of the machine stays as it is.

libfaketime puts it before the program, and reads from a file how far it is off, again each second.
The clock that never steps, file times and sleeping stay true.
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
    """What has to come first: the runtime of a sanitizer insists on it."""
    linked = cluster.run(["ldd", binary], check=False).stdout
    return re.findall(r"=> (\S+/lib[at]san\S*)", linked) + [str(library())]


class Clock:
    """UTC by this clock, which starts out right."""

    def __init__(self, folder):
        self.file = folder / "clock"
        self.ahead = 0
        self.set(0)

    def env(self, binary):
        """The environment of a program that goes by it."""
        return {**os.environ, "LD_PRELOAD": ":".join(_preloaded(binary)),
                "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}

    def set(self, ahead):
        """So many seconds ahead of the true time; negative: behind it."""
        self.ahead = ahead
        new = self.file.with_suffix(".new")
        new.write_text(f"{ahead:+}", "ascii")
        new.rename(self.file)

    def now(self):
        """What it shows."""
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead)

    def leap(self, instant, before):
        """To so many seconds before an instant, unless it is later already."""
        missing = int((instant - self.now()).total_seconds()) - before
        if missing > 0:
            self.set(self.ahead + missing)

    def wait_until(self, instant):
        """Until it shows this."""
        limit = (instant - self.now()).total_seconds() + 2
        wait.until(f"{instant} by steward's clock", lambda: self.now() >= instant, max(limit, 1))
