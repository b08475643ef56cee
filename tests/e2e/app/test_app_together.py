# SPDX-License-Identifier: Apache-2.0
"""An autoscaler, a changing podTemplate and restarts by two clients act on one Deployment at the
same time.  No change is lost, and steward never writes a number of pods."""

import threading

import pytest
from support import app, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

INPUTS, BY_HAND = "mycompany.com/inputs-hash", "kubectl.kubernetes.io/restartedAt"
ROUNDS = 12
SPEC = {
    "replicas": 2,
    "autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 9},
    "restartOnChange": {"enabled": True, "minIntervalSeconds": 3600},
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "token"}}}],
}


def template(value):
    """A podTemplate that differs by this value."""
    return {"metadata": {"annotations": {"example.com/round": f"{value}"}},
            "spec": {"containers": [{"name": "side", "image": f"registry.invalid/side:{value}"}]}}


def creds(namespace, value):
    """The Secret that the pods read."""
    return {"apiVersion": "v1", "kind": "Secret", "stringData": {"token": f"{value}"},
            "metadata": {"name": "creds", "namespace": namespace}}


def autoscaler(cluster, namespace, round_):
    """Plays an autoscaler, which writes the scale subresource."""
    count = 2 + round_ * 3 % 8
    cluster.patch("deployment", "web", namespace, {"spec": {"replicas": count}},
                  subresource="scale")
    return count


def restart_by_hand(cluster, namespace, round_):
    """What `kubectl rollout restart` writes."""
    cluster.patch("deployment", "web", namespace, {"spec": {"template": {"metadata": {
        "annotations": {BY_HAND: f"2026-01-01T00:00:{round_:02}Z"}}}}})


def change_template(cluster, namespace, round_):
    """Changes spec.podTemplate of the App."""
    cluster.patch(app.KIND, "web", namespace, {"spec": {"podTemplate": template(round_)}})


def change_secret(cluster, namespace, round_):
    """Changes the Secret, after which steward restarts the pods."""
    cluster.patch("secret", "creds", namespace, {"stringData": {"token": f"v{round_}"}})


def at_once(cluster, namespace, *clients):
    """Each client in a thread of its own, for all rounds."""
    failed = []

    def run(client):
        try:
            for round_ in range(ROUNDS):
                client(cluster, namespace, round_)
        except Exception as e:  # pylint: disable=broad-except
            failed.append((client.__name__, e))
    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    assert not failed and not any(t.is_alive() for t in threads), failed


def annotations(cluster, namespace):
    """Those of the Deployment's pod template."""
    found = app.deployment(cluster, "web", namespace)
    return found["spec"]["template"]["metadata"]["annotations"]


def inputs(cluster, namespace):
    """status.inputs of the App."""
    return cluster.get(app.KIND, "web", namespace)["status"].get("inputs", {})


def specs(cluster, namespace):
    """A list of all values of the Deployment's spec from now on; it grows."""
    found = app.deployment(cluster, "web", namespace)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments?fieldSelector=metadata.name=web"
    seen = [found["spec"]]

    def read():
        for kind, obj in cluster.api.watch(path, found["metadata"]["resourceVersion"]):
            if kind in ("ADDED", "MODIFIED"):
                seen.append(obj["spec"])
    threading.Thread(target=read, daemon=True).start()
    return seen


def steps(values):
    """The values without repetitions of the one before."""
    return [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]]


@pytest.mark.oldest("field managers of one Deployment")
def test_scaling_template_and_restarts_do_not_conflict(controller, installed, namespace):
    installed.apply([creds(namespace, "v"), app.manifest(
        "web", namespace, podTemplate=template("first"), **SPEC)])
    wait.until("the autoscaler", lambda: installed.get("hpa", "web", namespace))
    wait.until("the versions of the inputs", lambda: inputs(
        installed, namespace).get("hash"))
    seen = specs(installed, namespace)
    at_once(installed, namespace, autoscaler, restart_by_hand, change_template, change_secret)

    last, wanted = ROUNDS - 1, 2 + (ROUNDS - 1) * 3 % 8
    found = installed.wait_for(
        app.KIND, "web", namespace, lambda o: o["status"]["observedGeneration"]
        == o["metadata"]["generation"] and o["status"].get("desiredReplicas") == wanted,
        60, "the status of the last change")
    wait.until("every restart", lambda: {INPUTS, BY_HAND} <= set(
        annotations(installed, namespace)))
    wait.until("the last podTemplate", lambda: annotations(installed, namespace)[
        "example.com/round"] == f"{last}")
    wait.until("the restart in the status", lambda: annotations(installed, namespace)[INPUTS] ==
               inputs(installed, namespace).get("restartHash"))
    restarted = inputs(installed, namespace)
    assert restarted["hash"] == restarted["restartHash"] and "restarting" not in restarted
    assert annotations(installed, namespace)[BY_HAND] == f"2026-01-01T00:00:{last:02}Z"
    live = app.deployment(installed, "web", namespace)["spec"]
    assert live["replicas"] == wanted
    assert [c["image"] for c in live["template"]["spec"]["containers"] if c["name"] == "side"] == [
        f"registry.invalid/side:{last}"]

    # Each number that was seen is the first one or one of the autoscaler, in its order.
    replicas = steps([spec["replicas"] for spec in seen])
    assert replicas == [2] + [2 + r * 3 % 8 for r in range(1, ROUNDS)], replicas
    # One restart for the first change of the Secret; the later ones wait for the interval.
    hashes = steps([spec["template"]["metadata"]["annotations"].get(INPUTS) for spec in seen])
    assert hashes == [None, restarted["restartHash"]], hashes
    # The status is true: no pod runs, so it is not ready, and nothing counts as a fight or repair.
    assert condition(found, "Ready")["status"] == "False"
    assert not condition(found, "Stalled")
    assert "repairs" not in installed.get(app.KIND, "web", namespace)["status"]
