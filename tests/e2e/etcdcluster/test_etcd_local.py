# SPDX-License-Identifier: Apache-2.0
"""What steward reports and does about a real etcd without a node that runs pods: a cluster of one
member, whose kubelet the test plays."""

import pytest
from support import etcd, etcdcerts, faults, gateway, wait
from support.cluster import condition
from support.etcdcluster import settled
from support.etcdlocal import LocalEtcd

LINE = sorted(etcd.versions())[-1:]

pytestmark = [pytest.mark.usefixtures("pods_stay_pending"),
              pytest.mark.skipif(bool(etcd.missing("3.4", *LINE)), reason="no etcd is here")]


def test_lost_pod_is_recreated_with_its_data(ec):
    """The pod comes back with the same name, volume and keys (E1).  Ready becomes False while it is
    gone (E12)."""
    pod = ec.up()
    name = pod["metadata"]["name"]
    claim = ec.claims()[name]["metadata"]["uid"]
    ec.wait_answers().put("a", "1")
    ec.kill()
    obj = ec.wait(lambda o: condition(o, "Ready")["status"] == "False", "it not to be Ready", 30)
    assert condition(obj, "Available")["status"] == "False"
    assert obj["status"]["quorum"] == {"voters": 1, "healthy": 0, "needed": 1, "margin": -1}

    ec.gone(pod)
    again = ec.wait_pod(besides=pod["metadata"]["uid"])
    assert again["metadata"]["name"] == name
    assert ec.claims()[name]["metadata"]["uid"] == claim
    ec.run(again).wait_settled(1)
    assert ec.wait_answers().get("a") == "1"


def test_nospace_alarm_is_reported_and_disarmed(ec):
    """NOSPACE is reported; after space is freed in the database, writes resume (E15)."""
    ec.up(options={"quotaBackendBytes": "64Mi"})
    one = ec.wait_answers()
    one.timeout = 10
    assert gateway.fill(one) > 0
    ec.wait_condition("AlarmActive", "True", "NoSpace", seconds=30)
    assert condition(ec.get(), "Ready")["status"] == "False"
    one.post("/v3/kv/deleterange", {"key": gateway.b64("big"), "range_end": gateway.b64("bih")})
    one.post("/v3/kv/compaction", {"revision": one.status()["header"]["revision"],
                                   "physical": True})
    one.post("/v3/maintenance/defragment")
    ec.wait_condition("AlarmActive", "False", seconds=30)
    assert one.put("a", "1")
    ec.wait_settled(1)


def test_corrupt_alarm_stops_all_changes(ec):
    """Under the alarm CORRUPT nothing is changed, not even on a change of the spec (E8)."""
    pod = ec.up()
    one = ec.wait_answers()
    member = one.status()["header"]["member_id"]
    one.post("/v3/maintenance/alarm",
             {"action": "ACTIVATE", "memberID": member, "alarm": "CORRUPT"})
    ec.wait_condition("Stalled", "True", "Corrupt", seconds=30)
    ec.patch(size=3)
    wait.stays("nothing is changed", lambda: ec.uids() == {
        pod["metadata"]["name"]: pod["metadata"]["uid"]} and len(one.members()) == 1, 5)


def certificate(ec):
    """The server certificate in the Secret of the members, or None."""
    return etcdcerts.secret_data(ec.cluster, ec.namespace, "ec-server-tls").get("server.crt")


def make_old(ec):
    """The member serves another certificate than the one in its Secret; returns its pod."""
    ec.apply(size=1, storage={"medium": "Persistent"}, TLS={"auto": {"provider": "Steward"}})
    pod = ec.wait_pod()
    ec.run(pod).wait_settled(1)
    ec.wait_condition("TLSReady", "True")
    before = certificate(ec)
    ec.cluster.delete("secret", "ec-server-tls", ec.namespace)
    wait.until("another one", lambda: certificate(ec) not in (None, before), 30)
    ec.wait_condition("TLSReady", "False", "OldSerialServed", seconds=30)
    return pod


