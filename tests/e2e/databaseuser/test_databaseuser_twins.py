# SPDX-License-Identifier: Apache-2.0
"""TwinAccounts: rotation without a failed login on servers that have one password an account."""

import contextlib
import random
import statistics
import time

import pytest
from support import databases, databaseuser as dbu
from support import dblogin, dbtenant, faults
from support import wait
from support.cluster import condition
from support.replicas import long_run

FIRST, SECOND, THIRD = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
PG_SHOP = [{"database": "shop", "privileges": ["CONNECT"]},
           {"database": "shop", "schema": "public", "privileges": ["USAGE", "CREATE"]},
           {"database": "shop", "schema": "public", "table": "*", "privileges": ["SELECT", "INSERT"]}]
SHOP = [{"database": "shop", "privileges": ["SELECT", "INSERT", "CREATE", "CREATE VIEW"]}]
server = databases.each(databases.ENDS)


@pytest.fixture(scope="module")
def twins(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server)


@pytest.fixture
def shop(twins, namespace):
    """A namespace.  Its DatabaseUsers and their accounts are deleted before it is."""
    if not twins.steward.running():
        twins.steward.start()
    yield namespace
    if not twins.steward.running():
        twins.steward.start()
    twins.forget(namespace)


def grants(server):
    return PG_SHOP if server.engine == "postgresql" else SHOP


def create(dbenv, server, shop, overlap=3600, password=FIRST, **more):
    """An account "app" with twins."""
    more = {"grants": grants(server), "connectionSecret": {"name": "app-conn"},
            "rotation": {"overlapSeconds": overlap, "strategy": "TwinAccounts"}, **more}
    return dbenv.create("app", shop, password, **more)


def names(server):
    """The accounts that are there."""
    return {a.removesuffix("@%") for a in server.all_accounts() if a.startswith("app")}


def connection(dbenv, shop):
    return dblogin.connection(dbenv.cluster, shop, "app-conn")


def rotate(dbenv, shop, password):
    dbenv.cluster.apply(dbu.secret("app", shop, password))


def rotated(dbenv, shop, password, seconds=60):
    """Waits for the password in the connection; the login that it has."""
    wait.until("the new password", lambda: (connection(dbenv, shop) or ["", ""])[1] == password,
               seconds)
    return connection(dbenv, shop)[0]


def test_twin_logins_alternate_with_an_overlap(twins, server, shop):
    """The old login works until the end of the overlap, is then locked, and its turn comes again."""
    user = create(twins, server, shop, 4)
    assert connection(twins, shop) == ("app_a", FIRST) and user["status"]["login"] == "app_a"
    assert condition(user, "RotationComplete")["reason"] == "Complete"
    assert server.login("app_a", FIRST) and not server.login("app_b", FIRST)
    owner = {"app"} if server.engine == "postgresql" else set()
    assert names(server) == {"app_a", "app_b"} | owner  # both names are taken from the start
    assert not server.login("app", FIRST)
    rotate(twins, shop, SECOND)
    twins.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert connection(twins, shop) == ("app_b", SECOND)
    assert server.login("app_b", SECOND) and server.login("app_a", FIRST)
    assert not server.login("app_a", SECOND) and not server.login("app_b", FIRST)
    status = twins.wait_ready("app", shop)["status"]
    assert (status["login"], status["previousLogin"], status["rotation"]) == ("app_b", "app_a", 2)
    assert status["oldPasswordValidUntil"] > status["lastRotationTime"]
    twins.wait_condition("app", shop, "RotationComplete", "Complete")
    assert server.login("app_b", SECOND) and not server.login("app_a", FIRST)
    twins.wait_event("app", shop, "OldLoginLocked", "app_a")
    assert "previousLogin" not in twins.get("app", shop)["status"]
    rotate(twins, shop, THIRD)
    assert rotated(twins, shop, THIRD) == "app_a"
    assert server.login("app_a", THIRD) and server.login("app_b", SECOND)
    twins.delete("app", shop)
    assert names(server) == set()


