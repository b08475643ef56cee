# SPDX-License-Identifier: Apache-2.0
"""Releases of the work tree, built by scripts/release."""

import functools
import hashlib
import os
import shutil
import subprocess

from . import gotools, images, lock, paths, versions
from .cluster import run

KEPT = 2  # releases kept for reuse
VERSION = "0.1.0"
IMAGE = "registry.example.com/steward"


def missing():
    """Why no release can be built here; "" when one can."""
    if images.missing() or not shutil.which("qemu-aarch64") or gotools.missing("kustomize"):
        return "building a release needs root, and 'scripts/bootstrap release'"
    return ""


def _git(*words):
    return subprocess.run(["git", "-C", paths.TOP, *words], check=True, capture_output=True,
                          text=True).stdout.strip()


@functools.cache
def commit():
    """HEAD, or a commit of no branch with the changes of the work tree."""
    return _git("stash", "create") or _git("rev-parse", "HEAD")


def build(folder, *options, top=paths.TOP, **more):
    """Runs scripts/release of a work tree into a folder; the finished process."""
    return run([top / "scripts" / "release", VERSION, "--commit", commit(), "--output", folder, *options],
               timeout=2400, **more)


def build_elsewhere(clone, folder, *options):
    """The same from a new clone, with other settings of the user.  With STEWARD_TEST_LONG nothing that was
    compiled before is used for amd64; for arm64 this would take as long again, and differ in the compiler
    only.  scripts/lint refuses what makes a compiled file depend on the time."""
    run(["git", "clone", "--quiet", "--no-checkout", paths.TOP, clone])
    run(["git", "-C", clone, "fetch", "--quiet", paths.TOP, commit()])
    run(["git", "-C", clone, "checkout", "--quiet", "--detach", commit()])
    build(folder, *options, top=clone, umask=0o077,
          env={**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1",
               **({"CCACHE_DISABLE": "amd64"} if os.environ.get("STEWARD_TEST_LONG") else {})})


def shared():
    """The folder of this work tree's release.  It is built once for all parts of a run, and reused by
    later runs until a file changes."""
    top = paths.build() / "test-releases"
    top.mkdir(parents=True, exist_ok=True)
    with lock.held(top / "lock"):
        name = hashlib.sha256(f"{_git('rev-parse', 'HEAD', commit() + '^{tree}')}".encode())
        folder = top / name.hexdigest()[:16]
        if not folder.exists():
            for old in sorted((f for f in top.iterdir() if f.is_dir()), key=os.path.getmtime)[:-KEPT]:
                shutil.rmtree(old)
            fresh = top / "new"
            shutil.rmtree(fresh, ignore_errors=True)
            build(fresh, "--image", IMAGE)
            fresh.rename(folder)
    return folder


def checker():
    """OLM's operator-verify, or None."""
    found = sorted(paths.cache_root().glob(f"olm-{versions.newest('OLM')}*/operator-verify"))
    return found[-1] if found else None
