# SPDX-License-Identifier: Apache-2.0
"""`steward print` and `steward version`: their output is machine readable."""

import json
import re
import subprocess

import pytest
import yaml

from support import paths


@pytest.fixture
def steward_says(steward_binary):
    """steward_says(*args): standard output of a run that must succeed."""
    def run(*args):
        result = subprocess.run([steward_binary, *args], text=True, capture_output=True, timeout=60,
                                check=False)
        assert result.returncode == 0, result
        assert result.stderr == ""
        return result.stdout
    return run


def objects(text):
    """The documents of YAML text."""
    return [d for d in yaml.safe_load_all(text) if d]


def test_print_crds_is_valid(steward_says):
    crds = objects(steward_says("print", "crds"))
    assert "mywebs.operator.k8s-summit.org" in [c["metadata"]["name"] for c in crds]
    for crd in crds:
        assert crd["kind"] == "CustomResourceDefinition"
        version = crd["spec"]["versions"][0]
        assert version["subresources"]["status"] == {}
        assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] == "object"
        columns = [column["name"].upper() for column in version["additionalPrinterColumns"]]
        assert columns and len(set(columns)) == len(columns), columns  # kubectl shows them in upper case


def test_print_webhooks_by_service(steward_says):
    for configuration in objects(steward_says("print", "webhooks", "--namespace", "home")):
        for webhook in configuration["webhooks"]:
            service = webhook["clientConfig"]["service"]
            assert service["name"] == "steward-webhook-service"
            assert service["namespace"] == "home"
            assert service["path"].startswith(("/mutate-", "/validate-"))
            assert "caBundle" not in webhook["clientConfig"]


def test_print_webhooks_by_url(steward_says):
    text = steward_says("print", "webhooks", "--url=https://127.0.0.1:9443")
    mutating, validating = objects(text)
    assert mutating["webhooks"][0]["clientConfig"]["url"] == (
        "https://127.0.0.1:9443/mutate-operator-k8s-summit-org-v1-myweb")
    assert validating["webhooks"][0]["clientConfig"]["url"] == (
        "https://127.0.0.1:9443/validate-operator-k8s-summit-org-v1-myweb")
    assert validating["webhooks"][0]["failurePolicy"] == "Fail"


def test_match_conditions_exclude_objects_being_deleted(steward_says):
    asked = objects(steward_says("print", "webhooks", "--match-conditions"))
    plain = objects(steward_says("print", "webhooks"))
    for configuration in asked:
        for webhook in configuration["webhooks"]:
            conditions = webhook.pop("matchConditions", None)
            about_updates = "UPDATE" in webhook["rules"][0]["operations"]
            assert (conditions is not None) == about_updates, webhook["name"]
            assert not about_updates or "deletionTimestamp" in conditions[0]["expression"]
    assert asked == plain  # equal except for the conditions


def kinds_of(text):
    """(kind, namespace) of each document."""
    return [(o["kind"], o["metadata"].get("namespace")) for o in objects(text)]


def test_print_rbac_has_accounts_and_roles(steward_says):
    found = kinds_of(steward_says("print", "rbac"))
    assert ("ServiceAccount", "steward-system") in found
    assert ("Role", "steward-system") in found
    assert ("ClusterRole", None) in found


def test_namespaced_rbac_gives_no_right_elsewhere(steward_says):
    text = steward_says("print", "rbac", "--namespaces", "a,b", "--namespace", "home")
    found = kinds_of(text)
    assert {("Role", "a"), ("Role", "b"), ("Role", "home")} <= set(found)
    for role in objects(text):
        if role["kind"] == "ClusterRole":
            for rule in role["rules"]:
                assert rule["apiGroups"] == ["admissionregistration.k8s.io"] or rule == {
                    "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"],
                    "verbs": ["get"]}


