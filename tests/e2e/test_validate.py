# SPDX-License-Identifier: Apache-2.0
"""`steward validate` never passes what the API server refuses."""

import copy
import json
import pathlib
import re

import pytest
import yaml
from support import cluster as k8s
from support import paths
from support import steward as stw

# Strict validation by the server: from Kubernetes 1.25 on.  An older kubectl validates by itself.
STRICT = ("create", "--dry-run=server", "--validate=strict", "-f")


@pytest.fixture(scope="module")
def no_webhook(installed):
    """No webhook is installed: only the API server judges."""
    stw.uninstall_webhooks(installed)
    return installed


def sample(name):
    with open(f"{paths.SAMPLES}/{name}", encoding="utf-8") as file:
        return [d for d in yaml.safe_load_all(file) if d["kind"] != "Secret"][0]


def put(thing, path, value):
    """A copy with a value at "spec.a.b"."""
    thing = copy.deepcopy(thing)
    at, keys = thing, path.split(".")
    for key in keys[:-1]:
        at = at.setdefault(key, {})
    at[keys[-1]] = value
    return thing


SAMPLES = ("operator_v1_myweb.yaml", "mycompany_v1_app.yaml", "mtsre_v1_eru.yaml",
           "handsomeguy_v1alpha1_databaseuser.yaml", "etcd_v1beta2_etcdcluster.yaml",
           "etcd_v1beta2_etcdbackup.yaml", "etcd_v1beta2_etcdrestore.yaml")
VALUES = (None, 1, "x", True, [], {}, [1], {"a": 1})
CHANGES = [(path, value) for value in VALUES for path in (
    "metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.ownerReferences",
    "metadata.foo", "metadata.name", "metadata.namespace", "metadata.generateName", "spec", "status", "foo",
    "spec.foo", "status.foo", "metadata.labels.a", "metadata.annotations.a")] + [
    ("metadata.labels.a", "b c"), ("metadata.labels.a", "b" * 64), ("metadata.labels", {"a b": "c"}),
    ("metadata.annotations", {"a b": "c"}), ("metadata.annotations", {"a": "x" * 262145}),
    ("metadata.finalizers", ["a b"]), ("metadata.finalizers", ["example.com/a"]),
    ("metadata.ownerReferences", [{"kind": "Pod"}]), ("metadata.ownerReferences", [
        {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "extra": 1}]),
    ("metadata.name", "a b"), ("metadata.name", "a" * 254), ("metadata.namespace", "A"),
    ("apiVersion", "operator.k8s-summit.org/v7"), ("kind", "MyWebz"),
    ("status", {"conditions": [{"type": "x", "foo": 1}]}), ("status", {"observedGenration": 1})]


@pytest.mark.oldest("strict validation")
@pytest.mark.parametrize("name", SAMPLES)
def test_validate_passes_nothing_the_api_server_refuses(no_webhook, steward_binary, namespace, name, tmp_path):
    """Every change that the API server refuses is refused by validate; the sample itself by neither."""
    base = sample(name)
    base["metadata"].pop("namespace", None)
    changes = [("metadata.name", base["metadata"]["name"])] + CHANGES
    changes += [(f"spec.{field}", None) for field in base["spec"]]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    for number, (path, value) in enumerate(changes):
        (ours / f"{number}.yaml").write_text(yaml.safe_dump(put(base, path, value)), "utf-8")
    verdicts = k8s.run([steward_binary, "validate", "-n", namespace, "-o", "json", *ours.iterdir()], check=False)
    refused = {pathlib.Path(one["file"]).name for one in json.loads(verdicts.stdout)["objects"]
               if one["verdict"] == "refused"}
    for file in ours.iterdir():
        path = changes[int(file.stem)][0]
        if file.name not in refused and path != "metadata.namespace":  # of another namespace than -n
            file.rename(theirs / file.name)
    assert (theirs / "0.yaml").exists()
    judged = no_webhook.kubectl("-n", namespace, *STRICT, theirs, check=False)
    wrong = sorted(set(re.findall(rf"{theirs}/(\d+)\.yaml", judged.stderr)))
    # kubectl names the file of each error.
    created = judged.stdout.count(" created (server dry run)")
    assert created + len(wrong) == len(list(theirs.iterdir())), judged.stderr
    assert not wrong, ([changes[int(number)] for number in wrong], judged.stderr)
    assert k8s.run([steward_binary, "validate", "-"], check=False, input=yaml.safe_dump(base)).returncode == 0
