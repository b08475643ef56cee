# SPDX-License-Identifier: Apache-2.0
"""Secrets that a DatabaseUser owns, on a real MariaDB: the connection, and a generated password."""

import base64

from support import databaseuser as dbu
from support import wait
from support.cluster import condition

FIRST, SECOND = "first-Passw0rd-1", "second-P@ssw0rd-2"


def values(dbenv, name, namespace):
    """The decoded values of a Secret, or None."""
    secret = dbenv.cluster.get("secrets", name, namespace)
    return secret and {key: base64.b64decode(value).decode()
                       for key, value in secret.get("data", {}).items()}


def assert_not_told(dbenv, namespace, *passwords):
    """No password is in the log, a status or an event."""
    said = dbenv.steward.log_path.read_text("utf-8") + str(dbenv.cluster.list(dbu.KIND, namespace)) \
        + str(dbenv.cluster.list("events", namespace))
    for password in passwords:
        assert password not in said


def test_connection_secret_is_repaired_and_follows_password(dbenv, mariadb, shop):
    """Written, repaired, and following the password."""
    user = dbenv.create("app", shop, FIRST, connectionSecret={"name": "app-conn"})
    assert condition(user, "ConnectionSecretSynced")["status"] == "True"
    target = mariadb.target("main")
    found = values(dbenv, "app-conn", shop)
    assert found["host"] == target["host"] and found["port"] == str(target["port"])
    assert found["user"] == "app" and found["password"] == FIRST and found["database"] == "shop"
    assert found["uri"] == f"mysql://app:{FIRST}@{target['host']}:{target['port']}/shop"
    owner = dbenv.cluster.get("secrets", "app-conn", shop)["metadata"]["ownerReferences"]
    assert [(o["kind"], o["uid"]) for o in owner] == [("DatabaseUser", user["metadata"]["uid"])]

    dbenv.cluster.patch("secrets", "app-conn", shop, {"data": {"host": "eHg=", "more": "eHg="}})
    wait.until("the repair", lambda: values(dbenv, "app-conn", shop) == found)
    dbenv.cluster.delete("secrets", "app-conn", shop)
    wait.until("the Secret again", lambda: values(dbenv, "app-conn", shop) == found)

    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(dbenv, "app-conn", shop)["password"] == SECOND)
    assert values(dbenv, "app-conn", shop)["uri"].startswith("mysql://app:second-P%40ssw0rd-2@")
    assert mariadb.login("app", SECOND)
    dbenv.patch("app", shop, connectionSecret={"keys": {"DB": "database"},
                                               "template": {"my.cnf": "user={{user}}\n"}})
    wait.until("other keys", lambda: values(dbenv, "app-conn", shop) ==
               {"DB": "shop", "my.cnf": "user=app\n"})
    dbenv.wait_ready("app", shop)
    dbenv.wait_event("app", shop, "ConnectionSecretWritten", "app-conn")
    assert_not_told(dbenv, shop, FIRST, SECOND)


def test_connection_gets_password_despite_missing_table(dbenv, mariadb, shop):
    """The server has the new password, and the old one has ended: applications need it."""
    mariadb.sql("CREATE TABLE shop.stock (i int)")
    dbenv.create("app", shop, FIRST, connectionSecret={"name": "app-conn"},
                 grants=[{"database": "shop", "table": "stock", "privileges": ["SELECT"]},
                         {"database": "shop", "privileges": ["INSERT"]}])
    mariadb.sql("REVOKE SELECT ON shop.stock FROM app; DROP TABLE shop.stock")
    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(dbenv, "app-conn", shop)["password"] == SECOND)
    dbenv.wait_condition("app", shop, "GrantsSynced", "NoSuchObject")
    for name in ("UserSynced", "ConnectionSecretSynced"):
        assert condition(dbenv.get("app", shop), name)["status"] == "True"
    assert mariadb.login("app", SECOND) and not mariadb.login("app", FIRST)


def test_foreign_metadata_survives_a_rotation(dbenv, mariadb, shop):
    """Labels of tools that copy or back up Secrets, and finalizers."""
    dbenv.create("app", shop, FIRST, connectionSecret={"name": "app-conn"})
    theirs = {"labels": {"team": "billing"}, "annotations": {"reflector.example.com/allowed": "true"},
              "finalizers": ["example.com/backup"]}
    dbenv.cluster.patch("secrets", "app-conn", shop, {"metadata": theirs})
    dbenv.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(dbenv, "app-conn", shop)["password"] == SECOND)
    found = dbenv.cluster.get("secrets", "app-conn", shop)["metadata"]
    assert found["labels"]["team"] == "billing" and found["labels"]["app.kubernetes.io/managed-by"]
    assert found["annotations"]["reflector.example.com/allowed"] == "true"
    assert found["finalizers"] == ["example.com/backup"]
    dbenv.cluster.patch("secrets", "app-conn", shop, {"metadata": {"finalizers": None}})


