# SPDX-License-Identifier: Apache-2.0
"""Runs scripts/demo as a newcomer does: it must succeed and leave nothing running.

Separate from the end-to-end tests, because it brings up a cluster of its own, and only one at a
time can have a node.
"""

import os
import pathlib
import shutil
import signal
import subprocess

from support import cluster as k8s
from support import paths, wait


def demo(binary, *args, **kwargs):
    """Starts the demo on the build under test."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STEWARD_CLUSTER_")}
    build = binary.parent.parent
    # A shell cannot trap a signal that was ignored when it started, as SIGINT is in a background job.
    command = ["env", "--default-signal=INT", paths.SCRIPTS / "demo", "--no-bootstrap", "--build-dir", build]
    return subprocess.Popen([*command, *args], env=env, stdin=subprocess.DEVNULL, text=True,
                            start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)


def processes_that_name(what):
    """(pid, command line) of every process whose command line contains the text."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
        except OSError:
            continue
        if what in line:
            found.add((pid, line.replace("\0", " ")))
    return found


def assert_nothing_is_left(process):
    """The cluster, and the folder of all that the demo started, are named after its process ID."""
    name = f"demo-{process.pid}"
    assert name not in k8s.cluster_command("", "list").stdout
    assert processes_that_name(f"/{name}/") == set()


def can_have_a_node():
    """Only as root, and only one cluster on a machine."""
    rows = [line.split() for line in k8s.cluster_command("", "list").stdout.splitlines()]
    taken = any("yes" in row for row in rows)
    return os.geteuid() == 0 and not os.environ.get("STEWARD_TEST_NO_NODE") and not taken


def test_demo_runs_to_its_end(steward_binary):
    node = can_have_a_node()
    process = demo(steward_binary, *([] if node else ["--no-node"]))
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert_nothing_is_left(process)
    for words in ("$ kubectl apply -f bad.yaml", "spec.nodePortNumber: Invalid value: 80",
                  "hello created", "DriftRepaired", "No resources found"):
        assert words in output, output
    if shutil.which("mariadbd"):
        for words in ("shop@%", "Access denied", "PasswordRotated", "is dropped from target"):
            assert words in output, output
    if node:
        assert "condition met" in output and "<h1>Hello, World!</h1>" in output


def test_interrupted_demo_leaves_nothing_running(steward_binary):
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
    assert_nothing_is_left(process)


def test_help_is_printed():
    result = k8s.run([paths.SCRIPTS / "demo", "--help"])
    assert result.stdout.startswith("Usage: scripts/demo")
