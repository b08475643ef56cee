# SPDX-License-Identifier: Apache-2.0
"""The operators of examples/, built against the installed library, on a real API server."""

import http.server
import itertools
import json
import os
import threading

import pytest
import yaml

from support import example, library
from support.cluster import is_ready

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def installed_library(tmp_path_factory):
    """A support.library.Library."""
    return library.Library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def build(installed_library, tmp_path_factory):
    """build(NAME): the program of an example, made by its own meson.build."""
    def make(name):
        folder = installed_library.meson(library.EXAMPLES / name, tmp_path_factory.mktemp(name) / "build")
        return folder / name
    return make


@pytest.fixture
def operate(build, installed_library, cluster, tmp_path):
    """operate(NAME): runs an example; its kinds and webhooks are removed at the end."""
    started, kinds, hooks = [], [], []

    def start(name, *args, admission=False):
        program = build(name)
        kinds.extend(example.install(cluster, program, installed_library.env))
        one = example.Example(program, cluster, tmp_path, args=args, env=installed_library.env)
        if admission:
            # Configured first: a start waits until they have its CA.
            one.start(ready=False)
            started.append(one)
            hooks.extend(example.install_webhooks(cluster, program, one.webhook_port, installed_library.env))
            one.wait_ready()
        else:
            started.append(one.start())
        return one
    yield start
    for hook in hooks:
        cluster.delete(*hook)
    for one in started:
        assert one.stop() == 0, one.log_tail()
    for kind in kinds:
        cluster.delete("crd", kind)


@pytest.fixture
def space(cluster):
    """A namespace for one test."""
    name = f"examples-{os.getpid()}-{next(_numbers)}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_namespace(name)


def sample(name, space, **spec):
    """The object of an example's sample.yaml."""
    obj = yaml.safe_load((library.EXAMPLES / name / "sample.yaml").read_text("utf-8"))
    obj["metadata"]["namespace"] = space
    obj["spec"].update(spec)
    return obj


def test_redirect(operate, cluster, space):
    """Children appear and are repaired, and the status reports it."""
    operate("redirect")
    kind = "redirects.example.org"
    cluster.apply(sample("redirect", space))
    ready = cluster.wait_for(kind, "old", space, is_ready)
    types = {c["type"] for c in ready["status"]["conditions"]}
    assert types == {"Ready", "ConfigMapSynced", "ServiceSynced"}
    assert cluster.get("service", "old", space)["spec"]["ports"][0]["port"] == 80
    cluster.patch("configmap", "old", space, {"data": {"redirect.conf": "broken"}})
    cluster.wait_for(kind, "old", space, lambda o: o.get("status", {}).get("repairs") == 1)
    assert "https://new" in cluster.get("configmap", "old", space)["data"]["redirect.conf"]


class System:
    """The external system of externalthing: things by uid.  While `down` is true it answers 503."""

    def __init__(self):
        self.things, self.down = {}, False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers one connection."""

            def _answer(self, status, body=None):
                data = json.dumps(body or {}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                uid = self.path.rpartition("/")[2]
                if outer.down:
                    self._answer(503)
                elif self.command == "PUT":
                    outer.things[uid] = json.loads(body)
                    self._answer(200)
                elif uid not in outer.things:
                    self._answer(404)
                else:
                    self._answer(200, outer.things.pop(uid) if self.command == "DELETE" else outer.things[uid])

            do_GET = do_PUT = do_DELETE = _serve

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def system():
    """A System."""
    one = System()
    yield one
    one.close()


def test_externalthing(operate, cluster, space, system):
    """The thing follows the object, and the object waits for the end of its thing."""
    operate("externalthing", f"--endpoint={system.url}")
    kind = "externalthings.example.org"
    cluster.apply(sample("externalthing", space))
    uid = cluster.wait_for(kind, "first", space, is_ready)["metadata"]["uid"]
    assert system.things == {uid: {"size": 3}}
    cluster.patch(kind, "first", space, {"spec": {"size": 5}})
    cluster.wait_for(kind, "first", space, lambda o: o["status"].get("size") == 5)
    assert system.things == {uid: {"size": 5}}
    system.down = True
    cluster.patch(kind, "first", space, {"spec": {"size": 7}})
    cluster.wait_condition(kind, "first", space, "ThingSynced", "CallFailed")
    cluster.delete(kind, "first", space, wait_gone=False)
    cluster.wait_for(kind, "first", space, lambda o: o["metadata"].get("deletionTimestamp"))
    assert cluster.get(kind, "first", space)["metadata"]["finalizers"]
    system.down = False
    cluster.wait_gone(kind, "first", space)
    assert not system.things


def crontask(space, name="hello", **spec):
    """A CronTask that is due every minute."""
    obj = sample("cronjob-lite", space, **spec)
    obj["metadata"]["name"] = name
    return obj


def jobs_of(cluster, space, name):
    """The Jobs that a CronTask owns."""
    return [job for job in cluster.list("jobs.batch", space)
            if job["metadata"]["ownerReferences"][0]["name"] == name]


def test_cronjob_lite(operate, cluster, space):
    """Jobs start on time, end at their deadline, and are removed; a suspended one has none."""
    operate("cronjob-lite", admission=True)
    kind = "crontasks.batch.example.org"
    refused = cluster.apply(crontask(space, "bad", schedule="61 * * * *"), check=False)
    assert refused.returncode != 0 and "as in crontab" in refused.stderr
    never = cluster.apply(crontask(space, "never", schedule="0 0 31 2 *"), check=False)
    assert never.returncode != 0 and "never due" in never.stderr
    cluster.apply(crontask(space, "rest", suspend=True))
    cluster.apply(crontask(space, "short", activeDeadlineSeconds=1, failedJobsHistoryLimit=0))
    cluster.apply(crontask(space))
    cluster.wait_condition(kind, "rest", space, "Ready", "Suspended")
    active = cluster.wait_for(kind, "hello", space, lambda o: o.get("status", {}).get("active") == 1, seconds=90)
    assert active["status"]["lastScheduleTime"].endswith(":00Z")
    job, = jobs_of(cluster, space, "hello")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"][2] == "date; echo hello"
    # The Job fails at its deadline, and its object has a limit of no failed ones.
    cluster.wait_for(kind, "short", space, lambda o: o.get("status", {}).get("lastScheduleTime"), seconds=90)
    cluster.wait_list("no Job of short", "jobs.batch", space,
                      lambda all: not [one for one in all
                                       if one["metadata"]["ownerReferences"][0]["name"] == "short"], seconds=50)
    assert len(jobs_of(cluster, space, "hello")) == 1  # Forbid, and it does not end without a node
    assert not jobs_of(cluster, space, "rest")
