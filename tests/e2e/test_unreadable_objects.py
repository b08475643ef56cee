# SPDX-License-Identifier: Apache-2.0
"""Objects of strangers that other JSON readers refuse, in every resource that steward lists: what the
API server stores and sends is read, and an object that is too large to be read costs only itself."""

import contextlib
import http.client
import json
import ssl

import pytest

from support import cluster as k8s
from support import myweb, paths, wait
from support import steward as stw

LABELS = {"app.kubernetes.io/managed-by": "steward"}
PAUSED = {"steward.dev/paused": "true"}
NOTE = {"example.org/note": "a\x00b"}
POD = {"metadata": {"labels": {"a": "b"}},
       "spec": {"containers": [{"name": "c", "image": myweb.NO_IMAGE}]}}
# Nothing runs of them: the controllers of the cluster make no pods.
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": POD}
NOWHERE = {**POD, "spec": {**POD["spec"], "nodeSelector": {"example.org/none": "true"}}}
# More than 8 MiB as JSON, in which each takes six bytes, and less than etcd's limit.
LARGE = "<" * 1_430_000
# Deeper than steward looks; Python reads 1,000 levels, and the API server 10,000.
DEEP, HUGE = "[" * 400 + "]" * 400, "100000000000000000000"


def with_large_value(spec):
    """The same workload with a variable of 1.4 MB."""
    container = {**POD["spec"]["containers"][0], "env": [{"name": "V", "value": LARGE}]}
    template = {**spec["template"], "spec": {**spec["template"]["spec"], "containers": [container]}}
    return {**spec, "template": template}


