# SPDX-License-Identifier: Apache-2.0
"""What a client without credentials can do to the admission port's memory during honest reviews.

A peer has tls(source, timeout) and https(timeout), as support.webhook.Webhook."""

import concurrent.futures
import contextlib
import http.client
import socket
import ssl
import threading

from . import tls13
from .webhook import JSON, VALIDATE, as_bytes, ask, raw_post, read_reply, review

BODY_MAX = 7 << 20
GOOD = as_bytes(review())
ALL = 40  # honest reviews during each attack
STRANGERS = [f"127.0.0.{number}" for number in range(2, 10)]


class Port:
    """A peer: the admission port of a steward, whose certificate is not verified."""

    def __init__(self, port):
        self.port = port
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def tls(self, source="127.0.0.1", timeout=30):
        """A connection after the handshake, for raw bytes."""
        sock = socket.create_connection(("127.0.0.1", self.port), timeout, (source, 0))
        return self.context.wrap_socket(sock)

    def https(self, timeout=30):
        """A kept connection."""
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context)


def honest(peer, times):
    """Sends `times` honest reviews, each on a connection of its own; how many were answered."""
    good = 0
    for _ in range(times):
        with contextlib.suppress(OSError, ssl.SSLError), contextlib.closing(peer.https(10)) as c:
            good += ask(c, "POST", VALIDATE, GOOD, JSON)[0] == 200
    return good


def flood(peer, clients, send):
    """Runs `send(socket)` on that many connections from another address, all kept until the end;
    returns how many of ALL honest reviews were answered, meanwhile and afterwards."""
    sockets, lock = [], threading.Lock()

    def work(count):
        for _ in range(count):
            with contextlib.suppress(OSError, ssl.SSLError):
                sock = peer.tls("127.0.0.2", 20)
                with lock:
                    sockets.append(sock)
                send(sock)
    threads = [threading.Thread(target=work, args=(clients // 8 + 1,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    got = honest(peer, ALL // 2)
    for thread in threads:
        thread.join()
    got += honest(peer, ALL // 2)
    for sock in sockets:
        sock.close()
    return got


def many_values(peer):
    """Bodies of [1,1,1...: parsed as values, each byte would take ten bytes of memory."""
    body = raw_post(b"[" + b"1," * (BODY_MAX // 2 - 2) + b"1]")

    def send(sock):
        sock.sendall(body)
        read_reply(sock)
    return flood(peer, 16, send)


def without_end(peer):
    """Bodies whose last byte is never sent."""
    body = raw_post(b" " * (BODY_MAX - 1), length=BODY_MAX)
    return flood(peer, 32, lambda sock: sock.sendall(body))


def a_little_each(peer):
    """1,000 connections with 64 KiB each."""
    body = raw_post(b" " * (64 << 10), length=(64 << 10) + 1)
    return flood(peer, 1000, lambda sock: sock.sendall(body))


# Connections that are held. Each function returns connect(source address) for hold().


def hold(count, connect):
    """Makes that many connections from STRANGERS; returns a context that closes them."""
    held = contextlib.ExitStack()

    def one(number):
        with contextlib.suppress(OSError, ssl.SSLError):
            return connect(STRANGERS[number % len(STRANGERS)])
        return None
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for each in pool.map(one, range(count)):
            if each:
                held.callback(each.close)
    return held


def _hello(size):
    message = (b"\x01" + size.to_bytes(3, "big") + b"\x03\x03" + b"r" * 32 + b"\0" + b"\0\2\x13\x01" + b"\1\0" +
               min(size - 44, 65535).to_bytes(2, "big") + b"\0" * (size - 45))
    pieces = [message[at:at + 16000] for at in range(0, len(message), 16000)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def silence(port):
    """Nothing."""
    return lambda source: socket.create_connection(("127.0.0.1", port), 30, (source, 0))


def unfinished_hello(port, size):
    """All but the last byte of a ClientHello of this size."""
    data = _hello(size)

    def connect(source):
        sock = socket.create_connection(("127.0.0.1", port), 30, (source, 0))
        with contextlib.suppress(OSError):
            sock.sendall(data)
        return sock
    return connect


def unfinished_message(port, kilobytes):
    """A request, and after its answer so much of a handshake message of 16 MiB."""
    def connect(source):
        client = tls13.Client(port, source)
        client.send(tls13.DATA, raw_post(GOOD))
        client.receive()
        with contextlib.suppress(OSError):
            client.send(tls13.HANDSHAKE, tls13.ENDLESS)
            for _ in range(kilobytes):
                client.send(tls13.HANDSHAKE, bytes(1000))
        return client
    return connect
