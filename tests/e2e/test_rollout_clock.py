# SPDX-License-Identifier: Apache-2.0
"""The clock of the node steps by a day under a stream of calls.

It is steward's clock that does (libfaketime), in processes beside the cluster: that of the machine,
which the API server goes by, stays as it is.
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
    """The API server's certificate is not looked at: it is minutes old here, and so not valid yet by
    a clock that is behind."""
    with open(installed.kubeconfig_steward, encoding="utf-8") as file:
        config = json.load(file)
    config["clusters"][0]["cluster"].pop("certificate-authority-data")
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path = tmp_path / "unchecked"
    path.touch(0o600)
    path.write_text(json.dumps(config), "utf-8")
    monkeypatch.setattr(installed, "kubeconfig_steward", path)


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_the_clock_steps(installed, unchecked, steward_binary, tmp_path, clock, namespace, step):
    """The node's, and not the API server's: what is served stays valid, the leader leads on, and
    certificates that are made meanwhile are good for the others, too."""
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
        two.roll()  # those that start by the new clock find what the old ones left
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
