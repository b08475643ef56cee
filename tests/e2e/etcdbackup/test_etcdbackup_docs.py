# SPDX-License-Identifier: Apache-2.0
"""Follows docs/etcdbackup.md literally: a backup, another cluster from it, scheduled backups, and a
lost cluster that is restored under its name."""

import os
import subprocess

import pytest
from support import etcdbackup as backups
from support import etcdcluster as ecs
from support import readme, s3, wait

PAGE = "docs/etcdbackup.md"
FILES = readme.named(PAGE)
COMMANDS = readme.commands("kubectl", PAGE)
BUILT_IN = "3.6.16"  # not necessarily installed on this machine


@pytest.fixture
def proxy(bucket, installed):
    """A proxy in front of the store, reachable from pods."""
    one = backups.node_proxy(bucket, installed)
    yield one
    one.close()


def write_files(folder, proxy):
    """The page's files, adapted: etcd's version, the store, and a schedule of every minute."""
    store = f"    endpoint: {proxy.url}\n    forcePathStyle: true\n"
    for name, text in FILES.items():
        text = text.replace(BUILT_IN, ecs.version("3.5")).replace("30 2 * * *", '"* * * * *"')
        text = text.replace("    awsSecret: ", f"{store}    awsSecret: ")
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ".aws").mkdir()
    (folder / ".aws" / "credentials").write_text(s3.CREDENTIALS, encoding="utf-8")


def follow(stage, commands, folder):
    """Runs the commands in order; their output must be what the page shows."""
    for command, output in commands:
        printed = readme.kubectl(stage.cluster, stage.namespace, command, folder)
        assert output in ("", printed), command
        assert printed.strip(), command


@pytest.mark.node
def test_commands_of_the_page_work(agent_stage, proxy, tmp_path):
    """All kubectl commands that it shows, in order; then those that need no Kubernetes."""
    write_files(tmp_path, proxy)
    orders = agent_stage.etcd("orders")
    orders.apply(size=1, version=ecs.version("3.5"))
    orders.wait_settled(1)
    orders.served().put("greeting", "hello")
    lost = [command.startswith("kubectl delete") for command, _ in COMMANDS].index(True) - 1
    follow(agent_stage, COMMANDS[:lost], tmp_path)
    wait.until("a backup by the clock", lambda: agent_stage.cluster.get(
        backups.KIND, "orders-nightly", orders.namespace)["status"].get("artifacts"), 90)
    before = orders.status()["clusterID"]
    follow(agent_stage, COMMANDS[lost:], tmp_path)
    orders.wait_settled(3)
    assert orders.status()["clusterID"] != before
    without_kubernetes(agent_stage.binary, proxy, tmp_path)


def without_kubernetes(binary, proxy, folder):
    """The page's last commands."""
    [text] = [b for b in readme.blocks("sh", PAGE) if "steward snapshot" in b]
    (folder / "bin").mkdir()
    (folder / "bin" / "steward").symlink_to(binary)
    env = {**os.environ, "HOME": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    result = subprocess.run(["sh", "-e", "-c", text.replace("https://s3.example.com", proxy.url)],
                            cwd=folder, env=env, text=True, check=False, capture_output=True,
                            timeout=60)
    assert result.returncode == 0, result.stderr
    assert "orders_v" in result.stdout and "orders.db" in result.stdout


def test_page_contains_the_tested_files():
    assert set(FILES) == {"backup.yaml", "restore.yaml", "nightly.yaml", "back.yaml"}
    assert all(any(name in command for command, _ in COMMANDS) for name in FILES)


@pytest.mark.parametrize("body, said", readme.answers(PAGE), ids=["errors"])
def test_error_messages_match_the_page(steward, cluster, namespace, body, said):
    assert steward.running()
    readme.check_answer(cluster, namespace, body, said)


@pytest.mark.parametrize("name", FILES)
def test_manifests_of_the_page_are_accepted(steward, cluster, namespace, name):
    """Accepted, with warnings only about objects that do not exist yet."""
    assert steward.running()
    result = cluster.kubectl("apply", "--dry-run=server", "-n", namespace, "-f", "-",
                             stdin=FILES[name])
    assert all("not found" in line for line in result.stderr.splitlines()), result.stderr
