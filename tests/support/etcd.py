# SPDX-License-Identifier: Apache-2.0
"""Real etcd members as processes on loopback, of any version that this machine has.

    with etcd.Cluster(size=3, version="3.4") as c:
        c.members[0].kill()
        c.ctl("put", "a", "1")
"""

import base64
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

from . import dbserver, net, pause, scratch, started, wait
from . import versions as server_versions

TOKEN = "steward-test"


def _cached():
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [pathlib.Path(root, "steward", f"etcd-{version}", "etcd")
            for version in server_versions.table()["ETCD"]]


@functools.cache
def _found():
    """{"3.4": ("3.4.23", path of etcd), ...}: the installed one, and those of scripts/bootstrap."""
    found = {}
    for path in [shutil.which("etcd"), *map(str, filter(pathlib.Path.exists, _cached()))]:
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            match = re.search(r"etcd Version: ((\d+\.\d+)\.\d+)", text)
            if match:
                found.setdefault(match[2], (match[1], path))
    return found


def versions():
    """{"3.4": path of etcd, ...}."""
    return {line: path for line, (_, path) in _found().items()}


def missing(*wanted):
    """Why these versions cannot be started here; "" when they can."""
    found = versions()
    gone = [v for v in wanted if v not in found]
    return f"no etcd {', '.join(gone)} is here: run 'scripts/bootstrap etcd'" if gone else ""


def program(version, name="etcd"):
    """etcd, etcdctl or etcdutl of a version, as a path; 3.4 has no etcdutl."""
    path = pathlib.Path(versions()[version]).parent / name
    return str(path)


def snapshot_status(version, file):
    """What etcd's own tool reads from a snapshot: etcdutl, or etcdctl in 3.4, which lacks it."""
    command = [program(version, "etcdctl" if version == "3.4" else "etcdutl"), "snapshot", "status",
               str(file), "-w", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60,
                                     env={"ETCDCTL_API": "3"}).stdout)


