# SPDX-License-Identifier: Apache-2.0
"""The owner of the volume of an EtcdRestore's first member: the EtcdRestore until there is an
EtcdCluster, no object from then on.  The pods are not scheduled; the tests write their status."""

import json
import time

import pytest
from support import agentpod, etcdbackup, etcdcluster, faults, wait
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

CLUSTER = f"etcdclusters.{etcdcluster.GROUP}"
KINDS = ("--kinds", "EtcdCluster,EtcdRestore")
SHA = "ab" * 32
SEED = "etcd.database.coreos.com/seed-member"
HOLD = "steward.dev/held-by-a-test"  # a finalizer


class Restore(agentpod.Owner):
    """An EtcdRestore from a volume, and its PersistentVolumeClaims."""

    kind = etcdbackup.RESTORE

    def apply(self, **template):
        return self.create("EtcdRestore", etcdCluster={"name": "orders"},
                           pvc={"claimName": "backups",
                                "path": "db_v000000000007_2026-01-02-03:04:05"},
                           template={"size": 1, "version": "3.5.16", **template})

    def claims(self):
        return self.cluster.list("pvc", self.namespace)

    def wait_claims(self, what, look):
        """Watches the claims until look([claim, ...]) is true."""
        self.cluster.wait_list(what, "pvc", self.namespace, look)

    def wait_no_claims(self):
        """Until all are gone."""
        self.wait_claims("the claims to be gone", lambda claims: not claims)

    def target(self):
        return self.cluster.get(CLUSTER, "orders", self.namespace)

    def end(self, pod, phase=None, before=None, **fault):
        """Ends the pod with a restored snapshot; or without one, if a fault is given.  `before`, `phase`:
        as in Owner.ended()."""
        report = {"ok": not fault, "key": "db", "sizeBytes": 4096, "sha256": SHA,
                  "verified": not fault, **fault}
        self.ended(pod, bool(fault), phase, before, initContainerStatuses=[("fetch", json.dumps(report))],
                   containerStatuses=[] if fault else [("restore", "")])

    def hold(self, claim, held):
        """Adds or removes a finalizer, which keeps the claim after its deletion."""
        self.cluster.patch("pvc", claim["metadata"]["name"], self.namespace,
                           {"metadata": {"finalizers": [HOLD] if held else None}})

    def check_joining(self):
        """There is one cluster, and one claim without an owner."""
        [claim] = self.claims()
        assert self.target()["metadata"]["annotations"][SEED] == claim["metadata"]["name"]
        assert not claim["metadata"].get("ownerReferences")
        assert "deletionTimestamp" not in claim["metadata"]
        assert self.status()["seedMember"] == claim["metadata"]["name"]


FAULT = {"fault": "Store", "reason": "ConnectFailed", "error": "nobody there"}


@pytest.fixture
def restore(installed, namespace):
    return Restore(installed, namespace, "again")


@pytest.fixture
def alone(run_steward):
    return run_steward(f"--agent-image={agentpod.IMAGE}")


@pytest.mark.oldest("claims, garbage collection")
def test_deleted_unfinished_restore_deletes_its_volume(alone, installed, restore):
    restore.apply().wait_pod()
    [claim] = restore.claims()
    [owner] = claim["metadata"]["ownerReferences"]
    assert owner["uid"] == restore.get()["metadata"]["uid"] and not owner.get("controller")
    installed.delete(restore.kind, restore.name, restore.namespace)
    restore.wait_no_pod()
    restore.wait_no_claims()
    assert not restore.target()


def test_restore_waits_for_its_backup(alone, restore):
    """No attempt was made, so none has failed; the backup is looked up again."""
    restore.create("EtcdRestore", etcdCluster={"name": "orders"}, backupRef={"name": "later"},
                   template={"size": 1, "version": "3.5.16"})
    wait.until("the second look", lambda: restore.status().get("retry", {}).get("count", 0) > 1, 60)
    status = restore.status()
    assert (status["phase"], status["reason"]) == ("Pending", "BackupNotFound")
    assert condition(restore.get(), "Ready")["message"] == 'there is no EtcdBackup "later"'
    assert not restore.pod() and not restore.claims()


