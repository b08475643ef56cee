# SPDX-License-Identifier: Apache-2.0
"""10,000 Erus: memory for each, and CPU while none is due; and 500 that are due at the same
instant: time until all are stamped, and API requests for each.

The API server is a real one.  The controller manager is stopped, since it would only add load of
its own; the benchmark marks the Deployments of the 500 as available.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.fleet import say, steady_rss_kib  # noqa: E402
from support import cluster as k8s  # noqa: E402
from support import eru, paths, wait  # noqa: E402
from support import steward as stw  # noqa: E402

KIB_MAX = 1.0
CPU_MAX_PERCENT = 0.1
REQUESTS_MAX = 3
FLEET, DUE = "fleet", "due"


def deployments(ns):
    """The path of their collection."""
    return f"/apis/apps/v1/namespaces/{ns}/deployments"


def erus(ns):
    """The path of their collection."""
    return f"/apis/mtsre.meitu.com/v1/namespaces/{ns}/erus"


class Bench:
    """A cluster, and a steward process for it."""

    def __init__(self, cluster, folder):
        self.cluster, self.api = cluster, cluster.api
        stw.install(cluster, paths.steward_binary())
        cluster.component("stop", "controller-manager")
        for ns in (FLEET, DUE):
            cluster.create_namespace(ns)
        account = cluster.kubeconfig_of(stw.ACCOUNT, folder / "kubeconfig")
        self.steward = stw.Steward(paths.steward_binary(), cluster, account, folder,
                                   ["--log-level", "warn"])

    def wait_ready(self, count):
        """Waits until `count` are Ready, by steward's own metric."""
        wait.until(f"{count} to be Ready", lambda: self.ready() >= count, 900, every=0.5)

    def ready(self):
        """How many are Ready, by steward's own metric."""
        return int(self.steward.metric("steward_objects", kind="Eru", condition="Ready",
                                       status="True"))

    def cpu_seconds(self):
        """CPU time so far."""
        with open(f"/proc/{self.steward.process.pid}/schedstat", encoding="ascii") as file:
            main = int(file.read().split()[0])
        threads = pathlib.Path(f"/proc/{self.steward.process.pid}/task")
        return max(main, sum(int((t / "schedstat").read_text().split()[0])
                             for t in threads.iterdir())) / 1e9


def names(count):
    """web-00000 and so on."""
    return [f"web-{n:05}" for n in range(count)]


def measure_fleet(bench, count, seconds):
    """Memory and idle CPU."""
    say(f"{count} Deployments")
    bench.api.write_all(("POST", deployments(FLEET), eru.deployment(n, FLEET, replicas=0))
                for n in names(count))
    bench.steward.start()
    without, count_before = steady_rss_kib(bench.steward), bench.ready()
    say(f"{count} Erus")
    bench.api.write_all(("POST", erus(FLEET), eru.manifest(n, FLEET, enabled=True, schedule="0 0 1 1 *"))
                for n in names(count))
    bench.wait_ready(count_before + count)
    grown = steady_rss_kib(bench.steward)
    say(f"{seconds} s in which nothing is due")
    before = bench.cpu_seconds()
    time.sleep(seconds)  # CPU is measured over exactly this time
    cpu = bench.cpu_seconds() - before
    bench.steward.stop()
    bench.steward.start()
    bench.wait_ready(count_before + count)
    read = steady_rss_kib(bench.steward)
    bench.steward.stop()
    return {"erus": count, "rss_deployments_kib": without, "rss_kib": grown,
            "rss_after_restart_kib": read, "kib_per_eru": round((read - without) / count, 3),
            "kib_per_eru_as_grown": round((grown - without) / count, 3),
            "idle_cpu_percent": round(100 * cpu / seconds, 4)}


def available(found):
    """The status of a Deployment whose rollout is complete."""
    wanted = found["spec"]["replicas"]
    return {"status": {"observedGeneration": found["metadata"]["generation"], "replicas": wanted,
                       "updatedReplicas": wanted, "availableReplicas": wanted,
                       "readyReplicas": wanted}}


