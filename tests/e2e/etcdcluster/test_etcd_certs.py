# SPDX-License-Identifier: Apache-2.0
"""Certificates of a real EtcdCluster are renewed, get a new CA, and expire, under write load."""

import re
import time

import pytest
from support import etcdcerts as certs
from support import etcdcluster as ecs
from support import incident, wait


@pytest.fixture(scope="module")
def given(stage, tmp_path_factory):
    """A cluster of three, and the Secrets with its certificates."""
    etcd = stage.etcd()
    one = certs.Given(etcd, tmp_path_factory.mktemp("certs"))
    one.write()
    etcd.apply(size=3, TLS=certs.STATIC, upgrade={"pauseBetweenSeconds": 0})
    etcd.wait_settled(3, 120)
    etcd.tls = one.client()
    return one


def wait_served(given):
    """Until each member serves the certificate of the Secret, and steward has seen it."""
    etcd, wanted = given.etcd, certs.fingerprint(given.data["server"]["server.crt"])
    wait.until("all members to show it",
               lambda: {certs.shown(etcd, m) for m in etcd.pods()} == {wanted}, 150, 0.5)
    etcd.wait_settled(3, 120)
    etcd.wait_condition("TLSReady", "True")


@pytest.mark.node
def test_renewed_certificate_is_reloaded_without_restart(given):
    """etcd reloads it by itself: no member is restarted."""
    etcd, uids = given.etcd, given.etcd.uids()
    with etcd.writer() as writer:
        writer.wait_writes()
        given.sign("first")
        given.write()
        wait_served(given)
        writer.wait_writes()
    assert etcd.uids() == uids


@pytest.mark.node
def test_changed_ca_restarts_one_member_at_a_time(given):
    """First all trust both CAs, with one restart at a time; then the new one signs."""
    etcd, before = given.etcd, given.etcd.uids()
    both = given.data["peer"]["peer-ca.crt"] + given.new_authority("second")
    with etcd.writer() as writer:
        writer.wait_writes()
        given.trust(both)
        given.write()
        etcd.wait_other_pods(before, 180)
        etcd.wait_settled(3, 120)
        uids = etcd.uids()
        etcd.tls = given.client()
        given.sign("second")
        given.write()
        wait_served(given)
        writer.wait_writes()
    assert etcd.uids() == uids
    etcd.tls = given.client()
    etcd.check_same()
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s")


@pytest.mark.node
def test_expired_certificate_is_reported(given):
    """Existing connections keep writing, new ones fail; steward reports it, changes nothing."""
    etcd, uids = given.etcd, given.etcd.uids()
    with etcd.writer() as writer:
        writer.wait_writes()
        given.sign("second", certs.SECRETS[1:2], days=0)
        given.write()
        found = etcd.wait_condition("TLSReady", "False", "Expired")
        assert "ended at" in found["message"]
        etcd.wait_condition("Ready", "False")
        wait.stays("nothing is touched", lambda: etcd.uids() == uids, 15, 1)
        with pytest.raises(OSError):
            etcd.client().status()
        writer.wait_writes()
        given.sign("second", certs.SECRETS[1:2])
        given.write()
        wait_served(given)
        writer.wait_writes()
    assert etcd.uids() == uids


@pytest.mark.node
def test_changed_key_names_of_secret_recreate_one_by_one(given):
    """Secrets that get tls.crt, tls.key and ca.crt instead of the other keys: members keep the files they
    have, and are recreated one at a time; new connections are served all the time."""
    etcd, before = given.etcd, given.etcd.uids()
    with etcd.writer() as writer:
        writer.wait_writes()
        given.common().write()

        def recreated():
            assert etcd.client().status()
            return not set(etcd.uids().items()) & set(before.items())
        wait.until("all pods to be recreated", recreated, 180, 1)
        etcd.wait_settled(3, 120)
        writer.wait_writes()
    etcd.wait_condition("TLSReady", "True")
    etcd.check_same()


