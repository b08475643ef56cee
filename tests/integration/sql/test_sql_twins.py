# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: accounts that cannot log in, and logins that act as an owner role."""

import pytest

from support import dblogin, wait
from support.sqlprobe import account

ONE, TWO, THREE = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
YES, KEEP, NO = 0, 1, 2


@pytest.fixture
def probe(make_probe, server):
    """A probe with one server of each engine."""
    return make_probe(server.target("db"))


@pytest.mark.every_version("how an account is created locked, locked and unlocked")
def test_login_is_locked_and_unlocked(probe, server, user):
    """A locked account keeps its password, has another one at the moment it is unlocked, and a
    settled one costs one statement."""
    report = probe.sync(**account(user, ONE, login=NO))
    assert report["created"] and not server.logs_in(user, ONE)
    assert probe.sync(**account(user, TWO, login=NO))["statements"] == 1
    assert probe.sync(**account(user, TWO, login=KEEP))["can_login"] is False
    assert not server.logs_in(user, TWO)
    report = probe.sync(**account(user, TWO))
    assert report["password_changed"] and report["options_changed"] and server.logs_in(user, TWO)
    report = probe.sync(**account(user, THREE, login=KEEP))
    assert report["can_login"] and report["statements"] == 1 and server.logs_in(user, TWO)
    report = probe.sync(**account(user, THREE, login=NO))
    assert report["can_login"] and report["options_changed"] and not server.logs_in(user, TWO)
    report = probe.sync(**account(user, TWO))  # the password that it still has
    assert not report["password_changed"] and server.logs_in(user, TWO)


def test_missing_login_is_not_created_to_lock_it(probe, server, user):
    """Nothing is created, and another owner's account is neither changed nor an error."""
    report = probe.sync(**account(user, ONE, login=NO, if_exists=True))
    assert report["statements"] == 1 and not report["found"] and not report["owned"]
    probe.sync(**account(user, ONE, owner="shop/other", uid="uid-2"))
    for login in (YES, KEEP, NO):
        report = probe.sync(**account(user, TWO, login=login, if_exists=True))
        assert report["statements"] == 1 and not report["owned"]
    assert server.logs_in(user, ONE)
    probe.fails("sync", "NOT_OURS", **account(user, TWO, login=NO))
    assert server.logs_in(user, ONE)


@pytest.mark.every_version("the list of sessions, and who may see it")
def test_login_is_locked_after_its_last_session(probe, server, user):
    """Open sessions are counted, exactly those of this account, and none is ended."""
    probe.sync(**account(user, ONE))
    probe.sync(**account(f"{user}x", ONE))
    with dblogin.Session(server, user, ONE) as first, dblogin.Session(server, user, ONE), \
            dblogin.Session(server, f"{user}x", ONE):
        report = probe.sync(**account(user, ONE, login=NO, wait_sessions=True))
        assert report["sessions"] == 2 and not report["sessions_hidden"]
        assert not report["options_changed"] and server.logs_in(user, ONE) and first.works()
    wait.until("no session", lambda: probe.sync(
        **account(user, ONE, login=NO, wait_sessions=True))["sessions"] == 0)
    assert not server.logs_in(user, ONE)


def test_hidden_sessions_are_reported(make_probe, hosted, user):
    """An admin without PROCESS does not see them, and the report says so."""
    admin = f"{user}_admin"
    hosted.sql(f"CREATE USER {admin}@'%' IDENTIFIED BY 'adm1n-Pa55-word'")
    hosted.sql(f"GRANT CREATE USER, RELOAD ON *.* TO {admin}@'%'; GRANT SELECT ON mysql.* TO {admin}@'%'")
    hosted.sql(f"GRANT ALL ON steward.* TO {admin}@'%'")
    target = hosted.target("db")
    probe = make_probe({**target, "admin": {**target["admin"], "user": admin}})
    probe.sync(**account(user, ONE))
    with dblogin.Session(hosted, user, ONE):
        report = probe.sync(**account(user, ONE, login=NO, wait_sessions=True))
    assert report["sessions"] == 0 and report["sessions_hidden"] and report["options_changed"]


