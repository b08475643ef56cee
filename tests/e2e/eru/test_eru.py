# SPDX-License-Identifier: Apache-2.0
"""Erus restart Deployments: by hand, by schedule, once; and report the result."""

import datetime

import pytest
from support import eru, incident
from support import steward as stw
from support import wait
from support.cluster import condition


@pytest.fixture
def clocked(controller, run_steward, clock):
    """A steward that uses `clock`, in place of the module's."""
    assert controller.stop() == 0, controller.log_tail()
    one = run_steward(clock=clock)
    yield one
    assert one.stop() == 0, one.log_tail()
    controller.start()


def _writes(cluster, namespace, since=0):
    """The writes of steward, without events."""
    return [r for r in stw.requests(cluster, namespace, changing=True)[since:]
            if "/events" not in r[1]]


def test_disabled_eru_is_ready(controller, installed, namespace):
    installed.apply(eru.manifest("web", namespace))
    found = eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    assert condition(found, "Ready")["status"] == "True"
    assert condition(found, "ScheduleValid")["status"] == "True"
    assert condition(found, "TargetFound")["reason"] == "DeploymentNotFound"
    assert "nextScheduleTime" not in found["status"]


@pytest.mark.oldest("watches of Deployments")
def test_missing_deployment_is_reported_until_created(controller, installed, namespace):
    installed.apply(eru.manifest("web", namespace, enabled=True))
    found = eru.wait_eru(installed, "web", namespace,
                         lambda s: eru.ready_reason(s) == "DeploymentNotFound")
    assert condition(found, "Reconciling")["reason"] == "DependencyNotReady"
    installed.apply(eru.deployment("web", namespace, replicas=0))
    eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Active")
    installed.delete("deployment", "web", namespace)
    eru.wait_eru(installed, "web", namespace,
                 lambda s: eru.ready_reason(s) == "DeploymentNotFound")


def test_changed_schedule_takes_effect_at_once(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0))
    installed.apply(eru.manifest("web", namespace, enabled=True, schedule="0 0 1 1 *"))
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("nextScheduleTime"))
    assert found["status"]["nextScheduleTime"].endswith("-01-01T00:00:00Z")
    installed.patch(eru.KIND, "web", namespace,
                    {"spec": {"schedule": "30 12 1 2 *", "timeZone": "Asia/Shanghai"}})
    found = eru.wait_eru(installed, "web", namespace,
                         lambda s: s.get("nextScheduleTime", "").endswith("-02-01T04:30:00Z"))
    assert found["status"]["activeSchedule"]["timeZone"] == "Asia/Shanghai"
    installed.patch(eru.KIND, "web", namespace, {"spec": {"enabled": False}})
    found = eru.wait_eru(installed, "web", namespace, lambda s: "nextScheduleTime" not in s)
    assert "activeSchedule" not in found["status"]
    assert eru.ready_reason(found["status"]) == "Disabled"


@pytest.mark.oldest("the Deployment controller, a whole life")
def test_restart_annotation_restarts_the_deployment(controller, installed, namespace, kubelet):
    eru.create_available(installed, "web", namespace, replicas=2)
    installed.apply(eru.manifest("web", namespace))
    eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    kubelet.hold.set()
    eru.restart_now(installed, "web", namespace, "one")

    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("currentRollout"))
    assert condition(found, "RolloutComplete")["reason"] == "RolloutInProgress"
    instant = found["status"]["currentRollout"]["instant"]
    assert eru.stamp(installed, "web", namespace) == instant
    live = installed.get("deployment", "web", namespace)
    owner = [m for m in live["metadata"].get("managedFields", []) if m["manager"] == "steward-eru"]
    assert str(owner[0]["fieldsV1"]).count("f:") == 6 - 1

    kubelet.hold.clear()
    found = eru.wait_eru(installed, "web", namespace,
                         lambda s: s.get("lastResult") == "Succeeded" and "currentRollout" not in s)
    entry = found["status"]["history"][0]
    assert entry["instant"] == instant and entry["result"] == "Succeeded"
    assert found["status"]["restartNow"] == {"token": "one", "instant": instant, "done": True}
    assert condition(found, "RolloutComplete")["status"] == "True"
    installed.wait_event("web", namespace, "Restarted")
    installed.wait_event("web", namespace, "RolloutSucceeded")
    assert eru.revision(installed, "web", namespace) == 2

    # The same token again has no effect, also after a restart of steward.
    before = len(_writes(installed, namespace))
    installed.annotate(eru.KIND, "web", namespace, {"steward.dev/reconcile-at": "x"})
    eru.restart_now(installed, "web", namespace, "two")
    eru.wait_eru(installed, "web", namespace, lambda s: len(s.get("history", [])) == 2)
    wait.until("the third template", lambda: eru.revision(installed, "web", namespace) == 3)
    assert len([w for w in _writes(installed, namespace, before) if "/deployments/" in w[1]]) == 1


