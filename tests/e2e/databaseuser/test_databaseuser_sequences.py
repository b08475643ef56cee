# SPDX-License-Identifier: Apache-2.0
"""Rights on sequences and functions, MAINTAIN, and validUntil, on the oldest and the newest PostgreSQL.
The webhook of a second steward admits the objects."""

import pytest
from support import databases, databaseuser as dbu
from support import sampled
from support import steward as stw
from support import wait

FIRST = "first-Passw0rd-1"


def on(table, *privileges):
    """A grant in the schema public of the database shop."""
    return {"database": "shop", "schema": "public", "table": table, "privileges": list(privileges)}


READS = [{"database": "shop", "privileges": ["CONNECT"]},
         {"database": "shop", "schema": "public", "privileges": ["USAGE"]}]
NEXT, LAST = "SELECT nextval('tickets')", "SELECT last_value FROM tickets"


@pytest.fixture(scope="module", params=[sampled.oldest("POSTGRESQL"), sampled.newest("POSTGRESQL")])
def server(request):
    """Each server in turn."""
    if databases.missing(databases.PostgreSQL, request.param):
        pytest.skip(databases.missing(databases.PostgreSQL, request.param))
    one = databases.PostgreSQL(line=request.param)
    one.sql("CREATE SEQUENCE tickets; CREATE SEQUENCE others", database="shop")
    yield one
    one.close()


@pytest.fixture(scope="module")
def pg_dbenv(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    stw.uninstall_webhooks(installed)
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), {"main": server})
    one.steward.start()
    with one.webhook():
        yield one
    assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(pg_dbenv, namespace):
    """A namespace.  Its DatabaseUsers and their roles are deleted before it is."""
    yield namespace
    pg_dbenv.forget(namespace)


def test_sequence_rights_are_granted_repaired_and_revoked(pg_dbenv, server, shop):
    """Granted, repaired, narrowed and revoked."""
    user = pg_dbenv.create("app", shop, FIRST, grants=READS + [on("tickets", "USAGE", "SELECT")])
    assert server.login("app", FIRST, NEXT) and server.login("app", FIRST, LAST)
    assert not server.login("app", FIRST, "SELECT nextval('others')")
    assert not server.login("app", FIRST, "SELECT setval('tickets', 1)")
    assert any("public.tickets" in line for line in user["status"]["currentGrants"])
    server.sql("REVOKE USAGE ON SEQUENCE tickets FROM app", database="shop")
    pg_dbenv.poke("app", shop)
    wait.until("the repair", lambda: server.login("app", FIRST, NEXT))
    pg_dbenv.patch("app", shop, grants=READS + [on("tickets", "SELECT")])
    wait.until("fewer rights", lambda: not server.login("app", FIRST, NEXT))
    assert server.login("app", FIRST, LAST)
    pg_dbenv.patch("app", shop, grants=READS + [on("*", "USAGE")])
    wait.until("all sequences", lambda: server.login("app", FIRST, "SELECT nextval('others')"))
    pg_dbenv.patch("app", shop, grants=READS)
    wait.until("no rights", lambda: not server.login("app", FIRST, NEXT))
    pg_dbenv.delete("app", shop)
    assert not server.exists("app")


def test_default_privileges_cover_later_tables(pg_dbenv, server, shop):
    """A table can be read at once, long before the next check, and no longer without the grant."""
    pg_dbenv.create("app", shop, FIRST, grants=READS + [on("*", "SELECT")], resyncSeconds=86400)
    server.sql("CREATE ROLE maker; GRANT CREATE, USAGE ON SCHEMA public TO maker", database="shop")
    server.sql("CREATE TABLE first_later AS SELECT 1", database="shop")
    assert server.login("app", FIRST, "SELECT * FROM first_later")
    pg_dbenv.poke("app", shop)  # to find the new role that may create tables
    wait.until("default privileges of the role", lambda: server.sql(
        "SELECT count(*) FROM pg_default_acl d JOIN pg_roles r ON r.oid = d.defaclrole WHERE "
        "rolname = 'maker'", database="shop") == [["1"]])
    server.sql("SET ROLE maker; CREATE TABLE second_later (n INT)", database="shop")
    assert server.login("app", FIRST, "SELECT * FROM second_later")
    assert not server.login("app", FIRST, "DELETE FROM second_later")
    pg_dbenv.patch("app", shop, grants=READS)
    wait.until("no rights", lambda: not server.login("app", FIRST, "SELECT * FROM second_later"))
    server.sql("SET ROLE maker; CREATE TABLE third_later (n INT)", database="shop")
    assert not server.login("app", FIRST, "SELECT * FROM third_later")
    pg_dbenv.delete("app", shop)
    server.sql("DROP OWNED BY maker; DROP ROLE maker; DROP TABLE first_later", database="shop")


def calls(name, *privileges):
    """A grant on functions in the schema public of the database shop."""
    return {"database": "shop", "schema": "public", "routine": name,
            "privileges": list(privileges or ("EXECUTE",))}


