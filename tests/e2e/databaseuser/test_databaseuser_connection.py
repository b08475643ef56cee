# SPDX-License-Identifier: Apache-2.0
"""Secrets that a DatabaseUser owns, on a real MariaDB: the connection, and a generated password."""

import base64

from support import databaseuser as dbu
from support import wait
from support.cluster import condition

FIRST, SECOND = "first-Passw0rd-1", "second-P@ssw0rd-2"


def values(scene, name, namespace):
    """The decoded values of a Secret, or None."""
    secret = scene.cluster.get("secrets", name, namespace)
    return secret and {key: base64.b64decode(value).decode()
                       for key, value in secret.get("data", {}).items()}


def assert_not_told(scene, namespace, *passwords):
    """No password is in the log, a status or an event."""
    said = scene.steward.log_path.read_text("utf-8") + str(scene.cluster.list(dbu.KIND, namespace)) \
        + str(scene.cluster.list("events", namespace))
    for password in passwords:
        assert password not in said


def test_connection_secret_is_repaired_and_follows_password(scene, mariadb, shop):
    """Written, repaired, and following the password."""
    user = scene.create("app", shop, FIRST, connectionSecret={"name": "app-conn"})
    assert condition(user, "ConnectionSecretSynced")["status"] == "True"
    target = mariadb.target("main")
    found = values(scene, "app-conn", shop)
    assert found["host"] == target["host"] and found["port"] == str(target["port"])
    assert found["user"] == "app" and found["password"] == FIRST and found["database"] == "shop"
    assert found["uri"] == f"mysql://app:{FIRST}@{target['host']}:{target['port']}/shop"
    owner = scene.cluster.get("secrets", "app-conn", shop)["metadata"]["ownerReferences"]
    assert [(o["kind"], o["uid"]) for o in owner] == [("DatabaseUser", user["metadata"]["uid"])]

    scene.cluster.patch("secrets", "app-conn", shop, {"data": {"host": "eHg=", "more": "eHg="}})
    wait.until("the repair", lambda: values(scene, "app-conn", shop) == found)
    scene.cluster.delete("secrets", "app-conn", shop)
    wait.until("the Secret again", lambda: values(scene, "app-conn", shop) == found)

    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(scene, "app-conn", shop)["password"] == SECOND)
    assert values(scene, "app-conn", shop)["uri"].startswith("mysql://app:second-P%40ssw0rd-2@")
    assert mariadb.login("app", SECOND)
    scene.patch("app", shop, connectionSecret={"keys": {"DB": "database"},
                                               "template": {"my.cnf": "user={{user}}\n"}})
    wait.until("other keys", lambda: values(scene, "app-conn", shop) ==
               {"DB": "shop", "my.cnf": "user=app\n"})
    scene.wait_ready("app", shop)
    scene.wait_event("app", shop, "ConnectionSecretWritten", "app-conn")
    assert_not_told(scene, shop, FIRST, SECOND)


def test_connection_gets_password_despite_missing_table(scene, mariadb, shop):
    """The server has the new password, and the old one has ended: applications need it."""
    mariadb.sql("CREATE TABLE shop.stock (i int)")
    scene.create("app", shop, FIRST, connectionSecret={"name": "app-conn"},
                 grants=[{"database": "shop", "table": "stock", "privileges": ["SELECT"]},
                         {"database": "shop", "privileges": ["INSERT"]}])
    mariadb.sql("REVOKE SELECT ON shop.stock FROM app; DROP TABLE shop.stock")
    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(scene, "app-conn", shop)["password"] == SECOND)
    scene.wait_condition("app", shop, "GrantsSynced", "NoSuchObject")
    for name in ("UserSynced", "ConnectionSecretSynced"):
        assert condition(scene.get("app", shop), name)["status"] == "True"
    assert mariadb.login("app", SECOND) and not mariadb.login("app", FIRST)


