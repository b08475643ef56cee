# SPDX-License-Identifier: Apache-2.0
"""Admission of Apps: all errors at once, warnings and defaults."""

import pytest
from support import app, myweb, wait

pytestmark = pytest.mark.oldest("webhook calls, dry run, the schema")

BAD = {"replicas": 2000, "port": 0, "config": {"databaseUrl": "db", "environment": {"1A": "x"}},
       "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
       "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 2},
       "strategy": {"maxSurge": 0, "maxUnavailable": "0%"}}
SAID = [
    "spec.replicas: Invalid value: 2000: must be between 0 and 1000",
    "spec.port: Invalid value: 0: must be between 1 and 65535",
    "spec.config.databaseUrl: Invalid value: must be a URL such as postgres://host/db",
    'spec.config.environment[1A]: Invalid value: "1A": a valid environment variable name must',
    'spec.resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit',
    "spec.autoscaling.maxReplicas: Invalid value: 2: must be greater than or equal to minReplicas",
    "maxSurge and maxUnavailable must not both be 0",
]


def test_all_errors_of_a_spec_are_reported_at_once(steward, cluster, namespace):
    assert steward.running()
    result = cluster.apply(app.manifest("web", namespace, **BAD), check=False)
    assert result.returncode != 0
    for text in SAID:
        assert text in result.stderr
    assert cluster.get(app.KIND, "web", namespace) is None


def test_defaults_are_added(steward, cluster, namespace):
    assert steward.running()
    cluster.apply({"apiVersion": "mycompany.com/v1", "kind": "App",
                   "metadata": {"name": "web", "namespace": namespace},
                   "spec": {"image": app.IMAGE, "resources": app.RESOURCES, "service": {},
                            "autoscaling": {"enabled": True, "maxReplicas": 3}}})
    spec = cluster.get(app.KIND, "web", namespace)["spec"]
    assert (spec["replicas"], spec["port"], spec["terminationGracePeriodSeconds"]) == (1, 8080, 30)
    assert spec["service"] == {"type": "ClusterIP", "port": 80}
    assert spec["autoscaling"] == {"enabled": True, "minReplicas": 1, "maxReplicas": 3}
    # A second mutation changes nothing.
    before = cluster.get(app.KIND, "web", namespace)["metadata"]["generation"]
    cluster.annotate(app.KIND, "web", namespace, {"example.com/a": "b"})
    assert cluster.get(app.KIND, "web", namespace)["metadata"]["generation"] == before


def test_default_cpu_target_is_dropped_for_another_metric(steward, cluster, namespace):
    """A percentage of the CPU that the user never wrote must not remain beside it."""
    assert steward.running()
    kind = f"horizontalpodautoscalers.{'v2' if cluster.minor() >= 23 else 'v2beta2'}.autoscaling"
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 50}}}
    for more, want in (({}, [("cpu", 80)]),
                       ({"targetMemoryUtilizationPercentage": 70}, [("memory", 70)]),
                       ({"metrics": [metric]}, [("cpu", 50)])):
        cluster.apply(app.manifest("web", namespace, autoscaling={
            "enabled": True, "maxReplicas": 5, **more}))
        cluster.wait_for(kind, "web", namespace, lambda o, want=want: [
            (m["resource"]["name"], m["resource"]["target"]["averageUtilization"])
            for m in o["spec"]["metrics"]] == want)


def test_warnings_reach_kubectl(steward, cluster, namespace):
    assert steward.running()
    result = cluster.apply(app.manifest("web", namespace, image="shop", port=80, securityProfile="Restricted",
                                        config={"databaseUrlSecretRef": {"name": "db", "key": "url"}}))
    assert 'image has no tag or uses ":latest"' in result.stderr
    assert "port 80 is below 1024" in result.stderr
    assert 'Secret "db" not found; the pods start when it appears' in result.stderr
    # The App reaches steward's cache by a watch.
    wait.until("the warning of the same names", lambda:
               'App "web" in this namespace has a Deployment and a Service of the same names'
               in cluster.apply(myweb.manifest("web", namespace), dry_run=True).stderr)
    result = cluster.apply(app.manifest("web", namespace, config={
        "databaseUrl": "postgres://app:secret@db/shop"}))
    assert "credentials end up in a ConfigMap; use databaseUrlSecretRef" in result.stderr
    assert "secret@" not in result.stderr


def test_schema_refuses_bad_fields_without_webhook(controller, installed, namespace):
    """Without a webhook: the CRD schema refuses what it can check by itself."""
    for spec, text in (({"replicas": 1001}, "spec.replicas"),
                       ({"service": {"type": "ExternalName"}}, "spec.service.type"),
                       ({"strategy": {"maxSurge": "1"}}, "spec.strategy.maxSurge"),
                       ({"healthCheck": {"path": "up"}}, "spec.healthCheck.path"),
                       ({"env": [{"value": "x"}]}, "spec.env")):
        result = installed.apply(app.manifest("web", namespace, **spec), check=False)
        assert result.returncode != 0 and text in result.stderr, result.stderr
    installed.apply(app.manifest("web", namespace, strategy={"maxSurge": 1, "maxUnavailable": "5%"}))
    assert installed.get(app.KIND, "web", namespace)["spec"]["strategy"] == {
        "type": "RollingUpdate", "maxSurge": 1, "maxUnavailable": "5%", "minReadySeconds": 0,
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
