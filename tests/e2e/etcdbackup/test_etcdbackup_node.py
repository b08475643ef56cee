# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups of a real EtcdCluster under write load: each backup contains the writes acknowledged
before it began, in every kind of store."""

import contextlib
import hashlib
import json
import subprocess

import pytest
from support import etcd as processes
from support import etcdbackup as backups
from support import etcdcluster as ecs
from support import gateway, net, s3, wait
from support.cluster import condition

pytestmark = pytest.mark.node

FOLDER = "snapshots"  # on the volume


@pytest.fixture(scope="module")
def etcd(agent_stage):
    """Three members."""
    one = agent_stage.etcd()
    one.apply(size=3, version=ecs.version("3.5"))
    one.wait_settled(3)
    return one


@pytest.fixture
def proxy(bucket):
    """A proxy in front of the store."""
    one = s3.Proxy(bucket)
    yield one
    one.close()


def check_snapshot(data, writer, count, folder):
    """The snapshot contains the first `count` writes: a member restored from it serves them."""
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    (folder / "db").write_bytes(data)
    client, peer = net.free_port(), net.free_port()
    urls = [f"http://127.0.0.1:{port}" for port in (client, peer)]
    subprocess.run([processes.program("3.5", "etcdutl"), "snapshot", "restore", folder / "db",
                    "--data-dir", folder / "data", "--name", "a", "--initial-cluster",
                    f"a={urls[1]}", "--initial-advertise-peer-urls", urls[1]], check=True,
                   capture_output=True)
    with open(folder / "etcd.log", "wb") as log:
        member = subprocess.Popen(
            [processes.program("3.5"), "--name", "a", "--data-dir", folder / "data",
             "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
             "--listen-peer-urls", urls[1]], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        one = gateway.Gateway("127.0.0.1", client)
        found = wait.until("etcd from the snapshot", lambda: one.prefix(writer.prefix), 20)
        missing = [n for n in writer.acknowledged[:count] if f"{writer.prefix}{n:08}" not in found]
        assert not missing, f"{len(missing)} of {count} writes are not in the backup"
    finally:
        member.kill()
        member.wait()


def test_s3_backup_contains_acknowledged_writes(etcd, proxy, tmp_path):
    with etcd.writer() as writer:
        writer.wait_writes(50)
        before = len(writer.acknowledged)
        backups.apply(etcd, "once", **backups.to_s3(proxy, "once.db"))
        found = backups.wait_phase(etcd, "once", "Succeeded")
        writer.wait_writes()
    status = found["status"]
    [artifact] = status["artifacts"]
    assert artifact["verified"] and artifact["uri"] == f"s3://{s3.BUCKET}/once.db"
    assert status["etcdVersion"] == ecs.version("3.5")
    assert condition(found, "Verified")["status"] == "True"
    data = proxy.s3.objects()["once.db"].read_bytes()
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest()
    check_snapshot(data, writer, before, tmp_path)


def test_hanging_members_are_skipped(etcd, proxy):
    """B8: a member hangs during the backup."""
    with contextlib.ExitStack() as down:
        victim = etcd.followers()[0]
        down.enter_context(etcd.paused(victim))
        backups.apply(etcd, "one-hangs", **backups.to_s3(proxy, "one-hangs.db"))
        found = backups.wait_phase(etcd, "one-hangs", "Succeeded", 90)
        assert victim not in found["status"]["sourceEndpoint"]
    etcd.wait_settled(3)


MISBEHAVIOUR = {"down": "ConnectFailed", "denied": "AccessDenied", "full": None, "cut": None,
                "short": None, "flipped": None}


def test_damaged_uploads_are_never_reported_as_backups(etcd, bucket):
    """A damaged upload is never reported as a backup; when the store works again, a backup is made.
    All modes at the same time, each with its own proxy."""
    proxies = {mode: s3.Proxy(bucket) for mode in MISBEHAVIOUR}
    for mode, proxy in proxies.items():
        proxy.mode = mode
        backups.apply(etcd, f"store-{mode}", **backups.to_s3(proxy, f"store-{mode}.db"))
    for mode, reason in MISBEHAVIOUR.items():
        found = backups.wait_phase(etcd, f"store-{mode}", "Failed", 60)
        status = found["status"]
        assert not status.get("succeeded") and condition(found, "Ready")["status"] == "False"
        assert not [a for a in status.get("artifacts", []) if a.get("verified")]
        if reason:
            assert condition(found, "StoreReachable")["reason"] == reason
        proxies[mode].mode = "fine"
    for mode, proxy in proxies.items():
        found = backups.wait_phase(etcd, f"store-{mode}", "Succeeded", 90)
        assert found["status"]["artifacts"][0]["verified"]
        proxy.close()


def test_slow_store_completes_the_backup(etcd, proxy):
    proxy.mode, proxy.pause = "slow", 0.5
    backups.apply(etcd, "store-slow", **backups.to_s3(proxy, "slow.db"))
    backups.wait_phase(etcd, "store-slow", "Succeeded", 120)


@pytest.fixture(scope="module")
def claim(etcd):
    """The name of a volume claim."""
    etcd.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                        "metadata": {"name": "backups", "namespace": etcd.namespace},
                        "spec": {"accessModes": ["ReadWriteOnce"],
                                 "resources": {"requests": {"storage": "1Gi"}}}})
    return "backups"


def test_volume_backup_contains_acknowledged_writes(etcd, claim, tmp_path):
    """The volume is accessible from a pod only: one with steward's image writes the snapshot."""
    with etcd.writer(prefix="v/") as writer:
        writer.wait_writes(50)
        before = len(writer.acknowledged)
        backups.apply(etcd, "volume", storageType="PVC", pvc={"claimName": claim, "path": FOLDER})
        found = backups.wait_phase(etcd, "volume", "Succeeded", 90)
    [artifact] = found["status"]["artifacts"]
    assert artifact["verified"]
    top = etcd.folder(claim)
    [path] = [p for p in top.rglob("*") if p.is_file() and
              hashlib.sha256(p.read_bytes()).hexdigest() == artifact["sha256"]]
    check_snapshot(path.read_bytes(), writer, before, tmp_path)
    wait.until("the agent to be gone", lambda: not [
        p for p in etcd.cluster.list("pods", etcd.namespace) if "backup" in p["metadata"]["name"]],
        60)


