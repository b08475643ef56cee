# SPDX-License-Identifier: Apache-2.0
"""A MyWeb's three children: created, updated and deleted with it."""

import re

import pytest
from support import myweb
from support import steward as stw
from support import wait
from support.cluster import condition

MANAGED = {"app.kubernetes.io/name": "myweb", "app.kubernetes.io/component": "web",
           "app.kubernetes.io/managed-by": "steward", "app.kubernetes.io/version": "1.0"}


@pytest.mark.oldest("server-side apply")
def test_myweb_is_complete_with_few_requests(controller, installed, namespace):
    web = myweb.create_settled(installed, "web", namespace)
    installed.wait_event("web", namespace, "Created", "ConfigMap, Deployment and Service")
    made = stw.wait_requests(installed, namespace, 5)
    assert len(made) <= 6, made
    assert all(status in (200, 201) for _, _, status in made), made

    status = web["status"]
    assert [c["type"] for c in status["conditions"]] == [
        "Ready", "ConfigMapSynced", "DeploymentAvailable", "ServiceSynced", "NodePortAllocated"]
    assert all(c["status"] == "True" and c["observedGeneration"] == 1 for c in status["conditions"])
    assert condition(web, "Ready")["reason"] == "Completed"
    assert re.fullmatch("[0-9a-f]{32}", status["contentHash"])
    assert status["url"] == f":{status['nodePort']}"
    assert 30000 <= status["nodePort"] <= 32767


@pytest.mark.oldest("defaults of the server")
def test_children_match_the_spec(controller, installed, namespace):
    web = myweb.create_settled(installed, "web", namespace, pageContentHtml="<h1>hi \u20ac</h1>")
    found = myweb.children(installed, "web", namespace)
    for child in found.values():
        labels = child["metadata"]["labels"]
        assert {**labels, **MANAGED} == labels
        assert labels["app.kubernetes.io/instance"] == "web"
        [owner] = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("MyWeb", web["metadata"]["uid"])
        assert owner["controller"] and owner["blockOwnerDeletion"]
    assert found["configmap"]["data"] == {"index.html": "<h1>hi \u20ac</h1>"}
    selector = {"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "web"}
    assert found["deployment"]["spec"]["selector"]["matchLabels"] == selector
    assert found["service"]["spec"]["selector"] == selector
    pod = found["deployment"]["spec"]["template"]
    assert pod["metadata"]["labels"]["app"] == "web"
    [container] = pod["spec"]["containers"]
    [mount] = container["volumeMounts"]
    assert mount["mountPath"] == "/usr/share/nginx/html" and "subPath" not in mount


def test_empty_page_equals_absent_page(controller, installed, namespace):
    """An explicit empty page is the same as an absent one."""
    web = myweb.create_settled(installed, "web", namespace, pageContentHtml="")
    assert web["spec"]["pageContentHtml"] == ""
    assert installed.get("configmap", "web", namespace)["data"] == {"index.html": ""}


@pytest.mark.oldest("server-side apply, defaults of the server")
def test_settled_myweb_causes_no_writes(controller, installed, namespace):
    for n in range(5):
        myweb.create_settled(installed, f"web{n}", namespace)
    # The events may still be pending.
    for n in range(5):
        installed.wait_event(f"web{n}", namespace, "Created")
    before = stw.quiet_requests(installed, namespace)
    # A reconcile of each of them, as in a resync.
    runs = controller.metric("controller_runtime_reconcile_total")
    for n in range(5):
        installed.annotate(myweb.KIND, f"web{n}", namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("five passes", lambda: controller.metric("controller_runtime_reconcile_total") >=
               runs + 5)
    wait.stays("no request", lambda: stw.requests(installed, namespace) == before, 5, every=0.5)


@pytest.mark.oldest("server-side apply")
def test_spec_changes_reach_the_children(controller, installed, namespace):
    web = myweb.create_settled(installed, "web", namespace)
    template = installed.get("deployment", "web", namespace)["spec"]["template"]
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"pageContentHtml": "second"}})
    after = myweb.wait_settled(installed, "web", namespace)
    assert after["status"]["contentHash"] != web["status"]["contentHash"]
    assert installed.get("configmap", "web", namespace)["data"]["index.html"] == "second"
    rolled = installed.get("deployment", "web", namespace)["spec"]["template"]
    assert rolled["metadata"]["annotations"] != template["metadata"]["annotations"]
    installed.wait_event("web", namespace, "Updated", "ConfigMap and Deployment")
    assert "repairs" not in after["status"]

    installed.patch(myweb.KIND, "web", namespace, {"spec": {"contentUpdate": "Live"}})
    myweb.wait_settled(installed, "web", namespace)
    live = installed.get("deployment", "web", namespace)["spec"]["template"]
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"pageContentHtml": "third"}})
    myweb.wait_settled(installed, "web", namespace)
    assert installed.get("configmap", "web", namespace)["data"]["index.html"] == "third"
    assert installed.get("deployment", "web", namespace)["spec"]["template"] == live


