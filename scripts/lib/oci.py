#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an OCI image layout with one multi-architecture image, from docker-archives of scripts/image.

Usage: oci.py FOLDER NAME:TAG ARCHIVE...

FOLDER must not exist.  The configuration of each image remains as it is, so that its ID is the one that
scripts/image printed.  Prints the digest of the image index.  The same archives give the same layout.
"""

import gzip
import hashlib
import json
import pathlib
import sys
import tarfile

OCI = "application/vnd.oci.image"


def blob(folder, data, media, **more):
    """Stores a blob; returns its descriptor."""
    digest = hashlib.sha256(data).hexdigest()
    path = folder / "blobs" / "sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"mediaType": f"{OCI}.{media}", "digest": f"sha256:{digest}", "size": len(data), **more}


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def image(folder, path):
    """Stores the image of an archive; returns the descriptor of its manifest."""
    with tarfile.open(path) as archive:
        listed = json.load(archive.extractfile("manifest.json"))[0]
        config = archive.extractfile(listed["Config"]).read()
        layers = [archive.extractfile(name).read() for name in listed["Layers"]]
    found = json.loads(config)
    manifest = {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json",
                "config": blob(folder, config, "config.v1+json"),
                "layers": [blob(folder, gzip.compress(layer, 7, mtime=0), "layer.v1.tar+gzip")
                           for layer in layers]}
    return blob(folder, as_json(manifest), "manifest.v1+json",
                platform={"architecture": found["architecture"], "os": found["os"]})


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    folder.mkdir()
    images = [image(folder, path) for path in sys.argv[3:]]
    index = blob(folder, as_json({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json",
                                  "manifests": images}), "index.v1+json",
                 annotations={"org.opencontainers.image.ref.name": name.rpartition(":")[2],
                              "io.containerd.image.name": name})
    (folder / "index.json").write_bytes(as_json(
        {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [index]}))
    (folder / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))
    print(index["digest"])


if __name__ == "__main__":
    main()
