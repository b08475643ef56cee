# SPDX-License-Identifier: Apache-2.0
"""lib/store with a real S3-compatible server, through a faulty proxy, and with a double that
checks every signature; and with folders."""

import base64
import hashlib
import os
import subprocess
import threading
import time

import pytest

from support import paths, s3, s3double
from support.storeprobe import BIG, PART, Probe, blob, file_sha


# --- a real server


@pytest.fixture
def proxy(bucket):
    proxy = s3.Proxy(bucket)
    yield proxy
    proxy.close()


@pytest.fixture
def probe(proxy, tmp_path):
    return Probe(tmp_path, endpoint=proxy.url, region="us-east-1", bucket=s3.BUCKET,
                 credentials=s3.CREDENTIALS, path_style=True, timeout_ms=2000)


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, BIG])
def test_upload_and_download_are_equal(probe, tmp_path, size):
    sent = blob(tmp_path, size)
    probe("put", f"a b/ü+{size}_v1", sent)
    probe("get", f"a b/ü+{size}_v1", tmp_path / "back")
    assert file_sha(tmp_path / "back") == file_sha(sent)
    assert probe("list", f"a b/ü+{size}_")["objects"] == {f"a b/ü+{size}_v1": size}
    probe("delete", f"a b/ü+{size}_v1")
    assert probe("list", f"a b/ü+{size}_")["objects"] == {}
    probe("delete", f"a b/ü+{size}_v1")  # a missing object is not an error


def test_upload_keeps_one_part_in_memory(probe, tmp_path):
    small = probe("put", "memory/a", blob(tmp_path, 1))["peak_kb"]
    large = probe("put", "memory/b", blob(tmp_path, 6 * PART))["peak_kb"]
    if not paths.sanitizer():
        assert large - small < 2 * PART / 1024


@pytest.mark.parametrize("mode, trouble, size", [
    ("down", "ConnectFailed", 1), ("broken", "ConnectFailed", 1), ("denied", "AccessDenied", 1),
    ("full", "StoreFull", 1), ("cut", "ConnectFailed", BIG), ("full", "StoreFull", BIG)])
def test_failed_upload_leaves_no_object(probe, proxy, bucket, tmp_path, mode, trouble, size):
    proxy.mode = mode
    said = probe("put", f"bad/{mode}-{size}", blob(tmp_path, size), fails=trouble)
    assert f"bad/{mode}-{size}" not in bucket.objects()
    assert s3.SECRET_KEY not in said["error"]


@pytest.mark.parametrize("mode", ["down", "broken", "cut"])
def test_short_store_outage_is_retried(probe, proxy, bucket, tmp_path, mode):
    proxy.mode = mode
    sent = blob(tmp_path, PART + 1)
    with subprocess.Popen([paths.build() / "tests" / "integration" / "store_probe", probe.file, "put",
                           f"back/{mode}", sent], stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while not proxy.log and time.monotonic() < deadline:
            time.sleep(0.02)
        proxy.mode = "fine"
        assert process.wait(60) == 0
    assert file_sha(bucket.objects()[f"back/{mode}"]) == file_sha(sent)


def test_slow_store_completes_the_upload(probe, proxy, bucket, tmp_path):
    proxy.mode, proxy.pause = "slow", 0.3
    sent = blob(tmp_path, PART + 1)
    probe("put", "slow/a", sent)
    proxy.mode = "fine"
    assert file_sha(bucket.objects()["slow/a"]) == file_sha(sent)


def test_late_answer_is_a_failed_connection(probe, proxy):
    proxy.mode, proxy.pause = "slow", 30
    said = probe("list", "slow/", fails="ConnectFailed")
    assert "timed out" in said["error"].lower() or "timeout" in said["error"].lower()


def test_missing_bucket_and_object_are_reported(probe, proxy, tmp_path):
    probe("get", "nobody/has/this", tmp_path / "x", fails="NoSuchSnapshot")
    other = Probe(tmp_path, endpoint=proxy.url, region="us-east-1", bucket="not-there",
                  credentials=s3.CREDENTIALS, path_style=True)
    other("put", "a", blob(tmp_path, 1), fails="NoSuchBucket")
    other("list", "a", fails="NoSuchBucket")


def test_unreachable_store_is_reported(tmp_path):
    away = Probe(tmp_path, endpoint="http://127.0.0.1:1", region="us-east-1", bucket="b",
                 credentials=s3.CREDENTIALS)
    away("list", "a", fails="ConnectFailed")


# --- the double


@pytest.fixture
def double():
    server = s3double.S3Double(region="eu-west-9", page=2)
    yield server
    server.close()


@pytest.fixture
def signed(double, tmp_path):
    return Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                 credentials=s3double.CREDENTIALS, path_style=True, sse="AES256", timeout_ms=10000)


