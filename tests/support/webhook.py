# SPDX-License-Identifier: Apache-2.0
"""`steward webhook` on loopback, and TLS clients for it that can misbehave."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from . import cgroup, net, paths, wait

GROUP, VERSION, KIND, PLURAL = "operator.k8s-summit.org", "v1", "MyWeb", "mywebs"
VALIDATE = "/validate-operator-k8s-summit-org-v1-myweb"
MUTATE = "/mutate-operator-k8s-summit-org-v1-myweb"
JSON = {"Content-Type": "application/json"}


def make_pair(folder, name="localhost", days=2):
    """Writes tls.crt and tls.key into a folder, P-256, self-signed."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", str(days), "-subj", f"/CN={name}", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(folder / "tls.key"),
         "-out", str(folder / "tls.crt")], check=True, stderr=subprocess.DEVNULL)
    return folder


def my_web(name="web", **spec):
    """A valid MyWeb, unless `spec` makes it invalid."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND,
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"image": "nginx:1.25", "pageContentHtml": "<p>hello</p>", **spec}}


def review(obj=None, operation="CREATE", **more):
    """An AdmissionReview as a dict; `more` replaces members of the request."""
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55",
        "kind": {"group": GROUP, "version": VERSION, "kind": KIND},
        "resource": {"group": GROUP, "version": VERSION, "resource": PLURAL},
        "name": "web", "namespace": "shop", "operation": operation,
        "userInfo": {"username": "jane"},
        "object": my_web() if obj is None else obj, "oldObject": None, "dryRun": False, **more}}


class Webhook:
    """One `steward webhook` with a certificate folder of its own."""

    def __init__(self, binary, folder, args=(), join=None):
        self.certs = make_pair(folder / "certs")
        self.log_path = folder / "steward.log"
        self.binary, self.args, self.command = binary, list(args), ["webhook"]
        self.process, self.stopping, self.env, self.join = None, False, {}, join
        self.port = self.health_port = self.metrics_port = 0
        self.kept = None

    def open_log(self):
        """What its log is written to; closed by the caller."""
        return open(self.log_path, "wb")

    def start(self):
        """Starts it, reads its ports from the log, and waits until it is ready."""
        with self.open_log() as log:
            self.process = subprocess.Popen(
                [str(self.binary), *self.command, "--webhook-cert-path", str(self.certs),
                 "--webhook-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0",
                 "--metrics-bind-address", "127.0.0.1:0", "--log-format", "json", *self.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **self.env}, preexec_fn=self.join)

        def ports():
            if self.process.poll() is not None:
                raise RuntimeError(f"steward ended:\n{self.log_text()}")
            for entry in self.log():
                self.port = entry.get("port", self.port)
                self.health_port = entry.get("healthPort", self.health_port)
                self.metrics_port = entry.get("metricsPort", self.metrics_port)
            return self.port and self.health_port and self.is_up()
        wait.until("steward webhook to be ready", ports, 60)
        return self

    def is_up(self):
        """Whether it can be used, once its ports are known."""
        return self.readyz()[0] == 200

    def terminate(self):
        """Sends SIGTERM, once: a second one would end it at once."""
        if not self.stopping and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.stopping = True

    def stop(self, seconds=30):
        """Sends SIGTERM, and waits for the end; the exit status."""
        self.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"steward did not end:\n{self.log_text()}") from None

    def log_text(self):
        """Its log as text."""
        return self.log_path.read_text("utf-8", "replace")

    def log(self):
        """Its log lines as dicts."""
        lines = []
        for line in self.log_text().splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines

    def readyz(self):
        """(status, text)"""
        return net.http_get(f"http://127.0.0.1:{self.health_port}/readyz?verbose")

    def metrics_text(self):
        """/metrics as it is."""
        return net.http_get(f"http://127.0.0.1:{self.metrics_port}/metrics")[1]

    def metric(self, name, **labels):
        """The sum of all series of a metric that have these labels."""
        total = 0.0
        for line in self.metrics_text().splitlines():
            match = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name:
                found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                if all(found.get(k) == v for k, v in labels.items()):
                    total += float(match[3])
        return total

    # Clients

    def tcp(self, source="127.0.0.1", timeout=30):
        """A connection without TLS."""
        return socket.create_connection(("127.0.0.1", self.port), timeout, (source, 0))

    def tls(self, source="127.0.0.1", timeout=30):
        """A connection after the handshake, for raw bytes."""
        context = ssl.create_default_context(cafile=str(self.certs / "tls.crt"))
        return context.wrap_socket(self.tcp(source, timeout), server_hostname="localhost")

    def https(self, timeout=30):
        """A kept connection."""
        context = ssl.create_default_context(cafile=str(self.certs / "tls.crt"))
        return http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=context)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, parsed body) of one request on a connection of its own."""
        with contextlib.closing(self.https()) as connection:
            return ask(connection, method, path, body, headers)

    def keep(self):
        """Makes post() use one connection: with TLS a new one costs more than most reviews."""
        self.kept = self.https()
        return self

    def post(self, body, path=VALIDATE, headers=None):
        """(status, parsed body) of a review: bytes as they are, anything else as JSON."""
        if self.kept:
            status, _, reply = ask(self.kept, "POST", path, as_bytes(body), headers or JSON)
        else:
            status, _, reply = self.request("POST", path, as_bytes(body), headers or JSON)
        return status, reply


