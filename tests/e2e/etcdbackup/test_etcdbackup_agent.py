# SPDX-License-Identifier: Apache-2.0
"""An EtcdBackup onto a volume when its pod ends, is deleted, or lingers: each backup counts once.
The pods are not scheduled; the tests write their status."""

import base64
import json
import time

import pytest
from support import agentpod, dbserver, etcdbackup, faults, s3, wait
from support.app import set_status
from support.cluster import condition

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

HOLD = "steward.dev/held-by-a-test"  # a finalizer


def give_secret(cluster, namespace, name, **values):
    """A Secret with these texts."""
    cluster.apply({"apiVersion": "v1", "kind": "Secret",
                   "metadata": {"name": name, "namespace": namespace},
                   "data": {k: base64.b64encode(v.encode()).decode() for k, v in values.items()}})


class Volume(agentpod.Owner):
    """An EtcdBackup onto a PersistentVolumeClaim."""

    kind = etcdbackup.KIND

    def apply(self, pod=None, **policy):
        return self.create("EtcdBackup", etcdEndpoints=["http://192.0.2.1:2379"], storageType="PVC",
                           backupPolicy=policy, pvc={"claimName": "disk", "path": "deep/db"},
                           **({"pod": pod} if pod else {}))

    def patch(self, **spec):
        """Changes some fields of the spec."""
        self.cluster.patch(self.kind, self.name, self.namespace, {"spec": spec})

    def end(self, pod, revision=7, phase=None, before=None, **more):
        """Ends the pod with a backup; or without one, if a fault is given.  `before`: lists of container
        statuses, each before its own one; `phase`: of the pod."""
        failed = "fault" in more
        report = {"ok": not failed, "key": f"db_v{revision:012}_2026-01-02-03:04:05",
                  "revision": revision, "sizeBytes": 4096, "sha256": "ab" * 32,
                  "etcdVersion": "3.5.16", "endpoint": "http://192.0.2.1:2379",
                  "time": int(time.time()), "verified": not failed, **more}
        self.ended(pod, failed, phase, before, containerStatuses=[("snapshot", json.dumps(report))])

    def ready(self):
        """Its condition Ready."""
        return condition(self.get(), "Ready")

    def hold(self, pod, held=True):
        """A finalizer keeps the pod after its deletion."""
        self.cluster.patch("pod", pod["metadata"]["name"], self.namespace,
                           {"metadata": {"finalizers": [HOLD] if held else None}})

    def poke(self):
        """Triggers a reconcile."""
        self.cluster.annotate(self.kind, self.name, self.namespace,
                              {"steward.dev/reconcile-at": f"{time.monotonic()}"})


@pytest.fixture
def volume(installed, namespace):
    return Volume(installed, namespace, "disk")


@pytest.fixture
def steward_(run_steward):
    return run_steward(f"--agent-image={agentpod.IMAGE}")


