# SPDX-License-Identifier: Apache-2.0
"""Two S3-compatible servers (s3rver and versitygw, installed by scripts/bootstrap), and a proxy in
front of the first that can misbehave as stores do: down, slow, cut off, full, corrupting."""

import http.client
import os
import pathlib
import shutil
import subprocess
import time

from . import net, paths, served, started, versions, wait

ACCESS_KEY = SECRET_KEY = "S3RVER"  # the only account that it has
CREDENTIALS = f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
BUCKET = "backups"


def program():
    """The program's path, or None when it is not in the cache."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    found = sorted(cache.glob("steward/s3rver-*/node_modules/s3rver/bin/s3rver.js"))
    return found[-1] if found and shutil.which("node") else None


class S3:
    """The server, on loopback, with an empty bucket; its data is below `folder`."""

    def __init__(self, folder, bucket=BUCKET):
        self.folder, self.bucket = pathlib.Path(folder), bucket
        self.port = net.free_port()
        self.process = None

    def start(self):
        """Starts it, and waits until it answers."""
        with open(self.folder / "s3rver.log", "ab") as log:
            self.process = subprocess.Popen(
                ["node", program(), "--directory", self.folder / "data", "--address", "127.0.0.1",
                 "--port", str(self.port), "--no-vhost-buckets", "--configure-bucket", self.bucket],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait.until("s3rver to answer", lambda: net.http_get(f"http://127.0.0.1:{self.port}/")[0], 60)
        return self

    def stop(self):
        """Ends it; its data stays."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def objects(self):
        """{key: path of the file with its content} of the objects in the bucket."""
        top, suffix = self.folder / "data" / self.bucket, "._S3rver_object"
        return {str(path.relative_to(top))[:-len(suffix)]: path
                for path in top.rglob("*" + suffix) if path.is_file()}


class VersityGW:
    """A server that verifies signatures, the region and the checksums of bodies, on loopback, with an
    empty bucket; its data is below `folder`."""

    ACCESS_KEY, SECRET_KEY, REGION = "AKIDVERSITY", "sEcr3t/key+of=versity", "eu-west-9"
    CREDENTIALS = f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"

    def __init__(self, folder, bucket=BUCKET):
        self.data = pathlib.Path(folder) / "data"
        (self.data / bucket).mkdir(parents=True)
        (pathlib.Path(folder) / "attributes").mkdir()
        self.port = net.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        env = {"ROOT_ACCESS_KEY_ID": self.ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": self.SECRET_KEY}
        with open(f"{folder}/versitygw.log", "wb") as log:
            # Not every file system that tests run on has extended attributes.
            self.process = subprocess.Popen(
                [versitygw(), "--port", f"127.0.0.1:{self.port}", "--region", self.REGION, "posix",
                 "--sidecar", f"{folder}/attributes", self.data],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env)
        wait.until("versitygw to answer", lambda: net.http_get(f"{self.url}/")[0], 60)
        started.note("versitygw", versions.newest("VERSITYGW"))

    def stop(self):
        """Ends it; its data stays."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def versitygw():
    """The path of versitygw in the cache."""
    found = sorted(paths.cache_root().glob(f"versitygw-{versions.newest('VERSITYGW')}.r*/versitygw"))
    assert found, "no versitygw is here: run 'scripts/bootstrap etcd'"
    return found[-1]


class Proxy(served.Served):
    """Forwards requests to an S3, on an address of its own; `mode` sets how it behaves, from the
    next request on:

    fine    unchanged
    down    connections end before an answer
    broken  503 for everything
    slow    `pause` seconds before a request is forwarded, a tenth of it after each piece of body
    cut     an upload ends after the first `cut_bytes` of its body, without an answer
    full    507 for what stores something
    denied  403 for everything
    short   what is read back lacks its last byte, also in its size
    flipped one bit of what is read back differs

    With a pair (a folder of tls.crt and tls.key) it uses TLS.
    """

    def __init__(self, s3, address="127.0.0.1", pair=None):
        self.s3, self.mode, self.pause, self.cut_bytes = s3, "fine", 1.0, 64 << 10
        self.log = []  # (method, path) of every request
        super().__init__(_Handler, address=address, pair=pair)


class _Handler(served.Handler):
    HOP = ("connection", "transfer-encoding", "keep-alive", "expect")

    def _body(self):
        """The whole body; None when it is cut."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunks()
        left, parts = int(self.headers.get("Content-Length") or 0), []
        cut = self.server.mode == "cut" and self.command in ("PUT", "POST") and left
        while left:
            piece = self.rfile.read(min(left, 64 << 10))
            if not piece or cut and sum(map(len, parts)) + len(piece) >= min(
                    self.server.cut_bytes, left):
                return None
            parts.append(piece)
            left -= len(piece)
            if self.server.mode == "slow":
                time.sleep(self.server.pause / 10)
        return b"".join(parts)

    def _chunks(self):
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            piece = self.rfile.read(size)
            self.rfile.readline()
            if not size:
                return b"".join(parts)
            parts.append(piece)
            if self.server.mode == "cut":
                return None

    def _end(self):
        self.close_connection = True

    def _answer(self, status, headers, body):
        self.send_response_only(status)
        for key, value in headers:
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status, code):
        body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        self._answer(status, [("Content-Type", "application/xml"),
                              ("Content-Length", str(len(body)))], body)

    def _any(self):
        mode = self.server.mode
        self.server.log.append((self.command, self.path))
        if mode == "down":
            return self._end()
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        body = self._body()
        if body is None:
            return self._end()
        if mode == "slow":
            time.sleep(self.server.pause)
        stores = self.command == "PUT" or self.command == "POST" and "uploads" in self.path
        if mode == "broken":
            return self._refuse(503, "ServiceUnavailable")
        if mode == "denied":
            return self._refuse(403, "AccessDenied")
        if mode == "full" and stores:
            return self._refuse(507, "InsufficientStorage")
        self._pass_on(mode, body)

    def _pass_on(self, mode, body):
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.s3.port, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in self.HOP}
            upstream.request(self.command, self.path, body or None, headers)
            reply = upstream.getresponse()
            data = reply.read()
            kept = [(k, v) for k, v in reply.getheaders()
                    if k.lower() not in self.HOP + ("content-length",)]
            size = len(data)
            if self.command == "HEAD":
                size = int(reply.getheader("Content-Length") or 0)
            if mode in ("short", "flipped") and self.command in ("GET", "HEAD") and \
                    "?" not in self.path and reply.status in (200, 206) and size:
                if mode == "short":
                    size, data = size - 1, data[:-1]
                elif data:
                    data = data[:-1] + bytes([data[-1] ^ 1])
            if reply.status != 204:
                kept.append(("Content-Length", str(size)))
            self._answer(reply.status, kept, data)
        except OSError:
            self._end()
        finally:
            upstream.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _any
