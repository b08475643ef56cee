# SPDX-License-Identifier: Apache-2.0
"""Random objects for `steward validate` and an API server: the samples with other metadata, values and members."""

import copy

import yaml

from . import paths

SAMPLES = ("operator_v1_myweb.yaml", "mycompany_v1_app.yaml", "mtsre_v1_eru.yaml",
           "handsomeguy_v1alpha1_databaseuser.yaml", "etcd_v1beta2_etcdcluster.yaml",
           "etcd_v1beta2_etcdbackup.yaml", "etcd_v1beta2_etcdrestore.yaml")

ANY = [None, 0, 1, -1, 2.5, 3.0, 1e20, 1e-7, 2**63, -(2**63) - 1, 2**53 + 1, True, "", "x", "a b", "1",
       "true", [], {}, [1], ["x"], [None], [{}], {"a": 1}, {"a": None}, {"": ""}, "é", "x" * 70, "x\u0000y",
       "2026-01-02T03:04:05Z"]
QUANTITIES = ["1", "1Gi", "1.5Gi", "100m", "1e3", "1E3", "1e+3", "1.0", "3.", ".5", "+1", "-1", "0", "", " 1",
              "1 Gi", "1gi", "0x10", "1_000", "1k", "1K", "1Ki", "1n", "1u", "9223372036854775808", "1e100",
              "1e400", "1Ei", 1, 0, 3.0, 2.5, 1e20, 1e3, True, None, "a", "1m1"]
TIMES = ["", None, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2026-01-02", "2026-01-02T03:04:05",
         "2026-01-02T03:04:05+01:00", "2026-01-02t03:04:05z", "2026-13-02T03:04:05Z", "2026-01-02T24:00:00Z",
         "2026-02-30T03:04:05Z", "2026-01-02 03:04:05Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
         "2026-01-02T03:04:60Z", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+25:00",
         "2026-01-02T03:04:05+0100", "now", 0, 1.5, {}, []]
NAMES = ["a", "A", "a.b", "a_b", "a-", "-a", "a..b", "example.com/a", "example.com/", "/a", "a/b/c",
         "EXAMPLE.com/a", "x" * 63, "x" * 64, "x" * 253, "x" * 254, "a" * 254 + "/b", "a" * 253 + "/b", "", " ",
         "é", "kubernetes.io/a", "foregroundDeletion", "orphan", "kubernetes"]
UIDS = ["2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55", "u", "", 1, None]


def _owner(dice):
    owner = {"apiVersion": dice.choice(["v1", "apps/v1", "a/b/c", "", "/v1", "v1/", "x"]),
             "kind": dice.choice(["Pod", "Event", "event", "", "a b"]), "name": dice.choice(NAMES[:3] + [""]),
             "uid": dice.choice(UIDS)}
    for key in ("controller", "blockOwnerDeletion"):
        if dice.random() < 0.5:
            owner[key] = dice.choice([True, True, False, None, "true", 1])
    if dice.random() < 0.2:
        owner.pop(dice.choice(sorted(owner)))
    if dice.random() < 0.05:
        owner["extra"] = 1
    return dice.choice([owner] * 9 + [None, "x", []])


def _good_owner(dice):
    return {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": dice.choice(UIDS[:2]),
            "controller": dice.choice([True, True, False])}


def _managed(dice):
    entry = {"manager": dice.choice(["kubectl", "", "x" * 128, "x" * 129, "a\u0001b", 1]),
             "operation": dice.choice(["Apply", "Update", "Update", "apply", "", None]),
             "apiVersion": dice.choice(["v1", "apps/v1", "", 1]), "time": dice.choice(TIMES),
             "fieldsType": dice.choice(["FieldsV1", "FieldsV1", "FieldsV2", "", None]),
             "fieldsV1": dice.choice([{"f:metadata": {}}, {}, None, "x", {"x": 1}, {"f:spec": {".": {}}}, []]),
             "subresource": dice.choice(["", "status", "x" * 256, "x" * 257, 1])}
    for key in list(entry):
        if dice.random() < 0.3:
            del entry[key]
    if dice.random() < 0.05:
        entry["extra"] = 1
    return dice.choice([entry] * 9 + [None, "x"])


def _mostly(dice, value):
    return value if dice.random() < 0.9 else dice.choice(ANY)