def test_function_rights_are_granted_repaired_and_revoked(pg_dbenv, server, shop):
    """Granted by name and repaired; all, with later ones; locked and adopted; revoked.  One that runs as a
    superuser is not given."""
    server.sql("CREATE ROLE maker; GRANT CREATE, USAGE ON SCHEMA public TO maker; ALTER DEFAULT "
               "PRIVILEGES FOR ROLE maker REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; SET ROLE maker; "
               "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
               "CREATE FUNCTION two() RETURNS int LANGUAGE sql AS 'SELECT 2'", database="shop")
    server.sql("CREATE FUNCTION root() RETURNS text LANGUAGE sql SECURITY DEFINER AS "
               "'SELECT current_user::text'; REVOKE EXECUTE ON FUNCTION root FROM PUBLIC",
               database="shop")
    user = pg_dbenv.create("app", shop, FIRST, grants=READS + [calls("one")])
    assert "EXECUTE ON shop.public.one" in user["status"]["currentGrants"]
    assert server.login("app", FIRST, "SELECT one()")
    assert not server.login("app", FIRST, "SELECT two()")
    server.sql("REVOKE EXECUTE ON FUNCTION one FROM app", database="shop")
    pg_dbenv.poke("app", shop)
    wait.until("the repair", lambda: server.login("app", FIRST, "SELECT one()"))

    pg_dbenv.patch("app", shop, grants=READS + [calls("root")])
    told = pg_dbenv.wait_condition("app", shop, "GrantsSynced", "NotAllowed")
    assert "privileged owner" in told["message"]
    pg_dbenv.patch("app", shop, grants=READS + [calls("*", "ALL")], deletionPolicy="Lock")
    pg_dbenv.wait_ready("app", shop)
    server.sql("SET ROLE maker; CREATE FUNCTION three() RETURNS int LANGUAGE sql AS 'SELECT 3'",
               database="shop")
    for name in ("one", "two", "three"):
        assert server.login("app", FIRST, f"SELECT {name}()")
    assert not server.login("app", FIRST, "SELECT root()")

    pg_dbenv.delete("app", shop)  # rights that steward gave do not prevent that it comes back
    pg_dbenv.cluster.apply(dbu.manifest("app", shop, grants=READS + [calls("two")],
                                        adoptionPolicy="Adopt"))
    pg_dbenv.wait_ready("app", shop)
    assert server.login("app", FIRST, "SELECT two()")
    for name in ("one", "three"):
        assert not server.login("app", FIRST, f"SELECT {name}()")
    pg_dbenv.patch("app", shop, grants=READS)
    wait.until("no rights", lambda: not server.login("app", FIRST, "SELECT two()"))
    pg_dbenv.delete("app", shop)
    server.sql("DROP FUNCTION root; DROP OWNED BY maker; DROP ROLE maker", database="shop")


def test_maintain_is_granted_where_the_server_has_it(pg_dbenv, server, shop):
    """On servers that have it; on others the condition names the version."""
    pg_dbenv.cluster.apply([dbu.secret("app", shop, FIRST),
                            dbu.manifest("app", shop, grants=READS + [on("orders", "MAINTAIN")])])
    if int(server.installed.version.split(".", maxsplit=1)[0]) >= 17:
        pg_dbenv.wait_ready("app", shop)
        granted = "SELECT has_table_privilege('app', 'orders', 'MAINTAIN')"
        assert server.sql(granted, database="shop") == [["t"]]
    else:
        wait.until("the reason", lambda: any(
            "MAINTAIN needs PostgreSQL 17 or newer" in c["message"]
            for c in pg_dbenv.get("app", shop).get("status", {}).get("conditions", [])))


def test_valid_until_is_set_repaired_and_lifted(pg_dbenv, server, shop):
    """Set, repaired, passed and lifted; an account without it keeps what the server has."""
    until = "SELECT extract(year FROM rolvaliduntil)::int FROM pg_roles WHERE rolname = 'app'"
    pg_dbenv.create("app", shop, FIRST, grants=READS, validUntil="2040-05-06T07:08:09Z")
    assert server.sql(until) == [["2040"]] and server.login("app", FIRST)
    server.sql("ALTER ROLE app VALID UNTIL '2050-01-01'")
    pg_dbenv.poke("app", shop)
    wait.until("the repair", lambda: server.sql(until) == [["2040"]])
    pg_dbenv.patch("app", shop, validUntil="2020-01-01T00:00:00Z")
    wait.until("the end", lambda: not server.login("app", FIRST))
    pg_dbenv.wait_ready("app", shop)
    pg_dbenv.patch("app", shop, validUntil="infinity")
    wait.until("logins again", lambda: server.login("app", FIRST))
    pg_dbenv.patch("app", shop, validUntil=None)
    server.sql("ALTER ROLE app VALID UNTIL '2060-01-01'")
    pg_dbenv.patch("app", shop, limits={"maxUserConnections": 7})
    wait.until("another change", lambda: server.sql(
        "SELECT rolconnlimit FROM pg_roles WHERE rolname = 'app'") == [["7"]])
    assert server.sql(until) == [["2060"]]
