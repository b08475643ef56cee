# SPDX-License-Identifier: Apache-2.0
"""The digest behind a tag: from a real registry, and from registries that answer badly."""

import socket
import subprocess
import threading
import time

import pytest

from support import paths, registrydouble

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def probe(listed, *args, seconds=60):
    """The lines of registry_probe."""
    done = subprocess.run([paths.build() / "tests" / "integration" / "registry_probe", listed, *args],
                          capture_output=True, text=True, timeout=seconds, check=True)
    return done.stdout.splitlines()


@pytest.fixture(name="double")
def make_double():
    """A registry that the test plays with one tag."""
    one = registrydouble.Double({"team/app:1": A})
    yield one
    one.close()


@pytest.mark.skipif(not registrydouble.program(), reason="needs docker-registry")
def test_digest_from_a_real_registry(tmp_path):
    """A tag, and where it moves to; what a real registry does not have."""
    with registrydouble.Real(tmp_path).serve() as real:
        first = real.push("team/app", "1", b"one")
        image = f"{real.host}/team/app"
        assert probe(f"http://{real.host}", f"{image}:1") == [first]
        second = real.push("team/app", "1", b"two")
        assert second != first
        assert probe(f"http://{real.host}", f"{image}:1", f"{image}", f"{image}@{first}") == [
            second, f"NotFound registry {real.host} has no such tag", "not asked"]


def test_one_head_request_without_credentials_is_sent(double):
    """One HEAD, without credentials; within a round once, in another one again."""
    image = f"{double.host}/team/app:1"
    assert probe(f"http://{double.host}", image, image, "2", image) == [A, A, A]
    assert double.heads() == ["team/app:1"] * 2
    headers = double.requests[0][2]
    assert set(headers) == {"Host", "Accept"}
    assert "application/vnd.oci.image.index.v1+json" in headers["Accept"]
    assert "application/vnd.docker.distribution.manifest.list.v2+json" in headers["Accept"]


def test_image_names_map_to_registries(double):
    """A domain that is asked elsewhere, and images without one."""
    double.tags = {"library/nginx:latest": B, "team/app:1": A}
    assert probe(f"default=http://{double.host},r.example.com=http://{double.host}", "nginx",
                 "r.example.com/team/app:1", "r.example.com/nginx") == [B, A, B]


def test_no_other_host_is_contacted(double):
    """By any of its names."""
    other = registrydouble.Double({"team/app:1": B})
    port = double.server_address[1]
    images = [f"{other.host}/team/app:1", f"localhost:{port}/team/app:1", "team/app:1", "app",
              f"{double.host}@{other.host}/team/app:1", f"127.0.0.2:{port}/team/app:1",
              f"http://{double.host}/team/app:1", f"{double.host}/../team/app:1",
              f"{double.host}/team/app:1@{A}"]
    assert probe(f"http://{double.host}", *images) == ["not asked"] * len(images)
    assert (double.connections, other.connections) == (0, 0)
    other.close()


# --- tokens


def test_token_is_requested_for_one_repository(double):
    """From the realm, for reading this repository only."""
    double.token, double.realm = "s3cret.t0ken", f"http://{double.host}/token"
    assert probe(f"http://{double.host}", f"{double.host}/team/app:1") == [A]
    assert [(m, p) for m, p, _ in double.requests] == [
        ("HEAD", "/v2/team/app/manifests/1"),
        ("GET", "/token?service=double&scope=repository%3Ateam%2Fapp%3Apull"),
        ("HEAD", "/v2/team/app/manifests/1")]
    assert "Authorization" not in double.requests[1][2]


def test_refused_token_is_tried_once(double):
    """It is tried once."""
    double.token, double.realm = "good", f"http://{double.host}/token"
    double.fault = lambda h: h.path.startswith("/token") and (
        h.reply(200, body=b'{"token": "bad"}') or True)
    [line] = probe(f"http://{double.host}", f"{double.host}/team/app:1")
    assert line.startswith("Forbidden ") and "anonymous" in line
    assert len(double.requests) == 3


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_token_realm_on_another_host_is_refused(double, scheme):
    """A registry cannot direct steward to another host."""
    victim = registrydouble.Double()
    double.token, double.realm = "x", f"{scheme}://{victim.host}/token"
    [line] = probe(f"http://{double.host}", f"{double.host}/team/app:1")
    assert line == (f"Forbidden registry {double.host} wants a token from a server that is not "
                    "listed")
    assert victim.connections == 0
    victim.close()


@pytest.mark.parametrize("body", [
    b"", b"[]", b'{"token": 1}', b'{"token": "a\\r\\nX: y"}', b'{"token": "' + b"x" * 20000 + b'"}',
    b"{" * 60000])
def test_malformed_token_is_not_sent(double, body):
    """The registry gets nothing of it."""
    double.token, double.realm = "x", f"http://{double.host}/token"
    double.fault = lambda h: h.path.startswith("/token") and (h.reply(200, body=body) or True)
    [line] = probe(f"http://{double.host}", f"{double.host}/team/app:1")
    assert line == f"Invalid the token for registry {double.host} is malformed"
    assert len(double.requests) == 2


