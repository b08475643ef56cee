# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers, under attack by a tenant who may write any DatabaseUser."""

import contextlib
import itertools
import pathlib
import re
import socket
import ssl
import struct
import threading
import time

import pytest

from support import dblogin, dbserver, pooler, wait
from support.postgres import heir
from support.postgres import name as pg_name
from support.postgres import quote as pg_quote
from support.sqlprobe import CLUSTER, account, grant

PASSWORD = "s3cret-Pa55"
ACCOMPLICE = "acc0mplice-Pa55"
OTHER_CLUSTER = "5a7e0000-0000-4000-8000-000000000002"


# --- H1: code owned by a dropped role never runs with the rights of another role


class Tenant:
    """A PostgreSQL database, a tenant who may create objects in it, and an accomplice who stays."""

    def __init__(self, pg, probe, user, namespace="shop", cluster=CLUSTER):
        self.pg, self.probe, self.user, self.cluster = pg, probe, user, cluster
        self.database, self.accomplice = f"db_{user}", f"acc_{user}"
        self.owner = f"{namespace}/{user}"
        if not pg.sql(f"SELECT 1 FROM pg_database WHERE datname = '{self.database}'"):
            pg.sql(f"CREATE DATABASE {self.database}")
        self.grants = [grant(self.database, "CONNECT", "CREATE"),
                       grant(self.database, "CREATE", "USAGE", schema="public")]
        probe.sync(**self.account())
        pg.sql(f"CREATE ROLE {self.accomplice} LOGIN PASSWORD '{ACCOMPLICE}'")

    def account(self, **more):
        """The tenant's own account."""
        return account(self.user, grants=self.grants, owner=self.owner, uid=f"uid-{self.user}",
                       cluster=self.cluster, **more)

    def run(self, text, database=None):
        """Runs statements as the tenant; they must succeed."""
        result = self.pg.run_client(text, check=False, user=self.user, password=PASSWORD,
                                    database=database or self.database, tcp=True)
        assert result.returncode == 0, result.stderr

    def accomplice_runs(self, text, database=None):
        """The output that the accomplice gets; None if the statement is refused."""
        result = self.pg.run_client(text, check=False, user=self.accomplice, password=ACCOMPLICE,
                                    database=database or self.database, tcp=True)
        return result.stdout.strip() if result.returncode == 0 else None

    def plant(self, database=None):
        """Creates functions, a view, a rule and an index expression that try to gain rights."""
        self.run(f"""
            CREATE FUNCTION make_admin() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
              BEGIN EXECUTE 'ALTER ROLE {self.accomplice} SUPERUSER'; RETURN 'done'; END $$;
            CREATE FUNCTION who() RETURNS text LANGUAGE sql SECURITY DEFINER AS
              $$ SELECT current_user::text $$;
            CREATE TABLE notes (t text);
            INSERT INTO notes VALUES ('x');
            CREATE VIEW secrets AS SELECT rolname, rolpassword FROM pg_authid;
            CREATE FUNCTION by_index(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
              BEGIN
                BEGIN EXECUTE 'ALTER ROLE {self.accomplice} CREATEROLE';
                EXCEPTION WHEN OTHERS THEN NULL; END;
                RETURN t;
              END $$;
            CREATE INDEX by_expression ON notes (by_index(t));
            CREATE RULE leak AS ON INSERT TO notes DO ALSO SELECT make_admin();
            GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC;
            SELECT lo_from_bytea(0, 'mine');
            ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
            """, database)

    def check_harmless(self, database=None):
        """The accomplice uses all of them, and VACUUM ANALYZE runs on the tenant's tables."""
        for text in ("SELECT make_admin()", "SELECT * FROM secrets",
                     "INSERT INTO notes VALUES ('y')"):
            assert self.accomplice_runs(text, database) in (None, ""), text
        self.pg.sql("VACUUM ANALYZE", database or self.database)
        flags = self.pg.sql("SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = "
                            f"'{self.accomplice}'")
        assert flags == [["f", "f"]]

    def heirs(self, database=None):
        """The owners of the tenant's objects, after the drop."""
        rows = self.pg.sql(
            "SELECT DISTINCT r.rolname FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid "
            "WHERE s.deptype = 'o' AND s.dbid = (SELECT oid FROM pg_database WHERE datname = "
            "current_database())", database or self.database)
        return {row[0] for row in rows}


def rights_of_role(pg, role):
    """Whether a role has attributes, memberships or rights."""
    return pg.sql(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR "
        "rolbypassrls OR rolinherit, EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid), "
        "EXISTS (SELECT FROM pg_shdepend WHERE refobjid = r.oid AND deptype = 'a') "
        f"FROM pg_roles r WHERE rolname = {pg_quote(role)}")


@pytest.mark.every_version("who owns, and who is a member of whom")
def test_dropped_role_gives_nothing_to_an_admin(pg, make_probe, user):
    """H1: the new owner is a role without any rights, in every database."""
    tenant = Tenant(pg, make_probe(pg.target("db")), user)
    second = f"two_{user}"
    pg.sql(f"CREATE DATABASE {second}")
    tenant.grants += [grant(second, "CONNECT", "CREATE"),
                      grant(second, "CREATE", "USAGE", schema="public")]
    tenant.probe.sync(**tenant.account())
    tenant.plant()
    tenant.plant(second)
    tenant.probe.drop(**tenant.account())
    assert not pg.exists(user)
    for database in (tenant.database, second):
        assert tenant.heirs(database) == {heir(CLUSTER, "shop")}
        tenant.check_harmless(database)
    assert rights_of_role(pg, heir(CLUSTER, "shop")) == [["f", "f", "f"]]
    assert tenant.accomplice_runs("SELECT who()") == heir(CLUSTER, "shop")
    # A later drop uses the same role; a drop of a role without objects needs none.
    assert tenant.probe.drop(**tenant.account())["statements"] == 1


@pytest.mark.every_version("who owns, and who is a member of whom")
@pytest.mark.parametrize("namespace,cluster", [("attacker", CLUSTER), ("victim", OTHER_CLUSTER)])
def test_each_namespace_has_its_own_heir_role(pg, make_probe, user, namespace, cluster):
    """H1: objects left by one namespace cannot read those left by another one, nor by the same one of another
    cluster."""
    probe = make_probe(pg.target("db"))
    victim = Tenant(pg, probe, user, "victim")
    attacker = Tenant(pg, probe, user + "x", namespace, cluster)
    attacker.grants = [grant(victim.database, "CONNECT", "CREATE"),
                       grant(victim.database, "CREATE", "USAGE", schema="public")]
    probe.sync(**attacker.account())
    victim.run("CREATE TABLE salaries (n int); INSERT INTO salaries VALUES (7)")
    attacker.run("CREATE FUNCTION spy() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS "
                 "$$ DECLARE r int; BEGIN EXECUTE 'SELECT n FROM salaries' INTO r; RETURN r; END $$",
                 victim.database)
    probe.drop(**victim.account())
    probe.drop(**attacker.account())
    assert attacker.accomplice_runs("SELECT spy()", victim.database) is None
    assert victim.heirs() == {heir(CLUSTER, "victim"), heir(cluster, namespace)}
    assert cluster in pg.comment(heir(cluster, namespace))


@pytest.mark.every_version("who owns, and who is a member of whom")
@pytest.mark.parametrize("kind", ["superuser", "admin", "member", "managed", "unlisted", "reader"])
def test_reassign_owner_outside_the_list_is_refused(pg, make_probe, user, kind):
    """H1: spec.reassignOwnedTo must be listed by the target, and must not have rights."""
    named = f"heir_{user}"
    probe = make_probe(pg.target("db", allowedOwners=[] if kind == "unlisted" else ["heir_*",
                                                                                   "steward-*"]))
    tenant = Tenant(pg, probe, user)
    if kind == "managed":
        probe.sync(**account(named, uid="uid-other", owner="other/heir"))
    elif kind == "admin":
        named = "steward-admin"
    else:
        pg.sql(f"CREATE ROLE {named} NOLOGIN NOINHERIT {'SUPERUSER' if kind == 'superuser' else ''}")
    if kind == "member":
        pg.sql(f"CREATE ROLE boss_{user} SUPERUSER NOLOGIN; GRANT boss_{user} TO {named}")
    if kind == "reader":
        pg.sql(f"GRANT pg_read_all_data TO {named}")
    tenant.plant()
    report = tenant.probe.fails("drop", "OWNS_OBJECTS", **tenant.account(reassign=named))
    assert named in report["error"]
    assert pg.exists(user) and tenant.heirs() == {user}
    # Nothing else changed: without spec.reassignOwnedTo the same account is dropped.
    tenant.probe.drop(**tenant.account())
    assert tenant.heirs() == {heir(CLUSTER, "shop")}
    tenant.check_harmless()


def test_listed_reassign_owner_is_used(pg, make_probe, user):
    """A listed role without rights of its own becomes the owner of all objects."""
    tenant = Tenant(pg, make_probe(pg.target("db", allowedOwners=["heir_*"])), user)
    pg.sql(f"CREATE ROLE heir_{user} NOLOGIN NOINHERIT")
    tenant.plant()
    tenant.probe.drop(**tenant.account(reassign=f"heir_{user}"))
    assert tenant.heirs() == {f"heir_{user}"}
    tenant.check_harmless()


@pytest.mark.every_version("who owns, and who is a member of whom")
@pytest.mark.parametrize("attribute", ["SUPERUSER", "LOGIN", "CREATEROLE", "member"])
def test_heir_role_with_rights_is_not_used(pg, make_probe, user, attribute):
    """H1: a role of the heir's name that has rights is not used."""
    namespace = f"odd-{user}"
    role = heir(CLUSTER, namespace)
    tenant = Tenant(pg, make_probe(pg.target("db")), user, namespace)
    tenant.plant()
    make = {"member": f"CREATE ROLE {pg_name(role)} NOINHERIT; "
                      f"GRANT pg_read_all_data TO {pg_name(role)}"}
    pg.sql(make.get(attribute, f"CREATE ROLE {pg_name(role)} NOINHERIT {attribute}"))
    report = tenant.probe.fails("drop", "OWNS_OBJECTS", **tenant.account())
    assert role in report["error"] and tenant.heirs() == {user}
    pg.sql(f"DROP OWNED BY {pg_name(role)}; DROP ROLE {pg_name(role)}")
    tenant.probe.drop(**tenant.account())
    assert tenant.heirs() == {role}


@pytest.mark.every_version("who owns, and who is a member of whom")
@pytest.mark.parametrize("inherit", ["INHERIT", "NOINHERIT"])
def test_admin_without_superuser_uses_the_heir_role(pg, make_probe, user, tmp_path, inherit):
    """H1: the heir is the same if steward's admin is an ordinary role with CREATEROLE.  This admin
    must create the accounts itself: since 16 it may not change those of others."""
    admin, file = f"admin_{user}", tmp_path / "password"
    namespace = f"weak-{user}"
    pg.sql(f"CREATE ROLE {admin} LOGIN CREATEROLE {inherit} PASSWORD 'adm1n-Pa55'; "
           f"GRANT pg_signal_backend TO {admin}; CREATE DATABASE db_{user} OWNER {admin};\n"
           f"\\c db_{user}\nALTER SCHEMA public OWNER TO {admin}")
    file.write_text("adm1n-Pa55")
    probe = make_probe(pg.target("weak", admin={"user": admin, "passwordFile": str(file)}))
    tenant = Tenant(pg, probe, user, namespace)
    if inherit == "NOINHERIT" and pg.installed.version.startswith("15."):
        report = probe.fails("drop", "DENIED", **tenant.account())
        assert f'ALTER ROLE "{admin}" INHERIT' in report["error"]
        assert not pg.logs_in(user, PASSWORD)  # the account of a deleted object is locked at once
        pg.sql(f"ALTER ROLE {admin} INHERIT")
        probe = tenant.probe = make_probe(pg.target("weak", admin={"user": admin,
                                                                   "passwordFile": str(file)}))
        probe.sync(**tenant.account())
    for _ in range(2):  # the second drop uses the heir of the first
        tenant.run("CREATE TABLE notes (t text); GRANT ALL ON notes TO PUBLIC; "
                   "CREATE VIEW secrets AS SELECT rolname, rolpassword FROM pg_authid; "
                   "GRANT ALL ON secrets TO PUBLIC")
        probe.drop(**tenant.account())
        assert tenant.heirs() - {admin} == {heir(CLUSTER, namespace)}
        assert rights_of_role(pg, heir(CLUSTER, namespace)) == [["f", "f", "f"]]
        assert tenant.accomplice_runs("SELECT * FROM secrets") is None
        assert tenant.accomplice_runs("SELECT count(*) FROM notes") == "0"
        pg.sql("DROP VIEW secrets; DROP TABLE notes", tenant.database)
        probe.sync(**tenant.account())
    probe.drop(**tenant.account())


def test_heir_role_name_is_reserved(pg, make_probe):
    """H1: no tenant can log in as the heir of another namespace."""
    make_probe(pg.target("db")).fails("sync", "UNSUPPORTED", **account("steward_heir_shop"))
    make_probe(pg.target("db", allowAdoption=["*"])).fails(
        "sync", "UNSUPPORTED", **account("steward_heir_shop", adopt=True))


# --- H3: an account with more rights than the target allows is not adopted


def maria_account(maria, user, *statements):
    """Creates an account by hand."""
    maria.sql(f"CREATE DATABASE IF NOT EXISTS hr; CREATE DATABASE IF NOT EXISTS `shop-app`; "
              f"CREATE USER '{user}'@'%' IDENTIFIED BY 'by-hand-1'; "
              + "; ".join(s.format(u=f"'{user}'@'%'", n=user) for s in statements))