def test_user_roles_cover_all_kinds(steward_says):
    """For all kinds; only steward may write a status, and the viewer role only reads."""
    crds = objects(steward_says("print", "crds"))
    plurals = {c["spec"]["names"]["plural"] for c in crds}
    roles = {r["metadata"]["name"]: r for r in objects(steward_says("print", "user-roles"))}
    for name, builtin in (("admin", "admin"), ("editor", "edit"), ("viewer", "view")):
        role = roles.pop(f"steward-{name}-role")
        label = f"rbac.authorization.k8s.io/aggregate-to-{builtin}"
        assert role["metadata"]["labels"][label] == "true"
        verbs = {r: set(rule["verbs"]) for rule in role["rules"] for r in rule["resources"]}
        assert plurals <= set(verbs)
        for resource, granted in verbs.items():
            assert "*" not in granted
            assert "/status" not in resource or granted == {"get"}
            assert name != "viewer" or granted <= {"get", "list", "watch"}
    assert roles == {}


def test_rbac_has_no_wildcards(steward_says):
    for role in objects(steward_says("print", "rbac")):
        for rule in role.get("rules") or []:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], rule


def test_rbac_cannot_delete_secrets(steward_says):
    """DatabaseUsers can name any Secret.  Certificates of EtcdClusters are created and renewed,
    which RBAC can only allow for all Secrets; the controller checks their owner."""
    writing = []
    for role in objects(steward_says("print", "rbac")):
        for rule in role.get("rules") or []:
            if "secrets" in rule["resources"] and not rule.get("resourceNames"):
                assert set(rule["verbs"]) <= {"create", "get", "list", "update", "watch"}, rule
                writing += [rule] if role["kind"] == "ClusterRole" and "update" in rule["verbs"] else []
    assert len(writing) == 1


def test_version_is_printed(steward_says):
    assert steward_says("version").startswith("steward 0.1.0\n")
    assert json.loads(steward_says("version", "-o", "json"))["version"] == "0.1.0"


@pytest.mark.parametrize("args", [
    ("--help",), ("run", "--help"), ("webhook", "--help"), ("validate", "--help"),
    ("print", "--help"), ("version", "--help")])
def test_help_is_printed(steward_says, args):
    assert "Usage: steward" in steward_says(*args)


@pytest.mark.parametrize("args, words", [
    ((), "Usage: steward COMMAND"),
    (("nonsense",), 'unknown command "nonsense"'),
    (("print",), "print what?"),
    (("print", "everything"), "print what?"),
    (("print", "webhooks", "--url", "http://x"), "https://"),
    (("run", "--log-level=loud"), "--log-level"),
    (("run", "--workers=0"), "workers"),
    (("run", "surplus"), "surplus"),
    (("webhook",), "--webhook-cert-path is needed"),
])
def test_wrong_arguments_are_an_error(steward_binary, args, words):
    result = subprocess.run([steward_binary, *args], text=True, capture_output=True, timeout=60,
                            check=False)
    assert result.returncode == 2, result
    assert words in result.stderr


def test_configuration_file_errors_name_the_line(steward_binary, tmp_path):
    path = tmp_path / "steward.yaml"
    path.write_text('logLevel: info\nlogFromat: json\n', encoding="utf-8")
    result = subprocess.run([steward_binary, "run", "--config", path], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.returncode == 2
    assert f"{path}:2" in result.stderr
    assert "logFromat" in result.stderr


def test_documented_options_exist(steward_says):
    text = (paths.TOP / "docs" / "operations.md").read_text("utf-8")
    known = "".join(steward_says(c, "--help") for c in ("run", "print", "uninstall", "audit",
                                                            "doctor", "validate", "top"))
    known += "".join(subprocess.run([paths.SCRIPTS / name, "--help"], text=True, capture_output=True,
                                    timeout=60, check=True).stdout for name in ("release", "image"))
    options = set(re.findall(r"`(--[a-z][a-z-]*)", text)) - {
        "--service-node-port-range", "--validate", "--server-side"}  # of the API server and of kubectl
    assert len(options) > 10
    assert [o for o in options if f"  {o}" not in known and f", {o}" not in known] == []


def test_every_option_of_run_is_documented(steward_says):
    text = (paths.TOP / "docs" / "operations.md").read_text("utf-8")
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", steward_says("run", "--help"),
                             re.MULTILINE))
    assert [o for o in options - {"--help"} if f"`{o}" not in text] == []
