# SPDX-License-Identifier: Apache-2.0
"""The life of a DatabaseUser on the servers that the other tests do not run on: MySQL, and the oldest
MariaDB and PostgreSQL."""

import pytest
from support import databases, databaseuser as dbu
from support import sampled
from support import wait

FIRST, SECOND = "first-Passw0rd-1", "second-Passw0rd-2"
READS = [{"database": "shop", "privileges": ["SELECT"]}]
PG_READS = [{"database": "shop", "privileges": ["CONNECT"]},
            {"database": "shop", "schema": "public", "privileges": ["USAGE"]},
            {"database": "shop", "schema": "public", "table": "orders", "privileges": ["SELECT"]}]
SERVERS = [(databases.MySQL, sampled.newest("MYSQL")),
           (databases.MariaDB, sampled.oldest("MARIADB")),
           (databases.PostgreSQL, sampled.oldest("POSTGRESQL"))]
server = databases.each(SERVERS)


@pytest.fixture(scope="module")
def other_dbenv(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is `server`."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server)


@pytest.fixture
def shop(other_dbenv, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    other_dbenv.forget(namespace)


def has_account(server):
    """True while the account is on the server."""
    return bool({"app", "app@%"} & server.all_accounts())


def test_account_is_created_rotated_reduced_and_dropped(other_dbenv, server, shop):
    reads = PG_READS if server.engine == "postgresql" else READS
    user = other_dbenv.create("app", shop, FIRST, grants=reads)
    assert user["status"]["engine"] == server.engine
    assert server.installed.version in user["status"]["serverVersion"]
    assert server.login("app", FIRST, "SELECT * FROM orders")
    assert not server.login("app", FIRST, "DELETE FROM orders")

    other_dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: server.login("app", SECOND))
    assert not server.login("app", FIRST)
    other_dbenv.wait_event("app", shop, "PasswordRotated")

    other_dbenv.patch("app", shop, grants=[])
    wait.until("no rights", lambda: not server.login("app", SECOND, "SELECT * FROM orders"))
    other_dbenv.wait_ready("app", shop)

    other_dbenv.patch("app", shop, deletionPolicy="Lock")
    other_dbenv.delete("app", shop)
    other_dbenv.wait_event("app", shop, "Locked")
    assert has_account(server) and not server.login("app", SECOND)
    other_dbenv.cluster.apply([dbu.manifest("app", shop, grants=reads, adoptionPolicy="Adopt")])
    other_dbenv.wait_ready("app", shop)
    assert server.login("app", SECOND)

    other_dbenv.delete("app", shop)
    assert not has_account(server)
    other_dbenv.wait_event("app", shop, "Deleted")


def test_granted_roles_are_limited_by_the_target(other_dbenv, server, shop):
    """Given, refused beyond the target's list, and revoked when the role becomes an administrator."""
    postgresql = server.engine == "postgresql"
    admin = " WITH ADMIN 'steward-admin'@'%'" if server.engine == "mariadb" else ""
    server.sql(f"CREATE ROLE team_readers{admin}; CREATE ROLE boss")
    server.sql("GRANT SELECT ON orders TO team_readers" if postgresql else
               "GRANT SELECT ON shop.* TO team_readers", *(["shop"] if postgresql else []))
    other_dbenv.write_targets(server.target("main", allowedRoles=["team_*"]))
    user = other_dbenv.create("app", shop, FIRST, grants=[], roles=["team_readers"])
    assert user["status"]["currentGrants"] == ["MEMBER ON role team_readers"]
    assert server.login("app", FIRST, "SELECT * FROM orders")

    # An attacker names a role that the target does not list.
    other_dbenv.cluster.apply([dbu.manifest("other", shop, secret="app", grants=[], roles=["boss"])])
    stalled = other_dbenv.wait_condition("other", shop, "Stalled", "InvalidSpec")
    assert "spec.roles[0]: Forbidden" in stalled["message"]
    server.sql("ALTER ROLE team_readers CREATEROLE" if postgresql else
               "GRANT CREATE USER ON *.* TO team_readers")
    other_dbenv.poke("app", shop)
    other_dbenv.wait_condition("app", shop, "GrantsSynced", "NotAllowed")
    assert not server.login("app", FIRST, "SELECT * FROM orders")
    other_dbenv.patch("app", shop, roles=[])
    other_dbenv.wait_ready("app", shop)