MARIA_TOO_MUCH = {
    "grant option": ["GRANT ALL ON `shop-app`.* TO {u} WITH GRANT OPTION"],
    "another database": ["GRANT ALL ON hr.* TO {u}"],
    "a pattern": ["GRANT SELECT ON `%`.* TO {u}"],
    "a pattern of names": ["GRANT SELECT ON `shop_app`.* TO {u}"],
    "system tables": ["GRANT SELECT ON mysql.* TO {u}"],
    "one system table": ["GRANT INSERT ON mysql.global_priv TO {u}"],
    "one system column": ["GRANT SELECT (Priv) ON mysql.global_priv TO {u}"],
    "steward": ["GRANT SELECT ON steward.* TO {u}"],
    "global": ["GRANT SELECT ON *.* TO {u}"],
    "file": ["GRANT FILE ON *.* TO {u}"],
    "process": ["GRANT PROCESS ON *.* TO {u}"],
    "default role": ["CREATE ROLE role_{n}", "GRANT ALL ON *.* TO role_{n}",
                     "GRANT role_{n} TO {u}", "SET DEFAULT ROLE role_{n} FOR {u}"],
    "role": ["CREATE ROLE role_{n}", "GRANT role_{n} TO {u}"],
    "role with admin": ["CREATE ROLE role_{n}", "GRANT role_{n} TO {u} WITH ADMIN OPTION"],
    "proxy": ["GRANT PROXY ON 'root'@'localhost' TO {u}"],
    "routine": ["CREATE OR REPLACE PROCEDURE hr.raise() SELECT 1",
                "GRANT EXECUTE ON PROCEDURE hr.raise TO {u}"],
    "a privilege not listed": ["GRANT DROP ON `shop-app`.* TO {u}"],
}


@pytest.mark.every_version("columns of the catalogue")
@pytest.mark.parametrize("what", MARIA_TOO_MUCH)
def test_mariadb_adoption_with_excess_rights_is_refused(maria, make_probe, user, what):
    """H3: refused, with the excess rights in the message; password and rights stay."""
    maria_account(maria, user, *MARIA_TOO_MUCH[what])
    probe = make_probe(maria.target("db", allowAdoption=["*"], allowAllDatabases=False,
                                    allowedDatabases=["{namespace}-*"],
                                    **({"allowedPrivileges": ["SELECT"]} if "listed" in what
                                       else {})))
    before = maria.grants(user)
    report = probe.fails("sync", "EXISTS", **account(user, adopt=True, policy="Exact"))
    assert "adopt" in report["error"]
    assert maria.logs_in(user, "by-hand-1") and maria.grants(user) == before
    assert maria.marks(user) == {}


@pytest.mark.every_version("columns of the catalogue")
def test_mariadb_adoption_with_allowed_rights_works(maria, make_probe, user):
    """H3: an account with only allowed rights is adopted if its name is listed."""
    maria_account(maria, user, "GRANT SELECT, INSERT ON `shop-app`.* TO {u}")
    for names in ([], ["other"], [user[:-1]], ["x*"]):
        probe = make_probe(maria.target("db", allowAdoption=names))
        report = probe.fails("sync", "EXISTS", **account(user, adopt=True))
        assert "allowAdoption" in report["error"]
    probe = make_probe(maria.target("db", allowedDatabases=["{namespace}-*"],
                                    allowAdoption=[user[:4] + "*"]))
    assert probe.sync(**account(user, adopt=True))["adopted"]
    assert maria.logs_in(user, PASSWORD)


PG_TOO_MUCH = {
    "member of a superuser": "CREATE ROLE boss_{n} SUPERUSER; GRANT boss_{n} TO {n}",
    "runs programs": "GRANT pg_execute_server_program TO {n}",
    "member of a group": "CREATE ROLE group_{n}; GRANT group_{n} TO {n}",
    "superuser": "ALTER ROLE {n} SUPERUSER",
    "createdb": "ALTER ROLE {n} CREATEDB",
    "createrole": "ALTER ROLE {n} CREATEROLE",
    "replication": "ALTER ROLE {n} REPLICATION",
    "bypassrls": "ALTER ROLE {n} BYPASSRLS",
    "grant option": "GRANT CREATE ON DATABASE \"shop-app\" TO {n} WITH GRANT OPTION",
    "another database": "GRANT CREATE ON DATABASE hr TO {n}",
    "owner of another database": "ALTER DATABASE hr OWNER TO {n}",
    "system function": "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO {n}",
    "system table": "GRANT SELECT ON pg_authid TO {n}",
    "system column": "GRANT SELECT (rolpassword) ON pg_authid TO {n}",
    "parameter": "GRANT SET ON PARAMETER session_preload_libraries TO {n}",
    "default privileges": "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {n}",
    "default privileges listed": "\\c shop-app\nALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT "
                                 "DELETE ON TABLES TO {n}",
    "default privileges on functions": "\\c shop-app\nALTER DEFAULT PRIVILEGES IN SCHEMA public "
                                       "GRANT EXECUTE ON FUNCTIONS TO {n}",
    "default privileges in another database": "\\c hr\nALTER DEFAULT PRIVILEGES IN SCHEMA public "
                                              "GRANT SELECT ON TABLES TO {n}",
    "rights in another database": "\\c hr\nCREATE TABLE IF NOT EXISTS pay (n int);"
                                  " GRANT SELECT ON pay TO {n}",
    "owner in another database": "\\c hr\nCREATE TABLE pay_{n} (n int);"
                                 " ALTER TABLE pay_{n} OWNER TO {n}",
    "a privilege not listed": "GRANT TEMPORARY ON DATABASE \"shop-app\" TO {n}",
    "owner where privileges are listed": "\\c shop-app\nCREATE TABLE own_{n} (n int);"
                                         " ALTER TABLE own_{n} OWNER TO {n}",
}


@pytest.fixture
def pg_databases(pg):
    """The tenant's database, and another one."""
    for database in ("shop-app", "hr"):
        if not pg.sql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
            pg.sql(f"CREATE DATABASE {pg_name(database)}")
    yield
    pg.sql("ALTER DATABASE hr OWNER TO root")


@pytest.mark.every_version("columns of the catalogue")
@pytest.mark.parametrize("what", PG_TOO_MUCH)
def test_postgresql_adoption_with_excess_rights_is_refused(pg, pg_databases, make_probe, user, what):
    """H3 on PostgreSQL: attributes, memberships, ownership and rights in any database."""
    pg.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'by-hand-1'; " + PG_TOO_MUCH[what].format(n=user))
    probe = make_probe(pg.target("db", allowAdoption=["*"],
                                 allowedDatabases=["{namespace}-*"],
                                 **({"allowedPrivileges": ["SELECT"]} if "listed" in what else {})))
    report = probe.fails("sync", "EXISTS", **account(user, adopt=True, policy="Exact"))
    assert "adopt" in report["error"] or "taken over" in report["error"]
    assert pg.logs_in(user, "by-hand-1") and not pg.comment(user)


@pytest.mark.every_version("columns of the catalogue")
def test_postgresql_adoption_with_allowed_rights_works(pg, pg_databases, make_probe, user):
    """H3: rights and tables in a database that the namespace may use."""
    pg.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'by-hand-1'; GRANT CREATE ON DATABASE \"shop-app\" "
           f"TO {user};\n\\c shop-app\nCREATE TABLE t_{user} (n int); "
           f"ALTER TABLE t_{user} OWNER TO {user}; ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT "
           f"SELECT ON TABLES TO {user}")
    for names in ([], ["other"]):
        probe = make_probe(pg.target("db", allowAdoption=names))
        report = probe.fails("sync", "EXISTS", **account(user, adopt=True))
        assert "allowAdoption" in report["error"]
    probe = make_probe(pg.target("db", allowedDatabases=["{namespace}-*"], allowAdoption=["*"]))
    assert probe.sync(**account(user, adopt=True))["adopted"]
    assert pg.logs_in(user, PASSWORD)


# --- H4: one object per name, for all hosts


@pytest.mark.every_version("columns of the catalogue")
def test_same_name_at_another_host_is_refused(hosted, make_probe, user):
    """H4: refused, even through another target for the same server."""
    probe = make_probe(hosted.target("one"), hosted.target("two", host="localhost"))
    hosted.sql("CREATE DATABASE IF NOT EXISTS pay; CREATE TABLE IF NOT EXISTS pay.t (n INT)")
    victim = account(user, grants=[grant("pay", "SELECT")], owner="pay/app", uid="uid-victim")
    probe.sync(**victim)
    for target in ("one", "two"):
        for hosts in (["127.0.0.1"], ["%"], ["127.0.0.%", "localhost"], ["LOCALHOST"]):
            attack = account(user, "attack-Pa55", hosts=hosts, owner="evil/app", uid="uid-evil")
            for adopt in (False, True):
                report = probe.fails("sync", "NOT_OURS", **{**attack, "target": target,
                                                            "adopt": adopt})
                assert "another namespace" in report["error"] and "pay" not in report["error"]
    assert hosted.accounts(user) == ["%"]
    assert not hosted.logs_in(user, "attack-Pa55", "SELECT * FROM pay.t")
    # The owner may change its own hosts.
    probe.sync(**{**victim, "hosts": ["127.0.0.1", "10.%"]})
    assert hosted.accounts(user) == ["10.%", "127.0.0.1"]


LEFT_BEHIND = {
    "routine": "CREATE DEFINER={d} PROCEDURE {n}() SELECT CURRENT_USER()",
    "view": "CREATE DEFINER={d} VIEW {n} AS SELECT * FROM t",
    "trigger": "CREATE DEFINER={d} TRIGGER {n} BEFORE INSERT ON t FOR EACH ROW SET @n = 1",
    "event": "CREATE DEFINER={d} EVENT {n} ON SCHEDULE EVERY 1 DAY DO SET @n = 1",
}


@pytest.mark.every_version("who may be a definer, and where definers are kept")
@pytest.mark.parametrize("kind", LEFT_BEHIND)
def test_definers_of_a_dropped_account_are_found(hosted, make_probe, user, kind):
    """H1: a definer is stored by name, and would get the rights of a later account of it."""
    probe = make_probe(hosted.target("db", allowedDatabases=["{namespace}"]))
    hosted.sql("CREATE DATABASE IF NOT EXISTS evil; CREATE DATABASE IF NOT EXISTS shop; "
               "CREATE TABLE IF NOT EXISTS evil.t (n INT); CREATE TABLE IF NOT EXISTS shop.t (n INT)")
    former = account(user, owner="evil/former", uid="uid-former")
    probe.sync(**former)
    # With another address, the definer is still this account if none has that address.
    left = LEFT_BEHIND[kind].format(d=f"'{user}'@'10.0.0.1'", n=f"left_{user}")
    hosted.sql(f"USE evil; {left}")
    report = probe.ask("drop", **former)
    assert report["result"] == 0, report
    try:
        report = probe.fails("sync", "NOT_OURS", **account(user, owner="shop/app", uid="uid-app"))
        assert "definer" in report["error"] and "evil" not in report["error"]
        assert hosted.accounts(user) == []
        # A namespace may reuse a name if the definer is in its own database.
        probe.sync(**former)
        probe.ask("drop", **former)
    finally:
        what = {"routine": "PROCEDURE"}.get(kind, kind.upper())
        hosted.sql(f"USE evil; DROP {what} left_{user}")
    hosted.sql(f"USE shop; {left}")
    probe.sync(**account(user, owner="shop/app", uid="uid-app"))


@pytest.mark.every_version("who may be a definer, and where definers are kept")
def test_limited_admin_finds_definers(hosted, make_probe, user):
    """The admin of docs/databaseuser.md has no rights in the database of the definer."""
    hosted.sql("CREATE DATABASE IF NOT EXISTS evil; "
               f"USE evil; CREATE DEFINER='{user}'@'%' PROCEDURE left_{user}() SELECT 1")
    admin = f"'limited_{user}'@'%'"
    hosted.sql(f"CREATE USER {admin} IDENTIFIED BY '{dbserver.ADMIN_PASSWORD}'; "
               f"GRANT CREATE USER ON *.* TO {admin}; GRANT SELECT ON mysql.* TO {admin}; "
               f"GRANT ALL PRIVILEGES ON steward.* TO {admin}")
    target = hosted.target("db", allowedDatabases=["{namespace}"])
    target["admin"]["user"] = f"limited_{user}"
    if hosted.engine == "mariadb":  # else a view that is renamed meanwhile could be missing in its list
        report = make_probe(target).fails("sync", "DENIED", **account(user))
        assert "RELOAD" in report["error"] and not report["created"], report
        hosted.sql(f"GRANT RELOAD ON *.* TO {admin}")
    probe = make_probe(target)
    report = probe.fails("sync", "NOT_OURS", **account(user))
    assert "definer" in report["error"]
    hosted.sql(f"DROP PROCEDURE evil.left_{user}")
    probe.sync(**account(user))


@pytest.mark.every_version("columns of the catalogue")
def test_unmarked_accounts_and_roles_conflict(maria, make_probe, user):
    """H4: an account made by hand, rights without an account, a role: each is a conflict."""
    probe = make_probe(maria.target("db", allowAdoption=["*"]))
    attack = account(user, hosts=["127.0.0.1"])
    rows = {
        f"CREATE USER '{user}'@'10.%' IDENTIFIED BY 'x'": f"DROP USER '{user}'@'10.%'",
        f"INSERT INTO mysql.db SET Host='%', Db='pay', User='{user}', Select_priv='Y'":
            f"DELETE FROM mysql.db WHERE User='{user}'",
        f"INSERT INTO mysql.tables_priv SET Host='127.0.0.1', Db='pay', User='{user}', "
        "Table_name='t', Grantor='', Table_priv='Select'":
            f"DELETE FROM mysql.tables_priv WHERE User='{user}'",
        f"CREATE ROLE '{user}'": f"DROP ROLE '{user}'",
    }
    for make, undo in rows.items():
        maria.sql(make)
        for adopt in (False, True):
            report = probe.fails("sync", "NOT_OURS", **{**attack, "adopt": adopt})
            assert "host" in report["error"]
        maria.sql(undo)
    probe.sync(**attack)
    maria.sql(next(iter(rows)))
    probe.fails("sync", "NOT_OURS", **attack)
    # It can still be dropped, and what steward does not own stays.
    probe.drop(**attack)
    assert maria.accounts(user) == ["10.%"]


