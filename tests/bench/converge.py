# SPDX-License-Identifier: Apache-2.0
"""Time until 500 new MyWebs or Apps are all complete, and API requests for each.

The API server is a real one.  kube-controller-manager is stopped, and the benchmark marks the
Deployments as available in its place (see fleet.py).  With --real-controllers it does so itself, at
its own 20 requests a second.  Requests are counted by steward's rest_client_requests_total, less
those for lists, watches and its certificate before the first object.
"""

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.fleet import KINDS, fleet, say  # noqa: E402
from support import paths, wait  # noqa: E402

REQUESTS_MAX = {"MyWeb": 6, "App": 8}
SETTLED_S = 60


def by_method(steward):
    """Requests so far, by method."""
    return {m: int(steward.metric("rest_client_requests_total", method=m))
            for m in ("GET", "POST", "PATCH", "PUT", "DELETE")}


def difference(after, before):
    """The difference for each method."""
    return {m: after[m] - before[m] for m in after}


def quiet(steward):
    """The counts by method, once no request was sent for two seconds (events are sent last)."""
    seen = [(by_method(steward), time.monotonic())]

    def look():
        now = by_method(steward)
        if now != seen[0][0]:
            seen[0] = (now, time.monotonic())
        return time.monotonic() - seen[0][1] >= 2
    wait.until("the last requests", look, 60, every=0.1)
    return seen[0][0]


def measure(kind, count, replicas, real):
    """The figures as a dict."""
    with fleet(paths.steward_binary(), kind) as one:
        if real:
            one.cluster.component("start", "controller-manager")
        one.start()
        before = quiet(one.steward)
        say(f"{count} {kind}s: creating")
        begin = time.monotonic()
        one.grow(count, replicas=replicas)
        created = time.monotonic() - begin
        total = one.wait_completed(3600) - begin
        after = quiet(one.steward)
        conflicts = int(one.steward.metric("rest_client_requests_total", code="409"))
        say(f"All are complete after {total:.1f} s; one settled minute")
        end = time.monotonic() + SETTLED_S
        wait.until("a minute", lambda: time.monotonic() >= end, SETTLED_S + 10, every=0.5)
        settled = difference(by_method(one.steward), after)
        made = difference(after, before)
        one.stop()
        return {"kind": kind, "objects": count, "replicas": replicas, "real_controllers": real,
                "created_in_s": round(created, 2), "complete_in_s": round(total, 2),
                "objects_per_s": round(count / total, 1), "requests": made, "conflicts": conflicts,
                "requests_per_object": round(sum(made.values()) / count, 3),
                "requests_in_settled_minute": settled}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench converge",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kind", choices=list(KINDS), default="MyWeb")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--real-controllers", action="store_true",
                        help="leave Deployments to kube-controller-manager; with --replicas 0, since "
                             "nothing runs pods")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    replicas = 0 if args.real_controllers else args.replicas
    f = measure(args.kind, args.count, replicas, args.real_controllers)
    # A watch renewed in this minute is a GET, not a request for an object.
    idle = sum(n for m, n in f["requests_in_settled_minute"].items() if m != "GET")
    most = REQUESTS_MAX[args.kind]
    good = f["requests_per_object"] <= most and idle == 0
    if args.output == "json":
        print(json.dumps(dict(f, good=good), indent=1))
    else:
        who = "kube-controller-manager" if args.real_controllers else "the benchmark"
        print(f"{f['objects']} {f['kind']}s of {f['replicas']} replicas, marked available by {who}")
        print(f"  created in {f['created_in_s']} s, all complete after {f['complete_in_s']} s "
              f"({f['objects_per_s']} a second)")
        print(f"  requests for each: {f['requests_per_object']} (at most {most}); "
              f"{f['requests']}, {f['conflicts']} conflicts")
        print(f"  requests in the settled minute: {f['requests_in_settled_minute']}")
        print("ok" if good else "OVER")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
