# SPDX-License-Identifier: Apache-2.0
"""An upgrade from the previous commit, back, and again, with objects of all kinds: none is changed by
it.

STEWARD_UPGRADE_FROM names another commit, and STEWARD_UPGRADE_IMAGE an existing archive of its
image, tagged steward:previous.
"""

import contextlib
import re

import pytest

from support import app, databaseuser, eru, etcd, etcdbackup, etcdcluster, images, myweb, paths, wait
from support import replicas as replica
from support import steward as stw
from support.cluster import condition, is_ready
from support.stream import Stream

pytestmark = pytest.mark.node

# The image of nginx runs as root, and listens on a port below 1024.
ROOT = {"runAsNonRoot": False, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}
KINDS = (myweb.KIND, app.KIND, eru.KIND, databaseuser.KIND, etcdcluster.KIND, etcdbackup.KIND,
         etcdbackup.RESTORE)
CHILDREN = ("deployment", "service", "configmap", "persistentvolumeclaim", "poddisruptionbudget")


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """(a work tree of the previous commit, its image)"""
    if images.missing() or etcd.missing("3.5"):
        pytest.skip(images.missing() or etcd.missing("3.5"))
    with images.before(tmp_path_factory.mktemp("before")) as (tree, archive):
        manager = tree / "config" / "manager"
        text = (manager / "kustomization.yaml").read_text("utf-8")
        text = re.sub(r"newTag: .*", "newTag: " + images.OLD_TAG.partition(":")[2], text)
        (manager / "kustomization.yaml").write_text(text, "utf-8")
        yield tree, archive


@contextlib.contextmanager
def installed_from(cluster, tree, archive):
    """The previous steward in pods; removed afterwards."""
    cluster.component("image", str(archive))
    cluster.kubectl("apply", "-k", str(tree / "config" / "default"))
    try:
        two = replica.InPods(cluster).open()
        stw.wait_webhook(cluster)
        yield two
    finally:
        replica.remove(cluster)


def objects(namespace):
    """One object of each kind, and what they need, in groups to be applied in order."""
    version = etcdcluster.version("3.5")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
             "metadata": {"name": "backups", "namespace": namespace},
             "spec": {"accessModes": ["ReadWriteOnce"],
                      "resources": {"requests": {"storage": "100Mi"}}}}
    group = f"{etcdcluster.GROUP}/v1beta2"
    backup = {"apiVersion": group, "kind": "EtcdBackup",
              "metadata": {"name": "backup", "namespace": namespace},
              "spec": {"clusterRef": {"name": "ec"}, "storageType": "PVC",
                       "pvc": {"claimName": "backups", "path": "ec"}}}
    restore = {"apiVersion": group, "kind": "EtcdRestore",
               "metadata": {"name": "restore", "namespace": namespace},
               "spec": {"etcdCluster": {"name": "again"}, "backupRef": {"name": "backup"},
                        "template": {"size": 1, "version": version}}}
    yield [myweb.manifest("web", namespace, image="nginx:1.22", replicas=2),
           app.manifest("app", namespace, image="nginx:1.22", replicas=1, port=80,
                        securityContext=ROOT),
           eru.deployment("worker", namespace, image="nginx:1.22"),
           eru.manifest("worker", namespace, enabled=True, schedule="0 4 1 1 *"),
           databaseuser.manifest("user", namespace, target="nowhere"),
           etcdcluster.manifest("ec", namespace, size=1, version=version), claim]
    yield [backup]
    yield [restore]


def look(cluster, namespace):
    """What must not change: {(kind, name): (uid, generation, spec)}; of pods (uid, restarts)."""
    found = {}
    for kind in (*KINDS, *CHILDREN):
        for obj in cluster.list(kind, namespace):
            meta = obj["metadata"]
            found[kind, meta["name"]] = (meta["uid"], meta.get("generation"), obj.get("spec"))
    for pod in cluster.list("pods", namespace):
        meta = pod["metadata"]
        if meta.get("labels", {}).get("app.kubernetes.io/component") != "agent":
            found["pod", meta["name"]] = (meta["uid"], [
                c["restartCount"] for c in pod["status"].get("containerStatuses", [])])
    return found


def change_version(cluster, namespace, tree, archive):
    """Installs the steward of this tree, under load, and waits until it has seen all objects."""
    cluster.component("image", str(archive))
    with Stream(cluster, namespace) as stream:
        cluster.kubectl("apply", "-k", str(tree / "config" / "default"))
        now = replica.InPods(cluster).open()
        wait.until("each object to be looked at by this version", lambda: all(now.metric(
            now.leader(), "controller_runtime_reconcile_total", controller=c) > 0
            for c in ("myweb", "app", "eru", "databaseuser", "etcdcluster", "etcdbackup",
                      "etcdrestore")), 60, every=0.5)
        stream.flow(100)
        stream.check()
    replica.rest(5)


def test_upgrade_and_rollback_change_no_object(installed, image, before, namespace):
    cluster = installed
    stw.uninstall_webhooks(cluster)
    tree, archive = before
    with installed_from(cluster, tree, archive):
        groups = objects(namespace)
        cluster.apply(next(groups))
        for kind, name in ((myweb.KIND, "web"), (app.KIND, "app"), (etcdcluster.KIND, "ec")):
            cluster.wait_for(kind, name, namespace, is_ready, 120)
        cluster.apply(next(groups))
        cluster.wait_for(etcdbackup.KIND, "backup", namespace, is_ready, 120)
        cluster.apply(next(groups))
        for kind, name in ((etcdcluster.KIND, "again"), (etcdbackup.RESTORE, "restore")):
            cluster.wait_for(kind, name, namespace, is_ready, 120)
        was = look(cluster, namespace)
        assert {kind for kind, _ in was} >= {*KINDS, "pod", "deployment"}
        for version in ((paths.TOP, image[0]), (tree, archive), (paths.TOP, image[0])):
            change_version(cluster, namespace, *version)
            later = look(cluster, namespace)
            for key, value in was.items():
                assert later.get(key) == value, (version, key)
            for kind, name in ((myweb.KIND, "web"), (app.KIND, "app"), (etcdcluster.KIND, "ec"),
                               (etcdcluster.KIND, "again")):
                assert condition(cluster.get(kind, name, namespace), "Ready")["status"] == "True"
        for kind in KINDS:
            cluster.delete_all(kind, namespace)