PROXY = 'image: "nginx:1.22", command: ["sleep", "3600"]'


@pytest.fixture
def mesh(etcd):
    """Adds a proxy to each agent, as a container and as a native sidecar, as meshes do."""
    name, group = f"mesh-{etcd.namespace}", "admissionregistration.k8s.io"
    etcd.cluster.apply({
        "apiVersion": f"{group}/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": etcd.namespace}},
                "objectSelector": {"matchLabels": {"app.kubernetes.io/component": "agent"}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                   "resources": ["pods"]}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"""[
                JSONPatch{{op: "add", path: "/spec/containers/-",
                           value: Object.spec.containers{{name: "proxy", {PROXY}}}}},
                JSONPatch{{op: "add", path: "/spec/initContainers",
                           value: [Object.spec.initContainers{{name: "sidecar", {PROXY},
                                                              restartPolicy: "Always"}}]}}]"""}}]}})
    etcd.cluster.apply({"apiVersion": f"{group}/v1", "kind": "MutatingAdmissionPolicyBinding",
                        "metadata": {"name": name}, "spec": {"policyName": name}})
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "probe", "namespace": etcd.namespace, "labels": {"app.kubernetes.io/component": "agent"}},
        "spec": {"containers": [{"name": "a", "image": "nginx:1.22"}]}}
    wait.until("the policy to be in force", lambda: "sidecar" in etcd.cluster.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(probe)).stdout, 30)
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        etcd.cluster.delete(kind, name, None)


def test_volume_backup_ends_beside_mesh_proxies(etcd, claim, mesh):
    backups.apply(etcd, "mesh", storageType="PVC", pvc={"claimName": claim, "path": "mesh"})
    found = backups.wait_phase(etcd, "mesh", "Succeeded", 90)
    assert found["status"]["artifacts"][0]["verified"]
    assert not found["status"]["consecutiveFailures"]


def test_cluster_status_shows_the_newest_backup(etcd, proxy):
    """Backups at an interval: BackupReady, and the newest backup in the status of the cluster."""
    backups.apply(etcd, "hourly", backupPolicy={"backupIntervalInSecond": 3600, "maxBackups": 2},
          **backups.to_s3(proxy, "hourly"))
    backups.wait_phase(etcd, "hourly", "Succeeded")
    etcd.wait_condition("BackupReady", "True")
    last = etcd.status()["lastBackup"]
    assert last["name"] == "hourly" and last["verified"] is True
    assert last["revision"] > 0
