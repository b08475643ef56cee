# SPDX-License-Identifier: Apache-2.0
"""`steward doctor` on a healthy installation, and on ones with one fault each."""

import base64
import json
import os
import shlex
import socket
import subprocess
import time

import pytest
import yaml
from support import clock as clocks
from support import cluster as k8s
from support import databaseuser, dbserver, myweb, paths, readme, wait
from support import steward as stw

DEPLOYMENT = "steward-controller-manager"


@pytest.fixture(scope="module")
def leader(installed, steward_binary, tmp_path_factory):
    """A steward as a process beside the cluster, which leads."""
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("steward"), ["--leader-elect"])
    stw.install_webhooks(installed, steward_binary, one.webhook_port)
    one.start()
    wait.until("it to lead", lambda: one.metric("leader_election_master_status") == 1, 40)
    yield one
    stw.uninstall_webhooks(installed)
    if one.running():
        assert one.stop() == 0, one.log_tail()


@pytest.fixture(scope="module")
def well(installed, leader):
    """A healthy installation, except that there is no Deployment."""
    assert leader.running()
    installed.apply({"apiVersion": "v1", "kind": "ConfigMap",
                     "metadata": {"name": "steward-config", "namespace": stw.NAMESPACE},
                     "data": {"steward.yaml": "# nothing\n"}})
    yield installed
    installed.delete("configmap", "steward-config", stw.NAMESPACE)


@pytest.fixture
def doctor(well, steward_binary):
    """doctor(*arguments): (exit status, {check: (verdict, seen, advice)}), by default with the
    rights of an administrator.  Checks that the output contains no secret."""
    def call(*arguments, kubeconfig=None, env=None):
        result = k8s.run([steward_binary, "doctor", "-o", "json", "--kubeconfig",
                          kubeconfig or well.kubeconfig, *arguments], check=False, env=env)
        secret = well.get("secret", "steward-webhook-server-cert", stw.NAMESPACE)
        for name, value in (secret or {"data": {}})["data"].items():
            assert not value or value[:200] not in result.stdout + result.stderr, name
        assert "PRIVATE" not in result.stdout + result.stderr
        checks = {c["check"]: (c["verdict"], c["seen"], c.get("advice"))
                  for c in json.loads(result.stdout)["checks"]}
        return result.returncode, checks
    call.binary = steward_binary
    return call


def run_advice(cluster, binary, advice):
    """Runs the command of an advice literally."""
    assert advice.startswith("steward "), advice
    result = subprocess.run(["bash", "-c", advice.replace("steward ", shlex.quote(str(binary)) + " ",
                                                          1)],
                            capture_output=True, text=True, timeout=60, check=False,
                            env={**os.environ, "KUBECONFIG": cluster.kubeconfig})
    assert result.returncode == 0, result.stderr


@pytest.fixture
def knows_rules(well):
    """Whether the API server can apply the rules of `print crds --rules`."""
    return well.minor() >= 29


@pytest.mark.oldest("discovery, API versions")
def test_healthy_installation_passes(doctor, knows_rules):
    status, checks = doctor()
    assert status == 0, checks
    rules = checks.pop("CRD rules", None)
    assert (rules is not None) == knows_rules
    assert set(checks) == {
        "API server", "clock", "CRDs", "Deployment", "certificate", "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration", "rights", "leader", "objects", "database targets",
        "features"}
    assert {c for c, (verdict, _, _) in checks.items() if verdict != "ok"} == {"Deployment"}
    assert checks["Deployment"][:2] == ("warn", f"{stw.NAMESPACE}/{DEPLOYMENT} is not there")
    assert "has all " in checks["rights"][1]


def test_text_output_shows_checks_and_advice(well, steward_binary):
    result = k8s.run([steward_binary, "doctor", "--kubeconfig", well.kubeconfig], check=False)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("ok    API server: https://127.0.0.1:")
    assert "warn  Deployment: steward-system/steward-controller-manager is not there" in lines
    assert "      -> If steward runs nowhere else: kubectl apply -k config/default" in lines
    looks = len([line for line in lines if line.startswith("warn  ")])
    assert lines[-1] == f"11 ok, {looks} to look at, 0 failed, 0 not checked"


