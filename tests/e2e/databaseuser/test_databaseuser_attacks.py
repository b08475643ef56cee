# SPDX-License-Identifier: Apache-2.0
"""A tenant who may write any DatabaseUser in one namespace, against real servers and a real API
server: it gets only what the target allows that namespace."""

import contextlib
import json
import time

import pytest

from support import cluster as k8s
from support import databases
from support import databaseuser as dbu
from support import dblogin
from support import postgres
from support import steward as stw
from support import wait

PASSWORD = "first-Passw0rd-1"


@pytest.fixture(scope="module")
def pg():
    """A PostgreSQL for this module."""
    yield from databases.running(databases.PostgreSQL)


@pytest.fixture(scope="module")
def plain(installed, steward_binary, tmp_path_factory, mariadb, pg):
    """A steward whose targets do not set what they allow."""
    stw.uninstall_webhooks(installed)
    dbenv = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"),
                            {"main": mariadb, "pg": pg})
    dbenv.write_targets(*targets(mariadb, pg))
    dbenv.steward.start()
    yield dbenv
    if dbenv.steward.running():
        assert dbenv.steward.stop() == 0, dbenv.steward.log_tail()


def targets(mariadb, pg, **more):
    """The two targets, with the default limits unless `more` sets them."""
    return [{**{k: v for k, v in server.target(name).items()
                if not k.startswith("allow")}, **more}
            for name, server in (("main", mariadb), ("pg", pg))]


@pytest.fixture
def tenant(plain, namespace):
    """The namespace of the tenant."""
    yield namespace
    plain.forget(namespace)


def create(dbenv, namespace, name, **more):
    """A Secret and a DatabaseUser."""
    dbenv.cluster.apply([dbu.secret(name, namespace, PASSWORD),
                         dbu.manifest(name, namespace, **more)])


def test_grant_on_database_of_other_namespace_is_refused(plain, tenant, mariadb):
    """M8: refused at admission, and by the controller when no webhook was installed."""
    mine = f"{tenant}-app"
    grants = [{"database": "shop", "privileges": ["ALL"]}]
    mariadb.sql(f"CREATE DATABASE IF NOT EXISTS `{mine}`")
    create(plain, tenant, "greedy", grants=grants)
    condition = plain.wait_condition("greedy", tenant, "Ready", "InvalidSpec")
    assert f'does not allow "shop" for namespace "{tenant}"' in condition["message"]
    assert not [a for a in mariadb.all_accounts() if a.startswith("greedy")]
    assert "a DatabaseUser is refused" in plain.steward.log_tail()
    create(plain, tenant, "modest", grants=[{"database": mine, "privileges": ["SELECT"]}])
    plain.wait_ready("modest", tenant)
    with plain.webhook():
        reply = plain.cluster.apply(dbu.manifest("other", tenant, grants=grants), check=False)
        assert reply.returncode != 0 and "does not allow" in reply.stderr


def test_doctor_lists_objects_with_refused_grants(plain, tenant, steward_binary, mariadb, pg):
    """M8: objects older than the rule are listed by name."""
    cluster = plain.cluster
    create(plain, tenant, "legacy", grants=[{"database": "shop", "privileges": ["ALL"]}])
    config = {"targets": targets(mariadb, pg)}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": "steward-config", "namespace": stw.NAMESPACE},
                   "data": {"steward.yaml": json.dumps(config)}})
    try:
        result = k8s.run([steward_binary, "doctor", "-o", "json", "--kubeconfig",
                          cluster.kubeconfig], check=False)
        seen = [c for c in json.loads(result.stdout)["checks"] if c["check"] == "DatabaseUser"]
        assert [c for c in seen if f"{tenant}/legacy is refused" in c["seen"]], result.stdout
    finally:
        cluster.delete("configmap", "steward-config", stw.NAMESPACE)


def test_adoption_without_permission_is_refused(plain, tenant, mariadb):
    """H3: a request by the tenant, in the spec or as an annotation, is not enough."""
    mariadb.sql("CREATE USER 'dba'@'%' IDENTIFIED BY 'by-hand-1'; "
                "GRANT ALL ON shop.* TO 'dba'@'%' WITH GRANT OPTION")
    try:
        create(plain, tenant, "dba", grants=[], adoptionPolicy="Adopt",
               annotations={"steward.dev/adopt": "true"})
        condition = plain.wait_condition("dba", tenant, "UserSynced", "AlreadyExists")
        assert "allowAdoption" in condition["message"]
        assert mariadb.login("dba", "by-hand-1") and not mariadb.login("dba", PASSWORD)
    finally:
        mariadb.sql("DROP USER 'dba'@'%'")


