# SPDX-License-Identifier: Apache-2.0
"""Backups of real EtcdClusters to S3 and volumes, and restores from them, with real pods."""

import base64

import pytest

from support import agent, etcd, etcdcluster, s3, wait
from support import steward as stw
from support.cluster import as_yaml, condition

pytestmark = pytest.mark.node

BACKUP, RESTORE, CLUSTER = (f"{plural}.etcd.database.coreos.com"
                            for plural in ("etcdbackups", "etcdrestores", "etcdclusters"))


@pytest.fixture(scope="module")
def stage(installed, steward_binary, tmp_path_factory):
    if etcd.missing("3.4", "3.5") or not s3.program():
        pytest.skip("etcd or s3rver is not here: run 'scripts/bootstrap'")
    stw.uninstall_webhooks(installed)
    image = agent.load(installed, steward_binary, tmp_path_factory.mktemp("image"))
    with etcdcluster.Stage(installed, steward_binary, tmp_path_factory.mktemp("stage"),
                           f"--agent-image={image}") as one:
        yield one


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    server = s3.S3(tmp_path_factory.mktemp("s3")).start()
    yield server
    server.stop()


@pytest.fixture
def proxy(installed, store, source):
    proxy = s3.Proxy(store, address=agent.gateway(installed, source.namespace))
    yield proxy
    proxy.close()


def filled(stage, line):
    """A cluster of one member with some keys in it."""
    one = stage.etcd(f"src{line.replace('.', '')}")
    one.apply(size=1, version=etcdcluster.version(line))
    one.wait_settled()
    client = one.served()
    for i in range(30):
        client.put(f"k{i}", str(i))
    return one


@pytest.fixture(scope="module", params=["3.4", "3.5"])
def source(request, stage):
    one = filled(stage, request.param)
    yield one
    one.delete()


class Scene:
    """The objects that a test of one cluster's backup and restore needs."""

    def __init__(self, stage, source, proxy):
        self.cluster, self.namespace = stage.cluster, stage.namespace
        self.stage, self.source, self.proxy = stage, source, proxy
        self.s3 = {"awsSecret": "aws", "endpoint": proxy.url, "forcePathStyle": True}
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret",
                            "metadata": {"name": "aws", "namespace": self.namespace},
                            "data": {"credentials":
                                     base64.b64encode(s3.CREDENTIALS.encode()).decode()}})

    def create(self, kind, name, **spec):
        self.cluster.apply({"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": kind,
                            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec})

    def wait(self, kind, name, check, seconds=90):
        try:
            return self.cluster.wait_for(kind, name, self.namespace,
                                         lambda o: check(o.get("status", {})), seconds)
        except wait.TimedOut as error:
            pods = self.cluster.kubectl("get", "pods", "-n", self.namespace, "-o", "wide").stdout
            raise wait.TimedOut(f"{error}\n{as_yaml(self.cluster.get(kind, name, self.namespace))}"
                                 f"\n{pods}\n{self.stage.steward.log_tail()}") from error

    def backup(self, name, **spec):
        self.create("EtcdBackup", name, clusterRef={"name": self.source.name}, **spec)
        found = self.wait(BACKUP, name, lambda s: s.get("phase") == "Succeeded")
        return found["status"]["artifacts"][0]

    def to_s3(self, name):
        return self.backup(name, storageType="S3",
                           s3={"path": f"{s3.BUCKET}/{self.namespace}/{name}", **self.s3})

    def template(self, line="3.5", **more):
        return {"size": 1, "version": etcdcluster.version(line), **more}

    def restored(self, name, count=30):
        """Waits for the restore and for its cluster; checks every key."""
        found = self.wait(RESTORE, name, lambda s: s.get("phase") == "Succeeded", 120)
        one = self.stage.etcd(found["spec"]["etcdCluster"]["name"])
        one.wait_settled()
        client = one.served()
        for i in range(count):
            assert client.get(f"k{i}") == str(i)
        assert found["status"]["newClusterID"] == one.status()["clusterID"]
        assert found["status"]["newClusterID"] != self.source.status()["clusterID"]
        return found, one

    def pods(self, app):
        return self.cluster.list("pods", self.namespace, f"app.kubernetes.io/name={app}")

    def wait_no_pods(self, app):
        """Until there is none of them."""
        self.cluster.wait_list(f"pods of {app} to be gone", "pods", self.namespace, lambda pods: not pods, 30,
                               f"app.kubernetes.io/name={app}")


@pytest.fixture
def scene(stage, source, proxy):
    return Scene(stage, source, proxy)


def test_restore_from_s3(scene, source):
    name = f"a-{source.name}"
    artifact = scene.to_s3(name)
    scene.create("EtcdRestore", name, etcdCluster={"name": f"n-{source.name}"},
                 backupRef={"name": name}, template=scene.template())
    found, one = scene.restored(name)
    status = found["status"]
    assert status["uri"] == artifact["uri"]
    assert status["snapshot"]["revision"] == artifact["revision"]
    assert status["snapshot"]["sha256"] == artifact["sha256"]
    for kind in ("Ready", "SourceFetched", "SnapshotVerified", "SeedReady", "ClusterReady"):
        assert condition(found, kind)["status"] == "True", kind
    scene.wait_no_pods("etcdrestore")
    assert one.served().put("more", "1") > artifact["revision"] + 1_000_000_000  # bumped
    one.apply(size=3, version=etcdcluster.version("3.5"))
    one.wait_settled(3)
    one.delete()


