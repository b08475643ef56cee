# SPDX-License-Identifier: Apache-2.0
"""Compares the rights that steward has with those that it was seen to use: no more, no fewer.

scripts/test runs this after all suites.  Their clusters write the uses found in their audit logs to
the folder $STEWARD_TEST_RIGHTS.
"""

import os

import pytest

from support import rights

# Rights that the tests do not use on every resource, with their purpose.
FINALIZERS = "asked for by the admission plug-in OwnerReferencesPermissionEnforcement, which is off " \
             "by default and leaves no line: an owner reference that blocks its owner's end"
WHOLE_CHILD = "a child that was refused is read whole, to take out what an earlier apply left behind"
FRESH = "an object whose status met a conflict is read again"
RARE = {
    ("mycompany.com", "apps/finalizers", "update"): FINALIZERS,
    ("operator.k8s-summit.org", "mywebs/finalizers", "update"): FINALIZERS,
    ("etcd.database.coreos.com", "etcdclusters/finalizers", "update"): FINALIZERS,
    ("", "configmaps", "get"): WHOLE_CHILD,
    ("", "services", "get"): WHOLE_CHILD,
    ("policy", "poddisruptionbudgets", "get"): WHOLE_CHILD,
    ("autoscaling", "horizontalpodautoscalers", "get"): WHOLE_CHILD,
    ("handsomeguy.cn", "databaseusers", "get"): FRESH,
    ("etcd.database.coreos.com", "etcdclusters", "get"): FRESH,
    ("etcd.database.coreos.com", "etcdbackups", "get"): FRESH,
    ("etcd.database.coreos.com", "etcdrestores", "get"): FRESH,
}


@pytest.fixture(scope="module")
def seen():
    """(allowed uses, forbidden uses)"""
    folder = os.environ.get(rights.FOLDER, "")
    if not os.path.isdir(folder) or not os.listdir(folder):
        pytest.skip("no suite has left what it saw: run 'scripts/test e2e'")
    return rights.left(folder)


def test_all_used_rights_are_granted(steward_binary, seen):
    """Includes uses that were forbidden because a test had removed rights."""
    grants = rights.granted(steward_binary)
    assert rights.beyond(grants, seen[0] | seen[1]) == []


def test_all_granted_rights_are_used(steward_binary, seen):
    if not os.environ.get("STEWARD_TEST_RIGHTS_WHOLE"):
        pytest.skip("not all suites ran, with a node: what they would have used is not known")
    grants = rights.granted(steward_binary)
    idle = [g for g in rights.idle(grants, seen[0]) if g[1:4] not in RARE]
    assert idle == []


@pytest.mark.parametrize("kind", rights.KINDS)
def test_all_rights_of_a_kind_are_used_by_it(steward_binary, seen, kind):
    """A right that only another kind needs is not granted to this one.  Its own uses are those
    of its worker threads in all suites, those of threads that work for all kinds, and those of a
    steward with this kind alone (e2e/test_kinds.py)."""
    assert seen
    if not os.environ.get("STEWARD_TEST_RIGHTS_WHOLE"):
        pytest.skip("not all suites ran, with a node: what they would have used is not known")
    parts = rights.of_parts(os.environ[rights.FOLDER])
    kinds = rights.KINDS[kind]
    uses = parts.get("", set()).union(*(parts.get(k.lower(), set()) for k in kinds))
    idle = [g for g in rights.idle(rights.granted(steward_binary, kinds), uses)
            if g[1:4] not in RARE]
    assert idle == []


def test_rarely_used_rights_are_granted(steward_binary):
    """A right that is no longer granted must be removed from the list above."""
    granted = {grant[1:4] for grant in rights.granted(steward_binary)}
    assert set(RARE) <= granted


@pytest.mark.parametrize("use, expected", [
    (("shop", "", "pods", "delete", "x"), []),
    (("shop", "", "pods", "deletecollection", ""), [("shop", "", "pods", "deletecollection", "")]),
    (("own", "", "leases", "get", "lock"), []),
    (("shop", "", "leases", "get", "lock"), [("shop", "", "leases", "get", "lock")]),
    (("own", "", "leases", "get", "other"), [("own", "", "leases", "get", "other")]),
])
def test_grant_permits_its_uses(use, expected):
    grants = {("wide", "", "pods", "delete", ()): None,
              ("own", "", "leases", "get", ("lock",)): "own"}
    assert rights.beyond(grants, {use}) == expected
    assert (len(rights.idle(grants, {use})) == 1) == (expected == [])
