# SPDX-License-Identifier: Apache-2.0
"""Access to /metrics and /debug/state: clients that the API server authorizes, over HTTPS."""

import base64
import contextlib
import http.client
import json
import re
import secrets
import shlex
import shutil
import ssl
import threading

import pytest

from support import databaseuser as dbu
from support import myweb, net, paths, wait, webhook
from support import steward as stw

READER, DEBUGGER = "steward-metrics-reader", "steward-debug-reader"


def token_of(cluster, namespace, account):
    """A token of this ServiceAccount, which is created if it does not exist."""
    if not cluster.get("serviceaccount", account, namespace):
        cluster.create_account(f"{namespace}/{account}")
    return cluster.token_of(f"{namespace}/{account}")


def read(steward, token=None, path="/metrics", method="GET", ca=None, name="127.0.0.1"):
    """(status, headers, text)"""
    if ca is None:
        secret = steward.cluster.get("secret", "steward-webhook-server-cert", stw.NAMESPACE)
        ca = base64.b64decode(secret["data"]["ca.crt"]).decode()
    context = ssl.create_default_context(cadata=ca)
    context.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", steward.metrics_port, timeout=20,
                                             context=context)
    with contextlib.closing(connection):
        connection.connect()
        names = connection.sock.getpeercert()["subjectAltName"]
        assert name in [value for _, value in names]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read().decode()


def documented_binding():
    """The command of docs/operations.md that lets Prometheus read, for this test's account."""
    text = (paths.TOP / "docs" / "operations.md").read_text("utf-8")
    command = re.search(r"^kubectl (create clusterrolebinding (?:.*\\\n)*.*)$", text,
                        re.MULTILINE)[1]
    command = command.replace("\\\n", " ")
    return shlex.split(command.replace("monitoring:prometheus-k8s", "metrics-readers:may"))


@pytest.fixture
def secure(run_steward):
    """secure(*flags): a steward with the default flags about metrics."""
    def start(*flags):
        one = run_steward("--metrics-secure=true", *flags)
        assert one.running()
        return one
    return start


@pytest.fixture(scope="module")
def tokens(installed):
    """Tokens of an account with the right and of one without."""
    installed.kubectl("apply", "-k", str(paths.TOP / "config" / "rbac"))
    installed.create_namespace("metrics-readers")
    found = {name: token_of(installed, "metrics-readers", name) for name in ("may", "may-not")}
    installed.kubectl(*documented_binding())
    yield found
    installed.delete("clusterrolebinding", READER)
    installed.delete_namespace("metrics-readers")


class Stranger(threading.Thread):
    """A client of another address that tries one random token after the other."""

    def __init__(self, port, number, stop):
        super().__init__()
        self.port, self.source, self.stop, self.codes = port, f"127.0.0.{40 + number}", stop, set()

    def run(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        while not self.stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(
                    http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context,
                                                source_address=(self.source, 0))) as connection:
                while not self.stop.wait(0.02):
                    connection.request("GET", "/metrics", headers={
                        "Authorization": f"Bearer {secrets.token_hex(12)}"})
                    reply = connection.getresponse()
                    reply.read()
                    self.codes.add(reply.status)


def test_invalid_tokens_do_not_block_a_new_valid_one(secure, tokens, installed):
    """Prometheus has a new token each hour; four clients without one try many, at the limit."""
    assert tokens
    one, stop = secure(), threading.Event()
    strangers = [Stranger(one.metrics_port, number, stop) for number in range(4)]
    for stranger in strangers:
        stranger.start()
    try:
        wait.until("each of them to be at its limit", lambda: all(429 in s.codes for s in strangers))
        for _ in range(5):
            assert read(one, token_of(installed, "metrics-readers", "may"))[0] == 200
    finally:
        stop.set()
        for stranger in strangers:
            stranger.join()


@pytest.mark.oldest("TokenReview and SubjectAccessReview")
def test_only_authorized_clients_read_metrics(secure, tokens):
    one = secure()
    status, headers, text = read(one, name=f"steward-metrics-service.{stw.NAMESPACE}.svc")
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer TOKEN" in text
    status, _, text = read(one, "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm9ueW1vdXMifQ.c2ln")
    assert status == 401 and "does not know this token" in text
    status, _, text = read(one, tokens["may"][:-8] + "AAAAAAAA")
    assert status == 401
    status, _, text = read(one, tokens["may-not"])
    assert status == 403
    assert 'user "system:serviceaccount:metrics-readers:may-not" may not get /metrics' in text
    assert READER in text
    status, headers, text = read(one, tokens["may"])
    assert status == 200 and "\nsteward_build_info{" in text
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert read(one, tokens["may"], method="HEAD")[::2] == (200, "")
    assert read(one, tokens["may"], "/metrics/x")[0] == 404
    assert read(one, tokens["may"], method="POST")[0] == 405
    log = one.log_path.read_text("utf-8")
    assert not [t for t in tokens.values() if t in log or t.split(".")[2] in log]
    assert net.http_get(f"http://127.0.0.1:{one.metrics_port}/metrics")[0] != 200


