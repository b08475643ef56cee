# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests without a cluster: `steward webhook`, and database servers."""

import itertools

import pytest

from support import etcd, mariadb, mysql8, postgres, sampled
from support.sqlprobe import Probe
from support.webhook import Webhook

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def webhook(steward_binary, tmp_path_factory):
    """A running `steward webhook` for the whole module."""
    one = Webhook(steward_binary, tmp_path_factory.mktemp("webhook")).start()
    yield one
    assert one.stop() == 0, one.log_text()


@pytest.fixture
def make_webhook(steward_binary, tmp_path):
    """make_webhook(*flags): starts a `steward webhook` for one test, stopped at its end."""
    started = []

    def make(*args):
        one = Webhook(steward_binary, tmp_path / f"webhook-{len(started)}", args)
        started.append(one)
        return one.start()
    yield make
    for one in started:
        assert one.stop() == 0, one.log_text()


def pytest_generate_tests(metafunc):
    """Parametrizes each test with the versions of its servers."""
    sampled.parametrize(metafunc)


MODULES = {"mariadb": mariadb, "postgresql": postgres, "mysql": mysql8}
CLASSES = {"mariadb": mariadb.MariaDB, "postgresql": postgres.Postgres, "mysql": mysql8.MySQL}


@pytest.fixture(scope="session")
def shared():
    """shared(engine, line): a server for the whole run.  Tests use unique names, never stop it."""
    servers = {}

    def get(engine, line):
        if MODULES[engine].missing(line):
            pytest.skip(MODULES[engine].missing(line))
        if (engine, line) not in servers:
            servers[engine, line] = CLASSES[engine](line=line)
        return servers[engine, line]
    yield get
    for server in servers.values():
        server.close()


@pytest.fixture
def maria(shared, mariadb_line):
    """The shared MariaDB server."""
    return shared("mariadb", mariadb_line)


@pytest.fixture
def pg(shared, postgresql_line):
    """The shared PostgreSQL server."""
    return shared("postgresql", postgresql_line)


@pytest.fixture
def mysql(shared, mysql_line):
    """The shared MySQL server."""
    return shared("mysql", mysql_line)


@pytest.fixture
def server(shared, database):
    """The shared server of each engine in turn."""
    return shared(*database)


@pytest.fixture
def hosted(shared, database_with_hosts):
    """The shared server of each engine whose user names have hosts."""
    return shared(*database_with_hosts)


@pytest.fixture(scope="module")
def version(etcd_line):
    """The minor version of etcd that a test runs on."""
    if etcd.missing(etcd_line):
        pytest.skip(etcd.missing(etcd_line))
    return etcd_line


def _servers(engine, line):
    if MODULES[engine].missing(line):
        pytest.skip(MODULES[engine].missing(line))
    made = []

    def make(*flags):
        made.append(CLASSES[engine](*flags, line=line))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def make_mariadb(mariadb_line):
    """make_mariadb(*flags): a server for one test."""
    yield from _servers("mariadb", mariadb_line)


@pytest.fixture
def make_hosted(database_with_hosts):
    """make_hosted(*flags): a server for one test, of each engine whose user names have hosts."""
    yield from _servers(*database_with_hosts)


@pytest.fixture
def make_postgres(postgresql_line):
    """make_postgres(*settings): a server for one test."""
    yield from _servers("postgresql", postgresql_line)


@pytest.fixture
def make_probe(tmp_path):
    """make_probe(*targets, die_after=None, pause_after=None): a sql_probe for one test."""
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
