# SPDX-License-Identifier: Apache-2.0
"""Ports on loopback, and HTTP requests to them."""

import random
import socket
import urllib.error
import urllib.request

# Below the ports of outgoing connections and of node ports, so that nothing else takes one.
PORTS = range(12000, 20000)
_claims = []


def free_port():
    """A TCP port without a listener, which no test run on this machine hands out again while this
    process lives."""
    while True:
        port = random.choice(PORTS)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0steward-test-port-{port}")  # released with this process
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port


def http_get(url, timeout=5):
    """(status, text) of a plain HTTP GET; status 0 and the reason without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
