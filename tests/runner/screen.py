# SPDX-License-Identifier: Apache-2.0
"""What a run shows: a line per part while it runs, then failures, the slowest tests and the sum."""

import shutil
import sys
import time

from . import scheduler as schedule
from .results import OUTCOMES

SLOWEST = 10
LINES_OF_A_FAILURE = 25
EVERY_SECONDS = 60  # without a terminal


def duration(seconds):
    """As scripts/lib/common.sh writes it."""
    seconds = int(seconds * 10) / 10
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


class Numbers:
    """The current sums of a part."""

    def __init__(self, runs, part):
        ones = runs.of(part)
        tests = [test for one in ones for test in one.worker.report.tests]
        self.done = len(tests)
        self.outcomes = {o: sum(test.count(o) for test in tests) for o in OUTCOMES}
        self.cpu = sum(one.cpu for one in ones)
        ends = [one.end or time.monotonic() for one in ones]
        self.wall = max(ends) - min(one.begin for one in ones) if ones else 0
        self.running = [one.worker.report.running for one in ones
                        if one.status is None and one.worker.report.running]
        self.state = "waits" if not ones else "ended" if runs.has_ended(part) else "runs"
        self.trouble = [t for t in map(schedule.trouble, (o for o in ones if o.status is not None)) if t]
        if self.state == "ended" and not self.trouble and schedule.unfinished(runs, part):
            self.trouble.append(f"{schedule.unfinished(runs, part)} of its {part.total} tests did not run")
        if part.error:
            self.state, self.trouble = "ended", ["its tests could not be collected"]
        self.outcomes["failed"] += len(self.trouble)

    def counts(self):
        """The counts as text, without those that are zero."""
        return ", ".join(f"{n} {o}" for o, n in self.outcomes.items() if n) or "nothing ran"


def line(runs, part):
    """The line of a part."""
    now = Numbers(runs, part)
    width = max(len(p.name) for p in runs.parts)
    if now.state == "waits":
        return f"  {part.name:{width}}  waits"
    if now.state == "ended":
        return (f"  {part.name:{width}}  {duration(now.wall):>12}  {now.counts()}"
                f"  (CPU {duration(now.cpu)})")
    failed = f"  {now.outcomes['failed']} failed" if now.outcomes["failed"] else ""
    test = now.running[0].rpartition("/")[2] if now.running else ""
    return f"  {part.name:{width}}  {duration(now.wall):>12}  {now.done}/{part.total}{failed}  {test}"


class Terminal:
    """All lines, redrawn in place."""

    def __init__(self, out=sys.stderr):
        self.out = out
        self.lines = 0
        self.last = 0

    def __call__(self, runs):
        if time.monotonic() - self.last >= 0.5:
            self.draw(runs)

    def draw(self, runs):
        """Redraws now."""
        self.last = time.monotonic()
        columns = shutil.get_terminal_size().columns - 1
        text = [line(runs, part)[:columns] for part in runs.parts]
        up = f"\033[{self.lines}A" if self.lines else ""
        self.out.write(up + "".join(f"\r\033[K{one}\n" for one in text))
        self.out.flush()
        self.lines = len(text)


class Log:
    """For CI: a line when a part starts, one when it has ended, and one a minute meanwhile."""

    def __init__(self, out=sys.stderr):
        self.out = out
        self.states = {}
        self.last = self.looked = time.monotonic()

    def __call__(self, runs):
        if time.monotonic() - self.looked >= 1:
            self.draw(runs)

    def draw(self, runs):
        """What has started or ended since the last look."""
        self.looked = time.monotonic()
        tick = self.looked - self.last >= EVERY_SECONDS
        if tick:
            self.last = self.looked
        for part in runs.parts:
            state = Numbers(runs, part).state
            if state != self.states.get(part.name, "waits") or (tick and state == "runs"):
                self.out.write(f"{time.strftime('%H:%M:%S')}{line(runs, part)}\n")
                self.out.flush()
            self.states[part.name] = state


def indented(text, lines=LINES_OF_A_FAILURE):
    """The last lines of a text, indented."""
    return "".join(f"    | {one}\n" for one in text.rstrip().splitlines()[-lines:])


def failures(runs):
    """Each failed test, with its message's end and the command that runs it again."""
    text = ""
    for part in runs.parts:
        if part.error:
            text += f"\nFAILED {part.name}: its tests could not be collected\n{indented(part.error)}" \
                    f"  again: {part.again}\n"
        for one in runs.of(part):
            for test in one.worker.report.tests:
                if test.outcome == "failed":
                    text += (f"\nFAILED {part.name}: {test.name}\n{indented(test.text)}"
                             f"  again: {part.again.format(name=test.name)}\n"
                             f"  log:   {one.worker.log}\n")
        for why in Numbers(runs, part).trouble if not part.error else ():
            logs = [one.worker.log for one in runs.of(part)]
            tails = "".join(indented(log.read_text("utf-8", "replace"), 15) for log in logs
                            if log.exists()) if len(logs) == 1 else ""
            text += f"\nFAILED {part.name}: {why}\n{tails}  logs:  {' '.join(map(str, logs))}\n"
    return text


def flaky(runs):
    """Each test that failed and passed when it ran once more: a fault of the test or of the product
    that has yet to be found."""
    text = ""
    for part in runs.parts:
        for test in (t for one in runs.of(part) for t in one.worker.report.tests):
            if test.outcome == "flaky":
                text += f"\nFLAKY {part.name}: {test.name}\n{indented(test.text)}"
    return text


def slowest(runs):
    """The tests that took longest."""
    tests = [(test, part) for part in runs.parts for one in runs.of(part)
             for test in one.worker.report.tests if part.name != "lint"]
    tests.sort(key=lambda pair: -pair[0].seconds)
    rows = "".join(f"  {duration(test.seconds):>12}  {part.name}: {test.name}\n"
                   for test, part in tests[:SLOWEST])
    return f"\nSlowest tests\n{rows}" if rows else ""


def table(runs):
    """CPU and wall seconds of each part."""
    width = max([len(part.name) for part in runs.parts] + [4])
    text = f"\n{'part':{width}}  {'wall s':>7}  {'CPU s':>7}  passed failed skipped xfailed flaky\n"
    for part in runs.parts:
        now = Numbers(runs, part)
        text += (f"{part.name:{width}}  {now.wall:7.1f}  {now.cpu:7.1f}  "
                 + " ".join(f"{now.outcomes[o]:{len(o)}d}" for o in OUTCOMES) + "\n")
    return text


def comparisons(cases):
    """With which other implementations steward was compared: {(name, version): cases}."""
    rows = "".join(f"  {count:>9,}  {name} {version}\n" for (name, version), count in cases.items())
    return f"\nCases compared with other implementations\n{rows}" if rows else ""


def sums(runs):
    """{outcome: tests of all parts}"""
    every = [Numbers(runs, part).outcomes for part in runs.parts]
    return {o: sum(one[o] for one in every) for o in OUTCOMES}
