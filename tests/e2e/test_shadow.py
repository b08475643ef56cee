# SPDX-License-Identifier: Apache-2.0
"""`steward run --shadow`: what a new version would write, from an account that can only read."""

import json

import pytest
import yaml

from support import app, databaseuser, myweb, wait
from support import cluster as k8s
from support import steward as stw

ACCOUNT = f"{stw.NAMESPACE}/steward-shadow"
SHADOW_USER = "system:serviceaccount:" + ACCOUNT.replace("/", ":")
READS = {"get", "list", "watch"}


@pytest.fixture(scope="module")
def reader(installed, steward_binary, tmp_path_factory):
    """A kubeconfig with the rights of `print rbac --shadow`."""
    installed.apply(k8s.run([steward_binary, "print", "rbac", "--shadow"]).stdout)
    return installed.kubeconfig_of(ACCOUNT, tmp_path_factory.mktemp("shadow") / "kubeconfig")


@pytest.fixture
def shadow(installed, steward_binary, reader):
    """shadow(namespace, *flags): (exit status, report) of one namespace."""
    def call(namespace, *flags, kubeconfig=None):
        result = k8s.run([steward_binary, "run", "--shadow", "-o", "json", "--kubeconfig",
                          kubeconfig or reader, "--namespace", stw.NAMESPACE, "--namespaces",
                          namespace, *flags], check=False, timeout=120)
        assert result.returncode in (0, 1, 2) and result.stdout, result.stderr
        return result.returncode, json.loads(result.stdout)
    return call


def requests_since(cluster, offset, user=None):
    """[(verb, uri)] of shadow stewards from the audit log, from this offset on: by their user, or of
    an administrator by the user agent."""
    found = []
    with open(cluster.audit_log, "rb") as log:
        log.seek(offset)
        for line in log:
            if not line.endswith(b"\n"):
                break
            entry = json.loads(line)
            ours = (entry["user"]["username"] == user if user else
                    entry.get("userAgent", "").startswith("steward/")
                    and entry["user"]["username"] not in (stw.USER, SHADOW_USER))
            if ours:
                found.append((entry["verb"], entry["requestURI"]))
    return found


def end_of(cluster):
    """The present size of the audit log."""
    with open(cluster.audit_log, "rb") as log:
        return log.seek(0, 2)


def versions(cluster, namespace):
    """The resourceVersions of all objects of the test; of Deployments, whose status others write,
    the generations."""
    kinds = (myweb.KIND, app.KIND, "deployments", "services", "configmaps", "secrets")
    return {(kind, o["metadata"]["name"]):
            o["metadata"]["generation" if kind == "deployments" else "resourceVersion"]
            for kind in kinds for o in cluster.list(kind, namespace)}


@pytest.fixture
def settled(installed, controller, namespace):
    """A namespace with objects that a steward, which is stopped now, has reconciled."""
    if not controller.running():
        controller.start()
    myweb.create_settled(installed, "site", namespace)
    app.create_ready(installed, "shop", namespace)
    stw.quiet_requests(installed, namespace)
    assert controller.stop() == 0
    return namespace


def of(report, resource):
    """The writes to a resource, by name."""
    return {w["name"]: w for w in report["writes"] if w["resource"] == resource}


@pytest.mark.oldest("reads, server-side apply")
def test_shadow_of_same_version_reports_no_changes(shadow, installed, settled):
    """A cluster that the same version has reconciled; proven by the API server's audit log."""
    before, offset = versions(installed, settled), end_of(installed)
    status, report = shadow(settled)
    assert (status, report["writes"], report["unknown"]) == (0, [], [])
    assert report["summary"] == {"writes": 0, "restarts": 0, "statuses": 0, "unknown": 0,
                                 "notShown": 0, "complete": True}
    made = wait.until("the audit log", lambda: [
        r for r in requests_since(installed, offset, SHADOW_USER) if "/mywebs" in r[1]] and
        requests_since(installed, offset, SHADOW_USER))
    assert {verb for verb, _ in made} <= READS
    assert versions(installed, settled) == before


@pytest.mark.oldest("reads, server-side apply")
def test_shadow_reports_pending_changes(shadow, installed, settled):
    """Another image, a page, a field that is no longer wanted, and a new object."""
    installed.patch(myweb.KIND, "site", settled, {"spec": {"image": "registry.invalid/none:2.0"}})
    installed.apply(myweb.manifest("new", settled))
    installed.patch("deployment", "shop", settled, {"spec": {"replicas": 2}})
    before, offset = versions(installed, settled), end_of(installed)
    status, report = shadow(settled)
    assert status == 1 and report["summary"]["complete"]
    deployments = of(report, "deployments")
    assert deployments["site"]["verb"] == "patch" and deployments["site"]["restartsPods"] is True
    assert "image" in deployments["site"]["fields"] and deployments["site"]["pods"] == 0
    assert deployments["new"]["verb"] == "create" and not deployments["new"]["restartsPods"]
    assert deployments["shop"]["fields"] == "spec.replicas"
    assert deployments["shop"]["restartsPods"] is False
    for resource in ("services", "configmaps"):  # the version of the image is a label
        assert {n: w["verb"] for n, w in of(report, resource).items()} == {"new": "create",
                                                                           "site": "patch"}
    assert report["summary"]["restarts"] == 1
    assert {w["subresource"] for w in report["writes"]} <= {"", "status"}
    assert versions(installed, settled) == before
    made = requests_since(installed, offset, SHADOW_USER)
    assert {verb for verb, _ in made} <= READS