def test_own_certificates_are_renewed_in_time(controller, installed, namespace, pods_stay_pending):
    """Certificates of steward's own CA are reissued as renewBeforeDays requires, not before."""
    assert controller.running()
    etcd = ecs.EtcdCluster(installed, namespace, "own")

    def found(name):
        data = certs.secret_data(installed, namespace, f"own-{name}-tls")
        return next((data[key] for key in data if key.endswith(".crt") and "ca" not in key), None)

    def all_of_them():
        return [found(name) for name in ("peer", "server", "client")]
    etcd.apply(size=1, TLS={"auto": {"provider": "Steward", "validityDays": 90,
                                     "renewBeforeDays": 60}})
    wait.until("all certificates", lambda: None not in all_of_them(), 40)
    before = all_of_them()
    wait.until("the metric to tell of them", lambda: 89 <= days_left(controller, namespace) <= 90, 20)
    etcd.patch(TLS={"auto": {"renewBeforeDays": 89}})
    wait.stays("89 days are left", lambda: all_of_them() == before, 4, 0.5)
    etcd.patch(TLS={"auto": {"validityDays": 120, "renewBeforeDays": 90}})
    wait.until("others", lambda: not set(all_of_them()) & set(before), 40)
    assert installed.wait_event("own", namespace, "CertRotated")
    wait.until("the metric to tell of it", lambda: days_left(controller, namespace) > 119, 20)
    etcd.delete()
    wait.until("the series to go", lambda: f'namespace="{namespace}"' not in "".join(
        line for line in controller.metrics_text().splitlines()
        if line.startswith("steward_etcd_certificate_not_after_seconds{")), 20)


def test_expiry_of_user_certificates_is_reported(controller, installed, namespace, pods_stay_pending, tmp_path):
    """The first expiry of a user's certificates is reported 30 days ahead."""
    assert controller.running()
    etcd = ecs.EtcdCluster(installed, namespace, "given")
    given = certs.Given(etcd, tmp_path)
    given.write()
    etcd.apply(size=1, TLS=certs.STATIC)
    etcd.wait_condition("TLSReady", "True", "Ready", seconds=40)
    for number, (days, status, reason) in enumerate([(29, "False", "ExpiringSoon"),
                                                     (32, "True", "Ready"), (0, "False", "Expired"),
                                                     (32, "True", "Ready")]):
        given.sign("first", certs.SECRETS[number % 3:][:1], days=days)
        given.write()
        etcd.wait_condition("TLSReady", status, reason, seconds=20)
        given.sign("first")
    with incident.follow("StewardEtcdCertificateExpiresSoon", installed) as runbook:
        wait.until("the former ones to be forgotten", lambda: days_left(controller, namespace, "given") > 31, 20)
        runbook.before(controller.metrics_text())
        given.sign("first", certs.SECRETS[:1], days=6)
        given.write()
        etcd.wait_condition("TLSReady", "False", "ExpiringSoon", seconds=20)
        wait.until("the metric to tell of it", lambda: days_left(controller, namespace, "given") < 6.1, 20)
        runbook.fires(controller.metrics_text)
        assert re.search(rf"{namespace} +given", runbook.kubectl("get etcdclusters"))
        given.sign("first")
        given.write()
        etcd.wait_condition("TLSReady", "True", "Ready", seconds=20)
        wait.until("the metric to tell of it", lambda: days_left(controller, namespace, "given") > 7, 20)
        runbook.ends(controller.metrics_text)


def days_left(steward, namespace, cluster="own"):
    """Days until the first certificate of the cluster expires, according to the metric."""
    end = steward.metric("steward_etcd_certificate_not_after_seconds", namespace=namespace,
                         cluster=cluster)
    return (end - time.time()) / 86400


def test_cluster_without_tls_has_no_expiry_metric(controller, installed, namespace, pods_stay_pending):
    """A metric of 0 would mean one that expired in 1970."""
    etcd = ecs.EtcdCluster(installed, namespace, "plain")
    etcd.apply(size=1)
    etcd.wait_pods("its pod", bool, 40)
    assert f'steward_etcd_certificate_not_after_seconds{{namespace="{namespace}"' not in \
        controller.metrics_text()
