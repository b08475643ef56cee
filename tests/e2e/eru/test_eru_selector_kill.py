# SPDX-License-Identifier: Apache-2.0
"""An Eru with a selector, over the end of a process and a change of leaders: each workload that
matched is restarted once, and no other.
"""

import pytest
from support import eru, faults, wait

pytestmark = pytest.mark.usefixtures("no_webhooks", "kubelet")


@pytest.mark.oldest("conflicts, and preconditions of server-side apply")
def test_kills_after_each_write_restart_once(run_steward, installed, namespace, tmp_path):
    """By SIGKILL after the status, and between any two restarts; another steward continues."""
    names = [f"web-{i}" for i in range(4)]
    log, deaths = tmp_path / "faults.log", []
    eru.create_labelled(installed, namespace, names)
    installed.apply(eru.selecting("nightly", namespace))
    eru.restart_now(installed, "nightly", namespace, "one")
    for _ in range(20):
        log.write_text("")
        one = run_steward(ready=False, binary=faults.binary(),
                          env={"STEWARD_FAULT_AT": "1", "STEWARD_FAULT_LOG": str(log)})
        wait.until("its end", lambda one=one: not one.running() or installed.get(
            eru.KIND, "nightly", namespace).get("status", {}).get("lastResult"), 60)
        if one.running():
            one.kill()
            break
        deaths.append(log.read_text().split()[-1])
        # Workloads that come later are not restarted for this instant.
        if "stamp" in deaths and not installed.get("deployment", "later", namespace):
            installed.apply(eru.labelled("later", namespace))
    assert deaths.count("stamp") == len(names) and "status" in deaths, deaths
    last = run_steward()
    status = eru.wait_ended(installed, "nightly", namespace)
    assert last.stop() == 0, last.log_tail()
    assert status["lastResult"] == "Succeeded", status
    assert len(status["history"]) == 1
    assert status["selected"]["matched"] == status["selected"]["succeeded"] == len(names)
    eru.assert_each_once(installed, namespace, names, status["restartNow"]["instant"])
    assert eru.stamp(installed, "later", namespace) is None


@pytest.mark.oldest("leases")
def test_two_leaders_restart_each_workload_once(run_steward, installed, namespace, clock):
    """By the schedule; without leader election each believes that it leads."""
    names = [f"web-{i}" for i in range(5)]
    for _ in range(2):
        run_steward(clock=clock)
    eru.create_labelled(installed, namespace, names)
    schedule, instant = eru.next_minute()
    installed.apply(eru.selecting("nightly", namespace, enabled=True, schedule=schedule))
    eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("nextScheduleTime"))
    clock.leap(instant, eru.SOON)
    status = eru.wait_ended(installed, "nightly", namespace, 120)
    assert [h["result"] for h in status["history"]] == ["Succeeded"], status
    assert status["lastScheduleTime"] == eru.iso(instant)
    eru.assert_each_once(installed, namespace, names, eru.iso(instant))


def test_leader_death_at_the_instant_restarts_each_once(run_steward, installed, namespace, clock):
    """Another takes over when the lease has expired, and continues."""
    names = [f"web-{i}" for i in range(5)]
    first = run_steward("--leader-elect", clock=clock)
    eru.create_labelled(installed, namespace, names)
    schedule, instant = eru.next_minute()
    installed.apply(eru.selecting("nightly", namespace, enabled=True, schedule=schedule))
    eru.wait_eru(installed, "nightly", namespace, lambda s: s.get("nextScheduleTime"))
    run_steward("--leader-elect", clock=clock)
    clock.leap(instant, eru.SOON)
    wait.until("what matches in the status", lambda: installed.get(
        eru.KIND, "nightly", namespace)["status"].get("selected"), 60, every=0.01)
    first.kill()
    status = eru.wait_ended(installed, "nightly", namespace, 120)
    assert [h["result"] for h in status["history"]] == ["Succeeded"], status
    eru.assert_each_once(installed, namespace, names, eru.iso(instant))
