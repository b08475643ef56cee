# SPDX-License-Identifier: Apache-2.0
"""A rotation is disturbed in each of its steps: steward dies after a write, something else happens,
and the next steward ends the rotation."""

import base64
import itertools

import pytest
from support import clock as clocks
from support import databases, databaseuser as dbu
from support import dblogin, faults, pause
from support import steward as stw
from support import wait
from support.replicas import long_run

FIRST = "first-Passw0rd-1"
SECRET = "app-conn"
STEPS_MAX = 30
HOUR = 3600
server = databases.each(databases.ENDS)
# Two passwords of one account, and two logins.
MYSQL = databases.newest(databases.MySQL)
POSTGRESQL, OLD_POSTGRESQL = (end(databases.PostgreSQL) for end in (databases.newest, databases.oldest))
OLD_MARIADB = databases.oldest(databases.MariaDB)


def on(*servers):
    """The mark of a test that runs on these servers, and in a long run on all."""
    return databases.on(*long_run(servers, databases.ENDS))


@pytest.fixture(scope="module")
def rotating(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server)


@pytest.fixture
def shop(rotating, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    yield namespace
    if not rotating.steward.running():
        rotating.steward.start()
    rotating.forget(namespace)


def connection(dbenv, shop):
    return dblogin.connection(dbenv.cluster, shop, SECRET)


def create(dbenv, server, shop, overlap):
    """An account "app" whose rotation is Auto."""
    rights = [{"database": "shop", "privileges":
               ["CONNECT" if server.engine == "postgresql" else "SELECT"]}]
    dbenv.create("app", shop, FIRST, grants=rights, connectionSecret={"name": SECRET},
                 rotation={"overlapSeconds": overlap})


def die_at(dbenv, shop, step):
    """Whether a steward died after its write of this number; False: the rotation has fewer."""
    log = dbenv.folder / "faults.log"
    log.write_text("")
    one = faults.OfScene(dbenv).start(ready=False, env={"STEWARD_FAULT_AT": str(step),
                                                        "STEWARD_FAULT_LOG": str(log)})
    wait.until("its death or the end",
               lambda: not one.running() or dbenv.has_rotated("app", shop), 60)
    died = not one.running()
    if not died:
        one.kill()
    assert not died or len(log.read_text().splitlines()) == step, one.log_tail()
    return died


def ended(dbenv, server, shop, password, old):
    """Waits for the end of the rotation to this password: it works, and the old login does not."""
    dbenv.wait_rotated("app", shop, 90)
    wait.until("its connection", lambda: (connection(dbenv, shop) or ["", ""])[1] == password, 90)
    assert server.login(*connection(dbenv, shop))
    assert not server.login(*old)


def rotate_in_steps(dbenv, server, shop, disturb):
    """A rotation for each step, after which disturb(the older login) is called; returns how many there
    were."""
    create(dbenv, server, shop, 1)
    for step in range(1, STEPS_MAX):
        old, password = connection(dbenv, shop), f"rotated-{step}-Passw0rd"
        dbenv.steward.kill()
        dbenv.cluster.apply(dbu.secret("app", shop, password))
        died = die_at(dbenv, shop, step)
        if died:
            disturb(old)
        if not dbenv.steward.running():
            dbenv.steward.start()
        ended(dbenv, server, shop, password, old)
        if not died:
            return step - 1
    raise AssertionError(f"a rotation has more than {STEPS_MAX} writes")


@on(MYSQL, OLD_MARIADB)
def test_rotation_survives_server_kill_in_each_step(rotating, server, shop):
    def disturb(_):
        server.kill()
        rotating.steward.start()
        rotating.wait_condition("app", shop, "TargetReachable", "ConnectFailed", "CircuitOpen")
        server.start()
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


@on(MYSQL, OLD_POSTGRESQL)
def test_rotation_survives_silent_server_in_each_step(rotating, server, shop):
    """It keeps its connections, and answers nothing for a while."""
    def disturb(_):
        pause.pause(server.process)
        try:
            rotating.steward.start()
            rotating.poke("app", shop)
            wait.until("a moment", iter([False] * 10 + [True]).__next__, every=0.1)
        finally:
            pause.resume(server.process)
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


@on(MYSQL, POSTGRESQL)
def test_rotation_survives_deleted_connection_secret_in_each_step(rotating, server, shop):
    assert rotate_in_steps(rotating, server, shop, lambda _: rotating.cluster.delete(
        "secrets", SECRET, shop)) >= 4


@on(MYSQL, OLD_MARIADB)
def test_rotation_survives_edited_connection_secret_in_each_step(rotating, server, shop):
    """Another client writes values of its own into it: they are replaced."""
    def disturb(_):
        rotating.cluster.patch("secrets", SECRET, shop, {"stringData": {
            "user": "mallory", "password": "of-mallory-1", "more": "x"}})
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4
    data = rotating.cluster.get("secrets", SECRET, shop)["data"]
    assert "more" not in data


@on(OLD_MARIADB)
def test_rotation_survives_foreign_connection_secret_in_each_step(rotating, server, shop):
    """It has the place of the connection Secret: no login that works ends until it is gone."""
    def disturb(old):
        works = [login for login in (old, connection(rotating, shop)) if server.login(*login)]
        rotating.cluster.delete("secrets", SECRET, shop)
        rotating.cluster.apply(dbu.secret(SECRET, shop, "of-another-owner"))
        rotating.steward.start()
        rotating.wait_condition("app", shop, "ConnectionSecretSynced", "NameConflict")
        assert all(server.login(*login) for login in works)
        assert "of-another-owner" in decoded(rotating, SECRET, shop)
        rotating.cluster.delete("secrets", SECRET, shop)
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


@on(OLD_POSTGRESQL)
def test_rotation_survives_deleted_password_secret_in_each_step(rotating, server, shop):
    """Its owner makes it again later: until then the login of the connection Secret works."""
    def disturb(_):
        [password] = decoded(rotating, "app", shop)
        rotating.cluster.delete("secrets", "app", shop)
        rotating.steward.start()
        rotating.wait_condition("app", shop, "SecretResolved", "SecretNotFound")
        assert server.login(*connection(rotating, shop))
        rotating.cluster.apply(dbu.secret("app", shop, password))
    assert rotate_in_steps(rotating, server, shop, disturb) >= 4


def decoded(dbenv, name, shop):
    """The values of a Secret."""
    return [base64.b64decode(v).decode() for v in dbenv.cluster.get("secrets", name, shop)[
        "data"].values()]


@pytest.mark.parametrize("hours", [(25, 1), (1, 25)], ids=["forwards", "backwards"])
@on(OLD_POSTGRESQL)
def test_rotation_survives_clock_step_in_each_step(rotating, server, shop, tmp_path, hours):
    """By a day: forwards in every second step and backwards in the others, and then the other way
    round.  The certificates of the servers are valid at both times."""
    if not clocks.library():
        pytest.skip("there is no libfaketime")
    assert rotating.steward.stop() == 0
    ahead = itertools.cycle(hours)
    with rotating.at(clocks.Clock(tmp_path)) as clock:
        clock.set(hours[1] * HOUR)
        rotating.steward.start()
        assert rotate_in_steps(rotating, server, shop, lambda _: clock.set(next(ahead) * HOUR)) >= 4


class Pair:
    """Two replicas of a dbenv's steward: one that leads and dies after its write of this number, and
    another.  They end with the `with` block."""

    def __init__(self, dbenv, step):
        self.dbenv, self.step, self.log = dbenv, step, dbenv.folder / "faults.log"
        self.first = self.other = None

    def leads(self, one):
        """Whether it is the leader."""
        return one.metric("leader_election_master_status") == 1

    def __enter__(self):
        dbenv, elect = self.dbenv, ["--leader-elect"]
        self.log.write_text("")
        self.first = faults.OfScene(dbenv).start(args=elect, env={
            "STEWARD_FAULT_AT": str(self.step), "STEWARD_FAULT_LOG": str(self.log)})
        wait.until("the first to lead", lambda: self.leads(self.first))
        self.other = stw.Steward(dbenv.binary, dbenv.cluster, dbenv.cluster.kubeconfig_steward,
                                 dbenv.folder, [*dbenv.steward.args, *elect], name="other").start()
        assert not self.leads(self.other)
        return self

    def died_after(self):
        """The write after which the first one died; None: it still runs."""
        return None if self.first.running() else self.log.read_text().split()[-1]

    def __exit__(self, *_):
        self.first.kill()
        if self.other:
            assert self.other.stop() == 0, self.other.log_tail()


@on(OLD_MARIADB)
def test_rotation_survives_leader_kill_in_each_step(rotating, server, shop):
    """The other replica ends the rotation; applications log in all the time, and no login fails."""
    create(rotating, server, shop, 4)
    assert rotating.steward.stop() == 0
    deaths = []
    with dblogin.Applications(rotating.cluster, server, shop, SECRET) as apps:
        for step in long_run([1], range(1, STEPS_MAX)):
            old, password = connection(rotating, shop), f"rotated-{step}-Passw0rd"
            with Pair(rotating, step) as two:
                rotating.cluster.apply(dbu.secret("app", shop, password))
                ended(rotating, server, shop, password, old)
                if not two.died_after():
                    break
                assert two.leads(two.other)
                deaths.append(two.died_after())
    print(f"{server.engine} {server.installed.version}: {apps.logins} logins, {len(apps.failed)} "
          f"failed; the leader died after {deaths}")
    assert deaths and apps.failed == [] and apps.logins > 100, f"of {apps.logins}: {apps.failed[:5]}"
