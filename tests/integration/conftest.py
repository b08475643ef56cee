# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that drive the door alone: `steward webhook` needs no cluster."""

import pytest

from support.door import Door


@pytest.fixture(scope="module")
def door(steward_binary, tmp_path_factory):
    """A door for the whole module."""
    one = Door(steward_binary, tmp_path_factory.mktemp("door")).start()
    yield one
    assert one.stop() == 0, one.log_text()


@pytest.fixture
def make_door(steward_binary, tmp_path):
    """make_door(*flags): a door of the test's own, stopped at its end."""
    started = []

    def make(*args):
        one = Door(steward_binary, tmp_path / f"door-{len(started)}", args)
        started.append(one)
        return one.start()
    yield make
    for one in started:
        assert one.stop() == 0, one.log_text()