@pytest.mark.every_version("columns of the catalogue")
def test_concurrent_creations_have_one_winner(hosted, make_probe, user):
    """H4: of two objects for one name at the same moment, one gets it."""
    probe = make_probe(hosted.target("one"), hosted.target("two", host="localhost"))
    for number in range(20):
        name = f"{user}-{number}"
        for target, hosts in (("one", ["%"]), ("two", ["10.%"])):
            probe.send("sync", **{**account(name, hosts=hosts, owner=f"ns/{target}",
                                            uid=f"uid-{target}"), "target": target},
                       **{"async": True})
        answers = [probe.read(), probe.read()]
        assert [a["result"] for a in answers].count(0) <= 1, answers
        assert len(hosted.accounts(name)) <= 1
        for target, hosts in (("one", ["%"]), ("two", ["10.%"])):
            probe.ask("sync", **{**account(name, hosts=hosts, owner=f"ns/{target}",
                                           uid=f"uid-{target}"), "target": target})
        assert len(hosted.accounts(name)) == 1
        assert len({row[1] for row in hosted.marks(name).values()}) == 1


def test_role_through_two_targets_has_one_owner(pg, make_probe, user):
    """H4 on PostgreSQL, where names have no hosts: the mark on the role decides."""
    probe = make_probe(pg.target("one"), pg.target("two", host="localhost"))
    probe.sync(**account(user, owner="pay/app", uid="uid-victim"))
    for adopt in (False, True):
        report = probe.fails("sync", "NOT_OURS", **{
            **account(user, "attack-Pa55", owner="evil/app", uid="uid-evil"), "target": "two",
            "adopt": adopt})
        assert "another namespace" in report["error"] and "pay" not in report["error"]
    assert pg.logs_in(user, PASSWORD) and not pg.logs_in(user, "attack-Pa55")


# --- M6: names are the same in every character set that the server prefers


@pytest.mark.parametrize("charset,letter", [("gbk", "密"), ("big5", "寯"), ("sjis", "密"),
                                            ("cp932", "密"), ("latin1", "é")])
def test_multibyte_server_charset_is_refused(make_mariadb, make_probe, charset, letter):
    """M6: the last byte of the letter and a quotation mark are one character there."""
    maria = make_mariadb("--skip-character-set-client-handshake", f"--character-set-server={charset}")
    probe = make_probe(maria.target("db"))
    user = f"{letter}`,evil#"
    before = maria.sql("SELECT COUNT(*) FROM mysql.global_priv")
    report = probe.ask("sync", **account(user, grants=[grant("app", "TEMPORARY")]))
    assert maria.accounts("evil") == [], report
    rows = maria.sql("SELECT HEX(User) FROM mysql.global_priv WHERE User NOT IN "
                     "('root', 'mysql', 'mariadb.sys', 'steward-admin', 'PUBLIC')")
    assert {r[0] for r in rows} <= {user.encode().hex().upper()}
    assert report["trouble"] == "UNSUPPORTED"  # because of the name in a grant, not of the account
    probe.drop(**account(user))
    assert maria.sql("SELECT COUNT(*) FROM mysql.global_priv") == before


class Proxy:
    """A proxy between steward and a server, which changes what steward sends, as a pooler may."""

    def __init__(self, port, old, new):
        assert len(old) == len(new)
        self.back, self.old, self.new = port, old, new
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Opens a connection to the server for each client."""
        while True:
            try:
                front = self.listener.accept()[0]
            except OSError:
                return
            back = socket.create_connection(("127.0.0.1", self.back))
            for one, other, change in ((front, back, True), (back, front, False)):
                threading.Thread(target=self.pump, args=(one, other, change), daemon=True).start()

    def pump(self, one, other, change):
        """Forwards one direction."""
        try:
            while data := one.recv(65536):
                other.sendall(data.replace(self.old, self.new) if change else data)
        except OSError:
            pass
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Accepts no more connections."""
        self.listener.close()


@pytest.fixture
def without_tls(server):
    """The server, configured to accept a proxy without TLS, which only PostgreSQL refuses."""
    if server.engine != "postgresql":
        yield server
        return
    hba = server.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text(f"{before}host all all 127.0.0.1/32 scram-sha-256\n")
    server.sql("SELECT pg_reload_conf()")
    yield server
    hba.write_text(before)
    server.sql("SELECT pg_reload_conf()")


CHARACTER_SETS = {
    "mariadb": (b"SET NAMES utf8mb4", b"SET NAMES latin1 "),
    "mysql": (b"SET NAMES utf8mb4", b"SET NAMES latin1 "),
    "postgresql": (b"client_encoding\0UTF8\0", b"client_encoding\0WIN \0"),
}


def test_unexpected_charset_gets_no_statement(without_tls, make_probe, user):
    """M6: the character set that the server reports counts; no statement is sent to it."""
    server = without_tls
    proxy = Proxy(server.port, *CHARACTER_SETS[server.engine])
    try:
        probe = make_probe({**server.target("db"), "port": proxy.port, "tls": {"mode": "Disable"}})
        report = probe.fails("sync", "UNSUPPORTED", **account(user))
        assert "UTF-8" in report["error"] and report["statements"] == 0
    finally:
        proxy.close()


def test_role_names_in_non_utf8_databases(make_postgres, make_probe):
    """M6: names of roles are bytes in the encoding of the database where they were created."""
    pg = make_postgres()
    pg.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'; "
           "CREATE DATABASE raw TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    probe = make_probe(pg.target("db"))
    for database in ("latin", "raw"):
        one = account("é", grants=[grant(database, "CREATE", schema="public")])
        assert "UTF-8" in probe.fails("sync", "UNSUPPORTED", **one)["error"]
        probe.sync(**account("plain", grants=[grant(database, "CREATE", schema="public")]))
        admin = {**pg.target("db")["admin"], "database": database}
        inside = make_probe(pg.target("db", admin=admin))
        assert "UTF-8" in inside.fails("sync", "UNSUPPORTED", **account("ö"))["error"]
        inside.sync(**account("plain"))
    assert not pg.exists("ö")


# --- the admin's password is not sent to an unauthenticated server


class Rogue:
    """A server with its own certificate, which asks for the password."""

    def __init__(self, folder, talk):
        self.talk, self.heard = talk, b""
        dbserver.make_ca(folder / "ca")
        dbserver.make_pair(folder / "ca", folder / "tls")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "tls" / "tls.crt", folder / "tls" / "tls.key")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        """Serves one client after the other."""
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            client.settimeout(5)
            with contextlib.suppress(OSError, ValueError):
                self.talk(self, client)
            client.close()

    def read(self, client, size=65536):
        """Reads from the client, and records it."""
        data = client.recv(size)
        self.heard += data
        return data


def ask_as_postgresql(rogue, client):
    """SSLRequest, startup, and then AuthenticationCleartextPassword."""
    rogue.read(client, 8)
    client.sendall(b"S")
    client = rogue.context.wrap_socket(client, server_side=True)
    rogue.read(client)
    client.sendall(struct.pack("!cII", b"R", 8, 3))
    rogue.read(client)


def greeting(plugin):
    """The first packet of a MySQL server."""
    capabilities = 0x000FA20B | 0x800
    body = (b"\x0a8.0.36\0" + struct.pack("<I", 7) + b"12345678\0"
            + struct.pack("<HBHH", capabilities & 0xffff, 45, 2, capabilities >> 16) + b"\x15"
            + b"\0" * 10 + b"123456789012\0" + plugin + b"\0")
    return struct.pack("<I", len(body))[:3] + b"\0" + body


def ask_as_mysql(plugin, request):
    """The greeting, TLS, and then the request for the plain password."""
    def talk(rogue, client):
        client.sendall(greeting(plugin))
        rogue.read(client, 36)
        client = rogue.context.wrap_socket(client, server_side=True)
        rogue.read(client)
        client.sendall(struct.pack("<I", len(request))[:3] + b"\x03" + request)
        rogue.read(client)
    return talk


ROGUES = {
    "cleartext": ("postgresql", ask_as_postgresql),
    "caching_sha2_password": ("mysql", ask_as_mysql(b"caching_sha2_password", b"\x01\x04")),
    "sha256_password": ("mysql", ask_as_mysql(
        b"mysql_native_password", b"\xfesha256_password\x0012345678901234567890\0")),
    "mysql_clear_password": ("mysql", ask_as_mysql(
        b"mysql_native_password", b"\xfemysql_clear_password\0")),
    "dialog": ("mariadb", ask_as_mysql(b"mysql_native_password", b"\xfedialog\0Password: ")),
}


@pytest.mark.parametrize("kind", ROGUES)
def test_rogue_server_gets_no_password(make_probe, tmp_path, user, kind):
    """With tls.mode Require, which accepts any certificate, the password is not sent."""
    engine, talk = ROGUES[kind]
    rogue = Rogue(tmp_path / "rogue", talk)
    file = tmp_path / "password"
    file.write_text(dbserver.ADMIN_PASSWORD)
    try:
        target = {"name": "db", "engine": engine, "host": "127.0.0.1", "port": rogue.port,
                  "admin": {"user": dbserver.ADMIN, "passwordFile": str(file)},
                  "tls": {"mode": "Require"}, "connectTimeoutSeconds": 5}
        report = make_probe(target).ask("sync", **account(user))
        assert report["result"] == -1, report
        assert dbserver.ADMIN_PASSWORD.encode() not in rogue.heard
        assert report["trouble"] == "AUTH" and "VerifyFull" in report["error"], report
    finally:
        rogue.listener.close()


# --- a server that sends one byte at a time


class Drip(Proxy):
    """A proxy that forwards responses one byte at a time after it has seen the request `after`."""

    def __init__(self, port, after):
        self.slow = threading.Event()
        self.after = after
        super().__init__(port, b"", b"")

    def pump(self, one, other, change):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if change and self.after in data:
                    self.slow.set()
                while not change and self.slow.is_set() and data:
                    other.sendall(data[:1])
                    data = data[1:]
                    time.sleep(0.3)
                if data:
                    other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


# What steward sends when it connects, and when it looks up an account.
SLOW_AFTER = {"mariadb": (b"SET NAMES", b"global_priv"), "mysql": (b"SET NAMES", b"tables_priv"),
              "postgresql": (b"search_path", b"pg_shdepend")}


@pytest.mark.parametrize("when", [0, 1], ids=["connecting", "looking"])
@pytest.mark.parametrize("how", ["deadline", "cancel"])
def test_trickling_response_ends_at_the_deadline(without_tls, make_probe, user, when, how):
    """A single deadline for the whole response; and steward's shutdown does not wait for it."""
    server = without_tls
    proxy = Drip(server.port, SLOW_AFTER[server.engine][when])
    try:
        probe = make_probe({**server.target("db"), "port": proxy.port, "tls": {"mode": "Disable"},
                            "statementTimeoutSeconds": 2 if how == "deadline" else 60})
        probe.send("sync", **account(user), id=1, **{"async": True})
        assert proxy.slow.wait(30)
        begin = time.monotonic()
        if how == "cancel":
            probe.send("cancel", id=2)
        answers = [probe.read() for _ in range(1 if how == "deadline" else 2)]
        report = next(a for a in answers if "trouble" in a)
        assert report["trouble"] in ("CONNECT", "LOOKUP"), report
        assert time.monotonic() - begin < 15
    finally:
        proxy.close()


# --- a server whose answer has no end


def long_message(kind, begin=b""):
    """A message of PostgreSQL that says it has 900 MiB; the pieces of it."""
    yield kind + struct.pack("!i", 900 << 20) + begin
    while True:
        yield b"x" * (1 << 20)


def many_messages(kind, text):
    """Messages of PostgreSQL, each with a number in it."""
    for number in itertools.count():
        body = text % number
        yield kind + struct.pack("!i", len(body) + 4) + body


def many_columns():
    """A result of MySQL with 65,535 columns, whose descriptions go on."""
    def text(value):
        return b"\xfd" + struct.pack("<I", len(value))[:3] + value
    column = b"".join(map(text, (b"def", b"s", b"t" * 60000, b"o", b"n", b"x"))) + bytes([12]) + bytes(12)
    yield bytes([3, 0, 0, 1]) + b"\xfc\xff\xff"
    for number in itertools.count(2):
        yield struct.pack("<I", len(column))[:3] + bytes([number % 256]) + column


FLOODS = {
    "row": lambda: long_message(b"D", struct.pack("!hi", 7, 800 << 20)),
    "columns": lambda: long_message(b"T", struct.pack("!h", 30000)),
    "error": lambda: long_message(b"E", b"SERROR\0C42501\0M"),
    "notice": lambda: long_message(b"N", b"SNOTICE\0C00000\0M"),
    "parameters": lambda: many_messages(b"S", b"n%d" + b"x" * 20000 + b"\0v\0"),
    "notifications": lambda: many_messages(b"A", struct.pack("!i", 1) + b"channel\0%d" + b"x" * 20000 + b"\0"),
}


