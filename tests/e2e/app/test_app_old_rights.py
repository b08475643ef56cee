# SPDX-License-Identifier: Apache-2.0
"""A steward that was upgraded before its roles were."""

import pytest
import yaml

from support import app
from support import cluster as k8s
from support import steward as stw
from support.cluster import condition, is_ready

NEW_GROUPS = {"monitoring.coreos.com", "gateway.networking.k8s.io"}
ACCOUNT = "old-steward"


def old_rights(binary):
    """The roles of a version that knows neither of these groups, for an account of their own."""
    for obj in yaml.safe_load_all(k8s.run([binary, "print", "rbac"]).stdout):
        if obj["kind"] in ("ServiceAccount", "Namespace"):
            continue
        obj["metadata"]["name"] = "old-" + obj["metadata"]["name"]
        if "rules" in obj:
            obj["rules"] = [r for r in obj["rules"] if not NEW_GROUPS & set(r["apiGroups"])]
        if "roleRef" in obj:
            obj["roleRef"]["name"] = "old-" + obj["roleRef"]["name"]
            obj["subjects"][0]["name"] = ACCOUNT
        yield obj


@pytest.fixture
def old_account(installed, steward_binary, tmp_path):
    """A kubeconfig of such an account."""
    roles = list(old_rights(steward_binary))
    assert any("rules" in r for r in roles)
    installed.create_account(f"{stw.NAMESPACE}/{ACCOUNT}")
    installed.apply(roles)
    yield installed.kubeconfig_of(f"{stw.NAMESPACE}/{ACCOUNT}", tmp_path / "kubeconfig")
    for obj in roles:
        installed.delete(obj["kind"].lower(), obj["metadata"]["name"],
                         obj["metadata"].get("namespace"))
    installed.delete("serviceaccount", ACCOUNT, stw.NAMESPACE)


@pytest.mark.oldest("refusals of rights")
def test_missing_new_rights_do_not_stop_old_features(installed, namespace, old_account,
                                                     steward_binary, tmp_path):
    """It becomes ready, reconciles what the old roles allow, and names the right that it lacks."""
    stw.uninstall_webhooks(installed)
    one = stw.Steward(steward_binary, installed, old_account, tmp_path, name="old")
    one.start()
    try:
        installed.apply(app.manifest("web", namespace, metrics={"enabled": True}))
        ready = app.wait_ready(installed, "web", namespace)
        told = condition(ready, "MonitorSynced")
        assert (told["status"], told["reason"]) == ("False", "Forbidden")
        assert "may not list podmonitors.monitoring.coreos.com" in told["message"]
        installed.patch(app.KIND, "web", namespace, {"spec": {"httpRoute": {
            "gateway": {"name": "gw"}}}})
        found = installed.wait_for(app.KIND, "web", namespace,
                                   lambda o: condition(o, "RouteSynced").get("reason") == "Forbidden")
        assert "httproutes" in condition(found, "Ready")["message"]
        installed.patch(app.KIND, "web", namespace, {"spec": {"httpRoute": None}})
        installed.wait_for(app.KIND, "web", namespace, is_ready)
    finally:
        assert one.stop() == 0, one.log_tail()
