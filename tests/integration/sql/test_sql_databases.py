# SPDX-License-Identifier: Apache-2.0
"""Databases that an object creates, and those that it must leave as they are."""

import contextlib
import shutil

import pytest

from support import dblogin, dbserver, pause, postgres, scratch, wait
from support.sqlprobe import CLUSTER, account, grant

ALL = {"allowCreateDatabases": ["*"]}
HARD = "da'ta \"%` \\ *{}"  # in every kind of quotation mark


def is_pg(server):
    """Whether it is PostgreSQL, where only a database itself has schemas and extensions."""
    return server.engine == "postgresql"


def literal(text):
    """The text as a string; the servers' strings differ in backslashes, which these avoid."""
    return "'" + text.replace("'", "''") + "'"


def name_of(server, text):
    """The text as an identifier."""
    mark = '"' if is_pg(server) else "`"
    return mark + text.replace(mark, 2 * mark) + mark


def names(server):
    """The databases of the server."""
    query = "SELECT datname FROM pg_database" if is_pg(server) else "SHOW DATABASES"
    return {row[0].replace("\\\\", "\\") for row in server.sql(query)}


def make(server, name):
    """A database that another client created, with a table."""
    server.sql(f"CREATE DATABASE {name_of(server, name)}")
    fill(server, name)


def fill(server, name):
    """A table in it."""
    if is_pg(server):
        server.sql("CREATE TABLE kept (n int)", name)
    else:
        server.sql(f"CREATE TABLE {name_of(server, name)}.kept (n int)")


def has_table(server, name):
    """Whether it still has the table."""
    if is_pg(server):
        return server.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'kept'", name) == [["1"]]
    return server.sql(f"SHOW TABLES IN {name_of(server, name)}") == [["kept"]]


def wants(user, *databases, uid=None, **more):
    """A command's object; databases are names, or dicts."""
    return {**account(user, uid=uid or f"uid-{user}", **more),
            "databases": [{"name": d} if isinstance(d, str) else d for d in databases]}


def each(probe, op, command):
    """The reports of the databases."""
    report = probe.ask(op, **command)
    assert report is not None
    return report["each"]


def one(probe, op, command):
    """The report of the only database."""
    [report] = each(probe, op, command)
    return report


def marks(server):
    """How many databases have a mark."""
    if is_pg(server):
        return server.sql("SELECT count(*) FROM pg_database d WHERE shobj_description(d.oid, "
                          "'pg_database') LIKE '{\"steward\"%'")[0][0]
    return server.sql("SELECT count(*) FROM steward.databases")[0][0]


def unfinished(server):
    """What is left of interrupted creations."""
    return [n for n in names(server) if n.startswith("steward_new_")]


@pytest.mark.every_version("how databases are created and dropped")
def test_database_is_created_and_dropped_by_its_owner(make_probe, server, user):
    """Twice is once; only its own object drops it; a name may hold anything."""
    name = f"{user} {HARD}"
    probe = make_probe(server.target("db", **ALL))
    report = one(probe, "databases", wants(user, name))
    assert report["trouble"] == "FINE" and report["created"] and report["owned"], report
    assert name in names(server) and unfinished(server) == []
    fill(server, name)
    report = one(probe, "databases", wants(user, name))
    assert report["owned"] and not report["created"]
    for other in (wants(user, name, uid="uid-2"), wants(f"{user}x", name, uid="uid-3")):
        assert not one(probe, "undatabases", other)["dropped"]
    assert not one(probe, "undatabases", wants(user, {"name": name, "keep": True}))["dropped"]
    assert has_table(server, name)
    before = marks(server)
    assert one(probe, "undatabases", wants(user, name))["dropped"]
    assert name not in names(server) and int(marks(server)) == int(before) - 1
    assert one(probe, "undatabases", wants(user, name))["trouble"] == "FINE"


@pytest.mark.every_version("how databases are marked")
def test_foreign_databases_are_not_touched(make_probe, server, user):
    """One without a mark, one of another object, and those of the server are not touched."""
    probe = make_probe(server.target("db", **ALL))
    make(server, f"{user}_foreign")
    own = "postgres" if is_pg(server) else "mysql"
    assert one(probe, "databases", wants(f"{user}b", f"{user}_theirs"))["created"]
    command = wants(user, f"{user}_foreign", f"{user}_theirs", own, f"{user}_new")
    for _ in range(2):
        foreign, theirs, system, new = each(probe, "databases", command)
        assert foreign["trouble"] == "EXISTS" and "not created for this object" in foreign["error"]
        assert theirs["trouble"] == "NOT_OURS" and f"DatabaseUser shop/{user}b" in theirs["error"]
        assert system["trouble"] == "EXISTS" and new["owned"]
        assert not foreign["owned"] and not theirs["owned"] and not system["owned"]
    [_, _, _, new] = reports = each(probe, "undatabases", command)
    assert new["dropped"] and not any(r["dropped"] for r in reports[:3])
    assert has_table(server, f"{user}_foreign") and f"{user}_theirs" in names(server)
    other = {**wants(user, f"{user}_theirs"), "owner": "other/app"}
    assert "an object of another namespace; it is left" in one(probe, "databases", other)["error"]


