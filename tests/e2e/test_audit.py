# SPDX-License-Identifier: Apache-2.0
"""`steward audit`: checks stored objects against the rules of admission, and writes nothing."""

import json

import pytest
import yaml
from support import cluster as k8s
from support import steward as stw

PORT_TAKEN = "Forbidden: node port 30421 is taken by MyWeb"


def myweb(name, namespace, port):
    """A MyWeb with a fixed node port."""
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"image": "nginx:1.22", "pageContentHtml": "hello", "nodePortNumber": port}}


def eru(name, namespace, schedule):
    """An Eru for a Deployment that does not exist."""
    return {"apiVersion": "mtsre.meitu.com/v1", "kind": "Eru",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"deploymentname": name, "schedule": schedule}}


@pytest.fixture(scope="module")
def no_webhook(installed):
    """No webhook is installed: the API server stores all that a test writes."""
    stw.uninstall_webhooks(installed)
    return installed


@pytest.fixture
def audit(no_webhook, steward_binary, namespace):
    """audit(*arguments): audits the test's namespace, with the account of steward."""
    def call(*arguments):
        return k8s.run([steward_binary, "audit", "--kubeconfig", no_webhook.kubeconfig_steward,
                        "-n", namespace, *arguments], check=False)
    return call


def test_valid_objects_have_no_findings(audit, no_webhook, namespace):
    no_webhook.apply(myweb("site", namespace, 0))
    result = audit("--quiet")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "1 object: 0 would be refused today, 0 with warnings only, 1 fine\n"


def test_findings_are_those_of_admission(audit, no_webhook, namespace):
    no_webhook.apply([myweb("a", namespace, 30421), myweb("b", namespace, 30421),
                      myweb("c", namespace, 80), eru("e", namespace, "61 * * * *")])
    before = no_webhook.list("mywebs", namespace)
    result = audit()
    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    for line in (f"MyWeb {namespace}/a: error: spec.nodePortNumber: {PORT_TAKEN} {namespace}/b",
                 f"MyWeb {namespace}/b: error: spec.nodePortNumber: {PORT_TAKEN} {namespace}/a",
                 f"MyWeb {namespace}/c: error: spec.nodePortNumber: Invalid value: 80: must be 0 or"
                 " between 30000 and 32767",
                 f"Eru {namespace}/e: warning: Deployment \"e\" not found; nothing is restarted"
                 " until it is there"):
        assert line in lines
    assert any(line.startswith(f"Eru {namespace}/e: error: spec.schedule: Invalid value:")
               for line in lines)
    assert lines[-1] == "4 objects: 4 would be refused today, 0 with warnings only, 0 fine"
    assert no_webhook.list("mywebs", namespace) == before


def test_json_report_lists_findings(audit, no_webhook, namespace):
    no_webhook.apply([myweb("a", namespace, 80), eru("e", namespace, "61 * * * *")])
    result = audit("-o", "json", "myweb")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert report["summary"] == {"objects": 1, "refused": 1, "warned": 0, "fine": 0,
                                 "unreadable": 0}
    error = next(f for f in report["findings"] if f["severity"] == "error")
    assert error == {"severity": "error", "apiVersion": "operator.k8s-summit.org/v1",
                     "kind": "MyWeb", "namespace": namespace, "name": "a",
                     "field": "spec.nodePortNumber", "reason": "FieldValueInvalid",
                     "message": "Invalid value: 80: must be 0 or between 30000 and 32767"}


@pytest.mark.oldest("lists in pages")
def test_objects_of_all_list_pages_are_checked(audit, no_webhook, namespace):
    """A page of a list has 250 objects."""
    no_webhook.apply(yaml.safe_dump_all([myweb(f"m{i}", namespace, 0) for i in range(260)] +
                                        [myweb("bad", namespace, 80)]))
    result = audit("--quiet", "mywebs")
    assert result.returncode == 1
    assert result.stdout.startswith(f"MyWeb {namespace}/bad: error: ")
    assert "\n261 objects: 1 would be refused today," in result.stdout


def test_shared_account_and_missing_secret_are_reported(audit, no_webhook, namespace, tmp_path):
    """The database targets come from a file here.  Two DatabaseUsers for one account are both
    reported, and a missing Secret is a warning."""
    config = tmp_path / "steward.yaml"
    config.write_text("targets:\n- {name: main, engine: mariadb, host: db, "
                      "admin: {user: root, passwordFile: /nowhere}}\n", encoding="utf-8")
    users = [{"apiVersion": "handsomeguy.cn/v1alpha1", "kind": "DatabaseUser",
              "metadata": {"name": name, "namespace": namespace, "labels": {"target": target}},
              "spec": {"user": "shop", "password": {"name": "pw", "key": "password"}}}
             for name, target in (("one", "main"), ("two", "main"), ("three", "other"))]
    no_webhook.apply(users)
    result = audit("--config", config)
    assert result.returncode == 1, result.stderr
    assert (f"DatabaseUser {namespace}/one: error: spec.user: Forbidden: account already managed by"
            f" DatabaseUser {namespace}/two\n") in result.stdout
    assert f'DatabaseUser {namespace}/three: warning: target "other" ' in result.stdout
    for name in ("two", "three"):
        no_webhook.delete("databaseuser", name, namespace)
    result = audit("--config", config)
    assert result.returncode == 0, result.stdout
    assert f'DatabaseUser {namespace}/one: warning: Secret "pw" not found;' in result.stdout


@pytest.mark.oldest("rights")
def test_missing_rights_are_an_error(no_webhook, steward_binary, namespace, tmp_path):
    no_webhook.create_account(f"{namespace}/nobody")
    kubeconfig = no_webhook.kubeconfig_of(f"{namespace}/nobody", tmp_path / "kubeconfig")
    result = k8s.run([steward_binary, "audit", "--kubeconfig", kubeconfig], check=False)
    assert result.returncode == 2
    assert "steward audit: cannot read mywebs: " in result.stderr
    assert "Not everything could be read" in result.stdout


@pytest.mark.parametrize("arguments, text", [
    (["pods"], '"pods" is not one of its kinds'),
    (["-o", "yaml"], "--output is text or json"),
    (["--kubeconfig", "/nowhere"], "/nowhere"),
])
def test_wrong_arguments_are_an_error(steward_binary, arguments, text):
    result = k8s.run([steward_binary, "audit", *arguments], check=False)
    assert result.returncode == 2
    assert text in result.stderr
