# SPDX-License-Identifier: Apache-2.0
"""Developers read from the status which targets their namespace may use, which databases, and whether
the server answers, and learn nothing of the targets of others."""

import json
import re

import pytest

from support import databaseuser as dbu
from support import incident, net, wait
from support import steward as stw

FIRST = "first-Passw0rd-1"


@pytest.fixture
def down(mariadb):
    """A target whose server is not there."""
    return {**mariadb.target("down"), "port": net.free_port()}


@pytest.fixture
def several(scene, mariadb, shop, down):
    """A target of this namespace, two of others, and one that is down; afterwards only the first."""
    main = mariadb.target("main", default=True, allowedDatabases=["shop", "{namespace}_*"],
                          allowCreateDatabases=["{namespace}_new"], allowedNamespaces=[shop])
    for name in ("down", "more"):
        scene.admin_secret(name, mariadb.admin_password)
    scene.write_targets(main, mariadb.target("theirs", allowedNamespaces=["elsewhere"],
                                             allowedDatabases=["vault"]),
                        mariadb.target("nobodys", allowedNamespaces=[]), down)
    yield shop
    scene.forget(shop)
    scene.write_targets(mariadb.target("main"))


def mounted(scene):
    """Writes the ConfigMap whose mounted file steward's configuration is."""
    scene.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
                         "metadata": {"name": "steward-config", "namespace": stw.NAMESPACE},
                         "data": {"steward.yaml": scene.config.read_text("utf-8")}})


def targets(scene, namespace, name="app"):
    """The targets in the status of an object, by their names."""
    found = scene.get(name, namespace).get("status", {}).get("targets", [])
    return {one["name"]: one for one in found}


@pytest.mark.oldest("what the status of a DatabaseUser has")
def test_status_lists_targets_of_the_namespace(scene, mariadb, several, down):
    user = scene.create("app", several, FIRST, hosts=["localhost"])
    seen = user["status"]["targets"]
    assert seen[1].pop("state") in ("Unknown", "Unreachable")  # the sweep may have asked it already
    assert seen == [
        {"name": "main", "engine": "mariadb", "state": "Reachable", "default": True,
         "databases": ["shop", f"{several}_*"], "createDatabases": [f"{several}_new"]},
        {"name": "down", "engine": "mariadb", "databases": ["*"]}]
    told = json.dumps(user["status"])
    for word in ("theirs", "nobodys", "vault", mariadb.admin_password,
                 mariadb.target("main")["admin"]["user"], f"{down['port']}",
                 f"{mariadb.target('main')['port']}"):
        assert word not in told, word

    # Another object of the namespace finds that the server does not answer.
    scene.cluster.apply([dbu.secret("late", several, FIRST),
                         dbu.manifest("late", several, target="down")])
    scene.wait_condition("late", several, "TargetReachable", "ConnectFailed", "CircuitOpen")
    assert targets(scene, several, "late")["down"]["state"] == "Unreachable"
    scene.poke("app", several)
    wait.until("the state in the other object", lambda: targets(scene, several)[
        "down"]["state"] == "Unreachable")
    assert targets(scene, several)["main"]["state"] == "Reachable"


def test_forbidden_target_lists_the_allowed_ones(scene, several):
    """An object that was stored without the webhook says which targets it may use instead."""
    scene.cluster.apply([dbu.secret("app", several, FIRST),
                         dbu.manifest("app", several, target="theirs")])
    scene.wait_condition("app", several, "Stalled", "InvalidSpec")
    assert set(targets(scene, several)) == {"main", "down"}


def test_unknown_target_lists_the_allowed_ones(scene, several):
    scene.cluster.apply([dbu.secret("app", several, FIRST),
                         dbu.manifest("app", several, target="nowhere")])
    scene.wait_condition("app", several, "TargetReachable", "TargetNotFound")
    assert set(targets(scene, several)) == {"main", "down"}


def test_changed_target_list_reaches_every_status(scene, mariadb, several):
    """Every object follows at once, and an answer that is known stays after a restart of steward."""
    scene.create("app", several, FIRST)
    scene.write_targets(mariadb.target("main", allowedNamespaces=[several]),
                        mariadb.target("more"))
    wait.until("the new list", lambda: set(targets(scene, several)) == {"main", "more"})
    scene.create("other", several, FIRST, target="more")
    scene.poke("app", several)
    wait.until("the answer", lambda: targets(scene, several)["more"]["state"] == "Reachable")
    scene.delete("other", several)
    scene.steward.stop()
    scene.steward.start()
    scene.patch("app", several, hosts=["localhost"])
    scene.wait_ready("app", several)
    assert targets(scene, several)["more"]["state"] == "Reachable"
    with incident.played("StewardConfigRejected", scene.cluster) as played:
        played.before(scene.steward.metrics_text())
        scene.write_targets({**mariadb.target("main"), "prot": 5})
        played.fires(scene.steward.metrics_text)
        mounted(scene)
        shown = played.kubectl("get configmap").splitlines()
        [[line, column]] = re.findall(r"yaml:(\d+):(\d+): targets\[0\]\.prot",
                                      scene.steward.log_path.read_text("utf-8"))
        assert shown[int(line) - 1][int(column) - 1:].startswith("5")
        scene.poke("app", several)
        assert set(targets(scene, several)) == {"main", "more"}  # the old list
        scene.write_targets(mariadb.target("main", allowedNamespaces=[several]))
        wait.until("the shorter list", lambda: set(targets(scene, several)) == {"main"})
        played.ends(scene.steward.metrics_text)
    scene.cluster.delete("configmap", "steward-config", stw.NAMESPACE)


def test_long_target_lists_are_truncated(scene, mariadb, several):
    names = [f"t{i:02}" for i in range(30)]
    many = [f"{'x' * 50}{i}" for i in range(40)] + ["{namespace}" * 22]
    scene.write_targets(mariadb.target("main", allowedDatabases=many),
                        *(mariadb.target(name) for name in names))
    scene.create("app", several, FIRST, grants=[])
    status = scene.get("app", several)["status"]
    assert len(status["targets"]) == 20 and status["targetsLeftOut"] == 11
    assert status["targets"][0]["databases"] == many[:10]
    assert status["targets"][0]["leftOut"] == 31
