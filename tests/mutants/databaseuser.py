# SPDX-License-Identifier: Apache-2.0
"""Guards of DatabaseUsers: the plan (kinds/databaseuser/plan/plan.c), which its model test checks, marks, and
those against tenants on real servers."""

from . import Mutant

FILE = "kinds/databaseuser/plan/plan.c"
TESTS = ["kinds/databaseuser/plan_model", "kinds/databaseuser/twin", "kinds/databaseuser/status"]

# (guard, text, its replacement)
_ROWS = [
    ("D1: the login works before it is published",
     "dbu_can_log_in(v, &p->t) && is_as_good(v, &p->t) && act(p, DBU_PUBLISH)",
     "act(p, DBU_PUBLISH)"),
    ("D1: a password that waits is not published", "DBU_PASSWORD_KNOWN && !waits &&",
     "DBU_PASSWORD_KNOWN &&"),
    ("D1: the old login is locked after the Secret was written",
     "!dbu_is_published(p->v, &p->t) ||\n        !is_confirmed(p->v, &p->t))",
     "!dbu_can_log_in(p->v, &p->t))"),
    ("D1: the old login stays for the overlap", "(p->t.begins || !v->overlap || !v->over || ",
     "("),
    ("D1: the old login stays as long as something has not read the Secret",
     "!v->over || v->readers_wait))", "!v->over))"),
    ("D1: the login of an unwritten status", "v->login != DBU_LOGIN_NONE && v->login != t->current;",
     "false;"),
    ("D1: the login before, when the status is lost",
     "        t->previous = other_twin(t->current);\n        t->begins = true;\n", ""),
    ("D1: one login after the other", "(is_busy(v, t) && !ends_at_once(v, t) && !is_lost_secret",
     "(false && !is_lost_secret"),
    ("D1: another owner's Secret", "(t->blocked || (is_busy", "((is_busy"),
    ("D1: a Secret that cannot be read, without a status",
     "           v->connection == DBU_CONNECTION_UNKNOWN && act(p, DBU_END_RUN);", "           false;"),
    ("D1: the old password stays valid", "s->keep_old = keeps && dbu_is_new(v, &p->t);",
     "s->keep_old = false;"),
    ("D1: a new password waits for the end of the old one in the status",
     "s->set_later = s->keep_old && v->overlap;", "s->set_later = false;"),
    ("D1: the old password ends after the overlap", "!keeps || (v->overlap && v->over && ",
     "!keeps || (v->overlap && "),
    ("D1: the old password stays as long as something has not read the Secret",
     "v->over && !v->readers_wait && (!v->publishes", "v->over && (!v->publishes"),
    ("D1: the Secret shows another password than the status", " || shows_other);", ");"),
    ("D1: the end of the older password", "return set || !v->overlap ? DBU_END_BEGINS : DBU_END_STAYS;",
     "return DBU_END_STAYS;"),
    ("D2: the password comes before databases",
     "return !p->v->created && create_databases(p);", "return create_databases(p);"),
    ("D2: rights that are refused do not stop a rotation",
     "return o == DBU_RIGHTS_REFUSED && (was", "return false && (was"),
    ("D2: a login that cannot be dropped keeps no other one open",
     "(!drops_databases(p->v) && !p->v->not_ended)", "!drops_databases(p->v)"),
    ("D2: a lost Secret does not stop a rotation",
     "return v->over && !t->confirmed && (v->connection", "return false && (v->connection"),
    ("D5: the other logins are locked",
     "        return true;\n    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)\n"
     "        if (lock(p, l))",
     "        return true;\n    for (enum dbu_login l = DBU_LOGIN_BASE; false; l++)\n        if (lock(p, l))"),
    ("D5: logins are noted before they are made",
     "v->created && !v->has_logins && act(p, DBU_NOTE_LOGINS)", "false"),
    ("D5: logins of a killed run", "if (v->created || dbu_has_logins(v) || v->logins",
     "if (true || v->logins"),
    ("D6: the finalizer is there before the account", "return !p->v->finalizer && act(p, DBU_ADD_FINALIZER);",
     "return false;"),
    ("D6: every login ends", "{DBU_LOGIN_A, DBU_LOGIN_B, DBU_LOGIN_BASE}",
     "{DBU_LOGIN_BASE, DBU_LOGIN_A}"),
]

