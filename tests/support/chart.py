# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, rendered by tests/integration/chart_render: helm itself is no package of Debian."""

import json
import os
import shutil
import subprocess

import yaml

from . import paths

CHART = paths.TOP / "chart"
GOPATH = "/usr/share/gocode"
NEEDS = [f"{GOPATH}/src/{name}" for name in ("github.com/Masterminds/sprig", "sigs.k8s.io/yaml")]


class Refused(Exception):
    """The chart does not render with these values; says why."""


def missing():
    """Why a chart cannot be rendered here, or ""."""
    if shutil.which("go") and all(os.path.isdir(path) for path in NEEDS):
        return ""
    return "needs golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev"


def build(folder):
    """Compiles the renderer into a folder; returns it as render(values, namespace, server), which
    gives {file: text}."""
    source = paths.TOP / "tests" / "integration" / "chart_render" / "main.go"
    cache = paths.steward_binary().parents[1] / "go-cache"  # the next one takes a moment only
    env = dict(os.environ, GO111MODULE="off", GOPATH=GOPATH, GOFLAGS="",
               GOCACHE=str(cache), CGO_ENABLED="0")
    subprocess.run(["go", "build", "-o", folder / "render", source], check=True, env=env,
                   timeout=600)

    def render(values=None, namespace="steward-system", server="v1.30.0"):
        question = {"values": values or {}, "name": "steward", "namespace": namespace,
                    "kubeVersion": server}
        result = subprocess.run([folder / "render", CHART], input=json.dumps(question), text=True,
                                capture_output=True, timeout=60, check=False)
        if result.returncode != 0:
            raise Refused(result.stderr)
        return json.loads(result.stdout)
    return render


def objects(rendered, hook=None):
    """The objects of all templates: those of a release, or of one of its hooks."""
    found = [o for name, text in rendered.items() if not name.endswith("NOTES.txt")
             for o in yaml.safe_load_all(text) if o]
    return [o for o in found
            if (o["metadata"].get("annotations") or {}).get("helm.sh/hook") == hook]


def key(obj):
    """(kind, namespace or None, name)"""
    return obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]
