# SPDX-License-Identifier: Apache-2.0
"""Traces of a steward beside a cluster: one `kubectl apply` is a review and reconciles, whose requests
to the API server are their children."""

import json
import pathlib

import pytest

from support import steward as stw
from support import wait
from support.collector import Collector

pytestmark = pytest.mark.oldest("requests carry a header, and reviews come from the API server")

SECRET = "s3cret-page-of-a-tenant"


@pytest.fixture(scope="module")
def collector():
    """A collector that runs as long as the steward."""
    with Collector() as one:
        yield one
        assert one.problems == []


@pytest.fixture(scope="module")
def traced(installed, steward_binary, collector, tmp_path_factory):
    """A steward that sends its spans to it, and whose webhooks the API server calls."""
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("traced"), name="traced",
                      env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                           "OTEL_BSP_SCHEDULE_DELAY": "100"})
    stw.install_webhooks(installed, steward_binary, one.webhook_port)
    one.start().wait_webhook()
    yield one
    stw.uninstall_webhooks(installed)
    if one.running():
        assert one.stop() == 0, one.log_tail()


def test_one_apply_makes_one_connected_trace(traced, collector, cluster, namespace):
    cluster.apply({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                   "metadata": {"name": "traced", "namespace": namespace},
                   "spec": {"image": "nginx:1.25", "pageContentHtml": SECRET}})
    cluster.wait_for("service", "traced", namespace, bool)
    about = {"k8s_namespace_name": namespace, "k8s_object_name": "traced"}

    def whole():
        """The reconcile that created the Service, once its children have arrived."""
        for run in collector.named("^reconcile myweb$", **about):
            children = collector.children(run)
            if any(c.attributes["url.template"].endswith("/services/{name}") for c in children):
                return run, children
        return None
    run, children = wait.until("the reconcile and its requests", whole)
    assert (run.kind, run.parent) == (1, None)
    assert run.attributes["k8s.object.kind"] == "MyWeb"
    assert run.attributes["reconcile.result"] in ("success", "requeue_after", "requeue")
    assert run.attributes["reconcile.queue_wait_ms"] >= 0
    patches = [c for c in children if c.attributes["http.request.method"] == "PATCH"]
    assert patches
    for child in children:
        assert child.kind == 3 and run.start <= child.start <= child.end <= run.end
        assert child.name == (f"{child.attributes['http.request.method']} "
                              f"{child.attributes['url.template']}")
        assert namespace not in child.name and "?" not in child.name
        assert child.attributes["server.address"] == "127.0.0.1"
    assert all(c.attributes["http.response.status_code"] in (200, 201) for c in patches)

    reviews = collector.named("^POST /(mutate|validate)-", **about)
    assert {r.name for r in reviews} == {
        "POST /mutate-operator-k8s-summit-org-v1-myweb",
        "POST /validate-operator-k8s-summit-org-v1-myweb"}
    for review in reviews:
        assert review.kind == 2 and review.attributes["k8s.admission.allowed"] is True
        assert review.attributes["k8s.admission.dry_run"] is False
    # The log of the reconcile names the trace.
    wait.until("its log line", lambda: any(
        e.get("traceID") == run.trace and e.get("reconcileID") == run.attributes["reconcile.id"]
        for e in traced.log()))


def test_failed_reconcile_span_has_no_secrets(traced, collector, cluster, namespace):
    """What the webhook let pass and the API server refuses: the span has the text of the log."""
    cluster.apply({"apiVersion": "v1", "kind": "Service",
                   "metadata": {"name": "taken", "namespace": namespace},
                   "spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}})
    cluster.apply({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                   "metadata": {"name": "taken", "namespace": namespace},
                   "spec": {"image": "nginx:1.25", "pageContentHtml": SECRET}})
    wait.until("its span", lambda: collector.named(
        "^reconcile myweb$", k8s_namespace_name=namespace, k8s_object_name="taken"))
    config = json.loads(pathlib.Path(traced.kubeconfig).read_text("utf-8"))
    token = config["users"][0]["user"]["token"]
    wait.until("the end", lambda: traced.metric("steward_trace_spans_exported_total") > 0)
    assert traced.metric("steward_trace_spans_dropped_total") == 0
    everything = collector.everything()
    assert len(token) > 20 and token not in everything
    for text in (SECRET, "Bearer", "nginx"):
        assert text not in everything


def test_shutdown_flushes_spans(traced, collector):
    """Stops it: what was recorded is sent."""
    before = len(collector.bodies)
    assert before > 0
    assert traced.stop() == 0, traced.log_tail()
    assert collector.named("^reconcile ") and collector.problems == []
