# SPDX-License-Identifier: Apache-2.0
"""kubectl prints what the README shows, and the samples are accepted."""

import pytest

from support import paths, readme, wait


@pytest.mark.parametrize("command, output", readme.commands("kubectl"))
def test_shown_is_printed(steward, cluster, namespace, tmp_path, command, output):
    assert steward.running()
    arguments = command.split()[1:]
    for name, text in readme.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        arguments = [str(tmp_path / name) if a == name else a for a in arguments]
    result = cluster.kubectl(*arguments, "-n", namespace, check=False)
    printed = readme.printed(result, namespace).replace(f"{tmp_path}/", "")
    assert [line.rstrip() for line in printed.splitlines()] == output.splitlines()


def test_samples_are_accepted(steward, cluster, namespace):
    assert steward.running()
    # Another test's EtcdBackup of the sample's place may still be on its way out, or its node port.
    wait.until("the EtcdBackups of other tests to be gone", lambda: not cluster.list("etcdbackups"), 60)

    def apply():
        done = cluster.kubectl("apply", "-f", str(paths.SAMPLES), "-n", namespace, check=False)
        return None if "is taken by MyWeb in another namespace" in done.stderr else done
    result = wait.until("the node port to be free", apply)
    assert result.returncode == 0, result.stderr
    assert "myweb.operator.k8s-summit.org/" in result.stdout
    # They name objects that a fresh cluster lacks: a database server, a Deployment.
    warnings = [line for line in result.stderr.splitlines() if line.startswith("Warning")]
    assert all("is not configured" in w or "not found" in w for w in warnings), warnings
    cluster.kubectl("delete", "-f", str(paths.SAMPLES), "-n", namespace)
