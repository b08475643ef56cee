# SPDX-License-Identifier: Apache-2.0
"""Memberships of roles that the target allows, and those that no account gets."""

import pytest

from support import dbserver, wait
from support.sqlprobe import account

PASSWORD = "s3cret-Pa55"
HARD = "te'am \"%` \\"  # in every kind of quotation mark


def name_of(server, text):
    """The text as an identifier."""
    mark = '"' if server.engine == "postgresql" else "`"
    return mark + text.replace(mark, 2 * mark) + mark


def make_role(server, role, database):
    """A role that may read the table of the database."""
    quoted = name_of(server, role)
    if server.engine == "postgresql":
        server.sql(f"CREATE ROLE {quoted} NOLOGIN; GRANT CONNECT ON DATABASE {database} TO {quoted}")
        server.sql(f"GRANT SELECT ON t TO {quoted}", database)
    else:
        # On MariaDB only who administers a role may grant it.
        admin = f"; GRANT {quoted} TO '{dbserver.ADMIN}'@'%' WITH ADMIN OPTION"
        server.sql(f"CREATE ROLE {quoted}; GRANT SELECT ON {database}.* TO {quoted}"
                   f"{admin if server.engine == 'mariadb' else ''}")


@pytest.fixture
def readable(server, user):
    """A database with a table, which only roles may read."""
    name = f"roles{user}"
    server.sql(f"CREATE DATABASE {name}")
    if server.engine == "postgresql":
        server.sql("CREATE TABLE t (n int)", name)
    else:
        server.sql(f"CREATE TABLE {name}.t (n int)")
    return name


def reads(server, database, user):
    """Whether a new login of the account may read the table."""
    if server.engine == "postgresql":
        return server.run_client("SELECT * FROM t", check=False, user=user, password=PASSWORD,
                                 database=database, tcp=True).returncode == 0
    return server.run_client("-e", f"SELECT * FROM {database}.t", check=False, user=user,
                             password=PASSWORD, tcp=True).returncode == 0


def refused(probe, user, *roles, trouble="DENIED", **more):
    """Everything but the roles is done; the message."""
    report = probe.fails("sync", trouble, **account(user, roles=list(roles), **more))
    assert report["step"] == "GRANT" and report["owned"]
    return report["error"]


@pytest.mark.every_version("tables of roles in the catalogue")
def test_role_is_granted_and_revoked(make_probe, server, readable, user):
    """A login has the rights of the role at once; without the role, no longer."""
    roles = [f"{user}_{HARD}", f"{user}_two"]
    for role in roles:
        make_role(server, role, readable)
    make_role(server, f"{user}_foreign", readable)
    probe = make_probe(server.target("db", allowedRoles=[f"{user}_*"]))
    report = probe.sync(**account(user, roles=roles))
    assert f"MEMBER ON role {user}_two" in report["granted"]
    assert reads(server, readable, user)
    assert probe.sync(**account(user, roles=roles))["statements"] == 2
    probe.sync(**account(user, roles=roles[1:]))
    assert reads(server, readable, user)

    # Drift; and a membership that another client gave is left.
    member, host = name_of(server, user), "" if server.engine == "postgresql" else "@'%'"
    server.sql(f"REVOKE {name_of(server, roles[1])} FROM {member}{host}; "
               f"GRANT {name_of(server, user + '_foreign')} TO {member}{host}")
    report = probe.sync(**account(user, roles=roles[1:]))
    assert report["given"] == 1 and f"role {user}_foreign" in report["foreign"]
    report = probe.sync(**account(user))
    assert report["revoked"] == 1 and f"role {user}_foreign" in report["foreign"]
    assert probe.sync(**account(user))["statements"] == 1
    assert probe.sync(**account(user, policy="Exact"))["foreign"] == ""
    assert not reads(server, readable, user)
    probe.drop(**account(user))


@pytest.mark.every_version("tables of roles in the catalogue")
def test_roles_outside_the_list_are_refused(make_probe, server, readable, user):
    """An attacker names a role beyond the list, one that can log in, another tenant's account."""
    probe = make_probe(server.target("db", allowedRoles=[f"{user}_*"]))
    make_role(server, f"other{user}", readable)
    assert "allowedRoles" in refused(probe, user, f"other{user}")
    assert "does not exist" in refused(probe, user, f"{user}_none", trouble="NO_OBJECT")
    assert server.logs_in(user, PASSWORD)
    victim = account(f"{user}_victim", owner="other/victim", uid="uid-9")
    probe.sync(**victim)
    wrong = "NO_OBJECT" if server.engine == "mariadb" else "DENIED"  # a user is not a role there
    refused(probe, user, f"{user}_victim", trouble=wrong)
    assert probe.ask("lock", **victim)["result"] == 0
    refused(probe, user, f"{user}_victim", trouble=wrong)
    make_role(server, f"{user}_good", readable)
    refused(probe, user, f"{user}_good", f"{user}_victim", trouble=wrong)
    assert reads(server, readable, user)  # what may be given is


