# SPDX-License-Identifier: Apache-2.0
"""The manifests of the articles that the kinds come from, each as it is printed there, by kubectl on
a real node: it becomes Ready, or says at once why it cannot.

| manifest | verdict |
|---|---|
| app.yaml | Ready: three pods of nginx:latest answer on port 80 |
| myweb.yaml | Ready: the page is served on node port 30100 |
| databaseuser.yaml | SecretResolved=False until its Secret exists, then Ready: the account can log in |
| databaseuser-plain.yaml | refused: the password is not a reference |
| databaseuser-label.yaml | refused by kubectl: metadata.label; Ready with --validate=false |
| etcdcluster.yaml | Stalled: etcd 3.2.13 knows no learners |
| eru.yaml | refused by kubectl: a status of another shape; Ready with --validate=false: disabled |

Only the indentation is restored where an article's page lost it.
"""

import pytest
import yaml

from support import app, databaseuser, etcdcluster, net, paths, registry, wait
from support import eru as erus
from support import steward as stw
from support.cluster import condition, is_ready

pytestmark = [pytest.mark.node,
              pytest.mark.oldest("kubectl, the kubelet's states of containers")]

SEEDS = paths.TOP / "tests" / "data" / "seeds"
AT_ONCE = 30  # seconds
NEWER = "3.5.999"  # a version of etcd that steward accepts, and whose image nothing here has
PASSWORD = "first-Passw0rd-1"


@pytest.fixture(scope="module")
def dbenv(installed, steward_binary, tmp_path_factory, mariadb):
    """A databaseuser.Environment with a default target, the webhook, and a registry with nginx."""
    stw.uninstall_webhooks(installed)
    dbenv = databaseuser.Environment(installed, steward_binary, tmp_path_factory.mktemp("dbenv"),
                                     {"main": mariadb})
    dbenv.write_targets({**mariadb.target("main"), "default": True})
    dbenv.steward.start()
    nginx = registry.Registry(installed, tmp_path_factory.mktemp("registry"),
                              {"library/nginx:latest": "docker.io/library/nginx:1.22"})
    with dbenv.webhook(), nginx.serve():
        dbenv.registry = nginx
        yield dbenv
    assert dbenv.steward.stop() == 0, dbenv.steward.log_tail()


def apply(cluster, name, *options, check=True):
    """kubectl apply of a seed."""
    return cluster.kubectl("apply", *options, "-f", str(SEEDS / name), check=check)


def test_every_article_manifest_is_listed():
    """A manifest that is added gets a row above, and a test."""
    for path in SEEDS.iterdir():
        assert f"| {path.name} |" in __doc__


def test_article_app_runs(dbenv, cluster):
    before = len(dbenv.registry.requests)
    apply(cluster, "app.yaml")
    try:
        ready = app.wait_ready(cluster, "test-app", "default", 120)
        assert ready["status"]["availableReplicas"] == 3
        running = [p for p in cluster.list("pod", "default", "app=test-app")
                   if "deletionTimestamp" not in p["metadata"]]
        assert len(running) == 3
        for pod in running:
            assert pod["spec"]["containers"][0]["image"] == "nginx:latest"
            assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"
            wait.until("its page", lambda ip=pod["status"]["podIP"]: net.http_get(
                f"http://{ip}:80/")[0] == 200, 30)
        assert dbenv.registry.requests[before:], "the image was not pulled"
    finally:
        cluster.delete(app.KIND, "test-app", "default")


def test_article_myweb_runs(dbenv, cluster):
    assert dbenv.steward.running()
    apply(cluster, "myweb.yaml")
    try:
        ready = cluster.wait_for("myweb", "myweb", "default", is_ready, 120)
        assert (ready["status"]["completed"], ready["status"]["nodePort"]) == (True, 30100)
        page = yaml.safe_load((SEEDS / "myweb.yaml").read_text("utf-8"))["spec"]["pageContentHtml"]
        wait.until("the page", lambda: net.http_get("http://127.0.0.1:30100/") == (200, page), 30)
    finally:
        cluster.delete("myweb", "myweb", "default")


def wait_account(dbenv, mariadb, namespace):
    """Until the seed's DatabaseUser says that its Secret is missing, and then, with a Secret, is
    Ready: the account can log in."""
    dbenv.wait_condition("cnhandsomeguy", namespace, "SecretResolved", "SecretNotFound",
                         seconds=AT_ONCE)
    said = condition(dbenv.get("cnhandsomeguy", namespace), "Ready")
    assert said["status"] == "False" and 'Secret "my-secret"' in said["message"]
    dbenv.cluster.apply(databaseuser.secret("my-secret", namespace, PASSWORD, "my-key"))
    dbenv.wait_ready("cnhandsomeguy", namespace)
    assert mariadb.login("cnhandsomeguy", PASSWORD, database="information_schema")