# resource: (apiVersion, kind, the rest of the object)
RESOURCES = {
    "configmaps": ("v1", "ConfigMap", {"data": {"k": "a\x00b", "l": "<" * 1_000_000}}),
    "secrets": ("v1", "Secret", {"data": {"k": "AAAA"}}),
    "services": ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}),
    "pods": ("v1", "Pod", {"spec": NOWHERE["spec"]}),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none"}}),
    "deployments": ("apps/v1", "Deployment", {"spec": {**WORKLOAD, "replicas": 0}}),
    "statefulsets": ("apps/v1", "StatefulSet",
                     {"spec": {**WORKLOAD, "replicas": 0, "serviceName": "s"}}),
    "daemonsets": ("apps/v1", "DaemonSet", {"spec": {**WORKLOAD, "template": NOWHERE}}),
    "horizontalpodautoscalers": ("autoscaling/v1", "HorizontalPodAutoscaler", {"spec": {
        "maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}}),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}),
    "databaseusers": ("handsomeguy.cn/v1alpha1", "DatabaseUser", {"spec": {
        "user": "shop", "password": {"name": "none", "key": "password"},
        "grants": [{"database": "shop", "privileges": ["SELECT"]}]}}),
    "mywebs": ("operator.k8s-summit.org/v1", "MyWeb", {"spec": {"image": myweb.NO_IMAGE}}),
}
WORKLOADS = ("deployments", "statefulsets", "daemonsets")
# Those that are not listed by their metadata alone.
WHOLE = ("deployments",)


def write_hostile(cluster, namespace, name):
    """One object of each resource, with NUL, and large ones of those that can be."""
    for resource, (version, kind, rest) in RESOURCES.items():
        metadata = {"name": name, "namespace": namespace, "labels": LABELS,
                    "annotations": {**NOTE, **PAUSED}}
        obj = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
        cluster.create(obj, validate=False)
        if resource in WORKLOADS:
            metadata = {**metadata, "name": f"{name}-large"}
            cluster.create({**obj, "metadata": metadata, "spec": with_large_value(rest["spec"])})
    etcd = {"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
            "metadata": {"name": name, "namespace": namespace, "annotations": {**NOTE, **PAUSED}},
            "spec": {"size": 1, "pod": {"affinity": {"deep": "DEEP", "huge": "HUGE"}}}}
    text = json.dumps(etcd).replace('"DEEP"', DEEP).replace('"HUGE"', HUGE)
    cluster.api.do("POST", "/apis/etcd.database.coreos.com/v1beta2/namespaces/"
                           f"{namespace}/etcdclusters", text.encode())


class Observer:
    """Reads /debug/state and /metrics of a steward, as an engineer on call may."""

    def __init__(self, cluster, steward, namespace):
        self.steward = steward
        cluster.kubectl("apply", "-k", str(paths.TOP / "config" / "rbac"))
        cluster.create_account(f"{namespace}/on-call")
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{namespace}-on-call"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": "steward-debug-reader"},
                "subjects": [{"kind": "ServiceAccount", "name": "on-call", "namespace": namespace}]}
        cluster.apply(role)
        self.token = cluster.token_of(f"{namespace}/on-call")

    def read(self, path):
        """The text of a page."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        with contextlib.closing(http.client.HTTPSConnection(
                "127.0.0.1", self.steward.metrics_port, timeout=20, context=tls)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            reply = connection.getresponse()
            text = reply.read().decode()
            assert reply.status == 200, text
            return text

    def state(self):
        """/debug/state as a dict."""
        return json.loads(self.read("/debug/state"))

    def unreadable(self, namespace):
        """{(resource, name): reason} of this namespace."""
        return {(u["resource"], u["name"]): u["reason"] for u in self.state()["unreadable"]
                if u["namespace"] == namespace}

    def count(self, resource):
        """Its gauge."""
        start = f'steward_unreadable_objects{{resource="{resource}"}} '
        return next(float(line[len(start):]) for line in self.read("/metrics").splitlines()
                    if line.startswith(start))


def assert_repairs(cluster, namespace, name):
    """Each child that another client changes is put right."""
    before = myweb.children(cluster, name, namespace)
    drift = {
        "configmap": {"data": {key: "drift" for key in before["configmap"]["data"]}},
        "service": {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}},
        "deployment": [{"op": "replace", "value": "registry.invalid/drift:1",
                        "path": "/spec/template/spec/containers/0/image"}],
    }
    for kind, patch in drift.items():
        cluster.patch(kind, name, namespace, patch)
    for kind, place in (("configmap", ("data",)), ("service", ("spec", "selector")),
                        ("deployment", ("spec", "template", "spec", "containers"))):
        def value(obj, place=place):
            for step in place:
                obj = obj[step]
            return [c["image"] for c in obj] if place[-1] == "containers" else obj
        want = value(before[kind])
        cluster.wait_for(kind, name, namespace, lambda obj, v=value, w=want: v(obj) == w,
                         what=f"the drift of the {kind} to be repaired")


@pytest.mark.oldest("what the API server writes")
def test_objects_of_strangers_cost_only_themselves(installed, run_steward, namespace,
                                                   steward_binary):
    """Before its start and while it runs: it is ready, repairs drift, and names what it skips."""
    stw.uninstall_webhooks(installed)
    strangers = f"{namespace}-strangers"
    installed.create_namespace(strangers)
    installed.apply({"apiVersion": "v1", "kind": "Namespace",
                     "metadata": {"name": f"{namespace}-noted", "annotations": NOTE}})
    write_hostile(installed, strangers, "early")
    one = run_steward("--metrics-secure=true")
    observer = Observer(installed, one, namespace)
    large = {(resource, "early-large") for resource in WHOLE}
    assert set(observer.unreadable(strangers)) == large
    assert set(observer.unreadable(strangers).values()) == {"it has more than 8 MiB of JSON"}
    doctor = k8s.run([steward_binary, "doctor", "--kubeconfig", installed.kubeconfig], check=False)
    for resource, name in large:
        assert f"steward skips {resource} {strangers}/{name}: it has more than 8 MiB" in doctor.stdout
    caches = {c["resource"]: c for c in observer.state()["caches"]}
    tried = {*RESOURCES, "namespaces", "etcdclusters"}
    assert {name for name, c in caches.items() if c["objects"] and name not in tried} <= {
        "storageclasses", "nodes", "apps", "erus", "etcdbackups", "etcdrestores", "leases"}
    myweb.create_settled(installed, "honest", namespace)
    assert_repairs(installed, namespace, "honest")

    write_hostile(installed, strangers, "late")
    large |= {(resource, "late-large") for resource in WHOLE}
    wait.until("the late ones to be named", lambda: set(observer.unreadable(strangers)) == large)
    assert_repairs(installed, namespace, "honest")
    for resource in WHOLE:
        assert observer.count(resource) == 2
    state = observer.state()
    assert [c["resource"] for c in state["caches"] if c["problem"]] == []
    assert {name: c["failures"] for name, c in caches.items()} == {
        c["resource"]: c["failures"] for c in state["caches"]}
    assert one.readyz()[0] == 200
    lines = [line["object"] for line in one.log() if "cannot be read" in line["msg"]]
    assert sorted(set(lines)) == [f"{strangers}/early-large", f"{strangers}/late-large"]

    for resource in WORKLOADS:
        for name in ("early-large", "late-large"):
            installed.delete(resource, name, strangers)
    wait.until("the deleted ones to be forgotten", lambda: not observer.unreadable(strangers))
    assert observer.count("deployments") == 0
    installed.delete_namespace(strangers)
    installed.delete_namespace(f"{namespace}-noted")
    installed.delete("clusterrolebinding", f"{namespace}-on-call")


def test_the_owner_of_a_child_that_cannot_be_read_says_so(installed, run_steward, namespace):
    """At once, and it creates the child again when that is deleted."""
    stw.uninstall_webhooks(installed)
    run_steward()
    myweb.create_settled(installed, "web", namespace)
    installed.patch("deployment", "web", namespace, [
        {"op": "add", "path": "/spec/template/spec/containers/0/env",
         "value": [{"name": "V", "value": LARGE}]}])
    about = myweb.wait_condition(installed, "web", namespace, "Ready", "InvalidSpec", seconds=20)
    assert 'Deployment "web" cannot be read: it has more than 8 MiB of JSON' in about["message"]
    installed.delete("deployment", "web", namespace)
    myweb.wait_settled(installed, "web", namespace)
