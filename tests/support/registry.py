# SPDX-License-Identifier: Apache-2.0
"""A registry on this machine, from which the node pulls images that it already has: manifests that
name a tag such as nginx:latest are always pulled.  Read-only, as the OCI distribution specification
says, with the images as containerd exports them."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import tarfile
import threading

from . import cluster as k8s

MANIFEST = re.compile(r"/v2/(.+)/manifests/(.+)")
BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:[0-9a-f]{64})")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        """The API version, a manifest or a blob; the requests that are read-only."""
        found = self.server.registry.find(self.path.split("?")[0])
        kind, path = found if found else ("application/json", None)
        body = path.read_bytes() if path else b'{"errors":[{"code":"NAME_UNKNOWN"}]}'
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if path:
            self.send_header("Docker-Content-Digest", f"sha256:{path.name}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format, *args):  # noqa: A002
        """Keeps the paths of the requests for the test."""
        self.server.registry.requests.append(self.path)


class Registry:
    """Serves the tags of `tags`, {"library/nginx:latest": "docker.io/library/nginx:1.22"}: by the
    image's name on the node."""

    def __init__(self, cluster, folder, tags):
        self.node = pathlib.Path(cluster.env["STEWARD_CLUSTER_DIR"]) / "node"
        self.folder, self.tags, self.requests = folder, {}, []
        for number, (tag, image) in enumerate(tags.items()):
            self.tags[tag] = self._export(image, folder / f"{number}.tar")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.registry = self

    def _export(self, image, tar):
        """Unpacks the blobs of an image; its (media type, digest)."""
        k8s.run(["ctr", "--address", self.node / "containerd.sock", "--namespace", "k8s.io",
                 "images", "export", tar, image])
        with tarfile.open(tar) as archive:
            archive.extractall(self.folder, filter="data")
        os.unlink(tar)
        [one] = json.loads((self.folder / "index.json").read_text("utf-8"))["manifests"]
        return one["mediaType"], one["digest"]

    def find(self, path):
        """(media type, file) of what a path names; None: there is nothing."""
        manifest, blob = MANIFEST.fullmatch(path), BLOB.fullmatch(path)
        if blob:
            file = self.folder / "blobs" / "sha256" / blob[2].removeprefix("sha256:")
            return ("application/octet-stream", file) if file.exists() else None
        if not manifest:
            return None
        for tag, (kind, digest) in self.tags.items():
            if tag == f"{manifest[1]}:{manifest[2]}" or (
                    manifest[2] == digest and tag.startswith(f"{manifest[1]}:")):
                return kind, self.folder / "blobs" / "sha256" / digest.removeprefix("sha256:")
        return None

    @contextlib.contextmanager
    def serve(self, host="docker.io"):
        """The node pulls images of `host` from here."""
        hosts = self.node / "registries" / host
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        hosts.mkdir()
        address = f"http://127.0.0.1:{self.server.server_port}"
        (hosts / "hosts.toml").write_text(
            f'server = "{address}"\n[host."{address}"]\n', encoding="utf-8")
        try:
            yield self
        finally:
            (hosts / "hosts.toml").unlink()
            hosts.rmdir()
            self.server.shutdown()
            self.server.server_close()
            thread.join()