def give_field(cluster, namespace, manager):
    """Makes an annotation of the pod template steward's, as if its former version had applied it."""
    live = cluster.get("deployment", "site", namespace)
    for entry in live["metadata"]["managedFields"]:
        if entry["manager"] == manager and entry["operation"] == "Apply":
            metadata = entry["fieldsV1"]["f:spec"]["f:template"].setdefault("f:metadata", {})
            metadata.setdefault("f:annotations", {})["f:older"] = {}
    return cluster.replace(live, check=False).returncode == 0


def test_shadow_reports_removed_fields(shadow, installed, settled):
    """The old version has applied a field of the pod template that the new one does not want."""
    old = installed.get("deployment", "site", settled)
    entry = next(m for m in old["metadata"]["managedFields"] if m["operation"] == "Apply")
    template = entry["fieldsV1"]["f:spec"]["f:template"]
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment",
              "metadata": {"name": "site", "namespace": settled},
              "spec": {"template": {"metadata": {"annotations": {"older": "1"}}}}}
    assert "older" not in json.dumps(template)
    path = f"/apis/apps/v1/namespaces/{settled}/deployments/site?fieldManager=older&force=true"
    installed.api.do("PATCH", path, wanted, "application/apply-patch+yaml")
    wait.until("the field to be steward's", lambda: give_field(installed, settled, entry["manager"]))
    status, report = shadow(settled)
    found = of(report, "deployments")["site"]
    assert status == 1 and found["restartsPods"] is True, report
    assert "spec.template.metadata.annotations.older" in found["fields"]


@pytest.mark.oldest("an administrator")
def test_shadow_writes_nothing_with_full_rights(shadow, installed, settled, steward_binary):
    """The rights of the account are not what prevents writes."""
    installed.delete("service", "site", settled)
    installed.patch(app.KIND, "shop", settled, {"spec": {"resources": {"requests": {"cpu": "7m"}}}})
    before, offset = versions(installed, settled), end_of(installed)
    status, report = shadow(settled, kubeconfig=installed.kubeconfig)
    assert status == 1
    assert of(report, "services")["site"]["verb"] == "create"
    assert of(report, "deployments")["shop"]["restartsPods"] is True
    made = wait.until("the audit log", lambda: requests_since(installed, offset))
    assert {verb for verb, _ in made} <= READS
    assert versions(installed, settled) == before
    result = k8s.run([steward_binary, "run", "--shadow", "--kubeconfig", installed.kubeconfig,
                      "--namespaces", settled], check=False, timeout=120)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert f"create  services {settled}/site" in lines
    assert f"patch   deployments.apps {settled}/shop  (pods restarted: 0)" in lines
    assert lines[-1].startswith("2 writes, of which 1 restart pods; "), lines


def test_shadow_does_not_contact_databases(shadow, installed, dbenv, mariadb, shop):
    """A DatabaseUser is reported as not followed, and its server gets no connection."""
    dbenv.create("app", shop)
    stw.quiet_requests(installed, shop)
    assert dbenv.steward.stop() == 0

    def connections():
        return int(mariadb.sql("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])
    first = connections()
    cost = connections() - first  # of asking
    before = connections()
    status, report = shadow(shop, "--config", str(dbenv.config))
    assert connections() - before == cost
    assert status == 0 and report["writes"] == [], report
    unknown = report["unknown"]
    assert [(u["kind"], u["key"]) for u in unknown] == [("DatabaseUser", f"{shop}/app")]
    assert "shadow mode does not ask" in unknown[0]["why"]
    dbenv.steward.start()


@pytest.mark.oldest("rights")
def test_shadow_without_rights_is_an_error(shadow, installed, steward_binary, namespace, tmp_path):
    """Without rights nothing is known, which is not reported as nothing to do."""
    installed.create_account(f"{namespace}/nobody")
    kubeconfig = installed.kubeconfig_of(f"{namespace}/nobody", tmp_path / "kubeconfig")
    status, report = shadow(namespace, "--shadow-timeout", "3s", kubeconfig=kubeconfig)
    assert (status, report["summary"]["complete"]) == (2, False)
    result = k8s.run([steward_binary, "run", "--shadow", "--role=webhook"], check=False)
    assert result.returncode == 2 and "--role=webhook" in result.stderr


def test_shadow_rights_are_read_only(steward_binary):
    text = k8s.run([steward_binary, "print", "rbac", "--shadow", "--namespaces", "a,b"]).stdout
    verbs = {line.strip() for line in text.splitlines() if line.strip() in (
        "- get", "- list", "- watch", "- create", "- update", "- patch", "- delete",
        "- deletecollection", "- \"*\"", "- '*'")}
    assert verbs == {"- get", "- list", "- watch"}
    # A namespace, whose UID is in the marks on database servers, cannot be read by a Role.
    roles = [o for o in yaml.safe_load_all(text) if o["kind"] == "ClusterRole"]
    assert [r["metadata"]["name"] for r in roles] == ["steward-shadow-cluster-id-role"]
    assert roles[0]["rules"] == [{"apiGroups": [""], "resources": ["namespaces"],
                                  "resourceNames": ["kube-system"], "verbs": ["get"]}]
    assert databaseuser.KIND.split(".", 1)[1] in text
