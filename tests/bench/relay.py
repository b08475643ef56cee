# SPDX-License-Identifier: Apache-2.0
"""A relay between steward and an API server.  On demand it ends every watch with the event that a
server sends when it no longer has the watch's resourceVersion.

It terminates TLS on both sides, so that it sees requests; answers pass unchanged.
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
import urllib.parse

import yaml

GONE = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                    "reason": "Expired", "message": "too old resource version",
                                    "code": 410}}


def _chunk(event):
    data = json.dumps(event).encode() + b"\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


class Watch:
    """A relayed watch: its client, and its connection to the server."""

    def __init__(self, client, server, version):
        self.client, self.server, self.version = client, server, version
        self.lock, self.ended = threading.Lock(), False

    def end(self):
        """Sends a bookmark, which makes the watch count as successful, then a 410 and the end."""
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": self.version}}}
        with self.lock, contextlib.suppress(OSError):
            self.client.sendall(_chunk(bookmark) + _chunk(GONE) + b"0\r\n\r\n")
            self.ended = True
            self.server.shutdown(socket.SHUT_RDWR)

    def send(self, data):
        """False: the answer to the client has already ended."""
        with self.lock:
            if not self.ended:
                self.client.sendall(data)
            return not self.ended


class Relay:
    """One relay on loopback; `api` is a support.rest.Api with the server's address and CA."""

    def __init__(self, api, folder):
        self.host, self.port = api.url.rsplit(":", 1)
        self.trust, self.lock = api.tls, threading.Condition()
        self.watches = {}  # path of a collection: its Watch
        self.begun, self.took = {}, {}
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
        """Writes a kubeconfig like `source` that points to this relay."""
        config = yaml.safe_load(pathlib.Path(source).read_text("utf-8"))
        for cluster in config["clusters"]:
            cluster["cluster"] = {"server": f"https://127.0.0.1:{self.listener.getsockname()[1]}",
                                  "certificate-authority": str(self.cert)}
        target.write_text(json.dumps(config), "utf-8")
        target.chmod(0o600)
        return target

    def relist(self, seconds=120):
        """Forces a relist of everything: {collection: seconds from its 410 to the next watch}."""
        with self.lock:
            self.took, ending, self.watches = {}, self.watches, {}
            self.begun = dict.fromkeys(ending, time.monotonic())
        for watch in ending.values():
            watch.end()
        with self.lock:
            if not self.lock.wait_for(lambda: set(ending) <= set(self.took), seconds):
                raise RuntimeError(f"not listed again: {set(ending) - set(self.took)}")
            return dict(self.took)

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain):
        with contextlib.suppress(OSError, ValueError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.server_tls.wrap_socket(plain, server_side=True) as client:
                requests = client.makefile("rb")
                while self._exchange(client, requests):
                    pass

    def _exchange(self, client, requests):
        """Relays one request and its answer; False: the connection must be closed."""
        head, fields = _read_head(requests)
        if not head:
            return False
        body = requests.read(int(fields.get("content-length", 0)))
        target = urllib.parse.urlsplit(head.split(b" ", 2)[1].decode())
        query = urllib.parse.parse_qs(target.query)
        plain = socket.create_connection((self.host, int(self.port)))
        with self.trust.wrap_socket(plain, server_hostname=self.host) as server:
            server.sendall(head + body)
            if "watch" not in query:
                return _copy_answer(server.makefile("rb"), client.sendall)
            watch = Watch(client, server, query["resourceVersion"][0])
            with contextlib.suppress(OSError, ValueError):
                return _copy_answer(server.makefile("rb"), watch.send,
                                    lambda: self._watching(target.path, watch))
            return watch.ended

    def _watching(self, collection, watch):
        with self.lock:
            self.watches[collection] = watch
            if collection in self.begun:
                self.took[collection] = time.monotonic() - self.begun.pop(collection)
                self.lock.notify_all()


def _read_head(file):
    """(the bytes up to the blank line, {lower-case name: value})."""
    lines = [file.readline()]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(file.readline())
    if lines[-1] == b"":
        return b"", {}
    fields = (re.match(r"([^:]+):\s*(.*?)\s*$", line.decode("latin-1")) for line in lines[1:-1])
    return b"".join(lines), {m[1].lower(): m[2] for m in fields if m}


def _copy_answer(answers, send, begun=lambda: None):
    head, fields = _read_head(answers)
    send(head)
    begun()
    if fields.get("transfer-encoding") != "chunked":
        send(answers.read(int(fields.get("content-length", 0))))
        return bool(head)
    while True:
        size = answers.readline()
        data = answers.read(int(size, 16) + 2)
        if send(size + data) is False or int(size, 16) == 0:
            return True
