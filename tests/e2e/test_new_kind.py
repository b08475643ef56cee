# SPDX-License-Identifier: Apache-2.0
"""A kind takes one folder and one row: everything else follows (docs/architecture.md, "A new kind").

tests/data/newkind is such a folder.  It is put into a copy of the tree with its row; the copy is built,
writes its own CRD, rights and webhook configurations, and reconciles an object on a real API server."""

import os
import shutil
import subprocess

import pytest
import yaml

from support import paths
from support import steward as stw
from support.cluster import is_ready

NEW = paths.TOP / "tests" / "data" / "newkind"
FOLDERS = ("certs", "config", "controller", "include", "kinds", "lib", "operator", "scripts", "src", "testing",
           "webhook")
FILES = ("meson.build", "meson_options.txt", ".clang-format")
OBJECT = {"apiVersion": "example.org/v1", "kind": "Redirect", "metadata": {"name": "old"},
          "spec": {"host": "old.example.org", "target": "https://new.example.org/"}}


def run(*command, cwd):
    """What a command prints; its end with another status than 0 is a failure."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          timeout=900, check=False,
                          env={**os.environ, "CCACHE_BASEDIR": str(cwd), "CCACHE_NOHASHDIR": "1"})
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree that has the new kind, built."""
    top = tmp_path_factory.mktemp("newkind")
    for folder in FOLDERS:
        shutil.copytree(paths.TOP / folder, top / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(paths.TOP / file, top / file)
    shutil.copytree(NEW, top / "kinds" / "redirect")
    table = top / "kinds" / "kinds.c"
    rows = table.read_text("utf-8").replace("    row(myweb) ", "    row(redirect) \\\n    row(myweb) ", 1)
    table.write_text(rows)
    # With the options of the build under test, so that ccache has all files that are the same there.
    run("meson", "setup", "build", "-Dtests=disabled", "-Dwerror=true", cwd=top)
    run("ninja", "-C", "build", "src/steward", "testing/libtesting.a", cwd=top)
    return top


def test_new_kind_is_small():
    """At most 120 lines in one folder."""
    assert sum(len(path.read_text("utf-8").splitlines()) for path in NEW.iterdir()) <= 120


def test_manifests_of_new_kind_are_generated(tree):
    """scripts/lint --fix writes CRD, rights and webhook configurations of the new kind."""
    script = ". scripts/lib/common.sh && . scripts/lib/generated.sh && generated_config build/src/steward config"
    run("bash", "-euc", script, cwd=tree)
    crd = "bases/example.org_redirects.yaml"
    assert crd in yaml.safe_load((tree / "config/crd/kustomization.yaml").read_text("utf-8"))["resources"]
    spec = yaml.safe_load((tree / "config/crd" / crd).read_text("utf-8"))["spec"]
    assert spec["names"]["kind"] == "Redirect"
    for file in ("rbac/rbac.yaml", "rbac/user_roles.yaml", "webhook/manifests.yaml"):
        assert "redirects" in (tree / "config" / file).read_text("utf-8"), file


def test_new_kind_needs_no_layer_entry(tree):
    """It needs no line in the table of layers."""
    (tree / "docs").mkdir(exist_ok=True)
    shutil.copy(paths.TOP / "docs" / "architecture.md", tree / "docs")
    assert run("python3", "scripts/lib/layers.py", "--top", tree, "--build-dir", "build", cwd=tree).strip() == ""


def test_rules_and_defaults_of_new_kind_apply(tree):
    """Its rules and defaults work without further code."""
    bad = tree / "bad.yaml"
    bad.write_text(yaml.safe_dump({**OBJECT, "spec": {"host": "a", "target": "http://b.example"}}), "utf-8")
    done = subprocess.run([tree / "build/src/steward", "validate", bad], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1
    assert "spec.target" in done.stdout + done.stderr
    assert "must begin with https://" in done.stdout + done.stderr


def test_new_kind_is_reconciled(tree, installed, namespace, tmp_path):
    """Children appear and are repaired, and the status reports it."""
    binary, kind = tree / "build/src/steward", "redirects.example.org"
    for crd in yaml.safe_load_all(run(binary, "print", "crds", cwd=tree)):
        if crd and crd["spec"]["names"]["kind"] == "Redirect":
            installed.apply(crd)
    installed.wait_established()
    one = stw.Steward(binary, installed, installed.kubeconfig, tmp_path, name="newkind").start()
    try:
        installed.apply({**OBJECT, "metadata": {"name": "old", "namespace": namespace}})
        ready = installed.wait_for(kind, "old", namespace, is_ready)
        types = {c["type"] for c in ready["status"]["conditions"]}
        assert types == {"Ready", "ConfigMapSynced", "ServiceSynced"}
        assert installed.get("service", "old", namespace)["spec"]["ports"][0]["port"] == 80
        installed.patch("configmap", "old", namespace, {"data": {"redirect.conf": "broken"}})
        installed.wait_for(kind, "old", namespace, lambda o: o.get("status", {}).get("repairs") == 1)
        assert "https://new" in installed.get("configmap", "old", namespace)["data"]["redirect.conf"]
    finally:
        one.stop()
        installed.delete("crd", "redirects.example.org")
