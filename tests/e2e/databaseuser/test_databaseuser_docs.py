# SPDX-License-Identifier: Apache-2.0
"""Follows docs/databaseuser.md, "Try it", literally: the rights that it grants to the admin
suffice, and kubectl prints what the page shows."""

import pytest
import yaml
from support import databaseuser as dbu
from support import mariadb as maria
from support import dbreaders, postgres, readme, sampled, wait

PAGE = "docs/databaseuser.md"
PG_NAMESPACE = "shop-on-postgresql"


@pytest.fixture(scope="module")
def server():
    """A MariaDB with only the preparation that the page shows."""
    if maria.missing():
        pytest.skip(maria.missing())
    one = maria.MariaDB()
    one.sql(readme.blocks("sql", PAGE)[0])
    yield one
    one.close()


@pytest.fixture(scope="module")
def postgresql():
    """A PostgreSQL with a table, and an admin with only the rights that the page shows; None: there is none."""
    if postgres.missing(sampled.newest("POSTGRESQL")):
        yield None
        return
    one = postgres.Postgres()
    [text] = [b for b in readme.blocks("sql", PAGE) if "CREATE ROLE steward" in b]
    *anywhere, schema, tables = text.splitlines()  # the last two are run in the database itself
    one.sql("CREATE DATABASE shop")
    one.sql("CREATE TABLE orders(n int)", "shop")
    one.sql("\n".join(anywhere))
    one.sql(f"{schema}\n{tables}", "shop")
    yield one
    one.close()


def at(server, **more):
    """The page's target, at the address of this server."""
    shown = next(b for b in readme.blocks("yaml", PAGE) if b.startswith("targets:"))
    return {**yaml.safe_load(shown)["targets"][0], "host": "127.0.0.1", "port": server.port,
            "tls": {"caFile": str(server.ca)}, **more}


@pytest.fixture(scope="module")
def following(installed, steward_binary, tmp_path_factory, server, postgresql):
    """A steward with webhooks, whose targets are the page's, at the test servers' addresses.  The page
    shows all that a namespace may use: one."""
    dbenv = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), {})
    dbenv.write_targets(at(server), *([at(postgresql, name="pg", engine="postgresql",
                                         allowedNamespaces=[PG_NAMESPACE])] if postgresql else []))
    dbenv.steward.start()
    dbu.stw.install_webhooks(installed, steward_binary, dbenv.steward.webhook_port)
    dbenv.steward.wait_webhook()
    yield dbenv
    dbu.stw.uninstall_webhooks(installed)
    assert dbenv.steward.stop() == 0, dbenv.steward.log_tail()


def verifier(server):
    """The stored password hash."""
    return server.sql("SELECT JSON_VALUE(Priv, '$.authentication_string') FROM mysql.global_priv "
                      "WHERE User = 'shop' AND Host = '10.%'")


def test_try_it_section_of_page_works(following, server, namespace, tmp_path):
    (tmp_path / "shop.yaml").write_text(readme.blocks("yaml", PAGE)[0], encoding="utf-8")
    following.cluster.delete("secret", "orders-admin", dbu.stw.NAMESPACE)
    for command in readme.follow(following.cluster, namespace, PAGE, tmp_path):
        if " patch " in command:
            new = server.sql("SELECT PASSWORD('winter-snow-9025')")
            wait.until("the new password", lambda n=new: verifier(server) == n, 2)
    assert verifier(server) == []
    following.wait_event("shop", namespace, "PasswordRotated")
    following.wait_event("shop", namespace, "Deleted")


@pytest.mark.usefixtures("pods_stay_pending")
def test_rotation_section_of_page_works(following, server, namespace, tmp_path):
    """Both logins work after the new password is set, and one at the end."""
    old, new = ("cart_a", "change-me-before-use"), ("cart_b", "spring-rain-4410")
    following.admin_secret("orders", readme.commands("kubectl", PAGE)[0][0].rpartition("=")[2])
    with dbreaders.Kubelet(following.cluster, namespace):
        for command in readme.follow(following.cluster, namespace, PAGE, tmp_path,
                                     "A rotation, step by step"):
            if "status.login}" in command:
                assert server.logs_in(*old) and server.logs_in(*new)
        assert server.logs_in(*new) and not server.logs_in(*old)
        following.delete("cart", namespace)


@pytest.fixture
def pg_namespace(following):
    """The namespace that may use the PostgreSQL."""
    following.cluster.create_namespace(PG_NAMESPACE)
    yield PG_NAMESPACE
    following.forget(PG_NAMESPACE)
    following.cluster.delete_namespace(PG_NAMESPACE)


def test_documented_postgresql_admin_rights_suffice(following, postgresql, pg_namespace):
    """They give an account rights, set its password again, and drop it."""
    if not postgresql:
        pytest.skip(postgres.missing(sampled.newest("POSTGRESQL")))
    following.admin_secret("orders", "choose-another-one-1")
    following.create("app", pg_namespace, "first-Passw0rd-1", target="pg", grants=[
        {"database": "shop", "privileges": ["CONNECT"]},
        {"database": "shop", "schema": "public", "privileges": ["USAGE"]},
        {"database": "shop", "schema": "public", "table": "orders", "privileges": ["SELECT", "INSERT"]}])
    assert postgresql.logs_in("app", "first-Passw0rd-1", "shop")
    following.cluster.apply(dbu.secret("app", pg_namespace, "second-Passw0rd-2"))
    wait.until("the new password", lambda: postgresql.logs_in("app", "second-Passw0rd-2", "shop"))
    assert not postgresql.logs_in("app", "first-Passw0rd-1", "shop")
    following.delete("app", pg_namespace)
    assert not postgresql.exists("app")
