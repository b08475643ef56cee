# SPDX-License-Identifier: Apache-2.0
"""The image that users get, built by scripts/image."""

import json
import os
import shutil
import tarfile

from . import paths
from .cluster import run


def missing():
    """What stands in the way of building one; None if nothing does."""
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"):
        return "building an image needs root, and 'scripts/bootstrap image'"
    return None


def digest(path):
    """Of the image in an archive."""
    with tarfile.open(path) as archive:
        return json.load(archive.extractfile("manifest.json"))[0]["Config"][:64]


def build(path, top=paths.TOP, tag=None):
    """Of the work tree at `top`; returns the image's digest."""
    more = ["--tag", tag] if tag else []
    result = run([top / "scripts" / "image", "--output", path, *more], timeout=900)
    return result.stdout.split()[1]
