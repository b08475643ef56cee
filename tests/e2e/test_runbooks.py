# SPDX-License-Identifier: Apache-2.0
"""docs/runbooks.md: a heading and an incident for each alert.  Here those of steward itself; others are
beside the tests of what they are about."""

import base64
import contextlib
import json
import re
import resource
import subprocess
import time

import pytest

from support import certs, incident, kustomize, myweb, paths, wait, webhook
from support import cluster as k8s
from support import steward as stw
from support.service import Service

PAGE = incident.PAGE
TEXT = (paths.TOP / PAGE).read_text("utf-8")


def anchors(text):
    """The anchors of the headings."""
    return {h.lower().replace(" ", "-").replace(",", "")
            for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_each_alert_has_a_heading():
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert headings == list(incident.rules())
    for alert, rule in incident.rules().items():
        assert rule["annotations"]["runbook_url"] == f"{PAGE}#{alert.lower()}"


def test_each_runbook_has_an_incident_test():
    """incident.follow() itself demands that the alert fires, and that each command is typed."""
    found = [alert for path in (paths.TOP / "tests").glob("**/test_*.py")
             for alert in re.findall(r'^ +with incident\.follow\("(\w+)", ', path.read_text("utf-8"),
                                     re.MULTILINE)]
    assert sorted(found) == sorted(incident.rules())


def test_links_have_targets():
    for page, anchor in re.findall(r"\]\(([\w.-]+\.md)(?:#([\w-]+))?\)", TEXT):
        text = (paths.TOP / "docs" / page).read_text("utf-8")
        assert not anchor or anchor in anchors(text), (page, anchor)


@pytest.fixture(scope="module")
def applied(installed):
    """config/default is applied.  No pod of it runs."""
    kustomize.apply(installed, kustomize.CONFIG / "default")
    stw.uninstall_webhooks(installed)
    yield installed
    stw.uninstall_webhooks(installed)
    installed.delete("deployment", "steward-controller-manager", stw.NAMESPACE)
    for service in ("steward-webhook-service", "steward-metrics-service"):
        installed.delete("service", service, stw.NAMESPACE)


@pytest.fixture(scope="module")
def leader(applied, steward_binary, tmp_path_factory):
    """A steward that leads, as a process beside the cluster."""
    one = stw.Steward(steward_binary, applied, applied.kubeconfig_steward,
                      tmp_path_factory.mktemp("runbooks"), ["--leader-elect"]).start()
    wait.until("it to lead", lambda: leads(one), 40)
    yield one
    if one.running():
        assert one.stop() == 0, one.log_tail()


@pytest.fixture
def make_webhook(steward_binary, tmp_path):
    """make_webhook(kind, *arguments): a started webhook.Webhook of this class."""
    with contextlib.ExitStack() as started:
        def make(kind, *arguments):
            one = kind(steward_binary, tmp_path, arguments).start()
            started.callback(one.process.wait)
            started.callback(one.process.kill)
            return one
        yield make


def leads(one):
    """Whether it does, by its metric."""
    return one.metric("leader_election_master_status") == 1


def change_rules(cluster, kind, name, namespace, change):
    """Replaces the rules of a role by what change(rule) makes of each."""
    role = cluster.get(kind, name, namespace)
    cluster.patch(kind, name, namespace, {"rules": [change(dict(rule)) for rule in role["rules"]]})


def without(verbs, resource):
    """For change_rules: takes verbs on a resource away."""
    def change(rule):
        if resource in rule["resources"]:
            rule["verbs"] = [v for v in rule["verbs"] if v not in verbs] or ["get"]
        return rule
    return change


def grant(cluster, binary):
    """What `steward doctor` and the page advise: steward print rbac | kubectl apply -f -"""
    cluster.apply(k8s.run([binary, "print", "rbac"]).stdout)


def test_no_leader_alert_and_runbook(applied, leader, steward_binary):
    with incident.follow("StewardNoLeader", applied) as runbook:
        runbook.before(leader.metrics_text())
        change_rules(applied, "role", "steward-own-role", stw.NAMESPACE, without(["update"], "leases"))
        wait.until("it to step down", lambda: not leads(leader), 40)
        runbook.fires(leader.metrics_text)
        renewed = re.findall("renewTime: .*", runbook.kubectl("get lease"))
        assert len(renewed) == 1 and runbook.kubectl("auth can-i").strip() == "no"
        assert re.findall("renewTime: .*", runbook.kubectl("get lease")) == renewed
        assert re.search(r"leases.*forbidden", leader.log_path.read_text("utf-8"))
        grant(applied, steward_binary)
        wait.until("it to lead again", lambda: leads(leader), 40)
        assert runbook.kubectl("auth can-i").strip() == "yes"
        runbook.ends(leader.metrics_text)


@pytest.fixture
def alone(applied, leader, run_steward):
    """run_steward, while the leader of this file does not run."""
    assert leader.stop() == 0, leader.log_tail()
    yield run_steward
    leader.start()


def test_no_alert_fires_in_a_healthy_cluster(applied, leader):
    """With what is installed in few clusters missing: the Gateway API, the Prometheus operator."""
    wait.until("objects of other tests to go", lambda: leader.metric(
        "steward_objects", condition="Ready", status="False") == 0)
    text = leader.metrics_text()
    assert incident.firing(list(incident.rules().values()), (text, text), 2 * 3600) == []


def test_down_alert_and_runbook(applied, leader, namespace):
    """The API server refuses objects of steward's kinds, until the advice is followed."""
    web = myweb.manifest("web", namespace)
    pods = r"steward-controller-manager-\S+ +0/1 +(Pending|ErrImagePull|ImagePullBackOff|ContainerCreating)"
    with incident.follow("StewardDown", applied) as runbook:
        runbook.before(leader.metrics_text())
        assert leader.stop() == 0
        kustomize.apply(applied, kustomize.CONFIG / "webhook")
        refused = wait.until("the webhook to be called", lambda: (
            r := applied.apply(web, dry_run=True, check=False)).returncode != 0 and r)
        assert "failed calling webhook" in refused.stderr
        runbook.fires("")
        assert re.search(pods, runbook.kubectl("get pods"))
        assert "2 unavailable" in runbook.kubectl("describe deployment")
        wait.until("why they do not run", lambda: any(
            e["reason"] in ("FailedScheduling", "Failed") for e in applied.list("events", stw.NAMESPACE)))
        assert re.search("FailedScheduling|Failed", runbook.kubectl("get events"))
        runbook.kubectl("delete validatingwebhookconfiguration")
        wait.until("objects to be accepted", lambda: applied.apply(
            web, dry_run=True, check=False).returncode == 0)
        kustomize.apply(applied, kustomize.CONFIG / "webhook")
        assert applied.get(*stw.WEBHOOK_CONFIGURATIONS[1])["webhooks"]
        stw.uninstall_webhooks(applied)
        runbook.ends(leader.start().metrics_text())


def aged(cluster, folder, clock, days):
    """A certificate for the key in steward's Secret, by its CA and for 90 days, which ends in `days`."""
    clock.set((days - 90) * 86400)
    found = certs.read(cluster)
    for key in ("ca.crt", "ca.key", "tls.crt", "tls.key"):
        (folder / key).write_text(found[key])
    for words in (["x509", "-x509toreq", "-in", "tls.crt", "-key", "tls.key", "-copy_extensions", "copyall",
                   "-out", "csr"],
                  ["x509", "-req", "-in", "csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", "90",
                   "-copy_extensions", "copyall", "-out", "aged.crt"]):
        subprocess.run(["openssl", *words], cwd=folder, env=clock.env("/usr/bin/openssl"), check=True,
                       capture_output=True, timeout=60)
    return (folder / "aged.crt").read_bytes()


def days_left(one):
    """Until the serving certificate ends, by the metric."""
    return (one.metric("steward_certificate_not_after_seconds", cert="serving") - time.time()) / 86400


def test_certificate_expires_alert_and_runbook(applied, leader, steward_binary, tmp_path, clock):
    """Another client has written one that ends soon, and steward has lost the right to write the Secret."""
    wait.until("a certificate", lambda: days_left(leader) > 80)
    with incident.follow("StewardCertificateExpiresSoon", applied) as runbook:
        runbook.before(leader.metrics_text())
        old = base64.b64encode(aged(applied, tmp_path, clock, 6)).decode()
        for kind, name, where in (("role", "steward-own-role", stw.NAMESPACE),
                                  ("clusterrole", "steward-manager-role", None)):
            change_rules(applied, kind, name, where, without(["update", "patch"], "secrets"))
        applied.kubectl("-n", stw.NAMESPACE, "patch", "secret", certs.SECRET, "--field-manager=vault-agent",
                        "-p", json.dumps({"data": {"tls.crt": old}}))
        wait.until("it to be served", lambda: days_left(leader) < 6.1, 40)
        runbook.fires(leader.metrics_text)
        assert "vault-agent" in runbook.kubectl("get secret")
        wait.until("the reason in the log", lambda: re.search(
            r"certificate.*forbidden", leader.log_path.read_text("utf-8")), 70)
        grant(applied, steward_binary)
        wait.until("a new one", lambda: days_left(leader) > 80, 70)
        runbook.ends(leader.metrics_text)


def test_objects_not_ready_alert_and_runbook(applied, leader, namespace):
    myweb.create_settled(applied, "web", namespace)
    with incident.follow("StewardObjectsNotReady", applied) as runbook:
        runbook.before(leader.metrics_text())
        applied.patch("myweb", "web", namespace, {"spec": {"image": myweb.NO_IMAGE, "replicas": 1}})
        name = f'steward_object_not_ready{{kind="MyWeb",namespace="{namespace}",name="web",reason="'
        wait.until("it to be named", lambda: name in leader.metrics_text())
        runbook.fires(leader.metrics_text)
        [row] = [r for r in runbook.kubectl("get mywebs").splitlines() if r.startswith(namespace)]
        assert row.split()[5:6] == ["False"], row
        applied.patch("myweb", "web", namespace, {"spec": {"replicas": 0}})
        myweb.wait_settled(applied, "web", namespace)
        wait.until("the series to go", lambda: name not in leader.metrics_text())
        runbook.ends(leader.metrics_text)


def test_log_lines_dropped_alert_and_runbook(applied, make_webhook):
    one = make_webhook(webhook.PipedWebhook)
    with incident.follow("StewardLogLinesDropped", applied) as runbook:
        runbook.before(one.metrics_text())
        webhook.deny(one)
        runbook.fires(one.metrics_text)
        assert "steward-controller-manager-" in runbook.kubectl("get pods")
        dropped = one.metric("steward_log_lines_dropped_total")
        wait.until("how many are missing", lambda: sum(
            entry["lines"] for entry in one.log() if "were dropped" in entry["msg"]) == dropped)
        assert re.search("admission denied.*janejane", runbook.logs(one.log_text()))
        webhook.deny(one, 3)
        runbook.ends(one.metrics_text)


def test_admission_errors_alert_and_runbook(applied, make_webhook):
    """The nearest to a defect that can be had from outside: the kernel gives the process no memory."""
    one = make_webhook(webhook.Webhook, "--sandbox=off")
    body = webhook.review(webhook.my_web(pageContentHtml="x" * 700000))
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with incident.follow("StewardAdmissionErrors", applied) as runbook:
        runbook.before(one.metrics_text())
        assert one.post(body)[0] == 200
        resource.prlimit(one.process.pid, resource.RLIMIT_DATA, (1 << 20, resource.RLIM_INFINITY))
        assert one.post(body)[0] == 500
        resource.prlimit(one.process.pid, resource.RLIMIT_DATA, unlimited)
        runbook.fires(one.metrics_text)
        [line] = [e for e in one.log() if "not answered with a decision" in runbook.logs(e["msg"])]
        assert line["code"] == 500 and "no memory" in line["error"], line
        assert one.post(body)[0] == 200
        runbook.ends(one.metrics_text)


def test_memory_share_full_alert_and_runbook(applied, alone, namespace):
    applied.create(myweb.manifest("web", namespace, pageContentHtml="x" * 890000))
    with incident.follow("StewardMemoryShareFull", applied) as runbook:
        one = alone("--memory-limit=64")
        message = myweb.wait_condition(applied, "web", namespace, "Stalled", "InvalidSpec")["message"]
        assert "spec.pageContentHtml has 890002 bytes" in message, message
        runbook.before(one.metrics_text())
        refused = one.metric("steward_memory_share_refused_total")
        applied.annotate(myweb.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
        wait.until("another refusal", lambda: one.metric("steward_memory_share_refused_total") > refused)
        runbook.fires(one.metrics_text)
        assert namespace not in runbook.kubectl("get events")  # no cache is full
        assert one.stop() == 0
        [limit] = re.findall(r"memory=(\d+)Mi", runbook.command("set resources")[-1])
        one = alone(f"--memory-limit={limit}")
        myweb.wait_settled(applied, "web", namespace)
        runbook.ends(one.metrics_text)
        assert one.stop() == 0


@pytest.fixture
def line(applied, tmp_path):
    """(a service.Service in front of the API server, a kubeconfig of steward's account through it)"""
    config = json.loads(applied.kubeconfig_steward.read_text("utf-8"))
    server = config["clusters"][0]["cluster"]
    one = Service()
    one.add(int(server["server"].rpartition(":")[2]))
    server["server"] = f"https://127.0.0.1:{one.port}"
    path = tmp_path / "through-the-line"
    path.touch(0o600)
    path.write_text(json.dumps(config), "utf-8")
    yield one, path
    one.close()


def test_watch_silent_alert_and_runbook(applied, alone, line, namespace, steward_binary):
    """The right to list Services is taken away, and the watch ends.  All else goes on."""
    service, kubeconfig = line

    def of_services(text):
        """Without the watches that go on."""
        return "".join(f"{line}\n" for line in text.splitlines() if 'resource="services"' in line)
    one = alone(kubeconfig=kubeconfig)
    with incident.follow("StewardWatchSilent", applied) as runbook:
        runbook.before(of_services(one.metrics_text()))
        change_rules(applied, "clusterrole", "steward-manager-role", None, without(["list", "watch"], "services"))
        service.drop()
        wait.until("the reason in the log", lambda: re.search(
            r'"services".*services is forbidden', runbook.logs(one.log_path.read_text("utf-8"))))
        runbook.fires(lambda: of_services(one.metrics_text()), later=920)
        assert one.readyz()[0] == 200
        doctor = k8s.run([steward_binary, "doctor", "--kubeconfig", applied.kubeconfig], check=False).stdout
        assert "may not list services, watch services" in doctor
        grant(applied, steward_binary)
        myweb.create_settled(applied, "web", namespace)
        wait.until("its Service to be seen", lambda: re.search(
            r'watching again.*"services"', one.log_path.read_text("utf-8")))
        runbook.ends(of_services(one.metrics_text()))
    assert one.stop() == 0


def test_reconcile_errors_alert_and_runbook(applied, leader, namespace):
    """Another webhook, in front of the children of many objects, is away: the API server answers 500."""
    names = [f"web-{number}" for number in range(6)]
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
              "metadata": {"name": f"{namespace}-policy"}, "webhooks": [{
                  "name": "policy.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                  "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail",
                  "namespaceSelector": {"matchLabels": {"policy": namespace}},
                  "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                             "resources": ["configmaps"]}]}]}
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": namespace}}
    applied.patch("namespace", namespace, None, {"metadata": {"labels": {"policy": namespace}}})
    applied.create(policy)
    wait.until("the policy to hold", lambda: applied.create(own, dry_run=True, check=False).returncode != 0)
    with incident.follow("StewardReconcileErrors", applied) as runbook:
        runbook.before(leader.metrics_text())
        for name in names:
            applied.create(myweb.manifest(name, namespace))
        for name in names:
            applied.wait_for(myweb.KIND, name, namespace, lambda o: "policy.example.com" in o.get(
                "status", {}).get("retry", {}).get("lastError", ""))
        runbook.fires(leader.metrics_text)
        assert re.search(r"reconcile failed.*policy\.example\.com", leader.log_path.read_text("utf-8"))
        rows = [r.split() for r in runbook.kubectl("get mywebs").splitlines() if r.startswith(namespace)]
        assert [r[5] for r in rows] == ["False"] * len(names), rows
        assert "policy.example.com" in applied.create(own, dry_run=True, check=False).stderr  # not only steward
        applied.delete("validatingwebhookconfiguration", f"{namespace}-policy")
        for name in names:
            applied.annotate(myweb.KIND, name, namespace, {"steward.dev/reconcile-at": "now"})
        for name in names:
            myweb.wait_settled(applied, name, namespace)
        runbook.ends(leader.metrics_text)
