# SPDX-License-Identifier: Apache-2.0
"""`steward uninstall`: afterwards everything can be deleted, and no deletion hangs."""

import os
import re

import pytest
from support import cluster as k8s
from support import databaseuser as dbu
from support import kustomize, wait
from support import steward as stw

NAMESPACE = "shop"
OTHERS = "example.com/other"


def with_finalizer(name, namespace=NAMESPACE):
    """A DatabaseUser with the finalizers of steward and of another controller."""
    user = dbu.manifest(name, namespace)
    user["metadata"]["finalizers"] = [dbu.FINALIZER, OTHERS]
    return user


@pytest.fixture(scope="module")
def abandoned(steward_binary):
    """A cluster of its own, as in the end nothing of steward is left in it.  Users are stored and
    config/default is installed; without a node steward does not run, so all webhook calls fail."""
    with k8s.of_its_own(f"gone-{os.getpid()}") as cluster:
        stw.install(cluster, steward_binary)
        cluster.create_namespace(NAMESPACE)
        cluster.apply([with_finalizer("ann"), with_finalizer("bob"),
                       dbu.manifest("col", NAMESPACE)])
        kustomize.apply(cluster, kustomize.CONFIG / "default")
        wait.until("the webhook to be shut", lambda: "failed calling webhook" in cluster.kubectl(
            "label", dbu.KIND, "ann", "-n", NAMESPACE, "a=b", "--dry-run=server", "--overwrite",
            check=False).stderr, 60)
        yield cluster


@pytest.fixture
def uninstall(steward_binary):
    """uninstall(cluster, *arguments)"""
    def call(cluster, *arguments):
        return k8s.run([steward_binary, "uninstall", "--kubeconfig", cluster.kubeconfig,
                        *arguments], check=False)
    return call


def users(cluster):
    """{name: (finalizers, whether it is being deleted)}"""
    return {u["metadata"]["name"]: (u["metadata"].get("finalizers", []),
                                    "deletionTimestamp" in u["metadata"])
            for u in cluster.list(dbu.KIND, NAMESPACE)}


HELD = ([dbu.FINALIZER, OTHERS], False)


def test_plan_without_yes_changes_nothing(abandoned, uninstall):
    plan = uninstall(abandoned, "--finalizers=release")
    assert plan.returncode == 0, plan.stderr
    assert "2 of 3 databaseusers have the finalizer" in plan.stdout
    assert plan.stdout.endswith("Nothing was done; `steward uninstall --finalizers=release --yes` "
                                "does it.\n")
    assert users(abandoned) == {"ann": HELD, "bob": HELD, "col": ([], False)}
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        assert abandoned.get(kind, name)


def test_finalizer_policy_is_required(abandoned, uninstall):
    result = uninstall(abandoned, "--yes")
    assert result.returncode == 2
    assert "--finalizers must say what happens to these objects" in result.stderr
    assert "With --finalizers=wait" in result.stdout
    assert "With --finalizers=release" in result.stdout
    assert abandoned.get(*stw.WEBHOOK_CONFIGURATIONS[0])


def test_wait_policy_times_out_without_steward(abandoned, uninstall):
    """The webhooks are removed, and objects without a finalizer can be deleted."""
    result = uninstall(abandoned, "--finalizers=wait", "--yes", "--timeout=2s")
    assert result.returncode == 1
    assert "2 objects are not cleaned up yet" in result.stderr
    assert "--finalizers=release" in result.stderr
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        assert not abandoned.get(kind, name)
    assert users(abandoned)["ann"] == ([dbu.FINALIZER, OTHERS], True)


def test_release_policy_removes_finalizers(abandoned, uninstall):
    done = uninstall(abandoned, "--finalizers=release", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "removed the finalizer from 2 objects" in done.stdout
    assert users(abandoned) == {"ann": ([OTHERS], True), "bob": ([OTHERS], True),
                                "col": ([], False)}
    assert uninstall(abandoned, "--yes").returncode == 0
    for name in ("ann", "bob"):  # the owner of the other finalizer removes it
        abandoned.patch(dbu.KIND, name, NAMESPACE, {"metadata": {"finalizers": None}})

    commands = re.findall(r"kubectl (delete .*)", done.stdout)
    assert [c.split()[1].split(",")[0] for c in commands] == ["namespace", "clusterrole", "crd",
                                                              "-k"]
    for command in commands[:-1]:
        abandoned.kubectl(*command.split(), "--timeout=90s", timeout=120)
    assert not abandoned.list("crd")
    assert not abandoned.get("namespace", stw.NAMESPACE)
    kustomize.delete(abandoned, kustomize.CONFIG / "default", "--ignore-not-found", "--timeout=90s")
    abandoned.kubectl("delete", "namespace", NAMESPACE, "--timeout=90s", timeout=120)


def test_running_leader_stops_the_release(installed, steward_binary, run_steward, namespace,
                                          uninstall):
    """It is not a pod of the Deployment here, so scaling that down does not stop it."""
    installed.apply(with_finalizer("dan", namespace))
    try:
        leader = run_steward("--leader-elect")
        wait.until("it to lead", lambda: leader.metric("leader_election_master_status") == 1, 40)
        result = uninstall(installed, "--finalizers=release", "--yes", "--timeout=3s")
        assert result.returncode == 1
        assert "still leads and would put finalizers back" in result.stderr
        assert leader.stop() == 0
        result = uninstall(installed, "--finalizers=release", "--yes", "--timeout=30s")
        assert result.returncode == 0, result.stderr
    finally:
        installed.patch(dbu.KIND, "dan", namespace, {"metadata": {"finalizers": None}})


@pytest.mark.oldest("finalizers, deletion of kinds with objects")
def test_wait_policy_lets_steward_clean_up(dbenv, shop, mariadb, uninstall):
    dbenv.create("eve", shop)
    assert mariadb.sql("SELECT 1 FROM mysql.user WHERE User = 'eve'") == [["1"]]
    result = uninstall(dbenv.cluster, "--finalizers=wait", "--yes", "--timeout=60s")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "and steward has cleaned up" in result.stdout
    assert dbenv.get("eve", shop) is None
    assert mariadb.sql("SELECT 1 FROM mysql.user WHERE User = 'eve'") == []


@pytest.mark.parametrize("arguments, text", [
    (["--finalizers=drop"], "--finalizers is wait or release"),
    (["now"], "it takes options only"),
    (["--kubeconfig", "/nowhere"], "/nowhere"),
])
def test_wrong_arguments_are_an_error(steward_binary, arguments, text):
    result = k8s.run([steward_binary, "uninstall", *arguments], check=False)
    assert result.returncode == 2
    assert text in result.stderr
