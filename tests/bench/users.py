# SPDX-License-Identifier: Apache-2.0
"""1,000 DatabaseUsers on one MariaDB: how fast steward creates their accounts, compared with a loop
that sends the same statements over one connection; and what reconciling settled ones costs.

API server and MariaDB are real, the latter with its default durability.  Another steward admits the
objects before the run, and 50 of them are settled.  The statements are taken from the server's log
of steward's run and sent again by its own client, with other account names.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import versus  # noqa: E402
from bench.fleet import say, steady_rss_kib  # noqa: E402
from support import cluster as k8s  # noqa: E402
from support import databases, databaseuser, paths, wait  # noqa: E402
from support import steward as stw  # noqa: E402

RATE_MIN = 0.70
STATEMENTS_MAX = 2
GROWTH_MAX_KIB = 1.5
FEW = 50  # exist before the run, so that steward has its connections; the baseline of memory
NS = "users"
PG_SHOP = [{"database": "shop", "privileges": ["CONNECT"]},
           {"database": "shop", "schema": "public", "table": "*", "privileges": ["SELECT", "INSERT"]}]
USERS = f"/apis/handsomeguy.cn/v1alpha1/namespaces/{NS}/databaseusers"
SECRETS = f"/api/v1/namespaces/{NS}/secrets"
LINE = re.compile(r"^(?:\d{6}\s+\d+:\d\d:\d\d)?\t\s*(\d+) (\w+)(?:\t(.*))?$")


class Users:
    """A cluster, a MariaDB, and a steward between them."""

    def __init__(self, cluster, folder, server, binary=None):
        self.cluster, self.server = cluster, server
        self.api, binary = cluster.api, binary or paths.steward_binary()
        stw.install(cluster, binary)
        cluster.kubeconfig_steward = cluster.kubeconfig_of(stw.ACCOUNT, folder / "kubeconfig")
        cluster.create_namespace(NS)
        self.dbenv = databaseuser.Environment(cluster, binary, folder, {"main": server})
        self.steward = self.dbenv.steward
        self.steward.args += ["--log-level", "warn"]

    def create(self, first, count):
        """Creates Secrets and objects; a steward that reconciles nothing admits them."""
        names = [f"steward-{n:05}" for n in range(first, count)]
        with self.dbenv.webhook():
            self.api.write_all(
                ("POST", SECRETS, databaseuser.secret(name, NS, f"{name}-Passw0rd"))
                for name in names)
            grants = PG_SHOP if self.server.engine == "postgresql" else databaseuser.SHOP
            self.api.write_all(("POST", USERS, databaseuser.manifest(name, NS, grants=grants)) for name in names)

    def ready(self):
        """How many are ready, by steward's own metric."""
        return int(self.steward.metric("steward_objects", kind="DatabaseUser", condition="Ready",
                                       status="True"))

    def wait_ready(self, count, seconds=600):
        """Waits until `count` are ready; returns the time."""
        wait.until(f"{count} to be ready", lambda: self.ready() >= count, seconds, every=0.3)
        return time.monotonic()

    def start(self):
        """Starts steward; returns the time of the start."""
        begin = time.monotonic()
        self.steward.start()
        return begin

    def restarted_rss(self, count):
        """Resident memory with `count` settled objects, each reconciled once; stops steward."""
        self.start()
        self.wait_ready(count)
        self.steward.stop()
        self.start()
        wait.until("a look at each", lambda: self.runs() >= count, 300, every=0.3)
        steady_rss_kib(self.steward)
        resync(self, FEW)  # code pages dropped after the start are resident again in both cases
        rss = steady_rss_kib(self.steward)
        self.steward.stop()
        return rss

    def connections(self):
        """Open connections to the database server."""
        return int(self.steward.metric("steward_sql_connections", target="main"))

    def statements(self):
        """SQL statements sent so far."""
        return int(self.steward.metric("steward_sql_statements_total", target="main"))

    def runs(self):
        """Reconciles so far."""
        return int(self.steward.metric("controller_runtime_reconcile_total",
                                       controller="databaseuser"))

    def writes(self):
        """Requests that change something, so far."""
        return sum(int(self.steward.metric("rest_client_requests_total", method=m))
                   for m in ("POST", "PATCH", "PUT", "DELETE"))


