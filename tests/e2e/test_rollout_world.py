# SPDX-License-Identifier: Apache-2.0
"""Events around two replicas under a stream of calls: the API server restarts, and thousands of
objects are created at once."""


import pytest

from support import myweb, wait
from support import replicas as replica
from support.replicas import long_run
from support.stream import Stream

# Peak memory of a process with that many MyWebs, created as fast as the API server accepts them:
# measured, and rounded up.
NEED_MIB = {500: 20, 20000: 36}


def test_api_server_restarts_fail_no_other_call(replicas, namespace):
    cluster = replicas.cluster
    if not cluster.name:
        pytest.skip("the cluster is not ours to stop")
    with Stream(cluster, namespace, outages=True) as stream:
        for turn in range(long_run(2, 20)):
            cluster.component("kill" if turn % 2 else "stop", "apiserver")
            cluster.component("start", "apiserver")
            stream.flow(30, 60)
        wait.until("all to be ready", lambda: all(replicas.is_ready(n) for n in replicas.names()),
                   60, every=0.2)
        looked = replicas.reconciles(replicas.leader())
        wait.until("objects to be looked at",
                   lambda: replicas.reconciles(replicas.leader()) > looked, 30, every=0.2)
        stream.flow(100)
        stream.check()


def mywebs(namespace):
    """The path of the collection."""
    return f"/apis/operator.k8s-summit.org/v1/namespaces/{namespace}/mywebs"


def burst(cluster, namespace, count):
    """Creates `count` MyWebs as fast as they are accepted.  They are paused, so that no children
    are created."""
    pause = {"steward.dev/paused": "true"}
    cluster.api.write_all(("POST", mywebs(namespace), myweb.manifest(f"b{n}", namespace, pause))
                               for n in range(count))


def clear(cluster, namespace):
    """Deletes them one by one: a single call for all would time out."""
    api, path = cluster.api, mywebs(namespace)
    api.write_all(("DELETE", f"{path}/{o['metadata']['name']}") for o in api.each(path))


def test_burst_of_creates_fits_into_memory(replicas, namespace):
    """Twice the memory that is needed suffices; in pods, that is the limit."""
    count = long_run(500, 20000)
    need = NEED_MIB[count]
    replicas.limit_memory(2 * need)
    try:
        replicas.roll()
        replicas.wait_webhook()
        began = replicas.restarts()
        burst(replicas.cluster, namespace, count)
        wait.until("all to be looked at", lambda: sum(
            replicas.metric(replicas.leader(), "steward_objects", kind="MyWeb", condition="Ready",
                            status=s) for s in ("True", "False", "Unknown")) >= count, 300, every=1)
        usage = replicas.usage()
        for name, (now, peak, cpu) in usage.items():
            print(f"{count} MyWebs, {name}: {now / 2**20:.1f} MiB, {peak / 2**20:.1f} MiB at the peak, "
                  f"{cpu:.1f} s of CPU")
        assert replicas.restarts() == began
        assert max(peak for _, peak, _ in usage.values()) <= need * 2**20
    finally:
        clear(replicas.cluster, namespace)
        replicas.limit_memory(None)


def test_cpu_and_memory_stay_within_documented_figures(replicas, namespace):
    """Idle, and under the stream: the documented figures, with a margin."""
    def measure(what, seconds):
        before = replicas.usage()
        replica.rest(seconds)
        for name, (now, peak, cpu) in replicas.usage().items():
            share = (cpu - before[name][2]) / seconds * 100
            print(f"{what}, {name}{' (leads)' if name == leader else ''}: {now / 2**20:.1f} MiB, "
                  f"{peak / 2**20:.1f} MiB at the peak, {share:.1f}% of a processor")
            yield now / 2**20, share
    leader = replicas.leader()
    seconds = long_run(5, 60)
    idle = list(measure("idle", seconds))
    with Stream(replicas.cluster, namespace) as stream:
        busy = list(measure("under the stream", seconds))
        stream.check()
    assert all(mib <= 20 and share <= 10 for mib, share in idle)
    assert all(mib <= 40 and share <= 100 for mib, share in busy)
