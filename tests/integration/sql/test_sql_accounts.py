# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real servers: accounts are created, changed and dropped."""

import re

import pytest

from support import dblogin, dbserver, wait
from support.sqlprobe import account, grant


@pytest.fixture
def probe(make_probe, server):
    """A probe with this server as its target."""
    return make_probe(server.target("db"))


GRANTS_OF = {"postgresql": "SELECT datname FROM pg_database WHERE datacl::text LIKE '%{}%'",
             "mariadb": "SHOW GRANTS FOR '{}'@'%'", "mysql": "SHOW GRANTS FOR '{}'@'%'"}


def there(server, user):
    """Whether the account exists."""
    return bool(server.accounts(user)) if server.engine != "postgresql" else server.exists(user)


def by_hand(server, user, password):
    """Creates an account with a right, as an administrator would."""
    if server.engine != "postgresql":
        server.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'; "
                   f"GRANT DELETE ON byhand.* TO '{user}'@'%'")
    else:
        server.sql(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'; "
                   f"COMMENT ON ROLE {user} IS 'made by hand'; "
                   f"GRANT TEMPORARY ON DATABASE postgres TO {user}")


def can_work(server, user):
    """Whether a login may run a statement: MySQL may let it in only to change its password."""
    return server.run_client("-e", "SELECT 1", check=False, user=user, password="s3cret-Pa55",
                             tcp=True).returncode == 0


def age(server, user, days):
    """Makes the password this old."""
    seconds = int(days * 86400)
    server.sql("UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.password_last_changed', "
               f"UNIX_TIMESTAMP() - {seconds}) WHERE User = '{user}'" if server.engine == "mariadb" else
               f"UPDATE mysql.user SET password_last_changed = NOW() - INTERVAL {seconds} SECOND WHERE User "
               f"= '{user}'")
    server.sql("FLUSH PRIVILEGES")


def required(server, user, host="%"):
    """REQUIRE of the account, as the server shows it."""
    rows = server.sql(f"SHOW CREATE USER '{user}'@'{host}'")  # a verifier may hold line breaks
    text = "\n".join("\t".join(row) for row in rows)
    found = re.search(r" REQUIRE (.*?)( WITH| PASSWORD| ACCOUNT|$)", text)
    return found[1] if found else "NONE"  # MariaDB shows no NONE


