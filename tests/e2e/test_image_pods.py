# SPDX-License-Identifier: Apache-2.0
"""steward from the image of a release in pods, installed as the README shows."""

import pytest

from support import net, wait
from support.cluster import condition

pytestmark = pytest.mark.node


def test_image_is_loaded_under_another_name(cluster, image, namespace):
    """With `scripts/cluster image TAR NAME:TAG`, which gives two versions different names."""
    cluster.component("image", image[0], "steward:renamed")
    cluster.apply({"apiVersion": "v1", "kind": "Pod",
                   "metadata": {"name": "renamed", "namespace": namespace},
                   "spec": {"restartPolicy": "Never", "containers": [
                       {"name": "steward", "image": "steward:renamed", "imagePullPolicy": "Never",
                        "args": ["version"]}]}})
    cluster.wait_for("pod", "renamed", namespace,
                     lambda o: o["status"].get("phase") == "Succeeded", 60)


def web(name, namespace, **spec):
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"image": "nginx:1.22", "pageContentHtml": "<p>from a pod", **spec}}


@pytest.mark.oldest("the kubelet runs the image, webhooks by a Service")
def test_admission_and_controllers_work_from_pods(in_pods, namespace):
    cluster = in_pods.cluster

    def refused():
        result = cluster.apply(web("bad", namespace, nodePortNumber=80), check=False)
        return "must be 0 or between 30000 and 32767" in result.stderr
    wait.until("a bad MyWeb to be refused", refused, 30, every=0.5)
    cluster.apply(web("good", namespace))
    found = cluster.wait_for("myweb", "good", namespace,
                             lambda o: condition(o, "Ready").get("status") == "True", 90)
    port = found["status"]["nodePort"]
    wait.until("the page", lambda: net.http_get(f"http://127.0.0.1:{port}/") ==
               (200, "<p>from a pod"), 30, every=0.2)


@pytest.mark.oldest("Leases of pods")
def test_one_of_two_replicas_leads(in_pods):
    assert in_pods.leader() in in_pods.names()
    assert len(in_pods.names()) == 2
