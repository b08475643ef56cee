#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scripted HTTP server for what a real API server won't do on request.

    fake_api.py [--cert PEM --key PEM]

prints "PORT\n" and serves on 127.0.0.1 until standard input ends.  It knows nothing of Kubernetes:
tests post steps, and each request is answered by the first remaining step whose "match" (a regular
expression on "METHOD TARGET") matches; without one: 404.

    POST /_steps    [step, ...] are appended
    POST /_go/NAME  releases every answer that waits for NAME, now or later
    GET  /_log      {"requests": [{"request": "GET /x", "body": "...", "authorization": "...", ...}]}

A step:
    match, times (1; 0: for ever), status (200), headers {}
    body      text, or anything else, sent as JSON
    stream    instead of body, sent in chunks, a list of {"json": x} (a line), {"raw": text},
              {"wait": name} and {"repeat": text, "bytes": n}
    lines     [text, n]: that line n times in the head; trailers: likewise behind a stream
    pace      [bytes, milliseconds]: the answer, its headers and its last chunk are sent in pieces
              of that many bytes, each after a pause
    then      "end" (default), "cut" (close within the answer), "stall" (keep the socket, send
              nothing), "reset" (RST); with no status, before any answer
"""

import argparse
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


LOGGED_MAX = 16384  # of a body


class Script:
    """The steps and the log; shared by all connections."""

    def __init__(self):
        self.lock = threading.Condition()
        self.steps, self.log, self.gone = [], [], set()

    def take(self, request):
        with self.lock:
            for step in self.steps:
                if re.search(step["match"], request):
                    if step.get("times", 1) == 1:
                        self.steps.remove(step)
                    elif step.get("times", 1) > 1:
                        step["times"] -= 1
                    return step
        return None

    def go(self, name):
        with self.lock:
            self.gone.add(name)
            self.lock.notify_all()

    def wait(self, name):
        with self.lock:
            self.lock.wait_for(lambda: name in self.gone)


class Slow:
    """A file that writes in pieces."""

    def __init__(self, file, size, pause_ms):
        self.file, self.size, self.pause_s = file, size, pause_ms / 1000

    def write(self, data):
        for at in range(0, len(data), self.size):
            time.sleep(self.pause_s)
            self.file.write(data[at:at + self.size])
            self.file.flush()
        return len(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script = Script()

    def log_message(self, *args):
        pass

    def control(self, body):
        answer = {}
        if self.path == "/_steps":
            with self.script.lock:
                self.script.steps.extend(json.loads(body))
        elif self.path.startswith("/_go/"):
            self.script.go(self.path[5:])
        else:
            with self.script.lock:
                answer = {"requests": list(self.script.log)}
        self.whole(200, {}, json.dumps(answer).encode())

    def whole(self, status, headers, data):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def part(self, part):
        if "wait" in part:
            self.script.wait(part["wait"])
        elif "json" in part:
            self.chunk(json.dumps(part["json"]).encode() + b"\n")
        elif "repeat" in part:
            piece = part["repeat"].encode() * 4096
            for _ in range(part["bytes"] // len(piece) + 1):
                self.chunk(piece)
        else:
            self.chunk(part["raw"].encode())

    def lines(self, step, where):
        text, count = step.get(where, ("", 0))
        self._headers_buffer = getattr(self, "_headers_buffer", [])
        self._headers_buffer.extend([text.encode() + b"\r\n"] * count)

    def streamed(self, step):
        self.send_response(step.get("status", 200))
        self.send_header("Transfer-Encoding", "chunked")
        self.lines(step, "lines")
        self.end_headers()
        self.wfile.flush()
        for part in step["stream"]:
            self.part(part)
        if step.get("then", "end") == "end":
            self.wfile.write(b"0\r\n")
            self.lines(step, "trailers")
            self.end_headers()

    def finish_step(self, then):
        if then == "stall":
            self.script.wait("end")
        if then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
        if then != "end":
            self.close_connection = True
            if then == "reset":
                # Closing the files after the socket makes it a reset.
                self.connection.close()

    def answer(self, step):
        body = step.get("body", "")
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        if "stream" in step:
            self.streamed(step)
        elif "status" in step or "then" not in step:
            if step.get("then") == "cut":
                self.send_response(step["status"])
                self.send_header("Content-Length", str(len(data) + 10))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
            else:
                self.whole(step.get("status", 200), step.get("headers", {}), data)
        self.finish_step(step.get("then", "end"))

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path.startswith("/_"):
            self.control(body)
            return
        request = f"{self.command} {self.path}"
        with self.script.lock:
            self.script.log.append({"request": request, "body": body[:LOGGED_MAX],
                                    "host": self.headers.get("Host", ""),
                                    "traceparent": self.headers.get("traceparent", ""),
                                    "agent": self.headers.get("User-Agent", ""),
                                    "authorization": self.headers.get("Authorization", "")})
        step = self.script.take(request)
        if step is None:
            self.whole(404, {}, b'{"kind":"Status","message":"no step fits","reason":"NotFound"}')
            return
        plain = self.wfile
        try:
            if "pace" in step:
                self.wfile = Slow(plain, *step["pace"])
            self.answer(step)
        except OSError:
            self.close_connection = True
        finally:
            self.wfile = plain

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cert")
    arguments.add_argument("--key")
    options = arguments.parse_args()
    server = Server(("127.0.0.1", 0), Handler)
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
