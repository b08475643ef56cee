# SPDX-License-Identifier: Apache-2.0
"""Between steward and an API server: lets everything through, and on demand ends all watches and
answers the next one of each resource with 410, as a server that has forgotten their resourceVersion.

It decrypts and encrypts again, so that it sees requests; answers pass as the server sent them.
"""

import contextlib
import json
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time

import yaml

GONE = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
                   "message": "too old resource version", "code": 410}).encode()


class Relay:
    """One relay on loopback; `api` is a support.rest.Api with its address and its CA."""

    def __init__(self, api, folder):
        self.host, self.port = api.url.rsplit(":", 1)
        self.trust, self.lock = api.tls, threading.Condition()
        self.watches = {}  # path of a collection: the socket that watches it
        self.armed, self.begun, self.took = set(), {}, {}
        key, self.cert = folder / "relay-key.pem", folder / "relay.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", self.cert,
                        "-days", "2", "-subj", "/CN=relay", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        self.server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server_tls.load_cert_chain(self.cert, key)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def kubeconfig(self, source, target):
        """A kubeconfig like `source` that leads through here."""
        config = yaml.safe_load(pathlib.Path(source).read_text("utf-8"))
        for cluster in config["clusters"]:
            cluster["cluster"] = {"server": f"https://127.0.0.1:{self.listener.getsockname()[1]}",
                                  "certificate-authority": str(self.cert)}
        target.write_text(json.dumps(config), "utf-8")
        target.chmod(0o600)
        return target

    def relist(self, seconds=120):
        """Has everything listed again; seconds that each resource took, from 410 to the next watch."""
        with self.lock:
            self.took, self.begun, self.armed = {}, {}, set(self.watches)
            wanted, watches = set(self.armed), list(self.watches.values())
        for watch in watches:
            with contextlib.suppress(OSError):
                watch.shutdown(socket.SHUT_RDWR)
        with self.lock:
            if not self.lock.wait_for(lambda: wanted <= set(self.took), seconds):
                raise RuntimeError(f"not listed again: {wanted - set(self.took)}")
            return dict(self.took)

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain):
        with contextlib.suppress(OSError, ValueError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.server_tls.wrap_socket(plain, server_side=True) as client:
                server = self.trust.wrap_socket(
                    socket.create_connection((self.host, int(self.port))), server_hostname=self.host)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with server:
                    requests, answers = client.makefile("rb"), server.makefile("rb")
                    while self._exchange(client, server, requests, answers):
                        pass

    def _exchange(self, client, server, requests, answers):
        """One request and its answer; False: the connection is over."""
        head, fields = _read_head(requests)
        if not head:
            return False
        body = requests.read(int(fields.get("content-length", 0)))
        target = head.split(b" ", 2)[1].decode()
        collection, watch = target.partition("?")[0], "watch=1" in target
        if watch and not self._let_watch(collection, client):
            client.sendall(b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(GONE), GONE))
            return True
        server.sendall(head + body)
        return _copy_answer(answers, client)

    def _let_watch(self, collection, client):
        with self.lock:
            if collection in self.armed:
                self.armed.discard(collection)
                self.begun[collection] = time.monotonic()
                return False
            self.watches[collection] = client
            if collection in self.begun:
                self.took[collection] = time.monotonic() - self.begun.pop(collection)
                self.lock.notify_all()
        return True


def _read_head(file):
    """(the bytes up to the blank line, {lower-case name: value})."""
    lines = [file.readline()]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(file.readline())
    if lines[-1] == b"":
        return b"", {}
    fields = (re.match(r"([^:]+):\s*(.*?)\s*$", line.decode("latin-1")) for line in lines[1:-1])
    return b"".join(lines), {m[1].lower(): m[2] for m in fields if m}


def _copy_answer(answers, client):
    head, fields = _read_head(answers)
    client.sendall(head)
    if fields.get("transfer-encoding") != "chunked":
        client.sendall(answers.read(int(fields.get("content-length", 0))))
        return bool(head)
    while True:
        size = answers.readline()
        data = answers.read(int(size, 16) + 2)
        client.sendall(size + data)
        if int(size, 16) == 0:
            return True
