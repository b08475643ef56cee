# SPDX-License-Identifier: Apache-2.0
"""Registries of images: a double, with the answers of a test, and Debian's docker-registry."""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import urllib.request

from . import net, served, wait

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
_PATH = re.compile(r"/v2/(.+)/manifests/(.+)")


def digest_of(data):
    """The digest of a blob or manifest."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Double(served.Served):
    """`tags` is {"name:tag": digest}; `requests` has (method, path, headers).  `fault(handler)` may
    answer instead, and returns True then.  With `token`, that token is required; `realm` names its server."""

    def __init__(self, tags=None, port=0, token=None, realm=None):
        self.tags, self.token, self.realm = dict(tags or {}), token, realm
        self.requests, self.connections = [], 0
        self.fault = lambda handler: False
        super().__init__(_Handler, port=port)

    @property
    def host(self):
        """HOST:PORT, as in images."""
        return f"127.0.0.1:{self.server_address[1]}"

    def get_request(self):
        """Counts connections."""
        self.connections += 1
        return super().get_request()

    def heads(self):
        """What was asked: "name:tag" of each HEAD of a manifest."""
        found = (_PATH.fullmatch(p) for m, p, _ in self.requests if m == "HEAD")
        return [f"{m[1]}:{m[2]}" for m in found if m]


class _Handler(served.Handler):
    def _answer(self):
        server = self.server
        server.requests.append((self.command, self.path, dict(self.headers)))
        if server.fault(self):
            return
        if self.path.startswith("/token?"):
            self.reply(200, body=json.dumps({"token": server.token}).encode())
            return
        found = _PATH.fullmatch(self.path)
        digest = server.tags.get(f"{found[1]}:{found[2]}") if found else None
        if server.token and self.headers.get("Authorization") != f"Bearer {server.token}":
            self.reply(401, {"WWW-Authenticate":
                             f'Bearer realm="{server.realm}",service="double",scope="all"'})
        elif digest:
            self.reply(200, {"Docker-Content-Digest": digest, "Content-Type": INDEX})
        else:
            self.reply(404)

    do_HEAD = do_GET = _answer  # noqa: N815


# --- the real one


def program():
    """Debian's docker-registry, or None."""
    return shutil.which("docker-registry")


class Real:
    """docker-registry on loopback, with its data in `folder`."""

    def __init__(self, folder, port=None):
        self.port = port or net.free_port()
        self.folder, self.process = folder, None
        self.config = folder / "config.yml"
        self.config.write_text(json.dumps({
            "version": 0.1, "log": {"level": "warn", "accesslog": {"disabled": False}},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": f"127.0.0.1:{self.port}"}}), encoding="utf-8")

    @property
    def host(self):
        """HOST:PORT, as in images."""
        return f"127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def serve(self):
        """Runs it."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([program(), "serve", self.config], stdout=log, stderr=log)
        try:
            wait.until("the registry", lambda: net.http_get(f"http://{self.host}/v2/")[0] == 200, 30)
            yield self
        finally:
            self.process.kill()
            self.process.wait()

    def _send(self, method, url, data, kind):
        request = urllib.request.Request(url, data=data, method=method,
                                         headers={"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.headers

    def _push_blob(self, name, data):
        base = f"http://{self.host}/v2/{name}/blobs/uploads/"
        at = self._send("POST", base, b"", "application/octet-stream")["Location"]
        self._send("PUT", f"{at}&digest={digest_of(data)}", data, "application/octet-stream")
        return {"digest": digest_of(data), "size": len(data)}

    def push(self, name, tag, content):
        """Pushes an image whose only layer is `content`; its digest."""
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {
            "type": "layers", "diff_ids": [digest_of(content)]}}).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                       **self._push_blob(name, config)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar",
                        **self._push_blob(name, content)}]}).encode()
        self._send("PUT", f"http://{self.host}/v2/{name}/manifests/{tag}", manifest, MANIFEST)
        return digest_of(manifest)
