#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an OLM bundle from the rendered config/server-1.29 on standard input.

Usage: olm.py FOLDER VERSION IMAGE CREATED SAMPLE...

FOLDER gets manifests/, metadata/annotations.yaml and bundle.Dockerfile.  The ClusterServiceVersion takes
its kinds from the CRDs, its rights from the roles and its webhooks from the webhook configurations.  OLM
makes the webhooks and their certificate, so that steward gets no rights on either.
"""

import json
import pathlib
import sys

import yaml

ACCOUNT = "steward-controller-manager"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # where OLM mounts them
OF_THE_CERTIFICATE = "steward-webhook-server-cert"
WEBHOOK_ROLE = "steward-webhook-ca-role"
MIN_KUBERNETES = "1.29.0"
HOOK_TYPES = {"MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
              "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook"}
COPIED = ("ConfigMap", "PriorityClass")
READERS = ("steward-metrics-reader", "steward-debug-reader")
LABELS = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": "steward",
    "operators.operatorframework.io.bundle.channels.v1": "stable",
    "operators.operatorframework.io.bundle.channel.default.v1": "stable",
}


def owned(crd):
    """The entry of a kind."""
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    described = version["schema"]["openAPIV3Schema"].get("description", "")
    return {"name": crd["metadata"]["name"], "kind": names["kind"], "version": version["name"],
            "displayName": names["kind"], "description": described or f"A {names['kind']}"}


def webhooks(config):
    """The entries of a webhook configuration.  OLM has no matchConditions."""
    for hook in config["webhooks"]:
        yield {"type": HOOK_TYPES[config["kind"]], "generateName": hook["name"],
               "deploymentName": ACCOUNT, "containerPort": 443, "targetPort": "webhook",
               "webhookPath": hook["clientConfig"]["service"]["path"],
               **{name: hook[name] for name in (
                   "admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector",
                   "reinvocationPolicy", "rules", "sideEffects", "timeoutSeconds") if name in hook}}


def deployment(found, image):
    """The spec of the Deployment, with the certificate that OLM mounts."""
    spec = found["spec"]
    container, = spec["template"]["spec"]["containers"]
    container["image"] = image
    container["args"].append(f"--webhook-cert-path={CERTIFICATES}")
    return spec


def rights(objects, kind):
    """The rules of all roles of steward's own account, except those for what OLM does."""
    bound = {o["roleRef"]["name"] for o in objects if o["kind"] == f"{kind}Binding"
             and any(s["name"] == ACCOUNT for s in o["subjects"])} - {WEBHOOK_ROLE}
    rules = [rule for o in objects if o["kind"] == kind and o["metadata"]["name"] in bound
             for rule in o["rules"] if OF_THE_CERTIFICATE not in rule.get("resourceNames", ())]
    return [{"serviceAccountName": ACCOUNT, "rules": rules}]


def service_version(objects, version, image, created, samples):
    of_kind = {}
    for obj in objects:
        of_kind.setdefault(obj["kind"], []).append(obj)
    installed, = of_kind["Deployment"]
    kinds = {crd["spec"]["names"]["kind"] for crd in of_kind["CustomResourceDefinition"]}
    examples = [sample for sample in samples if sample["kind"] in kinds]  # OLM refuses others
    return {
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": f"steward.v{version}", "namespace": "placeholder", "annotations": {
            "alm-examples": json.dumps(examples, indent=1), "capabilities": "Deep Insights",
            "categories": "Application Runtime, Database", "containerImage": image,
            "createdAt": created,
            "description": "An admission webhook and operator for web pages, applications, restarts, "
                           "database users and etcd, in one small program."}},
        "spec": {
            "displayName": "steward", "version": version, "minKubeVersion": MIN_KUBERNETES,
            "description": "steward manages MyWeb, App, Eru, DatabaseUser, EtcdCluster, EtcdBackup and "
                           "EtcdRestore: one program serves their admission webhooks and reconciles "
                           "them.\n\nIts options are in the ConfigMap `steward-config`.",
            "maturity": "beta", "provider": {"name": "steward"},
            "keywords": ["admission-webhook", "operator", "etcd", "databases"],
            "icon": [{"base64data": ICON, "mediatype": "image/svg+xml"}],
            "installModes": [{"type": kind, "supported": kind == "AllNamespaces"} for kind in (
                "OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")],
            "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": ACCOUNT, "label": installed["metadata"]["labels"],
                                 "spec": deployment(installed, image)}],
                "permissions": rights(objects, "Role"),
                "clusterPermissions": rights(objects, "ClusterRole")}},
            "customresourcedefinitions": {"owned": [
                owned(crd) for crd in of_kind["CustomResourceDefinition"]]},
            "webhookdefinitions": [hook for kind in HOOK_TYPES for config in of_kind[kind]
                                   for hook in webhooks(config)]}}


# A shield of 24 by 24.
ICON = ("PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCI+PHBhdGggZD0iTTEy"
        "IDEgMyA1djZjMCA1LjUgMy44IDEwLjcgOSAxMiA1LjItMS4zIDktNi41IDktMTJWNXoiLz48L3N2Zz4=")


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value, sort_keys=False, width=10000, allow_unicode=True), "utf-8")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    folder, version, image, created = pathlib.Path(sys.argv[1]), *sys.argv[2:5]
    samples = [o for path in sys.argv[5:]
               for o in yaml.safe_load_all(pathlib.Path(path).read_text("utf-8")) if o]
    objects = [o for o in yaml.safe_load_all(sys.stdin) if o]
    write(folder / "manifests" / "steward.clusterserviceversion.yaml",
          service_version(objects, version, image, created, samples))
    for obj in objects:
        name = obj["metadata"]["name"]
        if obj["kind"] == "CustomResourceDefinition":
            write(folder / "manifests" / f"{name}.crd.yaml", obj)
        elif obj["kind"] in COPIED or name in READERS:
            obj["metadata"].pop("namespace", None)  # OLM takes that of the Subscription
            write(folder / "manifests" / f"{name}_{obj['kind'].lower()}.yaml", obj)
    write(folder / "metadata" / "annotations.yaml", {"annotations": LABELS})
    (folder / "bundle.Dockerfile").write_text(
        "FROM scratch\n" + "".join(f"LABEL {name}={value}\n" for name, value in LABELS.items())
        + "COPY manifests /manifests/\nCOPY metadata /metadata/\n", "utf-8")


if __name__ == "__main__":
    main()