def test_restored_volume_outlives_the_restore(alone, installed, restore):
    restore.end(restore.apply().wait_pod())
    wait.until("the cluster", restore.target)
    restore.wait("Joining")
    restore.check_joining()
    restore.wait_no_pod()
    uid = restore.claims()[0]["metadata"]["uid"]
    installed.delete(restore.kind, restore.name, restore.namespace)
    wait.stays("the volume", lambda: [
        c["metadata"]["uid"] for c in restore.claims()
        if "deletionTimestamp" not in c["metadata"]] == [uid], 5)


def test_status_describes_the_snapshot(alone, restore):
    """What the pod reported, and the revision from the backup's name; the version is unknown."""
    restore.end(restore.apply().wait_pod())
    found = restore.wait("Joining")
    assert found["status"]["snapshot"] == {"revision": 7, "sha256": SHA, "sizeBytes": 4096}


def args(containers):
    """The arguments of the first container."""
    return containers[0]["args"]


@pytest.mark.parametrize("version, tool, moved_on", [("3.5.10", "etcdutl", True),
                                                     ("3.5.9", "etcdutl", False),
                                                     ("3.4.23", "etcdctl", False)])
def test_restore_command_bumps_revisions(alone, restore, version, tool, moved_on):
    """Revisions are bumped and older ones marked as compacted, if etcd's tool supports it (B5)."""
    pod = restore.apply(version=version).wait_pod()
    [container] = pod["spec"]["containers"]
    assert container["command"] == [tool]
    assert ("--bump-revision=1000000000" in container["args"]) == moved_on
    assert ("--mark-compacted" in container["args"]) == moved_on
    name = restore.claims()[0]["metadata"]["name"]
    assert f"--name={name}" in container["args"]


def test_newest_verified_backup_is_fetched_by_hash(alone, installed, restore):
    """The newest verified backup is fetched, and checked by its hash (B7)."""
    volume = agentpod.Owner(installed, restore.namespace, "nightly")
    volume.create("EtcdBackup", etcdEndpoints=["http://192.0.2.1:2379"], storageType="PVC",
                  backupPolicy={"backupIntervalInSecond": 3600, "suspend": True},
                  pvc={"claimName": "disk", "path": "db"})
    installed.wait_for(etcdbackup.KIND, "nightly", restore.namespace,
                       lambda o: o.get("status", {}).get("phase"))
    etcdbackup.remember(installed, restore.namespace, "nightly", *(
        {"uri": f"pvc://disk/db{number}", "revision": 9 - number, "sizeBytes": 1,
         "sha256": str(number) * 64, "verified": bool(number), "time": "2026-01-02T03:04:05Z"}
        for number in range(3)))
    restore.create("EtcdRestore", etcdCluster={"name": "orders"}, backupRef={"name": "nightly"},
                   template={"size": 1, "version": "3.5.16"})
    said = args(restore.wait_pod()["spec"]["initContainers"])
    assert f"--sha256={'1' * 64}" in said and "--folder=/backup/db1" in said
    assert restore.status()["uri"] == "pvc://disk/db1"


@pytest.mark.parametrize("fault, reason, stalls", [("Content", "HashMismatch", True),
                                                   ("Store", "ConnectFailed", False)])
def test_unusable_snapshot_creates_no_cluster(alone, restore, fault, reason, stalls):
    """Its error is reported, and neither a cluster nor a volume is left (B3, B4)."""
    pod = restore.apply().wait_pod()
    [claim] = restore.claims()
    restore.end(pod, fault=fault, reason=reason, error="it is so")
    found = restore.wait("Failed")
    status = found["status"]
    assert (status["reason"], status["succeeded"]) == (reason, False)
    assert "snapshot" not in status
    assert condition(found, "SourceFetched")["status"] == "False"
    assert bool(condition(found, "Stalled")) == stalls
    assert condition(found, "SnapshotVerified").get("status") == ("False" if stalls else None)
    wait.until("the volume to be gone", lambda: claim["metadata"]["name"] not in [
        c["metadata"]["name"] for c in restore.claims()], 40)
    assert not restore.target()


@pytest.mark.oldest("claims, owners, a whole life")
def test_restore_succeeds_when_the_cluster_is_ready(alone, installed, restore):
    """Not before, although no work is left for the restore (B4)."""
    restore.end(restore.apply().wait_pod())
    wait.until("the cluster", restore.target)

    def joining():
        installed.annotate(restore.kind, restore.name, restore.namespace,
                           {"steward.dev/reconcile-at": f"{time.monotonic()}"})
        return restore.status()["phase"] == "Joining" and not restore.status()["succeeded"]
    wait.until("it to wait for that", joining)
    wait.stays("it waits", joining, 3, every=0.3)
    assert condition(restore.get(), "Ready")["status"] == "False"
    assert condition(restore.get(), "ClusterReady")["status"] == "False"


