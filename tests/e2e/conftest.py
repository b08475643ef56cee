# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests of the reconcilers."""

import pytest

from support import steward as stw


@pytest.fixture(scope="module")
def controller(installed, steward_binary, tmp_path_factory):
    """A steward that reconciles, with no webhook before it: whatever a test writes is stored."""
    stw.uninstall_webhooks(installed)
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("controller"), name="controller").start()
    yield one
    if one.running():
        assert one.stop() == 0, one.log_tail()
