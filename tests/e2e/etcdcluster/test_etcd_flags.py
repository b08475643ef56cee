# SPDX-License-Identifier: Apache-2.0
"""The options that steward passes to a member, compared with those of each etcd version: with an
unknown option, etcd exits with status 2 on every start."""

import re
import subprocess

import pytest
from support import etcd, paths, versions
from support import etcdcluster as ecs
from support.etcdlocal import LocalEtcd

pytestmark = pytest.mark.usefixtures("pods_stay_pending")

HEADER = (paths.TOP / "lib" / "etcd" / "release.h").read_text("utf-8")
OPTIONS = {"quotaBackendBytes": "64Mi", "autoCompactionMode": "periodic", "autoCompactionRetention": "1h",
           "snapshotCount": 5000, "heartbeatIntervalMs": 100, "electionTimeoutMs": 1000}


def known_options(line):
    """{name: its description in `etcd --help`}"""
    text = subprocess.run([etcd.program(line), "--help"], capture_output=True, text=True, timeout=30,
                          check=False)
    parts = re.split(r"^  --([a-z0-9-]+)", text.stdout + text.stderr, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("line", sorted(etcd.versions()))
def test_member_options_are_known_to_each_version(controller, installed, namespace, tmp_path, line):
    """With all options of the spec; the member starts."""
    assert controller.running()
    gates = {"feature-gates": "CompactHashCheck=true"} if line >= "3.6" else {}
    with LocalEtcd(installed, namespace, tmp_path) as ec:
        ec.apply(size=1, version=ecs.version(line), storage={"medium": "Persistent"},
                 TLS={"auto": {"provider": "Steward"}}, options={**OPTIONS, "extraArgs": gates})
        pod = ec.wait_pod()
        args = pod["spec"]["containers"][0]["args"]
        names = [arg[2:].partition("=")[0] for arg in args]
        known = known_options(line)
        assert len(names) == len(set(names)), "etcd ends when it is told the same twice"
        assert [n for n in names if n not in known] == []
        assert [n for n in names if "Deprecated in" in known[n]] == []
        assert ("experimental-initial-corrupt-check" in names) == (line < "3.6")
        ec.run(pod)
        ec.wait_settled(1)


def test_newest_and_default_version_are_tested():
    """The newest tested version according to admission, and the default version."""
    assert re.search(r'STW_ETCD_TESTED\s+"([\d.]+)"', HEADER)[1] == versions.newest("ETCD")
    assert re.search(r'STW_ETCD_VERSION\s+"([\d.]+)"', HEADER)[1] in versions.table()["ETCD"]
