# SPDX-License-Identifier: Apache-2.0
"""An instant restarts a Deployment once: over outages, crashes, with two stewards that both believe
they lead, and when the clock is set.

The stewards here use a fake clock, which leaps to a few seconds before an instant.
"""

import datetime

import pytest
from support import eru, wait
from support import steward as stw


@pytest.fixture
def due(installed, namespace, pods_stay_pending):
    """due(n): creates Deployments web-0 to web-(n-1), available, and an Eru for each, all due at
    the same instant; returns the instant."""
    stw.uninstall_webhooks(installed)
    with eru.Kubelet(installed, namespace):
        def create(count, **spec):
            for i in range(count):
                installed.apply(eru.deployment(f"web-{i}", namespace))
            for i in range(count):
                eru.wait_available(installed, f"web-{i}", namespace)
            schedule, instant = eru.next_minute()
            for i in range(count):
                installed.apply(eru.manifest(f"web-{i}", namespace, enabled=True,
                                             schedule=schedule, **spec))
            return instant
        yield create


def _assert_restarted_once(cluster, namespace, count, instant):
    for i in range(count):
        name = f"web-{i}"
        found = eru.wait_eru(cluster, name, namespace,
                             lambda s: s.get("lastResult") == "Succeeded", 60)
        assert eru.stamp(cluster, name, namespace) == eru.iso(instant)
        assert eru.revision(cluster, name, namespace) == 2
        assert [h["result"] for h in found["status"]["history"]] == ["Succeeded"]
        assert found["status"]["lastScheduleTime"] == eru.iso(instant)
        assert "missedCount" not in found["status"]


def test_instant_missed_while_down_restarts_once(run_steward, installed, namespace, due, clock):
    one = run_steward(clock=clock)
    instant = due(1)
    eru.wait_eru(installed, "web-0", namespace, lambda s: s.get("nextScheduleTime"))
    assert one.stop() == 0
    clock.leap(instant, -1)
    run_steward(clock=clock)
    _assert_restarted_once(installed, namespace, 1, instant)


def test_instant_due_before_first_start_restarts_once(run_steward, installed, namespace, due, clock):
    instant = due(1)
    clock.leap(instant, -1)
    run_steward(clock=clock)
    _assert_restarted_once(installed, namespace, 1, instant)


def test_kill_during_restarts_restarts_each_once(run_steward, installed, namespace, due, clock):
    """When the first stamp is seen: others are not yet, just being or already stamped."""
    count = 6
    one = run_steward(clock=clock)
    instant = due(count)
    names = [f"web-{i}" for i in range(count)]
    clock.leap(instant, eru.SOON)
    clock.wait_until(instant)
    wait.until("a stamp", lambda: any(eru.stamp(installed, n, namespace) for n in names), 20,
               every=0.01)
    one.kill()
    run_steward(clock=clock)
    _assert_restarted_once(installed, namespace, count, instant)


def test_two_leaders_restart_once(run_steward, installed, namespace, due, clock):
    """Without leader election each believes that it leads."""
    count = 4
    run_steward(clock=clock)
    run_steward(clock=clock)
    instant = due(count)
    clock.leap(instant, eru.SOON)
    _assert_restarted_once(installed, namespace, count, instant)


def test_leader_death_at_the_instant_restarts_once(run_steward, installed, namespace, due, clock):
    """Another takes over when the lease has expired, and restarts what is due."""
    first = run_steward("--leader-elect", clock=clock)
    instant = due(2)
    eru.wait_eru(installed, "web-1", namespace, lambda s: s.get("nextScheduleTime"))
    run_steward("--leader-elect", clock=clock)
    clock.leap(instant, eru.SOON)
    clock.wait_until(instant)
    first.kill()
    _assert_restarted_once(installed, namespace, 2, instant)


def _next_half_hour(now):
    at = (now + datetime.timedelta(minutes=40)).replace(second=0, microsecond=0)
    return f"{at.minute} * * * *", at


def test_clock_steps_restart_once(run_steward, installed, namespace, pods_stay_pending, clock):
    """Forward over an instant, which is then due; back over it, which is then past; and during a
    rollout, which does not depend on the wall clock."""
    stw.uninstall_webhooks(installed)
    one = run_steward(clock=clock)
    schedule, instant = _next_half_hour(clock.now())
    with eru.Kubelet(installed, namespace) as kubelet:
        eru.create_available(installed, "web", namespace)
        installed.apply(eru.manifest("web", namespace, enabled=True, schedule=schedule,
                                     rolloutTimeoutSeconds=900))
        eru.wait_eru(installed, "web", namespace,
                     lambda s: s.get("nextScheduleTime") == eru.iso(instant))
        kubelet.hold.set()
        clock.leap(instant, -1)
        eru.wait_eru(installed, "web", namespace, lambda s: s.get("currentRollout"), 20)
        assert eru.stamp(installed, "web", namespace) == eru.iso(instant)

        later = instant + datetime.timedelta(hours=1)
        clock.set(clock.ahead + 1800)  # more than rolloutTimeoutSeconds, no instant in between
        eru.wait_log(one, "the clock was set", 2)
        found = eru.wait_eru(installed, "web", namespace,
                             lambda s: s.get("nextScheduleTime") == eru.iso(later))
        assert "currentRollout" in found["status"] and "lastResult" not in found["status"]
        kubelet.hold.clear()
        found = eru.wait_eru(installed, "web", namespace, lambda s: s.get("lastResult"))
        assert found["status"]["lastResult"] == "Succeeded"
        assert found["status"]["history"][0]["durationSeconds"] < 300

        clock.set(clock.ahead - 3600)  # before the instant
        eru.wait_log(one, "the clock was set", 3)
        clock.leap(instant, eru.SOON)
        eru.wait_log(one, "the clock was set", 4)
        clock.wait_until(instant + datetime.timedelta(seconds=1))
        found = eru.wait_eru(installed, "web", namespace,
                             lambda s: s.get("nextScheduleTime") == eru.iso(later))
        assert len(found["status"]["history"]) == 1
        assert eru.revision(installed, "web", namespace) == 2
        clock.leap(later, eru.SOON)
        eru.wait_eru(installed, "web", namespace,
                     lambda s: s.get("lastScheduleTime") == eru.iso(later), 30)
        # The Deployment's controller counts it afterwards.
        wait.until("the revision", lambda: eru.revision(installed, "web", namespace) == 3)


@pytest.mark.node
def test_real_pods_are_replaced(run_steward, installed, namespace):
    """On a node: new pods replace the old ones."""
    stw.uninstall_webhooks(installed)
    run_steward()
    installed.apply(eru.deployment("web", namespace, replicas=2, image="nginx:1.22"))
    eru.wait_available(installed, "web", namespace, 120)
    before = {p["metadata"]["uid"] for p in installed.list("pod", namespace)}
    installed.apply(eru.manifest("web", namespace))
    eru.restart_now(installed, "web", namespace, "one")
    found = eru.wait_eru(installed, "web", namespace,
                         lambda s: s.get("lastResult") == "Succeeded", 120)
    assert found["status"]["history"][0]["durationSeconds"] >= 0
    eru.wait_available(installed, "web", namespace, 60)
    now = {p["metadata"]["uid"] for p in installed.list("pod", namespace)
           if "deletionTimestamp" not in p["metadata"]}
    assert len(now) == 2 and not now & before
