# SPDX-License-Identifier: Apache-2.0
"""kubectl prints what the README shows, and the samples are accepted."""

import re

import pytest

from support import paths, readme, wait
from support import steward as stw
from support.cluster import condition


@pytest.mark.parametrize("command, output", readme.commands("kubectl"))
def test_kubectl_prints_what_the_readme_shows(steward, cluster, namespace, tmp_path, command, output):
    assert steward.running()
    arguments = command.split()[1:]
    for name, text in readme.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        arguments = [str(tmp_path / name) if a == name else a for a in arguments]
    result = cluster.kubectl(*arguments, "-n", namespace, check=False)
    printed = readme.printed(result, namespace).replace(f"{tmp_path}/", "")
    assert [line.rstrip() for line in printed.splitlines()] == output.splitlines()


# What a sample waits for in a cluster that has only these objects, and no node.
AWAITED = {
    "MyWeb": "0 are available", "App": "pod app-sample-.* cannot be scheduled", "Eru": "app-sample",
    "DatabaseUser": 'no target "sample"', "EtcdCluster": "the first member, etcdcluster-sample-",
    "EtcdBackup": "etcdbackup-sample|etcdcluster-sample", "EtcdRestore": "etcdbackup-sample",
}


def test_samples_are_ready_or_name_what_is_missing(run_steward, cluster, namespace):
    """In one go, in the order of their files.  Each is Ready, or its condition names what is missing."""
    run_steward("--agent-image", "steward", webhook=True)
    # Another test's EtcdBackup of the sample's place may still be on its way out, or its node port.
    wait.until("the EtcdBackups of other tests to be gone", lambda: not cluster.list("etcdbackups"), 60)

    def apply():
        done = cluster.kubectl("apply", "-f", str(paths.SAMPLES), "-n", namespace, check=False)
        return None if "is taken by MyWeb in another namespace" in done.stderr else done
    result = wait.until("the node port to be free", apply)
    assert result.returncode == 0, result.stderr
    assert "myweb.operator.k8s-summit.org/" in result.stdout
    # They name objects that a fresh cluster lacks: a database server, a Secret.
    warnings = [line for line in result.stderr.splitlines() if line.startswith("Warning")]
    assert all("is not configured" in w or "not found" in w for w in warnings), warnings

    def look():
        said = {}
        for kind in stw.KINDS:
            obj, = cluster.list(kind, namespace)
            status = obj.get("status", {})
            ready = condition(obj, "Ready")
            if not ready or status.get("observedGeneration") != obj["metadata"]["generation"]:
                return None
            said[kind] = (ready["status"], f"{ready['reason']}: {ready.get('message', '')}")
        wrong = {k: v for k, v in said.items() if v[0] != "True" and not re.search(AWAITED[k], v[1])}
        assert len(said) == len(AWAITED)
        return None if wrong else said
    wait.until("the samples to be ready, or to say what they wait for", look, 60)
    notes = [event.get("note") or event.get("message") for event in cluster.list("events", namespace)]
    name = "etcdcluster-sample"
    assert any(f'Service "{name}" and Service "{name}-client"' in note or
               f'Service "{name}-client" and Service "{name}"' in note for note in notes), notes
    assert not [note for note in notes if '" "' in note], notes
    cluster.kubectl("delete", "-f", str(paths.SAMPLES), "-n", namespace)
