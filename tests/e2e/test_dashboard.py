# SPDX-License-Identifier: Apache-2.0
"""Every expression of the dashboard and of the alerts, evaluated by a real Prometheus that scrapes
a steward as configured in config/prometheus."""

import base64
import json
import re

import pytest
import yaml

from support import databaseuser, etcdcluster, myweb, paths, prometheus, wait
from support import steward as stw
from support.cluster import condition

DASHBOARD = json.loads((paths.TOP / "config" / "grafana" / "dashboard.json").read_text("utf-8"))
MONITOR = yaml.safe_load((paths.TOP / "config" / "prometheus" / "monitor.yaml").read_text("utf-8"))
RULES = yaml.safe_load((paths.TOP / "config" / "prometheus" / "rules.yaml").read_text("utf-8"))
# A verified backup needs an etcd in pods: tests/e2e/etcdbackup/test_etcdbackup_node.py checks the series there.
# Orphans need a database server: tests/e2e/databaseuser/test_databaseuser_bad_days.py checks the series there.
# The margin of a quorum needs an etcd that answers: tests/unit/kinds/etcdcluster/test_runtime.c.
NEEDS_MORE = ("steward_etcd_backup_last_verified_timestamp_seconds", "steward_database_orphans",
              "steward_etcd_quorum_margin")
SAMPLES = paths.TOP / "config" / "samples"


def panels(of=None):
    for panel in (of or DASHBOARD)["panels"]:
        yield panel
        yield from panels(panel) if panel.get("panels") else ()


def as_sent(expression):
    """With all variables, as Grafana sends it."""
    return expression.replace("$__rate_interval", "15s").replace("$kind", ".*").replace(
        "$namespace", ".*")


def expressions():
    """(where, expression) of the dashboard; of alerts, the left operand."""
    for panel in panels():
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", as_sent(target["expr"])
    for rule in (r for group in RULES["spec"]["groups"] for r in group["rules"]):
        if "expr" in rule:
            value = re.sub(r"^absent\((.*)\)$", r"\1", rule["expr"].strip())
            yield f"alert {rule['alert']}", re.sub(r"\s(<|>|!=|==)\s[-\d. *]+$", "", value)


def scrape(cluster, port, folder, account):
    """The scrape configuration for Prometheus, from the endpoint of the ServiceMonitor."""
    endpoint, = MONITOR["spec"]["endpoints"]
    reference = endpoint["tlsConfig"]["ca"]["secret"]
    secret = cluster.get("secret", reference["name"], stw.NAMESPACE)
    (folder / "ca.crt").write_bytes(base64.b64decode(secret["data"][reference["key"]]))
    config = json.loads(cluster.kubeconfig_of(account, folder / "reader").read_text("utf-8"))
    (folder / "token").write_text(config["users"][0]["user"]["token"], "utf-8")
    return {"scheme": endpoint["scheme"], "metrics_path": endpoint["path"],
            "honor_labels": endpoint["honorLabels"],
            "authorization": {"credentials_file": str(folder / "token")},
            "tls_config": {"ca_file": str(folder / "ca.crt"),
                           "server_name": endpoint["tlsConfig"]["serverName"]},
            "static_configs": [{"targets": [f"127.0.0.1:{port}"],
                                "labels": {"namespace": stw.NAMESPACE, "pod": "steward-0"}}]}


@pytest.fixture(scope="module")
def asked(installed, steward_binary, tmp_path_factory):
    """A prometheus.Prometheus that has scraped a steward with objects of all kinds for a while."""
    if not prometheus.program():
        pytest.skip("prometheus is not installed (scripts/bootstrap test)")
    folder = tmp_path_factory.mktemp("live")
    installed.kubectl("apply", "-k", str(paths.TOP / "config" / "rbac"))
    config = folder / "steward.yaml"
    config.write_text(yaml.safe_dump({"targets": [{
        "name": "sample", "engine": "mariadb", "host": "127.0.0.1", "port": 1,
        "admin": {"user": "steward", "passwordSecret": {"name": "orders-admin", "key": "password"}},
        "allowedDatabases": ["sample"], "tls": {"mode": "Disable"}}]}), "utf-8")
    installed.apply(databaseuser.secret("orders-admin", stw.NAMESPACE, "x"))
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward, folder,
                      ["--leader-elect", "--metrics-secure=true", "--config", config])
    stw.install_webhooks(installed, steward_binary, one.webhook_port)
    server = None
    try:
        one.start().wait_webhook()
        for command in (("namespace", "dashboard"),
                        ("serviceaccount", "reader", "-n", "dashboard"),
                        ("clusterrolebinding", "test-dashboard-reader",
                         "--clusterrole=steward-metrics-reader", "--serviceaccount=dashboard:reader")):
            installed.kubectl("create", *command)
        server = prometheus.Prometheus(folder, scrape(installed, one.metrics_port, folder,
                                                      "dashboard/reader")).start()
        busy(installed)
        yield server
    finally:
        if server:
            server.stop()
        stw.uninstall_webhooks(installed)
        # Its server never existed: there is no account to drop.
        for user in installed.list(databaseuser.KIND, "dashboard"):
            installed.annotate(databaseuser.KIND, user["metadata"]["name"], "dashboard",
                               {"steward.dev/force-delete": "true"})
        installed.delete_all(databaseuser.KIND, "dashboard", seconds=60)
        installed.delete("clusterrolebinding", "test-dashboard-reader")
        installed.delete_namespace("dashboard")
        assert one.stop() == 0, one.log_tail()