@pytest.mark.parametrize("key", ["plain", "a b/c+d=e&f", "ü/日本_v1_2026-01-02-03:04:05", "~(x)'!*"])
@pytest.mark.parametrize("size", [0, 7, BIG])
def test_request_signatures_are_valid(signed, double, tmp_path, key, size):
    sent = blob(tmp_path, size)
    signed("put", key, sent)
    assert double.objects[key] == sent.read_bytes()
    signed("get", key, tmp_path / "back")
    assert file_sha(tmp_path / "back") == file_sha(sent)
    assert signed("list", key[:2])["objects"] == {key: size}
    signed("delete", key)
    assert not double.objects and not double.uploads


def test_wrong_secret_key_is_denied(double, tmp_path):
    wrong = s3double.CREDENTIALS + "aws_secret_access_key = not-the-one\n"
    probe = Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                  credentials=wrong, path_style=True)
    said = probe("list", "a", fails="AccessDenied")
    assert "SignatureDoesNotMatch" in said["error"] and "not-the-one" not in said["error"]


def test_encryption_header_is_sent_at_creation(signed, double, tmp_path):
    signed("put", "a", blob(tmp_path, 1))
    signed("put", "b", blob(tmp_path, BIG))
    asked = [("x-amz-server-side-encryption" in headers, method, "partNumber" in path)
             for (method, path), headers in zip(double.log, double.headers)]
    assert asked[:2] == [(True, "PUT", False), (True, "POST", False)]
    assert not any(encrypted for encrypted, _, part in asked if part)


def test_listing_reads_all_pages(signed, double):
    double.objects.update({f"p/{i:02}&<é": b"x" * i for i in range(7)})
    double.objects["q/other"] = b"x"
    assert signed("list", "p/")["objects"] == {f"p/{i:02}&<é": i for i in range(7)}


@pytest.mark.parametrize("fault", [(500, "InternalError"), (503, "SlowDown"), "close"])
@pytest.mark.parametrize("what", ["partNumber=2", "uploads=", "uploadId"])
def test_failed_request_is_retried(signed, double, tmp_path, fault, what):
    left = [2]

    def break_twice(request):
        if what in request.path and left[0]:
            left[0] -= 1
            return fault
        return None

    double.fault = break_twice
    sent = blob(tmp_path, BIG)
    signed("put", "again", sent)
    assert double.objects["again"] == sent.read_bytes() and not double.uploads


def test_only_the_failed_part_is_retried(signed, double, tmp_path):
    left = [1]

    def break_second(request):
        if "partNumber=2" in request.path and left[0]:
            left[0] -= 1
            return 500, "InternalError"
        return None

    double.fault = break_second
    signed("put", "again", blob(tmp_path, BIG))
    parts = [path.split("partNumber=")[1][0] for _, path in double.log if "partNumber" in path]
    assert parts == ["1", "2", "2", "3"]


@pytest.mark.parametrize("fault", [(500, "InternalError"), (507, "QuotaExceeded"),
                                   (403, "AccessDenied"), "close"])
@pytest.mark.parametrize("what", ["partNumber=2", "POST uploadId"])
def test_failed_multipart_upload_is_aborted(signed, double, tmp_path, fault, what):
    method, where = what.split() if " " in what else ("PUT", what)
    double.fault = lambda r: fault if r.command == method and where in r.path else None
    trouble = {500: "ConnectFailed", 507: "StoreFull", 403: "AccessDenied"}
    signed("put", "never", blob(tmp_path, BIG),
           fails="ConnectFailed" if fault == "close" else trouble[fault[0]])
    assert not double.objects and not double.uploads


