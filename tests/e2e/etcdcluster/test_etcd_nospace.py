# SPDX-License-Identifier: Apache-2.0
"""The database of a real EtcdCluster is full: steward reports it and changes no member; writes
resume when the quota is raised."""

import pytest
from support import etcdcluster as ecs
from support import gateway, wait
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


def test_full_and_then_not(etcd):
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
