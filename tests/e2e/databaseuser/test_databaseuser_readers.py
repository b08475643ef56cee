# SPDX-License-Identifier: Apache-2.0
"""Rotation restarts what reads the connection Secret, and the older credential ends after that."""

import pytest
from support import app, databases, databaseuser as dbu
from support import dblogin, dbreaders, faults
from support import sampled
from support import steward as stw
from support import wait
from support.cluster import condition, is_rolled_out
from support.strangers import LARGE

FIRST, SECOND, THIRD = "first-Passw0rd-1", "second-Passw0rd-2", "third-Passw0rd-3"
SECRET = "app-conn"
# Two logins, and two passwords of one account.
server = databases.each([(databases.PostgreSQL, sampled.newest("POSTGRESQL")),
                         (databases.MySQL, sampled.newest("MYSQL"))])
pytestmark = pytest.mark.usefixtures("pods_stay_pending")


@pytest.fixture(scope="module")
def rotating(installed, steward_binary, tmp_path_factory, server):
    """A steward whose target "main" is the server."""
    yield from dbu.running_dbenv(installed, steward_binary, tmp_path_factory.mktemp("dbenv"), server,
                                 ("--kinds", "DatabaseUser,App"))


@pytest.fixture
def shop(rotating, namespace):
    """A namespace with a kubelet.  Its DatabaseUsers and their accounts are deleted before it is."""
    if not rotating.steward.running():
        rotating.steward.start()
    with dbreaders.Kubelet(rotating.cluster, namespace) as kubelet:
        rotating.kubelet = kubelet
        yield namespace
        rotating.kubelet.hold.clear()
        if not rotating.steward.running():
            rotating.steward.start()
        rotating.forget(namespace)


def create(dbenv, server, shop, overlap=1):
    """An account "app" whose rotation is Auto."""
    rights = [{"database": "shop", "privileges":
               ["CONNECT" if server.engine == "postgresql" else "SELECT"]}]
    return dbenv.create("app", shop, FIRST, grants=rights, connectionSecret={"name": SECRET},
                        rotation={"overlapSeconds": overlap})


def connection(dbenv, shop):
    return dblogin.connection(dbenv.cluster, shop, SECRET)


def rotate(dbenv, shop, password):
    dbenv.cluster.apply(dbu.secret("app", shop, password))
    wait.until("the new password", lambda: (connection(dbenv, shop) or ["", ""])[1] == password, 60)
    return connection(dbenv, shop)


def complete(dbenv, shop, seconds=60):
    """Waits for the end of a rotation to the present password; its steps."""
    version = dbenv.cluster.get("secrets", "app", shop)["metadata"]["resourceVersion"]

    def done(user):
        return user["status"]["secretResourceVersion"] == version and \
            condition(user, "RotationComplete")["reason"] == "Complete"
    user = dbenv.cluster.wait_for(dbu.KIND, "app", shop, done, seconds, "the end of the rotation")
    return user["status"]["lastRotation"]


def run_reader(dbenv, shop, kind="deployment", name="web", **more):
    """A workload whose pods run."""
    dbenv.cluster.apply(dbreaders.reader(kind, name, shop, SECRET, **more))
    if kind != "daemonset":
        wait.until(f"{kind} {name} to run", lambda: (dbenv.cluster.get(kind, name, shop).get(
            "status", {}).get("readyReplicas") or 0) == dbenv.cluster.get(
                kind, name, shop)["spec"]["replicas"], 60)


def pods(dbenv, shop):
    return {p["metadata"]["uid"] for p in dbenv.cluster.list("pods", shop)}


