# SPDX-License-Identifier: Apache-2.0
"""Waiting for things that happen by themselves: polled, with a deadline, never a bare sleep."""

import time


class TimedOut(AssertionError):
    """What was waited for did not happen."""


def until(what, check, seconds=30, every=0.05):
    """Calls check() until it returns something true, and returns that.

    `what` ends the sentence "timed out waiting for ..."; an exception that check() raises at the
    end is shown with it.
    """
    deadline = time.monotonic() + seconds
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
        time.sleep(every)


def another_second(stamp):
    """Until a time that Kubernetes wrote is over: it writes whole seconds."""
    until(f"{stamp} to be over",
          lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > stamp, 5)


def stays(what, check, seconds=1, every=0.05):
    """check() must hold for that long: the opposite of until()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert check(), f"did not stay so: {what}"
        time.sleep(every)
