# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of Erus."""

import pytest
from support import eru
from support import steward as stw


@pytest.fixture
def kubelet(installed, namespace, pods_stay_pending):
    """Pods of the test's namespace become ready."""
    with eru.Kubelet(installed, namespace) as one:
        yield one


@pytest.fixture
def no_webhooks(installed):
    """All that the test writes is stored."""
    stw.uninstall_webhooks(installed)