def test_schedule_restarts_the_deployment(clocked, installed, namespace, kubelet, clock):
    """Due within seconds, by a clock that leaps; at most three requests until it is reported."""
    eru.create_available(installed, "web", namespace)
    schedule, instant = eru.next_minute()
    installed.apply(eru.manifest("web", namespace, enabled=True, schedule=schedule))
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("nextScheduleTime"))
    assert found["status"]["nextScheduleTime"] == eru.iso(instant)
    assert eru.stamp(installed, "web", namespace) is None
    # The audit log gets a line after the answer, which the watch may overtake.
    wait.until("this status to be in the audit log", lambda: [
        r for r in stw.requests(installed, namespace) if "/erus/web/status" in r[1]])
    before = len(stw.requests(installed, namespace))
    kubelet.hold.set()
    clock.leap(instant, eru.SOON)
    eru.wait_eru(installed, "web", namespace, lambda s: s.get("currentRollout"), 120)

    def until_told():
        requests = [r for r in stw.requests(installed, namespace)[before:] if "/events" not in r[1]]
        told = next((i for i, r in enumerate(requests) if "/erus/web/status" in r[1]), None)
        return requests[:told + 1] if told is not None else None
    requests = wait.until("the status to be in the audit log", until_told)
    assert [r[0] for r in requests] == ["get", "patch", "patch"], requests
    assert eru.stamp(installed, "web", namespace) == eru.iso(instant)
    kubelet.hold.clear()
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("lastResult") == "Succeeded")
    assert found["status"]["lastScheduleTime"] == eru.iso(instant)
    assert found["status"]["nextScheduleTime"] > eru.iso(instant)
    assert "missedCount" not in found["status"]


@pytest.mark.oldest("checks of the CRD")
def test_excluded_date_skips_the_restart(clocked, installed, namespace, kubelet, clock):
    """The instant is on an excluded date, and the next one is outside of the window."""
    eru.create_available(installed, "web", namespace)
    _, instant = eru.next_minute()
    later = instant + datetime.timedelta(days=1)
    installed.apply(eru.manifest(
        "web", namespace, enabled=True, schedule=f"{instant.minute} {instant.hour} * * *",
        excludeDates=[f"{instant:%Y-%m-%d}"],
        windows=[{"days": [f"{instant:%a}"], "start": f"{instant:%H:%M}",
                  "end": f"{instant + datetime.timedelta(minutes=5):%H:%M}"}]))
    eru.wait_eru(installed, "web", namespace, lambda s: s.get("phase") == "Running")
    for at, why in ((instant, "excludeDates"), (later, "outside of all windows")):
        clock.leap(at, eru.SOON)
        found = eru.wait_eru(installed, "web", namespace,
                             lambda s: s.get("lastScheduleTime") == eru.iso(at), 120)
        assert (found["status"]["lastResult"], found["status"]["history"][0]["reason"]) == \
            ("Skipped", "SkippedExcluded")
        installed.wait_event("web", namespace, "SkippedExcluded", why)
    assert eru.stamp(installed, "web", namespace) is None


@pytest.fixture
def node(installed, namespace):
    """A Node without a kubelet, with the label node: NAMESPACE."""
    name = f"node-{namespace}"
    installed.create({"apiVersion": "v1", "kind": "Node",
                      "metadata": {"name": name, "labels": {"node": namespace}}})
    yield name
    installed.delete("node", name)


