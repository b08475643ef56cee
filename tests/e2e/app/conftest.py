# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of Apps."""

import pytest
from support import hooks, wait


@pytest.fixture
def hook(installed, namespace, tmp_path):
    """hook(answer, name): from then on the API server asks `answer` about each update of a Deployment
    here, of which this name is one."""
    served = hooks.Hooks(None, tmp_path)
    configuration = f"{namespace}-deployments"

    def start(answer, name):
        served.answers["/"] = answer
        installed.kubectl("label", "namespace", namespace, f"hook={namespace}")
        installed.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": configuration}, "webhooks": [{
                "name": "deployments.test.steward.dev", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "failurePolicy": "Fail",
                "namespaceSelector": {"matchLabels": {"hook": namespace}},
                "clientConfig": {"url": served.url + "/", "caBundle": served.bundle},
                "rules": [{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                           "resources": ["deployments"]}]}]})
        wait.until("the API server to use the hook", lambda: installed.patch(
            "deployment", name, namespace, {"metadata": {"annotations": {
                "example.com/probe": f"{len(served.calls)}"}}}) and served.calls)
    yield start
    installed.kubectl("delete", "validatingwebhookconfiguration", configuration, "--ignore-not-found")
    served.end()
