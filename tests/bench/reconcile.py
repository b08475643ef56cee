# SPDX-License-Identifier: Apache-2.0
"""What a new MyWeb costs steward until it is complete: CPU, wake-ups and writes.

The API server is a real one of the newest version.  kube-controller-manager is stopped, and the
benchmark marks the Deployments as available in its place (see fleet.py).  With --reference the
steward of another commit is measured in the same cluster, in turns.
"""

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import versus  # noqa: E402
from bench.fleet import fleet, say, status_kib  # noqa: E402

WRITES = ("POST", "PATCH", "PUT", "DELETE")


def writes(steward):
    """Requests that change something, so far."""
    return sum(steward.metric("rest_client_requests_total", method=m) for m in WRITES)


def one_round(one, count):
    """The figures of one steward for `count` new objects."""
    one.start()
    pid = one.steward.process.pid
    before, written = versus.settled_usage(pid), writes(one.steward)
    begin = time.monotonic()
    one.grow(count)
    ready = one.wait_completed(3600) - begin
    used = versus.less(versus.settled_usage(pid), before)
    found = {"cpu_ms_each": 1000 * used["cpu_s"] / count,
             "wakeups_each": used["wakeups"] / count,
             "preempted_each": used["preempted"] / count,
             "writes_each": (writes(one.steward) - written) / count,
             "complete_in_s": ready,
             "rss_kib": status_kib(pid, "VmRSS")}
    one.stop()
    one.clear()
    return found


def measure(reference, count, rounds):
    """{name: medians}, and with a reference the ratios."""
    programs, env = versus.binaries(reference), versus.environments(reference)
    found = {name: [] for name in programs}
    with fleet(programs["now"]) as one:  # rights for both: the newer one needs more
        one.start()  # creates the certificate
        one.stop()
        for n, name in versus.in_turns(list(programs), rounds):
            one.binary, one.env = programs[name], env[name]
            found[name].append(one_round(one, count))
            say(f"Round {n + 1} of {rounds}, {name}: "
                f"{found[name][-1]['cpu_ms_each']:.2f} ms of CPU for each")
    result = {name: versus.medians(each) for name, each in found.items()}
    if reference:
        result["ratio"] = versus.ratios(result["now"], result["reference"])
    return {"count": count, "rounds": rounds, **result}


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench reconcile",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=500, help="new MyWebs in a round (500)")
    parser.add_argument("--rounds", type=int, default=3, help="of each program (3)")
    parser.add_argument("--reference", metavar="COMMIT", help="measure this one's steward, too")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    found = measure(args.reference, args.count, args.rounds)
    if args.output == "json":
        print(json.dumps(found, indent=1))
        return 0
    names = [n for n in ("reference", "now", "ratio") if n in found]
    print(f"{args.count} new MyWebs, medians of {args.rounds} rounds")
    print(f"{'':16}" + "".join(f"{n:>12}" for n in names))
    for key in found["now"]:
        print(f"{key:16}" + "".join(f"{found[n].get(key, 0):>12.3f}" for n in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
