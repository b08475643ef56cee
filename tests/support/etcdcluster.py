# SPDX-License-Identifier: Apache-2.0
"""EtcdClusters in tests: manifests, what to wait for, and how to disturb them on a real node."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

from . import cluster as k8s
from . import etcd, gateway, paths, wait
from . import steward as stw
from .cluster import condition

KIND = "etcdclusters.etcd.database.coreos.com"
GROUP = "etcd.database.coreos.com"
REPOSITORY = "quay.io/coreos/etcd"
FORCE = f"{GROUP}/force-new-cluster"
DEFRAGMENT = f"{GROUP}/defragment"
ONE_KIND = ("--kinds", "EtcdCluster")


def version(line="3.5"):
    """The full version of a line that this machine has: "3.5" -> "3.5.35"."""
    program = etcd.versions()[line]
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return re.search(r"etcd Version: (\S+)", text)[1]


def manifest(name, namespace, annotations=None, **spec):
    """An EtcdCluster, by default of the older of the two versions."""
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    spec.setdefault("version", version("3.4"))
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": "EtcdCluster", "metadata": metadata,
            "spec": spec}


def settled(obj, size=None, version=None):
    """Ready at this generation with `size` healthy voters, and no action in progress."""
    status = obj.get("status", {})
    wanted = obj["spec"]["size"] if size is None else size
    quorum = status.get("quorum", {})
    return (k8s.is_ready(obj) and not status.get("currentAction")
            and len(status.get("memberList", [])) == wanted
            and quorum.get("voters") == quorum.get("healthy") == wanted
            and version in (None, status.get("currentVersion")))


def defragmented(obj, request, phase="Succeeded"):
    """status.defragmentation, once the one for this value of the annotation has ended; or None."""
    found = obj.get("status", {}).get("defragmentation", {})
    return found if (found.get("request"), found.get("phase")) == (request, phase) else None


class EtcdCluster:
    """One EtcdCluster on the node, under this name in this namespace."""

    def __init__(self, cluster, namespace, name="ec", tls=None):
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.tls = tls  # an SSL context for clients

    # --- the object

    def apply(self, check=True, annotations=None, **spec):
        """kubectl apply; its result."""
        return self.cluster.apply(manifest(self.name, self.namespace, annotations, **spec),
                                  check=check)

    def patch(self, check=True, **spec):
        """Changes some fields of the spec."""
        return self.cluster.patch(KIND, self.name, self.namespace, {"spec": spec}, check=check)

    def annotate(self, key, value):
        """Sets an annotation; None removes it."""
        self.cluster.patch(KIND, self.name, self.namespace,
                           {"metadata": {"annotations": {key: value}}})

    def get(self):
        """The current object."""
        return self.cluster.get(KIND, self.name, self.namespace)

    def status(self):
        """Its status."""
        return self.get()["status"]

    def delete(self):
        """Deletes it, and its claims, which outlive it."""
        self.cluster.delete(KIND, self.name, self.namespace)
        self.cluster.delete_all("pvc", self.namespace, f"etcd_cluster={self.name}", wait_gone=False)

    # --- waiting

    def wait(self, check, what, seconds=60):
        """Waits until check(object) is true; the object."""
        try:
            return self.cluster.wait_for(KIND, self.name, self.namespace, check, seconds, what)
        except wait.TimedOut as error:
            raise wait.TimedOut(f"{error}\n{self.story()}") from error

    def wait_settled(self, size=None, seconds=90, version=None):
        """Waits until it is Ready at this generation with `size` healthy voters; the object."""
        return self.wait(lambda obj: settled(obj, size, version),
                         f"EtcdCluster {self.name} to be settled", seconds)

    def wait_condition(self, about, status, *reasons, seconds=60):
        """Waits until a condition has this status and one of the reasons; the condition."""
        def found(obj):
            one = condition(obj, about)
            return one.get("status") == status and (not reasons or one.get("reason") in reasons)
        obj = self.wait(found, f"{about} of EtcdCluster {self.name} to be {status} {reasons}",
                        seconds)
        return condition(obj, about)

    def story(self):
        """The details for a failure message."""
        obj = self.get() or {}
        pods = self.cluster.kubectl("get", "pods", "-n", self.namespace, "-o", "wide").stdout
        events = [f"{r}: {m}" for _, r, m in self.cluster.events(self.namespace, self.name)]
        return "\n".join([json.dumps(obj.get("status"), indent=1), pods, *events[-12:]])

    # --- its members

    def members(self):
        """status.memberList by name."""
        return {m["name"]: m for m in self.status().get("memberList", [])}

    def leader(self):
        """The name of the leader, from etcd itself; waits for one."""
        def find():
            for name, pod in sorted(self.pods().items()):
                with contextlib.suppress(OSError, gateway.Refused, KeyError):
                    status = gateway.Gateway(pod["status"]["podIP"], tls=self.tls).status()
                    if status["leader"] == status["header"]["member_id"]:
                        return name
            return None
        return wait.until(f"a leader of EtcdCluster {self.name}", find, 30)

    def followers(self):
        """The names of the other members that have started."""
        leader = self.leader()
        return sorted(self.names() - {leader, ""})

    def pods(self):
        """Its pods by name."""
        return {p["metadata"]["name"]: p for p in
                self.cluster.list("pods", self.namespace, f"etcd_cluster={self.name}")}

    def wait_pods(self, what, look, seconds=60):
        """Watches its pods until look({name: pod}) is true."""
        return self.cluster.wait_list(
            what, "pods", self.namespace, lambda pods: look({p["metadata"]["name"]: p for p in pods}),
            seconds, f"etcd_cluster={self.name}")

    def wait_no_pods(self, seconds=120):
        """Until all pods are gone."""
        self.wait_pods(f"the pods of {self.name} to be gone", lambda pods: not pods, seconds)

    def wait_other_pods(self, before, seconds=60):
        """Until there are as many pods as in uids() of before, and none of those."""
        self.wait_pods("other pods", lambda pods: len(pods) == len(before) and
                       not {p["metadata"]["uid"] for p in pods.values()} & set(before.values()), seconds)

    def wait_other_pod(self, name, before, seconds=60):
        """Until the pod of this name is another one than in uids() of before."""
        self.wait_pods(f"pod {name} to be another one", lambda pods: name in pods and
                       pods[name]["metadata"]["uid"] != before[name], seconds)

    def claims(self):
        """Its claims by name."""
        return {c["metadata"]["name"]: c for c in
                self.cluster.list("pvc", self.namespace, f"etcd_cluster={self.name}")}

    def uids(self):
        """{name: uid} of pods: a recreated pod has another."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def at(self, member, timeout=3):
        """A Gateway to one member."""
        return gateway.Gateway(self.pods()[member]["status"]["podIP"], tls=self.tls,
                               timeout=timeout)

    def client(self, timeout=3):
        """A Gateway to the Service for clients."""
        service = self.cluster.get("service", f"{self.name}-client", self.namespace)
        return gateway.Gateway(service["spec"]["clusterIP"], tls=self.tls, timeout=timeout)

    def served(self):
        """client(), once the Service reaches a member: kubelet and proxy need a moment."""
        one = self.client()

        def look():
            try:
                return one.status()
            except OSError:
                return None
        wait.until(f"the Service of {self.name} to lead to a member", look, 20)
        return one

    def writer(self, **more):
        """A gateway.Writer through the Service for clients."""
        return gateway.Writer(self.client(), **more)

    def check_same(self, *writers):
        """Each member by itself stores the same, up to one revision, and has lost nothing of what
        was acknowledged to these writers; returns the members' names."""
        revision = int(self.served().status()["header"]["revision"])
        held = {}
        for name in sorted(self.names()):
            self.wait_has_all(name)
            held[name] = self.at(name, timeout=30).contents(revision)
        first = next(iter(held.values()))
        differs = {name: sorted(set(first.items()) ^ set(one.items()))[:10]
                   for name, one in held.items() if one != first}
        assert not differs, (revision, differs, {name: self.at(name).status() for name in held})
        lost = {(name, writer.prefix): writer.lost_in({key: about[0] for key, about in one.items()})
                for name, one in held.items() for writer in writers}
        assert not any(lost.values()), (revision, lost)
        return list(held)

    def wait_has_all(self, member):
        """Waits until a member stores all that has been written so far."""
        revision = int(self.served().status()["header"]["revision"])
        wait.until(f"{member} to have an address",
                   lambda: self.pods().get(member, {}).get("status", {}).get("podIP"), 20)
        one = self.at(member)
        wait.until(f"{member} to reach revision {revision}",
                   lambda: int(one.status()["header"]["revision"]) >= revision, 20)

    def names(self):
        """The names of its members, from etcd's own list; "" for those that never started."""
        return {m.get("name", "") for m in self.listed()}

    def listed(self):
        """etcd's own list, with retries: the Service may still lead to a member that is away."""
        return wait.until("etcd's list of members", lambda: self.client(2).members(), 20)

    def check_claims(self):
        """No claim is left over, and each member has its own."""
        try:
            wait.until("the claims of members and no others",
                       lambda: set(self.claims()) == self.names(), 90)
        except wait.TimedOut as error:
            raise wait.TimedOut(f"{error}\nclaims: {sorted(self.claims())}\n"
                                f"{self.story()}") from error

    # --- bad days

    def delete_pods(self, *names):
        """Deletes pods without grace, all at once, as an eviction or the end of a node would."""
        for name in names:
            self.cluster.delete("pod", name, self.namespace, wait_gone=False, grace_seconds=0)

    def pid(self, member):
        """The process of a member on this machine."""
        [status] = self.pods()[member]["status"]["containerStatuses"]
        container = status["containerID"].split("//")[1]
        for path in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
            with contextlib.suppress(OSError):
                if container in path.read_text():
                    return int(path.parent.name)
        raise AssertionError(f"no process of {member}")

    def signal(self, member, number=signal.SIGKILL):
        """Sends its process a signal."""
        subprocess.run(["kill", f"-{int(number)}", str(self.pid(member))], check=True)

    @contextlib.contextmanager
    def paused(self, member):
        """Pauses its process, which keeps its connections and answers nothing."""
        pid = self.pid(member)
        subprocess.run(["kill", "-STOP", str(pid)], check=True)
        try:
            yield
        finally:
            subprocess.run(["kill", "-CONT", str(pid)], check=False, capture_output=True)

    def folder(self, member):
        """The folder of its volume on this machine."""
        claim = self.cluster.get("pvc", member, self.namespace)
        volume = self.cluster.get("pv", claim["spec"]["volumeName"])
        return pathlib.Path(volume["spec"]["hostPath"]["path"])

    def empty(self, *members, killed=()):
        """Removes their data, and kills their processes together with those of `killed`."""
        pids = [str(self.pid(member)) for member in (*members, *killed)]
        for folder in map(self.folder, members):
            assert (folder / "data" / "member" / "wal").is_dir(), f"{folder} holds no data of etcd"
            subprocess.run(["rm", "-rf", "--one-file-system", str(folder / "data")], check=True)
        subprocess.run(["kill", "-KILL", *pids], check=True)

    @contextlib.contextmanager
    def cut(self, member):
        """Cuts it off in both directions: sets its link on the node down."""
        link = self.cable(member)
        k8s.run(["ip", "link", "set", link, "down"])
        try:
            yield
        finally:
            k8s.run(["ip", "link", "set", link, "up"], check=False)

    def cable(self, member):
        """The node's end of a pod's network link.  It has to be a port of the node's own bridge:
        any other link is the machine's."""
        inside = k8s.run(["nsenter", f"--net=/proc/{self.pid(member)}/ns/net", "ip", "-o", "link",
                          "show", "eth0"]).stdout
        index = int(re.search(r"eth0@if(\d+):", inside)[1])
        links = json.loads(k8s.run(["ip", "-json", "link", "show"]).stdout)
        [link] = [one["ifname"] for one in links
                  if one["ifindex"] == index and one.get("master", "").startswith("stw")]
        assert link.startswith("veth"), link
        return link


