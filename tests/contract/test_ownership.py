# SPDX-License-Identifier: Apache-2.0
"""Who owns which field after a server-side apply: lib/kube/owned reads metadata.managedFields, and
controller/child/child.c writes by apply with force."""

import base64

import pytest

from support.apiserver import JSON_PATCH, owned

ME, OTHER = "steward-test", "kubectl-edit"


def test_managed_fields_record_an_apply(server, space):
    """lib/kube/owned/owned.c finds its entry by manager, operation and an absent subresource; fieldsV1 names
    members by f:, elements by k: with their keys, elements of sets by v:."""
    obj = space.deployment(container={
        "ports": [{"containerPort": 80, "protocol": "TCP"}], "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        pod={"volumes": [{"name": "v", "emptyDir": {}}], "imagePullSecrets": [{"name": "pull"}]})
    obj["metadata"]["finalizers"] = ["steward.dev/test"]
    made = server.fine(server.apply(space.path("deployments", "one"), obj))
    entry = next(e for e in made["metadata"]["managedFields"] if e["manager"] == ME)
    assert entry["operation"] == "Apply" and entry["apiVersion"] == "apps/v1"
    assert not entry.get("subresource") and entry["fieldsType"] == "FieldsV1"
    fields = entry["fieldsV1"]
    assert 'v:"steward.dev/test"' in fields["f:metadata"]["f:finalizers"]
    pod = fields["f:spec"]["f:template"]["f:spec"]
    web = pod["f:containers"]['k:{"name":"web"}']
    assert set(web) == {".", "f:name", "f:image", "f:ports", "f:env", "f:volumeMounts"}
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in web["f:ports"]
    assert set(web["f:env"]) == {'k:{"name":"A"}'}
    assert set(web["f:volumeMounts"]) == {'k:{"mountPath":"/v"}'}
    assert 'k:{"name":"pull"}' in pod["f:imagePullSecrets"]
    assert 'k:{"name":"v"}' in pod["f:volumes"]
    assert "f:strategy" not in fields["f:spec"]  # fields that the server defaulted are not owned
    server.merge(space.path("deployments", "one"), {"metadata": {"finalizers": None}})


def test_managed_fields_key_service_ports(server, space):
    """lib/kube/owned/list.c: the keys of a Service's ports."""
    made = server.fine(server.apply(space.path("services", "one"), space.service()))
    ports = owned(made)["f:spec"]["f:ports"]
    assert set(ports) == {'k:{"port":80,"protocol":"TCP"}'}
    assert "f:nodePort" not in ports['k:{"port":80,"protocol":"TCP"}']


def test_repeated_apply_writes_nothing(server, space):
    """controller/child/child.c: a settled child costs nothing; resourceVersion stays."""
    for plural, obj in (("configmaps", space.configmap()), ("leases", space.lease()),
                        ("services", space.service())):
        path = space.path(plural, "one")
        first = server.fine(server.apply(path, obj))
        again = server.apply(path, obj)
        assert again.status == 200
        assert again.body["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_apply_removes_an_omitted_field(server, space):
    """kinds/*/children.c leave out what is no longer wanted."""
    path = space.path("configmaps", "one")
    server.apply(path, space.configmap(data={"a": "1", "b": "2"}, labels={"x": "y"}))
    less = server.fine(server.apply(path, space.configmap(data={"a": "1"})))
    assert less["data"] == {"a": "1"} and "labels" not in less["metadata"]


def test_apply_keeps_fields_of_other_managers(server, space):
    """Fields that steward does not set are left to other managers."""
    path = space.path("configmaps", "one")
    server.apply(path, space.configmap())
    server.merge(path, {"data": {"other": "1"}, "metadata": {"labels": {"x": "y"}}},
                 f"?fieldManager={OTHER}")
    after = server.fine(server.apply(path, space.configmap(data={"a": "2"})))
    assert after["data"] == {"a": "2", "other": "1"} and after["metadata"]["labels"] == {"x": "y"}
    assert set(owned(after)["f:data"]) - {"."} == {"f:a"}


def test_foreign_change_removes_the_field_from_our_set(server, space):
    """lib/kube/owned/owned.c: drift is a digest that differs, since steward no longer owns the field."""
    path = space.path("configmaps", "one")
    server.apply(path, space.configmap())
    changed = server.fine(server.merge(path, {"data": {"a": "2"}}, f"?fieldManager={OTHER}"))
    assert "f:a" not in owned(changed).get("f:data", {})
    assert "f:a" in owned(changed, OTHER, "Update")["f:data"]
    back = server.fine(server.apply(path, space.configmap()))
    assert back["data"] == {"a": "1"} and "f:a" in owned(back)["f:data"]


def test_forced_apply_takes_the_field_over(server, space):
    """controller/child/child.c applies with force; without it the answer is a conflict that names the other
    manager and the field."""
    path = space.path("configmaps", "one")
    server.apply(path, space.configmap(), manager="first")
    refused = server.apply(path, space.configmap(data={"a": "2"}), query="")
    assert refused.status == 409 and refused.reason == "Conflict"
    assert refused.causes == [("FieldManagerConflict", ".data.a")] and "first" in refused.message
    taken = server.fine(server.apply(path, space.configmap(data={"a": "2"})))
    assert "f:a" in owned(taken)["f:data"] and "f:a" not in owned(taken, "first").get("f:data", {})


def test_apply_needs_a_manager(server, space):
    """lib/kube/client/verbs.c always names one."""
    refused = server.ask("PATCH", space.path("configmaps", "one"), space.configmap(),
                         "application/apply-patch+yaml")
    assert refused.status == 422 and "fieldManager" in refused.message, refused


def adds_a_key(server, path, obj, patch):
    """Applies, adds a key as another manager by a merge patch, and applies again.  Returns the
    object after the patch and after the second apply."""
    server.fine(server.apply(path, obj))
    changed = server.fine(server.merge(path, patch, f"?fieldManager={OTHER}"))
    return changed, server.fine(server.apply(path, obj))


def test_foreign_key_in_a_service_selector(server, space, does):
    """controller/child/watch.c owns selectors as a whole.  Where the map is granular, a key that
    another manager added is not a conflict, and an apply keeps it."""
    changed, again = adds_a_key(server, space.path("services", "one"), space.service(),
                                {"spec": {"selector": {"x": "y"}}})
    assert changed["spec"]["selector"] == {"app": "one", "x": "y"}
    granular = does("selector") == "granular"
    assert ("f:app" in owned(changed)["f:spec"].get("f:selector", {})) == granular
    assert again["spec"]["selector"] == ({"app": "one", "x": "y"} if granular else {"app": "one"})


def test_foreign_key_in_a_node_selector(server, space, does):
    """The same for the nodeSelector of a pod template."""
    changed, again = adds_a_key(server, space.path("deployments", "one"),
                                space.deployment(pod={"nodeSelector": {"a": "b"}}),
                                {"spec": {"template": {"spec": {"nodeSelector": {"x": "y"}}}}})

    def selector(obj):
        return obj["spec"]["template"]["spec"]["nodeSelector"]
    assert selector(changed) == {"a": "b", "x": "y"}
    granular = does("node-selector") == "granular"
    assert selector(again) == ({"a": "b", "x": "y"} if granular else {"a": "b"})


def test_foreign_key_in_a_configmap(server, space):
    """The data of a ConfigMap, which envFrom reads, is granular on every version."""
    changed, again = adds_a_key(server, space.path("configmaps", "one"), space.configmap(),
                                {"data": {"x": "y"}})
    assert changed["data"] == again["data"] == {"a": "1", "x": "y"}


def test_deployment_selector_is_owned_as_a_whole(server, space):
    """lib/kube/owned/owned.c hashes below a member that is owned whole: f:selector without members."""
    made = server.fine(server.apply(space.path("deployments", "one"), space.deployment()))
    assert owned(made)["f:spec"]["f:selector"] == {}


@pytest.mark.parametrize("given", ["given", "defaulted"])
def test_env_value_replaces_a_reference(server, space, does, given):
    """kinds/app/container.c writes fieldRef.apiVersion itself, since a defaulted value stays
    when the rest is removed.  Where even that is refused, the whole member can be removed
    (lib/kube/owned/left.c)."""
    path = space.path("deployments", "one")

    def env(**entry):
        return space.deployment(container={"env": [{"name": "A", **entry}]})
    field = {"fieldPath": "metadata.name", **({"apiVersion": "v1"} if given == "given" else {})}
    server.fine(server.apply(path, env(valueFrom={"fieldRef": field})))
    changed = server.apply(path, env(value="1"))
    assert changed.status == (422 if does("leftovers") == "stays" else 200), changed
    if changed.status == 422:
        assert "valueFrom" in changed.message
        server.fine(server.ask("PATCH", path, [{
            "op": "remove", "path": "/spec/template/spec/containers/0/env/0/valueFrom"}], JSON_PATCH))
        changed = server.apply(path, env(value="1"))
    entry = server.fine(changed)["spec"]["template"]["spec"]["containers"][0]["env"][0]
    assert entry == {"name": "A", "value": "1"}


def test_omitted_probe_is_removed_or_refused(server, space, does):
    """lib/kube/owned/left.c: where defaults of a removed probe stay, the server refuses the apply
    until the whole member is removed."""
    path = space.path("deployments", "one")
    probe = {"readinessProbe": {"tcpSocket": {"port": 80}}}
    made = server.fine(server.apply(path, space.deployment(container=probe)))
    assert made["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["periodSeconds"] == 10
    changed = server.apply(path, space.deployment())
    assert changed.status == (422 if does("leftovers") == "stays" else 200), changed
    if changed.status == 422:
        assert "readinessProbe" in changed.message
        server.fine(server.ask("PATCH", path, [{
            "op": "remove", "path": "/spec/template/spec/containers/0/readinessProbe"}], JSON_PATCH))
        changed = server.apply(path, space.deployment())
    container = server.fine(changed)["spec"]["template"]["spec"]["containers"][0]
    assert "readinessProbe" not in container


@pytest.mark.parametrize("given, stored", [("1000m", "1"), ("0.5", "500m"), ("1024Ki", "1Mi"),
                                           ("1.5Gi", "1536Mi")])
def test_quantities_are_rewritten(server, space, given, stored):
    """controller/child/manifest.c writes quantities as the server does, so that digests agree."""
    name = "memory" if "i" in given else "cpu"
    obj = space.deployment(container={"resources": {"limits": {name: given}}})
    made = server.fine(server.apply(space.path("deployments", "one"), obj))
    limits = made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {name: stored}


def test_bundles_of_webhooks_are_applied_by_name(server, space):
    """certs/hooks.c owns only clientConfig.caBundle of entries that another manager created."""
    with open(server.ca, "rb") as file:
        pem = file.read()
    bundle, both = base64.b64encode(pem).decode(), base64.b64encode(pem + pem).decode()
    kind, plural = "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
    base = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    hook = {"name": "one.steward.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/none"}, "failurePolicy": "Ignore",
            "namespaceSelector": {"matchLabels": {"contract": "nothing"}}}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": space.name}}
    try:
        made = server.create(base, {**head, "webhooks": [hook]})
        part = {"name": hook["name"], "clientConfig": {"caBundle": bundle}}
        head["metadata"].update(uid=made["metadata"]["uid"],
                                resourceVersion=made["metadata"]["resourceVersion"])
        after = server.fine(server.apply(f"{base}/{space.name}", {**head, "webhooks": [part]}))
        assert after["webhooks"][0]["clientConfig"] == {**hook["clientConfig"], "caBundle": bundle}
        assert owned(after) == {"f:webhooks": {'k:{"name":"one.steward.test"}': {
            ".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}}}
        stale = server.apply(f"{base}/{space.name}", {**head, "webhooks": [part]})
        assert stale.status in (200, 409)  # 200 where the server first sees that nothing changes
        part["clientConfig"] = {"caBundle": both}
        stale = server.apply(f"{base}/{space.name}", {**head, "webhooks": [part]})
        assert stale.status == 409 and stale.reason == "Conflict", stale
    finally:
        server.ask("DELETE", f"{base}/{space.name}")
