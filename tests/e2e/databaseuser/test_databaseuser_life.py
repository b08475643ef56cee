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
def test_account_is_created_rotated_reduced_and_dropped(scene, mariadb, shop):
    user = scene.create("app", shop, FIRST)
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

    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    changed = time.monotonic()
    wait.until("the new password", lambda: mariadb.login("app", SECOND))
    assert time.monotonic() - changed <= wait.within(2)
    assert not mariadb.login("app", FIRST)
    scene.wait_event("app", shop, "PasswordRotated")
    rotated = scene.cluster.wait_for(
        dbu.KIND, "app", shop, lambda o: o["status"]["passwordFingerprint"] !=
        status["passwordFingerprint"])
    assert rotated["status"]["secretResourceVersion"] != status["secretResourceVersion"]

    scene.patch("app", shop, grants=[{"database": "shop", "privileges": ["SELECT"]}])
    wait.until("fewer rights", lambda: mariadb.rights("app") == ["GRANT SELECT ON `shop`.* TO `app`@`%`"])
    scene.wait_event("app", shop, "Updated", "rights revoked")
    assert not mariadb.login("app", SECOND, "INSERT INTO orders VALUES (2)")
    assert scene.wait_ready("app", shop)["status"]["currentGrants"] == ["SELECT ON shop.*"]

    scene.patch("app", shop, grants=[])
    wait.until("no rights", lambda: mariadb.rights("app") == [])

    scene.delete("app", shop)
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()
    scene.wait_event("app", shop, "Deleted")


def test_hosts_limits_and_tls_reach_the_account(scene, mariadb, shop):
    scene.create("app", shop, hosts=["127.0.0.1", "10.0.%"], limits={"maxUserConnections": 3},
                 requireTLS="SSL")
    assert mariadb.all_accounts() >= {"app@127.0.0.1", "app@10.0.%"}
    row = ("SELECT JSON_VALUE(Priv, '$.max_user_connections'), JSON_VALUE(Priv, '$.ssl_type') "
           "FROM mysql.global_priv WHERE User = 'app'")
    assert mariadb.sql(row) == [["3", "1"], ["3", "1"]]
    scene.patch("app", shop, hosts=["127.0.0.1", "%"], limits={"maxUserConnections": 0},
                requireTLS="None")
    wait.until("other hosts", lambda: {a for a in mariadb.all_accounts() if a.startswith("app@")} ==
               {"app@127.0.0.1", "app@%"})
    assert scene.wait_ready("app", shop)["status"]["hosts"] == ["127.0.0.1", "%"]
    assert all(r[0] in ("0", "NULL") for r in mariadb.sql(row))
    scene.delete("app", shop)
    assert not {a for a in mariadb.all_accounts() | mariadb.all_marks() if a.startswith("app@")}


@pytest.mark.parametrize("with_webhook", [True, False])
def test_article_manifest_stays_on_its_default_target(scene, mariadb, shop, with_webhook):
    """The article's manifest names no target.  Its account is created on the default target, and
    stays there when another target becomes the default."""
    main = mariadb.target("main")
    scene.write_targets({**main, "default": True}, {**main, "name": "second"})
    seed = yaml.safe_load(dbu.SEED_WITHOUT_TARGET)
    seed["metadata"]["namespace"] = shop
    with scene.webhook() if with_webhook else contextlib.nullcontext():
        scene.cluster.apply([dbu.secret("my-secret", shop, FIRST, "my-key"), seed])
        user = scene.wait_ready("cnhandsomeguy", shop)
        assert user["metadata"]["labels"] == {"target": "main"}
        assert user["status"]["target"] == "main"
        assert mariadb.login("cnhandsomeguy", FIRST, database="information_schema")
        scene.write_targets(main, {**main, "name": "second", "default": True})
        if with_webhook:  # as kubectl replace does
            metadata = {**user["metadata"], "labels": {}}
            del metadata["resourceVersion"]
            scene.cluster.replace({**user, "metadata": metadata})
            assert scene.get("cnhandsomeguy", shop)["metadata"]["labels"] == {"target": "main"}
    scene.delete("cnhandsomeguy", shop)
    assert "cnhandsomeguy@%" not in mariadb.all_accounts() | mariadb.all_marks()
    scene.write_targets(main)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_object_deleted_before_first_reconcile_drops_nothing(scene, mariadb, shop, policy):
    """Admission set the finalizer, and the controller sees the object only after its deletion: it
    drops neither an account that was never created nor one that it does not own."""
    scene.cluster.apply([dbu.secret(name, shop, FIRST) for name in ("app", "other")])
    mariadb.sql(f"CREATE USER other@'%' IDENTIFIED BY '{SECOND}'")
    scene.steward.stop()
    with scene.webhook():
        for name in ("app", "other"):
            scene.let_in(name, shop, deletionPolicy=policy)
    for name in ("app", "other"):
        assert scene.get(name, shop)["metadata"]["finalizers"] == [dbu.FINALIZER]
        scene.delete(name, shop, wait_gone=False)
        assert "deletionTimestamp" in scene.get(name, shop)["metadata"]
    scene.steward.start()
    wait.until("both to be gone",
               lambda: not scene.get("app", shop) and not scene.get("other", shop))
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()
    assert mariadb.login("other", SECOND, database="information_schema")
    mariadb.sql("DROP USER other@'%'")


