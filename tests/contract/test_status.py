# SPDX-License-Identifier: Apache-2.0
"""Subresources, generations and finalizers of custom objects: controller/object/object.c, finalizer.c,
lib/schema/crd/crd.c."""

import pytest

from support.apiserver import owned


@pytest.fixture
def thing(server, space, things):
    """The path of a Thing, and its object."""
    made = server.create(things.path(space), things.object(space, spec={"count": 1}))
    return things.path(space, "one"), made


def test_new_object_has_generation_1_and_default_status(server, space, things):
    """controller/object/object.c: generation 1; a status in a create is dropped, and the schema's default
    applies (lib/schema/crd/crd.c: observedGeneration -1)."""
    obj = things.object(space, spec={}, status={"phase": "mine"})
    made = server.create(things.path(space), obj)
    assert made["metadata"]["generation"] == 1
    assert made["status"] == {"observedGeneration": -1}


def test_status_patch_changes_only_the_status(server, thing):
    """controller/object/object.c patches /status; spec and metadata of that request are ignored, and the
    generation stays."""
    path, made = thing
    patch = {"metadata": {"labels": {"a": "b"}, "finalizers": ["steward.dev/test"]},
             "spec": {"count": 9}, "status": {"phase": "Ready", "observedGeneration": 1}}
    after = server.fine(server.merge(path + "/status", patch, "?fieldManager=steward-test"))
    assert after["status"] == {"phase": "Ready", "observedGeneration": 1}
    assert after["spec"]["count"] == 1 and after["metadata"]["generation"] == 1
    assert "labels" not in after["metadata"] and "finalizers" not in after["metadata"]
    assert after["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_status_write_is_recorded_by_subresource(server, thing, does):
    """lib/kube/owned/owned.c reads only entries without a subresource."""
    path, _ = thing
    after = server.fine(server.merge(path + "/status", {"status": {"phase": "Ready"}},
                                     "?fieldManager=steward-test"))
    subresource = "status" if does("status-subresource") == "yes" else ""
    assert owned(after, operation="Update", subresource=subresource)["f:status"]["f:phase"] == {}
    assert owned(after) == {}


def test_object_patch_does_not_change_the_status(server, thing):
    """A status written by the path of the object is dropped."""
    path, _ = thing
    server.fine(server.merge(path + "/status", {"status": {"phase": "Ready"}}))
    after = server.fine(server.merge(path, {"status": {"phase": "mine"}, "spec": {"count": 2}}))
    assert after["status"]["phase"] == "Ready" and after["spec"]["count"] == 2


def test_only_spec_changes_increment_the_generation(server, thing):
    """Only a change of spec increments it; labels, annotations and finalizers do not."""
    path, _ = thing

    def after(patch):
        return server.fine(server.merge(path, patch))["metadata"]["generation"]
    assert after({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}) == 1
    assert after({"metadata": {"finalizers": ["steward.dev/test"]}}) == 1
    assert after({"spec": {"count": 2}}) == 2
    assert after({"spec": {"count": 2}, "metadata": {"finalizers": None}}) == 2


def test_empty_patch_causes_no_watch_event(server, thing):
    """controller/object/object.c: there is no watch event, and so no endless loop of reconciles."""
    path, _ = thing
    patch = {"status": {"phase": "Ready"}}
    first = server.fine(server.merge(path + "/status", patch))
    again = server.fine(server.merge(path + "/status", patch))
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


def test_null_in_a_merge_patch_removes(server, thing):
    """lib/kube/owned/merge_diff.c."""
    path, _ = thing
    server.fine(server.merge(path + "/status", {"status": {"phase": "Ready", "conditions": []}}))
    after = server.fine(server.merge(path + "/status", {"status": {"phase": None}}))
    assert "phase" not in after["status"] and after["status"]["observedGeneration"] == -1


def test_status_patch_of_a_missing_object_is_a_404(server, space, things):
    """controller/queue/outcome.c waits for the watch after a 404."""
    gone = server.merge(things.path(space, "none", "status"), {"status": {"phase": "Ready"}})
    assert gone.status == 404 and gone.reason == "NotFound"


def test_scale_subresource_maps_to_the_fields(server, thing):
    """lib/schema/crd/crd.c, scale: specReplicasPath, statusReplicasPath, labelSelectorPath."""
    path, _ = thing
    server.fine(server.merge(path + "/status", {"status": {"count": 7, "selector": "a=b"}}))
    scale = server.get(path + "/scale")
    assert scale["kind"] == "Scale" and scale["apiVersion"] == "autoscaling/v1"
    assert scale["spec"] == {"replicas": 1} and scale["status"] == {"replicas": 7, "selector": "a=b"}
    server.fine(server.merge(path + "/scale", {"spec": {"replicas": 3}}))
    assert server.get(path)["spec"]["count"] == 3


def test_finalizers_delay_deletion(server, thing):
    """controller/object/finalizer.c: a delete sets deletionTimestamp, removal of the last finalizer
    deletes, and no finalizer can be added meanwhile."""
    path, _ = thing
    server.fine(server.merge(path, {"metadata": {"finalizers": ["steward.dev/a", "steward.dev/b"]}}))
    assert server.ask("DELETE", path).status == 200
    marked = server.get(path)
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["generation"] == 2  # so that a controller looks at it
    refused = server.merge(path, {"metadata": {"finalizers": ["steward.dev/a", "steward.dev/c"]}})
    assert refused.status == 422 and "no new finalizers can be added" in refused.message
    half = server.fine(server.merge(path, {"metadata": {"finalizers": ["steward.dev/b"]}}))
    assert half["metadata"]["finalizers"] == ["steward.dev/b"]
    assert server.fine(server.merge(path + "/status", {"status": {"phase": "Deleting"}}))
    last = server.merge(path, {"metadata": {"finalizers": [],
                                            "resourceVersion": server.get(path)["metadata"][
                                                "resourceVersion"]}})
    assert last.status == 200
    assert server.ask("GET", path).status == 404
    assert server.merge(path, {"metadata": {"finalizers": []}}).status == 404
