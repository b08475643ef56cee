# SPDX-License-Identifier: Apache-2.0
"""lib/store compared with other implementations of S3: AWS's botocore signs each request once more,
and versitygw verifies what it gets."""

import urllib.parse

import botocore
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from support import compared, daily, s3, s3double, versions
from support.storeprobe import BIG, PART, Probe, blob, file_sha

KEYS = 60
# What a key may have of each class that a signature treats in a different way.
ALPHABET = "abcXYZ019-_.~/ +%&=?#!*'()$,;:@\"\\^`{|}<>[]äß€𝄞"


def key(dice):
    """A key without empty elements, `.` or `..`, which libcurl and servers rewrite."""
    while True:
        text = "".join(dice.choice(ALPHABET) for _ in range(dice.randint(1, 40)))
        if not any(part in ("", ".", "..") for part in text.split("/")):
            return text


def botocore_signs(method, url, headers, double):
    """botocore's signature of a request that was sent with these headers, and what it signed."""
    sent = {name.lower(): value for name, value in headers.items()}
    signed = sent["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    request = botocore.awsrequest.AWSRequest(
        method, url, {name: sent[name] for name in signed if name != "host"})
    request.context["timestamp"] = sent["x-amz-date"]
    auth = botocore.auth.S3SigV4Auth(
        botocore.credentials.Credentials(s3double.ACCESS_KEY, s3double.SECRET_KEY, s3double.TOKEN),
        "s3", double.region)
    # The double compares the hash of the body with the body.
    auth.payload = lambda _: sent["x-amz-content-sha256"]
    canonical = auth.canonical_request(request)
    wanted = auth.signature(auth.string_to_sign(request, canonical), request)
    return wanted, canonical


def test_signatures_equal_those_of_botocore(tmp_path):
    dice = daily.dice("keys")
    double = s3double.S3Double(region="eu-west-9", page=2)
    try:
        probe = Probe(tmp_path, endpoint=double.url, region=double.region, bucket=double.bucket,
                      credentials=s3double.CREDENTIALS, path_style=True, sse="AES256")
        small, big = blob(tmp_path, 5), blob(tmp_path, PART + 1)
        keys = [key(dice) for _ in range(KEYS)]
        for number, name in enumerate(keys):
            probe("put", name, big if number < 3 else small)
            probe("get", name, tmp_path / "back")
        listed = probe("list", "")["objects"]
        assert set(listed) == set(keys)
        probe("delete", keys[0])
        for (method, path), headers in zip(double.log, double.headers, strict=True):
            wanted, canonical = botocore_signs(method, double.url + path, headers, double)
            assert f"Signature={wanted}" in headers["Authorization"], f"{method} {path}\n{canonical}"
        compared.note("botocore", f"{botocore.__version__} (signatures of S3 requests)", len(double.log))
    finally:
        double.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    server = s3.VersityGW(tmp_path_factory.mktemp("versitygw"))
    yield server
    server.stop()


@pytest.fixture
def probe(gateway, tmp_path):
    return Probe(tmp_path, endpoint=gateway.url, region=gateway.REGION, bucket=s3.BUCKET,
                 credentials=gateway.CREDENTIALS, path_style=True, timeout_ms=10000)


@pytest.mark.parametrize("size", [0, 1, PART, BIG])
def test_versitygw_keeps_objects(gateway, probe, tmp_path, size):
    sent = blob(tmp_path, size)
    probe("put", f"size {size}/ü+1_v1", sent)
    assert file_sha(gateway.data / s3.BUCKET / f"size {size}" / "ü+1_v1") == file_sha(sent)
    probe("get", f"size {size}/ü+1_v1", tmp_path / "back")
    assert file_sha(tmp_path / "back") == file_sha(sent)
    assert probe("list", f"size {size}/")["objects"] == {f"size {size}/ü+1_v1": size}
    probe("delete", f"size {size}/ü+1_v1")
    assert probe("list", f"size {size}/")["objects"] == {}
    compared.note("versitygw", f"{versions.newest('VERSITYGW')} (S3 requests)", 5)


def test_versitygw_accepts_the_signature_of_any_key(probe, tmp_path):
    dice = daily.dice("keys")
    sent = blob(tmp_path, 5)
    # A backslash or a key that is also a folder of another one is a rule of its file system, not of S3.
    names = [f"{number}/{urllib.parse.quote(key(dice), safe='').replace('%5C', '-')[:200]}"
             for number in range(10)]
    names += [f"k{number}/{key(dice)}".replace("\\", "-") for number in range(KEYS)]
    for name in names:
        probe("put", name, sent)
        probe("get", name, tmp_path / "back")
        assert file_sha(tmp_path / "back") == file_sha(sent), name
    assert set(names) <= set(probe("list", "")["objects"])
    compared.note("versitygw", f"{versions.newest('VERSITYGW')} (S3 requests)", 2 * len(names))


def test_versitygw_aborts_an_unfinished_upload(gateway, probe, tmp_path):
    """An upload in parts that ends before it is complete leaves no object and no part."""
    probe("put", "left/a", blob(tmp_path, 6 * PART), 1, fails="StoreFailed")
    assert probe("list", "left/")["objects"] == {}
    assert not [path for path in gateway.data.rglob("*") if path.is_file() and path.stat().st_size == PART]
    assert probe("clean", "left/", 0)["cleaned"] == 0


@pytest.mark.parametrize("change, trouble", [
    ({"credentials": s3.VersityGW.CREDENTIALS.replace("of=versity", "of=another")}, "AccessDenied"),
    ({"credentials": s3.VersityGW.CREDENTIALS.replace("AKIDVERSITY", "AKIDUNKNOWN")}, "StoreFailed"),
    ({"bucket": "not-there"}, "NoSuchBucket"),
])
def test_versitygw_refuses_wrong_credentials(gateway, tmp_path, change, trouble):
    """So it verifies the signatures of the tests above.  For an unknown
    access key it has a code of its own, with status 404."""
    wrong = Probe(tmp_path, **{"endpoint": gateway.url, "region": gateway.REGION, "bucket": s3.BUCKET,
                               "credentials": gateway.CREDENTIALS, "path_style": True, **change})
    wrong("put", "never", blob(tmp_path, 1), fails=trouble)
    wrong("list", "", fails=trouble)
    assert not (gateway.data / s3.BUCKET / "never").exists()
