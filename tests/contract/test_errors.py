# SPDX-License-Identifier: Apache-2.0
"""How the server refuses: lib/kube/client/status.c maps these answers to codes,
controller/object/verdict.c maps the codes to reasons."""

import json
import re

import pytest

from support.apiserver import APPLY, JSON_PATCH


def test_invalid_json_is_a_400(server, space):
    """400 BadRequest."""
    bad = server.ask("POST", space.path("configmaps"), b"{\"kind\":")
    assert bad.status == 400 and bad.reason == "BadRequest" and bad.body["kind"] == "Status"


def test_missing_object_is_a_404(server, space):
    """404 with reason NotFound and the name.  An unknown resource is a 404, too, with plain text or
    with reason NotFound."""
    gone = server.ask("GET", space.path("configmaps", "none"))
    assert gone.status == 404 and gone.reason == "NotFound"
    assert gone.message == 'configmaps "none" not found' and gone.body["details"]["name"] == "none"
    unknown = server.ask("GET", "/apis/none.steward.dev/v1/nones")
    assert unknown.status == 404
    assert unknown.body == "404 page not found\n" or unknown.reason == "NotFound"


def test_disallowed_method_is_a_405(server, space):
    """405, which steward never meets, is INVALID."""
    assert server.ask("PUT", space.path("configmaps"), space.configmap()).status == 405


def test_unknown_media_type_is_a_415_or_406(server, space):
    """415 for the type of a body, 406 for the type of an answer."""
    path = space.path("configmaps")
    assert server.ask("POST", path, space.configmap(), "text/plain").status == 415
    assert server.ask("GET", path, accept="text/plain").status == 406


def test_unknown_token_is_a_401(server):
    """401 Unauthorized: lib/kube/client/auth.c reads its token again."""
    no = server.ask("GET", "/api/v1/namespaces", token="nobody")
    assert no.status == 401 and no.reason == "Unauthorized"


def test_oversized_body_is_a_413_or_422(server, space):
    """controller/object/verdict.c: a body over 3 MiB is a 413, reason RequestEntityTooLarge; a smaller one
    that is too large is a 422, and nothing is stored."""
    huge = server.ask("POST", space.path("configmaps"), space.configmap(data={"a": "x" * (4 << 20)}))
    assert huge.status == 413 and huge.reason == "RequestEntityTooLarge", huge
    large = server.ask("POST", space.path("configmaps"), space.configmap(data={"a": "x" * (2 << 20)}))
    assert large.status == 422 and large.causes[0][0] == "FieldValueTooLong", large
    assert server.ask("GET", space.path("configmaps", "one")).status == 404


@pytest.mark.parametrize("state", ["new", "there"])
def test_apply_of_a_wrong_type_is_refused(server, space, does, state):
    """controller/object/verdict.c: "failed to create typed patch object" is the user's mistake, not the
    server's, with any status."""
    path = space.path("deployments", "one")
    if state == "there":
        server.fine(server.apply(path, space.deployment()))
    refused = server.apply(path, space.deployment(pod={"securityContext": "none"}))
    assert "failed to create typed patch object" in refused.message, refused
    assert str(refused.status) == does("typed-patch"), refused


def test_apply_of_a_wrong_type_to_a_custom_object_is_refused(server, space, things):
    """The same for kinds of a CRD: the message names the field, and nothing is stored."""
    refused = server.apply(things.path(space, "one"), things.object(space, spec={"list": "none"}))
    assert 400 <= refused.status <= 500 and "spec.list" in refused.message, refused
    assert server.ask("GET", things.path(space, "one")).status == 404


def test_apply_of_an_unknown_field_is_refused(server, space, does):
    """controller/object/verdict.c: a raw field of a spec (affinity, tolerations) may hold anything."""
    refused = server.apply(space.path("deployments", "one"), space.deployment(
        pod={"tolerations": [{"nothing": "x"}]}))
    expected = does("unknown-field-in-apply")
    assert str(refused.status) == expected, refused
    if expected != "201":
        assert "field not declared in schema" in refused.message


def test_invalid_value_is_a_422_with_causes(server, space):
    """422 Invalid with its causes; each message names the field."""
    refused = server.apply(space.path("deployments", "one"), space.deployment(
        container={"image": " "}, replicas=-1))
    assert refused.status == 422 and refused.reason == "Invalid"
    assert ("FieldValueInvalid", "spec.replicas") in refused.causes
    assert refused.message.startswith('Deployment.apps "one" is invalid: ')


def test_messages_may_contain_memory_addresses(server, space):
    """controller/child/child.c masks addresses of the server's memory in messages (0x and hexadecimal
    digits), since they differ each time.  Otherwise a status would never settle."""
    def refused():
        obj = space.configmap(ownerReferences=[{
            "apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
            for name in ("a", "b")])
        return server.ask("POST", space.path("configmaps"), obj).message
    first, second = refused(), refused()
    assert "Controller set to true" in first
    masked = [re.sub(r"0x[0-9a-f]+", "0x", text) for text in (first, second)]
    assert masked[0] == masked[1]


def test_json_patch_of_a_missing_path_is_a_422(server, space):
    """422: INVALID."""
    server.create(space.path("configmaps"), space.configmap())
    bad = server.ask("PATCH", space.path("configmaps", "one"),
                     [{"op": "remove", "path": "/data/none"}], JSON_PATCH)
    assert bad.status == 422, bad


def test_apply_of_a_list_is_refused(server, space):
    """400: INVALID."""
    bad = server.ask("PATCH", space.path("configmaps", "one") + "?fieldManager=m", b"[]", APPLY)
    assert bad.status in (400, 422), bad


def test_missing_right_is_a_403(server, space):
    """403 Forbidden, with the user and the verb in its message."""
    token = account_token(server, space, "nobody")
    no = server.ask("GET", space.path("configmaps"), token=token)
    assert no.status == 403 and no.reason == "Forbidden"
    assert f"system:serviceaccount:{space.name}:nobody" in no.message and "cannot list" in no.message


def account_token(server, space, name):
    """A token of a new ServiceAccount."""
    server.create(space.path("serviceaccounts"), space.object("v1", "ServiceAccount", name))
    reply = server.ask("POST", space.path("serviceaccounts", name, "token"), {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600}})
    return server.fine(reply)["status"]["token"]


