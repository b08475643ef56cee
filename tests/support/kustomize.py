# SPDX-License-Identifier: Apache-2.0
"""config/, built by the newest kustomize of the cache, or else by the kubectl of a cluster."""

import functools
import subprocess

import yaml

from . import gotools, paths
from .cluster import LOADER

CONFIG = paths.TOP / "config"
OLDEST_KUBECTL = 21  # kubectl before 1.21 has a kustomize that cannot read config/


def build(cluster, folder, *arguments):
    """The text of a folder, as `kustomize build` writes it."""
    if not gotools.missing("kustomize"):
        result = gotools.run("kustomize", "build", *arguments, folder)
        assert result.returncode == 0, result.stderr
        return result.stdout
    return cluster.kubectl("kustomize", *arguments, str(folder)).stdout


@functools.cache
def one_file(folder):
    """config/FOLDER as one manifest."""
    return subprocess.run([paths.SCRIPTS / "render", "install", CONFIG / folder], text=True,
                          capture_output=True, timeout=60, check=True).stdout


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
