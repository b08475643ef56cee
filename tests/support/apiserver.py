# SPDX-License-Identifier: Apache-2.0
"""Single requests to an API server, with all of the answer that a caller sees: status, headers,
warnings.  For tests/contract, which sends requests itself and never through kubectl."""

import contextlib
import http.client
import json
import os
import re
import urllib.parse

from . import rest, wait

APPLY = "application/apply-patch+yaml"
JSON_PATCH = rest.JSON_PATCH
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"

CORE, APPS = "/api/v1", "/apis/apps/v1"
GROUPS = {"deployments": APPS, "replicasets": APPS,
          "leases": "/apis/coordination.k8s.io/v1", "events": "/apis/events.k8s.io/v1"}


class Answer:
    """What the server answered; `body` is its JSON, or its text when it is not JSON."""

    def __init__(self, reply):
        self.status = reply.status
        self.headers = reply.headers
        text = reply.read().decode()
        try:
            self.body = json.loads(text)
        except ValueError:
            self.body = text

    @property
    def warnings(self):
        """The texts of its Warning headers (RFC 7234: 299 - "TEXT")."""
        return [json.loads(w.split(" - ", 1)[1]) for w in self.headers.get_all("Warning", [])]

    @property
    def reason(self):
        """metav1.StatusReason; "" when the answer is not a Status."""
        return self.body.get("reason", "") if isinstance(self.body, dict) else ""

    @property
    def message(self):
        """The message of a Status, otherwise all of the answer."""
        return self.body.get("message", "") if isinstance(self.body, dict) else self.body

    @property
    def causes(self):
        """[(reason, field)] of a Status."""
        return [(c.get("reason"), c.get("field"))
                for c in self.body.get("details", {}).get("causes", [])]

    def __repr__(self):
        return f"<{self.status} {json.dumps(self.body)[:2000]}>"


