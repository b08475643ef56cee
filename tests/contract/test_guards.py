# SPDX-License-Identifier: Apache-2.0
"""Preconditions that keep a write from changing the wrong object: controller/child/child.c, object.c,
finalizer.c, certs/hooks.c, lib/kube/api/lease.c."""

import threading

import pytest

from support.apiserver import JSON_PATCH, owned

MAKERS = ["configmap", "service", "deployment", "lease"]


def plural(kind):
    """configmaps"""
    return kind + "s"


@pytest.mark.parametrize("kind", MAKERS)
def test_apply_with_a_grace_period_creates(server, space, does, kind):
    """controller/child/child.c up to 1.22: the guard of a create.  Servers that keep the field must never
    get it."""
    obj = getattr(space, kind)(metadata={"deletionGracePeriodSeconds": 7}) \
        if kind in ("service", "deployment") else getattr(space, kind)()
    obj["metadata"]["deletionGracePeriodSeconds"] = 7
    path = space.path(plural(kind), "one")
    first = server.apply(path, obj)
    assert first.status == 201
    kept = first.body["metadata"].get("deletionGracePeriodSeconds")
    assert kept == (7 if does("grace-period") == "kept" else None)
    obj["metadata"]["labels"] = {"second": "yes"}
    second = server.apply(path, obj, manager="another")
    if does("grace-period") == "kept":
        assert second.status == 200, second
        return
    assert second.status == 422 and second.reason == "Invalid", second
    assert "deletionGracePeriodSeconds" in second.message
    assert "labels" not in server.get(path)["metadata"]


@pytest.mark.parametrize("kind", MAKERS)
def test_apply_with_resource_version_1_creates_or_conflicts(server, space, does, kind):
    """controller/child/child.c from 1.23 on: "1" is the version of no object, so the apply either creates or
    is a conflict."""
    obj = getattr(space, kind)()
    path = space.path(plural(kind), "one")
    obj["metadata"]["resourceVersion"] = "1"
    first = server.apply(path, obj)
    if kind == "service" and does("version-guard") == "500":
        assert first.status == 500, first
        server.create(space.path(plural(kind)), getattr(space, kind)())
    else:
        assert first.status == 201, first
        assert first.body["metadata"]["resourceVersion"] != "1"
        assert "f:resourceVersion" not in owned(first.body).get("f:metadata", {})
    before = server.get(path)
    obj["metadata"]["labels"] = {"second": "yes"}
    second = server.apply(path, obj, manager="another")
    assert second.status == 409 and second.reason == "Conflict", second
    after = server.get(path)
    assert all(after.get(part) == before.get(part) for part in ("spec", "data"))
    assert "labels" not in after["metadata"]


@pytest.mark.parametrize("kind", MAKERS)
def test_apply_with_a_uid_changes_only_that_object(server, space, kind):
    """controller/child/child.c, certs/hooks.c: metadata.uid is the precondition of a change.  Another uid is
    a 409, or a 422 that names metadata.uid."""
    path = space.path(plural(kind), "one")
    obj = server.create(space.path(plural(kind)), getattr(space, kind)())
    wish = getattr(space, kind)()
    wish["metadata"].update(uid=obj["metadata"]["uid"], labels={"a": "b"})
    fine = server.apply(path, wish)
    assert fine.status == 200 and fine.body["metadata"]["labels"] == {"a": "b"}, fine
    wish["metadata"].update(uid="00000000-0000-0000-0000-000000000000", labels={"a": "c"})
    refused = server.apply(path, wish)
    assert refused.status == 409 or (refused.status == 422 and "metadata.uid" in refused.message)
    assert server.get(path)["metadata"]["labels"] == {"a": "b"}


def test_apply_with_a_uid_never_creates(server, space):
    """controller/child/child.c: the object was deleted meanwhile."""
    path = space.path("configmaps", "one")
    wish = space.configmap(uid="00000000-0000-0000-0000-000000000000")
    refused = server.apply(path, wish)
    assert refused.status == 409 and refused.reason == "Conflict", refused
    assert server.ask("GET", path).status == 404


@pytest.mark.parametrize("kind", MAKERS)
def test_update_of_an_old_version_conflicts(server, space, kind):
    """lib/kube/api/lease.c, kinds/etcdcluster/tls/secrets.c: PUT with the version that was read."""
    path = space.path(plural(kind), "one")
    old = server.create(space.path(plural(kind)), getattr(space, kind)())
    server.fine(server.merge(path, {"metadata": {"labels": {"a": "b"}}}))
    refused = server.ask("PUT", path, old)
    assert refused.status == 409 and refused.reason == "Conflict"
    assert server.get(path)["metadata"]["labels"] == {"a": "b"}


