# SPDX-License-Identifier: Apache-2.0
"""Responses to invalid requests: a status code that shows whose fault it is, a metav1.Status with a
message, and never a crash."""

import contextlib
import json
import ssl

import pytest

from support import wait
from support.webhook import JSON, MUTATE, VALIDATE, as_bytes, ask, my_web, raw_post, read_reply, review

MIB = 1 << 20
BODY_MAX = 7 * MIB


@pytest.fixture(autouse=True)
def _alive(webhook):
    """After each test, the next valid review is answered."""
    yield
    status, reply = webhook.post(review())
    assert status == 200 and reply["response"]["allowed"], webhook.log_text()[-2000:]


def assert_status(reply, code, words=""):
    """Checks a metav1.Status of failure with a message."""
    assert reply["kind"] == "Status" and reply["apiVersion"] == "v1"
    assert reply["status"] == "Failure" and reply["code"] == code
    assert words in reply["message"]


@pytest.mark.parametrize("method, path, headers, body, code, words", [
    ("GET", "/", {}, None, 404, "no webhook on this path"),
    ("HEAD", "/", {}, None, 404, ""),
    ("POST", "/", JSON, b"{}", 404, "no webhook on this path"),
    ("POST", VALIDATE + "/", JSON, b"{}", 404, ""),
    ("POST", VALIDATE.upper(), JSON, b"{}", 404, ""),
    ("POST", "/validate-operator-k8s-summit-org-v2-myweb", JSON, b"{}", 404, ""),
    ("GET", VALIDATE, {}, None, 405, "POST"),
    ("HEAD", VALIDATE, {}, None, 405, ""),
    ("PUT", MUTATE, JSON, b"{}", 405, "POST"),
    ("DELETE", VALIDATE, {}, None, 405, "POST"),
    ("POST", VALIDATE, {}, b"{}", 415, "application/json"),
    ("POST", VALIDATE, {"Content-Type": "text/plain"}, b"{}", 415, "application/json"),
    ("POST", VALIDATE, {"Content-Type": "application/jsonp"}, b"{}", 415, ""),
    ("POST", VALIDATE, {"Content-Type": "application/yaml"}, b"a: 1", 415, ""),
    ("POST", VALIDATE, JSON, b"", 400, "not valid JSON"),
])
def test_http_errors_have_codes_and_messages(webhook, method, path, headers, body, code, words):
    """Paths, methods and content types."""
    status, reply_headers, reply = webhook.request(method, path, body, headers)
    assert status == code
    if method != "HEAD":
        assert_status(reply, code, words)
        assert reply_headers["Content-Type"] == "application/json"
    assert ("Allow" in reply_headers) == (code == 405)


@pytest.mark.parametrize("content_type", [
    "application/json", "Application/JSON", "application/json; charset=utf-8",
    "application/json;charset=UTF-8"])
def test_content_type_may_have_parameters(webhook, content_type):
    """Only the media type itself matters."""
    assert webhook.post(review(), headers={"Content-Type": content_type})[0] == 200


GOOD = as_bytes(review())