METADATA = {
    "ownerReferences": lambda d: d.choice([[_owner(d)], [_owner(d), _owner(d)], [_good_owner(d), _good_owner(d)],
                                           [_good_owner(d)], d.choice(ANY)]),
    "finalizers": lambda d: _mostly(d, [d.choice(NAMES) for _ in range(d.randrange(3))]),
    "labels": lambda d: _mostly(d, {d.choice(NAMES): d.choice(NAMES + [1, None, True])}),
    "annotations": lambda d: d.choice([
        {d.choice(NAMES): d.choice(["x", "", "a\nb", 1, None, True, "\u0000", "x" * 1000])},
        {"a": "x" * (256 * 1024 - 1)}, {"a": "x" * (256 * 1024)}, {d.choice(NAMES): "x"}, d.choice(ANY)]),
    "managedFields": lambda d: _mostly(d, [_managed(d) for _ in range(d.randrange(1, 3))]),
    "creationTimestamp": lambda d: d.choice(TIMES),
    "deletionTimestamp": lambda d: d.choice(TIMES),
    "deletionGracePeriodSeconds": lambda d: d.choice([0, 1, -1, 2**63, 1.5, 1.0, "1", None, True]),
    "generation": lambda d: d.choice([0, 1, -1, 2**63, 2**63 - 1, 1.5, 1.0, "1", None, True]),
    "uid": lambda d: d.choice(UIDS + ANY),
    "resourceVersion": lambda d: d.choice(["", "0", "1", "x", 1, None, []]),
    "selfLink": lambda d: d.choice(["", "/x", 1, None]),
    "generateName": lambda d: d.choice(NAMES + ["a-"] + ANY),
    "name": lambda d: d.choice(NAMES + ANY),
    "clusterName": lambda d: d.choice(["", "x"]),
}
RAW = {"a": 1e20, "b": [1.0, 2**63, {"c": None}], "d": 0.1, "e": -0.0}


POD = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
       "spec": {"containers": [{"name": "side", "image": "busybox:1", "env": [{"name": "A", "value": "b"}],
                                "resources": {"requests": {"cpu": "1", "memory": "1Gi"},
                                              "limits": {"memory": "2Gi"}},
                                "ports": [{"containerPort": 80, "name": "http"}],
                                "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3}}],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}], "nodeSelector": {"a": "b"},
                "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a.b"]}]}}
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}
RICH = {"App": {"podTemplate": POD, "affinity": AFFINITY, "resources": {"requests": {"cpu": 1, "memory": "64Mi"}}},
        "EtcdCluster": {"storage": {"size": "1Gi"}, "pod": {"resources": {"requests": {"memory": "64Mi"}}}},
        "MyWeb": {"resources": {"limits": {"memory": "64Mi"}}}}


def _places(value, path=()):
    """[(path, value)] of all members and elements."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        found += [((*path, key), member)] + _places(member, (*path, key))
    return found


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _is_amount(path):
    return any(k in ("memory", "cpu", "storage", "size", "requests", "limits") for k in path)


def _change(dice, obj):
    """One change of a spec."""
    places = _places(obj["spec"], ("spec",))
    if not places:
        obj["spec"]["x"] = 1
        return
    amounts = [p for p in places if _is_amount(p[0])]
    path, value = dice.choice(amounts if amounts and dice.random() < 0.3 else places)
    parent, key = _at(obj, path[:-1]), path[-1]
    choice = dice.random()
    if choice < 0.1:
        del parent[key]
    elif choice < 0.2:
        target = value if isinstance(value, dict) else obj["spec"]
        target[dice.choice(["x", "image", "name", "resources"])] = dice.choice(ANY)
    elif choice < 0.25:
        parent[key] = copy.deepcopy(RAW)
    elif _is_amount(path) and choice < 0.9:
        parent[key] = dice.choice(QUANTITIES)
    else:
        parent[key] = dice.choice(ANY + QUANTITIES + TIMES)


def samples():
    """The first object of each sample, as it is and with the fields of RICH."""
    found = []
    for name in SAMPLES:
        text = (paths.TOP / "config" / "samples" / name).read_text("utf-8")
        one = next(d for d in yaml.safe_load_all(text) if d["kind"] != "Secret")
        found.append(one)
        more = copy.deepcopy(one)
        more["spec"].update(copy.deepcopy(RICH.get(one["kind"], {})))
        found.append(more)
    return found


def generate(dice, count, namespace):
    """`count` objects with unique names, unless the name itself is changed."""
    bases, found = samples(), []
    for number in range(count):
        obj = copy.deepcopy(dice.choice(bases))
        obj["metadata"] = {"name": f"m{number}", "namespace": namespace, "labels": {"target": "main"}}
        for _ in range(dice.choice([1, 1, 1, 2])):
            if dice.random() < 0.5:
                field = dice.choice(sorted(METADATA))
                obj["metadata"][field] = METADATA[field](dice)
                if field == "generateName" and dice.random() < 0.5:
                    obj["metadata"].pop("name", None)
            else:
                _change(dice, obj)
        found.append(obj)
    return found
