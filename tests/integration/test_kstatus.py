# SPDX-License-Identifier: Apache-2.0
"""The statuses of the unit tests, read by kstatus, as Flux, Argo CD and kpt wait for objects."""

import json
import os
import subprocess

import pytest

from support import compared, oracles, paths

KINDS = {"App": "app", "MyWeb": "myweb", "DatabaseUser": "databaseuser", "Eru": "eru",
         "EtcdCluster": "etcdcluster"}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """[(object, what kstatus says)] of all statuses, none twice."""
    target = tmp_path_factory.mktemp("statuses") / "noted"
    for folder in KINDS.values():
        subprocess.run([paths.build() / "tests" / "unit" / "kinds" / f"test_{folder}_status"], check=True,
                       capture_output=True, cwd=paths.TOP,
                       env={**os.environ, "STEWARD_STATUSES": str(target)})
    lines = list(dict.fromkeys(target.read_text("utf-8").splitlines()))
    said = subprocess.run([oracles.program("kstatus")], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=True, timeout=60).stdout
    return list(zip(map(json.loads, lines), map(json.loads, said.splitlines()), strict=True))


def wanted(status):
    """What kstatus should say, from the conditions."""
    found = {c["type"]: c["status"] for c in status["conditions"]}
    if found.get("Stalled") == "True":
        return "Failed"
    return "Current" if found["Ready"] == "True" and found.get("Reconciling") != "True" else "InProgress"


def test_kstatus_agrees_with_the_conditions(read):
    wrong = [(one, said) for one, said in read if said.get("status") != wanted(one["status"])]
    assert not wrong, wrong[:3]
    assert {one["kind"] for one, _ in read} == set(KINDS)
    assert {said["status"] for _, said in read} == {"Current", "InProgress", "Failed"}
    compared.note("cli-utils", f"{oracles.module_version('kstatus', 'sigs.k8s.io/cli-utils')} (kstatus)",
                  len(read))


def test_status_of_older_generation_is_in_progress(read):
    """Also if it is Ready: what the user has changed since is not done."""
    newer = [{**one, "metadata": {**one["metadata"], "generation": one["metadata"]["generation"] + 1}}
             for one, _ in read]
    said = subprocess.run([oracles.program("kstatus")], input="".join(json.dumps(o) + "\n" for o in newer),
                          capture_output=True, text=True, check=True, timeout=60).stdout
    assert {json.loads(line)["status"] for line in said.splitlines()} == {"InProgress"}
