# SPDX-License-Identifier: Apache-2.0
"""examples/cronjob-lite: a kind with two versions, stored in one and read in the other."""

import base64
import contextlib
import json
import os

import pytest

from support import attack, example, library, net, steward, stored, wait
from support import cluster as k8s
from support.cluster import condition
from support.webhook import JSON, ask, raw_post, read_reply

GROUP, PLURAL = "batch.tutorial.example.org", "cronjobs"
CRD = f"{PLURAL}.{GROUP}"
SECRET = "cronjob-lite-webhook-server-cert"
NOTES = "cronjob-lite.example.org/conversion"
TEMPLATE = {"spec": {"template": {"spec": {"restartPolicy": "Never",
                                           "containers": [{"name": "main", "image": "none"}]}}}}
MONDAY = {"minute": "30", "hour": "4", "dayOfMonth": "*", "month": "*", "dayOfWeek": "1"}


def old(name, namespace, **spec):
    """A CronJob of v1alpha1."""
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "CronJob",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"schedule": MONDAY, "paused": True, "note": "of Ann", "jobTemplate": TEMPLATE, **spec}}


def new(name, namespace, **spec):
    """A CronJob of v1."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "CronJob", "metadata": {"name": name, "namespace": namespace},
            "spec": {"schedule": "30 4 * * 1", "suspend": True, "failedJobsHistoryLimit": 7,
                     "jobTemplate": TEMPLATE, **spec}}


class Api:
    """CronJobs of a namespace, in the version that is asked for."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace

    def path(self, version, name=""):
        """Of an object, or of the collection."""
        return f"/apis/{GROUP}/{version}/namespaces/{self.namespace}/{PLURAL}" + (f"/{name}" if name else "")

    def ask(self, method, version, name="", body=None, query="", **options):
        """A support.rest.Reply."""
        return self.cluster.api.request(method, self.path(version, name) + query, body, **options)

    def do(self, *args, **options):
        """The object of a request that has to succeed."""
        reply = self.ask(*args, **options)
        assert reply.status < 300, reply.object
        return reply.object

    def patch(self, version, name, patch):
        """A JSON merge patch, sent to this version."""
        return self.do("PATCH", version, name, patch, content_type="application/merge-patch+json")

    def create(self, obj):
        """In the version of the object."""
        return self.do("POST", obj["apiVersion"].partition("/")[2], "", obj)

    def stored(self, name):
        """As it is in etcd."""
        return stored.read(self.cluster, GROUP, PLURAL, self.namespace, name)


def store(cluster, version):
    """Makes the API server store this version, and waits until it does."""
    versions = enumerate(cluster.get("crd", CRD)["spec"]["versions"])
    cluster.patch("crd", CRD, None, [{"op": "replace", "path": f"/spec/versions/{i}/storage",
                                      "value": v["name"] == version} for i, v in versions])
    name, api = f"probe-{version}", Api(cluster, "default")

    def look():
        if api.ask("POST", "v1", "", new(name, "default")).status >= 300:
            return False
        found = api.stored(name)["apiVersion"]
        api.ask("DELETE", "v1", name)
        return found == f"{GROUP}/{version}"
    wait.until(f"objects to be stored as {version}", look)


@pytest.fixture(scope="module")
def operator(cluster, start_example):
    """The operator, whose webhooks the API server calls."""
    if os.environ.get("USE_EXISTING_CLUSTER") == "true":
        pytest.skip("the storage of the cluster cannot be read")
    one = start_example("cronjob-lite")
    one.admit(new("webhook", "default"), new("webhook", "default", schedule="never"), "spec.schedule")
    yield one
    if not one.running():
        one.start()
    store(cluster, "v1")
    cluster.delete_all(CRD)
    one.forget_webhooks()
    cluster.delete("crd", CRD)


@pytest.fixture(params=["v1", "v1alpha1"])
def storage(request, cluster, operator):
    """The version in which objects are stored."""
    assert operator.running()
    store(cluster, request.param)
    return request.param


@pytest.fixture
def api(cluster, home, operator):
    """An Api."""
    assert operator.running()
    yield Api(cluster, home)
    if not operator.running():
        operator.start()
    cluster.delete_all(CRD, home)


