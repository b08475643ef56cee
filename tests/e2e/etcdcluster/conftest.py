# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests in this folder."""

import pytest
from support.etcdlocal import LocalEtcd


@pytest.fixture
def ec(controller, installed, namespace, tmp_path):
    """A support.etcdlocal.LocalEtcd that has not been applied yet."""
    assert controller.running()
    with LocalEtcd(installed, namespace, tmp_path) as one:
        yield one
