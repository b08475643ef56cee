# SPDX-License-Identifier: Apache-2.0
"""`steward top` through the API server: its rights, what the replicas get to see, and what they show.

The pods have no node: their addresses are of this machine, where steward and a hostile double run."""

import base64
import contextlib
import json
import socket

import pytest

from support import cluster as k8s
from support import kustomize, myweb, net, served, wait, webhook
from support import steward as stw
from support.app import set_status

ROLE = "steward-on-call"
# The namespace may enforce the standard: another test may have installed steward before.
RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.fixture(scope="module")
def address():
    """An address of this machine to which the API server's proxy connects: not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("10.255.255.255", 1))  # sends nothing
            found = probe.getsockname()[0]
            if not found.startswith(("127.", "169.254.", "0.")):
                return found
    pytest.skip("this machine has only loopback addresses")


@pytest.fixture(scope="module")
def on_call(installed, tmp_path_factory):
    """The kubeconfig of an engineer with the rights of config/on-call."""
    installed.kubectl("apply", "-k", str(kustomize.CONFIG / "rbac"))
    kustomize.apply(installed, kustomize.CONFIG / "on-call")
    installed.create_namespace("on-call")
    installed.create_account("on-call/jane")
    bind(installed)
    yield installed.kubeconfig_of("on-call/jane", tmp_path_factory.mktemp("jane") / "kubeconfig")
    installed.delete("rolebinding", ROLE, stw.NAMESPACE)
    kustomize.delete(installed, kustomize.CONFIG / "on-call")
    installed.delete_namespace("on-call")


def bind(cluster, role=ROLE):
    """Gives the engineer this Role."""
    cluster.kubectl("-n", stw.NAMESPACE, "create", "rolebinding", ROLE, f"--role={role}",
                    "--serviceaccount=on-call:jane")


@pytest.fixture
def make_pod(installed, address):
    """make_pod(name, port): a pod whose metrics are at this port of this machine."""
    made = []

    def make(name, port, phase="Running", label="steward", port_name="metrics"):
        installed.create({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": stw.NAMESPACE,
                         "labels": {"app.kubernetes.io/name": label}},
            "spec": {"nodeName": "nowhere", "securityContext": RESTRICTED_POD, "containers": [
                {"name": "manager", "image": "none", "securityContext": RESTRICTED,
                 "ports": [{"name": port_name, "containerPort": port}]}]}})
        made.append(name)
        set_status(installed, installed.get("pod", name, stw.NAMESPACE), phase=phase,
                   podIP=address, podIPs=[{"ip": address}])
    yield make
    for name in made:
        installed.delete("pod", name, stw.NAMESPACE, grace_seconds=0)


@pytest.fixture
def top(steward_binary, on_call):
    """top(*arguments): (exit status, lines, standard error), with the engineer's rights."""
    def call(*arguments, kubeconfig=on_call):
        done = k8s.run([steward_binary, "top", "--once", "--kubeconfig", kubeconfig, *arguments],
                       check=False)
        assert all(" " <= c <= "~" or c == "\n" for c in done.stdout + done.stderr)
        return done.returncode, done.stdout.splitlines(), done.stderr
    return call


def row(lines, *words):
    """The only line with all of these words, as a list."""
    [found] = [line.split() for line in lines if set(words) <= set(line.split())]
    return found


@pytest.mark.oldest("TokenRequest, pods/proxy")
def test_top_shows_replicas_and_objects(top, run_steward, installed, make_pod, namespace):
    port = net.free_port()
    one = run_steward("--leader-elect", "--metrics-secure=true", "--metrics-bind-address",
                      f"0.0.0.0:{port}")
    installed.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {},
                     "metadata": {"name": "taken", "namespace": namespace}})
    installed.apply(myweb.manifest("taken", namespace))
    installed.apply(myweb.manifest("good", namespace))
    installed.apply(myweb.manifest("waits", namespace, replicas=1))
    make_pod("replica-a", port)
    make_pod("replica-dead", net.free_port())
    make_pod("not-yet", port, phase="Pending")
    make_pod("other", port, label="other")
    make_pod("no-metrics", port, port_name="http")

    def stalled():
        status, lines, error = top()
        assert status == 1 and error == "", (lines, error)  # one of the replicas is dead
        known = [line for line in lines if f"{namespace}/taken" in line]
        # An average needs a second.
        return [lines] if known and row(lines, "MyWeb", "of", "4")[-2] != "-" else None
    [lines] = wait.until("the object in trouble", stalled)
    assert row(lines, "replica-a")[4] == "leader" and row(lines, "replica-a")[-1] == "ok"
    assert "cannot be read: " in next(line for line in lines if "replica-dead" in line)
    assert not [line for line in lines if "not-yet" in line or "other" in line or "no-metrics" in line]
    trouble = row(lines, f"{namespace}/taken")
    assert trouble[1:5] == ["MyWeb", f"{namespace}/taken", "Stalled", "NameConflict"]
    assert trouble[5][-1] in "smh" and trouble[6][-1] in "smh"  # since, next run
    assert row(lines, f"{namespace}/waits")[3] == "Reconciling"
    assert not [line for line in lines if f"{namespace}/good" in line]
    queue = row(lines, "MyWeb", "of", "4")
    assert queue[5:7] == ["of", "4"] and float(queue[-2]) > 0
    assert int(row(lines, "mywebs.operator.k8s-summit.org")[2]) >= 2
    assert one.running()