@pytest.mark.every_version("how databases are marked")
def test_object_with_new_uid_takes_the_database_over(make_probe, server, user):
    """As after a restore: it has another UID.  The former one can no longer drop the database."""
    probe = make_probe(server.target("db", **ALL))
    one(probe, "databases", wants(user, f"{user}_d"))
    fill(server, f"{user}_d")
    report = one(probe, "databases", wants(user, f"{user}_d", uid="uid-2"))
    assert report["owned"] and not report["created"]
    assert not one(probe, "undatabases", wants(user, f"{user}_d"))["dropped"]
    assert has_table(server, f"{user}_d")
    assert one(probe, "undatabases", wants(user, f"{user}_d", uid="uid-2"))["dropped"]


@pytest.mark.every_version("how databases are created and dropped")
def test_externally_dropped_database_is_recreated(make_probe, server, user):
    """It is created again, and belongs to the object."""
    probe = make_probe(server.target("db", **ALL))
    one(probe, "databases", wants(user, f"{user}_d"))
    server.sql(f"DROP DATABASE {name_of(server, f'{user}_d')}")
    report = one(probe, "databases", wants(user, f"{user}_d"))
    assert report["created"] and report["owned"] and f"{user}_d" in names(server)
    assert one(probe, "undatabases", wants(user, f"{user}_d"))["dropped"]


@pytest.mark.every_version("how databases are created and dropped")
@pytest.mark.parametrize("op", ["databases", "undatabases"])
def test_kill_after_each_statement_is_completed(make_probe, server, user, op):
    """SIGKILL after the n-th statement, for all n: the next run completes the work, and nothing is
    left of it."""
    target = server.target("db", **ALL)
    steady = make_probe(target)
    one(steady, "databases", wants(f"{user}w", f"{user}_w"))  # the table of the marks
    killed, report = 0, None
    for number in range(1, 12):
        command = wants(f"{user}{number}", f"{user}_{number}")
        if op == "undatabases":
            one(steady, "databases", command)
        report = make_probe(target, die_after=number).ask(op, **command)
        killed += report is None
        if op == "databases":
            assert one(steady, "databases", command)["owned"]
            fill(server, f"{user}_{number}")
            assert not one(steady, "databases", command)["created"]
        one(steady, "undatabases", command)
        assert f"{user}_{number}" not in names(server) and unfinished(server) == []
        if report is not None:
            break
    assert killed >= 2 - (op == "undatabases" and is_pg(server)) and report is not None
    assert one(steady, "undatabases", wants(f"{user}w", f"{user}_w"))["dropped"]


def test_server_kill_before_the_mark_leaves_one_database(make_probe, make_postgres, user):
    """PostgreSQL dies between the creation and the mark; when it is back, there is one database."""
    pg = make_postgres()
    probe = make_probe(pg.target("db", **ALL), pause_after=1)
    probe.send("databases", **wants(user, f"{user}_d"))
    wait.until("the probe to stop", lambda: pause.stopped(probe.process.pid))
    assert len(unfinished(pg)) == 1 and f"{user}_d" not in names(pg)
    pg.kill()
    pause.resume(probe.process)
    [report] = probe.read()["each"]
    assert report["trouble"] == "CONNECT" and not report["owned"]
    pg.start()
    steady = make_probe(pg.target("db", **ALL))
    assert one(steady, "databases", wants(user, f"{user}_d"))["created"]
    assert unfinished(pg) == []


def test_database_created_by_another_client_first_stays(make_probe, server, user):
    """The name is taken between the lookup and the creation: it stays the other client's."""
    target = server.target("db", **ALL)
    one(make_probe(target), "databases", wants(f"{user}w", f"{user}_w"))
    probe = make_probe(target, pause_after=1)  # the mark, or the database without its name
    probe.send("databases", **wants(user, f"{user}_d"))
    wait.until("the probe to stop", lambda: pause.stopped(probe.process.pid))
    make(server, f"{user}_d")
    pause.resume(probe.process)
    [report] = probe.read()["each"]
    assert report["trouble"] == "EXISTS" and not report["owned"], report
    for op in ("databases", "undatabases"):
        assert not one(make_probe(target), op, wants(user, f"{user}_d"))["dropped"]
        assert has_table(server, f"{user}_d") and unfinished(server) == []
    one(make_probe(target), "undatabases", wants(f"{user}w", f"{user}_w"))


