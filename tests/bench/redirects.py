# SPDX-License-Identifier: Apache-2.0
"""Redirects in a cluster, and one script of behaviour that every contender must pass before it is
measured: creation, defaults, bad specs, change, repair, deletion."""

import base64
import contextlib
import http.client
import threading

from bench import bodies
from support import wait

KIND, NAMESPACE = "redirects.example.org", "fleet"
PATH = f"/apis/example.org/v1/namespaces/{NAMESPACE}/redirects"
WEBHOOKS = {"mutate": "/mutate-example-org-v1-redirect", "validate": "/validate-example-org-v1-redirect"}
CONDITIONS = {"Ready", "ConfigMapSynced", "ServiceSynced"}
CONFIGURATION = "redirect-compare"


def manifest(name, **spec):
    """A Redirect."""
    return {"apiVersion": "example.org/v1", "kind": "Redirect",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"host": f"{name}.example.org", "target": "https://new.example.org/", **spec}}


def review(webhook):
    """The AdmissionReview of a creation, as the API server sends it to this webhook."""
    redirect = manifest("storefront", **({"port": 80} if webhook == "validate" else {}))
    redirect["metadata"].update(
        generation=1, uid="7c0f4f0c-64d6-4c9b-90f2-3b0c8d9f2b11",
        creationTimestamp="2026-11-21T03:49:35Z",
        managedFields=bodies.managed_fields(redirect["spec"], "example.org/v1"))
    return bodies.review(redirect, "redirects")


def condition(redirect, kind):
    """Its status, if the condition is about the object as it is now."""
    status = redirect.get("status", {})
    observed = status.get("observedGeneration")
    for one in status.get("conditions", ()):
        if one["type"] == kind and one.get("observedGeneration", observed) == \
                redirect["metadata"]["generation"]:
            return one["status"]
    return None


def is_ready(redirect):
    """Whether all is applied."""
    return condition(redirect, "Ready") == "True"


class Ready(threading.Thread):
    """The names of the Redirects that are ready, by a watch."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api, self.names = api, set()

    def run(self):
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError):
                version = self.api.do("GET", PATH + "?limit=1")["metadata"]["resourceVersion"]
                self.names = {o["metadata"]["name"] for o in self.api.each(PATH) if is_ready(o)}
                for change, redirect in self.api.watch(PATH, version):
                    self._take(change, redirect)

    def _take(self, change, redirect):
        name = redirect["metadata"]["name"]
        if change == "DELETED":
            self.names.discard(name)
        elif change == "MODIFIED" and is_ready(redirect):
            self.names.add(name)

    def wait(self, count, seconds):
        """Until as many are ready."""
        wait.until(f"{count} Redirects to be ready", lambda: len(self.names) >= count, seconds, every=0.25)


def grow(api, count):
    """Creates them."""
    api.write_all(("POST", PATH, manifest(f"web-{n:05}")) for n in range(count))


# --- behaviour


def webhook_configurations(port, certificate):
    """Both, for a process that listens on loopback."""
    bundle = base64.b64encode(certificate.read_bytes()).decode()
    for mode, kind in (("mutate", "Mutating"), ("validate", "Validating")):
        yield {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
               "metadata": {"name": CONFIGURATION},
               "webhooks": [{"name": f"{mode}.example.org", "admissionReviewVersions": ["v1"],
                             "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 10,
                             "clientConfig": {"url": f"https://127.0.0.1:{port}{WEBHOOKS[mode]}",
                                              "caBundle": bundle},
                             "rules": [{"apiGroups": ["example.org"], "apiVersions": ["v1"],
                                        "operations": ["CREATE", "UPDATE"], "resources": ["redirects"]}]}]}


@contextlib.contextmanager
def admission(cluster, process, certificate):
    """The API server asks this process, and has noticed so."""
    cluster.apply(list(webhook_configurations(process.ports.webhook, certificate)))
    try:
        wait.until("the API server to ask the webhooks", lambda: refused(cluster, target="http://old.example.org"))
        yield
    finally:
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            cluster.delete(kind, CONFIGURATION)


def refused(cluster, **spec):
    """What the API server says about a bad Redirect; "" if it takes it."""
    return cluster.apply(manifest("bad", **spec), check=False, dry_run=True).stderr


def check(cluster, process, certificate):
    """Raises AssertionError or TimedOut where the contender behaves differently."""
    with admission(cluster, process, certificate):
        message = refused(cluster, target="http://old.example.org")
        assert "spec.target" in message and "must begin with https://" in message, message
        assert refused(cluster, port=70000) and refused(cluster, host="")
        created = cluster.apply(manifest("old")).object
        assert created["spec"]["port"] == 80, created
        _check_life(cluster)
    text = process.metrics_text()
    assert "# TYPE" in text, text[:500]


def _check_life(cluster):
    ready = cluster.wait_for(KIND, "old", NAMESPACE, is_ready)
    found = {c["type"]: c["status"] for c in ready["status"]["conditions"]}
    assert found == dict.fromkeys(CONDITIONS, "True"), found
    for kind in ("configmap", "service"):
        [owner] = cluster.get(kind, "old", NAMESPACE)["metadata"]["ownerReferences"]
        assert owner["uid"] == ready["metadata"]["uid"] and owner["controller"], owner
    text = cluster.get("configmap", "old", NAMESPACE)["data"]["redirect.conf"]
    assert text == "server_name old.example.org; return 301 https://new.example.org/;", text
    cluster.patch(KIND, "old", NAMESPACE, {"spec": {"port": 8080}})
    cluster.wait_for("service", "old", NAMESPACE, _has_port(8080))
    cluster.wait_for(KIND, "old", NAMESPACE, is_ready)
    cluster.patch("configmap", "old", NAMESPACE, {"data": {"redirect.conf": "broken"}})
    cluster.wait_for("configmap", "old", NAMESPACE, lambda o: o["data"]["redirect.conf"] == text)
    cluster.patch("service", "old", NAMESPACE,
                  [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 81}])
    cluster.wait_for("service", "old", NAMESPACE, lambda o: o["spec"]["ports"][0]["targetPort"] == 80)
    gone = cluster.get("configmap", "old", NAMESPACE)["metadata"]["uid"]
    cluster.delete("configmap", "old", NAMESPACE, wait_gone=False)
    cluster.wait_for("configmap", "old", NAMESPACE, lambda o: o["metadata"]["uid"] != gone)
    assert not cluster.get(KIND, "old", NAMESPACE)["metadata"].get("finalizers")
    cluster.delete(KIND, "old", NAMESPACE)
    for kind in ("configmap", "service"):
        cluster.wait_gone(kind, "old", NAMESPACE)


def _has_port(port):
    return lambda service: [p["port"] for p in service["spec"]["ports"]] == [port]
