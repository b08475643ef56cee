# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need no cluster: the door alone, and accounts on database servers."""

import itertools

import pytest

from support import mariadb, mysql8, postgres
from support.door import Door
from support.sqlprobe import Probe

_numbers = itertools.count(1)


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


def _server(make, module):
    if module.missing():
        pytest.skip(module.missing())
    server = make()
    yield server
    server.close()


@pytest.fixture(scope="session")
def maria():
    """A MariaDB server for the whole run: tests use names of their own and do not stop it."""
    yield from _server(mariadb.MariaDB, mariadb)


@pytest.fixture(scope="session")
def pg():
    """A PostgreSQL server for the whole run."""
    yield from _server(postgres.Postgres, postgres)


@pytest.fixture(scope="session")
def mysql():
    """A MySQL server for the whole run, where there is one."""
    yield from _server(mysql8.MySQL, mysql8)


@pytest.fixture
def make_mariadb():
    """make_mariadb(*flags): a server of the test's own."""
    if mariadb.missing():
        pytest.skip(mariadb.missing())
    started = []

    def make(*flags):
        started.append(mariadb.MariaDB(*flags))
        return started[-1]
    yield make
    for server in started:
        server.close()


@pytest.fixture
def make_postgres():
    """make_postgres(*settings): a server of the test's own."""
    if postgres.missing():
        pytest.skip(postgres.missing())
    started = []

    def make(*settings):
        started.append(postgres.Postgres(*settings))
        return started[-1]
    yield make
    for server in started:
        server.close()


@pytest.fixture
def make_probe(tmp_path):
    """make_probe(*targets, die_after=None, pause_after=None): a sql_probe, ended with the test."""
    started = []

    def make(*targets, **more):
        started.append(Probe(tmp_path / f"probe-{len(started)}", *targets, **more))
        return started[-1]
    yield make
    for probe in started:
        assert probe.close() in (0, -9), probe.heard()[-3000:]


@pytest.fixture
def user():
    """A name that no other test uses."""
    return f"user{next(_numbers)}"
