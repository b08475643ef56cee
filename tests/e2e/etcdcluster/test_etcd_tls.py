# SPDX-License-Identifier: Apache-2.0
"""Real EtcdClusters with TLS for members and clients: certificates of steward's own CA, and Secrets
made by the user."""

import ssl
import subprocess

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
    names = ("etcd-client-ca.crt", "etcd-client.crt", "etcd-client.key")
    if "tls.crt" in data:
        names = ("ca.crt", "tls.crt", "tls.key")
    etcd.tls = certs.context(folder, *(data[name] for name in names))


def test_own_ca_secures_members_and_clients(stage, tmp_path):
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


SIGNED = (("peer", "peer"), ("server", "server"), ("client", "etcd-client"))


def secrets_of(etcd):
    """The data of the Secrets of its own authority, by their last word."""
    return {what: certs.secret_data(etcd.cluster, etcd.namespace, f"{etcd.name}-{what}")
            for what in ("ca", "peer-tls", "server-tls", "client-tls")}


def authority_signed_all(etcd, folder):
    """The present authority has signed the certificates in all Secrets."""
    data = secrets_of(etcd)
    for what, prefix in SIGNED:
        if "ca.crt" not in data["ca"] or f"{prefix}.crt" not in data[f"{what}-tls"]:
            return False
        (folder / "signer").write_bytes(data["ca"]["ca.crt"])
        (folder / "signed").write_bytes(data[f"{what}-tls"][f"{prefix}.crt"])
        if subprocess.run(["openssl", "verify", "-CAfile", folder / "signer", folder / "signed"],
                          capture_output=True).returncode:
            return False
    return True


def wait_next_trusted(etcd, what, prefix):
    """Until the next authority is in this Secret."""
    def found():
        data = secrets_of(etcd)
        return data["ca"].get("next.crt", b"none") in data[what].get(f"{prefix}-ca.crt", b"")
    wait.until("another authority to be trusted", found, 30)


def lose_authority(etcd):
    """Deletes its Secret, and waits until the members are to trust another one, too."""
    etcd.cluster.delete("secret", f"{etcd.name}-ca", etcd.namespace, wait_gone=False)
    wait_next_trusted(etcd, "client-tls", "etcd-client")


def sync_secrets(etcd):
    """Makes the kubelet sync at once, not after minutes."""
    secret = etcd.cluster.get("secret", f"{etcd.name}-server-tls", etcd.namespace)
    for name in etcd.pods():
        etcd.cluster.annotate("pod", name, etcd.namespace, {
            "test.steward.dev/secrets": secret["metadata"]["resourceVersion"]})


def wait_new_authority(etcd, folder):
    """Until it has signed all certificates, and all members serve them."""
    wait.until("it to sign", lambda: authority_signed_all(etcd, folder), 240)
    client_of(etcd, folder, f"{etcd.name}-client-tls")
    sync_secrets(etcd)
    served = certs.fingerprint(secrets_of(etcd)["server-tls"]["server.crt"])
    etcd.wait_settled(3, 150)
    wait.until("all members to show it",
               lambda: {certs.shown(etcd, m) for m in etcd.pods()} == {served}, 150, 0.5)


def test_lost_ca_is_replaced_without_outage(stage, tmp_path):
    """All members trust another one before it signs: none is cut off, and writes continue."""
    etcd = stage.etcd("lost")
    etcd.apply(size=3, TLS={"auto": {"provider": "Steward"}}, upgrade={"pauseBetweenSeconds": 0})
    etcd.wait_settled(3, 120)
    client_of(etcd, tmp_path, "lost-client-tls")
    old, before = secrets_of(etcd), set(etcd.uids().values())
    lose_authority(etcd)
    for what, prefix in SIGNED:
        assert secrets_of(etcd)[f"{what}-tls"][f"{prefix}.crt"] == \
            old[f"{what}-tls"][f"{prefix}.crt"]
    client_of(etcd, tmp_path, "lost-client-tls")
    with etcd.writer() as writer:
        writer.wait_writes()
        wait_new_authority(etcd, tmp_path)
        writer.wait_writes()
    assert not set(etcd.uids().values()) & before
    assert old["ca"]["ca.crt"] != secrets_of(etcd)["ca"]["ca.crt"]
    for event in ("AuthorityLost", "AuthorityReplaced"):
        assert etcd.cluster.wait_event("lost", etcd.namespace, event)
    etcd.check_same(writer)
    lost_with_a_certificate(etcd, tmp_path, writer)
    etcd.delete()


