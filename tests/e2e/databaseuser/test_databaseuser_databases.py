# SPDX-License-Identifier: Apache-2.0
"""Databases that a DatabaseUser creates, on the oldest and the newest servers.  The webhook of a second
steward admits the objects."""

import pytest
from support import databases, databaseuser as dbu
from support import dbserver, sampled
from support import steward as stw
from support import wait
from support.cluster import condition

FIRST = "first-Passw0rd-1"
SERVERS = [(databases.PostgreSQL, sampled.oldest("POSTGRESQL")),
           (databases.PostgreSQL, sampled.newest("POSTGRESQL")),
           (databases.MariaDB, sampled.oldest("MARIADB")),
           (databases.MySQL, sampled.newest("MYSQL"))]
ALLOWED = {"allowCreateDatabases": ["{namespace}", "{namespace}_*"], "allowedDatabases": ["*"]}
EXTENSIONS = {"allowedExtensions": ["pg_trgm"]}
server = databases.each(SERVERS)


@pytest.fixture(scope="module")
def making(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" creates databases on the server."""
    stw.uninstall_webhooks(installed)
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), {"main": server})
    one.write_targets(server.target("main", **ALLOWED, **(EXTENSIONS if is_pg(server) else {})))
    one.steward.start()
    with one.webhook():
        yield one
    assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(making, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    making.forget(namespace)


def is_pg(server):
    """Whether it is PostgreSQL."""
    return server.engine == "postgresql"


def names(server):
    """The databases of the server."""
    query = "SELECT datname FROM pg_database" if is_pg(server) else "SHOW DATABASES"
    return {row[0] for row in server.sql(query)}


def drop(server, name):
    """By hand."""
    server.sql(f'DROP DATABASE "{name}" WITH (FORCE)' if is_pg(server) else f"DROP DATABASE `{name}`")


def fields(server, name, **more):
    """The fields of an account with one database, in which it may create a table."""
    database = {"name": name, **({"schemas": ["own"]} if is_pg(server) else {}), **more}
    grants = [{"database": name, "privileges": ["CONNECT"] if is_pg(server) else [
        "CREATE", "SELECT", "INSERT"]}]
    if is_pg(server):
        grants.append({"database": name, "schema": "own", "privileges": ["USAGE"]})
    return {"databases": [database], "grants": grants}


def can_make(server, name, user="app", table="t"):
    """Whether the account may create a table."""
    return server.login(user, FIRST, f"CREATE TABLE {'own.' if is_pg(server) else ''}{table} (n INT)",
                        database=name)


def confirm(dbenv, shop, *databases_):
    """Annotates the object with the names of the databases that may be dropped."""
    dbenv.annotate("app", shop, {"steward.dev/confirm-drop": ", ".join(databases_)})


def listed(user):
    """The names in status.databases."""
    return [d["name"] for d in user["status"].get("databases", [])]


def test_database_is_retained_without_confirmation(making, server, shop):
    """The account works in it at once.  The object is deleted without a confirmation: the database
    stays, and goes to the object that is created again.  On PostgreSQL the account owns it meanwhile."""
    owner = {"owner": True} if is_pg(server) else {}
    user = making.create("app", shop, FIRST, **fields(server, shop, deletionPolicy="Delete", **owner))
    assert listed(user) == [shop] and condition(user, "DatabasesSynced")["status"] == "True"
    assert can_make(server, shop)
    if owner:  # it comes after the rights
        wait.until("the owner", lambda: server.login("app", FIRST, "CREATE SCHEMA of_the_owner", database=shop))
    making.wait_event("app", shop, "DatabaseCreated", shop)
    confirm(making, shop, f"{shop}_other", "app")
    making.delete("app", shop)
    making.wait_event("app", shop, "DatabaseRetained", shop)
    assert shop in names(server) and not server.login("app", FIRST, database=shop)
    making.create("app", shop, FIRST, **fields(server, shop, deletionPolicy="Delete", **owner))
    assert can_make(server, shop, table="second")
    if owner:
        wait.until("the owner again",
                   lambda: server.login("app", FIRST, "CREATE SCHEMA of_the_next", database=shop))
    confirm(making, shop, f"{shop}_other", shop)
    warned = making.delete("app", shop)
    making.wait_event("app", shop, "DatabaseDropped", shop)
    assert shop not in names(server), warned


@databases.on((databases.PostgreSQL, sampled.newest("POSTGRESQL")))
def test_deleted_account_is_locked_before_its_databases_are_dropped(making, server, shop):
    """The server refuses to drop a template.  The account does not log in meanwhile."""
    making.create("app", shop, FIRST, **fields(server, shop, deletionPolicy="Delete"))
    confirm(making, shop, shop)
    assert can_make(server, shop)
    server.sql(f'ALTER DATABASE "{shop}" IS_TEMPLATE true')
    try:
        making.delete("app", shop, wait_gone=False)
        wait.until("the lock", lambda: not server.login("app", FIRST, database=shop), 60)
        making.wait_condition("app", shop, "CleanupBlocked", "DropFailed")
        assert shop in names(server) and "app" in server.all_accounts()
    finally:
        server.sql(f'ALTER DATABASE "{shop}" IS_TEMPLATE false')
    making.annotate("app", shop, {"steward.dev/reconcile-at": "now"})
    making.delete("app", shop)
    assert shop not in names(server) and "app" not in server.all_accounts()


def test_removed_database_is_dropped_only_when_confirmed(making, server, shop):
    """With a confirmation it is dropped, and else it stays, with an event."""
    second = f"{shop}_2"
    making.create("app", shop, FIRST, databases=[{"name": shop, "deletionPolicy": "Delete"},
                                                 {"name": second, "deletionPolicy": "Delete"}],
                  grants=[])
    confirm(making, shop, second)
    making.patch("app", shop, databases=[])
    making.wait_event("app", shop, "DatabaseDropped", second)
    making.wait_event("app", shop, "DatabaseRetained", shop)
    assert shop in names(server) and second not in names(server)
    wait.until("an empty list", lambda: listed(making.get("app", shop)) == [])
    drop(server, shop)


def test_externally_dropped_database_is_recreated(making, server, shop):
    """It is created again, and the event says that it is empty."""
    making.create("app", shop, FIRST, **fields(server, shop))
    drop(server, shop)
    making.poke("app", shop)
    making.wait_event("app", shop, "DriftRepaired", "created again, empty")
    making.wait_ready("app", shop)
    wait.until("the rights", lambda: can_make(server, shop))
    drop(server, shop)


def test_second_object_of_a_database_gets_a_condition(making, server, shop):
    """The first has it.  The second has a condition that names the first, its own account, and does
    not drop what is not its own."""
    making.create("app", shop, FIRST, databases=[{"name": shop}], grants=[])
    second = dbu.manifest("second", shop, grants=[],
                          databases=[{"name": shop, "deletionPolicy": "Delete"}],
                          annotations={"steward.dev/confirm-drop": shop})
    making.cluster.apply([dbu.secret("second", shop, FIRST), second])
    found = making.wait_condition("second", shop, "DatabasesSynced", "Conflict")
    assert f"DatabaseUser {shop}/app" in found["message"]
    assert making.get("second", shop)["status"]["account"].startswith("second")
    making.delete("second", shop)
    assert shop in names(server)
    drop(server, shop)


def test_database_without_owner_is_not_touched(making, server, shop, installed):
    """A database without an owner is left as it is; the rest of the object is done."""
    server.sql(f'CREATE DATABASE "{shop}"' if is_pg(server) else f"CREATE DATABASE `{shop}`")
    manifest = dbu.manifest("app", shop, grants=[], databases=[
        {"name": shop, "deletionPolicy": "Delete"}, {"name": f"{shop}_2"}],
        annotations={"steward.dev/confirm-drop": shop})
    installed.apply([dbu.secret("app", shop, FIRST), manifest])
    found = making.wait_condition("app", shop, "DatabasesSynced", "Conflict")
    assert "was not created for this object" in found["message"]
    assert listed(making.get("app", shop)) == [f"{shop}_2"]
    making.delete("app", shop)
    assert {shop, f"{shop}_2"} <= names(server)
    drop(server, shop)
    drop(server, f"{shop}_2")


def test_reserved_and_foreign_database_names_are_refused(making, server, shop, installed):
    """Names of other namespaces, of the server and of steward; lists that the engine has not."""
    system = "template1" if is_pg(server) else "mysql"
    manifest = dbu.manifest("app", shop, grants=[], databases=[
        {"name": "other"}, {"name": system}, {"name": "steward_new_1"}, {"name": f"{shop}_{'x' * 64}"},
        {"name": f"{shop}_1", "extensions": ["plpython3u"], "schemas": ["pg_x"]},
        {"name": f"{shop}_1", "collation": "it's", "characterSet": "utf8; DROP"}])
    text = installed.apply(manifest, check=False).stderr
    for field, part in ((0, f'does not allow namespace "{shop}" to create'), (1, "is reserved on"),
                        (2, "must not begin with"), (3, "must be at most 6"),
                        (5, "Duplicate value")):
        assert any(f"spec.databases[{field}].name" in line and part in line
                   for line in text.splitlines()), (field, part, text)
    assert "spec.databases[5].collation" in text and "spec.databases[5].characterSet" in text
    if is_pg(server):
        assert 'does not allow the extension "plpython3u"' in text and '"pg_x" is reserved' in text
    else:
        assert text.count(f"not supported on {server.engine}") == 2


def test_database_encoding_change_is_reported(making, server, shop):
    """PostgreSQL's encoding is a condition, and MySQL's default is changed."""
    sets = ("UTF8", "SQL_ASCII") if is_pg(server) else ("utf8mb4", "latin1")
    making.create("app", shop, FIRST, grants=[], databases=[
        {"name": shop, "characterSet": sets[0], **({"extensions": ["pg_trgm"]} if is_pg(server) else {})}])
    making.patch("app", shop, databases=[{"name": shop, "characterSet": sets[1]}])
    if is_pg(server):
        found = making.wait_condition("app", shop, "DatabasesSynced", "Immutable")
        assert "another characterSet, which cannot change" in found["message"]
        assert server.sql("SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'", shop)
        making.patch("app", shop, databases=[{"name": shop, "characterSet": "utf8"}])
    making.wait_ready("app", shop)
    drop(server, shop)


def test_server_outage_is_not_a_missing_database(making, server, shop):
    """Nothing is taken for missing; when it is back, the database is created."""
    if server.engine == "postgresql":  # its sessions are processes of their own, which are not paused
        server.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{dbserver.ADMIN}'")
    server.pause()
    try:
        making.cluster.apply([dbu.secret("app", shop, FIRST),
                              dbu.manifest("app", shop, **fields(server, shop))])
        making.wait_condition("app", shop, "TargetReachable", "ConnectFailed", "CircuitOpen")
    finally:
        server.resume()
    making.wait_ready("app", shop, 120)
    assert can_make(server, shop)
    drop(server, shop)