class Witness:
    """Reads etcd's own list all the time: `wrong` has what must never be in it, `sizes` the numbers
    of voters.  Two changes may happen between two reads."""

    def __init__(self, etcd):
        self.client, self.wrong, self.sizes = etcd.client(), [], []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        try:
            wait.until("etcd's list to be seen", lambda: self.sizes, 20)
        except wait.TimedOut:
            self._ending.set()
            raise
        return self

    def __exit__(self, kind, *_):
        self._ending.set()
        self._thread.join(20)
        if kind is None:
            assert not self.wrong, self.wrong

    def check_path(self, *path):
        """The sizes seen are in the order of the path, from its first to its last."""
        wait.until("the end to be seen", lambda: self.sizes[-1] == path[-1], 20)
        assert self.sizes[0] == path[0], self.sizes
        rest = iter(path)
        assert all(size in rest for size in self.sizes), self.sizes

    def _run(self):
        while not self._ending.wait(0.2):
            try:
                members = self.client.members()
            except (OSError, gateway.Refused):
                continue
            learners = [m for m in members if m.get("isLearner")]
            if len(learners) > 1:
                self.wrong.append(("more than one learner", members))
            voters = len(members) - len(learners)
            if not self.sizes or self.sizes[-1] != voters:
                self.sizes.append(voters)


