# SPDX-License-Identifier: Apache-2.0
"""DatabaseUser through the API server and kubectl: schema, webhooks, warnings, columns."""

import json
import re

import pytest

from support import databaseuser as dbu
from support import steward as stw
from support import wait

NOBODY = {"host": "127.0.0.1", "port": 1, "connectTimeoutSeconds": 1,
          "admin": {"user": "chief", "passwordSecret": {"name": "nobody-admin"}},
          "allowedDatabases": ["*"]}
MAIN = {"name": "main", "engine": "mariadb", **NOBODY}
OTHER = {"name": "Other", "engine": "mariadb", **NOBODY}
PG = {"name": "pg", "engine": "postgresql", **NOBODY}
SENTENCE = ("spec.password: Invalid value: must be an object {name, key} that names a Secret; "
            "plain-text passwords are not accepted")


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory):
    """A steward whose targets have no server; the API server calls its webhooks."""
    one = dbu.Environment(installed, steward_binary, tmp_path_factory.mktemp("webhook"), {})
    one.write_targets(MAIN, OTHER, PG)
    stw.install_webhooks(installed, steward_binary, one.steward.webhook_port)
    one.steward.start()
    one.steward.wait_webhook()
    yield one
    stw.uninstall_webhooks(installed)
    assert one.steward.stop() == 0, one.steward.log_tail()


@pytest.fixture
def shop(dbenv, namespace):
    # The account of the test before is refused until its deletion has reached steward's cache.
    wait.until("the account to be free", lambda: dry_run(dbenv, user("app", namespace)).returncode == 0)
    yield namespace
    dbenv.forget(namespace)


def apply(dbenv, *objects, **more):
    """An apply without kubectl's validation, so that unknown fields reach the webhook: else the API
    server would refuse them first."""
    return dbenv.cluster.apply(list(objects), validate=False, **more)


def dry_run(dbenv, obj):
    """The response that an apply would get."""
    return dbenv.cluster.apply(obj, validate=False, dry_run=True, check=False)


def refusal(dbenv, *objects):
    reply = apply(dbenv, *objects, check=False)
    assert reply.returncode != 0, reply.stdout
    return reply.stderr


def user(name, namespace, **more):
    """Like dbu.manifest, but without grants, and with a host that causes no warning."""
    return dbu.manifest(name, namespace, **{"hosts": ["10.%"], "grants": [], **more})


def test_plain_password_is_refused_and_not_echoed(dbenv, shop):
    said = refusal(dbenv, user("app", shop, password="hunter2-in-plain-text"))
    assert SENTENCE in said
    # kubectl's output does not contain the manifest.
    reply = dbenv.cluster.kubectl("create", "-f", "-", "--validate=false", check=False,
                                  stdin=json.dumps(user("app", shop, password="hunter2-in-plain-text")))
    assert SENTENCE in reply.stderr and "hunter2" not in reply.stderr


@pytest.mark.oldest("webhook calls")
def test_all_errors_of_a_spec_are_reported_at_once(dbenv, shop):
    said = refusal(dbenv, user("app", shop, user="root", resyncSeconds=5, hosts=["a", "a"],
                               grants=[{"database": "*", "privileges": ["FILE"]}]))
    for word in ('spec.user: Forbidden: "root" is reserved on mariadb',
                 "spec.resyncSeconds: Invalid value: 5: must be between 30 and 86400",
                 'spec.hosts[1]: Duplicate value: "a"',
                 'spec.grants[0].database: Forbidden: target "main" does not allow grants on all '
                 "databases", 'spec.grants[0].privileges[0]: Unsupported value: "FILE"'):
        assert word in said


def test_missing_target_label_is_refused(dbenv, shop):
    obj = user("app", shop)
    del obj["metadata"]["labels"]
    assert 'metadata.labels[target]: Required value: label "target" must name a database target' \
        in refusal(dbenv, obj)
    reply = apply(dbenv, user("app", shop, target="nowhere"))
    assert ('Warning: target "nowhere" is not configured; the account is created when it is'
            in reply.stderr)
    assert f'Warning: namespace "{shop}" may use the targets main, Other, pg' in reply.stderr


def test_targets_of_other_namespaces_are_not_named(dbenv, shop):
    """A tenant who guesses names learns those of its own namespace, and no other."""
    obj = user("app", shop, target="nowhere")
    dbenv.write_targets(MAIN, {**OTHER, "allowedNamespaces": ["elsewhere"]}, PG)
    try:
        said = wait.until("the new list to count", lambda: may_use(dry_run(dbenv, obj).stderr))
        assert said.endswith("may use the targets main, pg")
    finally:
        dbenv.write_targets(MAIN, OTHER, PG)


