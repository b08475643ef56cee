# SPDX-License-Identifier: Apache-2.0
"""Finds the resource of the API server for a name in a test: discovery, as kubectl does it."""

import dataclasses

from .rest import Refused


@dataclasses.dataclass(frozen=True)
class Resource:
    """One resource of the API server."""

    version: str  # of its group: "v1", "apps/v1"
    kind: str
    plural: str
    words: tuple  # its names, in lower case
    namespaced: bool

    @property
    def group(self):
        """Of its apiVersion; "" is the core group."""
        return self.version.rpartition("/")[0]

    def path(self, namespace=None, name=None):
        """The path of an object, or of the collection in a namespace or everywhere."""
        where = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        root = f"/apis/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}{where}/{self.plural}" + (f"/{name}" if name else "")

    def is_called(self, word):
        """Whether `word` means it: NAME, NAME.GROUP or NAME.VERSION.GROUP."""
        name, _, rest = word.lower().partition(".")
        if name not in self.words:
            return False
        number = self.version.rpartition("/")[2]
        return rest in ("", self.group, f"{number}.{self.group}")


class UnknownKind(AssertionError):
    """The API server has no such resource."""


class Kinds:
    """The resources of one API server, read once; again when one is not known."""

    def __init__(self, api):
        self.api = api
        self.versions = {}  # apiVersion: [Resource, ...]
        self.found = {}  # word: Resource

    def of_word(self, word):
        """The resource of "deployment", "pvc", "etcdclusters.etcd.database.coreos.com" ..."""
        if word not in self.found:
            if not self._search(word):
                self.forget()
                self._search(word)
            if word not in self.found:
                raise UnknownKind(f"the API server has no resource {word!r}")
        return self.found[word]

    def of_manifest(self, obj):
        """The resource of an object."""
        version, kind = obj["apiVersion"], obj["kind"]
        for _ in range(2):
            for one in self._of_version(version):
                if one.kind == kind:
                    return one
            self.forget()
        raise UnknownKind(f"the API server has no {kind} of {version}")

    def forget(self):
        """Makes the next lookup read the resources again."""
        self.versions.clear()
        self.found.clear()

    def _search(self, word):
        for version in self._all_versions():
            for one in self._of_version(version):
                if one.is_called(word):
                    self.found[word] = one
                    return True
        return False

    def _all_versions(self):
        """All versions of all groups: as kubectl prefers them, the preferred one of a group first."""
        yield "v1"
        others = []
        for group in self.api.do("GET", "/apis")["groups"]:
            preferred = group["preferredVersion"]["groupVersion"]
            yield preferred
            others += [v["groupVersion"] for v in group["versions"]
                       if v["groupVersion"] != preferred]
        yield from others

    def _of_version(self, version):
        if version not in self.versions:
            root = "/apis/" if "/" in version else "/api/"
            try:
                listed = self.api.do("GET", root + version)["resources"]
            except Refused as error:
                if error.status not in (404, 503):  # gone, or of an aggregated API server
                    raise
                return []
            self.versions[version] = [
                Resource(version, r["kind"], r["name"], _words(r), r["namespaced"])
                for r in listed if "/" not in r["name"]]
        return self.versions[version]


def _words(resource):
    return (resource["name"], resource.get("singularName") or resource["kind"].lower(),
            *resource.get("shortNames", ()))