def test_lost_answer_to_completion_is_a_success(signed, double, tmp_path):
    double.after = lambda r: "close" if r.command == "POST" else None
    sent = blob(tmp_path, BIG)
    signed("put", "done", sent)
    assert double.objects["done"] == sent.read_bytes()


def test_error_body_with_status_200_is_an_error(signed, double, tmp_path):
    double.fault = (lambda r: (200, "InternalError")
                    if r.command == "POST" and "uploadId" in r.path else None)
    signed("put", "lied", blob(tmp_path, BIG), fails="StoreFailed")
    assert not double.objects and not double.uploads


def test_cancelled_multipart_upload_is_aborted(signed, double, tmp_path):
    def wait(request):
        if "partNumber=2" in request.path:
            time.sleep(8)

    double.fault = wait
    began = time.monotonic()
    said = signed("put", "cut", blob(tmp_path, BIG), 700, fails="StoreFailed")
    assert said["code"] == "Cancelled" and time.monotonic() - began < 7
    assert not double.objects and not double.uploads


def test_own_old_uploads_are_aborted(signed, double):
    old = [double.begin(f"ours/db_v{i}", age_s=7200) for i in range(5)]
    young, foreign = double.begin("ours/db_v9", age_s=60), double.begin("theirs/x", age_s=7200)
    assert signed("clean", "ours/db_v", 3600)["cleaned"] == len(old)
    assert set(double.uploads) == {young, foreign}


@pytest.mark.parametrize("fault, cleaned, asked", [((403, "AccessDenied"), 3, 4),
                                                   ((503, "SlowDown"), 0, 4)])
def test_unabortable_upload_is_skipped(signed, double, fault, cleaned, asked):
    """One that the store refuses to abort is skipped; a store that is down is not asked for each."""
    first = min(double.begin("ours/db_v0", age_s=7200) for _ in range(4))
    double.fault = lambda r: fault if r.command == "DELETE" and (
        fault[0] == 503 or r.query["uploadId"] == first) else None
    said = signed("clean", "ours/db_v", 3600, fails="ConnectFailed" if fault[0] == 503 else None)
    assert said["cleaned"] == cleaned
    assert len([1 for method, _ in double.log if method == "DELETE"]) == asked


