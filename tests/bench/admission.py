# SPDX-License-Identifier: Apache-2.0
"""Compares steward's admission throughput with what libmicrohttpd and GnuTLS reach alone.

`steward webhook` and a bare handler that returns a constant run side by side, pinned to one core,
the load generator to another.  They take turns in short rounds, so that other load on the machine
affects both.  The medians of the rounds are compared.  With --reference the steward of another
commit takes part, and both stewards are release builds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import bodies, versus  # noqa: E402
from support import paths  # noqa: E402

PRIORITIES = ("NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"
              "+CHACHA20-POLY1305:-RSA:-DHE-RSA:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"
              "+GROUP-SECP384R1:%SERVER_PRECEDENCE")
WEBHOOKS = {"validate": "/validate-operator-k8s-summit-org-v1-myweb",
            "mutate": "/mutate-operator-k8s-summit-org-v1-myweb"}
SMALL, LARGE = 1536, 20480
# At 8 connections steward must reach this part of the bare handler's rate.
TARGETS = {("validate", SMALL): 0.5, ("mutate", SMALL): 0.4,
           ("validate", LARGE): 0.4, ("mutate", LARGE): 0.4}
REFERENCE_TARGET = 0.97
TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_S = 0.2


def say(text):
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def pinned(cpu):
    """For preexec_fn: the child runs on this core only."""
    return lambda: os.sched_setaffinity(0, {cpu})


def make_certificate(folder):
    """tls.crt and tls.key, P-256 as steward's own."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
        check=True, stderr=subprocess.DEVNULL)


