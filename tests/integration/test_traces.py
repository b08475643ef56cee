# SPDX-License-Identifier: Apache-2.0
"""Traces of admission by OTLP/HTTP: what is sent, hostile clients, and collectors in trouble."""

import concurrent.futures
import contextlib
import os
import subprocess
import time

import pytest

from support import endless, net, wait
from support.collector import Collector
from support.webhook import JSON, MUTATE, VALIDATE, Webhook, as_bytes, ask, make_pair, my_web, review

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}


@pytest.fixture
def make_traced(steward_binary, tmp_path):
    """make_traced(collector, *flags, **env): a `steward webhook` that sends its spans there."""
    with contextlib.ExitStack() as stack:
        def make(collector, *args, **env):
            flags = ["--traces-endpoint", collector.url, *args] if collector else args
            one = Webhook(steward_binary, tmp_path / f"webhook-{time.monotonic_ns()}", flags)
            one.env = {**SOON, **env}
            stack.callback(lambda: one.process.poll() is not None or one.stop())
            return one.start()
        yield make


def dropped(webhook, reason):
    return webhook.metric("steward_trace_spans_dropped_total", reason=reason)


def exported(webhook):
    return webhook.metric("steward_trace_spans_exported_total")


def test_review_is_a_span(make_traced):
    with Collector() as collector:
        webhook = make_traced(collector, OTEL_SERVICE_NAME="the-service",
                              OTEL_RESOURCE_ATTRIBUTES="k8s.cluster.name=one%20two")
        sent = {**JSON, "traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"}
        assert webhook.post(review(), VALIDATE, sent)[0] == 200
        assert webhook.post(review(my_web(nodePortNumber=1), dryRun=True), MUTATE)[0] == 200
        wait.until("both spans", lambda: len(collector.spans) == 2)
        allowed, = collector.named("POST /validate-")
        denied, = collector.named("POST /mutate-")
        assert (allowed.trace, allowed.parent, allowed.kind) == (TRACE, SPAN, 2)
        assert allowed.raw["flags"] == 0x301
        assert {k: v for k, v in allowed.attributes.items() if k.startswith("k8s.")} == {
            "k8s.object.kind": "MyWeb", "k8s.namespace.name": "shop", "k8s.object.name": "web",
            "k8s.admission.operation": "CREATE", "k8s.admission.dry_run": False,
            "k8s.admission.allowed": True, "k8s.admission.findings": 0}
        assert allowed.attributes["http.response.status_code"] == 200
        assert allowed.resource["service.name"] == "the-service"
        assert allowed.resource["k8s.cluster.name"] == "one two"
        assert (denied.parent, denied.trace != TRACE) == (None, True)
        assert denied.attributes["k8s.admission.allowed"] is False
        assert denied.attributes["k8s.admission.findings"] == 1
        assert denied.status == {}  # a denial is not a failure
        for text in ("hello", "jane", "nginx", "nodePort"):
            assert text not in collector.everything()
        assert collector.problems == []
        assert exported(webhook) == 2


def test_malformed_traceparent_starts_a_new_trace(make_traced):
    """It begins a trace of its own, and the review is answered."""
    values = ["", "x", f"00-{TRACE}-{SPAN}", f"00-{TRACE.upper()}-{SPAN}-01", "0" * 7000,
              f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{SPAN}-01",
              f"00-{TRACE}-{SPAN}-01-x", f"00-{'g' * 32}-{SPAN}-01", "00-\xff\xfe"]
    with Collector() as collector:
        webhook = make_traced(collector).keep()
        for value in values:
            assert webhook.post(review(), VALIDATE, {**JSON, "traceparent": value})[0] == 200
        wait.until("the spans", lambda: len(collector.spans) == len(values))
        assert all(s.parent is None and s.trace != TRACE for s in collector.spans)
        assert len({s.trace for s in collector.spans}) == len(values)


def test_sampling_follows_caller_or_sampler(make_traced):
    with Collector() as collector:
        webhook = make_traced(collector, OTEL_TRACES_SAMPLER="parentbased_traceidratio",
                              OTEL_TRACES_SAMPLER_ARG="0").keep()
        for flags in ("00", "01", "00"):
            head = {**JSON, "traceparent": f"00-{TRACE}-{SPAN}-{flags}"}
            assert webhook.post(review(), VALIDATE, head)[0] == 200
        assert webhook.post(review())[0] == 200
        assert webhook.stop() == 0
        assert [s.trace for s in collector.spans] == [TRACE]


def test_queued_spans_are_sent_at_shutdown(make_traced):
    with Collector() as collector:
        webhook = make_traced(collector, OTEL_BSP_SCHEDULE_DELAY="60000").keep()
        for _ in range(20):
            assert webhook.post(review())[0] == 200
        assert collector.bodies == []
        assert webhook.stop() == 0
        assert len(collector.spans) == 20 and len(collector.bodies) == 1


def test_failed_export_is_retried(make_traced):
    """503 and a cut connection are retried, after the time that Retry-After asks for."""
    answers = [(503, {"Retry-After": "2"}, b"busy"), "close"]
    with Collector(lambda number: answers[number] if number < 2 else None) as collector:
        webhook = make_traced(collector)
        assert webhook.post(review())[0] == 200
        begin = time.monotonic()
        wait.until("the span", lambda: collector.spans)
        assert time.monotonic() - begin >= 2
        assert len(collector.bodies) == 3 and len(set(collector.bodies)) == 1
        wait.until("it to be counted", lambda: exported(webhook) == 1)
        assert dropped(webhook, "unreachable") == 0