def test_restore_from_a_volume(scene, source):
    name, claim = f"v-{source.name}", f"disk-{source.name}"
    scene.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                         "metadata": {"name": claim, "namespace": scene.namespace},
                         "spec": {"accessModes": ["ReadWriteOnce"],
                                  "resources": {"requests": {"storage": "1Gi"}}}})
    artifact = scene.backup(name, storageType="PVC", pvc={"claimName": claim, "path": "deep/db"})
    assert artifact["uri"] == f"pvc://{claim}/deep/db" and artifact["verified"]
    scene.wait_no_pods("etcdbackup")
    scene.create("EtcdRestore", name, etcdCluster={"name": f"m-{source.name}"},
                 pvc={"claimName": claim, "path": "deep/db"}, template=scene.template())
    _, one = scene.restored(name)
    one.delete()


def test_corrupt_snapshot_stalls_the_restore(scene, source, proxy, store):
    name = f"bad-{source.name}"
    artifact = scene.to_s3(name)
    path = store.objects()[artifact["uri"].split("/", 3)[3]]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    scene.create("EtcdRestore", name, etcdCluster={"name": "never"},
                 backupStorageType="S3", template=scene.template(),
                 s3={"path": artifact["uri"][5:], **scene.s3})
    found = scene.wait(RESTORE, name, lambda s: condition({"status": s}, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "HashMismatch"
    assert condition(found, "SnapshotVerified")["status"] == "False"
    assert found["status"]["succeeded"] is False and not found["status"].get("snapshot")
    assert not scene.cluster.get(CLUSTER, "never", scene.namespace)
    scene.wait_no_pods("etcdrestore")
    scene.cluster.wait_list("no claim to be left", "pvc", scene.namespace, lambda claims: not [
        c for c in claims if c["metadata"]["name"].startswith("never-")], 30)


def test_restore_waits_for_an_unavailable_store(scene, source, proxy):
    name = f"down-{source.name}"
    artifact = scene.to_s3(name)
    proxy.mode = "down"
    scene.create("EtcdRestore", name, etcdCluster={"name": f"late-{source.name}"},
                 backupStorageType="S3", template=scene.template(),
                 s3={"path": artifact["uri"][5:], **scene.s3})
    found = scene.wait(RESTORE, name, lambda s: s.get("phase") == "Failed")
    assert found["status"]["reason"] == "ConnectFailed" and not found["status"]["succeeded"]
    assert condition(found, "SourceFetched")["status"] == "False"
    proxy.mode = "fine"
    _, one = scene.restored(name)
    one.delete()


def test_existing_cluster_is_not_touched(scene, source):
    name = f"exists-{source.name}"
    before = source.get()
    scene.create("EtcdRestore", name, etcdCluster={"name": source.name},
                 backupRef={"name": "nobody"}, template=scene.template())
    found = scene.wait(RESTORE, name, lambda s: condition({"status": s}, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "TargetExists"
    assert source.get()["spec"] == before["spec"] and not scene.pods("etcdrestore")


@pytest.mark.parametrize("line, into", [("3.4", "3.7"), ("3.5", "3.6"), ("3.6", "3.7")])
def test_restore_into_a_later_minor(stage, store, line, into):
    """A restore into a later minor version; the result can be scaled out."""
    one = filled(stage, line)
    proxy = s3.Proxy(store, address=agent.gateway(stage.cluster, stage.namespace))
    try:
        scene, name = Scene(stage, one, proxy), f"into-{line}-{into}".replace(".", "")
        artifact = scene.to_s3(name)
        assert artifact["etcdVersion"] == etcdcluster.version(line)
        scene.create("EtcdRestore", name, etcdCluster={"name": name}, backupRef={"name": name},
                     template=scene.template(into))
        _found, new = scene.restored(name)
        new.apply(size=3, version=etcdcluster.version(into))
        new.wait_settled(3)
        assert {new.at(n).status()["version"] for n in new.members()} == {etcdcluster.version(into)}
        assert new.served().put("more", "1") > artifact["revision"] + 1_000_000_000
        new.delete()
    finally:
        proxy.close()
        one.delete()


def test_restore_into_an_older_minor_is_refused(scene, source):
    if not source.name.endswith("35"):
        pytest.skip("there is nothing older than 3.4 here")
    name = f"old-{source.name}"
    scene.to_s3(name)
    scene.create("EtcdRestore", name, etcdCluster={"name": "older"}, backupRef={"name": name},
                 template=scene.template("3.4"))
    found = scene.wait(RESTORE, name, lambda s: condition({"status": s}, "Stalled"))
    assert condition(found, "Stalled")["reason"] == "VersionTooOld"
    assert not scene.cluster.get(CLUSTER, "older", scene.namespace)


def test_cluster_reports_fresh_backups(scene, source):
    name = f"tell-{source.name}"
    scene.create("EtcdBackup", name, clusterRef={"name": source.name}, storageType="S3",
                 backupPolicy={"backupIntervalInSecond": 3600},
                 s3={"path": f"{s3.BUCKET}/{scene.namespace}/{name}", **scene.s3})
    source.wait_condition("BackupReady", "True", "BackupFresh")
    assert source.status()["lastBackup"]["verified"] is True
    scene.cluster.delete(BACKUP, name, scene.namespace)
