# SPDX-License-Identifier: Apache-2.0
"""config/ is what the program prints, and a cluster takes it."""

import itertools
import json
import subprocess

import pytest
import yaml

from support import paths
from support import steward as stw


def kustomized(cluster, folder):
    """The objects of `kubectl kustomize config/FOLDER`."""
    text = cluster.kubectl("kustomize", str(paths.TOP / "config" / folder)).stdout
    return [o for o in yaml.safe_load_all(text) if o]


@pytest.mark.parametrize("folder", ["crd", "rbac", "webhook", "manager", "network-policy",
                                    "prometheus", "default", "server-1.20", "server-1.21",
                                    "server-1.29"])
def test_kustomize(cluster, folder):
    assert kustomized(cluster, folder)


def test_a_cluster_takes_it(installed):
    try:
        result = installed.kubectl("apply", "-k", str(paths.TOP / "config" / "default"))
        assert "deployment.apps/steward-controller-manager created" in result.stdout
        for obj in kustomized(installed, "default"):
            assert installed.get(obj["kind"], obj["metadata"]["name"],
                                 obj["metadata"].get("namespace")), obj["metadata"]
    finally:
        stw.uninstall_webhooks(installed)
        installed.delete("deployment", "steward-controller-manager", stw.NAMESPACE)
        installed.delete("service", "steward-webhook-service", stw.NAMESPACE)
        installed.delete("service", "steward-metrics-service", stw.NAMESPACE)


def test_the_deployment_starts_steward_as_it_can_be(cluster, steward_binary):
    """Its flags exist, its ports are the defaults, its grace outlasts a shutdown."""
    deployment = next(o for o in kustomized(cluster, "manager") if o["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    result = subprocess.run([steward_binary, *container["args"], "--help"], capture_output=True,
                            text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
    for port in container["ports"]:
        assert f":{port['containerPort']}" in result.stdout
    assert pod["terminationGracePeriodSeconds"] >= 5 + 20 + 10


def rules(role):
    """Each (group, resource, verb) that a role allows."""
    for rule in role.get("rules") or []:
        yield from itertools.product(rule.get("apiGroups", []), rule.get("resources", []),
                                     rule["verbs"])


def test_the_account_may_do_no_more_than_its_roles_say(installed):
    """It makes pods and certificates for EtcdClusters, and gives rights to nobody."""
    for verb, what in (("patch", "secrets"), ("delete", "secrets"), ("deletecollection", "pods"),
                       ("create", "pods --subresource=exec"), ("get", "nodes"),
                       ("create", "serviceaccounts --subresource=token"), ("impersonate", "users"),
                       ("delete", "namespaces"),
                       ("create", "clusterrolebindings"), ("escalate", "clusterroles")):
        result = installed.kubectl("auth", "can-i", verb, *what.split(), "-n", "kube-system",
                                   check=False, kubeconfig=installed.kubeconfig_steward)
        assert result.stdout.strip() == "no", f"{verb} {what}"


def test_user_roles_are_part_of_the_built_in_ones(installed):
    installed.kubectl("apply", "-k", str(paths.TOP / "config" / "rbac"))
    granted = set(rules(json.loads(
        installed.kubectl("get", "clusterrole", "view", "-o", "json").stdout)))
    assert ("operator.k8s-summit.org", "mywebs", "get") in granted
