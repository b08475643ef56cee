# SPDX-License-Identifier: Apache-2.0
"""HTTP servers that a test plays: on an address of this machine, in threads, with or without TLS."""

import http.server
import ssl
import threading


class Served(http.server.ThreadingHTTPServer):
    """Serves from its creation to close().  What the handler reads of a subclass is set before this
    constructor is called.  With a pair (a folder of tls.crt and tls.key) it uses TLS."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler, address="127.0.0.1", port=0, pair=None):
        super().__init__((address, port), handler)
        self.scheme = "https" if pair else "http"
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair / "tls.crt", pair / "tls.key")
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        """Its URL, without a path."""
        return f"{self.scheme}://{self.server_address[0]}:{self.server_address[1]}"

    def close(self):
        """Stops serving."""
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        """Ignores clients that go away."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Writes nothing to the terminal."""

    protocol_version = "HTTP/1.1"

    def reply(self, status=200, headers=None, body=b""):
        """One whole answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""
