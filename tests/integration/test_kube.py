# SPDX-License-Identifier: Apache-2.0
"""The API client and its cache with a real API server; the test drives kube_probe.c."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
import yaml

from support import paths, wait
from support.cluster import run

pytestmark = pytest.mark.oldest("lists, watches and bookmarks, server-side apply")

DATA = paths.TOP / "tests" / "data" / "owned"
MANAGER = "steward-test"


class Probe:
    """kube_probe: one command per line, one line of JSON back."""

    def __init__(self, cluster, resource, namespace, kubeconfig=None):
        binary = paths.steward_binary().parents[1] / "tests" / "integration" / "kube_probe"
        self.process = subprocess.Popen([binary, resource, namespace], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=dict(os.environ,
                                                 KUBECONFIG=str(kubeconfig or cluster.kubeconfig)))

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def keys(self):
        return set(self.ask("keys")["keys"].split())

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.kill()


@pytest.fixture
def place(cluster):
    """A namespace; no steward runs in the cluster."""
    name = f"kube-{os.getpid()}-{os.urandom(3).hex()}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)


@pytest.fixture
def probe(cluster, place):
    one = Probe(cluster, "configmaps", place)
    try:
        wait.until("the first list", lambda: one.ask("synced")["synced"])
        yield one
    finally:
        assert one.end() == 0


def _configmaps(namespace, numbers, text):
    return [{"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": f"cm-{n}", "namespace": namespace}, "data": {"text": text}}
            for n in numbers]


def _cached(probe, cluster, namespace):
    """True when the cache has exactly the objects that kubectl sees, with their versions."""
    real = {f"{namespace}/{o['metadata']['name']}": o["metadata"]["resourceVersion"]
            for o in cluster.list("configmap", namespace)}
    return probe.keys() == set(real) and all(
        probe.ask("version", key)["rv"] == rv for key, rv in real.items())


def test_cache_is_complete_after_api_server_crashes(cluster, place, probe):
    """1,000 objects; the API server is killed, and objects change while the watch is down."""
    cluster.create(_configmaps(place, range(1000), "first"))
    wait.until("1,000 objects in the cache", lambda: _cached(probe, cluster, place), seconds=120)

    cluster.component("kill", "apiserver")
    wait.until("the cache to notice", lambda: probe.ask("problem")["problem"])
    probe.process.send_signal(signal.SIGSTOP)
    cluster.component("start", "apiserver")
    for n in range(100):
        cluster.delete("configmap", f"cm-{n}", place)
    cluster.apply(_configmaps(place, range(100, 110), "second"))
    cluster.apply(_configmaps(place, range(2000, 2010), "new"))
    probe.process.send_signal(signal.SIGCONT)
    wait.until("the cache to catch up", lambda: _cached(probe, cluster, place), seconds=120)
    assert probe.ask("version", f"{place}/cm-105")["object"] == {"data": {"text": "second"}}
    wait.until("the problem to be over", lambda: not probe.ask("problem")["problem"], seconds=60)

    # The next watch works like the first one.
    cluster.delete("configmap", "cm-500", place)
    wait.until("the deletion", lambda: f"{place}/cm-500" not in probe.keys())


def _desired(cluster, name, namespace, folder):
    manifest = json.loads((DATA / f"{name}.desired.json").read_text(encoding="utf-8"))
    manifest["metadata"]["namespace"] = namespace
    manifest["apiVersion"] = cluster.kinds.of_word(manifest["kind"]).version
    for port in manifest["spec"].get("ports", []) if "spec" in manifest else []:
        port.pop("nodePort", None)
    path = pathlib.Path(folder) / f"{name}.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return path


OWNED = [  # desired object, its kind, edits of a foreign and an owned field, the path that differs
    ("configmap", "configmap", {"data": {"other": "x"}}, {"data": {"index.html": "x"}},
     "data.index.html"),
    ("service", "service", {"spec": {"sessionAffinity": "ClientIP"}},
     {"spec": {"selector": {"app.kubernetes.io/name": "other"}}},
     "spec.selector.app.kubernetes.io/name"),
    ("deployment", "deployment", {"spec": {"paused": True}}, {"spec": {"replicas": 3}},
     "spec.replicas"),
    ("empties", "deployment", {"spec": {"paused": True}}, {"spec": {"replicas": 1}},
     "spec.replicas"),
    ("poddisruptionbudget", "poddisruptionbudget", {"metadata": {"labels": {"a": "b"}}},
     {"spec": {"minAvailable": 2}}, "spec.minAvailable"),
]


@pytest.mark.parametrize("name,kind,foreign,ours,path", OWNED, ids=[row[0] for row in OWNED])
def test_drift_is_detected(cluster, place, probe, tmp_path, name, kind, foreign, ours, path):
    file = _desired(cluster, name, place, tmp_path)
    named = json.loads(file.read_text(encoding="utf-8"))["metadata"]["name"]
    first = probe.ask("apply", MANAGER, file)
    assert first["same"], first
    again = probe.ask("apply", MANAGER, file)
    assert again["same"], again

    cluster.patch(kind, named, place, foreign)
    assert probe.ask("owned", MANAGER, file)["same"]

    cluster.patch(kind, named, place, ours)
    drifted = probe.ask("owned", MANAGER, file)
    assert (drifted["same"], drifted["diff"]) == (False, path)

    healed = probe.ask("apply", MANAGER, file)
    assert (healed["same"], healed["diff"]) == (True, "")


def test_cache_contains_own_write_at_once(cluster, place, probe, tmp_path):
    file = _desired(cluster, "configmap", place, tmp_path)
    answer = probe.ask("apply", MANAGER, file)
    assert probe.ask("version", f"{place}/page")["rv"] == answer["rv"]


def _client_pair(folder, authority=None):
    """client.crt and client.key of an administrator, signed by the cluster's CA or self-signed."""
    key, cert, request = (folder / f"client.{end}" for end in ("key", "crt", "csr"))
    subject = ["-subj", "/O=system:masters/CN=rotated", "-newkey", "ec", "-pkeyopt",
               "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]
    if authority:
        run(["openssl", "req", *subject, "-out", request])
        run(["openssl", "x509", "-req", "-in", request, "-CA", authority / "ca.crt", "-CAkey",
             authority / "ca.key", "-CAcreateserial", "-CAserial", folder / "serial",
             "-days", "2", "-out", cert])
    else:
        run(["openssl", "req", "-x509", *subject, "-days", "2", "-out", cert])


def test_rotated_client_certificate_is_read_again(cluster, place, tmp_path):
    """When the server refuses a certificate, the file is read again, as with a token."""
    authority = pathlib.Path(cluster.env.get("STEWARD_CLUSTER_DIR", "")) / "pki"
    if not (authority / "ca.key").exists():
        pytest.skip("the CA of this cluster is not at hand")
    _client_pair(tmp_path)
    config = yaml.safe_load(pathlib.Path(cluster.kubeconfig).read_text("utf-8"))
    config["users"][0]["user"] = {"client-certificate": "client.crt", "client-key": "client.key"}
    (tmp_path / "config").write_text(json.dumps(config), "utf-8")
    one = Probe(cluster, "configmaps", place, tmp_path / "config")
    try:
        wait.until("a refusal", lambda: "Unauthorized" in one.ask("problem")["problem"])
        _client_pair(tmp_path, authority)
        wait.until("the list", lambda: one.ask("synced")["synced"])
    finally:
        assert one.end() == 0
