# SPDX-License-Identifier: Apache-2.0
"""A rotation is disturbed in each of its steps: steward dies after a write, something else happens,
and the next steward ends the rotation."""

import pytest
from support import databases, databaseuser as dbu
from support import dblogin, faults, pause
from support import sampled
from support import wait
from support.cluster import condition

FIRST = "first-Passw0rd-1"
SECRET = "app-conn"
STEPS_MAX = 30
# Two logins, and two passwords of one account.
server = databases.each([(databases.PostgreSQL, sampled.newest("POSTGRESQL")),
                         (databases.MySQL, sampled.newest("MYSQL"))])


@pytest.fixture(scope="module")
def rotating(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    yield from dbu.running_scene(installed, steward_binary, tmp_path_factory.mktemp("scene"), server)


@pytest.fixture
def shop(rotating, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    if not rotating.steward.running():
        rotating.steward.start()
    rotating.forget(namespace)


def connection(scene, shop):
    return dblogin.connection(scene.cluster, shop, SECRET)


def is_complete(scene, shop):
    """The password of the Secret is the only one, and applications can read it."""
    user = scene.get("app", shop)
    secret = scene.cluster.get("secrets", "app", shop)
    return user["status"].get("secretResourceVersion") == secret["metadata"]["resourceVersion"] and \
        condition(user, "RotationComplete").get("reason") == "Complete"


def die_at(scene, shop, step):
    """Whether a steward died after its write of this number; False: the rotation has fewer."""
    log = scene.folder / "faults.log"
    log.write_text("")
    one = faults.OfScene(scene).start(ready=False, env={"STEWARD_FAULT_AT": str(step),
                                                        "STEWARD_FAULT_LOG": str(log)})
    wait.until("its death or the end", lambda: not one.running() or is_complete(scene, shop), 60)
    died = not one.running()
    if not died:
        one.kill()
    assert not died or len(log.read_text().splitlines()) == step, one.log_tail()
    return died


def rotate_in_steps(scene, server, shop, disturb):
    """A rotation for each step, disturbed after it; returns how many there were."""
    rights = [{"database": "shop", "privileges":
               ["CONNECT" if server.engine == "postgresql" else "SELECT"]}]
    scene.create("app", shop, FIRST, grants=rights, connectionSecret={"name": SECRET},
                 rotation={"overlapSeconds": 1})
    for step in range(1, STEPS_MAX):
        old = connection(scene, shop)
        scene.steward.kill()
        scene.cluster.apply(dbu.secret("app", shop, f"rotated-{step}-Passw0rd"))
        died = die_at(scene, shop, step)
        if died:
            disturb()
        if not scene.steward.running():
            scene.steward.start()
        password = f"rotated-{step}-Passw0rd"
        wait.until(f"the rotation to end after step {step}", lambda p=password: is_complete(
            scene, shop) and (connection(scene, shop) or ["", ""])[1] == p, 90)
        new = connection(scene, shop)
        assert server.login(*new)
        assert not server.login(*old)
        if not died:
            return step - 1
    raise AssertionError(f"a rotation has more than {STEPS_MAX} writes")


def test_server_is_killed_in_each_step(rotating, server, shop):
    def disturb():
        server.kill()
        rotating.steward.start()
        rotating.wait_condition("app", shop, "TargetReachable", "ConnectFailed", "CircuitOpen")
        server.start()
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


def test_server_stops_answering_in_each_step(rotating, server, shop):
    """It keeps its connections, and answers nothing for a while."""
    def disturb():
        pause.pause(server.process)
        try:
            rotating.steward.start()
            rotating.poke("app", shop)
            wait.until("a moment", iter([False] * 10 + [True]).__next__, every=0.1)
        finally:
            pause.resume(server.process)
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


def test_connection_secret_is_deleted_in_each_step(rotating, server, shop):
    assert rotate_in_steps(rotating, server, shop, lambda: rotating.cluster.delete(
        "secrets", SECRET, shop)) >= 4


def test_connection_secret_is_edited_in_each_step(rotating, server, shop):
    """Another client writes values of its own into it: they are replaced."""
    def disturb():
        rotating.cluster.patch("secrets", SECRET, shop, {"stringData": {
            "user": "mallory", "password": "of-mallory-1", "more": "x"}})
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4
    data = rotating.cluster.get("secrets", SECRET, shop)["data"]
    assert "more" not in data