def lost_with_a_certificate(etcd, folder, writer):
    """Nothing is written while members run with what is left.  With the Secret put back they go on;
    without any pod, all is issued again."""
    cluster, where = etcd.cluster, etcd.namespace
    saved = cluster.get("secret", "lost-server-tls", where)
    saved["metadata"] = {key: saved["metadata"][key]
                         for key in ("name", "namespace", "labels", "ownerReferences")}
    lose_authority(etcd)
    cluster.delete("secret", "lost-server-tls", where, wait_gone=False)
    found = etcd.wait_condition("TLSReady", "False", "AuthorityLost")
    assert '"lost-ca"' in found["message"] and '"lost-server-tls"' in found["message"]
    assert "PRIVATE KEY" not in found["message"]
    left = secrets_of(etcd)
    assert not left["server-tls"]
    wait.stays("nothing is written", lambda: secrets_of(etcd) == left, 8, 1)

    cluster.apply(saved)
    wait_next_trusted(etcd, "server-tls", "server")
    etcd.wait(lambda obj: condition(obj, "TLSReady")["reason"] != "AuthorityLost", "it to go on")
    cluster.delete("secret", "lost-server-tls", where, wait_gone=False)
    etcd.wait_condition("TLSReady", "False", "AuthorityLost")
    etcd.delete_pods(*etcd.pods())
    wait_new_authority(etcd, folder)
    etcd.check_same(writer)


def wait_told(etcd, reason, text):
    """Until TLSReady is False for this reason, with this text."""
    etcd.wait(lambda obj: condition(obj, "TLSReady").get("reason") == reason and
              text in condition(obj, "TLSReady")["message"], f"TLSReady to be False: {text}")


def test_user_certificates_may_come_later(stage, tmp_path):
    """They may be created later: until then the cluster waits and reports the missing one.  Their keys are
    those of cert-manager; test_etcd_certs.py uses the others."""
    etcd = stage.etcd("given")
    etcd.apply(size=1, TLS={"static": {
        "member": {"peerSecret": "peer", "serverSecret": "server"}, "operatorSecret": "operator"}})
    found = etcd.wait_condition("TLSReady", "False", "SecretMissing")
    assert '"peer"' in found["message"] or '"server"' in found["message"]
    assert not etcd.pods()
    given = certs.Given(etcd, tmp_path).common()
    complete = given.data["peer"]
    given.data["peer"] = {"peer.crt": complete["tls.crt"], "ca.crt": complete["ca.crt"]}
    given.write()
    wait_told(etcd, "SecretMissing", 'Secret "peer" has peer.crt and ca.crt, but lacks peer.key and '
              "peer-ca.crt, or tls.crt and tls.key")
    given.data["peer"] = {**complete, "ca.crt": complete["ca.crt"] + b"\0more"}
    given.write()
    wait_told(etcd, "BadKeyPair", 'ca.crt of Secret "peer" has a NUL byte')
    for before, place in ((b"", 1), (complete["ca.crt"], 2)):  # etcd does not start with either
        given.data["peer"] = {**complete, "ca.crt": before + complete["tls.key"]}
        given.write()
        wait_told(etcd, "BadKeyPair", f'ca.crt of Secret "peer": block {place} is a "')
    assert not etcd.pods()
    given.data["peer"] = complete
    given.write()
    etcd.wait_settled(1)
    client_of(etcd, tmp_path, "operator")
    check_closed(etcd, tmp_path)
    check_heals(etcd)
    etcd.delete()
