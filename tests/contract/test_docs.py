# SPDX-License-Identifier: Apache-2.0
"""docs/contract.md shows the current table of differences."""

import pytest

from support import differences, paths


def test_page_ends_with_the_table_of_differences():
    """The page ends with the rows of support/differences.py."""
    page = (paths.TOP / "docs" / "contract.md").read_text("utf-8")
    assert page.endswith("|---|---|\n" + differences.markdown())


@pytest.mark.parametrize("minor, behaviour", [(20, "dropped"), (29, "dropped"), (30, "kept"),
                                              (36, "kept"), (37, "dropped"), (40, "dropped")])
def test_table_entry_applies_up_to_the_next(minor, behaviour):
    """An entry of the table applies up to the next."""
    assert differences.of("grace-period", minor) == behaviour