def test_existing_cluster_is_not_touched(alone, installed, restore):
    """Whether it runs or not; no pod or claim is created either (B3)."""
    installed.apply(etcdcluster.manifest("orders", restore.namespace, size=1, version="3.5.16",
                                         paused=True))
    before = wait.until("the cluster to be seen", lambda: restore.target().get("status") and
                        restore.target())
    restore.apply()
    found = installed.wait_for(restore.kind, restore.name, restore.namespace,
                               lambda o: condition(o, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "TargetExists"
    wait.stays("nothing is made", lambda: not restore.pod() and not restore.claims(), 3)
    assert restore.target()["spec"] == before["spec"]
    assert SEED not in restore.target()["metadata"].get("annotations", {})
    # The watch reports its deletion.
    installed.delete(f"etcdclusters.{etcdcluster.GROUP}", "orders", restore.namespace)
    restore.wait_pod()


def test_refused_cluster_leaves_volume_to_the_restore(alone, installed, restore):
    """Refused by a quota: the EtcdRestore owns the claim again, which is deleted with it."""
    installed.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                     "metadata": {"name": "none", "namespace": restore.namespace},
                     "spec": {"hard": {"count/etcdclusters.etcd.database.coreos.com": "0"}}})
    installed.wait_for("resourcequota", "none", restore.namespace,
                       lambda o: o.get("status", {}).get("hard"))
    restore.end(restore.apply().wait_pod())
    restore.wait("Joining")
    restore.wait_claims("the volume to be given back", lambda claims: any(
        c["metadata"].get("ownerReferences") for c in claims))
    restore.wait_no_pod()
    assert not restore.target()
    installed.delete(restore.kind, restore.name, restore.namespace)
    restore.wait_no_claims()


def test_refused_pod_is_reported_at_once(alone, installed, restore):
    """The volume stays for the next try."""
    refused = agentpod.NoPods(installed, restore.namespace)
    restore.apply()
    told = installed.wait_condition(restore.kind, restore.name, restore.namespace, "Stalled",
                                    "QuotaExceeded")
    assert "could not be created" in told["message"] and "exceeded quota: none" in told["message"]
    installed.wait_event(restore.name, restore.namespace, "QuotaExceeded", "exceeded quota: none")
    [claim] = restore.claims()
    refused.allow()
    installed.annotate(restore.kind, restore.name, restore.namespace,
                       {"steward.dev/reconcile-at": "now"})
    restore.end(restore.wait_pod())
    wait.until("the cluster", restore.target)
    assert restore.target()["metadata"]["annotations"][SEED] == claim["metadata"]["name"]


def test_refused_volume_is_reported_at_once(alone, installed, restore):
    installed.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                     "metadata": {"name": "none", "namespace": restore.namespace},
                     "spec": {"hard": {"persistentvolumeclaims": "0"}}})
    installed.wait_for("resourcequota", "none", restore.namespace,
                       lambda o: o.get("status", {}).get("hard"))
    restore.apply()
    told = installed.wait_condition(restore.kind, restore.name, restore.namespace, "Stalled",
                                    "QuotaExceeded")
    assert "PersistentVolumeClaim" in told["message"]
    assert not restore.pod()


def test_pod_that_does_not_start_is_reported_at_once(alone, installed, restore):
    restore.apply()
    told = installed.wait_condition(restore.kind, restore.name, restore.namespace, "Ready",
                                    "Unschedulable")
    assert told["status"] == "False" and "no nodes available" in told["message"]
    installed.wait_event(restore.name, restore.namespace, "Unschedulable", "no nodes available")


@pytest.mark.parametrize("native", [False, True])
def test_sidecar_does_not_change_the_result(alone, restore, native):
    """The proxy of a mesh runs on, or a container of its ends first."""
    proxy = {"name": "mesh-proxy", "image": "proxy", "imageID": "", "ready": True, "restartCount": 0}
    runs = {**proxy, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}
    done = {**proxy, "name": "mesh-init", "state": {"terminated": {"exitCode": 0, "message": "no"}}}
    pod = restore.apply().wait_pod()
    restore.end(pod, phase="Running", before={
        "initContainerStatuses": [done, runs] if native else [done],
        "containerStatuses": [] if native else [runs]})
    wait.until("the cluster", restore.target)
    restore.check_joining()
    restore.wait_no_pod()