@pytest.mark.oldest("validation rules in CRDs")
def test_plain_crds_on_new_server_are_reported(doctor, well, steward_binary, knows_rules):
    """The plain CRDs of `print crds` suit every server; a newer one could do more."""
    try:
        status, checks = doctor()
        assert status == 0 and checks["CRDs"][0] == "ok"
        if not knows_rules:
            assert "CRD rules" not in checks
            return
        verdict, seen, advice = checks["CRD rules"]
        assert (verdict, advice) == ("warn", "steward print crds --rules | kubectl apply -f -")
        assert seen.startswith("7 of 7 CRDs lack the validation rules"), seen
        run_advice(well, steward_binary, advice)
        assert doctor()[1]["CRD rules"][0] == "ok"
        assert doctor()[1]["CRDs"][0] == "ok"
    finally:
        well.apply(k8s.run([steward_binary, "print", "crds"]).stdout)
        wait.until("the plain CRDs", lambda: not knows_rules
                   or doctor()[1]["CRD rules"][0] == "warn")


@pytest.mark.oldest("versions of kinds")
def test_crd_of_another_version_is_reported(doctor, well, steward_binary):
    name = "erus.mtsre.meitu.com"
    schema = "/spec/versions/0/schema/openAPIV3Schema/properties"
    well.patch("crd", name, None,
               [{"op": "add", "path": f"{schema}/spec/properties/newer", "value": {"type": "string"}}])
    try:
        status, checks = doctor()
        assert status == 0
        verdict, seen, advice = checks["CRD"]
        assert verdict == "warn"
        assert f"{name} differs from what this program" in seen
        assert "schema.openAPIV3Schema.properties.spec.properties" in seen
        # "apply" does not remove fields that another client added; "replace" does.
        run_advice(well, steward_binary, advice.replace("apply", "replace"))
        assert "CRD" not in doctor()[1]
    finally:
        well.apply(k8s.run([steward_binary, "print", "crds"]).stdout)


@pytest.mark.oldest("rights")
def test_missing_binding_is_reported(doctor, well, steward_binary):
    well.delete("clusterrolebinding", "steward-manager-rolebinding")
    try:
        status, checks = doctor()
        verdict, seen, advice = checks["rights"]
        assert (status, verdict) == (1, "fail")
        assert f"{stw.ACCOUNT} may not " in seen and " more" in seen
        run_advice(well, steward_binary, advice)
        wait.until("the rights to be back", lambda: doctor()[0] == 0)
    finally:
        stw.install(well, steward_binary)


@pytest.mark.oldest("rights")
def test_missing_daemonset_right_is_reported(doctor, well, steward_binary, tmp_path):
    """A new steward under the manifests of a version that did not watch DaemonSets."""
    role = well.get("clusterrole", "steward-manager-role")
    for rule in role["rules"]:
        rule["resources"] = [r for r in rule["resources"] if r != "daemonsets"]
    role["rules"] = [rule for rule in role["rules"] if rule["resources"]]
    well.replace(role)
    one = stw.Steward(steward_binary, well, well.kubeconfig_steward, tmp_path)
    try:
        verdict, seen, advice = doctor()[1]["rights"]
        missing = seen.partition(" may not ")[2].split(", ")
        assert verdict == "fail"
        assert sorted(missing) == [f"{verb} daemonsets" for verb in ("get", "list", "patch", "watch")]
        one.start(ready=False)
        text = wait.until("it to report the right", lambda: next(
            (line for line in one.readyz()[1].splitlines() if "lacks the rights" in line), None))
        assert text == ("[-]caches failed: the account lacks the rights list and watch on "
                        f"daemonsets.apps; to grant them: {advice}")
        entries = [e for e in one.log() if e["msg"].startswith("not ready: rights are missing")]
        assert len(entries) == 1 and entries[0]["level"] == "error", entries
        assert advice in entries[0]["missing"] and "daemonsets" in entries[0]["error"]
        assert one.running() and one.readyz()[0] == 500
        run_advice(well, steward_binary, advice)
        one.wait_ready()
        assert doctor()[1]["rights"][0] == "ok"
    finally:
        if one.running():
            assert one.stop() == 0, one.log_tail()
        stw.install(well, steward_binary)


@pytest.mark.oldest("rights in single namespaces")
def test_cluster_rights_suffice_for_single_namespaces(doctor, namespace):
    """Cluster-wide rights suffice for single namespaces."""
    _, checks = doctor("--namespaces", f"default,{namespace}")
    assert checks["rights"][0] == "ok"