def cpu_seconds(users):
    """{component: CPU seconds so far} of the cluster's parts and the database server."""
    folder = pathlib.Path(users.cluster.env["STEWARD_CLUSTER_DIR"]) / "run"
    pids = {file.stem: file.read_text("ascii").split()[0] for file in folder.glob("*.pid")}
    pids["mariadb"] = str(users.server.process.pid)
    return {name: cpu_of(pid) for name, pid in pids.items()}


def cpu_of(pid):
    """User and system CPU seconds of a process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def log_size(server):
    """The current size of the server's general log."""
    return (server.folder / "general.log").stat().st_size


def logged(server, begin, end):
    """The statements in that part of the log, as sent."""
    found = []
    with open(server.folder / "general.log", "rb") as file:
        file.seek(begin)
        text = file.read(end - begin).decode("utf-8", "surrogateescape")
    for line in text.split("\n"):
        match = LINE.match(line)
        if match and match[2] == "Query":
            found.append(match[3])
        elif not match and found and line:
            found[-1] += "\n" + line
    return [s for s in found if "steward-0" in s]


def replay(server, statements):
    """Seconds that one connection takes for them, with other account names."""
    script = "".join(s.replace("steward-0", "plainer-0") + ";\n" for s in statements)
    begin = time.monotonic()
    result = server.run_client("--force", check=False, stdin=script, user=databases.dbserver.ADMIN,
                               password=server.admin_password, tcp=True)
    took = time.monotonic() - begin
    if result.returncode != 0 or result.stderr:
        raise RuntimeError(f"the plain loop failed: {result.stderr[:500]}")
    return took


def poke_all(users, count):
    """Asks for one reconcile of each settled object."""
    now = str(time.monotonic_ns())
    for n in range(count):
        users.api.call("PATCH", f"{USERS}/steward-{n:05}",
                       {"metadata": {"annotations": {"steward.dev/reconcile-at": now}}},
                       "application/merge-patch+json")


def resync(users, count):
    """(statements, writes to the API server) of one reconcile of each settled object."""
    runs, sent, wrote = users.runs(), users.statements(), users.writes()
    poke_all(users, count)
    wait.until("a look at each", lambda: users.runs() - runs >= count, 300, every=0.1)
    return users.statements() - sent, users.writes() - wrote


def measure(cluster, folder, count):
    """The figures as a dict."""
    server = databases.MariaDB("--innodb-flush-log-at-trx-commit=1")
    try:
        users = Users(cluster, folder, server)
        users.create(0, FEW)
        few = users.restarted_rss(FEW)
        say(f"{count} DatabaseUsers: creating objects and Secrets")
        users.create(FEW, count)
        begin_log = log_size(server)
        say("steward starts")
        had = cpu_seconds(users)
        begin = users.start()
        took = users.wait_ready(count) - begin
        cpu_by = {name: round(cpu - had[name], 2) for name, cpu in cpu_seconds(users).items()}
        requests = {m: int(users.steward.metric("rest_client_requests_total", method=m))
                    for m in ("GET", "POST", "PATCH")}
        runs, cpu = users.runs(), users.steward.metric("process_cpu_seconds_total")
        statements = logged(server, begin_log, log_size(server))
        say("The same statements over one connection")
        plain = replay(server, statements)
        say("A look at each of the settled")
        sent, wrote = resync(users, count)
        grown = steady_rss_kib(users.steward)
        users.steward.stop()
        read = users.restarted_rss(count)
        new = count - FEW
        return {"users": count, "took_s": round(took, 2), "users_per_s": round(new / took, 1),
                "requests": requests, "runs": runs,
                "steward_cpu_s": round(cpu, 2), "cpu_s": cpu_by,
                "statements": len(statements), "plain_loop_s": round(plain, 2),
                "plain_loop_users_per_s": round(new / plain, 1), "rate": round(plain / took, 2),
                "resync_statements_per_user": round(sent / count, 3), "resync_api_writes": wrote,
                "rss_few_kib": few, "rss_kib": read, "rss_as_grown_kib": grown,
                "kib_per_user": round((read - few) / new, 2)}
    finally:
        server.close()


