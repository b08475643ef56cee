# SPDX-License-Identifier: Apache-2.0
"""The certificates of Secret mode with a real API server; each certs_probe.c plays a replica, of an
operator with the kinds "one", "two" and "three"."""

import base64
import datetime
import json
import os
import re
import subprocess
import threading

import pytest

from support import paths, wait
from support.cluster import CommandFailed

pytestmark = pytest.mark.oldest("field managers of caBundle, watches by name")

DAY = 86400
HOST, ADDRESS = "steward.test.svc", "127.0.0.1"
NAMES = (HOST, HOST + ".cluster.local", ADDRESS, "::1")
HOOKS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
NO_BUNDLE = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}


class Replica:
    """certs_probe: one command per line, one line of JSON back."""

    def __init__(self, cluster, place, log, kubeconfig=None, names=NAMES):
        binary = paths.steward_binary().parents[1] / "tests" / "integration" / "certs_probe"
        self.log = log
        self.lock = threading.Lock()
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [binary, place, "pair", place, place, *names], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=file,
                env=dict(os.environ, KUBECONFIG=str(kubeconfig or cluster.kubeconfig)))

    def ask(self, *words):
        with self.lock:
            self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def status(self):
        return self.ask("status")

    def cert(self):
        return self.status()["cert"]

    def log_text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=20)
        finally:
            self.process.kill()

    def crash(self):
        self.process.kill()
        self.process.wait(timeout=20)


OWN = ("mone.example.com", "mtwo.example.com")


def _hook(kind, name, webhooks=OWN):
    """A configuration whose webhooks are never called: its rules match no resource."""
    kind = {"m": "MutatingWebhookConfiguration", "v": "ValidatingWebhookConfiguration"}[kind[0]]
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name},
            "webhooks": [{"name": hook, "sideEffects": "None", "failurePolicy": "Ignore",
                          "admissionReviewVersions": ["v1"], "timeoutSeconds": 2,
                          "clientConfig": {"service": {"namespace": name, "name": "none"}},
                          "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"],
                                     "operations": ["CREATE"], "resources": ["nothings"]}]}
                         for hook in webhooks]}


@pytest.fixture
def place(cluster):
    """A namespace and two configurations of the same name."""
    name = f"certs-{os.getpid()}-{os.urandom(3).hex()}"
    cluster.create_namespace(name)
    cluster.apply([_hook(kind, name) for kind in HOOKS])
    yield name
    for kind in HOOKS:
        cluster.delete(kind, name)
    cluster.delete_namespace(name)


@pytest.fixture
def replica(cluster, place, tmp_path):
    """replica(): starts another replica; at the end all are stopped and must exit with 0."""
    started = []

    def start(**kwargs):
        one = Replica(cluster, place, tmp_path / f"replica-{len(started)}.log", **kwargs)
        started.append(one)
        return one
    yield start
    for one in started:
        if one.process.poll() is None:
            assert one.end() == 0, one.log_text()
        assert "PRIVATE KEY" not in one.log_text()


def _bundles(cluster, place, kind):
    found = cluster.get(kind, place)
    return [base64.b64decode(w["clientConfig"].get("caBundle", "")).decode()
            for w in found["webhooks"]] if found else []


def _all_bundles(cluster, place):
    return [b for kind in HOOKS for b in _bundles(cluster, place, kind)]


def _secret(cluster, place):
    found = cluster.get("secret", "pair", place)
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def _certs(bundle):
    return re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", bundle, re.S)


def _openssl(*args, stdin=None):
    return subprocess.run(["openssl", *(str(a) for a in args)], input=stdin, text=True,
                          capture_output=True, check=False, timeout=20)


def _verifies(leaf, bundle, tmp_path, host=("-verify_hostname", HOST)):
    """The result of `openssl verify` with the strictest checks."""
    ca, cert = tmp_path / "bundle.pem", tmp_path / "leaf.pem"
    ca.write_text(bundle)
    cert.write_text(leaf)
    return _openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca,
                    "-no-CApath", "-no-CAstore", *host, cert)


def _settled(cluster, place, *replicas):
    """True when all serve the Secret's leaf, whose CA is the only one in every caBundle."""
    secret = _secret(cluster, place)
    return (set(secret) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
            and set(_all_bundles(cluster, place)) <= {secret["ca.crt"]}
            and all(r.cert() == secret["tls.crt"] and r.status()["ready"] for r in replicas))