@pytest.mark.oldest("webhook calls before a reconcile")
def test_finalizer_set_by_admission_needs_no_write(scene, mariadb, shop):
    """A finalizer that admission has set needs no request by the controller."""
    scene.cluster.apply(dbu.secret("app", shop, FIRST))
    scene.steward.stop()
    with scene.webhook():
        scene.let_in("app", shop)
    before = len(dbu.writes(scene.cluster, shop))
    scene.steward.start()
    scene.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)

    def wrote():
        return [path.partition("?")[0].rpartition("/")[2]
                for _, path, _ in dbu.writes(scene.cluster, shop)[before:]]
    wait.until("the write in the audit log", wrote)
    assert wrote() == ["status"]


def test_account_waits_for_its_secret(scene, mariadb, shop):
    scene.cluster.apply(dbu.manifest("app", shop))
    secret = scene.wait_condition("app", shop, "SecretResolved", "SecretNotFound")
    assert secret["message"] == 'Secret "app" not found; the account is created when it appears'
    user = scene.get("app", shop)
    assert not user["metadata"].get("finalizers")  # no statement was sent yet
    assert condition(user, "Ready")["reason"] == "SecretNotFound"
    scene.cluster.apply(dbu.secret("app", shop, None))
    scene.wait_condition("app", shop, "SecretResolved", "KeyNotFound")
    scene.cluster.apply(dbu.secret("app", shop, ""))
    scene.wait_condition("app", shop, "SecretResolved", "EmptyPassword")
    assert "app@%" not in mariadb.all_accounts()
    scene.cluster.apply(dbu.secret("app", shop, FIRST))
    scene.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)


def test_lost_secret_keeps_the_password(scene, mariadb, shop):
    """The value emptied, the key removed, the Secret deleted: the account keeps its password."""
    scene.create("app", shop, FIRST)
    for change, reason in ((lambda: scene.cluster.patch("secret", "app", shop,
                                                        {"data": {"password": ""}}), "EmptyPassword"),
                           (lambda: scene.cluster.patch("secret", "app", shop,
                                                        {"data": {"password": None}}), "KeyNotFound"),
                           (lambda: scene.cluster.delete("secret", "app", shop), "SecretNotFound")):
        change()
        scene.wait_condition("app", shop, "SecretResolved", reason)
        assert mariadb.login("app", FIRST)
        assert not mariadb.login("app", "")
    # Grants are still reconciled.
    scene.patch("app", shop, grants=[])
    wait.until("no rights", lambda: mariadb.rights("app") == [])
    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: mariadb.login("app", SECOND, database="information_schema"))
    scene.wait_ready("app", shop)


