# SPDX-License-Identifier: Apache-2.0
"""Guards that run.py removes from steward, to see that a test notices."""

import typing


class Mutant(typing.NamedTuple):
    """One removed guard."""

    lesson: str  # of tests/LESSONS.md, or an invariant of the plan
    what: str  # the guard
    edits: list  # [(file, text, what it becomes)]
    tests: list  # one of them has to fail: "module/name" or "module/name:function" of tests/unit,
    #              or a pytest of tests/integration or tests/e2e
