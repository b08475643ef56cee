# SPDX-License-Identifier: Apache-2.0
"""Real EtcdClusters whose members and clients show certificates: of steward's own authority, and of
Secrets that a person made."""

import base64
import ssl

import pytest
from support import dbserver, gateway, wait
from support.cluster import condition

pytestmark = pytest.mark.node


def context(folder, ca, cert, key):
    """For clients that show a certificate; the Service's address is no name of it."""
    folder = folder / "client"
    folder.mkdir()
    for name, text in (("ca", ca), ("crt", cert), ("key", key)):
        (folder / name).write_bytes(text)
    made = ssl.create_default_context(cafile=folder / "ca")
    made.check_hostname = False
    made.load_cert_chain(folder / "crt", folder / "key")
    return made


def secret_data(cluster, namespace, name):
    """What is in a Secret, decoded."""
    data = cluster.get("secret", name, namespace)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


def check_closed(etcd, folder):
    """Neither plain HTTP nor a client without a certificate gets in."""
    address = etcd.client().host
    with pytest.raises((OSError, gateway.Refused)):
        gateway.Gateway(address).status()
    naked = ssl.create_default_context(cafile=folder / "client" / "ca")
    naked.check_hostname = False
    with pytest.raises(OSError):
        gateway.Gateway(address, tls=naked).status()


def check_heals(etcd):
    """Grown to three, and with a member killed and one replaced, everything is still closed."""
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
    """Lets the test in with the operator's Secret."""
    data = secret_data(etcd.cluster, etcd.namespace, secret)
    etcd.tls = context(folder, data["etcd-client-ca.crt"], data["etcd-client.crt"],
                       data["etcd-client.key"])


def test_an_authority_of_its_own(stage, tmp_path):
    etcd = stage.etcd("own")
    etcd.apply(size=1, TLS={"auto": {"provider": "Steward"}})
    etcd.wait_settled(1)
    assert condition(etcd.get(), "TLSReady")["status"] == "True"
    client_of(etcd, tmp_path, "own-client-tls")
    check_closed(etcd, tmp_path)
    check_heals(etcd)
    renewed_when_the_certificate_goes(etcd)
    etcd.delete()


def renewed_when_the_certificate_goes(etcd):
    """Somebody deletes the Secret of the members: it is made again, and what is in it is served."""
    before = secret_data(etcd.cluster, etcd.namespace, "own-server-tls")["server.crt"]
    etcd.cluster.delete("secret", "own-server-tls", etcd.namespace)
    wait.until("another certificate", lambda: secret_data(
        etcd.cluster, etcd.namespace, "own-server-tls")["server.crt"] != before, 60)
    etcd.wait_settled(3, 150)


def make_secrets(cluster, namespace, name, folder):
    """The three Secrets of spec.TLS.static, as article and documentation have them."""
    ca = dbserver.make_ca(folder / "ca")
    hosts = [f"*.{name}.{namespace}.svc", f"*.{name}.{namespace}.svc.cluster.local",
             f"{name}-client.{namespace}.svc", "localhost"]
    names = ",".join(f"DNS:{host}" for host in hosts)
    for secret, prefix in (("peer", "peer"), ("server", "server"), ("operator", "etcd-client")):
        dbserver.make_pair(folder / "ca", folder / secret, names)
        data = {f"{prefix}.crt": (folder / secret / "tls.crt"),
                f"{prefix}.key": (folder / secret / "tls.key"), f"{prefix}-ca.crt": ca}
        cluster.apply({"apiVersion": "v1", "kind": "Secret",
                       "metadata": {"name": secret, "namespace": namespace},
                       "data": {k: base64.b64encode(p.read_bytes()).decode()
                                for k, p in data.items()}})


def test_secrets_that_a_person_made(stage, tmp_path):
    """They may come after the cluster: until then it waits and says for what."""
    etcd = stage.etcd("given")
    etcd.apply(size=1, TLS={"static": {
        "member": {"peerSecret": "peer", "serverSecret": "server"}, "operatorSecret": "operator"}})
    found = etcd.wait_condition("TLSReady", "False", "SecretMissing")
    assert '"peer"' in found["message"] or '"server"' in found["message"]
    assert not etcd.pods()
    make_secrets(stage.cluster, stage.namespace, "given", tmp_path)
    etcd.wait_settled(1)
    client_of(etcd, tmp_path, "operator")
    check_closed(etcd, tmp_path)
    check_heals(etcd)
    etcd.delete()