@pytest.fixture
def gone():
    """Set at the end of the test: servers that hang do so until then."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("command", ["get", "list", "clean", "delete"])
def test_calls_end_at_their_deadline(double, tmp_path, gone, command):
    """An answer that drips faster than what counts as a stall, and others that do not come."""
    probe = Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                  credentials=s3double.CREDENTIALS, path_style=True, limit_ms=1000)
    double.fault = s3double.drip(gone, 1024) if command == "get" else lambda _: gone.wait(60) and None
    more = {"get": [tmp_path / "back"], "clean": [0]}.get(command, [])
    began = time.monotonic()
    said = probe(command, "a", *more, fails="ConnectFailed")
    assert "too long" in said["error"] and time.monotonic() - began < 20


def test_error_of_the_last_try_is_reported(double, tmp_path):
    """There is no time for the third one."""
    probe = Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                  credentials=s3double.CREDENTIALS, path_style=True, limit_ms=1000)
    double.fault = lambda _: (503, "SlowDown")
    assert "SlowDown" in probe("list", "a", fails="ConnectFailed")["error"]
    assert len(double.log) == 2


def test_store_without_upload_listing_is_accepted(probe):
    assert probe("clean", "ours/", 0)["cleaned"] == 0


def test_listed_objects_outside_the_prefix_are_ignored(signed, double):
    double.objects.update({"ours/1": b"x", "theirs/1": b"y"})
    listing = s3double._Handler._listing

    def everything(handler, *args):
        handler.query["prefix"] = ""
        listing(handler, *args)

    s3double._Handler._listing = everything
    try:
        assert signed("list", "ours/")["objects"] == {"ours/1": 1}
    finally:
        s3double._Handler._listing = listing


def test_virtual_host_bucket_is_addressed(double, tmp_path):
    host = f"http://localhost:{double.server_address[1]}"
    virtual = Probe(tmp_path, endpoint=host, region="eu-west-9", bucket=double.bucket,
                    credentials=s3double.CREDENTIALS)
    virtual("put", "a/b", blob(tmp_path, 5))
    assert "a/b" in double.objects and double.log == [("PUT", "/a/b")]


# --- buckets with rules


def refusal(status, code, message="", inside="", **headers):
    """A fault of the double: an error of S3 with elements and headers of its own."""
    def answer(request):
        request._answer(status, (f"<Error><Code>{code}</Code><Message>{message}</Message>{inside}"
                                 "</Error>").encode(), **headers)
        return "answered"
    return answer


LOCK = ("Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with Object "
        "Lock parameters")


def md5s(double):
    """Of each PUT: whether it had a Content-MD5."""
    return ["Content-MD5" in headers for (method, _), headers in zip(double.log, double.headers)
            if method == "PUT"]


def needs_md5(code="InvalidRequest", message=LOCK):
    """A fault: data without a right Content-MD5 are refused."""
    def fault(request):
        if request.command != "PUT":
            return None
        given = request.headers["Content-MD5"]
        if not given:
            return refusal(400, code, message)(request)
        right = base64.b64encode(hashlib.md5(request.body).digest()).decode()
        return None if given == right else refusal(400, "BadDigest")(request)
    return fault


@pytest.mark.parametrize("size", [0, 7, BIG])
@pytest.mark.parametrize("code, message", [("InvalidRequest", LOCK), ("MissingContentMD5", "")])
def test_bucket_with_object_lock_gets_a_checksum(signed, double, tmp_path, size, code, message):
    double.fault = needs_md5(code, message)
    sent = blob(tmp_path, size)
    signed("put", "locked", sent)
    assert double.objects["locked"] == sent.read_bytes() and not double.uploads
    assert md5s(double) == [False] + [True] * (3 if size == BIG else 1)  # asked for once


def test_checksum_is_sent_only_on_request(signed, double, tmp_path):
    double.fault = lambda r: (501, "NotImplemented") if r.headers["Content-MD5"] else None
    signed("put", "a", blob(tmp_path, BIG))
    signed("put", "b", blob(tmp_path, 1))
    assert not any(md5s(double))


def test_refused_checksum_reports_the_first_error(signed, double, tmp_path):
    def fault(request):
        if request.command != "PUT":
            return None
        if request.headers["Content-MD5"]:
            return refusal(501, "NotImplemented", "no such header")(request)
        return refusal(400, "InvalidRequest", LOCK)(request)

    double.fault = fault
    said = signed("put", "a", blob(tmp_path, 1), fails="StoreFailed")
    assert "400 InvalidRequest: Object Lock needs a checksum" in said["error"]
    assert md5s(double) == [False, True]


REGION = "wrong region: the bucket is in eu-central-1"
ENDPOINT = "<Endpoint>backups.s3.eu-central-1.amazonaws.com</Endpoint>"
OLD_ENDPOINT = "<Endpoint>s3-eu-central-1.amazonaws.com</Endpoint>"


@pytest.mark.parametrize("reach", [None, "127.0.0.1"], ids=["operator", "user"])
@pytest.mark.parametrize("fault, trouble, hint", [
    (refusal(400, "AuthorizationHeaderMalformed", "", "<Region>eu-central-1</Region>"),
     "WrongRegion", REGION),
    (refusal(301, "PermanentRedirect", "", ENDPOINT), "WrongRegion", REGION),
    (refusal(301, "PermanentRedirect", "", OLD_ENDPOINT), "WrongRegion", REGION),
    (refusal(400, "IllegalLocationConstraintException", **{"x-amz-bucket-region": "eu-central-1"}),
     "WrongRegion", REGION),
    (refusal(301, "PermanentRedirect"), "StoreFailed", "another endpoint or region"),
    (refusal(400, "AuthorizationHeaderMalformed", "", "<Region>eu-west-9</Region>"),
     "StoreFailed", "the access key is not one of this store"),
    (refusal(403, "RequestTimeTooSkewed"), "AccessDenied", "the clock of this machine"),
    (refusal(403, "InvalidAccessKeyId"), "AccessDenied", "does not know the access key"),
    (refusal(400, "ExpiredToken"), "AccessDenied", "the session token has ended"),
    (refusal(400, "KMS.NotFoundException"), "AccessDenied", "no such key of the encryption"),
    (refusal(404, "NoSuchBucket"), "NoSuchBucket", "check the path, the endpoint"),
    (refusal(405, "MethodNotAllowed"), "StoreFailed", "not the address of an S3 API"),
    (refusal(400, "SomethingNew"), "StoreFailed", "no error code of S3"),
    (refusal(302, ""), "StoreFailed", "it redirects, which is not followed"),
    (refusal(507, ""), "StoreFull", "the store is full"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_error_contains_advice(double, tmp_path, reach, fault, trouble, hint):
    """In words of steward's own, so that users of a shared steward see them, too."""
    probe = Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                  credentials=s3double.CREDENTIALS, path_style=True, **({"reach": reach} if reach else {}))
    double.fault = fault
    said = probe("put", "a", blob(tmp_path, 1), fails=trouble)
    assert hint in said["error"], said


