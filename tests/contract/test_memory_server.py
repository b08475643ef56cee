# SPDX-License-Identifier: Apache-2.0
"""The API server in memory of <steward/test.h> (testing/server.h) answers as a real one does: the same
requests go to both, and their answers are compared.

Not compared are what no two servers share (uid, times, resourceVersion), and what the header says is
different: the defaults of built-in types, and "." of the maps that an Update has made."""

import contextlib
import http.client
import json
import re
import subprocess

import pytest

from support import apiserver, compared, paths, rest

APPLY, MERGE, PATCH, JSON = apiserver.APPLY, rest.MERGE, apiserver.JSON_PATCH, rest.JSON
GROUP = "memory.steward.dev"
LEAST_MINOR = 35  # older servers own fields in another way, and have other texts: the header says so
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULTED = {"Deployment", "Service", "Secret", "Pod"}  # kinds of which a real server adds members
META_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
META = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class Memory:
    """The program tests/integration/memory_server.c."""

    def __init__(self):
        binary = paths.steward_binary().parents[1] / "tests" / "integration" / "memory_server"
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().removeprefix("http://")

    def ask(self, method, path, body=None, kind=JSON, accept=JSON):
        """As apiserver.Server.ask."""
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=30)) as connection:
            headers = {"Accept": accept, **({"Content-Type": kind} if body is not None else {})}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            return apiserver.Answer(connection.getresponse())

    def stop(self):
        """Ends it."""
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0