def may_use(text):
    """The warning with the targets, once it has no longer three."""
    said = [line.strip() for line in text.splitlines() if "may use the target" in line]
    return said[0] if said and "Other" not in said[0] else None


@pytest.mark.oldest("webhook calls")
def test_second_object_for_an_account_is_refused(dbenv, shop):
    apply(dbenv, user("app", shop, target="Main"))

    def second():
        reply = dry_run(dbenv, user("two", shop, user="app"))
        return reply.returncode != 0 and reply.stderr
    said = wait.until("the second to be refused", second)
    assert f"spec.user: Forbidden: account already managed by DatabaseUser {shop}/app" in said
    apply(dbenv, user("two", shop, user="app", target="other"))  # another server
    apply(dbenv, user("three", shop, user="App"))                # another account


@pytest.mark.oldest("webhook calls")
def test_user_and_target_are_immutable(dbenv, shop):
    """The user is immutable; the target is once there is an account."""
    apply(dbenv, user("app", shop, annotations={"steward.dev/paused": "true"}))
    assert 'spec.user: Forbidden: field is immutable (was "app")' in \
        refusal(dbenv, user("app", shop, user="other"))
    apply(dbenv, user("app", shop, target="other"))
    apply(dbenv, user("app", shop))
    dbenv.cluster.patch(dbu.KIND, "app", shop, {"status": {"account": "app@10.%", "target": "main"}},
                        subresource="status")  # steward writes it, too
    assert ('metadata.labels[target]: Forbidden: target cannot change from "main" to "other": the '
            "account would be left behind") in refusal(dbenv, user("app", shop, target="other"))
    apply(dbenv, user("app", shop, target="MAIN"))
    reply = dbenv.delete("app", shop, wait_gone=False)
    assert 'Warning: account app@10.% is dropped from target "main"' in reply.stderr


@pytest.mark.parametrize("value, more", [
    (None, {}), ("long-enough-and-more\n", {}), ("long-enough-and-more\n", {"trimNewline": True}),
    ("tiny-pw", {}), ("", {}), ("long-enough-and-more", {}),
], ids=["no key", "newline", "trimmed", "short", "empty", "good"])
@pytest.mark.oldest("warnings")
def test_secret_values_cause_no_unauthenticated_warnings(dbenv, shop, value, more):
    """No warnings about keys or values: this steward does not authenticate the API server."""
    reply = apply(dbenv, dbu.secret("app", shop, value),
                  user("app", shop, password={"name": "app", **more}))
    assert "Warning" not in reply.stderr
    if value:
        assert value.strip() not in reply.stderr
        assert value.strip() not in dbenv.steward.log_path.read_text("utf-8")


def test_missing_secret_is_warned_about(dbenv, shop):
    reply = apply(dbenv, user("app", shop))
    assert 'Warning: Secret "app" not found; the account is created when it appears' in reply.stderr


def finalizers(dbenv, obj):
    """The finalizers that the object would be stored with."""
    reply = dbenv.cluster.apply(obj, validate=False, dry_run=True)
    return reply.object["metadata"].get("finalizers", [])


@pytest.mark.oldest("webhook calls, finalizers")
def test_finalizer_is_set_once_by_admission(dbenv, shop):
    """Set once, if an account is about to be created, but not while something is missing."""
    assert finalizers(dbenv, user("app", shop)) == []
    dbenv.cluster.apply(dbu.secret("app", shop, "long-enough-and-more"))
    wait.until("the Secret to be seen",
               lambda: finalizers(dbenv, user("app", shop)) == [dbu.FINALIZER])
    assert finalizers(dbenv, user("app", shop, target="nowhere")) == []
    obj = user("app", shop)
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    assert finalizers(dbenv, obj) == ["example.com/hold", dbu.FINALIZER]
    obj["metadata"]["finalizers"] = [dbu.FINALIZER]
    assert finalizers(dbenv, obj) == [dbu.FINALIZER]


def test_article_manifest_is_accepted(dbenv, shop):
    """Unchanged except for what its page lost: blanks, and the s of labels."""
    reply = dbenv.cluster.kubectl("apply", "-n", shop, "-f", "-", stdin=dbu.SEED)
    assert "created" in reply.stdout
    stored = dbenv.get("cnhandsomeguy", shop)["spec"]
    assert stored == {"user": "cnhandsomeguy", "hosts": ["%"], "grantsPolicy": "Managed",
                      "requireTLS": "None", "deletionPolicy": "Delete", "adoptionPolicy": "Fail",
                      "resyncSeconds": 300,
                      "password": {"name": "my-secret", "key": "my-key", "trimNewline": False}}


@pytest.mark.oldest("kubectl's columns")
def test_kubectl_get_shows_columns_by_short_name(dbenv, shop):
    apply(dbenv, user("app", shop))
    shown = dbenv.cluster.kubectl("get", "dbu", "-n", shop, "-o", "wide").stdout.splitlines()[0]
    assert shown.split() == ["NAME", "USER", "TARGET", "READY", "REASON", "ROTATED", "ENGINE",
                             "SECRET", "LOGIN", "AGE"]