def test_merge_patch_of_an_old_version_conflicts(server, space):
    """controller/object/object.c, finalizer.c: metadata.resourceVersion in a merge patch is a precondition."""
    path = space.path("configmaps", "one")
    old = server.create(space.path("configmaps"), space.configmap())
    version = old["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "2"}}
    new = server.fine(server.merge(path, patch))
    assert int(new["metadata"]["resourceVersion"]) > int(version)
    refused = server.merge(path, {**patch, "data": {"a": "3"}})
    assert refused.status == 409 and refused.reason == "Conflict"
    assert server.get(path)["data"] == {"a": "2"}


def test_json_patch_with_a_failing_test_is_refused(server, space):
    """controller/child/child.c: `test` of uid and resourceVersion guards the removal of leftovers."""
    path = space.path("configmaps", "one")
    obj = server.create(space.path("configmaps"), space.configmap())["metadata"]
    good = [{"op": "test", "path": "/metadata/uid", "value": obj["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": obj["resourceVersion"]}]
    bad = [{**good[0], "value": "other"}]
    change = [{"op": "remove", "path": "/data"}]
    refused = server.ask("PATCH", path, bad + change, JSON_PATCH)
    assert refused.status == 422, refused
    assert server.get(path)["data"] == {"a": "1"}
    assert "data" not in server.fine(server.ask("PATCH", path, good + change, JSON_PATCH))


def test_create_of_an_existing_object_is_a_409(server, space):
    """lib/kube/client/status.c distinguishes EXISTS from CONFLICT, both 409, by the reason."""
    server.create(space.path("configmaps"), space.configmap())
    again = server.ask("POST", space.path("configmaps"), space.configmap())
    assert again.status == 409 and again.reason == "AlreadyExists"


@pytest.mark.parametrize("wrong", ["uid", "resourceVersion"])
def test_delete_checks_its_preconditions(server, space, wrong):
    """controller/child/child.c, kinds/eru/auto.c and kinds/etcdcluster/act/act.c delete only the version that they
    read."""
    path = space.path("configmaps", "one")
    obj = server.create(space.path("configmaps"), space.configmap())["metadata"]
    right = {"uid": obj["uid"], "resourceVersion": obj["resourceVersion"]}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    refused = server.ask("DELETE", path, {**options, "preconditions": {**right, wrong: "1"}})
    assert refused.status == 409 and refused.reason == "Conflict"
    assert server.ask("GET", path).status == 200
    assert server.ask("DELETE", path, {**options, "preconditions": right}).status == 200
    assert server.ask("GET", path).status == 404
    gone = server.ask("DELETE", path, {**options, "preconditions": right})
    assert gone.status == 404 and gone.reason == "NotFound"


def test_dry_run_stores_nothing(server, space):
    """operator: what users try with --dry-run=server, and what the demo does."""
    path = space.path("configmaps", "one")
    tried = server.apply(path, space.configmap(), query="&dryRun=All")
    assert tried.status == 201 and tried.body["metadata"]["uid"]
    assert server.ask("GET", path).status == 404
    server.create(space.path("configmaps"), space.configmap())
    assert server.merge(path, {"data": {"a": "2"}}, "?dryRun=All").body["data"] == {"a": "2"}
    assert server.get(path)["data"] == {"a": "1"}
    assert server.ask("DELETE", path + "?dryRun=All").status == 200
    assert server.ask("GET", path).status == 200


def test_lease_is_acquired_and_released(server, space):
    """lib/kube/api/lease.c: an empty holder, a duration of one second, times with microseconds."""
    path = space.path("leases", "one")
    lease = server.create(space.path("leases"), space.lease())
    assert lease["spec"]["renewTime"] == "2026-01-02T03:04:05.678901Z"
    lease["spec"].update(holderIdentity="", leaseDurationSeconds=1)
    free = server.fine(server.ask("PUT", path, lease))
    assert free["spec"].get("holderIdentity", "") == ""
    assert free["spec"]["acquireTime"] == "2026-01-02T03:04:05.678901Z"


def test_finalizer_added_during_delete_may_be_ignored(server, space):
    """controller/child/remains.c: a finalizer that is added during a DELETE is accepted, and the object is gone
    all the same.  The state with the finalizer has no deletionTimestamp."""
    path = space.path("configmaps", "one")
    for _ in range(500):
        server.create(space.path("configmaps"), space.configmap())
        deletion = threading.Thread(target=server.ask, args=("DELETE", path))
        deletion.start()
        added = server.merge(path, {"metadata": {"finalizers": ["contract.steward.dev/x"]}})
        deletion.join()
        live = server.ask("GET", path)
        if added.status == 200 and live.status == 404:
            break
        if live.status == 200:
            server.fine(server.merge(path, {"metadata": {"finalizers": None}}))
            server.ask("DELETE", path)
    else:
        raise AssertionError("every finalizer that was accepted has kept its object")
    assert "deletionTimestamp" not in added.body["metadata"]