def test_lingering_successful_pod_counts_once(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.wait("Running")
    volume.hold(pod)
    volume.end(pod)
    done = volume.wait("Succeeded")["status"]
    assert [a["revision"] for a in done["artifacts"]] == [7]
    wait.until("it to be deleted", lambda: "deletionTimestamp" in volume.pod()["metadata"])

    def same():
        volume.poke()
        return volume.status() == done
    wait.stays("what was taken in", same, 2, every=0.2)
    volume.hold(pod, held=False)
    volume.wait_no_pod()
    wait.stays("no other backup", lambda: not volume.pod() and volume.status() == done, 2)
    assert steward_.metric("steward_etcd_backups_total", result="succeeded") == 1


def test_failed_pod_counts_once(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.hold(pod)
    volume.end(pod, fault="Store", reason="StoreFull", error="no space")
    failed = volume.wait("Failed")["status"]
    assert failed["consecutiveFailures"] == 1 and failed["Reason"] == "StoreFull"
    assert condition(volume.get(), "StoreReachable")["reason"] == "StoreFull"

    def same():
        volume.poke()
        return volume.status() == failed
    wait.stays("one failure", same, 2, every=0.2)
    volume.hold(pod, held=False)
    volume.wait_no_pod()


def test_deleted_pod_is_recreated(steward_, volume):
    pod = volume.apply().wait_pod()
    volume.cluster.delete("pod", pod["metadata"]["name"], volume.namespace, wait_gone=False,
                          grace_seconds=0)
    other = volume.wait_pod(besides=pod["metadata"]["uid"])
    volume.end(other, revision=8)
    assert [a["revision"] for a in volume.wait("Succeeded")["status"]["artifacts"]] == [8]


def test_lingering_pod_does_not_count_for_next_instant(run_steward, volume, clock):
    """An old result does not count for the instant that has become due since."""
    run_steward(f"--agent-image={agentpod.IMAGE}", clock=clock)
    pod = volume.apply(backupIntervalInSecond=60).wait_pod()
    volume.hold(pod)
    volume.end(pod)
    done = volume.wait("Succeeded")["status"]
    clock.set(clock.ahead + 61)
    wait.stays("the old one", lambda: volume.poke() or volume.status()["artifacts"] ==
               done["artifacts"], 3, every=0.3)
    volume.hold(pod, held=False)
    other = volume.wait_pod(besides=pod["metadata"]["uid"])
    volume.end(other, revision=9)
    found = volume.wait("Succeeded", lambda s: len(s["artifacts"]) == 2)["status"]
    assert [a["revision"] for a in found["artifacts"]] == [9, 7]
    assert found["lastScheduleTime"] > done["lastScheduleTime"]


# --- pods that are refused, or do not start


@pytest.mark.oldest("what a refusal says")
def test_refused_pod_is_reported_at_once(steward_, installed, namespace, volume):
    """With the server's text, and without a write each time that it is tried again."""
    term = {"matchExpressions": [{"key": "disk", "operator": "Sometimes"}]}
    volume.apply(backupIntervalInSecond=3600, pod={"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}})
    told = installed.wait_condition(volume.kind, volume.name, namespace, "Stalled", "InvalidSpec")
    assert "spec.pod.affinity.nodeAffinity.required" in told["message"]
    refused = agentpod.NoPods(installed, namespace)
    volume.apply(backupIntervalInSecond=3600)
    for about in ("Ready", "Stalled"):
        told = installed.wait_condition(volume.kind, volume.name, namespace, about, "QuotaExceeded")
        assert "could not be created" in told["message"] and "exceeded quota: none" in told["message"]
    installed.wait_event(volume.name, namespace, "QuotaExceeded", "exceeded quota: none")
    status = volume.status()
    volume.poke()
    wait.stays("one report", lambda: volume.status() == status, 2, every=0.2)
    refused.allow()
    volume.poke()
    volume.end(volume.wait_pod())
    volume.wait("Succeeded")
    assert volume.ready()["status"] == "True"


def test_pod_refused_by_a_policy_is_reported_at_once(steward_, installed, namespace, volume):
    installed.apply({"apiVersion": "v1", "kind": "LimitRange",
                     "metadata": {"name": "small", "namespace": namespace},
                     "spec": {"limits": [{"type": "Container", "max": {"memory": "100Mi"}}]}})
    volume.apply()
    told = installed.wait_condition(volume.kind, volume.name, namespace, "Stalled", "Forbidden")
    assert "maximum memory usage per Container is 100Mi" in told["message"]
    installed.wait_event(volume.name, namespace, "Forbidden", "maximum memory usage")
    volume.patch(pod={"resources": {"limits": {"memory": "100Mi"}}})
    assert volume.wait_pod()["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "100Mi"}}


def waiting(name, reason, message):
    """The status of a container that does not start."""
    return {"name": name, "image": agentpod.IMAGE, "imageID": "", "ready": False, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}}}


@pytest.mark.parametrize("reason, text, status", [
    ("Unschedulable", "no nodes available", {}),  # by the scheduler
    ("ImagePullBackOff", "not found", {"containerStatuses": [
        waiting("snapshot", "ErrImagePull", "steward/agent:none: not found")]}),
    ("CrashLoopBackOff", 'container "mesh-init"', {"initContainerStatuses": [
        waiting("mesh-init", "CrashLoopBackOff", "back-off 10s restarting")]}),
    ("OOMKilled", 'container "mesh-init"', {"initContainerStatuses": [
        {**waiting("mesh-init", "CrashLoopBackOff", "back-off 10s restarting"),
         "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
    ("SecretNotFound", 'secret "proxy" not found', {"initContainerStatuses": [
        waiting("mesh-init", "CreateContainerConfigError", 'secret "proxy" not found')]}),
])
def test_pod_that_does_not_start_is_reported_at_once(steward_, installed, volume, reason, text, status):
    set_status(installed, volume.apply().wait_pod(), phase="Pending", **status)
    told = installed.wait_condition(volume.kind, volume.name, volume.namespace, "Ready", reason)
    assert told["status"] == "False" and text in told["message"]
    assert condition(volume.get(), "Reconciling") and not condition(volume.get(), "Stalled")
    installed.wait_event(volume.name, volume.namespace, reason, text)


# --- pods that a mesh changes

PROXY = {"name": "mesh-proxy", "image": "proxy", "imageID": "", "ready": True, "restartCount": 0}
RUNS = {**PROXY, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}


def ended(code, message=""):
    """The status of a container of a mesh that has ended."""
    return {**PROXY, "state": {"terminated": {"exitCode": code, "message": message}}}


@pytest.mark.oldest("the status of containers")
@pytest.mark.parametrize("phase, more", [
    ("Running", {"containerStatuses": [RUNS]}),  # as a container
    ("Running", {"initContainerStatuses": [RUNS]}),  # as a native sidecar
    ("Succeeded", {"initContainerStatuses": [ended(0, "no report")]}),
    ("Failed", {"containerStatuses": [ended(137, "no report")]}),
], ids=["container", "sidecar", "ended-sidecar", "killed-container"])
@pytest.mark.parametrize("fails", [False, True])
def test_sidecar_does_not_change_the_result(steward_, installed, volume, phase, more, fails):
    """A proxy that runs on, or ends first, does not change the result."""
    pod = volume.apply().wait_pod()
    volume.hold(pod)
    fault = {"fault": "Store", "reason": "StoreFull", "error": "no space"} if fails else {}
    volume.end(pod, phase=phase, before=more, **fault)
    status = volume.wait("Failed" if fails else "Succeeded")["status"]
    assert status.get("Reason") == ("StoreFull" if fails else None)
    wait.until("it to be deleted", lambda: "deletionTimestamp" in volume.pod()["metadata"])
    volume.hold(pod, held=False)


def test_exited_proxy_does_not_end_the_backup(steward_, installed, volume):
    pod = volume.apply().wait_pod()
    running = {**RUNS, "name": "snapshot"}
    set_status(installed, pod, phase="Running", initContainerStatuses=[ended(0, "no report")],
               containerStatuses=[ended(1, "no report"), running])
    wait.stays("it to run", lambda: volume.poke() or volume.status()["phase"] == "Running", 2, every=0.3)
    volume.end(pod)
    volume.wait("Succeeded")


# --- what the spec says of pods

PLACE = {"nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "etcd", "operator": "Exists"}],
         "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
             "nodeSelectorTerms": [{"matchExpressions": [
                 {"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
         "priorityClassName": "system-cluster-critical", "imagePullSecrets": [{"name": "registry"}]}


def test_pod_matches_the_spec(steward_, volume):
    pod = volume.apply(pod={**PLACE, "labels": {"team": "a"}, "annotations": {"mesh/inject": "false"},
                            "resources": {"requests": {"memory": "1Gi"}}}).wait_pod()
    for name, value in PLACE.items():
        found = pod["spec"][name]
        assert (found if name != "tolerations" else found[:1]) == value, name
    assert pod["metadata"]["annotations"]["mesh/inject"] == "false"
    assert pod["metadata"]["labels"].items() >= {"team": "a",
                                                 "app.kubernetes.io/component": "agent"}.items()
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


# --- what a later backup needs


def test_missing_secret_is_reported_before_the_backup(steward_, installed, namespace, volume, tmp_path):
    """Of a schedule whose next backup is far away."""
    volume.create("EtcdBackup", etcdEndpoints=["https://192.0.2.1:2379"], storageType="S3",
                  clientTLSSecret="tls", authSecret="user", backupPolicy={"schedule": "0 0 1 1 *"},
                  s3={"path": "backups/db", "awsSecret": "aws"})

    def gives(about, reason, text):
        told = installed.wait_condition(volume.kind, volume.name, namespace, "Ready", reason)
        told = installed.wait_for(volume.kind, volume.name, namespace,
                                  lambda o: text in condition(o, "Ready").get("message", ""))
        assert condition(told, "Ready")["status"] == "False"
        assert condition(told, about)["reason"] == reason
    gives("SourceReachable", "SecretMissing", 'no Secret "tls"')
    installed.wait_event(volume.name, namespace, "SecretMissing", 'no Secret "tls"')
    give_secret(installed, namespace, "tls", **{"etcd-client.crt": "x", "tls.key": "x"})
    gives("SourceReachable", "SecretInvalid", 'Secret "tls" has etcd-client.crt and tls.key, but lacks '
          "etcd-client.key and etcd-client-ca.crt, or tls.crt and ca.crt")
    ca = dbserver.make_ca(tmp_path).read_text()
    tls = {"etcd-client.crt": ca, "etcd-client.key": "x", "etcd-client-ca.crt": ca}
    give_secret(installed, namespace, "tls", **{**tls, "etcd-client-ca.crt": "x\0y"})
    gives("SourceReachable", "SecretInvalid", 'etcd-client-ca.crt of Secret "tls" has a NUL byte')
    installed.patch("secret", "tls", namespace, {"data": {
        "etcd-client-ca.crt": base64.b64encode(b"x" * (256 * 1024 + 1)).decode()}})
    gives("SourceReachable", "SecretInvalid",
          'etcd-client-ca.crt of Secret "tls" has 262145 bytes; it may have at most 262144')
    give_secret(installed, namespace, "tls", **{**tls, "etcd-client-ca.crt": "x"})
    gives("SourceReachable", "SecretInvalid",
          'etcd-client-ca.crt of Secret "tls": it holds no PEM certificate')
    give_secret(installed, namespace, "tls", **tls)
    gives("SourceReachable", "SecretMissing", 'no Secret "user"')
    give_secret(installed, namespace, "user", username="root")
    gives("SourceReachable", "SecretInvalid", "needs username and password")
    give_secret(installed, namespace, "user", username="root", password="x")
    gives("StoreReachable", "SecretMissing", 'no Secret "aws"')
    give_secret(installed, namespace, "aws", credentials="[default]")
    gives("StoreReachable", "SecretInvalid", "aws_access_key_id")
    give_secret(installed, namespace, "aws", **{"credentials": s3.CREDENTIALS, "ca.crt": "x\0y"})
    gives("StoreReachable", "SecretInvalid", "ca.crt has a NUL byte")
    give_secret(installed, namespace, "aws", **{"credentials": s3.CREDENTIALS, "ca.crt": "x"})
    gives("StoreReachable", "SecretInvalid", "ca.crt: it holds no PEM certificate")
    give_secret(installed, namespace, "aws", credentials=s3.CREDENTIALS)
    installed.wait_condition(volume.kind, volume.name, namespace, "Ready", "Scheduled")
    assert not condition(volume.get(), "StoreReachable") and not condition(volume.get(), "SourceReachable")
    installed.delete("secret", "aws", namespace)
    gives("StoreReachable", "SecretMissing", 'no Secret "aws"')


def test_pod_is_created_after_its_secret(steward_, installed, namespace, volume, tmp_path):
    """It would hang until its deadline otherwise.  The keys of cert-manager become the files of the others."""
    volume.create("EtcdBackup", etcdEndpoints=["https://192.0.2.1:2379"], storageType="PVC",
                  clientTLSSecret="tls", pvc={"claimName": "disk", "path": "db"})
    volume.wait("Failed", lambda s: s["Reason"] == "SecretMissing")
    assert not volume.pod()
    ca = dbserver.make_ca(tmp_path).read_text()
    give_secret(installed, namespace, "tls", **{"tls.crt": ca, "tls.key": "x", "ca.crt": ca})
    [found] = [v["secret"] for v in volume.wait_pod()["spec"]["volumes"] if v.get("secret")]
    assert {i["key"]: i["path"] for i in found["items"]} == {
        "tls.crt": "etcd-client.crt", "tls.key": "etcd-client.key", "ca.crt": "etcd-client-ca.crt"}


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed"])
def test_kills_after_each_write_count_one_result(run_steward, volume, tmp_path, outcome):
    """During a whole backup: no result is counted twice, no pod is left."""
    log = tmp_path / "faults.log"
    fault = {} if outcome == "Succeeded" else {"fault": "Source", "reason": "NoHealthyEndpoint",
                                               "error": "nobody there"}
    deaths, ended = [], []
    volume.apply()

    def died_or_done(one):
        pod = volume.pod()
        if pod and not ended:
            ended.append(volume.end(pod, **fault))
        return not one.running() or volume.status().get("phase") == outcome and not volume.pod()

    def one_life():
        log.write_text("")
        one = run_steward(f"--agent-image={agentpod.IMAGE}", ready=False, binary=faults.binary(),
                          env={"STEWARD_FAULT_AT": "1", "STEWARD_FAULT_LOG": str(log)})
        try:
            wait.until("its end", lambda: died_or_done(one))
            # The condition may have become true just before the death: wait for that.
            if not wait.happens(lambda: not one.running(), 2):
                return False
        finally:
            one.kill()
        deaths.append(log.read_text().split()[1])
        return True
    while one_life():
        assert len(deaths) < 20, deaths
    print(f"{outcome}: killed {len(deaths)} times: {' '.join(deaths)}")
    assert {"status", "agent", "delete"} <= set(deaths)
    status = volume.status()
    if outcome == "Succeeded":
        assert [a["revision"] for a in status["artifacts"]] == [7]
    else:
        assert status["consecutiveFailures"] == 1