def _workload(kind, namespace):
    found = eru.statefulset("web", namespace) if kind == "statefulset" else \
        eru.daemonset("web", namespace)
    found["spec"]["template"]["spec"]["nodeSelector"] = {"node": namespace}
    return found


@pytest.mark.oldest("status of StatefulSets and DaemonSets")
@pytest.mark.parametrize("kind, target, counts", [
    ("statefulset", "StatefulSet", {"readyReplicas": 2, "updatedReplicas": 2}),
    ("daemonset", "DaemonSet", {"numberReady": 1, "updatedNumberScheduled": 1}),
])
def test_statefulset_or_daemonset_restarts(controller, installed, namespace, kubelet, node, kind, target, counts):
    """They come after their Eru, are restarted once, and their rollout is followed to its end."""
    installed.apply(eru.manifest("web", namespace, targetKind=target, enabled=True))
    eru.wait_eru(installed, "web", namespace,
                 lambda s: eru.ready_reason(s) == f"{target}NotFound")
    installed.apply(_workload(kind, namespace))
    eru.wait_eru(installed, "web", namespace, lambda s: s.get("phase") == "Running")
    installed.wait_for(kind, "web", namespace,
                       lambda o: counts.items() <= o.get("status", {}).items())
    before = {p["metadata"]["uid"] for p in installed.list("pod", namespace)}
    eru.restart_now(installed, "web", namespace, "one")
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("lastResult"))
    assert found["status"]["history"][0]["reason"] == "RolloutSucceeded", found["status"]
    assert eru.stamp(installed, "web", namespace, kind) == found["status"]["restartNow"]["instant"]
    now = {p["metadata"]["uid"] for p in installed.list("pod", namespace)}
    assert len(now) == len(before) and not now & before
    installed.wait_event("web", namespace, "RolloutSucceeded", f'{target} "web" was restarted')
    writes = [w for w in _writes(installed, namespace) if f"/{kind}s/web" in w[1]]
    assert len([w for w in writes if w[0] == "patch"]) == 1, writes


def test_on_delete_workload_gets_no_stamp(controller, installed, namespace, kubelet):
    """A changed template restarts nothing with OnDelete; no stamp is written."""
    installed.apply(eru.statefulset("web", namespace, type="OnDelete"))
    installed.wait_for("statefulset", "web", namespace,
                       lambda o: o.get("status", {}).get("readyReplicas") == 2)
    installed.apply(eru.manifest("web", namespace, targetKind="StatefulSet"))
    eru.restart_now(installed, "web", namespace, "one")
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("history"))
    assert found["status"]["history"][0]["reason"] == "SkippedOnDelete"
    assert eru.stamp(installed, "web", namespace, "statefulset") is None


def test_same_name_of_another_kind_is_separate(controller, installed, namespace):
    """A Deployment and a StatefulSet of one name are two workloads."""
    installed.apply(eru.deployment("web", namespace, replicas=0))
    installed.apply(eru.statefulset("web", namespace, replicas=0))
    installed.apply(eru.manifest("web", namespace))
    installed.apply({**eru.manifest("zz", namespace),
                     "spec": {"deploymentname": "web", "targetKind": "StatefulSet"}})
    for name in ("web", "zz"):
        # The first status may be older than what the watch of workloads reports.
        found = installed.wait_for(eru.KIND, name, namespace, lambda one: condition(
            one, "TargetFound").get("status") == "True" and one)
        assert found["status"]["phase"] == "Stoping"


@pytest.mark.oldest("conflicts of status writes")
def test_annotation_before_first_status_counts(controller, installed, namespace):
    """It arrives between the read of a run and its write of the status, and counts all the same."""
    names = [f"web{i}" for i in range(40)]
    for name in names:
        installed.apply(eru.deployment(name, namespace, replicas=0))
    for name in names:
        installed.apply(eru.manifest(name, namespace))
        eru.restart_now(installed, name, namespace, "one")
    for name in names:
        found = eru.wait_eru(installed, name, namespace, lambda s: s.get("history"))
        assert found["status"]["restartNow"]["done"]


