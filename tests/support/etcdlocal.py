# SPDX-License-Identifier: Apache-2.0
"""EtcdClusters of one member without a node: the test acts as the kubelet, and etcd itself runs as
a process, on a loopback address of its own.  Only one member, since names do not resolve."""

import contextlib
import itertools
import os
import subprocess
import time

from . import etcd, etcdcerts, etcdcluster, gateway, wait
from .app import set_status

_numbers = itertools.count(1)


class LocalEtcd(etcdcluster.EtcdCluster):
    """One such EtcdCluster; its data stay in `folder`, as on a volume."""

    def __init__(self, cluster, namespace, folder, name="ec"):
        super().__init__(cluster, namespace, name)
        self.folder_, self.process = folder, None
        self.address = f"127.{64 + next(_numbers)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.delete()

    def up(self, **spec):
        """Creates a cluster of one member and waits until it is Ready; returns its pod."""
        self.apply(size=1, storage={"medium": "Persistent"}, **spec)
        pod = self.wait_pod()
        self.run(pod)
        self.wait_settled(1)
        return pod

    def wait_pod(self, besides=None):
        """Waits for the pod; `besides`: one with another UID than this."""
        return wait.until("its pod", lambda: next((
            p for p in self.pods().values() if p["metadata"]["uid"] != besides and
            "deletionTimestamp" not in p["metadata"]), None), 40)

    def run(self, pod):
        """Starts etcd as the kubelet would start the pod."""
        self.bring_secrets(pod)
        line = ".".join(pod["metadata"]["annotations"]["etcd.version"].split(".")[:2])
        with open(self.folder_ / "log", "ab") as log:
            self.process = subprocess.Popen([etcd.program(line), *self._arguments(pod)], stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self._tell(pod, running={"startedAt": "2026-01-01T00:00:00Z"})
        return self

    def kill(self):
        """Kills its process; the pod's status does not show that yet."""
        if self.process:
            self.process.kill()
            self.process.wait(20)

    def gone(self, pod):
        """Kills its process, and deletes its pod."""
        self.kill()
        self.delete_pods(pod["metadata"]["name"])

    def bring_secrets(self, pod):
        """Writes the current data of its Secrets to its files."""
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["spec"]["volumes"]
                   if "secret" in v}
        for path, volume in self._mounts(pod):
            (self.folder_ / path).mkdir(parents=True, exist_ok=True)
            if volume in secrets:
                data = etcdcerts.secret_data(self.cluster, self.namespace, secrets[volume])
                for key, value in data.items():
                    (self.folder_ / path / key).write_bytes(value)

    def at(self, member=None, timeout=3):
        """A Gateway to the member."""
        return gateway.Gateway(self.address, tls=self.tls, timeout=timeout)

    def wait_answers(self):
        """Waits until etcd answers; the Gateway."""
        one = self.at()

        def look():
            assert self.process.poll() is None, (self.folder_ / "log").read_text()[-2000:]
            with contextlib.suppress(OSError, gateway.Refused):
                return one.get("none") is None
            return False
        wait.until("etcd to answer", look, 20)
        return one

    @staticmethod
    def _mounts(pod):
        [container] = pod["spec"]["containers"]
        return [(m["mountPath"].lstrip("/"), m["name"]) for m in container["volumeMounts"]]

    def _arguments(self, pod):
        [container] = pod["spec"]["containers"]
        notes, found = pod["metadata"]["annotations"], []
        values = {e["name"]: notes[e["valueFrom"]["fieldRef"]["fieldPath"].split("'")[1]]
                  for e in container["env"] if "valueFrom" in e}
        for text in container["args"]:
            for name, value in values.items():
                text = text.replace(f"$({name})", value)
            for path, _ in self._mounts(pod):
                text = text.replace(f"=/{path}", f"={self.folder_ / path}")
            found.append(text.replace("0.0.0.0", self.address))
        return found

    def _tell(self, pod, **state):
        [container] = pod["spec"]["containers"]
        set_status(self.cluster, pod, phase="Running", podIP=self.address,
                   podIPs=[{"ip": self.address}],
                   containerStatuses=[{"name": container["name"], "image": container["image"],
                                       "imageID": "", "ready": True, "restartCount": 0,
                                       "state": state, "lastState": {}}],
                   conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": time.strftime(
                       "%Y-%m-%dT%H:%M:%SZ", time.gmtime())}])
