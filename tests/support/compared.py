# SPDX-License-Identifier: Apache-2.0
"""Records with which other implementations a test run compared steward, and on how many cases:
scripts/test prints a line for each in its summary."""

import os
import pathlib

FILE = "STEWARD_TEST_COMPARED"  # the file that a run appends to; unset: nothing is recorded


def note(name, version, cases):
    """One line "NAME<tab>VERSION<tab>CASES"; concurrent runs may share the file."""
    assert cases > 0, f"nothing was compared with {name} {version}"
    path = os.environ.get(FILE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{name}\t{version}\t{cases}\n")


def noted(path):
    """{(name, version): cases} of a file that note() wrote, in the order of their names."""
    sums = {}
    if os.path.exists(path):
        for line in pathlib.Path(path).read_text("utf-8").splitlines():
            name, version, cases = line.split("\t")
            sums[name, version] = sums.get((name, version), 0) + int(cases)
    return dict(sorted(sums.items()))