@pytest.mark.parametrize("how, reason", [
    ({"spec": {"paused": True}}, "SkippedTargetPaused"),
    ({"spec": {"replicas": 0}}, "SkippedScaledToZero"),
])
def test_paused_deployment_is_skipped(controller, installed, namespace, kubelet, how, reason):
    eru.create_available(installed, "web", namespace)
    installed.patch("deployment", "web", namespace, how)
    installed.apply(eru.manifest("web", namespace))
    eru.restart_now(installed, "web", namespace, "one")
    found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("history"))
    assert (found["status"]["lastResult"], found["status"]["history"][0]["reason"]) == \
        ("Skipped", reason)
    assert eru.stamp(installed, "web", namespace) is None
    installed.wait_event("web", namespace, reason, "did not restart")


def test_failed_rollout_is_recorded(controller, installed, namespace, kubelet):
    """The Deployment is deleted, is replaced, or is too slow."""
    quiet = controller.metrics_text()
    kubelet.hold.clear()
    for name in ("deleted", "replaced", "slow"):
        installed.apply(eru.deployment(name, namespace))
        # The other rollouts must not reach their timeout.
        seconds = 30 if name == "slow" else 900
        installed.apply(eru.manifest(name, namespace, rolloutTimeoutSeconds=seconds))
    for name in ("deleted", "replaced", "slow"):
        eru.wait_available(installed, name, namespace)
    kubelet.hold.set()
    for name in ("deleted", "replaced", "slow"):
        eru.restart_now(installed, name, namespace, "one")
        eru.wait_eru(installed, name, namespace, lambda s: s.get("currentRollout"))
    installed.delete("deployment", "deleted", namespace)
    installed.delete("deployment", "replaced", namespace)
    installed.create(eru.deployment("replaced", namespace))
    for name, reasons, shown in (
            ("deleted", ["DeploymentNotFound"], "RolloutFailed"),
            ("replaced", ["DeploymentNotFound", "Replaced"], "RolloutFailed"),  # depends on timing
            ("slow", ["RolloutTimeout"], "RolloutTimeout")):
        found = eru.wait_eru(installed, name, namespace,
                             lambda s: s.get("lastResult") == "Failed", 90)
        assert found["status"]["history"][0]["reason"] in reasons
        assert condition(found, "RolloutComplete")["reason"] == shown
        installed.wait_event(name, namespace, "RolloutFailed")
    with incident.follow("StewardRestartMissed", installed) as runbook:
        runbook.before(quiet)
        runbook.fires(controller.metrics_text)
        rows = {r.split()[1]: r for r in runbook.kubectl("get erus").splitlines() if r.startswith(namespace)}
        assert all("Failed" in rows[name] for name in ("deleted", "replaced", "slow")), rows
        kubelet.hold.clear()
        eru.wait_available(installed, "slow", namespace)
        eru.restart_now(installed, "slow", namespace, "two")
        eru.wait_eru(installed, "slow", namespace, lambda s: s.get("lastResult") == "Succeeded")


def test_second_eru_of_a_deployment_stalls(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0))
    installed.apply(eru.manifest("web", namespace))
    found = eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    wait.another_second(found["metadata"]["creationTimestamp"])
    installed.apply({**eru.manifest("zz", namespace), "spec": {"deploymentname": "web"}})
    found = eru.wait_eru(installed, "zz", namespace, lambda s: eru.ready_reason(s) == "Conflict")
    assert 'already handled by Eru "web"' in condition(found, "Stalled")["message"]
    installed.delete(eru.KIND, "web", namespace)
    eru.wait_eru(installed, "zz", namespace, lambda s: eru.ready_reason(s) == "Disabled")


