# SPDX-License-Identifier: Apache-2.0
"""Certificates of EtcdClusters in tests: Secrets made by a user, and clients that present one."""

import base64
import hashlib
import socket
import ssl

from . import dbserver

# Secret, and the prefix of its keys
SECRETS = (("peer", "peer"), ("server", "server"), ("operator", "etcd-client"))
STATIC = {"static": {"member": {"peerSecret": "peer", "serverSecret": "server"},
                     "operatorSecret": "operator"}}


def encoded(data):
    """As a value of a Secret's data."""
    return base64.b64encode(data).decode()


def secret_data(cluster, namespace, name):
    """What is in a Secret, decoded; {} while there is none."""
    found = cluster.get("secret", name, namespace) or {}
    return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}


def context(folder, ca, cert, key):
    """For clients that present a certificate; the server's does not name the Service's address."""
    folder = folder / "client"
    folder.mkdir(exist_ok=True)
    for name, text in (("ca", ca), ("crt", cert), ("key", key)):
        (folder / name).write_bytes(text)
    made = ssl.create_default_context(cafile=folder / "ca")
    made.check_hostname = False
    made.load_cert_chain(folder / "crt", folder / "key")
    return made


def names_of(etcd):
    """All names of members and clients, for openssl."""
    name, namespace = etcd.name, etcd.namespace
    hosts = [f"*.{name}.{namespace}.svc", f"*.{name}.{namespace}.svc.cluster.local",
             f"{name}-client.{namespace}.svc", "localhost"]
    return ",".join(f"DNS:{host}" for host in hosts)


def shown(etcd, member):
    """The fingerprint of the certificate that a member presents to any client."""
    naked = ssl.create_default_context()
    naked.check_hostname, naked.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((etcd.pods()[member]["status"]["podIP"], 2379), 5) as raw:
        with naked.wrap_socket(raw) as secure:
            return hashlib.sha256(secure.getpeercert(binary_form=True)).hexdigest()


def fingerprint(pem):
    """The fingerprint of a certificate in PEM."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


class Given:
    """The three Secrets of spec.TLS.static, with the names of the article and the documentation,
    and the authorities that sign their certificates."""

    def __init__(self, etcd, folder):
        self.etcd, self.folder = etcd, folder
        self.data = {}  # by Secret and key
        self.new_authority("first")
        self.sign("first")

    def new_authority(self, name):
        """A new authority, which nothing trusts yet."""
        dbserver.make_ca(self.folder / name, name)
        return (self.folder / name / "ca.crt").read_bytes()

    def trust(self, bundle):
        """Makes all three Secrets trust these."""
        for secret, prefix in SECRETS:
            self.data[secret][f"{prefix}-ca.crt"] = bundle

    def sign(self, authority, secrets=SECRETS, days=90):
        """Gives them certificates of this authority; what they trust does not change."""
        ca = (self.folder / authority / "ca.crt").read_bytes()
        for secret, prefix in secrets:
            made = self.folder / secret
            dbserver.make_pair(self.folder / authority, made, names_of(self.etcd), days)
            data = self.data.setdefault(secret, {f"{prefix}-ca.crt": ca})
            data[f"{prefix}.crt"] = (made / "tls.crt").read_bytes()
            data[f"{prefix}.key"] = (made / "tls.key").read_bytes()

    def common(self):
        """The same data in the keys of type kubernetes.io/tls, as cert-manager writes them."""
        for secret, prefix in SECRETS:
            data = self.data[secret]
            self.data[secret] = {"tls.crt": data[f"{prefix}.crt"], "tls.key": data[f"{prefix}.key"],
                                 "ca.crt": data[f"{prefix}-ca.crt"]}
        return self

    def write(self):
        """Writes them to the API server, and makes the kubelet sync at once, not after minutes."""
        cluster, namespace = self.etcd.cluster, self.etcd.namespace
        for secret, data in self.data.items():
            cluster.apply({"apiVersion": "v1", "kind": "Secret",
                           "metadata": {"name": secret, "namespace": namespace},
                           "data": {key: encoded(value) for key, value in data.items()}})
        revision = cluster.get("secret", "server", namespace)["metadata"]["resourceVersion"]
        for name in self.etcd.pods():
            cluster.annotate("pod", name, namespace, {"test.steward.dev/secrets": f"{revision}"})

    def client(self):
        """A context for clients, of the current data."""
        data = self.data["operator"]
        return context(self.folder, data["etcd-client-ca.crt"], data["etcd-client.crt"],
                       data["etcd-client.key"])