@pytest.mark.oldest("pruning by server-side apply")
def test_fields_removed_from_the_spec_leave_the_children(controller, installed, namespace):
    myweb.create_settled(installed, "web", namespace, securityContext={"runAsUser": 101},
                         resources={"limits": {"memory": "1024Mi"}, "requests": {"cpu": "1000m"}})
    [before] = installed.get("deployment", "web", namespace)["spec"]["template"]["spec"]["containers"]
    assert before["securityContext"] == {"runAsUser": 101}
    assert before["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}}
    installed.patch(myweb.KIND, "web", namespace,
                    {"spec": {"securityContext": None, "resources": None}})
    myweb.wait_settled(installed, "web", namespace)
    [after] = installed.get("deployment", "web", namespace)["spec"]["template"]["spec"]["containers"]
    assert not after.get("securityContext")
    assert "limits" not in after["resources"]


@pytest.mark.oldest("allocation of node ports")
def test_node_port_is_changed_in_place(controller, installed, namespace):
    """Changed in place; when it is set back to automatic, the port stays."""
    port = myweb.free_node_port(installed)
    web = myweb.create_settled(installed, "web", namespace)
    cluster_ip = installed.get("service", "web", namespace)["spec"]["clusterIP"]
    assert web["status"]["nodePort"] != port
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"nodePortNumber": port}})
    web = myweb.wait_settled(installed, "web", namespace)
    assert web["status"]["nodePort"] == port
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"nodePortNumber": 0}})
    web = myweb.wait_settled(installed, "web", namespace)
    assert web["status"]["nodePort"] == port
    # Also when another field of the Service changes.
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"containerPort": 8080}})
    myweb.wait_settled(installed, "web", namespace)
    service = installed.get("service", "web", namespace)["spec"]
    assert service["clusterIP"] == cluster_ip
    assert service["ports"][0]["nodePort"] == port
    assert service["ports"][0]["targetPort"] == 8080


@pytest.mark.oldest("ownership of the keys of a ConfigMap")
def test_files_and_pull_policy_reach_the_children(controller, installed, namespace):
    """Files come and go; one that another client removes comes back."""
    myweb.create_settled(installed, "web", namespace, imagePullPolicy="Never",
                         files={"a.css": "a", "b.js": "b"})

    def names():
        return set(installed.get("configmap", "web", namespace)["data"])
    assert names() == {"index.html", "a.css", "b.js"}
    pod = installed.get("deployment", "web", namespace)["spec"]["template"]
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Never"
    first = pod["metadata"]["annotations"]["steward.dev/content-hash"]
    installed.patch("configmap", "web", namespace, {"data": {"a.css": None}})
    wait.until("the file to come back", lambda: "a.css" in names())
    installed.apply(myweb.manifest("web", namespace, files={"a.css": "a"}))
    wait.until("the other file to be removed", lambda: names() == {"index.html", "a.css"})
    wait.until("other pods", lambda: installed.get("deployment", "web", namespace)[
        "spec"]["template"]["metadata"]["annotations"]["steward.dev/content-hash"] != first)


