# SPDX-License-Identifier: Apache-2.0
"""The clock of the node steps by a day under a stream of calls.

Only steward's clock does (libfaketime), in processes beside the cluster.  The clock of the machine,
which the API server uses, stays as it is.
"""

import json

import pytest

from support import certs
from support import replicas as replica
from support import steward as stw
from support.stream import Stream

DAY = 86400


@pytest.fixture
def unchecked(installed, tmp_path, monkeypatch):
    """The API server's certificate is not verified: a slow clock would predate it."""
    with open(installed.kubeconfig_steward, encoding="utf-8") as file:
        config = json.load(file)
    config["clusters"][0]["cluster"].pop("certificate-authority-data")
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path = tmp_path / "unchecked"
    path.touch(0o600)
    path.write_text(json.dumps(config), "utf-8")
    monkeypatch.setattr(installed, "kubeconfig_steward", path)


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_clock_step_fails_no_call(installed, unchecked, steward_binary, tmp_path, clock, namespace, step):
    """Only steward's clock: the served certificate stays valid, the leader keeps leading, and
    certificates issued meanwhile are valid for the other processes, too."""
    stw.uninstall_webhooks(installed)
    installed.delete("secret", certs.SECRET, stw.NAMESPACE)
    with replica.beside(installed, steward_binary, tmp_path, clock) as two, \
            Stream(installed, namespace) as stream:
        leader = two.leader()
        clock.set(step)
        replica.rest(5)
        stream.flow(100)
        assert all(two.is_ready(n) for n in two.names())
        assert two.leader() == leader
        two.roll()  # processes started by the new clock use what the old ones left
        stream.flow(50)
        old = certs.read(installed)["tls.crt"]
        installed.patch("secret", certs.SECRET, stw.NAMESPACE, {"data": {"tls.crt": ""}})
        certs.wait_other(installed, "tls.crt", old)
        stream.flow(50)
        clock.set(0)
        replica.rest(3)
        two.roll()
        stream.flow(50)
        stream.check()
