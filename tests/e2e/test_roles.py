# SPDX-License-Identifier: Apache-2.0
"""--role: admission and controllers in separate processes."""

import re
import socket
import subprocess

import pytest
from support import myweb, wait

# The resources that the admission rules look up, and those that the certificate needs.
LOOKUPS = {"mywebs", "apps", "erus", "databaseusers", "etcdbackups", "services",
           "daemonsets/metadata",
           "deployments/metadata", "namespaces", "statefulsets/metadata"}
CERTIFICATE = {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}


def checks(steward):
    """The names of its readiness checks."""
    return set(re.findall(r"^\[\+\](\S+) ok$", steward.readyz()[1], re.MULTILINE))


def resources(steward):
    """The resources in its caches."""
    return set(re.findall(r'^steward_cache_objects\{resource="([^"]+)"\}', steward.metrics_text(),
                          re.MULTILINE))


@pytest.fixture
def webhook(run_steward):
    """A steward that only serves admission; --leader-elect has no effect on it."""
    return run_steward("--role=webhook", "--leader-elect", webhook=True)


def make(name, namespace, port):
    """A MyWeb with a fixed node port."""
    return {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"image": "nginx", "nodePortNumber": port}}


@pytest.mark.oldest("webhook calls, discovery")
def test_webhook_role_runs_without_controllers(webhook, installed, namespace):
    assert checks(webhook) >= {"webhook", "certificate", "caches"}
    assert resources(webhook) == LOOKUPS | CERTIFICATE
    assert "controller_runtime_active_workers{" not in webhook.metrics_text()
    assert "leader_election_master_status{" not in webhook.metrics_text()
    port = myweb.free_node_port(installed)
    installed.apply(make("first", namespace, port))

    def refused():
        reply = installed.apply(make("second", namespace, port), dry_run=True, check=False)
        return f"MyWeb {namespace}/first" in reply.stderr
    wait.until("the port to be taken", refused)
    assert "conditions" not in installed.get("myweb", "first", namespace).get("status", {})
    assert not installed.list("deployments", namespace)


def test_controller_role_runs_beside_webhook_role(webhook, installed, namespace, run_steward):
    installed.apply(make("site", namespace, myweb.free_node_port(installed)))
    controller = run_steward("--role=controller", "--leader-elect")
    assert "caches" in checks(controller) and "webhook" not in checks(controller)
    assert LOOKUPS < resources(controller)
    with socket.socket() as s, pytest.raises(OSError):
        s.connect(("127.0.0.1", controller.webhook_port))
    wait.until("the Deployment", lambda: installed.list("deployments", namespace))
    assert controller.metric("leader_election_master_status") == 1
    assert webhook.metric("controller_runtime_webhook_requests_total", code="200") > 0
    assert controller.stop() == 0
    assert webhook.readyz()[0] == 200


def test_unknown_role_is_an_error(steward_binary):
    result = subprocess.run([steward_binary, "run", "--role=web"], capture_output=True, text=True,
                            timeout=30, check=False)
    assert result.returncode == 2
    assert '--role: "web" is not all, webhook or controller' in result.stderr