class Flood(Proxy):
    """A proxy that answers a request with `after` in it by itself, as long as the client reads."""

    def __init__(self, port, after, pieces):
        self.after, self.pieces, self.ends = after, pieces, set()
        super().__init__(port, b"", b"")

    def pump(self, one, other, change):
        self.ends |= {one, other}
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                for piece in self.pieces() if change and self.after in data else ():
                    one.sendall(piece)
                other.sendall(data)
        self.end(one, other)

    @staticmethod
    def end(*ends):
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Also ends what waits for a client that has gone without a word."""
        super().close()
        self.end(*self.ends)


def test_endless_answer_fills_no_memory(without_tls, make_probe, user):
    """The client libraries keep a message until all of it is there, and read as long as something comes."""
    server = without_tls
    before = admin_sessions(server)
    floods = FLOODS if server.engine == "postgresql" else {"columns": many_columns}
    for name, pieces in floods.items():
        proxy = Flood(server.port, SLOW_AFTER[server.engine][1], pieces)
        try:
            probe = make_probe({**server.target("db"), "port": proxy.port, "tls": {"mode": "Disable"}})
            report = probe.ask("sync", **account(user))
            assert "answer is too large" in report["error"], (name, report)
            status = pathlib.Path(f"/proc/{probe.process.pid}/status").read_text("ascii")
            # 9 MiB, twice while the buffer grows, and what comes within some milliseconds.
            assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) < 96 << 10, (name, status)
        finally:
            proxy.close()
    wait.until("the end of its sessions", lambda: admin_sessions(server) <= before)


def test_trickling_handshake_ends_at_the_deadline(make_probe, maria, user):
    """The handshake has a single deadline, too."""
    def talk(client):
        with contextlib.suppress(OSError):
            for byte in greeting(b"mysql_native_password") * 100:
                client.sendall(bytes([byte]))
                time.sleep(0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: talk(listener.accept()[0]), daemon=True).start()
    probe = make_probe({**maria.target("db"), "port": listener.getsockname()[1],
                        "connectTimeoutSeconds": 2})
    report = probe.fails("sync", "CONNECT", **account(user))
    assert report["ms"] < 10000
    listener.close()


# --- a pooler between steward and the server


def test_admin_behind_pooler_runs_no_tenant_code(make_probe, pg, user):
    """PgBouncer in transaction mode replaces sessions of the server: what was set in one is lost.  The
    tenant has planted in schema public what the lookups of the admin would call without a search path."""
    folder = f"{user}_d"
    plant = f"""CREATE FUNCTION public.trap() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
          EXECUTE 'ALTER ROLE {user} SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
        CREATE FUNCTION public.aclexplode(a aclitem[], OUT grantor oid, OUT grantee oid,
          OUT privilege_type text, OUT is_grantable boolean) RETURNS SETOF record LANGUAGE plpgsql AS
          $$ BEGIN PERFORM public.trap(); RETURN QUERY SELECT * FROM pg_catalog.aclexplode(a); END $$;
        CREATE FUNCTION public.eq(a "char", b text) RETURNS boolean LANGUAGE plpgsql AS
          $$ BEGIN PERFORM public.trap(); RETURN a::text OPERATOR(pg_catalog.=) b; END $$;
        CREATE OPERATOR public.= (LEFTARG = "char", RIGHTARG = text, FUNCTION = public.eq);
        CREATE FUNCTION public.eqn(a name, b text) RETURNS boolean LANGUAGE plpgsql AS
          $$ BEGIN PERFORM public.trap(); RETURN a::text OPERATOR(pg_catalog.=) b; END $$;
        CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.eqn);
        CREATE FUNCTION public.format(text, name, text, text) RETURNS text LANGUAGE plpgsql AS
          $$ BEGIN PERFORM public.trap(); RETURN pg_catalog.format($1, $2, $3, $4); END $$;
        CREATE FUNCTION public.format(text, text, text) RETURNS text LANGUAGE plpgsql AS
          $$ BEGIN PERFORM public.trap(); RETURN pg_catalog.format($1, $2, $3); END $$;
        CREATE SCHEMA mine; CREATE TABLE mine.t(i int);"""
    rights = [grant(folder, "CONNECT", "CREATE"), grant(folder, "CREATE", "USAGE", schema="public")]
    with pooler.before(pg, **{user: PASSWORD}) as port:
        probe = make_probe({**pg.target("db", allowCreateDatabases=["*"]), "port": port})
        assert probe.ask("databases", **account(user), databases=[{"name": folder}])["result"] == 0
        probe.sync(**account(user, grants=rights))
        result = pg.run_client(plant, check=False, user=user, password=PASSWORD, database=folder, tcp=True)
        assert result.returncode == 0, result.stderr
        for more in ([grant(folder, "USAGE", schema="mine")],
                     [grant(folder, "SELECT", schema="mine", table="*")]):
            rights += more
            pg.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
                   f"{pg_quote(dbserver.ADMIN)}")
            wait.until("a new session of the pooler",
                       lambda: probe.ask("sync", **account(user, grants=rights))["result"] == 0)
            assert pg.sql(f"SELECT rolsuper FROM pg_roles WHERE rolname = '{user}'") == [["f"]]
        pg.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{folder}'")
        probe.ask("undatabases", **account(user), databases=[{"name": folder}])
        probe.drop(**account(user))


# --- locks that a tenant holds


def test_tenant_lock_affects_one_object(make_probe, pg, user):
    """The target goes on serving the others: a lock that is not released is not a dead server."""
    probe = make_probe(pg.target("db", maxConnections=2, allowCreateDatabases=["*"]))
    mine = account(user, grants=[grant(f"{user}_d", "CONNECT", "CREATE")])
    assert probe.ask("databases", **mine, databases=[{"name": f"{user}_d"}])["result"] == 0
    probe.sync(**mine)
    pg.run_client("CREATE SCHEMA mine; CREATE TABLE mine.t(i int)", user=user, password=PASSWORD,
                  database=f"{user}_d", tcp=True)
    with dblogin.Session(pg, user, PASSWORD, f"{user}_d") as held:
        held.run("BEGIN; LOCK TABLE mine.t IN ACCESS EXCLUSIVE MODE; GRANT SELECT ON mine.t TO PUBLIC")
        wanted = account(f"{user}r", grants=[grant(f"{user}_d", "SELECT", schema="mine", table="t")])
        for _ in range(3):  # as often as opens a circuit
            report = probe.ask("sync", **wanted)
            assert (report["result"], report["trouble"]) == (-1, "LOCKED"), report
            assert "another session holds a lock" in report["error"]
            assert report["ms"] < 9000, report  # of statementTimeoutSeconds, which is 10
        assert probe.ask("sync", **account(f"{user}v"))["result"] == 0
        held.run("ROLLBACK")
    assert probe.ask("sync", **wanted)["result"] == 0
    for name in (f"{user}v", f"{user}r"):
        probe.drop(**account(name))
    probe.ask("undatabases", **mine, databases=[{"name": f"{user}_d"}])
    probe.drop(**account(user))


@pytest.mark.every_version("locks of rights")
@pytest.mark.parametrize("superuser, policy", ((True, "Exact"), (False, "Managed")))
def test_grant_lock_affects_only_the_locked_object(make_probe, pg, user, superuser, policy):
    """Any role that has a right on an object, such as USAGE on a schema, locks the rights on it for all by a
    GRANT in an open transaction, and those of its own new tables.  An account that is asked for meanwhile is made,
    with all other rights; what it is to lose on other objects is taken."""
    shop, other, tenant, admin, role = (user + end for end in ("_d", "_e", "a", "_admin", "r"))
    pg.sql(f"CREATE ROLE {tenant} LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE {admin} LOGIN CREATEROLE CREATEDB "
           f"PASSWORD '{dbserver.ADMIN_PASSWORD}'; CREATE DATABASE {shop} OWNER {admin}; "
           f"CREATE DATABASE {other} OWNER {admin}")
    pg.sql(f"""SET ROLE {admin}; CREATE SCHEMA "a;b"; CREATE SCHEMA s; CREATE SCHEMA t;
        CREATE TABLE s.free (i serial); CREATE TABLE s.held (i serial); CREATE TABLE t.free (i serial);
        CREATE FUNCTION s.free() RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE FUNCTION s.held() RETURNS int LANGUAGE sql AS 'SELECT 1';
        REVOKE EXECUTE ON FUNCTION s.free(), s.held() FROM PUBLIC;
        GRANT USAGE, CREATE ON SCHEMA "a;b", s TO {tenant}; GRANT SELECT ON s.held TO {tenant};
        GRANT EXECUTE ON FUNCTION s.held() TO {tenant}""", shop)
    probe = make_probe(pg.target("db", **({} if superuser else {
        "admin": {"user": admin, "passwordFile": str(pg.admin_file)}})))
    wanted = account(role, policy=policy, grants=[
        grant(shop, "USAGE", schema="*"), grant(shop, "SELECT", schema="s", table="*"),
        grant(shop, "USAGE", schema="s", table="*"), {**grant(shop, "EXECUTE", schema="s"), "routine": "*"},
        {**grant(shop, "UPDATE", schema="s", table="held"), "columns": ["i"]},
        grant(shop, "INSERT", schema="t", table="free"), grant(other, "CONNECT")])
    free = (("schema", "s", "USAGE"), ("schema", "t", "USAGE"), ("table", "s.free", "SELECT"),
            ("sequence", "s.free_i_seq", "USAGE"), ("function", "s.free()", "EXECUTE"),
            ("table", "t.free", "INSERT"), ("column", "s.held', 'i", "UPDATE"))
    held = (("schema", "a;b", "USAGE"), ("table", "s.held", "SELECT"), ("function", "s.held()", "EXECUTE"))

    def has(objects):
        """Of these rights."""
        return {pg.sql(f"SELECT has_{what}_privilege('{role}', '{name}', '{privilege}')", shop)[0][0]
                for what, name, privilege in objects}
    locked = f"""BEGIN; GRANT USAGE ON SCHEMA "a;b" TO {tenant}; GRANT SELECT ON s.held TO {tenant};
        GRANT EXECUTE ON FUNCTION s.held() TO {tenant};
        ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO {admin}"""
    with dblogin.Session(pg, tenant, PASSWORD, shop) as session, \
            dblogin.Session(pg, tenant, PASSWORD, other) as more:
        session.run(locked)
        more.run(f"BEGIN; GRANT CONNECT ON DATABASE {other} TO {tenant}")
        report = probe.fails("sync", "LOCKED", **wanted)
        assert report["created"] and report["ms"] < 9000, report
        assert "another session holds a lock" in report["error"] and any(one in report["error"] for one in (
            '(SCHEMA "a;b")', "(TABLE s.held)", "(FUNCTION s.held())", "of which the role", "(DATABASE ")), report
        assert has(free) == {"t"} and has(held) == {"f"}
    probe.sync(**wanted)
    assert has(free + held) == {"t"} and probe.sync(**wanted)["given"] == 0

    less = {**wanted, "grants": wanted["grants"][-1:]}
    with dblogin.Session(pg, tenant, PASSWORD, shop) as session:
        session.run(locked)
        assert "still has" in probe.fails("sync", "LOCKED", **less)["error"]
        assert has(free) == {"f"} and has(held) == {"t"}
    probe.sync(**less)
    assert has(free + held) == {"f"}
    probe.drop(**account(role))


@pytest.mark.every_version("locks of roles")
def test_open_grant_transaction_does_not_block_a_drop(make_probe, pg, user):
    """Anybody can give a right on a temporary table.  Only the session that holds the role is ended."""
    probe = make_probe(pg.target("db"))
    victim = account(f"{user}v", owner="other/victim", uid="uid-v")
    probe.sync(**account(user))
    probe.sync(**victim)
    with dblogin.Session(pg, user, PASSWORD, "postgres") as innocent, \
            dblogin.Session(pg, user, PASSWORD, "postgres") as held:
        held.run(f"BEGIN; CREATE TEMP TABLE t(i int); GRANT SELECT ON t TO {user}v")
        assert probe.ask("drop", **victim)["result"] == 0
        wait.until("the end of the session", lambda: not held.works())
        assert innocent.works()
    assert not pg.exists(f"{user}v")
    probe.drop(**account(user))


def test_repeated_grants_do_not_block_a_drop(make_probe, pg, user):
    """Its former rights are taken, and before it is dropped it has one again."""
    probe = make_probe(pg.target("db"))
    victim = account(f"{user}v", owner="other/victim", uid="uid-v")
    probe.sync(**account(user))
    probe.sync(**victim)
    pg.sql(f"CREATE SCHEMA {user}_s AUTHORIZATION {user}; SET ROLE {user}; CREATE TABLE {user}_s.t (i int)")
    ended = threading.Event()

    def give():
        while not ended.is_set():
            pg.run_client(f"DO $$ BEGIN LOOP GRANT SELECT ON {user}_s.t TO {user}v; COMMIT; END LOOP; END $$",
                          check=False, user=user, password=PASSWORD, tcp=True)
    giver = threading.Thread(target=give)
    giver.start()
    try:
        wait.until("a right", lambda: pg.sql(f"SELECT 1 FROM pg_class WHERE relacl::text LIKE '%{user}v=r%'"))
        wait.until("the drop", lambda: probe.ask("drop", **victim)["result"] == 0)
        assert not pg.exists(f"{user}v")
    finally:
        ended.set()
        pg.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'")
        giver.join(60)
    probe.drop(**account(user))


@pytest.mark.every_version("what the owner of a database may set for all of its sessions")
@pytest.mark.parametrize("setting, troubles", (
    ("SET default_transaction_read_only = on", ("FINE",)), ("SET idle_session_timeout = 1", ("DENIED", "FINE")),
    ("ALLOW_CONNECTIONS false", ("NO_OBJECT",)), ("SET local_preload_libraries = 'none'", ("FAILED",))))
def test_hostile_database_settings_affect_one_object(make_probe, pg, user, setting, troubles):
    """An owner decides for all sessions in its database, also those of the admin.  What fails there is trouble
    of one object: the others are served, and the target is not left alone."""
    probe = make_probe(pg.target("db"))
    victim = account(f"{user}v", owner="other/victim", uid="uid-v")
    probe.sync(**account(user))
    pg.sql(f"CREATE DATABASE {user}_d OWNER {user}")
    former = account(f"{user}f", grants=[grant(f"{user}_d", "CREATE", schema="public")])
    probe.sync(**former)
    probe.sync(**victim)
    pg.sql(f"GRANT CREATE ON SCHEMA public TO {user}v", f"{user}_d")
    probe = make_probe(pg.target("db"))  # without a connection there
    pg.sql(f"SET ROLE {user}; ALTER DATABASE {user}_d {setting}")
    right = f"SELECT has_schema_privilege('{user}f', 'public', 'CREATE')"
    report = probe.ask("sync", **{**former, "grants": []})
    if report["result"] != 0:
        # The session there ended while the right was taken, or none began.
        assert report["trouble"] == "DENIED" and f'the database "{user}_d"' in report["error"], report
    for round_ in range(4):
        report = probe.ask("sync", **account(user, f"n3w-Pa55word-{round_}", grants=[
            grant(f"{user}_d", "USAGE", schema="public")]))
        assert report["trouble"] in troubles and report["password_changed"], report
    assert all(line.endswith(" 0") for line in probe.metric("steward_sql_circuit_open"))
    probe.sync(**victim)
    pg.sql(f"ALTER DATABASE {user}_d ALLOW_CONNECTIONS true; ALTER DATABASE {user}_d RESET ALL")
    probe.sync(**{**former, "grants": []})
    assert pg.sql(right, f"{user}_d") == [["f"]]
    for one in (former, victim):
        probe.drop(**one)
    pg.sql(f"DROP DATABASE {user}_d WITH (FORCE)")
    probe.drop(**account(user))


@pytest.mark.every_version("locks on databases")
def test_database_lock_affects_one_object(make_probe, pg, user):
    """An owner lets each login to its database wait: DROP DATABASE waits for a session there.  Any role lets a
    drop wait, by a setting of its own in that database.  No statement stays behind, and others are served."""
    probe = make_probe(pg.target("db", allowCreateDatabases=["*"]))
    victim = account(f"{user}v", owner="other/victim", uid="uid-v")
    probe.sync(**account(user))
    probe.sync(**victim)
    pg.sql(f"CREATE DATABASE {user}_d OWNER {user}")
    pg.sql(f"GRANT USAGE ON SCHEMA public TO {user}v", f"{user}_d")
    locks = "FROM pg_locks WHERE locktype = 'object' AND mode = 'AccessExclusiveLock' AND objid = (SELECT oid " \
        f"FROM pg_database WHERE datname = '{user}_d')"
    droppers = [threading.Thread(target=pg.run_client, args=(f"DROP DATABASE {user}_d", False, user),
                                 kwargs={"tcp": True, "password": PASSWORD}) for _ in range(4)]
    with dblogin.Session(pg, user, PASSWORD, f"{user}_d"):
        for one in droppers:
            one.start()
        wait.until("the locks", lambda: pg.sql(f"SELECT count(*) {locks}") == [["4"]])
        report = probe.ask("sync", **account(user, "n3w-Pa55word", grants=[
            grant(f"{user}_d", "USAGE", schema="public")]))
        assert report["trouble"] == "LOCKED" and f"{user}_d" in report["error"] and report["login_done"], report
        assert probe.ask("retry")["ms"] == 0
        probe.send("drop", **victim, id=7, **{"async": True})
        probe.send("sync", **account(f"{user}o", owner="other/o", uid="uid-o"), id=8, **{"async": True})
        other, report = probe.read(), probe.read()
        assert other["id"] == 8 and other["result"] == 0 and other["ms"] < 4000, other
        assert report["trouble"] == "LOCKED" and report["ms"] < 9000, report  # connectTimeoutSeconds is 5
        assert not pg.logs_in(f"{user}v", PASSWORD)
        report = probe.sync(**victim, grants=[grant("postgres", "CREATE")])
        assert report["given"] == 1, report
        probe.sync(**victim)
    for one in droppers:
        one.join(60)

    probe.drop(**account(f"{user}o", owner="other/o", uid="uid-o"))
    wanted = {**victim, "databases": [{"name": f"{user}_v"}]}
    probe.ask("databases", **wanted)
    probe.sync(**account(user, PASSWORD))
    with dblogin.Session(pg, user, PASSWORD, "postgres") as held:
        held.run(f"BEGIN; ALTER ROLE {user} IN DATABASE {user}_v SET work_mem = '1MB'")
        [report] = probe.ask("undatabases", **wanted)["each"]
        assert report["trouble"] == "LOCKED" and not report["dropped"], report
        assert not pg.sql(f"SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DROP DATABASE \"{user}_v%'")
    wait.until("the drop", lambda: probe.ask("undatabases", **wanted)["each"][0]["dropped"])
    assert all(line.endswith(" 0") for line in probe.metric("steward_sql_circuit_open"))
    probe.drop(**victim)
    probe.drop(**account(user))


@pytest.mark.every_version("locks on databases")
def test_locked_database_does_not_delay_the_others(make_probe, pg, user):
    """The visit has one of the few connections of the target.  What is not locked has its turn in one of the
    next tries, whatever its place in the list is."""
    probe = make_probe(pg.target("db", allowCreateDatabases=["*"]))
    names = [f"{user}_{i}" for i in range(6)]
    wanted = account(f"{user}v", owner="other/victim", uid="uid-v", databases=[{"name": one} for one in names])
    assert probe.ask("databases", **wanted)["result"] == 0
    probe.sync(**account(user))
    with dblogin.Session(pg, user, PASSWORD, "postgres") as held:
        held.run("BEGIN;" + ";".join(f"ALTER ROLE {user} IN DATABASE {one} SET work_mem = '1MB'"
                                     for one in names[:-1]))
        began = time.monotonic()
        report = probe.ask("undatabases", **wanted)
        assert time.monotonic() - began < 3.5, report
        assert {one["trouble"] for one in report["each"][:-1]} == {"LOCKED"}, report
        assert any("left to the next try" in one["error"] for one in report["each"]), report
        free = f"SELECT 1 FROM pg_database WHERE datname = '{names[-1]}'"
        wait.until("the drop of the one that is not locked",
                   lambda: not pg.sql(free) or not probe.ask("undatabases", **wanted))
    wait.until("the drops", lambda: probe.ask("undatabases", **wanted)["result"] == 0)
    assert not pg.sql(f"SELECT 1 FROM pg_database WHERE datname LIKE '{user}%'")
    probe.drop(**account(user))


class HeldLogins:
    """Any account can ask for DROP DATABASE of the admin's database, and keep that waiting by a setting of its
    own: each login there waits behind it.  Sessions take turns: the next fires when the one before was ended."""

    def __init__(self, pg, user, droppers):
        self.pg, self.user, self.fired, self.ending = pg, user, 0, threading.Event()
        self.lib = dblogin.client(pg, "postgres")
        self.turn = threading.Lock()
        self.threads = [threading.Thread(target=self.fire) for _ in range(droppers)]

    def fire(self):
        conn = self.lib.open(self.user, PASSWORD)
        for _ in range(2000):
            with self.turn:
                if self.ending.is_set():
                    break
                self.fired += 1
                self.lib.run(conn, f"DROP DATABASE {self.user}_a")
            if not self.lib.ping(conn):
                self.lib.close(conn)
                conn = self.lib.open(self.user, PASSWORD)
        self.lib.close(conn)

    def __enter__(self):
        self.held = dblogin.Session(self.pg, self.user, PASSWORD, f"{self.user}_a")
        self.hold()
        for one in self.threads:
            one.start()
        wait.until("the lock", lambda: self.pg.sql("SELECT 1 FROM pg_locks WHERE locktype = 'object' AND mode = "
                                                   "'AccessExclusiveLock' AND classid = 'pg_database'::regclass"))
        return self

    def hold(self):
        """Also after its session was ended."""
        self.held.lib.close(self.held.conn)
        self.held.conn = self.lib.open(self.user, PASSWORD)
        self.held.run(f"BEGIN; ALTER ROLE {self.user} IN DATABASE {self.user}_a SET work_mem = '1MB'")

    def __exit__(self, *_):
        self.ending.set()
        self.pg.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{self.user}'")
        for one in self.threads:
            one.join(60)
        self.held.lib.close(self.held.conn)
        self.held.conn = None


def holds_up(pg, user, make_probe, **more):
    """A probe whose admin's database is one of its own, and that has pinged it."""
    pg.sql(f"CREATE DATABASE {user}_a")
    probe = make_probe(pg.target("db", connectTimeoutSeconds=2, **more, admin={
        "user": dbserver.ADMIN, "passwordFile": str(pg.admin_file), "database": f"{user}_a"}))
    probe.sync(**account(user))
    assert probe.ask("ping")["result"] == 0
    return probe


