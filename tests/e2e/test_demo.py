# SPDX-License-Identifier: Apache-2.0
"""scripts/demo, as a newcomer runs it: it must succeed and leave nothing behind."""

import os
import signal
import subprocess

import pytest

from support import cluster as k8s
from support import paths, wait


def demo(binary, *args, **kwargs):
    """Starts the demo on the build under test."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STEWARD_CLUSTER_")}
    build = binary.parent.parent
    return subprocess.Popen([paths.SCRIPTS / "demo", "--no-bootstrap", "--build-dir", build, *args],
                            env=env, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)


def names_of_clusters():
    """What `scripts/cluster list` knows, without its heading."""
    lines = k8s.cluster_command("", "list").stdout.splitlines()[1:]
    return {line.split()[0] for line in lines}


def processes_of(binary):
    """The pids of everything that runs this binary."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", binary):
                found.add(pid)
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left(steward_binary):
    """What was there before is what is there afterwards."""
    before = names_of_clusters(), processes_of(steward_binary)
    yield
    assert (names_of_clusters(), processes_of(steward_binary)) == before


def test_the_whole_play(cluster, steward_binary):
    node = [] if cluster.has_node else ["--no-node"]
    process = demo(steward_binary, *node)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    for words in ("$ kubectl apply -f bad.yaml", "spec.nodePortNumber: Invalid value: 80",
                  "hello created", "DriftRepaired", "No resources found"):
        assert words in output, output
    if cluster.has_node:
        assert "condition met" in output and "<h1>Hello, World!</h1>" in output


def test_interrupted(steward_binary):
    process = demo(steward_binary, "--no-node")
    lines = []

    def started():
        lines.append(process.stdout.readline())
        return "start steward" in lines[-1] or process.poll() is not None
    wait.until("the demo to start steward", started, 120, every=0)
    assert process.poll() is None, "".join(lines)
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "is gone" in rest


def test_help():
    result = k8s.run([paths.SCRIPTS / "demo", "--help"])
    assert result.stdout.startswith("Usage: scripts/demo")
