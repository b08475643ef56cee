# SPDX-License-Identifier: Apache-2.0
"""EtcdCluster, EtcdBackup and EtcdRestore through the API server and kubectl."""


import pytest
import yaml

from support import paths
from support import steward as stw

GROUP = "etcd.database.coreos.com"
VERSION = f"{GROUP}/v1beta2"
FORCE = f"{GROUP}/force-new-cluster"
ARTICLE = """
apiVersion: "etcd.database.coreos.com/v1beta2"
kind: "EtcdCluster"
metadata:
  name: "example-etcd-cluster"
spec:
  size: 3
  version: "3.2.13"
"""


@pytest.fixture(scope="module")
def webhook(installed, steward_binary, tmp_path_factory):
    """A cluster whose API server calls a steward that watches no namespace of the tests, so that
    the tests can write the status of objects."""
    one = stw.Steward(steward_binary, installed, installed.kubeconfig_steward,
                      tmp_path_factory.mktemp("webhook"), ["--namespaces", "default"])
    stw.install_webhooks(installed, steward_binary, one.webhook_port)
    one.start()
    one.wait_webhook()
    yield installed
    stw.uninstall_webhooks(installed)
    assert one.stop() == 0, one.log_tail()


def manifest(kind, namespace, spec, name="orders", **metadata):
    return {"apiVersion": VERSION, "kind": kind,
            "metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def ec(namespace, **spec):
    return manifest("EtcdCluster", namespace, spec)


def eb(namespace, **spec):
    return manifest("EtcdBackup", namespace, {
        "clusterRef": {"name": "orders"}, "storageType": "S3", "s3": {"path": f"bucket/{namespace}"},
        **spec})


def er(namespace, **spec):
    return manifest("EtcdRestore", namespace, {
        "etcdCluster": {"name": "orders"}, "backupRef": {"name": "nightly"}, **spec})


def apply(cluster, obj, **more):
    """An apply without kubectl's validation, so that unknown fields reach the webhook: else the API
    server would refuse them first."""
    return cluster.apply(obj, validate=False, **more)


def refusal(cluster, obj):
    reply = apply(cluster, obj, check=False)
    assert reply.returncode != 0, reply.stdout
    return reply.stderr


def get(cluster, namespace, plural="etcdclusters", name="orders"):
    return cluster.get(f"{plural}.{GROUP}", name, namespace)


def write_status(cluster, namespace, **status):
    live = get(cluster, namespace)
    live["status"].update(status)
    cluster.replace(live, "status")


# --- refused, with all errors

@pytest.mark.oldest("webhook calls")
def test_all_errors_of_a_cluster_are_reported_at_once(webhook, namespace):
    said = refusal(webhook, ec(
        namespace, size=9, version="3.5.1", repository="quay.io/coreos/etcd:v3",
        pod={"labels": {"app": "x", "etcd_node": "y"}, "antiAffinity": True, "affinity": {},
             "etcdEnv": [{"name": "ETCD_DATA_DIR", "value": "/x"}],
             "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}},
             "persistentVolumeClaimSpec": {"accessModes": ["ReadWriteMany"], "resources": {
                 "requests": {"storage": "100Mi"}}}},
        storage={"size": "8Gi"},
        TLS={"static": {"member": {"serverSecret": "s"}}, "auto": {"provider": "Steward"}},
        options={"quotaBackendBytes": "1Mi", "electionTimeoutMs": 100,
                 "extraArgs": {"name": "x"}},
        failover={"unhealthySeconds": 5}))
    for text in (
            "spec.size: Invalid value: 9: must be between 1 and 7",
            'spec.version: Invalid value: "3.5.1": has a known data corruption bug',
            'spec.repository: Invalid value: "quay.io/coreos/etcd:v3": must not hold a tag; use '
            "spec.version",
            "spec.pod.labels[app]: Forbidden: reserved label app",
            "spec.pod.labels[etcd_node]: Forbidden: reserved label etcd_node",
            "spec.pod.antiAffinity: Forbidden: set only one of antiAffinity, affinity",
            "spec.pod.etcdEnv[0].name: Forbidden: ETCD_DATA_DIR is set by the operator",
            'spec.pod.resources.requests[memory]: Invalid value: "2Gi": must be less than or equal '
            "to memory limit",
            'accessModes[0]: Unsupported value: "ReadWriteMany"',
            'requests[storage]: Invalid value: "100Mi": must be at least 1Gi',
            "spec.pod.persistentVolumeClaimSpec: Forbidden: set only one of storage, "
            "pod.persistentVolumeClaimSpec",
            "spec.TLS.static.operatorSecret: Required value: operatorSecret and "
            "member.serverSecret must be set together",
            "spec.TLS.auto: Forbidden: set only one of static, auto",
            'spec.options.quotaBackendBytes: Invalid value: "1Mi": must be at least 64Mi',
            "spec.options.electionTimeoutMs: Invalid value: 100: must be at least five times "
            "heartbeatIntervalMs",
            "spec.options.extraArgs[name]: Forbidden: name is set by the operator",
            "spec.failover.unhealthySeconds: Invalid value: 5: must be between 60 and 86400"):
        assert text in said
    assert get(webhook, namespace) is None


@pytest.mark.parametrize("spec, text", [
    ({"size": 0}, "spec.size: Invalid value: 0: must be at least 1 when the cluster is made"),
    ({"size": 0, "storage": {"medium": "EmptyDir"}},
     "0 (hibernate) needs persistent storage, or the data is lost"),
    ({"version": "3.0.17"}, "versions before 3.1 are not supported"),
    ({"version": "latest"}, "must be a version like 3.6.16"),
    ({"size": "three"}, 'spec.size: Invalid value: "three": must be an integer'),
    ({"TLS": {"auto": {"provider": "CertManager"}}}, 'Unsupported value: "CertManager"'),
], ids=str)
def test_invalid_cluster_field_is_refused(webhook, namespace, spec, text):
    assert text in refusal(webhook, ec(namespace, **spec))


def test_invalid_cluster_names_are_refused(webhook, namespace):
    for name, text in (("a" * 53, "must be at most 52 characters"),
                       ("1st", "must start with a letter and hold only a-z, 0-9 and '-', because a "
                               "Service gets this name")):
        assert text in refusal(webhook, manifest("EtcdCluster", namespace, {}, name=name))
    apply(webhook, manifest("EtcdCluster", namespace, {}, name="a" * 52))
    for kind, obj in (("etcdbackup", eb(namespace)), ("etcdrestore", er(namespace, template={}))):
        obj["metadata"]["name"] = "2nd.of-many"
        apply(webhook, obj)
        assert webhook.get(f"{kind}s.{GROUP}", "2nd.of-many", namespace)


def test_all_errors_of_a_backup_are_reported_at_once(webhook, namespace):
    said = refusal(webhook, eb(
        namespace, etcdEndpoints=["https://a:2379", "http://root:hunter2@b:2379"],
        s3={"path": "bucket"}, pvc={"claimName": "c", "path": "../x"},
        backupPolicy={"backupIntervalInSecond": 59, "schedule": "0 24 * * *",
                      "timeZone": "Europe/Nowhere"}))
    for text in (
            "spec.clusterRef: Forbidden: set exactly one of etcdEndpoints, clusterRef",
            "spec.etcdEndpoints[1]: Invalid value: must not hold a user or a password",
            "spec.etcdEndpoints[1]: Invalid value: must have the same scheme as the first endpoint",
            "spec.clientTLSSecret: Required value: https endpoints need a client certificate",
            'spec.s3.path: Invalid value: "bucket": must be "bucket/key"',
            'spec.pvc.path: Invalid value: "../x": must stay inside the volume',
            "spec.pvc: Forbidden: may not be set when storageType is S3",
            "backupIntervalInSecond: Invalid value: 59: must be 0 or at least 60",
            "spec.backupPolicy.schedule: Forbidden: set only one of backupIntervalInSecond, "
            "schedule",
            "field 2 (hour): 24 is outside 0-23",
            'spec.backupPolicy.timeZone: Invalid value: "Europe/Nowhere": unknown time zone'):
        assert text in said
    assert "hunter2" not in said
    for kind in ("ABS", "GCS", "OSS"):
        assert ("not supported in this version; use S3 with an S3-compatible endpoint"
                in refusal(webhook, eb(namespace, storageType=kind)))
    assert "maxBackups: Forbidden: needs schedule or backupIntervalInSecond" in refusal(
        webhook, eb(namespace, backupPolicy={"maxBackups": 3}))


def test_all_errors_of_a_restore_are_reported_at_once(webhook, namespace):
    said = refusal(webhook, er(
        namespace, s3={"path": "bucket/x"}, mode="Replace",
        template={"size": 8, "version": "3.5.2", "storage": {"medium": "EmptyDir"},
                  "pod": {"labels": {"app.kubernetes.io/name": "x"}}}))
    for text in (
            "spec.backupRef: Forbidden: set exactly one of s3, pvc, backupRef",
            'spec.mode: Unsupported value: "Replace"',
            "spec.template.size: Invalid value: 8: must be between 1 and 7",
            'spec.template.version: Invalid value: "3.5.2": has a known data corruption bug',
            "spec.template.storage.medium: Forbidden: restore needs persistent storage",
            "spec.template.pod.labels[app.kubernetes.io/name]: Forbidden: reserved label"):
        assert text in said


# --- accepted

def test_article_manifest_is_accepted_with_warnings(webhook, namespace):
    """Literally; warnings report what is problematic about it."""
    obj = yaml.safe_load(ARTICLE)
    obj["metadata"]["namespace"] = namespace
    said = webhook.apply(obj).stderr
    assert "Warning: no new cluster is made of a version before 3.4.0" in said
    assert "Warning: etcd 3.2 is out of support" in said
    spec = get(webhook, namespace, name="example-etcd-cluster")["spec"]
    assert (spec["size"], spec["version"]) == (3, "3.2.13")


@pytest.mark.oldest("defaults, the schema")
def test_defaults_are_added_and_kept(webhook, namespace):
    """The version is stored at creation, and stays when a later manifest omits it."""
    apply(webhook, ec(namespace, storage={}, failover={}))
    live = get(webhook, namespace)
    spec = live["spec"]
    assert spec["size"] == 3 and spec["version"] == "3.6.16"
    assert spec["repository"] == "quay.io/coreos/etcd"
    assert spec["storage"] == {"medium": "Auto", "size": "8Gi"}
    assert spec["failover"] == {"enabled": True, "unhealthySeconds": 300, "maxPerHour": 2}
    assert "TLS" not in spec and "options" not in spec
    assert live["status"] == {"observedGeneration": -1}
    webhook.patch(f"etcdclusters.{GROUP}", "orders", namespace, {"spec": {"version": "3.6.17"}})
    webhook.replace(ec(namespace, storage={}, failover={}, paused=True))
    spec = get(webhook, namespace)["spec"]
    assert spec["version"] == "3.6.17" and spec["paused"]
    # a second mutation adds nothing
    before = get(webhook, namespace)["metadata"]["generation"]
    webhook.annotate(f"etcdclusters.{GROUP}", "orders", namespace, {"example.com/a": "b"})
    assert get(webhook, namespace)["metadata"]["generation"] == before


@pytest.mark.oldest("the schema")
@pytest.mark.parametrize("path", sorted(paths.SAMPLES.glob("etcd_*.yaml")), ids=lambda p: p.name)
def test_samples_are_accepted(webhook, namespace, path):
    """With kubectl's validation against the schema."""
    obj = yaml.safe_load(path.read_text("utf-8"))
    obj["metadata"]["namespace"] = namespace
    said = webhook.apply(obj).stderr
    assert "Warning" not in said.replace('Warning: Secret "etcdbackup-sample" not found', "")


@pytest.mark.oldest("warnings")
def test_warnings_reach_kubectl(webhook, namespace):
    said = apply(webhook, ec(namespace, size=4, version="3.4.23", storage={"medium": "EmptyDir"},
                             pod={"busyboxImage": "busybox:1.28", "antiAffinity": True},
                             options={"quotaBackendBytes": "9Gi"})).stderr
    for text in ("even size 4 tolerates no more failures than 3", "etcd 3.4 is out of support",
                 "spec.storage.medium EmptyDir: data is lost when all members stop",
                 "spec.pod.busyboxImage is ignored", "spec.pod.antiAffinity is deprecated",
                 "spec.options.quotaBackendBytes is above etcd's suggested maximum of 8Gi"):
        assert f"Warning: {text}" in said
    said = apply(webhook, eb(namespace, verify="None", backupPolicy={"schedule": "* * * * *"},
                             s3={"path": "b/k", "endpoint": "http://minio:9000",
                                 "awsSecret": "missing"})).stderr
    for text in ("spec.verify None: it is not known",
                 "spec.backupPolicy.schedule: backups more often than every 5 minutes",
                 "spec.s3.endpoint is plain HTTP",
                 'Secret "missing" not found; backups are made when it appears'):
        assert f"Warning: {text}" in said


def test_unusable_tls_secrets_are_warned_about(webhook, namespace):
    webhook.create({"apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "half", "namespace": namespace},
                    "stringData": {"peer.crt": "hunter2", "peer.key": "hunter2"}})
    said = apply(webhook, ec(namespace, TLS={"static": {
        "member": {"peerSecret": "half", "serverSecret": "s"}, "operatorSecret": "o"}})).stderr
    for text in ('Secret "s" not found; the members start when it appears',
                 'Secret "o" not found; the members start when it appears'):
        assert f"Warning: {text}" in said
    assert "half" not in said and "hunter2" not in said


# --- changed

@pytest.mark.oldest("the scale subresource")
def test_scale_subresource_refuses_bad_sizes(webhook, namespace):
    """No webhook is called for the subresource: the schema refuses sizes that would be fatal."""
    apply(webhook, ec(namespace, size=1))
    webhook.kubectl("scale", "etcd", "orders", "-n", namespace, "--replicas=3")
    assert get(webhook, namespace)["spec"]["size"] == 3
    for size in (0, 8):
        reply = webhook.patch("etcd", "orders", namespace, {"spec": {"replicas": size}}, check=False,
                              subresource="scale")
        assert reply.returncode != 0 and "spec.size" in reply.stderr, reply.stderr
    assert get(webhook, namespace)["spec"]["size"] == 3
    write_status(webhook, namespace, size=3, selector="etcd_cluster=orders")
    shown = webhook.api.do("GET", f"/apis/{VERSION}/namespaces/{namespace}/etcdclusters/orders/scale")
    assert shown["spec"] == {"replicas": 3}
    assert shown["status"] == {"replicas": 3, "selector": "etcd_cluster=orders"}


def test_version_changes_one_minor_at_a_time(webhook, namespace):
    apply(webhook, ec(namespace, version="3.4.23"))
    assert ('spec.version: Invalid value: "3.6.0": upgrade one minor at a time: next is 3.5'
            in refusal(webhook, ec(namespace, version="3.6.0")))
    assert ("downgrade from 3.4.23 is not supported"
            in refusal(webhook, ec(namespace, version="3.4.22")))
    assert ("spec.version: Forbidden: change size and version in separate steps"
            in refusal(webhook, ec(namespace, version="3.5.16", size=5)))
    apply(webhook, ec(namespace, version="v3.5.16"))
    # while the upgrade runs, and one member has the new version
    write_status(webhook, namespace, currentVersion="3.4.23", targetVersion="3.5.16",
                 memberList=[{"name": "a", "version": "3.4.23"}, {"name": "b", "version": "3.5.16"}])
    for version in ("3.4.23", "3.6.0"):
        assert ("upgrade to 3.5.16 is still running"
                in refusal(webhook, ec(namespace, version=version)))
    write_status(webhook, namespace, memberList=[{"name": "a", "version": "3.4.23"}])
    apply(webhook, ec(namespace, version="3.4.23"))
    apply(webhook, ec(namespace, version="3.5.16"))
    write_status(webhook, namespace, currentVersion="3.5.16", targetVersion=None)
    assert "upgrade to 3.5.20 or newer first" in refusal(webhook, ec(namespace, version="3.6.0"))


@pytest.mark.oldest("webhook calls")
def test_storage_and_domain_are_immutable(webhook, namespace):
    apply(webhook, ec(namespace, storage={"size": "10Gi", "storageClassName": "a"},
                      pod={"ClusterDomain": "cluster.local"}))
    for change, text in (
            ({"storage": {"size": "9Gi", "storageClassName": "a"}},
             'spec.storage.size: Invalid value: "9Gi": storage cannot shrink (was 10Gi)'),
            ({"storage": {"size": "10Gi", "storageClassName": "b"}},
             'spec.storage.storageClassName: Forbidden: field is immutable (was "a")'),
            ({"pod": {"ClusterDomain": "other.local"}},
             'spec.pod.ClusterDomain: Forbidden: field is immutable (was "cluster.local")'),
            ({"TLS": {"auto": {"provider": "Steward"}}},
             "spec.TLS: Forbidden: cannot be switched on a running cluster")):
        spec = {"storage": {"size": "10Gi", "storageClassName": "a"},
                "pod": {"ClusterDomain": "cluster.local"}, **change}
        assert text in refusal(webhook, ec(namespace, **spec))
    write_status(webhook, namespace, storage={"medium": "Persistent"})
    assert 'spec.storage.medium: Forbidden: field is immutable (was "Persistent")' in refusal(
        webhook, ec(namespace, storage={"medium": "EmptyDir", "size": "10Gi", "storageClassName": "a"},
                    pod={"ClusterDomain": "cluster.local"}))


def test_one_shot_backup_is_immutable(webhook, namespace):
    apply(webhook, eb(namespace))
    assert ("spec.backupPolicy.backupIntervalInSecond: Forbidden: field is immutable (was 0)"
            in refusal(webhook, eb(namespace, backupPolicy={"backupIntervalInSecond": 60})))
    assert (f'spec.s3.path: Forbidden: field is immutable (was "bucket/{namespace}")'
            in refusal(webhook, eb(namespace, s3={"path": "bucket/other"})))
    apply(webhook, eb(namespace, s3={"path": f"bucket/{namespace}", "awsSecret": "other"}))


@pytest.mark.oldest("webhook calls for finalizers and status")
def test_stored_objects_against_new_rules_can_be_changed(webhook, installed, steward_binary, namespace):
    """Objects stored without a webhook can still be changed; the webhook warns about them."""
    urls = {kind: installed.get(kind, name) for kind, name in stw.WEBHOOK_CONFIGURATIONS}
    stw.uninstall_webhooks(installed)
    try:
        # no webhook: only the schema, which accepts the version and the label
        apply(installed, ec(namespace, version="3.5.1", pod={"labels": {"app": "x"}}))
    finally:
        for obj in urls.values():
            for field in ("resourceVersion", "uid", "creationTimestamp", "generation",
                          "managedFields"):
                obj["metadata"].pop(field, None)
            installed.create(obj)

    def unchanged():
        reply = apply(webhook, ec(namespace, version="3.5.1", pod={"labels": {"app": "x"}},
                                  paused=True), dry_run=True, check=False)
        return reply.returncode == 0 and "not refused, because it has not changed" in reply.stderr
    stw.wait.until("the webhook to be asked again", unchanged, 20)
    said = apply(webhook, ec(namespace, version="3.5.1", pod={"labels": {"app": "x"}},
                             paused=True)).stderr
    assert "has a known data corruption bug; not refused, because it has not changed" in said
    assert "reserved label app; not refused, because it has not changed" in said
    assert "has a known data corruption bug" in refusal(
        webhook, ec(namespace, version="3.5.2", pod={"labels": {"app": "x"}}))
    apply(webhook, ec(namespace, version="3.5.16", pod={"labels": {}}))


def test_force_annotation_is_checked(webhook, namespace):
    apply(webhook, ec(namespace))
    obj = ec(namespace)
    obj["metadata"]["annotations"] = {FORCE: "orders-bcdfghjklm"}
    assert f"Warning: annotation {FORCE} ignored: cluster has quorum" in apply(webhook, obj).stderr
    write_status(webhook, namespace, conditions=[{
        "type": "QuorumLost", "status": "True", "reason": "MembersDown", "message": "two of three",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    obj["metadata"]["annotations"] = {FORCE: "orders-xxxxxxxxxx"}
    assert "ignored" not in apply(webhook, obj).stderr


@pytest.mark.oldest("warnings")
def test_deletion_warns_about_data_loss(webhook, namespace):
    apply(webhook, ec(namespace, volumeRetention={"whenDeleted": "Delete"}))
    assert ("Warning: volumeRetention.whenDeleted is Delete: the data goes with the cluster, and "
            "there is no verified backup of it") in \
        webhook.delete("etcd", "orders", namespace).stderr
    apply(webhook, ec(namespace, volumeRetention={"whenDeleted": "Delete"}))
    write_status(webhook, namespace, lastBackup={"name": "nightly", "verified": True})
    assert "Warning" not in webhook.delete("etcd", "orders", namespace).stderr


# --- shown

@pytest.mark.oldest("kubectl's columns")
def test_kubectl_get_shows_columns_by_short_names(webhook, namespace):
    apply(webhook, ec(namespace, version="3.5.21"))
    apply(webhook, eb(namespace))
    apply(webhook, er(namespace, template={}))
    write_status(webhook, namespace, phase="Running", currentVersion="3.5.21", clusterID="abcd",
                 quorum={"healthy": 3, "voters": 3, "needed": 2, "margin": 1},
                 memberList=[{"name": "orders-x", "role": "Leader"}])

    def shown(short, *args):
        return [line.split() for line in webhook.kubectl(
            "get", short, "-n", namespace, *args).stdout.splitlines()]
    for short in ("etcd", "ec"):
        head, row = shown(short)
        assert head == ["NAME", "SIZE", "HEALTHY", "VERSION", "PHASE", "AVAILABLE", "READY",
                        "AGE"]
        assert row[:5] == ["orders", "3", "3", "3.5.21", "Running"]
    assert shown("etcd", "-o", "wide")[1][5:7] == ["orders-x", "abcd"]
    head, row = shown("etcdb")
    assert head[:4] == ["NAME", "CLUSTER", "STORAGE", "REVISION"] and row[:3] == [
        "orders", "orders", "S3"]
    head, row = shown("etcdr")
    assert head == ["NAME", "CLUSTER", "PHASE", "REVISION", "AGE"] and row[:2] == [
        "orders", "orders"]
    every = webhook.kubectl("get", "steward", "-n", namespace, "-o", "name").stdout.split()
    assert sorted(every) == [f"{kind}.{GROUP}/orders" for kind in ("etcdbackup", "etcdcluster",
                                                           "etcdrestore")]


@pytest.mark.oldest("the schema")
def test_schema_refuses_bad_fields_without_webhook(controller, installed, namespace):
    """Without a webhook: the CRD schema refuses what it can check by itself."""
    for obj, text in (
            (ec(namespace, size=0), "spec.size"), (ec(namespace, size=8), "spec.size"),
            (ec(namespace, version="new"), "spec.version"),
            (ec(namespace, storage={"medium": "Tape"}), "spec.storage.medium"),
            (ec(namespace, TLS={"auto": {}}), "spec.TLS.auto.provider"),
            (ec(namespace, failover={"maxPerHour": 11}), "spec.failover.maxPerHour"),
            (eb(namespace, storageType="ABS"), "spec.storageType"),
            (eb(namespace, s3={"path": "bucket"}), "spec.s3.path"),
            (eb(namespace, etcdEndpoints=["a"]), "spec.etcdEndpoints"),
            (er(namespace, mode="Replace"), "spec.mode"),
            (er(namespace, template={"size": 8}), "spec.template.size")):
        reply = apply(installed, obj, check=False)
        assert reply.returncode != 0 and text in reply.stderr, reply.stderr


def test_restore_source_must_exist(steward, cluster, namespace, pods_stay_pending):
    """Here steward watches the namespace, so it knows which objects exist."""
    assert steward.running()
    assert ('spec.template: Required value: no EtcdCluster "orders" to copy; give template'
            in refusal(cluster, er(namespace)))
    assert 'EtcdCluster "orders" not found; backups are made when it is there' in apply(
        cluster, eb(namespace)).stderr
    apply(cluster, ec(namespace, paused=True))

    def known():
        reply = apply(cluster, er(namespace, template={}), dry_run=True)
        return 'EtcdCluster "orders" exists and is not touched' in reply.stderr
    stw.wait.until("the cluster to be known", known, 10)
