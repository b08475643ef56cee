# SPDX-License-Identifier: Apache-2.0
"""A larger spec.storage.size reaches the volumes of an EtcdCluster.  The test plays the kubelet of a
cluster of one member, and the CSI driver of its volume, as far as both are seen in the claim."""

import pytest
import yaml
from support import cluster as k8s
from support import etcd, wait
from support import steward as stw
from support.cluster import condition
from support.etcdcluster import GROUP
from support.etcdlocal import LocalEtcd

LINE = sorted(etcd.versions())[-1:]
REPLACE = f"{GROUP}/replace-volumes"

pytestmark = [pytest.mark.usefixtures("pods_stay_pending"),
              pytest.mark.skipif(bool(etcd.missing("3.4", *LINE)), reason="no etcd is here")]


class Grown(LocalEtcd):
    """One such EtcdCluster, whose volumes are of a StorageClass of its own."""

    def start(self, expands):
        """Creates it with 8Gi, and waits until it is Ready; returns its pod."""
        self.cluster.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                            "metadata": {"name": self.namespace}, "provisioner": "example.com/none",
                            "allowVolumeExpansion": expands})
        self.apply(size=1, storage={"size": "8Gi", "storageClassName": self.namespace})
        pod = self.wait_pod()
        self.bind(pod["metadata"]["name"], "8Gi")
        self.run(pod).wait_settled(1)
        return pod

    def bind(self, name, size):
        """Binds the claim to a volume of its own."""
        claim = self.claims()[name]
        of = {key: claim["metadata"][key] for key in ("name", "namespace", "uid")}
        volume = f"{self.namespace}-{name}"
        self.cluster.apply({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
                     "storageClassName": self.namespace, "hostPath": {"path": "/none"},
                     "persistentVolumeReclaimPolicy": "Retain",
                     "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **of}}})
        self.cluster.patch("pv", volume, None, {"status": {"phase": "Bound"}}, subresource="status")
        self.cluster.patch("pvc", name, self.namespace, {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": volume}})
        self.say(name, phase="Bound", accessModes=["ReadWriteOnce"], capacity={"storage": size})

    def say(self, name, **status):
        """Writes what a CSI driver or the kubelet says of the volume of a claim."""
        self.cluster.patch("pvc", name, self.namespace, {"status": status}, subresource="status")

    def requested(self, name):
        """The size that a claim asks for."""
        return self.claims()[name]["spec"]["resources"]["requests"]["storage"]

    def wait_resizing(self, status, reason, *texts):
        """Waits for the condition Resizing with all of these texts."""
        def found(obj):
            one = condition(obj, "Resizing")
            return (one.get("status"), one.get("reason")) == (status, reason) and all(
                text in one["message"] for text in texts)
        return self.wait(found, f"Resizing to be {status}: {reason} {texts}", 60)

    def __exit__(self, *_):
        super().__exit__()
        self.cluster.delete("storageclass", self.namespace)
        for volume in self.cluster.list("pv"):
            if volume["metadata"]["name"].startswith(self.namespace):
                self.cluster.delete("pv", volume["metadata"]["name"], wait_gone=False)


@pytest.fixture
def ec(controller, installed, namespace, tmp_path):
    """A Grown that has not been created yet."""
    assert controller.running()
    with Grown(installed, namespace, tmp_path) as one:
        yield one


def resizing(kind, message):
    """A condition of a claim whose volume is being resized."""
    return {"type": kind, "status": "True", "message": message}


@pytest.mark.oldest("claims of the server can be expanded")
def test_larger_size_expands_the_volume(ec):
    """The claim asks for it, the status shows how far the volume is, and no pod is recreated."""
    name = ec.start(expands=True)["metadata"]["name"]
    uids = ec.uids()
    ec.patch(storage={"size": "9Gi"})
    obj = ec.wait_resizing("True", "ExpandingVolume", "volumes are to have 9Gi", f"{name} has 8Gi of 9Gi",
                           "has not begun")
    assert ec.requested(name) == "9Gi"
    assert obj["status"]["storage"] == {"medium": "Persistent", "class": ec.namespace, "size": "9Gi",
                                        "initialSize": "8Gi"}
    obj = ec.wait(lambda o: o["status"].get("currentAction"), "the action", 20)
    assert obj["status"]["currentAction"]["kind"] == "ExpandVolume"
    assert condition(obj, "Ready")["status"] == "False"

    ec.say(name, conditions=[resizing("FileSystemResizePending", "waiting for the node")])
    obj = ec.wait_resizing("True", "ExpandingVolume", "file system: waiting for the node")
    [member] = obj["status"]["memberList"]
    assert member["volume"] == {"requested": "9Gi", "capacity": "8Gi"}

    ec.say(name, conditions=[], capacity={"storage": "9Gi"})
    obj = ec.wait_settled(1)
    assert condition(obj, "Resizing")["status"] == "False"
    [member] = obj["status"]["memberList"]
    assert member["volume"] == {"requested": "9Gi", "capacity": "9Gi"}
    ec.cluster.wait_event("ec", ec.namespace, "ExpandingVolume", f"{name} is to grow from 8Gi to 9Gi")
    ec.cluster.wait_event("ec", ec.namespace, "VolumeExpanded", f"{name} has 9Gi")
    assert ec.uids() == uids


@pytest.mark.oldest("claims of the server cannot be expanded")
def test_storage_class_without_expansion_needs_consent(ec):
    """Nothing is changed, and the status says which volume has which size.  With the annotation for
    this size a member with a larger volume is added."""
    name = ec.start(expands=False)["metadata"]["name"]
    ec.patch(storage={"size": "9Gi"})
    obj = ec.wait_resizing("True", "ExpansionNotAllowed", f"{name} has 8Gi",
                           f"StorageClass {ec.namespace} does not allow", f"{REPLACE}=9Gi")
    ec.cluster.wait_event("ec", ec.namespace, "ExpansionNotAllowed", f"{name} has 8Gi")
    assert condition(obj, "Ready")["status"] == "True"
    ec.annotate(REPLACE, "8Gi")
    wait.stays("consent to another size changes nothing",
               lambda: list(ec.claims()) == [name] and ec.requested(name) == "8Gi", 3)
    ec.annotate(REPLACE, "9Gi")
    ec.wait_resizing("True", "ReplacingMember")
    ec.wait_pods("another member", lambda pods: len(pods) == 2, 30)
    [fresh] = set(ec.claims()) - {name}
    assert (ec.requested(fresh), ec.requested(name)) == ("9Gi", "8Gi")


@pytest.mark.oldest("the message of the plugin PersistentVolumeClaimResize")
def test_unreadable_storage_class_leaves_it_to_the_server(controller, installed, namespace,
                                                          steward_binary, tmp_path):
    """As with --namespaces."""
    assert controller.stop() == 0, controller.log_tail()
    account = f"{stw.NAMESPACE}/no-classes"
    roles = []
    for role in yaml.safe_load_all(k8s.run([steward_binary, "print", "rbac"]).stdout):
        if role["kind"] in ("ServiceAccount", "Namespace"):
            continue
        role["metadata"]["name"] = "no-classes-" + role["metadata"]["name"]
        if "rules" in role:
            role["rules"] = [r for r in role["rules"] if r.get("resources") != ["storageclasses"]]
        if "roleRef" in role:
            role["roleRef"]["name"] = "no-classes-" + role["roleRef"]["name"]
            role["subjects"][0]["name"] = "no-classes"
        roles.append(role)
    installed.create_account(account)
    installed.apply(roles)
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_of(account, tmp_path / "k"),
                      tmp_path, name="no-classes").start()
    try:
        with Grown(installed, namespace, tmp_path) as ec:
            name = ec.start(expands=False)["metadata"]["name"]
            ec.patch(storage={"size": "9Gi"})
            ec.wait_resizing("True", "ExpansionNotAllowed", f"{name} has 8Gi", f"{REPLACE}=9Gi")
            assert ec.requested(name) == "8Gi"
    finally:
        assert one.stop() == 0, one.log_tail()
        for role in roles:
            installed.delete(role["kind"].lower(), role["metadata"]["name"],
                             role["metadata"].get("namespace"))
        installed.delete("serviceaccount", "no-classes", stw.NAMESPACE)
        controller.start()


def test_quota_against_expansion_is_reported(ec):
    """The API server refuses the larger claim: the condition has its message, and the cluster is
    Ready and is looked at as before.  What has changed since, of the class and of the quota, is seen
    within a minute."""
    name = ec.start(expands=False)["metadata"]["name"]
    ec.cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota",
                      "metadata": {"name": "storage", "namespace": ec.namespace},
                      "spec": {"hard": {"requests.storage": "8Gi"}}})
    ec.cluster.wait_for("resourcequota", "storage", ec.namespace,
                        lambda q: q.get("status", {}).get("used", {}).get("requests.storage"), 30)
    ec.patch(storage={"size": "9Gi"})
    ec.wait_resizing("True", "ExpansionNotAllowed", f"{name} has 8Gi")
    ec.cluster.patch("storageclass", ec.namespace, None, {"allowVolumeExpansion": True})
    obj = ec.wait_resizing("True", "ExpansionRefused", f"{name} has 8Gi", "quota")
    assert ec.requested(name) == "8Gi"
    ec.wait_settled(1)
    assert condition(obj, "Degraded")["status"] == "False"
    ec.cluster.wait_event("ec", ec.namespace, "ExpansionRefused", "quota")
    ec.cluster.delete("resourcequota", "storage", ec.namespace)
    ec.wait_resizing("True", "ExpandingVolume", f"{name} has 8Gi of 9Gi")
    assert ec.requested(name) == "9Gi"