def test_foreign_metadata_survives_a_rotation(scene, mariadb, shop):
    """Labels of tools that copy or back up Secrets, and finalizers."""
    scene.create("app", shop, FIRST, connectionSecret={"name": "app-conn"})
    theirs = {"labels": {"team": "billing"}, "annotations": {"reflector.example.com/allowed": "true"},
              "finalizers": ["example.com/backup"]}
    scene.cluster.patch("secrets", "app-conn", shop, {"metadata": theirs})
    scene.cluster.apply(dbu.secret("app", shop, SECOND))
    wait.until("the new password", lambda: values(scene, "app-conn", shop)["password"] == SECOND)
    found = scene.cluster.get("secrets", "app-conn", shop)["metadata"]
    assert found["labels"]["team"] == "billing" and found["labels"]["app.kubernetes.io/managed-by"]
    assert found["annotations"]["reflector.example.com/allowed"] == "true"
    assert found["finalizers"] == ["example.com/backup"]
    scene.cluster.patch("secrets", "app-conn", shop, {"metadata": {"finalizers": None}})


def test_spec_metadata_is_kept_on_connection_secret(scene, mariadb, shop):
    """Set, repaired, and removed with its entry; labels of others stay also beside one of the same value."""
    scene.create("app", shop, FIRST, connectionSecret={
        "name": "app-conn", "labels": {"team": "billing", "tier": "data"},
        "annotations": {"example.com/copy": "yes"}})

    def metadata(member):
        return scene.cluster.get("secrets", "app-conn", shop)["metadata"].get(member, {})

    assert metadata("labels")["team"] == "billing" and metadata("labels")["tier"] == "data"
    assert metadata("annotations")["example.com/copy"] == "yes"
    scene.cluster.patch("secrets", "app-conn", shop, {"metadata": {
        "labels": {"team": "theirs", "owner": "them"}, "annotations": {"example.com/copy": None}}})
    wait.until("the repair", lambda: metadata("labels")["team"] == "billing" and
               metadata("annotations").get("example.com/copy") == "yes")
    scene.patch("app", shop, connectionSecret={"labels": {"team": None}, "annotations": None})
    wait.until("the removal", lambda: "team" not in metadata("labels") and
               "example.com/copy" not in metadata("annotations"))
    assert metadata("labels")["tier"] == "data" and metadata("labels")["owner"] == "them"
    assert metadata("labels")["app.kubernetes.io/managed-by"] and mariadb.login("app", FIRST)


def test_secret_of_another_owner_is_not_touched(scene, mariadb, shop):
    """An attacker names a Secret that exists: it is neither read nor changed, even with adopt."""
    scene.cluster.apply([dbu.secret("theirs", shop, SECOND, "host"), dbu.secret("app", shop, FIRST),
                         dbu.secret("two-password", shop, SECOND)])
    scene.cluster.apply([
        dbu.manifest("app", shop, connectionSecret={"name": "theirs"},
                     annotations={"steward.dev/adopt": "true"}),
        dbu.manifest("two", shop, password={"generate": {}})])
    scene.wait_condition("app", shop, "ConnectionSecretSynced", "NameConflict")
    scene.wait_condition("two", shop, "SecretResolved", "NameConflict")
    assert values(scene, "theirs", shop) == {"host": SECOND}
    assert values(scene, "two-password", shop) == {"password": SECOND}
    assert mariadb.login("app", FIRST) and "two@%" not in mariadb.all_accounts()
    scene.cluster.delete("secrets", "theirs", shop)
    scene.wait_ready("app", shop)
    assert values(scene, "theirs", shop)["password"] == FIRST


def test_generated_password_is_made_again_when_deleted(scene, mariadb, shop):
    """Made once, made again when its Secret is deleted, and in the connection Secret."""
    scene.cluster.apply(dbu.manifest("app", shop, password={"generate": {"length": 40}},
                                     connectionSecret={"name": "app-conn"}))
    scene.wait_ready("app", shop)
    first = values(scene, "app-password", shop)["password"]
    assert len(first) == 40 and mariadb.login("app", first)
    assert values(scene, "app-conn", shop)["password"] == first
    scene.poke("app", shop)
    scene.wait_ready("app", shop)
    assert values(scene, "app-password", shop)["password"] == first

    scene.cluster.delete("secrets", "app-password", shop)
    wait.until("another password", lambda: (values(scene, "app-password", shop) or {}).get(
        "password") not in (None, first))
    second = values(scene, "app-password", shop)["password"]
    wait.until("its login", lambda: mariadb.login("app", second))
    assert not mariadb.login("app", first)
    wait.until("its connection", lambda: values(scene, "app-conn", shop)["password"] == second)
    assert_not_told(scene, shop, first, second)
    scene.delete("app", shop)
    for name in ("app-password", "app-conn"):
        wait.until(f"{name} to be deleted", lambda n=name: values(scene, n, shop) is None)
