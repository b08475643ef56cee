# SPDX-License-Identifier: Apache-2.0
"""The image that users get, built by scripts/image."""

import os
import shutil

from . import paths
from .cluster import run


def missing():
    """What stands in the way of building one; None if nothing does."""
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"):
        return "building an image needs root, and 'scripts/bootstrap image'"
    return None


def build(path, top=paths.TOP, tag=None):
    """Of the work tree at `top`; returns the image's digest."""
    more = ["--tag", tag] if tag else []
    result = run([top / "scripts" / "image", "--output", path, *more], timeout=900)
    return result.stdout.split()[1]
