# SPDX-License-Identifier: Apache-2.0
"""The life of a DatabaseUser on a real MariaDB: creation, rotation, GRANT and REVOKE, deletion."""

import base64
import contextlib
import time

import pytest
import yaml

from support import databaseuser as dbu
from support import dblogin
from support import steward as stw
from support import wait
from support.cluster import condition

FIRST, SECOND = "first-Passw0rd-1", "second-Passw0rd-2"


@pytest.mark.oldest("finalizers, watches of Secrets, a whole life")
def test_account_is_created_rotated_reduced_and_dropped(dbenv, mariadb, shop):
    user = dbenv.create("app", shop, FIRST)
    assert mariadb.login("app", FIRST, "INSERT INTO orders VALUES (2)")
    assert not mariadb.login("app", FIRST, "DELETE FROM orders")
    status = user["status"]
    assert user["metadata"]["finalizers"] == [dbu.FINALIZER]
    assert status["account"] == "app@%" and status["hosts"] == ["%"]
    assert status["target"] == "main" and status["engine"] == "mariadb"
    assert "MariaDB" in status["serverVersion"] and status["owned"] is True
    assert status["currentGrants"] == ["INSERT, SELECT ON shop.*"]
    for kind in ("SecretResolved", "TargetReachable", "UserSynced", "GrantsSynced"):
        assert condition(user, kind)["status"] == "True"

    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    changed = time.monotonic()
    wait.until("the new password", lambda: mariadb.login("app", SECOND))
    assert time.monotonic() - changed <= wait.within(2)
    assert not mariadb.login("app", FIRST)
    dbenv.wait_event("app", shop, "PasswordRotated")
    rotated = dbenv.cluster.wait_for(
        dbu.KIND, "app", shop, lambda o: o["status"]["passwordFingerprint"] !=
        status["passwordFingerprint"])
    assert rotated["status"]["secretResourceVersion"] != status["secretResourceVersion"]

    dbenv.patch("app", shop, grants=[{"database": "shop", "privileges": ["SELECT"]}])
    wait.until("fewer rights", lambda: mariadb.rights("app") == ["GRANT SELECT ON `shop`.* TO `app`@`%`"])
    dbenv.wait_event("app", shop, "Updated", "rights revoked")
    assert not mariadb.login("app", SECOND, "INSERT INTO orders VALUES (2)")
    assert dbenv.wait_ready("app", shop)["status"]["currentGrants"] == ["SELECT ON shop.*"]

    dbenv.patch("app", shop, grants=[])
    wait.until("no rights", lambda: mariadb.rights("app") == [])

    dbenv.delete("app", shop)
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()
    dbenv.wait_event("app", shop, "Deleted")


def test_hosts_limits_and_tls_reach_the_account(dbenv, mariadb, shop):
    dbenv.create("app", shop, hosts=["127.0.0.1", "10.0.%"], limits={"maxUserConnections": 3},
                 requireTLS="SSL")
    assert mariadb.all_accounts() >= {"app@127.0.0.1", "app@10.0.%"}
    row = ("SELECT JSON_VALUE(Priv, '$.max_user_connections'), JSON_VALUE(Priv, '$.ssl_type') "
           "FROM mysql.global_priv WHERE User = 'app'")
    assert mariadb.sql(row) == [["3", "1"], ["3", "1"]]
    dbenv.patch("app", shop, hosts=["127.0.0.1", "%"], limits={"maxUserConnections": 0},
                requireTLS="None")
    wait.until("other hosts", lambda: {a for a in mariadb.all_accounts() if a.startswith("app@")} ==
               {"app@127.0.0.1", "app@%"})
    assert dbenv.wait_ready("app", shop)["status"]["hosts"] == ["127.0.0.1", "%"]
    assert all(r[0] in ("0", "NULL") for r in mariadb.sql(row))
    dbenv.delete("app", shop)
    assert not {a for a in mariadb.all_accounts() | mariadb.all_marks() if a.startswith("app@")}