def test_unprivileged_account_sees_what_is_not_checked(doctor, well, namespace, tmp_path):
    well.create_account(f"{namespace}/nobody")
    kubeconfig = well.kubeconfig_of(f"{namespace}/nobody", tmp_path / "kubeconfig")
    status, checks = doctor(kubeconfig=kubeconfig)
    assert status == 2  # a pipeline must not take it for a healthy installation
    assert checks["API server"][0] == "ok"
    verdict, seen, advice = checks["not checked"]
    assert (verdict, seen[:26]) == ("warn", "this account may not read ")
    what = seen[26:seen.index("; the first refusal: ")].split(", ")
    assert {"Deployment", "CRDs", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
            "rights"} <= set(what) and len(what) == len(set(what))
    assert f"{namespace}:nobody" in seen
    assert not [c for c, (_, about, _) in checks.items() if "cannot be read" in about]
    assert advice == "Run this with the rights of an administrator of the cluster."
    began = time.monotonic()
    said = k8s.run([doctor.binary, "doctor", "--wait=1m", "--kubeconfig", kubeconfig], check=False)
    assert said.returncode == 2 and time.monotonic() - began < 30  # no right comes by waiting
    assert said.stdout.splitlines()[-1].endswith(f" 0 failed, {len(what)} not checked")


# What `doctor` reads besides the lists of objects.
PARTS = [(["apps"], ["deployments"], ["get"]), (["apiextensions.k8s.io"], ["customresourcedefinitions"], ["get"]),
         (["admissionregistration.k8s.io"],
          ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], ["get"]),
         (["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
         (["coordination.k8s.io"], ["leases"], ["get"]), ([""], ["secrets", "services", "endpoints"], ["get"]),
         (["discovery.k8s.io"], ["endpointslices"], ["list"]),
         (["networking.k8s.io"], ["networkpolicies"], ["list"])]


def test_objects_that_cannot_be_listed_are_not_checked(doctor, well, namespace, tmp_path):
    name = f"parts-{namespace}"
    well.create_account(f"{namespace}/parts")
    well.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                 "rules": [{"apiGroups": g, "resources": r, "verbs": v} for g, r, v in PARTS]})
    well.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                 "metadata": {"name": name},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                 "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": "parts"}]})
    try:
        kubeconfig = well.kubeconfig_of(f"{namespace}/parts", tmp_path / "kubeconfig")
        status, checks = doctor(kubeconfig=kubeconfig)
        assert status == 2, checks
        seen = checks["not checked"][1]
        what = seen[len("this account may not read "):seen.index("; the first refusal: ")].split(", ")
        assert {"mywebs", "apps", "etcdclusters", "configmaps", "pods"} <= set(what), seen
        assert not {"CRDs", "Deployment", "rights", "leader", "Service"} & set(what), seen
        assert "objects" not in checks
    finally:
        well.delete("clusterrolebinding", name)
        well.delete("clusterrole", name)


@pytest.fixture(name="like_steward")
def account_with_the_rights_of_steward(well, namespace, tmp_path):
    """The kubeconfig of another account: what steward's own is seen to use is compared with its rights
    (tests/rights)."""
    account, made = f"{namespace}/like-steward", []
    well.create_account(account)
    for kind in ("clusterrolebinding", "rolebinding"):
        for one in well.list(kind):
            if not [s for s in one.get("subjects", []) if f"{s.get('namespace')}/{s['name']}" == stw.ACCOUNT]:
                continue
            copy = {k: one[k] for k in ("apiVersion", "kind", "roleRef")}
            copy["metadata"] = {"name": f"{one['metadata']['name']}-{namespace}"}
            copy["subjects"] = [{"kind": "ServiceAccount", "namespace": namespace, "name": "like-steward"}]
            if kind == "rolebinding":
                copy["metadata"]["namespace"] = one["metadata"]["namespace"]
            well.create(copy)
            made.append((kind, copy["metadata"]))
    yield well.kubeconfig_of(account, tmp_path / "kubeconfig")
    for kind, metadata in made:
        well.delete(kind, metadata["name"], metadata.get("namespace"))


def test_pod_account_gets_one_line_for_unchecked_parts(doctor, like_steward):
    status, checks = doctor(kubeconfig=like_steward)
    assert status == 2, checks
    verdict, seen, advice = checks["not checked"]
    assert verdict == "warn" and seen.startswith("this account may not read ") and "CRDs" in seen
    assert advice == "Run this with the rights of an administrator of the cluster."
    assert not [c for c, (_, about, _) in checks.items() if "forbidden" in about and c != "not checked"]


