# SPDX-License-Identifier: Apache-2.0
"""Lists and watches: lib/kube/cache/reflector.c, cache.c, pages.c, client/verbs.c."""

import urllib.parse

from support.apiserver import CORE, METADATA, METADATA_LIST


def make(server, space, count):
    """ConfigMaps c0, c1, ..."""
    return [server.create(space.path("configmaps"), space.configmap(f"c{i}")) for i in range(count)]


def query(path, **parameters):
    """path?limit=...&continue=..."""
    return path + "?" + urllib.parse.urlencode({k.rstrip("_"): v for k, v in parameters.items()})


def one(resource, **parameters):
    """Selects one object by its name."""
    return {"fieldSelector": f"metadata.name={resource}", **parameters}


def test_resource_versions_are_growing_numbers(server, space):
    """lib/kube/cache/cache.c compares versions as numbers, of objects and of lists with their objects."""
    objects = make(server, space, 3)
    other = server.create(space.path("secrets"), space.object("v1", "Secret", "s"))
    versions = [int(o["metadata"]["resourceVersion"]) for o in [*objects, other]]
    assert versions == sorted(set(versions))
    assert int(server.get(space.path("configmaps"))["metadata"]["resourceVersion"]) >= versions[2]


def test_list_pages_have_one_version(server, space):
    """All pages of a list have one version, even if objects change meanwhile; the last page has no
    token."""
    make(server, space, 5)
    path = space.path("configmaps")
    first = server.get(query(path, limit=2))
    assert len(first["items"]) == 2 and first["metadata"]["continue"]
    version = first["metadata"]["resourceVersion"]
    server.ask("DELETE", space.path("configmaps", first["items"][1]["metadata"]["name"]))
    server.create(path, space.configmap("c9"))
    names, token = [i["metadata"]["name"] for i in first["items"]], first["metadata"]["continue"]
    while token:
        page = server.get(query(path, limit=2, continue_=token))
        assert page["metadata"]["resourceVersion"] == version
        names += [i["metadata"]["name"] for i in page["items"] or []]
        token = page["metadata"].get("continue", "")
    assert [n for n in names if n != "kube-root-ca.crt"] == ["c0", "c1", "c2", "c3", "c4"]


def test_expired_continue_token_is_a_410(server, space):
    """410, reason Expired: lib/kube/cache/reflector.c lists again from the start.

    Only events are never served from the server's memory: newer servers keep old lists of all other
    resources there, for an unspecified time."""
    path = space.path("events", group=CORE)

    def write(name):
        server.create(path, space.object("v1", "Event", name, involvedObject={"namespace": space.name}))

    write("e1")
    write("e2")
    token = server.get(query(path, limit=1))["metadata"]["continue"]
    write("e3")
    server.compact()
    old = server.ask("GET", query(path, limit=1, continue_=token))
    assert old.status == 410 and old.reason == "Expired", old


def test_invalid_continue_token_is_a_400(server, space):
    """400, reason BadRequest: INVALID to lib/kube/client/status.c."""
    bad = server.ask("GET", query(space.path("configmaps"), limit=1, continue_="none"))
    assert bad.status == 400 and bad.reason == "BadRequest", bad


def test_list_contains_every_acknowledged_write(server, space):
    """Without a resourceVersion a list has every write that was acknowledged before."""
    for i in range(20):
        server.create(space.path("configmaps"), space.configmap(f"n{i}"))
        listed = server.get(query(space.path("configmaps"), limit=500))["items"]
        assert f"n{i}" in {o["metadata"]["name"] for o in listed}


def test_read_is_not_older_than_its_resource_version(server, space):
    """stw_kube_get_since: GET with a resourceVersion from a watch is at least that new."""
    path = space.path("configmaps", "c0")
    make(server, space, 1)
    for i in range(20):
        new = server.fine(server.merge(path, {"data": {"a": str(i)}}))
        seen = server.get(query(path, resourceVersion=new["metadata"]["resourceVersion"]))
        assert seen["data"]["a"] == str(i)


def test_future_resource_version_is_a_504(server, space):
    """The server waits some seconds and answers 504, reason Timeout: the store may have been restored.
    lib/kube/cache/reflector.c lists again after some such answers."""
    make(server, space, 1)
    future = str(10**15)
    late = server.ask("GET", query(space.path("configmaps", "c0"), resourceVersion=future))
    assert late.status == 504 and late.reason == "Timeout", late


def test_watch_reports_added_modified_and_deleted(server, space):
    """ADDED, MODIFIED and DELETED, each with the object; DELETED has its last state under a new
    version, which is where the next watch begins."""
    path = space.path("configmaps")
    begin = server.get(path)["metadata"]["resourceVersion"]
    with server.watching(path, resourceVersion=begin, **one("c0")) as events:
        make(server, space, 2)
        server.merge(space.path("configmaps", "c0"), {"data": {"a": "2"}})
        server.ask("DELETE", space.path("configmaps", "c0"))
        seen = [next(events) for _ in range(3)]
    assert [(kind, o["metadata"]["name"], o["data"]["a"]) for kind, o in seen] == [
        ("ADDED", "c0", "1"), ("MODIFIED", "c0", "2"), ("DELETED", "c0", "2")]
    versions = [int(o["metadata"]["resourceVersion"]) for _, o in seen]
    assert versions == sorted(set(versions))
    assert seen[0][1]["kind"] == "ConfigMap" and seen[0][1]["apiVersion"] == "v1"