@pytest.mark.oldest("conversion webhooks")
def test_objects_are_read_in_both_versions(api, storage):
    """Both versions can be written and read, whichever is stored; nothing is lost on the way."""
    api.create(old("a", api.namespace))
    api.create(new("b", api.namespace))
    for name in ("a", "b"):
        assert api.stored(name)["apiVersion"] == f"{GROUP}/{storage}"
        spec = api.do("GET", "v1", name)["spec"]
        assert (spec["schedule"], spec["suspend"]) == ("30 4 * * 1", True)
        assert spec["failedJobsHistoryLimit"] == (7 if name == "b" else 1) and "note" not in spec
        spec = api.do("GET", "v1alpha1", name)["spec"]
        assert (spec["schedule"], spec["paused"]) == (MONDAY, True)
        assert spec.get("note") == ("of Ann" if name == "a" else None)
        assert "failedJobsHistoryLimit" not in spec and "suspend" not in spec
    for version in ("v1", "v1alpha1"):
        listed = api.do("GET", version)
        assert [(o["apiVersion"], o["metadata"]["name"]) for o in listed["items"]] == \
            [(f"{GROUP}/{version}", "a"), (f"{GROUP}/{version}", "b")]


@pytest.mark.oldest("conversion webhooks")
def test_write_keeps_fields_of_the_other_version(api, storage):
    """The note of v1alpha1 survives a write in v1, and the limit and an unusual schedule of v1 one in v1alpha1."""
    api.create(old("a", api.namespace))
    api.patch("v1", "a", {"spec": {"suspend": False, "schedule": "@daily"}})
    spec = api.do("GET", "v1alpha1", "a")["spec"]
    assert spec["note"] == "of Ann" and spec["paused"] is False and "schedule" not in spec
    api.create(new("b", api.namespace, schedule="@hourly"))
    api.patch("v1alpha1", "b", {"spec": {"paused": False}})
    spec = api.do("GET", "v1", "b")["spec"]
    assert (spec["suspend"], spec["failedJobsHistoryLimit"], spec["schedule"]) == (False, 7, "@hourly")
    assert api.stored("b")["apiVersion"] == f"{GROUP}/{storage}"


@pytest.mark.oldest("conversion webhooks, webhooks that match an equivalent version")
def test_rules_and_controller_see_the_hub_version(api, storage, cluster):
    """A bad object of v1alpha1 is refused by the rules of v1; a good one is reconciled."""
    reply = api.ask("POST", "v1alpha1", "", old("bad", api.namespace, schedule={**MONDAY, "hour": "25"}))
    assert reply.status >= 400 and "spec.schedule" in reply.object["message"], reply.object
    created = api.ask("POST", "v1alpha1", "", old("a", api.namespace))
    assert any("deprecated; use v1" in one for one in created.warnings), created.warnings
    cluster.wait_condition(CRD, "a", api.namespace, "Scheduled", "Suspended")
    assert condition(api.do("GET", "v1alpha1", "a"), "Scheduled")["reason"] == "Suspended"
    assert api.stored("a")["apiVersion"] == f"{GROUP}/{storage}"


def test_validate_agrees_with_the_api_server(api, operator, tmp_path):
    """Objects of both versions, new and changed: what the API server refuses is refused, the rest accepted."""
    bad = [("hour", {"schedule": {**MONDAY, "hour": "25"}}), ("type", {"paused": "yes"}),
           ("own", {"suspend": True}), ("enum", {"concurrencyPolicy": "Never"}), ("size", {"note": "x" * 1025})]
    objects = [old("good", api.namespace), new("own-good", api.namespace),
               new("own-bad", api.namespace, schedule="never"), new("own-note", api.namespace, note="x"),
               *(old(name, api.namespace, **spec) for name, spec in bad)]
    before = {name: new(name, api.namespace) for name in ("hour", "good")}
    files = {name: tmp_path / name for name in ("objects.json", "before.json")}
    for path, items in zip(files.values(), (objects, list(before.values()))):
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    query = "?dryRun=All&fieldValidation=Strict"
    for there, options in (({}, ()), (before, ("--old", files["before.json"]))):
        for obj in there.values():
            api.create(obj)
        done = k8s.run([operator.binary, "validate", "-o", "json", *options, files["objects.json"]], check=False)
        judged = {o["name"]: o for o in json.loads(done.stdout)["objects"]}
        for obj in objects:
            name, version = obj["metadata"]["name"], obj["apiVersion"].partition("/")[2]
            reply = (api.ask("PATCH", version, name, obj, query, content_type="application/merge-patch+json")
                     if name in there else api.ask("POST", version, "", obj, query))
            assert (reply.status < 300) == (judged[name]["verdict"] == "accepted"), (judged[name], reply.object)
            deprecated = any("deprecated; use v1" in one for one in judged[name]["warnings"])
            assert deprecated == (version == "v1alpha1"), judged[name]


