# SPDX-License-Identifier: Apache-2.0
"""The database of a real EtcdCluster is full: steward reports it and changes no member; writes
resume when the quota is raised.  Then its members are defragmented under a writer."""

import contextlib

import pytest
from support import etcdcluster as ecs
from support import gateway, replicas, wait
from support.cluster import condition

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def etcd(stage):
    """Three members with the minimum quota."""
    one = stage.etcd()
    one.apply(size=3, version=ecs.version("3.5"), upgrade={"pauseBetweenSeconds": 0},
              options={"quotaBackendBytes": "64Mi"})
    one.wait_settled(3)
    return one


def ready(etcd):
    """Whether all pods are Ready, and the Service has the addresses of all."""
    pods = etcd.pods().values()
    endpoints = etcd.cluster.get("endpoints", f"{etcd.name}-client", etcd.namespace)
    addresses = [a["ip"] for s in endpoints.get("subsets", []) for a in s.get("addresses", [])]
    return (all(condition(p, "Ready")["status"] == "True" for p in pods)
            and sorted(addresses) == sorted(p["status"]["podIP"] for p in pods))


def test_nospace_is_reported_until_quota_is_raised(etcd):
    with etcd.writer(prefix="w/") as writer:
        writer.wait_writes(20)
    stored, uids, members = gateway.fill(etcd.client(10)), etcd.uids(), etcd.names()
    etcd.wait_condition("AlarmActive", "True", "NoSpace")
    obj = etcd.get()
    assert condition(obj, "Ready")["status"] == "False"
    assert "quotaBackendBytes" in condition(obj, "AlarmActive")["message"]
    assert any("NOSPACE" in m.get("alarms", []) for m in obj["status"]["memberList"])

    # Longer than a readiness probe would need to remove them from the Service.
    reader = etcd.client()
    wait.stays("no member is touched, and all serve reads", lambda: etcd.uids() == uids
               and reader.get("w/00000000") is not None and ready(etcd), 15, 1)

    etcd.patch(options={"quotaBackendBytes": "256Mi"})
    etcd.wait_settled(3, 180)
    assert condition(etcd.get(), "AlarmActive")["status"] == "False"
    assert etcd.names() == members
    with etcd.writer(prefix="after/") as more:
        more.wait_writes(20)
    assert writer.check(etcd.served())
    assert len(etcd.client(20).post("/v3/kv/range", {
        "key": gateway.b64("big/"), "range_end": gateway.b64("big0"), "keys_only": True})["kvs"]) >= stored
    etcd.check_same()


def fill_with(etcd, mebibytes):
    """Raises the quota, and stores that much, which stays in use."""
    etcd.patch(options={"quotaBackendBytes": "4Gi"})
    etcd.wait_settled(3, 180)
    client = etcd.client(30)
    for number in range(mebibytes):
        client.put(f"kept/{number:04}", "x" * (1 << 20))


def test_defragmentation_fails_no_request(stage, etcd):
    """The databases have some 100 MiB of free pages, with STEWARD_TEST_LONG also 1 GiB in use.  A
    client goes on writing; one that knows all members and asks twice sees no failure."""
    etcd.wait_settled(3)
    kept = replicas.long_run(0, 1024)
    if kept:
        fill_with(etcd, kept)
    client, uids, leader = etcd.client(30), etcd.uids(), etcd.leader()
    client.post("/v3/kv/deleterange", {"key": gateway.b64("big/"), "range_end": gateway.b64("big0")})
    client.post("/v3/kv/compaction", {"revision": client.status()["header"]["revision"],
                                      "physical": True})
    members = sorted(etcd.names())
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(gateway.Writer(
            gateway.Rotating(etcd.at(name, timeout=10) for name in members), prefix="defrag/"))
        alone = [stack.enter_context(gateway.Writer(
            etcd.at(name, timeout=120), prefix=f"{name}/")) for name in members if kept]
        writer.wait_writes()
        etcd.annotate(ecs.DEFRAGMENT, "first")
        obj = etcd.wait(lambda o: ecs.defragmented(o, "first"), "all to be defragmented", 300)
        writer.wait_writes()
    print(f"{len(writer.acknowledged)} writes, longest gap {writer.longest_gap:.1f} s; longest pause "
          f"of a member {max([w.longest_gap for w in alone], default=0):.1f} s")
    assert writer.failures == 0, writer.last_error
    found = obj["status"]["defragmentation"]
    assert [m["name"] for m in found["members"]][-1] == leader, found
    assert sorted(m["name"] for m in found["members"]) == members
    assert all(m["dbSizeBefore"] - m["dbSizeAfter"] > 40 << 20 for m in found["members"]), found
    assert etcd.leader() != leader and etcd.uids() == uids
    etcd.check_same(writer)
    text = stage.steward.metrics_text()
    labels = f'namespace="{etcd.namespace}",cluster="{etcd.name}"'
    assert f'steward_etcd_defragmentations_total{{{labels},result="succeeded"}} 3' in text
    assert f"steward_etcd_defragmentation_reclaimed_bytes_total{{{labels}}} " in text
