# SPDX-License-Identifier: Apache-2.0
"""Pauses, invalid objects, crashes, an API server that fails, and two replicas."""

import random
import signal
import time

import pytest
from support import app, myweb
from support import steward as stw
from support import wait
from support.cluster import condition


def test_paused_myweb_is_not_repaired(controller, installed, namespace):
    web = myweb.create_settled(installed, "web", namespace)
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/paused": "true"})
    ready = myweb.wait_condition(installed, "web", namespace, "Ready", "Paused")
    assert ready["status"] == "True"
    installed.patch("configmap", "web", namespace, {"data": {"index.html": "by hand"}})
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"containerPort": 81}})
    wait.stays("untouched", lambda: installed.get(
        "configmap", "web", namespace)["data"]["index.html"] == "by hand", 2)
    paused = installed.get(myweb.KIND, "web", namespace)
    assert paused["status"]["observedGeneration"] == web["metadata"]["generation"]
    installed.annotate(myweb.KIND, "web", namespace, {"steward.dev/paused": None})
    web = myweb.wait_settled(installed, "web", namespace)
    assert condition(web, "Ready")["reason"] == "Completed"
    assert installed.get("configmap", "web", namespace)["data"]["index.html"] == "<p>web</p>"


def test_myweb_created_paused_has_no_children(controller, installed, namespace):
    installed.apply(myweb.manifest("web", namespace, annotations={"steward.dev/paused": "true"}))
    ready = myweb.wait_condition(installed, "web", namespace, "Ready", "Paused")
    assert ready["status"] == "Unknown"
    assert not any(myweb.children(installed, "web", namespace).values())
    installed.delete(myweb.KIND, "web", namespace)


def test_pod_error_is_reported(controller, installed, namespace, pods_stay_pending):
    """First the scheduler's answer, then those of a kubelet, then nothing."""
    installed.apply(myweb.manifest("web", namespace, replicas=1))
    found = myweb.wait_condition(installed, "web", namespace, "Ready", "Unschedulable")
    assert "cannot be scheduled" in found["message"]
    [pod] = app.wait_pods(installed, "web", namespace, 1)
    name = pod["metadata"]["name"]
    app.set_status(installed, pod, conditions=[], containerStatuses=app.container_status(
        waiting={"reason": "ErrImagePull", "message": "rpc error"}))
    found = myweb.wait_condition(installed, "web", namespace, "DeploymentAvailable",
                                 "ImagePullBackOff")
    assert f"container app of pod {name}: cannot pull image" in found["message"]
    assert condition(installed.get(myweb.KIND, "web", namespace), "Ready")["reason"] == \
        "ImagePullBackOff"
    assert installed.wait_event("web", namespace, "ImagePullBackOff", "cannot pull image")
    app.set_status(installed, pod, containerStatuses=app.container_status(
        waiting={"reason": "CrashLoopBackOff"}, restarts=4,
        last={"terminated": {"exitCode": 3, "reason": "Error"}}))
    found = myweb.wait_condition(installed, "web", namespace, "Ready", "CrashLoopBackOff")
    assert f"container app of pod {name} ends again and again, with exit code 3" in found["message"]
    app.run_pod(installed, pod)
    found = myweb.wait_condition(installed, "web", namespace, "DeploymentAvailable",
                                 "MinimumReplicasAvailable")
    assert "cannot pull" not in found["message"]


def test_stored_invalid_object_stalls(controller, installed, namespace):
    """Stored without a webhook: the same error as a condition, and no child."""
    installed.apply(myweb.manifest("web", namespace, nodePortNumber=80, mountPath="/a/../b"))
    stalled = myweb.wait_condition(installed, "web", namespace, "Stalled", "InvalidSpec")
    assert "spec.nodePortNumber: Invalid value: 80: must be 0 or between 30000 and 32767" in \
        stalled["message"]
    assert "spec.mountPath: Invalid value" in stalled["message"]
    assert not any(myweb.children(installed, "web", namespace).values())
    web = installed.get(myweb.KIND, "web", namespace)
    assert condition(web, "Ready")["status"] == "False"
    assert web["status"]["completed"] is False
    installed.wait_event("web", namespace, "InvalidSpec", "nodePortNumber")
    installed.patch(myweb.KIND, "web", namespace,
                    {"spec": {"nodePortNumber": 0, "mountPath": "/srv"}})
    web = myweb.wait_settled(installed, "web", namespace)
    assert not condition(web, "Stalled")


