# SPDX-License-Identifier: Apache-2.0
"""A right on all tables of a schema of PostgreSQL covers the tables that are created later."""

import pytest

from support import dbserver
from support.sqlprobe import account, grant

SCHEMA = "o'ne \\ \"two\" $guard$ %I"  # in every kind of quotation mark


def quoted(name):
    """The name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def post(make_probe, pg):
    """A probe whose target is PostgreSQL."""
    return make_probe(pg.target("db"))


@pytest.fixture
def team(pg, user):
    """A database with two schemas that a role of its own creates tables in; its name."""
    name = f"future{user}"
    pg.sql(f"CREATE DATABASE {name}")
    pg.sql(f"CREATE ROLE maker{user} NOLOGIN; CREATE ROLE late{user} NOLOGIN; "
           f"CREATE SCHEMA {quoted(SCHEMA)} AUTHORIZATION maker{user}; CREATE SCHEMA other; "
           f"GRANT CREATE, USAGE ON SCHEMA {quoted(SCHEMA)}, other TO late{user}", name)
    return name


def make(pg, database, role, schema, table):
    """A table with a sequence, created by this role; None: by the owner of the database."""
    pg.sql(f"{f'SET ROLE {role}; ' if role else ''}CREATE TABLE {quoted(schema)}.{table} (i serial); "
           f"INSERT INTO {quoted(schema)}.{table} VALUES (7)", database)


def may(pg, database, user, privilege, schema, table):
    """Whether the role has the privilege on the table, or on its sequence for USAGE."""
    what, name = ("sequence", f"{table}_i_seq") if privilege == "USAGE" else ("table", table)
    text = f"{quoted(schema)}.{name}".replace("'", "''").replace("\\", "\\\\")
    return pg.sql(f"SELECT has_{what}_privilege('{user}', E'{text}', '{privilege}')",
                  database) == [["t"]]


def defaults(pg, database):
    """How many entries of default privileges the database has."""
    return pg.sql("SELECT count(*) FROM pg_default_acl", database)[0][0]


@pytest.mark.every_version("default privileges")
def test_grant_covers_later_tables(post, pg, user, team):
    """Of the owner of the schema, of a role with CREATE, of the owner of the database; revoked
    with the right; of no other schema."""
    grants = [grant(team, "SELECT", "UPDATE", schema=SCHEMA, table="*"),
              grant(team, "USAGE", schema=SCHEMA, table="*")]
    post.sync(**account(user, grants=grants))
    for number, role in enumerate((f"maker{user}", f"late{user}", None)):
        make(pg, team, role, SCHEMA, f"t{number}")
        for privilege in ("SELECT", "UPDATE", "USAGE"):
            assert may(pg, team, user, privilege, SCHEMA, f"t{number}"), (role, privilege)
        assert not may(pg, team, user, "DELETE", SCHEMA, f"t{number}")
        make(pg, team, None, "other", f"t{number}")
        assert not may(pg, team, user, "SELECT", "other", f"t{number}")
    assert post.sync(**account(user, grants=grants))["statements"] == 2

    # Drift: one entry is gone.
    pg.sql(f"ALTER DEFAULT PRIVILEGES FOR ROLE late{user} IN SCHEMA {quoted(SCHEMA)} REVOKE SELECT "
           f"ON TABLES FROM {user}", team)
    assert post.sync(**account(user, grants=grants))["given"] == 1
    make(pg, team, f"late{user}", SCHEMA, "again")
    assert may(pg, team, user, "SELECT", SCHEMA, "again")

    post.sync(**account(user, grants=grants[1:]))
    make(pg, team, f"maker{user}", SCHEMA, "less")
    assert may(pg, team, user, "USAGE", SCHEMA, "less")
    assert not may(pg, team, user, "SELECT", SCHEMA, "less")
    post.sync(**account(user))
    assert defaults(pg, team) == "0"
    assert post.sync(**account(user))["statements"] == 1


@pytest.mark.every_version("default privileges")
def test_new_creator_role_is_found_at_next_check(post, pg, user, team):
    """A role that may create tables from now on is found at the next check; a drop leaves nothing."""
    grants = [grant(team, "SELECT", schema=SCHEMA, table="*", option=True)]
    post.sync(**account(user, grants=grants))
    pg.sql(f"CREATE ROLE next{user}; GRANT CREATE, USAGE ON SCHEMA {quoted(SCHEMA)} TO next{user}",
           team)
    assert post.sync(**account(user, grants=grants))["given"] == 2
    make(pg, team, f"next{user}", SCHEMA, "t")
    assert may(pg, team, user, "SELECT WITH GRANT OPTION", SCHEMA, "t")
    post.drop(**account(user))
    assert not pg.exists(user) and defaults(pg, team) == "0"


@pytest.mark.every_version("default privileges")
def test_admin_without_creator_role_grants_at_next_check(make_probe, make_postgres, user):
    """The tables of roles that the admin cannot become get the right at the next check."""
    pg = make_postgres()
    pg.sql('ALTER ROLE "steward-admin" NOSUPERUSER CREATEROLE; CREATE ROLE alien SUPERUSER NOLOGIN')
    pg.sql('CREATE DATABASE mixed OWNER "steward-admin"')
    pg.sql('CREATE SCHEMA s AUTHORIZATION "steward-admin"; GRANT CREATE, USAGE ON SCHEMA s TO alien; '
           'SET ROLE alien; CREATE TABLE s.before (i int); GRANT ALL ON s.before TO "steward-admin" '
           "WITH GRANT OPTION", "mixed")
    grants = [grant("mixed", "SELECT", schema="s", table="*")]
    probe = make_probe(pg.target("db"))
    probe.sync(**account(user, grants=grants))
    assert probe.sync(**account(user, grants=grants))["given"] == 0
    pg.sql('SET ROLE "steward-admin"; CREATE TABLE s.mine (i int)', "mixed")
    assert may(pg, "mixed", user, "SELECT", "s", "mine")
    pg.sql('SET ROLE alien; CREATE TABLE s.later (i int); GRANT ALL ON s.later TO "steward-admin" '
           "WITH GRANT OPTION", "mixed")
    assert not may(pg, "mixed", user, "SELECT", "s", "later")
    assert probe.sync(**account(user, grants=grants))["given"] == 1
    assert may(pg, "mixed", user, "SELECT", "s", "later")


def everywhere(database, routines=False):
    """Rights on all that is in every schema."""
    found = [grant(database, "USAGE", schema="*"), grant(database, "SELECT", schema="*", table="*"),
             grant(database, "USAGE", schema="*", table="*")]
    return [*found, {**grant(database, "EXECUTE", schema="*"), "routine": "*"}] if routines else found


def enters(pg, database, user, schema):
    """Whether the role has USAGE on the schema."""
    text = schema.replace("'", "''").replace("\\", "\\\\")
    return pg.sql(f"SELECT has_schema_privilege('{user}', E'{text}', 'USAGE')", database) == [["t"]]


@pytest.mark.every_version("default privileges")
def test_grant_on_all_schemas_covers_later_ones(post, pg, user, team):
    """Of any owner, and not on those of the server or of an extension; from all schemas to one, and to none."""
    grants = everywhere(team, routines=True)
    pg.sql("CREATE EXTENSION pageinspect; CREATE SCHEMA lone; ALTER EXTENSION pageinspect ADD SCHEMA lone; "
           f"CREATE TABLE lone.t (i serial); CREATE FUNCTION {quoted(SCHEMA)}.f() RETURNS int LANGUAGE sql AS "
           f"'SELECT 1'; REVOKE EXECUTE ON FUNCTION {quoted(SCHEMA)}.f() FROM PUBLIC", team)
    make(pg, team, f"maker{user}", SCHEMA, "t")
    make(pg, team, None, "other", "t")
    report = post.sync(**account(user, grants=grants))
    assert f"EXECUTE, SELECT, USAGE ON {team}.*.*" in report["granted"], report
    for schema in (SCHEMA, "other"):
        assert enters(pg, team, user, schema)
        assert may(pg, team, user, "SELECT", schema, "t") and may(pg, team, user, "USAGE", schema, "t")
    assert pg.sql(f"SELECT has_function_privilege('{user}', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = "
                  f"'f' AND prorettype = 'int'::regtype", team) == [["t"]]
    assert not enters(pg, team, user, "lone") and not may(pg, team, user, "SELECT", "lone", "t")
    assert not may(pg, team, user, "SELECT", "pg_catalog", "pg_authid")
    make(pg, team, f"late{user}", SCHEMA, "at_once")
    assert may(pg, team, user, "SELECT", SCHEMA, "at_once")
    assert post.sync(**account(user, grants=grants, policy="Exact"))["statements"] == 2

    pg.sql(f"CREATE SCHEMA later AUTHORIZATION late{user}; GRANT SELECT ON pg_authid TO {user}; "
           f"GRANT SELECT ON lone.t TO {user}", team)
    make(pg, team, f"late{user}", "later", "t")
    assert not enters(pg, team, user, "later")
    report = post.sync(**account(user, grants=grants, policy="Exact"))
    assert report["given"] == 4 and report["revoked"] == 2, report
    assert enters(pg, team, user, "later") and may(pg, team, user, "SELECT", "later", "t")
    assert not may(pg, team, user, "SELECT", "lone", "t")
    assert not may(pg, team, user, "SELECT", "pg_catalog", "pg_authid")
    make(pg, team, f"late{user}", "later", "next")
    assert may(pg, team, user, "SELECT", "later", "next")

    named = [grant(team, "USAGE", schema="other"), grant(team, "SELECT", schema="other", table="*"),
             grant(team, "SELECT", schema="later", table="t")]
    assert post.sync(**account(user, grants=[*grants, *named]))["given"] == 3
    post.sync(**account(user, grants=named))
    assert enters(pg, team, user, "other") and may(pg, team, user, "SELECT", "other", "t")
    assert may(pg, team, user, "SELECT", "later", "t") and not may(pg, team, user, "SELECT", "later", "next")
    assert not enters(pg, team, user, "later") and not enters(pg, team, user, SCHEMA)
    assert not may(pg, team, user, "SELECT", SCHEMA, "t") and not may(pg, team, user, "USAGE", "other", "t")
    assert post.sync(**account(user, grants=named))["statements"] == 2
    post.sync(**account(user, grants=grants))
    post.sync(**account(user))
    assert defaults(pg, team) == "0" and post.sync(**account(user))["statements"] == 1
    report = post.fails("sync", "UNSUPPORTED", **account(user, grants=[
        grant(team, "SELECT", schema="*", table="one")]))
    assert '"one" cannot be named' in report["error"], report


@pytest.mark.every_version("PostgreSQL 16 changed what CREATEROLE may do")
def test_refused_schema_does_not_affect_others(make_probe, pg, user):
    """The admin, without SUPERUSER, acts as the owners that it can act as, and names the other schema."""
    mixed, limited = f"mixed{user}", f"{user}_admin"
    pg.sql(f"CREATE ROLE {limited} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'; CREATE ROLE alien{user} "
           f"SUPERUSER; CREATE DATABASE {mixed} OWNER {limited}")
    pg.sql(f"CREATE SCHEMA aliens AUTHORIZATION alien{user}; CREATE TABLE aliens.t (i serial); "
           "DROP SCHEMA public", mixed)
    probe = make_probe(pg.target("db", admin={"user": limited, "passwordFile": str(pg.admin_file)}))
    probe.sync(**account(f"{user}m", grants=[grant(mixed, "CREATE")]))
    pg.sql(f"CREATE SCHEMA mine AUTHORIZATION {user}m; SET ROLE {user}m; CREATE TABLE mine.t (i serial)", mixed)
    for _ in range(2):
        report = probe.fails("sync", "DENIED", **account(user, grants=everywhere(mixed)))
        assert f"the schema aliens of the role alien{user}" in report["error"], report
        assert enters(pg, mixed, user, "mine") and may(pg, mixed, user, "SELECT", "mine", "t")
        assert may(pg, mixed, user, "USAGE", "mine", "t") and not enters(pg, mixed, user, "aliens")
    pg.sql(f"ALTER SCHEMA aliens OWNER TO {limited}; ALTER TABLE aliens.t OWNER TO {limited}", mixed)
    probe.sync(**account(user, grants=everywhere(mixed)))
    assert probe.sync(**account(user, grants=everywhere(mixed)))["given"] == 0


def test_many_foreign_schemas_do_not_displace_own(post, pg, user, team):
    """He makes more than rights are given on; the oldest of each owner have them, and the message tells."""
    grants = everywhere(team)[:2]
    post.sync(**account(user, grants=grants))
    pg.sql(f"""DO $$ BEGIN FOR i IN 1..1100 LOOP EXECUTE format('CREATE SCHEMA x%s AUTHORIZATION late{user}', i);
        END LOOP; END $$; CREATE TABLE other.t (i serial); CREATE SCHEMA victim AUTHORIZATION maker{user};
        CREATE TABLE victim.t (i serial)""", team)
    for _ in range(2):
        report = post.fails("sync", "UNSUPPORTED", **account(user, grants=grants))
        assert f'the database "{team}" has 1104 schemas' in report["error"], report
    assert enters(pg, team, user, "victim") and may(pg, team, user, "SELECT", "victim", "t")
    assert may(pg, team, user, "SELECT", "other", "t")
    assert pg.sql(f"SELECT count(*) FROM pg_namespace WHERE has_schema_privilege('{user}', oid, 'USAGE') AND "
                  "nspname !~ '^(pg_|information_schema)'", team) == [["1000"]]
    pg.sql("DROP SCHEMA x1", team)
    post.sync(**account(user))
    assert defaults(pg, team) == "0" and not enters(pg, team, user, "x2")


def test_object_named_asterisk_is_not_all(post, pg, user, team):
    """An attacker's table or schema named "*", on which he gives a right."""
    grants = [grant(team, "SELECT", schema="*", table="*"), grant(team, "SELECT", schema="other", table="*")]
    post.sync(**account(user, grants=grants))
    make(pg, team, None, "other", "t")
    pg.sql(f'REVOKE SELECT ON other.t FROM {user}; CREATE SCHEMA "*"; CREATE TABLE other."*" (i int); '
           f'CREATE TABLE "*"."*" (i int); GRANT SELECT ON other."*", "*"."*" TO {user}', team)
    assert post.sync(**account(user, grants=grants))["given"] == 2
    assert may(pg, team, user, "SELECT", "other", "t")