@pytest.mark.every_version("roles that are members; the options of a membership since 16")
@pytest.mark.parametrize("superuser", [True, False])
def test_logins_share_objects_of_the_owner_role(make_probe, pg, user, superuser):
    """What one login creates belongs to the role, and the other one may change and drop it."""
    target = pg.target("db")
    if not superuser:
        pg.sql(f"CREATE ROLE {user}_admin LOGIN CREATEROLE PASSWORD 'adm1n-Pa55-word'")
        target["admin"] = {**target["admin"], "user": f"{user}_admin"}
    probe = make_probe(target)
    logins = [f"{user}_a", f"{user}_b"]
    owner = account(user, ONE, login=KEEP)
    twins = [account(login, p, acts_as=user, owner=f"shop/{user}")
             for login, p in zip(logins, (ONE, TWO))]
    admin = target["admin"]["user"]
    pg.sql(f'CREATE SCHEMA {user} AUTHORIZATION "{admin}"')
    probe.sync(**owner)
    pg.sql(f'SET ROLE "{admin}"; GRANT ALL ON SCHEMA {user} TO {user}')
    for one in twins:
        assert probe.sync(**one)["created"]
        assert not probe.sync(**one)["options_changed"]

    def run(login, password, statement):
        return pg.run_client(statement, check=False, user=login, password=password,
                             tcp=True).returncode == 0
    assert not pg.logs_in(user, ONE)
    assert run(logins[0], ONE, f"CREATE TABLE {user}.made (n INT)")
    assert run(logins[1], TWO, f"ALTER TABLE {user}.made ADD m INT; INSERT INTO {user}.made VALUES (1)")
    assert pg.sql(f"SELECT tableowner FROM pg_tables WHERE schemaname = '{user}'") == [[user]]
    pg.sql(f"ALTER ROLE {logins[1]} RESET role")
    pg.sql(f'SET ROLE "{admin}"; REVOKE {user} FROM {logins[1]}')
    report = probe.sync(**twins[1])
    assert report["options_changed"] and report["given"] == 1
    assert run(logins[1], TWO, f"DROP TABLE {user}.made")
    for one in [*twins, owner]:
        report = probe.ask("drop", **one)
        assert report["result"] == 0, report
    assert not any(pg.exists(name) for name in [user, *logins])


@pytest.mark.every_version("pg_db_role_setting")
def test_logins_copy_settings_of_their_role(make_probe, pg, user):
    """Also for one database; a change, and one that the login has made itself, is drift."""
    probe = make_probe(pg.target("db"))
    probe.sync(**account(user, ONE, login=KEEP))
    odd = 'a"b,c \\ d'
    path = f'"$user", "{odd.replace(chr(34), chr(34) * 2)}", public'
    pg.sql(f"CREATE DATABASE {user}_d; ALTER ROLE {user} SET search_path = {path}; ALTER ROLE {user} SET "
           f"statement_timeout = '5s'; ALTER ROLE {user} SET \"my.own\" = $$it's \\ \"one\"$$; "
           f"ALTER ROLE {user} IN DATABASE {user}_d SET lock_timeout = '3s'")
    twin = account(f"{user}_a", ONE, acts_as=user, owner=f"shop/{user}")

    def settings(role):
        rows = pg.sql("SELECT setdatabase, unnest(setconfig) FROM pg_db_role_setting WHERE setrole = "
                      f"'{role}'::regrole")
        return sorted(row for row in rows if not row[1].startswith("role="))
    assert probe.sync(**twin)["created"] and settings(f"{user}_a") == settings(user)
    shown = pg.run_client("SHOW search_path; SHOW statement_timeout; SHOW lock_timeout", user=f"{user}_a",
                          password=ONE, database=f"{user}_d", tcp=True).stdout
    assert shown.splitlines() == [path, "5s", "3s"]
    assert not probe.sync(**twin)["options_changed"]
    pg.sql(f"ALTER ROLE {user} RESET statement_timeout; ALTER ROLE {user} SET search_path = app; "
           f"ALTER ROLE {user}_a SET work_mem = '8MB'; "
           f"ALTER ROLE {user}_a IN DATABASE {user}_d SET role = none")
    assert probe.sync(**twin)["options_changed"] and settings(f"{user}_a") == settings(user)
    assert len(settings(user)) == 3
    for one in (twin, account(user, ONE, login=KEEP)):
        probe.drop(**one)


