# SPDX-License-Identifier: Apache-2.0
"""A new version of steward that makes other pods recreates no member of an EtcdCluster by itself."""

import pytest
from support import etcdcluster as ecs
from support import faults, wait
from support import steward as stw
from support.cluster import condition

pytestmark = [pytest.mark.node, pytest.mark.oldest("annotations of running pods")]

CONSENT, MARK = "steward.dev/update-template", "steward.dev/test"
INPUTS = "etcd.database.coreos.com/template-inputs"


@pytest.fixture(scope="module")
def stage(installed, tmp_path_factory):
    """As in the other tests, but of a build that takes STEWARD_TEMPLATE."""
    stw.uninstall_webhooks(installed)
    with ecs.Stage(installed, faults.binary(), tmp_path_factory.mktemp("stage")) as one:
        yield one


@pytest.fixture
def etcd(stage):
    """Three members, made by the version "1"."""
    restart(stage, "1")
    one = stage.etcd()
    one.apply(size=3, version=ecs.version(), upgrade={"pauseBetweenSeconds": 0})
    one.wait_settled(3)
    yield one
    one.delete()
    one.wait_no_pods()  # the next one has the same name


def restart(stage, version, *args):
    """The version that runs from now on."""
    if stage.steward.running():
        assert stage.steward.stop() == 0, stage.steward.log_tail()
    stage.start(*args, env={"STEWARD_TEMPLATE": version})


def marks(etcd):
    """Which versions made the pods."""
    return _marks(etcd.pods())


def _marks(pods):
    return {pod["metadata"]["annotations"][MARK] for pod in pods.values()}


def wait_outdated(etcd):
    """The condition, which names a pod and the consent."""
    etcd.wait(lambda o: condition(o, "TemplateOutdated").get("status") == "True",
              "the outdated pods to be reported")
    return condition(etcd.get(), "TemplateOutdated")["message"]


def wait_made_by(etcd, version):
    """Until all pods are of this version, and the condition is gone."""
    etcd.wait_pods("new pods", lambda pods: len(pods) == 3 and _marks(pods) == {version}, 150)
    etcd.wait(lambda o: ecs.settled(o, 3) and not condition(o, "TemplateOutdated"),
              "the condition to go", 90)


def test_new_template_waits_for_consent(stage, etcd):
    before = etcd.uids()
    restart(stage, "2")
    message = wait_outdated(etcd)
    assert 'Pod "ec-' in message and f"annotate etcdcluster ec {CONSENT}=" in message
    found = etcd.get()
    assert condition(found, "Ready")["status"] == "True"
    assert condition(found, "Rolling")["status"] == "False"
    # A pod that is made anyway is made by the new version; the others stay.
    lost = sorted(before)[0]
    etcd.delete_pods(lost)
    etcd.wait_settled(3)
    wait.until("the new pod", lambda: marks(etcd) == {"1", "2"}, 60)
    kept = {name: uid for name, uid in etcd.uids().items() if before.get(name) == uid}
    assert set(kept) == set(before) - {lost}
    digits = wait_outdated(etcd).partition(CONSENT + "=")[2].partition(" ")[0]
    etcd.annotate(CONSENT, "0" * len(digits))  # of another version
    restart(stage, "2")
    wait_outdated(etcd)
    assert {name: uid for name, uid in etcd.uids().items() if name in kept} == kept
    etcd.annotate(CONSENT, digits)
    wait_made_by(etcd, "2")
    # That consent is for no later version.
    restart(stage, "3")
    wait_outdated(etcd)
    assert marks(etcd) == {"2"}
    restart(stage, "3", "--template-updates=immediately")
    wait_made_by(etcd, "3")


def test_spec_change_applies_the_new_template(stage, etcd):
    """Also while pods lack the record of an earlier version, which steward adds."""
    before = etcd.uids()
    for name in before:
        stage.cluster.annotate("pod", name, stage.namespace, {INPUTS: None})
    etcd.annotate("steward.dev/reconcile-at", "now")
    etcd.wait_pods("the record of all", lambda pods: all(
        INPUTS in pod["metadata"]["annotations"] for pod in pods.values()), 30)
    restart(stage, "2")
    wait_outdated(etcd)
    etcd.patch(failover={"unhealthySeconds": 61})  # concerns no pod
    etcd.wait(lambda o: o["status"]["observedGeneration"] == o["metadata"]["generation"],
              "the change to be seen")
    assert etcd.uids() == before
    etcd.patch(options={"snapshotCount": 5000})
    wait_made_by(etcd, "2")
