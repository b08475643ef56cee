# SPDX-License-Identifier: Apache-2.0
"""steward trusts an API server only by the kubeconfig's CA, not by those of the machine."""

import http.server
import json
import os
import ssl
import subprocess
import threading

import pytest

from support import wait

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a folder is mounted over another: root")


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")


@pytest.fixture
def folder(tmp_path):
    """The CAs "ours" and "theirs", a folder with both, and a server certificate of "theirs"."""
    for name in ("ours", "theirs"):
        authority(tmp_path, name)
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1\n", "utf-8")
    openssl(tmp_path, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout",
            "server.key", "-out", "server.csr")
    openssl(tmp_path, "x509", "-req", "-in", "server.csr", "-CA", "theirs.crt", "-CAkey",
            "theirs.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out",
            "server.crt")
    machine = tmp_path / "certs"
    machine.mkdir()
    for name in ("ours", "theirs"):
        (machine / f"{name}.pem").write_bytes((tmp_path / f"{name}.crt").read_bytes())
    openssl(tmp_path, "rehash", str(machine))
    return tmp_path


@pytest.fixture
def server(folder):
    """A server that records the requested paths and answers 404."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            self.send_error(404)

        def log_message(self, *args):
            pass

    one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    one.socket = context.wrap_socket(one.socket, server_side=True)
    one.handle_error = lambda *args: None
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield one
    one.shutdown()
    one.server_close()


@pytest.fixture
def run_against(steward_binary, folder, server):
    """Starts steward with this CA in its kubeconfig, on a machine that trusts both CAs."""
    started = []

    def run(ca):
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "clusters": [{"name": "c", "cluster": {
                      "server": f"https://127.0.0.1:{server.server_address[1]}",
                      "certificate-authority": str(folder / f"{ca}.crt")}}],
                  "users": [{"name": "u", "user": {"token": "x"}}],
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
        (folder / "kubeconfig").write_text(json.dumps(config), "utf-8")
        command = ("mount --bind certs /etc/ssl/certs && exec \"$0\" run --kubeconfig=kubeconfig "
                   "--metrics-bind-address=0 --health-probe-bind-address=0 "
                   "--webhook-bind-address=127.0.0.1:0 2>log")
        one = subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", command,
                                str(steward_binary)], cwd=folder)
        started.append(one)
        return folder / "log"

    yield run
    for one in started:
        one.terminate()
        one.wait(timeout=60)


def test_ca_of_the_kubeconfig_is_trusted(run_against, server):
    run_against("theirs")
    wait.until("a request", lambda: server.asked)


def test_cas_of_the_machine_are_not_trusted(run_against, server):
    log = run_against("ours")
    wait.until("the refusal", lambda: log.exists() and "certificate problem" in log.read_text())
    assert server.asked == []