def test_rejected_spans_are_counted(make_traced):
    """A status that is not retried, a partial success, and garbage."""
    answers = [(400, {}, b"\x00\xff garbage"),
               (200, {}, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}'),
               (200, {}, b'{"partialSuccess":{"rejectedSpans":999999}}'),
               (200, {}, b"[" * 100000), (302, {"Location": "/elsewhere"}, b"")]
    with Collector(lambda number: answers[number]) as collector:
        webhook = make_traced(collector).keep()
        for number, (rejected, accepted) in enumerate([(1, 0), (2, 0), (3, 0), (3, 1), (4, 1)], 1):
            assert webhook.post(review())[0] == 200
            wait.until(f"answer {number}", lambda: len(collector.bodies) == number)
            wait.until("it to be counted",
                       lambda: (dropped(webhook, "rejected"), exported(webhook)) == (rejected, accepted))
        warnings = [e for e in webhook.log() if e["msg"].startswith("spans were dropped")]
        assert len(warnings) == 1  # one a minute
        assert warnings[0]["error"] == "HTTP status 400"


def test_hanging_collector_does_not_slow_reviews(make_traced):
    """More sampled reviews than the queue takes: all are answered, the rest is dropped and counted;
    and the end does not wait for the collector."""
    count = 1800  # admission may fill half of the queue: 1,024; and a batch of 512 is under way
    head = {**JSON, "traceparent": f"00-{TRACE}-{SPAN}-01"}
    body = as_bytes(review())
    with Collector(lambda number: "hang") as collector:
        webhook = make_traced(collector)

        def many(_):
            with contextlib.closing(webhook.https()) as connection:
                return [ask(connection, "POST", VALIDATE, body, head)[0]
                        for _ in range(count // 4)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for statuses in pool.map(many, range(4)):
                assert set(statuses) == {200}
        assert dropped(webhook, "queue_full") >= count - 1024 - 512
        assert dropped(webhook, "queue_full") < count
        begin = time.monotonic()
        assert webhook.stop() == 0
        assert time.monotonic() - begin < wait.within(12)


@pytest.mark.parametrize("kind", endless.START)
def test_endless_collector_response_is_limited(make_traced, kind):
    """It costs a batch, and no memory."""
    with endless.Endless(kind) as server:
        webhook = make_traced(server)
        assert webhook.post(review())[0] == 200
        assert webhook.stop() == 0
        line, = [e for e in webhook.log() if e["msg"].startswith("spans were dropped")]
        assert line["spans"] == 1, line
        assert server.sent < server.most


def test_missing_collector_counts_dropped_spans(make_traced):
    """Reviews are answered; and the spans are counted when the process gives up."""
    with Collector() as collector:
        url = collector.url
    webhook = make_traced(None, "--traces-endpoint", url)
    assert webhook.post(review())[0] == 200
    assert webhook.stop() == 0
    lines = [e for e in webhook.log() if e["msg"].startswith("spans were dropped")]
    assert lines and lines[0]["endpoint"] == url and lines[0]["spans"] == 1


def test_https_uses_the_given_ca_and_headers(make_traced, tmp_path):
    """The CA of the variable is trusted, and only it; header values are in no log."""
    pair, other = make_pair(tmp_path / "pair"), make_pair(tmp_path / "other")
    headers = "authorization=Bearer%20s3cretT0ken,x-scope=a"
    with Collector(tls=pair) as collector:
        webhook = make_traced(collector, OTEL_EXPORTER_OTLP_HEADERS=headers,
                              OTEL_EXPORTER_OTLP_CERTIFICATE=str(pair / "tls.crt"))
        assert webhook.post(review())[0] == 200
        wait.until("the span", lambda: collector.spans)
        assert collector.headers[0]["authorization"] == "Bearer s3cretT0ken"
        assert collector.headers[0]["x-scope"] == "a"
        assert "s3cret" not in webhook.log_text()
        assert webhook.stop() == 0
        wrong = make_traced(collector, OTEL_EXPORTER_OTLP_HEADERS=headers,
                            OTEL_EXPORTER_OTLP_CERTIFICATE=str(other / "tls.crt"))
        assert wrong.post(review())[0] == 200
        assert wrong.stop() == 0
        assert len(collector.spans) == 1
        assert "spans were dropped" in wrong.log_text() and "s3cret" not in wrong.log_text()


def test_endpoint_is_read_from_the_environment(make_traced):
    with Collector() as collector:
        webhook = make_traced(None, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url + "/")
        assert webhook.post(review())[0] == 200
        wait.until("the span", lambda: collector.spans)


def test_tracing_is_off_by_default(make_webhook):
    webhook = make_webhook()
    assert webhook.post(review(), VALIDATE, {**JSON, "traceparent": f"00-{TRACE}-{SPAN}-01"})[0] == 200
    assert exported(webhook) == 0
    assert "traces" not in webhook.log_text()


@pytest.mark.parametrize("flag, env, text", [
    ("collector:4318", {}, "--traces-endpoint is not a URL of a collector"),
    ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:pa55@c"}, "OTEL_EXPORTER_OTLP_ENDPOINT is not"),
    ("http://c", {"OTEL_EXPORTER_OTLP_HEADERS": "pa55"}, "OTEL_EXPORTER_OTLP_HEADERS is not a list"),
    ("http://c", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
])
def test_malformed_setting_is_refused_at_start(steward_binary, tmp_path, flag, env, text):
    said = subprocess.run(
        [steward_binary, "webhook", "--webhook-cert-path", make_pair(tmp_path / "c"),
         "--webhook-bind-address", f"127.0.0.1:{net.free_port()}", "--metrics-bind-address", "0",
         "--health-probe-bind-address", "0", "--traces-endpoint", flag],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **env})
    assert said.returncode == 1
    assert text in said.stderr and "pa55" not in said.stderr
