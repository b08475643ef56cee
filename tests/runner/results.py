# SPDX-License-Identifier: Apache-2.0
"""What the workers of a part report, test by test: pytest through plugin.py, meson through its
testlog.json, scripts/lint through its lines."""

import dataclasses
import json
import pathlib
import re

# flaky: it failed, and passed when it ran once more, alone
OUTCOMES = ("passed", "failed", "skipped", "xfailed", "flaky")


@dataclasses.dataclass
class Test:
    """One test that has ended, or a program of several tests."""

    name: str
    outcome: str
    seconds: float = 0
    text: str = ""
    counts: tuple = ()  # of a program: how many of each of OUTCOMES

    def count(self, outcome):
        """How many tests of this outcome it is."""
        return self.counts[OUTCOMES.index(outcome)] if self.counts else int(self.outcome == outcome)


class Lines:
    """The whole lines that a growing file got since the last look."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.offset = 0

    def new(self):
        """Those lines, without their ends."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[:text.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole.decode("utf-8", "replace").splitlines()


class PytestReport:
    """What plugin.py writes."""

    def __init__(self, path):
        self.lines = Lines(path)
        self.tests = []
        self.running = ""

    def look(self):
        """Reads the new lines."""
        for line in self.lines.new():
            found = json.loads(line)
            if "start" in found:
                self.running = found["start"]
            else:
                self.running = ""
                self.tests.append(Test(found["id"], found["outcome"], found["seconds"], found["text"]))


_CMOCKA = {
    "passed": re.compile(r"\[  PASSED  \] (\d+) test"),
    "failed": re.compile(r"\[  FAILED  \] (?:\S+: )?(\d+) test"),
    "skipped": re.compile(r"\[  SKIPPED \] (?:\S+: )?(\d+) test"),
}


def of_program(entry):
    """A Test of one line of meson's testlog.json.  A cmocka program holds many tests, and reports on
    standard error how they went; each of them counts."""
    text = entry.get("stdout", "") + entry.get("stderr", "")
    counts = {o: sum(map(int, pattern.findall(text))) for o, pattern in _CMOCKA.items()}
    good = entry["result"] in ("OK", "EXPECTEDFAIL")
    if entry["result"] == "SKIP":
        counts = {"passed": 0, "failed": 0, "skipped": max(counts["skipped"], 1)}
    elif good and not any(counts.values()):
        counts["passed"] = 1
    elif not good and not counts["failed"]:
        counts["failed"] = 1  # it ended before it could report: a crash, a time-out
    outcome = "failed" if counts["failed"] else "passed" if counts["passed"] else "skipped"
    return Test(entry["name"].partition(" / ")[2], outcome, entry["duration"], text,
                tuple(counts.get(o, 0) for o in OUTCOMES))


class MesonReport:
    """meson's testlog.json, which grows with each program that has ended."""

    def __init__(self, path):
        self.lines = Lines(path)
        self.tests = []
        self.running = ""

    def look(self):
        """Reads the new lines."""
        self.tests += [of_program(json.loads(line)) for line in self.lines.new()]


_VERDICT = re.compile(r"^  (\w+) +(ok|FAILED|skipped) +(?:(\d+) min )?([\d.]+) s$")


class LintReport:
    """The lines of scripts/lint: a verdict, and what a failed check printed."""

    def __init__(self, path):
        self.lines = Lines(path)
        self.tests = []
        self.running = ""

    def look(self):
        """Reads the new lines."""
        outcomes = {"ok": "passed", "FAILED": "failed", "skipped": "skipped"}
        for line in self.lines.new():
            found = _VERDICT.match(line)
            if found:
                name, verdict, minutes, seconds = found.groups()
                self.tests.append(Test(name, outcomes[verdict], 60 * int(minutes or 0) + float(seconds)))
            elif self.tests and self.tests[-1].outcome != "passed":
                self.tests[-1].text += f"{line}\n"