@pytest.mark.parametrize("with_webhook", [True, False])
def test_article_manifest_stays_on_its_default_target(dbenv, mariadb, shop, with_webhook):
    """The article's manifest names no target.  Its account is created on the default target, and
    stays there when another target becomes the default."""
    main = mariadb.target("main")
    dbenv.write_targets({**main, "default": True}, {**main, "name": "second"})
    seed = yaml.safe_load(dbu.SEED_WITHOUT_TARGET)
    seed["metadata"]["namespace"] = shop
    with dbenv.webhook() if with_webhook else contextlib.nullcontext():
        dbenv.cluster.apply([dbu.secret("my-secret", shop, FIRST, "my-key"), seed])
        user = dbenv.wait_ready("cnhandsomeguy", shop)
        assert user["metadata"]["labels"] == {"target": "main"}
        assert user["status"]["target"] == "main"
        assert mariadb.login("cnhandsomeguy", FIRST, database="information_schema")
        dbenv.write_targets(main, {**main, "name": "second", "default": True})
        if with_webhook:  # as kubectl replace does
            metadata = {**user["metadata"], "labels": {}}
            del metadata["resourceVersion"]
            dbenv.cluster.replace({**user, "metadata": metadata})
            assert dbenv.get("cnhandsomeguy", shop)["metadata"]["labels"] == {"target": "main"}
    dbenv.delete("cnhandsomeguy", shop)
    assert "cnhandsomeguy@%" not in mariadb.all_accounts() | mariadb.all_marks()
    dbenv.write_targets(main)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_object_deleted_before_first_reconcile_drops_nothing(dbenv, mariadb, shop, policy):
    """Admission set the finalizer, and the controller sees the object only after its deletion: it
    drops neither an account that was never created nor one that it does not own."""
    dbenv.cluster.apply([dbu.secret(name, shop, FIRST) for name in ("app", "other")])
    mariadb.sql(f"CREATE USER other@'%' IDENTIFIED BY '{SECOND}'")
    dbenv.steward.stop()
    with dbenv.webhook():
        for name in ("app", "other"):
            dbenv.admit(name, shop, deletionPolicy=policy)
    for name in ("app", "other"):
        assert dbenv.get(name, shop)["metadata"]["finalizers"] == [dbu.FINALIZER]
        dbenv.delete(name, shop, wait_gone=False)
        assert "deletionTimestamp" in dbenv.get(name, shop)["metadata"]
    dbenv.steward.start()
    wait.until("both to be gone",
               lambda: not dbenv.get("app", shop) and not dbenv.get("other", shop))
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()
    assert mariadb.login("other", SECOND, database="information_schema")
    mariadb.sql("DROP USER other@'%'")


@pytest.mark.oldest("webhook calls before a reconcile")
def test_finalizer_set_by_admission_needs_no_write(dbenv, mariadb, shop):
    """A finalizer that admission has set needs no request by the controller."""
    dbenv.cluster.apply(dbu.secret("app", shop, FIRST))
    dbenv.steward.stop()
    with dbenv.webhook():
        dbenv.admit("app", shop)
    before = len(dbu.writes(dbenv.cluster, shop))
    dbenv.steward.start()
    dbenv.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)

    def wrote():
        return [path.partition("?")[0].rpartition("/")[2]
                for _, path, _ in dbu.writes(dbenv.cluster, shop)[before:]]
    wait.until("the write in the audit log", wrote)
    assert wrote() == ["status"]


def test_account_waits_for_its_secret(dbenv, mariadb, shop):
    dbenv.cluster.apply(dbu.manifest("app", shop))
    secret = dbenv.wait_condition("app", shop, "SecretResolved", "SecretNotFound")
    assert secret["message"] == 'Secret "app" not found; the account is created when it appears'
    user = dbenv.get("app", shop)
    assert not user["metadata"].get("finalizers")  # no statement was sent yet
    assert condition(user, "Ready")["reason"] == "SecretNotFound"
    dbenv.cluster.apply(dbu.secret("app", shop, None))
    dbenv.wait_condition("app", shop, "SecretResolved", "KeyNotFound")
    dbenv.cluster.apply(dbu.secret("app", shop, ""))
    dbenv.wait_condition("app", shop, "SecretResolved", "EmptyPassword")
    assert "app@%" not in mariadb.all_accounts()
    dbenv.cluster.apply(dbu.secret("app", shop, FIRST))
    dbenv.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)


def test_lost_secret_keeps_the_password(dbenv, mariadb, shop):
    """The value emptied, the key removed, the Secret deleted: the account keeps its password."""
    dbenv.create("app", shop, FIRST)
    for change, reason in ((lambda: dbenv.cluster.patch("secret", "app", shop,
                                                        {"data": {"password": ""}}), "EmptyPassword"),
                           (lambda: dbenv.cluster.patch("secret", "app", shop,
                                                        {"data": {"password": None}}), "KeyNotFound"),
                           (lambda: dbenv.cluster.delete("secret", "app", shop), "SecretNotFound")):
        change()
        dbenv.wait_condition("app", shop, "SecretResolved", reason)
        assert mariadb.login("app", FIRST)
        assert not mariadb.login("app", "")
    # Grants are still reconciled.
    dbenv.patch("app", shop, grants=[])
    wait.until("no rights", lambda: mariadb.rights("app") == [])
    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: mariadb.login("app", SECOND, database="information_schema"))
    dbenv.wait_ready("app", shop)