def in_shop(server, text):
    """Runs statements as administrator of the database "shop"."""
    if server.engine == "postgresql":
        server.sql(text, database="shop")
    else:
        server.sql("USE shop; " + text)


@databases.on(databases.newest(databases.PostgreSQL), databases.newest(databases.MariaDB))
def test_twin_rotation_ignores_a_missing_table(twins, server, shop):
    """Both logins lack the right.  The new password works, and the old login ends."""
    pg = server.engine == "postgresql"
    where = {"database": "shop", "table": "stock", **({"schema": "public"} if pg else {})}
    in_shop(server, "CREATE TABLE stock (i int)")
    create(twins, server, shop, 3, grants=[*grants(server), {**where, "privileges": ["UPDATE"]}])
    in_shop(server, "DROP TABLE stock")
    if not pg:  # its rights stay with the name of the table; while that is there, they are given again
        in_shop(server, "REVOKE UPDATE ON stock FROM app_a; REVOKE UPDATE ON stock FROM app_b")
    rotate(twins, shop, SECOND)
    assert rotated(twins, shop, SECOND) == "app_b"
    assert server.login("app_b", SECOND)
    wait.until("the end of the old login", lambda: not server.login("app_a", FIRST), 60)
    assert server.login("app_b", SECOND) and connection(twins, shop) == ("app_b", SECOND)
    twins.wait_condition("app", shop, "GrantsSynced", "NoSuchObject")


def test_twin_logins_share_objects_and_rights(twins, server, shop):
    """Objects that one login made belong to both, and so do rights that come later."""
    create(twins, server, shop)
    assert server.login("app_a", FIRST, "CREATE TABLE made (n INT)")
    assert server.login("app_a", FIRST, "CREATE VIEW seen AS SELECT n FROM orders")
    rotate(twins, shop, SECOND)
    assert rotated(twins, shop, SECOND) == "app_b"
    if server.engine == "postgresql":
        for statement in ("ALTER TABLE made ADD m INT", "DROP TABLE made", "DROP VIEW seen"):
            assert server.login("app_b", SECOND, statement)
        server.sql("CREATE TABLE later (n INT)", "shop")
        more = [*PG_SHOP[:2], {**PG_SHOP[2], "privileges": ["SELECT", "INSERT", "DELETE"]}]
        delete = "DELETE FROM later"
    else:
        assert server.login("app_b", SECOND, "SELECT * FROM seen")
        more = [{**SHOP[0], "privileges": ["SELECT", "DELETE"]}]
        delete = "DELETE FROM orders WHERE n = 99"
    twins.patch("app", shop, grants=more)
    twins.wait_ready("app", shop)
    assert server.login("app_b", SECOND, delete) and server.login("app_a", FIRST, delete)
    twins.delete("app", shop)
    assert names(server) == set()
    if server.engine != "postgresql":
        server.sql("DROP VIEW shop.seen; DROP TABLE shop.made")
    else:
        server.sql("DROP TABLE later", "shop")