def test_trailing_newline_of_password_can_be_trimmed(scene, mariadb, shop):
    """It is part of the password, and with trimNewline neither of that nor of the connection."""
    scene.create("app", shop, FIRST + "\n", connectionSecret={"name": "app-conn"})
    found = scene.wait_condition("app", shop, "SecretResolved", "PasswordHasNewline")
    assert "trimNewline" in found["message"]
    assert mariadb.login("app", FIRST + "\n") and not mariadb.login("app", FIRST)
    scene.patch("app", shop, password={"trimNewline": True})
    wait.until("the password without it", lambda: mariadb.login("app", FIRST))
    scene.wait_condition("app", shop, "SecretResolved", "Resolved")
    wait.until("the connection without it",
               lambda: dblogin.connection(scene.cluster, shop, "app-conn") == ("app", FIRST))
    assert mariadb.login(*dblogin.connection(scene.cluster, shop, "app-conn"))
    data = scene.cluster.get("secrets", "app-conn", shop)["data"]
    uri, jdbc = (base64.b64decode(data[key]).decode() for key in ("uri", "jdbcUrl"))
    assert uri.startswith(f"mysql://app:{FIRST}@") and jdbc.endswith(f"&password={FIRST}")


def test_special_characters_in_user_and_password_work(scene, mariadb, shop):
    password = "q'\"`\\%_;-- \u00e4\u20ac/*"
    scene.create("odd", shop, password, user="o'd`d\"\\")
    assert mariadb.login("o'd`d\"\\", password)
    scene.delete("odd", shop)
    assert not {a for a in mariadb.all_accounts() if a.startswith("o'd")}


def test_paused_object_is_not_changed_but_deleted(scene, mariadb, shop):
    scene.create("app", shop, FIRST)
    scene.annotate("app", shop, {"steward.dev/paused": "true"})
    scene.wait_condition("app", shop, "Ready", "Paused")
    scene.patch("app", shop, grants=[])
    wait.stays("as it was", lambda: len(mariadb.rights("app")) == 1, 1)
    scene.delete("app", shop)  # deletion works
    assert "app@%" not in mariadb.all_accounts()


def test_lock_policy_locks_the_account_on_deletion(scene, mariadb, shop):
    """No login is possible, and only an object of the same name gets the account back."""
    scene.create("app", shop, FIRST, deletionPolicy="Lock")
    scene.delete("app", shop)
    scene.wait_event("app", shop, "Locked")
    assert not mariadb.login("app", FIRST)
    assert "app@%" in mariadb.all_marks() and mariadb.rights("app")
    # An attacker: another object that wants the account, even with adoption.
    scene.cluster.apply([dbu.manifest("other", shop, user="app", secret="app",
                                      adoptionPolicy="Adopt")])
    scene.wait_condition("other", shop, "Stalled", "Conflict")
    assert not mariadb.login("app", FIRST)
    scene.delete("other", shop)
    assert "app@%" in mariadb.all_marks()
    scene.cluster.apply([dbu.manifest("app", shop)])
    scene.wait_condition("app", shop, "Stalled", "Conflict")
    assert not mariadb.login("app", FIRST)
    scene.patch("app", shop, adoptionPolicy="Adopt")
    scene.wait_ready("app", shop)
    assert mariadb.login("app", FIRST)
    scene.delete("app", shop)
    assert "app@%" not in mariadb.all_accounts() | mariadb.all_marks()


def test_retain_policy_keeps_the_account_on_deletion(scene, mariadb, shop):
    scene.create("app", shop, FIRST, deletionPolicy="Retain")
    scene.delete("app", shop)
    assert mariadb.login("app", FIRST)
    assert "app@%" not in mariadb.all_marks()
    scene.wait_event("app", shop, "Retained")
    # Another object may adopt the account if its policy allows it.
    scene.cluster.apply([dbu.manifest("next", shop, user="app", secret="app")])
    stalled = scene.wait_condition("next", shop, "Stalled", "AlreadyExists")
    assert "adoptionPolicy" in stalled["message"]
    assert mariadb.login("app", FIRST)
    scene.patch("next", shop, adoptionPolicy="Adopt")
    scene.wait_ready("next", shop)
    scene.wait_event("next", shop, "Adopted")
    scene.delete("next", shop)
    assert "app@%" not in mariadb.all_accounts()


