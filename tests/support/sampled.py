# SPDX-License-Identifier: Apache-2.0
"""Which versions of a server a test runs on.

A test requests a version by one of the arguments of ARGUMENTS, most of them through a fixture of
its server.  It runs on the newest version.  A test whose subject depends on the version is marked

    @pytest.mark.every_version("why")

and runs on the oldest, too.  With STEWARD_TEST_VERSIONS=all each test runs on all versions.
"""

import os

import pytest

from . import versions

ALL = "STEWARD_TEST_VERSIONS"
# The argument of a test, and the servers of scripts/lib/versions.sh whose versions it takes in turn.
ARGUMENTS = {"mariadb_line": ["MARIADB"], "postgresql_line": ["POSTGRESQL"],
             "mysql_line": ["MYSQL"], "etcd_line": ["ETCD"],
             "database_with_hosts": ["MARIADB", "MYSQL"],
             "database": ["MARIADB", "POSTGRESQL", "MYSQL"]}


def lines(name):
    """The release lines of a server, oldest first: "11.8" of 11.8.9; PostgreSQL's are one number."""
    parts = 1 if name == "POSTGRESQL" else 2
    return [".".join(version.split(".")[:parts]) for version in versions.table()[name]]


def oldest(name):
    """The oldest release line."""
    return lines(name)[0]


def newest(name):
    """The newest one."""
    return lines(name)[-1]


def chosen(name, marked):
    """The lines that a test runs on."""
    if os.environ.get(ALL) == "all":
        return lines(name)
    ends = [oldest(name), newest(name)] if marked else [newest(name)]
    return list(dict.fromkeys(ends))


def parametrize(metafunc):
    """The pytest_generate_tests of a conftest, for the arguments above."""
    marked = metafunc.definition.get_closest_marker("every_version") is not None
    for argument, names in ARGUMENTS.items():
        if argument not in metafunc.fixturenames:
            continue
        values = [(name.lower(), line) for name in names for line in chosen(name, marked)]
        if len(names) == 1:
            # Clusters of etcd are shared by the tests of a file.
            scope = "module" if argument == "etcd_line" else "function"
            metafunc.parametrize(argument, [pytest.param(line, id=f"{engine}-{line}")
                                            for engine, line in values], scope=scope)
        else:
            metafunc.parametrize(argument, [pytest.param(value, id="-".join(value))
                                            for value in values])
