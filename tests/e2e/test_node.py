# SPDX-License-Identifier: Apache-2.0
"""Running pods: the node port serves the page, and follows the spec of the MyWeb."""

import os
import pathlib
import subprocess

import pytest

from runner import process
from support import cluster as k8s
from support import net, paths, wait
from support.cluster import condition

pytestmark = [pytest.mark.node,
              pytest.mark.oldest("pods, node ports, names of Services")]

IMAGE = "nginx:1.22"


def web(namespace, page, **spec):
    """A MyWeb called "page"."""
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
            "metadata": {"name": "page", "namespace": namespace},
            "spec": {"image": IMAGE, "pageContentHtml": page, **spec}}


def wait_ready(cluster, namespace):
    """The MyWeb, once it is complete in its current generation."""
    def complete(obj):
        status = obj.get("status", {})
        return (status.get("completed") and condition(obj, "Ready").get("status") == "True"
                and status.get("observedGeneration") == obj["metadata"]["generation"])
    return cluster.wait_for("myweb", "page", namespace, complete, 90, "the MyWeb to be complete")


def wait_page(port, text, looks=1):
    """Until the node port returns this page `looks` times in a row."""
    wait.until(f"{text!r} on node port {port}", lambda: all(
        net.http_get(f"http://127.0.0.1:{port}/") == (200, text) for _ in range(looks)), 60, every=0.2)


def test_page_is_served_and_rolled(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, "<p>first"))
    port = wait_ready(cluster, namespace)["status"]["nodePort"]
    wait_page(port, "<p>first")
    cluster.apply(web(namespace, "<p>second", replicas=2))
    status = wait_ready(cluster, namespace)["status"]
    assert (status["nodePort"], status["availableReplicas"]) == (port, 2)
    wait_page(port, "<p>second", looks=10)


def test_second_node_of_a_network_is_refused(cluster):
    """Of another cluster it is refused before anything is started."""
    if not cluster.name:
        pytest.skip("the cluster is not one of scripts/cluster")
    name = f"second-{os.getpid()}"
    refused = k8s.cluster_command(name, "up", "--node", check=False)
    assert refused.returncode != 0
    assert f"cluster '{cluster.name}' has a node, and this network can have one node only" in refused.stderr
    assert not k8s.cluster_command("", "list").stdout.count(name)


def test_node_of_another_network_is_restored_there(cluster):
    """Its bridge ends with it, also when `down` is called in another network, whose node stays."""
    name = f"elsewhere-{os.getpid()}"
    network = process.new_network()
    inside = ["nsenter", f"--net=/proc/self/fd/{network}", "--"]

    def bridges():
        return subprocess.run([*inside, "ip", "-json", "link", "show", "type", "bridge"], pass_fds=[network],
                              check=True, capture_output=True, text=True).stdout
    try:
        subprocess.run([*inside, paths.SCRIPTS / "cluster", "up", "--node", "--name", name],
                       pass_fds=[network], check=True, timeout=300)
        assert "stw" in bridges()
        k8s.cluster_command(name, "down")
        assert "stw" not in bridges()
        assert cluster.list("node")
    finally:
        k8s.cluster_command(name, "down")
        os.close(network)


def test_requested_node_port_is_used(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, "<p>here", nodePortNumber=30012))
    wait_ready(cluster, namespace)
    wait_page(30012, "<p>here")
    row = cluster.kubectl("get", "myweb", "page", "-n", namespace).stdout.splitlines()[1].split()
    assert row[:5] == ["page", IMAGE, "30012", "true", "True"]


def test_pods_that_cannot_start_are_reported(steward, cluster, namespace):
    assert steward.running()
    cluster.apply(web(namespace, "<p>x") | {"spec": {"image": "nowhere:1", "pageContentHtml": "x"}})
    found = cluster.wait_for(
        "myweb", "page", namespace,
        lambda o: condition(o, "DeploymentAvailable").get("status") == "False", 30)
    assert found["status"]["completed"] is False
    assert condition(found, "Ready")["status"] == "False"
    assert "0 are available" in condition(found, "Ready")["message"]
    cluster.apply(web(namespace, "<p>mended"))
    wait_page(wait_ready(cluster, namespace)["status"]["nodePort"], "<p>mended")


def test_volume_folder_is_deleted_with_its_claim(cluster, namespace):
    """The node's default StorageClass: the folder of a volume is deleted with its claim."""
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                   "metadata": {"name": "data", "namespace": namespace},
                   "spec": {"accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}}}})
    claim = cluster.wait_for("pvc", "data", namespace,
                             lambda o: o["status"].get("phase") == "Bound", 20)
    volume = cluster.get("pv", claim["spec"]["volumeName"])
    folder = pathlib.Path(volume["spec"]["hostPath"]["path"])
    (folder / "file").write_text("kept")
    cluster.delete("pvc", "data", namespace)
    wait.until("volume and folder to be gone", lambda: not folder.exists() and
               cluster.get("pv", volume["metadata"]["name"]) is None, 20)