def test_invalid_change_keeps_the_children(controller, installed, namespace):
    myweb.create_settled(installed, "web", namespace)
    before = myweb.children(installed, "web", namespace)
    installed.patch(myweb.KIND, "web", namespace, {"spec": {"nodePortNumber": 80}})
    myweb.wait_condition(installed, "web", namespace, "Stalled", "InvalidSpec")
    after = myweb.children(installed, "web", namespace)
    for kind in myweb.CHILDREN:
        assert after[kind]["metadata"]["uid"] == before[kind]["metadata"]["uid"]
        assert after[kind].get("spec") == before[kind].get("spec")


def test_random_kills_lose_no_child(controller, installed, namespace, run_steward):
    """Repeated SIGKILL while 100 MyWebs are created and changed: nothing is lost or duplicated."""
    assert controller.stop() == 0
    dice = random.Random(20240101)
    one = None
    try:
        names = [f"web{n}" for n in range(100)]
        installed.apply([myweb.manifest(n, namespace) for n in names])
        for round_ in range(12):
            one = run_steward()
            if round_ % 3 == 1:
                installed.apply([myweb.manifest(n, namespace, pageContentHtml=f"round {round_}")
                                 for n in dice.sample(names, 30)])
            deadline = time.monotonic() + dice.uniform(0.0, 0.4)
            wait.until("its last moment", lambda at=deadline: time.monotonic() >= at, every=0.005)
            one.kill()
        one = run_steward()
        wait.until("all to be complete", lambda: all(
            myweb.is_settled(w) for w in installed.list(myweb.KIND, namespace)), 180, every=0.5)
        pages = {w["metadata"]["name"]: w["spec"]["pageContentHtml"]
                 for w in installed.list(myweb.KIND, namespace)}
        for kind in myweb.CHILDREN:
            found = installed.list(kind, namespace, "app.kubernetes.io/managed-by=steward")
            assert sorted(o["metadata"]["name"] for o in found) == sorted(names)
        for c in installed.list("configmap", namespace, "app.kubernetes.io/managed-by=steward"):
            assert c["data"]["index.html"] == pages[c["metadata"]["name"]]
        ports = [w["status"]["nodePort"] for w in installed.list(myweb.KIND, namespace)]
        assert len(set(ports)) == len(names)
        # A restart finds nothing to do and changes nothing.
        assert one.stop() == 0
        before = len(stw.requests(installed, namespace, changing=True))
        again = run_steward()
        wait.until("a look at each", lambda: again.metric(
            "controller_runtime_reconcile_total", result="success") >= len(names))
        assert len(stw.requests(installed, namespace, changing=True)) == before
        assert again.stop() == 0
    finally:
        controller.start()
        # Not left to the deletion of the namespace: the next test stops the API server during it.
        installed.delete_all(myweb.KIND, namespace, wait_gone=False)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_api_server_outage_is_survived(controller, installed, namespace, how):
    if not installed.name:
        pytest.skip("the cluster is not ours to stop")
    myweb.create_settled(installed, "web", namespace)
    before = len(controller.log())
    installed.component(how, "apiserver")
    try:
        wait.until("steward to notice", lambda: any(
            "refused" in str(line) for line in controller.log()[-200:]))
        assert controller.healthz()[0] == 200
        wait.until("a watch that fails again", lambda: any(
            line.get("failures") == 3 for line in controller.log()[before:]))
    finally:
        installed.component("start", "apiserver")
    assert controller.running()
    installed.apply(myweb.manifest("after", namespace))
    myweb.wait_settled(installed, "after", namespace, 60)
    installed.patch("configmap", "web", namespace, {"data": {"index.html": "x"}})
    installed.wait_event("web", namespace, "DriftRepaired", seconds=60)
    assert controller.readyz()[0] == 200
    # A failing watch: at its start, once more with how long it lasts, and at its end.  A server that has just
    # started may refuse again.
    lines = [line for line in controller.log()[before:] if line.get("resource") == "mywebs"]
    end = next(i for i, line in enumerate(lines) if line["msg"] == "watching again")
    warned = [line for line in lines[:end] if line["level"] == "warn" and "failures" in line]
    assert [line["failures"] for line in warned] == [1, 2], lines
    assert warned[0]["failingForMs"] == 0 <= warned[1]["failingForMs"] <= lines[end]["failedForMs"], lines


