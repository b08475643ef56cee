# SPDX-License-Identifier: Apache-2.0
"""The container image for users, built by scripts/image."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

from . import lock, paths
from .cluster import run


KEPT = 3  # images kept for reuse
OLD_TAG = "steward:previous"


def missing():
    """Why no image can be built here; None when one can."""
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("mmdebstrap"):
        return "building an image needs root, and 'scripts/bootstrap image'"
    return None


def digest(path):
    """The digest of the image in an archive."""
    with tarfile.open(path) as archive:
        return json.load(archive.extractfile("manifest.json"))[0]["Config"][:64]


def build(path, top=paths.TOP, tag=None):
    """Builds the image of the work tree at `top`; returns its digest."""
    more = ["--tag", tag] if tag else []
    result = run([top / "scripts" / "image", "--output", path, *more], timeout=1800)
    return result.stdout.split()[1]


def _contents(top, tag):
    """A hash of all that goes into the image of a work tree: the commit, the content of each file,
    and the packages."""
    def git(*words):
        return subprocess.run(["git", "-C", top, *words], check=True, capture_output=True).stdout
    found = hashlib.sha256(git("describe", "--always", "--dirty", "--abbrev=12"))
    found.update(f"{tag}\n".encode())
    for base in sorted(paths.cache_root().glob("image-base-*.tar")):
        found.update(f"{base.name} {base.stat().st_mtime_ns}\n".encode())
    for name in sorted(git("ls-files", "-z").split(b"\0")):
        path = os.path.join(os.fsencode(top), name)
        if name and os.path.isfile(path):
            with open(path, "rb") as file:
                found.update(name + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def shared(top=paths.TOP, tag=None):
    """(an archive of that work tree's image, its digest).  It is built once for all parts of a run,
    and reused by later runs until something changes."""
    folder = paths.build() / "test-images"
    folder.mkdir(parents=True, exist_ok=True)
    with lock.held(folder / "lock"):
        path = folder / f"{_contents(top, tag)}.tar"
        if not path.exists():
            for old in sorted(folder.glob("*.tar"), key=os.path.getmtime)[:-KEPT]:
                old.unlink()
                old.with_suffix(".tar.spdx.json").unlink(missing_ok=True)
            fresh = path.with_suffix(".new")
            build(fresh, top, tag)
            path = folder / f"{_contents(top, tag)}.tar"  # the first build makes the packages' base
            fresh.with_name(fresh.name + ".spdx.json").rename(f"{path}.spdx.json")
            fresh.rename(path)
    return path, digest(path)


@contextlib.contextmanager
def before(folder):
    """(a work tree of the previous commit, the archive of its image), in this folder.
    $STEWARD_UPGRADE_FROM names another commit, and $STEWARD_UPGRADE_IMAGE an existing archive."""
    commit = os.environ.get("STEWARD_UPGRADE_FROM", "HEAD~1")
    git = ["git", "-C", paths.TOP]
    if run([*git, "rev-parse", "--verify", f"{commit}^{{commit}}"], check=False).returncode != 0:
        pytest.skip(f"{commit} is not in this clone")
    tree = folder / "tree"
    run([*git, "worktree", "add", "--detach", tree, commit])
    try:
        given = os.environ.get("STEWARD_UPGRADE_IMAGE")
        yield tree, pathlib.Path(given) if given else shared(tree, OLD_TAG)[0]
    finally:
        run([*git, "worktree", "remove", "--force", tree])