def test_unsigned_request_is_named_as_the_cause(double, tmp_path):
    probe = Probe(tmp_path, endpoint=double.url, region="eu-west-9", bucket=double.bucket,
                  path_style=True)
    said = probe("put", "a", blob(tmp_path, 1), fails="AccessDenied")
    assert "403 AccessDenied: unsigned request: no credentials" in said["error"], said


# --- a folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "volume").mkdir()
    return Probe(tmp_path, folder=str(tmp_path / "volume"))


@pytest.mark.parametrize("size", [0, 1, BIG])
def test_folder_store_keeps_objects(folder, tmp_path, size):
    sent = blob(tmp_path, size)
    folder("put", "db_v1_now", sent)
    folder("get", "db_v1_now", tmp_path / "back")
    assert file_sha(tmp_path / "back") == file_sha(sent)
    assert os.listdir(tmp_path / "volume") == ["db_v1_now"]
    assert folder("list", "db_v")["objects"] == {"db_v1_now": size}
    assert folder("list", "other")["objects"] == {}
    folder("delete", "db_v1_now")
    assert os.listdir(tmp_path / "volume") == []


@pytest.mark.parametrize("key", ["../out", "a/b", ".hidden", "..", "x" * 300])
def test_folder_store_refuses_keys_outside_it(folder, tmp_path, key):
    folder("put", key, blob(tmp_path, 1), fails="StoreFailed")
    folder("get", key, tmp_path / "back", fails="StoreFailed")
    folder("delete", key, fails="StoreFailed")


def test_folder_store_does_not_follow_links(folder, tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "volume" / "db_v1").symlink_to(tmp_path / "secret")
    folder("get", "db_v1", tmp_path / "back", fails="StoreFailed")
    assert folder("list", "db")["objects"] == {}


def test_folder_store_removes_old_partial_files(folder, tmp_path):
    volume = tmp_path / "volume"
    for name in (".db_v1.0123456789abcdef.partial", ".other.0123456789abcdef.partial", "db_v1", ".db_v2.tmp"):
        (volume / name).write_text("x")
        os.utime(volume / name, (1, 1))
    (volume / ".db_v3.0123456789abcdef.partial").write_text("young")
    assert folder("clean", "db_v", 3600)["cleaned"] == 1
    assert sorted(os.listdir(volume)) == [".db_v2.tmp", ".db_v3.0123456789abcdef.partial",
                                          ".other.0123456789abcdef.partial", "db_v1"]


def test_full_folder_store_is_reported(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    (tmp_path / "volume").mkdir()
    probe = Probe(tmp_path, folder=str(tmp_path / "volume"))
    done = subprocess.run(["bash", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$@"', "_",
                           paths.build() / "tests" / "integration" / "store_probe", probe.file, "put",
                           "db_v1", blob(tmp_path, BIG)], capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in done.stdout
    assert os.listdir(tmp_path / "volume") == []