def test_account_changes_to_twins_and_back(twins, server, shop):
    """An account that logged in by itself gets twins, and goes back to one account: at any time the
    login of the connection Secret works, and the one before it until the end of the overlap."""
    user = create(twins, server, shop, rotation=None)
    assert connection(twins, shop) == ("app", FIRST) and "login" not in user["status"]
    assert server.login("app", FIRST, "CREATE TABLE made (n INT)")
    twins.patch("app", shop, rotation={"strategy": "TwinAccounts", "overlapSeconds": 3})
    twins.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert connection(twins, shop) == ("app_a", FIRST)
    assert server.login("app", FIRST) and server.login("app_a", FIRST)
    twins.wait_event("app", shop, "LoginChanged", "app_a")
    twins.wait_condition("app", shop, "RotationComplete", "Complete")
    assert not server.login("app", FIRST)
    if server.engine == "postgresql":
        assert server.login("app_a", FIRST, "ALTER TABLE made ADD m INT")
    twins.patch("app", shop, rotation={"strategy": "InPlace", "overlapSeconds": 3})
    twins.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert connection(twins, shop) == ("app", FIRST)
    assert server.login("app", FIRST) and server.login("app_a", FIRST)
    twins.wait_condition("app", shop, "RotationComplete", "Complete")
    assert server.login("app", FIRST) and not server.login("app_a", FIRST)
    rotate(twins, shop, SECOND)  # in place again
    assert rotated(twins, shop, SECOND) == "app"
    assert server.login("app", SECOND) and not server.login("app", FIRST)
    twins.delete("app", shop)
    assert names(server) == set()
    if server.engine == "postgresql":
        server.sql("DROP TABLE made", "shop")
    else:
        server.sql("DROP TABLE shop.made")


@databases.on(databases.newest(databases.MariaDB))
def test_twins_inherit_the_certificate_requirement(twins, server, shop):
    """An administrator asked for it before the object got two logins."""
    create(twins, server, shop, rotation=None)
    server.sql("ALTER USER app@'%' REQUIRE SUBJECT '/CN=one'")
    twins.patch("app", shop, rotation={"strategy": "TwinAccounts", "overlapSeconds": 3600})
    twins.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert "REQUIRE SUBJECT '/CN=one'" in server.sql("SHOW CREATE USER app_a@'%'")[0][0]
    assert not server.login("app_a", FIRST)


def test_in_place_password_ends_all_others(twins, server, shop):
    """InPlace with a new password ends all others, also those of twins in their overlap."""
    create(twins, server, shop)
    rotate(twins, shop, SECOND)
    assert rotated(twins, shop, SECOND) == "app_b"
    rotate(twins, shop, THIRD)
    twins.wait_condition("app", shop, "RotationComplete", "NewPasswordWaits")
    assert server.login("app_a", FIRST) and server.login("app_b", SECOND)
    with dblogin.Session(server, "app_b", SECOND, "shop") as session:
        twins.patch("app", shop, rotation={"strategy": "InPlace"})
        assert rotated(twins, shop, THIRD) == "app"
        wait.until("the end of the others", lambda: not server.login("app_a", FIRST) and
                   not server.login("app_b", SECOND))
        wait.until("the end of a session", lambda: not session.works())
    assert server.login("app", THIRD)
    with dblogin.Session(server, "app", THIRD, "shop") as session:
        rotate(twins, shop, FIRST)
        assert rotated(twins, shop, FIRST) == "app"
        wait.until("the end of a session", lambda: not session.works())
    assert server.login("app", FIRST)


def test_in_place_password_ends_all_others_after_kill(twins, server, shop):
    """steward dies after it wrote the connection Secret, and before the status: the password that is
    known gets no overlap.  (On MySQL the first write, a mark, is repeated until there is an account.)"""
    create(twins, server, shop)
    assert connection(twins, shop) == ("app_a", FIRST)
    twins.steward.kill()
    twins.patch("app", shop, rotation={"strategy": "InPlace"})
    rotate(twins, shop, SECOND)
    at = 1 if server.engine == "postgresql" else 2
    deaths = faults.Dying(faults.OfScene(twins), at=at).until(
        lambda: connection(twins, shop) == ("app", SECOND)).deaths
    assert deaths[-1] in ("secret", "sql"), deaths
    assert twins.get("app", shop)["status"]["login"] == "app_a"
    twins.steward.start()
    wait.until("the end of the other", lambda: not server.login("app_a", FIRST))
    twins.wait_condition("app", shop, "RotationComplete", "Complete")
    status = twins.wait_ready("app", shop)["status"]
    assert status["login"] == "app" and "previousLogin" not in status
    assert server.login("app", SECOND)


