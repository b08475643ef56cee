# SPDX-License-Identifier: Apache-2.0
"""Waiting for things that happen by themselves: polled with a deadline, never a bare sleep.

A deadline is for what never happens, also on a machine that is slow and busy with other things: it
is generous.  Where it is the point how long something takes, a test measures that.
"""

import os
import time


class TimedOut(AssertionError):
    """What was waited for did not happen."""


def until(what, check, seconds=60, every=0.1):
    """Calls check() until it returns something true, and returns that.

    It looks often at first, and then each `every` seconds.  For an object of the API server there is
    Cluster.wait_for, which watches.  `what` ends the sentence "timed out waiting for ..."; an
    exception that check() raises at the end is shown with it.
    """
    deadline = time.monotonic() + seconds
    pause = min(0.005, every)
    while True:
        failure = None
        try:
            result = check()
            if result:
                return result
        except Exception as error:
            failure = error
            result = None
        if time.monotonic() >= deadline:
            raise TimedOut(f"after {seconds} s still waiting for {what}; "
                           f"last: {result!r}") from failure
        time.sleep(pause)
        pause = min(1.5 * pause, every)


def within(seconds):
    """How long it may take what is promised within so many seconds: longer where more wants to run
    than can."""
    return seconds * (3 if os.getloadavg()[0] > os.cpu_count() else 1)


def another_second(stamp):
    """Until a time that Kubernetes wrote is over: it writes whole seconds."""
    until(f"{stamp} to be over",
          lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > stamp, 10)


def stays(what, check, seconds=1, every=0.05):
    """check() must hold for that long: the opposite of until()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert check(), f"did not stay so: {what}"
        time.sleep(every)


def happens(check, seconds=1, every=0.05):
    """Whether check() becomes true within that long."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every)
    return True