def test_silent_api_server_is_survived(controller, installed, namespace):
    """Connections stay open without a response, which is harder to detect than a refusal."""
    if not installed.name:
        pytest.skip("the cluster is not ours to stop")
    myweb.create_settled(installed, "web", namespace)
    installed.component("pause", "apiserver")
    try:
        end = time.monotonic() + 60
        wait.until("the minute to pass in good health", lambda: (
            controller.healthz()[0] != 200 or time.monotonic() >= end), 70, every=0.5)
        assert controller.healthz()[0] == 200
    finally:
        installed.component("resume", "apiserver")
    installed.patch("configmap", "web", namespace, {"data": {"index.html": "x"}})
    installed.wait_event("web", namespace, "DriftRepaired", seconds=60)
    wait.until("steward to be ready", lambda: controller.readyz()[0] == 200)


def leads(steward):
    """Whether this replica reconciles."""
    return steward.metric("leader_election_master_status") == 1


@pytest.fixture
def replicas(controller, run_steward):
    """Two replicas: (leader, other)."""
    controller.stop()
    leader = run_steward("--leader-elect")
    wait.until("the first to lead", lambda: leads(leader), 40)
    other = run_steward("--leader-elect")
    assert not leads(other)
    yield leader, other
    controller.start()


def test_stopped_leader_is_replaced_at_once(replicas, installed, namespace):
    leader, other = replicas
    myweb.create_settled(installed, "first", namespace)
    assert other.metric("controller_runtime_reconcile_total") == 0
    assert other.readyz()[0] == 200
    leader.process.terminate()
    leader.process.wait(30)
    gone = time.monotonic()
    wait.until("the other to lead", lambda: leads(other), 20, every=0.02)
    assert time.monotonic() - gone <= wait.within(2)
    assert leader.process.returncode == 0
    myweb.create_settled(installed, "second", namespace)
    # Its caches were filled already: settled objects are not written.
    assert condition(installed.get(myweb.KIND, "first", namespace), "Ready")["status"] == "True"


def test_killed_leader_is_replaced_after_lease_expiry(replicas, installed, namespace):
    leader, other = replicas
    leader.kill()
    gone = time.monotonic()
    installed.apply(myweb.manifest("web", namespace))
    wait.until("the other to lead", lambda: leads(other), 60, every=0.1)
    # A candidate sees a renewal only at its next try, after 2 to 4.4 s; the expiry likewise.
    assert time.monotonic() - gone <= 15 + 2 * 4.4 + 2
    myweb.wait_settled(installed, "web", namespace)


def test_resumed_former_leader_does_not_write(replicas, installed, namespace):
    """A leader that was suspended until its lease expired must stop writing."""
    leader, other = replicas
    leader.process.send_signal(signal.SIGSTOP)
    try:
        wait.until("the other to lead", lambda: leads(other), 40, every=0.1)
    finally:
        leader.process.send_signal(signal.SIGCONT)
    wait.until("the first to step down", lambda: not leads(leader))
    assert leader.running()
    myweb.create_settled(installed, "web", namespace)
    runs = leader.metric("controller_runtime_reconcile_total")
    myweb.create_settled(installed, "web2", namespace)
    assert leader.metric("controller_runtime_reconcile_total") == runs