@pytest.mark.parametrize("name,options,wrong", [
    ("databaseuser.yaml", (), ""),
    ("databaseuser-label.yaml", ("--validate=false",), 'unknown field "label"'),
])
def test_article_databaseuser_gets_its_account(dbenv, cluster, mariadb, namespace, name, options, wrong):
    if wrong:
        refused = apply(cluster, name, "-n", namespace, check=False)
        assert refused.returncode != 0
        assert wrong in refused.stderr or 'unknown field "metadata.label"' in refused.stderr
    apply(cluster, name, "-n", namespace, *options)
    try:
        wait_account(dbenv, mariadb, namespace)
    finally:
        dbenv.delete("cnhandsomeguy", namespace)
    assert "cnhandsomeguy@%" not in mariadb.all_accounts() | mariadb.all_marks()


def test_article_databaseuser_with_plain_password_is_refused(dbenv, cluster, namespace):
    """Refused with or without kubectl's own validation."""
    for options in ((), ("--validate=false",)):
        refused = apply(cluster, "databaseuser-plain.yaml", "-n", namespace, *options, check=False)
        assert refused.returncode != 0
        said = ("object",) if options else ("object", "map")  # kubectl 1.20 says map
        assert "spec.password" in refused.stderr, refused.stderr
        assert any(word in refused.stderr for word in said), refused.stderr
        assert "changeit" not in refused.stderr
    assert dbenv.get("cnhandsomeguy", namespace) is None


def test_article_etcdcluster_is_upgraded_and_runs(dbenv, cluster, namespace):
    """etcd 3.2 knows no learners, so that no member could be added safely.  The cluster is Ready in a
    version that has them (tests/e2e/etcdcluster), to which it goes in one step: there is no data."""
    assert dbenv.steward.running()
    apply(cluster, "etcdcluster.yaml", "-n", namespace)
    one = etcdcluster.EtcdCluster(cluster, namespace, "example-etcd-cluster")
    try:
        said = one.wait_condition("Stalled", "True", "InvalidSpec", seconds=AT_ONCE)
        assert 'spec.version: Invalid value: "3.2.13"' in said["message"]
        assert "from 3.4.0 on" in said["message"]
        assert condition(one.get(), "Ready")["status"] == "False"
        one.patch(version=NEWER)
        said = one.wait_condition("Degraded", "True", "ImagePullBackOff", seconds=AT_ONCE)
        assert f"quay.io/coreos/etcd:v{NEWER}" in said["message"]
        assert condition(one.get(), "Stalled").get("status") != "True"
    finally:
        one.delete()


def test_article_etcdcluster_with_missing_image_recovers(dbenv, cluster, namespace):
    """The same in a version that steward accepts, and that no registry here has."""
    assert dbenv.steward.running()
    seed = yaml.safe_load((SEEDS / "etcdcluster.yaml").read_text("utf-8"))
    seed["spec"]["version"] = NEWER
    cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(seed))
    one = etcdcluster.EtcdCluster(cluster, namespace, "example-etcd-cluster")
    try:
        said = one.wait_condition("Degraded", "True", "ImagePullBackOff", seconds=AT_ONCE)
        assert f"quay.io/coreos/etcd:v{NEWER}" in said["message"]
        assert condition(one.get(), "Ready")["status"] == "False"
    finally:
        one.delete()


def test_article_eru_runs(dbenv, cluster):
    """What `kubectl get -o yaml` printed: kubectl refuses its status, unless it does not look."""
    assert dbenv.steward.running()
    cluster.create_namespace("lb6")
    try:
        refused = apply(cluster, "eru.yaml", check=False)
        assert refused.returncode != 0 and "ready" in refused.stderr, refused.stderr
        apply(cluster, "eru.yaml", "--validate=false")
        found = cluster.wait_for(erus.KIND, "opsnatmonitor-v1", "lb6", is_ready, AT_ONCE)
        assert found["status"]["phase"] == "Stoping"
        assert condition(found, "Ready")["reason"] == "Disabled"
    finally:
        cluster.delete(erus.KIND, "opsnatmonitor-v1", "lb6")
        cluster.delete_namespace("lb6")
