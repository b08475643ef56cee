# SPDX-License-Identifier: Apache-2.0
"""What the server allocates, defaults and refuses for children: kinds/myweb/reconcile.c, kinds/app/status.c,
controller/object/verdict.c.  They match texts of the server's messages; these tests notice when one changes."""

import itertools

import pytest
from support import wait

ZERO = "00000000-0000-0000-0000-000000000000"


def port_of(service):
    """The first node port."""
    return service["spec"]["ports"][0]["nodePort"]


def with_port(space, port, name="one"):
    """A Service that requests a node port."""
    obj = space.service(name)
    obj["spec"]["ports"][0]["nodePort"] = port
    return obj


def test_omitted_node_port_is_allocated_and_kept(server, space):
    """kinds/myweb/reconcile.c omits the port and keeps the one that was allocated."""
    path = space.path("services", "one")
    made = server.fine(server.apply(path, space.service()))
    assert 30000 <= port_of(made) <= 32767
    changed = space.service()
    changed["metadata"]["labels"] = {"a": "b"}
    assert port_of(server.fine(server.apply(path, changed))) == port_of(made)


def test_taken_node_port_is_a_422(server, space):
    """422; "port is already allocated" in the message means NodePortAllocated=False."""
    taken = port_of(server.fine(server.apply(space.path("services", "one"), space.service())))
    refused = server.apply(space.path("services", "two"), with_port(space, taken, "two"))
    assert refused.status == 422 and refused.reason == "Invalid"
    assert "port is already allocated" in refused.message
    assert refused.causes == [("FieldValueInvalid", "spec.ports[0].nodePort")]
    other = server.fine(server.apply(space.path("services", "two"), space.service("two")))
    moved = server.apply(space.path("services", "two"), with_port(space, taken, "two"))
    assert moved.status == 422 and "port is already allocated" in moved.message
    assert port_of(server.get(space.path("services", "two"))) == port_of(other)


def test_node_port_is_free_after_deletion(server, space):
    """controller/child/watch.c wakes what waits for a port as soon as its Service is gone."""
    path = space.path("services", "one")
    port = port_of(server.fine(server.apply(path, space.service())))
    server.fine(server.ask("DELETE", path))
    again = server.apply(space.path("services", "two"), with_port(space, port, "two"))
    assert again.status == 201 and port_of(again.body) == port


def test_node_port_outside_the_range_is_a_422(server, space):
    """422 with "not in the valid range" in the message."""
    refused = server.apply(space.path("services", "one"), with_port(space, 80))
    assert refused.status == 422 and "not in the valid range" in refused.message


def test_exhausted_node_port_range_is_refused(server, space, does):
    """"failed to allocate a nodePort: range is full" in the message, with any status."""
    def many(name, count):
        ports = [{"name": f"p{i}", "port": 1 + i, "protocol": "TCP"} for i in range(count)]
        return server.ask("POST", space.path("services"), space.service(name, ports=ports))
    count, size = 0, 500
    while size:
        answer = many(f"s{count}", size)
        if answer.status == 201:
            count += 1
        else:
            size //= 2
    assert "failed to allocate a nodePort: range is full" in answer.message, answer
    assert str(answer.status) == does("ports-full"), answer
    for i in range(count):
        server.fine(server.ask("DELETE", space.path("services", f"s{i}")))


def test_deployment_selector_is_immutable(server, space):
    """controller/object/verdict.c: INVALID is a refusal that only a user can resolve."""
    path = space.path("deployments", "one")
    server.fine(server.apply(path, space.deployment()))
    other = space.deployment(selector={"matchLabels": {"app": "two"}})
    other["spec"]["template"]["metadata"]["labels"] = {"app": "two"}
    refused = server.apply(path, other)
    assert refused.status == 422 and "field is immutable" in refused.message
    assert ("FieldValueInvalid", "spec.selector") in refused.causes


