# SPDX-License-Identifier: Apache-2.0
"""An API server with a client certificate, as in docs/security.md, and one without."""

import os
import re
import subprocess

import pytest

from support import cluster as k8s
from support import paths
from support import steward as stw


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of docs/security.md with paths in this folder, a CA and a client certificate."""
    one = tmp_path_factory.mktemp("callers")
    text = (paths.TOP / "docs" / "security.md").read_text("utf-8")
    for name in ("admission.yaml", "webhooks.kubeconfig"):
        block = re.search(rf"```yaml\n# {name}\n(.*?)```", text, re.DOTALL)[1]
        block = re.sub(r"/etc/kubernetes/(pki/)?", f"{one}/", block)
        # Here the API server calls steward by URL, not through the Service.
        block = block.replace("steward-webhook-service.steward-system.svc", '"*"')
        (one / name).write_text(block, "utf-8")
    (one / "ext").write_text("extendedKeyUsage=clientAuth\n", "utf-8")
    openssl(one, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=webhooks", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(one, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver", "-keyout",
            "webhook-client.key", "-out", "client.csr")
    openssl(one, "x509", "-req", "-in", "client.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "webhook-client.crt")
    return one


@pytest.fixture(scope="module")
def showing(folder, steward_binary):
    """A cluster with steward's CRDs, whose API server presents the certificate."""
    if os.environ.get("USE_EXISTING_CLUSTER") == "true":
        pytest.skip("the API server of an existing cluster cannot be told")
    name = f"callers-{os.getpid()}"
    k8s.cluster_command(name, "up",
                        f"--apiserver-arg=--admission-control-config-file={folder}/admission.yaml")
    try:
        one = k8s.Cluster(k8s.cluster_env(name))
        stw.install(one, steward_binary)
        one.kubeconfig_steward = one.kubeconfig_of(stw.ACCOUNT, folder / "kubeconfig")
        yield one
    finally:
        k8s.cluster_command(name, "down")


def start(cluster, binary, folder, name, *flags):
    one = stw.Steward(binary, cluster, cluster.kubeconfig_steward, folder, flags, name=name)
    stw.install_webhooks(cluster, binary, one.webhook_port)
    return one.start()


@pytest.mark.oldest("the API server's client certificate for webhooks")
def test_api_server_with_client_certificate_is_accepted(showing, steward_binary, folder):
    one = start(showing, steward_binary, folder, "let-in",
                f"--webhook-client-ca-file={folder}/ca.crt",
                "--webhook-client-names=kube-apiserver")
    one.wait_webhook()
    assert one.metric("controller_runtime_webhook_requests_total", code="200") > 0
    # Only an authenticated caller gets warnings about the content of a Secret.
    showing.kubectl("create", "secret", "generic", "half", "--from-literal=peer.crt=hunter2")
    said = showing.apply({
        "apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
        "metadata": {"name": "told", "namespace": "default"},
        "spec": {"TLS": {"static": {"member": {"peerSecret": "half"}}}}},
        "--dry-run=server").stderr
    assert 'Warning: Secret "half" has no key "peer.key"' in said and "hunter2" not in said
    assert one.stop() == 0, one.log_tail()


def test_api_server_without_client_certificate_is_refused(installed, steward_binary, folder):
    one = start(installed, steward_binary, folder, "not-let-in",
                f"--webhook-client-ca-file={folder}/ca.crt")
    try:
        web = {"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
               "metadata": {"name": "x", "namespace": "default"},
               "spec": {"image": "nginx:1.22"}}

        def refused():
            reply = installed.apply(web, dry_run=True, check=False)
            return reply.returncode != 0 and "failed calling webhook" in reply.stderr
        stw.wait.until("the API server to fail", refused, 20)
        assert one.metric("controller_runtime_webhook_requests_total", code="200") == 0
    finally:
        stw.uninstall_webhooks(installed)
        assert one.stop() == 0, one.log_tail()
