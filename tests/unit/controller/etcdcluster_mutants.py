#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes one guard after the other out of the plan of EtcdClusters, and says which test notices.

    etcdcluster_mutants.py [FIRST [LAST]]

Each mutant is compiled apart, with the quick model check and the table tests, and has to fail one
of them.  Exit status: the number of those that nobody noticed."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROOM = ROOT / "controller"
TESTS = ROOT / "tests/unit/controller"

# (what is no longer looked at, file, text, what it becomes), and where one thing is looked at twice,
# the next file, text and what it becomes
MUTANTS = [
    ("I1: a removal leaves a quorum", "facts",
     "return voters >= 1 && p->q.margin >= 0 && healthy >= voters / 2 + 1;", "return voters >= 1;"),
    ("I1: a stop leaves a quorum", "roll",
     "!plan_calm(p) || !plan_can_stop(p, m)", "!plan_can_remove(p, m)"),
    ("I1: a size of two rolls in place", "facts",
     "p->q.voters - 1 >= p->q.needed", "p->q.voters >= p->q.needed"),
    ("I1: a pod that is being deleted", "facts", "other->pod != EC_POD_GOING || ", "true || "),
    ("I2: all are well before the next goes", "facts", "if (plan_voter(m) && !fine(m))",
     "if (plan_voter(m) && !m->listed)"),
    ("I3: the dead go first", "size",
     "bool plan_replace(struct plan *p)\n{", "bool plan_replace(struct plan *p)\n{\n"
     "    if (p->q.voters < p->v->size + 1)\n        return false;"),
    ("I4: one learner", "size", "if (!one_more_wanted(p) || p->q.learners > 0)",
     "if (!one_more_wanted(p))", "size", 'return plan_wait(p, PLAN_SOON_MS, "LearnerCatchingUp"',
     'return plan_note(p, "LearnerCatchingUp"'),
    ("I5: a used name", "size", "p->v->name_used || (m && (m->claim || m->pod != EC_POD_ABSENT))",
     "false"),
    ("I5: a name that somebody else uses", "size", "p->v->name_used || ", ""),
    ("I14: a late addition", "facts", "return !v->listed || !listed;", "return false;"),
    ("I14: a late promotion", "facts", "return !v->listed || !listed || m->learner;",
     "return false;"),
    ("I14: a late removal", "facts", "        return !v->listed || listed;", "        return false;"),
    ("I14: an intent is not dropped while its call may come", "facts", "move->act == EC_FINISH || ",
     ""),
    ("I6: new only before the latch", "seed", "    if (v->cluster_id)\n        return false;\n",
     "    if (v->cluster_id && v->listed)\n        return false;\n"),
    ("I6: the guard before the latch", "seed",
     "if (!m->pod_guarded)\n        return plan_act(p, EC_GUARD, m);", ""),
    ("I6: no start without data", "",
     "if (!plan_voter(m) || m->foreign || plan_data_lost(p, m))", "if (!plan_voter(m))"),
    ("I6: a learner is guarded before it votes", "", "m->answers && there && !m->pod_guarded",
     "m->answers && there && !m->learner && !m->pod_guarded"),
    ("I6: a pod that comes again is guarded", "facts", "p->move->guarded = was_up(m);", ""),
    ("I7: no list, no act", "", "    if (v->listed)\n        return false;\n    if (v->quorum_lost",
     "    if (v->listed || v->quorum_lost_since)\n        return false;\n    if (v->quorum_lost"),
    ("I1, I8: any removal", "facts",
     "return voters >= 1 && p->q.margin >= 0 && healthy >= voters / 2 + 1;", "return true;"),
    ("I9: the upgrade check", "", "p.refused = !version_allowed(&p);", "p.refused = false;"),
    ("I9: back to an older version", "facts",
     "    if (stw_semver_known(m->version))\n        return m->version;", ""),
    ("I10: alarm CORRUPT", "", "m->listed && (m->alarms & STW_ETCD_ALARM_CORRUPT)", "false"),
    ("E6: a promotion that was forgotten", "", "m->listed && m->learner && m->promoted)\n"
     "            return", "false)\n            return"),
    ("E6: a member that does not know that it votes", "", "plan_voter(m) && m->doubts", "false"),
    ("E6: before the next is upgraded", "facts", " && !m->doubts", ""),
    ("I10: alarm CORRUPT of one that was removed", "",
     "(p->v->stray_alarms & STW_ETCD_ALARM_CORRUPT)", "false"),
    ("a full member that was removed", "", "if (!full && !stray)", "if (!full)"),
    ("I10: another cluster's member", "", "m->cluster_id != p->v->cluster_id", "false"),
    ("I13: volumes wait for all", "",
     "v->keep_scaled || p->q.healthy != p->q.voters || p->q.voters != v->size || p->q.learners",
     "v->keep_scaled"),
    ("I13: Retain", "", "v->keep_scaled || ", ""),
    ("the lost are dead at once", "size", "if (plan_data_lost(p, m))\n        return true;", ""),
    ("emptyDirs are not rolled in place", "facts", "bool in_place = p->v->durable && ",
     "bool in_place = "),
    ("a word is asked for before force", "seed", "if (!v->force || v->listed", "if (v->listed"),
    ("a ready pod forbids force", "seed", " || plan_ready(p)", ""),
    ("the survivor by raft's term", "", "    if (a->raft_term != b->raft_term)\n"
     "        return a->raft_term > b->raft_term;\n", ""),
    ("the survivor by raft's index", "", "return a->raft_index > b->raft_index;", "return false;"),
    ("all pods are gone before force", "seed", "    if (going)\n", "    if (false)\n"),
    ("the survivor comes again without force", "seed",
     "m->pod_forced != forced", "false"),
    ("foreign members", "", "if (m->listed && m->foreign)", "if (false)"),
    ("the rate limit", "size", "v->failovers_last_hour >= v->max_per_hour && ", "false && "),
    ("failover is off", "size", "if (!v->failover)", "if (false)"),
    ("no failover for a bad image", "size", "m->trouble == EC_TROUBLE_IMAGE ||", ""),
    ("an abandoned learner leaves a volume", "size", "EC_MEMBER_REMOVE, EC_ABANDON, learner",
     "EC_MEMBER_REMOVE, EC_REMOVE, learner"),
    ("the leader hands over", "roll", "if (!m->leader || !m->healthy || !heir)", "if (true)"),
    ("a pause between two", "roll", "if (rest > 0 && !plan_moving(p, m))", "if (false)"),
    ("the status was lost", "seed", "    if (status_lost(p, name))\n        return true;\n", ""),
    ("the restored volume is there", "seed", "v->restored && seed.data != EC_DATA_THERE", "false"),
    ("paused", "", "return p->v->paused && ", "return false && "),
    ("a mended template", "", " || (p->v->durable && plan_misfit(p, m))", ""),
]