def test_spec_metadata_is_kept_on_connection_secret(dbenv, mariadb, shop):
    """Set, repaired, and removed with its entry; labels of others stay also beside one of the same value."""
    dbenv.create("app", shop, FIRST, connectionSecret={
        "name": "app-conn", "labels": {"team": "billing", "tier": "data"},
        "annotations": {"example.com/copy": "yes"}})

    def metadata(member):
        return dbenv.cluster.get("secrets", "app-conn", shop)["metadata"].get(member, {})

    assert metadata("labels")["team"] == "billing" and metadata("labels")["tier"] == "data"
    assert metadata("annotations")["example.com/copy"] == "yes"
    dbenv.cluster.patch("secrets", "app-conn", shop, {"metadata": {
        "labels": {"team": "theirs", "owner": "them"}, "annotations": {"example.com/copy": None}}})
    wait.until("the repair", lambda: metadata("labels")["team"] == "billing" and
               metadata("annotations").get("example.com/copy") == "yes")
    dbenv.patch("app", shop, connectionSecret={"labels": {"team": None}, "annotations": None})
    wait.until("the removal", lambda: "team" not in metadata("labels") and
               "example.com/copy" not in metadata("annotations"))
    assert metadata("labels")["tier"] == "data" and metadata("labels")["owner"] == "them"
    assert metadata("labels")["app.kubernetes.io/managed-by"] and mariadb.login("app", FIRST)


def test_secret_of_another_owner_is_not_touched(dbenv, mariadb, shop):
    """An attacker names a Secret that exists: it is neither read nor changed, even with adopt."""
    dbenv.cluster.apply([dbu.secret("theirs", shop, SECOND, "host"), dbu.secret("app", shop, FIRST),
                         dbu.secret("two-password", shop, SECOND)])
    dbenv.cluster.apply([
        dbu.manifest("app", shop, connectionSecret={"name": "theirs"},
                     annotations={"steward.dev/adopt": "true"}),
        dbu.manifest("two", shop, password={"generate": {}})])
    dbenv.wait_condition("app", shop, "ConnectionSecretSynced", "NameConflict")
    dbenv.wait_condition("two", shop, "SecretResolved", "NameConflict")
    assert values(dbenv, "theirs", shop) == {"host": SECOND}
    assert values(dbenv, "two-password", shop) == {"password": SECOND}
    assert mariadb.login("app", FIRST) and "two@%" not in mariadb.all_accounts()
    dbenv.cluster.delete("secrets", "theirs", shop)
    dbenv.wait_ready("app", shop)
    assert values(dbenv, "theirs", shop)["password"] == FIRST


def test_generated_password_is_made_again_when_deleted(dbenv, mariadb, shop):
    """Made once, made again when its Secret is deleted, and in the connection Secret."""
    dbenv.cluster.apply(dbu.manifest("app", shop, password={"generate": {"length": 40}},
                                     connectionSecret={"name": "app-conn"}))
    dbenv.wait_ready("app", shop)
    first = values(dbenv, "app-password", shop)["password"]
    assert len(first) == 40 and mariadb.login("app", first)
    assert values(dbenv, "app-conn", shop)["password"] == first
    dbenv.poke("app", shop)
    dbenv.wait_ready("app", shop)
    assert values(dbenv, "app-password", shop)["password"] == first

    dbenv.cluster.delete("secrets", "app-password", shop)
    wait.until("another password", lambda: (values(dbenv, "app-password", shop) or {}).get(
        "password") not in (None, first))
    second = values(dbenv, "app-password", shop)["password"]
    wait.until("its login", lambda: mariadb.login("app", second))
    assert not mariadb.login("app", first)
    wait.until("its connection", lambda: values(dbenv, "app-conn", shop)["password"] == second)
    assert_not_told(dbenv, shop, first, second)
    dbenv.delete("app", shop)
    for name in ("app-password", "app-conn"):
        wait.until(f"{name} to be deleted", lambda n=name: values(dbenv, n, shop) is None)