def test_rotation_restarts_readers_once(rotating, server, shop):
    """Those that ask for it, each once a rotation; the older credential ends when they are done."""
    create(rotating, server, shop)
    for kind in dbreaders.BUILD:
        run_reader(rotating, shop, kind, restart_on=f"other, {SECRET}")
    rotating.cluster.apply(dbreaders.reader("deployment", "asks-for-another", shop, "other",
                                            restart_on=f"{SECRET}-2", replicas=0))
    rotating.cluster.apply(dbreaders.reader("deployment", "asks-for-none", shop, "other", replicas=0))
    first, stamps, before = connection(rotating, shop), set(), pods(rotating, shop)
    for password in (SECOND, THIRD):
        new = rotate(rotating, shop, password)
        steps = complete(rotating, shop)
        assert server.login(*new) and not server.login(*first)
        found = {dbreaders.stamp(rotating.cluster, kind, "web", shop) for kind in dbreaders.BUILD}
        assert len(found) == 1 and None not in found and not found & stamps
        assert steps["restarted"] == 3
        assert steps["publishedTime"] <= steps["replacedTime"] <= steps["endTime"]
        after = pods(rotating, shop)
        assert len(after) == 3 and not after & before
        first, before, stamps = new, after, stamps | found
    for kind in dbreaders.BUILD.values():
        rotating.wait_event("app", shop, "Restarted", kind("web", shop)["kind"])
    for name in ("asks-for-another", "asks-for-none"):
        assert dbreaders.stamp(rotating.cluster, "deployment", name, shop) is None


def test_rotation_restarts_no_other_namespace(rotating, server, shop):
    """A tenant creates a Secret's namesake: workloads of another namespace ask for their own."""
    create(rotating, server, shop)
    other = f"{shop}-other"
    rotating.cluster.create_namespace(other)
    try:
        rotating.cluster.apply(dbreaders.reader("deployment", "web", other, SECRET,
                                                restart_on=SECRET, replicas=0))
        rotate(rotating, shop, SECOND)
        complete(rotating, shop)
        assert dbreaders.stamp(rotating.cluster, "deployment", "web", other) is None
        assert not [r for r in stw.requests(rotating.cluster, other)
                    if "/deployments" in r[1] and "labelSelector" not in r[1]]
    finally:
        rotating.cluster.delete_namespace(other)


def test_unreadable_workload_does_not_block_restarts(rotating, server, shop):
    """The rotation waits, because it may read the Secret, and names it."""
    create(rotating, server, shop)
    run_reader(rotating, shop, restart_on=SECRET)
    large = dbreaders.reader("deployment", "large", shop, "other", replicas=0)
    [container] = large["spec"]["template"]["spec"]["containers"]
    container.setdefault("env", []).append({"name": "V", "value": LARGE})
    rotating.cluster.create(large)
    rotate(rotating, shop, SECOND)
    wait.until("the other one to be restarted",
               lambda: dbreaders.stamp(rotating.cluster, "deployment", "web", shop))
    found = rotating.cluster.wait_for(
        dbu.KIND, "app", shop, lambda user: "cannot be read: it has more than " in
        condition(user, "RotationComplete").get("message", ""), 60, "the message about it")
    assert f"Deployment {shop}/large " in condition(found, "RotationComplete")["message"]
    rotating.cluster.delete("deployment", "large", shop)
    complete(rotating, shop)


def test_stuck_rollout_pauses_the_rotation(rotating, server, shop):
    """New pods do not start: both credentials go on working, the condition and an event name the
    workload, and a later password waits.  When the pods start, the rotation ends."""
    create(rotating, server, shop)
    run_reader(rotating, shop, restart_on=SECRET)
    first = connection(rotating, shop)
    rotating.kubelet.hold.set()
    second = rotate(rotating, shop, SECOND)
    found = rotating.wait_condition("app", shop, "RotationComplete", "ReadersNotRestarted")
    assert 'Deployment "web" has not replaced all of its pods yet: see kubectl rollout status ' \
        "deployment/web" in found["message"]
    rotating.wait_event("app", shop, "ReadersNotRestarted", 'Deployment "web"')
    rotating.cluster.apply(dbu.secret("app", shop, THIRD))
    rotating.poke("app", shop)
    rotating.wait_condition("app", shop, "Ready", "Succeeded")
    assert connection(rotating, shop) == second
    assert server.login(*first) and server.login(*second)
    assert "endTime" not in rotating.get("app", shop)["status"]["lastRotation"]
    rotating.kubelet.hold.clear()
    wait.until("the third password", lambda: connection(rotating, shop)[1] == THIRD, 60)
    complete(rotating, shop)
    assert server.login(*connection(rotating, shop))
    assert not server.login(*second) and not server.login(*first)