CC = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", f"-I{ROOT}/src", f"-I{TESTS}"]
BELOW = [ROOT / "src/kinds/semver.c", ROOT / "src/base/error.c"]
CHECKS = {
    "model": [TESTS / "test_etcdcluster_plan_model.c", *sorted(TESTS.glob("etcdcluster_world*.c"))],
    "tables": [TESTS / "test_etcdcluster_plan.c"],
}


def upgrade_check(folder):
    """The one function of the kinds that the plan calls, without all that it stands among."""
    text = (ROOT / "src/kinds/etcdcluster_version.c").read_text()
    start = text.index("int stw_etcd_upgrade_check(")
    body = text[start:text.index("\n}\n", start) + 3]
    path = folder / "upgrade.c"
    path.write_text('#include "kinds/etcdcluster.h"\n#include "base/error.h"\n'
                    "static bool before(struct stw_semver a, struct stw_semver b)\n"
                    "{ return stw_semver_compare(a, b) < 0; }\n"
                    "static const struct stw_semver last_stop_before_36 = {3, 5, 20};\n" + body)
    return path


def mutate(folder, mutant):
    room = folder / "controller"
    room.mkdir(exist_ok=True)
    for path in ROOM.glob("etcdcluster_plan*"):
        (room / path.name).write_text(path.read_text())
    (room / "etcd").mkdir(exist_ok=True)
    (room / "etcd/etcd.h").write_text((ROOM / "etcd/etcd.h").read_text())
    if mutant:
        edits = mutant[1:]
        for part, old, new in zip(edits[0::3], edits[1::3], edits[2::3]):
            path = room / f"etcdcluster_plan{'_' if part else ''}{part}.c"
            text = path.read_text()
            if old not in text:
                raise SystemExit(f"{path.name} no longer has: {old}")
            path.write_text(text.replace(old, new, 1))


def noticed_by(folder, mutant):
    """The test that fails, and what it says; None: nobody noticed."""
    mutate(folder, mutant)
    for name, sources in CHECKS.items():
        program = folder / name
        subprocess.run([*CC, f"-I{folder}", "-o", program, *sources,
                        *sorted((folder / "controller").glob("*.c")), upgrade_check(folder), *BELOW,
                        "-lcmocka"], check=True)
        try:
            run = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return name, "no end"
        if run.returncode != 0:
            said = [line for line in run.stderr.splitlines() + run.stdout.splitlines()
                    if "ERROR" in line or "FAILED" in line]
            return name, said[0][:100] if said else f"status {run.returncode}"
    return None


def main():
    chosen = [int(a) for a in sys.argv[1:]]
    first, last = chosen[0] if chosen else 1, chosen[-1] if chosen else len(MUTANTS)
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if noticed_by(folder, None):
            raise SystemExit("the plan fails its tests as it is")
        for number, mutant in enumerate(MUTANTS, 1):
            if not first <= number <= last:
                continue
            by = noticed_by(folder, mutant)
            missed += by is None
            print(f"{number:2} {mutant[0]:44} {'NOT NOTICED' if by is None else ': '.join(by)}",
                  flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
