# SPDX-License-Identifier: Apache-2.0
"""node-dns.py CLUSTER-DIR APISERVER-URL ADDRESS DOMAIN: DNS for the names of Services, for pods.

dnsmasq answers from a list that is rewritten whenever Services or Endpoints change.  Run by
`scripts/cluster up --node`.
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import kubewatch

HEADLESS = ("None", "")


def names(services, endpoints, domain):
    """The lines of dnsmasq's list."""
    def name(one):
        return f"{one['metadata']['name']}.{one['metadata']['namespace']}.svc.{domain}"

    addresses = {name(one): one["spec"].get("clusterIP", "") for one in services}
    yield from (f"{address} {service}" for service, address in addresses.items()
                if address not in HEADLESS)
    for one in endpoints:
        if addresses.get(name(one)) != "None":
            continue
        for subset in one.get("subsets") or ():
            for address in subset.get("addresses") or ():
                yield f"{address['ip']} {name(one)}"
                if address.get("hostname"):
                    yield f"{address['ip']} {address['hostname']}.{name(one)}"


def start_server(file, address, domain):
    """dnsmasq, which ends with this process.  It inherits that SIGHUP is ignored, until it handles
    the signal: otherwise an early one would end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return subprocess.Popen([
        "setpriv", "--pdeathsig", "KILL", "dnsmasq", "--conf-file=/dev/null", "--keep-in-foreground",
        "--user=root", "--pid-file=", "--bind-interfaces", f"--listen-address={address}",
        "--except-interface=lo", "--no-resolv", "--no-hosts", f"--addn-hosts={file}",
        f"--local=/{domain}/", "--cache-size=0", "--local-ttl=1"])


def end_with(server):
    """Ends this process when the server has ended."""
    server.wait()
    os._exit(1)


def main():
    cluster, url, address, domain = sys.argv[1:]
    file = pathlib.Path(cluster) / "node" / "names"
    file.write_text("", "utf-8")
    server = start_server(file, address, domain)
    threading.Thread(target=end_with, args=[server], daemon=True).start()

    def act(collections):
        text = "".join(f"{line}\n" for line in names(*collections, domain))
        if text != file.read_text("utf-8"):
            new = file.with_suffix(".new")
            new.write_text(text, "utf-8")
            new.replace(file)
            server.send_signal(signal.SIGHUP)

    kubewatch.settle(cluster, url, ["/api/v1/services", "/api/v1/endpoints"], act)


main()
