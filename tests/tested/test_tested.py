# SPDX-License-Identifier: Apache-2.0
"""README's table "Tested with" has the versions of scripts/lib/versions.sh, and the suites that ran
before this one started exactly these.

scripts/test runs this after all suites, which record what they started in $STEWARD_TEST_STARTED.
"""

import os

import pytest

from support import paths, started, tested


@pytest.fixture(scope="module")
def seen():
    """{server: {release line, ...}} that the suites of this run started."""
    path = os.environ.get(started.FILE, "")
    if not os.path.exists(path):
        pytest.skip("no suite has left what it started: run 'scripts/test all'")
    return {server.upper(): {tested.line(server.upper(), version) for version in found}
            for server, found in started.noted(path).items()}


def test_readme_table_has_the_versions():
    text = (paths.TOP / "README.md").read_text("utf-8")
    assert tested.table() in text
    assert f"({tested.sweep()})" in " ".join(text.split())


def test_started_servers_are_listed(seen):
    assert set(seen) <= set(tested.servers())
    for server, found in seen.items():
        assert found <= set(tested.listed(server)), server


@pytest.mark.parametrize("server", tested.servers())
def test_listed_servers_were_started(seen, server):
    if not os.environ.get("STEWARD_TEST_STARTED_WHOLE"):
        pytest.skip("not all suites ran, with a node: what they would have started is not known")
    assert set(tested.listed(server)) <= seen.get(server, set())


@pytest.mark.parametrize("server, version, expected", [
    ("KUBERNETES", "v1.37.2", "1.37"), ("POSTGRESQL", "15.18", "15"), ("POSTGRESQL", "15", "15"),
    ("MARIADB", "11.8.9", "11.8"), ("MARIADB", "10.11", "10.11"),
])
def test_version_maps_to_its_release_line(server, version, expected):
    assert tested.line(server, version) == expected