def closed(reply):
    return reply.returncode != 0 and reply.stderr


@pytest.mark.oldest("webhook calls")
def test_auth_plugin_outside_target_list_is_refused(dbenv, shop):
    """Refused beyond the list of the target, with what it allows; what became wrong later can be
    kept, but not be chosen."""
    dbenv.write_targets({**MAIN, "allowedAuthPlugins": ["ed25519"]}, OTHER, PG)
    said = refusal(dbenv, user("app", shop, authPlugin="mysql_native_password"))
    assert 'spec.authPlugin: Unsupported value: "mysql_native_password": supported values: ' \
        '"ed25519", the allowedAuthPlugins of target "main"' in said
    assert 'spec.authPlugin: Forbidden: target "Other" allows no plugin' in \
        refusal(dbenv, user("app", shop, target="Other", authPlugin="ed25519"))
    assert 'spec.authPlugin: Invalid value: "ed25519": not supported on postgresql' in \
        refusal(dbenv, user("app", shop, target="pg", authPlugin="ed25519"))
    apply(dbenv, user("app", shop, authPlugin="ed25519"))
    dbenv.write_targets(MAIN, OTHER, PG)
    reply = apply(dbenv, user("app", shop, authPlugin="ed25519", resyncSeconds=400))
    assert 'Warning: spec.authPlugin: Forbidden: target "main" allows no plugin' in reply.stderr
    assert "spec.authPlugin: Forbidden" in \
        refusal(dbenv, user("app", shop, authPlugin="parsec", resyncSeconds=400))


def test_changed_target_list_takes_effect(dbenv, shop):
    obj = user("app", shop)
    dbenv.write_targets({**MAIN, "allowedNamespaces": ["elsewhere"]}, OTHER, PG)
    try:
        said = wait.until("the new list to count", lambda: closed(dry_run(dbenv, obj)))
        assert f'target "main" does not accept namespace "{shop}"' in said
    finally:
        dbenv.write_targets(MAIN, OTHER, PG)
    wait.until("the old list to be back", lambda: dry_run(dbenv, obj).returncode == 0)


@pytest.mark.parametrize("spec, word", [
    ({"password": "plain"}, "spec.password"),
    ({"password": {"name": "s", "key": "a b"}}, "spec.password.key"),
    ({"user": None}, "spec.user"),
    ({"user": "a\nb"}, "spec.user"),
    ({"user": "a" * 81}, "spec.user"),
    ({"hosts": []}, "spec.hosts"),
    ({"hosts": ["a'"]}, "spec.hosts"),
    ({"hosts": ["x"] * 21}, "spec.hosts"),
    ({"grants": [{"privileges": ["SELECT"]}]}, "spec.grants[0].database"),
    ({"grants": [{"database": "a", "privileges": []}]}, "spec.grants[0].privileges"),
    ({"grants": [{"database": "a", "privileges": ["select"]}]}, "spec.grants[0].privileges"),
    ({"authPlugin": "ed25519' OR unix_socket"}, "spec.authPlugin"),
    ({"authPlugin": "e" * 65}, "spec.authPlugin"),
    ({"grantsPolicy": "All"}, "spec.grantsPolicy"),
    ({"deletionPolicy": "Forget"}, "spec.deletionPolicy"),
    ({"adoptionPolicy": "Yes"}, "spec.adoptionPolicy"),
    ({"requireTLS": "TLS"}, "spec.requireTLS"),
    ({"limits": {"maxUserConnections": -1}}, "spec.limits.maxUserConnections"),
    ({"resyncSeconds": 29}, "spec.resyncSeconds"),
], ids=str)
@pytest.mark.oldest("the schema")
def test_schema_refuses_bad_fields_without_webhook(installed, namespace, spec, word):
    """Without a webhook, as when it is down.  That a password has a source is a rule over two fields,
    which only the definitions for Kubernetes 1.29 have: tests/contract/test_cel.py."""
    stw.uninstall_webhooks(installed)
    obj = user("app", namespace, **spec)
    obj["spec"] = {k: v for k, v in obj["spec"].items() if v is not None}
    wait.until("nobody to be asked", lambda: schema_says(installed, obj, word))


def schema_says(cluster, obj, word):
    reply = cluster.apply(obj, validate=False, dry_run=True, check=False)
    assert reply.returncode != 0, reply.stdout
    # Kubernetes 1.20 names the field of a list without the index.
    path = re.escape(word).replace(re.escape("[0]"), r"(\[0\])?")
    return re.search(path, reply.stderr) and "admission webhook" not in reply.stderr