def test_manual_account_changes_are_reverted(scene, mariadb, shop):
    """Manual changes and drops are reverted, and reported by an event."""
    scene.create("app", shop, FIRST)
    for sql, words in (
            ("SET PASSWORD FOR app@'%' = PASSWORD('by-hand')", "password"),
            ("ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 7", "TLS or limits"),
            ("REVOKE INSERT ON shop.* FROM app@'%'", "rights given"),
            ("DROP USER app@'%'", "had been dropped")):
        mariadb.sql(sql)
        scene.poke("app", shop)
        scene.wait_event("app", shop, "DriftRepaired", words)
        assert mariadb.login("app", FIRST, "INSERT INTO orders VALUES (2)")
    # A right that another client granted stays, and the status shows it.
    mariadb.sql("GRANT DELETE ON shop.* TO app@'%'")
    scene.poke("app", shop)
    shown = scene.cluster.wait_for(dbu.KIND, "app", shop, lambda o: o["status"].get("foreignGrants"))
    assert shown["status"]["foreignGrants"] == ["DELETE ON shop.*"]
    scene.patch("app", shop, grantsPolicy="Exact")
    wait.until("only what is asked for", lambda: "DELETE" not in mariadb.rights("app")[0])


def look_again(scene, name, namespace):
    """Triggers a reconcile and waits until it is done.  One that runs already, which may have begun
    before the change that the test made, does not count."""
    runs = "controller_runtime_reconcile_total"
    wait.until("no reconcile to run", lambda: scene.steward.metric(
        "controller_runtime_active_workers", controller="databaseuser") == 0)
    before = scene.steward.metric(runs, controller="databaseuser")
    scene.poke(name, namespace)
    wait.until("a look", lambda: scene.steward.metric(runs, controller="databaseuser") > before)


def secrets_read(scene, namespace):
    """How often steward has read Secrets in this namespace."""
    return sum(verb == "get" and "/secrets/" in path
               for verb, path, _ in stw.requests(scene.cluster, namespace))


def test_compared_secret_is_not_read_again(scene, mariadb, shop):
    """It is read again when it changes, or when the stored password on the server changes."""
    scene.create("app", shop, FIRST, hosts=["127.0.0.1", "%"])
    look_again(scene, "app", shop)  # compares the server with what steward wrote
    before = secrets_read(scene, shop)
    assert before >= 2
    for _ in range(3):
        look_again(scene, "app", shop)
    mariadb.sql("REVOKE INSERT ON shop.* FROM app@'%'")
    look_again(scene, "app", shop)
    scene.wait_event("app", shop, "DriftRepaired", "rights given")
    assert secrets_read(scene, shop) == before

    mariadb.sql("SET PASSWORD FOR app@'127.0.0.1' = PASSWORD('by-hand')")
    look_again(scene, "app", shop)
    scene.wait_event("app", shop, "DriftRepaired", "password")
    assert mariadb.login("app", FIRST) and secrets_read(scene, shop) == before + 1
    look_again(scene, "app", shop)
    before = secrets_read(scene, shop)
    mariadb.sql("DROP USER app@'%'")
    look_again(scene, "app", shop)
    scene.wait_event("app", shop, "DriftRepaired", "had been dropped")
    assert "app@%" in mariadb.all_accounts() and secrets_read(scene, shop) == before + 1

    look_again(scene, "app", shop)
    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: mariadb.login("app", SECOND))
    look_again(scene, "app", shop)
    before = secrets_read(scene, shop)
    look_again(scene, "app", shop)
    assert secrets_read(scene, shop) == before
    scene.cluster.delete("secret", "app", shop)
    scene.wait_condition("app", shop, "SecretResolved", "SecretNotFound")
    assert mariadb.login("app", SECOND)


def test_settled_object_causes_no_writes(scene, mariadb, shop):
    """A reconcile of a settled object writes nothing to the API server, sends few statements."""
    scene.create("app", shop, FIRST)
    runs = scene.steward.metric("controller_runtime_reconcile_total", controller="databaseuser")
    sent = scene.steward.metric("steward_sql_statements_total", target="main")
    before = len(dbu.writes(scene.cluster, shop)) if scene.cluster.name else 0
    scene.poke("app", shop)
    wait.until("a look", lambda: scene.steward.metric(
        "controller_runtime_reconcile_total", controller="databaseuser") > runs)
    wait.stays("no write", lambda: not scene.cluster.name or
               len(dbu.writes(scene.cluster, shop)) == before, 0.5)
    assert scene.steward.metric("steward_sql_statements_total", target="main") - sent <= 2
