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
def several(dbenv, mariadb, shop, down):
    """A target of this namespace, two of others, and one that is down; afterwards only the first."""
    main = mariadb.target("main", default=True, allowedDatabases=["shop", "{namespace}_*"],
                          allowCreateDatabases=["{namespace}_new"], allowedNamespaces=[shop])
    for name in ("down", "more"):
        dbenv.admin_secret(name, mariadb.admin_password)
    dbenv.write_targets(main, mariadb.target("theirs", allowedNamespaces=["elsewhere"],
                                             allowedDatabases=["vault"]),
                        mariadb.target("nobodys", allowedNamespaces=[]), down)
    yield shop
    dbenv.forget(shop)
    dbenv.write_targets(mariadb.target("main"))


def mounted(dbenv):
    """Writes the ConfigMap whose mounted file steward's configuration is."""
    dbenv.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
                         "metadata": {"name": "steward-config", "namespace": stw.NAMESPACE},
                         "data": {"steward.yaml": dbenv.config.read_text("utf-8")}})


def targets(dbenv, namespace, name="app"):
    """The targets in the status of an object, by their names."""
    found = dbenv.get(name, namespace).get("status", {}).get("targets", [])
    return {one["name"]: one for one in found}


@pytest.mark.oldest("what the status of a DatabaseUser has")
def test_status_lists_targets_of_the_namespace(dbenv, mariadb, several, down):
    user = dbenv.create("app", several, FIRST, hosts=["localhost"])
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
    dbenv.cluster.apply([dbu.secret("late", several, FIRST),
                         dbu.manifest("late", several, target="down")])
    dbenv.wait_condition("late", several, "TargetReachable", "ConnectFailed", "CircuitOpen")
    assert targets(dbenv, several, "late")["down"]["state"] == "Unreachable"
    dbenv.poke("app", several)
    wait.until("the state in the other object", lambda: targets(dbenv, several)[
        "down"]["state"] == "Unreachable")
    assert targets(dbenv, several)["main"]["state"] == "Reachable"


def test_forbidden_target_lists_the_allowed_ones(dbenv, several):
    """An object that was stored without the webhook says which targets it may use instead."""
    dbenv.cluster.apply([dbu.secret("app", several, FIRST),
                         dbu.manifest("app", several, target="theirs")])
    dbenv.wait_condition("app", several, "Stalled", "InvalidSpec")
    assert set(targets(dbenv, several)) == {"main", "down"}


def test_unknown_target_lists_the_allowed_ones(dbenv, several):
    dbenv.cluster.apply([dbu.secret("app", several, FIRST),
                         dbu.manifest("app", several, target="nowhere")])
    dbenv.wait_condition("app", several, "TargetReachable", "TargetNotFound")
    assert set(targets(dbenv, several)) == {"main", "down"}


def test_changed_target_list_reaches_every_status(dbenv, mariadb, several):
    """Every object follows at once, and an answer that is known stays after a restart of steward."""
    dbenv.create("app", several, FIRST)
    dbenv.write_targets(mariadb.target("main", allowedNamespaces=[several]),
                        mariadb.target("more"))
    wait.until("the new list", lambda: set(targets(dbenv, several)) == {"main", "more"})
    dbenv.create("other", several, FIRST, target="more")
    dbenv.poke("app", several)
    wait.until("the answer", lambda: targets(dbenv, several)["more"]["state"] == "Reachable")
    dbenv.delete("other", several)
    dbenv.steward.stop()
    dbenv.steward.start()
    dbenv.patch("app", several, hosts=["localhost"])
    dbenv.wait_ready("app", several)
    assert targets(dbenv, several)["more"]["state"] == "Reachable"
    with incident.follow("StewardConfigRejected", dbenv.cluster) as runbook:
        runbook.before(dbenv.steward.metrics_text())
        dbenv.write_targets({**mariadb.target("main"), "prot": 5})
        runbook.fires(dbenv.steward.metrics_text)
        mounted(dbenv)
        shown = runbook.kubectl("get configmap").splitlines()
        [[line, column]] = re.findall(r"yaml:(\d+):(\d+): targets\[0\]\.prot",
                                      dbenv.steward.log_path.read_text("utf-8"))
        assert shown[int(line) - 1][int(column) - 1:].startswith("5")
        dbenv.poke("app", several)
        assert set(targets(dbenv, several)) == {"main", "more"}  # the old list
        dbenv.write_targets(mariadb.target("main", allowedNamespaces=[several]))
        wait.until("the shorter list", lambda: set(targets(dbenv, several)) == {"main"})
        runbook.ends(dbenv.steward.metrics_text)
    dbenv.cluster.delete("configmap", "steward-config", stw.NAMESPACE)


def test_long_target_lists_are_truncated(dbenv, mariadb, several):
    names = [f"t{i:02}" for i in range(30)]
    many = [f"{'x' * 50}{i}" for i in range(40)] + ["{namespace}" * 22]
    dbenv.write_targets(mariadb.target("main", allowedDatabases=many),
                        *(mariadb.target(name) for name in names))
    dbenv.create("app", several, FIRST, grants=[])
    status = dbenv.get("app", several)["status"]
    assert len(status["targets"]) == 20 and status["targetsLeftOut"] == 11
    assert status["targets"][0]["databases"] == many[:10]
    assert status["targets"][0]["leftOut"] == 31
