# SPDX-License-Identifier: Apache-2.0
"""--webhook-client-ca-file: only clients with a certificate of that CA get a response."""

import contextlib
import http.client
import ssl
import subprocess

import pytest

from support import wait
from support.webhook import JSON, VALIDATE, as_bytes, ask, review


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def make_ca(folder, name):
    """Makes NAME.crt and NAME.key."""
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")


def make_client(folder, ca, name, purpose="clientAuth", subject="", alternative="", days="2"):
    """A client certificate of this CA; returns the paths of certificate and key."""
    extra = f"subjectAltName=DNS:{alternative}\n" if alternative else ""
    (folder / f"{name}.ext").write_text(f"extendedKeyUsage={purpose}\n{extra}", "utf-8")
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/O=system:masters/CN={subject or name}", "-keyout", f"{name}.key", "-out",
            f"{name}.csr")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
            "-CAcreateserial", "-days", days, "-extfile", f"{name}.ext", "-out", f"{name}.crt")
    return folder / f"{name}.crt", folder / f"{name}.key"


@pytest.fixture
def folder(tmp_path):
    """A folder with the CAs "ours" and "theirs", and ca.crt, a copy of "ours"."""
    one = tmp_path / "clients"
    one.mkdir()
    for name in ("ours", "theirs"):
        make_ca(one, name)
    (one / "ca.crt").write_bytes((one / "ours.crt").read_bytes())
    return one


def answers(webhook, pair=None, version=None):
    """Whether a client with this pair gets a review answered."""
    context = ssl.create_default_context(cafile=str(webhook.certs / "tls.crt"))
    if pair:
        context.load_cert_chain(*map(str, pair))
    if version:
        context.maximum_version = version
    with contextlib.closing(http.client.HTTPSConnection("localhost", webhook.port, timeout=20,
                                                        context=context)) as connection:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return ask(connection, "POST", VALIDATE, as_bytes(review()), JSON)[0] == 200
    return False


def alert(webhook, pair=None, **versions):
    """The alert that ends the handshake of such a client."""
    context = ssl.create_default_context(cafile=str(webhook.certs / "tls.crt"))
    if pair:
        context.load_cert_chain(*map(str, pair))
    for name, version in versions.items():
        setattr(context, name, version)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError) as failure:
        with context.wrap_socket(webhook.tcp(), server_hostname="localhost") as sock:
            sock.recv(1)  # with TLS 1.3 the client is done before the server has judged it
    return failure.value.reason


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_refused_handshakes_end_with_an_alert(make_webhook, folder, version):
    """Not only with the end of the connection, which tells a client nothing."""
    webhook = make_webhook("--webhook-client-ca-file", str(folder / "ca.crt"))
    assert alert(webhook, maximum_version=version) in (
        "TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE")
    assert alert(webhook, make_client(folder, "theirs", "stranger"),
                 maximum_version=version) == "SSLV3_ALERT_BAD_CERTIFICATE"
    assert answers(webhook, make_client(folder, "ours", "apiserver"), version)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_unsupported_tls_version_gets_an_alert(make_webhook):
    assert alert(make_webhook(), minimum_version=ssl.TLSVersion.TLSv1,
                 maximum_version=ssl.TLSVersion.TLSv1_1) == "TLSV1_ALERT_PROTOCOL_VERSION"


def reasons(webhook):
    """The reasons for refused callers, from the log."""
    return [e["reason"] for e in webhook.log() if e["msg"] == "refused a client of the webhook"]


def test_only_clients_with_the_ca_are_answered(make_webhook, folder):
    webhook = make_webhook("--webhook-client-ca-file", str(folder / "ca.crt"))
    good = make_client(folder, "ours", "apiserver")
    for version in (None, ssl.TLSVersion.TLSv1_2):
        assert answers(webhook, good, version)
        assert not answers(webhook, version=version)
        assert not answers(webhook, make_client(folder, "theirs", "stranger"), version)
        assert not answers(webhook, make_client(folder, "ours", "server", "serverAuth"), version)
    assert reasons(webhook) == ["its certificate is not one of the CA for clients, or has expired"]
    assert webhook.readyz()[0] == 200


def test_resumed_session_checks_the_certificate_again(make_webhook, folder):
    """The CA may have changed in between."""
    webhook = make_webhook("--webhook-client-ca-file", str(folder / "ca.crt"))
    pair = make_client(folder, "ours", "apiserver")
    context = ssl.create_default_context(cafile=str(webhook.certs / "tls.crt"))
    context.load_cert_chain(*map(str, pair))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = version
        session = None
        for _ in range(2):
            with context.wrap_socket(webhook.tcp(), server_hostname="localhost",
                                     session=session) as one:
                one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert one.recv(100).startswith(b"HTTP/1.1 404")
                assert not one.session_reused
                session = one.session


def test_client_names_restrict_the_callers(make_webhook, folder):
    webhook = make_webhook("--webhook-client-ca-file", str(folder / "ca.crt"),
                           "--webhook-client-names", "kube-apiserver,webhook.example")
    assert answers(webhook, make_client(folder, "ours", "a", subject="kube-apiserver"))
    assert answers(webhook, make_client(folder, "ours", "b", alternative="webhook.example"))
    assert not answers(webhook, make_client(folder, "ours", "c", alternative="x.webhook.example"))
    assert not answers(webhook, make_client(folder, "ours", "kube-apiserver2"))
    assert reasons(webhook) == ["its certificate is for none of the names"]


def test_changed_client_ca_takes_effect(make_webhook, folder):
    webhook = make_webhook("--webhook-client-ca-file", str(folder / "ca.crt"))
    ours = make_client(folder, "ours", "old")
    theirs = make_client(folder, "theirs", "new")
    assert answers(webhook, ours) and not answers(webhook, theirs)
    both = (folder / "ours.crt").read_bytes() + (folder / "theirs.crt").read_bytes()
    (folder / "new").write_bytes(both)
    (folder / "new").rename(folder / "ca.crt")
    wait.until("the new CA to count", lambda: answers(webhook, theirs))
    assert answers(webhook, ours)
    (folder / "ca.crt").write_bytes(b"nonsense")
    wait.until("the complaint", lambda: answers(webhook, ours) and [
        e for e in webhook.log() if e["msg"].startswith("the CA for callers is refused")])
    assert answers(webhook, theirs)
    (folder / "new").write_bytes((folder / "theirs.crt").read_bytes())
    (folder / "new").rename(folder / "ca.crt")
    wait.until("the old CA to be gone", lambda: not answers(webhook, ours))
    assert answers(webhook, theirs)


@pytest.mark.parametrize("flags, words", [
    (["--webhook-client-ca-file=/not/there"], "cannot open /not/there"),
    (["--webhook-client-ca-file=/etc/hostname"], "holds no CA in PEM that can be used"),
    (["--webhook-client-names=x"], "has no effect without --webhook-client-ca-file"),
])
def test_invalid_client_ca_options_are_refused(steward_binary, tmp_path, flags, words):
    result = subprocess.run(
        [steward_binary, "webhook", f"--webhook-cert-path={tmp_path}", "--webhook-bind-address",
         "127.0.0.1:0", "--health-probe-bind-address=0", "--metrics-bind-address=0", *flags],
        capture_output=True, text=True, timeout=20, check=False)
    assert result.returncode != 0 and words in result.stderr
