# SPDX-License-Identifier: Apache-2.0
"""Admission of DatabaseUsers by a steward with a configuration file of targets, which changes."""

import base64
import json
import os
import subprocess

import pytest
import yaml

from support import databaseuser as dbu
from support import net, paths, wait

VALIDATE = "/validate-handsomeguy-cn-v1alpha1-databaseuser"
MUTATE = "/mutate-handsomeguy-cn-v1alpha1-databaseuser"
TARGET = {"name": "orders", "engine": "mariadb", "host": "db",
          "admin": {"user": "chief", "passwordFile": "/run/pw"}, "allowedDatabases": ["*"]}
WORD = "hunter2-in-plain-text"


def user(target="orders", **spec):
    """A DatabaseUser that is valid unless `spec` changes that."""
    return {"apiVersion": "handsomeguy.cn/v1alpha1", "kind": "DatabaseUser",
            "metadata": {"name": "app", "namespace": "shop", "labels": {"target": target}},
            "spec": {"user": "app", "password": {"name": "s"}, "hosts": ["10.%"], **spec}}


def review(obj, old=None, operation="CREATE"):
    version = {"group": "handsomeguy.cn", "version": "v1alpha1"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55", "kind": {**version, "kind": "DatabaseUser"},
        "resource": {**version, "resource": "databaseusers"}, "name": "app", "namespace": "shop",
        "operation": operation, "userInfo": {"username": "jane"}, "object": obj, "oldObject": old,
        "dryRun": False}}


class Config:
    """A configuration file that is replaced atomically."""

    def __init__(self, path):
        self.path = path

    def write(self, *targets, text=None):
        new = self.path.with_suffix(".new")
        new.write_text(yaml.safe_dump({"targets": list(targets)}) if text is None else text, "utf-8")
        os.replace(new, self.path)
        return self


