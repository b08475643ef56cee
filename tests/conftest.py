# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the integration and the end-to-end tests: the program, a real cluster, steward in it.

One cluster serves the whole run: the one that $STEWARD_CLUSTER_NAME names (scripts/test sets it),
or a new one.  `steward` is started once per module that uses it, since a start takes only a moment.
A test that kills it, or needs other flags, uses `run_steward`.
"""

import contextlib
import fcntl
import itertools
import os
import pathlib
import sys

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# These imports need the path set above.
from support import cluster as k8s  # noqa: E402
from support import paths, rights, s3, started  # noqa: E402
from support import steward as stw  # noqa: E402

yaml.SafeLoader = yaml.CSafeLoader  # for yaml.safe_load: libyaml takes a tenth of the time

_numbers = itertools.count(1)
# Tests that use one of these fixtures need running pods.
NODE_FIXTURES = {"stage", "agent_stage", "in_pods"}
# On a node, a test that uses one of these stays in a namespace of its own, unless it also uses a
# steward that watches all namespaces.
STAGE_FIXTURES = {"stage", "agent_stage"}
EVERYWHERE_FIXTURES = {"in_pods", "beside", "steward", "run_steward", "controller"}


@pytest.fixture(scope="session")
def steward_binary():
    """The program under test, as a path."""
    return paths.steward_binary()


@pytest.fixture(scope="session")
def cluster():
    """A support.cluster.Cluster."""
    given, existing = _given()
    name = given or ("" if existing else f"e2e-{os.getpid()}")
    if not given:
        k8s.cluster_command(name, "up", "--audit", *(["--node"] if _may_have_node() else []))
    since = rights.now()
    try:
        one = k8s.Cluster(k8s.cluster_env(name))
        started.note("kubernetes", one.release())
        yield one
        rights.leave(one.audit_log, since)
    finally:
        if not given:
            k8s.cluster_command(name, "down")


def pytest_collection_modifyitems(config, items):
    """Marks tests whose fixtures run pods as `node`, and skips them with their fixtures where no
    pod can run.  Marks tests that can share one node with others as `stage`."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if NODE_FIXTURES & names:
            item.add_marker("node")
        if STAGE_FIXTURES & names and not EVERYWHERE_FIXTURES & names:
            item.add_marker("stage")
    on_node = [item for item in items if item.get_closest_marker("node")]
    if on_node and not config.option.collectonly and not _has_node():
        for item in on_node:
            item.add_marker(pytest.mark.skip(
                reason="the cluster has no node: no pod can run (needs root)"))


def _has_node():
    """Whether the cluster fixture's cluster has, or will have, a node."""
    given, existing = _given()
    if given or existing:
        return k8s.cluster_env(given)["STEWARD_CLUSTER_NODE"] == "1"
    return _may_have_node()


def _given():
    """(name of the cluster to use, whether it is an existing one that the tests do not own)"""
    return (os.environ.get("STEWARD_CLUSTER_NAME", ""),
            os.environ.get("USE_EXISTING_CLUSTER") == "true")


def _may_have_node():
    return os.geteuid() == 0 and not os.environ.get("STEWARD_TEST_NO_NODE")


@pytest.fixture(scope="session")
def installed(cluster, steward_binary, tmp_path_factory):
    """The cluster with CRDs and RBAC; `installed.kubeconfig_steward` acts as steward's account."""
    with _one_at_a_time(cluster):
        new = stw.install(cluster, steward_binary)
        if new and cluster.name and not os.environ.get("KUBEBUILDER_ASSETS"):
            # The garbage collector looks for new kinds every 30 s, and at its start.
            cluster.component("stop", "controller-manager")
            cluster.component("start", "controller-manager")
    path = tmp_path_factory.mktemp("account") / "kubeconfig"
    cluster.kubeconfig_steward = cluster.kubeconfig_of(stw.ACCOUNT, path)
    yield cluster
    stw.uninstall_webhooks(cluster)


@contextlib.contextmanager
def _one_at_a_time(cluster):
    """Serializes test workers that share a cluster."""
    if not os.path.exists(cluster.audit_log):
        yield  # an existing cluster: no other worker uses it
        return
    with open(cluster.audit_log, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _factory(installed, binary, folder):
    started = []

    def start(*args, ready=True, webhook=False, kubeconfig=None, clock=None, env=None,
              binary=binary):
        number = next(_numbers)
        one = stw.Steward(binary, installed, kubeconfig or installed.kubeconfig_steward, folder,
                          args, name=f"steward-{number}", clock=clock, env=env)
        started.append(one)
        if webhook:
            stw.install_webhooks(installed, binary, one.webhook_port)
        one.start(ready=ready)
        if webhook:
            one.wait_webhook()
        return one

    return start, started


def _end(installed, started):
    stw.uninstall_webhooks(installed)
    for one in started:
        if one.running():
            assert one.stop() == 0, one.log_tail()


@pytest.fixture(scope="module")
def steward(installed, steward_binary, tmp_path_factory):
    """A ready steward that serves the API server's webhook calls."""
    start, started = _factory(installed, steward_binary, tmp_path_factory.mktemp("steward"))
    try:
        yield start(webhook=True)
    finally:
        _end(installed, started)


@pytest.fixture
def run_steward(installed, steward_binary, tmp_path):
    """run_steward(*flags, ready=True, webhook=False): starts one more; all are stopped at the end.

    With webhook=True the webhook configurations point to this one; with a clock it uses that clock.
    """
    start, started = _factory(installed, steward_binary, tmp_path)
    try:
        yield start
    finally:
        _end(installed, started)


@pytest.fixture
def namespace(installed):
    """A namespace for this test.  At the end it is deleted, or, in a cluster without a node, which is
    there for the tests alone, only what acts in it."""
    name = f"t{os.getpid()}-{next(_numbers)}"
    installed.create_namespace(name)
    yield name
    if installed.has_node or not installed.name:
        installed.delete_namespace(name)
    else:
        # An EtcdRestore creates an EtcdCluster again as long as it is there itself.
        installed.empty_namespace(name, reversed(stw.KINDS))


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """A support.s3.S3."""
    if not s3.program():
        pytest.skip("no s3rver is here: run 'scripts/bootstrap etcd'")
    server = s3.S3(tmp_path_factory.mktemp("s3")).start()
    yield server
    server.stop()
