# SPDX-License-Identifier: Apache-2.0
"""Certificates are renewed, lost and damaged under a stream of calls, none of which fails."""

import base64

import pytest

from support import certs, wait
from support.replicas import long_run
from support.steward import NAMESPACE, WEBHOOK_CONFIGURATIONS
from support.stream import AdmittedUnasked, Stream


@pytest.fixture
def stream(replicas, namespace):
    """A Stream that must end without failed calls."""
    unasked = AdmittedUnasked(replicas.cluster)
    with Stream(replicas.cluster, namespace) as one:
        yield one
        one.flow(100)
        one.check()
    unasked.check()


def test_certificate_renewal_fails_no_call(replicas, stream):
    cluster = replicas.cluster
    for _ in range(long_run(5, 50)):
        old = certs.read(cluster)["tls.crt"]
        read = {n: replicas.metric(n, "certwatcher_read_certificate_total")
                for n in replicas.names()}
        cluster.patch("secret", certs.SECRET, NAMESPACE, {"data": {"tls.crt": ""}})
        certs.wait_other(cluster, "tls.crt", old)
        for name, count in read.items():
            wait.until(f"{name} to serve it", lambda n=name, c=count: replicas.metric(
                n, "certwatcher_read_certificate_total") > c)
        stream.flow(5)
    for name in replicas.names():
        assert replicas.metric(name, "certwatcher_read_certificate_errors_total") == 0


def test_ca_renewal_fails_no_call(replicas, stream):
    cluster = replicas.cluster
    for _ in range(long_run(1, 3)):
        old = certs.read(cluster)
        cluster.patch("secret", certs.SECRET, NAMESPACE, {"data": {"ca.key": None}})
        new = certs.wait_other(cluster, "tls.crt", old["tls.crt"], 60)
        assert new["ca.crt"] != old["ca.crt"]
        stream.flow()


def test_deleted_certificate_secret_fails_no_call(replicas, stream):
    """The old certificate is served until the API server trusts the new one."""
    cluster = replicas.cluster
    for _ in range(long_run(1, 3)):
        old = certs.read(cluster)
        cluster.delete("secret", certs.SECRET, NAMESPACE)
        certs.wait_other(cluster, "tls.crt", old["tls.crt"], 60)
        wait.until("all to be ready", lambda: all(replicas.is_ready(n) for n in replicas.names()),
                   60, every=0.2)
        stream.flow()


@pytest.mark.parametrize("bundle", ["", base64.b64encode(b"not a certificate").decode()])
def test_spoilt_ca_bundle_is_repaired(replicas, namespace, bundle):
    """The API server trusts no webhook until steward repairs it; nothing invalid is stored."""
    cluster = replicas.cluster
    good = certs.bundles(cluster)
    assert len(good) == 1
    with Stream(cluster, namespace) as stream:
        for kind, name in WEBHOOK_CONFIGURATIONS:
            patch = [{"op": "replace", "path": f"/webhooks/{n}/clientConfig/caBundle",
                      "value": bundle} for n in range(len(cluster.get(kind, name)["webhooks"]))]
            cluster.patch(kind, name, None, patch)
        wait.until("it to be mended", lambda: certs.bundles(cluster) == good)
        stream.flow(100)
        stream.end()
    assert not stream.accepted
    assert all("failed calling webhook" in f for f in stream.failed), stream.failed[:3]
    replicas.wait_webhook()
    with Stream(cluster, namespace) as stream:
        stream.flow(100)
        stream.check()
