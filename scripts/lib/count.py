#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "PASSED FAILED SKIPPED" for a file of results: meson's testlog.json or JUnit XML.

A cmocka program holds many tests and says on standard error how they went; each of them counts.
"""

import json
import re
import sys
import xml.etree.ElementTree

PASSED = re.compile(r"\[  PASSED  \] (\d+) test")
FAILED = re.compile(r"\[  FAILED  \] \S+: (\d+) test|\[  FAILED  \] (\d+) test")
SKIPPED = re.compile(r"\[  SKIPPED \] \S+: (\d+) test|\[  SKIPPED \] (\d+) test")


def total(pattern, text):
    """The sum of the numbers that the pattern finds."""
    return sum(int(next(filter(None, m), 0)) if isinstance(m, tuple) else int(m)
               for m in pattern.findall(text))


def of_program(entry):
    """(passed, failed, skipped) of one line of testlog.json."""
    text = entry.get("stdout", "") + entry.get("stderr", "")
    counts = [total(pattern, text) for pattern in (PASSED, FAILED, SKIPPED)]
    good = entry["result"] in ("OK", "EXPECTEDFAIL")
    if entry["result"] == "SKIP":
        return 0, 0, max(counts[2], 1)
    if good and not any(counts):
        return 1, 0, 0
    if not good and counts[1] == 0:
        counts[1] = 1  # it ended before it could say so: a crash, a time-out
    return tuple(counts)


def of_junit(root):
    """(passed, failed, skipped) of a JUnit file."""
    cases = list(root.iter("testcase"))
    failed = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
    skipped = sum(c.find("skipped") is not None for c in cases)
    return len(cases) - failed - skipped, failed, skipped


def main(path):
    """Reads the file and prints the three numbers."""
    if path.endswith(".xml"):
        counts = of_junit(xml.etree.ElementTree.parse(path))
    else:
        with open(path, encoding="utf-8") as file:
            entries = [of_program(json.loads(line)) for line in file]
        counts = [sum(column) for column in zip(*entries)] or [0, 0, 0]
    print(*counts)


if __name__ == "__main__":
    main(sys.argv[1])