class Server:
    """A contender: its process and port."""

    def __init__(self, process, port):
        self.process, self.port = process, port

    def cpu_seconds(self):
        """User and system time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self):
        """Sends SIGTERM and waits for the exit."""
        self.process.terminate()
        self.process.wait(30)


def start_bare(build, folder, cpu, mode):
    """Starts the bare handler, which sets the upper bound; it prints its port."""
    process = subprocess.Popen(
        [build / "tests" / "bench" / "bare", folder / "tls.crt", folder / "tls.key", "2", mode,
         PRIORITIES], stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cpu))
    return Server(process, int(process.stdout.readline()))


def start_steward(binary, folder, cpu, name="steward"):
    """Starts `steward webhook`; the port is read from its log."""
    log_path = folder / f"{name}.log"
    with open(log_path, "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [binary, "webhook", "--webhook-cert-path", folder, "--webhook-bind-address", "127.0.0.1:0",
             "--health-probe-bind-address", "0", "--metrics-bind-address", "0", "--log-format", "json"],
            stderr=log, preexec_fn=pinned(cpu))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        for line in log_path.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("msg") == "serving admission":
                return Server(process, entry["port"])
        time.sleep(0.02)
    sys.exit(f"steward did not start:\n{log_path.read_text('utf-8')}")


class Load:
    """A load generator with its connections to one server open."""

    def __init__(self, build, server, path, body, connections, cpu):
        self.server = server
        self.process = subprocess.Popen(
            [build / "tests" / "bench" / "load", str(server.port), path, body, str(connections)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cpu))

    def run(self, seconds):
        """One round; the result has the server's CPU seconds per 10,000 requests."""
        before = self.server.cpu_seconds()
        print(seconds, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the load generator ended early")
        result = json.loads(line)
        if result["errors"]:
            sys.exit(f"{result['errors']} requests were not answered with 200")
        used = self.server.cpu_seconds() - before
        result["cpu_s_10k"] = used / max(result["requests"], 1) * 10000
        return result

    def close(self):
        """Ends the generator."""
        self.process.stdin.close()
        self.process.wait(10)


def measure(loads, rounds, seconds):
    """Runs rounds in turn; returns the medians of each contender."""
    results = {name: [] for name in loads}
    for load in loads.values():
        load.run(WARM_UP_S)
    for _, name in versus.in_turns(list(loads), rounds):
        results[name].append(loads[name].run(seconds))
    return {name: {key: statistics.median(r[key] for r in runs)
                   for key in ("rate", "p50_us", "p99_us", "cpu_s_10k")}
            for name, runs in results.items()}


def cases(options):
    """Every requested combination."""
    for webhook in options.webhooks:
        for size in options.sizes:
            for connections in options.connections:
                yield webhook, size, connections


def run_case(build, servers, folder, case, options, cpu):
    """One line of the table."""
    webhook, size, connections = case
    body = folder / f"body-{webhook}-{size}"
    body.write_bytes(bodies.body(size, webhook == "mutate"))
    loads = {name: Load(build, server, WEBHOOKS[webhook], body, connections, cpu)
             for name, server in servers.items()}
    try:
        medians = measure(loads, options.rounds, options.seconds)
    finally:
        for load in loads.values():
            load.close()
    row = {"webhook": webhook, "body_bytes": body.stat().st_size, "connections": connections,
           **medians, "rate_ratio": medians["steward"]["rate"] / medians["bare"]["rate"],
           "target": TARGETS.get((webhook, size)) if connections == 8 else None}
    if "reference" in medians:
        row["ratio"] = versus.ratios(medians["steward"], medians["reference"])
    return row


HEAD = (f"{'webhook':9}{'body':>7}{'conns':>6}{'req/s':>9}{'p50 us':>8}{'p99 us':>8}{'CPU s/10k':>10}"
        f"{'bare req/s':>12}{'p50 us':>8}{'p99 us':>8}{'CPU s/10k':>10}{'ratio':>7}  target")


def line_of(row):
    """A row as text."""
    def columns(r, width):
        return (f"{r['rate']:{width}.0f}{r['p50_us']:8.0f}{r['p99_us']:8.0f}"
                f"{r['cpu_s_10k']:10.3f}")
    target = "" if row["target"] is None else f"  >= {row['target']:.0%}"
    if "ratio" in row:
        target = (f"{target:10}rate {row['ratio']['rate']:.2f}, CPU {row['ratio']['cpu_s_10k']:.2f} "
                  "of the reference")
    return (f"{row['webhook']:9}{row['body_bytes']:7}{row['connections']:6}"
            f"{columns(row['steward'], 9)}{columns(row['bare'], 12)}{row['rate_ratio']:7.0%}{target}")


def numbers(text):
    """"1,8,32" """
    return [int(part) for part in text.split(",")]


def parse():
    """The command line."""
    p = argparse.ArgumentParser(prog="scripts/bench admission", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5, help="of each contender (default 5)")
    p.add_argument("--seconds", type=float, default=1.0, help="a round (default 1)")
    p.add_argument("--sizes", type=numbers, default=[SMALL, LARGE], help="bytes of the bodies")
    p.add_argument("--connections", type=numbers, default=[1, 8, 32], help="kept open")
    p.add_argument("--webhooks", type=lambda text: text.split(","), default=list(WEBHOOKS),
                   help="validate,mutate")
    p.add_argument("--bare-mode", choices=["poll", "epoll"], default="poll",
                   help="event loop of the bare handler (default: steward's)")
    p.add_argument("--reference", metavar="COMMIT", help="measure this one's steward, too")
    p.add_argument("--check", action="store_true",
                   help="exit 1 when a target is missed, or the rates are less than "
                        f"{REFERENCE_TARGET} of the reference's (geometric mean)")
    p.add_argument("-o", "--output", choices=["text", "json"], default="text")
    return p.parse_args()


def of_reference(rows):
    """The geometric mean of all rates compared with the reference's, or None without one."""
    ratios = [r["ratio"]["rate"] for r in rows if "ratio" in r]
    return statistics.geometric_mean(ratios) if ratios else None


def verdict(rows):
    """Says which targets are missed; returns whether any is."""
    missed = [r for r in rows if r["target"] and r["rate_ratio"] < r["target"]]
    for row in missed:
        say(f"below its target: {row['webhook']}, {row['body_bytes']} bytes")
    mean = of_reference(rows)
    if mean is not None:
        say(f"rate, all cases: {mean:.3f} of the reference")
    return bool(missed) or (mean is not None and mean < REFERENCE_TARGET)


def main():
    """Runs all cases and prints the table."""
    options = parse()
    binary = pathlib.Path(paths.steward_binary()).resolve()
    build = binary.parents[1]  # has the bare handler and the load generator
    programs = {"steward": binary}
    if options.reference:
        two = versus.binaries(options.reference)
        programs = {"reference": two["reference"], "steward": two["now"]}
    cores = sorted(os.sched_getaffinity(0))
    server_cpu, load_cpu = cores[0], cores[min(1, len(cores) - 1)]
    if len(cores) == 1:
        say("there is one core only: the load generator shares it, and all numbers are lower")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        servers = {"bare": start_bare(build, folder, server_cpu, options.bare_mode)}
        try:
            for name, program in programs.items():
                servers[name] = start_steward(program, folder, server_cpu, name)
            for case in cases(options):
                say("{} {} bytes, {} connections".format(*case))
                rows.append(run_case(build, servers, folder, case, options, load_cpu))
        finally:
            for server in servers.values():
                server.stop()
    if options.output == "json":
        print(json.dumps(rows, indent=2))
    else:
        print("\n".join([HEAD, *map(line_of, rows)]))
    missed = verdict(rows)
    sys.exit(1 if missed and options.check else 0)


if __name__ == "__main__":
    main()
