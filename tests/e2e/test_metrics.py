# SPDX-License-Identifier: Apache-2.0
"""/metrics and the probes of a steward that has done some work: names that dashboards use."""

import re
import shutil
import subprocess

import pytest
import yaml

from support import etcdcluster, paths, wait
from support import steward as stw

# The exact names and labels of controller-runtime, client-go and component-base.
FAMILIES = {
    "controller_runtime_reconcile_total": {"controller", "result"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_terminal_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_panics_total": {"controller"},
    "controller_runtime_reconcile_time_seconds": {"controller"},
    "controller_runtime_max_concurrent_reconciles": {"controller"},
    "controller_runtime_active_workers": {"controller"},
    "controller_runtime_webhook_requests_total": {"webhook", "code"},
    "controller_runtime_webhook_requests_in_flight": {"webhook"},
    "controller_runtime_webhook_latency_seconds": {"webhook"},
    "workqueue_depth": {"name", "controller"},
    "workqueue_adds_total": {"name", "controller"},
    "workqueue_retries_total": {"name", "controller"},
    "workqueue_unfinished_work_seconds": {"name", "controller"},
    "workqueue_longest_running_processor_seconds": {"name", "controller"},
    "workqueue_queue_duration_seconds": {"name", "controller"},
    "workqueue_work_duration_seconds": {"name", "controller"},
    "rest_client_requests_total": {"code", "method", "host"},
    "rest_client_request_duration_seconds": {"verb", "host"},
    "leader_election_master_status": {"name"},
    "process_cpu_seconds_total": set(),
    "process_resident_memory_bytes": set(),
    "process_virtual_memory_bytes": set(),
    "process_open_fds": set(),
    "process_max_fds": set(),
    "process_start_time_seconds": set(),
    "steward_admission_reviews_total": {"webhook", "kind", "operation", "allowed", "dry_run"},
    "steward_admission_violations_total": {"kind", "field", "code"},
    "steward_objects": {"kind", "condition", "status"},
    "steward_object_not_ready": {"kind", "namespace", "name", "reason"},
    "steward_objects_not_ready_unnamed": {"kind"},
    "steward_certificate_not_after_seconds": {"cert"},
    "steward_watch_last_event_timestamp_seconds": {"resource"},
    "steward_cache_objects": {"resource"},
    "steward_cache_bytes": {"resource"},
    "steward_unreadable_objects": {"resource"},
    "steward_hot_loop_total": {"controller"},
    "steward_etcd_certificate_not_after_seconds": {"namespace", "cluster"},
    "steward_build_info": {"version", "commit"},
}


@pytest.fixture(scope="module")
def busy(installed, cluster, steward_binary, tmp_path_factory):
    """An elected steward, which has accepted one MyWeb, refused another, and has an EtcdCluster."""
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("busy"), ["--leader-elect"])
    stw.install_webhooks(installed, steward_binary, one.webhook_port)
    one.start().wait_webhook()
    cluster.create_namespace("metrics-test")
    web = {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
           "metadata": {"name": "m", "namespace": "metrics-test"},
           "spec": {"image": "nginx:1.22", "pageContentHtml": "x"}}
    cluster.apply(web)
    cluster.wait_for("service", "m", "metrics-test", bool)
    web["spec"]["nodePortNumber"] = 1
    cluster.apply(web, check=False)
    etcdcluster.EtcdCluster(cluster, "metrics-test", "e").apply(
        size=1, TLS={"auto": {"provider": "Steward"}})
    wait.until("its certificates", lambda: one.metric("steward_etcd_certificate_not_after_seconds"),
               40)
    yield one
    stw.uninstall_webhooks(installed)
    cluster.delete_namespace("metrics-test")
    assert one.stop() == 0, one.log_tail()


def labels_of(text, family):
    """The label names of each series of a family, without "le"."""
    found = []
    for line in text.splitlines():
        match = re.match(rf"{family}(?:_bucket|_sum|_count)?(?:\{{(.*)\}})? ", line)
        if match:
            found.append(set(re.findall(r'(\w+)="', match[1] or "")) - {"le"})
    return found