@pytest.mark.oldest("node ports of a Service whose type changes; Ingresses")
def test_service_type_and_ingress_change_in_place(controller, installed, namespace):
    """The node port is released and allocated again; the Ingress is repaired and removed."""
    web = myweb.create_settled(installed, "web", namespace, serviceType="ClusterIP",
                               ingress={"host": "a.example.com", "className": "none-of-this-name"})
    assert web["status"]["url"] == "http://a.example.com/"
    assert "nodePort" not in web["status"] and not condition(web, "NodePortAllocated")
    assert condition(web, "IngressSynced")["status"] == "True"
    service = installed.get("service", "web", namespace)["spec"]
    assert service["type"] == "ClusterIP" and "nodePort" not in service["ports"][0]
    made = installed.get("ingress", "web", namespace)
    assert made["spec"]["ingressClassName"] == "none-of-this-name"
    assert made["spec"]["rules"][0]["host"] == "a.example.com"
    installed.patch("ingress", "web", namespace, [
        {"op": "replace", "path": "/spec/rules/0/host", "value": "evil.example.com"}])
    installed.wait_event("web", namespace, "DriftRepaired", "rules")

    port = myweb.free_node_port(installed)
    installed.patch(myweb.KIND, "web", namespace, {"spec": {
        "serviceType": "NodePort", "nodePortNumber": port, "ingress": None}})
    web = myweb.wait_settled(installed, "web", namespace)
    assert web["status"]["url"] == f":{port}" and not condition(web, "IngressSynced")
    installed.wait_gone("ingress", "web", namespace)
    installed.patch(myweb.KIND, "web", namespace, {"spec": {
        "serviceType": "ClusterIP", "nodePortNumber": 0}})
    web = myweb.wait_settled(installed, "web", namespace)
    assert web["status"]["url"] == f"http://web.{namespace}.svc"
    service = installed.get("service", "web", namespace)["spec"]
    assert service["type"] == "ClusterIP" and "nodePort" not in service["ports"][0]
    # Another MyWeb gets the port.
    myweb.create_settled(installed, "next", namespace, nodePortNumber=port)


def test_ingress_of_another_owner_is_not_touched(controller, installed, namespace):
    """Another tenant's Ingress of that name is not touched."""
    installed.apply({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                     "metadata": {"name": "web", "namespace": namespace},
                     "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 1}}}}})
    installed.apply(myweb.manifest("web", namespace, ingress={"host": "a.example.com"}))
    myweb.wait_condition(installed, "web", namespace, "IngressSynced", "NameConflict")
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"ingress": None}})
    myweb.wait_settled(installed, "web", namespace)
    assert "rules" not in installed.get("ingress", "web", namespace)["spec"]


@pytest.mark.oldest("garbage collection")
def test_children_are_deleted_with_the_myweb(controller, installed, namespace):
    myweb.create_settled(installed, "web", namespace)
    installed.delete(myweb.KIND, "web", namespace)
    wait.until("the garbage collector to take the children",
               lambda: not any(myweb.children(installed, "web", namespace).values()), 60)


def test_two_mywebs_have_different_selectors(controller, installed, namespace):
    myweb.create_settled(installed, "one", namespace)
    myweb.create_settled(installed, "two", namespace)
    one, two = (installed.get("service", n, namespace)["spec"]["selector"] for n in ("one", "two"))
    assert one != two


def test_unavailable_replicas_are_reported(controller, installed, namespace):
    installed.apply(myweb.manifest("web", namespace, replicas=2))
    found = myweb.wait_condition(installed, "web", namespace, "DeploymentAvailable", "Progressing")
    assert found["status"] == "False"
    assert "of 2 replicas" in found["message"]
    web = installed.get(myweb.KIND, "web", namespace)
    assert web["status"]["completed"] is False
    assert condition(web, "Ready")["status"] == "False"
    assert condition(web, "Reconciling")["status"] == "True"
    assert condition(web, "ConfigMapSynced")["status"] == "True"
    assert web["status"]["availableReplicas"] == 0
    # It does not become complete by itself.
    wait.stays("incomplete", lambda: not myweb.is_settled(
        installed.get(myweb.KIND, "web", namespace)), 1)


@pytest.mark.parametrize("word", ["Ready", "Reconciling", "ConfigMapSynced"])
def test_object_metric_counts_conditions(controller, installed, namespace, word):
    installed.apply(myweb.manifest("web", namespace, replicas=1))
    myweb.wait_condition(installed, "web", namespace, "Ready", "Progressing")
    state = "False" if word == "Ready" else "True"
    # The controller counts what its watch has delivered: its own write comes back a moment later.
    wait.until("it to be counted", lambda: controller.metric(
        "steward_objects", kind="MyWeb", condition=word, status=state) >= 1)