def test_authorization_answers_are_cached(secure, tokens):
    """A scraper that comes every second causes two requests a minute to the API server."""
    one = secure()
    for _ in range(20):
        status, _, text = read(one, tokens["may"])
        assert status == 200

    def posts():
        _, _, text = read(one, tokens["may"])
        return [line for line in text.splitlines()
                if line.startswith("rest_client_requests_total") and 'method="POST"' in line
                and 'code="201"' in line]
    asked = posts()
    assert read(one, tokens["may"])[0] == 200 and posts() == asked


def test_revoked_right_takes_effect(secure, installed, tokens):
    """A refusal is cached for a short time, a permission for up to a minute."""
    one = secure()
    assert read(one, tokens["may-not"])[0] == 403
    installed.kubectl("create", "clusterrolebinding", "test-metrics-late",
                      f"--clusterrole={READER}", "--serviceaccount=metrics-readers:may-not")
    try:
        wait.until("the new right to count", lambda: read(one, tokens["may-not"])[0] == 200)
    finally:
        installed.delete("clusterrolebinding", "test-metrics-late")


def test_api_server_outage_admits_no_new_client(secure, installed, tokens):
    one = secure()
    ca = base64.b64decode(installed.get("secret", "steward-webhook-server-cert",
                                        stw.NAMESPACE)["data"]["ca.crt"]).decode()
    assert read(one, tokens["may"], ca=ca)[0] == 200
    installed.component("stop", "apiserver")
    try:
        status, headers, text = read(one, tokens["may-not"], ca=ca)
        assert status == 503 and "cannot be asked" in text and headers["Retry-After"]
        assert read(one, "guess", ca=ca)[0] == 503
        assert read(one, ca=ca)[0] == 401
        assert read(one, tokens["may"], ca=ca)[0] == 200  # cached, so metrics stay readable now
    finally:
        installed.component("start", "apiserver")
    wait.until("the API server to be asked again",
               lambda: read(one, tokens["may-not"], ca=ca)[0] == 403, 60)
    wait.until("the reason in the log", lambda: [
        entry for entry in one.log() if "who may read metrics" in entry["msg"]])


@pytest.mark.oldest("rights on TokenReviews")
def test_missing_token_review_right_admits_no_client(secure, installed, tokens, steward_binary):
    """As with `print rbac --namespaces`, which omits that right."""
    installed.delete("clusterrolebinding", "steward-metrics-auth-rolebinding")
    try:
        one = secure()
        status, _, text = read(one, tokens["may"])
        assert status == 503 and "the log of this process says why" in text
        entry = wait.until("the reason in the log", lambda: next(
            (e for e in one.log() if "who may read metrics" in e["msg"]), None))
        assert "tokenreviews" in entry["error"]
    finally:
        stw.install(installed, steward_binary)


def test_metrics_certificate_is_used_and_renewed(secure, tokens, tmp_path):
    """--metrics-cert-path, and the renewal of its certificate."""
    certs = webhook.make_pair(tmp_path / "certs", "metrics")
    one = secure("--metrics-cert-path", str(certs))
    pem = (certs / "tls.crt").read_text()
    assert read(one, tokens["may"], ca=pem)[0] == 200
    status, _, text = read(one, tokens["may"], ca=pem)
    assert 'steward_certificate_not_after_seconds{cert="metrics"} ' in text
    assert 'steward_certificate_not_after_seconds{cert="serving"} ' in text
    new = webhook.make_pair(tmp_path / "new", "renewed")
    shutil.copy(new / "tls.key", certs / "tls.key")
    shutil.copy(new / "tls.crt", certs / "tls.crt")
    pem = (certs / "tls.crt").read_text()

    def served():
        with contextlib.suppress(ssl.SSLError):
            return read(one, tokens["may"], ca=pem)[0] == 200
        return False
    wait.until("the new certificate to be served", served)


@pytest.fixture(scope="module")
def on_call(installed, tokens):
    """The token of an account with the right to get /debug/state; may-not still has none."""
    token = token_of(installed, "metrics-readers", "on-call")
    installed.kubectl("create", "clusterrolebinding", DEBUGGER, f"--clusterrole={DEBUGGER}",
                      "--serviceaccount=metrics-readers:on-call")
    yield token
    installed.delete("clusterrolebinding", DEBUGGER)


def state_of(steward, token):
    """/debug/state as a dict."""
    status, headers, text = read(steward, token, "/debug/state")
    assert (status, headers["Content-Type"]) == (200, "application/json"), text
    return json.loads(text)