@pytest.mark.oldest("conversion webhooks")
def test_forged_conversion_annotation_overwrites_nothing(api, storage):
    """What tenants write into the annotation cannot overwrite metadata, status or fields of both versions."""
    forged = {"v1": {"spec.suspend": False, "metadata.name": "other", "status.active": [],
                     "spec.failedJobsHistoryLimit": "x"},
              "v1alpha1": {"spec.paused": False, "metadata.labels": {"a": "b"}, "spec.note": 7}}
    texts = json.dumps(forged), "\"", "[[[", "{}" * 9, json.dumps({"v1": 1, "v1alpha1": []})
    for number, text in enumerate(texts):
        for make in (old, new):
            obj = make(f"{make.__name__}-{number}", api.namespace)
            obj["metadata"]["annotations"] = {NOTES: text}
            made = api.create(obj)
            for version in ("v1", "v1alpha1"):
                found = api.do("GET", version, obj["metadata"]["name"])
                assert found["metadata"]["uid"] == made["metadata"]["uid"] and "labels" not in found["metadata"]
                assert found["spec"]["suspend" if version == "v1" else "paused"] is True


def review(desired, *objects):
    """A ConversionReview."""
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": desired, "objects": list(objects)}}


def test_malformed_conversion_requests_are_refused(operator):
    """Garbage, other kinds of reviews, unknown versions, other kinds and too large bodies; and it goes on."""
    peer = attack.Port(operator.webhook_port)

    def post(body):
        with contextlib.closing(peer.https()) as connection:
            return ask(connection, "POST", "/convert", body if isinstance(body, bytes) else json.dumps(body), JSON)
    good = old("a", "n")
    status, _, reply = post(b"\x00garbage")
    assert status == 400 and "not valid JSON" in reply["message"]
    status, _, reply = post(b"[" * 200000)
    assert status == 400 and "nested too deeply" in reply["message"]
    status, _, reply = post({**review(f"{GROUP}/v1", good), "apiVersion": "apiextensions.k8s.io/v1beta1"})
    assert status == 400 and 'must be "apiextensions.k8s.io/v1"' in reply["message"]
    failures = [(review(f"{GROUP}/v2", good), f'"{GROUP}/v2" is not a version of CronJob'),
                (review(f"{GROUP}/v1", {**good, "apiVersion": f"{GROUP}/v0"}), f'"{GROUP}/v0" is not known'),
                (review(f"{GROUP}/v1", {**good, "kind": "Pod"}), "does not have this kind"),
                (review(f"{GROUP}/v1", good, 7), "request.objects[1]"),
                (review(f"{GROUP}/v1", {**good, "metadata": "x"}), "metadata: must be an object")]
    for body, text in failures:
        status, _, reply = post(body)
        result = reply["response"]["result"]
        assert status == 200 and result["status"] == "Failure" and text in result["message"], result
        assert not reply["response"].get("convertedObjects")
    with contextlib.closing(peer.tls()) as sock:
        sock.sendall(raw_post(b"{", "/convert", length=1 << 30))
        status, body = read_reply(sock)
        assert status == 413 and json.loads(body)["message"]
    status, _, reply = post(review(f"{GROUP}/v1", good))
    [converted] = reply["response"]["convertedObjects"]
    assert converted["metadata"].pop("annotations").keys() == {NOTES}
    assert converted["metadata"] == good["metadata"] and converted["spec"]["suspend"] is True
    assert operator.metric("cronjob_lite_conversion_objects_total", kind="CronJob", result="failure") > 0


@pytest.mark.oldest("conversion webhooks")
def test_missing_conversion_webhook_heals_on_start(api, storage, operator, cluster):
    """The version that is stored can be read, the other one fails with words; a start heals it, even if the
    operator itself needs the conversion of what is stored."""
    other = {"v1": "v1alpha1", "v1alpha1": "v1"}[storage]
    api.create(old("a", api.namespace))
    cluster.wait_condition(CRD, "a", api.namespace, "Scheduled", "Suspended")
    assert operator.stop() == 0
    assert api.do("GET", storage, "a")["spec"]["jobTemplate"] == TEMPLATE
    reply = api.ask("GET", other, "a")
    assert reply.status == 500 and "conversion webhook" in reply.object["message"], reply.object
    assert "connection refused" in reply.object["message"]
    operator.start()
    assert api.do("GET", other, "a")["spec"]["jobTemplate"] == TEMPLATE
    api.patch("v1alpha1", "a", {"spec": {"paused": False}})
    cluster.wait_condition(CRD, "a", api.namespace, "Scheduled", "Waiting")


