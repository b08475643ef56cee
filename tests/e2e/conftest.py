# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests of the reconcilers."""

import os
import pathlib

import pytest

from support import clock as clocks
from support import databases, databaseuser, etcd, etcdbackup, etcdcluster, images
from support import replicas as replica
from support import steward as stw


@pytest.fixture(scope="module")
def controller(installed, steward_binary, tmp_path_factory):
    """A steward that reconciles.  No webhook is installed, so all that a test writes is stored."""
    stw.uninstall_webhooks(installed)
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("controller"), name="controller").start()
    yield one
    if one.running():
        assert one.stop() == 0, one.log_tail()


@pytest.fixture(scope="session")
def image():
    """(the archive of steward's image, its digest).  $STEWARD_TEST_IMAGE: an existing archive."""
    given = os.environ.get("STEWARD_TEST_IMAGE")
    if given:
        return pathlib.Path(given), images.digest(given)
    if images.missing():
        pytest.skip(images.missing())
    return images.shared()


@pytest.fixture(scope="module")
def beside(installed, steward_binary, tmp_path_factory):
    """A support.replicas.Beside: two replicas as processes, whose webhooks the API server calls."""
    stw.uninstall_webhooks(installed)
    with replica.beside(installed, steward_binary, tmp_path_factory.mktemp("beside")) as two:
        yield two


@pytest.fixture(scope="module")
def in_pods(installed, image):
    """A support.replicas.InPods: two replicas, installed by `kubectl apply -k config/default`."""
    stw.uninstall_webhooks(installed)
    with replica.in_pods(installed, image[0]) as two:
        yield two


@pytest.fixture(params=["beside", pytest.param("in_pods", marks=pytest.mark.node)])
def replicas(request):
    """`beside` and `in_pods`, one after the other."""
    two = request.getfixturevalue(request.param)
    two.refill()
    return two


def _needs_etcd():
    if etcd.missing("3.4", "3.5"):
        pytest.skip(etcd.missing("3.4", "3.5"))


@pytest.fixture(scope="module")
def stage(installed, steward_binary, tmp_path_factory):
    """An etcdcluster.Stage: a namespace on a real node, and a steward for EtcdClusters in it."""
    _needs_etcd()
    stw.uninstall_webhooks(installed)
    with etcdcluster.Stage(installed, steward_binary, tmp_path_factory.mktemp("stage"),
                           *etcdcluster.ONE_KIND) as one:
        yield one


@pytest.fixture(scope="module")
def agent_stage(installed, steward_binary, tmp_path_factory):
    """A stage whose steward has an agent image, and a Secret with the credentials of `bucket`."""
    _needs_etcd()
    stw.uninstall_webhooks(installed)
    folder = tmp_path_factory.mktemp("stage")
    etcdcluster.give_agent(installed, folder, etcdbackup.AGENT)
    with etcdcluster.Stage(installed, steward_binary, folder,
                           "--agent-image", etcdbackup.AGENT) as one:
        etcdbackup.give_secret(installed, one.namespace)
        yield one


@pytest.fixture
def clock(tmp_path):
    """A support.clock.Clock: the clock of the stewards that are started with it."""
    if clocks.library() is None:
        pytest.skip("libfaketime is not installed (scripts/bootstrap test)")
    return clocks.Clock(tmp_path)


@pytest.fixture
def pods_stay_pending(installed):
    """No pod is scheduled, so that a test can write its status: a kubelet would overwrite it."""
    nodes = [n["metadata"]["name"] for n in installed.list("nodes")]
    for node in nodes:
        installed.cordon(node)
    yield
    for node in nodes:
        installed.cordon(node, False)


@pytest.fixture(scope="module")
def mariadb():
    """A support.databases.MariaDB.  A test that stops it starts it again."""
    yield from databases.running(databases.MariaDB)


@pytest.fixture(scope="module")
def postgresql():
    """A support.databases.PostgreSQL."""
    yield from databases.running(databases.PostgreSQL)


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory, mariadb):
    """A databaseuser.Environment with the target "main".  No webhook is installed."""
    stw.uninstall_webhooks(installed)
    one = databaseuser.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"),
                                   {"main": mariadb})
    one.steward.start()
    yield one
    if one.steward.running():
        assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(dbenv, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    if not dbenv.steward.running():
        dbenv.steward.start()
    dbenv.forget(namespace)