def test_trailing_newline_of_password_can_be_trimmed(dbenv, mariadb, shop):
    """It is part of the password, and with trimNewline neither of that nor of the connection."""
    dbenv.create("app", shop, FIRST + "\n", connectionSecret={"name": "app-conn"})
    found = dbenv.wait_condition("app", shop, "SecretResolved", "PasswordHasNewline")
    assert "trimNewline" in found["message"]
    assert mariadb.login("app", FIRST + "\n") and not mariadb.login("app", FIRST)
    dbenv.patch("app", shop, password={"trimNewline": True})
    wait.until("the password without it", lambda: mariadb.login("app", FIRST))
    dbenv.wait_condition("app", shop, "SecretResolved", "Resolved")
    wait.until("the connection without it",
               lambda: dblogin.connection(dbenv.cluster, shop, "app-conn") == ("app", FIRST))
    assert mariadb.login(*dblogin.connection(dbenv.cluster, shop, "app-conn"))
    data = dbenv.cluster.get("secrets", "app-conn", shop)["data"]
    uri, jdbc = (base64.b64decode(data[key]).decode() for key in ("uri", "jdbcUrl"))
    assert uri.startswith(f"mysql://app:{FIRST}@") and jdbc.endswith(f"&password={FIRST}")


def test_special_characters_in_user_and_password_work(dbenv, mariadb, shop):
    password = "q'\"`\\%_;-- \u00e4\u20ac/*"
    dbenv.create("odd", shop, password, user="o'd`d\"\\")
    assert mariadb.login("o'd`d\"\\", password)
    dbenv.delete("odd", shop)
    assert not {a for a in mariadb.all_accounts() if a.startswith("o'd")}


def test_paused_object_is_not_changed_but_deleted(dbenv, mariadb, shop):
    dbenv.create("app", shop, FIRST)
    dbenv.annotate("app", shop, {"steward.dev/paused": "true"})
    dbenv.wait_condition("app", shop, "Ready", "Paused")
    dbenv.patch("app", shop, grants=[])
    wait.stays("as it was", lambda: len(mariadb.rights("app")) == 1, 1)
    dbenv.delete("app", shop)  # deletion works
    assert "app@%" not in mariadb.all_accounts()


def test_lock_policy_locks_the_account_on_deletion(dbenv, mariadb, shop):
    """No login is possible, and only an object of the same name gets the account back."""
    dbenv.create("app", shop, FIRST, deletionPolicy="Lock")
    dbenv.delete("app", shop)
    dbenv.wait_event("app", shop, "Locked")
    assert not mariadb.login("app", FIRST)
    assert "app@%" in mariadb.all_marks() and mariadb.rights("app")
    # An attacker: another object that wants the account, even with adoption.
    dbenv.cluster.apply([dbu.manifest("other", shop, user="app", secret="app",
                                      adoptionPolicy="Adopt")])
    dbenv.wait_condition("other", shop, "Stalled", "Conflict")
    assert not mariadb.login("app", FIRST)
    dbenv.delete("other", shop)
    assert "app@%" in mariadb.all_marks()
    dbenv.cluster.apply([dbu.manifest("app", shop)])
    dbenv.wait_condition("app", shop, "Stalled", "Conflict")
    assert not mariadb.login("app", FIRST)
    dbenv.patch("app", shop, adoptionPolicy="Adopt")
    dbenv.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)
    dbenv.delete("app", shop)
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()


def test_retain_policy_keeps_the_account_on_deletion(dbenv, mariadb, shop):
    dbenv.create("app", shop, FIRST, deletionPolicy="Retain")
    dbenv.delete("app", shop)
    assert mariadb.login("app", FIRST)
    assert "app@%" not in mariadb.all_marks()
    dbenv.wait_event("app", shop, "Retained")
    # Another object may adopt the account if its policy allows it.
    dbenv.cluster.apply([dbu.manifest("next", shop, user="app", secret="app")])
    stalled = dbenv.wait_condition("next", shop, "Stalled", "AlreadyExists")
    assert "adoptionPolicy" in stalled["message"]
    assert mariadb.login("app", FIRST)
    dbenv.patch("next", shop, adoptionPolicy="Adopt")
    dbenv.wait_ready("next", shop)
    dbenv.wait_event("next", shop, "Adopted")
    dbenv.delete("next", shop)
    assert "app@%" not in mariadb.all_accounts()


