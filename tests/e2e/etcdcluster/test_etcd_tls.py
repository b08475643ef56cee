# SPDX-License-Identifier: Apache-2.0
"""Real EtcdClusters with TLS for members and clients: certificates of steward's own CA, and Secrets
made by the user."""

import ssl

import pytest
from support import dbserver, gateway, wait
from support import etcdcerts as certs
from support.cluster import condition

pytestmark = pytest.mark.node


def check_closed(etcd, folder):
    """Plain HTTP and a client without a certificate are refused."""
    address = etcd.client().host
    with pytest.raises((OSError, gateway.Refused)):
        gateway.Gateway(address).status()
    naked = ssl.create_default_context(cafile=folder / "client" / "ca")
    naked.check_hostname = False
    with pytest.raises(OSError):
        gateway.Gateway(address, tls=naked).status()


def check_heals(etcd):
    """Scaled to three, with a member killed and a pod deleted, the cluster still works."""
    with etcd.writer() as writer:
        writer.wait_writes()
        etcd.patch(size=3)
        etcd.wait_settled(3)
        etcd.signal(etcd.leader())
        victim = etcd.followers()[0]
        etcd.delete_pods(victim)
        etcd.wait_settled(3)
        writer.wait_writes()
    etcd.check_same()


def client_of(etcd, folder, secret):
    """Gives the test's client the certificate in the operator's Secret."""
    data = certs.secret_data(etcd.cluster, etcd.namespace, secret)
    etcd.tls = certs.context(folder, data["etcd-client-ca.crt"], data["etcd-client.crt"],
                       data["etcd-client.key"])


def test_an_authority_of_its_own(stage, tmp_path):
    etcd = stage.etcd("own")
    etcd.apply(size=1, TLS={"auto": {"provider": "Steward"}})
    etcd.wait_settled(1)
    assert condition(etcd.get(), "TLSReady")["status"] == "True"
    client_of(etcd, tmp_path, "own-client-tls")
    check_closed(etcd, tmp_path)
    check_heals(etcd)
    renewed_when_the_certificate_goes(etcd, tmp_path)
    etcd.delete()


def renewed_when_the_certificate_goes(etcd, folder):
    """The Secret of the members is deleted, or gets an expired certificate: it is reissued, and the
    new one is served."""
    cluster, where = etcd.cluster, etcd.namespace

    def cert():
        return certs.secret_data(cluster, where, "own-server-tls")["server.crt"]
    before = cert()
    cluster.delete("secret", "own-server-tls", where)
    wait.until("another certificate", lambda: cert() != before, 60)

    authority = certs.secret_data(cluster, where, "own-ca")
    for name in ("ca.crt", "ca.key"):
        (folder / name).write_bytes(authority[name])
    dbserver.make_pair(folder, folder / "ended", certs.names_of(etcd), days=0)
    ended = (folder / "ended" / "tls.crt").read_bytes()
    cluster.patch("secret", "own-server-tls", where, {"data": {
        "server.crt": certs.encoded(ended),
        "server.key": certs.encoded((folder / "ended" / "tls.key").read_bytes())}})
    wait.until("one that has not ended", lambda: cert() != ended, 60)
    assert cluster.wait_event("own", where, "CertRotated")
    etcd.wait_settled(3, 150)


def test_secrets_that_a_person_made(stage, tmp_path):
    """They may be created later: until then the cluster waits and reports the missing one."""
    etcd = stage.etcd("given")
    etcd.apply(size=1, TLS={"static": {
        "member": {"peerSecret": "peer", "serverSecret": "server"}, "operatorSecret": "operator"}})
    found = etcd.wait_condition("TLSReady", "False", "SecretMissing")
    assert '"peer"' in found["message"] or '"server"' in found["message"]
    assert not etcd.pods()
    certs.Given(etcd, tmp_path).write()
    etcd.wait_settled(1)
    client_of(etcd, tmp_path, "operator")
    check_closed(etcd, tmp_path)
    check_heals(etcd)
    etcd.delete()