def changes(stage):
    """What steward has changed in a stage so far, except status and events."""
    return [r for r in stw.requests(stage.cluster, stage.namespace, changing=True)
            if "/status" not in r[1] and "/events" not in r[1]]


def give_agent(cluster, folder, name):
    """Loads an image of the program under test on the node, for agents."""
    tar = folder / "agent.tar"
    k8s.cluster_command(cluster.name, "pack", "--user=65532", name, tar,
                        paths.steward_binary().resolve())
    k8s.cluster_command(cluster.name, "image", tar)


class Stage:
    """A namespace on the node, and a steward that watches only that, so that several stages can run
    side by side.  All that was in it is gone at the end."""

    _numbers = itertools.count(1)

    def __init__(self, cluster, binary, folder, *args):
        self.cluster, self.binary, self.folder, self.args = cluster, binary, folder, args
        self.namespace = f"etcd{os.getpid()}-{next(self._numbers)}"
        self.steward = None

    def __enter__(self):
        self.cluster.create_namespace(self.namespace)
        try:
            self.start()
        except BaseException:
            self.steward.kill()
            self.cluster.delete_namespace(self.namespace)
            raise
        return self

    def __exit__(self, *_):
        try:
            if self.steward.running():
                assert self.steward.stop() == 0, self.steward.log_tail()
        finally:
            self.cluster.delete_namespace(self.namespace)

    def start(self, *args, env=None, ready=True):
        """Starts a steward after the previous one has ended; `env` is added to its environment."""
        self.steward = stw.Steward(self.binary, self.cluster, self.cluster.kubeconfig_steward,
                                   self.folder, ["--namespaces", self.namespace, *self.args, *args],
                                   env=env)
        return self.steward.start(ready=ready)

    def etcd(self, name="ec", tls=None):
        """An EtcdCluster here, not applied yet."""
        return EtcdCluster(self.cluster, self.namespace, name, tls)