def test_manual_account_changes_are_reverted(dbenv, mariadb, shop):
    """Manual changes and drops are reverted, and reported by an event."""
    dbenv.create("app", shop, FIRST)
    for sql, words in (
            ("SET PASSWORD FOR app@'%' = PASSWORD('by-hand')", "password"),
            ("ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 7", "TLS or limits"),
            ("REVOKE INSERT ON shop.* FROM app@'%'", "rights given"),
            ("DROP USER app@'%'", "had been dropped")):
        mariadb.sql(sql)
        dbenv.poke("app", shop)
        dbenv.wait_event("app", shop, "DriftRepaired", words)
        assert mariadb.login("app", FIRST, "INSERT INTO orders VALUES (2)")
    # A right that another client granted stays, and the status shows it.
    mariadb.sql("GRANT DELETE ON shop.* TO app@'%'")
    dbenv.poke("app", shop)
    shown = dbenv.cluster.wait_for(dbu.KIND, "app", shop, lambda o: o["status"].get("foreignGrants"))
    assert shown["status"]["foreignGrants"] == ["DELETE ON shop.*"]
    dbenv.patch("app", shop, grantsPolicy="Exact")
    wait.until("only what is asked for", lambda: "DELETE" not in mariadb.rights("app")[0])


def look_again(dbenv, name, namespace):
    """Triggers a reconcile and waits until it is done.  One that runs already, which may have begun
    before the change that the test made, does not count."""
    runs = "controller_runtime_reconcile_total"
    wait.until("no reconcile to run", lambda: dbenv.steward.metric(
        "controller_runtime_active_workers", controller="databaseuser") == 0)
    before = dbenv.steward.metric(runs, controller="databaseuser")
    dbenv.poke(name, namespace)
    wait.until("a look", lambda: dbenv.steward.metric(runs, controller="databaseuser") > before)


def secrets_read(dbenv, namespace):
    """How often steward has read Secrets in this namespace."""
    return sum(verb == "get" and "/secrets/" in path
               for verb, path, _ in stw.requests(dbenv.cluster, namespace))


def test_compared_secret_is_not_read_again(dbenv, mariadb, shop):
    """It is read again when it changes, or when the stored password on the server changes."""
    dbenv.create("app", shop, FIRST, hosts=["127.0.0.1", "%"])
    look_again(dbenv, "app", shop)  # compares the server with what steward wrote
    before = secrets_read(dbenv, shop)
    assert before >= 2
    for _ in range(3):
        look_again(dbenv, "app", shop)
    mariadb.sql("REVOKE INSERT ON shop.* FROM app@'%'")
    look_again(dbenv, "app", shop)
    dbenv.wait_event("app", shop, "DriftRepaired", "rights given")
    assert secrets_read(dbenv, shop) == before

    mariadb.sql("SET PASSWORD FOR app@'127.0.0.1' = PASSWORD('by-hand')")
    look_again(dbenv, "app", shop)
    dbenv.wait_event("app", shop, "DriftRepaired", "password")
    assert mariadb.login("app", FIRST) and secrets_read(dbenv, shop) == before + 1
    look_again(dbenv, "app", shop)
    before = secrets_read(dbenv, shop)
    mariadb.sql("DROP USER app@'%'")
    look_again(dbenv, "app", shop)
    dbenv.wait_event("app", shop, "DriftRepaired", "had been dropped")
    assert "app@%" in mariadb.all_accounts() and secrets_read(dbenv, shop) == before + 1

    look_again(dbenv, "app", shop)
    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: mariadb.login("app", SECOND))
    look_again(dbenv, "app", shop)
    before = secrets_read(dbenv, shop)
    look_again(dbenv, "app", shop)
    assert secrets_read(dbenv, shop) == before
    dbenv.cluster.delete("secret", "app", shop)
    dbenv.wait_condition("app", shop, "SecretResolved", "SecretNotFound")
    assert mariadb.login("app", SECOND)


def test_settled_object_causes_no_writes(dbenv, mariadb, shop):
    """A reconcile of a settled object writes nothing to the API server, sends few statements."""
    dbenv.create("app", shop, FIRST)
    runs = dbenv.steward.metric("controller_runtime_reconcile_total", controller="databaseuser")
    sent = dbenv.steward.metric("steward_sql_statements_total", target="main")
    before = len(dbu.writes(dbenv.cluster, shop)) if dbenv.cluster.name else 0
    dbenv.poke("app", shop)
    wait.until("a look", lambda: dbenv.steward.metric(
        "controller_runtime_reconcile_total", controller="databaseuser") > runs)
    wait.stays("no write", lambda: not dbenv.cluster.name or
               len(dbu.writes(dbenv.cluster, shop)) == before, 0.5)
    assert dbenv.steward.metric("steward_sql_statements_total", target="main") - sent <= 2
