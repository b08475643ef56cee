# SPDX-License-Identifier: Apache-2.0
"""EXECUTE on functions and procedures of PostgreSQL, by name and on all of a schema, and those that
are never given, because they would make their callers admins of the server."""

import pytest

from support.sqlprobe import account, grant

SCHEMA = "o'ne \\ \"two\" $guard$ %I"  # in every kind of quotation mark
WHY = "every signature, and default privileges, are of the server's version"


def quoted(name):
    """The name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def routine(team, name, *privileges, option=False):
    """A grant on functions of the schema."""
    return {**grant(team, *(privileges or ("EXECUTE",)), schema=SCHEMA, option=option),
            "routine": name}


@pytest.fixture
def post(make_probe, pg):
    """A probe whose target is PostgreSQL."""
    return make_probe(pg.target("db"))


@pytest.fixture
def team(pg, user):
    """A database with a schema of a role that is not privileged; its name.  Functions of it are not
    executable by everyone."""
    name = f"routines{user}"
    pg.sql(f"CREATE DATABASE {name}; CREATE ROLE maker{user} NOLOGIN")
    pg.sql(f"CREATE SCHEMA {quoted(SCHEMA)} AUTHORIZATION maker{user}; ALTER DEFAULT PRIVILEGES "
           "REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE "
           f"maker{user} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC", name)
    make(pg, name, f"maker{user}", "f(int)")
    make(pg, name, f"maker{user}", "f(text, numeric)")
    make(pg, name, f"maker{user}", "p()", "PROCEDURE")
    make(pg, name, f"maker{user}", "g()")
    return name


def make(pg, team, role, signature, what="FUNCTION", how="LANGUAGE sql AS 'SELECT 1'"):
    """Creates a function by this role; None: by a superuser."""
    result = "RETURNS int" if what == "FUNCTION" else ""
    pg.sql(f"{f'SET ROLE {role}; ' if role else ''}CREATE {what} {quoted(SCHEMA)}.{signature} "
           f"{result} {how}", team)


def may(pg, team, user, signature, option=False):
    """Whether the role may execute the function."""
    text = f"{quoted(SCHEMA)}.{signature}".replace("'", "''").replace("\\", "\\\\")
    more = " WITH GRANT OPTION" if option else ""
    return pg.sql(f"SELECT has_function_privilege('{user}', E'{text}', 'EXECUTE{more}')",
                  team) == [["t"]]


@pytest.mark.every_version(WHY)
def test_named_routine_grant_covers_all_signatures(post, pg, user, team):
    """All signatures of a name, and no other name; repaired; revoked."""
    grants = [routine(team, "f"), routine(team, "p", "ALL", option=True)]
    found = post.sync(**account(user, grants=grants))
    assert found["granted"].splitlines() == [
        f"EXECUTE ON {team}.{SCHEMA}.f", f"EXECUTE WITH GRANT OPTION ON {team}.{SCHEMA}.p"]
    assert may(pg, team, user, "f(int)") and may(pg, team, user, "f(text, numeric)")
    assert may(pg, team, user, "p()", option=True) and not may(pg, team, user, "f(int)", True)
    assert not may(pg, team, user, "g()")
    assert post.sync(**account(user, grants=grants))["statements"] == 2

    make(pg, team, f"maker{user}", "f()")
    pg.sql(f"REVOKE EXECUTE ON FUNCTION {quoted(SCHEMA)}.f(int) FROM {user}", team)
    assert post.sync(**account(user, grants=grants))["given"] == 1
    assert may(pg, team, user, "f()") and may(pg, team, user, "f(int)")

    post.sync(**account(user, grants=[routine(team, "p")]))
    assert not may(pg, team, user, "f()") and not may(pg, team, user, "f(int)")
    assert may(pg, team, user, "p()") and not may(pg, team, user, "p()", option=True)
    post.drop(**account(user))
    assert not pg.exists(user)


@pytest.mark.every_version(WHY)
def test_grant_on_all_routines_covers_later_ones(post, pg, user, team):
    """All of a schema, those that are created later at once, and none after the grant is removed."""
    grants = [routine(team, "*")]
    post.sync(**account(user, grants=grants))
    for signature in ("f(int)", "p()", "g()"):
        assert may(pg, team, user, signature)
    make(pg, team, f"maker{user}", "later()")
    make(pg, team, f"maker{user}", "later_too()", "PROCEDURE")
    assert may(pg, team, user, "later()") and may(pg, team, user, "later_too()")
    assert post.sync(**account(user, grants=grants))["statements"] == 2

    make(pg, team, None, "of_the_admin()")  # harmless: it runs with the rights of its caller
    assert not may(pg, team, user, "of_the_admin()")
    assert post.sync(**account(user, grants=grants))["given"] == 1
    assert may(pg, team, user, "of_the_admin()")

    post.sync(**account(user, grants=[routine(team, "g")]))
    make(pg, team, f"maker{user}", "at_last()")
    assert may(pg, team, user, "g()")
    for signature in ("f(int)", "later()", "at_last()", "of_the_admin()"):
        assert not may(pg, team, user, signature)
    post.sync(**account(user))
    assert not may(pg, team, user, "g()")
    assert pg.sql("SELECT count(*) FROM pg_default_acl d, aclexplode(d.defaclacl) x JOIN pg_roles r "
                  f"ON r.oid = x.grantee WHERE r.rolname = '{user}'", team) == [["0"]]


DANGEROUS = {
    "of_root()": "SECURITY DEFINER LANGUAGE sql AS 'SELECT 1'",
    "in_c(cstring)": "LANGUAGE internal AS 'int4in'",
}


@pytest.mark.every_version(WHY)
def test_dangerous_routines_are_never_granted(post, pg, user, team):
    """A tenant asks for functions that would make it an admin: by name, by "*", and ahead of time."""
    make(pg, team, None, "before()", how=DANGEROUS["of_root()"])
    post.sync(**account(user, grants=[routine(team, "*")]))
    for signature, how in DANGEROUS.items():
        make(pg, team, None, signature, how=how)
    assert post.sync(**account(user, grants=[routine(team, "*")]))["statements"] == 2
    for signature in ("before()", *DANGEROUS):
        assert not may(pg, team, user, signature)
    for name in ("before", "of_root", "in_c"):
        found = post.fails("sync", "DENIED", **account(user, grants=[routine(team, name)]))
        assert "privileged owner" in found["error"], found
    post.fails("sync", "NO_OBJECT", **account(user, grants=[routine(team, "nothing")]))


@pytest.mark.every_version(WHY)
def test_routines_of_privileged_owner_are_revoked(post, pg, user, team):
    """Its functions get the right by default privileges until the next check takes both back."""
    grants = [routine(team, "*")]
    post.sync(**account(user, grants=grants))
    pg.sql(f"GRANT pg_read_server_files TO maker{user}")
    make(pg, team, f"maker{user}", "through()", how=DANGEROUS["of_root()"])
    post.sync(**account(user, grants=grants))
    assert not may(pg, team, user, "through()") and may(pg, team, user, "g()")
    make(pg, team, f"maker{user}", "next()", how=DANGEROUS["of_root()"])
    assert not may(pg, team, user, "next()")
    assert post.sync(**account(user, grants=grants))["statements"] == 2


@pytest.mark.every_version(WHY)
def test_named_routine_of_privileged_owner_is_revoked(post, pg, user, team):
    """A function that was given by name, and may no longer be given: refused, and taken back."""
    grants = [routine(team, "g")]
    post.sync(**account(user, grants=grants))
    assert may(pg, team, user, "g()")
    pg.sql(f"GRANT pg_read_server_files TO maker{user}; "
           f"ALTER FUNCTION {quoted(SCHEMA)}.g() SECURITY DEFINER", team)
    for _ in range(2):
        found = post.fails("sync", "DENIED", **account(user, grants=grants))
        assert "privileged owner" in found["error"], found
        assert not may(pg, team, user, "g()")


@pytest.mark.every_version(WHY)
def test_routines_of_an_extension_are_not_granted(post, pg, user, team):
    """An extension that is installed after the grant: its functions are not given."""
    post.sync(**account(user, grants=[routine(team, "*")]))
    pg.sql(f"CREATE FUNCTION {quoted(SCHEMA)}.member() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
           f"ALTER EXTENSION plpgsql ADD FUNCTION {quoted(SCHEMA)}.member()", team)
    try:
        post.sync(**account(user, grants=[routine(team, "*")]))
        assert not may(pg, team, user, "member()")
        post.fails("sync", "DENIED", **account(user, grants=[routine(team, "member")]))
    finally:
        pg.sql(f"ALTER EXTENSION plpgsql DROP FUNCTION {quoted(SCHEMA)}.member()", team)