@pytest.fixture(scope="module")
def memory():
    """A Memory."""
    one = Memory()
    try:
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module")
def things(server):
    """The definition of Things on the real server."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    conditions = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                  "items": {"type": "object", "required": ["type"], "properties": {
                      "type": {"type": "string"}, "status": {"type": "string"}}}}
    spec = {"type": "object", "properties": {
        "word": {"type": "string"}, "number": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}}}}
    name = f"things.{GROUP}"
    server.create(CRDS, {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": GROUP, "scope": "Namespaced",
                 "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                   "spec": spec, "status": {"type": "object", "properties": {
                                       "conditions": conditions, "other": anything}}}}}}]}})
    apiserver.wait.until("things to be served",
                         lambda: server.ask("GET", f"/apis/{GROUP}/v1/things").status == 200)
    yield name
    server.remove([f"{CRDS}/{name}"])


# --- what is compared

def _entry(entry, obj):
    """An entry of managedFields without its time; of an Update without the maps that it made."""
    def bare(node, value):
        made = {key for key, child in node.items()
                if set(child) <= {"."} and isinstance(value, dict) and isinstance(value.get(key[2:]), dict)}
        return {key: bare(child, value.get(key[2:]) if isinstance(value, dict) else None)
                for key, child in node.items() if key != "." and key not in made}
    fields = entry["fieldsV1"] if entry["operation"] == "Apply" else bare(entry["fieldsV1"], obj)
    return {**{key: value for key, value in entry.items() if key != "time"}, "fieldsV1": fields}


def normal(value):
    """Without what no two servers share."""
    if isinstance(value, list):
        return [normal(one) for one in value]
    if not isinstance(value, dict):
        return value
    value = dict(value)
    meta = value.get("metadata")
    if isinstance(meta, dict):
        meta = dict(meta)
        for name in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"):
            if name in meta:
                meta[name] = f"<{name}>" if meta[name] else meta[name]
        if "managedFields" in meta:
            meta["managedFields"] = sorted((e for e in (_entry(e, value) for e in meta["managedFields"])
                                            if e["fieldsV1"]),
                                           key=lambda e: (e["manager"], e["operation"], e.get("subresource", "")))
        if meta.get("continue"):
            meta["continue"] = "<continue>"
        meta.pop("remainingItemCount", None)  # there are objects of controllers
        if "generateName" in meta and "name" in meta:
            meta["name"] = meta["name"][:len(meta["generateName"])]
        value["metadata"] = meta
    if value.get("kind", "").endswith("List"):
        value["items"] = [one for one in value["items"] if one["metadata"]["name"] != "kube-root-ca.crt"]
    if value.get("kind") == "Status":
        if value.get("code") == 400:
            value["message"] = "<message>"
        value["message"] = re.sub(r"(meta:|record) \(?[0-9a-f-]+\)?|StorageError:.*AdditionalErrorMsg: ", "",
                                  value.get("message", ""))
    if value.get("kind") == "Status" and isinstance(value.get("details"), dict):
        value["details"] = {key: one for key, one in value["details"].items() if key not in ("uid", "causes")}
    return {key: normal(one) for key, one in value.items()}


def _owned_by_apply(obj):
    return [e for e in obj.get("metadata", {}).get("managedFields", ()) if e["operation"] == "Apply"]


def lacking(mine, real, where=""):
    """What `mine` has and `real` has not, or with another value."""
    if isinstance(mine, dict) and isinstance(real, dict):
        return [fault for key, value in mine.items()
                for fault in (lacking(value, real[key], f"{where}.{key}") if key in real else [f"{where}.{key}"])]
    if isinstance(mine, list) and isinstance(real, list) and len(mine) == len(real):
        return [fault for i, value in enumerate(mine) for fault in lacking(value, real[i], f"{where}[{i}]")]
    return [] if mine == real else [f"{where}: {mine!r}, but {real!r}"]


def faults(mine, real):
    """The differences between two answers (status, body), as texts."""
    if mine[0] != real[0]:
        return [f"status {mine[0]}, but {real[0]}: {mine[1]} but {real[1]}"]
    mine, real = normal(mine[1]), normal(real[1])
    if isinstance(real, dict) and real.get("kind") in DEFAULTED:
        differ = lacking(_owned_by_apply(mine), _owned_by_apply(real), ".managedFields")
        for body in (mine, real):
            body["metadata"].pop("managedFields", None)
        return differ + lacking(mine, real)
    return lacking(mine, real) + [f"real{fault}" for fault in lacking(real, mine)]


class Both:
    """Sends each request to both servers."""

    def __init__(self, server, memory, space):
        self.sides, self.space, self.count, self.faults = (memory, server), space, 0, []
        self.last = [None, None]

    def path(self, plural, *parts):
        """In the namespace of the test."""
        group = f"/apis/{GROUP}/v1" if plural == "things" else None
        return self.space.path(plural, *parts, group=group)

    def __call__(self, method, path, body=None, kind=JSON, accept=JSON):
        """`path` and `body` may be functions of the server's last object."""
        answers = []
        for i, side in enumerate(self.sides):
            own = [one(self.last[i]) if callable(one) else one for one in (path, body)]
            answers.append(side.ask(method, own[0], own[1], kind, accept))
            if answers[i].status < 300 and isinstance(answers[i].body, dict):
                self.last[i] = answers[i].body
        self.count += 1
        self.faults += [f"{method} {path} {json.dumps(body, default=str)[:200]}: {one}"
                        for one in faults(*((a.status, a.body) for a in answers))]
        return answers

    def apply(self, path, body, manager="one", query=""):
        """Server-side apply."""
        return self("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY)

    def watch(self, path, since, accept=JSON):
        """Compares the events since these lists."""
        streams = []
        for side, listed in zip(self.sides, since):
            version = listed["metadata"]["resourceVersion"]
            query = rest.with_query(path, watch="1", timeoutSeconds="2", resourceVersion=version)
            text = side.ask("GET", query, accept=accept).body
            lines = text.splitlines() if isinstance(text, str) else [json.dumps(text)]
            streams.append([json.loads(line) for line in lines])
        self.count += 1
        self.faults += [f"watch {path}: {one}" for one in faults(*((200, {"events": s}) for s in streams))]


@pytest.fixture
def both(server, memory, space, things):
    """A Both; at the end there must be no difference."""
    if server.minor < LEAST_MINOR:
        pytest.skip("the server in memory answers as a newer Kubernetes")
    one = Both(server, memory, space)
    yield one
    compared.note("kube-apiserver (server in memory)", server.git_version, one.count)
    assert not one.faults, "\n".join(one.faults)


def thing(space, name="one", **members):
    """A Thing."""
    return space.object(f"{GROUP}/v1", "Thing", name, **members)


# --- the requests

def test_create_get_list(both, space):
    """Objects of both sorts, and refusals."""
    maps = both.path("configmaps")
    for name in ("b", "a", "c"):
        both("POST", maps, space.configmap(name, {"k": name}, labels={"app": name, "all": "yes"}))
    both("POST", maps, space.configmap("a"))
    both("GET", f"{maps}/a")
    both("GET", f"{maps}/missing")
    both("GET", both.path("things", "missing"))
    both("GET", f"{maps}/a", accept=META)
    for query in ("", "?labelSelector=app%3Da", "?labelSelector=app%21%3Da%2Call", "?labelSelector=app+in+(a,c)",
                  "?labelSelector=app+notin+(a,c),all", "?labelSelector=%21app",
                  "?labelSelector=all%3Dyes%2Capp%3Dc", "?fieldSelector=metadata.name%3Da"):
        both("GET", f"{maps}{query}")
    both("GET", maps, accept=META_LIST)
    both("POST", maps, {**space.configmap("x"), "metadata": {"generateName": "gen-"}})
    both("POST", maps, {**space.configmap("y"), "kind": "Secret"})
    both("POST", maps, space.configmap("z", namespace="other"))
    both("POST", f"{maps}?dryRun=All", space.configmap("dry"))
    both("GET", f"{maps}/dry")
    both("POST", both.path("things"), thing(space, spec={"word": "a"}, status={"other": {"x": 1}}))
    both("GET", both.path("things"))
    both("GET", both.path("nothings"))
    both("GET", "/apis/nothing.example.org/v1/things")


def test_pages(both, space):
    """limit and continue; the pages show one state."""
    maps = both.path("configmaps")
    for name in "abcde":
        both("POST", maps, space.configmap(name))
    first = f"{maps}?limit=2&labelSelector=none%21%3Dx"
    both("GET", first)
    token = [apiserver.urllib.parse.quote(one["metadata"]["continue"]) for one in both.last]
    tokens = iter(token)
    both("GET", lambda last: f"{first}&continue={next(tokens)}")


def test_update_and_patch(both, space):
    """Whole objects and patches, with and without preconditions."""
    maps = both.path("configmaps")
    both("POST", f"{maps}?fieldManager=one", space.configmap("one", {"a": "1", "b": "2"}))
    one = f"{maps}/one"
    both("PUT", f"{one}?fieldManager=two", lambda last: {**last, "data": {"a": "1", "c": "3"}})
    both("PUT", f"{one}?fieldManager=two", lambda last: {
        **last, "metadata": {**last["metadata"], "resourceVersion": "1"}})
    both("PUT", f"{one}?fieldManager=two", lambda last: {
        **last, "metadata": {**last["metadata"], "uid": "other", "resourceVersion": ""}})
    both("PUT", f"{maps}/missing", space.configmap("missing"))
    both("PATCH", f"{one}?fieldManager=three", {"data": {"a": None, "d": "4"}}, MERGE)
    both("PATCH", f"{one}?fieldManager=three", {"data": {"d": "4"}}, MERGE)  # changes nothing
    both("PATCH", f"{one}?fieldManager=three", {"metadata": {"resourceVersion": "1"}, "data": {"d": "5"}}, MERGE)
    both("PATCH", f"{one}?fieldManager=three", {"metadata": {"uid": "other"}, "data": {"d": "5"}}, MERGE)
    both("PATCH", f"{one}?fieldManager=four", [{"op": "test", "path": "/data/d", "value": "4"},
                                               {"op": "add", "path": "/data/e", "value": "5"},
                                               {"op": "replace", "path": "/data/c", "value": "6"}], PATCH)
    both("PATCH", f"{one}?fieldManager=four", [{"op": "test", "path": "/data/d", "value": "9"}], PATCH)
    both("PATCH", f"{one}?fieldManager=four", [{"op": "remove", "path": "/data/d"}], PATCH)
    both("PATCH", f"{one}?fieldManager=four&dryRun=All", {"data": {"z": "1"}}, MERGE)
    both("PATCH", f"{maps}/missing", {"data": {"z": "1"}}, MERGE)
    both("GET", one)


def test_apply(both, space):
    """Ownership: own fields vanish, fields of others are conflicts."""
    one = both.path("configmaps", "one")
    both.apply(one, space.configmap("one", {"a": "1", "b": "2"}, labels={"l": "1"}))
    both.apply(one, space.configmap("one", {"a": "1", "b": "2"}, labels={"l": "1"}))
    both.apply(one, space.configmap("one", {"a": "1"}))
    both.apply(one, space.configmap("one", {"a": "2"}), "two")
    both.apply(one, space.configmap("one", {"a": "1", "c": "3"}), "two")
    both.apply(one, space.configmap("one", {"a": "2", "c": "3"}), "two", "&force=true")
    both.apply(one, space.configmap("one", {}), "two")
    both("PATCH", f"{one}?fieldManager=three", {"data": {"x": "1", "y": "2"}}, MERGE)
    both.apply(one, space.configmap("one", {"x": "2", "y": "3"}))
    both.apply(one, space.configmap("one", {"x": "2", "y": "2"}), "one", "&force=true")
    both("PATCH", one, space.configmap("one"), APPLY)  # without a manager
    both.apply(one, space.configmap("one", {"a": "1"}, resourceVersion="1"))
    both.apply(one, space.configmap("one", {"a": "1"}, uid="other"))
    for plural, make in (("configmaps", lambda name, **meta: space.configmap(name, **meta)),
                         ("things", lambda name, **meta: thing(space, name, metadata=meta, spec={"word": "a"}))):
        both.apply(both.path(plural, "new1"), make("new1", resourceVersion="7"))
        both.apply(both.path(plural, "new2"), make("new2", uid="other"))
        both.apply(both.path(plural, "new3"), make("new3"), "one", "&dryRun=All")
        both.apply(both.path(plural, "new4"), make("new4", resourceVersion="1"))
        both("PATCH", f"{both.path(plural, 'new5')}?fieldManager=one", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    both.apply(both.path("configmaps", "other"), space.configmap("name"))


def test_apply_to_lists(both, space):
    """Lists with keys, atomic ones, sets; what another manager has added stays."""
    path = both.path("deployments", "one")
    container = {"ports": [{"containerPort": 80, "protocol": "TCP"}], "env": [{"name": "A", "value": "1"},
                                                                              {"name": "B", "value": "2"}]}
    both.apply(path, space.deployment(container=container, metadata={"finalizers": ["example.org/a"]}))
    both.apply(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "one", "finalizers": ["example.org/b"]}, "spec": {"template": {"spec": {
            "containers": [{"name": "web", "env": [{"name": "C", "value": "3"}]}]}}}}, "two")
    container["env"].pop()
    both.apply(path, space.deployment(container=container))
    both.apply(path, space.deployment(container={**container, "image": "other"}), "three")
    both("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    service = both.path("services", "one")
    both.apply(service, space.service())
    both.apply(service, space.service(), "two")


def test_custom(both, space):
    """generation, the subresource status, atomic lists, conditions."""
    one = both.path("things", "one")
    both.apply(one, thing(space, spec={"word": "a", "list": ["x", "y"], "map": {"k": "v"}},
                          status={"other": {"a": 1}}))
    both.apply(one, thing(space, spec={"list": ["x"]}), "two")
    both.apply(one, thing(space, spec={"word": "b", "list": ["y"]}), "one", "&force=true")
    both("PATCH", f"{one}/status?fieldManager=s", {"status": {"conditions": [{"type": "A", "status": "True"}]},
                                                   "spec": {"word": "no"}}, MERGE)
    both.apply(f"{one}/status", thing(space, status={"conditions": [{"type": "B", "status": "True"}]}), "t")
    both.apply(f"{one}/status", thing(space, status={"conditions": [{"type": "A", "status": "False"}]}), "t")
    both("PATCH", f"{one}?fieldManager=s", {"status": {"conditions": None},
                                            "metadata": {"labels": {"a": "b"}}}, MERGE)
    both("PUT", f"{one}/status", lambda last: {**last, "status": {"other": {"z": 1}}})
    both("GET", f"{one}/status")
    both("GET", f"{one}/nothing")
    both("PATCH", f"{one}?fieldManager=u", {"spec": {"number": 3}}, MERGE)
    both("GET", both.path("configmaps", "one", "status"))


def test_delete(both, space):
    """Preconditions, finalizers."""
    maps = both.path("configmaps")
    both("POST", maps, space.configmap("one", finalizers=["example.org/a"]))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    one = f"{maps}/one"
    both("DELETE", one, {**options, "preconditions": {"uid": "other"}})
    both("DELETE", one, {**options, "preconditions": {"resourceVersion": "1"}})
    both("DELETE", f"{one}?dryRun=All", options)
    both("DELETE", one, options)
    both("DELETE", one, options)
    both("GET", one)
    both("PATCH", one, {"metadata": {"finalizers": ["example.org/a", "example.org/b"]}}, MERGE)
    both("PATCH", one, {"data": {"a": "1"}}, MERGE)
    both("PATCH", one, {"metadata": {"finalizers": None}}, MERGE)
    both("GET", one)
    both("DELETE", one, options)
    both("POST", both.path("things"), thing(space, metadata={"finalizers": ["example.org/a"]}))
    both("DELETE", both.path("things", "one"), options)
    both("PATCH", both.path("things", "one"), {"metadata": {"finalizers": []}}, MERGE)
    both("POST", maps, space.configmap("two"))
    both("DELETE", f"{maps}/two", options)


def test_watch(both, space):
    """Events, also of objects that come into the scope of a selector and leave it; 410."""
    maps, one = both.path("configmaps"), both.path("configmaps", "one")
    both("GET", f"{maps}?labelSelector=app")
    start = list(both.last)
    both("POST", maps, space.configmap("one", labels={"app": "a"}))
    both("PATCH", one, {"data": {"a": "1"}}, MERGE)
    both("PATCH", one, {"metadata": {"labels": {"app": None, "other": "b"}}}, MERGE)
    both("PATCH", one, {"metadata": {"labels": {"app": "c"}}}, MERGE)
    both("DELETE", one)
    both.watch(maps, start)
    for accept in (JSON, META):
        both.watch(f"{maps}?labelSelector=app", start, accept)
