# SPDX-License-Identifier: Apache-2.0
"""Follows docs/app.md, "Try it", literally: kubectl prints what the page shows."""

import pytest
from support import readme

PAGE = "docs/app.md"


@pytest.mark.node
def test_try_it(steward, cluster, namespace, tmp_path):
    assert steward.running()
    steps = list(readme.follow(cluster, namespace, PAGE, tmp_path))
    assert len(steps) >= 14
