# SPDX-License-Identifier: Apache-2.0
"""config/namespaced: steward with Roles in its namespaces, and no rights elsewhere."""

import json
import os

import pytest
import yaml
from support import cluster as k8s
from support import myweb, paths, wait
from support import steward as stw

pytestmark = pytest.mark.oldest("rights in single namespaces, watches of them")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with only config/namespaced applied; its steward runs as a process beside it."""
    with k8s.of_its_own(f"ns-{os.getpid()}", "--audit") as one:
        one.kubectl("apply", "-k", str(paths.TOP / "config" / "namespaced"))
        one.wait_established()
        one.delete("deployment", "steward-controller-manager", stw.NAMESPACE)
        one.create_namespace("elsewhere")
        stw.uninstall_webhooks(one)  # they call a Service without endpoints
        one.kubeconfig_steward = one.kubeconfig_of(stw.ACCOUNT,
                                                   tmp_path_factory.mktemp("k") / "kubeconfig")
        yield one


@pytest.fixture(scope="module")
def steward(cluster, steward_binary, tmp_path_factory):
    """With the shipped account and the flag of the overlay's Deployment."""
    args = deployment_args(cluster)
    assert "--namespaces=default" in args
    one = stw.Steward(steward_binary, cluster, cluster.kubeconfig_steward,
                      tmp_path_factory.mktemp("steward"), ["--leader-elect", "--namespaces=default"])
    stw.install_webhooks(cluster, steward_binary, one.webhook_port)
    one.start()
    one.wait_webhook()
    yield one
    stw.uninstall_webhooks(cluster)
    assert one.stop() == 0, one.log_tail()


def deployment_args(cluster):
    """The arguments of the overlay's Deployment."""
    text = cluster.kubectl("kustomize", str(paths.TOP / "config" / "namespaced")).stdout
    deployment = next(o for o in yaml.safe_load_all(text) if o["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_only_the_webhook_configurations_are_cluster_wide(cluster):
    """And the one namespace whose UID identifies the cluster, which is only read."""
    ours = {r["metadata"]["name"]: {(what, name, *rule["verbs"]) for rule in r["rules"]
                                    for what in rule["resources"] for name in rule["resourceNames"]}
            for r in cluster.list("clusterroles", selector="app.kubernetes.io/name=steward")}
    assert ours.pop("steward-cluster-id-role") == {("namespaces", "kube-system", "get")}
    assert list(ours) == ["steward-webhook-ca-role"]
    assert {rule[:2] for rule in ours["steward-webhook-ca-role"]} == {
        (kind + "s", name) for kind, name in stw.WEBHOOK_CONFIGURATIONS}
    for verb, what, where in (("list", "mywebs", "-A"), ("get", "secrets", "-nelsewhere"),
                              ("create", "deployments", "-nkube-system")):
        result = cluster.kubectl("auth", "can-i", verb, what, where, check=False,
                                 kubeconfig=cluster.kubeconfig_steward)
        assert result.stdout.strip() == "no", f"{verb} {what} {where}"


def test_steward_reconciles_only_its_namespaces(cluster, steward):
    cluster.apply([myweb.manifest("here", "default"), myweb.manifest("there", "elsewhere")])
    wait.until("the Deployment", lambda: cluster.get("deployment", "here", "default"), 20)
    bad = cluster.apply(myweb.manifest("bad", "elsewhere", nodePortNumber=1), check=False)
    assert "spec.nodePortNumber: Invalid value: 1" in bad.stderr  # the webhook is cluster-wide
    assert not cluster.list("deployments", "elsewhere")
    assert steward.readyz()[0] == 200
    for kind, name in stw.WEBHOOK_CONFIGURATIONS:
        hooks = cluster.get(kind, name)["webhooks"]
        assert all(h["clientConfig"].get("caBundle") for h in hooks)
    assert cluster.get("lease", "steward.steward.dev", stw.NAMESPACE)["spec"]["holderIdentity"]


def test_no_request_is_forbidden_or_cluster_wide(cluster, steward):
    """By the API server's audit log: lists and watches, too, are limited to the namespaces."""
    assert steward.running()
    asked = set()
    with open(cluster.audit_log, encoding="utf-8") as log:
        for line in log:
            entry = json.loads(line) if stw.USER in line and line.endswith("}\n") else {}
            if entry.get("user", {}).get("username") != stw.USER or "objectRef" not in entry:
                continue
            assert entry.get("responseStatus", {}).get("code") != 403, entry["requestURI"]
            where = entry["objectRef"].get("namespace")
            if not where:
                asked.add(entry["objectRef"]["resource"])
            else:
                assert where in ("default", stw.NAMESPACE), entry["requestURI"]
    asked -= {"selfsubjectaccessreviews"}  # from the test above
    assert asked == {kind + "s" for kind, _ in stw.WEBHOOK_CONFIGURATIONS}
