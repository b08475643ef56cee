# SPDX-License-Identifier: Apache-2.0
"""Follows "Try it" of a kind's page literally, on a node: kubectl prints what the page shows.  Pages
that need more than steward have tests of their own."""

import pytest
from support import readme

# When the webhook's cache has the Deployment later than kubectl creates the Eru.
LATE = 'Warning: Deployment "web" not found; nothing is restarted until it is there'


@pytest.mark.node
@pytest.mark.parametrize("page, commands", [("docs/app.md", 14), ("docs/eru.md", 8)])
def test_try_it_section_of_page_works(steward, cluster, namespace, tmp_path, page, commands):
    assert steward.running()
    steps = list(readme.follow(cluster, namespace, page, tmp_path, may_say=[LATE]))
    assert len(steps) >= commands
