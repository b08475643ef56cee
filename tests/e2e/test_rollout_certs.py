# SPDX-License-Identifier: Apache-2.0
"""Certificates are renewed, lost and spoilt under a stream of calls, none of which fails for it."""

import base64
import json

import pytest

from support import wait
from support.replicas import long_run
from support.steward import NAMESPACE, WEBHOOK_CONFIGURATIONS
from support.stream import OpenDoors, Stream

SECRET = "steward-webhook-server-cert"


def secret(cluster):
    """{key: text}; {} when there is none."""
    found = cluster.get("secret", SECRET, NAMESPACE) or {"data": {}}
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def bundles(cluster):
    """What the API server trusts, of each webhook."""
    return {base64.b64decode(w["clientConfig"].get("caBundle", "")).decode()
            for kind, name in WEBHOOK_CONFIGURATIONS for w in cluster.get(kind, name)["webhooks"]}


@pytest.fixture
def stream(replicas, namespace):
    """A Stream that has to end well."""
    doors = OpenDoors(replicas.cluster)
    with Stream(replicas.cluster, namespace) as one:
        yield one
        one.flow(100)
        one.check()
    doors.check()


def wait_other(cluster, key, old, seconds=30):
    """Until the Secret has another one than `old` under this key; returns all of it."""
    def look():
        found = secret(cluster)
        return found if found.get(key) not in (None, "", old) else None
    return wait.until(f"a new {key}", look, seconds)


def test_new_certificates(replicas, stream):
    cluster = replicas.cluster
    for _ in range(long_run(10, 50)):
        old = secret(cluster)["tls.crt"]
        read = {n: replicas.metric(n, "certwatcher_read_certificate_total")
                for n in replicas.names()}
        cluster.patch("secret", SECRET, NAMESPACE, {"data": {"tls.crt": ""}})
        wait_other(cluster, "tls.crt", old)
        for name, count in read.items():
            wait.until(f"{name} to serve it", lambda n=name, c=count: replicas.metric(
                n, "certwatcher_read_certificate_total") > c)
        stream.flow(5)
    for name in replicas.names():
        assert replicas.metric(name, "certwatcher_read_certificate_errors_total") == 0


def test_new_ca(replicas, stream):
    cluster = replicas.cluster
    for _ in range(long_run(1, 3)):
        old = secret(cluster)
        cluster.patch("secret", SECRET, NAMESPACE, {"data": {"ca.key": None}})
        new = wait_other(cluster, "tls.crt", old["tls.crt"], 60)
        assert new["ca.crt"] != old["ca.crt"]
        stream.flow()


def test_the_secret_is_deleted(replicas, stream):
    """What is served stays in service until what comes new is trusted."""
    cluster = replicas.cluster
    for _ in range(long_run(1, 3)):
        old = secret(cluster)
        cluster.delete("secret", SECRET, NAMESPACE)
        wait_other(cluster, "tls.crt", old["tls.crt"], 60)
        wait.until("all to be ready", lambda: all(replicas.is_ready(n) for n in replicas.names()),
                   60, every=0.2)
        stream.flow()


@pytest.mark.parametrize("bundle", ["", base64.b64encode(b"not a certificate").decode()])
def test_the_ca_bundle_is_spoilt_by_hand(replicas, namespace, bundle):
    """The API server trusts nobody then, until steward mends it; nothing bad gets in meanwhile."""
    cluster = replicas.cluster
    good = bundles(cluster)
    assert len(good) == 1
    with Stream(cluster, namespace) as stream:
        for kind, name in WEBHOOK_CONFIGURATIONS:
            patch = [{"op": "replace", "path": f"/webhooks/{n}/clientConfig/caBundle",
                      "value": bundle} for n in range(len(cluster.get(kind, name)["webhooks"]))]
            cluster.kubectl("patch", kind, name, "--type=json", "-p", json.dumps(patch))
        wait.until("it to be mended", lambda: bundles(cluster) == good, 20)
        stream.flow(100)
        stream.end()
    assert not stream.let_in
    assert all("failed calling webhook" in f for f in stream.failed), stream.failed[:3]
    replicas.wait_door()
    with Stream(cluster, namespace) as stream:
        stream.flow(100)
        stream.check()