def measure_one(cluster, folder, binary, kind, count):
    """Connections, statements and seconds of one program: until all accounts are made, and for a look at each."""
    server = kind(*["log_connections=on"] * (kind is databases.PostgreSQL))
    target = server.target  # the reference may not know what it does not need
    server.target = lambda name, **more: {k: v for k, v in target(name, **more).items() if k != "allowIAM"}
    try:
        users = Users(cluster, folder, server, binary)
        users.create(0, count)
        opened, most = connects(server), []
        begin = users.start()

        def ready():
            most.append(users.connections())
            return users.ready() >= count
        wait.until(f"{count} to be ready", ready, 600)
        took, sent, opened = time.monotonic() - begin, users.statements(), connects(server) - opened
        begin = time.monotonic()
        before = users.statements()
        poke_all(users, count)  # a run that waits for a place at the server sends none, and comes again
        wait.until("a look at each", lambda: users.statements() - before >= count, 300)
        looked, look_s = users.statements() - before, time.monotonic() - begin
        users.steward.stop()
        return {"connections": max(most), "connections_made": opened, "statements": round(sent / count, 2),
                "seconds": round(took, 2), "look_statements": round(looked / count, 2),
                "look_seconds": round(look_s, 2)}
    finally:
        server.close()


def connects(server):
    """How often the admin has connected."""
    if server.engine == "postgresql":
        return server.log_text().count(f"connection authorized: user={databases.dbserver.ADMIN}")
    log = (server.folder / "general.log").read_text("utf-8", "replace")
    return len(re.findall(rf"Connect\t{databases.dbserver.ADMIN}@", log))


def compare(reference, count):
    """{engine: {program: figures}}"""
    found = {}
    for kind in (databases.MariaDB, databases.PostgreSQL):
        for name, binary in versus.binaries(reference).items():
            say(f"{count} DatabaseUsers on {kind.engine}: {name}")
            cluster = f"bench-{os.getpid()}"
            k8s.cluster_command(cluster, "up")
            try:
                with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
                    found.setdefault(kind.engine, {})[name] = measure_one(
                        k8s.Cluster(k8s.cluster_env(cluster)), pathlib.Path(folder), binary, kind, count)
            finally:
                k8s.cluster_command(cluster, "down")
    return found


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench users",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--reference", metavar="COMMIT",
                        help="only connections, statements and seconds on MariaDB and PostgreSQL, beside this "
                             "one's steward")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    if args.reference:
        print(json.dumps(compare(args.reference, args.count), indent=1))
        return 0
    name = os.environ.get("STEWARD_CLUSTER_NAME") or f"bench-{os.getpid()}"
    mine = "STEWARD_CLUSTER_NAME" not in os.environ
    say(f"Cluster {name}: starting")
    k8s.cluster_command(name, "up")
    try:
        with tempfile.TemporaryDirectory(prefix="steward-bench-") as folder:
            f = measure(k8s.Cluster(k8s.cluster_env(name)), pathlib.Path(folder), args.count)
    finally:
        if mine:
            k8s.cluster_command(name, "down")
    checks = [("rate of the plain loop's", f["rate"], f"at least {RATE_MIN}", f["rate"] >= RATE_MIN),
              ("statements for a settled one", f["resync_statements_per_user"],
               f"at most {STATEMENTS_MAX}", f["resync_statements_per_user"] <= STATEMENTS_MAX),
              ("API writes for all settled", f["resync_api_writes"], "none",
               f["resync_api_writes"] == 0),
              ("RSS growth per user, KiB", f["kib_per_user"], f"at most {GROWTH_MAX_KIB}",
               f["kib_per_user"] <= GROWTH_MAX_KIB)]
    if args.output == "json":
        print(json.dumps(dict(f, good=all(c[3] for c in checks)), indent=1))
    else:
        print(f"{f['users']} DatabaseUsers ready after {f['took_s']} s ({f['users_per_s']} a second); "
              f"the same {f['statements']} statements over one connection: {f['plain_loop_s']} s")
        print(f"RSS with {FEW} {f['rss_few_kib']} KiB, with all {f['rss_kib']} KiB; as grown "
              f"{f['rss_as_grown_kib']} KiB")
        for what, value, limit, good in checks:
            print(f"{'ok  ' if good else 'OVER'} {what}: {value} ({limit})")
    return 0 if all(c[3] for c in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
