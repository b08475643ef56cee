# SPDX-License-Identifier: Apache-2.0
"""DatabaseUsers on a real PostgreSQL: roles with LOGIN, the objects that they own, and rights on
databases, schemas and tables."""

import base64

import pytest
from support import databaseuser as dbu
from support import dbserver, postgres, wait
from support.cluster import condition

FIRST, SECOND = "first-Passw0rd-1", "second-Passw0rd-2"
READS = [{"database": "shop", "privileges": ["CONNECT"]},
         {"database": "shop", "schema": "public", "privileges": ["USAGE"]},
         {"database": "shop", "schema": "public", "table": "orders",
          "privileges": ["SELECT", "INSERT"]}]


@pytest.fixture(scope="module")
def pg_dbenv(installed, steward_binary, tmp_path_factory, postgresql):
    """A steward whose target "pg" is the PostgreSQL."""
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), {"pg": postgresql})
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(pg_dbenv, namespace):
    """A namespace.  Its DatabaseUsers and their roles are deleted before it is."""
    yield namespace
    pg_dbenv.forget(namespace)


def create(dbenv, name, namespace, **more):
    """A DatabaseUser on the target "pg"."""
    return dbenv.create(name, namespace, FIRST, **{"target": "pg", "grants": READS, **more})


def test_role_is_created_rotated_reduced_and_dropped(pg_dbenv, postgresql, shop):
    user = create(pg_dbenv, "app", shop)
    assert postgresql.login("app", FIRST, "INSERT INTO orders VALUES (2)")
    assert not postgresql.login("app", FIRST, "DELETE FROM orders")
    status = user["status"]
    assert status["account"] == "app" and "hosts" not in status
    assert status["engine"] == "postgresql" and status["owned"] is True
    pg_dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: postgresql.login("app", SECOND))
    assert not postgresql.login("app", FIRST)
    pg_dbenv.wait_event("app", shop, "PasswordRotated")
    pg_dbenv.patch("app", shop, grants=READS[:2])
    wait.until("fewer rights", lambda: not postgresql.login("app", SECOND, "SELECT * FROM orders"))
    pg_dbenv.wait_ready("app", shop)
    pg_dbenv.patch("app", shop, grants=[
        READS[0], {"database": "shop", "schema": "*", "privileges": ["USAGE"]},
        {**READS[2], "columns": ["n"], "privileges": ["SELECT"]}])
    wait.until("a column", lambda: postgresql.login("app", SECOND, "SELECT n FROM orders"))
    assert not postgresql.login("app", SECOND, "INSERT INTO orders VALUES (3)")
    pg_dbenv.wait_ready("app", shop)
    pg_dbenv.delete("app", shop)
    assert not postgresql.exists("app")
    pg_dbenv.wait_event("app", shop, "Deleted")


def test_settings_apply_to_both_logins(pg_dbenv, postgresql, shop):
    """A later list replaces them; an unsafe one is refused before anything is set."""
    create(pg_dbenv, "app", shop, settings=[{"name": "lock_timeout", "value": "3s"}],
           connectionSecret={"name": "app-conn"}, rotation={"strategy": "TwinAccounts"})

    def stored():
        return [tuple(row) for row in postgresql.sql(
            "SELECT r.rolname, v FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole, "
            "unnest(setconfig) v WHERE v NOT LIKE 'role=%' ORDER BY 1, 2")]
    assert stored() == [(role, "lock_timeout=3s") for role in ("app", "app_a", "app_b")]
    pg_dbenv.patch("app", shop, settings=[{"name": "statement_timeout", "value": "9s"}])
    wait.until("the other setting", lambda: stored() == [
        (role, "statement_timeout=9s") for role in ("app", "app_a", "app_b")])
    pg_dbenv.patch("app", shop, settings=[{"name": "session_preload_libraries", "value": "x"}])
    pg_dbenv.wait_condition("app", shop, "Ready", "InvalidSpec")
    assert len(stored()) == 3


def test_iam_account_has_no_password(pg_dbenv, postgresql, shop):
    """Neither on the server nor in the connection Secret.  The role of the server comes late."""
    user = dbu.manifest("tokens", shop, target="pg", grants=READS, authentication="IAM",
                        connectionSecret={"name": "tokens-conn"})
    del user["spec"]["password"]
    pg_dbenv.cluster.apply(user)
    pg_dbenv.wait_condition("tokens", shop, "GrantsSynced", "NoSuchObject")
    postgresql.sql("CREATE ROLE rds_iam")
    try:
        pg_dbenv.poke("tokens", shop)
        pg_dbenv.wait_ready("tokens", shop)
        known = condition(pg_dbenv.get("tokens", shop), "SecretResolved")
        assert known["reason"] == "NoPassword" and "no login is tried" in known["message"], known
        assert postgresql.sql("SELECT rolpassword IS NULL, pg_has_role(oid, 'rds_iam', 'MEMBER') FROM pg_authid "
                              "WHERE rolname = 'tokens'") == [["t", "t"]]
        data = pg_dbenv.cluster.get("secret", "tokens-conn", shop)["data"]
        assert "password" not in data and base64.b64decode(data["uri"]).decode() == \
            f"postgresql://tokens@127.0.0.1:{postgresql.port}/shop"
        postgresql.sql("ALTER ROLE tokens PASSWORD 'by-hand'")
        pg_dbenv.poke("tokens", shop)
        pg_dbenv.wait_event("tokens", shop, "DriftRepaired", "plugin")
        pg_dbenv.delete("tokens", shop)
        assert not postgresql.exists("tokens")
    finally:
        postgresql.sql("DROP ROLE rds_iam")


