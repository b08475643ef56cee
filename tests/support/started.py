# SPDX-License-Identifier: Apache-2.0
"""Records which servers a test run really started, and their versions: tests/tested compares this
with README's table "Tested with"."""

import os
import pathlib

FILE = "STEWARD_TEST_STARTED"  # the file that a run appends to; unset: nothing is recorded


def note(server, version):
    """One line "SERVER VERSION", once for each start; concurrent runs may share the file."""
    path = os.environ.get(FILE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{server} {version}\n")


def noted(path):
    """{server: {version, ...}} of a file that note() wrote."""
    found = {}
    for line in pathlib.Path(path).read_text("utf-8").splitlines():
        server, _, version = line.partition(" ")
        found.setdefault(server, set()).add(version)
    return found
