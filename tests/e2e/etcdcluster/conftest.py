# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests in this folder."""

import pytest
from support.etcdplayed import Played


@pytest.fixture
def ec(controller, installed, namespace, tmp_path):
    """A support.etcdplayed.Played that has not been applied yet."""
    assert controller.running()
    with Played(installed, namespace, tmp_path) as one:
        yield one