def test_open_session_delays_locking_of_old_login(twins, server, shop):
    """A client of the old login is still connected when the overlap is over: both logins go on
    working, and so does its session; when that ends, the login is locked."""
    create(twins, server, shop, 1)
    with dblogin.Session(server, "app_a", FIRST, "shop") as session:
        rotate(twins, shop, SECOND)
        found = twins.wait_condition("app", shop, "RotationComplete", "OldLoginInUse")
        assert '"app_a" still has 1 session on the server' in found["message"]
        rotate(twins, shop, THIRD)
        twins.wait_condition("app", shop, "RotationComplete", "NewPasswordWaits")
        assert session.works() and server.login("app_a", FIRST) and server.login("app_b", SECOND)
    twins.poke("app", shop)
    assert rotated(twins, shop, THIRD) == "app_a"
    assert server.login("app_a", THIRD) and not server.login("app_a", FIRST)


@databases.on(databases.newest(databases.PostgreSQL))
def test_undroppable_login_does_not_keep_others_open(twins, server, shop):
    """Another client holds a lock on the first login: the other ones are locked all the same."""
    create(twins, server, shop)
    rotate(twins, shop, SECOND)
    assert rotated(twins, shop, SECOND) == "app_b"
    server.sql("CREATE ROLE dba SUPERUSER LOGIN PASSWORD 'dba-Passw0rd-1'")
    try:
        with dblogin.Session(server, "dba", "dba-Passw0rd-1") as session:
            session.run("BEGIN; ALTER ROLE app_a CONNECTION LIMIT 3")
            twins.delete("app", shop, wait_gone=False)
            wait.until("the lock", lambda: not server.login("app_b", SECOND))
            twins.wait_condition("app", shop, "CleanupBlocked", "StatementTimeout")
            assert {"app", "app_a", "app_b"} <= names(server)
            session.run("ROLLBACK")
        twins.poke("app", shop)
        twins.delete("app", shop)
        assert not names(server)
    finally:
        server.sql("DROP ROLE dba")


def test_foreign_account_with_twin_name_is_not_touched(twins, server, shop):
    """Another client has an account with a twin's name: it stays as it is, and so does the password
    that applications use."""
    make = ("CREATE ROLE app_b LOGIN PASSWORD '{}'" if server.engine == "postgresql"
            else "CREATE USER 'app_b'@'%' IDENTIFIED BY '{}'").format(THIRD)
    server.sql(make)
    twins.cluster.apply([dbu.secret("app", shop, FIRST), dbu.manifest(
        "app", shop, grants=grants(server), connectionSecret={"name": "app-conn"},
        rotation={"strategy": "TwinAccounts"})])
    found = twins.wait_condition("app", shop, "UserSynced", "AlreadyExists")
    assert "app_b" in found["message"]
    assert rotated(twins, shop, FIRST) == "app_a" and server.login("app_a", FIRST)
    rotate(twins, shop, SECOND)
    twins.poke("app", shop)
    twins.wait_condition("app", shop, "UserSynced", "AlreadyExists")
    assert connection(twins, shop) == ("app_a", FIRST) and server.login("app_a", FIRST)
    twins.delete("app", shop)
    assert names(server) == {"app_b"}
    drop = "DROP ROLE app_b" if server.engine == "postgresql" else "DROP USER app_b"
    server.sql(drop)


def test_foreign_connection_secret_pauses_the_rotation(twins, server, shop):
    """Another owner's Secret takes the place of the connection: no login changes until it is gone."""
    create(twins, server, shop, 3)
    twins.cluster.delete("secrets", "app-conn", shop)
    other = dbu.secret("app-conn", shop, "of-another-owner")
    wait.until("another owner to be first", lambda: _take(twins, shop, other))
    rotate(twins, shop, SECOND)
    twins.wait_condition("app", shop, "ConnectionSecretSynced", "NameConflict")
    twins.wait_condition("app", shop, "RotationComplete", "ConnectionSecretBlocked")
    assert server.login("app_a", FIRST) and not server.login("app_b", SECOND)
    twins.cluster.delete("secrets", "app-conn", shop)
    assert rotated(twins, shop, SECOND) == "app_b"
    assert server.login("app_b", SECOND)