@pytest.mark.every_version("locks on databases")
@pytest.mark.parametrize("droppers", (1, 2, 4))
def test_account_blocking_admin_logins_is_ended(make_probe, pg, user,
                                                droppers):
    """What waits, and what keeps it waiting, is ended by the connection that stands, which serves all until a
    login succeeds."""
    probe = holds_up(pg, user, make_probe)
    other = account(f"{user}o", owner="other/o", uid="uid-o")
    with HeldLogins(pg, user, droppers) as attack:
        for round_ in range(3):
            assert probe.ask("ping")["result"] == 0
            report = probe.sync(**{**other, "password": account("x", f"n3w-Pa55word-{round_}")["password"]})
            assert report["ms"] < 1500, report
            assert all(line.endswith(" 0") for line in probe.metric("steward_sql_circuit_open"))
            if not attack.held.works():
                attack.hold()
        assert attack.fired > 1 or droppers == 1
    wait.until("a login of the admin", lambda: probe.ask("ping")["result"] == 0)
    for one in (other, account(user)):
        probe.drop(**one)
    probe.close()
    pg.sql(f"DROP DATABASE {user}_a WITH (FORCE)")


@pytest.mark.every_version("locks on databases, and which of them other databases show")
@pytest.mark.parametrize("droppers, more", ((1, {}), (4, {}), (2, {"maxConnections": 1}), (2, {"pingSeconds": 0})))
def test_first_login_that_is_held_up_is_freed_from_another_database(make_probe, pg, user, droppers, more):
    """No connection stands after a start, nor where there is one place for all databases, nor without pings."""
    attacked = holds_up(pg, user, make_probe)
    attacked.close()
    other = account(f"{user}o", owner="other/o", uid="uid-o",
                    grants=[grant("postgres", "CREATE", schema="public")])
    with HeldLogins(pg, user, droppers) as attack:
        probe = make_probe(pg.target("db", connectTimeoutSeconds=4, **more, admin={
            "user": dbserver.ADMIN, "passwordFile": str(pg.admin_file), "database": f"{user}_a"}))
        report = probe.sync(**other)
        assert report["created"] and report["ms"] < 5000, report
        assert attack.fired > 1 or droppers == 1
        if not attack.held.works():
            attack.hold()
        for round_ in range(2):
            probe.sync(**{**other, "password": account("x", f"n3w-Pa55word-{round_}")["password"]})
    for one in (other, account(user)):
        probe.drop(**one)
    probe.close()
    pg.sql(f"DROP DATABASE {user}_a WITH (FORCE)")


def test_connection_that_stands_asks_whether_its_peer_is_there(make_probe, pg, user):
    """Otherwise one whose server has gone without a word stands for hours, and no other does in its place."""
    probe = make_probe(pg.target("db"))
    probe.sync(**account(user))
    assert probe.ask("ping")["result"] == 0
    remote = f":{pg.port:04X} "
    timers = [line.split()[5] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
              if remote in line.split()[2] + " " and line.split()[3] == "01"]
    assert timers
    for one in timers:
        kind, left = one.split(":")
        assert kind == "02" and int(left, 16) <= 1500, timers  # keepalive, hundredths of a second
    probe.drop(**account(user))


def test_connection_that_unblocks_logins_is_kept(make_probe, pg, user):
    """Also when an object has rights in as many databases as the target has connections."""
    databases = [f"{user}_{i}" for i in range(4)]
    for one in databases:
        pg.sql(f"CREATE DATABASE {one}")
    probe = holds_up(pg, user, make_probe, maxConnections=4)
    probe.sync(**account(user, grants=[grant(one, "CREATE", schema="public") for one in databases]))
    with HeldLogins(pg, user, 1):
        assert probe.ask("ping")["result"] == 0
        assert probe.sync(**account(f"{user}o", owner="other/o", uid="uid-o"))["created"]
    probe.drop(**account(f"{user}o", owner="other/o", uid="uid-o"))
    probe.drop(**account(user))
    probe.close()
    for one in [*databases, f"{user}_a"]:
        pg.sql(f"DROP DATABASE {one} WITH (FORCE)")


def test_similar_advisory_lock_ends_no_session(make_probe, pg, user):
    """Its numbers are those of pg_database and of the admin's database."""
    probe = holds_up(pg, user, make_probe)
    [[oid]] = pg.sql(f"SELECT oid FROM pg_database WHERE datname = '{user}_a'")
    probe.sync(**account(f"{user}i", owner="other/i", uid="uid-i"))
    with dblogin.Session(pg, f"{user}i", PASSWORD, "postgres") as innocent, HeldLogins(pg, user, 1):
        innocent.run(f"SELECT pg_advisory_lock(1262, {oid})")
        assert probe.ask("ping")["result"] == 0
        assert innocent.works()
    probe.drop(**account(f"{user}i", owner="other/i", uid="uid-i"))
    probe.drop(**account(user))
    probe.close()
    pg.sql(f"DROP DATABASE {user}_a WITH (FORCE)")


