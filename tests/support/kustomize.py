# SPDX-License-Identifier: Apache-2.0
"""config/, built by the newest kustomize of the cache, or else by the kubectl of a cluster."""

import functools
import os
import pathlib

import yaml

from . import paths, started, versions
from .cluster import LOADER, run

CONFIG = paths.TOP / "config"
OLDEST_KUBECTL = 21  # kubectl before 1.21 has a kustomize that cannot read config/


@functools.cache
def program():
    """The path of kustomize; None when the cache has none."""
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    version = versions.newest("KUSTOMIZE")
    found = sorted((root / "steward").glob(f"kustomize-{version}.r*/kustomize"))
    return found[-1] if found else None


def build(cluster, folder, *arguments):
    """The text of a folder, as `kustomize build` writes it."""
    if program():
        started.note("kustomize", versions.newest("KUSTOMIZE"))
        return run([program(), "build", *arguments, folder]).stdout
    return cluster.kubectl("kustomize", *arguments, str(folder)).stdout


def apply(cluster, folder):
    """`kubectl apply -k`."""
    return _kubectl(cluster, folder, "apply")


def delete(cluster, folder, *arguments):
    """`kubectl delete -k`."""
    return _kubectl(cluster, folder, "delete", *arguments)


def _kubectl(cluster, folder, *arguments):
    """With -k; a kubectl that cannot read config/ gets what kustomize builds."""
    if cluster.minor() >= OLDEST_KUBECTL:
        return cluster.kubectl(*arguments, "-k", str(folder))
    return cluster.kubectl(*arguments, "-f", "-", stdin=build(cluster, folder))


def objects(cluster, folder):
    """The objects of config/FOLDER."""
    return [o for o in yaml.load_all(_built(cluster, CONFIG / folder), LOADER) if o]


_built = functools.cache(build)
