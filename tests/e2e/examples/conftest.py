# SPDX-License-Identifier: Apache-2.0
"""The examples, built once against the installed library."""

import itertools
import os

import pytest

from support import exampleop
from support import library as libraries
from support import steward as stw

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A support.library.Library."""
    return libraries.Library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def start_example(cluster, library, tmp_path_factory):
    """start_example(name, env=, clock=): builds, installs and starts an example; all are stopped at
    the end of the module."""
    started, programs = [], {}
    stw.uninstall_webhooks(cluster)

    def start(name, env=None, clock=None):
        folder = tmp_path_factory.mktemp(name)
        if name not in programs:
            programs[name] = library.meson(libraries.EXAMPLES / name, folder / "build") / name
        one = exampleop.Operator(programs[name], cluster, folder, {**library.env, **(env or {})}, clock)
        started.append(one)
        return one.start()
    yield start
    for one in started:
        if one.running():
            assert one.stop() == 0, one.log_tail()


@pytest.fixture
def home(cluster):
    """A namespace for this test."""
    name = f"x{os.getpid()}-{next(_numbers)}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)