def test_server_fills_in_omitted_fields(server, space):
    """controller/child/manifest.c and kinds/*/children.c leave these fields to the server."""
    made = server.fine(server.apply(space.path("deployments", "one"), space.deployment(
        container={"ports": [{"containerPort": 80}]})))
    assert made["spec"]["strategy"]["type"] == "RollingUpdate"
    assert made["spec"]["progressDeadlineSeconds"] == 600
    pod = made["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 30 and pod["securityContext"] == {}
    assert pod["containers"][0]["ports"][0]["protocol"] == "TCP"
    assert made["metadata"]["generation"] == 1 and made["status"].get("observedGeneration") in (None, 1)


def test_exceeded_quota_is_a_403(server, space):
    """controller/object/verdict.c: a 403 with "exceeded quota" in the message is QuotaExceeded.  The quota
    controller does not run here, so the test writes the quota's status."""
    path = space.path("resourcequotas")
    quota = space.object("v1", "ResourceQuota", "none", spec={"hard": {"count/configmaps": "0"}})
    server.create(path, quota)
    server.fine(server.merge(path + "/none/status", {"status": {
        "hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}}))

    names = (f"one-{n}" for n in itertools.count())

    def refusal():  # the admission plugin learns of the quota a moment later
        name = next(names)
        reply = server.apply(space.path("configmaps", name), space.configmap(name))
        return None if reply.status == 201 else reply
    refused = wait.until("the quota to count", refusal)
    assert refused.status == 403 and refused.reason == "Forbidden"
    assert "exceeded quota" in refused.message


def test_terminating_namespace_is_a_403(server, space):
    """controller/object/verdict.c: a 403 with "being terminated" in the message means to wait."""
    server.fine(server.ask("DELETE", f"/api/v1/namespaces/{space.name}"))
    refused = server.apply(space.path("configmaps", "one"), space.configmap())
    assert refused.status in (403, 404), refused  # 404 when it is gone already
    if refused.status == 403:
        assert "being terminated" in refused.message


def test_missing_owner_is_accepted(server, space):
    """controller/child/child.c writes ownerReferences with controller and blockOwnerDeletion; the API
    server accepts any uid, and refuses a second controller."""
    def reference(uid, name):
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True,
                "blockOwnerDeletion": True}
    path = space.path("secrets", "one")
    owner = server.create(space.path("configmaps"), space.configmap("owner"))["metadata"]["uid"]
    obj = space.object("v1", "Secret", "one", metadata={"ownerReferences": [reference(owner, "owner")]})
    made = server.fine(server.apply(path, obj))
    assert made["metadata"]["ownerReferences"] == [reference(owner, "owner")]
    obj["metadata"]["ownerReferences"] = [reference(ZERO, "other")]
    second = server.apply(path, obj, manager="another")
    assert second.status == 422 and "Controller set to true" in second.message, second


def test_secret_data_and_immutability(server, space):
    """kinds/databaseuser/secret/fingerprint.c, certs/content.c: stringData is returned as data; a Secret of a
    certificate needs both keys; an immutable Secret cannot change."""
    made = server.create(space.path("secrets"), space.object(
        "v1", "Secret", "s", stringData={"key": "text"}, data={"other": "AA=="}))
    assert made["data"] == {"key": "dGV4dA==", "other": "AA=="} and "stringData" not in made
    refused = server.ask("POST", space.path("secrets"), space.object(
        "v1", "Secret", "tls", type="kubernetes.io/tls", data={"tls.crt": ""}))
    assert refused.status == 422 and ("FieldValueRequired", "data[tls.key]") in refused.causes
    server.fine(server.merge(space.path("secrets", "s"), {"immutable": True}))
    fixed = server.merge(space.path("secrets", "s"), {"data": {"key": "AA=="}})
    assert fixed.status == 422 and "immutable" in fixed.message


@pytest.mark.parametrize("scheduled", [False, True])
def test_deleted_pod_waits_for_its_kubelet(server, space, scheduled):
    """kinds/etcdcluster/act/act.c, agent.c: a deleted pod stays, marked, until its kubelet has
    stopped it; a pod without a node is gone at once."""
    account = space.object("v1", "ServiceAccount", "default")
    server.ask("POST", space.path("serviceaccounts"), account)
    more = {"nodeName": "nowhere"} if scheduled else {}
    made = server.ask("POST", space.path("pods"), space.pod(**more))
    uid = server.fine(made)["metadata"]["uid"]
    path = space.path("pods", "one")
    server.fine(server.ask("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions",
                                            "preconditions": {"uid": uid}}))
    if scheduled:
        assert server.get(path)["metadata"]["deletionTimestamp"]
        server.fine(server.ask("DELETE", path + "?gracePeriodSeconds=0"))
    assert server.ask("GET", path).status == 404


def test_pod_metadata_can_be_patched(server, space):
    """kinds/etcdcluster/act/act.c patches labels and annotations of running pods; the spec stays."""
    server.ask("POST", space.path("serviceaccounts"), space.object("v1", "ServiceAccount", "default"))
    server.fine(server.ask("POST", space.path("pods"), space.pod()))
    path = space.path("pods", "one")
    server.fine(server.merge(path, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}))
    refused = server.merge(path, {"spec": {"terminationGracePeriodSeconds": 1}})
    assert refused.status == 422 and "pod updates may not change fields" in refused.message


def test_autoscaler_v1_has_conditions_in_an_annotation(server, space):
    """controller/child/watch.c: autoscaling/v1 has conditions as text in an annotation."""
    newer = "v2" if server.minor >= 23 else "v2beta2"
    group = "/apis/autoscaling/"
    plural = "horizontalpodautoscalers"
    server.create(space.path(plural, group=group + "v1"), space.object(
        "autoscaling/v1", "HorizontalPodAutoscaler", "one", spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"},
            "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 80}))
    server.fine(server.merge(space.path(plural, "one", "status", group=group + newer), {"status": {
        "currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": [], "conditions": [
            {"type": "ScalingActive", "status": "False", "reason": "No", "message": "none"}]}}))
    old = server.get(space.path(plural, "one", group=group + "v1"))["metadata"]["annotations"]
    assert '"type":"ScalingActive"' in old["autoscaling.alpha.kubernetes.io/conditions"]
    new = server.get(space.path(plural, "one", group=group + newer))
    assert new["status"]["conditions"][0]["reason"] == "No"


def test_disruption_budget_keeps_the_eviction_policy(server, space, does):
    """config/server-1.29 sets spec.unhealthyPodEvictionPolicy."""
    version = "v1" if server.minor >= 21 else "v1beta1"
    made = server.create(space.path("poddisruptionbudgets", group=f"/apis/policy/{version}"), space.object(
        f"policy/{version}", "PodDisruptionBudget", "one", spec={
            "minAvailable": 1, "selector": {"matchLabels": {"a": "b"}},
            "unhealthyPodEvictionPolicy": "AlwaysAllow"}))
    assert ("unhealthyPodEvictionPolicy" in made["spec"]) == (does("eviction") == "kept")
