# SPDX-License-Identifier: Apache-2.0
"""An operator other than steward, as a process beside a cluster."""

import yaml

from . import library, steward, wait


class Example(steward.Steward):
    """One `run` of an example, with the rights of the cluster's administrator."""

    def __init__(self, program, cluster, folder, args=(), env=None):
        super().__init__(program, cluster, cluster.kubeconfig, folder, name=program.stem, args=args, env=env)

    def command(self):
        """The same without the option that only steward has."""
        words = super().command()
        at = words.index("--store-endpoints")
        return words[:at] + words[at + 2:]


def install(cluster, program, env=None, port=None):
    """Its kinds; returns their names.  The API server converts their objects at this port of loopback."""
    url = ["--url", f"https://127.0.0.1:{port}"] if port else []
    crds = [one for one in yaml.safe_load_all(library.run(program, "print", "crds", *url, env=env)) if one]
    for crd in crds:
        cluster.apply(crd)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": steward.NAMESPACE}})
    cluster.wait_established()
    return [crd["metadata"]["name"] for crd in crds]


def install_webhooks(cluster, program, port, env=None):
    """Its webhook configurations; waits until they have a certificate.  Returns (kind, name) of each."""
    text = library.run(program, "print", "webhooks", "--url", f"https://127.0.0.1:{port}", env=env)
    cluster.apply(text)
    hooks = [(one["kind"].lower(), one["metadata"]["name"]) for one in yaml.safe_load_all(text) if one]

    def trusted():
        found = [cluster.get(*hook) or {} for hook in hooks]
        return all(hook["clientConfig"].get("caBundle") for one in found for hook in one.get("webhooks", ()))
    wait.until("the webhook configurations to have a CA", trusted, 60)
    return hooks