def test_wrong_clock_is_reported(doctor, steward_binary, tmp_path):
    if clocks.library() is None:
        pytest.skip("libfaketime is not installed (scripts/bootstrap test)")
    clock = clocks.Clock(tmp_path)
    clock.set(400)  # ahead: a slow clock would predate the certificates of a new cluster
    _, checks = doctor(env=clock.env(steward_binary))
    verdict, seen, _ = checks["clock"]
    assert verdict == "fail"
    assert " s behind this machine's" in seen
    assert checks["leader"][0] == "ok"  # compared with the API server's clock


def test_database_servers_are_checked(well, steward_binary, mariadb, tmp_path):
    """It logs in to each server: what answers, what the admin lacks with the statement that gives it, what
    no object has any more, and what could not be asked, within the time for all of them."""
    uid = well.get("namespace", "kube-system")["metadata"]["uid"]
    password = {"passwordSecret": {"name": "sql-admin", "key": "password"}}
    low = {"user": "low", **password}
    main = {**mariadb.target("main"), "admin": {**mariadb.target("main")["admin"], **password}}
    silent = socket.create_server(("127.0.0.1", 0))  # takes connections, and says nothing
    targets = [main, {**main, "name": "low", "admin": low},
               {**main, "name": "wrong", "admin": {**low, "passwordSecret": {
                   "name": "sql-wrong", "key": "password"}}},
               {**main, "name": "stale", "admin": {"user": "low", "certificateFile": f"{tmp_path}/tls.crt",
                                                   "keyFile": f"{tmp_path}/tls.key"}},
               {**main, "name": "dead", "host": "127.0.0.1", "port": 9},
               {**main, "name": "silent", "port": silent.getsockname()[1], "connectTimeoutSeconds": 60},
               {**main, "name": "pod", "tls": {"caFile": "/nowhere/ca.pem"}}]
    dbserver.make_ca(tmp_path)
    dbserver.make_pair(tmp_path, tmp_path, days=0)
    mariadb.sql(f"CREATE USER low@'%' IDENTIFIED BY '{mariadb.admin_password}'; GRANT SELECT ON mysql.* TO "
                "low@'%'; GRANT ALL ON steward.* TO low@'%'; CREATE DATABASE IF NOT EXISTS steward")
    well.apply([databaseuser.secret("sql-admin", stw.NAMESPACE, mariadb.admin_password),
                databaseuser.secret("sql-wrong", stw.NAMESPACE, "wr0ng-Pa55")])
    well.patch("configmap", "steward-config", stw.NAMESPACE, {"data": {
        "steward.yaml": yaml.safe_dump({"targets": targets})}})
    mariadb.sql("CREATE TABLE IF NOT EXISTS steward.accounts (user VARCHAR(128), host VARCHAR(255), owner "
                "VARCHAR(319), owner_uid VARCHAR(127), state VARCHAR(16), cluster VARCHAR(127)); INSERT INTO "
                "steward.accounts (user,host,owner,owner_uid,state,cluster) VALUES ('left','%','default/left',"
                f"'u','owned','{uid}'),('kept','%','default/kept','u','kept','{uid}'),"
                "('theirs','%','default/theirs','u','owned','another')")
    try:
        began = time.monotonic()
        result = k8s.run([steward_binary, "doctor", "-o", "json", "--kubeconfig", well.kubeconfig,
                          "--timeout", "10s"], check=False)
        assert time.monotonic() - began < 50  # its own limit is 60 s
        assert mariadb.admin_password not in result.stdout and "wr0ng" not in result.stdout
        said = [(c["verdict"], c["seen"], c.get("advice")) for c in json.loads(result.stdout)["checks"]
                if c["check"] == "database server"]
        where = f"{main['host']}:{main['port']}"
        assert [s for s in said if s[0] == "ok" and s[1].startswith('"main": mariadb ') and
                f'at {where} answers "steward-admin", TLSv1' in s[1] and
                "performance_schema is off" in s[1]], said
        assert ("warn", '"low": the admin "low" lacks CREATE USER, without which no account is created or '
                'changed', "GRANT CREATE USER ON *.* TO 'low'@'%'") in said
        assert [s for s in said if s[0] == "fail" and s[1].startswith(
            f'target "wrong" ({where}, account "low"): the server refused the login')], said
        [stale] = [s for s in said if s[1].startswith('target "stale" ')]
        assert stale[0] == "fail" and f"certificate: {tmp_path}/tls.crt expired at 20" in stale[1], stale
        assert "certificate" in stale[2], stale
        for name, why in (("dead", "127.0.0.1:9"), ("silent", ""),
                          ("pod", "/nowhere/ca.pem, is not on this machine")):
            [one] = [s for s in said if s[1].startswith(f'"{name}" was not asked from here: ')]
            assert one[0] == "warn" and why in one[1], said
            assert "exec deploy/steward-controller-manager -- /usr/bin/steward doctor" in one[2]
        [stray] = [s for s in said if s[1].startswith('"main": DatabaseUser ')]
        assert stray == ("warn", '"main": DatabaseUser default/left: account "left@%" is left of this object, '
                         "which no longer exists", "DROP USER IF EXISTS `left`@`%`; DELETE FROM "
                         "steward.accounts WHERE user='left' AND host='%'")
        assert result.returncode == 1
    finally:
        silent.close()
        mariadb.sql("DROP DATABASE steward; DROP USER low@'%'")
        well.patch("configmap", "steward-config", stw.NAMESPACE, {"data": {"steward.yaml": "# nothing\n"}})
        for name in ("sql-admin", "sql-wrong"):
            well.delete("secret", name, stw.NAMESPACE)


