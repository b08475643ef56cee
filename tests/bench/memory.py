# SPDX-License-Identifier: Apache-2.0
"""Resident memory of steward with no MyWebs, with 1,000 and with 10,000, and its start time.

The API server is a real one.  steward creates all children; kube-controller-manager is stopped, and
the benchmark marks the Deployments as available in its place (see fleet.py).  Each size is measured
twice: as grown, after steward has created everything, and after a restart, with all of it read into
the caches.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import versus  # noqa: E402
from bench.fleet import fleet, say, steady_rss_kib  # noqa: E402
from support import paths, wait  # noqa: E402

IDLE_MAX_MIB = 14
GROWTH_MAX_KIB = 2.5
START_MAX_MS = 150


def restarted(one, times):
    """Restarts `times` times: (median milliseconds to ready, resident memory)."""
    took = []
    for _ in range(times):
        one.stop()
        took.append(one.start())
    return statistics.median(took), steady_rss_kib(one.steward)


def measure(sizes):
    """One dict for each size, the first without MyWebs."""
    with fleet(paths.steward_binary()) as one:
        one.env = versus.image_env()
        one.start()  # the first start also creates the certificate
        start_ms, idle = restarted(one, 5)
        found = [{"mywebs": 0, "rss_kib": idle, "start_ms": round(start_ms, 1)}]
        for size in sizes:
            say(f"{size} MyWebs: creating")
            begin = time.monotonic()
            one.grow(size)
            seconds = one.wait_completed(3600) - begin
            grown = steady_rss_kib(one.steward)
            start_ms, read = restarted(one, 3)
            wait.until("all to be read", lambda s=size: one.completed() >= s, 60)
            read = max(read, steady_rss_kib(one.steward))
            found.append({"mywebs": size, "rss_kib": read, "rss_as_grown_kib": grown,
                          "kib_per_myweb": round((read - idle) / size, 3),
                          "kib_per_myweb_as_grown": round((grown - idle) / size, 3),
                          "cache_bytes": int(one.steward.metric("steward_cache_bytes")),
                          "start_ms": round(start_ms, 1), "created_in_s": round(seconds, 1)})
        one.stop()
        return found


def verdicts(found):
    """(what, figure, limit, whether it holds)."""
    idle, largest = found[0], found[-1]
    yield "RSS idle, MiB", round(idle["rss_kib"] / 1024, 2), IDLE_MAX_MIB
    yield "start to ready, ms", idle["start_ms"], START_MAX_MS
    if len(found) > 1:
        yield "growth per MyWeb with its three children, KiB", largest["kib_per_myweb"], \
            GROWTH_MAX_KIB


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench memory", description=__doc__.split("\n\n", maxsplit=1)[0],
        epilog="Without pods: kube-controller-manager is stopped, and the benchmark marks the "
               "Deployments as available in its place.")
    parser.add_argument("--sizes", default="1000,10000", metavar="N,N",
                        help="numbers of MyWebs (default 1000,10000)")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    found = measure([int(s) for s in args.sizes.split(",") if s])
    checks = [(what, value, limit, value <= limit) for what, value, limit in verdicts(found)]
    if args.output == "json":
        print(json.dumps({"sizes": found, "checks": checks}, indent=1))
    else:
        print(f"{'MyWebs':>8} {'RSS MiB':>9} {'as grown':>9} {'KiB each':>9} {'as grown':>9} "
              f"{'start ms':>9}")
        for f in found:
            grown = f.get("rss_as_grown_kib", f["rss_kib"])
            print(f"{f['mywebs']:>8} {f['rss_kib'] / 1024:>9.2f} {grown / 1024:>9.2f} "
                  f"{f.get('kib_per_myweb', 0):>9.2f} {f.get('kib_per_myweb_as_grown', 0):>9.2f} "
                  f"{f['start_ms']:>9.1f}")
        for what, value, limit, good in checks:
            print(f"{'ok  ' if good else 'OVER'} {what}: {value} (at most {limit})")
    return 0 if all(c[3] for c in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