def test_refused_token_affects_one_repository(double):
    """The token server refuses one repository: tags of others are read in the same round."""
    double.tags["team/other:1"] = B
    double.token, double.realm = "x", f"http://{double.host}/token"
    double.fault = lambda h: h.path.startswith("/token") and "team%2Fapp" in h.path and (
        h.reply(503) or True)
    assert probe(f"http://{double.host}", f"{double.host}/team/app:1",
                 f"{double.host}/team/other:1") == [
                     f"Unavailable registry {double.host} answers 503", B]


# --- hostile registries


def chunks(handler):
    """A token that never ends."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"1000\r\n" + b" " * 4096 + b"\r\n")


def test_endless_token_is_limited(double):
    """It has a limit."""
    double.token, double.realm = "x", f"http://{double.host}/token"
    double.fault = lambda h: h.path.startswith("/token") and (chunks(h) or True)
    [line] = probe(f"http://{double.host}", f"{double.host}/team/app:1")
    assert line == f"TooLarge registry {double.host} answers too much"


@pytest.mark.parametrize("status, headers, said", [
    (200, {}, "Invalid registry HOST answers without a digest"),
    (200, {"Docker-Content-Digest": "sha256:short"},
     "Invalid registry HOST answers without a digest"),
    (200, {"Docker-Content-Digest": "sha256:" + "A" * 64},
     "Invalid registry HOST answers without a digest"),
    (200, {"Docker-Content-Digest": "sha512:" + "a" * 128},
     "Invalid registry HOST answers without a digest"),
    (401, {}, "Forbidden registry HOST does not let anonymous clients read it"),
    (401, {"WWW-Authenticate": 'Basic realm="r"'},
     "Forbidden registry HOST does not let anonymous clients read it"),
    (403, {}, "Forbidden registry HOST does not let anonymous clients read it"),
    (404, {"Docker-Content-Digest": A}, "NotFound registry HOST has no such tag"),
    (429, {}, "Throttled registry HOST limits requests"),
    (500, {}, "Unavailable registry HOST answers 500"),
    (204, {"Docker-Content-Digest": A}, "Invalid registry HOST answers 204"),
    (200, {f"X-{i}": "x" * 30000 for i in range(3)}, "TooLarge registry HOST answers too much"),
])
def test_invalid_answer_gives_no_digest(double, status, headers, said):
    """The digest is not known, and nothing of the answer is repeated."""
    double.fault = lambda h: h.reply(status, headers) or True
    assert probe(f"http://{double.host}", f"{double.host}/team/app:1") == [
        said.replace("HOST", double.host)]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(double, status):
    """None is followed."""
    victim = registrydouble.Double({"team/app:1": B})
    double.fault = lambda h: h.reply(status, {
        "Location": f"http://{victim.host}/v2/team/app/manifests/1",
        "Docker-Content-Digest": A}) or True
    assert probe(f"http://{double.host}", f"{double.host}/team/app:1") == [
        f"Invalid registry {double.host} redirects, which is not followed"]
    assert victim.connections == 0
    victim.close()


def test_unreachable_registry_is_tried_once(double):
    """Nothing listens, and the second image of the round is not tried."""
    double.close()
    lines = probe(f"http://{double.host}", f"{double.host}/team/app:1", f"{double.host}/b")
    assert len(set(lines)) == 1
    assert lines[0].startswith(f"Unavailable registry {double.host} cannot be reached: ")


def test_https_is_required_by_default(double):
    """Without http:// in the list, a registry is asked by HTTPS only."""
    [line] = probe(double.host, f"{double.host}/team/app:1")
    assert line.startswith(f"Unavailable registry {double.host} cannot be reached: ")
    assert double.requests == []


def test_silent_registry_times_out_once_a_round():
    """Ten seconds at most, once in a round."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []
        threading.Thread(target=lambda: accepted.append(server.accept()), daemon=True).start()
        host = f"127.0.0.1:{server.getsockname()[1]}"
        before = time.monotonic()
        lines = probe(f"http://{host}", *(f"{host}/a:{i}" for i in range(20)))
        assert 9 < time.monotonic() - before < 15
        assert len(accepted) == 1
        assert lines[0].startswith(f"Timeout registry {host} cannot be reached: ")
        assert {line.split(" ", 1)[1] for line in lines} == {lines[0].split(" ", 1)[1]}


def test_silent_registry_does_not_delay_others(double):
    """Questions to others are answered meanwhile, and those to itself share the wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        before = time.monotonic()
        lines = probe(f"http://{host},http://{double.host}", "together", f"{host}/a:1",
                      f"{host}/a:2", f"{host}/a:3", f"{double.host}/team/app:1",
                      f"{double.host}/team/app:1")
        assert time.monotonic() - before < 15
        assert all(line.startswith(("Timeout ", "Unavailable ")) for line in lines[:3])
        assert lines[3:] == [A, A]
        assert double.heads() == ["team/app:1"]


def test_slow_trickle_ends_at_the_deadline(double):
    """The deadline is that of the whole question."""
    def drip(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for i in range(1000):
            handler.wfile.write(b"X-%d: y\r\n" % i)
            time.sleep(0.1)
        return True
    double.fault = drip
    before = time.monotonic()
    [line] = probe(f"http://{double.host}", f"{double.host}/team/app:1")
    assert line.startswith("Timeout ") and time.monotonic() - before < 15