def test_not_ready_metric_names_objects_until_ready(busy, installed):
    series = 'steward_object_not_ready{kind="MyWeb",namespace="metrics-test",name="waits",reason="'
    installed.apply({"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
                     "metadata": {"name": "waits", "namespace": "metrics-test"},
                     "spec": {"image": "registry.invalid/none:1.0", "pageContentHtml": "x"}})
    wait.until("the object to be named", lambda: series in busy.metrics_text())
    assert 'steward_objects_not_ready_unnamed{kind="MyWeb"} 0' in busy.metrics_text()
    installed.patch("myweb", "waits", "metrics-test", {"spec": {"replicas": 0}})
    wait.until("the series to go", lambda: 'name="waits"' not in busy.metrics_text())


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_metric_family_has_its_labels(busy, family):
    found = labels_of(busy.metrics_text(), family)
    assert found, f"no series of {family}"
    assert all(labels == FAMILIES[family] for labels in found), found[0]


def test_reconcile_results_exist_from_the_start(busy):
    text = busy.metrics_text()
    for result in ("success", "error", "requeue", "requeue_after"):
        assert f'controller_runtime_reconcile_total{{controller="myweb",result="{result}"}}' in text


def test_promtool_accepts_the_metrics(busy):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed")
    result = subprocess.run([promtool, "check", "metrics"], input=busy.metrics_text(), text=True,
                            capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_documented_metrics_exist(busy):
    text = busy.metrics_text()
    words = re.findall(r"\b(?:steward|controller_runtime|workqueue|rest_client|certwatcher|"
                       r"leader_election|process)_\w+",
                       (paths.TOP / "docs" / "operations.md").read_text("utf-8"))
    assert words
    missing = {w for w in words if f"\n# TYPE {w} " not in text}
    # Shown once a cluster has members (unit/kinds/etcdcluster/test_runtime.c), after a first one
    # (e2e/etcdcluster/test_etcd_nospace.py), and of a target that is used
    # (e2e/databaseuser/test_databaseuser_bad_days.py).
    assert missing <= {"steward_etcd_quorum_margin", "steward_etcd_defragmentations_total",
                       "steward_database_up"}


def alerts():
    text = (paths.TOP / "config" / "prometheus" / "rules.yaml").read_text("utf-8")
    return yaml.safe_load(text)["spec"]


def test_promtool_accepts_the_alerts(tmp_path):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(alerts()), "utf-8")
    result = subprocess.run([promtool, "check", "rules", str(tmp_path / "rules.yaml")], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_orphan_alert_fires_and_ends(tmp_path):
    """One account has no object for half an hour, on two replicas of which one leads."""
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed")
    series = [{"series": f'steward_database_orphans{{target="main",type="account",pod="{pod}"}}', "values": values}
              for pod, values in (("a", "0x10 1x30 0x20"), ("b", "0x60"))]
    fired = {"exp_labels": {"severity": "warning", "target": "main", "type": "account"}}
    asked = [{"eval_time": at, "alertname": "StewardDatabaseOrphans", "exp_alerts": alerts_then}
             for at, alerts_then in (("20m", []), ("30m", [fired]), ("50m", []))]
    rule = [r for group in alerts()["groups"] for r in group["rules"] if r["alert"] == "StewardDatabaseOrphans"]
    fired["exp_annotations"] = {**rule[0]["annotations"], "summary":
                                "On target main 1 account(s) of steward have no object."}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(alerts()), "utf-8")
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [
        {"interval": "1m", "input_series": series, "alert_rule_test": asked}]}), "utf-8")
    result = subprocess.run([promtool, "test", "rules", str(tmp_path / "test.yaml")], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_probes_name_their_checks(busy):
    status, text = busy.readyz()
    assert status == 200
    for check in ("webhook", "certificate", "caches"):
        assert f"[+]{check} ok" in text
        assert busy.readyz(f"/{check}")[0] == 200
    assert busy.healthz()[0] == 200
    assert busy.readyz("/nonsense")[0] == 404
