# SPDX-License-Identifier: Apache-2.0
"""lib/sql on real MySQL servers: two valid passwords at a time, and where there is only one."""

import pytest

from support import wait
from support.mariadb import quote
from support.sqlprobe import account

ONE, TWO, THREE = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"


@pytest.fixture
def probe(make_probe, mysql):
    """A probe with MySQL as its target."""
    return make_probe(mysql.target("db"))


def valid(mysql, user, *passwords):
    """Those of the passwords that log in."""
    return {p for p in passwords if mysql.logs_in(user, p)}


@pytest.mark.every_version("the second password in the catalogue and its statements")
def test_old_password_stays_until_it_is_discarded(probe, mysql, user):
    """The new one works, the old one stays, a repetition changes nothing, and the end is final."""
    probe.sync(**account(user, ONE))
    report = probe.sync(**account(user, TWO), keep_old=True)
    assert report["password_changed"] and report["old_valid"] and not report["password_waits"]
    assert valid(mysql, user, ONE, TWO) == {ONE, TWO}
    report = probe.sync(**account(user, TWO), keep_old=True)
    assert report["statements"] == 1 and report["old_valid"]
    report = probe.sync(**account(user, TWO), keep_old=True, discard_old=True)
    assert report["statements"] == 1 and report["old_valid"]  # just set, by an interrupted call
    report = probe.sync(**account(user, TWO), discard_old=True)
    assert report["old_discarded"] and not report["old_valid"] and report["statements"] == 2
    assert valid(mysql, user, ONE, TWO) == {TWO}
    report = probe.sync(**account(user, TWO), discard_old=True)
    assert report["statements"] == 1 and not report["old_discarded"]


@pytest.mark.every_version("what a third password does to the second")
def test_third_password_waits(probe, mysql, user):
    """Neither of the two valid passwords ends before its time; back to the old one is possible."""
    probe.sync(**account(user, ONE))
    probe.sync(**account(user, TWO), keep_old=True)
    report = probe.sync(**account(user, THREE), keep_old=True)
    assert report["password_waits"] and report["statements"] == 1
    assert valid(mysql, user, ONE, TWO, THREE) == {ONE, TWO}
    report = probe.sync(**account(user, ONE), keep_old=True)
    assert report["password_changed"] and not report["password_waits"]
    assert valid(mysql, user, ONE, TWO) == {ONE, TWO}
    report = probe.sync(**account(user, THREE), keep_old=True, discard_old=True)
    assert report["old_discarded"] and report["password_changed"] and report["old_valid"]
    assert valid(mysql, user, ONE, TWO, THREE) == {ONE, THREE}


@pytest.mark.every_version("what a password that is set does to the second")
def test_in_place_return_to_old_password_keeps_only_it(probe, mysql, user):
    """The second password becomes the only one: no copy of it stays that the next one would leave."""
    probe.sync(**account(user, ONE))
    probe.sync(**account(user, TWO), keep_old=True)
    report = probe.sync(**account(user, ONE), discard_old=True)
    assert report["password_changed"] and report["old_discarded"] and not report["old_valid"]
    assert valid(mysql, user, ONE, TWO) == {ONE}
    probe.sync(**account(user, THREE), discard_old=True)
    assert valid(mysql, user, ONE, TWO, THREE) == {THREE}


def test_new_password_is_set_by_the_next_call(probe, mysql, user):
    """A call may only make room for the new password: what waits for nothing else says so."""
    probe.sync(**account(user, ONE))
    later = {"keep_old": True, "discard_old": True, "set_later": True}
    report = probe.sync(**account(user, TWO), **later)
    assert report["password_waits"] and report["password_next"] and report["statements"] == 1
    assert valid(mysql, user, ONE, TWO) == {ONE}
    probe.sync(**account(user, TWO), keep_old=True)
    report = probe.sync(**account(user, ONE), **later)  # the two change places
    assert report["password_next"] and not report["old_discarded"] and report["old_valid"]
    report = probe.sync(**account(user, THREE), keep_old=True, set_later=True)
    assert report["password_waits"] and not report["password_next"]
    assert valid(mysql, user, ONE, TWO, THREE) == {ONE, TWO}
    report = probe.sync(**account(user, THREE), **later)
    assert report["password_next"] and report["old_discarded"] and not report["old_valid"]
    assert valid(mysql, user, ONE, TWO, THREE) == {TWO}
    report = probe.sync(**account(user, THREE), keep_old=True)
    assert report["password_changed"] and not report["password_waits"]
    assert valid(mysql, user, TWO, THREE) == {TWO, THREE}
    report = probe.sync(**account(user, ONE), published=TWO, **later)  # clients do not have it
    assert report["password_changed"] and not report["password_waits"]
    assert valid(mysql, user, ONE, TWO, THREE) == {ONE, TWO}


