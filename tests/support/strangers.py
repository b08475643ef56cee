# SPDX-License-Identifier: Apache-2.0
"""Objects of strangers that a strict JSON reader refuses, one of each resource that steward lists, and
what it lists, by its roles and by the API server's audit log."""

import copy
import json
import urllib.parse

import yaml

from . import myweb, optional, paths

NOTE = {"example.org/note": "a\x00b"}
PAUSED = {"steward.dev/paused": "true"}
LABELS = {"app.kubernetes.io/managed-by": "steward"}
POD = {"metadata": {"labels": {"a": "b"}},
       "spec": {"containers": [{"name": "c", "image": myweb.NO_IMAGE}]}}
# Nothing runs of them: the controllers of the cluster make no pods.
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": POD}
NOWHERE = {**POD, "spec": {**POD["spec"], "nodeSelector": {"example.org/none": "true"}}}
# More than 8 MiB as JSON, in which each takes six bytes, and less than etcd's limit.
LARGE = "<" * 1_430_000
# Deeper than steward looks; Python reads 1,000 levels, and the API server 10,000.
DEEP, HUGE = "[" * 400 + "]" * 400, "100000000000000000000"
_ENV = ("containers", 0, "env")
_VALUE = [{"name": "V", "value": LARGE}]

# resource: (apiVersion, kind, the rest of the object, where a value of 1.4 MB fits or None, that value)
RESOURCES = {
    "configmaps": ("v1", "ConfigMap", {"data": {"k": "a\x00b", "l": "<" * 1_000_000}}, None, None),
    "secrets": ("v1", "Secret", {"data": {"k": "AAAA"}}, None, None),
    "services": ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}, None, None),
    "pods": ("v1", "Pod", {"spec": NOWHERE["spec"]}, None, None),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none"}}, None, None),
    "deployments": ("apps/v1", "Deployment", {"spec": {**WORKLOAD, "replicas": 0}},
                    ("spec", "template", "spec", *_ENV), _VALUE),
    "statefulsets": ("apps/v1", "StatefulSet",
                     {"spec": {**WORKLOAD, "replicas": 0, "serviceName": "s"}},
                     ("spec", "template", "spec", *_ENV), _VALUE),
    "daemonsets": ("apps/v1", "DaemonSet", {"spec": {**WORKLOAD, "template": NOWHERE}},
                   ("spec", "template", "spec", *_ENV), _VALUE),
    "horizontalpodautoscalers": ("autoscaling/v1", "HorizontalPodAutoscaler", {"spec": {
        "maxReplicas": 1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "None", "name": "none"}}},
        None, None),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}}}, None, None),
    "ingresses": ("networking.k8s.io/v1", "Ingress", {"spec": {"rules": [{"http": {"paths": [{
        "path": "/", "pathType": "Exact",
        "backend": {"service": {"name": "none", "port": {"number": 80}}}}]}}]}},
        ("spec", "rules", 0, "http", "paths", 0, "path"), "/" + LARGE),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget",
                             {"spec": {"maxUnavailable": 1, "selector": WORKLOAD["selector"]}}, None, None),
    "storageclasses": ("storage.k8s.io/v1", "StorageClass",
                       {"provisioner": "example.org/none", "parameters": {"k": "a\x00b"}}, None, None),
    "namespaces": ("v1", "Namespace", {}, None, None),
    "podmonitors": (f"{optional.MONITOR[0]}/v1", optional.MONITOR[1],
                    {"spec": {"deep": "DEEP", "huge": "HUGE"}}, None, None),
    "httproutes": (f"{optional.ROUTE[0]}/v1", optional.ROUTE[1],
                   {"spec": {"deep": "DEEP", "huge": "HUGE"}}, None, None),
}
# The selectors of watches that want more than LABELS.
NAMES = {"pods": ({"app.kubernetes.io/name": "app"}, {"app.kubernetes.io/name": "etcd"},
                  {"app.kubernetes.io/component": "agent"}),
         "persistentvolumeclaims": ({"app.kubernetes.io/name": "etcd"},)}
# Of these a large object cannot be read; of others only the metadata is listed.
WHOLE = ("deployments", "ingresses")


