# SPDX-License-Identifier: Apache-2.0
"""tests/LESSONS.md names only tests that exist, and tests/mutants only guards that exist."""

import re

from mutants import databaseuser, lessons, plan
from support import paths

MUTANTS = [*plan.MUTANTS, *lessons.MUTANTS, *databaseuser.MUTANTS]


def named():
    """(file, name) of each test in the tables; a file of cases has no names."""
    for line in (paths.TOP / "tests/LESSONS.md").read_text(encoding="utf-8").splitlines():
        file = None
        for text in re.findall(r"`([^`]+)`", line.split("|")[-2]) if line.startswith("| ") else ():
            if text.endswith(".yaml"):
                yield text, ""
            elif "/" in text:
                file = text
            elif file:
                yield file, text.split("[")[0]


def found_in(file, name):
    """Whether a test file contains this name."""
    return re.search(rf"\b{re.escape(name)}\b",
                     (paths.TOP / "tests" / file).read_text(encoding="utf-8"))


def test_each_lesson_has_a_test_that_exists():
    found = list(named())
    assert len(found) > 50
    missing = [(file, name) for file, name in found if not found_in(file, name)]
    assert not missing


def wrong_with(mutant):
    """Edited texts that do not occur exactly once in their file, and tests that do not exist."""
    for file, text, _ in mutant.edits:
        if (paths.TOP / file).read_text(encoding="utf-8").count(text) != 1:
            yield f"{mutant.lesson} {mutant.what}: {file}: {text}"
    for test in mutant.tests:
        name, _, function = test.partition("::" if "::" in test else ":")
        room, _, module = name.rpartition("/")
        file = name if "::" in test else f"unit/{room.removeprefix('lib/')}/test_{module}.c"
        if name == "kinds/cases":
            file, function = f"cases/{function}.yaml", "cases"
        if not found_in(file, function or "main"):
            yield f"{mutant.lesson} {mutant.what}: {test}"


def test_each_mutant_can_be_made():
    """tests/mutants/run.py does not run every day, but must be up to date when it does."""
    assert not [text for mutant in MUTANTS for text in wrong_with(mutant)]


def test_each_lesson_of_etcd_has_a_mutant():
    tried = {label for mutant in MUTANTS for label in mutant.lesson.split(", ")}
    assert not {*(f"E{n}" for n in range(1, 16)), *(f"B{n}" for n in range(1, 9))} - tried
