# SPDX-License-Identifier: Apache-2.0
"""An installation in one file, applied to an API server in the order of `kubectl apply -f`: it accepts
every object as it is, and serves the kinds."""

import pytest
import yaml

from support import kustomize, wait
from support.cluster import LOADER

FOLDERS = {"default": 20, "server-1.29": 29}  # and the first minor version that each is for
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@pytest.fixture(scope="module")
def plurals(server):
    """The path of the objects of an apiVersion and kind."""
    found = {}

    def resources(api_version):
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        for one in server.get(root)["resources"]:
            found.setdefault((api_version, one["kind"]), (root, one["name"], one["namespaced"]))

    def path(obj):
        key = obj["apiVersion"], obj["kind"]
        if key not in found:
            resources(obj["apiVersion"])
        root, plural, namespaced = found[key]
        within = f"/namespaces/{obj['metadata']['namespace']}" if namespaced else ""
        return f"{root}{within}/{plural}/{obj['metadata']['name']}"
    return path


@pytest.mark.parametrize("name", FOLDERS)
def test_install_file_is_accepted_without_warnings(server, plurals, name):
    """Without a warning.  No server answers the webhooks, so they are only judged, not stored."""
    if server.minor < FOLDERS[name]:
        pytest.skip("the file is for later versions")
    objects = [o for o in yaml.load_all(kustomize.one_file(name), LOADER) if o]
    definitions = [o for o in objects if o["kind"] == "CustomResourceDefinition"]
    assert len(definitions) == 7 and {*HOOKS, "Deployment"} < {o["kind"] for o in objects}
    server.remove([plurals(d) for d in definitions])
    try:
        refused = []
        for obj in objects:
            dry = "&dryRun=All" if obj["kind"] in HOOKS else ""
            answer = server.apply(plurals(obj), obj, query=f"&force=true&fieldValidation=Strict{dry}")
            refused += [] if answer.status in (200, 201) and not answer.warnings else [(obj["kind"], answer)]
        assert refused == []
        for definition in definitions:
            path = plurals(definition)
            wait.until("the kind to be served", lambda p=path: any(
                c["type"] == "Established" and c["status"] == "True"
                for c in server.get(p)["status"].get("conditions", [])))
    finally:
        server.remove([plurals(o) for o in reversed(objects)
                        if o["kind"] not in (*HOOKS, "Namespace")])  # no controller here ends a namespace