def _raw_field(schema):
    """The path of the first field, outside of lists, that takes any object; None: there is none."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return ()
    for name, of in schema.get("properties", {}).items():
        found = _raw_field(of)
        if found is not None:
            return (name, *found)
    return None


def _put(obj, path, value):
    for step in path[:-1]:
        obj = obj[step] if isinstance(step, int) else obj.setdefault(step, {})
    obj[path[-1]] = value


def samples(cluster):
    """{resource: manifest} of each of steward's kinds, with deep and huge values where the schema takes
    any object."""
    found = {}
    for file in (paths.TOP / "config" / "samples").glob("*.yaml"):
        for obj in yaml.safe_load_all(file.read_text("utf-8")):
            one = cluster.kinds.of_manifest(obj)
            crd = cluster.get("crd", f"{one.plural}.{one.group}")
            if not crd:
                continue  # a Secret that a sample needs
            schema = next(v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"]
                          if f"{one.group}/{v['name']}" == obj["apiVersion"])
            raw = _raw_field(schema)
            if raw:
                _put(obj, raw, {"deep": "DEEP", "huge": "HUGE"})
            found[one.plural] = obj
    return found


def resources(cluster):
    """RESOURCES in the versions of this server, and samples()."""
    found = {**RESOURCES, **{plural: (obj["apiVersion"], obj["kind"], obj, None, None)
                             for plural, obj in samples(cluster).items()}}
    if cluster.minor() < 21:
        _, *rest = found["poddisruptionbudgets"]
        found["poddisruptionbudgets"] = ("policy/v1beta1", *rest)
    return found


def _create(cluster, obj):
    text = json.dumps(obj).replace('"DEEP"', DEEP).replace('"HUGE"', HUGE)
    one = cluster.kinds.of_manifest(obj)
    cluster.api.do("POST", one.path(obj["metadata"].get("namespace")), text.encode())


class Strangers:
    """What they have written: objects named NAME, and large ones named NAME-large, in a namespace, or
    NAMESPACE-NAME if they have none."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace, self.of = cluster, namespace, resources(cluster)
        self.clusterwide = []
        cluster.create_namespace(namespace)

    def write(self, name):
        """One of each resource and selector, with NUL and what else fits, and large ones."""
        for plural, (version, kind, rest, place, value) in self.of.items():
            obj = {"apiVersion": version, "kind": kind, **copy.deepcopy(rest)}
            for i, labels in enumerate(({}, *NAMES.get(plural, ()))):
                _create(self.cluster, self._named(obj, f"{name}-{i}", labels))
            if place:
                obj = self._named(obj, f"{name}-large", *NAMES.get(plural, [{}])[:1])
                _put(obj, place, value)
                _create(self.cluster, obj)

    def _named(self, obj, name, labels):
        metadata = {"name": name, "labels": {**LABELS, **labels}, "annotations": {**NOTE, **PAUSED}}
        one = self.cluster.kinds.of_manifest(obj)
        if one.namespaced:
            metadata["namespace"] = self.namespace
        else:
            metadata["name"] = f"{self.namespace}-{name}"
            self.clusterwide.append((one.plural, metadata["name"]))
        return {**copy.deepcopy(obj), "metadata": metadata}

    def mark(self, grants):
        """Gives the annotation to the objects that steward lists by their names."""
        for (_, group, resource, verb, names), where in grants.items():
            for name in names if verb == "list" else ():
                word = f"{resource}.{group}" if group else resource
                if self.cluster.get(word, name, where):
                    self.cluster.annotate(word, name, where, NOTE)

    def remove_large(self, name):
        """Deletes the large ones, without waiting."""
        for plural, (_, _, _, place, _) in self.of.items():
            if place:
                self.cluster.delete(plural, f"{name}-large", self.namespace, wait_gone=False, grace_seconds=0)

    def remove(self):
        """Deletes all."""
        for plural, name in self.clusterwide:
            self.cluster.delete(plural, name, wait_gone=False)
        self.cluster.delete_namespace(self.namespace)


def may_be_listed(grants):
    """The resources of which steward may list all objects."""
    return {resource for _, _, resource, verb, names in grants if verb == "list" and not names}


def lists(cluster, since):
    """The paths, with their selectors, of the lists and watches that the program has sent since a time."""
    found = set()
    with open(cluster.audit_log, encoding="utf-8") as log:
        for line in log:
            if '"userAgent":"steward/' not in line or not line.endswith("\n"):
                continue
            entry = json.loads(line)
            if entry["verb"] in ("list", "watch") and entry["requestReceivedTimestamp"] >= since:
                found.add(_list_path(entry["requestURI"]))
    return found


def _list_path(uri):
    """Without what selects no objects."""
    path, _, query = uri.partition("?")
    kept = [(k, v) for k, v in urllib.parse.parse_qsl(query) if k in ("labelSelector", "fieldSelector")]
    return f"{path}?{urllib.parse.urlencode(sorted(kept))}"


def without_hostile(cluster, since):
    """Those of lists() that have no object with NOTE, apart from lists of resources that the server lacks."""
    found = []
    for path in sorted(lists(cluster, since)):
        reply = cluster.api.request("GET", path)
        items = reply.object.get("items") or []
        if reply.status != 404 and not any(
                NOTE.items() <= (o["metadata"].get("annotations") or {}).items() for o in items):
            found.append(path)
    return found