def test_account_name_of_other_namespace_is_refused(plain, tenant, mariadb):
    """H4: the same name at another host."""
    mariadb.sql("CREATE USER 'payapp'@'%' IDENTIFIED BY 'by-hand-1'; "
                "GRANT SELECT ON shop.* TO 'payapp'@'%'")
    try:
        create(plain, tenant, "payapp", grants=[], hosts=["127.0.0.1"])
        plain.wait_condition("payapp", tenant, "UserSynced", "Conflict")
        assert not mariadb.login("payapp", PASSWORD, "SELECT * FROM shop.orders")
    finally:
        mariadb.sql("DROP USER 'payapp'@'%'")


def test_dropped_role_gives_no_function_to_an_admin(plain, tenant, pg):
    """H1: a function owned by the dropped role must not get an administrator as its owner."""
    mine = f"{tenant}-app"
    pg.sql(f'CREATE DATABASE "{mine}"')
    pg.sql("CREATE ROLE accomplice LOGIN PASSWORD 'acc0mplice-Pa55'")
    rights = [{"database": mine, "schema": "public", "privileges": ["USAGE", "CREATE"]}]
    create(plain, tenant, "maker", target="pg", grants=rights, reassignOwnedTo="root")
    plain.wait_condition("maker", tenant, "Ready", "InvalidSpec")
    plain.cluster.patch(dbu.KIND, "maker", tenant, {"spec": {"reassignOwnedTo": None}})
    plain.wait_ready("maker", tenant)
    assert pg.login("maker", PASSWORD,
                    "CREATE FUNCTION up() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS "
                    "$$ BEGIN EXECUTE 'ALTER ROLE accomplice SUPERUSER'; END $$", mine)
    plain.delete("maker", tenant)
    wait.until("the role to be gone", lambda: not pg.exists("maker"))
    assert not pg.login("accomplice", "acc0mplice-Pa55", "SELECT up()", mine)
    assert pg.sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'accomplice'") == [["f"]]
    system = plain.cluster.get("namespaces", "kube-system")
    owner = pg.sql("SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'up'", mine)
    assert owner[0][0].strip('"') == postgres.heir(system["metadata"]["uid"], tenant)


@pytest.fixture
def neighbour(plain, tenant):
    """The namespace of another tenant."""
    name = f"{tenant}-n"
    plain.cluster.create_namespace(name)
    yield name
    plain.forget(name)
    plain.cluster.empty_namespace(name, reversed(stw.KINDS))


def test_thousands_of_locks_delay_other_namespaces_little(plain, tenant, neighbour, pg):
    """A visit for one object tries lock after lock, for about ten seconds.  Others do not wait for its end."""
    mine = [f"{tenant}-{letter}" for letter in "abc"]
    pg.sql(f"CREATE ROLE holder LOGIN PASSWORD '{PASSWORD}'")
    for one in mine:
        pg.sql(f'CREATE DATABASE "{one}"')
        pg.sql("CREATE SCHEMA wide AUTHORIZATION holder; SET ROLE holder; DO $$ BEGIN FOR i IN 1..3000 LOOP "
               "EXECUTE format('CREATE TABLE wide.t%s (n int)', i); END LOOP; END $$", one)
    reads = [{"database": one, "schema": "wide", "table": "*", "privileges": ["SELECT"]} for one in mine]
    waited = []

    def tries():
        """How many sessions were just seen to wait for a lock."""
        return int(pg.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0])
    with contextlib.ExitStack() as stack:
        for one in mine:
            session = stack.enter_context(dblogin.Session(pg, "holder", PASSWORD, one))
            session.run("BEGIN; GRANT SELECT ON ALL TABLES IN SCHEMA wide TO PUBLIC")
        create(plain, tenant, "slow", target="pg", grants=reads)
        plain.wait_condition("slow", tenant, "GrantsSynced", "StatementTimeout")
        for i in range(4):
            wait.until("the end of a visit", lambda: not any(tries() for _ in range(10)))
            plain.poke("slow", tenant)
            seen = []
            wait.until("a visit that lasts", lambda: seen.append(tries()) or sum(seen) > 20)
            begun = time.monotonic()
            create(plain, neighbour, f"quick{i}", target="pg", grants=[])
            plain.wait_ready(f"quick{i}", neighbour)
            waited.append(round(time.monotonic() - begun, 1))
    assert max(waited) < 6, waited
