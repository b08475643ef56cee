# SPDX-License-Identifier: Apache-2.0
"""Restarts of steward in a cluster that has objects: time to ready, CPU, and peak and steady
memory.

The API server is a real one of the newest version (see fleet.py).  Each program first creates the
objects itself; its memory as grown is reported, too.  A start ends when the metric has all objects
as complete.  Its CPU is that of listing and of one reconcile of each settled object.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import versus  # noqa: E402
from bench.fleet import fleet, say, status_kib  # noqa: E402
from bench.relay import Relay  # noqa: E402
from support import wait  # noqa: E402


REST_S = 60  # idle connections are closed after 30 s


def one_start(one):
    """The figures of one start: ready when all lists are read; steady memory a minute later."""
    ready = one.start() / 1000
    pid = one.steward.process.pid
    listed = versus.usage(pid)
    begin = time.monotonic()
    wait.until("all objects to be judged", lambda: one.completed() >= one.count, 120, every=0.05)
    judged = ready + time.monotonic() - begin
    used = versus.settled_usage(pid)
    end = time.monotonic() + REST_S
    wait.until("work to be over for a while", lambda: time.monotonic() >= end, REST_S + 10, every=1)
    found = {"ready_s": ready, "judged_s": judged, "cpu_listed_s": listed["cpu_s"],
             "cpu_judged_s": used["cpu_s"], "wakeups": used["wakeups"],
             "peak_kib": status_kib(pid, "VmHWM"), "steady_kib": status_kib(pid, "VmRSS")}
    one.stop()
    return found


def grown(one, count):
    """Resident memory of the steward that has created all objects."""
    one.start()
    one.grow(count)
    one.wait_completed(3600)
    versus.settled_usage(one.steward.process.pid)
    end = time.monotonic() + REST_S
    wait.until("work to be over for a while", lambda: time.monotonic() >= end, REST_S + 10, every=1)
    found = status_kib(one.steward.process.pid, "VmRSS")
    one.stop()
    return found


def measure(reference, count, rounds):
    """{name: medians}, and with a reference the ratios."""
    programs, env = versus.binaries(reference), versus.environments(reference)
    found, sizes = {name: [] for name in programs}, {}
    with fleet(programs["now"]) as one:  # rights for both: the newer one needs more
        for name, program in programs.items():
            one.binary, one.env = program, env[name]
            one.clear()
            say(f"{name}: makes {count} MyWebs")
            sizes[name] = grown(one, count)
        for n, name in versus.in_turns(list(programs), rounds):
            one.binary, one.env = programs[name], env[name]
            found[name].append(one_start(one))
            say(f"Start {n + 1} of {rounds}, {name}: ready after {found[name][-1]['ready_s']:.3f} s")
    result = {}
    for name, each in found.items():
        result[name] = dict(versus.medians(each), grown_kib=sizes[name],
                            slowest_ready_s=max(e["ready_s"] for e in each))
        steady = result[name]["steady_kib"]
        result[name]["peak_over_steady"] = result[name]["peak_kib"] / steady
        result[name]["grown_over_steady"] = sizes[name] / steady
    if reference:
        result["ratio"] = versus.ratios(result["now"], result["reference"])
    return {"count": count, "rounds": rounds, **result}


def spread(took):
    """Shows a stall: the slowest, compared with the median."""
    median = statistics.median(took)
    return {"times": len(took), "median_s": median,
            "p99_s": sorted(took)[max(0, len(took) * 99 // 100 - 1)], "max_s": max(took),
            "over_ten_medians": sum(t > 10 * median for t in took)}


def relists(count, times):
    """Time until every resource is listed again after its watch was answered 410."""
    took = []
    with fleet(versus.binaries(None)["now"]) as one:
        grown(one, count)
        relay = Relay(one.api, one.folder)
        one.env = versus.image_env()
        one.kubeconfig = relay.kubeconfig(one.kubeconfig, one.folder / "through-relay")
        one.start()
        for n in range(times):
            took.append(max(relay.relist().values()))
            if (n + 1) % 20 == 0:
                say(f"  {n + 1} of {times}: slowest {max(took):.3f} s")
        one.stop()
    return {"now": spread(took)}


def stalls(reference, count, starts):
    """How long each of many starts takes: a stalled one is seen at once."""
    programs, env = versus.binaries(reference), versus.environments(reference)
    took = {name: [] for name in programs}
    with fleet(programs["now"]) as one:  # rights for both: the newer one needs more
        grown(one, count)
        for n, name in versus.in_turns(list(programs), starts):
            one.binary, one.env = programs[name], env[name]
            took[name].append(one.start() / 1000)
            one.steward.kill()
            if (n + 1) % 20 == 0:
                say(f"  {n + 1} of {starts}, {name}: slowest {max(took[name]):.3f} s")
        one.steward = None
    return {name: spread(t) for name, t in took.items()}


def show(found, names):
    """Prints a table: one line per figure, one column per program."""
    print(f"{'':18}" + "".join(f"{n:>12}" for n in names))
    for key in found["now"]:
        print(f"{key:18}" + "".join(f"{found[n].get(key, 0):>12.3f}" for n in names))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench start",
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=3000,
                        help="MyWebs; each has three children (3000)")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each program (5)")
    parser.add_argument("--stalls", type=int, metavar="STARTS",
                        help="only how long so many starts take until ready: median, p99, slowest; "
                             "exit status 1 when one takes ten times the median")
    parser.add_argument("--relists", type=int, metavar="TIMES",
                        help="the same for lists after a 410 on every watch")
    parser.add_argument("--reference", metavar="COMMIT", help="measure this one's steward, too")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()
    if args.relists:
        found = relists(args.count, args.relists)
    elif args.stalls:
        found = stalls(args.reference, args.count, args.stalls)
    else:
        found = measure(args.reference, args.count, args.rounds)
    if args.output == "json":
        print(json.dumps(found, indent=1))
    else:
        show(found, [n for n in ("reference", "now", "ratio") if n in found])
    return 1 if found["now"].get("over_ten_medians") else 0


if __name__ == "__main__":
    sys.exit(main())
