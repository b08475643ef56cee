# SPDX-License-Identifier: Apache-2.0
"""Pods that the API server refuses, until what they lack is there.  The ReplicaSet controller looks again
after waits that double to 17 minutes; an App and a MyWeb do not wait that long."""

import time

import pytest
from support import app, myweb, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

RETRIED = "steward.dev/pods-retried-at"
# The refusals after which the wait of the ReplicaSet controller is 5 ms * 2^18, more than 16 minutes.
REFUSALS = 19


@pytest.fixture
def priority_class(installed, namespace):
    """The name of a PriorityClass that a test creates."""
    name = f"late-{namespace}"
    yield name
    installed.kubectl("delete", "priorityclass", name, "--ignore-not-found")


def replica_set(cluster, name, namespace):
    """The one ReplicaSet of this Deployment: there was no rollout."""
    [one] = [r for r in cluster.list("replicaset", namespace)
             if r["metadata"]["ownerReferences"][0]["name"] == name]
    return one


def retried_at(cluster, name, namespace):
    """When and for what the Deployment was retried; None: never."""
    return cluster.get("deployment", name, namespace)["metadata"].get("annotations", {}).get(RETRIED)


def lengthen_wait(cluster, name, namespace):
    """Each change of the ReplicaSet makes its controller try at once, and doubles the wait after it."""
    found = replica_set(cluster, name, namespace)["metadata"]["name"]

    def refused():
        return sum(e.get("count") or 1 for e in cluster.list("event", namespace)
                   if e["reason"] == "FailedCreate" and e["involvedObject"]["name"] == found)
    for n in range(REFUSALS):
        before = refused()
        if before >= REFUSALS:
            return
        cluster.annotate("replicaset", found, namespace, {"example.com/look": f"{n}"})
        wait.until("the pod to be refused again", lambda least=before: refused() > least)


@pytest.mark.oldest("the ReplicaSet and the Deployment controller")
def test_refused_pods_are_retried_within_a_minute(controller, installed, namespace,
                                                  priority_class):
    """A PriorityClass, a ServiceAccount and a quota.  The Deployment gets an annotation, nothing else."""
    installed.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                     "metadata": {"name": "none", "namespace": namespace},
                     "spec": {"hard": {"pods": "0"}}})
    installed.wait_for("resourcequota", "none", namespace, lambda o: "hard" in o.get("status", {}))
    installed.apply([
        app.manifest("class", namespace, replicas=1, podTemplate={
            "spec": {"priorityClassName": priority_class}}),
        app.manifest("account", namespace, replicas=1, serviceAccountName="late"),
        myweb.manifest("quota", namespace, replicas=1)])
    kinds = {"class": app.KIND, "account": app.KIND, "quota": myweb.KIND}
    causes = {"class": "no PriorityClass with name", "account": 'serviceaccount "late" not found',
              "quota": "exceeded quota"}
    before = {}
    for name, kind in kinds.items():
        before[name] = installed.wait_for(kind, name, namespace,
                                          lambda o: condition(o, "Stalled"))
        assert causes[name] in condition(before[name], "Stalled")["message"]
        assert "tried again within 1 minute" in condition(before[name], "Stalled")["message"]
        lengthen_wait(installed, name, namespace)
    for name, kind in kinds.items():
        retried = wait.until("a retry", lambda name=name: retried_at(installed, name, namespace), 75)
        wait.until("the ReplicaSet to be tried again", lambda name=name, at=retried: replica_set(
            installed, name, namespace)["metadata"]["annotations"].get(RETRIED) == at)
        installed.wait_for("deployment", name, namespace, lambda o: o["status"].get(
            "observedGeneration") == o["metadata"]["generation"])
    # A retry that changes nothing leaves the status as it is.
    wait.stays("the status not to be written", lambda: all(
        installed.get(kind, name, namespace)["metadata"]["resourceVersion"] ==
        before[name]["metadata"]["resourceVersion"] for name, kind in kinds.items()), 3)
    retried = retried_at(installed, "class", namespace)
    installed.annotate(app.KIND, "class", namespace, {"steward.dev/reconcile-at": "1"})
    wait.until("a retry that is asked for", lambda: retried_at(
        installed, "class", namespace) != retried, 10)
    installed.apply([
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
         "metadata": {"name": priority_class}, "value": 5},
        {"apiVersion": "v1", "kind": "ServiceAccount",
         "metadata": {"name": "late", "namespace": namespace}}])
    installed.delete("resourcequota", "none", namespace)
    start = time.monotonic()
    for name in kinds:
        app.wait_pods(installed, name, namespace, 1)
    assert time.monotonic() - start < 65
    for name, kind in kinds.items():
        installed.wait_for(kind, name, namespace, lambda o: not condition(o, "Stalled"))
        assert replica_set(installed, name, namespace)["metadata"]["annotations"][
            "deployment.kubernetes.io/revision"] == "1"