class _Spy(served.Handler):
    """Records what it is sent, and answers with terminal escapes."""

    def do_GET(self):
        """Any path."""
        self.server.seen.append((self.path, dict(self.headers)))
        body = json.dumps({"reconciles": True, "started": "\x1b[2J", "build": {"version": "\u009b5m"}, "errors": [
            {"kind": "MyWeb", "namespace": "shop", "name": "\x1b]0;owned\x07", "error": "\r\n\x1bc"}]})
        self.reply(body=body.encode())


@pytest.fixture
def spy(address, tmp_path):
    """An HTTPS server of a tenant that can start pods in steward's namespace."""
    with served.Served(_Spy, address=address, pair=webhook.make_pair(tmp_path / "spy")) as server:
        server.seen = []
        yield server


def claims(token):
    """The payload of a JWT."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


@pytest.mark.oldest("the API server's proxy removes Authorization")
def test_replica_receives_no_credentials_of_the_user(top, on_call, make_pod, spy):
    make_pod("spy", spy.server_address[1])
    status, lines, error = top()
    assert status == 0 and error == ""
    line = next(line for line in lines if "shop/" in line)
    assert r"shop/\x1b]0;owned\x07" in line and r"\r\n\x1bc" in line
    assert [path for path, _ in spy.seen] == ["/debug/state", "/metrics"]
    with open(on_call, encoding="utf-8") as file:
        own = json.load(file)["users"][0]["user"]["token"]
    for _, headers in spy.seen:
        assert own not in json.dumps(headers) and "Authorization" not in headers
        token = claims(headers["X-Proxied-Authorization"].removeprefix("Bearer "))
        assert token["sub"] == f"system:serviceaccount:{stw.NAMESPACE}:steward-on-call"
        assert token["exp"] - token["iat"] <= 660


@pytest.mark.oldest("the texts of a 403")
@pytest.mark.parametrize("resource", ["pods", "pods/proxy", "serviceaccounts/token"])
def test_missing_right_is_named(top, installed, make_pod, spy, resource):
    role = installed.get("role", ROLE, stw.NAMESPACE)
    rules = [rule for rule in role["rules"] if rule["resources"] != [resource]]
    assert len(rules) == 2
    make_pod("spy", spy.server_address[1])
    installed.patch("role", ROLE, stw.NAMESPACE, {"rules": rules})
    try:
        def refused():
            status, lines, error = top()
            return error if (status, lines) == (2, []) else None
        error = wait.until("the right to be gone", refused)
    finally:
        installed.patch("role", ROLE, stw.NAMESPACE, {"rules": role["rules"]})
    assert f'cannot {"list" if resource == "pods" else "get" if resource == "pods/proxy" else "create"}' in error
    assert f'resource "{resource}"' in error and "on-call:jane" in error
    assert "which the Role steward-on-call of config/on-call has" in error
    wait.until("the right to be back", lambda: top()[0] == 0)


def test_missing_replicas_or_account_are_an_error(top, installed, make_pod, spy):
    status, lines, error = top()
    assert (status, lines) == (2, [])
    assert "no pod in namespace steward-system runs" in error
    assert "label app.kubernetes.io/name=steward" in error
    make_pod("spy", spy.server_address[1])
    status, lines, error = top("--service-account", "nobody", kubeconfig=installed.kubeconfig)
    assert (status, lines) == (2, [])
    assert "config/on-call creates it: a token of ServiceAccount steward-system/nobody" in error
    assert spy.seen == []
