# SPDX-License-Identifier: Apache-2.0
"""Ports on loopback, and what answers there."""

import socket
import urllib.error
import urllib.request

_handed_out = set()


def free_port():
    """A TCP port nobody listens on, and that this run has not handed out before."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in _handed_out:
            _handed_out.add(port)
            return port


def http_get(url, timeout=5):
    """(status, text) of a plain HTTP GET; status 0 and the reason when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
