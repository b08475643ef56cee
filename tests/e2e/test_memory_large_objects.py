# SPDX-License-Identifier: Apache-2.0
"""A steward in a cgroup with the shipped limit of 128 MiB, and objects of one namespace that together
are larger than that."""

import os

import pytest
from support import cgroup, myweb, stored, wait
from support import steward as stw

LIMIT = 128 << 20
COUNT = 138
PAGE = 890 << 10
SOME = 15  # of them are reconciled while the test waits
KIND = ("operator.k8s-summit.org", "mywebs")


@pytest.fixture(scope="module")
def pages(installed):
    """A namespace with 138 MyWebs whose pages have 890 KiB."""
    if "STEWARD_CLUSTER_ETCD_URL" not in installed.env:
        pytest.skip("the etcd of this cluster cannot be reached")
    stw.uninstall_webhooks(installed)
    name = f"large-{os.getpid()}"
    installed.create_namespace(name)
    installed.create(myweb.manifest("web-0", name, pageContentHtml="p" * PAGE))
    stored.multiply(installed, *KIND, name, COUNT, batch=1)
    yield name
    stored.remove_namespace(installed, *KIND, name)


@pytest.fixture
def small(installed, steward_binary, tmp_path):
    """start(*flags): a steward that reconciles, inside the limit."""
    started = []
    with cgroup.limited(LIMIT) as group:
        binary = group.program(steward_binary, tmp_path / "steward-in-a-group")

        def start(*flags):
            (tmp_path / f"run-{len(started)}").mkdir()
            started.append(stw.Steward(binary, installed, installed.kubeconfig_steward,
                                       tmp_path / f"run-{len(started)}", flags))
            return started[-1].start()
        yield start
        assert started[-1].running(), "the process was ended"
        assert started[-1].stop() == 0, started[-1].log_tail()


def synced(installed, namespace):
    """How many of them have their ConfigMaps."""
    return sum(1 for one in installed.list(myweb.KIND, namespace)
               for c in one.get("status", {}).get("conditions", [])
               if c["type"] == "ConfigMapSynced" and c["status"] == "True")


def test_many_large_objects_fit_into_the_limit(installed, pages, small):
    """Large ones are reconciled one after the other, and hold up no small one; a restart survives, too."""
    one = small()
    myweb.create_settled(installed, "modest", pages)
    wait.until("large ones to be reconciled",
               lambda: synced(installed, pages) > SOME or not one.running(), 120)
    assert one.running(), one.log_tail()
    assert one.metric("steward_cache_objects", resource="mywebs") >= COUNT
    assert one.metric("steward_cache_objects_without_spec", kind="MyWeb") >= COUNT
    assert one.metric("steward_memory_share_bytes", share="caches") < 4 << 20
    peak = one.metric("steward_memory_share_peak_bytes", share="reconciles")
    assert 0 < peak <= one.metric("steward_memory_share_limit_bytes", share="reconciles")
    assert one.metric("steward_memory_share_waits_total", share="reconciles") > 0
    assert one.stop() == 0, one.log_tail()
    again = small()
    assert again.metric("steward_cache_objects_without_spec", kind="MyWeb") >= COUNT


def test_oversized_object_names_its_largest_field(installed, pages, small):
    """With half the memory, a page of 890 KiB is too much.  A small object beside it is reconciled."""
    one = small("--memory-limit=64")
    installed.annotate(myweb.KIND, "web-0", pages, {"steward.dev/reconcile-at": "now"})
    found = myweb.wait_condition(installed, "web-0", pages, "Stalled", "InvalidSpec")
    assert "spec.pageContentHtml has 911362 bytes of it" in found["message"], found
    myweb.create_settled(installed, "modest-again", pages)
    assert one.metric("steward_memory_share_refused_total", share="reconciles") > 0