PG_ADMINS = {"superuser": "ALTER ROLE {r} SUPERUSER", "createrole": "ALTER ROLE {r} CREATEROLE",
             "createdb": "ALTER ROLE {r} CREATEDB", "bypassrls": "ALTER ROLE {r} BYPASSRLS",
             "replication": "ALTER ROLE {r} REPLICATION", "login": "ALTER ROLE {r} LOGIN",
             "programs": "GRANT pg_execute_server_program TO {r}",
             "indirect": "CREATE ROLE {r}_a; CREATE ROLE {r}_b SUPERUSER; GRANT {r}_b TO {r}_a; "
                         "GRANT {r}_a TO {r}",
             "admin": 'GRANT "steward-admin" TO {r}'}
MY_ADMINS = {"super": "GRANT CREATE USER ON *.* TO {r}", "all": "GRANT SELECT ON *.* TO {r}",
             "server": "GRANT SELECT ON mysql.* TO {r}", "marks": "GRANT UPDATE ON steward.* TO {r}",
             "pattern": "GRANT UPDATE ON `stewar_`.* TO {r}",
             "table": "GRANT SELECT ON mysql.user TO {r}",
             "indirect": "CREATE ROLE {r}_b; GRANT CREATE USER ON *.* TO {r}_b; GRANT {r}_b TO {r}"}


@pytest.mark.every_version("tables of roles in the catalogue")
def test_role_that_becomes_admin_is_revoked(make_probe, server, readable, user):
    """A role with rights of an administrator is refused, and revoked from an account that has it."""
    probe = make_probe(server.target("db", allowedRoles=[f"{user}_*"]))
    for what, sql in (PG_ADMINS if server.engine == "postgresql" else MY_ADMINS).items():
        role = f"{user}_{what}"
        make_role(server, role, readable)
        probe.sync(**account(user, roles=[role]))
        assert reads(server, readable, user), what
        server.sql(sql.format(r=role))
        assert role in refused(probe, user, role), what
        wait.until("the revocation", lambda: not reads(server, readable, user))
        probe.sync(**account(user))


@pytest.mark.every_version("roles of the server")
def test_predefined_roles_are_granted_by_name_only(make_probe, pg, user):
    """A pattern does not have them, a list does not have others, and nothing may have been added to one."""
    pattern = make_probe(pg.target("db", allowedRoles=["*"]))
    refused(pattern, user, "pg_monitor")
    named = make_probe(pg.target("db", allowedRoles=["pg_monitor", "pg_execute_server_program", f"{user}_*"]))
    refused(named, user, "pg_execute_server_program")
    pg.sql(f"CREATE ROLE {user}_team; GRANT pg_monitor TO {user}_team")
    refused(named, user, f"{user}_team")
    named.sync(**account(user, roles=["pg_monitor"]))
    assert pg.sql(f"SELECT pg_has_role('{user}', 'pg_read_all_stats', 'USAGE')") == [["t"]]
    assert named.sync(**account(user, roles=["pg_monitor"]))["statements"] == 2
    named.sync(**account(user))
    assert pg.sql(f"SELECT pg_has_role('{user}', 'pg_monitor', 'MEMBER')") == [["f"]]
    pg.sql("GRANT pg_read_server_files TO pg_monitor")
    try:
        refused(named, user, "pg_monitor")
    finally:
        pg.sql("REVOKE pg_read_server_files FROM pg_monitor")
    named.drop(**account(user))


@pytest.mark.every_version("tables of roles in the catalogue")
def test_kill_between_statements_is_completed(make_probe, server, readable, user):
    """What was granted is known to be steward's, and is revoked later."""
    make_role(server, f"{user}_role", readable)
    target = server.target("db", allowedRoles=[f"{user}_*"])
    for after in range(1, 7):
        make_probe(target, die_after=after).ask("sync", **account(user, roles=[f"{user}_role"]))
        probe = make_probe(target)
        probe.sync(**account(user, roles=[f"{user}_role"]))
        assert reads(server, readable, user)
        probe.sync(**account(user))
        assert not reads(server, readable, user)
        probe.drop(**account(user))