def requests_for_each(cluster, found):
    """Requests for each until its status has the stamp, from the API server's audit log."""
    counts, done = collections.Counter(), set()
    for verb, path, _ in stw.requests(cluster, DUE):
        name = next((part for part in path.split("?")[0].split("/") if part in found), None)
        if name is None or name in done or "/events" in path:
            continue
        counts[name] += 1
        if verb == "patch" and "/erus/" in path and "/deployments/" not in path and counts[name] > 1:
            done.add(name)
    return counts


def measure_due(bench, count):
    """All due at once."""
    say(f"{count} Deployments, available")
    bench.api.write_all(("POST", deployments(DUE), eru.deployment(n, DUE)) for n in names(count))
    bench.api.write_all(("PATCH", f"{deployments(DUE)}/{o['metadata']['name']}/status", available(o),
                 "application/merge-patch+json") for o in bench.api.each(deployments(DUE)))
    bench.steward.start()
    ready = bench.ready()
    schedule, instant = eru.next_minute(room=15 + count // 40)
    bench.api.write_all(("POST", erus(DUE), eru.manifest(n, DUE, enabled=True, schedule=schedule))
                for n in names(count))
    bench.wait_ready(ready + count)
    if datetime.datetime.now(datetime.timezone.utc) >= instant:
        raise RuntimeError("the instant came before all Erus were there: use fewer")
    with open(bench.cluster.audit_log, "r+", encoding="utf-8") as log:
        log.truncate(0)
    eru.wait_until(instant)
    begin = time.monotonic()
    stamp = eru.iso(instant)

    def stamped():
        return sum(o.get("status", {}).get("lastScheduleTime") == stamp
                   for o in bench.api.each(erus(DUE)))
    wait.until("all to be stamped", lambda: stamped() == count, 300, every=0.3)
    took = time.monotonic() - begin
    on_template = sum(
        o["spec"]["template"]["metadata"].get("annotations", {}).get(eru.STAMP) == stamp
        for o in bench.api.each(deployments(DUE)))
    counts = requests_for_each(bench.cluster, set(names(count)))
    dropped = int(bench.steward.metric("steward_client_dropped_total"))
    bench.steward.stop()
    return {"due": count, "stamped": on_template, "took_s": round(took, 2),
            "requests_for_each": round(sum(counts.values()) / max(len(counts), 1), 2),
            "requests_at_most": max(counts.values(), default=0), "events_dropped": dropped}


def report(f, checks):
    """As text."""
    print(f"{f['erus']} Erus: RSS with their Deployments alone {f['rss_deployments_kib']} KiB, "
          f"with all {f['rss_kib']} KiB, after a restart {f['rss_after_restart_kib']} KiB")
    print(f"{f['due']} due at once: {f['stamped']} stamped within {f['took_s']} s, "
          f"{f['requests_for_each']} requests for each on average")
    for what, value, limit, good in checks:
        print(f"{'ok  ' if good else 'OVER'} {what}: {value} ({limit})")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench eru",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--due", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60, help="of idling")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    name = f"bench-eru-{os.getpid()}"
    say(f"Cluster {name}: starting")
    k8s.cluster_command(name, "up", "--audit")
    try:
        with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
            bench = Bench(k8s.Cluster(k8s.cluster_env(name)), pathlib.Path(folder))
            f = measure_due(bench, args.due)
            f.update(measure_fleet(bench, args.count, args.seconds))
    finally:
        k8s.cluster_command(name, "down")
    checks = [("KiB for each Eru", f["kib_per_eru"], f"at most {KIB_MAX}",
               f["kib_per_eru"] <= KIB_MAX),
              ("CPU while nothing is due, %", f["idle_cpu_percent"], f"under {CPU_MAX_PERCENT}",
               f["idle_cpu_percent"] < CPU_MAX_PERCENT),
              ("stamped at the instant", f["stamped"], f"all {args.due}",
               f["stamped"] == args.due),
              ("events dropped", f["events_dropped"], "none", f["events_dropped"] == 0),
              ("requests for each", f["requests_at_most"], f"at most {REQUESTS_MAX}",
               f["requests_at_most"] <= REQUESTS_MAX)]
    if args.output == "json":
        print(json.dumps(dict(f, good=all(c[3] for c in checks)), indent=1))
    else:
        report(f, checks)
    return 0 if all(c[3] for c in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
