# SPDX-License-Identifier: Apache-2.0
"""Rotation by the clock, while the wall clock is set forwards and backwards."""

import base64
import datetime

import pytest
from support import databaseuser as dbu
from support import clock, dblogin
from support import steward as stw
from support import wait
from support.cluster import condition

DAY = 86400


@pytest.fixture
def timed(installed, steward_binary, tmp_path, mariadb, namespace):
    """A steward with a clock of its own; the namespace's DatabaseUsers are deleted at the end."""
    if not clock.library():
        pytest.skip("there is no libfaketime")
    stw.uninstall_webhooks(installed)
    one = dbu.Scene(installed, steward_binary, tmp_path, {"main": mariadb})
    one.clock = clock.Clock(tmp_path)
    one.steward.env = one.clock.env(steward_binary)
    one.steward.start()
    yield one
    one.forget(namespace)
    assert one.steward.stop() == 0, one.steward.log_tail()


def manifest(namespace, overlap):
    one = dbu.manifest("app", namespace, connectionSecret={"name": "app-conn"},
                       rotation={"every": "1d", "overlapSeconds": overlap})
    one["spec"]["password"] = {"generate": {"length": 20}}
    return one


def connection(scene, namespace):
    return dblogin.connection(scene.cluster, namespace, "app-conn")


def poked(scene, namespace, text, look):
    """Reconciles until look() is true: the process reads its clock again every second."""
    def once():
        scene.poke("app", namespace)
        return look()
    return wait.until(text, once, 30, every=0.5)


def due_in(scene, namespace):
    """Seconds until the next rotation, by steward's clock."""
    text = scene.get("app", namespace)["status"]["nextRotationTime"]
    due = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (due - scene.clock.now()).total_seconds()


def test_rotation_by_the_clock(timed, namespace, mariadb):
    """A new password each day; a step forwards makes one too early, and after a step backwards the
    next one is at most a day away."""
    timed.cluster.apply(manifest(namespace, 1))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    assert first[0] == "app_a" and len(first[1]) == 20
    assert DAY - 60 < due_in(timed, namespace) <= DAY
    timed.poke("app", namespace)
    timed.clock.set(400 * DAY)
    poked(timed, namespace, "a rotation", lambda: connection(timed, namespace)[0] == "app_b")
    second = connection(timed, namespace)
    assert second[1] != first[1] and mariadb.login(*second)
    poked(timed, namespace, "the end of the overlap", lambda: not mariadb.login(*first))
    assert timed.wait_ready("app", namespace)["status"]["rotation"] == 2
    assert DAY - 60 < due_in(timed, namespace) <= DAY
    timed.clock.set(0)
    poked(timed, namespace, "the next one to be near",
          lambda: DAY - 60 < due_in(timed, namespace) <= DAY)
    assert connection(timed, namespace) == second and mariadb.login(*second)
    timed.cluster.apply(manifest(namespace, 60))
    timed.clock.set(DAY + 30)
    poked(timed, namespace, "a rotation", lambda: connection(timed, namespace)[0] == "app_a")
    assert mariadb.login(*connection(timed, namespace)) and mariadb.login(*second)


def test_step_does_not_end_the_overlap(timed, namespace, mariadb):
    """The clock is set forwards beyond the end of an overlap, and beyond the next rotation: the old
    login works for as long as applications were promised."""
    timed.cluster.apply(manifest(namespace, 3600))
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
    assert mariadb.login(*first) and mariadb.login(*second)
    user = timed.get("app", namespace)
    assert condition(user, "RotationComplete")["reason"] == "Overlap"


def test_deleted_secret_of_a_generated_password(timed, namespace, mariadb):
    """Another way to a new password: it rotates, too."""
    timed.cluster.apply(manifest(namespace, 3600))
    timed.wait_ready("app", namespace)
    first = connection(timed, namespace)
    timed.cluster.delete("secrets", "app-password", namespace)
    wait.until("the other login", lambda: connection(timed, namespace)[0] == "app_b")
    assert mariadb.login(*first) and mariadb.login(*connection(timed, namespace))
    made = timed.cluster.get("secrets", "app-password", namespace)["data"]["password"]
    assert base64.b64decode(made).decode() == connection(timed, namespace)[1]