def test_broken_target_configuration_is_reported(doctor, well):
    target = {"name": "main", "engine": "mariadb", "host": "db",
              "admin": {"user": "root", "passwordSecret": {"name": "main-pw", "key": "word"}}}

    def tell(text):
        well.patch("configmap", "steward-config", stw.NAMESPACE, {"data": {"steward.yaml": text}})
        return doctor()
    try:
        status, checks = tell(yaml.safe_dump({"targets": [target]}))
        assert status == 1
        assert checks["database target"][1] == \
            f'"main": Secret {stw.NAMESPACE}/main-pw is not there'
        well.create(databaseuser.secret("main-pw", stw.NAMESPACE, "x", key="other"))
        assert doctor()[1]["database target"][1].endswith("has no key word")
        well.patch("secret", "main-pw", stw.NAMESPACE, {"stringData": {"word": "hush"}})
        assert doctor()[1]["database targets"][:2] == \
            ("ok", f"1 in ConfigMap {stw.NAMESPACE}/steward-config")
        status, checks = tell("targets: 5\n")
        assert (status, checks["database targets"][0]) == (1, "fail")
        assert "configmap/steward-config:1:10: targets: " in checks["database targets"][1]
    finally:
        well.delete("secret", "main-pw", stw.NAMESPACE)
        tell("# nothing\n")


def test_network_policy_and_service_faults_are_reported(doctor, well):
    """With a Deployment whose pods never become ready, as nothing can run them."""
    def manifests(folder):
        text = well.kubectl("kustomize", str(paths.TOP / "config" / folder)).stdout
        return list(yaml.safe_load_all(text))
    deployment = next(o for o in manifests("manager") if o["kind"] == "Deployment")
    deployment["spec"]["replicas"] = 0
    policies = manifests("network-policy")
    try:
        well.apply(deployment)
        _, checks = doctor()
        assert checks["Deployment"][0] == "fail"
        assert checks["NetworkPolicy"][:2] == \
            ("ok", "none selects steward's pods: port 9443 is open")
        well.apply(policies)
        assert doctor()[1]["NetworkPolicy"][:2] == ("ok", "port 9443 is open to the API server")
        well.delete("networkpolicy", "steward-allow-webhook-traffic", stw.NAMESPACE)
        verdict, seen, advice = doctor()[1]["NetworkPolicy"]
        assert verdict == "fail" and "none lets the API server in to port 9443" in seen
        assert advice == "kubectl apply -k config/network-policy"
    finally:
        well.delete_all("networkpolicy", stw.NAMESPACE)
        well.delete("deployment", DEPLOYMENT, stw.NAMESPACE)


def deployment_with(*args):
    """That of config/manager with more arguments and without replicas, as nothing can run them."""
    text = (paths.TOP / "config/manager/manager.yaml").read_text("utf-8")
    deployment = next(o for o in yaml.safe_load_all(text) if o["kind"] == "Deployment")
    deployment["spec"]["replicas"] = 0
    deployment["spec"]["template"]["spec"]["containers"][0]["args"] += args
    return deployment