def drop_by_hand(server, user):
    """Drops an account, as an administrator would."""
    if server.engine != "postgresql":
        server.sql(f"DROP USER '{user}'@'%'")
    else:
        server.sql(f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.mark.every_version("columns of the catalogue")
def test_account_is_created_settled_and_dropped(probe, server, user):
    """Created, then settled with one lookup, then dropped with its mark."""
    report = probe.sync(**account(user))
    assert report["created"] and report["owned"] and not report["found"]
    assert server.logs_in(user, "s3cret-Pa55") and not server.logs_in(user, "wrong")
    report = probe.sync(**account(user))
    assert report["statements"] == 1 and report["found"] and not report["created"]
    report = probe.drop(**account(user))
    assert report["found"] and not there(server, user)
    assert probe.drop(**account(user))["statements"] == 1


@pytest.mark.every_version("statements of passwords and verifiers")
def test_password_is_rotated_and_repaired(probe, server, user):
    """D1, D2: a new password reaches the server, and a manual change is reverted."""
    probe.sync(**account(user))
    report = probe.sync(**account(user, "an0ther-Pa55"))
    assert report["password_changed"] and report["statements"] == 2
    assert server.logs_in(user, "an0ther-Pa55") and not server.logs_in(user, "s3cret-Pa55")
    change = "ALTER USER '{}'@'%' IDENTIFIED BY 'by-hand'" if server.engine != "postgresql" else \
        "ALTER ROLE {} PASSWORD 'by-hand'"
    server.sql(change.format(user))
    assert probe.sync(**account(user, "an0ther-Pa55"))["password_changed"]
    assert server.logs_in(user, "an0ther-Pa55")
    assert not probe.sync(**account(user, "an0ther-Pa55"))["password_changed"]
    # Password unknown: it is left as it is, and the rest is still checked (D10).
    assert probe.sync(**account(user, None))["statements"] == 1
    assert server.logs_in(user, "an0ther-Pa55")


@pytest.mark.parametrize("password", ["é-ünï-密码-😀", "a'b\"c\\d`e", " blanks ", "x" * 200, "%s%n"])
def test_special_passwords_work(probe, server, user, password):
    """The Secret's value works as the password, and is recognized as unchanged."""
    probe.sync(**account(user, password))
    assert server.logs_in(user, password)
    assert probe.sync(**account(user, password))["statements"] == 1


def test_empty_password_creates_no_account(probe, server, user):
    """D10: no account is created without a password or with an empty one."""
    assert "password" in probe.fails("sync", "FAILED", **account(user, None))["error"]
    assert "empty" in probe.fails("sync", "POLICY", **account(user, b""))["error"]
    assert "NUL" in probe.fails("sync", "POLICY", **account(user, b"a\0b"))["error"]
    assert not there(server, user)
    probe.sync(**account(user))
    probe.fails("sync", "POLICY", **account(user, b""))
    assert server.logs_in(user, "s3cret-Pa55")


@pytest.mark.every_version("columns of the catalogue")
def test_existing_account_is_changed_only_by_adoption(probe, server, user):
    """An account that existed before is neither changed nor dropped, unless it is adopted."""
    by_hand(server, user, "by-hand-1")
    probe.fails("sync", "EXISTS", **account(user))
    probe.fails("drop", "NOT_OURS", **account(user))
    assert server.logs_in(user, "by-hand-1")
    report = probe.sync(**account(user, adopt=True))
    assert report["adopted"] and report["password_changed"] and not report["created"]
    assert server.logs_in(user, "s3cret-Pa55")
    assert "DELETE" in report["foreign"] or "TEMPORARY" in report["foreign"]
    probe.drop(**account(user))
    assert not there(server, user)


def test_release_leaves_the_account(probe, server, user):
    """Retain: the mark is removed, the account stays; PostgreSQL's comment is restored."""
    by_hand(server, user, "by-hand-1")
    probe.sync(**account(user, adopt=True))
    assert probe.ask("release", **account(user))["result"] == 0
    assert server.logs_in(user, "s3cret-Pa55")
    if server.engine != "postgresql":
        assert server.marks(user) == {}
    else:
        assert server.comment(user) == "made by hand"
    probe.fails("drop", "NOT_OURS", **account(user))


def test_administrators_are_not_adopted(probe, server):
    """D9: even with adopt, the server's own administrators are not changed."""
    if server.engine == "postgresql":
        probe.fails("sync", "EXISTS", **account("root", adopt=True))
        for reserved in ("public", "none", "pg_x"):
            probe.fails("sync", "UNSUPPORTED", **account(reserved))
    else:
        probe.fails("sync", "EXISTS", **account("root", hosts=["localhost"], adopt=True))


def test_mark_decides_between_two_objects(probe, server, user):
    """D13: the mark decides; an object that it does not name changes and drops nothing."""
    probe.sync(**account(user))
    other = account(user, "other-Pa55", uid="uid-2", owner="shop/other")
    report = probe.fails("sync", "NOT_OURS", **other, adopt=True)
    assert f"shop/{user}" in report["error"]
    probe.fails("drop", "NOT_OURS", **other)
    assert server.logs_in(user, "s3cret-Pa55")
    # The same object in a restored cluster has another UID, and must adopt the account.
    again = account(user, uid="uid-3")
    probe.fails("sync", "NOT_OURS", **again)
    assert probe.sync(**again, adopt=True)["adopted"]
    probe.fails("drop", "NOT_OURS", **account(user))
    probe.drop(**again)
    assert not there(server, user)


def test_manually_dropped_account_is_recreated(probe, server, user):
    """It is recreated, with its rights."""
    probe.sync(**account(user))
    drop_by_hand(server, user)
    report = probe.sync(**account(user))
    assert report["created"] and not report["found"]
    assert server.logs_in(user, "s3cret-Pa55")
    drop_by_hand(server, user)
    probe.drop(**account(user))
    if server.engine != "postgresql":
        assert server.marks(user) == {}


@pytest.mark.every_version("columns of the catalogue")
def test_limits_are_set_and_removed(probe, server, user):
    """Changed only when they differ; then removed."""
    probe.sync(**account(user, limits=[3, 0, 0, 0]))
    assert probe.sync(**account(user, limits=[3, 0, 0, 0]))["statements"] == 1
    report = probe.sync(**account(user))
    assert report["options_changed"] and not report["password_changed"]
    assert probe.sync(**account(user))["statements"] == 1


# MariaDB's own


@pytest.mark.every_version("columns of the catalogue")
def test_limits_and_tls_of_mariadb(make_probe, maria, user):
    """All four limits, and REQUIRE."""
    probe = make_probe(maria.target("db"))
    full = {"limits": [3, 500, 50, 20], "tls": 2}
    probe.sync(**account(user, **full))
    line = maria.sql(f"SHOW CREATE USER '{user}'@'%'")[0][0]
    for part in ("REQUIRE X509", "MAX_USER_CONNECTIONS 3", "MAX_QUERIES_PER_HOUR 500",
                 "MAX_UPDATES_PER_HOUR 50", "MAX_CONNECTIONS_PER_HOUR 20"):
        assert part in line
    assert probe.sync(**account(user, **full))["statements"] == 1
    assert probe.sync(**account(user, tls=1))["options_changed"]
    assert "REQUIRE SSL" in maria.sql(f"SHOW CREATE USER '{user}'@'%'")[0][0]
    maria.sql(f"ALTER USER '{user}'@'%' REQUIRE NONE")
    assert probe.sync(**account(user, tls=1))["options_changed"]


@pytest.mark.every_version("columns of the catalogue")
def test_hosts_are_added_and_removed(make_probe, maria, user):
    """D8: added hosts are created, removed ones are dropped, all of them have the rights."""
    probe = make_probe(maria.target("db"))
    maria.sql("CREATE DATABASE IF NOT EXISTS app")
    grants = [grant("app", "SELECT")]
    probe.sync(**account(user, hosts=["10.0.0.%", "LocalHost"], grants=grants))
    assert maria.accounts(user) == ["10.0.0.%", "localhost"]
    report = probe.sync(**account(user, hosts=["10.0.0.%", "LocalHost"], grants=grants))
    assert report["statements"] == 1
    report = probe.sync(**account(user, hosts=["localhost", "%"], grants=grants))
    assert report["hosts_changed"] and maria.accounts(user) == ["%", "localhost"]
    assert sorted(maria.marks(user)) == ["%", "localhost"]
    probe.sync(**account(user, hosts=["%"], grants=grants))
    # One that steward did not create stays, and is a conflict: it has the rights of the others.
    maria.sql(f"CREATE USER '{user}'@'192.168.%' IDENTIFIED BY 'x'")
    probe.fails("sync", "NOT_OURS", **account(user, hosts=["%"], grants=grants))
    assert maria.accounts(user) == ["%", "192.168.%"]
    probe.fails("sync", "EXISTS", **account(user, hosts=["%", "192.168.%"], grants=grants))
    probe.drop(**account(user, hosts=["%"]))
    assert maria.accounts(user) == ["192.168.%"]


@pytest.mark.every_version("statements of passwords and verifiers")
@pytest.mark.parametrize("plugin", ["ed25519", "mysql_native_password", "unix_socket"])
def test_adopted_account_keeps_its_auth_plugin(make_probe, make_mariadb, user, plugin):
    """An adopted account keeps ed25519, whose verifier steward can compute, too."""
    maria = make_mariadb("--plugin-load-add=auth_ed25519") if plugin == "ed25519" else \
        make_mariadb()
    probe = make_probe(maria.target("db"))
    using = "" if plugin == "unix_socket" else " USING PASSWORD('s3cret-Pa55')"
    maria.sql(f"CREATE USER '{user}'@'%' IDENTIFIED VIA {plugin}{using}")
    report = probe.sync(**account(user, adopt=True))
    assert report["password_changed"] == (plugin == "unix_socket")
    assert maria.logs_in(user, "s3cret-Pa55")
    assert probe.sync(**account(user, "n3w-Pa55word"))["password_changed"]
    assert maria.logs_in(user, "n3w-Pa55word")
    assert probe.sync(**account(user, "n3w-Pa55word"))["statements"] == 1
    if plugin == "ed25519":
        assert "ed25519" in maria.sql(f"SHOW CREATE USER '{user}'@'%'")[0][0]


def check_adoption_that_is_refused(probe, server, user):
    """The account is as it was before, and is no longer dropped with the object."""
    server.sql(f"CREATE USER '{user}o'@'%' IDENTIFIED BY 'by-Hand-Passw0rd'; "
               f"GRANT SELECT ON app.* TO '{user}o'@'%'")
    had = server.grants(f"{user}o")
    report = probe.fails("sync", "POLICY", **account(f"{user}o", "short", adopt=True))
    assert not report["adopted"] and not report["owned"], report
    assert server.marks(f"{user}o") == {} and server.grants(f"{user}o") == had
    probe.fails("drop", "NOT_OURS", **account(f"{user}o"))
    assert server.logs_in(f"{user}o", "by-Hand-Passw0rd")
    for other in ({"cluster": "5a7e0000-0000-4000-8000-000000000002"}, {"uid": "uid-2"}):
        theirs = account(f"{user}e", "Long-3nough-Pass", **{"uid": "uid-9", **other},
                         grants=[grant("app", "SELECT")])
        probe.sync(**theirs)
        marks = server.marks(f"{user}e")
        probe.fails("sync", "POLICY", **account(f"{user}e", "short", adopt=True))
        assert server.marks(f"{user}e") == marks
        probe.fails("drop", "NOT_OURS", **account(f"{user}e"))
        assert probe.sync(**theirs)["statements"] == 1
        probe.drop(**theirs)
    adopted = account(f"{user}o", "Long-3nough-Pass", adopt=True, grants=[grant("app", "SELECT")])
    assert probe.sync(**adopted)["adopted"]
    probe.drop(**adopted)
    assert not server.accounts(f"{user}o")


def check_adoption_that_was_interrupted(make_probe, server, user):
    """Killed right after the mark: the account is adopted.  What is refused after that takes nothing back, and the
    account is dropped with the object, which had asked for it."""
    steady, marked = make_probe(server.target("db")), 0
    for number in range(1, 20):
        name = f"{user}i{number}"
        server.sql(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'by-Hand-Passw0rd'")
        mortal = make_probe(server.target("db"), die_after=number)
        report = mortal.ask("sync", **account(name, "Long-3nough-Pass", adopt=True))
        if report is None and server.marks(name) and server.logs_in(name, "by-Hand-Passw0rd"):
            marked += 1
            report = steady.fails("sync", "POLICY", **account(name, "short", adopt=True))
            assert not report["adopted"], report
            assert server.marks(name) and server.logs_in(name, "by-Hand-Passw0rd")
            steady.drop(**account(name))
            assert not server.accounts(name)
        elif server.marks(name):
            steady.drop(**account(name))
        if report is not None and report["result"] == 0:
            break
    assert marked == 1


def test_adoption_survives_a_refused_grant(make_probe, server, user):
    """The password is the object's by then: the account is the object's, too, and is dropped with it."""
    pg = server.engine == "postgresql"
    server.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'by-Hand-Passw0rd'" if pg else
               f"CREATE USER '{user}'@'%' IDENTIFIED BY 'by-Hand-Passw0rd'")
    probe = make_probe(server.target("db"))
    missing = grant("postgres", "SELECT", schema="public", table="absent") if pg else \
        grant("app", "SELECT", table="absent")
    report = probe.fails("sync", "NO_OBJECT", **account(user, adopt=True, grants=[missing]))
    assert report["adopted"] and report["password_changed"], dict(report)
    assert server.marks(user) if not pg else server.comment(user)
    assert server.logs_in(user, "s3cret-Pa55") and not server.logs_in(user, "by-Hand-Passw0rd")
    probe.drop(**account(user))
    assert not (server.exists(user) if pg else server.accounts(user))


@pytest.mark.every_version("statements of passwords and verifiers")
def test_mariadb_password_policy_is_respected(make_probe, make_mariadb, user):
    """With a password policy, passwords are sent in plain text; a refusal is reported."""
    maria = make_mariadb("--plugin-load-add=simple_password_check")
    probe = make_probe(maria.target("db"))
    report = probe.fails("sync", "POLICY", **account(user, "short"))
    assert "short" not in report["error"] and not maria.accounts(user)
    probe.sync(**account(user, "Long-3nough-Pass"))
    assert maria.logs_in(user, "Long-3nough-Pass")
    probe.fails("sync", "POLICY", **account(user, "short"))
    assert maria.logs_in(user, "Long-3nough-Pass")
    assert probe.sync(**account(user, "Long-3nough-Pass"))["statements"] == 1
    maria.sql("CREATE DATABASE app")
    check_adoption_that_is_refused(probe, maria, user)
    check_adoption_that_was_interrupted(make_probe, maria, user)


def test_mysql_password_policy_is_respected(make_probe, mysql, user):
    """The same with MySQL's component, which also refuses password hashes."""
    mysql.sql("INSTALL COMPONENT 'file://component_validate_password'")
    try:
        probe = make_probe(mysql.target("db"))
        report = probe.fails("sync", "POLICY", **account(user, "short"))
        assert "short" not in report["error"] and not mysql.accounts(user)
        probe.sync(**account(user, "Long-3nough-Pass"))
        assert mysql.logs_in(user, "Long-3nough-Pass")
        probe.fails("sync", "POLICY", **account(user, "short"))
        assert mysql.logs_in(user, "Long-3nough-Pass")
        assert probe.sync(**account(user, "Long-3nough-Pass"))["statements"] == 1
        probe.drop(**account(user))
        mysql.sql("CREATE DATABASE IF NOT EXISTS app")
        check_adoption_that_is_refused(probe, mysql, user)
        check_adoption_that_was_interrupted(make_probe, mysql, user)
    finally:
        mysql.sql("UNINSTALL COMPONENT 'file://component_validate_password'")


def test_marks_table_is_created_and_checked(make_probe, make_mariadb, user):
    """Created on first use; a wrong layout is an error; without it steward owns no account."""
    maria = make_mariadb()
    probe = make_probe(maria.target("db"))
    probe.sync(**account(user))
    maria.sql("DROP DATABASE steward")
    probe.fails("sync", "EXISTS", **account(user))
    probe.fails("drop", "NOT_OURS", **account(user))
    probe.sync(**account(user, adopt=True))
    maria.sql("ALTER TABLE steward.accounts DROP COLUMN rights")
    probe.fails("sync", "UNSUPPORTED", **account(user))
    maria.sql("DROP TABLE steward.accounts")
    maria.sql(f"REVOKE ALL PRIVILEGES ON *.* FROM '{dbserver.ADMIN}'@'%'; "
              f"GRANT CREATE USER, RELOAD ON *.* TO '{dbserver.ADMIN}'@'%'; "
              f"GRANT SELECT ON mysql.* TO '{dbserver.ADMIN}'@'%'")
    probe = make_probe(maria.target("db"))
    assert "steward.*" in probe.fails("sync", "DENIED", **account("fresh"))["error"]
    maria.sql(f"GRANT ALL ON steward.* TO '{dbserver.ADMIN}'@'%'")
    probe.sync(**account("fresh"))
    probe.fails("sync", "DENIED", **account("fresh", grants=[grant("app", "SELECT")]))


def assert_ends_sessions(probe, server, user, how):
    """An open session ends within seconds of this operation, also where it came in by a pattern."""
    one = account(user, hosts=["127.%"])
    probe.sync(**one)
    if server.engine != "postgresql":
        count = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER='{user}'"
        run = server.run_client
        sleeper = ["-e", "SELECT SLEEP(60)"]
    else:
        count = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'"
        sleeper, run = ["SELECT pg_sleep(60)"], server.run_client
    import threading
    thread = threading.Thread(target=lambda: run(*sleeper, check=False, user=user,
                                                 password="s3cret-Pa55", tcp=True))
    thread.start()
    wait.until("the session", lambda: server.sql(count)[0][0] == "1")
    assert probe.ask(how, **one)["result"] == 0
    wait.until("its end", lambda: server.sql(count)[0][0] == "0", 30)
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.every_version("the list of sessions")
@pytest.mark.parametrize("how", ["drop", "lock"])
def test_sessions_are_ended(probe, server, user, how):
    """A drop and a lock end existing sessions."""
    assert_ends_sessions(probe, server, user, how)


@pytest.mark.parametrize("die_after", [1, 2, 3])
def test_killed_drop_is_completed(make_probe, hosted, user, die_after):
    """steward died between the account, its sessions and its mark: the next drop ends them all."""
    one = account(user, hosts=["127.%"])
    make_probe(hosted.target("db")).sync(**one)
    with dblogin.Session(hosted, user, "s3cret-Pa55") as session:
        assert make_probe(hosted.target("db"), die_after=die_after).ask("drop", **one) is None
        make_probe(hosted.target("db")).drop(**one)
        wait.until("its end", lambda: not session.works())
    assert not there(hosted, user) and not hosted.marks(user)


@pytest.mark.every_version("how a lock is stored")
def test_locked_account_is_adopted_by_its_object_only(probe, server, user):
    """No login, the rights and the mark stay; only an object of the same name adopts it."""
    probe.sync(**account(user))
    before = server.sql(GRANTS_OF[server.engine].format(user))
    for _ in range(2):  # also when it was interrupted and is run again
        assert probe.ask("lock", **account(user))["result"] == 0
        assert not server.logs_in(user, "s3cret-Pa55") and there(server, user)
    assert server.sql(GRANTS_OF[server.engine].format(user)) == before
    later = dict(account(user), uid="uid-2")
    other = dict(account(user), uid="uid-3", owner="other/one", adopt=True)
    probe.fails("sync", "NOT_OURS", **later)
    probe.fails("sync", "NOT_OURS", **other)
    probe.fails("drop", "NOT_OURS", **other)
    probe.fails("lock", "NOT_OURS", **other)
    assert not server.logs_in(user, "s3cret-Pa55")
    report = probe.sync(**later, adopt=True)
    assert report["adopted"] and report["options_changed"]
    assert server.logs_in(user, "s3cret-Pa55")
    assert probe.sync(**later, adopt=True)["statements"] == 1
    probe.drop(**later)
    assert not there(server, user)


def test_sessions_are_ended_only_for_the_owner(probe, server, user):
    """Of this one only, which stays as it is, and only by its owner."""
    database = "postgres" if server.engine == "postgresql" else None
    probe.sync(**account(user))
    probe.sync(**account(f"{user}x"))
    with dblogin.Session(server, user, "s3cret-Pa55", database) as one, \
            dblogin.Session(server, f"{user}x", "s3cret-Pa55", database) as other:
        assert not probe.ask("end sessions", **account(user, uid="uid-2"))["found"]
        assert one.works()
        report = probe.ask("end sessions", **account(user))
        assert report["result"] == 0 and report["found"], report
        wait.until("its end", lambda: not one.works())
        assert other.works()
    assert server.logs_in(user, "s3cret-Pa55")
    for name in (user, f"{user}x"):
        probe.drop(**account(name))


@pytest.mark.every_version("how a lock is stored")
def test_manual_lock_is_reverted(probe, server, user):
    """An account of a live object is unlocked, as any other change by hand is reverted."""
    probe.sync(**account(user))
    server.sql(f"ALTER ROLE {user} NOLOGIN" if server.engine == "postgresql" else
               f"ALTER USER '{user}'@'%' ACCOUNT LOCK")
    assert not server.logs_in(user, "s3cret-Pa55")
    assert probe.sync(**account(user))["options_changed"]
    assert server.logs_in(user, "s3cret-Pa55")


@pytest.mark.every_version("how a certificate is required")
def test_required_certificate_is_kept(make_probe, hosted, user):
    """An administrator asks for one subject: a new password and new limits leave that as it is."""
    probe = make_probe(hosted.target("db"))
    probe.sync(**account(user))
    hosted.sql(f"ALTER USER '{user}'@'%' REQUIRE SUBJECT '/CN=one' AND ISSUER '/CN=test CA'")

    def shown():
        return required(hosted, user)
    assert not probe.sync(**account(user))["options_changed"] and "/CN=one" in shown()
    assert probe.sync(**account(user, "0ther-Pa55", limits=[7, 0, 0, 0]))["password_changed"]
    assert "SUBJECT '/CN=one'" in shown() and "ISSUER '/CN=test CA'" in shown(), shown()
    assert "MAX_USER_CONNECTIONS 7" in str(hosted.sql(f"SHOW CREATE USER '{user}'@'%'"))
    hosted.sql(f"ALTER USER '{user}'@'%' REQUIRE CIPHER 'TLS_AES_256_GCM_SHA384'")
    wanted = account(user, "0ther-Pa55", limits=[7, 0, 0, 0])
    assert not probe.sync(**wanted)["options_changed"], "a cipher is stricter than any connection"
    assert probe.sync(**wanted, tls=2)["options_changed"], "a cipher asks for no certificate"
    assert shown() == "X509"
    hosted.sql(f"ALTER USER '{user}'@'%' REQUIRE SSL")
    assert probe.sync(**wanted)["options_changed"]
    probe.drop(**account(user))


@pytest.mark.every_version("how a certificate is required")
def test_required_subject_and_issuer_are_enforced(make_probe, hosted, user, tmp_path):
    """Only a client with this subject logs in; a quotation mark is part of it.  They are drift when an
    administrator changes them."""
    probe = make_probe(hosted.target("db"))
    right, wrong = ([f"--ssl-cert={folder}/tls.crt", f"--ssl-key={folder}/tls.key"]
                    for folder in (tmp_path / "right", tmp_path / "wrong"))
    dbserver.make_pair(hosted.ca.parent, tmp_path / "right", subject="/O=It's/CN=app")
    dbserver.make_pair(hosted.ca.parent, tmp_path / "wrong", subject="/O=It's/CN=other")

    def works(*flags):
        return hosted.run_client(*flags, "-e", "SELECT 1", check=False, user=user,
                                 password="s3cret-Pa55", tcp=True).returncode == 0

    asked = {"subject": "/O=It's/CN=app", "issuer": "/CN=test CA"}
    wanted = account(user, tls=2, certificate=asked)
    assert probe.sync(**wanted)["created"]
    assert probe.sync(**wanted)["statements"] == 1
    assert works(*right) and not works(*wrong) and not works()
    hosted.sql(f"ALTER USER '{user}'@'%' REQUIRE ISSUER '/CN=test CA'")
    assert works(*wrong)
    assert probe.sync(**wanted)["options_changed"] and not works(*wrong)
    assert not probe.sync(**account(user))["options_changed"], "without it, it stays"
    assert probe.sync(**account(user, tls=2, certificate={}))["options_changed"]
    assert required(hosted, user) == "X509" and works(*wrong) and not works()
    probe.drop(**account(user))


@pytest.mark.every_version("how a certificate is required")
def test_adoption_keeps_the_required_certificate(make_probe, hosted, user):
    """Nothing is changed, and the message says what the account requires."""
    probe = make_probe(hosted.target("db"))
    both = {"tls": 2, "certificate": {"subject": "/CN=one", "issuer": "/CN=two"}}
    for i, (requires, same, less) in enumerate([
            ("SUBJECT '/CN=one' AND ISSUER '/CN=two'", both, {"tls": 2, "certificate": {}}),
            ("ISSUER '/CN=two'", {}, {"tls": 2, "certificate": {"subject": "/CN=one"}}),
            ("CIPHER 'TLS_AES_256_GCM_SHA384'", {"tls": 1}, {"tls": 2}),
            ("X509", {"tls": 2}, {"tls": 1}), ("SSL", {"tls": 1}, {})]):
        name = f"{user}{i}"
        hosted.sql(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'by-hand' REQUIRE {requires}")
        before = required(hosted, name)
        report = probe.ask("sync", **account(name, adopt=True, **less))
        assert report["trouble"] == "EXISTS", report
        assert f"REQUIRE {requires.split(' AND ')[0]}" in report["error"], report["error"]
        assert required(hosted, name) == before
        assert probe.sync(**account(name, adopt=True, **same))["adopted"]
        assert required(hosted, name) == before
        probe.drop(**account(name))


@pytest.mark.every_version("how a certificate is required")
def test_second_login_inherits_required_certificate(make_probe, hosted, user):
    """With two logins, a certificate that an administrator has asked for is not lost."""
    probe = make_probe(hosted.target("db"))
    hosts = ["10.%", "%"]
    probe.sync(**account(user, hosts=hosts))
    hosted.sql(f"ALTER USER '{user}'@'%' REQUIRE SUBJECT '/O=It''s/CN=one' AND CIPHER 'AES256-SHA'")
    wanted = account(f"{user}_a", hosts=hosts, base=user, limits=[7, 0, 0, 0])
    probe.sync(**wanted)
    assert required(hosted, f"{user}_a") == required(hosted, user) != "NONE"
    assert required(hosted, f"{user}_a", "10.%") == "NONE"
    assert probe.sync(**wanted)["statements"] == 1
    hosted.sql(f"ALTER USER '{user}_a'@'%' REQUIRE SSL")
    assert probe.sync(**wanted)["options_changed"]
    assert required(hosted, f"{user}_a") == required(hosted, user)
    assert probe.sync(**wanted, tls=2, certificate={"subject": "/CN=two"})["options_changed"]
    assert "/CN=two" in required(hosted, f"{user}_a")
    for name in (user, f"{user}_a"):
        probe.drop(**account(name, hosts=hosts))


@pytest.mark.every_version("how an expiry is stored")
def test_expiring_password_is_set_again(make_probe, hosted, user):
    """At once if an administrator has let it expire, and before the end of its lifetime: no login would work
    until the next comparison."""
    probe = make_probe(hosted.target("db"))
    wanted = account(user)
    probe.sync(**wanted)
    assert not probe.sync(**wanted)["options_changed"]
    hosted.sql(f"ALTER USER '{user}'@'%' PASSWORD EXPIRE")
    assert not can_work(hosted, user)
    report = probe.sync(**wanted)
    assert report["options_changed"] and not report["password_changed"]
    assert can_work(hosted, user)
    hosted.sql(f"ALTER USER '{user}'@'%' PASSWORD EXPIRE INTERVAL 30 DAY")
    assert not probe.sync(**wanted)["options_changed"]
    age(hosted, user, 29.5)
    assert probe.sync(**wanted)["options_changed"]
    assert not probe.sync(**wanted)["options_changed"]
    probe.drop(**wanted)


@pytest.mark.every_version("verifiers")
def test_unusable_verifier_is_replaced(make_probe, pg, user):
    """A verifier that logins with scram-sha-256 are not checked by is replaced; an expiry that is none of the
    object's is told."""
    probe = make_probe(pg.target("db"))
    pg.sql(f"SET password_encryption = 'md5'; CREATE ROLE {user} LOGIN PASSWORD 's3cret-Pa55'")
    assert not pg.logs_in(user, "s3cret-Pa55")
    wanted = account(user, adopt=True)
    assert probe.sync(**wanted)["adopted"] and pg.logs_in(user, "s3cret-Pa55")
    assert not probe.sync(**wanted)["options_changed"]
    pg.sql(f"ALTER ROLE {user} VALID UNTIL '2020-01-01'")
    report = probe.fails("sync", "POLICY", **wanted)
    assert "validUntil" in report["error"] and report["login_done"], report
    pg.sql(f"ALTER ROLE {user} VALID UNTIL 'infinity'")
    probe.sync(**wanted)
    assert pg.logs_in(user, "s3cret-Pa55")
    probe.drop(**wanted)


def test_only_marked_accounts_are_locked(probe, server, user):
    """An account made by hand is not locked."""
    by_hand(server, user, "by-hand-1")
    probe.fails("lock", "NOT_OURS", **account(user))
    assert server.logs_in(user, "by-hand-1")


def test_metric_labels_are_bounded(probe, server, user):
    """Labels are bounded: only the target's name."""
    probe.sync(**account(user))
    assert probe.metric("steward_sql_connections{") == ['steward_sql_connections{target="db"} 1']
    assert probe.metric("steward_sql_circuit_open{") == ['steward_sql_circuit_open{target="db"} 0']
    assert any('result="success"' in line for line in probe.metric("steward_sql_statements_total{"))
    assert server.answers()


@pytest.mark.parametrize("refusal", ["reject", "cert"])
def test_pg_hba_refusal_is_not_a_password_mismatch(make_probe, make_postgres, user, refusal):
    """The admin may not read verifiers, so that it tries the login; only a wrong password is set again."""
    pg = make_postgres()
    pg.sql(f"CREATE ROLE weak LOGIN CREATEROLE PASSWORD '{dbserver.ADMIN_PASSWORD}'")
    hba = pg.folder / "data" / "pg_hba.conf"
    hba.write_text(f"hostssl all {user} 127.0.0.1/32 {refusal}\n" + hba.read_text())
    pg.sql("SELECT pg_reload_conf()")
    probe = make_probe(pg.target("db", admin={"user": "weak", "passwordFile": str(pg.admin_file)}))
    probe.sync(**account(user))
    assert not pg.logs_in(user, "s3cret-Pa55")
    assert not any(probe.sync(**account(user))["password_changed"] for _ in range(2))
    hba.write_text(hba.read_text().replace(refusal, "scram-sha-256", 1))
    pg.sql("SELECT pg_reload_conf()")
    wait.until("logins", lambda: pg.logs_in(user, "s3cret-Pa55"))
    pg.sql(f"ALTER ROLE {user} PASSWORD 'drift-Pa55'")
    assert probe.sync(**account(user))["password_changed"]
