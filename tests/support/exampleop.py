# SPDX-License-Identifier: Apache-2.0
"""An example's operator that runs with exactly the rights that it prints."""

import time

import yaml

from . import example, library, steward, wait


class Operator(example.Example):
    """One `NAME run`, as the ServiceAccount of `NAME print rbac`.

    env     what it needs to find the library, and more variables
    clock   a support.clock.Clock, to replace the machine's clock
    """

    def __init__(self, program, cluster, folder, env, clock=None):
        super().__init__(program, cluster, folder)
        port = self.webhook_port
        example.install(cluster, program, env, port)
        rbac = library.run(program, "print", "rbac", "--namespace", steward.NAMESPACE, env=env)
        cluster.apply(rbac)
        [account] = [one["metadata"]["name"] for one in yaml.safe_load_all(rbac)
                     if one and one["kind"] == "ServiceAccount"]
        kubeconfig = cluster.kubeconfig_of(f"{steward.NAMESPACE}/{account}", folder / "kubeconfig")
        steward.Steward.__init__(self, program, cluster, kubeconfig, folder, name=program.name,
                                 clock=clock, env=env)
        self.webhook_port = port
        self.given, self.hooks = env, []

    def admit(self, good, refused, text):
        """Lets the API server call its webhooks, until for a moment `good` is accepted and `refused` is
        not, with this text: the server sees new configurations only some time after their write."""
        since = None
        self.hooks = example.install_webhooks(self.cluster, self.binary, self.webhook_port, self.given)

        def look():
            nonlocal since
            bad = self.cluster.apply(refused, dry_run=True, check=False)
            fine = self.cluster.apply(good, dry_run=True, check=False)
            if fine.returncode != 0 or bad.returncode == 0 or text not in bad.stderr:
                since = None
                return False
            since = since or time.monotonic()
            return time.monotonic() - since >= steward.WEBHOOK_SETTLED_SECONDS
        wait.until("the API server to ask the webhook", look)

    def forget_webhooks(self):
        """Without a program they would refuse everything."""
        for hook in self.hooks:
            self.cluster.delete(*hook)
