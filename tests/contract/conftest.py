# SPDX-License-Identifier: Apache-2.0
"""An API server with its etcd; no controller, no scheduler and no node is needed.

STEWARD_CLUSTER_NAME names a running cluster of scripts/cluster; by default one is started for the
run, of the version in STEWARD_KUBERNETES.  KUBEBUILDER_ASSETS applies, too.
"""

import itertools
import os

import pytest

from support import apiserver, differences, started, wait
from support import cluster as k8s

NODE_PORTS = "30000-30063"  # few, since one test takes them all

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server():
    """A support.apiserver.Server."""
    given = os.environ.get("STEWARD_CLUSTER_NAME")
    name = given or f"contract-{os.getpid()}"
    if not given:
        version = os.environ.get("STEWARD_KUBERNETES")
        k8s.cluster_command(name, "up", f"--apiserver-arg=--service-node-port-range={NODE_PORTS}",
                            *(["--kubernetes", version] if version else []))
    try:
        one = apiserver.Server(k8s.cluster_env(name))
        started.note("kubernetes", one.git_version)
        started.note("etcd", one.etcd_version())
        yield one
    finally:
        if not given:
            k8s.cluster_command(name, "down")


@pytest.fixture
def does(server):
    """does("grace-period"): how this server behaves, according to support/differences.py."""
    return lambda what: differences.of(what, server.minor)


@pytest.fixture
def space(server):
    """A support.apiserver.Space: a namespace of its own."""
    name = f"contract-{os.getpid()}-{next(_numbers)}"
    server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                         "metadata": {"name": name}})
    yield apiserver.Space(server, name)
    server.ask("DELETE", f"/api/v1/namespaces/{name}")


class Things:
    """The custom resource of these tests, with one field of each sort that lib/schema/crd/crd.c prints."""

    GROUP = "contract.steward.dev"
    CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    @staticmethod
    def schema():
        """openAPIV3Schema."""
        port = {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}}
        spec = {
            "count": {"type": "integer", "default": 2, "minimum": 0, "maximum": 9},
            "word": {"type": "string", "default": "a", "enum": ["a", "b"]},
            "text": {"type": "string", "minLength": 1, "maxLength": 8},
            "amount": {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9.]+[a-zA-Z]*$",
                       "x-kubernetes-int-or-string": True},
            "list": {"type": "array", "items": port, "x-kubernetes-list-type": "map",
                     "x-kubernetes-list-map-keys": ["port"]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        status = {
            "observedGeneration": {"type": "integer"}, "phase": {"type": "string"},
            "count": {"type": "integer"}, "selector": {"type": "string"},
            "conditions": {"type": "array", "items": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
        return {"type": "object", "required": ["spec"], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "default": {"observedGeneration": -1}, "properties": status}}}

    def group_path(self, singular="thing"):
        """/apis/GROUP/VERSION"""
        return f"/apis/{singular}.{self.GROUP}/v1"

    def definition(self, singular="thing", versions=("v1",)):
        """The CRD; the first version is the one that is stored."""
        kind = singular.capitalize()
        return {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{singular}s.{singular}.{self.GROUP}"},
            "spec": {"group": f"{singular}.{self.GROUP}", "scope": "Namespaced",
                     "names": {"plural": f"{singular}s", "singular": singular, "kind": kind,
                               "listKind": f"{kind}List"},
                     "versions": [{
                         "name": v, "served": True, "storage": v == versions[0],
                         "schema": {"openAPIV3Schema": self.schema()},
                         "subresources": {"status": {}, "scale": {
                             "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count",
                             "labelSelectorPath": ".status.selector"}},
                         "additionalPrinterColumns": [
                             {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
                             {"name": "Word", "type": "string", "jsonPath": ".spec.word", "priority": 1},
                             {"name": "Age", "type": "date",
                              "jsonPath": ".metadata.creationTimestamp"}]} for v in versions]}}

    def path(self, space, *parts, version="v1"):
        """/apis/GROUP/VERSION/namespaces/NAME/things/..."""
        return space.path("things", *parts, group=f"/apis/thing.{self.GROUP}/{version}")

    def object(self, space, name="one", version="v1", **members):
        """A Thing."""
        return space.object(f"thing.{self.GROUP}/{version}", "Thing", name, **members)


@pytest.fixture(scope="session")
def things(server):
    """A Things, whose definition is served: versions v1 (stored) and v2."""
    one = Things()
    crd = one.definition(versions=("v1", "v2"))
    server.fine(server.apply(f"{one.CRDS}/{crd['metadata']['name']}", crd))
    wait.until("the custom resource to be served", lambda: all(
        server.ask("GET", f"/apis/thing.{one.GROUP}/{v}/things").status == 200 for v in ("v1", "v2")))
    yield one
    server.remove([f"{one.CRDS}/{crd['metadata']['name']}"])
