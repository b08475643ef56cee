# SPDX-License-Identifier: Apache-2.0
"""A right on all tables of a schema of PostgreSQL covers the tables that are created later."""

import pytest

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
def test_later_tables(post, pg, user, team):
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
def test_a_new_creator_and_the_drop(post, pg, user, team):
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
def test_an_admin_without_the_creators_role(make_probe, make_postgres, user):
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
