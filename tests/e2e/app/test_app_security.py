# SPDX-License-Identifier: Apache-2.0
"""What pods of Apps may do, and how the Pod Security label of a namespace changes that."""

import pytest
from support import app, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

LABEL = "pod-security.kubernetes.io/enforce"
BASELINE = {"seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED = {**BASELINE, "allowPrivilegeEscalation": False, "runAsNonRoot": True,
              "capabilities": {"drop": ["ALL"]}}


def enforce(cluster, namespace, level):
    """Sets or removes the label."""
    cluster.patch("namespace", namespace, None, {"metadata": {"labels": {LABEL: level}}})


def context(cluster, namespace, name="web"):
    """securityContext of the container in the Deployment."""
    [container] = app.deployment(cluster, name, namespace)["spec"]["template"]["spec"]["containers"]
    return container.get("securityContext")


@pytest.mark.oldest("metadata of Namespaces")
def test_security_profile_follows_the_namespace_label(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)
    app.create_ready(installed, "strict", namespace, securityProfile="Restricted")
    assert context(installed, namespace) == BASELINE
    assert context(installed, namespace, "strict") == RESTRICTED

    enforce(installed, namespace, "restricted")
    wait.until("restricted pods", lambda: context(installed, namespace) == RESTRICTED)
    found = installed.wait_for(app.KIND, "web", namespace,
                               lambda o: o["status"].get("securityProfile") == "Restricted", 30)
    assert found["status"].get("repairs", 0) == 0  # no other client has changed anything

    enforce(installed, namespace, None)
    wait.until("baseline pods", lambda: context(installed, namespace) == BASELINE)
    assert context(installed, namespace, "strict") == RESTRICTED


@pytest.mark.oldest("metadata of Namespaces")
def test_privileged_app_stalls_in_unprivileged_namespace(controller, installed, namespace):
    """Stored while no webhook asked."""
    installed.apply(app.manifest("web", namespace, securityContext={"privileged": True}))
    found = app.wait_condition(installed, "web", namespace, "Ready", "InvalidSpec")
    assert "spec.securityContext.privileged: Forbidden" in found["message"]
    assert installed.get("deployment", "web", namespace) is None

    enforce(installed, namespace, "privileged")
    app.wait_ready(installed, "web", namespace)
    assert context(installed, namespace)["privileged"] is True

    enforce(installed, namespace, "baseline")
    app.wait_condition(installed, "web", namespace, "Ready", "InvalidSpec")
    assert installed.get("deployment", "web", namespace) is not None


def test_children_carry_the_app_label(controller, installed, namespace):
    app.create_ready(installed, "web", namespace)
    made = app.children(installed, "web", namespace)
    for kind in ("configmap", "deployment", "service"):
        assert made[kind]["metadata"]["labels"]["app"] == "web"
    spec = made["deployment"]["spec"]
    assert spec["template"]["metadata"]["labels"]["app"] == "web"
    # The selector cannot be changed in Deployments that are there.
    assert "app" not in spec["selector"]["matchLabels"]


@pytest.mark.usefixtures("controller")
def test_forbidden_capability_is_named_in_the_condition(installed, namespace):
    installed.apply(app.manifest("web", namespace, securityContext={
        "capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}))
    found = installed.wait_for(
        app.KIND, "web", namespace,
        lambda o: condition(o, "Stalled").get("reason") == "InvalidSpec", 30)
    assert "capabilities.add[1]" in condition(found, "Ready")["message"]
    assert found["status"]["phase"] == "Failed"