def busy(cluster):
    """Creates an object of each kind, one that is refused, and an etcd with certificates."""
    cluster.kubectl("apply", "-n", "dashboard", "-f", str(SAMPLES))
    etcdcluster.EtcdCluster(cluster, "dashboard", "safe").apply(
        size=1, TLS={"auto": {"provider": "Steward"}})
    cluster.apply(myweb.manifest("bad", "dashboard", nodePortNumber=1), check=False)
    cluster.wait_for("myweb", "myweb-sample", "dashboard", lambda o: condition(o, "Ready"))
    cluster.wait_for("etcdcluster", "etcdcluster-sample", "dashboard", lambda o: condition(o, "Ready"))
    cluster.wait_for(databaseuser.KIND, "databaseuser-sample", "dashboard", lambda o: condition(o, "Ready"))


@pytest.mark.parametrize("where, expression", list(expressions()))
def test_expression_returns_a_series(asked, where, expression):
    if any(name in expression for name in NEEDS_MORE):
        assert asked.query(expression.removesuffix(" or vector(0)")) == []  # the expression itself is right
        return
    wait.until(f"{where}: a series of {expression}", lambda: asked.query(expression), 30, every=0.5)


def test_unknown_metric_returns_no_series(asked):
    """Proves that the test above can fail."""
    assert asked.query("steward_no_such_metric") == []
    with pytest.raises(ValueError, match="parse error"):
        asked.query("sum(")


@pytest.mark.parametrize("name, file", zip(NEEDS_MORE, (
    "etcdbackup/runtime.c", "databaseuser/end/sweep.c", "etcdcluster/runtime.c")))
def test_skipped_metrics_exist_in_the_source(name, file):
    """The metric that is skipped above exists in the source."""
    assert f'"{name.removeprefix("steward")}"' in (paths.TOP / "kinds" / file).read_text("utf-8")


def test_table_lists_objects_that_are_not_ready(asked):
    """By the table of the dashboard, in their own namespace and not in that of steward."""
    [expression] = [t["expr"] for p in panels() if p["type"] == "table" for t in p["targets"]]
    chosen = expression.replace("$kind", "DatabaseUser").replace("$namespace", "dashboard")
    found = wait.until("the DatabaseUser without a server", lambda: asked.query(chosen), 30, every=0.5)
    assert {"kind": "DatabaseUser", "namespace": "dashboard", "name": "databaseuser-sample"}.items() <= \
        found[0][0].items() and found[0][0]["reason"]


def test_variables_offer_the_kinds_and_namespaces_that_there_are(asked):
    """By the queries that Grafana makes of them."""
    found = {v["name"]: v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"}
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", found["kind"]["query"]["query"]).groups()
    kinds = {series[label] for series, _ in asked.query(f"count by ({label}) ({metric})")}
    assert kinds == {"App", "DatabaseUser", "Eru", "EtcdBackup", "EtcdCluster", "EtcdRestore", "MyWeb"}
    expression, = re.fullmatch(r"query_result\((.*)\)", found["namespace"]["query"]["query"]).groups()
    # Grafana applies the expression to each series as text.
    regex = re.compile(found["namespace"]["regex"].strip("/"))
    series = wait.until("a namespace", lambda: asked.query(expression), 30, every=0.5)
    texts = ["{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" for labels, _ in series]
    assert "dashboard" in [regex.search(text)[1] for text in texts]


def test_each_panel_has_a_description_of_its_own():
    """One that was copied with its panel would describe another one."""
    told = [p.get("description", "") for p in panels() if p["type"] != "row"]
    assert len(told) > 30 and all(told)
    assert len(told) == len(set(told)), sorted(told)


def test_first_row_shows_healthy_values(asked):
    first = {p["title"]: p["targets"][0]["expr"] for p in panels() if p["type"] == "stat"}
    for title, value in (("Replicas", 1), ("Leaders", 1)):
        assert asked.query(first[title])[0][1] == value
    assert asked.query(first["Certificate lives for"])[0][1] > 80 * 86400


def test_legends_use_existing_labels(asked):
    for panel in panels():
        for target in panel.get("targets", []):
            labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            found = asked.query(as_sent(target["expr"]))
            for series, _ in found:
                assert labels <= set(series), (panel["title"], target["expr"], series)


def test_panels_have_unique_names_and_places():
    ids = [p["id"] for p in panels()]
    assert len(ids) == len(set(ids))
    taken = set()
    for at in (p["gridPos"] for p in panels()):
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        taken |= cells