def test_service_selector_without_pods_is_reported(doctor, well):
    """Of both Services; the advice heals it, which "kubectl apply" does not if a label was added."""
    folder = paths.TOP / "config"
    services = [yaml.safe_load((folder / path).read_text("utf-8"))
                for path in ("webhook/service.yaml", "manager/metrics_service.yaml")]
    names = [service["metadata"]["name"] for service in services]
    kind, config = stw.WEBHOOK_CONFIGURATIONS[1]
    url = well.get(kind, config)["webhooks"][0]["clientConfig"]["url"]
    try:
        well.apply([deployment_with(), *services])
        hook_patch(well, {"url": None, "service": {"name": names[0], "namespace": stw.NAMESPACE}})
        assert "no pod of steward-system/" in doctor()[1]["Service"][1]
        for check, name, level in (("Service", names[0], "fail"), ("metrics Service", names[1], "warn")):
            well.patch("service", name, stw.NAMESPACE, {"spec": {"selector": {
                "control-plane": "manager", "tier": "a"}}})
            verdict, seen, advice = doctor()[1][check]
            assert verdict == level
            assert seen == ("its selector matches no pod of steward: control-plane=manager (they have "
                            "control-plane=controller-manager), tier=a (they have no tier)")
            subprocess.run(["bash", "-c", advice], check=True, timeout=60, capture_output=True,
                           env={**os.environ, "KUBECONFIG": well.kubeconfig})
            assert "selector" not in str(doctor()[1].get(check))
    finally:
        hook_patch(well, {"service": None, "url": url})
        for name in names:
            well.delete("service", name, stw.NAMESPACE)
        well.delete("deployment", DEPLOYMENT, stw.NAMESPACE)


@pytest.fixture
def store(well, leader):
    """store(objects): stores them without admission, as if they were older than its rules."""
    def put(objects):
        stored = [well.get(kind, name) for kind, name in stw.WEBHOOK_CONFIGURATIONS]
        stw.uninstall_webhooks(well)
        try:
            wait.until("the API server to accept them",
                       lambda: well.apply(objects, check=False).returncode == 0)
        finally:
            for obj in stored:
                for field in ("resourceVersion", "uid", "managedFields", "creationTimestamp"):
                    obj["metadata"].pop(field, None)
                well.apply(obj)
    assert leader.running()
    wait.until("what earlier tests deleted to be gone", lambda: not any(
        one["metadata"].get("deletionTimestamp")
        for kind in ("namespace", *stw.KINDS) for one in well.list(kind)), 120)
    return put


@pytest.mark.oldest("pages of lists, objects that the schema accepts")
def test_upgrade_counts_stored_objects_against_the_rules(doctor, store, namespace):
    """Stored objects of several kinds, some of which today's rules refuse."""
    def objects(count):
        status, checks = doctor("--upgrade")
        verdict, seen, advice = checks["stored objects"]
        assert int(seen.removeprefix("all ").split(" ")[2 if "refused" in seen else 0]) >= count
        return status, verdict, seen, advice, checks.get("stored object")
    eru = {"apiVersion": "mtsre.meitu.com/v1", "kind": "Eru",
           "metadata": {"name": "nightly", "namespace": namespace},
           "spec": {"deploymentname": "shop", "schedule": "0 3 * * *"}}
    store([eru, myweb.manifest("fine", namespace)])
    status, verdict, seen, _, one = objects(2)
    assert (status, verdict, one) == (0, "ok", None) and "are accepted by the rules" in seen
    # The schema without rules knows no ranges of numbers in a schedule.
    eru["spec"]["schedule"] = "61 3 * * *"
    store(eru)
    status, verdict, seen, advice, one = objects(2)
    assert (status, verdict) == (1, "fail") and seen.startswith("1 of ")
    assert "steward audit" in advice and "InvalidSpec" in advice
    assert one[0] == "fail"
    assert one[1].startswith(f"Eru {namespace}/nightly: spec.schedule: Invalid value: ")
    assert one[2] == f"kubectl -n {namespace} edit erus.mtsre.meitu.com nightly"
    assert "stored objects" not in doctor()[1]