def test_pod_follows_the_template(alone, restore):
    """It decides where the volume is, so it must be scheduled as the member will be."""
    place = {"nodeSelector": {"disk": "fast"}, "priorityClassName": "system-node-critical",
             "tolerations": [{"key": "etcd", "operator": "Exists"}],
             "topologySpreadConstraints": [
                 {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"team": "a"}}}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                 "nodeSelectorTerms": [{"matchExpressions": [
                     {"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
             "imagePullSecrets": [{"name": "registry"}]}
    pod = restore.apply(pod={**place, "labels": {"team": "a"}, "annotations": {"mesh/inject": "false"},
                             "resources": {"limits": {"memory": "1Gi"}}}).wait_pod()
    for name, value in place.items():
        found = pod["spec"][name]
        assert (found if name != "tolerations" else found[:1]) == value, name
    assert pod["metadata"]["annotations"]["mesh/inject"] == "false"
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}


@pytest.mark.oldest("finalizers of claims")
@pytest.mark.parametrize("lingers", [False, True])
def test_deleted_volume_is_restored_again(alone, installed, restore, lingers):
    """No cluster is created with a volume that is missing or being deleted.  The next attempt comes
    after 15 s as usual."""
    pod = restore.apply().wait_pod()
    [claim] = restore.claims()
    restore.hold(claim, True)
    installed.delete("pvc", claim["metadata"]["name"], restore.namespace, wait_gone=False)
    if not lingers:
        restore.hold(claim, False)
        restore.wait_no_claims()
    restore.end(pod)
    found = restore.wait("Failed")
    assert found["status"]["reason"] == "VolumeLost" and "snapshot" not in found["status"]
    assert condition(found, "SourceFetched")["status"] == "False" and not restore.target()
    other = wait.until("another volume", lambda: next(
        (c for c in restore.claims() if c["metadata"]["name"] != claim["metadata"]["name"]), None),
        30)
    if lingers:
        restore.hold(claim, False)
    restore.end(restore.wait_pod(besides=pod["metadata"]["uid"]))
    wait.until("the cluster", restore.target)
    assert restore.target()["metadata"]["annotations"][SEED] == other["metadata"]["name"]


@pytest.mark.parametrize("fails", [False, True])
def test_kills_after_each_write_create_one_cluster(run_steward, restore, tmp_path, fails):
    """During a whole restore, or one whose first attempt fails: one cluster, with its volume."""
    log = tmp_path / "faults.log"
    deaths, ended = [], []
    restore.apply()

    def died_or_done(one):
        pod = restore.pod()
        if pod and pod["metadata"]["uid"] not in ended:
            restore.end(pod, **(FAULT if fails and not ended else {}))
            ended.append(pod["metadata"]["uid"])
        return not one.running() or (restore.target() and not restore.pod()
                                     and restore.status().get("phase") == "Joining")

    def calls_to_live():
        """The number of the call that kills it: 1, or more after the same death in a row, as some
        calls are simply repeated."""
        again = [name == deaths[-1] for name in reversed(deaths)] + [False]
        return max(1, again.index(False))

    def one_life():
        log.write_text("")
        one = run_steward(*KINDS, f"--agent-image={agentpod.IMAGE}", ready=False, binary=faults.binary(),
                          env={"STEWARD_FAULT_AT": str(calls_to_live()),
                               "STEWARD_FAULT_LOG": str(log)})
        try:
            wait.until("its end", lambda: died_or_done(one), 60)
            return not one.running()
        finally:
            one.kill()
            deaths.extend(log.read_text().split()[-1:])
    while one_life() or not restore.target():
        assert len(deaths) < 30, deaths
    print(f"restore: killed {len(deaths)} times: {' '.join(deaths)}")
    assert {"status", "claim", "agent", "delete", "cluster"} <= set(deaths)
    assert len(ended) == 1 + fails
    restore.check_joining()
    run_steward(f"--agent-image={agentpod.IMAGE}")
    restore.wait("Joining")
    assert restore.status()["succeeded"] is False
    restore.check_joining()