def test_deleted_certificate_secret_is_reissued(ec):
    """Reissued when its Secret is deleted; TLSReady only when it is seen to be served (E11)."""
    pod = make_old(ec)
    wait.stays("its pod is left alone", lambda: list(ec.uids().values()) == [
        pod["metadata"]["uid"]], 3)
    ec.bring_secrets(pod)
    ec.wait_condition("TLSReady", "True", seconds=30)
    assert etcdcerts.shown(ec, pod["metadata"]["name"]) == etcdcerts.fingerprint(certificate(ec))


def test_outdated_certificate_recreates_the_pod(controller, run_steward, installed, namespace, tmp_path, clock):
    """After ten minutes it still serves the old one: its pod is recreated.  A single member gets a
    second one first (E11)."""
    assert controller.stop() == 0, controller.log_tail()
    run_steward(clock=clock)
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        make_old(ec)
        clock.set(clock.ahead + 610)
        ec.wait_condition("Rolling", "True", "CertRotation", seconds=30)
        ec.wait_pods("another member", lambda pods: len(pods) == 2, 30)
    controller.start()


def test_changed_pod_template_needs_consent(controller, run_steward, installed, namespace, tmp_path):
    """It recreates none by itself, and reports it; with consent it does (a second member first)."""
    assert controller.stop() == 0, controller.log_tail()

    def start(version):
        return run_steward(binary=faults.binary(), env={"STEWARD_TEMPLATE": version})
    one = start("1")
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        pod = ec.up()
        assert one.stop() == 0, one.log_tail()
        one = start("2")
        ec.wait_condition("TemplateOutdated", "True", "NewVersion", seconds=30)
        found = ec.get()
        assert condition(found, "Rolling")["status"] == "False" and settled(found, 1)
        assert {p["metadata"]["uid"] for p in ec.pods().values()} == {pod["metadata"]["uid"]}
        message = condition(found, "TemplateOutdated")["message"]
        digits = message.partition("steward.dev/update-template=")[2].partition(" ")[0]
        ec.annotate("steward.dev/update-template", digits)
        ec.wait_condition("Rolling", "True", "SpecChange", seconds=30)
        ec.wait_pods("another member", lambda pods: len(pods) == 2, 30)
        assert not condition(ec.get(), "TemplateOutdated")
    assert one.stop() == 0, one.log_tail()
    controller.start()


def test_kills_after_each_write_create_one_cluster(controller, run_steward, installed, namespace,
                                                   tmp_path):
    """During the creation: it becomes a cluster of one member, whose name is chosen once (E14)."""
    assert controller.stop() == 0, controller.log_tail()
    log = tmp_path / "faults.log"
    deaths, names = [], set()

    def died_or_done(one):
        for pod in ec.pods().values():
            if not ec.process:
                ec.run(pod)
        names.update(ec.pods(), ec.claims())
        return not one.running() or settled(ec.get(), 1)

    def calls_to_live():
        """The number of the call that kills it: 1, or more after the same death in a row, as some
        calls are simply repeated."""
        again = [name == deaths[-1] for name in reversed(deaths)] + [False]
        return max(1, again.index(False))

    def one_life():
        log.write_text("")
        one = run_steward(ready=False, binary=faults.binary(), env={
            "STEWARD_FAULT_AT": str(calls_to_live()), "STEWARD_FAULT_LOG": str(log)})
        wait.until("its end", lambda: died_or_done(one), 60)
        died = not one.running()
        one.kill()
        deaths.extend(log.read_text().split()[-1:])
        return died
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        ec.apply(size=1, storage={"medium": "Persistent"})
        while one_life():
            assert len(deaths) < 40, deaths
        print(f"killed {len(deaths)} times: {' '.join(deaths)}")
        assert {"status", "child", "create", "guard"} <= set(deaths)
        assert len(names) == 1, names
        assert [m["name"] for m in ec.wait_answers().members()] == [*names]
    controller.start()
