# SPDX-License-Identifier: Apache-2.0
"""Certificate reloads, metrics, and a graceful stop."""

import contextlib
import json
import ssl
import subprocess
import threading
import time

from support import net, wait
from support.webhook import (JSON, MUTATE, VALIDATE, as_bytes, ask, make_pair, my_web, raw_post,
                             read_reply, review, swap_pair)

GOOD = as_bytes(review())


def shown_certificate(webhook):
    """The certificate that a new client gets, as DER."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", webhook.port)))


def der(folder):
    """The certificate of a folder, as DER."""
    return ssl.PEM_cert_to_DER_cert((folder / "tls.crt").read_text())


def test_certificate_reload_keeps_connections(make_webhook, tmp_path):
    """A new pair is served to new connections; existing ones are not affected."""
    webhook = make_webhook()
    new = make_pair(tmp_path / "new", "new")
    with contextlib.closing(webhook.https()) as kept:
        assert ask(kept, "POST", VALIDATE, GOOD, JSON)[0] == 200
        sock = kept.sock
        assert shown_certificate(webhook) == der(webhook.certs)
        swap_pair(webhook.certs, new)
        wait.until("the new certificate to be served", lambda: shown_certificate(webhook) == der(new))
        assert ask(kept, "POST", VALIDATE, GOOD, JSON)[0] == 200
        assert kept.sock is sock
    assert webhook.post(review())[0] == 200


def test_broken_certificate_pair_is_refused(make_webhook, tmp_path):
    """The old pair stays in use; the failure is counted and logged."""
    webhook = make_webhook()
    old = der(webhook.certs)
    other = make_pair(tmp_path / "other", "other")
    before = webhook.metric("certwatcher_read_certificate_errors_total")
    (webhook.certs / "tls.key").write_bytes((other / "tls.key").read_bytes())
    wait.until("the failure to be counted",
               lambda: webhook.metric("certwatcher_read_certificate_errors_total") > before)
    assert shown_certificate(webhook) == old
    assert "PRIVATE KEY" not in webhook.log_text()
    # A complete pair is then accepted.
    swap_pair(webhook.certs, other)
    wait.until("the new certificate to be served", lambda: shown_certificate(webhook) == der(other))


def test_certificate_rotation_under_load_fails_no_call(make_webhook, tmp_path):
    """New connections all the time, each with a review: none fails."""
    webhook = make_webhook()
    pairs = [make_pair(tmp_path / f"pair-{i}", f"pair-{i}") for i in range(4)]
    context = ssl._create_unverified_context()  # the certificate changes during the test
    failures, count, stop = [], [0], threading.Event()

    def client():
        while not stop.is_set():
            try:
                with context.wrap_socket(webhook.tcp()) as sock:
                    sock.sendall(raw_post(GOOD))
                    assert read_reply(sock)[0] == 200
                    count[0] += 1
            except (OSError, AssertionError) as error:
                failures.append(repr(error))
    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for pair in pairs:
            swap_pair(webhook.certs, pair)
            wait.until("the pair to be served", lambda p=pair: shown_certificate(webhook) == der(p))
            enough = count[0] + 20
            wait.until("more reviews", lambda n=enough: failures or count[0] >= n)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[:3]


def test_reviews_are_counted_in_metrics(make_webhook):
    """Requests, decisions and findings are counted under the names that dashboards use."""
    webhook = make_webhook()
    requests = "controller_runtime_webhook_requests_total"
    reviews = "steward_admission_reviews_total"
    status, text = net.http_get(f"http://127.0.0.1:{webhook.metrics_port}/metrics")
    assert status == 200
    for path in (VALIDATE, MUTATE):
        for code in (200, 500):
            assert f'{requests}{{webhook="{path}",code="{code}"}} 0' in text
    assert webhook.post(review())[0] == 200
    assert webhook.post(review(), MUTATE)[0] == 200
    assert webhook.post(review(my_web(nodePortNumber=1, image="")))[0] == 200
    assert webhook.post(review(my_web(nodePortNumber=1), dryRun=True))[0] == 200
    assert webhook.post(b"{")[0] == 400
    assert webhook.metric(requests, webhook=VALIDATE, code="200") == 3
    assert webhook.metric(requests, webhook=MUTATE, code="200") == 1
    assert webhook.metric(requests, webhook=VALIDATE, code="400") == 1
    assert webhook.metric(reviews, webhook=VALIDATE, kind="MyWeb", operation="CREATE", allowed="true") == 1
    assert webhook.metric(reviews, webhook=VALIDATE, allowed="false", dry_run="false") == 1
    assert webhook.metric(reviews, webhook=VALIDATE, allowed="false", dry_run="true") == 1
    assert webhook.metric("steward_admission_violations_total", kind="MyWeb", field="spec.nodePortNumber",
                          code="FieldValueInvalid") == 2
    assert webhook.metric("controller_runtime_webhook_latency_seconds_count", webhook=VALIDATE) == 4
    wait.until("the last to be over", lambda: webhook.metric(
        "controller_runtime_webhook_requests_in_flight") == 0)


def test_denials_are_logged_without_content(make_webhook):
    """The log has the object's name, the user and the number of findings, but no content."""
    webhook = make_webhook()
    webhook.post(review(my_web(image="No Image", pageContentHtml="s3cret", nodePortNumber=1)))
    line = wait.until("the line", lambda: next(
        (e for e in webhook.log() if e["msg"] == "admission denied"), None))
    assert line["kind"] == "MyWeb" and line["namespace"] == "shop" and line["name"] == "web"
    assert line["operation"] == "CREATE" and line["user"] == "jane" and line["findings"] == 2
    assert "s3cret" not in webhook.log_text() and "No Image" not in webhook.log_text()


