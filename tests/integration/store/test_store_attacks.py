# SPDX-License-Identifier: Apache-2.0
"""A user names as a store what only steward's machine can reach: nothing may be sent there, and no
response from there may reach the user."""

import http.server
import json
import os
import socket
import subprocess
import threading
from xml.sax.saxutils import escape

import pytest

from support import endless, paths, s3, s3double, storeprobe


class Victim(http.server.ThreadingHTTPServer):
    """Records connections, and responds with a secret, with a redirect to `location`, or `body`."""

    daemon_threads = True
    TEXT = "the-victims-own-words"

    def __init__(self, address="127.0.0.1", location=None, body=None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 0), _Answer)
        self.location, self.body, self.calls = location, body, []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self):
        """Its port."""
        return self.server_address[1]

    def get_request(self):
        """Records a connection."""
        self.calls.append("connection")
        return super().get_request()

    def close(self):
        """Closes the port."""
        self.shutdown()
        self.server_close()


class _Answer(http.server.BaseHTTPRequestHandler):
    def _answer(self):
        if self.server.location:
            self.send_response(307, Victim.TEXT)
            self.send_header("Location", self.server.location)
            self.end_headers()
            return
        if self.server.body is not None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.body)))
            self.end_headers()
            self.wfile.write(self.server.body)
            return
        body = (f"<Error><Code>{Victim.TEXT}</Code><Message>{Victim.TEXT}</Message></Error>").encode()
        self.send_response(403, Victim.TEXT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_CONNECT = _answer

    def log_message(self, *_):
        """Prints nothing."""


@pytest.fixture
def victim():
    one = Victim()
    yield one
    one.close()


def listing(scratch, endpoint, reach, env=None):
    """The output of `store_probe list` for this endpoint, with `reach` as the operator's list."""
    config = scratch / "config.json"
    config.write_text(json.dumps({
        "endpoint": endpoint, "region": "us-east-1", "bucket": "b", "path_style": True,
        "credentials": s3.CREDENTIALS, "timeout_ms": 2000, **({"reach": reach} if reach else {})}))
    done = subprocess.run([paths.build() / "tests" / "integration" / "store_probe", config, "list", "p"],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})
    return json.loads(done.stdout)


@pytest.mark.parametrize("host", [
    "127.0.0.1", "localhost", "0.0.0.0", "0", "127.1", "2130706433", "0x7f000001", "017700000001",
    "127.0.0.2", "[::ffff:127.0.0.1]", "[::127.0.0.1]"])
def test_loopback_address_in_any_spelling_is_refused(victim, tmp_path, host):
    """The name is resolved first; the address of the socket is checked."""
    said = listing(tmp_path, f"http://{host}:{victim.port}", "*")
    assert not victim.calls
    assert victim.TEXT not in json.dumps(said)
    assert said["trouble"] in ("EndpointNotAllowed", "ConnectFailed"), said
    if host in ("127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"):
        assert said["trouble"] == "EndpointNotAllowed", said


def test_attack_works_without_the_address_rule(victim, tmp_path):
    """Proves that the attack is possible: without the list the victim's response is returned."""
    said = listing(tmp_path, f"http://127.0.0.1:{victim.port}", None)
    assert victim.calls and victim.TEXT in said["error"]


def test_redirect_is_not_followed(victim, tmp_path):
    """From an allowed store to one that is not."""
    other = Victim("127.0.0.2")
    store = Victim("127.0.0.1", location=f"http://127.0.0.2:{other.port}/b?list-type=2")
    try:
        said = listing(tmp_path, f"http://127.0.0.1:{store.port}", "127.0.0.1")
        assert store.calls and not other.calls and not victim.calls
        assert "307" in said["error"] and victim.TEXT not in said["error"]
    finally:
        store.close()
        other.close()


def test_proxy_is_not_used_for_user_endpoints(victim, tmp_path):
    """The proxy would resolve the name, and the address would not be checked."""
    proxy = f"http://127.0.0.1:{victim.port}"
    env = {"http_proxy": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "no_proxy": ""}
    said = listing(tmp_path, "http://localhost:9", "*", env)
    assert not victim.calls and said["trouble"] == "EndpointNotAllowed"
    listing(tmp_path, "http://store.invalid:9", "*,store.invalid", env)
    assert victim.calls  # a host that the operator named is reached through the proxy


