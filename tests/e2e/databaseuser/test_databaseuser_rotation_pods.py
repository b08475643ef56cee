# SPDX-License-Identifier: Apache-2.0
"""Rotation while an application's pods log in on a real node, and steward dies after each of its
writes: no login fails."""

import statistics
import time

import pytest
from support import databases, databaseuser as dbu
from support import dblogin, dbpods, faults, wait
from support.replicas import long_run

pytestmark = pytest.mark.node
SECRET = "app-conn"
server = databases.each(databases.ENDS[:long_run(1, len(databases.ENDS))])


@pytest.fixture(scope="module")
def rotating(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server)


@pytest.fixture
def shop(rotating, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    rotating.cluster.delete("deployment", dbpods.NAME, namespace)
    wait.until("no pod to log in", lambda: not rotating.cluster.list("pods", namespace), 120)
    if not rotating.steward.running():
        rotating.steward.start()
    rotating.forget(namespace)


class Steps:
    """Seconds from the change of the Secret to each step of a rotation."""

    def __init__(self, dbenv, pods, shop, password):
        self.dbenv, self.pods, self.shop, self.password = dbenv, pods, shop, password
        self.old = pods.names()
        self.begin, self.at = time.monotonic(), {}

    def _reached(self, step, check):
        if step not in self.at and check():
            self.at[step] = time.monotonic() - self.begin
        return step in self.at

    def look(self):
        """Whether the last one is reached."""
        connection = dblogin.connection(self.dbenv.cluster, self.shop, SECRET)
        return self._reached("published", lambda: connection and connection[1] == self.password) and \
            self._reached("replaced", lambda: not self.old & self.pods.names()) and \
            self._reached("ended", lambda: self.dbenv.has_rotated("app", self.shop))


def figures(server, pods, deaths, all_steps):
    """What the table of docs/databaseuser.md has."""
    users, failed = pods.logins()
    return {"server": f"{server.engine} {server.installed.version}", "rotations": len(all_steps),
            "logins": users.total(), "failed": len(failed), "deaths": len(deaths),
            "pods restarted": pods.started() - pods.replicas,
            **{step: [round(f(s[step] for s in all_steps), 1) for f in (statistics.median, max)]
               for step in all_steps[0]}}


def test_rotation_fails_no_login_of_running_pods(rotating, server, shop, tmp_path, record_property):
    """The overlap is short: the older credential ends as soon as no pod has it."""
    rights = [{"database": "shop", "privileges":
               ["CONNECT" if server.engine == "postgresql" else "SELECT"]}]
    rotating.create("app", shop, "first-Passw0rd-1", grants=rights,
                    connectionSecret={"name": SECRET}, rotation={"overlapSeconds": 1})
    pods = dbpods.Pods(rotating.cluster, server, shop, SECRET, tmp_path / "logins")
    rotating.cluster.apply(pods.manifest)
    wait.until("all to log in", lambda: pods.started() == pods.replicas, 120)
    rotating.steward.kill()
    deaths, all_steps, count = [], [], long_run(2, 50)
    for n in range(count):
        old, password = dblogin.connection(rotating.cluster, shop, SECRET), f"rotated-{n}-Passw0rd"
        rotating.cluster.apply(dbu.secret("app", shop, password))
        steps = Steps(rotating, pods, shop, password)
        deaths += faults.Dying(faults.OfScene(rotating), patience=3).until(steps.look).deaths
        all_steps.append(steps.at)
        assert not server.login(*old)
        wait.until("the new pods to log in", lambda n=n: pods.started() == (n + 2) * pods.replicas, 120)
    users, failed = pods.logins()
    record_property("figures", figures(server, pods, deaths, all_steps))
    assert failed == [] and users.total() > 100, f"of {users.total()}: {failed[:5]}"
    assert {"sql", "secret", "restart", "status"} <= set(deaths), deaths
    assert server.login("app" if server.engine == "mysql" else "app_a", password)