class Member:
    """One member; it has a name, two ports and a data folder, and can be restarted with other
    arguments or as another version."""

    def __init__(self, cluster, name, version):
        self.cluster, self.name, self.version = cluster, name, version
        self.client_port, self.peer_port = net.free_port(), net.free_port()
        self.data = cluster.folder / name
        self.log_path = cluster.folder / f"{name}.log"
        self.process = None
        self.initial = None  # value of --initial-cluster; None: the cluster's first members
        self.state = "new"

    @property
    def client_url(self):
        """The URL for clients."""
        return f"{self.cluster.scheme}://localhost:{self.client_port}"

    @property
    def peer_url(self):
        """The URL for peers."""
        return f"{self.cluster.scheme}://localhost:{self.peer_port}"

    def endpoint(self, name="localhost", port=None):
        """For a probe: the URL with a name, and the address to connect to."""
        return {"url": f"{self.cluster.scheme}://{name}:{port or self.client_port}",
                "address": "127.0.0.1"}

    def command(self, *more):
        """The command line."""
        listen = f"{self.cluster.scheme}://127.0.0.1"
        initial = self.initial or self.cluster.initial()
        return [program(self.version), "--name", self.name, "--data-dir", str(self.data),
                "--listen-client-urls", f"{listen}:{self.client_port}",
                "--advertise-client-urls", self.client_url,
                "--listen-peer-urls", f"{listen}:{self.peer_port}",
                "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", initial, "--initial-cluster-state", self.state,
                "--initial-cluster-token", TOKEN, "--heartbeat-interval", "50",
                "--election-timeout", "500", "--logger", "zap",
                "--strict-reconfig-check=true", "--pre-vote=true",
                *self.cluster.tls_arguments(), *self.cluster.arguments, *more]

    def start(self, *more, version=None):
        """Starts it (again), perhaps as another version, without waiting."""
        assert not self.running(), f"{self.name} runs already"
        self.version = version or self.version
        started.note("etcd", _found()[self.version][0])
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(*more), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT,
                                            env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        return self

    def running(self):
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    def ended(self, seconds=20):
        """Waits until it ends by itself; its exit status (negative: a signal)."""
        return self.process.wait(seconds)

    def stop(self):
        """Ends it as an operator would."""
        self._end(signal.SIGTERM)

    def kill(self):
        """Ends it as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, number):
        if self.running():
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        if self.process:
            self.process.wait(30)

    def pause(self):
        """It keeps its connections, and answers nothing."""
        pause.pause(self.process)

    def resume(self):
        """Undoes pause()."""
        pause.resume(self.process)

    def wipe(self):
        """Removes its data, as those of an emptyDir."""
        assert not self.running()
        shutil.rmtree(self.data, ignore_errors=True)

    def log_text(self):
        """All that it has logged."""
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def post(self, path, body=None, timeout=10, **headers):
        """(HTTP status, answer) of the JSON gateway; status 0 without an answer."""
        request = urllib.request.Request(self.client_url + path, json.dumps(body or {}).encode(),
                                         {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=timeout,
                                        context=self.cluster.ssl_context()) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            try:
                return error.code, json.loads(text)
            except ValueError:
                return error.code, {"text": text}
        except OSError as error:
            return 0, {"text": str(error)}

    def status(self):
        """The answer of POST /v3/maintenance/status; {} when it does not answer."""
        code, answer = self.post("/v3/maintenance/status", timeout=2)
        return answer if code == 200 else {}

    def healthy(self):
        """Whether it answers a linearizable read."""
        return self.post("/v3/kv/range", {"key": "AA=="}, timeout=2)[0] == 200

    @property
    def id(self):
        """Its member ID, decimal, as it reports it."""
        return self.status()["header"]["member_id"]

    def wait_healthy(self, seconds=30):
        """Waits until it is healthy."""
        def check():
            assert self.running(), f"{self.name} ended:\n{self.log_text()[-2000:]}"
            return self.healthy()
        wait.until(f"{self.name} to be healthy", check, seconds)
        return self


class Cluster:
    """Members of one cluster; ends them all, and removes their files, at the end."""

    def __init__(self, size=1, version="3.5", tls=False, arguments=()):
        self.folder = scratch.folder("etcd")
        self.version, self.tls, self.arguments = version, tls, list(arguments)
        self.scheme = "https" if tls else "http"
        self.numbers = 0
        self._context = None
        if tls:
            names = "DNS:localhost,IP:127.0.0.1,DNS:member.etcd.test"
            self.ca = dbserver.make_ca(self.folder / "ca")
            dbserver.make_pair(self.folder / "ca", self.folder / "tls", names)
        self.members = []
        for _ in range(size):
            self.members.append(self._member(version))
        self.first = list(self.members)
        try:
            for member in self.members:
                member.start()
            for member in self.members:
                member.wait_healthy()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _member(self, version):
        self.numbers += 1
        return Member(self, f"m{self.numbers}", version)

    def initial(self):
        """--initial-cluster of the first members."""
        return ",".join(f"{m.name}={m.peer_url}" for m in self.first)

    def tls_arguments(self):
        """Makes clients and peers present a certificate of the CA."""
        if not self.tls:
            return []
        tls = self.folder / "tls"
        return [part for kind in ("", "peer-") for part in (
            f"--{kind}cert-file={tls}/tls.crt", f"--{kind}key-file={tls}/tls.key",
            f"--{kind}trusted-ca-file={self.ca}", f"--{kind}client-cert-auth")]

    def ssl_context(self):
        """For urllib."""
        if self.tls and not self._context:
            import ssl
            self._context = ssl.create_default_context(cafile=self.ca)
            self._context.load_cert_chain(self.folder / "tls" / "tls.crt",
                                          self.folder / "tls" / "tls.key")
        return self._context

    def running(self):
        """Members whose process runs."""
        return [m for m in self.members if m.running()]

    def leader(self):
        """The member that leads; waits for one."""
        def find():
            for member in self.running():
                status = member.status()
                if status and status.get("leader") == status["header"]["member_id"]:
                    return member
            return None
        return wait.until("a leader", find)

    def followers(self):
        """The other running members."""
        leader = self.leader()
        return [m for m in self.running() if m is not leader]

    def member_list(self):
        """The members as the leader lists them."""
        return self.leader().post("/v3/cluster/member/list", {"linearizable": True})[1]["members"]

    def add(self, learner=True, start=True, version=None, at=None):
        """Adds a member to the list, and starts it; a Member."""
        member = self._member(version or self.version)
        at = at or self.leader()
        known = [m for m in self.member_list() if m.get("name")]
        code, answer = at.post("/v3/cluster/member/add",
                               {"peerURLs": [member.peer_url], "isLearner": learner})
        assert code == 200, answer
        self.joins(member, known)
        if start:
            member.start()
        return member

    def joins(self, member, known=None):
        """Prepares a member that is in the list already for its start."""
        known = known if known is not None else [m for m in self.member_list() if m.get("name")]
        member.state = "existing"
        member.initial = ",".join([*(f"{m['name']}={m['peerURLs'][0]}" for m in known),
                                   f"{member.name}={member.peer_url}"])
        if member not in self.members:
            self.members.append(member)

    def new_member(self, version=None):
        """A member that is not in the list yet; joins() makes it startable."""
        return self._member(version or self.version)

    def fill(self, mebibytes):
        """Puts this much into the database, in keys of 1 MiB."""
        value = self.folder / "value"
        value.write_bytes(base64.b64encode(os.urandom(786_000)))
        for i in range(mebibytes):
            with open(value, "rb") as source:
                subprocess.run([program(self.version, "etcdctl"), f"--endpoints={self.running()[0].client_url}",
                                "put", f"large{i}"], stdin=source, capture_output=True, timeout=60, check=True,
                               env={"PATH": os.environ["PATH"], "ETCDCTL_API": "3"})

    def ctl(self, *args, check=True, endpoints=None, version=None, tool="etcdctl"):
        """Runs etcdctl; its output."""
        endpoints = endpoints or [m.client_url for m in self.running()]
        tls = self.folder / "tls"
        secure = [f"--cacert={self.ca}", f"--cert={tls}/tls.crt",
                  f"--key={tls}/tls.key"] if self.tls else []
        command = [program(version or self.version, tool), f"--endpoints={','.join(endpoints)}",
                   *secure, *map(str, args)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                env={"PATH": os.environ["PATH"], "ETCDCTL_API": "3"})
        assert not check or result.returncode == 0, f"{command}: {result.stderr}"
        return result.stdout

    def snapshot_status(self, file):
        """What etcd's own tool reads from a snapshot."""
        return snapshot_status(self.version, file)

    def close(self):
        """Ends all, and removes the folder."""
        for member in self.members:
            member.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