@pytest.fixture
def config(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    return Config(folder / "steward.yaml").write(TARGET)


def says(webhook, obj, **more):
    """(allowed, warnings, message) of the validating step."""
    status, reply = webhook.post(review(obj, **more), VALIDATE)
    assert status == 200, reply
    answer = reply["response"]
    return answer["allowed"], answer.get("warnings", []), answer.get("status", {}).get("message", "")


def test_admission_uses_the_targets(make_webhook, config):
    webhook = make_webhook("--config", config.path)
    assert says(webhook, user())[0]
    allowed, _, message = says(webhook, user(user="root"))
    assert not allowed
    assert '"root" is reserved on mariadb' in message
    allowed, warnings, _ = says(webhook, user("elsewhere"))
    assert allowed
    assert warnings == ['namespace "shop" may use the target orders',
                        'target "elsewhere" is not configured; the account is created when it is']


def test_changed_targets_take_effect(make_webhook, config):
    """A new list takes effect without a restart; an invalid one changes nothing but a metric."""
    webhook = make_webhook("--config", config.path)
    assert says(webhook, user())[0]
    config.write({**TARGET, "allowedNamespaces": ["other"]})
    wait.until("the namespace to be closed", lambda: not says(webhook, user())[0])
    assert 'target "orders" does not accept namespace "shop"' in says(webhook, user())[2]
    config.write({**TARGET, "prot": 5})
    wait.until("the refusal to be counted",
               lambda: webhook.metric("steward_config_reloads_total", result="error") == 1)
    assert not says(webhook, user())[0]
    assert "targets[0].prot: Forbidden: unknown field" in webhook.log_text()
    config.write(text="targets: [\n")
    wait.until("the next refusal to be counted",
               lambda: webhook.metric("steward_config_reloads_total", result="error") == 2)
    assert not says(webhook, user())[0]
    config.write(TARGET)
    wait.until("the namespace to be open", lambda: says(webhook, user())[0])
    assert webhook.metric("steward_database_targets") == 1
    config.write()
    wait.until("the target to go", lambda: says(webhook, user())[1])


def test_replaced_configmap_mount_is_read(make_webhook, tmp_path):
    """The kubelet replaces a symbolic link, not the file."""
    folder = tmp_path / "mount"
    for name, target in (("..1", TARGET), ("..2", {**TARGET, "allowedNamespaces": []})):
        (folder / name).mkdir(parents=True)
        Config(folder / name / "steward.yaml").write(target)
    (folder / "..data").symlink_to("..1")
    (folder / "steward.yaml").symlink_to("..data/steward.yaml")
    webhook = make_webhook("--config", folder / "steward.yaml")
    assert says(webhook, user())[0]
    (folder / "..data_tmp").symlink_to("..2")
    os.replace(folder / "..data_tmp", folder / "..data")
    wait.until("the new folder to count", lambda: not says(webhook, user())[0])


def test_invalid_configuration_stops_the_start(steward_binary, config):
    """steward does not start, and reports each error with its position."""
    config.write({**TARGET, "port": 0}, {**TARGET, "engine": "oracle"})
    for command in (["webhook", "--webhook-cert-path", config.path.parent],
                    ["validate", paths.SAMPLES]):
        result = subprocess.run([steward_binary, *command, "--config", config.path], text=True,
                                capture_output=True, timeout=60, check=False)
        assert result.returncode != 0
        for word in ("targets[0].port: Invalid value: 0: must be between 1 and 65535",
                     "targets[1].engine: Unsupported value:", "targets[1].name: Duplicate value:",
                     "steward.yaml:"):
            assert word in result.stderr.replace('\\"', '"'), word


def test_shipped_configuration_example_is_valid(steward_binary, tmp_path):
    """The commented list in config/manager/config.yaml is valid."""
    shipped = yaml.safe_load((paths.TOP / "config" / "manager" / "config.yaml").read_text("utf-8"))
    text = shipped["data"]["steward.yaml"]
    lines = text.splitlines()
    start = lines.index("# targets:")
    path = tmp_path / "steward.yaml"
    for content in (text, "\n".join(line.removeprefix("# ") for line in lines[start:])):
        path.write_text(content, "utf-8")
        result = subprocess.run([steward_binary, "validate", "--config", path, "-"], text=True,
                                input=json.dumps(user()), capture_output=True, timeout=60, check=False)
        assert result.returncode == 0, result
    assert "not configured" not in result.stdout


@pytest.mark.parametrize("password", [
    WORD, [WORD], {"name": [WORD]}, {"name": "s", WORD: WORD}], ids=["plain", "list", "name", "key"])
def test_plain_password_is_not_repeated(make_webhook, config, password):
    """Refused.  If the value itself is the password, it is repeated neither to the sender, whose
    error message may be logged, nor in a log or a metric of steward."""
    webhook = make_webhook("--config", config.path)
    obj = user(password=password)
    for path in (MUTATE, VALIDATE):
        _, reply = webhook.post(review(obj), path)
        if isinstance(password, (str, list)):
            assert not reply["response"]["allowed"]
            assert WORD not in json.dumps(reply)
            assert ("spec.password: Invalid value: must be an object {name, key} that names a "
                    "Secret; plain-text passwords are not accepted"
                    in reply["response"]["status"]["message"])
    assert WORD not in webhook.log_text()
    assert WORD not in net.http_get(f"http://127.0.0.1:{webhook.metrics_port}/metrics")[1]


def test_article_manifest_is_accepted_with_defaults(steward_binary, make_webhook, config):
    """The manifest that the kind is derived from is accepted, and gets defaults."""
    result = subprocess.run([steward_binary, "validate", "-"], text=True, input=dbu.SEED,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result
    assert "accepted" in result.stdout and "warning" not in result.stdout
    webhook = make_webhook("--config", config.path)
    _, reply = webhook.post(review(yaml.safe_load(dbu.SEED)), MUTATE)
    patch = json.loads(base64.b64decode(reply["response"]["patch"]))
    assert {op["path"]: op["value"] for op in patch} == {
        "/spec/password/trimNewline": False, "/spec/hosts": ["%"], "/spec/grantsPolicy": "Managed",
        "/spec/requireTLS": "None", "/spec/deletionPolicy": "Delete",
        "/spec/adoptionPolicy": "Fail", "/spec/resyncSeconds": 300}


@pytest.mark.parametrize("seed", [dbu.SEED_WITHOUT_TARGET, dbu.SEED_WITH_LABEL],
                         ids=["no label", "label"])
def test_article_manifest_uses_the_default_target(steward_binary, make_webhook, tmp_path, seed):
    """Without a label, the object belongs to the target that is the default; without one it is refused."""
    target = {"name": "main", "engine": "mariadb", "host": "db",
              "admin": {"user": "chief", "passwordFile": "/run/pw"}}
    for default in (True, False):
        path = tmp_path / f"{default}.yaml"
        path.write_text(yaml.safe_dump({"targets": [{**target, "default": default}]}), "utf-8")
        # The seed's metadata.label is unknown, which kubectl refuses unless --validate=false.
        result = subprocess.run([steward_binary, "validate", "--lenient", "--config", path, "-"],
                                text=True, input=seed, capture_output=True, timeout=60, check=False)
        assert (result.returncode == 0) == default, result
        assert default or 'label "target" must name a database target' in result.stdout
    webhook = make_webhook("--config", tmp_path / "True.yaml")
    _, reply = webhook.post(review(yaml.safe_load(seed)), MUTATE)
    patch = json.loads(base64.b64decode(reply["response"]["patch"]))
    assert {"op": "add", "path": "/metadata/labels", "value": {"target": "main"}} in patch


def test_deletion_warns_about_the_account(make_webhook, config):
    webhook = make_webhook("--config", config.path)
    old = {**user(), "status": {"account": "app@10.%", "target": "orders"}}
    assert says(webhook, None, old=old, operation="DELETE") == (
        True, ['account app@10.% is dropped from target "orders"'], "")
    old["spec"]["deletionPolicy"] = "Retain"
    allowed, warnings, _ = says(webhook, None, old=old, operation="DELETE")
    assert allowed and "stays on target" in warnings[0]


def test_deletion_webhook_never_blocks(steward_binary):
    """Deletions do not fail when steward is down."""
    printed = subprocess.run([steward_binary, "print", "webhooks"], text=True, capture_output=True,
                             timeout=60, check=True).stdout
    asked = set()
    for configuration in yaml.safe_load_all(printed):
        for webhook in (configuration or {}).get("webhooks", []):
            operations = {o for rule in webhook["rules"] for o in rule["operations"]}
            if "DELETE" in operations:
                asked |= {r for rule in webhook["rules"] for r in rule["resources"]}
                assert operations == {"DELETE"} and webhook["failurePolicy"] == "Ignore"
    assert asked == {"databaseusers", "etcdclusters"}