@pytest.mark.oldest("SubjectAccessReview of another path")
def test_only_authorized_clients_read_the_state(secure, run_steward, tokens, on_call):
    one = secure()
    assert read(one, path="/debug/state")[0] == 401
    for name in ("may", "may-not"):
        status, _, text = read(one, tokens[name], "/debug/state")
        assert status == 403
        assert f'metrics-readers:{name}" may not get /debug/state' in text and DEBUGGER in text
    state = state_of(one, on_call)
    assert state["build"]["program"] == "steward" and state["build"]["version"]
    assert [c["name"] for c in state["checks"]] == ["webhook", "certificate", "caches"]
    assert all(c["ok"] for c in state["checks"])
    assert read(one, on_call, "/debug/state/x")[0] == 404
    assert read(one, on_call)[0] == 200  # the role has both
    open_to_all = run_steward()
    assert net.http_get(f"http://127.0.0.1:{open_to_all.metrics_port}/debug/state")[0] == 404


@pytest.mark.oldest("resourceVersions, errors")
def test_state_shows_queues_caches_and_failing_objects(secure, installed, on_call, namespace):
    """Queues, caches and the object that cannot be reconciled, and its end."""
    one = secure("--leader-elect")
    wait.until("it to lead", lambda: state_of(one, on_call)["leases"][0]["held"], 40)
    assert state_of(one, on_call)["reconciles"]
    installed.apply(myweb.manifest("good", namespace))
    installed.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {},
                     "metadata": {"name": "taken", "namespace": namespace}})
    installed.apply(myweb.manifest("taken", namespace))

    def wrong():
        return [e for e in state_of(one, on_call)["errors"] if e["namespace"] == namespace]
    error = wait.until("the error", lambda: (wrong() or [None])[0])
    assert (error["kind"], error["name"], error["stalled"]) == ("MyWeb", "taken", True)
    assert "taken" in error["error"] and error["time"].endswith("Z") and error["streak"] >= 1
    assert error["reason"] and error["since"] <= error["time"] and error["nextRunInSeconds"] >= 0
    state = state_of(one, on_call)
    queue = next(q for q in state["queues"] if q["kind"] == "MyWeb")
    assert queue["runs"] >= 2 and queue["workersMax"] == 4 and queue["failedRuns"] >= 1
    assert {len(q) for q in state["queues"]} == {len(queue)}
    assert sorted(q["kind"] for q in state["queues"]) == [
        "App", "DatabaseUser", "Eru", "EtcdBackup", "EtcdCluster", "EtcdRestore", "MyWeb"]
    cache = next(c for c in state["caches"] if c["resource"] == "mywebs")
    assert cache["objects"] >= 2 and cache["bytes"] > 100 and cache["synced"]
    assert cache["lists"] == 1 and cache["failures"] == 0 and cache["problem"] == ""
    assert int(cache["resourceVersion"]) > 0 and cache["lastEvent"].endswith("Z")
    installed.delete("configmap", "taken", namespace)
    # Objects of other owners are not watched; steward would look in a minute.
    installed.annotate(myweb.KIND, "taken", namespace, {"steward.dev/reconcile-at": "now"})
    wait.until("the error to be over", lambda: not wrong())


def test_state_contains_no_secrets(installed, steward_binary, tmp_path, mariadb, on_call, namespace):
    """No password, token or key, while objects fail whose Secrets steward has read."""
    needle = "needle-Passw0rd-in-state"
    dbenv = dbu.Environment(installed, steward_binary, tmp_path, {"main": mariadb})
    dbenv.steward.args.append("--metrics-secure=true")
    dbenv.steward.start()
    try:
        dbenv.create("app", namespace, needle)
        dbenv.create("bad", namespace, needle)
        mariadb.stop()
        dbenv.cluster.apply(dbu.secret("bad", namespace, needle + "-2"))
        wait.until("the failure", lambda: [e for e in state_of(dbenv.steward, on_call)["errors"]
                                           if e["name"] == "bad"])
        text = json.dumps(state_of(dbenv.steward, on_call))
    finally:
        if not mariadb.running():
            mariadb.start()
        dbenv.forget(namespace)
        assert dbenv.steward.stop() == 0
    serving = installed.get("secret", "steward-webhook-server-cert", stw.NAMESPACE)["data"]
    pems = [base64.b64decode(v).decode() for k, v in serving.items() if k.endswith((".crt", ".key"))]
    needles = [needle, mariadb.admin_password, on_call, on_call.split(".")[2],
               base64.b64encode(needle.encode()).decode(), "PRIVATE KEY", "Bearer",
               *(pem[40:80] for pem in pems)]
    assert not [n for n in needles if n in text]
    assert len(text) < 64 * 1024, len(text)