def test_watch_resumes_from_a_version(server, space):
    """A watch that broke resumes at its last version, without a list."""
    path = space.path("configmaps")
    objects = make(server, space, 3)
    with server.watching(path, resourceVersion=objects[0]["metadata"]["resourceVersion"]) as events:
        # The controller manager, where there is one, adds kube-root-ca.crt at any time.
        ours = (e for e in events if e[1]["metadata"]["name"] != "kube-root-ca.crt")
        seen = [next(ours) for _ in range(2)]
    assert [(kind, o["metadata"]["name"]) for kind, o in seen] == [("ADDED", "c1"), ("ADDED", "c2")]


def test_object_leaving_the_selector_is_deleted_for_the_watch(server, space):
    """controller/child/watch.c: a child that loses its label is DELETED for a watch by that label,
    and ADDED when it has the label again."""
    path, where = space.path("configmaps"), {"labelSelector": "managed=yes"}
    server.create(path, space.configmap(labels={"managed": "yes"}))
    begin = server.get(path)["metadata"]["resourceVersion"]
    with server.watching(path, resourceVersion=begin, **where) as events:
        server.merge(space.path("configmaps", "one"), {"metadata": {"labels": None}})
        server.merge(space.path("configmaps", "one"), {"metadata": {"labels": {"managed": "yes"}}})
        assert [next(events)[0] for _ in range(2)] == ["DELETED", "ADDED"]
    assert len(server.get(query(path, **where))["items"]) == 1


def test_watch_sends_bookmarks(server, space):
    """A watch with allowWatchBookmarks gets at least one shortly before it ends, with a version at
    which the next watch may begin, even if no selected object has changed."""
    path = space.path("configmaps")
    begin = server.get(path)["metadata"]["resourceVersion"]
    with server.watching(path, resourceVersion=begin, allowWatchBookmarks="true",
                      timeoutSeconds="4", **one("nothing")) as events:
        last = make(server, space, 1)[0]["metadata"]["resourceVersion"]
        seen = list(events)
    assert {kind for kind, _ in seen} == {"BOOKMARK"}
    bookmark = seen[-1][1]
    assert bookmark["kind"] == "ConfigMap" and set(bookmark["metadata"]) <= {
        "resourceVersion", "creationTimestamp", "annotations"}
    assert int(bookmark["metadata"]["resourceVersion"]) >= int(begin)
    with server.watching(path, resourceVersion=bookmark["metadata"]["resourceVersion"]) as events:
        server.merge(space.path("configmaps", "c0"), {"data": {"a": "2"}})
        kind, obj = next(events)
        if kind == "ADDED":  # the bookmark was older than the object
            assert obj["metadata"]["resourceVersion"] == last
            kind, obj = next(events)
    assert kind == "MODIFIED" and obj["data"]["a"] == "2"


def test_watch_from_an_expired_version_is_a_410_event(server, space, things):
    """lib/kube/cache/reflector.c lists again after a 410, which is an event of type ERROR with a Status.
    The definition of a Thing, and so the server's history of Things, is newer than version 1."""
    server.compact()
    with server.watching(things.path(space), resourceVersion="1") as events:
        kind, status = next(events)
    assert kind == "ERROR" and status["kind"] == "Status"
    assert status["code"] == 410 and status["reason"] in ("Expired", "Gone"), status


def test_watch_ends_at_its_timeout(server, space):
    """timeoutSeconds ends a watch without an error."""
    with server.watching(space.path("configmaps"), resourceVersion="0", timeoutSeconds="1",
                      **one("nothing")) as events:
        assert not list(events)


def test_metadata_only_watch_has_no_data(server, space):
    """certs/mode_secret.c, kinds/eru/reconcile.c, kinds/databaseuser/secret/owned_secret.c: a watch of Secrets
    never brings their data; kinds/eru/inputs.c: nor does a read of one."""
    path = space.path("secrets")
    server.create(path, space.object("v1", "Secret", "s", data={"key": "c2VjcmV0"},
                                     metadata={"labels": {"a": "b"}}))
    listed = server.get(query(path, limit=10, **one("s")), accept=METADATA_LIST)
    assert listed["kind"] == "PartialObjectMetadataList" and listed["metadata"]["resourceVersion"]
    assert listed["items"][0]["metadata"]["labels"] == {"a": "b"}
    assert "data" not in listed["items"][0]
    with server.watching(path, accept=METADATA, resourceVersion=listed["metadata"]["resourceVersion"],
                      **one("s")) as events:
        server.merge(space.path("secrets", "s"), {"data": {"key": "bmV3"}})
        kind, obj = next(events)
    assert kind == "MODIFIED" and obj["kind"] == "PartialObjectMetadata" and "data" not in obj
    found = server.get(space.path("secrets", "s"), accept=METADATA)
    assert found["kind"] == "PartialObjectMetadata" and "data" not in found
    assert found["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]


def test_cluster_wide_list_has_all_namespaces(server, space):
    """A list without a namespace has the objects of all namespaces, each with its namespace."""
    make(server, space, 1)
    listed = server.get(query("/api/v1/configmaps", limit=500, **one("c0")))
    assert space.name in {o["metadata"]["namespace"] for o in listed["items"]}
