# SPDX-License-Identifier: Apache-2.0
"""Waiting for asynchronous results: polled with a deadline, never a bare sleep.

A deadline only catches what never happens, and is generous, for machines that are slow and busy
with other things.  A test that is about how long something takes measures that.
"""

import os
import time


class TimedOut(AssertionError):
    """What was waited for did not happen."""


def until(what, check, seconds=60, every=0.1):
    """Calls check() until it returns something true, and returns that.

    The first calls follow quickly, later ones each `every` seconds.  For an object of the API
    server there is Cluster.wait_for, which watches.  `what` completes "still waiting for ..."; an
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
    """The limit for what is promised within `seconds`: longer while the load exceeds the CPUs."""
    return seconds * (3 if os.getloadavg()[0] > os.cpu_count() else 1)


def another_second(stamp):
    """Waits until a time that Kubernetes wrote is over: it writes whole seconds."""
    until(f"{stamp} to be over",
          lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > stamp, 10)


def stays(what, check, seconds=1, every=0.05):
    """Asserts that check() stays true for that long: the opposite of until()."""
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
