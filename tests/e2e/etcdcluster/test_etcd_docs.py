# SPDX-License-Identifier: Apache-2.0
"""docs/etcdcluster.md, followed literally: kubectl's output, and the runbook for a lost quorum."""

import pytest
from support import etcdcluster as ecs
from support import incident, readme, wait
from support.cluster import condition

PAGE = "docs/etcdcluster.md"
COMMANDS = readme.commands("kubectl", PAGE)
BUILT_IN = "3.6.16"  # not necessarily installed on this machine
PLACEHOLDER = "orders-xxxxxxxxxx"


def manifest(folder):
    """The page's first manifest in a file, with an installed version."""
    path = folder / "orders.yaml"
    path.write_text(readme.blocks("yaml", PAGE)[0].replace(BUILT_IN, ecs.version("3.5")))
    return path


def run(etcd, command, folder):
    """The complete output of a command of the page."""
    return readme.kubectl(etcd.cluster, etcd.namespace, command, folder)


@pytest.mark.node
def test_commands_of_the_page_work(stage, tmp_path):
    """All kubectl commands that it shows, in order."""
    etcd = stage.etcd("orders")
    manifest(tmp_path)
    for command, output in COMMANDS:
        if "Stalled" in command:
            break
        printed = run(etcd, command, tmp_path)
        assert output in ("", printed), command
    etcd.wait_settled(3)
    with incident.follow("StewardEtcdQuorumLost", etcd.cluster) as runbook:
        runbook.before(stage.steward.metrics_text())
        lost_quorum(etcd, tmp_path, runbook, stage.steward)


def lost_quorum(etcd, folder, runbook, steward):
    """Two of three members have lost their data: the page's runbook, step by step."""
    survivor, *lost = [*etcd.followers(), etcd.leader()]
    for name in lost:
        etcd.empty(name)
    etcd.wait_condition("QuorumLost", "True", seconds=120)
    runbook.fires(steward.metrics_text)
    [row] = [r for r in runbook.kubectl("get etcdclusters").splitlines() if r.startswith(etcd.namespace)]
    assert row.split()[1] == "orders" and "Failed" in row.split(), row
    assert all(name in runbook.kubectl("get pods") for name in (survivor, *lost))
    look, pods, claims, metrics, keep, annotate = [c for c, _ in COMMANDS[-6:]]
    message = run(etcd, look, folder)
    assert message == condition(etcd.get(), "Stalled")["message"] and survivor in message
    assert all(name in run(etcd, pods, folder) for name in (survivor, *lost))
    assert survivor in run(etcd, claims, folder)
    assert "\netcd_debugging_mvcc_current_revision " in run(
        etcd, metrics.replace("default", etcd.namespace).replace(PLACEHOLDER, survivor), folder)
    run(etcd, keep, folder)
    assert etcd.get()["spec"]["volumeRetention"]["whenScaled"] == "Retain"
    run(etcd, annotate.replace(PLACEHOLDER, survivor), folder)
    wait.until("a cluster of the survivor's data", lambda: survivor in etcd.names() and
               not set(lost) & etcd.names(), 120)
    etcd.wait_settled(3, 180)
    runbook.ends(steward.metrics_text)
    assert etcd.served().get("greeting") == "hello"


@pytest.mark.parametrize("body, said", readme.answers(PAGE), ids=["article", "errors"])
def test_error_messages_match_the_page(steward, cluster, namespace, body, said):
    assert steward.running()
    readme.check_answer(cluster, namespace, body, said)