def test_response_text_of_a_store_is_not_reported(victim, tmp_path):
    """Only the status code: the error message is stored in an object that its user can read."""
    said = listing(tmp_path, f"http://127.0.0.1:{victim.port}", "127.0.0.1")
    assert victim.calls and said["trouble"] == "AccessDenied"
    assert victim.TEXT not in json.dumps(said) and "403" in said["error"]


@pytest.mark.parametrize("region", ["the-victims-own-words", "x", "Eu-West-1", "eu-1'\"; <b>", "e" * 40 + "-1"])
def test_malformed_region_of_a_store_is_not_reported(tmp_path, region):
    """Only what has the form of a region reaches the user."""
    double = s3double.S3Double()

    def fault(request):
        request._answer(400, f"<Error><Code>AuthorizationHeaderMalformed</Code><Region>{escape(region)}</Region>"
                        f"<Endpoint>s3.{escape(region)}.amazonaws.com</Endpoint></Error>".encode())
        return "answered"

    double.fault = fault
    try:
        said = listing(tmp_path, double.url, "127.0.0.1")
    finally:
        double.close()
    assert said["trouble"] == "StoreFailed" and "AuthorizationHeaderMalformed" in said["error"], said
    assert region == "x" or region not in said["error"]
    assert "the bucket is in" not in said["error"]


@pytest.mark.parametrize("address", ["169.254.169.254", "[fe80::1]", "224.0.0.1", "[ff02::1]",
                                     "100.100.100.200", "[64:ff9b::a9fe:a9fe]"])
def test_special_addresses_are_refused(tmp_path, address):
    """Addresses where no test server can listen: refused at once, by their class."""
    said = listing(tmp_path, f"http://{address}:80", "*")
    assert said["trouble"] == "EndpointNotAllowed", said


def test_excluded_address_is_refused(victim, tmp_path):
    """Like the API server's own address."""
    said = listing(tmp_path, f"http://127.0.0.1:{victim.port}", "127.0.0.0/8,!127.0.0.1")
    assert not victim.calls and said["trouble"] == "EndpointNotAllowed"


def laughs(depth):
    """An entity that would expand to 10 ** depth characters."""
    inner = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, depth))
    return f'<!DOCTYPE l [<!ENTITY e0 "0123456789">{inner}]><l>&e{depth - 1};</l>'.encode()


@pytest.mark.parametrize("kind", endless.START)
def test_endless_response_head_is_limited(tmp_path, kind):
    """Heads, interim responses and trailers are not kept beyond a limit."""
    with endless.Endless(kind) as server:
        said = listing(tmp_path, server.url, None)
        assert said["trouble"] == "StoreFailed" and "the head or the trailers" in said["error"], said
        assert server.sent < server.most


def test_overlong_answer_is_an_error(tmp_path):
    """To a request that lists nothing."""
    store = Victim(body=b"<x>" + b" " * 100_000 + b"</x>")
    probe = storeprobe.Probe(tmp_path, endpoint=f"http://127.0.0.1:{store.port}", region="us-east-1", bucket="b",
                             path_style=True, credentials=s3.CREDENTIALS, timeout_ms=2000)
    try:
        said = probe("delete", "k", fails="StoreFailed")
    finally:
        store.close()
    assert "too long" in said["error"], said


@pytest.mark.parametrize("body, why", [
    pytest.param(laughs(9), "it has a DTD", id="laughs"),
    pytest.param(b'<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l><Name>&x;</Name></l>',
                 "it has a DTD", id="external"),
    pytest.param(b"<l>" * 1_000_000, "elements are nested too deep", id="deep"),
    pytest.param(b"<l><Name>" + b"x" * 4_000_000 + b"</Name></l>", "a text is too long", id="text"),
    pytest.param(b"<l x='" + b"x" * 4_000_000 + b"'/>", "it needs too much memory", id="tag"),
    pytest.param(b"<l>" + b"".join(b"<n%d/>" % i for i in range(700_000)) + b"</l>",
                 "it needs too much memory", id="names"),
    pytest.param(b"<ListBucketResult><Contents><Key>k", "not the XML of S3", id="cut"),
    pytest.param(b"<ListBucketResult><Name>\xff</Name></ListBucketResult>", "not well-formed",
                 id="encoding"),
])
def test_hostile_xml_is_an_error(tmp_path, body, why):
    """An answer that would fill the memory, or read files, is an error of the store."""
    store = Victim(body=body)
    try:
        said = listing(tmp_path, f"http://127.0.0.1:{store.port}", None)
    finally:
        store.close()
    assert said["trouble"] == "StoreFailed" and why in said["error"], said
