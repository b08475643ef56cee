# SPDX-License-Identifier: Apache-2.0
"""Rotation without a failed login, on a real MySQL: a client logs in all the time, and steward is
killed at any moment."""

import base64
import datetime
import random
import threading
import time

import pytest
from support import databases, databaseuser as dbu
from support import faults, sampled
from support import wait
from support.cluster import condition

FIRST, SECOND, THIRD = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
FOURTH = "fourth-Passw0rd-4"


@pytest.fixture(scope="module")
def mysql():
    """The newest MySQL."""
    yield from databases.running(databases.MySQL, sampled.newest("MYSQL"))


@pytest.fixture(scope="module")
def rotating(installed, steward_binary, tmp_path_factory, mysql):
    """A steward whose target "main" is MySQL."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), mysql)


@pytest.fixture
def shop(rotating, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    rotating.forget(namespace)


OVERLAP_S = 4
LATE_S = OVERLAP_S - 1.1  # the status keeps whole seconds of the end


def create(dbenv, shop, overlap, strategy="Auto"):
    """An account with a connection Secret and a rotation."""
    return dbenv.create("app", shop, FIRST, connectionSecret={"name": "app-conn"},
                        rotation={"overlapSeconds": overlap, "strategy": strategy})


def connection(dbenv, shop):
    """The password of the connection Secret."""
    found = dbenv.cluster.get("secrets", "app-conn", shop)
    return base64.b64decode(found["data"]["password"]).decode()


class Client(threading.Thread):
    """Logs in again and again, with the password that it read last; it reads again only every second,
    as an application that is restarted."""

    def __init__(self, dbenv, server, shop):
        super().__init__()
        self.dbenv, self.server, self.shop = dbenv, server, shop
        self.logins, self.failed, self.late, self.over = 0, [], 0, threading.Event()

    def run(self):
        read_at, password = None, None
        while not self.over.wait(0.02):
            if read_at is None or time.monotonic() > read_at + 1:
                read_at, password = time.monotonic(), connection(self.dbenv, self.shop)
            self.logins += 1
            if self.server.login("app", password):
                continue
            if time.monotonic() < read_at + LATE_S:
                self.failed.append((self.logins, password))
            else:  # this client was stopped for longer than the overlap allows
                self.late += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *args):
        self.over.set()
        self.join(30)


def test_old_password_ends_after_the_overlap(rotating, mysql, shop):
    """Both work, the status says until when, and then only the new one does."""
    user = create(rotating, shop, 5)
    assert condition(user, "RotationComplete")["reason"] == "Complete"
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert mysql.login("app", SECOND) and mysql.login("app", FIRST)
    user = rotating.wait_ready("app", shop)
    assert user["status"]["oldPasswordValidUntil"] > user["status"]["lastRotationTime"]
    rotating.wait_condition("app", shop, "RotationComplete", "Complete")
    assert mysql.login("app", SECOND) and not mysql.login("app", FIRST)
    assert "oldPasswordValidUntil" not in rotating.get("app", shop)["status"]
    rotating.wait_event("app", shop, "OldPasswordDiscarded")


def test_third_password_waits_unless_in_place(rotating, mysql, shop):
    """Two valid passwords are kept; InPlace ends them at once."""
    create(rotating, shop, 3600)
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
    rotating.cluster.apply(dbu.secret("app", shop, THIRD))
    rotating.wait_condition("app", shop, "RotationComplete", "NewPasswordWaits")
    assert connection(rotating, shop) == SECOND
    assert mysql.login("app", FIRST) and mysql.login("app", SECOND)
    assert not mysql.login("app", THIRD)
    rotating.patch("app", shop, rotation={"strategy": "InPlace"})
    rotating.wait_condition("app", shop, "RotationComplete", "Complete")
    wait.until("the third in the connection", lambda: connection(rotating, shop) == THIRD)
    assert mysql.login("app", THIRD)
    assert not mysql.login("app", FIRST) and not mysql.login("app", SECOND)


def restart_in_place(dbenv, shop, password):
    """A steward that finds both changes at once: another password, and InPlace."""
    if dbenv.steward.running():
        dbenv.steward.kill()
    dbenv.cluster.apply(dbu.secret("app", shop, password))
    dbenv.patch("app", shop, rotation={"strategy": "InPlace"})
    dbenv.steward.start()
    dbenv.wait_rotated("app", shop)


def valid(mysql):
    """Those of the passwords that log in."""
    return {p for p in (FIRST, SECOND, THIRD) if mysql.login("app", p)}


def test_in_place_return_to_old_password_keeps_only_it(rotating, mysql, shop):
    """It becomes the only one, and ends with the next: the server has no copy of it."""
    create(rotating, shop, 3600)
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
    restart_in_place(rotating, shop, FIRST)
    assert valid(mysql) == {FIRST}
    rotating.cluster.apply(dbu.secret("app", shop, THIRD))
    wait.until("the third in the connection", lambda: connection(rotating, shop) == THIRD)
    assert valid(mysql) == {THIRD}


def die(dbenv):
    """A steward that dies after its first write; returns what that was."""
    log = dbenv.folder / "faults.log"
    log.write_text("")
    dying = faults.OfScene(dbenv).start(ready=False, env={"STEWARD_FAULT_AT": "1",
                                                          "STEWARD_FAULT_LOG": str(log)})
    wait.until("its death", lambda: not dying.running(), 60)
    return log.read_text().split()[1]


def test_in_place_after_killed_rotation_ends_old_password(rotating, mysql, shop):
    """steward died before the status said that an older password is valid, which then has to end."""
    create(rotating, shop, 3600)
    rotating.steward.kill()
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    die(rotating)
    assert valid(mysql) == {FIRST, SECOND}
    restart_in_place(rotating, shop, THIRD)
    assert valid(mysql) == {THIRD}


def test_killed_rotation_keeps_the_password_applications_read(rotating, mysql, shop):
    """steward dies after it set a password, and the Secret gets another one: applications still have
    the first, which works until the overlap after the third is over."""
    create(rotating, shop, OVERLAP_S)
    rotating.steward.kill()
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    assert die(rotating) == "sql" and connection(rotating, shop) == FIRST
    assert mysql.login("app", FIRST) and mysql.login("app", SECOND)
    rotating.cluster.apply(dbu.secret("app", shop, THIRD))
    with Client(rotating, mysql, shop) as client:
        rotating.steward.start()
        wait.until("the third in the connection", lambda: connection(rotating, shop) == THIRD)
        assert mysql.login("app", FIRST) and mysql.login("app", THIRD)
        assert not mysql.login("app", SECOND)
        rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
        rotating.wait_condition("app", shop, "RotationComplete", "Complete")
    assert client.failed == [] and client.logins > 10, f"of {client.logins}: {client.failed}"
    assert mysql.login("app", THIRD) and not mysql.login("app", FIRST)


def die_until_published(dbenv, shop, password):
    """Stewards that die after each first write, until applications can read the password: no status
    says so yet."""
    deaths = []
    while connection(dbenv, shop) != password:
        assert len(deaths) < 10, deaths
        deaths.append(die(dbenv))


def test_fourth_password_before_status_of_third_gets_overlap(rotating, mysql, shop):
    """steward died between the third password and its status, which still has the end of the first.
    When the fourth comes, that end does not count for the second, which applications have just read."""
    create(rotating, shop, OVERLAP_S)
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))
    rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
    rotating.steward.kill()
    rotating.cluster.apply(dbu.secret("app", shop, THIRD))
    text = rotating.get("app", shop)["status"]["oldPasswordValidUntil"]
    end = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    wait.until("the end of the first", lambda: time.time() > end + 1)
    die_until_published(rotating, shop, THIRD)
    assert valid(mysql) == {SECOND, THIRD}
    rotating.cluster.apply(dbu.secret("app", shop, FOURTH))
    rotating.steward.start()
    rotating.wait_condition("app", shop, "RotationComplete", "NewPasswordWaits")
    assert valid(mysql) == {SECOND, THIRD} and connection(rotating, shop) == THIRD
    wait.until("the fourth in the connection", lambda: connection(rotating, shop) == FOURTH)
    assert valid(mysql) == {THIRD} and mysql.login("app", FOURTH)


def test_manual_password_change_is_not_kept_valid(rotating, mysql, shop):
    """An attacker on the server sets another password: it is replaced and not left valid."""
    create(rotating, shop, 3600)
    mysql.sql("ALTER USER 'app'@'%' IDENTIFIED BY 'by-hand-Passw0rd'")
    rotating.poke("app", shop)
    wait.until("the repair", lambda: mysql.login("app", FIRST))
    assert not mysql.login("app", "by-hand-Passw0rd")


def test_rotations_under_kills_fail_no_login(rotating, mysql, shop):
    """10 rotations while a client logs in, with SIGKILL at random moments: no login fails."""
    dice = random.Random(19)
    create(rotating, shop, OVERLAP_S)
    with Client(rotating, mysql, shop) as client:
        for n in range(10):
            password = f"rotated-{n}-Passw0rd"
            rotating.cluster.apply(dbu.secret("app", shop, password))
            for _ in range(2):
                end = time.monotonic() + dice.uniform(0.0, 0.4)
                wait.until("its last moment", lambda t=end: time.monotonic() >= t, every=0.002)
                rotating.steward.kill()
                rotating.steward.start(ready=False)
            wait.until("the new password", lambda p=password: connection(rotating, shop) == p, 60)
    rotating.wait_condition("app", shop, "RotationComplete", "Complete")
    assert client.failed == [] and client.logins > 100, f"of {client.logins}: {client.failed}"
    assert client.late <= 3
    assert mysql.login("app", "rotated-9-Passw0rd") and not mysql.login("app", "rotated-8-Passw0rd")