def open_by(pg, user, how):
    """A transaction in which the role has changed itself, and that stays open."""
    change = f"ALTER ROLE {user} PASSWORD 'their-Own-Pa55'"
    session = dblogin.Session(pg, f"{user}a" if how == "function" else user, PASSWORD,
                              f"{user}_d" if how == "closed" else "postgres")
    session.run(f"BEGIN; SELECT {user}_s.change()" if how == "function" else f"BEGIN; {change}")
    if how in ("prepared", "closed"):
        session.run(f"PREPARE TRANSACTION '{user}'")
    if how == "closed":
        pg.sql(f"SET ROLE {user}; ALTER DATABASE {user}_d SET role = {user}a; ALTER DATABASE {user}_d SET "
               f"local_preload_libraries = 'none'; ALTER DATABASE {user}_d ALLOW_CONNECTIONS false")
    return session


@pytest.mark.every_version("the locks of ALTER ROLE, and how prepared transactions are shown")
@pytest.mark.parametrize("how, then", (("session", "sync"), ("function", "lock"), ("prepared", "drop"),
                                       ("closed", "lock")))
def test_open_transaction_does_not_prevent_a_lockout(make_probe, pg, user, how, then):
    """A role may change its own password: what steward changes then waits for the end of that transaction.
    A function with SECURITY DEFINER does it for an accomplice.  Its database may be closed to all, also to the
    admin.  Other sessions go on."""
    probe = make_probe(pg.target("db"))
    accomplice = account(f"{user}a", owner="other/accomplice", uid="uid-a")
    probe.sync(**account(user))
    probe.sync(**accomplice)
    pg.sql(f"CREATE SCHEMA {user}_s AUTHORIZATION {user}; GRANT USAGE ON SCHEMA {user}_s TO {user}a; "
           f"SET ROLE {user}; CREATE FUNCTION {user}_s.change() RETURNS int LANGUAGE plpgsql SECURITY DEFINER "
           f"AS $$ BEGIN ALTER ROLE {user} PASSWORD 'their-Own-Pa55'; RETURN 1; END $$")
    if how == "closed":
        pg.sql(f"CREATE DATABASE {user}_d OWNER {user}")
    with dblogin.Session(pg, f"{user}a", PASSWORD, "postgres") as innocent, open_by(pg, user, how):
        innocent.run("BEGIN; CREATE TEMP TABLE t(i int)")
        report = probe.ask(then, **account(user, "n3w-Pa55word"))
        assert report["result"] == 0, report
        assert innocent.works()
        assert not pg.logs_in(user, PASSWORD)
        assert pg.logs_in(user, "n3w-Pa55word") == (then == "sync")
    pg.sql(f"DROP DATABASE IF EXISTS {user}_d WITH (FORCE)")
    probe.drop(**account(user))
    probe.drop(**accomplice)


@pytest.mark.every_version("the locks of ALTER ROLE, and how prepared transactions are shown")
@pytest.mark.parametrize("then", ("sync", "lock", "drop"))
def test_lockout_ends_no_transaction_of_others(make_probe, pg, user, then):
    """Which has changed its own password or setting at the same time, or has prepared that."""
    probe = make_probe(pg.target("db"))
    other = account(f"{user}i", owner="other/i", uid="uid-i")
    probe.sync(**account(user))
    probe.sync(**other)
    with dblogin.Session(pg, f"{user}i", PASSWORD, "postgres") as innocent, \
            dblogin.Session(pg, f"{user}i", PASSWORD, "postgres") as migration, \
            dblogin.Session(pg, user, PASSWORD, "postgres") as held:
        innocent.run(f"BEGIN; ALTER ROLE {user}i SET work_mem = '2MB'")
        migration.run(f"BEGIN; ALTER ROLE {user}i IN DATABASE postgres SET work_mem = '2MB'; "
                      f"PREPARE TRANSACTION '{user}'")
        held.run(f"BEGIN; ALTER ROLE {user} PASSWORD 'their-Own-Pa55'")
        report = probe.ask(then, **account(user, "n3w-Pa55word"))
        assert report["result"] == 0, report
        assert innocent.works() and not held.works()
        assert pg.sql("SELECT gid FROM pg_prepared_xacts") == [[user]]
    pg.sql(f"ROLLBACK PREPARED '{user}'")
    for one in (account(user), other):
        probe.drop(**one)


