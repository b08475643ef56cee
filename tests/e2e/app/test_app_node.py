# SPDX-License-Identifier: Apache-2.0
"""Running pods of Apps: failing probes, missing images, and what the status reports."""

import pytest
from support import app, net, paths, wait
from support import cluster as k8s
from support.cluster import condition

pytestmark = [pytest.mark.node,
              pytest.mark.oldest("the kubelet's states of containers, probes")]

IMAGE = "nginx:1.22"
# The image runs as root, and listens on a port below 1024.
ROOT = {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}


def web(namespace, **spec):
    """An App called "web"."""
    return {"apiVersion": "mycompany.com/v1", "kind": "App",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"image": IMAGE, "port": 80, "resources": app.RESOURCES,
                     "securityContext": ROOT, "healthCheck": {"path": "/", "periodSeconds": 1},
                     "service": {"type": "NodePort"}, **spec}}


def fetch(cluster, namespace):
    """GET of the node port."""
    port = cluster.get("service", "web", namespace)["spec"]["ports"][0]["nodePort"]
    return net.http_get(f"http://127.0.0.1:{port}/")


def wait_degraded(cluster, namespace, *reasons, seconds=90):
    """Until the App is degraded for one of these reasons and not Ready; returns the condition.  A
    container without a probe is Ready for a moment after each restart."""
    found = cluster.wait_for(
        app.KIND, "web", namespace,
        lambda o: condition(o, "Degraded").get("reason") in reasons
        and condition(o, "Ready")["status"] == "False",
        seconds, f"the App to be degraded for {reasons} and not Ready")
    assert condition(found, "Degraded")["message"] in condition(found, "Ready")["message"]
    return condition(found, "Degraded")


def test_app_serves_and_survives_a_bad_update(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace))
    ready = app.wait_ready(cluster, "web", namespace, 90)
    assert ready["status"]["phase"] == "Running"
    wait.until("the app to answer", lambda: fetch(cluster, namespace)[0] == 200, 30)
    cluster.kubectl("wait", app.KIND, "web", "-n", namespace, "--for=condition=Ready",
                    "--timeout=10s")
    cluster.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=10s")

    cluster.apply(web(namespace, image="nowhere:1"))
    found = wait_degraded(cluster, namespace, "ImagePullBackOff")
    assert 'cannot pull image "nowhere:1"' in found["message"]
    now = cluster.get(app.KIND, "web", namespace)
    assert condition(now, "Available")["status"] == "True"
    assert now["status"]["lastGood"]["image"] == IMAGE
    assert fetch(cluster, namespace)[0] == 200

    cluster.apply(web(namespace, replicas=2, config={"environment": {"GREETING": "hello"}}))
    app.wait_ready(cluster, "web", namespace, 90)
    [first, _] = app.pods(cluster, "web", namespace)
    seen = cluster.kubectl("exec", first["metadata"]["name"], "-n", namespace, "--", "sh", "-c",
                           "echo $GREETING $LOG_LEVEL $PORT").stdout
    assert seen.split() == ["hello", "info", "80"]
    cluster.kubectl("scale", app.KIND, "web", "-n", namespace, "--replicas=1")
    app.wait_ready(cluster, "web", namespace, 60)


def test_failing_probe_is_reported(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, healthCheck={"path": "/missing", "periodSeconds": 1}))
    found = cluster.wait_for(
        app.KIND, "web", namespace,
        lambda o: "runs but is not ready" in condition(o, "Ready").get("message", ""), 60)
    assert condition(found, "ServiceReady")["reason"] == "NoEndpoints"
    # With liveness, the container is restarted repeatedly.
    cluster.apply(web(namespace, terminationGracePeriodSeconds=1, healthCheck={
        "path": "/missing", "periodSeconds": 1, "failureThreshold": 1, "liveness": True}))
    wait_degraded(cluster, namespace, "CrashLoopBackOff")
    cluster.apply(web(namespace))
    found = app.wait_ready(cluster, "web", namespace, 90)
    assert condition(found, "Degraded")["status"] == "False"


def test_crashing_container_is_reported(steward, cluster, namespace):
    """nginx cannot write its pid file."""
    assert steward.running()
    cluster.apply(web(namespace, securityContext={**ROOT, "readOnlyRootFilesystem": True}))
    found = wait_degraded(cluster, namespace, "CrashLoopBackOff")
    assert "with exit code 1" in found["message"]


def test_article_manifest_runs(steward, cluster):
    """nginx:latest, as root and on port 80, as written; only that the node has no registry is made up
    for: the image is there, and must not be pulled."""
    assert steward.running()
    cluster.kubectl("apply", "-f", str(paths.TOP / "tests" / "data" / "seeds" / "app.yaml"))
    try:
        wait.until("the Deployment", lambda: cluster.get("deployment", "test-app", "default"))
        cluster.patch("deployment", "test-app", "default", [
            {"op": "replace", "path": "/spec/template/spec/containers/0/imagePullPolicy",
             "value": "IfNotPresent"}])
        ready = app.wait_ready(cluster, "test-app", "default", 120)
        assert ready["status"]["phase"] == "Running"
        assert ready["status"]["availableReplicas"] == 3
        assert ready["status"]["securityProfile"] == "Baseline"
        pods = cluster.list("pod", "default", "app=test-app")
        running = [p for p in pods if "deletionTimestamp" not in p["metadata"]]
        assert len(running) == 3
        assert all(p["spec"]["containers"][0]["image"] == "nginx:latest" for p in running)
        assert net.http_get(f"http://{running[0]['status']['podIP']}:80/")[0] == 200
    finally:
        cluster.delete(app.KIND, "test-app", "default")


def test_root_image_fails_under_restricted_profile(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, securityContext={}, securityProfile="Restricted"))
    found = wait_degraded(cluster, namespace, "CreateContainerConfigError")
    assert "root" in found["message"]


def test_missing_secret_is_reported_until_created(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, config={"databaseUrlSecretRef": {"name": "db", "key": "url"}}))
    found = wait_degraded(cluster, namespace, "SecretNotFound")
    assert 'secret "db" not found' in found["message"]
    assert condition(cluster.get(app.KIND, "web", namespace), "ConfigSynced")["reason"] == \
        "SecretNotFound"
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db",
                                                                      "namespace": namespace},
                   "stringData": {"url": "postgres://db/shop"}})
    found = app.wait_ready(cluster, "web", namespace, 120)
    assert condition(found, "ConfigSynced")["status"] == "True"


def test_out_of_memory_kill_is_reported(steward, cluster, namespace, tmp_path):
    """tail buffers the last line, and /dev/zero is one endless line."""
    assert steward.running()
    tar = tmp_path / "greedy.tar"
    k8s.cluster_command(cluster.name, "pack", "--user=65532", "greedy:1", tar,
                        "/usr/bin/tail", "/dev/zero")
    k8s.cluster_command(cluster.name, "image", tar)
    cluster.apply(web(namespace, image="greedy:1", healthCheck=None, securityContext={},
                      resources={"limits": {"memory": "24Mi"}}))
    found = wait_degraded(cluster, namespace, "OOMKilled")
    assert "more memory than its limit" in found["message"]


def test_unschedulable_memory_request_is_reported(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, resources={"requests": {"memory": "900Gi"}}))
    found = wait_degraded(cluster, namespace, "Unschedulable")
    assert "Insufficient memory" in found["message"]