@pytest.mark.parametrize("body, words", [
    (GOOD[:-1], "line 1"),
    (GOOD[:len(GOOD) // 2], ""),
    (GOOD + b"x", ""),
    (b"\xef\xbb\xbf" + GOOD, ""),
    (b"null", ""), (b"7", ""), (b'"text"', ""),
    (b"[" * 100000, ""),
    (b'{"a":' * 100000, ""),
    (GOOD.replace(b'"uid"', b'"uid": "x", "uid"'), ""),
    (GOOD.replace(b'"uid"', b'"\\u0075id": "x", "uid"'), ""),
    (GOOD.replace(b"hello", b"\xff\xfe"), ""),
    (GOOD.replace(b"hello", b"\xc0\xaf"), ""),
    (GOOD.replace(b"hello", b"\xed\xa0\x80"), ""),
    (GOOD.replace(b"hello", b"\\ud800"), ""),
    (GOOD.replace(b"hello", b"a\x00b"), ""),
    (GOOD.replace(b"false", b"1e999"), ""),
    (GOOD.replace(b"false", b"99999999999999999999"), ""),
])
@pytest.mark.parametrize("path", [VALIDATE, MUTATE])
def test_body_that_is_not_json_is_a_400(webhook, path, body, words):
    """A 400 that names the position, for both webhooks."""
    status, reply = webhook.post(body, path)
    assert status == 400
    assert_status(reply, 400, words)
    assert "not valid JSON" in reply["message"] or "AdmissionReview" in reply["message"]


def nested(levels):
    """Text of that many lists in each other."""
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("field, value, words", [
    ("pageContentHtml", '"a\\u0000b"', "must not contain a NUL character"),
    ("image", '"a\\u0000b"', "must not contain a NUL character"),
    ("nodePortNumber", "100000000000000000000", "must be an integer"),
    ("replicas", "-9223372036854775809", "must be an integer"),
    ("resources", '{"limits": {"cpu": ' + nested(9990) + '}}', "must"),
    ("resources", '{"limits": {"a\\u0000": 1}}', "must not have a key with a NUL character"),
    ("image", nested(9990), "must be a string"),
], ids=lambda value: value[:12])
@pytest.mark.parametrize("path", [VALIDATE, MUTATE])
def test_unusual_json_values_are_findings_at_their_field(webhook, path, field, value, words):
    """NUL, large integers and deep values: a denial with the field's path, not a failed webhook."""
    body = as_bytes(review(my_web(**{field: "VALUE"}))).replace(b'"VALUE"', value.encode())
    status, reply = webhook.post(body, path)
    assert status == 200 and not reply["response"]["allowed"]
    causes = reply["response"]["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes if words in cause["message"]][0].startswith(f"spec.{field}")


@pytest.mark.parametrize("path", [VALIDATE, MUTATE])
def test_nul_in_an_annotation_is_accepted(webhook, path):
    """The API server stores it in an annotation; it is not this webhook's to refuse."""
    obj = my_web()
    obj["metadata"]["annotations"] = {"example.org/note": "a\x00b"}
    status, reply = webhook.post(review(obj), path)
    assert status == 200 and reply["response"]["allowed"]


@pytest.mark.parametrize("uid", [None, 7, 1.5, True, [], {}, "", "x" * 65])
def test_review_uid_of_wrong_type_is_refused(webhook, uid):
    """The response must contain the UID of the request; an unusable one is refused."""
    status, reply = webhook.post(review(uid=uid))
    assert status == 400
    assert_status(reply, 400, "request.uid")


WRONG = [None, True, 7, -1.5, "text", [], ["x"], {}, {"a": 1}]


@pytest.mark.parametrize("value", WRONG, ids=json.dumps)
def test_spec_of_wrong_type_is_reported(webhook, value):
    """Both webhooks report it with the same message; the mutating one repairs nothing."""
    obj = {**my_web(), "spec": value}
    status, reply = webhook.post(review(obj))
    assert status == 200 and not reply["response"]["allowed"]
    assert reply["response"]["status"]["code"] == 422
    assert all(cause["field"].startswith("spec")
               for cause in reply["response"]["status"]["details"]["causes"])
    status, mutated = webhook.post(review(obj), MUTATE)
    assert status == 200 and "patch" not in mutated["response"]
    assert mutated["response"]["status"] == reply["response"]["status"]


@pytest.mark.parametrize("field", [
    "image", "nodePortNumber", "pageContentHtml", "replicas", "containerPort", "mountPath",
    "contentUpdate", "resources", "imagePullSecrets", "securityContext"])
@pytest.mark.parametrize("value", WRONG, ids=json.dumps)
def test_field_of_wrong_type_is_not_repaired(webhook, field, value):
    """No value of a wrong type is repaired, and none crashes the program."""
    obj = my_web(**{field: value})
    status, mutated = webhook.post(review(obj), MUTATE)
    assert status == 200
    status, reply = webhook.post(review(obj))
    assert status == 200
    assert mutated["response"]["allowed"] == reply["response"]["allowed"]
    if not reply["response"]["allowed"]:
        causes = reply["response"]["status"]["details"]["causes"]
        assert {cause["field"].split(".")[1].split("[")[0] for cause in causes} == {field}


@pytest.mark.parametrize("where", ["object", "oldObject", "userInfo", "kind", "resource", "name",
                                   "namespace", "operation", "dryRun", "subResource", "options"])
@pytest.mark.parametrize("value", WRONG, ids=json.dumps)
def test_request_member_of_wrong_type_is_answered(webhook, where, value):
    """Answered, or refused with a message."""
    status, reply = webhook.post(review(**{where: value}))
    assert status in (200, 400)
    if status == 400:
        assert_status(reply, 400, f"request.{where}")


def test_denial_lists_all_findings(webhook):
    """One denial lists all errors, in the message and as causes."""
    _, reply = webhook.post(review(my_web(image="No Image", nodePortNumber=80, replicas="two")))
    status = reply["response"]["status"]
    fields = [cause["field"] for cause in status["details"]["causes"]]
    assert sorted(fields) == ["spec.image", "spec.nodePortNumber", "spec.replicas"]
    assert all(field in status["message"] for field in fields)
    assert status["reason"] == "Invalid" and status["code"] == 422


def test_oversized_content_length_is_refused_early(webhook):
    """Refused by its head, before the body is sent."""
    with webhook.tls() as sock:
        sock.sendall(raw_post(b"", length=BODY_MAX + 1))
        status, body = read_reply(sock)
    assert status == 413
    assert_status(json.loads(body), 413, "larger")


def test_largest_allowed_body_is_read(webhook):
    """Just below the limit it is read, and then parsed."""
    status, reply = webhook.post(b" " * BODY_MAX)
    assert status == 400
    assert_status(reply, 400)


def test_chunked_body_is_reassembled(webhook):
    """Chunks of any size are reassembled."""
    with contextlib.closing(webhook.https()) as connection:
        pieces = [GOOD[i:i + 7] for i in range(0, len(GOOD), 7)]
        connection.request("POST", VALIDATE, iter(pieces), JSON, encode_chunked=True)
        assert connection.getresponse().status == 200


def test_oversized_chunked_body_is_refused(webhook):
    """Without a Content-Length the limit applies while reading; the response comes at the end."""
    with contextlib.closing(webhook.https()) as connection:
        pieces = [b" " * MIB] * 8
        connection.request("POST", VALIDATE, iter(pieces), JSON, encode_chunked=True)
        reply = connection.getresponse()
        assert reply.status == 413
        assert_status(json.loads(reply.read()), 413)


def test_endless_chunks_are_cut(webhook):
    """An endless body is cut off."""
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    with webhook.tls() as sock:
        sock.sendall(b"POST " + VALIDATE.encode() + b" HTTP/1.1\r\nHost: x\r\n"
                     b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(OSError):
            for _ in range(200):
                sock.sendall(chunk)


@pytest.mark.parametrize("version, head", [
    ("1.1", b"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
    ("1.1", b"Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
    ("1.1", b"Host: x\r\nTransfer-Encoding: gzip\r\n"),
    ("1.1", b"Host: x\r\nTransfer-Encoding: gzip, chunked\r\n"),
    ("1.1", b"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    ("1.1", b"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
    ("1.0", b"Host: x\r\nTransfer-Encoding: chunked\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: 2\r\ncontent-length: 7\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: 2, 2\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: +2\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: -0\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: 0x2\r\n"),
    ("1.1", b"Host: x\r\nContent-Length: 99999999999999999999\r\n"),
    ("1.1", b"Content-Length: 2\r\n"),
    ("1.1", b"Host: x\r\nHost: x\r\nContent-Length: 2\r\n"),
    ("1.1", b"Host: x\r\nhost: y\r\nContent-Length: 2\r\n"),
])
def test_ambiguous_framing_is_refused(webhook, version, head):
    """Ambiguous or unknown framing is refused and the connection closed: the bytes behind such a head
    are not taken for a request."""
    body = b"2\r\n{}\r\n0\r\n\r\n" if b"chunked" in head else b"{}"
    with webhook.tls() as sock:
        sock.settimeout(5)
        with contextlib.suppress(OSError):
            sock.sendall(b"POST " + VALIDATE.encode() + b" HTTP/" + version.encode() + b"\r\n"
                         b"Content-Type: application/json\r\n" + head + b"\r\n" + body +
                         b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while piece := sock.recv(65536):
                data += piece
    assert data.split()[1] in (b"400", b"413") and b"HTTP/1.1 404" not in data, data


@pytest.mark.parametrize("text", [
    b"\x00" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"\r\n" * 50,
    b"POST " + VALIDATE.encode() + b" HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST " + VALIDATE.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
    b"POST " + VALIDATE.encode() + b" HTTP/1.1\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100000 + b"\r\n\r\n",
])
def test_non_http_input_is_refused(webhook, text):
    """Input that is not HTTP is refused or the connection closed."""
    with webhook.tls() as sock:
        with contextlib.suppress(OSError):
            sock.sendall(text)
            sock.settimeout(0.5)
            data = sock.recv(65536)
            assert data == b"" or data.split()[1][:1] in (b"4", b"5")


def test_plain_http_gets_no_response(webhook):
    """Without TLS there is no response."""
    with webhook.tcp() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in sock.recv(1000)


@pytest.mark.parametrize("cut", [1, 10, 100, 300, len(GOOD)])
def test_disconnecting_client_leaks_nothing(webhook, cut):
    """A connection that ends during a request leaks nothing."""
    before = webhook.metric("controller_runtime_webhook_requests_in_flight")
    with webhook.tls() as sock:
        sock.sendall(raw_post(GOOD)[:cut])
    assert webhook.post(review())[0] == 200
    wait.until("it to be forgotten", lambda: webhook.metric(
        "controller_runtime_webhook_requests_in_flight") <= before)


def test_refusals_keep_the_connection(webhook):
    """A refused request must not cost the API server a new handshake."""
    with contextlib.closing(webhook.https()) as connection:
        connection.connect()
        sock = connection.sock
        for path, headers, code in ((VALIDATE, {"Content-Type": "text/plain"}, 415),
                                    ("/nowhere", JSON, 404), (VALIDATE, JSON, 200)):
            assert ask(connection, "POST", path, GOOD, headers)[0] == code
        assert connection.sock is sock


def test_connection_is_kept_alive(webhook):
    """The connection is kept alive."""
    with contextlib.closing(webhook.https()) as connection:
        connection.connect()
        sock = connection.sock
        for size in (10, 1000, 20000, 100000, 1, 500000, 5):
            body = as_bytes(review(my_web(pageContentHtml="x" * size)))
            status, _, reply = ask(connection, "POST", VALIDATE, body, JSON)
            assert status == 200 and reply["response"]["allowed"]
        assert connection.sock is sock