@contextlib.contextmanager
def limited_admin(pg, make_probe, user, *roles, **more):
    """A probe whose admin has CREATEROLE, these roles, and nothing else; `more` of the target."""
    name = f"low{user}"
    pg.sql(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    for role in roles:
        pg.sql(f"GRANT {role} TO {name}")
    probe = make_probe(pg.target("db", admin={"user": name, "passwordFile": str(pg.admin_file)}, **more))
    yield probe
    probe.close()
    pg.sql(f"DROP OWNED BY {name}; DROP ROLE {name}")


HOLDS = {"password": "ALTER ROLE {0} PASSWORD 'their-Own-Pa55'",
         "setting": "ALTER ROLE {0} SET work_mem = '2MB'",
         "setting there": "ALTER ROLE {0} IN DATABASE postgres SET work_mem = '2MB'"}


def accomplice_holds(pg, probe, user, how):
    """The account `user`, and a session of `user`a that has changed it and keeps the transaction open."""
    probe.sync(**account(user))
    probe.sync(**account(f"{user}a", owner="other/accomplice", uid="uid-a"))
    pg.sql(f"GRANT {user} TO {user}a")
    session = dblogin.Session(pg, f"{user}a", PASSWORD, "postgres")
    session.run(f"BEGIN; SET LOCAL ROLE {user}; {HOLDS[how].format(user)}; RESET ROLE")
    return session


@pytest.mark.every_version("the locks of ALTER ROLE, and what an admin with CREATEROLE sees of them")
@pytest.mark.parametrize("how, then", [(how, then) for how in HOLDS for then in ("sync", "lock", "drop")])
def test_limited_admin_ends_only_transactions_that_hold_the_account(make_probe, pg, user, how, then):
    """It does not see whose password a transaction has changed, and ends no other: what another account changes
    of itself goes on, and what an accomplice has changed of this one does not keep it from being changed."""
    other = account(f"{user}i", owner="other/i", uid="uid-i")
    with limited_admin(pg, make_probe, user, "pg_signal_backend") as probe:
        probe.sync(**other)
        held = accomplice_holds(pg, probe, user, how)
        with held, dblogin.Session(pg, f"{user}i", PASSWORD, "postgres") as password, \
                dblogin.Session(pg, f"{user}i", PASSWORD, "postgres") as setting:
            password.run(f"BEGIN; ALTER ROLE {user}i PASSWORD 'their-Own-Pa55'")
            setting.run(f"BEGIN; ALTER ROLE {user}i SET work_mem = '2MB'")
            report = probe.ask(then, **account(user, "n3w-Pa55word"))
            assert report["result"] == 0, report
            assert password.works() and setting.works()
            assert held.works() == (how != "password" and then != "drop")
            assert not pg.logs_in(user, PASSWORD)
            assert pg.logs_in(user, "n3w-Pa55word") == (then == "sync")
        for one in (account(user), other, account(f"{user}a", owner="other/accomplice", uid="uid-a")):
            probe.drop(**one)


@pytest.mark.every_version("who may end the sessions of another role")
@pytest.mark.parametrize("how", ("password", "setting"))
def test_limited_admin_that_may_not_end_what_holds_an_account_says_so(make_probe, pg, user, how):
    """Sessions of the account itself it ends as the account; for those of an accomplice it lacks a right."""
    then = "drop" if how == "setting" else "lock"
    with limited_admin(pg, make_probe, user) as probe:
        with accomplice_holds(pg, probe, user, how):
            report = probe.fails(then, "LOCKED", **account(user))
            assert f'GRANT pg_signal_backend TO "low{user}"' in report["error"], report
        probe.sync(**account(user))
        with dblogin.Session(pg, user, PASSWORD, "postgres") as own:
            own.run("BEGIN;" + HOLDS[how].format(user))
            report = probe.ask(then, **account(user))
            assert report["result"] == 0, report
            assert not own.works()
        for one in (account(user), account(f"{user}a", owner="other/accomplice", uid="uid-a")):
            probe.drop(**one)


@contextlib.contextmanager
def waiting(pg, session, name, text):
    """The session, called `name`, waits for a lock of the statement until it is ended."""
    here = f"FROM pg_stat_activity WHERE application_name = '{name}'"
    session.run(f"SET application_name = '{name}'")
    thread = threading.Thread(target=session.lib.run, args=(session.conn, text))
    thread.start()
    wait.until("a session that waits", lambda: pg.sql(f"SELECT 1 {here} AND wait_event_type = 'Lock'"))
    yield
    pg.sql(f"SELECT pg_terminate_backend(pid) {here}")
    thread.join(60)


@pytest.mark.every_version("the locks of ALTER ROLE, and what an admin with CREATEROLE sees of them")
@pytest.mark.parametrize("then", ("sync", "lock"))
@pytest.mark.parametrize("what", ("advisory", "table"))
def test_limited_admin_ends_no_session_that_the_holder_waits_for(make_probe, pg, user, what, then):
    """What holds the account may itself wait for anything that an innocent holds, or is in a queue for."""
    tenant, backup, schema = f"{user}i", f"{user}b", f"{user}_s"
    with limited_admin(pg, make_probe, user, "pg_signal_backend") as probe:
        for one in (account(user), account(tenant, owner="other/i", uid="uid-i"),
                    account(backup, owner="other/b", uid="uid-b")):
            probe.sync(**one)
        pg.sql(f"CREATE SCHEMA {schema} AUTHORIZATION {user}; GRANT USAGE ON SCHEMA {schema} TO PUBLIC; "
               f"SET ROLE {user}; CREATE TABLE {schema}.t(i int); GRANT SELECT ON {schema}.t TO PUBLIC")
        with dblogin.Session(pg, user, PASSWORD, "postgres") as held, \
                dblogin.Session(pg, user, PASSWORD, "postgres") as queued, \
                dblogin.Session(pg, tenant, PASSWORD, "postgres") as waits, \
                dblogin.Session(pg, backup, PASSWORD, "postgres") as reads, contextlib.ExitStack() as stack:
            reads.run(f"BEGIN; SELECT pg_advisory_xact_lock(71); SELECT count(*) FROM {schema}.t")
            waits.run("BEGIN; SELECT pg_advisory_xact_lock(72)")
            held.run(f"BEGIN; {HOLDS['password'].format(user)}")
            innocent = f"SELECT pid FROM pg_stat_activity WHERE usename IN ('{tenant}', '{backup}') ORDER BY pid"
            there = pg.sql(innocent)
            for session, name, text in (
                    (waits, "innocent", "SELECT pg_advisory_xact_lock(71)"),
                    (held, "holder", "SELECT pg_advisory_xact_lock(72)" if what == "advisory" else
                                     f"LOCK TABLE {schema}.t"),
                    (queued, "queued", HOLDS["password"].format(user))):
                stack.enter_context(waiting(pg, session, f"{name}-{user}", text))
            report = probe.ask(then, **account(user, "n3w-Pa55word"))
            assert report["result"] == 0, report
            assert pg.sql(innocent) == there
            assert not pg.logs_in(user, PASSWORD)
        pg.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        for one in (account(user), account(tenant, owner="other/i", uid="uid-i"),
                    account(backup, owner="other/b", uid="uid-b")):
            probe.drop(**one)


@pytest.mark.every_version("who may end the sessions of another role")
@pytest.mark.parametrize("limited", (True, False), ids=("limited", "superuser"))
def test_replication_session_is_not_ended(make_probe, pg, user, limited):
    """Backups and replicas are of the administrators, as superusers are.  All tries have the time of one
    statement."""
    brief = {"statementTimeoutSeconds": 3}
    admin = limited_admin(pg, make_probe, user, "pg_signal_backend", **brief) if limited else \
        contextlib.nullcontext(make_probe(pg.target("db", **brief)))
    with admin as probe:
        with accomplice_holds(pg, probe, user, "password") as held:
            pg.sql(f"ALTER ROLE {user}a REPLICATION")
            report = probe.fails("sync", "LOCKED", **account(user, "n3w-Pa55word"))
            assert report["ms"] < 9000, report
            assert held.works()
            pg.sql(f"ALTER ROLE {user}a NOREPLICATION")
            probe.sync(**account(user, "n3w-Pa55word"))
            assert not held.works()
        for one in (account(user), account(f"{user}a", owner="other/accomplice", uid="uid-a")):
            probe.drop(**one)


@pytest.mark.every_version("who may end the sessions of another role")
def test_own_session_of_an_admin_that_acts_as_a_role_is_not_ended(make_probe, pg, user):
    """ALTER ROLE ... SET role: the server shows its sessions as those of the login."""
    low, group = f"low{user}", f"group{user}"
    pg.sql(f"CREATE ROLE {group} CREATEROLE; GRANT pg_signal_backend TO {group}; CREATE ROLE {low} LOGIN PASSWORD "
           f"'{dbserver.ADMIN_PASSWORD}'; GRANT {group} TO {low}; ALTER ROLE {low} SET role = {group}")
    probe = make_probe(pg.target("db", statementTimeoutSeconds=3,
                                 admin={"user": low, "passwordFile": str(pg.admin_file)}))
    probe.sync(**account(user))
    with dblogin.Session(pg, low, dbserver.ADMIN_PASSWORD, "postgres") as own:
        own.run("BEGIN;" + HOLDS["password"].format(user))
        probe.fails("lock", "LOCKED", **account(user))
        assert own.works()
    probe.drop(**account(user))
    probe.close()
    pg.sql(f"DROP OWNED BY {low}, {group}; DROP ROLE {low}, {group}")


@pytest.mark.every_version("who may end the sessions of another role")
def test_session_that_cannot_be_ended_costs_one_wait(make_probe, pg, user):
    """What the server has refused once is not asked again: the visit has one of the few connections."""
    with limited_admin(pg, make_probe, user) as probe:
        with accomplice_holds(pg, probe, user, "password"):
            for then in ("sync", "lock", "drop"):
                report = probe.fails(then, "LOCKED", **account(user, "n3w-Pa55word"))
                assert f'GRANT pg_signal_backend TO "low{user}"' in report["error"], report
                assert report["ms"] < 4500, (then, report)
        for one in (account(user), account(f"{user}a", owner="other/accomplice", uid="uid-a")):
            probe.drop(**one)


class StalledFreeing:
    """A proxy where a login to the admin's database has no answer, and one to another database has none from the
    moment on when it ends what holds up the first."""

    def __init__(self, port):
        self.port_there, self.sockets, self.stalled = port, [], threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.sockets.append(client)
                if b"template1" not in client.recv(65536, socket.MSG_PEEK):
                    continue
                there = socket.create_connection(("127.0.0.1", self.port_there))
                self.sockets.append(there)
                for one in ((client, there), (there, client)):
                    threading.Thread(target=self.pump, args=one, daemon=True).start()

    def pump(self, source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if b"pg_terminate_backend(h.pid)" in data:
                    self.stalled.set()
                    return
                to.sendall(data)

    def close(self):
        for one in [self.listener, *self.sockets]:
            one.close()


def test_freeing_of_a_login_ends_with_the_time_of_the_login(make_postgres, make_probe):
    """Not with that of a statement, which may be a minute."""
    pg = make_postgres()
    hba = pg.folder / "data" / "pg_hba.conf"
    hba.write_text(f"{hba.read_text()}host all all 127.0.0.1/32 scram-sha-256\n")
    pg.sql("SELECT pg_reload_conf()")
    proxy = StalledFreeing(pg.port)
    try:
        probe = make_probe({**pg.target("db", connectTimeoutSeconds=4, statementTimeoutSeconds=20),
                            "port": proxy.port, "tls": {"mode": "Disable"}})
        began = time.monotonic()
        assert probe.ask("ping")["result"] == -1
        assert time.monotonic() - began < 7
        assert proxy.stalled.is_set()
    finally:
        proxy.close()


def test_many_tables_are_reassigned_in_batches(make_probe, pg, user):
    """The locks of very many have no room in the server at a time, which would fail for all of its clients:
    20,000 tables are too many for a server as it is installed.  Sequences of columns go with their tables."""
    probe = make_probe(pg.target("db"))
    database = f"{user}_d"
    pg.sql(f"CREATE DATABASE {database}")
    statements = []
    for tables in (10, 11, 1100):  # the first one makes the new owner
        probe.sync(**account(user, grants=[grant(database, "CONNECT", "CREATE")]))
        pg.sql(f"CREATE SCHEMA s{tables} AUTHORIZATION {user}; SET ROLE {user}; CREATE SEQUENCE s{tables}.own; "
               f"CREATE VIEW s{tables}.shown AS SELECT 1; "
               f"SELECT format('CREATE TABLE s{tables}.t%s (i %s)', i, "
               "CASE WHEN i < 9 THEN 'serial' ELSE 'int' END) "
               f"FROM generate_series(1, {tables}) i \\gexec", database)
        report = probe.ask("drop", **account(user))
        assert report["result"] == 0 and not pg.exists(user), report
        statements.append(report["statements"])
    assert statements[2] - statements[1] == 2 * 4  # four times 200, and as many counts
    assert pg.sql("SELECT pg_get_userbyid(relowner), count(*) FROM pg_class WHERE relnamespace = "
                  "'s1100'::regnamespace AND relkind IN ('r', 'S', 'v') GROUP BY 1", database) == [
                      [heir(CLUSTER, "shop"), "1110"]]
    pg.sql(f"DROP DATABASE {database} WITH (FORCE)")


@pytest.mark.every_version("who may end the sessions of another role")
@pytest.mark.parametrize("how", ("end sessions", "lock", "drop"))
def test_admin_without_signal_right_ends_sessions(make_probe, pg, user, how):
    """Without pg_signal_backend it ends them as the account, and is a member of it only in that transaction."""
    pg.sql(f"CREATE ROLE low{user} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    probe = make_probe(pg.target("db", admin={"user": f"low{user}", "passwordFile": str(pg.admin_file)}))
    probe.sync(**account(user))
    with dblogin.Session(pg, user, PASSWORD, "postgres") as session:
        assert probe.ask(how, **account(user))["result"] == 0
        wait.until("the end of the session", lambda: not session.works())
    assert not pg.sql("SELECT 1 FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE "
                      f"r.rolname = '{user}' AND NOT m.admin_option")
    probe.drop(**account(user))
    probe.close()
    pg.sql(f"DROP ROLE low{user}")


# --- the locks that name the sessions of leaders


# With the hash of "steward-system/steward.steward.dev", the Lease of the probe.
FORMER_NAME = "steward/1de8ee4a0ed708d5/"


def lock_names(server):
    """The prefixes of the locks of GET_LOCK, which a tenant can guess: of this and of the former version."""
    log = (server.folder / "general.log").read_text("utf-8", "replace")
    names = set(re.findall(r"_LOCK\('(steward/[0-9a-f]{16}/)", log[log.rindex("SELECT p.ID"):]))
    assert len(names) == 2 and FORMER_NAME in names
    return names


@pytest.mark.every_version("the takeover from an earlier leader")
def test_foreign_advisory_lock_does_not_block_a_leader(make_probe, hosted, user):
    """Any account may hold a lock of this name, without a right; its session is left as it is."""
    first = make_probe(hosted.target("db", maxConnections=1), epoch=7)
    first.sync(**account(user))
    prefixes = lock_names(hosted)
    with dblogin.Session(hosted, user, PASSWORD) as held:
        for prefix in prefixes:
            held.run(f"SELECT GET_LOCK('{prefix}6/0', 0)")
        later = make_probe(hosted.target("db", maxConnections=1), epoch=8)
        assert later.ask("sync", **account(user, "0ther-Pa55"))["result"] == 0
        assert held.works()
    assert hosted.logs_in(user, "0ther-Pa55")
    later.drop(**account(user))


@pytest.mark.every_version("the takeover from an earlier leader")
def test_foreign_advisory_lock_does_not_hide_a_leader(make_probe, hosted, user):
    """It holds the locks of the coming leader, whose session the next one ends all the same."""
    first = make_probe(hosted.target("db", maxConnections=1), epoch=7)
    first.sync(**account(user))
    prefixes = lock_names(hosted)
    with dblogin.Session(hosted, user, PASSWORD) as held:
        for prefix in prefixes:
            held.run(f"SELECT GET_LOCK('{prefix}8/0', 0)")
        for epoch in (8, 9):
            later = make_probe(hosted.target("db", maxConnections=1), epoch=epoch)
            assert later.ask("sync", **account(user))["result"] == 0
            assert sessions_of_admin(hosted) == 1
        assert held.works()
    assert len(hosted.sql("SELECT secret FROM steward.takeover")[0][0]) == 64
    later.drop(**account(user))


@pytest.mark.every_version("the takeover from an earlier leader")
def test_session_of_former_leader_is_ended(make_probe, server, user):
    """Its connection is open when a later leader connects, which ends it before its own first change."""
    first = make_probe(server.target("db", maxConnections=1), epoch=37)
    first.sync(**account(user))
    later = make_probe(server.target("db", maxConnections=64), epoch=38)  # the longest statements
    assert later.ask("sync", **account(user, "0ther-Pa55"))["result"] == 0
    assert sessions_of_admin(server) == 1
    later.drop(**account(user))


@pytest.mark.every_version("the takeover from an earlier leader")
def test_leaders_of_two_clusters_do_not_end_each_other(make_probe, server, user):
    """Both use the same name of the Lease, the same admin and the same server.  The one whose Lease had fewer
    holders keeps its session, and writes with it."""
    first = make_probe(server.target("db", maxConnections=1), epoch=7)
    other = make_probe(server.target("db", maxConnections=1), epoch=8, cluster=OTHER_CLUSTER)
    first.sync(**account(user))
    before = admin_sessions(server)
    other.sync(**account(f"{user}o", cluster=OTHER_CLUSTER))
    assert len(admin_sessions(server)) == 2
    first.sync(**account(user, "0ther-Pa55"))
    assert before < admin_sessions(server)
    later = make_probe(server.target("db", maxConnections=1), epoch=9, cluster=OTHER_CLUSTER)
    later.drop(**account(f"{user}o", cluster=OTHER_CLUSTER))
    assert before < admin_sessions(server) and len(admin_sessions(server)) == 2
    first.drop(**account(user))


@pytest.mark.every_version("the takeover from an earlier leader")
def test_session_of_leader_of_former_version_is_ended(make_probe, server, user):
    """Former versions named their sessions without the cluster."""
    with former_leader(server, 6) as former:
        later = make_probe(server.target("db", maxConnections=1), epoch=7)
        assert later.ask("sync", **account(user))["result"] == 0
        assert not former.works()
        later.drop(**account(user))


@pytest.mark.every_version("the sessions of leaders, and when they began")
def test_leader_stops_for_later_leader_of_former_version(make_probe, pg, user):
    """After the way back to a former version its leader has connected.  A connection that began later is
    not stopped: that leader would be one of another cluster."""
    first = make_probe(pg.target("db", maxConnections=1), epoch=7)
    first.sync(**account(user))
    with former_leader(pg, 8) as former:
        first.fails("sync", "CONNECT", **account(user, "0ther-Pa55"))
        assert pg.logs_in(user, PASSWORD)
        first.sync(**account(user, "0ther-Pa55"))
        assert former.works() and pg.logs_in(user, "0ther-Pa55")
        first.drop(**account(user))


@contextlib.contextmanager
def former_leader(server, epoch):
    """A session of the admin with the name that former versions gave it."""
    name = f"{FORMER_NAME}{epoch}"
    with dblogin.Session(server, dbserver.ADMIN, dbserver.ADMIN_PASSWORD) as held:
        held.run(f"SET application_name = '{name}'" if server.engine == "postgresql" else
                 f"SELECT GET_LOCK('{name}/0', 0)")
        yield held


def admin_sessions(server):
    """The numbers of the admin's sessions."""
    if server.engine == "postgresql":
        query = f"SELECT pid FROM pg_stat_activity WHERE usename = '{dbserver.ADMIN}'"
    else:
        query = f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{dbserver.ADMIN}'"
    return {int(row[0]) for row in server.sql(query)}


def sessions_of_admin(server):
    """How many the admin has."""
    if server.engine == "postgresql":
        query = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{dbserver.ADMIN}'"
    else:
        query = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{dbserver.ADMIN}'"
    return int(server.sql(query)[0][0])


# --- sessions that keep the name of a dropped account


class Hidden:
    """The namespace `ten` has a session that is inside a routine while it drops the account of the
    routine's definer: one of that account, or of an accomplice that is called by its routine."""

    def __init__(self, server, probe, user, whose):
        self.server, self.probe, self.user = server, probe, user
        self.database, self.app = f"ten_{user}", f"app_{user}"
        server.sql(f"CREATE DATABASE {self.database}")
        rights = [grant(self.database, "ALL")]
        self.account = account(user, uid=f"uid-{user}", owner=f"ten/{user}", grants=rights)
        probe.sync(**self.account)
        probe.sync(**account(self.app, uid=f"uid-{self.app}", owner=f"ten/{self.app}", grants=rights))
        with dblogin.Session(server, self.app, PASSWORD, self.database) as app:
            app.run("CREATE TABLE go (i INT)")
            app.run("CREATE TABLE inside (i INT)")
            app.run("CREATE PROCEDURE q() SQL SECURITY DEFINER BEGIN DECLARE n INT DEFAULT 0; "
                    "INSERT INTO inside VALUES (1); WHILE n < 900 AND NOT EXISTS (SELECT 1 FROM go) "
                    "DO SET n = n + 1; DO SLEEP(0.1); END WHILE; END")
        with dblogin.Session(server, user, PASSWORD, self.database) as former:
            former.run("CREATE PROCEDURE p() SQL SECURITY DEFINER BEGIN CALL q(); DO SLEEP(60); END")
        self.session = dblogin.Session(server, user if whose == "own" else self.app, PASSWORD, self.database)
        self.thread = threading.Thread(target=self.session.lib.run, args=(
            self.session.conn, "CALL q()" if whose == "own" else "CALL p()"))
        self.thread.start()
        wait.until("the session to be in the routine", lambda: self.rows("inside"))
        server.sql(f"DROP PROCEDURE {self.database}.p")

    def rows(self, table):
        """How many."""
        return int(self.server.sql(f"SELECT COUNT(*) FROM {self.database}.{table}")[0][0])

    def leave(self):
        """The routine of the accomplice ends."""
        self.server.sql(f"INSERT INTO {self.database}.go VALUES (1)")

    def ids(self):
        """Of sessions inside of the routine or with the name."""
        return [row[0] for row in self.server.sql(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE USER IN "
            f"('{self.user}', '{self.app}')")]

    def __enter__(self):
        return self

    def __exit__(self, *args):
        for one in self.ids():
            with contextlib.suppress(AssertionError):  # it has just ended
                self.server.sql(f"KILL {one}")
        self.thread.join(60)
        self.session.lib.close(self.session.conn)


@pytest.mark.every_version("what a session is called inside a routine, and what ends it")
@pytest.mark.parametrize("whose", ["own", "accomplice"])
def test_name_with_a_hidden_session_goes_to_no_other_namespace(hosted, make_probe, user, whose):
    """A session inside a routine is not found by the name that it goes on with, and would get the rights of the
    next account of that name."""
    ten = make_probe(hosted.target("ten", allowedDatabases=[f"ten_{user}"]))
    vic = make_probe(hosted.target("vic"))
    victim = account(user, "v1ctim-Pa55", uid="uid-vic", owner="vic/app")
    with Hidden(hosted, ten, user, whose) as hidden:
        ten.drop(**hidden.account)
        report = vic.fails("sync", "NOT_OURS", **victim)
        assert "KILL " in report["error"], report
        named = re.search(r"KILL ([0-9, ]+)", report["error"])[1].split(", ")
        assert set(hidden.ids()) & set(named) and hosted.accounts(user) == [], report
        # Its own namespace may have the name again.
        again = account(user, uid="uid-again", owner="ten/again")
        ten.sync(**again)
        ten.drop(**again)
        hidden.leave()
        if whose == "own":
            wait.until("the routine to end", lambda: not hidden.thread.is_alive())
        vic.fails("sync", "NOT_OURS", **victim)
        for one in hidden.ids():
            hosted.sql(f"KILL {one}")
        wait.until("the account", lambda: vic.ask("sync", **victim)["result"] == 0, 20)
    assert hosted.sql(f"SELECT COUNT(*) FROM steward.dropped WHERE user = '{user}'") == [["0"]]


@pytest.mark.every_version("what a session is called inside a routine, and what ends it")
def test_name_is_free_after_a_restart_of_the_server(hosted, make_probe, user):
    """Ids of sessions begin at 1 then: a session whose id is not above the noted one has another past."""
    ten = make_probe(hosted.target("ten", allowedDatabases=[f"ten_{user}"]))
    victim = account(user, "v1ctim-Pa55", uid="uid-vic", owner="vic/app")
    vic = make_probe(hosted.target("vic"))
    with Hidden(hosted, ten, user, "own") as hidden:
        ten.drop(**hidden.account)
        vic.fails("sync", "NOT_OURS", **victim)
        # As a server that has been started since has had fewer sessions.
        hosted.sql(f"UPDATE steward.dropped SET session = 1000000000 WHERE user = '{user}'")
        vic.sync(**victim)


@pytest.mark.every_version("what a session is called inside a routine, and what ends it")
def test_name_of_a_session_that_is_open_is_not_given(hosted, make_probe, user):
    """An administrator has dropped the account, which steward has not seen; its session goes on."""
    hosted.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'")
    probe = make_probe(hosted.target("db"))
    with dblogin.Session(hosted, user, PASSWORD) as session:
        hosted.sql(f"DROP USER '{user}'@'%'")
        report = probe.fails("sync", "NOT_OURS", **account(user))
        one = hosted.sql(f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'")[0][0]
        assert f"KILL {one})" in report["error"] and session.works(), report
    wait.until("the account", lambda: probe.ask("sync", **account(user))["result"] == 0)


@pytest.mark.every_version("who sees the sessions of others")
def test_admin_that_sees_no_sessions_gives_no_name_of_others(hosted, make_probe, user):
    """Without PROCESS it is not known whether a session has the name of an account that was dropped."""
    admin = f"'blind_{user}'@'%'"
    hosted.sql(f"CREATE USER {admin} IDENTIFIED BY '{dbserver.ADMIN_PASSWORD}'; "
               f"GRANT CREATE USER, RELOAD ON *.* TO {admin}; GRANT SELECT ON mysql.* TO {admin}; "
               f"GRANT ALL PRIVILEGES ON steward.* TO {admin}")
    target = hosted.target("db")
    target["admin"]["user"] = f"blind_{user}"
    probe = make_probe(target)
    former = account(user, owner="ten/app", uid="uid-ten")
    probe.sync(**former)
    probe.drop(**former)
    report = probe.fails("sync", "NOT_OURS", **account(user))
    assert "PROCESS" in report["error"], report
    hosted.sql(f"GRANT PROCESS ON *.* TO {admin}")
    make_probe(target).sync(**account(user))


@pytest.mark.every_version("what a session is called inside a routine, and what ends it")
@pytest.mark.parametrize("op", ["end sessions", "lock", "drop"])
def test_session_inside_a_routine_of_another_definer_ends(make_hosted, make_probe, user, op):
    """The list of sessions shows it by the name of the definer; with performance_schema its login is known."""
    server = make_hosted("--performance-schema=ON")
    probe = make_probe(server.target("db"))
    with Hidden(server, probe, user, "own") as hidden:
        assert probe.sync(**hidden.account, wait_sessions=True)["sessions"] == 1
        assert probe.ask(op, **hidden.account)["result"] == 0
        wait.until("the session to end", lambda: not hidden.thread.is_alive(), 20)
        assert not hidden.session.works()


# --- a view that a tenant locks


@contextlib.contextmanager
def locked_view(maria):
    """The account `ten` changes the view ten.v, which cannot go on: it is locked meanwhile."""
    with dblogin.Session(maria, "ten", PASSWORD, "ten") as first, \
            dblogin.Session(maria, "ten", PASSWORD, "ten") as second:
        first.run("CREATE TABLE IF NOT EXISTS base(i int)")
        first.run("LOCK TABLES base WRITE")
        # Waits for `base` while it holds an exclusive lock on the name of the view.
        blocked = threading.Thread(target=second.lib.run, args=(
            second.conn, "CREATE OR REPLACE VIEW v AS SELECT * FROM base"))
        blocked.start()
        try:
            wait.until("the view to be locked", lambda: maria.sql(
                "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CREATE OR REPLACE%' AND "
                "STATE LIKE 'Waiting for table metadata lock%'"))
            yield
        finally:
            first.run("UNLOCK TABLES")
            blocked.join()


@pytest.mark.every_version("views and triggers under a metadata lock")
def test_definer_hidden_by_a_lock_is_not_missed(make_probe, make_mariadb, user):
    """A view of a dropped account runs with the rights of the next one of its name.  While a tenant changes
    the view, the server leaves it out of its list, and after each two seconds does not even warn."""
    maria = make_mariadb()
    maria.sql("CREATE DATABASE ten; CREATE DATABASE hr; CREATE TABLE hr.secret(v varchar(40)); "
              "INSERT INTO hr.secret VALUES ('42')")
    old = make_probe(maria.target("a", allowedDatabases=["ten", "hr"]))
    former = account("payroll", uid="uid-1", owner="ten/payroll",
                     grants=[grant("ten", "ALL"), grant("hr", "SELECT")])
    old.sync(**former)
    old.sync(**account("ten", uid="uid-2", owner="ten/ten", grants=[grant("ten", "ALL")]))
    with dblogin.Session(maria, "payroll", PASSWORD, "ten") as payroll:
        payroll.run("CREATE SQL SECURITY DEFINER VIEW v AS SELECT * FROM hr.secret")
    old.drop(**former)
    probe = make_probe(maria.target("b", allowedDatabases=["vic", "hr"], statementTimeoutSeconds=5))
    victim = account("payroll", "v1ctim-Pa55", uid="uid-3", owner="vic/payroll",
                     grants=[grant("hr", "SELECT")])
    probe.fails("sync", "NOT_OURS", **victim)
    with locked_view(maria):
        report = probe.ask("sync", **victim)
        assert report["trouble"] == "LOCKED" and "view or trigger" in report["error"], report
        assert not report["created"]
    assert not maria.logs_in("payroll", "v1ctim-Pa55")


@pytest.mark.every_version("how a server lists views that another session changes")
def test_view_under_a_lock_is_waited_for_once(make_probe, make_mariadb):
    """What may be in another namespace's database is not known while a statement that changes objects does not
    end.  The first that comes finds out in the time of one lock, the others do not wait again, and accounts that
    are there go on."""
    maria = make_mariadb()
    maria.sql("CREATE DATABASE ten; CREATE DATABASE `Ten`; CREATE VIEW `Ten`.v AS SELECT 1; "
              "CREATE VIEW ten.v AS SELECT 1")
    probe = make_probe(maria.target("a", allowedDatabases=["{namespace}"]))
    own = account("ten", uid="uid-2", owner="ten/ten", grants=[grant("ten", "ALL")])
    there, first, second = (account(name, uid=f"uid-{name}", owner=f"vic/{name}")
                            for name in ("there", "first", "second"))
    probe.sync(**own)
    probe.sync(**there)
    with locked_view(maria):
        report = probe.fails("sync", "LOCKED", **first)
        assert 900 < report["ms"] < 2500, report
        for wanted in (second, first, account("ten2", uid="uid-t2", owner="ten/ten2")):
            report = probe.fails("sync", "LOCKED", **wanted)
            assert report["ms"] < 500, report
        assert probe.sync(**{**there, "password": account("x", "0ther-Pa55")["password"]})["ms"] < 500
    # Not longer than it is remembered.
    wait.until("the account", lambda: probe.ask("sync", **first)["result"] == 0, 20)
    assert probe.sync(**second)["created"]


@pytest.mark.every_version("how a server lists views that another session changes")
def test_definer_hidden_by_renaming_is_not_missed(make_probe, make_mariadb):
    """A view that is renamed while the server lists the views is not in the list, and the server does not
    warn."""
    maria = make_mariadb()
    maria.sql("CREATE DATABASE ten; CREATE DATABASE hr; CREATE TABLE hr.secret(v varchar(40)); "
              "CREATE VIEW ten.v AS SELECT 1 AS i; CREATE DEFINER='payroll'@'%' VIEW ten.zzz AS SELECT * FROM "
              "hr.secret; " + "; ".join(f"CREATE VIEW ten.m{i:04} AS SELECT 1 AS i" for i in range(300)))
    probe = make_probe(maria.target("a", allowedDatabases=["{namespace}"]))
    probe.sync(**account("ten", uid="uid-ten", owner="ten/ten", grants=[grant("ten", "ALL")]))
    victim = account("payroll", uid="uid-vic", owner="vic/payroll")
    over, renamed = threading.Event(), itertools.count(1)

    def rename():
        with dblogin.Session(maria, "ten", PASSWORD, "ten") as session:
            while not over.is_set():
                session.run("RENAME TABLE zzz TO aaa")
                session.run("RENAME TABLE aaa TO zzz")
                next(renamed)
    thread = threading.Thread(target=rename)
    thread.start()
    try:
        found = [probe.ask("sync", **victim) for _ in range(60)]
    finally:
        over.set()
        thread.join()
    assert next(renamed) > 20
    assert {one["trouble"] for one in found} <= {"NOT_OURS", "LOCKED"}, found
    assert [one for one in found if "definer" in one["error"]] and not maria.accounts("payroll")
    # Nothing is left that keeps others from changing objects.
    maria.sql("CREATE TABLE ten.after_it (i INT)")


# --- rights of others do not delay what locks out


def test_password_is_set_despite_failing_grants(make_probe, server, user):
    """They may be on a table that another client has dropped: the old password ends all the same."""
    probe = make_probe(server.target("db", allowCreateDatabases=["*"]))
    schema = {"schema": "s"} if server.engine == "postgresql" else {}
    mine = {**account(user), "databases": [{"name": f"{user}_d", "schemas": []}]}
    assert probe.ask("databases", **mine)["result"] == 0
    probe.sync(**account(user, grants=[grant(f"{user}_d", "CONNECT")] if schema else []))
    rights = [grant(f"{user}_d", "SELECT", table="gone", **schema)]
    report = probe.fails("sync", "NO_OBJECT", **account(user, "0ther-Pa55", grants=rights))
    assert report["password_changed"] and report["login_done"], report
    assert server.logs_in(user, "0ther-Pa55") and not server.logs_in(user, PASSWORD)
    probe.ask("undatabases", **mine)
    probe.drop(**account(user))


def test_role_with_too_many_rights_is_still_managed(make_probe, make_postgres, user):
    """Another client has given it more than steward reads."""
    pg = make_postgres()
    probe = make_probe(pg.target("db", statementTimeoutSeconds=120))
    probe.sync(**account(user))
    pg.sql(f"""DO $$ BEGIN FOR i IN 1..1100 LOOP EXECUTE format('CREATE TABLE public.t%s (%s)', i,
        (SELECT string_agg(format('c%s int', c), ',') FROM generate_series(1, 48) c));
        EXECUTE format('GRANT SELECT (%s) ON public.t%s TO {user}',
        (SELECT string_agg(format('c%s', c), ',') FROM generate_series(1, 48) c), i);
        END LOOP; END $$""")
    wanted = account(user, "0ther-Pa55", grants=[grant("postgres", "CONNECT")])
    report = probe.ask("sync", **wanted)
    assert report["result"] == 0 and report["password_changed"], report
    assert pg.logs_in(user, "0ther-Pa55") and not pg.logs_in(user, PASSWORD)
    with dblogin.Session(pg, user, "0ther-Pa55", "postgres") as held:
        hurried = make_probe(pg.target("db", statementTimeoutSeconds=5))
        hurried.ask("drop", **wanted)  # in time, or not
        assert not held.works()
    assert not pg.logs_in(user, "0ther-Pa55")
    assert probe.ask("drop", **wanted)["result"] == 0
    assert not pg.exists(user)


def test_rights_passed_on_by_an_account_are_revoked(make_probe, pg, user):
    """A tenant with the grant option cannot keep his right by giving it to another account."""
    probe = make_probe(pg.target("db", allowCreateDatabases=["*"]))
    mine = {**account(user), "databases": [{"name": f"{user}_d"}]}
    assert probe.ask("databases", **mine)["result"] == 0
    pg.sql("CREATE SCHEMA s; CREATE TABLE s.t(i int)", f"{user}_d")
    rights = [grant(f"{user}_d", "CONNECT"), grant(f"{user}_d", "USAGE", schema="s"),
              grant(f"{user}_d", "SELECT", schema="s", table="t", option=True)]
    probe.sync(**account(user, grants=rights))
    probe.sync(**account(f"{user}x", grants=rights[:2]))
    result = pg.run_client(f"GRANT SELECT ON s.t TO {user}x", check=False, user=user, password=PASSWORD,
                           database=f"{user}_d", tcp=True)
    assert result.returncode == 0, result.stderr
    assert probe.ask("sync", **account(user, grants=rights[:2]))["result"] == 0
    for name in (user, f"{user}x"):
        assert pg.sql(f"SELECT has_table_privilege('{name}', 's.t', 'SELECT')", f"{user}_d") == [["f"]]
    for name in (user, f"{user}x"):
        probe.drop(**account(name))
    probe.ask("undatabases", **mine)
