# SPDX-License-Identifier: Apache-2.0
"""helm and kustomize, the tools with which users apply steward's files, as scripts/lib/go-build.sh
put them into the cache; and programs of tests that use Debian's packages of Go libraries."""

import functools
import os
import re
import subprocess

from . import paths, started, versions

GOPATH = "/usr/share/gocode"  # of Debian's packages


def missing(name):
    """Why the tool cannot be run here; "" when it can."""
    return "" if _find(name) else \
        f"no {name} {versions.newest(name.upper())} is here: run 'scripts/bootstrap servers'"


@functools.cache
def _find(name):
    """The path of the newest version in versions.sh, or None."""
    version = versions.newest(name.upper())
    cache = paths.cache_root()
    path = next((found for folder in (f"{name}-{version}", f"{name}-{version}.r*")
                 for found in sorted(cache.glob(f"{folder}/{name}"), reverse=True)), None)
    if path:
        text = subprocess.run([path, "version"], capture_output=True, text=True, timeout=60,
                              check=True).stdout
        assert version in re.findall(r"\d+\.\d+\.\d+", text), f"{path} is {text}"
        started.note(name, version)
    return path


def run(name, *args, stdin=None, env=None):
    """Runs it; a subprocess.CompletedProcess."""
    return subprocess.run([_find(name), *map(str, args)], input=stdin, capture_output=True, text=True,
                          timeout=60, check=False, env=env)


def build(source, program):
    """Compiles a main.go.  Its packages stay in the cache, so that only the first run compiles them."""
    env = dict(os.environ, GO111MODULE="off", GOPATH=GOPATH, GOFLAGS="", CGO_ENABLED="0",
               GOCACHE=str(paths.cache_root() / "go-tests"))
    subprocess.run(["go", "build", "-o", program, source], check=True, env=env, timeout=600)
    return program