def test_third_password_waits_for_all_hosts(probe, mysql, user):
    """steward died between two hosts; a third password changes neither of them."""
    hosts = ["%", "10.0.0.1"]
    probe.sync(**account(user, ONE, hosts=hosts))
    probe.sync(**account(user, TWO, hosts=hosts), keep_old=True)
    mysql.sql(f"ALTER USER {quote(user)}@'10.0.0.1' DISCARD OLD PASSWORD")
    before = mysql.sql(f"SELECT Host, HEX(authentication_string) FROM mysql.user "
                       f"WHERE User={quote(user)} ORDER BY Host")
    assert probe.sync(**account(user, THREE, hosts=hosts), keep_old=True)["password_waits"]
    assert before == mysql.sql(f"SELECT Host, HEX(authentication_string) FROM mysql.user "
                               f"WHERE User={quote(user)} ORDER BY Host")
    report = probe.sync(**account(user, TWO, hosts=hosts), discard_old=True)
    assert report["statements"] == 2 and not report["old_valid"]


def test_unread_second_password_is_replaced(probe, mysql, user):
    """An interrupted call set the second password; clients read the first, which stays valid."""
    probe.sync(**account(user, ONE))
    probe.sync(**account(user, TWO), keep_old=True)
    report = probe.sync(**account(user, TWO), discard_old=True, published=ONE)
    assert report["old_valid"] and not report["old_discarded"] and report["statements"] == 1
    report = probe.sync(**account(user, THREE), keep_old=True, discard_old=True, published=ONE)
    assert report["password_changed"] and report["old_valid"]
    assert not report["password_waits"] and not report["old_discarded"]
    assert valid(mysql, user, ONE, TWO, THREE) == {ONE, THREE}
    report = probe.sync(**account(user, TWO), keep_old=True, published=THREE)
    assert report["password_waits"] and valid(mysql, user, ONE, TWO, THREE) == {ONE, THREE}
    report = probe.sync(**account(user, THREE), discard_old=True)
    assert report["old_discarded"] and valid(mysql, user, ONE, TWO, THREE) == {THREE}


@pytest.mark.parametrize("die_after", [1, 2])
def test_kill_after_each_statement_is_completed(make_probe, mysql, user, die_after):
    """The new password on one of two hosts, or on both: the next run ends the work, and no valid
    password ends on the way."""
    hosts = ["%", "10.0.0.1"]
    make_probe(mysql.target("db")).sync(**account(user, ONE, hosts=hosts))
    dying = make_probe(mysql.target("db"), die_after=die_after)
    assert dying.ask("sync", **account(user, TWO, hosts=hosts), keep_old=True) is None
    assert mysql.logs_in(user, ONE)
    report = make_probe(mysql.target("db")).sync(**account(user, TWO, hosts=hosts), keep_old=True)
    assert report["password_changed"] == (die_after == 1) and report["old_valid"]
    assert valid(mysql, user, ONE, TWO) == {ONE, TWO}
    olds = mysql.sql("SELECT COUNT(*) FROM mysql.user WHERE "
                     f"User={quote(user)} AND User_attributes LIKE '%additional_password%'")
    assert olds == [["2"]]


def test_other_plugin_cannot_retain_a_password(probe, mysql, user):
    """The server cannot keep a password of another plugin: nothing is changed, and it is said."""
    probe.sync(**account(user, ONE))
    mysql.sql(f"ALTER USER {quote(user)}@'%' IDENTIFIED WITH sha256_password BY {quote(ONE)}")
    report = probe.fails("sync", "UNSUPPORTED", **account(user, TWO), keep_old=True)
    assert "plugin" in report["error"] and TWO not in report["error"]
    assert valid(mysql, user, ONE, TWO) == {ONE}
    probe.sync(**account(user, TWO))
    assert valid(mysql, user, ONE, TWO) == {TWO}


def test_log_shows_no_password(probe, mysql, user):
    """The statement has a verifier, and the server's log has not even that."""
    probe.sync(**account(user, ONE))
    probe.sync(**account(user, TWO), keep_old=True)
    wait.until("the statement in the log", lambda: "RETAIN CURRENT PASSWORD" in
               (mysql.folder / "general.log").read_text("utf-8", "replace"))
    assert TWO not in (mysql.folder / "general.log").read_text("utf-8", "replace")


@pytest.mark.parametrize("engine", ["maria", "pg"])
def test_single_password_servers_refuse_overlap(make_probe, maria, pg, user, engine):
    """MariaDB and PostgreSQL refuse it before anything is sent."""
    probe = make_probe({"maria": maria, "pg": pg}[engine].target("db"))
    assert "InPlace" in probe.fails("sync", "UNSUPPORTED", **account(user, ONE),
                                    keep_old=True)["error"]
    probe.sync(**account(user, ONE))
    assert probe.sync(**account(user, ONE), discard_old=True)["statements"] == 1
