# SPDX-License-Identifier: Apache-2.0
"""tests/LESSONS.md names tests that exist."""

import re

from support import paths


def named():
    """(file, name) of each test in the tables."""
    for line in (paths.TOP / "tests/LESSONS.md").read_text(encoding="utf-8").splitlines():
        file = None
        for text in re.findall(r"`([^`]+)`", line.split("|")[-2]) if line.startswith("| ") else ():
            if "/" in text:
                file = text
            elif file:
                yield file, text.split("[")[0]


def test_each_lesson_has_a_test_that_exists():
    found = list(named())
    assert len(found) > 50
    missing = [(file, name) for file, name in found
               if not re.search(rf"\b{re.escape(name)}\b",
                                (paths.TOP / "tests" / file).read_text(encoding="utf-8"))]
    assert not missing
