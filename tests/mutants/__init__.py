# SPDX-License-Identifier: Apache-2.0
"""Guards that can be taken out of steward, to see that a test notices (run.py)."""

import typing


class Mutant(typing.NamedTuple):
    """One guard less."""

    lesson: str  # of tests/LESSONS.md, or an invariant of the plan
    what: str  # the guard
    edits: list  # [(file, text, what it becomes)]
    tests: list  # one of them has to fail: "room/name" or "room/name:function" of tests/unit, or a
    #              pytest of tests/integration or tests/e2e