def test_pod_with_old_credential_delays_its_end(rotating, server, shop):
    """A Deployment that does not ask for a restart still has the older credential."""
    create(rotating, server, shop)
    run_reader(rotating, shop)
    first = connection(rotating, shop)
    wait.until("a later second", lambda: rotating.cluster.list("pods", shop)[0]["metadata"][
        "creationTimestamp"] < _time(rotating), every=0.2)
    second = rotate(rotating, shop, SECOND)
    found = rotating.wait_condition("app", shop, "RotationComplete", "ReadersNotRestarted")
    pod = rotating.cluster.list("pods", shop)[0]["metadata"]["name"]
    assert f'Pod "{pod}" of ReplicaSet "web-' in found["message"]
    assert server.login(*first) and server.login(*second)
    assert dbreaders.stamp(rotating.cluster, "deployment", "web", shop) is None
    rotating.cluster.delete("pod", pod, shop)
    steps = complete(rotating, shop)
    assert steps["restarted"] == 0 and not server.login(*first)


def _time(dbenv):
    """The API server's clock, to the second."""
    name = "clock"
    dbenv.cluster.delete("configmap", name, "default", wait_gone=True)
    dbenv.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap",
                         "metadata": {"name": name, "namespace": "default"}})
    return dbenv.cluster.get("configmap", name, "default")["metadata"]["creationTimestamp"]


def test_app_with_broken_image_keeps_both_credentials(rotating, server, shop):
    """An App restarts by itself when the Secret changes; its new pods do not start: both credentials
    go on working.  With an image that starts, the rotation ends."""
    create(rotating, server, shop)
    rotating.cluster.apply(app.manifest(
        "shop", shop, replicas=1, restartOnChange={"enabled": True},
        config={"databaseUrlSecretRef": {"name": SECRET, "key": "uri"}}))
    app.wait_ready(rotating.cluster, "shop", shop)
    first = connection(rotating, shop)
    wait.until("a later second", lambda: rotating.cluster.list("pods", shop)[0]["metadata"][
        "creationTimestamp"] < _time(rotating), every=0.2)
    rotating.kubelet.hold.set()
    second = rotate(rotating, shop, SECOND)
    found = rotating.wait_condition("app", shop, "RotationComplete", "ReadersNotRestarted")
    assert 'of ReplicaSet "shop-' in found["message"]
    assert server.login(*first) and server.login(*second)
    rotating.kubelet.hold.clear()
    rotating.cluster.patch(app.KIND, "shop", shop, {"spec": {"image": "registry.invalid/mended:2.0"}})
    complete(rotating, shop)
    assert server.login(*second) and not server.login(*first)


def test_rotation_during_scaling_and_update_fails_no_login(rotating, server, shop):
    """A rotation, an autoscaler's number of pods and a new podTemplate at once: nothing is lost, and
    no login fails."""
    create(rotating, server, shop)
    rotating.cluster.apply(app.manifest(
        "shop", shop, replicas=2, restartOnChange={"enabled": True},
        autoscaling={"enabled": True, "minReplicas": 2, "maxReplicas": 9},
        podTemplate=_marked("first"),
        config={"databaseUrlSecretRef": {"name": SECRET, "key": "uri"}}))
    app.wait_ready(rotating.cluster, "shop", shop)
    first = connection(rotating, shop)
    wait.until("a later second", lambda: max(
        p["metadata"]["creationTimestamp"] for p in rotating.cluster.list("pods", shop))
        < _time(rotating), every=0.2)
    with dblogin.Applications(rotating.cluster, server, shop, SECRET) as applications:
        rotating.cluster.apply(dbu.secret("app", shop, SECOND))
        rotating.cluster.patch("deployment", "shop", shop, {"spec": {"replicas": 5}},
                               subresource="scale")
        rotating.cluster.patch(app.KIND, "shop", shop, {"spec": {"podTemplate": _marked("second")}})
        complete(rotating, shop, 120)
        found = app.wait_ready(rotating.cluster, "shop", shop)
    assert applications.failed == [] and applications.logins > 20
    second = connection(rotating, shop)
    assert second[1] == SECOND and server.login(*second) and not server.login(*first)
    live = app.deployment(rotating.cluster, "shop", shop)["spec"]
    assert live["replicas"] == 5 and found["status"]["readyReplicas"] == 5
    assert live["template"]["metadata"]["annotations"]["example.com/mark"] == "second"
    assert "repairs" not in found["status"]