def test_token_review_returns_user_and_groups(server, space):
    """webhook/access.c: a TokenReview returns user and groups; an invalid token is a 201, too, but
    is not authenticated."""
    def review(token):
        return server.fine(server.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token}}))["status"]
    known = review(account_token(server, space, "reader"))
    assert known["authenticated"] is True
    assert known["user"]["username"] == f"system:serviceaccount:{space.name}:reader"
    assert "system:serviceaccounts" in known["user"]["groups"] and known["user"]["uid"]
    assert not review("nobody").get("authenticated")


def test_access_review_returns_the_right(server):
    """webhook/access.c, operator/doctor/run.c: a SubjectAccessReview returns whether a user may read
    a path; without rights `allowed` is false and there is no error."""
    def review(user, groups):
        return server.fine(server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": groups,
                     "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}))["status"]
    assert review("root", ["system:masters"])["allowed"] is True
    refused = review("nobody", [])
    assert refused["allowed"] is False and not refused.get("denied")


def event(space, **members):
    """As lib/kube/api/events.c writes it."""
    obj = space.object("events.k8s.io/v1", "Event", "one.17", eventTime="2026-01-02T03:04:05.678901Z",
                       type="Normal", reason="Created", action="Reconcile", note="made it",
                       reportingController="steward-test", reportingInstance="host",
                       regarding={"apiVersion": "v1", "kind": "ConfigMap", "namespace": space.name,
                                  "name": "one", "uid": "u", "resourceVersion": "1"})
    return {**obj, **members}


def test_event_is_created_and_counted(server, space):
    """lib/kube/api/events.c creates events of events.k8s.io/v1 and counts repeats in `series` by a merge
    patch; kubectl describe finds them by involvedObject in core/v1."""
    path = space.path("events")
    server.create(path, event(space))
    series = {"series": {"count": 3, "lastObservedTime": "2026-01-02T03:05:05.000001Z"}}
    again = server.fine(server.merge(f"{path}/one.17", series))
    assert again["series"] == series["series"] and again["note"] == "made it"
    old = server.get(space.path("events", group="/api/v1") + "?fieldSelector=involvedObject.uid%3Du")
    assert [(e["message"], e["involvedObject"]["name"], e["reportingComponent"]) for e in old["items"]] == [
        ("made it", "one", "steward-test")]
    assert old["items"][0]["series"]["count"] == 3


@pytest.mark.parametrize("members", [
    {"note": "x" * 1025}, {"reason": "x" * 129}, {"action": ""}, {"reportingController": ""},
    {"type": "Other"}, {"eventTime": None}])
def test_event_beyond_limits_is_refused(server, space, members):
    """lib/kube/api/events.c keeps to these limits: a note of 1024 bytes, a reason, an action, a time."""
    refused = server.ask("POST", space.path("events"), event(space, **members))
    assert refused.status == 422, refused


def test_event_note_of_1024_bytes_is_accepted(server, space):
    """The longest note there may be."""
    server.create(space.path("events"), event(space, note="x" * 1024))


def test_group_lists_its_versions(server, does):
    """lib/kube/api/discovery.c takes the best version that /apis/GROUP names."""
    for group in ("autoscaling", "policy"):
        found = server.get(f"/apis/{group}")
        assert found["kind"] == "APIGroup"
        assert " ".join(sorted(v["version"] for v in found["versions"])) == does(group), group
    none = server.ask("GET", "/apis/none.steward.dev")
    assert none.status == 404


@pytest.mark.parametrize("group, version", [
    ("admissionregistration.k8s.io", "v1"), ("apiextensions.k8s.io", "v1"), ("apps", "v1"),
    ("authentication.k8s.io", "v1"), ("authorization.k8s.io", "v1"), ("coordination.k8s.io", "v1"),
    ("events.k8s.io", "v1"), ("storage.k8s.io", "v1"), ("networking.k8s.io", "v1")])
def test_fixed_group_versions_are_served(server, group, version):
    """lib/kube/api/resource.c uses these without discovery."""
    assert version in [v["version"] for v in server.get(f"/apis/{group}")["versions"]]


def test_version_and_date_are_served(server):
    """operator/doctor/server.c and the choice of the guard in controller/child/child.c read /version; the Date
    of the answer is the server's clock."""
    answer = server.ask("GET", "/version")
    assert re.fullmatch(r"\d+", answer.body["major"]) and re.match(r"\d+", answer.body["minor"])
    assert answer.body["gitVersion"].startswith(f"v{answer.body['major']}.")
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.headers["Date"])


def test_status_object_has_its_members(server, space):
    """lib/kube/client/status.c reads code, reason, message and details.retryAfterSeconds of it."""
    status = server.ask("GET", space.path("configmaps", "none")).body
    assert set(status) >= {"kind", "apiVersion", "status", "message", "reason", "code"}
    assert status["kind"] == "Status" and status["status"] == "Failure" and status["code"] == 404
    assert json.dumps(status)