@pytest.mark.every_version("what CREATEROLE may do")
def test_uncopyable_setting_is_reported(make_probe, pg, user):
    """All else is done."""
    pg.sql(f"CREATE ROLE {user}_admin LOGIN CREATEROLE PASSWORD 'adm1n-Pa55-word'")
    target = pg.target("db")
    probe = make_probe({**target, "admin": {**target["admin"], "user": f"{user}_admin"}})
    probe.sync(**account(user, ONE, login=KEEP))
    pg.sql(f"ALTER ROLE {user} SET log_min_messages = error; ALTER ROLE {user} SET work_mem = '8MB'")
    twin = account(f"{user}_a", ONE, acts_as=user, owner=f"shop/{user}")
    for _ in range(2):
        report = probe.fails("sync", "DENIED", **twin)
        assert f"ALTER ROLE \"{user}_a\" SET" in report["error"] and report["login_done"], report
    shown = pg.run_client("SHOW work_mem", user=f"{user}_a", password=ONE, tcp=True).stdout
    assert shown.strip() == "8MB"
    pg.sql(f"ALTER ROLE {user}_a SET log_min_messages = error")
    probe.sync(**twin)
    for one in (twin, account(user, ONE, login=KEEP)):
        probe.drop(**one)


@pytest.mark.parametrize("die_after", range(1, 5))
def test_kill_during_login_creation_is_completed(make_probe, server, user, die_after):
    """The next run ends the work."""
    dying = make_probe(server.target("db"), die_after=die_after)
    twin = account(user, ONE)
    if server.engine == "postgresql":
        make_probe(server.target("db")).sync(**account(f"{user}_o", ONE, login=KEEP))
        twin["acts_as"] = f"{user}_o"
    dying.ask("sync", **{**twin, "login": NO})
    probe = make_probe(server.target("db"))
    probe.sync(**{**twin, "login": NO})
    assert not server.logs_in(user, ONE)
    probe.sync(**twin)
    assert server.logs_in(user, ONE)


@pytest.mark.parametrize("locked", [False, True])
def test_login_created_by_another_client_is_not_touched(make_probe, hosted, user, locked):
    """steward died before it created a locked login, and an administrator creates the account: it is
    neither changed nor dropped."""
    probe = make_probe(hosted.target("db"))
    probe.sync(**account(f"{user}x", ONE))
    dying = make_probe(hosted.target("db"), die_after=1)
    assert dying.ask("sync", **account(user, ONE, login=NO)) is None
    assert not hosted.accounts(user) and hosted.marks(user)
    hosted.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{THREE}' "
               f"{'ACCOUNT LOCK' if locked else ''}; GRANT DELETE ON byhand.* TO '{user}'@'%'")
    before = hosted.sql(f"SHOW CREATE USER '{user}'@'%'")
    for login in (NO, KEEP, YES):
        probe.fails("sync", "EXISTS", **account(user, TWO, login=login))
    assert probe.ask("drop", **account(user, TWO))["result"] == 0
    assert hosted.sql(f"SHOW CREATE USER '{user}'@'%'") == before and not hosted.marks(user)


def test_interrupted_creation_under_password_policy(make_probe, mysql, user):
    """The server chooses the salt, so that nothing identifies the account: a locked one without rights
    is the one that steward has just created, and any other is another client's."""
    mysql.sql("INSTALL COMPONENT 'file://component_validate_password'")
    try:
        probe = make_probe(mysql.target("db"))
        probe.sync(**account(f"{user}x", ONE))
        for name, die_after in ((user, 2), (f"{user}y", 1)):
            dying = make_probe(mysql.target("db"), die_after=die_after)
            assert dying.ask("sync", **account(name, ONE, login=NO)) is None
        mysql.sql(f"CREATE USER '{user}y'@'%' IDENTIFIED BY '{THREE}'")
        probe.fails("sync", "EXISTS", **account(f"{user}y", TWO, login=NO))
        assert mysql.logs_in(f"{user}y", THREE)
        assert probe.sync(**account(user, TWO, login=NO))["owned"]
        probe.sync(**account(user, TWO))
        assert mysql.logs_in(user, TWO)
    finally:
        mysql.sql("UNINSTALL COMPONENT 'file://component_validate_password'")
