# SPDX-License-Identifier: Apache-2.0
"""The Service of a webhook, for stewards that are processes: one port in front of several."""

import contextlib
import itertools
import selectors
import socket
import threading

from . import net


class Service:
    """Forwards each connection to one of `ports`, in turn, and keeps it when that port is removed,
    as iptables rules do."""

    def __init__(self):
        self.port, self.ports = net.free_port(), []
        self.turns, self.lock = itertools.count(), threading.Lock()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self.unanswered = 0
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.over = self.dropping = False
        self.thread.start()

    def add(self, port):
        """Adds a port, which gets its share of new connections."""
        with self.lock:
            self.ports.append(port)

    def remove(self, port):
        """Removes a port: it gets no new connections."""
        with self.lock, contextlib.suppress(ValueError):
            self.ports.remove(port)

    def drop(self):
        """Ends all connections; new ones are forwarded."""
        self.dropping = True
        self._wake()

    def close(self):
        """Closes everything."""
        self.over = True
        self._wake()
        self.thread.join(timeout=10)

    def _wake(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            pass

    def _run(self):
        while not self.over:
            for key, _ in self.selector.select():
                if key.data is None:
                    self._admit(self.listener.accept()[0])
                elif key.fileobj.fileno() >= 0:
                    self._carry(key.fileobj, key.data)
            if self.dropping:
                self.dropping = False
                for key in [k for k in self.selector.get_map().values() if k.data]:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()

    def _admit(self, client):
        with self.lock:
            port = self.ports[next(self.turns) % len(self.ports)] if self.ports else 0
        try:
            server = socket.create_connection(("127.0.0.1", port), 5)
        except OSError:
            self.unanswered += 1
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(one, selectors.EVENT_READ, other)

    def _carry(self, one, other):
        data = b""
        with contextlib.suppress(OSError):
            data = one.recv(1 << 16)
            if data:
                other.sendall(data)
                return
        for end in (one, other):
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(end)
            end.close()