def send_conversions_to(cluster, port):
    """Sets the address of the conversion webhook."""
    url = f"https://127.0.0.1:{port}/convert"
    cluster.patch("crd", CRD, None, {"spec": {"conversion": {"webhook": {"clientConfig": {"url": url}}}}})


@pytest.mark.oldest("conversion webhooks")
def test_operator_is_ready_before_objects_are_listed(api, operator, cluster):
    """A Service has only ready replicas: one that waited for a list that needs the webhook would wait for ever."""
    store(cluster, "v1alpha1")
    api.create(old("a", api.namespace, paused=False))
    cluster.wait_condition(CRD, "a", api.namespace, "Scheduled", "Waiting")
    assert operator.stop() == 0
    send_conversions_to(cluster, net.free_port())
    try:
        wait.until("the API server to use the address", lambda: api.ask("GET", "v1", "a").status == 500)
        operator.start()
        assert api.ask("GET", "v1", "a").status == 500
    finally:
        send_conversions_to(cluster, operator.webhook_port)
    wait.until("the API server to use the address", lambda: api.ask("GET", "v1", "a").status == 200)
    api.patch("v1", "a", {"spec": {"suspend": True}})
    cluster.wait_condition(CRD, "a", api.namespace, "Scheduled", "Suspended")


def secret_ca(cluster):
    """The CA in the Secret."""
    found = cluster.get("secret", SECRET, steward.NAMESPACE) or {"data": {}}
    return base64.b64decode(found["data"].get("ca.crt", "")).decode()


def crd_bundle(cluster):
    """The caBundle of the conversion webhook."""
    config = cluster.get("crd", CRD)["spec"]["conversion"]["webhook"]["clientConfig"]
    return base64.b64decode(config.get("caBundle", "")).decode()


@pytest.mark.oldest("server-side apply of a CRD, conversion webhooks")
def test_crd_ca_bundle_follows_the_ca(api, operator, cluster):
    """It is repaired, and replaced when the CA was lost while the operator was down."""
    before, bundle = secret_ca(cluster), crd_bundle(cluster)
    assert before and before in bundle
    cluster.patch("crd", CRD, None, {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}})
    wait.until("the caBundle to be repaired", lambda: crd_bundle(cluster) == bundle)
    assert operator.stop() == 0
    cluster.delete("secret", SECRET, steward.NAMESPACE)
    operator.start()
    after = secret_ca(cluster)
    assert after and after != before and after in crd_bundle(cluster)
    api.create(old("a", api.namespace))
    assert api.do("GET", "v1", "a")["spec"]["suspend"] is True
    applied = library.run(operator.binary, "print", "crds", "--url", f"https://127.0.0.1:{operator.webhook_port}",
                          env=operator.given)
    cluster.apply(applied)
    assert after in crd_bundle(cluster)


def test_missing_right_on_crd_is_reported(operator, cluster):
    """Its caBundle cannot be kept: it is not ready, and says why."""
    role = "cronjob-lite-webhook-ca-role"
    rules = cluster.get("clusterrole", role)["rules"]
    [rule] = [one for one in rules if one["resources"] == ["customresourcedefinitions"]]
    assert rule["resourceNames"] == [CRD] and set(rule["verbs"]) == {"get", "list", "watch", "patch"}
    cluster.patch("clusterrole", role, None, {"rules": [one for one in rules if one != rule]})
    try:
        assert operator.stop() == 0
        operator.start(ready=False)
        wait.until("the reason", lambda: f'cannot read CustomResourceDefinition "{CRD}"' in operator.readyz()[1])
    finally:
        cluster.patch("clusterrole", role, None, {"rules": rules})
    operator.wait_ready(120)


def test_printed_crd_has_both_versions_and_webhook(operator, cluster):
    """The CRD has both versions, and one conversion webhook."""
    spec = cluster.get("crd", CRD)["spec"]
    assert {v["name"]: v["served"] for v in spec["versions"]} == {"v1": True, "v1alpha1": True}
    webhook = spec["conversion"]["webhook"]
    assert spec["conversion"]["strategy"] == "Webhook" and webhook["conversionReviewVersions"] == ["v1"]
    assert webhook["clientConfig"]["url"] == f"https://127.0.0.1:{operator.webhook_port}/convert"
    assert example.install(cluster, operator.binary, operator.given, operator.webhook_port) == [CRD]