def test_stored_invalid_spec_stalls(controller, installed, namespace):
    """Without a webhook."""
    for name, spec, reason in (
            ("a", {"schedule": "0 0 31 2 *"}, "NeverMatches"),
            ("b", {"schedule": "often"}, "Unparseable"),
            ("c", {"timeZone": "Europe/Atlantis"}, "UnknownTimeZone")):
        installed.apply(eru.manifest(name, namespace, **spec))
        found = eru.wait_eru(installed, name, namespace,
                             lambda s: eru.ready_reason(s) == "InvalidSpec")
        assert condition(found, "ScheduleValid")["reason"] == reason
        assert condition(found, "Stalled")["status"] == "True"


def _wish(cluster, name, namespace, value):
    cluster.annotate("deployment", name, namespace, {eru.WANTED: value})


def test_annotated_deployment_gets_an_eru(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0))
    _wish(installed, "web", namespace, "true")
    found = eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    assert found["spec"]["enabled"] is False and found["spec"]["schedule"] == "0 0 * * *"
    uid = installed.get("deployment", "web", namespace)["metadata"]["uid"]
    assert [o["uid"] for o in found["metadata"]["ownerReferences"]] == [uid]
    installed.wait_event("web", namespace, "Created")

    _wish(installed, "web", namespace, None)
    wait.until("the Eru to go", lambda: not installed.get(eru.KIND, "web", namespace))
    installed.wait_event("web", namespace, "Deleted")


def test_edited_generated_eru_is_kept(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0, annotations={eru.WANTED: "true"}))
    eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    installed.patch(eru.KIND, "web", namespace, {"spec": {"historyLimit": 9}})
    eru.wait_eru(installed, "web", namespace, lambda s: True)
    _wish(installed, "web", namespace, None)
    installed.wait_event("web", namespace, "Kept")
    found = installed.get(eru.KIND, "web", namespace)
    assert "app.kubernetes.io/managed-by" not in found["metadata"]["labels"]
    # and is deleted with its Deployment
    installed.delete("deployment", "web", namespace)
    wait.until("the Eru to go", lambda: not installed.get(eru.KIND, "web", namespace), 60)


def test_user_created_eru_is_kept(controller, installed, namespace):
    installed.apply({**eru.manifest("nightly", namespace), "spec": {"deploymentname": "web"}})
    installed.apply(eru.deployment("web", namespace, replicas=0))
    eru.wait_eru(installed, "nightly", namespace,
                 lambda s: condition({"status": s}, "TargetFound").get("status") == "True")
    _wish(installed, "web", namespace, "true")
    installed.apply(eru.deployment("other", namespace, replicas=0, annotations={eru.WANTED: "true"}))
    eru.wait_eru(installed, "other", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    assert {o["metadata"]["name"] for o in installed.list(eru.KIND, namespace)} == \
        {"nightly", "other"}


@pytest.mark.oldest("kubectl's columns")
def test_kubectl_get_shows_columns(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0))
    installed.apply(eru.manifest("web", namespace, enabled=True))
    eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Active")
    lines = installed.kubectl("get", "eru", "-n", namespace).stdout.splitlines()
    assert lines[0].split() == ["NAME", "DEPLOYMENT", "SCHEDULE", "TZ", "ENABLED", "LAST", "NEXT",
                                "PHASE", "RESULT", "AGE"]
    assert lines[1].split()[:8] == ["web", "web", "0", "0", "*", "*", "*", "Etc/UTC"]


@pytest.mark.oldest("ownership of server-side apply")
def test_settled_eru_causes_no_writes(controller, installed, namespace):
    installed.apply(eru.deployment("web", namespace, replicas=0))
    installed.apply(eru.manifest("web", namespace, enabled=True))
    found = eru.wait_eru(installed, "web", namespace, lambda s: eru.ready_reason(s) == "Active")
    before = len(stw.requests(installed, namespace))
    installed.annotate(eru.KIND, "web", namespace, {"steward.dev/reconcile-at": "now"})
    installed.apply(eru.manifest("last", namespace))
    eru.wait_eru(installed, "last", namespace, lambda s: eru.ready_reason(s) == "Disabled")
    assert [r for r in stw.requests(installed, namespace)[before:] if "/web" in r[1]] == []
    after = installed.get(eru.KIND, "web", namespace)
    assert after["status"] == found["status"]