def _wait_settled(cluster, place, *replicas):
    wait.until("certificates at rest", lambda: _settled(cluster, place, *replicas))


@pytest.fixture
def one(cluster, place, replica):
    """One replica, settled."""
    only = replica()
    _wait_settled(cluster, place, only)
    return only


@pytest.fixture
def two(cluster, place, replica):
    """Two replicas that were started together, settled."""
    both = replica(), replica()
    _wait_settled(cluster, place, *both)
    return both


def _serve_one_leaf(cluster, place, replicas):
    """The Secret's leaf if all replicas serve it, else None."""
    leaf = _secret(cluster, place)["tls.crt"]
    return leaf if {r.cert() for r in replicas} == {leaf} else None


def _pass_overlap(cluster, place, *replicas):
    """Moves the clocks past the time during which the former CA is still trusted."""
    for replica in replicas:
        replica.ask("shift", 3601)
    _wait_settled(cluster, place, *replicas)


def test_two_replicas_create_one_secret(cluster, place, two, tmp_path):
    """Two replicas at once create one Secret with valid certificates."""
    a, _ = two
    found = cluster.get("secret", "pair", place)
    assert found["type"] == "kubernetes.io/tls"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "steward"
    secret = _secret(cluster, place)
    for host in (("-verify_hostname", HOST), ("-verify_hostname", HOST + ".cluster.local"),
                 ("-verify_ip", ADDRESS), ("-verify_ip", "::1")):
        result = _verifies(secret["tls.crt"], secret["ca.crt"], tmp_path, host)
        assert result.returncode == 0, result.stderr
    assert _verifies(secret["tls.crt"], secret["ca.crt"], tmp_path,
                     ("-verify_hostname", "other.svc")).returncode != 0
    leaf = _openssl("x509", "-noout", "-text", stdin=secret["tls.crt"]).stdout
    for text in ("Version: 3", "ASN1 OID: prime256v1", "ecdsa-with-SHA256", "CA:FALSE",
                 "TLS Web Server Authentication", "Subject Key Identifier",
                 "Authority Key Identifier", f"DNS:{HOST}, DNS:{HOST}.cluster.local",
                 "IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1"):
        assert text in leaf, leaf
    ca = _openssl("x509", "-noout", "-text", stdin=secret["ca.crt"]).stdout
    for text in ("CA:TRUE, pathlen:0", "Certificate Sign"):
        assert text in ca, ca
    metrics = a.status()["metrics"]
    end = _openssl("x509", "-noout", "-enddate", stdin=secret["tls.crt"]).stdout.strip()[9:]
    stamp = datetime.datetime.strptime(end, "%b %d %H:%M:%S %Y %Z").replace(
        tzinfo=datetime.timezone.utc).timestamp()
    value = re.search(r'steward_certificate_not_after_seconds\{cert="serving"\} (\S+)', metrics)
    assert float(value[1]) == stamp
    assert 'steward_certificate_not_after_seconds{cert="ca"}' in metrics
    assert "certwatcher_read_certificate_total 1\n" in metrics