# Of marks: sql/core/mark.c.
_MARKS = [
    ("D4: a mark of another cluster", "stw_streq(m->uid, id->uid) && (here || !noted)",
     "stw_streq(m->uid, id->uid)"),
    ("D4: an object of the same name in another cluster",
     "return here ? STW_MARK_FORMER : STW_MARK_ELSEWHERE;", "return STW_MARK_FORMER;"),
    ("D4: no identity", "return id->cluster && *id->cluster &&", "return"),
]

# Against tenants on real servers.
_ATTACKS = "integration/sql/test_sql_attacks.py::"
_LOCKS = [_ATTACKS + "test_grant_lock_affects_only_the_locked_object"]
_SERVERS = [
    ("D4: functions of a tenant behind a pooler", "lib/sql/postgresql/postgresql.c",
     "SET LOCAL search_path = pg_catalog, pg_temp; ", "",
     [_ATTACKS + "test_admin_behind_pooler_runs_no_tenant_code"]),
    ("D4: leaders of two clusters", "lib/sql/core/takeover.c",
     'stw_format(text, sizeof(text), "%s/%s", cluster, e.lease);',
     '(void)cluster;\n    stw_format(text, sizeof(text), "%s", e.lease);',
     [_ATTACKS + "test_leaders_of_two_clusters_do_not_end_each_other"]),
    ("D4: a lock whose name can be guessed", "lib/sql/core/takeover.c",
     "put_lock(out, e.here, e.number, i, secret);", "put_lock(out, e.here, e.number, i, false);",
     [_ATTACKS + "test_foreign_advisory_lock_does_not_hide_a_leader"]),
    ("D4: the heir of a namespace in another cluster", "lib/sql/postgresql/heir.c",
     'stw_format(text, sizeof(text), "%s/%s", cluster, ns);',
     '(void)cluster;\n    stw_format(text, sizeof(text), "/%s", ns);',
     [_ATTACKS + "test_each_namespace_has_its_own_heir_role"]),
    ("D4: an adoption that is refused", "lib/sql/core/account.c", "        undo_adoption(w);\n",
     "        (void)undo_adoption;\n",
     ["integration/sql/test_sql_accounts.py::test_mysql_password_policy_is_respected"]),
    ("D4: a definer that a lock hides", "lib/sql/mysql/definer.c",
     "lock_wait_timeout=3600,", "lock_wait_timeout=0,",
     [_ATTACKS + "test_definer_hidden_by_a_lock_is_not_missed"]),
    ("D2: a transaction of another account that holds a role", "lib/sql/postgresql/sessions.c",
     "start_wait(s, waiter, seen->role_oid, pid) == 0", "(start_wait(s, waiter, seen->role_oid, pid), false)",
     [_ATTACKS + "test_limited_admin_ends_only_transactions_that_hold_the_account"]),
    ("D2: what the holder of a role waits for", "lib/sql/postgresql/sessions.c",
     "AND NOT \"\n                 \"x.granted AND x.pid IN (SELECT pid FROM queue)) \"",
     "AND NOT \"\n                 \"x.granted AND x.pid IN (SELECT pid FROM queue) UNION SELECT \"\n"
     "                 \"unnest(pg_blocking_pids(q.pid)) FROM (SELECT pid FROM queue UNION SELECT \"\n"
     "                 \"unnest(pg_blocking_pids(pid)) FROM queue) q) \"",
     [_ATTACKS + "test_limited_admin_ends_no_session_that_the_holder_waits_for"]),
    ("D2: a session of a role with REPLICATION", "lib/sql/postgresql/sessions.c",
     "NOT r.rolsuper AND NOT r.rolreplication", "NOT r.rolsuper",
     [_ATTACKS + "test_replication_session_is_not_ended"]),
    ("D2: a session of the admin under its login", "lib/sql/postgresql/sessions.c",
     "NOT IN (current_user, session_user)", "NOT IN (current_user)",
     [_ATTACKS + "test_own_session_of_an_admin_that_acts_as_a_role_is_not_ended"]),
    ("D3: a session that cannot be ended", "lib/sql/core/account.c",
     "    if (w->s.unblock_needs[0] == '\\0')\n        return true;\n    w->f = held;\n    return false;\n",
     "    (void)held;\n    return true;\n",
     [_ATTACKS + "test_session_that_cannot_be_ended_costs_one_wait"]),
    ("D3: the time of all tries of a visit", "lib/sql/core/account.c",
     "    return now < w->unblock_until_ms;", "    return now > 0;",
     [_ATTACKS + "test_replication_session_is_not_ended"]),
    ("D3: nothing goes around what holds an account", "lib/sql/core/account.c",
     "w->s.ops->leaves_out && !w->login_held &&", "w->s.ops->leaves_out &&",
     [_ATTACKS + "test_replication_session_is_not_ended"]),
    ("D3: the time in which a login is freed", "lib/sql/postgresql/postgresql.c",
     "        c->timeout_ms = deadline_ms - STW_MIN(now, deadline_ms);\n        (void)conn_run(",
     "        (void)now;\n        (void)conn_run(",
     [_ATTACKS + "test_freeing_of_a_login_ends_with_the_time_of_the_login"]),
    ("D3: a view that another session has locked", "lib/sql/mysql/definer.c",
     "            stw_pool_note_locked(s->pool, name);\n", "            (void)stw_pool_note_locked;\n",
     [_ATTACKS + "test_view_under_a_lock_is_waited_for_once_and_not_by_its_own_namespace"]),
    ("D2: an account is locked before its drop", "lib/sql/core/account.c",
     "if (how == DROP && w->s.ops->look_drop && run_for_ours", "if (false && run_for_ours",
     [_ATTACKS + "test_role_with_too_many_rights_is_still_managed",
      "integration/sql/test_sql_bad_days.py::test_kill_after_each_statement_is_completed"]),
    ("D3: an object that another session has locked", "lib/sql/postgresql/postgresql.c", ".leaves_out = true",
     ".leaves_out = false", _LOCKS),
    ("D3: what a lock keeps an account from losing", "lib/sql/core/account.c",
     "bool left = (w->around_locks && p.take.count > 0) || ", "bool left = ", _LOCKS),
    ("D3: a session in template1", "lib/sql/postgresql/databases.c", '" TEMPLATE template0"', '""',
     ["integration/sql/test_sql_databases.py::test_template1_session_does_not_block_creation"
      ]),
    ("D7: rights that others gave", "lib/sql/postgresql/rights.c", 'IS NOT TRUE LIMIT %zu)", k->left + 1);',
     'IS NOT TRUE LIMIT %zu)", SIZE_MAX / 4);',
     ["integration/sql/test_sql_sizes.py::test_many_foreign_rights_do_not_block_changes"]),
    ("D7: an answer without an end", "lib/sql/core/intake.c",
     "return atomic_load(&i->over) || get_taken(i->fd) > atomic_load(&i->limit);", "return i && false;",
     [_ATTACKS + "test_endless_answer_fills_no_memory"]),
]

MUTANTS = [Mutant(what.partition(": ")[0], what.partition(": ")[2], [(file, old, new)], tests)
           for what, file, old, new, tests in (
               *((what, FILE, old, new, TESTS) for what, old, new in _ROWS),
               *((what, "lib/sql/core/mark.c", old, new, ["lib/sql/mark"]) for what, old, new in _MARKS),
               *_SERVERS)]
