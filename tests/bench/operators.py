# SPDX-License-Identifier: Apache-2.0
"""The same operator on libsteward, controller-runtime and kube-rs: size, memory, start, CPU.

Each reconciles Redirects (examples/compare/README.md) on a real API server of the newest version, with
the same rights, workers and certificate, and must first pass the same script of behaviour
(tests/bench/redirects.py).  The contenders take turns.  kube-controller-manager is stopped before the
measurements, so that only the contender and the API server work.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import sys
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import contenders, redirects, versus  # noqa: E402
from bench.admission import Load, Server, make_certificate  # noqa: E402
from bench.fleet import bench_cluster, clear, say, status_kib, steady_rss_kib  # noqa: E402
from support import cluster as k8s  # noqa: E402
from support import paths  # noqa: E402

CONNECTIONS = 8
STEADY_S = 20  # memory counts that does not change for so long: all of them release some when idle
WAIT_S = 3600  # until all objects are ready, or a process has nothing left to do
# What the table shows: (key, title, divisor, decimals).
ROWS = (
    ("lines", "lines of code written by hand", 1, 0),
    ("binary_bytes", "program, MiB", 1 << 20, 1),
    ("idle_rss_kib", "memory idle, MiB", 1024, 1),
    ("grown_rss_kib", "memory with {objects} objects, as grown, MiB", 1024, 1),
    ("read_rss_kib", "memory with {objects} objects, after a restart, MiB", 1024, 1),
    ("read_peak_kib", "peak of that restart, MiB", 1024, 1),
    ("start_ms", "time to ready, ms", 1, 0),
    ("read_ready_ms", "time to ready with {objects} objects, ms", 1, 0),
    ("read_cpu_s", "CPU of that restart until nothing is left to do, s", 1, 2),
    ("cpu_ms_each", "CPU for each created object, ms", 1, 2),
    ("complete_s", "seconds until all {count} created objects are ready", 1, 1),
    ("mutate_cpu_s", "CPU for 10,000 mutating reviews, s", 1, 2),
    ("validate_cpu_s", "CPU for 10,000 validating reviews, s", 1, 2),
)


class Bench:
    """The cluster, and the programs."""

    def __init__(self, cluster, folder, built):
        self.cluster, self.api, self.folder, self.built = cluster, cluster.api, folder, built
        self.found = {contender.name: {} for contender in built}
        self.ready = redirects.Ready(cluster.api)

    def prepare(self):
        """The CRD, the namespace, and the certificate of all webhooks."""
        self.cluster.apply(crd(next(iter(self.built.values()))))
        self.cluster.wait_established()
        if not self.cluster.get("namespace", redirects.NAMESPACE):
            self.cluster.create_namespace(redirects.NAMESPACE)
        self.clear()
        make_certificate(self.folder)
        self.ready.start()

    def clear(self):
        """Removes all Redirects and children."""
        clear(self.api, redirects.PATH)
        self.ready.names.clear()

    def started(self, contender, cpu=None):
        """A contender that is ready."""
        return contenders.Process(contender, self.built[contender], self.folder, self.cluster.kubeconfig, cpu)

    def in_turns(self, rounds):
        """(round, contender)."""
        return versus.in_turns(list(self.built), rounds)

    # --- measurements; each adds to self.found

    def conform(self):
        """All behave alike; who does not is measured no further."""
        for contender in list(self.built):
            process = None
            try:
                with self.started(contender) as process:
                    redirects.check(self.cluster, process, self.folder / "tls.crt")
                say(f"{contender.name}: behaves as it must")
            except (AssertionError, RuntimeError) as error:
                say(f"{contender.name}: FAILED: {error}\n{process.log_tail() if process else error}")
                self.found[contender.name]["failed"] = str(error)[:1000]
                del self.built[contender]

    def sizes(self):
        """What needs no process."""
        for contender, binary in self.built.items():
            self.found[contender.name].update(lines=contender.lines(), binary_bytes=binary.stat().st_size)

    def idle(self, rounds):
        """Start and memory without objects."""
        def once(process):
            return {"start_ms": process.ready_ms, "idle_rss_kib": steady_rss_kib(process, STEADY_S)}
        self._rounds("start", rounds, once)

    def create(self, count, rounds):
        """CPU for new objects."""
        def once(process):
            before = versus.settled_usage(process.pid)["cpu_s"]
            took = self._grow(count)
            used = versus.settled_usage(process.pid, WAIT_S)["cpu_s"] - before
            return {"cpu_ms_each": 1000 * used / count, "complete_s": took}
        self._rounds("create", rounds, once, after=self.clear)

    def admit(self, rounds, seconds):
        """CPU for reviews, a core for the server and one for the load."""
        cores = sorted(os.sched_getaffinity(0))
        server_cpu, load_cpu = cores[0], cores[min(1, len(cores) - 1)]
        with contextlib.ExitStack() as stack:
            running = {c: stack.enter_context(self.started(c, server_cpu)) for c in self.built}
            for webhook, path in redirects.WEBHOOKS.items():
                body = self.folder / f"review-{webhook}"
                body.write_bytes(redirects.review(webhook))
                loads = {}
                for contender, process in running.items():
                    server = Server(process.process, process.ports.webhook)
                    loads[contender] = Load(paths.build(), server, path, body, CONNECTIONS, load_cpu)
                    stack.callback(loads[contender].close)
                self._admit(webhook, loads, rounds, seconds)

    def _admit(self, webhook, loads, rounds, seconds):
        runs = {contender: [] for contender in loads}
        for load in loads.values():
            load.run(0.5)
        for _, contender in versus.in_turns(list(loads), rounds):
            runs[contender].append(loads[contender].run(seconds))
        for contender, each in runs.items():
            medians = versus.medians(each)
            self.found[contender.name].update({
                f"{webhook}_cpu_s": medians["cpu_s_10k"], f"{webhook}_rate": medians["rate"],
                f"{webhook}_reviews": sum(r["requests"] for r in each)})
            say(f"{webhook}, {contender.name}: {medians['cpu_s_10k']:.2f} s of CPU for 10,000")

    def hold(self, count):
        """Memory with many objects: of the process that made the children, and after a restart."""
        for contender in self.built:
            found = self.found[contender.name]
            with self.started(contender) as process:
                self._grow(count)
                versus.settled_usage(process.pid, WAIT_S)
                found["grown_rss_kib"] = steady_rss_kib(process, STEADY_S)
            with self.started(contender) as process:
                found["read_ready_ms"] = process.ready_ms
                found["read_cpu_s"] = versus.settled_usage(process.pid, WAIT_S)["cpu_s"]
                found["read_rss_kib"] = steady_rss_kib(process, STEADY_S)
                found["read_peak_kib"] = status_kib(process.pid, "VmHWM")
            say(f"{contender.name}: {found['grown_rss_kib'] / 1024:.1f} MiB with {count} objects, "
                f"{found['read_rss_kib'] / 1024:.1f} after a restart")
            self.clear()

    def _grow(self, count):
        """Creates objects; the seconds until all are ready."""
        begin = time.monotonic()
        redirects.grow(self.api, count)
        self.ready.wait(count, WAIT_S)
        return time.monotonic() - begin

    def _rounds(self, what, rounds, once, after=None):
        found = {contender: [] for contender in self.built}
        for n, contender in self.in_turns(rounds):
            with self.started(contender) as process:
                found[contender].append(once(process))
            shown = ", ".join(f"{k} {v:.1f}" for k, v in found[contender][-1].items())
            say(f"{what}, round {n + 1} of {rounds}, {contender.name}: {shown}")
            if after:
                after()
        for contender, each in found.items():
            self.found[contender.name].update(versus.medians(each))


def crd(binary):
    """The CustomResourceDefinition of Redirect, one for all, as the C program prints it."""
    every = yaml.safe_load_all(k8s.run([binary, "print", "crds"]).stdout)
    return next(c for c in every if c and c["spec"]["names"]["kind"] == "Redirect")


def measure(options):
    """Everything: the result."""
    built, missing = contenders.build_all(options.contenders, not options.kept)
    if "libsteward" not in {c.name for c in built}:
        sys.exit("libsteward must be among the contenders: its program prints the CRD")
    with bench_cluster() as (cluster, folder):
        bench = Bench(cluster, folder, built)
        result = {"when": datetime.date.today().isoformat(), "kubernetes": cluster.release(),
                  "cpus": os.cpu_count(), "load_before": os.getloadavg()[0], "machine": platform.machine(),
                  "tools": contenders.toolchains(), "missing": missing,
                  "versions": {c.name: c.version() for c in built},
                  "objects": options.objects, "count": options.count, "rounds": options.rounds}
        bench.prepare()
        bench.conform()
        if not options.conformance:
            cluster.component("stop", "controller-manager")
            bench.sizes()
            bench.idle(options.rounds)
            bench.admit(options.rounds, options.seconds)
            bench.create(options.count, options.rounds)
            bench.hold(options.objects)
        return {**result, "load_after": os.getloadavg()[0], "figures": bench.found}


def table(result):
    """The figures as a Markdown table."""
    names = list(result["figures"])
    head = [f"{n} {result['versions'][n]}" for n in names]
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(names) + 1) + "|"]
    for key, title, divisor, decimals in ROWS:
        cells = [cell(result["figures"][n].get(key), divisor, decimals) for n in names]
        lines.append("| " + " | ".join([title.format_map(result), *cells]) + " |")
    return "\n".join(lines)


def cell(value, divisor, decimals):
    """A figure, or a dash."""
    return "-" if value is None else f"{value / divisor:,.{decimals}f}"


def ratios(figures, base="libsteward"):
    """{name: {key: figure divided by that of libsteward}}."""
    return {name: versus.ratios(found, figures[base]) for name, found in figures.items() if name != base}


def parse(arguments=None):
    """The command line."""
    p = argparse.ArgumentParser(prog="scripts/bench operators",
                                description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--objects", type=int, default=10000, help="for memory (10000)")
    p.add_argument("--count", type=int, default=500, help="new objects of a round, for CPU (500)")
    p.add_argument("--rounds", type=int, default=3, help="of each contender (3)")
    p.add_argument("--seconds", type=float, default=2.0, help="of reviews in a round (2)")
    p.add_argument("--contenders", type=lambda text: text.split(","), metavar="NAME,NAME",
                   default=[c.name for c in contenders.ALL],
                   help=f"default {','.join(c.name for c in contenders.ALL)}")
    p.add_argument("--kept", action="store_true", help="take the programs that the last run built")
    p.add_argument("--conformance", action="store_true", help="only check that all behave alike")
    p.add_argument("--json", metavar="FILE", help="also write everything into this file")
    p.add_argument("-o", "--output", choices=["text", "json"], default="text")
    return p.parse_args(arguments)


def main():
    """Measures and prints."""
    options = parse()
    result = measure(options)
    result["ratios"] = ratios(result["figures"])
    text = json.dumps(result, indent=1)
    if options.json:
        pathlib.Path(options.json).write_text(text + "\n", "utf-8")
    failed = {n: f["failed"] for n, f in result["figures"].items() if "failed" in f}
    if options.output == "json":
        print(text)
    elif not options.conformance:
        print(table(result))
    for name, why in {**result["missing"], **failed}.items():
        say(f"Not measured: {name}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