@pytest.mark.every_version("character sets and collations")
def test_character_set_is_set_and_changed(make_probe, server, user):
    """Set at creation; changed on MySQL and MariaDB, and refused on PostgreSQL."""
    probe = make_probe(server.target("db", **ALL))
    first = {"name": f"{user}_d", "characterSet": "latin1"}
    later = {"name": f"{user}_d", "characterSet": "utf8mb4", "collation": "utf8mb4_bin"}
    if is_pg(server):
        first = {"name": f"{user}_d", "characterSet": "utf8", "collation": "C"}
        later = {"name": f"{user}_d", "characterSet": "SQL_ASCII", "collation": "c"}
    assert one(probe, "databases", wants(user, first))["created"]
    assert not one(probe, "databases", wants(user, first))["changed"]
    report = one(probe, "databases", wants(user, later))
    assert report["owned"] and report["changed"] != is_pg(server)
    assert report["immutable"] == is_pg(server)
    if is_pg(server):
        assert "another characterSet, which cannot change" in report["error"]
        assert server.sql("SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE "
                          f"datname = '{user}_d'") == [["UTF8", "C"]]
    else:
        assert not one(probe, "databases", wants(user, later))["changed"]
        assert server.sql("SELECT default_collation_name FROM information_schema.schemata WHERE "
                          f"schema_name = '{user}_d'") == [["utf8mb4_bin"]]
    bad = {"name": f"{user}_bad", "characterSet": "klingon8"}
    report = one(probe, "databases", wants(user, bad))
    assert report["trouble"] == "UNSUPPORTED" and "does not have this character" in report["error"]
    assert f"{user}_bad" not in names(server) and unfinished(server) == []
    one(probe, "undatabases", wants(user, first))


@pytest.mark.parametrize("attack", ["utf8mb4 COMMENT", "utf8; DROP", "a'b", "a`b"])
def test_character_set_must_be_a_single_word(make_probe, hosted, user, attack):
    """It is a keyword of the statement, and never more than that."""
    probe = make_probe(hosted.target("db", **ALL))
    for field in ("characterSet", "collation"):
        report = one(probe, "databases", wants(user, {"name": f"{user}_d", field: attack}))
        assert report["trouble"] == "FAILED" and f"{user}_d" not in names(hosted)


