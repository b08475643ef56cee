# SPDX-License-Identifier: Apache-2.0
"""Kubeconfigs as clouds write them, against a real API server: credential plugins, users to act as."""

import base64
import json
import os
import pathlib
import subprocess

import pytest
import yaml
from support import cluster as k8s
from support import steward as stw
from support import wait

AUTH = "client.authentication.k8s.io/"
SECRET = "never-to-be-seen"


@pytest.fixture(scope="module")
def no_webhook(installed):
    """No webhook is installed."""
    stw.uninstall_webhooks(installed)
    return installed


@pytest.fixture
def login(no_webhook, steward_binary, namespace, tmp_path):
    """login(user): runs an audit of the test's namespace with a kubeconfig that has this user.
    Its output never has the secret, nor does the help or an error."""
    admin = yaml.safe_load(pathlib.Path(no_webhook.kubeconfig).read_text("utf-8"))

    def call(user, command="audit", env=None):
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps({**admin, "users": [{"name": "admin", "user": user}]}), "utf-8")
        more = ["-n", namespace] if command == "audit" else []
        done = k8s.run([steward_binary, command, "--kubeconfig", path, *more], check=False,
                       stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        assert SECRET not in done.stdout + done.stderr
        return done
    call.token = admin["users"][0]["user"]["token"]
    return call


@pytest.fixture
def plugin(tmp_path):
    """plugin(script, version, **fields): a user whose plugin is this shell script."""
    def make(script, version="v1", **fields):
        path = tmp_path / "plugin"
        path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        path.chmod(0o700)
        return {"exec": {"apiVersion": AUTH + version, "command": "./plugin",
                         "interactiveMode": "Never", **fields}}
    return make


def answer(version="v1", **status):
    """A script that prints an ExecCredential."""
    text = json.dumps({"apiVersion": AUTH + version, "kind": "ExecCredential", "status": status})
    return f"cat <<'END'\n{text}\nEND"


@pytest.mark.oldest("authentication")
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_plugin_token_is_used(login, plugin, version):
    done = login(plugin(answer(version, token=login.token), version))
    assert done.returncode == 0, done
    assert "0 objects" in done.stdout
    refused = login(plugin(answer(version, token=SECRET), version))
    assert refused.returncode == 2
    assert "401" in refused.stderr or "Unauthorized" in refused.stderr, refused.stderr


@pytest.mark.oldest("authentication")
def test_plugin_client_certificate_is_used(login, plugin, no_webhook, tmp_path):
    """As GKE and Teleport return them; the certificate is issued by the cluster."""
    name = f"plugin-{os.getpid()}"
    k8s.run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "csr",
             "-subj", "/O=steward-tests/CN=anna"], cwd=tmp_path)
    no_webhook.apply({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                      "metadata": {"name": name},
                      "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                               "request": base64.b64encode((tmp_path / "csr").read_bytes()).decode()}})
    no_webhook.kubectl("certificate", "approve", name)
    certificate = wait.until("the certificate", lambda: (no_webhook.get(
        "certificatesigningrequest", name)["status"] or {}).get("certificate"), 60)
    no_webhook.delete("certificatesigningrequest", name)
    script = answer(clientCertificateData=base64.b64decode(certificate).decode(),
                    clientKeyData=(tmp_path / "key").read_text("utf-8"))
    done = login(plugin(script))
    assert done.returncode == 2
    assert 'User "anna" cannot list' in done.stderr, done.stderr  # authenticated, without rights


@pytest.mark.oldest("impersonation")
def test_impersonated_user_is_sent(login, no_webhook):
    user = {"token": login.token, "as": "berta"}
    done = login(user)
    assert done.returncode == 2
    assert 'User "berta" cannot list' in done.stderr, done.stderr
    done = login({**user, "as-groups": ["system:masters"], "as-user-extra": {"Why/not%": ["a", "b"]}})
    assert done.returncode == 0, done
    if no_webhook.minor() >= 22:
        assert login({**user, "as-groups": ["system:masters"], "as-uid": "7"}).returncode == 0


@pytest.mark.oldest("impersonation")
def test_plugin_login_can_impersonate(login, plugin):
    done = login({**plugin(answer(token=login.token)), "as": "carla"})
    assert 'User "carla" cannot list' in done.stderr, done.stderr


def test_plugin_receives_cluster_info_arguments_and_env(login, plugin, no_webhook, tmp_path):
    script = f"printf %s \"$KUBERNETES_EXEC_INFO|$A|$1\" > {tmp_path}/told\n" + answer(token=login.token)
    done = login(plugin(script, provideClusterInfo=True, args=["-x"], env=[{"name": "A", "value": "b"}]))
    assert done.returncode == 0, done
    info, variable, argument = (tmp_path / "told").read_text("utf-8").split("|")
    info = json.loads(info)
    cluster = yaml.safe_load(pathlib.Path(no_webhook.kubeconfig).read_text("utf-8"))["clusters"][0]["cluster"]
    assert (variable, argument, info["apiVersion"], info["spec"]["interactive"]) == ("b", "-x", AUTH + "v1", False)
    assert info["spec"]["cluster"]["server"] == cluster["server"]
    assert (base64.b64decode(info["spec"]["cluster"]["certificate-authority-data"])
            == base64.b64decode(cluster["certificate-authority-data"]))


@pytest.mark.parametrize("script, words", [
    (f"echo {SECRET}", "printed something that is not JSON"),
    (f"echo {SECRET} >&2; echo {SECRET}; exit 3", "failed with status 3"),
    (f"yes {SECRET}", "printed more than"),
    ("read answer || exit 4", "failed with status 4"),
    (":", "printed nothing"),
    ("kill -9 $$", "was ended by signal 9"),
])
@pytest.mark.parametrize("command", ["audit", "doctor", "uninstall"])
def test_failing_plugin_is_reported(login, plugin, command, script, words):
    done = login(plugin(script), command)
    assert done.returncode == 2, done
    assert words in done.stdout + done.stderr


def test_missing_plugin_shows_the_install_hint(login):
    done = login({"exec": {"apiVersion": AUTH + "v1", "command": "no-such-plugin", "interactiveMode": "Never",
                           "installHint": "see https://example.com/plugin"}})
    assert done.returncode == 2
    assert "no-such-plugin is not installed: see https://example.com/plugin" in done.stderr


def test_server_does_not_run_plugins(no_webhook, steward_binary, plugin, tmp_path):
    """The writer of a kubeconfig would decide what is run in the pod."""
    admin = yaml.safe_load(pathlib.Path(no_webhook.kubeconfig).read_text("utf-8"))
    user = plugin(f"touch {tmp_path}/was-run")
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({**admin, "users": [{"name": "admin", "user": user}]}), "utf-8")
    done = k8s.run([steward_binary, "run", "--kubeconfig", path], check=False, timeout=60)
    assert done.returncode != 0
    assert "credential plugins are not run here" in done.stdout + done.stderr
    assert not (tmp_path / "was-run").exists()
