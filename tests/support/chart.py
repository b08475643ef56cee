# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, as scripts/render writes it, rendered by helm, or by tests/integration/chart_render where
there is no helm, since Debian has no package of it."""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile

import yaml

from . import gotools, paths

SOURCE = paths.TOP / "chart"
NEEDS = [f"{gotools.GOPATH}/src/{name}" for name in ("github.com/Masterminds/sprig", "sigs.k8s.io/yaml")]


@functools.cache
def _temporary():
    return tempfile.TemporaryDirectory(prefix="steward-chart-")  # removed when the process ends


@functools.cache
def path():
    """The chart with its files."""
    folder = f"{_temporary().name}/steward"
    subprocess.run([paths.SCRIPTS / "render", "chart", folder], check=True, timeout=60)
    return folder


class Refused(Exception):
    """The chart does not render with these values; the text is the reason."""


def missing():
    """Why a chart cannot be rendered here, or ""."""
    if shutil.which("go") and all(os.path.isdir(path) for path in NEEDS):
        return ""
    return "needs golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev"


def build(folder):
    """Compiles the renderer into a folder; returns it as render(values, namespace, server), which
    returns {file: text}."""
    program = gotools.build(paths.TOP / "tests" / "integration" / "chart_render" / "main.go", folder / "render")

    def render(values=None, namespace="steward-system", server="v1.30.0"):
        question = {"values": values or {}, "name": "steward", "namespace": namespace,
                    "kubeVersion": server}
        result = subprocess.run([program, path()], input=json.dumps(question), text=True,
                                capture_output=True, timeout=60, check=False)
        if result.returncode != 0:
            raise Refused(result.stderr)
        return json.loads(result.stdout)
    return render


class Helm:
    """The real helm, called like what build() returns."""

    def __init__(self, folder):
        # It reads no file of the user, and uses no cluster.
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": "/dev/null"}

    def __call__(self, values=None, namespace="steward-system", server="v1.30.0"):
        text = self._run(values, "template", "steward", path(), "--namespace", namespace,
                         "--kube-version", server)
        found = {}
        for part in re.split(r"^---\n", text, flags=re.M):
            source = re.match(r"# Source: steward/(\S+)\n", part)
            assert source or not part.strip(), part
            if source:
                found[source[1]] = found.get(source[1], "") + "---\n" + part
        return found

    def lint(self, values=None, server="v1.30.0"):
        """`helm lint --strict`, which treats warnings as errors."""
        return self._run(values, "lint", path(), "--strict", "--kube-version", server)

    def notes(self, values=None, namespace="steward-system"):
        """The notes that a user reads after the installation."""
        return self._run(values, "install", "steward", path(), "--namespace", namespace,
                         "--dry-run=client").partition("NOTES:\n")[2]

    def _run(self, values, *args):
        result = gotools.run("helm", *args, "--values", "-", stdin=json.dumps(values or {}), env=self.env)
        if result.returncode != 0:
            raise Refused(result.stdout + result.stderr)
        return result.stdout


@functools.cache
def _definition(text):
    return yaml.safe_load(text)


def parsed(text):
    """The objects of a YAML stream.  CustomResourceDefinitions are long, and the same in most renders: each
    is parsed once, and must not be changed."""
    found = []
    for part in re.split(r"^---\n", text, flags=re.M):
        load = _definition if re.search("^kind: CustomResourceDefinition$", part, re.M) else yaml.safe_load
        found.append(load(part))
    return [obj for obj in found if obj]


def objects(rendered, hook=None):
    """The objects of all templates: those of a release, or of one of its hooks."""
    found = [o for name, text in rendered.items() if not name.endswith("NOTES.txt") for o in parsed(text)]
    return [o for o in found
            if (o["metadata"].get("annotations") or {}).get("helm.sh/hook") == hook]


def key(obj):
    """(kind, namespace or None, name)"""
    return obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]
