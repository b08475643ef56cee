# SPDX-License-Identifier: Apache-2.0
"""A server whose answers have a head or trailers without an end."""

import contextlib
import socket
import threading

MIB = 1 << 20
LINES = b"X-Line: 0123456789abcdef\r\n" * 4096
START = {
    "head": b"HTTP/1.1 200 OK\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 4096,
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
}


class Endless:
    """`with Endless(kind)`: sends at most `most` bytes to each client; `sent`: to all of them."""

    def __init__(self, kind, most=64 * MIB):
        self.kind, self.most, self.sent = kind, most, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client):
        with client, contextlib.suppress(OSError):
            client.settimeout(30)
            client.recv(65536)
            client.sendall(START[self.kind])
            more = START[self.kind] if self.kind == "interim" else LINES
            for _ in range(self.most // len(more)):
                client.sendall(more)
                self.sent += len(more)
