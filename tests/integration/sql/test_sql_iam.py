# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: accounts that log in with tokens of IAM.  No server here knows IAM: PostgreSQL
has a role of the same name, and the others are asked for a plugin that they lack."""

import os

import pytest
from support import dbserver
from support.sqlprobe import account


def iam(user, server, **more):
    """An account without a password."""
    roles = ["rds_iam"] if server.engine == "postgresql" else []
    return account(user, None, iam=True, roles=roles, **more)


@pytest.fixture
def rds_iam(pg):
    """The role that Amazon RDS has."""
    pg.sql("CREATE ROLE rds_iam")
    yield pg
    pg.sql("DROP OWNED BY rds_iam; DROP ROLE rds_iam")


def assert_settled(report):
    """Only the account and its roles were looked at."""
    assert report["statements"] == 2 and not report["plugin_changed"] and not report["given"], report


def stored(server, user):
    """(has a password, its roles)."""
    return tuple(server.sql(
        "SELECT rolpassword IS NOT NULL, (SELECT string_agg(roleid::regrole::text, ',') FROM pg_auth_members "
        f"WHERE member = r.oid) FROM pg_authid r WHERE rolname = '{user}'")[0])


@pytest.mark.every_version("memberships, and who may read pg_authid")
def test_iam_role_has_no_password(make_probe, rds_iam, user):
    """A member of rds_iam; a password that an administrator sets is removed, a membership that he takes is
    given back, and Exact leaves it."""
    probe = make_probe(rds_iam.target("db"))
    wanted = iam(user, rds_iam, policy="Exact")
    assert probe.sync(**wanted)["created"]
    assert stored(rds_iam, user) == ("f", "rds_iam")
    assert_settled(probe.sync(**wanted))
    rds_iam.sql(f"ALTER ROLE {user} PASSWORD 'by-hand'; REVOKE rds_iam FROM {user}")
    report = probe.sync(**wanted)
    assert report["plugin_changed"] and not report["password_changed"]
    assert stored(rds_iam, user) == ("f", "rds_iam")
    probe.drop(**wanted)
    assert not rds_iam.exists(user)


@pytest.mark.every_version("memberships, and who may read pg_authid")
def test_iam_role_is_not_checked_by_login(make_probe, rds_iam, user, tmp_path):
    """As on RDS: an adopted role loses its password, and later comparisons change nothing."""
    low = f"low{user}"
    rds_iam.sql(f"CREATE ROLE {low} LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'; "
                f"GRANT rds_iam TO {low} WITH ADMIN OPTION; GRANT pg_signal_backend TO {low}; "
                f"SET ROLE {low}; CREATE ROLE {user} LOGIN PASSWORD 'by-hand'; GRANT rds_iam TO {user}; "
                "RESET ROLE")
    admin = {"user": low, "passwordFile": str(rds_iam.admin_file)}
    probe = make_probe(rds_iam.target("db", admin=admin))
    wanted = iam(user, rds_iam, adopt=True)
    assert probe.sync(**wanted)["adopted"]
    assert stored(rds_iam, user) == ("f", "rds_iam")
    assert_settled(probe.sync(**wanted))
    assert "authentication failed" not in rds_iam.log_text().split(user)[-1]
    probe.drop(**wanted)
    rds_iam.sql(f"DROP OWNED BY {low} CASCADE; DROP ROLE {low}")


def test_iam_role_needs_allow_iam(make_probe, rds_iam, user):
    """The role is the server's own: only allowIAM of the target, for such an account, gives it."""
    probe = make_probe(rds_iam.target("db", allowIAM=False), rds_iam.target("all", allowedRoles=["*"]))
    report = probe.ask("sync", **iam(user, rds_iam))
    assert report["trouble"] == "DENIED" and "rds_iam" in report["error"], report
    report = probe.ask("sync", target="all", **account(f"{user}x", roles=["rds_iam"]))
    assert report["trouble"] == "DENIED" and "rds_iam" in report["error"], report
    assert stored(rds_iam, f"{user}x")[1] == ""
    for name in (user, f"{user}x"):
        probe.drop(**account(name))


def test_server_without_iam_role_is_reported(make_probe, pg, user):
    """The role is not there: the account is, and has no login that works."""
    probe = make_probe(pg.target("db"))
    report = probe.ask("sync", **iam(user, pg))
    assert report["trouble"] == "NO_OBJECT", report
    assert 'the role "rds_iam" is not given: it does not exist' in report["error"]
    assert stored(pg, user) == ("f", "")
    probe.drop(**account(user))


@pytest.mark.every_version("the grammar of CREATE USER")
def test_missing_iam_plugin_leaves_no_account(make_probe, hosted, user):
    """The server takes the statement, and lacks the plugin; no account is left."""
    probe = make_probe(hosted.target("db"))
    report = probe.ask("sync", **iam(user, hosted))
    assert report["trouble"] == "NO_PLUGIN", report
    assert hosted.accounts(user) == []
    assert f"CREATE USER `{user}`@`%` IDENTIFIED WITH AWSAuthenticationPlugin AS 'RDS'" in hosted.log_text()
    probe.drop(**account(user))


@pytest.mark.every_version("the protocol of the login")
def test_admin_token_is_read_at_each_login(make_probe, server, tmp_path, user):
    """Another process renews the file.  An open connection outlives its token, the next login takes the new
    one, and one that was refused is tried again as soon as the file is another, without a wait."""
    name, token = f"token{user}", tmp_path / "token"
    is_pg = server.engine == "postgresql"

    def expire(new):
        server.sql(f"ALTER ROLE {name} PASSWORD '{new}'" if is_pg else
                   f"ALTER USER {name}@'%' IDENTIFIED BY '{new}'")

    def renew(text):
        """In one step, as a renewing process does."""
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", token)
    server.sql(f"CREATE ROLE {name} SUPERUSER LOGIN PASSWORD 'token-1'" if is_pg else
               f"CREATE USER {name}@'%' IDENTIFIED BY 'token-1'; GRANT ALL ON *.* TO {name}@'%' WITH GRANT "
               "OPTION")
    renew("token-1")
    target = server.target("db", maxConnections=2, admin={"user": name, "passwordFile": str(token)})
    probe = make_probe(target)
    probe.sync(**account(user))
    expire("token-2")
    probe.sync(**account(user))  # the connection is open
    renew("token-2")
    probe = make_probe(target)
    probe.sync(**account(user))
    expire("token-3")
    probe = make_probe(target)
    assert probe.ask("sync", **account(user))["trouble"] == "AUTH"
    assert probe.ask("sync", **account(user))["trouble"] == "CIRCUIT_OPEN"
    renew("token-3")
    probe.sync(**account(user))
    probe.drop(**account(user))
    server.sql(f"DROP OWNED BY {name}; DROP ROLE {name}" if is_pg else f"DROP USER {name}@'%'")
