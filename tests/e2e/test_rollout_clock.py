# SPDX-License-Identifier: Apache-2.0
"""The clock of the node steps by a day under a stream of calls.

It is steward's clock that does (libfaketime), in processes beside the cluster: that of the machine,
which the API server goes by, stays as it is.
"""

import pytest

from support import replicas as replica
from support import steward as stw
from support.stream import Stream

DAY = 86400


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_the_clock_steps(installed, steward_binary, tmp_path, clock, namespace, step):
    """The node's, and not the API server's: what is served stays valid, the leader leads on, and
    certificates that are made meanwhile are good for the others, too."""
    stw.uninstall_webhooks(installed)
    installed.delete("secret", "steward-webhook-server-cert", stw.NAMESPACE)
    with replica.beside(installed, steward_binary, tmp_path, clock) as two, \
            Stream(installed, namespace) as stream:
        leader = two.leader()
        clock.set(step)
        replica.rest(5)
        stream.flow(100)
        assert all(two.is_ready(n) for n in two.names())
        assert two.leader() == leader
        two.roll()  # those that start by the new clock find what the old ones left
        stream.flow(100)
        clock.set(0)
        replica.rest(3)
        two.roll()
        stream.flow(100)
        stream.check()