class Server(rest.Api):
    """Requests of an administrator.  `env` is what `scripts/cluster env` printed, as a dict."""

    def __init__(self, env):
        super().__init__(env["KUBECONFIG"])
        self.ca = env["STEWARD_CLUSTER_CA"]
        with open(os.path.join(env["STEWARD_CLUSTER_DIR"], "settings"), encoding="utf-8") as file:
            self.etcd = int(re.search(r"PORT_BASE=(\d+)", file.read())[1]) + 1
        version = self.ask("GET", "/version").body
        self.git_version = version["gitVersion"].split("+")[0].removeprefix("v")
        self.minor = int(re.match(r"\d+", version["minor"])[0])

    def ask(self, method, path, body=None, kind=rest.JSON, accept=rest.JSON, token=None):
        """An Answer, with any status.  `body`: an object, or bytes that are sent unchanged."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        headers = {**self.headers, "Accept": accept}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = kind
        connection = self._kept()
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        except rest.GONE:
            connection.close()
            raise

    def get(self, path, **more):
        """GET that has to return the object."""
        return self.fine(self.ask("GET", path, **more))

    def create(self, path, body):
        """POST that has to create."""
        return self.fine(self.ask("POST", path, body))

    def apply(self, path, body, manager="steward-test", query="&force=true"):
        """Server-side apply."""
        return self.ask("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY)

    def merge(self, path, patch, query=""):
        """A JSON merge patch."""
        return self.ask("PATCH", path + query, patch, rest.MERGE)

    def remove(self, paths):
        """Deletes objects, and waits until none is there; others may have begun to delete them.

        A definition is deleted when the list of its objects is answered: API servers of 1.35 and 1.37
        may never end the deletion of one whose storage has just been made.
        """
        paths = list(paths)
        for path in paths:
            if "/customresourcedefinitions/" in path:
                wait.until(f"the objects of {path} to be listed", lambda p=path: self._lists(p))
            self.ask("DELETE", path)
        for path in paths:
            wait.until(f"{path} to be gone", lambda p=path: self.ask("GET", p).status == 404)

    def _lists(self, path):
        """Whether the objects of this definition are listed; true of one that is not there, or that
        is being deleted, or whose names were refused."""
        one = self.ask("GET", path)
        if one.status != 200 or "deletionTimestamp" in one.body["metadata"]:
            return True
        known = {c["type"]: c["status"] for c in one.body.get("status", {}).get("conditions") or []}
        if known.get("NamesAccepted") == "False":
            return True
        spec = one.body["spec"]
        version = next(v["name"] for v in spec["versions"] if v["served"])
        return self.ask("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}").status == 200

    @staticmethod
    def fine(answer):
        """The object of an answer that has to be a success."""
        assert answer.status < 300, answer
        return answer.body

    @contextlib.contextmanager
    def watching(self, path, accept=rest.JSON, **query):
        """A generator of (type, object); ends when the server ends the watch.  `timeoutSeconds` is
        10 unless the caller sets it."""
        query = {"watch": "1", "timeoutSeconds": "10", **query}
        connection = self.connect()
        connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}",
                           headers={**self.headers, "Accept": accept})
        reply = connection.getresponse()
        with contextlib.closing(connection):
            assert reply.status == 200, Answer(reply)
            yield ((e["type"], e["object"]) for e in map(json.loads, reply))

    def compact(self):
        """Makes etcd discard all but the newest revision."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.etcd, timeout=20)) as c:
            def post(path, body):
                c.request("POST", path, json.dumps(body))
                return json.loads(c.getresponse().read())
            revision = post("/v3/kv/range", {"key": "Lw=="})["header"]["revision"]
            return post("/v3/kv/compaction", {"revision": revision, "physical": True})

    def etcd_version(self):
        """The version of the server's etcd."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.etcd, timeout=20)) as c:
            c.request("GET", "/version")
            return json.loads(c.getresponse().read())["etcdserver"]


class Space:
    """A namespace: the paths of what is in it, and its usual objects."""

    def __init__(self, server, name):
        self.server, self.name = server, name

    def path(self, plural, *parts, group=None):
        """/api/v1/namespaces/NAME/PLURAL/..."""
        group = group or GROUPS.get(plural, CORE)
        return "/".join([f"{group}/namespaces/{self.name}", plural, *parts])

    def object(self, api_version, kind, name, **members):
        """An object in it; `metadata` is merged into the usual one."""
        metadata = {"name": name, "namespace": self.name, **members.pop("metadata", {})}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}

    def configmap(self, name="one", data=None, **metadata):
        """A ConfigMap."""
        return self.object("v1", "ConfigMap", name, metadata=metadata,
                           data={"a": "1"} if data is None else data)

    def service(self, name="one", metadata=None, **spec):
        """A Service of type NodePort with one port."""
        return self.object("v1", "Service", name, metadata=metadata or {}, spec={
            "type": "NodePort", "selector": {"app": name},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}], **spec})

    def deployment(self, name="one", container=None, pod=None, metadata=None, **spec):
        """A Deployment with one container, `web`."""
        labels = {"app": name}
        return self.object("apps/v1", "Deployment", name, metadata=metadata or {}, spec={
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "web", "image": "web:1", **(container or {})}],
                **(pod or {})}}, **spec})

    def pod(self, name="one", **spec):
        """A Pod without a token of its account."""
        return self.object("v1", "Pod", name, spec={
            "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "web:1"}], **spec})

    def lease(self, name="one", **spec):
        """A Lease as lib/kube/api/lease.c writes it."""
        return self.object("coordination.k8s.io/v1", "Lease", name, spec={
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-02T03:04:05.678901Z",
            "renewTime": "2026-01-02T03:04:05.678901Z", **spec})


def owned(obj, manager="steward-test", operation="Apply", subresource=""):
    """fieldsV1 of a field manager; {} when it owns nothing."""
    return next((e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])
                 if e["manager"] == manager and e["operation"] == operation
                 and e.get("subresource", "") == subresource), {})