def test_steward_logs_in_with_a_certificate(pg_dbenv, postgresql, shop):
    """The client library reads the files inside the sandbox."""
    name, folder = postgres.CERTIFIED, pg_dbenv.folder / "admin"
    dbserver.make_pair(postgresql.ca.parent, folder, subject=f"/CN={name}")
    (folder / "tls.key").chmod(0o600)
    postgresql.sql(f"CREATE ROLE {name} SUPERUSER LOGIN")
    admin = {"user": name, "certificateFile": f"{folder}/tls.crt", "keyFile": f"{folder}/tls.key"}
    usual = postgresql.target("pg")
    pg_dbenv.write_targets(usual, {**usual, "name": "certified", "admin": admin})
    try:
        create(pg_dbenv, "app", shop, target="certified")
        assert postgresql.login("app", FIRST)
        pg_dbenv.delete("app", shop)
    finally:
        pg_dbenv.write_targets(usual)
        postgresql.sql(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_objects_of_a_dropped_role_are_reassigned(pg_dbenv, postgresql, shop):
    """D7: a role that owns objects can still be dropped, and its objects are kept."""
    rights = [READS[0], {"database": "shop", "schema": "public", "privileges": ["USAGE", "CREATE"]}]
    postgresql.sql("CREATE ROLE keeper NOINHERIT")
    create(pg_dbenv, "maker", shop, grants=rights, reassignOwnedTo="keeper")
    assert postgresql.login("maker", FIRST, "CREATE TABLE mine (n INT)")
    pg_dbenv.delete("maker", shop)
    assert not postgresql.exists("maker")
    assert postgresql.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'mine'", "shop") == \
        [["keeper"]]
    postgresql.sql("DROP TABLE mine", "shop")
    postgresql.sql("DROP ROLE keeper")


def test_manual_role_changes_are_reverted(pg_dbenv, postgresql, shop):
    create(pg_dbenv, "app", shop)
    for sql, words in (("ALTER ROLE app PASSWORD 'by-hand'", "password"),
                       ("ALTER ROLE app CONNECTION LIMIT 3", "TLS or limits"),
                       ("ALTER ROLE app NOLOGIN", "TLS or limits")):
        postgresql.sql(sql)
        pg_dbenv.poke("app", shop)
        pg_dbenv.wait_event("app", shop, "DriftRepaired", words)
        wait.until("a login", lambda: postgresql.login("app", FIRST))


def test_existing_role_is_not_adopted_by_default(pg_dbenv, postgresql, shop):
    postgresql.sql(f"CREATE ROLE old LOGIN PASSWORD '{SECOND}'; COMMENT ON ROLE old IS 'mine'")
    pg_dbenv.cluster.apply([dbu.secret("old", shop, FIRST),
                            dbu.manifest("old", shop, target="pg", grants=[])])
    pg_dbenv.wait_condition("old", shop, "Stalled", "AlreadyExists")
    assert postgresql.login("old", SECOND)
    pg_dbenv.patch("old", shop, adoptionPolicy="Adopt", deletionPolicy="Retain")
    pg_dbenv.wait_ready("old", shop)
    assert postgresql.login("old", FIRST)
    pg_dbenv.delete("old", shop)
    assert postgresql.login("old", FIRST) and postgresql.comment("old") == "mine"
    postgresql.sql("DROP ROLE old")


def test_mysql_only_fields_are_refused(pg_dbenv, postgresql, shop):
    """Fields for MySQL only are refused with the same error message as at admission."""
    pg_dbenv.cluster.apply([dbu.secret("app", shop, FIRST),
                            dbu.manifest("app", shop, target="pg", requireTLS="SSL")])
    stalled = pg_dbenv.wait_condition("app", shop, "Stalled", "InvalidSpec")
    assert "spec.requireTLS" in stalled["message"] and "postgresql" in stalled["message"]
    assert not postgresql.exists("app")


def test_password_is_set_after_server_outage(pg_dbenv, postgresql, shop):
    create(pg_dbenv, "app", shop)
    postgresql.kill()
    pg_dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the trouble to be told", lambda: condition(
        pg_dbenv.get("app", shop), "TargetReachable").get("status") == "False")
    postgresql.start()
    wait.until("the new password", lambda: postgresql.login("app", SECOND), 90)
