# SPDX-License-Identifier: Apache-2.0
"""Certificates of EtcdClusters in tests: Secrets that a person made, and clients that show one."""

import base64
import hashlib
import socket
import ssl

from . import dbserver

# Secret, and what the names of its keys begin with
SECRETS = (("peer", "peer"), ("server", "server"), ("operator", "etcd-client"))
STATIC = {"static": {"member": {"peerSecret": "peer", "serverSecret": "server"},
                     "operatorSecret": "operator"}}


def encoded(data):
    """As a Secret has it."""
    return base64.b64encode(data).decode()


def secret_data(cluster, namespace, name):
    """What is in a Secret, decoded; {} while there is none."""
    found = cluster.get("secret", name, namespace) or {}
    return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}


def context(folder, ca, cert, key):
    """For clients that show a certificate; the Service's address is no name of it."""
    folder = folder / "client"
    folder.mkdir(exist_ok=True)
    for name, text in (("ca", ca), ("crt", cert), ("key", key)):
        (folder / name).write_bytes(text)
    made = ssl.create_default_context(cafile=folder / "ca")
    made.check_hostname = False
    made.load_cert_chain(folder / "crt", folder / "key")
    return made


def names_of(etcd):
    """All that members and clients are called, for openssl."""
    name, namespace = etcd.name, etcd.namespace
    hosts = [f"*.{name}.{namespace}.svc", f"*.{name}.{namespace}.svc.cluster.local",
             f"{name}-client.{namespace}.svc", "localhost"]
    return ",".join(f"DNS:{host}" for host in hosts)


def shown(etcd, member):
    """The fingerprint of the certificate that a member shows to whoever connects."""
    naked = ssl.create_default_context()
    naked.check_hostname, naked.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((etcd.pods()[member]["status"]["podIP"], 2379), 5) as raw:
        with naked.wrap_socket(raw) as secure:
            return hashlib.sha256(secure.getpeercert(binary_form=True)).hexdigest()


def fingerprint(pem):
    """The same of a certificate in a file's text."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


class Given:
    """The three Secrets of spec.TLS.static, as the article and the documentation have them, and the
    authorities that sign what is in them."""

    def __init__(self, etcd, folder):
        self.etcd, self.folder = etcd, folder
        self.data = {}  # by Secret and key
        self.new_authority("first")
        self.sign("first")

    def new_authority(self, name):
        """One more; nobody trusts it yet."""
        dbserver.make_ca(self.folder / name, name)
        return (self.folder / name / "ca.crt").read_bytes()

    def trust(self, bundle):
        """Everybody is to trust these."""
        for secret, prefix in SECRETS:
            self.data[secret][f"{prefix}-ca.crt"] = bundle

    def sign(self, authority, secrets=SECRETS, days=90):
        """Gives them certificates of this authority; what they trust stays."""
        ca = (self.folder / authority / "ca.crt").read_bytes()
        for secret, prefix in secrets:
            made = self.folder / secret
            dbserver.make_pair(self.folder / authority, made, names_of(self.etcd), days)
            data = self.data.setdefault(secret, {f"{prefix}-ca.crt": ca})
            data[f"{prefix}.crt"] = (made / "tls.crt").read_bytes()
            data[f"{prefix}.key"] = (made / "tls.key").read_bytes()

    def write(self):
        """To the API server; and the kubelet looks at the pods at once, not within two minutes."""
        cluster, namespace = self.etcd.cluster, self.etcd.namespace
        for secret, data in self.data.items():
            cluster.apply({"apiVersion": "v1", "kind": "Secret",
                           "metadata": {"name": secret, "namespace": namespace},
                           "data": {key: encoded(value) for key, value in data.items()}})
        revision = cluster.get("secret", "server", namespace)["metadata"]["resourceVersion"]
        for name in self.etcd.pods():
            cluster.annotate("pod", name, namespace, {"test.steward.dev/secrets": f"{revision}"})

    def client(self):
        """A context for clients, of what is in the Secrets now."""
        data = self.data["operator"]
        return context(self.folder, data["etcd-client-ca.crt"], data["etcd-client.crt"],
                       data["etcd-client.key"])
