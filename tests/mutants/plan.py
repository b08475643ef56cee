# SPDX-License-Identifier: Apache-2.0
"""Guards of the plan of EtcdClusters (kinds/etcdcluster/plan*.c).  Its tables of cases and its
model test check them."""

from . import Mutant

TESTS = ["kinds/etcdcluster/plan_model", "kinds/etcdcluster/plan"]

# (guard, file, text, its replacement), and where one thing is checked twice, the next file, text
# and replacement
_ROWS = [
    ("I1: a removal leaves a quorum", "facts",
     "return voters >= 1 && p->q.margin >= 0 && healthy >= voters / 2 + 1;", "return voters >= 1;"),
    ("I1: a stop leaves a quorum", "roll",
     "!plan_calm(p) || !plan_can_stop(p, m)", "!plan_can_remove(p, m)"),
    ("I1: a size of two rolls in place", "facts",
     "p->q.voters - 1 >= p->q.needed", "p->q.voters >= p->q.needed"),
    ("I1: a pod that is being deleted", "facts", "other->pod != EC_POD_GOING || ", "true || "),
    ("I2: all are well before the next goes", "facts", "if (plan_voter(m) && !is_fully_healthy(m))",
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
     "if (!ever_voted || m->foreign || plan_data_lost(p, m))", "if (!ever_voted)"),
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
    ("emptyDirs are not rolled in place", "facts", "return p->v->durable && m->data == EC_DATA_THERE",
     "return m->data == EC_DATA_THERE"),
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
    ("E1: pods come again without a quorum", "",
     "    start_missing_members,\n    unknown_list,\n",
     "    unknown_list,\n    start_missing_members,\n"),
    ("E6: one that has voted is started again", "", " || (m->listed && m->promoted);", ";"),
    ("E9: the last one reports the version", "facts",
     " && same_version(m->version, m->pod_version);", ";"),
    ("E9: the last one does not lag", "facts", " && !m->lagging && same_version", " && same_version"),
    ("E9: an upgrade has come true by its word", "",
     " &&\n           stw_semver_compare(m->version, m->pod_version) == 0;", ";"),
    ("E9: an upgrade has come true without a lag", "", "m->healthy && !m->lagging && (trimmed",
     "m->healthy && (trimmed"),
    ("E7: no older etcd on newer data", "facts", "(readable && plan_prepared(p))", "true"),
    ("E7: nor before etcd was told", "facts", "(readable && plan_prepared(p))", "readable"),
    ("E7: an upgrade is not turned back", "", " || turned_back(p, m)", ""),
    ("E7: a downgrade only in place", "", "(!trims && !any_goes_down(p)) || ", "!trims || "),
    ("E7: 3.4's log goes before 3.6 comes", "facts", "    if (p->refused || !old_log(p))",
     "    if (true)"),
    ("E7: of one that was forgotten too", "facts", "if (m->listed && reads_all(m->version) &&",
     "if (plan_voter(m) && reads_all(m->version) &&"),
    ("E7: nobody new is of 3.6 before", "facts", "(old_log(p) ? newer < 0 : newer > 0)", "newer > 0"),
    ("E15: disarmed when there is space", "", "        if (!m->space)\n            return false;\n", ""),
    ("E15: disarmed at all", "", "    if (!full && !stray)\n        return false;",
     "    return false;"),
    ("E15: disarmed of one that was removed", "", "full ? full->id : p->v->stray_id",
     "full ? full->id : 0"),
    ("a mended template", "", " || (p->v->durable && plan_misfit(p, m))", ""),
]


def _mutant(what, *edits):
    label, _, guard = what.rpartition(": ")
    files = [f"kinds/etcdcluster/plan{'_' if part else ''}{part}.c" for part in edits[0::3]]
    return Mutant(label or "plan", guard, list(zip(files, edits[1::3], edits[2::3])), TESTS)


MUTANTS = [_mutant(*row) for row in _ROWS]