def _apply(cluster, manager, *objects, force=False):
    """Server-side apply with a field manager, as helm, Flux and Argo CD do it."""
    options = ["--force-conflicts"] if force else []
    return cluster.kubectl("apply", "--server-side", "--field-manager", manager, *options, "-f", "-",
                           stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def _managers(cluster, kind, name):
    found = cluster.get(kind, name)
    return sorted(m["manager"] for m in found["metadata"]["managedFields"])


def _wait_released(cluster, place, one, hooks=HOOKS):
    """Until all is settled, and steward owns no field of a configuration."""
    wait.until("caBundles without an owner", lambda: _settled(cluster, place, one)
               and not any("steward-certs" in _managers(cluster, kind, place) for kind in hooks))


def test_update_of_other_fields_keeps_the_ca_bundle(cluster, place, one):
    hooks = [_hook(kind, place, webhooks=(*OWN, "mthree.example.com")) for kind in HOOKS]
    for hook in hooks:
        hook["webhooks"][0]["timeoutSeconds"] = 7
    cluster.apply(hooks)
    wait.until("the third webhook's caBundle", lambda: _settled(cluster, place, one)
               and all(len(_bundles(cluster, place, kind)) == 3 for kind in HOOKS))
    assert cluster.get(HOOKS[0], place)["webhooks"][0]["timeoutSeconds"] == 7


@pytest.mark.parametrize("manager, force", [("helm", False), ("kustomize-controller", True),
                                            ("argocd-controller", True), ("kubectl", False)])
def test_server_side_apply_adds_and_removes_webhooks(cluster, place, replica, manager, force):
    """What it applies is what is there: an entry that it leaves out is gone, and the others keep their
    caBundle all the time."""
    for kind in HOOKS:
        cluster.delete(kind, place)
    one = replica()
    for names in (OWN, OWN[:1], (*OWN, "mthree.example.com"), OWN[1:]):
        before = {kind: cluster.get(kind, place) for kind in HOOKS}
        _apply(cluster, manager, *(_hook(kind, place, names) for kind in HOOKS), force=force)
        for kind in HOOKS:
            now = {w["name"]: w["clientConfig"] for w in cluster.get(kind, place)["webhooks"]}
            assert set(now) == set(names)
            for hook in (before[kind] or {"webhooks": ()})["webhooks"]:
                if hook["name"] in now:
                    assert now[hook["name"]] == hook["clientConfig"]
        _wait_released(cluster, place, one)
        assert all(len(_bundles(cluster, place, kind)) == len(names) for kind in HOOKS)


def test_fields_owned_by_former_version_are_released(cluster, place, replica):
    """It wrote the caBundle by server-side apply, and so owned a part of each entry."""
    one = replica()
    _wait_released(cluster, place, one)
    assert one.end() == 0
    for kind in HOOKS:
        cluster.delete(kind, place)
        _apply(cluster, "helm", _hook(kind, place))
    for kind in HOOKS:
        resource = f"{kind}s"
        body = {**_hook(kind, place), "webhooks": [{"name": name, "clientConfig": {"caBundle": "Zm9v"}}
                                                   for name in OWN]}
        reply = cluster.api.request(
            "PATCH", f"/apis/admissionregistration.k8s.io/v1/{resource}/{place}?fieldManager=steward-certs",
            body, content_type="application/apply-patch+yaml")
        assert reply.status == 200, reply.object
        assert _managers(cluster, kind, place) == ["helm", "steward-certs"]
    _wait_released(cluster, place, replica())
    _apply(cluster, "helm", *(_hook(kind, place, OWN[:1]) for kind in HOOKS))
    assert [len(_bundles(cluster, place, kind)) for kind in HOOKS] == [1, 1]


def test_webhooks_of_other_programs_are_not_touched(cluster, place, replica):
    """Entries of kinds that this steward does not have keep the caBundle of the program that serves them."""
    names = (*OWN, "mfour.example.com", "check.example.net")
    foreign = base64.b64encode(b"not of steward").decode()
    hooks = [_hook(kind, place, names) for kind in HOOKS]
    for hook in hooks:
        hook["webhooks"][2]["clientConfig"]["caBundle"] = foreign
    cluster.apply(hooks)
    one = replica()

    def look():
        found = [w["clientConfig"].get("caBundle") for kind in HOOKS
                 for w in cluster.get(kind, place)["webhooks"]]
        own = base64.b64encode(_secret(cluster, place).get("ca.crt", "").encode()).decode()
        return found == 2 * [own, own, foreign, None] and one.status()["ready"]
    wait.until("the caBundles of its own kinds alone", look)


def _crd(place, webhook):
    """A CRD with a conversion webhook, or without conversion."""
    group = f"{place}.example.com"
    conversion = {"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": place, "name": "none"}}}} if webhook else {"strategy": "None"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "conversion": conversion,
                     "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                         "openAPIV3Schema": {"type": "object"}}}]}}


def test_conversion_webhook_can_be_removed_from_a_crd(cluster, place, replica):
    name = f"things.{place}.example.com"
    try:
        _apply(cluster, "helm", _crd(place, True))
        try:
            _apply(cluster, "helm", _crd(place, False))
        except CommandFailed:
            pytest.skip("this server refuses it without steward, too: the port that it added stays")
        _apply(cluster, "helm", _crd(place, True))
        one = replica(names=(*NAMES, f"crd={name}"))

        def bundle():
            found = cluster.get("crd", name)["spec"]["conversion"]["webhook"]["clientConfig"]
            return base64.b64decode(found.get("caBundle", "")).decode()
        wait.until("its caBundle, without an owner", lambda: bundle()
                   and bundle() == _secret(cluster, place)["ca.crt"]
                   and "steward-certs" not in _managers(cluster, "crd", name))
        _apply(cluster, "helm", _crd(place, False))
        assert cluster.get("crd", name)["spec"]["conversion"] == {"strategy": "None"}
        wait.until("readiness without it", lambda: one.status()["ready"])
    finally:
        cluster.delete("crd", name)


def test_late_webhook_configurations_get_the_ca_bundle(cluster, place, replica):
    """They are created later, deleted and recreated; a certificate is served all the time."""
    for kind in HOOKS:
        cluster.delete(kind, place)
    one = replica()
    wait.until("readiness without configurations", lambda: one.status()["ready"])
    for _ in range(2):
        cluster.apply([_hook(kind, place) for kind in HOOKS])
        wait.until("caBundles", lambda: _settled(cluster, place, one)
                   and len(_all_bundles(cluster, place)) == 4)
        cluster.delete(HOOKS[1], place)
    assert one.log_text().count("webhook configuration not found") <= 4


def test_wiped_ca_bundle_is_repaired_at_once(cluster, place, one):
    """Repaired at once through the watch, not by the check each minute."""
    for patch in ({"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""},
                  {"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"}):
        for kind in HOOKS:
            cluster.patch(kind, place, None, [patch])
            wait.until("repair", lambda: _settled(cluster, place, one), seconds=20)


def _change(cluster, place, key, value):
    data = {key: value and base64.b64encode(value.encode()).decode()}
    cluster.patch("secret", "pair", place, {"data": data})


@pytest.mark.parametrize("key, value", [("tls.crt", "garbage"), ("tls.key", "garbage"),
                                        ("tls.crt", "")])
def test_spoiled_certificate_is_reissued(cluster, place, one, key, value):
    """Reissued by the same CA; the log has the reason."""
    before = _secret(cluster, place)
    _change(cluster, place, key, value)
    wait.until("a new leaf", lambda: _settled(cluster, place, one)
               and one.cert() != before["tls.crt"])
    assert _secret(cluster, place)["ca.crt"] == before["ca.crt"]
    assert "new serving certificate issued" in one.log_text() and "reason=" in one.log_text()


def test_changed_dns_names_reissue_the_certificate(cluster, place, one, replica, tmp_path):
    """The Service was renamed: a leaf with the new name is issued."""
    assert one.end() == 0
    former = _secret(cluster, place)["tls.crt"]
    two = replica(names=("renamed.test.svc",))
    wait.until("another leaf", lambda: _settled(cluster, place, two) and two.cert() != former)
    result = _verifies(two.cert(), _secret(cluster, place)["ca.crt"], tmp_path,
                       ("-verify_hostname", "renamed.test.svc"))
    assert result.returncode == 0, result.stderr


class Watchman(threading.Thread):
    """Checks continuously that every caBundle trusts the certificate of each replica."""

    def __init__(self, cluster, place, replicas, folder):
        super().__init__(daemon=True)
        self.cluster, self.place, self.replicas, self.folder = cluster, place, replicas, folder
        self.over, self.looks, self.faults, self.known = threading.Event(), 0, [], set()

    def run(self):
        while not self.over.is_set():
            try:
                self.look()
            except Exception as error:
                self.faults.append(repr(error))
                return

    def look(self):
        before = [r.cert() for r in self.replicas]
        bundles = _all_bundles(self.cluster, self.place)
        if before != [r.cert() for r in self.replicas]:
            return
        for pair in {(leaf, bundle) for leaf in before for bundle in bundles} - self.known:
            # The clock of the replicas is ahead: check only the chain and the name.
            result = _verifies(*pair, self.folder, ("-verify_hostname", HOST, "-no_check_time"))
            if result.returncode != 0:
                self.faults.append(result.stderr)
            self.known.add(pair)
        self.looks += 1

    def end(self):
        wait.until("three looks", lambda: self.faults or self.looks >= 3)
        self.over.set()
        self.join(timeout=30)
        assert not self.faults, self.faults


@pytest.fixture
def watchman(cluster, place, tmp_path):
    started = []

    def start(*replicas):
        folder = tmp_path / "watchman"
        folder.mkdir()
        one = Watchman(cluster, place, replicas, folder)
        one.start()
        started.append(one)
        return one
    yield start
    for one in started:
        one.over.set()


def test_ca_rotation_overlaps_bundles(cluster, place, two, watchman):
    """A new CA is in every caBundle before it signs; the old one is removed after the overlap."""
    first = _secret(cluster, place)
    guard = watchman(*two)
    for replica in two:
        replica.ask("shift", 2500 * DAY)  # of 3650: due; the leaf, valid for 90 days, has expired
    wait.until("the new CA", lambda: _secret(cluster, place)["ca.crt"] != first["ca.crt"])
    wait.until("both to serve its leaf", lambda: _serve_one_leaf(cluster, place, two))
    secret = _secret(cluster, place)
    assert "ca-next.key" not in secret and "ca.key" in secret
    assert _certs(secret["ca-old.crt"]) == _certs(first["ca.crt"])
    assert all(set(_certs(b)) == set(_certs(first["ca.crt"]) + _certs(secret["ca.crt"]))
               for b in _all_bundles(cluster, place))
    assert all(replica.status()["ready"] for replica in two)
    _pass_overlap(cluster, place, *two)
    guard.end()


def test_removed_ca_key_requests_a_new_ca(cluster, place, two, watchman):
    """The removal of ca.key from the Secret requests a new CA."""
    first = _secret(cluster, place)
    guard = watchman(*two)
    _change(cluster, place, "ca.key", None)
    wait.until("both to serve a leaf of the new CA", lambda: _serve_one_leaf(cluster, place, two)
               not in (None, first["tls.crt"]))
    _pass_overlap(cluster, place, *two)
    guard.end()


def test_deleted_secret_keeps_the_served_certificate_trusted(cluster, place, two, watchman):
    """The served certificate stays trusted during the change to a new CA."""
    first = _secret(cluster, place)
    guard = watchman(*two)
    cluster.delete("secret", "pair", place)
    wait.until("both to serve another leaf", lambda: _serve_one_leaf(cluster, place, two)
               not in (None, first["tls.crt"]))
    _pass_overlap(cluster, place, *two)
    guard.end()


def test_crashes_during_ca_rotation_are_survived(cluster, place, two, replica, watchman):
    """One replica keeps running; the other is repeatedly killed and restarted."""
    a, b = two
    guard = watchman(a)
    for _ in range(4):
        _change(cluster, place, "ca.key", None)
        b.crash()
        b = replica()
        wait.until("a start", lambda: b.status()["uses"])
    wait.until("a CA with its key", lambda: "ca.key" in _secret(cluster, place)
               and "ca-next.key" not in _secret(cluster, place))
    # The overlap is for those that still serve a leaf of the former CA: not over before they are.
    wait.until("both to serve its leaf", lambda: _serve_one_leaf(cluster, place, (a, b)))
    _pass_overlap(cluster, place, a, b)
    guard.end()


RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: certs, namespace: {0}}}
rules:
- {{apiGroups: [""], resources: [secrets], verbs: [create]}}
- {{apiGroups: [""], resources: [secrets], resourceNames: [pair], verbs: [get, list, watch, update]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: certs, namespace: {0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: certs}}
subjects: [{{kind: ServiceAccount, name: certs, namespace: {0}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: certs, namespace: {0}}}
"""
CLUSTER_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {0}}}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [{0}]
  verbs: [get, list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {0}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {0}}}
subjects: [{{kind: ServiceAccount, name: certs, namespace: {0}}}]
"""


def test_missing_rights_are_reported(cluster, place, replica, tmp_path):
    """A missing right is reported; the documented ones suffice, also for watches."""
    cluster.apply(RIGHTS.format(place))
    account = cluster.kubeconfig_of(f"{place}/certs", tmp_path / "account")
    one = replica(kubeconfig=account)
    wait.until("a reason", lambda: "cannot read MutatingWebhookConfiguration" in one.status()["why"])
    assert not one.status()["ready"]
    cluster.apply(CLUSTER_RIGHTS.format(place))
    try:
        wait.until("readiness with the rights", lambda: one.status()["ready"])
        _wait_settled(cluster, place, one)
        two = replica(kubeconfig=account)
        wait.until("readiness of the second", lambda: two.status()["ready"])
        cluster.patch(HOOKS[0], place, None, [NO_BUNDLE])
        wait.until("repair", lambda: _settled(cluster, place, one, two), seconds=20)
    finally:
        cluster.delete("clusterrolebinding", place)
        cluster.delete("clusterrole", place)


def test_api_server_outage_is_survived(cluster, place, one):
    """Killed and restarted: the certificate is still served, and the watches are resumed."""
    if not cluster.name or os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("needs a cluster of scripts/cluster")
    cluster.component("kill", "apiserver")
    assert one.status()["ready"]
    cluster.component("start", "apiserver")
    cluster.patch(HOOKS[0], place, None, [NO_BUNDLE])
    wait.until("repair", lambda: _settled(cluster, place, one))