@pytest.mark.oldest("many pages")
def test_upgrade_truncates_long_lists(doctor, well, store, namespace):
    """More objects than a page has, and more refused ones than are shown."""
    erus = [{"apiVersion": "mtsre.meitu.com/v1", "kind": "Eru",
             "metadata": {"name": f"e{n}", "namespace": namespace},
             "spec": {"deploymentname": "shop", "schedule": "61 3 * * *"}} for n in range(260)]
    store(erus)
    result = k8s.run([doctor.binary, "doctor", "--upgrade", "--kubeconfig", well.kubeconfig],
                     check=False)
    assert result.returncode == 1
    shown = [line for line in result.stdout.splitlines() if line.startswith("FAIL  stored object: ")]
    assert len(shown) == 100
    [total] = [line for line in result.stdout.splitlines() if "stored objects: " in line]
    assert total.startswith("FAIL  stored objects: 260 of 260 are refused")


def hook_patch(well, changes):
    """JSON patch of the first webhook of the validating configuration."""
    kind, name = stw.WEBHOOK_CONFIGURATIONS[1]
    well.patch(kind, name, None,
        [{"op": "add" if v is not None else "remove",
          "path": f"/webhooks/0/clientConfig/{k}", **({"value": v} if v is not None else {})}
         for k, v in changes.items()])


