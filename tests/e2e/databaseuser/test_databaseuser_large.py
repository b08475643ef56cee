# SPDX-License-Identifier: Apache-2.0
"""Objects that are too large for a small memory limit are deleted all the same: with their account, or
with a condition that says what to do."""

import pytest
from support import app, cluster as k8s, databaseuser as dbu
from support import steward as stw
from support.cluster import condition

# In the text of an object each takes six bytes: with it, it has more than 1.3 MB.
NOTE = {"steward.dev/note": "<" * 225_000}
HOLD = ["example.org/hold"]
KINDS = ("--kinds", "DatabaseUser,App")


@pytest.fixture(scope="module")
def scarce(installed, steward_binary, tmp_path_factory, mariadb):
    """A dbu.Environment whose steward takes 64 MiB for its limit."""
    stw.uninstall_webhooks(installed)
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("scarce"), {"main": mariadb},
                          (*KINDS, "--memory-limit=64"))
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(installed, namespace):
    """A namespace in which no finalizer is left."""
    yield namespace
    for kind in (dbu.KIND, app.KIND):
        for one in installed.list(kind, namespace):
            installed.patch(kind, one["metadata"]["name"], namespace, {"metadata": {"finalizers": None}},
                            check=False)


def make_too_large(cluster, kind, name, namespace):
    """Gives it the note, and waits until its status says so."""
    cluster.annotate(kind, name, namespace, NOTE)
    found = cluster.wait_condition(kind, name, namespace, "Stalled", "InvalidSpec")
    assert "metadata.annotations has 13" in found["message"], found
    assert "its reconcile would need 1" in found["message"], found


def test_oversized_object_deletion_follows_its_policy(scarce, mariadb, shop):
    """The policy is read although the object is too large to be reconciled."""
    scarce.create("stays", shop, deletionPolicy="Lock")
    scarce.wait_ready("stays", shop)
    make_too_large(scarce.cluster, dbu.KIND, "stays", shop)
    scarce.delete("stays", shop)
    scarce.wait_event("stays", shop, "Locked")
    assert "stays" in str(mariadb.all_accounts())
    assert not mariadb.login("stays", "first-Passw0rd-1")


def test_deletion_beyond_memory_limit_is_reported(scarce, mariadb, shop):
    """With half the memory the deletion, too, waits; shortening the field is enough."""
    scarce.create("ends", shop)
    scarce.wait_ready("ends", shop)
    make_too_large(scarce.cluster, dbu.KIND, "ends", shop)
    assert scarce.steward.stop() == 0
    scarce.steward.args = [*scarce.steward.args[:-1], "--memory-limit=32"]
    scarce.steward.start()
    scarce.delete("ends", shop, wait_gone=False)
    found = scarce.cluster.wait_for(dbu.KIND, "ends", shop, lambda user: "its deletion would need" in
                                    condition(user, "Stalled").get("message", ""), 60, "the message")
    text = condition(found, "Stalled")["message"]
    assert "metadata.annotations has 13" in text and "shorten it to 838860 bytes" in text, text
    scarce.wait_event("ends", shop, "InvalidSpec", "its deletion would need")
    assert scarce.steward.metric("steward_memory_share_refused_total", share="reconciles") > 0
    doctor = k8s.run([scarce.binary, "doctor", "--kubeconfig", scarce.cluster.kubeconfig], check=False)
    assert f"the deletion of databaseusers {shop}/ends does not go on: the object is too long: it has 13" \
        in doctor.stdout, doctor.stdout
    scarce.annotate("ends", shop, dict.fromkeys(NOTE))
    scarce.cluster.wait_gone(dbu.KIND, "ends", shop)
    assert "ends" not in str(mariadb.all_accounts())


def test_oversized_app_is_deleted_without_its_contents(scarce, shop):
    """Another client's finalizer holds an App that is too large: it is being deleted, not invalid."""
    cluster = scarce.cluster
    cluster.apply(app.manifest("web", shop))
    cluster.patch(app.KIND, "web", shop, {"metadata": {"finalizers": HOLD}})
    make_too_large(cluster, app.KIND, "web", shop)
    cluster.delete(app.KIND, "web", shop, wait_gone=False)
    cluster.wait_for(app.KIND, "web", shop, lambda o: o["status"]["phase"] == "Terminating")
    cluster.patch(app.KIND, "web", shop, {"metadata": {"finalizers": None}})
    cluster.wait_gone(app.KIND, "web", shop)
