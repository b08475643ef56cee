# SPDX-License-Identifier: Apache-2.0
"""The external service of examples/externalthing, well-behaved or hostile."""

import contextlib
import http.server
import json
import threading

from . import net


class Service:
    """The external service: records by path, over HTTP on loopback.

    mode    "" (it works), "down" (status 503), "garbage", "huge", "never" (no answer), "redirect"
    """

    def __init__(self, token):
        self.token, self.port = token, net.free_port()
        self.records, self.calls, self.mode = {}, [], ""
        self.let_go = threading.Event()  # ends "never"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)

    @property
    def url(self):
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/api"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.let_go.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def methods(self):
        """The methods of the requests that it got."""
        return [method for method, _, _ in self.calls]

    def _handler(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def _answer(self, status, body=b"", **headers):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):  # the client has enough of it
                    self.wfile.write(body)

            def _do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                granted = self.headers.get("Authorization") == f"Bearer {service.token}"
                service.calls.append((self.command, self.path, granted))
                bad = {"down": lambda: self._answer(503, service.token.encode()),
                       "garbage": lambda: self._answer(200, b"\xff{[" + service.token.encode()),
                       "huge": lambda: self._answer(200, b'{"value": "' + b"x" * (64 << 20) + b'"}'),
                       "redirect": lambda: self._answer(302, Location="/elsewhere"),
                       "never": service.let_go.wait}
                if not granted:
                    self._answer(401)
                elif service.mode:
                    bad[service.mode]()
                else:
                    self._serve(body)

            def _serve(self, body):
                records, there = service.records, self.path in service.records
                if self.command == "PUT":
                    records[self.path] = json.loads(body)
                    self._answer(200 if there else 201)
                elif not there:
                    self._answer(404)
                elif self.command == "GET":
                    self._answer(200, json.dumps(records[self.path]).encode())
                else:
                    del records[self.path]
                    self._answer(204)

            do_GET = do_PUT = do_DELETE = _do

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                pass

        return Handler