def self_signed(folder):
    """The certificate of another CA, as PEM."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key", "-out",
                    folder / "crt", "-days", "2", "-subj", "/CN=other"],
                   check=True, capture_output=True, timeout=60)
    return (folder / "crt").read_bytes()


def endpoints(cluster):
    """Creates the Service and an Endpoints object with two ready addresses."""
    about = {"name": "steward-webhook-service", "namespace": stw.NAMESPACE}
    ports = [{"name": "webhook", "port": 443}]
    cluster.apply([{"apiVersion": "v1", "kind": "Service", "metadata": about,
                    "spec": {"ports": ports}},
                   {"apiVersion": "v1", "kind": "Endpoints", "metadata": about,
                    "subsets": [{"addresses": [{"ip": "10.9.9.1"}, {"ip": "10.9.9.2"}],
                                 "ports": ports}]}])


def test_unfinished_certificate_is_waited_for(doctor, well, leader):
    """No advice to delete the Secret: steward finishes, or repairs it.  With --wait the doctor waits for
    that, and reports what is then."""
    name = "steward-webhook-server-cert"
    good = well.get("secret", name, stw.NAMESPACE)
    assert leader.stop() == 0
    try:
        well.patch("secret", name, stw.NAMESPACE, {"data": {"tls.crt": "", "tls.key": "", "ca.crt": None,
                                                           "ca.key": None,
                                                           "ca-next.crt": good["data"]["ca.crt"],
                                                           "ca-next.key": good["data"]["ca.key"]}})
        status, checks = doctor()
        verdict, seen, advice = checks["certificate"]
        assert (status, verdict) == (1, "fail") and seen.startswith("it is being made")
        assert "doctor --wait=2m" in advice
        well.patch("secret", name, stw.NAMESPACE, {"data": {"ca-next.crt": None, "ca-next.key": None, **{
            key: base64.b64encode(b"garbage").decode() for key in ("tls.crt", "tls.key")}}})
        verdict, seen, advice = doctor("--wait=1s")[1]["certificate"]
        assert verdict == "fail" and "delete" not in advice and "grep -i certificate" in advice
        waiting = subprocess.Popen([doctor.binary, "doctor", "--wait=2m", "-o", "json", "--kubeconfig",
                                    well.kubeconfig], stdout=subprocess.PIPE, text=True)
        leader.start()
        report = json.loads(waiting.communicate(timeout=150)[0])
        assert waiting.returncode == 0 and report["summary"]["fail"] == 0
        assert "certificate" in [c["check"] for c in report["checks"] if c["verdict"] == "ok"]
    finally:
        if not leader.running():
            leader.start()
        leader.wait_webhook()


def test_broken_webhook_configuration_is_reported(doctor, well, leader, steward_binary, tmp_path):
    """Runs last, as steward must be stopped: it would repair all of this within moments."""
    name = "ValidatingWebhookConfiguration"
    kind, config = stw.WEBHOOK_CONFIGURATIONS[1]
    good = well.get(kind, config)["webhooks"][0]["clientConfig"]
    other = base64.b64encode(self_signed(tmp_path)).decode()
    service = {"name": "steward-webhook-service", "namespace": stw.NAMESPACE, "port": 443,
               "path": "/x"}
    assert leader.stop() == 0
    try:
        for changes, text in (
                ({"caBundle": other}, "has not signed the certificate in the Secret"),
                ({"caBundle": None}, "has no caBundle"),
                ({"caBundle": good["caBundle"], "url": "https://elsewhere.example:9443/x"},
                 "is called by a name that the certificate is not for")):
            hook_patch(well, changes)
            status, checks = doctor()
            assert (status, checks[name][0]) == (1, "fail")
            assert text in checks[name][1]
        hook_patch(well, {"url": None, "service": service, "caBundle": None})
        well.apply(deployment_with("--webhook-cert-path=/certs"))
        verdict, seen, advice = doctor()[1][name]
        assert verdict == "fail" and "has no caBundle" in seen
        assert "steward does not write it" in advice and "cert-manager.io/inject-ca-from" in advice
        well.delete("deployment", DEPLOYMENT, stw.NAMESPACE)
        hook_patch(well, {"caBundle": good["caBundle"]})
        status, checks = doctor()
        assert checks[name][0] == "ok", checks[name]
        assert checks["Service"][1].endswith("which the webhooks name, is not there")
        endpoints(well)
        assert doctor()[1]["Service"][:2] == \
            ("ok", f"2 ready pods of {stw.NAMESPACE}/steward-webhook-service")
        hooks = well.get(kind, config)["webhooks"]
        well.patch(kind, config, None, [
            {"op": "add", "path": "/webhooks/-", "value": {
                **hooks[0], "name": "check.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}}}])
        assert doctor()[1][name][0] == "ok"  # it is not steward's
        well.delete(kind, config)
        verdict, seen, advice = doctor()[1][name]
        assert verdict == "fail" and "is not there" in seen
        run_advice(well, steward_binary, advice)
        well.delete("secret", "steward-webhook-server-cert", stw.NAMESPACE)
        assert "steward has not made it" in doctor()[1]["certificate"][1]
        assert doctor()[1]["leader"][0] == "fail"
    finally:
        well.delete("service", "steward-webhook-service", stw.NAMESPACE)
        well.delete("endpoints", "steward-webhook-service", stw.NAMESPACE)
        stw.uninstall_webhooks(well)


def test_unreachable_api_server_is_reported_quickly(steward_binary, tmp_path):
    """Connection refused: one line, and quickly."""
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
              "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
              "users": [{"name": "u", "user": {"token": "hush-hush"}}]}
    (tmp_path / "kubeconfig").write_text(json.dumps(config), encoding="utf-8")
    result = k8s.run([steward_binary, "doctor", "--timeout=3s", "--kubeconfig",
                      tmp_path / "kubeconfig"], check=False, timeout=30)
    assert result.returncode == 2
    assert result.stdout.startswith("FAIL  API server: https://127.0.0.1:1 does not answer: ")
    again = k8s.run([steward_binary, "doctor", "--timeout=3s", "--wait=1s", "--kubeconfig",
                     tmp_path / "kubeconfig"], check=False, timeout=30)
    assert (again.returncode, again.stdout) == (2, result.stdout)
    assert "hush" not in result.stdout + result.stderr


@pytest.mark.parametrize("arguments, text", [
    (["-o", "yaml"], "--output is text or json"),
    (["now"], "it takes options only"),
    (["--kubeconfig", "/nowhere"], "/nowhere"),
    (["--kubeconfig", "/nowhere", "--wait=1h"], "/nowhere"),
])
def test_wrong_arguments_are_an_error(steward_binary, arguments, text):
    result = k8s.run([steward_binary, "doctor", *arguments], check=False)
    assert result.returncode == 2
    assert text in result.stderr


def test_documented_commands_exist(steward_binary):
    """docs/operations.md: each command and option exists, and the folder matches the page."""
    text = "".join(readme.blocks("sh", "docs/operations.md"))
    commands = [line.split() for line in text.splitlines()
                if line.startswith(("steward doctor", "steward audit"))]
    assert len(commands) == 5
    for command in commands:
        result = k8s.run([steward_binary, *command[1:], "--help"], check=False)
        assert result.returncode == 0, result.stderr
    assert "steward print rbac --namespaces shop,press >config/namespaced/rbac.yaml" in text
    assert "--namespaces=default" in (paths.TOP / "config/namespaced/args.yaml").read_text("utf-8")
