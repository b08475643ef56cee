# SPDX-License-Identifier: Apache-2.0
"""The memory that connections to each port of `steward run` can take, by clients without credentials,
in a control group with the shipped limit, less 32 MiB for the caches of 10,000 objects."""

import contextlib
import http.client
import socket
import ssl

import pytest

from support import attack, net, tls13, wait
from support.webhook import Webhook, as_bytes, inside_limit, make_pair, raw_post, review

MIB = 1 << 20
CONNECTIONS = 2000


class Run(Webhook):
    """`steward run` without an API server: all of its ports are open."""

    def __init__(self, binary, folder, join=None):
        super().__init__(binary, folder, join=join)
        config = folder / "kubeconfig"
        config.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
            "users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n")
        make_pair(folder / "metrics")
        self.command = [
            "run", "--kubeconfig", str(config), "--metrics-secure", "--webhook-memory=48",
            "--metrics-cert-path", str(folder / "metrics")]

    def is_up(self):
        return self.port and self.metrics_port

    @contextlib.contextmanager
    def reader(self):
        """A client of the metrics port."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with contextlib.closing(http.client.HTTPSConnection(
                "127.0.0.1", self.metrics_port, timeout=30, context=context)) as connection:
            yield connection

    def answers_all(self, times=5):
        """An honest client of each port is answered."""
        assert self.process.poll() is None, "the process was ended"
        assert attack.honest(self, times) == times
        for _ in range(times):
            with self.reader() as connection:
                connection.request("GET", "/metrics")
                assert connection.getresponse().status == 401
            assert net.http_get(f"http://127.0.0.1:{self.health_port}/healthz")[0] == 200


@pytest.fixture(scope="module")
def running(steward_binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with inside_limit(lambda join: Run(steward_binary, folder, join)) as one:
        yield one


@pytest.mark.parametrize("port", ["port", "metrics_port"])
@pytest.mark.parametrize("size", [15000, 1000000])
def test_unfinished_handshakes_take_bounded_memory(running, port, size):
    """GnuTLS keeps what has come of a message until all of it is there."""
    with attack.hold(CONNECTIONS, attack.unfinished_hello(getattr(running, port), size)):
        running.answers_all()


@pytest.mark.parametrize("port", ["port", "metrics_port"])
@pytest.mark.parametrize("kilobytes", [19, 1000])
def test_unfinished_late_handshakes_take_bounded_memory(running, port, kilobytes):
    """With TLS 1.3 a client may send handshake messages at any time, of up to 16 MiB each; here on
    connections that have had an answer, which hold most memory."""
    connect = attack.unfinished_message(getattr(running, port), kilobytes)
    with attack.hold(400, connect):
        running.answers_all()


def test_probe_is_answered_during_a_connection_flood(running):
    """While strangers hold more connections to the probe port than it takes, with half of a head."""
    def connect(source):
        sock = socket.create_connection(("127.0.0.1", running.health_port), 30, (source, 0))
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 3000)
        return sock
    with attack.hold(CONNECTIONS, connect):
        for _ in range(20):
            running.answers_all(1)


def test_tls_records_within_limits_are_served(running):
    """A body in the smallest and in the largest records is read to its end."""
    body = as_bytes(review())
    for size in (7, 16000):
        with contextlib.closing(tls13.Client(running.port)) as client:
            data = raw_post(body + b" " * 40000)
            head = len(data) - len(body) - 40000
            client.send(tls13.DATA, data[:head])
            for at in range(head, len(data), size):
                client.send(tls13.DATA, data[at:at + size])
            assert b"200 OK" in client.receive()


def test_all_connection_attacks_at_once_take_bounded_memory(running):
    """Each of these at each port, at the same time, and bodies without their end."""
    with attack.hold(200, attack.unfinished_hello(running.metrics_port, 15000)), \
            attack.hold(200, attack.unfinished_hello(running.health_port, 15000)), \
            attack.hold(500, attack.unfinished_hello(running.port, 15000)):
        assert attack.without_end(running) == attack.ALL
        wait.until("all ports to answer", lambda: running.answers_all(1) is None)
