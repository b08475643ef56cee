# SPDX-License-Identifier: Apache-2.0
"""node-storage.py CLUSTER-DIR APISERVER-URL CLASS: the node's default StorageClass.

Each claim of it gets a folder below CLUSTER-DIR/node/volumes, and a volume for it; both are deleted
with the claim.  Run by `scripts/cluster up --node`.  Every user can write to the folder, because the
fsGroup of a pod is not applied to a folder of the host.
"""

import contextlib
import pathlib
import shutil
import sys
import time

import kubewatch

PROVISIONER = "steward.dev/folder"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/persistentvolumeclaims"


class Provisioner:
    """Creates missing volumes, and removes released ones."""

    def __init__(self, cluster, url, name):
        self.api = kubewatch.Api(cluster, url)
        self.folders = pathlib.Path(cluster) / "node" / "volumes"
        self.folders.mkdir(parents=True, exist_ok=True)
        self.name = name

    def create_class(self):
        """Creates the StorageClass, unless it exists."""
        while True:
            try:
                with _allowed(409):
                    self.api.do("POST", CLASSES, {
                        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                        "metadata": {"name": self.name, "annotations": {
                            "storageclass.kubernetes.io/is-default-class": "true"}},
                        "provisioner": PROVISIONER, "reclaimPolicy": "Delete",
                        "volumeBindingMode": "Immediate"})
                return
            except (*kubewatch.GONE, kubewatch.Refused):
                time.sleep(0.2)

    def act(self, collections):
        """Compares claims and volumes."""
        claims, volumes = collections
        made = {volume["metadata"]["name"] for volume in volumes}
        for claim in claims:
            # The name contains the claim's UID, so that a claim never gets two.
            if self._wants_volume(claim) and f"pvc-{claim['metadata']['uid']}" not in made:
                self._create(claim)
        claimed = {claim["metadata"]["uid"] for claim in claims}
        for volume in volumes:
            if self._is_ours(volume) and volume["spec"]["claimRef"]["uid"] not in claimed:
                self._remove(volume["metadata"]["name"])

    def _wants_volume(self, claim):
        return (claim["spec"].get("storageClassName") == self.name
                and not claim["spec"].get("volumeName")
                and not claim["metadata"].get("deletionTimestamp"))

    def _is_ours(self, volume):
        spec = volume["spec"]
        return (spec.get("storageClassName") == self.name
                and spec["persistentVolumeReclaimPolicy"] == "Delete"
                and not volume["metadata"].get("deletionTimestamp"))

    def _create(self, claim):
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        folder = self.folders / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        reference = {key: meta[key] for key in ("namespace", "name", "uid")}
        with _allowed(409):
            self.api.do("POST", VOLUMES, {
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": name,
                             "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
                "spec": {"capacity": spec["resources"]["requests"], "accessModes": spec["accessModes"],
                         "storageClassName": self.name, "persistentVolumeReclaimPolicy": "Delete",
                         "hostPath": {"path": str(folder), "type": "Directory"},
                         "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1",
                                      **reference}}})

    def _remove(self, name):
        with _allowed(404):
            self.api.do("DELETE", f"{VOLUMES}/{name}")
        shutil.rmtree(self.folders / name, ignore_errors=True)


@contextlib.contextmanager
def _allowed(status):
    """A request that may be refused with this status."""
    try:
        yield
    except kubewatch.Refused as refused:
        if refused.status != status:
            raise


def main():
    cluster, url, name = sys.argv[1:]
    provisioner = Provisioner(cluster, url, name)
    provisioner.create_class()
    kubewatch.settle(cluster, url, [CLAIMS, VOLUMES], provisioner.act)


main()
