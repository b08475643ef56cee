# SPDX-License-Identifier: Apache-2.0
"""A CA rotation while admission is in use: no call fails, no connection is closed."""

import base64
import http.client
import ssl
import threading

import pytest
from support import myweb, wait
from support.steward import NAMESPACE, WEBHOOK_CONFIGURATIONS
from support.webhook import JSON, VALIDATE, as_bytes, review

SECRET = "steward-webhook-server-cert"


def _secret(cluster):
    found = cluster.get("secret", SECRET, NAMESPACE)
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def _bundles(cluster):
    return {base64.b64decode(w["clientConfig"]["caBundle"]).decode()
            for kind, name in WEBHOOK_CONFIGURATIONS for w in cluster.get(kind, name)["webhooks"]}


class Askers:
    """Threads that repeatedly send the API server a request that steward must refuse."""

    def __init__(self, cluster, namespace, count=3):
        self.cluster, self.asked, self.wrong = cluster, 0, []
        self.over = threading.Event()
        self.body = myweb.manifest("load", namespace, nodePortNumber=80)
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.over.is_set():
            reply = self.cluster.create(self.body, dry_run=True, check=False)
            if "must be 0 or between" not in reply.stderr:
                self.wrong.append(reply.stdout + reply.stderr)
            self.asked += 1

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(timeout=60)


@pytest.fixture
def askers(installed, namespace):
    started = []

    def start():
        started.append(Askers(installed, namespace))
        return started[-1]
    yield start
    for one in started:
        one.end()


def _connect(port, bundle):
    context = ssl.create_default_context(cadata=bundle)
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    connection.connect()
    return connection


def _ask(connection):
    connection.request("POST", VALIDATE, as_bytes(review()), JSON)
    reply = connection.getresponse()
    return reply.status, reply.read()


def test_ca_rotation_under_load_fails_no_call(installed, run_steward, askers):
    """ca.key is removed from the Secret, which makes steward create a new CA."""
    one, other = run_steward(webhook=True), run_steward()
    before = _secret(installed)
    kept = [_connect(s.webhook_port, before["ca.crt"]) for s in (one, other)]
    assert [_ask(c)[0] for c in kept] == [200, 200]
    load = askers()
    wait.until("some admissions", lambda: load.asked > 10)
    installed.patch("secret", SECRET, NAMESPACE, {"data": {"ca.key": None}})

    def took_over():
        secret = _secret(installed)
        if secret.get("ca.crt") == before["ca.crt"] or secret["tls.crt"] == before["tls.crt"]:
            return None
        for replica in (one, other):
            _connect(replica.webhook_port, secret["ca.crt"]).close()
        return secret
    after = wait.until("both replicas to serve a leaf of the new CA", took_over, seconds=40)
    asked = load.asked
    wait.until("more admissions by new connections", lambda: load.asked > asked + 20)
    load.end()
    assert not load.wrong, load.wrong[:3]
    assert [_ask(c)[0] for c in kept] == [200, 200], "a connection of before was dropped"
    bundles = _bundles(installed)
    assert len(bundles) == 1 and before["ca.crt"] in bundles.pop()
    assert before["ca.crt"] in after["ca-old.crt"]  # together with those of an earlier run
    for replica in (one, other):
        assert replica.readyz()[0] == 200
        assert replica.metric("certwatcher_read_certificate_errors_total") == 0
        assert "PRIVATE KEY" not in replica.log_path.read_text("utf-8", "replace")
