# SPDX-License-Identifier: Apache-2.0
"""EtcdBackups of an etcd that requires certificates and passwords, to a store with a private CA."""

import hashlib

import pytest
from support import dbserver, etcd, s3
from support.cluster import condition
from support.etcdbackup import SECRET, Backup

PASSWORD = "r00t-pa55word"


@pytest.fixture(scope="module", params=["3.4", "3.5"])
def members(request):
    """One member that requires a client certificate, and later a user as well."""
    if etcd.missing(request.param):
        pytest.skip(etcd.missing(request.param))
    with etcd.Cluster(size=1, version=request.param, tls=True) as cluster:
        for i in range(20):
            cluster.ctl("put", f"k{i}", "v" * 100)
        cluster.ctl("user", "add", f"root:{PASSWORD}")
        cluster.ctl("user", "grant-role", "root", "root")
        # The CN would be taken as a user: etcd's gateway refuses such a certificate.
        dbserver.make_pair(cluster.folder / "ca", cluster.folder / "nameless", subject="/")
        cluster.ctl("auth", "enable")
        yield cluster


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The CA of the store's certificate, and another one: folders with ca.crt and tls.crt."""
    folder = tmp_path_factory.mktemp("authorities")
    for name in ("right", "wrong"):
        dbserver.make_ca(folder / name)
        dbserver.make_pair(folder / name, folder / name)
    return folder


@pytest.fixture
def proxy(bucket, authority):
    """The store, over TLS."""
    one = s3.Proxy(bucket, pair=authority / "right")
    yield one
    one.close()


class Secured(Backup):
    """With correct Secrets, unless a test changes them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.give_tls()
        self.secret("root", username="root", password=PASSWORD + "\n")

    def give_tls(self, pair="nameless", ca=None):
        tls, ca = self.members.folder / pair, ca or self.members.ca
        self.secret("client", etcd_client__crt=(tls / "tls.crt").read_text(),
                    etcd_client__key=(tls / "tls.key").read_text(),
                    etcd_client_ca__crt=ca.read_text())

    def give_store(self, authority):
        self.secret(SECRET, credentials=s3.CREDENTIALS,
                    ca__crt=(authority / "ca.crt").read_text())

    def manifest(self, policy=None, **spec):
        return super().manifest(policy, **{"clientTLSSecret": "client", "authSecret": "root",
                                           **spec})

    def mended(self):
        """Triggers an attempt after a correction, and waits for its success."""
        self.cluster.annotate("etcdb", self.name, self.namespace, {"steward.dev/reconcile-at": "now"})
        return self.succeeded(60)


@pytest.fixture
def backup(installed, namespace, members, proxy, authority):
    """A Secured with all its Secrets."""
    one = Secured(installed, namespace, members, proxy)
    one.give_store(authority / "right")
    return one


def test_backup_uses_certificates_password_and_private_ca(controller, backup):
    found = backup.apply().succeeded()
    [artifact] = found["status"]["artifacts"]
    data = backup.objects()[backup.path].read_bytes()
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest() and artifact["verified"]
    assert found["status"]["sourceEndpoint"].startswith("https://localhost:")
    everywhere = str(found) + controller.log_tail(1000)
    assert PASSWORD not in everywhere and s3.SECRET_KEY not in everywhere
    assert "PRIVATE KEY" not in everywhere


def test_store_with_another_ca_is_refused(controller, backup, authority, proxy):
    backup.give_store(authority / "wrong")
    found = backup.apply().failed("TLSFailed")
    assert condition(found, "StoreReachable")["reason"] == "TLSFailed"
    assert not proxy.log and not backup.objects(), "nothing was said to it"
    backup.give_store(authority / "right")
    backup.mended()


def test_store_without_given_ca_is_refused(controller, backup, proxy):
    backup.secret(SECRET, credentials=s3.CREDENTIALS)
    backup.cluster.patch("secret", SECRET, backup.namespace, {"data": {"ca.crt": None}})
    backup.apply().failed("TLSFailed")
    assert not proxy.log


def test_members_with_another_ca_are_refused(controller, backup, authority):
    backup.give_tls(ca=authority / "wrong" / "ca.crt")
    found = backup.apply().failed("TLSFailed")
    assert condition(found, "SourceReachable")["reason"] == "TLSFailed"
    backup.give_tls()
    backup.mended()


def test_certificate_with_user_common_name_is_refused(controller, backup):
    backup.give_tls(pair="tls")
    found = backup.apply().failed("AuthFailed")
    assert "CommonName" in condition(found, "SourceReachable")["message"]
    backup.give_tls()
    backup.mended()


@pytest.mark.parametrize("password", ["wr0ng-pa55word", None])
def test_wrong_or_missing_password_fails_the_backup(controller, backup, password):
    if password:
        backup.secret("root", username="root", password=password)
    found = backup.apply(authSecret="root" if password else None).failed("AuthFailed")
    assert condition(found, "SourceReachable")["reason"] == "AuthFailed"
    assert "wr0ng" not in str(found) + controller.log_tail(1000)
    backup.secret("root", username="root", password=PASSWORD)
    backup.apply()
    backup.mended()
