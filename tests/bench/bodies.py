# SPDX-License-Identifier: Apache-2.0
"""AdmissionReviews as kube-apiserver sends them: managedFields, options and userInfo included."""

import json

GROUP, VERSION, KIND, PLURAL = "operator.k8s-summit.org", "v1", "MyWeb", "mywebs"
UID = "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55"

_SENTENCE = ("<p>The quick brown fox jumps over the lazy dog; \u00fcber den Zaun, "
             "\"quoted\" &amp; escaped.</p>\n")


def managed_fields(spec, api_version=f"{GROUP}/{VERSION}"):
    """What a creation by kubectl leaves there."""
    return [{
        "manager": "kubectl-create", "operation": "Update",
        "apiVersion": api_version, "time": "2026-11-21T03:49:35Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {".": {}, **{f"f:{name}": {} for name in spec}}},
    }]


def my_web(page, complete):
    """A MyWeb object; `complete` has every default filled in, as validation sees it."""
    spec = {"image": "nginx:1.25.3", "nodePortNumber": 30080, "pageContentHtml": page}
    if complete:
        spec.update(replicas=1, containerPort=80, mountPath="/usr/share/nginx/html",
                    contentUpdate="Roll", resources={"requests": {"cpu": "10m", "memory": "16Mi"}})
    return {
        "apiVersion": f"{GROUP}/{VERSION}", "kind": KIND,
        "metadata": {
            "name": "storefront", "namespace": "shop", "generation": 1,
            "uid": "7c0f4f0c-64d6-4c9b-90f2-3b0c8d9f2b11",
            "creationTimestamp": "2026-11-21T03:49:35Z",
            "managedFields": managed_fields(spec),
        },
        "spec": spec,
    }


def review(obj, plural=PLURAL):
    """The AdmissionReview of its creation, as bytes in the API server's own member order."""
    group, version = obj["apiVersion"].split("/")
    gvk = {"group": group, "version": version, "kind": obj["kind"]}
    gvr = {"group": group, "version": version, "resource": plural}
    return json.dumps({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": UID, "kind": gvk, "resource": gvr, "requestKind": gvk, "requestResource": gvr,
            "name": obj["metadata"]["name"], "namespace": obj["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "jane@example.com", "groups": ["system:authenticated"]},
            "object": obj, "oldObject": None, "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
                        "fieldManager": "kubectl-create",
                        "fieldValidation": "Strict"},
        }}, separators=(",", ":"), ensure_ascii=False).encode()


def body(size, mutate):
    """An AdmissionReview of about `size` bytes: the page makes up the rest."""
    bare = len(review(my_web("", not mutate)))
    page = _SENTENCE * (max(size - bare, 0) // len(json.dumps(_SENTENCE, ensure_ascii=False)) + 8)
    while page and len(review(my_web(page, not mutate))) > size:
        page = page[:-1]
    return review(my_web(page, not mutate))
