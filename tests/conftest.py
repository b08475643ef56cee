# SPDX-License-Identifier: Apache-2.0
"""What the integration and the end-to-end tests share; see support/ for the words they use."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import paths  # noqa: E402  (the folder has to be on the path first)


@pytest.fixture(scope="session")
def steward_binary():
    """The program under test, as a path."""
    return paths.steward_binary()