def _take(dbenv, shop, other):
    dbenv.cluster.delete("secrets", other["metadata"]["name"], shop)
    dbenv.cluster.apply(other)
    found = dbenv.cluster.get("secrets", other["metadata"]["name"], shop)
    return "ownerReferences" not in found["metadata"]


def test_restored_secret_does_not_unlock_old_login(twins, server, shop):
    """The connection Secret is replaced by an older copy of itself, and is deleted: both are repaired,
    and the locked login stays locked."""
    create(twins, server, shop, 2)
    old = twins.cluster.get("secrets", "app-conn", shop)
    rotate(twins, shop, SECOND)
    assert rotated(twins, shop, SECOND) == "app_b"
    wait.until("the end of the overlap", lambda: not server.login("app_a", FIRST))
    twins.wait_condition("app", shop, "RotationComplete", "Complete")
    twins.cluster.patch("secrets", "app-conn", shop, {
        "data": old["data"], "metadata": {"annotations": old["metadata"]["annotations"]}})
    assert rotated(twins, shop, SECOND) == "app_b"
    twins.cluster.delete("secrets", "app-conn", shop)
    assert rotated(twins, shop, SECOND) == "app_b"
    twins.wait_ready("app", shop)
    assert server.login("app_b", SECOND) and not server.login("app_a", FIRST)


def test_manual_twin_changes_are_reverted(twins, server, shop):
    """The locked login is unlocked by hand, and the current one gets another password."""
    create(twins, server, shop)
    if server.engine == "postgresql":
        server.sql(f"ALTER ROLE app_b LOGIN PASSWORD '{THIRD}'")
        server.sql("ALTER ROLE app_a PASSWORD 'by-hand-Passw0rd'; ALTER ROLE app_a RESET role")
    else:
        server.sql(f"ALTER USER 'app_b'@'%' IDENTIFIED BY '{THIRD}' ACCOUNT UNLOCK")
        server.sql("ALTER USER 'app_a'@'%' IDENTIFIED BY 'by-hand-Passw0rd'")
    twins.poke("app", shop)
    wait.until("the repair", lambda: server.login("app_a", FIRST) and
               not server.login("app_b", THIRD))
    assert not server.login("app_a", "by-hand-Passw0rd")
    if server.engine == "postgresql":
        assert server.login("app_a", FIRST, "DO $$ BEGIN ASSERT current_user = 'app'; END $$")


def test_kills_after_each_write_fail_no_login(twins, server, shop):
    """Logins go on while steward dies after each of its writes: no login fails."""
    create(twins, server, shop, 6)
    twins.steward.kill()
    deaths = []
    with dblogin.Applications(twins.cluster, server, shop, "app-conn") as apps:
        for password in [f"rotated-{n}-Passw0rd" for n in range(long_run(2, 5))]:
            rotate(twins, shop, password)
            deaths += faults.Dying(faults.OfScene(twins)).until(
                lambda p=password: _settled(twins, shop, p)).deaths
    assert {"sql", "secret", "status"} <= set(deaths), deaths
    assert apps.failed == [] and apps.logins > 100, f"of {apps.logins}: {apps.failed[:5]}"
    assert set(apps.users) == {"app_a", "app_b"}
    twins.steward.start()


def _settled(dbenv, shop, password, login=None):
    """The status follows the connection Secret: until then it is that of the rotation before, which had another
    login.  It is read once, so that all of it is of one moment."""
    status = dbenv.get("app", shop)["status"]
    return (connection(dbenv, shop) or ["", ""])[1] == password and \
        condition({"status": status}, "RotationComplete")["reason"] == "Complete" and \
        "previousLogin" not in status and status["rotation"] > 0 and login in (None, status["login"])