class Program:
    """The commands of the operator's program."""

    def __init__(self, operator, cluster):
        self.operator, self.cluster = operator, cluster

    def run(self, *words):
        """(exit status, output and errors)"""
        done = k8s.run([self.operator.binary, *words, "--kubeconfig", self.cluster.kubeconfig], check=False,
                       env={**os.environ, **self.operator.given})
        return done.returncode, done.stdout + done.stderr

    def seen(self):
        """What doctor says about stored versions and conversion: {check: (verdict, text, advice)}."""
        _, text = self.run("doctor", "-o", "json", "--namespace", steward.NAMESPACE)
        return {c["check"]: (c["verdict"], c["seen"], c.get("advice")) for c in json.loads(text)["checks"]}


@pytest.fixture
def program(operator, cluster):
    """A Program."""
    return Program(operator, cluster)


def stored_versions(cluster):
    """Of the CRD."""
    return cluster.get("crd", CRD)["status"]["storedVersions"]


@pytest.mark.oldest("storage of custom resources, status.storedVersions")
def test_migrate_rewrites_stored_objects(api, program, cluster):
    """doctor reports them, migrate writes them again, and the CRD forgets the former version."""
    store(cluster, "v1alpha1")
    for number in range(20):
        api.create((old if number % 2 else new)(f"a{number}", api.namespace))
    # A status that is written later would be stored as v1.
    cluster.wait_list("all to be reconciled", CRD, api.namespace, lambda found: len(found) == 20 and all(
        condition(o, "Scheduled")["reason"] == "Suspended" for o in found))
    before = api.do("GET", "v1")["items"]
    store(cluster, "v1")
    assert sorted(stored_versions(cluster)) == ["v1", "v1alpha1"]
    verdict, text, advice = program.seen()["stored versions"]
    assert (verdict, advice) == ("warn", "cronjob-lite migrate --yes")
    assert f"{CRD}: objects may still be stored as v1alpha1, not as v1" in text
    status, text = program.run("migrate")
    assert status == 0 and "20 would be written again as v1" in text
    assert {api.stored(f"a{n}")["apiVersion"] for n in range(20)} == {f"{GROUP}/v1alpha1"}
    status, text = program.run("migrate", "--yes")
    assert status == 0 and "20 objects are stored as v1; v1alpha1 is removed" in text, text
    assert {api.stored(f"a{n}")["apiVersion"] for n in range(20)} == {f"{GROUP}/v1"}
    assert stored_versions(cluster) == ["v1"]
    after = api.do("GET", "v1")["items"]
    assert [(o["metadata"]["uid"], o["metadata"]["generation"], o["spec"]) for o in after] == \
        [(o["metadata"]["uid"], o["metadata"]["generation"], o["spec"]) for o in before]
    assert "stored versions" not in program.seen()
    assert program.seen()["conversion"][0] == "ok"
    assert program.run("migrate", "--yes") == (0, "CronJob: all objects are stored as v1\n")


@pytest.mark.oldest("storage of custom resources, status.storedVersions")
def test_unmigratable_object_keeps_the_old_version(api, program, cluster, operator):
    """It is named, and the CRD keeps the former version; the next run completes it."""
    store(cluster, "v1alpha1")
    api.create(old("a", api.namespace))
    store(cluster, "v1")
    assert operator.stop() == 0
    status, text = program.run("migrate", "--yes")
    assert status == 1 and "connection refused" in text, text
    assert sorted(stored_versions(cluster)) == ["v1", "v1alpha1"]
    operator.start()
    status, text = program.run("migrate", "--yes")
    assert status == 0, text
    assert stored_versions(cluster) == ["v1"] and api.stored("a")["apiVersion"] == f"{GROUP}/v1"


def test_doctor_reports_a_conversion_webhook_without_ca(operator, program, cluster):
    """Nothing would repair it while the operator is down."""
    assert operator.stop() == 0
    cluster.patch("crd", CRD, None, {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}})
    verdict, text, _ = program.seen()["CustomResourceDefinition"]
    assert verdict == "fail" and f"webhook {CRD} (127.0.0.1) has no caBundle" in text
    operator.start()
    assert "CustomResourceDefinition" not in program.seen()
