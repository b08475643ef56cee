# SPDX-License-Identifier: Apache-2.0
"""Rotation by the clock, while the wall clock is set forwards and backwards."""

import base64
import datetime

import pytest
from support import databases, databaseuser as dbu
from support import clock, dblogin, faults
from support import steward as stw
from support import wait
from support.cluster import condition
from support.replicas import long_run

HOUR, DAY = 3600, 86400
server = databases.each(long_run([databases.newest(databases.MariaDB)], databases.ENDS))


@pytest.fixture
def timed(installed, steward_binary, tmp_path, server, namespace):
    """A steward with a clock of its own; the namespace's DatabaseUsers are deleted at the end."""
    if not clock.library():
        pytest.skip("there is no libfaketime")
    stw.uninstall_webhooks(installed)
    one = dbu.Environment(installed, steward_binary, tmp_path, {"main": server})
    with one.at(clock.Clock(tmp_path)) as one.clock:
        one.steward.start()
        yield one
        one.forget(namespace)


def manifest(server, namespace, overlap, strategy="TwinAccounts", every="1d"):
    rights = [{"database": "shop", "privileges":
               ["CONNECT" if server.engine == "postgresql" else "SELECT"]}]
    one = dbu.manifest("app", namespace, grants=rights, connectionSecret={"name": "app-conn"},
                       rotation={"every": every, "overlapSeconds": overlap,
                                 "strategy": strategy})
    one["spec"]["password"] = {"generate": {"length": 20}}
    return one


def connection(dbenv, namespace):
    return dblogin.connection(dbenv.cluster, namespace, "app-conn")


def poked(dbenv, namespace, text, look):
    """Reconciles until look() is true: the process reads its clock again every second."""
    def once():
        dbenv.poke("app", namespace)
        return look()
    return wait.until(text, once, 30, every=0.5)


def due_in(dbenv, namespace):
    """Seconds until the next rotation, by steward's clock."""
    text = dbenv.get("app", namespace)["status"]["nextRotationTime"]
    due = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (due - dbenv.clock.now()).total_seconds()


def test_scheduled_rotation_survives_clock_steps(timed, namespace, server):
    """A new password each day; a step forwards makes one too early, and after a step backwards the
    next one is at most a day away."""
    timed.cluster.apply(manifest(server, namespace, 1))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    assert first[0] == "app_a" and len(first[1]) == 20
    assert DAY - 60 < due_in(timed, namespace) <= DAY
    timed.poke("app", namespace)
    timed.clock.set(400 * DAY)
    poked(timed, namespace, "a rotation", lambda: connection(timed, namespace)[0] == "app_b")
    second = connection(timed, namespace)
    assert second[1] != first[1] and server.login(*second)
    poked(timed, namespace, "the end of the overlap", lambda: not server.login(*first))
    assert timed.wait_ready("app", namespace)["status"]["rotation"] == 2
    assert DAY - 60 < due_in(timed, namespace) <= DAY
    timed.clock.set(0)
    poked(timed, namespace, "the next one to be near",
          lambda: DAY - 60 < due_in(timed, namespace) <= DAY)
    assert connection(timed, namespace) == second and server.login(*second)
    timed.cluster.apply(manifest(server, namespace, 60))
    timed.clock.set(DAY + 30)
    poked(timed, namespace, "a rotation", lambda: connection(timed, namespace)[0] == "app_a")
    assert server.login(*connection(timed, namespace)) and server.login(*second)


def test_clock_step_does_not_end_the_overlap(timed, namespace, server):
    """The clock is set forwards beyond the end of an overlap, and beyond the next rotation: the old
    login works for as long as applications were promised."""
    timed.cluster.apply(manifest(server, namespace, 3600))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    timed.clock.set(2 * DAY)
    poked(timed, namespace, "a rotation", lambda: connection(timed, namespace)[0] == "app_b")
    timed.wait_condition("app", namespace, "RotationComplete", "Overlap")
    second = connection(timed, namespace)
    timed.clock.set(9 * DAY)
    verified = timed.get("app", namespace)["status"]["lastVerifiedTime"]
    resync = iter(range(1000, 86400))

    def checked():  # with a change of the spec, so that the status has the time
        timed.patch("app", namespace, resyncSeconds=next(resync))
        seen = timed.wait_ready("app", namespace)["status"]["lastVerifiedTime"]
        return seen[:10] > verified[:10]
    wait.until("a check by the new time", checked, 30, every=0.5)
    assert connection(timed, namespace) == second
    assert server.login(*first) and server.login(*second)
    user = timed.get("app", namespace)
    assert condition(user, "RotationComplete")["reason"] == "Overlap"


@pytest.mark.parametrize("strategy", ["InPlace", "TwinAccounts"])
def test_killed_rotation_is_not_repeated(timed, namespace, server, strategy):
    """steward dies after the first statement of a rotation: one new password an hour all the same.
    (By a clock that is a day ahead, a new steward would find the server's certificate expired.)"""
    timed.cluster.apply(manifest(server, namespace, 1, strategy, "1h"))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    timed.steward.kill()
    timed.clock.set(2 * HOUR)
    log = timed.folder / "faults.log"
    log.write_text("")
    dying = faults.OfScene(timed).start(ready=False, env={"STEWARD_FAULT_AT": "2",
                                                          "STEWARD_FAULT_LOG": str(log)})
    wait.until("its death", lambda: not dying.running())
    assert log.read_text().split()[1::2] == ["secret", "sql"], dying.log_tail()
    assert connection(timed, namespace) == first
    timed.steward.start()
    wait.until("the new password", lambda: connection(timed, namespace) != first)
    second = connection(timed, namespace)
    assert server.login(*second)
    poked(timed, namespace, "the end of the first", lambda: not server.login(*first))
    for seconds in (1000, 1001):  # a look by a new generation, after the end of the overlap
        wait.until("the status", lambda: "previousLogin" not in timed.wait_ready(
            "app", namespace)["status"])
        timed.patch("app", namespace, resyncSeconds=seconds)
    timed.wait_ready("app", namespace)
    assert connection(timed, namespace) == second
    assert HOUR - 60 < due_in(timed, namespace) <= HOUR


def test_deleted_generated_secret_rotates_the_password(timed, namespace, server):
    """Another way to a new password: it rotates, too."""
    timed.cluster.apply(manifest(server, namespace, 3600))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    timed.cluster.delete("secrets", "app-password", namespace)
    wait.until("the other login", lambda: connection(timed, namespace)[0] == "app_b")
    assert server.login(*first) and server.login(*connection(timed, namespace))
    made = timed.cluster.get("secrets", "app-password", namespace)["data"]["password"]
    assert base64.b64decode(made).decode() == connection(timed, namespace)[1]