def timed_rotations(dbenv, shop, passwords, dice):
    """Seconds that each rotation takes, with SIGKILL at two random moments of it."""
    took = []
    for password in passwords:
        begin = time.monotonic()
        rotate(dbenv, shop, password)
        for _ in range(2):
            end = time.monotonic() + dice.uniform(0.0, 0.4)
            wait.until("its last moment", lambda t=end: time.monotonic() >= t, every=0.002)
            dbenv.steward.kill()
            dbenv.steward.start(ready=False)
        rotated(dbenv, shop, password, 120)
        took.append(time.monotonic() - begin)
    return took


def rotate_quietly_and_beside(dbenv, server, shop, passwords, victims):
    """Rotations while applications log in; the last three quarters of them beside the tenant, in whose presence
    a right is then taken, and the object deleted.  (applications, quiet times, other times, tenant)"""
    dice, quiet = random.Random(19), long_run(2, 11)
    with contextlib.ExitStack() as held:
        with dblogin.Applications(dbenv.cluster, server, shop, "app-conn", long_run(40, 100)) as apps:
            took = timed_rotations(dbenv, shop, passwords[:quiet], dice)
            tenant = held.enter_context(dbtenant.Tenant(server, victims))
            wait.until("its rights", lambda: tenant.done["rights"], 300)
            beside = timed_rotations(dbenv, shop, passwords[quiet:], dice)
        new = connection(dbenv, shop)[0]
        old = "app_b" if new == "app_a" else "app_a"
        wait.until("the end of the overlap", lambda: _settled(dbenv, shop, passwords[-1], new))
        assert server.login(new, passwords[-1]) and not server.login(old, passwords[-2])
        insert = "INSERT INTO orders VALUES (2)"
        assert server.login(new, passwords[-1], insert)
        dbenv.patch("app", shop, grants=[{**g, "privileges": [p for p in g["privileges"] if p != "INSERT"]}
                                         for g in grants(server)])
        wait.until("the end of a right", lambda: not server.login(new, passwords[-1], insert), 120)
        assert server.login(new, passwords[-1])
        dbenv.delete("app", shop)
        wait.until("the end of the accounts", lambda: names(server) == set(), 120)
    return apps, took, beside, tenant


@pytest.mark.parametrize("admin", [*long_run([], ["superuser"]), "limited"])
def test_twin_rotations_under_attack_fail_no_login(twins, server, shop, admin, record_property):
    """Rotations while applications log in, with SIGKILL at random moments, and then beside a tenant who
    does what he can on the same server: no login fails, and no rotation stands.  The admin is not a
    superuser, and has no SUPER."""
    passwords = [f"rotated-{n}-Passw0rd" for n in range(long_run(3, 61))]
    victims = ["app", "app_a", "app_b"] if server.engine == "postgresql" else ["app_a", "app_b"]
    if admin == "limited":
        server.limit_admin()
        twins.steward.kill()
        twins.steward.start()
    create(twins, server, shop, 4)
    apps, took, beside, tenant = rotate_quietly_and_beside(twins, server, shop, passwords, victims)
    record_property("rotations", (
        f"{server.engine} {server.installed.version}, {admin}: {apps.logins} logins, {len(apps.failed)} failed, "
        f"{dict(apps.users)}; {len(took)} quiet rotations, median {statistics.median(took):.2f} s; "
        f"{len(beside)} beside the tenant, median {statistics.median(beside):.2f} s, longest "
        f"{max(beside):.2f} s; it did {dict(tenant.done)}, refused: {tenant.refused}"))
    assert apps.failed == [] and apps.logins > 100, f"of {apps.logins}: {apps.failed[:5]}"
