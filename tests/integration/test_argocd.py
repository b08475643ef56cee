# SPDX-License-Identifier: Apache-2.0
"""The health checks for Argo CD, run by Debian's Lua with what Argo CD gives a script."""

import pathlib
import shutil
import subprocess

import pytest
import yaml

from support import argocd, paths

FOLDER = paths.TOP / "config" / "argocd"
FILES = sorted(FOLDER.glob("*/*/health.lua"))

READY = {"type": "Ready", "status": "True", "reason": "Synced", "message": "as the spec says"}
UNREADY = {"type": "Ready", "status": "False", "reason": "Waiting", "message": "1 of 2 pods"}
WORKING = {"type": "Reconciling", "status": "True", "reason": "Waiting", "message": "1 of 2 pods"}
STALLED = {"type": "Stalled", "status": "True", "reason": "InvalidSpec", "message": "spec.image: no"}
QUIET = [{"type": "Reconciling", "status": "False"}, {"type": "Stalled", "status": "False"}]
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def obj(conditions=None, seen=2, annotations=None, **metadata):
    """An object of generation 2."""
    made = {"metadata": {"name": "a", "generation": 2, **metadata}}
    if annotations:
        made["metadata"]["annotations"] = annotations
    if conditions is not None:
        made["status"] = {"observedGeneration": seen, "conditions": conditions}
    return made


CASES = {
    "healthy": (obj([READY, *QUIET]), "Healthy", "as the spec says"),
    "progressing": (obj([UNREADY, WORKING]), "Progressing", "1 of 2 pods"),
    "not-ready": (obj([UNREADY, *QUIET]), "Degraded", "1 of 2 pods"),
    "stalled": (obj([{**UNREADY, "message": "other"}, STALLED]), "Degraded", "spec.image: no"),
    "stalled-and-ready": (obj([READY, STALLED]), "Degraded", "spec.image: no"),
    "new": (obj(), "Progressing", "has not seen this object"),
    "no-conditions": ({"metadata": {"name": "a"}, "status": {}}, "Progressing", "has not seen"),
    "no-list": ({"metadata": {"name": "a"}, "status": {"conditions": "x"}}, "Progressing",
                "has not seen"),
    "ready-before": (obj([READY], seen=1), "Progressing", "last change"),
    "stalled-before": (obj([STALLED], seen=1), "Progressing", "last change"),
    "paused": (obj([READY], annotations={"steward.dev/paused": "true"}), "Suspended", "paused"),
    "not-paused": (obj([READY], annotations={"steward.dev/paused": "false"}), "Healthy", "spec"),
    "deleting": (obj([READY], **GOING), "Progressing", "is being deleted"),
    "deletion-stuck": (obj([STALLED], **GOING), "Degraded", "spec.image: no"),
    "reason-only": (obj([{"type": "Ready", "status": "True", "reason": "Synced"}]), "Healthy",
                    "Synced"),
    "hostile-message": (obj([{**UNREADY, "message": 'a "b"\n]] c\\'}, WORKING]), "Progressing",
                        'a "b"\n]] c\\'),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_health_script_matches_the_conditions(path, case):
    if shutil.which("lua5.4") is None:
        pytest.skip("needs lua5.4 (scripts/bootstrap test)")
    given, status, message = CASES[case]
    found = argocd.health(path, given)
    assert found["status"] == status
    assert message in found["message"]


def test_every_kind_has_a_health_script(steward_binary):
    printed = subprocess.run([steward_binary, "print", "crds"], check=True, capture_output=True,
                             timeout=60).stdout
    crds = [o["spec"] for o in yaml.safe_load_all(printed) if o]
    assert {p.relative_to(FOLDER) for p in FILES} == {
        pathlib.Path(c["group"]) / c["names"]["kind"] / "health.lua" for c in crds}
    patch = yaml.safe_load((FOLDER / "argocd-cm.yaml").read_text("utf-8"))
    assert patch["data"] == {
        f"resource.customizations.health.{p.parent.parent.name}_{p.parent.name}":
            p.read_text("utf-8") for p in FILES}