class PipedWebhook(Webhook):
    """`steward webhook` whose log is a pipe, read only when the test asks for its text."""

    def __init__(self, binary, folder, args=()):
        super().__init__(binary, folder, args)
        self.end, self.text = None, b""

    def open_log(self):
        self.end, other = os.pipe()
        os.set_blocking(self.end, False)
        return os.fdopen(other, "wb")

    def log_text(self):
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.end, 1 << 20):
                self.text += data
        return self.text.decode("utf-8", "replace")

    def drained(self):
        """Reads the log up to its end; its entries."""
        os.set_blocking(self.end, True)
        return self.log()


def as_bytes(body):
    """JSON, unless it is bytes already."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def ask(connection, method, path, body=None, headers=None):
    """One request on a kept connection: (status, headers, parsed body or None)."""
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    text = reply.read()
    return reply.status, dict(reply.getheaders()), json.loads(text) if text else None


def raw_post(body, path=VALIDATE, length=None):
    """The bytes of a POST; `length` is for a Content-Length that differs from the body's."""
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n").encode() + body


def read_reply(sock):
    """(status, body) from a raw connection; status 0 when it ended instead."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = _receive(sock)
        if not piece:
            return 0, b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        piece = _receive(sock)
        if not piece:
            break
        body += piece
    return int(head.split()[1]), body


def _receive(sock):
    try:
        return sock.recv(65536)
    except (ConnectionError, ssl.SSLError):
        return b""


def swap_pair(certs, other):
    """Installs the pair of another folder, the key first, each by a rename."""
    for name in ("tls.key", "tls.crt"):
        new = certs / f".{name}.new"
        shutil.copy(other / name, new)
        new.rename(certs / name)


@contextlib.contextmanager
def inside_limit(make):
    """make(join): a Webhook that runs in a cgroup with the shipped memory limit, less 32 MiB for the cache of
    10,000 objects that `run` would have; e2e/test_memory_attacks.py tests with these."""
    if paths.sanitizer():
        pytest.skip("a sanitizer takes more memory than the limit")
    with cgroup.limited(96 << 20) as group:
        one = make(group.join)
        try:
            yield one.start()
            assert one.process.poll() is None, "the process was ended"
        finally:
            if one.process and one.process.poll() is None:
                one.stop()


# The log line of this denial has some 600 bytes.
DENIED = as_bytes(review(my_web(nodePortNumber=1), name="n" * 250, userInfo={"username": "jane" * 30}))
DENIALS = 3000


def deny(webhook, times=DENIALS):
    """Sends reviews that are denied, each with a line in the log."""
    with contextlib.closing(webhook.https(timeout=10)) as connection:
        for _ in range(times):
            status, _, reply = ask(connection, "POST", VALIDATE, DENIED, JSON)
            assert status == 200 and not reply["response"]["allowed"]