def test_missing_create_right_is_named(make_probe, server, user):
    """The message names the right; nothing is left."""
    admin = f"low{user}"
    if is_pg(server):
        server.sql(f"CREATE ROLE {admin} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    else:
        server.sql(f"CREATE USER {admin}@'%' IDENTIFIED BY '{dbserver.ADMIN_PASSWORD}'; GRANT "
                   f"CREATE USER, RELOAD ON *.* TO {admin}@'%'; GRANT SELECT ON mysql.* TO {admin}@'%'; "
                   f"GRANT ALL ON steward.* TO {admin}@'%'")
    target = server.target("db", **ALL, admin={"user": admin, "passwordFile": str(server.admin_file)})
    report = one(make_probe(target), "databases", wants(user, f"{user}_d"))
    assert report["trouble"] == "DENIED" and "CREATE" in report["error"], report
    assert f"{user}_d" not in names(server) and unfinished(server) == []
    make(server, f"{user}_d")  # later, by another client
    assert not one(make_probe(target), "databases", wants(user, f"{user}_d"))["owned"]


def test_lower_case_server_has_one_database(make_probe, make_mariadb, user):
    """A server that folds names has one database and one mark for both spellings."""
    maria = make_mariadb("--lower-case-table-names=1")
    probe = make_probe(maria.target("db", **ALL))
    assert one(probe, "databases", wants(user, "Shop"))["created"]
    assert one(probe, "databases", wants(user, "Shop"))["owned"]
    assert one(probe, "databases", wants(f"{user}b", "sHOP"))["trouble"] == "NOT_OURS"
    assert one(probe, "undatabases", wants(user, "shop"))["dropped"] and marks(maria) == "0"


# --- PostgreSQL


def extensions(pg, database):
    """The extensions of a database, beside the server's own."""
    return {r[0] for r in pg.sql("SELECT extname FROM pg_extension", database)} - {"plpgsql"}


@pytest.mark.every_version("comments and privileges of databases")
def test_other_accounts_cannot_connect(make_probe, pg, user):
    """An account of another tenant may not even connect, and may not change the mark."""
    probe = make_probe(pg.target("db", **ALL))
    probe.sync(**account(user))
    one(probe, "databases", wants(f"{user}o", f"{user}_d"))
    assert not pg.logs_in(user, "s3cret-Pa55", f"{user}_d")
    pg.sql(f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {user}_d TO {user}")
    for text in (f"COMMENT ON DATABASE {user}_d IS NULL", f"DROP DATABASE {user}_d",
                 f"ALTER DATABASE {user}_d RENAME TO other"):
        result = pg.run_client(text, check=False, user=user, password="s3cret-Pa55",
                               database=f"{user}_d" if "COMMENT" in text else "postgres", tcp=True)
        assert "must be owner of database" in result.stderr
    assert one(probe, "undatabases", wants(f"{user}o", f"{user}_d"))["dropped"]
    probe.drop(**account(user))


@pytest.mark.every_version("comments and privileges of databases")
def test_forged_database_mark_gives_nothing(make_probe, pg, user):
    """A tenant that owns a database writes another object's mark on it: it stays the tenant's."""
    probe = make_probe(pg.target("db", **ALL, allowedExtensions=["*"]))
    one(probe, "databases", wants(user, f"{user}_model"))
    mark = pg.sql("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = "
                  f"'{user}_model'")[0][0]
    pg.sql(f"CREATE ROLE attacker{user}")
    pg.sql(f"CREATE DATABASE {user}_trap OWNER attacker{user}")
    pg.sql(f"SET ROLE attacker{user}; COMMENT ON DATABASE {user}_trap IS {literal(mark)}")
    command = wants(user, {"name": f"{user}_trap", "extensions": ["dblink"]})
    report = one(probe, "databases", command)
    assert report["trouble"] == "EXISTS" and "could have written the mark" in report["error"]
    assert extensions(pg, f"{user}_trap") == set()
    assert not one(probe, "undatabases", command)["dropped"]


@pytest.mark.every_version("extensions")
def test_extensions_are_created_from_the_list(make_probe, pg, user):
    """In order, from the target's list only; one that the server has not, or that needs another."""
    probe = make_probe(pg.target("db", **ALL, allowedExtensions=["pg_trgm", "cube", "earth*", "no*"]))

    def tried(*wanted):
        return one(probe, "databases", wants(user, {"name": f"{user}_d", "extensions": wanted}))
    assert tried("pg_trgm")["extended"] and extensions(pg, f"{user}_d") == {"pg_trgm"}
    assert not tried("pg_trgm")["extended"]
    report = tried("dblink")
    assert report["trouble"] == "DENIED" and "not in allowedExtensions" in report["error"]
    report = tried("nosuch")
    assert report["trouble"] == "NO_OBJECT" and "has no extension" in report["error"]
    report = tried("earthdistance")
    assert report["trouble"] == "NO_OBJECT" and "needs another one" in report["error"]
    assert tried("cube", "earthdistance")["trouble"] == "FINE"
    assert extensions(pg, f"{user}_d") == {"pg_trgm", "cube", "earthdistance"}
    one(probe, "undatabases", wants(user, f"{user}_d"))


@pytest.mark.every_version("extensions")
def test_planted_objects_allow_only_trusted_extensions(make_probe, pg, user):
    """While accounts can create objects where the script of an extension finds them, only trusted
    ones are created."""
    probe = make_probe(pg.target("db", **ALL, allowedExtensions=["dblink", "pg_trgm", "pageinspect"]))
    first = {"name": f"{user}_d", "extensions": ["dblink"]}
    assert one(probe, "databases", wants(user, first))["extended"]
    pg.sql(f"CREATE ROLE planter{user}; GRANT CREATE ON SCHEMA public TO planter{user}", f"{user}_d")
    report = one(probe, "databases", wants(user, {**first, "extensions": ["dblink", "pageinspect"]}))
    assert report["trouble"] == "DENIED" and 'in the schema "public"' in report["error"]
    assert one(probe, "databases", wants(user, {**first, "extensions": ["pg_trgm"]}))["extended"]
    pg.sql(f"REVOKE CREATE ON SCHEMA public FROM planter{user}", f"{user}_d")
    assert one(probe, "databases", wants(user, {**first, "extensions": ["pageinspect"]}))["extended"]
    pg.sql("GRANT CREATE ON SCHEMA public TO PUBLIC; DROP EXTENSION dblink", f"{user}_d")
    assert one(probe, "databases", wants(user, first))["trouble"] == "DENIED"
    one(probe, "undatabases", wants(user, f"{user}_d"))


PLANTED = {
    "function": "CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE sql AS 'SELECT $1'",
    "operator": "CREATE OPERATOR public.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)",
    "relation": "CREATE TABLE public.bait (n int)",
    "type": "CREATE DOMAIN public.bait AS int",
}


@contextlib.contextmanager
def tenant(pg, probe, user, *grants):
    """A database of the object's, in which its account has these rights: runs statements as it."""
    assert one(probe, "databases", wants(user, f"{user}_d"))["created"]
    probe.sync(**account(user, uid=f"uid-{user}", grants=[grant(f"{user}_d", "CONNECT"), *grants]))

    def run(text):
        result = pg.run_client(text, check=False, user=user, password="s3cret-Pa55",
                               database=f"{user}_d", tcp=True)
        assert result.returncode == 0, result.stderr
    yield run
    one(probe, "undatabases", wants(user, f"{user}_d"))
    probe.drop(**account(user, uid=f"uid-{user}"))


@pytest.mark.every_version("extensions")
@pytest.mark.parametrize("kind", list(PLANTED))
def test_extension_waits_for_create_rights_to_end(make_probe, pg, user, kind):
    """Its right to create there has ended before the extension is asked for."""
    probe = make_probe(pg.target("db", **ALL, allowedExtensions=["pageinspect"]))
    wanted = wants(user, {"name": f"{user}_d", "extensions": ["pageinspect"]})
    public = grant(f"{user}_d", "CREATE", "USAGE", schema="public")
    with tenant(pg, probe, user, public) as run:
        run(PLANTED[kind])
        assert "may create objects in the schema" in one(probe, "databases", wanted)["error"]
        probe.sync(**account(user, uid=f"uid-{user}", grants=[grant(f"{user}_d", "CONNECT")]))
        report = one(probe, "databases", wanted)
        assert report["trouble"] == "DENIED", report
        assert f'while a {kind} of the role "{user}" is in the schema "public"' in report["error"]
        pg.sql(f"DROP OWNED BY {user}", f"{user}_d")
        assert one(probe, "databases", wanted)["extended"]


@pytest.mark.every_version("extensions")
@pytest.mark.parametrize("prepared", [False, True], ids=["open", "prepared"])
def test_extension_waits_for_open_transactions(make_probe, make_postgres, user, prepared):
    """A function of a transaction that is open is not seen, and would be at its end."""
    pg = make_postgres("max_prepared_transactions=2")
    probe = make_probe(pg.target("db", **ALL, allowedExtensions=["pageinspect"]))
    wanted = wants(user, {"name": f"{user}_d", "extensions": ["pageinspect"]})
    public = grant(f"{user}_d", "CREATE", "USAGE", schema="public")
    with tenant(pg, probe, user, public):
        with dblogin.Session(pg, user, "s3cret-Pa55", f"{user}_d") as held:
            held.run(f"BEGIN; {PLANTED['function']}")
            if prepared:
                held.run("PREPARE TRANSACTION 'trap'")
            probe.sync(**account(user, uid=f"uid-{user}", grants=[grant(f"{user}_d", "CONNECT")]))
            report = one(probe, "databases", wanted)
            assert report["trouble"] == "LOCKED" and "has a transaction open" in report["error"], report
            held.run("COMMIT PREPARED 'trap'" if prepared else "COMMIT")
            report = one(probe, "databases", wanted)
            assert report["trouble"] == "DENIED" and "a function" in report["error"], report


def test_extension_dependency_in_tenant_schema_is_refused(make_probe, user):
    """The schemas of the extensions that it requires are in its script's path, and so is its own."""
    share = scratch.folder("extensions")  # the server may read it
    folder = share / "extension"
    folder.mkdir()
    (folder / "needy.control").write_text("default_version = '1'\nrelocatable = false\n"
                                          "requires = 'fuzzystrmatch'\n")
    (folder / "fixed.control").write_text("default_version = '1'\nschema = 'partman'\n"
                                          "relocatable = false\n")
    for name in ("needy", "fixed"):
        (folder / f"{name}--1.sql").write_text("DO $$ BEGIN EXECUTE format('SET LOCAL %s = 1', "
                                               "'steward.x'); END $$;")
    share.chmod(0o755)
    pg = postgres.Postgres(f"extension_control_path={share}:$system", line="18")
    trap = "CREATE FUNCTION {0}.format(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE " \
           f"'ALTER ROLE {user} SUPERUSER'; RETURN pg_catalog.format($1, $2); END $$;"
    try:
        probe = make_probe(pg.target("db", **ALL, allowedExtensions=["needy", "fixed"]))
        with tenant(pg, probe, user, grant(f"{user}_d", "CONNECT", "CREATE")) as run:
            run("CREATE SCHEMA mine; CREATE EXTENSION fuzzystrmatch SCHEMA mine;" + trap.format("mine"))
            run("CREATE SCHEMA partman;" + trap.format("partman"))
            for name in ("needy", "fixed"):
                report = one(probe, "databases", wants(user, {"name": f"{user}_d", "extensions": [name]}))
                assert report["trouble"] == "DENIED", report
                assert f'while the role "{user}" may create objects' in report["error"]
            assert pg.sql(f"SELECT rolsuper FROM pg_roles WHERE rolname = '{user}'") == [["f"]]
            pg.sql(f"DROP OWNED BY {user}; CREATE EXTENSION fuzzystrmatch", f"{user}_d")
            for name in ("needy", "fixed"):
                report = one(probe, "databases", wants(user, {"name": f"{user}_d", "extensions": [name]}))
                assert report["extended"], report
    finally:
        pg.close()
        shutil.rmtree(share)


@pytest.mark.every_version("databases from template0")
def test_template1_session_does_not_block_creation(make_probe, pg, user):
    """Every account may connect to template1."""
    probe = make_probe(pg.target("db", **ALL))
    probe.sync(**account(f"{user}t"))
    with dblogin.Session(pg, f"{user}t", "s3cret-Pa55", "template1") as held:
        assert one(probe, "databases", wants(user, f"{user}_d"))["created"]
        assert held.works()
    one(probe, "undatabases", wants(user, f"{user}_d"))
    probe.drop(**account(f"{user}t"))


@pytest.mark.every_version("schemas")
@pytest.mark.parametrize("admin", ["superuser", "createrole"])
def test_schemas_are_owned_by_the_account(make_probe, pg, user, admin):
    """The account owns them, also those that a dropped account of the namespace left; one that belongs to
    another role stays its own."""
    more, maker, owner = {}, "root", f"n-{user}/app"
    left = [postgres.heir(CLUSTER, f"n-{user}"), f"steward_heir_n-{user}"]  # of this version, and of former ones
    if admin == "createrole":
        pg.sql(f"CREATE ROLE low{user} LOGIN CREATEROLE CREATEDB PASSWORD "
               f"'{dbserver.ADMIN_PASSWORD}'")
        maker = f"low{user}"
        more["admin"] = {"user": f"low{user}", "passwordFile": str(pg.admin_file)}
    probe = make_probe(pg.target("db", **ALL, **more))
    hard = "sche'ma \"$guard$"
    wanted = wants(user, {"name": f"{user}_d", "schemas": ["one", hard]}, owner=owner)
    assert one(probe, "databases", wanted)["created"]
    assert not one(probe, "schemas", wanted)["schemas_added"]  # there is no account yet
    probe.sync(**account(user, owner=owner))
    report = one(probe, "schemas", wanted)
    assert report["trouble"] == "FINE" and report["schemas_added"], report
    assert not one(probe, "schemas", wanted)["schemas_added"]
    owners = "SELECT nspname, pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname IN " \
             f"('one', {literal(hard)})"
    assert sorted(pg.sql(owners, f"{user}_d")) == sorted([["one", user], [hard, user]])
    pg.sql("CREATE SCHEMA theirs", f"{user}_d")
    for schema, role in zip(("one", hard), map(postgres.name, left)):
        pg.sql(f"SET ROLE {maker}; CREATE ROLE {role} NOLOGIN NOINHERIT; RESET ROLE; "
               f"ALTER SCHEMA {postgres.name(schema)} OWNER TO {role}", f"{user}_d")
    assert one(probe, "schemas", wanted)["schemas_added"]
    assert sorted(pg.sql(owners, f"{user}_d")) == sorted([["one", user], [hard, user]])
    report = one(probe, "schemas", wants(user, {"name": f"{user}_d", "schemas": ["theirs"]}, owner=owner))
    assert report["trouble"] == "EXISTS" and "belongs to the role" in report["error"]
    # The server ends psql's session, of a superuser, a moment after psql.
    wait.until("the end of psql's session", lambda: one(probe, "undatabases", wanted)["dropped"])
    probe.drop(**account(user, owner=owner))


def target_of(pg, user, admin):
    """A target that allows all databases, with an admin that is a superuser or not."""
    if admin == "superuser":
        return pg.target("db", **ALL, allowedExtensions=["pg_trgm", "citext"])
    pg.sql(f"CREATE ROLE low{user} LOGIN CREATEROLE CREATEDB PASSWORD '{dbserver.ADMIN_PASSWORD}'; "
           f"GRANT pg_signal_backend TO low{user}")
    return pg.target("db", **ALL, allowedExtensions=["pg_trgm", "citext"],
                     admin={"user": f"low{user}", "passwordFile": str(pg.admin_file)})


def owner_of(pg, name):
    """The role that owns the database."""
    return pg.sql(f"SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '{name}'")[0][0]


@pytest.mark.every_version("owners of databases")
@pytest.mark.parametrize("admin", ["superuser", "createrole"])
def test_account_owns_its_database_while_it_exists(make_probe, pg, user, admin):
    """The role that stays while its logins change; another account gets rights there; the admin is its owner
    again when the database is kept, when the object no longer asks for it, and to drop it."""
    target, name, object_name = target_of(pg, user, admin), f"{user}_d", f"ns{user}/{user}"
    probe, admins = make_probe(target), target["admin"]["user"]
    wanted = wants(user, {"name": name, "owner": True, "extensions": ["pg_trgm"]}, owner=object_name)
    mine = account(user, uid=f"uid-{user}", owner=object_name, policy="Exact",
                   grants=[grant(name, "CONNECT", "CREATE")])
    assert one(probe, "databases", wanted)["created"]
    assert not one(probe, "schemas", wanted)["owner_changed"]  # there is no account yet
    probe.sync(**mine)
    assert one(probe, "schemas", wanted)["owner_changed"] and owner_of(pg, name) == user
    assert not one(probe, "schemas", wanted)["owner_changed"]
    report = probe.sync(**mine)
    assert report["given"] == report["revoked"] == 0 and report["foreign"] == "", report
    assert marks(pg) != "0" and one(probe, "databases", wanted)["owned"]

    probe.sync(**account(f"{user}_a", uid=f"uid-{user}", acts_as=user, owner=object_name))
    pg.run_client("CREATE SCHEMA s; CREATE TABLE s.t (i int); ALTER DATABASE " + name + " SET search_path = s",
                  user=f"{user}_a", password="s3cret-Pa55", database=name, tcp=True)
    probe.sync(**account(f"{user}r", grants=[grant(name, "CONNECT"), grant(name, "USAGE", schema="s"),
                                             grant(name, "SELECT", schema="s", table="*")]))
    assert pg.sql(f"SELECT has_table_privilege('{user}r', 's.t', 'SELECT')", name) == [["t"]]
    probe.drop(**account(f"{user}_a", uid=f"uid-{user}", acts_as=user, owner=object_name))
    assert owner_of(pg, name) == user

    wanted["databases"][0]["extensions"] = ["pg_trgm", "citext"]
    report = one(probe, "schemas", wanted)
    assert report["trouble"] == "FINE" and "citext" in extensions(pg, name), report
    wanted["databases"][0]["owner"] = False
    assert one(probe, "schemas", wanted)["owner_changed"] and owner_of(pg, name) == admins
    wanted["databases"][0]["owner"] = True
    assert one(probe, "schemas", wanted)["owner_changed"] and owner_of(pg, name) == user
    pg.run_client(f"ALTER DATABASE {name} SET local_preload_libraries = 'none'; "
                  f"ALTER DATABASE {name} SET role = {user}",
                  user=user, password="s3cret-Pa55", tcp=True)
    assert not one(probe, "undatabases", wants(user, {"name": name, "keep": True}, owner=object_name))["dropped"]
    assert owner_of(pg, name) == admins
    probe.drop(**mine)
    assert not pg.exists(user) and owner_of(pg, name) == admins
    probe.sync(**account(user, uid="uid-2", owner=object_name))
    wanted["uid"] = "uid-2"
    assert one(probe, "schemas", wanted)["owner_changed"] and owner_of(pg, name) == user
    probe.drop(**account(f"{user}r"))
    wait.until("the end of psql's session", lambda: one(probe, "undatabases", wanted)["dropped"])
    probe.drop(**account(user, uid="uid-2", owner=object_name))


@pytest.mark.every_version("settings of databases")
@pytest.mark.parametrize("admin", ["superuser", "createrole"])
def test_hostile_database_owner_harms_only_its_own(make_probe, pg, user, admin):
    """It is read-only, ends sessions at once, or takes none: others are served, and the end comes all the same.
    With another mark or none it stays, and its owner becomes the role without rights."""
    name, mine = f"{user}_d", {"uid": f"uid-{user}", "owner": f"ns{user}/{user}"}
    probe = make_probe(target_of(pg, user, admin))
    wanted = wants(user, {"name": name, "owner": True}, owner=mine["owner"])
    mine = account(user, **mine, grants=[grant(name, "USAGE", schema="public")])
    one(probe, "databases", wanted)
    probe.sync(**mine)
    assert one(probe, "schemas", wanted)["owner_changed"]
    number = int(pg.sql("SHOW server_version_num")[0][0])
    attacks = [f"ALTER DATABASE {name} SET default_transaction_read_only = on",
               f"ALTER DATABASE {name} SET idle_session_timeout = 1",
               f"ALTER DATABASE {name} SET role = {user}",
               f"ALTER DATABASE {name} CONNECTION LIMIT 0",
               *([f"ALTER DATABASE {name} SET transaction_timeout = 1"] if number >= 170000 else []),
               f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"]
    for number, attack in enumerate(attacks):
        pg.run_client(attack, user=user, password="s3cret-Pa55", database="postgres", tcp=True)
        pg.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        report = probe.ask("sync", **{**mine, "grants": [
            grant(name, "CREATE" if number % 2 else "USAGE", schema="public")]})
        assert report["trouble"] not in ("CONNECT", "READ_ONLY", "CIRCUIT_OPEN") and report["login_done"], (
            attack, report["trouble"], report["error"])
        assert report["trouble"] == "FINE" or "SET role" not in attack, report
        report = probe.sync(**account(f"{user}o", password=f"s3cret-Pa5{number}"))
        assert probe.ask("retry")["ms"] == 0, (attack, report)
        pg.sql(f"ALTER DATABASE {name} RESET ALL; ALTER DATABASE {name} CONNECTION LIMIT -1")
    assert probe.metric("steward_sql_circuit_open")[-1].endswith(" 0")
    assert one(probe, "undatabases", wanted)["dropped"] and name not in names(pg)

    one(probe, "databases", wanted)
    one(probe, "databases", wants(f"{user}v", f"{user}_v"))
    assert one(probe, "schemas", wanted)["owner_changed"]
    mark = pg.sql(f"SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = '{user}_v'")
    for text, victim in ((literal(mark[0][0]), "NOT_OURS"), ("NULL", "EXISTS")):
        pg.run_client(f"COMMENT ON DATABASE {name} IS {text}", user=user, password="s3cret-Pa55", database=name,
                      tcp=True)
        assert one(probe, "databases", wanted)["trouble"] == victim
        assert one(probe, "databases", wants(f"{user}v", name))["trouble"] == "EXISTS"
        assert not one(probe, "undatabases", wants(f"{user}v", name))["dropped"]
        assert not one(probe, "undatabases", wanted)["dropped"]
    probe.drop(**mine)
    assert not pg.exists(user) and owner_of(pg, name) == postgres.heir(CLUSTER, f"ns{user}")
    for left in (name, f"{user}_v"):
        pg.sql(f"DROP DATABASE {left}")


@pytest.mark.every_version("sessions in the way of a drop")
@pytest.mark.parametrize("session", ["superuser", "account"])
def test_open_session_blocks_the_drop_with_a_reason(make_probe, pg, user, session):
    """An admin without SUPERUSER cannot end them all: the reason is told, and nothing is dropped.  When
    the session has ended, the database is."""
    pg.sql(f"CREATE ROLE low{user} LOGIN CREATEROLE CREATEDB PASSWORD '{dbserver.ADMIN_PASSWORD}';"
           f"CREATE ROLE third{user} LOGIN PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    if session == "superuser":
        pg.sql(f"GRANT pg_signal_backend TO low{user}")
    probe = make_probe(pg.target("db", **ALL, admin={"user": f"low{user}", "passwordFile": str(pg.admin_file)}))
    wanted = wants(user, f"{user}_d")
    assert one(probe, "databases", wanted)["created"]
    pg.sql(f"GRANT CONNECT ON DATABASE {user}_d TO third{user}")
    other = dbserver.ADMIN if session == "superuser" else f"third{user}"
    with dblogin.Session(pg, other, dbserver.ADMIN_PASSWORD, f"{user}_d") as held:
        report = one(probe, "undatabases", wanted)
        assert not report["dropped"] and report["trouble"] == "FAILED", report
        assert "sessions that other accounts have in it (1)" in report["error"]
        assert held.works()
    wait.until("the end of the session", lambda: one(probe, "undatabases", wanted)["dropped"])
    assert f"{user}_d" not in names(pg)


@pytest.mark.every_version("names")
def test_overlong_names_are_refused(make_probe, pg, user):
    """Two names of more than 63 bytes would become one."""
    probe = make_probe(pg.target("db", **ALL))
    for wanted in ({"name": f"{user}{'x' * 64}"}, {"name": f"{user}_d", "schemas": ["y" * 64]},
                   {"name": f"{user}_d", "schemas": ["pg_toast"]}):
        report = one(probe, "databases", wants(user, wanted))
        assert report["trouble"] == "UNSUPPORTED" and not report["owned"]
    assert not [n for n in names(pg) if n.startswith(user)]