def _marked(value):
    """A podTemplate with this annotation."""
    return {"metadata": {"annotations": {"example.com/mark": value}}}


@pytest.fixture
def limited(rotating, shop, steward_binary, tmp_path):
    """A function that starts a steward whose account lacks verbs on workloads and pods, instead of
    the one of the dbenv; it returns the account."""
    account = dbreaders.Account(rotating.cluster, steward_binary, "limited-steward")
    one = None

    def start(*verbs):
        nonlocal one
        account.may_not(*verbs)
        rotating.wait_ready("app", shop)
        assert rotating.steward.stop() == 0, rotating.steward.log_tail()
        one = stw.Steward(steward_binary, rotating.cluster, account.kubeconfig(tmp_path), tmp_path,
                          ["--config", rotating.config, "--kinds", "DatabaseUser"], name="limited")
        one.start()
        return account
    yield start
    assert one.stop() == 0, one.log_tail()
    account.close()
    rotating.steward.start()


def test_refused_restart_pauses_the_rotation(rotating, server, shop, limited):
    """The API server refuses the changes: the condition says so until it takes them."""
    create(rotating, server, shop)
    run_reader(rotating, shop, restart_on=SECRET)
    first = connection(rotating, shop)
    account = limited("patch")
    second = rotate(rotating, shop, SECOND)
    found = rotating.wait_condition("app", shop, "RotationComplete", "ReadersNotRestarted")
    assert 'Deployment "web" cannot be restarted: ' in found["message"]
    assert server.login(*first) and server.login(*second)
    account.may_not()
    complete(rotating, shop)
    assert dbreaders.stamp(rotating.cluster, "deployment", "web", shop)
    assert not server.login(*first)


def test_missing_restart_rights_do_not_stop_rotation(rotating, server, shop, limited):
    """A steward without the new rights becomes ready and rotates as before, and says what it lacks."""
    create(rotating, server, shop, 5)
    run_reader(rotating, shop, restart_on=SECRET)
    first = connection(rotating, shop)
    limited("list", "patch")
    second = rotate(rotating, shop, SECOND)
    found = rotating.wait_condition("app", shop, "RotationComplete", "Overlap")
    assert "may not list workloads and pods" in found["message"]
    steps = complete(rotating, shop)
    assert server.login(*second) and not server.login(*first)
    assert "restarted" not in steps and "replacedTime" not in steps
    assert dbreaders.stamp(rotating.cluster, "deployment", "web", shop) is None


def test_kills_after_each_write_restart_readers_once(rotating, server, shop):
    """steward dies after each of its writes, also of a restart: each workload is restarted once."""
    create(rotating, server, shop, 3)
    run_reader(rotating, shop, name="web", restart_on=SECRET)
    run_reader(rotating, shop, "statefulset", name="db", restart_on=SECRET)
    first = connection(rotating, shop)
    generation = rotating.cluster.get("deployment", "web", shop)["metadata"]["generation"]
    rotating.steward.kill()
    rotating.cluster.apply(dbu.secret("app", shop, SECOND))

    def done():
        status = rotating.get("app", shop)["status"]
        return connection(rotating, shop)[1] == SECOND and "endTime" in status.get(
            "lastRotation", {}) and not server.login(*first)
    deaths = faults.Dying(faults.OfScene(rotating)).until(done).deaths
    assert {"secret", "restart", "status"} <= set(deaths), deaths
    assert deaths.count("restart") == 2, deaths
    web = rotating.cluster.get("deployment", "web", shop)
    assert web["metadata"]["generation"] == generation + 1 and is_rolled_out(web)
    assert server.login(*connection(rotating, shop))
    rotating.steward.start()
    assert condition(rotating.wait_ready("app", shop), "RotationComplete")["reason"] == "Complete"