def test_stop_finishes_open_requests(make_webhook):
    """SIGTERM during a request: it is answered, then the connection is closed; exit status 0."""
    webhook = make_webhook()
    request = raw_post(GOOD)
    with webhook.tls() as sock:
        sock.sendall(request[:-1])
        wait.until("the request to be in flight",
                   lambda: webhook.metric("controller_runtime_webhook_requests_in_flight") == 1)
        webhook.terminate()
        wait.until("the stop to begin", lambda: any(e["msg"] == "stopping" for e in webhook.log()))
        sock.sendall(request[-1:])
        status, body = read_reply(sock)
        assert status == 200 and json.loads(body)["response"]["allowed"]
        assert sock.recv(1) == b""
    assert webhook.stop() == 0


def test_stop_with_idle_connections_is_quick(make_webhook):
    """Idle kept-alive connections do not delay it."""
    webhook = make_webhook()
    with contextlib.closing(webhook.https()) as kept:
        assert ask(kept, "POST", VALIDATE, GOOD, JSON)[0] == 200
        begin = time.monotonic()
        assert webhook.stop() == 0
        assert time.monotonic() - begin < 5


def test_readiness_fails_before_admission_stops(make_webhook):
    """After SIGTERM, /readyz fails while admission continues for the shutdown delay."""
    webhook = make_webhook("--shutdown-delay", "8s")
    webhook.terminate()
    wait.until("readiness to go", lambda: webhook.readyz()[0] == 500)
    assert "shutting down" in webhook.readyz()[1]
    assert webhook.post(review())[0] == 200
    assert net.http_get(f"http://127.0.0.1:{webhook.health_port}/healthz")[0] == 200
    assert webhook.stop() == 0


def test_address_in_use_is_an_error(make_webhook, steward_binary):
    """A clear error message, and steward exits."""
    webhook = make_webhook()
    second = subprocess.run(
        [str(steward_binary), "webhook", "--webhook-cert-path", str(webhook.certs),
         "--webhook-bind-address", f"127.0.0.1:{webhook.port}", "--health-probe-bind-address", "0",
         "--metrics-bind-address", "0"], capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode != 0
    assert f"127.0.0.1:{webhook.port}" in second.stderr and "in use" in second.stderr
